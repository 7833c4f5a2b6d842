"""Programs that run other programs: where in their arguments the other one stands.

A *wrapper* (``env``, ``sudo``, ``xargs``, ``find -exec``) runs its own further words. An *interpreter* (``sh``, ``python``) runs a
program text; a shell's text is looked into, other languages' are not. Carriers and runners are next door.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crux_workspace.agent.commands.carriers import (
    Carried,
    option_texts,
    set_by,
    told_by_git,
    told_by_make,
    value_of,
)
from crux_workspace.agent.commands.runners import run_by
from crux_workspace.agent.commands.words import Word, base_name, literal

__all__ = [
    "ASSIGNMENT",
    "INTERPRETERS",
    "SHELLS",
    "carried",
    "own_words",
    "reads_script_from_input",
]

SHELLS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "csh", "tcsh", "yash", "posh", "xonsh", "elvish", "nu"}
)  # fmt: skip
INTERPRETERS = SHELLS | frozenset(
    {
        "python", "python3", "python2", "pypy", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "tclsh",
        "awk", "gawk", "mawk", "nawk", "sed", "make", "gmake", "vim", "vi", "nvim", "emacs", "ed", "ex", "gdb", "docker",
        "podman", "ssh", "npm", "npx", "yarn", "pnpm", "uv", "uvx", "pip", "cargo", "go", "java", "osascript", "sqlite3",
        "psql", "mysql", "mariadb", "julia", "rscript", "octave", "gnuplot", "guile", "racket", "ghc", "erl", "elixir", "expect", "lftp",
        "pwsh", "poetry", "pdm", "hatch", "pipenv", "pipx", "bundle", "nix", "nix-shell", "conda", "mamba", "kubectl", "bunx",
        "docker-compose", "tmux", "screen", "xterm", "parallel", "at", "batch", "crontab",
    }
)  # fmt: skip
"""Whoever allows one of these allows whatever it is told to do; `lint` says so."""


@dataclass(frozen=True, slots=True)
class _Options:
    """How a wrapper's own options look."""

    with_value: str = ""
    """Option names that take the next word, separated by spaces."""
    flags: str = ""
    """Letters of its options without a value."""
    positionals: int = 0
    """Words of its own before the other program."""
    assignments: bool = False
    text: str = ""
    """Option names whose value is a command line."""


_LONG_FLAGS = frozenset(
    {
        "--ignore-environment", "--null", "--preserve-status", "--foreground", "--verbose", "--no-run-if-empty",
        "--interactive", "--open-tty", "--exit", "--background", "--login", "--non-interactive", "--preserve-env",
        "--set-home", "--portability", "--append", "--quiet", "--fork", "--wait", "--ctty", "--differences", "--errexit",
        "--no-title", "--color", "--exec", "--user", "--scope", "--pipe", "--pty", "--collect", "--map-root-user",
    }
)  # fmt: skip
"""Long options without a value; behind any other one, where the other program begins is not clear."""
_WRAPPERS: dict[str, _Options] = {
    "env": _Options("-u --unset -C --chdir", "i0v", assignments=True, text="-S --split-string"),
    "sudo": _Options(
        "-u --user -g --group -h --host -p --prompt -C --close-from -D --chdir -R --chroot -r --role -t --type -T -U -a",
        "AbBEHiKklnPSsVv", assignments=True,
    ),
    "doas": _Options("-u -C -a", "nsL"),
    "nice": _Options("-n --adjustment"),
    "nohup": _Options(),
    "setsid": _Options("", "cfw"),
    "stdbuf": _Options("-i --input -o --output -e --error"),
    "timeout": _Options("-s --signal -k --kill-after", "fpv", positionals=1),
    "gtimeout": _Options("-s --signal -k --kill-after", "fpv", positionals=1),
    "time": _Options("-f --format -o --output", "apvqV"),
    "ionice": _Options("-c --class -n --classdata -p --pid", "t"),
    "chrt": _Options("-T -P -D", "abfiodrRv", positionals=1),
    "taskset": _Options("", "ac", positionals=1),
    "xargs": _Options(
        "-I -n --max-args -P --max-procs -L -d --delimiter -E -s --max-chars -a --arg-file --replace", "0rtxpoil"
    ),
    "parallel": _Options("-j --jobs -a --arg-file -I -n -L", "0krtvXm"),
    "command": _Options("", "pvV"),
    "builtin": _Options(),
    "exec": _Options("-a", "cl"),
    "coproc": _Options(),
    "chroot": _Options("--userspec --groups", positionals=1),
    "unshare": _Options("--map-user --map-group -S -G -w --wd -R --root", "imnpuUCTfrc"),
    "nsenter": _Options("-t --target -S -G", "aimnpuUCTFZ"),
    "flock": _Options("-w --timeout -E", "snxueoFv", positionals=1, text="-c --command"),
    "watch": _Options("-n --interval", "bcdegprtwx"),
    "script": _Options("-I -O -B -T -m -E -o", "aefqt", positionals=1, text="-c --command"),
    "su": _Options("-s --shell -g -G -w", "lmfpP", positionals=2, text="-c --command"),
    "runuser": _Options("-u --user -g -G -s", "lmfp", text="-c --command"),
    "busybox": _Options(),
    "toybox": _Options(),
    "strace": _Options("-e -o -p -s -u -a -E -P -b -I -O -S -X", "cCdfFhiknqrtTvVwxyYzZ"),
    "ltrace": _Options("-e -o -p -s -u -a -A -D -F -l -n -w -x", "bcCfhiLrStTV"),
    "setarch": _Options("", "BFILRSTXZv3", positionals=1),
    "fakeroot": _Options("-l -s -i -u -b", "hv"),
    "caffeinate": _Options("-t -w", "dimsu"),
    "systemd-run": _Options("-p --property -u --unit -E --setenv -M -H", "dqrtPSG"),
    "prlimit": _Options("-p --pid", "hV"),
    "entr": _Options("", "acdnprsxz"),
    "trap": _Options("", "lp"),
    "eval": _Options(),
}  # fmt: skip
_JOINED = frozenset({"eval", "watch", "parallel", "entr"})
"""They join their words to one command line."""
_FED = frozenset({"xargs", "parallel"})
"""They give the program further words from their input."""
_INPUT = Word("", False, "")
_EXEC_FLAGS = {
    "jobs": ("-x",),
    "find": ("-exec", "-execdir", "-ok", "-okdir"),
    "fd": ("-x", "-X", "--exec", "--exec-batch"),
    "fdfind": ("-x", "-X", "--exec", "--exec-batch"),
}
_LATER = frozenset({"at", "batch", "crontab"})
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
"""What a word begins with that gives a variable a value."""


