"""Copies a study's page with its tables and figures to where they are committed.

    python docs/publish.py OUT/polarity docs/results/polarity
    python docs/publish.py docs/results

Tables above 60 kB are packed (`.csv.gz`, the same bytes every time) and the page links to them so;
a figure above 300 kB is refused. Where steps keep a log of every training, `runs.csv.gz` has them
all. The second form makes again, from what lies there, the page of all claims (`claims.html`) and
what is undecided (`undecided.md` and the counts in the README), and shows the claims on the pages
of the studies as they are shown now; the first ends with it. The rest of the README is by hand.
"""

from __future__ import annotations

import gzip
import html
import json
import re
import shutil
import sys
from pathlib import Path

import pandas as pd
import undecided

from heedful.reproduction.index_page import StudyPage, render_study
from heedful.reproduction.matrix_page import write_matrix
from heedful.runs import read_json, write_json
from heedful.studies import STUDIES, study_of

LARGE_TABLE, LARGE_FIGURE = 60 * 1024, 300 * 1024
COPIED = (".csv", ".json", ".svg", ".html")
LOGGED = {"setting": "λ or setting", "seed": "seed", "epoch": "epoch", "learning_rate": "rate"}
LOGGED |= {"step": "updates", "loss": "loss", "dev_loss": "dev loss"}
LOGGED |= {"dev_accuracy": "dev accuracy", "dev_f1": "dev F1 of class 1"}
LOGGED |= {"dev_entropy": "entropy of attention"}
"""Columns that a step's `log` may have, and what they are called where all are together."""
DIGITS = {"loss": 3, "dev loss": 3, "dev accuracy": 4, "dev F1 of class 1": 4}
DIGITS |= {"entropy of attention": 4}
WIDE = re.compile(r"<table>\n<thead><tr>(?:<th[^>]*>[^<]*</th>){7,}</tr>")
"""A table of more than six columns, as the page of a study has it."""
SKIPPED = '<h2 class="small">Steps that were skipped</h2>'
WHOLE = ("erased", "adversaries")
"""Steps that train all seeds of a model; others have the seed in their name."""


def publish(study: Path, target: Path) -> list[str]:
    """The tables that were packed."""
    files = sorted(file for file in study.iterdir() if file.suffix in COPIED)
    heavy = [f.name for f in files if f.suffix == ".svg" and f.stat().st_size > LARGE_FIGURE]
    if heavy:
        raise SystemExit(f"{', '.join(heavy)}: above {LARGE_FIGURE // 1024} kB; rasterise it.")
    if lost := unmeasured(study, target):
        raise SystemExit(
            f"{len(lost)} verdicts that {target} has were not computed in {study}, {lost[0]} among "
            "them: put the steps of the whole study there, or publish this part to "
            f"{target}/corrected."
        )
    packed = [f.name for f in files if f.suffix == ".csv" and f.stat().st_size > LARGE_TABLE]
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        unpacked, smaller = target / file.name, target / f"{file.name}.gz"
        if file.name in packed:
            smaller.write_bytes(gzip.compress(file.read_bytes(), mtime=0))
            unpacked.unlink(missing_ok=True)
            continue
        smaller.unlink(missing_ok=True)
        if file.suffix in (".html", ".json"):
            text = file.read_text()
            for name in packed:
                for before, after in ('""', "><"):
                    text = text.replace(f"{before}{name}{after}", f"{before}{name}.gz{after}")
            unpacked.write_text(text)
        else:
            shutil.copyfile(file, unpacked)
    return packed


def unmeasured(study: Path, target: Path) -> list[str]:
    """Claims that are measured in the target and wait for steps in the study."""
    files = [folder / "claims.json" for folder in (study, target)]
    if not all(file.is_file() for file in files):
        return []
    new, old = ({(c["id"], c["corpus"]): c for c in json.loads(f.read_text())} for f in files)
    return [
        " on ".join(key)
        for key, claim in new.items()
        if "not computed yet" in claim["reason"]
        and old.get(key, {}).get("verdict", "not measurable") != "not measurable"
    ]


