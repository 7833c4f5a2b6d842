"""Transactions: verbs that stage instead of committing, and the one commit at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from crux_workspace.engine.build import stage
from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset
from crux_workspace.engine.codec import Op, decode
from crux_workspace.engine.committer import (
    IDEMPOTENCY_MS,
    MAX_PREPARATIONS,
    Done,
    Finished,
    Stale,
)
from crux_workspace.engine.content import discard
from crux_workspace.engine.entry import Entry
from crux_workspace.engine.keys import head_key, op_key
from crux_workspace.engine.looks import Look, Since
from crux_workspace.engine.staged import StagedTree, conflict_of, transaction_conflict
from crux_workspace.engine.staged_reads import StagedReads
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.errors import ConflictError, ErrorCode, InvalidInputError, StateError
from crux_workspace.events.log import (
    commit_changes,
    commit_name,
    log_head,
    read_meta,
    sequence_of_key,
)
from crux_workspace.model.changes import PURGED_PATH, Change
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.transactions import Replayed
from crux_workspace.operations.space import Options, Space, digest_of, type_conflict
from crux_workspace.storage.layout import (
    LOG_PREFIX,
    META_KEY,
    Meta,
    is_log_head,
    log_key,
    subtree_range,
)
from crux_workspace.storage.records import Reader

__all__ = ["Applied", "StagedSpace", "apply", "begin"]

_T = TypeVar("_T")


class StagedSpace(Space):
    """The namespace as a transaction sees it: what the verbs commit is staged."""

    def __init__(self, live: Space, tree: StagedTree) -> None:
        super().__init__(live.ports, live.router, live.in_flight)
        self.live = live
        self.tree = tree
        self.open = True
        self.verb = "transaction"
        """What the log shows as the commit's verb."""
        self._lock = asyncio.Lock()

    @property
    def stages(self) -> bool:
        """Verbs stage here."""
        return True

    def reads(self) -> StagedReads:  # type: ignore[override]  # the verbs of a transaction use what both have
        """Read what the transaction sees.

        Raises:
            StateError: The transaction has ended (``TRANSACTION_CLOSED``).
        """
        self.check_open()
        return StagedReads(self.tree)

    def check_open(self) -> None:
        """Refuse use after the end (``TRANSACTION_CLOSED``)."""
        if not self.open:
            raise StateError(
                "The transaction has ended; begin another one.",
                code=ErrorCode.TRANSACTION_CLOSED,
            )

    def file(self, entry: Entry) -> WorkspaceFile:
        """Make the result of a head; what is staged has no commit yet."""
        return entry.to_file(
            self.router.mount_path(entry.path), staged=entry.revision > self.tree.sequence
        )

    async def commit(
        self,
        verb: str,
        paths: tuple[str, ...],
        plan: Callable[[LiveTree], Awaitable[Changeset | Finished[_T]]],
        finish: Callable[[Done], _T],
        *,
        options: Options,
        request: list[Any],
        remember: Callable[[Built, Op], None] | None = None,
        recall: Callable[[Reader, Op, int, int], Awaitable[_T]] | None = None,
        prepare: Callable[[Stale], Awaitable[None]] | None = None,
        abandon: Callable[[], Awaitable[None]] | None = None,
    ) -> _T:
        """Stage one call."""
        committed = False
        try:
            if options.idempotency_key is not None:
                raise InvalidInputError(
                    "Inside a transaction give the idempotency_key to the transaction itself.",
                    details={"option": "idempotency_key"},
                )
            async with self._lock:
                self.check_open()
                result, committed = await self._stage(plan, finish, prepare)
                return result
        finally:
            if not committed and abandon is not None:
                await abandon()

    async def _stage(
        self,
        plan: Callable[[LiveTree], Awaitable[Changeset | Finished[_T]]],
        finish: Callable[[Done], _T],
        prepare: Callable[[Stale], Awaitable[None]] | None,
    ) -> tuple[_T, bool]:
        for _ in range(MAX_PREPARATIONS):
            try:
                planned = await plan(self.tree)
            except Stale as stale:
                assert prepare is not None
                await prepare(stale)
                continue
            if isinstance(planned, Finished):
                return planned.result, False
            built = await stage(self.ports, self.tree, planned)
            self.check_open()
            self.tree.staged_at = max(self.tree.now, self.ports.clock())
            unneeded = self.tree.apply(planned, built)
            result = finish(Done(self.tree.sequence + 1, self.tree.staged_at, "", built))
            if unneeded:
                await self.drop(unneeded)
            return result, True
        raise AssertionError("a staged plan stayed stale")

    async def drop(self, refs: list[str]) -> None:
        """Delete uploads that nothing staged refers to."""
        for ref in refs:
            upload = self.tree.uploads.pop(ref, None)
            if upload is not None:
                await discard(self.ports, upload)

    async def close(self) -> None:
        """End without a commit: nothing staged stays behind."""
        self.open = False
        await self.drop(list(self.tree.uploads))


