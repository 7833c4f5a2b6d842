from __future__ import annotations

import base64
import inspect
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Transaction
from crux_workspace.cli.script import CONTENT_FIELDS, OPERATIONS

Shell = Callable[..., "subprocess.Popen[bytes]"]
ROOT = Path(__file__).parents[3]
NOT_IN_A_SCRIPT = {"self", "namespace", "idempotency_key", "to_namespace", "purge"}


def lines(*operations: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in operations)


def op(name: str, **arguments: Any) -> dict[str, Any]:
    return {"op": name, **arguments}


def commits(cws: Any) -> int:
    return len(cws.ok("log", "--limit", 1000, "--json").json)


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def documents(ran: Any) -> list[Any]:
    return [json.loads(line) for line in ran.lines]


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_line_takes_the_arguments_of_the_method(name: str) -> None:
    parameters = set(inspect.signature(getattr(Transaction, name)).parameters) - NOT_IN_A_SCRIPT
    fields = set(OPERATIONS[name].__struct_fields__)
    if name == "write":
        assert fields >= set(CONTENT_FIELDS)
        fields = fields - set(CONTENT_FIELDS) | {"content"}
    assert fields == parameters


# -- what a script can do


def test_every_operation_in_one_commit(cws: Any) -> None:
    cws.put("/workspace/old.md", b"one two one\n")
    cws.put("/workspace/gone.md")
    cws.put("/outputs/report.md")
    cws.ok("finalize", "/outputs/report.md")
    (cws.folder / "photo.bin").write_bytes(b"\0\1" * 50_000)
    before = commits(cws)
    script = [
        op("write", path="/workspace/text.md", content="text\n", metadata={"by": "me"}),
        op("write", path="/workspace/value.json", content={"b": [1, None], "a": 1}),
        op("write", path="/workspace/null.json", content=None),
        op("write", path="/workspace/small.bin", content_base64=base64.b64encode(b"\0a").decode()),
        op("write", path="/workspace/photo.bin", file="photo.bin", mime_type="image/x-test"),
        op("write", path="/workspace/b.txt", content_base64="aGk=", encoding="utf-8"),
        op("edit", path="/workspace/old.md", find="two", replace="2"),
        op("edit", path="/workspace/old.md", edits=[
            {"find": "one", "replace": "1", "replace_all": True}, {"find": "2", "replace": "3"},
        ]),
        op("append", path="/workspace/old.md", text="end\n"),
        op("set", path="/workspace/old.md", mime_type="text/x-old", kind="notes"),
        op("rename", src="/workspace/old.md", dst="/workspace/new.md"),
        op("move", src="/workspace/b.txt", dst="/workspace/deep/b.txt"),
        op("copy", src="/workspace/new.md", dst="/workspace/copy.md"),
        op("delete", path="/workspace/gone.md"),
        op("finalize", path="/workspace/text.md", kind="report"),
        op("withdraw", path="/outputs/report.md"),
        op("read", path="/workspace/new.md"),
        op("list", path="/workspace"),
        op("exists", path="/workspace/deep"),
        op("exists", path="/workspace/gone.md"),
        op("stat", path="/workspace/value.json"),
        op("stat", path="/workspace/gone.md"),
    ]  # fmt: skip
    ran = cws.ok("tx", "--json", stdin=lines(*script))
    *results, ending = documents(ran)
    assert [(each["line"], each["op"]) for each in results] == [
        (number, each["op"]) for number, each in enumerate(script, 1)
    ]
    shown = {each["line"]: each["result"] for each in results}
    assert (shown[1]["path"], shown[1]["version"]) == ("/workspace/text.md", 1)
    assert shown[14] is None
    assert (shown[15]["status"], shown[15]["version"]) == ("final", 1)
    assert shown[17]["content"] == "1 3 1\nend\n"
    assert "/workspace/deep" in [entry["path"] for entry in shown[18]["entries"]]
    assert (shown[19], shown[20], shown[22]) == (True, False, None)
    assert shown[21]["content_kind"] == "json"
    assert commits(cws) == before + 1
    (entry,) = cws.ok("log", "--limit", 1, "--json").json
    assert (ending["op"], ending["replayed"], ending["dry_run"]) == ("commit", False, False)
    assert ending["result"] == {name: entry[name] for name in ("sequence", "commit", "at")}
    assert cws.cat("/workspace/value.json") == b'{"b":[1,null],"a":1}'
    assert cws.cat("/workspace/null.json") == b"null"
    assert cws.cat("/workspace/small.bin") == b"\0a"
    assert cws.cat("/workspace/photo.bin") == b"\0\1" * 50_000
    assert cws.cat("/workspace/new.md") == cws.cat("/workspace/copy.md") == b"1 3 1\nend\n"
    assert cws.ok("stat", "/workspace/deep/b.txt", "--json").json["content_kind"] == "text"
    assert cws.ok("stat", "/outputs/report.md", "--json").json["status"] == "draft"
    assert cws("stat", "/workspace/gone.md").code == 1


