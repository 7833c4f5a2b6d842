"""The items of an HTTP JSON API as files; needs the extra ``http``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from crux_workspace.errors import ErrorCode, InvalidInputError, StorageError
from crux_workspace.model.contents import JsonContent
from crux_workspace.model.extras import need_extra
from crux_workspace.model.files import ListResult, WorkspaceEntry, WorkspaceFile
from crux_workspace.model.jsontext import dump_compact, parse
from crux_workspace.model.options import refused_option, whole_number
from crux_workspace.model.sendable import writable
from crux_workspace.model.sources import MountListOptions, MountReadOptions
from crux_workspace.model.streams import at_most

if TYPE_CHECKING:
    import httpx

__all__ = ["HttpJsonSource"]

_NAME = re.compile(r"/([A-Za-z0-9_.~-]{1,200})\.json").fullmatch


class HttpJsonSource:
    """One file ``<id>.json`` for each item of a collection: ``GET url`` lists, ``GET url/<id>`` reads; read-only.

    A listing is a JSON array of items, or an object that holds one under `items`; the address of the next page is taken from the object's
    `next`, or from a ``Link`` header, and has to be on the same host. The revision of an item is its ETag, if the server gives one.
    """

    kind = "http-json"

    def __init__(
        self,
        url: str,
        *,
        id_field: str = "id",
        items: str = "items",
        next_field: str = "next",
        headers: Mapping[str, str] | None = None,
        client: httpx.AsyncClient | None = None,
        max_bytes: int = 8 << 20,
        item_url: Callable[[str], str] | None = None,
    ) -> None:
        """Make the source; no request is sent.

        Args:
            url: Address of the collection, http or https.
            id_field: Field of an item that names it.
            items: Field of a listing object that holds the items.
            next_field: Field of a listing object that holds the next page's address.
            headers: Sent with every request, e.g. an authorization; never shown.
            client: Use this client; whoever made it closes it. None makes one for each request.
            max_bytes: Longest answer that is read.
            item_url: Address of an item by its id; by default ``url/<id>``.

        Raises:
            InvalidInputError: A bad option (``INVALID_ARGUMENT``).
            UnsupportedError: The package httpx is not installed (``CAPABILITY_MISSING``).
        """
        need_extra("httpx", "http")
        parts = _address(url)
        for name, value in (("id_field", id_field), ("items", items), ("next_field", next_field)):
            given: object = value
            if not isinstance(given, str) or not given:
                raise refused_option(name, "the name of a field", given)
        check_headers(headers)
        if client is not None and not callable(getattr(client, "stream", None)):
            raise refused_option("client", "an httpx.AsyncClient or None", client)
        if item_url is not None and not callable(item_url):
            raise refused_option("item_url", "a function of an id, or None", item_url)
        whole_number("max_bytes", max_bytes, least=1)
        if max_bytes is None:
            raise refused_option("max_bytes", "a whole number of at least 1", max_bytes)
        self._url = url.rstrip("/")
        self._origin = (parts.scheme, parts.netloc)
        self._id_field, self._items, self._next = id_field, items, next_field
        self._headers = dict(headers or {})
        self._client = client
        self._max_bytes = max_bytes
        self._item_url = item_url or (lambda name: f"{self._url}/{quote(name, safe='')}")

    async def list(self, path: str, options: MountListOptions) -> ListResult:
        """List one page of the collection; it has no directories."""
        if path != options.mount_path:
            return ListResult([])
        answer = await self._get(self._checked(options.cursor or self._url))
        if answer is None:
            return ListResult([])
        value, _, following = answer
        items = value.get(self._items) if isinstance(value, dict) else value
        if not isinstance(items, list):
            raise _unusable("a listing without an array of items")
        if isinstance(value, dict) and isinstance(value.get(self._next), str):
            following = value[self._next]
        entries: list[WorkspaceEntry] = []
        for item in items:
            name = item.get(self._id_field) if isinstance(item, dict) else None
            if isinstance(name, str | int) and not isinstance(name, bool) and _is_id(str(name)):
                entries.append(
                    WorkspaceFile(
                        path=f"{path}/{_file_name(str(name))}",
                        content_kind="json",
                        mime_type="application/json",
                        size=len(dump_compact(item)),
                    )
                )
        return ListResult(entries, self._checked(following) if following else None)

    async def read(self, path: str, options: MountReadOptions) -> JsonContent | None:
        """Fetch an item."""
        name = _NAME(path[len(options.mount_path) :])
        item = None if name is None else _id_of(name[1])
        if item is None:
            return None
        answer = await self._get(self._item_url(item))
        if answer is None:
            return None
        value, etag, _ = answer
        metadata = None if etag is None else {"revision": etag}
        return JsonContent(path=path, content=value, metadata=metadata)

    def _checked(self, url: str) -> str:
        """Return an address that a server gave, if it is on the collection's own host."""
        absolute = urljoin(f"{self._url}/", url)
        parts = urlsplit(absolute)
        if (parts.scheme, parts.netloc) != self._origin:
            raise _unusable("the address of a next page on another host")
        return absolute

    async def _get(self, url: str) -> tuple[Any, str | None, str | None] | None:
        """Return (value, ETag, address of the next page), None when there is no such thing."""
        import httpx

        if self._client is not None:
            return await self._fetch(self._client, url)
        async with httpx.AsyncClient() as client:
            return await self._fetch(client, url)

    async def _fetch(
        self, client: httpx.AsyncClient, url: str
    ) -> tuple[Any, str | None, str | None] | None:
        headers = {"Accept": "application/json", **self._headers}
        async with client.stream("GET", url, headers=headers, follow_redirects=False) as answer:
            if answer.status_code in (404, 410):
                return None
            if answer.is_redirect:
                raise _unusable("a redirection")
            answer.raise_for_status()
            body = await at_most(answer.aiter_bytes(), self._max_bytes)
        if body is None:
            raise _unusable(f"an answer of more than {self._max_bytes:,} bytes")
        try:
            value = parse(body)
        except InvalidInputError as error:
            raise _unusable("an answer that is no JSON") from error
        link = answer.links.get("next", {}).get("url")
        return value, answer.headers.get("etag"), link


