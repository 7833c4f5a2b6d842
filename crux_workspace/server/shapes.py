"""What requests hold: the query parameters and JSON bodies of every route, named as the workspace's own arguments are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

__all__ = [
    "AppendBody",
    "ArtifactsQuery",
    "CommitBody",
    "CommonQuery",
    "CopyBody",
    "DeleteBody",
    "DeleteQuery",
    "DiffQuery",
    "EditBody",
    "EndBody",
    "EventsQuery",
    "FileQuery",
    "FinalizeBody",
    "GcBody",
    "GrepQuery",
    "HistoryQuery",
    "IfVersionField",
    "ListQuery",
    "LogQuery",
    "NameBody",
    "NamespacesQuery",
    "NoQuery",
    "Operation",
    "PastQuery",
    "PathBody",
    "PathQuery",
    "PutQuery",
    "ReadManyBody",
    "ReadQuery",
    "RelocateBody",
    "ResolveQuery",
    "SetBody",
    "TransactionBody",
    "UndoBody",
    "UndoCommitBody",
    "UpdateBody",
    "VersionsQuery",
    "WriteBody",
]

Path = Annotated[str, Meta(description="Absolute path.", max_length=4_096)]
Count = Annotated[int, Meta(ge=0, le=10_000)]
Whole = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]
Version = Annotated[int, Meta(ge=1, le=(1 << 63) - 1)]
Etag = Annotated[
    str,
    Meta(
        pattern=r'^"?[0-9a-f]{32}\.[0-9]{1,18}"?$', description='A file\'s ETag: "<id>.<version>".'
    ),
]
IfVersionField = Whole | Etag | None
Namespace = Annotated[
    str, Meta(description="Namespace to work in; the token's own one by default.")
]


class NoQuery(Struct, forbid_unknown_fields=True, kw_only=True):
    """Nothing."""


class CommonQuery(NoQuery, kw_only=True):
    """What every request about a namespace may say."""

    namespace: Namespace | None = None


class PastQuery(CommonQuery, kw_only=True):
    """What every request that reads the tree may say."""

    at: (
        Annotated[
            str,
            Meta(
                description="Read the tree as of a commit: its sequence, or an ISO 8601 time with its zone."
            ),
        ]
        | None
    ) = None


class PathQuery(PastQuery, kw_only=True):
    """A path of the tree."""

    path: Path


class VersionQuery(PathQuery, kw_only=True):
    """A version of a file."""

    version: Version | None = None


class FileQuery(VersionQuery, kw_only=True):
    """A file's bytes."""

    form: Annotated[
        Literal["bytes", "text", "json"],
        Meta(description="The bytes; or what read_text or read_json gives, as UTF-8."),
    ] = "bytes"


class ReadQuery(VersionQuery, kw_only=True):
    """Arguments of ``read``."""

    offset: Whole = 0
    max_inline_bytes: Whole | None = 64_000
    start_line: Whole | None = None
    end_line: Whole | None = None


class ListQuery(PastQuery, kw_only=True):
    """Arguments of ``list``."""

    path: Path = "/"
    recursive: bool = False
    glob: bool | None = None
    limit: Count = 1_000
    cursor: str | None = None
    partial: bool = False


class GrepQuery(PastQuery, kw_only=True):
    """Arguments of ``grep``."""

    query: Annotated[str, Meta(max_length=4_096)]
    path: Path | None = None
    ignore_case: bool = False
    regex: bool = False
    max_results: Count = 100
    context_lines: Annotated[int, Meta(ge=0, le=100)] = 0
    partial: bool = False


class HistoryQuery(CommonQuery, kw_only=True):
    """Arguments of ``history``."""

    path: Path
    limit: Count = 1_000
    before: Version | None = None


class DiffQuery(CommonQuery, kw_only=True):
    """Arguments of ``diff``."""

    path: Path
    from_version: Version | None = None
    to_version: Version | None = None
    context_lines: Annotated[int, Meta(ge=0, le=10_000)] = 3


class ArtifactsQuery(PastQuery, kw_only=True):
    """Arguments of ``artifacts``."""

    status: Literal["draft", "final"] | None = None
    kind: str | None = None
    path: Path | None = None
    limit: Count = 1_000
    after: Path | None = None


class ResolveQuery(CommonQuery, kw_only=True):
    """Arguments of ``resolve``."""

    uri: Annotated[str, Meta(max_length=8_192)]


class LogQuery(CommonQuery, kw_only=True):
    """Arguments of ``log``."""

    path: Path | None = None
    limit: Annotated[int, Meta(ge=0, le=1_000)] = 50
    cursor: str | None = None
    max_changes: (
        Annotated[
            int,
            Meta(
                ge=0,
                le=10_000,
                description="Most changes told of each commit; `changes_total` then says how many there are.",
            ),
        ]
        | None
    ) = None


class NamespacesQuery(NoQuery, kw_only=True):
    """Arguments of ``namespaces``."""

    prefix: str = ""
    limit: Annotated[int, Meta(ge=1, le=1_000)] = 100
    cursor: str | None = None


