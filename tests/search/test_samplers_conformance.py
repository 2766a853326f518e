"""What every sampler must do, whatever its strategy. A new one in `SAMPLERS` is tested here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from search_parts import (
    ALL,
    LEARNERS,
    MAXIMIZE,
    NUMBERS,
    RICH,
    SEEDED,
    SPACES,
    TINY,
    DiskStudy,
    End,
    Values,
    asked,
    choice,
    make_searcher,
    mixed_end,
    number,
    score,
    space_of,
)

from lsmtune.errors import InputError
from lsmtune.model.config import option_text
from lsmtune.model.goal import Direction
from lsmtune.search.in_memory_study import TrialJudgement, ValueNoise
from lsmtune.search.sampler import SpaceExhaustedError
from lsmtune.search.samplers import SAMPLERS
from lsmtune.search.searcher import Searcher

optuna.logging.set_verbosity(optuna.logging.ERROR)

SLOW = {"smac": 12, "gp": 16, "auto": 16}  # how many trials they are given where others get more
LEARNING_TRIALS = {
    "smac": 24,
    "gp": 24,
    "auto": 24,
}  # the same where they are to learn; 40 for others
BOTH = (Direction.MAXIMIZE, Direction.MINIMIZE)


def trials_for(name: str, usual: int) -> int:
    return SLOW.get(name, usual)


def keys(configs: list[dict]) -> list[frozenset]:
    return [frozenset((name, option_text(v)) for name, v in c.items()) for c in configs]


@pytest.mark.parametrize("space_name", SPACES)
@pytest.mark.parametrize("name", ALL)
def test_stays_in_the_space_and_never_repeats_itself(name: str, space_name: str) -> None:
    space = SPACES[space_name]
    searcher = make_searcher(name, space)
    known = space.distributions()
    configs = []
    for expected in range(trials_for(name, 30)):
        proposal = searcher.ask()
        assert proposal.number == expected
        assert space.contains(proposal.values)
        for variable, value in proposal.trial.params.items():
            assert proposal.trial.distributions[variable] == known[variable]
            internal = known[variable].to_internal_repr(value)
            assert known[variable]._contains(internal)
        assert proposal.trial.state == TrialState.RUNNING
        configs.append(dict(proposal.values))
        searcher.tell(proposal.number, TrialState.COMPLETE, [score(proposal.values)])
        if name == "grid" and space_name == "one" and expected == 3:
            break  # that is all of its grid
    assert len(set(keys(configs))) == len(configs)


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_gives_the_sequence_again_and_another_seed_another(name: str) -> None:
    count = trials_for(name, 25)
    first = asked(make_searcher(name, RICH, 3), count)
    assert first == asked(make_searcher(name, RICH, 3), count)
    other = asked(make_searcher(name, RICH, 4), count)
    assert first[:5] != other[:5]
    assert first[-5:] != other[-5:]


@pytest.mark.parametrize("name", ALL)
def test_a_study_that_is_stopped_goes_on_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    count = trials_for(name, 27)
    straight = driven(make_searcher(name, RICH), count)
    disk = DiskStudy(tmp_path / "study.db")
    stopped: list[Values] = []
    while len(stopped) < count:
        disk.open()
        searcher = make_searcher(name, RICH)
        searcher.restore(disk.trials())
        for _ in range(min(4, count - len(stopped))):
            proposal = searcher.ask()
            trial_id = disk.begin(proposal)
            end = mixed_end(proposal.number, proposal.values)
            end.tell(searcher, proposal.number)
            disk.finish(trial_id, searcher, proposal.number, end)
            stopped.append(dict(proposal.values))
        disk.close()
    assert stopped == straight


def driven(searcher: Searcher, count: int) -> list[Values]:
    found: list[Values] = []
    for _ in range(count):
        proposal = searcher.ask()
        mixed_end(proposal.number, proposal.values).tell(searcher, proposal.number)
        found.append(dict(proposal.values))
    return found


@pytest.mark.parametrize("name", ALL)
def test_a_tiny_space_is_tried_to_its_end(name: str) -> None:
    given = None
    if name == "manual":
        given = {"configs": [{"style": s, "direct": d} for s in "abcd" for d in (True, False)]}
    searcher = make_searcher(name, TINY, given=given)
    configs = asked(searcher, 8)
    assert len(set(keys(configs))) == 8
    for _ in range(2):
        with pytest.raises(SpaceExhaustedError):
            searcher.ask()


@pytest.mark.parametrize("name", ALL)
def test_what_was_put_back_comes_again(name: str) -> None:
    given = None
    if name == "manual":
        given = {"configs": [{"style": s, "direct": d} for s in "abcd" for d in (True, False)]}
    searcher = make_searcher(name, TINY, given=given)
    lost = searcher.ask()
    searcher.put_back(lost.number)
    configs = asked(searcher, 8)
    assert set(keys(configs)) >= set(keys([dict(lost.values)]))
    with pytest.raises(SpaceExhaustedError):
        searcher.ask()


@pytest.mark.parametrize("name", ALL)
def test_what_is_queued_comes_first_and_not_again(name: str) -> None:
    queue = asked(make_searcher("random", TINY, 1), 3)
    given = {"configs": asked(make_searcher("random", TINY, 1), 8)} if name == "manual" else None
    searcher = make_searcher(name, TINY, given=given)
    for values in queue:
        proposal = searcher.ask(values)
        assert dict(proposal.values) == values
        searcher.tell(proposal.number, TrialState.COMPLETE, [score(values)])
    assert len(set(keys(queue + asked(searcher, 5)))) == 8


@pytest.mark.parametrize("name", ALL)
def test_what_is_refused_costs_no_trial(name: str) -> None:
    def accepts(values: Values) -> str:
        return "" if float(values["d"]) >= 50 else "d too small"

    searcher = make_searcher(name, NUMBERS, accepts=accepts)
    count = trials_for(name, 15)
    proposals = [searcher.ask() for _ in range(count)]  # all of them under way at the same time
    assert all(proposal.values["d"] >= 50 for proposal in proposals)
    assert [proposal.number for proposal in proposals] == list(range(count))
    assert len(set(keys([dict(p.values) for p in proposals]))) == count


@pytest.mark.parametrize("name", ALL)
def test_when_everything_is_refused_the_constraints_are_to_blame(name: str) -> None:
    searcher = make_searcher(name, TINY if name != "manual" else RICH, accepts=lambda _: "too big")
    with pytest.raises(InputError, match=r"constraints: no configuration .*: too big"):
        searcher.ask()


@pytest.mark.parametrize("name", ALL)
def test_several_objectives_are_searched_or_refused(name: str) -> None:
    if not SAMPLERS[name].several_objectives:
        with pytest.raises(InputError, match=f"found '{name}'.*takes one objective only|one obj"):
            make_searcher(name, RICH, directions=BOTH)
        return
    searcher = make_searcher(name, RICH, directions=BOTH)
    configs = []
    for index in range(25):
        proposal = searcher.ask()
        configs.append(dict(proposal.values))
        if index % 6 == 5:
            searcher.tell(proposal.number, TrialState.FAIL)
        else:
            values = [score(proposal.values), float(proposal.values["level"])]
            searcher.tell(proposal.number, TrialState.COMPLETE, values)
    assert len(set(keys(configs))) == 25
    assert all(RICH.contains(config) for config in configs)


CORNER = space_of(
    choice("mode", "good", "bad", "fair"),
    number("x", 0.0, 1.0, integer=False),
    number("y", 1, 1024, log=True),
)
# For each way in which a trial can disappoint: how it ends.
BAD_ENDS = {
    "failed": End(TrialState.FAIL),
    "failed late": End(TrialState.FAIL, reported={1: 1000.0}),
    "pruned": End(TrialState.PRUNED, reported={1: -100.0}),
    "over a limit": End(values=[1000.0], violations={"rss": 2.0}),
}


def bad_share(name: str, end: End, seeds: Sequence[int]) -> float:
    """How many of the later trials are still where every trial ends badly."""
    late = []
    for seed in seeds:
        searcher = make_searcher(name, CORNER, seed)
        count = LEARNING_TRIALS.get(name, 40)
        for index in range(count):
            proposal = searcher.ask()
            values = proposal.values
            bad = values["mode"] == "bad" or float(values["x"]) > 0.5
            good_end = End(values=[-float(values["y"])], violations={"rss": -1.0})
            (end if bad else good_end).tell(searcher, proposal.number)
            if index >= count / 2:
                late.append(bad)
    return sum(late) / len(late)


def late_mean(name: str, seeds: Sequence[int]) -> float:
    """The mean score of the last quarter."""
    scores: list[float] = []
    for seed in seeds:
        count = LEARNING_TRIALS.get(name, 40)
        late = asked(make_searcher(name, NUMBERS, seed), count)[-count // 4 :]
        scores += [score(values) for values in late]
    return sum(scores) / len(scores)


def seeds_for(name: str) -> tuple[int, ...]:
    return (1,) if name == "smac" else (1, 2)


@pytest.mark.parametrize("ending", BAD_ENDS)
@pytest.mark.parametrize("name", LEARNERS)
def test_where_trials_end_badly_fewer_are_tried(name: str, ending: str) -> None:
    if name == "smac" and ending in ("failed late", "pruned"):
        pytest.skip("takes long; its history is that of forest and gp")
    # Two random draws in three land there.
    assert bad_share(name, BAD_ENDS[ending], seeds_for(name)) <= 0.5


@pytest.mark.parametrize("name", LEARNERS)
def test_those_that_learn_do_better_than_chance(name: str) -> None:
    assert late_mean(name, seeds_for(name)) > late_mean("random", range(8)) + 1.5


def test_chance_itself_does_not_pass_for_learning() -> None:
    assert bad_share("random", BAD_ENDS["failed"], (1, 2)) > 0.55
    assert late_mean("random", (1, 2)) < late_mean("random", range(8)) + 1.5


@pytest.mark.parametrize("name", ALL)
def test_trials_under_way_are_not_proposed_again(name: str) -> None:
    searcher = make_searcher(name, RICH, directions=MAXIMIZE)
    asked(searcher, 8)
    under_way = [searcher.ask() for _ in range(4)]
    assert len(set(keys([dict(p.values) for p in under_way]))) == 4
    for proposal in reversed(under_way):
        searcher.tell(proposal.number, TrialState.COMPLETE, [score(proposal.values)])
    assert searcher.ask().number == 12


def judged_now(values: Sequence[Values]) -> dict[int, TrialJudgement]:
    """Another light on every trial than when it ended, and another one after each further trial."""
    found = {}
    for index, each in enumerate(values):
        value = score(each) + ((index * 7 + len(values)) % 11) / 10
        noise = ValueNoise(0.01 * len(values), 1 + (index + len(values)) % 3)
        found[index] = TrialJudgement(TrialState.COMPLETE, (value,), {}, {}, noise)
        if (index + len(values)) % 6 == 0:
            found[index] = TrialJudgement(TrialState.FAIL)
    return found


@pytest.mark.parametrize("name", ALL)
def test_trials_that_are_judged_anew_leave_no_trace_of_what_they_were(
    name: str, tmp_path: Path
) -> None:
    if name == "smac":
        pytest.skip("takes long; what it caches is made anew with the sampler")
    count = trials_for(name, 24)
    straight, asked_so_far = make_searcher(name, RICH), list[Values]()
    for _ in range(count):
        straight.rejudge(judged_now(asked_so_far))
        proposal = straight.ask()
        asked_so_far.append(dict(proposal.values))
        straight.tell(proposal.number, TrialState.COMPLETE, [score(proposal.values)])
        assert "lsmtune:noise" not in straight.attributes(0)
    disk, stopped = DiskStudy(tmp_path / "study.db"), list[Values]()
    while len(stopped) < count:
        searcher = make_searcher(name, RICH)
        searcher.restore(disk.trials())
        for _ in range(min(5, count - len(stopped))):
            searcher.rejudge(judged_now(stopped))
            proposal = searcher.ask()
            trial_id = disk.begin(proposal)
            end = End(values=[score(proposal.values)])
            end.tell(searcher, proposal.number)
            disk.finish(trial_id, searcher, proposal.number, end)
            stopped.append(dict(proposal.values))
    disk.close()
    assert stopped == asked_so_far
