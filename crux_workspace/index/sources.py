"""Finds and reads the Python files of a folder; nothing of them is run, and nothing outside the folder is read.

A file that cannot be read, decoded or parsed is reported and passed over. Symbolic links are never followed: what they name inside
the folder is found by itself.
"""

from __future__ import annotations

import ast
import errno
import io
import os
import stat
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from crux_workspace.errors import ErrorCode, InvalidInputError, PathNotFoundError
from crux_workspace.index.facts import Skipped, printable

__all__ = ["MAX_FILES", "MAX_FILE_BYTES", "Source", "SourceFolder"]

MAX_FILE_BYTES = 2_000_000
"""A larger file is hardly written by a person; it is skipped."""
MAX_FILES = 100_000
"""Most Python files of one folder."""

_OTHER_PEOPLES = frozenset({"__pycache__", "node_modules", "site-packages"})


@dataclass(slots=True)
class Source:
    """One file that parses."""

    file: str
    """Path below the folder, with slashes."""
    mentions: bool
    """Whether it names this library."""
    imports: tuple[tuple[int, str, tuple[str, ...]], ...]
    """(level, module, names) of each import statement; without names it is ``import module``."""


@dataclass(slots=True)
class SourceFolder:
    """The Python files of a folder."""

    root: Path
    max_file_bytes: int = MAX_FILE_BYTES
    max_files: int = MAX_FILES
    sources: dict[str, Source] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)

    def read(self) -> None:
        """Read all files once: what parses is kept as its imports.

        Raises:
            PathNotFoundError: There is no such folder (``FILE_NOT_FOUND``).
            InvalidInputError: It is not a folder (``INVALID_ARGUMENT``).
        """
        if not self.root.exists():
            raise PathNotFoundError(
                f"There is no folder {self.root}.", hint="Name the folder with the sources."
            )
        if not self.root.is_dir():
            raise InvalidInputError(
                f"{self.root} is not a folder.",
                code=ErrorCode.INVALID_ARGUMENT,
                hint="Name the folder with the sources.",
            )
        for file in self._python_files():
            if len(self.sources) >= self.max_files:
                self.skipped.append(Skipped(printable(file), "too_many_files"))
                break
            data = self._bytes(file)
            tree = None if data is None else self._parsed(file, data)
            if data is not None and tree is not None:
                self.sources[file] = Source(file, b"crux_workspace" in data, _imports(tree))

    def tree(self, file: str) -> tuple[ast.Module, list[str]] | None:
        """Return syntax and lines of a file that `read` has kept; None when it does not parse any more."""
        data = self._bytes(file)
        tree = None if data is None else self._parsed(file, data)
        return None if data is None or tree is None else (tree, _lines(data))

    def _python_files(self) -> Iterator[str]:
        for folder, names, files in os.walk(self.root, followlinks=False):
            here = Path(folder)
            below = here.relative_to(self.root).as_posix()
            prefix = "" if below == "." else f"{below}/"
            for name in [each for each in names if (here / each).is_symlink()]:
                self.skipped.append(Skipped(printable(f"{prefix}{name}"), "symlink"))
            names[:] = sorted(name for name in names if _is_own(here / name))
            yield from (f"{prefix}{name}" for name in sorted(files) if name.endswith(".py"))

    def _bytes(self, file: str) -> bytes | None:
        shown = printable(file)
        try:
            opened = os.open(self.root / file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            reason = "symlink" if error.errno == errno.ELOOP else "unreadable"
            self.skipped.append(Skipped(shown, reason))
            return None
        with os.fdopen(opened, "rb") as stream:
            about = os.fstat(opened)
            if not stat.S_ISREG(about.st_mode):
                self.skipped.append(Skipped(shown, "not_a_file"))
                return None
            try:
                data = stream.read(self.max_file_bytes + 1)
            except OSError:
                self.skipped.append(Skipped(shown, "unreadable"))
                return None
        if len(data) > self.max_file_bytes:
            self.skipped.append(Skipped(shown, "too_large"))
            return None
        return data

    def _parsed(self, file: str, data: bytes) -> ast.Module | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(data)
            except (RecursionError, MemoryError):
                self.skipped.append(Skipped(printable(file), "too_deep"))
            except UnicodeError:
                self.skipped.append(Skipped(printable(file), "undecodable"))
            except (SyntaxError, ValueError) as error:
                encoding = isinstance(error, SyntaxError) and _is_about_encoding(error)
                reason = "undecodable" if encoding else "syntax_error"
                self.skipped.append(
                    Skipped(printable(file), reason, getattr(error, "lineno", None) or None)
                )
        return None


def _lines(data: bytes) -> list[str]:
    """Return the lines as the parser counts them, for columns in characters."""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeError, LookupError):
        return []
    return io.StringIO(text.removeprefix("\ufeff"), newline=None).readlines()


def _is_about_encoding(error: SyntaxError) -> bool:
    said = str(error.msg)
    return any(word in said for word in ("codec", "encoding", "unicode error"))


def _is_own(folder: Path) -> bool:
    name = folder.name
    if name.startswith(".") or name in _OTHER_PEOPLES or folder.is_symlink():
        return False
    return not (folder / "pyvenv.cfg").exists()


def _imports(tree: ast.Module) -> tuple[tuple[int, str, tuple[str, ...]], ...]:
    found: list[tuple[int, str, tuple[str, ...]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            found.append((node.level, node.module or "", names))
    return tuple(found)
