"""The one table of routes: what dispatches requests, documents them and is compared with the verbs of the workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from starlette.responses import Response

from crux_workspace.server import shapes
from crux_workspace.server.changing import change_verb, delete_file, update_file
from crux_workspace.server.events import events
from crux_workspace.server.files import get_file, put_file, resolve
from crux_workspace.server.reading import history, log, namespaces, read_verb
from crux_workspace.server.status import approvals, describe, session, sign_in, sign_out
from crux_workspace.server.traces import receive_traces, trace_versions
from crux_workspace.server.transactions import begin, commit, rollback, run_operations

if TYPE_CHECKING:
    from crux_workspace.server.calls import Call

__all__ = ["COMPOSED", "ROUTES", "Route"]

Handler: TypeAlias = "Callable[[Call], Awaitable[Response]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    summary: str
    verbs: tuple[str, ...] = ()
    """Verbs of the workspace that it offers."""
    query: type[Struct] = shapes.NoQuery
    body: type[Struct] | None = None
    """What its JSON body holds."""
    raw_body: str | None = None
    """Media type of a body that is no JSON."""
    writes: bool = False
    """Only a token that may write is let in."""
    approves: bool = False
    """Only a token that may see approvals is let in."""
    in_transaction: bool = False
    """It works in an open transaction too."""
    answer: str = "json"
    """What comes back: ``json``, ``bytes``, ``events`` or ``nothing``."""
    status: int = 200
    open: bool = False
    """Anybody is let in."""

    @property
    def streams(self) -> bool:
        """Whether it may take as long as its bytes take."""
        return self.answer in ("bytes", "events") or self.raw_body is not None

    @property
    def takes_conditions(self) -> bool:
        """Whether ``If-Match`` and ``If-None-Match`` can say which version of its file it is about."""
        about_a_file = self.body is not None and issubclass(self.body, shapes.PathBody)
        return self.path == "/v1/file" or about_a_file


COMPOSED = {
    "walk": "GET /v1/list with recursive, page by page",
}
"""Verbs that a client makes of other routes."""


def _read(
    path: str,
    verb: str,
    query: type[Struct],
    summary: str,
    *,
    staged: bool = False,
    handler: Handler = read_verb,
) -> Route:
    return Route(
        method="GET",
        path=path,
        handler=handler,
        summary=summary,
        verbs=(verb,),
        query=query,
        in_transaction=staged,
    )


def _change(
    verb: str, body: type[Struct], summary: str, *, staged: bool = False, status: int = 200
) -> Route:
    return Route(
        method="POST",
        path=f"/v1/{verb}",
        handler=change_verb,
        summary=summary,
        verbs=(verb,),
        query=shapes.NoQuery if verb == "drop_namespace" else shapes.CommonQuery,
        body=body,
        writes=True,
        in_transaction=staged,
        status=status,
        answer="nothing" if status == 204 else "json",
    )


ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/v1/file",
        handler=get_file,
        summary="Read a file's bytes, whole or in a range.",
        verbs=("read_bytes", "read_text", "read_json", "stream"),
        query=shapes.FileQuery,
        in_transaction=True,
        answer="bytes",
    ),
    Route(
        method="PUT",
        path="/v1/file",
        handler=put_file,
        summary="Write the body to a file; it is streamed.",
        verbs=("write",),
        query=shapes.PutQuery,
        raw_body="application/octet-stream",
        writes=True,
        in_transaction=True,
    ),
    Route(
        method="DELETE",
        path="/v1/file",
        handler=delete_file,
        summary="Delete a file, or a directory with recursive.",
        verbs=("delete",),
        query=shapes.DeleteQuery,
        writes=True,
        in_transaction=True,
        answer="nothing",
        status=204,
    ),
    _read(
        "/v1/content",
        "read",
        shapes.ReadQuery,
        "Read a file, or a window of it, as JSON.",
        staged=True,
    ),
    _read(
        "/v1/stat",
        "stat",
        shapes.PathQuery,
        "Tell of a file; null where there is none.",
        staged=True,
    ),
    _read(
        "/v1/exists",
        "exists",
        shapes.PathQuery,
        "Tell whether a file or directory is there.",
        staged=True,
    ),
    _read(
        "/v1/is_dir", "is_dir", shapes.PathQuery, "Tell whether a directory is there.", staged=True
    ),
    _read(
        "/v1/list",
        "list",
        shapes.ListQuery,
        "List a directory, what is below it, or a glob.",
        staged=True,
    ),
    _read("/v1/grep", "grep", shapes.GrepQuery, "Search texts.", staged=True),
    _read(
        "/v1/history",
        "history",
        shapes.HistoryQuery,
        "List a file's versions, newest first.",
        handler=history,
    ),
    _read("/v1/diff", "diff", shapes.DiffQuery, "Compare two versions of a file."),
    _read(
        "/v1/artifacts", "artifacts", shapes.ArtifactsQuery, "List artifacts by path.", staged=True
    ),
    _read("/v1/log", "log", shapes.LogQuery, "List commits, newest first.", handler=log),
    _read("/v1/cursor", "cursor", shapes.CommonQuery, "Tell the log's end, to watch from."),
    _read("/v1/usage", "usage", shapes.CommonQuery, "Tell what the namespace holds."),
    _read(
        "/v1/namespaces",
        "namespaces",
        shapes.NamespacesQuery,
        "List the namespaces that the token may use.",
        handler=namespaces,
    ),
    Route(
        method="GET",
        path="/v1/resolve",
        handler=resolve,
        summary="Read the bytes behind an artifact's URI.",
        verbs=("resolve",),
        query=shapes.ResolveQuery,
        answer="bytes",
    ),
    Route(
        method="POST",
        path="/v1/read_many",
        handler=read_verb,
        summary="Read several files whole, all from one snapshot.",
        verbs=("read_many",),
        query=shapes.PastQuery,
        body=shapes.ReadManyBody,
        in_transaction=True,
    ),
    _change("write", shapes.WriteBody, "Create or replace a file.", staged=True),
    _change("edit", shapes.EditBody, "Replace exact text.", staged=True),
    _change("append", shapes.AppendBody, "Add text at the end of a file.", staged=True),
    _change("set", shapes.SetBody, "Change attributes only.", staged=True),
    _change("rename", shapes.RelocateBody, "Give a file or directory another path.", staged=True),
    _change("move", shapes.RelocateBody, "Give a file or directory another path.", staged=True),
    _change("copy", shapes.CopyBody, "Copy a file or directory.", staged=True),
    _change(
        "delete", shapes.DeleteBody, "Delete a file, or a directory with recursive.", staged=True
    ),
    Route(
        method="POST",
        path="/v1/update",
        handler=update_file,
        summary="Put a new value into a file that keeps its attributes.",
        verbs=("update",),
        query=shapes.CommonQuery,
        body=shapes.UpdateBody,
        writes=True,
    ),
    _change("undo", shapes.UndoBody, "Bring back a file's earlier content."),
    _change("redo", shapes.PathBody, "Take an undo back."),
    _change("finalize", shapes.FinalizeBody, "Publish a file: pin a version.", staged=True),
    _change("withdraw", shapes.PathBody, "Unpublish a file.", staged=True),
    _change("undo_commit", shapes.UndoCommitBody, "Reverse all changes of a commit."),
    _change("gc", shapes.GcBody, "Collect what nothing needs any more."),
    _change("drop_namespace", shapes.NameBody, "Remove a namespace whole.", status=204),
    Route(
        method="POST",
        path="/v1/transaction",
        handler=run_operations,
        summary="Carry out a list of operations as one commit, or nothing of it.",
        verbs=("transaction",),
        query=shapes.CommonQuery,
        body=shapes.TransactionBody,
        writes=True,
    ),
    Route(
        method="POST",
        path="/v1/transaction/begin",
        handler=begin,
        summary="Begin a transaction that further requests work in.",
        verbs=("transaction",),
        query=shapes.CommonQuery,
        body=shapes.EndBody,
        writes=True,
        status=201,
    ),
    Route(
        method="POST",
        path="/v1/transaction/commit",
        handler=commit,
        summary="Commit an open transaction.",
        verbs=("transaction",),
        query=shapes.CommonQuery,
        body=shapes.CommitBody,
        writes=True,
        in_transaction=True,
    ),
    Route(
        method="POST",
        path="/v1/transaction/rollback",
        handler=rollback,
        summary="Drop an open transaction.",
        verbs=("transaction",),
        query=shapes.CommonQuery,
        body=shapes.EndBody,
        writes=True,
        in_transaction=True,
        answer="nothing",
        status=204,
    ),
    Route(
        method="GET",
        path="/v1/events",
        handler=events,
        summary="Follow changes as server-sent events.",
        verbs=("watch",),
        query=shapes.EventsQuery,
        answer="events",
    ),
    Route(
        method="GET",
        path="/v1/describe",
        handler=describe,
        summary="Tell what the workspace is.",
    ),
    Route(
        method="GET",
        path="/v1/session",
        handler=session,
        summary="Tell what the caller may see and do.",
    ),
    Route(
        method="POST",
        path="/v1/session",
        handler=sign_in,
        summary="Exchange the bearer token for a browser's session cookie.",
        body=shapes.EndBody,
        status=204,
        answer="nothing",
    ),
    Route(
        method="DELETE",
        path="/v1/session",
        handler=sign_out,
        summary="End the browser's session.",
        status=204,
        answer="nothing",
    ),
    Route(
        method="GET",
        path="/v1/approvals",
        handler=approvals,
        summary="List the threads that wait for an approval.",
        approves=True,
    ),
    Route(
        method="POST",
        path="/v1/traces",
        handler=receive_traces,
        summary="Take in spans by OTLP; version markers are kept.",
        raw_body="application/x-protobuf",
    ),
    Route(
        method="GET",
        path="/v1/traces/versions",
        handler=trace_versions,
        summary="Tell files' versions as the version markers show them.",
        query=shapes.VersionsQuery,
    ),
)
