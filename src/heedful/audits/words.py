"""The word view: what single words are worth to a flat model, and where its two scores disagree.

Not a test of attention but a list to read: the words with the highest attention scores, what they
say of the classes, and how they are tied to them in the training texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from heedful.audits.finding import Finding, Measure
from heedful.corpora.encoded import Encoded, EncodedCorpus
from heedful.corpora.vocabulary import SPECIALS
from heedful.dynamics.scores import occurrence_scores, polarity_of, word_scores
from heedful.dynamics.token_classes import NEUTRAL, classify, word_counts
from heedful.models.classifier import AttentionClassifier
from heedful.statistics.association import spearman
from heedful.statistics.intervals import mean
from heedful.statistics.separation import auc

QUESTION = "Which words does the model attend to, and do they decide?"
LEAST = 3
"""Words seen less often in the texts that are counted are left out of the view."""
RANKED = 1_500
"""The rank correlation is over the most frequent words, at most so many."""
SHOWN, NAMED, CLOUD = 240, 26, 60
"""Words in the scatter, words named in it, words in the cloud."""
LISTED = 8
"""Words in a sentence."""


def has_words(model: object) -> bool:
    """Whether the model has word scores: a flat classifier of our own."""
    return isinstance(model, AttentionClassifier) and model.words is None


def table(model: AttentionClassifier, corpus: EncodedCorpus, read: Encoded) -> pd.DataFrame:
    """One row per word: its scores alone, its mean score and weight in what was read, its class.

    Classes are counted in the training texts where the corpus has them, else in what was read.
    `polarity` is the logit of the second class minus the first; with more classes, how far the
    word's strongest class, `towards`, lies above the mean of all.
    """
    train = corpus.splits.get("train")
    counted = "audited" if train is None or not len(train) else "training"
    scores, local = word_scores(model), occurrence_scores(model, read)
    centred = scores.logits - scores.logits.mean(1, keepdim=True)
    is_binary = len(model.classes) == 2
    polarity = polarity_of(scores.logits) if is_binary else centred.amax(1)
    source = read if train is None or counted == "audited" else train
    counts = word_counts(source, len(corpus.classes), len(corpus.vocabulary))
    classes = classify(counts, corpus.classes)
    towards = centred.argmax(1).cpu().numpy()
    names = (*classes.names, "")
    found = pd.DataFrame(
        {
            "word": model.vocabulary.words,
            "times": classes.counts.sum(1),
            "association": classes.association,
            "class": [names[kind] for kind in classes.kind],
            "towards": [model.classes[k] for k in towards],
            "polarity": polarity.cpu().numpy(),
            "score": scores.scores.cpu().numpy(),
            "local score": local.scores.cpu().numpy(),
            "weight": local.weight.cpu().numpy(),
        }
    )
    found["counted in"] = counted
    return found.iloc[len(SPECIALS) :].reset_index(drop=True)


def summarise(words: pd.DataFrame, classes: Sequence[str]) -> Finding:
    """The finding over all words seen often enough."""
    known = words[words["times"] >= LEAST]
    missing = [c for c in (*classes, NEUTRAL) if not (words["class"] == c).any()]
    counted = words["counted in"].iloc[0] if len(words) else "training"
    notes = [
        f"{len(known):,} of {len(words):,} words occur {LEAST} times or more in {counted} texts."
    ]
    notes += [f"No word is tied to the class {name!r} by its counts." for name in missing]
    if len(known) < 3:
        nothing = "Nothing could be measured: too few words occur often enough."
        return Finding("words", QUESTION, nothing, (), "words", {}, tuple(notes))
    frequent = known.sort_values("times", ascending=False, kind="stable").head(RANKED)
    names = [str(word) for word in frequent["word"]]
    size = frequent["polarity"].abs()
    agreement = spearman(size, frequent["score"], names)
    measures = [Measure("rank correlation of score and size of polarity", agreement)]
    polar, neutral = known[known["class"].isin(classes)], known[known["class"] == NEUTRAL]
    together = [str(word) for word in (*polar["word"], *neutral["word"])]
    apart = auc(polar["score"], neutral["score"], together)
    measures.append(Measure("AUC of scores, class words against neutral words", apart))
    if len(classes) == 2 and len(polar):
        right = (polar["polarity"] > 0) == (polar["class"] == classes[1])
        share = mean(right.to_numpy(), [str(word) for word in polar["word"]])
        measures.append(Measure("class words with the sign of their class", share))
    ranked = _disagreement(known)
    answer = (
        f"The highest attention scores have {_said(known.sort_values('score'))}. Scores follow the "
        f"size of polarity with a rank correlation of {agreement}. Attended more than they say: "
        f"{_said(ranked[ranked > 0].sort_values(), known)}; saying more than they are attended: "
        f"{_said(-ranked[ranked < 0].sort_values(ascending=False), known)}."
    )
    return Finding(
        "words", QUESTION, answer, tuple(measures), "words", _drawn(known, ranked, classes),
        tuple(notes),
    )  # fmt: skip


def _disagreement(words: pd.DataFrame) -> pd.Series[float]:
    """Rank of the attention score minus rank of the size of polarity, between −1 and 1."""
    score = words["score"].rank(pct=True)
    return score - words["polarity"].abs().rank(pct=True)


def _said(values: pd.DataFrame | pd.Series[Any], words: pd.DataFrame | None = None) -> str:
    """The last words of an ascending order, the last first."""
    index = values.index[::-1][:LISTED]
    table = values if words is None else words
    assert isinstance(table, pd.DataFrame)
    return ", ".join(f"“{word}”" for word in table.loc[index, "word"]) or "none"


def _drawn(
    words: pd.DataFrame, ranked: pd.Series[float], classes: Sequence[str]
) -> Mapping[str, Any]:
    """Words of the scatter, the most extreme named, and of the cloud."""
    strange = ranked.abs().sort_values(ascending=False).index
    strong = words["score"].sort_values(ascending=False).index
    decisive = words["polarity"].abs().sort_values(ascending=False).index
    third = NAMED // 3
    named = list(dict.fromkeys([*strong[:third], *decisive[:third], *strange[:third]]))
    common = words["times"].sort_values(ascending=False, kind="stable").index
    shown = list(dict.fromkeys([*named, *strong[: SHOWN // 3], *common]))[:SHOWN]
    points = words.loc[shown, ["word", "polarity", "score", "times", "class"]]
    cloud = words.loc[strong[:CLOUD], ["word", "score", "polarity", "class", "towards"]]
    return {
        "classes": list(classes),
        "points": points.to_dict("list"),
        "named": [str(word) for word in words.loc[named, "word"]],
        "cloud": cloud.to_dict("list"),
        "is_binary": len(classes) == 2,
    }
