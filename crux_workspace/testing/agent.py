"""Driving agent tools in tests: a harness that runs calls, pauses on interrupts and resumes them, and expectations about a run."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crux_workspace.agent import (
    AgentContext,
    Decision,
    Interrupt,
    PermissionGate,
    PermissionPolicy,
    ToolOutput,
    agent_context,
    local_filesystem,
)
from crux_workspace.errors import ErrorCode
from crux_workspace.tools import ToolResult

__all__ = [
    "AgentHarness",
    "AgentRun",
    "AgentToolCall",
    "InterruptExpectation",
    "agent_harness",
    "expect_interrupt",
    "expect_no_interrupt",
    "expect_no_tool_errors",
    "expect_offloaded",
]

_THREAD = "test-thread"


@dataclass(frozen=True, slots=True)
class AgentToolCall:
    """One call of a scripted model."""

    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    call_id: str = field(default_factory=lambda: f"call_{secrets.token_hex(4)}")


@dataclass(slots=True)
class AgentRun:
    """What became of some calls."""

    results: list[tuple[AgentToolCall, ToolResult]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)

    @property
    def interrupts(self) -> list[Interrupt]:
        """What waits for a person."""
        return [result.interrupt for _, result in self.results if result.interrupt is not None]

    def result(self, tool: str) -> ToolResult:
        """Return the first result of a tool."""
        for call, result in self.results:
            if call.tool == tool:
                return result
        message = f"{tool} was not called; called were {[call.tool for call, _ in self.results]}"
        raise AssertionError(message)


class AgentHarness:
    """Agent tools over a temporary folder. Close it, or use it as a context manager."""

    def __init__(self, context: AgentContext, directory: Path, gate: PermissionGate) -> None:
        self.context = context
        self.directory = directory
        self.gate = gate
        self._paused: list[AgentToolCall] = []

    @property
    def fs(self) -> Any:  # noqa: ANN401 - WorkspaceFs
        """What code is given."""
        return self.context.fs

    def read(self, path: str) -> bytes:
        """Read a file past the gate."""
        return (self.directory / path).read_bytes()

    def write(self, path: str, content: str | bytes) -> Path:
        """Write a file past the gate and return where it is."""
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
        return target

    async def run(self, *calls: AgentToolCall) -> AgentRun:
        """Make the calls one after the other, going on behind a pause."""
        run = AgentRun()
        self._paused = []
        for call in calls:
            result = await self.context.tools[call.tool].call(call.arguments, call_id=call.call_id)
            run.results.append((call, result))
            if result.interrupt is not None:
                self._paused.append(call)
        return run

    async def resume(self, resume: Iterable[Mapping[str, Any]]) -> AgentRun:
        """Answer all that waits, then repeat the paused calls that were approved.

        Args:
            resume: Entries as HTTP clients send them: ``{"interruptId", "status", "payload"}``.

        Returns:
            The results of the repeated calls, and the decisions.
        """
        entries = list(resume)
        waiting = {item.interrupt_id: item for item in await self.gate.pending(_THREAD)}
        decisions = await self.gate.resume(_THREAD, {"resume": entries})
        denied = {
            waiting[entry["interruptId"]].tool_call_id
            for entry, decision in zip(entries, decisions, strict=True)
            if not decision.allowed
        }
        run = await self.run(*(call for call in self._paused if call.call_id not in denied))
        run.decisions = decisions
        return run

    def close(self) -> None:
        """Remove the folder; idempotent."""
        shutil.rmtree(self.directory.parent, ignore_errors=True)

    def __enter__(self) -> AgentHarness:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def agent_harness(
    permissions: PermissionPolicy | None = None,
    *,
    gate: PermissionGate | None = None,
    interruptible: bool = True,
    offload: ToolOutput | None = ToolOutput(),  # noqa: B008 - frozen
) -> AgentHarness:
    """Return agent tools over a new temporary folder, in interactive mode.

    Args:
        permissions: What is allowed, denied and asked about.
        gate: A gate of your own instead.
        interruptible: Whether a call may pause.
        offload: When long results go to files.

    Returns:
        The harness.
    """
    base = Path(tempfile.mkdtemp(prefix="crux-agent-"))
    directory = base / "workspace"
    directory.mkdir()
    chosen = gate or PermissionGate(permissions, mode="interactive")
    context = agent_context(
        local_filesystem(directory),
        gate=chosen,
        thread_id=_THREAD,
        interruptible=interruptible,
        offload=offload,
    )
    return AgentHarness(context, directory, chosen)


class InterruptExpectation:
    """What is expected of a run's interrupts; each check needs one interrupt that fits."""

    def __init__(self, interrupts: list[Interrupt]) -> None:
        self.interrupts = interrupts

    def of_kind(self, kind: str) -> InterruptExpectation:
        """Expect an interrupt of a kind."""
        kinds = [item.kind for item in self.interrupts]
        if kind not in kinds:
            message = f"expected an interrupt of kind {kind!r}; there are {kinds}"
            raise AssertionError(message)
        return self

    def with_detail(self, partial: Mapping[str, Any]) -> InterruptExpectation:
        """Expect an interrupt whose detail has these entries, nested ones included."""
        details = [dict(item.detail) for item in self.interrupts]
        if not any(_contains(detail, partial) for detail in details):
            message = f"expected an interrupt with {dict(partial)}; there are {details}"
            raise AssertionError(message)
        return self


def expect_interrupt(run: AgentRun) -> InterruptExpectation:
    """Expect that a run waits for a person.

    Args:
        run: What `AgentHarness.run` returned.

    Returns:
        Further expectations.
    """
    if not run.interrupts:
        outcomes = [(call.tool, result.ok, result.error) for call, result in run.results]
        message = f"expected an interrupt; the calls ended as {outcomes}"
        raise AssertionError(message)
    return InterruptExpectation(run.interrupts)


def expect_no_interrupt(run: AgentRun) -> None:
    """Expect that a run waits for nobody.

    Args:
        run: What `AgentHarness.run` returned.
    """
    if run.interrupts:
        message = f"expected no interrupt; there are {[(i.kind, i.detail) for i in run.interrupts]}"
        raise AssertionError(message)


def expect_offloaded(run: AgentRun, tool: str) -> None:
    """Expect that the first result of a tool went to a file.

    Args:
        run: What `AgentHarness.run` returned.
        tool: The tool.
    """
    output = run.result(tool).output
    if not (isinstance(output, str) and output.startswith("[Tool output offloaded")):
        message = f"expected the result of {tool} to be offloaded; it is {str(output)[:200]!r}"
        raise AssertionError(message)


def expect_no_tool_errors(run: AgentRun) -> None:
    """Expect that no call failed; waiting for a person is no failure.

    Args:
        run: What `AgentHarness.run` returned.
    """
    failed = [
        (call.tool, result.error)
        for call, result in run.results
        if not result.ok
        and (result.error is None or result.error.code != ErrorCode.APPROVAL_REQUIRED)
    ]
    if failed:
        message = f"expected no tool error; there are {failed}"
        raise AssertionError(message)


def _contains(whole: Any, part: Any) -> bool:  # noqa: ANN401 - JSON
    if isinstance(part, Mapping):
        return isinstance(whole, Mapping) and all(
            key in whole and _contains(whole[key], value) for key, value in part.items()
        )
    return bool(whole == part)
