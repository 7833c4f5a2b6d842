"""From a changeset to a batch: heads, ended states, bindings, artifacts, assets, counters and log changes.

Versioning, quota, assets, events and undo meet here and nowhere else.
"""

from __future__ import annotations

from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset, Draft, FileDelta, FrozenVersion, NewContent
from crux_workspace.engine.codec import (
    AssetCount,
    Expiry,
    FilePlace,
    Gone,
    Head,
    State,
    Trash,
    Was,
    decode,
    encode,
)
from crux_workspace.engine.collection import Collected, collect, first_kept
from crux_workspace.engine.entry import Entry, GoneFile, PastState, artifact_record, is_artifact
from crux_workspace.engine.keys import (
    artifact_key,
    asset_key,
    expiry_key,
    file_key,
    gone_key,
    head_key,
    state_key,
    trash_key,
    was_key,
)
from crux_workspace.engine.plain import build_plain
from crux_workspace.engine.ports import AppendedVersion, EnginePorts
from crux_workspace.engine.shrinking import is_turn
from crux_workspace.engine.tree import LiveTree
from crux_workspace.model.changes import Change
from crux_workspace.model.paths import sort_key
from crux_workspace.storage.layout import subtree_range
from crux_workspace.storage.records import Batch, Put, Take

__all__ = ["attributes_differ", "build", "build_any", "stage"]


_NOTHING = Batch(commit_id="", verb="", now=0, incarnation=None)
"""What is written of what is only staged."""


async def build(
    ports: EnginePorts, tree: LiveTree, changeset: Changeset, verb: str, commit_id: str
) -> Built:
    """Make the batch of a changeset; reads what collection and shared assets need, writes nothing."""
    if (plain := build_plain(ports, tree, changeset, verb, commit_id)) is not None:
        return plain
    return await build_any(ports, tree, changeset, verb, commit_id)


async def build_any(
    ports: EnginePorts, tree: LiveTree, changeset: Changeset, verb: str, commit_id: str
) -> Built:
    """Make the batch of any changeset, the plain ones that `build` takes the short way for among them."""
    builder = _Builder(ports, tree, verb, commit_id)
    for delta in changeset.deltas:
        added = builder.counts["history_bytes"]
        collecting = None if delta.purged else collect(ports, tree, delta, added)
        builder.apply(delta, None if collecting is None else await collecting)
    if changeset.forgotten:
        builder.forget(changeset.forgotten)
    if builder.unpinned:
        await builder.pinned_artifacts()
    if builder.shared:
        await builder.references()
    return builder.finish(changeset)


async def stage(ports: EnginePorts, tree: LiveTree, changeset: Changeset) -> Built:
    """Make only the heads and artifacts of a changeset, as a transaction shows them before its commit."""
    built = Built(_NOTHING)
    due = _due(ports, tree)
    shown: _Builder | None = None
    for delta in changeset.deltas:
        if (after := delta.after) is not None:
            head = built.heads[after.path] = new_head(delta, after, 1, commit_id="", due=due)
            if is_artifact(head):
                shown = shown or _Builder(ports, tree, "", "")
                shown.artifact(delta, head, after)
    if shown is not None:
        await shown.pinned_artifacts()
        built.artifacts = shown.built.artifacts
    return built


