"""Smaller workloads of mixes: records, operations and what is scattered shrink together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.experiment.run_length import longer_by
from lsmtune.model.workload import Companion, Mix
from lsmtune.programs.registry import PROGRAMS
from lsmtune.proof.guards import facts_of
from lsmtune.study.stored import smaller
from lsmtune.workloads.stated import make_workload


def test_a_tenth_of_a_workload_of_ycsb() -> None:
    full = make_workload("ycsb-e", {"operationcount": 20_000}, "test")
    tenth = smaller(full, 10_000)
    expected = make_workload("ycsb-e", {"recordcount": 10_000, "operationcount": 2000}, "test")
    assert tenth.phases == expected.phases
    assert smaller(full, full.num) == full


# Of fewer records, requests would be scattered over more than a thousand times as many.
@given(st.integers(1000, 10**6), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_workload_of_ycsb_of_any_size_is_what_its_properties_state(
    records: int, operations: int, num: int
) -> None:
    """An item more or less was no workload of YCSB-cpp's, which ended a study in its middle."""
    stated = {"recordcount": records, "operationcount": operations}
    full = make_workload("ycsb-e", stated, "test")
    sized = smaller(full, num)
    count = sized.phases[-1].operations
    assert sized == make_workload("ycsb-e", {"recordcount": num, "operationcount": count}, "test")
    longer = longer_by(full, 2.0)
    more = {"recordcount": records, "operationcount": longer.phases[-1].operations}
    assert longer == make_workload("ycsb-e", more, "test")
    for workload in (sized, longer):
        PROGRAMS["ycsb-cpp"].check(workload, "rocksdb")


def test_every_phase_of_a_sequence_and_what_works_beside_it() -> None:
    full = make_workload("contest", {}, "test")
    beside = Companion("scans", mix=Mix((("get", 1.0),), records=2_000_000))
    last = replace(full.phases[-1], companions=(beside,))
    small = smaller(replace(full, phases=(*full.phases[:-1], last)), 2000)
    assert [phase.operations for phase in small.phases] == [2000] * 4
    assert [p.mix.records for p in small.phases if p.mix is not None] == [0, 2000, 2000, 2000]
    (scans,) = small.phases[-1].companions
    assert scans.mix is not None
    assert scans.mix.records == 2000


@given(st.integers(0, 900), st.integers(1, 100), st.integers(1, 999))
def test_new_records_never_fall_on_old_ones(start: int, count: int, num: int) -> None:
    given_ = {"recordcount": 1000, "insertstart": start, "insertcount": count}
    full = make_workload("ycsb", {**given_, "insertproportion": 0.5}, "test")
    mix = smaller(full, num).phases[-1].mix
    assert mix is not None
    assert mix.records >= 1
    assert mix.insert_from is None or mix.insert_from >= mix.first + mix.records


def test_the_bytes_of_the_data_go_by_mean_keys() -> None:
    facts = facts_of(make_workload("udb", {"num": 1000}, "test"))
    assert facts["data_bytes"] == pytest.approx(1000 * (27.1 + 127), rel=0.01)
