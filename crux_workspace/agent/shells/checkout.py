"""A scratch folder with files of a workspace, and what a command made of it."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from crux_workspace.agent.files.descriptors import locate
from crux_workspace.agent.files.local_io import read_bytes, walk
from crux_workspace.errors import InvalidPathError
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.model.paths import normalise_file

__all__ = ["Checkout", "Difference", "difference"]

_MOST_ENTRIES = 200_000


@dataclass(frozen=True, slots=True)
class _CheckedOut:
    file: WorkspaceFile
    digest: bytes = field(repr=False)
    stamp: tuple[int, ...]


@dataclass(slots=True)
class Checkout:
    """Files of a workspace below `root`, in a folder; names are relative.

    Each file has a second link beside the folder, so that no inode is used again while the command runs: a moved file is known by it.
    """

    base: Path
    root: str
    files: dict[str, _CheckedOut] = field(default_factory=dict)
    withheld: dict[str, WorkspaceFile] = field(default_factory=dict)
    """Files that are there and may not be read; they are not in the folder."""

    def __post_init__(self) -> None:
        self.scratch.mkdir()
        self._kept.mkdir()

    @property
    def scratch(self) -> Path:
        """Where the command runs."""
        return self.base / "files"

    @property
    def _kept(self) -> Path:
        return self.base / "kept"

    def put(self, file: WorkspaceFile, data: bytes) -> None:
        """Write one file into the folder and remember what it was."""
        name = self.name_of(file)
        target = self.scratch / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        (self._kept / str(len(self.files))).hardlink_to(target)
        self.files[name] = _CheckedOut(file, _digest(data), _stamp(target.stat()))

    def name_of(self, file: WorkspaceFile) -> str:
        """Return a file's name in the folder."""
        return file.path[len(self.root.rstrip("/")) + 1 :]

    def path_of(self, name: str) -> str:
        """Return a file's path in the workspace."""
        return f"{self.root.rstrip('/')}/{name}"

    def read(self, name: str) -> bytes:
        """Return what is in the folder under a name, no link followed."""
        pin = locate(f"{self.scratch}/{name}")
        try:
            return read_bytes(pin, None)
        finally:
            pin.close()


@dataclass(slots=True)
class Difference:
    """What a command changed."""

    changed: list[tuple[str, str | None]] = field(default_factory=list)
    """(name, name it was checked out under; None for a new file)"""
    renamed: list[tuple[str, str]] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def is_any(self) -> bool:
        """Whether there is anything to commit."""
        return bool(self.changed or self.renamed or self.deleted)


def difference(checkout: Checkout) -> Difference:
    """Compare the folder with what was checked out. A file that moved is known by its inode."""
    found = Difference()
    present = _present(checkout, found)
    gone = {name: held for name, held in checkout.files.items() if name not in present}
    by_inode = {held.stamp[:2]: name for name, held in gone.items()}
    for name, status in sorted(present.items()):
        held = checkout.files.get(name)
        origin: str | None = name if held is not None else None
        if held is None:
            origin = by_inode.pop(_stamp(status)[:2], None)
            if origin is not None:
                found.renamed.append((origin, name))
                del gone[origin]
                held = checkout.files[origin]
        if held is None or (
            _stamp(status) != held.stamp and _digest(checkout.read(name)) != held.digest
        ):
            found.changed.append((name, origin))
    taken = set(found.refused)
    found.deleted = sorted(name for name in gone if name not in taken)
    return found


def _present(checkout: Checkout, found: Difference) -> dict[str, os.stat_result]:
    """Return the regular files of the folder; links, specials, odd names and links out of it are refused."""
    pin = locate(str(checkout.scratch))
    try:
        entries = walk(pin, _MOST_ENTRIES, frozenset())
    finally:
        pin.close()
    present: dict[str, os.stat_result] = {}
    links: Counter[int] = Counter()
    for entry in entries:
        if entry.kind == "directory":
            continue
        if entry.kind != "file" or not _is_name(checkout.path_of(entry.path)):
            found.refused.append(entry.path)
            continue
        status = os.lstat(checkout.scratch / entry.path)
        if not stat.S_ISREG(status.st_mode):
            found.refused.append(entry.path)
            continue
        links[status.st_ino] += 1
        present[entry.path] = status
    known = {held.stamp[1] for held in checkout.files.values()}
    for name, status in list(present.items()):
        if status.st_nlink > links[status.st_ino] + (status.st_ino in known):
            found.refused.append(name)
            del present[name]
    return present


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _is_name(path: str) -> bool:
    try:
        return normalise_file(path) == path
    except InvalidPathError:
        return False


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
