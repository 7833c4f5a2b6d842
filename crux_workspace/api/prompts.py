"""The methods that put a workspace in front of a model; a program that uses none of them does not load the tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from crux_workspace.api.runner import Runner
from crux_workspace.model.paths import PathLike
from crux_workspace.model.settings import CONTEXT_PRIORITY, NamespaceRequest

if TYPE_CHECKING:
    from crux_workspace.api.facade import Workspace
    from crux_workspace.tools.context import Bind, WorkspaceContext
    from crux_workspace.tools.prompting import Injection
    from crux_workspace.tools.toolset import ToolSet

__all__ = ["PromptMethods"]


class PromptMethods:
    """Tools, contexts and injections."""

    _runner: Runner

    def _as_workspace(self) -> Workspace:
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
        r"""Return tools over the workspace for a model; no I/O. A tool never raises: what goes wrong is a result that says how to go on.

        Args:
            namespace: Bind the tools to this namespace.
            prefix: Put into every tool's name. This and the following: None takes the workspace's `ToolOptions`.
            delete: Offer a tool that deletes.
            undo: Offer a tool that takes back the latest change.
            extra: Further tools: ``stat``, ``append``, ``copy``, ``history``, ``diff``, ``finalize``.
            read_before_write: Refuse changes of files that these tools have not read at the version they are at.

        Returns:
            The tools; ``tools.to("openai")`` and so on gives a framework's form of them.

        Raises:
            InvalidInputError: A bad option, or a namespace on a view that is bound already (``INVALID_ARGUMENT``).

        Example:
            >>> tools = ws.as_tools(prefix="research")
            >>> (await tools["readResearchWorkspaceFile"].call({"path": "/workspace/notes.md"})).output
            {'type': 'text', 'value': '# Notes\n'}
        """
        from crux_workspace.tools.workspace_tools import workspace_tools

        view = self._as_workspace()
        return workspace_tools(
            view if namespace is None else view.for_namespace(namespace),
            self._runner.core.tools,
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
        """Return a description of the workspace for a prompt's system text; no I/O until ``await context.text(input)``.

        It names mounts, up to 100 files and up to 100 final artifacts (at their pinned versions), never their content, and then the
        included files whole.

        Args:
            include: Files whose content is put into the text; of a source too.
            max_inline_bytes: Most bytes of each; None is 64,000.
            priority: Higher comes first in a prompt.

        Returns:
            The context.

        Raises:
            InvalidInputError: A bad option (``INVALID_ARGUMENT``).

        Example:
            >>> (await ws.as_context().text()).splitlines()[1]
            'Namespace: default'
        """
        from crux_workspace.tools.context import make_context

        return make_context(
            self._as_workspace(), self._binder(None), include, max_inline_bytes, priority
        )

    async def inject(self, input: Any = None, prompt_id: str | None = None) -> Injection:  # noqa: ANN401
        """Return what the workspace adds to one prompt: a context, tools and metadata, all bound to one namespace.

        Args:
            input: What the prompt is made for; a namespace callable is given it.
            prompt_id: Name of the prompt, likewise.

        Returns:
            The injection. Its metadata has ``workspace``: id, namespace and mounts.

        Raises:
            InvalidInputError: No namespace, or a bad one (``INVALID_ARGUMENT``).

        Example:
            >>> (await ws.inject()).metadata["workspace"]["namespace"]
            'default'
        """
        from crux_workspace.tools.context import make_context
        from crux_workspace.tools.prompting import Injection

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
        workspace, runner = self._as_workspace(), self._runner

        async def bind(input: Any) -> tuple[str, Any]:  # noqa: ANN401
            found = runner.core.namespace_of(runner.bound, None, NamespaceRequest(input, prompt_id))
            namespace = found if isinstance(found, str) else await found
            is_bound = runner.bound is not None
            return namespace, workspace if is_bound else workspace.for_namespace(namespace)

        return bind
