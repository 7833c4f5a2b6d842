"""Whatever happens to one version, its neighbours stay what they were."""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace import Limits, Versioning, Workspace, local_runtime
from crux_workspace.engine.compression import GROUP
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.testing.workspace import refused
from tests.histories.conftest import FILE, House
from tests.support.long_texts import long_text

OTHER = "/workspace/other.md"


async def _write(ws: Workspace, first: int, last: int, path: str = FILE) -> None:
    for number in range(first, last + 1):
        await ws.write(path, long_text(number))


async def _kept(ws: Workspace, path: str = FILE) -> dict[int, str]:
    """Return the text of each version that history shows."""
    return {
        entry.version: await ws.read_text(path, version=entry.version)
        for entry in await ws.history(path)
        if entry.operation != "delete"
    }


def _texts(*versions: int) -> dict[int, str]:
    return {version: long_text(version) for version in versions}


def _few(most: int) -> dict[str, Any]:
    return {"versioning": Versioning(max_versions=most)}


LITTLE = {"limits": Limits(max_history_bytes=9_000)}


@pytest.mark.parametrize("options", [_few(2), _few(1), LITTLE], ids=["two", "one", "bytes"])
@pytest.mark.parametrize("by", ["write", "gc"])
async def test_a_pinned_difference_survives_the_version_that_it_is_one_from(
    house: House, options: dict[str, Any], by: str
) -> None:
    ws = house.make()
    await _write(ws, 1, 12)
    assert (await house.encodings())[3] == "d"
    await ws.finalize(FILE, version=3)
    small = house.make(**options)
    if by == "gc":
        await small.gc(dry_run=False)
    await _write(small, 13, 16)
    kept = await _kept(ws)
    assert kept[3] == long_text(3)
    assert 4 not in kept
    assert kept == _texts(*kept)
    assert (await house.encodings())[3] is None, "it was made whole when its base went"
    [artifact] = await ws.artifacts()
    assert await ws.resolve(artifact.uri) == long_text(3).encode()
    await house.check()
    await small.withdraw(FILE)
    with refused(ErrorCode.VERSION_EXPIRED):
        await ws.read(FILE, version=3)
    await house.check()


async def test_a_pinned_difference_may_be_one_from_a_version_further_up(house: House) -> None:
    ws = house.make()
    await _write(ws, 1, 3)
    await ws.write(FILE, b"binary content goes to the asset store")
    await ws.delete(FILE)
    await _write(ws, 6, 12)
    assert (await house.states())[3].state.base == (6, 6)
    await ws.finalize(FILE, version=3)
    await _write(house.make(**_few(3)), 13, 14)
    assert await _kept(ws) == _texts(3, 12, 13, 14)
    await house.check()


async def test_a_pin_far_below_what_is_collected_costs_nothing_more(house: House) -> None:
    ws = house.make(**_few(3))
    await _write(ws, 1, 2)
    await ws.finalize(FILE, version=1)
    await _write(ws, 3, GROUP + 6)
    for number in (GROUP + 7, GROUP + 8):
        house.records.reset()
        await ws.write(FILE, long_text(number))
        assert house.records.reads == 3, "the head, what is collected, the published version"
    assert await ws.read_text(FILE, version=1) == long_text(1)


async def test_a_version_that_is_pinned_when_its_turn_comes_stays_as_it_is(house: House) -> None:
    ws = house.make()
    await _write(ws, 1, 4)
    await ws.finalize(FILE, version=3)
    await _write(ws, 5, 9)
    assert (await house.encodings())[3] is None
    await ws.gc(dry_run=False)
    assert (await house.encodings())[3] is None
    await ws.withdraw(FILE)
    await ws.gc(dry_run=False)
    assert (await house.encodings())[3] == "d"
    assert await _kept(ws) == _texts(*range(1, 10))


