"""Collects the parameters of a foreign space as fields of a study file.

With an engine, names and values become those of its options: a name may be the option's own, the
end of it, or a flag of the engine's db_bench. Without one they belong to a program of the user's
and are kept, but for characters that a name cannot have here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, TypeGuard

from lsmtune.engines.formats.base import Notes, like
from lsmtune.engines.formats.db_bench import find_option
from lsmtune.engines.formats.spelling import KnownOption, known_options
from lsmtune.engines.safety import DURABILITY_OPTIONS
from lsmtune.model.command import RUN_PLACEHOLDERS
from lsmtune.model.config import OptionValue, option_text
from lsmtune.model.files import Document, field_name
from lsmtune.space.parameter import is_option_name, same_value

Number = int | float
Place = tuple[str | int, ...]  # of a field in the document that is imported
When = Mapping[str, Any] | None  # the values of parents with which a parameter is active


def is_number(value: Any) -> TypeGuard[Number]:
    """Whether `value` is a finite number; a truth is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


@dataclass(frozen=True)
class Numbers:
    """A range as the foreign space means it; `specials` are (value, weight) outside it.

    `prior` is a study file's field `prior`. Integers only when `integer`. `open_ended` says that
    the bounds are the importer's choice, because the foreign space has none.
    """

    low: Number
    high: Number
    integer: bool
    log: bool = False
    step: Number | None = None
    bins: int | None = None
    specials: tuple[tuple[Number, float], ...] = ()
    prior: Mapping[str, Any] | None = None
    open_ended: bool = False

    def fields(self, *, in_bytes: bool) -> dict[str, Any]:
        """The range as fields of a parameter in a study file."""
        plain = int if self.integer else float
        fields: dict[str, Any] = {"type": plain.__name__}
        fields |= {"low": plain(self.low), "high": plain(self.high)}
        if self.log:
            fields["log"] = True
        if self.bins is not None:
            fields["bins"] = self.bins
        elif self.step is not None and not (self.integer and self.step == 1):
            fields["step"] = plain(self.step)
        if in_bytes and self.integer:
            fields["unit"] = "bytes"
        if self.specials:
            fields["special"] = [
                {"value": plain(value), "weight": weight} for value, weight in self.specials
            ]
        return fields if self.prior is None else fields | {"prior": dict(self.prior)}


