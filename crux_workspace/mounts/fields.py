"""The fields of what a provider returned: each of its type, short enough to pass on, and of characters that every transport can send."""

from __future__ import annotations

from typing import Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.jsontext import check_json
from crux_workspace.model.labels import MAX_LABEL_BYTES
from crux_workspace.model.mime import DEFAULTS, guess, is_binary
from crux_workspace.model.settings import Mount
from crux_workspace.mounts.calling import invalid

__all__ = [
    "MAX_CURSOR_BYTES",
    "MAX_URI_BYTES",
    "check_cursor",
    "check_fields",
    "check_value",
    "described",
    "encoded",
]

MAX_URI_BYTES = 2_048
"""Longest URI of a provider."""
MAX_CURSOR_BYTES = 2_048
"""Longest cursor of a provider; it comes back in the cursor that callers, models too, are given."""
_LABELS = {
    "id": MAX_LABEL_BYTES,
    "mime_type": MAX_LABEL_BYTES,
    "sha256": MAX_LABEL_BYTES,
    "artifact_kind": MAX_LABEL_BYTES,
    "uri": MAX_URI_BYTES,
}
_NUMBERS = ("size", "version", "created_at", "updated_at", "offset", "total_lines")
_OBJECTS = ("metadata", "produced_by")
_PREVIEW_CHARACTERS = 240


def encoded(mount: Mount, hook: str, what: str, text: object) -> bytes:
    """Return a text of a provider in UTF-8.

    Raises:
        StorageError: It is no text, or holds half a character (``SOURCE_INVALID``).
    """
    if not isinstance(text, str):
        raise invalid(mount, hook, f"{what} that is {type(text).__name__}, no str")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise invalid(mount, hook, f"{what} with a lone surrogate") from error


def check_value(mount: Mount, hook: str, value: object) -> None:
    """Refuse what is no JSON value (``SOURCE_INVALID``)."""
    try:
        check_json(value)
    except InvalidInputError as error:
        raise invalid(mount, hook, "what is no JSON value") from error


def check_cursor(mount: Mount, cursor: object) -> str | None:
    """Return a provider's cursor; an empty one is none."""
    if cursor is None:
        return None
    if len(encoded(mount, "list", "a cursor", cursor)) > MAX_CURSOR_BYTES:
        raise invalid(mount, "list", f"a cursor of more than {MAX_CURSOR_BYTES:,} bytes")
    return str(cursor) or None


def check_fields(mount: Mount, hook: str, value: Any) -> None:  # noqa: ANN401 - any result of a provider
    """Refuse fields of wrong types, and labels that are too long or not of one line (``SOURCE_INVALID``)."""
    for name, most in _LABELS.items():
        field = getattr(value, name, None)
        if field is None:
            continue
        if len(encoded(mount, hook, f"a {name}", field)) > most or not field.isprintable():
            raise invalid(mount, hook, f"a {name} that is no line of at most {most:,} bytes")
    for name in _NUMBERS:
        number = getattr(value, name, 0)
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise invalid(mount, hook, f"a {name} that is no whole number of 0 or more")
    if value.status not in (None, "draft", "final"):
        raise invalid(mount, hook, "a status that is neither draft nor final")
    for name in _OBJECTS:
        held = getattr(value, name, None)
        if held is not None:
            if not isinstance(held, dict):
                raise invalid(mount, hook, f"{name} that is no dict")
            check_value(mount, hook, held)


def described(mount: Mount, hook: str, file: Any, path: str) -> dict[str, Any]:  # noqa: ANN401 - a WorkspaceFile
    """Return kind, MIME type and preview of a file of which the provider may have said only the path."""
    mime, kind = file.mime_type, file.content_kind
    named: object = kind
    if not isinstance(named, str) or named not in DEFAULTS:
        raise invalid(mount, hook, "a content_kind that is none")
    if not mime or mime == DEFAULTS["text"]:
        mime = guess(path, kind)
    if kind == "text" and is_binary(mime):
        kind = "binary"
    preview = file.preview
    if preview is not None:
        encoded(mount, hook, "a preview", preview)
        if len(preview) > _PREVIEW_CHARACTERS:
            preview = preview[: _PREVIEW_CHARACTERS - 3] + "..."
    return {"content_kind": kind, "mime_type": mime, "preview": preview}
