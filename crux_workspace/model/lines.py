r"""Where lines begin and end, and the windows that reads cut out of a file.

A line ends at ``\n`` or ``\r\n`` and nowhere else: a lone carriage return, a form feed or U+2028 is a character like any other. A
final line ending starts no further line.
"""

from __future__ import annotations

from crux_workspace.errors import InvalidInputError

__all__ = ["byte_window", "count_lines", "line_bounds", "split_lines", "window"]

_CHARACTER_BYTES = 4


def count_lines(text: str) -> int:
    """Return how many lines a text has; an empty one has none."""
    if not text:
        return 0
    ends = text.count("\n") if "\n" in text else 0  # to find none is much faster than to count
    return ends + (text[-1] != "\n")


def split_lines(text: str) -> list[str]:
    """Return the lines of a text, each with its own ending, so that joining them gives the text back."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    if last:
        lines.append(last)
    return lines


def window(text: str, start_line: int | None, end_line: int | None) -> tuple[str, int]:
    """Return a run of whole lines, each with its own ending, and how many lines there are in all.

    Args:
        text: The whole text.
        start_line: First line, from 1; None is the first of all.
        end_line: Last line, included; None or one past the end is the last of all.

    Returns:
        The lines as one text, and the total. Of an empty text, the window from line 1 is empty.

    Raises:
        InvalidInputError: ``start_line`` is below 1 or past the end, or ``end_line`` is before ``start_line``; the message names
            the total (``INVALID_ARGUMENT``).
    """
    total = count_lines(text)
    first, count = line_bounds(total, start_line, end_line)
    start = _line_start(text, 0, first - 1)
    if count is None:
        return text[start:], total
    return text[start : _line_start(text, start, count)], total


def line_bounds(total: int, start_line: int | None, end_line: int | None) -> tuple[int, int | None]:
    """Return the first line of a window, and how many it has; None is all to the end.

    Args:
        total: Lines of the whole text.
        start_line: See `window`.
        end_line: See `window`.

    Raises:
        InvalidInputError: See `window`.
    """
    first = 1 if start_line is None else start_line
    if first < 1:
        raise _refusal(f"start_line is {first}, but lines count from 1", total)
    if end_line is not None and end_line < first:
        raise _refusal(f"end_line {end_line} is before start_line {first}", total)
    if first > max(total, 1):
        raise _refusal(f"start_line {first} is past the end", total)
    return first, None if end_line is None or end_line >= total else end_line - first + 1


def byte_window(data: bytes, offset: int, max_bytes: int | None) -> tuple[str, int, bool]:
    """Return a piece of a UTF-8 text by bytes, without ever splitting a character.

    Both ends move back to a character's start, so pieces read one after another, each from where the last one ended, join to the
    whole. A piece too small for one character is empty.

    Args:
        data: The whole text in UTF-8.
        offset: First byte wanted; one past the end gives an empty piece at the end.
        max_bytes: Most bytes of the piece; None is no bound.

    Returns:
        The piece, the byte it really starts at, and whether it is not the whole text.

    Raises:
        InvalidInputError: ``offset`` or ``max_bytes`` is negative (``INVALID_ARGUMENT``).
    """
    for argument, value in (("offset", offset), ("max_bytes", max_bytes)):
        if value is not None and value < 0:
            raise InvalidInputError(
                f"The window was refused because {argument} is {value}, below 0.",
                details={"argument": argument, "value": value, "size": len(data)},
                hint=f"Give a {argument} of 0 or more.",
            )
    size = len(data)
    start = _character_start(data, min(offset, size))
    end = size if max_bytes is None else _character_start(data, min(start + max_bytes, size))
    return data[start:end].decode(), start, start > 0 or end < size


def _line_start(text: str, at: int, skipped: int) -> int:
    for _ in range(skipped):
        at = text.find("\n", at) + 1
    return at


def _character_start(data: bytes, at: int) -> int:
    for start in range(at, max(at - _CHARACTER_BYTES, 0), -1):
        if start == len(data) or data[start] & 0xC0 != 0x80:
            return start
    return max(at - _CHARACTER_BYTES, 0)


def _refusal(why: str, total: int) -> InvalidInputError:
    noun = "line" if total == 1 else "lines"
    return InvalidInputError(
        f"The line window was refused because {why}; the file has {total} {noun}.",
        details={"total_lines": total},
        hint=f"Ask for lines between 1 and {max(total, 1)}.",
    )
