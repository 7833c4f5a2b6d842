"""Reading files, of the live tree or of a past one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

from crux_workspace.engine.codec import Attributes
from crux_workspace.engine.content import (
    content_value,
    json_of,
    load_text,
    stored,
    stream_bytes,
)
from crux_workspace.engine.entry import Entry, PastState
from crux_workspace.engine.expiry import expired_files
from crux_workspace.engine.gathering import gather
from crux_workspace.engine.parts import corrupt
from crux_workspace.engine.reads import TreeReads, VersionedReads
from crux_workspace.errors import (
    BinaryContentError,
    ErrorCode,
    InvalidInputError,
    VersionNotFoundError,
)
from crux_workspace.events.log import read_meta
from crux_workspace.model.contents import BinaryContent, Content, JsonContent, TextContent
from crux_workspace.model.files import (
    Usage,
    WorkspaceFile,
)
from crux_workspace.model.jsontext import load, parse
from crux_workspace.model.lines import byte_window, window
from crux_workspace.model.options import needed_number, ordinal, whole_number
from crux_workspace.operations import sourced
from crux_workspace.operations.origins import check_opened
from crux_workspace.operations.space import Space, not_found
from crux_workspace.operations.windows import bytes_of, lines_of
from crux_workspace.storage.layout import META_KEY

__all__ = [
    "Found",
    "binary_refused",
    "exists",
    "find_version",
    "is_dir",
    "open_version",
    "read",
    "read_bytes",
    "read_json",
    "read_many",
    "read_text",
    "stat",
    "stream",
    "usage",
    "version_missing",
]


class Found:
    """A file and the version of it that was asked for."""

    __slots__ = ("body", "entry", "of", "path", "version")

    def __init__(
        self, path: str, entry: Entry | None, version: int, of: Attributes, body: bytes | None
    ) -> None:
        self.path = path
        self.entry = entry
        self.version = version
        self.of = of
        self.body = body

    def common(self) -> dict[str, Any]:
        """Fields that every content carries: MIME and metadata of the version, the rest of the file."""
        head = None if self.entry is None else self.entry.head
        return {
            "path": self.path,
            "mime_type": self.of.mime_type,
            "size": self.of.size,
            "version": self.version,
            "sha256": self.of.sha256,
            "metadata": self.of.metadata,
            "status": None if head is None else head.status,
            "artifact_kind": None if head is None else head.artifact_kind,
            "pinned_version": None if head is None else head.pinned,
            "id": "" if self.entry is None else self.entry.file_id,
        }


def version_missing(path: str, version: int, last: int) -> VersionNotFoundError:
    """Make the error of a version that is not kept, or never was."""
    if 1 <= version <= last:
        return VersionNotFoundError(
            f"Version {version} of {path} was collected or purged.",
            code=ErrorCode.VERSION_EXPIRED,
            details={"path": path, "version": version},
        )
    return VersionNotFoundError(
        f"{path} has no version {version}; its last one is {last}.",
        details={"path": path, "version": version},
    )


async def find_version(
    space: Space, reads: VersionedReads, path: str, version: int, *, bodies: bool
) -> tuple[Entry | None, Entry | PastState]:
    """Return (the live file, the version asked for), a deleted file's versions included.

    Raises:
        PathNotFoundError: No file was ever at the path (``FILE_NOT_FOUND``).
        VersionNotFoundError: There is no such version, or it is not kept (``VERSION_NOT_FOUND``, ``VERSION_EXPIRED``).
    """
    ordinal("version", version)
    known = await reads.identity(path, bodies=bodies)
    if known.file_id is None:
        raise not_found(path)
    older = reads.versions(known.file_id, below=None)
    await check_opened(space.router, path, version, known.raw, older)
    if known.raw is not None and known.raw.version == version:
        return known.entry, known.raw
    state = None
    if version <= known.version:
        state = await reads.version_state(known.file_id, version, bodies=bodies)
    if state is None:
        raise version_missing(path, version, known.version)
    return known.entry, state


async def open_version(
    space: Space, reads: TreeReads, path: str, version: int | None, *, bodies: bool = True
) -> Found:
    """Find the file, or one version of it, with its inline bytes.

    Raises:
        PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
        VersionNotFoundError: There is no such version, or it is not kept; a deletion has no content.
    """
    if version is None:
        entry = await reads.find(path, bodies=bodies)
        if entry is None:
            hint = None
            if space.router.is_fixed_directory(path) or await reads.has_below(path):
                hint = f"{path} is a directory; list it and read one of its files."
            raise not_found(path, hint)
        return Found(path, entry, entry.version, entry.head, entry.body)
    entry, at = await find_version(
        space, cast("VersionedReads", reads), path, version, bodies=bodies
    )
    if isinstance(at, Entry):
        return Found(path, entry, at.version, at.head, at.body)
    if at.is_tombstone:
        raise VersionNotFoundError(
            f"Version {version} of {path} is its deletion and has no content.",
            details={"path": path, "version": version},
            hint=f"Read version {version - 1}, or undo the deletion.",
        )
    return Found(path, entry, at.version, at.state, at.body)


async def read(
    space: Space,
    reads: TreeReads,
    path: str,
    *,
    version: int | None,
    offset: int,
    max_inline_bytes: int | None,
    start_line: int | None,
    end_line: int | None,
) -> Content:
    """Return a file's content, or a window of its text."""
    needed_number("offset", offset, least=0)
    whole_number("max_inline_bytes", max_inline_bytes)
    ordinal("start_line", start_line)
    whole_number("end_line", end_line, least=1)
    lines = start_line is not None or end_line is not None
    if lines and offset:
        raise InvalidInputError(
            "offset counts bytes and start_line lines; give only one of them.",
            details={"option": "offset"},
        )
    if (tree := sourced.source_at(space, reads, path)) is not None:
        return await sourced.read(
            tree,
            path,
            version=version,
            offset=offset,
            max_inline_bytes=max_inline_bytes,
            start_line=start_line,
            end_line=end_line,
        )
    found = await open_version(space, reads, path, version)
    if found.of.kind == "b":
        if lines:
            raise binary_refused(path, "has no lines")
        return BinaryContent(uri=found.of.uri, **found.common())
    if found.of.kind == "t" and not found.of.is_inline:
        if lines:
            piece = await lines_of(space.ports, path, found.of, start_line, end_line)
        else:
            piece = await bytes_of(space.ports, path, found.of, offset, max_inline_bytes)
        return _window_of(found, *piece)
    most = found.of.size if lines or max_inline_bytes is None else max_inline_bytes
    gather(path, found.of.size if found.of.kind == "j" else min(most, found.of.size))
    if lines:
        text = await load_text(space.ports, path, found.of, found.body)
        return _line_window(found, text, start_line, end_line)
    data = await stored(space.ports, path, found.of, found.body)
    if found.of.kind == "j":
        return JsonContent(content=json_of(path, data), **found.common())
    try:
        text, start, cut = byte_window(data, offset, max_inline_bytes)
    except UnicodeDecodeError as error:
        raise corrupt(path, "its bytes are not what was written") from error
    return _window_of(found, text, start, cut)


