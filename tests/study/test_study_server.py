"""A study whose rows are on a PostgreSQL server: the same study, and as clear when it cannot be."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from fake_runner import ENGINE, FakeRunner
from study_parts import Recorder, make_spec

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment.folder import StudyFolder
from lsmtune.experiment.server import SERVER_FILE, Server, ServerConnection, parsed_url
from lsmtune.report.analysis import StudyAnalysis
from lsmtune.report.source import read_study
from lsmtune.study.loop import tune
from lsmtune.study.start import open_study


def tuned_at(home: Path, storage: str, trials: int) -> list[object]:
    """What is stored of a study that ended: its rows, its trials, and its verdict."""
    noise = "{calibration: 1, anchors: 4, repeats: 3}"
    spec = make_spec(home, budget=f"{{trials: {trials}}}", sampler="tpe", noise=noise)
    runner = FakeRunner()
    with open_study(home / "s", spec, storage=storage) as folder:
        tune(spec, folder, runner, ENGINE, Recorder(), stop=threading.Event(), clock=runner.clock)
    with StudyFolder.open(home / "s") as folder:
        rows = [replace(row, id=0) for row in folder.measurements.all()]
        trials_of = [(t.number, t.params, t.values, t.user_attrs) for t in folder.trials()]
        analysis = StudyAnalysis(read_study(folder), None)
        assert len(analysis.history.trials) == trials
        return [rows, trials_of, folder.measurements.verdict(), folder.measurements.spent_s()]


def test_a_server_holds_what_files_would(tmp_path: Path, server: str) -> None:
    kept = {}
    for name, storage in (("files", ""), ("server", server)):
        (tmp_path / name).mkdir()
        tuned_at(tmp_path / name, storage, 6)
        # It goes on where it was, and knows where that is.
        kept[name] = tuned_at(tmp_path / name, "", 12)
    assert kept["server"] == kept["files"]
    here = {path.name for path in (tmp_path / "server" / "s").iterdir()}
    assert not here & {"study.db", "measurements.db"}


def test_two_studies_share_a_server_and_neither_moves(tmp_path: Path, server: str) -> None:
    spec = make_spec(tmp_path)
    for name in ("one", "other"):
        with open_study(tmp_path / name, spec, storage=server) as folder:
            assert folder.measurements.fact("mine") is None
            folder.measurements.set_fact("mine", name)
    elsewhere = server.replace("/postgres?", "/template1?")
    with pytest.raises(InputError, match="does not move"):
        open_study(tmp_path / "one", spec, storage=elsewhere)
    open_study(tmp_path / "files", spec).close()
    with pytest.raises(InputError, match="does not move"):
        open_study(tmp_path / "files", spec, storage=server)


def test_a_server_that_lets_us_make_no_tables_is_not_kept(tmp_path: Path, server: str) -> None:
    """The folder was bound to it: neither another server nor files were accepted any more."""
    connection = ServerConnection(Server(parsed_url(server, "test"), "public"), read_only=False)
    connection.execute("CREATE ROLE reader LOGIN")
    connection.close()
    spec, as_reader = make_spec(tmp_path), server.replace("tuner@", "reader@")
    with pytest.raises(LsmtuneError, match="permission denied"):
        open_study(tmp_path / "s", spec, storage=as_reader)
    open_study(tmp_path / "s", spec, storage=server).close()
    with pytest.raises(InputError, match="does not move"):
        open_study(tmp_path / "s", spec, storage=as_reader)
    open_study(tmp_path / "s", spec).close()  # it is still kept there


def test_a_study_that_was_corrected_opens_again(tmp_path: Path, server: str) -> None:
    """What its wrong file had left was cleared, and with it the version of the tables."""
    wrong, right = (make_spec(tmp_path, more=f"limits: {{deadline: {s}s}}") for s in (1, 9))
    for spec in (wrong, right, right):
        with open_study(tmp_path / "s", spec, storage=server) as folder:
            folder.measurements.set_fact("mine", 1)
    with open_study(tmp_path / "s", right) as folder:
        assert folder.measurements.fact("mine") == 1
        folder.measurements.set_fact("version", None)  # as an older lsmtune left it
    for _ in range(2):
        with pytest.raises(LsmtuneError, match="has no version"):
            StudyFolder.open(tmp_path / "s")


def test_a_verdict_on_a_server_is_seen_by_who_follows_the_study(
    tmp_path: Path, server: str
) -> None:
    """`server.json` told of new runs alone, so that a live page might never show the verdict."""
    with open_study(tmp_path / "s", make_spec(tmp_path), storage=server) as folder:
        os.utime(tmp_path / "s" / SERVER_FILE, (1.0, 1.0))
        folder.measurements.set_verdict(None)
        assert folder.measurements.changed_unix_s() > 1.0


def test_a_server_that_does_not_answer_is_named_in_one_line(tmp_path: Path, server: str) -> None:
    gone = f"postgresql://tuner@/postgres?host={tmp_path}"
    with pytest.raises(InputError, match="a server that answers") as refused:
        open_study(tmp_path / "s", make_spec(tmp_path), storage=gone)
    assert str(tmp_path) in str(refused.value)
    assert "\n" not in str(refused.value)
    open_study(tmp_path / "s", make_spec(tmp_path), storage=server).close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("mysql://host/db", "postgresql://USER@HOST"),
        ("postgresql://host", "postgresql://USER@HOST"),
        ("no url", "postgresql://USER@HOST"),
        ("postgresql://me@host:PORT/db", "postgresql://USER@HOST"),
        # SQLAlchemy cannot take it apart, so that it cannot leave the password out.
        ("postgresql://me:secret@host:PORT/db", "postgresql://USER@HOST"),
        ("postgresql://me:secret@host/db", "a password would be kept"),
        ("postgresql://me@host/db?password=secret", "a password would be kept"),
        ("postgresql:///db?host=/run&sslpassword=secret", "a password would be kept"),
        ("mysql://host/db?password=secret", "postgresql://USER@HOST"),
    ],
)
def test_what_is_no_server_is_refused(url: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        parsed_url(url, "--storage")
    assert "secret" not in str(refused.value)


def test_a_setting_that_no_server_has_is_refused_in_one_line() -> None:
    """`hots` for `host` ended in an unexpected error."""
    pytest.importorskip("psycopg")
    server = Server(parsed_url("postgresql:///db?hots=/run", "--storage"), "public")
    with pytest.raises(InputError, match='invalid connection option "hots"'):
        ServerConnection(server, read_only=True)
