from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from database_parts import LOAD, READ, SETTLED, FakeRunner, Requests, contents, phases

from lsmtune.errors import InputError, LsmtuneError
from lsmtune.experiment import databases
from lsmtune.experiment.database_files import find_golden, goldens_in
from lsmtune.experiment.database_key import same_database
from lsmtune.experiment.databases import DatabaseCache
from lsmtune.experiment.files import MARKER, is_owned
from lsmtune.experiment.observer import Observer
from lsmtune.machine.cgroup import MemoryLimit
from lsmtune.model.config import Config
from lsmtune.model.measurement import Measurement, Outcome
from lsmtune.model.request import Limits, Prepared, RunRequest
from lsmtune.model.workload import Workload
from troubles import disk_is_full

pytestmark = pytest.mark.usefixtures("synced")

SIZE_BYTES = 1 << 30
KEPT = {"000007.sst", "000009.sst", "CURRENT", "IDENTITY", "MANIFEST-000005", "000010.log"}
KEPT |= {"OPTIONS-000011"}


@dataclass
class Watcher(Observer):
    """Remembers what it was told."""

    layouts: list[Config] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def database_loading(self, _load: Workload, layout: Config) -> None:
        self.layouts.append(layout)

    def warning(self, text: str) -> None:
        self.warnings.append(text)


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def watcher() -> Watcher:
    return Watcher()


@pytest.fixture
def cache(tmp_path: Path, runner: FakeRunner, watcher: Watcher) -> DatabaseCache:
    return DatabaseCache(tmp_path / "databases", runner, SIZE_BYTES, observer=watcher)


def only_golden(cache: DatabaseCache) -> Path:
    (golden,) = goldens_in(cache.directory)
    return golden.path


def test_the_first_run_loads_and_the_next_ones_copy(
    cache: DatabaseCache, runner: FakeRunner, watcher: Watcher, make_request: Requests
) -> None:
    requests = [make_request(max_background_jobs=jobs) for jobs in (2, 4, 8)]
    prepared = [cache.prepare(request) for request in requests]
    assert len(runner.requests) == 1
    for request, ready in zip(requests, prepared, strict=True):
        ledger = request.directory / "ledger"
        assert ready == replace(
            request, load_seed=ready.load_seed, prepared=Prepared(ledger, phases=2)
        )
        assert ledger.read_text() == f"ledger of {ready.load_seed}"
        assert contents(request.directory / "db").keys() == KEPT
    assert len(watcher.layouts) == 1
    assert not watcher.warnings
    assert len(list(goldens_in(cache.directory))) == 1


def test_requests_of_one_layout_share_a_database(make_request: Requests) -> None:
    request = make_request(write_buffer_size=1 << 20)
    runtime = make_request(write_buffer_size=1 << 20, max_background_jobs=8)
    assert same_database(request, runtime)
    assert not same_database(request, make_request(write_buffer_size=2 << 20))
    assert not same_database(request, replace(request, load_seed=3))
    reads = phases(READ)
    assert same_database(replace(request, workload=reads), replace(runtime, workload=reads))


def test_what_a_golden_database_is_loaded_with(
    cache: DatabaseCache, runner: FakeRunner, watcher: Watcher, make_request: Requests
) -> None:
    request = replace(
        make_request(write_buffer_size=1 << 20, max_background_jobs=8),
        cpus=(1,),
        slices=50,
        trial=3,
    )
    cache.prepare(request)
    (load,) = runner.requests
    assert load.config.options == {"write_buffer_size": 1 << 20}
    assert [phase.name for phase in load.workload.phases] == ["load", "settle"]
    assert (load.cpus, load.slices, load.trial, load.limits) == ((), 0, None, request.limits)
    assert load.seed == load.load_seed
    assert load.save_ledger == load.directory / "ledger"
    assert load.directory.parent == cache.directory
    assert watcher.layouts == [load.config]


def test_another_layout_or_seed_is_another_database(
    cache: DatabaseCache, runner: FakeRunner, make_request: Requests
) -> None:
    requests = [
        make_request(),
        make_request(write_buffer_size=1 << 20),
        make_request(load_seed=1),
        make_request(load_seed=2),
    ]
    for request in [*requests, *requests]:
        fresh = replace(request, directory=make_request().directory)
        cache.prepare(fresh)
    assert len(runner.requests) == 4


def test_tables_are_linked_read_only_and_the_rest_is_copied(
    cache: DatabaseCache, make_request: Requests
) -> None:
    request = make_request()
    cache.prepare(request)
    golden = only_golden(cache)
    for name in KEPT:
        original, copy = golden / "db" / name, request.directory / "db" / name
        assert original.samefile(copy) == name.endswith(".sst")
        if name.endswith(".sst"):
            assert stat.S_IMODE(copy.stat().st_mode) == 0o444
    (request.directory / "db" / "MANIFEST-000005").write_text("a run went on with it")
    (request.directory / "db" / "000007.sst").unlink()
    found = find_golden(golden)
    assert found is not None
    assert found.damage() == ""


