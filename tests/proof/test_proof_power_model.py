"""What states a power loss may leave, on logs made for it."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.proof.file_log import FileChange, History, Kind, Record, history_of
from lsmtune.proof.power_model import (
    SECTOR_BYTES,
    Cut,
    Kept,
    Moment,
    State,
    contents,
    losses,
    ordered_allows,
)
from lsmtune.proof.power_states import (
    ORDERED_MAKERS,
    POSIX_MAKERS,
    cuts,
    lessened,
    states,
)

FOLDER = 1
NAMES = "abc"


@dataclass
class Disk:
    """Makes a log as the kernel would: a removed file's number goes to the next new one."""

    records: list[Record] = field(
        default_factory=lambda: [Record(Kind.HELLO, file=FOLDER, path="/db")]
    )
    tree: dict[str, int] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)
    live: dict[int, bytes] = field(default_factory=dict)

    def note(self, kind: Kind, **fields: object) -> None:
        self.records.append(replace(Record(kind), **fields))  # type: ignore[arg-type]

    def create(self, name: str) -> None:
        if name not in self.tree:
            number = next(n for n in range(2, 99) if n not in self.tree.values())
            self.tree[name], self.sizes[number], self.live[number] = number, 0, b""
            self.note(Kind.OPENED, flags=1, file=number, path=f"/db/{name}")

    def write(self, name: str, offset: int, length: int) -> None:
        """Bytes that no other write has, as long as there are fewer than 256 of them."""
        if name in self.tree:
            number, fill = self.tree[name], len(self.records) % 255 + 1
            data = bytes([fill]) * length
            self.note(Kind.WRITTEN, file=number, offset=offset, data=data, length=length)
            self.sizes[number] = max(self.sizes[number], offset + length)
            before = self.live[number].ljust(offset, b"\0")
            self.live[number] = before[:offset] + data + before[offset + length :]

    def append(self, name: str, length: int) -> None:
        if name in self.tree:
            self.write(name, self.sizes[self.tree[name]], length)

    def truncate(self, name: str, size: int) -> None:
        if name in self.tree:
            self.note(Kind.RESIZED, file=self.tree[name], length=size)
            self.sizes[self.tree[name]] = size
            self.live[self.tree[name]] = self.live[self.tree[name]][:size].ljust(size, b"\0")

    def sync(self, name: str) -> None:
        if name in self.tree:
            self.note(Kind.SYNCHED, file=self.tree[name])

    def sync_folder(self) -> None:
        self.note(Kind.SYNCHED, flags=4, file=FOLDER)

    def rename(self, name: str, other: str) -> None:
        if name in self.tree and name != other:
            self.note(Kind.RENAMED, path=f"/db/{name}", other=f"/db/{other}")
            self.tree[other] = self.tree.pop(name)

    def unlink(self, name: str) -> None:
        if self.tree.pop(name, None):
            self.note(Kind.UNLINKED, path=f"/db/{name}")

    @property
    def history(self) -> History:
        return history_of(self.records)


_name, _length = st.sampled_from(NAMES), st.integers(1, 3000)
_APPENDS = [
    st.tuples(st.just("create"), _name),
    st.tuples(st.just("append"), _name, _length),
    st.tuples(st.just("sync"), _name),
    st.tuples(st.just("sync_folder")),
    st.tuples(st.just("rename"), _name, _name),
    st.tuples(st.just("unlink"), _name),
]
_OVERWRITES = [
    st.tuples(st.just("write"), _name, st.integers(0, 5000), _length),
    st.tuples(st.just("truncate"), _name, st.integers(0, 5000)),
]


@st.composite
def disks(draw: st.DrawFn, *, appends_only: bool = False) -> Disk:
    disk = Disk()
    for name in NAMES[:2]:
        disk.create(name)
    kinds = _APPENDS if appends_only else _APPENDS + _OVERWRITES
    for method, *arguments in draw(st.lists(st.one_of(kinds), min_size=1, max_size=25)):
        getattr(disk, method)(*arguments)
    return disk


