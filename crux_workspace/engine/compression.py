"""How the bodies of older versions are written: whole, or as the difference from a newer text. Nothing here reads a store.

A difference is a zstd frame whose dictionary is the newer text itself. Versions fall into groups of `GROUP` by their number, and a
difference never leads out of its group: that bounds what one read decodes, whatever the length of the history.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "DIFFERENCE",
    "GROUP",
    "WHOLE",
    "compressed",
    "difference",
    "group_end",
    "restored",
    "smallest",
]

WHOLE = "z"
"""Encoding of a body that is compressed by itself."""
DIFFERENCE = "d"
"""Encoding of a body that is the difference from a newer version's text."""
GROUP = 32
"""Versions 1 to 32 are the first group, 33 to 64 the second: no chain of differences is longer."""

_LEVEL = 1
_NO_EFFORT = -100
"""Level that only puts a frame around bytes."""
_PLAIN_TABLE_BYTES = 1 << 17
"""Beyond this size the level's own table is too small to find what two texts share."""
_LARGEST_TABLE_LOG = 20
_CLEARLY_SMALL = 4
"""A difference below this part of its text is taken without a look at the alternative."""


@cache
def _zstd() -> ModuleType:
    """Import the library when the first body needs it."""
    import zstandard

    return zstandard


def group_end(version: int) -> int:
    """Return the last version of a version's group."""
    return -(-version // GROUP) * GROUP


def compressed(data: bytes) -> bytes:
    """Write bytes by themselves."""
    frame: bytes = _zstd().ZstdCompressor(level=_LEVEL).compress(data)
    return frame


def difference(data: bytes, newer: bytes) -> bytes:
    """Write bytes as what they differ in from a newer text, which is needed to read them back."""
    zstd = _zstd()
    sizes: dict[str, int] = {}
    if len(newer) > _PLAIN_TABLE_BYTES:
        sizes["window_log"] = (len(data) + len(newer)).bit_length()
        sizes["hash_log"] = min(_LARGEST_TABLE_LOG, len(newer).bit_length() - 1)
    parameters = zstd.ZstdCompressionParameters.from_level(
        _LEVEL, source_size=len(data), dict_size=len(newer), **sizes
    )
    text = zstd.ZstdCompressionDict(newer, dict_type=zstd.DICT_TYPE_RAWCONTENT)
    compressor = zstd.ZstdCompressor(compression_params=parameters, dict_data=text)
    frame: bytes = compressor.compress(data)
    return frame


def smallest(data: bytes, newer: bytes | None) -> tuple[str, bytes] | None:
    """Return the encoding that takes clearly the fewest bytes, and its bytes; None when the text is best left as it is.

    A difference that saves little is not worth its chain: then the text is written by itself.
    """
    frame = difference(data, newer) if newer else None
    if frame is not None and len(frame) * _CLEARLY_SMALL < len(data):
        return DIFFERENCE, frame
    whole = compressed(data)
    if frame is not None and len(frame) * 2 < min(len(whole), len(data)):
        return DIFFERENCE, frame
    return (WHOLE, whole) if len(whole) < len(data) else None


def restored(
    whole: bytes, *, is_raw: bool, differences: Sequence[bytes], sizes: Sequence[int]
) -> bytes:
    """Read a text back from a chain.

    Args:
        whole: Body of the chain's newest version.
        is_raw: Whether that one is written as it is, not compressed.
        differences: Bodies of the versions below it, newest first; the last one is the text that is wanted.
        sizes: How many bytes each of them has when it is restored, the whole one first.

    Raises:
        ValueError: The bytes are not such a chain, or a text is not as large as it should be. Nothing larger is ever allocated.
    """
    zstd = _zstd()
    first = zstd.ZstdCompressor(level=_NO_EFFORT).compress(whole) if is_raw else whole
    frames = [first, *differences]
    try:
        for frame, size in zip(frames, sizes, strict=True):
            if zstd.frame_content_size(frame) != size:
                raise ValueError("a frame does not have the size of its text")
        text: bytes = zstd.ZstdDecompressor().decompress_content_dict_chain(frames)
    except zstd.ZstdError as error:
        raise ValueError(str(error)) from error
    return text
