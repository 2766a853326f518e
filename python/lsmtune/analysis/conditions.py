"""Under what the runs were made: page cache, what held their memory, and time taken by the host."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

from lsmtune.analysis.runs import cached_shares, measured
from lsmtune.analysis.source import StudyRecords
from lsmtune.analysis.trust_tables import Conditions
from lsmtune.records.measurement import Measurement, Outcome
from lsmtune.records.workload import PageCache

# Above this share of the processors' time, what the host took is felt in the figures.
STEAL_SHARE_MAX = 0.02
# A run that was to begin cold did not with more than this share of its database in the cache.
CACHED_SHARE_MAX = 0.05


def conditions(records: StudyRecords) -> Conditions:
    """The conditions of all runs of a study that ended well."""
    declared = [weighted.workload.page_cache for weighted in records.workloads]
    return conditions_of(
        [(stored.measurement, declared[stored.workload]) for stored in records.measurements],
        {each.label: each.workload.page_cache for each in records.workloads},
        _processors(records),
    )


def conditions_of(
    runs: Sequence[tuple[Measurement, PageCache]],
    declared: Mapping[str, PageCache],
    processors: int | None,
) -> Conditions:
    """The conditions of those `runs` that ended well, each with what its workload declares.

    `declared` is by the workloads' labels; `processors` are those of the machine, None where nobody
    knows.
    """
    ok = [(run, cache) for run, cache in runs if run.outcome is Outcome.OK]
    cached = [share for run, _ in ok for share in cached_shares(run)]
    shares = [steal_share(run, processors) for run, _ in ok]
    stolen = [share for share in shares if share is not None]
    return Conditions(
        page_cache={label: cache.value for label, cache in declared.items()},
        cold_runs=sum(cache is PageCache.COLD for _, cache in ok),
        cached_share_max=max(cached, default=None),
        memory_limited_by=Counter(run.memory_limited_by for run, _ in ok if run.memory_limited_by),
        steal_runs=len(stolen),
        steal_runs_disturbed=sum(share > STEAL_SHARE_MAX for share in stolen),
        steal_share_median=median(stolen) if stolen else None,
        steal_share_max=max(stolen, default=None),
    )


def steal_share(run: Measurement, processors: int | None) -> float | None:
    """The share of the processors' time that the host took during the measure phases of `run`.

    None where the run does not say, or nobody knows how many processors there are.
    """
    phases = [phase for phase in measured(run) if phase.steal_s is not None]
    time_s = sum(phase.elapsed_s + (phase.drain_s or 0.0) for phase in phases)
    if not processors or not time_s > 0:
        return None
    return sum(phase.steal_s or 0.0 for phase in phases) / (time_s * processors)


def _processors(records: StudyRecords) -> int | None:
    """As the tuner noted them."""
    noted = records.machine.get("processors", "")
    return int(noted) if noted.isdecimal() else None
