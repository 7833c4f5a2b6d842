"""One method of one path: what it takes, who is let in, what comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from starlette.responses import Response

from crux_workspace.server import bodies, shapes
from crux_workspace.server.changing import change_verb
from crux_workspace.server.reading import read_verb

if TYPE_CHECKING:
    from crux_workspace.server.calls import Call

__all__ = ["Route", "changing", "reading"]

Handler: TypeAlias = "Callable[[Call], Awaitable[Response]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    summary: str
    verbs: tuple[str, ...] = ()
    """Verbs of the workspace that it offers."""
    query: type[Struct] = shapes.NoQuery
    body: type[Struct] | None = None
    """What its JSON body holds."""
    raw_body: str | None = None
    """Media type of a body that is no JSON."""
    writes: bool = False
    """Only a token that may write is let in."""
    approves: bool = False
    """Only a token that may see approvals is let in."""
    in_transaction: bool = False
    """It works in an open transaction too."""
    answer: str = "json"
    """What comes back: ``json``, ``bytes``, ``events`` or ``nothing``."""
    status: int = 200
    open: bool = False
    """Anybody is let in."""

    @property
    def streams(self) -> bool:
        """Whether it may take as long as its bytes take."""
        return self.answer in ("bytes", "events") or self.raw_body is not None

    @property
    def takes_conditions(self) -> bool:
        """Whether ``If-Match`` and ``If-None-Match`` can say which version of its file it is about."""
        about_a_file = self.body is not None and issubclass(self.body, bodies.PathBody)
        return self.path == "/v1/file" or about_a_file


def reading(
    path: str,
    verb: str,
    query: type[Struct],
    summary: str,
    *,
    staged: bool = False,
    handler: Handler = read_verb,
) -> Route:
    """Make the route of a verb that reads, its arguments in the query."""
    return Route(
        method="GET",
        path=path,
        handler=handler,
        summary=summary,
        verbs=(verb,),
        query=query,
        in_transaction=staged,
    )


def changing(
    verb: str, body: type[Struct], summary: str, *, staged: bool = False, status: int = 200
) -> Route:
    """Make the route of a verb that changes something, its arguments in a JSON body."""
    return Route(
        method="POST",
        path=f"/v1/{verb}",
        handler=change_verb,
        summary=summary,
        verbs=(verb,),
        query=shapes.NoQuery if verb == "drop_namespace" else shapes.CommonQuery,
        body=body,
        writes=True,
        in_transaction=staged,
        status=status,
        answer="nothing" if status == 204 else "json",
    )
