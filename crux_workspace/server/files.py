"""A file's bytes, out and in: streamed, in ranges, and only on the conditions that the headers name."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import msgspec
from starlette.responses import Response, StreamingResponse

from crux_workspace.api.opening import inline_file
from crux_workspace.errors import ErrorCode, PathNotFoundError, VersionNotFoundError
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.jsontext import dump_compact
from crux_workspace.model.options import MOST
from crux_workspace.server.calls import Call, failed_precondition
from crux_workspace.server.changing import carry_out
from crux_workspace.server.partial import check_uri, check_versions
from crux_workspace.server.problems import Refusal
from crux_workspace.server.ranges import Span, matches, span_of, tags_in
from crux_workspace.server.wire import as_if_version, etag_of, json_answer

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace
    from crux_workspace.api.view import WorkspaceView

__all__ = ["get_file", "put_file", "resolve"]

_WHOLE_BYTES = 256 << 10
"""Up to this size a file is read at once; above it is streamed."""
_SAFE = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cache-control": "no-cache, private",
    "cross-origin-resource-policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class _Found:
    """A version of a file, and how to ask for its bytes."""

    path: str
    version: int
    size: int | None
    mime_type: str
    content_kind: str
    sha256: str | None
    etag: str | None
    data: bytes | None = None
    """The bytes, where they were read along."""


async def get_file(call: Call) -> Response:
    """Answer a file's bytes, a range of them, or that the client has them already."""
    given = {"path": call.query.path, "version": call.query.version}
    staged = call.transaction is not None
    await check_versions(call.principal, call.workspace, "read", given, staged=staged)
    if staged or call.query.form != "bytes":
        return await _whole_file(call)
    tree = call.tree
    found = await _find(call, tree)
    headers = _headers(found)
    if found.etag is not None:
        _check_match(call, found)
        if matches(call.request.headers.get("if-none-match"), found.etag):
            return Response(status_code=304, headers=headers)
    if found.size is None:
        return await _unsized(call, tree, found, headers)
    span = _wanted(call, found, found.size)
    if span.partial:
        headers["content-range"] = span.content_range
    headers["content-length"] = str(span.length)
    return await _sent(call, tree, found, span, headers)


def _check_match(call: Call, found: _Found) -> None:
    wanted = call.request.headers.get("if-match")
    if wanted is not None and wanted.strip() != "*" and found.etag not in tags_in(wanted):
        raise failed_precondition(found.path, found.version)


def _wanted(call: Call, found: _Found, size: int) -> Span:
    headers = call.request.headers
    condition = headers.get("if-range")
    counts = found.etag is not None and condition in (None, found.etag)
    return span_of(headers.get("range") if counts else None, size)


async def _sent(
    call: Call,
    tree: Workspace | WorkspaceView,
    found: _Found,
    span: Span,
    headers: dict[str, str],
) -> Response:
    status = 206 if span.partial else 200
    if call.request.method == "HEAD" or span.length == 0:
        return Response(status_code=status, headers=headers)
    if found.data is not None:
        data = found.data[span.offset : span.offset + span.length]
        return Response(data, status, headers)
    body = _body(call, tree, found, span)
    if span.length <= _WHOLE_BYTES:
        return Response(b"".join([chunk async for chunk in body]), status, headers)
    return StreamingResponse(await _begun(body), status, headers)


async def _find(call: Call, tree: Workspace | WorkspaceView) -> _Found:
    path, version = call.query.path, call.query.version
    if version is not None and call.query.at is not None:
        raise Refusal(400, "A request names a version of a file or a past tree, not both.")
    data = None
    inline = await inline_file(tree, path) if version is None else None
    if inline is None:
        file = await tree.stat(path)
    else:
        file, data = inline.file, inline.data
    if version is not None and (file is None or file.version != version):
        return await _older(call, file, version)
    if file is None:
        await tree.read(path, max_inline_bytes=0)  # says why there is none
        raise PathNotFoundError(f"There is no file at {path}.", details={"path": path})
    known = file.storage != "virtual"
    return _Found(
        file.path,
        file.version,
        file.size if known else None,
        file.mime_type,
        file.content_kind,
        file.sha256,
        etag_of(file) if known and file.id else None,
        data,
    )


async def _older(call: Call, file: WorkspaceFile | None, version: int) -> _Found:
    """Find an older version, of a deleted file too; a file's id is not known once it is deleted."""
    path, workspace = call.query.path, call.workspace
    entries = await workspace.history(path, limit=1, before=min(version, MOST - 1) + 1)
    if not entries or entries[0].version != version or entries[0].operation == "delete":
        await workspace.read(path, version=version, max_inline_bytes=0)  # says why there is none
        raise VersionNotFoundError(
            f"{path} has no version {version}.", details={"path": path, "version": version}
        )
    entry = entries[0]
    name = entry.sha256 if file is None else file.id
    return _Found(
        path,
        version,
        entry.size,
        entry.mime_type,
        entry.content_kind,
        entry.sha256,
        f'"{name}.{version}"',
    )


