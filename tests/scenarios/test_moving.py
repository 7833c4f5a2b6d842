"""rename, move and copy of files and directories."""

from __future__ import annotations

import pytest

from crux_workspace import Workspace
from crux_workspace.errors import ErrorCode, PathExistsError
from crux_workspace.testing.workspace import refused

A, B = "/workspace/a", "/outputs/b"


@pytest.mark.parametrize("verb", ["rename", "move"])
async def test_a_file_keeps_history_creation_time_and_attributes(
    ws: Workspace, clock: object, verb: str
) -> None:
    await ws.write(A, "one")
    old = await ws.write(A, "two", metadata={"m": 1}, kind="k", status="final")
    clock.advance(5)  # type: ignore[attr-defined]
    new = await getattr(ws, verb)(A, B)
    assert (new.id, new.version, new.created_at) == (old.id, 2, old.created_at)
    assert (new.metadata, new.artifact_kind, new.status) == ({"m": 1}, "k", "final")
    assert (new.pinned_version, new.mount) == (2, "/outputs")
    assert (new.updated_at, new.sequence) == (old.updated_at + 5, 3)
    assert [(entry.version, entry.path) for entry in await ws.history(B)] == [(2, A), (1, A)]
    assert not await ws.exists(A)
    assert await ws.history(A) == []
    assert (await ws.log(limit=1))[0].verb == verb


async def test_the_event_names_both_ends(ws: Workspace) -> None:
    file = await ws.write(A, "")
    await ws.rename(A, B)
    (change,) = (await ws.log(limit=1))[0].changes
    assert (change.type, change.path, change.from_path) == ("rename", B, A)
    assert (change.file_id, change.replaced, change.version) == (file.id, None, 1)


async def test_the_same_path_is_a_no_op_without_event(ws: Workspace) -> None:
    file = await ws.write(A, "")
    assert await ws.rename(A, A) == file
    await ws.write("/workspace/d/x", "")
    await ws.move("/workspace/d", "/workspace/d")
    assert len(await ws.log()) == 2


async def test_a_new_file_at_a_renamed_away_path_starts_at_version_one(ws: Workspace) -> None:
    old = await ws.write(A, "one")
    await ws.rename(A, B)
    new = await ws.write(A, "two")
    assert (new.version, new.id == old.id) == (1, False)


async def test_an_existing_destination_is_refused_unless_overwritten(ws: Workspace) -> None:
    moved = await ws.write(A, "mine")
    other = await ws.write(B, "other")
    for verb in (ws.rename, ws.move, ws.copy):
        with refused(ErrorCode.ALREADY_EXISTS, PathExistsError):
            await verb(A, B)
    new = await ws.rename(A, B, overwrite=True)
    assert new.id == moved.id  # type: ignore[union-attr]
    (change,) = (await ws.log(limit=1))[0].changes
    assert (change.type, change.replaced) == ("rename", other.id)


async def test_what_a_rename_overwrites_stays_recoverable(ws: Workspace) -> None:
    other = await ws.write(B, "other")
    await ws.write(A, "mine")
    await ws.rename(A, B, overwrite=True)
    assert await ws.at(2).read_text(B) == "other"
    await ws.undo_commit((await ws.log(limit=1))[0])
    assert await ws.read_text(A) == "mine"
    back = await ws.stat(B)
    assert back is not None
    assert (back.id, await ws.read_text(B)) == (other.id, "other")
    assert [entry.operation for entry in await ws.history(B)] == ["undo", "delete", "write"]


async def test_missing_sources_are_not_found(ws: Workspace) -> None:
    for verb in (ws.rename, ws.move, ws.copy):
        with refused(ErrorCode.FILE_NOT_FOUND):
            await verb(A, B)


async def test_a_directory_moves_its_whole_subtree_in_one_commit(ws: Workspace) -> None:
    for name in ("1", "2/3", "2/4"):
        await ws.write(f"/workspace/d/{name}", name)
    await ws.write("/workspace/d-not", "")
    result = await ws.rename("/workspace/d", "/outputs/x/y")
    assert (result.kind, result.path, result.mount) == ("directory", "/outputs/x/y", "/outputs")
    listed = [entry.path for entry in await ws.list("/", recursive=True)]
    assert listed == ["/outputs/x/y/1", "/outputs/x/y/2/3", "/outputs/x/y/2/4", "/workspace/d-not"]
    entry = (await ws.log(limit=1))[0]
    assert [change.path for change in entry.changes] == listed[:3]
    assert entry.sequence == 5


async def test_a_trailing_slash_names_a_directory(ws: Workspace) -> None:
    await ws.write("/workspace/d/1", "")
    await ws.move("/workspace/d/", "/workspace/e/")
    assert await ws.exists("/workspace/e/1")
    await ws.write(A, "")
    with refused(ErrorCode.INVALID_PATH):
        await ws.write("/workspace/x/", "")
    with refused(ErrorCode.INVALID_PATH):
        await ws.read("/workspace/a/")


async def test_a_directory_does_not_move_into_itself(ws: Workspace) -> None:
    await ws.write("/workspace/d/1", "")
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.rename("/workspace/d", "/workspace/d/e")
    assert len(await ws.log()) == 1


@pytest.mark.parametrize("overwrite", [False, True])
async def test_a_directory_onto_a_directory_already_exists(ws: Workspace, overwrite: bool) -> None:
    await ws.write("/workspace/d/1", "")
    await ws.write("/workspace/e/1", "")
    for verb in (ws.rename, ws.move, ws.copy):
        with refused(ErrorCode.ALREADY_EXISTS):
            await verb("/workspace/d", "/workspace/e", overwrite=overwrite)
        with refused(ErrorCode.ALREADY_EXISTS):
            await verb("/workspace/d", "/outputs", overwrite=overwrite)


