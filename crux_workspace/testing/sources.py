"""The conformance kit of the mount source contract, as a pytest mixin.

Example::

    class TestMySource(MountSourceContract):
        files = {"a.md": "text", "data/b.bin": b"bytes"}

        @pytest.fixture
        async def source(self):
            return MySource(...)  # holding those files
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from crux_workspace.model.sources import MountSource
from crux_workspace.testing.checks import Check, Fresh, NotApplicable
from crux_workspace.testing.source_checks import SOURCE_CHECKS, SourceBench

__all__ = ["SOURCE_CHECKS", "MountSourceContract"]


class MountSourceContract:
    """Runs every check of `SOURCE_CHECKS` on the fixture `source`, which holds `files` and nothing else.

    Put at least two files into it, one of them text with a few words, one in a sub-directory if the source has such.
    """

    files: ClassVar[Mapping[str, Any]]
    """What the source holds, by path below the mount: ``str`` is text, ``bytes`` binary, any other JSON value JSON."""
    mount_path: ClassVar[str] = "/sources"

    @pytest.mark.asyncio
    @pytest.mark.parametrize("check", list(SOURCE_CHECKS), ids=lambda check: check.id)
    async def test_check(self, check: Check[SourceBench], source: MountSource) -> None:
        """Hold the source to one promise."""
        try:
            await check.run(SourceBench(source, self.files, self.mount_path), Fresh())
        except NotApplicable as exc:
            pytest.skip(f"{check.id}: {exc}")
