"""A Document for a terminal, by rich; all text is taken literally."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from lsmtune.report.document import (
    Answer,
    Block,
    Document,
    Facts,
    Heading,
    Notices,
    Paragraph,
    Severity,
    Table,
    flat,
)

_STYLES = {"title": "bold", "note": "dim", "quiet": "dim", "detail": "dim", "fail": "red"}
_SEVERITIES = {Severity.DANGER: "red", Severity.WARNING: "yellow", Severity.INFO: ""}


def to_terminal(document: Document) -> RenderableType:
    """The same for a terminal: without figures, and without columns that are too much for it."""
    blocks: list[Block] = [Paragraph(document.title, "title")]
    if document.subtitle:
        blocks.append(Paragraph(document.subtitle))
    for section in (each for each in document.sections if each.terminal):
        blocks += [Paragraph(""), Paragraph(section.title, "title"), *section.blocks]
    return blocks_view(blocks)


def blocks_view(blocks: Sequence[Block]) -> RenderableType:
    """What a command prints at its end: sentences, tables, warnings."""
    return Group(*(part for block in flat(blocks) for part in _terminal(block)))


def _terminal(block: Block) -> Iterator[RenderableType]:
    if isinstance(block, Paragraph):
        text = " ".join(filter(None, (block.text, block.code)))
        yield Text(text, style=_STYLES.get(block.tone.split(" ")[-1], ""))
    elif isinstance(block, Heading):
        yield Text(block.text, style="dim")
    elif isinstance(block, Answer):
        yield Text(f"{block.label}: {block.figure} {block.lead}", style="bold")
    elif isinstance(block, Notices):
        for each in block.items:
            head = each.severity if each.title else each.kind or each.severity
            yield Text(f"{head}: {each.line}", style=_SEVERITIES[each.severity])
    elif isinstance(block, Facts):
        yield _facts(block)
    elif isinstance(block, Table):
        yield _table(block)


def _facts(facts: Facts) -> RenderableType:
    """A line for each; a name is said once for all the lines that belong to it."""
    grid = RichTable(box=None, pad_edge=False, show_header=False)
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    previous = ""
    for name, value in facts.rows:
        grid.add_row(Text("" if name == previous else name), Text(value))
        previous = name
    return Padding(grid, (0, 0, 0, 2), expand=False)


def _table(table: Table) -> RenderableType:
    drawn = RichTable(box=None, pad_edge=False)
    for at, column in enumerate(table.columns):
        if column.terminal:
            drawn.add_column(
                Text(column.label),
                justify="right" if column.number else "left",
                overflow="fold",
                no_wrap=at == 0,  # a name is there to be copied
            )
    for number, row in enumerate(table.cells()):
        shown = (cell.line for column, cell in row if column.terminal)
        drawn.add_row(*map(Text, shown), style="green" if number in table.marks else "")
    return drawn
