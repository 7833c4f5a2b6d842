"""A workspace that is obviously right: dictionaries, no storage, no concurrency, every past tree kept.

`ModelWorkspace` is the oracle of the state machines. It has the verbs of one namespace and is written from the public contract
alone. Where several refusals apply to one call, the contract does not say which comes first: the error then carries all their
codes in ``details["also"]``.
"""

# ruff: noqa: ANN401 - contents are JSON values or bytes, and an attribute may be left out

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from crux_workspace.errors import (
    AlreadyExistsError,
    BinaryContentError,
    ConflictError,
    EditError,
    ErrorCode,
    InvalidInputError,
    LimitExceededError,
    NothingToUndoError,
    PathExistsError,
    PathNotFoundError,
    StateError,
    VersionNotFoundError,
    WorkspaceError,
)
from crux_workspace.model import mime
from crux_workspace.model.files import Usage
from crux_workspace.model.settings import Limits

__all__ = [
    "ModelChange",
    "ModelCommit",
    "ModelEdit",
    "ModelFile",
    "ModelLive",
    "ModelTree",
    "ModelVersion",
    "ModelWorkspace",
]

UNSET: Any = object()
Kind = Literal["text", "json", "binary"]


@dataclass(frozen=True)
class ModelVersion:
    """One version of a file; `kind` is None for a tombstone."""

    number: int
    path: str
    operation: str
    kind: Kind | None
    content: Any
    data: bytes
    mime_type: str
    metadata: dict[str, Any] | None
    created_at: int
    sequence: int
    restored_from: int | None = None

    @property
    def size(self) -> int:
        """Bytes."""
        return len(self.data)

    @property
    def sha256(self) -> str:
        """Hash of the stored bytes."""
        return hashlib.sha256(self.data).hexdigest()

    def text(self) -> str:
        """Return the text in which the version is read, searched and compared."""
        if self.kind == "json":
            return json.dumps(self.content, indent=2, ensure_ascii=False) + "\n"
        return self.data.decode()


@dataclass
class ModelFile:
    """A file from its first version on, whatever path it has."""

    number: int
    created_at: int
    versions: dict[int, ModelVersion] = field(default_factory=dict)
    last: int = 0
    timeline: list[int] = field(default_factory=list)
    """What undo and redo walk over: versions that were neither undo nor redo, without what a later change cut off."""
    position: int = 0
    undo_known: bool = True
    redo_known: bool = True
    """False where the contract does not say where the walk stands."""
    purged: bool = False
    overwritten_at: str | None = None
    """Where a rename took its path, live or deleted; a purge of that path erases it too."""
    started: int = 1
    """Versions below it are collected, but for pinned ones."""

    def origin(self, number: int) -> int:
        """Return the version that a version stands for: an undo or redo stands for what it restored."""
        return self.origins.get(number, number)

    origins: dict[int, int] = field(default_factory=dict)

    def newest_content(self) -> int:
        """Return the last version that is no tombstone."""
        return max(n for n in self.versions if self.versions[n].kind is not None)

    def before(self, number: int) -> int:
        """Return the version before another one, passing over tombstones."""
        below = number - 1
        while below in self.versions and self.versions[below].kind is None:
            below -= 1
        return max(below, 1)

    def clone(self) -> ModelFile:
        """Return a copy that can be changed."""
        return replace(
            self,
            versions=dict(self.versions),
            timeline=list(self.timeline),
            origins=dict(self.origins),
        )


@dataclass(frozen=True)
class ModelLive:
    """A live file as its last commit left it."""

    file: int
    version: int
    mime_type: str
    metadata: dict[str, Any] | None
    status: str | None
    artifact_kind: str | None
    pin: int | None
    created_at: int
    updated_at: int
    sequence: int
    due: int | None = None

    @property
    def shown_status(self) -> str | None:
        """Final while pinned."""
        return "final" if self.pin is not None else self.status

    @property
    def is_artifact(self) -> bool:
        """Whether `artifacts` lists it."""
        return self.shown_status is not None or self.artifact_kind is not None


@dataclass(frozen=True)
class ModelChange:
    """One change of a commit; files are the model's own numbers."""

    type: str
    path: str
    file: int
    from_path: str | None = None
    replaced: int | None = None
    version: int | None = None
    previous_version: int | None = None
    attributes: bool = False


@dataclass(frozen=True)
class ModelCommit:
    """One entry of the log."""

    sequence: int
    at: int
    verb: str
    changes: tuple[ModelChange, ...]


