"""A deny rule's options are the same however they are spelled; an allow rule's are not."""

from __future__ import annotations

import getopt
import os
import random
import shlex
from dataclasses import dataclass

import pytest

from crux_workspace.agent.commands.judging import CommandVerdict, Verdict, judge_command
from crux_workspace.agent.commands.wordrules import WordRule, word_rules

DENIED = {
    "rm -rf": [
        "rm -Rf /", "rm -fR /", "rm -r -f /", "rm -R -f /", "rm --recursive --force /", "rm --force --recursive /", "rm -r --force /",
        "rm --recursive -f /", "rm --rec --fo /", "rm --r --f /", "rm -vRf /", "rm -rvf /", "rm -v -r -v -f /", "rm / -rf", "rm / -r -f",
        "rm / --recursive --force", "rm -r / -f", "rm -rf -- /", "rm -r -f -- /", "rm -ri -f --one-file-system /", "/bin/rm -Rf /",
        "sudo rm --recursive --force /", "xargs rm -R --force", "sh -c 'rm -Rf /'", "find . -exec rm --recursive -f {} +",
        "rm '-'Rf /", "rm \\-R -f /", "RM -Rf /",
    ],
    "rm --recursive --force": ["rm -rf /", "rm -fr /", "rm -R -f /", "rm --force -R /", "rm --recursive --force /"],
    "rm -r": ["rm -R x", "rm --recursive x", "rm -fR x", "rm x --recursive", "rm --rec x"],
    "chmod -R 777": ["chmod 777 -R /", "chmod --recursive 777 /", "chmod -vR 777 /", "chmod -R -v 777 /", "chmod -v 777 / --recursive"],
    "chmod 777": ["chmod -R 777 /", "chmod --recursive 777 /", "chmod -- 777 /"],
    "git push --force": [
        "git push -f", "git push origin main --force", "git push origin -f main", "git push -uf origin main", "git push -qf",
        "git push --forc origin", "git -C x push -f", "git --no-pager push origin main -f", "git push --force=true", "git push --tags -f",
        "git push origin +main", "git -C x push origin main +HEAD:refs/heads/x",
    ],
    "git push -f": ["git push --force", "git push origin --force", "git push -fu origin x", "git push --fo"],
    "git clean -fdx": ["git clean -xfd", "git clean -f -d -x", "git clean -d --force -x", "git clean -xd -f .", "git clean -ffdx"],
    "git reset --hard": ["git reset HEAD~1 --hard", "git reset -q --hard", "git reset --har"],
    "git branch -D": ["git branch -D x", "git branch -d -f x", "git branch --delete --force x", "git branch -df x", "git branch x -D"],
    "git branch -d -f": ["git branch -D x", "git branch -qD x"],
    "git commit -n": ["git commit --no-verify -m x", "git commit -am x -n", "git commit -anm x", "git commit --no-ver"],
    "git commit --no-verify": ["git commit -n", "git commit -m x -n", "git commit -nm x"],
    "curl -k": ["curl --insecure x", "curl -sk x", "curl x --insecure", "curl -sSLk x", "curl --insec x"],
    "curl -o /etc/passwd": [
        "curl -o/etc/passwd x", "curl --output /etc/passwd x", "curl --output=/etc/passwd x", "curl x -so /etc/passwd",
        "curl -so/etc/passwd x",
    ],
    "curl --output=/etc/passwd": ["curl -o /etc/passwd x", "curl x -o/etc/passwd", "curl --output /etc/passwd"],
    "docker run --privileged": [
        "docker run -it --privileged x", "docker run --privileged=true x", "docker run --rm --name a --privileged x sh",
        "docker --context c run --privileged x",
    ],
    "docker run -v /:/host": [
        "docker run -v /:/host x", "docker run -v/:/host x", "docker run --volume=/:/host x", "docker run --volume /:/host x",
        "docker run --rm -itv /:/host x", "docker run -it -v /:/host x",
    ],
    "docker run --network=host": ["docker run --network host x", "docker run --net=host x", "docker run --net host x"],
    "docker run --network host": ["docker run --network=host x", "docker run -d --net=host x"],
    "kubectl delete -n prod": ["kubectl delete --namespace=prod pod x", "kubectl -n prod delete pod x", "kubectl delete pod x -nprod"],
    "kubectl delete --all": ["kubectl delete pods --all", "kubectl delete --all=true pods"],
    "npm install -g": ["npm install --global x", "npm install x -g", "npm install --location=global x", "npm -g install x"],
    "find -delete": ["find . -name x -delete", "find / -delete", "find -L . -type f -delete"],
    "find -exec rm": ["find . -exec rm {} +", "find . -type f -exec rm {} \\;"],
    "terraform apply -auto-approve": [
        "terraform apply --auto-approve", "terraform apply -auto-approve=true", "terraform -chdir=x apply -input=false -auto-approve",
    ],
    "tar -xP": ["tar xPf a", "tar -xf a -P", "tar --extract --absolute-names -f a", "tar xf a -P", "tar --get -Pf a"],
    "tar xf": ["tar -xf a", "tar -x -f a", "tar -vxf a", "tar --extract --file=a", "tar xvf a", "tar fx a"],
    "kill -9": [
        "kill -KILL 1", "kill -SIGKILL 1", "kill -s KILL 1", "kill -s 9 1", "kill -n 9 1", "kill --signal=KILL 1", "kill -sKILL 1",
        "kill --signal 9 1", "kill -s kill 1", "kill -9 $PID", "kill -KILL $PID",
    ],
    "pkill --signal KILL": ["pkill -9 x", "pkill -KILL x"],
    "dd of=/dev/sda": ["dd if=x of=/dev/sda", "dd of=/dev/sda if=x bs=1"],
    "sudo -u root": ["sudo -uroot ls", "sudo --user=root ls", "sudo --user root ls", "sudo -n -u root ls", "sudo -nu root ls"],
    "wget -r": ["wget --recursive x", "wget -qr x", "wget x -r"],
    "cp -R": ["cp -r a b", "cp -a a b", "cp --archive a b", "cp --recursive a b"],
    "rsync --archive": ["rsync -a a b", "rsync -vaz a b"],
    "sed -i": ["sed -n -i s/a/b/ f", "sed --in-place s/a/b/ f", "sed -i.bak s/a/b/ f", "sed -ni s/a/b/ f", "sed s/a/b/ f -i"],
    "apt-get install -y": ["apt-get -y install x", "apt-get install x --yes", "apt-get install --assume-yes x", "apt-get install -qy x"],
    "pip install -U": ["pip install --upgrade x", "pip install x -U", "pip -q install --upgrade x"],
    "mytool deploy --prod": ["mytool deploy --prod", "mytool deploy x --prod", "mytool -v deploy --prod=yes", "mytool deploy -prod"],
    "mytool -rf": ["mytool -fr", "mytool -r x -f", "mytool -vrf"],
    "mytool --dry-run": ["mytool --dry_run", "mytool x --dry-run=1"],
    "mytool -n5": ["mytool -n 5", "mytool -n=5", "mytool x -n5"],
}  # fmt: skip
MAY_BE = {
    "rm -rf": [
        "rm $X /", "rm -r $X", "rm -r *", "rm -- -rf", "rm -r -- -f", "echo -f / | xargs rm -r", "xargs rm", "xargs -I{} rm {} /",
        "xargs -I X rm -r X", "xargs --replace rm -r {}", "xargs -i rm {}", "parallel rm -r", "fd . -x rm -r",
    ],
    "git push --force": ["git push $X", "git push origin $BRANCH", 'git push "$@"', "git push -- --force"],
    "mytool -x": ["mytool --extract", "mytool -X", "mytool a --anything", "mytool -- -x"],
    "mytool --force": ["mytool -f", "mytool -v", "mytool --fo", "mytool -- --force"],
    "mytool -u root": ["mytool --user root", "mytool -u $X"],
    "mytool -uroot": ["mytool -u root"],
    "git frobnicate --all": ["git frobnicate -a"],
    "docker run -v /:/host": ["docker run -v $X img", "docker run --volume=$X img"],
}  # fmt: skip
OTHERS = {
    "rm -rf": ["rm -r x", "rm -f x", "rm -fv x", "rm x", "rm --force x", "rm --recursive x", "rm -Rv x", "rm ./-rf", "rm - rf"],
    "git push --force": [
        "git push", "git push origin main", "git push -u origin main", "git push --set-upstream origin main", "git push --tags",
        "git push --force-with-lease", "git push --follow-tags -n", "git push -d origin x", "git log --force $X", "git commit -m --force",
    ],
    "git push --force-with-lease": ["git push --force", "git push -f"],
    "git branch -D": ["git branch -d x", "git branch -f x y", "git branch --delete x"],
    "git clean -fdx": ["git clean -fd", "git clean -n -d", "git clean -fX -d"],
    "chmod -R 777": ["chmod 777 x", "chmod -R 755 x", "chmod -v 777 x"],
    "curl -o /etc/passwd": ["curl -o out x", "curl -O x", "curl --output=/etc/passwd2 x", "curl x"],
    "curl -f": ["curl -ofile x", "curl -o f x", "curl --data x"],
    "docker run -v /:/host": ["docker run -v /data:/host x", "docker run x", "docker run --volumes-from=x y"],
    "docker run --privileged": ["docker run x", "docker rm --privileged", "docker exec --privileged x"],
    "kill -9": ["kill 1", "kill -15 1", "kill -TERM 9", "kill -s HUP 1", "kill -l"],
    "rm -r": ["xargs ls -r", "xargs -I{} ls {}", "find . -exec rm {} +", "xargs -I{} rm ./x"],
    "find -delete": ["find . -name delete", "find . -depth", "find . -type d"],
    "tar xf": ["tar cf a b", "tar tf a", "tar -x a"],
    "terraform apply -auto-approve": ["terraform apply", "terraform plan -auto-approve", "terraform apply -input=false"],
    "sudo -u root": ["sudo -u me ls", "sudo ls -u root"],
    "env -i": ["env ls -i", "env A=1 grep -i x"],
    "nice -n 5": ["nice head -n 5"],
    "mytool deploy --prod": ["mytool status --prod", "mytool deploy", "mytool deploy --stage"],
    "npm publish": ["npm install publish", "npm run publish"],
}  # fmt: skip


