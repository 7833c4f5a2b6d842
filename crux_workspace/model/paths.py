"""What a path, a namespace and a workspace id may be, and the one spelling every path is kept in.

Everything here is decided before any storage access. A normal path is absolute, in NFC, without empty or ``.`` segments, without
a trailing slash, and holds nothing that could mean another place once a client decodes it. Nothing here knows mounts.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TypeAlias
from urllib.parse import unquote

from crux_workspace.errors import InvalidInputError, InvalidPathError

__all__ = [
    "MAX_ID_BYTES",
    "MAX_PATH_BYTES",
    "MAX_SEGMENT_BYTES",
    "ROOT",
    "PathLike",
    "ancestors",
    "check_namespace",
    "check_namespace_prefix",
    "check_workspace_id",
    "is_at_or_below",
    "is_below",
    "join",
    "name",
    "normalise",
    "normalise_directory_hint",
    "normalise_file",
    "parent",
    "sort_key",
]

PathLike: TypeAlias = str | PurePosixPath
"""A path as callers give it."""

ROOT = "/"
MAX_SEGMENT_BYTES = 255
MAX_PATH_BYTES = 1024
MAX_ID_BYTES = 512

_SHOWN_CHARACTERS = 300
_ENCODED_HINT = "Write the path as it is, without percent escapes."
# Printable ASCII paths that are already normal: most of them, so they are recognised in one match.
_PLAIN = re.compile(r"(?:/(?!\.\.?(?:/|\Z))[ -$&-.0-\[\]-~]{1,255})+").fullmatch
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]").search
_SURROGATE = re.compile(r"[\ud800-\udfff]").search
# Too long a spelling of a character is no UTF-8: it only hides an ASCII one from a careless decoder.
_OVERLONG = re.compile(r"%(?:c[01]%[89ab]|e0%[89]|f0%8)[0-9a-f]", re.IGNORECASE).search


def normalise(raw: str | PurePosixPath) -> str:
    """Return the one spelling of a path that is stored and compared.

    ``//`` and ``/.`` fold, a trailing slash goes, the result is NFC. Normalising twice changes nothing, and a normal path comes
    back as the same object. A ``%`` that decodes to nothing dangerous stays as written.

    Args:
        raw: Absolute path.

    Returns:
        The normal path; ``/`` for the root.

    Raises:
        InvalidPathError: The path is no ``str`` or ``PurePosixPath``, empty, relative, too long, or holds control characters,
            backslashes, ``..`` segments, encoded separators or lone surrogates (``INVALID_PATH``). Percent escapes are decoded
            until nothing changes, so an encoded or twice encoded form is refused too.
    """
    if type(raw) is str and len(raw) <= MAX_PATH_BYTES and _PLAIN(raw):
        return raw
    return _normalise_slowly(_as_text(raw))


def normalise_directory_hint(raw: str | PurePosixPath) -> tuple[str, bool]:
    """Return the normal path and whether it was written with a trailing slash, which names a directory.

    Args:
        raw: Absolute path; the root always names a directory.

    Returns:
        The normal path, and True when ``raw`` ends in ``/``.

    Raises:
        InvalidPathError: As ``normalise`` (``INVALID_PATH``).
    """
    path = normalise(raw)
    return path, path == ROOT or (isinstance(raw, str) and raw.endswith("/"))


def normalise_file(raw: str | PurePosixPath) -> str:
    """Return the normal path of something that has to be a file.

    Args:
        raw: Absolute path without a trailing slash.

    Returns:
        The normal path; never the root.

    Raises:
        InvalidPathError: As ``normalise``, and for a path that ends in ``/`` (``INVALID_PATH``).
    """
    path, is_directory = normalise_directory_hint(raw)
    if is_directory:
        raise _refusal(
            str(raw),
            "it ends in '/' and so names a directory where a file is meant",
            "Leave out the trailing slash, or name a file in the directory.",
        )
    return path


def parent(path: str) -> str:
    """Return the directory a normal path lies in; the root lies in itself."""
    return path[: path.rfind("/")] or ROOT


@lru_cache(maxsize=4096)
def ancestors(path: str) -> tuple[str, ...]:
    """Return every directory above a normal path, nearest first, without the root."""
    above = parent(path)
    return () if above == ROOT else (above, *ancestors(above))


def name(path: str) -> str:
    """Return the last segment of a normal path; empty for the root."""
    return path[path.rfind("/") + 1 :]


def is_below(path: str, directory: str) -> bool:
    """Return whether a normal path lies strictly below a normal directory; the root holds everything but itself."""
    if directory == ROOT:
        return path != ROOT
    return path.startswith(directory) and path.startswith("/", len(directory))


def is_at_or_below(path: str, directory: str) -> bool:
    """Return whether a normal path is a normal directory or lies below it."""
    return path == directory or is_below(path, directory)


def join(directory: str, relative: str) -> str:
    """Return the normal path of something below a directory.

    Args:
        directory: Normal path.
        relative: Path below it, without a leading slash; empty means the directory itself.

    Returns:
        A normal path at or below ``directory``.

    Raises:
        InvalidPathError: ``relative`` is absolute, or the two together are no legal path, for example too long
            (``INVALID_PATH``).
    """
    if relative.startswith("/"):
        raise _refusal(
            relative, "it is absolute where a relative one is meant", "Leave out the leading slash."
        )
    if not relative:
        return normalise(directory)
    return normalise(f"{'' if directory == ROOT else directory}/{relative}")


def sort_key(path: str) -> str:
    """Return a key that orders normal paths segment by segment, each by code point.

    A separator has to order before every character a name may hold; only control characters do, and names hold none.
    """
    return path.replace("/", "\0")


def check_namespace(value: str) -> str:
    """Return a namespace as it was given, if it can be one; its characters mean nothing.

    Args:
        value: The namespace.

    Returns:
        ``value`` itself.

    Raises:
        InvalidInputError: It is no ``str``, blank, longer than 512 UTF-8 bytes, or holds control characters or lone surrogates
            (``INVALID_ARGUMENT``).
    """
    return _check_id(value, "namespace")


def check_namespace_prefix(value: str) -> str:
    """Return the start of namespaces as it was given: it may hold what a namespace may, and be blank, or empty for all.

    Raises:
        InvalidInputError: No namespace starts with it (``INVALID_ARGUMENT``).
    """
    given: object = value
    is_blank = isinstance(given, str) and not given.strip()
    check_namespace(f"{value}-" if is_blank else value)
    return value


def check_workspace_id(value: str) -> str:
    """Return a workspace id as it was given, if it can be one; its characters mean nothing.

    Args:
        value: The id.

    Returns:
        ``value`` itself.

    Raises:
        InvalidInputError: As ``check_namespace`` (``INVALID_ARGUMENT``).
    """
    return _check_id(value, "workspace id")


def _as_text(raw: object) -> str:
    if isinstance(raw, PurePosixPath):
        return str(raw)
    if isinstance(raw, str):
        return str.__str__(raw)
    shown = f"<{type(raw).__name__}>"
    raise _refusal(
        shown, f"a path is str or PurePosixPath, not {type(raw).__name__}", "Pass the path as str."
    )


def _normalise_slowly(raw: str) -> str:
    if not raw:
        raise _refusal(raw, "it is empty", "Name an absolute path such as '/workspace/notes.md'.")
    if _SURROGATE(raw):
        raise _refusal(
            raw, "it holds a lone surrogate", "Decode the name as UTF-8 before passing it."
        )
    if raw[0] != "/":
        raise _refusal(
            raw, "it is relative", "Start the path with '/', for example '/workspace/notes.md'."
        )
    segments = [
        segment
        for segment in unicodedata.normalize("NFC", raw).split("/")
        if segment and segment != "."
    ]
    path = "/" + "/".join(segments)
    if len(path.encode()) > MAX_PATH_BYTES:
        raise _refusal(
            raw, f"it is longer than {MAX_PATH_BYTES} UTF-8 bytes", "Use a shorter path."
        )
    for segment in segments:
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise _refusal(
                raw,
                f"one of its segments is longer than {MAX_SEGMENT_BYTES} UTF-8 bytes",
                "Use a shorter name.",
            )
        _check_segment(segment, raw)
    return path


def _check_segment(segment: str, raw: str) -> None:
    _check_plain_segment(segment, raw, "")
    if "%" not in segment:
        return
    decoded = unquote(segment)
    while decoded != segment:
        if _OVERLONG(segment):
            raise _refusal(raw, "it hides a character in an overlong percent escape", _ENCODED_HINT)
        _check_plain_segment(decoded, raw, "percent-encoded ")
        segment, decoded = decoded, unquote(decoded)


def _check_plain_segment(segment: str, raw: str, encoded: str) -> None:
    hint = _ENCODED_HINT if encoded else None
    if segment == "..":
        raise _refusal(
            raw,
            f"it holds a {encoded}'..' segment",
            hint or "Name the path without '..'; paths are absolute and do not climb.",
        )
    if "\\" in segment:
        raise _refusal(
            raw, f"it holds a {encoded}backslash", hint or "Separate directories with '/'."
        )
    if "/" in segment:
        raise _refusal(raw, f"it holds a {encoded}separator", hint)
    if _CONTROL(segment):
        raise _refusal(
            raw,
            f"it holds a {encoded}control character",
            hint or "Leave out NUL, line breaks, tabs and other control characters.",
        )


def _check_id(value: object, what: str) -> str:
    if not isinstance(value, str):
        problem = f"it is {type(value).__name__}, not str"
    elif not value.strip():
        problem = "it is blank"
    elif _SURROGATE(value):
        problem = "it holds a lone surrogate"
    elif _CONTROL(value):
        problem = "it holds a control character"
    elif len(value.encode()) > MAX_ID_BYTES:
        problem = f"it is longer than {MAX_ID_BYTES} UTF-8 bytes"
    else:
        return value
    raise InvalidInputError(
        f"The {what} was refused because {problem}.",
        details={"argument": what},
        hint=f"Give a {what} of 1 to {MAX_ID_BYTES} UTF-8 bytes without control characters.",
    )


def _refusal(raw: str, why: str, hint: str | None) -> InvalidPathError:
    shown = _printable(raw)
    return InvalidPathError(
        f"The path '{shown}' was refused because {why}.", details={"path": shown}, hint=hint
    )


def _printable(raw: str) -> str:
    cut = raw[:_SHOWN_CHARACTERS]
    shown = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode()
        for character in cut
    )
    return shown if len(cut) == len(raw) else shown + "..."
