"""Which of the states that a power loss may leave are tried: the corners, and others drawn.

For each cut, one of the makers says which state of it. All are of the model `posix`; those of a
journal in order are of the model `ordered` too (`power_model.py`).
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lsmtune.proof.file_log import FileChange, History
from lsmtune.proof.power_model import (
    PAGE_BYTES,
    SECTOR_BYTES,
    Cut,
    Kept,
    Moment,
    State,
    bounds,
    contents,
    digest,
    ordered_allows,
)

# --- states by name

Make = Callable[[Moment, random.Random], State | None]


def _nothing_unsynced(moment: Moment, files: Iterable[int]) -> dict[int, Kept]:
    return {file: Kept(0, moment.sizes(file)[0]) for file in files}


def _corner(label: str, *, names: bool, data: bool) -> Make:
    """The state that has all or none of the unsynced `names`, and of the unsynced `data`."""

    def make(moment: Moment, _rng: random.Random) -> State:
        lost = frozenset() if names else frozenset(moment.unsynced)
        return State(
            moment.cut, lost, _nothing_unsynced(moment, () if data else moment.files), label
        )

    return make


def sizes_without_data(moment: Moment, _rng: random.Random) -> State:
    """Names and sizes are there, and zeros for unsynced data."""
    kept = {file: Kept(0, moment.sizes(file)[-1]) for file in moment.files}
    return State(moment.cut, kept=kept, label="sizes without unsynced data")


def blocks_in_any_order(moment: Moment, rng: random.Random) -> State:
    """Names and sizes are there, and any of the unsynced blocks."""
    kept = {file: _scattered(moment, file, rng) for file in moment.files}
    return State(moment.cut, kept=kept, label="unsynced blocks in any order")


def all_but_one(moment: Moment, rng: random.Random) -> State | None:
    """Everything but one change of a folder, or the unsynced data of one file."""
    things: list[tuple[str, int]] = [("name", index) for index in moment.unsynced]
    things += [("file", file) for file in moment.files]
    if not things:
        return None
    kind, which = rng.choice(things)
    if kind == "name":
        return State(moment.cut, frozenset([which]), label="all but one change of a folder")
    kept = _nothing_unsynced(moment, [which])
    return State(moment.cut, kept=kept, label="all but the unsynced data of one file")


def one_alone(moment: Moment, rng: random.Random) -> State | None:
    """What was synced, and one change of a folder."""
    if not moment.unsynced:
        return None
    lost = frozenset(moment.unsynced) - {rng.choice(moment.unsynced)}
    kept = _nothing_unsynced(moment, moment.files)
    return State(moment.cut, lost, kept, "only what was synced, and one change of a folder")


def drawn(moment: Moment, rng: random.Random) -> State:
    """Any changes of folders, and of each file anything."""
    share = rng.choice((0.2, 0.5, 0.8))
    lost = frozenset(index for index in moment.unsynced if rng.random() < share)
    kept = {}
    for file in moment.files:
        kind = rng.randrange(5)  # 4: all of it
        sizes = moment.sizes(file)
        if kind == 0:
            kept[file] = Kept(0, sizes[0])
        elif kind == 1:
            changes = rng.randrange(len(sizes))
            kept[file] = Kept(changes, sizes[changes])
        elif kind == 2:
            kept[file] = Kept(rng.randrange(len(sizes)), rng.choice(sizes))
        elif kind == 3:
            kept[file] = _scattered(moment, file, rng)
    return State(moment.cut, lost, kept, "drawn")


def ordered_least(moment: Moment, _rng: random.Random) -> State:
    """The least that a journal in order leaves."""
    return _ordered(moment, moment.committed, _least, "the least")


def ordered_names(moment: Moment, _rng: random.Random) -> State:
    """All names, and the least of the data that a journal in order leaves."""
    return _ordered(moment, moment.cut.records, _least, "all names, least data")


def ordered_drawn(moment: Moment, rng: random.Random) -> State:
    """Any state of a journal in order."""
    points = [moment.committed, moment.cut.records]
    points += [entry.at + 1 for entry in moment.entries if entry.at >= moment.committed]
    state = _ordered(moment, rng.choice(points), rng.randint, "drawn")
    kept = {}
    for file, each in state.kept.items():
        start, end = moment.sizes(file)[0], each.size
        pages = range(-(-start // PAGE_BYTES) * PAGE_BYTES, end, PAGE_BYTES)
        whole = not pages or rng.random() < 0.5
        kept[file] = each if whole else replace(each, size=rng.choice(pages))
    state = replace(state, kept=kept)
    return state if ordered_allows(moment, state) else ordered_least(moment, rng)


def _least(least: int, _most: int) -> int:
    return least


def _ordered(moment: Moment, point: int, choose: Callable[[int, int], int], label: str) -> State:
    """The changes of folders before `point`, and of each file as many changes as are chosen."""
    lost = frozenset(index for index, entry in enumerate(moment.entries) if entry.at >= point)
    kept = {}
    for file in moment.files:
        changes = choose(*bounds(moment, file, point))
        kept[file] = Kept(changes, moment.sizes(file)[changes])
    return State(moment.cut, lost, kept, f"journal in order: {label}")


def _scattered(moment: Moment, file: int, rng: random.Random) -> Kept:
    _, unsynced = moment.changes(file)
    unit_bytes = rng.choice((SECTOR_BYTES, PAGE_BYTES))
    share = rng.choice((0.1, 0.5, 0.9))
    sizes = moment.sizes(file)
    touched: set[int] = set()
    for change in unsynced:
        end = change.offset + max(len(change.data), change.zeros)
        touched.update(range(change.offset // unit_bytes, -(-end // unit_bytes)))
    units = {}
    for unit in sorted(touched):
        choice = rng.random()
        units[unit] = 0 if choice < share else len(unsynced)
        if choice < share / 4:
            units[unit] = rng.randrange(len(sizes))
    return Kept(len(unsynced), sizes[-1], units, unit_bytes)


# What a journal in order leaves decides, and is every other state.
ORDERED_MAKERS: tuple[Make, ...] = (ordered_drawn, ordered_drawn, ordered_least, ordered_names)
POSIX_MAKERS: tuple[Make, ...] = (
    _corner("only what was synced", names=False, data=False),
    _corner("names without unsynced data", names=True, data=False),
    _corner("data without unsynced names", names=False, data=True),
    sizes_without_data,
    blocks_in_any_order,
    all_but_one,
    one_alone,
    drawn,
)


# --- cuts


# Files that no engine reads when it opens a database.
IDLE = re.compile(r"\b(LOG|LOCK)\b")


def cuts(history: History, rng: random.Random) -> Iterator[Cut]:
    """Points in time, without end: of each sort in turn, so that the rare sorts are not missed.

    A sort is what happens there (a sync of a MANIFEST, a rename, a write of a table, a message)
    and whether it is just before or just after it, or in the middle of it.
    """
    sorts: dict[str, list[Cut]] = {}

    def add(sort: str, cut: Cut) -> None:
        if not IDLE.search(sort):
            sorts.setdefault(sort, []).append(replace(cut, where=sort))

    for entry in history.entries:
        add(f"after {_sort_of(entry.what)}", Cut(entry.at + 1))
    for file, points in history.synced.items():
        for at in points:
            what = "the folder" if file in history.folders else kind_of(history.name(file, at))
            add(f"before a sync of {what}", Cut(at))
            add(f"after a sync of {what}", Cut(at + 1))
    for at, _, _ in history.marks:
        add("after a message", Cut(at + 1))
    for file, changes in history.files.items():
        for change in changes:
            torn = _torn(change, rng)
            if torn is not None:
                sort = f"in a write of {kind_of(history.name(file, change.at + 1))}"
                add(sort, Cut(change.at + 1, torn))
    names = sorted(sorts)
    rng.shuffle(names)
    while names:
        for name in names:
            yield rng.choice(sorts[name])


def _torn(change: FileChange, rng: random.Random) -> int | None:
    """So many bytes of a write that it ends where a sector does; None if none does within it."""
    first = -change.offset % SECTOR_BYTES or SECTOR_BYTES
    ends = range(first, len(change.data), SECTOR_BYTES)
    return rng.choice(ends) if ends else None


def kind_of(name: str) -> str:
    """A file's name without its number: `a .log file`, MANIFEST."""
    base = name.rpartition("/")[2]
    stem, dot, suffix = base.rpartition(".")
    if dot and stem.strip("0123456789") == "":
        return f"a .{suffix} file"
    return base.partition("-")[0].rstrip("0123456789.") or name


