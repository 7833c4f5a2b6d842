"""The tables of checks: ids, titles, and their places in the contracts."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.storage import assets, capabilities, minimal, records
from crux_workspace.storage.capabilities import StoreCapabilities
from crux_workspace.testing.asset_checks import ASSET_CHECKS
from crux_workspace.testing.checks import Check, Checks, applies
from crux_workspace.testing.minimal_checks import MINIMAL_CHECKS
from crux_workspace.testing.record_checks import RECORD_CHECKS


@pytest.mark.parametrize(
    ("checks", "contract", "letter"),
    [(RECORD_CHECKS, records, "R"), (ASSET_CHECKS, assets, "A"), (MINIMAL_CHECKS, minimal, "M")],
    ids=["records", "assets", "minimal"],
)
def test_each_check_is_quoted_in_its_contract(
    checks: Iterable[Check[Any]], contract: Any, letter: str
) -> None:
    quoted = set(re.findall(rf"\b{letter}-\d{{3}}\b", Path(contract.__file__).read_text("utf-8")))
    assert quoted == {check.id for check in checks}


def test_required_capabilities_exist() -> None:
    fields = set(StoreCapabilities.__dataclass_fields__)
    for check in [*RECORD_CHECKS, *ASSET_CHECKS]:
        if check.requires is not None:
            assert check.requires.removeprefix("not ") in fields, check
    assert capabilities.__all__ == ["StoreCapabilities"]


def test_a_check_applies_by_what_is_declared() -> None:
    lock = RECORD_CHECKS["R-074"]
    no_lock = RECORD_CHECKS["R-073"]
    with_lock, without = StoreCapabilities(plans_under_lock=True), StoreCapabilities()
    assert applies(lock, with_lock) is None
    assert applies(lock, without) == "plans_under_lock is not declared"
    assert applies(no_lock, with_lock) == "plans_under_lock is declared"
    assert applies(no_lock, without) is None
    assert applies(RECORD_CHECKS["R-122"], StoreCapabilities(max_value_bytes=5)) is None


def test_a_check_needs_an_id_of_its_own() -> None:
    checks: Checks[object] = Checks()

    async def named(store: object, fresh: object) -> None:
        """X-001: something."""

    async def nameless(store: object, fresh: object) -> None:
        """Check something."""

    checks.add()(named)
    assert str(checks["X-001"]) == "X-001 something"
    with pytest.raises(TypeError, match="used twice"):
        checks.add()(named)
    with pytest.raises(TypeError, match="no id"):
        checks.add()(nameless)


def test_the_room_works_without_pytest() -> None:
    code = """
import sys
sys.modules["pytest"] = None
import crux_workspace.testing as kit
for name in kit.__all__:
    if not name.endswith(("Contract", "Machine")) and name != "refused":
        getattr(kit, name)
import crux_workspace.testing.gallery
for name in ("RecordStoreContract", "WorkspaceContract", "refused"):
    try:
        getattr(kit, name)
    except ImportError as exc:
        assert "crux-workspace[testing]" in str(exc), exc
    else:
        raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lazy_names_are_all_there() -> None:
    kit = importlib.import_module("crux_workspace.testing")
    assert {name for name in kit.__all__ if getattr(kit, name).__name__ == name} == set(kit.__all__)
    with pytest.raises(AttributeError):
        _ = kit.NoSuchName
