"""Walks a scope statement by statement: what each name may be from there on, joined where the code branches."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Any

from crux_workspace.index.annotations import annotated, completed
from crux_workspace.index.attributes import entered
from crux_workspace.index.evaluating import defaults, evaluate
from crux_workspace.index.facts import Owner
from crux_workspace.index.importing import import_from, import_module
from crux_workspace.index.invoking import parameters
from crux_workspace.index.program import (
    BASES,
    RETURNED,
    YIELDED,
    Environment,
    Frame,
    Program,
    Scope,
)
from crux_workspace.index.targets import assign_to
from crux_workspace.index.texts import last_name
from crux_workspace.index.values import (
    EMPTY,
    UNKNOWN,
    ClassValue,
    FunctionValue,
    Handle,
    Instance,
    Value,
    Values,
    items,
    joined,
    one,
)

__all__ = ["walk_function", "walk_module"]

_MAX_DEPTH = 90


def walk_module(program: Program, scope: Scope) -> None:
    """Walk a module from its first to its last statement."""
    assert isinstance(scope.node, ast.Module)
    _walk(Frame(program, scope), scope.node.body)


def walk_function(program: Program, scope: Scope) -> None:
    """Walk a function's body with what its parameters are known to be."""
    frame = Frame(program, scope)
    node = scope.node
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    _enter(frame, node.args)
    if isinstance(node, ast.Lambda):
        _returned(frame, evaluate(frame, node.body))
    else:
        _walk(frame, node.body)


def _enter(frame: Frame, given: ast.arguments) -> None:
    scope = frame.scope
    around = Frame(frame.program, scope.parent or scope)
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    every += [each for each in (given.vararg, given.kwarg) if each is not None]
    for parameter in every:
        values = scope.slots.get(parameter.arg)
        if not any(_is_definite(each) for each in values):
            values = joined(values, _fixture(frame, parameter.arg))
        values = completed(values, annotated(around, parameter.annotation))
        values = values or (one(UNKNOWN) if frame.program.is_open else EMPTY)
        frame.env[parameter.arg] = values
        found = frozenset(each for each in values if isinstance(each, Handle | Instance))
        if found:  # for the functions inside
            scope.slots.join(parameter.arg, found)
    own = scope.parent
    names = parameters(scope)
    is_method = own is not None and own.is_class and names and "staticmethod" not in scope.marks
    if is_method and own is not None:
        made = ClassValue if "classmethod" in scope.marks else Instance
        frame.env[names[0]] = joined(frame.env[names[0]], one(made(own.number)))


def _is_definite(value: Value) -> bool:
    """Tell what is known from what only an annotation says."""
    if isinstance(value, Handle):
        return value.definition is not None
    return isinstance(value, Instance)


def _fixture(frame: Frame, name: str) -> Values:
    """Return what a pytest fixture of that name gives to a test or to another fixture."""
    scope = frame.scope
    is_test = scope.owner.name.rpartition(".")[2].startswith("test")
    if not (is_test or "fixture" in scope.marks):
        return EMPTY
    folder = scope.file
    places = [scope.file]
    while folder:
        folder = folder.rpartition("/")[0]
        places.append(f"{folder}/conftest.py" if folder else "conftest.py")
    for place in places:
        module = frame.program.by_file.get(place)
        for value in module.slots.get(name) if module is not None else EMPTY:
            found = frame.program.scopes[value.scope] if isinstance(value, FunctionValue) else None
            if found is not None and "fixture" in found.marks:
                return found.slots.get(YIELDED) or found.slots.get(RETURNED)
    return EMPTY


def _walk(frame: Frame, body: Iterable[ast.stmt]) -> None:
    if frame.depth > _MAX_DEPTH:
        return
    frame.depth += 1
    for statement in body:
        handler = _HANDLERS.get(type(statement))
        if handler is not None:
            handler(frame, statement)
    frame.depth -= 1


# -- definitions


def _owner(frame: Frame, name: str, kind: str) -> Owner:
    above = frame.scope.owner
    return Owner(above.module, f"{above.name}.{name}" if above.name else name, kind)