def test_a_golden_database_holds_only_what_belongs_to_it(
    cache: DatabaseCache, make_request: Requests
) -> None:
    cache.prepare(make_request())
    golden = only_golden(cache)
    assert is_owned(cache.directory)
    assert is_owned(golden)
    names = {entry.name for entry in golden.iterdir()}
    assert names == {MARKER, "db", "ledger", "golden.json", "ready"}
    found = find_golden(golden)
    assert found is not None
    fingerprint = found.facts.fingerprint
    assert fingerprint.files.keys() == KEPT
    assert fingerprint.files_per_level == SETTLED.files_per_level
    assert fingerprint.bytes_per_level == SETTLED.bytes_per_level


def test_all_of_it_is_synced_before_it_is_ready(
    cache: DatabaseCache, make_request: Requests, synced: list[Path]
) -> None:
    cache.prepare(make_request())
    (ready,) = (place for place, path in enumerate(synced) if path.name == "ready")
    building = synced[ready].parent
    assert building.name.endswith(".building")
    first = {building / name for name in ("db", "ledger", "golden.json", MARKER)}
    assert {building, *first, *(building / "db" / name for name in KEPT)} <= set(synced[:ready])
    assert synced[ready + 1 :] == [building, cache.directory]


def test_a_load_that_is_not_settled_is_settled_in_the_workload_of_the_run(
    cache: DatabaseCache, make_request: Requests
) -> None:
    ready = cache.prepare(make_request(workload=phases(LOAD, READ)))
    assert [phase.name for phase in ready.workload.phases] == ["load", "settle", "readrandom"]
    assert ready.prepared is not None
    assert ready.prepared.phases == 2


def test_what_cannot_start_from_a_copy_comes_back_as_it_was(
    cache: DatabaseCache, runner: FakeRunner, watcher: Watcher, make_request: Requests
) -> None:
    for request in (make_request(workload=phases(READ)), make_request(engine="memory")):
        assert cache.prepare(request) is request
    assert not runner.requests
    assert not watcher.layouts
    assert not watcher.warnings
    assert not cache.directory.exists()


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.TIMEOUT, Outcome.INVALID])
def test_a_load_that_fails_is_left_to_the_run_and_not_tried_again(
    cache: DatabaseCache,
    runner: FakeRunner,
    watcher: Watcher,
    make_request: Requests,
    outcome: Outcome,
) -> None:
    runner.outcome = outcome
    first, second = make_request(), make_request()
    assert cache.prepare(first) is first
    assert cache.prepare(second) is second
    assert len(runner.requests) == 1
    why = f"loading the database ended {outcome}: it {outcome} while it loaded"
    assert watcher.warnings == [why]
    assert not any(first.directory.iterdir())
    assert {entry.name for entry in cache.directory.iterdir()} == {MARKER}


def test_a_load_that_failed_is_tried_again_with_more_to_spend(
    cache: DatabaseCache, runner: FakeRunner, make_request: Requests
) -> None:
    runner.outcome = Outcome.TIMEOUT
    cache.prepare(make_request(limits=Limits(1.0, 1 << 30, 1 << 30)))
    runner.outcome = Outcome.OK
    assert cache.prepare(make_request(limits=Limits(1.0, 1 << 30, 1 << 20))).prepared is None
    assert cache.prepare(make_request(limits=Limits(2.0, 1 << 30, 1 << 30))).prepared is not None


def test_a_cancelled_load_leaves_nothing_and_is_tried_again(
    cache: DatabaseCache, make_request: Requests
) -> None:
    cancel = threading.Event()
    cancel.set()
    request = make_request()
    assert cache.prepare(request, cancel) is request
    assert {entry.name for entry in cache.directory.iterdir()} == {MARKER}
    assert cache.prepare(request).prepared is not None


def test_an_error_of_the_runner_is_raised_and_leaves_nothing(
    tmp_path: Path, make_request: Requests
) -> None:
    class Broken(FakeRunner):
        def run(self, request: RunRequest, *_others: object) -> Measurement:
            (request.directory / "db").mkdir()
            raise LsmtuneError("no driver")

    cache = DatabaseCache(tmp_path / "databases", Broken(), SIZE_BYTES)
    with pytest.raises(LsmtuneError, match="no driver"):
        cache.prepare(make_request())
    assert not [entry for entry in cache.directory.iterdir() if entry.is_dir()]


Damage = Callable[[Path], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "table gone": (lambda golden: (golden / "db/000007.sst").unlink(), "000007.sst is missing"),
    "table cut": (lambda golden: cut(golden / "db/000007.sst"), "000007.sst has 100 bytes"),
    "file added": (lambda golden: (golden / "db/000012.sst").touch(), "000012.sst was added"),
    "no database": (lambda golden: (golden / "db").rename(golden / "away"), "cannot be read"),
    "no ledger": (lambda golden: (golden / "ledger").unlink(), "ledger is missing"),
}


