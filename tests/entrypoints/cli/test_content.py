from __future__ import annotations

import hashlib
import json
import os
import threading
from typing import Any

import pytest

TEXTS = {
    "empty": b"",
    "plain": b"one\ntwo\n",
    "no final newline": b"one\ntwo",
    "crlf": b"one\r\ntwo\r\n",
    "lone cr": b"one\rtwo\r",
    "mixed": b"a\r\nb\nc\rd",
    "bom": b"\xef\xbb\xbfbom\n",
    "unicode": "ünï \u2028 \u0308 你好 \U0001f600\x0c\n".encode(),
    "escape": b"\x1b[31mred\x1b[0m\n",
}
BINARIES = {
    "nul": b"a\0b\n",
    "latin-1": b"caf\xe9\n",
    "utf-16": "text".encode("utf-16"),
    "surrogate": b"\xed\xa0\x80",
    "cut sequence": b"abc\xe4\xbd",
    "all bytes": bytes(range(256)),
}


@pytest.mark.parametrize(
    ("kind", "data"),
    [("text", each) for each in TEXTS.values()] + [("binary", each) for each in BINARIES.values()],
    ids=[*TEXTS, *BINARIES],
)
@pytest.mark.parametrize("way", ["stdin", "dash", "file"])
def test_bytes_come_back_as_they_went_in(cws: Any, kind: str, data: bytes, way: str) -> None:
    (cws.folder / "given").write_bytes(data)
    arguments = {"stdin": (), "dash": ("-",), "file": ("--file", "given")}[way]
    cws.ok("write", "/workspace/f.dat", *arguments, stdin=b"" if way == "file" else data)
    assert cws.cat("/workspace/f.dat") == data
    assert cws.ok("stat", "/workspace/f.dat", "--json").json["content_kind"] == kind


