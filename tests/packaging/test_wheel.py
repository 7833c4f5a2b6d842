"""The wheel alone, in a new environment, away from the checkout: what a user gets by ``pip install crux-workspace``."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SMOKE = """
import asyncio
from pathlib import Path

import crux_workspace
import storage_adapters.sql
from crux_workspace import open_workspace

places = {Path(m.__file__).resolve() for m in (crux_workspace, storage_adapters)}
assert all("site-packages" in str(place) for place in places), places
assert Path(storage_adapters.sql.__file__).with_name("migrations").is_dir()

async def main():
    async with open_workspace("sqlite:///work.db") as ws:
        await ws.write("/workspace/a.md", "one\\n")
        await ws.edit("/workspace/a.md", "one", "two")
        await ws.write("/workspace/a.bin", bytes(range(256)) * 1000)
    async with open_workspace("sqlite:///work.db", create=False) as ws:
        assert await ws.read_text("/workspace/a.md") == "two\\n"
        assert await ws.read_bytes("/workspace/a.bin") == bytes(range(256)) * 1000
        assert [entry.version for entry in await ws.history("/workspace/a.md")] == [2, 1]
        print("works", crux_workspace.__version__)

asyncio.run(main())
"""


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command that knows nothing of the checkout."""
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTH", "COV"))
    }
    ran = subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=500
    )
    assert ran.returncode == 0, f"{command}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
    return ran


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from this checkout."""
    folder = tmp_path_factory.mktemp("dist")
    run(
        *(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT),
        cwd=folder,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a new environment that has the wheel and what it depends on, no extras."""
    folder = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", folder, cwd=folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return python


def test_the_wheel_holds_what_it_should(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    dist_info = f"crux_workspace-{PROJECT['version']}.dist-info"
    assert tops == {"crux_workspace", "storage_adapters", dist_info}
    for needed in (
        "crux_workspace/py.typed",
        "storage_adapters/py.typed",
        "storage_adapters/sql/migrations/env.py",
        f"{dist_info}/licenses/LICENSE",
    ):
        assert needed in names
    ours = {path.name for path in (ROOT / "migrations" / "versions").glob("*.py")}
    shipped = "storage_adapters/sql/migrations/versions/"
    assert {name.removeprefix(shipped) for name in names if name.startswith(shipped)} == ours
    static = ROOT / "crux_workspace" / "inspector" / "static"
    page = {path.relative_to(ROOT).as_posix() for path in static.rglob("*") if path.is_file()}
    assert page <= set(names)
    licences = {path.name for path in (static / "vendor" / "licences").iterdir()}
    shipped = f"{dist_info}/licenses/"
    assert licences <= {name.rpartition("/")[2] for name in names if name.startswith(shipped)}
    theirs = {path.name for path in (ROOT / "migrations" / "postgres").rglob("*.py")}
    shipped = "storage_adapters/sql/migrations/postgres/"
    assert {
        name.rpartition("/")[2]
        for name in names
        if name.startswith(shipped) and name.endswith(".py")
    } == theirs


def test_it_works_alone(python: Path, tmp_path: Path) -> None:
    assert run(python, "-c", SMOKE, cwd=tmp_path).stdout.split() == ["works", PROJECT["version"]]
    assert (tmp_path / "work.db").exists()


@pytest.mark.parametrize("name", sorted(PROJECT["scripts"]))
def test_the_commands_are_there(python: Path, tmp_path: Path, name: str) -> None:
    command = python.with_name(name)
    assert PROJECT["version"] in run(command, "--version", cwd=tmp_path).stdout
    url = f"sqlite:///{tmp_path}/cli.db"
    run(command, "--url", url, "init", cwd=tmp_path)
    run(command, "--url", url, "write", "/workspace/a.md", "hello", cwd=tmp_path)
    assert run(command, "--url", url, "cat", "/workspace/a.md", cwd=tmp_path).stdout == "hello"


def test_a_missing_extra_is_named(python: Path, tmp_path: Path) -> None:
    script = (
        "import crux_workspace.testing as kit\n"
        "try:\n    kit.RecordStoreContract\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert "crux-workspace[testing]" in run(python, "-c", script, cwd=tmp_path).stdout


def test_postgres_without_its_extra_names_it(python: Path, tmp_path: Path) -> None:
    for call in ("asyncio.run(open_storage(url)._open())", "migrate(url)"):
        script = (
            "import asyncio\nfrom crux_workspace.errors import UnsupportedError\n"
            "from storage_adapters import migrate, open_storage\n"
            f"url = 'postgresql://localhost/x'\ntry:\n    {call}\n"
            "except UnsupportedError as error:\n    print(error, error.code)\n"
        )
        told = run(python, "-c", script, cwd=tmp_path).stdout
        assert "crux-workspace[postgres]" in told
        assert "CAPABILITY_MISSING" in told


@pytest.mark.postgres
def test_postgres_with_its_extra_is_migrated_and_used_from_the_wheel(
    python: Path, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    extra = tmp_path / "extra"
    needed = PROJECT["optional-dependencies"]["postgres"]
    run(python, "-m", "pip", "install", "--quiet", "--target", extra, *needed, cwd=tmp_path)
    postgres_server.psql("postgres", "create database wheel")
    url = postgres_server.url("wheel")
    script = (
        f"import sys; sys.path.append({str(extra)!r})\n"
        "from crux_workspace.cli.main import main; main(sys.argv[1:])"
    )
    for arguments in (
        ("migrate", url),
        ("--url", url, "write", "/workspace/a.md", "hello"),
        ("--url", url, "cat", "/workspace/a.md"),
    ):
        ran = run(python, "-c", script, *arguments, cwd=tmp_path)
    assert ran.stdout == "hello"
    postgres_server.psql("postgres", "drop database wheel")


def test_what_tests_need_is_not_installed(python: Path, tmp_path: Path) -> None:
    listed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).stdout
    names = {line.split("==")[0].lower() for line in listed.splitlines()}
    assert not names & {"pytest", "hypothesis", "mypy", "opentelemetry-sdk"}
