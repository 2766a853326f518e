"""What is wrong with a command is said when the study file is read, not after an hour."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lsmtune.errors import InputError
from lsmtune.model.command import (
    CommandSpec,
    JsonPointers,
    ParametersFile,
    RegularExpressions,
    check_command,
    filled,
    placeholders,
)

NAMES = ("size", "table.bits", "mode")
GOOD = CommandSpec(
    ("run", "{size}", ("--bits", "{table.bits}"), "{{}}", "{seed}"),
    Path("/"),
    environment={"BITS": "{table.bits}"},
    parameters_file=ParametersFile("params.json"),
    metrics=("score",),
)


def check(spec: CommandSpec) -> None:
    check_command(spec, NAMES, {"table.bits"})


def test_a_good_one_passes() -> None:
    check(GOOD)


BAD = [
    ({"command": ()}, "runner.command: begins with the program"),
    ({"command": (("run",),)}, "runner.command: begins with the program"),
    (
        {"command": ("run", "{sizes}")},
        "runner.command[1]: unknown placeholder; found '{sizes}'; allowed: size, table.bits, mode, "
        "seed, directory, trial, num; did you mean size?",
    ),
    ({"command": ("run", "{size")}, "runner.command[1]: expected '}' before end of string"),
    ({"command": ("run", "{}")}, "a placeholder is a name between braces"),
    ({"command": ("run", "{size:>8}")}, "a placeholder is a name between braces"),
    ({"command": ("run", "{size!r}")}, "a placeholder is a name between braces"),
    ({"command": ("run", "a\0b")}, "a NUL character"),
    ({"command": ("run", "{table.bits}")}, "table.bits is not active in every configuration"),
    ({"environment": {"LSMTUNE_SEED": "1"}}, "runner.environment.LSMTUNE_SEED: LSMTUNE_*"),
    ({"environment": {"A=B": "1"}}, "runner.environment: found 'A=B'"),
    ({"environment": {"A": "{b}"}}, "runner.environment.A: unknown placeholder"),
    ({"parameters_file": ParametersFile("../p.json")}, "parameters_file: found '../p.json'"),
    ({"parameters_file": ParametersFile("/p.json")}, "allowed: a name inside the run's directory"),
    ({"parameters_file": ParametersFile("p", "{siz}")}, "parameters_file.template: unknown"),
    ({"results": RegularExpressions({"score": "("})}, "results.regex.score: missing ), unterm"),
    ({"results": RegularExpressions({"score": "a"})}, "regex.score: 0 groups; found 'a'; allowed"),
    # Both ended in a traceback.
    ({"results": RegularExpressions({"score": "(a{99999999999})"})}, "regex.score: the repetition"),
    ({"results": RegularExpressions({"score": "(" * 3000})}, "results.regex.score: "),
    ({"results": JsonPointers({"score": "a"})}, "json_pointer.metrics.score: "),
    ({"results": JsonPointers({"score": "/a"}, "/out")}, "json_pointer.file: found '/out'"),
    ({"results": JsonPointers({"scores": "/a"})}, "nothing gives the metric score; found 'scores'"),
]


@pytest.mark.parametrize(("changes", "told"), BAD)
def test_a_bad_one_is_refused_in_one_line(changes: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as caught:
        check(replace(GOOD, **changes))  # type: ignore[arg-type]
    assert told in str(caught.value)
    assert str(caught.value).startswith("runner.")


def test_a_parameter_of_lsmtunes_own_name_is_refused() -> None:
    with pytest.raises(InputError, match=r"space.seed: {seed} is lsmtune's own word"):
        check_command(GOOD, ("size", "table.bits", "seed"), ())


@given(st.lists(st.one_of(st.text(), st.sampled_from(NAMES).map(lambda n: (n,)))))
def test_what_is_written_comes_out(parts: list[str | tuple[str]]) -> None:
    """Any text with doubled braces, between any placeholders."""
    written = "".join(
        f"{{{part[0]}}}" if isinstance(part, tuple) else part.replace("{", "{{").replace("}", "}}")
        for part in parts
    )
    values = {name: f"<{{{name}}}>" for name in NAMES}
    assert placeholders(written) == tuple(p[0] for p in parts if isinstance(p, tuple))
    assert filled(written, values) == "".join(
        values[part[0]] if isinstance(part, tuple) else part for part in parts
    )


@given(st.text(alphabet="{}a.:![] \n"))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        names = placeholders(text)
    except ValueError as error:
        told = str(error)
    else:
        told = filled(text, dict.fromkeys(names, "x")).replace("\n", "")
    assert "\n" not in told
