"""The query parameters of every route, named as the workspace's own arguments are."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from crux_workspace.model.options import MOST

__all__ = [
    "ArtifactsQuery",
    "CommonQuery",
    "DeleteQuery",
    "DiffQuery",
    "EventsQuery",
    "FileQuery",
    "GrepQuery",
    "HistoryQuery",
    "ListQuery",
    "LogQuery",
    "NamespacesQuery",
    "NoQuery",
    "PastQuery",
    "Path",
    "PathQuery",
    "PutQuery",
    "ReadQuery",
    "ResolveQuery",
    "Version",
    "VersionsQuery",
    "Whole",
]

Path = Annotated[str, Meta(description="Absolute path.", max_length=4_096)]
Count = Annotated[int, Meta(ge=0, le=10_000)]
Whole = Annotated[int, Meta(ge=0, le=MOST)]
Version = Annotated[int, Meta(ge=1, le=MOST)]
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
                pattern=r'^([0-9]{1,19}|"?[0-9a-f]{32}\.[0-9]{1,19}"?)$',
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
