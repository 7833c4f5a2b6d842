"""A workspace used where it cannot be: in a forked child, on another loop, from its own loop's thread, after closing."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace, open_workspace, open_workspace_sync, workspace
from crux_workspace.errors import ErrorCode, StateError, WorkspaceError
from crux_workspace.integrations.bridging import Bridge
from tests.support.slow_stores import TurningRecordStore
from tests.support.stages import Stage

A = "/workspace/a.md"
forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


def in_a_child(check: Callable[[], bool], *, within_s: int = 10) -> str:
    """Fork; return ``ok``, ``wrong`` or ``hung``."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(within_s)
        passed = False
        try:
            passed = check()
        finally:
            os._exit(0 if passed else 1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "hung"
    return "ok" if os.WEXITSTATUS(status) == 0 else "wrong"


def code_of(coroutine: Any) -> str | None:
    """Step a coroutine that must not wait; return the code of its error."""
    try:
        coroutine.send(None)
    except WorkspaceError as error:
        return str(error.code)
    except StopIteration:
        return None
    coroutine.close()
    return "waits"


@forking
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
async def test_a_forked_child_is_told_so(tmp_path: Path) -> None:
    for url in ("memory://", f"sqlite:///{tmp_path}/w.db"):
        async with open_workspace(url) as ws:
            await ws.write(A, "parent's")
            calls: list[Callable[[Workspace], Any]] = [
                lambda w: w.read_text(A),
                lambda w: w.write(A, "child's"),
                lambda w: w.gc(),
                lambda w: w.namespaces(),
                lambda w: w.at(1).list(),
            ]
            answer = in_a_child(lambda w=ws, c=calls: all(code_of(f(w)) == "FORKED" for f in c))  # type: ignore[misc]
            assert answer == "ok"
            assert in_a_child(lambda w=ws: code_of(w.aclose()) is None) == "ok"  # type: ignore[misc]
            assert await ws.read_text(A) == "parent's"
            await ws.write(A, "parent's still")


@forking
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_blocking_call_in_a_forked_child_is_told_so(tmp_path: Path) -> None:
    with open_workspace_sync(f"sqlite:///{tmp_path}/w.db") as sws:
        sws.write(A, "parent's")

        def refused() -> bool:
            try:
                sws.read_text(A)
            except StateError as error:
                return error.code == ErrorCode.FORKED
            return False

        assert in_a_child(refused, within_s=5) == "ok"
        assert sws.read_text(A) == "parent's"


@forking
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("url", ["memory://", "sqlite"])
async def test_a_blocking_form_made_in_a_forked_child_is_told_so(tmp_path: Path, url: str) -> None:
    """Nobody drives the workspace's loop in the child: a call there would wait for ever."""
    async with open_workspace(f"sqlite:///{tmp_path}/w.db" if url == "sqlite" else url) as ws:
        await ws.write(A, "parent's")
        sws = ws.as_sync()
        makers: list[Callable[[], Any]] = [
            lambda: ws.as_sync().read_text(A),
            lambda: ws.for_namespace("n").as_sync().read_text(A),
            lambda: sws.for_namespace("n").read_text(A),
            lambda: sws.acting_as("me").write(A, "child's"),
            lambda: sws.at(1).list(),
            lambda: list(sws.walk("/")),
            lambda: sws.transaction().__enter__(),
            lambda: sws.as_tools()["readWorkspaceFile"].call({"path": A}),
            lambda: Bridge(ws).waited(lambda: ws.read_text(A)),
            lambda: Bridge(sws).waited(lambda: ws.read_text(A)),
        ]

        def refused() -> bool:
            found = [_code(make) for make in makers]
            return found == [ErrorCode.FORKED] * len(makers)

        assert in_a_child(refused, within_s=5) == "ok"
        assert await asyncio.to_thread(sws.read_text, A) == "parent's"


def _code(make: Callable[[], Any]) -> ErrorCode | None:
    try:
        made = make()
    except StateError as error:
        return error.code
    return getattr(made.error, "code", None)


def test_another_loop_is_told_so(tmp_path: Path) -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    ws = workspace(id="w", namespace="n")
    first.run_until_complete(ws.write(A, "x"))
    for call in (ws.read_text(A), ws.write(A, "y"), ws.log()):
        with pytest.raises(StateError) as caught:
            second.run_until_complete(call)
        assert caught.value.code == ErrorCode.WRONG_LOOP
    assert first.run_until_complete(ws.read_text(A)) == "x"
    first.run_until_complete(ws.aclose())
    first.close()
    second.close()


async def test_the_loops_own_thread_is_told_so() -> None:
    ws = workspace(id="w", namespace="n")
    sws = ws.as_sync()
    await ws.write(A, "x")
    for call in (lambda: sws.read_text(A), lambda: list(sws.walk("/")), lambda: sws.at(1).list()):
        with pytest.raises(StateError) as caught:
            call()
        assert caught.value.code == ErrorCode.WRONG_THREAD
    assert await asyncio.to_thread(sws.read_text, A) == "x"


def test_blocking_calls_from_many_threads_all_land(tmp_path: Path) -> None:
    with open_workspace_sync(f"sqlite:///{tmp_path}/w.db") as sws:
        sws.write(A, "")
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for n in range(5):
                    sws.append(A, f"<{number}.{n}>")
                    sws.for_namespace(f"n{number}").write(A, str(n))
                    assert b"".join(sws.stream(A))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert sws.read_text(A).count("<") == 40
        assert len(sws.history(A)) == 41
        assert all(sws.for_namespace(f"n{n}").read_text(A) == "4" for n in range(8))


async def test_calls_after_closing_are_told_so_and_closing_again_is_no_error(
    tmp_path: Path,
) -> None:
    ws = await open_workspace(f"sqlite:///{tmp_path}/w.db")
    await ws.aclose()
    await ws.aclose()
    for call in (ws.read_text(A), ws.write(A, "x"), ws.gc(), ws.namespaces()):
        with pytest.raises(StateError) as caught:
            await call
        assert caught.value.code == ErrorCode.WORKSPACE_CLOSED


async def test_closing_waits_for_commits_in_flight(stage: Stage) -> None:
    trial = await stage.trial()
    ws = trial.workspace()
    ws._core.records = TurningRecordStore(stage.records)
    calls = [
        asyncio.ensure_future(ws.write(f"/workspace/c{n}", "x", namespace=trial.namespace))
        for n in range(5)
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await ws.aclose()
    assert not ws._core.in_flight.tasks
    done = await asyncio.gather(*calls, return_exceptions=True)
    landed = [file for file in done if not isinstance(file, BaseException)]
    reader = trial.workspace()
    there = [f async for f in reader.walk("/workspace/c*", namespace=trial.namespace)]
    assert len(there) == len(landed)
    await trial.check()


@pytest.mark.parametrize("steps", range(1, 4))
async def test_closing_that_is_cancelled_can_be_repeated(steps: int, tmp_path: Path) -> None:
    ws = await open_workspace(f"sqlite:///{tmp_path}/w.db")
    writing = asyncio.ensure_future(ws.write(A, "x"))
    await asyncio.sleep(0)
    closing = asyncio.ensure_future(ws.aclose())
    for _ in range(steps):
        await asyncio.sleep(0)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    await ws.aclose()
    await asyncio.gather(writing, return_exceptions=True)
    with pytest.raises(StateError) as caught:
        await ws._core.records.sequences([])
    assert caught.value.code == ErrorCode.WORKSPACE_CLOSED


@pytest.mark.parametrize("seconds", [0, 0.001, 0.01])
async def test_a_call_that_timed_out_is_wholly_there_or_absent(
    stage: Stage, seconds: float
) -> None:
    trial = await stage.trial()
    ws = trial.workspace()

    async def attempt(call: Awaitable[Any]) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await call
        except TimeoutError:
            return False
        return True

    done = [
        await attempt(ws.write("/workspace/n", b"x" * 100_000, namespace=trial.namespace))
        for _ in range(5)
    ]
    await ws.aclose()
    history = await trial.workspace().history("/workspace/n", namespace=trial.namespace)
    assert len(history) >= sum(done)
    await trial.check()
