"""What is found out about content as it passes: size, hash, line ends, and for a stream of text whether it is UTF-8.

A hash cannot be gone on with once it is only known as digits. So that an append need not read what is there, the state in which a text
was left is remembered by the hashes of the assets that hold it, in this process and for the latest texts only.
"""

from __future__ import annotations

import codecs
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

from crux_workspace.engine.changeset import NewContent
from crux_workspace.engine.codec import LineIndex
from crux_workspace.engine.ports import EnginePorts
from crux_workspace.errors import ErrorCode, InvalidInputError, LimitExceededError

__all__ = [
    "PREVIEW_CHARACTERS",
    "Measure",
    "Running",
    "check_file_size",
    "preview_of",
    "recall",
    "remember",
]

PREVIEW_CHARACTERS = 240
_FIRST_STEP = 1 << 17
_MOST_MARKS = 128
_MOST_REMEMBERED = 128


def preview_of(text: str) -> str:
    """Cut text to a preview."""
    return text if len(text) <= PREVIEW_CHARACTERS else text[: PREVIEW_CHARACTERS - 3] + "..."


def check_file_size(ports: EnginePorts, path: str, size: int) -> None:
    """Refuse a file above `max_file_bytes` (``FILE_TOO_LARGE``)."""
    limit = ports.limits.max_file_bytes
    if limit is not None and size > limit:
        raise LimitExceededError(
            f"{path} would have {size} bytes, max_file_bytes is {limit}.",
            code=ErrorCode.FILE_TOO_LARGE,
            details={"path": path, "size": size, "limit": limit, "used": None},
        )


class Running:
    """Hash and line ends of a text so far; it can be gone on with."""

    __slots__ = ("ends_line", "hash", "marks", "newlines", "size", "step")

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.size = 0
        self.newlines = 0
        self.ends_line = True
        self.step = _FIRST_STEP
        self.marks: list[int] = []

    def copy(self) -> Running:
        """Return another one in the same state."""
        other = Running()
        other.hash = self.hash.copy()
        other.size, other.newlines, other.ends_line = self.size, self.newlines, self.ends_line
        other.step, other.marks = self.step, list(self.marks)
        return other

    def add(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.hash.update(chunk)
        start = 0
        while start < len(chunk):
            end = min(len(chunk), start + self.step - self.size % self.step)
            self.newlines += chunk.count(b"\n", start, end)
            self.size += end - start
            start = end
            if self.size % self.step == 0:
                self._mark()
        if chunk:
            self.ends_line = chunk.endswith(b"\n")

    def _mark(self) -> None:
        self.marks.append(self.newlines)
        if len(self.marks) > _MOST_MARKS:
            self.marks = self.marks[1::2]
            self.step *= 2

    @property
    def lines(self) -> int:
        """Lines so far; an empty text has none."""
        return self.newlines + (not self.ends_line)

    def index(self) -> LineIndex | None:
        """Return where lines are; None of a text too short to need it."""
        return LineIndex(self.step, tuple(self.marks)) if self.marks else None


class _Remembered:
    """States of the latest texts, by the hashes of their parts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: OrderedDict[bytes, Running] = OrderedDict()

    def put(self, hashes: Sequence[str], running: Running) -> None:
        key = _keys(hashes)[-1]
        with self._lock:
            self._states[key] = running.copy()
            self._states.move_to_end(key)
            while len(self._states) > _MOST_REMEMBERED:
                self._states.popitem(last=False)

    def longest(self, hashes: Sequence[str]) -> tuple[int, Running]:
        keys = _keys(hashes)
        with self._lock:
            for count in range(len(keys), 0, -1):
                running = self._states.get(keys[count - 1])
                if running is not None:
                    return count, running.copy()
        return 0, Running()


def _keys(hashes: Sequence[str]) -> list[bytes]:
    """Return a key for each beginning of a sequence of hashes."""
    hasher = hashlib.sha256()
    keys = []
    for each in hashes:
        hasher.update(each.encode())
        keys.append(hasher.digest())
    return keys


_remembered = _Remembered()


def remember(hashes: Sequence[str], running: Running) -> None:
    """Remember the state in which a text was left; `hashes` are those of its parts, of the whole when it is in one."""
    _remembered.put(hashes, running)


def recall(hashes: Sequence[str]) -> tuple[int, Running]:
    """Return how many of the first parts a remembered state covers, and that state; none and a fresh one otherwise."""
    return _remembered.longest(hashes)


class Measure:
    """Runs along a stream: size, hash, and for text its validity, lines and first characters."""

    def __init__(self, ports: EnginePorts, path: str, *, text: bool) -> None:
        self.ports = ports
        self.path = path
        self.size = 0
        self.running = Running() if text else None
        self.hash = hashlib.sha256() if self.running is None else self.running.hash
        self.decoder = codecs.getincrementaldecoder("utf-8")()
        self.start = ""

    def add(self, chunk: bytes) -> None:
        """Take the next bytes.

        Raises:
            LimitExceededError: They pass `max_file_bytes` (``FILE_TOO_LARGE``).
            InvalidInputError: It is to be text and is not UTF-8 (``INVALID_CONTENT``).
        """
        self.size += len(chunk)
        check_file_size(self.ports, self.path, self.size)
        if self.running is None:
            self.hash.update(chunk)
        else:
            self.running.add(chunk)
            self._decode(chunk)

    def finish(self) -> None:
        """Take the end: text must not stop within a character."""
        if self.running is not None:
            self._decode(b"", final=True)

    def _decode(self, chunk: bytes, *, final: bool = False) -> None:
        try:
            text = self.decoder.decode(chunk, final)
        except UnicodeDecodeError:
            raise InvalidInputError(
                f"The stream for {self.path} is not UTF-8; leave encoding out to store it as binary.",
                code=ErrorCode.INVALID_CONTENT,
                details={"path": self.path},
            ) from None
        if len(self.start) <= PREVIEW_CHARACTERS:
            self.start += text[: PREVIEW_CHARACTERS + 1]

    def content(self) -> NewContent:
        """Describe what passed."""
        digest = self.hash.hexdigest()
        if self.running is None:
            return NewContent(kind="b", size=self.size, sha256=digest)
        remember((digest,), self.running)
        return NewContent(
            kind="t",
            size=self.size,
            sha256=digest,
            lines=self.running.lines,
            preview=preview_of(self.start),
            line_index=self.running.index(),
        )
