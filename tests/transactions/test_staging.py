"""What a transaction shows before its commit: its own writes over the namespace as it was at the start."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import Edit, Retention, Workspace, WorkspaceDirectory, WorkspaceFile
from crux_workspace.errors import (
    AlreadyExistsError,
    BinaryContentError,
    ConflictError,
    EditError,
    ErrorCode,
    PathExistsError,
    PathNotFoundError,
    VersionNotFoundError,
)
from crux_workspace.testing.workspace import refused
from tests.support.transactions import BIG, net, tip

A, B, C, D = "/workspace/a.md", "/workspace/b.md", "/workspace/c.md", "/workspace/d"


async def paths(of: Any, path: str = "/", **options: Any) -> list[str]:
    return [entry.path for entry in await of.list(path, **options)]


async def test_every_verb_is_offered_and_reads_its_own_writes(ws: Workspace) -> None:
    await ws.write(A, "one\ntwo\n", metadata={"n": 1})
    async with ws.transaction() as tx:
        written = await tx.write(B, {"k": [1]}, kind="data")
        assert (written.version, written.commit, written.sequence) == (1, None, 0)
        assert await tx.read_json(B) == {"k": [1]}
        assert (await tx.edit(A, "two", "2")).version == 2
        assert (await tx.edit(A, edits=[Edit("one", "1"), Edit("2", "zwei")])).version == 2
        assert (await tx.append(A, "three\n")).version == 2
        assert await tx.read_text(A) == "1\nzwei\nthree\n"
        assert await tx.read_bytes(A) == b"1\nzwei\nthree\n"
        assert (await tx.read(A, start_line=2, end_line=2)).content == "zwei\n"  # type: ignore[union-attr]
        assert (await tx.set(A, metadata={"n": 2})).metadata == {"n": 2}
        moved = await tx.rename(A, D + "/a.md")
        assert isinstance(moved, WorkspaceFile)
        assert (moved.path, moved.version) == (D + "/a.md", 2)
        copied = await tx.copy(D, "/outputs/copy")
        assert isinstance(copied, WorkspaceDirectory)
        assert await tx.read_text("/outputs/copy/a.md") == "1\nzwei\nthree\n"
        assert not await tx.exists(A)
        assert await tx.exists(D)
        assert await tx.is_dir(D)
        assert await tx.stat(A) is None
        stat = await tx.stat(D + "/a.md")
        assert stat is not None
        assert stat.metadata == {"n": 2}
        many = await tx.read_many([A, B])
        assert many[A] is None
        assert many[B] is not None
        matches = (await tx.grep("zwei")).matches
        assert [match.path for match in matches] == ["/outputs/copy/a.md", D + "/a.md"]
        assert (await tx.finalize(B)).version == 1
        assert [artifact.path for artifact in await tx.artifacts(status="final")] == [B]
        assert (await tx.withdraw(B)).status == "draft"
        await tx.move("/outputs/copy", "/outputs/moved")
        assert [e.path async for e in tx.walk()] == ["/outputs/moved/a.md", B, D + "/a.md"]
        await tx.delete("/outputs/moved", recursive=True)
        assert await paths(tx, recursive=True) == [B, D + "/a.md"]
        assert await paths(tx, "/workspace") == [B, D]
        assert await paths(tx, "/workspace/**/*.md") == [B, D + "/a.md"]
        assert await paths(ws, recursive=True) == [A]
    assert await paths(ws, recursive=True) == [B, D + "/a.md"]
    assert await net(ws) == [f"create {B}", f"rename {A} -> {D}/a.md"]
    assert (await ws.log(limit=1))[0].verb == "transaction"


async def test_results_are_those_of_the_commit_but_for_the_commit_itself(ws: Workspace) -> None:
    async with ws.transaction() as tx:
        staged = [
            await tx.write(A, "text", metadata={"n": 1}),
            await tx.write(B, BIG, status="final", kind="report"),
            await tx.append(C, "appended"),
        ]
    for expected in staged:
        found = await ws.stat(expected.path)
        assert found is not None
        own = {"commit": None, "sequence": 0}
        assert {**found.to_dict(), **own} == {**expected.to_dict(), **own}


async def test_refusals_are_those_of_the_verbs_and_stage_nothing(ws: Workspace) -> None:
    await ws.write(A, "a a")
    await ws.write(B, BIG)
    async with ws.transaction() as tx:
        with refused(ErrorCode.FILE_NOT_FOUND, PathNotFoundError):
            await tx.read(C)
        with refused(ErrorCode.FILE_NOT_FOUND):
            await tx.rename(C, D)
        with refused(ErrorCode.ALREADY_EXISTS, PathExistsError):
            await tx.rename(A, B)
        with refused(ErrorCode.EDIT_AMBIGUOUS, EditError):
            await tx.edit(A, "a", "b")
        with refused(ErrorCode.BINARY_CONTENT, BinaryContentError):
            await tx.append(B, "x")
        with refused(ErrorCode.PATH_TYPE_CONFLICT, AlreadyExistsError):
            await tx.write(A + "/below", "x")
        with refused(ErrorCode.PATH_TYPE_CONFLICT):
            await tx.delete("/workspace")
        with refused(ErrorCode.OUTSIDE_MOUNTS):
            await tx.write("/elsewhere/x", "x")
        with refused(ErrorCode.INVALID_PATH):
            await tx.write("relative", "x")
        with refused(ErrorCode.INVALID_CONTENT):
            await tx.write(C, float("nan"))
        with refused(ErrorCode.VERSION_NOT_FOUND, VersionNotFoundError):
            await tx.finalize(A, version=9)
    assert await tip(ws) == 2


async def test_if_version_is_judged_against_what_the_transaction_sees(ws: Workspace) -> None:
    first = await ws.write(A, "one")
    async with ws.transaction() as tx:
        with refused(ErrorCode.VERSION_CONFLICT, ConflictError) as caught:
            await tx.write(A, "two", if_version=0)
        assert caught.value.details["current_version"] == 1
        second = await tx.write(A, "two", if_version=first)
        with refused(ErrorCode.VERSION_CONFLICT):
            await tx.write(A, "three", if_version=1)
        await tx.write(A, "three", if_version=second)
        await tx.write(B, "new", if_version=0)
        with refused(ErrorCode.VERSION_CONFLICT):
            await tx.write(B, "newer", if_version=0)
        await tx.delete(A, if_version=2)
        await tx.write(A, "four", if_version=0)
        assert (await tx.rename(B, C, if_version=1)).path == C
    assert await ws.read_text(A) == "four"
    assert [entry.version for entry in await ws.history(A)] == [2, 1]


async def test_older_versions_can_be_read_next_to_the_staged_one(ws: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(A, "two")
    await ws.write(B, BIG)
    async with ws.transaction() as tx:
        await tx.write(A, "three")
        await tx.write(B, "now text")
        texts = [await tx.read_text(A, version=number) for number in (1, 2, 3)]
        assert texts == ["one", "two", "three"]
        assert await tx.read_bytes(B, version=1) == BIG
        await tx.finalize(A)
        await tx.write(A, "four")
        assert [await tx.read_text(A, version=n) for n in (2, 3, 4)] == ["two", "three", "four"]


async def test_a_read_sees_the_start_while_others_commit(ws: Workspace, other: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(B, BIG)
    await ws.write(D + "/x", "x one")
    async with ws.transaction() as tx:
        await other.write(A, "two")
        await other.write(B, b"other")
        await other.delete(D + "/x")
        await other.write(D + "/y", "y")
        await other.rename(A, C)
        assert await tx.read_text(A) == "one"
        assert await tx.read_bytes(B) == BIG
        assert not await tx.exists(C)
        assert not await tx.exists(D + "/y")
        assert await paths(tx, D) == [D + "/x"]
        assert [m.path for m in (await tx.grep("one")).matches] == [A, D + "/x"]
        assert (await tx.stat(A)).version == 1  # type: ignore[union-attr]
    assert await ws.read_text(C) == "two"


async def test_a_page_of_a_listing_holds_each_entry_once(ws: Workspace) -> None:
    for number in range(0, 20, 2):
        await ws.write(f"/workspace/{number:02}", "")
    async with ws.transaction() as tx:
        for number in range(1, 20, 2):
            await tx.write(f"/workspace/{number:02}", "")
        await tx.delete("/workspace/04")
        await tx.rename("/workspace/06", "/workspace/dir/06")
        found, cursor = [], None
        while True:
            page = await tx.list("/workspace", limit=3, cursor=cursor)
            found += [entry.path for entry in page]
            if (cursor := page.cursor) is None:
                break
    wanted = [f"/workspace/{number:02}" for number in range(20) if number not in (4, 6)]
    assert found == [*wanted, "/workspace/dir"]


async def test_a_listing_under_change_shows_what_was_there_when_it_began(ws: Workspace) -> None:
    for number in range(5):
        await ws.write(f"/workspace/{number}", "x")
    async with ws.transaction() as tx:
        seen = []
        async for entry in tx.walk("/workspace"):
            seen.append(entry.path)
            await tx.write(entry.path, "y")
            await tx.write(entry.path + ".new", "y")
    assert seen == [f"/workspace/{number}" for number in range(5)]


async def test_update_runs_on_what_is_staged(ws: Workspace) -> None:
    await ws.write(A, 1)
    async with ws.transaction() as tx:
        await tx.update(A, lambda value: value + 1)
        await tx.update(A, lambda value: value * 10)
    assert await ws.read_json(A) == 20
    assert (await ws.stat(A)).version == 2  # type: ignore[union-attr]


async def test_contents_of_every_sort_go_through(ws: Workspace) -> None:
    async def chunks() -> Any:
        for _ in range(3):
            yield BIG

    large = "a line\n" * 100
    async with ws.transaction() as tx:
        await tx.write(A, large)
        await tx.append(A, "more\n")
        await tx.edit(A, "more", "less")
        await tx.write(B, chunks())
        await tx.write(C, b"text", encoding="utf-8")
        assert await tx.read_text(A) == large + "less\n"
        assert await tx.read_bytes(B) == BIG * 3
        assert b"".join([chunk async for chunk in tx.stream(B, offset=10)]) == (BIG * 3)[10:]
        assert [m.line for m in (await tx.grep("less")).matches] == [101]
    assert await ws.read_text(A) == large + "less\n"
    assert await ws.read_bytes(B) == BIG * 3
    assert await ws.read_text(C) == "text"


async def test_an_empty_namespace_is_there_from_the_first_transaction_that_changes_something(
    ws: Workspace,
) -> None:
    async with ws.transaction() as tx:
        assert await paths(tx, recursive=True) == []
        assert not await tx.exists(A)
    assert list(await ws.namespaces()) == []
    async with ws.transaction() as tx:
        await tx.write(A, "")
    assert list(await ws.namespaces()) == ["n"]


@pytest.mark.parametrize("back", [True, False])
async def test_a_directory_can_become_a_file_and_a_file_a_directory(
    ws: Workspace, back: bool
) -> None:
    await ws.write(D + "/x", "x")
    async with ws.transaction() as tx:
        await tx.rename(D + "/x", C)
        await tx.write(D, "a file")
        assert await paths(tx, recursive=True) == [C, D]
        if back:
            await tx.delete(D)
            await tx.write(D + "/y", "a directory again")
    assert await paths(ws, recursive=True) == [C, D + "/y" if back else D]


async def test_a_file_takes_the_place_of_a_directory_whose_files_have_expired(
    make_ws: Any, clock: Any
) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000, asset_grace_ms=0))
    await ws.write(f"{D}/x", "one")
    await ws.write(f"{D}/y/z", "two")
    clock.advance(5_000)
    await ws.write(A, "")
    async with ws.transaction() as tx:
        await tx.write(D, "three")
    assert await ws.read_text(D) == "three"
    assert [(c.type, c.path) for c in (await ws.log(limit=1))[0].changes] == [
        ("create", D),
        ("delete", f"{D}/x"),
        ("delete", f"{D}/y/z"),
    ]
    assert (await ws.usage()).live_files == 2
