"""What a hostile user found, each with the right answer."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from crux_workspace import (
    Mount,
    Retention,
    Transaction,
    Workspace,
    WorkspaceFile,
    local_runtime,
    open_workspace,
    workspace,
)
from crux_workspace.errors import (
    AccessDeniedError,
    ConflictError,
    InvalidInputError,
    LimitExceededError,
    NotFoundError,
    StateError,
)
from crux_workspace.events.cursors import NO_MARK, parse_event_cursor
from crux_workspace.storage import (
    MemoryAssetStore,
    MemoryRecordStore,
    PutOptions,
    Storage,
    StoredAsset,
    memory_storage,
)
from crux_workspace.storage.records import Batch, Put
from crux_workspace.testing import FixedClock


async def test_a_commit_whose_log_cannot_be_written_leaves_nothing() -> None:
    store = MemoryRecordStore()
    batch = Batch(commit_id="c" * 24, verb="write", now=1, incarnation=None, actor="\ud800")
    batch.puts = [Put("head\x01a\x01", b"{}")]
    with pytest.raises(UnicodeError):
        await store.commit("p", batch)
    assert await store.get_many("p", ["head\x01a\x01", "meta\x01"]) == [None, None]
    assert await store.sequences(["p"]) == [0]


async def test_the_error_of_a_callers_own_stream_reaches_the_caller(ws: Workspace) -> None:
    class OwnError(Exception):
        pass

    async def chunks() -> AsyncIterator[bytes]:
        yield b"x" * 100_000
        raise OwnError

    with pytest.raises(OwnError):
        await ws.write("/workspace/a.bin", chunks())
    assert not await ws.exists("/workspace/a.bin")


async def test_a_cut_page_cursor_is_refused(ws: Workspace) -> None:
    for name in "abc":
        await ws.write(f"/workspace/{name}", "x")
    cursor = (await ws.list("/workspace", limit=1)).cursor
    assert cursor is not None
    for cut in range(1, 12):
        with pytest.raises(InvalidInputError) as refused:
            await ws.list("/workspace", limit=1, cursor=cursor[:-cut])
        assert refused.value.code == "INVALID_CURSOR"


async def test_a_conflict_with_a_deletion_says_so(ws: Workspace) -> None:
    file = await ws.write("/workspace/a", "x")
    await ws.delete("/workspace/a")
    with pytest.raises(ConflictError) as refused:
        await ws.write("/workspace/a", "y", if_version=file)
    assert refused.value.details["last_operation"] == "delete"
    assert refused.value.details["current_version"] is None


async def test_a_view_closes_nothing() -> None:
    ws = await open_workspace("memory://")
    async with ws.for_namespace("n") as bound:
        await bound.write("/workspace/a", "x")
    await ws.acting_as("me").aclose()

    def blocking() -> None:
        with ws.as_sync() as sws:
            sws.write("/workspace/b", "y")

    await asyncio.to_thread(blocking)
    assert await ws.read_text("/workspace/b") == "y"
    await ws.aclose()
    with pytest.raises(StateError):
        await ws.read("/workspace/b")


@pytest.mark.parametrize(
    "url", [None, 5, b"memory://", "sqlite:///a%00.db", "sqlite:///\ud800.db", "sqlite:///a.db#f"]
)
async def test_a_url_that_is_none_is_refused_with_a_code(url: Any) -> None:
    with pytest.raises(InvalidInputError) as refused:
        await open_workspace(url)
    assert refused.value.code == "INVALID_ARGUMENT"


class _AsyncFile:
    async def read(self, size: int) -> bytes:
        return b"x" * size


class _NumberFile:
    def read(self, size: int) -> int:
        return size


_ODD_CALLS: dict[str, tuple[str, Callable[[Workspace], Awaitable[object]]]] = {
    "an encoding with a NUL": (
        "INVALID_ARGUMENT",
        lambda ws: ws.write("/workspace/b", b"x", encoding="utf-8\0"),
    ),
    "an encoding with a lone surrogate": (
        "INVALID_ARGUMENT",
        lambda ws: ws.write("/workspace/b", b"x", encoding="\ud800"),
    ),
    "an asynchronous file": (
        "INVALID_CONTENT",
        lambda ws: ws.write("/workspace/b", _AsyncFile()),  # type: ignore[arg-type]
    ),
    "a file of numbers": (
        "INVALID_CONTENT",
        lambda ws: ws.write("/workspace/b", _NumberFile()),  # type: ignore[arg-type]
    ),
    "a surrogate in an edit with a key": (
        "INVALID_CONTENT",
        lambda ws: ws.edit("/workspace/a", "x", "\ud800", idempotency_key="k"),
    ),
    "text nested too deeply for JSON": (
        "INVALID_CONTENT",
        lambda ws: ws.read_json("/workspace/deep"),
    ),
    "a prefix that is no string": (
        "INVALID_ARGUMENT",
        lambda ws: ws.namespaces(None),  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("what", _ODD_CALLS)
async def test_odd_arguments_get_typed_errors(ws: Workspace, what: str) -> None:
    await ws.write("/workspace/a", "x")
    await ws.write("/workspace/deep", "[" * 50_000)
    code, call = _ODD_CALLS[what]
    with pytest.raises(InvalidInputError) as refused:
        await call(ws)
    assert refused.value.code == code
    assert not await ws.exists("/workspace/b")


async def test_a_huge_number_of_results_is_no_error(ws: Workspace) -> None:
    await ws.write("/workspace/a", "x")
    assert len((await ws.grep("x", max_results=10**30)).matches) == 1


async def test_a_store_that_takes_less_than_the_workspace_allows_is_a_limit() -> None:
    class SmallAssetStore(MemoryAssetStore):
        async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
            return await super().put(data, replace(options, max_bytes=2))

    records = MemoryRecordStore()
    async with workspace(id="w", namespace="n", records=records, assets=SmallAssetStore()) as ws:
        with pytest.raises(LimitExceededError) as refused:
            await ws.write("/workspace/a.bin", b"abc")
    assert (refused.value.code, refused.value.details["limit"]) == ("FILE_TOO_LARGE", 2)


async def test_a_view_does_not_show_the_log_of_a_namespace_made_anew(ws: Workspace) -> None:
    await ws.write("/workspace/a", "old")
    view = ws.at(1)
    assert await view.read_text("/workspace/a") == "old"
    namespace = (await ws.namespaces()).names[0]
    await ws.drop_namespace(namespace)
    for _ in range(2):
        with pytest.raises(NotFoundError) as refused:
            await view.read_text("/workspace/a")
        assert refused.value.code == "COMMIT_NOT_FOUND"
        await ws.write("/workspace/a", "new")


async def test_a_changed_log_cursor_is_refused(ws: Workspace) -> None:
    for number in range(3):
        await ws.write("/workspace/a", str(number))
    newest, before, _ = await ws.log()
    raw = bytearray(base64.urlsafe_b64decode(newest.cursor + "=="))
    other = base64.urlsafe_b64decode(before.cursor + "==")
    raw[16:24] = other[16:24]
    with pytest.raises(InvalidInputError) as refused:
        await ws.log(cursor=base64.urlsafe_b64encode(raw).decode().rstrip("="))
    assert refused.value.code == "INVALID_CURSOR"


@pytest.mark.parametrize("options", [{"mounts": ["/a"]}, {"telemetry": 5}, {"limits": {}}])
def test_settings_of_another_kind_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError) as refused:
        workspace(id="w", **options)
    assert refused.value.code == "INVALID_ARGUMENT"


async def test_what_has_no_mount_here_is_not_told_of() -> None:
    stores = memory_storage()
    wide = workspace(id="w", namespace="n", storage=stores, mounts=[Mount("/a"), Mount("/b")])
    async with local_runtime() as runtime:
        narrow = workspace(
            id="w", namespace="n", storage=stores, mounts=[Mount("/b")], runtime=runtime
        )
        place = await narrow.cursor()
        secret = await wide.write("/a/secret", "x", status="final")
        await wide.write("/b/open", "y")
        await wide.rename("/b/open", "/a/taken")
        [artifact] = await wide.artifacts()
        assert [[c.path for c in e.changes] for e in await narrow.log()] == [
            ["/a/taken"],
            ["/b/open"],
            [],
        ]
        with pytest.raises(AccessDeniedError):
            await narrow.resolve(artifact.uri)
        async with narrow.watch(cursor=place) as feed:
            assert (await anext(feed)).path == "/b/open"
            assert (await anext(feed)).from_path == "/b/open"
        assert secret.version == 1
    await narrow.aclose()
    await wide.aclose()


@pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "1e999", '"\\ud800"', "", "{"])
async def test_text_that_is_not_strict_json_is_refused(ws: Workspace, text: str) -> None:
    await ws.write("/workspace/a.json", text)
    with pytest.raises(InvalidInputError) as refused:
        await ws.read_json("/workspace/a.json")
    assert refused.value.code == "INVALID_CONTENT"


async def test_update_does_not_run_its_function_for_a_version_that_is_not_there(
    ws: Workspace,
) -> None:
    await ws.write("/workspace/a", "1")
    await ws.write("/workspace/a", "2")
    calls: list[str] = []
    with pytest.raises(ConflictError):
        await ws.update("/workspace/a", calls.append, if_version=1)
    with pytest.raises(ConflictError):
        await ws.update("/workspace/none", calls.append, if_version=3)
    assert calls == []


async def test_an_upload_that_took_too_long_is_told_as_such(clock: FixedClock) -> None:
    class SlowAssetStore(MemoryAssetStore):
        async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
            stored = await super().put(data, options)
            clock.advance(2_000_000)
            return stored

    assets = SlowAssetStore(clock=clock)
    records = MemoryRecordStore()
    async with workspace(id="w", namespace="n", records=records, assets=assets, clock=clock) as ws:
        with pytest.raises(ConflictError, match="asset_grace_ms"):
            await ws.write("/workspace/a.bin", b"abc")
    assert (await assets.list("", limit=10)).assets == []


async def test_taking_back_a_move_brings_back_the_deletion_it_covered(ws: Workspace) -> None:
    await ws.write("/workspace/u", "U")
    await ws.write("/workspace/u", "U2")
    await ws.delete("/workspace/u")
    await ws.write("/workspace/v", "V")
    moved = await ws.rename("/workspace/v", "/workspace/u")
    assert isinstance(moved, WorkspaceFile)
    assert moved.commit is not None
    await ws.undo_commit(moved.commit)
    assert [entry.version for entry in await ws.history("/workspace/u")] == [3, 2, 1]
    file = await ws.undo("/workspace/u")
    assert (file.version, await ws.read_text("/workspace/u")) == (4, "U2")
    assert await ws.read_text("/workspace/v") == "V"


@pytest.mark.parametrize("options", [{"mounts": 5}, {"storage": 5}, {"records": 5}, {"assets": 5}])
def test_parts_of_another_kind_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        workspace(id="w", **options)


async def test_read_many_takes_a_list(ws: Workspace) -> None:
    paths: Any
    for paths in (5, "/workspace/a"):
        with pytest.raises(InvalidInputError):
            await ws.read_many(paths)


async def test_the_log_goes_on_behind_a_cursor_that_does_not_know_its_commit(ws: Workspace) -> None:
    """Such a cursor comes from a watch that began while somebody committed."""
    for number in range(3):
        await ws.write("/workspace/a", str(number))
    newest = (await ws.log(limit=1))[0]
    cursor = replace(parse_event_cursor(newest.cursor), commit=NO_MARK).encode()
    assert [entry.sequence for entry in await ws.log(cursor=cursor)] == [2, 1]


@pytest.mark.parametrize("exists", [False, True])
@pytest.mark.parametrize("grace", [0, 3_600_000])
async def test_a_sweep_never_takes_the_bytes_of_a_commit_that_is_acknowledged(
    make_ws: Callable[..., Workspace],
    storage: Storage,
    clock: FixedClock,
    exists: bool,
    grace: int,
) -> None:
    """Whatever grace the process that sweeps was given, and whether the namespace has a commit to fence with or not."""
    storage = Storage(storage.records, MemoryAssetStore(clock=clock))
    ws = make_ws(storage=storage, retention=Retention(asset_grace_ms=grace))
    other = make_ws(storage=storage, retention=Retention(asset_grace_ms=0))
    if exists:
        await ws.write("/workspace/z", "z")
    refused = None
    try:
        async with ws.transaction() as tx:
            await tx.write("/workspace/a.bin", b"x")
            clock.advance(10)
            await other.gc(dry_run=False)
    except ConflictError as error:
        refused = error.code
    if refused is None:
        clock.advance(7_200_000)
        await other.gc(dry_run=False)
        assert await ws.read_bytes("/workspace/a.bin") == b"x"
    else:
        assert exists  # a namespace without a commit has nothing to sweep by yet
        assert refused == "TRANSACTION_CONFLICT"
        assert not await ws.exists("/workspace/a.bin")


async def test_an_upload_may_take_as_long_as_it_likes(ws: Workspace, clock: FixedClock) -> None:
    async def slow() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 100
            clock.advance(7_200_000)

    await ws.write("/workspace/z", "z")
    assert (await ws.write("/workspace/a.bin", slow())).size == 300
    assert len(await ws.read_bytes("/workspace/a.bin")) == 300


async def test_a_transaction_whose_upload_was_swept_runs_again(
    make_ws: Callable[..., Workspace], storage: Storage, clock: FixedClock
) -> None:
    storage = Storage(storage.records, MemoryAssetStore(clock=clock))
    ws = make_ws(storage=storage, retention=Retention(asset_grace_ms=0))
    await ws.write("/workspace/z", "z")
    runs = 0

    async def work(tx: Transaction) -> None:
        nonlocal runs
        runs += 1
        clock.advance(10)
        await tx.write("/workspace/a.bin", b"x")
        if runs == 1:
            clock.advance(10)
            await ws.gc(dry_run=False)

    await ws.transaction(work, max_attempts=3)
    assert runs == 2
    assert await ws.read_bytes("/workspace/a.bin") == b"x"


async def test_time_to_live_counts_from_the_commits_own_time(
    make_ws: Callable[..., Workspace], storage: Storage, clock: FixedClock
) -> None:
    ws = make_ws(storage=storage, retention=Retention(ttl_ms=3_600_000))
    await ws.write("/workspace/a", "1")
    clock.advance(-5_000_000)
    late = await ws.write("/workspace/b", "2")
    clock.advance(5_000_000)
    assert late.updated_at == clock()
    assert await ws.exists("/workspace/b")


async def test_a_file_that_expired_while_a_transaction_was_open_does_not_come_back(
    make_ws: Callable[..., Workspace], storage: Storage, clock: FixedClock
) -> None:
    ws = make_ws(storage=storage, retention=Retention(ttl_ms=1_000))
    await ws.write("/workspace/a", "1")
    with pytest.raises(ConflictError) as refused:
        async with ws.transaction() as tx:
            await tx.append("/workspace/a", "2")
            clock.advance(2_000)
    assert refused.value.code == "TRANSACTION_CONFLICT"
    assert not await ws.exists("/workspace/a")


async def test_a_conflict_names_each_path_once(ws: Workspace) -> None:
    with pytest.raises(ConflictError) as refused:
        async with ws.transaction() as tx:
            assert not await tx.exists("/workspace/a")
            await tx.write("/workspace/b", "b")
            await ws.write("/workspace/a", "a")
    assert [conflict["path"] for conflict in refused.value.details["conflicts"]] == ["/workspace/a"]