@dataclass
class SpaceBuilder:
    """What becomes `space` and `options` of a study file; `engine` is None for a program's own."""

    document: Document
    notes: Notes
    engine: str | None
    space: dict[str, dict[str, Any]] = field(default_factory=dict)
    options: dict[str, OptionValue] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)
    _nested: dict[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """`space` and, where there are constants, `options`.

        Raises InputError when there is nothing to search.
        """
        if not self.space:
            first = f" ({self.notes.lines[0][1]})" if self.notes.lines else ""
            raise self.document.error((), why=f"has no parameter to search{first}")
        return {"space": self.space} | ({"options": self.options} if self.options else {})

    def note(self, path: Place, text: str) -> None:
        """Say `text` of the field at `path`."""
        self.notes.add(self.document.line(*path), field_name(*path), text)

    def find(self, path: Place, name: str, derived: str | None = None) -> KnownOption | None:
        """The option that `name` means, said where it is not its own name; None when left out.

        `derived` is the name to take for a program's own parameter, in place of `name`.
        """
        if self.engine is None:
            return self._own(path, derived or name)
        option = find_option(self.engine, name)
        if name.lower() in DURABILITY_OPTIONS:
            self.note(path, "left out: durability belongs to the workload")
        elif option is None:
            hint = like(name, known_options(self.engine))
            self.note(path, f"left out: no option of {self.engine}{hint}")
        elif option.name in self.space or option.name in self.options:
            self.note(path, f"left out: {option.name} is there already")
        else:
            if option.name != name:
                self.note(path, f"named {option.name}, the option of {self.engine}")
            return option
        return None

    def _own(self, path: Place, name: str) -> KnownOption | None:
        plain = name
        if not is_option_name(plain):
            plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
            plain = plain if plain[:1].isalpha() or plain.startswith("_") else f"_{plain}"
            self.note(path, f"named {plain}: a name has letters, digits and _")
        if plain in RUN_PLACEHOLDERS:
            self.note(path, f"named {plain}_: {plain} is lsmtune's own word in a command")
            plain += "_"
        if plain in self.space or plain in self.options:
            raise self.document.error(path, found=plain, why="a second parameter of this name")
        return KnownOption(plain)

    def also_active(self, path: Place, name: str, spec: object, when: Mapping[str, Any]) -> bool:
        """Whether an option of another branch is this one too; it is then active in both.

        Only an engine's options: a program's own parameters have a name for each branch.
        """
        option = None if self.engine is None else find_option(self.engine, name)
        if option is None:
            return False
        text = json.dumps(spec, sort_keys=True, default=str)
        if self._nested.setdefault(option.name, text) != text or option.name not in self.space:
            return False
        parents = self.space[option.name].get("when", {})
        if parents.keys() != when.keys():
            return False
        ((parent, value),) = when.items()
        listed = parents[parent] if isinstance(parents[parent], list) else [parents[parent]]
        self.space[option.name]["when"] = {parent: [*listed, value]}
        self.note(path, f"{option.name} is active while {parent} is {_shown(value)}, too")
        return True

    def add_numbers(
        self, path: Place, option: KnownOption, numbers: Numbers, when: When = None
    ) -> None:
        """The parameter `option` with a range of numbers, or a constant where it is one."""
        if option.type == "bool":
            if (numbers.low, numbers.high) == (0, 1):
                self.add_choices(path, replace(option, spelling=None), [False, True], when)
            else:
                self.note(path, f"left out: {option.name} is true or false")
            return
        if option.type == "int" and not numbers.integer:
            numbers = self._whole(path, numbers)
        lowest = None if option.info is None else option.info.low
        if numbers.open_ended:
            # Below the lowest value worth a search the engine may refuse others.
            if lowest is not None and numbers.low < lowest:
                low, step = lowest, numbers.step
                if step is not None:
                    multiple = Fraction(str(step))
                    low = type(step)(math.ceil(Fraction(str(lowest)) / multiple) * multiple)
                numbers = replace(numbers, low=low)
            self.note(path, f"has no bounds; cut off at {numbers.low} and {numbers.high}")
        if numbers.low > numbers.high:
            self.note(path, "left out: no whole number lies in its range")
        elif numbers.low == numbers.high and not numbers.specials:
            self.add_constant(path, option.name, numbers.low, when)
        elif numbers.low == numbers.high:
            values = sorted({numbers.low, *(value for value, _ in numbers.specials)})
            self.add_choices(path, replace(option, spelling=None), values, when)
        else:
            in_bytes = option.info is not None and option.info.unit == "bytes"
            self.space[option.name] = numbers.fields(in_bytes=in_bytes) | _when(when)

    def _whole(self, path: Place, numbers: Numbers) -> Numbers:
        """`numbers` as integers: what the engine would make of the fractions."""
        step = numbers.step
        if step is not None and (step != int(step) or numbers.low != int(numbers.low)):
            self.note(path, f"its step of {step} is left out: the engine takes whole numbers")
            step = None
        elif step is None and numbers.bins is None:
            self.note(path, "searched in whole numbers, as the engine takes them")
        return replace(
            numbers,
            low=math.ceil(numbers.low),
            high=math.floor(numbers.high),
            integer=True,
            step=None if step is None else int(step),
            specials=tuple((int(v), w) for v, w in numbers.specials if v == int(v)),
        )

    def add_choices(
        self, path: Place, option: KnownOption, values: Sequence[object], when: When = None
    ) -> None:
        """The parameter `option` with a list of values, or a constant where only one is left."""
        choices: list[OptionValue] = []
        for index, value in enumerate(values):
            choice = self.choice(path, option, value)
            if choice is None:
                continue
            if any(same_value(choice, earlier) for earlier in choices):
                self.note((*path, index), f"{_shown(value)} is there already, and listed once")
            else:
                choices.append(choice)
        name = option.name
        if not choices:
            self.note(path, "left out: no value is left")
        elif len(choices) == 1:
            self.add_constant(path, name, choices[0], when)
        else:
            self.space[name] = {"type": "categorical", "choices": choices} | _when(when)

    def choice(self, path: Place, option: KnownOption, value: object) -> OptionValue | None:
        """`value` as the option takes it, None (said) where it cannot be one."""
        if not isinstance(value, str | int | float | bool):
            self.note(path, f"the value {_shown(value)} is left out: not text, a number or a truth")
            return None
        if isinstance(value, str) and (not value.strip() or not value.isprintable()):
            self.note(path, f"the value {value!r} is left out: no text that can be written")
            return None
        if option.spelling is not None and not isinstance(value, bool):
            try:
                return option.spelling.read(option_text(value))
            except ValueError as error:
                self.note(path, f"the value {_shown(value)} is left out; allowed: {error}")
                return None
        if option.type == "bool" and value in (0, 1):
            return bool(value)
        if isinstance(value, float) and value.is_integer() and option.type == "int":
            return int(value)
        return value

    def add_constant(self, path: Place, name: str, value: OptionValue, when: When = None) -> None:
        """An option with one value: nothing to search, so it goes under `options`."""
        if when:
            self.note(path, f"left out: {name} has one value, {_shown(value)}, and a condition")
            return
        self.options[name] = value
        self.note(path, f"has one value, {_shown(value)}: under options, not searched")


def _when(when: When) -> dict[str, Any]:
    return {"when": dict(when)} if when else {}


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
