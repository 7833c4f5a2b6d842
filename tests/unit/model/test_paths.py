"""A path has one spelling, and what could mean another place never becomes one."""

from __future__ import annotations

import unicodedata
from pathlib import PurePosixPath
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.errors import InvalidInputError, InvalidPathError
from crux_workspace.model import paths

SEGMENTS = st.text(
    st.sampled_from("ab.%25eEfF /é\u0301*[]{}~\\\x00\x85\ud800") | st.characters(), max_size=6
)
RAW_PATHS = st.lists(SEGMENTS, max_size=4).map(lambda segments: "/" + "/".join(segments))
NAMES = st.text("ab.é*- ", min_size=1, max_size=4).filter(lambda text: text not in {".", ".."})
PATHS = st.lists(NAMES, max_size=4).map(lambda names: "/" + "/".join(names))


@pytest.mark.parametrize(
    ("raw", "normal"),
    [
        ("/", "/"),
        ("//", "/"),
        ("/.", "/"),
        ("/a/b.md", "/a/b.md"),
        ("//a///./b//", "/a/b"),
        ("/a/.", "/a"),
        ("/a/.../b", "/a/.../b"),
        ("/a/..b/c..", "/a/..b/c.."),
        ("/.hidden", "/.hidden"),
        ("/with space/ü*[x]{y}?", "/with space/ü*[x]{y}?"),
        ("/cafe\u0301", "/café"),
        ("/100%", "/100%"),
        ("/a%20b", "/a%20b"),
        ("/%zz%", "/%zz%"),
        ("/%ff", "/%ff"),
        (PurePosixPath("//a/b/"), "/a/b"),
    ],
)
def test_normal_form(raw: str | PurePosixPath, normal: str) -> None:
    assert paths.normalise(raw) == normal


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "a/b",
        "./a",
        "/..",
        "/a/../b",
        "/a/..",
        "/%2e%2E/x",
        "/.%2e",
        "/%2e.",
        "/%252e%252e",
        "/%25%32%65.",
        "/%2525252e%2e/x",
        "/a%2fb",
        "/a%252Fb",
        "/a%5cb",
        "/a%255cb",
        "/a\\b",
        "/a\x00",
        "/a\n",
        "/a\t/b",
        "/a\x7f",
        "/a\x85",
        "/a%00",
        "/a%2500",
        "/a%0a",
        "/a%7f",
        "/a%c2%85",
        "/%c0%ae%c0%ae/x",
        "/a%c0%afb",
        "/a%e0%80%afb",
        "/\ud800",
        "/a/\udc80b",
        "/" + "x" * 256,
        "/" + "é" * 128,
        "/aa" * 342,
        "/" + "/".join(["x" * 204] * 5) + "/",
        "/é/" + "/".join(["x" * 204] * 5),
    ],
)
def test_refused(raw: str) -> None:
    with pytest.raises(InvalidPathError) as caught:
        paths.normalise(raw)
    assert caught.value.code == "INVALID_PATH"
    assert caught.value.details["path"].isprintable()
    assert caught.value.message.isprintable()
    assert caught.value.hint


@pytest.mark.parametrize("raw", [None, 5, b"/a", ["/a"], object()])
def test_other_types_are_refused(raw: object) -> None:
    with pytest.raises(InvalidPathError, match="str or PurePosixPath"):
        paths.normalise(raw)  # type: ignore[arg-type]


def test_limits_are_inclusive() -> None:
    assert paths.normalise("/" + "x" * 255)
    assert paths.normalise("/" + "é" * 127 + "x")
    longest = "/" + "/".join(["x" * 204] * 4 + ["x" * 203])
    assert len(longest) == 1024
    assert paths.normalise("/" + longest + "/") == longest


def test_a_normal_path_is_the_same_object() -> None:
    path = "/workspace/notes/plan.md"
    assert paths.normalise(path) is path


