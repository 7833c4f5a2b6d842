"""The methods that put a workspace behind HTTP in front of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from crux_workspace.errors import InvalidInputError
from crux_workspace.http.calling import Caller
from crux_workspace.model.paths import PathLike
from crux_workspace.model.settings import CONTEXT_PRIORITY, NamespaceRequest
from crux_workspace.tools.context import Bind, WorkspaceContext, make_context
from crux_workspace.tools.prompting import Injection
from crux_workspace.tools.toolset import ToolSet
from crux_workspace.tools.workspace_tools import workspace_tools

if TYPE_CHECKING:
    from crux_workspace.http.workspace import HttpWorkspace

__all__ = ["HttpPrompts"]


class HttpPrompts:
    """Tools, contexts and injections; the workspace has to be open, for they name its mounts."""

    _caller: Caller

    def _as_workspace(self) -> HttpWorkspace:
        raise NotImplementedError

    def as_tools(
        self,
        namespace: str | None = None,
        prefix: str | None = None,
        delete: bool | None = None,
        undo: bool | None = None,
        extra: Iterable[str] | None = None,
        *,
        read_before_write: bool | None = None,
    ) -> ToolSet:
        """Return tools over the workspace for a model, as `Workspace.as_tools` does; each call of one is requests."""
        view = self._as_workspace()
        return workspace_tools(
            view if namespace is None else view.for_namespace(namespace),
            self._caller.core.tools,
            prefix=prefix,
            delete=delete,
            undo=undo,
            extra=extra,
            read_before_write=read_before_write,
        )

    def as_context(
        self,
        include: Sequence[PathLike] = (),
        max_inline_bytes: int | None = None,
        *,
        priority: int = CONTEXT_PRIORITY,
    ) -> WorkspaceContext:
        """Return a description of the workspace for a prompt's system text, as `Workspace.as_context` does."""
        return make_context(
            self._as_workspace(), self._binder(None), include, max_inline_bytes, priority
        )

    async def inject(self, input: Any = None, prompt_id: str | None = None) -> Injection:  # noqa: ANN401
        """Return what the workspace adds to one prompt, as `Workspace.inject` does."""
        namespace, view = await self._binder(prompt_id)(input)

        async def bound(_: Any) -> tuple[str, Any]:  # noqa: ANN401
            return namespace, view

        metadata = {
            "id": view.id,
            "namespace": namespace,
            "mounts": [{"path": mount.path, "access": mount.access} for mount in view.mounts],
        }
        context = make_context(view, bound, (), None, CONTEXT_PRIORITY)
        return Injection((context,), view.as_tools(), {"workspace": metadata})

    def _binder(self, prompt_id: str | None) -> Bind:
        workspace, caller = self._as_workspace(), self._caller

        async def bind(input: Any) -> tuple[str, Any]:  # noqa: ANN401
            request = NamespaceRequest(input, prompt_id)
            namespace = await caller.namespace(None, request) or caller.core.opened().namespace
            if namespace is None:
                raise InvalidInputError(
                    "No namespace: neither the workspace nor the token has one of its own.",
                    details={"option": "namespace"},
                    hint="Pass namespace=, or use for_namespace(...).",
                )
            is_bound = caller.bound is not None
            return namespace, workspace if is_bound else workspace.for_namespace(namespace)

        return bind
