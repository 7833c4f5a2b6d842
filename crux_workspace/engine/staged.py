"""A transaction's private tree: the namespace as of its start, plus what was staged.

Nothing is written here. What was read of the live tree becomes the expectations of the one commit at the end; what was staged becomes
one change per file. A path that changed since the start is read as it was then; the commit will be refused for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from msgspec import Struct, field

from crux_workspace.engine.build import attributes_differ
from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import (
    Changeset,
    Draft,
    FileDelta,
    FrozenVersion,
    NewContent,
    Upload,
)
from crux_workspace.engine.codec import ArtifactRecord, encode
from crux_workspace.engine.entry import Entry, GoneFile, PastState
from crux_workspace.engine.keys import (
    STATE_PREFIX,
    artifact_key,
    gone_key,
    head_key,
    path_in_key,
    state_key_parts,
)
from crux_workspace.engine.looks import Look, Presence, Searched
from crux_workspace.engine.past import PastReads
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import ConflictError, ErrorCode, VersionNotFoundError
from crux_workspace.events.log import read_meta
from crux_workspace.model.globs import Glob
from crux_workspace.model.paths import ancestors, is_below, sort_key
from crux_workspace.storage.layout import META_KEY
from crux_workspace.storage.records import Reader, Record

__all__ = ["StagedFile", "StagedTree", "transaction_conflict"]

_ENTRY_BYTES = 1_000
"""About what a path takes that was looked at or staged, its content aside."""
STALE = -1
"""Expectation of a path that changed since the start: it can never hold."""


def transaction_conflict(conflicts: list[dict[str, object]]) -> ConflictError:
    """Make the error of a transaction whose reads or writes met somebody else's commit."""
    paths = ", ".join(str(c["path"]) for c in conflicts[:3])
    more = f" and {len(conflicts) - 3} more" if len(conflicts) > 3 else ""
    return ConflictError(
        f"The transaction was refused: {paths}{more} changed since it began; nothing was applied.",
        code=ErrorCode.TRANSACTION_CONFLICT,
        details={"conflicts": conflicts},
        hint="Run it again on what is there now, e.g. with max_attempts=3.",
        retryable=True,
    )


def conflict_of(path: str, base: Entry | None, current: Entry | None) -> dict[str, object]:
    """Describe one path of a conflict."""
    return {
        "path": path,
        "base_version": None if base is None else base.version,
        "current_version": None if current is None else current.version,
        "last_operation": None if current is None else current.head.operation,
        "last_actor": None,
    }


class StagedFile(Struct):
    """One file that the transaction touched."""

    file_id: str
    base: Entry | None
    """The live file at the start."""
    gone: GoneFile | None
    """The deleted file that goes on, when there was no live one."""
    draft: Draft | None = None
    """What it is to be; None is deleted."""
    content: NewContent | None = None
    """Its staged content; None is the base's."""
    frozen: list[FrozenVersion] = field(default_factory=list)
    sealed: bool = False
    """The staged content was published: further content is another version."""

    @property
    def last_kept(self) -> int:
        """The last version before the staged content."""
        if self.base is not None:
            return self.base.version + len(self.frozen)
        return (0 if self.gone is None else self.gone.gone.version) + len(self.frozen)

    def take(self, draft: Draft, *, version: int) -> None:
        """Stage a further change."""
        if draft.content is not None:
            if self.content is not None and self.sealed and self.draft is not None:
                self.frozen.append(FrozenVersion(self.last_kept + 1, self.content, self.draft))
            self.content = draft.content
            self.sealed = False
        self.draft = draft
        if self.content is not None and draft.pinned == version:
            self.sealed = True

    def delta(self, occupied: set[str]) -> FileDelta | None:
        """Return the net change, None when there is none."""
        base, draft = self.base, self.draft
        if draft is None:
            if base is None:
                return None
            return FileDelta(file_id=self.file_id, before=base, overwritten=base.path in occupied)
        after = draft
        after.content = self.content
        if base is not None and self.content is None and not self.frozen:
            if base.path == after.path and not attributes_differ(base, after):
                return None
        return FileDelta(
            file_id=self.file_id, before=base, gone=self.gone, after=after, frozen=self.frozen
        )


