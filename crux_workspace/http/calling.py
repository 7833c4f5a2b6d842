"""The one seam that every call passes: usability, namespace, idempotency key, and who acts."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote
from weakref import WeakSet

from crux_workspace.errors import ErrorCode, InvalidInputError, StateError, WorkspaceError
from crux_workspace.http.connection import Connection, Request
from crux_workspace.http.problems import UNKNOWN_OUTCOME
from crux_workspace.http.routes import ROUTES, query_of
from crux_workspace.http.sending import Payload, body_of, put_fields
from crux_workspace.http.session import Session
from crux_workspace.model.clocks import random_id
from crux_workspace.model.labels import check_label
from crux_workspace.model.paths import check_namespace
from crux_workspace.model.settings import NamespaceRequest, NamespaceSetting, ToolOptions
from crux_workspace.model.usability import Usable
from crux_workspace.telemetry import active_provenance, trace_headers

__all__ = ["Caller", "HttpCore", "Stoppable"]

_T = TypeVar("_T")


class Stoppable:
    """Something that runs until it is stopped."""

    async def stop(self) -> None:
        """End it."""
        raise NotImplementedError


@dataclass(eq=False, slots=True, kw_only=True)
class HttpCore(Usable):
    """The shared part; `HttpWorkspace` objects are views of it."""

    connection: Connection
    namespace: NamespaceSetting
    expected_id: str | None
    tools: ToolOptions
    session: Session | None = None
    """What the service told of the workspace when it was opened."""
    watches: WeakSet[Stoppable] = field(default_factory=WeakSet)
    openings: set[asyncio.Future[None]] = field(default_factory=set)
    """Watches that do not know yet where they begin: changes wait for them."""
    in_flight: set[asyncio.Future[Any]] = field(default_factory=set)

    def _named(self) -> str:
        return "The workspace" if self.session is None else f"The workspace {self.session.id!r}"

    def opened(self) -> Session:
        """Return what the service told of the workspace.

        Raises:
            StateError: It was not asked yet (``WORKSPACE_CLOSED``).
        """
        if self.session is None:
            raise StateError(
                "The workspace is not open yet; enter it with 'async with', or await open().",
                code=ErrorCode.WORKSPACE_CLOSED,
            )
        return self.session

    async def aclose(self) -> None:
        """End watches, wait for changes on their way, close the connections; idempotent."""
        if self.process != os.getpid():
            return
        self.closed = True
        for watch in list(self.watches):
            await watch.stop()
        if self.in_flight:
            await asyncio.wait(self.in_flight)
        await self.connection.aclose()


class Caller:
    """Sends the calls of one view: a namespace it may be bound to, and an actor it may act as."""

    __slots__ = ("actor", "bound", "core")

    def __init__(self, core: HttpCore, bound: str | None, actor: str | None) -> None:
        self.core = core
        self.bound = bound
        self.actor = actor

    # -- what every request says

    def named(self, given: str | None) -> str | None:
        """Return the namespace that the view or the call names; None leaves it to the workspace.

        Raises:
            InvalidInputError: A bad name, or one on a view that is bound (``INVALID_ARGUMENT``).
        """
        if self.bound is None:
            return None if given is None else check_namespace(given)
        if given is not None:
            raise InvalidInputError(
                "This view is bound to a namespace; use the workspace itself to name another.",
                details={"option": "namespace"},
            )
        return self.bound

    async def namespace(
        self, given: str | None, request: NamespaceRequest | None = None
    ) -> str | None:
        """Resolve which namespace a call works on; None leaves it to the service.

        Raises:
            StateError: The workspace is closed, or used where it cannot be.
            InvalidInputError: A bad name, or one on a view that is bound (``INVALID_ARGUMENT``).
        """
        self.core.enter()
        named = self.named(given)
        if named is not None:
            return named
        setting = self.core.namespace
        if setting is None or isinstance(setting, str):
            return setting
        found = setting(NamespaceRequest() if request is None else request)
        return check_namespace(await found if inspect.isawaitable(found) else found)

    def headers(self) -> dict[str, str]:
        """Return the headers of this view's requests: who acts, by default the run of the active span, and the trace they are part of."""
        found = trace_headers()
        if (actor := self.actor or _active_run()) is not None:
            found["Workspace-Actor"] = quote(actor, safe=" ")
        return found

    async def query(self, namespace: str | None, arguments: Mapping[str, Any]) -> dict[str, str]:
        """Return arguments as a query string takes them, with the namespace."""
        resolved = await self.namespace(namespace)
        found = query_of(arguments)
        if resolved is not None:
            found["namespace"] = resolved
        return found

    # -- the calls

    async def ask(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        namespace: str | None,
        decode: Callable[[Any], _T],
        beside: Mapping[str, Any] | None = None,
    ) -> _T:
        """Carry out a verb that reads and return what its answer stands for; what is `beside` a body stands in the query."""
        route = ROUTES[verb]
        if route.method == "GET":
            query = await self.query(namespace, arguments)
            request = Request("GET", route.path, query, self.headers())
        else:
            query = await self.query(namespace, beside or {})
            request = self._posted(route.path, query, arguments, {})
        return decode(route.unwrapped(await self.core.connection.json(request)))

    async def change(
        self,
        verb: str,
        arguments: Mapping[str, Any],
        namespace: str | None,
        key: str | None,
        decode: Callable[[Any], _T],
    ) -> _T:
        """Carry out a verb that changes something; a fresh key lets a lost answer be asked for again."""
        route = ROUTES[verb]
        query = await self.query(namespace, {})
        headers = self.key_headers(key) if route.keyed else {}
        request = self._posted(route.path, query, arguments, headers, repeats=route.keyed)
        return decode(
            route.unwrapped(await self.commit(self.core.connection.json(request), headers))
        )

    async def ask_unbound(
        self, verb: str, arguments: Mapping[str, Any], decode: Callable[[Any], _T]
    ) -> _T:
        """Carry out a verb that reads and is about no namespace, or all of them."""
        request = Request("GET", ROUTES[verb].path, query_of(arguments), self.headers())
        return decode(await self.core.connection.json(request))

    async def change_unbound(self, verb: str, arguments: Mapping[str, Any]) -> None:
        """Carry out a verb that changes something and is about no namespace, or all of them; its answer is nothing."""
        request = self._posted(ROUTES[verb].path, {}, arguments, {}, repeats=False)
        await self.commit(self.core.connection.done(request), {})

    async def put(
        self,
        payload: Payload,
        arguments: Mapping[str, Any],
        namespace: str | None,
        key: str | None,
        decode: Callable[[Any], _T],
    ) -> _T:
        """Write a file whose content is streamed."""
        query = await self.query(namespace, put_fields(payload, arguments))
        headers = self.key_headers(key)
        sent = {"Content-Type": "application/octet-stream", **self.headers(), **headers}
        request = Request(
            "PUT", "/v1/file", query, sent, stream=payload.stream, repeats=payload.repeats
        )
        return decode(await self.commit(self.core.connection.json(request), headers))

    def key_headers(self, key: str | None) -> dict[str, str]:
        """Return the header with the caller's idempotency key, or a fresh one."""
        named = random_id() if key is None else check_label("idempotency_key", key)
        return {"Idempotency-Key": quote(named, safe=" ")}

    def _posted(
        self,
        route: str,
        query: Mapping[str, str],
        arguments: Mapping[str, Any],
        headers: Mapping[str, str],
        *,
        repeats: bool = True,
    ) -> Request:
        body = body_of(arguments)
        sent = {"Content-Type": "application/json", **self.headers(), **headers}
        return Request("POST", route, query, sent, body=body, repeats=repeats)

    async def commit(self, work: Awaitable[_T], headers: Mapping[str, str]) -> _T:
        """Wait for a request that changes something; closing waits for it too."""
        core = self.core
        if core.openings:
            await asyncio.wait(list(core.openings), timeout=_MOST_WAITING_S)
        task = asyncio.ensure_future(work)
        core.in_flight.add(task)
        task.add_done_callback(core.in_flight.discard)
        try:
            return await task
        except WorkspaceError as error:
            key = headers.get("Idempotency-Key")
            if error.code in UNKNOWN_OUTCOME and key is not None:
                error.details.setdefault("idempotency_key", key)
            raise


_MOST_WAITING_S = 5.0


def _active_run() -> str | None:
    """Return the run id of the active span; one that could not be stored counts as none."""
    found = active_provenance()
    try:
        return None if found is None else check_label("run_id", found[0])
    except InvalidInputError:
        return None
