"""Threads as the gate knows them: their families, their standing approvals, and their end."""

from __future__ import annotations

from crux_workspace.agent.permissions.decisions import Grant
from crux_workspace.agent.permissions.ledger import Ledger
from crux_workspace.agent.permissions.stores import PermissionStore, of_the_store
from crux_workspace.errors import ErrorCode, ResumeError
from crux_workspace.model.labels import check_label

__all__ = ["DEFAULT_THREAD", "ThreadMethods"]

DEFAULT_THREAD = "default"


class ThreadMethods:
    """The methods of a gate that are about whole threads."""

    store: PermissionStore
    _ledger: Ledger

    async def waiting_threads(self) -> list[str]:
        """Return the root threads in which something waits."""
        return await self._ledger.threads()

    async def grants(self, thread_id: str | None = None) -> list[Grant]:
        """Return the standing approvals.

        Args:
            thread_id: Only those of this thread; None gives all.

        Returns:
            The grants, oldest first.
        """
        with of_the_store():
            held = (await self.store.load()).grants
        wanted = [g for g in held if thread_id is None or g.thread_id == thread_id]
        return sorted(wanted, key=lambda grant: (grant.created_at, grant.grant_id))

    async def revoke(self, grant_id: str) -> bool:
        """Take a standing approval back; it counts no more from the next check on.

        Args:
            grant_id: Its id.

        Returns:
            Whether there was one.
        """
        with of_the_store():
            return await self.store.remove(grant_id)

    async def forget_thread(self, thread_id: str) -> None:
        """Forget a thread: its grants, what waits in it, and its approvals.

        Args:
            thread_id: The thread.
        """
        with of_the_store():
            await self.store.forget(thread_id)
        await self._ledger.forget(thread_id)

    async def adopt(self, child_thread: str, parent_thread: str) -> None:
        """Let a child thread's interrupts be pending in, and answered through, its parent's root thread.

        The child's calls are judged by the root thread's own policy and grants.

        Args:
            child_thread: The thread of the child, in which nothing waits yet.
            parent_thread: The thread that started it.

        Raises:
            ResumeError: Something waits in the child already (``RESUME_REQUIRED``).
            InvalidInputError: The parent is the child itself, or descends from it (``INVALID_ARGUMENT``).
        """
        if await self._ledger.has_pending(child_thread):
            raise ResumeError(
                "Something waits in the child thread already; answer it first, or adopt the thread before it starts.",
                code=ErrorCode.RESUME_REQUIRED,
            )
        await self._ledger.adopt(
            check_label("child_thread", child_thread), check_label("parent_thread", parent_thread)
        )

    async def _root(self, thread_id: str | None) -> str:
        thread = DEFAULT_THREAD if thread_id is None else check_label("thread_id", thread_id)
        return await self._ledger.root_of(thread)
