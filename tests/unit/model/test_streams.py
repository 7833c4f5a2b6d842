from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from crux_workspace.model.streams import at_most


class Source:
    """A generator's chunks, counted, and whether it was closed."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks
        self.taken = 0
        self.closed = False

    async def stream(self) -> AsyncGenerator[bytes, None]:
        try:
            for chunk in self.chunks:
                self.taken += 1
                yield chunk
        finally:
            self.closed = True


@pytest.mark.parametrize(
    ("chunks", "most", "found", "taken"),
    [
        ((), 0, b"", 0),
        ((b"",), 0, b"", 1),
        ((b"ab", b"c"), 3, b"abc", 2),
        ((b"ab", b"c"), 2, None, 2),
        ((b"ab", b"c", b"d"), 1, None, 1),
    ],
)
async def test_no_more_is_taken_than_says_that_there_is_too_much(
    chunks: tuple[bytes, ...], most: int, found: bytes | None, taken: int
) -> None:
    source = Source(*chunks)
    assert await at_most(source.stream(), most) == found
    assert (source.taken, source.closed) == (taken, True)


async def test_an_iterator_that_cannot_be_closed_is_read_too() -> None:
    class Plain:
        left = 2

        def __aiter__(self) -> AsyncIterator[bytes]:
            return self

        async def __anext__(self) -> bytes:
            if not self.left:
                raise StopAsyncIteration
            self.left -= 1
            return b"x"

    assert await at_most(Plain(), 2) == b"xx"
