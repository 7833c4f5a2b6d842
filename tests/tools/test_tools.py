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
    ("renameWorkspaceFile", {"src": A, "dst": "x"}, "INVALID_ARGUMENT", "from, to"),
    ("undoWorkspaceFile", {"path": A}, "NOTHING_TO_UNDO", ""),
    ("diffWorkspaceFile", {"path": A}, "VERSION_NOT_FOUND", ""),
    ("appendWorkspaceFile", {"path": "/workspace/j.json", "content": "x"}, "INVALID_CONTENT", ""),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "arguments", "code", "hint"), WRONG)
async def test_a_wrong_call_tells_the_model_how_to_go_on(
    make_ws: Make, tool: str, arguments: Any, code: str, hint: str
) -> None:
    ws = make_ws(mounts=[Mount("/workspace"), Mount("/outputs"), Mount("/ro", "read")])
    await ws.write(A, "line one\nline two\nline three\n")
    await ws.write("/workspace/j.json", {"a": 1})
    await ws.write("/workspace/b.bin", b"\0")
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
    assert "by offset" in first["note"]
    rest = (await call(ws, "readWorkspaceFile", {"path": "/workspace/one.md", "offset": shown})).output  # fmt: skip
    assert rest["offset"] == shown
    await ws.write("/workspace/a.json", {"k": "y" * 100_000})
    cut = (await call(ws, "readWorkspaceFile", {"path": "/workspace/a.json"})).output
    assert "by offset" not in cut.get("note", "")


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
    tools = ws.as_tools(read_before_write=True, undo=True, extra=["append", "copy"])
    assert (await tools.call("appendWorkspaceFile", {"path": A, "content": "two\n"})).ok
    assert not (await tools.call(W, {"path": A, "content": "x"})).ok
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


async def test_without_the_guard_nothing_is_asked(ws: Workspace) -> None:
    await ws.write(A, "one\n")
    assert (await ws.as_tools().call(W, {"path": A, "content": "x"})).ok


async def test_the_guard_leaves_sources_alone(make_ws: Make) -> None:
    ws = make_ws(mounts=[Mount("/s", source=MemorySource({"a.md": "one"}))])
    tools = ws.as_tools(read_before_write=True)
    assert (await tools.call(E, {"path": "/s/a.md", "find": "one", "replace": "2"})).ok


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