class _Slot(Struct):
    """What the transaction put at a path."""

    entry: Entry | None
    gone: GoneFile | None = None


class StagedTree(LiveTree):
    """What the verbs of a transaction plan over."""

    def __init__(self, reader: Reader, begun: Record | None) -> None:
        """Pin the namespace to its `meta` record as it is now."""
        meta = read_meta(begun)
        super().__init__(reader, 0 if meta is None else meta.at)
        self._begun = begun
        self.adopt(meta, {}, [])
        self.past = PastReads(reader, self.sequence, self.now)
        self.staged_at = self.now
        """Time that results carry: when they were staged."""
        self.files: dict[str, StagedFile] = {}
        self.preludes: list[FileDelta] = []
        self.stale: dict[str, dict[str, object]] = {}
        self.uploads: dict[str, Upload] = {}
        self.creates: list[str] = []
        self.looks: dict[Look, None] = {}
        """What was listed, searched or looked for below directories."""
        self._slots: dict[str, _Slot] = {}
        self._above: set[str] = set()
        """Directories that something was put into, or taken out of."""
        self._base: dict[str, Entry | None] = {}
        self._with_body: set[str] = set()
        self._gone: dict[str, GoneFile | None] = {}
        self._extra: dict[str, Record | None] = {}
        self._artifacts: dict[str, ArtifactRecord] = {}

    # -- reading

    async def look(
        self, *paths: str, bodies: bool = False, ways: bool = True, extra: Iterable[str] = ()
    ) -> None:
        """Read what is not known yet of some paths, as of the transaction's start."""
        heads: dict[str, None] = {}
        for path in paths:
            slot = self._slots.get(path)
            if bodies and slot is not None and slot.entry is not None:
                await self._fill(slot.entry)
            for wanted in (path, *(ancestors(path) if ways else ())):
                known = wanted in self._base and (not bodies or wanted in self._with_body)
                if wanted not in self._slots and not known:
                    heads[wanted] = None
        gone = [path for path in paths if ways and path not in self._gone]
        extra = [key for key in extra if key not in self._extra]
        if not (heads or gone or extra):
            return
        keys = [*map(head_key, heads), *map(gone_key, gone), *extra, META_KEY]
        found = await self.reader.get_many(keys, bodies=bodies)
        unchanged = self._check_incarnation(found[-1])
        for path, key, record in zip(heads, keys, found, strict=False):
            entry = None if record is None else Entry.of(record)
            if unchanged or self.is_as_begun(entry):
                self.expect.setdefault(key, 0 if record is None else record.revision)
                self._base[path] = entry
            else:
                await self._note_changed(path, key, entry, bodies=bodies)
        if bodies:
            self._with_body.update(heads)
        for path, record in zip(gone, found[len(heads) :], strict=False):
            self._note_gone(path, record)
        self._extra.update(zip(extra, found[len(heads) + len(gone) :], strict=False))

    async def _fill(self, entry: Entry) -> None:
        """Bring the inline bytes of a staged file that still has the content it had at the start."""
        staged = self.files[entry.file_id]
        if entry.body is None and entry.head.is_inline and staged.base is not None:
            found = await self._past(staged.base.path, None, bodies=True)
            entry.body = None if found is None else found.body

    def _check_incarnation(self, record: Record | None) -> bool:
        """Return whether nothing at all was committed since the start, by the `meta` record of now."""
        if record is not None and self._begun is not None and record.value == self._begun.value:
            return True
        meta = read_meta(record)
        begun = None if self.meta is None else self.meta.incarnation
        now = None if meta is None else meta.incarnation
        if begun is not None and begun != now:
            raise transaction_conflict([conflict_of("/", None, None)])
        return (0 if meta is None else meta.sequence) == self.sequence

    async def _note_changed(
        self, path: str, key: str, entry: Entry | None, *, bodies: bool
    ) -> None:
        """Note a path that may have changed since the start: as it was then."""
        past = await self._past(path, entry, bodies=bodies)
        if past is not None or entry is not None:
            self.stale[path] = conflict_of(path, past, entry)
            self.expect[key] = STALE
        else:
            self.expect.setdefault(key, 0)
        self._base[path] = past

    def is_as_begun(self, entry: Entry | None) -> bool:
        """Tell whether a live file is the one that was there at the start, unchanged."""
        return entry is not None and max(entry.commit_sequence, entry.bound) <= self.sequence

    async def _past(self, path: str, current: Entry | None, *, bodies: bool) -> Entry | None:
        try:
            return await self.past.find(path, bodies=bodies)
        except VersionNotFoundError as error:
            raise transaction_conflict([conflict_of(path, None, current)]) from error

    def _note_gone(self, path: str, record: Record | None) -> None:
        if record is not None and record.revision > self.sequence:
            self._gone[path] = None
            self.expect[gone_key(path)] = STALE
            self.stale.setdefault(path, conflict_of(path, self._base.get(path), None))
            return
        self._gone[path] = None if record is None else GoneFile.of(record)
        self.rely(gone_key(path), 0 if record is None else record.revision)

    def rely(self, key: str, revision: int) -> None:
        """Expect a record as it was read first; what was read twice and differed is for the commit to refuse."""
        self.expect.setdefault(key, revision)

    def path_of(self, key: str) -> str:
        """Return the path that a record belongs to, for a conflict's details."""
        if not key.startswith(STATE_PREFIX):
            return path_in_key(key)
        file_id, _, _ = state_key_parts(key)
        found = (path for path, entry in self._base.items() if entry and entry.file_id == file_id)
        return next(found, "/")

    def base_entry(self, path: str) -> Entry | None:
        """Return the file that was at a path at the start, as far as it was looked at."""
        return self._base.get(path)

    def _bound(self, path: str) -> Entry | None:
        slot = self._slots.get(path)
        return self._base[path] if slot is None else slot.entry

    def is_bound(self, path: str) -> bool:
        """Tell whether a path that was looked at has a head, live or expired."""
        return self._bound(path) is not None

    def gone(self, path: str) -> GoneFile | None:
        """Return the deleted file that goes on at a path that was looked at."""
        slot = self._slots.get(path)
        return self._gone.get(path) if slot is None else slot.gone

    def record(self, key: str) -> Record | None:
        """Return a record that `look` read, or the artifact that was staged."""
        return self._extra.get(key)

    def artifact(self, key: str) -> ArtifactRecord | None:
        """Return the artifact that was staged under a key."""
        return self._artifacts.get(key)

    async def below(self, path: str, *, bodies: bool = False) -> list[Entry]:
        """Return all files below a directory, expired ones included; the subtree must stay quiet until the commit."""
        return [entry async for entry in self.files_below(path, bodies=bodies, expired=True)]

    async def has_below(self, path: str) -> bool:
        """Tell whether a live file is below a directory; unless one of the transaction's own is, that must be so at the commit too."""
        touched = self.touched_in(path)
        if any(self._slots[where].entry is not None for where in touched):
            return True
        self.look_at(Presence(path, touched))
        return await self.past.has_below(path, without=touched)

    async def files_below(
        self,
        path: str,
        *,
        after: str | None = None,
        bodies: bool = False,
        expired: bool = False,
        within: Glob | None = None,
    ) -> AsyncIterator[Entry]:
        """Iterate over the live files below a directory, staged ones in their place; with `expired` over those due as well."""
        self.look_at(Searched(path, within))
        past = PastReads(self.reader, self.sequence, 0) if expired else self.past
        touched, missed = set(self._slots), past.expired
        staged = [
            slot.entry
            for where, slot in sorted(self._slots.items(), key=lambda item: sort_key(item[0]))
            if slot.entry is not None
            and is_below(where, path)
            and (after is None or head_key(where) > after)
        ]
        async for entry in past.files(path, after=after, bodies=bodies):
            self.check_kept(path, missed, past)
            while staged and sort_key(staged[0].path) < sort_key(entry.path):
                yield await self._shown(staged.pop(0), bodies=bodies)
            if entry.path not in touched:
                yield entry
        self.check_kept(path, missed, past)
        for entry in staged:
            yield await self._shown(entry, bodies=bodies)

    async def _shown(self, entry: Entry, *, bodies: bool) -> Entry:
        if bodies:
            await self._fill(entry)
        return entry

    def check_kept(self, path: str, missed: int, past: PastReads | None = None) -> None:
        """Refuse to show a directory without a file whose content then was collected since (``TRANSACTION_CONFLICT``)."""
        if (past or self.past).expired > missed:
            raise transaction_conflict([conflict_of(path, None, None)])

    def look_at(self, look: Look) -> None:
        """Expect that nothing that shows in this changes until the commit."""
        self.looks[look] = None
        if (look.path, True) not in self.quiet:
            self.quiet.append((look.path, True))

    def touched_in(self, path: str) -> frozenset[str]:
        """Return where below a path the transaction put something, or took it away."""
        if path not in self._above:
            return frozenset()
        return frozenset(where for where in self._slots if is_below(where, path))

    def touched_below(self, path: str) -> bool:
        """Tell whether the transaction touched something below a path."""
        return path in self._above

    def is_touched(self, path: str) -> bool:
        """Tell whether the transaction put something at a path, or took it away."""
        return path in self._slots

    def staged_below(self, path: str) -> list[Entry]:
        """Return the staged files below a path, in order."""
        found = [
            slot.entry
            for where, slot in self._slots.items()
            if slot.entry is not None and is_below(where, path)
        ]
        return sorted(found, key=lambda entry: sort_key(entry.path))

    async def version_state(
        self, file_id: str, version: int, *, bodies: bool = False
    ) -> PastState | None:
        """Return a version of a file, a staged and published one, or the one it had at the start, included."""
        staged = self.files.get(file_id)
        if staged is not None:
            for frozen in staged.frozen:
                if frozen.version == version:
                    state = frozen.state("", None)
                    body = frozen.content.body
                    return PastState("", file_id, version, 0, state, 0, self.now, body)
            if staged.base is not None and staged.base.version == version:
                base: Entry | None = staged.base
                if bodies and staged.base.body is None and staged.base.head.is_inline:
                    base = await self._past(staged.base.path, None, bodies=True)
                if base is None:
                    return None
                state = base.ended(partial=False)
                return PastState(
                    "", file_id, version, base.changed, state, base.revision, base.at, base.body
                )
        return await super().version_state(file_id, version, bodies=bodies)

    # -- staging

    def apply(self, changeset: Changeset, built: Built) -> list[str]:
        """Stage a changeset; returns the refs of uploads that nothing staged needs any more."""
        self.creates += changeset.creates
        for delta in changeset.deltas:
            self._apply(delta, built)
        for path, record in built.artifacts.items():
            key = artifact_key(path)
            self._artifacts[key] = record
            self._extra[key] = Record(key, encode(record), None, self.sequence, self.staged_at)
        if not self.uploads:
            return []
        needed = {
            ref
            for staged in self.files.values()
            for content in (staged.content, *(f.content for f in staged.frozen))
            if content is not None
            for ref in content.refs
        }
        return [ref for ref in self.uploads if ref not in needed]

    def _apply(self, delta: FileDelta, built: Built) -> None:
        before, after = delta.before, delta.after
        if before is not None and after is None and before.is_expired(self.now):
            self.preludes.append(delta)
            gone = before.deleted_as(before.version + 1)
            self._put(before.path, _Slot(None, GoneFile(before.path, gone, 0)))
            return
        staged = self.files.get(delta.file_id)
        if staged is None:
            staged = self.files[delta.file_id] = StagedFile(delta.file_id, before, delta.gone)
        if after is None:
            self._delete(staged, delta)
            return
        if after.content is not None:
            self._note_upload(after.content)
        head = built.heads[after.path]
        staged.take(after, version=head.version)
        if before is not None and before.path != after.path:
            self._put(before.path, _Slot(None))
        body = None if before is None else before.body
        body = body if staged.content is None else staged.content.body
        entry = Entry(after.path, head, self.sequence + 1, self.staged_at, body)
        entry.provisional = staged.content is not None and not staged.sealed
        self._put(after.path, _Slot(entry))

    def _note_upload(self, content: NewContent) -> None:
        """A copy of staged bytes shares their uploads."""
        for upload in content.uploads:
            self.uploads.setdefault(upload.ref, upload)
        if self.uploads and content.refs:
            known = (self.uploads.get(ref) for ref in content.refs)
            content.uploads = tuple(upload for upload in known if upload is not None)

    def _delete(self, staged: StagedFile, delta: FileDelta) -> None:
        before = delta.before
        assert before is not None
        staged.draft = staged.content = None
        staged.sealed = False
        if staged.base is None:
            staged.frozen.clear()
            del self.files[staged.file_id]
            self._forget(before.path, staged.gone)
            return
        gone = staged.base.deleted_as(staged.last_kept)
        self._put(before.path, _Slot(None, GoneFile(before.path, gone, 0)))

    def _put(self, path: str, slot: _Slot) -> None:
        if path not in self._slots:
            self._above.update(("/", *ancestors(path)))
        self._slots[path] = slot

    def _forget(self, path: str, gone: GoneFile | None) -> None:
        """Nothing came of a file: a deleted one that it went on with is where it was."""
        home = None if gone is None else self._slots.get(gone.path)
        if gone is None or gone.path == path or home is None or home.entry is not None:
            self._put(path, _Slot(None, gone))
            return
        self._put(path, _Slot(None))
        self._put(gone.path, _Slot(None, gone))

    # -- what it costs

    @property
    def held_bytes(self) -> int:
        """About how much memory it takes: what was staged, and what was read of the files that it looked at. Cost: their number."""
        size = (len(self._slots) + len(self._base)) * _ENTRY_BYTES
        for staged in self.files.values():
            contents = (staged.content, *(frozen.content for frozen in staged.frozen))
            size += sum(len(c.body) for c in contents if c is not None and c.body is not None)
        read = (entry for entry in self._base.values() if entry is not None)
        return size + sum(len(entry.body) for entry in read if entry.body is not None)

    @property
    def uploaded_bytes(self) -> int:
        """How much was put into the asset store for what is staged."""
        return sum(upload.size for upload in self.uploads.values())

    # -- the end

    def overbuilt(self) -> list[str]:
        """Return new files whose place was a directory that the transaction emptied, or thinks it did, after it wrote them."""
        taken = {s.draft.path for s in self.files.values() if s.draft is not None}
        made = dict.fromkeys(self.creates)
        return [path for path in made if path in taken and self.touched_below(path)]

    def changeset(self) -> Changeset:
        """Return one net change per file."""
        occupied = {s.draft.path for s in self.files.values() if s.draft is not None}
        found = [staged.delta(occupied) for staged in self.files.values()]
        deltas = [delta for delta in found if delta is not None]
        deltas.sort(key=lambda delta: (delta.after is not None, delta.before is None))
        if not deltas:
            return Changeset()
        creates = [
            p for p in dict.fromkeys(self.creates) if p in occupied and not self.touched_below(p)
        ]
        return Changeset([*self.preludes, *deltas], creates)
