"""The address of a service: checked once, so that no request can leave it."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlencode, urlsplit

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.bearers import is_bearer
from crux_workspace.model.sendable import writable

__all__ = ["Address"]


class Address:
    """Where a service is, and the token that is for it alone."""

    __slots__ = ("_token", "base")

    def __init__(self, base_url: str, token: str | None) -> None:
        self.base = _checked(base_url)
        self._token = _checked_token(token)

    def __repr__(self) -> str:
        return f"Address({self.base})"

    def url(self, route: str, query: Mapping[str, str]) -> str:
        """Return the address of a route; every value is percent-encoded whole."""
        target = f"{self.base}{route}"
        if not query:
            return target
        try:
            return f"{target}?{urlencode(query, quote_via=quote, safe='')}"
        except UnicodeEncodeError:
            wrong = [name for name, value in query.items() if writable(value) != value]
            raise InvalidInputError(
                f"{', '.join(wrong)} holds a lone surrogate, which UTF-8 cannot write.",
                details={"option": wrong[0]},
            ) from None

    def headers(self) -> dict[str, str]:
        """Return what every request says: who asks, and that answers are taken as they are."""
        found = {"Accept-Encoding": "identity", "User-Agent": "crux-workspace"}
        if self._token is not None:
            found["Authorization"] = f"Bearer {self._token}"
        return found


def _checked(base_url: object) -> str:
    if not isinstance(base_url, str):
        raise _refused("it is no str")
    try:
        parts = urlsplit(base_url)
        port = parts.port
    except ValueError:
        raise _refused("it cannot be read as one") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise _refused("it has to begin with http:// or https:// and a host")
    if parts.username is not None or parts.password is not None:
        raise _refused("it holds credentials; give them as token")
    if parts.query or parts.fragment or not base_url.isascii() or not base_url.isprintable():
        raise _refused("it has a query or fragment, or holds what an address cannot hold")
    if any(piece in (".", "..") for piece in parts.path.split("/")) or " " in base_url:
        raise _refused("its path has a segment that means another place")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def _checked_token(token: object) -> str | None:
    if token is None:
        return None
    if isinstance(token, str) and is_bearer(token):
        return token
    raise InvalidInputError(
        "token must be a non-empty string of visible ASCII characters, or None.",
        details={"option": "token"},
    )


def _refused(why: str) -> InvalidInputError:
    return InvalidInputError(
        f"base_url is not the address of a service: {why}.",
        details={"option": "base_url"},
        hint="Give for example 'https://files.example.com' or 'http://127.0.0.1:8321'.",
    )
