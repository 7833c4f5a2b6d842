"""Scripts of `tx`: JSON lines, each one operation, read strictly before anything is done."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

import msgspec
import typer
from msgspec import UNSET, UnsetType

__all__ = ["CONTENT_FIELDS", "OPERATIONS", "Operation", "Step", "read_script"]

Text: TypeAlias = str | UnsetType
OptionalText: TypeAlias = str | UnsetType | None
Number: TypeAlias = int | UnsetType
OptionalNumber: TypeAlias = int | UnsetType | None
Flag: TypeAlias = bool | UnsetType
Metadata: TypeAlias = dict[str, Any] | UnsetType | None
StatusWord: TypeAlias = Literal["draft", "final"] | UnsetType | None

CONTENT_FIELDS = ("content", "content_base64", "file")
"""The ways in which `write` is told its content."""


class Operation(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, tag_field="op", tag=""):
    """One line; what the line leaves out is UNSET."""

    @property
    def arguments(self) -> dict[str, Any]:
        """What the line says, by the names of the method's parameters."""
        given = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in given.items() if value is not UNSET}


class Write(Operation, tag="write"):
    """`Transaction.write`."""

    path: str
    content: Any = UNSET
    content_base64: Text = UNSET
    file: Text = UNSET
    mime_type: OptionalText = UNSET
    metadata: Metadata = UNSET
    status: StatusWord = UNSET
    kind: OptionalText = UNSET
    encoding: OptionalText = UNSET
    if_version: OptionalNumber = UNSET


class OneEdit(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One of the edits of an `edit`."""

    find: str
    replace: str
    occurrence: int | None = None
    replace_all: bool = False


class Edit(Operation, tag="edit"):
    """`Transaction.edit`."""

    path: str
    find: Text = UNSET
    replace: Text = UNSET
    occurrence: OptionalNumber = UNSET
    replace_all: Flag = UNSET
    edits: list[OneEdit] | UnsetType = UNSET
    mime_type: OptionalText = UNSET
    if_version: OptionalNumber = UNSET


class Append(Operation, tag="append"):
    """`Transaction.append`."""

    path: str
    text: str
    mime_type: OptionalText = UNSET
    if_version: OptionalNumber = UNSET


class Set(Operation, tag="set"):
    """`Transaction.set`."""

    path: str
    mime_type: Text = UNSET
    metadata: Metadata = UNSET
    status: StatusWord = UNSET
    kind: OptionalText = UNSET
    if_version: OptionalNumber = UNSET


class Rename(Operation, tag="rename"):
    """`Transaction.rename`."""

    src: str
    dst: str
    overwrite: Flag = UNSET
    if_version: OptionalNumber = UNSET


class Move(Rename, tag="move"):
    """`Transaction.move`."""


class Copy(Rename, tag="copy"):
    """`Transaction.copy`."""


class Delete(Operation, tag="delete"):
    """`Transaction.delete`."""

    path: str
    recursive: Flag = UNSET
    if_version: OptionalNumber = UNSET


class Finalize(Operation, tag="finalize"):
    """`Transaction.finalize`."""

    path: str
    kind: OptionalText = UNSET
    version: OptionalNumber = UNSET
    if_version: OptionalNumber = UNSET


class Withdraw(Operation, tag="withdraw"):
    """`Transaction.withdraw`."""

    path: str
    if_version: OptionalNumber = UNSET


class Read(Operation, tag="read"):
    """`Transaction.read`."""

    path: str
    version: OptionalNumber = UNSET
    offset: Number = UNSET
    max_inline_bytes: OptionalNumber = UNSET
    start_line: OptionalNumber = UNSET
    end_line: OptionalNumber = UNSET


class List(Operation, tag="list"):
    """`Transaction.list`."""

    path: Text = UNSET
    recursive: Flag = UNSET
    glob: bool | UnsetType | None = UNSET
    limit: OptionalNumber = UNSET
    cursor: OptionalText = UNSET
    partial: Flag = UNSET


class Exists(Operation, tag="exists"):
    """`Transaction.exists`."""

    path: str


class Stat(Operation, tag="stat"):
    """`Transaction.stat`."""

    path: str


_KINDS: tuple[type[Operation], ...] = (
    Write, Edit, Append, Set, Rename, Move, Copy, Delete, Finalize, Withdraw, Read, List, Exists, Stat
)  # fmt: skip
OPERATIONS: dict[str, type[Operation]] = {str(kind.__struct_config__.tag): kind for kind in _KINDS}
"""What a line can be, by the word that it has for `op`."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of a script, checked as far as that is possible without the workspace."""

    line: int
    """Its line in the script, from 1."""
    op: str
    operation: Operation
    data: bytes | None = None
    """What `content_base64` holds."""


def read_script(source: IO[bytes]) -> list[Step]:
    """Read a whole script; lines of white space are passed over.

    Raises:
        typer.BadParameter: A line is no operation; the message names the line and what is wrong with it.
    """
    return [
        _step(number, line) for number, line in enumerate(_lines(source), start=1) if line.strip()
    ]


def _lines(source: Iterable[bytes]) -> Iterable[bytes]:
    return (line.rstrip(b"\r\n") for line in source)


def _step(number: int, line: bytes) -> Step:
    try:
        fields = json.loads(
            line.decode(), object_pairs_hook=_no_name_twice, parse_constant=_no_constant
        )
        if not isinstance(fields, dict):
            raise ValueError("it is not a JSON object")
        op = fields.get("op")
        if not isinstance(op, str) or op not in OPERATIONS:
            known = ", ".join(OPERATIONS)
            raise ValueError(f"op has to be one of {known}; it is {op!r}")
        operation = msgspec.convert(fields, OPERATIONS[op])
        return Step(number, op, operation, _checked(operation))
    except (ValueError, RecursionError) as error:
        raise _wrong(number, error) from None


def _wrong(number: int, error: Exception) -> typer.BadParameter:
    problem = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return typer.BadParameter(f"line {number}: {problem}.", param_hint="FILE")


def _checked(operation: Operation) -> bytes | None:
    """Check what the types do not say; return the bytes that the line holds."""
    given = operation.arguments
    if isinstance(operation, Edit):
        alone = given.keys() & {"find", "replace", "occurrence", "replace_all"}
        if ("edits" in given) == bool(alone) or len(alone & {"find", "replace"}) == 1:
            raise ValueError("edit takes find and replace, or edits alone")
    if not isinstance(operation, Write):
        return None
    if len(given.keys() & set(CONTENT_FIELDS)) != 1:
        raise ValueError(f"write takes one of {', '.join(CONTENT_FIELDS)}")
    if "file" in given and not Path(given["file"]).is_file():
        raise ValueError(f"there is no file {given['file']}")
    if "content_base64" not in given:
        return None
    try:
        return base64.b64decode(given["content_base64"], validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("content_base64 is not base64") from None


def _no_name_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"it says {twice!r} twice")
    return found


def _no_constant(name: str) -> Any:  # noqa: ANN401 - the shape of a json hook
    raise ValueError(f"{name} is not JSON")
