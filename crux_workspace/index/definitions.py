"""Definitions: the settings of a workspace as far as the code tells them."""

from __future__ import annotations

import ast
from dataclasses import MISSING, fields
from typing import Any
from urllib.parse import urlsplit

from crux_workspace.errors import InvalidInputError
from crux_workspace.index.facts import Definition, Dynamic
from crux_workspace.index.program import Arguments, Frame
from crux_workspace.index.texts import is_none, last_name, literal, shortened
from crux_workspace.index.values import EMPTY, External, Sequence, Setting, Values
from crux_workspace.model.settings import (
    ContentOptions,
    Limits,
    Mount,
    Retention,
    ToolOptions,
    Versioning,
)
from crux_workspace.mounts.routing import DEFAULT_MOUNTS
from crux_workspace.tools.catalogue import tool_names

__all__ = ["define", "is_writable", "tool_settings"]

_GROUPS: dict[str, type[Any]] = {
    "content": ContentOptions,
    "limits": Limits,
    "retention": Retention,
    "versioning": Versioning,
}
_BY_URL = frozenset({"open_workspace", "open_workspace_sync"})


def define(frame: Frame, made_by: str, arguments: Arguments) -> str:
    """Note a definition in the last round, and return its key."""
    place = frame.place(arguments.node)
    key = str(place)
    if frame.program.recording and key not in frame.program.definitions:
        settings = _settings(frame, made_by, arguments)
        frame.program.definitions[key] = Definition(
            key, place, frame.scope.owner, made_by, settings
        )
    return key


def _settings(frame: Frame, made_by: str, arguments: Arguments) -> dict[str, Any]:
    default = "default" if made_by in _BY_URL else None
    content = _group(frame, arguments, "content")
    return {
        "id": _one(arguments, None, "id", default),
        "namespace": _one(arguments, None, "namespace", default),
        "mounts": _mounts(frame, arguments),
        "tools": _tools(frame, arguments),
        "records": _records(frame, made_by, arguments),
        "assets": {
            "store": _assets(frame, made_by, arguments),
            "inline_text_below_bytes": content["inline_text_below_bytes"]
            if isinstance(content, dict)
            else content,
        },
        "retention": _group(frame, arguments, "retention"),
        "limits": _group(frame, arguments, "limits"),
        "versioning": _group(frame, arguments, "versioning"),
    }


def _one(arguments: Arguments, position: int | None, name: str, default: object) -> Any:  # noqa: ANN401
    """Return one argument as a literal, `Dynamic` where it is not."""
    values = arguments.get(position, name)
    if values is None:
        return Dynamic(_rest(arguments)) if arguments.is_open else default
    known, value = literal(values)
    is_plain = isinstance(value, str | int | float | bool | list) or value is None
    return value if known and is_plain else Dynamic(shortened(arguments.source(position, name)))


def _rest(arguments: Arguments) -> str:
    spread = [each.value for each in arguments.node.keywords if each.arg is None]
    return f"**{shortened(spread[0])}" if spread else ""


def _made(frame: Frame, values: Values, kind: str) -> Arguments | None:
    """Return how a settings object was made, None when the values are anything else."""
    if len(values) != 1:
        return None
    (value,) = values
    is_it = isinstance(value, Setting) and value.kind == kind
    return frame.program.made.get(value.place) if is_it and isinstance(value, Setting) else None


def _given(frame: Frame, arguments: Arguments, name: str, kind: str) -> Arguments | Dynamic | None:
    """Return how an option was made; None when it has its default."""
    values = arguments.get(None, name)
    if values is None:
        return Dynamic(_rest(arguments)) if arguments.is_open else None
    if is_none(values):
        return None
    return _made(frame, values, kind) or Dynamic(shortened(arguments.source(None, name)))


def _defaults(kind: type[Any]) -> dict[str, Any]:
    return {each.name: None if each.default is MISSING else each.default for each in fields(kind)}


def _group(frame: Frame, arguments: Arguments, name: str) -> dict[str, Any] | Dynamic:
    kind = _GROUPS[name]
    made = _given(frame, arguments, name, kind.__name__)
    if isinstance(made, Dynamic):
        return made
    defaults = _defaults(kind)
    if made is None:
        return defaults
    return {each: _one(made, None, each, default) for each, default in defaults.items()}


def _mounts(frame: Frame, arguments: Arguments) -> list[dict[str, Any]] | Dynamic:
    values = arguments.get(None, "mounts")
    if values is None:
        if arguments.is_open:
            return Dynamic(_rest(arguments))
        default = sorted(DEFAULT_MOUNTS, key=lambda each: each.path)
        return [_mount_settings(m.path, m.access, m.description, None) for m in default]
    unknown = Dynamic(shortened(arguments.source(None, "mounts")))
    if len(values) != 1:
        return unknown
    (value,) = values
    if not isinstance(value, Sequence):
        return unknown
    made = [_made(frame, each, "Mount") for each in value.items]
    return [unknown if each is None else _mount(each) for each in made]  # type: ignore[misc]


