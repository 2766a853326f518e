"""The Searcher's own duties: numbers, memory, the disk's view of a trial, pruning, refusals."""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from pathlib import Path
from statistics import median

import optuna
import pytest
from optuna.pruners import MedianPruner, SuccessiveHalvingPruner
from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.goal import Direction
from lsmtune.search.optuna_samplers import TPE, FewerTrials
from lsmtune.search.pruners import PRUNERS
from lsmtune.search.sampler import SamplerContext, SpaceExhaustedError
from lsmtune.testing.search import (
    MAXIMIZE,
    NUMBERS,
    RICH,
    TINY,
    DiskStudy,
    End,
    Values,
    asked,
    choice,
    make_searcher,
    number,
    space_of,
    when,
)

optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_a_trial_begins_when_it_is_asked_for() -> None:
    before = datetime.now()
    began = make_searcher("random", NUMBERS).ask().trial.datetime_start
    assert began is not None
    assert before <= began <= datetime.now()


def test_an_ask_in_vain_uses_up_no_number() -> None:
    refuse = {"all": True}
    searcher = make_searcher("random", TINY, accepts=lambda _: "no" if refuse["all"] else "")
    for _ in range(2):
        with pytest.raises(InputError):
            searcher.ask()
    refuse["all"] = False
    assert searcher.ask().number == 0


def test_constraints_are_to_blame_only_before_the_first_trial() -> None:
    searcher = make_searcher("random", TINY, accepts=lambda _: "too big")
    queued = {"style": "a", "direct": True}
    assert searcher.ask(queued).number == 0
    with pytest.raises(SpaceExhaustedError, match="the last one refused: too big"):
        searcher.ask()


def test_a_needle_is_found_in_a_space_that_can_be_listed() -> None:
    only = {"style": "c", "direct": False}
    wide = space_of(number("x", 1, 5_000), choice("direct", True, False))
    searcher = make_searcher("tpe", wide, accepts=lambda v: "" if v["x"] == 77 else "not 77")
    found = [searcher.ask().values for _ in range(2)]
    assert [values["x"] for values in found] == [77, 77]
    assert {values["direct"] for values in found} == {True, False}
    searcher = make_searcher("gp", TINY, accepts=lambda v: "" if dict(v) == only else "other")
    assert dict(searcher.ask().values) == only


@pytest.mark.parametrize("name", ["gp", "auto"])
def test_where_most_is_expected_is_refused_the_best_of_the_rest_is_proposed(name: str) -> None:
    """After 20 refusals of what a model ranked first, the trial was a random one without a word."""
    x = space_of(number("x", 0.0, 1.0, integer=False))
    searcher = make_searcher(name, x, accepts=lambda v: "too small" if v["x"] < 0.5 else "")
    # score is best at 0.
    late = [float(values["x"]) for values in asked(searcher, 20)[8:]]
    assert min(late) >= 0.5
    assert median(late) < 0.6


def test_a_queued_configuration_must_lie_in_the_space() -> None:
    searcher = make_searcher("random", TINY)
    with pytest.raises(ValueError, match="not in the space"):
        searcher.ask({"style": "e", "direct": True})
    assert searcher.ask().number == 0


def test_tried_knows_what_an_engine_would_read_the_same() -> None:
    searcher = make_searcher("random", NUMBERS)
    values = {"a": 0.5, "b": 10.0, "c": 4, "d": 7}
    assert not searcher.tried(values)
    proposal = searcher.ask(values)
    assert searcher.tried({**values, "c": "4"})
    searcher.put_back(proposal.number)
    assert not searcher.tried(values)


def test_a_whole_number_for_a_float_was_tried_as_that_float() -> None:
    searcher = make_searcher("random", NUMBERS)
    values: Values = {"a": 1, "b": 10, "c": 4.0, "d": 7}
    assert not searcher.tried(values)
    assert searcher.ask(values).values == {"a": 1.0, "b": 10.0, "c": 4, "d": 7}
    assert searcher.tried(values)


def test_a_trial_ends_with_one_value_per_objective() -> None:
    searcher = make_searcher("random", NUMBERS)
    number = searcher.ask().number
    for values in (None, [], [1.0, 2.0]):
        with pytest.raises(ValueError, match="one value per objective"):
            searcher.tell(number, TrialState.COMPLETE, values)


def frozen(trial_number: int, params: dict, distributions: dict) -> FrozenTrial:
    return FrozenTrial(
        number=trial_number,
        trial_id=trial_number,
        state=TrialState.COMPLETE,
        value=1.0,
        datetime_start=datetime(2026, 1, 1),
        datetime_complete=datetime(2026, 1, 1),
        params=params,
        distributions=distributions,
        user_attrs={},
        system_attrs={},
        intermediate_values={},
    )


def test_trials_of_another_space_are_refused() -> None:
    stranger = make_searcher("random", TINY).ask().trial
    trial = frozen(0, stranger.params, stranger.distributions)
    with pytest.raises(LsmtuneError, match="trial 0 is not of this space"):
        make_searcher("random", NUMBERS).restore([trial])


