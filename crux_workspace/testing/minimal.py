"""The conformance kit of the minimal store contract, as a pytest mixin.

Example::

    class TestMyStore(MinimalStoreContract):
        @pytest.fixture
        async def store(self):
            yield MyStore(URL)
"""

from __future__ import annotations

import pytest

from crux_workspace.storage.minimal import MinimalStore
from crux_workspace.testing.checks import Check, Fresh, Hooks, NotApplicable
from crux_workspace.testing.minimal_checks import MINIMAL_CHECKS

__all__ = ["MINIMAL_CHECKS", "MinimalStoreContract"]


class MinimalStoreContract:
    """Runs every check of `MINIMAL_CHECKS` on the fixture `store`.

    Checks use fresh keys, so the store may be shared. A class may add the coroutine ``another(store)`` as a method, which opens the
    same data once more, as another process would: then the checks also look from there.
    """

    def hooks(self) -> Hooks[MinimalStore]:
        """Return the hooks that this class has as methods."""
        return Hooks.of(self)

    @pytest.mark.asyncio
    @pytest.mark.parametrize("check", list(MINIMAL_CHECKS), ids=lambda check: check.id)
    async def test_check(self, check: Check[MinimalStore], store: MinimalStore) -> None:
        """Hold the store to one promise."""
        try:
            await check.run(store, Fresh(self.hooks()))
        except NotApplicable as exc:
            pytest.skip(f"{check.id}: {exc}")
