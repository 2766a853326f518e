from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from database_parts import TABLE_BYTES, FakeRunner, Requests, contents

from lsmtune.errors import LsmtuneError
from lsmtune.experiment.database_files import goldens_in, remove_golden
from lsmtune.experiment.databases import DatabaseCache, make_room, remove_unfinished
from lsmtune.experiment.files import MARKER, claim
from lsmtune.experiment.observer import Observer

pytestmark = pytest.mark.usefixtures("synced")

GOLDEN_BYTES = 2 * TABLE_BYTES + 6 * 4096  # two tables, five small files and the ledger
LAYOUTS = (1 << 20, 2 << 20, 3 << 20)


class Notes(Observer):
    """Remembers what was out of the ordinary."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def warning(self, text: str) -> None:
        self.seen.append(text)


@pytest.fixture
def clock() -> Iterator[float]:
    """A second later at every look."""
    return iter(map(float, count(1_000_000)))


def layouts(cache: DatabaseCache) -> set[int]:
    """The write buffers of the golden databases."""
    texts = [(golden.path / "golden.json").read_text() for golden in goldens_in(cache.directory)]
    return {size for size in LAYOUTS for text in texts if f'"{size}"' in text}


def test_the_one_not_used_for_longest_goes(
    tmp_path: Path, make_request: Requests, clock: Iterator[float]
) -> None:
    runner = FakeRunner()
    cache = DatabaseCache(
        tmp_path / "databases", runner, 2 * GOLDEN_BYTES, wall_clock=lambda: next(clock)
    )
    one, two, three = LAYOUTS
    for size in (one, two, one, three):
        cache.prepare(make_request(write_buffer_size=size))
    assert layouts(cache) == {one, three}
    assert len(runner.requests) == 3
    names = {entry.name for entry in cache.directory.iterdir()}
    assert len(names) == 1 + 2, "the marker, and a folder for each"
    assert sum(golden.facts.disk_bytes for golden in goldens_in(cache.directory)) <= (
        2 * GOLDEN_BYTES
    )


def test_a_copy_outlives_its_golden_database(tmp_path: Path, make_request: Requests) -> None:
    cache = DatabaseCache(tmp_path / "databases", FakeRunner(), GOLDEN_BYTES)
    first = make_request(write_buffer_size=LAYOUTS[0])
    cache.prepare(first)
    before = contents(first.directory / "db")
    cache.prepare(make_request(write_buffer_size=LAYOUTS[1]))
    assert layouts(cache) == {LAYOUTS[1]}
    assert contents(first.directory / "db") == before


def test_one_larger_than_the_cache_is_given_to_its_run(
    tmp_path: Path, make_request: Requests
) -> None:
    notes, runner = Notes(), FakeRunner()
    kept = DatabaseCache(tmp_path / "databases", runner, GOLDEN_BYTES)
    kept.prepare(make_request())
    small = DatabaseCache(tmp_path / "databases", runner, 1000, observer=notes)
    request = make_request(write_buffer_size=LAYOUTS[0])
    ready = small.prepare(request)
    assert ready.prepared is not None
    assert ready.prepared.ledger.is_file()
    assert "000007.sst" in contents(request.directory / "db")
    assert notes.seen == [
        "the loaded database was not kept: 40KiB do not fit into the 1000B for loaded databases"
    ]
    assert len(list(goldens_in(small.directory))) == 1, "nothing was removed in vain"


def test_a_cache_leaves_the_disk_room_for_a_run(
    tmp_path: Path, make_request: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = DatabaseCache(tmp_path / "databases", FakeRunner(), 1 << 40)
    for size in LAYOUTS[:2]:
        cache.prepare(make_request(write_buffer_size=size))
    free_bytes = iter([3000, 3000, 5000, 4096, 4096, 4096])
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=next(free_bytes)))
    assert make_room(cache.directory, 2500, 1 << 40) == ""
    assert layouts(cache) == {LAYOUTS[1]}
    why = make_room(cache.directory, 2500, 1 << 40)
    assert why == "the disk has only 4KiB free"


def test_no_database_is_removed_where_all_of_them_would_not_make_room(
    tmp_path: Path, make_request: Requests, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk each load removed the databases of all others, and was not kept itself."""
    cache = DatabaseCache(tmp_path / "databases", FakeRunner(), 1 << 40)
    for size in LAYOUTS[:2]:
        cache.prepare(make_request(write_buffer_size=size))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=1000))
    assert make_room(cache.directory, 1 << 20, 1 << 40) == "the disk has only 1000B free"
    assert layouts(cache) == set(LAYOUTS[:2])


def test_leftovers_are_swept_and_all_else_stays(tmp_path: Path, make_request: Requests) -> None:
    directory = tmp_path / "databases"
    cache = DatabaseCache(directory, FakeRunner(), 1 << 30)
    cache.prepare(make_request())
    (whole,) = goldens_in(directory)
    half, empty, building, strange = (directory / (letter * 64) for letter in "abcd")
    for folder in (half, building.with_name(building.name + ".x1_y.building")):
        claim(folder, "golden database", directory)
        (folder / "db").mkdir()
        (folder / "db" / "000007.sst").touch(mode=0o444)
    empty.mkdir()
    strange.mkdir()
    (strange / "thesis.tex").touch()
    (directory / "notes.txt").touch()
    remove_unfinished(directory)
    assert {entry.name for entry in directory.iterdir()} == {
        MARKER,
        "notes.txt",
        strange.name,
        whole.path.name,
    }


def test_a_folder_without_our_marker_is_never_removed(tmp_path: Path) -> None:
    strange = tmp_path / ("a" * 64)
    strange.mkdir()
    (strange / "thesis.tex").touch()
    with pytest.raises(LsmtuneError, match="not deleted"):
        remove_golden(strange)
    link = tmp_path / ("b" * 64)
    claim(tmp_path / "real", "golden database")
    link.symlink_to(tmp_path / "real")
    with pytest.raises(LsmtuneError, match="not deleted"):
        remove_golden(link)
    assert (tmp_path / "real" / MARKER).is_file()