def rules(*texts: str) -> list[WordRule]:
    return [rule for text in texts for rule in word_rules(text)]


PROGRAMS = """
git docker kubectl sh sudo xargs find env nice mytool chmod curl rm kill tar RM /bin/rm dd pkill sed cp rsync wget npm pip apt-get
terraform ls grep head echo fd parallel
"""


def judged(command: str, *deny: str) -> CommandVerdict:
    return judge_command(command, rules(*PROGRAMS.split()), rules(*deny))


def cases(table: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(rule, command) for rule, commands in table.items() for command in commands]


@pytest.mark.parametrize(("rule", "command"), cases(DENIED))
def test_no_spelling_of_options_dodges_a_deny_rule(rule: str, command: str) -> None:
    assert judged(command, rule).verdict is Verdict.DENY


@pytest.mark.parametrize(("rule", "command"), cases(MAY_BE))
def test_what_may_be_another_spelling_is_never_allowed(rule: str, command: str) -> None:
    found = judged(command, rule)
    assert found.verdict is Verdict.UNKNOWN
    assert found.suggestion is None


@pytest.mark.parametrize(("rule", "command"), cases(OTHERS))
def test_other_options_are_not_denied(rule: str, command: str) -> None:
    assert judged(command, rule).verdict is Verdict.ALLOW


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("rm -r", "rm -R x"), ("rm -r", "rm --recursive x"), ("rm -r", "rm -rf x"), ("rm -r", "rm x -r"),
        ("git push -u", "git push --set-upstream"),
        ("git push -u", "git push -fu"), ("curl -o out", "curl -oout"), ("curl -o out", "curl --output=out"), ("tar xf", "tar -xf a"),
        ("kill -9", "kill -KILL 1"), ("docker run --net=host", "docker run --net host"),
    ],
)  # fmt: skip
def test_an_allow_rule_is_never_stretched_to_another_spelling(rule: str, command: str) -> None:
    assert judge_command(command, rules(rule), []).verdict is Verdict.UNKNOWN


