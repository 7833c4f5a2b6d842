"""A directory is copied to another namespace as it was at one commit, whatever happens to it meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from crux_workspace import Versioning, Workspace
from crux_workspace.errors import ConflictError, ErrorCode
from crux_workspace.storage import PutOptions, StoredAsset
from tests.heavy.conftest import Heavy, MeasuringAssetStore

FILES = 300


class _Interfering(MeasuringAssetStore):
    """Lets somebody change the source at the first upload."""

    ws: Workspace | None = None
    done = False

    async def put(self, data: bytes | AsyncIterator[bytes], options: PutOptions) -> StoredAsset:
        if self.ws is not None and not self.done:
            self.done = True
            await change_all(self.ws)
        return await super().put(data, options)


async def change_all(ws: Workspace) -> None:
    """Write both generations of a pair anew."""
    async with ws.transaction() as tx:
        for number in range(FILES):
            await tx.write(f"/workspace/d/{number:04d}", "new")
        await tx.write("/workspace/d/large", "new and large\n" * 10)


async def test_a_directory_is_copied_as_of_one_commit(heavy: Heavy) -> None:
    ws = heavy.open()
    async with ws.transaction() as tx:
        for number in range(FILES):
            await tx.write(f"/workspace/d/{number:04d}", "old")
        await tx.write("/workspace/d/large", "old and large\n" * 10)
    interfering = _Interfering(heavy.assets.inner)
    copying = heavy.open(assets=interfering)
    interfering.ws = ws
    await copying.copy("/workspace/d", "/workspace/e", to_namespace="other")
    assert interfering.done
    other = heavy.open(namespace="other")
    texts = {await other.read_text(f"/workspace/e/{n:04d}") for n in range(FILES)}
    assert texts == {"old"}
    assert await other.read_text("/workspace/e/large") == "old and large\n" * 10


async def test_pages_of_two_commits_do_not_mix(heavy: Heavy) -> None:
    ws = heavy.open()
    async with ws.transaction() as tx:
        for number in range(FILES):
            await tx.write(f"/workspace/d/{number:04d}", "old")
    scans = 0
    scan = heavy.records.scan

    async def interfered(*arguments: object, **options: object) -> object:
        nonlocal scans
        scans += 1
        if scans == 3:
            await change_all(heavy.open())
        return await scan(*arguments, **options)  # type: ignore[arg-type]

    heavy.records.scan = interfered  # type: ignore[method-assign, assignment]
    await ws.copy("/workspace/d", "/workspace/e", to_namespace="other")
    assert scans >= 3
    heavy.records.scan = scan  # type: ignore[method-assign]
    other = heavy.open(namespace="other")
    texts = {await other.read_text(f"/workspace/e/{n:04d}") for n in range(FILES)}
    assert texts == {"old"}


async def test_a_source_that_is_collected_as_fast_as_it_is_read_is_a_conflict(
    heavy: Heavy,
) -> None:
    ws = heavy.open(versioning=Versioning(max_versions=1))
    async with ws.transaction() as tx:
        for number in range(FILES):
            await tx.write(f"/workspace/d/{number:04d}", "old")
    scan = heavy.records.scan
    busy = False

    async def interfered(*arguments: object, **options: object) -> object:
        nonlocal busy
        if not busy and options.get("bodies"):
            busy = True
            await ws.write(f"/workspace/d/{FILES - 1:04d}", "again")
            busy = False
        return await scan(*arguments, **options)  # type: ignore[arg-type]

    heavy.records.scan = interfered  # type: ignore[method-assign, assignment]
    with pytest.raises(ConflictError) as caught:
        await ws.copy("/workspace/d", "/workspace/e", to_namespace="other")
    assert caught.value.code == ErrorCode.VERSION_CONFLICT
    heavy.records.scan = scan  # type: ignore[method-assign]
    await ws.copy("/workspace/d", "/workspace/e", to_namespace="other")
    assert len((await heavy.open(namespace="other").list("/workspace/e")).entries) == FILES
