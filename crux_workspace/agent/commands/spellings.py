"""How options of well-known programs can be spelled: which letters and names are one option, which take a value.

Of a program that is listed here everything with more than one spelling is listed, so an option that is not has one. Of any other
program another spelling of an option cannot be told from another option.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Spelling", "spelling_of"]


@dataclass(frozen=True, slots=True)
class Spelling:
    """The options of one program, or of one of its subcommands."""

    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """{letter or name: all spellings of that option}"""
    valued: frozenset[str] = frozenset()
    """Letters that take a value, so that what is glued to them is no further letter."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """{letter: the letters it stands for}"""
    is_single: bool = False
    """Names stand behind one dash, and letters are never grouped."""
    is_bundled: bool = False
    """The first word is a group of letters also without its dash."""
    has_operands: bool = False
    """Words like ``of=x`` stand in any order."""


_GIT = "C:; c:; p paginate; P no-pager"
_DOCKER_RUN = (
    "d detach; e: env; i interactive; t tty; v: volume; p: publish; P publish-all; u: user; w: workdir; h: hostname; l: label;"
    "m: memory; c: cpu-shares; a: attach; q quiet; network net; network-alias net-alias; dns-option dns-opt"
)
_APT = (
    "y yes assume-yes; f fix-broken; d download-only; q quiet; s simulate just-print dry-run recon no-act; m ignore-missing fix-missing;"
    "u show-upgraded; b compile build; t: target-release default-release; V verbose-versions; c: config-file; o: option"
)
_OWNER = "c changes; f silent quiet; v verbose; h no-dereference; R recursive"
_GREP = (
    "A: after-context; B: before-context; C: context; E extended-regexp; F fixed-strings; G basic-regexp; P perl-regexp; H with-filename;"
    "L files-without-match; R dereference-recursive; T initial-tab; U binary; V version; Z null; a text; b byte-offset; c count;"
    "d: directories; D: devices; e: regexp; f: file; h no-filename; i y ignore-case; l files-with-matches; m: max-count; n line-number;"
    "o only-matching; q quiet silent; r recursive; s no-messages; v invert-match; w word-regexp; x line-regexp; z null-data;"
    "color colour"
)
_MAKE = (
    "B always-make; C: directory; e environment-overrides; E: eval; f: file makefile; i ignore-errors; I: include-dir; j: jobs;"
    "k keep-going; l: load-average max-load; L check-symlink-times; n just-print dry-run recon; o: old-file assume-old;"
    "p print-data-base; q question; r no-builtin-rules; R no-builtin-variables; s silent quiet; S no-keep-going stop; t touch;"
    "v version; w print-directory; W: what-if new-file assume-new"
)
_PIP = (
    "U upgrade; r: requirement; e: editable; i: index-url pypi-url; f: find-links; t: target; c: constraint; I ignore-installed; y yes;"
    "q quiet; v verbose"
)
_TABLE: dict[str, str] = {
    "rm": "r R recursive; f force; i I interactive; d dir; v verbose",
    "cp": "a=dR archive; b backup; f force; i interactive; l link; L dereference; n no-clobber; P no-dereference; R r recursive;"
    "s symbolic-link; S: suffix; t: target-directory; T no-target-directory; u update; v verbose; x one-file-system; Z context",
    "mv": "b backup; f force; i interactive; n no-clobber; S: suffix; t: target-directory; T no-target-directory; u update; v verbose;"
    "Z context",
    "ln": "b backup; d F directory; f force; i interactive; L logical; n no-dereference; P physical; r relative; s symbolic; S: suffix;"
    "t: target-directory; T no-target-directory; v verbose",
    "chmod": _OWNER, "chown": _OWNER, "chgrp": _OWNER,
    "mkdir": "m: mode; p parents; v verbose; Z context",
    "rmdir": "p parents; v verbose",
    "touch": "c no-create; d: date; h no-dereference; r: reference; t:",
    "truncate": "c no-create; o io-blocks; r: reference; s: size",
    "shred": "f force; n: iterations; s: size; u remove; v verbose; x exact; z zero",
    "tee": "a append; i ignore-interrupts",
    "cat": "A show-all; b number-nonblank; E show-ends; n number; s squeeze-blank; T show-tabs; v show-nonprinting",
    "ls": "a all; A almost-all; b escape; B ignore-backups; d directory; D dired; F classify; G no-group; h human-readable;"
    "H dereference-command-line; i inode; I: ignore; k kibibytes; L dereference; n numeric-uid-gid; N literal; q hide-control-chars;"
    "Q quote-name; r reverse; R recursive; s size; T: tabsize; w: width; Z context",
    "grep": _GREP, "egrep": _GREP, "fgrep": _GREP,
    "sed": "n quiet silent; e: expression; f: file; E r regexp-extended; i: in-place; l: line-length; s separate; u unbuffered;"
    "z null-data zero-terminated",
    "sort": "b ignore-leading-blanks; d dictionary-order; f ignore-case; g general-numeric-sort; h human-numeric-sort;"
    "i ignore-nonprinting; M month-sort; n numeric-sort; R random-sort; r reverse; V version-sort; c check; m merge; k: key; o: output;"
    "s stable; S: buffer-size; t: field-separator; T: temporary-directory; u unique; z zero-terminated",
    "tar": "A catenate concatenate; c create; d diff compare; r append; t list; u update; x extract get; f: file; C: directory;"
    "z gzip gunzip ungzip; j bzip2; J xz; Z compress uncompress; I: use-compress-program; a auto-compress; v verbose;"
    "p preserve-permissions same-permissions; P absolute-names; k keep-old-files; O to-stdout; S sparse; T: files-from; X: exclude-from;"
    "h dereference; l check-links; m touch; M multi-volume; N: newer after-date; K: starting-file; F: info-script new-volume-script;"
    "b: blocking-factor; B read-full-records; g: listed-incremental; G incremental; H: format; i ignore-zeros; L: tape-length;"
    "R block-number; s same-order preserve-order; U unlink-first; V: label; w interactive confirmation; W verify; %bundled",
    "curl": "k insecure; o: output; O remote-name; L location; X: request; d: data data-ascii; F: form; T: upload-file; H: header;"
    "u: user; x: proxy; A: user-agent; b: cookie; c: cookie-jar; e: referer; f fail; g globoff; G get; i include show-headers; I head;"
    "j junk-session-cookies; J remote-header-name; K: config; l list-only; m: max-time; M manual; n netrc; N no-buffer; p proxytunnel;"
    "P: ftp-port; q disable; Q: quote; r: range; R remote-time; s silent; S show-error; t: telnet-option; U: proxy-user; v verbose;"
    "w: write-out; y: speed-time; Y: speed-limit; z: time-cond; Z parallel; a append; B use-ascii; C: continue-at; D: dump-header;"
    "E: cert; h: help; 0 http1.0; 1 tlsv1; 2 sslv2; 3 sslv3; 4 ipv4; 6 ipv6; V version",
    "wget": "O: output-document; r recursive; l: level; k convert-links; m mirror; p page-requisites; P: directory-prefix; c continue;"
    "q quiet; v verbose; b background; e: execute; i: input-file; F force-html; B: base; t: tries; N timestamping; S server-response;"
    "T: timeout; w: wait; Q: quota; U: user-agent; o: output-file; a: append-output; d debug; x force-directories; E adjust-extension;"
    "K backup-converted; H span-hosts; L relative; A: accept; R: reject; D: domains; I: include-directories; X: exclude-directories;"
    "nc no-clobber; nv no-verbose; nd no-directories; nH no-host-directories; np no-parent; 4 inet4-only; 6 inet6-only",
    "rsync": "a=rlptgoD archive; v verbose; r recursive; z compress; n dry-run; e: rsh; u update; l links; L copy-links; p perms; t times;"
    "g group; o owner; x one-file-system; c checksum; b backup; R relative; H hard-links; A acls; X xattrs; S sparse; W whole-file;"
    "q quiet; h human-readable; i itemize-changes; I ignore-times; C cvs-exclude; f: filter; T: temp-dir; y fuzzy; B: block-size;"
    "k copy-dirlinks; K keep-dirlinks; E executability; O omit-dir-times; J omit-link-times; d dirs; m prune-empty-dirs; 0 from0;"
    "M: remote-option; s secluded-args protect-args; 4 ipv4; 6 ipv6; del delete-during",
    "ssh": "B:; b:; c:; D:; E:; e:; F:; I:; i:; J:; L:; l:; m:; O:; o:; P:; p:; Q:; R:; S:; W:; w:",
    "scp": "c:; D:; F:; i:; J:; l:; o:; P:; S:; X:",
    "sudo": "A askpass; b background; B bell; C: close-from; D: chdir; E preserve-env; e edit; g: group; H set-home; h: host; i login;"
    "K remove-timestamp; k reset-timestamp; l list; n non-interactive; P preserve-groups; p: prompt; R: chroot; r: role; S stdin;"
    "s shell; t: type; T: command-timeout; U: other-user; u: user; V version; v validate",
    "env": "i ignore-environment; 0 null; u: unset; C: chdir; S: split-string; v debug; a: argv0",
    "make": _MAKE, "gmake": _MAKE,
    "npm": "g global location; f force; D save-dev; S save; E save-exact; O save-optional; P save-prod; B save-bundle; s silent quiet;"
    "l long; p parseable; y yes; w: workspace; m: message; C: prefix; a all; c: call; h help usage",
    "pip install": _PIP, "pip3 install": _PIP, "pip uninstall": _PIP, "pip3 uninstall": _PIP, "pip download": _PIP,
    "apt": _APT, "apt-get": _APT,
    "kubectl": "n: namespace; f: filename; l: selector; k: kustomize; R recursive; A all-namespaces; o: output; w watch; i stdin; t tty;"
    "c: container; s: server; L: label-columns; h help; v:",
    "systemctl": "H: host; M: machine; t: type; p: property; a all; l full; n: lines; o: output; f force; q quiet; r recursive;"
    "s: signal",
    "kill": "s: signal; l list; L table; q: queue",
    "pkill": "e echo; c count; f full; g: pgroup; G: group; i ignore-case; n newest; o oldest; O: older; P: parent; s: session;"
    "t: terminal; u: euid; U: uid; v inverse; x exact; F: pidfile; L logpidfile; r: runstates",
    "killall": "e exact; I ignore-case; g process-group; y: younger-than; o: older-than; i interactive; l list; q quiet; r regexp;"
    "s: signal; u: user; v verbose; w wait; n: ns; Z: context",
    "docker run": _DOCKER_RUN, "docker create": _DOCKER_RUN,
    "docker exec": "d detach; e: env; i interactive; t tty; u: user; w: workdir",
    "docker rm": "f force; l link; v volumes", "docker rmi": "f force", "docker kill": "s: signal",
    "docker stop": "t: time timeout; s: signal",
    "docker build": "f: file; t: tag; m: memory; q quiet; o: output; c: cpu-shares",
    "docker pull": "a all-tags; q quiet", "docker push": "a all-tags; q quiet",
    "docker system": "a all; f force; v verbose", "docker image": "a all; f force; q quiet",
    "docker volume": "f force; a all; q quiet; d: driver; o: opt", "docker network": "f force; q quiet; d: driver; o: opt",
    "git push": "f force; d delete; n dry-run; q quiet; v verbose; u set-upstream; o: push-option; 4 ipv4; 6 ipv6",
    "git commit": "a all; p patch; C: reuse-message; c: reedit-message; z null; F: file; m: message; t: template; s signoff; n no-verify;"
    "e edit; i include; o only; u untracked-files; v verbose; q quiet; S gpg-sign",
    "git clean": "f force; i interactive; n dry-run; q quiet; e: exclude",
    "git reset": "q quiet; p patch; N intent-to-add; U: unified",
    "git checkout": "q quiet; f force; b:; B:; t track; d detach; p patch; m merge; 2 ours; 3 theirs",
    "git switch": "c: create; C: force-create; d detach; f force discard-changes; m merge; q quiet; t track",
    "git restore": "s: source; p patch; W worktree; S staged; q quiet; m merge; 2 ours; 3 theirs",
    "git branch": "d delete; D=df; m move; M=mf; c copy; C=cf; l list; f force; r remotes; a all; v verbose; q quiet; t track;"
    "u: set-upstream-to; i ignore-case",
    "git tag": "a annotate; s sign; f force; d delete; v verify; l list; m: message; F: file; u: local-user; e edit; i ignore-case",
    "git rm": "f force; n dry-run; q quiet", "git mv": "f force; n dry-run; v verbose",
    "git add": "n dry-run; v verbose; i interactive; p patch; e edit; f force; u update; A all no-ignore-removal; N intent-to-add",
    "git fetch": "a append; f force; m multiple; t tags; n no-tags; j: jobs; p prune; P prune-tags; k keep; u update-head-ok; q quiet;"
    "v verbose; o: server-option; 4 ipv4; 6 ipv6",
    "git pull": "a append; f force; t tags; n no-stat; j: jobs; p prune; k keep; q quiet; v verbose; o: server-option; r rebase; e edit;"
    "s: strategy; X: strategy-option; S gpg-sign; 4 ipv4; 6 ipv6",
    "git clone": "l local; s shared; q quiet; v verbose; n no-checkout; b: branch; o: origin; u: upload-pack; c: config; j: jobs;"
    "recursive recurse-submodules; 4 ipv4; 6 ipv6",
    "git merge": "m: message; s: strategy; X: strategy-option; F: file; n no-stat; e edit; q quiet; v verbose; S gpg-sign",
    "git rebase": "i interactive; s: strategy; X: strategy-option; q quiet; v verbose; n no-stat; f force-rebase no-ff; m merge; x: exec;"
    "r rebase-merges; k keep-empty; S gpg-sign; C:",
    "git stash": "k keep-index; u include-untracked; a all; p patch; q quiet; m: message; S staged",
    "git worktree": "f force; b:; B:; d detach; q quiet; n dry-run; v verbose",
    "git status": "s short; b branch; v verbose; u untracked-files; z null",
    "find": "%single", "terraform": "%single", "tofu": "%single", "openssl": "%single",
    "java": "cp classpath class-path; %single",
    "dd": "%operands",
}  # fmt: skip
_ENTRY = re.compile(r"([^:=]+)([:=]?)(.*)")
_SAME = {"podman": "docker", "pip3": "pip", "tofu": "terraform", "gtar": "tar", "bsdtar": "tar"}
_WITH_SUBCOMMANDS = frozenset(key.split()[0] for key in _TABLE if " " in key)


def spelling_of(program: str, subcommand: str | None) -> Spelling | None:
    """Return how the options of a program, or of a subcommand of it, can be spelled; None when that is not known."""
    name = _SAME.get(program, program)
    if name not in _WITH_SUBCOMMANDS:
        return _read(name) if name in _TABLE else None
    key = f"{name} {subcommand}"
    return _read(key) if key in _TABLE else None


@functools.cache
def _read(key: str) -> Spelling:
    groups: dict[str, frozenset[str]] = {}
    valued: set[str] = set()
    parts: dict[str, str] = {}
    marks: set[str] = set()
    text = f"{_TABLE[key]};{_GIT}" if key.startswith("git ") else _TABLE[key]
    for entry in filter(None, (part.strip() for part in text.split(";"))):
        if entry.startswith("%"):
            marks.add(entry[1:])
            continue
        names = []
        for written in entry.split():
            name, mark, stands_for = _ENTRY.findall(written)[0]
            if name in groups:
                continue
            names.append(name)
            if mark == ":":
                valued.add(name)
            elif mark == "=":
                parts[name] = stands_for
        groups.update((name, frozenset(names)) for name in names)
    return Spelling(
        groups,
        frozenset(valued),
        parts,
        is_single="single" in marks,
        is_bundled="bundled" in marks,
        has_operands="operands" in marks,
    )