@dataclass(frozen=True)
class Program:
    """A program as `getopt` reads it: its letters and names, with a colon or ``=`` where one takes a value."""

    command: str
    letters: str
    names: list[str]
    same: dict[str, str]
    """{letter: name}"""
    values: list[str]

    def spelled(self, rng: random.Random) -> list[str]:
        """Make up arguments: letters grouped or apart, names whole or cut short, values and operands anywhere."""
        words: list[str] = []
        plain = self.letters.replace(":", "")
        for _ in range(rng.randint(1, 5)):
            kind = rng.random()
            if kind < 0.4:
                words.append("-" + "".join(rng.choice(plain) for _ in range(rng.randint(1, 3))))
            elif kind < 0.75:
                name = rng.choice(self.names).rstrip("=")
                words.append("--" + name[: rng.randint(1, len(name))])
            elif kind < 0.95:
                words.append(rng.choice(self.values))
            else:
                words.append("--")
            if rng.random() < 0.2:
                words[-1] += rng.choice(["", "="]) + rng.choice(self.values)
        return words

    def read(self, words: list[str]) -> set[tuple[str, str]] | None:
        """Return which options are given, by name, with their values; None when they are wrong."""
        try:
            options, _ = getopt.gnu_getopt(words, self.letters, self.names)
        except getopt.GetoptError:
            return None
        return {
            (o[2:] if o.startswith("--") else self.same.get(o[1:], o[1:]), v) for o, v in options
        }


