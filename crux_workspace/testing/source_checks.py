"""The checks of the mount source contract; `SOURCE_CHECKS` holds them all."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from crux_workspace.errors import StorageError
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import WorkspaceEntry, WorkspaceFile
from crux_workspace.model.jsontext import dump_compact
from crux_workspace.model.paths import is_below, parent
from crux_workspace.model.settings import Mount
from crux_workspace.model.sources import (
    SOURCE_HOOKS,
    MountGrepOptions,
    MountListOptions,
    MountPathOptions,
    MountReadOptions,
    MountSource,
    MountWriteOptions,
)
from crux_workspace.mounts.calling import Caller
from crux_workspace.mounts.checking import Checker
from crux_workspace.testing.checks import Checks, Fresh, NotApplicable, holds, same

__all__ = ["SOURCE_CHECKS", "SourceBench"]

Held: TypeAlias = Any
"""``str`` for text, ``bytes`` for binary, any other JSON value."""

_MISSING = "no-such-directory/no such file.md"


@dataclass(slots=True)
class SourceBench:
    """A source and what it is known to hold."""

    source: MountSource
    files: Mapping[str, Held]
    """By path below the mount."""
    mount_path: str = "/sources"

    @property
    def declared(self) -> dict[str, bool]:
        """Which hooks the source has."""
        return {hook: callable(getattr(self.source, hook, None)) for hook in SOURCE_HOOKS}

    @property
    def check(self) -> Checker:
        """Judge results as a workspace does."""
        return Checker(self._mount, lambda _: True)

    @property
    def _mount(self) -> Mount:
        return Mount(self.mount_path, "readwrite", None, self.source, 10_000)

    def at(self, name: str) -> str:
        """Return the path of a file by its path below the mount."""
        return f"{self.mount_path}/{name}"

    @property
    def here(self) -> MountPathOptions:
        """Options of the hooks that take only a path."""
        return MountPathOptions(mount_path=self.mount_path)

    async def aclose(self) -> None:
        """Close the source, if it can be closed."""
        close = getattr(self.source, "aclose", None) or getattr(self.source, "close", None)
        if callable(close):
            closing = close()
            if inspect.isawaitable(closing):
                await closing

    async def call(self, hook: str, *args: object) -> Any:  # noqa: ANN401 - the provider's own result
        """Call a hook as a workspace does."""
        return await Caller(self._mount).call(hook, *args)

    async def listed(self, path: str, limit: int | None = None) -> list[WorkspaceEntry]:
        """Follow a directory's pages; at most 1,000."""
        entries: list[WorkspaceEntry] = []
        cursor, seen = None, set[str]()
        for _ in range(1_000):
            options = MountListOptions(mount_path=self.mount_path, limit=limit, cursor=cursor)
            page, cursor = self.check.page(await self.call("list", path, options))
            entries += page
            if cursor is None:
                return entries
            holds(cursor not in seen, f"list gave the cursor {cursor!r} twice")
            seen.add(cursor)
        holds(False, "list has pages without end")
        return entries

    async def everything(self) -> list[WorkspaceFile]:
        """Return all files, directories descended into."""
        files: list[WorkspaceFile] = []
        waiting, seen = [self.mount_path], {self.mount_path}
        while waiting:
            for entry in await self.listed(waiting.pop()):
                if isinstance(entry, WorkspaceFile):
                    files.append(entry)
                elif entry.path not in seen:
                    seen.add(entry.path)
                    waiting.append(entry.path)
        return files

    async def content(self, name: str, **options: Any) -> Content | None:  # noqa: ANN401 - read options
        """Read a file as a workspace does."""
        path = self.at(name)
        result = await self.call(
            "read", path, MountReadOptions(mount_path=self.mount_path, **options)
        )
        return None if result is None else self.check.content("read", result, path)

    async def bytes_of(self, name: str) -> bytes | None:
        """Return a file's bytes by the hook for them."""
        found = await self.call("read_bytes", self.at(name), self.here)
        if found is None or isinstance(found, bytes):
            return found
        holds(isinstance(found, AsyncIterator), f"read_bytes gave {type(found).__name__}")
        return b"".join([chunk async for chunk in found])

    def need(self, hook: str) -> None:
        """Pass over a check of a hook that the source does not have."""
        if not self.declared[hook]:
            message = f"{hook} is not declared"
            raise NotApplicable(message)

    def some(self, kind: type | tuple[type, ...]) -> list[tuple[str, Any]]:
        """Return the files of a kind."""
        return [(name, held) for name, held in self.files.items() if isinstance(held, kind)]


SOURCE_CHECKS: Checks[SourceBench] = Checks()
FreshNames = Fresh[SourceBench]


