"""What a call knows of the gates that stand before it, while it runs: which they are, and whether it is only tried."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet
from crux_workspace.tools import ToolResult

if TYPE_CHECKING:
    from crux_workspace.agent.permissions.gate import PermissionGate

__all__ = [
    "Front",
    "JudgedHandler",
    "WouldRun",
    "denied_in_front",
    "gates_in_front",
    "previewed",
    "standing_before",
    "stop_if_previewed",
]


@dataclass(frozen=True, slots=True)
class Front:
    """A gate that a tool was put behind, and the thread that calls it."""

    gate: PermissionGate
    thread_id: str | None


_front: ContextVar[tuple[Front, ...]] = ContextVar("crux_workspace_agent_front", default=())
_previewing: ContextVar[bool] = ContextVar("crux_workspace_agent_preview", default=False)


class WouldRun(BaseException):
    """A previewed call has passed every check."""


@dataclass(frozen=True, slots=True)
class JudgedHandler:
    """A tool's handler that ends a previewed call itself, after the last check that it makes."""

    work: Callable[[Mapping[str, Any], str | None], Awaitable[ToolResult]]

    async def __call__(self, arguments: Mapping[str, Any], call_id: str | None) -> ToolResult:
        """Carry out a call."""
        return await self.work(arguments, call_id)


def stop_if_previewed() -> None:
    """Called when a call has passed its last check, before it does anything: a preview ends here."""
    if _previewing.get():
        raise WouldRun


@contextmanager
def previewed() -> Iterator[None]:
    """Let calls end where they would begin to do something."""
    token = _previewing.set(True)
    try:
        yield
    finally:
        _previewing.reset(token)


@contextmanager
def standing_before(gate: PermissionGate, thread_id: str | None) -> Iterator[None]:
    """Let a gate judge what is done meanwhile, further in than its own tool."""
    token = _front.set((*_front.get(), Front(gate, thread_id)))
    try:
        yield
    finally:
        _front.reset(token)


def gates_in_front() -> tuple[Front, ...]:
    """Return the gates that the running call was put behind, the outermost first."""
    return _front.get()


async def denied_in_front(fronts: Iterable[Front]) -> RuleSet:
    """Return the deny rules of some gates together."""
    denied = EMPTY_RULES
    for front in fronts:
        denied = denied.joined(await front.gate.denied_rules(front.thread_id))
    return denied
