"""Makes the guide's pictures anew: python docs/guide/draw.py (three minutes on one core).

Charts of every audit of a small model on the planted corpus, and one text explained by every
method of a tiny BERT that was fine-tuned on it.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import heedful
from heedful.jobs.fine_tuning import fine_tune
from heedful.jobs.settings import settings_of
from heedful.models.huggingface.tiny import write_tiny_encoder

GUIDE = Path(__file__).parent
SIZES = {"train": 1500, "dev": 200, "test": 300}


def main() -> None:
    """Audits two models and keeps their pictures."""
    corpus = heedful.load_corpus("planted:2:short", sizes=SIZES)
    target = GUIDE / "pictures" / "audits"
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        heedful.audit("bilstm+additive", corpus, place / "own")
        words = {word for document in corpus.splits["train"] for word in document.tokens}
        write_tiny_encoder(sorted(words), place / "tiny", heads=4, width=64)
        settings = settings_of({"train": {"epochs": 6, "learning_rate": 0.001}})
        fine_tune(place / "tiny", corpus, place / "bert", settings=settings)
        heedful.audit(str(place / "bert"), corpus, place / "bert-audit", documents=120)
        for run in (place / "bert-audit", place / "own"):
            for picture in (run / "figures").glob("*.svg"):
                shutil.copyfile(picture, target / picture.name)
        text = corpus.splits["test"][0].text
        told = heedful.explain(place / "bert", text)
        kept = {
            "text": text,
            "units": told.units,
            "decision": told.decision,
            "importance": {
                name: [float(f"{value:.3g}") for value in values]
                for name, values in told.importance.items()
            },
        }
    (GUIDE / "example.json").write_text(json.dumps(kept, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
