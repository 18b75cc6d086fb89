"""Every audit by its name. What is to be known of one stands in its own module, as `AUDIT`."""

from heedful.audits import (
    adversary,
    agreement,
    alignment,
    concentration,
    confidence,
    erasure,
    evidence,
    exchange,
    input_erasure,
    randomisation,
    single_erasure,
    single_heads,
    substitution,
    violation,
)
from heedful.audits.finding import Audit

AUDITS: dict[str, Audit] = {
    module.AUDIT.name: module.AUDIT
    for module in (
        exchange,
        erasure,
        single_erasure,
        substitution,
        adversary,
        confidence,
        concentration,
        agreement,
        evidence,
        alignment,
        input_erasure,
        violation,
        randomisation,
        single_heads,
    )
}
"""In the order in which runs keep their names; on the page they stand by their `place`."""


RETIRED = ("deletion", "read-alone")
"""Audits of an earlier heedful, whose findings a new audit takes away."""


def titles() -> dict[str, str]:
    """The title of each audit, in the order of the page."""
    return {one.name: one.title for one in sorted(AUDITS.values(), key=lambda one: one.place)}
