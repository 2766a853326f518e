"""The commands by name. A command's module is loaded when the command is used, not before.

Most of them stand on libraries that take longer to import than `lsmtune --help` may take.
"""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_group

# In the order of `lsmtune --help`. Each is in a module of this room, of the same name unless
# `_MODULES` says otherwise: a command of its `app`, or the group that this is.
COMMANDS = {
    "quickstart": "Tune RocksDB for three minutes, to see what comes out.",
    "doctor": "Say what this machine and its engine libraries are good for.",
    "engines": "List, install and register engine libraries.",
    "plugins": "List what other packages add, and what of it is broken.",
    "options": "Say what an engine's options mean, and list ready spaces and presets.",
    "workload": "List, show, import and export workloads.",
    "init": "Write a study file to start from.",
    "import": "Read the spaces and option files of other programs.",
    "bench": "Measure one configuration under one workload.",
    "tune": "Search, prove, and write the result; continues where it stopped.",
    "worker": "Measure for a fleet on this machine, or begin one.",
    "verify": "Prove one configuration against another on paired, fresh runs.",
    "contest": "Rank configurations of several teams under one workload.",
    "minimise": "Find the fewest options that keep a configuration's gain.",
    "sweep": "Measure a grid of workload parameters and option values.",
    "ls": "List the studies here, with their verdicts.",
    "show": "Show a study in one screen.",
    "report": "Write the report of a study.",
    "dashboard": "Show studies in a browser while they run.",
    "export": "Write a configuration in the form that another program reads.",
}

# `import` is a word of Python's own.
_MODULES = {"import": "import_"}

# What stands for a value in a help text, by what is made of it.
_KINDS = {bool: "", Path: "FILE", int: "N", float: "NUMBER", str: "TEXT"}


def named_by_kind(parameters: list[Any]) -> list[Any]:
    """`parameters` of a command, whose help says FILE and N, and not `<path>` and `<int>`."""
    for parameter in parameters:
        if isinstance(parameter, TyperArgument):
            # Its name says what it is; a column of types beside it says it worse.
            parameter.metavar = parameter.metavar or (parameter.name or "").upper()
            setattr(parameter, "display_type_rich", lambda ctx: None)  # noqa: ARG005, B010
        elif parameter.metavar is None:
            parameter.metavar = _KINDS.get(parameter.type_descriptor.annotation)
    return parameters


class Command(TyperCommand):
    """A command whose help names values by kind, and which says what was given for nothing."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As in the base class; of a flag with one value that is given twice, the last counts."""
        from lsmtune.cli.output import note

        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        for parameter, times in Counter(given).items():
            takes_one = isinstance(parameter, TyperOption) and not (
                parameter.multiple or parameter.is_flag
            )
            if times > 1 and takes_one and not ctx.resilient_parsing:
                flag = max(parameter.opts, key=len)
                note(f"{flag}: given {times} times; the last one counts")
        return super().parse_args(ctx, args)

    def get_params(self, ctx: Any) -> list[Any]:
        """As in the base class, with kinds."""
        return named_by_kind(super().get_params(ctx))


class Group(TyperGroup):
    """A group of commands whose help names values by kind."""

    def get_params(self, ctx: Any) -> list[Any]:
        """As in the base class, with kinds."""
        return named_by_kind(super().get_params(ctx))


class LazyGroup(Group):
    """A group whose commands are stand-ins with a name and a line of help until one is used."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        for name, summary in COMMANDS.items():
            self.add_command(TyperCommand(name, help=summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As in the base class, with the real command put in place first."""
        if args and args[0] in COMMANDS:
            self.add_command(load_command(args[0]), args[0])
        return super().resolve_command(ctx, args)


def load_command(name: str) -> Any:
    """The command `name` of COMMANDS, its module imported."""
    module = importlib.import_module(f"lsmtune.cli.{_MODULES.get(name, name)}")
    group = get_group(module.app)
    return group if group.name == name else group.commands[name]
