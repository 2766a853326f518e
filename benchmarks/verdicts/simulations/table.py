"""The result of the simulations for people. Pure; nothing here is printed."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from simulations.detectors import FALSE_ALARMS_MOST, NOISE_COVERAGE_LEAST
from simulations.document import Report, ScenarioResult
from simulations.playing import CONFIDENCE, PAIRS_MAX
from simulations.rates import Rate

NOT_KNOWN = "-"


def report_view(report: Report) -> RenderableType:
    """Tables of the proofs beside the naive ways, of the detectors, and what is not as stated."""
    parts: list[RenderableType] = [
        Text(
            f"{report.studies:,} simulated studies each, seed {report.seed}: a look after every "
            f"pair, at most {PAIRS_MAX} pairs, confidence {CONFIDENCE:g}",
            style="bold",
        ),
        _scenarios([each for each in report.scenarios if each.scenario.is_equal], "A/A"),
        _scenarios([each for each in report.scenarios if not each.scenario.is_equal], "effect"),
        Text(
            "holds: the interval at the end has the true ratio in it; "
            "naive t: baseline always first, Student's t interval looked at after every pair; "
            "naive best: after all pairs the fastest single run wins",
            style="dim",
        ),
        _detectors(report),
    ]
    parts += [Text(f"NOT AS STATED: {line}", style="red") for line in report.broken]
    if not report.broken:
        parts.append(Text("every rate is as stated", style="green"))
    return Group(*parts)


def _scenarios(results: list[ScenarioResult], kind: str) -> Table:
    table = Table(box=None, pad_edge=False, title_justify="left")
    table.add_column(kind, no_wrap=True)
    error = 1.0 - CONFIDENCE
    titles = [f"wrong, at most {_per_cent(error)}", "proved", "equivalent", "pairs"]
    titles += [f"holds, at least {_per_cent(CONFIDENCE)}", "naive t: wrong", "holds"]
    for title in (*titles, "naive best: wrong"):
        table.add_column(title, justify="right")
    for each in results:
        proof = each.proof
        table.add_row(
            each.scenario.about,
            _with_interval(proof.wrong_rate),
            _share(proof.power),
            _share(proof.equivalent_rate),
            f"{proof.pairs_median:g}",
            _with_interval(proof.coverage),
            _share(each.student.wrong_rate),
            _share(each.student.coverage),
            _share(each.best_run.wrong_rate),
        )
    return table


def _detectors(report: Report) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("change points, noise", "rate", "stated"):
        table.add_column(title, justify="left" if title.startswith("change") else "right")
    for case, seen in report.anchors:
        stated = "" if case.changes else f"at most {_per_cent(FALSE_ALARMS_MOST)}"
        what = "a change is seen" if case.changes else "a change is seen falsely"
        table.add_row(f"{case.about}: {what}", _with_interval(seen), stated)
    for kind, held in report.noise:
        about = f"noise of {kind.runs} runs: its interval holds"
        table.add_row(about, _with_interval(held), f"at least {_per_cent(NOISE_COVERAGE_LEAST)}")
    return table


def _with_interval(rate: Rate | None) -> str:
    if rate is None:
        return NOT_KNOWN
    return f"{_per_cent(rate.share)} ({100 * rate.low:.1f} to {100 * rate.high:.1f})"


def _share(rate: Rate | None) -> str:
    return NOT_KNOWN if rate is None else _per_cent(rate.share)


def _per_cent(share: float) -> str:
    return f"{100 * share:.1f} %"
