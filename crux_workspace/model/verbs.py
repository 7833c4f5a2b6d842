"""The verb table: everything a workspace can do, once. Spans, the command line, the documentation and the tests read it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["VERBS", "Verb"]


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the workspace."""

    name: str
    """Method of the workspace."""
    mutates: bool
    """It may commit."""
    reads: str
    """Store reads of the plain case: a number, or ``pages``; with no read and no commit it is one other call."""
    commits: int
    cli: str | None = None
    """Command of the command line."""
    moves_bytes: bool = False
    """Its size counts as bytes moved."""
    on_sources: str = ""
    """What it does on a source-backed mount: ``delegated`` to the provider, an ``opt-in`` of it, ``refused``, ``empty``; nothing where it
    is not about a path."""
    tool: str | None = None
    """The field of `WorkspaceToolNames` that names its tool."""

    @property
    def span(self) -> str:
        """Value of ``crux.workspace.operation``."""
        return self.name

    @property
    def cost(self) -> str:
        """The cost as docstrings print it."""
        reads = (
            "pages" if self.reads == "pages" else f"{self.reads} read{'s' * (self.reads != '1')}"
        )
        parts = ([] if self.reads == "0" else [reads]) + [f"{self.commits} commit"] * (
            self.commits > 0
        )
        return ", ".join(parts) or "1 store call"


VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb("list", False, "pages", 0, "ls", on_sources="delegated", tool="list"),
        Verb("walk", False, "pages", 0, on_sources="delegated"),
        Verb(
            "read", False, "1", 0, "cat", moves_bytes=True, on_sources="delegated", tool="read_file"
        ),
        Verb("read_text", False, "1", 0, moves_bytes=True, on_sources="delegated"),
        Verb("read_bytes", False, "1", 0, moves_bytes=True, on_sources="delegated"),
        Verb("read_json", False, "1", 0, moves_bytes=True, on_sources="delegated"),
        Verb("read_many", False, "1", 0, moves_bytes=True, on_sources="delegated"),
        Verb("stream", False, "1", 0, moves_bytes=True, on_sources="delegated"),
        Verb("exists", False, "1", 0, on_sources="delegated"),
        Verb("is_dir", False, "1", 0, on_sources="delegated"),
        Verb("stat", False, "1", 0, on_sources="delegated", tool="stat_file"),
        Verb("grep", False, "pages", 0, "grep", on_sources="delegated", tool="grep"),
        Verb("usage", False, "2", 0, "usage"),
        Verb(
            "write", True, "1", 1, "write", moves_bytes=True, on_sources="opt-in", tool="write_file"
        ),
        Verb("edit", True, "1", 1, "edit", moves_bytes=True, on_sources="opt-in", tool="edit_file"),
        Verb(
            "append",
            True,
            "1",
            1,
            "append",
            moves_bytes=True,
            on_sources="opt-in",
            tool="append_file",
        ),
        Verb("update", True, "2", 1, moves_bytes=True, on_sources="refused"),
        Verb("set", True, "1", 1, on_sources="refused"),
        Verb("rename", True, "1", 1, "mv", on_sources="refused", tool="rename_file"),
        Verb("move", True, "1", 1, "mv", on_sources="refused"),
        Verb("copy", True, "1", 1, "cp", on_sources="opt-in", tool="copy_file"),
        Verb("delete", True, "1", 1, "rm", on_sources="opt-in", tool="delete_file"),
        Verb("history", False, "pages", 0, "history", on_sources="empty", tool="history_file"),
        Verb("diff", False, "pages", 0, "diff", on_sources="refused", tool="diff_file"),
        Verb("undo", True, "2", 1, "undo", on_sources="refused", tool="undo_file"),
        Verb("redo", True, "pages", 1, "redo", on_sources="refused"),
        Verb("finalize", True, "1", 1, "finalize", on_sources="refused", tool="finalize_file"),
        Verb("withdraw", True, "1", 1, "withdraw", on_sources="refused"),
        Verb("artifacts", False, "pages", 0, "artifacts", on_sources="empty"),
        Verb("resolve", False, "1", 0, moves_bytes=True),
        Verb("log", False, "pages", 0, "log"),
        Verb("watch", False, "pages", 0, "watch", on_sources="empty"),
        Verb("cursor", False, "2", 0, "cursor"),
        Verb("undo_commit", True, "pages", 1, "undo-commit"),
        Verb("transaction", True, "1", 1, "tx"),
        Verb("gc", True, "pages", 1, "gc"),
        Verb("namespaces", False, "1", 0, "namespaces"),
        Verb("drop_namespace", True, "0", 0),
    )
}
