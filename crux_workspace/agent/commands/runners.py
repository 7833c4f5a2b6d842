"""Programs that start what stands behind a subcommand of their own: ``npm exec``, ``docker exec``, ``ssh host``, ``valgrind``.

Their options are too many to be listed. So the first word that can be the program is sure, and further ones are possible: each option
may have taken the word behind it as its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crux_workspace.agent.commands.carriers import Carried
from crux_workspace.agent.commands.words import Word

__all__ = ["run_by"]

_RUNNERS = """
npm exec 0 -w --workspace -p --package; npm x 0 -w --workspace -p --package; npx 0 -p --package -w --workspace; npm explore 1
pnpm exec 0 -C --filter; pnpm dlx 0; yarn exec 0; yarn dlx 0 -p; yarn run 0; bun x 0; bun run 0; bunx 0
uv run 0 --with -p --python --extra --group --project; uv tool run 0 --from; uvx 0 --from -p --python; pipx run 0 --spec
poetry run 0; pdm run 0; hatch run 0; pipenv run 0; rye run 0; tox exec 0 -e; conda run 0 -n -p --name --prefix --cwd
mamba run 0 -n -p; micromamba run 0 -n -p; bundle exec 0; rbenv exec 0; pyenv exec 0; asdf exec 0; mise exec 0; mise x 0
direnv exec 1; rustup run 1; nix run 0; nix shell 0; nix develop 0; dotenv run 0; doppler run 0; op run 0; chamber exec 1; aws-vault exec 1
foreman run 0; honcho run 0; heroku run 0; docker exec 1 -e --env -u --user -w --workdir --env-file --detach-keys
docker run 1 -e --env -u --user -w --workdir -v --volume -p --publish --name --network --net --entrypoint -m --memory --mount -l -h
docker compose exec 1 -e -u -w; docker compose run 1 -e -u -w -v; docker-compose exec 1; docker-compose run 1
kubectl exec 1 -n --namespace -c --container; oc exec 1 -n -c; lxc exec 1; incus exec 1; multipass exec 1; limactl shell 1; toolbox run 0 -c
distrobox enter 1; machinectl shell 1; adb shell 0; wsl 0 -d -u; flatpak run 0; snap run 0; pkexec 0 --user; heaptrack 0; eatmydata 0
valgrind 0; perf record 0 -e -o -F; perf stat 0 -e -r; gdb --args 0; rr record 0; proot 0; firejail 0; bwrap 0; faketime 1; xvfb-run 0 -s
dbus-run-session 0; dbus-launch 0; ssh-agent 0; chronic 0; ifne 0; unbuffer 0; rlwrap 0; catchsegv 0; fakechroot 0; torsocks 0; torify 0
proxychains 0 -f; proxychains4 0 -f; daemonize 0; daemon 0; envdir 1; envuidgid 1; setuidgid 1; setlock 1; su-exec 1; gosu 1; dumb-init 0
tini 0; setpriv 0; runcon 0 -u -r -t; chpst 0 -u; softlimit 0 -m; cgexec 0 -g; numactl 0; systemd-inhibit 0; systemd-cat 0 -t
cross-env 0; watchexec 0 -w -e; hyperfine 0; concurrently 0; tmux new-session 0 -s -n; tmux new 0 -s -n; tmux new-window 0 -n -t
tmux split-window 0 -t; tmux run-shell 0; tmux respawn-pane 0 -t; screen 0 -S; xterm -e 0; gnome-terminal 0; konsole -e 0
ssh 1 -B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -p -Q -R -S -W -w; sem 0 -j; rush 0 -j; linux32 0; linux64 0; yarn workspace 1
dtach 1 -A -c -n
"""


@dataclass(frozen=True, slots=True)
class _Runner:
    verbs: tuple[str, ...]
    positionals: int
    valued: frozenset[str]


def _runners() -> dict[str, list[_Runner]]:
    found: dict[str, list[_Runner]] = {}
    for entry in re.split(r"[;\n]", _RUNNERS.strip()):
        program, *rest = entry.split()
        at = next(i for i, word in enumerate(rest) if word.isdigit())
        runner = _Runner(tuple(rest[:at]), int(rest[at]), frozenset(rest[at + 1 :]))
        found.setdefault(program, []).append(runner)
    return found


_BY_PROGRAM = _runners()
_BY_PROGRAM["podman"] = _BY_PROGRAM["docker"]
_LOADING = _Runner((), 0, frozenset(("--library-path", "--preload", "--argv0")))
_LOADER = re.compile(r"ld(?:-linux|-musl)?[\w.-]*\.so[\d.]*")


def run_by(name: str, words: Sequence[Word]) -> Iterator[Carried]:
    """Yield what a runner starts: surely, and, where an option may have taken a word as its value, possibly."""
    runners = [_LOADING] if _LOADER.fullmatch(name) else _BY_PROGRAM.get(name, [])
    for runner in runners:
        start = _behind(words, runner.verbs)
        if start is None:
            continue
        for at, is_sure in _starts(words, start, runner):
            rest = tuple(words[at:])
            if len(rest) == 1 or name in ("hyperfine", "concurrently"):
                for offset, word in enumerate(rest):
                    yield Carried(at + offset, text=word, is_interpreted=True, is_sure=is_sure)
            else:
                yield Carried(at, rest, is_interpreted=True, is_sure=is_sure)


def _behind(words: Sequence[Word], verbs: Sequence[str]) -> int | None:
    """Return the index behind a runner's own subcommand; None when the call has another one."""
    at = 1
    for verb in verbs:
        while at < len(words) and words[at].text.startswith("-") and words[at].text != verb:
            at += 1 if "=" in words[at].text or _is_verb(words, at + 1, verb) else 2
        if not _is_verb(words, at, verb):
            return None
        at += 1
    return at


def _is_verb(words: Sequence[Word], at: int, verb: str) -> bool:
    return at < len(words) and words[at].text == verb


def _starts(words: Sequence[Word], start: int, runner: _Runner) -> Iterator[tuple[int, bool]]:
    """Yield where the other program may begin: first as if unknown options had no value, then as if each had one."""
    told: set[int] = set()
    for has_value in (False, True):
        left, at = runner.positionals, start
        while at < len(words):
            text = words[at].text
            if text.startswith("-"):
                takes_next = "=" not in text and (
                    text in runner.valued or (has_value and text != "--")
                )
                at += 1 if takes_next else 0
            elif left == 0:
                if at not in told:
                    yield at, not has_value
                    told.add(at)
                break
            else:
                left -= 1
            at += 1