class _Builder:
    """The batch in the making; later changes of a commit see the earlier ones by key."""

    def __init__(self, ports: EnginePorts, tree: LiveTree, verb: str, commit_id: str) -> None:
        meta = tree.meta
        self.ports = ports
        self.tree = tree
        self.commit_id = commit_id
        self.batch = Batch(
            commit_id=commit_id,
            verb=verb,
            actor=ports.actor,
            now=tree.now,
            incarnation=None if meta is None else meta.incarnation,
        )
        self.built = Built(self.batch)
        self.puts: dict[str, Put] = {}
        self.deletes: dict[str, None] = {}
        self.counts = {"live_files": 0, "live_bytes": 0, "versions": 0, "history_bytes": 0}
        self.shared: dict[str, int] = {}
        self.fresh: dict[str, AssetCount] = {}
        self.changes: list[Change] = []
        self.replaced: dict[str, str] = {}
        self.unpinned: list[tuple[FileDelta, str, Head]] = []
        self.due = _due(ports, tree)

    # -- records

    def put(self, key: str, value: bytes, body: bytes | Take | None = None) -> None:
        self.deletes.pop(key, None)
        self.puts[key] = Put(key, value, body)

    def delete(self, key: str) -> None:
        self.puts.pop(key, None)
        self.deletes[key] = None

    def vacate(self, key: str) -> None:
        """Delete a key unless another change of this commit already put it."""
        if key not in self.puts:
            self.deletes[key] = None

    # -- one file

    def apply(self, delta: FileDelta, collected: Collected | None) -> None:
        before, after = delta.before, delta.after
        if delta.purged:
            self.purge(delta)
            return
        ending = False
        if collected is None:
            first = first_kept(delta)
        else:
            first, ending = collected.first, collected.ending
            self.forget(collected.states)
            for state in collected.whole:
                self.put(state.key, encode(state.settled()), state.body)
            if ending:
                self.expect_epoch()
        if delta.upkeep and before is not None:
            self.rewrite(before, first)
            return
        if before is not None:
            self.end(before, delta, keep=not ending)
        for frozen in delta.frozen:
            self.freeze(delta, frozen)
        if after is None:
            self.tombstone(delta, first)
        else:
            self.begin(delta, after, first)
        self.change(delta)

    def rewrite(self, before: Entry, first: int) -> None:
        """Write a head again with nothing changed but where collection starts."""
        head = before.settled()
        head.first = first
        body = Take(head_key(before.path)) if head.is_inline else None
        self.put(head_key(before.path), encode(head), body)

    def purge(self, delta: FileDelta) -> None:
        """Make a file vanish, live or deleted; its states are the purge's own business."""
        before, gone = delta.before, delta.gone
        path = before.path if before is not None else gone.path if gone is not None else ""
        self.put(file_key(delta.file_id), encode(FilePlace(path=path, gone=True, purged=True)))
        if gone is not None:
            self.delete(gone_key(path))
        if before is None:
            return
        self.end(before, delta, keep=False)
        if (filed := before.head.filed_at) is not None:
            self.delete(expiry_key(filed, before.file_id))
        self.changes.append(Change("delete", path, None, delta.file_id, None, None, before.version))

    def expect_epoch(self) -> None:
        """A batch that collects must find the protection it was planned under."""
        self.batch.epoch = 0 if self.tree.meta is None else self.tree.meta.epoch

    def forget(self, states: list[PastState]) -> None:
        """Delete collected states, and with the last of a version its place in the counters."""
        if states:
            self.expect_epoch()
        for state in states:
            if state.key in self.deletes:
                continue  # an earlier change of the same file in this commit collected it
            self.tree.rely(state.key, state.revision)
            self.delete(state.key)
            if not state.state.partial:
                self.counts["versions"] -= 1
                self.counts["history_bytes"] -= state.state.size
                self.release(state.state.refs)

    def end(self, before: Entry, delta: FileDelta, *, keep: bool) -> None:
        """End what the change ends: the state, and, when the file leaves its path, the binding."""
        after = delta.after
        if not delta.appends:
            assert after is not None
            if after.path == before.path or attributes_differ(before, after):
                self.end_state(before, partial=True)
        elif keep:
            self.counts["history_bytes"] += before.head.size
            self.end_state(before, partial=False)
        else:
            self.counts["versions"] -= 1
            self.release(before.head.refs)
        self.counts["live_bytes"] -= before.head.size
        self.counts["live_files"] -= 1
        if after is None or after.path != before.path:
            was = Was(file_id=before.file_id, since=before.bound)
            self.put(was_key(before.path), encode(was))
            self.vacate(head_key(before.path))
        if before.is_artifact():
            self.vacate(artifact_key(before.path))

    def end_state(self, before: Entry, *, partial: bool) -> None:
        state = before.ended(partial=partial)
        inline = not partial and before.head.is_inline
        body = Take(head_key(before.path)) if inline else None
        self.put(state_key(before.file_id, before.version, before.changed), encode(state), body)
        if inline and is_turn(before):
            self.built.turns.append(before)

    def freeze(self, delta: FileDelta, frozen: FrozenVersion) -> None:
        """Write a version that starts and ends with this commit."""
        before, gone, content = delta.before, delta.gone, frozen.content
        created = None if gone is None else gone.gone.created_at
        created = created if before is None else before.created_at
        state = frozen.state(self.commit_id, created)
        key = state_key(delta.file_id, frozen.version, None)
        self.put(key, encode(state), content.body)
        self.counts["versions"] += 1
        self.counts["history_bytes"] += content.size
        self.share(content)
        self.built.versions.append(
            AppendedVersion(frozen.draft.path, frozen.version, frozen.draft.operation)
        )

    def tombstone(self, delta: FileDelta, first: int) -> None:
        before = delta.before
        assert before is not None
        version = delta.version
        state = State(
            operation="delete",
            mime_type=before.head.mime_type,
            version_path=before.path,
            version_commit=self.commit_id,
        )
        self.put(state_key(before.file_id, version, None), encode(state))
        self.counts["versions"] += 1
        self.put(file_key(before.file_id), encode(FilePlace(path=before.path, gone=True)))
        if not delta.overwritten:
            self.put(gone_key(before.path), encode(before.deleted_as(version, first)))
        if (filed := before.head.filed_at) is not None:
            self.delete(expiry_key(filed, before.file_id))
        self.built.versions.append(AppendedVersion(before.path, version, "delete"))

    def begin(self, delta: FileDelta, after: Draft, first: int) -> None:
        """Write the head, and what hangs on it."""
        before = delta.before
        head = new_head(delta, after, first, commit_id=self.commit_id, due=self.due)
        self.built.heads[after.path] = head
        content = after.content
        if content is None:
            assert before is not None
            inline = before.head.is_inline
            body: bytes | Take | None = Take(head_key(before.path)) if inline else None
        else:
            body = content.body
            self.counts["versions"] += 1
            self.share(content)
            self.built.versions.append(AppendedVersion(after.path, head.version, after.operation))
        self.put(head_key(after.path), encode(head), body)
        self.counts["live_bytes"] += head.size
        self.counts["live_files"] += 1
        if before is None or before.path != after.path:
            gone = gone_key(after.path)
            self.puts.pop(gone, None)
            if self.tree.expect.get(gone) != 0:
                self.delete(gone)
            if before is not None or delta.gone is not None:
                self.put(file_key(delta.file_id), encode(FilePlace(path=after.path)))
        if delta.gone is not None and delta.gone.path != after.path:
            self.gone_elsewhere(delta.gone)
        self.file_expiry(delta, head, after)
        self.artifact(delta, head, after)

    def gone_elsewhere(self, gone: GoneFile) -> None:
        """Take away the record of a deleted file that goes on at another path; one of another file stays."""
        key = gone_key(gone.path)
        put = self.puts.get(key)
        if put is None or decode(Gone, put.value).file_id == gone.gone.file_id:
            self.delete(key)

    def file_expiry(self, delta: FileDelta, head: Head, after: Draft) -> None:
        """Keep one `exp/` record per file that will expire, at or before its due time."""
        before = delta.before
        if after.content is None:
            return
        filed = None if before is None else before.head.filed_at
        if head.due is not None and (filed is None or filed > head.due):
            self.put(expiry_key(head.due, delta.file_id), encode(Expiry(path=after.path)))
        if filed is not None and (head.due is None or filed > head.due):
            self.delete(expiry_key(filed, delta.file_id))
        elif filed is not None and head.due is not None and filed < head.due:
            head.filed = filed
            self.put(head_key(after.path), encode(head), after.content.body)

    # -- artifacts

    def artifact(self, delta: FileDelta, head: Head, after: Draft) -> None:
        if not is_artifact(head):
            return
        if head.pinned is None or head.pinned == head.version:
            self.put_artifact(after.path, head, head, head.version)
        else:
            self.unpinned.append((delta, after.path, head))

    def put_artifact(self, path: str, head: Head, shown: Head | State, version: int) -> None:
        record = artifact_record(head, shown, version)
        record.created_at, record.due = head.created_at, head.due
        self.built.artifacts[path] = record
        self.put(artifact_key(path), encode(record))

    async def pinned_artifacts(self) -> None:
        """Write the artifacts that show an older, pinned version: its values come from its state."""
        for delta, path, head in self.unpinned:
            before = delta.before
            assert head.pinned is not None
            if before is not None and before.version == head.pinned:
                self.put_artifact(path, head, before.head, head.pinned)
                continue
            frozen = next((f for f in delta.frozen if f.version == head.pinned), None)
            if frozen is not None:
                self.put_artifact(path, head, frozen.state("", None), head.pinned)
                continue
            state = await self.tree.version_state(head.file_id, head.pinned)
            if state is not None:
                self.put_artifact(path, head, state.state, head.pinned)

    # -- assets

    def share(self, content: NewContent) -> None:
        """Count the references of a new version to its assets."""
        if content.body is not None:
            return
        own = {upload.ref: upload for upload in content.uploads}
        for ref in content.refs:
            upload = own.get(ref)
            if upload is None:
                self.shared[ref] = self.shared.get(ref, 0) + 1
                continue
            oldest = self.batch.oldest_upload_at
            self.batch.oldest_upload_at = upload.at if oldest is None else min(oldest, upload.at)
            count = self.fresh.setdefault(
                ref,
                AssetCount(count=0, size=upload.size, uri=upload.uri, sha256=upload.sha256),
            )
            count.count += 1
            self.put(asset_key(ref), encode(count))

    def release(self, refs: tuple[str, ...]) -> None:
        for ref in refs:
            self.shared[ref] = self.shared.get(ref, 0) - 1

    async def references(self) -> None:
        """Move the counts of shared assets; the last reference leaves the asset to gc."""
        moved = {ref: by for ref, by in self.shared.items() if by}
        if not moved:
            return
        due = self.tree.now + self.ports.retention.asset_grace_ms
        found = await self.tree.get([asset_key(ref) for ref in moved])
        for (ref, by), record in zip(moved.items(), found, strict=True):
            held = AssetCount(count=0) if record is None else decode(AssetCount, record.value)
            held.count += by
            if held.count > 0:
                self.put(asset_key(ref), encode(held))
            else:
                self.delete(asset_key(ref))
                self.put(trash_key(due, ref), encode(Trash(size=held.size)))

    # -- the log

    def change(self, delta: FileDelta) -> None:
        before, after = delta.before, delta.after
        if before is not None and delta.overwritten:
            self.replaced[before.path] = delta.file_id
            return
        previous = None if before is None else before.version
        if after is None:
            assert before is not None
            self.changes.append(
                Change("delete", before.path, None, delta.file_id, None, delta.version, previous)
            )
        elif before is None:
            self.changes.append(
                Change("create", after.path, None, delta.file_id, None, delta.version, None)
            )
        else:
            moved = before.path != after.path
            self.changes.append(
                Change(
                    "rename" if moved else "update",
                    after.path,
                    before.path if moved else None,
                    delta.file_id,
                    None,
                    delta.version,
                    previous,
                    after.content is None and not moved,
                )
            )

    # -- the end

    def finish(self, changeset: Changeset) -> Built:
        batch = self.batch
        limits = self.ports.limits
        ceilings = {"live_bytes": limits.max_namespace_bytes, "live_files": limits.max_files}
        batch.counters = {
            name: (add, ceilings.get(name)) for name, add in self.counts.items() if add
        }
        for key in changeset.extra_deletes:
            self.delete(key)
        for put in changeset.extra_puts:
            self.put(put.key, put.value, put.body)
        batch.puts = list(self.puts.values())
        batch.deletes = list(self.deletes)
        batch.sweeping_to = changeset.horizon
        batch.expect = self.tree.expect.copy()
        batch.expect_quiet = self.tree.quiet.copy()
        batch.quiet_since = self.tree.since if batch.expect_quiet else None
        batch.expect_empty = [subtree_range("head", path) for path in changeset.creates]
        batch.changes = self.ordered_changes()
        return self.built

    def ordered_changes(self) -> list[Change]:
        changes = self.changes
        if self.replaced:
            changes = [_with_replaced(change, self.replaced) for change in changes]
        return sorted(changes, key=_place) if len(changes) > 1 else changes


