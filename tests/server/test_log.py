"""The log of large commits."""

from __future__ import annotations

import httpx

from crux_workspace import Workspace


async def test_of_a_large_commit_no_more_is_told_than_was_asked_for(
    ws: Workspace, http: httpx.AsyncClient
) -> None:
    await ws.write("/workspace/one.txt", "x")
    async with ws.transaction() as tx:
        for number in range(20):
            await tx.write(f"/workspace/{number:02d}.txt", "x")
    answer = await http.get("/v1/log", params={"max_changes": 3})
    large, small = answer.json()
    assert [change["path"] for change in large["changes"]] == [
        f"/workspace/{n:02d}.txt" for n in range(3)
    ]
    assert (large["changes_total"], small["changes_total"]) == (20, 1)
    whole = (await http.get("/v1/log")).json()
    assert len(whole[0]["changes"]) == 20
    assert "changes_total" not in whole[0]
    assert (await http.get("/v1/log", params={"max_changes": -1})).status_code == 400
