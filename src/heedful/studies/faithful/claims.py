"""The claims of the faithful paper as data (docs/studies/faithful.md, "Claims")."""

from __future__ import annotations

from functools import partial

from heedful.reproduction.ledger import above, at_least, below, holding, within
from heedful.reproduction.study import Claim
from heedful.studies.faithful.appendix import control_needs, query_needs
from heedful.studies.faithful.figures import ATTACKED, adversary_needs
from heedful.studies.faithful.measures import (
    dearer_adversary,
    deeper_is_flatter,
    information_gain,
    kept_quality,
    larger_drops,
    leaks_when_sure,
    less_sure_words,
    longer_corpora,
    longer_is_fragile,
    near_the_ceiling,
    nothing_left,
    query_of_instance,
    query_start,
    rarely_surer,
    residual_like_concat,
    small_changes,
    weaker_when_deep,
    words_near,
)
from heedful.studies.faithful.models import DEEP, DEPTH_VARIANTS, DEPTHS, MAIN, SMOKE
from heedful.studies.faithful.tables import models, steps_of

_CEILING = {
    f"{what} {sample}": side
    for sample in ("MF", "RS")
    for what, side in {"residual share": at_least(0.85), "tying minus mlm": above(0)}.items()
}
_BOTH = "interval over documents and trainings"
_DEPTH_NEEDS = steps_of(DEPTHS)

