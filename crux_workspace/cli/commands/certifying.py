"""``check-store``."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session, load

if TYPE_CHECKING:
    from crux_workspace.testing.report import Report

__all__ = ["check_store"]

_PANEL = "Store"


@command(
    "check-store", panel=_PANEL, example="crux-workspace check-store mypackage.stores:make_store"
)
async def check_store(
    session: Session,
    factory: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:FACTORY",
            help="What makes the store: a function that returns it, awaitable or as an async context manager.",
        ),
    ],
    seconds: Annotated[
        float, typer.Option("--timeout", help="A check that takes longer, in seconds, has failed.")
    ] = 60.0,
) -> None:
    """Hold a record store or an asset store of your own to its contract, and report what it can do.

    The factory is called for each check; the stores may share their data, and the checks leave some behind.
    A factory that gives a storage has both of its stores checked.
    """
    make = load(factory, "MODULE:FACTORY")
    reports = await _reports(make, seconds)
    passed = all(report.passed for report in reports)
    if session.out.as_json:
        session.out.json({"passed": passed, "reports": [each.to_dict() for each in reports]})
    else:
        for report in reports:
            for line in str(report).splitlines():
                session.out.line(line)
            for line in _abilities(report):
                session.out.line(line)
    if not passed:
        session.out.flush()
        raise typer.Exit(1)


async def _reports(make: Callable[[], Any], seconds: float) -> list[Report]:
    from crux_workspace.testing.report import check_asset_store, check_record_store

    async with _made(make) as sample:
        parts = {
            name: getattr(sample, name) for name in ("records", "assets") if hasattr(sample, name)
        }
        kinds = [name for name, part in parts.items() if part is not None] or [_kind(sample)]
    reports = []
    for kind in kinds:
        check: Any = check_record_store if kind == "records" else check_asset_store
        reports.append(await check(_part(make, kind), timeout_s=seconds))
    return reports


def _part(make: Callable[[], Any], kind: str) -> Callable[[], AbstractAsyncContextManager[Any]]:
    """Make a factory of one store out of one that may make a whole storage."""

    @asynccontextmanager
    async def part() -> AsyncIterator[Any]:
        async with _made(make) as made:
            yield getattr(made, kind, made)

    return part


@asynccontextmanager
async def _made(make: Callable[[], Any]) -> AsyncIterator[Any]:
    made = make()
    if hasattr(made, "__aenter__"):
        async with made as opened:
            yield opened
        return
    opened = await made if inspect.isawaitable(made) else made
    try:
        yield opened
    finally:
        await opened.aclose()


def _kind(store: object) -> str:
    if callable(getattr(store, "commit", None)):
        return "records"
    if callable(getattr(store, "put", None)):
        return "assets"
    raise typer.BadParameter(
        f"what it makes, a {type(store).__name__}, is neither a record store nor an asset store.",
        param_hint="MODULE:FACTORY",
    )


def _abilities(report: Report) -> list[str]:
    """Say what the store declares, and what follows from it."""
    declared = {name: value for name, value in report.capabilities.items() if value}
    if not report.capabilities:
        return []
    lines = ["declares: " + (", ".join(_told(*each) for each in declared.items()) or "nothing")]
    if not declared.get("multi_process"):
        lines.append("one process at a time: multi_process is not declared")
    if not declared.get("durable"):
        lines.append("what is acknowledged ends with the process: durable is not declared")
    return lines


def _told(name: str, value: object) -> str:
    return name if value is True else f"{name}={value}"
