"""A Search on the disk: a folder like that of a study, its trials and their metrics.

The order of commits is that of a study: a trial is stored when it begins; when it ends, first its
metrics, as a Measurement, and then its state. A kill can leave a running trial, with or without a
Measurement; the next session finishes it or tries it once more.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role
from lsmtune.model.config import Config, EngineIdentity, OptionValue
from lsmtune.model.goal import Direction
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.search.searcher import OUTCOME
from lsmtune.study.ask_and_tell_inputs import Arguments

ENGINE = "python"  # what measured: the caller
WORKLOAD = "ask-and-tell"
_REPORTS = "reports"
_ATTRIBUTES = "attributes"


@dataclass(frozen=True)
class _Description:
    """What the folder has to know of a search."""

    arguments: Arguments

    @property
    def text(self) -> str:
        """Kept in the folder for people to read."""
        parts = self.arguments.comparable_parts()
        return json.dumps({"ask_and_tell": parts}, indent=2, default=str) + "\n"

    @property
    def directions(self) -> Sequence[Direction]:
        return tuple(self.arguments.directions.values())

    def comparable_parts(self) -> Mapping[str, object]:
        return self.arguments.comparable_parts()


class SearchStore:
    """The folder of one Search, locked for this process until it is closed."""

    def __init__(self, path: Path, arguments: Arguments) -> None:
        """Raises InputError when the folder is not ours, is in use, or is of another search."""
        self._folder = StudyFolder.create_or_resume(path, _Description(arguments))

    def close(self) -> None:
        """Lets the next process in."""
        self._folder.close()

    def trials(self) -> list[FrozenTrial]:
        """The stored trials as a Searcher restores them, in order of their numbers."""
        return [_restored(trial) for trial in self._folder.trials()]

    def told(self) -> dict[int, Measurement]:
        """What was told of each trial, by number."""
        stored = self._folder.measurements.all()
        return {one.trial: one.measurement for one in stored if one.trial is not None}

    def refuse_strangers(self, trials: Sequence[FrozenTrial], told: Collection[int]) -> None:
        """A kill leaves no trial ended of which nothing was told, and none told but not begun.

        Raises LsmtuneError when one of the two databases is not the one of the other.
        """
        self._folder.refuse_strangers(trials, told, "use another folder")

    def begin(self, trial: FrozenTrial) -> None:
        """Stores a trial that runs."""
        self._folder.begin_trial(trial)

    def tell(
        self,
        number: int,
        options: Mapping[str, OptionValue],
        outcome: Outcome,
        metrics: Mapping[str, float],
        elapsed_s: float,
    ) -> Measurement:
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
        self._folder.measurements.add(Role.TRIAL, measurement, config=config, trial=number)
        return measurement

    def finish(
        self,
        number: int,
        state: TrialState,
        values: Sequence[float] | None,
        reports: Mapping[int, float],
        attributes: Mapping[str, Any],
        outcome: Outcome,
    ) -> None:
        """Ends a running trial of which all is stored that was told."""
        # Each note is a commit: what says nothing is left out.
        notes = {_REPORTS: json.dumps(reports)} if reports else {}
        notes |= {_ATTRIBUTES: json.dumps(attributes)} if attributes else {}
        notes |= {OUTCOME: outcome.value} if outcome is not Outcome.OK else {}
        self._folder.annotate_trial(number, notes)
        self._folder.finish_trial(number, state, values)

    def put_back(self, number: int) -> None:
        """Ends a running trial that says nothing."""
        self._folder.put_back_trial(number)


def _restored(trial: FrozenTrial) -> FrozenTrial:
    notes = trial.user_attrs
    return FrozenTrial(
        number=trial.number,
        trial_id=trial.number,
        state=trial.state,
        value=None,
        values=trial.values,
        datetime_start=trial.datetime_start,
        datetime_complete=trial.datetime_complete,
        params=trial.params,
        distributions=trial.distributions,
        user_attrs=notes,
        system_attrs={**trial.system_attrs, **json.loads(notes.get(_ATTRIBUTES, "{}"))},
        intermediate_values={
            int(step): value for step, value in json.loads(notes.get(_REPORTS, "{}")).items()
        },
    )
