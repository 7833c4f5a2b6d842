"""The JSON bodies of every route, named as the workspace's own arguments are."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from crux_workspace.server.shapes import Path, Version, Whole

__all__ = [
    "AppendBody",
    "CommitBody",
    "CopyBody",
    "DeleteBody",
    "EditBody",
    "EndBody",
    "FinalizeBody",
    "GcBody",
    "NameBody",
    "Operation",
    "PathBody",
    "ReadManyBody",
    "RelocateBody",
    "SetBody",
    "TransactionBody",
    "UndoBody",
    "UndoCommitBody",
    "UpdateBody",
    "WriteBody",
]

Etag = Annotated[
    str,
    Meta(
        pattern=r'^"?[0-9a-f]{32}\.[0-9]{1,19}"?$', description='A file\'s ETag: "<id>.<version>".'
    ),
]
IfVersionField = Whole | Etag | None


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
