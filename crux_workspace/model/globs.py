"""What a glob means, the same everywhere one is accepted.

The meaning is wcmatch's with GLOBSTAR, BRACE, DOTGLOB and CASE; its expressions take exponential time on some patterns, so the
translation is our own. `*` and `?` stay within a segment, `**` as a whole segment stands for any number of segments, `[...]` is one
character of a segment and `{a,b}` and `{1..9}` are alternatives. Dots are not special, case counts, and nothing else is special:
no negation, no tilde, no extended groups, no escapes (write `[*]` for a star).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import bracex

from crux_workspace.errors import InvalidInputError
from crux_workspace.model import paths

__all__ = ["MAX_ALTERNATIVES", "MAX_PATTERN_CHARACTERS", "Glob", "compile_glob", "has_glob"]

MAX_ALTERNATIVES = 256
MAX_PATTERN_CHARACTERS = 4096

_GLOB_CHARACTER = re.compile(r"[*?\[{]")
_GLOBSTAR = "**"
_STARS = re.compile(r"\*+")
_POSIX_CLASS = re.compile(r"\[:([a-z]+):\]")
_POSIX_RANGES = {
    "alnum": ["09", "AZ", "az"],
    "alpha": ["AZ", "az"],
    "ascii": ["\x00\x7f"],
    "blank": ["\t\t", "  "],
    "cntrl": ["\x00\x1f", "\x7f\x7f"],
    "digit": ["09"],
    "graph": ["!~"],
    "lower": ["az"],
    "print": [" ~"],
    "punct": ["!/", ":@", "[`", "{~"],
    "space": ["\t\r", "  "],
    "upper": ["AZ"],
    "word": ["09", "AZ", "__", "az"],
    "xdigit": ["09", "AF", "af"],
}


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern over normal paths; make one with ``compile_glob``."""

    pattern: str
    """The pattern as it was given."""
    base: str
    """The deepest directory that every matching path lies below."""
    _expression: re.Pattern[str] = field(repr=False, compare=False)

    def matches(self, path: str) -> bool:
        """Return whether a normal path matches the whole pattern.

        The time is at most the product of the lengths of path and pattern, whatever they are.
        """
        return self._expression.fullmatch(path) is not None


def has_glob(path: str | PurePosixPath) -> bool:
    """Return whether a path holds a character that can make it a glob; what is no path at all holds none."""
    given: object = path
    return isinstance(given, str | PurePosixPath) and _GLOB_CHARACTER.search(str(given)) is not None


def compile_glob(pattern: str | PurePosixPath) -> Glob:
    """Return the glob a pattern stands for.

    Every alternative of the pattern has to be a legal path and is normalised like one, so ``//``, ``/.`` and a trailing slash
    mean nothing.

    Args:
        pattern: Absolute pattern; without glob characters it matches exactly that path.

    Returns:
        The compiled glob.

    Raises:
        InvalidPathError: An alternative can never name a file (``INVALID_PATH``).
        InvalidInputError: The pattern has more than 256 alternatives, nests them too deeply, or is longer than 4096 characters
            (``INVALID_ARGUMENT``).
    """
    if not isinstance(pattern, str):
        pattern = paths.normalise(pattern)
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise _too_much(f"it is longer than {MAX_PATTERN_CHARACTERS} characters")
    first = _GLOB_CHARACTER.search(pattern)
    literal = pattern[: first.start()] if first else pattern.rstrip("/")
    base = paths.normalise(literal[: literal.rfind("/") + 1] or pattern)
    alternatives = dict.fromkeys(paths.normalise(part) for part in _expand_braces(pattern))
    expression = "|".join(map(_translate, alternatives))
    return Glob(pattern, base, re.compile(expression, re.DOTALL))


def _expand_braces(pattern: str) -> list[str]:
    try:
        return list(
            bracex.iexpand(pattern, keep_escapes=True, limit=MAX_ALTERNATIVES, return_empty=True)
        )
    except bracex.ExpansionLimitException as error:
        raise _too_much(f"its braces give more than {MAX_ALTERNATIVES} alternatives") from error
    except RecursionError as error:
        raise _too_much("its braces are nested too deeply") from error


