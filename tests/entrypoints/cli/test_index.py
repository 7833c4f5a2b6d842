from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.entrypoints.cli.conftest import Cws

CODE = """\
from crux_workspace import open_workspace

async def main(name):
    async with open_workspace("sqlite:///work.db", id="shop") as ws:
        await ws.write(f"/workspace/{name}.md", "x")
        await ws.rename("/workspace/a.md", "/workspace/b.md")
        ws.as_tools()
"""


@pytest.fixture
def src(bare: Cws) -> Path:
    folder = bare.folder / "src"
    folder.mkdir()
    (folder / "app.py").write_text(CODE)
    (folder / "broken.py").write_text("x = (\n")
    return folder


def test_a_pipe_gets_a_line_for_each_fact(bare: Cws, src: Path) -> None:
    ran = bare("index", "src")
    assert ran.code == 0
    assert [line.split("\t") for line in ran.lines] == [
        ["app.py:4:16", "shop", "default", "/outputs:readwrite /workspace:readwrite", "sqlite", "", "app:main"],
        ["write", "app.py:5:15", "/workspace/{name}.md", "shop (app.py:4:16)", "", "app:main"],
        ["rename", "app.py:6:15", "/workspace/a.md -> /workspace/b.md", "shop (app.py:4:16)", "", "app:main"],
        ["tools", "app.py:7:9", "", "shop (app.py:4:16)", "", "app:main"],
    ]  # fmt: skip
    notes = ran.stderr.splitlines()
    assert notes[0].startswith("app.py:4:16: warning workspace.write_without_guardrail: ")
    assert notes[1:] == [
        "  app.py:5:15: a write that nothing guards",
        "  app.py:6:15: a write that nothing guards",
        "broken.py:1: skipped, syntax error",
    ]


def test_a_terminal_gets_tables(bare: Cws, src: Path) -> None:
    ran = bare("index", "src", terminal=True)
    assert ran.code == 0
    for word in ("definition", "guardrails", "operation", "given to a model", "shop (app.py:4:16)"):
        assert word in ran.text


def test_json_is_one_document(bare: Cws, src: Path) -> None:
    ran = bare.ok("index", "src", "--json")
    told: Any = ran.json
    assert told["format"] == 1
    assert [each["operation"] for each in told["operations"]] == ["write", "rename"]
    assert told["skipped"] == [{"file": "broken.py", "reason": "syntax_error", "line": 1}]


def test_strict_fails_on_a_warning_only(bare: Cws, src: Path) -> None:
    assert bare("index", "src", "--strict").code == 1
    (src / "app.py").write_text("x = 1\n")
    assert bare("index", "src", "--strict").code == 0


def test_a_folder_that_is_not_there_fails(bare: Cws) -> None:
    ran = bare("index", "nowhere")
    assert ran.code == 1
    assert ran.stderr.startswith("error FILE_NOT_FOUND: ")


def test_a_folder_without_a_workspace_says_so(bare: Cws, src: Path) -> None:
    (bare.folder / "other").mkdir()
    (bare.folder / "other" / "app.py").write_text("print(1)\n")
    told = "No workspace is defined or used in the Python files below "
    ran = bare("index", "other")
    assert (ran.code, ran.lines, ran.stderr) == (0, [], f"{told}other.\n")
    assert told not in bare("index", "src").stderr
