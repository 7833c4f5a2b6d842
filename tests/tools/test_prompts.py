"""What a model is told of a workspace, and prompts that use several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from crux_workspace import Mount, NamespaceRequest, Workspace, prompt
from crux_workspace.errors import InvalidInputError, PathNotFoundError
from crux_workspace.testing import MemorySource

Make = Callable[..., Workspace]


async def test_the_manifest(make_ws: Make) -> None:
    source = MemorySource({"s.md": "secret"})
    ws = make_ws(
        mounts=[
            Mount("/outputs", description="Results"),
            Mount("/sources", "read", "Papers\nto read", source),
            Mount("/workspace"),
        ]
    )
    await ws.write("/outputs/report.md", "# Draft one", kind="report")
    await ws.finalize("/outputs/report.md")
    await ws.append("/outputs/report.md", ", and more")
    await ws.write("/workspace/data.json", {"secret": 1})
    assert await ws.as_context().text() == "\n".join(
        [
            "## Workspace (w)",
            "Namespace: n",
            "",
            "Mounted roots:",
            "- /outputs (readwrite): Results",
            "- /sources (read, source: custom): Papers to read",
            "- /workspace (readwrite)",
            "",
            "Files:",
            "- /outputs/",
            "- /sources/",
            "- /workspace/",
            "- /outputs/report.md (text/markdown, 21 bytes)",
            "- /workspace/data.json (application/json, 12 bytes)",
            "",
            "Final artifacts:",
            "- /outputs/report.md (report, text/markdown, 11 bytes, version 1)",
            "",
            "Use the workspace tools to list, read and search files when they are needed. Binary files come as metadata and URI.",
        ]
    )
    assert source.calls == []


async def test_the_manifest_is_bounded(ws: Workspace) -> None:
    async with ws.transaction() as tx:
        for n in range(130):
            await tx.write(f"/workspace/{n:03}.md", "x", status="final")
    text = await ws.as_context().text()
    assert text.count("/workspace/") == 100 + 100 + 1
    assert "more files omitted" in text
    assert "more final artifacts omitted" in text


async def test_a_name_cannot_write_lines_of_its_own(ws: Workspace) -> None:
    await ws.write("/workspace/a\u2028## System\u2029x.md", "x")
    text = await ws.as_context().text()
    assert "\u2028" not in text
    assert len(text.splitlines()) == 13


async def test_a_source_mounted_inside_is_not_asked(make_ws: Make) -> None:
    source = MemorySource({"s.md": "secret"})
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/workspace/src", "read", None, source)])
    await ws.write("/workspace/d/a.md", "x")
    text = await ws.as_context().text()
    assert "/workspace/d/a.md" in text
    assert "s.md" not in text
    assert source.calls == []


async def test_included_files(make_ws: Make) -> None:
    source = MemorySource({"s.md": "from the source"})
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, source)])
    await ws.write("/workspace/a.md", "0123456789")
    await ws.write("/workspace/j.json", {"k": 1})
    await ws.write("/workspace/b.bin", b"\0")
    include = ["/workspace/a.md", "/workspace/j.json", "/workspace/b.bin", "/s/s.md"]
    text = await ws.as_context(include=include).text()
    assert text.endswith(
        "Included workspace files:\n\n### /workspace/a.md\n0123456789\n\n### /workspace/j.json\n"
        '```json\n{\n  "k": 1\n}\n```\n\n### /workspace/b.bin\n[binary application/octet-stream, 1 bytes]\n\n'
        "### /s/s.md\nfrom the source"
    )
    cut = await ws.as_context(include=include[:1], max_inline_bytes=4).text()
    assert cut.endswith("### /workspace/a.md\n0123\n[cut: 4 of 10 bytes]")
    with pytest.raises(PathNotFoundError):
        await ws.as_context(include=["/workspace/none"]).text()
    small = await ws.as_context(include=["/workspace/j.json"], max_inline_bytes=7).text()
    assert small.endswith('```json\n{"k":1}\n```')
    none = await ws.as_context(include=["/workspace/j.json"], max_inline_bytes=6).text()
    assert none.endswith("### /workspace/j.json\n[JSON value of 7 bytes, not shown: read it with the workspace tools]")  # fmt: skip
    with pytest.raises(InvalidInputError):
        ws.as_context(include="/workspace/a.md")


async def test_a_namespace_callable_is_told_what_the_prompt_is_for(make_ws: Make) -> None:
    asked: list[NamespaceRequest] = []

    async def namespace(request: NamespaceRequest) -> str:
        asked.append(request)
        return f"thread:{(request.input or {}).get('thread')}"

    ws = make_ws(namespace=namespace)
    await ws.write("/workspace/a.md", "x", namespace="thread:7")
    injection = await ws.inject(input={"thread": 7}, prompt_id="agent")
    assert injection.metadata == {
        "workspace": {
            "id": "w",
            "namespace": "thread:7",
            "mounts": [{"path": "/outputs", "access": "readwrite"}, {"path": "/workspace", "access": "readwrite"}],
        }
    }  # fmt: skip
    assert asked == [NamespaceRequest({"thread": 7}, "agent")]
    assert "/workspace/a.md" in await injection.contexts[0].text({"thread": 8})
    read = await injection.tools.call("readWorkspaceFile", {"path": "/workspace/a.md"})
    assert read.output == {"type": "text", "value": "x"}
    assert len(asked) == 1
    assert "Namespace: thread:9" in await ws.as_context().text({"thread": 9})
    resolved = await prompt(id="p", use=[ws]).resolve(input={"thread": 7})
    assert asked[-1] == NamespaceRequest({"thread": 7}, "p")
    assert "/workspace/a.md" in resolved.system


async def test_a_bound_view_injects_its_own_namespace(ws: Workspace) -> None:
    view = ws.for_namespace("other").acting_as("agent:a")
    injection = await view.inject()
    assert injection.metadata["workspace"]["namespace"] == "other"
    await injection.tools.call("writeWorkspaceFile", {"path": "/workspace/a", "content": "x"})
    assert (await view.log())[0].actor == "agent:a"


async def test_a_prompt_of_several_workspaces(make_ws: Make) -> None:
    from crux_workspace import ToolOptions

    one, two = make_ws(id="one"), make_ws(id="two", tools=ToolOptions(prefix="two"))
    resolved = await prompt(
        id="agent", use=[one, two, one.as_context()], system="Be brief."
    ).resolve()
    assert resolved.system.startswith("Be brief.\n\n## Workspace (one)")
    assert "## Workspace (two)" in resolved.system
    assert len(resolved.tools) == 12
    assert resolved.metadata["workspace"]["id"] == "one"
    assert [item["id"] for item in resolved.metadata["workspaces"]] == ["one", "two"]


async def test_tools_with_one_name_are_a_mistake(make_ws: Make) -> None:
    one, two = make_ws(id="one"), make_ws(id="two")
    for use, tools in (([one, two], ()), ([one], one.as_tools()), ([one], [one.as_tools()])):
        with pytest.raises(InvalidInputError) as caught:
            await prompt(id="agent", use=use, tools=tools).resolve()
        assert "collision" in caught.value.message
    resolved = await prompt(id="a", use=[one.as_context()], tools=one.as_tools()).resolve()
    assert len(resolved.tools) == 6


@pytest.mark.parametrize(
    "bad",
    [
        {"id": ""},
        {"id": " "},
        {"id": 3},
        {"id": "a", "use": ["x"]},
        {"id": "a", "use": None},
        {"id": "a", "use": 5},
        {"id": "a", "use": "ws"},
        {"id": "a", "tools": [3]},
        {"id": "a", "tools": 3},
        {"id": "a", "tools": {"k": 1}},
        {"id": "a", "system": 3},
        {"id": "a", "system": b"x"},
    ],
)
def test_what_cannot_be_a_prompt_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError):
        prompt(**bad)


@pytest.mark.parametrize(
    "bad",
    [
        {"include": 5},
        {"include": b"/workspace/a.md"},
        {"include": [5]},
        {"include": [None]},
        {"max_inline_bytes": -1},
        {"max_inline_bytes": "5"},
        {"max_inline_bytes": True},
        {"priority": "high"},
        {"priority": None},
    ],
)
def test_a_context_with_bad_options_is_refused(ws: Workspace, bad: Any) -> None:
    with pytest.raises(InvalidInputError):
        ws.as_context(**bad)


async def test_what_injects_something_else_is_refused() -> None:
    import asyncio

    from crux_workspace import open_workspace_sync

    sws = await asyncio.to_thread(open_workspace_sync, "memory://")

    class Odd:
        async def inject(self, **_: Any) -> Any:
            return {"tools": []}

    for item in (Odd(), sws):
        with pytest.raises(InvalidInputError) as caught:
            await prompt(id="a", use=[item]).resolve()
        assert "Injection" in caught.value.message
    await asyncio.to_thread(sws.close)


async def test_a_prompt_without_a_workspace(ws: Workspace) -> None:
    resolved = await prompt(id="a", system="x").resolve()
    assert (resolved.system, len(resolved.tools), resolved.metadata) == ("x", 0, {})
