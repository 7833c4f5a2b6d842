"""The constructs of a command line that open files or feed text: redirections, heredocs, here-strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from crux_workspace.agent.commands.running import assignment_word, behind_target, targets
from crux_workspace.agent.commands.scripts import Redirection, SimpleCommand
from crux_workspace.agent.commands.walking import Walk
from crux_workspace.agent.commands.words import NotUnderstood, node_text, string_content, word_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Opening"]

_NUMERIC = re.compile(r"\d+|-|\d+-")
_OPERATIONS = {
    "<": ("readFile",),
    "<&": ("readFile",),
    ">": ("writeFile",),
    ">>": ("writeFile",),
    ">|": ("writeFile",),
    ">&": ("writeFile",),
    "&>": ("writeFile",),
    "&>>": ("writeFile",),
    "<>": ("readFile", "writeFile"),
}


class Opening(Walk):
    """Collects what is opened and fed."""

    def _redirected_statement(self, node: Node, depth: int) -> None:
        """Visit a statement with redirections; words that the grammar puts behind a target are arguments to the shell."""
        self._children(node, depth)
        behind = [
            word
            for child in node.children
            if child.type == "file_redirect"
            for word in behind_target(child)
        ]
        if not behind:
            return
        if node.children[0].type != "command":
            raise NotUnderstood("words behind a redirection")
        at = self._place_of(node.children[0])
        command = self.script.commands[at]
        self.script.commands[at] = SimpleCommand((*command.words, *behind), command.assignments)

    def _place_of(self, node: Node) -> int:
        """Return which of the commands a node became: of those with its words, the last."""
        words = tuple(
            assignment_word(child) if child.type == "variable_assignment" else word_of(child)
            for child in node.children
            if not child.type.endswith("_redirect")
        )
        for at in range(len(self.script.commands) - 1, -1, -1):
            if self.script.commands[at].words == words:
                return at
        raise NotUnderstood("words behind a redirection")

    def _file_redirect(self, node: Node, depth: int) -> None:
        self._children(node, depth)
        operator = next(node_text(child) for child in node.children if not child.is_named)
        for target in targets(node)[:1]:
            word = word_of(target)
            if operator in ("<&", ">&") and word.known and _NUMERIC.fullmatch(word.text):
                continue
            name = word.text if word.known else None
            for operation in _OPERATIONS[operator]:
                self.script.redirections.append(Redirection(operation, name))

    def _heredoc_redirect(self, node: Node, depth: int) -> None:
        start = next((c for c in node.children if c.type == "heredoc_start"), None)
        body = next((c for c in node.children if c.type == "heredoc_body"), None)
        end = next((c for c in node.children if c.type == "heredoc_end"), None)
        if start is None or end is None:
            raise NotUnderstood("a broken heredoc")
        mark = re.sub(r"['\"\\]", "", node_text(start))
        lines = self.source[start.end_byte : end.start_byte].decode().split("\n")[1:]
        is_indented = any(child.type == "<<-" for child in node.children)
        if not self._ends_rightly(end, mark, lines, is_indented):
            raise NotUnderstood("a heredoc that ends elsewhere")
        self._heredoc_line(node, start, body, end)
        is_quoted = node_text(start) != mark
        if body is not None and not is_quoted:
            self._live_body(body, depth)
        for child in node.children:
            if child.type not in ("heredoc_start", "heredoc_body", "heredoc_end"):
                self.visit(child, depth + 1)
        if body is not None:
            self.script.fed.append(node_text(body))

    def _heredoc_line(self, node: Node, start: Node, body: Node | None, end: Node) -> None:
        """Refuse a heredoc whose body, for the grammar, does not begin on the line behind its own, or whose line goes on in it."""
        line_end = self.source.find(b"\n", start.end_byte)
        first = body if body is not None else end
        if line_end < 0 or self.source[line_end + 1 : first.start_byte].strip(b"\t"):
            raise NotUnderstood("a heredoc that begins elsewhere")
        at = node.start_byte
        for child in node.children:
            if child.type in ("heredoc_body", "heredoc_end"):
                continue
            self.only_space(at, child.start_byte)
            at = child.end_byte
        if at > line_end:
            raise NotUnderstood("a heredoc whose line goes on in it")
        self.only_space(at, line_end)

    def _ends_rightly(self, end: Node, mark: str, lines: list[str], is_indented: bool) -> bool:
        """Tell whether the heredoc ends at its mark, alone on the first line that is the mark."""
        line_start = self.source.rfind(b"\n", 0, end.start_byte) + 1
        before = self.source[line_start : end.start_byte]
        after = self.source[end.end_byte : end.end_byte + 1]
        if node_text(end).strip("\t") != mark or after not in (b"", b"\n"):
            return False
        if before.strip(b"\t" if is_indented else b""):
            return False
        return not any(line.strip("\t") == mark for line in lines)

    def _live_body(self, body: Node, depth: int) -> None:
        """Look at a body in which expansions are live: what the grammar does not show as one must hold none."""
        at = body.start_byte
        for child in body.children:
            self._plain(at, child.start_byte)
            if child.type == "heredoc_content":
                self._plain(child.start_byte, child.end_byte)
            else:
                self.visit(child, depth + 1)
            at = child.end_byte
        self._plain(at, body.end_byte)

    def _plain(self, start: int, end: int) -> None:
        string_content(self.source[start:end].decode().replace('"', " "))

    def _string(self, node: Node, depth: int) -> None:
        self._children(node, depth)
        word_of(node)

    def _herestring_redirect(self, node: Node, depth: int) -> None:
        self._children(node, depth)
        words = [word_of(child) for child in node.children if child.is_named]
        self.script.fed.append(words[-1].text if words and words[-1].known else None)
