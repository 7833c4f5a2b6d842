"""A workspace as the file backend of deepagents: its protocol, its agent loop, and its permissions."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.backends.composite import CompositeBackend
from deepagents.backends.state import StateBackend
from deepagents.middleware.filesystem import FilesystemPermission
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from crux_workspace import Mount, Workspace, open_workspace_sync
from crux_workspace.errors import ErrorCode, StateError
from crux_workspace.integrations.deepagents import WorkspaceBackend
from crux_workspace.testing import MemorySource
from tests.conftest import MakeWorkspace

Turn = tuple[str, dict[str, Any], str]
"""Tool, arguments, and words that the answer has to hold."""


class Scripted(BaseChatModel):
    """Plays turns; works for agents that wait and for those that do not."""

    turns: list[Any]
    at: list[int]
    before: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        step = self.at[0]
        if step and isinstance(messages[-1], ToolMessage):
            words = self.turns[step - 1][2]
            assert words in messages[-1].text, f"{self.turns[step - 1]}: {messages[-1].text!r}"
        if step == len(self.turns):
            return ChatResult(generations=[ChatGeneration(message=AIMessage("done"))])
        self.at[0] += 1
        name, arguments, _ = self.turns[step]
        made = {"name": name, "args": arguments, "id": f"call_{step}"}
        return ChatResult(generations=[ChatGeneration(message=AIMessage("", tool_calls=[made]))])

    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **options: Any
    ) -> ChatResult:
        if self.before is not None and self.at[0] in self.before:
            await self.before[self.at[0]]()
        return self._generate(messages)


def model(turns: list[Turn], before: dict[int, Callable[[], Any]] | None = None) -> Scripted:
    return Scripted(turns=turns, at=[0], before=before)


async def run(agent: Any, **config: Any) -> Any:
    return await agent.ainvoke(
        {"messages": [HumanMessage("go")]}, {"recursion_limit": 100, **config}
    )


async def test_an_agent_writes_a_report(make_ws: MakeWorkspace) -> None:
    source = MemorySource({"tides.md": "Tides are caused by the Moon.\n"})
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/outputs"), Mount("/sources", "read", None, source)])  # fmt: skip
    await ws.write("/workspace/seed.md", "x")

    async def meanwhile() -> None:
        other = ws.acting_as("agent:other")
        await other.append("/outputs/report.md", "Theirs.\n")
        await other.edit("/outputs/report.md", "# Draft", "# Their draft")

    report = "/outputs/report.md"
    turns: list[Turn] = [
        ("ls", {"path": "/sources"}, "/sources/tides.md"),
        ("read_file", {"file_path": "/sources/tides.md"}, "caused by the Moon"),
        ("write_file", {"file_path": "/sources/new.md", "content": "x"}, "read-only"),
        ("write_file", {"file_path": report, "content": "# Draft\n\nThe Moon.\n"}, report),
        ("edit_file", {"file_path": report, "old_string": "# Draft", "new_string": "# Report"}, "does not occur"),
        ("read_file", {"file_path": report}, "# Their draft"),
        ("edit_file", {"file_path": report, "old_string": "# Their draft", "new_string": "# Report"}, report),
        ("grep", {"pattern": "Moon", "path": "/"}, report),
        ("glob", {"pattern": "*.md", "path": "/"}, report),
        ("finalizeWorkspaceFile", {"path": report, "kind": "report"}, "final"),
    ]  # fmt: skip
    agent = create_deep_agent(
        model(turns, {4: meanwhile}),
        tools=ws.acting_as("agent:writer").as_tools(extra=["finalize"]).to("langchain"),
        backend=WorkspaceBackend(ws.acting_as("agent:writer"), root="/"),
    )
    await run(agent)
    assert await ws.read_text(report) == "# Report\n\nThe Moon.\nTheirs.\n"
    operations = [entry.operation for entry in await ws.history(report)]
    assert operations == ["edit", "edit", "append", "write"]
    assert [artifact.kind for artifact in await ws.artifacts(status="final")] == ["report"]
    assert {entry.actor for entry in await ws.log() if "outputs" in entry.changes[0].path} == {"agent:writer", "agent:other"}  # fmt: skip
    assert (await ws.undo(report)).version == 5


async def test_permissions_hold_over_the_backend(ws: Workspace) -> None:
    await ws.write("/workspace/secrets/key.txt", "password")
    await ws.write("/workspace/notes.md", "password reminder")
    turns: list[Turn] = [
        ("read_file", {"file_path": "/secrets/key.txt"}, "denied"),
        ("write_file", {"file_path": "/secrets/new.txt", "content": "x"}, "denied"),
        ("read_file", {"file_path": "/notes.md"}, "reminder"),
        ("grep", {"pattern": "password", "path": "/"}, "/notes.md"),
        ("glob", {"pattern": "**/*.txt", "path": "/"}, ""),
        ("write_file", {"file_path": "/notes.md", "content": "changed"}, "/notes.md"),
    ]
    agent = create_deep_agent(
        model(turns),
        backend=WorkspaceBackend(ws),
        permissions=[
            FilesystemPermission(operations=["read", "write"], paths=["/secrets/**"], mode="deny")
        ],
    )
    state = await run(agent)
    told = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert not any("key.txt" in text for text in told[3:5]), told
    assert await ws.read_text("/workspace/notes.md") == "changed"
    assert [e.path for e in await ws.list("/workspace/secrets")] == ["/workspace/secrets/key.txt"]


async def test_a_rule_may_ask_before_a_write(ws: Workspace) -> None:
    turns: list[Turn] = [("write_file", {"file_path": "/out/a.md", "content": "x"}, "/out/a.md")]
    agent = create_deep_agent(
        model(turns),
        backend=WorkspaceBackend(ws),
        permissions=[
            FilesystemPermission(operations=["write"], paths=["/out/**"], mode="interrupt")
        ],
        checkpointer=InMemorySaver(),
    )
    thread: Any = {"configurable": {"thread_id": "1"}}
    paused = await run(agent, **thread)
    assert "__interrupt__" in paused
    assert not await ws.exists("/workspace/out/a.md")
    await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
    assert await ws.read_text("/workspace/out/a.md") == "x"


async def test_it_can_be_one_route_of_several(ws: Workspace) -> None:
    turns: list[Turn] = [
        ("write_file", {"file_path": "/scratch.md", "content": "x"}, "/scratch.md"),
        ("write_file", {"file_path": "/kept/a.md", "content": "kept"}, "/kept/a.md"),
        ("read_file", {"file_path": "/kept/a.md"}, "kept"),
    ]
    backend = CompositeBackend(default=StateBackend(), routes={"/kept/": WorkspaceBackend(ws)})
    await run(create_deep_agent(model(turns), backend=backend))
    assert [file.path async for file in ws.walk()] == ["/workspace/a.md"]


# -- the protocol itself


async def test_looking(ws: Workspace) -> None:
    backend = WorkspaceBackend(ws)
    await ws.write("/workspace/a.md", "one\r\ntwo\nthree")
    await ws.write("/workspace/d/b.json", {"k": 1})
    await ws.write("/workspace/d/i.png", b"\x89PNG")
    listed = (await backend.als("/")).entries or []
    assert [(e["path"], e["is_dir"]) for e in listed] == [("/a.md", False), ("/d/", True)]
    assert listed[0]["size"] == 14
    assert (await backend.als("/none")).entries == []
    read = await backend.aread("/a.md", 1, 1)
    assert read.file_data is not None
    assert (read.file_data["content"], read.start_line, read.total_lines, read.next_offset) == ("two\n", 2, 3, 2)  # fmt: skip
    json_text = await backend.aread("/d/b.json")
    assert json_text.file_data is not None
    assert json_text.file_data["content"] == '{\n  "k": 1\n}\n'
    image = await backend.aread("/d/i.png")
    assert image.file_data is not None
    assert image.file_data["encoding"] == "base64"
    assert base64.b64decode(image.file_data["content"]) == b"\x89PNG"
    for path in ("/none", "/d", "relative", "/../etc"):
        assert (await backend.aread(path)).error
    found = await backend.agrep("t", "/", "*.md", max_count=1)
    assert [(m["path"], m["line"]) for m in found.matches or []] == [("/a.md", 2)]
    assert found.truncated
    assert [f["path"] for f in (await backend.aglob("*.json")).matches or []] == ["/d/b.json"]
    assert [f["path"] for f in (await backend.aglob("/*.md")).matches or []] == ["/a.md"]
    assert (await backend.aglob("../*")).error


async def test_changing(ws: Workspace) -> None:
    backend = WorkspaceBackend(ws)
    assert (await backend.awrite("/a.md", "x x x")).path == "/a.md"
    ambiguous = await backend.aedit("/a.md", "x", "y")
    assert ambiguous.error
    assert "/workspace" not in ambiguous.error
    edited = await backend.aedit("/a.md", "x", "y", replace_all=True)
    assert (edited.error, edited.occurrences) == (None, 3)
    assert (await backend.aedit("/none.md", "x", "y")).error
    assert (await backend.aedit("/a.md", "", "y")).error
    assert (await backend.awrite("/a.md/b.md", "x")).error
    uploaded = await backend.aupload_files([("/u.txt", b"text"), ("/u.bin", b"\0"), ("bad", b"")])
    assert [response.error for response in uploaded] == [None, None, "invalid_path"]
    assert (await ws.stat("/workspace/u.txt")).content_kind == "text"  # type: ignore[union-attr]
    down = await backend.adownload_files(["/u.bin", "/none", "/", "bad"])
    assert [(d.content, d.error) for d in down] == [
        (b"\0", None),
        (None, "file_not_found"),
        (None, "is_directory"),
        (None, "invalid_path"),
    ]
    assert (await backend.adelete("/none")).error
    assert (await backend.adelete("/u.bin")).error is None
    assert (await ws.undo("/workspace/u.bin")).version == 3


async def test_one_failing_mount_leaves_the_others(make_ws: MakeWorkspace) -> None:
    class Broken(MemorySource):
        def list(self, path: str, options: Any) -> Any:
            raise RuntimeError

        def grep(self, query: str, options: Any) -> Any:
            raise RuntimeError

    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, Broken())])
    await ws.write("/workspace/a.md", "word")
    backend = WorkspaceBackend(ws, root="/")
    found = await backend.agrep("word", "/")
    assert ([m["path"] for m in found.matches or []], found.truncated) == (
        ["/workspace/a.md"],
        True,
    )
    globbed = await backend.aglob("**/*.md")
    assert [f["path"] for f in globbed.matches or []] == ["/workspace/a.md"]
    assert globbed.truncation_reason == "unreadable"
    assert "/s" in ((await backend.als("/s")).error or "")


async def test_errors_speak_of_what_the_agent_has(
    make_ws: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from crux_workspace.integrations import deepagents

    monkeypatch.setattr(deepagents, "_MOST_BYTES", 1_000)
    source = MemorySource({"a.md": "x"})
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, source)])
    await ws.write("/workspace/j.json", {"k": 1})
    await ws.write("/workspace/b.bin", b"\0" * 1_001)
    await ws.write("/workspace/a.md", "x x")
    backend = WorkspaceBackend(ws, root="/")
    told = [
        (await backend.aedit("/workspace/j.json", "k", "l")).error,
        (await backend.aedit("/workspace/b.bin", "k", "l")).error,
        (await backend.aedit("/workspace/a.md", "x", "l")).error,
        (await backend.aedit("/workspace/none.md", "x", "l")).error,
        (await backend.aread("/workspace/b.bin")).error,
        (await backend.awrite("/s/a.md", "x")).error,
    ]
    for text in told:
        assert text
        for word in ("read_json", "read_bytes", "update", "occurrence", "overwrite=", "stream"):
            assert word not in text, text


async def test_edits_at_the_same_time_all_land(ws: Workspace) -> None:
    backend = WorkspaceBackend(ws)
    await backend.awrite("/a.md", "".join(f"<{n}>" for n in range(4)))
    results = await asyncio.gather(*(backend.aedit("/a.md", f"<{n}>", f"[{n}]") for n in range(4)))
    assert [result.error for result in results] == [None] * 4
    assert await ws.read_text("/workspace/a.md") == "[0][1][2][3]"


def test_an_agent_that_waits() -> None:
    with open_workspace_sync("memory://") as sws:
        turns: list[Turn] = [
            ("write_file", {"file_path": "/a.md", "content": "one"}, "/a.md"),
            ("edit_file", {"file_path": "/a.md", "old_string": "one", "new_string": "two"}, "/a.md"),
            ("read_file", {"file_path": "/a.md"}, "two"),
            ("ls", {"path": "/"}, "/a.md"),
            ("grep", {"pattern": "two"}, "/a.md"),
        ]  # fmt: skip
        agent = create_deep_agent(model(turns), backend=WorkspaceBackend(sws))
        agent.invoke({"messages": [HumanMessage("go")]}, {"recursion_limit": 60})
        assert sws.read_text("/workspace/a.md") == "two"


async def test_a_blocking_workspace_serves_another_loop() -> None:
    sws = await asyncio.to_thread(open_workspace_sync, "memory://")
    backend = WorkspaceBackend(sws, namespace="n")
    assert (await backend.awrite("/a.md", "x")).error is None
    assert sws.read_text("/workspace/a.md", namespace="n") == "x"
    await asyncio.to_thread(sws.close)


async def test_waiting_on_the_workspaces_own_loop_is_refused(ws: Workspace) -> None:
    backend = WorkspaceBackend(ws)
    await backend.awrite("/a.md", "x")
    with pytest.raises(StateError) as caught:
        backend.read("/a.md")
    assert caught.value.code == ErrorCode.WRONG_THREAD
