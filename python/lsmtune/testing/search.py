"""Spaces and a study that is driven, for what tests samplers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optuna.storages import RDBStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lsmtune.model.config import OptionValue
from lsmtune.model.goal import Direction
from lsmtune.search.sampler import SpaceExhaustedError
from lsmtune.search.samplers import check_settings
from lsmtune.search.searcher import OUTCOME, PUT_BACK, Proposal, Searcher
from lsmtune.space.parameter import (
    Condition,
    Parameter,
    make_categorical,
    make_condition,
    make_number,
)
from lsmtune.space.prior import Prior
from lsmtune.space.range import Range
from lsmtune.space.space import Space, make_space

MIB = 2**20
MAXIMIZE = (Direction.MAXIMIZE,)
Values = Mapping[str, OptionValue]


def when(name: str, *values: OptionValue) -> tuple[Condition, ...]:
    """The conditions of a parameter that is active while `name` has one of `values`."""
    return (make_condition(name, list(values), "space.x.when"),)


def space_of(*parameters: Parameter) -> Space:
    """The space of these parameters."""
    return make_space(parameters)


def number(name: str, low: float, high: float, **more: Any) -> Parameter:
    """A parameter of `make_number`; what belongs to the Range is told apart by name."""
    of_range = {k: more.pop(k) for k in ("log", "step", "integer", "bins") if k in more}
    return make_number(name, Range(low, high, **of_range), **more)


def choice(name: str, *values: OptionValue, **more: Any) -> Parameter:
    """A parameter that has one of `values`."""
    return make_categorical(name, values, **more)


# Everything that a space can hold: log integers with a step, special values with and without a
# weight, a prior, bins, floats with a step, and conditions on conditions.
RICH = space_of(
    number("buffer_bytes", MIB, 256 * MIB, log=True, step=MIB),
    number("level", -5, 22, specials=[(32767, 0.3), (-10, None)]),
    number("threads", 1, 64, prior=Prior("lognormal", 2.0, 1.0)),
    number("cache_bytes", MIB, 1024 * MIB, log=True, bins=30),
    number("ratio", 0.1, 1.0, integer=False, step=0.1),
    choice("memtable", "skiplist", "vector", "hash"),
    number("buckets", 10, 100_000, log=True, conditions=when("memtable", "hash")),
    choice("huge_pages", False, True, conditions=when("memtable", "hash")),
    number("huge_share", 0.0, 1.0, integer=False, conditions=when("huge_pages", True)),
    number("prefix", 0.0, 0.25, integer=False, conditions=when("memtable", "hash", "vector")),
)
NUMBERS = space_of(
    number("a", 0.0, 1.0, integer=False),
    number("b", 1.0, 1000.0, integer=False, log=True),
    number("c", 1, 1024, log=True),
    number("d", 0, 100),
)
ONE = space_of(number("only", 0, 1000))
WORDS = space_of(
    choice("style", "level", "universal", "fifo"),
    choice("compression", "none", "lz4", "zstd", "snappy"),
    choice("checksum", True, False),
    choice("bits", 0, 8, 10, 16),
)
TINY = space_of(choice("style", "a", "b", "c", "d"), choice("direct", True, False))

SPACES = {"rich": RICH, "numbers": NUMBERS, "one": ONE, "words": WORDS}


def score(values: Values) -> float:
    """Greater is better; best with the smallest numbers and the first choices."""
    total = 0.0
    for value in values.values():
        total -= len(value) if isinstance(value, str) else abs(float(value)) ** 0.25
    return total


# Settings with which lsmtune's own samplers learn within a short test.
_SETTINGS: Mapping[str, Mapping[str, object]] = {
    "grid": {"points": 4},
    "nsga2": {"population": 6},
    "nsga3": {"population": 6},
    "cmaes": {"population": 6},
    "forest": {"startup_trials": 6, "candidates": 200},
    "gp": {"startup_trials": 6, "candidates": 200},
    "auto": {"startup_trials": 6, "candidates": 200},
    "tpe": {"startup_trials": 6},
}


def configurations(space: Space, count: int) -> list[dict[str, OptionValue]]:
    """So many configurations at random, or all that there are."""
    searcher, found = Searcher(space, "random", {}, 99, MAXIMIZE), list[dict[str, OptionValue]]()
    while len(found) < count:
        try:
            found.append(dict(searcher.ask().values))
        except SpaceExhaustedError:
            break
    return found


def make_searcher(
    name: str,
    space: Space,
    seed: int = 7,
    directions: Sequence[Direction] = MAXIMIZE,
    given: Mapping[str, object] | None = None,
    **more: Any,
) -> Searcher:
    """A searcher with `given` settings of the sampler; None: with which it learns fast."""
    settings = _SETTINGS.get(name, {}) if given is None else given
    checked = check_settings(name, settings, "test", "sampler")
    return Searcher(space, name, checked, seed, directions, **more)


def asked(
    searcher: Searcher,
    count: int,
    end_of: Callable[[int, Values], End] = lambda _, values: End(values=[score(values)]),
) -> list[dict[str, OptionValue]]:
    """The next `count` configurations, each ended as `end_of` says: told its score."""
    found = []
    for _ in range(count):
        proposal = searcher.ask()
        found.append(dict(proposal.values))
        end_of(proposal.number, proposal.values).tell(searcher, proposal.number)
    return found


@dataclass
class DiskStudy:
    """A study on SQLite, driven as the study's loop does: stored at ask and at tell."""

    path: Path
    storage: RDBStorage = field(init=False)
    study_id: int = field(init=False)

    def __post_init__(self) -> None:
        self.open()
        self.study_id = self.storage.create_new_study([StudyDirection.MAXIMIZE], "study")

    def open(self) -> None:
        """Connect to the file."""
        self.storage = RDBStorage(f"sqlite:///{self.path}")

    def close(self) -> None:
        """Let go of the file."""
        self.storage.remove_session()
        self.storage.engine.dispose()

    def trials(self) -> list[FrozenTrial]:
        """All that is stored."""
        return self.storage.get_all_trials(self.study_id)

    def begin(self, proposal: Proposal) -> int:
        """Store a trial that is asked for; its id."""
        trial_id = self.storage.create_new_trial(self.study_id, proposal.trial)
        assert self.storage.get_trial_number_from_id(trial_id) == proposal.number
        return trial_id

    def drive(self, searcher: Searcher, end_of: Callable[[int, Values], End]) -> Values:
        """The next trial from ask to tell, which ends as `end_of` says; its configuration."""
        proposal = searcher.ask()
        trial_id, end = self.begin(proposal), end_of(proposal.number, proposal.values)
        end.tell(searcher, proposal.number)
        self.finish(trial_id, searcher, proposal.number, end)
        return dict(proposal.values)

    def finish(self, trial_id: int, searcher: Searcher, number: int, end: End) -> None:
        """Store how a trial ended."""
        for key, value in searcher.attributes(number).items():
            self.storage.set_trial_system_attr(trial_id, key, value)
        for step, value in end.reported.items():
            self.storage.set_trial_intermediate_value(trial_id, step, value)
        if end.put_back:
            self.storage.set_trial_user_attr(trial_id, OUTCOME, PUT_BACK)
        self.storage.set_trial_state_values(trial_id, end.state, end.values)


@dataclass
class End:
    """How a trial ends."""

    state: TrialState = TrialState.COMPLETE
    values: list[float] | None = None
    violations: Mapping[str, float] = field(default_factory=dict)
    reported: Mapping[int, float] = field(default_factory=dict)
    put_back: bool = False

    def tell(self, searcher: Searcher, number: int) -> None:
        """Tell `searcher` of it."""
        for step, value in self.reported.items():
            searcher.report(number, step, value)
        if self.put_back:
            searcher.put_back(number)
        else:
            searcher.tell(number, self.state, self.values, self.violations)


def mixed_end(number: int, values: Values) -> End:
    """Of all kinds: completed, one in ten each pruned, failed, put back and against a limit."""
    reported = {1: score(values), 2: score(values) + 0.5}
    match number % 10:
        case 3:
            return End(TrialState.PRUNED, reported=reported)
        case 5:
            return End(TrialState.FAIL, reported=reported)
        case 7:
            return End(TrialState.FAIL, put_back=True)
        case 8:
            return End(values=[score(values)], violations={"rss_bytes <= 1": 0.5, "p99": -1.0})
    return End(values=[score(values)], violations={"rss_bytes <= 1": -0.5, "p99": -1.0})
