"""obstore's errors in this library's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.storage.assets import AssetNotFound
from crux_workspace.storage.extras import need

if TYPE_CHECKING:
    from obstore import exceptions as theirs
else:
    theirs = need("obstore.exceptions", "obstore")

__all__ = ["AlreadyThere", "damaged", "reporting"]

AlreadyThere = theirs.AlreadyExistsError
"""There is an object of that name."""

_DENIED = (theirs.PermissionDeniedError, theirs.UnauthenticatedError, PermissionError)

_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")
_SKEWED = "<Code>RequestTimeTooSkewed</Code>"
"""What S3 answers to a request whose time is not its own; the status is that of wrong keys."""
_REFUSED = ("status code: 401", "status code: 403")


def damaged() -> StorageError:
    """Return the error of bytes that are not those that were stored."""
    return StorageError(
        "An asset's bytes do not match their hash; read again, or restore it from a backup.",
        code=ErrorCode.RECORD_CORRUPT,
    )


@contextmanager
def reporting(ref: str | None = None) -> Iterator[None]:
    """Turn what obstore raises into the contract's words; with a ref, an object that is not there is `AssetNotFound`."""
    try:
        yield
    except (theirs.NotFoundError, FileNotFoundError) as error:
        if ref is not None and not _names(error, *_NO_BUCKET):
            raise AssetNotFound(ref) from error
        raise _nowhere() from error
    except _DENIED as error:
        raise _denied(error) from error
    except (theirs.BaseError, OSError, NotImplementedError) as error:
        raise _of_text(error) from error


def _of_text(error: Exception) -> StorageError:
    """Return the error that the text tells of: obstore gives the refusals of a listing no kind of their own."""
    if _names(error, *_REFUSED):
        return _denied(error)
    if _names(error, *_NO_BUCKET):
        return _nowhere()
    if _names(error, "timed out", "TimedOut"):
        return StorageError(
            "The object store did not answer in time; try again.", code=ErrorCode.STORE_TIMEOUT
        )
    return StorageError("The object store failed; check the endpoint, the network and its log.")


def _denied(error: Exception) -> StorageError:
    if _names(error, _SKEWED):
        return StorageError(
            "This machine's clock is too far from the server's; set it right.", retryable=False
        )
    return StorageError(
        "The credentials may not do that with the bucket of the assets; check keys, rights and clock.",
        retryable=False,
    )


def _nowhere() -> StorageError:
    return StorageError(
        "The bucket or folder of the assets does not exist; create it, or correct the assets URL.",
        retryable=False,
    )


def _names(error: Exception, *words: str) -> bool:
    text = str(error)
    return any(word in text for word in words)
