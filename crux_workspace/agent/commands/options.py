"""Whether the words of a deny rule stand in a command, however its options are spelled.

An option is the same grouped or apart, short or long, cut short, in any order, with its value glued, behind ``=`` or as the next word.
What is sure is told from what may be: a word known only at run time, an option behind ``--``, another spelling of an option of a
program whose options are not known here.
"""

from __future__ import annotations

import functools
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from crux_workspace.agent.commands.spellings import Spelling, spelling_of
from crux_workspace.agent.commands.words import Word, base_name, literal

__all__ = ["stands_in"]

_LETTERS = re.compile(r"[A-Za-z0-9#?@]+")
_SIGNAL_OPTION = re.compile(r"^(?:--signal=|-s|-n|-)")
_SIGNALLING = frozenset({"kill", "pkill", "killall", "skill"})


@dataclass(frozen=True, slots=True)
class _Atom:
    """One option that has to be given."""

    names: frozenset[str]
    """Letters (one character) and names that are this option."""
    value: str | None = None
    is_exact: bool = False
    """It has no other spelling."""

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(name for name in self.names if len(name) == 1)


_Reading: TypeAlias = tuple[_Atom, ...]


@dataclass(frozen=True, slots=True)
class _Wanted:
    """One word of a rule: an option, in all its readings, or a word that has a place."""

    word: str
    readings: tuple[_Reading, ...] = ()
    """Each one is enough; of one, all options are needed. Empty for a word with a place."""
    possible: tuple[_Reading, ...] = ()
    """Readings that only the program's own options could confirm."""
    owner: int | None = None
    """For a word behind an option: that option's index, whose value it may be."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """A deny rule, taken apart."""

    program: str
    wanted: tuple[_Wanted, ...]
    spelling: Spelling
    is_listed: bool


@dataclass(frozen=True, slots=True)
class _Given:
    """The words of a command behind its program, and how they are looked at."""

    words: Sequence[Word]
    end: int
    """Index of the first word that belongs to another program."""
    shape: _Shape
    is_generous: bool
    """What may be there counts as there."""


def stands_in(words: Sequence[Word], rule: tuple[str, ...], end: int | None = None) -> bool | None:
    """Tell whether a deny rule covers a command.

    Args:
        words: The command, its program first.
        rule: The rule's words.
        end: Index of the first word that belongs to a program which this one starts; None when all are its own.

    Returns:
        True or False; None when it may, which only running the command would show.
    """
    if not words:
        return False
    if not words[0].known:
        return None
    shape = _shape(rule)
    if base_name(words[0].text).casefold() != shape.program:
        return False
    own = [words[0], *_regular(shape.program, words[1:], shape.spelling)]
    last = len(own) if end is None else end
    if _holds(_Given(own, last, shape, False)):
        return True
    return None if _holds(_Given(own, last, shape, True)) else False


def _holds(given: _Given) -> bool:
    wanted = given.shape.wanted
    if not all(_is_given(given, item) for item in wanted if item.readings):
        return False
    places = [item.word for item in wanted if not item.readings and not _is_apart(given, item)]
    return _in_place(given, places)


def _is_apart(given: _Given, item: _Wanted) -> bool:
    """Tell whether a word needs no place: it is given as the value of its option, or its program takes it anywhere."""
    owner = None if item.owner is None else given.shape.wanted[item.owner]
    if owner is not None and _is_given(given, owner, item.word):
        return True
    if not given.shape.spelling.has_operands or "=" not in item.word:
        return False
    return any(word.known and word.text == item.word for word in given.words[1 : given.end])


# -- words that have a place


def _in_place(given: _Given, places: Sequence[str]) -> bool:
    """Tell whether words stand one behind the other, options (each with one word that may be its value) between them."""
    at = 1
    for place in places:
        found = _place_of(given, at, place)
        if found is None:
            return given.is_generous
        if found < 0:
            return False
        at = found + 1
    return True


def _place_of(given: _Given, at: int, place: str) -> int | None:
    """Return where a word stands; -1 when it does not, None when a word known only at run time stands in the way."""
    may_be_value = False
    while at < len(given.words):
        word = given.words[at]
        if not word.known:
            return None
        if word.text == place:
            return at
        is_option = word.text.startswith("-")
        if not is_option and not may_be_value:
            return -1
        may_be_value = is_option and "=" not in word.text
        at += 1
    return -1


# -- options


def _is_given(given: _Given, option: _Wanted, value: str | None = None) -> bool:
    """Tell whether an option is given; with `value`, whether its last part is given with that value."""
    readings = option.readings + (option.possible if given.is_generous else ())
    for *others, last in readings:
        if value is not None and last.value is not None:
            continue
        ending = last if value is None else replace(last, value=value)
        if all(_stands(given, atom) for atom in (*others, ending)):
            return True
    return False


def _stands(given: _Given, atom: _Atom) -> bool:
    for at in range(1, given.end):
        word = given.words[at]
        if not word.known:
            if given.is_generous:
                return True
        elif word.text == "--":
            if not given.is_generous and not _is_value(given, at):
                break
        elif word.text.startswith("-") and word.text != "-" and _is_spelled(given, at, atom):
            return True
    return atom.value is None and _stands_in_parts(given, atom)


def _is_value(given: _Given, at: int) -> bool:
    """Tell whether the word at a place is the value of the option before it, as far as the options are known."""
    before, spelling = given.words[at - 1], given.shape.spelling
    if at < 2 or not before.known or not before.text.startswith("-"):
        return False
    if before.text.startswith("--"):
        begun = before.text[2:]
        names = (n for n in spelling.groups if len(n) > 1 and n.startswith(begun or "-"))
        return any(spelling.groups[name] & spelling.valued for name in names)
    letters = _letters_of(before.text[1:], spelling)
    return bool(letters) and letters[-1][0] in spelling.valued and letters[-1][1] == ""


def _stands_in_parts(given: _Given, atom: _Atom) -> bool:
    """Tell whether the options that one letter stands for are given, each by itself."""
    spelling = given.shape.spelling
    for letters in (spelling.parts[name] for name in atom.names if name in spelling.parts):
        if all(_stands(given, _Atom(_names(letter, spelling))) for letter in letters):
            return True
    return False


def _is_spelled(given: _Given, at: int, atom: _Atom) -> bool:
    """Tell whether the word at a place spells an option."""
    text = given.words[at].text
    if text.startswith("--"):
        return _is_named(given, at, text[2:], atom) or _may_be(given, atom, letter=None)
    if _is_named(given, at, text[1:], atom):
        return True
    return not given.shape.spelling.is_single and _is_lettered(given, at, text[1:], atom)


def _is_named(given: _Given, at: int, body: str, atom: _Atom) -> bool:
    """Tell whether a word, without its dashes, is one of an option's names, or one cut short."""
    name, mark, value = body.partition("=")
    name = name.replace("_", "-")
    spelling = given.shape.spelling
    wholes = [whole for whole in atom.names if len(whole) > 1]
    if any(_is_name(given, at, name, whole, is_exact=atom.is_exact) for whole in wholes):
        return _has_value(given, at, atom, value if mark else None)
    stands_for = (spelling.parts.get(other, "") for other in spelling.groups.get(name, ()))
    return len(name) > 1 and any(atom.letters & set(letters) for letters in stands_for)


