"""Leases: which host works for the study now. A token fences off who was given up.

Each lease has a token, a number that only rises, over all sessions of a study. The tuner alone
gives them out and takes them back. What comes under a token that was taken back, however late, is
discarded and counted. (M. Kleppmann, "How to do distributed locking", 2016, has the idea of a
fencing token; C. Gray, D. Cheriton, SOSP 1989, that of a lease.)
"""

from __future__ import annotations

from typing import Any, Protocol

# Tokens are reserved by so many, so that a lease costs no transaction of its own.
_BLOCK = 1000
_FACT = "fleet_tokens"
_DISCARDED = "fleet_discarded"


class Facts(Protocol):
    """Where the highest reserved token is kept, and how much was discarded."""

    def fact(self, key: str) -> Any:
        """The value under `key`, None without one."""
        ...

    def set_fact(self, key: str, value: object) -> None:
        """Keep `value` under `key`."""
        ...


class Leases:
    """The leases of one session. For one thread.

    `discarded`: what came too late, over all sessions of the study.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._next = self._reserved = int(facts.fact(_FACT) or 0)
        self._held: dict[int, str] = {}
        self.discarded = int(facts.fact(_DISCARDED) or 0)

    def grant(self, host: str) -> int:
        """A token for `host`, higher than all before it. Raises ValueError where it has one."""
        if host in self._held.values():
            raise ValueError(f"{host} has a lease already")
        if self._next >= self._reserved:
            self._reserved = self._next + _BLOCK
            self._facts.set_fact(_FACT, self._reserved)
        token, self._next = self._next, self._next + 1
        self._held[token] = host
        return token

    def holds(self, token: int) -> bool:
        """Whether what comes under `token` counts."""
        return token in self._held

    def end(self, token: int) -> None:
        """Nothing counts under `token` from now on."""
        self._held.pop(token, None)

    def discard(self) -> None:
        """Something came under a token that had ended."""
        self.discarded += 1
        self._facts.set_fact(_DISCARDED, self.discarded)
