"""Standing approvals in one JSON file: replaced whole, under a lock, read strictly."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from crux_workspace.agent.permissions.decisions import Grant
from crux_workspace.agent.permissions.rules import RuleSet, check_rule
from crux_workspace.agent.permissions.stores import StoredPermissions, checked_grant, grant_id
from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError
from crux_workspace.model.clocks import wall_clock_ms
from crux_workspace.model.options import refused_option

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["FilePermissionStore", "file_permission_store"]

_VERSION = 1
_T = TypeVar("_T")


class FilePermissionStore:
    """Grants in a JSON file that processes share.

    A change reads the file, writes a new one beside it, and renames that over it, all under a lock on ``<file>.lock``; a reader sees
    the old file or the new one. A file that cannot be understood is refused and left as it is.
    """

    def __init__(self, path: str | Path, *, clock: Callable[[], int] = wall_clock_ms) -> None:
        if not isinstance(path, str | Path):
            raise refused_option("path", "a path", path)
        self._path = Path(path)
        self._clock = clock
        self._seen: tuple[int, ...] | None = None
        self._held = StoredPermissions()

    def __repr__(self) -> str:
        return f"FilePermissionStore({str(self._path)!r})"

    async def load(self) -> StoredPermissions:
        """See `PermissionStore.load`; a file that did not change is not read again."""
        stamp = _stamp(self._path)
        if stamp is None:
            self._seen, self._held = None, StoredPermissions()
        elif stamp != self._seen:
            held = await asyncio.to_thread(_read, self._path)
            self._seen, self._held = stamp, held
        return self._held

    async def add(
        self, key: str, pattern: str, *, thread_id: str | None = None, confirm: str | None = None
    ) -> Grant:
        """See `PermissionStore.add`."""
        grant = checked_grant(key, pattern, thread_id, confirm, self._clock())

        def change(grants: list[Grant]) -> Grant:
            for held in grants:
                if held.grant_id == grant.grant_id:
                    return held
            grants.append(grant)
            return grant

        return await self._changed(change)

    async def remove(self, grant_id: str) -> bool:
        """See `PermissionStore.remove`."""
        return (
            await self._changed(lambda grants: _drop(grants, lambda g: g.grant_id == grant_id)) > 0
        )

    async def forget(self, thread_id: str) -> int:
        """See `PermissionStore.forget`."""
        return await self._changed(lambda grants: _drop(grants, lambda g: g.thread_id == thread_id))

    async def _changed(self, change: Callable[[list[Grant]], _T]) -> _T:
        work = asyncio.ensure_future(asyncio.to_thread(self._change, change))
        return await asyncio.shield(work)

    def _change(self, change: Callable[[list[Grant]], _T]) -> _T:
        _make_folder(self._path.parent)
        with _locked(self._path):
            held = _read(self._path) if self._path.exists() else StoredPermissions()
            grants = list(held.grants)
            result = change(grants)
            if grants != list(held.grants):
                _write(self._path, grants, held.denied)
        return result


def _make_folder(folder: Path) -> None:
    """Make the folder of the file; one that is made here holds nothing else, and is kept out of version control."""
    if folder.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as ignored:
        ignored.write("*\n")


def _drop(grants: list[Grant], unwanted: Callable[[Grant], bool]) -> int:
    before = len(grants)
    grants[:] = [grant for grant in grants if not unwanted(grant)]
    return before - len(grants)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    lock = os.open(path.with_name(f"{path.name}.lock"), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, str(error)) from error
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def _read(path: Path) -> StoredPermissions:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(document, dict) or document.get("version") != _VERSION:
        raise _unreadable(path, "its version is not 1")
    unknown = set(document) - {"version", "allow", "deny", "grants"}
    if unknown:
        raise _unreadable(path, f"it has an unknown entry {sorted(unknown)[0]!r}")
    try:
        by_hand = RuleSet(_table(document, "allow")).to_dict()
        grants = [_grant(entry) for entry in document.get("grants", [])]
        denied = RuleSet(_table(document, "deny"))
    except (InvalidInputError, TypeError, KeyError, AttributeError) as error:
        raise _unreadable(path, str(error)) from error
    for key, patterns in by_hand.items():
        grants += [Grant(grant_id(key, rule, None), key, rule, None, 0) for rule in patterns]
    unique = {grant.grant_id: grant for grant in grants}
    return StoredPermissions(tuple(unique.values()), denied)


def _table(document: dict[str, Any], name: str) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise TypeError(f"{name} is no table")
    return table


def _grant(entry: Any) -> Grant:  # noqa: ANN401 - as it is in the file
    if set(entry) != {"key", "pattern", "threadId", "createdAt"}:
        raise TypeError("a grant has the entries key, pattern, threadId and createdAt")
    thread, at = entry["threadId"], entry["createdAt"]
    if not (thread is None or isinstance(thread, str)) or type(at) is not int:
        raise TypeError("a grant with a wrong threadId or createdAt")
    rule = check_rule(entry["key"], entry["pattern"])
    return Grant(grant_id(entry["key"], rule, thread), entry["key"], rule, thread, at)


def _write(path: Path, grants: list[Grant], denied: RuleSet) -> None:
    document = {
        "version": _VERSION,
        "grants": [
            {"key": g.key, "pattern": g.pattern, "threadId": g.thread_id, "createdAt": g.created_at}
            for g in grants
        ],
        "deny": denied.to_dict(),
    }
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=2, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(name).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _unreadable(path: Path, why: str) -> StorageError:
    return StorageError(
        f"The permissions in {path} cannot be read: {why}. Correct the file or move it away; it was left as it is.",
        code=ErrorCode.RECORD_CORRUPT,
        details={"file": str(path)},
    )


def file_permission_store(
    path: str | Path = ".crux/permissions.json", *, clock: Callable[[], int] = wall_clock_ms
) -> FilePermissionStore:
    """Return a store that keeps grants in a JSON file.

    Args:
        path: The file; it is made with the first grant, its folder too, with a ``.gitignore`` that keeps the folder to this machine.
        clock: Gives the times of grants, in ms.

    Returns:
        The store. ``allow`` and ``deny`` tables written into the file by hand count.

    Raises:
        StorageError: Later, when the file is not what this library writes (``RECORD_CORRUPT``).
    """
    return FilePermissionStore(path, clock=clock)
