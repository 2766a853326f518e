"""What every sampler must do, whatever its strategy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import optuna
import pytest
from optuna.trial import TrialState

from lsmtune.errors import InputError
from lsmtune.model.config import option_text
from lsmtune.model.goal import Direction
from lsmtune.search.in_memory_study import TrialJudgement, ValueNoise
from lsmtune.search.sampler import SamplerKind, SpaceExhaustedError
from lsmtune.search.samplers import SAMPLERS
from lsmtune.search.searcher import Searcher
from lsmtune.space.space import Space
from lsmtune.testing.search import (
    MAXIMIZE,
    NUMBERS,
    RICH,
    SPACES,
    TINY,
    DiskStudy,
    End,
    Values,
    asked,
    choice,
    configurations,
    make_searcher,
    mixed_end,
    number,
    score,
    space_of,
)

optuna.logging.set_verbosity(optuna.logging.ERROR)

BOTH = (Direction.MAXIMIZE, Direction.MINIMIZE)
# Two random draws in three end badly there.
CORNER = space_of(
    choice("mode", "good", "bad", "fair"),
    number("x", 0.0, 1.0, integer=False),
    number("y", 1, 1024, log=True),
)
# For each way in which a trial can disappoint: how it ends.
BAD_ENDS: Mapping[str, End] = MappingProxyType(
    {
        "failed": End(TrialState.FAIL),
        "failed late": End(TrialState.FAIL, reported={1: 1000.0}),
        "pruned": End(TrialState.PRUNED, reported={1: -100.0}),
        "over a limit": End(values=[1000.0], violations={"rss": 2.0}),
    }
)


def keys(configs: Iterable[Values]) -> list[frozenset[tuple[str, str]]]:
    """Configurations as something to compare and to count."""
    return [frozenset((name, option_text(v)) for name, v in c.items()) for c in configs]


class SamplerSuite:
    """The tests of one sampler, installed by its package or lsmtune's own.

    Attributes:
        name: As a study file has it.
        settings: With which it learns within a short test; None for its defaults, or those that
            tests of lsmtune's own samplers have.
        trials: How many trials a test has at most; fewer for a sampler that thinks long.
        learning_trials: The same where it is to learn.
        seeds: With which it is to learn.
        follows_seed: Whether another seed makes another search.
        bad_ends: Those of BAD_ENDS from which it is to learn.
    """

    name: ClassVar[str]
    settings: ClassVar[Mapping[str, object] | None] = None
    trials: ClassVar[int] = 30
    learning_trials: ClassVar[int] = 40
    seeds: ClassVar[Sequence[int]] = (1, 2)
    follows_seed: ClassVar[bool] = True
    bad_ends: ClassVar[Sequence[str]] = tuple(BAD_ENDS)

    @property
    def kind(self) -> SamplerKind:
        """What it says of itself."""
        return SAMPLERS[self.name]

    def settings_for(self, space: Space) -> Mapping[str, object] | None:  # noqa: ARG002
        """The settings for a search of `space`."""
        return self.settings

    def searcher(self, space: Space, seed: int = 7, **more: Any) -> Searcher:
        """A new search of `space`."""
        return make_searcher(self.name, space, seed, given=self.settings_for(space), **more)

    def at_most(self, usual: int) -> int:
        """How many trials a test has that would have `usual`."""
        return min(self.trials, usual)

    def test_defaults_are_values_that_may_be_given(self) -> None:
        assert self.kind.name == self.name
        assert self.kind.summary
        for setting in self.kind.settings:
            assert setting.description
            assert setting.domain.allowed
            if setting.default != ():  # there is no default list of configurations
                assert setting.domain.read(setting.default) == setting.default

    @pytest.mark.parametrize("space_name", SPACES)
    def test_stays_in_the_space_and_never_repeats_itself(self, space_name: str) -> None:
        space = SPACES[space_name]
        searcher = self.searcher(space)
        known = space.distributions()
        configs = []
        for expected in range(self.at_most(30)):
            try:
                proposal = searcher.ask()
            except SpaceExhaustedError:
                assert self.kind.listed
                assert expected >= 4
                break
            assert proposal.number == expected
            assert space.contains(proposal.values)
            for variable, value in proposal.trial.params.items():
                assert proposal.trial.distributions[variable] == known[variable]
                internal = known[variable].to_internal_repr(value)
                assert known[variable]._contains(internal)
            assert proposal.trial.state == TrialState.RUNNING
            configs.append(dict(proposal.values))
            searcher.tell(proposal.number, TrialState.COMPLETE, [score(proposal.values)])
        assert len(set(keys(configs))) == len(configs)

    def test_a_seed_gives_the_sequence_again_and_another_seed_another(self) -> None:
        count = self.at_most(25)
        first = asked(self.searcher(RICH, 3), count)
        assert first == asked(self.searcher(RICH, 3), count)
        if self.follows_seed:
            other = asked(self.searcher(RICH, 4), count)
            assert first[:5] != other[:5]
            assert first[-5:] != other[-5:]

    def test_a_study_that_is_stopped_goes_on_as_if_it_had_not_been(self, tmp_path: Path) -> None:
        count = self.at_most(27)
        straight = asked(self.searcher(RICH), count, mixed_end)
        disk = DiskStudy(tmp_path / "study.db")
        stopped: list[Values] = []
        while len(stopped) < count:
            disk.open()
            searcher = self.searcher(RICH)
            searcher.restore(disk.trials())
            for _ in range(min(4, count - len(stopped))):
                stopped.append(disk.drive(searcher, mixed_end))
            disk.close()
        assert stopped == straight

    def test_a_tiny_space_is_tried_to_its_end(self) -> None:
        searcher = self.searcher(TINY)
        configs = asked(searcher, 8)
        assert len(set(keys(configs))) == 8
        for _ in range(2):
            with pytest.raises(SpaceExhaustedError):
                searcher.ask()

    def test_what_was_put_back_comes_again(self) -> None:
        searcher = self.searcher(TINY)
        lost = searcher.ask()
        searcher.put_back(lost.number)
        configs = asked(searcher, 8)
        assert set(keys(configs)) >= set(keys([dict(lost.values)]))
        with pytest.raises(SpaceExhaustedError):
            searcher.ask()

    def test_what_is_queued_comes_first_and_not_again(self) -> None:
        queue = configurations(TINY, 3)
        searcher = self.searcher(TINY)
        for values in queue:
            proposal = searcher.ask(values)
            assert dict(proposal.values) == values
            searcher.tell(proposal.number, TrialState.COMPLETE, [score(values)])
        assert len(set(keys(queue + asked(searcher, 5)))) == 8

    def test_what_is_refused_costs_no_trial(self) -> None:
        def accepts(values: Values) -> str:
            return "" if float(values["d"]) >= 50 else "d too small"

        searcher = self.searcher(NUMBERS, accepts=accepts)
        count = self.at_most(15)
        proposals = [searcher.ask() for _ in range(count)]  # all of them under way at once
        assert all(float(proposal.values["d"]) >= 50 for proposal in proposals)
        assert [proposal.number for proposal in proposals] == list(range(count))
        assert len(set(keys([dict(p.values) for p in proposals]))) == count

    def test_when_everything_is_refused_the_constraints_are_to_blame(self) -> None:
        searcher = self.searcher(TINY, accepts=lambda _: "too big")
        with pytest.raises(InputError, match=r"constraints: no configuration .*: too big"):
            searcher.ask()

    def test_several_objectives_are_searched_or_refused(self) -> None:
        if not self.kind.several_objectives:
            with pytest.raises(InputError, match=f"found '{self.name}'.*takes one|one objective"):
                self.searcher(RICH, directions=BOTH)
            return
        searcher = self.searcher(RICH, directions=BOTH)
        configs = []
        for index in range(self.at_most(25)):
            proposal = searcher.ask()
            configs.append(dict(proposal.values))
            if index % 6 == 5:
                searcher.tell(proposal.number, TrialState.FAIL)
            else:
                values = [score(proposal.values), float(proposal.values["level"])]
                searcher.tell(proposal.number, TrialState.COMPLETE, values)
        assert len(set(keys(configs))) == len(configs)
        assert all(RICH.contains(config) for config in configs)

    @pytest.mark.parametrize("ending", BAD_ENDS)
    def test_where_trials_end_badly_fewer_are_tried(self, ending: str) -> None:
        if not self.kind.learns or ending not in self.bad_ends:
            pytest.skip("it does not learn" if not self.kind.learns else "takes long")
        assert self.bad_share(BAD_ENDS[ending], self.seeds) <= 0.5

    def test_one_that_learns_does_better_than_chance(self) -> None:
        if not self.kind.learns:
            pytest.skip("it does not learn")
        chance = Chance().late_mean(range(8))
        assert self.late_mean(self.seeds) > chance + 1.5

    def bad_share(self, end: End, seeds: Sequence[int]) -> float:
        """How many of the later trials are still where every trial ends badly."""
        late = []
        for seed in seeds:
            searcher = self.searcher(CORNER, seed)
            for index in range(self.learning_trials):
                proposal = searcher.ask()
                values = proposal.values
                bad = values["mode"] == "bad" or float(values["x"]) > 0.5
                good_end = End(values=[-float(values["y"])], violations={"rss": -1.0})
                (end if bad else good_end).tell(searcher, proposal.number)
                if index >= self.learning_trials / 2:
                    late.append(bad)
        return sum(late) / len(late)

    def late_mean(self, seeds: Sequence[int]) -> float:
        """The mean score of the last quarter."""
        scores: list[float] = []
        for seed in seeds:
            count = self.learning_trials
            late = asked(self.searcher(NUMBERS, seed), count)[-count // 4 :]
            scores += [score(values) for values in late]
        return sum(scores) / len(scores)

    def test_trials_under_way_are_not_proposed_again(self) -> None:
        searcher = self.searcher(RICH, directions=MAXIMIZE)
        asked(searcher, 8)
        under_way = [searcher.ask() for _ in range(4)]
        assert len(set(keys([dict(p.values) for p in under_way]))) == 4
        for proposal in reversed(under_way):
            searcher.tell(proposal.number, TrialState.COMPLETE, [score(proposal.values)])
        assert searcher.ask().number == 12

    def test_trials_that_are_judged_anew_leave_no_trace_of_what_they_were(
        self, tmp_path: Path
    ) -> None:
        count = self.at_most(24)
        straight, asked_so_far = self.searcher(RICH), list[Values]()
        for _ in range(count):
            straight.rejudge(_judged_now(asked_so_far))
            proposal = straight.ask()
            asked_so_far.append(dict(proposal.values))
            straight.tell(proposal.number, TrialState.COMPLETE, [score(proposal.values)])
            assert "lsmtune:noise" not in straight.attributes(0)
        disk, stopped = DiskStudy(tmp_path / "study.db"), list[Values]()
        while len(stopped) < count:
            searcher = self.searcher(RICH)
            searcher.restore(disk.trials())
            for _ in range(min(5, count - len(stopped))):
                searcher.rejudge(_judged_now(stopped))
                stopped.append(disk.drive(searcher, lambda _, v: End(values=[score(v)])))
        disk.close()
        assert stopped == asked_so_far


class Chance(SamplerSuite):
    """What those that learn are compared with."""

    name = "random"


def _judged_now(values: Sequence[Values]) -> dict[int, TrialJudgement]:
    """Another light on every trial than when it ended, and another one after each further trial."""
    found = {}
    for index, each in enumerate(values):
        value = score(each) + ((index * 7 + len(values)) % 11) / 10
        noise = ValueNoise(0.01 * len(values), 1 + (index + len(values)) % 3)
        found[index] = TrialJudgement(TrialState.COMPLETE, (value,), {}, {}, noise)
        if (index + len(values)) % 6 == 0:
            found[index] = TrialJudgement(TrialState.FAIL)
    return found
