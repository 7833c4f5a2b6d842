from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest


@pytest.fixture
def tree(cws: Any) -> Any:
    cws.put("/workspace/a.md", b"alpha\n")
    cws.put("/workspace/docs/b.md", b"beta\nAlpha again\nend\n")
    cws.put("/workspace/docs/deep/c.txt", b"gamma\n")
    cws.put("/outputs/bin", b"\0")
    return cws


def test_ls_prints_a_path_a_line(tree: Any) -> None:
    assert tree.ok("ls").lines == ["/outputs/", "/workspace/"]
    assert tree.ok("ls", "/workspace").lines == ["/workspace/a.md", "/workspace/docs/"]
    assert tree.ok("ls", "-R", "/workspace/docs/").lines == [
        "/workspace/docs/b.md",
        "/workspace/docs/deep/c.txt",
    ]
    assert tree.ok("ls", "/**/*.md").lines == ["/workspace/a.md", "/workspace/docs/b.md"]
    assert tree.ok("ls", "/workspace/a.md").lines == ["/workspace/a.md"]
    assert tree.ok("ls", "/workspace/missing").lines == []


def test_ls_long_and_json(tree: Any) -> None:
    size, version, when, kind, path = (
        tree.ok("ls", "-l", "/workspace/a.md").text.rstrip().split("\t")
    )
    assert (size, version, kind, path) == ("6", "1", "text", "/workspace/a.md")
    assert datetime.fromisoformat(when).tzinfo is not None
    listed = tree.ok("ls", "/workspace", "--json").json
    assert listed["cursor"] is None
    assert [(each["kind"], each["path"]) for each in listed["entries"]] == [
        ("file", "/workspace/a.md"),
        ("directory", "/workspace/docs"),
    ]


def test_ls_pages(tree: Any) -> None:
    ran = tree("ls", "-R", "--limit", 2)
    assert (ran.code, len(ran.lines)) == (0, 2)
    cursor = ran.stderr.removeprefix("more entries: --cursor ").strip()
    rest = tree.ok("ls", "-R", "--limit", 5, "--cursor", cursor).lines
    assert ran.lines + rest == tree.ok("ls", "-R").lines
    page = tree.ok("ls", "-R", "--limit", 2, "--json").json
    assert (len(page["entries"]), page["cursor"]) == (2, cursor)
    assert tree("ls", "--cursor", "nonsense").stderr.startswith("error INVALID_CURSOR: ")


def test_tables_are_for_terminals(tree: Any) -> None:
    ran = tree("ls", "-l", "/workspace", terminal=True)
    assert ran.lines[0].split() == ["size", "version", "updated", "kind", "path"]
    assert "/workspace/docs/" in ran.text


def test_control_characters_cannot_drive_a_terminal(tree: Any) -> None:
    tree.put("/workspace/evil", b"alpha \x1b]0;title\x07\r\n")
    ran = tree("grep", "alpha", "/workspace/evil", terminal=True)
    assert "\x1b" not in ran.text
    assert "\\x1b]0;title\\x07" in ran.text
    assert b"\x1b" in tree.ok("grep", "alpha", "/workspace/evil").stdout


def test_grep_prints_path_line_and_text(tree: Any) -> None:
    assert tree.ok("grep", "alpha").lines == ["/workspace/a.md:1:alpha"]
    assert tree.ok("grep", "-i", "alpha", "/workspace/docs").lines == [
        "/workspace/docs/b.md:2:Alpha again"
    ]
    assert tree.ok("grep", "-E", "^[bg].*a$").lines == [
        "/workspace/docs/b.md:1:beta",
        "/workspace/docs/deep/c.txt:1:gamma",
    ]
    assert tree.ok("grep", "Alpha", "-C", 1).lines == [
        "/workspace/docs/b.md-1-beta",
        "/workspace/docs/b.md:2:Alpha again",
        "/workspace/docs/b.md-3-end",
    ]


