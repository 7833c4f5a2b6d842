"""Run as a process: some clients of one service do mixed work on shared namespaces, and record what they saw.

Arguments: URL, a name for this process, clients, seconds, namespaces, the file that gets the histories (pickled, by namespace).
"""

from __future__ import annotations

import asyncio
import pickle
import random
import sys
import time
from pathlib import Path

from crux_workspace import Workspace, open_workspace
from crux_workspace.errors import ConflictError, NotFoundError, WorkspaceError
from crux_workspace.testing.serialisability import Client, History

__all__ = ["SharedHistory"]

FILES = [f"/workspace/{folder}/{name}" for folder in "ab" for name in "123"]


class SharedHistory(History):
    """A history whose clock is the machine's, so that those of several processes can be put together."""

    def tick(self) -> int:
        return time.monotonic_ns()


async def act(client: Client, chance: random.Random, mark: str) -> None:
    """Do one thing."""
    path = chance.choice(FILES)
    what = chance.randrange(8)
    if what == 0:
        await client.read(path)
    elif what == 1:
        await client.write(path, mark)
    elif what == 2:
        await client.append(path, mark)
    elif what == 3:
        await client.delete(path)
    elif what == 4:
        await client.rename(path, chance.choice(FILES), overwrite=True)
    elif what == 5:
        await client.update(path, lambda value: value[-40:] + mark)
    else:
        async with client.transaction() as tx:
            first = await tx.read(path)
            if what == 6:
                await tx.listing("/workspace/a")
            else:
                await tx.search("needle", "/workspace/b")
            await tx.write(chance.choice(FILES), f"{(first or '')[-40:]}{mark}")


async def work(ws: Workspace, history: SharedHistory, name: str, until: float) -> None:
    """Be one client."""
    chance = random.Random(name)
    client = history.client(ws, name)
    number = 0
    while time.monotonic() < until:
        number += 1
        mark = f"[{name}.{number}{' needle' if number % 5 == 0 else ''}]"
        try:
            await act(client, chance, mark)
        except (ConflictError, NotFoundError):
            continue
        except WorkspaceError as error:
            if error.code not in ("ALREADY_EXISTS", "PATH_TYPE_CONFLICT"):
                raise


async def main() -> None:
    """Work until the time is over."""
    url, name, clients, seconds, namespaces, target = sys.argv[1:]
    async with open_workspace(url) as ws:
        histories = {f"shared:{n}": SharedHistory() for n in range(int(namespaces))}
        print('"ready"', flush=True)
        sys.stdin.readline()
        until = time.monotonic() + float(seconds)
        async with asyncio.TaskGroup() as group:
            for number in range(int(clients)):
                namespace, history = list(histories.items())[number % len(histories)]
                view = ws.for_namespace(namespace)
                group.create_task(work(view, history, f"{name}{number}", until))
    found = {namespace: history.operations for namespace, history in histories.items()}
    Path(target).write_bytes(pickle.dumps(found))  # noqa: ASYNC240 - nothing else runs


if __name__ == "__main__":
    asyncio.run(main())
