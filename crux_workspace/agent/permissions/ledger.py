"""What waits for a person, and what was answered: durable, one partition a root thread.

A call has a *slot*: its call id, else what it is about. In a slot there is at most one pending interrupt and at most one approval.
Both carry the digest of the call; a call with another digest voids them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crux_workspace.agent.permissions.decisions import Interrupt
from crux_workspace.agent.permissions.envelope import Entry
from crux_workspace.agent.permissions.partitions import (
    Change,
    Partition,
    corrupt,
    decoded,
    partition_of,
    scanned,
    typed_failures,
)
from crux_workspace.agent.permissions.stores import MAX_PATTERN_CHARS
from crux_workspace.errors import ErrorCode, InvalidInputError, ResumeError, WorkspaceError
from crux_workspace.model.clocks import Clock, IdSource
from crux_workspace.storage.layout import FIELD_END, key
from crux_workspace.storage.records import Reader, Record, RecordStore

__all__ = ["Answered", "Asked", "Ledger"]

_PENDING = key("pending")
_APPROVED = key("approved")
_ANSWERED = key("answered")
_CLIENT = key("client")
_CHILD = key("child")
_KEPT_ANSWERS_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that needs a person."""

    slot: str
    interrupt: Interrupt
    grants: tuple[tuple[str, str], ...]
    scope: str | None = None
    """Thread that a standing approval is for."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An interrupt with its answer."""

    interrupt: Interrupt
    answer: str
    grants: tuple[tuple[str, str], ...] = ()
    scope: str | None = None


