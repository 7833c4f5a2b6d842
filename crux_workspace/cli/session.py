"""The one place that opens a workspace for a command, and closes it."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import typer

from crux_workspace.cli.output import Output
from crux_workspace.cli.settings import DEFAULT_NAME, DEFAULT_URL, Settings
from crux_workspace.errors import InvalidInputError, StorageError

if TYPE_CHECKING:
    from crux_workspace import Workspace, WorkspaceView

__all__ = ["Session", "database_file", "load", "require_default_database", "shown_url"]


class Session:
    """One run of a command: what was asked for, where to print, how to open the workspace."""

    def __init__(self, settings: Settings, output: Output) -> None:
        self.settings = settings
        self.out = output

    @asynccontextmanager
    async def workspace(self) -> AsyncIterator[Workspace]:
        """Open the workspace that the options name; it is closed at the end.

        Raises:
            StorageError: No URL was given and there is no ``workspace.db`` here, or the store cannot be opened.
        """
        app = self.settings.app
        opened = await (self._from_url() if app is None else self._from_app(app))
        try:
            yield self._view_of(opened)
        finally:
            await opened.aclose()

    @asynccontextmanager
    async def tree(self) -> AsyncIterator[Workspace | WorkspaceView]:
        """Open what the reading verbs look at: the workspace, or under ``at`` the tree as it was."""
        async with self.workspace() as ws:
            when = self.settings.when
            yield ws if when is None else ws.at(when)

    def _view_of(self, opened: Workspace) -> Workspace:
        view = opened
        if self.settings.app is not None and self.settings.namespace is not None:
            view = view.for_namespace(self.settings.namespace)
        actor = self.settings.actor
        return view if actor is None else view.acting_as(actor)

    async def _from_url(self) -> Workspace:
        from crux_workspace import Mount, open_workspace

        settings = self.settings
        if settings.url is None:
            require_default_database()
        mounts = [Mount(path, access=access) for path, access in settings.mount]
        options: dict[str, Any] = {"mounts": mounts} if mounts else {}
        return await open_workspace(
            DEFAULT_URL if settings.url is None else settings.url,
            id=DEFAULT_NAME if settings.id is None else settings.id,
            namespace=DEFAULT_NAME if settings.namespace is None else settings.namespace,
            create=settings.url is not None,
            **options,
        )

    async def _from_app(self, spec: str) -> Workspace:
        from crux_workspace import Workspace

        made = load(spec, "--app")
        if not isinstance(made, Workspace) and callable(made):
            made = made()
        if inspect.isawaitable(made):
            made = await made
        if not isinstance(made, Workspace):
            raise InvalidInputError(
                f"--app {spec} gives {type(made).__name__}, not a Workspace.",
                hint="Name a Workspace, or a function without parameters that returns one.",
            )
        return made


def database_file(url: str | None) -> Path | None:
    """Return the SQLite file that a URL names, or None when it names something else."""
    parts = urlsplit(DEFAULT_URL if url is None else url)
    return Path(unquote(parts.path[1:])) if parts.scheme == "sqlite" else None


def shown_url(url: str) -> str:
    """Return a URL without what could be a credential."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=host).geturl() if host != parts.netloc else url


def require_default_database() -> None:
    """Refuse to go on where no URL was given and nothing was initialised.

    Raises:
        StorageError: There is no ``workspace.db`` in this folder.
    """
    path = database_file(None)
    if path is not None and not path.exists():
        raise StorageError(
            f"There is no workspace here: {path} does not exist in {Path.cwd()}.",
            hint="run crux-workspace init, or name a store by --url or CRUX_WORKSPACE_URL.",
            retryable=False,
        )


def load(spec: str, hint: str) -> Any:  # noqa: ANN401 - whatever the module defines
    """Return what ``MODULE:ATTR`` names; the current folder is searched first.

    Raises:
        typer.BadParameter: There is no such thing; the message names the parameter by `hint`.
    """
    module_name, _, attribute = spec.partition(":")
    if not module_name or not attribute:
        raise typer.BadParameter(f"{spec!r} is not MODULE:ATTR.", param_hint=hint)
    here = os.getcwd()  # noqa: PTH109 - a string for sys.path
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise
        raise typer.BadParameter(f"there is no module {module_name!r}.", param_hint=hint) from None
    for name in attribute.split("."):
        if not hasattr(found, name):
            raise typer.BadParameter(
                f"{module_name} has no attribute {attribute!r}.", param_hint=hint
            )
        found = getattr(found, name)
    return found
