"""The watcher as a process of its own: what it prints, how it ends, and what a crash leaves."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace.events.cursors import parse_event_cursor

Shell = Callable[..., "subprocess.Popen[bytes]"]
ROOT = Path(__file__).parents[3]

WRITER = """
import asyncio, sys
from crux_workspace import open_workspace

async def main(commits, files):
    async with open_workspace("sqlite:///workspace.db") as ws:
        for number in range(commits):
            async with ws.transaction() as tx:
                for file in range(files):
                    await tx.write(f"/workspace/{file}.md", f"{number}")
            await asyncio.sleep(0.002)

asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
"""

CRASHES = """
import json, os, sys
import storage_adapters.sql
from crux_workspace.cli.main import main

TOTAL = 5
real = {name: getattr(os, name) for name in ("write", "fsync", "replace", "rename", "ftruncate")}

def crashing(name):
    def called(*arguments, **options):
        global left
        left -= 1
        if left == 0:
            if name == "write":
                descriptor, data = arguments
                real["write"](descriptor, bytes(data)[: len(data) // 2])
            os._exit(9)
        return real[name](*arguments, **options)
    return called

def saved_lines():
    if not os.path.exists("c"):
        return 0
    size = json.load(open("c", "rb"))["output"]["size"]
    return open("out", "rb").read()[:size].count(b"\\n")

def run(crash_at):
    global left
    limit = str(TOTAL - saved_lines())
    if limit == "0":
        limit = "1"
    child = os.fork()
    if child == 0:
        left = crash_at
        os.dup2(os.open("out", os.O_WRONLY | os.O_APPEND | os.O_CREAT), 1)
        for name in real:
            setattr(os, name, crashing(name))
        end = ["--limit", limit] if saved_lines() < TOTAL else ["--timeout", "0.1"]
        main(["watch", "--cursor-file", "c", "--json", "--from", "oldest", *end])
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

for step in range(1, 60):
    for name in ("out", "c"):
        if os.path.exists(name):
            os.unlink(name)
    codes = [run(step)]
    if codes[0] == 9:
        codes += [run(3), run(0)]
    report = {"step": step, "codes": codes, "out": open("out").read()}
    print(json.dumps(report), file=sys.stderr, flush=True)
    if codes[0] != 9:
        break
"""
"""Lets a watcher end as if killed at its n-th call that changes a file (of a write, half is done), then at the third, then never."""


def finish(process: subprocess.Popen[bytes], code: int = 0) -> tuple[bytes, bytes]:
    stdout, stderr = process.communicate(timeout=50)
    assert process.returncode == code, stderr
    return stdout, stderr


def cells(line: str) -> tuple[str, ...]:
    sequence, _, *rest = line.split("\t")
    return sequence, *rest[:-1]


def logged(cws: Any) -> list[tuple[int, str, str]]:
    """What the log says that a watcher of everything has to print."""
    entries = cws.ok("log", "--limit", 100_000, "--json").json
    return [
        (entry["sequence"], change["type"], change["path"])
        for entry in reversed(entries)
        for change in entry["changes"]
    ]


def printed(data: bytes) -> list[tuple[int, str, str]]:
    assert data.endswith(b"\n") or not data
    events = map(json.loads, data.splitlines())
    return [(event["sequence"], event["type"], event["path"]) for event in events]


def append(cws: Any, name: str) -> Any:
    return (cws.folder / name).open("ab")


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.002)


def commit(cws: Any, *operations: dict[str, Any]) -> None:
    cws.ok("tx", stdin=b"".join(json.dumps(each).encode() + b"\n" for each in operations))


def write(path: str, content: str = "x") -> dict[str, Any]:
    return {"op": "write", "path": path, "content": content}


# -- lines


def test_a_line_an_event(cws: Any, shell: Shell) -> None:
    commit(cws, write("/workspace/b"), write("/workspace/a"))
    commit(cws, {"op": "move", "src": "/workspace/a", "dst": "/outputs/c"})
    commit(cws, {"op": "delete", "path": "/workspace/b"}, write("/outputs/c", "y"))
    stdout, stderr = finish(shell("watch", "--from", "oldest", "--limit", "5"))
    assert stderr == b""
    assert [cells(line) for line in stdout.decode().splitlines()] == [
        ("1", "create", "v1", "/workspace/a", ""),
        ("1", "create", "v1", "/workspace/b", ""),
        ("2", "rename", "v1", "/outputs/c", "/workspace/a"),
        ("3", "update", "v2", "/outputs/c", ""),
        ("3", "delete", "v2", "/workspace/b", ""),
    ]
    stdout, _ = finish(shell("watch", "--from", "oldest", "--limit", "2", "--json"))
    events = [json.loads(line) for line in stdout.splitlines()]
    assert [event["path"] for event in events] == ["/workspace/a", "/workspace/b"]
    stdout, _ = finish(shell("watch", "--cursor", events[0]["cursor"], "--limit", "1"))
    assert cells(stdout.decode())[3] == "/workspace/b"


def test_a_path_is_exact_unless_recursive(cws: Any, shell: Shell) -> None:
    commit(cws, write("/workspace/a"), write("/workspace/d/b"), write("/outputs/c"))
    for arguments, paths in (
        (["/workspace/a"], ["/workspace/a"]),
        (["/workspace"], []),
        (["/workspace", "--recursive"], ["/workspace/a", "/workspace/d/b"]),
        ([], ["/outputs/c", "/workspace/a", "/workspace/d/b"]),
    ):
        command = ["watch", *arguments, "--from", "oldest", "--timeout", "0.3", "--json"]
        assert [path for _, _, path in printed(finish(shell(*command))[0])] == paths


def test_it_begins_at_the_tail_and_prints_at_once_into_a_pipe(cws: Any, shell: Shell) -> None:
    cws.put("/workspace/before")
    process = shell("watch", "--json", "--cursor-file", "c", "--poll-interval-ms", "20")
    wait_for((cws.folder / "c").exists)
    for name in ("a", "b"):
        cws.put(f"/workspace/{name}")
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["path"] == f"/workspace/{name}"
    process.send_signal(signal.SIGTERM)
    finish(process, 143)


def test_the_cursor_command_gives_the_place_to_watch_from(cws: Any, shell: Shell) -> None:
    cws.put("/workspace/a")
    place = cws.ok("cursor").text.strip()
    assert cws.ok("cursor", "--json").json == {"cursor": place}
    cws.put("/workspace/b")
    stdout, _ = finish(shell("watch", "--cursor", place, "--limit", "1", "--json"))
    assert printed(stdout) == [(2, "create", "/workspace/b")]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--cursor", "x", "--from", "tail"], 2, "not both"),
        (["--from", "middle"], 2, "--from"),
        (["--limit", "0"], 2, "--limit"),
        (["--poll-interval-ms", "0"], 2, "--poll-interval-ms"),
        (["--cursor", "x"], 1, "INVALID_CURSOR"),
        (["workspace"], 1, "INVALID_PATH"),
        (["--cursor-file", "missing/c"], 1, "FILE_NOT_FOUND"),
        (["--cursor-file", "garbage"], 1, "garbage is no cursor file"),
        (["--cursor-file", "empty"], 1, "empty is no cursor file"),
        (["--cursor-file", "foreign"], 1, "INVALID_CURSOR"),
    ],
)
def test_what_cannot_be_watched(
    cws: Any, shell: Shell, arguments: list[str], code: int, said: str
) -> None:
    (cws.folder / "garbage").write_text("{}")
    (cws.folder / "empty").write_text("")
    other = cws.ok("cursor", "--namespace", "other").text.strip()
    (cws.folder / "foreign").write_text(json.dumps({"cursor": other}))
    stdout, stderr = finish(shell("watch", *arguments), code)
    assert stdout == b""
    assert said in stderr.decode()


def test_the_workspace_of_an_app_needs_no_runtime_of_its_own(cws: Any, shell: Shell) -> None:
    cws.put("/workspace/a")
    (cws.folder / "app.py").write_text(
        "from crux_workspace import workspace\nfrom storage_adapters import open_storage\n"
        "async def make():\n"
        "    storage = await open_storage('sqlite:///workspace.db')\n"
        "    ws = workspace(id='default', namespace='default', storage=storage)\n"
        "    closing, ws.aclose = ws.aclose, lambda: both()\n"
        "    async def both():\n        await closing()\n        await storage.aclose()\n"
        "    return ws\n"
    )
    stdout, _ = finish(shell("watch", "--app", "app:make", "--from", "oldest", "--limit", "1"))
    assert cells(stdout.decode())[3] == "/workspace/a"


# -- the end


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_the_place_also_behind_what_is_not_printed(
    cws: Any, shell: Shell, number: int, code: int
) -> None:
    process = shell("watch", "/outputs/x", "--cursor-file", "c", "--poll-interval-ms", "20")
    wait_for((cws.folder / "c").exists)
    before = (cws.folder / "c").read_bytes()
    cws.put("/workspace/other")
    wait_for(lambda: (cws.folder / "c").read_bytes() != before)
    cws.put("/workspace/another")
    time.sleep(0.3)
    process.send_signal(number)
    assert finish(process, code) == (b"", b"")
    saved = json.loads((cws.folder / "c").read_bytes())
    assert saved["cursor"] == cws.ok("cursor").text.strip()
    assert saved["output"] is None


def test_a_signal_ends_it_while_nobody_empties_the_pipe(cws: Any, shell: Shell) -> None:
    commit(cws, *(write(f"/workspace/{number}") for number in range(500)))
    process = shell("watch", "--from", "oldest", "--json", "--cursor-file", "c")
    wait_for((cws.folder / "c").exists)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=10) == 143
    first, _ = finish(process, 143)
    command = ["watch", "--json", "--cursor-file", "c", "--limit", str(500 - first.count(b"\n"))]
    second, _ = finish(shell(*command))
    assert 0 < first.count(b"\n") < 500
    assert printed(first + second) == logged(cws)


def test_a_reader_that_goes_away_ends_it_at_once(cws: Any, shell: Shell) -> None:
    cws.put("/workspace/a")
    process = shell("watch", "--from", "oldest")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=10) == 141
    assert process.stderr is not None
    assert process.stderr.read() == b""


def test_one_cursor_file_serves_one_watcher(cws: Any, shell: Shell) -> None:
    process = shell("watch", "--cursor-file", "c")
    wait_for((cws.folder / "c").exists)
    _, stderr = finish(shell("watch", "--cursor-file", "c", "--timeout", "1"), 1)
    assert b"Another process follows a feed" in stderr
    process.kill()
    finish(shell("watch", "--cursor-file", "c", "--timeout", "0"))


# -- what is lost is said


@pytest.mark.parametrize("as_json", [False, True])
def test_a_gap_is_reported_and_the_feed_goes_on(cws: Any, shell: Shell, as_json: bool) -> None:
    cws.put("/workspace/a")
    place = cws.ok("cursor").text.strip()
    cws.folder.joinpath("workspace.db").rename(cws.folder / "old.db")
    for rest in cws.folder.glob("workspace.db-*"):
        rest.unlink()
    cws.ok("init")
    cws.put("/workspace/b")
    options = ["--json"] if as_json else []
    stdout, stderr = finish(shell("watch", "--cursor", place, "--limit", "1", *options))
    assert b"/workspace/b" in stdout
    if as_json:
        assert json.loads(stderr)["error"]["code"] == "WATCH_GAP"
    else:
        assert stderr.startswith(b"warning WATCH_GAP: ")


# -- exactly once


@pytest.mark.parametrize("rest", [b'{"torn', b'{"a": 1}\n', b""])
def test_what_is_behind_the_saved_place_is_cut_off(cws: Any, shell: Shell, rest: bytes) -> None:
    command = ["watch", "--json", "--from", "oldest", "--cursor-file", "c", "--limit", "1"]
    commit(cws, write("/workspace/a"), write("/workspace/b"), write("/workspace/c"))
    (cws.folder / "out").write_bytes(b"")
    for _ in range(3):
        with append(cws, "out") as out:
            assert finish(shell(*command, stdout=out))[1] == b""
            out.write(rest)
    assert (cws.folder / "out").read_bytes().endswith(rest)
    with append(cws, "out") as out:
        finish(shell(*command[:-2], "--timeout", "0", stdout=out))
    assert printed((cws.folder / "out").read_bytes()) == logged(cws)


def test_an_output_that_is_another_one_is_left_alone(cws: Any, shell: Shell) -> None:
    command = ["watch", "--json", "--from", "oldest", "--cursor-file", "c", "--limit", "1"]
    commit(cws, write("/workspace/a"), write("/workspace/b"), write("/workspace/c"))
    with append(cws, "first") as out:
        finish(shell(*command, stdout=out))
    precious = b"precious\n" * 1000
    (cws.folder / "second").write_bytes(precious)
    with append(cws, "second") as out:
        _, stderr = finish(shell(*command, stdout=out))
    assert stderr == b"the output is not as it was when the place was saved: nothing was cut off\n"
    assert (cws.folder / "second").read_bytes().startswith(precious)
    with (cws.folder / "second").open("wb") as out:  # as > does
        _, stderr = finish(shell(*command, stdout=out))
    assert stderr.startswith(b"the output is not as it was")
    assert printed((cws.folder / "second").read_bytes()) == [(1, "create", "/workspace/c")]


@pytest.mark.slow
def test_a_crash_at_every_step_loses_and_repeats_nothing(cws: Any) -> None:
    commit(cws, write("/workspace/a"), write("/workspace/b"), write("/workspace/c"))
    commit(cws, write("/workspace/a", "y"), write("/workspace/d"))
    ran = subprocess.run(
        [sys.executable, "-c", CRASHES],
        cwd=cws.folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
        timeout=55,
    )
    reports = [json.loads(line) for line in ran.stderr.splitlines()]
    for report in reports:
        assert printed(report["out"].encode()) == logged(cws), report
    assert [report["codes"] for report in reports[:-1]] == [[9, 9, 0]] * (len(reports) - 1)
    assert reports[-1]["codes"] == [0]
    assert len(reports) > 10


@pytest.mark.slow
def test_ten_kills_of_the_watcher_lose_and_repeat_nothing(cws: Any, shell: Shell) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    commits, files = 400, 7
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(commits), str(files)], cwd=cws.folder, env=environment
    )
    command = ["watch", "--json", "--from", "oldest", "--cursor-file", "c"]
    chance = random.Random(11)
    path = cws.folder / "out"
    path.touch()
    inside = 0
    try:
        for turn in range(30):
            if (
                turn >= 10 and inside
            ):  # where a kill falls is chance; every place is tried by the sweep above
                break
            with append(cws, "out") as out:
                process = shell(*command, "--poll-interval-ms", "10", stdout=out)
            goal = path.stat().st_size + chance.randrange(300, 20_000)
            wait_for(lambda goal=goal: path.stat().st_size >= goal)  # type: ignore[misc]
            process.kill()
            process.wait()
            place = json.loads((cws.folder / "c").read_bytes())
            inside += parse_event_cursor(place["cursor"]).is_inside
        assert writer.wait(timeout=50) == 0
    finally:
        writer.kill()
        writer.wait()
    with append(cws, "out") as out:
        process = shell(*command, stdout=out)
    end = cws.ok("cursor").text.strip().encode()
    wait_for(lambda: end in (cws.folder / "c").read_bytes(), seconds=50)
    process.send_signal(signal.SIGINT)
    finish(process, 130)
    events = printed(path.read_bytes())
    assert len(events) == commits * files
    assert events == logged(cws)
    print(f"{inside} of 10 kills came between the events of one commit")
