"""Purge: a file vanishes with its first commit, its versions go in bounded steps, and a crash in between is resumed by gc.

What is left of a purged file is the fact that some file was at a path from one commit to another (`was/`), so that a view of the past
answers ``VERSION_EXPIRED`` instead of denying it. Its name in old log entries is replaced by `PURGED_PATH`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from crux_workspace.engine.changeset import Changeset, FileDelta
from crux_workspace.engine.codec import FilePlace, Gone, Job, Op, Was, decode, encode
from crux_workspace.engine.committer import Done, Finished
from crux_workspace.engine.entry import GoneFile, PastState
from crux_workspace.engine.keys import (
    JOB_PREFIX,
    OP_PREFIX,
    file_key,
    job_key,
    states_prefix,
    was_key_parts,
    was_prefix,
)
from crux_workspace.engine.tree import LiveTree, scan_range
from crux_workspace.events.log import commit_changes, log_head, sequence_of_key
from crux_workspace.model.changes import PURGED_PATH, Change
from crux_workspace.model.paths import is_below
from crux_workspace.operations import sourced, sourced_writing
from crux_workspace.operations.space import Options, Space, needs_recursive
from crux_workspace.operations.writing import deletable
from crux_workspace.storage.layout import (
    LOG_PREFIX,
    decode_changes,
    encode_changes,
    encode_log,
    is_log_head,
    log_key,
    prefix_end,
    redact,
    subtree_range,
)
from crux_workspace.storage.records import Put, Record

__all__ = ["PurgeJob", "finish_purge", "purge"]

_PER_COMMIT = 50


@dataclass(frozen=True, slots=True)
class PurgeJob:
    """A file that vanished with commit `sequence` and whose remains are to be erased."""

    path: str
    file_id: str
    sequence: int
    collected: bool = False
    """Some of its versions were collected before: states no longer tell all commits that name it."""

    @classmethod
    def of(cls, record: Record) -> PurgeJob:
        """Read an unfinished purge."""
        job = decode(Job, record.value)
        return cls(job.path, job.file_id, record.revision, job.first > 1)


async def purge(
    space: Space, path: str, *, directory: bool, recursive: bool, options: Options
) -> None:
    """Erase a file, live or deleted, or everything below a directory, with all versions and assets."""
    if (source := sourced.mutable(space, path, options, "delete")) is not None:
        await sourced_writing.delete(source, path, recursive=recursive, directory=directory)
        return
    if directory and not recursive:
        raise needs_recursive(path)

    async def plan(tree: LiveTree) -> Changeset | Finished[None]:
        await tree.look(path)
        await deletable(tree, path, options, directory=directory)
        deltas = await _victims(space, tree, path, recursive=recursive)
        if not deltas:
            return Finished(None)
        return Changeset(deltas, extra_puts=[_job_of(delta) for delta in deltas])

    async def to_the_end() -> None:
        await space.commit(
            "delete",
            (path,),
            plan,
            lambda _: None,
            options=options,
            request=[path, recursive, "purge"],
        )
        await _finish_purges(space, path, recursive=recursive)

    await space.in_flight.shielded(to_the_end())


def _job_of(delta: FileDelta) -> Put:
    where = delta.before.path if delta.before is not None else ""
    where = delta.gone.path if delta.gone is not None else where
    job = Job(path=where, file_id=delta.file_id, first=_first(delta))
    return Put(job_key(delta.file_id), encode(job))


async def _finish_purges(space: Space, path: str, *, recursive: bool) -> None:
    """Erase what purges of a path left: of this call, and of an earlier one that a failure cut short."""
    async for record in scan_range(space.ports.reader, JOB_PREFIX):
        job = PurgeJob.of(record)
        if job.path == path or (recursive and is_below(job.path, path)):
            await finish_purge(space, job)


async def _victims(space: Space, tree: LiveTree, path: str, *, recursive: bool) -> list[FileDelta]:
    """Return what goes: the file at the path, or with `recursive` all live and deleted ones below it."""
    here = tree.entry(path) or tree.expired(path)
    gone = tree.gone(path)
    deltas = []
    if here is not None:
        deltas.append(FileDelta(file_id=here.file_id, before=here, purged=True))
    elif gone is not None:
        deltas.append(FileDelta(file_id=gone.gone.file_id, gone=gone, purged=True))
    known = {delta.file_id for delta in deltas}
    at_path = was_prefix(path), prefix_end(was_prefix(path))
    if here is not None and not here.is_expired(tree.now):
        return deltas + await _overwritten(space, tree, at_path, known)
    if not recursive:
        if space.router.is_fixed_directory(path) or await tree.has_below(path):
            raise needs_recursive(path)
        return deltas + await _overwritten(space, tree, at_path, known)
    for entry in await tree.below(path):
        space.router.writable(entry.path)
        deltas.append(FileDelta(file_id=entry.file_id, before=entry, purged=True))
    low, high = subtree_range("gone", path)
    async for record in scan_range(tree.reader, low, before=high):
        found = GoneFile.of(record)
        tree.rely(record.key, record.revision)
        space.router.writable(found.path)
        deltas.append(FileDelta(file_id=found.gone.file_id, gone=found, purged=True))
    known = {delta.file_id for delta in deltas}
    for ended in (at_path, subtree_range("was", path)):
        deltas += await _overwritten(space, tree, ended, known)
    return deltas


def _first(delta: FileDelta) -> int:
    if delta.before is not None:
        return delta.before.head.first
    return 1 if delta.gone is None else delta.gone.gone.first


async def _overwritten(
    space: Space, tree: LiveTree, ended: tuple[str, str | None], known: set[str]
) -> list[FileDelta]:
    """Return the files of a range of `was/` that are gone without a `gone/` record: a rename overwrote them."""
    deltas: list[FileDelta] = []
    async for record in scan_range(tree.reader, ended[0], before=ended[1]):
        file_id = decode(Was, record.value).file_id
        if file_id in known:
            continue
        path, _ = was_key_parts(record.key)
        [found] = await tree.get([file_key(file_id)])
        place = None if found is None else decode(FilePlace, found.value)
        if place is None or not place.gone or place.purged or place.path != path:
            continue
        known.add(file_id)
        space.router.writable(path)
        # Where its collection had come to is not known any more: the log is read for its name.
        gone = Gone(file_id=file_id, version=0, created_at=0, first=2)
        deltas.append(FileDelta(file_id=file_id, gone=GoneFile(path, gone, 0), purged=True))
    return deltas


# -- what remains


async def finish_purge(space: Space, job: PurgeJob) -> None:
    """Erase the remains of a vanished file; may be repeated, and taken up again after a crash."""
    await _redact(space, job)
    await _forget_results(space, job)
    while await _erase(space, job):
        pass


async def _erase(space: Space, job: PurgeJob) -> bool:
    """Erase up to 50 states, or, when there are none left, the job itself; True while there was something to do."""

    async def plan(tree: LiveTree) -> Changeset | Finished[bool]:
        [record] = await tree.get([job_key(job.file_id)])
        if record is None:
            return Finished(False)
        page = await tree.reader.scan(states_prefix(job.file_id), limit=_PER_COMMIT)
        if not page.records:
            return Changeset(extra_deletes=[job_key(job.file_id)])
        return Changeset(forgotten=[PastState.of(state) for state in page.records])

    def finish(done: Done) -> bool:
        return job_key(job.file_id) not in done.built.batch.deletes

    return await space.commit("purge", (), plan, finish, options=Options(), request=[])


async def _forget_results(space: Space, job: PurgeJob) -> None:
    """Forget remembered results of idempotent calls that show the file: they hold its name and first characters."""
    keys = []
    async for record in scan_range(space.ports.reader, OP_PREFIX):
        op = decode(Op, record.value)
        shown = (op.head and op.head.file_id, op.artifact and op.artifact.file_id)
        if job.file_id in shown:
            keys.append(record.key)

    async def plan(tree: LiveTree) -> Changeset | Finished[None]:
        [record] = await tree.get([job_key(job.file_id)])
        return Finished(None) if record is None else Changeset(extra_deletes=keys)

    if keys:
        await space.commit("purge", (), plan, lambda _: None, options=Options(), request=[])


async def _redact(space: Space, job: PurgeJob) -> None:
    """Take the file's name out of the log entries before the purge."""
    sequences = sorted(await _traces(space, job))
    for start in range(0, len(sequences), _PER_COMMIT):
        await _redact_some(space, job, sequences[start : start + _PER_COMMIT])


