"""What the service tells of the workspace and of the caller's rights, once, when it is opened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from crux_workspace.errors import ErrorCode, UnsupportedError, WorkspaceError
from crux_workspace.http.problems import corrupt
from crux_workspace.model.settings import Mount

__all__ = ["RemoteSource", "Session", "session_of"]


class RemoteSource:
    """Stands for the source of a mount, which only the service can ask."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def list(self, *_: object) -> NoReturn:
        """Refuse: only the service can ask it."""
        self._refuse()

    def read(self, *_: object) -> NoReturn:
        """Refuse: only the service can ask it."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UnsupportedError(
            "The source of this mount is on the other side of the HTTP service; read its files through the workspace.",
            code=ErrorCode.CAPABILITY_MISSING,
        )


@dataclass(frozen=True, slots=True)
class Session:
    """A workspace as the service shows it to this caller."""

    id: str
    mounts: tuple[Mount, ...]
    namespace: str | None
    """The namespace of calls that name none, if the service has one for this token."""
    writes: bool
    """Whether the token may change anything."""
    description: dict[str, Any] = field(repr=False)
    """What `describe` returns."""


def session_of(rights: Any, description: Any) -> Session:  # noqa: ANN401 - JSON
    """Return what the two answers tell.

    Raises:
        StorageError: They tell something else (``RECORD_CORRUPT``).
    """
    if not isinstance(rights, dict) or not isinstance(description, dict):
        raise corrupt("it is no session")
    name, mounts, namespace = (rights.get(each) for each in ("workspace", "mounts", "namespace"))
    if (
        not isinstance(name, str)
        or not isinstance(mounts, list)
        or not isinstance(namespace, str | None)
    ):
        raise corrupt("it is no session")
    sources = _sources(description.get("mounts"))
    return Session(
        name,
        tuple(_mount(each, sources) for each in mounts),
        namespace,
        bool(rights.get("write")),
        description,
    )


def _sources(mounts: object) -> dict[str, str]:
    found: Sequence[object] = mounts if isinstance(mounts, list) else ()
    return {
        each["path"]: each["source"]
        for each in found
        if isinstance(each, dict)
        and isinstance(each.get("path"), str)
        and isinstance(each.get("source"), str)
    }


def _mount(given: object, sources: dict[str, str]) -> Mount:
    if not isinstance(given, dict) or not isinstance(given.get("path"), str):
        raise corrupt("it has a mount without a path")
    told, kind = given.get("description"), sources.get(given["path"])
    try:
        return Mount(
            given["path"],
            given.get("access", ""),
            told if isinstance(told, str) else None,
            None if kind is None else RemoteSource(kind),
        )
    except WorkspaceError:
        raise corrupt("it has a mount that cannot be one") from None
