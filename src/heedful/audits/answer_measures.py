"""What is measured of the sources of answers, by name: read by pages without any model."""

NAME = "answers"
QUESTION = "Does removing the sources that an explanation names change how likely the answer is?"
FOUND = "share of the best drop"
FORESEEN = "linear datamodeling score"
PRECISION = "average precision"
EVIDENCE, HIT = "share on evidence", "first is evidence"
FIRST, ON_SOURCES = "share on the first token", "share on sources"
ATTENTION, ORACLE = "attention", "leave one out"
"""Leave one out is what removing each source costs: an explanation too, and what the best drop is
measured by."""
