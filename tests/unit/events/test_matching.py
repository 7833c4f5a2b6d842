"""Which changes a watched path is about."""

from __future__ import annotations

import pytest

from crux_workspace.events.matching import WatchedPath
from crux_workspace.model.changes import Change

WHOLE = WatchedPath("/", True)
TREE = WatchedPath("/a/b", True)
FILE = WatchedPath("/a/b", False)
ROOT = WatchedPath("/", False)
DIRECTORY = WatchedPath("/a/b", False, directory=True)
BELOW = WatchedPath("/a/b", True, directory=True)


@pytest.mark.parametrize(
    ("change", "matching"),
    [
        (Change("update", "/a/b"), [WHOLE, TREE, FILE]),
        (Change("update", "/a/b/c/d"), [WHOLE, TREE, BELOW]),
        (Change("update", "/a/b/c"), [WHOLE, TREE, DIRECTORY, BELOW]),
        (Change("update", "/a/bc"), [WHOLE]),
        (Change("update", "/a"), [WHOLE, ROOT]),
        (Change("rename", "/x/y", "/a/b"), [WHOLE, TREE, FILE]),
        (Change("rename", "/a/b/c", "/x/y"), [WHOLE, TREE, DIRECTORY, BELOW]),
        (Change("rename", "/x/y", "/x/z"), [WHOLE]),
        (Change("rename", "/x/y", "/z"), [WHOLE, ROOT]),
        (Change("create", "<purged>"), [WHOLE]),
        (Change("rename", "<purged>", "<purged>"), [WHOLE]),
    ],
)
def test_a_change_matches(change: Change, matching: list[WatchedPath]) -> None:
    assert [p for p in (WHOLE, TREE, FILE, ROOT, DIRECTORY, BELOW) if p.matches(change)] == matching