def _address(url: object) -> SplitResult:
    """Take a URL apart.

    Raises:
        InvalidInputError: It is no http or https address (``INVALID_ARGUMENT``).
    """
    if isinstance(url, str):
        with suppress(ValueError):  # it looks like an address and is none
            parts = urlsplit(url)
            if parts.scheme in ("http", "https") and parts.netloc:
                return parts
    raise InvalidInputError("url must be an http or https address.", details={"option": "url"})


def check_headers(headers: object) -> None:
    """Refuse headers that could not be sent (``INVALID_ARGUMENT``); the message shows none of them."""
    if headers is None:
        return
    if not isinstance(headers, Mapping):
        raise refused_option("headers", "a mapping of names to values, or None", headers)
    for name, value in headers.items():
        if not (isinstance(name, str) and name and isinstance(value, str)):
            raise refused_option("headers", "a mapping of str to str", value)


def _file_name(name: str) -> str:
    """Make a file name of an id; characters that a name cannot hold are escaped by ``~``."""
    return quote(name, safe="").replace("~", "~7E").replace("%", "~") + ".json"


def _id_of(name: str) -> str | None:
    """Return the id that a file is named after; None when there is no such, or it has another name."""
    item = unquote(name.replace("~", "%"))
    return item if _is_id(item) and _file_name(item) == f"{name}.json" else None


def _is_id(name: str) -> bool:
    """Tell whether an id can name a file, and stand in an address: dots would lead out of the collection, with the headers' rights."""
    if name in (".", "..") or writable(name) != name:
        return False
    return _NAME(f"/{_file_name(name)}") is not None


def _unusable(why: str) -> StorageError:
    return StorageError(
        f"The HTTP API returned something unusable: {why}.",
        code=ErrorCode.SOURCE_INVALID,
        hint="Whoever runs this workspace has to look at the API.",
    )
