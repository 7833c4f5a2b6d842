"""The MCP server with the official client: tools, resources, completion, subscriptions, progress; in process, both eras of the protocol."""

from __future__ import annotations

import asyncio
import base64
import warnings
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp import types
from mcp.client import Client
from mcp.server.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

from crux_workspace import Mount, Workspace, local_runtime
from crux_workspace.mcp import changes
from crux_workspace.mcp.server import workspace_server
from crux_workspace.model.settings import EXTRA_TOOLS
from crux_workspace.testing import MemorySource
from tests.conftest import MakeWorkspace
from tests.support.report_task import ReportTask

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
# Subscriptions of the older era are deprecated by the SDK; clients of that era are what they are tested for.


@pytest.fixture
async def served(make_ws: MakeWorkspace) -> AsyncIterator[Workspace]:
    async with local_runtime() as runtime:
        ws = make_ws(runtime=runtime)
        await ws.write("/workspace/a.md", "one\n")
        yield ws
        await ws.aclose()


@pytest.fixture(params=["auto", "legacy"])
async def client(served: Workspace, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    server = workspace_server(served, delete=True, undo=True, extra=EXTRA_TOOLS)
    ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def connected() -> None:
        async with Client(server, mode=request.param) as made:
            ready.set_result(made)
            await over.wait()

    task = asyncio.create_task(connected())  # a client has to be left by the task that entered it
    yield await ready
    over.set()
    await task


def text_of(result: Any) -> str:
    return result.content[0].text  # type: ignore[no-any-return]


async def test_tools_say_what_they_may_do(client: Client) -> None:
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert len(tools) == 14
    reading = tools["readWorkspaceFile"].annotations
    deleting = tools["deleteWorkspaceFile"].annotations
    assert reading is not None
    assert deleting is not None
    assert (reading.read_only_hint, reading.destructive_hint, reading.idempotent_hint) == (True, False, True)  # fmt: skip
    assert (deleting.read_only_hint, deleting.destructive_hint) == (False, True)
    assert tools["grepWorkspace"].input_schema["required"] == ["query"]


async def test_a_conversation_with_errors_in_between(client: Client, served: Workspace) -> None:
    wrote = await client.call_tool("writeWorkspaceFile", {"path": "/outputs/r.md", "content": "# Report\n"})  # fmt: skip
    assert not wrote.is_error
    wrong = await client.call_tool("editWorkspaceFile", {"path": "outputs/r.md", "find": "Report", "replace": "x"})  # fmt: skip
    assert wrong.is_error
    assert "'/outputs/r.md'" in text_of(wrong)
    edited = await client.call_tool("editWorkspaceFile", {"path": "/outputs/r.md", "find": "Report", "replace": "Final"})  # fmt: skip
    assert not edited.is_error
    final = await client.call_tool("finalizeWorkspaceFile", {"path": "/outputs/r.md", "kind": "report"})  # fmt: skip
    assert not final.is_error
    assert [artifact.version for artifact in await served.artifacts(status="final")] == [2]
    with pytest.raises(MCPError):
        await client.call_tool("noSuchTool", {})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_task_of_all_frameworks(make_ws: MakeWorkspace, mode: Any) -> None:
    task = ReportTask.on(make_ws)
    server = workspace_server(task.ws, extra=["finalize"], read_before_write=True)
    async with Client(server, mode=mode) as client:
        told = None
        while (call := await task.following(told)) is not None:
            told = text_of(await client.call_tool(call.tool, call.arguments))
    await task.check()


async def test_images_come_as_images(client: Client, served: Workspace) -> None:
    await served.write("/workspace/i.png", b"\x89PNG")
    result = await client.call_tool("readWorkspaceFile", {"path": "/workspace/i.png"})
    image = result.content[1]
    assert isinstance(image, types.ImageContent)
    assert (image.mime_type, base64.b64decode(image.data)) == ("image/png", b"\x89PNG")


async def test_files_are_resources(client: Client, served: Workspace) -> None:
    await served.write("/workspace/ä b?.md", "odd")
    await served.write("/outputs/d.json", {"k": 1}, status="final")
    await served.write("/outputs/b.bin", b"\0\1")
    listed = (await client.list_resources()).resources
    uris = {resource.name: resource.uri for resource in listed}
    assert list(uris) == ["/outputs/b.bin", "/outputs/d.json", "/workspace/a.md", "/workspace/ä b?.md"]  # fmt: skip
    assert uris["/workspace/a.md"] == "workspace:///workspace/a.md"
    found = {name: (await client.read_resource(uri)).contents[0] for name, uri in uris.items()}
    assert found["/workspace/ä b?.md"].text == "odd"  # type: ignore[union-attr]
    assert found["/outputs/d.json"].text == '{\n  "k": 1\n}\n'  # type: ignore[union-attr]
    assert base64.b64decode(found["/outputs/b.bin"].blob) == b"\0\1"  # type: ignore[union-attr]
    assert found["/workspace/a.md"].mime_type == "text/markdown"
    templates = (await client.list_resource_templates()).resource_templates
    assert [t.uri_template for t in templates] == ["workspace:///{+path}", "workspace:///{+path}?version={version}"]  # fmt: skip


async def test_an_older_version_is_a_resource(client: Client, served: Workspace) -> None:
    await served.write("/workspace/a.md", "two\n")
    old = await client.read_resource("workspace:///workspace/a.md?version=1")
    assert old.contents[0].text == "one\n"  # type: ignore[union-attr]


async def test_resources_come_in_pages(client: Client, served: Workspace) -> None:
    async with served.transaction() as tx:
        for n in range(130):
            await tx.write(f"/outputs/{n:03}.md", "x")
    first = await client.list_resources()
    second = await client.list_resources(cursor=first.next_cursor)
    assert (len(first.resources), len(second.resources), second.next_cursor) == (100, 31, None)
    with pytest.raises(MCPError):
        await client.list_resources(cursor="made up")


@pytest.mark.parametrize(
    "uri",
    [
        "workspace:///workspace/none.md",
        "workspace:///etc/passwd",
        "workspace:///workspace/../etc",
        "workspace:///workspace/%2e%2e/etc",
        "workspace://other/workspace/a.md",
        "file:///workspace/a.md",
        "workspace:///workspace/a.md?version=9",
        "workspace:///workspace/a.md?version=x",
        "workspace:///workspace/a.md?version=²",
        "workspace:///workspace/a.md?version=-1",
        f"workspace:///workspace/a.md?version={'9' * 5_000}",
        "workspace://[/workspace/a.md",
        "workspace:///workspace/%ED%A0%80",
        "workspace:///workspace",
        "nonsense",
    ],
)
async def test_what_is_no_resource(client: Client, uri: str) -> None:
    with pytest.raises(MCPError):
        await client.read_resource(uri)


async def test_a_refusal_can_be_sent(served: Workspace) -> None:
    from crux_workspace.mcp.resources import Resources

    for uri in ("nonsense\ud800", "workspace:///workspace/\ud800"):
        with pytest.raises(MCPError) as caught:
            await Resources(served).read(uri)
        str(caught.value.error.model_dump()).encode()


async def test_resources_are_bounded(
    make_ws: MakeWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dataclasses import replace

    from crux_workspace.mcp import resources

    class Lying(MemorySource):
        def read(self, path: str, options: Any) -> Any:
            content = super().read(path, options)
            return content and replace(content, size=5)

        def stat(self, path: str, options: Any) -> Any:
            file = super().stat(path, options)
            return file and replace(file, size=5)

    monkeypatch.setattr(resources, "MAX_RESOURCE_BYTES", 1_000)
    files: dict[str, Any] = {
        "b.bin": b"\0" * 1_001,
        "j.json": ["x" * 1_001],
        "t.md": "x" * 1_001,
        "ok.bin": b"\0",
    }
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, Lying(files))])
    await ws.write("/workspace/b.bin", b"\0" * 1_001)
    await ws.write("/workspace/j.json", [1] * 450)
    await ws.write("/workspace/t.md", "x" * 1_001)
    for name in ("b.bin", "j.json", "t.md"):
        await ws.write(f"/workspace/{name}", "small")
    async with Client(workspace_server(ws)) as client:
        names = ("b.bin", "j.json", "t.md")
        large = [f"/s/{name}" for name in names]
        for path in [*large, *(f"/workspace/{name}?version=1" for name in names)]:
            with pytest.raises(MCPError) as caught:
                await client.read_resource(f"workspace://{path}")
            assert "at most 1000" in caught.value.error.message, path
        for path in ("/s/ok.bin", "/workspace/b.bin", "/workspace/j.json?version=2"):
            assert (await client.read_resource(f"workspace://{path}")).contents


