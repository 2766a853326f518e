"""`lsmtune tune` and `lsmtune verify`, on a driver without an engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from lsmtune.driver.native import NativeRunner
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.store import MeasurementStore
from lsmtune.model.config import Config, EngineIdentity
from lsmtune.model.verdict import Verdict, VerdictOutcome
from lsmtune.programs.runner import RunnerChoice
from lsmtune.study.observer import TuneResult
from lsmtune.study.size import RUN_SIZE, RunSize
from lsmtune.study.spec import Spec
from patience import PATIENCE_S, wait_until

VERIFY = ("verify", "--engine", "memory", "--workload", "fillrandom", "-w", "num=1000")
SIX = ("--pairs", "6")

pytestmark = pytest.mark.usefixtures("fake_driver")


def test_tune_prints_options_verdict_and_paths(lsmtune: Any, study: Path) -> None:
    said = lsmtune("tune", str(study))
    assert said.status == 0, said.err
    folder = study.with_name("study.lsmtune")
    assert "no proven gain: 1.000x the baseline" in said.out
    assert str(folder / "result" / "report.html") in said.out
    assert (folder / "result" / "report.html").read_text().startswith("<!")
    assert "trial 0: 133,333 ops/s, 1.00x the baseline's sustained throughput, the same" in said.err
    assert list((folder / "runs").iterdir()) == []


def test_tune_as_json_continues_and_requires_a_gain(lsmtune: Any, study: Path) -> None:
    first = lsmtune("tune", str(study), "--trials", "1", "--json")
    assert first.status == 0, first.err
    document = first.json()
    assert document["trials"] == 1
    assert document["verdict"]["outcome"] == "not_proven"
    assert Path(document["paths"]["report"]).is_file()
    assert document["paths"]["deployable"] is None
    second = lsmtune("tune", str(study), "--trials", "3", "--json", "--require-gain")
    assert second.status == 3
    assert second.json()["trials"] == 3
    assert "continuing: 1 trial is stored" in second.err


def test_a_study_that_goes_on_on_another_machine_says_what_differs(
    lsmtune: Any, study: Path
) -> None:
    """Its new trials were compared with those of the old machine without a word."""
    assert "not as when" not in lsmtune("tune", str(study), "--trials", "1").err
    assert "not as when" not in lsmtune("tune", str(study), "--trials", "2").err
    store = MeasurementStore(study.with_name("study.lsmtune") / "measurements.db")
    store.set_fact("machine", {**store.fact("machine"), "processors": "1024", "plugin: x": "1"})
    store.close()
    said = lsmtune("tune", str(study), "--trials", "3")
    assert f"study began: processors {os.cpu_count()} (was 1024); what runs now" in said.err


def test_tune_in_a_folder_that_is_not_ours_changes_nothing(
    lsmtune: Any, study: Path, home: Path
) -> None:
    (home / "mine").mkdir()
    (home / "mine" / "thesis.tex").write_text("x")
    assert "not ours" in lsmtune("tune", str(study), "--dir", "mine").refusal
    assert [p.name for p in (home / "mine").iterdir()] == ["thesis.tex"]


def test_a_budget_on_the_command_line_needs_none_in_the_file(lsmtune: Any, study: Path) -> None:
    study.write_text(study.read_text().replace("budget: {trials: 2}\n", ""))
    assert "study.yaml: budget: missing" in lsmtune("tune", str(study)).refusal
    said = lsmtune("tune", str(study), "--trials", "1")
    assert said.status == 0, said.err
    assert lsmtune("report", str(study), "--format", "md").status == 0


def test_a_budget_that_is_too_short_is_refused_and_nothing_is_run(
    lsmtune: Any, study: Path
) -> None:
    """A run's length is known where its phases have durations, and else after the first one."""
    timed = "workload: {name: readrandom, num: 1000, duration_s: 5}"
    study.write_text(study.read_text().replace("workload: {name: fillrandom, num: 1000}", timed))
    assert "--budget: found '20s'; allowed: at least 1m10s" in (
        lsmtune("tune", str(study), "--budget", "20s").refusal
    )
    assert not study.with_name("study.lsmtune").exists()


def test_a_budget_that_left_nothing_for_the_search_is_a_failure(lsmtune: Any, study: Path) -> None:
    said = lsmtune("tune", str(study), "--budget", "1ms")
    assert (said.status, said.out) == (1, "")
    assert "nothing was tried: a time budget of 1ms leaves nothing for the search" in said.err


def test_a_bad_budget_and_a_missing_study(lsmtune: Any, study: Path) -> None:
    assert "--budget: found 'soon'" in lsmtune("tune", str(study), "--budget", "soon").refusal
    assert lsmtune("tune", "nothing.yaml").status == 2


