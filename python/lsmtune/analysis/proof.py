"""How the proof was made, beside what its verdict says."""

from __future__ import annotations

from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.trust_tables import Ended, ProofFacts
from lsmtune.records.verdict import Verdict, VerdictOutcome
from lsmtune.stats.sequential import pairs_at_least


def proof_facts(records: StudyRecords) -> ProofFacts | None:
    """None without a verdict."""
    verdict = records.verdict
    if verdict is None:
        return None
    each = verdict.confidence_each
    return ProofFacts(
        ended=_ended(verdict, records.pairs_max) if verdict.method else None,
        pairs_max=records.pairs_max,
        smallest_effect=records.smallest_effect,
        pairs_least_each=None if each is None else pairs_at_least(each),
    )


def _ended(verdict: Verdict, pairs_max: int) -> Ended:
    if verdict.outcome is VerdictOutcome.EQUIVALENT:
        return Ended.EQUIVALENT
    if _excludes_one(verdict):
        return Ended.DECIDED
    return Ended.PAIRS if verdict.pairs >= pairs_max else Ended.OTHER


def _excludes_one(verdict: Verdict) -> bool:
    """Whether the interval says that the sides differ; a bound that is None lies far off."""
    low, high = verdict.ratio_low, verdict.ratio_high
    return (low is not None and low > 1.0) or (high is not None and high < 1.0)
