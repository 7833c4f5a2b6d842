"""How sources, tools and prompts type: judged by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, assert_type

from crux_workspace import (
    ListResult,
    Mount,
    MountListOptions,
    MountPathOptions,
    MountReadOptions,
    MountSource,
    MountWriteOptions,
    RetrieverHit,
    RetrieverQuery,
    RetrieverSource,
    TextContent,
    Tool,
    ToolOptions,
    ToolResult,
    ToolSet,
    Workspace,
    WorkspaceFile,
    WorkspaceToolNames,
    open_workspace_sync,
    prompt,
    retriever_workspace_mount_source,
    workspace,
    workspace_tool_names,
)
from crux_workspace.mounts import FolderSource, WorkspaceSource
from crux_workspace.testing import MemorySource
from crux_workspace.tools import Injection, Prompt, ResolvedPrompt


class Sync:
    def list(self, path: str, options: MountListOptions) -> ListResult:
        return ListResult([WorkspaceFile(path=f"{options.mount_path}/a.md")], options.cursor)

    def read(self, path: str, options: MountReadOptions) -> TextContent | None:
        return TextContent(path=path, content="x", offset=options.offset)


class Async:
    kind = "mine"

    async def list(self, path: str, options: MountListOptions) -> ListResult:
        return ListResult([])

    async def read(self, path: str, options: MountReadOptions) -> TextContent | None:
        return None

    async def read_bytes(self, path: str, options: MountPathOptions) -> AsyncIterator[bytes]:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"x"

        return chunks()

    async def write(self, path: str, content: object, options: MountWriteOptions) -> None:
        return None


def sources(ws: Workspace) -> list[Mount]:
    kinds: list[MountSource] = [Sync(), Async(), FolderSource("."), WorkspaceSource(ws), MemorySource({"a": "x"})]  # fmt: skip
    return [Mount(f"/s{n}", source=source, timeout_ms=5_000) for n, source in enumerate(kinds)]


def retrievers() -> None:
    def query(request: RetrieverQuery) -> str:
        return request.path or ""

    def find(text: str, limit: int | None = None) -> list[RetrieverHit]:
        return [RetrieverHit("source", "chunk", text, score=1.0)]

    made = retriever_workspace_mount_source(
        find, query, 5, lambda hit: hit.source_id, None, "text/x"
    )
    assert_type(made, RetrieverSource)
    workspace(
        id="a", mounts=[Mount("/s", source=made)], tools=ToolOptions(prefix="x", extra=("stat",))
    )


async def tools(ws: Workspace) -> None:
    made = ws.as_tools(
        prefix="research", delete=True, extra=["stat", "diff"], read_before_write=True
    )
    assert_type(made, ToolSet)
    assert_type(made["listResearchWorkspace"], Tool)
    result = await made["listResearchWorkspace"].call({"path": "/"}, call_id="1")
    assert_type(result, ToolResult)
    if result.error is not None:
        assert_type(result.error.hint, str | None)
    assert_type(workspace_tool_names(prefix="research"), WorkspaceToolNames)
    assert_type(workspace_tool_names().read_file, str)


async def prompts(ws: Workspace) -> None:
    context = ws.as_context(include=["/workspace/a.md"], max_inline_bytes=100)
    assert_type(await context.text(), str)
    assert_type(await ws.inject(input={"user": 1}, prompt_id="p"), Injection)
    described = prompt(id="agent", use=[ws, context], tools=[*ws.as_tools()], system="Be brief.")
    assert_type(described, Prompt)
    resolved = await described.resolve(input="x")
    assert_type(resolved, ResolvedPrompt)
    assert_type(resolved.metadata, dict[str, Any])


def blocking() -> None:
    with open_workspace_sync("memory://") as sws:
        assert_type(sws.as_tools()["readWorkspaceFile"].call({"path": "/workspace/a"}), ToolResult)
        assert_type(sws.as_context().text(), str)
        assert_type(sws.inject().metadata, dict[str, Any])