@SOURCE_CHECKS.add()
async def check_listing_finds_all(bench: SourceBench, fresh: FreshNames) -> None:
    """S-001: listing from the mount's root down finds every file, each once, and nothing outside the mount."""
    del fresh
    found = [file.path for file in await bench.everything()]
    same(sorted(found), sorted(bench.at(name) for name in bench.files), "listed files")


@SOURCE_CHECKS.add()
async def check_pages(bench: SourceBench, fresh: FreshNames) -> None:
    """S-002: pages of one entry join to the whole listing of a directory, whether the source heeds the limit or not."""
    del fresh
    for directory in {bench.mount_path, *(parent(bench.at(name)) for name in bench.files)}:
        whole = [entry.path for entry in await bench.listed(directory)]
        paged = [entry.path for entry in await bench.listed(directory, 1)]
        same(sorted(set(paged)), sorted(whole), f"pages of {directory}")
        same(len(paged), len(set(paged)), "entries that came twice")


@SOURCE_CHECKS.add()
async def check_sub_directory(bench: SourceBench, fresh: FreshNames) -> None:
    """S-003: listing a directory gives only what is below it; a missing one is empty."""
    del fresh
    for directory in {parent(bench.at(name)) for name in bench.files}:
        for entry in await bench.listed(directory):
            holds(is_below(entry.path, directory), f"{entry.path} is not below {directory}")
    same(await bench.listed(bench.at("no-such-directory")), [], "a missing directory")


@SOURCE_CHECKS.add()
async def check_reading(bench: SourceBench, fresh: FreshNames) -> None:
    """S-004: every file reads back as it is: text as text, JSON as the value, binary as binary."""
    del fresh
    for name, held in bench.files.items():
        content = await bench.content(name)
        holds(content is not None, f"{name} reads as missing")
        if isinstance(held, bytes):
            holds(isinstance(content, BinaryContent), f"{name} does not read as binary")
        elif isinstance(content, JsonContent):
            same(content.content, held, f"value of {name}")
        else:
            holds(isinstance(content, TextContent), f"{name} does not read as text")
            assert isinstance(content, TextContent)
            same(content.content, held, f"text of {name}")
            holds(not content.truncated, f"{name} is truncated although all was asked for")


@SOURCE_CHECKS.add()
async def check_missing(bench: SourceBench, fresh: FreshNames) -> None:
    """S-005: a missing file reads as None, also below a file and for odd names."""
    first = next(iter(bench.files))
    for name in (_MISSING, f"{first}/below", fresh.name(), "%41*?[x]{a,b}", "ä" * 60):
        same(await bench.content(name), None, f"read of {name!r}")


@SOURCE_CHECKS.add()
async def check_windows(bench: SourceBench, fresh: FreshNames) -> None:
    """S-006: a window is what it says it is: the part from `offset` on, or the whole."""
    del fresh
    for name, held in bench.some(str):
        data = held.encode()
        for offset, most in ((0, 3), (2, 5), (5, 1000), (len(data), 10)):
            content = await bench.content(name, offset=offset, max_inline_bytes=most)
            holds(isinstance(content, TextContent), f"a window of {name} is no text")
            assert isinstance(content, TextContent)
            piece = content.content.encode()
            place = f"bytes {content.offset} to {content.offset + len(piece)} of {name}"
            same(piece, data[content.offset : content.offset + len(piece)], place)
            holds(content.offset <= offset, f"a window of {name} begins after {offset}")
            holds(
                content.truncated == (piece != data), f"{place}: truncated is {content.truncated}"
            )


@SOURCE_CHECKS.add()
async def check_stat(bench: SourceBench, fresh: FreshNames) -> None:
    """S-007: `stat` agrees with what is read, and is None for what is missing."""
    del fresh
    bench.need("stat")
    for name, held in bench.files.items():
        file = bench.check.file("stat", await bench.call("stat", bench.at(name), bench.here))
        same(file.path, bench.at(name), "path")
        if isinstance(held, str | bytes):
            same(file.size, len(_bytes(held)), f"size of {name}")
    same(await bench.call("stat", bench.at(_MISSING), bench.here), None, "stat of a missing file")


@SOURCE_CHECKS.add()
async def check_exists(bench: SourceBench, fresh: FreshNames) -> None:
    """S-008: `exists` is True for every file and False for what is missing."""
    del fresh
    bench.need("exists")
    for name in bench.files:
        same(await bench.call("exists", bench.at(name), bench.here), True, f"exists of {name}")
    same(await bench.call("exists", bench.at(_MISSING), bench.here), False, "exists of nothing")


@SOURCE_CHECKS.add()
async def check_bytes(bench: SourceBench, fresh: FreshNames) -> None:
    """S-009: `read_bytes` gives every byte, also twice, and None for what is missing."""
    del fresh
    bench.need("read_bytes")
    for name, held in bench.files.items():
        if isinstance(held, str | bytes):
            for _ in range(2):
                same(await bench.bytes_of(name), _bytes(held), f"bytes of {name}")
    same(await bench.bytes_of(_MISSING), None, "bytes of a missing file")


