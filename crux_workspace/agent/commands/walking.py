"""One visit of a syntax tree: what every construct is held to, whatever it means.

What is not on the lists below makes the whole line "not understood".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crux_workspace.agent.commands.scripts import Script
from crux_workspace.agent.commands.words import NotUnderstood, node_text, string_content, word_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MAX_DEPTH", "Walk"]

MAX_DEPTH = 60
_STRUCTURE = frozenset(
    {
        "program", "list", "pipeline", "redirected_statement", "subshell", "compound_statement", "if_statement",
        "elif_clause", "else_clause", "while_statement", "for_statement", "do_group", "case_statement", "case_item",
        "negated_command", "command_substitution", "process_substitution", "string", "concatenation", "array",
        "command_name", "expansion", "simple_expansion",
    }
)  # fmt: skip
_LEAVES = frozenset(
    {
        "word", "number", "raw_string", "ansi_c_string", "string_content", "variable_name", "special_variable_name",
        "file_descriptor", "test_operator", "heredoc_start", "heredoc_end", "heredoc_content", "comment", "extglob_pattern",
    }
)  # fmt: skip
_TOKENS = frozenset(
    {
        ";", ";;", ";&", ";;&", "&", "&&", "||", "|", "|&", "\n", "(", ")", "{", "}", "$(", "`", "<(", ">(", "!", "if",
        "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "in", "case", "esac", '"', "$",
        "${", "=", "+=", ":-", "-", ":=", ":+", "+", ":?", "?", "<", ">", ">>", "<>", ">|", "&>", "&>>", "<&", ">&",
        "<<", "<<-", "<<<", "export", "declare", "local", "readonly", "typeset", "unset", "unsetenv", "[", "]",
    }
)  # fmt: skip
_CASE_ENDS = frozenset({";;", ";&", ";;&"})
_PLAIN_PATTERN = re.compile(r"[\w.*?\[\]/-]+")


class Walk:
    """Visits a tree and refuses what is not known; a method named like a node collects what is in it."""

    def __init__(self, script: Script, source: bytes) -> None:
        self.script = script
        self.source = source

    def visit(self, node: Node, depth: int) -> None:
        """Visit a node and all below it.

        Raises:
            NotUnderstood: Something in it is not known.
        """
        if depth > MAX_DEPTH:
            raise NotUnderstood("nested too deeply")
        if node.is_missing or node.is_error:
            raise NotUnderstood("a syntax error")
        handler = getattr(self, f"_{node.type}", None) if node.is_named else None
        if handler is not None:
            handler(node, depth)
        elif node.child_count == 0:
            self._leaf(node)
        elif node.type in _STRUCTURE:
            self._children(node, depth)
        else:
            raise NotUnderstood(f"the construct {node.type}")

    def _children(self, node: Node, depth: int) -> None:
        inside_string = node.type == "string"
        end = node.start_byte
        for child in node.children:
            if not inside_string:
                self.only_space(end, child.start_byte)
            self.visit(child, depth + 1)
            end = child.end_byte
        if not inside_string:
            self.only_space(end, node.end_byte)

    def only_space(self, start: int, end: int) -> None:
        """Refuse text between words that the grammar left out and that is no white space."""
        if self.source[start:end].strip(b" \t\n"):
            raise NotUnderstood("text that is no word")

    def _leaf(self, node: Node) -> None:
        text = node_text(node)
        if node.is_named:
            if node.type not in _LEAVES:
                raise NotUnderstood(f"the construct {node.type}")
            if node.type == "comment" and not self._is_comment(node, text):
                raise NotUnderstood("a number sign inside a word")
            if node.type == "extglob_pattern" and not _PLAIN_PATTERN.fullmatch(text):
                raise NotUnderstood("an extended pattern")
            if node.type == "string_content":
                string_content(text)
            elif node.type in ("word", "number", "raw_string", "ansi_c_string", "variable_name"):
                word_of(node)
        elif text.strip(" \t\n") != node.type.strip(" \t\n"):
            raise NotUnderstood(f"the operator {node.type}")
        elif node.type in _CASE_ENDS and (node.parent is None or node.parent.type != "case_item"):
            raise NotUnderstood("a syntax error")
        elif node.type not in _TOKENS:
            raise NotUnderstood(f"the operator {node.type}")

    def _is_comment(self, node: Node, text: str) -> bool:
        before = self.source[node.start_byte - 1 : node.start_byte] if node.start_byte else b"\n"
        return before in (b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")") and "\n" not in text
