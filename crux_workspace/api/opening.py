"""A small file and what is known of it, both from one read: for who hands out bytes under headers that tell of them."""

from __future__ import annotations

from dataclasses import dataclass

from crux_workspace.api.reading import ReadMethods
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.paths import normalise_file
from crux_workspace.operations import reading
from crux_workspace.operations.space import Space

__all__ = ["InlineFile", "inline_file"]


@dataclass(frozen=True, slots=True)
class InlineFile:
    """A file whose bytes are in its record."""

    file: WorkspaceFile
    data: bytes


async def inline_file(tree: ReadMethods, path: str) -> InlineFile | None:
    """Return a file with its bytes, from one snapshot; None where there is none, and where its bytes lie elsewhere.

    Args:
        tree: A workspace, or a view of the past.
        path: A file.

    Raises:
        InvalidPathError: The path can name no file (``INVALID_PATH``).
        AccessDeniedError: The path is outside all mounts (``OUTSIDE_MOUNTS``).

    Cost:
        1 read
    """

    async def call(space: Space) -> InlineFile | None:
        where = normalise_file(path)
        space.router.readable(where)
        found = await reading.inline_file(space, await tree._tree(space), where)
        return None if found is None else InlineFile(*found)

    return await tree._runner.run("read_bytes", path, None, call)
