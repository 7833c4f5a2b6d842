"""What an expression may be, as far as the index cares; sets of these are joined where the code branches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

__all__ = [
    "EMPTY",
    "TOO_MANY",
    "UNKNOWN",
    "Bound",
    "ClassValue",
    "Collection",
    "Const",
    "Entered",
    "External",
    "FunctionValue",
    "Handle",
    "Instance",
    "Method",
    "ModuleValue",
    "Partial",
    "Pattern",
    "Record",
    "Sequence",
    "Setting",
    "Unknown",
    "Value",
    "Values",
    "collection",
    "container",
    "handles",
    "item_of",
    "items",
    "joined",
    "one",
    "pattern",
    "record",
    "settled",
]

_MAX_TEXTS = 8
_MAX_OTHERS = 32
_MAX_DEPTH = 3
_MAX_PATTERN = 300


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything; `too_many` when texts were given up because there were too many of them."""

    too_many: bool = False


@dataclass(frozen=True, slots=True)
class Const:
    """A literal, with its type: 1 is not True."""

    type: str
    value: str | bytes | int | float | None

    @property
    def is_text(self) -> bool:
        """Whether it is a str."""
        return self.type == "str"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A text with ``{...}`` where something unknown stands."""

    text: str


@dataclass(frozen=True, slots=True)
class External:
    """A name of another package, or a builtin."""

    name: str


@dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module of the folder."""

    file: str


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """A function of the folder, by the number of its scope."""

    scope: int


@dataclass(frozen=True, slots=True)
class ClassValue:
    """A class of the folder, by the number of its scope."""

    scope: int


@dataclass(frozen=True, slots=True)
class Instance:
    """An object of a class of the folder."""

    scope: int


@dataclass(frozen=True, slots=True)
class Bound:
    """A function with its first argument."""

    scope: int
    receiver: Instance | ClassValue


@dataclass(frozen=True, slots=True)
class Handle:
    """Something that leads to the files of a workspace."""

    kind: str
    """``workspace``, ``opening`` (to be awaited or entered), ``view`` (read-only), ``request`` (a transaction to be entered),
    ``transaction``, ``tools``, ``tool``, ``context``, ``filesystem`` or ``facet``."""
    definition: str | None
    """Key of the definition; None when only an annotation says that it is one."""
    namespace: str | None = None
    """What a view names; ``{...}`` in it as in a pattern."""
    guard: str | None = None
    """What keeps all writes through it in check."""
    name: str | None = None
    """Of a tool or a facet."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a handle, a text or a collection."""

    of: Handle | Const | Pattern | Collection | Sequence | Record | Setting
    name: str