async def test_collection_leaves_every_version_that_stays(house: House) -> None:
    ws = house.make(**_few(10))
    for number in range(1, 3 * GROUP):
        await ws.write(FILE, long_text(number))
        if number % 7 == 0:
            kept = await _kept(ws)
            assert kept == _texts(*range(max(1, number - 9), number + 1))
            await house.check()
    await house.make(**_few(4)).gc(dry_run=False)
    assert await _kept(ws) == _texts(*range(3 * GROUP - 4, 3 * GROUP))
    await house.check()


async def test_names_change_and_the_history_does_not(house: House) -> None:
    ws, path = house.make(), FILE
    for number in range(1, 40):
        await ws.write(path, long_text(number))
        if number % 3 == 0:
            await ws.rename(path, f"/workspace/h{number}.md")
            path = f"/workspace/h{number}.md"
    assert await _kept(ws, path) == _texts(*range(1, 40))
    await ws.write(OTHER, "short")
    await ws.rename(OTHER, path, overwrite=True)
    before = (await ws.log(limit=1))[0].sequence - 1
    assert await ws.at(before).read_text(path) == long_text(39)
    await ws.undo_commit((await ws.log(limit=1))[0])
    assert (await _kept(ws, path)).items() >= _texts(*range(1, 40)).items()
    await house.check()


async def test_every_past_tree_shows_what_it_showed(house: House) -> None:
    ws = house.make()
    for number in range(1, 30):
        await ws.write(FILE, long_text(number))
        if number % 4 == 0:
            await ws.set(FILE, metadata={"n": number})
    await ws.gc(dry_run=False)
    for entry in await ws.log(limit=1_000):
        if entry.verb == "gc":
            continue
        [change] = entry.changes
        view = ws.at(entry.sequence)
        assert change.version is not None
        assert await view.read_text(FILE) == long_text(change.version)
        found = await view.grep(f"changed by version {change.version}")
        assert [match.path for match in found.matches] == [FILE]


async def test_deletion_and_what_brings_a_file_back(house: House) -> None:
    ws = house.make()
    await _write(ws, 1, 12)
    await ws.delete(FILE)
    await ws.gc(dry_run=False)
    assert set((await house.encodings()).values()) == {"d", "z"}
    assert await _kept(ws) == _texts(*range(1, 13))
    assert (await ws.undo(FILE)).version == 14
    assert await ws.read_text(FILE) == long_text(12)
    assert (await ws.undo(FILE, to_version=2)).version == 15
    assert await ws.read_text(FILE) == long_text(2)
    await ws.delete(FILE)
    await ws.undo_commit((await ws.log(limit=1))[0])
    assert await ws.read_text(FILE) == long_text(2)
    assert (await _kept(ws)).items() >= _texts(*range(1, 13)).items()
    await house.check()


async def test_undo_and_redo_walk_through_differences(house: House) -> None:
    ws = house.make()
    await _write(ws, 1, 20)
    await ws.gc(dry_run=False)
    for expected in range(19, 0, -1):
        await ws.undo(FILE)
        assert await ws.read_text(FILE) == long_text(expected)
    for expected in range(2, 20):
        await ws.redo(FILE)
        assert await ws.read_text(FILE) == long_text(expected)
    await house.check()


async def test_a_transaction_of_many_turns_is_one_commit(house: House) -> None:
    ws = house.make()
    paths = [f"/workspace/t{number}.md" for number in range(12)]
    for path in paths:
        await _write(ws, 1, 8, path)
    before = (await ws.log(limit=1))[0].sequence
    async with ws.transaction() as tx:
        for path in paths:
            assert await tx.read_text(path, version=2) == long_text(2)
            await tx.write(path, long_text(9))
    assert tx.committed is not None
    assert tx.committed.sequence == before + 1
    for path in paths:
        assert await _kept(ws, path) == _texts(*range(1, 10))
    await house.check()


async def test_a_published_version_of_a_transaction_is_part_of_the_history(house: House) -> None:
    ws = house.make()
    for number in range(1, 30, 2):
        async with ws.transaction() as tx:
            await tx.write(FILE, long_text(number))
            await tx.finalize(FILE)
            await tx.write(FILE, long_text(number + 1))
    await ws.withdraw(FILE)
    await ws.gc(dry_run=False)
    assert await _kept(ws) == _texts(*range(1, 31))
    await house.check()


