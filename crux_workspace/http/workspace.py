"""`HttpWorkspace`: a workspace on the other side of an HTTP service."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Generator
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from crux_workspace.errors import InvalidInputError
from crux_workspace.http import decoding
from crux_workspace.http.address import Address
from crux_workspace.http.calling import Caller, HttpCore
from crux_workspace.http.connection import Connection, Request
from crux_workspace.http.prompts import HttpPrompts
from crux_workspace.http.session import session_of
from crux_workspace.http.transaction import HttpTransaction, HttpTransactionRequest
from crux_workspace.http.versions import HttpVersions
from crux_workspace.http.view import HttpView
from crux_workspace.http.watching import HttpWatchHandle, begin_watch
from crux_workspace.model.events import OnError, WatchStart
from crux_workspace.model.extras import need_extra
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import MOST, needed_number
from crux_workspace.model.paths import PathLike, check_namespace, check_workspace_id
from crux_workspace.model.settings import Mount, NamespaceSetting, ToolOptions

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpWorkspace"]

_T = TypeVar("_T")


class HttpWorkspace(HttpVersions, HttpPrompts):
    """The files that ``crux-workspace serve`` serves, with the methods, results and errors of a `Workspace`.

    Enter it with ``async with``, or await it. It belongs to the event loop of its first call. Reads are sent again when the connection
    breaks; so are changes, under an idempotency key, so that each takes effect once. What cannot be reached is ``STORE_UNAVAILABLE``,
    what answers too late ``STORE_TIMEOUT``, an answer that is none ``RECORD_CORRUPT``. Redirections are not followed, and the token
    goes to `base_url` alone.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: str | None = None,
        id: str | None = None,
        namespace: NamespaceSetting = None,
        tools: ToolOptions | None = None,
        timeout_ms: int = 90_000,
        max_attempts: int = 4,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        """Make the client; no request is sent.

        Args:
            base_url: Address of the service, http or https, with a path where a proxy puts it there.
            token: Bearer token; None for a service that needs none. It is never shown.
            id: Id that the workspace has to have; None takes whatever is served.
            namespace: The namespace of calls that name none, or a callable that tells it; None is the token's own.
            tools: Which tools it makes for models.
            timeout_ms: How long the service may be silent during a call.
            max_attempts: How often a request is sent when the connection breaks, or the service is busy.
            client: Use this client, e.g. for a proxy or certificates of one's own; whoever made it closes it.

        Raises:
            InvalidInputError: A bad address, token or option (``INVALID_ARGUMENT``).
            UnsupportedError: httpx is not installed (``CAPABILITY_MISSING``).
        """
        for module in ("httpx", "tenacity"):
            need_extra(module, "http")
        if isinstance(namespace, str):
            check_namespace(namespace)
        elif namespace is not None and not callable(namespace):
            raise InvalidInputError("namespace must be a string, a callable or None.")
        for name, value in (("timeout_ms", timeout_ms), ("max_attempts", max_attempts)):
            needed_number(name, value, most=MOST)
        connection = Connection(
            Address(base_url, token),
            client=client,
            timeout_ms=timeout_ms,
            max_attempts=max_attempts,
        )
        core = HttpCore(
            connection=connection,
            namespace=namespace,
            expected_id=None if id is None else check_workspace_id(id),
            tools=tools or ToolOptions(),
        )
        self._be(Caller(core, None, None), is_view=False)

    def _be(self, caller: Caller, *, is_view: bool) -> Self:
        self._caller = caller
        self._is_view = is_view
        return self

    def _view(self, bound: str | None, actor: str | None) -> HttpWorkspace:
        caller = Caller(self._caller.core, bound, actor)
        return HttpWorkspace.__new__(HttpWorkspace)._be(caller, is_view=True)

    def __repr__(self) -> str:
        core = self._caller.core
        return f"HttpWorkspace(base_url={core.connection.base!r}, bound={self._caller.bound!r})"

    def _as_workspace(self) -> HttpWorkspace:
        return self

    # -- what it is

    @property
    def id(self) -> str:
        """Id of the workspace; known once it is open."""
        return self._caller.core.opened().id

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts that the token shows, by path; known once it is open."""
        return self._caller.core.opened().mounts

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._caller.core.closed

    def describe(self) -> dict[str, object]:
        """Return what the workspace was when it was opened, as plain data, as `Workspace.describe` does. No I/O."""
        return copy.deepcopy(self._caller.core.opened().description)

    # -- views

    def for_namespace(self, namespace: str) -> HttpWorkspace:
        """Return a view bound to a namespace, as `Workspace.for_namespace` does; no I/O.

        Raises:
            InvalidInputError: A blank or oversized name, or this view is bound already (``INVALID_ARGUMENT``).
        """
        if self._caller.bound is not None:
            raise InvalidInputError("This view is bound to a namespace already.")
        return self._view(check_namespace(namespace), self._caller.actor)

    def acting_as(self, actor: str) -> HttpWorkspace:
        """Return a view whose commits carry an actor, where the token lets the client say who acts.

        Raises:
            InvalidInputError: A blank or oversized name (``INVALID_ARGUMENT``).
        """
        return self._view(self._caller.bound, check_label("actor", actor))

    def at(self, moment: int | datetime, *, namespace: str | None = None) -> HttpView:
        """Return a read-only view of the tree as of a commit, as `Workspace.at` does; no I/O.

        Raises:
            InvalidInputError: A datetime without time zone (``INVALID_ARGUMENT``).
        """
        bound = self._caller.bound
        if namespace is not None:
            bound = self.for_namespace(namespace)._caller.bound
        return HttpView(Caller(self._caller.core, bound, None), moment)

    # -- transactions

    @overload
    def transaction(
        self,
        callback: None = None,
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> HttpTransactionRequest[None]: ...

    @overload
    def transaction(
        self,
        callback: Callable[[HttpTransaction], Awaitable[_T]],
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> HttpTransactionRequest[_T]: ...

    @overload
    def transaction(
        self,
        callback: Callable[[HttpTransaction], _T],
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> HttpTransactionRequest[_T]: ...

    def transaction(
        self,
        callback: Callable[[HttpTransaction], Any] | None = None,
        *,
        max_attempts: int = 1,
        idempotency_key: str | None = None,
        namespace: str | None = None,
    ) -> HttpTransactionRequest[Any]:
        """Make several changes one commit, as `Workspace.transaction` does.

        The service holds the transaction open: it reads the namespace as of its start plus its own writes, and is judged as a local one
        is. Each call in it is one request, its begin and its end one each.
        """
        return HttpTransactionRequest(
            self._caller, callback, max_attempts, idempotency_key, namespace
        )

    # -- watching

    def watch(
        self,
        path: PathLike | None = None,
        *,
        recursive: bool | None = None,
        cursor: str | None = None,
        start: WatchStart = "tail",
        poll_interval_ms: int = 250,
        limit: int = 100,
        on_error: OnError | None = None,
        namespace: str | None = None,
    ) -> HttpWatchHandle:
        """Follow the changes of a namespace, as `Workspace.watch` does: each event once, in order, without a gap.

        They come as server-sent events. When the connection breaks or the service restarts, the watch goes on right behind its last
        event; `on_error` is told meanwhile. Everything that this client changes after this call is delivered, and what others change after
        `HttpWatchHandle.ready`. The service decides how much it reads at once: `limit` is taken for its form only.
        """
        return begin_watch(
            self._caller,
            path,
            recursive=recursive,
            cursor=cursor,
            start=start,
            poll_interval_ms=poll_interval_ms,
            limit=limit,
            on_error=on_error,
            namespace=namespace,
        )

    async def cursor(self, *, namespace: str | None = None) -> str:
        """Return the log's end, as `Workspace.cursor` does."""
        return await self._caller.ask("cursor", {}, namespace, decoding.text)

    # -- life

    async def open(self) -> Self:
        """Ask the service what it serves; entering and awaiting do the same. A second time it asks again.

        Raises:
            PermissionDeniedError: The token is not known (``PERMISSION_DENIED``).
            InvalidInputError: Another workspace is served than `id` names (``INVALID_ARGUMENT``).
            StorageError: The service cannot be reached, or is none (``STORE_UNAVAILABLE``, ``RECORD_CORRUPT``).
        """
        core = self._caller.core
        core.enter()
        headers = self._caller.headers()
        rights = await core.connection.json(Request("GET", "/v1/session", {}, headers))
        described = await core.connection.json(Request("GET", "/v1/describe", {}, headers))
        session = session_of(rights, described)
        if core.expected_id not in (None, session.id):
            raise InvalidInputError(
                f"The service at {core.connection.base} serves another workspace than the one that id names.",
                details={"option": "id"},
            )
        core.session = session
        return self

    def __await__(self) -> Generator[Any, None, Self]:
        return self.open().__await__()

    async def aclose(self) -> None:
        """End its watches, wait for changes on their way, and close its connections; idempotent. A view closes nothing."""
        if not self._is_view:
            await self._caller.core.aclose()

    async def __aenter__(self) -> Self:
        try:
            return await self.open()
        except BaseException:
            await self.aclose()
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
