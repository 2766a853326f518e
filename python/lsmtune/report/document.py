"""A report before any format: sections of sentences, tables and figures.

A study's, a sweep's, a contest's and a trace's report are each a pure function that makes one
Document; `report.render` and `report.terminal` turn any Document into HTML, Markdown or terminal
output, and know no field of what it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import lsmtune
from lsmtune.report.chart import Axis, Chart, Series

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

    @property
    def line(self) -> str:
        """All of it in one line."""
        return "; ".join((self.text, *self.below))


def _plain(value: Any) -> str:
    return "" if value is None else str(value)


@dataclass(frozen=True)
class Column:
    """One column: its heading, and how a value of it is written.

    Attributes:
        format: writes a value as text, or as a Cell that is more than its text.
        key: which field of a record it shows, as JSON names it; a pair is a field and a part of it,
            which a mapping may lack. Or what takes it from a record; all of it where it is empty.
        number: whether its cells are numbers, which stand to the right.
        style: `mono`, `clip` (long text), `name` (of an option) or `to` (what it is to become).
        terminal: whether a terminal, which is narrow, shows it.
    """

    label: str
    format: Callable[[Any], str | Cell] = _plain
    key: str | tuple[str, Any] | Callable[[Any], Any] = ""
    number: bool = True
    style: str = ""
    terminal: bool = True

    def cell(self, value: Any) -> Cell:
        """`value` as this column writes it."""
        written = value if isinstance(value, Cell) else self.format(value)
        if isinstance(written, Cell):
            return written
        key = value if isinstance(value, int | float) and not isinstance(value, bool) else None
        return Cell(written, key)

    def value(self, record: Any) -> Any:
        """What this column shows of `record`, which is a mapping or has attributes."""
        if callable(self.key):
            return self.key(record)
        if not self.key:
            return record
        field, part = (self.key, None) if isinstance(self.key, str) else self.key
        value = record[field] if isinstance(record, Mapping) else getattr(record, field)
        if part is None:
            return value
        return value.get(part) if isinstance(value, Mapping) else value[part]


def words(*labels: str) -> tuple[Column, ...]:
    """Columns of text."""
    return tuple(Column(label, number=False) for label in labels)


def numbers(*labels: str) -> tuple[Column, ...]:
    """Columns of numbers that are written already."""
    return tuple(Column(label) for label in labels)


@dataclass(frozen=True)
class Table:
    """Rows of values, one for each column.

    Attributes:
        label: what it shows, for those who do not see it.
        marks: by the row's index: `best` or `tuned`.
        fold: where it is not empty, a page shows the table after a click on this.
        header: whether the first cell of a row names the row.
        sortable: whether a page sorts it by a click on a heading.
        style: `options`, whose cells are names and values of these.
    """

    columns: Sequence[Column]
    rows: Sequence[Sequence[Any]]
    label: str = ""
    marks: Mapping[int, str] = field(default_factory=dict)
    fold: str = ""
    header: bool = True
    sortable: bool = False
    style: str = ""

    def cells(self) -> list[list[tuple[Column, Cell]]]:
        """Each row with what is to be shown of it."""
        return [
            [(column, column.cell(value)) for column, value in zip(self.columns, row, strict=True)]
            for row in self.rows
        ]

    @classmethod
    def of(
        cls, columns: Sequence[Column], records: Sequence[Any], label: str = "", **more: Any
    ) -> Table:
        """The table of `records`; `more` are its other attributes."""
        rows = [[column.value(record) for column in columns] for record in records]
        return cls(columns, rows, label, **more)


@dataclass(frozen=True)
class Paragraph:
    """Sentences. `tone` is `note`, `quiet`, `detail`, `finding`, `fail` or none; `code` ends it."""

    text: str
    tone: str = ""
    code: str = ""


@dataclass(frozen=True)
class Heading:
    """The heading of a part of a section."""

    text: str


class Severity(StrEnum):
    """How much a notice matters: for reading, for acting, or against deploying."""

    INFO = "info"
    WARNING = "warning"
    DANGER = "danger"


@dataclass(frozen=True)
class Notice:
    """Something that the reader must know, with the next step in `text`.

    Attributes:
        kind: which one it is, for programs; a terminal begins a line without a title with it.
    """

    text: str
    title: str = ""
    severity: Severity = Severity.WARNING
    kind: str = ""

    @property
    def line(self) -> str:
        """Title and text in one line."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True)
class Notices:
    """A list of what to mind."""

    items: Sequence[Notice]


@dataclass(frozen=True)
class Facts:
    """Names and values; those of `wide` names take a line and are paths."""

    rows: Sequence[tuple[str, str]]
    wide: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Copy:
    """Lines to copy, with a button that does it."""

    text: str
    label: str


@dataclass(frozen=True)
class Download:
    """A file that the page carries: its name, its type and its bytes."""

    name: str
    type: str
    content: bytes
    about: str


@dataclass(frozen=True)
class Answer:
    """What the report comes to: a word or two, one figure, and a sentence that goes on.

    `tone` is that of its Section; `detail` says more, in a paragraph of its own.
    """

    tone: str
    label: str
    figure: str
    lead: str
    detail: str = ""


@dataclass(frozen=True)
class Beside:
    """Groups of blocks that stand side by side where there is room: `slices` or `pair`."""

    groups: Sequence[Sequence[Block]]
    style: str


Single = Table | Paragraph | Heading | Notices | Facts | Chart | Copy | Download | Answer
Block = Single | Beside


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        short: its name among the links to all sections; the title where it is empty.
        tone: `good`, `bad`, `neutral` or `open` for the section that holds the Answer.
        top: whether it stands beside the other ones at the top.
        terminal: whether a terminal shows it.
    """

    id: str
    title: str
    blocks: Sequence[Block]
    short: str = ""
    tone: str = ""
    top: bool = False
    terminal: bool = True


@dataclass(frozen=True)
class Document:
    """A whole report; a page has `footer`, and `page_title` if that is not `title · lsmtune`."""

    title: str
    subtitle: str
    sections: Sequence[Section]
    page_title: str = ""
    footer: str = f"lsmtune {lsmtune.__version__}"


def chart_of(
    label: str, x: Axis, y: Axis, series: Sequence[Series], **more: Any
) -> Sequence[Chart]:
    """The chart of the series that have points, with `more` of its attributes; none without any."""
    shown = any(point.y is not None for each in series for point in each.points)
    return [Chart(label, x, y, [s for s in series if s.points], **more)] if shown else []


def paragraphs(lines: Iterable[str], tone: str = "") -> list[Block]:
    """Each line as a Paragraph."""
    return [Paragraph(line, tone) for line in lines]


def flat(blocks: Sequence[Block]) -> list[Block]:
    """`blocks`, with those that stand side by side one after the other."""
    groups = (b.groups if isinstance(b, Beside) else [[b]] for b in blocks)
    return [block for beside in groups for group in beside for block in group]
