"""The examples of the docstrings run, each against a fresh workspace ``ws`` with one file, ``/workspace/notes.md``."""

from __future__ import annotations

import ast
import doctest
import inspect
import sys
from pathlib import Path
from typing import Any

import pytest

import crux_workspace
import storage_adapters
from crux_workspace import local_runtime, workspace
from tests.architecture.test_docstrings import DOCUMENTED

EXAMPLES = {name: value for name, value in DOCUMENTED.items() if ">>>" in (value.__doc__ or "")}
PARSER = doctest.DocTestParser()


async def run(source: str, names: dict[str, Any], shown: list[str]) -> None:
    """Run one interactive statement with top-level await; collect what it would print."""
    code = compile(source, "<example>", "single", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    hook, sys.displayhook = sys.displayhook, lambda value: shown.append(repr(value))
    try:
        result = eval(code, names)  # noqa: S307 - our own docstrings
        if inspect.iscoroutine(result):
            await result
    finally:
        sys.displayhook = hook


@pytest.mark.parametrize("name", EXAMPLES)
async def test_the_example_gives_what_it_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runtime = local_runtime()
    ws = workspace(id="example", namespace="default", runtime=runtime)
    await ws.write("/workspace/notes.md", "# Notes\n")
    names: dict[str, Any] = {
        **{name: getattr(crux_workspace, name) for name in crux_workspace.__all__},
        "open_storage": storage_adapters.open_storage,
        "ws": ws,
    }
    for example in PARSER.get_examples(inspect.getdoc(EXAMPLES[name]) or "", name):
        shown: list[str] = []
        await run(example.source, names, shown)
        if example.want:
            assert shown, f"{example.source!r} shows nothing"
            assert shown[-1] == example.want.strip()
    await ws.aclose()
    await runtime.aclose()
