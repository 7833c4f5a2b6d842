"""Command lines inside the words of a command: in options, settings and variables.

A *carrier* takes a command line as the value of an option (``tar --checkpoint-action``, ``git -c alias.x=!…``). A *variable* names a
program that another one will start (``GIT_PAGER``) or what programs load (``LD_PRELOAD``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crux_workspace.agent.commands.words import Word, literal

__all__ = ["Carried", "option_texts", "set_by", "told_by_git", "told_by_make", "value_of"]


@dataclass(frozen=True, slots=True)
class Carried:
    """Another program inside the words of a command."""

    at: int
    """Index of the first word that belongs to it."""
    words: tuple[Word, ...] | None = None
    """The words of the other program, when they are words."""
    text: Word | None = None
    """The command line, when it is one word of text."""
    is_interpreted: bool = False
    """The text is what a shell was asked to interpret: who allows the shell allows it."""
    is_sure: bool = True
    """It is run; False when these words may also be something else, so that a denial of them is only possible."""


# -- options

_ANY = r"(.*)"
_PIPED = r"[|!](.*)|.*"
"""A file, or behind a mark a command line that is fed."""
_GIT_OPTIONS = """
config-env exec-path upload-pack receive-pack exec open-files-in-pager extcmd tree-filter index-filter msg-filter env-filter
parent-filter commit-filter tag-name-filter setup sendmail-cmd smtp-server to-cmd cc-cmd header-cmd httpd browser
"""
_OPTIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "git": (
        *((f"--{name}", _ANY) for name in _GIT_OPTIONS.split()), ("--config", r"[^=]*=!?(.*)"),
    ),
    "tar": (
        ("--checkpoint-action", r"(?:exec=)?(.*)"), ("--to-command", _ANY), ("-I", _ANY), ("-F", _ANY),
        ("--use-compress-program", _ANY), ("--rsh-command", _ANY), ("--info-script", _ANY), ("--new-volume-script", _ANY),
        ("--rmt-command", _ANY),
    ),
    "cpio": (("--rsh-command", _ANY), ("--rmt-command", _ANY)),
    "rsync": (("-e", _ANY), ("--rsh", _ANY), ("--rsync-path", _ANY)),
    "scp": (("-S", _ANY), ("-o", r"[^=]*=(.*)")),
    "sftp": (("-S", _ANY), ("-o", r"[^=]*=(.*)")),
    "ssh": (("-o", r"[^=]*=(.*)"),),
    "mosh": (("--ssh", _ANY), ("--server", _ANY)),
    "sshfs": (("-o", r".*?ssh_command=([^,]*).*"),),
    "split": (("--filter", _ANY),),
    "strace": (("-o", _PIPED), ("--output", _PIPED)),
    "sort": (("--compress-program", _ANY),),
    "rg": (("--pre", _ANY), ("--hostname-bin", _ANY)),
    "ag": (("--pager", _ANY),),
    "bat": (("--pager", _ANY),),
    "delta": (("--pager", _ANY),),
    "man": (("-P", _ANY), ("--pager", _ANY), ("-H", _ANY), ("--html", _ANY)),
    "zip": (("-TT", _ANY), ("--unzip-command", _ANY)),
    "less": (("-k", _ANY), ("--lesskey-src", _ANY)),
    "wget": (("--use-askpass", _ANY), ("-e", r"[^=]*=(.*)"), ("--execute", r"[^=]*=(.*)")),
    "curl": (("-K", _ANY), ("--config", _ANY)),
    "nc": (("-e", _ANY), ("-c", _ANY)),
    "ncat": (("-e", _ANY), ("-c", _ANY), ("--exec", _ANY), ("--sh-exec", _ANY)),
    "pandoc": (("-F", _ANY), ("--filter", _ANY), ("--pdf-engine", _ANY)),
    "go": (("-toolexec", _ANY), ("-exec", _ANY), ("-vettool", _ANY)),
    "gcc": (("-wrapper", _ANY),), "g++": (("-wrapper", _ANY),), "clang": (("-wrapper", _ANY),),
    "cargo": (("--config", r"[^=]*=(.*)"),),
    "hg": (("--config", r"[^=]*=!?(.*)"),),
    "svn": (("--diff-cmd", _ANY), ("--diff3-cmd", _ANY), ("--editor-cmd", _ANY), ("--config-option", r"[^=]*=(.*)")),
    "bazel": (("--run_under", _ANY),),
    "npm": (("--script-shell", _ANY), ("--call", _ANY)), "pnpm": (("--script-shell", _ANY),), "yarn": (("--script-shell", _ANY),),
    "nodemon": (("-x", _ANY), ("--exec", _ANY)),
    "nix-shell": (("--run", _ANY), ("--command", _ANY)),
    "vagrant": (("-c", _ANY), ("--command", _ANY)),
    "start-stop-daemon": (("-a", _ANY), ("--startas", _ANY), ("-x", _ANY), ("--exec", _ANY)),
    "mapfile": (("-C", _ANY),), "readarray": (("-C", _ANY),), "compgen": (("-C", _ANY),), "complete": (("-C", _ANY),),
}  # fmt: skip
_TAR_VALUED = "IFfCTXNKbgHLV"
_SOCAT = re.compile(r"(?:exec|system|shell):(.*?)(?:,[a-z][a-z0-9-]*(?:=[^,]*)?)*", re.I | re.S)


def option_texts(name: str, words: Sequence[Word]) -> Iterator[Carried]:
    """Yield the command lines that a program's options hold."""
    options = _OPTIONS.get(name, ())
    if name in ("tar", "gtar"):
        yield from _tar_letters(words)
    for at, word in enumerate(words[1:], 1):
        if not word.known:
            continue
        if name == "socat" and (address := _SOCAT.fullmatch(word.text)):
            yield Carried(at, text=literal([address[1]])[0])
        name_of = word.text.partition("=")[0]
        exact = [entry for entry in options if entry[0] == name_of]
        for option, form in exact or options:
            value = value_of(option, words, at)
            if value is None:
                continue
            match = re.fullmatch(form, value.text, re.S) if value.known else None
            if match is None or match[1] is not None:
                yield Carried(at, text=replace(value, text=match[1]) if match else value)
            break


