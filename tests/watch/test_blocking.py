"""The blocking form of a watch."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from crux_workspace import SyncWorkspace, WorkspaceChangeEvent, open_workspace_sync
from crux_workspace.errors import InvalidInputError

A = "/workspace/a.md"


@pytest.fixture
def sws(store_url: str) -> Iterator[SyncWorkspace]:
    with open_workspace_sync(store_url) as opened:
        yield opened


def test_a_plain_iterator(sws: SyncWorkspace) -> None:
    place = sws.cursor()
    with sws.watch("/workspace", recursive=True) as handle:
        assert handle.cursor == place
        sws.write(A, "1")
        sws.write("/outputs/b.md", "not watched")
        sws.write(A, "2")
        assert [next(handle).version for _ in range(2)] == [1, 2]
        assert "SyncWatchHandle" in repr(handle)
    assert handle.stopped
    assert list(handle) == []
    handle.stop()
    with sws.watch(cursor=place) as again:
        assert next(iter(again)).version == 1


def test_stopping_from_another_thread_ends_the_loop(sws: SyncWorkspace) -> None:
    handle = sws.watch()
    stopper = threading.Timer(0.05, handle.stop)
    stopper.start()
    assert [event.path for event in handle] == []
    stopper.join()


def test_callbacks_may_block(sws: SyncWorkspace) -> None:
    seen: list[str] = []
    came = threading.Event()

    def read(event: WorkspaceChangeEvent) -> None:
        seen.append(sws.read_text(event.path))
        came.set()

    handle = sws.watch()
    unsubscribe = handle.on(read)
    sws.write(A, "text")
    assert came.wait(5)
    assert seen == ["text"]
    unsubscribe()
    came.clear()
    sws.write(A, "more")
    time.sleep(0.02)
    assert not came.is_set()
    handle.stop()


def test_errors_come_where_they_come_elsewhere(sws: SyncWorkspace) -> None:
    with pytest.raises(InvalidInputError):
        sws.watch(cursor="nonsense")
    sws.write(A, "x", namespace="other")
    with pytest.raises(InvalidInputError), sws.watch(cursor=sws.cursor(namespace="other")):
        pass
    handle = sws.watch()
    with pytest.raises(InvalidInputError):
        handle.on(7)  # type: ignore[arg-type]


def test_closing_the_workspace_ends_the_loop() -> None:
    sws = open_workspace_sync("memory://")
    handle = sws.watch()
    closer = threading.Timer(0.05, sws.close)
    closer.start()
    assert [event.path for event in handle] == []
    closer.join()
    handle.stop()