CLAIMS = (
    Claim("FAI-1", "In the base model attention can be flattened or permuted with little loss on "
          "short texts.", "4.1, Table 1", "change of F1 in points under uniform and permuted",
          {"sst": "−2.8/−5.0 (+), −2.6/−6.5 (•)", "ag": "−2.3/−3.9 (+), −2.3/−3.8 (•)"},
          above(-10), small_changes, steps_of(models(("base",))), (SMOKE, "sst", "ag"), "all"),
    Claim("FAI-2", "Tying makes the decision depend on attention.", "4.1, Table 1",
          "change of F1, tying minus base, in points",
          "10 of 10; mean uniform −33.6 vs −11.5, permuted −32.7 vs −14.3", below(0),
          partial(larger_drops, ("tying",)), steps_of(models(("base", "tying"))), MAIN, "all"),
    Claim("FAI-3", "So does the masked-word objective.", "4.1, Table 1",
          "change of F1, masked words minus base, in points",
          "7 of 10 (uniform), 8 of 10 (permuted); mean −27.9, −28.8", below(0),
          partial(larger_drops, ("mlm",)), steps_of(models(("base", "mlm"))), MAIN, "all"),
    Claim("FAI-4", "So do concat and residual.", "4.1, Table 1",
          "change of F1, concat and residual minus base, in points",
          "concat 5 of 10 and 5 of 10; mean −13.6, −15.7", below(0),
          partial(larger_drops, ("concat", "residual")),
          steps_of(models(("base", "concat", "residual"))), MAIN, "all"),
    Claim("FAI-5", "Classification quality stays similar.", "4.1, Table 1",
          "F1 with trained attention, remedy minus base, in points; bound ours",
          "tying −0.8, worst −1.7; masked words −1.2, worst −2.7; concat 0.0, worst −0.5",
          above(-3), partial(kept_quality, ("concat", "residual", "tying", "mlm")),
          steps_of(models()), MAIN, "all"),
    Claim("FAI-6", "Residual behaves like concat.", "4.1",
          "F1 and its changes, residual minus concat, in standard deviations over seeds; bound "
          "ours", "stated, omitted", within(2), residual_like_concat,
          steps_of(models(("concat", "residual"))), MAIN, "all"),
    Claim("FAI-7", "On Diabetes every change of attention gives F1 = 0.", "4.1",
          "F1 under uniform and permuted attention", "0", within(0), nothing_left,
          steps_of(models(DEPTH_VARIANTS)), ("diabetes",)),
    Claim("FAI-8", "All remedies raise mutual information between embedding and state.",
          "4.2, Table 2", "information minus base, in nats",
          "10 of 10 each; mean ratio to base 2.0, 1.85, 1.64", above(0),
          partial(information_gain, ("residual", "tying", "mlm")),
          steps_of(models(attentions=("+",))), MAIN, "all"),
    Claim("FAI-9", "Residual is close to the best obtainable value; tying is above masked words.",
          "4.2, Table 2", "residual's share of the word entropy (bound ours); tying minus masked "
          "words in nats", "residual highest in 8 of 10; tying above masked words 10 of 10",
          _CEILING, near_the_ceiling, steps_of(models(attentions=("+",))), MAIN, "all"),
    Claim("FAI-10", "Tying and masked words lower the mean probability that single words give to "
          "right decisions.", "5, Table 3", "single-word probability, remedy minus base",
          "−0.13 and −0.11 on average, 10 of 10 each", below(0), less_sure_words,
          steps_of(models(("base", "tying", "mlm"))), MAIN, "all"),
    Claim("FAI-11", "In the base model most words alone give nearly the final probability; tying "
          "keeps neutral words near the boundary.", "5, Figure 2",
          "share of words within .1 of the sentence, base minus tying; within .1 of even odds, "
          f"tying minus base; {_BOTH}", "one sentence", above(0), words_near,
          steps_of(models(("base", "tying"), ("+",))), (SMOKE, "sst")),
    Claim("FAI-12", "Leakage happens only where the model is confident.", "caption of Figure 6",
          "Spearman of single-word probability (base minus tying) with base's probability; mean "
          f"difference where base is below .6, whose interval holds 0; {_BOTH}",
          "one sentence, belief",
          {"Spearman": above(0), "unsure": holding(0)}, leaks_when_sure,
          steps_of(models(("base", "tying"), ("+",))), DEEP, "all"),
    Claim("FAI-13", "Remedies are rarely more confident in the right class than base.",
          "caption of Figure 7", "share of documents right under base with a higher probability of "
          f"the right class under the remedy; {_BOTH}", "called rare", below(0.5), rarely_surer,
          steps_of(models(("base", "tying", "mlm"), ("+",))), DEEP, "all"),
    Claim("FAI-14", "An adversary pays more output change for the same attention change when it "
          "imitates a masked-word model than a base model; other remedies alike.",
          "4.3, Figure 1", "mean height of the TVD-JSD curve above base's over the common range, "
          "seed by seed",
          "picture; one outlier (Diabetes)", above(0), dearer_adversary, adversary_needs, ATTACKED,
          "all"),
    Claim("FAI-15", "The deeper the LSTM, the more robust the base model to attention changes.",
          "B, Table 6", "size of base's change of F1, fewer minus more layers, in points",
          "holds 4 of 4", above(0), deeper_is_flatter, _DEPTH_NEEDS, DEEP, "all"),
    Claim("FAI-16", "Remedies lose strength with depth, not consistently.", "B, Table 6",
          "change of F1 under permuted attention, 3 layers minus 1, in points",
          "tying −18.0 to −13.9, −14.6 to −12.8, −43.2 to −39.3, −43.3 to −21.3; masked words grow "
          "on three corpora", above(0), weaker_when_deep, _DEPTH_NEEDS, DEEP, "all"),
    Claim("FAI-17", "Dot attention with the default query start converges to uniform, with "
          "N(0, 1) it does not.", "C", "entropy / log n (bounds ours); changes of F1 in points",
          "stated, always", {"entropy, default": at_least(0.99), "entropy, N(0, 1)": below(0.95),
          "uniform, default": within(0.5), "permuted, default": within(0.5)}, query_start,
          query_needs, DEEP, "all"),
    Claim("FAI-18", "Longer texts are more fragile.", "A", "slope of changed decisions on log "
          f"length ({_BOTH}); over corpora Spearman of mean length with base's drop (Fisher)",
          "base permuted 5.0, 3.9, 14.1, 13.4, 22.4 at lengths 17, 31, 164, 234, 1927", above(0),
          longer_is_fragile, steps_of(models(("base",), ("+",))), MAIN, "all", longer_corpora),
    Claim("FAI-19", "A query that depends on the instance works equally well.", "footnote 8",
          "F1 and its changes, instance minus parameter query, in standard deviations over seeds; "
          "bound ours", "stated", within(2), query_of_instance, control_needs, DEEP, "all"),
)  # fmt: skip
