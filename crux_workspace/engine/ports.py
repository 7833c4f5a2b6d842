"""What the engine needs to work on one namespace, wired by the factory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from crux_workspace.engine.guard import GuardedReader
from crux_workspace.events.hub import Hub, hub_of
from crux_workspace.model.clocks import Clock, IdSource
from crux_workspace.model.settings import ContentOptions, Limits, Retention, Versioning
from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.planning import PartitionReader
from crux_workspace.storage.records import RecordStore

__all__ = ["AppendedVersion", "CommitObserver", "EnginePorts"]


class AppendedVersion(Struct, frozen=True, gc=False):
    """A version that a commit appended, for observers."""

    path: str
    version: int
    operation: str


CommitObserver = Callable[[list[AppendedVersion]], Awaitable[None] | None]
"""Told after a commit is applied; what it returns is awaited. It must not raise."""


@dataclass(slots=True, kw_only=True)
class EnginePorts:
    """One namespace and all that a commit on it depends on."""

    records: RecordStore
    assets: AssetStore | None
    workspace_id: str
    namespace: str
    partition: str
    limits: Limits
    retention: Retention
    versioning: Versioning
    content: ContentOptions
    clock: Clock
    ids: IdSource
    actor: str | None = None
    provenance: Callable[[], dict[str, Any] | None] = lambda: None
    observers: tuple[CommitObserver, ...] = ()
    reader: GuardedReader = field(init=False)
    hub: Hub = field(init=False)
    """Told of each commit, so that watchers in this process hear of it at once."""

    @property
    def unfenced_grace_ms(self) -> int:
        """How long uploads of a namespace stay that no commit can guard yet, whatever grace this process or another was given."""
        return max(self.retention.asset_grace_ms, _UNFENCED_GRACE_MS)

    def __post_init__(self) -> None:
        self.reader = GuardedReader(PartitionReader(self.records, self.partition))
        self.hub = hub_of(self.records)


_UNFENCED_GRACE_MS = 3_600_000
