"""The one table of routes: what dispatches requests, documents them and is compared with the verbs of the workspace."""

from __future__ import annotations

from crux_workspace.server import bodies, shapes
from crux_workspace.server.changing import delete_file, update_file
from crux_workspace.server.events import events
from crux_workspace.server.files import get_file, put_file, resolve
from crux_workspace.server.reading import history, log, namespaces, read_verb
from crux_workspace.server.route import Route, changing, reading
from crux_workspace.server.status import approvals, describe, session, sign_in, sign_out
from crux_workspace.server.traces import receive_traces, trace_versions
from crux_workspace.server.transactions import begin, commit, rollback, run_operations

__all__ = ["COMPOSED", "ROUTES"]

COMPOSED = {
    "walk": "GET /v1/list with recursive, page by page",
}
"""Verbs that a client makes of other routes."""


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
    reading(
        "/v1/content",
        "read",
        shapes.ReadQuery,
        "Read a file, or a window of it, as JSON.",
        staged=True,
    ),
    reading(
        "/v1/stat",
        "stat",
        shapes.PathQuery,
        "Tell of a file; null where there is none.",
        staged=True,
    ),
    reading(
        "/v1/exists",
        "exists",
        shapes.PathQuery,
        "Tell whether a file or directory is there.",
        staged=True,
    ),
    reading(
        "/v1/is_dir", "is_dir", shapes.PathQuery, "Tell whether a directory is there.", staged=True
    ),
    reading(
        "/v1/list",
        "list",
        shapes.ListQuery,
        "List a directory, what is below it, or a glob.",
        staged=True,
    ),
    reading("/v1/grep", "grep", shapes.GrepQuery, "Search texts.", staged=True),
    reading(
        "/v1/history",
        "history",
        shapes.HistoryQuery,
        "List a file's versions, newest first.",
        handler=history,
    ),
    reading("/v1/diff", "diff", shapes.DiffQuery, "Compare two versions of a file."),
    reading(
        "/v1/artifacts", "artifacts", shapes.ArtifactsQuery, "List artifacts by path.", staged=True
    ),
    reading("/v1/log", "log", shapes.LogQuery, "List commits, newest first.", handler=log),
    reading("/v1/cursor", "cursor", shapes.CommonQuery, "Tell the log's end, to watch from."),
    reading("/v1/usage", "usage", shapes.CommonQuery, "Tell what the namespace holds."),
    reading(
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
        body=bodies.ReadManyBody,
        in_transaction=True,
    ),
    changing("write", bodies.WriteBody, "Create or replace a file.", staged=True),
    changing("edit", bodies.EditBody, "Replace exact text.", staged=True),
    changing("append", bodies.AppendBody, "Add text at the end of a file.", staged=True),
    changing("set", bodies.SetBody, "Change attributes only.", staged=True),
    changing("rename", bodies.RelocateBody, "Give a file or directory another path.", staged=True),
    changing("move", bodies.RelocateBody, "Give a file or directory another path.", staged=True),
    changing("copy", bodies.CopyBody, "Copy a file or directory.", staged=True),
    changing(
        "delete", bodies.DeleteBody, "Delete a file, or a directory with recursive.", staged=True
    ),
    Route(
        method="POST",
        path="/v1/update",
        handler=update_file,
        summary="Put a new value into a file that keeps its attributes.",
        verbs=("update",),
        query=shapes.CommonQuery,
        body=bodies.UpdateBody,
        writes=True,
    ),
    changing("undo", bodies.UndoBody, "Bring back a file's earlier content."),
    changing("redo", bodies.PathBody, "Take an undo back."),
    changing("finalize", bodies.FinalizeBody, "Publish a file: pin a version.", staged=True),
    changing("withdraw", bodies.PathBody, "Unpublish a file.", staged=True),
    changing("undo_commit", bodies.UndoCommitBody, "Reverse all changes of a commit."),
    changing("gc", bodies.GcBody, "Collect what nothing needs any more."),
    changing("drop_namespace", bodies.NameBody, "Remove a namespace whole.", status=204),
    Route(
        method="POST",
        path="/v1/transaction",
        handler=run_operations,
        summary="Carry out a list of operations as one commit, or nothing of it.",
        verbs=("transaction",),
        query=shapes.CommonQuery,
        body=bodies.TransactionBody,
        writes=True,
    ),
    Route(
        method="POST",
        path="/v1/transaction/begin",
        handler=begin,
        summary="Begin a transaction that further requests work in.",
        verbs=("transaction",),
        query=shapes.CommonQuery,
        body=bodies.EndBody,
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
        body=bodies.CommitBody,
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
        body=bodies.EndBody,
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
        body=bodies.EndBody,
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
