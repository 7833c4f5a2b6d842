"""One commit, one version per path, one event per net change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Transaction, Versioning, Workspace
from crux_workspace.errors import ErrorCode
from crux_workspace.testing.workspace import refused
from tests.support.transactions import BIG, net, tip

A, B, C, D = "/workspace/a", "/workspace/b", "/workspace/c", "/workspace/d"
Steps = Callable[[Transaction], Awaitable[Any]]


async def five_writes(tx: Transaction) -> None:
    for number in range(5):
        await tx.write(A, f"{number}")


async def create_and_delete(tx: Transaction) -> None:
    await tx.write(C, "c")
    await tx.delete(C)


async def delete_and_write(tx: Transaction) -> None:
    await tx.delete(A)
    await tx.write(A, "again")


async def rename(tx: Transaction) -> None:
    await tx.rename(A, C)


async def rename_and_write(tx: Transaction) -> None:
    await tx.rename(A, C)
    await tx.write(C, "new content")


async def write_and_rename(tx: Transaction) -> None:
    await tx.write(A, "new content")
    await tx.rename(A, C)


async def rename_there_and_back(tx: Transaction) -> None:
    await tx.rename(A, C)
    await tx.rename(C, A)


async def swap(tx: Transaction) -> None:
    await tx.rename(A, C)
    await tx.rename(B, A)
    await tx.rename(C, B)


async def overwrite_by_rename(tx: Transaction) -> None:
    await tx.rename(A, B, overwrite=True)


async def move_a_directory(tx: Transaction) -> None:
    await tx.move(D, "/outputs/d")


async def move_a_directory_and_fill_the_old_one(tx: Transaction) -> None:
    await tx.move(D, "/outputs/d")
    await tx.write(D + "/x", "another x")
    await tx.rename("/outputs/d/y", D + "/y")


async def copy(tx: Transaction) -> None:
    await tx.copy(A, C)


async def copy_over(tx: Transaction) -> None:
    await tx.copy(A, B, overwrite=True)


async def copy_and_change_the_source(tx: Transaction) -> None:
    await tx.copy(A, C)
    await tx.write(A, "changed after")


async def set_there_and_back(tx: Transaction) -> None:
    await tx.set(A, metadata={"n": 1})
    await tx.set(A, metadata=None)


async def set_an_attribute(tx: Transaction) -> None:
    await tx.set(A, metadata={"n": 1})
    await tx.set(A, kind="report")


async def finalize_and_withdraw(tx: Transaction) -> None:
    await tx.finalize(A)
    await tx.withdraw(A)


async def delete_a_directory(tx: Transaction) -> None:
    await tx.delete(D, recursive=True)


async def rotate(tx: Transaction) -> None:
    await tx.rename(A, "/workspace/tmp")
    await tx.rename(B, A)
    await tx.rename(D + "/x", B)
    await tx.rename("/workspace/tmp", D + "/x")


async def move_a_file_below_its_own_name(tx: Transaction) -> None:
    await tx.rename(A, C)
    await tx.rename(C, A + "/inside")


async def rename_twice(tx: Transaction) -> None:
    await tx.rename(A, B, overwrite=True)
    await tx.rename(B, C)


NET: dict[str, tuple[Steps, list[str]]] = {
    "five writes are one update": (five_writes, [f"update {A}"]),
    "create and delete are nothing": (create_and_delete, []),
    "delete and write are one update": (delete_and_write, [f"update {A}"]),
    "a rename is a rename": (rename, [f"rename {A} -> {C}"]),
    "rename and write are one rename": (rename_and_write, [f"rename {A} -> {C}"]),
    "write and rename are one rename": (write_and_rename, [f"rename {A} -> {C}"]),
    "there and back is nothing": (rename_there_and_back, []),
    "a swap is two renames": (swap, [f"rename {B} -> {A}", f"rename {A} -> {B}"]),
    "an overwriting rename is one": (overwrite_by_rename, [f"rename {A} -> {B}"]),
    "a directory moves file by file": (
        move_a_directory,
        [f"rename {D}/x -> /outputs/d/x", f"rename {D}/y -> /outputs/d/y"],
    ),
    "what returned to its place did not move": (
        move_a_directory_and_fill_the_old_one,
        [f"rename {D}/x -> /outputs/d/x", f"create {D}/x"],
    ),
    "a copy is a create": (copy, [f"create {C}"]),
    "a copy over a file is an update": (copy_over, [f"update {B}"]),
    "a copy has what the source had then": (
        copy_and_change_the_source,
        [f"update {A}", f"create {C}"],
    ),
    "an attribute set back is nothing": (set_there_and_back, []),
    "attributes are one update": (set_an_attribute, [f"update {A}"]),
    "publishing and unpublishing leaves a draft": (finalize_and_withdraw, [f"update {A}"]),
    "a directory is deleted file by file": (
        delete_a_directory,
        [f"delete {D}/x", f"delete {D}/y"],
    ),
    "a ring of three turns": (
        rotate,
        [f"rename {B} -> {A}", f"rename {D}/x -> {B}", f"rename {A} -> {D}/x"],
    ),
    "a file can move below its own name": (
        move_a_file_below_its_own_name,
        [f"rename {A} -> {A}/inside"],
    ),
    "what was overwritten on the way is deleted": (
        rename_twice,
        [f"delete {B}", f"rename {A} -> {C}"],
    ),
}


@pytest.mark.parametrize("case", NET)
@pytest.mark.parametrize("content", ["text", BIG], ids=["inline", "asset"])
async def test_the_commit_has_one_change_for_each_net_change(
    ws: Workspace, case: str, content: Any
) -> None:
    for path in (A, B, D + "/x", D + "/y"):
        await ws.write(path, content if isinstance(content, bytes) else f"{content} of {path}")
    before = await tip(ws)
    steps, expected = NET[case]
    async with ws.transaction() as tx:
        await steps(tx)
        seen = {e.path: await tx.read_bytes(e.path) async for e in tx.walk()}
    assert await tip(ws) == before + bool(expected)
    if expected:
        assert await net(ws) == expected
    assert {e.path: await ws.read_bytes(e.path) async for e in ws.walk()} == seen
    for path in seen:
        history = [entry.version for entry in await ws.history(path)]
        assert history == list(range(len(history), 0, -1))
        assert history[0] <= 2


@pytest.mark.parametrize("case", [case for case, (_, expected) in NET.items() if expected])
async def test_the_commit_can_be_undone_whole(ws: Workspace, case: str) -> None:
    for path in (A, B, D + "/x", D + "/y"):
        await ws.write(path, f"text of {path}")
    before = {e.path: await ws.read_text(e.path) async for e in ws.walk()}
    await ws.transaction(NET[case][0])
    await ws.undo_commit((await ws.log(limit=1))[0])
    assert {e.path: await ws.read_text(e.path) async for e in ws.walk()} == before


async def test_what_an_overwriting_rename_replaced_is_named(ws: Workspace) -> None:
    kept = await ws.write(A, "a")
    lost = await ws.write(B, "b")
    async with ws.transaction() as tx:
        await tx.rename(A, B, overwrite=True)
    [change] = (await ws.log(limit=1))[0].changes
    assert (change.file_id, change.replaced) == (kept.id, lost.id)


async def test_a_file_that_was_deleted_and_written_again_goes_on(ws: Workspace) -> None:
    first = await ws.write(A, "one")
    async with ws.transaction() as tx:
        await tx.delete(A)
        assert await tx.stat(A) is None
        again = await tx.write(A, "two")
    assert (again.id, again.version) == (first.id, 2)
    assert [entry.operation for entry in await ws.history(A)] == ["write", "write"]


async def test_a_deleted_file_goes_on_where_the_transaction_takes_it(ws: Workspace) -> None:
    first = await ws.write(A, "one")
    await ws.delete(A)
    async with ws.transaction() as tx:
        await tx.write(A, "two")
        await tx.rename(A, B)
    found = await ws.stat(B)
    assert found is not None
    assert (found.id, found.version) == (first.id, 3)
    fresh = await ws.write(A, "another file")
    assert fresh.id != first.id
    assert fresh.version == 1


async def test_a_deleted_file_stays_where_it_was_when_nothing_comes_of_it(ws: Workspace) -> None:
    first = await ws.write(A, "one")
    await ws.delete(A)
    async with ws.transaction() as tx:
        await tx.write(A, "two")
        await tx.rename(A, B)
        await tx.delete(B)
        other = await tx.write(B, "another file")
        assert other.version == 1
    again = await ws.write(A, "three")
    assert (again.id, again.version) == (first.id, 3)
    assert other.id != first.id


async def test_a_file_cannot_be_written_where_a_directory_stays(ws: Workspace) -> None:
    await ws.write(D + "/x", "x")
    await ws.write(D + "/y", "y")
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        async with ws.transaction() as tx:
            await tx.write(D, "a file")
    with refused(ErrorCode.PATH_TYPE_CONFLICT):
        async with ws.transaction() as tx:
            await tx.write(D, "a file")
            await tx.delete(D + "/x")
    async with ws.transaction() as tx:
        await tx.write(D, "a file")
        await tx.delete(D + "/x")
        await tx.delete(D + "/y")
    assert await ws.read_text(D) == "a file"


async def test_artifacts_have_the_versions_that_the_commit_gives_them(ws: Workspace) -> None:
    await ws.write(A, "base")
    async with ws.transaction() as tx:
        await tx.write(A, "first edition")
        first = await tx.finalize(A, kind="report")
        again = await tx.finalize(A)
        await tx.write(A, "draft")
        await tx.write(A, "second edition")
        second = await tx.finalize(A)
        await tx.write(A, "next draft")
        [shown] = await tx.artifacts()
        assert (shown.version, shown.head_version) == (3, 4)
        assert await tx.read_text(A, version=2) == "first edition"
    assert (first.version, again.version, second.version) == (2, 2, 3)
    texts = [await ws.read_text(A, version=number) for number in (1, 2, 3, 4)]
    assert texts == ["base", "first edition", "second edition", "next draft"]
    [artifact] = await ws.artifacts(status="final")
    assert (artifact.version, artifact.head_version, artifact.kind) == (3, 4, "report")
    assert await ws.resolve(artifact.uri) == b"second edition"
    assert await ws.resolve(first.uri) == b"first edition"
    assert await net(ws) == [f"update {A}"]


async def test_a_published_asset_keeps_its_own_version(ws: Workspace) -> None:
    async with ws.transaction() as tx:
        await tx.write(A, BIG)
        artifact = await tx.finalize(A)
        await tx.write(A, BIG * 2)
        await tx.rename(A, B)
    assert artifact.version == 1
    assert await ws.read_bytes(B, version=1) == BIG
    assert await ws.read_bytes(B) == BIG * 2
    [shown] = await ws.artifacts()
    assert (shown.path, shown.version, shown.head_version) == (B, 1, 2)
    assert await ws.resolve(shown.uri) == BIG


async def test_a_final_write_is_pinned_at_its_version(ws: Workspace) -> None:
    await ws.write(A, "one")
    async with ws.transaction() as tx:
        pinned = await tx.write(A, "two", status="final")
        await tx.write(A, "three")
    assert pinned.pinned_version == 2
    stat = await ws.stat(A)
    assert stat is not None
    assert (stat.version, stat.pinned_version, stat.status) == (3, 2, "final")


async def test_what_was_published_and_deleted_leaves_no_artifact(ws: Workspace) -> None:
    await ws.write(A, "base")
    async with ws.transaction() as tx:
        await tx.write(A, BIG)
        await tx.finalize(A)
        await tx.write(A, BIG * 2)
        await tx.delete(A)
    assert await ws.artifacts() == []
    assert await net(ws) == [f"delete {A}"]


async def test_old_versions_are_collected_by_the_commit(make_ws: Any) -> None:
    ws = make_ws(versioning=Versioning(max_versions=2))
    await ws.write(A, BIG)
    await ws.write(A, "two")
    async with ws.transaction() as tx:
        await tx.write(A, "three")
        await tx.write(A, "three again")
    assert [entry.version for entry in await ws.history(A)] == [3, 2]


async def test_a_transaction_without_a_net_change_commits_nothing(ws: Workspace) -> None:
    await ws.write(A, "a")
    async with ws.transaction() as tx:
        await tx.write(B, BIG)
        await tx.delete(B)
        await tx.read(A)
    assert await tip(ws) == 1
    assert tx.committed is None
    async with ws.transaction() as tx:
        await tx.write(B, "b")
    assert tx.committed is not None
    assert tx.committed.commit == (await ws.log(limit=1))[0].commit
