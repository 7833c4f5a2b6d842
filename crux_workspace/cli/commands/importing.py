"""``import``: a folder of this machine into the workspace."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crux_workspace.cli.content import incoming
from crux_workspace.cli.declaring import command
from crux_workspace.cli.host_reading import (
    FoundFile,
    SpecialFileError,
    open_file,
    walk_folder,
)
from crux_workspace.cli.progress import progress
from crux_workspace.cli.session import Session, database_file
from crux_workspace.cli.tally import ONE_FILE_FAILED, Tally
from crux_workspace.errors import PathExistsError

if TYPE_CHECKING:
    from crux_workspace import Workspace

__all__ = ["import_folder"]


@command("import", panel="Folders", example="crux-workspace import ./src /workspace/src")
async def import_folder(
    session: Session,
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", exists=True, file_okay=False, help="Local folder to take."),
    ],
    path: Annotated[str, typer.Argument(help="Directory that its content goes to.")],
) -> None:
    """Take a local folder into the workspace, one commit a file.

    Valid UTF-8 without NUL becomes text, everything else binary; bytes and line endings are kept, names are normalised to NFC, and
    a file that is there gets a new version. Links, special files and the workspace's own store are skipped and reported. A file
    that the workspace refuses is reported, the others go in, and the exit code is 1.
    """
    tally = Tally("imported")
    files = []
    for found in walk_folder(folder, _own_files(session)):
        if isinstance(found, FoundFile):
            files.append(found)
        elif found.error is None:
            tally.skip(found.path, found.reason)
        else:
            tally.fail(found.path, found.error)
    try:
        async with session.workspace() as ws:
            with progress("importing", sum(file.size for file in files)) as told:
                await _take(ws, files, path, tally, told)
    finally:
        tally.show(session.out)
    tally.raise_failures()


async def _take(
    ws: Workspace,
    files: list[FoundFile],
    directory: str,
    tally: Tally,
    told: Callable[[int], None],
) -> None:
    taken: dict[str, Path] = {}
    for file in files:
        target = f"{directory.rstrip('/')}/{file.relative}"
        try:
            if not target.isascii():
                _refuse_twin(taken, target, file.path)
            size = await _take_file(ws, file.path, target, told)
        except SpecialFileError as error:
            tally.skip(file.path, str(error))
        except ONE_FILE_FAILED as error:
            tally.fail(file.path, error)
        else:
            tally.done(size)


async def _take_file(ws: Workspace, path: Path, target: str, told: Callable[[int], None]) -> int:
    with open_file(path) as source:
        body = incoming(source, read=told)
        written = await ws.write(target, body.content, encoding=body.encoding)
    return written.size


def _refuse_twin(taken: dict[str, Path], target: str, path: Path) -> None:
    """Keep two names that differ only in their normal form from becoming versions of one file."""
    normal = unicodedata.normalize("NFC", target)
    twin = taken.setdefault(normal, path)
    if twin is not path:
        raise PathExistsError(
            f"its name is that of {twin} in another Unicode form", details={"path": normal}
        )


def _own_files(session: Session) -> Callable[[Path], bool]:
    """Return what tells the files of the store that is open from the user's."""
    database = None if session.settings.app else database_file(session.settings.url)
    if database is None:
        return lambda _: False
    folder, name = database.parent.resolve(), database.name

    def is_own(path: Path) -> bool:
        if not path.name.startswith(name):
            return False
        return path.name[len(name) :][:1] in ("", "-", ".") and path.parent.resolve() == folder

    return is_own
