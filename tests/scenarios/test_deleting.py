"""delete, tombstones, purge, directories."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import ContentOptions, Workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.testing.workspace import refused

A = "/workspace/a"


async def test_delete_is_idempotent_and_leaves_a_tombstone(ws: Workspace) -> None:
    file = await ws.write(A, "text")
    await ws.delete(A)
    await ws.delete(A)
    await ws.delete("/workspace/never")
    assert len(await ws.log()) == 2
    assert not await ws.exists(A)
    tombstone, written = await ws.history(A)
    assert (tombstone.operation, tombstone.version, tombstone.size) == ("delete", 2, 0)
    assert (written.operation, written.version) == ("write", 1)
    (change,) = (await ws.log(limit=1))[0].changes
    assert (change.type, change.path, change.file_id) == ("delete", A, file.id)
    assert change.previous_version == 1


async def test_a_file_written_again_at_a_deleted_path_goes_on(ws: Workspace) -> None:
    old = await ws.write(A, "one", kind="k")
    await ws.delete(A)
    new = await ws.write(A, "two")
    assert (new.id, new.version, new.created_at) == (old.id, 3, old.created_at)
    assert (await ws.log(limit=1))[0].changes[0].type == "create"


async def test_undo_brings_a_deleted_file_back(ws: Workspace) -> None:
    await ws.write(A, {"k": 1}, metadata={"m": 1}, mime_type="application/x-odd")
    await ws.delete(A)
    file = await ws.undo(A)
    assert (file.version, file.metadata, file.mime_type) == (3, {"m": 1}, "application/x-odd")
    assert await ws.read_json(A) == {"k": 1}
    assert (await ws.log(limit=1))[0].changes[0].type == "create"


@pytest.mark.parametrize("is_live", [True, False])
async def test_purge_erases_all_versions_and_numbers_restart(ws: Workspace, is_live: bool) -> None:
    old = await ws.write(A, b"\x00" * 10)
    await ws.write(A, "x" * 100_000)
    if not is_live:
        await ws.delete(A)
    await ws.delete(A, purge=True)
    assert await ws.history(A) == []
    usage = await ws.usage()
    assert (usage.live_files, usage.versions, usage.history_bytes) == (0, 0, 0)
    new = await ws.write(A, "")
    assert (new.version, new.id == old.id) == (1, False)


async def test_purged_content_is_expired_in_views_and_cannot_be_undone(ws: Workspace) -> None:
    await ws.write(A, "secret")
    entry = (await ws.log())[0]
    await ws.delete(A, purge=True)
    with refused(ErrorCode.VERSION_EXPIRED):
        await ws.at(entry.sequence).read(A)
    page = await ws.at(entry.sequence).list(recursive=True)
    assert (page.entries, page.expired) == ([], 1)
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.undo(A)
    for changed in (e for e in await ws.log() if e.changes and e.verb != "write"):
        with refused(ErrorCode.VERSION_EXPIRED):
            await ws.undo_commit(changed)


async def test_purge_of_nothing_is_nothing(ws: Workspace) -> None:
    await ws.delete(A, purge=True)
    assert await ws.log() == []


async def test_the_assets_of_a_purged_file_go_after_the_grace(make_ws: Any, clock: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    await ws.write(A, b"\x00" * 1000)
    await ws.delete(A, purge=True)
    assert (await ws.gc(dry_run=False)).assets == 0
    clock.advance(3_600_001)
    foreseen = await ws.gc()
    assert (foreseen.dry_run, foreseen.assets) == (True, 1)
    report = await ws.gc(dry_run=False)
    assert (report.dry_run, report.assets) == (False, 1)
    assert report.bytes >= 1000
    assert (await ws.gc(dry_run=False)).assets == 0


async def test_a_directory_needs_recursive_and_goes_in_one_commit(ws: Workspace) -> None:
    for name in ("1", "2/3"):
        await ws.write(f"/workspace/d/{name}", "")
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        await ws.delete("/workspace/d")
    await ws.delete("/workspace/d", recursive=True)
    entry = (await ws.log(limit=1))[0]
    assert [(change.type, change.path) for change in entry.changes] == [
        ("delete", "/workspace/d/1"),
        ("delete", "/workspace/d/2/3"),
    ]
    assert not await ws.exists("/workspace/d")


async def test_a_trailing_slash_needs_recursive_whatever_is_there(ws: Workspace) -> None:
    await ws.write(A, "")
    for path in ("/workspace/a/", "/workspace/none/", "/workspace/"):
        with refused(ErrorCode.PATH_TYPE_CONFLICT):
            await ws.delete(path)


async def test_a_recursive_delete_empties_a_mount_root(ws: Workspace) -> None:
    await ws.write(A, "")
    await ws.write("/outputs/b", "")
    await ws.delete("/workspace", recursive=True)
    assert [entry.path for entry in await ws.list(recursive=True)] == ["/outputs/b"]
    assert await ws.is_dir("/workspace")


async def test_directories_exist_while_a_live_file_is_below_them(ws: Workspace) -> None:
    assert await ws.is_dir("/workspace")
    assert await ws.is_dir("/")
    assert not await ws.exists("/workspace/d")
    await ws.write("/workspace/d/e/f", "")
    for path in ("/workspace/d", "/workspace/d/e", "/workspace/d/e/"):
        assert await ws.exists(path)
        assert await ws.is_dir(path)
        assert await ws.stat("/workspace/d") is None
    assert await ws.exists("/workspace/d/e/f")
    assert not await ws.is_dir("/workspace/d/e/f")
    await ws.delete("/workspace/d/e/f")
    assert not await ws.exists("/workspace/d")


async def test_a_file_and_a_directory_cannot_share_a_path(ws: Workspace) -> None:
    await ws.write("/workspace/d/e", "")
    for path in ("/workspace/d", "/workspace/d/e/f", "/workspace", "/outputs"):
        with refused(ErrorCode.PATH_TYPE_CONFLICT):
            await ws.write(path, "")
        with refused(ErrorCode.PATH_TYPE_CONFLICT):
            await ws.append(path, "x")
    await ws.delete("/workspace/d/e")
    await ws.write("/workspace/d", "now a file")


async def test_undo_of_a_delete_is_refused_where_a_directory_is_now(ws: Workspace) -> None:
    await ws.write("/workspace/d", "file")
    await ws.delete("/workspace/d")
    await ws.write("/workspace/d/e", "")
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        await ws.undo("/workspace/d")
