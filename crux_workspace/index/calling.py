"""What a call gives: functions of the folder are followed, the library's names have their meaning, a few builtins pass things on."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from crux_workspace.index.attributes import attribute, awaited, entered
from crux_workspace.index.invoking import construct, invoke
from crux_workspace.index.library import library_call, library_name
from crux_workspace.index.methods import mentioned, method_call
from crux_workspace.index.program import Arguments, Frame
from crux_workspace.index.targets import put_into
from crux_workspace.index.texts import last_name, path_joined
from crux_workspace.index.types import objects_of
from crux_workspace.index.values import (
    EMPTY,
    UNKNOWN,
    Bound,
    ClassValue,
    Collection,
    Const,
    External,
    FunctionValue,
    Handle,
    Instance,
    Method,
    Partial,
    Pattern,
    Record,
    Sequence,
    Setting,
    Value,
    Values,
    collection,
    container,
    items,
    joined,
    one,
    pattern,
    record,
)

__all__ = ["call"]

_NOTHING = one(UNKNOWN)
_ADDS = frozenset({"append", "add", "insert", "setdefault", "appendleft", "put_nowait", "put"})
_THROUGH = frozenset(
    {
        "run", "wait_for", "shield", "create_task", "ensure_future", "run_until_complete", "aclosing", "closing",
        "run_coroutine_threadsafe", "deepcopy", "result",
    }
)  # fmt: skip
_ENTERS = frozenset({"enter_async_context", "enter_context"})
_FORWARDS = {
    "to_thread": 0,
    "run_sync": 0,
    "start_soon": 0,
    "Depends": 0,
    "submit": 0,
    "run_in_executor": 1,
}
"""Where the function stands that is called with what comes after it."""
_PATHS = frozenset({"PurePosixPath", "PosixPath", "PurePath", "Path", "str"})


def call(frame: Frame, functions: Values, arguments: Arguments) -> Values:
    """Return what a call may give."""
    if not functions:
        return EMPTY
    _put(frame, arguments)
    for _, values in arguments.all():
        mentioned(frame, values, arguments.node)
    return joined(*(_called(frame, function, arguments) for function in functions))


def _put(frame: Frame, arguments: Arguments) -> None:
    function = arguments.node.func
    if isinstance(function, ast.Attribute) and function.attr in _ADDS and arguments.positional:
        put_into(frame, function.value, arguments.positional[-1])


def _called(frame: Frame, function: Value, arguments: Arguments) -> Values:
    handler = _CALLED.get(type(function))
    if handler is None:
        return _foreign(frame, last_name(arguments.node.func), arguments)
    return handler(frame, function, arguments)


def _called_function(frame: Frame, function: FunctionValue, arguments: Arguments) -> Values:
    return invoke(frame.program.scopes[function.scope], None, arguments)


def _called_bound(frame: Frame, function: Bound, arguments: Arguments) -> Values:
    scope = frame.program.scopes[function.scope]
    return invoke(scope, function.receiver, arguments)


def _called_class(frame: Frame, function: ClassValue, arguments: Arguments) -> Values:
    return construct(frame.program, frame.program.scopes[function.scope], arguments)


def _called_object(frame: Frame, function: Instance, arguments: Arguments) -> Values:
    program = frame.program
    members = program.member(program.scopes[function.scope], "__call__")
    found = [
        invoke(program.scopes[each.scope], function, arguments)
        for each in members
        if isinstance(each, FunctionValue)
    ]
    return joined(*found) if found else _NOTHING


def _called_partial(frame: Frame, function: Partial, arguments: Arguments) -> Values:
    merged = replace(
        arguments,
        positional=[*function.positional, *arguments.positional],
        named={**dict(function.named), **arguments.named},
    )
    return _called(frame, function.function, merged)


def _called_method(frame: Frame, method: Method, arguments: Arguments) -> Values:
    of = method.of
    if isinstance(of, Handle | Setting):
        return method_call(frame, of, method.name, arguments, lambda f, a: _called(frame, f, a))
    if isinstance(of, Const | Pattern):
        return _text_method(of, method.name)
    return _container_method(of, method.name, arguments)


def _text_method(text: Const | Pattern, name: str) -> Values:
    if name == "format":
        value = text.text if isinstance(text, Pattern) else text.value
        return one(pattern(value)) if isinstance(value, str) else _NOTHING
    if name in ("as_posix", "strip", "lower"):
        return one(text)
    return _NOTHING


def _container_method(
    of: Collection | Sequence | Record, name: str, arguments: Arguments
) -> Values:
    inside = items((of,))
    if name == "items":
        return one(collection(one(container([_NOTHING, inside]))))
    if name in ("values", "copy"):
        return one(collection(inside))
    if name in ("get", "pop", "popleft", "setdefault", "get_nowait"):
        wanted = {
            each.value for each in arguments.get(0, "key") or EMPTY if isinstance(each, Const)
        }
        known = [v for n, v in of.entries if n in wanted] if isinstance(of, Record) else []
        return joined(*known) if known else inside or _NOTHING
    return _NOTHING


def _called_name(frame: Frame, function: External, arguments: Arguments) -> Values:
    name = function.name
    known = library_name(name)
    if known is not None:
        return library_call(frame, known, arguments)
    last = name.rpartition(".")[2]
    if last in _BUILTINS:
        return _BUILTINS[last](frame, arguments)
    return _foreign(frame, last, arguments)


def _foreign(frame: Frame, last: str, arguments: Arguments) -> Values:
    """Return what a call of somebody else's function gives: most give nothing that matters, some pass on what they get."""
    given = arguments.positional
    if last in _THROUGH and given:
        return given[0]
    if last in _ENTERS and given:
        return entered(frame, given[0])
    if last in _FORWARDS and len(given) > _FORWARDS[last]:
        at = _FORWARDS[last]
        passed = replace(arguments, positional=given[at + 1 :])
        found = [_called(frame, each, passed) for each in given[at] if _is_callable(each)]
        return joined(*found) if found else _NOTHING
    if last == "Thread":
        return _thread(frame, arguments)
    if last == "gather" and arguments.rest:
        return one(collection(awaited(arguments.rest)))
    return one(container([awaited(each) for each in given])) if last == "gather" else _NOTHING


