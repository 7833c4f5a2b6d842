"""The tools of a workspace: names, schemas, shapes, and what a model is told when it calls them wrongly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from crux_workspace import (
    Mount,
    ToolOptions,
    Workspace,
    workspace_tool_names,
)
from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.model.settings import EXTRA_TOOLS
from crux_workspace.testing import MemorySource
from crux_workspace.tools import Tool, ToolResult, ToolSet

Make = Callable[..., Workspace]
DEFAULTS = [
    "listWorkspace",
    "readWorkspaceFile",
    "writeWorkspaceFile",
    "editWorkspaceFile",
    "renameWorkspaceFile",
    "grepWorkspace",
]
ARGUMENTS = {
    "list": "path limit cursor",
    "read_file": "path maxInlineBytes offset startLine endLine version",
    "write_file": "path content mimeType",
    "edit_file": "path find replace occurrence replaceAll edits",
    "rename_file": "from to overwrite",
    "grep": "query path ignoreCase regex maxResults",
    "delete_file": "path",
    "undo_file": "path",
    "stat_file": "path",
    "append_file": "path content mimeType",
    "copy_file": "from to overwrite",
    "history_file": "path limit",
    "diff_file": "path from to",
    "finalize_file": "path kind",
}


async def call(ws: Workspace, name: str, arguments: Any = None, **options: Any) -> Any:
    result = await ws.as_tools(delete=True, undo=True, extra=EXTRA_TOOLS, **options)[name].call(arguments)  # fmt: skip
    json.dumps(result.output)
    return result


# -- names and schemas


def test_names_take_the_prefix_in_pascal_case() -> None:
    assert workspace_tool_names().list == "listWorkspace"
    assert workspace_tool_names(prefix="research").read_file == "readResearchWorkspaceFile"
    assert workspace_tool_names("my-team x").undo_file == "undoMyTeamXWorkspaceFile"
    assert workspace_tool_names("?!").grep == "grepWorkspace"
    with pytest.raises(InvalidInputError):
        workspace_tool_names("x" * 60)


def test_what_is_offered(ws: Workspace, make_ws: Make) -> None:
    assert ws.as_tools().names == DEFAULTS
    assert ws.as_tools(delete=True, undo=True).names == [*DEFAULTS, "deleteWorkspaceFile", "undoWorkspaceFile"]  # fmt: skip
    assert ws.as_tools(extra=["stat", "diff"]).names[6:] == ["statWorkspaceFile", "diffWorkspaceFile"]  # fmt: skip
    configured = make_ws(tools=ToolOptions(prefix="a", delete=True))
    assert "deleteAWorkspaceFile" in configured.as_tools()
    assert configured.as_tools(prefix="b", delete=False).names[0] == "listBWorkspace"
    assert configured.describe()["tools"] == configured.as_tools().names
    assert not [name for name in ws.as_tools(extra=EXTRA_TOOLS).names if name.startswith("move")]


@pytest.mark.parametrize(
    "options",
    [
        {"extra": "stat"},
        {"extra": ["nothing"]},
        {"extra": 5},
        {"prefix": 3},
        {"delete": "yes"},
        {"max_entries": 0},
        {"max_result_bytes": 10},
        {"max_result_bytes": None},
    ],
)
def test_bad_options_are_refused(options: Any) -> None:
    with pytest.raises(InvalidInputError):
        ToolOptions(**options)


def test_arguments_are_the_documented_ones(ws: Workspace) -> None:
    tools = ws.as_tools(delete=True, undo=True, extra=EXTRA_TOOLS)
    names = workspace_tool_names()
    for field, arguments in ARGUMENTS.items():
        schema = tools[getattr(names, field)].parameters
        assert list(schema["properties"]) == arguments.split()
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
    assert tools["listWorkspace"].parameters["required"] == []
    assert "glob" in tools["listWorkspace"].description
    assert "contents" in tools["grepWorkspace"].description
    assert "regular expression" in tools["grepWorkspace"].description


async def test_examples_lie_on_mounts_that_there_are(make_ws: Make) -> None:
    ws = make_ws(mounts=[Mount("/library", "read"), Mount("/notes")])
    tools = ws.as_tools(extra=EXTRA_TOOLS)
    told = json.dumps([dict(tool.parameters) for tool in tools])
    assert "/workspace" not in told
    assert "/outputs" not in told
    assert "/library/**/*.md" in told
    assert "/notes/report.md" in told
    missing = await tools.call("readWorkspaceFile", {})
    assert "'/library/notes.md'" in str(missing.error)
    assert "/workspace/**/*.md" in json.dumps(
        dict(make_ws().as_tools()["listWorkspace"].parameters)
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"name": "\ud800"},
        {"description": "\udc00"},
        {"parameters": {"properties": {"\ud800": {"type": "string"}}}},
    ],
)
def test_a_tool_that_no_transport_can_send_is_refused(bad: Any) -> None:
    async def handler(arguments: Any, call_id: str | None) -> ToolResult:
        return ToolResult.success("x")

    good: Any = {"name": "n", "description": "d", "parameters": {}, "handler": handler}
    Tool(**good)
    with pytest.raises(InvalidInputError):
        Tool(**{**good, **bad})


@pytest.mark.parametrize(
    "form", ["openai", "anthropic", "langchain", "pydantic-ai", "openai-agents"]
)
async def test_no_form_hands_on_half_a_character(make_ws: Make, form: str) -> None:
    async def handler(arguments: Any, call_id: str | None) -> ToolResult:
        return ToolResult.success({"\ud800": ["\udc00"]})

    tools = ToolSet([Tool("odd", "d", {"type": "object", "properties": {}}, handler)]).to(form)
    call: Any = {"id": "1", "name": "odd", "arguments": "{}", "input": {}}
    answer: Any
    if form == "openai":
        answer = await tools.answer({"tool_calls": [{"id": "1", "function": call}]})
    elif form == "anthropic":
        answer = await tools.answer({"content": [{"type": "tool_use", **call}]})
    elif form == "langchain":
        answer = await tools[0].ainvoke({})
    elif form == "pydantic-ai":
        answer = await tools[0].function()
    else:
        answer = await tools[0].on_invoke_tool(None, "{}")
    told = json.dumps(answer, ensure_ascii=False)
    assert told.encode().decode() == told
    assert "\ufffd" in told or "?" in told


def test_annotations_say_what_a_tool_may_do(ws: Workspace) -> None:
    tools = ws.as_tools(delete=True, undo=True, extra=EXTRA_TOOLS)
    reads = {t.name for t in tools if t.annotations.read_only}
    names = workspace_tool_names()
    assert reads == {names.list, names.read_file, names.grep, names.stat_file, names.history_file, names.diff_file}  # fmt: skip
    assert tools[names.delete_file].annotations.destructive
    assert not tools[names.append_file].annotations.destructive


def tokens(text: str) -> int:
    """Count at least as many tokens as byte-pair tokenizers make: a piece a word of up to five letters, a sign, two digits."""
    pieces = re.findall(r"[A-Za-z]+|\d+|[^\sA-Za-z\d]", text)
    return sum(-(-len(p) // 5) if p.isalpha() else -(-len(p) // 2) for p in pieces)


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_the_default_tools_cost_few_tokens(ws: Workspace, form: str) -> None:
    definitions = json.dumps(list(ws.as_tools().to(form)), separators=(",", ":"))
    print(form, tokens(definitions), len(definitions))
    assert tokens(definitions) < 1_500
    assert len(definitions) < 4_500


# -- shapes


async def test_each_tool_answers_in_its_shape(ws: Workspace) -> None:
    written = await call(ws, "writeWorkspaceFile", {"path": "/outputs/r.md", "content": "one\ntwo\n"})  # fmt: skip
    assert written.output == {
        "path": "/outputs/r.md",
        "mimeType": "text/markdown",
        "size": 8,
        "storage": "inline",
        "version": 1,
    }
    assert written.value.version == 1
    read = await call(ws, "readWorkspaceFile", {"path": "/outputs/r.md"})
    assert read.output == {"type": "text", "value": "one\ntwo\n"}
    await call(ws, "writeWorkspaceFile", {"path": "/outputs/d.json", "content": {"k": [1]}})
    assert (await call(ws, "readWorkspaceFile", {"path": "/outputs/d.json"})).output == {"type": "json", "value": {"k": [1]}}  # fmt: skip
    await call(ws, "writeWorkspaceFile", {"path": "/outputs/n.json", "content": None})
    assert await ws.read_json("/outputs/n.json") is None
    listed = await call(ws, "listWorkspace", {"path": "/outputs"})
    assert listed.output["label"] == "Workspace listing"
    assert [e["path"] for e in listed.output["result"]["entries"]] == [f"/outputs/{n}" for n in ("d.json", "n.json", "r.md")]  # fmt: skip
    found = await call(ws, "grepWorkspace", {"query": "two"})
    assert found.output == {
        "label": "Workspace grep matches",
        "result": {"matches": [{"path": "/outputs/r.md", "line": 2, "column": 1, "text": "two"}]},
    }
    edited = await call(ws, "editWorkspaceFile", {"path": "/outputs/r.md", "find": "two", "replace": ""})  # fmt: skip
    assert edited.output["version"] == 2
    several = [{"find": "one", "replace": "1"}, {"find": "1\n", "replace": "2\n"}]
    assert (await call(ws, "editWorkspaceFile", {"path": "/outputs/r.md", "edits": several})).ok
    assert await ws.read_text("/outputs/r.md") == "2\n\n"
    assert (await call(ws, "undoWorkspaceFile", {"path": "/outputs/r.md"})).output["version"] == 4
    renamed = await call(ws, "renameWorkspaceFile", {"from": "/outputs/r.md", "to": "/outputs/s.md"})  # fmt: skip
    assert renamed.output["path"] == "/outputs/s.md"
    deleted = await call(ws, "deleteWorkspaceFile", {"path": "/outputs/n.json"})
    assert deleted.output == {"label": "Workspace file deleted", "result": {"deleted": True, "path": "/outputs/n.json"}}  # fmt: skip
    history = await call(ws, "historyWorkspaceFile", {"path": "/outputs/s.md", "limit": 2})
    assert [v["version"] for v in history.output["result"]["versions"]] == [4, 3]
    assert "note" in history.output["result"]
    diff = await call(ws, "diffWorkspaceFile", {"path": "/outputs/s.md", "from": 1, "to": 2})
    assert "-two" in diff.output["result"]["unified"]
    final = await call(ws, "finalizeWorkspaceFile", {"path": "/outputs/s.md", "kind": "report"})
    assert (final.output["status"], final.output["version"], final.output["kind"]) == ("final", 4, "report")  # fmt: skip
    stat = await call(ws, "statWorkspaceFile", {"path": "/outputs/s.md"})
    assert stat.output["status"] == "final"
    missing = await call(ws, "statWorkspaceFile", {"path": "/outputs/none"})
    assert missing.output == {"path": "/outputs/none", "exists": False}
    assert (await call(ws, "appendWorkspaceFile", {"path": "/outputs/s.md", "content": "end"})).ok
    assert (await call(ws, "copyWorkspaceFile", {"from": "/outputs/s.md", "to": "/workspace/c.md"})).ok  # fmt: skip


@pytest.mark.parametrize("path", [None, "", "/"])
async def test_an_empty_or_missing_path_is_the_root(ws: Workspace, path: str | None) -> None:
    await ws.write("/workspace/a.md", "word")
    listed = await call(ws, "listWorkspace", {} if path is None else {"path": path})
    assert [e["path"] for e in listed.output["result"]["entries"]] == ["/outputs", "/workspace"]
    found = await call(ws, "grepWorkspace", {"query": "word", "path": path})
    assert len(found.output["result"]["matches"]) == 1


@pytest.mark.parametrize("given", [None, {}, "", "{}"])
async def test_arguments_may_be_missing_or_json_text(ws: Workspace, given: Any) -> None:
    assert (await call(ws, "listWorkspace", given)).ok
    assert (await call(ws, "readWorkspaceFile", '{"path": "/workspace/none"}')).error.code == "FILE_NOT_FOUND"  # fmt: skip


# -- wrong calls: tool, arguments, code, what the hint has to say

R, W, E, L, G = "readWorkspaceFile", "writeWorkspaceFile", "editWorkspaceFile", "listWorkspace", "grepWorkspace"  # fmt: skip
A = "/workspace/a.md"
WRONG: list[tuple[str, Any, str, str]] = [
    (R, {"path": "workspace/a.md"}, "INVALID_PATH", "'/workspace/a.md'"),
    (R, {"path": "a.md"}, "INVALID_PATH", "'/outputs/a.md'"),
    (R, {"path": "./workspace/a.md"}, "INVALID_PATH", "'/workspace/a.md'"),
    (R, {"path": None}, "INVALID_ARGUMENT", "absolute path"),
    (R, {"path": ""}, "INVALID_ARGUMENT", "absolute path"),
    (R, {}, "INVALID_ARGUMENT", "Send path"),
    (R, {"path": ["/workspace/a.md"]}, "INVALID_ARGUMENT", "absolute path"),
    (R, {"path": 5}, "INVALID_ARGUMENT", "absolute path"),
    (R, {"file_path": A}, "INVALID_ARGUMENT", "path"),
    (R, {"path": A, "limit": 5}, "INVALID_ARGUMENT", "startLine"),
    (R, {"path": A, "offset": "10"}, "INVALID_ARGUMENT", "without quotes"),
    (R, {"path": A, "offset": -1}, "INVALID_ARGUMENT", "at least 0"),
    (R, {"path": A, "offset": 1.5}, "INVALID_ARGUMENT", "whole number"),
    (R, {"path": A, "offset": True}, "INVALID_ARGUMENT", "whole number"),
    (R, {"path": A, "maxInlineBytes": 0}, "INVALID_ARGUMENT", "at least 1"),
    (R, {"path": A, "startLine": 0}, "INVALID_ARGUMENT", "at least 1"),
    (R, {"path": A, "startLine": 99}, "INVALID_ARGUMENT", "between 1 and 3"),
    (R, {"path": A, "startLine": 2, "offset": 5}, "INVALID_ARGUMENT", "only one"),
    (R, {"path": A, "version": 9}, "VERSION_NOT_FOUND", "historyWorkspaceFile"),
    (R, {"path": "/workspace"}, "FILE_NOT_FOUND", "directory"),
    (R, {"path": "/workspace/"}, "INVALID_PATH", "slash"),
    (R, {"path": "/workspace/none.md"}, "FILE_NOT_FOUND", "listWorkspace on /workspace"),
    (R, {"path": "/etc/passwd"}, "OUTSIDE_MOUNTS", "/workspace"),
    (R, {"path": "/workspace/../etc"}, "INVALID_PATH", ".."),
    (R, {"path": "/workspace/*.md"}, "FILE_NOT_FOUND", "listWorkspace"),
    (R, [], "INVALID_ARGUMENT", "one JSON object"),
    (R, "{not json", "INVALID_ARGUMENT", "one JSON object"),
    (R, "[1]", "INVALID_ARGUMENT", "one JSON object"),
    (L, {"path": "*"}, "INVALID_PATH", "'/**/*'"),
    (L, {"path": "**/*.md"}, "INVALID_PATH", "'/**/"),
    (L, {"limit": "10"}, "INVALID_ARGUMENT", "without quotes"),
    (L, {"limit": 0}, "INVALID_ARGUMENT", "at least 1"),
    (L, {"cursor": "made up"}, "INVALID_CURSOR", "Leave cursor out"),
    (L, {"recursive": True}, "INVALID_ARGUMENT", "path, limit, cursor"),
    (G, {"query": ""}, "INVALID_ARGUMENT", "query"),
    (G, {"query": None}, "INVALID_ARGUMENT", "query"),
    (G, {"pattern": "x"}, "INVALID_ARGUMENT", "query"),
    (G, {"query": "(", "regex": True}, "INVALID_REGEX", ""),
    (G, {"query": "x", "regex": "true"}, "INVALID_ARGUMENT", "without quotes"),
    (G, {"query": "x", "path": "*.md"}, "INVALID_PATH", "'/**/*.md'"),
    (W, {"path": A}, "INVALID_ARGUMENT", "Send content"),
    (W, {"path": "/workspace", "content": "x"}, "PATH_TYPE_CONFLICT", "/workspace/notes.md"),
    (W, {"path": A + "/b.md", "content": "x"}, "PATH_TYPE_CONFLICT", ""),
    (W, {"path": "/ro/x", "content": "x"}, "READ_ONLY_MOUNT", "/outputs"),
    (W, {"path": A, "content": "x", "mimeType": "\n"}, "INVALID_ARGUMENT", ""),
    (W, {"path": A, "content": "\ud800"}, "INVALID_CONTENT", ""),
    (E, {"path": A}, "INVALID_ARGUMENT", "Send find"),
    (E, {"path": A, "find": "", "replace": "x"}, "INVALID_ARGUMENT", "exact text"),
    (E, {"path": A, "find": "two"}, "INVALID_ARGUMENT", "replace"),
    (E, {"path": A, "find": "two", "replace": None}, "INVALID_ARGUMENT", "replace"),
    (E, {"path": A, "find": "nowhere", "replace": "x"}, "EDIT_NOT_FOUND", "Read the file again"),
    (E, {"path": A, "find": "line tvo", "replace": "x"}, "EDIT_NOT_FOUND", "line 2"),
    (E, {"path": A, "find": "line", "replace": "x"}, "EDIT_AMBIGUOUS", "replaceAll"),
    (E, {"path": A, "find": "line", "replace": "x", "occurrence": 9}, "EDIT_NOT_FOUND", "1 to 3"),
    (E, {"path": A, "find": "line", "replace": "x", "occurrence": "1"}, "INVALID_ARGUMENT", "without quotes"),
    (E, {"path": A, "find": "two", "replace": "x", "edits": [{"find": "a", "replace": "b"}]}, "INVALID_ARGUMENT", "either"),
    (E, {"path": A, "edits": '[{"find": "a", "replace": "b"}]'}, "INVALID_ARGUMENT", "without quotes"),
    (E, {"path": A, "edits": ["a"]}, "INVALID_ARGUMENT", "objects with find and replace"),
    (E, {"path": A, "edits": [{"find": "a"}]}, "INVALID_ARGUMENT", "replace"),
    (E, {"path": A, "edits": [{"find": "a", "replace": "b", "all": True}]}, "INVALID_ARGUMENT", "replaceAll"),
    (E, {"path": "/workspace", "find": "a", "replace": "b"}, "PATH_TYPE_CONFLICT", ""),
    (E, {"path": "/workspace/j.json", "find": "a", "replace": "b"}, "INVALID_CONTENT", "writeWorkspaceFile"),
    (E, {"path": "/workspace/b.bin", "find": "a", "replace": "b"}, "BINARY_CONTENT", "binary"),
    ("renameWorkspaceFile", {"from": A, "to": "/workspace/j.json"}, "ALREADY_EXISTS", "overwrite: true"),
    ("renameWorkspaceFile", {"from": A}, "INVALID_ARGUMENT", "Send to"),
    ("renameWorkspaceFile", {"from": A, "to": "/workspace/d"}, "PATH_TYPE_CONFLICT", "'/workspace/d/a.md'"),
    ("renameWorkspaceFile", {"from": A, "to": "/workspace/d/"}, "INVALID_PATH", "'/workspace/d/a.md'"),
    ("renameWorkspaceFile", {"from": A, "to": "/outputs"}, "PATH_TYPE_CONFLICT", "'/outputs/a.md'"),
    ("renameWorkspaceFile", {"from": A, "to": "/workspace/j.json/x"}, "PATH_TYPE_CONFLICT", "nothing can be below it"),
    ("renameWorkspaceFile", {"from": "/workspace/d", "to": A}, "PATH_TYPE_CONFLICT", "free"),
    ("renameWorkspaceFile", {"from": "/workspace/d", "to": "/workspace/e"}, "ALREADY_EXISTS", "free"),
    ("renameWorkspaceFile", {"from": "workspace/a.md", "to": "x.md"}, "INVALID_PATH", "'/workspace/a.md'"),
    ("renameWorkspaceFile", {"from": A, "to": "x.md"}, "INVALID_PATH", "'/outputs/x.md'"),
    ("copyWorkspaceFile", {"from": A, "to": "/workspace/d"}, "PATH_TYPE_CONFLICT", "'/workspace/d/a.md'"),
    ("deleteWorkspaceFile", {"path": "/workspace/d"}, "PATH_TYPE_CONFLICT", "one by one"),
    ("deleteWorkspaceFile", {"path": "/workspace/d/"}, "PATH_TYPE_CONFLICT", "one by one"),
    ("deleteWorkspaceFile", {"path": "/workspace"}, "PATH_TYPE_CONFLICT", "one by one"),
    (W, {"path": "/workspace/d", "content": "x"}, "PATH_TYPE_CONFLICT", "/workspace/d/notes.md"),
    (E, {"path": "/s/a.md", "find": "a", "replace": "b"}, "SOURCE_UNSUPPORTED", "copyWorkspaceFile"),
    (R, {"path": "/s/a.md", "version": 1}, "SOURCE_UNSUPPORTED", "Leave version out"),
    ("undoWorkspaceFile", {"path": "/s/a.md"}, "SOURCE_UNSUPPORTED", "copyWorkspaceFile"),
    ("renameWorkspaceFile", {"from": "/s/a.md", "to": "/workspace/s.md"}, "SOURCE_UNSUPPORTED", "copyWorkspaceFile"),
    ("renameWorkspaceFile", {"src": A, "dst": "x"}, "INVALID_ARGUMENT", "from, to"),
    ("undoWorkspaceFile", {"path": A}, "NOTHING_TO_UNDO", ""),
    ("diffWorkspaceFile", {"path": A}, "VERSION_NOT_FOUND", ""),
    ("appendWorkspaceFile", {"path": "/workspace/j.json", "content": "x"}, "INVALID_CONTENT", ""),
]  # fmt: skip


class ReadOnly:
    """A source that only lists and reads."""

    def __init__(self, files: dict[str, Any]) -> None:
        inner = MemorySource(files)
        self.list, self.read = inner.list, inner.read


async def wrong_place(make_ws: Make) -> Workspace:
    """Make a workspace in which all the wrong calls go wrong."""
    source = Mount("/s", source=ReadOnly({"a.md": "a"}))
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/outputs"), Mount("/ro", "read"), source])
    await ws.write(A, "line one\nline two\nline three\n")
    await ws.write("/workspace/j.json", {"a": 1})
    await ws.write("/workspace/b.bin", b"\0")
    await ws.write("/workspace/d/x.md", "x")
    await ws.write("/workspace/e/x.md", "x")
    return ws


PYTHON = re.compile(r"\b[a-z]+_[a-z_]+\b|\b[a-z]+=(?!\d)|\brecursive\b|\w\(\)")
"""What only a caller in Python can send."""


@pytest.mark.parametrize("names", [(), EXTRA_TOOLS])
async def test_a_hint_names_only_what_the_model_has(make_ws: Make, names: Any) -> None:
    ws = await wrong_place(make_ws)
    tools = ws.as_tools(extra=names, delete=bool(names), undo=bool(names))
    seen = 0
    for tool, arguments, code, _ in WRONG:
        if tool not in tools:
            continue
        result = await tools.call(tool, arguments)
        assert result.error is not None
        assert result.error.code == code
        told = f"{result.error.message} {result.error.hint or ''}"
        for name in arguments if isinstance(arguments, dict) else ():
            told = told.replace(repr(name), "")
        named = set(re.findall(r"\b[a-z]+Workspace(?:File)?\b", told))
        assert named <= set(tools.names), (tool, arguments, told)
        assert not PYTHON.search(told), (tool, arguments, told)
        seen += 1
    assert seen > 60


@pytest.mark.parametrize(("tool", "arguments", "code", "hint"), WRONG)
async def test_a_wrong_call_tells_the_model_how_to_go_on(
    make_ws: Make, tool: str, arguments: Any, code: str, hint: str
) -> None:
    ws = await wrong_place(make_ws)
    before = await ws.log(limit=1)
    result = await call(ws, tool, arguments)
    assert not result.ok
    assert result.error.code == code, result.error
    assert result.error.message
    assert hint in (result.error.hint or ""), result.error
    assert result.output == {"error": result.error.to_dict()}
    assert "replace_all" not in result.text
    assert "max_inline_bytes" not in result.text
    assert await ws.log(limit=1) == before


async def test_a_line_ending_difference_is_named(ws: Workspace) -> None:
    await ws.write("/workspace/w.md", "one\r\ntwo\r\n")
    result = await call(ws, E, {"path": "/workspace/w.md", "find": "one\ntwo", "replace": "x"})
    assert "CRLF" in result.error.hint or "\\r\\n" in result.error.hint
    await ws.write("/workspace/u.md", "caf\u00e9\n")
    result = await call(ws, E, {"path": "/workspace/u.md", "find": "cafe\u0301", "replace": "x"})
    assert "normalisation" in result.error.hint


async def test_a_tool_that_breaks_is_a_result(make_ws: Make) -> None:
    class Breaks(MemorySource):
        def read(self, path: str, options: Any) -> Any:
            raise RuntimeError("secret")

    ws = make_ws(mounts=[Mount("/s", "read", None, Breaks({"a": "x"}))])
    result = await call(ws, R, {"path": "/s/a"})
    assert (result.ok, result.error.code) == (False, "STORE_UNAVAILABLE")
    assert "secret" not in result.text
    result = await ws.as_tools().call("noSuchTool", {})
    assert result.error is not None
    assert "readWorkspaceFile" in (result.error.hint or "")


# -- bounds


async def test_a_long_text_is_read_on_by_offset(ws: Workspace) -> None:
    text = "".join(f"line {n} ä\n" for n in range(12_000))
    await ws.write("/workspace/long.md", text)
    pieces, offset = [], 0
    for _ in range(20):
        result = await call(ws, R, {"path": "/workspace/long.md", "offset": offset})
        assert len(result.output["value"].encode()) <= 32_000
        pieces.append(result.output["value"])
        if "nextOffset" not in result.output:
            break
        assert f"offset={result.output['nextOffset']}" in result.output["note"]
        offset = result.output["nextOffset"]
    assert "".join(pieces) == text


async def test_a_long_text_is_read_on_by_lines(ws: Workspace) -> None:
    text = "".join(f"line {n}\n" for n in range(12_000))
    await ws.write("/workspace/long.md", text)
    pieces, line = [], 1
    for _ in range(20):
        result = await call(ws, R, {"path": "/workspace/long.md", "startLine": line})
        pieces.append(result.output["value"])
        if "nextLine" not in result.output:
            break
        line = result.output["nextLine"]
    assert "".join(pieces) == text
    result = await call(ws, R, {"path": "/workspace/long.md", "startLine": 3, "endLine": 4})
    assert result.output["value"] == "line 2\nline 3\n"


async def test_a_line_longer_than_an_answer_is_said_to_be_cut(ws: Workspace) -> None:
    await ws.write("/workspace/one.md", "x" * 100_000 + "\nlast\n")
    first = (await call(ws, "readWorkspaceFile", {"path": "/workspace/one.md", "startLine": 1})).output  # fmt: skip
    assert (first["totalLines"], first["nextLine"]) == (2, 2)
    shown = len(first["value"])
    assert f"its first {shown} characters" in first["note"]
    assert f"offset={first['nextOffset']}" in first["note"]
    rest = (await call(ws, "readWorkspaceFile", {"path": "/workspace/one.md", "offset": shown})).output  # fmt: skip
    assert rest["offset"] == shown
    await ws.write("/workspace/two.md", "short\n" + "y" * 100_000)
    second = (await call(ws, "readWorkspaceFile", {"path": "/workspace/two.md", "startLine": 2})).output  # fmt: skip
    assert second["nextOffset"] == 6 + len(second["value"])


async def test_all_of_a_json_value_can_be_read(ws: Workspace) -> None:
    values: list[Any] = [{"k": 'y\n"é' * 30_000}, ["x" * 40_000] * 3, list(range(9_000))]
    for value in values:
        await ws.write("/workspace/a.json", value)
        arguments: dict[str, Any] = {"path": "/workspace/a.json", "offset": 1}
        pieces = []
        for _ in range(60):
            result = await call(ws, R, arguments)
            assert len(result.text.encode()) <= 33_000
            pieces.append(result.output["value"])
            if "nextOffset" not in result.output:
                break
            arguments["offset"] = result.output["nextOffset"]
        first = (await call(ws, R, {"path": "/workspace/a.json"})).output
        whole = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
        assert whole[:1] + "".join(pieces) == whole
        assert whole.startswith(first["value"])
        assert "JSON value as text" in first["note"]
        assert "nextOffset" in first or "nextLine" in first


async def test_an_answer_is_bounded_in_the_form_it_is_sent_in(ws: Workspace) -> None:
    awkward = '"\x01\n\\' * 20_000
    await ws.write("/workspace/awkward.md", awkward)
    await ws.write("/workspace/numbers.json", [*range(10)] * 1_500)
    pieces, offset = [], 0
    for _ in range(60):
        result = await call(ws, R, {"path": "/workspace/awkward.md", "offset": offset})
        assert len(result.text.encode()) <= 32_400
        pieces.append(result.output["value"])
        if "nextOffset" not in result.output:
            break
        offset = result.output["nextOffset"]
    assert "".join(pieces) == awkward
    lines = await call(ws, R, {"path": "/workspace/awkward.md", "startLine": 5})
    assert len(lines.text.encode()) <= 32_400
    assert (await call(ws, R, {"path": "/workspace/numbers.json"})).output["truncated"]
    await ws.write("/workspace/awkward.md", awkward[:-8])
    diff = await call(ws, "diffWorkspaceFile", {"path": "/workspace/awkward.md"})
    assert len(diff.text.encode()) <= 32_600
    grep = await call(ws, G, {"query": "\\", "maxResults": 200})
    assert len(grep.text.encode()) <= 40_000
    name = "\u2028é" * 40 + "/" + "x" * 250
    for n in range(3):
        await ws.write(f"/workspace/{name}", f"{n}" * (n + 1))
    for tool, arguments in ((L, {"path": "/workspace/**"}), ("historyWorkspaceFile", {"path": f"/workspace/{name}"})):  # fmt: skip
        small = await call_small(ws, tool, arguments)
        assert len(small.text.encode()) <= 2_000


async def call_small(ws: Workspace, name: str, arguments: Any) -> Any:
    from dataclasses import replace

    from crux_workspace.tools.workspace_tools import workspace_tools

    options = replace(ToolOptions(extra=EXTRA_TOOLS), max_result_bytes=1_000)
    return await workspace_tools(ws, options).call(name, arguments)


async def test_a_way_to_go_on_is_one_that_is_there(ws: Workspace) -> None:
    await ws.write("/workspace/w.md", "word\n" * 500)
    for wanted, offered in ((150, True), (200, False), (9_000, False)):
        found = await call(ws, G, {"query": "word", "maxResults": wanted})
        assert len(found.output["result"]["matches"]) == min(wanted, 200)
        assert ("maxResults" in found.output["result"]["note"]) is offered
    async with ws.transaction() as tx:
        await tx.write("/workspace/h.md", "0")
    for n in range(205):
        await ws.write("/workspace/h.md", f"{n}")
    for limit, word in ((20, "raise limit"), (200, "readWorkspaceFile")):
        told = await call(ws, "historyWorkspaceFile", {"path": "/workspace/h.md", "limit": limit})
        assert word in told.output["result"]["note"]


async def test_no_answer_shows_where_the_server_keeps_its_files(make_ws: Make, tmp_path: Any) -> None:  # fmt: skip
    from crux_workspace.storage import MemoryRecordStore
    from crux_workspace.storage import storage as bundled
    from storage_adapters.local_files import LocalFilesAssetStore

    kept = bundled(records=MemoryRecordStore(), assets=LocalFilesAssetStore(tmp_path))
    ws = make_ws(storage=kept)
    wrote = await ws.write("/workspace/b.bin", b"\0" * 10)
    assert str(tmp_path) in (wrote.uri or "")
    for name, arguments in (
        (R, {"path": "/workspace/b.bin"}),
        ("statWorkspaceFile", {"path": "/workspace/b.bin"}),
        (L, {"path": "/workspace"}),
        ("renameWorkspaceFile", {"from": "/workspace/b.bin", "to": "/workspace/c.bin"}),
        ("copyWorkspaceFile", {"from": "/workspace/c.bin", "to": "/workspace/b.bin"}),
        ("finalizeWorkspaceFile", {"path": "/workspace/b.bin"}),
        (W, {"path": "/workspace/long.md", "content": "x" * 100_000}),
        ("undoWorkspaceFile", {"path": "/workspace/b.bin"}),
    ):
        result = await call(ws, name, arguments)
        assert str(tmp_path) not in result.text, name


def test_which_uris_are_shown() -> None:
    from crux_workspace.tools.shapes import shown_uri

    assert shown_uri("s3://bucket/key") == "s3://bucket/key"
    assert shown_uri("memory://asset/1") == "memory://asset/1"
    assert shown_uri("workspace-inline://w/n/a.md@v1") == "workspace-inline://w/n/a.md@v1"
    for hidden in ("file:///srv/assets/1", "FILE:///x", "obstore+file:///x", "/srv/x", None, ""):
        assert shown_uri(hidden) is None


async def test_a_size_that_a_source_does_not_tell_is_not_shown(make_ws: Make) -> None:
    from crux_workspace import BinaryContent, ListResult, WorkspaceFile

    class Quiet:
        def list(self, path: str, options: Any) -> Any:
            return ListResult([WorkspaceFile(path="/s/a.bin")])

        def read(self, path: str, options: Any) -> Any:
            return BinaryContent(path=path) if path == "/s/a.bin" else None

    ws = make_ws(mounts=[Mount("/s", source=Quiet()), Mount("/workspace")])
    await ws.write("/workspace/empty.md", "")
    for name in (R, "statWorkspaceFile"):
        assert "size" not in (await call(ws, name, {"path": "/s/a.bin"})).output
    listed = await call(ws, L, {"path": "/s"})
    assert "size" not in listed.output["result"]["entries"][0]
    assert (await call(ws, "statWorkspaceFile", {"path": "/workspace/empty.md"})).output[
        "size"
    ] == 0
    assert "[binary application/octet-stream]" in await ws.as_context(include=["/s/a.bin"]).text()


async def test_an_image_is_as_large_as_it_is_not_as_it_is_said_to_be(make_ws: Make) -> None:
    class Lying(MemorySource):
        def read(self, path: str, options: Any) -> Any:
            from dataclasses import replace

            content = super().read(path, options)
            return content and replace(content, size=5, mime_type="image/png")

    source = Lying({"huge.png": b"\0" * 4_000_000, "small.png": b"png"})
    ws = make_ws(mounts=[Mount("/s", source=source)])
    assert (await call(ws, R, {"path": "/s/huge.png"})).media == ()
    assert len((await call(ws, R, {"path": "/s/small.png"})).media) == 1


async def test_a_late_answer_may_have_been_a_change(make_ws: Make) -> None:
    class Late(MemorySource):
        def write(self, path: str, content: Any, options: Any) -> Any:
            raise TimeoutError

        def read(self, path: str, options: Any) -> Any:
            raise TimeoutError

    ws = make_ws(mounts=[Mount("/s", source=Late({"a.md": "x"}))])
    wrote = await call(ws, W, {"path": "/s/a.md", "content": "x"})
    assert wrote.error.code == "STORE_TIMEOUT"
    assert "may have happened" in wrote.error.hint
    read = await call(ws, R, {"path": "/s/a.md"})
    assert read.error.code == "STORE_TIMEOUT"
    assert "may have happened" not in read.error.hint


async def test_where_nothing_can_be_changed_no_place_is_named(make_ws: Make) -> None:
    ws = make_ws(mounts=[Mount("/s", source=ReadOnly({"a.md": "x"})), Mount("/ro", "read")])
    result = await call(ws, W, {"path": "/s/a.md", "content": "x"})
    assert (result.error.code, result.error.hint) == ("SOURCE_UNSUPPORTED", "Nothing here can be changed.")  # fmt: skip


async def test_one_failing_mount_leaves_a_model_the_others(make_ws: Make) -> None:
    class Broken(MemorySource):
        def list(self, path: str, options: Any) -> Any:
            raise RuntimeError("secret")

        def grep(self, query: str, options: Any) -> Any:
            raise RuntimeError("secret")

    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", "read", None, Broken())])
    await ws.write(A, "word\n")
    for name, arguments, key in (
        (G, {"query": "word"}, "matches"),
        (G, {"query": "word", "path": "/**/*.md"}, "matches"),
        (L, {"path": "/**/*.md"}, "entries"),
    ):
        result = await call(ws, name, arguments)
        assert [item["path"] for item in result.output["result"][key]] == [A]
        assert "/s could not be looked into (STORE_UNAVAILABLE)" in result.output["result"]["note"]
    only = await call(ws, G, {"query": "word", "path": "/s"})
    assert only.error.code == "STORE_UNAVAILABLE"
    assert "/s" in only.error.message


async def test_reading_on_by_offset_always_gets_on(ws: Workspace) -> None:
    await ws.write("/workspace/wide.md", "é😀" * 20)
    at, seen = 0, ""
    for _ in range(200):
        arguments = {"path": "/workspace/wide.md", "offset": at, "maxInlineBytes": 1}
        output = (await call(ws, "readWorkspaceFile", arguments)).output
        seen += output["value"]
        if "nextOffset" not in output:
            break
        assert output["nextOffset"] > at
        at = output["nextOffset"]
    assert seen == "é😀" * 20


async def test_what_no_transport_can_send_is_replaced(make_ws: Make) -> None:
    from crux_workspace import GrepMatch, GrepResult

    lying = MemorySource({"/a.md": "x"})
    lying.grep = lambda query, options: GrepResult([GrepMatch("/s/a.md", 1, 1, "\ud800 t")])  # type: ignore[method-assign]
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/s", source=lying)])
    for name, arguments in (
        ("grepWorkspace", {"query": "t", "path": "/s"}),
        ("readWorkspaceFile", {"path": "\ud800"}),
        ("listWorkspace", {"limit": "\ud800"}),
    ):
        result = await call(ws, name, arguments)
        result.text.encode()
        assert result.ok or str(result.error.to_dict()).encode()


async def test_a_large_json_value_is_shown_as_lines(ws: Workspace) -> None:
    await ws.write("/workspace/big.json", {"rows": list(range(20_000))})
    result = await call(ws, R, {"path": "/workspace/big.json"})
    assert result.output["truncated"]
    assert len(result.text) < 40_000
    line = result.output["nextLine"]
    following = await call(ws, R, {"path": "/workspace/big.json", "startLine": line, "endLine": line})  # fmt: skip
    assert following.output["value"].strip().rstrip(",") == str(line - 3)


async def test_listings_and_searches_are_bounded(ws: Workspace) -> None:
    async with ws.transaction() as tx:
        for n in range(450):
            await tx.write(f"/workspace/{'x' * 150}{n:03}.md", "word " + "y" * 1_500 + "\n")
    seen, cursor = [], None
    for _ in range(30):
        given = {"path": "/workspace", "limit": 100_000, **({"cursor": cursor} if cursor else {})}
        result = await call(ws, L, given)
        assert len(result.text) <= 32_500
        seen += [e["path"] for e in result.output["result"]["entries"]]
        cursor = result.output["result"].get("cursor")
        if cursor is None:
            break
        assert "cursor" in result.output["result"]["note"]
    assert len(seen) == len(set(seen)) == 450
    found = await call(ws, G, {"query": "word", "maxResults": 100_000})
    assert len(found.text) <= 40_000
    assert found.output["result"]["truncated"]
    assert "narrow" in found.output["result"]["note"]
    assert len(found.output["result"]["matches"][0]["text"]) <= 320


async def test_binary_is_never_shown_but_images_come_along(ws: Workspace) -> None:
    await ws.write("/workspace/b.bin", b"\0" * 5_000_000)
    result = await call(ws, R, {"path": "/workspace/b.bin"})
    assert len(result.text) < 600
    assert (result.output["kind"], result.output["size"], result.media) == ("binary", 5_000_000, ())
    await ws.write("/workspace/i.png", b"\x89PNG123")
    result = await call(ws, R, {"path": "/workspace/i.png"})
    assert [(m.mime_type, m.data) for m in result.media] == [("image/png", b"\x89PNG123")]
    assert "PNG123" not in repr(result)
    await ws.write("/workspace/huge.png", b"\0" * 4_000_000)
    assert (await call(ws, R, {"path": "/workspace/huge.png"})).media == ()


# -- reading before writing


async def test_the_guard_wants_a_file_read_at_its_version(ws: Workspace) -> None:
    tools = ws.as_tools(read_before_write=True, delete=True)
    created = await tools.call(W, {"path": A, "content": "one\n"})
    assert created.ok
    assert (await tools.call(E, {"path": A, "find": "one", "replace": "two"})).ok
    await ws.acting_as("agent:other").append(A, "three\n")
    stale = await tools.call(E, {"path": A, "find": "two", "replace": "2"})
    assert stale.error is not None
    assert stale.error.code == ErrorCode.VERSION_CONFLICT
    assert "version 3" in (stale.error.hint or "")
    assert "append by agent:other" in (stale.error.hint or "")
    assert "readWorkspaceFile" in (stale.error.hint or "")
    assert (await tools.call(W, {"path": A, "content": "x"})).error is not None
    assert (await tools.call("deleteWorkspaceFile", {"path": A})).error is not None
    assert (await tools.call(R, {"path": A})).ok
    assert (await tools.call(E, {"path": A, "find": "two", "replace": "2"})).ok
    assert await ws.read_text(A) == "2\nthree\n"


async def test_the_guard_refuses_blind_changes_and_races(ws: Workspace) -> None:
    await ws.write(A, "one\n")
    tools = ws.as_tools(read_before_write=True)
    blind = await tools.call(W, {"path": A, "content": "x"})
    assert blind.error is not None
    assert blind.error.code == ErrorCode.VERSION_CONFLICT
    assert "readWorkspaceFile" in (blind.error.hint or "")
    assert await ws.read_text(A) == "one\n"
    other = ws.as_tools(read_before_write=True)
    assert (await other.call(R, {"path": A})).ok
    assert (await tools.call(W, {"path": A, "content": "x"})).error is not None
    await other.call(R, {"path": A, "version": 1})
    assert (await other.call("renameWorkspaceFile", {"from": A, "to": "/workspace/b.md"})).ok
    assert (await other.call(E, {"path": "/workspace/b.md", "find": "one", "replace": "1"})).ok
    assert (await other.call(E, {"path": A, "find": "one", "replace": "1"})).error is not None


async def test_what_a_model_did_not_see_has_to_be_read(ws: Workspace) -> None:
    await ws.write(A, "one\n")
    tools = ws.as_tools(read_before_write=True, undo=True, extra=["append", "copy", "finalize"])
    for name, arguments in (
        ("appendWorkspaceFile", {"content": "two\n"}),
        ("undoWorkspaceFile", {}),
        ("finalizeWorkspaceFile", {}),
        (W, {"content": "x"}),
        (E, {"find": "one", "replace": "x"}),
    ):
        blind = await tools.call(name, {"path": A, **arguments})
        assert blind.error is not None, name
        assert blind.error.code == ErrorCode.VERSION_CONFLICT
        assert "readWorkspaceFile" in (blind.error.hint or "")
    assert len(await ws.history(A)) == 1
    assert (await tools.call(R, {"path": A})).ok
    assert (await tools.call("appendWorkspaceFile", {"path": A, "content": "three\n"})).ok
    assert (await tools.call(E, {"path": A, "find": "three", "replace": "3"})).ok
    assert (await tools.call("undoWorkspaceFile", {"path": A})).ok
    assert not (await tools.call(W, {"path": A, "content": "x"})).ok
    await ws.write("/workspace/b.md", "unseen")
    copied = {"from": "/workspace/b.md", "to": "/workspace/c.md"}
    assert (await tools.call("copyWorkspaceFile", copied)).ok
    assert not (await tools.call(W, {"path": "/workspace/c.md", "content": "x"})).ok
    assert (await tools.call("appendWorkspaceFile", {"path": "/workspace/n", "content": "new"})).ok
    assert (await tools.call(W, {"path": "/workspace/n", "content": "x"})).ok


@pytest.mark.parametrize("tool", ["renameWorkspaceFile", "copyWorkspaceFile"])
async def test_what_a_model_did_not_see_is_not_overwritten(ws: Workspace, tool: str) -> None:
    tools = ws.as_tools(read_before_write=True, extra=["copy"])
    await ws.write(A, "mine\n")
    await ws.write("/workspace/b.md", "theirs\n")
    over = {"from": A, "to": "/workspace/b.md", "overwrite": True}
    blind = await tools.call(tool, over)
    assert blind.error is not None
    assert blind.error.code == ErrorCode.VERSION_CONFLICT
    assert "readWorkspaceFile" in (blind.error.hint or "")
    assert (await tools.call(R, {"path": "/workspace/b.md"})).ok
    await ws.append("/workspace/b.md", "more of theirs\n")
    assert not (await tools.call(tool, over)).ok
    assert await ws.read_text("/workspace/b.md") == "theirs\nmore of theirs\n"
    assert (await tools.call(R, {"path": "/workspace/b.md"})).ok
    made = await tools.call(tool, over)
    assert made.ok
    assert made.output["path"] == "/workspace/b.md"
    assert await ws.read_text("/workspace/b.md") == "mine\n"
    assert not (await tools.call(W, {"path": "/workspace/b.md", "content": "x"})).ok
    free = {"from": "/workspace/b.md", "to": "/workspace/c.md", "overwrite": True}
    assert (await tools.call(tool, free)).ok


async def test_another_file_at_the_path_is_not_the_one_that_was_read(ws: Workspace) -> None:
    tools = ws.as_tools(read_before_write=True)
    await ws.write(A, "one\n")
    assert (await tools.call(R, {"path": A})).ok
    await ws.rename(A, "/workspace/away.md")
    await ws.write(A, "another file, also at version 1\n")
    for name, arguments in ((W, {"content": "x"}), (E, {"find": "another", "replace": "x"})):
        assert not (await tools.call(name, {"path": A, **arguments})).ok
    await ws.delete(A, purge=True)
    await ws.rename("/workspace/away.md", A)
    assert (await tools.call(W, {"path": A, "content": "x"})).ok


async def test_a_file_that_is_renamed_is_as_well_known_as_before(ws: Workspace) -> None:
    tools = ws.as_tools(read_before_write=True)
    await ws.write("/workspace/d/seen.md", "one\n")
    await ws.write("/workspace/d/unseen.md", "one\n")
    assert (await tools.call(R, {"path": "/workspace/d/seen.md"})).ok
    assert (await tools.call("renameWorkspaceFile", {"from": "/workspace//d/", "to": "/workspace/e"})).ok  # fmt: skip
    assert (await tools.call(W, {"path": "/workspace/e/seen.md", "content": "x"})).ok
    assert not (await tools.call(W, {"path": "/workspace/e/unseen.md", "content": "x"})).ok
    unseen = {"from": "/workspace/e/unseen.md", "to": "/workspace/e/moved.md"}
    assert (await tools.call("renameWorkspaceFile", unseen)).ok
    assert not (await tools.call(W, {"path": "/workspace/e/moved.md", "content": "x"})).ok


async def test_a_file_that_is_gone_is_told_once_and_can_be_made_again(ws: Workspace) -> None:
    tools = ws.as_tools(read_before_write=True, undo=True)
    await ws.write(A, "one\n")
    assert (await tools.call(R, {"path": A})).ok
    await ws.delete(A)
    gone = await tools.call(W, {"path": A, "content": "x"})
    assert gone.error is not None
    assert "does not exist any more" in (gone.error.hint or "")
    assert (await tools.call(W, {"path": A, "content": "x"})).ok
    await ws.delete(A)
    assert (await tools.call("undoWorkspaceFile", {"path": A})).ok


async def test_without_the_guard_nothing_is_asked(ws: Workspace) -> None:
    await ws.write(A, "one\n")
    assert (await ws.as_tools().call(W, {"path": A, "content": "x"})).ok


async def test_the_guard_leaves_sources_alone(make_ws: Make) -> None:
    ws = make_ws(mounts=[Mount("/s", source=MemorySource({"a.md": "one"}))])
    tools = ws.as_tools(read_before_write=True, delete=True, extra=["append", "copy"])
    assert (await tools.call(E, {"path": "/s/a.md", "find": "one", "replace": "2"})).ok
    for name, arguments in (
        (W, {"path": "/s/new.md", "content": "x"}),
        (W, {"path": "/s/new.md", "content": "y"}),
        ("appendWorkspaceFile", {"path": "/s/log.md", "content": "x"}),
        ("copyWorkspaceFile", {"from": "/s/new.md", "to": "/s/log.md", "overwrite": True}),
        ("deleteWorkspaceFile", {"path": "/s/new.md"}),
    ):
        assert (await tools.call(name, arguments)).ok, name


async def test_tools_are_bound_to_their_namespace(make_ws: Make) -> None:
    ws = make_ws(namespace=None)
    bound = ws.as_tools(namespace="a")
    assert (await bound.call(W, {"path": A, "content": "x"})).ok
    assert await ws.read_text(A, namespace="a") == "x"
    unbound = await ws.as_tools().call(R, {"path": A})
    assert unbound.error is not None
    assert unbound.error.code == ErrorCode.INVALID_ARGUMENT
    with pytest.raises(InvalidInputError):
        ws.for_namespace("a").as_tools(namespace="b")


def test_blocking_tools() -> None:
    from crux_workspace import open_workspace_sync

    with open_workspace_sync("memory://") as sws:
        tools = sws.as_tools(prefix="x", extra=["stat"])
        assert [tool.name for tool in tools] == tools.names
        assert tools["writeXWorkspaceFile"].call({"path": A, "content": "one"}).ok
        assert tools.call("readXWorkspaceFile", {"path": A}).output["value"] == "one"
        assert "a.md" in sws.as_context().text()
        injection = sws.inject()
        assert injection.metadata["workspace"]["namespace"] == "default"
        assert "a.md" in injection.contexts[0].text()
        assert injection.tools.call("listWorkspace").ok