@dataclass(frozen=True)
class ModelEdit:
    """One replacement."""

    find: str
    replace: str
    occurrence: int | None = None
    replace_all: bool = False


def refuse(problems: list[WorkspaceError]) -> None:
    """Raise the first of several refusals, naming all of them; return if there are none."""
    if problems:
        first = problems[0]
        first.details["also"] = sorted({str(problem.code) for problem in problems})
        raise first


def parents(path: str) -> list[str]:
    """Return the directories above a path, without the root."""
    parts = path.strip("/").split("/")
    return ["/" + "/".join(parts[:n]) for n in range(1, len(parts))]


def below(path: str, directory: str) -> bool:
    """Return whether a path lies below a directory."""
    return path.startswith(directory.rstrip("/") + "/") and path != directory


def order(path: str) -> list[str]:
    """Sort key: code points, segment by segment."""
    return path.split("/")


def stored(content: Any, encoding: str | None = None) -> tuple[Kind, Any, bytes]:
    """Return kind, value and stored bytes of something to write."""
    if isinstance(content, str):
        return "text", content, content.encode()
    if isinstance(content, bytes):
        if encoding is not None:
            return "text", content.decode(), content
        return "binary", content, content
    compact = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return "json", content, compact.encode()


@dataclass(frozen=True)
class ModelTree:
    """The files of one moment."""

    live: dict[str, ModelLive]
    files: dict[int, ModelFile]
    mounts: tuple[str, ...]

    def stat(self, path: str) -> ModelLive | None:
        """Return the live file at a path."""
        return self.live.get(path)

    def is_dir(self, path: str) -> bool:
        """Return whether a directory is at a path."""
        roots = path == "/" or path in self.mounts or any(below(m, path) for m in self.mounts)
        return roots or any(below(other, path) for other in self.live)

    def exists(self, path: str) -> bool:
        """Return whether a file or directory is at a path."""
        return path in self.live or self.is_dir(path)

    def version(self, live: ModelLive, number: int | None = None) -> ModelVersion:
        """Return a version of a live file."""
        file = self.files[live.file]
        return kept(file, live.version if number is None else number)

    def is_readable(self, path: str) -> bool:
        """Return whether the content at a path was neither collected nor purged since."""
        live = self.live[path]
        return live.version in self.files[live.file].versions

    def read(self, path: str) -> ModelVersion:
        """Return the content at a path, with the attributes of this moment."""
        live = self.live.get(path)
        if live is None:
            raise PathNotFoundError(path)
        return replace(self.version(live), mime_type=live.mime_type, metadata=live.metadata)

    def paths(self, directory: str = "/") -> list[str]:
        """Return the files at or below a path, in order."""
        hits = (p for p in self.live if p == directory or below(p, directory))
        return sorted(hits, key=order)

    def children(self, directory: str) -> list[tuple[str, bool]]:
        """Return the immediate children of a directory and whether each is a file, in order."""
        if directory in self.live:
            return [(directory, True)]
        found: dict[str, bool] = {}
        start = directory.rstrip("/") + "/"
        for path in [*self.live, *self.mounts]:
            if path.startswith(start):
                name = path[len(start) :].split("/")[0]
                child = start + name
                found[child] = child in self.live
        return [(path, found[path]) for path in sorted(found, key=order)]

    def grep(self, needle: str, path: str = "/") -> list[tuple[str, int, int, str]]:
        """Return path, line, column and text of each literal match."""
        hits = []
        for name in self.paths(path):
            if not self.is_readable(name) or self.read(name).kind == "binary":
                continue
            for number, line in enumerate(self.read(name).text().split("\n"), 1):
                shown = line.removesuffix("\r")
                column = shown.find(needle)
                while column >= 0:
                    hits.append((name, number, column + 1, shown))
                    column = shown.find(needle, column + len(needle))
        return hits

    def artifacts(self) -> list[tuple[str, ModelLive, ModelVersion | None]]:
        """Return path, file and shown version of each artifact; None for the version where it or the head was collected."""
        shown = []
        for path in self.paths():
            live = self.live[path]
            if live.is_artifact:
                number = live.version if live.pin is None else live.pin
                versions = self.files[live.file].versions
                shown.append(
                    (path, live, versions.get(number) if live.version in versions else None)
                )
        return shown


