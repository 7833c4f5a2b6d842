"""The constructs of a command line that run something: commands, declarations, tests, assignments, substitutions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from crux_workspace.agent.commands.scripts import SimpleCommand
from crux_workspace.agent.commands.walking import MAX_DEPTH, Walk
from crux_workspace.agent.commands.words import NotUnderstood, Word, node_text, word_of

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["Running", "assignment_word", "behind_target", "targets"]

_PLAIN_OPERATORS = (":-", "-", ":=", "=", ":+", "+", ":?", "?")


class Running(Walk):
    """Collects what runs."""

    def _command(self, node: Node, depth: int) -> None:
        words: list[Word] = []
        assignments = 0
        self._words_apart(node)
        end = node.start_byte
        for child in node.children:
            if b"\n" in self.source[end : child.start_byte]:
                raise NotUnderstood("a command over several lines")
            self.only_space(end, child.start_byte)
            end = child.end_byte
            self.visit(child, depth + 1)
            if child.type == "variable_assignment":
                words.append(assignment_word(child))
                assignments += 1
            elif child.type == "herestring_redirect":
                continue
            elif child.type == "file_redirect":
                words += behind_target(child)
            elif child.type != "heredoc_redirect":
                words.append(word_of(child))
        if words:
            self.script.commands.append(SimpleCommand(tuple(words), assignments))

    def _declaration_command(self, node: Node, depth: int) -> None:
        words = []
        end = node.start_byte
        self._words_apart(node)
        for child in node.children:
            self.only_space(end, child.start_byte)
            end = child.end_byte
            self.visit(child, depth + 1)
            if child.type == "variable_assignment":
                words.append(assignment_word(child))
            elif child.is_named:
                words.append(word_of(child))
            else:
                text = node_text(child)
                words.append(Word(text, True, text))
        self.script.commands.append(SimpleCommand(tuple(words)))

    _unset_command = _declaration_command

    def _test_command(self, node: Node, depth: int) -> None:
        opening = node_text(node.children[0])
        if opening != "[":
            raise NotUnderstood(f"the construct {opening}")
        words = [Word("[", True, "[")]
        self._only_space_between(node)
        self._test_words(node.children[1:-1], words, depth)
        self.script.commands.append(SimpleCommand(tuple(words)))

    def _for_statement(self, node: Node, depth: int) -> None:
        self._words_apart(node)
        self._children(node, depth)

    def _words_apart(self, node: Node) -> None:
        """Refuse words that touch: the grammar sees two where the shell sees one."""
        for left, right in zip(node.children, node.children[1:], strict=False):
            touch = left.end_byte == right.start_byte and left.is_named and right.is_named
            if touch and not any(side.type.endswith("_redirect") for side in (left, right)):
                raise NotUnderstood("words that touch")

    def _only_space_between(self, node: Node) -> None:
        self._words_apart(node)
        for left, right in zip(node.children, node.children[1:], strict=False):
            self.only_space(left.end_byte, right.start_byte)

    def _test_words(self, nodes: list[Node], words: list[Word], depth: int) -> None:
        if depth > MAX_DEPTH:
            raise NotUnderstood("nested too deeply")
        for node in nodes:
            if node.type in ("binary_expression", "unary_expression"):
                self._only_space_between(node)
                self._test_words(node.children, words, depth + 1)
            elif node.is_named:
                self.visit(node, depth + 1)
                words.append(word_of(node))
            elif node_text(node) in ("=", "==", "!=", "!", "<", ">"):
                text = node_text(node)
                words.append(Word(text, True, text))
            else:
                raise NotUnderstood("an expression")

    def _variable_assignment(self, node: Node, depth: int) -> None:
        self._children(node, depth)
        if node.parent is not None and node.parent.type not in ("command", "declaration_command"):
            self.script.commands.append(SimpleCommand((assignment_word(node),), 1))

    def _variable_assignments(self, node: Node, depth: int) -> None:
        self._children(node, depth)

    def _function_definition(self, node: Node, depth: int) -> None:
        raise NotUnderstood("a function, which gives a word another meaning")

    def _command_substitution(self, node: Node, depth: int) -> None:
        if node.children[0].type == "`" and "\\" in node_text(node):
            raise NotUnderstood("a backslash between backquotes, which takes effect twice")
        self._children(node, depth)

    def _expansion(self, node: Node, depth: int) -> None:
        operators = [node_text(child) for child in node.children if not child.is_named]
        if operators not in (["${", "}"], *(["${", op, "}"] for op in _PLAIN_OPERATORS)):
            raise NotUnderstood("an expansion with an operator")
        self._children(node, depth)


def targets(redirect: Node) -> list[Node]:
    """Return what stands behind a redirection's operator."""
    return [c for c in redirect.children if c.is_named and c.type != "file_descriptor"]


def behind_target(redirect: Node) -> list[Word]:
    """Return the words behind a redirection's one target; the grammar counts them to it, the shell does not."""
    return [word_of(target) for target in targets(redirect)[1:]]


def assignment_word(node: Node) -> Word:
    """Return an assignment as the word that it is for the shell."""
    name, *rest = node.children
    raw = node_text(node)
    value = rest[-1] if len(rest) > 1 else None
    if name.type != "variable_name" or (value is not None and value.type == "array"):
        return Word(raw, False, raw)
    if value is None:
        return Word(raw, True, raw)
    word = word_of(value)
    operator = node_text(rest[0])
    return Word(f"{node_text(name)}{operator}{word.text}" if word.known else raw, word.known, raw)
