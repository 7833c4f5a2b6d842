"""One request on its way to the workspace: who calls, on which namespace, with what, and what it expects."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator
from time import monotonic
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
from starlette.requests import Request

from crux_workspace.errors import ErrorCode, LimitExceededError
from crux_workspace.model.files import WorkspaceFile
from crux_workspace.operations.space import digest_of
from crux_workspace.server.principals import Principal
from crux_workspace.server.problems import Refusal, failed_precondition, too_large
from crux_workspace.server.ranges import tags_in
from crux_workspace.server.shapes import CommonQuery, NoQuery, PastQuery
from crux_workspace.server.wire import (
    as_if_version,
    check_charset,
    decode_body,
    etag_of,
    moment_of,
    parse_query,
)

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace
    from crux_workspace.api.transaction import Transaction
    from crux_workspace.api.view import WorkspaceView
    from crux_workspace.server.dispatching import Service
    from crux_workspace.server.route import Route

__all__ = ["ACTOR", "IDEMPOTENCY_KEY", "STEP", "TRANSACTION", "Call"]

ACTOR = "workspace-actor"
IDEMPOTENCY_KEY = "idempotency-key"
TRANSACTION = "workspace-transaction"
STEP = "workspace-step"
"""Header that numbers the changes of an open transaction from 1, so that one whose answer was lost can be sent again."""
_JSON_TYPES = ("application/json",)
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_NO_ID = "0" * 32
"""The id of no file, which a verb refuses unless it knows the key."""
_ONE_TAG = re.compile(r'"[0-9a-f]{32}\.[0-9]{1,19}"')


class Call:
    """A request that was let in."""

    __slots__ = (
        "_is_over",
        "_workspace",
        "body",
        "conditional",
        "gathered",
        "held",
        "principal",
        "query",
        "request",
        "route",
        "service",
        "streamed",
    )

    def __init__(
        self, service: Service, route: Route, request: Request, principal: Principal
    ) -> None:
        self.service = service
        self.route = route
        self.request = request
        self.principal = principal
        self.query: Any = NoQuery()
        self.body: Any = None
        self.held = 0
        """Bytes of its body, and of what it reads, that are counted as kept in memory."""
        self.gathered = 0
        """Bytes of content that it has read."""
        self.streamed: str | None = None
        """Hash of the body of a numbered change, once it has come whole."""
        self.conditional = False
        """Headers say which version it has to find: a conflict is the answer to them."""
        self._is_over = False
        self._workspace: Workspace | None = None

    async def read(self) -> None:
        """Take in the query and the JSON body.

        Raises:
            Refusal: They are not what the route takes.
        """
        self.query = parse_query(self.request.scope["query_string"], self.route.query)
        if self.route.body is not None:
            self.body = decode_body(await self.json_body(), self.route.body)

    # -- the workspace it is about

    @property
    def namespace(self) -> str:
        """The namespace it works on."""
        given = self.query.namespace if isinstance(self.query, CommonQuery) else None
        return self.principal.namespace(given)

    @property
    def namespace_or_none(self) -> str | None:
        """The namespace it works on, where its route is about one."""
        return self.namespace if isinstance(self.query, CommonQuery) else None

    @property
    def workspace(self) -> Workspace:
        """The workspace as its sender may see it, bound to the namespace."""
        if self._workspace is None:
            claimed = self._label(ACTOR)
            self._workspace = self.principal.view(self.namespace, claimed)
        return self._workspace

    @property
    def transaction(self) -> str | None:
        """The open transaction that it belongs to."""
        return self.request.headers.get(TRANSACTION)

    @property
    def tree(self) -> Workspace | WorkspaceView:
        """What it reads: the workspace, or the tree as it was."""
        moment = self.query.at if isinstance(self.query, PastQuery) else None
        workspace = self.workspace
        return workspace if moment is None else workspace.at(moment_of(moment))

    @property
    def idempotency_key(self) -> str | None:
        """The key that makes a repeated request take effect once."""
        return self.principal.key(self._label(IDEMPOTENCY_KEY))

    def _label(self, name: str) -> str | None:
        """Return a header that may say any text: percent-encoded UTF-8."""
        values = self.request.headers.getlist(name)
        if not values:
            return None
        if len(values) > 1 or not values[0].strip() or _BAD_ESCAPE.search(values[0]):
            raise Refusal(400, f"{name} must be given once, as percent-encoded UTF-8.")
        try:
            return unquote(values[0], errors="strict")
        except UnicodeDecodeError:
            raise Refusal(400, f"{name} must be given once, as percent-encoded UTF-8.") from None

    # -- what it expects

    @property
    def expects(self) -> bool:
        """Whether headers of a change name the file that it is about."""
        headers = self.request.headers
        return "if-match" in headers or "if-none-match" in headers

    def demands_version(self, given: dict[str, Any]) -> bool:
        """Tell whether headers say which version a change must find.

        Raises:
            Refusal: Its arguments say it too.
        """
        if not self.expects or "path" not in given:
            return False
        if given.get("if_version") is not None:
            raise Refusal(400, "Name the expected version once: by a header, or by if_version.")
        self.conditional = "if_version" in given
        return self.conditional

    async def expected(
        self, reader: Workspace | Transaction, path: str
    ) -> int | WorkspaceFile | None:
        """Return what ``If-Match`` or ``If-None-Match`` of a change demand, as ``if_version``.

        What is repeated under its idempotency key is told its answer again, whatever the file is by now: with a key the verb judges.

        Raises:
            Refusal: The file is none of those that they name (412).
        """
        headers = self.request.headers
        wanted, unwanted = headers.get("if-match"), headers.get("if-none-match")
        if wanted is not None and unwanted is not None:
            raise Refusal(400, "A change takes If-Match or If-None-Match, not both.")
        if unwanted is not None:
            if unwanted.strip() != "*":
                raise Refusal(400, "If-None-Match of a change can only be *.")
            return 0
        if wanted is None:
            return None
        if _ONE_TAG.fullmatch(wanted.strip()):
            return as_if_version(wanted.strip(), path)  # judged by the verb, which knows its key
        file = await reader.stat(path)
        if file is None or (wanted.strip() != "*" and etag_of(file) not in tags_in(wanted)):
            if self.idempotency_key is not None and self.transaction is None:
                return WorkspaceFile(path, id=_NO_ID, version=1)
            current = None if file is None else file.version
            raise failed_precondition(path, {"current_version": current})
        return file

    # -- what it reads

    def gather(self, path: str, size: int) -> None:
        """Count content that it is about to read.

        Raises:
            LimitExceededError: It is too much for one request (``FILE_TOO_LARGE``).
            Refusal: All requests hold too much together (503).
        """
        most = self.service.limits.max_read_bytes
        if self.gathered + size > most:
            raise LimitExceededError(
                f"{path} is too large for this request, which may read {most} bytes.",
                code=ErrorCode.FILE_TOO_LARGE,
                details={"path": path, "size": size, "limit": most},
                hint="Read a window of it, fewer files at once, or its bytes by GET /v1/file.",
            )
        self._hold(size)
        self.gathered += size

    def forget_read(self) -> None:
        """Begin to count anew: what was read is let go of, and read again."""
        self._hold(-self.gathered)
        self.gathered = 0

    def _hold(self, size: int) -> None:
        if not self._is_over:
            self.service.hold(size)
            self.held += size

    def release(self) -> None:
        """Let go of what it holds; what still goes on for its sake is not counted any more."""
        self.service.hold(-self.held)
        self.held = 0
        self._is_over = True

    # -- which request it is

    def digest(self) -> str:
        """Hash what two requests under one number must agree on, a streamed body aside."""
        asked = json.dumps(msgspec.to_builtins([self.query, self.body]), sort_keys=True)
        names = ("if-match", "if-none-match", IDEMPOTENCY_KEY)
        headers = [self.request.headers.get(name) for name in names]
        return digest_of(f"{self.request.method} {self.route.path}", [asked, *headers])

    async def take_streamed(self) -> None:
        """Take in a streamed body for its hash alone."""
        if self.streamed is None:
            async for _ in self.body_chunks(self.service.limits.max_body_bytes):
                pass

    # -- its body

    async def json_body(self) -> bytes:
        """Return a JSON body whole.

        Raises:
            Refusal: It is of another type, too large or too slow.
        """
        limit = self.service.limits.max_json_bytes
        given = self.request.headers.get("content-type", "")
        if given.partition(";")[0].strip().lower() not in _JSON_TYPES:
            raise Refusal(
                415,
                "The body must be application/json.",
                hint="Send the header Content-Type: application/json.",
            )
        check_charset(given)
        return await self.whole_body(limit)

    async def whole_body(self, limit: int, *, encodings: tuple[str, ...] = ()) -> bytes:
        """Return a body that fits into memory; `encodings` are let through as they are."""
        parts = []
        async for chunk in self.body_chunks(limit, encodings=encodings):
            self._hold(len(chunk))
            parts.append(chunk)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def body_chunks(
        self, limit: int, *, encodings: tuple[str, ...] = ()
    ) -> AsyncIterator[bytes]:
        """Iterate over the body as it arrives.

        Raises:
            Refusal: It is encoded, too large (413) or too slow (408).
        """
        headers = self.request.headers
        if headers.get("content-encoding", "identity").lower() not in ("identity", *encodings):
            raise Refusal(415, "A body cannot be compressed; send it as it is.")
        declared = headers.get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            raise too_large(limit)
        taken = 0
        hasher = hashlib.sha256() if STEP in headers and self.route.raw_body else None
        limits = self.service.limits
        began = monotonic()
        chunks = aiter(self.request.stream())
        while True:
            try:
                async with asyncio.timeout(limits.idle_seconds):
                    chunk = await anext(chunks)
                    if taken < limits.slowest_taken(monotonic() - began):
                        raise TimeoutError
            except StopAsyncIteration:
                self.streamed = None if hasher is None else hasher.hexdigest()
                return
            except TimeoutError:
                raise Refusal(
                    408, "The body came in too slowly.", retryable=True, close=True
                ) from None
            taken += len(chunk)
            if taken > limit:
                raise too_large(limit)
            if chunk:
                if hasher is not None:
                    hasher.update(chunk)
                yield chunk
