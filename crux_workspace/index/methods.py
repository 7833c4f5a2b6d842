"""What the methods of a workspace, a view, a transaction or a set of tools mean: operations, further handles, exposures."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from crux_workspace.index.definitions import named_tools, tool_settings
from crux_workspace.index.facts import Dynamic, Operation
from crux_workspace.index.library import expose
from crux_workspace.index.program import Arguments, Frame
from crux_workspace.index.texts import as_text, is_none, literal, shortened
from crux_workspace.index.values import (
    EMPTY,
    UNKNOWN,
    Collection,
    Const,
    Handle,
    Method,
    Record,
    Sequence,
    Setting,
    Value,
    Values,
    handles,
    items,
    joined,
    one,
)
from crux_workspace.model.verbs import VERBS
from crux_workspace.tools.names import workspace_tool_names

__all__ = ["PATHS", "REPLANNED", "mentioned", "method_call"]

Calls = Callable[[Value, Arguments], Values]

_NOTHING = one(UNKNOWN)
_HOLDERS = frozenset({"workspace", "view", "transaction"})


@dataclass(frozen=True, slots=True)
class Paths:
    """Which arguments of a verb are paths."""

    name: str | None = "path"
    position: int | None = 0
    to: str | None = None
    """Name of the destination, which is the second argument."""


_TWO = Paths("src", 0, "dst")
_BY_NAME = Paths(position=None)
_NONE = Paths(None, None)
PATHS: dict[str, Paths] = {
    **dict.fromkeys(("rename", "move", "copy"), _TWO),
    **dict.fromkeys(("grep", "artifacts", "log"), _BY_NAME),
    **dict.fromkeys(
        ("resolve", "usage", "cursor", "undo_commit", "transaction", "gc", "namespaces", "drop_namespace"), _NONE
    ),
    "read_many": Paths("paths", 0),
}  # fmt: skip
"""Where it is not the first argument, ``path``."""
REPLANNED = frozenset({"append", "edit", "gc", "undo_commit"})
"""Verbs that are carried out on what is there when they commit, or refused: they lose nobody's work."""
_LIKE_A_WORKSPACE = frozenset({"for_namespace", "acting_as", "as_sync", "fork", "open_fork"})


def method_call(
    frame: Frame, of: Handle | Setting, name: str, arguments: Arguments, calls: Calls
) -> Values:
    """Return what a method gives, and note what it does."""
    if isinstance(of, Setting):
        is_wrap = of.kind == "PermissionGate" and name == "wrap"
        return _wrapped(frame, arguments) if is_wrap else _NOTHING
    if of.kind in ("tools", "tool"):
        return _tool_call(frame, of, name, arguments)
    if of.kind not in _HOLDERS:
        return _NOTHING
    found = _handle_from(frame, of, name, arguments, calls)
    if name in VERBS:
        _operation(frame, of, name, arguments)
    return _NOTHING if found is None else found


def _handle_from(
    frame: Frame, of: Handle, name: str, arguments: Arguments, calls: Calls
) -> Values | None:
    """Return what leads to files again, None for every other result."""
    found: Values | None = None
    if name in _LIKE_A_WORKSPACE:
        is_bound = name == "for_namespace"
        namespace = _name(arguments, 0, "namespace") if is_bound else of.namespace
        found = one(replace(of, namespace=namespace))
    elif name == "at":
        found = one(replace(of, kind="view"))
    elif name == "transaction":
        found = _transaction(of, arguments, calls)
    elif name == "as_tools":
        found = _as_tools(frame, of, arguments)
    elif name in ("as_context", "inject"):
        kind = "context" if name == "as_context" else "injection"
        expose(frame, kind, of, arguments, writes=name == "inject")
        found = one(replace(of, kind="context"))
    return found


def _transaction(of: Handle, arguments: Arguments, calls: Calls) -> Values:
    callback = arguments.get(0, "callback")
    if is_none(callback):
        return one(replace(of, kind="request"))
    inside = one(replace(of, kind="transaction", guard="transaction"))
    passed = replace(arguments, positional=[inside], named={}, rest=EMPTY)
    return joined(*(calls(each, passed) for each in callback or EMPTY))


# -- operations


def _operation(frame: Frame, of: Handle, verb: str, arguments: Arguments) -> None:
    given = PATHS.get(verb, Paths())
    paths, kind = _texts(None if given.name is None else arguments.get(given.position, given.name))
    to, to_kind = _texts(None if given.to is None else arguments.get(1, given.to))
    if kind == "literal" and to_kind is not None:
        kind = to_kind
    guard = _guard(of, verb, arguments) if VERBS[verb].mutates else None
    _note(frame, of, verb, arguments.node, paths, to, kind, _namespace(of, arguments), guard)


def _note(
    frame: Frame,
    of: Handle,
    verb: str,
    node: ast.expr,
    paths: tuple[str, ...],
    to: tuple[str, ...],
    kind: str | None,
    namespace: str | Dynamic | None,
    guard: str | None,
) -> None:
    program = frame.program
    if guard not in (None, "replanned"):
        assert guard is not None
        program.guarded(of, guard)
    if not program.recording:
        return
    through = {"tool": "tools"}.get(of.kind, of.kind)
    place = frame.place(node)
    access: Any = "write" if VERBS[verb].mutates else "read"
    fact = Operation(
        verb, access, of.definition, place, frame.scope.owner, through, paths, to, kind, namespace, guard
    )  # fmt: skip
    program.operations[place, verb, of.definition, through, str(namespace), guard] = fact


