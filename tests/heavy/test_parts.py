"""An append to a large text adds a part: every verb works on what is in parts as on anything else."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable

import pytest

from crux_workspace import Limits, Versioning, Workspace
from crux_workspace.engine.codec import Part
from crux_workspace.engine.parts import MAX_PARTS, kept_parts
from crux_workspace.errors import ErrorCode, LimitExceededError, StorageError, WorkspaceError
from tests.heavy.conftest import SMALL, Heavy

LOG = "/workspace/log.txt"
BASE = "a first line that is long\n"


async def _in_parts(ws: Workspace, parts: int = 4) -> str:
    """Write a text in some parts; returns it."""
    text = BASE
    await ws.write(LOG, text)
    for number in range(1, parts):
        text += f"part {number} é\n"
        await ws.append(LOG, f"part {number} é\n")
    return text


async def _shown(ws: Workspace, path: str, text: str) -> None:
    """Hold a file to its text, read in every way."""
    data = text.encode()
    file = await ws.stat(path)
    assert file is not None
    assert (file.size, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert file.storage == "asset"
    assert file.preview == (text if len(text) <= 240 else text[:237] + "...")
    assert await ws.read_text(path) == text
    assert await ws.read_bytes(path) == data
    assert b"".join([chunk async for chunk in ws.stream(path, chunk_bytes=7)]) == data
    content = await ws.read(path)
    assert content.to_dict()["total_lines"] == len(text.splitlines())


async def test_an_append_puts_the_added_bytes_only(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write(LOG, "x" * 1_000_000)
    heavy.assets.reset()
    text = "x" * 1_000_000
    for number in range(30):
        text += f"\n{number}"
        await ws.append(LOG, f"\n{number}")
    assert heavy.assets.put_bytes == len(text) - 1_000_000
    assert heavy.assets.read_bytes == 0, "what this process wrote is not read again"
    await _shown(ws, LOG, text)


async def test_a_text_that_another_process_wrote_is_read_once(
    heavy: Heavy, forget: Callable[[], None]
) -> None:
    text = await _in_parts(heavy.open())
    forget()
    heavy.assets.reset()
    ws = heavy.open()
    await ws.append(LOG, "x")
    assert (heavy.assets.read_bytes, heavy.assets.put_bytes) == (len(text.encode()), 1)
    heavy.assets.reset()
    await ws.append(LOG, "y")
    assert (heavy.assets.read_bytes, heavy.assets.put_bytes) == (0, 1)
    await _shown(ws, LOG, text + "xy")


async def test_parts_that_another_process_added_are_all_that_is_read(
    heavy: Heavy, forget: Callable[[], None]
) -> None:
    from crux_workspace.engine import measuring

    ws = heavy.open()
    await ws.write(LOG, BASE * 100)
    known = dict(measuring._remembered._states)
    await ws.append(LOG, "by another process")
    forget()
    measuring._remembered._states.update(known)
    heavy.assets.reset()
    await ws.append(LOG, "!")
    assert heavy.assets.read_bytes == len("by another process")
    await _shown(ws, LOG, BASE * 100 + "by another process!")


@pytest.mark.parametrize("seed", range(4))
async def test_many_appends_are_joined_and_stay_the_same_text(
    heavy: Heavy, forget: Callable[[], None], seed: int
) -> None:
    chance = random.Random(seed)
    ws = heavy.open()
    text = BASE
    await ws.write(LOG, text)
    most = 0
    for _ in range(200):
        added = "".join(chance.choice("ab\né字") for _ in range(chance.randint(0, 30)))
        text += added
        if chance.random() < 0.1:
            forget()
        await ws.append(LOG, added)
        most = max(most, len(await heavy.refs(LOG)))
    assert MAX_PARTS // 2 < most <= MAX_PARTS
    await _shown(ws, LOG, text)
    for version in (1, 2, 63, 64, 65, 66, 130, 201):
        entry = (await ws.history(LOG, limit=1, before=version + 1))[0]
        old = await ws.read_bytes(LOG, version=version)
        assert text.encode().startswith(old)
        assert hashlib.sha256(old).hexdigest() == entry.sha256
    await heavy.settle(ws)
    await ws.delete(LOG, purge=True)
    assert not (await heavy.settle(ws)).referenced


def test_joining_keeps_a_large_first_part_and_joins_each_byte_a_few_times() -> None:
    parts: tuple[Part, ...] = (Part("", 1 << 30, ""),)
    joined = 0
    appends = 20_000
    for _ in range(appends):
        kept = kept_parts(parts)
        size = 1000 + sum(part.size for part in parts[kept:])
        joined += size - 1000
        parts = (*parts[:kept], Part("", size, ""))
        assert len(parts) <= MAX_PARTS
        assert parts[0].size >= 1 << 30
    assert joined < appends * 1000 * 6, "a byte is joined a few times, not once an append"


async def test_history_diff_undo_redo_and_views_see_each_version(heavy: Heavy) -> None:
    ws = heavy.open()
    text = await _in_parts(ws)
    entries = await ws.history(LOG)
    assert [(e.version, e.operation, e.storage) for e in entries] == [
        (4, "append", "asset"),
        (3, "append", "asset"),
        (2, "append", "asset"),
        (1, "write", "asset"),
    ]
    assert "+part 3 é\n" in (await ws.diff(LOG)).unified
    await ws.undo(LOG)
    await _shown(ws, LOG, text.removesuffix("part 3 é\n"))
    await ws.redo(LOG)
    await _shown(ws, LOG, text)
    assert await ws.at(2).read_text(LOG) == BASE + "part 1 é\n"
    await ws.delete(LOG)
    await ws.undo(LOG)
    await _shown(ws, LOG, text)
    [newest] = await ws.log(limit=1)
    await ws.undo_commit(newest)
    assert not await ws.exists(LOG)
    await heavy.settle(ws)


async def test_copies_share_the_parts_and_outlive_the_original(heavy: Heavy) -> None:
    ws = heavy.open()
    text = await _in_parts(ws)
    heavy.assets.reset()
    await ws.copy(LOG, "/outputs/copy.txt")
    await ws.rename("/outputs/copy.txt", "/outputs/moved.txt")
    await ws.set("/outputs/moved.txt", metadata={"n": 1})
    assert heavy.assets.put_bytes == heavy.assets.read_bytes == 0
    await ws.append(LOG, "only here")
    await ws.delete(LOG, purge=True)
    await heavy.settle(ws)
    await _shown(ws, "/outputs/moved.txt", text)
    await ws.append("/outputs/moved.txt", "and on")
    await _shown(ws, "/outputs/moved.txt", text + "and on")


async def test_another_namespace_gets_one_asset(heavy: Heavy) -> None:
    ws = heavy.open()
    text = await _in_parts(ws)
    await ws.copy(LOG, "/workspace/there.txt", to_namespace="other")
    other = heavy.open(namespace="other")
    await ws.delete(LOG, purge=True)
    await ws.gc(dry_run=False)
    await _shown(other, "/workspace/there.txt", text)
    await other.append("/workspace/there.txt", "more")
    await _shown(other, "/workspace/there.txt", text + "more")


async def test_a_published_version_in_parts_resolves_and_stays(heavy: Heavy) -> None:
    ws = heavy.open(versioning=Versioning(max_versions=1))
    text = await _in_parts(ws)
    artifact = await ws.finalize(LOG)
    assert artifact.sha256 == hashlib.sha256(text.encode()).hexdigest()
    await ws.append(LOG, "a draft again")
    await ws.write(LOG, "small")
    await heavy.settle(ws)
    assert await ws.resolve(artifact.uri) == text.encode()
    await ws.withdraw(LOG)
    assert not (await heavy.settle(ws)).referenced


async def test_an_asset_uri_that_was_given_out_resolves_while_its_bytes_are_a_part(
    heavy: Heavy,
) -> None:
    ws = heavy.open()
    await ws.write(LOG, BASE, status="final")
    [artifact] = await ws.artifacts()
    await ws.append(LOG, "more")
    await ws.finalize(LOG)
    assert await ws.resolve(artifact.uri) == BASE.encode()
    heavy.assets.flip((await heavy.refs(LOG))[0], 3)
    with pytest.raises(StorageError) as caught:
        await ws.resolve(artifact.uri)
    assert caught.value.code == ErrorCode.RECORD_CORRUPT


async def test_collection_releases_the_parts_that_no_version_holds(heavy: Heavy) -> None:
    ws = heavy.open(versioning=Versioning(max_versions=1))
    await _in_parts(ws)
    assert len((await heavy.settle(ws)).referenced) == 4
    await ws.edit(LOG, "part 2", "part two")
    assert len((await heavy.settle(ws)).referenced) == 1


async def test_transactions_append_to_parts(heavy: Heavy) -> None:
    ws = heavy.open()
    text = await _in_parts(ws)
    async with ws.transaction() as tx:
        await tx.append(LOG, "in ")
        await tx.append(LOG, "one ")
        assert await tx.read_text(LOG) == text + "in one "
        await tx.finalize(LOG)
        await tx.append(LOG, "commit")
        await tx.copy(LOG, "/outputs/c.txt")
        await tx.append("/outputs/c.txt", " too")
    await _shown(ws, LOG, text + "in one commit")
    await _shown(ws, "/outputs/c.txt", text + "in one commit too")
    assert await ws.read_text(LOG, version=5) == text + "in one "
    await heavy.settle(ws)


async def test_a_transaction_that_fails_leaves_no_part(heavy: Heavy) -> None:
    ws = heavy.open()
    text = await _in_parts(ws)
    before = set(heavy.assets.inner._assets)
    with pytest.raises(RuntimeError):
        async with ws.transaction() as tx:
            await tx.append(LOG, "one")
            await tx.append(LOG, "two")
            raise RuntimeError
    assert set(heavy.assets.inner._assets) == before
    await _shown(ws, LOG, text)


async def test_quota_and_file_size_count_the_whole(heavy: Heavy) -> None:
    text = await _in_parts(heavy.open())
    size = len(text.encode())
    before = set(heavy.assets.inner._assets)
    for limits, code in (
        (Limits(max_file_bytes=size + 4), ErrorCode.FILE_TOO_LARGE),
        (Limits(max_namespace_bytes=size + 4), ErrorCode.QUOTA_EXCEEDED),
    ):
        ws = heavy.open(limits=limits)
        with pytest.raises(LimitExceededError) as caught:
            await ws.append(LOG, "12345")
        assert caught.value.code == code
        assert set(heavy.assets.inner._assets) == before, "a refused append leaves nothing"
    await ws.append(LOG, "1234")
    usage = await ws.usage()
    assert usage.live_bytes == size + 4
    assert usage.history_bytes == sum(e.size for e in (await ws.history(LOG))[1:])


async def test_concurrent_appends_all_land(heavy: Heavy) -> None:
    ws = heavy.open()
    await _in_parts(ws)
    await asyncio.gather(*(ws.append(LOG, f"<{n}>") for n in range(80)))
    text = await ws.read_text(LOG)
    assert all(text.count(f"<{n}>") == 1 for n in range(80))
    await _shown(ws, LOG, text)
    await heavy.settle(ws)


async def test_small_files_stay_inline_and_become_parts_only_behind_an_asset(heavy: Heavy) -> None:
    ws = heavy.open()
    await ws.write(LOG, "123")
    await ws.append(LOG, "4" * (SMALL - 3))
    assert await heavy.refs(LOG) == ()
    await ws.append(LOG, "5")
    assert len(await heavy.refs(LOG)) == 1
    await ws.append(LOG, "6")
    assert len(await heavy.refs(LOG)) == 2
    assert await ws.read_text(LOG) == "123" + "4" * (SMALL - 3) + "56"


async def test_a_key_repeats_an_append_to_parts_once(heavy: Heavy) -> None:
    ws = heavy.open()
    text = await _in_parts(ws)
    first = await ws.append(LOG, "once", idempotency_key="k")
    again = await ws.append(LOG, "once", idempotency_key="k")
    assert first == again
    await _shown(ws, LOG, text + "once")
    await heavy.settle(ws)


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("damage", ["flip", "cut", "lose"])
async def test_damage_in_any_part_is_found_by_every_way_to_read_it(
    heavy: Heavy, forget: Callable[[], None], part: int, damage: str
) -> None:
    ws = heavy.open()
    await _in_parts(ws)
    ref = (await heavy.refs(LOG))[part]
    if damage == "flip":
        heavy.assets.flip(ref, 5)
    elif damage == "cut":
        heavy.assets.cut(ref)
    else:
        await heavy.assets.delete(ref)
    forget()
    wanted = ErrorCode.ASSET_MISSING if damage == "lose" else ErrorCode.RECORD_CORRUPT

    async def stream() -> None:
        async for _ in ws.stream(LOG):
            pass

    for read in (
        lambda: ws.read(LOG),
        lambda: ws.read(LOG, start_line=part + 1, end_line=part + 1),
        lambda: ws.read_text(LOG),
        lambda: ws.read_bytes(LOG),
        lambda: ws.read_many([LOG]),
        stream,
        lambda: ws.diff(LOG, from_version=3, to_version=4),
        lambda: ws.grep("nowhere"),
        lambda: ws.append(LOG, "x"),
        lambda: ws.edit(LOG, "part", "p", occurrence=1),
        lambda: ws.copy(LOG, "/workspace/n", to_namespace="other"),
    ):
        with pytest.raises(WorkspaceError) as caught:
            await read()
        assert caught.value.code == wanted
    await heavy.check()
