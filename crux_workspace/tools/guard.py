"""The guard of read-before-write: what a model knows of each file, and changes that are made on nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from crux_workspace.errors import ConflictError
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.paths import is_at_or_below, normalise
from crux_workspace.model.settings import Mount

__all__ = ["Guard"]

_ATTEMPTS = 3


class Guard:
    """Which file, at which version, one set of tools has shown for each path; not in force, it asks for nothing.

    A file is known by its identity and its version, so another file that came to its path is not taken for it. Files of sources have
    neither and are let through.
    """

    def __init__(self, mounts: Sequence[Mount], *, in_force: bool) -> None:
        self.in_force = in_force
        self._mounts = sorted(mounts, key=lambda mount: -len(mount.path))
        self._known: dict[str, WorkspaceFile] = {}

    def note(self, made: Any) -> None:  # noqa: ANN401 - content, or a file
        """Remember that the model knows a file as it is now."""
        if getattr(made, "id", "") and made.version:
            self._known[made.path] = WorkspaceFile(made.path, made.id, version=made.version)

    def forget(self, path: str) -> None:
        """Forget what is at or below a path."""
        gone = normalise(path)
        for where in [where for where in self._known if is_at_or_below(where, gone)]:
            del self._known[where]

    def moved(self, src: str, dst: str) -> None:
        """Let what is known at or below a path be known at another one."""
        old, new = normalise(src), normalise(dst)
        if old == new:
            return
        self.forget(dst)
        for where in [where for where in self._known if is_at_or_below(where, old)]:
            file = self._known.pop(where)
            target = new + where[len(old) :]
            self._known[target] = WorkspaceFile(target, file.id, version=file.version)

    async def expected(self, workspace: Any, path: str, *, creates: bool = True) -> dict[str, Any]:  # noqa: ANN401
        """Return the ``if_version`` of a change of a file.

        Args:
            workspace: The workspace, or a transaction on it.
            path: The file.
            creates: The change makes the file where there is none.

        Raises:
            ConflictError: The file is there and is not known, or is known and gone (``VERSION_CONFLICT``).
        """
        where = normalise(path)
        if not self.in_force or self._is_sourced(where):
            return {}
        file = await workspace.stat(where)
        known = self._known.get(where)
        if file is not None:
            if known is None:
                raise _conflict(
                    f"{where} was not read yet and cannot be changed blindly.", where, file.version
                )
            return {"if_version": known}
        if known is not None and creates:
            self.forget(where)
            raise _conflict(f"{where} was deleted or moved since it was read.", where, None)
        return {"if_version": 0} if creates else {}

    async def onto(self, workspace: Any, verb: str, src: str, dst: str) -> Any:  # noqa: ANN401 - a file or directory
        """Rename or copy, and overwrite at the destination only what is known; one commit.

        Raises:
            ConflictError: The file at the destination is not known, or not at that version (``VERSION_CONFLICT``).
        """
        changed = (src, dst) if verb == "rename" else (dst,)
        if not self.in_force or any(self._is_sourced(normalise(path)) for path in changed):
            return await getattr(workspace, verb)(src, dst, overwrite=True)

        async def change(tx: Any) -> Any:  # noqa: ANN401
            where = normalise(dst)
            there = None if where == normalise(src) else await tx.stat(where)
            if there is not None:
                known = self._known.get(where)
                if known is None or (known.id, known.version) != (there.id, there.version):
                    raise _conflict(
                        f"{where} would be overwritten, and was not read as it is now.",
                        where,
                        there.version,
                    )
            return await getattr(tx, verb)(src, dst, overwrite=True)

        return await workspace.transaction(change, max_attempts=_ATTEMPTS)

    def _is_sourced(self, path: str) -> bool:
        for mount in self._mounts:
            if is_at_or_below(path, mount.path):
                return mount.source is not None
        return False


def _conflict(message: str, path: str, current: int | None) -> ConflictError:
    return ConflictError(
        message,
        details={
            "path": path,
            "base_version": None,
            "current_version": current,
            "last_operation": None,
            "last_actor": None,
        },
    )
