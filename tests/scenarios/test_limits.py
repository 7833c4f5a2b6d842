"""Quotas, usage, time to live and collection."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import ContentOptions, Limits, Retention, Workspace
from crux_workspace.errors import ErrorCode, LimitExceededError
from crux_workspace.testing.workspace import refused

A, B = "/workspace/a", "/workspace/b"


async def test_usage_counts_live_files_and_history(ws: Workspace) -> None:
    empty = await ws.usage()
    assert (empty.live_bytes, empty.live_files, empty.versions, empty.history_bytes) == (0, 0, 0, 0)
    assert empty.max_namespace_bytes is None
    await ws.write(A, "12345")
    await ws.write(A, "ü")
    await ws.write(B, {"a": 1})
    usage = await ws.usage()
    assert (usage.live_bytes, usage.live_files) == (9, 2)
    assert (usage.versions, usage.history_bytes) == (3, 5)
    await ws.delete(A)
    usage = await ws.usage()
    assert (usage.live_bytes, usage.live_files) == (7, 1)
    assert (usage.versions, usage.history_bytes) == (4, 7)


async def test_a_file_may_reach_its_limit_and_not_pass_it(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_file_bytes=10))
    await ws.write(A, "ü" * 5)
    with refused(ErrorCode.FILE_TOO_LARGE, LimitExceededError) as caught:
        await ws.write(A, "x" * 11)
    details = caught.value.details
    assert (details["path"], details["size"], details["limit"]) == (A, 11, 10)
    with refused(ErrorCode.FILE_TOO_LARGE):
        await ws.append(A, "x")
    with refused(ErrorCode.FILE_TOO_LARGE):
        await ws.edit(A, "ü", "üx", replace_all=True)
    with refused(ErrorCode.FILE_TOO_LARGE):
        await ws.write(B, b"\x00" * 11)
    assert len(await ws.log()) == 1


async def test_a_namespace_may_reach_its_limit_and_not_pass_it(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_namespace_bytes=10))
    assert (await ws.usage()).max_namespace_bytes == 10
    await ws.write(A, "12345")
    await ws.write(B, "12345")
    calls: list[Any] = [
        lambda: ws.write("/workspace/c", "1"),
        lambda: ws.append(A, "6"),
        lambda: ws.copy(A, "/workspace/c"),
        lambda: ws.edit(A, "1", "11"),
    ]
    for call in calls:
        with refused(ErrorCode.QUOTA_EXCEEDED, LimitExceededError) as caught:
            await call()
        assert caught.value.details["limit"] == 10
        assert caught.value.details["used"] == 10
    await ws.write(A, "54321")
    await ws.write("/workspace/empty", "")
    await ws.rename(A, "/workspace/c")
    await ws.delete(B)
    await ws.write(A, "12345")
    assert (await ws.usage()).live_bytes == 10


async def test_quotas_count_live_files_only(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_namespace_bytes=10, max_files=1))
    for _ in range(5):
        await ws.write(A, "1234567890")
    await ws.delete(A)
    await ws.write(B, "1234567890")
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await ws.undo(A)


async def test_the_number_of_files_is_limited(make_ws: Any) -> None:
    ws = make_ws(limits=Limits(max_files=2))
    await ws.write(A, "")
    await ws.write(B, "")
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await ws.write("/workspace/c", "")
    await ws.write(B, "more")
    await ws.rename(A, B, overwrite=True)
    await ws.write(A, "")


async def test_a_ceiling_refuses_only_a_positive_net_addition(make_ws: Any) -> None:
    await make_ws().write(A, "x" * 100)
    await make_ws().write(B, "x" * 100)
    tight = make_ws(limits=Limits(max_namespace_bytes=10, max_files=1))
    await tight.write(A, "x" * 100)
    await tight.write(A, "x" * 50)
    await tight.rename(A, "/workspace/c")
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await tight.append(B, "x")
    await tight.delete(B)
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await tight.undo(B)


async def test_a_refused_write_leaves_no_asset(make_ws: Any, clock: Any) -> None:
    ws = make_ws(
        limits=Limits(max_namespace_bytes=50), content=ContentOptions(inline_text_below_bytes=20)
    )
    with refused(ErrorCode.QUOTA_EXCEEDED):
        await ws.write(A, b"\x00" * 100)
    clock.advance(10_000_000)
    assert (await ws.gc()).assets == 0


@pytest.mark.parametrize("name", ["max_file_bytes", "max_namespace_bytes", "max_files"])
def test_negative_limits_are_refused(name: str) -> None:
    with refused(ErrorCode.INVALID_ARGUMENT):
        Limits(**{name: -1})


async def test_a_file_vanishes_at_once_when_it_is_due(make_ws: Any, clock: Any) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    other = make_ws()
    await ws.write(A, "text x", kind="k")
    clock.advance(999)
    assert await ws.read_text(A) == "text x"
    clock.advance(1)
    for view in (ws, other):
        assert not await view.exists(A)
        assert await view.stat(A) is None
        assert list(await view.list(recursive=True)) == []
        assert not await view.is_dir("/workspace/a")
        assert (await view.grep("x")).matches == []
        assert await view.artifacts() == []
        usage = await view.usage()
        assert (usage.live_bytes, usage.live_files) == (0, 0)
        with refused(ErrorCode.FILE_NOT_FOUND):
            await view.read(A)
        with refused(ErrorCode.FILE_NOT_FOUND):
            await view.edit(A, "x", "y")
        with refused(ErrorCode.FILE_NOT_FOUND):
            await view.rename(A, B)


async def test_the_time_starts_again_at_every_content_change_and_follows_a_rename(
    make_ws: Any, clock: Any
) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    await ws.write(A, "text")
    clock.advance(600)
    await ws.append(A, "!")
    clock.advance(600)
    await ws.rename(A, B)
    await ws.set(B, metadata={"m": 1})
    await ws.finalize(B)
    clock.advance(399)
    assert await ws.exists(B)
    clock.advance(1)
    assert not await ws.exists(B)


async def test_due_files_are_swept_in_commits(make_ws: Any, clock: Any) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    for number in range(3):
        await ws.write(f"/workspace/{number}", "text")
    clock.advance(1_000)
    assert (await ws.gc()).expired == 3
    assert len(await ws.log()) == 3
    assert (await ws.gc(dry_run=False)).expired == 3
    swept = [entry for entry in await ws.log() if entry.sequence > 3]
    assert {entry.verb for entry in swept} == {"expire"}
    types = [change.type for entry in swept for change in entry.changes]
    assert types == ["delete"] * 3
    assert (await ws.gc(dry_run=False)).expired == 0
    assert [entry.operation for entry in await ws.history("/workspace/0")] == ["delete", "write"]


@pytest.mark.parametrize("is_swept", [True, False])
async def test_a_file_written_again_after_it_expired_goes_on(
    make_ws: Any, clock: Any, is_swept: bool
) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    old = await ws.write(A, "one", metadata={"m": 1}, status="final")
    clock.advance(1_000)
    if is_swept:
        await ws.gc(dry_run=False)
    new = await ws.write(A, "two", if_version=0)
    assert (new.id, new.version) == (old.id, 3)
    assert (new.status, new.pinned_version) == (None, None)
    operations = [entry.operation for entry in await ws.history(A)]
    assert operations == ["write", "delete", "write"]
    assert (await ws.log(limit=1))[0].changes[-1].type == "create"
    usage = await ws.usage()
    assert (usage.live_bytes, usage.live_files, usage.versions) == (3, 1, 3)


@pytest.mark.parametrize("is_swept", [True, False])
async def test_an_expired_file_can_be_undone_like_a_deleted_one(
    make_ws: Any, clock: Any, is_swept: bool
) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    await ws.write(A, "one")
    clock.advance(1_000)
    if is_swept:
        await ws.gc(dry_run=False)
    file = await ws.undo(A)
    assert (file.version, await ws.read_text(A)) == (3, "one")


async def test_an_expired_file_makes_room_in_the_quota(make_ws: Any, clock: Any) -> None:
    ws = make_ws(
        retention=Retention(ttl_ms=1_000), limits=Limits(max_files=1, max_namespace_bytes=4)
    )
    await ws.write(A, "full")
    clock.advance(1_000)
    await ws.write(B, "full")
    assert (await ws.usage()).live_files == 1


async def test_an_expired_file_does_not_block_a_directory(make_ws: Any, clock: Any) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    await ws.write(A, "file")
    clock.advance(1_000)
    await ws.write("/workspace/a/b", "below it")
    clock.advance(1_000)
    await ws.write(A, "file again")
    assert await ws.read_text(A) == "file again"


async def test_the_past_shows_what_lived_then(make_ws: Any, clock: Any) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    await ws.write(A, "one")
    clock.advance(1_000)
    await ws.write(B, "two")
    assert [entry.path for entry in await ws.at(1).list(recursive=True)] == [A]
    assert await ws.at(1).read_text(A) == "one"
    assert [entry.path for entry in await ws.at(2).list(recursive=True)] == [B]


async def test_gc_is_a_dry_run_unless_told(make_ws: Any, clock: Any) -> None:
    ws = make_ws(retention=Retention(ttl_ms=1_000))
    await ws.write(A, b"\x00" * 100)
    clock.advance(10_000_000)
    report = await ws.gc()
    assert (report.dry_run, report.expired) == (True, 1)
    assert report.to_dict()["expired"] == 1
    assert len(await ws.log()) == 1


async def test_gc_never_deletes_what_is_needed(make_ws: Any, clock: Any) -> None:
    ws = make_ws(content=ContentOptions(inline_text_below_bytes=20))
    for number in range(3):
        await ws.write(A, bytes([number]) * 100)
    await ws.copy(A, B)
    await ws.delete(A)
    clock.advance(100_000_000)
    report = await ws.gc(dry_run=False)
    assert (report.assets, report.versions) == (0, 0)
    for number in range(3):
        assert await ws.read_bytes(A, version=number + 1) == bytes([number]) * 100
    assert await ws.read_bytes(B) == b"\x02" * 100
