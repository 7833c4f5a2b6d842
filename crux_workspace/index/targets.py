"""Assignment: names, attributes, items, and unpacking."""

from __future__ import annotations

import ast

from crux_workspace.index.program import Frame
from crux_workspace.index.values import (
    UNKNOWN,
    ClassValue,
    Collection,
    Handle,
    Instance,
    ModuleValue,
    Record,
    Sequence,
    Value,
    Values,
    collection,
    item_of,
    joined,
    one,
)

__all__ = ["assign_to", "put_into", "simple_value"]


def assign_to(frame: Frame, target: ast.expr, values: Values) -> None:
    """Let a target be these values."""
    if isinstance(target, ast.Name):
        frame.assign(target.id, values)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target, values)
    elif isinstance(target, ast.Attribute):
        _set_attribute(frame, target, values)
    elif isinstance(target, ast.Subscript):
        put_into(frame, target.value, values)
    elif isinstance(target, ast.Starred):
        assign_to(frame, target.value, values)


def _unpack(frame: Frame, target: ast.Tuple | ast.List, values: Values) -> None:
    starred = [n for n, each in enumerate(target.elts) if isinstance(each, ast.Starred)]
    for number, each in enumerate(target.elts):
        if starred and number > starred[0]:
            part = item_of(values, number - len(target.elts))
        elif starred and number == starred[0]:
            after = len(target.elts) - number - 1
            part = joined(*(_middle(value, number, after) for value in values))
        else:
            part = item_of(values, number)
        assign_to(frame, each, part)


def _middle(value: Value, before: int, after: int) -> Values:
    """Return what a starred target gets of a value."""
    if not isinstance(value, Sequence):
        return one(value)
    return one(Sequence(value.items[before : len(value.items) - after]))


def _set_attribute(frame: Frame, target: ast.Attribute, values: Values) -> None:
    program = frame.program
    is_foreign = True
    for owner in simple_value(frame, target.value):
        if isinstance(owner, Instance | ClassValue):
            program.scopes[owner.scope].slots.join(target.attr, values)
            is_foreign = False
        elif isinstance(owner, ModuleValue):
            program.by_file[owner.file].slots.join(target.attr, values)
            is_foreign = False
    known = frozenset(v for v in values if isinstance(v, Handle) and v.definition is not None)
    if is_foreign and known:
        program.loose.join(target.attr, known)


def put_into(frame: Frame, container: ast.expr, values: Values) -> None:
    """Let what a container holds be these values too."""
    if not any(isinstance(v, Handle | Collection | Sequence | Record | Instance) for v in values):
        return
    if isinstance(container, ast.Name):
        before = frame.look_up(container.id) or one(UNKNOWN)
        frame.assign(container.id, joined(before, one(collection(values))))
    elif isinstance(container, ast.Attribute):
        _set_attribute(frame, container, one(collection(values)))


def simple_value(frame: Frame, node: ast.expr) -> Values:
    """Return what the object before a dot may be, without following calls."""
    if isinstance(node, ast.Name):
        return frame.look_up(node.id) or one(UNKNOWN)
    if isinstance(node, ast.Attribute):
        found: list[Values] = []
        for owner in simple_value(frame, node.value):
            if isinstance(owner, Instance | ClassValue):
                scope = frame.program.scopes[owner.scope]
                found.append(frame.program.member(scope, node.attr))
            elif isinstance(owner, ModuleValue):
                slots = frame.program.by_file[owner.file].slots
                found.append(slots.get(node.attr) or one(UNKNOWN))
        return joined(*found)
    return one(UNKNOWN)
