"""Files as MCP resources: their URIs, their content, and the completion of paths."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from mcp import types
from mcp.shared.exceptions import MCPError

from crux_workspace.errors import InvalidInputError, WorkspaceError
from crux_workspace.model.contents import BinaryContent, JsonContent
from crux_workspace.model.files import WorkspaceFile, known_size
from crux_workspace.model.jsontext import dump_compact, pretty
from crux_workspace.model.sendable import writable
from crux_workspace.model.streams import at_most

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace

__all__ = ["FILE_TEMPLATE", "VERSION_TEMPLATE", "Resources", "uri_of"]

SCHEME = "workspace"
FILE_TEMPLATE = "workspace:///{+path}"
VERSION_TEMPLATE = "workspace:///{+path}?version={version}"
MAX_RESOURCE_BYTES = 16 << 20
"""Largest file that is handed out as a resource."""
FAILED_KEY = "crux-workspace/failed"
"""Where the metadata of a list of resources names the mounts that are left out, with a code each."""
_VERSION = re.compile(r"[0-9]{0,18}").fullmatch
_PAGE = 100
_NOT_FOUND = -32002
_COMPLETIONS = 100


def uri_of(path: str, version: int | None = None) -> str:
    """Return the URI of a file, or of one of its versions."""
    query = "" if version is None else f"?version={version}"
    return f"{SCHEME}://{quote(path)}{query}"


def _place(uri: str) -> tuple[str, int | None]:
    """Return the path and the version that a URI names.

    Raises:
        MCPError: It is none of ours.
    """
    try:
        parts = urlsplit(uri)
        version = parse_qs(parts.query).get("version", [""])[-1]
        if parts.scheme == SCHEME and not parts.netloc and parts.path and _VERSION(version):
            return unquote(parts.path), int(version) if version else None
    except ValueError:
        pass  # it looks like a URI and is none
    raise MCPError(
        types.INVALID_PARAMS, f"{writable(uri[:200])} is not of the form {FILE_TEMPLATE}."
    )


class Resources:
    """The files of one workspace, bound to its namespace, as resources."""

    def __init__(self, workspace: Workspace) -> None:
        self._ws = workspace

    async def page(self, cursor: str | None) -> types.ListResourcesResult:
        """List files, a page at a time; mounts whose source fails are left out and named in the result's metadata."""
        try:
            found = await self._ws.list(
                "/", recursive=True, limit=_PAGE, cursor=cursor, partial=True
            )
        except WorkspaceError as error:
            raise _refused(error) from error
        resources = [self._told(entry) for entry in found if isinstance(entry, WorkspaceFile)]
        failed: dict[str, Any] = {FAILED_KEY: dict(found.failed)}
        return types.ListResourcesResult(
            resources=resources,
            next_cursor=found.cursor,
            _meta=failed if found.failed else None,
        )

    def _told(self, file: WorkspaceFile) -> types.Resource:
        return types.Resource(
            uri=uri_of(file.path),
            name=file.path,
            mime_type=file.mime_type,
            size=known_size(file),
            description=None
            if file.status is None
            else f"{file.status} {file.artifact_kind or 'artifact'}",
        )

    def templates(self) -> types.ListResourceTemplatesResult:
        """Say how resources are named."""
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=FILE_TEMPLATE, name="file", description="A file as it is now."
                ),
                types.ResourceTemplate(
                    uri_template=VERSION_TEMPLATE,
                    name="version",
                    description="An older version of a file.",
                ),
            ]
        )

    async def read(self, uri: str) -> types.ReadResourceResult:
        """Return a file's content: text as text, binary in base64; never more than `MAX_RESOURCE_BYTES` of it are held.

        Raises:
            MCPError: There is none, or it is too large.
        """
        path, version = _place(uri)
        try:
            return types.ReadResourceResult(contents=[await self._body(uri, path, version)])
        except WorkspaceError as error:
            raise _refused(error) from error

    async def _body(
        self, uri: str, path: str, version: int | None
    ) -> types.TextResourceContents | types.BlobResourceContents:
        if version is None:
            file = await self._ws.stat(path)
            if file is not None and file.size > MAX_RESOURCE_BYTES:
                raise _too_large(path, file.size)
        else:
            for entry in await self._ws.history(path, limit=1, before=version + 1):
                if entry.version == version and entry.size > MAX_RESOURCE_BYTES:
                    raise _too_large(path, entry.size)
        content = await self._ws.read(path, version=version, max_inline_bytes=MAX_RESOURCE_BYTES)
        if isinstance(content, BinaryContent):
            data = await self._bytes(path, version)
            return types.BlobResourceContents(
                uri=uri, mime_type=content.mime_type, blob=base64.b64encode(data).decode()
            )
        if isinstance(content, JsonContent):
            text = await asyncio.to_thread(lambda: pretty(dump_compact(content.content)))
        else:
            text = content.content
        if len(text) > MAX_RESOURCE_BYTES or getattr(content, "truncated", False):
            raise _too_large(path, max(content.size, len(text)))
        return types.TextResourceContents(uri=uri, mime_type=content.mime_type, text=text)

    async def _bytes(self, path: str, version: int | None) -> bytes:
        """Gather a file's bytes, however many it is said to have."""
        stream = self._ws.stream(path, version=version, length=MAX_RESOURCE_BYTES + 1)
        found = await at_most(stream, MAX_RESOURCE_BYTES)
        if found is None:
            raise _too_large(path, MAX_RESOURCE_BYTES + 1)
        return found

    async def path_of(self, uri: str) -> str:
        """Return the path that a subscription is about.

        Raises:
            MCPError: It is outside the mounts, or no URI of ours.
        """
        path, _ = _place(uri)
        try:
            await self._ws.exists(path)
        except WorkspaceError as error:
            raise _refused(error) from error
        return path

    # -- completion

    async def complete(
        self, argument: types.CompletionArgument, context: types.CompletionContext | None
    ) -> types.Completion:
        """Return what may be meant by the beginning of a path, or of a version."""
        try:
            if argument.name == "path":
                return await self._paths(argument.value)
            if argument.name == "version":
                path = ((None if context is None else context.arguments) or {}).get("path", "")
                return await self._versions(path, argument.value)
        except WorkspaceError:
            pass  # what cannot be a path has no completion
        return types.Completion(values=[])

    async def _paths(self, value: str) -> types.Completion:
        beginning = "/" + value.lstrip("/")
        directory = beginning[: beginning.rfind("/")] or "/"
        values: list[str] = []
        cursor: str | None = None
        for _ in range(20):
            page = await self._ws.list(directory, glob=False, limit=500, cursor=cursor)
            for entry in page:
                if entry.path.startswith(beginning):
                    slash = "/" if entry.kind == "directory" else ""
                    values.append(entry.path.lstrip("/") + slash)
            cursor = page.cursor
            if cursor is None or len(values) > _COMPLETIONS:
                break
        more = cursor is not None or len(values) > _COMPLETIONS
        return types.Completion(values=values[:_COMPLETIONS], has_more=more)

    async def _versions(self, path: str, value: str) -> types.Completion:
        history = await self._ws.history("/" + path.lstrip("/"), limit=1_000)
        values = [str(entry.version) for entry in history if str(entry.version).startswith(value)]
        return types.Completion(values=values[:_COMPLETIONS], has_more=len(values) > _COMPLETIONS)


def _too_large(path: str, size: int) -> InvalidInputError:
    return InvalidInputError(
        f"{path} has {size} bytes or more; a resource has at most {MAX_RESOURCE_BYTES}.",
        details={"path": path, "size": size, "limit": MAX_RESOURCE_BYTES},
        hint="Read it with the tools, window by window.",
    )


def _refused(error: WorkspaceError) -> MCPError:
    """Turn an error into the protocol's, with the code and the hint as data."""
    missing = error.code in ("FILE_NOT_FOUND", "VERSION_NOT_FOUND", "VERSION_EXPIRED")
    code = (
        _NOT_FOUND
        if missing
        else types.INVALID_PARAMS
        if isinstance(error, InvalidInputError)
        else types.INTERNAL_ERROR
    )
    data = {"code": error.code.value, "hint": error.hint}
    return MCPError(code, writable(error.message), writable(data))