def test_a_line_an_operation_and_the_commit_at_the_end(cws: Any) -> None:
    (cws.folder / "script").write_bytes(
        lines(op("write", path="/workspace/d/a", content="x"), op("read", path="/workspace/d/a"))
        + b"\n"
        + lines(
            op("move", src="/workspace/d", dst="/workspace/e"),
            op("list"),
            op("exists", path="/workspace/e/a"),
            op("stat", path="/workspace/d/a"),
            op("delete", path="/workspace/d/a"),
        )
    )
    ran = cws.ok("tx", "script")
    (entry,) = cws.ok("log", "--json").json
    assert ran.lines == [
        "write /workspace/d/a@v1",
        "read /workspace/d/a@v1",
        "move /workspace/e/",
        "list / 2 entries",
        "exists /workspace/e/a yes",
        "stat /workspace/d/a no file",
        "delete /workspace/d/a",
        f"commit 1 {entry['commit']}",
    ]


def test_a_script_that_changes_nothing_commits_nothing(cws: Any) -> None:
    assert cws.ok("tx", stdin=b"").text == "nothing to commit\n"
    assert cws.ok("tx", "-", stdin=lines(op("list"))).lines[-1] == "nothing to commit"
    assert documents(cws.ok("tx", "--json"))[-1]["result"] is None
    assert commits(cws) == 0


def test_a_dry_run_shows_all_and_leaves_nothing(cws: Any) -> None:
    script = lines(op("write", path="/workspace/a", content_base64="AAAA"))
    ran = cws.ok("tx", "--dry-run", stdin=script)
    assert ran.lines == ["write /workspace/a@v1", "rolled back"]
    assert documents(cws.ok("tx", "--dry-run", "--json", stdin=script))[-1] == {
        "op": "commit", "result": None, "replayed": False, "dry_run": True,
    }  # fmt: skip
    assert commits(cws) == 0


def test_an_idempotency_key_takes_effect_once(cws: Any) -> None:
    script = lines(op("append", path="/workspace/a", text="x"))
    first = cws.ok("tx", "--idempotency-key", "k", stdin=script)
    again = cws.ok("tx", "--idempotency-key", "k", stdin=script)
    assert again.text == f"committed before: {first.lines[-1].removeprefix('commit ')}\n"
    (shown,) = documents(cws.ok("tx", "--idempotency-key", "k", "--json", stdin=script))
    assert shown["replayed"]
    assert shown["result"]["sequence"] == 1
    assert cws.cat("/workspace/a") == b"x"