def _headers(found: _Found) -> dict[str, str]:
    mime = found.mime_type
    if not mime.isascii() or any(char in mime for char in '"\\\r\n,') or "/" not in mime:
        mime = "application/octet-stream"
    if found.content_kind == "text" and mime.startswith("text/") and "charset" not in mime:
        mime += "; charset=utf-8"
    name = quote(found.path.rpartition("/")[2], safe="")
    headers = _SAFE | {
        "content-type": mime,
        "content-disposition": f"attachment; filename*=UTF-8''{name}",
        "x-workspace-kind": found.content_kind,
        "x-workspace-version": str(found.version),
    }
    if found.etag is not None:
        headers |= {"etag": found.etag, "accept-ranges": "bytes"}
    if found.sha256 is not None:
        headers["x-workspace-sha256"] = found.sha256
    return headers


async def _body(
    call: Call, tree: Workspace | WorkspaceView, found: _Found, span: Span
) -> AsyncIterator[bytes]:
    """Iterate over the bytes of the very version that the headers tell of."""
    version = None if call.query.at is not None else found.version
    stream = tree.stream(
        found.path, version=version, offset=span.offset, length=span.length, chunk_bytes=1 << 18
    )
    async with aclosing(cast("Any", stream)) as chunks:
        async for chunk in chunks:
            yield chunk


async def _begun(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Wait for the first chunk, so that what cannot be opened is still refused with a status."""
    first = await anext(body, b"")

    async def chunks() -> AsyncIterator[bytes]:
        async with aclosing(cast("Any", body)):
            yield first
            async for chunk in body:
                yield chunk

    return chunks()


async def _whole_file(call: Call) -> Response:
    """Answer a file's text or JSON value, or what of it the open transaction sees."""
    verb = f"read_{call.query.form}"
    given = {"path": call.query.path, "version": call.query.version}
    if call.transaction is None:
        found = await getattr(call.tree, verb)(given["path"], version=given["version"])
    else:
        found = await call.service.transactions.run(call, verb, given)
    kind = "application/octet-stream"
    if verb == "read_text":
        found, kind = found.encode(), "text/plain; charset=utf-8"
    elif verb == "read_json":
        found, kind = dump_compact(found), "application/json"
    headers = _SAFE | {"content-disposition": "attachment"}
    return Response(found, headers=headers, media_type=kind)


async def _unsized(
    call: Call, tree: Workspace | WorkspaceView, found: _Found, headers: dict[str, str]
) -> Response:
    """Answer a file that a source shows: its size and version are the source's secret until it is read."""
    if call.request.method == "HEAD":
        return Response(status_code=200, headers=headers)
    body = tree.stream(found.path)
    return StreamingResponse(await _begun(body), 200, headers)


# -- in


async def put_file(call: Call) -> Response:
    """Write the body to a file."""
    query, request = call.query, call.request
    kind = query.kind or _kind_of(request.headers.get("content-type", ""))
    given: dict[str, Any] = {
        "path": query.path,
        "mime_type": query.mime_type,
        "metadata": _metadata(query.metadata),
        "status": query.status,
        "kind": query.artifact_kind,
        "if_version": _expected(query.if_version, query.path),
    }
    if kind == "json":
        given["content"] = _json_of(await call.whole_body(call.service.limits.max_json_bytes))
    else:
        given["content"] = call.body_chunks(call.service.limits.max_body_bytes)
        given["encoding"] = "utf-8" if kind == "text" else None
    file = await carry_out(call, "write", given)
    status = 201 if file.version == 1 else 200
    return json_answer(file, status, {"etag": etag_of(file)})


def _expected(text: str | None, path: str) -> int | WorkspaceFile | None:
    """Return the version that the query expects."""
    return as_if_version(int(text) if text is not None and text.isdigit() else text, path)


def _kind_of(content_type: str) -> str:
    mime = content_type.partition(";")[0].strip().lower()
    if mime == "application/json":
        return "json"
    return "text" if mime.startswith("text/") else "binary"


def _metadata(text: str | None) -> dict[str, Any] | None:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        raise Refusal(
            400, "The parameter metadata is no JSON object.", details={"option": "metadata"}
        ) from None


def _json_of(body: bytes) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise Refusal(
            400, "The body is not valid JSON in UTF-8.", code=ErrorCode.INVALID_CONTENT
        ) from None


# -- by URI


async def resolve(call: Call) -> Response:
    """Answer the bytes behind an artifact's URI."""
    workspace, uri = call.workspace, call.query.uri
    await check_uri(call.principal, workspace, uri)
    data = await workspace.resolve(uri)
    headers = _SAFE | {"content-disposition": "attachment"}
    return Response(data, headers=headers, media_type="application/octet-stream")
