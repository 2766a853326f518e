"""The calibration at the start of a study: how many pairs, and what they say in one line."""

from __future__ import annotations

from lsmtune.proof.calibration import Calibration, calibrate
from lsmtune.proof.measurer import Measurer
from lsmtune.proof.provable import smallest_effect
from lsmtune.records.config import Config
from lsmtune.spec import Spec
from lsmtune.storage.measurements import Role
from lsmtune.study.observer import TuneObserver
from lsmtune.units import format_duration

# Of the time budget: enough to know the noise, and most of it left for what the study is for.
SHARE_MAX = 0.1


def calibrate_study(
    spec: Spec,
    baseline: Config,
    measurer: Measurer,
    observer: TuneObserver,
    *,
    round_s: float,
    searched: bool,
) -> Calibration | None:
    """Run the calibration, or what is missing of it; None where the study has none.

    `round_s` is what one run of the baseline under all workloads took. A study that has `searched`
    already gets no more of it. The calibration takes at most `SHARE_MAX` of the time budget.
    """
    wanted = spec.noise.calibration_pairs
    rows = measurer.folder.measurements.of(Role.CALIBRATION)
    left_s = None
    if spec.budget.time_s is not None:
        left_s = SHARE_MAX * spec.budget.time_s - sum(row.wall_s for row in rows)
    pairs = 0 if searched else wanted
    if left_s is not None and left_s < 2 * round_s:
        pairs = 0
    if not pairs and not rows:
        if wanted and not searched:
            observer.warning(_none(2 * round_s))
        return None
    found = calibrate(
        baseline,
        spec.goal,
        measurer,
        observer,
        study_seed=spec.seed,
        pairs=pairs,
        method=spec.proof.method,
        deadline_s=left_s,
    )
    if not measurer.stop.is_set():
        observer.calibrated(found, calibration_line(found, spec))
    return found


def calibration_line(found: Calibration, spec: Spec) -> str:
    """What a calibration says of this study's metric and proof, in one line."""
    wanted = spec.noise.calibration_pairs
    of = "" if found.pairs >= wanted else f" (of {wanted}, as time allowed)"
    noise = found.metrics.get(spec.goal.metric)
    if noise is None:
        return f"calibration: {found.pairs} pairs{of}, too few to say how noisy the machine is"
    text = (
        f"calibration: {found.pairs} pairs by {found.method.value}{of}: {spec.goal.metric} varies "
        f"by {_per_cent(noise.run_log_sd)} from run to run"
    )
    seconds = found.seconds_per_pair or 0.0
    effect = smallest_effect(
        found, spec.goal.metric, spec.proof.pairs * seconds, spec.proof.confidence
    )
    if effect is None:
        return text
    return (
        f"{text}; a proof of {spec.proof.pairs} pairs can show a difference of {_per_cent(effect)}"
    )


def _per_cent(share: float) -> str:
    """Two digits that matter: `3.2 %`, `57 %`, `571 %`."""
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:,.0f} %"


def _none(pair_s: float) -> str:
    return (
        f"no calibration: a pair of runs takes {format_duration(pair_s)}, more than "
        f"{100 * SHARE_MAX:.0f} % of the time budget"
    )