RM = Program(
    "rm", "rRfvdiI", ["recursive", "force", "verbose", "dir", "interactive", "one-file-system", "no-preserve-root"],
    {"r": "recursive", "R": "recursive", "f": "force"}, ["x", "/", "a b", "-"],
)  # fmt: skip
CURL = Program(
    "curl", "ko:X:sLf", ["insecure", "output=", "request=", "silent", "location", "fail"],
    {"k": "insecure", "o": "output", "X": "request"}, ["out", "/etc/passwd", "/etc/passwd", "k", "http://x"],
)  # fmt: skip
PUSH = Program(
    "git push", "fnqvuo:d", ["force", "dry-run", "quiet", "verbose", "set-upstream", "push-option=", "delete", "tags"],
    {"f": "force", "d": "delete"}, ["origin", "main", "f", "HEAD:x"],
)  # fmt: skip
TAR = Program(
    "tar", "cxtf:vC:zP", ["create", "extract", "list", "file=", "verbose", "directory=", "gzip", "absolute-names"],
    {"x": "extract", "P": "absolute-names", "f": "file", "C": "directory"}, ["./a.tar", "./P", "/"],
)  # fmt: skip
READ: list[tuple[str, Program, set[tuple[str, str]]]] = [
    ("rm -rf", RM, {("recursive", ""), ("force", "")}),
    ("curl -k", CURL, {("insecure", "")}),
    ("curl --output=/etc/passwd", CURL, {("output", "/etc/passwd")}),
    ("curl -o /etc/passwd", CURL, {("output", "/etc/passwd")}),
    ("git push --force", PUSH, {("force", "")}),
    ("git push -fd", PUSH, {("force", ""), ("delete", "")}),
    ("tar -xP", TAR, {("extract", ""), ("absolute-names", "")}),
    ("tar -C /", TAR, {("directory", "/")}),
]


@pytest.mark.parametrize(("rule", "program", "wanted"), READ, ids=[rule for rule, *_ in READ])
def test_what_getopt_reads_as_the_denied_options_is_denied(
    rule: str, program: Program, wanted: set[tuple[str, str]]
) -> None:
    """The library that programs read their options with says what the words mean."""
    rng = random.Random(int(os.environ.get("CRUX_FUZZ_SEED", "8")))
    allow, deny = rules(*PROGRAMS.split()), rules(rule)
    counts = {True: 0, False: 0}
    for _ in range(int(os.environ.get("CRUX_FUZZ_LINES", "1500"))):
        words = program.spelled(rng)
        given = program.read(words)
        if given is None:
            continue
        verdict = judge_command(f"{program.command} {shlex.join(words)}", allow, deny).verdict
        counts[wanted <= given] += 1
        if wanted <= given:
            assert verdict is Verdict.DENY, words
        elif program is RM and "--" not in words:
            assert verdict is Verdict.ALLOW, words
    print(f"{rule}: {counts[True]} denied by getopt's reading, {counts[False]} not")
    assert min(counts.values()) > 15
