"""Work that is carried in its caller's task ends whatever becomes of the caller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from crux_workspace.engine.inflight import InFlight


class Work:
    """Some steps, each waiting for a future; notes in which task it went on."""

    def __init__(self) -> None:
        self.gates: list[asyncio.Future[int]] = []
        self.tasks: list[asyncio.Task[object] | None] = []

    async def run(self, steps: int) -> list[int]:
        found = []
        for _ in range(steps):
            gate = asyncio.get_running_loop().create_future()
            self.gates.append(gate)
            found.append(await gate)
            self.tasks.append(asyncio.current_task())
        return found

    async def reach(self, step: int) -> None:
        """Wait until the work waits at a step."""
        while len(self.gates) <= step:  # noqa: ASYNC110 - it takes no more than a turn
            await asyncio.sleep(0)

    async def open(self, step: int) -> None:
        """Let it go on from a step."""
        await self.reach(step)
        self.gates[step].set_result(step)
        await asyncio.sleep(0)


async def _awaiting(awaitable: Awaitable[object]) -> object:
    return await awaitable


async def _leave(caller: asyncio.Task[object]) -> None:
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def _settled(in_flight: InFlight) -> None:
    await asyncio.wait_for(in_flight.wait(), 5)


async def test_work_runs_in_the_caller_s_own_task() -> None:
    in_flight, work = InFlight(), Work()
    caller = asyncio.create_task(_awaiting(in_flight.carried(work.run(3))))
    for step in range(3):
        await work.open(step)
    assert await caller == [0, 1, 2]
    assert set(work.tasks) == {caller}
    assert not in_flight.tasks
    assert not in_flight.answers


async def test_work_that_never_waits_is_done_at_once() -> None:
    async def work() -> str:
        return "done"

    assert await InFlight().carried(work()) == "done"


async def test_its_exception_reaches_the_caller() -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        await InFlight().carried(work())


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_a_cancelled_caller_leaves_at_once_and_the_work_goes_on(at: int) -> None:
    in_flight, work = InFlight(), Work()
    caller = asyncio.create_task(_awaiting(in_flight.carried(work.run(3))))
    for step in range(at):
        await work.open(step)
    await work.reach(at)
    await _leave(caller)
    assert not work.gates[at].cancelled()
    assert len(in_flight.tasks) == 1
    for step in range(at, 3):
        await work.open(step)
    await _settled(in_flight)
    assert len(work.tasks) == 3
    assert all(task is not caller for task in work.tasks[at:])


async def test_a_cancellation_between_answer_and_step_loses_nothing() -> None:
    in_flight, work = InFlight(), Work()
    caller = asyncio.create_task(_awaiting(in_flight.carried(work.run(1))))
    await work.reach(0)
    work.gates[0].set_result(0)
    await asyncio.sleep(0)  # the answer is there, the caller's step is due
    await _leave(caller)
    await _settled(in_flight)
    assert len(work.tasks) == 1


async def test_waiting_covers_callers_that_stayed_and_work_whose_callers_left() -> None:
    in_flight, works = InFlight(), [Work() for _ in range(4)]
    callers = [asyncio.create_task(_awaiting(in_flight.carried(w.run(2)))) for w in works]
    await asyncio.sleep(0)
    await _leave(callers[0])
    await _leave(callers[1])
    waiting = asyncio.create_task(in_flight.wait())
    for work in works:
        await work.open(0)
    assert not waiting.done()
    for work in works:
        await work.open(1)
    await asyncio.wait_for(waiting, 5)
    assert [len(work.tasks) for work in works] == [2, 2, 2, 2]
    assert await asyncio.gather(*callers[2:]) == [[0, 1], [0, 1]]


async def test_carried_work_can_carry_other_work() -> None:
    in_flight, inner = InFlight(), Work()
    seen: list[object] = []

    async def outer() -> None:
        seen.append(await in_flight.carried(inner.run(2)))
        await asyncio.sleep(0)
        seen.append("end")

    caller = asyncio.create_task(_awaiting(in_flight.carried(outer())))
    await inner.reach(0)
    await _leave(caller)
    await inner.open(0)
    await inner.open(1)
    await _settled(in_flight)
    assert seen == [[0, 1], "end"]


async def test_a_failure_after_the_caller_left_alarms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    in_flight = InFlight()
    gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def work() -> None:
        await gate
        raise KeyError("too late")

    caller = asyncio.create_task(_awaiting(in_flight.carried(work())))
    await asyncio.sleep(0)
    await _leave(caller)
    gate.set_result(None)
    await _settled(in_flight)
    assert not [record for record in caplog.records if record.name == "asyncio"]


def test_a_loop_that_shuts_down_cancels_what_is_left() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def main() -> None:
        caller = asyncio.create_task(_awaiting(InFlight().carried(work())))
        await asyncio.sleep(0)
        await _leave(caller)

    asyncio.run(main())
    assert ended == ["cancelled"]


@pytest.mark.parametrize(
    "wait",
    [
        lambda: asyncio.sleep(0),
        lambda: asyncio.sleep(0.001),
        lambda: asyncio.to_thread(lambda: None),
        lambda: asyncio.wait_for(asyncio.sleep(0.001), 5),
        lambda: asyncio.gather(asyncio.sleep(0), asyncio.sleep(0.001)),
    ],
)
async def test_whatever_it_waits_for_is_waited_for(wait: Callable[[], Awaitable[object]]) -> None:
    async def work() -> int:
        await wait()
        await wait()
        return 5

    assert await InFlight().carried(work()) == 5
