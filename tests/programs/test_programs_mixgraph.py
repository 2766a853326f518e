"""db_bench's mixgraph: a mix in its flags, what it does otherwise, and what it cannot do."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import Mix, Phase, PhaseKind, SineRate, StepRate, Workload
from lsmtune.programs.db_bench import (
    ROCKSDB_PROGRAM,
    check_rocksdb,
    rocksdb_arguments,
    rocksdb_benchmark,
)
from lsmtune.programs.db_bench import rocksdb_differences as differences
from lsmtune.workloads.stated import make_workload

ZIPPYDB = make_workload("zippydb", {"num": 3000, "operations": 2000}, "test")
GRAPH = make_workload("social-graph", {"num": 3000, "operations": 2000}, "test")


def flags(workload: Workload, index: int) -> dict[str, str]:
    said = rocksdb_arguments(workload, index, database="d", seed=1, settle=False)
    return dict(argument.removeprefix("--").split("=", 1) for argument in said)


def changed(workload: Workload, **mix: object) -> Workload:
    """`workload` with another mix in its run."""
    *before, run = workload.phases
    assert run.mix is not None
    other = replace(run, mix=replace(run.mix, **mix))  # type: ignore[arg-type]
    return replace(workload, phases=(*before, other))


def rated(rate: SineRate | StepRate, threads: int = 1) -> Workload:
    *before, run = ZIPPYDB.phases
    return replace(ZIPPYDB, phases=(*before, replace(run, rate=rate, threads=threads)))


def test_the_published_command_comes_back() -> None:
    # The flags of the commands for ZippyDB: wiki, and pull request 5953 for the keys of a range.
    said = flags(ZIPPYDB, 2)
    assert rocksdb_benchmark(ZIPPYDB, 2) == "mixgraph" == said["benchmarks"]
    expected = {
        "mix_get_ratio": 0.85,
        "mix_put_ratio": 0.14,
        "mix_seek_ratio": 0.01,
        "keyrange_num": 30,
        "keyrange_dist_a": 14.18,
        "keyrange_dist_b": -2.917,
        "keyrange_dist_c": 0.0164,
        "keyrange_dist_d": -0.08082,
        "key_dist_a": 0.002312,
        "key_dist_b": 0.3467,
        "value_k": 0.2615,
        "value_sigma": 25.45,
        "value_theta": 0,
        "mix_max_value_size": 1024,
        "iter_k": 2.517,
        "iter_sigma": 14.236,
        "iter_theta": 0,
        "mix_max_scan_len": 10000,
        "num": 3000,
        "reads": 2000,
        "key_size": 48,
    }
    assert {name: float(said[name]) for name in expected} == expected
    assert "sine_mix_rate" not in said
    assert "writes" not in said


def test_the_load_of_a_mix_is_a_fillseq() -> None:
    threads = make_workload("zippydb", {"num": 3000, "operations": 2000, "threads": 2}, "test")
    said = flags(threads, 0)
    assert (said["benchmarks"], said["writes"], said["threads"]) == ("fillseq", "3000", "1")
    assert said["value_size"] == str(ZIPPYDB.value_bytes)
    assert flags(threads, 2)["reads"] == "1000"  # of each thread
    assert any("loads by fillseq (load): one thread" in line for line in differences(threads))


@given(theta=st.floats(0.05, 0.95), num=st.integers(10_000, 10**7))
def test_a_zipfian_is_a_power_law_with_the_same_share_beyond_its_head(
    theta: float, num: int
) -> None:
    mixed = changed(GRAPH, keys=Distribution.of("zipfian", theta=theta), records=num)
    said = flags(replace(mixed, num=num), 2)
    a, b = float(said["key_dist_a"]), float(said["key_dist_b"])
    assert a * num**b == pytest.approx(1.0)
    # The share of ranks from x to y, against the integral of k^-theta in its stead.
    x, y = num // 2, num
    exact = (y ** (1 - theta) - x ** (1 - theta)) / num ** (1 - theta)
    assert a * y**b - a * x**b == pytest.approx(exact, rel=1e-9)


@given(size=st.integers(10, 1 << 20), length=st.integers(1, 10_000))
def test_constants_are_pareto_distributions_without_a_scale(size: int, length: int) -> None:
    mixed = changed(
        GRAPH,
        value_sizes=Distribution.of("constant", size=size),
        scan_lengths=Distribution.of("constant", size=length),
    )
    said = flags(mixed, 2)

    def drawn(prefix: str, u: float) -> int:  # ParetoCdfInversion
        theta, k, sigma = (float(said[f"{prefix}_{name}"]) for name in ("theta", "k", "sigma"))
        return math.ceil(theta + sigma * (u**-k - 1) / k)

    for u in (1e-6, 0.3, 0.999):
        assert drawn("value", u) == size <= int(said["mix_max_value_size"])
        assert drawn("iter", u) % int(said["mix_max_scan_len"]) == length


def test_a_sine_is_a_limit_and_that_is_said() -> None:
    wave = SineRate(20_000.0, 10_000.0, 20.0, 5.0)
    said = flags(rated(wave), 2)
    assert said["sine_mix_rate"] == "true"
    assert said["sine_mix_rate_interval_milliseconds"] == "200"
    a, b, c, d = (float(said[f"sine_{name}"]) for name in "abcd")
    for t in (0.0, 3.0, 12.0):
        rate = wave.mean_ops_s + wave.amplitude_ops_s * math.sin(2 * math.pi * (t + 5.0) / 20.0)
        assert a * math.sin(b * t + c) + d == pytest.approx(rate)
    lines = differences(rated(wave))
    assert any("limits the rate, after 0.2 s and 100000" in line for line in lines)
    assert not any("aborts at a limit" in line for line in lines)
    day = make_workload("zippydb", {"arrival": "sine"}, "test")
    assert any("aborts at a limit below 1000 a second" in line for line in differences(day))
    assert flags(day, 2)["sine_mix_rate_interval_milliseconds"] == "5000"


def test_what_it_does_otherwise_is_said() -> None:
    lines = "\n".join(differences(ZIPPYDB))
    for text in (
        "db_bench's mixgraph (run) decides key, operation, value size, scan length by one draw",
        "wraps values above 1024 bytes around and makes 10 of those below 10",
        "wraps scan lengths around at 10000",
        "shuffles key ranges",
    ):
        assert text in lines
    assert "thousandths" not in lines
    rare = changed(ZIPPYDB, operations=(("get", 0.9999), ("put", 0.0001)))
    assert any("shares up to thousandths: get 0.999, put 0.000999" in x for x in differences(rare))
    assert any("power law for the zipfian" in line for line in differences(GRAPH))
    odd = replace(changed(ZIPPYDB, records=3001), num=3001)
    assert any("never touches the last 1 keys" in line for line in differences(odd))
    assert differences(make_workload("readrandom", {"num": 9}, "test")) == ()


def test_what_the_workload_says_as_well_is_no_difference() -> None:
    """A workload fitted to a trace of mixgraph has its random numbers, and keys decide."""
    power = Distribution.of("power", a=0.002312, b=0.3467, grains=3000)
    alike = changed(ZIPPYDB, keys=power, operations=(("get", 0.5), ("scan", 0.5)))
    assert any("decides key, operation, scan length" in line for line in differences(alike))
    alike = changed(alike, operation_by_key=1.0, scan_lengths=Distribution.of("constant", size=9))
    (line,) = differences(alike)[1:]  # the first is of the load
    assert "decides key, scan length by one draw" in line
    other = changed(alike, keys=Distribution.of("power", a=0.002312, b=0.3467))
    assert any("has 3000 random numbers for keys and never" in x for x in differences(other))


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (make_workload("udb", {}, "test"), "key_sizes: its keys all have one size"),
        (make_workload("up2x", {}, "test"), "key_sizes"),
        (
            changed(ZIPPYDB, operations=(("merge", 1.0),)),
            "run: operations: it cannot perform this; found 'merge'; allowed: get, put, scan",
        ),
        (changed(ZIPPYDB, operations=(("get", 1.0), ("delete", 1.0))), "found 'delete'"),
        (changed(ZIPPYDB, records=2000), "run: records: it cannot perform this; found '0 to 1999'"),
        (changed(ZIPPYDB, first=5), "run: records"),
        (changed(ZIPPYDB, keys=Distribution.of("latest", theta=0.9)), "run: keys"),
        (changed(ZIPPYDB, keys=Distribution.of("zipfian", theta=1.0)), "zipfian with theta 1"),
        (
            changed(ZIPPYDB, keys=Distribution.of("ranges", ranges=3, a=1, b=-1, c=0, d=0)),
            "it would draw uniform keys; found 'ranges without key_a and key_b'",
        ),
        (
            changed(ZIPPYDB, value_sizes=Distribution.of("uniform", low=10, high=20)),
            "run: value_sizes: it cannot perform this; found 'uniform'; allowed: pareto, constant",
        ),
        (
            changed(
                ZIPPYDB,
                value_sizes=Distribution.of("pareto", theta=0, k=1, sigma=9, low=1, high=99),
            ),
            "found '1 to 99 bytes'",
        ),
        (
            changed(
                ZIPPYDB,
                scan_lengths=Distribution.of("pareto", theta=0, k=1, sigma=9, low=5, high=99),
            ),
            "run: scan_lengths",
        ),
        (rated(StepRate(((1.0, 5.0),))), "run: rate: it holds no rate"),
        (rated(SineRate(9e3, 5e3, 9.0), threads=2), "found '2 threads'"),
        (rated(SineRate(9e3, 0.5, 9.0)), "it divides by the amplitude"),
        (replace(ZIPPYDB, phases=ZIPPYDB.phases[:1] * 2), "fillseq fills only an empty database"),
    ],
)
def test_what_it_cannot_do_is_one_line(workload: Workload, said: str) -> None:
    with pytest.raises(InputError) as error:
        check_rocksdb(workload, "rocksdb")
    assert said in str(error.value)
    assert str(error.value).startswith("--runner rocksdb-db_bench: ")
    assert "\n" not in str(error.value)


def test_latencies_of_a_mix_as_a_whole_are_not_told() -> None:
    unreported = ROCKSDB_PROGRAM.unreported(ZIPPYDB, 2)
    assert "latency_us_p99" in unreported
    assert "throughput_ops_s" not in unreported
    reads = Phase("r", PhaseKind.MEASURE, mix=Mix((("get", 1.0),), records=9), operations=9)
    assert "latency_us_p99" not in ROCKSDB_PROGRAM.unreported(replace(ZIPPYDB, phases=(reads,)), 0)
