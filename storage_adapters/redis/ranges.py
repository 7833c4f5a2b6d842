"""Ranges of names, as sorted sets with equal scores know them."""

from __future__ import annotations

from crux_workspace.storage.layout import prefix_end

__all__ = ["range_of"]


def range_of(
    prefix: str, after: str | None, before: str | None, delimiter: str | None
) -> tuple[bytes, bytes] | None:
    """Return (low, high) of a scan as ZRANGEBYLEX takes them, or None when the range is empty.

    An `after` that is a common prefix passes over everything below it.
    """
    low, sign = prefix, b"["
    if after is not None and after >= prefix:
        low, sign = after, b"("
        if delimiter and len(after) > len(prefix) and after.endswith(delimiter):
            behind = prefix_end(after)
            if behind is None:
                return None
            low, sign = behind, b"["
    high = prefix_end(prefix)
    if before is not None and (high is None or before < high):
        high = before
    if high is not None and low >= high:
        return None
    return sign + low.encode(), b"+" if high is None else b"(" + high.encode()