@dataclass(frozen=True, slots=True)
class Setting:
    """A settings object of the library, such as `Limits(...)`, by the place where it is made."""

    kind: str
    place: tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A tuple or list with known items."""

    items: tuple[Values, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """A container or iterator of which only the items are known, not how many."""

    items: Values


@dataclass(frozen=True, slots=True)
class Record:
    """A dict with literal keys."""

    entries: tuple[tuple[str, Values], ...]


@dataclass(frozen=True, slots=True)
class Entered:
    """A context manager that gives these when it is entered."""

    values: Values


@dataclass(frozen=True, slots=True)
class Partial:
    """`functools.partial`."""

    function: Value
    positional: tuple[Values, ...]
    named: tuple[tuple[str, Values], ...]


Value: TypeAlias = (
    Unknown | Const | Pattern | External | ModuleValue | FunctionValue | ClassValue | Instance | Bound
    | Handle | Method | Setting | Sequence | Collection | Record | Entered | Partial
)  # fmt: skip
Values: TypeAlias = frozenset[Value]

EMPTY: Values = frozenset()
UNKNOWN = Unknown()
TOO_MANY = Unknown(too_many=True)


def one(value: Value) -> Values:
    """Return the set of one value."""
    return frozenset((value,))


def joined(*sets: Iterable[Value]) -> Values:
    """Return the union, bounded: too many texts, patterns that grow and nesting that deepens become unknown, and stay so."""
    first = sets[0] if sets else EMPTY
    if isinstance(first, frozenset) and all(each is first or not each for each in sets[1:]):
        return first
    found = set(first)
    for values in sets[1:]:
        found.update(values)
    if isinstance(first, frozenset) and len(found) == len(first):
        return first
    if len(found) <= 1:
        return frozenset(found)
    texts = [each for each in found if isinstance(each, Const | Pattern)]
    if texts and (TOO_MANY in found or len(texts) > _MAX_TEXTS):
        found.difference_update(texts)
        found.update((UNKNOWN, TOO_MANY))
    if len(found) > _MAX_OTHERS:
        kept = {each for each in found if isinstance(each, Handle | Unknown)}
        return frozenset(kept | {UNKNOWN, TOO_MANY})
    return frozenset(found)


def pattern(text: str) -> Value:
    """Return a pattern, or an unknown value where it would be too long."""
    return Pattern(text) if len(text) <= _MAX_PATTERN else TOO_MANY


def container(parts: list[Values]) -> Value:
    """Return a sequence of these items; one that is nested too deep keeps nothing."""
    made = Sequence(tuple(parts)) if len(parts) <= _MAX_OTHERS else Collection(joined(*parts))
    return made if _depth(made) <= _MAX_DEPTH else UNKNOWN


def record(entries: dict[str, Values]) -> Value:
    """Return a dict with these entries; one that is large or nested too deep keeps nothing."""
    made = Record(tuple(sorted(entries.items(), key=lambda each: each[0])))
    return made if len(entries) <= _MAX_OTHERS and _depth(made) <= _MAX_DEPTH else UNKNOWN


def collection(values: Values) -> Value:
    """Return a collection of such items; one that is nested too deep keeps nothing."""
    made = Collection(values)
    return made if _depth(made) <= _MAX_DEPTH else UNKNOWN


def items(values: Iterable[Value]) -> Values:
    """Return what an iteration over these gives."""
    found: list[Values] = []
    for value in values:
        if isinstance(value, Collection):
            found.append(value.items)
        elif isinstance(value, Sequence):
            found.extend(value.items)
        elif isinstance(value, Record):
            found.extend(each for _, each in value.entries)
        elif isinstance(value, Handle) and value.kind == "tools":
            found.append(one(replace(value, kind="tool")))
        else:
            found.append(one(UNKNOWN))
    return joined(*found)


def item_of(values: Iterable[Value], position: int) -> Values:
    """Return what unpacking gives at a position."""
    found: list[Values] = []
    for value in values:
        if isinstance(value, Sequence) and -len(value.items) <= position < len(value.items):
            found.append(value.items[position])
        else:
            found.append(items((value,)))
    return joined(*found)


def handles(values: Iterable[Value]) -> list[Handle]:
    """Return the handles among the values; anonymous ones only where nothing better is known."""
    found = [value for value in values if isinstance(value, Handle)]
    known = {value.kind for value in found if value.definition is not None}
    kept = [v for v in found if v.definition is not None or v.kind not in known]
    return sorted(
        kept,
        key=lambda each: (each.kind, each.definition or "", each.namespace or "", each.guard or ""),
    )


def settled(values: Values) -> Values:
    """Drop anonymous handles where a known one of that kind is among the values."""
    found = [value for value in values if isinstance(value, Handle)]
    if len(found) < 2:
        return values
    kept = handles(found)
    return frozenset(v for v in values if not isinstance(v, Handle) or v in kept)


def _depth(value: Value) -> int:
    if isinstance(value, Sequence):
        return 1 + max((_depth(each) for part in value.items for each in part), default=0)
    if isinstance(value, Record):
        return 1 + max((_depth(each) for _, part in value.entries for each in part), default=0)
    if isinstance(value, Collection):
        return 1 + max((_depth(each) for each in value.items), default=0)
    return 0
