from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

APP = """
from crux_workspace import open_workspace, workspace, Mount

def make():
    return open_workspace("sqlite:///app.db", id="app", mounts=[Mount("/only")])

async def make_async():
    return await open_workspace("sqlite:///app.db", id="app", mounts=[Mount("/only")])

unbound = workspace(id="app")
number = 7

class holder:
    nested = make

def failing():
    raise RuntimeError("the factory broke")
"""


@pytest.fixture
def with_app(bare: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    (bare.folder / "cli_example_app.py").write_text(APP)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield bare
    sys.modules.pop("cli_example_app", None)


def test_without_a_store_the_error_says_to_run_init(bare: Any) -> None:
    ran = bare("ls")
    assert ran.code == 1
    assert ran.stdout == b""
    assert ran.stderr.startswith("error STORE_UNAVAILABLE: There is no workspace here")
    assert "\nhint: run crux-workspace init" in ran.stderr
    assert list(bare.folder.iterdir()) == []


def test_without_a_store_the_error_is_json_when_asked_for(bare: Any) -> None:
    ran = bare("--json", "ls")
    assert ran.code == 1
    assert ran.error["code"] == "STORE_UNAVAILABLE"
    assert ran.error["hint"].startswith("run crux-workspace init")
    assert ran.error["retryable"] is False


def test_init_creates_once_and_can_be_repeated(bare: Any) -> None:
    assert bare.ok("init").text == "created workspace.db\n"
    bare.put("/workspace/a", b"kept")
    assert bare.ok("init").text == "workspace.db is already there\n"
    assert bare.ok("init", "--json").json == {
        "url": "sqlite:///./workspace.db",
        "created": False,
    }
    assert bare.cat("/workspace/a") == b"kept"


def test_init_refuses_a_file_that_is_no_database(bare: Any) -> None:
    (bare.folder / "workspace.db").write_text(
        "not a database, but long enough to have a header" * 9
    )
    ran = bare("init")
    assert ran.code == 1
    assert ran.stderr.startswith("error ")


def test_url_by_option_and_by_environment(bare: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{bare.folder}/elsewhere.db"
    bare.ok("--url", url, "write", "/workspace/a", "one")
    assert bare.ok("cat", "/workspace/a", "--url", url).stdout == b"one"
    monkeypatch.setenv("CRUX_WORKSPACE_URL", url)
    assert bare.cat("/workspace/a") == b"one"
    assert not (bare.folder / "workspace.db").exists()


def test_unknown_url_scheme_is_a_typed_error(bare: Any) -> None:
    ran = bare("--url", "gopher://host/x", "ls")
    assert ran.code == 1
    assert ran.stderr.startswith("error ")
    assert "INTERNAL" not in ran.stderr


def test_shared_options_work_on_either_side_and_the_later_one_wins(cws: Any) -> None:
    cws.ok("--namespace", "one", "write", "/workspace/a", "1")
    cws.ok("write", "/workspace/a", "2", "--namespace", "two")
    assert cws.ok("--namespace", "two", "cat", "/workspace/a", "--namespace", "one").text == "1"
    assert cws.ok("--namespace=two", "at", "1", "cat", "/workspace/a").text == "2"
    assert cws.ok("at", "--namespace=two", "1", "cat", "/workspace/a").text == "2"
    assert cws.ok("at", "1", "cat", "/workspace/a", "--namespace=one").text == "1"
    assert cws.ok("namespaces").lines == ["one", "two"]


def test_namespace_and_id_come_from_the_environment(
    cws: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CRUX_WORKSPACE_NAMESPACE", "thread:1")
    monkeypatch.setenv("CRUX_WORKSPACE_ID", "research")
    cws.put("/workspace/a")
    assert cws.ok("namespaces").lines == ["thread:1"]
    assert cws.ok("namespaces", "--id", "default").lines == []
    assert cws.ok("ls", "-R", "--namespace", "other").lines == []


@pytest.mark.parametrize("name", ["%", "_", "*", "a:b", "ünï", "a/b", "-dash"])
def test_namespace_names_are_literal(cws: Any, name: str) -> None:
    cws.ok("write", "/workspace/a", "x", f"--namespace={name}")
    assert cws.ok("namespaces").lines == [name]
    assert cws.ok("namespaces", "--", name).lines == [name]


def test_blank_namespace_is_refused(cws: Any) -> None:
    ran = cws("ls", "--namespace", "  ")
    assert ran.code == 1
    assert ran.stderr.startswith("error INVALID_ARGUMENT: ")


def test_mounts_replace_the_default_ones(cws: Any) -> None:
    mounts = ("--mount", "/data", "--mount", "/fixed:read")
    cws.ok(*mounts, "write", "/data/a", "x")
    assert cws.ok("ls", *mounts).lines == ["/data/", "/fixed/"]
    assert cws(*mounts, "write", "/fixed/a", "x").stderr.startswith("error READ_ONLY_MOUNT: ")
    assert cws(*mounts, "write", "/workspace/a", "x").stderr.startswith("error OUTSIDE_MOUNTS: ")
    assert cws.ok("--mount", "/data", "ls", "--mount", "/more").lines == ["/data/", "/more/"]


def test_bad_mount_is_wrong_usage(cws: Any) -> None:
    ran = cws("ls", "--mount", "/data:rw")
    assert ran.code == 2
    assert "/data:rw" in ran.stderr


def test_actor_is_in_the_log(cws: Any) -> None:
    cws.ok("--actor", "user:mo", "write", "/workspace/a", "x")
    assert cws.ok("log", "--json").json[0]["actor"] == "user:mo"


@pytest.mark.parametrize("attribute", ["make", "make_async", "holder.nested"])
def test_app_gives_the_workspace(with_app: Any, attribute: str) -> None:
    spec = f"cli_example_app:{attribute}"
    with_app.ok("--app", spec, "write", "/only/a", "x")
    assert with_app.ok("--app", spec, "ls").lines == ["/only/"]
    assert with_app.ok("namespaces", "--app", spec).lines == ["default"]


def test_app_takes_a_namespace(with_app: Any) -> None:
    ran = with_app("--app", "cli_example_app:unbound", "ls")
    assert ran.code == 1
    assert ran.stderr.startswith("error INVALID_ARGUMENT: ")
    sys.modules.pop("cli_example_app")
    with_app.ok("--app", "cli_example_app:unbound", "--namespace", "n", "ls")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--app", "cli_example_app:nothing"], "no attribute"),
        (["--app", "cli_no_such_module:x"], "no module"),
        (["--app", "cli_example_app"], "MODULE:ATTR"),
        (["--app", "cli_example_app:make", "--url", "memory://"], "--url"),
        (["--app", "cli_example_app:make", "--id", "x"], "--id"),
    ],
)
def test_wrong_app_is_wrong_usage(with_app: Any, arguments: list[str], said: str) -> None:
    ran = with_app(*arguments, "ls")
    assert ran.code == 2
    assert said in ran.stderr


def test_app_that_is_no_workspace_or_breaks_is_a_failed_operation(with_app: Any) -> None:
    ran = with_app("--app", "cli_example_app:number", "ls")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_ARGUMENT")
    ran = with_app("--app", "cli_example_app:failing", "ls")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INTERNAL")


def test_traceback_is_shown_when_asked_for(with_app: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRUX_WORKSPACE_TRACEBACK", "1")
    assert "in failing" in with_app("--app", "cli_example_app:failing", "ls").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["ls", "--nonsense"],
        ["cat"],
        ["cat", "/workspace/a", "--lines", "x"],
        ["cat", "/workspace/a", "--lines", ":"],
        ["write", "/workspace/a", "x", "--file", __file__],
        ["write", "/workspace/a", "--file", "missing"],
        ["write", "/workspace/a", "x", "--text", "--binary"],
        ["write", "/workspace/a", "x", "--meta", "novalue"],
        ["edit", "/workspace/a"],
        ["edit", "/workspace/a", "--find", "x"],
        ["edit", "/workspace/a", "--edits", __file__, "--find", "x", "--replace", "y"],
        ["edit", "/workspace/a", "--edits", __file__, "--all"],
        ["edit", "/workspace/a", "--edits", "missing"],
        ["at", "yesterday", "ls"],
        ["at", "99999999999999999999ms", "ls"],
        ["import", "missing", "/workspace"],
    ],
)
def test_wrong_usage_exits_with_2_and_changes_nothing(cws: Any, arguments: list[str]) -> None:
    ran = cws(*arguments)
    assert ran.code == 2
    assert ran.stdout == b""
    assert "Usage" in ran.stderr or "Invalid value" in ran.stderr
    assert cws.ok("log").text == ""


