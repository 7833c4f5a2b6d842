"""The same workspace with fewer mounts: what a client that may see only a part of it is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from weakref import WeakSet

from crux_workspace.api.facade import Workspace
from crux_workspace.errors import InvalidInputError
from crux_workspace.model.paths import is_at_or_below, normalise
from crux_workspace.model.settings import Mount
from crux_workspace.mounts.routing import Router

__all__ = ["narrowed", "unbound"]


def unbound(workspace: Workspace) -> Workspace:
    """Return a view of a workspace that is bound to no namespace and acts as nobody; no I/O."""
    return Workspace(workspace._core, is_view=True)


def narrowed(workspace: Workspace, paths: Iterable[str]) -> Workspace:
    """Return a workspace over the same storage that has mounts only at or below some paths; no I/O.

    A path inside a local mount becomes a mount of its own, with that mount's access. It shares stores, settings and runtime, but has
    to be closed on its own: that ends its watches only.

    Args:
        workspace: The whole one.
        paths: Each a mount, above some, or inside a local one.

    Raises:
        InvalidInputError: A path is outside all mounts, or inside one with a source (``INVALID_ARGUMENT``).
    """
    core = workspace._core
    mounts: dict[str, Mount] = {}
    for path in map(normalise, paths):
        below = [mount for mount in core.router.mounts if is_at_or_below(mount.path, path)]
        own = core.router.find(path)
        if own is None and not below:
            raise InvalidInputError(
                f"{path} is neither on a mount of the workspace nor above one.",
                details={"option": "mounts", "path": path},
            )
        if own is not None and own.path != path:
            if own.source is not None:
                raise InvalidInputError(
                    f"{path} is inside the mount {own.path}, whose source shows the mount only as a whole.",
                    details={"option": "mounts", "path": path},
                )
            mounts[path] = replace(own, path=path)
        mounts |= {mount.path: mount for mount in below}
    part = replace(
        core,
        router=Router(mounts.values(), is_part=set(mounts) != {m.path for m in core.router.mounts}),
        close_storage=None,
        owns_runtime=False,
        watches=WeakSet(),
        _spaces={},
        _kept=set(),
        _keeper=None,
    )
    return Workspace(part)