@given(RAW_PATHS)
def test_normal_paths_are_stable_and_safe(raw: str) -> None:
    try:
        path = paths.normalise(raw)
    except InvalidPathError:
        return
    assert paths.normalise(path) == path
    assert path == unicodedata.normalize("NFC", path)
    segments = path[1:].split("/") if path != "/" else []
    assert all(segment not in {"", ".", ".."} for segment in segments)
    assert not any(unicodedata.category(character) == "Cc" for character in path)


@given(st.sampled_from(["..", "a/b", "a\\b", "a\x00", "\x85"]), st.integers(1, 5))
def test_no_depth_of_encoding_hides_anything(segment: str, depth: int) -> None:
    for _ in range(depth):
        segment = "".join(
            quote(character, safe="") if character not in ".%ab" else f"%{ord(character):02x}"
            for character in segment
        )
        with pytest.raises(InvalidPathError):
            paths.normalise(f"/x/{segment}/y")


def test_directory_hint() -> None:
    assert paths.normalise_directory_hint("/a//b/") == ("/a/b", True)
    assert paths.normalise_directory_hint("/a/b") == ("/a/b", False)
    assert paths.normalise_directory_hint("/") == ("/", True)
    assert paths.normalise_directory_hint(PurePosixPath("/a")) == ("/a", False)


def test_a_file_has_no_trailing_slash() -> None:
    assert paths.normalise_file("//a/b.md") == "/a/b.md"
    for raw in ("/a/", "/", "/a/./"):
        with pytest.raises(InvalidPathError, match="directory"):
            paths.normalise_file(raw)


def test_parts() -> None:
    assert [paths.parent(path) for path in ("/a/b", "/a", "/")] == ["/a", "/", "/"]
    assert [paths.name(path) for path in ("/a/b", "/a", "/")] == ["b", "a", ""]
    assert paths.ancestors("/a/b/c") == ("/a/b", "/a")
    assert paths.ancestors("/a") == paths.ancestors("/") == ()


def test_below_is_by_segment() -> None:
    assert paths.is_below("/a/b", "/a")
    assert not paths.is_below("/ab", "/a")
    assert not paths.is_below("/a", "/a")
    assert not paths.is_below("/a", "/a/b")
    assert paths.is_below("/a", "/")
    assert not paths.is_below("/", "/")
    assert paths.is_at_or_below("/a", "/a")
    assert paths.is_at_or_below("/", "/")
    assert not paths.is_at_or_below("/ab", "/a")


@given(PATHS, PATHS)
def test_join_puts_the_relative_path_below(directory: str, other: str) -> None:
    joined = paths.join(directory, other[1:])
    assert paths.is_at_or_below(joined, directory)
    assert paths.is_below(joined, directory) == (other != "/")
    assert joined.endswith(other) or other == "/"


def test_join_refuses_what_is_no_path() -> None:
    with pytest.raises(InvalidPathError):
        paths.join("/a", "/b")
    with pytest.raises(InvalidPathError):
        paths.join("/a", "../b")
    with pytest.raises(InvalidPathError):
        paths.join("/" + "/".join(["x" * 200] * 4), "/".join(["y" * 200] * 2))


@given(st.lists(PATHS))
def test_sort_key_orders_segment_by_segment(many: list[str]) -> None:
    by_segments = sorted(many, key=lambda path: path.split("/") if path != "/" else [""])
    assert sorted(many, key=paths.sort_key) == by_segments


@pytest.mark.parametrize("value", ["a", "thread:1", "%_*:", "é" * 256, " x ", "../..", "\\"])
def test_ids_are_literal(value: str) -> None:
    assert paths.check_namespace(value) is value
    assert paths.check_workspace_id(value) is value


@pytest.mark.parametrize(
    "value", ["", "  ", "a\n", "\x00", "\x9f", "\ud800", "é" * 257, None, 3, b"a"]
)
def test_refused_ids(value: object) -> None:
    for check in (paths.check_namespace, paths.check_workspace_id):
        with pytest.raises(InvalidInputError) as caught:
            check(value)  # type: ignore[arg-type]
        assert caught.value.code == "INVALID_ARGUMENT"