async def test_a_failing_mount_leaves_the_other_resources(make_ws: MakeWorkspace) -> None:
    class Broken(MemorySource):
        def list(self, path: str, options: Any) -> Any:
            raise RuntimeError

    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, Broken())])
    await ws.write("/workspace/a.md", "x")
    async with Client(workspace_server(ws)) as client:
        listed = await client.list_resources()
    assert [resource.name for resource in listed.resources] == ["/workspace/a.md"]
    assert (listed.meta or {})["crux-workspace/failed"] == {"/s": "STORE_UNAVAILABLE"}


async def test_paths_and_versions_are_completed(client: Client, served: Workspace) -> None:
    await served.write("/workspace/deep/x.md", "x")
    await served.write("/workspace/a.md", "two\n")
    ref = types.ResourceTemplateReference(uri="workspace:///{+path}")

    async def completed(name: str, value: str, context: dict[str, str] | None = None) -> list[str]:
        answer = await client.complete(ref, {"name": name, "value": value}, context)
        return answer.completion.values

    assert await completed("path", "") == ["outputs/", "workspace/"]
    assert await completed("path", "wo") == ["workspace/"]
    assert await completed("path", "workspace/") == ["workspace/a.md", "workspace/deep/"]
    assert await completed("path", "workspace/de") == ["workspace/deep/"]
    assert await completed("path", "../") == []
    assert await completed("version", "", {"path": "workspace/a.md"}) == ["2", "1"]
    assert await completed("other", "x") == []


