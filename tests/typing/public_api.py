"""How the public API types: judged by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import assert_type

from crux_workspace import (
    Artifact,
    BinaryContent,
    Change,
    CommitEntry,
    ContentOptions,
    DiffHunk,
    DiffLine,
    Edit,
    FileDiff,
    GcReport,
    GrepMatch,
    GrepResult,
    JsonContent,
    Limits,
    ListResult,
    Mount,
    NamespacePage,
    NamespaceRequest,
    Retention,
    SyncView,
    SyncWorkspace,
    Telemetry,
    TextContent,
    Usage,
    VersionEntry,
    Versioning,
    Workspace,
    WorkspaceDirectory,
    WorkspaceFile,
    WorkspaceView,
    open_workspace,
    open_workspace_sync,
    workspace,
)
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.storage import AssetStore, RecordStore, Storage, memory_storage, storage
from crux_workspace.testing import CountingRecordStore
from storage_adapters import open_storage


async def opening() -> None:
    async with open_workspace("sqlite:///work.db", id="research", namespace="thread:1") as ws:
        assert_type(ws, Workspace)
    assert_type(await open_workspace("memory://", "memory://"), Workspace)
    async with open_storage("sqlite:///work.db") as opened:
        assert_type(opened, Storage)
        assert_type(opened.records, RecordStore)
        assert_type(opened.assets, AssetStore | None)
    assert_type(memory_storage(), Storage)

    async def namespace_of(request: NamespaceRequest) -> str:
        return f"thread:{request.prompt_id}"

    ws = workspace(
        id="research",
        namespace=namespace_of,
        storage=storage(records=CountingRecordStore(memory_storage().records)),
        mounts=[Mount("/workspace"), Mount("/sources", access="read", description="what we know")],
        content=ContentOptions(inline_text_below_bytes=64_000),
        limits=Limits(max_file_bytes=1, max_namespace_bytes=2, max_files=3, max_history_bytes=4),
        retention=Retention(ttl_ms=1, log_ms=2, asset_grace_ms=3),
        versioning=Versioning(max_versions=10),
        telemetry=Telemetry(path_hash_key="key"),
    )
    assert_type(ws.id, str)
    assert_type(ws.mounts, tuple[Mount, ...])
    assert_type(ws.closed, bool)
    assert_type(ws.describe(), dict[str, object])
    assert_type(ws.for_namespace("thread:9"), Workspace)
    assert_type(ws.acting_as("agent:writer"), Workspace)
    assert_type(ws.at(3), WorkspaceView)
    assert_type(ws.at(datetime.now(UTC), namespace="n"), WorkspaceView)
    assert_type(ws.as_sync(), SyncWorkspace)
    assert_type(await ws.aclose(), None)


async def reading(ws: Workspace) -> None:
    found = await ws.list("/workspace", recursive=True, glob=None, limit=10, cursor=None)
    assert_type(found, ListResult)
    for entry in found:
        assert_type(entry, WorkspaceFile | WorkspaceDirectory)
        if entry.kind == "file":
            assert_type(entry, WorkspaceFile)
    assert_type(ws.walk("/"), AsyncIterator[WorkspaceFile])
    content = await ws.read(PurePosixPath("/workspace/a.md"), version=1, start_line=1)
    assert_type(content, TextContent | JsonContent | BinaryContent)
    if content.kind == "text":
        assert_type(content.content, str)
    assert_type(await ws.read_text("/workspace/a.md"), str)
    assert_type(await ws.read_bytes("/workspace/a.md"), bytes)
    many = await ws.read_many(["/workspace/a.md"])
    assert_type(many, dict[str, TextContent | JsonContent | BinaryContent | None])
    assert_type(ws.stream("/workspace/a.md", offset=1, length=2), AsyncIterator[bytes])
    assert_type(await ws.exists("/workspace"), bool)
    assert_type(await ws.is_dir("/workspace"), bool)
    assert_type(await ws.stat("/workspace/a.md"), WorkspaceFile | None)
    hits = await ws.grep("x", path="/workspace", ignore_case=True, regex=True, context_lines=1)
    assert_type(hits, GrepResult)
    for hit in hits:
        assert_type(hit, GrepMatch)
    assert_type(await ws.usage(), Usage)


async def writing(ws: Workspace) -> None:
    file = await ws.write("/workspace/a.md", "text", metadata={"a": [1]}, status="draft", kind="k")
    assert_type(file, WorkspaceFile)
    await ws.write("/workspace/a.json", {"rows": [1, 2.5, None, True, "x"]}, if_version=0)
    await ws.write("/workspace/a.json", [1, 2, 3])
    await ws.write("/workspace/a.json", None)
    await ws.write("/workspace/a.bin", b"bytes", if_version=file)
    await ws.write("/workspace/a.bin", bytearray(b"bytes"), idempotency_key="k")
    await ws.write("/workspace/a.bin", memoryview(b"bytes"), namespace="other")
    await ws.write("/workspace/a.bin", ws.stream("/workspace/b.bin"))
    with open("a.bin", "rb") as source:  # noqa: ASYNC230, PTH123 - never run
        await ws.write("/workspace/a.bin", source)
    assert_type(await ws.edit("/workspace/a.md", "find", "replace"), WorkspaceFile)
    await ws.edit("/workspace/a.md", edits=[Edit("a", "b"), Edit("c", "d", replace_all=True)])
    assert_type(await ws.append("/workspace/a.md", "more"), WorkspaceFile)
    assert_type(await ws.update("/workspace/a.md", str.upper), WorkspaceFile)
    assert_type(await ws.set("/workspace/a.md", metadata=None, status="final"), WorkspaceFile)
    moved = await ws.rename("/workspace/a.md", "/outputs/a.md", overwrite=True)
    assert_type(moved, WorkspaceFile | WorkspaceDirectory)
    assert_type(await ws.move("/workspace", "/outputs/w"), WorkspaceFile | WorkspaceDirectory)
    copied = await ws.copy("/workspace/a.md", "/outputs/a.md", to_namespace="other")
    assert_type(copied, WorkspaceFile | WorkspaceDirectory)
    assert_type(await ws.delete("/workspace/a.md", recursive=True, purge=True), None)


async def looking_back(ws: Workspace) -> None:
    assert_type(await ws.history("/workspace/a.md", limit=1, before=3), list[VersionEntry])
    diff = await ws.diff("/workspace/a.md", from_version=1, to_version=2, context_lines=0)
    assert_type(diff, FileDiff)
    assert_type(diff.unified, str)
    for hunk in diff.hunks:
        assert_type(hunk, DiffHunk)
        for line in hunk.lines:
            assert_type(line, DiffLine)
    assert_type(await ws.undo("/workspace/a.md", to_version=1), WorkspaceFile)
    assert_type(await ws.redo("/workspace/a.md"), WorkspaceFile)
    assert_type(await ws.finalize("/workspace/a.md", kind="report", version=1), Artifact)
    assert_type(await ws.withdraw("/workspace/a.md"), WorkspaceFile)
    assert_type(await ws.artifacts(status="final", kind="k", path="/outputs"), list[Artifact])
    assert_type(await ws.resolve("workspace-inline://a/b/c@v1"), bytes)
    entries = await ws.log(path="/workspace", limit=1)
    assert_type(entries, list[CommitEntry])
    assert_type(entries[0].changes, list[Change])
    assert_type(await ws.undo_commit(entries[0]), CommitEntry)
    assert_type(await ws.undo_commit(entries[0].commit), CommitEntry)
    assert_type(await ws.namespaces("thread:"), NamespacePage)
    assert_type(await ws.drop_namespace("thread:1"), None)
    assert_type(await ws.gc(dry_run=False), GcReport)


async def the_past(view: WorkspaceView) -> None:
    assert_type(await view.list("/"), ListResult)
    assert_type(await view.read_text("/workspace/a.md"), str)
    assert_type(view.walk("/"), AsyncIterator[WorkspaceFile])


def blocking() -> None:
    with open_workspace_sync("sqlite:///work.db") as sws:
        assert_type(sws, SyncWorkspace)
        assert_type(sws.write("/workspace/a.md", "x", if_version=0), WorkspaceFile)
        assert_type(sws.read_text("/workspace/a.md"), str)
        assert_type(sws.list("/workspace", recursive=True), ListResult)
        assert_type(sws.stream("/workspace/a.md"), Iterator[bytes])
        assert_type(sws.walk("/"), Iterator[WorkspaceFile])
        assert_type(sws.grep("x"), GrepResult)
        assert_type(sws.undo("/workspace/a.md"), WorkspaceFile)
        assert_type(sws.log(), list[CommitEntry])
        assert_type(sws.at(1), SyncView)
        assert_type(sws.at(1).read_bytes("/workspace/a.md"), bytes)
        assert_type(sws.for_namespace("n"), SyncWorkspace)


def errors(error: WorkspaceError) -> None:
    assert_type(error.code, ErrorCode)
    assert_type(error.message, str)
    assert_type(error.hint, str)
    assert_type(error.retryable, bool)


async def mistakes(ws: Workspace) -> None:
    """Each line is wrong, and the checkers must say so."""
    await ws.write("/workspace/a.md")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await ws.write(1, "x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await ws.write("/workspace/a.md", "x", status="done")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    await ws.write("/workspace/a.md", "x", None)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    Limits(5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
