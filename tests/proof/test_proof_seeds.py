from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lsmtune.proof.seeds import Stream, derive_seed

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
    for stream in (Stream.BASELINE, Stream.TRIAL):
        assert derive_seed(second, stream, other) != proof


def test_seeds_of_a_study_are_all_different() -> None:
    seeds = [derive_seed(1, stream, index) for stream in Stream for index in range(1000)]
    assert len(set(seeds)) == len(seeds)


def test_the_derivation_is_pinned() -> None:
    """A stored study that is resumed must get the seeds it would have got."""
    assert derive_seed(1, Stream.TRIAL, 0) == 2272685601621238
