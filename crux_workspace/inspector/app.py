"""The inspector's files as an ASGI application, for `service_app` to answer its page with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from crux_workspace.inspector.pages import Page, Pages

__all__ = ["Application", "inspector_app"]

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]
"""An ASGI application."""

_NOTHING = Page(404, {"content-type": "text/plain; charset=utf-8"}, b"There is no such page.\n")
_WRONG_METHOD = Page(405, {"allow": "GET, HEAD"})


def inspector_app() -> Application:
    """Return the application that answers ``/`` and everything below ``/inspector/``.

    It holds no data and asks for no credentials: its files are the same for everybody, and what they show comes from requests to the
    service, which judges each one.

    Example:
        >>> from crux_workspace.inspector import inspector_app
        >>> page = inspector_app()
        >>> callable(page)  # service_app(ws, inspector=page)
        True
    """
    pages = Pages()

    async def answer(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        del receive
        method = scope["method"]
        page = _WRONG_METHOD
        if method in ("GET", "HEAD"):
            known = dict(scope["headers"]).get(b"if-none-match", b"").decode("latin-1")
            page = pages.answer(scope["path"], known) or _NOTHING
        body = page.body if method == "GET" and page.status not in (304, 307) else b""
        length = {"content-length": str(len(page.body))} if page.status != 304 else {}
        headers = [
            (name.encode(), value.encode()) for name, value in (page.headers | length).items()
        ]
        await send({"type": "http.response.start", "status": page.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return answer
