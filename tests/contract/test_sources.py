"""The source kit on every source that ships, and on the double."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest

from crux_workspace import workspace
from crux_workspace.mounts import (
    FolderSource,
    GitSource,
    HttpJsonSource,
    RetrieverHit,
    RetrieverSource,
    WorkspaceSource,
)
from crux_workspace.storage import memory_storage
from crux_workspace.testing import MemorySource, MountSourceContract

FILES: dict[str, Any] = {
    "a.md": "# Title\r\n\nPlain words, ä and 😀 at the end\n",
    "empty.txt": "",
    "notes/deep/b.md": "no final newline but Words",
    "notes/c.txt": "one\ntwo\nthree\n" * 200,
    "notes/d.bin": bytes(range(256)) * 10,
}


def written(folder: Path) -> Path:
    for name, held in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(held if isinstance(held, bytes) else held.encode())
    return folder


class TestMemorySource(MountSourceContract):
    files: ClassVar[dict[str, Any]] = {**FILES, "e.json": {"k": [1, None, "ü"]}}

    @pytest.fixture
    def source(self) -> MemorySource:
        return MemorySource(self.files)


class TestFolderSource(MountSourceContract):
    files: ClassVar[dict[str, Any]] = FILES

    @pytest.fixture
    def source(self, tmp_path: Path) -> FolderSource:
        return FolderSource(written(tmp_path))


class TestGitSource(MountSourceContract):
    files: ClassVar[dict[str, Any]] = FILES

    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[GitSource]:
        from dulwich import porcelain

        written(tmp_path)
        repository = porcelain.init(tmp_path)
        porcelain.add(repository, [str(tmp_path / name) for name in FILES])
        porcelain.commit(repository, message=b"one", author=b"a <a@b>", committer=b"a <a@b>")
        repository.close()
        source = GitSource(tmp_path)
        yield source
        source.close()


class TestWorkspaceSource(MountSourceContract):
    files: ClassVar[dict[str, Any]] = {**FILES, "e.json": {"k": [1, None, "ü"]}}
    mount_path = "/other/mount"

    @pytest.fixture
    async def source(self) -> AsyncIterator[WorkspaceSource]:
        inner = workspace(id="inner", namespace="n", storage=memory_storage())
        for name, held in self.files.items():
            await inner.write(f"/workspace/kept/{name}", held)
        yield WorkspaceSource(inner, "/workspace/kept")
        await inner.aclose()


class TestHttpJsonSource(MountSourceContract):
    files: ClassVar[dict[str, Any]] = {
        "1.json": {"id": 1, "title": "First words", "tags": ["a"]},
        "b-2.json": {"id": "b-2", "n": None},
        "~2Fodd~20~7E.json": {"id": "/odd ~"},
        "z.json": {"id": "z"},
    }

    @pytest.fixture
    async def source(self) -> AsyncIterator[HttpJsonSource]:
        items = {str(item["id"]): item for item in self.files.values()}

        def answer(request: httpx.Request) -> httpx.Response:
            assert request.headers["authorization"] == "secret"
            path = request.url.path
            if path == "/api/items":
                page = int(request.url.params.get("page", "0"))
                found = list(items.values())[page * 2 : page * 2 + 2]
                more = f"/api/items?page={page + 1}" if page == 0 else None
                return httpx.Response(200, json={"items": found, "next": more})
            item = items.get(path.removeprefix("/api/items/"))
            if item is None:
                return httpx.Response(404)
            return httpx.Response(200, json=item, headers={"ETag": '"v1"'})

        async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
            yield HttpJsonSource(
                "https://api.test/api/items", headers={"Authorization": "secret"}, client=client
            )


class TestRetrieverSource(MountSourceContract):
    files: ClassVar[dict[str, Any]] = {
        "guide.md": "First part of the Guide.\n\nSecond part.",
        "tides/3.md": "The Moon causes tides.",
    }

    @pytest.fixture(params=["sync", "async"])
    def source(self, request: pytest.FixtureRequest) -> RetrieverSource:
        hits = [
            RetrieverHit("guide", "2", "Second part.", 0.9, source_path="guide.md", position=20),
            RetrieverHit("tides", "3", "The Moon causes tides.", 0.8),
            RetrieverHit("guide", "1", "First part of the Guide.", 0.7, None, "/guide.md", None, 0),
        ]

        class Sync:
            def retrieve(self, query: str, *, limit: int | None = None) -> list[RetrieverHit]:
                return hits

        class Async:
            async def retrieve(self, query: str, *, limit: int | None = None) -> list[RetrieverHit]:
                await asyncio.sleep(0)
                return hits

        return RetrieverSource(Sync() if request.param == "sync" else Async(), query="everything")


def test_the_git_source_shows_a_revision_whatever_the_work_tree_holds(tmp_path: Path) -> None:
    from crux_workspace.model.sources import MountReadOptions

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
        return subprocess.run(
            [*command, *arguments], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "--quiet")
    for text in ("one", "two"):
        (tmp_path / "a.md").write_text(text)
        git("add", "a.md")
        git("commit", "--quiet", "-m", text)
    (tmp_path / "a.md").write_text("three")
    options = MountReadOptions(mount_path="/code")
    for revision, text in (("HEAD", "two"), ("HEAD~1", "one"), (git("rev-parse", "HEAD~1"), "one")):
        source = GitSource(tmp_path, revision)
        content = source.read("/code/a.md", options)
        source.close()
        assert content is not None
        assert content.to_dict()["content"] == text
        assert content.metadata == {"revision": source.revision}