def test_grep_without_a_match_succeeds_silently(tree: Any) -> None:
    assert tree.ok("grep", "nowhere").stdout == b""
    assert tree.ok("grep", "x", "/workspace/missing").stdout == b""
    found = tree.ok("grep", "nowhere", "--json").json
    assert (found["matches"], found["truncated"]) == ([], False)


def test_grep_says_when_there_is_more(tree: Any) -> None:
    ran = tree("grep", "a", "-n", 1)
    assert (ran.code, len(ran.lines)) == (0, 1)
    assert "more matches" in ran.stderr
    assert tree.ok("grep", "a", "-n", 1, "--json").json["truncated"] is True


def test_grep_of_a_bad_expression(tree: Any) -> None:
    assert tree("grep", "-E", "(").stderr.startswith("error INVALID_REGEX: ")
    assert tree("grep", "").stderr.startswith("error INVALID_ARGUMENT: ")


def test_stat_describes_a_file_without_its_content(tree: Any) -> None:
    ran = tree.ok("stat", "/workspace/a.md")
    assert "path\t/workspace/a.md" in ran.lines
    assert "alpha" not in ran.text
    assert tree("stat", "/workspace/docs").stderr.startswith("error FILE_NOT_FOUND: ")


def test_rm_deletes_and_can_be_repeated(tree: Any) -> None:
    assert tree.ok("rm", "/workspace/a.md").stdout == b""
    assert tree.ok("rm", "/workspace/a.md", "--json").json is None
    assert tree("rm", "/workspace/docs").stderr.startswith("error PATH_TYPE_CONFLICT: ")
    tree.ok("rm", "-r", "/workspace/docs")
    assert tree.ok("ls", "-R").lines == ["/outputs/bin"]
    assert tree.ok("undo", "/workspace/a.md").text == "/workspace/a.md@v3\n"
    tree.ok("rm", "--purge", "/workspace/a.md")
    assert tree.ok("history", "/workspace/a.md").stdout == b""


def test_mv_moves_files_and_directories(tree: Any) -> None:
    assert tree.ok("mv", "/workspace/a.md", "/outputs/a.md").text == "/outputs/a.md@v1\n"
    assert tree.ok("mv", "/workspace/docs", "/outputs/docs").text == "/outputs/docs/\n"
    ran = tree("mv", "/outputs/a.md", "/outputs/bin")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error ALREADY_EXISTS")
    moved = tree.ok("mv", "/outputs/a.md", "/outputs/bin", "--overwrite", "--json").json
    assert (moved["kind"], moved["path"]) == ("file", "/outputs/bin")
    assert tree.cat("/outputs/bin") == b"alpha\n"


def test_cp_copies_also_into_another_namespace(tree: Any) -> None:
    assert tree.ok("cp", "/workspace/a.md", "/workspace/z.md").text == "/workspace/z.md@v1\n"
    tree.ok("cp", "/workspace/docs", "/workspace/d", "--to-namespace", "other")
    assert tree.ok("ls", "-R", "--namespace", "other").lines == [
        "/workspace/d/b.md",
        "/workspace/d/deep/c.txt",
    ]
    assert tree("cp", "/workspace/a.md", "/outputs/bin").code == 1
    tree.ok("cp", "/workspace/a.md", "/outputs/bin", "--overwrite")
    assert tree.cat("/outputs/bin") == b"alpha\n"


