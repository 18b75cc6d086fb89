"""`heedful translator` as a user meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.errors import InputError
from tests.schemas import conforms

QUICK = ("--epochs", "1", "--batch-size", "8", "--width", "8", "--layers", "1", "--dropout", "0")
EVIL = "<script>alert(1)</script> & co"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Thirty pairs, half of them with text that would be code in a page."""
    folder = tmp_path_factory.mktemp("files")
    paths = folder / "text.de", folder / "text.en"
    for path, word in zip(paths, ("Zahl", "number"), strict=True):
        lines = [f"{word} {n} {EVIL if n % 2 else 'here'}" for n in range(30)]
        path.write_text("\n".join(lines) + "\n\n", "utf-8")
    return paths


def heedful(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    if result.exception is not None:
        raise result.exception
    return result.stdout


@pytest.fixture(scope="module")
def run(files: tuple[Path, Path]) -> Path:
    out = files[0].parent / "run"
    said = heedful("translator", *files, "--out", out, *QUICK, "--device", "cpu")
    lines = said.splitlines()
    assert lines[0].startswith("27 training and 3 dev pairs")
    assert lines[1] == "1 of 31 given pairs has an empty side: left out."
    assert lines[2].startswith("BLEU on dev, beam 5:")
    assert lines[3].startswith("May attention be shown as a word alignment? ")
    assert "the piece with most attention is aligned with" in lines[3]
    assert lines[4].startswith("The links are guesses: IBM Model 1")
    assert lines[-1] == f"The page: {out / 'index.html'}"
    return out


def test_json_is_one_object_with_the_numbers_and_nothing_is_computed_twice(
    files: tuple[Path, Path], run: Path
) -> None:
    before = (run / "index.html").stat().st_mtime_ns
    said = heedful("translator", *files, "--out", run, *QUICK, "--device", "cpu")
    assert said.startswith(f"Nothing was trained: {run} holds the finished translator.")
    told = heedful("translator", *files, "--out", run, *QUICK, "--device", "cpu", "--json")
    found = conforms("translator", told)
    assert found["page"] == str(run / "index.html")
    assert 0 <= found["bleu"]["value"] <= 100
    assert found["bleu"]["n"] == found["dev"] == 3
    assert found["audit"]["audit"] == "alignment"
    assert found["may show"] in ("yes", "partly", "no")
    assert found["trained"] is False
    assert (run / "index.html").stat().st_mtime_ns == before


def test_texts_are_escaped(run: Path) -> None:
    page = (run / "index.html").read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in page
    assert "alert(1)" in (run / "translations.tsv").read_text("utf-8")


@pytest.mark.slow
def test_dev_files_heads_and_outputs_are_taken(files: tuple[Path, Path], tmp_path: Path) -> None:
    dev = tmp_path / "dev.de", tmp_path / "dev.en"
    for path, word in zip(dev, ("Zahl", "number"), strict=True):
        path.write_text(f"{word} 99\n{word} 100 here\n", "utf-8")
    links = tmp_path / "links"
    links.write_text("0-0 1-1\n0-0 1-1 2-2\n")
    out = tmp_path / "run"
    heedful("translator", *files, "--out", out, *QUICK, "--dev", *dev, "--alignment", links,
            "--heads", 2, "--output", "linear", "--attention", "uniform", "--pieces", 60,
            "--device", "cpu", "--json")  # fmt: skip
    record = json.loads((out / "run.json").read_text())["configuration"]
    assert record["files"] == ["text.de", "text.en", "dev.de", "dev.en"]
    assert record["pieces"] == 60
    model = record["model"]
    assert (model["heads"], model["output"], model["attention"]) == (2, "linear", "uniform")
    assert len((out / "translations.tsv").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--attention", "dott"), "Unknown --attention 'dott'; known: learnt, uniform"),
        (("--output", "sigmoid"), "Unknown --output 'sigmoid'; known: linear, relu, tanh"),
        (("--heads", "0"), "^--heads must be at least 1, got 0.$"),
        (("--width", "0"), "^--width must be at least 1, got 0.$"),
        (("--layers", "0"), "^--layers must be at least 1, got 0.$"),
        (("--dropout", "1.5"), "^--dropout must lie"),
        (("--epochs", "0"), "^--epochs must be at least 1, got 0.$"),
        (("--epochs", "-1"), "^--epochs must be at least 1, got -1.$"),
        (("--batch-size", "0"), "^--batch-size must be at least 1, got 0.$"),
        (("--learning-rate", "0"), "^--learning-rate must be a positive number, got 0.$"),
        (("--learning-rate", "nan"), "^--learning-rate must be a positive number, got nan.$"),
        (("--learning-rate", "inf"), "^--learning-rate must be a positive number, got inf.$"),
        (("--pieces", "7000"), "lower --pieces or give more text"),
        (("--pieces", "-3"), "^--pieces must be from 1 to 1,000,000, got -3.$"),
        (("--device", "abacus"), "cannot be used here"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    files: tuple[Path, Path], tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    with pytest.raises(InputError, match=said) as refused:
        heedful("translator", *files, "--out", tmp_path / "run", *QUICK, *words)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "inside"),
    [
        (("audit",), ""),
        (("report",), ""),
        (("audit",), "model"),
        (("explain", "a text", "--model"), "model"),
    ],
)
def test_other_commands_point_to_the_page(run: Path, words: tuple[str, ...], inside: str) -> None:
    with pytest.raises(InputError, match=r"holds a translator.*run/index\.html"):
        heedful(*words, run / inside)


def test_translators_have_no_verdict_to_compare(run: Path) -> None:
    with pytest.raises(InputError, match=r"has no verdict to compare; its page.*run/index\.html"):
        heedful("compare", run, run)


def test_dev_files_and_a_dev_share_exclude_each_other(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="give one of the two"):
        heedful("translator", *files, "--out", tmp_path / "r", "--dev", *files, "--dev-share", 0.2)


def test_help_has_an_example() -> None:
    assert "heedful translator text.de text.en --out" in " ".join(
        heedful("translator", "--help").split()
    )