@pytest.mark.parametrize("overwrite", [False, True])
async def test_a_directory_onto_a_file_is_a_type_conflict(ws: Workspace, overwrite: bool) -> None:
    await ws.write("/workspace/d/1", "")
    await ws.write("/workspace/e", "")
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        await ws.rename("/workspace/d", "/workspace/e", overwrite=overwrite)
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        await ws.rename("/workspace/e", "/workspace/d", overwrite=overwrite)
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        await ws.rename("/workspace/d", "/workspace/e/f", overwrite=overwrite)


async def test_a_mount_root_does_not_move(ws: Workspace) -> None:
    await ws.write(A, "")
    for verb in (ws.rename, ws.move):
        with refused(ErrorCode.INVALID_ARGUMENT):
            await verb("/workspace", "/outputs/w")


async def test_a_copy_is_a_new_file_with_the_attributes_of_the_old(ws: Workspace) -> None:
    old = await ws.write(
        A, "text", metadata={"m": 1}, kind="k", status="draft", mime_type="text/x-odd"
    )
    new = await ws.copy(A, B)
    assert new.kind == "file"
    assert new.id != old.id
    assert (new.version, new.metadata, new.mime_type) == (1, {"m": 1}, "text/x-odd")
    assert (new.artifact_kind, new.status) == ("k", "draft")
    assert [entry.operation for entry in await ws.history(B)] == ["copy"]
    await ws.write(A, "changed")
    assert await ws.read_text(B) == "text"


async def test_an_overwriting_copy_is_a_new_version_of_the_destination(ws: Workspace) -> None:
    await ws.write(A, "new")
    other = await ws.write(B, "old")
    copied = await ws.copy(A, B, overwrite=True)
    assert copied.kind == "file"
    assert (copied.id, copied.version) == (other.id, 2)
    await ws.undo(B)
    assert await ws.read_text(B) == "old"


async def test_a_copy_onto_a_gone_path_is_the_next_version_of_the_file_that_was_there(
    ws: Workspace,
) -> None:
    await ws.write(A, "new")
    other = await ws.write(B, "old")
    await ws.delete(B)
    copied = await ws.copy(A, B)
    assert copied.kind == "file"
    assert (copied.id, copied.version) == (other.id, 3)


async def test_a_final_copy_is_pinned_at_its_own_version(ws: Workspace) -> None:
    await ws.write(A, "one", status="final")
    await ws.write(B, "x")
    await ws.write(B, "y")
    copied = await ws.copy(A, B, overwrite=True)
    assert copied.kind == "file"
    assert (copied.status, copied.pinned_version, copied.version) == ("final", 3, 3)


async def test_a_copy_onto_itself_exists_already_and_with_overwrite_is_a_no_op(
    ws: Workspace,
) -> None:
    await ws.write(A, "")
    with refused(ErrorCode.ALREADY_EXISTS):
        await ws.copy(A, A)
    await ws.copy(A, A, overwrite=True)
    assert len(await ws.log()) == 1


async def test_a_directory_is_copied_in_one_commit(ws: Workspace) -> None:
    await ws.write("/workspace/d/1", "1")
    await ws.write("/workspace/d/2/3", b"\x00binary")
    result = await ws.copy("/workspace/d", "/workspace/e")
    assert result.kind == "directory"
    assert await ws.read_text("/workspace/e/1") == "1"
    assert await ws.read_bytes("/workspace/e/2/3") == b"\x00binary"
    assert [change.type for change in (await ws.log(limit=1))[0].changes] == ["create"] * 2


async def test_binary_copies_outlive_their_source(ws: Workspace) -> None:
    await ws.write(A, b"\x00" * 100)
    await ws.copy(A, B)
    await ws.delete(A, purge=True)
    await ws.gc(dry_run=False)
    assert await ws.read_bytes(B) == b"\x00" * 100


async def test_a_copy_goes_to_another_namespace(ws: Workspace) -> None:
    await ws.write("/workspace/d/t", "text", metadata={"m": 1})
    await ws.write("/workspace/d/b", b"\x00" * 100)
    await ws.copy("/workspace/d/t", "/workspace/d/t", to_namespace="other")
    await ws.copy("/workspace/d", "/workspace/e", to_namespace="other")
    there = ws.for_namespace("other")
    assert await there.read_text("/workspace/d/t") == "text"
    assert (await there.stat("/workspace/e/t")).metadata == {"m": 1}  # type: ignore[union-attr]
    await ws.drop_namespace("n")
    await ws.gc(dry_run=False)
    assert await there.read_bytes("/workspace/e/b") == b"\x00" * 100


async def test_if_version_means_the_source_of_a_move_and_the_destination_of_a_copy(
    ws: Workspace,
) -> None:
    await ws.write(A, "1")
    await ws.write(A, "2")
    await ws.write(B, "1")
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.rename(A, B, overwrite=True, if_version=1)
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.copy(A, B, overwrite=True, if_version=2)
    await ws.copy(A, B, overwrite=True, if_version=1)
    await ws.rename(A, B, overwrite=True, if_version=2)


async def test_if_version_of_a_directory_is_refused(ws: Workspace) -> None:
    await ws.write("/workspace/d/1", "")
    for verb in (ws.rename, ws.move, ws.copy):
        with refused(ErrorCode.INVALID_ARGUMENT):
            await verb("/workspace/d", "/workspace/e", if_version=1)
    with refused(ErrorCode.INVALID_ARGUMENT):
        await ws.delete("/workspace/d", recursive=True, if_version=1)
