"""One namespace as the verbs see it, and what several verbs need: preconditions, places, remembered results."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from crux_workspace.engine.built import Built
from crux_workspace.engine.changeset import Changeset
from crux_workspace.engine.codec import Op
from crux_workspace.engine.committer import Call, Done, Finished, Stale, commit
from crux_workspace.engine.entry import Entry, GoneFile
from crux_workspace.engine.expiry import sweep_due
from crux_workspace.engine.inflight import InFlight
from crux_workspace.engine.keys import gone_key
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.engine.reads import LiveReads
from crux_workspace.engine.tree import LiveTree
from crux_workspace.errors import (
    AlreadyExistsError,
    ConflictError,
    ErrorCode,
    InvalidInputError,
    InvalidPathError,
    PathNotFoundError,
)
from crux_workspace.model.files import IfVersion, WorkspaceFile, check_expected
from crux_workspace.model.labels import check_label
from crux_workspace.model.paths import ancestors
from crux_workspace.mounts.routing import Router
from crux_workspace.storage.records import Reader

__all__ = [
    "Options",
    "Space",
    "check_if_version",
    "claim",
    "digest_of",
    "expected_entry",
    "needs_recursive",
    "not_found",
    "slash_refused",
    "type_conflict",
]

_T = TypeVar("_T")
_encode = msgspec.json.Encoder(order="deterministic").encode


class Options(msgspec.Struct, frozen=True, gc=False):
    """What every mutating verb takes."""

    idempotency_key: str | None = None
    if_version: IfVersion = None

    def __post_init__(self) -> None:
        if self.idempotency_key is not None:
            check_label("idempotency_key", self.idempotency_key)
        if self.if_version is not None:
            check_expected(self.if_version)


@dataclass(slots=True)
class Space:
    """A namespace bound to its mounts and its engine."""

    ports: EnginePorts
    router: Router
    in_flight: InFlight

    @property
    def stages(self) -> bool:
        """Whether verbs stage here instead of committing."""
        return False

    def reads(self) -> LiveReads:
        """Read the newest state."""
        return LiveReads(self.ports.reader, self.ports.clock())

    def file(self, entry: Entry) -> WorkspaceFile:
        """Make the result of a head."""
        return entry.to_file(self.router.mount_path(entry.path))

    def sweep(self) -> Coroutine[Any, Any, int]:
        """Expire the files whose time has passed."""
        return sweep_due(self.ports, self.in_flight)

    def commit(
        self,
        verb: str,
        paths: tuple[str, ...],
        plan: Callable[[LiveTree], Awaitable[Changeset | Finished[_T]]],
        finish: Callable[[Done], _T],
        *,
        options: Options,
        request: list[Any],
        remember: Callable[[Built, Op], None] | None = None,
        recall: Callable[[Reader, Op, int, int], Awaitable[_T]] | None = None,
        prepare: Callable[[Stale], Coroutine[Any, Any, None]] | None = None,
        abandon: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> Coroutine[Any, Any, _T]:
        """Plan and commit one call; `request` is what two calls with one idempotency key must agree on."""
        call: Call[_T] = Call(verb, paths, plan, finish, prepare, abandon, self.sweep)
        if options.idempotency_key is not None:
            call.idempotency_key = options.idempotency_key
            call.digest = digest_of(verb, request)
            call.remember, call.recall = remember, recall
        return commit(self.ports, self.in_flight, call)

    async def remembered(
        self,
        verb: str,
        *,
        options: Options,
        request: list[Any],
        recall: Callable[[Reader, Op, int, int], Awaitable[_T]],
    ) -> _T | None:
        """Return what an earlier call with this key gave; for verbs that read a lot before they plan. Cost: 1 read with a key."""
        if options.idempotency_key is None:
            return None

        async def plan(tree: LiveTree) -> Changeset | Finished[_T | None]:
            del tree
            return Finished(None)

        def finish(_: Done) -> _T | None:
            return None

        return await self.commit(
            verb, (), plan, finish, options=options, request=request, recall=recall
        )

    async def remembered_file(
        self, verb: str, path: str, *, options: Options, request: list[Any]
    ) -> WorkspaceFile | None:
        """Return the file that an earlier `commit_file` with this key gave."""
        return await self.remembered(
            verb, options=options, request=[path, *request], recall=self._recall_file(path)
        )

    def _recall_file(self, path: str) -> Callable[[Reader, Op, int, int], Awaitable[WorkspaceFile]]:
        async def recall(_: Reader, op: Op, sequence: int, at: int) -> WorkspaceFile:
            assert op.head is not None
            return self.file(Entry(op.path or path, op.head, sequence, at))

        return recall

    def commit_file(
        self,
        verb: str,
        path: str,
        plan: Callable[[LiveTree], Awaitable[Changeset | Finished[WorkspaceFile]]],
        *,
        options: Options,
        request: list[Any],
        prepare: Callable[[Stale], Coroutine[Any, Any, None]] | None = None,
        abandon: Callable[[], Coroutine[Any, Any, None]] | None = None,
    ) -> Coroutine[Any, Any, WorkspaceFile]:
        """Commit a call whose result is the file at `path`."""
        keyed = options.idempotency_key is not None
        return self.commit(
            verb,
            (path,),
            plan,
            lambda done: self.file(done.entry(path)),
            options=options,
            request=[path, *request],
            remember=_remember_file(path) if keyed else None,
            recall=self._recall_file(path) if keyed else None,
            prepare=prepare,
            abandon=abandon,
        )


def _remember_file(path: str) -> Callable[[Built, Op], None]:
    def remember(built: Built, op: Op) -> None:
        op.shape, op.path, op.head = "file", path, built.heads[path]

    return remember


def digest_of(verb: str, request: list[Any]) -> str:
    """Hash what two calls with one idempotency key must agree on."""
    try:
        return hashlib.sha256(_encode([verb, request])).hexdigest()
    except UnicodeEncodeError:
        raise InvalidInputError(
            f"A text given to {verb} holds a lone surrogate, which UTF-8 cannot write.",
            code=ErrorCode.INVALID_CONTENT,
        ) from None


def not_found(path: str, hint: str | None = None) -> PathNotFoundError:
    """Make the error of a path without a live file."""
    return PathNotFoundError(
        f"There is no file at {path}.",
        details={"path": path},
        hint=hint,
    )


def type_conflict(path: str, other: str, *, is_file: bool) -> AlreadyExistsError:
    """Make the error of a path that would be a file and a directory at once."""
    what = f"{other} is a file" if is_file else f"{path} is a directory with files below it"
    return AlreadyExistsError(
        f"{path} cannot become a file: {what}.",
        code=ErrorCode.PATH_TYPE_CONFLICT,
        details={"path": path, "conflict": other},
    )


def needs_recursive(path: str) -> AlreadyExistsError:
    """Make the error of deleting a directory like a file."""
    return AlreadyExistsError(
        f"{path} is a directory.",
        code=ErrorCode.PATH_TYPE_CONFLICT,
        details={"path": path},
        hint="Delete everything below it with recursive=True.",
    )


def slash_refused(path: str) -> InvalidPathError:
    """Make the error of a directory's spelling where a file is meant."""
    return InvalidPathError(
        f"{path}/ names a directory, but {path} is a file or is to become one; leave the trailing slash out.",
        details={"path": path + "/"},
    )