def test_errors_have_code_message_and_hint(cws: Any) -> None:
    ran = cws("cat", "/workspace/missing")
    assert ran.code == 1
    assert ran.stderr.startswith("error FILE_NOT_FOUND: ")
    ran = cws("cat", "/workspace/missing", "--json")
    assert (ran.code, ran.stdout) == (1, b"")
    assert ran.error["code"] == "FILE_NOT_FOUND"
    assert {"code", "message", "details", "hint", "retryable"} <= ran.error.keys()


def test_what_the_machine_refuses_is_a_failed_operation(cws: Any, tmp_path: Path) -> None:
    cws.put("/workspace/a/b")
    (tmp_path / "file").write_bytes(b"")
    ran = cws("export", "/workspace", tmp_path / "file" / "below")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error PATH_TYPE_CONFLICT")


def test_hints_speak_of_options(cws: Any) -> None:
    cws.put("/workspace/a/b")
    assert "--recursive" in cws("rm", "/workspace/a").stderr
    assert "recursive=True" in cws("rm", "/workspace/a", "--json").error["hint"]


@pytest.mark.parametrize("option", ["--namespace", "--id", "--url", "--actor"])
def test_an_empty_option_is_refused_not_defaulted(cws: Any, option: str) -> None:
    ran = cws("ls", option, "")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_ARGUMENT")


def test_an_empty_variable_says_nothing(cws: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("URL", "ID", "NAMESPACE"):
        monkeypatch.setenv(f"CRUX_WORKSPACE_{name}", "")
    assert cws.ok("ls").lines == ["/outputs/", "/workspace/"]
