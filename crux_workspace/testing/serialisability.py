"""Was it as if everybody had taken turns? A checker of what several clients saw while they worked on one namespace.

Clients record what they read and what they wrote, single verbs and transactions alike:

    history = History()
    alice, bob = history.client(ws, "alice"), history.client(other, "bob")
    async with alice.transaction() as tx:
        await tx.write("/workspace/b", await tx.read("/workspace/a") or "")
    await bob.append("/workspace/a", "more")
    assert check(history, await ws.log(limit=1000), final=await state_of(ws)) == []

`check` replays the operations in the order of the commit log and holds each one to what this order gives: every value read, every
listing and search; the paths that its commit names; that what was acknowledged is in the log once, what was refused is not, that the
log has no gap, that nobody is ordered before what had ended when they began, and that the end is what the replay ends with. What
committed nothing must have seen one moment between its beginning and its end.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from crux_workspace.errors import ErrorCode, PathNotFoundError, StorageError

if TYPE_CHECKING:
    from crux_workspace import CommitEntry, Transaction, Workspace

__all__ = [
    "Append",
    "Client",
    "Delete",
    "History",
    "Listing",
    "Operation",
    "Read",
    "RecordingTransaction",
    "Rename",
    "Search",
    "Step",
    "Write",
    "check",
    "state_of",
]

State = dict[str, str]
Outcome = Literal["open", "done", "refused", "unknown"]


@dataclass(frozen=True, slots=True)
class Read:
    """A file was read; None: there was none."""

    path: str
    value: str | None

    def replay(self, state: State) -> str | None:
        """Return what contradicts the state, None if nothing does."""
        there = state.get(self.path)
        return None if there == self.value else f"read {self.value!r}, there was {there!r}"


@dataclass(frozen=True, slots=True)
class Listing:
    """All files below a directory were listed."""

    path: str
    paths: tuple[str, ...]

    def replay(self, state: State) -> str | None:
        """See `Read.replay`."""
        there = tuple(sorted(_below(state, self.path)))
        return None if there == self.paths else f"listed {self.paths}, there were {there}"


@dataclass(frozen=True, slots=True)
class Search:
    """A text was searched for below a directory; the files that have it."""

    path: str
    needle: str
    paths: tuple[str, ...]

    def replay(self, state: State) -> str | None:
        """See `Read.replay`."""
        there = tuple(sorted(p for p in _below(state, self.path) if self.needle in state[p]))
        return None if there == self.paths else f"found {self.paths}, there were {there}"


@dataclass(frozen=True, slots=True)
class Write:
    """A file was created or replaced."""

    path: str
    value: str

    def replay(self, state: State) -> str | None:
        """See `Read.replay`."""
        state[self.path] = self.value
        return None


@dataclass(frozen=True, slots=True)
class Append:
    """Text was added to a file, which was made if there was none."""

    path: str
    text: str

    def replay(self, state: State) -> str | None:
        """See `Read.replay`."""
        state[self.path] = state.get(self.path, "") + self.text
        return None


@dataclass(frozen=True, slots=True)
class Delete:
    """A file was deleted, if there was one."""

    path: str

    def replay(self, state: State) -> str | None:
        """See `Read.replay`."""
        state.pop(self.path, None)
        return None


@dataclass(frozen=True, slots=True)
class Rename:
    """A file was given another path, where none was, or the one that was is overwritten."""

    path: str
    to: str
    overwrite: bool = False

    def replay(self, state: State) -> str | None:
        """See `Read.replay`."""
        if self.path not in state:
            return f"renamed {self.path}, there was none"
        if self.to in state and not self.overwrite and self.to != self.path:
            return f"renamed to {self.to}, there was one"
        state[self.to] = state.pop(self.path)
        return None


Step = Read | Listing | Search | Write | Append | Delete | Rename


def _below(state: Iterable[str], directory: str) -> list[str]:
    start = directory.rstrip("/") + "/"
    return [path for path in state if path.startswith(start)]


@dataclass(slots=True)
class Operation:
    """One call or transaction of one client."""

    name: str
    """Unique; its commit carries it as the actor."""
    begun: int
    """Tick at which it began."""
    ended: int | None = None
    steps: list[Step] = field(default_factory=list)
    outcome: Outcome = "open"

    @property
    def touched(self) -> set[str]:
        """Paths that its steps may change."""
        found: set[str] = set()
        for step in self.steps:
            if isinstance(step, Write | Append | Delete | Rename):
                found.add(step.path)
            if isinstance(step, Rename):
                found.add(step.to)
        return found


@dataclass(slots=True)
class History:
    """What all clients did, in ticks of one clock."""

    operations: list[Operation] = field(default_factory=list)
    initial: State = field(default_factory=dict)
    ticks: int = 0

    def tick(self) -> int:
        """Return the next tick."""
        self.ticks += 1
        return self.ticks

    def begin(self, client: str) -> Operation:
        """Record that a client begins something."""
        operation = Operation(f"{client}#{len(self.operations) + 1}", self.tick())
        self.operations.append(operation)
        return operation

    def end(self, operation: Operation, outcome: Outcome) -> None:
        """Record how it ended."""
        operation.ended, operation.outcome = self.tick(), outcome

    def client(self, ws: Workspace, name: str) -> Client:
        """Return a client that records what it does."""
        return Client(self, ws, name)


class _Steps:
    """The verbs that are recorded, on a workspace or a transaction."""

    def __init__(self, of: Workspace | Transaction, operation: Operation) -> None:
        self._of = of
        self._steps = operation.steps

    async def read(self, path: str) -> str | None:
        """Read a text, None if there is none."""
        try:
            value: str | None = await self._of.read_text(path)
        except PathNotFoundError:
            value = None
        self._steps.append(Read(path, value))
        return value

    async def listing(self, path: str) -> tuple[str, ...]:
        """List all files below a directory."""
        found = tuple(sorted([entry.path async for entry in self._of.walk(path)]))
        self._steps.append(Listing(path, found))
        return found

    async def search(self, needle: str, path: str) -> tuple[str, ...]:
        """Search below a directory; returns the files that have it."""
        result = await self._of.grep(needle, path=path, max_results=100_000)
        found = tuple(sorted({match.path for match in result.matches}))
        self._steps.append(Search(path, needle, found))
        return found

    async def write(self, path: str, value: str) -> None:
        """Create or replace a file."""
        await self._of.write(path, value)
        self._steps.append(Write(path, value))

    async def append(self, path: str, text: str) -> None:
        """Add text."""
        await self._of.append(path, text)
        self._steps.append(Append(path, text))

    async def delete(self, path: str) -> None:
        """Delete a file."""
        await self._of.delete(path)
        self._steps.append(Delete(path))

    async def rename(self, path: str, to: str, *, overwrite: bool = False) -> None:
        """Give a file another path."""
        await self._of.rename(path, to, overwrite=overwrite)
        self._steps.append(Rename(path, to, overwrite))


class RecordingTransaction(_Steps):
    """A transaction whose reads and writes are recorded; `real` is the transaction itself."""

    def __init__(self, real: Transaction, operation: Operation) -> None:
        super().__init__(real, operation)
        self.real = real


class Client:
    """Somebody whose calls and transactions are recorded; each call is an operation of its own."""

    def __init__(self, history: History, ws: Workspace, name: str) -> None:
        self._history = history
        self._ws = ws
        self._name = name

    @asynccontextmanager
    async def _operation(self) -> AsyncIterator[tuple[Operation, Workspace]]:
        operation = self._history.begin(self._name)
        outcome: Outcome = "unknown"
        try:
            yield operation, self._ws.acting_as(operation.name)
            outcome = "done"
        except StorageError as error:
            outcome = "unknown" if error.code == ErrorCode.STORE_TIMEOUT else "refused"
            raise
        except Exception:  # a cancelled operation's end is not known
            outcome = "refused"
            raise
        finally:
            self._history.end(operation, outcome)

    async def read(self, path: str) -> str | None:
        """Read a text, None if there is none."""
        async with self._operation() as (operation, ws):
            return await _Steps(ws, operation).read(path)

    async def write(self, path: str, value: str) -> None:
        """Create or replace a file."""
        async with self._operation() as (operation, ws):
            await _Steps(ws, operation).write(path, value)

    async def append(self, path: str, text: str) -> None:
        """Add text."""
        async with self._operation() as (operation, ws):
            await _Steps(ws, operation).append(path, text)

    async def delete(self, path: str) -> None:
        """Delete a file."""
        async with self._operation() as (operation, ws):
            await _Steps(ws, operation).delete(path)

    async def rename(self, path: str, to: str, *, overwrite: bool = False) -> None:
        """Give a file another path."""
        async with self._operation() as (operation, ws):
            await _Steps(ws, operation).rename(path, to, overwrite=overwrite)

    async def update(self, path: str, change: Callable[[str], str]) -> None:
        """Read, change and write by the verb `update`; what was read and written is recorded."""
        async with self._operation() as (operation, ws):
            seen: list[Step] = []

            def changing(value: str) -> str:
                seen[:] = [Read(path, value), Write(path, change(value))]
                return change(value)

            await ws.update(path, changing, max_attempts=100)
            operation.steps.extend(seen)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[RecordingTransaction]:
        """Record a transaction: it is done when the block ends without a refusal."""
        async with self._operation() as (operation, ws), ws.transaction() as tx:
            yield RecordingTransaction(tx, operation)


async def state_of(ws: Workspace) -> State:
    """Return the text of every file."""
    return {entry.path: await ws.read_text(entry.path) async for entry in ws.walk()}


def check(
    history: History, commits: Sequence[CommitEntry], *, final: Mapping[str, str]
) -> list[str]:
    """Hold a history to the order of its commit log.

    Args:
        history: What the clients recorded.
        commits: The whole log, in any order; the actor of each commit names its operation.
        final: What is there in the end.

    Returns:
        What is wrong, in words; nothing when the history is serialisable and nothing was lost.
    """
    return _Replay(history, commits, final).run()


class _Replay:
    def __init__(
        self, history: History, commits: Sequence[CommitEntry], final: Mapping[str, str]
    ) -> None:
        self.history = history
        self.commits = sorted(commits, key=lambda commit: commit.sequence)
        self.final = final
        self.by_name = {operation.name: operation for operation in history.operations}
        self.wrong: list[str] = []
        self.states: list[State] = [dict(history.initial)]
        self.place: dict[str, int] = {}

    def run(self) -> list[str]:
        self.check_log()
        for commit in self.commits:
            self.replay(commit)
        self.check_outcomes()
        self.check_time()
        for operation in self.history.operations:
            if operation.outcome == "done" and operation.name not in self.place:
                self.check_moment(operation)
        if self.states[-1] != dict(self.final):
            self.wrong.append(f"it ends as {dict(self.final)}, the replay as {self.states[-1]}")
        return self.wrong

    def check_log(self) -> None:
        numbers = [commit.sequence for commit in self.commits]
        if numbers != list(range(1, len(numbers) + 1)):
            self.wrong.append(f"the log has a gap or a number twice: {numbers}")

    def replay(self, commit: CommitEntry) -> None:
        """Carry out the operation of a commit on the state before it."""
        before = self.states[-1]
        after = dict(before)
        self.states.append(after)
        operation = self.by_name.get(commit.actor or "")
        where = f"commit {commit.sequence} of {commit.actor}"
        if operation is None:
            self.wrong.append(f"{where}: nobody made it")
            return
        if operation.name in self.place:
            self.wrong.append(f"{where}: it was applied before, as {self.place[operation.name]}")
        self.place[operation.name] = commit.sequence
        self.wrong += [f"{where}: {problem}" for problem in _carry_out(operation, after)]
        named = {change.path for change in commit.changes}
        named |= {change.from_path for change in commit.changes if change.from_path}
        changed = {
            path for path in before.keys() | after.keys() if before.get(path) != after.get(path)
        }
        if changed - named:
            self.wrong.append(f"{where}: its log entry leaves out {sorted(changed - named)}")
        if named - operation.touched:
            self.wrong.append(f"{where}: it touched {sorted(named - operation.touched)} as well")

    def check_outcomes(self) -> None:
        for operation in self.history.operations:
            applied = operation.name in self.place
            if applied and operation.outcome == "refused":
                self.wrong.append(f"{operation.name}: it was refused and applied all the same")
            if not applied and operation.outcome == "done" and self.is_needed(operation):
                self.wrong.append(f"{operation.name}: it was acknowledged and is not in the log")

    def is_needed(self, operation: Operation) -> bool:
        """Tell whether an operation must have committed: it changes something at every moment."""
        return bool(operation.touched) and not any(
            _is_idle(operation, state) for state in self.states
        )

    def check_time(self) -> None:
        """Who had ended before another began is before it in the log."""
        placed = [op for op in self.history.operations if op.name in self.place]
        latest = 0
        name = ""
        ends = sorted(
            (op for op in placed if op.ended is not None and op.outcome == "done"),
            key=lambda op: op.ended or 0,
        )
        for operation in sorted(placed, key=lambda op: op.begun):
            while ends and (ends[0].ended or 0) < operation.begun:
                ended = ends.pop(0)
                if self.place[ended.name] > latest:
                    latest, name = self.place[ended.name], ended.name
            if self.place[operation.name] < latest:
                self.wrong.append(
                    f"{operation.name}: it began after {name} ended, and is before it"
                )

    def check_moment(self, operation: Operation) -> None:
        """What committed nothing saw one state, not older than what had ended when it began, nor newer than its end."""
        ended = operation.ended or 0
        first = max(
            (self.place[op.name] for op in self._placed() if (op.ended or 0) < operation.begun),
            default=0,
        )
        last = min(
            (self.place[op.name] - 1 for op in self._placed(done=False) if op.begun > ended),
            default=len(self.states) - 1,
        )
        if not any(_is_idle(operation, state) for state in self.states[first : last + 1]):
            self.wrong.append(
                f"{operation.name}: no state from {first} to {last} is what it saw: {operation.steps}"
            )

    def _placed(self, *, done: bool = True) -> list[Operation]:
        return [
            op
            for op in self.history.operations
            if op.name in self.place and (not done or op.outcome == "done")
        ]


def _carry_out(operation: Operation, state: State) -> list[str]:
    problems = []
    for number, step in enumerate(operation.steps, 1):
        problem = step.replay(state)
        if problem is not None:
            problems.append(f"step {number}, {step.path}: {problem}")
    return problems


def _is_idle(operation: Operation, state: State) -> bool:
    """Tell whether an operation, carried out on a state, sees what it saw and changes nothing."""
    after = dict(state)
    return not _carry_out(operation, after) and after == state
