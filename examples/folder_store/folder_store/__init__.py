"""An example of a third-party store: JSON objects as files of one folder, shared by the processes of one machine.

It implements the five calls of a minimal store and nothing else; `journaled` makes transactions, versions, watching and crash recovery
of them. With this package installed, ``open_workspace("folder:///some/where")`` works.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from crux_workspace.errors import InvalidInputError, StorageError
from crux_workspace.storage import JsonObject, MinimalPage, OpenedRecords
from storage_adapters.journaled import JournaledRecordStore, journaled

__all__ = ["FolderStore", "folder_backend"]

T = TypeVar("T")


class FolderStore:
    """A minimal store with an atomic `create`.

    An object is written to a file of its own, synced, and given its name in one step: by `rename`, which replaces, or by `link`, which
    refuses where something is. Names of files have ``/`` as ``+``, which no key has.
    """

    def __init__(self, folder: Path) -> None:
        """Use a folder that exists; nothing else should be in it."""
        self._folder = folder

    async def get(self, key: str) -> JsonObject | None:
        """See `MinimalStore.get`."""

        def read() -> JsonObject | None:
            with suppress(FileNotFoundError):
                found: JsonObject = json.loads(self._path(key).read_bytes())
                return found
            return None

        return await self._in_thread(read)

    async def put(self, key: str, value: JsonObject) -> None:
        """See `MinimalStore.put`."""
        text = json.dumps(value)
        await self._in_thread(lambda: self._write(key, text, os.replace))

    async def create(self, key: str, value: JsonObject) -> bool:
        """See `CreatingStore.create`."""
        text = json.dumps(value)
        try:
            await self._in_thread(lambda: self._write(key, text, os.link))
        except FileExistsError:
            return False
        return True

    async def delete(self, key: str) -> None:
        """See `MinimalStore.delete`."""
        await self._in_thread(lambda: self._path(key).unlink(missing_ok=True))

    async def list(
        self, prefix: str, *, limit: int | None = None, cursor: str | None = None
    ) -> MinimalPage:
        """See `MinimalStore.list`."""
        start = prefix.replace("/", "+")

        def find() -> MinimalPage:
            names = sorted(f.name for f in self._folder.iterdir() if f.name.startswith(start))
            names = [n for n in names if not n.startswith(",") and n > (cursor or "")]
            page = names if limit is None else names[:limit]
            found: list[tuple[str, JsonObject]] = []
            for name in page:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    text = (self._folder / name).read_bytes()
                    found.append((name.replace("+", "/"), json.loads(text)))
            return MinimalPage(found, page[-1] if len(page) < len(names) else None)

        return await self._in_thread(find)

    def _path(self, key: str) -> Path:
        return self._folder / key.replace("/", "+")

    def _write(self, key: str, text: str, give_name: Callable[[Path, Path], None]) -> None:
        temporary = self._folder / f",{secrets.token_hex(8)}"
        try:
            with temporary.open("x") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            give_name(temporary, self._path(key))
            folder = os.open(self._folder, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
        finally:
            temporary.unlink(missing_ok=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(work)
        except FileExistsError:
            raise
        except OSError as error:
            raise StorageError("The folder of the store cannot be used; check it.") from error


async def folder_backend(url: str, *, create: bool = True) -> OpenedRecords:
    """Open ``folder:///absolute/path``; assets nobody chose a place for go to a folder beside it."""
    parts = urlsplit(url)
    folder = Path(unquote(parts.path))
    if parts.netloc or parts.query or len(folder.parts) < 2:
        raise InvalidInputError("A folder URL names an absolute folder: folder:///path/to/folder.")

    def prepare() -> bool:
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        return folder.is_dir()

    if not await asyncio.to_thread(prepare):
        raise StorageError(
            "There is no folder at that place; let it be created, or correct the URL."
        )
    records: JournaledRecordStore = journaled(FolderStore(folder), durable=True)
    return OpenedRecords(records, folder.with_name(folder.name + ".assets").as_uri())