def training_logs(study: Path) -> pd.DataFrame:
    """Every epoch of every training whose step kept a `log`, with the seconds of that step.

    A step trains several models together, so the seconds are those of all of them, or what its log
    says itself; a step that only puts others together is not one.
    """
    steps = study / "steps"
    told = [json.loads(line) for line in (steps / "journal.jsonl").read_text().splitlines()]
    seconds = {entry["step"]: entry["seconds"] for entry in told}
    found = []
    for file in sorted(steps.rglob("log.parquet")):
        name = file.parent.relative_to(steps)
        if len(name.parts) == 1:  # a log of all runs of a corpus, as it is
            log = pd.read_parquet(file).round(4)
            log.insert(0, "corpus", name.name)
            found.append(log)
        if name.name not in WHOLE and not "".join(name.parts[2:3]).isdigit():
            continue
        corpus, model = name.parts[:2]
        kept = pd.read_parquet(file)
        took = kept["seconds"].iloc[:1].sum() if "seconds" in kept else seconds[name.as_posix()]
        log = kept[[column for column in LOGGED if column in kept]].rename(columns=LOGGED)
        log = log.round(DIGITS).assign(**{"seconds of the step": round(took, 1)})
        log.insert(0, "model", model)
        log.insert(0, "corpus", corpus)
        found.append(log)
    return pd.concat(found, ignore_index=True) if found else pd.DataFrame()


def publish_logs(study: Path, target: Path) -> int:
    """Writes them packed; how many rows there are."""
    if not (study / "steps" / "journal.jsonl").exists() or (logs := training_logs(study)).empty:
        return 0
    text = logs.to_csv(index=False, float_format="%.6g")
    (target / "runs.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    return len(logs)


def refresh(folder: Path) -> Path:
    """The study's page with its style and its claims as they are shown now; the rest stays.

    Tables, figures and deviations are those of the run: the code may describe another one by now.
    """
    page = folder / "index.html"
    before = page.read_text()
    told, mark, _ = before.partition(SKIPPED)
    listed = re.findall(r"<li><b>([^<]*)</b>: (.*)</li>", before[len(told) :]) if mark else []
    skipped = {html.unescape(step): html.unescape(reason) for step, reason in listed}
    claims = read_json(folder / "claims.json")
    fresh = render_study(StudyPage("", "", {}, (), {}, (), (), claims, skipped, False))
    parts = [r"<style>.*?</style>", r'<section id="claims">.*?</section>']
    # Steps that share a reason are one line; where they are already there is nothing to fold.
    parts += [rf"{SKIPPED}.*?</section>"] if len(skipped) > len(set(skipped.values())) else []
    for part in parts:
        new = re.search(part, fresh, re.DOTALL)
        assert new
        before = re.sub(part, lambda _, new=new: new[0], before, count=1, flags=re.DOTALL)
    before = WIDE.sub(lambda found: found[0].replace("<table>", '<table class="many">'), before)
    page.write_text(before)
    return page


def place_claims(folder: Path) -> bool:
    """Whether the places of published claims changed: the code says where a paper has a claim.

    Runs of before named places in notes that are not in the repository.
    """
    file = folder / "claims.json"
    claims = read_json(file)
    known = {one.id: one for one in study_of(read_json(folder / "study.json")["study"]).claims}
    before = json.dumps(claims)
    for claim in claims:
        now = known.get(claim["id"])
        if now is not None and now.sentence == claim["claim"]:
            claim["where"] = now.where
    if json.dumps(claims) == before:
        return False
    write_json(file, claims)
    return True


def claims_page(results: Path) -> Path | None:
    """The page of all claims, from the published folders."""
    return write_matrix(results, [study_of(name) for name in STUDIES])


if __name__ == "__main__":
    given = [Path(one) for one in sys.argv[1:]]
    if len(given) == 2:
        print("packed:", ", ".join(publish(*given)) or "none")
        print("epochs of trainings:", publish_logs(*given))
    results = given[0] if len(given) == 1 else given[1].parent
    folders = sorted(file.parent for file in results.rglob("study.json"))
    print("places of claims:", [str(folder) for folder in folders if place_claims(folder)])
    print("all claims:", claims_page(results))
    print("undecided:", undecided.write(results))
    for folder in folders:
        print("page:", refresh(folder))
