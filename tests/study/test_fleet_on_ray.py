"""What a fleet does of its own on Ray, without Ray: one node, whose actor works, or does not."""

from __future__ import annotations

import errno
import socket
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest

from lsmtune.errors import LsmtuneError
from lsmtune.fleet.host import Answer, HostLostError, Work
from lsmtune.fleet.on_ray import NAME, SLOT, RayFleet
from lsmtune.machine.awake import Clock
from lsmtune.model.config import EngineIdentity
from patience import PATIENCE_S


class _RayError(Exception):
    actor_init_failed = False


class FakeRay:
    """Ray with one node; its actor `dies` in the place of answering, or is `silent`."""

    exceptions = SimpleNamespace(RayError=_RayError, GetTimeoutError=type("T", (_RayError,), {}))

    def __init__(self) -> None:
        self.dies = self.silent = False
        self.broken: _RayError | None = None
        self.asked: list[Future[Answer]] = []

    def init(self, **_: object) -> None:
        pass

    shutdown = init

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": "n", "Alive": True, "Resources": {SLOT: 1, f"{NAME}a": 1}}]

    def wait(self, awaited: list[object], timeout: float) -> tuple[list[object], list[object]]:
        assert timeout == 0
        return awaited, []

    def get(self, answer: object, timeout: float) -> object:
        assert timeout > 0
        if self.broken is not None:
            raise self.broken
        return answer

    def kill(self, _actor: object, *, no_restart: bool) -> None:
        assert no_restart

    def remote(self, **_: object) -> Any:
        actor = SimpleNamespace(
            ready=SimpleNamespace(remote=lambda: None),
            facts=SimpleNamespace(remote=lambda _: None),
            perform=SimpleNamespace(remote=self._perform),
        )
        made = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: actor))
        return lambda _: made

    def _perform(self, _token: int, work: Work) -> Any:
        assert work == Work(())
        future: Future[Answer] = Future()
        self.asked.append(future)
        if self.silent:
            pass
        elif self.dies:
            future.set_exception(_RayError("the actor died"))
        else:
            future.set_result(Answer(()))
        return SimpleNamespace(future=lambda: future)


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setattr("lsmtune.fleet.on_ray._ray", lambda: fake)
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: (node, soft))
    monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", strategies)
    return fake


@pytest.fixture
def head() -> Iterator[socket.socket]:
    """Where the daemon of the head listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def fleet_at(head: socket.socket, clock: Clock = time.monotonic) -> RayFleet:
    return RayFleet("{}:{}".format(*head.getsockname()), clock=clock)


def lost_next(ray: FakeRay, fleet: RayFleet) -> bool:
    """Whether the host was there, and was lost."""
    ray.dies = True
    hosts = fleet.hosts()
    for host in hosts:
        with pytest.raises(HostLostError, match="the actor died"):
            host.submit(1, Work(())).result(PATIENCE_S)
        host.give_up()
    return bool(hosts)


def test_a_host_that_is_lost_again_and_again_is_left_alone(
    ray: FakeRay, head: socket.socket
) -> None:
    fleet = fleet_at(head)
    assert [lost_next(ray, fleet) for _ in range(6)] == [True] * 5 + [False]


def test_a_host_that_is_lost_now_and_then_in_a_long_study_is_not_left_alone(
    ray: FakeRay, head: socket.socket
) -> None:
    """Of 100 kills in one study each host has had more than five: all of them were left alone."""
    fleet = fleet_at(head)
    for _ in range(4):
        assert all(lost_next(ray, fleet) for _ in range(3))
        ray.dies = False
        (host,) = fleet.hosts()
        assert host.submit(1, Work(())).result(PATIENCE_S) == Answer(())
        host.give_up()


def test_a_host_that_cannot_begin_says_why(ray: FakeRay, head: socket.socket) -> None:
    """It was tried five times and left alone; "no host has a free slot" was all that was said."""
    ray.broken = _RayError(
        "The actor died because of an error raised in its creation task, ray::_Actor.__init__()\n"
        '  File "host.py", line 1, in __init__\n'
        "lsmtune.fleet.host.HostLostError: /w/a: another worker measures here\n"
    )
    ray.broken.actor_init_failed = True
    fleet = fleet_at(head)
    for _ in range(5):
        (host,) = fleet.hosts()
        with pytest.raises(HostLostError, match=r"^/w/a: another worker measures here$"):
            host.facts(EngineIdentity("memory"))
        host.give_up()
    assert fleet.hosts() == []


@pytest.mark.usefixtures("ray")
def test_a_fleet_whose_head_has_ended_says_so_before_ray_ends_the_program(
    head: socket.socket,
) -> None:
    """Ray waits 60 s for the daemon of a head that was killed, and then ends the tuner itself."""
    fleet = fleet_at(head)
    assert fleet.hosts()
    head.close()
    with pytest.raises(LsmtuneError, match=r"ConnectionRefusedError.*start the fleet again"):
        fleet.hosts()


@pytest.mark.parametrize(
    "error", [OSError(errno.EHOSTUNREACH, "No route to host"), TimeoutError("timed out")]
)
@pytest.mark.usefixtures("ray")
def test_a_head_that_is_out_of_reach_for_a_while_ends_no_study(
    head: socket.socket, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    fleet = fleet_at(head)

    def fails(*_: object) -> socket.socket:
        raise error

    monkeypatch.setattr(socket, "create_connection", fails)
    assert [host.name for host in fleet.hosts()] == ["a"]


def test_a_host_that_is_too_late_again_and_again_is_left_alone(
    ray: FakeRay, head: socket.socket
) -> None:
    fleet, ray.silent = fleet_at(head), True
    for _ in range(5):
        (host,) = fleet.hosts()
        late = host.submit(1, Work(()))
        host.give_up()
        ray.asked[-1].set_result(Answer(()))
        assert late.result(PATIENCE_S) == Answer(())
    assert fleet.hosts() == []
    assert fleet.hosts() == []


@pytest.mark.parametrize("answers", [True, False])
def test_a_host_that_is_silent_keeps_its_slot_until_it_answered_or_had_time_to(
    ray: FakeRay, head: socket.socket, answers: bool
) -> None:
    """Its actor was killed at once, and Ray kept its late answer from being counted."""
    ray.silent, now_s = True, [0.0]
    fleet = fleet_at(head, lambda: now_s[0])
    (host,) = fleet.hosts()
    late = host.submit(1, Work(()))
    host.give_up()
    assert fleet.hosts() == []
    if answers:
        ray.asked[0].set_result(Answer(()))
        assert late.result(PATIENCE_S) == Answer(())
    else:
        now_s[0] = 61.0
    assert [again.name for again in fleet.hosts()] == ["a"]
