"""The conformance kit of filesystem backends, as a pytest mixin.

Example::

    class TestMyBackend(FilesystemBackendContract):
        @pytest.fixture
        async def backend(self, tmp_path):
            yield MyBackend(str(tmp_path))
"""

from __future__ import annotations

from typing import Any

import pytest

from crux_workspace.agent.files.contract import FilesystemBackend, FsContext, method_of
from crux_workspace.errors import (
    ConflictError,
    LimitExceededError,
    PathNotFoundError,
    WorkspaceError,
)
from crux_workspace.testing.checks import (
    Check,
    Checks,
    Fresh,
    Hooks,
    NotApplicable,
    holds,
    raises,
    same,
)

__all__ = ["FILESYSTEM_CHECKS", "FilesystemBackendContract"]

FILESYSTEM_CHECKS: Checks[FilesystemBackend] = Checks()
_Fresh = Fresh[FilesystemBackend]


def _at(backend: FilesystemBackend, fresh: _Fresh, name: str) -> tuple[str, FsContext]:
    return f"{backend.root.rstrip('/')}/{fresh.name('t')}/{name}", FsContext(backend.root)


def _needs(backend: FilesystemBackend, name: str) -> Any:  # noqa: ANN401 - a method
    found = method_of(backend, name)
    if found is None:
        raise NotApplicable(f"{name} is not declared")
    return found


@FILESYSTEM_CHECKS.add()
async def check_write_makes_folders_and_counts_bytes(
    backend: FilesystemBackend, fresh: _Fresh
) -> None:
    """F-010: a write makes missing folders and returns UTF-8 bytes, not characters."""
    path, ctx = _at(backend, fresh, "a/b/c.txt")
    same(await backend.write_file(path, "é日\U0001f600", ctx), 9, "bytes")
    same(await backend.read_file(path, ctx), "é日\U0001f600", "text")


