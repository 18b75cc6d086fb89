"""The attention that an audit reads and removes, in words."""

from __future__ import annotations

from typing import NamedTuple

from heedful.models.classifier import AttentionClassifier
from heedful.models.huggingface import PretrainedClassifier
from heedful.models.verbs import AttentiveModel


class AuditedAttention(NamedTuple):
    """What the page calls it; all that it says of removing attention is made of these."""

    unit: str
    """What attention chooses among: word or sentence."""
    where: str
    """Where it is removed, as that follows `attention to this word`; empty with one attention."""
    rows: str
    """Where it is read, as a fact of the audit; empty with one attention."""
    heads: str
    """What the rows of single heads show."""


def audited_attention(model: AttentiveModel) -> AuditedAttention:
    """The words for a model: by its site, and by the rows that the decision is read from."""
    if not isinstance(model, PretrainedClassifier):
        heads = "What positions attend to, as they are pooled"
        if not isinstance(model, AttentionClassifier):
            return AuditedAttention("word", "in the pooling", "", heads)
        unit = "sentence" if model.config.hierarchical else "word"
        return AuditedAttention(unit, "", "", heads)
    site, layout = model.site, model.layout
    layers = len(layout.audited)
    if site.heads:
        count = sum(map(len, site.heads))
        place = f"{count} {'head' if count == 1 else 'heads'} ({site.name.removeprefix('heads:')})"
    elif site.name == "all":
        place = f"all {layers} layers"
    elif site.calls == layout.audited[-1:]:
        place = "the last layer"
    else:
        place = f"layer {layout.audited.index(site.last)} (of {layers}, from 0)"
    if layout.pooled == "every":
        rows, heads = "the mean of all rows", "What all positions, whose mean decides, attend to"
    else:
        rows, heads = "the row that decides", "What the position that decides attends to"
    edited = "" if site.is_one_row or layout.pooled == "every" else "; removed in all rows"
    return AuditedAttention("word", f"in {place}", f"{place}, {rows}{edited}", heads)
