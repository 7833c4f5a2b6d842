"""Making the service of a workspace, its tokens and its limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from crux_workspace.api.facade import Workspace
from crux_workspace.errors import ErrorCode, StorageError, WorkspaceError
from crux_workspace.model.options import refused_option
from crux_workspace.server.access import let_in
from crux_workspace.server.dispatching import Service
from crux_workspace.server.limits import ServiceLimits
from crux_workspace.server.openapi import document
from crux_workspace.server.principals import Principals
from crux_workspace.server.problems import Refusal
from crux_workspace.server.tokens import Token
from crux_workspace.telemetry import Telemetry
from crux_workspace.telemetry.requests import RequestRecorder

if TYPE_CHECKING:
    from crux_workspace.agent.permissions.gate import PermissionGate

__all__ = ["service_app"]

Plain = Callable[[Request], Awaitable[Response]]


def service_app(
    workspace: Workspace,
    *,
    tokens: Iterable[Token] = (),
    write: bool = False,
    limits: ServiceLimits | None = None,
    gate: PermissionGate | None = None,
    metrics: Callable[[], bytes] | None = None,
    inspector: ASGIApp | None = None,
    hosts: Iterable[str] | None = None,
    telemetry: Telemetry | None = None,
) -> Service:
    """Make the HTTP service of a workspace: an ASGI application, of one process and event loop.

    It closes nothing that it did not open: the workspace stays open when the service ends.

    Args:
        workspace: The workspace; bound to a namespace, it serves no other one.
        tokens: Who may call. Without any, everybody who reaches it may: bind it to this machine only.
        write: Without tokens: whether anything may be changed.
        limits: Ceilings.
        gate: Its approvals are answered below ``/threads/``.
        metrics: Returns what ``/metrics`` answers, in Prometheus' text format.
        inspector: What answers ``/`` and ``/inspector/``.
        hosts: The only host names that it answers to; None answers all.
        telemetry: Who listens to its requests; by default the global providers.

    Returns:
        The application; its lifespan has to be run.

    Raises:
        InvalidInputError: A token names a mount that is not there, or two tokens are the same (``INVALID_ARGUMENT``).
    """
    from crux_workspace import __version__

    _check_parts(workspace, telemetry)
    heard = telemetry or Telemetry()
    principals = Principals(workspace, tokens, write=write)
    described = msgspec.json.encode(document(__version__))
    approvals: ASGIApp | None = None
    if gate is not None:
        from crux_workspace.agent.server import approval_app

        approvals = approval_app(gate, authorize=lambda _headers, _thread: True)

    async def healthz(_: Request) -> Response:
        return Response(b"ok\n", media_type="text/plain")

    async def readyz(_: Request) -> Response:
        if service.stopping.is_set():
            raise StorageError("The service is stopping.")
        try:
            await workspace.namespaces(limit=1)
        except WorkspaceError as error:
            raise StorageError(f"The store cannot be reached ({error.code}).") from error
        return Response(b"ready\n", media_type="text/plain")

    async def openapi(_: Request) -> Response:
        return Response(described, media_type="application/json")

    async def metered(request: Request) -> Response:
        if let_in(service, request).limited:
            raise Refusal(
                403,
                "Metrics are of all mounts and namespaces, of which the token sees only some.",
                code=ErrorCode.PERMISSION_DENIED,
            )
        if metrics is None:
            raise Refusal(404, "The service keeps no metrics.")
        return Response(metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    plain: dict[str, Plain] = {
        "/healthz": healthz,
        "/readyz": readyz,
        "/openapi.json": openapi,
        "/metrics": metered,
    }
    service = Service(
        workspace,
        principals,
        limits or ServiceLimits(),
        gate=gate,
        approvals=approvals,
        inspector=inspector,
        plain=plain,
        hosts=_names(hosts),
        recorder=RequestRecorder(heard.tracer_provider, heard.meter_provider),
    )
    return service


def _check_parts(workspace: object, telemetry: object) -> None:
    if not isinstance(workspace, Workspace):
        raise refused_option("workspace", "a Workspace", workspace)
    if telemetry is not None and not isinstance(telemetry, Telemetry):
        raise refused_option("telemetry", "a Telemetry or None", telemetry)


def _names(hosts: object) -> frozenset[str] | None:
    if hosts is None:
        return None
    if isinstance(hosts, str) or not isinstance(hosts, Iterable):
        raise refused_option("hosts", "a list of host names or None", hosts)
    given = list(hosts)
    for host in given:
        if not isinstance(host, str):
            raise refused_option("hosts", "a list of host names or None", host)
    return frozenset(host.lower() for host in given)