def _function(frame: Frame, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    for decorator in node.decorator_list:
        evaluate(frame, decorator)
    marks = frozenset(
        last_name(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list
    )
    owner = _owner(frame, node.name, "function")
    scope = frame.program.scope(node, frame.scope.file, frame.scope, owner, marks)
    defaults(frame, scope, node.args)
    frame.assign(node.name, one(FunctionValue(scope.number)))


def _class(frame: Frame, node: ast.ClassDef) -> None:
    owner = _owner(frame, node.name, "class")
    scope = frame.program.scope(node, frame.scope.file, frame.scope, owner)
    scope.slots.join(BASES, joined(*(evaluate(frame, each) for each in node.bases)))
    scope.fields = tuple(
        each.target.id
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    )
    inside = Frame(frame.program, scope, depth=frame.depth)
    _walk(inside, node.body)
    frame.assign(node.name, one(ClassValue(scope.number)))


def _import(frame: Frame, node: ast.Import) -> None:
    for alias in node.names:
        name, values = import_module(frame, alias)
        frame.assign(name, values)


def _import_from(frame: Frame, node: ast.ImportFrom) -> None:
    for name, values in import_from(frame, node):
        frame.assign(name, values)


# -- assignments


def _assign(frame: Frame, node: ast.Assign) -> None:
    values = evaluate(frame, node.value)
    for target in node.targets:
        assign_to(frame, target, values)


def _annotated(frame: Frame, node: ast.AnnAssign) -> None:
    values = completed(evaluate(frame, node.value), annotated(frame, node.annotation))
    assign_to(frame, node.target, values)


def _augmented(frame: Frame, node: ast.AugAssign) -> None:
    if isinstance(node.target, ast.Name):
        read = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
        together = ast.copy_location(ast.BinOp(read, node.op, node.value), node.target)
        assign_to(frame, node.target, evaluate(frame, together))
    else:
        evaluate(frame, node.value)


def _returned(frame: Frame, values: Values) -> None:
    frame.scope.slots.join(RETURNED, values)


def _elsewhere(frame: Frame, node: ast.Global | ast.Nonlocal) -> None:
    above = frame.scope.parent
    while above is not None and (
        above.parent is not None if isinstance(node, ast.Global) else above.is_class
    ):
        above = above.parent
    for name in node.names if above is not None else ():
        assert above is not None
        owner = above
        while isinstance(node, ast.Nonlocal) and name not in owner.slots and owner.parent:
            owner = owner.parent
        frame.scope.elsewhere[name] = owner
        owner.shared.add(name)


# -- branches


def _if(frame: Frame, node: ast.If) -> None:
    ends: list[Environment] = []
    at: ast.If | None = node
    while at is not None:
        evaluate(frame, at.test)
        before = dict(frame.env)
        _walk(frame, at.body)
        ends.append(frame.env)
        frame.env = before
        rest = at.orelse
        at = rest[0] if len(rest) == 1 and isinstance(rest[0], ast.If) else None
        if at is None:
            _walk(frame, rest)
    frame.one_of(*ends, frame.env)


def _loop(frame: Frame, node: ast.For | ast.AsyncFor | ast.While) -> None:
    before = dict(frame.env)
    frame.one_of(before, frame.program.loops.get(id(node), {}))
    if isinstance(node, ast.While):
        evaluate(frame, node.test)
    else:
        assign_to(frame, node.target, items(evaluate(frame, node.iter)))
    _walk(frame, node.body)
    if frame.program.loops.get(id(node)) != frame.env:
        frame.program.loops[id(node)] = dict(frame.env)
        frame.program.readers.dirty.add(frame.program.readers.current)
    frame.one_of(before, frame.env)
    _walk(frame, node.orelse)


def _try(frame: Frame, node: ast.Try) -> None:
    before = dict(frame.env)
    _walk(frame, node.body)
    done = frame.env
    frame.one_of(before, done)
    failed = frame.env
    frame.env = dict(done)
    _walk(frame, node.orelse)
    ends = [frame.env]
    for handler in node.handlers:
        frame.env = dict(failed)
        _walk(frame, handler.body)
        ends.append(frame.env)
    frame.one_of(*ends)
    _walk(frame, node.finalbody)


def _with(frame: Frame, node: ast.With | ast.AsyncWith) -> None:
    for item in node.items:
        values = entered(frame, evaluate(frame, item.context_expr))
        if item.optional_vars is not None:
            assign_to(frame, item.optional_vars, values)
    _walk(frame, node.body)


def _match(frame: Frame, node: ast.Match) -> None:
    subject = evaluate(frame, node.subject)
    before = dict(frame.env)
    ends = [before]
    for case in node.cases:
        frame.env = dict(before)
        _capture(frame, case.pattern, subject)
        evaluate(frame, case.guard)
        _walk(frame, case.body)
        ends.append(frame.env)
    frame.one_of(*ends)


def _capture(frame: Frame, found: ast.pattern, subject: Values) -> None:
    for each in ast.walk(found):
        name = getattr(each, "name", None) if not isinstance(each, ast.MatchClass) else None
        if isinstance(name, str):
            frame.assign(name, subject)


def _evaluated(*names: str) -> Callable[[Frame, Any], None]:
    def handle(frame: Frame, node: ast.stmt) -> None:
        for name in names:
            evaluate(frame, getattr(node, name))

    return handle


def _return(frame: Frame, node: ast.Return) -> None:
    _returned(frame, evaluate(frame, node.value))


def _delete(frame: Frame, node: ast.Delete) -> None:
    for target in node.targets:
        if isinstance(target, ast.Name):
            frame.env.pop(target.id, None)


_HANDLERS: dict[type[ast.stmt], Callable[[Frame, Any], None]] = {
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Expr: _evaluated("value"),
    ast.Assert: _evaluated("test", "msg"),
    ast.Raise: _evaluated("exc", "cause"),
    ast.Global: _elsewhere,
    ast.Nonlocal: _elsewhere,
    ast.If: _if,
    ast.For: _loop,
    ast.AsyncFor: _loop,
    ast.While: _loop,
    ast.Try: _try,
    ast.TryStar: _try,
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Match: _match,
    ast.Delete: _delete,
}
