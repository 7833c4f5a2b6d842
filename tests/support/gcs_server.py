"""Google Cloud Storage as obstore speaks to it, played by the S3 server of these tests.

Google's XML API is that of S3 with names of its own: this front holds callers to a service account's signed tokens and URLs, as
Google does, translates the names, and signs for the S3 server. No server from a package knows that API whole.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from tests.support.fault_proxy import listening
from tests.support.s3_server import S3Server

__all__ = ["GcsFront", "gcs_front"]

_SIGNED_HOST = "storage.googleapis.com"
"""What obstore signs URLs for, whichever endpoint it was given."""
_PASSED = ("content-type", "content-length", "range", "x-amz-meta-", "if-")
_DENIED = b"<Error><Code>AccessDenied</Code></Error>"
_ABSENT = b"<Error><Code>NoSuchKey</Code></Error>"


@dataclass
class GcsFront:
    """A listening front of one S3 server, with one service account."""

    server: S3Server
    url: str = ""
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    )

    @property
    def service_account_key(self) -> str:
        """The account's key file, as Google hands it out."""
        pem = self.key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        about = {"client_email": "tests@crux.invalid", "private_key_id": "1", "client_id": "1"}
        kind = {"type": "service_account", "token_uri": "https://crux.invalid/token"}
        return json.dumps({**kind, **about, "private_key": pem.decode()})

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one request."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")[:-2]
            headers = {n.lower(): v for n, v in (line.split(": ", 1) for line in lines)}
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            method, target, _ = first.split(" ")
            if not self._may(method, target, headers):
                writer.write(_refusal("403 Forbidden", _DENIED))
            elif method == "DELETE" and not await self._is_there(target):
                writer.write(_refusal("404 Not Found", _ABSENT))
            else:
                await self._pass_on(method, target, headers, body, writer)
            await writer.drain()
        writer.close()

    def _may(self, method: str, target: str, headers: dict[str, str]) -> bool:
        """Verify a token of the account, or a URL that it signed."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme == "Bearer" and token.count(".") == 2:
            said, _, signature = token.rpartition(".")
            return self._signed(said.encode(), base64.urlsafe_b64decode(signature + "=="))
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        signature = query.pop("X-Goog-Signature", "")
        if query.get("X-Goog-SignedHeaders") != "host":
            return False
        asked = "&".join(f"{n}={quote(v, safe='-_.~')}" for n, v in sorted(query.items()))
        canonical = [method, parts.path, asked, f"host:{_SIGNED_HOST}", "", "host"]
        digest = hashlib.sha256("\n".join([*canonical, "UNSIGNED-PAYLOAD"]).encode()).hexdigest()
        scope = query["X-Goog-Credential"].partition("/")[2]
        text = "\n".join(["GOOG4-RSA-SHA256", query["X-Goog-Date"], scope, digest])
        return self._signed(text.encode(), bytes.fromhex(signature))

    def _signed(self, text: bytes, signature: bytes) -> bool:
        try:
            public = self.key.public_key()
            public.verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return False
        return True

    async def _is_there(self, target: str) -> bool:
        if "?" in target:  # an upload that is given up
            return True
        answers, there = await self._send("HEAD", target, {}, b"")
        try:
            return b" 200 " in await answers.readuntil(b"\r\n")
        finally:
            there.transport.abort()

    async def _pass_on(
        self,
        method: str,
        target: str,
        headers: dict[str, str],
        body: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        path, _, query = target.partition("?")
        kept = [(n, v) for n, v in parse_qsl(query, keep_blank_values=True) if "X-Goog" not in n]
        asked = "&".join(f"{n}={quote(v, safe='-_.~')}" for n, v in kept)
        answers, there = await self._send(
            method, f"{path}?{asked}" if asked else path, _renamed(headers), body
        )
        try:
            head = await answers.readuntil(b"\r\n\r\n")
            writer.write(re.sub(rb"(?i)\r\nx-amz-meta-", b"\r\nx-goog-meta-", head))
            while piece := await answers.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        finally:
            there.transport.abort()

    async def _send(
        self, method: str, target: str, headers: dict[str, str], body: bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Sign a request for the S3 server, and send it."""
        who = self.server.member
        path, mark, query = target.partition("?")
        target = quote(unquote(path), safe="/-_.~") + mark + query
        url = f"{self.server.endpoint}{target}"
        request = AWSRequest(method, url, headers={**headers, "content-length": str(len(body))})
        request.headers["X-Amz-Content-SHA256"] = hashlib.sha256(body).hexdigest()
        S3SigV4Auth(Credentials(who.access_key, who.secret_key), "s3", "us-east-1").add_auth(
            request
        )
        parts = urlsplit(self.server.endpoint)
        answers, there = await asyncio.open_connection(parts.hostname, parts.port)
        lines = [f"{method} {target} HTTP/1.1", f"host: {parts.netloc}", "connection: close"]
        lines += [f"{name}: {value}" for name, value in request.headers.items()]
        there.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        await there.drain()
        return answers, there


def _renamed(headers: dict[str, str]) -> dict[str, str]:
    found = {n.replace("x-goog-meta-", "x-amz-meta-"): v for n, v in headers.items()}
    kept = {n: v for n, v in found.items() if n.startswith(_PASSED)}
    if headers.get("x-goog-if-generation-match") == "0":
        kept["if-none-match"] = "*"
    return kept


def _refusal(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    return head.encode() + body


@contextlib.asynccontextmanager
async def gcs_front(server: S3Server) -> AsyncIterator[GcsFront]:
    """Run a front of an S3 server."""
    front = GcsFront(server)
    async with listening(front.serve) as port:
        front.url = f"http://127.0.0.1:{port}"
        yield front
