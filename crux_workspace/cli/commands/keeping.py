"""``init``, ``usage``, ``namespaces``, ``gc``, ``migrate``."""

from __future__ import annotations

from typing import Annotated

import typer

from crux_workspace.cli.declaring import command
from crux_workspace.cli.session import Session, database_file, shown_url
from crux_workspace.cli.settings import DEFAULT_URL

__all__ = ["gc", "init", "migrate", "namespaces", "usage"]

_PANEL = "Store"
_PAGE = 1000


@command("init", panel=_PANEL, example="crux-workspace init")
async def init(session: Session) -> None:
    """Create the store: workspace.db in this folder, or what --url names.

    It is safe to repeat: an existing store is opened, brought up to date and otherwise left as it is.
    """
    from storage_adapters import open_storage

    url = DEFAULT_URL if session.settings.url is None else session.settings.url
    path = database_file(url)
    existed = path.exists() if path is not None else None
    storage = await open_storage(url)
    await storage.aclose()
    if session.out.as_json:
        session.out.json({"url": shown_url(url), "created": existed is False})
    elif existed:
        session.out.line(f"{path} is already there")
    else:
        session.out.line(f"created {path}" if path else f"opened {shown_url(url)}")


@command("usage", panel=_PANEL, example="crux-workspace usage")
async def usage(session: Session) -> None:
    """Say how much the namespace holds: live files, their bytes, kept versions and their bytes."""
    async with session.workspace() as ws:
        used = (await ws.usage()).to_dict()
    if session.out.as_json:
        session.out.json(used)
    else:
        session.out.table(
            ("what", "amount"), [each for each in used.items() if each[1] is not None]
        )


@command("namespaces", panel=_PANEL, example="crux-workspace namespaces thread:")
async def namespaces(
    session: Session,
    prefix: Annotated[str, typer.Argument(help="Only names that start like this.")] = "",
    limit: Annotated[
        int | None, typer.Option(help="At most so many; a note says how to go on.")
    ] = None,
    cursor: Annotated[str | None, typer.Option(help="Go on where an earlier page ended.")] = None,
) -> None:
    """List the workspace's namespaces, one a line."""
    names: list[str] = []
    async with session.workspace() as ws:
        while True:
            page = await ws.namespaces(
                prefix, limit=_PAGE if limit is None else limit, cursor=cursor
            )
            names += page.names
            cursor = page.cursor
            if cursor is None or limit is not None:
                break
    if session.out.as_json:
        session.out.json({"names": names, "cursor": cursor})
        return
    for name in names:
        session.out.line(name)
    if cursor:
        session.out.note(f"more names: --cursor {cursor}")


@command("gc", panel=_PANEL, example="crux-workspace gc --apply")
async def gc(
    session: Session,
    apply: Annotated[
        bool, typer.Option("--apply/--dry-run", help="Collect, or only say what would be.")
    ] = False,
) -> None:
    """Collect what the namespace no longer needs: expired files, surplus versions, released assets, old log entries.

    Without --apply nothing changes.
    """
    async with session.workspace() as ws:
        report = (await ws.gc(dry_run=not apply)).to_dict()
    if session.out.as_json:
        session.out.json(report)
    else:
        session.out.table(("what", "amount"), report.items())


@command("migrate", panel=_PANEL, example="crux-workspace migrate sqlite:///workspace.db")
def migrate(
    session: Session,
    store: Annotated[
        str | None, typer.Argument(metavar="URL", help="Store to migrate; --url if left out.")
    ] = None,
) -> None:
    """Bring a store's schema up to date, creating it where there is none; repeating it changes nothing."""
    target = session.settings.url if store is None else store
    target = DEFAULT_URL if target is None else target
    from storage_adapters import migrate as migrate_store

    migrate_store(target)
    if session.out.as_json:
        session.out.json({"url": shown_url(target), "migrated": True})
    else:
        session.out.line(f"{shown_url(target)} is up to date")
