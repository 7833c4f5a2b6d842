"""The kit of filesystem backends on every backend there is, wrapped and bare, and on broken ones that it must reject."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import workspace
from crux_workspace.agent import (
    FilesystemBackend,
    FsContext,
    compose,
    local_filesystem,
    with_filesystem_logging,
    workspace_filesystem,
)
from crux_workspace.errors import PathNotFoundError
from crux_workspace.testing import FilesystemBackendContract
from crux_workspace.testing.checks import Fresh
from crux_workspace.testing.filesystems import FILESYSTEM_CHECKS


class TestLocal(FilesystemBackendContract):
    @pytest.fixture
    async def backend(self, tmp_path: Path) -> FilesystemBackend:
        return local_filesystem(tmp_path)


class TestLocalThroughALink(FilesystemBackendContract):
    """The root itself is a link."""

    @pytest.fixture
    async def backend(self, tmp_path: Path) -> FilesystemBackend:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "real")
        return local_filesystem(tmp_path / "link")


class TestWorkspace(FilesystemBackendContract):
    @pytest.fixture
    async def backend(self) -> AsyncIterator[FilesystemBackend]:
        async with workspace(id="w", namespace="n") as ws:
            yield workspace_filesystem(ws)


class TestLogged(FilesystemBackendContract):
    @pytest.fixture
    async def backend(self, tmp_path: Path) -> FilesystemBackend:
        logged = with_filesystem_logging(lambda _: None)
        return compose(logged, logged)(local_filesystem(tmp_path))


class Plain:
    """The least that is a backend."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.inner = local_filesystem(root)

    async def read_file(self, path: str, ctx: FsContext, *, max_bytes: int | None = None) -> str:
        return await self.inner.read_file(path, ctx, max_bytes=max_bytes)

    async def write_file(self, path: str, content: str, ctx: FsContext) -> int:
        return await self.inner.write_file(path, content, ctx)

    async def list_dir(self, path: str, ctx: FsContext) -> list[str]:
        return await self.inner.list_dir(path, ctx)

    async def real_path(self, path: str, ctx: FsContext) -> str:
        return await self.inner.real_path(path, ctx)


class TestPlain(FilesystemBackendContract):
    @pytest.fixture
    async def backend(self, tmp_path: Path) -> FilesystemBackend:
        return Plain(str(tmp_path))


class CountsCharacters(Plain):
    async def write_file(self, path: str, content: str, ctx: FsContext) -> int:
        await super().write_file(path, content, ctx)
        return len(content)


class CutsOff(Plain):
    async def read_file(self, path: str, ctx: FsContext, *, max_bytes: int | None = None) -> str:
        text = await super().read_file(path, ctx)
        return text if max_bytes is None else text[: int(min(max_bytes, 1 << 30))]


class Appends(Plain):
    async def write_file(self, path: str, content: str, ctx: FsContext) -> int:
        try:
            before = await self.read_file(path, ctx)
        except PathNotFoundError:
            before = ""
        await super().write_file(path, before + content, ctx)
        return len(content.encode())


class ChangesLineEnds(Plain):
    async def read_file(self, path: str, ctx: FsContext, *, max_bytes: int | None = None) -> str:
        return (await super().read_file(path, ctx, max_bytes=max_bytes)).replace("\r\n", "\n")


class FindsEverything(Plain):
    async def list_dir(self, path: str, ctx: FsContext) -> list[str]:
        try:
            return await super().list_dir(path, ctx)
        except PathNotFoundError:
            return []


class ListsPaths(Plain):
    async def list_dir(self, path: str, ctx: FsContext) -> list[str]:
        return [f"{path}/{name}" for name in await super().list_dir(path, ctx)]


class KeepsDots(Plain):
    async def real_path(self, path: str, ctx: FsContext) -> str:
        return path


class ReplacesBlindly(Plain):
    async def replace(self, path: str, old: bytes, new: bytes, ctx: FsContext) -> int:
        del old
        return await self.write_file(path, new.decode(), ctx)


class WalksALittle(Plain):
    async def walk_tree(
        self, path: str, ctx: FsContext, *, max_entries: int, prune: Sequence[str] = ()
    ) -> list[Any]:
        return (await self.inner.walk_tree(path, ctx, max_entries=10**6, prune=prune))[:max_entries]


class ReadsLinesFromZero(Plain):
    async def read_lines(
        self,
        path: str,
        first: int,
        last: int | None,
        ctx: FsContext,
        *,
        max_bytes: int | None = None,
    ) -> Any:
        return await self.inner.read_lines(path, first + 1, last, ctx, max_bytes=max_bytes)


@pytest.mark.parametrize(
    ("kind", "check"),
    [
        (CountsCharacters, "F-010"),
        (Appends, "F-011"),
        (ChangesLineEnds, "F-012"),
        (CutsOff, "F-013"),
        (FindsEverything, "F-014"),
        (ListsPaths, "F-015"),
        (KeepsDots, "F-016"),
        (ReadsLinesFromZero, "F-021"),
        (ReplacesBlindly, "F-022"),
        (WalksALittle, "F-024"),
    ],
)
async def test_the_kit_rejects_a_broken_backend(
    kind: type[Plain], check: str, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError):
        await FILESYSTEM_CHECKS[check].run(kind(str(tmp_path)), Fresh())
