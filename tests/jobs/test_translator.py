"""A translator of a user's two files: what it learns, keeps, refuses, and where it looks.

The words of the small corpus are drawn at random, so that only the source can tell the next one:
then attention has to find it. (Planted reviews can mostly be told from the words before.)
"""

import json
import random
from pathlib import Path

import pytest

from heedful.audits.alignment import CHANCE, DIAGONAL, HIT, MASS
from heedful.corpora.pieces import bleu
from heedful.corpora.planted_pairs import planted_pairs
from heedful.errors import InputError, UnsupportedModel
from heedful.jobs.decider import load
from heedful.jobs.translator import TranslatedFiles, grid_of, train_translator
from heedful.jobs.translator_texts import Texts
from heedful.models.saved_translator import load_translator
from heedful.models.translator import TranslatorConfig
from heedful.runs import write_text
from heedful.training.loop import Moment
from heedful.training.sequences import SequenceConfig

WORDS = [a + b for a in ("ba", "de", "fi", "go", "ku") for b in ("na", "to", "ri", "se", "mo")]
SMALL = TranslatorConfig(embedding_dim=24, width=24, layers=1, dropout=0.0)
BRIEF = SequenceConfig(epochs=1, batch_size=8, learning_rate=1e-2, checkpoint_seconds=0.0)


def written(folder: Path, sentences: list[list[str]]) -> tuple[Path, Path, Path]:
    """Sources, their words said backwards in another language, and the links."""
    folder.mkdir(parents=True, exist_ok=True)
    source, target, links = (folder / name for name in ("text.xx", "text.yy", "links"))
    source.write_text("".join(" ".join(s) + "\n" for s in sentences))
    target.write_text("".join(" ".join(w[::-1] + "k" for w in s) + "\n" for s in sentences))
    links.write_text("".join(" ".join(f"{i}-{i}" for i in range(len(s))) + "\n" for s in sentences))
    return source, target, links


def drawn(count: int) -> list[list[str]]:
    rng = random.Random(0)
    return [rng.sample(WORDS, rng.randint(3, 6)) for _ in range(count)]


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> TranslatedFiles:
    """A translator that learns its task."""
    folder = tmp_path_factory.mktemp("learnt")
    source, target, links = written(folder, drawn(300))
    return train_translator(
        source, target, folder / "run", alignment=links, model=SMALL,
        training=SequenceConfig(epochs=7, batch_size=8, learning_rate=1e-2), device="cpu",
    )  # fmt: skip


@pytest.mark.slow
def test_learnt_attention_lies_on_the_true_links(learnt: TranslatedFiles) -> None:
    assert learnt.found["is learnt"]
    assert learnt.estimate("token accuracy").value > 0.8
    assert learnt.estimate("bleu").value > 40
    hit = learnt.finding.get(HIT, "attention")
    chance, diagonal = (learnt.finding.get(HIT, name) for name in (CHANCE, DIAGONAL))
    assert hit is not None
    assert chance is not None
    assert diagonal is not None
    assert hit.value > 0.8 > 0.3 > chance.value
    assert learnt.estimate("beyond chance").low > 0.5
    # The words keep their order, so the diagonal is right too: no model is needed.
    assert diagonal.value > 0.8
    assert learnt.found["may show"] == "no"
    assert "the diagonal" in learnt.finding.answer or "the same position" in learnt.finding.answer
    assert hit.n == chance.n == learnt.found["dev"]  # pairs are resampled, not their pieces


@pytest.mark.slow
def test_uniform_attention_is_below_chance_by_what_lies_on_the_marks(tmp_path: Path) -> None:
    source, target, links = written(tmp_path, drawn(60))
    even = train_translator(
        source, target, tmp_path / "run", alignment=links, training=BRIEF, device="cpu",
        model=TranslatorConfig(
            embedding_dim=8, width=8, layers=1, dropout=0.0, attention="uniform"
        ),
    )  # fmt: skip
    chance = even.finding.get(HIT, CHANCE)
    assert chance is not None
    for name in (HIT, MASS):
        found = even.finding.get(name, "attention")
        assert found is not None
        assert 0 < found.value < chance.value
    assert even.estimate("beyond chance").high < 0
    assert even.found["may show"] == "no"
    page = even.page.read_text()
    assert "neither rose" in page or "the second did not rise" in page
    assert "half way up at step 0" not in page
    assert all(entry["entropy of attention"] == pytest.approx(1) for entry in even.found["curves"])


