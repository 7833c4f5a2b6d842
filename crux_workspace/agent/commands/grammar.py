"""From the text of a command line to the simple commands it runs, wherever they stand in it.

The grammar is tree-sitter's for bash. What is not on the list of constructs below, and every text that the second look finds
something in, makes the whole line "not understood"; such a line is never allowed by a rule.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from crux_workspace.agent.commands.words import (
    NotUnderstood,
    Word,
    node_text,
    string_content,
    word_of,
)
from crux_workspace.errors import ErrorCode, UnsupportedError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

__all__ = ["MAX_COMMAND_CHARS", "Redirection", "Script", "SimpleCommand", "parse"]

MAX_COMMAND_CHARS = 65_536
_MAX_DEPTH = 60
_STRANGE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180e\u2000-\u200f"
    "\u2028-\u202f\u205f-\u206f\u3000\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]"
)
"""Controls, foreign spaces and invisible marks: a person reads them differently from the shell."""

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
_NUMERIC = re.compile(r"\d+|-|\d+-")


@dataclass(frozen=True, slots=True)
class Redirection:
    """A file that a command line opens."""

    operation: str
    """``readFile`` or ``writeFile``."""
    target: str | None
    """Its name, as the shell makes of it; None when it is known only at run time."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program call: leading assignments, the program, its arguments."""

    words: tuple[Word, ...]
    assignments: int = 0
    """How many of the words are leading assignments."""

    @property
    def program(self) -> Word | None:
        """The program's word; None when there are only assignments."""
        return self.words[self.assignments] if len(self.words) > self.assignments else None


@dataclass(slots=True)
class Script:
    """A command line taken apart."""

    commands: list[SimpleCommand] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    fed: list[str | None] = field(default_factory=list)
    """What heredocs and here-strings feed to programs; None for what is known only at run time."""
    trouble: str | None = None
    """Why the line is not understood; None when it is."""


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


class _Walk:
    """One visit of a tree: collects commands and redirections, refuses what is not known."""

    def __init__(self, script: Script, source: bytes) -> None:
        self.script = script
        self.source = source

    def visit(self, node: Node, depth: int) -> None:
        if depth > _MAX_DEPTH:
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

    # -- what runs

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
                words.append(_assignment_word(child))
                assignments += 1
            elif child.type == "herestring_redirect":
                continue
            elif child.type == "file_redirect":
                words += _behind_target(child)
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
                words.append(_assignment_word(child))
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
        if depth > _MAX_DEPTH:
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
            self.script.commands.append(SimpleCommand((_assignment_word(node),), 1))

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

    # -- what is opened

    def _redirected_statement(self, node: Node, depth: int) -> None:
        """Visit a statement with redirections; words that the grammar puts behind a target are arguments to the shell."""
        self._children(node, depth)
        behind = [
            word
            for child in node.children
            if child.type == "file_redirect"
            for word in _behind_target(child)
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
            _assignment_word(child) if child.type == "variable_assignment" else word_of(child)
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
        for target in _targets(node)[:1]:
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


def _targets(redirect: Node) -> list[Node]:
    return [c for c in redirect.children if c.is_named and c.type != "file_descriptor"]


def _behind_target(redirect: Node) -> list[Word]:
    """Return the words behind a redirection's one target; the grammar counts them to it, the shell does not."""
    return [word_of(target) for target in _targets(redirect)[1:]]


_PLAIN_OPERATORS = (":-", "-", ":=", "=", ":+", "+", ":?", "?")
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


def _assignment_word(node: Node) -> Word:
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
