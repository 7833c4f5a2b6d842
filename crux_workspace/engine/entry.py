"""A live file or an ended state with its stamps filled in, and the results made of them."""

from __future__ import annotations

from urllib.parse import quote

import msgspec
from msgspec import Struct

from crux_workspace.engine.codec import (
    KIND_NAMES,
    ArtifactRecord,
    Attributes,
    Gone,
    Head,
    State,
    decode,
)
from crux_workspace.engine.keys import path_in_key, state_key_parts
from crux_workspace.events.log import commit_name
from crux_workspace.model.artifacts import Artifact
from crux_workspace.model.files import StorageKind, WorkspaceFile
from crux_workspace.model.values import maker
from crux_workspace.model.versions import VersionEntry
from crux_workspace.storage.records import Record

__all__ = [
    "Entry",
    "GoneFile",
    "PastState",
    "artifact_record",
    "artifact_result",
    "inline_uri",
    "is_artifact",
    "storage_kind",
]


_make_file = maker(WorkspaceFile)


def storage_kind(attributes: Attributes | ArtifactRecord) -> StorageKind:
    """Tell where the content is."""
    if isinstance(attributes, Attributes):
        return "inline" if attributes.is_inline else "asset"
    return "inline" if attributes.asset is None else "asset"


def is_artifact(head: Head) -> bool:
    """Tell whether a file has a status, a kind or provenance."""
    return bool(head.status or head.artifact_kind or head.produced_by)


class Entry(Struct, gc=False):
    """`head/<path>` as read: the stamps that the record leaves out are filled in by the properties."""

    path: str
    head: Head
    revision: int
    at: int
    body: bytes | None = None
    provisional: bool = False
    """Staged by a transaction: its newest version has no number of its own yet, further content replaces it."""

    @classmethod
    def of(cls, record: Record) -> Entry:
        """Read a head record."""
        return cls.at_path(path_in_key(record.key), record)

    @classmethod
    def at_path(cls, path: str, record: Record) -> Entry:
        """Read the head record of a path that is known."""
        return cls(path, decode(Head, record.value), record.revision, record.at, record.body)

    @property
    def file_id(self) -> str:
        """Identity of the file."""
        return self.head.file_id

    @property
    def version(self) -> int:
        """Number of the current version."""
        return self.head.version

    @property
    def version_sequence(self) -> int:
        """Commit that appended the current version."""
        given = self.head.version_sequence
        return self.revision if given is None else given

    @property
    def version_commit(self) -> str:
        """Id of that commit."""
        return self.head.version_commit or self.head.commit

    @property
    def version_at(self) -> int:
        """Time of that commit."""
        return self.at if self.head.version_at is None else self.head.version_at

    @property
    def commit_sequence(self) -> int:
        """Last commit that changed content, attributes or path."""
        given = self.head.commit_sequence
        return self.revision if given is None else given

    @property
    def commit_at(self) -> int:
        """Time of that commit."""
        return self.at if self.head.commit_at is None else self.head.commit_at

    @property
    def bound(self) -> int:
        """Commit by which the file came to this path."""
        return self.revision if self.head.bound is None else self.head.bound

    @property
    def changed(self) -> int:
        """Commit at which the current state started."""
        return self.revision if self.head.changed is None else self.head.changed

    @property
    def created_at(self) -> int:
        """Time of the file's first version."""
        return self.at if self.head.created_at is None else self.head.created_at

    @property
    def version_path(self) -> str:
        """Where the file was when the current version was appended."""
        return self.head.version_path or self.path

    def is_expired(self, now: int) -> bool:
        """Tell whether the file's time to live has passed."""
        return self.head.due is not None and self.head.due <= now

    def is_artifact(self) -> bool:
        """Tell whether the file has a status, a kind or provenance."""
        return is_artifact(self.head)

    def settled(self) -> Head:
        """Return the head with all stamps written out, for rewriting the record without a change."""
        return msgspec.structs.replace(
            self.head,
            version_sequence=self.version_sequence,
            version_commit=self.version_commit,
            version_at=self.version_at,
            commit_sequence=self.commit_sequence,
            commit_at=self.commit_at,
            bound=self.bound,
            changed=self.changed,
            created_at=self.created_at,
        )

    def to_file(self, mount: str, *, staged: bool = False) -> WorkspaceFile:
        """Make the result that users see; a staged file has no commit yet."""
        head, at, sequence = self.head, self.commit_at, self.commit_sequence
        return _make_file(
            path=self.path,
            id=head.file_id,
            content_kind=KIND_NAMES[head.kind],
            mime_type=head.mime_type,
            size=head.size,
            version=head.version,
            sha256=head.sha256,
            mount=mount,
            storage="inline" if head.is_inline else "asset",
            uri=head.uri,
            preview=head.preview,
            metadata=head.metadata,
            status=head.status,
            artifact_kind=head.artifact_kind,
            pinned_version=head.pinned,
            produced_by=head.produced_by,
            created_at=self.at if head.created_at is None else head.created_at,
            updated_at=at,
            sequence=0 if staged else sequence,
            commit=None if staged or not head.commit else commit_name(sequence, head.commit),
        )

    def to_version(self) -> VersionEntry:
        """Make the history entry of the current version."""
        return version_entry(
            self.head,
            self.version,
            self.version_path,
            self.version_sequence,
            self.version_commit,
            self.version_at,
        )

    def deleted_as(self, version: int, first: int | None = None) -> Gone:
        """Make the `gone/` value that a deletion leaves, whose tombstone is `version`."""
        first = self.head.first if first is None else first
        return Gone(file_id=self.file_id, version=version, created_at=self.created_at, first=first)

    def ended(self, *, partial: bool) -> State:
        """Make the state that ends with the commit now being planned; its key starts at `changed`."""
        head, sequence, at = self.head, self.version_sequence, self.version_at
        created_at = self.at if head.created_at is None else head.created_at
        state = State(
            kind=head.kind,
            mime_type=head.mime_type,
            size=head.size,
            lines=head.lines,
            sha256=head.sha256,
            preview=head.preview,
            metadata=head.metadata,
            operation=head.operation,
            restored_from=head.restored_from,
            status=head.status,
            artifact_kind=head.artifact_kind,
            produced_by=head.produced_by,
            pinned=head.pinned,
            version_path=head.version_path or self.path,
            version_sequence=None if sequence == self.changed else sequence,
            version_commit=head.version_commit or head.commit,
            version_at=at,
            due=head.due,
            created_at=None if created_at == at else created_at,
            partial=partial,
        )
        if not partial and not head.is_inline:
            state.asset, state.parts = head.asset, head.parts
            state.uri, state.enc, state.line_index = head.uri, head.enc, head.line_index
        return state


