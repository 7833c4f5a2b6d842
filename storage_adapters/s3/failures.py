"""The SDK's errors in this library's words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from crux_workspace.errors import ErrorCode, StorageError, WorkspaceError
from crux_workspace.storage.assets import AssetNotFound
from crux_workspace.storage.extras import need

if TYPE_CHECKING:
    from botocore import exceptions as sdk
else:
    sdk = need("botocore.exceptions", "s3")

__all__ = ["answered", "code_of", "damaged", "is_broken_body", "reporting", "status_of"]

_TIMEOUTS = (sdk.ConnectTimeoutError, sdk.ReadTimeoutError)
_BROKEN_BODIES = (
    sdk.ReadTimeoutError,
    sdk.ResponseStreamingError,
    sdk.IncompleteReadError,
    ConnectionError,
)
_REFUSALS = {
    "NoSuchBucket": "The bucket of the assets does not exist; create it, or correct the assets URL.",
    "AccessDenied": "The credentials may not do that with the bucket of the assets; see the policy in docs/deploy-s3.md.",
    "AllAccessDisabled": "The account of the bucket of the assets is disabled; see to it.",
    "InvalidAccessKeyId": "The server does not know the access key; correct the credentials.",
    "SignatureDoesNotMatch": "The server refused the signature; correct the secret key.",
    "ExpiredToken": "The session's credentials have expired; renew them.",
    "InvalidToken": "The session's credentials are not valid; renew them.",
    "RequestTimeTooSkewed": "This machine's clock is too far from the server's; set it right.",
    "PermanentRedirect": "The bucket is in another region; name the region in the assets URL.",
    "AuthorizationHeaderMalformed": "The bucket is in another region; name the region in the assets URL.",
    "QuotaExceeded": "The bucket of the assets is full; make room.",
}
_BUSY = frozenset({"SlowDown", "Throttling", "ThrottlingException"})
_DAMAGED = frozenset({"BadDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch"})


def code_of(error: BaseException) -> str:
    """Return the code the server gave, or an empty string."""
    if not isinstance(error, sdk.ClientError):
        return ""
    return str(error.response.get("Error", {}).get("Code", ""))


def status_of(error: BaseException) -> int:
    """Return the status the server answered with, or 0."""
    if not isinstance(error, sdk.ClientError):
        return 0
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def answered(error: BaseException) -> bool:
    """Tell whether the server refused for good: then nothing was done, and nothing will be."""
    return 400 <= status_of(error) < 500


def is_broken_body(error: BaseException) -> bool:
    """Tell whether a body ended before its time; asking for the rest may help."""
    return isinstance(error, _BROKEN_BODIES)


def damaged() -> StorageError:
    """Return the error of bytes that are not those that were stored."""
    return StorageError(
        "An asset's bytes do not match their checksum; read again, or restore it from a backup.",
        code=ErrorCode.RECORD_CORRUPT,
    )


@contextmanager
def reporting(ref: str | None = None) -> Iterator[None]:
    """Turn what the SDK raises into the contract's words; with a ref, an object that is not there is `AssetNotFound`."""
    try:
        yield
    except (sdk.BotoCoreError, sdk.ClientError, ConnectionError) as error:
        missing = code_of(error) in ("NoSuchKey", "404") and status_of(error) == 404
        if ref is not None and missing:
            raise AssetNotFound(ref) from error
        raise _translated(error) from error


def _translated(error: Exception) -> WorkspaceError:
    code, status = code_of(error), status_of(error)
    if isinstance(error, sdk.FlexibleChecksumError):
        return damaged()
    if isinstance(error, _TIMEOUTS) or code in ("RequestTimeout", "RequestTimeoutException"):
        return StorageError(
            "The S3 server did not answer in time; try again.", code=ErrorCode.STORE_TIMEOUT
        )
    if isinstance(error, (sdk.NoCredentialsError, sdk.PartialCredentialsError)):
        return StorageError(
            "The SDK found no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role.",
            retryable=False,
        )
    return _of_the_server(code, status)


def _of_the_server(code: str, status: int) -> StorageError:
    if status in (401, 403) and code not in _REFUSALS:  # the answer to HEAD has no body, so no code
        code = "AccessDenied"
    if code in _REFUSALS:
        return StorageError(_REFUSALS[code], retryable=False)
    if code in _DAMAGED:
        return StorageError("The asset was damaged on its way to the server; try again.")
    if status == 503 or code in _BUSY:
        return StorageError("The S3 server asks for fewer requests; try again later.")
    if status == 0:
        return StorageError("The S3 server cannot be reached; check the endpoint and the network.")
    return StorageError(
        f"The S3 server refused the request ({code or status}); see its log.",
        retryable=status >= 500,
    )
