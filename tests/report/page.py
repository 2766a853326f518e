"""A report's page as a reader without scripts sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "wbr", "input", "hr"}


@dataclass
class Page:
    """What was found in the HTML; `plots` are what those hear who do not see them."""

    ids: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    attributes: set[str] = field(default_factory=set)
    plots: list[str] = field(default_factory=list)
    text: str = ""
    scripts: list[tuple[dict[str, str | None], str]] = field(default_factory=list)
    unbalanced: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.page.tags.append(tag)
        self.page.attributes |= given.keys()
        if tag == "figure":
            self.page.plots.append(given["aria-label"] or "")
        self.page.links += [given[key] or "" for key in ("src", "href", "action") if key in given]
        if given.get("id"):
            self.page.ids.append(given["id"] or "")
        if tag == "script":
            self.page.scripts.append((given, ""))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.page.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        inside = self._open[-1] if self._open else ""
        if inside == "script":
            attributes, text = self.page.scripts[-1]
            self.page.scripts[-1] = (attributes, text + data)
        elif inside != "style":
            self.page.text += data


def read(html: str) -> Page:
    """The page in `html`."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.page.text = " ".join(reader.page.text.split())
    return reader.page
