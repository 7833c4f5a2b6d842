"""A small agent to try the gate with: a scripted model, the five tools, and approvals over HTTP.

``python -m crux_workspace.agent.demo --port 2024`` serves it. The model says the same things each time: it lists the workspace, runs a
script that no rule allows, reads a file outside the workspace, and reports. The last two wait for a person.
"""

from __future__ import annotations

import argparse
import json
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crux_workspace.agent.context import AgentContext, agent_context
from crux_workspace.agent.files.local import local_filesystem
from crux_workspace.agent.permissions.decisions import Decision
from crux_workspace.agent.permissions.file_store import file_permission_store
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.agent.permissions.policy import PermissionPolicy
from crux_workspace.agent.server import approval_app, guarded, json_errors, server_sent
from crux_workspace.model.extras import need_extra
from crux_workspace.storage.records import RecordStore

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["DemoAgent", "Step", "demo_app", "main"]

_SCRIPT = 'echo "fetched $1"\n'


@dataclass(frozen=True, slots=True)
class Step:
    """One tool call that the scripted model makes."""

    tool: str
    arguments: dict[str, Any]


SCRIPT = (
    Step("listDir", {}),
    Step("runBash", {"command": "sh scripts/fetch-source.sh https://example.com/api"}),
    Step("readFile", {"path": "/etc/hostname"}),
    Step("writeFile", {"path": "reports/api.md", "content": "# API\n\nfetched\n"}),
)


@dataclass(slots=True)
class _Run:
    context: AgentContext
    position: int = 0
    said: list[Any] = field(default_factory=list)


class DemoAgent:
    """Runs the script for any number of threads, and pauses where the gate asks."""

    def __init__(
        self, make_context: Callable[[str], AgentContext], script: Sequence[Step] = SCRIPT
    ) -> None:
        self._make_context = make_context
        self._script = script
        self._threads: dict[str, _Run] = {}

    def create(self) -> str:
        """Return the id of a new thread."""
        thread = secrets.token_hex(8)
        self._threads[thread] = _Run(self._make_context(thread))
        return thread

    def knows(self, thread: str) -> bool:
        """Tell whether there is such a thread."""
        return thread in self._threads

    async def start(self, thread: str) -> AsyncIterator[Any]:
        """Run the script from its beginning."""
        self._threads[thread].position = 0
        async for event in self._go(thread):
            yield event

    async def resumed(self, thread: str, decisions: list[Decision]) -> AsyncIterator[Any]:
        """Go on after a person answered: what was denied is told to the model, what was approved is called again."""
        run = self._threads[thread]
        if any(not decision.allowed for decision in decisions):
            denied = next(decision for decision in decisions if not decision.allowed)
            told = {"id": f"call_{run.position + 1}", "tool": self._script[run.position].tool}
            yield ("tool_result", {**told, "error": denied.reason})
            run.position += 1
        async for event in self._go(thread):
            yield event

    async def _go(self, thread: str) -> AsyncIterator[Any]:
        run = self._threads[thread]
        while run.position < len(self._script):
            step = self._script[run.position]
            call_id = f"call_{run.position + 1}"
            yield ("tool_call", {"id": call_id, "tool": step.tool, "arguments": step.arguments})
            result = await run.context.tools[step.tool].call(step.arguments, call_id=call_id)
            if result.interrupt is not None:
                yield result.interrupt
                yield ("end", {"status": "interrupted"})
                return
            yield ("tool_result", {"id": call_id, "tool": step.tool, "output": result.output})
            run.position += 1
        yield ("message", {"role": "assistant", "content": "The API docs are in reports/api.md."})
        yield ("end", {"status": "idle"})


def demo_app(home: Path, *, interrupts: RecordStore | None = None) -> Starlette:
    """Return the demo agent as an ASGI application.

    Args:
        home: Folder to keep its workspace and permissions in.
        interrupts: Where what waits is kept; None keeps it in memory.

    Returns:
        The application: ``POST /threads``, ``POST /threads/{id}/runs/stream``, and the routes of `approval_app`.
    """
    from starlette.applications import Starlette
    from starlette.routing import Mount, Route

    workspace = home / "workspace"
    (workspace / "scripts").mkdir(parents=True, exist_ok=True)
    (workspace / "scripts" / "fetch-source.sh").write_text(_SCRIPT, encoding="utf-8")
    gate = PermissionGate(
        PermissionPolicy(allow={"bash": ["ls", "cat"]}, deny={"bash": ["rm -rf", "sudo"]}),
        file_permission_store(home / ".crux" / "permissions.json"),
        interrupts=interrupts,
    )
    backend = local_filesystem(workspace)
    agent = DemoAgent(lambda thread: agent_context(backend, gate=gate, thread_id=thread))

    async def create(request: Request) -> Response:
        del request
        return _json({"thread_id": agent.create()})

    async def stream(request: Request) -> Response:
        thread = request.path_params["thread_id"]
        if not agent.knows(thread):
            return _json({"error": {"code": "thread_not_found", "message": "No such thread."}}, 404)
        if await gate.pending(thread):
            message = "The thread waits for an answer; resume it."
            return _json({"error": {"code": "resume_required", "message": message}}, 409)
        return server_sent(agent.start(thread))

    approvals = approval_app(
        gate, authorize=lambda _, thread: agent.knows(thread) or None, runner=agent.resumed
    )
    return Starlette(
        routes=[
            Route("/threads", guarded(create), methods=["POST"]),
            Route("/threads/{thread_id}/runs/stream", guarded(stream), methods=["POST"]),
            Mount("/", app=approvals),
        ],
        exception_handlers=json_errors(),
    )


def _json(data: dict[str, Any], status: int = 200) -> Response:
    from starlette.responses import Response

    return Response(json.dumps(data), status, media_type="application/json")


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve the demo agent on this machine until it is stopped."""
    for module, extra in (("uvicorn", "server"), ("starlette", "server"), ("tree_sitter", "shell")):
        need_extra(module, extra)
    import uvicorn

    parser = argparse.ArgumentParser(description="Serve the demo agent.")
    parser.add_argument("--port", type=int, default=2024)
    parser.add_argument("--home", type=Path, default=Path("crux-demo"))
    chosen = parser.parse_args(arguments)
    uvicorn.run(
        demo_app(chosen.home.absolute()), host="127.0.0.1", port=chosen.port, log_level="warning"
    )


if __name__ == "__main__":
    main()
