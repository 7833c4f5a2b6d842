"""How to reach a bucket, and how hard to try."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from crux_workspace.errors import InvalidInputError
from crux_workspace.storage.extras import need

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["S3Settings"]

_LEAST_PART_BYTES = 5 << 20
THREADS = 16
"""Most calls of one store at a time, and connections it keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Settings:
    """What `S3AssetStore.open` makes its client of. Credentials are no setting: the SDK finds them where it always does."""

    endpoint_url: str | None = None
    """Where the service is; None means Amazon's own endpoint of the region."""
    region: str | None = None
    profile: str | None = None
    """Name of a profile of the SDK's configuration files."""
    addressing: Literal["auto", "path", "virtual"] = "auto"
    """Whether the bucket stands in the path or in the host name."""
    checksums: Literal["when_supported", "when_required"] = "when_supported"
    """``when_required`` is for servers that do not know S3's checksum headers; then only what one request stores is verified."""
    connect_timeout_s: float = 5.0
    read_timeout_s: float = 30.0
    """Longest wait for the server's next sign of life."""
    max_attempts: int = 4
    """How often the SDK sends a request in all before it gives up."""
    part_bytes: int = 8 << 20
    """Size of the parts of a multipart upload; an asset has at most 10,000 parts."""
    parallel_parts: int = 3
    """How many parts of one upload are under way at a time; each is held in memory."""

    def __post_init__(self) -> None:
        if self.part_bytes < _LEAST_PART_BYTES:
            raise InvalidInputError("part_bytes must be at least 5 MiB: S3 takes no smaller parts.")
        if min(self.parallel_parts, self.max_attempts) < 1:
            raise InvalidInputError("parallel_parts and max_attempts must be at least 1.")
        if min(self.connect_timeout_s, self.read_timeout_s) <= 0:
            raise InvalidInputError("A timeout must be more than 0 seconds.")

    def make_client(self) -> S3Client:
        """Make a client of the SDK; blocks while it reads its models.

        Raises:
            UnsupportedError: boto3 is not installed (``CAPABILITY_MISSING``).
        """
        session = need("boto3.session", "s3").Session(
            profile_name=self.profile, region_name=self.region
        )
        config = need("botocore.config", "s3").Config(
            connect_timeout=self.connect_timeout_s,
            read_timeout=self.read_timeout_s,
            retries={"mode": "standard", "total_max_attempts": self.max_attempts},
            max_pool_connections=THREADS,
            request_checksum_calculation=self.checksums,
            response_checksum_validation=self.checksums,
            signature_version="s3v4",
            s3={"addressing_style": self.addressing},
            user_agent_extra="crux-workspace",
        )
        client: S3Client = session.client("s3", endpoint_url=self.endpoint_url, config=config)
        return client