@pytest.mark.parametrize("size", [63_999, 64_001, (1 << 20) - 1, 1 << 20, 3_500_001])
@pytest.mark.parametrize("kind", ["text", "binary"])
def test_large_content_of_either_kind_round_trips(cws: Any, size: int, kind: str) -> None:
    unit = "größer\r\n".encode() if kind == "text" else os.urandom(4096)
    data = (unit * (size // len(unit) + 1))[:size]
    if kind == "text":
        data = data.decode(errors="ignore").encode()
    cws.put("/workspace/large", data)
    known = cws.ok("stat", "/workspace/large", "--json").json
    assert (known["content_kind"], known["size"]) == (kind, len(data))
    assert hashlib.sha256(cws.cat("/workspace/large")).digest() == hashlib.sha256(data).digest()


def test_a_fifo_can_be_the_file(cws: Any) -> None:
    fifo = cws.folder / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(b"through\0",))
    writer.start()
    cws.ok("write", "/workspace/a", "--file", fifo)
    writer.join()
    assert cws.cat("/workspace/a") == b"through\0"


def test_an_argument_is_content_as_it_is(cws: Any) -> None:
    assert cws.ok("write", "/workspace/a.txt", "héllo").text == "/workspace/a.txt@v1\n"
    assert cws.cat("/workspace/a.txt") == "héllo".encode()
    cws.ok("write", "/workspace/a.txt", "--", "--looks-like-an-option")
    assert cws.cat("/workspace/a.txt") == b"--looks-like-an-option"
    cws.ok("write", "/workspace/a.txt", "")
    assert cws.cat("/workspace/a.txt") == b""


def test_kind_can_be_forced(cws: Any) -> None:
    cws.ok("write", "/workspace/a", "plain", "--binary")
    assert cws.ok("stat", "/workspace/a", "--json").json["content_kind"] == "binary"
    cws.ok("write", "/workspace/b", "--text", stdin=b"a\0b")
    assert cws.ok("stat", "/workspace/b", "--json").json["content_kind"] == "text"
    assert cws.cat("/workspace/b") == b"a\0b"
    ran = cws("write", "/workspace/c", "--text", stdin=b"\xff")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_CONTENT")
    assert cws("stat", "/workspace/c").code == 1


@pytest.mark.parametrize("large", [False, True])
def test_forced_text_that_is_not_utf8_stores_nothing(cws: Any, large: bool) -> None:
    data = (b"x" * (2 << 20) if large else b"") + b"\xff"
    ran = cws("write", "/workspace/c", "--text", stdin=data)
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_CONTENT")
    assert cws.ok("log").text == ""


def test_json_content_is_stored_as_a_value(cws: Any) -> None:
    cws.ok(
        "write", "/workspace/a.json", "--json-content", stdin=b' {"b": [1, null], "a": "\xc3\xa9"} '
    )
    assert cws.cat("/workspace/a.json") == '{"b":[1,null],"a":"é"}'.encode()
    read = cws.ok("cat", "/workspace/a.json", "--json").json
    assert (read["kind"], read["content"]) == ("json", {"b": [1, None], "a": "é"})
    cws.ok("write", "/workspace/null.json", "null", "--json-content")
    assert cws.cat("/workspace/null.json") == b"null"
    assert cws.cat("/workspace/a.json", "--lines", "1") == b"{\n"


@pytest.mark.parametrize("text", ["{", '"lone"', "NaN", "[1e999]"])
def test_what_is_no_json_value_is_refused(cws: Any, text: str) -> None:
    ran = cws("write", "/workspace/a.json", text, "--json-content")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_CONTENT")
    assert cws.ok("log").text == ""


def test_attributes_of_a_write(cws: Any) -> None:
    options = ["--mime", "text/x-note", "--meta", "a=1", "--meta", "b=x=y"]
    ran = cws.ok(
        "write", "/workspace/a", "x", *options, "--status", "final", "--kind", "note", "--json"
    )
    written = ran.json
    assert written["mime_type"] == "text/x-note"
    assert written["metadata"] == {"a": "1", "b": "x=y"}
    assert (written["status"], written["artifact_kind"]) == ("final", "note")
    assert (written["version"], written["pinned_version"]) == (1, 1)


def test_if_version_guards_a_write(cws: Any) -> None:
    cws.ok("write", "/workspace/a", "1", "--if-version", 0)
    ran = cws("write", "/workspace/a", "2", "--if-version", 0)
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error VERSION_CONFLICT")
    cws.ok("write", "/workspace/a", "2", "--if-version", 1)
    assert cws.cat("/workspace/a") == b"2"


def test_idempotency_key_lets_a_write_be_repeated(cws: Any) -> None:
    first = cws.ok("write", "/workspace/a", "1", "--idempotency-key", "k", "--json").json
    again = cws.ok("write", "/workspace/a", "1", "--idempotency-key", "k", "--json").json
    assert (first["version"], again["version"]) == (1, 1)
    ran = cws("write", "/workspace/a", "other", "--idempotency-key", "k")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_ARGUMENT")


def test_cat_of_versions_and_lines(cws: Any) -> None:
    cws.put("/workspace/a", b"1\r\n2\n3")
    cws.put("/workspace/a", b"new")
    assert cws.cat("/workspace/a", "--version", 1) == b"1\r\n2\n3"
    old = ("--version", 1, "--lines")
    assert cws.cat("/workspace/a", *old, "2:3") == b"2\n3"
    assert cws.cat("/workspace/a", *old, "2:") == b"2\n3"
    assert cws.cat("/workspace/a", *old, ":1") == b"1\r\n"
    assert cws.cat("/workspace/a", *old, "2") == b"2\n"
    assert cws("cat", "/workspace/a", "--lines", "5:").stderr.startswith("error INVALID_ARGUMENT: ")
    assert cws("cat", "/workspace/a", "--version", 9).stderr.startswith("error VERSION_NOT_FOUND: ")


def test_cat_as_json_is_the_whole_content(cws: Any) -> None:
    cws.put("/workspace/a.txt", b"x" * 200_000)
    read = cws.ok("cat", "/workspace/a.txt", "--json").json
    assert (len(read["content"]), read["truncated"]) == (200_000, False)
    cws.put("/workspace/b", b"\0")
    read = cws.ok("cat", "/workspace/b", "--json").json
    assert (read["kind"], read["size"]) == ("binary", 1)


def test_edit_replaces_literally(cws: Any) -> None:
    cws.put("/workspace/a", b"a.c abc a.c\r\n")
    ran = cws("edit", "/workspace/a", "--find", "a.c", "--replace", "x")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error EDIT_AMBIGUOUS")
    cws.ok("edit", "/workspace/a", "--find", "a.c", "--replace", r"$&\1", "--occurrence", 2)
    assert cws.cat("/workspace/a") == b"a.c abc $&\\1\r\n"
    cws.ok("edit", "/workspace/a", "--find", "a", "--replace", "", "--all")
    assert cws.cat("/workspace/a") == b".c bc $&\\1\r\n"
    ran = cws("edit", "/workspace/a", "--find", "zz", "--replace", "x")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error EDIT_NOT_FOUND")
    ran = cws("edit", "/workspace/a", "--find", "c", "--replace", "x", "--all", "--occurrence", 1)
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_ARGUMENT")


def test_edits_from_a_file_or_stdin_are_all_or_none(cws: Any) -> None:
    cws.put("/workspace/a", b"one two two\n")
    edits = [
        {"find": "one", "replace": "1"},
        {"find": "two", "replace": "2", "replace_all": True},
    ]
    (cws.folder / "edits.json").write_text(json.dumps(edits))
    assert cws.ok("edit", "/workspace/a", "--edits", "edits.json").text == "/workspace/a@v2\n"
    assert cws.cat("/workspace/a") == b"1 2 2\n"
    more = b'[{"find": "1", "replace": "one"}, {"find": "missing", "replace": ""}]'
    assert cws("edit", "/workspace/a", "--edits", "-", stdin=more).code == 1
    assert cws.cat("/workspace/a") == b"1 2 2\n"
    for wrong in (b"{", b"[1]", b'[{"find": "1"}]', b'[{"find": "1", "with": "2"}]', b"7"):
        ran = cws("edit", "/workspace/a", "--edits", "-", stdin=wrong)
        assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_ARGUMENT")


def test_append_adds_exactly_what_it_is_given(cws: Any) -> None:
    cws.ok("append", "/workspace/log", "one\r\n")
    cws.ok("append", "/workspace/log", stdin="zwei ü".encode())
    cws.ok("append", "/workspace/log", "-", stdin=b"\n")
    assert cws.cat("/workspace/log") == "one\r\nzwei ü\n".encode()
    ran = cws("append", "/workspace/log", stdin=b"\xff")
    assert (ran.code, ran.stderr.split(":")[0]) == (1, "error INVALID_CONTENT")
    assert cws.ok("history", "/workspace/log", "--json").json[0]["version"] == 3


def test_write_to_a_path_that_cannot_be_a_file(cws: Any) -> None:
    for path, code in [
        ("/workspace/../etc", "INVALID_PATH"),
        ("relative", "INVALID_PATH"),
        ("/workspace/a/", "INVALID_PATH"),
        ("/elsewhere/a", "OUTSIDE_MOUNTS"),
        ("/workspace", "PATH_TYPE_CONFLICT"),
    ]:
        ran = cws("write", path, "x")
        assert (ran.code, ran.stderr.split(":")[0]) == (1, f"error {code}")
    assert cws.ok("log").text == ""
