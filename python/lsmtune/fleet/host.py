"""A host of a fleet: what it is asked to do, what it answers, and how it proves to be the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import lsmtune
from lsmtune.driver.messages import Message
from lsmtune.driver.native import NativeRunner
from lsmtune.driver.runner import Runner
from lsmtune.engines.library import file_sha256, snappy_beside
from lsmtune.errors import LsmtuneError
from lsmtune.machine.findings import machine_facts
from lsmtune.model.config import EngineIdentity
from lsmtune.model.measurement import Measurement
from lsmtune.model.request import PairMethod, RunRequest

# So long may a host say nothing while it measures; then it is given up.
SILENCE_S = 30.0
# So long may it take to end a run that was cancelled.
CANCEL_S = 15.0
_PASSING = "load average at the start"


class HostLostError(LsmtuneError):
    """A host answers no more, or cannot measure; the text says why. Its work is done elsewhere."""


class FleetLostError(LsmtuneError):
    """There are no hosts any more, and no way to learn of new ones. The study is kept."""


@dataclass(frozen=True)
class Work:
    """What one host is asked to do: one run, or with a `method` the two of a pair that share it.

    The folders of the `requests` are the host's own. It keeps loaded databases of up to
    `databases_bytes`; 0 for none. Each Work of a lease has a higher `number` than the one before.
    """

    requests: tuple[RunRequest, ...]
    method: PairMethod | None = None
    databases_bytes: int = 0
    number: int = 0


@dataclass(frozen=True)
class Answer:
    """What the runs of a Work observed; `notes` is what is out of the ordinary, a line each.

    `said` is what no poll has fetched.
    """

    token: int
    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...] = ()
    said: tuple[Message, ...] = ()


@dataclass(frozen=True)
class HostFacts:
    """What a host consists of, by name: `software` has to be the same on all, `hardware` may not.

    What is not known is left out.
    """

    software: Mapping[str, str]
    hardware: Mapping[str, str]


class Host(Protocol):
    """One machine, which performs one Work at a time.

    `token` belongs to the lease under which it works (`fleet.head`); a host refuses one that is
    lower than one it has seen. All methods but `submit` raise HostLostError for a host that does
    not answer. Not for several threads, but for `give_up`.
    """

    name: str

    def facts(self, engine: EngineIdentity) -> HostFacts:
        """What it is, for runs of `engine`."""
        ...

    def submit(self, token: int, work: Work) -> Future[Answer]:
        """Begin `work`. The future raises HostLostError where the host cannot do it."""
        ...

    def poll(self, token: int) -> Sequence[Message]:
        """What the runs said since the last call: a sign of life."""
        ...

    def cancel(self, token: int, number: int) -> None:
        """End the Work of `token` with this number or a lower one, which then answers soon."""
        ...

    def give_up(self) -> None:
        """Never ask it again, and let its slot go as far as that can be done from here."""
        ...


class Fleet(Protocol):
    """The hosts that there are. For one thread."""

    def hosts(self) -> Sequence[Host]:
        """Those that came since the last call, each with its slot. Raises FleetLostError."""
        ...

    def close(self) -> None:
        """Let all slots go."""
        ...


# --- Proof that a host is the same.


def host_facts(engine: EngineIdentity, runner: Runner, directory: Path) -> HostFacts:
    """Of the machine that this runs on. Raises OSError for a library that cannot be read."""
    software = {"lsmtune": lsmtune.__version__, "runner": type(runner).__name__}
    if isinstance(runner, NativeRunner):
        software["driver"] = file_sha256(runner.driver)
    if engine.library is not None:
        library = Path(engine.library)
        software["library"] = file_sha256(library)
        beside = snappy_beside(library)
        software["Snappy"] = file_sha256(beside) if beside else "its own"
    hardware = {name: v for name, v in machine_facts(directory).items() if name != _PASSING}
    return HostFacts(software, hardware)


def refusal(host: HostFacts, reference: HostFacts) -> str:
    """Why runs of a host say nothing beside those of the `reference`, in one line; or empty."""
    names = [n for n in reference.software if host.software.get(n) != reference.software[n]]
    if not names:
        return ""
    told = (
        f"{name} is {_shown(host.software.get(name))} and not {_shown(reference.software[name])}"
        for name in names
    )
    return f"is refused: {', '.join(told)}"


def differences(host: HostFacts, reference: HostFacts) -> str:
    """What hardware differs, in one line; empty for nothing. It has a baseline of its own."""
    names = dict.fromkeys([*reference.hardware, *host.hardware])
    told = [
        f"{name} {host.hardware.get(name, 'not known')} "
        f"(elsewhere {reference.hardware.get(name, 'not known')})"
        for name in names
        if host.hardware.get(name) != reference.hardware.get(name)
    ]
    return f"differs, and is compared with its own baseline: {', '.join(told)}" if told else ""


def _shown(value: str | None) -> str:
    """A digest by its beginning."""
    return "not there" if value is None else value[:12]
