"""What a power loss may leave of a database: states of its folder, computed from a log.

A state belongs to a *cut*: so many records had happened, of a write perhaps only the first bytes.
What was synced by then is there. Of the rest, a state says what reached the device.

`docs/power-loss.md` states the two models, `posix` and `ordered`. Each state of `ordered` is one of
`posix`, so that a violation is told apart: one of `ordered` can happen on the most usual file
system, one only of `posix` where the order is not kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from lsmtune.proof.file_log import EntryChange, FileChange, History, last_before, tree_of

SECTOR_BYTES = 512
PAGE_BYTES = 4096


class Model(StrEnum):
    """Which file systems may leave a state."""

    ORDERED = "ordered"
    POSIX = "posix"


@dataclass(frozen=True)
class Cut:
    """The power fails after `records` records, the last of which, a write, did `torn` bytes."""

    records: int
    torn: int | None = None
    where: str = ""


@dataclass(frozen=True)
class Kept:
    """What is on the device of one file's unsynced changes.

    Its first `changes`, in all blocks but those of `units`: a unit of `unit_bytes` has as many of
    the changes as `units` says for its number. The file is `size` bytes long.
    """

    changes: int
    size: int
    units: Mapping[int, int] = field(default_factory=dict)
    unit_bytes: int = PAGE_BYTES


@dataclass(frozen=True)
class State:
    """One state: without the changes of folders `lost` (by index), and of files what `kept` says.

    What neither mentions is on the device as it was at the cut.
    """

    cut: Cut
    lost: frozenset[int] = frozenset()
    kept: Mapping[int, Kept] = field(default_factory=dict)
    label: str = "everything"


class Moment:
    """What is synced, and what is not, at one cut."""

    def __init__(self, history: History, cut: Cut) -> None:
        self.history = history
        self.cut = cut
        # A write that is torn is not synced, not even one that syncs itself.
        self._synced_before = cut.records - (cut.torn is not None)
        before = [entry for entry in history.entries if entry.at < cut.records]
        self.entries: Sequence[EntryChange] = before
        self.unsynced = [index for index, entry in enumerate(before) if not self._synced(entry)]
        self.committed = last_before(history.commits, self._synced_before)
        names, _ = tree_of(history, before)
        lost = set(self.unsynced)
        durable, _ = tree_of(history, [e for i, e in enumerate(before) if i not in lost])
        # A file whose name is gone from both is in no state but those that lose half of a rename.
        reachable = sorted({*names.values(), *durable.values()})
        self.files = [file for file in reachable if self.changes(file)[1]]

    def _synced(self, entry: EntryChange) -> bool:
        folders = {folder for folder, _, _ in entry.entries}
        points = (self.history.durable_to(folder, self._synced_before) for folder in folders)
        return all(entry.at < point for point in points)

    def changes(self, file: int) -> tuple[list[FileChange], list[FileChange]]:
        """The synced and the unsynced changes of `file`; a torn write with what it did."""
        before, torn = self.cut.records, self.cut.torn
        synced, unsynced = self.history.changes(file, before, self._synced_before)
        if torn is not None and unsynced and unsynced[-1].at == before - 1:
            last = unsynced[-1]
            unsynced = [*unsynced[:-1], replace(last, data=last.data[:torn])]
        return synced, unsynced

    def sizes(self, file: int) -> list[int]:
        """The size of `file` after its synced changes, and after each of the others."""
        synced, unsynced = self.changes(file)
        size = 0
        for change in synced:
            size = change.size_after(size)
        sizes = [size]
        for change in unsynced:
            sizes.append(change.size_after(sizes[-1]))
        return sizes

    def name(self, file: int) -> str:
        """What the file is called at the cut."""
        return self.history.name(file, self.cut.records)


# --- what a state holds


def contents(moment: Moment, state: State) -> tuple[dict[str, bytes], Sequence[str]]:
    """The files of a state by path, and its folders below the root."""
    entries = [entry for index, entry in enumerate(moment.entries) if index not in state.lost]
    files, folders = tree_of(moment.history, entries)
    images: dict[int, bytes] = {}
    for file in files.values():
        if file not in images:
            images[file] = _image(*moment.changes(file), state.kept.get(file))
    return {path: images[file] for path, file in files.items()}, folders


def digest(files: Mapping[str, bytes], folders: Sequence[str]) -> str:
    """The same for the same state."""
    total = hashlib.blake2b("\0".join(sorted(folders)).encode())
    for path in sorted(files):
        content = hashlib.blake2b(files[path]).digest()
        total.update(path.encode(errors="surrogateescape") + b"\0" + content)
    return total.hexdigest()


def _image(
    synced: Sequence[FileChange], unsynced: Sequence[FileChange], kept: Kept | None
) -> bytes:
    cache = bytearray()
    for change in synced:
        change.apply(cache)
    if kept is None:
        for change in unsynced:
            change.apply(cache)
        return bytes(cache)
    device = bytearray(cache)
    for count, change in enumerate(unsynced, start=1):
        touched = change.apply(cache)
        for block in _blocks(touched):
            unit = block * SECTOR_BYTES // kept.unit_bytes
            if count <= kept.units.get(unit, kept.changes):
                start = block * SECTOR_BYTES
                sector = bytes(cache[start : start + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")
                if len(device) < start:
                    device.extend(bytes(start - len(device)))
                device[start : start + SECTOR_BYTES] = sector
    device.extend(bytes(max(0, kept.size - len(device))))
    return bytes(device[: kept.size])


def _blocks(touched: range) -> range:
    return range(touched.start // SECTOR_BYTES, -(-touched.stop // SECTOR_BYTES))


# --- which states a journal that keeps order allows


def ordered_allows(moment: Moment, state: State) -> bool:
    """Whether `state` is one of the model `ordered`."""
    entries, torn = moment.entries, moment.cut.torn
    kept_entries = len(entries) - len(state.lost)
    first_lost = entries[kept_entries].at if state.lost else moment.cut.records
    in_order = state.lost == frozenset(range(kept_entries, len(entries)))
    if not in_order or first_lost < moment.committed:
        return False
    if torn is not None and not _on_page(moment, torn):
        return False
    for file in moment.files:
        sizes = moment.sizes(file)
        least, most = bounds(moment, file, first_lost)
        kept = state.kept.get(file) or Kept(len(sizes) - 1, sizes[-1])
        if kept.units or not least <= kept.changes <= most:
            return False
        whole = kept.size == sizes[kept.changes]
        part = sizes[least] <= kept.size < sizes[kept.changes] and kept.size % PAGE_BYTES == 0
        if not (whole or part):
            return False
    return True


def _on_page(moment: Moment, torn: int) -> bool:
    """Whether the write that is torn ends where a page does."""
    changes = (change for file in moment.files for change in moment.history.files[file])
    last = (change for change in changes if change.at == moment.cut.records - 1)
    return any((change.offset + torn) % PAGE_BYTES == 0 for change in last)


def bounds(moment: Moment, file: int, point: int) -> tuple[int, int]:
    """How many unsynced changes of `file` a journal leaves at least and at most, in order.

    `point`: the number of the first record whose changes of folders and sizes are not there.
    """
    _, unsynced = moment.changes(file)
    least = 0
    for count, change in enumerate(unsynced, start=1):
        if change.size is not None and change.at < moment.committed:
            least = count  # a truncation is the journal's own
    for entry in moment.entries:
        if entry.replaces == file and entry.at < point:
            least = max(least, sum(change.at < entry.at for change in unsynced))
    return least, max(least, sum(change.at < point for change in unsynced))


# --- in words


def losses(moment: Moment, state: State) -> list[str]:
    """What of all that had happened is not on the device, one phrase for each thing."""
    missing = [moment.entries[index].what for index in sorted(state.lost)]
    for file, kept in state.kept.items():
        sizes = moment.sizes(file)
        count, size = len(sizes) - 1, sizes[-1]
        if kept.units:
            blocks = sum(changes < count for changes in kept.units.values())
            what = f"{blocks:,} of {len(kept.units):,} blocks of {kept.unit_bytes:,} bytes"
        elif kept.size > size:
            what = f"the truncation to {size:,} bytes"
        elif kept.size == sizes[kept.changes] or (kept.size < size and kept.size % PAGE_BYTES == 0):
            what = f"the last {size - kept.size:,} of {size:,} bytes"
        else:
            what = f"the data of {count - kept.changes:,} of {count:,} writes, but not the size,"
        if kept.units or kept.changes < count or kept.size != size:
            missing.append(f"{what} of {moment.name(file)}")
    return missing
