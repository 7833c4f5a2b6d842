"""Mounts: which one a path belongs to, what a source-backed one asks of its provider, and the sources that ship.

The sources for git and HTTP are loaded when they are first named; each needs an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from crux_workspace.model.sources import (
    MountGrepOptions,
    MountListOptions,
    MountPathOptions,
    MountReadOptions,
    MountSource,
    MountWriteOptions,
)
from crux_workspace.mounts.hits import Retriever, RetrieverHit, RetrieverQuery
from crux_workspace.mounts.retriever import RetrieverSource, retriever_workspace_mount_source

if TYPE_CHECKING:
    from crux_workspace.mounts.bundled.another import WorkspaceSource
    from crux_workspace.mounts.bundled.folder import FolderSource
    from crux_workspace.mounts.bundled.git import GitSource
    from crux_workspace.mounts.bundled.http_json import HttpJsonSource

__all__ = [
    "FolderSource",
    "GitSource",
    "HttpJsonSource",
    "MountGrepOptions",
    "MountListOptions",
    "MountPathOptions",
    "MountReadOptions",
    "MountSource",
    "MountWriteOptions",
    "Retriever",
    "RetrieverHit",
    "RetrieverQuery",
    "RetrieverSource",
    "WorkspaceSource",
    "retriever_workspace_mount_source",
]

_BUNDLED = {
    "FolderSource": "folder",
    "GitSource": "git",
    "HttpJsonSource": "http_json",
    "WorkspaceSource": "another",
}


def __getattr__(name: str) -> object:
    home = _BUNDLED.get(name)
    if home is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    return getattr(import_module(f"{__name__}.bundled.{home}"), name)
