"""``index``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session

if TYPE_CHECKING:
    from crux_workspace.index import Definition, Operation, ProjectIndex

__all__ = ["index"]


@command("index", panel="Code", example="crux-workspace index src")
def index(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with Python sources.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 when there is a warning.")
    ] = False,
) -> None:
    """Find the workspaces that Python code defines, who reads and writes them, where, and how.

    The code is read, never run. With --json it is one JSON document. Files that could not be read or parsed are told on stderr.
    """
    from crux_workspace.index import index_folder

    found = index_folder(folder)
    if session.out.as_json:
        session.out.json(found.to_dict())
    else:
        _show(session, found)
        if not (found.definitions or found.operations or found.exposures):
            session.out.note(f"No workspace is defined or used in the Python files below {folder}.")
    session.out.flush()
    if strict and found.warnings:
        raise typer.Exit(1)


def _show(session: Session, found: ProjectIndex) -> None:
    out = session.out
    out.table(
        ("definition", "id", "namespace", "mounts", "records", "guardrails", "owner"),
        [_definition(each) for each in found.definitions],
    )
    ids = {each.key: _short(each.settings["id"]) for each in found.definitions}
    if out.is_terminal and found.definitions and found.operations:
        out.line("")
    out.table(
        ("operation", "place", "path", "workspace", "guard", "owner"),
        [_operation(each, ids) for each in found.operations],
    )
    if out.is_terminal and found.exposures:
        out.line("")
    out.table(
        ("given to a model or a part", "place", "to", "workspace", "guard", "owner"),
        [
            (each.kind, each.place, each.to, _named(each.workspace, ids), each.guard, each.owner)
            for each in found.exposures
        ],
    )
    for warning in found.warnings:
        out.note(f"{warning.place}: warning {warning.code}: {warning.message}")
        for place in warning.writes:
            out.note(f"  {place}: a write that nothing guards")
    for skipped in found.skipped:
        where = skipped.file if skipped.line is None else f"{skipped.file}:{skipped.line}"
        out.note(f"{where}: skipped, {skipped.reason.replace('_', ' ')}")


def _definition(each: Definition) -> tuple[object, ...]:
    settings = each.settings
    return (
        each.place,
        _short(settings["id"]),
        _short(settings["namespace"]),
        _mounts(settings["mounts"]),
        _short(settings["records"]),
        " ".join(each.guardrails),
        each.owner,
    )


def _mounts(mounts: Any) -> str:  # noqa: ANN401 - a setting
    if not isinstance(mounts, list):
        return "dynamic"
    return " ".join(
        f"{_short(each['path'])}:{_short(each['access'])}" if isinstance(each, dict) else "dynamic"
        for each in mounts
    )


def _operation(each: Operation, ids: dict[str, str]) -> tuple[object, ...]:
    paths = " ".join(each.paths) or ("" if each.path_kind is None else "dynamic")
    if each.to:
        paths = f"{paths} -> {' '.join(each.to)}"
    return (each.operation, each.place, paths, _named(each.workspace, ids), each.guard, each.owner)


def _named(key: str | None, ids: dict[str, str]) -> str:
    """Say which workspace it is: by its id where the code tells, and always by where it is made."""
    return "unknown" if key is None else f"{ids.get(key, 'dynamic')} ({key})"


def _short(value: object) -> str:
    return str(value) if isinstance(value, str | int) or value is None else "dynamic"