async def _redact_some(space: Space, job: PurgeJob, sequences: list[int]) -> None:
    async def plan(tree: LiveTree) -> Changeset | Finished[None]:
        await tree.get([job_key(job.file_id)])
        puts: list[Put] = []
        for sequence in sequences:
            stem = log_key(sequence)
            async for record in scan_range(tree.reader, stem, before=prefix_end(stem), bodies=True):
                put = _without(record, job.file_id, is_first=record.key == stem)
                if put is not None:
                    tree.rely(record.key, record.revision)
                    puts.append(put)
        return Changeset(extra_puts=puts) if puts else Finished(None)

    await space.commit("purge", (), plan, lambda _: None, options=Options(), request=[])


def _without(record: Record, file_id: str, *, is_first: bool) -> Put | None:
    """Return a log record with the file's name taken out, None when it has none."""
    value, body = record.value, record.body
    if is_first:
        head = log_head(record)
        if redact(head, file_id, PURGED_PATH) and head.at is None:
            head.at = record.at
        value = encode_log(head)
    if body is not None:
        changes = decode_changes(body)
        if any(change.file_id == file_id and change.path != PURGED_PATH for change in changes):
            body = encode_changes(_nameless(change, file_id) for change in changes)
            if is_first:
                head.at = record.at if head.at is None else head.at
                value = encode_log(head)
    if value == record.value and body == record.body:
        return None
    return Put(record.key, value, body)