# -- what is wrong usage


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "line 2: "),
        (b"[1]", "it is not a JSON object"),
        (b"\xff", "line 2: "),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"path": "/workspace/a"}', "op has to be one of write, edit,"),
        (b'{"op": "purge", "path": "/workspace/a"}', "it is 'purge'"),
        (b'{"op": ["write"]}', "op has to be one of"),
        (b'{"op": "read"}', "missing required field `path`"),
        (b'{"op": "read", "path": 1}', "Expected `str`, got `int`"),
        (b'{"op": "read", "path": "/a", "path": "/b"}', "it says 'path' twice"),
        (b'{"op": "read", "path": "/workspace/a", "startLine": 1}', "unknown field `startLine`"),
        (b'{"op": "read", "path": "/workspace/a", "version": true}', "got `bool`"),
        (b'{"op": "delete", "path": "/workspace/a", "purge": true}', "unknown field `purge`"),
        (b'{"op": "copy", "src": "/a", "dst": "/b", "to_namespace": "n"}', "`to_namespace`"),
        (b'{"op": "write", "path": "/workspace/a"}', "write takes one of content,"),
        (b'{"op": "write", "path": "/a", "content": "x", "file": "y"}', "write takes one of"),
        (b'{"op": "write", "path": "/a", "content": NaN}', "NaN is not JSON"),
        (b'{"op": "write", "path": "/a", "content_base64": "?"}', "is not base64"),
        (b'{"op": "write", "path": "/a", "file": "missing"}', "there is no file missing"),
        (b'{"op": "write", "path": "/a", "content": "x", "status": "done"}', "$.status"),
        (b'{"op": "edit", "path": "/a"}', "edit takes find and replace, or edits alone"),
        (b'{"op": "edit", "path": "/a", "find": "x"}', "edit takes find and replace"),
        (b'{"op": "edit", "path": "/a", "find": "x", "replace": "", "edits": []}', "edits alone"),
        (b'{"op": "edit", "path": "/a", "edits": [{"find": "x", "by": "y"}]}', "$.edits[0]"),
    ],
)
def test_a_wrong_line_is_named_and_nothing_is_applied(cws: Any, line: bytes, said: str) -> None:
    script = lines(op("write", path="/workspace/before", content="x")) + line + b"\n"
    ran = cws("tx", stdin=script)
    shown = " ".join(ran.stderr.replace("│", " ").split())
    assert (ran.code, ran.stdout) == (2, b"")
    assert "line 2: " in shown
    assert said in shown
    assert commits(cws) == 0


def test_wrong_options_are_wrong_usage(cws: Any) -> None:
    assert cws("tx", "missing").code == 2
    assert cws("tx", "--max-attempts", 0).code == 2


# -- what is refused


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (op("edit", path="/workspace/a", find="y", replace="z"), "EDIT_NOT_FOUND"),
        (op("read", path="/workspace/missing"), "FILE_NOT_FOUND"),
        (op("write", path="/workspace/a", content="y", if_version=7), "VERSION_CONFLICT"),
        (op("write", path="/elsewhere/a", content="y"), "OUTSIDE_MOUNTS"),
        (op("write", path="/workspace/a/../b", content="y"), "INVALID_PATH"),
        (op("write", path="/workspace/b", content="\ud800"), "INVALID_CONTENT"),
        (op("write", path="/workspace/b", content_base64="/w==", encoding="utf-8"), "INVALID_CONTENT"),
        (op("list", limit=0), "INVALID_ARGUMENT"),
        (op("delete", path="/workspace"), "PATH_TYPE_CONFLICT"),
    ],
)  # fmt: skip
def test_a_refused_operation_names_its_line_and_undoes_the_others(
    cws: Any, refused: dict[str, Any], code: str
) -> None:
    cws.put("/workspace/a", b"x")
    script = lines(op("write", path="/workspace/new", content="n"), refused)
    ran = cws("tx", "--json", stdin=script)
    assert (ran.code, ran.stdout) == (1, b"")
    assert (ran.error["code"], ran.error["details"]["line"]) == (code, 2)
    assert ran.error["message"].startswith(f"Line 2 ({refused['op']}): ")
    assert cws("tx", stdin=script).stderr.startswith(f"error {code}: Line 2 ")
    assert cws.ok("ls", "-R").text == "/workspace/a\n"


def interfere(cws: Any, patch: pytest.MonkeyPatch, times: int) -> None:
    """Have another process commit to /workspace/a while a script looks whether something exists."""
    exists = Transaction.exists

    async def slow_exists(self: Transaction, path: str) -> bool:
        nonlocal times
        if times:
            times -= 1
            command = [sys.executable, "-m", "crux_workspace.cli", "append", "/workspace/a", "!"]
            subprocess.run(command, cwd=cws.folder, check=True, capture_output=True)  # noqa: ASYNC221
        return await exists(self, path)

    patch.setenv("PYTHONPATH", str(ROOT))
    patch.setattr(Transaction, "exists", slow_exists)