async def test_the_client_is_the_actor(client: Client, served: Workspace) -> None:
    await client.call_tool("writeWorkspaceFile", {"path": "/workspace/b.md", "content": "x"})
    actor = (await served.log(limit=1))[0].actor
    assert actor is None or actor.startswith("mcp:")


async def test_a_subscription_of_the_newer_era_is_told(served: Workspace) -> None:
    async with Client(workspace_server(served)) as client:
        uri = "workspace:///workspace/a.md"
        async with client.listen(resource_subscriptions=[uri], resources_list_changed=True) as sub:
            events = aiter(sub)
            await served.write("/workspace/other.md", "x")
            assert type(await asyncio.wait_for(anext(events), 5)).__name__ == "ResourcesListChanged"
            await served.append("/workspace/a.md", "two\n")
            event = await asyncio.wait_for(anext(events), 5)
            assert event == ResourceUpdated(uri=uri)
        fresh = await client.read_resource(uri)
        assert fresh.contents[0].text == "one\ntwo\n"  # type: ignore[union-attr]


async def test_a_subscription_of_the_older_era_is_told(served: Workspace) -> None:
    told: asyncio.Queue[Any] = asyncio.Queue()

    async def note(message: Any) -> None:
        await told.put(message)

    uri = "workspace:///workspace/a.md"
    server = workspace_server(served)
    async with Client(server, mode="legacy", message_handler=note) as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.subscribe_resource(uri)
            await served.append("/workspace/a.md", "two\n")
            updated = await asyncio.wait_for(told.get(), 5)
            assert updated.params.uri == uri
            await served.rename("/workspace/a.md", "/workspace/b.md")
            moved = [(await asyncio.wait_for(told.get(), 5)).method for _ in range(2)]
            assert moved == ["notifications/resources/updated", "notifications/resources/list_changed"]  # fmt: skip
            await client.unsubscribe_resource(uri)
            await served.write("/workspace/a.md", "new")
            last = await asyncio.wait_for(told.get(), 5)
            assert last.method == "notifications/resources/list_changed"
            with pytest.raises(MCPError):
                await client.subscribe_resource("workspace:///etc/passwd")


