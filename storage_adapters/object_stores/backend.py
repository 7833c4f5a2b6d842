"""What ``obstore+s3://``, ``gs://``, ``az://`` and ``obstore+file://`` URLs mean."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from crux_workspace.errors import InvalidInputError
from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.extras import need
from storage_adapters.object_stores.store import ObstoreAssetStore

__all__ = ["obstore_backend"]

_CONFIGURED = {
    "s3": {"endpoint_url": "endpoint", "region": "region"},
    "az": {"endpoint_url": "endpoint", "account": "account_name"},
    "gs": {"endpoint_url": "base_url"},
}
_CONNECT_S = 5.0
_REQUEST_S = 60.0
_RETRIES = 4


async def obstore_backend(url: str) -> AssetStore:
    """Open the assets of such a URL; asks the server nothing yet. Credentials come from the environment, as obstore finds them.

    Options: `endpoint_url`, `region` (S3), `account` (Azure), `timeout_s` (longest request) and `max_retries`;
    ``obstore+file:///folder`` takes none.

    Raises:
        InvalidInputError: It is no such URL, or holds credentials.
        UnsupportedError: obstore is not installed (``CAPABILITY_MISSING``).
    """
    parts = urlsplit(url)
    scheme = parts.scheme.removeprefix("obstore+")
    if "@" in parts.netloc:
        raise InvalidInputError(
            "An object store's URL holds no credentials; give them by the environment."
        )
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    if scheme == "file":
        return _local(parts.netloc, unquote(parts.path), options)
    if not parts.netloc or ":" in parts.netloc:
        raise InvalidInputError(f"The URL names a bucket or container: {parts.scheme}://name/path.")
    arguments = _arguments(scheme, options)
    try:
        store = need("obstore.store", "obstore").from_url(
            f"{scheme}://{quote(parts.netloc)}", **arguments
        )
    except (ValueError, _base_error()) as error:
        raise InvalidInputError(
            f"The object store does not take the settings of the {parts.scheme} URL; check them."
        ) from error
    prefix = unquote(parts.path).strip("/")
    return ObstoreAssetStore(store, prefix, base_uri=f"{scheme}://{parts.netloc}/")


def _local(host: str, path: str, options: dict[str, str]) -> AssetStore:
    if host not in ("", "localhost") or path.strip("/") == "" or options:
        raise InvalidInputError("The URL names an absolute folder: obstore+file:///path/to/folder.")
    store = need("obstore.store", "obstore").LocalStore(path, mkdir=True)
    return ObstoreAssetStore(store, base_uri=Path(path).as_uri() + "/", lists_in_order=False)


def _arguments(scheme: str, options: dict[str, str]) -> dict[str, Any]:
    known = {**_CONFIGURED[scheme], "timeout_s": "", "max_retries": ""}
    unknown = options.keys() - known
    if unknown:
        raise InvalidInputError(f"A {scheme} URL knows the options {', '.join(known)}.")
    try:
        timeout = timedelta(seconds=float(options.pop("timeout_s", _REQUEST_S)))
        retries = int(options.pop("max_retries", _RETRIES))
    except ValueError:
        raise InvalidInputError("timeout_s and max_retries are numbers.") from None
    client: dict[str, Any] = {
        "timeout": timeout,
        "connect_timeout": timedelta(seconds=_CONNECT_S),
        "user_agent": "crux-workspace",
    }
    if "endpoint_url" in options and _is_plain(options["endpoint_url"]):
        client["allow_http"] = True
    return {
        **{_CONFIGURED[scheme][name]: value for name, value in options.items()},
        "client_options": client,
        "retry_config": {"max_retries": retries, "retry_timeout": timeout * (retries + 1)},
    }


def _is_plain(endpoint: str) -> bool:
    """Whether an endpoint is reached without TLS; one with credentials would show them in the errors of obstore."""
    try:
        parts = urlsplit(endpoint)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.netloc or "@" in parts.netloc:
        raise InvalidInputError(
            "endpoint_url is an http:// or https:// URL with a host and without credentials; those come from the environment."
        )
    return parts.scheme == "http"


def _base_error() -> type[Exception]:
    error: type[Exception] = need("obstore.exceptions", "obstore").BaseError
    return error
