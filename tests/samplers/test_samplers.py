from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from lsmtune.errors import InputError
from lsmtune.records.config import OptionValue
from lsmtune.samplers import SAMPLERS, make_sampler
from lsmtune.space import Space
from lsmtune.spec import SAMPLER_NAMES, load_spec

optuna.logging.set_verbosity(optuna.logging.ERROR)

# Steps, log scales, special values, conditions: everything that a space can hold.
SPACE = load_spec(Path(__file__).parent.parent / "spec" / "good" / "full.yaml").space


def score(options: dict[str, OptionValue]) -> float:
    """Best with the smallest buffer and the special level 32767."""
    size = float(options["write_buffer_size"]) / 2**20
    return -size + (100 if options.get("compression_opts.level") == 32767 else 0)


def searched(space: Space, name: str, seed: int, trials: int) -> list[dict[str, OptionValue]]:
    study = optuna.create_study(sampler=make_sampler(name, seed, 5), direction="maximize")
    found = []
    for _ in range(trials):
        trial = study.ask()
        options = space.suggest(trial)
        found.append(options)
        study.tell(trial, score(options))
    return found


def test_the_names_that_study_files_allow_are_those_of_the_registry() -> None:
    assert tuple(SAMPLERS) == SAMPLER_NAMES


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_seed_gives_the_same_search_again(name: str) -> None:
    first = searched(SPACE, name, 7, 25)
    assert first == searched(SPACE, name, 7, 25)
    assert first != searched(SPACE, name, 8, 25)
    assert all(SPACE.contains(options) for options in first)


def test_tpe_learns_special_values_and_conditions() -> None:
    late = searched(SPACE, "tpe", 1, 60)[40:]
    drawn = searched(SPACE, "random", 1, 60)[40:]
    special = sum(options.get("compression_opts.level") == 32767 for options in late)
    assert special >= 14
    assert special > 2 * sum(o.get("compression_opts.level") == 32767 for o in drawn)


def test_the_first_trials_of_tpe_are_random() -> None:
    sampler = make_sampler("tpe", 0, 30)
    study = optuna.create_study(sampler=sampler, direction="maximize")
    values = []
    for _ in range(30):
        trial = study.ask()
        values.append(trial.suggest_float("x", 0, 1))
        study.tell(trial, values[-1])
    # Thirty uniform draws: their mean is within four standard deviations of a half.
    assert abs(sum(values) / 30 - 0.5) < 4 * (1 / 12 / 30) ** 0.5


def test_an_unknown_sampler_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"found 'tpee'; allowed: tpe, random; did you mean tpe\?"):
        make_sampler("tpee", 0)
