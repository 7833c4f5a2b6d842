"""What the options that every command shares say, wherever on the command line they stand."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeAlias

import typer

__all__ = [
    "COMMON_OPTIONS",
    "DEFAULT_NAME",
    "DEFAULT_URL",
    "MountSpec",
    "Settings",
    "parse_mount",
    "parse_when",
]

DEFAULT_URL = "sqlite:///./workspace.db"
DEFAULT_NAME = "default"

MountSpec: TypeAlias = tuple[str, Literal["read", "readwrite"]]
"""Path and access of one ``--mount``."""

_PANEL = "Workspace options (before or after the command)"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Settings:
    """Which workspace to open, and how to print; None means that nobody said."""

    url: str | None = None
    id: str | None = None
    namespace: str | None = None
    as_json: bool = False
    mount: tuple[MountSpec, ...] = ()
    app: str | None = None
    actor: str | None = None
    when: int | datetime | None = None
    """The moment to look at: a sequence or an aware time; None is now."""

    def overridden_by(self, given: Mapping[str, Any]) -> Settings:
        """Return the settings after the options of one command level; a later level wins, mounts add up."""
        changes = {name: value for name, value in given.items() if value is not None}
        changes["as_json"] = self.as_json or bool(given.get("as_json"))
        changes["mount"] = self.mount + tuple(map(parse_mount, given.get("mount") or ()))
        return replace(self, **changes)

    def with_defaults(self) -> Settings:
        """Return the settings with what the environment says; an app brings its own workspace and takes only the namespace.

        Raises:
            typer.BadParameter: ``--app`` stands beside an option that it decides itself.
        """
        namespace = _given_or_set(self.namespace, "CRUX_WORKSPACE_NAMESPACE")
        if self.app is None:
            return replace(
                self,
                url=_given_or_set(self.url, "CRUX_WORKSPACE_URL"),
                id=_given_or_set(self.id, "CRUX_WORKSPACE_ID"),
                namespace=namespace,
            )
        for name, value in (("url", self.url), ("id", self.id), ("mount", self.mount or None)):
            if value is not None:
                raise typer.BadParameter(
                    f"--{name} cannot be combined with --app, whose workspace decides it.",
                    param_hint=f"--{name}",
                )
        return replace(self, namespace=namespace)


def parse_mount(spec: str) -> MountSpec:
    """Return what ``PATH``, ``PATH:read`` or ``PATH:readwrite`` says.

    Raises:
        typer.BadParameter: What follows the last colon is no access.
    """
    path, colon, access = spec.rpartition(":")
    if not colon or "/" in access:
        return spec, "readwrite"
    if access == "read":
        return path, "read"
    if access == "readwrite":
        return path, "readwrite"
    raise typer.BadParameter(
        f"{spec!r} is not PATH, PATH:read or PATH:readwrite.", param_hint="--mount"
    )


def parse_when(text: str) -> int | datetime:
    """Return the moment that a sequence, an ISO 8601 time or epoch milliseconds such as ``1700000000000ms`` names.

    Raises:
        typer.BadParameter: It is none of them.
    """
    try:
        if text.isascii() and text.isdigit():
            return int(text)
        if text.endswith("ms"):
            return _EPOCH + timedelta(milliseconds=int(text.removesuffix("ms")))
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is no sequence, no ISO 8601 time with zone such as 2025-06-01T12:00:00Z, "
            "and no epoch time such as 1748779200000ms.",
            param_hint="WHEN",
        ) from None


def _given_or_set(given: str | None, variable: str) -> str | None:
    """Return what an option says, else what the environment does; an empty variable says nothing."""
    return given if given is not None else os.environ.get(variable) or None


def _option(*names: str, **options: Any) -> Any:  # noqa: ANN401 - typer's own declaration
    return typer.Option(*names, rich_help_panel=_PANEL, show_default=False, **options)


COMMON_OPTIONS: dict[str, Any] = {
    "url": Annotated[
        str | None,
        _option(
            "--url",
            metavar="URL",
            help=f"Store to open (env CRUX_WORKSPACE_URL; default {DEFAULT_URL}).",
        ),
    ],
    "id": Annotated[
        str | None,
        _option(
            "--id", metavar="ID", help="Workspace id (env CRUX_WORKSPACE_ID; default 'default')."
        ),
    ],
    "namespace": Annotated[
        str | None,
        _option(
            "--namespace",
            metavar="NAME",
            help="Namespace to work in (env CRUX_WORKSPACE_NAMESPACE; default 'default').",
        ),
    ],
    "mount": Annotated[
        list[str] | None,
        _option(
            "--mount",
            metavar="PATH:ACCESS",
            help="Mount PATH, PATH:read or PATH:readwrite instead of the default mounts; repeatable.",
        ),
    ],
    "app": Annotated[
        str | None,
        _option(
            "--app",
            metavar="MODULE:ATTR",
            help="Use the workspace, or the factory of one, that Python code defines.",
        ),
    ],
    "actor": Annotated[
        str | None, _option("--actor", metavar="NAME", help="Who the log says made the commits.")
    ],
    "as_json": Annotated[
        bool | None, _option("--json", help="Print one JSON document; errors too, on stderr.")
    ],
}
"""The annotations of the options that every command takes, by the names of their settings."""

assert COMMON_OPTIONS.keys() < {field.name for field in fields(Settings)}