def test_trials_are_restored_in_order_and_without_gaps() -> None:
    mine = make_searcher("random", TINY).ask().trial
    with pytest.raises(ValueError, match="trial 1 in the place of trial 0"):
        make_searcher("random", TINY).restore([frozen(1, mine.params, mine.distributions)])


def test_a_restored_trial_that_still_runs_can_be_told(tmp_path: Path) -> None:
    disk = DiskStudy(tmp_path / "study.db")
    first = make_searcher("tpe", RICH)
    proposal = first.ask()
    disk.begin(proposal)
    second = make_searcher("tpe", RICH)
    second.restore(disk.trials())
    disk.close()
    assert second.tried(proposal.values)
    assert second.ask().number == 1
    second.tell(0, TrialState.COMPLETE, [1.0])


def test_a_waiting_trial_of_an_older_study_keeps_its_number(tmp_path: Path) -> None:
    disk = DiskStudy(tmp_path / "study.db")
    study = optuna.load_study(study_name="study", storage=disk.storage)
    study.enqueue_trial({"style": "a", "direct": True})
    searcher = make_searcher("random", TINY)
    searcher.restore(disk.trials())
    disk.close()
    assert searcher.ask().number == 1


class TestPruning:
    def driven(self, searcher, values: list[float]) -> tuple[int, int]:
        """Reports values step by step; the trial's number, and the step after which it ended."""
        number = searcher.ask().number
        for step, value in enumerate(values, start=1):
            searcher.report(number, step, value)
            if searcher.should_prune(number):
                searcher.tell(number, TrialState.PRUNED)
                return number, step
        searcher.tell(number, TrialState.COMPLETE, [values[-1]])
        return number, len(values)

    def test_a_trial_below_the_median_is_ended(self) -> None:
        pruner = MedianPruner(n_startup_trials=2)
        searcher = make_searcher("random", NUMBERS, pruner=pruner)
        for _ in range(3):
            assert self.driven(searcher, [10.0, 11.0, 12.0])[1] == 3
        assert self.driven(searcher, [5.0, 6.0, 7.0])[1] == 1

    def test_without_a_pruner_nothing_is_ended(self) -> None:
        searcher = make_searcher("random", NUMBERS)
        assert self.driven(searcher, [-1.0] * 5)[1] == 5

    def test_rungs_that_others_reached_are_known_after_a_stop(self, tmp_path: Path) -> None:
        disk = DiskStudy(tmp_path / "study.db")
        first = make_searcher("random", NUMBERS, pruner=SuccessiveHalvingPruner(min_resource=1))
        for _ in range(3):
            proposal = first.ask()
            trial_id = disk.begin(proposal)
            first.report(proposal.number, 1, 100.0)
            assert not first.should_prune(proposal.number)
            first.tell(proposal.number, TrialState.COMPLETE, [100.0])
            end = End(values=[100.0], reported={1: 100.0})
            disk.finish(trial_id, first, proposal.number, end)
        second = make_searcher("random", NUMBERS, pruner=SuccessiveHalvingPruner(min_resource=1))
        second.restore(disk.trials())
        disk.close()
        assert self.driven(second, [1.0, 1.0]) == (3, 1)

    def test_what_was_put_back_is_no_rival_of_its_next_try(self) -> None:
        """Its rungs stayed until the session ended: it was ended as worse than itself."""
        pruner = SuccessiveHalvingPruner(min_resource=1)
        searcher = make_searcher("sobol", NUMBERS, pruner=pruner)
        first = searcher.ask()
        searcher.report(first.number, 1, 100.0)
        assert not searcher.should_prune(first.number)
        searcher.put_back(first.number)
        assert searcher.attributes(first.number) == first.trial.system_attrs
        again = searcher.ask(first.values)
        searcher.report(again.number, 1, 99.0)
        assert not searcher.should_prune(again.number)

    def test_what_is_measured_again_is_not_judged_by_what_it_came_to_before(self) -> None:
        """Its last step stayed that of the first try, and decided at each step of the next."""
        pruner = PRUNERS["far-behind"].make(ratio=0.5, warmup=0.0)
        searcher = make_searcher("random", NUMBERS, pruner=pruner)
        assert self.driven(searcher, [100.0, 100.0, 100.0])[1] == 3
        number = searcher.ask().number
        searcher.report(number, 3, 1.0)
        assert searcher.should_prune(number)
        searcher.begin_anew(number)
        searcher.report(number, 1, 99.0)
        assert not searcher.should_prune(number)


def test_violations_and_the_samplers_notes_are_stored_and_failure_is_not() -> None:
    searcher = make_searcher("nsga2", NUMBERS)
    first, second = searcher.ask(), searcher.ask()
    assert first.trial.system_attrs == {"NSGAIISampler:generation": 0}
    searcher.tell(first.number, TrialState.COMPLETE, [1.0], {"rss <= 1GiB": 0.25})
    searcher.tell(second.number, TrialState.FAIL)
    assert searcher.attributes(0) == {
        "NSGAIISampler:generation": 0,
        "constraints:rss <= 1GiB": 0.25,
    }
    assert searcher.attributes(1) == {"NSGAIISampler:generation": 0}