def kept(file: ModelFile, number: int) -> ModelVersion:
    """Return a version of a file, or raise that it never was or is gone."""
    if not 1 <= number <= file.last:
        raise VersionNotFoundError(f"version {number}")
    if number not in file.versions:
        raise VersionNotFoundError(f"version {number}", code=ErrorCode.VERSION_EXPIRED)
    if file.versions[number].kind is None:
        raise VersionNotFoundError(f"version {number} is a deletion")
    return file.versions[number]


class ModelWorkspace:
    """One namespace of a workspace, as the contract describes it."""

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        mounts: tuple[str, ...] = ("/outputs", "/workspace"),
        limits: Limits | None = None,
        ttl_ms: int | None = None,
        max_versions: int | None = None,
    ) -> None:
        self.clock = clock
        self.mounts = mounts
        self.limits = limits or Limits()
        self.ttl_ms = ttl_ms
        self.max_versions = max_versions
        self.live: dict[str, ModelLive] = {}
        self.gone: dict[str, tuple[int, bool, str | None]] = {}
        """Path to the file to go on with, whether it was an artifact, and its kind."""
        self.files: dict[int, ModelFile] = {}
        self.sequence = 0
        self.time = 0
        self.commits: dict[int, ModelCommit] = {}
        self.trees: dict[int, dict[str, ModelLive]] = {0: {}}
        self.times: dict[int, int] = {0: 0}
        self.unswept: set[int] = set()
        """Files that have expired without a commit yet."""
        self._changes: list[ModelChange] = []

    # Looking

    @property
    def tree(self) -> ModelTree:
        """The files of now."""
        self.expire()
        return ModelTree(self.live, self.files, self.mounts)

    def at(self, sequence: int) -> ModelTree:
        """Return the files as of a commit; what was due by its time is not there."""
        then = self.times[sequence]
        live = {p: f for p, f in self.trees[sequence].items() if f.due is None or f.due > then}
        return ModelTree(live, self.files, self.mounts)

    def file_at(self, path: str) -> ModelFile | None:
        """Return the file whose history a path shows: the live one, else the deleted one."""
        self.expire()
        if path in self.live:
            return self.files[self.live[path].file]
        return self.files[self.gone[path][0]] if path in self.gone else None

    def read(self, path: str, version: int | None = None) -> ModelVersion:
        """Return the content at a path, or one of its versions."""
        if version is None:
            return self.tree.read(path)
        file = self.file_at(path)
        if file is None:
            raise PathNotFoundError(path)
        return kept(file, version)

    def history(self, path: str) -> list[ModelVersion]:
        """Return the kept versions of the file at a path, newest first."""
        file = self.file_at(path)
        return [] if file is None else [file.versions[n] for n in sorted(file.versions)[::-1]]

    def usage(self) -> Usage:
        """Count everything from scratch."""
        self.expire()
        return self._count()

    def log(self) -> list[ModelCommit]:
        """Return the commits, newest first."""
        return [self.commits[n] for n in sorted(self.commits)[::-1]]

    # Changing

    def write(
        self,
        path: str,
        content: Any,
        *,
        mime_type: str | None = None,
        metadata: dict[str, Any] | None = None,
        status: str | None = None,
        kind: str | None = None,
        encoding: str | None = None,
        if_version: int | None = None,
    ) -> ModelLive:
        """Create or replace a file."""
        what, value, data = stored(content, encoding)
        with self._commit("write"):
            problems = [*self._placing(path), *self._expecting(path, if_version)]
            problems += self._fitting(len(data)) + self._statuses(path, status)
            refuse(problems)
            guessed = mime_type or mime.guess(path, what)
            live = self._put(path, "write", what, value, data, guessed, metadata)
            live = replace(live, artifact_kind=live.artifact_kind if kind is None else kind)
            if status is not None:
                live = replace(live, status=status, pin=live.version if status == "final" else None)
            self.live[path] = live
        return self.live[path]

    def edit(
        self, path: str, edits: list[ModelEdit], *, if_version: int | None = None
    ) -> ModelLive:
        """Replace text."""
        self.expire()
        if any(not edit.find for edit in edits):
            raise InvalidInputError("empty find")
        refuse([*self._missing(path), *self._expecting(path, if_version)])
        live = self.live[path]
        head = self.files[live.file].versions[live.version]
        if head.kind == "binary":
            raise BinaryContentError(path)
        if head.kind == "json":
            raise InvalidInputError(path, code=ErrorCode.INVALID_CONTENT)
        text = str(head.content)
        for edit in edits:
            text = edited(text, edit)
        if text == head.content:
            return live
        with self._commit("edit"):
            refuse(self._fitting(len(text.encode())))
            self._put(path, "edit", "text", text, text.encode(), live.mime_type, live.metadata)
        return self.live[path]

    def append(self, path: str, text: str, *, if_version: int | None = None) -> ModelLive:
        """Add text at the end; a missing file is made."""
        with self._commit("append"):
            live = self.live.get(path)
            problems = [*self._placing(path), *self._expecting(path, if_version)]
            if live is None:
                problems += self._fitting(len(text.encode()))
            refuse(problems)
            before, mime_type, metadata = "", mime.guess(path, "text"), None
            if live is not None:
                head = self.files[live.file].versions[live.version]
                if head.kind == "binary":
                    raise BinaryContentError(path)
                if head.kind == "json":
                    raise InvalidInputError(path, code=ErrorCode.INVALID_CONTENT)
                before, mime_type, metadata = head.content, live.mime_type, live.metadata
            whole = before + text
            refuse(self._fitting(len(whole.encode())))
            self._put(path, "append", "text", whole, whole.encode(), mime_type, metadata)
        return self.live[path]

    def set_attributes(
        self,
        path: str,
        *,
        mime_type: str | None = None,
        metadata: Any = UNSET,
        status: Any = UNSET,
        kind: Any = UNSET,
        if_version: int | None = None,
    ) -> ModelLive:
        """Change attributes only, as `set` does."""
        with self._commit("set"):
            problems = [*self._missing(path), *self._expecting(path, if_version)]
            problems += self._statuses(path, None if status is UNSET else status)
            refuse(problems)
            live = self._touch(path)
            if mime_type is not None:
                live = replace(live, mime_type=mime_type)
            if metadata is not UNSET:
                live = replace(live, metadata=metadata)
            if kind is not UNSET:
                live = replace(live, artifact_kind=kind)
            if status is not UNSET:
                live = replace(live, status=status)
            if status == "final":
                live = replace(live, pin=live.version)
            self._attributes(path, live)
        return self.live[path]

    def finalize(
        self,
        path: str,
        *,
        kind: str | None = None,
        version: int | None = None,
        if_version: int | None = None,
    ) -> ModelLive:
        """Pin a version."""
        with self._commit("finalize"):
            refuse([*self._missing(path), *self._expecting(path, if_version)])
            live = self._touch(path)
            number = live.version if version is None else version
            kept(self.files[live.file], number)
            live = replace(live, status="final", pin=number)
            self._attributes(path, replace(live, artifact_kind=kind or live.artifact_kind))
        return self.live[path]

    def withdraw(self, path: str, *, if_version: int | None = None) -> ModelLive:
        """Unpin."""
        self.expire()
        refuse([*self._missing(path), *self._expecting(path, if_version)])
        if self.live[path].pin is None:
            return self.live[path]
        with self._commit("withdraw"):
            self._attributes(path, replace(self._touch(path), status="draft", pin=None))
        return self.live[path]

    def rename(
        self,
        src: str,
        dst: str,
        *,
        overwrite: bool = False,
        if_version: int | None = None,
        verb: str = "rename",
    ) -> None:
        """Give a file or a directory another path."""
        self.expire()
        pairs = self._pairs(src, dst, overwrite=overwrite, if_version=if_version, moving=True)
        if src == dst:
            return
        with self._commit(verb):
            for old, new in pairs:
                live = self._touch(old)
                del self.live[old]
                replaced = self.live[new].file if new in self.live else None
                if replaced is not None:
                    self._bury(new)
                    self.files[replaced].overwritten_at = new
                if new in self.gone:
                    self.files[self.gone.pop(new)[0]].overwritten_at = new
                self.live[new] = live
                change = ModelChange(
                    "rename", new, live.file, old, replaced, live.version, live.version
                )
                self._changes.append(change)

    def copy(
        self, src: str, dst: str, *, overwrite: bool = False, if_version: int | None = None
    ) -> None:
        """Make a file or a directory of files like another."""
        self.expire()
        pairs = self._pairs(src, dst, overwrite=overwrite, if_version=if_version, moving=False)
        if src == dst:
            return
        with self._commit("copy"):
            for old, new in pairs:
                live = self.live[old]
                head = self.files[live.file].versions[live.version]
                kind = cast("Kind", head.kind)
                made = self._put(
                    new, "copy", kind, head.content, head.data, live.mime_type, live.metadata
                )
                status = made.status if made.pin is not None else live.shown_status
                made = replace(made, artifact_kind=live.artifact_kind, status=status)
                if live.pin is not None:
                    made = replace(made, pin=made.version, status="final")
                self.live[new] = made

    def delete(self, path: str, *, recursive: bool = False, if_version: int | None = None) -> None:
        """Delete a file, or all below a directory."""
        self.expire()
        tree = self.tree
        if path not in self.live and tree.is_dir(path):
            problems: list[WorkspaceError] = []
            if if_version is not None:
                problems += [InvalidInputError(path), *self._expecting(path, if_version)]
            if not recursive:
                problems.append(AlreadyExistsError(path, code=ErrorCode.PATH_TYPE_CONFLICT))
            refuse(problems)
        elif if_version is not None:
            refuse(self._expecting(path, if_version))
        victims = tree.paths(path)
        if victims:
            with self._commit("delete"):
                for victim in victims:
                    self._end(victim)

    def purge(self, path: str) -> None:
        """Erase a file, live or deleted, for good."""
        self.expire()
        here = self.file_at(path)
        victims = [f for f in self.files.values() if f is here or f.overwritten_at == path]
        if not victims:
            return
        live = self.live.pop(path, None)
        self.gone.pop(path, None)
        for file in victims:
            file.versions.clear()
            file.purged, file.overwritten_at = True, None
        with self._commit("purge"):
            if live is not None:
                version = live.version
                change = ModelChange("delete", path, live.file, previous_version=version)
                self._changes.append(change)

    def undo(
        self, path: str, *, to_version: int | None = None, if_version: int | None = None
    ) -> ModelLive:
        """Bring earlier content back."""
        with self._commit("undo"):
            file = self.file_at(path)
            problems = [] if file is not None else self._missing(path)
            refuse([*problems, *self._expecting(path, if_version)])
            assert file is not None
            is_gone = path not in self.live
            if to_version is not None:
                target = kept(file, to_version).number
            elif is_gone:
                target = file.newest_content()
            elif file.position == 0:
                raise NothingToUndoError(path)
            else:
                target = kept(file, file.before(file.timeline[file.position])).number
            refuse(self._placing(path))
            self._restore(path, file, target)
            self._step(file, file.origin(target), is_known=to_version is None)
        return self.live[path]

    def redo(self, path: str, *, if_version: int | None = None) -> ModelLive:
        """Take an undo back."""
        with self._commit("redo"):
            problems = [*self._missing(path), *self._expecting(path, if_version)]
            if path in self.live:
                file = self.files[self.live[path].file]
                if file.position + 1 >= len(file.timeline):
                    problems.append(StateError(path, code=ErrorCode.NOTHING_TO_REDO))
            refuse(problems)
            target = kept(file, file.timeline[file.position + 1]).number
            self._restore(path, file, target, operation="redo")
            self._step(file, target, is_known=True)
        return self.live[path]

    def undo_commit(self, sequence: int) -> None:
        """Reverse all of one commit."""
        self.expire()
        commit = self.commits[sequence]
        before = self.trees[sequence - 1]
        paths = {c.path for c in commit.changes} | {
            c.from_path for c in commit.changes if c.from_path
        }
        files = {c.file for c in commit.changes} | {
            c.replaced for c in commit.changes if c.replaced
        }
        problems: list[WorkspaceError] = [
            ConflictError(f"commit {later.sequence}")
            for later in self.commits.values()
            if later.sequence > sequence
            for c in later.changes
            if {c.path, c.from_path} & paths or {c.file, c.replaced} & files
        ]
        problems += self._lost(commit, before)
        problems += [problem for path in paths & set(before) for problem in self._above(path)]
        refuse(problems)
        with self._commit("undo_commit"):
            for change in commit.changes:
                self._reverse(change, before)

    # How expiry and purges reach the model

    def expire(self) -> None:
        """Let every file that is due vanish, as if it had been deleted."""
        now = self.clock()
        for path, live in list(self.live.items()):
            if live.due is not None and live.due <= now:
                self._end(path)
                self._changes.clear()
                self.unswept.add(live.file)

    def follow(self, sequence: int) -> None:
        """Accept commits that the contract leaves to the engine: sweeps, collections, the steps of a purge."""
        if sequence > self.sequence:
            self.time = max(self.time, self.clock())
        while self.sequence < sequence:
            self.sequence += 1
            self.trees[self.sequence] = dict(self.live)
            self.times[self.sequence] = self.time

    # Parts of verbs

    def _missing(self, path: str) -> list[WorkspaceError]:
        return [] if path in self.live else [PathNotFoundError(path)]

    def _placing(self, path: str) -> list[WorkspaceError]:
        tree = ModelTree(self.live, self.files, self.mounts)
        taken = (path not in self.live and tree.is_dir(path)) or any(
            parent in self.live for parent in parents(path)
        )
        return [AlreadyExistsError(path, code=ErrorCode.PATH_TYPE_CONFLICT)] if taken else []

    def _above(self, path: str) -> list[WorkspaceError]:
        if path in self.live or not self._placing(path):
            return []
        return [*self._placing(path), ConflictError(path)]

    def _expecting(self, path: str, if_version: int | None) -> list[WorkspaceError]:
        if if_version is None:
            return []
        current = self.live[path].version if path in self.live else 0
        return [] if if_version == current else [ConflictError(path)]

    def _fitting(self, size: int) -> list[WorkspaceError]:
        limit = self.limits.max_file_bytes
        if limit is None or size <= limit:
            return []
        return [LimitExceededError("file", code=ErrorCode.FILE_TOO_LARGE)]

    def _statuses(self, path: str, status: str | None) -> list[WorkspaceError]:
        is_pinned = path in self.live and self.live[path].pin is not None
        return [InvalidInputError(path)] if is_pinned and status == "draft" else []

    def _pairs(
        self, src: str, dst: str, *, overwrite: bool, if_version: int | None, moving: bool
    ) -> list[tuple[str, str]]:
        tree = ModelTree(self.live, self.files, self.mounts)
        if src in self.live:
            refuse(self._file_problems(src, dst, overwrite, if_version, moving=moving))
            return [(src, dst)]
        problems: list[WorkspaceError] = []
        if if_version is not None:
            problems.append(InvalidInputError(src))
        if not tree.is_dir(src):
            problems = [PathNotFoundError(src)]
            if if_version is not None:
                problems.append(ConflictError(src))
            refuse(problems)
        if not tree.paths(src):
            problems.append(PathNotFoundError(src))
        if moving and src in (*self.mounts, "/"):
            problems.append(InvalidInputError(src))
        if below(dst, src):
            problems.append(InvalidInputError(dst))
        if dst in self.live or any(parent in self.live for parent in parents(dst)):
            problems.append(AlreadyExistsError(dst, code=ErrorCode.PATH_TYPE_CONFLICT))
        elif tree.is_dir(dst) and not (moving and src == dst):
            problems.append(PathExistsError(dst))
        refuse(problems)
        return [(path, dst + path[len(src) :]) for path in tree.paths(src)]

    def _file_problems(
        self, src: str, dst: str, overwrite: bool, if_version: int | None, *, moving: bool
    ) -> list[WorkspaceError]:
        problems = self._expecting(src if moving else dst, if_version)
        if dst == src:
            return problems if moving or overwrite else [*problems, PathExistsError(dst)]
        if dst in self.live:
            return problems if overwrite else [*problems, PathExistsError(dst)]
        placing = self._placing(dst)
        if placing and below(dst, src):
            placing.append(InvalidInputError(dst))
        if not moving:
            head = self.live[src]
            placing += self._fitting(self.files[head.file].versions[head.version].size)
        return problems + placing

    def _put(
        self,
        path: str,
        operation: str,
        kind: Kind,
        content: Any,
        data: bytes,
        mime_type: str,
        metadata: dict[str, Any] | None,
    ) -> ModelLive:
        old = self.live.get(path)
        if old is not None:
            file = self.files[old.file]
        elif path in self.gone:
            file = self.files[self.gone.pop(path)[0]]
        else:
            file = ModelFile(len(self.files) + 1, self.time)
            self.files[file.number] = file
        self._add(file, path, operation, kind, content, data, mime_type, metadata)
        file.timeline = [*file.timeline[: file.position + 1], file.last]
        file.position = len(file.timeline) - 1
        file.redo_known = True
        self._live(path, file, old, mime_type, metadata)
        return self.live[path]

    def _add(
        self,
        file: ModelFile,
        path: str,
        operation: str,
        kind: Kind | None,
        content: Any,
        data: bytes,
        mime_type: str,
        metadata: dict[str, Any] | None,
        restored_from: int | None = None,
    ) -> None:
        file.last += 1
        file.versions[file.last] = ModelVersion(
            file.last,
            path,
            operation,
            kind,
            content,
            data,
            mime_type,
            metadata,
            self.time,
            self.sequence,
            restored_from,
        )
        self.unswept.discard(file.number)

    def _live(
        self,
        path: str,
        file: ModelFile,
        old: ModelLive | None,
        mime_type: str,
        metadata: dict[str, Any] | None,
    ) -> None:
        self.live[path] = ModelLive(
            file.number,
            file.last,
            mime_type,
            metadata,
            old.status if old else None,
            old.artifact_kind if old else None,
            old.pin if old else None,
            file.created_at,
            self.time,
            self.sequence,
            None if self.ttl_ms is None else self.clock() + self.ttl_ms,
        )
        self._changes.append(
            ModelChange(
                "update" if old else "create",
                path,
                file.number,
                version=file.last,
                previous_version=old.version if old else None,
            )
        )

    def _touch(self, path: str) -> ModelLive:
        return replace(self.live[path], updated_at=self.time, sequence=self.sequence)

    def _attributes(self, path: str, live: ModelLive) -> None:
        self.live[path] = live
        file = self.files[live.file]
        head = file.versions[live.version]
        file.versions[live.version] = replace(
            head, mime_type=live.mime_type, metadata=live.metadata
        )
        number = live.version
        self._changes.append(
            ModelChange(
                "update",
                path,
                live.file,
                version=number,
                previous_version=number,
                attributes=True,
            )
        )

    def _bury(self, path: str) -> None:
        """End a file with a tombstone, without a change of its own."""
        live = self.live.pop(path)
        file = self.files[live.file]
        self._add(file, path, "delete", None, None, b"", live.mime_type, None)
        file.timeline = file.timeline[: file.position + 1]
        file.redo_known = True

    def _end(self, path: str) -> None:
        live = self.live[path]
        self._bury(path)
        self.gone[path] = (live.file, live.is_artifact, live.artifact_kind)
        self._changes.append(
            ModelChange(
                "delete",
                path,
                live.file,
                version=self.files[live.file].last,
                previous_version=live.version,
            )
        )

    def _restore(self, path: str, file: ModelFile, target: int, operation: str = "undo") -> None:
        old = self.live.get(path)
        _, was_artifact, kind = self.gone.pop(path, (0, False, None))
        file.overwritten_at = None
        source = file.versions[target]
        refuse(self._fitting(source.size))
        assert source.kind is not None
        self._add(
            file,
            path,
            operation,
            source.kind,
            source.content,
            source.data,
            source.mime_type,
            source.metadata,
            file.origin(target),
        )
        file.origins[file.last] = file.origin(target)
        self._live(path, file, old, source.mime_type, source.metadata)
        if old is None and was_artifact:
            self.live[path] = replace(self.live[path], status="draft", artifact_kind=kind)

    def _step(self, file: ModelFile, target: int, *, is_known: bool) -> None:
        file.redo_known = file.redo_known and is_known
        if target in file.timeline:
            file.position = file.timeline.index(target)
        else:
            file.undo_known = False

    def _lost(self, commit: ModelCommit, before: dict[str, ModelLive]) -> list[WorkspaceError]:
        for change in commit.changes:
            needed = [change.file, change.replaced]
            if self.files[change.file].purged:
                return [VersionNotFoundError(change.path, code=ErrorCode.VERSION_EXPIRED)]
            for path, live in before.items():
                file = self.files[live.file]
                is_needed = live.file in needed and path in (change.path, change.from_path)
                has_content = change.type != "rename" or live.file == change.replaced
                if is_needed and not change.attributes and has_content:
                    if live.version not in file.versions:
                        return [VersionNotFoundError(path, code=ErrorCode.VERSION_EXPIRED)]
                if is_needed and live.pin is not None and live.pin not in file.versions:
                    return [VersionNotFoundError(path, code=ErrorCode.VERSION_EXPIRED)]
        return []

    def _reverse(self, change: ModelChange, before: dict[str, ModelLive]) -> None:
        if change.type == "create":
            self._end(change.path)
        elif change.type == "rename":
            assert change.from_path is not None
            live = self._touch(change.path)
            del self.live[change.path]
            self.live[change.from_path] = live
            back = ModelChange(
                "rename",
                change.from_path,
                live.file,
                change.path,
                None,
                live.version,
                live.version,
            )
            self._changes.append(back)
            if change.replaced is not None:
                self._as_before(change.path, before[change.path])
        elif change.attributes:
            old = before[change.path]
            live = self._touch(change.path)
            live = replace(
                live,
                mime_type=old.mime_type,
                metadata=old.metadata,
                status=old.status,
                artifact_kind=old.artifact_kind,
                pin=old.pin,
            )
            self._attributes(change.path, live)
        else:
            self._as_before(change.path, before[change.path])

    def _as_before(self, path: str, old: ModelLive) -> None:
        file = self.files[old.file]
        self._restore(path, file, old.version)
        self._step(file, file.origin(old.version), is_known=False)
        file.undo_known = False
        self.live[path] = replace(
            self.live[path],
            mime_type=old.mime_type,
            metadata=old.metadata,
            status=old.status,
            artifact_kind=old.artifact_kind,
            pin=old.pin,
        )
        head = file.versions[file.last]
        file.versions[file.last] = replace(head, mime_type=old.mime_type, metadata=old.metadata)

    # What every commit does

    @contextmanager
    def _commit(self, verb: str) -> Iterator[None]:
        self.expire()
        backup = (
            dict(self.live),
            dict(self.gone),
            {number: file.clone() for number, file in self.files.items()},
            self.sequence,
            self.time,
            set(self.unswept),
        )
        before = self._count()
        self._changes = []
        self.sequence += 1
        self.time = max(self.time, self.clock())
        try:
            yield
            refuse(self._quotas(before))
        except WorkspaceError:
            self.live, self.gone, self.files, self.sequence, self.time, self.unswept = backup
            raise
        changed = {c.file for c in self._changes if c.type != "rename" and not c.attributes}
        changed |= {c.replaced for c in self._changes if c.replaced is not None}
        self._collect(changed | {c.file for c in self._changes}, changed)
        changes = tuple(sorted(self._changes, key=lambda change: order(change.path)))
        self.commits[self.sequence] = ModelCommit(self.sequence, self.time, verb, changes)
        self.trees[self.sequence] = dict(self.live)
        self.times[self.sequence] = self.time

    def _quotas(self, before: Usage) -> list[WorkspaceError]:
        after = self._count()
        problems: list[WorkspaceError] = []
        for limit, old, new in (
            (self.limits.max_namespace_bytes, before.live_bytes, after.live_bytes),
            (self.limits.max_files, before.live_files, after.live_files),
        ):
            if limit is not None and new > limit and new > old:
                problems.append(LimitExceededError("namespace"))
        return problems

    def _count(self) -> Usage:
        heads = {(live.file, live.version) for live in self.live.values()}
        everything = [
            (file.number, version)
            for file in self.files.values()
            for version in file.versions.values()
        ]
        return Usage(
            live_bytes=sum(v.size for f, v in everything if (f, v.number) in heads),
            live_files=len(self.live),
            versions=len(everything),
            history_bytes=sum(v.size for f, v in everything if (f, v.number) not in heads),
            max_namespace_bytes=self.limits.max_namespace_bytes,
        )

    def _collect(self, touched: set[int], changed: set[int]) -> None:
        for number in sorted(touched):
            file = self.files[number]
            if self.max_versions is not None:
                file.started = max(file.started, file.last - self.max_versions + 1)
            for old in self._collectable(file):
                if old < file.started:
                    del file.versions[old]
            limit = self.limits.max_history_bytes
            while number in changed and limit is not None and self._count().history_bytes > limit:
                oldest = next(iter(self._collectable(file)), None)
                if oldest is None:
                    break
                del file.versions[oldest]
                file.started = max(file.started, oldest + 1)

    def _collectable(self, file: ModelFile) -> list[int]:
        protected = {file.last}
        for live in self.live.values():
            if live.file == file.number and live.pin is not None:
                protected.add(live.pin)
        if file.versions and file.last in file.versions and file.versions[file.last].kind is None:
            protected.add(file.newest_content())
        return [number for number in sorted(file.versions) if number not in protected]


def edited(text: str, edit: ModelEdit) -> str:
    """Return a text after one replacement."""
    hits = []
    at = text.find(edit.find)
    while at >= 0:
        hits.append(at)
        at = text.find(edit.find, at + 1)
    if not hits:
        raise EditError(edit.find)
    if edit.replace_all:
        return text.replace(edit.find, edit.replace)
    if edit.occurrence is None and len(hits) > 1:
        raise EditError(edit.find, code=ErrorCode.EDIT_AMBIGUOUS)
    number = edit.occurrence or 1
    if number > len(hits):
        raise EditError(edit.find)
    start = hits[number - 1]
    return text[:start] + edit.replace + text[start + len(edit.find) :]
