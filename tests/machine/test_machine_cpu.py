"""Processors, and what is said of a machine, on made-up ones."""

from __future__ import annotations

from pathlib import Path

from fake_root import put

from lsmtune.machine import host as cpu
from lsmtune.machine.findings import machine_facts
from lsmtune.machine.host import disk_waiting_share


def test_an_empty_machine_tells_nothing(tmp_path: Path) -> None:
    assert cpu.governors(tmp_path) == ()
    assert cpu.clock_source(tmp_path) is None
    assert cpu.cores_share_units(tmp_path) is None
    assert cpu.processor_name(tmp_path) is None
    assert disk_waiting_share(tmp_path) is None


def test_governors_of_all_processors_are_told_once(tmp_path: Path) -> None:
    for number, governor in ((0, "performance"), (1, "powersave"), (10, "performance")):
        place = f"sys/devices/system/cpu/cpu{number}/cpufreq/scaling_governor"
        put(tmp_path, place, f"{governor}\n")
    put(tmp_path, "sys/devices/system/cpu/cpufreq/scaling_governor", "not one of a processor\n")
    assert cpu.governors(tmp_path) == ("performance", "powersave")


def test_threads_of_one_core_are_known(tmp_path: Path) -> None:
    for text, shared in (("1", True), ("0", False), ("forceoff", None)):
        put(tmp_path, "sys/devices/system/cpu/smt/active", f"{text}\n")
        assert cpu.cores_share_units(tmp_path) is shared


def test_pressure_is_the_share_of_the_last_minute(tmp_path: Path) -> None:
    text = "some avg10=1.00 avg60=12.50 avg300=3.00 total=9\nfull avg10=0 avg60=99 avg300=0 total=1"
    put(tmp_path, "proc/pressure/io", text)
    assert disk_waiting_share(tmp_path) == 0.125


# --- what is said of a machine


def test_this_machine_says_where_databases_lie(tmp_path: Path) -> None:
    facts = machine_facts(tmp_path)
    assert int(facts["processors"]) >= 1
    assert facts["memory"].endswith("iB")
    assert " on " in facts["filesystem"]


def test_what_a_machine_does_not_tell_is_left_out(tmp_path: Path) -> None:
    put(tmp_path, "proc/cpuinfo", "processor : 0\nmodel name : Abacus 3000\n")
    facts = machine_facts(tmp_path, root=tmp_path)
    assert facts["processor"] == "Abacus 3000"
    assert "governor" not in facts
    assert "filesystem" not in facts
