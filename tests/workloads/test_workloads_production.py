"""The production workloads: published figures, their sources, and what was never published."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from lsmtune.errors import InputError
from lsmtune.model.distribution import Distribution
from lsmtune.model.workload import SineRate
from lsmtune.workloads.stated import FAMILIES, make_workload

PUBLISHED = Path(__file__).resolve().parents[3] / "shared/data/rocksdb/mixgraph-params.json"
NAMES = ("zippydb", "udb", "up2x", "social-graph")


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_says_where_it_is_from_or_that_nobody_published_it(name: str) -> None:
    figures = FAMILIES[name].figures
    assert any(figure.source for figure in figures)
    assert any(not figure.source for figure in figures)
    assert len({figure.name for figure in figures}) == len(figures)


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the shared data is not here")
def test_zippydb_is_that_of_the_published_command() -> None:
    document = json.loads(PUBLISHED.read_text())
    wiki, pull = document["zippydb_wiki"], document["zippydb_pr5953"]
    workload = make_workload("zippydb", {"arrival": "sine"}, "-w")
    run = workload.phases[-1]
    assert run.mix is not None
    shares = {"get": "mix_get_ratio", "put": "mix_put_ratio", "scan": "mix_seek_ratio"}
    assert dict(run.mix.operations) == {name: wiki[key] for name, key in shares.items()}
    ranges = {part: wiki[f"keyrange_dist_{part}"] for part in "abcd"}
    assert run.mix.keys == Distribution.of(
        "ranges",
        ranges=wiki["keyrange_num"],
        **ranges,
        key_a=pull["key_dist_a"],
        key_b=pull["key_dist_b"],
    )
    assert run.mix.value_sizes is not None
    assert run.mix.value_sizes.get("k") == wiki["value_k"]
    assert run.mix.scan_lengths is not None
    assert run.mix.scan_lengths.get("sigma") == wiki["iter_sigma"]
    assert workload.key_bytes == wiki["key_size"]
    assert run.rate == SineRate(wiki["sine_d"], wiki["sine_a"], 2 * math.pi / wiki["sine_b"])


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the shared data is not here")
def test_the_others_have_the_published_sizes() -> None:
    document = json.loads(PUBLISHED.read_text())
    for name, table in (("udb", "UDB"), ("up2x", "UP2X")):
        workload = make_workload(name, {}, "-w")
        sizes = document["fast20_table2_mean_sd_bytes"][table]
        assert workload.key_sizes is not None
        assert [workload.key_sizes.get(part) for part in ("mean", "sd")] == sizes["key"]
        mix = workload.phases[-1].mix
        assert mix is not None
        assert mix.value_sizes is not None
        assert [mix.value_sizes.get(part) for part in ("mean", "sd")] == sizes["value"]
    social = document["social_graph_wiki"]
    mix = make_workload("social-graph", {}, "-w").phases[-1].mix
    assert mix is not None
    assert mix.value_sizes is not None
    assert mix.value_sizes.get("sigma") == social["value_sigma"]
    assert mix.keys == Distribution.of("zipfian", theta=-social["key_dist_b"])


def test_the_wave_of_the_social_graph_keeps_its_place_when_it_is_shortened() -> None:
    given = {"arrival": "sine", "period_s": "60s"}
    rate = make_workload("social-graph", given, "-w").phases[-1].rate
    assert isinstance(rate, SineRate)
    at_start = rate.mean_ops_s + rate.amplitude_ops_s * math.sin(2 * math.pi * rate.offset_s / 60)
    assert at_start == pytest.approx(147.9 * math.sin(-1.734) + 1064.2)


def test_parameters_that_contradict_each_other() -> None:
    with pytest.raises(InputError, match="period_s: has no effect without arrival=sine"):
        make_workload("zippydb", {"period_s": 5}, "-w")
    with pytest.raises(InputError, match="arrival: has no effect in udb: no rate of it"):
        make_workload("udb", {"arrival": "sine"}, "-w")
    # The driver refused it, run by run.
    with pytest.raises(InputError, match=r"^-w: num: found 29; allowed: at least 30, a key for e"):
        make_workload("zippydb", {"num": 29}, "-w")
    with pytest.raises(InputError, match="operations: has no effect together with duration_s"):
        make_workload("up2x", {"operations": 5, "duration_s": 5}, "-w")
