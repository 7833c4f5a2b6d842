"""What an expression may be. Nothing is run: names are looked up, calls are followed, literals are computed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from itertools import islice, product
from typing import Any

from crux_workspace.index.attributes import attribute, awaited
from crux_workspace.index.calling import call
from crux_workspace.index.program import YIELDED, Arguments, Frame, Scope
from crux_workspace.index.targets import assign_to
from crux_workspace.index.texts import arithmetic, constant, formatted
from crux_workspace.index.values import (
    EMPTY,
    UNKNOWN,
    Collection,
    Const,
    External,
    FunctionValue,
    Handle,
    Record,
    Sequence,
    Value,
    Values,
    collection,
    container,
    item_of,
    items,
    joined,
    one,
    record,
)

__all__ = ["evaluate"]

_MAX_DEPTH = 60
_MAX_COMBINATIONS = 16

_NOTHING = one(UNKNOWN)


def evaluate(frame: Frame, node: ast.expr | None) -> Values:
    """Return what an expression may be; what nests too deep is unknown."""
    if node is None:
        return EMPTY
    handler = _HANDLERS.get(type(node))
    if handler is None or frame.depth > _MAX_DEPTH:
        return _NOTHING
    frame.depth += 1
    try:
        return handler(frame, node)
    finally:
        frame.depth -= 1


def _constant(frame: Frame, node: ast.Constant) -> Values:
    return one(constant(node.value))


def _name(frame: Frame, node: ast.Name) -> Values:
    found = frame.look_up(node.id)
    return one(External(node.id)) if found is None else found


def _attribute(frame: Frame, node: ast.Attribute) -> Values:
    return attribute(frame, evaluate(frame, node.value), node.attr)


def _await(frame: Frame, node: ast.Await) -> Values:
    return awaited(evaluate(frame, node.value))


def _call(frame: Frame, node: ast.Call) -> Values:
    functions = evaluate(frame, node.func)
    positional: list[Values] = []
    rest = EMPTY
    for argument in node.args:
        if isinstance(argument, ast.Starred):
            rest = joined(rest, items(evaluate(frame, argument.value)))
        else:
            positional.append(evaluate(frame, argument))
    named: dict[str, Values] = {}
    is_open = False
    for keyword in node.keywords:
        values = evaluate(frame, keyword.value)
        if keyword.arg is None:
            is_open = not all(isinstance(each, Record) for each in values) or len(values) != 1
            for entries in (each.entries for each in values if isinstance(each, Record)):
                named.update(entries)
        else:
            named[keyword.arg] = values
    return call(frame, functions, Arguments(node, positional, named, rest, is_open))


def _joined_text(frame: Frame, node: ast.JoinedStr) -> Values:
    parts: list[tuple[Values, ast.expr]] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            plain = part.format_spec is None and part.conversion in (-1, 115)
            values = evaluate(frame, part.value)
            parts.append((values if plain and values else _NOTHING, part.value))
        else:
            parts.append((evaluate(frame, part), part))
    return _combined([values for values, _ in parts], [each for _, each in parts], formatted)


def _combined(
    sets: list[Values],
    nodes: list[ast.expr],
    make: Callable[[list[tuple[Value, ast.expr]]], Value],
) -> Values:
    ordered = [sorted(each or _NOTHING, key=repr) for each in sets]
    combinations = islice(product(*ordered), _MAX_COMBINATIONS + 1)
    made = [make(list(zip(each, nodes, strict=True))) for each in combinations]
    return joined(made) if len(made) <= _MAX_COMBINATIONS else _NOTHING


def _binary(frame: Frame, node: ast.BinOp) -> Values:
    left, right = evaluate(frame, node.left), evaluate(frame, node.right)

    def make(parts: list[tuple[Value, ast.expr]]) -> Value:
        return arithmetic(node.op, parts[0][0], parts[1][0], (node.left, node.right))

    return _combined([left, right], [node.left, node.right], make)


def _unary(frame: Frame, node: ast.UnaryOp) -> Values:
    def make(value: Value) -> Value:
        is_number = isinstance(value, Const) and value.type in ("int", "float")
        if isinstance(node.op, ast.USub) and is_number:
            assert isinstance(value, Const)
            assert isinstance(value.value, int | float)
            return constant(-value.value)
        return UNKNOWN

    return joined([make(value) for value in evaluate(frame, node.operand)])


def _either(frame: Frame, parts: Iterable[ast.expr]) -> Values:
    return joined(*(evaluate(frame, part) for part in parts))


def _if(frame: Frame, node: ast.IfExp) -> Values:
    evaluate(frame, node.test)
    return _either(frame, (node.body, node.orelse))


def _compare(frame: Frame, node: ast.Compare) -> Values:
    _either(frame, (node.left, *node.comparators))
    return _NOTHING


def _sequence(frame: Frame, node: ast.List | ast.Tuple) -> Values:
    if any(isinstance(each, ast.Starred) for each in node.elts):
        return _set(frame, node)
    return one(container([evaluate(frame, each) for each in node.elts]))


def _set(frame: Frame, node: ast.Set | ast.List | ast.Tuple) -> Values:
    parts = [
        items(evaluate(frame, each.value))
        if isinstance(each, ast.Starred)
        else evaluate(frame, each)
        for each in node.elts
    ]
    return one(collection(joined(*parts)))


def _dict(frame: Frame, node: ast.Dict) -> Values:
    names = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
    values = [evaluate(frame, each) for each in node.values]
    if all(isinstance(name, str) for name in names):
        return one(record({str(name): each for name, each in zip(names, values, strict=True)}))
    for key in node.keys:
        evaluate(frame, key)
    return one(collection(joined(*values)))


def _subscript(frame: Frame, node: ast.Subscript) -> Values:
    of = evaluate(frame, node.value)
    index = evaluate(frame, node.slice)
    found: list[Values] = []
    for value in of:
        if isinstance(value, Handle):
            names = [each.value for each in index if isinstance(each, Const) and each.is_text]
            kind = "tool" if value.kind == "tools" else value.kind
            tools = [
                Handle(kind, value.definition, value.namespace, value.guard, str(name))
                for name in names
            ]
            found.append(frozenset(tools) or _NOTHING)
            continue
        if isinstance(value, Record):
            found.append(_entries(value, index))
            continue
        numbers = [each.value for each in index if isinstance(each, Const) and each.type == "int"]
        if isinstance(value, Sequence) and len(numbers) == 1 == len(index):
            number = numbers[0]
            assert isinstance(number, int)
            found.append(item_of((value,), number))
        elif isinstance(value, Sequence | Collection):
            found.append(items((value,)))
        else:
            found.append(one(value) if isinstance(value, External) else _NOTHING)
    return joined(*found)


def _entries(of: Record, index: Values) -> Values:
    names = {each.value for each in index if isinstance(each, Const)}
    known = [values for name, values in of.entries if name in names]
    return joined(*known) if known and len(names) == len(index) else items((of,))


def _lambda(frame: Frame, node: ast.Lambda) -> Values:
    scope = frame.program.scope(node, frame.scope.file, frame.scope, frame.scope.owner)
    defaults(frame, scope, node.args)
    return one(FunctionValue(scope.number))


def defaults(frame: Frame, scope: Scope, given: ast.arguments) -> None:
    """Let parameters be their default values, which the scope around a function gives."""
    positional = [*given.posonlyargs, *given.args]
    pairs = list(zip(reversed(positional), reversed(given.defaults), strict=False))
    pairs += [(p, d) for p, d in zip(given.kwonlyargs, given.kw_defaults, strict=True) if d]
    for parameter, default in pairs:
        scope.slots.join(parameter.arg, evaluate(frame, default))


def _walrus(frame: Frame, node: ast.NamedExpr) -> Values:
    values = evaluate(frame, node.value)
    assign_to(frame, node.target, values)
    return values


def _yield(frame: Frame, node: ast.Yield | ast.YieldFrom) -> Values:
    values = evaluate(frame, node.value)
    given = items(values) if isinstance(node, ast.YieldFrom) else values
    frame.scope.slots.join(YIELDED, given or _NOTHING)
    return _NOTHING


_Comprehension = ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp


def _comprehension(frame: Frame, node: _Comprehension) -> Values:
    before = dict(frame.env)
    for generator in node.generators:
        assign_to(frame, generator.target, items(evaluate(frame, generator.iter)))
        for condition in generator.ifs:
            evaluate(frame, condition)
    if isinstance(node, ast.DictComp):
        evaluate(frame, node.key)
        made = evaluate(frame, node.value)
    else:
        made = evaluate(frame, node.elt)
    frame.env = before
    return one(collection(made))


def _starred(frame: Frame, node: ast.Starred) -> Values:
    return items(evaluate(frame, node.value))


_HANDLERS: dict[type[ast.expr], Callable[[Frame, Any], Values]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Await: _await,
    ast.Call: _call,
    ast.JoinedStr: _joined_text,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: lambda frame, node: _either(frame, node.values),
    ast.IfExp: _if,
    ast.Compare: _compare,
    ast.List: _sequence,
    ast.Tuple: _sequence,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.Subscript: _subscript,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _comprehension,
    ast.Starred: _starred,
}
