"""The methods of versions, commits and upkeep."""

from __future__ import annotations

import builtins

from crux_workspace.errors import InvalidInputError
from crux_workspace.http import decoding
from crux_workspace.http.connection import Answer, Request, whole
from crux_workspace.http.files import check_bytes
from crux_workspace.http.reading import MOST_ENTRIES
from crux_workspace.http.sending import (
    any_path,
    expected_field,
    file_path,
    sendable_text,
    service_limit,
)
from crux_workspace.http.writing import HttpWrites
from crux_workspace.model.diffs import FileDiff
from crux_workspace.model.files import GcReport, IfVersion, NamespacePage, Usage, WorkspaceFile
from crux_workspace.model.options import MOST, check_flags, needed_number, ordinal, whole_number
from crux_workspace.model.paths import PathLike, check_namespace, check_namespace_prefix
from crux_workspace.model.versions import CommitEntry, VersionEntry

__all__ = ["HttpVersions"]

_MOST_COMMITS = 1_000
_MOST_NAMES = 1_000
_MOST_CONTEXT_LINES = 10_000
_MOST_COMMIT_CHARACTERS = 1_024
_MOST_URI_CHARACTERS = 8_192
"""No commit and no URI is that long: what is cut off there names nothing either way."""
_diff = decoding.of(FileDiff)
_entries = decoding.several(VersionEntry)
_commit = decoding.of(CommitEntry)
_commits = decoding.several(CommitEntry)
_usage = decoding.of(Usage)
_names = decoding.of(NamespacePage)
_report = decoding.of(GcReport)


