"""The way to the servers: one, or the nodes of a Cluster, found by slot; and what is tried again.

A read is repeated when its answer was lost. A commit never is: it is sent again only where the server said that it did not run, and
otherwise its outcome is unknown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from crux_workspace.errors import StorageError, WorkspaceError
from crux_workspace.storage.failures import closed_error
from crux_workspace.storage.layout import META_KEY
from crux_workspace.storage.records import OutcomeUnknown, PreconditionFailed
from storage_adapters.redis.failures import TRANSIENT, code_of, is_loading, lost, refused
from storage_adapters.redis.node import Node
from storage_adapters.redis.scripts import ALL
from storage_adapters.redis.slots import SlotMap
from storage_adapters.redis.target import Target
from storage_adapters.redis.wire import Command, Lost, pack

__all__ = ["Generation", "Link"]

_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.4

Generation = tuple[Node, int]
"""A connection to a server: while it is the same, nobody else took the server's place."""


class _Patience:
    """How long one call goes on trying: as long as a call may stay unanswered."""

    __slots__ = ("_loop", "_pause", "_until")

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._until = self._loop.time() + seconds
        self._pause = _FIRST_PAUSE_S

    async def wait(self, error: WorkspaceError) -> None:
        """Pause before the next attempt; raise the error when there is no time for one."""
        if self._loop.time() + self._pause > self._until:
            raise error
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 2, _LONGEST_PAUSE_S)


class _Refused(Exception):
    """The server refused a command: for good, or only now."""

    def __init__(self, error: WorkspaceError, *, passes: bool) -> None:
        super().__init__()
        self.error = error
        self.passes = passes