def _nameless(change: Change, file_id: str) -> Change:
    if change.file_id != file_id:
        return change
    return replace(
        change, path=PURGED_PATH, from_path=None if change.from_path is None else PURGED_PATH
    )


async def _traces(space: Space, job: PurgeJob) -> set[int]:
    """Return the commits before the purge that name the file: from its states, and along its former paths."""
    reader = space.ports.reader
    sequences: set[int] = set()
    paths = [job.path]
    async for record in scan_range(reader, states_prefix(job.file_id)):
        state = PastState.of(record)
        sequences |= {state.start, state.version_sequence, state.until}
        if state.state.version_path:
            paths.append(state.state.version_path)
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        if path in seen or path == PURGED_PATH:
            continue
        seen.add(path)
        async for record in scan_range(reader, was_prefix(path)):
            was = decode(Was, record.value)
            if was.file_id == job.file_id:
                ends = {was.since, was_key_parts(record.key)[1]}
                sequences |= ends
                paths += await _paths_at(space, job.file_id, ends)
    if job.collected and sequences:
        sequences |= await _named_between(space, job, min(sequences))
    return {sequence for sequence in sequences if 0 < sequence < job.sequence}


async def _named_between(space: Space, job: PurgeJob, first: int) -> set[int]:
    """Return the commits that name the file, by reading the log from its first known one to the purge."""
    reader = space.ports.reader
    named: set[int] = set()
    start = log_key(first)
    async for record in scan_range(
        reader, LOG_PREFIX, after=start, before=log_key(job.sequence), bodies=True
    ):
        if not is_log_head(record.key):
            continue
        changes = await commit_changes(reader, record, log_head(record))
        if any(change.file_id == job.file_id for change in changes):
            named.add(sequence_of_key(record.key))
    return named


async def _paths_at(space: Space, file_id: str, sequences: set[int]) -> list[str]:
    """Return where the log says the file came from or went to in some commits."""
    reader = space.ports.reader
    paths: list[str] = []
    for record in await reader.get_many([log_key(sequence) for sequence in sequences]):
        if record is None:
            continue
        for change in await commit_changes(reader, record, log_head(record)):
            if change.file_id == file_id:
                paths += [p for p in (change.path, change.from_path) if p is not None]
    return paths