@pytest.mark.slow
def test_a_task_that_is_not_learnt_is_told_so(tmp_path: Path) -> None:
    source, target, _ = written(tmp_path, drawn(40))
    slow = SequenceConfig(epochs=1, batch_size=8, learning_rate=1e-9)
    done = train_translator(
        source, target, tmp_path / "run", model=SMALL, training=slow, device="cpu"
    )
    assert not done.found["is learnt"]
    assert "The task was not learnt" in "\n".join(done.lines())
    assert "The task was not learnt" in done.page.read_text()


@pytest.mark.slow
def test_an_alignment_without_links_leaves_nothing_to_measure(tmp_path: Path) -> None:
    source, target, links = written(tmp_path, drawn(40))
    links.write_text("\n" * 40)
    done = train_translator(
        source, target, tmp_path / "run", alignment=links, model=SMALL, training=BRIEF, device="cpu"
    )
    assert "Nothing could be measured" in "\n".join(done.lines())
    assert "undefined" in done.page.read_text()
    assert done.found["examples"] == []


@pytest.mark.slow
def test_the_run_holds_what_is_promised(learnt: TranslatedFiles) -> None:
    folder = learnt.folder
    record = json.loads((folder / "run.json").read_text())
    assert record["configuration"]["kind"] == "translator"
    assert record["configuration"]["train"]["epochs"] == 7
    assert {"versions", "commit", "seeds"} <= set(record)
    entries = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries] == list(grid_of(7 * 34))
    asked = {"dev_loss", "dev_accuracy", "greedy bleu", "probe ~ counts", "attention ~ probe"}
    asked |= {"attention ~ counts", "attention ~ IBM 1", "chance", "entropy of attention"}
    assert all(asked <= set(entry) for entry in entries)
    assert entries[-1]["attention ~ IBM 1"] > entries[0]["attention ~ IBM 1"] + 0.3
    assert entries[-1]["entropy of attention"] < entries[0]["entropy of attention"]
    lines = (folder / "translations.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["source", "reference", "translation"]
    assert len(lines) == 1 + learnt.found["dev"]
    columns = list(zip(*(line.split("\t") for line in lines[1:]), strict=True))
    assert learnt.estimate("bleu").value == pytest.approx(bleu(columns[2], columns[1]).score)
    saved = load_translator(folder / "model")
    source, _, translation = lines[1].split("\t")
    assert saved.translate([source]) == [translation]
    left = {path.name for path in folder.iterdir()}
    assert not left & {"checkpoint.safetensors", "watched.jsonl", ".lock"}


@pytest.mark.slow
def test_the_page_holds_the_numbers(learnt: TranslatedFiles) -> None:
    page = learnt.page.read_text()
    assert str(learnt.estimate("bleu")) in page
    assert learnt.finding.answer in page
    assert "dev pairs also chose the weights" in page
    assert page.count('<table class="matrix">') == 6
    assert page.count('class="linked') > 15
    assert "its share, with its interval, lies above 50\xa0%" in page  # the bounds are told
    assert "Strong lines set words apart" in page
    assert 'class="starts"' in page
    assert "guesses" not in page  # these links are the user's own
    assert '<th scope="row">pieces used</th>' in page
    assert '<title id="chart-watched-title">What words tell and where attention lies' in page
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "").replace("http://www.w3.org", "")


@pytest.mark.slow
def test_asking_again_computes_nothing_and_another_alignment_trains_nothing(
    learnt: TranslatedFiles, tmp_path: Path
) -> None:
    folder = learnt.folder.parent
    files = folder / "text.xx", folder / "text.yy", folder / "run"
    training = SequenceConfig(epochs=7, batch_size=8, learning_rate=1e-2)
    before = learnt.page.stat().st_mtime_ns

    def untouched(moment: Moment) -> None:
        raise AssertionError("trained again")

    options = {"model": SMALL, "training": training, "device": "cpu", "observers": [untouched]}
    again = train_translator(*files, alignment=folder / "links", **options)
    assert again.found == learnt.found
    assert learnt.page.stat().st_mtime_ns == before
    ibm = train_translator(*files, **options)
    assert ibm.found["alignment"] == "IBM Model 1"
    assert ibm.page.read_text().count("The links are guesses") == 2  # audit and matrices
    assert not ibm.is_trained
    assert "Nothing was trained" in ibm.lines()[0]
    assert ibm.estimate("bleu") == learnt.estimate("bleu")
    assert ibm.estimate("beyond chance").low > 0.4  # IBM Model 1 finds this dictionary
    with pytest.raises(InputError, match="other settings"):
        train_translator(*files, **(options | {"seed": 1}))
    with pytest.raises(UnsupportedModel, match="holds a translator"):
        load(folder / "run")
    train_translator(*files, alignment=folder / "links", **options)  # as the others found it