@SOURCE_CHECKS.add()
async def check_grep(bench: SourceBench, fresh: FreshNames) -> None:
    """S-010: `grep` finds literal text where it is, counts lines and columns from 1, and nothing for what is not there."""
    bench.need("grep")
    for name, held in bench.some(str):
        word = next((word for word in held.split() if word.isalnum()), None)
        if word is None:
            continue
        matches = await _matches(bench, word, path=bench.at(name))
        holds(matches, f"{word!r} was not found in {name}")
        for match in matches:
            line = held.split("\n")[match.line - 1]
            same(line[match.column - 1 :][: len(word)], word, f"line {match.line} of {name}")
    same(await _matches(bench, fresh.name("nowhere")), [], "a word that is nowhere")


@SOURCE_CHECKS.add()
async def check_grep_options(bench: SourceBench, fresh: FreshNames) -> None:
    """S-011: `grep` heeds `ignore_case`, `regex` and the scope; without `regex` nothing is an expression."""
    del fresh
    bench.need("grep")
    for name, held in bench.some(str):
        word = next((w for w in held.split() if w.isalpha() and w.swapcase() not in held), None)
        if word is None:
            continue
        path = bench.at(name)
        swapped = word.swapcase()
        same(await _matches(bench, swapped, path=path), [], f"{swapped!r} in {name}")
        holds(await _matches(bench, swapped, path=path, ignore_case=True), "ignore_case")
        pattern = f"{word[0]}[^ ]*"
        holds(await _matches(bench, pattern, path=path, regex=True), f"the expression {pattern!r}")
        if pattern not in held:
            same(await _matches(bench, pattern, path=path), [], "an expression taken literally")
        for match in await _matches(bench, word, path=path):
            same(match.path, path, "path of a match in a scope of one file")
        return


@SOURCE_CHECKS.add()
async def check_revisions(bench: SourceBench, fresh: FreshNames) -> None:
    """S-012: the revision in a file's metadata, where there is one, stays the same while nothing changes."""
    del fresh
    for name in bench.files:
        seen = [((await bench.content(name)) or _NOTHING).metadata or {} for _ in range(2)]
        same(seen[0].get("revision"), seen[1].get("revision"), f"revision of {name}")


@SOURCE_CHECKS.add()
async def check_concurrency(bench: SourceBench, fresh: FreshNames) -> None:
    """S-013: calls that run at the same time do not disturb each other."""
    del fresh
    names = list(bench.files) * 4
    contents = await asyncio.gather(*(bench.content(name) for name in names))
    for name, content in zip(names, contents, strict=True):
        held = bench.files[name]
        if isinstance(content, TextContent | JsonContent):
            same(content.content, held, f"{name} read beside others")


@SOURCE_CHECKS.add()
async def check_writing(bench: SourceBench, fresh: FreshNames) -> None:
    """S-020: what is written can be read, listed and written again."""
    bench.need("write")
    name = f"{fresh.name()}.md"
    for text in ("one\n", "", "zwei ü\r\n"):
        options = MountWriteOptions(mount_path=bench.mount_path, mime_type="text/markdown")
        await bench.call("write", bench.at(name), text, options)
        content = await bench.content(name)
        holds(isinstance(content, TextContent), "what was written does not read as text")
        assert isinstance(content, TextContent)
        same(content.content, text, "what was written")
    holds(bench.at(name) in [file.path for file in await bench.everything()], "it is not listed")
    if bench.declared["delete"]:
        await bench.call("delete", bench.at(name), bench.here)


@SOURCE_CHECKS.add()
async def check_deleting(bench: SourceBench, fresh: FreshNames) -> None:
    """S-021: what is deleted is gone; deleting what is not there is no error."""
    bench.need("delete")
    bench.need("write")
    name = f"{fresh.name()}.md"
    options = MountWriteOptions(mount_path=bench.mount_path)
    await bench.call("write", bench.at(name), "x", options)
    for _ in range(2):
        await bench.call("delete", bench.at(name), bench.here)
        same(await bench.content(name), None, "what was deleted")
    try:
        await bench.call("delete", bench.at(_MISSING), bench.here)
    except StorageError as error:
        holds(False, f"deleting what is not there failed: {error}")


_NOTHING = TextContent(path="", content="")


def _bytes(held: Held) -> bytes:
    if isinstance(held, bytes):
        return held
    return held.encode() if isinstance(held, str) else dump_compact(held)


async def _matches(bench: SourceBench, query: str, **options: Any) -> list[Any]:  # noqa: ANN401
    told = MountGrepOptions(mount_path=bench.mount_path, **options)
    matches, _ = bench.check.matches(await bench.call("grep", query, told), lambda _: True)
    return matches