def _window_of(found: Found, text: str, offset: int, truncated: bool) -> TextContent:
    return TextContent(
        content=text,
        truncated=truncated,
        offset=offset,
        total_lines=found.of.lines,
        **found.common(),
    )


def _line_window(
    found: Found, text: str, start_line: int | None, end_line: int | None
) -> TextContent:
    piece, total = window(text, start_line, end_line)
    return TextContent(
        content=piece,
        truncated=len(piece) != len(text),
        offset=len(_lines_before(text, start_line or 1).encode()),
        total_lines=total,
        **found.common(),
    )


def _lines_before(text: str, start_line: int) -> str:
    return "" if start_line <= 1 else window(text, 1, start_line - 1)[0]


def binary_refused(path: str, why: str) -> BinaryContentError:
    """Make the error of a text operation on binary content."""
    return BinaryContentError(
        f"{path} is binary and {why}.",
        details={"path": path},
        hint="Use read_bytes or stream for its bytes.",
    )


async def read_text(space: Space, reads: TreeReads, path: str, *, version: int | None) -> str:
    """Return the whole text; JSON in its pretty form."""
    if (tree := sourced.source_at(space, reads, path)) is not None:
        return await sourced.read_text(tree, path, version)
    found = await open_version(space, reads, path, version)
    if found.of.kind == "b":
        raise binary_refused(path, "cannot be read as text")
    gather(path, found.of.size)
    return await load_text(space.ports, path, found.of, found.body)


async def read_bytes(space: Space, reads: TreeReads, path: str, *, version: int | None) -> bytes:
    """Return all bytes as they are stored."""
    if (tree := sourced.source_at(space, reads, path)) is not None:
        return await sourced.read_bytes(tree, path, version)
    found = await open_version(space, reads, path, version)
    gather(path, found.of.size)
    return await stored(space.ports, path, found.of, found.body)


