"""The one place that prints: exact bytes, lines for pipes, tables for people, JSON for programs, errors on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from crux_workspace.errors import WorkspaceError

__all__ = ["Output", "json_line", "time_text", "visible"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_PYTHON_FLAG = re.compile(r"\b([a-z_]+)=True\b")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DIFF_STYLES = (("+++", "bold"), ("---", "bold"), ("@@", "cyan"), ("+", "green"), ("-", "red"))


def time_text(at: int) -> str:
    """Return a time in ms since the epoch as ISO 8601, in the form that `at` takes."""
    moment = _EPOCH + timedelta(milliseconds=at)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def visible(text: str) -> str:
    """Return text whose control characters cannot drive a terminal; tabs and newlines stay."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def json_line(value: Any) -> bytes:  # noqa: ANN401 - any JSON value
    """Return a value as one line of JSON."""
    return _dumps(value, indented=False)


class Output:
    """Standard output and error of one command."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.is_terminal = sys.stdout.isatty()

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        sys.stdout.buffer.write(data)

    def text(self, text: str) -> None:
        """Write text as UTF-8, whatever the locale; on a terminal its control characters are made visible."""
        shown = visible(text) if self.is_terminal else text
        self.raw(shown.encode(errors="backslashreplace"))

    def line(self, text: str) -> None:
        """Write one line."""
        self.text(text + "\n")

    def json(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Write the command's one JSON document."""
        self.raw(_dumps(value, indented=self.is_terminal))

    def json_line(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Write one of several JSON values, on a line of its own."""
        self.raw(json_line(value))

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write a table: for people on a terminal, else a line a row with tabs between its cells and no heading."""
        shown = ([_cell(value) for value in row] for row in rows)
        if not self.is_terminal:
            for row in shown:
                self.line("\t".join(row))
            return
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(*columns, box=None, header_style="bold", pad_edge=False)
        for column in table.columns:
            column.overflow = "fold"
        for row in shown:
            table.add_row(*(Text(visible(cell)) for cell in row))
        if table.row_count:
            Console().print(table)

    def diff(self, unified: str) -> None:
        """Write a unified diff, coloured on a terminal."""
        if not self.is_terminal:
            self.text(unified)
            return
        from rich.console import Console
        from rich.text import Text

        shown = Text()
        for line in unified.split("\n"):
            style = next((style for mark, style in _DIFF_STYLES if line.startswith(mark)), "")
            shown.append(visible(line) + "\n", style)
        shown.rstrip()
        Console().print(shown, soft_wrap=True)

    def json_note(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Say something beside the result, as one line of JSON on stderr."""
        self.flush()
        _error_bytes(json_line(value))

    def note(self, text: str) -> None:
        """Say something beside the result, on stderr."""
        self.flush()
        _error_bytes((visible(text) + "\n").encode(errors="backslashreplace"))

    def error(self, error: WorkspaceError) -> None:
        """Say why the operation failed, on stderr."""
        if self.as_json:
            self.json_note(error.to_dict())
            return
        self.note(f"error {error.code}: {error.message}")
        self.note(f"hint: {_PYTHON_FLAG.sub(_as_option, error.hint)}")

    def flush(self) -> None:
        """Hand everything to the reader; raises BrokenPipeError when there is none left."""
        sys.stdout.flush()


def _as_option(found: re.Match[str]) -> str:
    """Say a keyword of a verb as the option it is here."""
    return "--all" if found[1] == "replace_all" else f"--{found[1].replace('_', '-')}"


def _cell(value: object) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else str(value)


def _dumps(value: Any, *, indented: bool) -> bytes:  # noqa: ANN401 - any JSON value
    text = json.dumps(value, ensure_ascii=False, indent=2 if indented else None, default=str)
    return (text + "\n").encode(errors="backslashreplace")


def _error_bytes(data: bytes) -> None:
    sys.stderr.flush()
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()
