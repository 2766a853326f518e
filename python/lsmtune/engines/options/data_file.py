"""What the data files of this folder have in common: reading, and checking an entry."""

from __future__ import annotations

from importlib import resources
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, BeforeValidator, ValidationError

from lsmtune.errors import InputError
from lsmtune.units import UnitError, option_value

Model = TypeVar("Model", bound=BaseModel)


def read_data(file_name: str) -> str:
    """The text of a data file beside this module."""
    data = resources.files("lsmtune.engines") / "options" / file_name
    return data.read_text(encoding="utf-8")


def entries(text: str, source: str) -> dict[str, Any]:
    """The named entries in `text` (YAML). Raises InputError, naming `source`, for anything else."""
    try:
        document = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise InputError(source, why=f"not YAML: {error}") from error
    if not isinstance(document, dict) or not document:
        raise InputError(source, allowed="a mapping from names to their attributes")
    return {str(name): entry for name, entry in document.items()}


class _Loader(yaml.CSafeLoader):
    """The safe loader, which takes a key that is given twice for the mistake that it is."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for index, key in enumerate(keys):
            if key in keys[:index]:
                raise yaml.MarkedYAMLError(problem=f"{key} twice", problem_mark=node.start_mark)
        return super().construct_mapping(node, deep)


def checked(model: type[Model], raw: object, name: str, source: str) -> Model:
    """The entry `name` as a `model`. Raises InputError for the first thing that is wrong in it."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join([name, *(str(part) for part in problem["loc"])])
        found = problem["input"] if isinstance(problem["input"], str | int | float) else None
        raise InputError(source, place, found=found, why=problem["msg"]) from None


def _typed(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return option_value(value)
    except UnitError as error:
        raise ValueError(str(error)) from error


# An option's value as people write it: `4MiB` is a number of bytes.
Value = Annotated[bool | int | float | str, BeforeValidator(_typed)]
Number = Annotated[int | float, BeforeValidator(_typed)]