class Killed(Exception):
    """Stands for a kill."""


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_numbers(tmp_path: Path) -> None:
    pairs = planted_pairs({"train": 48, "dev": 1}).splits["train"]
    (tmp_path / "a").write_text("".join(one + "\n" for one, _ in pairs))
    (tmp_path / "b").write_text("".join(two + "\n" for _, two in pairs))
    tiny = TranslatorConfig(embedding_dim=8, width=8, layers=2, dropout=0.3, heads=2)

    def run(name: str, stop: float = float("inf")) -> TranslatedFiles:
        def killing(moment: Moment) -> None:
            if moment.step >= stop:
                raise Killed

        return train_translator(
            tmp_path / "a", tmp_path / "b", tmp_path / name, model=tiny, training=BRIEF,
            device="cpu", observers=[killing],
        )  # fmt: skip

    whole = run("whole")
    for stop in (2, 6):  # at once, and after the last update
        with pytest.raises(Killed):
            run("killed", stop)
        assert (tmp_path / "killed" / "checkpoint.safetensors").is_file()
    resumed = run("killed")
    assert resumed.found == whole.found
    for name in ("metrics.jsonl", "translations.tsv"):
        one, two = ((tmp_path / run / name).read_text() for run in ("whole", "killed"))
        assert one == two
    assert not (tmp_path / "killed" / "checkpoint.safetensors").exists()