def _mount(made: Arguments) -> dict[str, Any]:
    defaults = _defaults(Mount)
    return _mount_settings(
        _one(made, 0, "path", None),
        _one(made, 1, "access", defaults["access"]),
        _one(made, 2, "description", defaults["description"]),
        _source(made),
    )


def _mount_settings(path: Any, access: Any, description: Any, source: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"path": path, "access": access, "description": description, "source": source}


def _source(made: Arguments) -> str | Dynamic | None:
    """Return by what a mount's source is made."""
    if is_none(made.get(3, "source")):
        return Dynamic(_rest(made)) if made.is_open else None
    node = made.source(3, "source")
    if isinstance(node, ast.Call):
        return last_name(node.func) or Dynamic(shortened(node))
    return Dynamic(shortened(node))


def tool_settings(made: Arguments | None) -> dict[str, Any]:
    """Return the options of the generated tools with the tools' names, which are empty where the code does not tell."""
    defaults = {
        name: _defaults(ToolOptions)[name]
        for name in ("prefix", "delete", "undo", "extra", "read_before_write")
    }
    given = (
        defaults
        if made is None
        else {name: _one(made, None, name, default) for name, default in defaults.items()}
    )
    given["extra"] = list(given["extra"]) if isinstance(given["extra"], tuple) else given["extra"]
    return {**given, "names": named_tools(given)}


def named_tools(options: dict[str, Any]) -> list[str]:
    """Return what tools with these options are called; none where an option is not known or not allowed."""
    if any(isinstance(value, Dynamic) for value in options.values()):
        return []
    try:
        return tool_names(ToolOptions(**options))
    except (InvalidInputError, TypeError):
        return []


def _tools(frame: Frame, arguments: Arguments) -> dict[str, Any] | Dynamic:
    made = _given(frame, arguments, "tools", "ToolOptions")
    return made if isinstance(made, Dynamic) else tool_settings(made)


# -- where it is kept: the kind of store, never a URL, which may hold a password


def _scheme(values: Values | None, source: ast.expr | None) -> str | Dynamic:
    known, url = literal(values)
    if known and isinstance(url, str):
        try:
            return urlsplit(url).scheme or Dynamic("a URL without a scheme")
        except ValueError:
            return Dynamic("a URL that does not parse")
    return Dynamic("" if isinstance(source, ast.Constant | ast.JoinedStr) else shortened(source))


def _records(frame: Frame, made_by: str, arguments: Arguments) -> str | Dynamic:
    if made_by in _BY_URL:
        return _scheme(arguments.get(0, "url"), arguments.source(0, "url"))
    return _store(frame, arguments, "records", "memory") or Dynamic("")


def _assets(frame: Frame, made_by: str, arguments: Arguments) -> str | Dynamic | None:
    if made_by in _BY_URL:
        given = arguments.get(1, "assets")
        return "beside_records" if is_none(given) else _scheme(given, arguments.source(1, "assets"))
    has_own = arguments.get(None, "records") is not None
    return _store(frame, arguments, "assets", None if has_own else "memory")


def _store(
    frame: Frame, arguments: Arguments, name: str, default: str | None
) -> str | Dynamic | None:
    own = arguments.get(None, name)
    if not is_none(own):
        return _class_of(own or EMPTY) or Dynamic(shortened(arguments.source(None, name)))
    bundle = arguments.get(None, "storage")
    if is_none(bundle):
        return Dynamic(_rest(arguments)) if arguments.is_open else default
    for kind in ("memory_storage", "open_storage", "storage", "Storage"):
        made = _made(frame, bundle or EMPTY, kind)
        if made is not None:
            return _in_bundle(made, kind, name)
    return Dynamic(shortened(arguments.source(None, "storage")))


def _in_bundle(made: Arguments, kind: str, name: str) -> str | Dynamic | None:
    """Return which store a bundle of two has under a name."""
    position = 0 if name == "records" else 1
    if kind == "memory_storage":
        return "memory"
    if kind == "open_storage":
        option = "assets" if position else "url"
        given = made.get(position, option)
        is_beside = position == 1 and is_none(given)
        return "beside_records" if is_beside else _scheme(given, made.source(position, option))
    values = made.get(position, name)
    if is_none(values):
        return None
    return _class_of(values or EMPTY) or Dynamic(shortened(made.source(position, name)))


def _class_of(values: Values) -> str | None:
    names = [each.name for each in values if isinstance(each, External)]
    return names[0].rpartition(".")[2] if len(names) == 1 == len(values) else None


def is_writable(definition: Definition) -> bool:
    """Tell whether files can be changed: by a mount with write access, or where the code does not tell."""
    mounts = definition.settings["mounts"]
    if isinstance(mounts, Dynamic):
        return True
    return any(isinstance(each, Dynamic) or each["access"] != "read" for each in mounts)
