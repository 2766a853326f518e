"""A report before any format: sections of sentences, tables and figures.

A study's, a sweep's, a contest's and a trace's report are each a pure function that makes one
Document; `report.render` turns any Document into HTML, Markdown or terminal output and knows no
field of what it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

# A Plotly figure as plain data. Names of the page's CSS variables (`"--tuned"`) stand for colours
# under keys that end in `color`, so that one figure serves light and dark.
Figure = dict[str, Any]
NOT_KNOWN = "\N{EN DASH}"


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its text.

    Attributes:
        key: what a page sorts it by; the text where it is None.
        tone: `fail`, or `sys` for what is not the user's own.
        below: lines in small print under it.
    """

    text: str
    key: float | str | None = None
    tone: str = ""
    below: tuple[str, ...] = ()


Value = Cell | str | int | float | bool | None


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Column:
    """One column: its heading, and how a value of it is written.

    Attributes:
        number: whether its cells are numbers, which stand to the right.
        style: `mono`, `clip` (long text) or `name` (of an option).
        terminal: whether a terminal, which is narrow, shows it.
    """

    label: str
    told: Callable[[Any], str] = _plain
    number: bool = True
    style: str = ""
    terminal: bool = True

    def cell(self, value: Value) -> Cell:
        """`value` as this column writes it."""
        if isinstance(value, Cell):
            return value
        key = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        return Cell(self.told(value), key)


def words(*labels: str, style: str = "") -> tuple[Column, ...]:
    """Columns of text."""
    return tuple(Column(label, number=False, style=style) for label in labels)


def numbers(*labels: str) -> tuple[Column, ...]:
    """Columns of numbers that are written already."""
    return tuple(Column(label) for label in labels)


@dataclass(frozen=True)
class Table:
    """Rows of values, one for each column.

    Attributes:
        label: what it shows, for those who do not see it.
        marks: by the row's index: `best`, `tuned` or `same`.
        fold: where it is not empty, a page shows the table after a click on this.
        header: whether the first cell of a row names the row.
        sortable: whether a page sorts it by a click on a heading.
        style: `options`, or `compared` for the few figures of an answer.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Value]]
    label: str = ""
    marks: Mapping[int, str] = field(default_factory=dict)
    fold: str = ""
    header: bool = True
    sortable: bool = False
    style: str = ""
    kind: ClassVar[str] = "table"

    def cells(self) -> list[list[tuple[Column, Cell]]]:
        """Each row with what is to be shown of it."""
        return [
            [(column, column.cell(value)) for column, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    def known(self) -> Table:
        """The table without columns of which nothing is known."""
        cells = self.cells()
        kept = [
            at
            for at in range(len(self.columns))
            if any(row[at][1].text not in ("", NOT_KNOWN) for row in cells)
        ]
        return Table(
            [self.columns[at] for at in kept],
            [[row[at] for at in kept] for row in self.rows],
            *(self.label, self.marks, self.fold, self.header, self.sortable, self.style),
        )


@dataclass(frozen=True)
class Paragraph:
    """Sentences. `tone` is `note`, `quiet`, `detail`, `finding`, `fail` or none; `code` ends it."""

    text: str
    tone: str = ""
    code: str = ""
    kind: ClassVar[str] = "paragraph"


@dataclass(frozen=True)
class Heading:
    """The heading of a part of a section."""

    text: str
    kind: ClassVar[str] = "heading"


@dataclass(frozen=True)
class Notice:
    """One item of a list.

    Attributes:
        grade: `danger`, `warning` or `info`.
        label: what a terminal begins the line with; the grade where it is empty.
    """

    text: str
    title: str = ""
    grade: str = "warning"
    label: str = ""


@dataclass(frozen=True)
class Notices:
    """A list of what to mind."""

    items: Sequence[Notice]
    kind: ClassVar[str] = "notices"


@dataclass(frozen=True)
class Facts:
    """Names and values; those of `wide` names take a line and are paths."""

    rows: Sequence[tuple[str, str]]
    wide: frozenset[str] = frozenset()
    kind: ClassVar[str] = "facts"


@dataclass(frozen=True)
class Files:
    """Paths of files."""

    paths: Sequence[str]
    label: str
    kind: ClassVar[str] = "files"


@dataclass(frozen=True)
class Plot:
    """A Plotly figure; `name` is unique on the page."""

    name: str
    label: str
    figure: Figure
    small: bool = False
    kind: ClassVar[str] = "plot"


@dataclass(frozen=True)
class Mark:
    """One run of a strip at `place`."""

    place: float
    round: int
    is_outlier: bool


@dataclass(frozen=True)
class Strip:
    """One row of a dot plot; places in percent of the width. No interval: `low`, `high` None."""

    team: str
    marks: tuple[Mark, ...]
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Strips:
    """A dot plot that needs no script, beside a table that tells the same."""

    rows: Sequence[Strip]
    note: str
    kind: ClassVar[str] = "strips"


@dataclass(frozen=True)
class IntervalBar:
    """Positions in percent of the bar's width; `one` is where the ratio is 1."""

    one: float
    low: float
    high: float
    ratio: float
    label: str = ""
    ends: str = ""

    @property
    def width(self) -> float:
        """Width of the interval."""
        return self.high - self.low

    @property
    def has_room(self) -> bool:
        """Whether the ends can be written below it, beside the word at `one`."""
        return self.low - self.one > 15 or self.one - self.high > 15


@dataclass(frozen=True)
class Answer:
    """What the report comes to: a word or two, one figure, and a sentence that goes on."""

    label: str
    figure: str
    lead: str
    bar: IntervalBar | None = None
    kind: ClassVar[str] = "answer"


@dataclass(frozen=True)
class Beside:
    """Groups of blocks that stand side by side where there is room: `slices` or `pair`."""

    groups: Sequence[Sequence[Block]]
    style: str
    kind: ClassVar[str] = "beside"


Block = Table | Paragraph | Heading | Notices | Facts | Files | Plot | Strips | Answer | Beside


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        short: its name among the links to all sections; the title where it is empty.
        tone: `good`, `bad`, `neutral` or `open` for the section that holds the Answer.
        top: whether it stands beside the other ones at the top.
        omit: the forms that leave it out: `markdown`, `terminal`.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    short: str = ""
    tone: str = ""
    top: bool = False
    omit: tuple[str, ...] = ()


@dataclass(frozen=True)
class Document:
    """A whole report. `scripts` False makes a page that has none, and so no plots."""

    title: str
    subtitle: str
    sections: Sequence[Section]
    page_title: str
    footer: str
    scripts: bool = True

    def figures(self) -> dict[str, Figure]:
        """Every figure by its name."""
        return {
            block.name: block.figure
            for section in self.sections
            for block in flat(section.blocks)
            if isinstance(block, Plot)
        }


def plot_blocks(
    name: str, label: str, figure: Figure | None, *, small: bool = False
) -> list[Block]:
    """The plot; nothing where there is nothing to draw."""
    return [] if figure is None else [Plot(name, label, figure, small)]


def headed(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Value]]) -> list[Block]:
    """A table below a heading; nothing without rows."""
    return [Heading(title), Table(columns, rows, title)] if rows else []


def flat(blocks: Sequence[Block]) -> list[Block]:
    """`blocks`, with those that stand side by side one after the other."""
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, Beside):
            for group in block.groups:
                found += flat(group)
        else:
            found.append(block)
    return found
