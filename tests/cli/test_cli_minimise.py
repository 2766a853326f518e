"""`lsmtune minimise`: its steps on a machine whose true effects are known, and on a real engine."""

from __future__ import annotations

import importlib
import signal
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lsmtune.driver import library_facts, native
from lsmtune.driver.messages import Message
from lsmtune.errors import disk_full
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import Role, StoredMeasurement
from lsmtune.model.config import Build, Config, EngineIdentity
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import RunRequest

sys.path.insert(0, str(Path(__file__).parent.parent / "study"))

from killable_runner import KillableRunner, left
from memory_folder import tmp_path

__all__ = ["tmp_path"]

MIB = 1 << 20
ROCKSDB = EngineIdentity("rocksdb", "10.2.1", None, Build.RELEASE)
# Of these only the first two do something; the third has a risk in the catalogue.
BUFFER, JOBS = "write_buffer_size=128MiB", "max_background_jobs=6"
RISKY, IDLE = "max_write_buffer_number=4", "level0_file_num_compaction_trigger=6"
CANDIDATE = ",".join((BUFFER, JOBS, RISKY, IDLE))


def speed(options: dict[str, object]) -> float:
    factor = 1.5 if options.get("write_buffer_size") == 128 * MIB else 1.0
    return 1e5 * factor * (1.2 if options.get("max_background_jobs") == 6 else 1.0)


def use(monkeypatch: pytest.MonkeyPatch, runner: KillableRunner) -> None:
    """`runner` in place of lsmtune's driver: of `minimise`, and of `verify`."""
    importlib.import_module("lsmtune.proof.standalone")  # where NativeRunner stays a class
    monkeypatch.setattr(native, "NativeRunner", lambda _driver: runner)


@pytest.fixture
def runner(fake_driver: Path, monkeypatch: pytest.MonkeyPatch) -> KillableRunner:
    """It answers for a RocksDB 10.2.1, in place of the driver."""
    runner = KillableRunner(speed=speed, noise=0.005, engine=ROCKSDB)
    monkeypatch.setattr(library_facts, "chosen_engine", lambda *_arguments: (ROCKSDB, ()))
    use(monkeypatch, runner)
    assert fake_driver.is_file()
    return runner


ROCKS = (
    *("minimise", "--engine", "rocksdb", "--workload", "fillrandom", "-w", "num=1000"),
    *("--pairs", "10"),
)
MORE = ("--pairs", "30")  # of many options each step needs more


def stored(path: Path) -> list[StoredMeasurement]:
    with StudyFolder.open(path) as folder:
        return folder.measurements.all()


def names(effects: list[dict[str, Any]]) -> list[str]:
    return [effect["option"] for effect in effects]


