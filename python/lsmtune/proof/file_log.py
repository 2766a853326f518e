"""What an engine did to its files, in order: the log that a preloaded library writes.

`driver/preload/files.c` is that library, and says what it notes. Here its records become changes of
files and folders, each of which has a number of its own for as long as the log lasts: the kernel
gives the number of a removed file to the next one.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path, PurePosixPath

from lsmtune.errors import LsmtuneError

# --- the records

_HEAD = struct.Struct("<IHHIIQqqQ")
_MAGIC = 0x466D736C
_VERSION = 1
_CREATED, _TRUNCATED, _FOLDER, _SYNCED = 1, 2, 4, 8


class Kind(IntEnum):
    """The kinds of records, by their numbers in `files.c`."""

    HELLO = 1
    OPENED = 2
    WRITTEN = 3
    SYNCHED = 4
    RESIZED = 5
    ZEROED = 6
    RENAMED = 7
    LINKED = 8
    UNLINKED = 9
    MADE = 10
    REMOVED = 11
    SYNCHED_ALL = 12
    MARKED = 13
    REFUSED = 14
    CLOSED = 15
    RANGE_SYNCHED = 16


_KINDS = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `file` is an inode number; the paths are absolute."""

    kind: Kind
    flags: int = 0
    file: int = 0
    offset: int = 0
    length: int = 0
    path: str = ""
    other: str = ""
    data: bytes = b""


def read_records(log: Path) -> list[Record]:
    """The records of a log; one that its writer did not live to finish is left out.

    Raises LsmtuneError for a file that is no such log.
    """
    content = log.read_bytes()
    records, position = [], 0
    while position + _HEAD.size <= len(content):
        head = _HEAD.unpack_from(content, position)
        magic, kind, flags, path_bytes, other_bytes, file, offset, length, data_bytes = head
        if magic != _MAGIC or kind not in _KINDS:
            raise LsmtuneError(f"{log}: no log of file operations at byte {position}")
        start = position + _HEAD.size
        path_end = start + path_bytes
        other_end = path_end + other_bytes
        position = other_end + data_bytes
        if position > len(content):
            break
        path = content[start:path_end].decode(errors="surrogateescape")
        other = content[path_end:other_end].decode(errors="surrogateescape")
        data = content[other_end:position]
        records.append(Record(Kind(kind), flags, file, offset, length, path, other, data))
    if not records or records[0].kind is not Kind.HELLO or records[0].flags != _VERSION:
        raise LsmtuneError(f"{log}: no log of file operations of version {_VERSION}")
    return records


# --- the changes

ROOT = 0


@dataclass(frozen=True, slots=True)
class FileChange:
    """A change of one file's bytes or size, as record number `at`.

    With `data`, it is written at `offset`; with `zeros`, so many bytes from `offset` on become zero
    where the file has them; otherwise the file gets the size `size`.
    """

    at: int
    offset: int = 0
    data: bytes = b""
    zeros: int = 0
    size: int | None = None

    def apply(self, content: bytearray) -> range:
        """Change `content`; the range of bytes that are no longer what they were."""
        before = len(content)
        if self.size is not None:
            del content[self.size :]
            content.extend(bytes(self.size - len(content)))
            return range(self.size, max(before, self.size))
        if self.zeros:
            end = min(self.offset + self.zeros, before)
            start = min(self.offset, end)
            content[start:end] = bytes(end - start)
            return range(start, end)
        end = self.offset + len(self.data)
        if before < self.offset:
            content.extend(bytes(self.offset - before))
        content[self.offset : end] = self.data
        return range(self.offset, end)

    def size_after(self, size: int) -> int:
        """The size of a file that had `size` before."""
        if self.size is not None:
            return self.size
        return size if self.zeros else max(size, self.offset + len(self.data))


@dataclass(frozen=True, slots=True)
class EntryChange:
    """A change of folders that happens as a whole: (folder, name) -> file, None without one.

    `replaces`: the file whose data a rename puts in the place of another's, None for all else.
    """

    at: int
    entries: tuple[tuple[int, str, int | None], ...]
    what: str
    replaces: int | None = None


