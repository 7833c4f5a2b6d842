"""Literals and what is computed from them: numbers within bounds, texts as patterns where a part is unknown."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable

from crux_workspace.index.values import (
    TOO_MANY,
    UNKNOWN,
    Collection,
    Const,
    Pattern,
    Sequence,
    Value,
    Values,
    pattern,
)

__all__ = [
    "NONE",
    "arithmetic",
    "as_text",
    "constant",
    "formatted",
    "hole",
    "is_none",
    "last_name",
    "literal",
    "path_joined",
    "shortened",
]

_MAX_BITS = 64
_MAX_TEXT = 2_000
_HOLE = re.compile(r"%(\([^)]*\))?[#0\- +]*[\d*]*(\.[\d*]+)?[diouxXeEfFgGcrsa]")
_NUMBERS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

NONE = Const("NoneType", None)


def constant(value: object) -> Value:
    """Return a literal of the source as a value; what is too long is unknown."""
    if isinstance(value, str | bytes) and len(value) > _MAX_TEXT:
        return UNKNOWN
    if value is None or isinstance(value, str | bytes | int | float):
        return Const(type(value).__name__, value)
    return UNKNOWN


def literal(values: Values | None) -> tuple[bool, object]:
    """Return (True, the literal) when the values are exactly one literal or list of literals, else (False, None)."""
    if values is None or len(values) != 1:
        return False, None
    (value,) = values
    if isinstance(value, Const):
        return True, value.value
    if isinstance(value, Sequence):
        parts = [literal(each) for each in value.items]
        return all(known for known, _ in parts), [each for _, each in parts]
    return False, None


def is_none(values: Values | None) -> bool:
    """Tell whether the values are exactly None, or nothing was given."""
    return values is None or values == frozenset((NONE,))


def as_text(value: Value) -> str | None:
    """Return a text or pattern as text, None for everything else."""
    if isinstance(value, Pattern):
        return value.text
    return value.value if isinstance(value, Const) and isinstance(value.value, str) else None


def hole(node: ast.expr) -> str:
    """Return what stands in a pattern for an expression that is not known."""
    names: list[str] = []
    at: ast.expr = node
    while isinstance(at, ast.Attribute):
        names.append(at.attr)
        at = at.value
    if isinstance(at, ast.Name):
        found = ".".join([at.id, *reversed(names)])
        return "{" + found + "}" if len(found) <= 60 else "{}"
    return "{}"


def last_name(node: ast.expr) -> str:
    """Return the last part of a dotted name; empty for what is no name."""
    return str(getattr(node, "attr", getattr(node, "id", "")))


def shortened(node: ast.expr | None) -> str:
    """Return the source of an expression, at most 80 characters of it."""
    if node is None:
        return ""
    try:
        text = ast.unparse(node)
    except (RecursionError, ValueError):
        return "..."
    printable = "".join(char if char.isprintable() else " " for char in text[:200])
    return printable if len(printable) <= 80 else f"{printable[:77]}..."


def _text_or_hole(value: Value, node: ast.expr) -> tuple[str, bool]:
    text = as_text(value)
    if text is not None:
        return text, isinstance(value, Const)
    if isinstance(value, Const) and isinstance(value.value, int):
        return str(value.value), True
    return hole(node), False


def formatted(parts: list[tuple[Value, ast.expr]]) -> Value:
    """Return texts put together: a literal where all are, else a pattern."""
    texts = [_text_or_hole(value, node) for value, node in parts]
    whole = "".join(text for text, _ in texts)
    return constant(whole) if all(known for _, known in texts) else pattern(whole)


def path_joined(left: Value, right: Value, node: ast.expr) -> Value:
    """Return two parts of a path with a slash between them."""
    first = as_text(left)
    second, known = _text_or_hole(right, node)
    if first is None:
        return UNKNOWN
    if second.startswith("/"):
        return right
    whole = f"{first.rstrip('/')}/{second}"
    return constant(whole) if known and isinstance(left, Const) else pattern(whole)


def arithmetic(
    operation: ast.operator, left: Value, right: Value, nodes: tuple[ast.expr, ast.expr]
) -> Value:
    """Return what a binary operator gives, as far as the index computes: numbers, texts, paths and lists."""
    if isinstance(operation, ast.Div) and as_text(left) is not None:
        return path_joined(left, right, nodes[1])
    if isinstance(operation, ast.Mod) and (text := as_text(left)) is not None:
        return pattern(_HOLE.sub("{}", text))
    if isinstance(operation, ast.Add):
        if as_text(left) is not None or as_text(right) is not None:
            return formatted([(left, nodes[0]), (right, nodes[1])])
        if isinstance(left, Sequence) and isinstance(right, Sequence):
            return Sequence((left.items + right.items)[:64])
        if isinstance(left, Collection) or isinstance(right, Collection):
            return left if isinstance(left, Collection) else right
    return _number(operation, left, right)


def _number(operation: ast.operator, left: Value, right: Value) -> Value:
    if not (isinstance(left, Const) and isinstance(right, Const)):
        return TOO_MANY if TOO_MANY in (left, right) else UNKNOWN
    first, second = left.value, right.value
    if left.type != "int" or right.type != "int":
        return UNKNOWN
    assert isinstance(first, int)
    assert isinstance(second, int)
    if max(first.bit_length(), second.bit_length()) > _MAX_BITS:
        return UNKNOWN
    if isinstance(operation, ast.Pow | ast.LShift):
        if not 0 <= second <= _MAX_BITS:
            return UNKNOWN
        made = first**second if isinstance(operation, ast.Pow) else first << second
    elif type(operation) in _NUMBERS and (
        second or not isinstance(operation, ast.FloorDiv | ast.Mod)
    ):
        made = _NUMBERS[type(operation)](first, second)
    else:
        return UNKNOWN
    return constant(made) if made.bit_length() <= _MAX_BITS else UNKNOWN