def _sort_of(what: str) -> str:
    action, word, rest = what.partition(" of ")
    return f"{action}{word}{' to '.join(kind_of(name) for name in rest.split(' to '))}"


# After so many states in a row that were there before, the log has no more.
_REPEATS_MAX = 200


def states(
    history: History, rng: random.Random, promised: Callable[[Cut], object]
) -> Iterator[tuple[Moment, State]]:
    """States, each once: they differ in what they hold, or in what is `promised` of them.

    Ends when the log does not seem to have any more.
    """
    known: set[tuple[str, object]] = set()
    ordered, repeats = False, 0
    for drawn_cut in cuts(history, rng):
        ordered = not ordered
        cut = drawn_cut
        if ordered and cut.torn is not None:  # in order, a write is whole or torn between pages
            cut = Cut(cut.records, where=cut.where.replace("in a write", "after a write"))
        moment = Moment(history, cut)
        state = rng.choice(ORDERED_MAKERS if ordered else POSIX_MAKERS)(moment, rng)
        repeats += 1
        if state is not None:
            content = (digest(*contents(moment, state)), promised(cut))
            if content not in known:
                known.add(content)
                repeats = 0
                yield moment, state
        if repeats > _REPEATS_MAX:
            return


# --- what of a state it takes


def lessened(state: State, is_enough: Callable[[State], bool]) -> State:
    """`state` with as much given back as leaves it one that `is_enough`.

    Whatever it still lacks, it needs: without any one thing less it would not be enough. Halves are
    given back as long as that goes, so that it asks about `2 k log2(n / k)` times, where `k` of `n`
    things are needed.
    """
    things = [("file", file) for file in state.kept] + [("entry", e) for e in sorted(state.lost)]
    waiting = [things] if things else []
    while waiting:
        group = waiting.pop()
        less = _given_back(state, group)
        if is_enough(less):
            state = less
        elif len(group) > 1:
            half = len(group) // 2
            waiting += [group[half:], group[:half]]
    return state


def _given_back(state: State, things: Iterable[tuple[str, int]]) -> State:
    files = {which for kind, which in things if kind == "file"}
    entries = {which for kind, which in things if kind == "entry"}
    kept = {file: kept for file, kept in state.kept.items() if file not in files}
    return replace(state, lost=state.lost - entries, kept=kept)
