from pathlib import Path

from fake_root import put

from lsmtune.machine.facts import machine_facts


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
