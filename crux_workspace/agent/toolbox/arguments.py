"""The arguments of the five tools: one struct each, which is their schema too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from crux_workspace.errors import InvalidInputError

__all__ = ["EditFile", "ListDir", "ReadFile", "RunBash", "WriteFile", "read_arguments", "schema_of"]

_T = TypeVar("_T", bound=Struct)
_Path = Annotated[str, Meta(min_length=1, description="Relative to the workspace, or absolute.")]
_Line = Annotated[int, Meta(ge=1)]


class _Arguments(Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    pass


class ListDir(_Arguments, frozen=True):
    """Arguments of listDir."""

    path: Annotated[str | None, Meta(description="Folder; left out, the workspace itself.")] = None


class ReadFile(_Arguments, frozen=True):
    """Arguments of readFile."""

    path: _Path
    start_line: Annotated[_Line | None, Meta(description="First line to return, from 1.")] = None
    end_line: Annotated[_Line | None, Meta(description="Last line to return, included.")] = None


class WriteFile(_Arguments, frozen=True):
    """Arguments of writeFile."""

    path: _Path
    content: Annotated[str, Meta(description="The whole new text.")]


class EditFile(_Arguments, frozen=True):
    """Arguments of editFile."""

    path: _Path
    old_text: Annotated[str, Meta(min_length=1, description="Text to replace, exactly as it is.")]
    new_text: Annotated[str, Meta(description="What takes its place.")]
    replace_all: Annotated[bool | None, Meta(description="Replace every occurrence.")] = None


class RunBash(_Arguments, frozen=True):
    """Arguments of runBash."""

    command: Annotated[str, Meta(min_length=1, description="Command line for bash.")]


def schema_of(kind: type[Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a tool's arguments."""
    _, components = msgspec.json.schema_components((kind,))
    schema = dict(components[kind.__name__])
    schema.pop("title", None)
    schema.pop("description", None)
    return {**schema, "additionalProperties": False}


def read_arguments(kind: type[_T], tool: str, arguments: Mapping[str, Any]) -> _T:
    """Check the arguments of a call.

    Raises:
        InvalidInputError: One is missing, unknown or of the wrong kind (``INVALID_ARGUMENT``).
    """
    try:
        return msgspec.convert(dict(arguments), kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInputError(
            f"{tool}: {error}.",
            details={"tool": tool},
            hint="Correct the arguments and call again.",
        ) from None
    except UnicodeEncodeError:  # text in place of a number or a truth value
        raise InvalidInputError(
            f"{tool}: an argument has a lone surrogate, which is no text.", details={"tool": tool}
        ) from None
