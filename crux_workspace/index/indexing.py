"""`index_folder`: reads a folder, follows its code to a fixed point, and puts the facts together."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

from crux_workspace.index.definitions import is_writable
from crux_workspace.index.executing import walk_function, walk_module
from crux_workspace.index.facts import (
    Access,
    Definition,
    Exposure,
    IndexWarning,
    Operation,
    Owner,
    ProjectIndex,
    Relation,
    Skipped,
    printable,
)
from crux_workspace.index.modules import Modules
from crux_workspace.index.program import Program, Scope
from crux_workspace.index.sources import MAX_FILE_BYTES, SourceFolder

__all__ = ["WRITE_WITHOUT_GUARDRAIL", "index_folder"]

WRITE_WITHOUT_GUARDRAIL = "workspace.write_without_guardrail"
"""Code of the warning about a workspace that can be written, and nothing keeps its writes in check."""

_MAX_WALKS = 40
"""How often one scope is walked at most; what values may be is bounded, so it is hardly ever needed."""


def index_folder(
    folder: str | os.PathLike[str], *, max_file_bytes: int = MAX_FILE_BYTES
) -> ProjectIndex:
    """Find the workspaces that the Python files of a folder define, and what the code does with them.

    The code is read, never run or imported, and nothing outside the folder is read. What cannot be read, decoded or parsed is
    reported in `skipped` and passed over. Names are followed through imports, assignments, attributes, containers, arguments and
    results of the folder's own functions; each function is looked at once for all its calls together.

    Args:
        folder: The folder; hidden ones below it, virtual environments and symbolic links are left out.
        max_file_bytes: A larger file is skipped.

    Returns:
        Definitions, operations, exposures, relations and warnings, in the order of the sources.

    Raises:
        PathNotFoundError: There is no such folder (``FILE_NOT_FOUND``).
        InvalidInputError: It is not a folder (``INVALID_ARGUMENT``).

    Cost:
        each file is read and parsed once, those that have to do with a workspace twice

    Example:
        >>> from pathlib import Path; from crux_workspace.index import index_folder
        >>> size = Path("shop.py").write_text("from crux_workspace import workspace; ws = workspace(id='shop')")
        >>> [str(each.place) for each in index_folder(".").definitions]
        ['shop.py:1:44']
    """
    sources = SourceFolder(Path(folder), max_file_bytes)
    sources.read()
    modules = Modules(sources.sources)
    relevant = modules.relevant()
    program = Program(modules)
    for file in relevant:
        read = sources.tree(file)
        if read is not None:
            owner = Owner(modules.name_of(file), "", "module")
            program.by_file[file] = program.scope(read[0], file, None, owner)
            program.lines[file] = read[1]
    deep = _followed(program)
    skipped = {*sources.skipped, *(Skipped(file, "too_deep") for file in deep)}
    return _put_together(program, len(sources.sources), len(relevant), skipped)


def _followed(program: Program) -> set[str]:
    """Walk everything until nothing new is learnt, modules first, and once more to note the facts down."""
    deep: set[str] = set()
    _settle(program, deep)
    program.is_open = True
    program.readers.dirty.update(each.number for each in program.scopes if not each.is_class)
    _settle(program, deep)
    program.recording = True
    for scope in list(program.scopes):
        _walk(program, scope, deep)
    for number in sorted(program.again):
        _walk(program, program.scopes[number], deep)
    return deep


def _settle(program: Program, deep: set[str]) -> None:
    walks: Counter[int] = Counter()
    dirty = program.readers.dirty
    while dirty:
        modules = sorted(each for each in dirty if not program.scopes[each].is_function)
        for number in modules or sorted(dirty):
            dirty.discard(number)
            walks[number] += 1
            if walks[number] <= _MAX_WALKS:
                _walk(program, program.scopes[number], deep)


def _walk(program: Program, scope: Scope, deep: set[str]) -> None:
    if scope.is_class:  # walked where it stands
        return
    program.readers.current = scope.number
    try:
        (walk_function if scope.is_function else walk_module)(program, scope)
    except RecursionError:
        deep.add(printable(scope.file))


def _put_together(
    program: Program, files: int, analysed: int, skipped: set[Skipped]
) -> ProjectIndex:
    guards: dict[str, set[str]] = defaultdict(set)
    for key, guard in program.guards:
        guards[key].add(guard)
    definitions = [
        replace(each, guardrails=tuple(sorted(guards[each.key])))
        for each in sorted(program.definitions.values(), key=lambda each: each.place)
    ]
    operations = sorted(program.operations.values(), key=_order)
    exposures = sorted(program.exposures.values(), key=_order)
    return ProjectIndex(
        files,
        analysed,
        tuple(definitions),
        tuple(operations),
        tuple(exposures),
        _relations(operations, exposures),
        _warnings(definitions, operations),
        tuple(sorted(skipped, key=lambda each: (each.file, each.reason, each.line or 0))),
    )


def _order(fact: Operation | Exposure) -> tuple[object, ...]:
    name = fact.operation if isinstance(fact, Operation) else fact.kind
    return (fact.place, name, fact.workspace or "", repr(fact))


def _relations(operations: list[Operation], exposures: list[Exposure]) -> tuple[Relation, ...]:
    found: dict[tuple[Owner, str | None, Access], set[str]] = defaultdict(set)
    for operation in operations:
        found[operation.owner, operation.workspace, operation.access].add(operation.operation)
    for exposure in exposures:
        accesses: tuple[Access, ...] = ("read", "write") if exposure.writes else ("read",)
        for access in accesses:
            found[exposure.owner, exposure.workspace, access].add(exposure.kind)
    ordered = sorted(found.items(), key=lambda each: (each[0][0], each[0][1] or "", each[0][2]))
    return tuple(
        Relation(owner, workspace, access, tuple(sorted(names)))
        for (owner, workspace, access), names in ordered
    )


def _warnings(
    definitions: list[Definition], operations: list[Operation]
) -> tuple[IndexWarning, ...]:
    found: list[IndexWarning] = []
    for definition in definitions:
        if definition.guardrails or not is_writable(definition):
            continue
        blind = {
            each.place
            for each in operations
            if each.workspace == definition.key and each.access == "write" and each.guard is None
        }
        message = (
            "Files of this workspace can be changed, and nothing keeps the changes in check: no permission gate, no "
            "read_before_write, no if_version, no transaction, no update."
        )
        found.append(
            IndexWarning(
                WRITE_WITHOUT_GUARDRAIL,
                message,
                definition.key,
                definition.place,
                tuple(sorted(blind)),
            )
        )
    return tuple(found)
