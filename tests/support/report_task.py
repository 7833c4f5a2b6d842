"""One task for every framework: write a report from sources, edit it after a stale-version error, publish it.

A script plays the model. It holds what the model calls in each turn, and what it has to be told back; what others do in between is part
of it. So a framework is judged by the same conversation, errors included.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from crux_workspace import Mount, RetrieverHit, ToolSet, Workspace, retriever_workspace_mount_source
from tests.conftest import MakeWorkspace

__all__ = ["ANSWER", "REPORT", "Call", "ReportTask"]

REPORT = "/outputs/report.md"
ANSWER = "The report is published."
SOURCE = "/sources/tides.md"
HITS = [
    RetrieverHit("tides", "1", "Tides are caused by the Moon.", source_path="tides.md", position=0),
    RetrieverHit("tides", "2", "The Sun adds to them.", source_path="tides.md", position=1),
]


@dataclass(frozen=True)
class Call:
    """One call of the model, and what its answer has to hold."""

    tool: str
    arguments: dict[str, Any]
    told: tuple[str, ...] = ()
    before: Callable[[], Awaitable[Any]] | None = None
    """Happens right before the model makes the call."""


@dataclass
class ReportTask:
    """The workspace, its tools, and the script of the model."""

    ws: Workspace
    calls: list[Call] = field(default_factory=list)
    turn: int = 0

    @classmethod
    def on(cls, make_ws: MakeWorkspace) -> ReportTask:
        source = retriever_workspace_mount_source(lambda query: HITS, query="tides")
        mounts = [Mount("/workspace"), Mount("/outputs"), Mount("/sources", "read", None, source)]
        task = cls(make_ws(mounts=mounts))
        task.calls = task._script()
        return task

    def tools(self) -> ToolSet:
        return self.ws.as_tools(extra=["finalize"], read_before_write=True)

    def _script(self) -> list[Call]:
        async def meanwhile() -> None:
            await self.ws.acting_as("agent:other").append(REPORT, "A line of theirs.\n")

        edit = {"path": REPORT, "find": "Draft", "replace": "Report"}
        draft = "# Draft on tides\n\nCaused by the Moon and the Sun.\n"
        return [
            Call("listWorkspace", {"path": "/sources"}, (SOURCE,)),
            Call("readWorkspaceFile", {"path": "sources/tides.md"}, ("INVALID_PATH", SOURCE)),
            Call("readWorkspaceFile", {"path": SOURCE}, ("caused by the Moon", "The Sun adds")),
            Call("writeWorkspaceFile", {"path": REPORT}, ("INVALID_ARGUMENT", "Send content")),
            Call("writeWorkspaceFile", {"path": REPORT, "content": draft}, (REPORT, "version")),
            Call(
                "editWorkspaceFile",
                edit,
                ("VERSION_CONFLICT", "version 2", "append by agent:other"),
                meanwhile,
            ),
            Call("readWorkspaceFile", {"path": REPORT}, ("A line of theirs.",)),
            Call("editWorkspaceFile", edit, ("version",)),
            Call("grepWorkspace", {"query": "Moon", "path": REPORT}, ("matches",)),
            Call("finalizeWorkspaceFile", {"path": REPORT, "kind": "report"}, ("final",)),
        ]

    async def following(self, told: str | None) -> Call | None:
        """Return the model's next call after it was told the answer to the last one; None when it is done."""
        if self.turn:
            last = self.calls[self.turn - 1]
            assert told is not None
            for words in last.told:
                assert words in told, f"{last.tool} answered {told!r}, without {words!r}"
        if self.turn == len(self.calls):
            return None
        call = self.calls[self.turn]
        self.turn += 1
        if call.before is not None:
            await call.before()
        return call

    async def check(self) -> None:
        """See that the report is what the conversation made."""
        assert self.turn == len(self.calls)
        text = await self.ws.read_text(REPORT)
        assert text == "# Report on tides\n\nCaused by the Moon and the Sun.\nA line of theirs.\n"
        [artifact] = await self.ws.artifacts(status="final")
        assert (artifact.path, artifact.version, artifact.kind) == (REPORT, 3, "report")
        operations = [entry.operation for entry in await self.ws.history(REPORT)]
        assert operations == ["edit", "append", "write"]
