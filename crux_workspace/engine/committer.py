"""The only place that applies a changeset.

A verb plans; the committer turns the plan into a batch under the store's rules, plans again when it is refused, recognises a commit
whose answer was lost, remembers idempotent results, and keeps a commit that was handed over running when its caller is cancelled.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Generic, TypeVar

from msgspec import Struct

from crux_workspace.engine.build import build
from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset
from crux_workspace.engine.codec import Op, decode, encode
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.guard import GuardedReader
from crux_workspace.engine.inflight import InFlight
from crux_workspace.engine.keys import op_key
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.engine.shrinking import Smaller, add_smaller, shrink_ended
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.errors import (
    ConflictError,
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
    StorageError,
    WorkspaceError,
)
from crux_workspace.events.log import (
    commit_name,
    log_head,
    read_meta,
    sequence_of_key,
    time_of,
)
from crux_workspace.storage.failures import unavailable
from crux_workspace.storage.guessing import CannotGuess
from crux_workspace.storage.layout import LOG_PREFIX, META_KEY, is_log_head, log_key
from crux_workspace.storage.records import (
    Batch,
    BatchTooLarge,
    CeilingExceeded,
    OutcomeUnknown,
    PreconditionFailed,
    Put,
    Reader,
    StoreError,
)

__all__ = ["IDEMPOTENCY_MS", "Call", "Done", "Finished", "Stale", "commit"]

IDEMPOTENCY_MS = 86_400_000
"""How long the result of an idempotent call is remembered."""
MAX_REFUSALS = 10
MAX_PREPARATIONS = 5
MAX_UNKNOWN = 3

_T = TypeVar("_T")


class _PlanEnded(Exception):
    """A plan ended without a batch, and not by an error."""


class Stale(_PlanEnded):
    """A plan found that what was prepared for it no longer fits: prepare again, for what it saw."""

    def __init__(self, path: str, seen: Entry | None = None) -> None:
        super().__init__(path)
        self.path = path
        self.seen = seen


class _Finished(_PlanEnded):
    """A plan ended without a batch: nothing to change, or already done."""

    def __init__(self, result: Any) -> None:  # noqa: ANN401 - the verb's result
        super().__init__()
        self.result = result


class _Turn(_PlanEnded):
    """The commit is to write earlier versions smaller, which have to be read and encoded first."""

    def __init__(self, ended: list[Entry]) -> None:
        super().__init__()
        self.ended = ended


class _Landed(_PlanEnded):
    """A commit whose answer was lost is in the log."""

    def __init__(self, sequence: int, at: int, commit_id: str) -> None:
        super().__init__(commit_id)
        self.sequence = sequence
        self.at = at
        self.commit_id = commit_id


class Done(Struct, gc=False):
    """A commit that is applied, and what it made."""

    sequence: int
    at: int
    commit_id: str
    built: Built

    @property
    def commit(self) -> str:
        """The commit as users see it."""
        return commit_name(self.sequence, self.commit_id)

    def entry(self, path: str) -> Entry:
        """Return the new head at a path."""
        return self.built.entry(path, self.sequence, self.at)


class Call(Struct, Generic[_T]):
    """One public call that commits.

    `plan` reads the tree and returns a changeset, or a finished result when there is nothing to change. `finish` makes the
    result of a commit; `remember` and `recall` turn it into what an idempotency key keeps and back. `recall` runs inside the plan: it
    reads by the reader that it is given and awaits nothing else.
    """

    verb: str
    paths: tuple[str, ...]
    plan: Callable[[LiveTree], Awaitable[Changeset | Finished[_T]]]
    finish: Callable[[Done], _T]
    prepare: Callable[[Stale], Coroutine[Any, Any, None]] | None = None
    abandon: Callable[[], Coroutine[Any, Any, None]] | None = None
    """Delete this call's uploads; only called when it is known that nothing refers to them."""
    sweep: Callable[[], Coroutine[Any, Any, int]] | None = None
    """Account for files whose time has passed before a ceiling refuses; returns how many went."""
    idempotency_key: str | None = None
    digest: str = ""
    recall: Callable[[Reader, Op, int, int], Awaitable[_T]] | None = None
    remember: Callable[[Built, Op], None] | None = None