@st.composite
def moments(draw: st.DrawFn, *, appends_only: bool = False) -> Moment:
    history = draw(disks(appends_only=appends_only)).history
    cut = Cut(draw(st.integers(1, history.records)))
    written = [c for changes in history.files.values() for c in changes if c.at == cut.records - 1]
    if written and written[0].data and draw(st.booleans()):
        first = -written[0].offset % SECTOR_BYTES or SECTOR_BYTES
        ends = range(first, len(written[0].data), SECTOR_BYTES)
        if ends:
            cut = replace(cut, torn=draw(st.sampled_from(ends)))
    return Moment(history, cut)


def made(moment: Moment, seed: int) -> Iterator[State]:
    """A state by each maker."""
    for make in (*ORDERED_MAKERS, *POSIX_MAKERS):
        state = make(moment, random.Random(seed))
        if state is not None:
            yield state


def images(moment: Moment, file: int) -> list[bytes]:
    """What a file held after each of its changes."""
    content, all_of_them = bytearray(), [b""]
    for change in [change for part in moment.changes(file) for change in part]:
        change.apply(content)
        all_of_them.append(bytes(content))
    return all_of_them


def sectors(content: bytes) -> list[bytes]:
    starts = range(0, len(content), SECTOR_BYTES)
    return [content[start : start + SECTOR_BYTES] for start in starts]


@given(moments(), st.integers(0, 99))
def test_what_is_synced_is_in_every_state(moment: Moment, seed: int) -> None:
    """Names that no change came to since the folder's sync, and the blocks of synced files."""
    history, records = moment.history, moment.cut.records - (moment.cut.torn is not None)
    folder_synced = history.durable_to(0, records)
    later = {name for e in moment.entries if e.at > folder_synced for _, name, _ in e.entries}
    names = {}
    for entry in moment.entries:
        if entry.at < folder_synced:
            names |= {name: file for _, name, file in entry.entries}
    for state in made(moment, seed):
        files, _ = contents(moment, state)
        for name in names.keys() - later:
            assert (name in files) == (names[name] is not None)
            if names[name] is not None:
                _holds_what_is_synced(moment, names[name], files[name])


