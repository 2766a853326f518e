"""The options that recur: reading their values, and refusing what cannot be meant."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_group
from typer.testing import CliRunner

from lsmtune.cli.flags import (
    JsonOption,
    LimitFlags,
    bytes_of,
    command,
    config_of,
    duration_of,
    flag,
    option,
    whole_number,
)
from lsmtune.errors import InputError
from lsmtune.model.request import Limits
from lsmtune.workloads.choice import assignments, stated_workload


@dataclass(frozen=True)
class Size:
    """What the command of the next test is told of a size."""

    name: str
    size: int = flag("-s --size N", "How large.", 3, number=(1, 9))
    names: list[str] | None = flag("--names NAME", "Other names.")


def test_the_fields_of_a_dataclass_are_flags_where_its_parameter_stands() -> None:
    app, calls = typer.Typer(), []

    @command(app, "measure", ("measure --size 4",))
    def _measure(
        *,
        first: str = option("--first", "Before.", "a"),
        size: Size,
        limits: LimitFlags,
        as_json: JsonOption = False,
    ) -> None:
        """Measure something."""
        calls.append((first, size, limits.limits, as_json))

    (made,) = get_group(app).commands.values()
    assert (made.name, made.help) == ("measure", "Measure something.")
    assert made.epilog == "Examples:\n\nmeasure --size 4"
    names = [parameter.name for parameter in made.params]
    assert names == [
        *("first", "name", "size", "names"),
        *("deadline", "memory", "disk", "as_json", "no_color"),
    ]
    run = CliRunner().invoke
    assert run(app, ["b"]).exit_code == 0
    assert calls.pop() == ("a", Size("b"), Limits(), False)
    run(app, ["b", "-s", "5", "--names", "c", "--names", "d", "--disk", "1GiB", "--json"])
    assert calls.pop() == ("a", Size("b", 5, ["c", "d"]), Limits(disk_bytes=1 << 30), True)
    assert str(run(app, ["b", "--size", "10"]).exception).startswith("--size: found '10'")
    assert run(app, []).exit_code != 0


def test_a_flag_with_one_value_that_is_given_twice_says_which_counts() -> None:
    """The first value was dropped without a word, beside `-w num=1 -w num=2`, which is refused."""
    app = typer.Typer()

    @command(app, "measure")
    def _measure(*, size: Size, as_json: JsonOption = False) -> None:
        """Measure something."""
        typer.echo(f"{size.size} {size.names} {as_json}")

    said = CliRunner().invoke(app, ["b", "--size", "4", "-s", "5", "--json", "--json"])
    assert (said.exit_code, said.stdout) == (0, "5 None True\n")
    assert said.stderr == "lsmtune: note: --size: given 2 times; the last one counts\n"
    said = CliRunner().invoke(app, ["b", "-s", "5", "--names", "c", "--names", "d"])
    assert (said.stdout, said.stderr) == ("5 ['c', 'd'] False\n", "")


def test_options_are_typed_and_keep_their_text_as_label() -> None:
    config = config_of(["write_buffer_size=4MiB", "paranoid_checks=true", "compression=snappy"])
    assert dict(config.options) == {
        "compression": "snappy",
        "paranoid_checks": True,
        "write_buffer_size": 4 << 20,
    }
    assert config_of(None).label == "default"
    assert config_of(["a={b=1,c=2}"]).options["a"] == "{b=1,c=2}"


@pytest.mark.parametrize("text", ["write_buffer_size", "=4", "a=", "", "=", " = "])
def test_what_is_not_name_equals_value_is_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        assignments("-o/--option", [text])
    assert str(caught.value) == f"-o/--option: found {text!r}; allowed: name=value"


def test_a_name_given_twice_is_refused() -> None:
    with pytest.raises(InputError, match="-w/--workload-set: num: given twice"):
        stated_workload("fillrandom", ["num=1", "num=2"])


def test_a_value_that_is_no_whole_number_of_bytes_names_its_option() -> None:
    with pytest.raises(InputError, match=r"-o/--option: a: found '0.3B'"):
        config_of(["a=0.3B"])


@pytest.mark.parametrize("value", ["1;level0_stop_writes_trigger=3", "1=2", "4\n5"])
def test_a_value_that_carries_another_option_is_refused(value: str) -> None:
    with pytest.raises(InputError, match=r"-o/--option: a: found '.*; allowed: (one value|text)"):
        config_of([f"a={value}"])
    assert config_of(["a={b=1;c=2}"]).options["a"] == "{b=1;c=2}"


@pytest.mark.parametrize("text", ["0", "11", "-1", "x", "1.5", "", "nan", "9" * 30])
def test_whole_numbers_outside_their_range_are_told_what_is_allowed(text: str) -> None:
    with pytest.raises(InputError) as caught:
        whole_number("--n", 1, 10)(text)
    assert str(caught.value) == f"--n: found {text!r}; allowed: a whole number from 1 to 10"
    assert whole_number("--n", 1, 10)("10") == 10


def test_workloads_and_their_parameters() -> None:
    workload = stated_workload("fillrandom", ["num=1000", "value_bytes=1KiB"]).workload
    assert (workload.name, workload.num, workload.value_bytes) == ("fillrandom", 1000, 1024)
    with pytest.raises(InputError, match=r"--workload: found 'fillrandm'.*did you mean fillrandom"):
        stated_workload("fillrandm", None)
    with pytest.raises(InputError, match="or a file"):
        stated_workload("x" * 300, None)  # longer than a file's name may be
    with pytest.raises(InputError, match=r"-w/--workload-set: nim: .*did you mean num"):
        stated_workload("fillrandom", ["nim=3"])


def test_limits() -> None:
    assert LimitFlags("10m", "4GiB", "20GiB").limits == Limits(600.0, 4 << 30, 20 << 30)
    assert LimitFlags(memory="1GiB").over(Limits(1.0, 2, 3)) == Limits(1.0, 1 << 30, 3)


@pytest.mark.parametrize(("text", "flag"), [("soon", "--deadline"), ("0s", "--deadline")])
def test_durations_that_are_none(text: str, flag: str) -> None:
    with pytest.raises(InputError, match=f"{flag}: found '{text}'"):
        duration_of(flag, text)


@pytest.mark.parametrize("text", ["much", "4M", "0", "0B", "-1"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(InputError, match=f"--memory: found '{text}'"):
        bytes_of("--memory", text)


names = st.text("abcdefgh_.", min_size=1, max_size=8)
values = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=8)


@given(st.dictionaries(names, values, max_size=5))
def test_assignments_are_what_was_written(given_: dict[str, str]) -> None:
    assert assignments("-o", [f"{name}={value}" for name, value in given_.items()]) == given_