def _is_callable(value: Value) -> bool:
    return isinstance(value, FunctionValue | Bound | Method | Partial | ClassValue)


def _thread(frame: Frame, arguments: Arguments) -> Values:
    positional: list[Values] = []
    for value in arguments.named.get("args", EMPTY):
        if isinstance(value, Sequence):
            positional = list(value.items)
    passed = replace(arguments, positional=positional, named={})
    for target in arguments.named.get("target", EMPTY):
        if _is_callable(target):
            _called(frame, target, passed)
    return _NOTHING


# -- builtins


def _listed(frame: Frame, arguments: Arguments) -> Values:
    return one(collection(items(arguments.positional[0]) if arguments.positional else EMPTY))


def _next(frame: Frame, arguments: Arguments) -> Values:
    return items(arguments.positional[0]) if arguments.positional else _NOTHING


def _enumerated(frame: Frame, arguments: Arguments) -> Values:
    inside = items(arguments.positional[0]) if arguments.positional else _NOTHING
    return one(collection(one(container([_NOTHING, inside]))))


def _zipped(frame: Frame, arguments: Arguments) -> Values:
    return one(collection(one(container([items(each) for each in arguments.positional]))))


def _dict(frame: Frame, arguments: Arguments) -> Values:
    return one(record(arguments.named))


def _cast(frame: Frame, arguments: Arguments) -> Values:
    if len(arguments.positional) != 2:
        return _NOTHING
    typed = objects_of(arguments.positional[0])
    return joined(arguments.positional[1], typed)


def _getattr(frame: Frame, arguments: Arguments) -> Values:
    name = arguments.get(1, "name") or EMPTY
    names = [each.value for each in name if isinstance(each, Const) and each.is_text]
    if len(names) != 1 or not arguments.positional:
        return _NOTHING
    return attribute(frame, arguments.positional[0], str(names[0]))


def _partial(frame: Frame, arguments: Arguments) -> Values:
    if not arguments.positional:
        return _NOTHING
    first, *rest = arguments.positional
    named = tuple(sorted(arguments.named.items()))
    return frozenset(
        Partial(each, tuple(rest), named)
        for each in first
        if _is_callable(each) and not isinstance(each, Partial)
    )


def _path(frame: Frame, arguments: Arguments) -> Values:
    if len(arguments.positional) == 1:
        return arguments.positional[0]
    found = arguments.positional[0] if arguments.positional else _NOTHING
    for values, node in list(zip(arguments.positional, arguments.node.args, strict=False))[1:]:
        found = joined([path_joined(a, b, node) for a in found for b in values])
    return found


def _super(frame: Frame, arguments: Arguments) -> Values:
    scope = frame.scope.parent
    while scope is not None and not scope.is_class:
        scope = scope.parent
    bases = EMPTY if scope is None else scope.bases
    found = [Instance(each.scope) for each in bases if isinstance(each, ClassValue)]
    return frozenset(found) if found else _NOTHING


_BUILTINS: dict[str, Callable[[Frame, Arguments], Values]] = {
    **dict.fromkeys(("list", "tuple", "set", "sorted", "reversed", "iter", "aiter", "frozenset"), _listed),
    **dict.fromkeys(("next", "anext"), _next),
    **dict.fromkeys(_PATHS, _path),
    "enumerate": _enumerated,
    "zip": _zipped,
    "dict": _dict,
    "cast": _cast,
    "getattr": _getattr,
    "partial": _partial,
    "super": _super,
}  # fmt: skip
_CALLED: dict[type[Value], Callable[[Frame, Any, Arguments], Values]] = {
    FunctionValue: _called_function,
    Bound: _called_bound,
    ClassValue: _called_class,
    Instance: _called_object,
    Partial: _called_partial,
    Method: _called_method,
    External: _called_name,
}
