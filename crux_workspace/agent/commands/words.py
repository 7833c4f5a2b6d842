"""Words of a command line: what the shell makes of quotes and escapes, and which words it only knows at run time.

Every leaf of the syntax tree is looked at a second time here: text in which the shell would still see an operator, a quote or an
expansion was not understood by the grammar, and then nothing is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["NotUnderstood", "Word", "base_name", "literal", "node_text", "word_of"]

_SPECIAL = frozenset("\"'`$;|&<>() \t\r\n")
_GLOB = frozenset("*?[")
_LIVE_IN_STRING = re.compile(r"(?:[^\\]|^)(?:\\\\)*(?:`|\$[A-Za-z_0-9({'\"@*#?$!-])", re.S)
_ANSI = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3}))"
)
_ANSI_NAMES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_RUNTIME = frozenset(
    {
        "simple_expansion",
        "expansion",
        "command_substitution",
        "process_substitution",
        "arithmetic_expansion",
        "translated_string",
        "brace_expression",
    }
)


class NotUnderstood(Exception):
    """The grammar and the second look disagree, or the construct is not one that is judged."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a simple command."""

    text: str
    """What the shell makes of it; of a word that is known only at run time, the source text."""
    known: bool
    """Whether `text` is what the program gets."""
    raw: str
    """The source text."""
    quoted: bool = False
    """Some of it stands in quotes, so it is neither keyword nor alias."""


def node_text(node: Node) -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode("utf-8", "surrogateescape")


def word_of(node: Node) -> Word:
    """Return what the shell makes of a word.

    Raises:
        NotUnderstood: The second look found something live in it.
    """
    raw = node_text(node)
    parts: list[str] = []
    known = _collect(node, parts)
    if known and _is_brace_list(node, raw):
        known = False
    return Word("".join(parts) if known else raw, known, raw, any(c in raw for c in "'\"\\"))


def base_name(program: str) -> str:
    """Return the last part of a program's path."""
    return program.rstrip("/").rpartition("/")[2]


def literal(texts: Sequence[str]) -> list[Word]:
    """Return words that are known as they stand."""
    return [Word(text, True, text) for text in texts]


def _collect(node: Node, parts: list[str]) -> bool:
    """Append what the node stands for to `parts`; False when it is known only at run time."""
    kind = node.type
    if kind in _RUNTIME:
        return False
    if kind in ("concatenation", "command_name"):
        _check_joined(node)
        known = [_collect(child, parts) for child in node.children]
        return all(known)
    if kind == "string":
        return _string(node, parts)
    leaf = _LEAVES.get(kind)
    if leaf is None:
        raise NotUnderstood(kind)
    return leaf(node_text(node), parts)


def _check_joined(node: Node) -> None:
    for left, right in zip(node.children, node.children[1:], strict=False):
        if left.end_byte != right.start_byte:
            raise NotUnderstood("a word with a gap")


def _string(node: Node, parts: list[str]) -> bool:
    known = True
    at = node.start_byte
    whole = node.text or b""
    for child in node.children:
        gap = whole[at - node.start_byte : child.start_byte - node.start_byte].decode()
        parts.append(string_content(gap))
        at = child.end_byte
        if child.type == '"':
            continue
        if child.type == "string_content":
            parts.append(string_content(node_text(child)))
        elif child.type in _RUNTIME:
            known = False
        else:
            raise NotUnderstood(child.type)
    return known


def string_content(text: str) -> str:
    """Return what the shell makes of text inside double quotes.

    Raises:
        NotUnderstood: There is a live expansion in it.
    """
    if _LIVE_IN_STRING.search(text) or '"' in re.sub(r"\\.", "", text, flags=re.S):
        raise NotUnderstood("an expansion inside a string")
    return re.sub(r"\\([$`\"\\\n])", lambda m: "" if m[1] == "\n" else m[1], text)


def _word(text: str, parts: list[str]) -> bool:
    known = not text.startswith("~")
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            if at + 1 >= len(text) or text[at + 1] == "\n":
                raise NotUnderstood("a line continuation inside a word")
            parts.append(text[at + 1])
            at += 2
            continue
        if char in _SPECIAL:
            raise NotUnderstood("an operator inside a word")
        known = known and char not in _GLOB
        parts.append(char)
        at += 1
    return known


def _raw_string(text: str, parts: list[str]) -> bool:
    if len(text) < 2 or text[0] != "'" or text[-1] != "'" or "'" in text[1:-1]:
        raise NotUnderstood("a broken quotation")
    parts.append(text[1:-1])
    return True


def _ansi_string(text: str, parts: list[str]) -> bool:
    body = text[2:-1]
    if not text.startswith("$'") or re.search(r"(?<!\\)(?:\\\\)*'", body):
        raise NotUnderstood("a broken quotation")
    if re.search(r"\\", _ANSI.sub("", body)):
        return False
    decoded = _ANSI.sub(_ansi_escape, body)
    parts.append(decoded)
    return "\x00" not in decoded


def _ansi_escape(match: re.Match[str]) -> str:
    name, hexa, short, long, octal = match.groups()
    if name is not None:
        return _ANSI_NAMES[name]
    number = int(octal, 8) & 0xFF if octal else int(hexa or short or long, 16)
    return chr(number) if number < 0x80 or ((short or long) and number <= 0x10FFFF) else "\x00"


def _is_brace_list(node: Node, raw: str) -> bool:
    """Tell whether an unquoted ``{a,b}`` or ``{1..3}`` makes several words of one."""
    if node.type not in ("concatenation", "word", "command_name"):
        return False
    return "{" in raw and re.search(r"\{.*(?:,|\.\.).*\}", raw, re.S) is not None


_LEAVES = {
    "word": _word,
    "number": _word,
    "variable_name": _word,
    "special_variable_name": _word,
    "test_operator": _word,
    "raw_string": _raw_string,
    "ansi_c_string": _ansi_string,
}
