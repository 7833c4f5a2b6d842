"""The undo walk: back, forward, past tombstones, until another change ends it."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import ContentOptions, Versioning, Workspace
from crux_workspace.errors import ErrorCode, NothingToUndoError
from crux_workspace.testing.workspace import refused

A = "/workspace/a"


async def write_all(ws: Workspace, *texts: str) -> None:
    for text in texts:
        await ws.write(A, text)


async def content_after(ws: Workspace, verb: str) -> str:
    await getattr(ws, verb)(A)
    return await ws.read_text(A)


async def test_undo_restores_the_previous_content_as_a_new_version(ws: Workspace) -> None:
    await ws.write(A, {"one": 1}, metadata={"v": 1}, mime_type="application/x-one")
    await ws.write(A, "two")
    file = await ws.undo(A)
    assert (file.version, file.content_kind, file.mime_type) == (3, "json", "application/x-one")
    assert file.metadata == {"v": 1}
    assert await ws.read_json(A) == {"one": 1}
    entry = (await ws.history(A))[0]
    assert (entry.operation, entry.restored_from) == ("undo", 1)
    redone = await ws.redo(A)
    assert (redone.version, redone.content_kind, redone.metadata) == (4, "text", None)
    entry = (await ws.history(A))[0]
    assert (entry.operation, entry.restored_from) == ("redo", 2)


async def test_repeated_undo_walks_back_and_redo_forward(ws: Workspace) -> None:
    await write_all(ws, "a", "b", "c", "d")
    assert [await content_after(ws, "undo") for _ in range(3)] == ["c", "b", "a"]
    with refused(ErrorCode.NOTHING_TO_UNDO, NothingToUndoError):
        await ws.undo(A)
    assert [await content_after(ws, "redo") for _ in range(3)] == ["b", "c", "d"]
    with refused(ErrorCode.NOTHING_TO_REDO):
        await ws.redo(A)
    assert [await content_after(ws, verb) for verb in ("undo", "undo", "redo", "undo")] == [
        "c",
        "b",
        "c",
        "b",
    ]


async def test_another_change_ends_the_walk(ws: Workspace) -> None:
    await write_all(ws, "a", "b", "c")
    await ws.undo(A)
    await ws.undo(A)
    await ws.write(A, "x")
    with refused(ErrorCode.NOTHING_TO_REDO):
        await ws.redo(A)
    assert await content_after(ws, "undo") == "a"
    with refused(ErrorCode.NOTHING_TO_UNDO):
        await ws.undo(A)


async def test_redo_takes_back_the_undo_of_a_change_that_ended_a_walk(ws: Workspace) -> None:
    await write_all(ws, "a", "b", "c")
    await ws.undo(A)
    await ws.undo(A)
    await ws.write(A, "x")
    assert await content_after(ws, "undo") == "a"
    assert await content_after(ws, "redo") == "x"


async def test_an_undo_deep_in_the_history_stands_for_the_version_it_restored(
    ws: Workspace,
) -> None:
    await write_all(ws, "a", "b")
    await ws.undo(A)
    await write_all(ws, "x", "y")
    assert [await content_after(ws, "undo") for _ in range(2)] == ["x", "a"]
    with refused(ErrorCode.NOTHING_TO_UNDO):
        await ws.undo(A)


async def test_set_finalize_and_rename_do_not_end_the_walk(ws: Workspace) -> None:
    await write_all(ws, "a", "b", "c")
    await ws.undo(A)
    await ws.set(A, metadata={"m": 1})
    await ws.finalize(A)
    await ws.rename(A, "/workspace/b")
    await ws.rename("/workspace/b", A)
    assert await content_after(ws, "redo") == "c"
    assert [await content_after(ws, "undo") for _ in range(2)] == ["b", "a"]


async def test_tombstones_are_skipped(ws: Workspace) -> None:
    await write_all(ws, "a", "b")
    await ws.delete(A)
    assert await content_after(ws, "undo") == "b"
    with refused(ErrorCode.NOTHING_TO_REDO):
        await ws.redo(A)
    assert await content_after(ws, "undo") == "a"
    await ws.delete(A)
    await ws.write(A, "c")
    assert await content_after(ws, "undo") == "a"


async def test_a_file_deleted_in_the_middle_of_a_walk_comes_back_as_it_was(ws: Workspace) -> None:
    await write_all(ws, "a", "b", "c")
    await ws.undo(A)
    await ws.delete(A)
    assert await content_after(ws, "undo") == "b"
    assert await content_after(ws, "undo") == "a"


async def test_undo_to_a_version(ws: Workspace) -> None:
    await write_all(ws, "a", "b", "c")
    file = await ws.undo(A, to_version=1)
    assert (file.version, await ws.read_text(A)) == (4, "a")
    for version, code in ((9, ErrorCode.VERSION_NOT_FOUND), (2, None)):
        if code is None:
            await ws.undo(A, to_version=version)
        else:
            with refused(code):
                await ws.undo(A, to_version=version)
    assert await ws.read_text(A) == "b"


async def test_undo_never_touches_status_kind_or_pin(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(A, "two", status="final", kind="report")
    file = await ws.undo(A)
    assert (file.status, file.artifact_kind, file.pinned_version) == ("final", "report", 2)


async def test_a_single_version_has_nothing_to_undo(ws: Workspace) -> None:
    await ws.write(A, "one")
    with refused(ErrorCode.NOTHING_TO_UNDO):
        await ws.undo(A)
    with refused(ErrorCode.NOTHING_TO_REDO):
        await ws.redo(A)
    assert len(await ws.log()) == 1


@pytest.mark.parametrize("verb", ["undo", "redo", "finalize", "withdraw"])
async def test_a_missing_file_is_not_found(ws: Workspace, verb: str) -> None:
    with refused(ErrorCode.FILE_NOT_FOUND):
        await getattr(ws, verb)(A)


async def test_a_collected_target_is_expired(make_ws: Any) -> None:
    ws = make_ws(versioning=Versioning(max_versions=2))
    await write_all(ws, "a", "b", "c")
    await ws.undo(A)
    with refused(ErrorCode.VERSION_EXPIRED):
        await ws.undo(A)
    assert await ws.read_text(A) == "b"


async def test_a_deletion_can_always_be_undone(make_ws: Any) -> None:
    ws = make_ws(versioning=Versioning(max_versions=1))
    await write_all(ws, "a", "b")
    await ws.delete(A)
    assert await content_after(ws, "undo") == "b"
    assert [entry.version for entry in await ws.history(A)] == [4]


async def test_large_content_walks_too(make_ws: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    await write_all(ws, "a" * 100, "b", "c" * 100)
    assert [await content_after(ws, verb) for verb in ("undo", "undo", "redo", "redo")] == [
        "b",
        "a" * 100,
        "b",
        "c" * 100,
    ]


async def test_undo_event_types(ws: Workspace) -> None:
    await write_all(ws, "a", "b")
    await ws.undo(A)
    assert (await ws.log(limit=1))[0].changes[0].type == "update"
    await ws.delete(A)
    await ws.undo(A)
    assert (await ws.log(limit=1))[0].changes[0].type == "create"
