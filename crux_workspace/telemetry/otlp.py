"""OTLP over HTTP, protobuf and JSON: only what a version marker says is taken from it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.extras import need_extra
from crux_workspace.model.values import Value
from crux_workspace.telemetry.attributes import OPERATION, PATH_HASH, VERSION
from crux_workspace.telemetry.recorder import VERSION_SPAN

__all__ = ["JSON", "PROTOBUF", "Marker", "markers_of"]

PROTOBUF = "application/x-protobuf"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Marker(Value):
    """One recorded version, as its marker told."""

    path_hash: str
    version: int
    operation: str
    trace_id: str
    span_id: str
    at: int
    """ms since the epoch."""


class _AnyValue(msgspec.Struct, rename="camel"):
    string_value: str | None = None
    int_value: int | str | None = None


class _Attribute(msgspec.Struct):
    key: str
    value: _AnyValue = msgspec.field(default_factory=_AnyValue)


class _Span(msgspec.Struct, rename="camel"):
    name: str = ""
    trace_id: str = ""
    span_id: str = ""
    start_time_unix_nano: str | int = 0
    attributes: list[_Attribute] = []


class _Scope(msgspec.Struct):
    spans: list[_Span] = []


class _Resource(msgspec.Struct, rename="camel"):
    scope_spans: list[_Scope] = []


class _Export(msgspec.Struct, rename="camel"):
    resource_spans: list[_Resource] = []


def markers_of(export: bytes, media_type: str) -> list[Marker]:
    """Return the version markers among the spans of an export; malformed ones are passed over.

    Args:
        export: The body of an OTLP/HTTP request, unpacked.
        media_type: `PROTOBUF` or `JSON`.

    Raises:
        InvalidInputError: It is no such export (``INVALID_ARGUMENT``).
        UnsupportedError: Protobuf needs the extra ``server`` (``CAPABILITY_MISSING``).
    """
    spans = _protobuf_spans(export) if media_type == PROTOBUF else _json_spans(export)
    return [marker for marker in map(_marker, spans) if marker is not None]


def _json_spans(body: bytes) -> Iterator[_Span]:
    try:
        export = msgspec.json.decode(body, type=_Export)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise InvalidInputError("The body is no OTLP export in JSON.") from None
    for resource in export.resource_spans:
        for scope in resource.scope_spans:
            yield from scope.spans


def _protobuf_spans(body: bytes) -> Iterator[_Span]:
    need_extra("opentelemetry.proto", "server")
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    export: Any = ExportTraceServiceRequest()
    try:
        export.ParseFromString(body)
    except DecodeError:
        raise InvalidInputError("The body is no OTLP export in protobuf.") from None
    for resource in export.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield _Span(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.start_time_unix_nano,
                    [
                        _Attribute(
                            each.key, _AnyValue(each.value.string_value, each.value.int_value)
                        )
                        for each in span.attributes
                        if each.key in (PATH_HASH, VERSION, OPERATION)
                    ],
                )


def _marker(span: _Span) -> Marker | None:
    """Return what a version marker says; None for every other span, and for one that is malformed."""
    if span.name != VERSION_SPAN:
        return None
    found = {each.key: each.value for each in span.attributes}
    try:
        path_hash = found[PATH_HASH].string_value or ""
        operation = found[OPERATION].string_value or ""
        version = int(found[VERSION].int_value or 0)
        at = int(span.start_time_unix_nano) // 1_000_000
    except (KeyError, ValueError):
        return None
    if not path_hash.startswith("hash:") or len(path_hash) > 100 or version < 1:
        return None
    return Marker(path_hash, version, operation[:40], span.trace_id[:32], span.span_id[:16], at)
