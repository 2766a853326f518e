"""`auto`: cost models, coordinates, starts, and the process that stands on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from optuna.trial import TrialState

from lsmtune.engines.catalogue import catalogue_defaults
from lsmtune.model.goal import Direction, WeightedWorkload
from lsmtune.search.auto import KIND, Fit, Known, trend_of
from lsmtune.search.coordinates import Coordinates
from lsmtune.search.cost_models import (
    amplification_ratios,
    draw_machine,
    kinds_of,
    seconds_of,
    unitless,
)
from lsmtune.search.in_memory_study import TrialJudgement, ValueNoise
from lsmtune.search.optuna_samplers import FewerTrials
from lsmtune.search.sampler import PROMISE, AmplificationGuard, Problem, SamplerContext
from lsmtune.search.starts import (
    at_no_price,
    cheapest_first,
    model_optima,
    preset_starts,
    projected,
    textbook_starts,
)
from lsmtune.search.unit_space import make_unit_space
from lsmtune.space.prior import Prior
from lsmtune.testing.search import MIB, choice, make_searcher, number, space_of, when
from lsmtune.workloads.stated import make_workload

BUFFER = "write_buffer_size"
CACHE = "block_based_table_factory.block_cache"
FILTER = "block_based_table_factory.filter_policy"
TREE = space_of(
    number("write_buffer_size", MIB, 512 * MIB, log=True, step=MIB),
    number("max_write_buffer_number", 2, 8),
    number("level0_file_num_compaction_trigger", 2, 16),
    number("max_bytes_for_level_base", 16 * MIB, 4096 * MIB, log=True),
    number("target_file_size_base", 4 * MIB, 256 * MIB, log=True),
    number(CACHE, 8 * MIB, 1024 * MIB, log=True),
    choice(FILTER, "nullptr", "bloomfilter:10"),
    choice("compression", "kSnappyCompression", "kLZ4Compression", "kZSTD"),
)
UNIT = make_unit_space(TREE)


def problem(
    *names: str, engine: str = "rocksdb", num: int = 3_000_000, weights: Sequence[float] = (1.0,)
) -> Problem:
    workloads = [
        WeightedWorkload(
            name, make_workload(name, {"num": num, "value_bytes": 1000}, "test"), weight
        )
        for name, weight in zip(names or ("overwrite",), weights, strict=True)
    ]
    return Problem(engine, workloads, catalogue_defaults(engine), 2**30, 4)


def costs(about: Problem, *configs: dict[str, object]) -> np.ndarray:
    """Mean log seconds of the default point with each of `configs` in it, (n,)."""
    default = TREE.point_of({}, about.defaults)
    points = UNIT.encode([TREE.variables_of({**default, **config}) for config in configs])
    rng = np.random.default_rng(0)
    machines = [draw_machine(rng) for _ in range(20)]
    return np.log(seconds_of(about, UNIT, points, machines)).mean(axis=1)


def test_columns_are_what_points_decode_to() -> None:
    space = space_of(
        number("plain", MIB, 64 * MIB, log=True, step=MIB),
        number("special", 1, 20, specials=[(-1, 0.4)]),
        number("binned", 1, 1000, log=True, bins=7),
        number("drawn", 1, 64, prior=Prior("lognormal", 2.0, 1.0)),
        choice("kind", "a", "b"),
        number("under", 0.5, 2.0, integer=False, conditions=when("kind", "b")),
    )
    unit_space = make_unit_space(space)
    points = unit_space.sample(np.random.default_rng(1), 200)
    defaults = {"under": 7.0}
    names = [parameter.name for parameter in space.parameters]
    found = {name: unit_space.column(points, name, defaults.get(name)) for name in names}
    for row, point in enumerate(points):
        variables = unit_space.decode(point)
        values = space.suggest(variables.__getitem__)
        for name, column in found.items():
            wanted = values.get(name, 7.0)
            assert column[row] == (pytest.approx(wanted) if name == "under" else wanted), name
    assert set(unit_space.column(points, "unheard", 3)) == {3}
    assert unit_space.column(points, "nobody") is None


def test_the_cost_models_agree_with_the_textbook() -> None:
    writes, reads = problem("overwrite"), problem("readrandom")
    small, large = costs(writes, {"write_buffer_size": 4 * MIB}, {"write_buffer_size": 128 * MIB})
    assert large < small  # fewer rewrites
    without, filtered = costs(reads, {FILTER: "nullptr"}, {FILTER: "bloomfilter:10"})
    assert filtered < without
    unmatched, matched = costs(
        writes,
        {"max_bytes_for_level_base": 4096 * MIB, "write_buffer_size": 16 * MIB},
        {"max_bytes_for_level_base": 64 * MIB, "write_buffer_size": 16 * MIB},
    )
    assert matched < unmatched  # level 0 to level 1 rewrites all of level 1
    fits, too_large = costs(reads, {CACHE: 256 * MIB}, {CACHE: 1024 * MIB})
    held = {"write_buffer_size": 512 * MIB, "max_write_buffer_number": 8}
    assert costs(reads, {**held, CACHE: 1024 * MIB})[0] > max(fits, too_large)


@pytest.mark.parametrize("name", ["fillrandom", "readrandom", "seekrandom", "readwhilewriting"])
@pytest.mark.parametrize("engine", ["rocksdb", "leveldb"])
def test_costs_are_finite_everywhere(name: str, engine: str) -> None:
    about = problem(name, engine=engine, num=1000)
    rng = np.random.default_rng(3)
    points = UNIT.sample(rng, 500)
    seconds = seconds_of(about, UNIT, points, [draw_machine(rng) for _ in range(5)])
    assert seconds.shape == (500, 5)
    assert np.isfinite(seconds).all()
    assert (seconds > 0).all()
    assert sum(kinds_of(about.workloads[0].workload).values()) == pytest.approx(1.0)


def test_of_several_workloads_all_count_by_their_weight() -> None:
    """A study of a fill and of three times as important reads was begun as one of the fill."""
    pair = "fillrandom", "readrandom"
    mostly_reads, mostly_writes = problem(*pair, weights=(1, 9)), problem(*pair, weights=(9, 1))
    reads = list(preset_starts(problem("readrandom"), UNIT))
    writes = list(preset_starts(problem("fillrandom"), UNIT))
    assert list(preset_starts(mostly_reads, UNIT)) == reads
    assert list(preset_starts(mostly_writes, UNIT)) == writes
    with_filter, without = {FILTER: "bloomfilter:10"}, {FILTER: "nullptr"}
    gains = [
        float(np.subtract(*costs(about, without, with_filter)))
        for about in (problem("readrandom"), mostly_reads, mostly_writes, problem("fillrandom"))
    ]
    assert gains == sorted(gains, reverse=True)
    assert gains[0] > gains[2] + 0.01


def test_trees_of_all_sizes_have_the_same_coordinates() -> None:
    """What is learnt at a scale is said of the others, too."""
    big = problem()
    small = Problem("rocksdb", big.workloads, big.defaults, big.memory_bytes / 8, 4)
    sizes = {
        "write_buffer_size": 128 * MIB,
        "max_bytes_for_level_base": 1024 * MIB,
        "target_file_size_base": 64 * MIB,
        CACHE: 256 * MIB,
    }
    default = TREE.point_of({}, big.defaults)

    def coordinates(about: Problem, divisor: int) -> dict[str, np.ndarray]:
        config = {**default, **{name: size // divisor for name, size in sizes.items()}}
        points = UNIT.encode([TREE.variables_of(config)])
        return unitless(about, UNIT, points)

    whole, eighth = coordinates(big, 1), coordinates(small, 8)
    assert whole.keys() == sizes.keys()
    for name, value in whole.items():
        np.testing.assert_allclose(eighth[name], value, atol=1e-3)
    assert not np.allclose(coordinates(big, 8)["write_buffer_size"], whole["write_buffer_size"])


def test_features_have_these_in_the_place_of_the_options() -> None:
    context = SamplerContext(TREE, 1, {}, (Direction.MAXIMIZE,), problem())
    features, costs = Coordinates(UNIT, context).of(UNIT.sample(np.random.default_rng(0), 300))
    assert np.isfinite(costs).all()
    assert len(costs) == 300
    plain = UNIT.distance_features(UNIT.sample(np.random.default_rng(0), 300))
    assert features.shape == (300, plain.shape[1] + 2)  # and what the cost models say
    changed = [i for i in range(plain.shape[1]) if not np.allclose(features[:, i], plain[:, i])]
    assert len(changed) == 4
    assert np.abs(features).max() < 3.0


def test_the_cost_model_that_is_right_gets_the_weight() -> None:
    """By twenty trials of one of them, with 10 % of noise."""
    context = SamplerContext(TREE, 1, {}, (Direction.MAXIMIZE,), problem())
    rng = np.random.default_rng(0)
    _, costs = Coordinates(UNIT, context).of(UNIT.sample(rng, 60))
    right = int(np.std(costs - costs.mean(axis=1, keepdims=True), axis=0).argmax())
    targets = costs[:, right] + 0.1 * rng.normal(size=60)
    weights = trend_of(costs[:20], targets[:20])
    trend, equal = costs[20:] @ weights, costs[20:].mean(axis=1)
    truth = costs[20:, right] - costs[20:, right].mean()
    errors = [np.std(said - said.mean() - truth) for said in (trend, equal)]
    assert errors[0] < 0.5 * errors[1]
    assert 0.7 < weights.sum() < 1.2
    # An objective that has nothing to do with seconds: the slope goes.
    assert trend_of(costs, rng.normal(size=60)).sum() < 0.4
    # Nor is a slope that is upside down believed.
    assert trend_of(costs, -targets).sum() == 0.0


def test_a_trend_that_is_wrong_is_left_out() -> None:
    """On the landscape `reading` the search stayed where the models had sent it."""
    context = SamplerContext(TREE, 1, {}, (Direction.MAXIMIZE,), problem())
    rng = np.random.default_rng(0)
    points = UNIT.sample(rng, 40)
    features, costs = Coordinates(UNIT, context).of(points)
    rows = np.arange(40)
    misled = costs @ trend_of(costs, costs[:, 3])
    for targets, is_chosen in ((costs[:, 3], True), (np.sin(3 * points[:, 0]) - misled, False)):
        known = SimpleNamespace(targets=targets, variances=np.full(40, 1e-4))
        weights = [trend_of(costs, costs[:, 3]), np.zeros(costs.shape[1])]
        with_trend, without = (Fit.of(features, known, rows, costs, w).evidence for w in weights)
        assert (with_trend > without) is is_chosen


def test_optima_hold_the_constraints_and_differ() -> None:
    about = problem()

    def accepts(values: dict[str, object]) -> str:
        taken = values["write_buffer_size"] * values["max_write_buffer_number"]
        return "" if taken <= 128 * MIB else "too much"

    origin = TREE.point_of({"write_buffer_size": 32 * MIB}, about.defaults)
    found = model_optima(about, UNIT, accepts, origin, seed=5)
    assert 2 <= len(found) <= 4
    assert all(TREE.contains(config) and not accepts(config) for config in found)
    assert len({frozenset(config.items()) for config in found}) == len(found)
    assert found == model_optima(about, UNIT, accepts, origin, seed=5)
    # What no model minds stays where it was, alone or where it has to go together: nothing is read.
    assert {config[FILTER] for config in found} == {origin[FILTER]}
    assert model_optima(about, UNIT, lambda _: "no", origin, seed=5) == []


def test_the_models_know_what_a_smaller_memtable_rewrites() -> None:
    """Of YCSB B, memtables of 8 MiB rewrote 4.2 and 3.6 times what those of 64 MiB do."""
    about = problem("overwrite")
    default = TREE.point_of({}, about.defaults)
    sizes = (8 * MIB, 64 * MIB, 256 * MIB)
    points = UNIT.encode([TREE.variables_of({**default, BUFFER: size}) for size in sizes])
    machines = [draw_machine(np.random.default_rng(0)) for _ in range(5)]
    small, same, large = amplification_ratios(about, UNIT, points, machines)
    assert same == pytest.approx(1.0)
    assert (small > 2.0).all()
    assert (large < 1.0).all()
    # Of the baseline's own options, and none where nothing is written.
    other = replace(about, baseline={BUFFER: 8 * MIB})
    assert amplification_ratios(other, UNIT, points, machines)[0] == pytest.approx(1.0)
    reads = problem("readrandom")
    assert not amplification_ratios(reads, UNIT, points, machines).any()


def test_optima_keep_away_from_the_guard_of_the_write_amplification() -> None:
    """Two of the first six trials on YCSB B had memtables of 8 MiB, and could only break it."""
    workload = make_workload("ycsb-b", {"recordcount": 1_000_000, "compression_ratio": 0.5}, "test")
    workloads = [WeightedWorkload("ycsb-b", workload, 1.0)]
    about = Problem("rocksdb", workloads, catalogue_defaults("rocksdb"), 768 * MIB, 2)
    guarded = replace(about, guard=AmplificationGuard("write_amplification <= 1.5 * baseline", 1.5))
    origin = TREE.point_of({}, about.defaults)
    machines = [draw_machine(np.random.default_rng(0)) for _ in range(20)]

    def largest(of: Problem) -> float:
        found = model_optima(of, UNIT, lambda _: "", origin, seed=5)
        points = UNIT.encode([TREE.variables_of(config) for config in found])
        return float(amplification_ratios(of, UNIT, points, machines).mean(axis=1).max())

    assert largest(guarded) < 1.5 < largest(about)
    context = SamplerContext(TREE, 1, {}, (Direction.MAXIMIZE,), guarded)
    points = UNIT.sample(np.random.default_rng(0), 200)
    ratios = amplification_ratios(about, UNIT, points, machines).mean(axis=1)
    chances = np.exp(Coordinates(UNIT, context).log_chance(points))
    assert chances[ratios < 1.0].min() > 0.5
    assert chances[ratios > 3.0].max() < 0.2
    assert not Coordinates(UNIT, replace(context, problem=about)).log_chance(points).any()


def test_what_writes_more_goes_back_to_the_baseline_and_the_rest_stays() -> None:
    """On YCSB D nobody tried a filter and LZ4 with the memtables of the baseline.

    All trials with a filter had smaller ones, and broke the guard that models held for far away.
    """
    workload = make_workload("ycsb-d", {"recordcount": 1_000_000, "compression_ratio": 0.5}, "test")
    guard = AmplificationGuard("write_amplification <= 1.5 * baseline", 1.5)
    workloads = [WeightedWorkload("ycsb-d", workload, 1.0)]
    known = catalogue_defaults("rocksdb")
    about = Problem("rocksdb", workloads, known, 768 * MIB, 2, guard=guard)
    space = space_of(
        number(BUFFER, MIB, 64 * MIB, log=True, step=MIB),
        number(CACHE, 8 * MIB, 384 * MIB, log=True, step=8 * MIB),  # of which presets take most
        choice(FILTER, "nullptr", "bloomfilter:10:false"),
        choice("compression", "kSnappyCompression", "kLZ4Compression"),
    )
    unit_space, origin = make_unit_space(space), space.point_of({}, known)
    free = {**origin, FILTER: "bloomfilter:10:false", "compression": "kLZ4Compression"}
    smaller = {**free, BUFFER: 37 * MIB}
    assert at_no_price(about, unit_space, smaller, origin, 1) == free
    assert at_no_price(about, unit_space, free, origin, 1) == free
    starts = textbook_starts(about, unit_space, lambda _: "", origin, 1)
    assert free in starts
    assert origin not in starts
    unguarded = replace(about, guard=None)
    assert free not in textbook_starts(unguarded, unit_space, lambda _: "", origin, 1)
    assert free not in textbook_starts(about, unit_space, lambda values: values == free, origin, 1)


def test_a_filter_of_a_preset_is_that_of_the_space_in_other_words() -> None:
    """`init` writes `bloomfilter:10:false`, which old versions want; presets began without it."""
    space = space_of(
        number(BUFFER, MIB, 64 * MIB, log=True, step=MIB),
        choice(FILTER, "nullptr", "bloomfilter:10:false"),
    )
    reads = preset_starts(problem("readrandom"), make_unit_space(space))
    assert reads["rocksdb-basic-tuning"][FILTER] == "bloomfilter:10:false"
    mine = space.point_of({FILTER: "bloomfilter:10", BUFFER: 64 * MIB})
    assert mine == {FILTER: "bloomfilter:10:false", BUFFER: 64 * MIB}


def test_presets_become_points_of_the_space() -> None:
    reads = preset_starts(problem("readrandom"), UNIT)
    assert "rocksdb-optimize-for-point-lookup" in reads
    assert "rocksdb-gist-winner" not in reads
    assert reads["rocksdb-basic-tuning"][FILTER] == "bloomfilter:10"
    assert reads["rocksdb-basic-tuning"]["compression"] == "kLZ4Compression"
    assert all(TREE.contains(point) for point in reads.values())
    writes = preset_starts(problem("overwrite"), UNIT)
    assert "rocksdb-optimize-level-style-compaction" in writes
    assert "rocksdb-optimize-for-point-lookup" not in writes


def test_of_the_optima_that_comes_first_of_which_all_models_expect_the_most() -> None:
    about = problem("readrandom")
    default = TREE.point_of({}, about.defaults)
    filtered, small = {**default, FILTER: "bloomfilter:10"}, {**default, CACHE: 8 * MIB}
    for points in ([small, default, filtered], [default, filtered, small]):
        assert cheapest_first(about, UNIT, points, 1) == [filtered, default, small]
    assert cheapest_first(about, UNIT, [], 1) == []


def test_what_lies_outside_is_moved_to_the_nearest_value() -> None:
    space = space_of(
        number("write_buffer_size", 4 * MIB, 64 * MIB, log=True, step=4 * MIB),
        number("jobs", 1, 5, step=2),
        number("binned", 1, 100, bins=3),
        choice("compression", "kNoCompression", "kZSTD", default="kZSTD"),
    )
    unit_space = make_unit_space(space)
    options = {
        "write_buffer_size": 512 * MIB,
        "jobs": 16,
        "binned": 50,
        "compression": "kLZ4Compression",
    }
    point = projected(unit_space, options, {})
    assert point == {
        "write_buffer_size": 64 * MIB,
        "jobs": 5,
        "binned": 50,
        "compression": "kZSTD",
    }
    assert space.contains(point)
    assert projected(unit_space, {}, {}) is None  # nobody knows a value of `jobs`


def told(searcher: object, count: int) -> None:
    """`count` trials: better with large buffers, slow with many of them."""
    for _ in range(count):
        proposal = searcher.ask()
        buffer = proposal.values["write_buffer_size"] / MIB
        searcher.tell(proposal.number, TrialState.COMPLETE, [100.0 + 10 * math.log2(buffer)])


def test_of_two_that_are_as_good_the_quicker_is_tried() -> None:
    space = space_of(number("x", 0.0, 1.0, integer=False), number("y", 0.0, 1.0, integer=False))

    def late_y(slow: float) -> float:
        searcher = make_searcher("auto", space, given={"hedge": 0.0, "startup_trials": 8})
        asked: list[dict[str, float]] = []
        for _ in range(24):
            judged = {
                n: TrialJudgement(
                    TrialState.COMPLETE,
                    (10.0 + values["x"],),
                    noise=ValueNoise(1e-6, 1, math.exp(slow * values["y"])),
                )
                for n, values in enumerate(asked)
            }
            searcher.rejudge(judged)
            proposal = searcher.ask()
            asked.append(dict(proposal.values))
            searcher.tell(proposal.number, TrialState.COMPLETE, [10.0 + proposal.values["x"]])
        return float(np.mean([values["y"] for values in asked[12:]]))

    assert late_y(3.0) < late_y(-3.0) - 0.2


def test_a_lucky_run_is_not_expected_to_be_the_best() -> None:
    """Of four trials that ran on more data, three were lucky: their neighbours were slow."""
    searcher = make_searcher("auto", space_of(number("x", 0.0, 1.0, integer=False)))
    assert searcher.expected() == {}
    places = np.linspace(0.0, 1.0, 21)
    judged = {}
    for number_, x in enumerate(places.tolist()):
        searcher.tell(searcher.ask({"x": x}).number, TrialState.COMPLETE, [1.0])
        value = math.exp(x) if number_ != 4 else 3.0
        noise = ValueNoise((0.2 * value) ** 2, 1, 1.0)
        judged[number_] = TrialJudgement(TrialState.COMPLETE, (value,), noise=noise)
    searcher.rejudge(judged)
    expected = searcher.expected()
    assert expected.keys() == judged.keys()
    best_first = sorted(expected, key=lambda n: expected[n].mean, reverse=True)
    assert 4 not in best_first[:4]
    assert best_first[0] >= 18
    assert make_searcher("tpe", space_of(number("x", 0, 9))).expected() == {}


def test_what_may_not_run_promises_no_gain() -> None:
    """A search went on for what lay beyond its memory limit, where nothing else was to be had."""
    space = space_of(number("x", 0.0, 1.0, integer=False))

    def promise(most: float) -> float:
        searcher = make_searcher(
            "auto",
            space,
            given={"hedge": 0.0, "startup_trials": 6},
            accepts=lambda values: "" if values["x"] <= most else "is too large",
        )
        for x in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
            searcher.tell(searcher.ask({"x": x}).number, TrialState.COMPLETE, [math.exp(x)])
        return float(searcher.ask().trial.system_attrs[PROMISE])

    assert 0.0 < promise(0.5) < 0.8 * promise(1.0)


def layouts_tried(load_s: float) -> int:
    """Layouts of 18 trials; a run takes a second, and the first one of a layout its load besides.

    Caches help, which are no layout, and larger buffers a little.
    """
    layout = frozenset({"write_buffer_size", "compression", FILTER})
    about = replace(problem("readrandom"), layout=layout)
    searcher = make_searcher("auto", TREE, given={"hedge": 0.0, "startup_trials": 6}, problem=about)
    tried: list[tuple[object, ...]] = []
    judged: dict[int, TrialJudgement] = {}
    for index in range(24):
        proposal = searcher.ask()
        tried.append(tuple(proposal.values[name] for name in sorted(layout)))
        cache, buffer = (math.log2(proposal.values[n] / MIB) for n in (CACHE, "write_buffer_size"))
        value = 100.0 + 10 * cache + buffer
        whole_s = 1.0 + (0.0 if tried[-1] in tried[:-1] else load_s)
        noise = ValueNoise(1e-6, 1, whole_s, 1.0)
        judged[index] = TrialJudgement(TrialState.COMPLETE, (value,), noise=noise)
        searcher.tell(proposal.number, TrialState.COMPLETE, [value])
        searcher.rejudge(judged)
    return len(set(tried[6:]))


def test_where_a_load_is_long_several_settings_of_one_layout_are_tried() -> None:
    without, with_load = layouts_tried(0.0), layouts_tried(7.0)
    assert with_load <= 0.7 * without, (with_load, without)


def test_the_hedge_is_plain_tpe() -> None:
    given = {"startup_trials": 4, "hedge": 1.0}
    hedged = make_searcher("auto", TREE, given=given, problem=problem())
    plain = make_searcher("tpe", TREE, given={})
    for _ in range(16):
        one, other = hedged.ask(), plain.ask()
        assert dict(one.values) == dict(other.values)
        for searcher, proposal in ((hedged, one), (plain, other)):
            value = float(proposal.values["max_write_buffer_number"])
            searcher.tell(proposal.number, TrialState.COMPLETE, [value])


def test_knowledge_of_the_tree_and_restarts_give_one_sequence() -> None:
    about = problem()
    one, other = (make_searcher("auto", TREE, problem=about) for _ in range(2))
    told(one, 14)
    told(other, 14)
    assert dict(one.ask().values) == dict(other.ask().values)


def test_a_value_that_broke_a_constraint_is_no_better_than_the_best_that_holds() -> None:
    searcher = make_searcher("auto", TREE)
    for value, broken in ((5.0, -1.0), (50.0, 2.0), (1.0, 2.0), (3.0, -1.0)):
        proposal = searcher.ask()
        searcher.tell(proposal.number, TrialState.COMPLETE, [value], {"rss": broken})
    proposal = searcher.ask()
    searcher.tell(proposal.number, TrialState.FAIL)
    study = searcher._study.as_optuna()
    reader = KIND.make(
        SamplerContext(TREE, 0, {s.name: s.default for s in KIND.settings}, (Direction.MAXIMIZE,))
    ).reader
    history = reader.read(study.get_trials(deepcopy=False), 9, study.direction)
    known = Known.of(history, -1.0)
    np.testing.assert_allclose(known.targets[:4], -np.log([5.0, 5.0, 1.0, 3.0]))
    assert known.failed.tolist() == [4]
    assert known.best_first.tolist()[:2] == [0, 3]
    assert known.holds.tolist()[:4] == [True, False, False, True]


def test_of_a_long_history_the_hedge_sees_the_best_and_the_latest() -> None:
    searcher = make_searcher("random", TREE)
    for place in range(20):
        value = float(place * 7 % 20)
        searcher.tell(searcher.ask().number, TrialState.COMPLETE, [value])
    study = searcher._study.as_optuna()
    seen = FewerTrials(study, 8).get_trials(deepcopy=False)
    assert [t.number for t in seen] == [5, 8, 11, 14, 16, 17, 18, 19]
    assert [t.values[0] for t in seen[:4]] == [15.0, 16.0, 17.0, 18.0]
    assert len(FewerTrials(study, 20).get_trials()) == 20
