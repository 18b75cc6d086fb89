"""The claims of the tracing study, with the sides that decide them.

See docs/studies/tracing.md, "Claims".
"""

from __future__ import annotations

from typing import Any

from heedful.audits.head_shares import KINDS
from heedful.corpora.stop_words import NAME
from heedful.reproduction.ledger import Side, above, at_least, at_most, below, within
from heedful.reproduction.results import Step
from heedful.reproduction.study import Claim, Plan
from heedful.studies.tracing import checks, corpora, measures, models, printed
from heedful.studies.tracing.steps import EVERY, RATED, WITH_UNTRAINED, needs, words

TEXTS, STORIES = corpora.TEXTS, corpora.STORIES
TEXT_ROWS = needs("texts")
HEADS = needs("heads")
DECIDED = needs("decisions")
_MOST = above(0.5)
_BENDS = {"b2": above(0), "seeds with p < .001": _MOST}
_FLAT = {"seeds with p > .05": _MOST, "b2 over s.d., gradient minus LAT": below(0)}
_LENGTHS = {f"{name}: {part}": side for name in checks.LENGTHS for part, side in _BENDS.items()}
_ARMS = {
    f"{name} of {place}": side
    for place in ("5", "the vertex")
    for name, side in (("left", below(0)), ("right", above(0)))
}
_ACCURATE = within(1.5, printed.ACCURACY)


def _recipes() -> dict[str, Side]:
    sides = {"accuracy": _ACCURATE} | _BENDS
    others = models.CHECKED[1:]
    return {f"{name}, {v}": side for v in others for name, side in sides.items()}


def _with_text(plan: Plan, corpus: str) -> list[Step[Any]]:
    return [corpora.text(plan, corpus), *DECIDED(plan, corpus)]


def _followed(plan: Plan, corpus: str) -> list[Step[Any]]:
    return list(models.needs_followed(plan, corpus))


def _both(plan: Plan, corpus: str) -> list[Step[Any]]:
    other = measures.partner(plan, corpus)
    return [words(plan, name, seed) for name in (corpus, other) for seed in plan.seeds]


