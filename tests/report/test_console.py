"""What a terminal shows, with and without colours."""

import pytest

from heedful.report.console import print_explanation, print_verdict

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


def test_words_stand_as_in_the_text_and_another_class_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = "The soup was DREADFUL."
    spans = [(0, 3), (4, 8), (9, 12), (13, 21), (21, 22)]
    told = EXPLANATION | {"text": text, "spans": spans, "unknown": ["dreadful"]}
    head, asked, attention, *_ = printed(capsys, told | {"target": "positive"})
    assert head.startswith("Decision: negative")
    assert asked == "Reasons asked for: positive"
    assert attention.strip().startswith("attention  [DREADFUL] 0.6, soup 0.2, was 0.1, The 0.05")


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


def test_words_that_the_model_does_not_know_are_marked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = printed(capsys, EXPLANATION | {"unknown": ["soup"]})
    assert "dreadful 0.6, [soup] 0.2" in lines[1]
    assert lines[-1] == (
        "not in the model's vocabulary, read as one unknown word (in brackets): soup"
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    coloured = printed(capsys, EXPLANATION | {"unknown": ["soup"]})
    before, _, _ = coloured[1].partition("soup")
    assert ";4;" in before.rpartition("\x1b[")[2]  # underlined
    assert "(underlined): soup" in coloured[-1]


VERDICT = {
    "word": "cannot tell", "provisional": False, "sentence": "Too little.", "tests": [],
    "advice": [],
}  # fmt: skip


def test_the_verdict_stands_beside_how_well_the_model_decides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_verdict(VERDICT, 200, "page.html", "test 90.0 % [85.0, 93.5], dev 91.0 %")
    assert "Accuracy: test 90.0 % [85.0, 93.5], dev 91.0 %." in capsys.readouterr().out
    print_verdict(VERDICT, 200, "page.html")
    assert "Accuracy" not in capsys.readouterr().out


def test_a_command_in_the_advice_stays_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"`heedful train --from runs/{'long-' * 20}name --objective tying`"
    advice = [f"{'Some words. ' * 5}{command} tries several strengths."]
    print_verdict(VERDICT | {"advice": advice}, 120, "runs/a/report.html")
    assert command in capsys.readouterr().out


def test_tests_on_some_of_the_documents_say_on_how_many(
    capsys: pytest.CaptureFixture[str],
) -> None:
    test = {"outcome": "mixed", "sentence": "It does in 45 %.", "low": 0.38, "high": 0.52}
    for asked, said in ((200, "Tests on 200 of 836 documents:"), (836, "Tests on 836 documents:")):
        print_verdict(VERDICT | {"tests": [test | {"n": asked}]}, 836, "page.html")
        assert said in capsys.readouterr().out


@pytest.mark.parametrize("columns", range(50, 100, 7))
def test_no_line_ends_inside_an_interval_or_before_a_sign(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    sentence = "It costs 7\u00a0% [3, 12] here, and 0.04 [-0.02, 0.11] there, no more. " * 5
    print_verdict(VERDICT | {"sentence": sentence}, 80, "runs/a/report.html")
    said = capsys.readouterr().out
    assert all(line.count("[") == line.count("]") for line in said.splitlines())
    assert " ".join(said.split()).count("7 % [3, 12] here") == 5


def test_a_test_whose_interval_crosses_a_border_says_what_is_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    test = {"sentence": "It does.", "threshold": 0.7, "contradicts": 0.25, "n": 60}
    open_ = test | {"outcome": "contradicts", "value": 0.24, "low": 0.11, "high": 0.45}
    sure = test | {"outcome": "contradicts", "value": 0.1, "low": 0.05, "high": 0.2}
    print_verdict(VERDICT | {"word": "cannot tell", "tests": [open_, sure]}, 60, "page.html")
    lines = capsys.readouterr().out.splitlines()
    assert " ? It does.  [11, 45]  not settled: contradicts or mixed" in lines
    assert " ✗ It does.  [5, 20]" in lines
