"""What an import brings along: a program pays for a driver when it opens that store, not before."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import crux_workspace
from tests.architecture.public_surface import PUBLIC

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
        "starlette",
        "uvicorn",
    ),
)
SCRIPT = f"""
import json, sys, time
sys.path.insert(0, {str(ROOT)!r})
start = time.perf_counter()
import crux_workspace
bare = time.perf_counter() - start
crux_workspace.open_workspace
took = time.perf_counter() - start
heavy = [name for name in {HEAVY!r} if name in sys.modules]
print(json.dumps({{"bare": bare, "took": took, "heavy": heavy, "modules": len(sys.modules)}}))
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
    print(
        f"import crux_workspace: {found['bare'] * 1000:.0f} ms over bare python, "
        f"with open_workspace {took_ms} ms, {found['modules']} modules"
    )
    assert found["heavy"] == []
    assert took_ms < 1500


def test_a_type_checker_sees_the_names_that_are_imported_on_first_use() -> None:
    tree = ast.parse((ROOT / "crux_workspace" / "__init__.py").read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("crux_workspace.")
        for alias in node.names
    }
    assert seen == crux_workspace._HOMES
    assert {*seen, "__version__"} == set(crux_workspace.__all__)


def test_each_public_name_comes_with_a_first_use_and_no_other_name_does() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import crux_workspace as package\n"
        "assert 'crux_workspace.api.facade' not in sys.modules\n"
        "assert set(package.__all__) <= set(dir(package))\n"
        "assert all(getattr(package, name) is not None for name in package.__all__)\n"
        "assert package.errors.WorkspaceError and package.storage.storage\n"
        "try:\n    package.nonsense\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    assert run(script).strip() == "module 'crux_workspace' has no attribute 'nonsense'"


@pytest.mark.parametrize("module", PUBLIC)
def test_each_public_module_can_be_the_first_to_be_imported(module: str) -> None:
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import {module}; print({module}.__all__[0])"
    assert run(script).strip()


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


def test_without_its_packages_the_server_names_the_extra() -> None:
    for name in ("starlette", "uvicorn", "httptools"):
        script = (
            f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules[{name!r}] = None\n"
            "try:\n    import crux_workspace.server\n"
            "except Exception as error:\n    print(error.code, error.hint)\n"
        )
        assert "CAPABILITY_MISSING Install the extra: pip install 'crux-workspace[server]'." in run(
            script
        )


def test_without_the_grammar_a_command_is_refused_and_the_extra_is_named() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.modules['tree_sitter_bash'] = None\n"
        "import asyncio\n"
        "from crux_workspace.agent import CommandRequest, PermissionGate\n"
        "try:\n    asyncio.run(PermissionGate().check(CommandRequest('ls')))\n"
        "except Exception as error:\n    print(error.code, error.hint)\n"
    )
    assert run(script).strip() == "CAPABILITY_MISSING Install crux-workspace[shell]."