CLAIMS = (
    Claim(
        "TRA-1", "The Transformer with local attention reaches good SST-5 accuracy.",
        "6.1, Table 1", "mean test accuracy over seeds, per cent; within 1.5 points of 47.5 "
        "(ours); needs 300-d GloVe", "47.5 (s.d. over runs 0.2)", _ACCURATE,
        measures.good_accuracy, _with_text, TEXTS,
    ),
    Claim(
        "TRA-2", "It lies above RNTN, BiLSTM and a Transformer with positions, below DiSAN.",
        "Table 1", "mean test accuracy minus that of BiLSTM and of DiSAN, points; needs 300-d "
        "GloVe", "45.7, 46.5, 45.0; 51.7",
        {"minus BiLSTM": above(0), "minus DiSAN": below(0)}, measures.among_published, _with_text,
        TEXTS,
    ),
    Claim(
        "TRA-3", "On SEND the model beats earlier models and the average human.", "6.1, Table 1",
        "mean CCC over test narratives", "CCC .54 (runs .02, examples .36); human .50",
        above(printed.HUMAN_CCC), measures.beats_people, _followed, STORIES,
    ),
    Claim(
        "TRA-4", "Reading 5 s windows beats reading the whole narrative at once.", "6.1",
        "CCC reading windows minus whole narratives, paired by narrative",
        ".54 against .34 (other authors' model)", above(0), measures.windows_help, _followed,
        STORIES,
    ),
    Claim(
        "TRA-5", "Traced scores are shares of one unit: nothing is lost or made on the way.",
        "3, eqs. 8-11", "largest distance of a head's sum from 1 over layers and texts, float64",
        "by definition", at_most(1e-12), measures.conserves, TEXT_ROWS, EVERY, "all",
    ),
    Claim(
        "TRA-6", "In the last layer all heads spread attention almost evenly.", "6.2, Fig. 3",
        "entropy of the top layer's rows over log N, mean over heads and texts; highest of all "
        "layers and ≥ 0.9 (ours)", "one sentence, by eye",
        {"entropy of the top layer": at_least(0.9), "minus the highest other": above(0)},
        measures.top_layer_is_even, TEXT_ROWS, EVERY,
    ),
    Claim(
        "TRA-7", "Some cells pull attention onto one word, others spread it again.",
        "6.2, Fig. 3", "largest share of a word after minus before a layer, mean over texts, by "
        "head and layer: one > 0.3 and one < 0 (ours)",
        "head 6 layer 4, head 8 layer 3; head 5 layer 1",
        {"largest gain": above(0.3), "smallest gain": below(0)}, measures.gathers_and_spreads,
        TEXT_ROWS, EVERY,
    ),
    Claim(
        "TRA-8", "Within a sentence the words with strong emotion get the highest scores.",
        "6.2, Fig. 3", "mean place within its text, by LAT, over very positive and negative words",
        "one sentence, by eye", above(0.5), measures.feelings_first, TEXT_ROWS, EVERY,
    ),
    Claim(
        "TRA-9", "Over the vocabulary the top-scored words are emotional ones.", "6.3, Fig. 4",
        "distance of ratings from 5, the 100 highest words (a quarter of few) minus all rated "
        "words", "picture: sorry, painful, unsatisfying / congratulations, freaking, comfortable",
        above(0), measures.top_words_are_felt, RATED, EVERY,
    ),
    Claim(
        "TRA-10", "Stop words do not get high scores.", "6.3",
        f"median place by LAT of stop words ({NAME}) among words seen more than once",
        "text", below(0.5), measures.stop_words_low, needs("words"), EVERY,
    ),
    Claim(
        "TRA-11", "SST-5: the LAT score is a U-shaped function of valence.", "6.4, Fig. 5",
        "b2 of lm(score ~ poly(valence, 2)), words seen more than once; share of seeds with "
        "b2 > 0 and p < .001: most (ours)",
        "b2 0.283, SE 0.040, t 7.04, p < .001, 2335 words", _BENDS, measures.is_u_shaped, RATED,
        TEXTS,
    ),
    Claim(
        "TRA-12", "SEND: the same.", "6.4, Fig. 5", "as TRA-11",
        "b2 0.242, SE 0.039, t 6.21, p < .001, 660 words", _BENDS, measures.is_u_shaped, RATED,
        STORIES,
    ),
    Claim(
        "TRA-13", "The gradient score shows no such quadratic relation.", "6.4, Fig. 5",
        "share of seeds with p > .05 for the gradient's b2: most; b2 over residual s.d., gradient "
        "minus LAT", {"sst": "p .19", "send": "p .28"}, _FLAT, measures.gradient_is_flat, RATED,
        EVERY,
    ),
    Claim(
        "TRA-14", "LAT and gradient scores are nevertheless correlated.", "footnote 6",
        "Pearson's and Spearman's correlation over tokens and over word means",
        {"sst": "ρ .80", "send": "ρ .37"}, above(0), measures.are_correlated,
        needs("ratings", "words", "texts"), EVERY,
    ),
    Claim(
        "TRA-15", "Every head puts more than chance on strongly emotional words.", "6.5, Fig. 6",
        "lowest head's share minus chance as published, by kind of word",
        {"sst": "both .09-.17 against .07", "send": "both .16-.22 against .13"},
        dict.fromkeys(KINDS, above(0)), measures.heads_above_chance, HEADS, EVERY,
    ),
    Claim(
        "TRA-16", "Some heads specialise in one kind of emotional word.", "6.5, Fig. 6",
        "largest head's share minus the mean of the others, and minus the 95 % quantile of that "
        "under random relabelling of heads per text",
        {"sst": "v.neg .20 against .14, v.pos .15 against .10",
         "send": "v.neg .24 against .15"}, above(0),
        measures.heads_specialise, HEADS, EVERY,
    ),
    Claim(
        "TRA-17", "The same words matter in both tasks.", "1; repository",
        "slope of sentences' word means on narratives' word means over shared words",
        "slope .076, p .037 and .013, R² .014 and .019", above(0), measures.same_words, _both,
        STORIES,
    ),
    Claim(
        "TRA-18", "Hiding scores above 0.4 in the plot drops under 1 % of words.", "footnote 5",
        "share of rated words with a score of 0.4 or more, every seed",
        {"sst": ".171 %", "send": ".754 %"}, below(0.01), measures.hides_few, RATED, EVERY,
    ),
    Claim(
        "TRA-A1", "The U survives the length of sentences, which the softmax lets through.",
        "ours", "b2 with mean 1/N beside it, of N times the softmax, of N times the share",
        "not checked", _LENGTHS, checks.survives_length, RATED, EVERY,
    ),
    Claim(
        "TRA-A2", "The gradient has no U even without a softmax over tiny numbers.", "ours",
        "share of seeds with p > .05 for b2: most; sum-normalised and predicted-class gradient, "
        "without and with mean 1/N", "not checked", _MOST, checks.gradients_stay_flat, RATED,
        EVERY,
    ),
    Claim(
        "TRA-A3", "Every head is above chance where chance is that of the same sentences.",
        "ours", "TRA-15 with chance on each row's own texts",
        {"sst": "with corrected chance .070 heads 3 and 7 (.06) fail on v.pos",
         "send": "corrected chance .122 and .089"}, dict.fromkeys(KINDS, above(0)),
        checks.above_own_chance, HEADS, EVERY,
    ),
    Claim(
        "TRA-A4", "It is a U, not a slope: both arms point outwards.", "ours",
        "slopes of two lines split at 5 and where the parabola turns",
        "earlier run: b1 -0.408 against b2 0.305, vertex near 6.3, R² .06", _ARMS,
        checks.has_two_arms, RATED, EVERY,
    ),
    Claim(
        "TRA-A5", "Training and tracing make the U.", "ours",
        "LAT's b2 minus that of an untrained model, of pooling alone, of heads averaged per layer, "
        "and minus the 97.5 % quantile under shuffled ratings", "not checked", above(0),
        checks.beats_other_scores, WITH_UNTRAINED, EVERY,
    ),
    Claim(
        "TRA-A6", "LAT and gradient correlate beyond the 1/N that both share.", "ours",
        "partial correlation given 1/N over tokens and over words; > 0.3 (ours)", "not checked",
        above(0.3), checks.correlated_beyond_length, needs("ratings", "words", "texts"), EVERY,
    ),
    Claim(
        "TRA-A7", "Dropout in one epoch only and the five sigmoids do not change the verdicts.",
        "ours", "each verdict of TRA-1 and TRA-11, published recipe against the code's "
        "dropout and against cross-entropy",
        "not checked", _recipes(), checks.same_under_recipes,
        needs("ratings", "words", "decisions", variants=models.CHECKED), TEXTS,
    ),
)  # fmt: skip
