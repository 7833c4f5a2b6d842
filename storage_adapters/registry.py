"""From a URL to open stores: which adapter serves which scheme.

Bundled adapters are known by name, so a bare checkout works; others come by the entry point groups ``crux_workspace.storage`` and
``crux_workspace.assets``. Adapters and drivers are imported only when their scheme is asked for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from crux_workspace.errors import InvalidInputError, UnsupportedError
from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.bundle import OpenedRecords, Storage
from crux_workspace.storage.memory import MemoryAssetStore, MemoryRecordStore

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["StorageOpening", "memory_assets_backend", "memory_backend", "migrate", "open_storage"]

RecordsBackend = Callable[..., Awaitable[OpenedRecords]]
"""Entry point of ``crux_workspace.storage``: called with the URL and the keyword `create`."""

AssetsBackend = Callable[[str], Awaitable[AssetStore]]
"""Entry point of ``crux_workspace.assets``: called with the URL."""

_MIGRATIONS = {
    "sqlite": "storage_adapters.sql:migrate",
    "postgresql": "storage_adapters.sql.postgres:migrate",
    "postgres": "storage_adapters.sql.postgres:migrate",
}
"""Who brings a store's schema up to date, by scheme; other stores have none."""

_RECORDS = "crux_workspace.storage"
_ASSETS = "crux_workspace.assets"

_BUNDLED = {
    _RECORDS: {
        "sqlite": "storage_adapters.sql:sqlite_backend",
        "postgresql": "storage_adapters.sql.postgres:postgres_backend",
        "postgres": "storage_adapters.sql.postgres:postgres_backend",
        "memory": "storage_adapters.registry:memory_backend",
    },
    _ASSETS: {
        "file": "storage_adapters.local_files:file_backend",
        "postgresql": "storage_adapters.sql.postgres:postgres_assets_backend",
        "postgres": "storage_adapters.sql.postgres:postgres_assets_backend",
        "memory": "storage_adapters.registry:memory_assets_backend",
        "s3": "storage_adapters.s3:s3_backend",
        "obstore+s3": "storage_adapters.object_stores:obstore_backend",
        "obstore+file": "storage_adapters.object_stores:obstore_backend",
        "gs": "storage_adapters.object_stores:obstore_backend",
        "az": "storage_adapters.object_stores:obstore_backend",
    },
}


def migrate(url: str) -> None:
    """Bring a store's schema up to date, creating it where there is none; repeating it changes nothing.

    Args:
        url: Where the records live.

    Raises:
        UnsupportedError: That store has no schema (``CAPABILITY_MISSING``).
        StorageError: It is no store of this library, or cannot be opened.
        StateError: A newer version of the library wrote it (``SCHEMA_OUT_OF_DATE``).
    """
    check_url("url", url)
    scheme = url.partition(":")[0]
    if scheme not in _MIGRATIONS:
        raise UnsupportedError(
            f"There is nothing to migrate in a {scheme} store.",
            hint="Give a database URL such as sqlite:///workspace.db.",
        )
    module, _, name = _MIGRATIONS[scheme].partition(":")
    getattr(import_module(module), name)(url)


def open_storage(url: str, assets: str | None = None, *, create: bool = True) -> StorageOpening:
    """Open the storage a URL names; await it, or enter it with ``async with``.

    Args:
        url: Where the records live: ``memory://``, ``sqlite:///relative.db``, ``sqlite:////absolute.db``, with
            ``?durability=full|normal`` for SQLite.
        assets: Where the assets live: ``file:///folder``, ``s3://bucket/prefix?endpoint_url=…``, ``gs://bucket/prefix``,
            ``az://container/prefix`` or ``memory://``. By default beside the records: for SQLite in a folder
            named like the file with ``.assets`` behind it, created when the first asset is put.
        create: False refuses to create a database that is not there.

    Returns:
        What opens the storage; the storage owns both stores and closes them.

    Raises:
        InvalidInputError: No adapter serves the scheme, or the URL is not one the adapter understands (when opened).

    Example:
        >>> async with open_storage("sqlite:///work.db") as storage:
        ...     await storage.records.sequences([])
        []
    """
    return StorageOpening(url, assets, create)


