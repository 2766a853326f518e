"""A Search on the disk: a folder like that of a study, its trials and their metrics.

The order of commits is that of a study: a trial is stored when it begins; when it ends, first its
metrics, as a Measurement, and then its state. A kill can leave a running trial, with or without a
Measurement; the next session finishes it or tries it once more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

from optuna.trial import FrozenTrial

from lsmtune.experiment.files import STUDY_DB, readable
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.search.searcher import OUTCOME, state_of

ENGINE = "python"  # what measured: the caller
WORKLOAD = "ask-and-tell"
_REPORTS = "reports"
_ATTRIBUTES = "attributes"


class SearchStore(StudyFolder):
    """The folder of one Search, locked for this process until it is closed."""

    def trials(self) -> list[FrozenTrial]:
        """The stored trials as a Searcher restores them, in order of their numbers."""
        trials = []
        for trial in super().trials():
            notes, restored = trial.user_attrs, copy(trial)
            with readable(self.path / STUDY_DB, f"trial {trial.number}"):
                reports = json.loads(notes.get(_REPORTS, "{}"))
                attributes = json.loads(notes.get(_ATTRIBUTES, "{}"))
                restored.system_attrs = {**trial.system_attrs, **attributes}
                restored.intermediate_values = {int(step): value for step, value in reports.items()}
            trials.append(restored)
        return trials

    def told(self) -> dict[int, StoredMeasurement]:
        """What was told of each trial, by number."""
        return {one.trial: one for one in self.measurements.all() if one.trial is not None}

    def tell(
        self,
        number: int,
        options: Mapping[str, OptionValue],
        outcome: Outcome,
        metrics: Mapping[str, float],
        elapsed_s: float,
    ) -> None:
        """Stores what was told of a trial; `elapsed_s` is the time since it was asked for."""
        config = Config(options, f"#{number}")
        measurement = Measurement(
            outcome=outcome,
            engine=EngineIdentity(ENGINE),
            options=config.engine_options(),
            workload=WORKLOAD,
            seed=0,
            started_unix_s=time.time() - elapsed_s,
            elapsed_s=elapsed_s,
            reported=metrics,
        )
        self.measurements.add(Role.TRIAL, measurement, config=config, trial=number)

    def finish(
        self,
        number: int,
        outcome: Outcome,
        values: Sequence[float] | None,
        reports: Mapping[int, float],
        attributes: Mapping[str, Any],
    ) -> None:
        """Ends a running trial of which all is stored that was told."""
        # Each note is a commit: what says nothing is left out.
        notes = {_REPORTS: json.dumps(reports)} if reports else {}
        notes |= {_ATTRIBUTES: json.dumps(attributes)} if attributes else {}
        notes |= {OUTCOME: outcome.value} if outcome is not Outcome.OK else {}
        self.annotate_trial(number, notes)
        self.finish_trial(number, state_of(outcome), values)