def carried(words: Sequence[Word]) -> list[Carried] | None:
    """Return the other programs that a command (without leading assignments) runs.

    None says that it runs one, but where it begins is not clear.
    """
    if not words or not words[0].known:
        return []
    name = base_name(words[0].text).casefold()
    if name in SHELLS:
        return _shell(words)
    found = [*option_texts(name, words), *run_by(name, words)]
    if name == "git":
        found += told_by_git(words)
    elif name in ("make", "gmake"):
        found += told_by_make(words)
    elif name in _EXEC_FLAGS:
        found += _exec_flags(words, name)
    if name not in _WRAPPERS:
        return found
    wrapped = _wrapper(name, words)
    return None if wrapped is None else [*found, *wrapped]


def own_words(words: Sequence[Word], others: Sequence[Carried] | None) -> int | None:
    """Return how many words are a wrapper's own, before the program it runs; None when that is not clear, or it is no wrapper."""
    if not words or not others or not words[0].known:
        return None
    name = base_name(words[0].text).casefold()
    if name not in _WRAPPERS:
        return None
    places = [other.at for other in others if other.words is not None or name in _JOINED]
    return min(places, default=None)


def reads_script_from_input(words: Sequence[Word]) -> bool:
    """Tell whether a command takes command lines from standard input: a shell, or what runs them later."""
    if not words or not words[0].known:
        return False
    name = base_name(words[0].text).casefold()
    if name in _LATER:
        return not any(word.text.startswith(("-f", "-l", "-r")) for word in words[1:])
    if name not in SHELLS:
        return False
    rest = [word for word in words[1:] if not (word.known and word.text.startswith(("-", "+")))]
    return not rest or any(
        word.known and word.text in ("-s", "-", "/dev/stdin") for word in words[1:]
    )


def _shell(words: Sequence[Word]) -> list[Carried] | None:
    for at, word in enumerate(words[1:], 1):
        if not word.known:
            return None
        if word.text == "-c" or re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.text):
            after = next(
                (i for i in range(at + 1, len(words)) if not words[i].text.startswith(("-", "+"))),
                None,
            )
            return None if after is None else [Carried(at, text=words[after], is_interpreted=True)]
        if word.text.startswith(("--command=", "--init-command=")):
            return [
                Carried(at, text=literal([word.text.partition("=")[2]])[0], is_interpreted=True)
            ]
        if not word.text.startswith(("-", "+")):
            return []
        if word.text in (
            "-o",
            "+o",
            "-O",
            "+O",
            "--rcfile",
            "--init-file",
            "--command",
            "--init-command",
            "-C",
        ):
            return None
    return []


