"""What an import brings along: a program pays for a driver when it opens that store, not before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    *(
        "aiosqlite",
        "alembic",
        "asyncpg",
        "boto3",
        "botocore",
        "obstore",
        "opentelemetry",
        "pytest",
        "rich",
        "sqlalchemy",
        "typer",
    ),
    *(
        "mcp",
        "httpx",
        "dulwich",
        "pydantic",
        "langchain_core",
        "langgraph",
        "pydantic_ai",
        "agents",
        "deepagents",
    ),
)
SCRIPT = f"""
import json, sys, time
sys.path.insert(0, {str(ROOT)!r})
start = time.perf_counter()
import crux_workspace
took = time.perf_counter() - start
heavy = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps({{"took": took, "heavy": heavy, "modules": len(sys.modules)}}))
"""


def run(script: str, *flags: str) -> str:
    """Run a script in a fresh interpreter that no test tool has touched."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYT"))}
    ran = subprocess.run(
        [sys.executable, *flags, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env=env,
        timeout=60,
    )
    return ran.stdout


def test_an_import_brings_no_driver(record_property: Callable[[str, object], None]) -> None:
    found = json.loads(
        min((run(SCRIPT) for _ in range(3)), key=lambda out: json.loads(out)["took"])
    )
    took_ms = round(found["took"] * 1000)
    record_property("import_ms", took_ms)
    print(f"import crux_workspace: {took_ms} ms over bare python, {found['modules']} modules")
    assert found["heavy"] == []
    assert took_ms < 1500


def test_memory_needs_no_driver_either() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import asyncio\n"
        "from crux_workspace import open_workspace\n"
        "async def main():\n"
        "    async with open_workspace('memory://') as ws:\n"
        "        await ws.write('/workspace/a.md', 'x')\n"
        "        assert await ws.read_text('/workspace/a.md') == 'x'\n"
        "asyncio.run(main())\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    assert run(script).strip() == "[]"


@pytest.mark.parametrize("flag", ["-O", "-OO"])
def test_it_imports_without_asserts_and_docstrings(flag: str) -> None:
    run(SCRIPT, flag)


def test_the_kits_can_be_imported_without_pytest() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['pytest'] = None\n"
        "import crux_workspace.testing as kit\n"
        "kit.CountingRecordStore\n"
        "try:\n    kit.RecordStoreContract\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert "crux-workspace[testing]" in run(script)


def test_the_agent_room_brings_no_framework_grammar_or_server() -> None:
    names = (
        "tree_sitter",
        "starlette",
        "uvicorn",
        "langgraph",
        "pydantic_ai",
        "agents",
        "mcp",
        "sqlalchemy",
    )
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import crux_workspace.agent, crux_workspace.agent.demo\n"
        "import crux_workspace.agent.frameworks.langgraph, crux_workspace.agent.frameworks.mcp\n"
        f"print([name for name in {names!r} if name in sys.modules])\n"
    )
    assert run(script).strip() == "[]"


def test_without_the_grammar_a_command_is_refused_and_the_extra_is_named() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['tree_sitter_bash'] = None\n"
        "import asyncio\n"
        "from crux_workspace.agent import CommandRequest, PermissionGate\n"
        "try:\n    asyncio.run(PermissionGate().check(CommandRequest('ls')))\n"
        "except Exception as error:\n    print(error.code, error.hint)\n"
    )
    assert run(script).strip() == "CAPABILITY_MISSING Install crux-workspace[shell]."
