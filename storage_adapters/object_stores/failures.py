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
        if ref is not None and not any(code in str(error) for code in _NO_BUCKET):
            raise AssetNotFound(ref) from error
        raise StorageError(
            "The bucket or folder of the assets does not exist; create it, or correct the assets URL.",
            retryable=False,
        ) from error
    except _DENIED as error:
        raise StorageError(
            "The credentials may not do that with the bucket of the assets; check keys, rights and clock.",
            retryable=False,
        ) from error
    except (theirs.BaseError, OSError, NotImplementedError) as error:
        text = str(error)
        if "timed out" in text or "TimedOut" in text:
            raise StorageError(
                "The object store did not answer in time; try again.",
                code=ErrorCode.STORE_TIMEOUT,
            ) from error
        raise StorageError(
            "The object store failed; check the endpoint, the network and its log."
        ) from error