async def read_json(space: Space, reads: TreeReads, path: str, *, version: int | None) -> Any:  # noqa: ANN401 - a JSON value
    """Return the JSON value of a JSON file, or of text that is JSON."""
    if (tree := sourced.source_at(space, reads, path)) is not None:
        value = await sourced.json_value(tree, path, version)
        return value.content if isinstance(value, JsonContent) else _parsed(path, value)
    found = await open_version(space, reads, path, version)
    if found.of.kind == "b":
        raise binary_refused(path, "holds no JSON")
    gather(path, found.of.size)
    data = await stored(space.ports, path, found.of, found.body)
    return load(data) if found.of.kind == "j" else _parsed(path, data)


def _parsed(path: str, data: bytes) -> Any:  # noqa: ANN401 - a JSON value
    try:
        return parse(data)
    except InvalidInputError as error:
        raise InvalidInputError(
            f"The text of {path} is not JSON.",
            code=ErrorCode.INVALID_CONTENT,
            details={"path": path},
            hint="Read it with read_text.",
        ) from error


async def read_many(
    space: Space, reads: TreeReads, paths: Sequence[tuple[str, str]]
) -> dict[str, Content | None]:
    """Return {path as given: whole content or None}; the files kept here are of one snapshot. Cost: 1 read."""
    trees = {path: sourced.source_at(space, reads, path) for _, path in paths}
    local = [path for _, path in paths if trees[path] is None]
    entries = dict(zip(local, await reads.find_many(local, bodies=True), strict=True))
    result: dict[str, Content | None] = {}
    for given, path in paths:
        if (tree := trees[path]) is not None:
            result[given] = await tree.whole(path)
            continue
        entry = entries[path]
        if entry is None:
            result[given] = None
            continue
        found = Found(path, entry, entry.version, entry.head, entry.body)
        if entry.head.kind == "b":
            result[given] = BinaryContent(uri=entry.head.uri, **found.common())
            continue
        gather(path, entry.head.size)
        value = await content_value(space.ports, path, entry.head, entry.body)
        if entry.head.kind == "j":
            result[given] = JsonContent(content=value, **found.common())
        else:
            result[given] = TextContent(
                content=value, total_lines=entry.head.lines, **found.common()
            )
    return result


async def stream(
    space: Space,
    reads: TreeReads,
    path: str,
    *,
    version: int | None,
    offset: int,
    length: int | None,
    chunk_bytes: int,
) -> AsyncGenerator[bytes, None]:
    """Iterate over the bytes of a file, in constant memory."""
    needed_number("offset", offset, least=0)
    whole_number("length", length)
    needed_number("chunk_bytes", chunk_bytes)
    if (tree := sourced.source_at(space, reads, path)) is not None:
        chunks = sourced.stream(
            tree, path, version=version, offset=offset, length=length, chunk_bytes=chunk_bytes
        )
    else:
        found = await open_version(space, reads, path, version)
        chunks = stream_bytes(
            space.ports,
            path,
            found.of,
            found.body,
            offset=offset,
            length=length,
            chunk_bytes=chunk_bytes,
        )
    async with aclosing(chunks):
        async for chunk in chunks:
            yield chunk


async def stat(space: Space, reads: TreeReads, path: str) -> WorkspaceFile | None:
    """Return what is known of a live file. Cost: 1 read."""
    if (tree := sourced.source_at(space, reads, path)) is not None:
        return await tree.stat(path)
    entry = await reads.find(path)
    return None if entry is None else space.file(entry)


async def exists(space: Space, reads: TreeReads, path: str, *, directory: bool) -> bool:
    """Tell whether a file or a directory is there."""
    if (tree := sourced.source_at(space, reads, path)) is not None:
        return await sourced.exists(space, tree, path, directory=directory)
    if space.router.is_fixed_directory(path):
        return True
    return await (reads.has_below(path) if directory else reads.has(path))


async def is_dir(space: Space, reads: TreeReads, path: str) -> bool:
    """Tell whether a directory is there."""
    if (tree := sourced.source_at(space, reads, path)) is not None:
        return await sourced.exists(space, tree, path, directory=True)
    return space.router.is_fixed_directory(path) or await reads.has_below(path)


async def usage(space: Space) -> Usage:
    """Return what a namespace holds; files whose time has passed do not count as live."""
    reads = space.reads()
    [record] = await space.ports.reader.get_many([META_KEY], bodies=False)
    meta = read_meta(record)
    counters = {} if meta is None else meta.counters
    late = await expired_files(space.ports, reads.now) if counters.get("live_files") else []
    return Usage(
        live_bytes=counters.get("live_bytes", 0) - sum(entry.head.size for entry in late),
        live_files=counters.get("live_files", 0) - len(late),
        versions=counters.get("versions", 0),
        history_bytes=counters.get("history_bytes", 0),
        max_namespace_bytes=space.ports.limits.max_namespace_bytes,
    )