class Ledger:
    """Pending interrupts, approvals and answers in a record store."""

    def __init__(self, records: RecordStore, clock: Clock, ids: IdSource) -> None:
        self._records = records
        self._clock = clock
        self._ids = ids

    def _thread(self, root: str) -> Partition:
        return Partition(self._records, partition_of("interrupts", root), self._clock, self._ids)

    def _families(self) -> Partition:
        return Partition(self._records, partition_of("threads"), self._clock, self._ids)

    # -- asking

    async def claim_or_park(self, root: str, asked: Asked) -> Interrupt | None:
        """Use the approval of this very call, else note that it waits.

        None says that an approval was there; it is used up. An approval or interrupt of the same slot for another digest is void.
        """
        wanted = asked.interrupt
        pending_key, approved_key = (
            _slot_key(_PENDING, asked.slot),
            _slot_key(_APPROVED, asked.slot),
        )

        async def decide(reader: Reader, mark: str) -> Change[Interrupt | None]:
            pending, approved = await reader.get_many([pending_key, approved_key])
            if approved is not None and decoded(approved).get("digest") == wanted.digest:
                return Change(None, deletes=[approved_key])
            dropped = [approved_key] if approved is not None else []
            if pending is not None:
                held = _interrupt(pending)
                if held.digest == wanted.digest and held.allow_always == wanted.allow_always:
                    return Change(held, deletes=dropped)
            entry = {
                **_entry(wanted),
                "grants": [list(g) for g in asked.grants],
                "scope": asked.scope,
            }
            return Change(wanted, puts={pending_key: entry}, deletes=dropped)

        return await self._thread(root).change("park", decide)

    async def restore(self, root: str, slots: Mapping[str, str]) -> None:
        """Give back approvals (``{slot: digest}``) of a call that paused again before it did anything."""

        async def decide(_: Reader, __: str) -> Change[None]:
            puts = {_slot_key(_APPROVED, slot): {"digest": d} for slot, d in slots.items()}
            return Change(None, puts=puts)

        await self._thread(root).change("restore", decide)

    async def pending(self, root: str) -> list[Interrupt]:
        """Return what waits in a root thread and its children, oldest first.

        Raises:
            ResumeError: The record of one is damaged (``MALFORMED_CHECKPOINT``).
        """
        records = await self._thread(root).scan(_PENDING)
        return [waiting.interrupt for waiting in _waiting(records)]

    async def has_pending(self, thread: str) -> bool:
        """Tell whether something waits in a thread of its own."""
        return bool(await self._thread(thread).scan(_PENDING))

    # -- answering

    async def resume(
        self, root: str, entries: Sequence[Entry], *, alone: bool = False
    ) -> list[Answered]:
        """Answer the whole pending set, or nothing; of several at a time one wins. `alone` leaves what is not named pending.

        Raises:
            ResumeError: The set does not fit what is pending.
            InvalidInputError: An answer that is none (``INVALID_RESUME_PAYLOAD``).
        """

        async def decide(reader: Reader, mark: str) -> Change[list[Answered]]:
            waiting = _waiting(await scanned(reader, _PENDING))
            again = await self._already(reader, entries, mark)
            if again is not None:
                return Change(again)
            if alone:
                named = {entry.interrupt_id for entry in entries}
                waiting = [item for item in waiting if item.interrupt.interrupt_id in named]
            answers = _matched(waiting, entries)
            now = self._clock()
            change = Change(answers)
            by_id = {item.interrupt.interrupt_id: item for item in waiting}
            for answered in answers:
                item = by_id[answered.interrupt.interrupt_id]
                slot = item.slot
                change.deletes.append(_slot_key(_PENDING, slot))
                if _runs_once(answered):
                    change.puts[_slot_key(_APPROVED, slot)] = {"digest": item.interrupt.digest}
                change.puts[_slot_key(_ANSWERED, item.interrupt.interrupt_id)] = {
                    **_entry(item.interrupt),
                    "grants": [list(grant) for grant in item.grants],
                    "scope": item.scope,
                    "answer": answered.answer,
                    "answeredAt": now,
                    "by": mark,
                }
            for record in await scanned(reader, _ANSWERED):
                if decoded(record).get("answeredAt", 0) < now - _KEPT_ANSWERS_MS:
                    change.deletes.append(record.key)
            return change

        return await self._thread(root).change("resume", decide)

    async def _already(
        self, reader: Reader, entries: Sequence[Entry], mark: str
    ) -> list[Answered] | None:
        """Return the answers when this very resume has been applied and only its reply was lost."""
        keys = [_slot_key(_ANSWERED, entry.interrupt_id) for entry in entries]
        if not keys:
            return None
        records = await reader.get_many(keys)
        found = [decoded(record) for record in records if record is not None]
        if len(found) != len(keys) or any(entry.get("by") != mark for entry in found):
            return None
        return [_answered(decoded(record)) for record in records if record is not None]

    async def answer(self, root: str, interrupt_id: str) -> Answered | None:
        """Return the answer that an interrupt got, or None."""
        partition = self._thread(root)
        found = await partition.get(_slot_key(_ANSWERED, interrupt_id))
        if found is None:
            return None
        return _answered(found)

    async def threads(self) -> list[str]:
        """Return the root threads in which something waits."""
        prefix = partition_of("interrupts")
        names: list[str] = []
        after: str | None = None
        while True:
            with typed_failures():
                page = await self._records.partitions(prefix, after=after, limit=256)
            names += [name[len(prefix) :].rstrip(FIELD_END) for name in page.names]
            after = page.next
            if after is None:
                break
        return [name for name in names if await self.pending(name)]

    # -- client tools

    async def recorded_client_decision(
        self, root: str, call_id: str, name: str, allowed: bool
    ) -> bool:
        """Keep the first decision on a client tool's call, and return it."""
        record_key = _slot_key(_CLIENT, call_id)

        async def decide(reader: Reader, _: str) -> Change[bool]:
            (record,) = await reader.get_many([record_key])
            if record is not None and decoded(record).get("name") == name:
                return Change(bool(decoded(record).get("allowed")))
            return Change(allowed, puts={record_key: {"name": name, "allowed": allowed}})

        return await self._thread(root).change("decide", decide)

    # -- threads

    async def adopt(self, child: str, parent: str) -> None:
        """Note that a thread's interrupts are answered through another one.

        Raises:
            InvalidInputError: That thread is the child itself, or descends from it (``INVALID_ARGUMENT``).
        """

        async def decide(reader: Reader, _: str) -> Change[None]:
            ancestor: str | None = parent
            while ancestor is not None:
                if ancestor == child:
                    raise InvalidInputError(
                        f"The thread {child} cannot be adopted by {parent}, which is itself or descends from it.",
                        details={"option": "parent_thread"},
                    )
                ancestor = _parent((await reader.get_many([_slot_key(_CHILD, ancestor)]))[0])
            return Change(None, puts={_slot_key(_CHILD, child): {"parent": parent}})

        await self._families().change("adopt", decide)

    async def root_of(self, thread: str) -> str:
        """Return the root thread of a thread: itself, when nobody adopted it."""
        families = self._families()
        if await families.sequence() == 0:
            return thread
        seen: set[str] = set()
        while thread not in seen:
            seen.add(thread)
            found = await families.get(_slot_key(_CHILD, thread))
            parent = found.get("parent") if isinstance(found, dict) else None
            if not isinstance(parent, str):
                return thread
            thread = parent
        raise corrupt("the record of a thread's parent")

    async def forget(self, thread: str) -> None:
        """Remove what waits in a thread and what was answered."""
        await self._thread(thread).drop()

        async def decide(reader: Reader, _: str) -> Change[None]:
            record_key = _slot_key(_CHILD, thread)
            (record,) = await reader.get_many([record_key])
            return Change(None, deletes=[record_key] if record is not None else [])

        if await self._families().sequence() > 0:
            await self._families().change("forget", decide)


