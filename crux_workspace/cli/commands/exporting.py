"""``export``: a part of the workspace into a folder of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crux_workspace.cli.declaring import app, at_app, command
from crux_workspace.cli.host_writing import OutFolder
from crux_workspace.cli.progress import progress
from crux_workspace.cli.session import Session
from crux_workspace.cli.tally import ONE_FILE_FAILED, Tally
from crux_workspace.errors import PathNotFoundError
from crux_workspace.model import paths

if TYPE_CHECKING:
    from crux_workspace import Workspace, WorkspaceView

__all__ = ["export"]


@command(
    "export",
    panel="Folders",
    apps=(app, at_app),
    example="crux-workspace export /outputs ./results",
)
async def export(
    session: Session,
    path: Annotated[str, typer.Argument(help="Directory or file to write out.")],
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", file_okay=False, help="Local folder; made if missing.")
    ],
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace local files that are there.")
    ] = False,
) -> None:
    """Write a directory's files, byte for byte, into a local folder.

    Each file appears whole or not at all. Nothing is written outside DIR, links that are there are never followed, and existing
    files are refused unless --overwrite is given; the others are written and the exit code is 1.
    """
    tally = Tally("exported")
    base = paths.normalise(path)
    async with session.tree() as tree:
        if not await tree.exists(path):
            raise PathNotFoundError(
                f"There is nothing at {path}.",
                details={"path": path},
                hint="crux-workspace ls shows what is there.",
            )
        with closing(await asyncio.to_thread(OutFolder, folder)) as out_folder:
            try:
                with progress("exporting", None) as told:
                    async for entry in tree.walk(path):
                        await _export_file(
                            tree, out_folder, entry.path, base, overwrite, tally, told
                        )
            finally:
                tally.show(session.out)
    tally.raise_failures()


async def _export_file(
    tree: Workspace | WorkspaceView,
    out_folder: OutFolder,
    path: str,
    base: str,
    overwrite: bool,
    tally: Tally,
    told: Callable[[int], None],
) -> None:
    relative = path.rpartition("/")[2] if path == base else path[len(base) :].lstrip("/")
    try:
        size = await out_folder.write(
            relative, _counted(tree.stream(path), told), overwrite=overwrite
        )
    except ONE_FILE_FAILED as error:
        tally.fail(path, error)
    else:
        tally.done(size)


async def _counted(
    chunks: AsyncIterator[bytes], told: Callable[[int], None]
) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        told(len(chunk))
        yield chunk
