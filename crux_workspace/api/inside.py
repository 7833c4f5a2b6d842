"""What the rooms above ask of a workspace beside its verbs: what it is bound to, its mounts' router, its records."""

from __future__ import annotations

from dataclasses import dataclass

from crux_workspace.api.facade import Workspace
from crux_workspace.api.transaction import Transaction
from crux_workspace.mounts.routing import Router
from crux_workspace.storage.records import RecordStore

__all__ = ["Binding", "Staged", "binding_of", "path_label", "records_of", "router_of", "staged_by"]


@dataclass(frozen=True, slots=True)
class Binding:
    """What the calls of a view go to when they do not say it themselves."""

    namespace: str | None
    """The only namespace of the view; None is every one."""
    default: str | None
    """The namespace of calls that name none; None where the application is asked for it each time."""
    actor: str | None
    """Who its commits say made them."""


def binding_of(workspace: Workspace) -> Binding:
    """Return what a view is bound to; no I/O."""
    runner = workspace._runner
    setting = workspace._core.namespace
    own = setting if isinstance(setting, str) else None
    return Binding(runner.bound, runner.bound or own, runner.actor)


def router_of(workspace: Workspace) -> Router:
    """Return what decides which mount a path belongs to."""
    return workspace._core.router


def records_of(workspace: Workspace) -> RecordStore:
    """Return the store of its records; it stays the workspace's own to close."""
    return workspace._core.records


@dataclass(frozen=True, slots=True)
class Staged:
    """What an open transaction holds."""

    memory_bytes: int
    """Staged content that lies in records, what was read of the files it looked at, and about 1,000 bytes for each path."""
    uploaded_bytes: int
    """Staged content that lies in the asset store already."""


def staged_by(tx: Transaction) -> Staged:
    """Return what a transaction holds. Cost: the number of paths that it looked at."""
    tree = tx._staged.tree
    return Staged(tree.held_bytes, tree.uploaded_bytes)


async def path_label(workspace: Workspace, path: str) -> str | None:
    """Return the hash that spans and markers name a path by; None where the recorder is told to leave it out."""
    return await workspace._core.recorder.label(path)