async def check_if_version(
    tree: LiveTree, path: str, entry: Entry | None, expected: IfVersion
) -> None:
    """Refuse when the head is not the one the caller expects.

    Raises:
        ConflictError: It is another one (``VERSION_CONFLICT``); nothing was changed.
    """
    if expected is None:
        return
    current = 0 if entry is None else entry.version
    if isinstance(expected, WorkspaceFile):
        base = expected.version
        holds = entry is not None and entry.file_id == expected.id and current == base
    else:
        base = expected
        holds = current == base
    if holds:
        return
    actor = None if entry is None else await tree.actor_of(entry.commit_sequence)
    gone = entry is None and (await tree.reader.get_many([gone_key(path)], bodies=False))[0]
    now = "does not exist" if entry is None else f"is at version {current}"
    raise ConflictError(
        f"{path} {now}, version {base} was expected.",
        details={
            "path": path,
            "base_version": base,
            "current_version": current or None,
            "last_operation": entry.head.operation
            if entry is not None
            else "delete"
            if gone
            else None,
            "last_actor": actor,
        },
    )


async def expected_entry(tree: LiveTree, path: str, options: Options) -> Entry:
    """Return the live file at a path that was looked at, at the version that the caller expects.

    Raises:
        ConflictError: It is at another version than expected, or gone (``VERSION_CONFLICT``).
        PathNotFoundError: There is none, and none was expected.
    """
    entry = tree.entry(path)
    await check_if_version(tree, path, entry, options.if_version)
    if entry is None:
        raise not_found(path)
    return entry


async def claim(tree: LiveTree, changes: Changeset, path: str) -> GoneFile | None:
    """Make sure that a file can come to a path that was looked at and holds no live file.

    Expired files in the way are cleared by the same commit.

    Returns:
        The deleted file that a write goes on with.

    Raises:
        AlreadyExistsError: A file is above, or files are below (``PATH_TYPE_CONFLICT``).
    """
    for above in filter(tree.is_bound, ancestors(path)):
        if tree.entry(above) is not None:
            raise type_conflict(path, above, is_file=True)
        if (late := tree.expired(above)) is not None:
            changes.expire(late)
    if tree.is_bound(path) and (expired := tree.expired(path)) is not None:
        return changes.expire(expired)
    if not tree.careful and not tree.touched_below(path):
        changes.creates.append(path)
        return tree.gone(path)
    for entry in await tree.below(path):
        if not entry.is_expired(tree.now):
            raise type_conflict(path, entry.path, is_file=False)
        changes.expire(entry)
    return tree.gone(path)
