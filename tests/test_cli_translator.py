"""`heedful translator` as a user meets it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from heedful.cli import app
from heedful.errors import InputError

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
    assert lines[1] == "1 of 31 given pairs with an empty side is left out."
    assert lines[2].startswith("BLEU on dev, beam 5:")
    assert "The unit with most attention is aligned with" in lines[3]
    assert lines[-1] == f"The page: {out / 'index.html'}"
    return out


def test_json_is_one_object_with_the_numbers_and_nothing_is_computed_twice(
    files: tuple[Path, Path], run: Path
) -> None:
    before = (run / "index.html").stat().st_mtime_ns
    told = heedful("translator", *files, "--out", run, *QUICK, "--device", "cpu", "--json")
    found = json.loads(told)
    assert found["page"] == str(run / "index.html")
    assert 0 <= found["bleu"]["value"] <= 100
    assert found["bleu"]["n"] == found["dev"] == 3
    assert found["audit"]["audit"] == "alignment"
    assert (run / "index.html").stat().st_mtime_ns == before


def test_texts_are_escaped(run: Path) -> None:
    page = (run / "index.html").read_text("utf-8")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in page
    assert "alert(1)" in (run / "translations.tsv").read_text("utf-8")


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
        (("--heads", "0"), "at least 1"),
        (("--dropout", "1.5"), "dropout must lie"),
        (("--epochs", "0"), "must be positive"),
        (("--pieces", "7000"), "lower the vocabulary or give more text"),
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


@pytest.mark.parametrize("words", [("audit",), ("report",)])
def test_other_commands_point_to_the_page(run: Path, words: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"holds a translator.*index\.html"):
        heedful(*words, run)


def test_help_has_an_example() -> None:
    assert "heedful translator text.de text.en --out" in " ".join(
        heedful("translator", "--help").split()
    )
