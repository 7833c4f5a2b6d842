from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from crux_workspace.cli.declaring import app
from crux_workspace.cli.main import main as _declared  # noqa: F401

SNAPSHOT = Path(__file__).with_name("commands.txt")
ROOT = Path(__file__).parents[3]
ISSUE = """
    init ls cat write edit append rm mv cp grep history diff undo redo finalize withdraw artifacts usage log at undo-commit
    namespaces gc migrate import export tx watch cursor mcp serve token
""".split()  # noqa: SIM905 - as the issue lists them


def _commands() -> dict[str, Any]:
    root: Any = typer.main.get_command(app)
    found = dict(root.commands)
    found |= {f"at 12 {name}": command for name, command in found["at"].commands.items()}
    return found


def _described() -> str:
    """All commands and options, without what the help's layout adds."""
    parts = []
    for name, command in _commands().items():
        parts.append(f"## {name}\n{command.help.strip()}\n{command.epilog}")
        for param in command.params:
            names = ", ".join([*param.opts, *param.secondary_opts])
            required = " required" if param.required else ""
            parts.append(f"- {names}{required}: {getattr(param, 'help', None)}")
    return "\n".join(parts) + "\n"


def test_commands_and_their_help_are_what_was_agreed(request: pytest.FixtureRequest) -> None:
    """After a wanted change: PYTHONPATH=. python tests/entrypoints/cli/test_help.py."""
    assert _described() == SNAPSHOT.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [*_commands()])
def test_every_command_prints_its_help_with_an_example(bare: Any, name: str) -> None:
    ran = bare(*name.split(), "--help")
    assert ran.code == 0
    assert "Example:  " in ran.text
    assert f"crux-workspace {name.split()[0]}" in ran.text.split("Example:")[1]
    assert "--namespace" in ran.text


def test_the_root_help_names_every_command_in_its_panel(bare: Any) -> None:
    ran = bare("--help")
    words = ran.text.split()
    assert ran.code == 0
    assert [name for name in ISSUE if name not in words] == []
    for panel in ("Files", "Versions", "Artifacts", "Time", "Folders", "Store"):
        assert f" {panel} " in ran.text


def test_no_command_is_wrong_usage_and_shows_the_help(bare: Any) -> None:
    assert "Usage:" in bare().text + bare().stderr


def test_version_is_printed(bare: Any) -> None:
    ran = bare.ok("--version")
    assert ran.text.startswith("crux-workspace ")


def test_help_starts_without_the_store_libraries() -> None:
    code = (
        "import sys\nsys.argv = ['crux-workspace', '--help']\n"
        "from crux_workspace.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('sqlalchemy', 'alembic', 'aiosqlite') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "[]"


if __name__ == "__main__":
    SNAPSHOT.write_text(_described(), encoding="utf-8")
