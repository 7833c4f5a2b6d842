"""What a record store declares it can do; the conformance kit holds it to each declaration."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["StoreCapabilities"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCapabilities:
    """Declared abilities and ceilings of a record store. None means "no ceiling of its own"."""

    notify: bool = False
    """Other processes hear of a commit without polling: the store has `NotifyingRecordStore.listen`."""
    search: bool = False
    """`Contains` filters are judged by the store instead of by the reader."""
    plans_under_lock: bool = False
    """`commit_planned` runs the plan while holding the partition's write lock, so a plan is never refused."""
    multi_process: bool = False
    """Several processes may use the same data at once."""
    durable: bool = False
    """An acknowledged commit survives the death of the process."""
    task_agnostic: bool = False
    """`commit_planned` awaits plain futures and opens no timeout and no task group around them, so that another task can go on with a
    call whose own task was cancelled. Without it each commit costs a task."""
    max_commit_paths: int | None = None
    """Most changes one commit may carry."""
    max_commit_bytes: int | None = None
    """Most bytes of values and bodies one commit may carry."""
    max_value_bytes: int | None = None
    """Most bytes of one record's value."""
    max_body_bytes: int | None = None
    """Most bytes of one record's body."""

    @property
    def has_ceilings(self) -> bool:
        """Whether there is anything that a batch can be too large for."""
        return not (
            self.max_commit_paths
            is self.max_commit_bytes
            is self.max_value_bytes
            is self.max_body_bytes
            is None
        )
