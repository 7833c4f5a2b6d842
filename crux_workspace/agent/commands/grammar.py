"""From the text of a command line to the simple commands it runs, wherever they stand in it.

The grammar is tree-sitter's for bash. What is not on the lists of constructs (`walking`), and every text that the second look finds
something in, makes the whole line "not understood"; such a line is never allowed by a rule.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from crux_workspace.agent.commands.opening import Opening
from crux_workspace.agent.commands.running import Running
from crux_workspace.agent.commands.scripts import Script
from crux_workspace.agent.commands.words import NotUnderstood
from crux_workspace.errors import ErrorCode, UnsupportedError

if TYPE_CHECKING:
    from tree_sitter import Parser

__all__ = ["MAX_COMMAND_CHARS", "parse"]

MAX_COMMAND_CHARS = 65_536
_STRANGE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]"
)
"""Controls, foreign spaces and invisible marks: a person reads them differently from the shell."""


class _Walk(Running, Opening):
    """Collects commands and redirections."""


def parse(text: str) -> Script:
    """Take a command line apart; what is not understood says so and never raises."""
    script = Script()
    try:
        _parse(text, script)
    except (NotUnderstood, RecursionError) as error:
        script.trouble = str(error) or "nested too deeply"
    return script


@functools.cache
def _parser() -> Parser:
    try:
        import tree_sitter_bash
        from tree_sitter import Language, Parser
    except ImportError:
        raise UnsupportedError(
            "Commands are judged by the shell's grammar, which is not installed.",
            code=ErrorCode.CAPABILITY_MISSING,
            hint="Install crux-workspace[shell].",
        ) from None
    return Parser(Language(tree_sitter_bash.language()))


def _parse(text: str, script: Script) -> None:
    if len(text) > MAX_COMMAND_CHARS:
        raise NotUnderstood("a line of more than 65,536 characters")
    if _STRANGE.search(text):
        raise NotUnderstood("a control character, a foreign space or an invisible mark")
    source = _joined_lines(text)
    tree = _parser().parse(source.encode())
    if tree.root_node.has_error:
        raise NotUnderstood("a syntax error")
    walk = _Walk(script, source.encode())
    walk.only_space(0, tree.root_node.start_byte)
    walk.only_space(tree.root_node.end_byte, len(walk.source))
    walk.visit(tree.root_node, 0)
    if not script.commands and not script.redirections:
        raise NotUnderstood("nothing that runs")


def _joined_lines(text: str) -> str:
    r"""Take out line continuations as the shell does before it sees words.

    Inside single quotes, comments and quoted heredocs a backslash before a line end is no continuation.
    """
    if "\\\n" not in text:
        return text
    if any(mark in text for mark in ("'", "#", "<<")):
        raise NotUnderstood("a line continuation beside quotes, comments or heredocs")
    return re.sub(r"\\(\n|.)", lambda m: "" if m[1] == "\n" else m[0], text, flags=re.S)
