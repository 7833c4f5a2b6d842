"""Hypothesis strategies for paths, contents, edits and options that are likely to hurt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import strategies as st

from crux_workspace.model.settings import Limits
from crux_workspace.model.values import JsonValue
from crux_workspace.testing.model import ModelEdit

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = [
    "DIRECTORIES",
    "INLINE_BYTES",
    "PATHS",
    "any_paths",
    "binaries",
    "colliding_directories",
    "colliding_paths",
    "contents",
    "edits",
    "json_values",
    "limits",
    "needles",
    "texts",
]

INLINE_BYTES = 20
"""An `inline_text_below_bytes` that the contents here straddle."""

PATHS = (
    "/workspace/a",
    "/workspace/a/b.md",
    "/workspace/a/b.md/deep.txt",
    "/workspace/d/x.json",
    "/workspace/d/[x]*{y}?.md",
    "/workspace/d/e/f",
    "/workspace/c d+e.txt",
    "/workspace/caf\u00e9",
    "/workspace/cafe\u0301",
    "/workspace/文/件.txt",
    "/outputs/a",
    "/outputs/100%.bin",
)
"""Few paths, so that they collide: as files, as file and directory, by normal form."""

DIRECTORIES = (
    "/workspace",
    "/workspace/a",
    "/workspace/d",
    "/workspace/d/e",
    "/workspace/文",
    "/workspace/new",
    "/outputs",
    "/outputs/kept",
)
"""Directories that may or may not be there."""

_TEXTS = (
    "",
    "a",
    "one\ntwo\none\n",
    "x\r\ny\r\nno final newline",
    "lone\rcarriage return\n",
    "nul\x00inside",
    "\ufeffbyte order mark\n",
    "form\x0cfeed\u2028separator\n",
    "日本語\n語\n",
    "e\u0301 and \u00e9",
    "x" * (INLINE_BYTES - 1),
    "x" * INLINE_BYTES,
    "x" * (INLINE_BYTES + 1),
    "one " * 40,
)
_NEEDLES = ("a", "one", "x", "\n", "\r\n", "語", "\u00e9", "xx", ".*", "absent")
_REPLACEMENTS = ("", "b", "$& \\1 \\g<0>", "one", "longer than the inline limit\n", "\r\n")


def colliding_paths() -> SearchStrategy[str]:
    """Paths of files out of a few, in both normal forms."""
    return st.sampled_from(PATHS)


def colliding_directories() -> SearchStrategy[str]:
    """Paths of directories out of a few."""
    return st.sampled_from(DIRECTORIES)


def any_paths(root: str = "/workspace") -> SearchStrategy[str]:
    """Legal paths below a directory, with anything in their names that is allowed."""
    letters = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\%")
    segment = st.text(letters, min_size=1, max_size=12).filter(lambda name: name.strip(".") != "")
    return st.lists(segment, min_size=1, max_size=4).map(lambda parts: "/".join([root, *parts]))


def texts() -> SearchStrategy[str]:
    """Texts with every kind of line ending, around the inline limit."""
    free = st.text(st.characters(codec="utf-8"), max_size=40)
    return st.one_of(st.sampled_from(_TEXTS), st.sampled_from(_TEXTS), free)


def json_values() -> SearchStrategy[JsonValue]:
    """JSON values that are not str (those are texts)."""
    words = st.text(st.characters(codec="utf-8"), max_size=8)
    scalars = st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
    )
    leaves = st.one_of(scalars, words)
    nested = st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(words, inner, max_size=3)
        ),
        max_leaves=6,
    )
    return nested.filter(lambda value: not isinstance(value, str))


def binaries() -> SearchStrategy[bytes]:
    """Bytes that may or may not be UTF-8."""
    return st.one_of(st.just(b""), st.just(bytes(range(256))), st.binary(max_size=40))


def contents() -> SearchStrategy[JsonValue | bytes]:
    """Anything that can be written in one piece."""
    return st.one_of(texts(), texts(), texts(), json_values(), binaries())


def needles() -> SearchStrategy[str]:
    """Strings to look for that texts are likely to hold."""
    return st.sampled_from(_NEEDLES)


def edits() -> SearchStrategy[list[ModelEdit]]:
    """One edit, or a few in order."""
    occurrence = st.one_of(st.none(), st.integers(1, 3))
    one = st.builds(ModelEdit, needles(), st.sampled_from(_REPLACEMENTS), occurrence)
    everywhere = st.builds(
        ModelEdit, needles(), st.sampled_from(_REPLACEMENTS), replace_all=st.just(True)
    )
    return st.lists(st.one_of(one, everywhere), min_size=1, max_size=3)


def limits() -> SearchStrategy[Limits]:
    """Limits that a handful of small files reach."""
    return st.builds(
        Limits,
        max_file_bytes=st.one_of(st.none(), st.integers(20, 60)),
        max_namespace_bytes=st.one_of(st.none(), st.integers(20, 150)),
        max_files=st.one_of(st.none(), st.integers(1, 4)),
        max_history_bytes=st.one_of(st.none(), st.integers(0, 100)),
    )
