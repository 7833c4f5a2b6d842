"""Which servers and URLs are taken, and what is said of those that are not; credentials are said nowhere."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import subprocess
import sys
import traceback
from pathlib import Path
from urllib.parse import quote

import pytest
import trustme

from crux_workspace import open_workspace
from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    StateError,
    StorageError,
    UnsupportedError,
    WorkspaceError,
)
from storage_adapters.redis import RedisAssetStore, RedisRecordStore
from storage_adapters.redis.target import parse_target
from tests.support.fault_proxy import fault_proxy
from tests.support.ports import free_port
from tests.support.redis_servers import RedisServer, serving

pytestmark = pytest.mark.redis

A = "/workspace/a.md"
SECRET = "s3cr%t/@:ü"  # noqa: S105 - it guards a server of this test


@pytest.mark.parametrize(
    "url",
    [
        "redis://",
        "redis:///0",
        "redis://host:port",
        "redis://host:99999",
        "redis://host/one",
        "redis://host/-1",
        "redis://host/0?db=1",
        "redis://host?db=x",
        "redis://host?db=1&db=2",
        "redis://host?prefix=",
        "redis://host?prefix=a{b}",
        "redis://host?prefix=" + "x" * 65,
        "redis://host?timeout_ms=0",
        "redis://host?timeout_ms=1e3",
        "redis://host?ssl_ca_certs=/x",
        "redis://host?secret=1",
        "redis+unix://host/x",
        "redis+unix:///",
        "rediss+unix:///x",
    ],
)
def test_a_url_that_is_not_understood_is_refused_without_being_repeated(url: str) -> None:
    for given in (url, url.replace("//host", "//user:secret@host")):
        with pytest.raises(InvalidInputError) as caught:
            parse_target(given)
        assert caught.value.code == ErrorCode.INVALID_ARGUMENT
        assert "secret" not in repr(caught.value.to_dict())


def test_a_url_is_read_whole() -> None:
    target = parse_target(
        "rediss://us%40er:p%2Fw@[::1]:7000/5?prefix=a.b&ssl_ca_certs=/c&timeout_ms=7"
    )
    assert (target.kind, target.host, target.port, target.database) == ("tls", "::1", 7000, 5)
    assert (target.username, target.password) == ("us@er", "p/w")
    assert (target.prefix, target.timeout_s, dict(target.ssl)) == (
        "a.b",
        0.007,
        {"ssl_ca_certs": "/c"},
    )
    assert target.place == "rediss://[::1]:7000/5"
    assert "p/w" not in repr(target)
    assert "us@er" not in repr(target)
    unix = parse_target("redis+unix:///run/r%20s?db=2")
    assert (unix.kind, unix.host, unix.database) == ("unix", "/run/r s", 2)
    assert parse_target("redis://host").port == 6379


async def test_by_a_unix_socket(redis_server: RedisServer) -> None:
    url = f"redis+unix://{quote(str(redis_server.socket))}?db=4"
    async with open_workspace(url) as ws:
        await ws.write(A, "by socket")
        await ws.write("/workspace/b.bin", bytes(300_000))
    async with open_workspace(redis_server.url(4)) as ws:
        assert await ws.read_text(A) == "by socket"
        assert await ws.read_bytes("/workspace/b.bin") == bytes(300_000)


async def test_by_tls_and_only_with_a_certificate_that_is_trusted(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    trusted = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(trusted))
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    async with fault_proxy(("127.0.0.1", redis_server.port), tls=context) as proxy:
        url = f"rediss://localhost:{proxy.port}/0?timeout_ms=3000"
        async with open_workspace(f"{url}&ssl_ca_certs={trusted}") as ws:
            await ws.write(A, "sealed")
            await ws.write("/workspace/b.bin", bytes(500_000))
            async with ws.watch(start="oldest") as events:
                assert (await anext(events)).path == A
            assert await ws.read_bytes("/workspace/b.bin") == bytes(500_000)
        with pytest.raises(StorageError):
            await open_workspace(f"{url}&ssl_ca_certs={other}")
        with pytest.raises(StorageError):
            await open_workspace(f"{url}&ssl_ca_certs={tmp_path}/missing.pem")


async def test_two_prefixes_and_two_databases_side_by_side(redis_server: RedisServer) -> None:
    urls = [redis_server.url(5), redis_server.url(5, prefix="other"), redis_server.url(6)]
    for number, url in enumerate(urls):
        async with open_workspace(url) as ws:
            assert not (await ws.namespaces()).names
            assert await ws.stat(A) is None
            await ws.write(A, f"text {number}")
            await ws.write("/workspace/b.bin", bytes([number]) * 300_000)
    for number, url in enumerate(urls):
        async with open_workspace(url) as ws:
            assert await ws.read_text(A) == f"text {number}"
            assert await ws.read_bytes("/workspace/b.bin") == bytes([number]) * 300_000
            assert len(await ws.log()) == 2
            assert (await ws.namespaces()).names == ["default"]
    async with open_workspace(urls[0]) as ws:
        heard = []
        async with ws.watch(poll_interval_ms=60_000) as events:
            await asyncio.sleep(0.3)
            for url in urls[1:]:
                async with open_workspace(url) as other:
                    await other.write(A, "elsewhere")
            async with open_workspace(urls[0]) as same:
                await same.write(A, "here")
            async with asyncio.timeout(10):
                heard.append(await anext(events))
            assert [event.version for event in heard] == [2]
        await ws.drop_namespace("default")
    for url in urls[1:]:
        async with open_workspace(url) as ws:
            assert await ws.read_text(A) == "elsewhere"
    with redis_server.client(5) as client:
        assert not [
            key for key in client.scan_iter() if b"partition" in key and key.startswith(b"crux")
        ]


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
async def test_a_server_that_evicts_is_refused(redis_server: RedisServer, policy: str) -> None:
    with redis_server.client() as client:
        client.config_set("maxmemory-policy", policy)
        try:
            with pytest.raises(UnsupportedError) as caught:
                await open_workspace(redis_server.url())
        finally:
            client.config_set("maxmemory-policy", "noeviction")
    assert caught.value.code == ErrorCode.CAPABILITY_MISSING
    assert caught.value.details == {"maxmemory_policy": policy}
    assert "noeviction" in caught.value.message


async def test_nobody_there_and_nobody_who_answers() -> None:
    with pytest.raises(StorageError) as caught:
        await open_workspace(f"redis://127.0.0.1:{free_port()}/0")
    assert (caught.value.code, caught.value.retryable) == (ErrorCode.STORE_UNAVAILABLE, True)
    with pytest.raises(StorageError):
        await open_workspace("redis+unix:///no/such/socket")
    with serving() as server:
        server.pause()
        with pytest.raises(StorageError) as caught:
            await open_workspace(server.url(timeout_ms=200))
        assert caught.value.code == ErrorCode.STORE_TIMEOUT


async def test_a_database_that_the_server_has_not(redis_server: RedisServer) -> None:
    with pytest.raises(StorageError):
        await open_workspace(redis_server.url(9_999))


async def test_a_durable_server_is_told_from_one_that_is_not(redis_server: RedisServer) -> None:
    async with await RedisRecordStore.open(redis_server.url()) as store:
        assert not store.capabilities.durable
    with serving(appendonly="yes") as server:
        async with await RedisRecordStore.open(server.url()) as store:
            assert store.capabilities.durable


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        self.lines.append(f"{record.getMessage()} {record.args} {trace}")


async def test_credentials_are_nowhere_to_be_read() -> None:
    """In errors with all their causes, in reprs and in logs; with the right password, a wrong one, and no server at all."""
    lines = _Lines()
    root = logging.getLogger()
    level = root.level
    root.addHandler(lines)
    root.setLevel(logging.DEBUG)
    told: list[str] = []
    try:
        with serving(requirepass=SECRET) as server:
            place = f"127.0.0.1:{server.port}/0?timeout_ms=300"
            right = f"redis://:{quote(SECRET, safe='')}@{place}"
            wrong = f"redis://:{quote('x' + SECRET, safe='')}@{place}"
            for url in (
                wrong,
                f"redis://{place}",
                f"redis://nobody:{quote(SECRET, safe='')}@{place}",
            ):
                with pytest.raises(StorageError) as caught:
                    await open_workspace(url)
                assert not caught.value.retryable
                told += [*traceback.format_exception(caught.value), repr(caught.value.to_dict())]
            async with await RedisRecordStore.open(right) as store:
                async with await RedisAssetStore.open(right) as assets:
                    told += [repr(store), repr(assets), repr(store._link), repr(vars(store))]
                    told += [repr(store._link._seed), repr(store._target)]
                ws = await open_workspace(right)
                put = await ws.write("/workspace/b.bin", bytes(300_000))
                told += [
                    repr(ws),
                    repr(put),
                    repr(ws.describe() if hasattr(ws, "describe") else ""),
                ]
                server.kill()
                for call in (ws.read(A), ws.write(A, "x"), store.sequences(["p"])):
                    with pytest.raises(WorkspaceError) as failed:
                        await call
                    told += traceback.format_exception(failed.value)
                await ws.aclose()
    finally:
        root.setLevel(level)
        root.removeHandler(lines)
    for text in [*told, *lines.lines]:
        assert SECRET not in text
        assert quote(SECRET, safe="") not in text


async def test_a_closed_store_says_so_and_closing_waits_for_commits(
    redis_server: RedisServer,
) -> None:
    ws = await open_workspace(redis_server.url())
    writing = asyncio.create_task(ws.write(A, "x"))
    await asyncio.sleep(0)
    await ws.aclose()
    assert (await writing).version == 1
    store = await RedisRecordStore.open(redis_server.url())
    await store.aclose()
    for call in (store.sequences(["p"]), store.get_many("p", ["k"]), store.partitions("", limit=1)):
        with pytest.raises(StateError) as caught:
            await call
        assert caught.value.code == ErrorCode.WORKSPACE_CLOSED
    assert "closed" in repr(store)


def test_another_loop_and_a_forked_child_are_refused(redis_server: RedisServer) -> None:
    async def opened() -> RedisRecordStore:
        return await RedisRecordStore.open(redis_server.url())

    with asyncio.Runner() as first, asyncio.Runner() as second:
        store = first.run(opened())
        with pytest.raises(StateError) as caught:
            second.run(store.sequences(["p"]))
        assert caught.value.code == ErrorCode.WRONG_LOOP
        child = os.fork()
        if child == 0:
            code = 1
            try:
                first.run(store.sequences(["p"]))
            except StateError as error:
                code = 0 if error.code == ErrorCode.FORKED else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert first.run(store.sequences(["p"])) == [0]
        first.run(store.aclose())


def test_a_missing_driver_names_the_extra() -> None:
    code = (
        "import asyncio, sys\n"
        "sys.modules['redis'] = None\n"
        "from crux_workspace import open_workspace\n"
        "from crux_workspace.errors import UnsupportedError\n"
        "async def main():\n"
        "    try:\n"
        "        await open_workspace('redis://localhost')\n"
        "    except UnsupportedError as error:\n"
        "        assert error.code == 'CAPABILITY_MISSING'\n"
        "        print(error.message)\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert "pip install 'crux-workspace[redis]'" in done.stdout
