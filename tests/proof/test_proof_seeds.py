from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.experiment.schedule import Stream, candidate_first, derive_seed
from lsmtune.stats.sequential import evidence_of_more

COINS = [False, True, True, True, False, True, True, True]
study_seeds = st.integers(0, 2**64 - 1)
streams = st.sampled_from(Stream)
indexes = st.integers(0, 2**32 - 1)


@given(study_seeds, streams, indexes)
def test_a_seed_is_the_same_each_time_and_fits_a_json_number(
    study_seed: int, stream: Stream, index: int
) -> None:
    seed = derive_seed(study_seed, stream, index)
    assert seed == derive_seed(study_seed, stream, index)
    assert 0 <= seed < 2**53


@given(study_seeds, study_seeds, indexes, indexes)
def test_search_and_proof_never_share_a_seed(
    first: int, second: int, index: int, other: int
) -> None:
    proof = derive_seed(first, Stream.PROOF, index)
    for stream in set(Stream) - {Stream.PROOF}:
        assert derive_seed(second, stream, other) != proof


def test_no_two_streams_are_one() -> None:
    assert len(set(Stream.__members__.values())) == len(Stream.__members__)


def test_seeds_of_a_study_are_all_different() -> None:
    seeds = [derive_seed(1, stream, index) for stream in Stream for index in range(1000)]
    assert len(set(seeds)) == len(seeds)


def test_the_coin_is_fair_and_falls_the_same_each_time() -> None:
    """Fair in all, and after any three tosses."""
    tosses = [candidate_first(1, pair) for pair in range(8000)]
    assert tosses == [candidate_first(1, pair) for pair in range(8000)]
    assert abs(sum(tosses) / 8000 - 0.5) < 4 * (0.25 / 8000) ** 0.5
    after: dict[tuple[bool, ...], list[bool]] = {}
    for pair in range(3, 8000):
        after.setdefault(tuple(tosses[pair - 3 : pair]), []).append(tosses[pair])
    assert len(after) == 8
    for later in after.values():
        assert abs(sum(later) / len(later) - 0.5) < 4.5 * (0.25 / len(later)) ** 0.5


def test_the_coins_of_studies_with_neighbouring_seeds_are_not_the_same() -> None:
    same = sum(candidate_first(1, pair) == candidate_first(2, pair) for pair in range(4000))
    assert abs(same / 4000 - 0.5) < 4 * (0.25 / 4000) ** 0.5


@pytest.mark.parametrize("study_seed", [0, 1])
@pytest.mark.parametrize("effect", [0.003, 0.01, 0.03, 0.1, 0.3])
def test_the_coins_of_the_usual_seeds_tell_an_order_effect_from_a_gain(
    study_seed: int, effect: float
) -> None:
    """Most users have these seeds, of `tune` and `verify`, and so all of them the same coins.

    Without any noise, and with a first run that is always better, one coin in twenty is allowed to
    prove a gain; not these two.
    """
    signs = [1.0 if candidate_first(study_seed, pair) else -1.0 for pair in range(1000)]
    logs = effect * np.array(signs)
    assert max(evidence_of_more(logs, 0.0).max(), evidence_of_more(-logs, 0.0).max()) < 5.0


def test_the_derivation_is_pinned() -> None:
    """A stored study that is resumed must get the seeds it would have got."""
    assert derive_seed(1, Stream.TRIAL, 0) == 2272685601621238
    assert [candidate_first(1, pair) for pair in range(8)] == COINS
