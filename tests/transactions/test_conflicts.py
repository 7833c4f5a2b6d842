"""Serialisable: what was read or written must be unchanged at the commit, and nothing else matters."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from crux_workspace import Limits, Transaction, Versioning, Workspace
from crux_workspace.errors import ConflictError, ErrorCode
from crux_workspace.testing.workspace import refused
from tests.support.transactions import BIG, conflict, tip, whole

A, B, C, D = "/workspace/a", "/workspace/b", "/workspace/c", "/workspace/d"
OUT = "/outputs/out"
Look = Callable[[Transaction], Awaitable[Any]]
Act = Callable[[Workspace], Awaitable[Any]]


async def seed(ws: Workspace) -> None:
    for path in (A, B, D + "/x", D + "/deep/y"):
        await ws.write(path, f"text of {path}")
    await ws.write("/workspace/gone", "was here")
    await ws.delete("/workspace/gone")
    await ws.write("/outputs/published", "p", status="final", kind="report")


async def _write_out(tx: Transaction) -> None:
    await tx.write(OUT, "what the transaction found")


def reading(look: Look) -> Look:
    async def steps(tx: Transaction) -> None:
        await look(tx)
        await _write_out(tx)

    return steps


def walk(path: str) -> Look:
    async def look(tx: Transaction) -> None:
        assert [entry async for entry in tx.walk(path)]

    return look


MET: dict[str, tuple[Look, Act, str]] = {
    "a read file is written": (
        reading(lambda tx: tx.read(A)),
        lambda ws: ws.write(A, "theirs"),
        A,
    ),
    "a read file is finalized": (reading(lambda tx: tx.read(A)), lambda ws: ws.finalize(A), A),
    "a read file is renamed away": (
        reading(lambda tx: tx.read_bytes(A)),
        lambda ws: ws.rename(A, C),
        A,
    ),
    "a read file is deleted": (reading(lambda tx: tx.stat(A)), lambda ws: ws.delete(A), A),
    "a read file is purged": (
        reading(lambda tx: tx.read(A)),
        lambda ws: ws.delete(A, purge=True),
        A,
    ),
    "a read file is replaced": (
        reading(lambda tx: tx.read_many([A, B])),
        lambda ws: ws.rename(D + "/x", A, overwrite=True),
        A,
    ),
    "a written file is written": (
        lambda tx: tx.write(A, "mine"),
        lambda ws: ws.write(A, "theirs"),
        A,
    ),
    "a written file gets attributes": (
        lambda tx: tx.write(A, "mine"),
        lambda ws: ws.set(A, metadata={"n": 1}),
        A,
    ),
    "an edited file is edited": (
        lambda tx: tx.edit(A, "text", "mine"),
        lambda ws: ws.edit(A, "text", "theirs"),
        A,
    ),
    "an appended file is appended to": (
        lambda tx: tx.append(A, "mine"),
        lambda ws: ws.append(A, "theirs"),
        A,
    ),
    "a deleted file is written": (lambda tx: tx.delete(A), lambda ws: ws.write(A, "theirs"), A),
    "a renamed file is written": (lambda tx: tx.rename(A, C), lambda ws: ws.write(A, "x"), A),
    "a rename's destination appears": (
        lambda tx: tx.rename(A, C),
        lambda ws: ws.write(C, "theirs"),
        C,
    ),
    "a copied file is written": (lambda tx: tx.copy(A, C), lambda ws: ws.write(A, "x"), A),
    "a created path appears": (lambda tx: tx.write(C, "mine"), lambda ws: ws.write(C, "x"), C),
    "a created path appears and goes": (
        lambda tx: tx.write(C, "mine"),
        lambda ws: _create_and_delete(ws, C),
        C,
    ),
    "a gone path is written": (
        lambda tx: tx.write("/workspace/gone", "mine"),
        lambda ws: ws.write("/workspace/gone", "theirs"),
        "/workspace/gone",
    ),
    "a missing file that was read appears": (
        reading(lambda tx: tx.stat(C)),
        lambda ws: ws.write(C, "x"),
        C,
    ),
    "what did not exist appears": (
        reading(lambda tx: tx.exists(C)),
        lambda ws: ws.write(C, "x"),
        C,
    ),
    "what did not exist becomes a directory": (
        reading(lambda tx: tx.exists(C)),
        lambda ws: ws.write(C + "/below", "x"),
        C + "/below",
    ),
    "a new file's place becomes a directory": (
        lambda tx: tx.write(C, "mine"),
        lambda ws: ws.write(C + "/below", "x"),
        C,
    ),
    "a new file's directory becomes a file": (
        lambda tx: tx.write(C + "/below", "mine"),
        lambda ws: ws.write(C, "x"),
        C,
    ),
    "a file comes into a listed directory": (
        reading(lambda tx: tx.list(D)),
        lambda ws: ws.write(D + "/new", "x"),
        D + "/new",
    ),
    "a file comes deep into a walked directory": (
        reading(walk(D)),
        lambda ws: ws.write(D + "/deep/new", "x"),
        D + "/deep/new",
    ),
    "a file leaves a listed directory": (
        reading(lambda tx: tx.list(D)),
        lambda ws: ws.rename(D + "/x", C),
        C,
    ),
    "a listed file is written": (
        reading(lambda tx: tx.list(D)),
        lambda ws: ws.write(D + "/x", "x"),
        D + "/x",
    ),
    "a file comes into a glob": (
        reading(lambda tx: tx.list(D + "/**/*.md")),
        lambda ws: ws.write(D + "/deep/new.md", "x"),
        D + "/deep/new.md",
    ),
    "a file comes into a searched directory": (
        reading(lambda tx: tx.grep("text", path=D)),
        lambda ws: ws.write(D + "/new", "text"),
        D + "/new",
    ),
    "a searched file is written": (
        reading(lambda tx: tx.grep("nothing", path=D)),
        lambda ws: ws.write(D + "/x", "nothing"),
        D + "/x",
    ),
    "a directory that is moved gets a file": (
        lambda tx: tx.rename(D, C),
        lambda ws: ws.write(D + "/new", "x"),
        D + "/new",
    ),
    "a directory that is deleted gets a file": (
        lambda tx: tx.delete(D, recursive=True),
        lambda ws: ws.write(D + "/new", "x"),
        D + "/new",
    ),
    "an artifact is published": (
        reading(lambda tx: tx.artifacts()),
        lambda ws: ws.finalize(A),
        A,
    ),
    "a published version is published again": (
        lambda tx: tx.finalize("/outputs/published"),
        lambda ws: ws.withdraw("/outputs/published"),
        "/outputs/published",
    ),
}


async def _create_and_delete(ws: Workspace, path: str) -> None:
    await ws.write(path, "theirs")
    await ws.delete(path)


@pytest.mark.parametrize("case", MET)
async def test_what_was_read_or_written_must_be_unchanged(
    ws: Workspace, interfere: Any, case: str
) -> None:
    await seed(ws)
    steps, act, path = MET[case]
    if case == "a published version is published again":
        await ws.write("/outputs/published", "next")
    before: dict[str, str] = {}

    async def acting(other: Workspace) -> None:
        await act(other)
        before.update({e.path: await ws.read_text(e.path) async for e in ws.walk()})
        before["tip"] = str(await tip(ws))

    with conflict() as told:
        await interfere(steps, acting)
    assert path in [one["path"] for one in told]
    assert before.pop("tip") == str(await tip(ws))
    assert {e.path: await ws.read_text(e.path) async for e in ws.walk()} == before
    assert await ws.stat(OUT) is None


APART: dict[str, tuple[Look, Act]] = {
    "a sibling is written": (lambda tx: tx.write(A, "mine"), lambda ws: ws.write(B, "x")),
    "a file comes beside a new one": (
        lambda tx: tx.write(D + "/mine", "mine"),
        lambda ws: ws.write(D + "/theirs", "x"),
    ),
    "a listed directory's sibling changes": (
        reading(lambda tx: tx.list(D + "/deep")),
        lambda ws: ws.write(D + "/x", "x"),
    ),
    "a name that only begins like it appears": (
        reading(lambda tx: tx.exists(C)),
        lambda ws: ws.write(C + "c", "x"),
    ),
    "another file is deleted and made again": (
        lambda tx: tx.write(A, "mine"),
        lambda ws: _delete_and_create(ws, B),
    ),
    "another directory is moved": (lambda tx: tx.write(A, "mine"), lambda ws: ws.rename(D, C)),
    "the source of a finished copy's sibling changes": (
        lambda tx: tx.copy(A, C),
        lambda ws: ws.write(B, "x"),
    ),
    "somebody publishes another file": (
        lambda tx: tx.finalize(A),
        lambda ws: ws.finalize(B),
    ),
}


async def _delete_and_create(ws: Workspace, path: str) -> None:
    await ws.delete(path)
    await ws.write(path, "again")


@pytest.mark.parametrize("case", APART)
async def test_untouched_paths_never_conflict(ws: Workspace, interfere: Any, case: str) -> None:
    await seed(ws)
    steps, act = APART[case]
    tx = await interfere(steps, act)
    assert tx.committed is not None
    assert tx.committed.sequence == await tip(ws)


async def test_a_conflict_says_what_changed(ws: Workspace, other: Workspace) -> None:
    await ws.write(A, "one")
    await ws.write(B, "one")
    with conflict(A, B, C) as told:
        async with ws.transaction() as tx:
            await tx.read(A)
            await tx.write(B, "mine")
            await tx.write(C, "mine")
            await other.write(A, "two")
            await other.write(A, "three")
            await other.edit(B, "one", "two")
            await other.append(C, "theirs")
    by_path = {one["path"]: one for one in told}
    assert by_path[A]["base_version"] == 1
    assert by_path[A]["current_version"] == 3
    assert by_path[A]["last_operation"] == "write"
    assert by_path[B]["current_version"] == 2
    assert by_path[B]["last_operation"] == "edit"
    assert (by_path[C]["base_version"], by_path[C]["current_version"]) == (None, 1)
    assert {one["last_actor"] for one in told} == {"somebody else"}


async def test_a_path_read_after_it_changed_says_what_changed_too(
    ws: Workspace, other: Workspace
) -> None:
    await ws.write(A, "one")
    with conflict(A) as told:
        async with ws.transaction() as tx:
            await other.write(A, "two")
            assert await tx.read_text(A) == "one"
            await tx.write(B, "found one")
    assert (told[0]["base_version"], told[0]["current_version"]) == (1, 2)


async def test_of_two_on_one_path_one_wins(ws: Workspace, other: Workspace) -> None:
    await ws.write(A, "base")
    both_have_read = asyncio.Barrier(2)

    async def run(of: Workspace, text: str) -> str:
        async with of.transaction() as tx:
            old = await tx.read_text(A)
            await both_have_read.wait()
            await tx.write(A, old + text)
        return text

    done = await asyncio.gather(run(ws, "1"), run(other, "2"), return_exceptions=True)
    (refusal,) = [one for one in done if isinstance(one, BaseException)]
    (winner,) = [one for one in done if isinstance(one, str)]
    assert isinstance(refusal, ConflictError)
    assert refusal.code == ErrorCode.TRANSACTION_CONFLICT
    assert await ws.read_text(A) == "base" + winner


async def test_both_of_two_on_one_path_land_when_they_try_again(
    ws: Workspace, other: Workspace
) -> None:
    await ws.write(A, 0)

    async def add(tx: Transaction) -> int:
        value = whole(await tx.read_json(A)) + 1
        await asyncio.sleep(0)
        await tx.write(A, value)
        return value

    done = await asyncio.gather(*(of.transaction(add, max_attempts=20) for of in (ws, other)))
    assert sorted(done) == [1, 2]  # type: ignore[type-var]
    assert await ws.read_json(A) == 2


@pytest.mark.parametrize("look", ["list", "grep", "exists", "read of what is missing"])
async def test_write_skew_is_refused(ws: Workspace, other: Workspace, look: str) -> None:
    """Both see that nobody is on call and sign up: only one may."""
    both_have_looked = asyncio.Barrier(2)

    async def is_free(tx: Transaction) -> bool:
        if look == "list":
            return not list(await tx.list("/workspace/oncall"))
        if look == "grep":
            return not (await tx.grep("on call")).matches
        if look == "exists":
            return not await tx.exists("/workspace/oncall")
        return not any((await tx.read_many([f"/workspace/oncall/{n}" for n in "ab"])).values())

    async def sign_up(of: Workspace, name: str) -> None:
        async with of.transaction() as tx:
            assert await is_free(tx)
            await both_have_looked.wait()
            await tx.write(f"/workspace/oncall/{name}", "on call")

    done = await asyncio.gather(sign_up(ws, "a"), sign_up(other, "b"), return_exceptions=True)
    assert [type(one) for one in done if one is not None] == [ConflictError]
    assert len(list(await ws.list("/workspace/oncall"))) == 1


@pytest.mark.parametrize("fate", ["written", "renamed", "deleted"])
async def test_a_read_only_transaction_never_fails(
    ws: Workspace, other: Workspace, fate: str
) -> None:
    await seed(ws)
    async with ws.transaction() as tx:
        await tx.list(D)
        if fate == "written":
            await other.write(A, "theirs")
        elif fate == "renamed":
            await other.rename(A, C)
        else:
            await other.delete(A)
        await other.delete(D, recursive=True)
        assert await tx.read_text(A) == f"text of {A}"
        assert [entry.path for entry in await tx.list(D)] == [D + "/deep", D + "/x"]
        assert not await tx.exists(C)
        assert [m.path for m in (await tx.grep("text", path=D)).matches] == [
            D + "/deep/y",
            D + "/x",
        ]
        assert [a.path for a in await tx.artifacts()] == ["/outputs/published"]
    assert tx.committed is None


async def test_what_was_read_before_it_was_collected_is_a_clean_conflict(make_ws: Any) -> None:
    ws = make_ws(versioning=Versioning(max_versions=1))
    await ws.write(A, BIG)
    with conflict(A):
        async with ws.transaction() as tx:
            assert await tx.read_bytes(A) == BIG
            await ws.write(A, "two")
            await ws.write(A, "three")
            await ws.gc(dry_run=False)
            await tx.write(B, "found")
    async with ws.transaction() as tx:
        text = await tx.read_text(A)
        await ws.write(A, "four")
    assert text == "three"


@pytest.mark.parametrize("purge", [False, True])
async def test_what_was_collected_before_it_was_read_is_a_conflict_at_once(
    make_ws: Any, purge: bool
) -> None:
    ws = make_ws(versioning=Versioning(max_versions=1))
    await ws.write(A, "one", kind="report")
    await ws.write(B, "untouched")
    async with ws.transaction() as tx:
        if purge:
            await ws.delete(A, purge=True)
        else:
            await ws.write(A, "two")
            await ws.write(A, "three")
        looks: list[Awaitable[Any]] = [
            tx.read(A),
            tx.stat(A),
            tx.list("/workspace"),
            tx.list("/", recursive=True),
            tx.grep("one"),
            tx.artifacts(),
            tx.copy("/workspace", "/outputs/copy"),
            tx.write(A, "mine"),
        ]
        for look in looks:
            with conflict():
                await look
        assert await tx.exists("/workspace")
        assert await tx.read_text(B) == "untouched"


@pytest.mark.parametrize("again", [False, True], ids=["dropped", "made again"])
@pytest.mark.parametrize("look", [False, True], ids=["at the commit", "at the next read"])
async def test_a_namespace_that_is_dropped_is_a_conflict(
    ws: Workspace, again: bool, look: bool
) -> None:
    await ws.write(A, "one")
    with conflict("/"):
        async with ws.transaction() as tx:
            await tx.write(B, "mine")
            await ws.drop_namespace("n")
            if again:
                await ws.write(A, "one")
            if look:
                await tx.read(A)
    assert await ws.stat(B) is None


async def test_a_namespace_that_appears_does_not_disturb_who_touched_other_paths(
    ws: Workspace, other: Workspace
) -> None:
    async with ws.transaction() as tx:
        await tx.write(A, "mine")
        await other.write(B, "theirs")
    assert [entry.path for entry in await ws.list("/workspace")] == [A, B]
    await ws.drop_namespace("n")
    with conflict(A):
        async with ws.transaction() as tx:
            await tx.write(A, "mine")
            await other.write(A, "theirs")


async def test_the_history_that_others_made_meanwhile_counts(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_history_bytes=10))
    await ws.write(A, "12345")
    await ws.write(B, "12345")
    async with ws.transaction() as tx:
        await tx.write(A, "abcde")
        await ws.write(B, "67890")
        await ws.write(B, "67890")
    assert (await ws.usage()).history_bytes == 10
    assert [entry.version for entry in await ws.history(A)] == [2]


async def test_a_quota_is_judged_on_the_final_state(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_files=2, max_namespace_bytes=20, max_file_bytes=15))
    await ws.write(A, "0123456789")
    async with ws.transaction() as tx:
        await tx.write(B, "0123456789")
        await tx.write(C, "0123456789")
        await tx.delete(A)
    with refused(ErrorCode.QUOTA_EXCEEDED) as caught:
        async with ws.transaction() as tx:
            await tx.write(A, "")
    assert caught.value.details["limit"] == 2
    with refused(ErrorCode.QUOTA_EXCEEDED):
        async with ws.transaction() as tx:
            await tx.append(B, "x")
    with refused(ErrorCode.FILE_TOO_LARGE):
        async with ws.transaction() as tx:
            await tx.write(B, "x" * 16)
    async with ws.transaction() as tx:
        await tx.append(B, "xxxxx")
        await tx.write(C, "short")
    assert (await ws.usage()).live_bytes == 20


async def test_what_a_glob_cannot_match_is_no_conflict(ws: Workspace) -> None:
    await ws.write("/workspace/a.md", "a")
    async with ws.transaction() as tx:
        assert len(await tx.list("/workspace/*.md")) == 1
        assert len(await tx.grep("a", path="/workspace/*.md")) == 1
        await ws.write("/workspace/new.txt", "other")
        await tx.write("/outputs/seen", "1")
    assert await ws.exists("/outputs/seen")
    with pytest.raises(ConflictError) as refused:
        async with ws.transaction() as tx:
            await tx.list("/workspace/*.md")
            await ws.write("/workspace/new.md", "other")
            await tx.write("/outputs/seen", "2")
    assert refused.value.details["conflicts"][0]["path"] == "/workspace/new.md"


async def test_an_update_further_down_does_not_show_in_a_listing(ws: Workspace) -> None:
    await ws.write("/workspace/d/deep.md", "a")
    async with ws.transaction() as tx:
        assert len(await tx.list("/workspace")) == 1
        await ws.write("/workspace/d/deep.md", "b")
        await tx.write("/outputs/seen", "1")
    assert await ws.exists("/outputs/seen")
    with pytest.raises(ConflictError):
        async with ws.transaction() as tx:
            await tx.list("/workspace")
            await ws.delete("/workspace/d/deep.md")
            await tx.write("/outputs/seen", "2")


async def test_upkeep_of_a_file_that_was_only_read_does_not_conflict(make_ws: Any) -> None:
    ws = make_ws()
    for number in range(60):
        await ws.write(A, str(number))
    upkeep = make_ws(versioning=Versioning(max_versions=2))
    async with ws.transaction() as tx:
        assert await tx.read_text(A) == "59"
        await tx.write(B, "x")
        assert (await upkeep.gc(dry_run=False)).versions > 32
    assert await ws.read_text(B) == "x"
    with refused(ErrorCode.TRANSACTION_CONFLICT):
        async with ws.transaction() as tx:
            assert await tx.read_text(A) == "59"
            await tx.write(B, "y")
            await ws.set(A, metadata={"n": 1})


async def test_artifacts_of_one_directory_do_not_conflict_with_another(
    ws: Workspace, other: Workspace
) -> None:
    await ws.write(A, "x", kind="k")
    async with ws.transaction() as tx:
        assert [artifact.path for artifact in await tx.artifacts(path="/workspace")] == [A]
        await tx.write(B, "x")
        await other.write(OUT, "y", kind="k")
    with refused(ErrorCode.TRANSACTION_CONFLICT):
        async with ws.transaction() as tx:
            await tx.artifacts(path="/workspace")
            await tx.write(B, "z")
            await other.write(C, "y", kind="k")