@FILESYSTEM_CHECKS.add()
async def check_write_replaces_the_whole_file(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-011: a write replaces all that was there; an empty text is a text."""
    path, ctx = _at(backend, fresh, "a.txt")
    await backend.write_file(path, "a longer text", ctx)
    await backend.write_file(path, "", ctx)
    same(await backend.read_file(path, ctx), "", "text")


@FILESYSTEM_CHECKS.add()
async def check_text_comes_back_as_it_was(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-012: line ends, a byte order mark and a missing final line end come back."""
    path, ctx = _at(backend, fresh, "a.txt")
    for text in ("\ufeffa\r\nb\rc\n", "no end", "\n\n", "tab\tend "):
        await backend.write_file(path, text, ctx)
        same(await backend.read_file(path, ctx), text, "text")


@FILESYSTEM_CHECKS.add()
async def check_the_cap_is_exact(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-013: a file of exactly the cap is read, one byte more is refused whole, infinity lifts the cap."""
    path, ctx = _at(backend, fresh, "a.txt")
    await backend.write_file(path, "12345", ctx)
    same(await backend.read_file(path, ctx, max_bytes=5), "12345", "text")
    async with raises(LimitExceededError, "backend.read_file"):
        await backend.read_file(path, ctx, max_bytes=4)
    same(await backend.read_file(path, ctx, max_bytes=float("inf")), "12345", "text")  # type: ignore[arg-type]


@FILESYSTEM_CHECKS.add()
async def check_what_is_missing_is_not_found(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-014: reading or listing what is not there is FILE_NOT_FOUND, and FileNotFoundError."""
    path, ctx = _at(backend, fresh, "missing.txt")
    async with raises(PathNotFoundError, "backend.read_file"):
        await backend.read_file(path, ctx)
    async with raises(PathNotFoundError, "backend.list_dir"):
        await backend.list_dir(path, ctx)


@FILESYSTEM_CHECKS.add()
async def check_listing_gives_names(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-015: a listing has the names of files and folders, without their folder, each once."""
    path, ctx = _at(backend, fresh, "one.txt")
    folder = path.rpartition("/")[0]
    await backend.write_file(path, "1", ctx)
    await backend.write_file(f"{folder}/sub/two.txt", "2", ctx)
    await backend.write_file(f"{folder}/.hidden", "3", ctx)
    same(sorted(await backend.list_dir(folder, ctx)), [".hidden", "one.txt", "sub"], "names")


@FILESYSTEM_CHECKS.add()
async def check_real_path_folds_and_works_for_what_is_missing(
    backend: FilesystemBackend, fresh: _Fresh
) -> None:
    """F-016: real_path folds dots, is a fixed point, and works for paths that do not exist (yet)."""
    path, ctx = _at(backend, fresh, "new/file.txt")
    real = await backend.real_path(path, ctx)
    same(await backend.real_path(real, ctx), real, "fixed point")
    await backend.write_file(path, "x", ctx)
    same(await backend.real_path(path, ctx), real, "the same once it exists")
    folder, _, name = path.rpartition("/")
    same(await backend.real_path(f"{folder}/./{name}", ctx), real, "dot")
    same(await backend.real_path(f"{folder}/../new/{name}", ctx), real, "two dots")


@FILESYSTEM_CHECKS.add()
async def check_binary_reads(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-020: read_binary_file gives the bytes, under the same cap."""
    read = _needs(backend, "read_binary_file")
    path, ctx = _at(backend, fresh, "a.bin")
    await backend.write_file(path, "é", ctx)
    same(await read(path, ctx), b"\xc3\xa9", "bytes")
    async with raises(LimitExceededError, "read"):
        await read(path, ctx, max_bytes=1)


@FILESYSTEM_CHECKS.add()
async def check_line_windows(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-021: read_lines counts lines from 1, clamps the end, and lets a large file through when the window fits."""
    lines = _needs(backend, "read_lines")
    path, ctx = _at(backend, fresh, "a.txt")
    await backend.write_file(path, "".join(f"line {n}\n" for n in range(1, 1001)), ctx)
    window = await lines(path, 999, 2000, ctx, max_bytes=100)
    same(
        (window.text, window.first, window.last, window.total),
        ("line 999\nline 1000", 999, 1000, 1000),
        "window",
    )
    async with raises(LimitExceededError, "lines"):
        await lines(path, 1, 1000, ctx, max_bytes=100)
    same((await lines(path, 2, 2, ctx, max_bytes=100)).text, "line 2", "one line")


@FILESYSTEM_CHECKS.add()
async def check_replace_compares(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-022: replace writes only when the content is still the old one."""
    replace = _needs(backend, "replace")
    path, ctx = _at(backend, fresh, "a.txt")
    await backend.write_file(path, "one", ctx)
    async with raises(ConflictError, "replace"):
        await replace(path, b"other", b"two", ctx)
    same(await backend.read_file(path, ctx), "one", "text")
    await replace(path, b"one", b"two", ctx)
    same(await backend.read_file(path, ctx), "two", "text")


@FILESYSTEM_CHECKS.add()
async def check_stat_and_remove(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-023: stat_file tells size and time, remove_file removes, and a missing file is fine to remove."""
    tell, remove = _needs(backend, "stat_file"), _needs(backend, "remove_file")
    path, ctx = _at(backend, fresh, "a.txt")
    await backend.write_file(path, "é", ctx)
    told = await tell(path, ctx)
    same((told.kind, told.size), ("file", 2), "stat")
    holds(told.mtime_ms is not None, "there is a time")
    await remove(path, ctx)
    await remove(path, ctx)
    async with raises(PathNotFoundError, "backend.read_file"):
        await backend.read_file(path, ctx)


@FILESYSTEM_CHECKS.add()
async def check_walk_tree_never_cuts_off(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-024: walk_tree has every entry by relative path, prunes, and raises rather than cutting off."""
    walk = _needs(backend, "walk_tree")
    path, ctx = _at(backend, fresh, "a.txt")
    folder = path.rpartition("/")[0]
    for name in ("a.txt", "sub/b.txt", "sub/deep/c.txt"):
        await backend.write_file(f"{folder}/{name}", name, ctx)
    entries = {entry.path: entry.kind for entry in await walk(folder, ctx, max_entries=100)}
    wanted = {
        "a.txt": "file",
        "sub": "directory",
        "sub/b.txt": "file",
        "sub/deep": "directory",
        "sub/deep/c.txt": "file",
    }
    same(entries, wanted, "entries")
    pruned = {entry.path for entry in await walk(folder, ctx, max_entries=100, prune=["sub"])}
    same(pruned, {"a.txt", "sub"}, "pruned")
    async with raises(LimitExceededError, "walk"):
        await walk(folder, ctx, max_entries=2)


@FILESYSTEM_CHECKS.add()
async def check_a_pin_holds_what_was_found(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-030: a pin tells where the object is and which version; its base changes with the content."""
    pin = _needs(backend, "pin")
    path, ctx = _at(backend, fresh, "a.txt")
    held = await pin(path, ctx)
    same(held.base, None, "nothing there yet")
    await backend.write_file(held.path, "one", ctx.pinned(held))
    held.close()
    first = await pin(path, ctx)
    same(first.path, await backend.real_path(path, ctx), "path")
    same(await backend.read_file(first.path, ctx.pinned(first)), "one", "text")
    first.close()
    first.close()
    await backend.write_file(path, "other", ctx)
    second = await pin(path, ctx)
    holds(first.base != second.base, "another content, another base")
    second.close()


@FILESYSTEM_CHECKS.add()
async def check_failures_are_typed(backend: FilesystemBackend, fresh: _Fresh) -> None:
    """F-031: a file where a folder is needed, and a folder where a file is needed, are typed errors."""
    path, ctx = _at(backend, fresh, "a.txt")
    await backend.write_file(path, "x", ctx)
    async with raises(WorkspaceError, "backend.write_file"):
        await backend.write_file(f"{path}/below.txt", "x", ctx)
    async with raises(WorkspaceError, "backend.read_file"):
        await backend.read_file(path.rpartition("/")[0], ctx)
    async with raises(WorkspaceError, "backend.write_file"):
        await backend.write_file(path.rpartition("/")[0], "x", ctx)


class FilesystemBackendContract:
    """Runs every check of `FILESYSTEM_CHECKS` on the fixture `backend`; each works in a fresh folder below its root."""

    @pytest.mark.asyncio
    @pytest.mark.parametrize("check", list(FILESYSTEM_CHECKS), ids=lambda check: check.id)
    async def test_check(self, check: Check[FilesystemBackend], backend: FilesystemBackend) -> None:
        """Hold the backend to one promise."""
        try:
            await check.run(backend, Fresh(Hooks()))
        except NotApplicable as exc:
            pytest.skip(f"{check.id}: {exc}")