def _guard(of: Handle, verb: str, arguments: Arguments) -> str | None:
    if of.guard is not None:
        return of.guard
    if verb in ("update", "transaction"):
        return verb
    version = arguments.get(None, "if_version")
    if version is not None and not is_none(version):
        return "if_version"
    return "replanned" if verb in REPLANNED else None


def _texts(values: Values | None) -> tuple[tuple[str, ...], str | None]:
    """Return the texts among the values, and how much of them is known."""
    if values is None or is_none(values):
        return (), None
    flat = joined(
        *(items((v,)) if isinstance(v, Sequence | Collection) else one(v) for v in values)
    )
    texts = sorted({text for value in flat if (text := as_text(value)) is not None})
    if not texts:
        return (), "dynamic"
    return tuple(texts), "literal" if all(isinstance(v, Const) for v in flat) else "pattern"


def _name(arguments: Arguments, position: int | None, name: str) -> str:
    texts, kind = _texts(arguments.get(position, name))
    if kind in ("literal", "pattern") and len(texts) == 1:
        return texts[0]
    return "{" + shortened(arguments.source(position, name)) + "}"


def _namespace(of: Handle, arguments: Arguments) -> str | Dynamic | None:
    values = arguments.named.get("namespace")
    if is_none(values):
        return of.namespace
    texts, kind = _texts(values)
    if len(texts) == 1 and kind == "literal":
        return texts[0]
    return Dynamic(shortened(arguments.source(None, "namespace")))


def mentioned(frame: Frame, values: Values, node: ast.Call) -> None:
    """Note the verbs that are passed on as functions, to be called by somebody else."""
    for value in values:
        if isinstance(value, Method) and isinstance(value.of, Handle) and value.name in VERBS:
            of = value.of
            if of.kind in _HOLDERS:
                guard = of.guard if VERBS[value.name].mutates else None
                _note(frame, of, value.name, node, (), (), "dynamic", of.namespace, guard)


# -- tools


def _as_tools(frame: Frame, of: Handle, arguments: Arguments) -> Values:
    definition = frame.program.definition(of)
    base = tool_settings(None) if definition is None else definition.settings["tools"]
    options = dict(base) if isinstance(base, dict) else {"prefix": Dynamic("")}
    options.pop("names", None)
    order = ("namespace", "prefix", "delete", "undo", "extra")
    for name in (*order[1:], "read_before_write"):
        position = order.index(name) if name in order else None
        values = arguments.get(position, name)
        if is_none(values) and not arguments.is_open:
            continue
        known, value = literal(values)
        options[name] = value if known else Dynamic(shortened(arguments.source(position, name)))
    guard = of.guard
    if options.get("read_before_write") is True:
        guard = guard or "read_before_write"
    expose(frame, "tools", of, arguments, tools=tuple(named_tools(options)), guard=guard)
    bound = arguments.get(0, "namespace")
    namespace = of.namespace if is_none(bound) else _name(arguments, 0, "namespace")
    return one(replace(of, kind="tools", guard=guard, namespace=namespace))


def _wrapped(frame: Frame, arguments: Arguments) -> Values:
    """Return what a permission gate makes of tools."""
    given = arguments.get(0, "tools") or EMPTY
    found = handles(joined(given, items(given)))
    made = [
        replace(each, guard="permission_gate") for each in found if each.kind in ("tools", "tool")
    ]
    for handle in made:
        expose(frame, "handed", handle, arguments, to="PermissionGate.wrap")
    return frozenset(replace(each, kind="tools") for each in made) or _NOTHING


def _tool_call(frame: Frame, of: Handle, name: str, arguments: Arguments) -> Values:
    if name != "call":
        return one(of) if name == "to" else _NOTHING
    position = 1 if of.kind == "tools" else 0
    known, called = literal(arguments.get(0, "name")) if of.kind == "tools" else (True, of.name)
    verb = _verb_of(called) if known and isinstance(called, str) else None
    if verb is None:
        return _NOTHING
    paths, kind = _texts(_entry(arguments, position, ("path", "from")))
    to, _ = _texts(_entry(arguments, position, ("to",)))
    guard = of.guard or ("replanned" if verb in REPLANNED else None)
    guard = guard if VERBS[verb].mutates else None
    _note(frame, of, verb, arguments.node, paths, to, kind, of.namespace, guard)
    return _NOTHING


def _verb_of(tool: str) -> str | None:
    names = workspace_tool_names()
    for verb in VERBS.values():
        if verb.tool is None:
            continue
        first, _, last = getattr(names, verb.tool).partition("Workspace")
        middle = tool[len(first) : len(tool) - len(last)]
        if tool.startswith(first) and tool.endswith(last) and middle.endswith("Workspace"):
            return verb.name
    return None


def _entry(arguments: Arguments, position: int, names: tuple[str, ...]) -> Values | None:
    """Return an entry of the arguments of a tool, as far as the dict with them is known."""
    given = arguments.get(position, "arguments")
    if given is None:
        return None
    found = [
        values
        for each in given
        if isinstance(each, Record)
        for name, values in each.entries
        if name in names
    ]
    is_known = all(isinstance(each, Record) for each in given)
    return joined(*found) if is_known else joined(_NOTHING, *found)