class EventsQuery(CommonQuery, kw_only=True):
    """Arguments of ``watch``."""

    path: Path | None = None
    recursive: bool | None = None
    cursor: str | None = None
    start: Literal["tail", "oldest"] = "tail"
    poll_interval_ms: Annotated[int, Meta(ge=10, le=60_000)] = 250


class VersionsQuery(CommonQuery, kw_only=True):
    """Which namespace's paths label the files; all that the token may use by default."""


class PutQuery(CommonQuery, kw_only=True):
    """Where and as what a body is written."""

    path: Path
    kind: Annotated[
        Literal["text", "json", "binary"] | None,
        Meta(
            description="What the bytes are; by default text, JSON or binary by the Content-Type."
        ),
    ] = None
    mime_type: str | None = None
    metadata: Annotated[str, Meta(description="A JSON object.")] | None = None
    status: Literal["draft", "final"] | None = None
    artifact_kind: str | None = None
    if_version: (
        Annotated[
            str,
            Meta(
                pattern=r'^([0-9]{1,18}|"?[0-9a-f]{32}\.[0-9]{1,18}"?)$',
                description="The version that the file has to be at: a number (0: no file), or its ETag.",
            ),
        ]
        | None
    ) = None


class DeleteQuery(CommonQuery, kw_only=True):
    """Arguments of ``delete``."""

    path: Path
    recursive: bool = False
    purge: bool = False


class _Body(Struct, forbid_unknown_fields=True, kw_only=True):
    pass


class ReadManyBody(_Body, kw_only=True):
    """Arguments of ``read_many``."""

    paths: Annotated[list[Path], Meta(max_length=1_000)]


class PathBody(_Body, kw_only=True):
    """A path, and the version that its file has to be at."""

    path: Path
    if_version: IfVersionField = None


class WriteBody(PathBody, kw_only=True):
    """Arguments of ``write``: a string is text, any other value is JSON; bytes go as base64."""

    content: Any = UNSET
    content_base64: str | UnsetType = UNSET
    mime_type: str | None = None
    metadata: dict[str, Any] | None = None
    status: Literal["draft", "final"] | None = None
    kind: str | None = None
    encoding: str | None = None


class UpdateBody(PathBody, kw_only=True):
    """Arguments of ``update``: the new value; without one, only what an earlier request with the key gave is answered."""

    content: Any = UNSET
    content_base64: str | UnsetType = UNSET


class EditPart(_Body, kw_only=True):
    """One replacement."""

    find: str
    replace: str
    occurrence: int | None = None
    replace_all: bool = False


class EditBody(PathBody, kw_only=True):
    """Arguments of ``edit``."""

    find: str | None = None
    replace: str | None = None
    occurrence: int | None = None
    replace_all: bool = False
    edits: list[EditPart] | None = None
    mime_type: str | None = None


class AppendBody(PathBody, kw_only=True):
    """Arguments of ``append``."""

    text: str
    mime_type: str | None = None


class SetBody(PathBody, kw_only=True):
    """Arguments of ``set``: what is left out stays, null removes."""

    mime_type: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType | None = UNSET
    status: Literal["draft", "final"] | UnsetType | None = UNSET
    kind: str | UnsetType | None = UNSET


class RelocateBody(_Body, kw_only=True):
    """Arguments of ``rename`` and ``move``."""

    src: Path
    dst: Path
    overwrite: bool = False
    if_version: IfVersionField = None


class CopyBody(RelocateBody, kw_only=True):
    """Arguments of ``copy``."""

    to_namespace: str | None = None


class DeleteBody(PathBody, kw_only=True):
    """Arguments of ``delete``."""

    recursive: bool = False
    purge: bool = False


class UndoBody(PathBody, kw_only=True):
    """Arguments of ``undo``."""

    to_version: Version | None = None


class FinalizeBody(PathBody, kw_only=True):
    """Arguments of ``finalize``."""

    kind: str | None = None
    version: Version | None = None


class UndoCommitBody(_Body, kw_only=True):
    """Arguments of ``undo_commit``."""

    commit: Annotated[str, Meta(max_length=1_024)]


class GcBody(_Body, kw_only=True):
    """Arguments of ``gc``."""

    dry_run: bool = True


class NameBody(_Body, kw_only=True):
    """Arguments of ``drop_namespace``."""

    name: str


Operation = Annotated[
    dict[str, Any],
    Meta(description="``verb`` and the fields of that verb's own request body."),
]


class TransactionBody(_Body, kw_only=True):
    """Operations that are one commit, or nothing."""

    operations: list[Operation]
    max_attempts: Annotated[int, Meta(ge=1, le=100)] = 1


class EndBody(_Body, kw_only=True):
    """Nothing to say."""


class CommitBody(_Body, kw_only=True):
    """What the log shows as the commit's verb; not beside an idempotency key."""

    verb: str = "transaction"
