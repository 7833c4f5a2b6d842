"""What stands behind a dot, an ``await`` and a ``with``."""

from __future__ import annotations

from dataclasses import replace

from crux_workspace.index.invoking import invoke
from crux_workspace.index.program import Frame
from crux_workspace.index.values import (
    UNKNOWN,
    Bound,
    ClassValue,
    Collection,
    Const,
    Entered,
    External,
    FunctionValue,
    Handle,
    Instance,
    Method,
    ModuleValue,
    Pattern,
    Record,
    Sequence,
    Setting,
    Value,
    Values,
    handles,
    joined,
    one,
)

__all__ = ["attribute", "awaited", "entered"]

_PROPERTIES = frozenset({"property", "cached_property"})
_FACETS = frozenset({"snapshots"})
_FROM_AGENT = {"tools": "tools", "fs": "filesystem"}


def attribute(frame: Frame, values: Values, name: str) -> Values:
    """Return what an attribute may be."""
    known = [value for value in values if not isinstance(value, Handle)] + handles(values)
    return joined(*(_of(frame, value, name) for value in known)) if known else values


def _of(frame: Frame, value: Value, name: str) -> Values:
    if isinstance(value, Handle):
        return one(_of_handle(value, name))
    if isinstance(value, External):
        return one(External(f"{value.name}.{name}"))
    if isinstance(value, ModuleValue):
        return _of_module(frame, value, name)
    if isinstance(value, Instance | ClassValue):
        return _of_class(frame, value, name)
    if isinstance(value, Const | Pattern | Collection | Sequence | Record | Setting):
        return one(Method(value, name))
    return joined(one(UNKNOWN), frame.program.loose.get(name))


def _of_handle(handle: Handle, name: str) -> Value:
    if handle.kind == "filesystem" and name in _FROM_AGENT:
        return replace(handle, kind=_FROM_AGENT[name])
    if handle.kind == "workspace" and name in _FACETS:
        return replace(handle, kind="facet", name=name)
    return Method(handle, name)


def _of_module(frame: Frame, value: ModuleValue, name: str) -> Values:
    program = frame.program
    slots = program.by_file[value.file].slots
    if name in slots:
        return slots.get(name)
    child = program.modules.child(value.file, name)
    return one(ModuleValue(child) if child in program.by_file and child else UNKNOWN)


def _of_class(frame: Frame, value: Instance | ClassValue, name: str) -> Values:
    program = frame.program
    member = program.member(program.scopes[value.scope], name)
    if not member:
        return joined(one(UNKNOWN), program.loose.get(name))
    return joined(*(_bound(frame, value, each) for each in member))


def _bound(frame: Frame, owner: Instance | ClassValue, member: Value) -> Values:
    if not isinstance(member, FunctionValue):
        return one(member)
    scope = frame.program.scopes[member.scope]
    if "staticmethod" in scope.marks:
        return one(member)
    if "classmethod" in scope.marks:
        return one(Bound(member.scope, ClassValue(owner.scope)))
    if isinstance(owner, ClassValue):
        return one(member)
    if scope.marks & _PROPERTIES:
        return invoke(scope, owner, None)
    return one(Bound(member.scope, owner))


def awaited(values: Values) -> Values:
    """Return what awaiting these gives; the index makes no difference between a coroutine and its result."""
    return frozenset(
        replace(v, kind="workspace") if isinstance(v, Handle) and v.kind == "opening" else v
        for v in values
    )


def entered(frame: Frame, values: Values) -> Values:
    """Return what a ``with`` over these gives."""
    return joined(*(_entered(frame, value) for value in values))


def _entered(frame: Frame, value: Value) -> Values:
    if isinstance(value, Handle) and value.kind == "opening":
        return one(replace(value, kind="workspace"))
    if isinstance(value, Handle) and value.kind == "request":
        return one(replace(value, kind="transaction", guard="transaction"))
    if isinstance(value, Entered):
        return value.values
    if isinstance(value, Instance):
        program = frame.program
        for name in ("__aenter__", "__enter__"):
            found = [
                invoke(program.scopes[member.scope], value, None)
                for member in program.member(program.scopes[value.scope], name)
                if isinstance(member, FunctionValue)
            ]
            if found:
                return joined(*found)
    return one(value)
