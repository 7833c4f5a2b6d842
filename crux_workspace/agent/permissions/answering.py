"""What waits for a person, and how it is answered: by a whole envelope, alone, or by waiting for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress

from crux_workspace.agent.permissions.decisions import Answer, AnswerWord, Decision, Interrupt
from crux_workspace.agent.permissions.envelope import entries_of
from crux_workspace.agent.permissions.ledger import Answered
from crux_workspace.agent.permissions.stores import MAX_PATTERN_CHARS, of_the_store
from crux_workspace.agent.permissions.telling import answered_decision
from crux_workspace.agent.permissions.threads import ThreadMethods
from crux_workspace.errors import ErrorCode, ResumeError
from crux_workspace.model.options import MOST, whole_number

__all__ = ["AnswerMethods"]

_log = logging.getLogger("crux_workspace.agent.permissions")
_POLL_S = 0.2


class AnswerMethods(ThreadMethods):
    """The methods of a gate that show what waits and take answers."""

    _resuming: set[str]
    _answered: asyncio.Event

    async def pending(self, thread_id: str | None = None) -> list[Interrupt]:
        """Return what waits in a thread and in the threads it adopted, oldest first.

        Args:
            thread_id: The thread; a child stands for its root.

        Returns:
            The interrupts.

        Raises:
            ResumeError: The record of one is damaged (``MALFORMED_CHECKPOINT``).
        """
        return await self._ledger.pending(await self._root(thread_id))

    async def resume(
        self, thread_id: str | None, envelope: Mapping[str, object] | Iterable[Answer]
    ) -> list[Decision]:
        """Answer everything that waits in a thread, all or nothing; afterwards the caller repeats the paused calls.

        Args:
            thread_id: The root thread.
            envelope: ``{"resume": [...], "route": ...}`` as clients send it, or `Answer` values; exactly the pending set.

        Returns:
            One decision an answer, in the order of the envelope.

        Raises:
            ResumeError: ``RESUME_REQUIRED``, ``STALE_INTERRUPT``, ``INTERRUPT_SET_MISMATCH``, ``RESUME_IN_PROGRESS`` or
                ``MALFORMED_CHECKPOINT``.
            InvalidInputError: Another shape, or no answer (``INVALID_RESUME_PAYLOAD``).
        """
        async with self.resuming(thread_id):
            return await self.resume_held(thread_id, envelope)

    @asynccontextmanager
    async def resuming(self, thread_id: str | None) -> AsyncIterator[str]:
        """Hold a root thread while it is resumed and goes on; another resume meanwhile is ``RESUME_IN_PROGRESS``.

        Args:
            thread_id: The thread; a child stands for its root.

        Raises:
            ResumeError: It is held already (``RESUME_IN_PROGRESS``).
        """
        root = await self._root(thread_id)
        if root in self._resuming:
            raise ResumeError(
                "The thread is being resumed already.",
                code=ErrorCode.RESUME_IN_PROGRESS,
                hint="Wait for its answer, then read the pending interrupts again.",
            )
        self._resuming.add(root)
        try:
            yield root
        finally:
            self._resuming.discard(root)

    async def resume_held(
        self, thread_id: str | None, envelope: Mapping[str, object] | Iterable[Answer]
    ) -> list[Decision]:
        """Resume like `resume` a thread that the caller holds by `resuming`, so that what goes on is held too.

        Args:
            thread_id: The root thread.
            envelope: Exactly the pending set.

        Returns:
            One decision an answer.

        Raises:
            ResumeError: The set does not fit what is pending.
            InvalidInputError: Another shape, or no answer (``INVALID_RESUME_PAYLOAD``).
        """
        answered = await self._ledger.resume(await self._root(thread_id), entries_of(envelope))
        decisions = [await self._settled(item) for item in answered]
        self._wake_waiting()
        return decisions

    def _wake_waiting(self) -> None:
        """Let whoever waits look for its answer now."""
        self._answered.set()
        self._answered = asyncio.Event()

    async def _settled(self, answered: Answered) -> Decision:
        if answered.answer == "always":
            for key, pattern in answered.grants:
                if len(pattern) > MAX_PATTERN_CHARS:
                    _log.warning(
                        "a grant of more than %d characters for %s is not kept",
                        MAX_PATTERN_CHARS,
                        key,
                    )
                    continue
                with of_the_store():
                    await self.store.add(key, pattern, thread_id=answered.scope)
        return answered_decision(answered)

    async def wait(self, interrupt: Interrupt, *, timeout_ms: int | None = None) -> Decision:
        """Wait until an interrupt is answered, by this process or another one.

        Args:
            interrupt: What was asked.
            timeout_ms: How long to wait; None waits for ever.

        Returns:
            The decision; when it allows, repeat the call. When nobody answers in time it raises the builtin ``TimeoutError``, and the
            interrupt still waits.

        Raises:
            ResumeError: It is not pending any more, because the call came again in another form (``STALE_INTERRUPT``).
        """
        root = await self._ledger.root_of(interrupt.thread_id)
        whole_number("timeout_ms", timeout_ms, most=MOST)
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            while True:
                wake = self._answered
                found = await self._ledger.answer(root, interrupt.interrupt_id)
                if found is not None:
                    return answered_decision(found)
                pending = await self._ledger.pending(root)
                if interrupt.interrupt_id not in {item.interrupt_id for item in pending}:
                    if await self._ledger.answer(root, interrupt.interrupt_id) is None:
                        raise ResumeError("The interrupt is not pending any more; repeat the call.")
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await wake.wait()

    async def settle(self, interrupt: Interrupt, answer: AnswerWord) -> Decision:
        """Answer one interrupt alone, for frameworks that collect answers themselves.

        Args:
            interrupt: What was asked.
            answer: ``once``, ``always``, ``deny`` or ``cancel``.

        Returns:
            The decision; when it allows, repeat the call.

        Raises:
            ResumeError: It is not pending any more (``STALE_INTERRUPT``).
            InvalidInputError: No such answer (``INVALID_RESUME_PAYLOAD``).
        """
        root = await self._root(interrupt.thread_id)
        entries = entries_of([Answer(interrupt.interrupt_id, answer)])
        answered = await self._ledger.resume(root, entries, alone=True)
        decision = await self._settled(answered[0])
        self._wake_waiting()
        return decision
