"""What a decision costs."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import pytest

from crux_workspace.agent import (
    CommandRequest,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    PermissionStore,
    file_permission_store,
    memory_permission_store,
    record_permission_store,
)
from crux_workspace.storage import MemoryRecordStore

POLICY = PermissionPolicy(
    allow={
        "bash": [f"tool{n} run" for n in range(50)] + ["git", "ls", "grep", "cat"],
        "readFile": [f"/srv/{n}" for n in range(200)],
    },
    deny={
        "bash": ["rm -rf", "sudo", "curl"],
        "writeFile": [f"/work/frozen/{n}" for n in range(200)],
    },
)


@pytest.mark.parametrize("kind", ["memory", "file", "records"])
async def test_a_gate_decision_costs_at_most_200_us_for_a_path_and_2_ms_for_a_command(
    kind: str, tmp_path: Path
) -> None:
    stores: dict[str, PermissionStore] = {
        "memory": memory_permission_store(),
        "file": file_permission_store(tmp_path / "p.json"),
        "records": record_permission_store(MemoryRecordStore()),
    }
    store = stores[kind]
    for n in range(20):
        await store.add("bash", f"granted{n}")
    gate = PermissionGate(POLICY, store, mode="interactive")
    path = PathRequest("writeFile", "/work/src/deep/er/file.py", root="/work")
    command = CommandRequest(
        "git add -A && git commit -m 'a message' && ls -la src | grep '\\.py' > out.txt",
        root="/work",
    )
    for request, limit_us in ((path, 200), (command, 2000)):
        took = []
        for _ in range(200):
            start = time.perf_counter()
            assert (await gate.check(request)).allowed
            took.append((time.perf_counter() - start) * 1e6)
        median = statistics.median(took)
        print(f"{request.kind} with {kind}: {median:.0f} us (median of {len(took)})")
        assert median <= limit_us