def test_verify_of_equals_is_exit_3_and_leaves_nothing(lsmtune: Any, home: Path) -> None:
    said = lsmtune(*VERIFY, *SIX, "--candidate", "write_buffer_size=64KiB", "--json")
    assert said.status == 3, said.err
    document = said.json()
    assert document["verdict"]["outcome"] == "not_proven"
    assert document["verdict"]["pairs"] == 6
    assert document["verdict"]["ratio"] == 1.0
    assert document["candidate"]["options"] == {"write_buffer_size": 65536}
    assert list(home.iterdir()) == []
    human = lsmtune(*VERIFY, *SIX, "--candidate", "write_buffer_size=64KiB")
    assert human.out.startswith("write_buffer_size=64KiB: no proven gain: 1.000x the baseline")


def test_verify_keeps_its_runs_in_dir_and_goes_on_from_them(lsmtune: Any, study: Path) -> None:
    arguments = (*VERIFY, *SIX, "--candidate", "a=1", "--dir", "proof", "--json")
    assert lsmtune(*arguments).err.count(": 133,333 ops/s") == 12
    assert lsmtune(*arguments).err.count(": 133,333 ops/s") == 0
    more = lsmtune(*arguments, "--pairs", "8")
    assert more.err.count(": 133,333 ops/s") == 4
    assert more.json()["verdict"]["pairs"] == 8
    other = lsmtune(*VERIFY, "-w", "value_bytes=10", *arguments[len(VERIFY) :])
    assert other.status == 2
    assert "cannot be compared" in other.err
    # A verification is no search, and has no database of Optuna, which takes a second to make.
    assert not (study.parent / "proof" / "study.db").exists()
    assert "cannot be compared" in lsmtune("tune", str(study), "--dir", "proof").refusal
    # It stood there as a study whose file has a wrong field.
    assert lsmtune("ls", "--json").json() == {"studies": []}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--candidate", "nonsense"], "--candidate: "),
        (["--candidate", "a=1", "--metric", "speed"], "--metric: found 'speed'"),
        (
            ["--candidate", "a=1", "--pairs", "4"],
            "--pairs: found 4; allowed: at least 6, without which nothing is proved at 0.95",
        ),
        (["--candidate", "fake=fail,line=1"], "--candidate: write_bufer_size: unknown option"),
        (["--baseline", "fake=fail,line=1", "--candidate", "a=1"], "--baseline: write_bufer"),
        ([], "--candidate: is missing: name what is to be proved better, or BASELINE CANDIDATE"),
    ],
)
def test_bad_verifications(lsmtune: Any, home: Path, arguments: list[str], line: str) -> None:
    said = lsmtune(*VERIFY, *arguments)
    assert said.status == 2
    assert line in said.err.splitlines()[-1]
    assert list(home.iterdir()) == []


class Running:
    """The command line in a process of its own."""

    def __init__(self, arguments: list[str], folder: Path, before: str = "") -> None:
        program = f"import sys\nfrom lsmtune.cli.main import main\n{before}\nsys.exit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def driver(self, runs: Path) -> psutil.Process:
        """The driver of the run in a folder in `runs`, once it has its request and hangs."""
        wait_until(lambda: list(runs.rglob("request.json")))
        (driver,) = psutil.Process(self.process.pid).children()
        return driver

    def finish(self) -> tuple[int, str, str]:
        try:
            out, err = self.process.communicate(timeout=PATIENCE_S)
        finally:  # tests of other rooms look at what their process has started
            self.process.kill()
            self.process.wait()
        return self.process.returncode, out, err


@pytest.fixture
def hanging_study(study: Path) -> Path:
    study.write_text(f"{study.read_text()}options: {{fake: hang}}\n")
    return study


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_keeps_the_state_and_leaves_nothing(
    hanging_study: Path, number: signal.Signals
) -> None:
    """Ctrl-C once, and a polite kill."""
    running = Running(["tune", "study.yaml", "--json"], hanging_study.parent)
    driver = running.driver(hanging_study.parent / "study.lsmtune" / "runs")
    running.process.send_signal(number)
    status, out, err = running.finish()
    assert status == 130, err
    assert err.count("Ctrl-C again") == 1
    assert "interrupted; the same command continues" in err
    assert "Traceback" not in err
    document = json.loads(out)
    assert document["interrupted"] is True
    assert document["error"]["status"] == 130
    assert not driver.is_running()
    assert list((hanging_study.parent / "study.lsmtune" / "runs").iterdir()) == []