async def test_subscriptions_of_a_client_are_bounded_and_given_back(
    served: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_SUBSCRIPTIONS", 3)
    uris = [f"workspace:///workspace/{name}" for name in ("a", "b", "a?version=1")]
    async with Client(workspace_server(served), mode="legacy") as client:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            for uri in (*uris, *uris):
                await client.subscribe_resource(uri)
            with pytest.raises(MCPError, match="at most"):
                await client.subscribe_resource("workspace:///workspace/c")
            for uri in (*uris, *uris):
                await client.unsubscribe_resource(uri)
            for name in ("x", "y", "z"):
                await client.subscribe_resource(f"workspace:///workspace/{name}")


async def test_changes_of_other_workspace_objects_are_seen(
    served: Workspace, make_ws: MakeWorkspace
) -> None:
    async with Client(workspace_server(served)) as client:
        uri = "workspace:///workspace/a.md"
        async with client.listen(resource_subscriptions=[uri]) as sub:
            await make_ws().append("/workspace/a.md", "from elsewhere\n")
            event = await asyncio.wait_for(anext(aiter(sub)), 5)
            assert event == ResourceUpdated(uri=uri)


async def test_long_work_tells_its_progress(make_ws: MakeWorkspace) -> None:
    class Slow(MemorySource):
        def read(self, path: str, options: Any) -> Any:
            import time

            time.sleep(1.3)
            return super().read(path, options)

    ws = make_ws(mounts=[Mount("/s", "read", None, Slow({"a.md": "x"}))])
    seen: list[tuple[float, str | None]] = []

    async def progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))

    async with Client(workspace_server(ws)) as client:
        result = await client.call_tool("readWorkspaceFile", {"path": "/s/a.md"}, progress_callback=progress)  # fmt: skip
    assert not result.is_error
    assert [done for done, _ in seen] == [0.5, 1.0]
    assert "readWorkspaceFile" in (seen[0][1] or "")


async def test_the_operator_decides_what_is_offered(served: Workspace) -> None:
    async with Client(workspace_server(served, read_only=True, prefix="docs", extra=["history"])) as client:  # fmt: skip
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["listDocsWorkspace", "readDocsWorkspaceFile", "grepDocsWorkspace", "historyDocsWorkspaceFile"]  # fmt: skip
        with pytest.raises(MCPError):
            await client.call_tool("writeDocsWorkspaceFile", {"path": "/workspace/x", "content": "x"})  # fmt: skip


async def test_a_client_cannot_leave_its_namespace(served: Workspace) -> None:
    await served.write("/workspace/secret.md", "secret", namespace="other")
    async with Client(workspace_server(served.for_namespace("mine"))) as client:
        await client.call_tool("writeWorkspaceFile", {"path": "/workspace/m.md", "content": "x"})
        assert [r.name for r in (await client.list_resources()).resources] == ["/workspace/m.md"]
        for arguments in ({"path": "/workspace/secret.md"}, {"path": "/workspace/secret.md", "namespace": "other"}):  # fmt: skip
            assert (await client.call_tool("readWorkspaceFile", arguments)).is_error


@pytest.mark.parametrize("bad", [None, 5, "sqlite:///work.db", object()])
def test_only_a_workspace_is_served(bad: Any) -> None:
    from crux_workspace.errors import InvalidInputError

    with pytest.raises(InvalidInputError):
        workspace_server(bad)


async def test_without_a_runtime_it_serves_without_subscriptions(make_ws: MakeWorkspace) -> None:
    async with Client(workspace_server(make_ws())) as client:
        assert (await client.list_tools()).tools
