"""One text explained: what the model could and could not read, which explanation comes first."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from heedful.cli import app
from heedful.errors import InputError
from heedful.importance import alike, methods_of
from heedful.importance import explain as importance_of
from heedful.jobs.explain import LOSSES, SLOPES, explain, recommended
from heedful.models import erase, example, read
from heedful.models.huggingface import FastTokeniser, Pieces, classifier_of
from heedful.models.log_odds import log_odds
from heedful.models.saved import save_model
from heedful.models.verbs import decide
from heedful.runs import write_json
from tests.models.huggingface.test_classifier import MeanPooled
from tests.tiny import classifier
from tests.tiny_transformers import TEXTS, enlarged, reader, tokenizer

TEXT = "good food and bad service"


def test_words_outside_the_vocabulary_are_named_once_in_the_order_of_the_text() -> None:
    found = explain(example(), "good zebra and unicorn food zebra", ["attention"])
    assert found.unknown == ("zebra", "unicorn")
    assert found.to_json()["unknown"] == ["zebra", "unicorn"]
    assert found.units == ("good", "zebra", "and", "unicorn", "food", "zebra")
    alike = dict(zip(found.units, found.importance["attention"], strict=True))
    assert alike["zebra"] == alike["unicorn"]  # both are read as the same symbol


def test_a_text_of_known_words_has_none() -> None:
    assert explain(example(), "good food", ["attention"]).unknown == ()


def test_one_name_is_a_name_and_one_text_is_a_text() -> None:
    assert list(explain(example(), TEXT, "attention").importance) == ["attention"]
    model = example()
    assert set(importance_of(model, read(model, model.batch([TEXT])), "gradient")) == {"gradient"}
    for reads in (model, classifier("bilstm+additive"), reader("bert")):
        with pytest.raises(InputError, match=r"list of texts, got one text; write \['good food'\]"):
            reads.batch("good food")
    with pytest.raises(InputError, match="Expected a text"):
        explain(model, ["good", "food"])  # type: ignore[arg-type]


def test_another_class_can_be_asked_for() -> None:
    found = {name: explain(example(), TEXT, "gradient", target=name) for name in ("negative", None)}
    other, own = found["negative"], found[None]
    assert (own.target, own.decision, other.target) == ("positive", "positive", "negative")
    # Of two classes what one gains the other loses.
    assert other.importance["gradient"] == pytest.approx([-x for x in own.importance["gradient"]])
    with pytest.raises(InputError, match="Unknown class 'happy'; known: negative, positive"):
        explain(example(), TEXT, target="happy")


def test_a_sure_model_is_told_in_log_odds() -> None:
    model = example()
    plain = explain(model, TEXT, [*LOSSES, *SLOPES[:4]])
    assert plain.log_odds == ()
    with torch.no_grad():
        model.head.weight.mul_(3)
    sure = explain(model, TEXT, [*LOSSES, *SLOPES[:4], "attention"])
    assert 0.99 < max(sure.probabilities.values()) < 1 - 1e-9
    assert set(sure.log_odds) == {*LOSSES, *SLOPES[:4]}
    assert max(sure.importance["leave-one-out"]) > 1
    reading = read(model, model.batch([TEXT]))
    target, before = reading.target, log_odds(reading.logits, reading.target)
    one = torch.eye(5, dtype=torch.bool)[None]
    after = log_odds(decide(model, reading, erase(one)), target[:, None].expand(1, 5))
    assert sure.importance["leave-one-out"] == pytest.approx((before - after)[0].tolist(), rel=1e-9)

    def odds(weights: torch.Tensor) -> torch.Tensor:
        logits = weights @ reading.unit_logits[0] + reading.offset[0]  # type: ignore[index]
        return log_odds(logits, target[0])

    slopes = torch.autograd.functional.jacobian(odds, reading.attention[0])
    assert sure.importance["gradient"] == pytest.approx(slopes.tolist(), rel=1e-6)
    with torch.no_grad():
        model.head.weight.mul_(10)
    surest = explain(model, TEXT, ["occlusion", "gradient"])
    assert surest.log_odds == ("occlusion",)  # whose logits are at hand; slopes would be rounding


def test_methods_that_are_the_same_for_a_model_have_one_name() -> None:
    def cut(text: str) -> Pieces:
        return FastTokeniser(tokenizer(is_causal=True)).pieces([text])[0]

    model = classifier_of(enlarged(MeanPooled()), cut, ("no", "yes"))
    assert alike(model) == {"received-attention": "mean-attention", "last-attention": "attention"}
    assert not set(alike(model)) & set(methods_of(model, costly=True))
    reading = read(model, model.batch(TEXTS))
    for one, other in alike(model).items():
        found = importance_of(model, reading, [one, other])
        shares = [found[name] / found[name].sum(1, keepdim=True) for name in (one, other)]
        torch.testing.assert_close(*shares, rtol=1e-9, atol=1e-12)
    assert alike(reader("bert")) == {}
    assert alike(example()) == {}


def test_the_best_of_an_audit_comes_first_and_random_last(tmp_path: Path) -> None:
    save_model(example(), tmp_path)
    unmeasured = recommended(tmp_path, example())
    assert unmeasured.method == "occlusion"
    assert "was not measured" in unmeasured.why
    assert unmeasured.standing == ""

    def place(method: str, number: int, low: float) -> dict[str, object]:
        beyond = {"value": 0.2, "low": low, "high": 0.3, "n": 311, "interval": "", "undefined": 0}
        return {"method": method, "place": number, "beyond_random": beyond}

    places = [place("gradient", 1, 0.1), place("attention", 2, 0.1), place("random", 0, 0)]
    ranking: dict[str, object] = {"places": places, "recommendation": "Show `gradient` instead."}
    ranking["recommended"] = "gradient"
    write_json(tmp_path / "findings" / "verdict.json", {"ranking": ranking})
    best = recommended(tmp_path, example())
    assert (best.method, best.standing) == ("gradient", "recommended")
    assert "0.20 [0.10, 0.30] above a random order, 311 documents" in best.why
    told = list(explain(tmp_path, TEXT).importance)
    assert (told[0], told[-1]) == ("gradient", "random")
    asked = ["explain", TEXT, "bad food", "--model", str(tmp_path)]
    shown = CliRunner().invoke(app, asked).output
    counts = [shown.count(word) for word in ("Decision:", " gradient  ", "leave-one-out")]
    assert counts == [2, 2, 0]
    assert best.why in shown
    every = CliRunner().invoke(app, [*asked, "--all"]).output
    assert every.index("gradient") < every.index("leave-one-out") < every.index("random  ")
    ranking |= {"recommendation": "Show none of them (see `Deleting words`).", "recommended": ""}
    write_json(tmp_path / "findings" / "verdict.json", {"ranking": ranking})
    only_first = recommended(tmp_path, example())  # it fared best, and yet is not to be shown
    assert only_first.why == f"{best.why} Show none of them."
    assert only_first.standing == "first in the audit"
    # What only an audit that was asked to judges is shown where it came first, and nowhere else.
    assert "lime" not in told
    places[0] = place("lime", 1, 0.1)
    write_json(tmp_path / "findings" / "verdict.json", {"ranking": ranking})
    told = list(explain(tmp_path, TEXT).importance)
    assert (told[0], told[-1]) == ("lime", "random")
