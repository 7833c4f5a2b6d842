"""What a conformance check is: a plain coroutine with a stable id, so a kit runs with pytest and without.

Checks compare with `same`, `holds` and `raises`, never with ``assert``: they judge under ``python -O`` too.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from typing import Generic, TypeVar

__all__ = [
    "KIT_VERSION",
    "Caught",
    "Check",
    "CheckFailed",
    "Checks",
    "Fresh",
    "Hooks",
    "NotApplicable",
    "applies",
    "holds",
    "raises",
    "same",
]

KIT_VERSION = 2
"""Raised when a check is added or asks for more; check ids are never used twice."""

S = TypeVar("S")
E = TypeVar("E", bound=BaseException)


class CheckFailed(AssertionError):
    """The store does not keep a promise."""


class NotApplicable(Exception):
    """The check cannot be run on this store; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks(Generic[S]):
    """What an implementer may add so that the kit sees more; all are optional."""

    settle: Callable[[S], Awaitable[None]] | None = None
    """Wait until everything acknowledged can be listed."""
    peek: Callable[[S, str, str], Awaitable[tuple[bytes, bytes | None] | None]] | None = None
    """Read (value, body) at (partition, key) behind the store's back."""
    poke: Callable[[S, str, str, bytes], Awaitable[None]] | None = None
    """Replace the value at (partition, key) behind the store's back."""
    another: Callable[[S], Awaitable[S]] | None = None
    """Open a second store on the same data; the first may be open or closed. The kit closes it."""

    @classmethod
    def of(cls, owner: object) -> Hooks[S]:
        """Collect the hooks that an object has as methods."""
        return cls(**{f.name: getattr(owner, f.name, None) for f in fields(cls)})


@dataclass(slots=True)
class Fresh(Generic[S]):
    """Names that nobody used before, so checks can share a database."""

    hooks: Hooks[S] = field(default_factory=Hooks)
    token: str = field(default_factory=lambda: secrets.token_hex(6))
    _count: int = 0

    def id(self) -> str:
        """Return 32 fresh hex digits."""
        return secrets.token_hex(16)

    def name(self, label: str = "") -> str:
        """Return a fresh name that starts with the token and ends with `label`."""
        self._count += 1
        return f"{self.token}-{self._count}{label}"

    async def settle(self, store: S) -> None:
        """Wait for a store that lists with a delay."""
        if self.hooks.settle is not None:
            await self.hooks.settle(store)


@dataclass(frozen=True, slots=True)
class Check(Generic[S]):
    """One promise and the coroutine that tests it."""

    id: str
    title: str
    requires: str | None
    """Capability that must be declared; with ``not `` before it, one that must not be."""
    run: Callable[[S, Fresh[S]], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.id} {self.title}"


class Checks(Generic[S]):
    """The table of a kit's checks, by id."""

    def __init__(self) -> None:
        self._by_id: dict[str, Check[S]] = {}

    def __iter__(self) -> Iterator[Check[S]]:
        return iter(sorted(self._by_id.values(), key=lambda check: check.id))

    def __len__(self) -> int:
        return len(self._by_id)

    def __getitem__(self, check_id: str) -> Check[S]:
        return self._by_id[check_id]

    def add(
        self, requires: str | None = None
    ) -> Callable[
        [Callable[[S, Fresh[S]], Awaitable[None]]], Callable[[S, Fresh[S]], Awaitable[None]]
    ]:
        """Enter a coroutine; the first line of its docstring is ``<id>: <title>.``."""

        def enter(
            run: Callable[[S, Fresh[S]], Awaitable[None]],
        ) -> Callable[[S, Fresh[S]], Awaitable[None]]:
            found = re.match(r"([A-Z]-\d{3}): (.+?)\.?(?:\n|$)", run.__doc__ or "")
            if found is None:
                message = f"{run!r} has no id in its docstring (python -OO strips them)"
                raise TypeError(message)
            check_id, title = found.groups()
            if check_id in self._by_id:
                message = f"check id {check_id} is used twice"
                raise TypeError(message)
            self._by_id[check_id] = Check(check_id, title, requires, run)
            return run

        return enter


def applies(check: Check[S], capabilities: object | None) -> str | None:
    """Return why a check does not apply to a store of these capabilities, or None when it does."""
    if check.requires is None:
        return None
    name = check.requires.removeprefix("not ")
    ability = getattr(capabilities, name, None)
    declared = ability is not None and ability is not False
    if name != check.requires:
        return f"{name} is declared" if declared else None
    return None if declared else f"{name} is not declared"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 600 else f"{text[:400]} … {text[-150:]}"


def same(actual: object, expected: object, what: str) -> None:
    """Fail unless both are equal."""
    if actual != expected:
        message = f"{what}: got {_short(actual)}, expected {_short(expected)}"
        raise CheckFailed(message)


def holds(condition: object, what: str) -> None:
    """Fail unless the condition holds."""
    if not condition:
        raise CheckFailed(what)


@dataclass(slots=True)
class Caught(Generic[E]):
    """What `raises` caught."""

    errors: list[E] = field(default_factory=list)

    @property
    def error(self) -> E:
        """The one error."""
        return self.errors[0]


@asynccontextmanager
async def raises(kind: type[E], what: str) -> AsyncIterator[Caught[E]]:
    """Fail unless the block raises `kind`."""
    caught: Caught[E] = Caught()
    try:
        yield caught
    except kind as exc:
        if isinstance(exc, CheckFailed):
            raise
        caught.errors.append(exc)
    else:
        message = f"{what}: {kind.__name__} was not raised"
        raise CheckFailed(message)
