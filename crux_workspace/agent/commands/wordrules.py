"""A rule for commands: the first words of a simple command."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

__all__ = ["WordRule", "word_rules"]


@dataclass(frozen=True, slots=True)
class WordRule:
    """A rule for commands: the first words of a simple command."""

    text: str
    """As it was written in the policy."""
    words: tuple[str, ...]


def word_rules(text: str) -> list[WordRule]:
    """Read a rule: words as the shell would read them; ``a && b`` stands for two rules.

    Raises:
        ValueError: No words, or a broken quotation.
    """
    rules = []
    lexer = shlex.shlex(text, posix=True, punctuation_chars="&")
    lexer.whitespace_split = True
    lexer.commenters = ""
    words: list[str] = []
    for word in [*lexer, "&&"]:
        if word != "&&":
            words.append(word)
            continue
        if not words:
            raise ValueError(text)
        rules.append(WordRule(text, tuple(words)))
        words = []
    return rules
