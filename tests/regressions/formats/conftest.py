"""The golden files and the option that writes them anew."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).with_name("v1")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        default=False,
        help="write the golden records of the current format anew (then read the difference)",
    )


@pytest.fixture
def regenerate(pytestconfig: pytest.Config) -> bool:
    return bool(pytestconfig.getoption("regenerate_golden", default=False))


@pytest.fixture
def golden_folder() -> Path:
    return FOLDER


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """While the files are written nobody may read them: only the tests that write run."""
    if not config.getoption("regenerate_golden", default=False):
        return
    writing = [item for item in items if "byte_for_byte" in item.name]
    config.hook.pytest_deselected(items=[item for item in items if item not in writing])
    items[:] = writing
