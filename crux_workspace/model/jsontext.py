"""JSON values as files hold them: what may be one, its stored form, and the one form people read.

A value is a dict with str keys, a list, str, int, finite float, bool or None, all the way down. Anything else is refused rather
than turned into something near it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["MAX_DEPTH", "check_json", "dump_compact", "load", "parse", "plain_json", "pretty"]

MAX_DEPTH = 500
"""Deepest nesting of dicts and lists."""

# Python itself refuses to read or write decimals of more than 4,300 digits.
_INTEGER_LIMIT = 10**4200
_SHOWN_KEY_CHARACTERS = 40
_SHOWN_STEPS = 20
_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_indented = json.JSONEncoder(ensure_ascii=False, allow_nan=False, indent=2).encode


class _NotJson(Exception):
    def __init__(self, problem: str, where: list[str | int]) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = _place(where)


def check_json(value: object, what: str = "content") -> None:
    """Return if a value can be stored as JSON and come back equal.

    Args:
        value: The value; subclasses of the JSON types count as those.
        what: What the value is, for the message.

    Raises:
        InvalidInputError: Somewhere in it is another type (a tuple, date, dataclass, path, set, bytes), a key that is no str,
            NaN or an infinity, an integer of more than 4,200 digits, a lone surrogate, itself, or a nesting deeper than 500; the
            message names where, not what (``INVALID_CONTENT``).
    """
    try:
        _check(value)
    except _NotJson as found:
        raise InvalidInputError(
            f"The {what} cannot be stored as JSON because {found.place} {found.problem}.",
            code=ErrorCode.INVALID_CONTENT,
            details={"place": found.place},
            hint="Use only dict with str keys, list, str, int, finite float, bool and None.",
        ) from None


def dump_compact(value: object) -> bytes:
    """Return the stored form of a JSON value: no spaces, keys in their order, non-ASCII characters as they are.

    Args:
        value: The value to store.

    Returns:
        UTF-8 that ``load`` turns back into an equal value.

    Raises:
        InvalidInputError: As ``check_json`` (``INVALID_CONTENT``).
    """
    check_json(value)
    return _compact(value).encode()


def load(data: bytes) -> Any:  # noqa: ANN401 - a JSON value
    """Return the value that ``dump_compact`` stored."""
    return json.loads(data)


def parse(text: bytes) -> Any:  # noqa: ANN401 - a JSON value
    """Return the value of text that somebody else wrote as JSON, held to the rules of JSON content.

    Raises:
        InvalidInputError: It is not JSON, or not what JSON content may be (``INVALID_CONTENT``).
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(
            "The text is not JSON, or nested too deeply.", code=ErrorCode.INVALID_CONTENT
        ) from error
    check_json(value)
    return value


def plain_json(value: Any) -> Any:  # noqa: ANN401 - a JSON value
    """Return a copy of a JSON value made of plain types only; the caller may change the original afterwards.

    Raises:
        InvalidInputError: It is no JSON value (``INVALID_CONTENT``).
    """
    return load(dump_compact(value))


def pretty(data: bytes) -> str:
    """Return the form in which stored JSON is read as text.

    Args:
        data: What ``dump_compact`` gave.

    Returns:
        Indented by two spaces, keys in their order, non-ASCII characters as they are, with a final newline.
    """
    return _indented(json.loads(data)) + "\n"


def _check(value: object) -> None:
    where: list[str | int] = []
    open_containers: list[tuple[int, Iterator[tuple[str | int, object]]]] = []
    open_ids: set[int] = set()
    item = value
    while True:
        if isinstance(item, dict | list):
            if id(item) in open_ids:
                raise _NotJson("holds itself", where)
            if len(open_containers) == MAX_DEPTH:
                raise _NotJson(f"is nested deeper than {MAX_DEPTH}", where)
            open_ids.add(id(item))
            open_containers.append((id(item), _members(item, where)))
            where.append("")
        else:
            _check_scalar(item, where)
        while open_containers:
            member = next(open_containers[-1][1], None)
            if member is not None:
                where[-1], item = member
                break
            open_ids.discard(open_containers.pop()[0])
            where.pop()
        else:
            return


def _members(
    container: dict[Any, object] | list[object], where: list[str | int]
) -> Iterator[tuple[str | int, object]]:
    if isinstance(container, list):
        yield from enumerate(container)
        return
    for key, member in container.items():
        if not isinstance(key, str):
            raise _NotJson(f"has a key of type {type(key).__name__}, not str", where[:-1])
        if not _is_encodable(key):
            raise _NotJson("has a key with a lone surrogate", where[:-1])
        yield key, member


def _check_scalar(item: object, where: list[str | int]) -> None:
    if isinstance(item, str):
        if not _is_encodable(item):
            raise _NotJson("holds a lone surrogate", where)
    elif isinstance(item, float):
        if not math.isfinite(item):
            raise _NotJson("is not a finite number", where)
    elif isinstance(item, int):
        if not -_INTEGER_LIMIT < item < _INTEGER_LIMIT:
            raise _NotJson("is an integer with too many digits", where)
    elif item is not None:
        raise _NotJson(f"is of type {type(item).__name__}, which JSON does not have", where)


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _place(where: list[str | int]) -> str:
    shown = where[:_SHOWN_STEPS]
    steps = "".join(f"[{step}]" if isinstance(step, int) else _key(step) for step in shown)
    return f"${steps}" if len(shown) == len(where) else f"${steps}..."


def _key(step: str) -> str:
    if step.isidentifier() and len(step) <= _SHOWN_KEY_CHARACTERS:
        return f".{step}"
    cut = step if len(step) <= _SHOWN_KEY_CHARACTERS else step[:_SHOWN_KEY_CHARACTERS] + "..."
    return f"[{json.dumps(cut)}]"