def cut(file: Path) -> None:
    file.chmod(0o644)
    os.truncate(file, 100)


@pytest.mark.parametrize(("damage", "why"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_golden_database_is_loaded_again(
    cache: DatabaseCache,
    runner: FakeRunner,
    watcher: Watcher,
    make_request: Requests,
    damage: Damage,
    why: str,
) -> None:
    cache.prepare(make_request())
    damage(only_golden(cache))
    request = make_request()
    assert cache.prepare(request).prepared is not None
    assert len(runner.requests) == 2
    assert contents(request.directory / "db").keys() == KEPT
    (told,) = watcher.warnings
    assert told.startswith("loaded again: ")
    assert why in told


@pytest.mark.parametrize("left", ["", "{", "[1]", '{"key": {}}'])
def test_a_golden_database_without_its_facts_is_loaded_again(
    cache: DatabaseCache, runner: FakeRunner, make_request: Requests, left: str
) -> None:
    cache.prepare(make_request())
    (only_golden(cache) / "golden.json").write_text(left)
    assert cache.prepare(make_request()).prepared is not None
    assert len(runner.requests) == 2


def test_files_that_compaction_by_age_would_rewrite_are_loaded_again(
    tmp_path: Path, runner: FakeRunner, make_request: Requests
) -> None:
    now_s = [1e9]
    cache = DatabaseCache(tmp_path / "databases", runner, SIZE_BYTES, wall_clock=lambda: now_s[0])
    for ttl, used_after_s, loads in ((3600, 800, 1), (3600, 1000, 2), (0, 5e5, 1), (0, 1e6, 2)):
        runner.requests.clear()
        cache.prepare(make_request(ttl=ttl))
        now_s[0] += used_after_s
        cache.prepare(make_request(ttl=ttl))
        assert len(runner.requests) == loads
        now_s[0] += 1e8


def test_something_strange_in_its_place_is_left_alone(
    cache: DatabaseCache, make_request: Requests
) -> None:
    cache.prepare(make_request())
    golden = only_golden(cache)
    golden.rename(cache.directory / "away")
    golden.mkdir()
    (golden / "thesis.tex").write_text("years of work")
    with pytest.raises(LsmtuneError, match="not deleted: it bears no"):
        cache.prepare(make_request())
    assert (golden / "thesis.tex").read_text() == "years of work"


def test_a_folder_that_is_not_ours_is_refused(tmp_path: Path, make_request: Requests) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="this folder is not ours"):
        DatabaseCache(tmp_path, FakeRunner(), SIZE_BYTES).prepare(make_request())


def test_where_memory_is_short_a_run_reads_its_pages_itself_and_shares_them_with_nobody(
    cache: DatabaseCache, make_request: Requests
) -> None:
    """The kernel charges a cached page to whoever read it first: runs had memory for nothing.

    On YCSB A with 256 MiB a run made 53,000 ops/s from a copy, and 25,000 on its own load.
    """
    short = replace(make_request().limits, memory_bytes=1)
    plenty = cache.prepare(make_request()).prepared
    assert plenty is not None
    assert not plenty.own_pages
    alone = replace(make_request(), limits=short)
    prepared = cache.prepare(alone).prepared
    assert prepared is not None
    assert prepared.own_pages
    table = only_golden(cache) / "db" / "000007.sst"
    assert table.samefile(alone.directory / "db" / "000007.sst")
    beside = replace(make_request(), limits=short, alone=False)
    prepared = cache.prepare(beside).prepared
    assert prepared is not None
    assert prepared.own_pages
    assert not table.samefile(beside.directory / "db" / "000007.sst")


def test_where_this_process_has_less_memory_than_a_run_that_is_what_is_short(
    cache: DatabaseCache, make_request: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container the control group of a run has no more than the container."""
    monkeypatch.setattr(databases, "memory_limit", lambda: MemoryLimit(1, None))
    prepared = cache.prepare(make_request()).prepared
    assert prepared is not None
    assert prepared.own_pages


def test_tables_are_copied_with_the_reason_where_links_do_not_reach(
    cache: DatabaseCache,
    watcher: Watcher,
    make_request: Requests,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_arguments: object, **_named: object) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(os, "link", refused)
    request = make_request()
    assert cache.prepare(request).prepared is not None
    assert watcher.warnings == ["tables were copied, not linked: Invalid cross-device link"]
    copy = request.directory / "db"
    assert contents(copy) == contents(only_golden(cache) / "db")
    assert (copy / "000007.sst").stat().st_nlink == 1


def test_a_full_disk_is_a_clear_error(
    cache: DatabaseCache, make_request: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", disk_is_full)
    with pytest.raises(LsmtuneError, match="the disk is full"):
        cache.prepare(make_request())