def _tar_letters(words: Sequence[Word]) -> Iterator[Carried]:
    """Yield what letters without a dash tell tar to run; their values are the next words, in order."""
    if len(words) < 2 or not words[1].text[:1].isalpha():
        return
    valued = [letter for letter in words[1].text if letter in _TAR_VALUED]
    for offset, letter in enumerate(valued, 2):
        if letter in "IF" and offset < len(words):
            yield Carried(1, text=words[offset])


def value_of(option: str, words: Sequence[Word], at: int) -> Word | None:
    """Return the value that the word at a place gives to an option: glued, behind ``=``, or the next word."""
    text = words[at].text
    following = words[at + 1] if at + 1 < len(words) else Word("", False, "")
    if text == option:
        return following
    if len(option) > 2:
        name, mark, value = text.partition("=")
        is_short = option.startswith("--") and len(name) > 4 and option.startswith(name)
        if name != option and not is_short:
            return None
        return literal([value])[0] if mark else following
    grouped = re.match(rf"-[A-Za-z0-9]*?{re.escape(option[1:])}", text)
    if grouped is None:
        return None
    rest = text[grouped.end() :]
    return literal([rest])[0] if rest else following


# -- variables

_RUN = re.compile(
    r"(?:GIT_(?:\w*EDITOR|PAGER|SSH(?:_COMMAND)?|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND|CONFIG_VALUE_\d+)|\w*PAGER|\w*EDITOR|VISUAL|BROWSER"
    r"|S(?:SH|UDO)_ASKPASS|RSYNC_RSH|CVS_RSH|SVN_SSH|HGEDITOR|PROMPT_COMMAND|LESSOPEN|LESSCLOSE|RUSTC(?:_\w*WRAPPER)?|FCEDIT"
    r"|npm_config_script_shell)\+?=!?(.*)",
    re.S,
)
_LOADED = re.compile(
    r"(?:PATH|LD_\w+|DYLD_\w+|BASH_ENV|ENV|IFS|SHELLOPTS|BASHOPTS|BASH_FUNC_.*|SHELL|PYTHON(?:PATH|HOME|STARTUP|INSPECT|BREAKPOINT)"
    r"|NODE_(?:OPTIONS|PATH)|PERL5(?:LIB|OPT|DB)|RUBY(?:OPT|LIB)|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|GCONV_PATH|GIT_(?:EXEC_PATH|CONFIG\w*|DIR)"
    r"|TAR_OPTIONS|MAKEFLAGS|GREP_OPTIONS|ZDOTDIR|HOME)\+?=",
    re.S,
)


def set_by(words: Sequence[Word], start: int, end: int) -> Iterator[Carried]:
    """Yield what assignments among the words run, or let programs load; what is loaded is never known."""
    for at in range(start, end):
        text = words[at].text
        if run := _RUN.match(text):
            yield Carried(at, text=Word(run[1], words[at].known, text))
        elif _LOADED.match(text):
            yield Carried(at, text=Word("", False, text), is_sure=False)


# -- git and make

