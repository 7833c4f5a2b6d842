"""What a verb plans: for each touched file where it was, and what and where it is to be. Nothing here is written yet."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from crux_workspace.engine.codec import IN_PARTS, Attributes, LineIndex, Part, State
from crux_workspace.engine.entry import Entry, GoneFile, PastState
from crux_workspace.model.files import Status
from crux_workspace.storage.records import Put

__all__ = ["Changeset", "Draft", "FileDelta", "FrozenVersion", "NewContent", "Upload"]


class Upload(Struct, frozen=True, gc=False):
    """An asset that was stored for a version to be appended."""

    ref: str
    size: int
    sha256: str
    uri: str | None
    at: int
    """When storing it began, ms."""


class NewContent(Struct, kw_only=True, gc=False):
    """The bytes of a version to be appended."""

    kind: Literal["t", "j", "b"]
    size: int
    sha256: str
    lines: int = 0
    preview: str | None = None
    body: bytes | None = None
    """Inline bytes; None for an asset."""
    asset: str | None = None
    parts: tuple[Part, ...] = ()
    """The assets, when there are several."""
    line_index: LineIndex | None = None
    uri: str | None = None
    uploads: tuple[Upload, ...] = ()
    """This commit's own uploads; the other assets are shared with earlier versions."""

    @classmethod
    def again(cls, of: Attributes, body: bytes | None) -> NewContent:
        """Start from the content of a version that is there: inline bytes again, assets shared."""
        return cls(
            kind=of.kind,
            size=of.size,
            sha256=of.sha256,
            lines=of.lines,
            preview=of.preview,
            body=body,
            asset=of.asset,
            parts=of.parts,
            line_index=of.line_index,
            uri=of.uri,
        )

    @property
    def refs(self) -> tuple[str, ...]:
        """Refs of the assets that hold the content, in order; none of inline content."""
        if self.parts:
            return tuple(part.ref for part in self.parts)
        return () if self.asset is None else (self.asset,)

    def place(self, of: Attributes) -> None:
        """Say in a version's attributes where its content is."""
        of.asset, of.parts, of.uri = self.asset, self.parts, self.uri
        of.line_index = self.line_index
        of.enc = IN_PARTS if self.parts else None


class Draft(Struct, kw_only=True, gc=False):
    """A file as it is to be."""

    path: str
    content: NewContent | None
    """None keeps the version that is there (attributes or path change)."""
    operation: str = "write"
    restored_from: int | None = None
    walk: tuple[int, int] | None = None
    mime_type: str
    metadata: dict[str, Any] | None = None
    status: Status | None = None
    artifact_kind: str | None = None
    produced_by: dict[str, Any] | None = None
    pinned: int | None = None

    @classmethod
    def like(cls, entry: Entry, **changed: Any) -> Draft:  # noqa: ANN401 - fields of a draft
        """Start from a file as it is, with some fields changed."""
        head = entry.head
        values: dict[str, Any] = {
            "path": entry.path,
            "content": None,
            "operation": head.operation,
            "restored_from": head.restored_from,
            "walk": head.walk,
            "mime_type": head.mime_type,
            "metadata": head.metadata,
            "status": head.status,
            "artifact_kind": head.artifact_kind,
            "produced_by": head.produced_by,
            "pinned": head.pinned,
        }
        return cls(**{**values, **changed})


class FrozenVersion(Struct, gc=False):
    """A version that a transaction staged and published before it staged another one."""

    version: int
    content: NewContent
    draft: Draft

    def state(self, commit_id: str, created_at: int | None) -> State:
        """Make the ended state of the version; it starts and ends with the transaction's commit."""
        draft, content = self.draft, self.content
        state = State(
            kind=content.kind,
            mime_type=draft.mime_type,
            size=content.size,
            lines=content.lines,
            sha256=content.sha256,
            preview=content.preview,
            metadata=draft.metadata,
            operation=draft.operation,
            status=draft.status,
            artifact_kind=draft.artifact_kind,
            produced_by=draft.produced_by,
            pinned=draft.pinned,
            version_path=draft.path,
            version_commit=commit_id,
            created_at=created_at,
        )
        content.place(state)
        return state


class FileDelta(Struct, kw_only=True, gc=False):
    """One file: what was and what is to be. `after=None` deletes it and leaves a tombstone."""

    file_id: str
    before: Entry | None = None
    gone: GoneFile | None = None
    """With `before=None`: the deleted file that goes on here."""
    after: Draft | None = None
    overwritten: bool = False
    """Deleted because another file takes its path: no `gone/` record is left."""
    frozen: list[FrozenVersion] = field(default_factory=list)
    """Versions between the one before and the one after, oldest first."""
    upkeep: bool = False
    """The head is rewritten without a change, so that collection can go on."""
    purged: bool = False
    """Erased: neither a tombstone nor the ended version stays."""

    @property
    def base_version(self) -> int:
        """Last version before this change, 0 for a new file."""
        return self._base(self.appends)

    def _base(self, appends: bool) -> int:
        if self.before is not None:
            return self.before.version - (self.before.provisional and appends)
        return 0 if self.gone is None else self.gone.gone.version

    @property
    def appends(self) -> bool:
        """Tell whether a version (or a tombstone) is appended."""
        return self.after is None or self.after.content is not None

    @property
    def version(self) -> int:
        """Last version after this change."""
        appends = self.appends
        return self._base(appends) + len(self.frozen) + appends


class Changeset(Struct, gc=False):
    """Changes of one commit, in an order in which they can be carried out one after the other."""

    deltas: list[FileDelta] = field(default_factory=list)
    creates: list[str] = field(default_factory=list)
    """Paths that come into being: nothing may be below them at the commit."""
    forgotten: list[PastState] = field(default_factory=list)
    """Ended states to erase, with their place in the counters and their assets."""
    extra_puts: list[Put] = field(default_factory=list)
    """Records that belong to no file change (upkeep)."""
    extra_deletes: list[str] = field(default_factory=list)
    horizon: int | None = None
    """Given by the orphan sweep: uploads up to this time are about to be deleted."""

    def add(self, delta: FileDelta) -> FileDelta:
        """Append a change."""
        self.deltas.append(delta)
        return delta

    def expire(self, entry: Entry) -> GoneFile:
        """Delete a file whose time has passed; returns what a write at its path goes on with."""
        self.add(FileDelta(file_id=entry.file_id, before=entry))
        return GoneFile(entry.path, entry.deleted_as(entry.version + 1), 0)
