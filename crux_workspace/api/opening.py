"""One version of a file, found once: what is known of it and its bytes, for who hands out bytes under headers that tell of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from crux_workspace.api.reading import ReadMethods
from crux_workspace.engine.codec import KIND_NAMES
from crux_workspace.engine.content import stored, stream_bytes
from crux_workspace.model.paths import normalise_file
from crux_workspace.operations import sourced
from crux_workspace.operations.reading import Found, open_version
from crux_workspace.operations.space import Space

__all__ = ["OpenedFile", "open_file"]


class OpenedFile:
    """A version of a file as it was found; whatever comes to its path meanwhile, its bytes are those of this one."""

    def __init__(self, tree: ReadMethods, found: Found, data: bytes | None) -> None:
        """Use `open_file`."""
        self._tree = tree
        self._found = found
        self.path = found.path
        self.version = found.version
        self.size = found.of.size
        self.mime_type = found.of.mime_type
        self.content_kind = KIND_NAMES[found.of.kind]
        self.sha256 = found.of.sha256
        self.id = "" if found.entry is None else found.entry.file_id
        """Id of the file, empty for one that was deleted."""
        self.data = data
        """Its bytes, where they are in its record; else they are to be streamed."""

    async def stream(self, offset: int, length: int, *, chunk_bytes: int) -> AsyncIterator[bytes]:
        """Iterate over a range of the bytes, in constant memory.

        Raises:
            StorageError: They are gone or damaged (``ASSET_MISSING``, ``RECORD_CORRUPT``).
        """
        found = self._found

        def call(space: Space) -> AsyncGenerator[bytes, None]:
            return stream_bytes(
                space.ports,
                found.path,
                found.of,
                found.body,
                offset=offset,
                length=length,
                chunk_bytes=chunk_bytes,
            )

        chunks = self._tree._runner.iterate("stream", self.path, None, call)
        async with aclosing(chunks):
            async for chunk in chunks:
                yield chunk


async def open_file(tree: ReadMethods, path: str, version: int | None = None) -> OpenedFile | None:
    """Find a file, or one version of it, of a deleted file too; None for what a source shows.

    Args:
        tree: A workspace, or a view of the past, of which no version can be named.
        path: A file.
        version: The version; None is the newest.

    Raises:
        InvalidPathError: The path can name no file (``INVALID_PATH``).
        AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).
        PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
        VersionNotFoundError: No such version, or not kept (``VERSION_NOT_FOUND``, ``VERSION_EXPIRED``).

    Cost:
        1 read
    """

    async def call(space: Space) -> OpenedFile | None:
        where = normalise_file(path)
        space.router.readable(where)
        reads = await tree._tree(space)
        if sourced.source_at(space, reads, where) is not None:
            return None
        found = await open_version(space, reads, where, version)
        inline = found.of.is_inline
        data = await stored(space.ports, where, found.of, found.body) if inline else None
        return OpenedFile(tree, found, data)

    return await tree._runner.run("read_bytes", path, None, call)