def _exec_flags(words: Sequence[Word], name: str) -> Iterator[Carried]:
    """Yield what is run for each file found; the paths that find gives begin with a folder, so they are no options."""
    flags = _EXEC_FLAGS[name]
    at = 1
    while at < len(words):
        if words[at].known and words[at].text in flags:
            end = next(
                (i for i in range(at + 1, len(words)) if words[i].text in (";", "+")), len(words)
            )
            more = () if name == "find" or words[at + 1 : end] == [] else (_INPUT,)
            yield Carried(at, (*words[at + 1 : end], *more))
            at = end
        at += 1


def _wrapper(name: str, words: Sequence[Word]) -> list[Carried] | None:
    spec = _WRAPPERS[name]
    if name == "trap":
        return [Carried(1, text=words[1])] if len(words) > 2 else []
    found: list[Carried] = []
    start = _first_of_other(spec, words, found)
    if start is None:
        return None
    if start >= len(words):
        return found
    if name in _FED:
        found.append(Carried(start, tuple(_fed(words, start))))
    if name in _JOINED:
        rest = [word for word in words[start:] if not re.fullmatch(r"::::?\+?", word.text)]
        joined = " ".join(word.text for word in rest)
        return [*found, Carried(start, text=Word(joined, all(w.known for w in rest), joined))]
    return found if name in _FED else [*found, Carried(start, tuple(words[start:]))]


def _fed(words: Sequence[Word], start: int) -> Iterator[Word]:
    """Yield the words of a program that gets more of them from its input: behind them, or where the mark stands."""
    mark: str | None = None
    for at, word in enumerate(words[1:start], 1):
        given = value_of("-I", words, at) or value_of("--replace", words, at)
        if given is not None:
            is_bare = word.text == "--replace"
            mark = "{}" if is_bare or not given.known else given.text
        elif word.text == "-i":
            mark = "{}"
    for word in words[start:]:
        is_fed = mark is not None and mark in word.text
        yield Word(word.text, False, word.raw) if is_fed else word
    if mark is None:
        yield _INPUT


def _first_of_other(spec: _Options, words: Sequence[Word], found: list[Carried]) -> int | None:
    """Return where the other program begins, after options, assignments and positionals."""
    valued = spec.with_value.split()
    texts = spec.text.split()
    left = spec.positionals
    at = 1
    while at < len(words):
        word = words[at]
        if not word.known:
            return None
        text = word.text
        if text == "--" or (text == "-" and spec.assignments):
            at += 1
            if text == "-":
                continue
        elif text.startswith("-") and text != "-":
            step = _option(text, words, at, valued, texts, spec.flags, found)
            if step is None:
                return None
            at += step
            continue
        elif spec.assignments and ASSIGNMENT.match(text):
            found += set_by(words, at, at + 1)
            at += 1
            continue
        if left == 0:
            return at
        left -= 1
        at += text != "--"
    return at


def _option(
    text: str,
    words: Sequence[Word],
    at: int,
    valued: Sequence[str],
    texts: Sequence[str],
    flags: str,
    found: list[Carried],
) -> int | None:
    """Return by how many words an option goes on; None when that is not clear."""
    name, _, value = text.partition("=")
    short = text[:2] if not text.startswith("--") else name
    if name in texts or short in texts:
        glued = value or (text[2:] if short in texts and not text.startswith("--") else "")
        if glued:
            found.append(Carried(at, text=Word(glued, True, glued)))
            return 1
        if at + 1 >= len(words):
            return None
        found.append(Carried(at, text=words[at + 1]))
        return 2
    if text in valued:
        return 2
    if text.startswith("--"):
        return 1 if name in _LONG_FLAGS or (value and name in valued) else None
    return _cluster(words, at, valued, texts, flags, found)


def _cluster(
    words: Sequence[Word],
    place: int,
    valued: Sequence[str],
    texts: Sequence[str],
    flags: str,
    found: list[Carried],
) -> int | None:
    """Return by how many words short options go on: at most one takes a value, glued to it or the next word."""
    letters = words[place].text[1:]
    for at, letter in enumerate(letters):
        if f"-{letter}" in valued:
            return 1 if at + 1 < len(letters) else 2
        if f"-{letter}" in texts:
            glued = letters[at + 1 :]
            text = literal([glued])[0] if glued else next(iter(words[place + 1 : place + 2]), None)
            if text is None:
                return None
            found.append(Carried(place, text=text))
            return 1 if glued else 2
        if letter not in flags and not letter.isdigit():
            return None
    return 1
