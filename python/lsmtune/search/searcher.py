"""The Searcher: which configuration comes next, and what became of those before it.

It writes nothing to disk. Its memory is an Optuna study in memory (`search.in_memory_study`), which
`restore` rebuilds from the stored trials; the caller stores what `ask` returns, and how each
trial ended. A kill between the two loses nothing: the next session asks for the same again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from statistics import NormalDist
from typing import Any

from optuna.pruners import BasePruner
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.goal import Direction
from lsmtune.search.grid import LISTED_MAX, whole_space
from lsmtune.search.in_memory_study import (
    CONSTRAINT_PREFIX,
    InMemoryStudy,
    TrialJudgement,
    without_noise,
)
from lsmtune.search.model_based import UnitSpaceSampler
from lsmtune.search.sampler import (
    FAILED,
    Accepts,
    Problem,
    ProposingSampler,
    SamplerContext,
    SpaceExhaustedError,
    Suggestion,
    Use,
    generator_of_trial,
    proposed,
    seed_of_trial,
    suggestion_of,
)
from lsmtune.search.samplers import SAMPLERS, check_sampler
from lsmtune.space.space import Space

OUTCOME = "outcome"  # a user attribute of a stored trial
PUT_BACK = "put_back"  # its value where a stored trial FAILed because it was put back

# How often a sampler may propose what was tried or breaks a constraint before others take over. One
# that learns may be slow and tends to repeat itself; one that draws is quick.
_LEARNER_SUGGESTIONS = 20
_PLAIN_SUGGESTIONS = 200
_LISTED_SUGGESTIONS = 100_000
# Then a small space is listed, and any other is drawn from at random, so often.
_RANDOM_SUGGESTIONS = 10_000

_FAILURE = {FAILED: 1.0}  # the constraints that a failed trial breaks

_Key = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Proposal:
    """A trial that begins: its number, the values of the active parameters, and what to store.

    `trial` is RUNNING and holds the Optuna variables, and the sampler's notes as system attributes.
    """

    number: int
    values: Mapping[str, OptionValue]
    trial: FrozenTrial


class Searcher:
    """Asks one sampler about one space; not for several threads at a time.

    `accepts` returns why a configuration must not run, or an empty text; what it refuses costs no
    trial. `problem` is what is known of engine and workload. `settings` are as `check_settings`
    returns them. The sequence of proposals follows from `seed` and the trials so far alone.
    """

    def __init__(
        self,
        space: Space,
        sampler_name: str,
        settings: Mapping[str, object],
        seed: int,
        directions: Sequence[Direction],
        *,
        accepts: Accepts | None = None,
        pruner: BasePruner | None = None,
        problem: Problem | None = None,
    ) -> None:
        """Raises `InputError` when the sampler does not suit the space or the objectives."""
        context = SamplerContext(space, seed, settings, tuple(directions), problem, accepts)
        check_sampler(sampler_name, context, "sampler", "sampler")
        self._kind = SAMPLERS[sampler_name]
        self._context = context
        self._sampler = self._kind.make(context)
        self._accepts = accepts or (lambda _: "")
        self._space = space
        self._study = InMemoryStudy(context.directions, pruner)
        self._shown: dict[int, TrialJudgement] = {}
        self._tried: Counter[_Key] = Counter()  # by the trials that were not put back
        self._blank: int | None = None

    def restore(self, trials: Sequence[FrozenTrial]) -> None:
        """Take over the stored trials, all of them in order of their numbers, before the first ask.

        Raises LsmtuneError for trials that are not of this space.
        """
        for trial in trials:
            number = self._study.add()
            if number != trial.number:
                raise ValueError(f"trial {trial.number} in the place of trial {number}")
            self._study.set_attributes(number, trial.system_attrs)
            if trial.state != TrialState.WAITING:
                try:
                    suggestion = suggestion_of(self._space, trial.params)
                except (KeyError, ValueError) as error:
                    why = f"trial {number} is not of this space: {error}"
                    raise LsmtuneError(why) from error
                self._begin(number, suggestion)
            for step, value in trial.intermediate_values.items():
                self._study.report(number, step, value)
            if trial.user_attrs.get(OUTCOME) == PUT_BACK and trial.state == TrialState.FAIL:
                self.put_back(number)
            elif trial.state.is_finished():
                self.tell(number, trial.state, trial.values)

    def tried(self, values: Mapping[str, OptionValue]) -> bool:
        """Whether a trial, not put back, had `values`, however they are spelled: `8` is `8.0`."""
        if self._space.contains(values):
            values = self._suggestion(values).values
        return self._tried[_key(values)] > 0

    def ask(self, queued: Mapping[str, OptionValue] | None = None) -> Proposal:
        """Begin a trial: with `queued`, or with what the sampler proposes.

        `queued` is taken as it is, tried or not, accepted or not; ValueError when it is not in the
        space. Raises SpaceExhaustedError when there is no configuration left, and InputError when
        `accepts` refused everything from the beginning.
        """
        # A trial that got no configuration is kept for the next time: numbers have no gaps.
        number = self._study.add() if self._blank is None else self._blank
        self._blank = number
        study, trial = self._study.as_optuna(), self._study.trial(number)
        self._sampler.before_trial(study, trial)
        suggestion = self._next(study, trial) if queued is None else self._suggestion(queued)
        self._begin(number, suggestion)
        self._blank = None
        stored = copy(self._study.trial(number))
        stored.datetime_start = datetime.now()
        return Proposal(number, suggestion.values, stored)

    def report(self, number: int, step: int, value: float) -> None:
        """A running trial has come to `value` at `step`, a whole number from 0."""
        self._study.report(number, step, value)

    def begin_anew(self, number: int) -> None:
        """A running trial is measured again from its beginning: what it came to says nothing."""
        self._study.begin_anew(number)

    def should_prune(self, number: int) -> bool:
        """Whether a running trial looks so bad that it should end here."""
        study = self._study.as_optuna()
        return study.pruner.prune(study, self._study.trial(number))

    def tell(
        self,
        number: int,
        state: TrialState,
        values: Sequence[float] | None = None,
        violations: Mapping[str, float] | None = None,
    ) -> None:
        """A running trial ended: COMPLETE with one value per objective, PRUNED, or FAIL.

        `violations` says by how much it breaks each constraint; up to 0 it holds.
        """
        if state == TrialState.COMPLETE and len(values or ()) != len(self._context.directions):
            raise ValueError(f"one value per objective, not {values}")
        broken = dict(violations or {})
        if state == TrialState.FAIL:
            # Optuna's samplers ignore failed trials, and would propose the same corner again.
            state, broken = TrialState.PRUNED, broken | _FAILURE
        self._study.finish(number, state, values, broken)

    def rejudge(self, judgements: Mapping[int, TrialJudgement]) -> None:
        """Let these trials, all of which have ended, have ended as is known now.

        Afterwards all is as if they had been restored so: a sampler that remembers another history
        is made anew.
        """
        # A judgement that is the same object as before says nothing new.
        new = {n: each for n, each in judgements.items() if self._shown.get(n) is not each}
        self._shown |= new
        shown = {
            number: replace(judgement, state=TrialState.PRUNED, values=None, violations=_FAILURE)
            if judgement.state == TrialState.FAIL
            else judgement
            for number, judgement in new.items()
        }
        if self._study.rejudge(shown):
            before, self._sampler = self._sampler, self._kind.make(self._context)
            if isinstance(before, UnitSpaceSampler) and isinstance(self._sampler, UnitSpaceSampler):
                # It reads those trials anew that are other objects than before.
                self._sampler.reader = before.reader

    def expected(self) -> Mapping[int, NormalDist]:
        """What the sampler expects of trials that ended, see `ProposingSampler.expected`."""
        if not isinstance(self._sampler, ProposingSampler):
            return {}
        return self._sampler.expected(self._study.as_optuna())

    def put_back(self, number: int) -> None:
        """A running trial was cut off and says nothing; its configuration may come again."""
        values = suggestion_of(self._space, self._study.trial(number).params).values
        self._tried[_key(values)] -= 1
        self._study.put_back(number)

    def attributes(self, number: int) -> dict[str, Any]:
        """The system attributes to store with a trial that ended, for `restore`.

        Those of the Proposal, what pruners noted, and the violations of constraints.
        """
        attributes = without_noise(self._study.trial(number).system_attrs)
        attributes.pop(f"{CONSTRAINT_PREFIX}{FAILED}", None)
        return attributes

    def _suggestion(self, values: Mapping[str, OptionValue]) -> Suggestion:
        return suggestion_of(self._space, self._space.variables_of(values))

    def _begin(self, number: int, suggestion: Suggestion) -> None:
        self._study.begin(number, suggestion.params, self._space.distributions())
        self._tried[_key(suggestion.values)] += 1

    def _next(self, study: Study, trial: FrozenTrial) -> Suggestion:
        """The first configuration that is new and accepted, of all that come into question."""
        drawn, refused, end = 0, "", "every configuration that was found"
        try:
            for suggestion in self._candidates(study, trial):
                drawn += 1
                if self._tried[_key(suggestion.values)] > 0:
                    continue
                refusal = self._accepts(suggestion.values)
                if not refusal:
                    return suggestion
                refused = refusal
        except SpaceExhaustedError as error:
            end = str(error)
        if refused and not self._tried.total():
            why = f"no configuration that holds them was found, of {drawn} drawn"
            raise InputError("constraints", why=f"{why}; the last one: {refused}")
        detail = f"; the last one refused: {refused}" if refused else ""
        raise SpaceExhaustedError(f"{end} was tried or breaks a constraint{detail}")

    def _candidates(self, study: Study, trial: FrozenTrial) -> Iterator[Suggestion]:
        """What the sampler proposes; after a while without success, what is left to try."""
        proposals = proposed(self._sampler, self._space, study, trial)
        if self._kind.listed:
            yield from islice(proposals, _LISTED_SUGGESTIONS)
            return
        limit = _LEARNER_SUGGESTIONS if self._kind.learns else _PLAIN_SUGGESTIONS
        yield from islice(proposals, limit)
        if self._listed is None:
            seed = seed_of_trial(self._context.seed, trial.number, Use.SEARCHER)
            random = proposed(RandomSampler(seed=seed), self._space, study, trial)
            yield from islice(random, _RANDOM_SUGGESTIONS)
        else:
            rng = generator_of_trial(self._context.seed, trial.number, Use.SEARCHER)
            for index in rng.permutation(len(self._listed)):
                values = self._listed[int(index)]
                if self._tried[_key(values)] == 0:
                    yield self._suggestion(values)

    @cached_property
    def _listed(self) -> list[dict[str, OptionValue]] | None:
        return whole_space(self._space, LISTED_MAX)


def _key(values: Mapping[str, OptionValue]) -> _Key:
    """Equal for configurations that an engine would read as the same."""
    return frozenset((name, option_text(value)) for name, value in values.items())