def _due(ports: EnginePorts, tree: LiveTree) -> int | None:
    """Return when content that is written now expires, counted as the commit's time is: never from before the last commit."""
    ttl = ports.retention.ttl_ms
    if ttl is None:
        return None
    return max(tree.now, 0 if tree.meta is None else tree.meta.at) + ttl


def new_head(
    delta: FileDelta, after: Draft, first: int, *, commit_id: str, due: int | None
) -> Head:
    """Make the head of a file as it is to be; it is all that the caller sees of it."""
    before, content = delta.before, after.content
    head = Head(
        file_id=delta.file_id,
        version=delta.version,
        commit=commit_id,
        first=first,
        operation=after.operation,
        restored_from=after.restored_from,
        walk=after.walk,
        mime_type=after.mime_type,
        metadata=after.metadata,
        status=after.status,
        artifact_kind=after.artifact_kind,
        produced_by=after.produced_by,
        pinned=after.pinned,
    )
    if content is not None:
        head.kind, head.size, head.lines = content.kind, content.size, content.lines
        head.sha256, head.preview = content.sha256, content.preview
        if content.body is None:
            content.place(head)
        head.due = due
    if before is not None:
        head.created_at = before.created_at
        if before.path == after.path:
            head.bound = before.bound
        if content is None:
            _keep_version(head, before, after)
    elif delta.gone is not None:
        head.created_at = delta.gone.gone.created_at
    return head