def test_a_second_interrupt_ends_it_at_once(hanging_study: Path) -> None:
    # The first one alone does not end it while the second one is on its way.
    patient = f"from lsmtune.driver import watch\nwatch.CANCEL_GRACE_S = {PATIENCE_S}"
    running = Running(["tune", "study.yaml", "--json"], hanging_study.parent, patient)
    driver = running.driver(hanging_study.parent / "study.lsmtune" / "runs")
    running.process.send_signal(signal.SIGINT)
    assert running.process.stderr is not None
    while "Ctrl-C again" not in (line := running.process.stderr.readline()):
        assert line, "the first interrupt was not answered"
    running.process.send_signal(signal.SIGINT)
    status, out, err = running.finish()
    assert status == 130
    assert json.loads(out) == {"error": {"status": 130, "message": "interrupted"}}
    assert "Traceback" not in err
    assert not driver.is_running()


def test_a_front_is_printed_and_in_the_document(lsmtune: Any, study: Path) -> None:
    text = study.read_text()
    assert "objective" not in text
    several = "objectives: [{metric: throughput_ops_s}, {metric: elapsed_s}]\n"
    study.write_text(text + several)
    said = lsmtune("tune", str(study))
    assert said.status == 0, said.err
    assert "front: " in said.out
    assert "(picked)" in said.out
    assert "a name, such as study.yaml#" in said.out
    # By the file it would be a trial of the folder beside the file.
    elsewhere = lsmtune("tune", str(study), "--dir", "elsewhere")
    assert "a name, such as elsewhere#" in elsewhere.out, elsewhere.err
    document = lsmtune("tune", str(study), "--json").json()
    (picked,) = (row for row in document["front"] if row["picked"])
    assert picked["trial"] == document["best"]["trial"]
    assert picked["values"] == document["best"]["values"]
    assert [other["metric"] for other in document["verdict"]["others"]][:2] in (
        [],
        ["throughput_ops_s", "elapsed_s"],
    )


def test_where_every_trial_breaks_a_constraint_no_line_says_that_none_gave_a_value(
    lsmtune: Any, study: Path
) -> None:
    study.write_text(study.read_text() + "constraints: [throughput_ops_s <= 1]\n")
    said = lsmtune("tune", str(study))
    assert said.status == 0, said.err
    assert "every trial broke a constraint (throughput_ops_s <= 1)" in said.out
    assert "no configuration to deploy: no trial met what the study asks of one" in said.out
    assert "no trial gave a value" not in said.out


def test_a_trace_that_is_not_there_is_said_before_its_study_is_opened(
    lsmtune: Any, study: Path
) -> None:
    """Runs are compared by its bytes: a study that was stopped early began anew without a word."""
    phase = "{name: run, kind: measure, replay: {path: gone.trace}}"
    workload = f"version: 1\nname: again\nnum: 9\nphases:\n  - {phase}\n"
    study.with_name("again.yaml").write_text(workload)
    stated = "{name: fillrandom, num: 1000}"
    study.write_text(study.read_text().replace(stated, "{file: again.yaml}"))
    refusal = lsmtune("tune", str(study)).refusal
    assert "workload" in refusal
    assert "phase run replays what is no file" in refusal
    assert not study.with_suffix(".lsmtune").exists()


def test_a_winner_is_kept_for_the_workload_that_its_study_states(
    lsmtune: Any, study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of 40 times the length put it too far from the same study, begun anew."""
    study.write_text(study.read_text().replace("name: memory", "name: rocksdb"))
    chosen = RunnerChoice("fake", NativeRunner(Path("fake")), EngineIdentity("rocksdb", "10.2.1"))
    gain = Verdict(VerdictOutcome.BETTER, "x", "maximize", 0.95, 6, ratio_low=1.4, ratio_high=1.6)
    best = Config({"write_buffer_size": 1 << 20}, "study.yaml#1")

    def proved(_spec: Spec, folder: StudyFolder, *_: object, **_more: object) -> TuneResult:
        folder.measurements.set_fact(RUN_SIZE, RunSize(longer=(40.0,)))
        return TuneResult(Config(), best=best, verdict=gain, interrupted=True)

    monkeypatch.setattr("lsmtune.cli.tune.tune_runner", lambda _spec: chosen)
    monkeypatch.setattr("lsmtune.cli.tune._search_and_prove", proved)
    assert lsmtune("tune", str(study)).status == 130
    (line,) = (Path(os.environ["LSMTUNE_HOME"]) / "winners.jsonl").read_text().splitlines()
    assert json.loads(line)["data_share"] == pytest.approx(1000 * 116 / (4 << 30))
