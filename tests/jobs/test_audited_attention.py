"""What the page calls the attention that was audited: by site, and by what the decision reads."""

import pytest

from heedful.jobs.audited_attention import audited_attention
from heedful.models.huggingface import FastTokeniser, PretrainedClassifier
from tests.tiny import classifier
from tests.tiny_transformers import CONFIGS, LIMIT, enlarged, reader, tokenizer


@pytest.mark.parametrize(
    ("site", "where", "rows"),
    [
        ("pooled", "in the last layer", "the last layer, the row that decides"),
        (
            "layer:0",
            "in layer 0 (of 2, from 0)",
            "layer 0 (of 2, from 0), the row that decides; removed in all rows",
        ),
        ("all", "in all 2 layers", "all 2 layers, the row that decides; removed in all rows"),
    ],
)
def test_a_transformer_is_told_by_its_site(site: str, where: str, rows: str) -> None:
    told = audited_attention(reader("bert", site))
    assert (told.unit, told.where, told.rows) == ("word", where, rows)
    assert told.heads == "What the position that decides attends to"


def test_mean_pooling_has_no_row_that_decides() -> None:
    from transformers import AutoConfig, AutoModelForSequenceClassification

    sizes = CONFIGS["modernbert"]() | {"classifier_pooling": "mean"}
    config = AutoConfig.for_model("modernbert", **sizes)
    inner = enlarged(AutoModelForSequenceClassification.from_config(config))
    subwords = FastTokeniser(tokenizer())
    subwords.has_types = False
    model = PretrainedClassifier(inner, subwords, ("a", "b", "c"), max_pieces=LIMIT)
    told = audited_attention(model)
    assert told.where == "in the last layer"
    assert told.rows == "the last layer, the mean of all rows"
    assert "the position that decides" not in told.heads


def test_one_attention_needs_no_place() -> None:
    assert audited_attention(classifier("bigru+additive"))[:3] == ("word", "", "")
    assert audited_attention(classifier("han:bigru+additive")).unit == "sentence"
