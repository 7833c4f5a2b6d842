"""The arguments of tools: their schema for the model, and the check of what the model sent.

What comes back of a wrong argument tells the model what to send instead; nothing is guessed, and nothing wrong is passed over.
"""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.edits import Edit

__all__ = ["Param", "schema_of", "taken"]

_JSON_TYPES = ["string", "object", "array", "number", "boolean", "null"]
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Param:
    """One argument."""

    name: str
    kind: str
    """``path``, ``string``, ``integer``, ``boolean``, ``content`` or ``edits``."""
    description: str | None = None
    required: bool = False
    least: int = 0
    """Smallest whole number."""
    may_be_empty: bool = False
    example: str = "/workspace/notes.md"
    """A path that could be meant."""

    def schema(self) -> dict[str, Any]:
        """Return the argument's JSON Schema."""
        shape: dict[str, Any]
        if self.kind == "content":
            shape = {"type": _JSON_TYPES, "items": {}}
        elif self.kind == "edits":
            shape = {"type": "array", "items": _EDIT_SCHEMA}
        elif self.kind == "integer":
            shape = {"type": "integer", "minimum": self.least}
        else:
            shape = {"type": "boolean" if self.kind == "boolean" else "string"}
        return {**shape, **({} if self.description is None else {"description": self.description})}


_EDIT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "find": {"type": "string"},
        "replace": {"type": "string"},
        "occurrence": {"type": "integer", "minimum": 1},
        "replaceAll": {"type": "boolean"},
    },
    "required": ["find", "replace"],
    "additionalProperties": False,
}


def schema_of(params: Sequence[Param]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    return {
        "type": "object",
        "properties": {param.name: param.schema() for param in params},
        "required": [param.name for param in params if param.required],
        "additionalProperties": False,
    }


def taken(arguments: Mapping[str, Any], params: Sequence[Param], tool: str) -> dict[str, Any]:
    """Return the arguments that were sent, checked; what is null or missing and may be is left out.

    Raises:
        InvalidInputError: One is unknown, missing or wrong (``INVALID_ARGUMENT``); the hint says what to send.
    """
    known = {param.name: param for param in params}
    for name in arguments:
        if name not in known:
            raise _unknown(str(name), list(known), tool)
    found: dict[str, Any] = {}
    for param in params:
        if param.name not in arguments:
            if param.required:
                raise _refused(param, "is missing", f"Send {param.name}: {_wanted(param)}.")
            continue
        value = arguments[param.name]
        if value is None and param.kind != "content":
            if param.required:
                raise _refused(param, "is null", f"Send {param.name}: {_wanted(param)}.")
            continue
        found[param.name] = _checked(param, value)
    return found


def _unknown(name: str, known: list[str], tool: str) -> InvalidInputError:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    meant = f"Did you mean {near[0]}? " if near else ""
    return InvalidInputError(
        f"{tool} has no argument {name[:_SHOWN]!r}.",
        details={"argument": name[:_SHOWN]},
        hint=f"{meant}Its arguments are: {', '.join(known)}.",
    )


def _wanted(param: Param) -> str:
    return {
        "path": f"an absolute path such as '{param.example}'",
        "string": "a string",
        "integer": f"a whole number of at least {param.least}",
        "boolean": "true or false",
        "content": "text, or a JSON value",
        "edits": "an array of objects with find and replace",
    }[param.kind]


def _refused(param: Param, why: str, hint: str) -> InvalidInputError:
    return InvalidInputError(
        f"The argument {param.name} {why}.", details={"argument": param.name}, hint=hint
    )


def _shown(value: object) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=lambda other: type(other).__name__)
    except (ValueError, RecursionError):
        text = type(value).__name__
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _wrong(param: Param, value: object) -> InvalidInputError:
    fix = ""
    if isinstance(value, str) and param.kind in ("integer", "boolean", "edits"):
        fix = " Send it without quotes."
    return _refused(
        param,
        f"must be {_wanted(param)}, but is {_shown(value)}",
        f"Send {param.name} as {_wanted(param)}.{fix}",
    )


def _checked(param: Param, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if param.kind == "content":
        return value
    if param.kind == "edits":
        return _edits(param, value)
    if param.kind == "boolean":
        if isinstance(value, bool):
            return value
        raise _wrong(param, value)
    if param.kind == "integer":
        return _integer(param, value)
    if not isinstance(value, str):
        raise _wrong(param, value)
    if not value and param.required and not param.may_be_empty:
        raise _refused(param, "is empty", f"Send {param.name}: {_wanted(param)}.")
    return value


def _integer(param: Param, value: Any) -> int:  # noqa: ANN401
    is_whole = isinstance(value, float) and math.isfinite(value) and value == int(value)
    if isinstance(value, bool) or not (isinstance(value, int) or is_whole):
        raise _wrong(param, value)
    if value < param.least:
        raise _wrong(param, value)
    return int(value)


def _edits(param: Param, value: Any) -> list[Edit]:  # noqa: ANN401
    if not isinstance(value, list):
        raise _wrong(param, value)
    edits: list[Edit] = []
    for number, item in enumerate(value, 1):
        if not isinstance(item, Mapping):
            raise _refused(
                param, f"has an item {number} that is no object", f"Send {_wanted(param)}."
            )
        given = taken(item, _EDIT_PARAMS, f"Item {number} of edits")
        edits.append(
            Edit(
                given["find"],
                given["replace"],
                given.get("occurrence"),
                given.get("replaceAll", False),
            )
        )
    return edits


_EDIT_PARAMS = (
    Param("find", "string", required=True),
    Param("replace", "string", required=True, may_be_empty=True),
    Param("occurrence", "integer", least=1),
    Param("replaceAll", "boolean"),
)
