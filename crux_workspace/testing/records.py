"""The conformance kit of the record store contract, as a pytest mixin.

Example::

    class TestMyStore(RecordStoreContract):
        @pytest.fixture
        async def store(self):
            async with MyStore.connect(URL) as store:
                yield store
"""

from __future__ import annotations

import pytest

from crux_workspace.storage.records import RecordStore
from crux_workspace.testing.checks import Check, Fresh, Hooks, NotApplicable, applies
from crux_workspace.testing.record_checks import RECORD_CHECKS

__all__ = ["RECORD_CHECKS", "RecordStoreContract"]


class RecordStoreContract:
    """Runs every check of `RECORD_CHECKS` on the fixture `store`.

    Checks name their partitions freshly, so the store may be shared. A check that needs a capability is skipped unless the store
    declares it. A class may add the coroutines of `Hooks` as methods, so that the kit sees more: ``settle(store)``,
    ``peek(store, partition, key)``, ``poke(store, partition, key, value)`` and ``another(store)``.
    """

    def hooks(self) -> Hooks[RecordStore]:
        """Return the hooks that this class has as methods."""
        return Hooks.of(self)

    @pytest.mark.asyncio
    @pytest.mark.parametrize("check", list(RECORD_CHECKS), ids=lambda check: check.id)
    async def test_check(self, check: Check[RecordStore], store: RecordStore) -> None:
        """Hold the store to one promise."""
        reason = applies(check, store.capabilities)
        if reason is None:
            try:
                await check.run(store, Fresh(self.hooks()))
            except NotApplicable as exc:
                reason = str(exc)
        if reason is not None:
            pytest.skip(f"{check.id}: {reason}")