CONTENDED = lines(
    op("append", path="/workspace/a", text="mine"),
    op("write", path="/workspace/b", content="b"),
    op("exists", path="/workspace"),
)


def test_a_conflict_names_the_paths_and_applies_nothing(
    cws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cws.put("/workspace/a", b"x")
    interfere(cws, monkeypatch, times=2)
    ran = cws("tx", stdin=CONTENDED)
    assert (ran.code, ran.stdout) == (1, b"")
    assert ran.stderr.startswith("error TRANSACTION_CONFLICT: ")
    assert "/workspace/a" in ran.stderr
    ran = cws("tx", "--json", stdin=CONTENDED)
    (conflict,) = ran.error["details"]["conflicts"]
    assert (conflict["path"], conflict["base_version"], conflict["current_version"]) == (
        "/workspace/a", 2, 3,
    )  # fmt: skip
    assert cws.cat("/workspace/a") == b"x!!"
    assert cws.ok("ls", "-R").text == "/workspace/a\n"


def test_a_conflict_is_tried_again_as_often_as_allowed(
    cws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cws.put("/workspace/a", b"x")
    interfere(cws, monkeypatch, times=2)
    ran = cws.ok("tx", "--max-attempts", 3, stdin=CONTENDED)
    assert ran.lines[0] == "append /workspace/a@v4"
    assert cws.cat("/workspace/a") == b"x!!mine"


# -- many processes, and the end of one


def test_many_processes_change_the_same_two_files(cws: Any, shell: Shell) -> None:
    cws.put("/workspace/a", b"")
    processes = [shell("tx", "--max-attempts", "50") for _ in range(4)]
    for number, process in enumerate(processes):
        assert process.stdin is not None
        process.stdin.write(
            lines(
                *(
                    op("append", path=f"/workspace/{name}", text=f"{number}\n")
                    for name in "ab"
                    for _ in range(3)
                )
            )
        )
        process.stdin.close()
        process.stdin = None
    assert {process.wait(timeout=50) for process in processes} == {0}
    assert commits(cws) == 5
    text = cws.cat("/workspace/a")
    assert text == cws.cat("/workspace/b")
    assert sorted(text.split()) == [b"%d" % number for number in range(4) for _ in range(3)]
    assert all(len(set(text.split()[at : at + 3])) == 1 for at in range(0, 12, 3))


@pytest.mark.slow
def test_fifty_writes_killed_at_any_moment_are_all_there_or_none(cws: Any, shell: Shell) -> None:
    (cws.folder / "big.bin").write_bytes(b"\0" * 200_000)
    script = cws.folder / "script"
    script.write_bytes(
        lines(
            *(op("write", path=f"/workspace/{n}.md", content=f"text {n}\n") for n in range(47)),
            *(op("write", path=f"/workspace/{n}.bin", file="big.bin") for n in range(3)),
        )
    )
    start = time.monotonic()
    assert shell("--namespace", "whole", "tx", "script").wait(timeout=50) == 0
    whole = time.monotonic() - start
    chance = random.Random(7)
    log = cws.folder / "workspace.db-wal"
    delay = whole * 0.8
    counts = []
    for number in range(10):
        process = shell("--namespace", f"n{number}", "tx", "script")
        if number % 2:  # while the commit is being written
            goal = chance.randrange(1, 80_000)
            while process.poll() is None and size_of(log) < goal:
                pass
        else:  # around the commit, wherever this machine has it
            time.sleep(delay)
        process.kill()
        process.wait()
        listed = cws.ok("--namespace", f"n{number}", "ls", "-R").lines
        logged = cws.ok("--namespace", f"n{number}", "log", "--json").json
        assert len(listed) in (0, 50)
        assert len(logged) == len(listed) // 50
        counts.append(len(listed))
        delay *= 0.93 if listed else 1.07
    print(f"{counts.count(0)} killed before the commit, {counts.count(50)} after")
    assert cws.ok("--namespace", "n0", "tx", "script").lines[-1].startswith("commit ")
