"""What a terminal shows, with and without colours."""

import pytest

from heedful.report.console import print_explanation

EXPLANATION = {
    "decision": "negative",
    "probabilities": {"negative": 0.9, "positive": 0.1},
    "units": ["the", "soup", "was", "dreadful", "."],
    "importance": {
        "attention": [0.05, 0.2, 0.1, 0.6, 0.05],
        "gradient": [0.01, -0.7, 0.0, 0.5, 0.02],
    },
}


def printed(capsys: pytest.CaptureFixture[str], explanation: dict[str, object]) -> list[str]:
    print_explanation(explanation)
    return capsys.readouterr().out.splitlines()


def test_without_colours_each_method_names_its_words_with_values(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head, attention, gradient, legend = printed(capsys, EXPLANATION)
    assert head.startswith("Decision: negative")
    assert attention.strip() == "attention  dreadful 0.6, soup 0.2, was 0.1, the 0.05, . 0.05"
    assert gradient.strip().startswith("gradient  soup -0.7, dreadful 0.5, ")
    assert legend == "above 0: speaks for the decision · below 0: against it (gradient)"


def test_no_color_is_obeyed_in_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = printed(capsys, EXPLANATION)
    assert "dreadful 0.6" not in coloured[1]
    assert "green: speaks for the decision" in "".join(coloured)
    assert "(gradient)" in "".join(coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "dreadful 0.6" in "".join(printed(capsys, EXPLANATION))


def test_methods_without_a_sign_have_no_legend(capsys: pytest.CaptureFixture[str]) -> None:
    only = EXPLANATION | {"importance": {"attention": [0.05, 0.2, 0.1, 0.6, 0.05]}}
    assert len(printed(capsys, only)) == 2