_HARMLESS_GIT = re.compile(r"(?:user|color|advice|init|i18n|log\.date|commit\.gpgsign)\b", re.I)
_RUNNING_GIT = re.compile(
    r"(?:alias\..*|core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|askpass|gitproxy|alternaterefscommand)|pager\..*|credential\..*"
    r"|sequence\.editor|diff\..*|(?:difftool|mergetool|browser|man)\..*\.(?:cmd|path)|merge\..*\.driver|filter\..*|gpg\..*"
    r"|interactive\.difffilter|remote\..*\.(?:uploadpack|receivepack)|uploadpack\..*|web\.browser|sendemail\..*cmd"
    r"|protocol\..*|include.*\.path)",
    re.I,
)
_GIT_TEXTS = {
    "clone": ("-c", "-u"), "rebase": ("-x",), "ls-remote": ("-u",), "grep": ("-O",), "difftool": ("-x",), "instaweb": ("-d", "-b"),
}  # fmt: skip


def told_by_git(words: Sequence[Word]) -> Iterator[Carried]:
    """Yield what a git command runs by its settings and subcommands."""
    subcommand = _git_subcommand(words)
    yield from _git_options(words, ("-c",), 1, subcommand)
    for at, word in enumerate(words):
        if word.known and word.text.startswith("ext::"):
            yield Carried(at, text=literal([word.text[5:].replace("% ", "\\ ")])[0])
    if subcommand >= len(words):
        return
    name = words[subcommand].text
    yield from _git_options(words, _GIT_TEXTS.get(name, ()), subcommand + 1, len(words))
    if name == "config":
        yield from _git_config(words, subcommand)
    if name in ("submodule", "bisect"):
        yield from _git_each(words, subcommand, {"submodule": "foreach", "bisect": "run"}[name])


def _git_subcommand(words: Sequence[Word]) -> int:
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        at += 2 if words[at].text in ("-c", "-C", "--git-dir", "--work-tree", "--namespace") else 1
    return at


def _git_options(
    words: Sequence[Word], options: Sequence[str], start: int, end: int
) -> Iterator[Carried]:
    for at in range(start, min(end, len(words))):
        if not words[at].text.startswith("-") or words[at].text.startswith("--"):
            continue
        value = next((v for o in options if (v := value_of(o, words, at))), None)
        if value is None or (value.known and _HARMLESS_GIT.match(value.text)):
            continue
        setting = re.fullmatch(r"([\w.*-]+)=(.*)", value.text, re.S)
        if setting is not None and words[at].text.startswith("-c"):
            value = replace(value, text=_setting_text(setting[1], setting[2]))
        yield Carried(at, text=value)


def _git_config(words: Sequence[Word], subcommand: int) -> Iterator[Carried]:
    for at in range(subcommand + 1, len(words) - 1):
        if words[at].known and _RUNNING_GIT.fullmatch(words[at].text):
            value = words[at + 1]
            yield Carried(at, text=replace(value, text=_setting_text(words[at].text, value.text)))


def _setting_text(name: str, value: str) -> str:
    """Return the command line that a setting stands for; an alias without ``!`` is a git command."""
    if name.casefold().startswith("alias.") and not value.startswith("!"):
        return f"git {value}"
    return value.removeprefix("!")


def _git_each(words: Sequence[Word], subcommand: int, verb: str) -> Iterator[Carried]:
    at = next((i for i in range(subcommand + 1, len(words)) if words[i].text == verb), len(words))
    at += 1
    while at < len(words) and words[at].text.startswith("-"):
        at += 1
    rest = words[at:]
    if len(rest) == 1:
        yield Carried(at, text=rest[0])
    elif rest:
        yield Carried(at, tuple(rest))


_MAKE_TOLD = re.compile(
    r"(?:SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES)[:?+]*=(.*)", re.S
)
_USUAL_SHELL = re.compile(r"(?:(?:/usr)?(?:/local)?/bin/)?(?:sh|bash|dash|ksh|zsh)")
_MAKE_SET = re.compile(r"[A-Za-z_]\w*[:?+]*=(.*)", re.S)
_MAKE_SHELL = re.compile(r"\$[({]shell\s+(.*?)[)}]|!=\s*(.*)", re.S)


def told_by_make(words: Sequence[Word]) -> Iterator[Carried]:
    """Yield what a call of make runs by its variables and rules given as words; what it reads from files is its own."""
    for at, word in enumerate(words[1:], 1):
        if rule := value_of("--eval", words, at) or value_of("-E", words, at):
            yield Carried(at, text=Word("", False, rule.raw), is_sure=False)
            yield from _shell_calls(at, rule)
        if told := _MAKE_TOLD.fullmatch(word.text):
            if _USUAL_SHELL.fullmatch(told[1]):
                continue
            yield Carried(at, text=Word(told[1], word.known, word.raw))
        elif assigned := _MAKE_SET.fullmatch(word.text):
            value = Word(assigned[1], word.known, word.raw)
            yield Carried(at, text=value, is_interpreted=True, is_sure=False)
            yield from _shell_calls(at, value)


def _shell_calls(at: int, text: Word) -> Iterator[Carried]:
    for found in _MAKE_SHELL.finditer(text.text if text.known else ""):
        yield Carried(at, text=literal([found[1] or found[2]])[0])
