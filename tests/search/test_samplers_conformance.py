"""lsmtune's own samplers in the suite for all samplers."""

from __future__ import annotations

from lsmtune.search.samplers import SAMPLERS
from lsmtune.space.space import Space
from lsmtune.testing.samplers import BAD_ENDS, Chance, SamplerSuite
from lsmtune.testing.search import configurations


class TestAuto(SamplerSuite):
    name, trials, learning_trials = "auto", 16, 24


class TestTpe(SamplerSuite):
    name = "tpe"


class TestForest(SamplerSuite):
    name = "forest"


class TestGp(SamplerSuite):
    name, trials, learning_trials = "gp", 16, 24


class TestCmaes(SamplerSuite):
    name = "cmaes"


class TestNsga2(SamplerSuite):
    name = "nsga2"


class TestNsga3(SamplerSuite):
    name = "nsga3"


class TestRandom(Chance):
    def test_chance_itself_does_not_pass_for_learning(self) -> None:
        assert self.bad_share(BAD_ENDS["failed"], (1, 2)) > 0.55
        assert self.late_mean((1, 2)) < self.late_mean(range(8)) + 1.5


class TestSobol(SamplerSuite):
    name = "sobol"


class TestGrid(SamplerSuite):
    name = "grid"


class TestManual(SamplerSuite):
    name, follows_seed = "manual", False

    def settings_for(self, space: Space) -> dict[str, object]:
        return {"configs": configurations(space, 60)}


def test_every_sampler_of_lsmtunes_own_is_in_the_suite() -> None:
    tested = {each.name for each in SamplerSuite.__subclasses__()}
    assert {name for name in SAMPLERS if SAMPLERS.origin(name) is None} <= tested