def test_a_long_genetic_study_goes_on_after_a_stop() -> None:
    # With two trials a generation, Optuna's recursion over generations would meet Python's limit.
    space = space_of(number("x", 0.0, 1.0, integer=False))
    trials = []
    for index in range(1200):
        trial = frozen(index, {"x": index / 1200}, space.distributions())
        trial.system_attrs = {"NSGAIISampler:generation": index // 2}
        trials.append(trial)
    searcher = make_searcher("nsga2", space, given={"population": 2})
    searcher.restore(trials)
    assert searcher.ask().trial.system_attrs == {"NSGAIISampler:generation": 600}


@pytest.mark.parametrize("name", ["nsga2", "nsga3", "tpe"])
def test_a_study_of_a_front_is_rebuilt_before_every_trial(name: str) -> None:
    """Also before the trial that happens to choose a generation's parents, and after it."""
    three = (Direction.MAXIMIZE, Direction.MINIMIZE, Direction.MAXIMIZE)
    straight = make_searcher(name, NUMBERS, directions=three)
    trials: list[FrozenTrial] = []
    for index in range(30):
        rebuilt = make_searcher(name, NUMBERS, directions=three)
        rebuilt.restore(trials)
        proposal = straight.ask()
        assert rebuilt.ask().values == proposal.values
        a, b, c, d = (float(proposal.values[option]) for option in "abcd")
        # A front of many, where Optuna's NSGA-III draws lots between those that are alike.
        values = [round(3 * a), round(2 * a + b / 500), round(c / 400 - d / 50)]
        straight.tell(index, TrialState.COMPLETE, values)
        trial = frozen(index, proposal.trial.params, proposal.trial.distributions)
        trial.values = [float(value) for value in values]
        trial.system_attrs = proposal.trial.system_attrs
        trials.append(trial)


def test_tpe_draws_at_random_until_it_has_seen_enough() -> None:
    x = space_of(number("x", 0.0, 1.0, integer=False))

    def values(startup: int) -> list[Values]:
        return asked(make_searcher("tpe", x, given={"startup_trials": startup}), 30)

    # score is best at 0, whither only a sampler that has begun to learn is drawn.
    drawn, learned = values(30), values(5)
    assert drawn[:5] == learned[:5]
    assert drawn[5:] != learned[5:]
    assert sum(float(v["x"]) for v in drawn) / 30 == pytest.approx(0.5, abs=0.21)
    assert sum(float(v["x"]) for v in learned[15:]) / 15 < 0.25


def test_tpe_learns_special_values_and_conditions() -> None:
    def late(name: str) -> int:
        searcher = make_searcher(name, RICH, 1, given={})
        found = []
        for _ in range(60):
            proposal = searcher.ask()
            found.append(proposal.values)
            value = 100.0 * (proposal.values["level"] == 32767)
            searcher.tell(proposal.number, TrialState.COMPLETE, [value])
        return sum(values["level"] == 32767 for values in found[40:])

    assert late("tpe") >= 14
    assert late("tpe") > 2 * late("random")


def test_tpe_groups_what_it_is_shown_and_nothing_that_it_once_saw() -> None:
    """Of more than 1,000 trials the hedge of auto sees some: after a stop, it grouped otherwise."""
    space = space_of(
        choice("kind", "a", "b"),
        number("x", 0, 99, conditions=when("kind", "a")),
        number("y", 0, 99, conditions=when("kind", "a")),
    )
    searcher = make_searcher("random", space)
    for place in range(10):
        values = {"kind": "a", "x": place, "y": 9 - place} if place > 1 else {"kind": "b"}
        searcher.tell(searcher.ask(values).number, TrialState.COMPLETE, [float(place)])
    trial = searcher._study.trial(searcher._study.add())
    study = searcher._study.as_optuna()
    settings = {"startup_trials": 2, "candidates": 24}
    kept, fresh = (TPE.make(SamplerContext(space, 7, settings, MAXIMIZE)) for _ in range(2))
    assert next(kept.proposals(study, trial))
    proposed = [
        [*islice(sampler.proposals(FewerTrials(study, 4), trial), 8)] for sampler in (kept, fresh)
    ]
    assert proposed[0] == proposed[1]


def test_the_best_of_a_long_history_break_no_constraint() -> None:
    """The 500 that TPE saw of the early trials were fast ones over a limit, and no good one."""
    searcher = make_searcher("random", NUMBERS)
    for place in range(12):
        over = 1.0 if place % 2 else -1.0
        value = 100.0 * place if place % 2 else float(place)
        searcher.tell(searcher.ask().number, TrialState.COMPLETE, [value], {"rss": over})
    study = searcher._study.as_optuna()
    assert [t.number for t in FewerTrials(study, 6).get_trials()] == [4, 6, 8, 9, 10, 11]
    # With too few that break none, the best of the others.
    assert [t.number for t in FewerTrials(study, 10).get_trials()] == [0, 2, 4, 5, 6, *range(7, 12)]


def test_the_mirror_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    optuna.logging.set_verbosity(optuna.logging.INFO)
    try:
        make_searcher("tpe", TINY, directions=MAXIMIZE).ask()
    finally:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""
