"""The namespaces that a caller may use, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.files import NamespacePage

if TYPE_CHECKING:
    from crux_workspace.server.principals import Principal
    from crux_workspace.server.shapes import NamespacesQuery

__all__ = ["visible_namespaces"]

_PAGE = 1_000
_MARK = "after:"


async def visible_namespaces(principal: Principal, query: NamespacesQuery) -> NamespacePage:
    """Return a page of the namespaces that exist and that the caller may use."""
    workspace = principal.workspace
    if principal.namespaces is None:
        return await workspace.namespaces(query.prefix, limit=query.limit, cursor=query.cursor)
    after = _place(query.cursor)
    starts = {start for start in principal.prefixes if start.startswith(query.prefix)}
    if any(query.prefix.startswith(start) for start in principal.prefixes):
        starts.add(query.prefix)
    found = {name for name in principal.namespaces if name.startswith(query.prefix)}
    names = {name for name in found if await _exists(principal, name)}
    for start in starts:
        names.update(await _starting(principal, start))
    left = sorted(name for name in names if after is None or name > after)
    page = left[: query.limit]
    more = len(left) > len(page)
    return NamespacePage(page, _MARK + page[-1] if more else None)


def _place(cursor: str | None) -> str | None:
    if cursor is None:
        return None
    if not cursor.startswith(_MARK):
        raise InvalidInputError(
            "The cursor is malformed; start without a cursor.", code=ErrorCode.INVALID_CURSOR
        )
    return cursor.removeprefix(_MARK)


async def _exists(principal: Principal, name: str) -> bool:
    page = await principal.workspace.namespaces(name, limit=1)
    return page.names == [name]


async def _starting(principal: Principal, start: str) -> list[str]:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await principal.workspace.namespaces(start, limit=_PAGE, cursor=cursor)
        names += page.names
        cursor = page.cursor
        if cursor is None:
            return names
