"""What packages outside lsmtune add to it, by entry points: one loader for every kind of plugin.

    [project.entry-points."lsmtune.samplers"]
    annealing = "my_package.annealing:KIND"

The object has the type that `GROUPS` says, and the name of its entry point. A plugin is imported
when somebody asks for it by name, or for all that can be used. One that is broken is told to
whoever names it, and breaks nothing else. lsmtune's own names stay lsmtune's.
"""

from __future__ import annotations

import functools
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import TypeVar

from lsmtune.errors import FieldError

Kind = TypeVar("Kind", covariant=True)

SAMPLERS = "lsmtune.samplers"
PRUNERS = "lsmtune.pruners"
PROGRAMS = "lsmtune.programs"
IMPORTERS = "lsmtune.importers"
EXPORTERS = "lsmtune.exporters"
WORKLOADS = "lsmtune.workloads"
REPORTS = "lsmtune.reports"
ENGINES = "lsmtune.engines"

# Where the type of each group is; as text, because this room is above theirs.
GROUPS: Mapping[str, str] = MappingProxyType(
    {
        SAMPLERS: "lsmtune.search.sampler:SamplerKind",
        PRUNERS: "lsmtune.search.pruners:PrunerKind",
        PROGRAMS: "lsmtune.programs.program:Program",
        IMPORTERS: "lsmtune.engines.formats.base:ImportFormat",
        EXPORTERS: "lsmtune.engines.formats.base:ExportFormat",
        WORKLOADS: "lsmtune.workloads.parameter:WorkloadFamily",
        REPORTS: "lsmtune.report.study:ReportFormat",
        ENGINES: "lsmtune.engines.library:PluginEngine",
    }
)


@dataclass(frozen=True)
class Origin:
    """Where a plugin is from: `place` is `module:attribute`."""

    package: str
    version: str
    place: str

    @classmethod
    def of(cls, entry: EntryPoint) -> Origin:
        """Where `entry` is from."""
        package = entry.dist
        if package is None:
            return cls("unknown", "unknown", entry.value)
        return cls(package.name, package.version, entry.value)

    def __str__(self) -> str:
        return f"{self.place} of the package {self.package} {self.version}"


class Plugins(Mapping[str, Kind]):
    """The kinds of a group by name: lsmtune's own in their order, then those of entry points.

    To list names or to look for one imports nothing. `plugins[name]` imports what it names, and
    raises FieldError, which `errors.by_name` completes, for a plugin that cannot be used.
    """

    def __init__(self, group: str, builtin: Mapping[str, Kind | str]) -> None:
        """`builtin` says of each kind what it is, or where (`module:attribute`)."""
        self.group = group
        self._builtin = builtin

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys((*self._builtin, *sorted(self._added()))))

    def __len__(self) -> int:
        return len(self._builtin.keys() | self._added().keys())

    def __contains__(self, name: object) -> bool:
        return name in self._builtin or name in self._added()

    def __getitem__(self, name: str) -> Kind:
        if name in self._builtin:
            known = self._builtin[name]
            kind: Kind = pkgutil.resolve_name(known) if isinstance(known, str) else known
            return kind
        first, *others = self._added()[name]
        if others:
            places = " and ".join(str(Origin.of(entry)) for entry in (first, *others))
            why = f"is the name of {1 + len(others)} plugins; uninstall all but one of {places}"
            raise FieldError(found=name, why=why)
        return self._loaded(first)

    def usable(self) -> Mapping[str, Kind]:
        """All that can be used, imported; the others are left out."""
        kinds: dict[str, Kind] = {}
        for name in self:
            try:
                kinds[name] = self[name]
            except FieldError:
                continue
        return MappingProxyType(kinds)

    def origin(self, name: str) -> Origin | None:
        """Where the plugin `name` is from; None for what is lsmtune's own, and unknown names."""
        entries = () if name in self._builtin else self._added().get(name, ())
        return Origin.of(entries[0]) if entries else None

    def added(self) -> Iterator[tuple[str, Origin, str]]:
        """Each entry point: its name, where it is from, and why it cannot be used, or nothing."""
        for name, entries in sorted(self._added().items()):
            for entry in entries:
                why = ""
                if name in self._builtin:
                    why = "has a name that is taken: it is lsmtune's own"
                else:
                    try:
                        _ = self[name]
                    except FieldError as error:
                        why = error.why
                yield name, Origin.of(entry), why

    def _added(self) -> Mapping[str, tuple[EntryPoint, ...]]:
        entries: dict[str, tuple[EntryPoint, ...]] = {}
        for entry in _installed(self.group):
            entries[entry.name] = (*entries.get(entry.name, ()), entry)
        return entries

    def _loaded(self, entry: EntryPoint) -> Kind:
        expected: type[Kind] = pkgutil.resolve_name(GROUPS[self.group])
        origin = Origin.of(entry)
        try:
            kind = entry.load()
        # Whatever somebody else's package does when it is imported.
        except (Exception, SystemExit) as error:
            problem = f"cannot be loaded from {origin}: {type(error).__name__}: {error}"
            raise FieldError(found=entry.name, why=" ".join(problem.split())) from error
        if not isinstance(kind, expected):
            why = f"is no {expected.__name__}, but a {type(kind).__name__}: {origin}"
            raise FieldError(found=entry.name, why=why)
        name = getattr(kind, "name", "")
        if name != entry.name:
            raise FieldError(found=entry.name, why=f"calls itself {name!r}: {origin}")
        return kind


def is_any_installed() -> bool:
    """Whether a package adds anything. Imports nothing."""
    return any(_installed(group) for group in GROUPS)


@functools.cache
def _installed(group: str) -> tuple[EntryPoint, ...]:
    # A package whose metadata is on the path twice has each of them once.
    return tuple(dict.fromkeys(entry_points(group=group)))