@dataclass
class History:
    """All changes below one folder, in order, and when they were synced.

    A point in time is a number of records, those before it. `files` has the changes of each file,
    `entries` those of folders; `synced` the records that synced a file or folder; `commits` the
    records after which a journal that keeps metadata in order has all of it; `names` the name that
    a file had from a record on; `marks` what was written to a pipe: record, pipe, data.
    """

    records: int = 0
    files: dict[int, list[FileChange]] = field(default_factory=lambda: defaultdict(list))
    entries: list[EntryChange] = field(default_factory=list)
    folders: set[int] = field(default_factory=lambda: {ROOT})
    synced: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    synced_all: list[int] = field(default_factory=list)
    commits: list[int] = field(default_factory=list)
    marks: list[tuple[int, int, bytes]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    names: dict[int, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))

    def durable_to(self, file: int, point: int) -> int:
        """The number of the record up to which all of `file` is synced at `point`; -1 if none."""
        both = self.synced.get(file, ()), self.synced_all
        return max(last_before(syncs, point) for syncs in both)

    def changes(
        self, file: int, point: int, synced_before: int
    ) -> tuple[list[FileChange], list[FileChange]]:
        """The changes of `file` before `point`: those synced before `synced_before`, and others."""
        changes = self.files.get(file, [])
        synced = bisect_right(changes, self.durable_to(file, synced_before), key=_at)
        return changes[:synced], changes[synced : bisect_left(changes, point, key=_at)]

    def name(self, file: int, point: int) -> str:
        """The name that `file` had last before `point`, from the folder on."""
        names = [name for at, name in self.names.get(file, ()) if at < point]
        return names[-1] if names else "."


def last_before(records: Sequence[int], point: int) -> int:
    """The last of `records`, numbers in rising order, before `point`; -1 without one."""
    before = bisect_left(records, point)
    return records[before - 1] if before else -1


def _at(change: FileChange | EntryChange) -> int:
    return change.at


class _Builder:
    """Follows the tree of names as it is in memory while the records are read."""

    def __init__(self, root: str) -> None:
        self.history = History()
        self.root = PurePosixPath(root)
        self._tree: dict[int, dict[str, int]] = {ROOT: {}}
        self.files: dict[int, int] = {}  # inode -> the file that has it now
        self._sizes: dict[int, int] = defaultdict(int)
        self._uncommitted: set[int] = set()
        self._next = ROOT + 1

    def place(self, path: str) -> tuple[int, str]:
        """The folder of an absolute path, and the name in it."""
        parts = PurePosixPath(path).relative_to(self.root).parts
        folder = ROOT
        for part in parts[:-1]:
            folder = self._tree[folder][part]
        return folder, parts[-1]

    def new(self, inode: int, *, folder: bool = False) -> int:
        number, self._next = self._next, self._next + 1
        self.files[inode] = number
        if folder:
            self._tree[number] = {}
            self.history.folders.add(number)
        return number

    def named(self, path: str) -> int:
        folder, name = self.place(path)
        return self._tree[folder][name]

    def enter(self, at: int, what: str, *entries: tuple[str, int | None]) -> None:
        """Names become files, or nothing. Of two folders, each changes by itself."""
        places = [(*self.place(path), file) for path, file in entries]
        replaces = None
        for folder, name, file in places:
            if file is None:
                self._tree[folder].pop(name, None)
            else:
                if name in self._tree[folder] and len(places) > 1:
                    replaces = file
                self._tree[folder][name] = file
                self._uncommitted.add(file)
            self._uncommitted.add(folder)
        folders = {folder for folder, _, _ in places}
        for together in [tuple(places)] if len(folders) == 1 else [(each,) for each in places]:
            self.history.entries.append(EntryChange(at, together, what, replaces))
        for path, file in entries:
            if file is not None:
                relative = str(PurePosixPath(path).relative_to(self.root))
                self.history.names[file].append((at, relative))

    def change(self, file: int, change: FileChange) -> None:
        if change.size == self._sizes[file]:
            return
        self.history.files[file].append(change)
        size = change.size_after(self._sizes[file])
        if size != self._sizes[file] or change.zeros:
            self._uncommitted.add(file)
        self._sizes[file] = size

    def sync(self, at: int, file: int | None) -> None:
        if file is None:
            self.history.synced_all.append(at)
        else:
            self.history.synced[file].append(at)
        if file is None or file in self._uncommitted:
            self.history.commits.append(at)
            self._uncommitted.clear()


