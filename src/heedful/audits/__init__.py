"""Whether the claim holds: every audit, in the order a reader wants."""

from heedful.audits import (
    adversary,
    agreement,
    alignment,
    concentration,
    confidence,
    deletion,
    erasure,
    evidence,
    input_erasure,
    randomisation,
    read_alone,
    single_erasure,
    substitution,
    violation,
)
from heedful.audits.finding import Audit, Finding, Measure
from heedful.audits.verdict import Verdict, judge

AUDITS: dict[str, Audit] = {
    "erasure": Audit(erasure.rows, erasure.summarise, "Erasing down a ranking"),
    "single-erasure": Audit(single_erasure.rows, single_erasure.summarise, "Erasing one unit"),
    "substitution": Audit(
        substitution.rows, substitution.summarise, "Uniform and shuffled attention"
    ),
    "adversary": Audit(adversary.rows, adversary.summarise, "Attention far away"),
    "confidence": Audit(confidence.rows, confidence.summarise, "One unit alone"),
    "concentration": Audit(concentration.rows, concentration.summarise, "Concentration"),
    "agreement": Audit(agreement.rows, agreement.summarise, "Agreement between methods"),
    "evidence": Audit(
        evidence.rows, evidence.summarise, "Agreement with known evidence", ("evidence",)
    ),
    "alignment": Audit(
        alignment.rows, alignment.summarise, "Agreement with an alignment", ("alignment",)
    ),
    "input-erasure": Audit(input_erasure.rows, input_erasure.summarise, "Deleting words"),
    "deletion": Audit(deletion.rows, deletion.summarise, "Deleting one unit"),
    "violation": Audit(violation.rows, violation.summarise, "Claims belied"),
    "randomisation": Audit(
        randomisation.rows, randomisation.summarise, "Weights drawn anew", most=200
    ),
    "read-alone": Audit(read_alone.rows, read_alone.summarise, "Units read alone"),
}

__all__ = ["AUDITS", "Audit", "Finding", "Measure", "Verdict", "judge"]
