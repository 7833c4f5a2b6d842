"""The conformance kit of the asset store contract, as a pytest mixin.

Example::

    class TestMyAssets(AssetStoreContract):
        @pytest.fixture
        async def store(self, tmp_path):
            yield MyAssets(tmp_path)
"""

from __future__ import annotations

import pytest

from crux_workspace.storage.assets import AssetStore
from crux_workspace.testing.asset_checks import ASSET_CHECKS
from crux_workspace.testing.checks import Check, Fresh, Hooks, NotApplicable

__all__ = ["ASSET_CHECKS", "AssetStoreContract"]


class AssetStoreContract:
    """Runs every check of `ASSET_CHECKS` on the fixture `store`.

    Checks use keys under fresh prefixes, so the store may be shared. A class may add the coroutine ``settle(store)`` as a method,
    which waits until everything that was put can be listed.
    """

    def hooks(self) -> Hooks[AssetStore]:
        """Return the hooks that this class has as methods."""
        return Hooks.of(self)

    @pytest.mark.asyncio
    @pytest.mark.parametrize("check", list(ASSET_CHECKS), ids=lambda check: check.id)
    async def test_check(self, check: Check[AssetStore], store: AssetStore) -> None:
        """Hold the store to one promise."""
        try:
            await check.run(store, Fresh(self.hooks()))
        except NotApplicable as exc:
            pytest.skip(f"{check.id}: {exc}")
