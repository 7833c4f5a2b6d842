"""4 processes with 8 clients each do mixed work on shared namespaces: it was as if everybody had taken turns.

`CRUX_MIXED_SECONDS` says for how long; 3 by default.
"""

from __future__ import annotations

import asyncio
import os
import pickle
from pathlib import Path

import pytest

from crux_workspace.storage.layout import partition_name
from crux_workspace.testing.serialisability import check, state_of
from storage_adapters.sql.postgres import PostgresRecordStore
from tests.postgres.conftest import Opening
from tests.support.crew import Crew
from tests.support.mixed_work import SharedHistory
from tests.support.postgres import PostgresServer
from tests.support.soundness import check_sound

SECONDS = float(os.environ.get("CRUX_MIXED_SECONDS") or 3)
PROCESSES, CLIENTS, NAMESPACES = 4, 8, 3
_RUN = "import runpy; runpy.run_module('tests.support.mixed_work', run_name='__main__')"

pytestmark = [pytest.mark.postgres, pytest.mark.timeout(120 + 20 * SECONDS)]


async def test_mixed_work_of_many_processes_is_serialisable(
    postgres_server: PostgresServer,
    postgres_url: str,
    opening: Opening,
    crew: Crew,
    tmp_path: Path,
) -> None:
    url = postgres_server.url(pool_size=4)
    targets = [tmp_path / f"{number}.pickle" for number in range(PROCESSES)]
    workers = [
        crew.start(_RUN, url, "abcd"[number], CLIENTS, SECONDS, NAMESPACES, target)
        for number, target in enumerate(targets)
    ]
    for worker in workers:
        assert await asyncio.to_thread(worker.first) == "ready"
    for worker in workers:
        worker.go()
    for worker in workers:
        await asyncio.to_thread(worker.finish)
    ws = await opening(postgres_url)
    committed = 0
    async with await PostgresRecordStore.open(postgres_url) as store:
        for number in range(NAMESPACES):
            namespace = f"shared:{number}"
            view = ws.for_namespace(namespace)
            history = SharedHistory()
            for target in targets:
                history.operations += pickle.loads(target.read_bytes())[namespace]  # noqa: S301
            history.operations.sort(key=lambda operation: operation.begun)
            log = await view.log(limit=1_000_000)
            committed += len(log)
            assert check(history, log, final=await state_of(view)) == []
            await check_sound(store, partition_name("default", namespace))
    assert committed > 20 * SECONDS, "there was work to judge"
