"""A real S3 server for tests: SeaweedFS, which knows conditional writes and checks signatures and checksums.

It is started once a process, when the first test asks for it, and killed at its end: it takes long to stop when asked.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from storage_adapters.s3 import S3Settings
from tests.support.ports import free_ports

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

__all__ = ["S3Server", "s3_server", "serving"]

_START_S = 60.0
_PORTS = (
    "master.port",
    "master.port.grpc",
    "volume.port",
    "volume.port.grpc",
    "filer.port",
    "filer.port.grpc",
    "s3.port",
    "s3.port.grpc",
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Somebody the server knows."""

    access_key: str
    secret_key: str


_ADMIN = Identity("TESTADMIN", "admin-secret")
_MEMBER = Identity("TESTMEMBER", "member-secret")
_READER = Identity("TESTREADER", "reader-secret")


@dataclass
class S3Server:
    """A running server with one bucket; the member may do what docs/deploy-s3.md asks for, the reader only read."""

    endpoint: str
    program: _Program
    bucket: str = "bucket"
    member: Identity = _MEMBER
    reader: Identity = _READER
    admin: Identity = _ADMIN
    _clients: dict[object, S3Client] = field(default_factory=dict)

    def client(
        self,
        identity: Identity | None = None,
        *,
        settings: S3Settings | None = None,
        endpoint: str | None = None,
    ) -> S3Client:
        """Return a client with the credentials of one identity; it stays open."""
        who, chosen, where = (
            identity or self.member,
            settings or S3Settings(),
            endpoint or self.endpoint,
        )
        found = self._clients.get((who, chosen, where))
        if found is None:
            found = self._clients[who, chosen, where] = _client(who, chosen, where)
        return found

    def start(self) -> None:
        """Start it, and wait until it keeps what it is given."""
        self.program.start()
        quick = S3Settings(connect_timeout_s=1, read_timeout_s=10, max_attempts=1)
        admin, member = self.client(_ADMIN, settings=quick), self.client(settings=quick)
        deadline = time.monotonic() + _START_S
        while True:
            try:
                with contextlib.suppress(admin.exceptions.BucketAlreadyOwnedByYou):
                    admin.create_bucket(Bucket=self.bucket)
                member.put_object(Bucket=self.bucket, Key="ready", Body=b"ready")
                return
            except Exception:
                if not self.program.runs or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def kill(self) -> None:
        """End it where it is."""
        self.program.kill()

    def url(self, prefix: str, *, endpoint: str | None = None) -> str:
        """Return the assets URL of a prefix."""
        where = quote(endpoint or self.endpoint, safe="")
        return f"s3://{self.bucket}/{quote(prefix)}?endpoint_url={where}&region=us-east-1&addressing=path"

    def keys(self, prefix: str) -> list[str]:
        """Return the keys of the objects below a prefix, as the server tells them."""
        pages = (
            self.client()
            .get_paginator("list_objects_v2")
            .paginate(Bucket=self.bucket, Prefix=prefix)
        )
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def uploads(self, prefix: str) -> list[str]:
        """Return the keys of the multipart uploads that are not finished."""
        found = self.client().list_multipart_uploads(Bucket=self.bucket, Prefix=prefix)
        return [upload["Key"] for upload in found.get("Uploads", ())]


def _client(who: Identity, chosen: S3Settings, endpoint: str) -> S3Client:
    import boto3.session
    import botocore.config

    config = botocore.config.Config(
        connect_timeout=chosen.connect_timeout_s,
        read_timeout=chosen.read_timeout_s,
        retries={"mode": "standard", "total_max_attempts": chosen.max_attempts},
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        request_checksum_calculation=chosen.checksums,
        response_checksum_validation=chosen.checksums,
        max_pool_connections=16,
    )
    session = boto3.session.Session(
        aws_access_key_id=who.access_key,
        aws_secret_access_key=who.secret_key,
        region_name="us-east-1",
    )
    return session.client("s3", endpoint_url=endpoint, config=config)


@functools.cache
def s3_server() -> S3Server:
    """Start the server of this process, or return the one that runs."""
    stack = contextlib.ExitStack()
    server = stack.enter_context(serving())
    atexit.register(stack.close)
    return server


@contextlib.contextmanager
def serving() -> Iterator[S3Server]:
    """Run a server of one's own, which may be killed and started again; nothing of it is left at the end."""
    folder = Path(tempfile.mkdtemp(prefix="crux-s3-"))
    program = _Program(folder)
    server = S3Server(program.endpoint, program)
    try:
        server.start()
        yield server
    finally:
        for client in server._clients.values():
            client.close()
        program.kill()
        shutil.rmtree(folder, ignore_errors=True)


class _Program:
    """The server's process, over one folder and on the same ports each time it is started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        actions = ["Read", "Write", "List"]
        identities = [
            {"name": "admin", "actions": ["Admin"], "credentials": [_credentials(_ADMIN)]},
            {
                "name": "member",
                "actions": [f"{action}:bucket" for action in actions],
                "credentials": [_credentials(_MEMBER)],
            },
            {
                "name": "reader",
                "actions": ["Read:bucket", "List:bucket"],
                "credentials": [_credentials(_READER)],
            },
        ]
        (folder / "identities.json").write_text(json.dumps({"identities": identities}))
        (folder / "data").mkdir()
        self._ports = dict(zip(_PORTS, free_ports(len(_PORTS)), strict=True))

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3.port']}"

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        weed = Path(sys.executable).with_name("weed")
        folder = self._folder
        command = [
            *(str(weed), "server", f"-dir={folder}/data", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *(f"-{name}={port}" for name, port in self._ports.items()),
            *("-filer", f"-filer.localSocket={folder}/filer.sock"),
            *("-s3", f"-s3.localSocket={folder}/s3.sock", f"-s3.config={folder}/identities.json"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0", "-s3.autoCreateBucket=false"),
            *("-master.volumeSizeLimitMB=64", "-volume.max=100", "-master.telemetry=false"),
            *("-master.electionTimeout=1s", "-master.heartbeatInterval=100ms"),
        ]
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _credentials(identity: Identity) -> dict[str, str]:
    return {"accessKey": identity.access_key, "secretKey": identity.secret_key}
