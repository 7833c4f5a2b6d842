"""The batch of the most frequent commit, made in one go: one new version with inline content, of a file with nothing around it.

`engine.build` makes every batch, this one too, step by step; what stands here makes the same batch from the same changeset with a
quarter of the work, and leaves to the builder whatever needs more than the file's own head and the version that ends. A test holds
both to the same batch, field by field and byte by byte.
"""

from __future__ import annotations

from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, NewContent
from crux_workspace.engine.codec import Head, encode
from crux_workspace.engine.entry import Entry, is_artifact
from crux_workspace.engine.keys import gone_key, head_key, state_key
from crux_workspace.engine.ports import AppendedVersion, EnginePorts
from crux_workspace.engine.shrinking import is_turn
from crux_workspace.engine.tree import LiveTree
from crux_workspace.model.changes import Change
from crux_workspace.model.values import maker
from crux_workspace.storage.layout import subtree_range
from crux_workspace.storage.records import Batch, Put, Take

__all__ = ["build_plain"]

_make_change = maker(Change)


def build_plain(
    ports: EnginePorts, tree: LiveTree, changeset: Changeset, verb: str, commit_id: str
) -> Built | None:
    """Make the batch of a changeset that is one plain new version; None where it is more than that.

    More are: several files, expiry, collection, artifacts, pins, assets, deletions and renames, a file that goes on after it was
    deleted, and a version whose end is the turn to write earlier ones smaller.
    """
    delta = _only_delta(ports, changeset)
    if delta is None:
        return None
    after, before = delta.after, delta.before
    if after is None or (content := _plain_content(after)) is None:
        return None
    if before is None:
        # A create looked for the record of a deleted file and found none; it is there where a staged tree forgot to look.
        if tree.expect.get(gone_key(after.path)) != 0:
            return None
        return _created(ports, tree, changeset, delta, after, content, verb, commit_id)
    if not _is_plain(before, after) or _collects(ports, before):
        return None
    return _replaced(ports, tree, changeset, before, after, content, verb, commit_id)


def _only_delta(ports: EnginePorts, changeset: Changeset) -> FileDelta | None:
    """Return the only change of a changeset, if there is nothing else to it than a new version."""
    if len(changeset.deltas) != 1 or ports.retention.ttl_ms is not None:
        return None
    if changeset.forgotten or changeset.extra_puts or changeset.extra_deletes:
        return None
    delta = changeset.deltas[0]
    if delta.gone is not None or delta.frozen or delta.overwritten or delta.upkeep or delta.purged:
        return None
    return delta if changeset.horizon is None else None


def _plain_content(after: Draft) -> NewContent | None:
    """Return the inline content of a draft that makes no artifact."""
    if after.status or after.artifact_kind or after.produced_by or after.pinned is not None:
        return None
    content = after.content
    return None if content is None or content.body is None else content


def _is_plain(before: Entry, after: Draft) -> bool:
    """Tell whether a file has inline content, and neither a pin nor a due time nor an artifact hangs on it."""
    head = before.head
    if head.pinned is not None or head.due is not None or head.filed is not None:
        return False
    if is_artifact(head) or not head.is_inline or before.provisional or before.path != after.path:
        return False
    return not is_turn(before)


def _collects(ports: EnginePorts, before: Entry) -> bool:
    """Tell whether the next version may collect earlier ones."""
    most, head = ports.versioning.max_versions, before.head
    if ports.limits.max_history_bytes is not None:
        return True
    return most is not None and head.version + 2 - most > head.first


def _created(
    ports: EnginePorts,
    tree: LiveTree,
    changeset: Changeset,
    delta: FileDelta,
    after: Draft,
    content: NewContent,
    verb: str,
    commit_id: str,
) -> Built:
    path, file_id, limits = after.path, delta.file_id, ports.limits
    head = Head(
        file_id=file_id,
        version=1,
        commit=commit_id,
        operation=after.operation,
        restored_from=after.restored_from,
        walk=after.walk,
        mime_type=after.mime_type,
        metadata=after.metadata,
        kind=content.kind,
        size=content.size,
        lines=content.lines,
        sha256=content.sha256,
        preview=content.preview,
    )
    counters: dict[str, tuple[int, int | None]] = {"live_files": (1, limits.max_files)}
    if content.size:
        counters["live_bytes"] = (content.size, limits.max_namespace_bytes)
    counters["versions"] = (1, None)
    batch = _batch(
        ports,
        tree,
        changeset,
        verb,
        commit_id,
        [Put(head_key(path), encode(head), content.body)],
        counters,
        _make_change("create", path, None, file_id, None, 1, None),
    )
    return Built(batch, {path: head}, {}, [AppendedVersion(path, 1, after.operation)])


def _replaced(
    ports: EnginePorts,
    tree: LiveTree,
    changeset: Changeset,
    before: Entry,
    after: Draft,
    content: NewContent,
    verb: str,
    commit_id: str,
) -> Built:
    path, old, key = after.path, before.head, head_key(after.path)
    file_id, version = old.file_id, old.version + 1
    head = Head(
        file_id=file_id,
        version=version,
        commit=commit_id,
        first=old.first,
        operation=after.operation,
        restored_from=after.restored_from,
        walk=after.walk,
        mime_type=after.mime_type,
        metadata=after.metadata,
        kind=content.kind,
        size=content.size,
        lines=content.lines,
        sha256=content.sha256,
        preview=content.preview,
        created_at=before.created_at,
        bound=before.bound,
    )
    counters: dict[str, tuple[int, int | None]] = {}
    if content.size != old.size:
        counters["live_bytes"] = (content.size - old.size, ports.limits.max_namespace_bytes)
    counters["versions"] = (1, None)
    if old.size:
        counters["history_bytes"] = (old.size, None)
    ended = Put(
        state_key(file_id, old.version, before.changed),
        encode(before.ended(partial=False)),
        Take(key),
    )
    batch = _batch(
        ports,
        tree,
        changeset,
        verb,
        commit_id,
        [ended, Put(key, encode(head), content.body)],
        counters,
        _make_change("update", path, None, file_id, None, version, old.version),
    )
    return Built(batch, {path: head}, {}, [AppendedVersion(path, version, after.operation)])


def _batch(
    ports: EnginePorts,
    tree: LiveTree,
    changeset: Changeset,
    verb: str,
    commit_id: str,
    puts: list[Put],
    counters: dict[str, tuple[int, int | None]],
    change: Change,
) -> Batch:
    meta, quiet = tree.meta, tree.quiet
    return Batch(
        commit_id=commit_id,
        verb=verb,
        actor=ports.actor,
        now=tree.now,
        incarnation=None if meta is None else meta.incarnation,
        expect=tree.expect.copy(),
        expect_empty=[subtree_range("head", path) for path in changeset.creates],
        expect_quiet=quiet.copy(),
        quiet_since=tree.since if quiet else None,
        puts=puts,
        counters=counters,
        changes=[change],
    )