@pytest.mark.parametrize(
    ("source", "target", "options", "said"),
    [
        ("a\nb\n", "a\n", {}, "has 2 lines and .* has 1"),
        ("", "", {}, "are empty"),
        ("\n\n", "a\n\n", {}, "no pair of lines with 1 to 100 words"),
        ("a b\n" * 30, "c d\n" * 30, {}, "1 different pair to learn from"),
        (None, None, {"pieces": 5_000}, r"supports [\d,]+ pieces at most, 5,000 were asked for"),
        (None, None, {"pieces": 5}, "raise --pieces"),
        (None, None, {"dev_share": 1.5}, "--dev-share must lie strictly between 0 and 1"),
        (None, None, {"dev_share": 0.8}, "6 training pairs are left .* at least 10 are needed"),
        (None, None, {"max_words": 0}, "--max-words must be at least 1"),
        (None, None, {"alignment": Path("nowhere")}, "nowhere is not a file"),
        (None, None, {"dev": (Path("x"), Path("y"))}, "x is not a file"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_no_folder(
    tmp_path: Path, source: str | None, target: str | None, options: dict, said: str
) -> None:
    one, two, _ = written(tmp_path, drawn(30))
    if source is not None:
        one.write_text(source)
        two.write_text(target or "")
    with pytest.raises(InputError, match=said) as refused:
        train_translator(one, two, tmp_path / "run", training=BRIEF, **options)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "run").exists()


def test_no_copy_of_a_dev_pair_is_trained_on(tmp_path: Path) -> None:
    one, two, _ = written(tmp_path, drawn(30) * 2)
    texts = Texts.read((one, two), 0.2, 100, seed=0)
    assert len(texts.dev_pairs) == 6
    assert not set(texts.dev_pairs) & set(texts.train_pairs)
    assert texts.said() == ["6 given pairs are copies of dev pairs and not trained on."]
    given = Texts.read((one, two, one, two), None, 100, seed=0)
    with pytest.raises(InputError, match="All training pairs are copies of dev pairs"):
        given.encoded(None, "same")


def test_a_copy_with_other_blanks_or_other_code_points_is_a_copy(tmp_path: Path) -> None:
    one, two, _ = written(tmp_path, drawn(30))
    for path in (one, two):
        lines = path.read_text().splitlines()
        odd = [line.replace(" ", "  ").replace("k", "\uff4b") for line in lines]
        path.write_text("\n".join([*lines, *odd, ""]), "utf-8")
    texts = Texts.read((one, two), 0.2, 100, seed=0)
    measured = {" ".join(source.split()) for source, _ in texts.dev_pairs}
    learnt_from = {
        " ".join(source.replace("\uff4b", "k").split()) for source, _ in texts.train_pairs
    }
    assert len(measured) == 6
    assert not measured & learnt_from
    assert len(texts.train_pairs) == 2 * 24
    assert texts.said() == ["6 given pairs are copies of dev pairs and not trained on."]


def test_a_line_beyond_the_limit_of_pieces_sizes_no_vocabulary(tmp_path: Path) -> None:
    sentences = drawn(40)
    one, two, _ = written(tmp_path, sentences)
    short, _ = Texts.read((one, two), 0.2, 100, seed=0).encoded(None, "short")
    odd = "".join(chr(0x4E00 + n) for n in range(500))  # five hundred letters that nobody else has
    for path in (one, two):
        path.write_text(path.read_text() + odd + "\n", "utf-8")
    both = tmp_path / "dev.xx", tmp_path / "dev.yy"
    for path, side in zip(both, (0, 1), strict=True):
        path.write_text("".join(pair[side] + "\n" for pair in short.dev_pairs))
    texts, corpus = Texts.read((one, two, *both), None, 100, seed=0).encoded(None, "long")
    assert not set(odd) & set("".join(corpus.pieces))
    assert "1 of 41 given pairs has a line of more than 400 pieces (the limit): left out." in (
        texts.said()
    )


@pytest.mark.slow
def test_long_dev_pairs_are_drawn_by_the_shortest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heedful.jobs.translator_audit.LONGEST", 2)
    source, target, links = written(tmp_path, drawn(40))
    done = train_translator(
        source, target, tmp_path / "run", alignment=links, model=SMALL, training=BRIEF, device="cpu"
    )
    (one,) = done.found["examples"]
    assert len(one["units"]) > 2


@pytest.mark.slow
def test_an_interruption_says_whether_anything_was_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target, _ = written(tmp_path, drawn(40))

    def stop(moment: Moment) -> None:
        if moment.step >= 2:
            raise KeyboardInterrupt

    def run(seconds: float, observers: list) -> str:
        training = SequenceConfig(1, 8, 1e-2, checkpoint_seconds=seconds)
        options = {"model": SMALL, "training": training, "device": "cpu", "show": True}
        files = source, target, tmp_path / "run"
        if observers:
            with pytest.raises(KeyboardInterrupt):
                train_translator(*files, observers=observers, **options)
        else:
            train_translator(*files, **options)
        return capsys.readouterr().err

    assert "no checkpoint yet (one a minute) and would start again" in run(1e9, [stop])
    assert "goes on from its last checkpoint" in run(0.0, [stop])
    assert "training goes on from 2 of 5 updates" in run(0.0, [])


class Interrupted(Exception):
    """Stands for whatever ends an audit early."""


@pytest.mark.slow
def test_an_interrupted_audit_leaves_no_findings_of_another_alignment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, target, _ = written(tmp_path, drawn(40))
    *dev, links = written(tmp_path / "dev", [WORDS[n : n + 4] for n in range(12)])
    other = tmp_path / "links2"
    other.write_text("0-0\n" * 12)
    run = tmp_path / "run"

    def asked(alignment: Path) -> TranslatedFiles:
        return train_translator(
            str(source), str(target), str(run), dev=(str(dev[0]), str(dev[1])),
            alignment=str(alignment), model=SMALL, training=BRIEF, device="cpu",
        )  # fmt: skip

    first = asked(links)
    page = first.page.read_bytes()
    with monkeypatch.context() as broken:
        broken.setattr("heedful.report.translator_page.render_translator", _interrupt)
        with pytest.raises(Interrupted):
            asked(other)
    assert asked(links).found == first.found  # nothing was touched
    assert first.page.read_bytes() == page
    with monkeypatch.context() as broken:
        broken.setattr("heedful.jobs.translator.write_text", _interrupt_at_the_page)
        with pytest.raises(Interrupted):
            asked(other)
    (run / "watched.jsonl").write_text("left by a kill")
    assert asked(links).found == first.found  # measured anew
    assert first.page.read_bytes() == page
    assert not (run / "watched.jsonl").exists()
    assert asked(other).found["alignment"] == "links2"


def _interrupt(*_: object) -> str:
    raise Interrupted


def _interrupt_at_the_page(path: Path, text: str) -> None:
    if path.name == "index.html":
        raise Interrupted
    write_text(path, text)


def test_the_grid_follows_the_updates() -> None:
    assert grid_of(36_260)[:3] == (0, 91, 363)
    assert grid_of(36_260)[-1] == 36_260
    assert len(grid_of(36_260)) == 21
    assert grid_of(3) == (0, 1, 2, 3)
