"""The methods that read; `Workspace` has them over the live tree, a view over a past one."""

from __future__ import annotations

import builtins
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing

from crux_workspace.api.runner import Runner
from crux_workspace.engine.reads import TreeReads
from crux_workspace.errors import InvalidInputError
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.contents import Content
from crux_workspace.model.files import ListResult, Status, WorkspaceFile
from crux_workspace.model.globs import has_glob
from crux_workspace.model.options import check_flags
from crux_workspace.model.paths import PathLike, normalise, normalise_directory_hint, normalise_file
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.values import JsonValue
from crux_workspace.operations import listing, publishing, reading, searching
from crux_workspace.operations.space import Space

__all__ = ["ReadMethods"]


class ReadMethods:
    """Reading files and listing directories."""

    _runner: Runner

    async def _tree(self, space: Space) -> TreeReads:
        """Return the tree that the methods read."""
        raise NotImplementedError

    async def list(
        self,
        path: PathLike = "/",
        *,
        recursive: bool = False,
        glob: bool | None = None,
        limit: int | None = None,
        cursor: str | None = None,
        partial: bool = False,
        namespace: str | None = None,
    ) -> ListResult:
        """List a directory, everything below it, or the files that a glob matches.

        Order is code point order, segment by segment, on every store. Over several pages, an entry that stays at its path during the
        whole listing appears exactly once.

        Args:
            path: Directory, file or glob (``*``, ``**``, ``?``, ``[…]``, ``{a,b}``). What exists under that very name is meant
                literally; a missing directory is empty, a file lists itself.
            recursive: List all files below instead of the immediate children.
            glob: True or False decides whether `path` is a glob.
            limit: Most entries of this page; None lists all.
            cursor: Where the page before ended.
            partial: Leave out what cannot be had of mounts below `path` whose source fails, and name them in `failed`.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            Files and directories, and the cursor of the next page.

        Raises:
            InvalidPathError: The path can name nothing (``INVALID_PATH``).
            InvalidInputError: A bad option, or a cursor of another listing (``INVALID_ARGUMENT``, ``INVALID_CURSOR``).
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).
            StorageError: The source of a mount failed, is too slow or lies (``STORE_UNAVAILABLE``, ``STORE_TIMEOUT``, ``SOURCE_INVALID``).

        Cost:
            pages; sub-directories are skipped by seeking, not read.

        Example:
            >>> [entry.path for entry in await ws.list("/workspace")]
            ['/workspace/notes.md']
        """

        async def call(space: Space) -> ListResult:
            check_flags(recursive=recursive, partial=partial, glob=glob is None or glob)
            where, directory = _scope(path)
            return await listing.list_page(
                space,
                await self._tree(space),
                where,
                directory=directory,
                recursive=recursive,
                glob=glob,
                limit=limit,
                cursor=cursor,
                partial=partial,
            )

        return await self._runner.run("list", path, namespace, call)

    async def walk(
        self, path: PathLike = "/", *, namespace: str | None = None
    ) -> AsyncIterator[WorkspaceFile]:
        """Iterate over all files below a path: what ``list(path, recursive=True)`` pages.

        Args:
            path: Directory, file or glob.
            namespace: Use this namespace instead of the workspace's own.

        Yields:
            Files in order. A file that stays at its path during the whole walk appears exactly once.

        Raises:
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).

        Cost:
            pages

        Example:
            >>> [file.path async for file in ws.walk("/workspace")]
            ['/workspace/notes.md']
        """

        async def call(space: Space) -> AsyncGenerator[WorkspaceFile, None]:
            where, directory = _scope(path)
            cursor: str | None = None
            while True:
                page = await listing.list_page(
                    space,
                    await self._tree(space),
                    where,
                    directory=directory,
                    recursive=True,
                    glob=None,
                    limit=256,
                    cursor=cursor,
                )
                for entry in page.entries:
                    if isinstance(entry, WorkspaceFile):
                        yield entry
                cursor = page.cursor
                if cursor is None:
                    return

        async with aclosing(self._runner.iterate("walk", path, namespace, call)) as files:
            async for file in files:
                yield file

    async def read(
        self,
        path: PathLike,
        *,
        version: int | None = None,
        offset: int = 0,
        max_inline_bytes: int | None = 64_000,
        start_line: int | None = None,
        end_line: int | None = None,
        namespace: str | None = None,
    ) -> Content:
        r"""Read a file, or a window of its text.

        A window never splits a character: `offset` and the end move back to a character's start. A JSON value is never cut; a line
        window of it is text in its pretty form. Of a large text the window is read, not the whole: memory grows with the window.

        Args:
            path: A file.
            version: Read this version, of a deleted file too; None reads the newest.
            offset: First byte of the window.
            max_inline_bytes: Most bytes of text to return; None returns all.
            start_line: First line of a line window, from 1.
            end_line: Last line, included; clamped to the end.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            Text, a JSON value, or where binary bytes are. `truncated` is true whenever it is not the whole file.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            VersionNotFoundError: No such version, or not kept (``VERSION_NOT_FOUND``, ``VERSION_EXPIRED``).
            BinaryContentError: A line window of binary content (``BINARY_CONTENT``).
            StorageError: The bytes are gone or damaged (``ASSET_MISSING``, ``RECORD_CORRUPT``).
            StorageError: The source of a mount failed, is too slow or lies (``STORE_UNAVAILABLE``, ``STORE_TIMEOUT``, ``SOURCE_INVALID``).

        Cost:
            1 read

        Example:
            >>> (await ws.read("/workspace/notes.md", start_line=1, end_line=1)).content
            '# Notes\n'
        """

        async def call(space: Space) -> Content:
            return await reading.read(
                space,
                await self._tree(space),
                _file(space, path),
                version=self._version(version),
                offset=offset,
                max_inline_bytes=max_inline_bytes,
                start_line=start_line,
                end_line=end_line,
            )

        return await self._runner.run("read", path, namespace, call)

    async def read_text(
        self, path: PathLike, *, version: int | None = None, namespace: str | None = None
    ) -> str:
        r"""Read a whole text, never truncated; JSON in its pretty form.

        Args:
            path: A file.
            version: Read this version; None reads the newest.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The text with its line endings as they were written.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            BinaryContentError: The content is binary (``BINARY_CONTENT``).

        Cost:
            1 read

        Example:
            >>> await ws.read_text("/workspace/notes.md")
            '# Notes\n'
        """

        async def call(space: Space) -> str:
            tree = await self._tree(space)
            where = _file(space, path)
            return await reading.read_text(space, tree, where, version=self._version(version))

        return await self._runner.run("read_text", path, namespace, call)

    async def read_bytes(
        self, path: PathLike, *, version: int | None = None, namespace: str | None = None
    ) -> bytes:
        r"""Read all bytes: binary as it is, text as UTF-8, JSON in its compact form.

        Args:
            path: A file.
            version: Read this version; None reads the newest.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The bytes; of an asset they are checked against their hash.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            StorageError: The bytes are gone or damaged (``ASSET_MISSING``, ``RECORD_CORRUPT``).

        Cost:
            1 read

        Example:
            >>> await ws.read_bytes("/workspace/notes.md")
            b'# Notes\n'
        """

        async def call(space: Space) -> bytes:
            tree = await self._tree(space)
            where = _file(space, path)
            return await reading.read_bytes(space, tree, where, version=self._version(version))

        return await self._runner.run("read_bytes", path, namespace, call)

    async def read_json(
        self, path: PathLike, *, version: int | None = None, namespace: str | None = None
    ) -> JsonValue:
        """Read a JSON value, of a JSON file or of text that is JSON.

        Args:
            path: A file.
            version: Read this version; None reads the newest.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The value, keys in their order.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            InvalidInputError: The text is not JSON (``INVALID_CONTENT``).
            BinaryContentError: The content is binary (``BINARY_CONTENT``).

        Cost:
            1 read

        Example:
            >>> await ws.write("/outputs/data.json", {"rows": 3}); await ws.read_json("/outputs/data.json")
            {'rows': 3}
        """

        async def call(space: Space) -> JsonValue:
            tree = await self._tree(space)
            where = _file(space, path)
            value: JsonValue = await reading.read_json(
                space, tree, where, version=self._version(version)
            )
            return value

        return await self._runner.run("read_json", path, namespace, call)

    async def read_many(
        self, paths: Iterable[PathLike], *, namespace: str | None = None
    ) -> dict[str, Content | None]:
        """Read several files whole, all from one snapshot.

        Args:
            paths: Files; a missing one is no error.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The content of each path as it was given, None where there is no file.

        Raises:
            InvalidPathError: One of the paths can name nothing (``INVALID_PATH``).

        Cost:
            1 read

        Example:
            >>> (await ws.read_many(["/workspace/notes.md", "/workspace/none.md"]))["/workspace/none.md"] is None
            True
        """

        async def call(space: Space) -> dict[str, Content | None]:
            given: object = paths
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise InvalidInputError(
                    "paths must be a list of paths.", details={"option": "paths"}
                )
            files = [(path, _file(space, path)) for path in paths]
            pairs = [(str(path), where) for path, where in files]
            return await reading.read_many(space, await self._tree(space), pairs)

        return await self._runner.run("read_many", None, namespace, call)

    async def stream(
        self,
        path: PathLike,
        *,
        version: int | None = None,
        offset: int = 0,
        length: int | None = None,
        chunk_bytes: int = 1 << 20,
        namespace: str | None = None,
    ) -> AsyncIterator[bytes]:
        r"""Iterate over a file's bytes in constant memory.

        Args:
            path: A file.
            version: Read this version; None reads the newest.
            offset: First byte.
            length: How many bytes; None reads to the end.
            chunk_bytes: Most bytes of one chunk.
            namespace: Use this namespace instead of the workspace's own.

        Yields:
            Chunks. Whatever part of the content is covered from its first byte to its last is checked against its hash; a mismatch
                raises behind its last chunk.

        Raises:
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            StorageError: The bytes are gone or damaged (``ASSET_MISSING``, ``RECORD_CORRUPT``).

        Cost:
            1 read

        Example:
            >>> b"".join([chunk async for chunk in ws.stream("/workspace/notes.md")])
            b'# Notes\n'
        """

        async def call(space: Space) -> AsyncGenerator[bytes, None]:
            found = reading.stream(
                space,
                await self._tree(space),
                _file(space, path),
                version=self._version(version),
                offset=offset,
                length=length,
                chunk_bytes=chunk_bytes,
            )
            async with aclosing(found):
                async for chunk in found:
                    yield chunk

        async with aclosing(self._runner.iterate("stream", path, namespace, call)) as chunks:
            async for chunk in chunks:
                yield chunk

    async def exists(self, path: PathLike, *, namespace: str | None = None) -> bool:
        """Tell whether a file or a directory is there.

        Args:
            path: A file or a directory; with a trailing slash only a directory counts.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            True when it is. Mount roots always are.

        Raises:
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).

        Cost:
            1 read

        Example:
            >>> await ws.exists("/workspace/notes.md")
            True
        """

        async def call(space: Space) -> bool:
            where, directory = normalise_directory_hint(path)
            space.router.browsable(where)
            tree = await self._tree(space)
            return await reading.exists(space, tree, where, directory=directory)

        return await self._runner.run("exists", path, namespace, call)

    async def is_dir(self, path: PathLike, *, namespace: str | None = None) -> bool:
        """Tell whether a directory is there: a live file is below it, or it is a mount root.

        Args:
            path: A directory.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            True when it is.

        Raises:
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).

        Cost:
            1 read

        Example:
            >>> await ws.is_dir("/workspace")
            True
        """

        async def call(space: Space) -> bool:
            where, _ = normalise_directory_hint(path)
            space.router.browsable(where)
            return await reading.is_dir(space, await self._tree(space), where)

        return await self._runner.run("is_dir", path, namespace, call)

    async def stat(self, path: PathLike, *, namespace: str | None = None) -> WorkspaceFile | None:
        """Return what is known of a file, without its content.

        Args:
            path: A file.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The file, or None when there is no live file.

        Raises:
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).

        Cost:
            1 read

        Example:
            >>> (await ws.stat("/workspace/notes.md")).version
            1
        """

        async def call(space: Space) -> WorkspaceFile | None:
            return await reading.stat(space, await self._tree(space), _file(space, path))

        return await self._runner.run("stat", path, namespace, call)

    async def grep(
        self,
        query: str,
        *,
        path: PathLike | None = None,
        ignore_case: bool = False,
        regex: bool = False,
        max_results: int = 100,
        context_lines: int = 0,
        partial: bool = False,
        namespace: str | None = None,
    ) -> GrepResult:
        r"""Search text and JSON line by line.

        Every match is an entry; matches within a line do not overlap. Expressions run in linear time, and the event loop is never
        held for long. Large texts are searched as they are read, in memory that grows with neither them nor their lines; binary
        content is passed over unread. When the call is cancelled the search stops.

        Args:
            query: Text to find, or with `regex` an expression in RE2's syntax.
            path: A file, a directory or a glob; None searches everything, a missing one finds nothing.
            ignore_case: Upper and lower case are the same.
            regex: `query` is an expression. Its ``\s``, ``\d``, ``\w`` and ``\b`` know ASCII alone; ``\pZ``, ``\pN`` and ``\pL``
                know the spaces, digits and letters of all alphabets.
            max_results: Most matches to return.
            context_lines: Lines to show before and after each match.
            partial: Leave out what cannot be had of mounts below `path` whose source fails, and name them in `failed`.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            Matches by path, line and column; `truncated` when some were left out.

        Raises:
            InvalidInputError: An empty query, or an expression that is bad or unfolds to more than 750 steps
                (``INVALID_ARGUMENT``, ``INVALID_REGEX``).
            StorageError: The bytes of a text are gone or damaged (``ASSET_MISSING``, ``RECORD_CORRUPT``).
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).
            StorageError: The source of a mount failed, is too slow or lies (``STORE_UNAVAILABLE``, ``STORE_TIMEOUT``, ``SOURCE_INVALID``).

        Cost:
            pages

        Example:
            >>> [(match.line, match.column) for match in await ws.grep("Notes")]
            [(1, 3)]
        """

        async def call(space: Space) -> GrepResult:
            where, directory = (None, False) if path is None else _scope(path)
            return await searching.grep(
                space,
                await self._tree(space),
                query,
                path=where,
                directory=directory,
                ignore_case=ignore_case,
                regex=regex,
                max_results=max_results,
                context_lines=context_lines,
                partial=partial,
            )

        return await self._runner.run("grep", path, namespace, call)

    async def artifacts(
        self,
        *,
        status: Status | None = None,
        kind: str | None = None,
        path: PathLike | None = None,
        limit: int | None = None,
        after: PathLike | None = None,
        namespace: str | None = None,
    ) -> builtins.list[Artifact]:
        """List artifacts by path; a published one shows its pinned version.

        Args:
            status: Only ``draft`` or only ``final`` ones.
            kind: Only those of this kind.
            path: Only those at or below this path (below it, when it ends in ``/``), or that this glob matches.
            limit: Most artifacts to return.
            after: Last path of the page before.
            namespace: Use this namespace instead of the workspace's own.

        Returns:
            The artifacts.

        Raises:
            InvalidInputError: A bad option (``INVALID_ARGUMENT``).
            AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).

        Cost:
            pages

        Example:
            >>> await ws.write("/outputs/report.md", "# Report", status="final", kind="report")
            >>> [artifact.version for artifact in await ws.artifacts(status="final")]
            [1]
        """

        async def call(space: Space) -> builtins.list[Artifact]:
            where, directory = (None, False) if path is None else _scope(path)
            return await publishing.artifacts(
                space,
                await self._tree(space),
                status=status,
                kind=kind,
                path=where,
                directory=directory,
                limit=limit,
                after=None if after is None else normalise(after),
            )

        return await self._runner.run("artifacts", path, namespace, call)

    def _version(self, version: int | None) -> int | None:
        """Allow or refuse reading an older version."""
        return version


def _scope(path: PathLike) -> tuple[str, bool]:
    """Read a path that may be a directory or a glob; a glob keeps its spelling until it is compiled."""
    if has_glob(path):
        return normalise(path), False
    where, directory = normalise_directory_hint(path)
    return where, directory and where != "/"


def _file(space: Space, path: PathLike) -> str:
    """Read a path that must name a file on some mount."""
    where = normalise_file(path)
    space.router.readable(where)
    return where


def refuse_version(version: object) -> None:
    """A view of the past has one version of each file."""
    if version is not None:
        raise InvalidInputError(
            "A view of the past shows each file as it was; read older versions from the workspace.",
            details={"option": "version"},
        )
