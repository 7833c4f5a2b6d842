"""From arguments to what the wire takes: paths, versions, contents."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.edits import Edit
from crux_workspace.model.files import IfVersion, WorkspaceFile, check_expected
from crux_workspace.model.globs import has_glob
from crux_workspace.model.jsontext import dump_compact
from crux_workspace.model.labels import check_label
from crux_workspace.model.paths import PathLike, normalise, normalise_directory_hint, normalise_file
from crux_workspace.model.sendable import writable
from crux_workspace.model.streams import check_encoding, chunks_of, is_stream, utf8

__all__ = [
    "Payload",
    "any_path",
    "body_of",
    "edit_fields",
    "expected_field",
    "file_path",
    "held",
    "payload_of",
    "put_fields",
    "scope_path",
    "sendable_text",
    "service_limit",
    "version_field",
]


_IN_JSON_BYTES = 256 << 10
"""Content above this is streamed instead of being put into a JSON body."""
_NO_ID = "0" * 32
_PIECE = 1 << 18
_MAX_QUERY_METADATA = 8_000


# -- paths: refused here with the very errors of a local workspace, and sent as they were given


def file_path(path: PathLike) -> str:
    """Return a path that must name a file."""
    normalise_file(path)
    return str(path)


def any_path(path: PathLike) -> str:
    """Return a path that names a file or a directory."""
    normalise_directory_hint(path)
    return str(path)


def scope_path(path: PathLike) -> str:
    """Return a path that may be a directory or a glob."""
    if has_glob(path):
        normalise(path)
        return str(path)
    return any_path(path)


# -- what the service takes less of than a local workspace


def service_limit(name: str, value: int, most: int) -> None:
    """Refuse what a service would: an option that is larger than requests may say (``INVALID_ARGUMENT``)."""
    if value > most:
        raise InvalidInputError(
            f"{name} can be at most {most:,} over HTTP, and more was given.",
            details={"option": name, "limit": most},
        )


def sendable_text(value: object) -> str | None:
    """Return what was handed out as text once, such as a cursor, so that the service can judge it whatever it is; None for None."""
    return None if value is None else writable(str(value))


# -- what a change expects


def version_field(if_version: IfVersion) -> int | str | None:
    """Return an expected version as the wire has it: a number, or ``<id>.<version>`` of the very file.

    Raises:
        InvalidInputError: It is neither (``INVALID_ARGUMENT``).
    """
    check_expected(if_version)
    if isinstance(if_version, WorkspaceFile):
        return f"{if_version.id or _NO_ID}.{if_version.version}"
    return if_version


def expected_field(if_version: IfVersion, idempotency_key: str | None) -> int | str | None:
    """Return the expected version of a change, both of its guards checked."""
    if idempotency_key is not None:
        check_label("idempotency_key", idempotency_key)
    return version_field(if_version)


def edit_fields(edits: Sequence[Edit]) -> list[dict[str, Any]]:
    """Return edits as the wire has them."""
    return [asdict(edit) for edit in edits]


# -- bodies


def body_of(arguments: Mapping[str, Any]) -> bytes:
    """Return the JSON body of a request.

    Raises:
        InvalidInputError: An argument is of a type that no verb takes (``INVALID_ARGUMENT``).
    """
    try:
        return json.dumps(dict(arguments), allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError):
        raise InvalidInputError("An argument is of a type that this call does not take.") from None


@dataclass(frozen=True, slots=True)
class Payload:
    """Content on its way: as fields of a JSON body, or as a stream."""

    fields: dict[str, Any] = field(default_factory=dict, repr=False)
    stream: Callable[[], AsyncIterator[bytes]] | None = field(default=None, repr=False)
    kind: str = "binary"
    """What the bytes of the stream are."""
    repeats: bool = True
    """The stream can be made anew."""


def payload_of(path: str, content: Any, encoding: str | None) -> Payload:  # noqa: ANN401
    """Return content as it is sent; a stream is read when it is, and only once.

    Raises:
        InvalidInputError: It is no content, or a bad encoding (``INVALID_CONTENT``, ``INVALID_ARGUMENT``).
    """
    check_encoding(encoding)
    kind = "binary" if encoding is None else "text"
    if isinstance(content, str):
        data = utf8(path, content)
        if len(data) > _IN_JSON_BYTES:
            return Payload(stream=lambda: _pieces(data), kind="text")
        return Payload({"content": str.__str__(content)})
    if isinstance(content, bytes | bytearray | memoryview):
        data = bytes(content)
        if len(data) > _IN_JSON_BYTES:
            return Payload(stream=lambda: _pieces(data), kind=kind)
        encoded = {"content_base64": base64.b64encode(data).decode()}
        return Payload(encoded if encoding is None else {**encoded, "encoding": encoding})
    if is_stream(content):
        return _streamed(path, content, kind)
    dump_compact(content)
    return Payload({"content": content})


def _streamed(path: str, content: Any, kind: str) -> Payload:  # noqa: ANN401
    """A file that can seek is sent again from where it stood; any other stream only once."""
    start = _place_of(content)
    if start is None:
        return Payload(stream=lambda: chunks_of(path, content), kind=kind, repeats=False)

    def again() -> AsyncIterator[bytes]:
        content.seek(start)
        return chunks_of(path, content)

    return Payload(stream=again, kind=kind)


def _place_of(content: Any) -> int | None:  # noqa: ANN401
    if hasattr(content, "__aiter__"):
        return None
    try:
        place = content.tell() if content.seekable() else None
    except (AttributeError, OSError, ValueError):
        return None
    return place if isinstance(place, int) else None


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _PIECE):
        yield data[start : start + _PIECE]


async def held(path: str, content: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return content as fields of a JSON body, a stream read whole."""
    payload = payload_of(path, content, None)
    if payload.stream is None:
        return payload.fields
    data = b"".join([chunk async for chunk in payload.stream()])
    if payload.kind == "text":
        return {"content": data.decode()}
    return {"content_base64": base64.b64encode(data).decode()}


def put_fields(payload: Payload, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the query parameters beside a streamed content.

    Raises:
        InvalidInputError: The metadata is too large for that (``INVALID_ARGUMENT``).
    """
    fields = {**arguments, "kind": payload.kind, "artifact_kind": arguments["kind"]}
    if arguments["metadata"] is not None:
        text = dump_compact(arguments["metadata"]).decode()
        if len(quote(text)) > _MAX_QUERY_METADATA:
            raise InvalidInputError(
                "The metadata is too large to be sent beside a streamed content.",
                details={"option": "metadata"},
                hint="Write the content first, then call set with the metadata.",
            )
        fields["metadata"] = text
    return fields
