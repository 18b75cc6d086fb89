"""Texts coloured for LaTeX."""

from heedful.report.latex import escaped, highlighted


def test_colours_run_from_the_least_to_the_most():
    found = highlighted(["a", "b", "c"], [1.0, 2.0, 5.0])
    assert found == (
        r"\colorbox{red!0}{\strut a} \colorbox{red!25}{\strut b} \colorbox{red!100}{\strut c}"
    )


def test_equal_scores_are_not_coloured_and_one_word_is_a_text():
    assert highlighted(["x"], [3.0]) == r"\colorbox{red!0}{\strut x}"


def test_what_latex_would_read_is_escaped():
    assert escaped(r"50% of $x_1 & {a}\b") == r"50\% of \$x\_1 \& \{a\}\textbackslash{}b"