def test_history_diff_undo_and_redo(tree: Any) -> None:
    tree.put("/workspace/a.md", b"alpha\nbeta\n")
    unified = tree.ok("diff", "/workspace/a.md").text
    assert unified.splitlines() == [
        "--- /workspace/a.md@v1",
        "+++ /workspace/a.md@v2",
        "@@ -1 +1,2 @@" if "@@ -1 +1,2 @@" in unified else "@@ -1,1 +1,2 @@",
        " alpha",
        "+beta",
    ]
    assert tree.ok("diff", "/workspace/a.md", "--from", 1, "--to", 2, "--json").json["added"] == 1
    assert tree.ok("diff", "/workspace/a.md", "--from", 2, "--to", 2).stdout == b""
    assert tree.ok("undo", "/workspace/a.md").text == "/workspace/a.md@v3\n"
    assert tree.cat("/workspace/a.md") == b"alpha\n"
    assert tree.ok("redo", "/workspace/a.md").text == "/workspace/a.md@v4\n"
    assert tree("redo", "/workspace/a.md").stderr.startswith("error NOTHING_TO_REDO: ")
    tree.ok("undo", "/workspace/a.md", "--to-version", 1)
    rows = [line.split("\t") for line in tree.ok("history", "/workspace/a.md").lines]
    assert [row[0] for row in rows] == ["5", "4", "3", "2", "1"]
    assert [row[2].split()[0] for row in rows] == ["undo", "redo", "undo", "write", "write"]
    entries = tree.ok("history", "/workspace/a.md", "--limit", 2, "--before", 4, "--json").json
    assert [entry["version"] for entry in entries] == [3, 2]
    assert tree("undo", "/outputs/bin").stderr.startswith("error NOTHING_TO_UNDO: ")
    assert tree("diff", "/outputs/bin").code == 1


def test_diff_is_coloured_on_a_terminal_only(tree: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    tree.put("/workspace/a.md", b"beta\n")
    shown = tree("diff", "/workspace/a.md", terminal=True)
    assert shown.code == 0
    assert "\x1b[32m+beta" in shown.text
    assert "\x1b" not in tree.ok("diff", "/workspace/a.md").text


def test_artifacts_are_published_listed_and_withdrawn(tree: Any) -> None:
    ran = tree.ok("finalize", "/workspace/a.md", "--kind", "report")
    assert ran.text == "/workspace/a.md@v1\n"
    tree.put("/workspace/a.md", b"later")
    tree.ok("write", "/outputs/draft", "x", "--status", "draft")
    rows = [line.split("\t") for line in tree.ok("artifacts").lines]
    assert rows == [
        ["draft", "", "1", "1", "1", "/outputs/draft"],
        ["final", "report", "1", "2", "6", "/workspace/a.md"],
    ]
    found = tree.ok("artifacts", "--status", "final", "--json").json
    assert [each["path"] for each in found] == ["/workspace/a.md"]
    assert tree.ok("artifacts", "--kind", "report", "--path", "/outputs").lines == []
    assert len(tree.ok("artifacts", "--limit", 1, "--after", "/outputs/draft").lines) == 1
    assert tree.ok("withdraw", "/workspace/a.md").text == "/workspace/a.md@v2\n"
    assert tree.ok("artifacts", "--status", "final").lines == []
    pinned = tree.ok("finalize", "/workspace/a.md", "--version", 1, "--json").json
    assert (pinned["version"], pinned["head_version"]) == (1, 2)


def test_log_lists_commits_newest_first(tree: Any) -> None:
    tree.ok("mv", "/workspace/a.md", "/workspace/z.md")
    rows = [line.split("\t") for line in tree.ok("log").lines]
    assert [row[0] for row in rows] == ["5", "4", "3", "2", "1"]
    assert rows[0][5] == "/workspace/a.md>/workspace/z.md"
    assert rows[-1][5] == "+/workspace/a.md"
    page = tree.ok("log", "--limit", 2, "--json").json
    assert [entry["sequence"] for entry in page] == [5, 4]
    following = tree.ok("log", "--limit", 2, "--cursor", page[-1]["cursor"], "--json").json
    assert [entry["sequence"] for entry in following] == [3, 2]
    assert [row.split("\t")[0] for row in tree.ok("log", "/outputs").lines] == ["4"]


def test_undo_commit_reverses_one_commit(tree: Any) -> None:
    tree.ok("rm", "-r", "/workspace/docs")
    commit = tree.ok("log", "--limit", 1).text.split("\t")[4]
    entry = tree.ok("undo-commit", commit, "--json").json
    assert entry["sequence"] == 6
    assert tree.cat("/workspace/docs/b.md").startswith(b"beta")
    ran = tree("undo-commit", commit)
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error VERSION_CONFLICT")
    assert tree("undo-commit", "99-nonsense").stderr.startswith("error ")


def test_at_looks_back_by_sequence_and_by_time(tree: Any) -> None:
    tree.put("/workspace/a.md", b"changed\n")
    tree.ok("rm", "/workspace/docs/b.md")
    assert tree.ok("at", 1, "ls", "-R").lines == ["/workspace/a.md"]
    assert tree.ok("at", 4, "cat", "/workspace/a.md").stdout == b"alpha\n"
    assert tree.ok("at", 4, "grep", "alpha").lines == ["/workspace/a.md:1:alpha"]
    assert tree.ok("at", 4, "stat", "/workspace/docs/b.md", "--json").json["version"] == 1
    assert tree.ok("at", 0, "ls", "-R").lines == []
    assert tree.ok("at", 4, "cat", "/outputs/bin").stdout == b"\0"
    at = tree.ok("log", "--json").json[0]["at"]
    assert tree.ok("at", f"{at}ms", "ls", "/workspace/docs").lines == ["/workspace/docs/deep/"]
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at)
    assert tree.ok("at", moment.isoformat(), "cat", "/workspace/a.md").stdout == b"changed\n"
    shown = tree.ok("log", "--limit", 1).text.split("\t")[1]
    assert tree.ok("at", shown, "cat", "/workspace/a.md").stdout == b"changed\n"