@dataclass(frozen=True, slots=True)
class _Waiting:
    slot: str
    interrupt: Interrupt
    grants: tuple[tuple[str, str], ...]
    scope: str | None


def _waiting(records: Sequence[Record]) -> list[_Waiting]:
    """Read what waits, in the order in which it was noted; clocks may stand still, or differ from process to process."""
    try:
        found = [
            _Waiting(
                record.key[len(_PENDING) :].rstrip(FIELD_END),
                _interrupt(record),
                _grants(decoded(record)),
                decoded(record).get("scope"),
            )
            for record in sorted(records, key=lambda record: record.revision)
        ]
    except ResumeError:
        raise
    except WorkspaceError as error:
        raise _malformed() from error
    if len({item.interrupt.interrupt_id for item in found}) != len(found):
        raise _malformed()
    return found


def _matched(waiting: Sequence[_Waiting], entries: Sequence[Entry]) -> list[Answered]:
    """Return the answers in the order of the entries, which must be exactly the pending set."""
    if not entries and not waiting:
        return []
    if not entries:
        raise _refused(
            ErrorCode.RESUME_REQUIRED,
            f"Pending interrupts: {len(waiting)}. Answer all of them, and nothing else.",
        )
    if not waiting:
        raise _refused(ErrorCode.STALE_INTERRUPT, "Nothing is pending any more.")
    by_id = {item.interrupt.interrupt_id: item for item in waiting}
    given = [entry.interrupt_id for entry in entries]
    if len(set(given)) != len(given) or set(given) != set(by_id):
        raise _refused(
            ErrorCode.INTERRUPT_SET_MISMATCH,
            "The entries must be exactly the pending interrupts, each once.",
        )
    answers = []
    for entry in entries:
        item = by_id[entry.interrupt_id]
        answer = entry.checked()
        if answer == "always" and not item.interrupt.allow_always:
            answer = "once"
        answers.append(Answered(item.interrupt, answer, item.grants, item.scope))
    return answers


def _runs_once(answered: Answered) -> bool:
    """Tell whether an approval for this call is to be kept: with a standing approval there is none to be left over."""
    if answered.answer == "always":
        return any(len(pattern) > MAX_PATTERN_CHARS for _, pattern in answered.grants)
    return answered.answer == "once"


def _parent(record: Record | None) -> str | None:
    found = None if record is None else decoded(record).get("parent")
    return found if isinstance(found, str) else None


def _slot_key(kind: str, slot: str) -> str:
    return f"{kind}{slot}{FIELD_END}"


def _entry(interrupt: Interrupt) -> dict[str, Any]:
    return {
        "id": interrupt.interrupt_id,
        "kind": interrupt.kind,
        "detail": dict(interrupt.detail),
        "callId": interrupt.tool_call_id,
        "allowAlways": interrupt.allow_always,
        "thread": interrupt.thread_id,
        "digest": interrupt.digest,
        "at": interrupt.created_at,
    }


def _interrupt(record: Record) -> Interrupt:
    return _made(decoded(record))


def _made(entry: Any) -> Interrupt:  # noqa: ANN401 - JSON
    try:
        interrupt = Interrupt(
            entry["id"],
            entry["kind"],
            entry["detail"],
            entry["callId"],
            entry["allowAlways"],
            entry["thread"],
            entry["digest"],
            entry["at"],
        )
    except (KeyError, TypeError):
        raise _malformed() from None
    texts = (interrupt.interrupt_id, interrupt.kind, interrupt.thread_id, interrupt.digest)
    if not all(type(text) is str and text for text in texts) or type(interrupt.detail) is not dict:
        raise _malformed()
    return interrupt


def _grants(entry: Any) -> tuple[tuple[str, str], ...]:  # noqa: ANN401 - JSON
    try:
        return tuple((str(name), str(pattern)) for name, pattern in entry.get("grants", []))
    except (TypeError, ValueError, AttributeError):
        raise _malformed() from None


def _answered(entry: Any) -> Answered:  # noqa: ANN401 - JSON
    return Answered(_made(entry), str(entry.get("answer")), _grants(entry), entry.get("scope"))


def _malformed() -> ResumeError:
    return _refused(
        ErrorCode.MALFORMED_CHECKPOINT,
        "The pending interrupts of the thread are damaged; nothing was resumed.",
    )


def _refused(code: ErrorCode, message: str) -> ResumeError:
    return ResumeError(message, code=code, hint="Read the pending interrupts again.")