def history_of(records: Sequence[Record]) -> History:
    """The records as changes of numbered files and folders; the folder itself is ROOT."""
    builder = _Builder(records[0].path)
    history = builder.history
    history.records = len(records)
    builder.files[records[0].file] = ROOT
    for at, record in enumerate(records):
        try:
            _follow(builder, at, record)
        except (LookupError, ValueError) as error:
            why = "something changed files in a way that it does not know"
            raise LsmtuneError(f"record {at} of the log of file operations: {why}") from error
    return history


def _follow(builder: _Builder, at: int, record: Record) -> None:
    history, short = builder.history, PurePosixPath(record.path).name
    match record.kind:
        case Kind.OPENED:
            if record.flags & _CREATED:
                builder.enter(at, f"creation of {short}", (record.path, builder.new(record.file)))
            elif record.flags & _TRUNCATED:
                builder.change(builder.files[record.file], FileChange(at, size=0))
        case Kind.WRITTEN:
            file = builder.files[record.file]
            builder.change(file, FileChange(at, record.offset, record.data))
            if record.flags & _SYNCED:
                builder.sync(at, file)
        case Kind.RESIZED:
            builder.change(builder.files[record.file], FileChange(at, size=record.length))
        case Kind.ZEROED:
            change = FileChange(at, record.offset, zeros=record.length)
            builder.change(builder.files[record.file], change)
        case Kind.SYNCHED:
            builder.sync(at, builder.files[record.file])
        case Kind.SYNCHED_ALL:
            builder.sync(at, None)
        case Kind.RENAMED:
            what = f"rename of {short} to {PurePosixPath(record.other).name}"
            file = builder.named(record.path)
            builder.enter(at, what, (record.other, file), (record.path, None))
        case Kind.LINKED:
            what = f"link {PurePosixPath(record.other).name} to {short}"
            builder.enter(at, what, (record.other, builder.named(record.path)))
        case Kind.UNLINKED | Kind.REMOVED:
            builder.enter(at, f"removal of {short}", (record.path, None))
        case Kind.MADE if PurePosixPath(record.path) == builder.root:
            builder.files[record.file] = ROOT
        case Kind.MADE:
            folder = builder.new(record.file, folder=True)
            builder.enter(at, f"making of folder {short}", (record.path, folder))
        case Kind.MARKED:
            history.marks.append((at, record.file, record.data))
        case Kind.REFUSED:
            history.refused.append(record.path)
        case Kind.HELLO | Kind.CLOSED | Kind.RANGE_SYNCHED:
            pass


def tree_of(
    history: History, entries: Sequence[EntryChange]
) -> tuple[Mapping[str, int], Sequence[str]]:
    """The files by path, and the folders below the root, that these changes of folders lead to."""
    tree: dict[int, dict[str, int]] = defaultdict(dict)
    for change in entries:
        for folder, name, file in change.entries:
            if file is None:
                tree[folder].pop(name, None)
            else:
                tree[folder][name] = file
    files: dict[str, int] = {}
    folders: list[str] = []
    waiting = [(ROOT, "")]
    while waiting:
        folder, path = waiting.pop()
        for name, file in tree[folder].items():
            if file in history.folders:
                folders.append(path + name)
                waiting.append((file, f"{path}{name}/"))
            else:
                files[path + name] = file
    return files, folders