class StorageOpening:
    """A storage about to be opened: awaitable once, or an asynchronous context manager that closes it."""

    def __init__(self, url: str, assets: str | None, create: bool) -> None:
        self._url = url
        self._assets = assets
        self._create = create
        self._storage: Storage | None = None

    def __repr__(self) -> str:
        return f"open_storage({_scheme(str(self._url))}://…)"

    def __await__(self) -> Generator[Any, Any, Storage]:
        return self._open().__await__()

    async def __aenter__(self) -> Storage:
        self._storage = await self._open()
        return self._storage

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._storage is not None:
            await self._storage.aclose()

    async def _open(self) -> Storage:
        check_url("url", self._url)
        if self._assets is not None:
            check_url("assets", self._assets)
        records_backend: RecordsBackend = _backend(_RECORDS, self._url)
        if self._assets is not None:  # refuse a wrong URL before anything is created
            _backend(_ASSETS, self._assets)
        opened = await records_backend(self._url, create=self._create)
        try:
            assets = await self._open_assets(opened)
        except BaseException:
            await opened.records.aclose()
            if opened.assets is not None:
                await opened.assets.aclose()
            raise
        owned = (opened.records,) if assets is None else (opened.records, assets)
        return Storage(opened.records, assets, owned=owned)

    async def _open_assets(self, opened: OpenedRecords) -> AssetStore | None:
        if self._assets is None and opened.assets is not None:
            return opened.assets
        url = self._assets or opened.assets_url
        if url is None:
            return None
        backend: AssetsBackend = _backend(_ASSETS, url)
        assets = await backend(url)
        if opened.assets is not None:
            await opened.assets.aclose()
        return assets


async def memory_backend(url: str, *, create: bool = True) -> OpenedRecords:
    """Open the records of ``memory://``: fresh ones, gone with the object."""
    _require_bare(url)
    return OpenedRecords(MemoryRecordStore(), "memory://")


async def memory_assets_backend(url: str) -> AssetStore:
    """Open the assets of ``memory://``: fresh ones, gone with the object."""
    _require_bare(url)
    return MemoryAssetStore()


def _discovered(group: str) -> dict[str, EntryPoint]:
    """Return the backends that other packages offer; looking for them costs more than opening a database."""
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=group)}


def check_url(option: str, url: object) -> None:
    """Refuse what no adapter could read: no string, control characters (encoded ones too), lone surrogates, a fragment.

    Raises:
        InvalidInputError: The message shows nothing of the URL (``INVALID_ARGUMENT``).
    """
    if isinstance(url, str) and "#" not in url:
        decoded = unquote(url)
        if decoded.isprintable() and not any("\ud800" <= c <= "\udfff" for c in decoded):
            return
    raise InvalidInputError(
        f"{option} must be a URL of printable characters without a fragment, e.g. sqlite:///work.db;"
        " write '#' in a name as %23.",
        details={"option": option},
    )


def _require_bare(url: str) -> None:
    if url.split("://", 1)[1].strip("/"):
        raise InvalidInputError("A memory:// URL takes neither a path nor options.")


def _scheme(url: str) -> str:
    scheme, separator, _ = url.partition("://")
    if not separator or not scheme.replace("+", "").replace("-", "").replace(".", "").isalnum():
        return ""
    return scheme.lower()


def _backend(group: str, url: str) -> Any:  # noqa: ANN401 - what an entry point holds
    """Return the function that opens URLs of this scheme; nothing but the scheme reaches a message."""
    scheme = _scheme(url)
    bundled = _BUNDLED[group]
    if scheme in bundled:
        module, _, name = bundled[scheme].partition(":")
        return getattr(import_module(module), name)
    others = _discovered(group)
    if scheme in others:
        return others[scheme].load()
    what = "records" if group == _RECORDS else "assets"
    known = ", ".join(f"{name}://" for name in sorted({*bundled, *others}))
    asked = f"{scheme}://" if scheme else "a URL without a scheme"
    raise InvalidInputError(
        f"No adapter keeps {what} at {asked}; known are {known}.", details={"option": "url"}
    )