def test_at_exports_and_lists_artifacts_of_then(tree: Any) -> None:
    tree.ok("finalize", "/workspace/a.md")
    tree.put("/workspace/a.md", b"changed\n")
    tree.ok("rm", "-r", "/workspace/docs")
    tree.ok("at", 5, "export", "/workspace", "then")
    assert (tree.folder / "then" / "a.md").read_bytes() == b"alpha\n"
    assert (tree.folder / "then" / "docs" / "deep" / "c.txt").read_bytes() == b"gamma\n"
    assert tree.ok("at", 4, "artifacts").lines == []
    assert tree.ok("at", 5, "artifacts", "--json").json[0]["path"] == "/workspace/a.md"


def test_at_a_moment_that_is_none(tree: Any) -> None:
    assert tree("at", 99, "ls").stderr.startswith("error INVALID_ARGUMENT: ")
    assert tree("at", "2025-06-01T12:00:00", "ls").stderr.startswith("error INVALID_ARGUMENT: ")
    assert tree("at", 1, "write", "/workspace/a").code == 2


def test_usage_gc_and_migrate(tree: Any) -> None:
    used = tree.ok("usage", "--json").json
    assert (used["live_files"], used["versions"]) == (4, 4)
    assert f"live_files\t{used['live_files']}" in tree.ok("usage").lines
    assert tree.ok("gc", "--json").json["dry_run"] is True
    assert tree.ok("gc", "--dry-run", "--json").json["dry_run"] is True
    assert tree.ok("gc", "--apply", "--json").json["dry_run"] is False
    assert "dry_run\tTrue" in tree.ok("gc").lines
    assert tree.ok("migrate").text == "sqlite:///./workspace.db is up to date\n"
    tree.ok("migrate", "sqlite:///fresh.db")
    assert tree.ok("ls", "--url", "sqlite:///fresh.db", "-R").lines == []
    assert tree("migrate", "memory://").stderr.startswith("error CAPABILITY_MISSING: ")


def test_namespaces_pages(cws: Any) -> None:
    for name in ("a", "b", "c"):
        cws.ok("write", "/workspace/f", "x", "--namespace", name)
    ran = cws("namespaces", "--limit", 2)
    assert ran.lines == ["a", "b"]
    cursor = ran.stderr.removeprefix("more names: --cursor ").strip()
    assert cws.ok("namespaces", "--limit", 2, "--cursor", cursor).lines == ["c"]
    assert cws.ok("namespaces", "b", "--json").json == {"names": ["b"], "cursor": None}