def _holds_what_is_synced(moment: Moment, file: int, content: bytes) -> None:
    synced, unsynced = moment.changes(file)
    expected = bytearray()
    for change in synced:
        change.apply(expected)
    if not unsynced:
        assert content == expected
    cache, touched = bytearray(expected), set()
    for change in unsynced:
        changed = change.apply(cache)
        touched.update(range(changed.start // SECTOR_BYTES, -(-changed.stop // SECTOR_BYTES)))
    if not any(change.size is not None for change in unsynced):
        assert len(content) >= len(expected)
        for number, sector in enumerate(sectors(bytes(expected))):
            if number not in touched:
                start = number * SECTOR_BYTES
                assert content[start : start + len(sector)] == sector


@given(moments(), st.integers(0, 99))
def test_a_state_has_no_bytes_that_were_never_written_there(moment: Moment, seed: int) -> None:
    writes = {
        change.data[0]: range(change.offset, change.offset + len(change.data))
        for changes in moment.history.files.values()
        for change in changes
        if change.data and change.at < moment.cut.records
    }
    for state in made(moment, seed):
        for content in contents(moment, state)[0].values():
            for fill in set(content) - {0}:
                places = [place for place, byte in enumerate(content) if byte == fill]
                assert places[0] in writes[fill]
                assert places[-1] in writes[fill]


@given(moments(), st.integers(0, 99))
def test_a_block_is_as_it_was_at_one_time(moment: Moment, seed: int) -> None:
    """Never a mixture: what is torn, is torn between blocks of 512 bytes."""
    padded: dict[int, set[bytes]] = {}
    for file in moment.history.files:
        for image in images(moment, file):
            for number, sector in enumerate(sectors(image)):
                padded.setdefault(number, set()).add(sector.ljust(SECTOR_BYTES, b"\0"))
    for state in made(moment, seed):
        for content in contents(moment, state)[0].values():
            for number, sector in enumerate(sectors(content)):
                known = padded.get(number, set()) | {bytes(SECTOR_BYTES)}
                assert any(each.startswith(sector) for each in known)


@given(moments(appends_only=True), st.integers(0, 99))
def test_a_journal_in_order_leaves_names_of_one_time_and_first_parts(
    moment: Moment, seed: int
) -> None:
    times = [
        frozenset(contents(moment, State(moment.cut, frozenset(range(count, 99))))[0])
        for count in range(len(moment.entries) + 1)
    ]
    whole = [images(moment, file)[-1] for file in moment.history.files]
    ordered = [state for state in made(moment, seed) if ordered_allows(moment, state)]
    assert len(ordered) >= (4 if moment.cut.torn is None else 0)
    for state in ordered:
        files, _ = contents(moment, state)
        assert frozenset(files) in times
        for content in files.values():
            assert not content or any(each.startswith(content) for each in whole)


@given(disks())
def test_everything_is_what_was_in_memory(disk: Disk) -> None:
    """Said in whichever way: nothing lost, or all changes of each file kept."""
    moment = Moment(disk.history, Cut(len(disk.records)))
    everything = State(moment.cut)
    live = {name: disk.live[number] for name, number in disk.tree.items()}
    assert contents(moment, everything) == (live, [])
    sizes = {file: moment.sizes(file) for file in moment.files}
    kept = {file: Kept(len(each) - 1, each[-1]) for file, each in sizes.items()}
    assert contents(moment, replace(everything, kept=kept)) == (live, [])
    assert losses(moment, everything) == losses(moment, replace(everything, kept=kept)) == []


@given(moments(), st.integers(0, 99))
def test_a_state_to_which_all_is_given_back_has_everything(moment: Moment, seed: int) -> None:
    for state in made(moment, seed):
        back = lessened(state, lambda _less: True)
        assert contents(moment, back) == contents(moment, State(moment.cut))


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_what_it_takes_is_found_in_few_steps(
    lost: set[int], files: set[int], needed: set[int]
) -> None:
    asked = []

    def is_enough(state: State) -> bool:
        asked.append(state)
        return needed <= state.lost

    lost |= needed
    whole = State(Cut(9), frozenset(lost), {file: Kept(0, 0) for file in files})
    assert lessened(whole, is_enough) == replace(whole, lost=frozenset(needed), kept={})
    bound = 2 * max(1, len(needed)) * math.ceil(math.log2(len(lost | files) + 41) + 1)
    assert len(asked) <= bound


@given(disks(), st.integers(0, 99))
def test_states_follow_from_the_seed_and_come_once(disk: Disk, seed: int) -> None:
    def tried() -> list[object]:
        some = islice(states(disk.history, random.Random(seed), lambda _cut: 0), 12)
        return [contents(moment, state) for moment, state in some]

    found = tried()
    assert found == tried()
    assert all(each not in found[:index] for index, each in enumerate(found))


@given(moments(), st.integers(0, 99))
def test_what_a_journal_in_order_is_said_to_leave_it_leaves(moment: Moment, seed: int) -> None:
    whole = Moment(moment.history, replace(moment.cut, torn=None))
    for make in ORDERED_MAKERS:
        state = make(whole, random.Random(seed))
        assert state is not None
        assert ordered_allows(whole, state)


@given(disks(), st.integers(0, 99))
def test_a_torn_write_ends_with_a_sector(disk: Disk, seed: int) -> None:
    disk.create("a")
    disk.append("a", 3000)
    history = disk.history
    changes = {change.at: change for each in history.files.values() for change in each}
    some = islice(cuts(history, random.Random(seed)), 50)
    torn = [(changes[cut.records - 1], cut.torn) for cut in some if cut.torn is not None]
    assert torn
    for change, length in torn:
        assert 0 < length < len(change.data)
        assert (change.offset + length) % SECTOR_BYTES == 0


@pytest.mark.parametrize(("torn", "allowed"), [(412, False), (3996, True), (4508, False)])
def test_in_order_a_write_is_torn_between_pages_only(torn: int, allowed: bool) -> None:
    """The kernel copies it page by page, and writes pages."""
    disk = Disk()
    disk.create("a")
    disk.append("a", 100)
    disk.append("a", 5000)
    moment = Moment(disk.history, Cut(len(disk.records), torn))
    assert ordered_allows(moment, State(moment.cut)) == allowed


def test_what_was_cut_off_is_zero_when_the_file_grows_again() -> None:
    disk = Disk()
    disk.create("a")
    disk.append("a", 1000)
    disk.sync("a")
    disk.truncate("a", 100)
    disk.write("a", 2000, 10)
    moment = Moment(disk.history, Cut(len(disk.records)))
    for changes, expected in ((0, 1000), (1, 100), (2, 2010)):
        kept = {moment.files[0]: Kept(changes, expected)}
        content = contents(moment, State(moment.cut, kept=kept))[0]["a"]
        assert len(content) == expected
        if changes == 2:
            assert content == disk.live[disk.tree["a"]]


def test_a_torn_write_is_there_up_to_a_sector() -> None:
    disk = Disk()
    disk.create("a")
    disk.append("a", 100)
    disk.append("a", 5000)
    moment = Moment(disk.history, Cut(len(disk.records), torn=3 * SECTOR_BYTES - 100))
    content = contents(moment, State(moment.cut))[0]["a"]
    assert content == disk.live[disk.tree["a"]][: 3 * SECTOR_BYTES]


def test_a_torn_write_that_syncs_itself_is_not_synced() -> None:
    disk = Disk()
    disk.create("a")
    disk.sync_folder()
    disk.append("a", 5000)
    disk.records[-1] = replace(disk.records[-1], flags=8)
    whole, torn = Cut(len(disk.records)), Cut(len(disk.records), torn=SECTOR_BYTES)
    assert len(Moment(disk.history, whole).changes(1)[0]) == 1
    assert len(Moment(disk.history, torn).changes(1)[1]) == 1


def test_an_empty_log_has_no_states() -> None:
    history = history_of([Record(Kind.HELLO, path="/db")])
    assert list(states(history, random.Random(1), lambda _cut: 0)) == []


# --- stories


def all_states(disk: Disk, model_ordered: bool) -> list[dict[str, bytes]]:
    """Many states at the end of the log."""
    moment = Moment(disk.history, Cut(len(disk.records)))
    some = [state for seed in range(60) for state in made(moment, seed)]
    return [
        contents(moment, state)[0]
        for state in some
        if not model_ordered or ordered_allows(moment, state)
    ]


def replaced(*, synced: bool) -> Disk:
    """A file takes the place of another."""
    disk = Disk()
    disk.create("a")
    disk.append("a", 100)
    disk.sync("a")
    disk.sync_folder()
    disk.create("b")
    disk.append("b", 200)
    if synced:
        disk.sync("b")
    disk.rename("b", "a")
    return disk


@pytest.mark.parametrize("synced", [True, False])
def test_a_file_that_was_renamed_onto_another_is_whole_in_order(synced: bool) -> None:
    """Without a sync only POSIX lets the name come before the data (ext4: auto_da_alloc)."""
    sizes = {len(files["a"]) for files in all_states(replaced(synced=synced), model_ordered=True)}
    assert sizes == {100, 200}
    anywhere = {len(files["a"]) for files in all_states(replaced(synced=synced), False)}
    assert anywhere == ({100, 200} if synced else {0, 100, 200})


def test_a_new_file_that_is_renamed_and_not_synced_may_be_empty_in_order() -> None:
    """As LevelDB before 1.23 makes its first MANIFEST."""
    disk = Disk()
    disk.create("a")
    disk.append("a", 100)
    disk.create("b")
    disk.append("b", 200)
    disk.sync("b")
    disk.rename("b", "c")
    found = all_states(disk, model_ordered=True)
    assert any("c" in files and files["a"] == b"" for files in found)


def test_a_sync_of_a_file_keeps_its_name_in_order_only() -> None:
    """As LevelDB begins a log: the folder is not synced."""
    disk = Disk()
    disk.create("a")
    disk.append("a", 100)
    disk.sync("a")
    assert all(len(files["a"]) == 100 for files in all_states(disk, model_ordered=True))
    assert any("a" not in files for files in all_states(disk, model_ordered=False))


def test_a_removal_may_come_before_the_rename_that_allows_it_but_not_in_order() -> None:
    disk = Disk()
    disk.create("a")
    disk.create("b")
    disk.sync_folder()
    disk.rename("b", "c")
    disk.unlink("a")
    expected = {"ab", "ac", "c"}
    assert {"".join(sorted(files)) for files in all_states(disk, True)} == expected
    assert {"".join(sorted(files)) for files in all_states(disk, False)} == {*expected, "b"}


def test_a_commit_for_another_file_keeps_what_came_before_in_order() -> None:
    disk = Disk()
    disk.create("a")
    disk.create("b")
    disk.append("b", 100)
    disk.sync("b")
    disk.sync("b")
    assert all(set(files) == {"a", "b"} for files in all_states(disk, True))
    assert len(disk.history.commits) == 1  # the second sync has nothing to commit


def test_data_may_be_there_in_any_order_and_sizes_ahead_of_it() -> None:
    disk = Disk()
    disk.create("a")
    disk.sync_folder()
    for _ in range(3):
        disk.append("a", SECTOR_BYTES)
    found = {files["a"] for files in all_states(disk, False)}
    first, second, third = (bytes([fill]) * SECTOR_BYTES for fill in (4, 5, 6))
    nothing = bytes(SECTOR_BYTES)
    assert {b"", first, first + second + third, nothing * 3, nothing + second + third} <= found
    assert {files["a"] for files in all_states(disk, True)} == {
        b"",
        first,
        first + second,
        first + second + third,
    }


def test_what_is_missing_is_said() -> None:
    disk = replaced(synced=False)
    disk.append("a", 5000)
    moment = Moment(disk.history, Cut(len(disk.records)))
    (file,) = moment.files
    kept = {file: Kept(1, 200)}
    assert losses(moment, State(moment.cut, frozenset([2]), kept)) == [
        "rename of b to a",
        "the last 5,000 of 5,200 bytes of a",
    ]
    zeros = State(moment.cut, kept={file: Kept(0, 5200)})
    assert losses(moment, zeros) == ["the data of 2 of 2 writes, but not the size, of a"]
    some = State(moment.cut, kept={file: Kept(2, 5200, {0: 1, 1: 2})})
    assert losses(moment, some) == ["1 of 2 blocks of 4,096 bytes of a"]


def test_a_hole_is_zeros_and_keeps_the_size() -> None:
    disk = Disk()
    disk.create("a")
    disk.append("a", 3000)
    disk.note(Kind.ZEROED, file=disk.tree["a"], offset=1000, length=9000)
    moment = Moment(disk.history, Cut(len(disk.records)))
    assert moment.changes(moment.files[0])[1][1] == FileChange(3, 1000, zeros=9000)
    content = contents(moment, State(moment.cut))[0]["a"]
    assert content == bytes([3]) * 1000 + bytes(2000)


def test_folders_are_there_with_what_is_in_them() -> None:
    disk = Disk()
    disk.note(Kind.MADE, path="/db/sub", file=50)
    disk.create("sub/a")
    moment = Moment(disk.history, Cut(len(disk.records)))
    assert contents(moment, State(moment.cut)) == ({"sub/a": b""}, ["sub"])
    assert contents(moment, State(moment.cut, frozenset([0]))) == ({}, [])


def test_a_rename_between_folders_may_be_there_by_half() -> None:
    disk = Disk()
    disk.note(Kind.MADE, path="/db/sub", file=50)
    disk.create("a")
    disk.sync_folder()
    disk.rename("a", "sub/a")
    found = {"".join(files) for files in all_states(disk, model_ordered=False)}
    assert found == {"a", "asub/a", "sub/a", ""}