class Finished(Struct, Generic[_T]):
    """A plan's way to say: there is nothing to commit, this is the result."""

    result: _T


async def commit(ports: EnginePorts, in_flight: InFlight, call: Call[_T]) -> _T:
    """Carry out one call: prepare, plan, commit, observe.

    Promises: all or nothing; refused plans are made again on what is there now; a commit handed over to the store is finished even
    when the caller is cancelled; a lost answer is looked up in the log, never repeated blindly.

    Raises:
        ConflictError: The path changed faster than the call could be prepared (``VERSION_CONFLICT``).
        LimitExceededError: A ceiling refuses it (``QUOTA_EXCEEDED``, ``COMMIT_TOO_LARGE``).
        StorageError: The store failed, or gave no answer (``STORE_TIMEOUT``).
    """
    work = _Attempts(ports, call).run()
    if ports.records.capabilities.task_agnostic:
        return await in_flight.carried(work)
    return await in_flight.shielded(work)


async def _apart(work: Coroutine[Any, Any, _T]) -> _T:
    """Run what may use more than the record store in a task of its own: the calling one may be any (`InFlight.carried`)."""
    return await asyncio.get_running_loop().create_task(work)


class _Attempts(Generic[_T]):
    """All attempts of one call."""

    __slots__ = (
        "call",
        "latest",
        "plan_failure",
        "plans",
        "ports",
        "sent",
        "since",
        "smaller",
        "swept",
        "unknown",
    )

    def __init__(self, ports: EnginePorts, call: Call[_T]) -> None:
        self.ports = ports
        self.call = call
        self.plans = 0
        self.swept = False
        self.sent: dict[str, Built] = {}
        self.latest: Built | None = None
        self.since = 0
        self.unknown = False
        self.plan_failure: Exception | None = None
        self.smaller: list[Smaller] | None = None
        """Earlier versions to write smaller along the way; None as long as nobody looked for them."""

    async def run(self) -> _T:
        try:
            try:
                return await self.committed()
            except Stale as found:
                stale = found
            return await self.prepared(stale)
        except OutcomeUnknown as error:
            raise StorageError(
                f"The store did not answer whether {self.call.verb} was committed.",
                code=ErrorCode.STORE_TIMEOUT,
                hint="Repeat the call with the same idempotency_key: it takes effect once.",
            ) from (error.__cause__ or error)
        except BaseException:
            if self.call.abandon is not None and not self.unknown:
                await _apart(self.call.abandon())
            raise

    async def prepared(self, found: Stale) -> _T:
        """Commit, preparing again while plans find the preparation stale."""
        if self.call.prepare is None:
            raise AssertionError("a plan without preparation called it stale")
        lock = self.ports.hub.queue(self.ports.partition, found.path)
        async with lock:
            return await self.prepare_again(found, self.call.prepare)

    async def prepare_again(
        self, stale: Stale, prepare: Callable[[Stale], Coroutine[Any, Any, None]]
    ) -> _T:
        for _ in range(MAX_PREPARATIONS):
            await _apart(prepare(stale))
            try:
                return await self.committed()
            except Stale as again:
                stale = again
        raise self.conflict(f"{stale.path} keeps changing while {self.call.verb} prepares for it")

    async def committed(self) -> _T:
        """Plan and commit until the store accepts."""
        refused: StoreError | None = None
        for _ in range(MAX_REFUSALS):
            try:
                try:
                    done = await self.hand_over()
                except (OutcomeUnknown, _Landed) as lost:
                    done = await self.found_out(lost)
            except _Finished as finished:
                result: _T = finished.result
                if self.call.abandon is not None and not self.unknown:
                    await _apart(self.call.abandon())
                return result
            except _Turn as turn:
                self.smaller = await _apart(shrink_ended(self.ports.reader, turn.ended))
                continue
            except (PreconditionFailed, CeilingExceeded, BatchTooLarge) as failure:
                await self.judge(failure)
                refused = failure
                continue
            for observe in self.ports.observers:
                if (telling := observe(done.built.versions)) is not None:
                    await telling
            return self.call.finish(done)
        raise self.conflict(f"{self.call.verb} was refused {MAX_REFUSALS} times") from refused

    async def judge(self, failure: PreconditionFailed | CeilingExceeded | BatchTooLarge) -> None:
        """Return when the plan is to be made again; raise what a final refusal is to the caller."""
        had_more, self.smaller = bool(self.smaller), []
        if isinstance(failure, BatchTooLarge):
            if had_more:
                return
            raise LimitExceededError(
                f"{self.call.verb} is too large for one commit of this store "
                f"({failure.what}: {failure.size}, at most {failure.limit}); do it in parts.",
                code=ErrorCode.COMMIT_TOO_LARGE,
                details={"size": failure.size, "limit": failure.limit},
            ) from None
        if isinstance(failure, CeilingExceeded):
            if self.unknown:  # a batch that was sent before may still be applied: the refusal is not the last word
                raise OutcomeUnknown from failure
            if not await self.made_room():
                raise self.over_quota(failure) from None
        elif failure.what == "upload":
            raise self.conflict(
                "Storing the content took so long that gc may have deleted it (Retention.asset_grace_ms)"
            ) from failure

    async def found_out(self, lost: OutcomeUnknown | _Landed) -> Done:
        """Ask again after a lost answer: before it is made again, the plan looks in the log whether the commit is there."""
        for attempt in range(MAX_UNKNOWN):
            if isinstance(lost, _Landed):
                self.unknown = False
                return Done(lost.sequence, lost.at, lost.commit_id, self.sent[lost.commit_id])
            self.unknown = True
            if attempt == MAX_UNKNOWN - 1:
                raise lost
            await asyncio.sleep(0.02 * attempt)
            try:
                done = await self.hand_over()
            except (OutcomeUnknown, _Landed) as again:
                lost = again
            else:
                self.unknown = False
                return done
        raise AssertionError("unreachable")

    async def hand_over(self) -> Done:
        """Call the store and tell watchers; any failure of its own leaves the outcome unknown."""
        hub, partition = self.ports.hub, self.ports.partition
        ticket = hub.begin(partition)
        try:
            committed = await self.ports.records.commit_planned(partition, self.plan)
            hub.committed(partition, committed.sequence)
            built = self.latest
            assert built is not None
            return Done(committed.sequence, committed.at, built.batch.commit_id, built)
        except (StoreError, WorkspaceError, _PlanEnded) as error:
            if self.unknown and isinstance(error, StorageError) and error.retryable:
                # The store went away before it could be asked what became of the commit that was sent.
                raise OutcomeUnknown from (error.__cause__ or error)
            raise
        except Exception as error:
            if error is self.plan_failure:
                raise
            if not self.sent:
                raise unavailable("record store", error) from error
            raise OutcomeUnknown from error
        except (asyncio.CancelledError, GeneratorExit):
            self.unknown = (
                True  # the loop is being closed; a store with a thread of its own may still commit
            )
            raise
        finally:
            hub.end(ticket)

    async def plan(self, reader: Reader) -> Batch:
        """What the store runs: read, plan, build; and, after a lost answer, look whether it landed."""
        self.plans += 1
        guarded = GuardedReader(reader)
        tree = LiveTree(guarded, self.ports.clock(), careful=self.plans > 1)
        try:
            built = await self.make(tree)
        except CannotGuess:
            self.plans -= 1  # it comes again at once, with a reader that knows
            raise
        except Exception as error:
            self.plan_failure = error
            await self.look_for_landed(guarded)
            if isinstance(error, WorkspaceError) and not isinstance(error, StorageError):
                await self.check_still(tree, guarded)
            raise
        if self.unknown:
            await self.look_for_landed(guarded)
        # A namespace that was dropped meanwhile counts from 1 again.
        self.since = min(self.since, tree.sequence) if self.sent else tree.sequence
        self.sent[built.batch.commit_id] = self.latest = built
        return built.batch

    async def check_still(self, tree: LiveTree, reader: GuardedReader) -> None:
        """Before a plan's refusal is believed: several reads without a lock may have seen a mixture that never was.

        Raises:
            PreconditionFailed: Somebody committed while the plan was reading; plan again.
        """
        locked = self.ports.records.capabilities.plans_under_lock
        if locked or not tree.looked or reader.calls < 2 or self.plans >= MAX_REFUSALS:
            return
        [record] = await reader.get_many([META_KEY], bodies=False)
        meta = read_meta(record)
        if (0 if meta is None else meta.sequence) != tree.sequence:
            raise PreconditionFailed("revision", META_KEY)

    async def make(self, tree: LiveTree) -> Built:
        call = self.call
        if call.idempotency_key is not None:
            await self.recall(tree, call.idempotency_key)
        planned = await call.plan(tree)
        if isinstance(planned, Finished):
            raise _Finished(planned.result)
        commit_id = self.ports.ids()[-24:]
        built = await build(self.ports, tree, planned, call.verb, commit_id)
        if call.idempotency_key is not None:
            op = Op(digest=call.digest, commit=commit_id)
            if call.remember is not None:
                call.remember(built, op)
            built.batch.puts.append(Put(op_key(call.idempotency_key), encode(op)))
        if built.turns and self.smaller is None:
            raise _Turn(built.turns)
        if self.smaller:
            add_smaller(built.batch, self.smaller)
        self.check_uploads(built.batch)
        return built

    async def recall(self, tree: LiveTree, idempotency_key: str) -> None:
        """End the call with the first result when its key is known."""
        [record] = await tree.get([op_key(idempotency_key)])
        if record is None or record.at + IDEMPOTENCY_MS <= tree.now:
            return
        op = decode(Op, record.value)
        if op.digest != self.call.digest:
            raise InvalidInputError(
                "The idempotency_key was used for another request; use a fresh key for each request.",
                details={
                    "idempotency_key_sha256": hashlib.sha256(idempotency_key.encode()).hexdigest()
                },
            )
        if self.call.recall is None:
            raise _Finished(None)
        raise _Finished(await self.call.recall(tree.reader, op, record.revision, record.at))

    def check_uploads(self, batch: Batch) -> None:
        """Refuse a first commit's uploads when they are so old that the orphan sweep may be near them; later ones are fenced."""
        uploaded = batch.oldest_upload_at
        if uploaded is None or batch.incarnation is not None:
            return
        if batch.now - uploaded > self.ports.unfenced_grace_ms // 2:
            raise PreconditionFailed("upload")

    async def look_for_landed(self, reader: Reader) -> None:
        """After a lost answer: was one of the commits that were sent applied after all?

        Raises:
            OutcomeUnknown: The log that would tell has been trimmed meanwhile.
        """
        if not self.unknown:
            return
        expected = self.since + 1
        async for record in scan_range(reader, LOG_PREFIX, after=log_key(self.since) + "\x7f"):
            if is_log_head(record.key):
                if sequence_of_key(record.key) > expected:
                    raise OutcomeUnknown
                expected += 1
                commit_id = log_head(record).commit_id
                if commit_id in self.sent:
                    raise _Landed(sequence_of_key(record.key), time_of(record), commit_id)

    async def made_room(self) -> bool:
        """Account for due files once before a ceiling refuses."""
        if self.swept or self.call.sweep is None:
            return False
        self.swept = True
        await _apart(self.call.sweep())
        return True  # also when another call swept first: only trying again tells

    def over_quota(self, exceeded: CeilingExceeded) -> LimitExceededError:
        names = {"live_bytes": "max_namespace_bytes", "live_files": "max_files"}
        limit_name = names.get(exceeded.counter, exceeded.counter)
        path = self.call.paths[0] if self.call.paths else None
        return LimitExceededError(
            f"{self.call.verb} of {path} was refused: it would take the namespace from {exceeded.used} to "
            f"{exceeded.used + exceeded.added}, {limit_name} is {exceeded.limit}.",
            code=ErrorCode.QUOTA_EXCEEDED,
            details={
                "path": path,
                "size": exceeded.added,
                "limit": exceeded.limit,
                "used": exceeded.used,
                "limit_name": limit_name,
            },
        )

    def conflict(self, what: str) -> ConflictError:
        path = self.call.paths[0] if self.call.paths else None
        return ConflictError(
            f"{what}; nothing was changed, try again.",
            details={
                "path": path,
                "base_version": None,
                "current_version": None,
                "last_operation": None,
                "last_actor": None,
            },
        )
