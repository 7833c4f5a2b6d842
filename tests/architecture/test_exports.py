"""What can be imported: exactly what is announced, sorted and documented, and unchanged unless the snapshot says so."""

from __future__ import annotations

import difflib
import inspect
import pkgutil
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import crux_workspace
import storage_adapters
from tests.architecture.public_surface import PUBLIC, SNAPSHOT, exports, members, surface


def all_modules() -> list[str]:
    """Return every module of the library but the ones that run something when they are imported."""
    found = [
        module.name
        for package in (crux_workspace, storage_adapters)
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    ]
    return [name for name in found if not name.endswith("__main__")]


@pytest.mark.parametrize("name", all_modules())
def test_a_module_exports_what_it_has(name: str) -> None:
    module = import_module(name)
    announced = getattr(module, "__all__", [])
    assert len(set(announced)) == len(announced)
    for exported in announced:
        assert hasattr(module, exported), f"{name} announces {exported}"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_names_are_sorted(name: str) -> None:
    def rank(exported: str) -> tuple[int, str]:
        return (0 if exported.isupper() else 1 if exported[0].isupper() else 2, exported)

    announced = import_module(name).__all__
    assert list(announced) == sorted(announced, key=rank)


def undocumented() -> list[str]:
    missing = []
    for module, name, value in exports():
        if not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if not (value.__doc__ or "").strip():
            missing.append(f"{module}.{name}")
        if inspect.isclass(value):
            missing += [
                f"{module}.{name}.{member}"
                for member, attribute in members(value)
                if (callable(attribute) or isinstance(attribute, property))
                and not (getattr(attribute, "__doc__", None) or "").strip()
            ]
    return missing


def test_public_names_are_documented() -> None:
    assert undocumented() == []


def test_the_public_surface_is_the_snapshot() -> None:
    expected = SNAPSHOT.read_text(encoding="utf-8")
    difference = difflib.unified_diff(
        expected.splitlines(), surface().splitlines(), "public_api.txt", "the code", lineterm=""
    )
    found = "\n".join(difference)
    assert not found, f"the public surface changed; if that is meant: make snapshot\n{found}"


def test_the_version_is_the_one_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert crux_workspace.__version__ == project["version"]
