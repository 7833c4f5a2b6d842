"""A transaction is one commit: one event for each path it changed in the end, or none."""

from __future__ import annotations

from crux_workspace import Workspace
from tests.watch.conftest import nothing_from, take

A, B, C = "/workspace/a.md", "/workspace/b.md", "/workspace/c.md"


async def test_one_event_a_path_however_often_it_was_written(ws: Workspace) -> None:
    async with ws.watch() as handle:
        async with ws.transaction() as tx:
            for number in range(5):
                await tx.write(B, str(number))
            await tx.write(A, "a")
            await tx.write(C, "c")
            await tx.delete(C)
        events = await take(handle, 2)
        assert [(event.type, event.path, event.version) for event in events] == [
            ("create", A, 1),
            ("create", B, 1),
        ]
        assert len({event.commit for event in events}) == 1
        await nothing_from(handle)
    async with ws.watch(cursor=events[0].cursor) as again:
        assert await take(again, 1) == events[1:]


async def test_no_event_of_what_was_rolled_back(ws: Workspace) -> None:
    class Stop(Exception):
        pass

    async with ws.watch() as handle:
        try:
            async with ws.transaction() as tx:
                await tx.write(A, "a")
                raise Stop
        except Stop:
            pass
        await nothing_from(handle)
        await ws.write(B, "b")
        assert [event.sequence for event in await take(handle, 1)] == [1]
