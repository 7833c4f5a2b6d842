"""Which bytes of a file a request wants, and whether it has them already."""

from __future__ import annotations

import re
from dataclasses import dataclass

from crux_workspace.errors import ErrorCode
from crux_workspace.server.problems import Refusal

__all__ = ["Span", "matches", "span_of", "tags_in"]

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of a file."""

    offset: int
    length: int
    size: int
    partial: bool

    @property
    def content_range(self) -> str:
        """Value of ``Content-Range``."""
        return f"bytes {self.offset}-{self.offset + self.length - 1}/{self.size}"


def span_of(header: str | None, size: int) -> Span:
    """Return the bytes that a ``Range`` header wants; a header that is malformed, or names several ranges, counts for nothing.

    Raises:
        Refusal: It wants bytes that are not there (416).
    """
    found = None if header is None else _RANGE.fullmatch(header.replace(" ", ""))
    if found is None or not (found[1] or found[2]):
        return Span(0, size, size, partial=False)
    if not found[1]:
        length = min(int(found[2]), size)
        first, last = size - length, size - 1
    else:
        first = int(found[1])
        last = min(int(found[2]), size - 1) if found[2] else size - 1
        if found[2] and int(found[2]) < first:
            return Span(0, size, size, partial=False)
    if first >= size or first > last:
        raise Refusal(
            416,
            f"The file has {size} bytes; none of them is in the range.",
            code=ErrorCode.INVALID_ARGUMENT,
            details={"size": size},
            headers={"content-range": f"bytes */{size}"},
        )
    return Span(first, last - first + 1, size, partial=True)


def tags_in(header: str) -> list[str]:
    """Return the ETags that a header lists; our tags hold no comma."""
    return [tag.strip() for tag in header.split(",")]


def matches(header: str | None, etag: str) -> bool:
    """Tell whether ``If-None-Match`` names the file as it is; weak and strong tags compare alike."""
    if header is None:
        return False
    if header.strip() == "*":
        return True
    return any(tag.removeprefix("W/") == etag for tag in tags_in(header))