async def begin(space: Space, idempotency_key: str | None) -> StagedSpace | Replayed:
    """Pin the namespace where it is now; a known key is answered with what its commit was. Cost: 1 read."""
    keys = [META_KEY] if idempotency_key is None else [META_KEY, op_key(idempotency_key)]
    found = await space.ports.reader.get_many(keys, bodies=False)
    record = found[1] if len(found) == 2 else None
    if record is not None and record.at + IDEMPOTENCY_MS > space.ports.clock():
        return _replayed(decode(Op, record.value), record.revision, record.at)
    return StagedSpace(space, StagedTree(space.ports.reader, found[0]))


def _replayed(op: Op, sequence: int, at: int) -> Replayed:
    if op.digest != digest_of("transaction", []):
        raise InvalidInputError(
            "The idempotency_key was used for another request; use a fresh key for each request.",
            details={"option": "idempotency_key"},
        )
    return Replayed(sequence, commit_name(sequence, op.commit), at)


@dataclass(frozen=True, slots=True)
class Applied:
    """The commit of a transaction; not `fresh` when its idempotency key was known and nothing was applied."""

    commit: Replayed
    fresh: bool


async def apply(staged: StagedSpace, idempotency_key: str | None) -> Applied | None:
    """Commit what was staged, whole or not at all; None when there was nothing to commit.

    Raises:
        ConflictError: Something that the transaction read or wrote changed since it began (``TRANSACTION_CONFLICT``).
    """
    staged.check_open()
    staged.open = False
    tree = staged.tree
    try:
        await _refuse_overbuilt(tree)
    except BaseException:
        await staged.close()
        raise
    changes = tree.changeset()
    if not changes.deltas:
        await staged.close()
        return None
    attempts = 0

    async def plan(live: LiveTree) -> Changeset:
        nonlocal attempts
        attempts += 1
        if tree.stale:
            raise transaction_conflict(list(tree.stale.values()))
        planned = changes
        if attempts > 1:
            await _refuse_changed(live, tree, changes)
            planned = await _clear_directories(live, tree, changes)
            live.adopt(live.meta, tree.expect, tree.quiet)
        else:
            limit = staged.ports.limits.max_history_bytes
            meta = await _with_history_of_now(live, tree, limit)
            live.adopt(meta, tree.expect, tree.quiet)
        _refuse_expired(live, tree, changes)
        return planned

    async def recall(_: Reader, op: Op, sequence: int, at: int) -> Applied:
        return Applied(_replayed(op, sequence, at), fresh=False)

    used: set[str] = set()
    landed = False

    def finish(done: Done) -> Applied:
        nonlocal landed
        landed = True
        for head in done.built.heads.values():
            used.update(head.refs)
        used.update(_frozen_assets(changes))
        return Applied(Replayed(done.sequence, done.commit, done.at), fresh=True)

    try:
        committing = staged.live.commit(
            staged.verb,
            tuple(delta.after.path for delta in changes.deltas if delta.after is not None),
            plan,
            finish,
            options=Options(idempotency_key),
            request=[],
            recall=recall,
            abandon=staged.close,
        )
        return await _as_of_a_transaction(committing)
    finally:
        await staged.drop([ref for ref in staged.tree.uploads if landed and ref not in used])


async def _as_of_a_transaction(committing: Coroutine[Any, Any, Applied]) -> Applied:
    """Let whoever repeats transactions know the committer's own refusals (a swept upload, too many refusals) too."""
    try:
        return await committing
    except ConflictError as error:
        if error.code is not ErrorCode.VERSION_CONFLICT:
            raise
        raise transaction_conflict([dict(error.details)]) from error


async def _with_history_of_now(live: LiveTree, tree: StagedTree, limit: int | None) -> Meta | None:
    """Return the start's `meta`; where bytes of history are limited, with what history holds by now."""
    if tree.meta is None or limit is None:
        return tree.meta
    [record] = await live.reader.get_many([META_KEY], bodies=False)
    now = read_meta(record)
    return tree.meta if now is None else msgspec.structs.replace(tree.meta, counters=now.counters)


