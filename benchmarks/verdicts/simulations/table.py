"""The result of the simulations for people. Pure; nothing here is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

NOT_KNOWN = "-"
Part = Mapping[str, Any]  # of the document


def view(document: Part) -> RenderableType:
    """Tables of the proofs beside the naive ways, of the detectors, and what is not as stated."""
    scenarios, confidence = document["scenarios"], document["confidence"]
    parts: list[RenderableType] = [
        Text(
            f"{document['studies']:,} simulated studies each, seed {document['seed']}: a look "
            f"after every pair, at most {document['pairs_max']} pairs, confidence {confidence:g}",
            style="bold",
        ),
        _scenarios([each for each in scenarios if each["ratio"] == 1.0], "A/A", confidence),
        _scenarios([each for each in scenarios if each["ratio"] != 1.0], "effect", confidence),
        Text(
            "holds: the interval at the end has the true ratio in it; "
            "naive t: baseline always first, Student's t interval looked at after every pair; "
            "naive best: after all pairs the fastest single run wins",
            style="dim",
        ),
        _detectors(document),
    ]
    parts += [Text(f"NOT AS STATED: {line}", style="red") for line in document["broken"]]
    if document["ok"]:
        parts.append(Text("every rate is as stated", style="green"))
    return Group(*parts)


def _scenarios(results: Sequence[Part], kind: str, confidence: float) -> Table:
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column(kind, no_wrap=True)
    titles = [f"wrong, at most {_per_cent(1.0 - confidence)}", "proved", "equivalent", "pairs"]
    titles += [f"holds, at least {_per_cent(confidence)}", "naive t: wrong", "holds"]
    for title in (*titles, "naive best: wrong"):
        table.add_column(title, justify="right")
    for each in results:
        proof, student = each["proof"], each["naive_student_after_every_pair"]
        table.add_row(
            each["about"],
            _with_interval(proof["wrong_rate"]),
            _share(proof["power"]),
            _share(proof["equivalent_rate"]),
            f"{proof['pairs_median']:g}",
            _with_interval(proof["coverage"]),
            _share(student["wrong_rate"]),
            _share(student["coverage"]),
            _share(each["naive_best_single_run"]["wrong_rate"]),
        )
    return table


def _detectors(document: Part) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("change points, noise", "rate", "stated"):
        table.add_column(title, justify="left" if title.startswith("change") else "right")
    for case in document["change_points"]:
        most = case["false_alarm_rate_max"]
        what = "a change is seen" if case["has_change"] else "a change is seen falsely"
        stated = "" if most is None else f"at most {_per_cent(most)}"
        table.add_row(f"{case['about']}: {what}", _with_interval(case["seen_rate"]), stated)
    for kind in document["noise"]:
        about = f"noise of {kind['runs']} runs: its interval holds"
        stated = f"at least {_per_cent(kind['coverage_min'])}"
        table.add_row(about, _with_interval(kind["coverage"]), stated)
    return table


def _with_interval(rate: Part) -> str:
    return f"{_share(rate)} ({100 * rate['low']:.1f} to {100 * rate['high']:.1f})"


def _share(rate: Part | None) -> str:
    return NOT_KNOWN if rate is None else _per_cent(rate["share"])


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