@pytest.mark.usefixtures("runner")
class TestResult:
    def test_the_document(self, lsmtune: Any) -> None:
        said = lsmtune(*ROCKS, "default", CANDIDATE, "--json")
        assert said.status == 0, said.err
        found = said.json()
        assert names(found["kept"]) == ["max_background_jobs", "write_buffer_size"]
        assert names(found["gone"]) == [
            "max_write_buffer_number",
            "level0_file_num_compaction_trigger",
        ]
        assert found["configuration"] == {
            "max_background_jobs": 6,
            "write_buffer_size": 128 * MIB,
        }
        buffer = found["kept"][1]
        assert (buffer["value"], buffer["baseline_value"]) == (128 * MIB, None)
        verdict = buffer["verdict"]
        assert verdict["outcome"] == "better"
        assert verdict["ratio_low"] < 1.5 < verdict["ratio_high"]
        assert verdict["confidence"] == pytest.approx(1 - 0.05 / 7)
        assert found["gain"]["outcome"] == "better"
        assert found["gain"]["ratio_low"] < 1.8 < found["gain"]["ratio_high"]
        assert found["loss"]["outcome"] == "not_proven"
        assert (found["complete"], found["why"], found["refused"]) == (True, "", [])
        assert found["crash_test"]["outcome"] == "passed"

    def test_what_people_read(self, lsmtune: Any) -> None:
        said = lsmtune(*ROCKS, "default", CANDIDATE)
        assert said.status == 0, said.err
        table, _, rest = said.out.partition("with the option over without it, higher is better")
        head, *rows = table.splitlines()
        assert head.split() == [
            *("option", "value", "baseline"),
            *("effect", "on", "sustained_throughput_ops_s", "result"),
        ]
        # The risky one first, then by name.
        assert [row.split()[0] for row in rows] == [
            "max_write_buffer_number",
            "level0_file_num_compaction_trigger",
            "max_background_jobs",
            "write_buffer_size",
        ]
        assert rows[3].split()[1:3] == ["128MiB", "64MiB"]
        assert "1.50x (" in rows[3]
        assert [row.split()[-1] for row in rows] == ["gone", "gone", "kept", "kept"]
        assert "2 of 4 options kept" in rest
        assert "gain     1.8" in rest
        assert "loss     no proven difference: " in rest
        assert "crash test: passed (1,000 acknowledged writes" in rest
        short = "max_background_jobs=6,write_buffer_size=134217728"
        assert f"minimal configuration: {short}" in rest
        assert f"lsmtune export {short} --engine rocksdb --format rocksdb-options" in rest
        told = [line for line in said.err.splitlines() if line.startswith("step ")]
        assert told[0] == "step 1 of 7: the whole gain"
        assert told[1] == "step 2 of 7: what max_write_buffer_number does"
        assert told[5:] == [
            "step 6 of 7: what was lost on the way",
            "step 7 of 7: the gain that is left",
        ]

    def test_what_it_prints_can_be_proved_and_exported(self, lsmtune: Any) -> None:
        said = lsmtune(*ROCKS, "default", CANDIDATE, "--output", "MINIMAL")
        assert said.status == 0, said.err
        line = next(line for line in said.out.splitlines() if line.startswith("lsmtune export "))
        exported = lsmtune(*line.split()[1:])
        assert exported.status == 0, exported.err
        assert "the minimal configuration is in MINIMAL" in said.err
        text = Path("MINIMAL").read_text().partition("[Version]")[2]
        assert "write_buffer_size=134217728" in text
        assert "max_background_jobs=6" in text
        assert "level0_file_num_compaction_trigger=6" not in text
        again = lsmtune(*ROCKS, "default", CANDIDATE, "--output", "MINIMAL")
        assert "MINIMAL: exists already; allowed: another --output, or --force" in again.refusal

    def test_the_file_alone_is_on_stdout_where_it_is_asked_for_there(self, lsmtune: Any) -> None:
        said = lsmtune(*ROCKS, "default", BUFFER, "--output", "-")
        assert said.status == 0, said.err
        assert "[DBOptions]" in said.out
        assert "gain     " not in said.out
        assert "1 of 1 options kept" in said.err
        both = lsmtune(*ROCKS, "default", BUFFER, "--output", "-", "--json")
        assert both.status == 2
        assert "--json: stands beside --output -: both would be on stdout" in both.err

    def test_a_file_that_cannot_be_written_is_said_in_the_one_document(
        self, lsmtune: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The document of the result was followed by one of the error, which nobody could read."""

        def refuse(path: Path, _content: object) -> Path:
            raise disk_full(path)

        monkeypatch.setattr("lsmtune.cli.minimise.write_output", refuse)
        said = lsmtune(*ROCKS, "default", BUFFER, "--output", "MINIMAL", "--json")
        assert said.status == 1
        assert said.json()["gain"]["outcome"] == "better"
        assert "MINIMAL: the disk is full" in said.json()["error"]["message"]

    def test_what_is_the_default_anyway_costs_no_run(self, lsmtune: Any) -> None:
        same = "max_background_jobs=2,write_buffer_size=128MiB,max_write_buffer_number=2"
        baseline = "level0_file_num_compaction_trigger=4"
        said = lsmtune(*ROCKS, baseline, same, "--json")
        assert said.status == 0, said.err
        found = said.json()
        assert (names(found["kept"]), found["gone"]) == (["write_buffer_size"], [])
        assert found["same"] == [
            "level0_file_num_compaction_trigger",
            "max_background_jobs",
            "max_write_buffer_number",
        ]
        assert found["configuration"] == {
            "level0_file_num_compaction_trigger": 4,
            "write_buffer_size": 128 * MIB,
        }
        assert found["loss"] is None

    def test_without_a_gain_there_is_nothing_to_minimise(
        self, lsmtune: Any, runner: KillableRunner
    ) -> None:
        said = lsmtune(*ROCKS, "default", IDLE, "--pairs", "10")
        assert said.status == 3, said.err
        assert said.out.startswith("nothing to minimise: there is no proven gain to keep\n")
        assert "no proven gain: " in said.out
        assert len(runner.requests) == 20
        assert runner.kills == []

    def test_the_same_twice_needs_no_run(self, lsmtune: Any, runner: KillableRunner) -> None:
        said = lsmtune(*ROCKS, "write_buffer_size=128MiB", "write_buffer_size=128MiB", "--json")
        assert said.status == 3, said.err
        assert said.json()["why"] == "the two configurations do not differ"
        assert runner.requests == []

    def test_what_does_not_matter_goes(self, lsmtune: Any) -> None:
        said = lsmtune(*ROCKS, "default", CANDIDATE, "--smallest-effect", "40%", "--json")
        assert said.status == 0, said.err
        assert names(said.json()["kept"]) == ["write_buffer_size"]
        assert said.json()["loss"]["outcome"] == "equivalent"


class TestSurvival:
    def test_a_result_that_loses_writes_is_none(self, lsmtune: Any, runner: KillableRunner) -> None:
        runner.leaves = lambda _config: left(lost=5)
        said = lsmtune(*ROCKS, "default", BUFFER, "--output", "OPTIONS")
        assert said.status == 4, said.err
        assert "gain     worse: 1." in said.out
        assert "crash test: failed: lost 5 of 1,000 acknowledged writes after a crash" in said.out
        assert not Path("OPTIONS").exists()
        assert "minimal configuration" not in said.out

    @pytest.mark.parametrize("command", ["verify", "minimise"])
    def test_it_may_be_left_out_and_that_is_said(
        self, lsmtune: Any, runner: KillableRunner, command: str
    ) -> None:
        flags = ("--no-crash-test", "--no-power-test")
        said = lsmtune(command, *ROCKS[1:], "default", BUFFER, *flags)
        assert said.status == 0, said.err
        assert "crash test: not done: --no-crash-test\n" in said.out
        assert "power loss: not done: --no-power-test\n" in said.out
        assert runner.kills == []

    @pytest.mark.parametrize(
        ("flags", "why"),
        [
            (("9", "--no-power-test"), "has no effect beside --no-power-test; found 9"),
            (("0",), "found '0'; allowed: a whole number from 1 to 10000"),
        ],
    )
    def test_a_number_of_states_that_cannot_be_meant(
        self, lsmtune: Any, flags: tuple[str, ...], why: str
    ) -> None:
        said = lsmtune("verify", *ROCKS[1:], "default", BUFFER, "--power-states", *flags)
        assert f"--power-states: {why}" in said.refusal

    def test_verify_kills_what_it_proved_better(self, lsmtune: Any, runner: KillableRunner) -> None:
        said = lsmtune("verify", *ROCKS[1:], "default", BUFFER, "--json")
        assert said.status == 0, said.err
        assert said.json()["crash_test"]["outcome"] == "passed"
        # The runner is not lsmtune's own driver: the verdict stays.
        assert said.json()["power_test"]["outcome"] == "not_done"
        runner.leaves = lambda _config: left(lost=5)
        said = lsmtune("verify", *ROCKS[1:], "default", BUFFER)
        assert said.status == 4, said.err
        assert "lost 5 of 1,000 acknowledged writes after a crash (process crash" in said.out
        assert ": worse: 1." in said.out.splitlines()[0]
        assert "power loss" not in said.out  # who failed once is not tested further


class TestFailures:
    """Configurations that only their parts make bad."""

    def test_an_option_without_which_the_engine_refuses_the_rest_stays(
        self, lsmtune: Any, runner: KillableRunner
    ) -> None:
        def refuse(request: RunRequest) -> Outcome | None:
            options = request.config.options
            lacks = "level0_file_num_compaction_trigger" not in options
            return Outcome.INVALID if lacks and "write_buffer_size" in options else None

        runner.fails = refuse
        said = lsmtune(*ROCKS, "default", f"{BUFFER},{IDLE}", "--dir", "kept", "--json")
        assert said.status == 0, said.err
        needed = said.json()["kept"][0]
        assert needed["option"] == "level0_file_num_compaction_trigger"
        assert needed["why"] == "without it a run ended invalid (made to end invalid)"
        runs = len(runner.requests)
        again = lsmtune(*ROCKS, "default", f"{BUFFER},{IDLE}", "--dir", "kept", "--json")
        assert (again.status, again.json()) == (0, said.json())
        assert len(runner.requests) == runs

    def test_what_may_not_be_recommended_is_not_run(
        self, lsmtune: Any, runner: KillableRunner
    ) -> None:
        """Either side keeps the limit of memory; a mixture of the two would not."""
        baseline = "write_buffer_size=64MiB,max_write_buffer_number=32"
        candidate = "write_buffer_size=1GiB,max_write_buffer_number=2"
        runner.speed = lambda options: 1e5 * (2 if options["write_buffer_size"] == 1 << 30 else 1)
        said = lsmtune(*ROCKS, baseline, candidate, "--json")
        assert said.status == 0, said.err
        number, _size = said.json()["kept"]
        assert number["option"] == "max_write_buffer_number"
        assert number["why"].startswith("without it the configuration is refused: by the memory")
        assert number["verdict"]["pairs"] == 0
        both = [r.config.options for r in runner.requests]
        assert {32, 2} == {options["max_write_buffer_number"] for options in both}
        assert len({(o["max_write_buffer_number"], o["write_buffer_size"]) for o in both}) == 3

    def test_what_the_engine_refuses_at_once_is_the_users_mistake(
        self, lsmtune: Any, runner: KillableRunner
    ) -> None:
        runner.fails = lambda r: (
            Outcome.INVALID if "write_buffer_size" in r.config.options else None
        )
        said = lsmtune(*ROCKS, "default", BUFFER)
        assert said.status == 2
        assert "lsmtune: --candidate: made to end invalid" in said.err

    def test_an_unsafe_candidate_is_refused_as_in_verify(
        self, lsmtune: Any, runner: KillableRunner
    ) -> None:
        said = lsmtune(*ROCKS, *MORE, "default", "rocksdb-gist-winner", "--json")
        assert said.status == 3, said.err
        found = said.json()
        assert len(found["refused"]) == 3
        assert (found["kept"], found["gain"], found["complete"]) == ([], None, True)
        assert found["why"].startswith("refused, not run: ")
        assert runner.requests == []
        said = lsmtune(*ROCKS, *MORE, "default", "rocksdb-gist-winner")
        assert said.out.startswith("rocksdb-gist-winner: refused as a recommendation, and not run:")
        assert "--allow-unsafe NAME" in said.out


class Interrupting(KillableRunner):
    """Is interrupted by Ctrl-C in its run number `at`."""

    at = 0

    def run(
        self,
        request: RunRequest,
        on_message: Callable[[Message], None] | None = None,
        cancel: Any = None,
    ) -> Measurement:
        if len(self.requests) + 1 == self.at:
            signal.raise_signal(signal.SIGINT)
        return super().run(request, on_message, cancel)


class TestResume:
    @pytest.mark.usefixtures("runner")
    @pytest.mark.parametrize(("at", "tried"), [(1, 0), (12, 0), (65, 2)])
    def test_an_interrupted_minimisation_goes_on(
        self, lsmtune: Any, monkeypatch: pytest.MonkeyPatch, at: int, tried: int
    ) -> None:
        stopped = Interrupting(speed=speed, noise=0.005, engine=ROCKSDB)
        stopped.at = at
        use(monkeypatch, stopped)
        said = lsmtune(*ROCKS, "default", CANDIDATE, "--dir", "kept", "--json")
        assert said.status == 130, said.err
        known = said.json()
        assert (known["complete"], known["gain"]) == (False, None)
        assert "interrupted; the runs are kept in kept" in said.err
        stopped.at = 0
        again = lsmtune(*ROCKS, "default", CANDIDATE, "--dir", "kept", "--json")
        assert again.status == 0, again.err
        found = again.json()
        assert found["configuration"].keys() == {"max_background_jobs", "write_buffer_size"}
        for part in ("kept", "gone"):
            assert known[part] == found[part][: len(known[part])]
        assert len(known["kept"]) + len(known["gone"]) == tried
        # The pair that was cut off is lost, and nothing else.
        assert len(stored(Path("kept"))) <= len(stopped.requests) <= len(stored(Path("kept"))) + 2

    def test_without_a_folder_what_is_known_is_printed_and_gone(
        self, lsmtune: Any, home: Path, monkeypatch: pytest.MonkeyPatch, runner: KillableRunner
    ) -> None:
        stopped = Interrupting(speed=runner.speed, engine=ROCKSDB)
        stopped.at = 48
        use(monkeypatch, stopped)
        said = lsmtune(*ROCKS, "default", CANDIDATE)
        assert said.status == 130
        assert "max_write_buffer_number" in said.out
        assert "what is known so far; the rest was not tried" in said.out
        assert "interrupted; nothing was kept" in said.err
        assert list(home.iterdir()) == []

    def test_the_pairs_of_a_verification_count(self, lsmtune: Any, runner: KillableRunner) -> None:
        lsmtune("verify", *ROCKS[1:], "default", CANDIDATE, "--dir", "kept", "--no-crash-test")
        runs = len(runner.requests)
        assert runs >= 12
        said = lsmtune(*ROCKS, "default", CANDIDATE, "--dir", "kept", "--json")
        first = said.json()["first"]
        assert first["pairs"] >= runs / 2
        of_first = [r for r in stored(Path("kept")) if r.config.options.keys() == set()]
        assert len(of_first) < runs / 2 + first["pairs"] + 30


def test_pairs_of_different_steps_never_mix(lsmtune: Any, runner: KillableRunner) -> None:
    """The full candidate is candidate in the first steps, and baseline in the one before last."""
    assert runner.requests == []
    said = lsmtune(*ROCKS, "default", CANDIDATE, "--dir", "kept", "--json")
    sides = defaultdict[int, dict[Role, StoredMeasurement]](dict)
    for run in stored(Path("kept")):
        assert run.pair is not None
        assert run.role not in sides[run.pair]
        sides[run.pair][run.role] = run
    steps = defaultdict[tuple[Any, Any], list[tuple[float, float]]](list)
    for pair in sides.values():
        base, cand = pair[Role.PROOF_BASELINE], pair[Role.PROOF_CANDIDATE]
        assert base.measurement.seed == cand.measurement.seed
        key = (str(dict(base.config.options)), str(dict(cand.config.options)))
        values = [run.measurement.phases[-1].sustained_throughput_ops_s for run in (base, cand)]
        steps[key].append((float(values[0] or 0), float(values[1] or 0)))
    found = said.json()
    verdicts = [e["verdict"] for e in (*found["kept"], *found["gone"])]
    verdicts += [found["first"], found["gain"], found["loss"]]
    told = sorted(
        tuple(zip(v["baseline_values"], v["candidate_values"], strict=True)) for v in verdicts
    )
    assert told == sorted(tuple(values) for values in steps.values())
    assert len({run.measurement.seed for run in stored(Path("kept"))}) == len(sides)
    candidate = str(dict(Config(found["candidate"]["options"]).options))
    assert {candidate in key[0] for key in steps} == {candidate in key[1] for key in steps}


@pytest.mark.usefixtures("runner")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["a=1"], "BASELINE CANDIDATE: found 'a=1'; allowed: two, or --candidate"),
        (["--baseline", "default"], "--candidate: is missing: name what is to be proved better"),
        (
            ["default", CANDIDATE, "--pairs", "8"],
            "--pairs: found 8; allowed: at least 9, without which nothing is proved in 7 steps",
        ),
        (["default", BUFFER, "--output", "no/such"], "no/such: no such folder: no"),
        (["default", "write_buffer_size=huge"], "--candidate: "),
        (["default", BUFFER, "--allow-unsafe", "paranoid_checks"], "--allow-unsafe: "),
    ],
)
def test_what_cannot_be_meant(lsmtune: Any, home: Path, arguments: list[str], line: str) -> None:
    rocks = ROCKS[:-2] if "--pairs" in arguments else ROCKS
    assert line in lsmtune(*rocks, *arguments).refusal
    assert list(home.iterdir()) == []


@pytest.mark.usefixtures("fake_driver")
def test_an_engine_without_a_file_of_options(lsmtune: Any) -> None:
    flags = ("--engine", "memory", "--workload", "fillrandom", "default", "a=1")
    refusal = lsmtune("minimise", *flags, "--output", "OPTIONS").refusal
    assert "--output: memory reads no file of options; allowed: with rocksdb" in refusal


@pytest.mark.engine
def test_leveldb_keeps_what_it_needs(
    lsmtune: Any, driver: Path, leveldb_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes so small that it takes seconds; an open file more or less does nothing here."""
    monkeypatch.setenv("LSMTUNE_DRIVER", str(driver))
    engine = ("--engine", "leveldb", "--library", str(leveldb_library))
    workload = ("--workload", "fillrandom", "-w", "num=4000", "--metric", "write_amplification")
    candidate = "write_buffer_size=4MiB,max_open_files=900"
    few = ("--confidence", "90%", "--pairs", "8", "--no-crash-test", "--burst", "--no-guards")
    said = lsmtune(
        *("minimise", *engine, *workload, *few, "write_buffer_size=64KiB", candidate, "--json")
    )
    assert said.status == 0, said.err
    found = said.json()
    assert names(found["kept"]) == ["write_buffer_size"]
    assert names(found["gone"]) == ["max_open_files"]
    assert found["configuration"] == {"write_buffer_size": 4 * MIB}
    assert found["gain"]["ratio_high"] < 1
    assert found["gain"]["direction"] == "minimize"