async def test_other_kinds_of_content_interrupt_a_chain(house: House) -> None:
    ws = house.make()
    contents: dict[int, Any] = {}
    for number in range(1, 50):
        content: Any = long_text(number)
        if number % 5 == 0:
            content = "short"
        elif number % 7 == 0:
            content = b"\x00" * 5_000
        elif number % 11 == 0:
            content = {"text": long_text(number), "n": number}
        contents[number] = content
        await ws.write(FILE, content)
    await ws.gc(dry_run=False)
    for number, content in contents.items():
        if isinstance(content, bytes):
            assert await ws.read_bytes(FILE, version=number) == content
        elif isinstance(content, dict):
            assert await ws.read_json(FILE, version=number) == content
        else:
            assert await ws.read_text(FILE, version=number) == content
    await house.check()


async def test_a_purge_leaves_nothing_of_a_chain(house: House) -> None:
    ws = house.make()
    await _write(ws, 1, 2 * GROUP + 9)
    await _write(ws, 1, 9, OTHER)
    await ws.delete(FILE, purge=True)
    assert await ws.history(FILE) == []
    assert len(await house.states()) == 8, "those of the other file"
    assert await _kept(ws, OTHER) == _texts(*range(1, 10))
    await house.check()


async def test_a_raw_history_is_read_and_written_smaller_by_gc(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("crux_workspace.engine.build.is_turn", lambda _: False)
        await _write(house.make(), 1, 2 * GROUP + 3)
    assert set((await house.encodings()).values()) == {None}
    ws = house.make()
    assert await _kept(ws) == _texts(*range(1, 2 * GROUP + 4))
    before = await house.states()
    await ws.gc(dry_run=True)
    assert await house.states() == before
    await ws.gc(dry_run=False)
    found = await house.encodings()
    newest = found.pop(2 * GROUP + 2)
    assert newest is None, "the newest ended version waits for its successor to end"
    assert set(found.values()) == {"d", "z"}
    assert [version for version, encoding in found.items() if encoding == "z"] == [GROUP, 2 * GROUP]
    assert await _kept(ws) == _texts(*range(1, 2 * GROUP + 4))
    log = len(await ws.log(limit=1_000))
    await ws.gc(dry_run=False)
    assert len(await ws.log(limit=1_000)) == log, "nothing is left to do"
    await house.check()


async def test_gc_is_no_change_that_anyone_sees(house: House) -> None:
    ws = house.make(runtime=local_runtime())
    await _write(ws, 1, 6)
    history, stat = await ws.history(FILE), await ws.stat(FILE)
    times = {n: (s.until, s.version_at, s.created_at) for n, s in (await house.states()).items()}
    cursor = await ws.cursor()
    await ws.gc(dry_run=False)
    assert set((await house.encodings()).values()) == {"d", None}
    assert (await ws.history(FILE), await ws.stat(FILE)) == (history, stat)
    after = {n: (s.until, s.version_at, s.created_at) for n, s in (await house.states()).items()}
    assert after == times
    await ws.write(OTHER, "next")
    async with ws.watch(cursor=cursor) as feed:
        event = await anext(feed)
        assert event.path == OTHER


async def test_a_refused_write_at_a_turn_changes_nothing(house: House) -> None:
    ws = house.make()
    await _write(ws, 1, 8)
    before = await house.states()
    with refused(ErrorCode.VERSION_CONFLICT):
        await ws.write(FILE, long_text(9), if_version=3)
    small = house.make(limits=Limits(max_namespace_bytes=5_000))
    with pytest.raises(WorkspaceError):
        await small.write(FILE, long_text(9, size=9_000))
    assert await house.states() == before
    await ws.write(FILE, long_text(9))
    assert (await house.encodings())[1] == "d"
