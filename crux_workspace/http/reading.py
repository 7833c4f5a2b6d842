"""The methods that read; a workspace has them over the live tree, a view over a past one, a transaction over what it sees."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import aclosing
from typing import Any, TypeVar

from crux_workspace.errors import InvalidInputError
from crux_workspace.http import decoding
from crux_workspace.http.calling import Caller
from crux_workspace.http.files import read_whole, streamed
from crux_workspace.http.problems import corrupt, parsed
from crux_workspace.http.sending import (
    any_path,
    file_path,
    scope_path,
    sendable_text,
    service_limit,
)
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.attributes import check_attributes
from crux_workspace.model.contents import Content
from crux_workspace.model.files import ListResult, Status, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.matching import check_query
from crux_workspace.model.options import MOST, check_flags, needed_number, ordinal, whole_number
from crux_workspace.model.paths import PathLike
from crux_workspace.model.searches import GrepResult
from crux_workspace.model.values import JsonValue

__all__ = ["MOST_ENTRIES", "HttpReads"]

_T = TypeVar("_T")
MOST_ENTRIES = 10_000
"""Most entries that are asked for at once."""
_WALK_ENTRIES = 1_000
_MOST_PATHS = 1_000
_MOST_QUERY_CHARACTERS = 4_096
_MOST_CONTEXT_LINES = 100
_MOST_PLACE = 1 << 62
"""Beyond the end of every file; two of them are a place that is one yet."""
_artifacts = decoding.several(Artifact)
_matches = decoding.of(GrepResult)


class HttpReads:
    """Reading files and listing directories over HTTP."""

    _caller: Caller

    async def _tree(self, namespace: str | None) -> dict[str, Any]:
        """Return what names the tree that the methods read; nothing for the live one."""
        return {}

    def _version(self, version: int | None) -> int | None:
        """Allow or refuse reading an older version."""
        ordinal("version", version)
        return version

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
        """List a directory, everything below it, or the files that a glob matches, as `Workspace.list` does.

        Without a limit it asks for page after page, of 10,000 entries each.
        """
        whole_number("limit", limit, least=1)
        check_flags(recursive=recursive, partial=partial, glob=glob is None or glob)
        entries: list[WorkspaceEntry] = []
        expired = 0
        failed: dict[str, str] = {}
        while True:
            most = MOST_ENTRIES if limit is None else min(limit - len(entries), MOST_ENTRIES)
            page = await self._page(path, recursive, glob, most, cursor, namespace, partial)
            entries += page.entries
            expired += page.expired
            failed |= page.failed
            cursor = page.cursor
            if cursor is None or (limit is not None and len(entries) >= limit):
                return ListResult(entries, cursor, expired, failed)

    async def _page(
        self,
        path: PathLike,
        recursive: bool,
        glob: bool | None,
        limit: int,
        cursor: str | None,
        namespace: str | None,
        partial: bool = False,
    ) -> ListResult:
        self._caller.core.enter()
        arguments = {
            "path": scope_path(path),
            "recursive": recursive,
            "glob": glob,
            "limit": limit,
            "cursor": sendable_text(cursor),
            "partial": partial,
            **await self._tree(namespace),
        }
        page = await self._caller.ask("list", arguments, namespace, decoding.listing)
        if page.cursor is not None and not page.entries:
            raise corrupt("it is a page without entries that is not the last one")
        return page

    async def walk(
        self, path: PathLike = "/", *, namespace: str | None = None
    ) -> AsyncIterator[WorkspaceFile]:
        """Iterate over all files below a path, as `Workspace.walk` does: what ``list(path, recursive=True)`` pages."""
        cursor: str | None = None
        while True:
            page = await self._page(path, True, None, _WALK_ENTRIES, cursor, namespace)
            for entry in page.entries:
                if isinstance(entry, WorkspaceFile):
                    yield entry
            cursor = page.cursor
            if cursor is None:
                return

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
        """Read a file, or a window of its text, as `Workspace.read` does; the window is made by the service."""
        self._caller.core.enter()
        needed_number("offset", offset, least=0)
        whole_number("max_inline_bytes", max_inline_bytes)
        ordinal("start_line", start_line)
        whole_number("end_line", end_line, least=1)
        arguments = {
            "path": file_path(path),
            "version": self._version(version),
            "offset": min(offset, MOST),
            "max_inline_bytes": MOST if max_inline_bytes is None else min(max_inline_bytes, MOST),
            "start_line": start_line,
            "end_line": None if end_line is None else min(end_line, MOST),
            **await self._tree(namespace),
        }
        return await self._caller.ask("read", arguments, namespace, decoding.content)

    async def read_text(
        self, path: PathLike, *, version: int | None = None, namespace: str | None = None
    ) -> str:
        """Read a whole text, never truncated, as `Workspace.read_text` does; JSON in its pretty form."""
        data = await self._whole("text", path, version, namespace)
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise corrupt("it is no UTF-8") from None

    async def read_bytes(
        self, path: PathLike, *, version: int | None = None, namespace: str | None = None
    ) -> bytes:
        """Read all bytes, as `Workspace.read_bytes` does; what arrives is checked against the hash that the service tells."""
        return await self._whole("bytes", path, version, namespace)

    async def read_json(
        self, path: PathLike, *, version: int | None = None, namespace: str | None = None
    ) -> JsonValue:
        """Read a JSON value, of a JSON file or of text that is JSON, as `Workspace.read_json` does."""
        value: JsonValue = parsed(await self._whole("json", path, version, namespace))
        return value

    async def _whole(
        self, form: str, path: PathLike, version: int | None, namespace: str | None
    ) -> bytes:
        self._caller.core.enter()
        arguments = {
            "path": file_path(path),
            "version": self._version(version),
            "form": None if form == "bytes" else form,
            **await self._tree(namespace),
        }
        return await read_whole(self._caller, arguments, namespace)

    async def read_many(
        self, paths: Iterable[PathLike], *, namespace: str | None = None
    ) -> dict[str, Content | None]:
        """Read several files whole, all from one snapshot, as `Workspace.read_many` does; at most 1,000 at once."""
        self._caller.core.enter()
        given: object = paths
        if isinstance(given, str) or not isinstance(given, Iterable):
            raise InvalidInputError("paths must be a list of paths.", details={"option": "paths"})
        named = [file_path(path) for path in paths]
        service_limit("paths", len(named), _MOST_PATHS)
        return await self._caller.ask(
            "read_many", {"paths": named}, namespace, decoding.contents, await self._tree(namespace)
        )

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
        """Iterate over a file's bytes in constant memory, as `Workspace.stream` does.

        When the connection breaks it goes on where it was, in the same version.
        """
        self._caller.core.enter()
        needed_number("offset", offset, least=0)
        whole_number("length", length)
        needed_number("chunk_bytes", chunk_bytes)
        arguments = {
            "path": file_path(path),
            "version": self._version(version),
            **await self._tree(namespace),
        }
        found = streamed(
            self._caller,
            arguments,
            namespace,
            min(offset, _MOST_PLACE),
            None if length is None else min(length, _MOST_PLACE),
        )
        async with aclosing(found) as pieces:
            async for piece in pieces:
                for start in range(0, len(piece), chunk_bytes):
                    yield piece[start : start + chunk_bytes]

    async def exists(self, path: PathLike, *, namespace: str | None = None) -> bool:
        """Tell whether a file or a directory is there, as `Workspace.exists` does."""
        return await self._told("exists", any_path, path, namespace, decoding.boolean)

    async def is_dir(self, path: PathLike, *, namespace: str | None = None) -> bool:
        """Tell whether a directory is there, as `Workspace.is_dir` does."""
        return await self._told("is_dir", any_path, path, namespace, decoding.boolean)

    async def stat(self, path: PathLike, *, namespace: str | None = None) -> WorkspaceFile | None:
        """Return what is known of a file, without its content, as `Workspace.stat` does."""
        return await self._told("stat", file_path, path, namespace, decoding.file_or_none)

    async def _told(
        self,
        verb: str,
        checked: Callable[[PathLike], str],
        path: PathLike,
        namespace: str | None,
        decode: Callable[[Any], _T],
    ) -> _T:
        self._caller.core.enter()
        arguments = {"path": checked(path), **await self._tree(namespace)}
        return await self._caller.ask(verb, arguments, namespace, decode)

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
        """Search text and JSON line by line, as `Workspace.grep` does; the service searches, 10,000 results at most.

        Raises:
            InvalidInputError: Also a query of more than 4,096 characters, or more than 100 lines of context (``INVALID_ARGUMENT``).
        """
        self._caller.core.enter()
        check_flags(ignore_case=ignore_case, regex=regex, partial=partial)
        needed_number("max_results", max_results)
        needed_number("context_lines", context_lines, least=0)
        check_query(query)
        service_limit("query", len(query), _MOST_QUERY_CHARACTERS)
        service_limit("context_lines", context_lines, _MOST_CONTEXT_LINES)
        arguments = {
            "query": query,
            "path": None if path is None else scope_path(path),
            "ignore_case": ignore_case,
            "regex": regex,
            "max_results": min(max_results, MOST_ENTRIES),
            "context_lines": context_lines,
            "partial": partial,
            **await self._tree(namespace),
        }
        return await self._caller.ask("grep", arguments, namespace, _matches)

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
        """List artifacts by path, as `Workspace.artifacts` does."""
        self._caller.core.enter()
        check_attributes(status=status, kind=kind)
        whole_number("limit", limit)
        found: builtins.list[Artifact] = []
        arguments = {
            "status": status,
            "kind": kind,
            "path": None if path is None else scope_path(path),
            "after": None if after is None else any_path(after),
            **await self._tree(namespace),
        }
        while True:
            most = MOST_ENTRIES if limit is None else min(limit - len(found), MOST_ENTRIES)
            page = await self._caller.ask(
                "artifacts", {**arguments, "limit": most}, namespace, _artifacts
            )
            found += page
            if len(page) < most or len(found) == limit:
                return found
            arguments["after"] = page[-1].path