def _is_name(given: _Given, at: int, name: str, whole: str, *, is_exact: bool) -> bool:
    if name == whole:
        return True
    is_other = len(name) > 1 and name in given.shape.spelling.groups
    may_be_cut = given.is_generous or given.shape.is_listed
    if not may_be_cut or is_other or is_exact or not given.words[at].text.startswith("--"):
        return False
    return name != "" and whole.startswith(name)


def _is_lettered(given: _Given, at: int, body: str, atom: _Atom) -> bool:
    """Tell whether one of an option's letters is among the letters of a word."""
    spelling = given.shape.spelling
    for letter, rest in _letters_of(body, spelling):
        if letter in atom.letters or atom.letters & set(spelling.parts.get(letter, "")):
            if _has_glued_value(given, at, atom, rest):
                return True
        elif _may_be(given, atom, letter=letter):
            return True
    return False


def _letters_of(body: str, spelling: Spelling) -> list[tuple[str, str]]:
    """Return the letters that a word groups, each with what is behind it."""
    run = _LETTERS.match(body)
    found = []
    for index, letter in enumerate(run[0] if run else ""):
        found.append((letter, body[index + 1 :]))
        if letter in spelling.valued:
            break
    return found


def _may_be(given: _Given, atom: _Atom, *, letter: str | None) -> bool:
    """Tell whether an option that is spelled otherwise may be the wanted one: the program's options are not known."""
    if not given.is_generous or given.shape.is_listed or atom.is_exact:
        return False
    if letter is None:
        return bool(atom.letters)
    return not atom.letters or letter.swapcase() in atom.letters