def _too_much(why: str) -> InvalidInputError:
    return InvalidInputError(
        f"The glob was refused because {why}.",
        details={"max_alternatives": MAX_ALTERNATIVES, "max_characters": MAX_PATTERN_CHARACTERS},
        hint="Use a simpler pattern, or several.",
    )


def _translate(pattern: str) -> str:
    """Return the expression of one alternative.

    What stands between two wildcards has a fixed length, so its first occurrence is always the right one: every step is atomic and
    nothing is tried twice.
    """
    blocks: list[list[str]] = [[]]
    for segment in pattern[1:].split("/"):
        if segment != _GLOBSTAR:
            blocks[-1].append(f"/{_translate_segment(segment)}(?=/|\\Z)")
        elif blocks[-1] or len(blocks) == 1:
            blocks.append([])
    first, *others = ["".join(block) for block in blocks]
    if not others:
        return first
    *middle, last = others
    between = "".join(f"(?>(?:/[^/]++)*?{block})" for block in middle)
    return f"{first}{between}" + (f"(?:/[^/]++)*?{last}\\Z" if last else "(?:/[^/]++)++")


def _translate_segment(segment: str) -> str:
    tokens = _tokens(segment)
    if not any(tokens):
        return "[^/]++"
    first, *others = tokens
    if not others:
        return first
    *middle, last = others
    between = "".join(f"(?>[^/]*?{part})" for part in middle if part)
    return f"(?>{first}{between}[^/]*?{last}(?=/|\\Z))" if last else f"{first}{between}[^/]*+"


def _tokens(segment: str) -> list[str]:
    """Return the expressions of fixed length between the stars of a segment."""
    parts = [""]
    at = 0
    is_closed = True
    while at < len(segment):
        character = segment[at]
        at += 1
        if character == "*":
            if parts[-1] or len(parts) == 1:
                parts.append("")
        elif character == "?":
            parts[-1] += "[^/]"
        elif character == "[" and is_closed and (end := _class_end(segment, at)):
            parts[-1] += _translate_class(segment[at:end])
            at = end + 1
        elif character == "[":
            parts[-1] += r"\["
            is_closed = False  # As in wcmatch, no later class of the segment counts then.
        else:
            parts[-1] += re.escape(character)
    return parts


def _class_end(segment: str, at: int) -> int:
    """Return where the class that was opened before ``at`` closes, or 0 when it never does."""
    if segment[at : at + 1] in {"!", "^"}:
        at += 1
    if segment[at : at + 1] in {"-", "]"}:
        at += 1
    while at < len(segment):
        if segment[at] == "]":
            return at
        named = _POSIX_CLASS.match(segment, at)
        at = named.end() if named and named[1] in _POSIX_RANGES else at + 1
    return 0


def _translate_class(body: str) -> str:
    negated = body[0] in {"!", "^"}
    ranges = _class_ranges(body[1:] if negated else body)
    inside = "".join(f"{re.escape(low)}-{re.escape(high)}" for low, high in ranges if low <= high)
    if negated:
        return f"[^/{inside}]"
    return f"(?!/)[{inside}]" if inside else "(?!)"


def _class_ranges(body: str) -> list[tuple[str, str]]:
    ranges: list[tuple[str, str]] = []
    at = 0
    while at < len(body):
        named = _POSIX_CLASS.match(body, at)
        if named and named[1] in _POSIX_RANGES:
            ranges += [(ends[0], ends[1]) for ends in _POSIX_RANGES[named[1]]]
            at = named.end()
            continue
        low = high = body[at]
        at += 1
        upper = _POSIX_CLASS.match(body, at + 1)
        is_range = body[at : at + 1] == "-" and at + 1 < len(body)
        if is_range and not (upper and upper[1] in _POSIX_RANGES):
            high = body[at + 1]
            at += 2
        ranges.append((low, high))
    return ranges
