"""What every page has: the templates, files of ours that go into it, and Plotly."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

_TEMPLATES = Path(__file__).parent / "templates"


def environment() -> jinja2.Environment:
    """The templates; what is put into them is escaped, and a name that is not given is an error."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def asset(name: str) -> Markup:
    """A style sheet or script of ours, which is not to be escaped."""
    return Markup((_TEMPLATES / name).read_text(encoding="utf-8"))


@cache
def plotly() -> Markup:
    """Plotly's script, some megabytes; imported when a page has plots."""
    from plotly.offline import get_plotlyjs

    return Markup(get_plotlyjs())