class Link:
    """Open connections to the servers that a URL names."""

    def __init__(self, target: Target) -> None:
        """Use `open`."""
        self._target = target
        self.on_replaced: Callable[[], None] | None = None
        """Called when another server may have taken the place of one."""
        self._nodes: dict[tuple[str, int], Node] = {}
        self._seed = self._node(target.host, target.port)
        self._slots: SlotMap | None = None
        self.closed = False

    def __repr__(self) -> str:
        return f"Link({self._target.place})"

    @classmethod
    async def open(cls, target: Target) -> Link:
        """Connect; a server that runs as part of a Cluster leads to its other nodes.

        A server that still loads its data is waited for, as long as a call may stay unanswered.

        Raises:
            WorkspaceError: It cannot be reached or used.
        """
        link = cls(target)
        try:
            await link._connect_loaded()
            if link._seed.facts.get("cluster_enabled") == "1":
                link._slots = SlotMap()
                await link._look_up()
        except BaseException:
            await link.aclose()
            raise
        return link

    async def _connect_loaded(self) -> None:
        patience = _Patience(self._target.timeout_s)
        while True:
            try:
                await self._seed.connect()
            except StorageError as error:
                if not is_loading(error):
                    raise
                await patience.wait(error)
            else:
                return

    @property
    def durable(self) -> bool:
        """Whether the server first connected to writes what it acknowledges to a file (AOF)."""
        return self._seed.facts.get("aof_enabled") == "1"

    def any_target(self) -> Target:
        """Return a server that is connected, if any is."""
        ready = (node for node in self._nodes.values() if node.ready is not None)
        return next(ready, self._seed).target

    async def generation(self, bucket: int) -> Generation:
        """Connect if need be, and return what `tell` compares."""
        node = self._of(bucket)
        if node.ready is None:
            await self._call(bucket, (b"PING",), once=False, since=None)
            node = self._of(bucket)
        return node, node.connections

    async def ask(self, bucket: int, command: Command) -> Any:  # noqa: ANN401 - what the server answers
        """Send a command that changes nothing, or may run twice; repeat it when the answer was lost."""
        return await self._call(bucket, command, once=False, since=None)

    async def tell(self, bucket: int, command: Command, since: Generation | None = None) -> Any:  # noqa: ANN401 - what the server answers
        """Send a command that must not run twice.

        Args:
            bucket: Where it belongs.
            command: What to send.
            since: The connection that its premises were read by. On another one they may not hold, though their revisions fit: a
                replica that was promoted may have numbered other commits alike.

        Raises:
            OutcomeUnknown: It was sent, and no answer came.
            PreconditionFailed: The connection is another one (``revision``).
            WorkspaceError: It was not carried out.
        """
        return await self._call(bucket, command, once=True, since=since)

    async def ask_all(self, commands: Sequence[tuple[int, Command]]) -> list[Any]:
        """Send many commands that change nothing, all at once; returns the answers in order."""
        by_node: dict[Node, list[int]] = {}
        for place, (bucket, _) in enumerate(commands):
            by_node.setdefault(self._of(bucket), []).append(place)
        replies: list[Any] = [None] * len(commands)

        async def fetch(node: Node, places: list[int]) -> None:
            found: list[Any]
            try:
                found = await node.call_all([commands[place][1] for place in places])
            except (Lost, StorageError) as failure:
                found = [failure] * len(places)
            for place, reply in zip(places, found, strict=True):
                again = isinstance(reply, Exception)
                replies[place] = await self.ask(*commands[place]) if again else reply

        await asyncio.gather(*(fetch(node, places) for node, places in by_node.items()))
        return replies

    async def aclose(self) -> None:
        """Close all connections; whoever is cancelled meanwhile has closed them too, and only does not wait until they are gone."""
        self.closed = True
        nodes = list(self._nodes.values())
        for node in nodes:
            node.end()
        for node in nodes:
            await node.aclose()

    def _node(self, host: str, port: int) -> Node:
        node = self._nodes.get((host, port))
        if node is None:
            node = self._nodes[host, port] = Node(self._target.at(host, port), self._replaced)
        return node

    def _replaced(self) -> None:
        if self.on_replaced is not None:
            self.on_replaced()

    def _of(self, bucket: int) -> Node:
        if self.closed:
            raise closed_error()
        if self._slots is None:
            return self._seed
        place = self._slots.place(bucket)
        return self._seed if place is None else self._node(*place)

    async def _call(
        self, bucket: int, command: Command, *, once: bool, since: Generation | None
    ) -> Any:  # noqa: ANN401 - what the server answers
        patience: _Patience | None = None
        while True:
            try:
                return await self._attempt(bucket, command, since)
            except (Lost, StorageError, _Refused) as failure:
                error = self._repeatable(failure, once=once)
            patience = patience or _Patience(self._target.timeout_s)
            await patience.wait(error)
            await self._look_up_quietly()

    async def _attempt(self, bucket: int, command: Command, since: Generation | None) -> Any:  # noqa: ANN401 - what the server answers
        node = self._of(bucket)
        wire = node.ready or await node.connect()
        if since is not None and since != (node, node.connections):
            raise PreconditionFailed("revision", META_KEY)
        [reply] = await wire.call(pack(command))
        if isinstance(reply, Exception):
            return await self._settle(node, bucket, command, reply)
        return reply

    def _repeatable(self, failure: Exception, *, once: bool) -> WorkspaceError:
        """Return the error of an attempt after which another one may be made; raise what is final."""
        if isinstance(failure, Lost):
            if once and failure.sent:
                raise OutcomeUnknown from (failure.__cause__ or failure)
            return lost(failure)
        if isinstance(failure, _Refused):
            if failure.passes:
                return failure.error
            raise failure.error from failure.error.__cause__
        assert isinstance(failure, StorageError)
        if self.closed or not failure.retryable:
            raise failure
        return failure

    async def _settle(self, node: Node, bucket: int, command: Command, refusal: Exception) -> Any:  # noqa: ANN401 - what the server answers
        """Do what a refusal asks for; returns the answer that this leads to.

        Raises:
            _Refused: There is none.
        """
        code = code_of(refusal)
        if code == "NOSCRIPT":
            loads: list[Command] = [(b"SCRIPT", b"LOAD", script.source) for script in ALL]
            return _judged((await node.call_all([*loads, command]))[-1])
        if code in ("MOVED", "ASK") and self._slots is not None:
            host, _, port = str(refusal).rsplit(" ", 1)[-1].rpartition(":")
            place = (host or node.target.host, int(port))
            if code == "ASK":
                return _judged((await self._node(*place).call_all([(b"ASKING",), command]))[-1])
            self._slots.move(bucket, place)
            self._replaced()
        if code == "READONLY":
            node.drop()  # the server was demoted: its address may lead elsewhere now
        return _judged(refusal)

    async def _look_up_quietly(self) -> None:
        try:
            await self._look_up()
        except WorkspaceError:
            return

    async def _look_up(self) -> None:
        """Learn which node holds which slots, from the first one that tells."""
        if self._slots is None:
            return
        error: WorkspaceError = StorageError("no node of the Redis Cluster can be reached")
        for node in sorted(self._nodes.values(), key=lambda node: node.ready is None):
            try:
                answer = await node.call((b"CLUSTER", b"SLOTS"))
            except Lost as failure:
                error = lost(failure)
            except WorkspaceError as failure:
                error = failure
            else:
                if not isinstance(answer, Exception):
                    if self._slots.learn(answer, node.target.host):
                        self._replaced()  # a replica may have been elected
                    return
                error = refused(answer)
        raise error


def _judged(reply: Any) -> Any:  # noqa: ANN401 - what the server answers
    if isinstance(reply, Exception):
        raise _Refused(refused(reply), passes=code_of(reply) in TRANSIENT)
    return reply
