"""The bytes of files: whole and checked, or streamed and taken up again where the connection broke."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.http.calling import Caller
from crux_workspace.http.connection import Answer, Broken, Request, whole
from crux_workspace.http.problems import corrupt, unexpected

__all__ = ["check_bytes", "read_whole", "streamed"]

ROUTE = "/v1/file"
_PART = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", re.ASCII).fullmatch


async def read_whole(caller: Caller, arguments: Mapping[str, Any], namespace: str | None) -> bytes:
    """Return a file's bytes, or its text or JSON value as bytes.

    Raises:
        StorageError: They are not the bytes that the service tells of (``RECORD_CORRUPT``).
    """
    request = Request("GET", ROUTE, await caller.query(namespace, arguments), caller.headers())

    async def take(answer: Answer) -> bytes:
        check_bytes(answer)
        body = await whole(answer.body)
        expected = answer.headers.get("x-workspace-sha256")
        if expected is not None and hashlib.sha256(body).hexdigest() != expected:
            raise corrupt("the bytes do not match their hash")
        return body

    data: bytes = await caller.core.connection.send(request, take)
    return data


async def streamed(
    caller: Caller,
    arguments: Mapping[str, Any],
    namespace: str | None,
    offset: int,
    length: int | None,
) -> AsyncGenerator[bytes, None]:
    """Iterate over a part of a file; after a failure it goes on behind what was given, in the same version."""
    query = await caller.query(namespace, arguments)
    place = _Place(offset, None if length is None else offset + length)
    if length == 0:
        await caller.core.connection.send(Request("HEAD", ROUTE, query, caller.headers()), _nothing)
        return
    failures = 0
    while True:
        try:
            async with aclosing(_pieces(caller, query, place)) as pieces:
                async for piece in pieces:
                    failures = 0
                    yield piece
            place.check()
            return
        except Broken as broken:
            failures += 1
            if failures >= caller.core.connection.max_attempts or not place.may_resume:
                raise broken.error from broken.__cause__
            query = place.resumed(query)
            await caller.core.connection.pause(failures, broken)


def check_bytes(answer: Answer, statuses: tuple[int, ...] = (200,)) -> None:
    """Refuse an answer that holds no bytes of a file (``RECORD_CORRUPT``)."""
    if answer.status not in statuses:
        raise unexpected(answer.status, answer.headers, "a file's bytes")


async def _nothing(answer: Answer) -> None:
    """There is a file, and nothing of it is wanted."""
    check_bytes(answer)


class _Place:
    """How far a stream has come."""

    def __init__(self, offset: int, end: int | None) -> None:
        self.offset = offset
        """The first byte that is still wanted."""
        self.end = end
        """The first byte that is not wanted any more."""
        self.last: int | None = None
        """Where the part ends that is answered; None for what is answered from the start."""
        self.skip = 0
        """Bytes to pass over, of a service that cannot begin in the middle."""
        self.version: str | None = None
        self.may_resume = True
        self.expected: str | None = None
        """Hash of the whole file, as the service tells it."""
        self._hash = hashlib.sha256() if offset == 0 and end is None else None

    @property
    def is_over(self) -> bool:
        """Whether everything that is wanted was given."""
        return self.end is not None and self.offset >= self.end

    def header(self) -> dict[str, str]:
        """Return the range that is still wanted."""
        if self.offset == 0 and self.end is None:
            return {}
        return {"Range": f"bytes={self.offset}-{'' if self.end is None else self.end - 1}"}

    def resumed(self, query: dict[str, str]) -> dict[str, str]:
        """Return the query that goes on in the version that was begun."""
        if self.version is None or "at" in query:
            return query
        return {**query, "version": self.version}

    def begun(self, answer: Answer) -> None:
        """Take in which version it is, and whether it can be taken up again."""
        check_bytes(answer, (200, 206))
        self.may_resume = "etag" in answer.headers
        self.last = None
        if answer.status == 200:
            self.skip = self.offset
        else:
            self.last = self._end_of(answer.headers.get("content-range", ""))
        version = answer.headers.get("x-workspace-version")
        if self.version not in (None, version):
            raise corrupt("another version than the one that was begun")
        self.version = version
        self.expected = answer.headers.get("x-workspace-sha256")

    def _end_of(self, told: str) -> int:
        """Return where a part ends, if it is the one that was asked for."""
        part = _PART(told)
        if part is not None and self.header():
            first, last, total = map(int, part.groups())
            end = total if self.end is None else min(self.end, total)
            if first == self.offset and last + 1 == end:
                return end
        raise corrupt("another part of the file than was asked for")

    def wanted(self, piece: bytes) -> bytes:
        """Return what is wanted of a piece that arrived."""
        passed = min(self.skip, len(piece))
        self.skip -= passed
        piece = piece[passed:]
        if self.end is not None:
            piece = piece[: self.end - self.offset]
        self.offset += len(piece)
        if self._hash is not None:
            self._hash.update(piece)
        return piece

    def check(self) -> None:
        """Refuse bytes that are not those that the service tells of (``RECORD_CORRUPT``)."""
        if self.last is not None and self.offset < self.last:
            raise corrupt("fewer bytes than the part has")
        if self._hash is None or self.expected in (None, self._hash.hexdigest()):
            return
        raise corrupt("the bytes do not match their hash")


async def _pieces(
    caller: Caller, query: dict[str, str], place: _Place
) -> AsyncGenerator[bytes, None]:
    request = Request("GET", ROUTE, query, {**caller.headers(), **place.header()})
    try:
        async with caller.core.connection.opened(request) as answer:
            place.begun(answer)
            async for piece in answer.body:
                if wanted := place.wanted(piece):
                    yield wanted
                if place.is_over:
                    return
    except InvalidInputError as error:
        if error.details.get("size", place.offset + 1) > place.offset:
            raise  # it is not that there is nothing behind the offset
