"""Calls of the folder's own functions and classes: arguments become parameters, what is returned becomes the result."""

from __future__ import annotations

import ast

from crux_workspace.index.program import RETURNED, YIELDED, Arguments, Program, Scope
from crux_workspace.index.values import (
    ClassValue,
    Entered,
    FunctionValue,
    Instance,
    Values,
    collection,
    one,
)

__all__ = ["construct", "invoke", "parameters", "result_of"]

_MANAGERS = frozenset({"contextmanager", "asynccontextmanager"})


def parameters(scope: Scope) -> list[str]:
    """Return the names of a function's positional parameters."""
    assert isinstance(scope.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
    given = scope.node.args
    return [each.arg for each in (*given.posonlyargs, *given.args)]


def invoke(
    scope: Scope,
    receiver: Instance | ClassValue | None,
    arguments: Arguments | None,
) -> Values:
    """Call a function of the folder; its body is walked in its own turn."""
    names = parameters(scope)
    positional: list[Values] = [] if receiver is None else [one(receiver)]
    if arguments is not None:
        positional += arguments.positional
        _bind_named(scope, names, positional, arguments)
    assert not isinstance(scope.node, ast.Module | ast.ClassDef)
    spread = scope.node.args.vararg
    for number, values in enumerate(positional):
        if number < len(names):
            scope.slots.join(names[number], values)
        elif spread is not None:
            scope.slots.join(spread.arg, one(collection(values)))
    return result_of(scope)


def _bind_named(
    scope: Scope,
    names: list[str],
    positional: list[Values],
    arguments: Arguments,
) -> None:
    assert not isinstance(scope.node, ast.Module | ast.ClassDef)
    given = scope.node.args
    known = {*names, *(each.arg for each in given.kwonlyargs)}
    for name, values in arguments.named.items():
        if name in known:
            scope.slots.join(name, values)
        elif given.kwarg is not None:
            scope.slots.join(given.kwarg.arg, one(collection(values)))
    if arguments.rest:
        for name in names[len(positional) :]:
            scope.slots.join(name, arguments.rest)


def result_of(scope: Scope) -> Values:
    """Return what a call of a function gives."""
    yields = scope.slots.get(YIELDED)
    if not yields:
        return scope.slots.get(RETURNED)
    if scope.marks & _MANAGERS:
        return one(Entered(yields))
    return yields if "fixture" in scope.marks else one(collection(yields))


def construct(program: Program, scope: Scope, arguments: Arguments) -> Values:
    """Make an object of a class of the folder; without a constructor its annotated names take the arguments, as in a dataclass."""
    made = Instance(scope.number)
    makers = [v for v in program.member(scope, "__init__") if isinstance(v, FunctionValue)]
    for maker in makers:
        invoke(program.scopes[maker.scope], made, arguments)
    if not makers:
        _fill(program, scope, arguments)
    return one(made)


def _fill(program: Program, scope: Scope, arguments: Arguments) -> None:
    fields = [name for each in reversed(program.bases_of(scope)) for name in each.fields]
    owners = {name: each for each in reversed(program.bases_of(scope)) for name in each.fields}
    pairs = list(zip(fields, arguments.positional, strict=False))
    pairs += [(name, values) for name, values in arguments.named.items() if name in owners]
    for name, values in pairs:
        owners[name].slots.join(name, values)