async def _refuse_overbuilt(tree: StagedTree) -> None:
    """A file was written where a directory was that still has files in it (``PATH_TYPE_CONFLICT``)."""
    for path in tree.overbuilt():
        for entry in await tree.below(path):
            raise type_conflict(path, entry.path, is_file=False)


def _frozen_assets(changes: Changeset) -> set[str]:
    return {
        ref for delta in changes.deltas for frozen in delta.frozen for ref in frozen.content.refs
    }


def _refuse_expired(live: LiveTree, tree: StagedTree, changes: Changeset) -> None:
    """A file whose time passed while the transaction was open is gone for everybody: it must not come back as if nothing was."""
    conflicts = [
        conflict_of(before.path, before, None)
        for before in (delta.before for delta in changes.deltas if delta.after is not None)
        if before is not None and before.is_expired(live.now) and not before.is_expired(tree.now)
    ]
    if conflicts:
        raise transaction_conflict(conflicts)


async def _refuse_changed(live: LiveTree, tree: StagedTree, changes: Changeset) -> None:
    """After a refusal: find what changed, and say it. A head that upkeep rewrote, of a file that was only read, did not change."""
    written = {delta.before.path for delta in changes.deltas if delta.before is not None}
    keys = list(tree.expect)
    found = await live.get(keys)
    conflicts: list[dict[str, object]] = []
    for key, record in zip(keys, found, strict=True):
        if (0 if record is None else record.revision) == tree.expect[key]:
            continue
        path = tree.path_of(key)
        current = None if record is None or key != head_key(path) else Entry.of(record)
        if record is not None and tree.is_as_begun(current) and path not in written:
            tree.expect[key] = record.revision
            continue
        known = tree.base_entry(path)
        conflict = conflict_of(path, known, current)
        if current is not None:
            conflict["last_actor"] = await live.actor_of(current.commit_sequence)
        if all(other["path"] != path for other in conflicts):
            conflicts.append(conflict)
    begun = None if tree.meta is None else tree.meta.incarnation
    if begun != (None if live.meta is None else live.meta.incarnation) and not (
        begun is None and not conflicts
    ):
        conflicts = conflicts or [conflict_of("/", None, None)]
    named = {conflict["path"] for conflict in conflicts}
    conflicts += [heard for heard in await _heard(live, tree) if heard["path"] not in named]
    if conflicts:
        raise transaction_conflict(conflicts)


async def _heard(live: LiveTree, tree: StagedTree) -> list[dict[str, object]]:
    """Return what was committed since the start on paths that were listed or searched."""
    if not tree.quiet or live.sequence == tree.sequence:
        return []
    since = Since(live.reader, tree.sequence, live.sequence, tree.now)
    expected = tree.sequence + 1
    after = log_key(tree.sequence) + "\x7f"
    async for record in scan_range(live.reader, LOG_PREFIX, after=after, bodies=True, page=64):
        if not is_log_head(record.key):
            continue
        if sequence_of_key(record.key) != expected:
            break
        head = log_head(record)
        for change in await commit_changes(live.reader, record, head):
            look = await _shown_in(since, tree, change)
            if look is not None:
                path = look.path if change.path == PURGED_PATH else change.path
                conflict = conflict_of(path, None, None)
                conflict["base_version"] = change.previous_version
                conflict["current_version"] = change.version
                conflict["last_operation"], conflict["last_actor"] = head.verb, head.actor
                return [conflict]
        expected += 1
    if expected <= live.sequence:
        return [conflict_of(tree.quiet[0][0], None, None)]
    return []


async def _shown_in(since: Since, tree: StagedTree, change: Change) -> Look | None:
    for look in tree.looks:
        if await since.shows(look, change):
            return look
    return None


async def _clear_directories(live: LiveTree, tree: StagedTree, changes: Changeset) -> Changeset:
    """After a refusal: a path that was to become a file may be a directory, or hold nothing but files that have expired."""
    cleared = Changeset()
    for path in changes.creates:
        low, high = subtree_range("head", path)
        found = False
        async for record in scan_range(live.reader, low, before=high):
            entry = Entry.of(record)
            if entry.bound > tree.sequence:
                raise transaction_conflict([conflict_of(path, None, None)])
            if not entry.is_expired(tree.now):
                raise type_conflict(path, entry.path, is_file=False)
            live.rely(record.key, record.revision)
            cleared.expire(entry)
            found = True
        if found:
            live.quiet.append((path, True))
        else:
            cleared.creates.append(path)
    return Changeset([*cleared.deltas, *changes.deltas], cleared.creates)
