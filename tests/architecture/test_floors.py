"""The floors of the house, held by import-linter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the packages of a folder, by the contracts of this repository."""
    return subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.path.insert(0, '.');"
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
            "--config",
            str(ROOT / ".importlinter"),
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_rooms_import_only_from_the_floors_below() -> None:
    ran = lint(ROOT)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr


def test_an_import_that_goes_upwards_is_found(tmp_path: Path) -> None:
    rooms = (
        *("cli", "integrations", "mcp", "server", "inspector", "api", "http", "index"),
        *("operations", "tools", "engine", "mounts", "telemetry", "events"),
    )
    agent = (
        "demo",
        "frameworks",
        "context",
        "toolbox",
        "shells",
        "files",
        "permissions",
        "commands",
    )
    inner = tuple(f"agent/{part}" for part in agent)
    for room in (*rooms, "storage", "model", "errors", "testing", "agent", *inner):
        package = tmp_path / "crux_workspace" / room
        package.mkdir(parents=True)
        (package / "__init__.py").touch()
    adapters = {path.parent.name for path in (ROOT / "storage_adapters").glob("*/__init__.py")}
    for adapter in adapters:
        (tmp_path / "storage_adapters" / adapter).mkdir(parents=True)
        (tmp_path / "storage_adapters" / adapter / "__init__.py").touch()
    (tmp_path / "storage_adapters" / "__init__.py").touch()
    (tmp_path / "crux_workspace" / "__init__.py").touch()
    (tmp_path / "crux_workspace" / "api" / "factory.py").write_text("import storage_adapters\n")
    upwards = tmp_path / "crux_workspace" / "model" / "__init__.py"
    upwards.write_text("from crux_workspace import engine\n")
    sideways = tmp_path / "storage_adapters" / "sql" / "__init__.py"
    sideways.write_text("from storage_adapters import local_files\n")
    beside = tmp_path / "crux_workspace" / "utils.py"
    beside.touch()

    found = lint(tmp_path).stdout

    assert "crux_workspace.model is not allowed to import crux_workspace.engine" in found
    assert "storage_adapters.sql is not allowed to import storage_adapters.local_files" in found
    assert "crux_workspace.utils" in found  # a new module has to choose its floor
