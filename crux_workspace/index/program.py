"""The state of one analysis: scopes with what their names may be, and the facts that the last round notes down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from crux_workspace.index.facts import Definition, Exposure, Operation, Owner, Place, printable
from crux_workspace.index.modules import Modules
from crux_workspace.index.slots import Readers, Slots
from crux_workspace.index.values import EMPTY, ClassValue, Handle, Values, joined, settled

__all__ = [
    "BASES",
    "RETURNED",
    "YIELDED",
    "Arguments",
    "Environment",
    "Frame",
    "Function",
    "Program",
    "Scope",
]

RETURNED = "return"
"""Under this name, which no variable has, a function's scope keeps what it returns."""
YIELDED = "yield"
BASES = "class"

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Environment: TypeAlias = dict[str, Values]


@dataclass(slots=True, eq=False)
class Scope:
    """A module, class or function, with what each of its names may ever be."""

    number: int
    node: ast.Module | ast.ClassDef | Function
    file: str
    owner: Owner
    parent: Scope | None
    slots: Slots
    marks: frozenset[str] = frozenset()
    """Last names of the decorators."""
    fields: tuple[str, ...] = ()
    """Annotated names of a class body, in order: the parameters of a dataclass."""
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    """Names that the function declares global or nonlocal, with whose they are."""
    shared: set[str] = field(default_factory=set)
    """Names that functions inside assign."""

    @property
    def is_function(self) -> bool:
        """Whether it has parameters."""
        return isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)

    @property
    def bases(self) -> Values:
        """Of a class: what stands in the brackets."""
        return self.slots.get(BASES)

    @property
    def is_class(self) -> bool:
        """Whether its names are attributes."""
        return isinstance(self.node, ast.ClassDef)


@dataclass(slots=True)
class Arguments:
    """What a call is given."""

    node: ast.Call
    positional: list[Values]
    named: dict[str, Values]
    rest: Values = EMPTY
    """Items of what stands behind a star."""
    is_open: bool = False
    """Whether ``**something`` may give further arguments."""

    def get(self, position: int | None, name: str) -> Values | None:
        """Return one argument by position or name, None when it was not given."""
        if name in self.named:
            return self.named[name]
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return None

    def source(self, position: int | None, name: str) -> ast.expr | None:
        """Return the expression of one argument."""
        for keyword in self.node.keywords:
            if keyword.arg == name:
                return keyword.value
        plain = position is not None and position < len(self.node.args)
        return self.node.args[position] if plain and position is not None else None

    def all(self) -> Iterator[tuple[str | int, Values]]:
        """Return all arguments with their positions or names."""
        yield from enumerate(self.positional)
        yield from self.named.items()


@dataclass(slots=True)
class Program:
    """All scopes of the relevant files, and the facts."""

    modules: Modules
    scopes: list[Scope] = field(default_factory=list)
    by_node: dict[int, Scope] = field(default_factory=dict)
    by_file: dict[str, Scope] = field(default_factory=dict)
    readers: Readers = field(default_factory=Readers)
    loose: Slots = field(init=False)
    """Attributes of objects that are not of this folder, such as ``app.state``, where they hold handles."""
    made: dict[tuple[str, int, int], Arguments] = field(default_factory=dict)
    """How the settings objects were made, by place."""
    loops: dict[int, Environment] = field(default_factory=dict)
    """What a loop's body left behind in the round before."""
    lines: dict[str, list[str]] = field(default_factory=dict)
    """The sources' lines, by file."""
    again: set[int] = field(default_factory=set)
    """Scopes that asked for a definition before it was noted down."""
    is_open: bool = False
    """Whether a parameter that no call of this folder fills may be anything: somebody else calls the function."""
    recording: bool = False
    """Whether this is the round that notes facts down."""
    definitions: dict[str, Definition] = field(default_factory=dict)
    operations: dict[tuple[object, ...], Operation] = field(default_factory=dict)
    exposures: dict[tuple[object, ...], Exposure] = field(default_factory=dict)
    guards: set[tuple[str, str]] = field(default_factory=set)
    """(definition, what keeps writes to it in check)."""

    def __post_init__(self) -> None:
        self.loose = Slots(self.readers)

    def scope(
        self,
        node: ast.Module | ast.ClassDef | Function,
        file: str,
        parent: Scope | None,
        owner: Owner,
        marks: frozenset[str] = frozenset(),
    ) -> Scope:
        """Return the scope of a node; the same one in every round."""
        found = self.by_node.get(id(node))
        if found is None:
            slots = Slots(self.readers)
            found = Scope(len(self.scopes), node, file, owner, parent, slots, marks)
            self.scopes.append(found)
            self.by_node[id(node)] = found
            if not found.is_class:
                self.readers.dirty.add(found.number)
        return found

    def definition(self, handle: Handle) -> Definition | None:
        """Return the definition of a handle, None as long as it is not noted down."""
        found = self.definitions.get(handle.definition or "")
        if found is None and handle.definition is not None:
            self.again.add(self.readers.current)
        return found

    def bases_of(self, scope: Scope) -> list[Scope]:
        """Return a class and its bases of this folder, nearest first."""
        if not any(isinstance(each, ClassValue) for each in scope.bases):
            return [scope]
        order: list[Scope] = []
        waiting = [scope]
        while waiting and len(order) < 50:
            here = waiting.pop(0)
            if here not in order:
                order.append(here)
                waiting += sorted(
                    (self.scopes[b.scope] for b in here.bases if isinstance(b, ClassValue)),
                    key=lambda each: each.number,
                )
        return order

    def member(self, scope: Scope, name: str) -> Values:
        """Return what an attribute of a class, or of its objects, may be."""
        for each in self.bases_of(scope):
            if name in each.slots:
                return settled(each.slots.get(name))
        return EMPTY

    def guarded(self, handle: Handle, guard: str) -> None:
        """Note that something keeps writes to a workspace in check."""
        if handle.definition is not None:
            self.guards.add((handle.definition, guard))


@dataclass(slots=True)
class Frame:
    """One walk through one scope."""

    program: Program
    scope: Scope
    env: Environment = field(default_factory=dict)
    depth: int = 0

    def place(self, node: ast.expr | ast.stmt) -> Place:
        """Return where a node stands."""
        file = self.scope.file
        lines = self.program.lines.get(file, ())
        line = lines[node.lineno - 1] if 0 < node.lineno <= len(lines) else ""
        before = line.encode("utf-8", "replace")[: node.col_offset]
        column = node.col_offset if line.isascii() else len(before.decode("utf-8", "replace"))
        return Place(printable(file), node.lineno, column + 1)

    def look_up(self, name: str) -> Values | None:
        """Return what a name may be here, None when nobody defines it."""
        here = self.env.get(name)
        if here is not None and name not in self.scope.shared:
            return settled(here)
        found = joined(here or EMPTY, self.scope.slots.get(name))
        if found:
            return settled(found)
        above = self.scope.parent
        while above is not None:
            if name in above.slots and not above.is_class:
                return settled(above.slots.get(name))
            above = above.parent
        return None

    def assign(self, name: str, values: Values) -> None:
        """Let a name be these values from here on."""
        other = self.scope.elsewhere.get(name)
        if other is not None:
            other.slots.join(name, values)
            return
        self.env[name] = values
        self.scope.slots.join(name, values)

    def one_of(self, *branches: Environment) -> None:
        """Go on with what any of the branches leaves behind."""
        together = dict(branches[0])
        for branch in branches[1:]:
            for name, values in branch.items():
                before = together.get(name)
                if before is None:
                    together[name] = values
                elif before is not values:
                    together[name] = joined(before, values)
        self.env = together
