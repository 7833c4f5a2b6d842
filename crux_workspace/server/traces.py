"""Spans that others export: their version markers are kept, and files' versions are told from them alone."""

from __future__ import annotations

import zlib
from collections import OrderedDict

from starlette.responses import Response

from crux_workspace.server.calls import Call
from crux_workspace.server.naming import visible_namespaces
from crux_workspace.server.problems import Refusal, too_large
from crux_workspace.server.shapes import NamespacesQuery
from crux_workspace.server.wire import json_answer
from crux_workspace.telemetry.otlp import JSON, PROTOBUF, Marker, markers_of

__all__ = ["TraceBook", "receive_traces", "trace_versions"]

_MOST = 50_000


class TraceBook:
    """The newest version markers of each sender, each once: what one sends replaces nothing of another's, nor displaces what is less."""

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: dict[str | None, OrderedDict[tuple[str, str], Marker]] = {}
        self._count = 0

    def add(self, marker: Marker, sender: str | None) -> None:
        """Keep a marker; when there are too many, the oldest one goes of who has the most."""
        own = self._kept.setdefault(sender, OrderedDict())
        self._count -= len(own)
        own[marker.trace_id, marker.span_id] = marker
        self._count += len(own)
        while self._count > self._most:
            max(self._kept.values(), key=len).popitem(last=False)
            self._count -= 1

    def seen_by(self, sender: str | None, *, limited: bool) -> dict[str, list[Marker]]:
        """Return markers by path hash; who may not see everything is shown what it sent itself."""
        senders = [sender] if limited else list(self._kept)
        found: dict[str, list[Marker]] = {}
        for name in senders:
            for marker in self._kept.get(name, {}).values():
                found.setdefault(marker.path_hash, []).append(marker)
        return found


async def receive_traces(call: Call) -> Response:
    """Take in an export of spans.

    Raises:
        Refusal: It is too large, or of another type.
    """
    headers = call.request.headers
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in (PROTOBUF, JSON):
        raise Refusal(415, f"Spans come as {PROTOBUF} or {JSON}.")
    limit = call.service.limits.max_trace_bytes
    body = await call.whole_body(limit, encodings=("gzip",))
    if headers.get("content-encoding", "").lower() == "gzip":
        body = _unpacked(body, limit)
    for marker in markers_of(body, kind):
        call.service.traces.add(marker, call.principal.name)
    return Response(b"" if kind == PROTOBUF else b"{}", media_type=kind)


def _unpacked(body: bytes, limit: int) -> bytes:
    try:
        unpacking = zlib.decompressobj(wbits=31)
        data = unpacking.decompress(body, limit + 1)
    except zlib.error:
        raise Refusal(400, "The body is not gzip.") from None
    if len(data) > limit:
        raise too_large(limit)
    if not unpacking.eof:
        raise Refusal(400, "The body is not whole.")
    return data


async def trace_versions(call: Call) -> Response:
    """Answer the versions of each file that a marker tells of, newest first, by the files' labels."""
    principal, service = call.principal, call.service
    found = service.traces.seen_by(principal.name, limited=principal.limited)
    paths = await service.labels.find(principal, await _namespaces(call)) if found else {}
    files = []
    for path_hash, markers in found.items():
        markers.sort(key=lambda one: (one.version, one.at), reverse=True)
        path = paths.get(path_hash)
        files.append(
            {
                "path": path,
                "label": path or path_hash,
                "path_hash": path_hash,
                "versions": [one.to_dict() for one in markers],
            }
        )
    files.sort(key=lambda file: (file["path"] is None, str(file["label"])))
    return json_answer({"files": files})


async def _namespaces(call: Call) -> list[str]:
    if call.query.namespace is not None:
        return [call.namespace]
    page = await visible_namespaces(call.principal, NamespacesQuery())
    return page.names