def _has_value(given: _Given, at: int, atom: _Atom, value: str | None) -> bool:
    """Tell whether an option has the wanted value: its own, or the next word."""
    if atom.value is None:
        return True
    if value is not None:
        return value == atom.value
    following = given.words[at + 1] if at + 1 < len(given.words) else None
    if following is None:
        return False
    return following.text == atom.value if following.known else given.is_generous


def _has_glued_value(given: _Given, at: int, atom: _Atom, rest: str) -> bool:
    if atom.value is None or rest in (atom.value, f"={atom.value}"):
        return True
    return rest == "" and _has_value(given, at, atom, None)


# -- rules


@functools.lru_cache(maxsize=4096)
def _shape(rule: tuple[str, ...]) -> _Shape:
    program = base_name(rule[0]).casefold()
    subcommand = next((word for word in rule[1:] if not word.startswith("-")), None)
    spelling = spelling_of(program, subcommand)
    known = spelling or Spelling()
    wanted: list[_Wanted] = []
    for at, word in enumerate(_regular(program, literal(rule[1:]), known)):
        if word.text.startswith("-") and word.text not in ("-", "--"):
            wanted.append(_option(word.text, known, is_listed=spelling is not None))
        else:
            owner = at - 1 if at and wanted[at - 1].readings else None
            wanted.append(_Wanted(word.text, owner=owner))
    return _Shape(program, tuple(wanted), known, spelling is not None)


def _option(word: str, spelling: Spelling, *, is_listed: bool) -> _Wanted:
    """Return an option of a rule in its readings: a name, or letters, of which the last or the first has a value."""
    body = word.lstrip("-")
    name, mark, value = body.partition("=")
    is_double = word.startswith("--")
    named = _Atom(
        _names(name.replace("_", "-"), spelling), value if mark else None, is_exact=not is_double
    )
    if is_double or spelling.is_single:
        return _Wanted(word, ((named,),))
    readings: list[_Reading] = [(named,)] if len(name) > 1 else []
    letters = _letters_of(body, spelling)
    *atoms, last = [_Atom(_names(letter, spelling)) for letter, _ in letters] or [named]
    rest = letters[-1][1] if letters else ""
    readings.append((*atoms, replace(last, value=rest.removeprefix("=")) if rest else last))
    possible: list[_Reading] = []
    if len(letters) > 1 and not is_listed:
        glued = (_Atom(_names(body[0], spelling), body[1:]),)
        (readings if rest or body[1].isdigit() else possible).append(glued)
    return _Wanted(word, tuple(readings), tuple(possible))


def _names(name: str, spelling: Spelling) -> frozenset[str]:
    return spelling.groups.get(name, frozenset((name,)))


# -- programs with habits of their own


def _regular(program: str, words: Sequence[Word], spelling: Spelling) -> list[Word]:
    """Return words with the habits of their program made regular: letters without a dash, names of signals, forced refs of git."""
    found = list(words)
    if program == "git" and any(word.text in ("push", "fetch") for word in found):
        return _with_forced_refs(found)
    if spelling.is_bundled and found and found[0].known and found[0].text[:1].isalpha():
        found[:1] = literal([f"-{letter}" for letter in found[0].text])
    return _with_signals(found) if program in _SIGNALLING else found


def _with_forced_refs(words: Sequence[Word]) -> list[Word]:
    """Return words with ``--force`` before each ref that a plus sign forces."""
    found: list[Word] = []
    for word in words:
        found += literal(["--force"]) if word.known and word.text.startswith("+") else []
        found.append(word)
    return found


def _with_signals(words: Sequence[Word]) -> list[Word]:
    """Return words with each way to name a signal written as ``--signal=<number>``."""
    found: list[Word] = []
    at = 0
    while at < len(words):
        text = words[at].text
        takes_next = text in ("-s", "-n", "--signal") and at + 1 < len(words)
        named = words[at + 1].text if takes_next else _SIGNAL_OPTION.sub("", text)
        number = _signal_number(named) if text.startswith("-") else None
        if number is None:
            found.append(words[at])
            at += 1
        else:
            found += literal([f"--signal={number}"])
            at += 1 + takes_next
    return found


def _signal_number(name: str) -> int | None:
    if name.isdigit():
        return int(name)
    known = getattr(signal, f"SIG{name.upper().removeprefix('SIG')}", None)
    return int(known) if isinstance(known, signal.Signals) else None
