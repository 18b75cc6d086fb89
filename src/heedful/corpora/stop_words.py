"""The words that carry grammar and no matter: a fixed list, made for this package.

Articles, pronouns, auxiliaries, prepositions, conjunctions, negations' carriers and the pieces that
the treebank cuts off. Words that also name something felt (`like`, `well`, `will` as a noun) are in
only where grammar is by far their commonest use.
"""

from __future__ import annotations

NAME = "heedful's list of English function words"

STOP_WORDS: frozenset[str] = frozenset(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    who whom whose which what
    am is are was were be been being has have had having do does did doing done
    will would shall should can could may might must ought
    's 're 've 'd 'll 'm n't
    of in on at by for with about against between among into through during before after above below
    to from up down out off over under upon onto within without toward towards across behind beyond
    near since until till per via
    and or but nor so yet if because as while whereas although though unless whether than
    not no
    when where why how there here then thus hence
    all any both each every either neither some such other another few many much more most several
    own same too very just also only even again once ever
    """.split()  # noqa: SIM905 (a table of words reads better as lines)
)
