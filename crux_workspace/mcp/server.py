"""A workspace as an MCP server: its tools, its files as resources, completion, subscriptions and progress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcp import types
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

from crux_workspace.api.inside import binding_of
from crux_workspace.errors import InvalidInputError
from crux_workspace.mcp.changes import Changes
from crux_workspace.mcp.resources import Resources
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import refused_option
from crux_workspace.tools.forms.mcp import mcp_result, mcp_tool
from crux_workspace.tools.toolset import ToolResult, ToolSet

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from crux_workspace.api.facade import Workspace

__all__ = ["workspace_server"]

_PROGRESS_S = 0.5
_MAX_ACTORS = 256


def workspace_server(
    workspace: Workspace,
    *,
    read_only: bool = False,
    name_actor: bool = True,
    **tool_options: Any,  # noqa: ANN401 - options of Workspace.as_tools
) -> Server[Any]:
    """Make an MCP server of a workspace that is bound to one namespace; clients cannot name another.

    Args:
        workspace: The workspace, or a view that says on which namespace all clients work.
        read_only: Offer only tools that change nothing.
        name_actor: Commits carry ``mcp:<client's name>`` as their actor, where the workspace has none.
        **tool_options: As `Workspace.as_tools` takes them: ``prefix``, ``delete``, ``undo``, ``extra``, ``read_before_write``.

    Returns:
        A server of the official SDK: run it over any of its transports.

    Raises:
        InvalidInputError: A bad option (``INVALID_ARGUMENT``).
    """
    given: object = workspace
    if not callable(getattr(given, "as_tools", None)) or not callable(
        getattr(given, "watch", None)
    ):
        raise refused_option("workspace", "a Workspace, or a view of one", given)
    return _Serving(workspace, read_only, name_actor, tool_options).server()


class _Serving:
    """What the handlers of one server share."""

    def __init__(
        self, workspace: Workspace, read_only: bool, name_actor: bool, options: dict[str, Any]
    ) -> None:
        self.ws = workspace
        self.read_only = read_only
        self.name_actor = name_actor and binding_of(workspace).actor is None
        self.options = options
        self.resources = Resources(workspace)
        self.changes = Changes(workspace)
        self.listen = ListenHandler(self.changes.bus)
        self.offered = self.tools_for(workspace)
        self.by_actor: dict[str, ToolSet] = {}

    def tools_for(self, workspace: Workspace) -> ToolSet:
        tools = workspace.as_tools(**self.options)
        if not self.read_only:
            return tools
        return ToolSet(tool for tool in tools if tool.annotations.read_only)

    def server(self) -> Server[Any]:
        from crux_workspace import __version__

        roots = ", ".join(mount.path for mount in self.ws.mounts)
        return Server(
            f"crux-workspace:{self.ws.id}",
            version=__version__,
            instructions=f"Files of the workspace '{self.ws.id}' below {roots}. Every change is a version; paths are absolute.",
            lifespan=self.lifespan,
            on_list_tools=self.list_tools,
            on_call_tool=self.call_tool,
            on_list_resources=self.list_resources,
            on_list_resource_templates=self.list_templates,
            on_read_resource=self.read_resource,
            on_subscribe_resource=self.subscribe,
            on_unsubscribe_resource=self.unsubscribe,
            on_subscriptions_listen=self.listen,
            on_completion=self.complete,
        )

    @asynccontextmanager
    async def lifespan(self, _: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        async with self.changes.running():
            yield {}
            self.listen.close()

    # -- tools

    async def list_tools(
        self, ctx: ServerRequestContext[Any], params: object
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[mcp_tool(tool) for tool in self.offered])

    async def call_tool(
        self, ctx: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tools = self._tools_of(ctx)
        if params.name not in tools:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}.")
        call_id = None if ctx.request_id is None else str(ctx.request_id)
        work = asyncio.create_task(tools.call(params.name, params.arguments, call_id=call_id))
        return mcp_result(await self._with_progress(ctx, params.name, work))

    def _tools_of(self, ctx: ServerRequestContext[Any]) -> ToolSet:
        """Return the tools that commit in a client's name."""
        client = ctx.session.client_params
        if not self.name_actor or client is None:
            return self.offered
        try:
            actor = check_label("actor", f"mcp:{client.client_info.name}"[:120])
        except InvalidInputError:
            actor = "mcp"
        tools = self.by_actor.get(actor)
        if tools is None:
            if len(self.by_actor) >= _MAX_ACTORS:
                self.by_actor.clear()
            tools = self.by_actor[actor] = self.tools_for(self.ws.acting_as(actor))
        return tools

    async def _with_progress(
        self, ctx: ServerRequestContext[Any], name: str, work: asyncio.Task[ToolResult]
    ) -> ToolResult:
        """Wait for a call; while it takes long, tell how long it has been at work."""
        elapsed = 0.0
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=_PROGRESS_S)
                if not work.done():
                    elapsed += _PROGRESS_S
                    await ctx.session.report_progress(
                        elapsed, message=f"{name}: at work for {elapsed:g} s"
                    )
            return work.result()
        finally:
            work.cancel()

    # -- resources

    async def list_resources(
        self, ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return await self.resources.page(None if params is None else params.cursor)

    async def list_templates(
        self,
        ctx: ServerRequestContext[Any],
        params: object,
    ) -> types.ListResourceTemplatesResult:
        return self.resources.templates()

    async def read_resource(
        self, ctx: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await self.resources.read(str(params.uri))

    async def subscribe(
        self, ctx: ServerRequestContext[Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        uri = str(params.uri)
        self.changes.subscribe(ctx.session, await self.resources.path_of(uri), uri)
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: ServerRequestContext[Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        uri = str(params.uri)
        self.changes.unsubscribe(ctx.session, await self.resources.path_of(uri), uri)
        return types.EmptyResult()

    async def complete(
        self, ctx: ServerRequestContext[Any], params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        return types.CompleteResult(
            completion=await self.resources.complete(params.argument, params.context)
        )