class HttpVersions(HttpWrites):
    """History, undo and redo, the commit log, namespaces and collection over HTTP."""

    async def history(
        self,
        path: PathLike,
        *,
        limit: int | None = None,
        before: int | None = None,
        namespace: str | None = None,
    ) -> builtins.list[VersionEntry]:
        """Return a file's versions, newest first, as `Workspace.history` does."""
        self._caller.core.enter()
        whole_number("limit", limit)
        whole_number("before", before, least=1)
        where = file_path(path)
        found: builtins.list[VersionEntry] = []
        while True:
            most = MOST_ENTRIES if limit is None else min(limit - len(found), MOST_ENTRIES)
            arguments = {
                "path": where,
                "limit": most,
                "before": None if before is None else min(before, MOST),
            }
            page = await self._caller.ask("history", arguments, namespace, _entries)
            found += page
            if len(page) < most or len(found) == limit or page[-1].version <= 1:
                return found
            before = page[-1].version

    async def diff(
        self,
        path: PathLike,
        *,
        from_version: int | None = None,
        to_version: int | None = None,
        context_lines: int = 3,
        namespace: str | None = None,
    ) -> FileDiff:
        """Compare two versions of a text or JSON file, as `Workspace.diff` does.

        Raises:
            InvalidInputError: Also more than 10,000 lines of context (``INVALID_ARGUMENT``).
        """
        self._caller.core.enter()
        ordinal("from_version", from_version)
        ordinal("to_version", to_version)
        needed_number("context_lines", context_lines, least=0)
        service_limit("context_lines", context_lines, _MOST_CONTEXT_LINES)
        arguments = {
            "path": file_path(path),
            "from_version": from_version,
            "to_version": to_version,
            "context_lines": context_lines,
        }
        return await self._caller.ask("diff", arguments, namespace, _diff)

    async def undo(
        self,
        path: PathLike,
        *,
        to_version: int | None = None,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Bring back the content the file had before its latest change, as `Workspace.undo` does."""
        self._caller.core.enter()
        ordinal("to_version", to_version)
        arguments = {
            "path": file_path(path),
            "to_version": to_version,
            "if_version": expected_field(if_version, idempotency_key),
        }
        return await self._change("undo", arguments, namespace, idempotency_key, decoding.file)

    async def redo(
        self,
        path: PathLike,
        *,
        if_version: IfVersion = None,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> WorkspaceFile:
        """Take back an undo, as `Workspace.redo` does."""
        self._caller.core.enter()
        arguments = {
            "path": file_path(path),
            "if_version": expected_field(if_version, idempotency_key),
        }
        return await self._change("redo", arguments, namespace, idempotency_key, decoding.file)

    async def resolve(self, uri: str, *, namespace: str | None = None) -> bytes:
        """Open the bytes behind an artifact's URI, as `Workspace.resolve` does."""
        self._caller.core.enter()
        given: object = uri
        if not isinstance(given, str):
            raise InvalidInputError("uri must be a string.", details={"option": "uri"})
        shown = sendable_text(uri[:_MOST_URI_CHARACTERS])
        query = await self._caller.query(namespace, {"uri": shown})
        request = Request("GET", "/v1/resolve", query, self._caller.headers())

        async def take(answer: Answer) -> bytes:
            check_bytes(answer)
            return await whole(answer.body)

        data: bytes = await self._caller.core.connection.send(request, take)
        return data

    async def log(
        self,
        *,
        path: PathLike | None = None,
        limit: int = 50,
        cursor: str | None = None,
        namespace: str | None = None,
    ) -> builtins.list[CommitEntry]:
        """Return the commits of a namespace, newest first, as `Workspace.log` does."""
        self._caller.core.enter()
        needed_number("limit", limit, least=0)
        where = None if path is None else any_path(path)
        found: builtins.list[CommitEntry] = []
        while True:
            most = min(limit - len(found), _MOST_COMMITS)
            arguments = {"path": where, "limit": most, "cursor": sendable_text(cursor)}
            page = await self._caller.ask("log", arguments, namespace, _commits)
            found += page
            if len(page) < most or len(found) >= limit:
                return found
            cursor = page[-1].cursor

    async def undo_commit(
        self,
        commit: str | CommitEntry,
        *,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> CommitEntry:
        """Reverse all changes of a commit with one new commit, as `Workspace.undo_commit` does."""
        self._caller.core.enter()
        wanted: object = commit.commit if isinstance(commit, CommitEntry) else commit
        if not isinstance(wanted, str):
            raise InvalidInputError("commit must be a commit's string or a CommitEntry.")
        arguments = {"commit": sendable_text(wanted[:_MOST_COMMIT_CHARACTERS])}
        return await self._change("undo_commit", arguments, namespace, idempotency_key, _commit)

    async def usage(self, *, namespace: str | None = None) -> Usage:
        """Return what a namespace holds, as `Workspace.usage` does."""
        return await self._caller.ask("usage", {}, namespace, _usage)

    async def namespaces(
        self, prefix: str = "", *, limit: int = 100, cursor: str | None = None
    ) -> NamespacePage:
        """List the namespaces of the workspace, as `Workspace.namespaces` does; those that the token may use."""
        self._caller.core.enter()
        check_namespace_prefix(prefix)
        needed_number("limit", limit)
        names: builtins.list[str] = []
        while True:
            most = min(limit - len(names), _MOST_NAMES)
            arguments = {"prefix": prefix, "limit": most, "cursor": sendable_text(cursor)}
            page = await self._caller.ask_unbound("namespaces", arguments, _names)
            names += page.names
            cursor = page.cursor
            if cursor is None or not page.names or len(names) >= limit:
                return NamespacePage(names, cursor)

    async def drop_namespace(self, name: str) -> None:
        """Remove a namespace whole and at once, as `Workspace.drop_namespace` does.

        A lost answer is not asked for again, for the namespace may be in use anew (``STORE_TIMEOUT``, ``STORE_UNAVAILABLE``).
        """
        self._caller.core.enter()
        await self._caller.change_unbound("drop_namespace", {"name": check_namespace(name)})

    async def gc(self, dry_run: bool = True, *, namespace: str | None = None) -> GcReport:
        """Collect what nothing needs any more, as `Workspace.gc` does."""
        self._caller.core.enter()
        check_flags(dry_run=dry_run)
        return await self._change("gc", {"dry_run": dry_run}, namespace, None, _report)