class GoneFile(Struct, gc=False):
    """`gone/<path>` as read."""

    path: str
    gone: Gone
    revision: int

    @classmethod
    def of(cls, record: Record) -> GoneFile:
        """Read a gone record."""
        return cls(path_in_key(record.key), decode(Gone, record.value), record.revision)


class PastState(Struct, gc=False):
    """`state/<file id>/<version>/<start>` as read."""

    key: str
    file_id: str
    version: int
    start: int
    state: State
    revision: int
    at: int
    body: bytes | None = None

    @classmethod
    def of(cls, record: Record) -> PastState:
        """Read a state record."""
        file_id, version, start = state_key_parts(record.key)
        state = decode(State, record.value)
        return cls(
            record.key, file_id, version, start, state, record.revision, record.at, record.body
        )

    @property
    def until(self) -> int:
        """Commit that ended the state."""
        return self.revision if self.state.until is None else self.state.until

    @property
    def is_tombstone(self) -> bool:
        """Tell whether the version is a deletion."""
        return self.state.operation == "delete"

    @property
    def version_sequence(self) -> int:
        """Commit that appended the version."""
        given = self.state.version_sequence
        return self.start if given is None else given

    @property
    def version_at(self) -> int:
        """Time of that commit."""
        return self.at if self.state.version_at is None else self.state.version_at

    @property
    def created_at(self) -> int:
        """Time of the file's first version."""
        return self.version_at if self.state.created_at is None else self.state.created_at

    def settled(self) -> State:
        """Return the state with its stamps written out, for rewriting the record without a change."""
        return msgspec.structs.replace(self.state, until=self.until, version_at=self.version_at)

    def to_version(self) -> VersionEntry:
        """Make the history entry of the version."""
        state = self.state
        return version_entry(
            state,
            self.version,
            state.version_path or "",
            self.version_sequence,
            state.version_commit or "",
            self.version_at,
        )


def version_entry(
    of: Attributes, version: int, path: str, sequence: int, commit_id: str, at: int
) -> VersionEntry:
    """Make a history entry of a head's or a state's attributes."""
    return VersionEntry(
        version=version,
        path=path,
        operation=of.operation,  # type: ignore[arg-type]
        content_kind=KIND_NAMES[of.kind],
        mime_type=of.mime_type,
        size=of.size,
        storage=storage_kind(of),
        preview=of.preview,
        created_at=at,
        sha256=of.sha256 or None,
        restored_from=of.restored_from,
        sequence=sequence,
        commit=commit_name(sequence, commit_id),
    )


def inline_uri(workspace_id: str, namespace: str, path: str, version: int) -> str:
    """Write the URI of inline content: each part percent-encoded."""
    where = "/".join(quote(segment, safe="") for segment in path.split("/"))
    return (
        f"workspace-inline://{quote(workspace_id, safe='')}/{quote(namespace, safe='')}"
        f"{where}@v{version}"
    )


def artifact_record(head: Head, shown: Attributes, version: int) -> ArtifactRecord:
    """Make the `art/` record of a file that shows one of its versions."""
    return ArtifactRecord(
        file_id=head.file_id,
        version=version,
        head_version=head.version,
        status=head.status or "draft",
        mime_type=shown.mime_type,
        size=shown.size,
        sha256=shown.sha256,
        asset=shown.asset,
        uri=shown.uri,
        kind=head.artifact_kind,
        preview=shown.preview,
        metadata=shown.metadata,
        produced_by=head.produced_by,
    )


def artifact_result(
    path: str, record: ArtifactRecord, at: int, workspace_id: str, namespace: str
) -> Artifact:
    """Make the result that users see of an `art/` record stamped with time `at`."""
    uri = record.uri or inline_uri(workspace_id, namespace, path, record.version)
    return Artifact(
        path=path,
        kind=record.kind,
        status=record.status,
        version=record.version,
        head_version=record.head_version,
        mime_type=record.mime_type,
        size=record.size,
        uri=uri,
        preview=record.preview,
        produced_by=record.produced_by,
        metadata=record.metadata,
        created_at=at if record.created_at is None else record.created_at,
        updated_at=at if record.updated_at is None else record.updated_at,
        sha256=record.sha256,
    )
