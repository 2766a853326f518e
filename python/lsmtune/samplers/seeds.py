"""The random stream of each trial: a function of the sampler's seed and the trial's number."""

from __future__ import annotations

from enum import IntEnum

import numpy as np


class Use(IntEnum):
    """What a random stream of a trial is for. The numbers are part of the derivation."""

    SAMPLER = 0
    SEARCHER = 1  # when the sampler has nothing new to propose
    GENERATION = 2  # of a genetic algorithm; its number takes the place of the trial's


def generator_of_trial(seed: int, number: int, use: Use = Use.SAMPLER) -> np.random.Generator:
    """A generator for trial `number`; neither argument is negative."""
    return np.random.default_rng(_sequence(seed, number, use))


def seed_of_trial(seed: int, number: int, use: Use = Use.SAMPLER) -> int:
    """A seed of 32 bits for trial `number`, for what takes no generator (Optuna's samplers)."""
    return int(_sequence(seed, number, use).generate_state(1, np.uint32)[0])


def _sequence(seed: int, number: int, use: Use) -> np.random.SeedSequence:
    """Numpy's hash of the three keeps the streams of neighbouring numbers apart."""
    return np.random.SeedSequence(seed, spawn_key=(int(use), number))
