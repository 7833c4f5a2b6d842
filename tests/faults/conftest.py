"""Stores to break."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.stages import KINDS, Stage, open_stage


@pytest.fixture(params=KINDS)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """A store of each kind in turn."""
    async with open_stage(request.param, tmp_path, request) as opened:
        yield opened
