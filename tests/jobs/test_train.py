"""What a training says before it begins."""

from __future__ import annotations

import pytest

import heedful
from heedful.jobs import train as training
from heedful.jobs.settings import settings_of


def test_long_texts_are_told_with_the_setting_that_cuts_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = heedful.load_corpus("planted:2:short", sizes={"train": 40, "dev": 10})
    small = settings_of({"train": {"epochs": 1}})
    heedful.train("none+additive", corpus, settings=small, show=True)
    assert "max_tokens" not in capsys.readouterr().err
    monkeypatch.setattr(training, "LONG", 2)
    heedful.train("none+additive", corpus, settings=small, show=True)
    assert "max_tokens under [words]" in capsys.readouterr().err
