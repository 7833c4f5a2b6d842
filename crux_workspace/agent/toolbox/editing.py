"""What editFile does to a text, and how it tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from crux_workspace.errors import EditError, ErrorCode, InvalidInputError

__all__ = ["TextEdit"]

_MOST_LINES = 20


@dataclass(slots=True)
class TextEdit:
    """One exact replacement in a file's bytes, and the message about it."""

    path: str
    """As the model gave it."""
    old: str
    new: str
    replace_all: bool
    message: str = ""

    def apply(self, data: bytes) -> bytes:
        """Return the file's new bytes and set `message`.

        Raises:
            InvalidInputError: The bytes, or the new text, are no UTF-8 (``INVALID_CONTENT``).
            EditError: The text is not there, or there more than once (``EDIT_NOT_FOUND``, ``EDIT_AMBIGUOUS``).
        """
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            raise InvalidInputError(
                f"editFile: {self.path} is not valid UTF-8; the file was left as it is.",
                code=ErrorCode.INVALID_CONTENT,
                details={"path": self.path},
            ) from None
        hits = _overlapping(text, self.old)
        if not hits:
            raise self._not_found(text)
        if len(hits) > 1 and not self.replace_all:
            raise EditError(
                f"oldText occurs {len(hits)} times in {self.path}; include more surrounding text or set replaceAll",
                code=ErrorCode.EDIT_AMBIGUOUS,
                details={
                    "path": self.path,
                    "hits": len(hits),
                    "lines": _lines(text, hits)[:_MOST_LINES],
                },
            )
        if self.old == self.new:
            self.message = f"no change: newText is identical to oldText in {self.path}; the file was not written"
            return data
        self.message = self._told(text)
        try:
            return text.replace(self.old, self.new).encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInputError(
                "editFile: newText holds lone surrogates, which are no text; the file was left as it is.",
                code=ErrorCode.INVALID_CONTENT,
                details={"path": self.path},
            ) from None

    def _not_found(self, text: str) -> EditError:
        hint = None
        message = f"oldText not found in {self.path}"
        if "\r\n" in text and re.search(r"(?<!\r)\n", self.old):
            hint = "The file ends its lines with CRLF, oldText with a bare \\n; use \\r\\n."
            message += "; the file uses CRLF line endings but oldText has bare \\n"
        return EditError(message, details={"path": self.path}, hint=hint or "Read the file again.")

    def _told(self, text: str) -> str:
        lines = _lines(text, _separate(text, self.old))
        if len(lines) == 1:
            return f"replaced 1 occurrence in {self.path} at line {lines[0]}"
        shown = ", ".join(str(line) for line in lines[:_MOST_LINES])
        more = f", and {len(lines) - _MOST_LINES} more" if len(lines) > _MOST_LINES else ""
        return f"replaced {len(lines)} occurrences in {self.path} at lines {shown}{more}"


def _overlapping(text: str, wanted: str) -> list[int]:
    found = []
    at = text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + 1)
    return found


def _separate(text: str, wanted: str) -> list[int]:
    found = []
    at = text.find(wanted)
    while at >= 0:
        found.append(at)
        at = text.find(wanted, at + len(wanted))
    return found


def _lines(text: str, places: Sequence[int]) -> list[int]:
    """Return the line of each place, from 1; places ascend."""
    lines = []
    line, at = 1, 0
    for place in places:
        line += text.count("\n", at, place)
        at = place
        lines.append(line)
    return lines
