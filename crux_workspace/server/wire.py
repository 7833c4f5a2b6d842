"""From HTTP to arguments and back: query strings, JSON bodies, ETags, moments, and answers."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, Struct
from starlette.responses import Response

from crux_workspace.errors import ErrorCode
from crux_workspace.model.edits import Edit
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.values import Value
from crux_workspace.server.problems import Refusal

__all__ = [
    "arguments_of",
    "as_if_version",
    "check_charset",
    "content_of",
    "convert_operation",
    "decode_body",
    "etag_of",
    "json_answer",
    "moment_of",
    "parse_query",
    "plain",
]

S = TypeVar("S", bound=Struct)

_UTF8 = ("utf-8", "utf8", "us-ascii")
_NO_STORE = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_encode = msgspec.json.Encoder().encode
_encode_large = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def parse_query(raw: bytes, kind: type[S]) -> S:
    """Return a query string as the parameters of a route.

    Raises:
        Refusal: A parameter is unknown, there twice, malformed or no UTF-8.
    """
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, strict_parsing=bool(raw), errors="strict"
        )
    except ValueError:
        raise Refusal(400, "The query string is malformed, or not percent-encoded UTF-8.") from None
    values = dict(pairs)
    if len(values) != len(pairs):
        raise Refusal(400, "The query string names a parameter twice.")
    _check_spelling(values, kind)
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"A query parameter is wrong: {error}.") from None


def _check_spelling(values: dict[str, str], kind: type[Struct]) -> None:
    """Refuse other spellings of a value than the one that is documented."""
    for name, value in values.items():
        wanted = _spellings(kind).get(name)
        if wanted is not None and wanted.spelt(value) is None:
            raise Refusal(
                400,
                f"The query parameter {name} must be {wanted.form}.",
                details={"option": name},
            )


class _Spelling(NamedTuple):
    form: str
    spelt: Callable[[str], object]


_BOOLEAN = _Spelling("true or false", re.compile("true|false").fullmatch)
_NUMBER = _Spelling("a whole number in decimal digits", re.compile("0|[1-9][0-9]{0,18}").fullmatch)


@cache
def _spellings(kind: type[Struct]) -> dict[str, _Spelling]:
    """Return how the parameters are spelt that are no texts."""
    found = {}
    _, schemas = msgspec.json.schema_components([kind])
    for name, schema in schemas[kind.__name__].get("properties", {}).items():
        kinds = {option.get("type") for option in schema.get("anyOf", [schema])}
        if "boolean" in kinds:
            found[name] = _BOOLEAN
        elif "integer" in kinds:
            found[name] = _NUMBER
    return found


def check_charset(content_type: str) -> None:
    """Refuse a body of text whose type names another encoding than UTF-8: it would be taken for what it is not.

    Raises:
        Refusal: It does (415).
    """
    for part in content_type.split(";")[1:]:
        name, _, value = part.partition("=")
        if name.strip().lower() == "charset" and value.strip().strip('"').lower() not in _UTF8:
            raise Refusal(
                415,
                "Texts are UTF-8; the body's type names another charset.",
                hint="Send it as UTF-8, or as bytes.",
            )


def decode_body(raw: bytes, kind: type[S]) -> S:
    """Return a JSON body as the arguments of a verb.

    Raises:
        Refusal: It is no JSON, or not what the verb takes.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"The body is not what this request takes: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Refusal(400, "The body is not valid JSON in UTF-8.") from None
    except RecursionError:
        raise Refusal(400, "The body is nested too deeply.") from None


def convert_operation(given: dict[str, Any], kind: type[S]) -> S:
    """Return one operation of a transaction as the arguments of its verb."""
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise Refusal(400, f"The operation is not what its verb takes: {error}.") from None


def etag_of(file: WorkspaceFile) -> str:
    """Return a strong ETag: the very file and version."""
    return f'"{file.id}.{file.version}"'


def as_if_version(given: int | str | None, path: str) -> int | WorkspaceFile | None:
    """Return what a request expects as the workspace takes it."""
    if not isinstance(given, str):
        return given
    file_id, _, version = given.strip('"').partition(".")
    return WorkspaceFile(path, id=file_id, version=int(version))


def moment_of(text: str) -> int | datetime:
    """Return the moment that a parameter names.

    Raises:
        Refusal: It is neither a sequence nor a time.
    """
    if text.isascii() and text.isdigit() and len(text) <= 19:
        return int(text)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise Refusal(
            400,
            "The parameter at is neither a sequence nor an ISO 8601 time.",
            details={"option": "at"},
        ) from None


def arguments_of(given: Struct) -> dict[str, Any]:
    """Return the arguments that a request gives to its verb."""
    found = {
        name: value
        for name in given.__struct_fields__
        if (value := getattr(given, name)) is not UNSET and name not in ("namespace", "at")
    }
    if "if_version" in found:
        found["if_version"] = as_if_version(
            found["if_version"], found.get("path") or found.get("src", "/")
        )
    if found.get("edits") is not None:
        found["edits"] = [
            Edit(part.find, part.replace, part.occurrence, part.replace_all)
            for part in found["edits"]
        ]
    return found


def content_of(found: dict[str, Any]) -> None:
    """Put the bytes of a write where its content belongs.

    Raises:
        Refusal: There is no content, or both sorts of it, or no base64.
    """
    encoded = found.pop("content_base64", None)
    if (encoded is None) == ("content" not in found):
        raise Refusal(400, "A write takes exactly one of content and content_base64.")
    if encoded is None:
        return
    try:
        found["content"] = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(
            400, "content_base64 is not base64.", code=ErrorCode.INVALID_CONTENT
        ) from None


def plain(value: Any) -> Any:  # noqa: ANN401 - any result
    """Return a result as plain JSON data."""
    if isinstance(value, Value):
        return value.to_dict()
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return value


def json_answer(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:  # noqa: ANN401
    """Make a JSON answer of a result."""
    try:
        body = _encode(plain(value))
    except (TypeError, OverflowError):  # a JSON number beyond 64 bits
        body = _encode_large(plain(value)).encode()
    return Response(
        body, status, _NO_STORE if headers is None else _NO_STORE | headers, "application/json"
    )
