"""What the documents say is so: blocks run, tables are the code's, links lead somewhere."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from crux_workspace import Workspace, errors
from crux_workspace.errors import ErrorCode, WorkspaceError
from crux_workspace.model.verbs import VERBS
from crux_workspace.storage import StoreCapabilities
from tests.architecture.tables import abilities, guarantees

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]  # fmt: skip
README = (ROOT / "README.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.M | re.S)
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)\)")


def blocks() -> list[tuple[str, str, str, str | None]]:
    """Return document, language, code and expected output of every block that runs."""
    return [
        (f"{path.name}:{number}", *match)
        for path in DOCUMENTS
        for number, match in enumerate(_BLOCK.findall(path.read_text(encoding="utf-8")), 1)
    ]


def table(title: str) -> list[list[str]]:
    """Return the cells of the first table below a heading of the README, without its head."""
    section = README.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def quoted(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize(
    ("language", "code", "output"),
    [pytest.param(*block, id=name) for name, *block in blocks()],
)
def test_a_block_runs_and_prints_what_it_says(
    language: str, code: str, output: str, tmp_path: Path
) -> None:
    command = tmp_path / "bin" / "crux-workspace"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m crux_workspace.cli "$@"\n')
    command.chmod(0o755)
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("COV")},
        "PATH": f"{command.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
    }
    shell = ["/bin/sh", "-eu", "-c", code]
    ran = subprocess.run(
        [sys.executable, "-c", code] if language == "python" else shell,
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    if output:
        assert [line.rstrip() for line in ran.stdout.strip().splitlines()] == [
            line.rstrip() for line in output.strip().splitlines()
        ]


def test_the_readme_begins_with_the_two_commands_and_an_example() -> None:
    assert README.index("make demo") < README.index("make test") < README.index("```python")
    _, language, code, _ = next(block for block in blocks() if block[0] == "README.md:1")
    assert language == "python"
    assert len(code.splitlines()) <= 18


# -- guarantees


def test_every_mutating_verb_has_its_guarantees() -> None:
    named = [verb for row in table("Guarantees") for verb in quoted(row[0])]
    assert sorted(named) == sorted(name for name, verb in VERBS.items() if verb.mutates)


def test_what_holds_on_sources_is_the_verb_tables() -> None:
    document = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (delegated|opt-in|refused|empty) \| (.+) \|$", document, re.M)
    assert {word: quoted(cell) for word, cell in rows} == {
        word: [name for name, verb in VERBS.items() if verb.on_sources == word]
        for word in ("delegated", "opt-in", "refused", "empty")
    }


def test_every_tool_is_of_a_verb() -> None:
    from crux_workspace import workspace_tool_names

    tools = [verb.tool for verb in VERBS.values() if verb.tool is not None]
    assert sorted(tools) == sorted(set(tools))
    fields = set(type(workspace_tool_names()).__dataclass_fields__)
    assert fields == set(tools)
    for verb in VERBS.values():
        assert verb.on_sources != "opt-in" or verb.mutates


def test_guarantees_are_made_from_what_stores_declare() -> None:
    """After a wanted change: python -m tests.architecture.tables."""
    assert guarantees() in README
    for operation, one_commit, _, conflict, *_ in table("Guarantees"):
        for name in quoted(operation):
            assert one_commit.startswith("yes") == (VERBS[name].commits == 1 and name != "gc")
            parameters = inspect.signature(getattr(Workspace, name)).parameters
            if "if_version" in conflict:
                assert "if_version" in parameters
            elif name != "update":
                assert "if_version" not in parameters


# -- stores


def test_the_abilities_of_stores_are_the_declared_ones() -> None:
    """After a wanted change: python -m tests.architecture.tables."""
    assert abilities() in README
    told = [name for row in table("Stores and what they can do") for name in quoted(row[0])]
    assert told == list(StoreCapabilities.__dataclass_fields__)


# -- errors


def test_the_table_of_errors_has_every_code_once() -> None:
    codes = [
        code
        for row in table("Errors you may see")
        for code in quoted(row[1])
        if code in ErrorCode.__members__
    ]
    assert sorted(codes) == sorted(ErrorCode.__members__)


def test_the_table_of_errors_is_the_tree() -> None:
    rows = table("Errors you may see")
    assert {quoted(row[0])[0] for row in rows} == {
        kind.__name__ for kind in WorkspaceError.__subclasses__()
    }
    own: set[str] = set()
    for first, codes, _ in rows:
        category, *builtins = quoted(first)
        kind = getattr(errors, category)
        bases = [base.__name__ for base in kind.__bases__ if base is not WorkspaceError]
        assert bases == builtins
        assert kind.default_code in quoted(codes)
        for code, name in re.findall(r"`(\w+)` \[`(\w+)`\]", codes):
            specific = getattr(errors, name)
            assert specific.__bases__[0] is kind
            assert code == specific.default_code or f"``{code}``" in (specific.__doc__ or "")
            own.add(name)
    specific_classes = set(errors.__all__) - {quoted(row[0])[0] for row in rows}
    assert own == specific_classes - {"ErrorCode", "WorkspaceError"}


# -- command line


def test_the_overview_names_every_command() -> None:
    from typer.main import get_command

    from crux_workspace.cli.main import app

    told = {command.split()[0] for row in table("Command line") for command in quoted(row[0])}
    assert told == set(get_command(app).commands)  # type: ignore[attr-defined]


# -- running a fleet


def test_each_claim_about_running_a_fleet_names_a_test_that_is_there() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    sources = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "postgres").glob("test_*.py")
    )
    named = re.findall(r"`(test_\w+)`", page)
    assert len(named) > 20
    assert [name for name in named if f"def {name}(" not in sources] == []
    for path in re.findall(r"`(tests/[\w/.]+)`", page):
        assert (ROOT / path).exists()
    rows = [
        line for line in page.partition("| what fails |")[2].splitlines() if line.startswith("| ")
    ]
    for row in rows[1:]:
        assert "`test_" in row or "*untested*" in row, row


# -- all documents


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in _LINK.findall(path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), f"{path.name} links to {target}"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_make_targets_that_documents_name_exist(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"(?:`|^)make ([a-z]+)", path.read_text(encoding="utf-8"), re.M):
        assert f"\n{target}:" in makefile


def test_the_command_table_names_every_command_once() -> None:
    from crux_workspace.cli.main import app

    named = [name for row in table("Command line") for name in quoted(row[0])]
    assert len(named) == len(set(named)), named
    registered = {command.name for command in app.registered_commands}
    registered |= {group.name for group in app.registered_groups}
    assert set(named) == registered


def test_ci_runs_the_test_command_of_the_readme() -> None:
    commands = README.partition("```sh\n")[2].partition("```")[0].splitlines()
    assert [line.split("#")[0].strip() for line in commands] == ["make demo", "make test"]
    assert "exec make test\n" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