def _keep_version(head: Head, before: Entry, after: Draft) -> None:
    """Carry over what belongs to the version, and the state if only the path changes."""
    old = before.head
    head.kind, head.size, head.lines = old.kind, old.size, old.lines
    head.sha256, head.preview = old.sha256, old.preview
    head.asset, head.uri, head.enc = old.asset, old.uri, old.enc
    head.parts, head.line_index = old.parts, old.line_index
    head.due, head.filed = old.due, old.filed
    head.version_sequence = before.version_sequence
    head.version_commit = before.version_commit
    head.version_at = before.version_at
    if before.version_path != after.path:
        head.version_path = before.version_path
    if before.path != after.path and not attributes_differ(before, after):
        head.changed = before.changed


def _place(change: Change) -> str:
    return sort_key(change.path)


def _with_replaced(change: Change, replaced: dict[str, str]) -> Change:
    file_id = replaced.get(change.path) if change.type in ("rename", "create") else None
    if file_id is None:
        return change
    return Change(
        change.type,
        change.path,
        change.from_path,
        change.file_id,
        file_id,
        change.version,
        change.previous_version,
        change.attributes,
    )


def attributes_differ(before: Entry, after: Draft) -> bool:
    """Tell whether a draft changes what a file carries besides its content."""
    head = before.head
    return (
        head.mime_type != after.mime_type
        or head.metadata != after.metadata
        or head.status != after.status
        or head.artifact_kind != after.artifact_kind
        or head.produced_by != after.produced_by
        or head.pinned != after.pinned
    )
