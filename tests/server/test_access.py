"""Who is let in: tokens, session cookies, this machine; and what other sites cannot make a browser do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from crux_workspace import Workspace, open_workspace
from crux_workspace.errors import InvalidInputError
from crux_workspace.server import Token, hash_token, load_tokens, new_token, service_app
from crux_workspace.server.sessions import Sessions
from tests.server.conftest import SECRET
from tests.support.services import serving, token_of

WRITE = {"path": "/workspace/a.md", "content": "x"}


@pytest.mark.parametrize(
    "header",
    [
        None,
        "Bearer",
        "Bearer x",
        f"Basic {SECRET}",
        SECRET,
        f"Bearer {SECRET}x",
        f"Bearer {SECRET[:-1]}",
        f"Bearer {SECRET.upper()}",
        "Bearer " + hash_token(SECRET),
        "Bearer \xe9\xe9",
    ],
)
async def test_without_its_token_nobody_is_let_in(url: str, header: str | None) -> None:
    headers = {} if header is None else {b"authorization": header.encode("latin-1")}
    async with httpx.AsyncClient(base_url=url) as http:
        for method, path in (
            ("GET", "/v1/list"),
            ("POST", "/v1/write"),
            ("GET", "/metrics"),
            ("GET", "/v1/events"),
        ):
            answer = await http.request(method, path, headers=headers)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), path
            assert answer.headers["content-type"] == "application/problem+json"
        for path in ("/healthz", "/readyz", "/openapi.json"):
            assert (await http.get(path, headers=headers)).status_code == 200


async def test_the_scheme_is_spelled_as_one_likes(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        assert (
            await http.get("/v1/list", headers={"authorization": f"bEARER  {SECRET}"})
        ).status_code == 200


async def test_without_tokens_it_reads_only_unless_told(ws: Workspace) -> None:
    for write, status in ((False, 403), (True, 200)):
        async with serving(ws, write=write) as url, httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/v1/list")).status_code == 200
            assert (await http.post("/v1/write", json=WRITE)).status_code == status
            assert (await http.get("/v1/session")).json()["write"] is write


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
    ],
)
async def test_other_sites_cannot_write_to_this_machine(
    ws: Workspace, headers: dict[str, str], status: int
) -> None:
    async with serving(ws, write=True) as url, httpx.AsyncClient(base_url=url) as http:
        assert (await http.post("/v1/write", json=WRITE, headers=headers)).status_code == status
        own = {"origin": url}
        assert (await http.post("/v1/write", json=WRITE, headers=own)).status_code == 200


async def test_a_name_that_was_made_to_point_here_is_not_answered(ws: Workspace) -> None:
    hosts = ("localhost", "127.0.0.1", "[::1]")
    async with serving(ws, hosts=hosts) as url, httpx.AsyncClient(base_url=url) as http:
        for host, status in (
            ("evil.example", 421),
            ("evil.example:80", 421),
            ("localhost:8000", 200),
            ("127.0.0.1", 200),
            ("[::1]:80", 200),
            ("", 421),
            ("localhost.evil.example", 421),
            ("127.0.0.1.evil.example:80", 421),
        ):
            assert (await http.get("/v1/list", headers={"host": host})).status_code == status, host


# -- a browser's session


async def test_a_browser_exchanges_its_token_for_a_cookie(url: str, ws: Workspace) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        assert (await http.post("/v1/session", json={})).status_code == 401
        begun = await http.post(
            "/v1/session", json={}, headers={"authorization": f"Bearer {SECRET}"}
        )
        assert begun.status_code == 204
        cookie = begun.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert SECRET not in cookie
        assert (await http.get("/v1/list")).status_code == 200
        mark = {"x-workspace-request": "1"}
        for headers, status in (
            ({}, 403),
            (mark, 200),
            (mark | {"origin": "https://evil.example"}, 403),
            (mark | {"sec-fetch-site": "cross-site"}, 403),
            (mark | {"sec-fetch-site": "same-origin", "origin": url}, 200),
        ):
            answer = await http.post("/v1/write", json=WRITE, headers=headers)
            assert answer.status_code == status, headers
        body = b"path=x"
        form = {"content-type": "application/x-www-form-urlencoded"}
        assert (await http.post("/v1/write", content=body, headers=form)).status_code == 403
        assert (await http.delete("/v1/session")).status_code == 403
        ended = await http.delete("/v1/session", headers=mark)
        assert ended.status_code == 204
        stolen = begun.headers["set-cookie"].partition(";")[0]
        assert (await http.get("/v1/list", headers={"cookie": stolen})).status_code == 401


async def test_a_wrong_token_is_not_made_good_by_a_cookie(url: str) -> None:
    async with httpx.AsyncClient(base_url=url) as http:
        await http.post("/v1/session", json={}, headers={"authorization": f"Bearer {SECRET}"})
        assert (
            await http.get("/v1/list", headers={"authorization": "Bearer wrong"})
        ).status_code == 401


def test_sessions_end_by_themselves() -> None:
    now = 0.0
    sessions = Sessions(lambda: now)
    who: Any = object()
    secret = sessions.begin(who)
    assert sessions.find(secret) is who
    now = 12 * 3_600 + 1
    assert sessions.find(secret) is None
    who = object()
    assert [sessions.find(sessions.begin(who)) is who for _ in range(1_100)] == [True] * 1_100
    assert len(sessions._open) <= 1_000


# -- who did it


async def test_commits_say_who_made_them(ws: Workspace) -> None:
    tokens = [
        token_of("secret-of-named-token", name="named", access="readwrite"),
        token_of("secret-of-fixed-token", name="fixed", access="readwrite", actor="agent:fixed"),
    ]
    async with serving(ws, tokens=tokens) as url, httpx.AsyncClient(base_url=url) as http:
        for secret, claimed in (("named", None), ("named", "agent:x"), ("fixed", "agent:x")):
            headers = {"authorization": f"Bearer secret-of-{secret}-token"}
            if claimed is not None:
                headers["workspace-actor"] = claimed
            assert (await http.post("/v1/write", json=WRITE, headers=headers)).status_code == 200
        bad = {"authorization": "Bearer secret-of-named-token", "workspace-actor": "x" * 600}
        assert (await http.post("/v1/write", json=WRITE, headers=bad)).status_code == 400
    assert [entry.actor for entry in await ws.log()] == ["agent:fixed", "agent:x", "named"]
    async with serving(ws, write=True) as url, httpx.AsyncClient(base_url=url) as http:
        await http.post("/v1/write", json=WRITE, headers={"workspace-actor": "agent:%C3%BC%25"})
    assert (await ws.log(limit=1))[0].actor == "agent:ü%"
    acting = ws.acting_as("agent:served")
    async with serving(acting, write=True) as url, httpx.AsyncClient(base_url=url) as http:
        await http.post("/v1/write", json=WRITE)
    assert (await ws.log(limit=1))[0].actor == "agent:served"


async def test_a_workspace_bound_to_a_namespace_serves_no_other(ws: Workspace) -> None:
    await ws.write("/workspace/a.md", "x", namespace="other")
    async with (
        serving(ws.for_namespace("mine"), write=True) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        assert (await http.post("/v1/write", json=WRITE)).status_code == 200
        assert (await http.get("/v1/namespaces")).json()["names"] == ["mine"]
        assert (await http.get("/v1/list", params={"namespace": "other"})).status_code == 403
        assert (await http.get("/v1/list", params={"namespace": "mine"})).status_code == 200


async def test_a_workspace_without_a_namespace_asks_for_one() -> None:
    async with (
        open_workspace("memory://", namespace=None) as ws,
        serving(ws, write=True) as url,
        httpx.AsyncClient(base_url=url) as http,
    ):
        assert (await http.get("/v1/list")).status_code == 400
        assert (await http.get("/v1/list", params={"namespace": "a"})).status_code == 200


# -- tokens


def test_a_file_of_tokens(tmp_path: Path) -> None:
    toml = tmp_path / "tokens.toml"
    toml.write_text(
        f'[[tokens]]\nname = "a"\nhash = "{hash_token(SECRET)}"\nmounts = ["/outputs/"]\nnamespaces = ["x"]\n'
    )
    [token] = load_tokens(toml)
    assert (token.mounts, token.namespaces, token.writes, token.approvals) == (
        ("/outputs",),
        ("x",),
        False,
        False,
    )
    assert SECRET not in repr(token)
    assert hash_token(SECRET) not in repr(token)
    as_json = tmp_path / "tokens.json"
    as_json.write_text(
        json.dumps({"tokens": [{"name": "a", "hash": hash_token(SECRET), "access": "readwrite"}]})
    )
    assert load_tokens(as_json)[0].writes


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"name": "a"},
        {"name": "a", "hash": SECRET},
        {"name": "a", "hash": "sha256:" + "0" * 63},
        {"name": "", "hash": "sha256:" + "0" * 64},
        {"access": "write"},
        {"namespaces": "x"},
        {"namespaces": [1]},
        {"namespaces": [""]},
        {"mounts": []},
        {"mounts": ["x"]},
        {"mounts": ["/a/../b"]},
        {"all_namespaces": 1},
        {"approvals": "yes"},
        {"actor": ""},
        {"actor": 1},
        {"unknown": True},
        {"token": SECRET},
    ],
)
def test_a_token_that_is_wrong_is_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    whole = (
        entry
        if not entry or "name" in entry
        else {"name": "a", "hash": "sha256:" + "0" * 64} | entry
    )
    path = tmp_path / "tokens.json"
    path.write_text(json.dumps({"tokens": [whole]}))
    with pytest.raises(InvalidInputError) as raised:
        load_tokens(path)
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"tokens": {}}',
        '{"tokens": []}',
        '{"tokens": [], "more": 1}',
        '{"tokens": [1]}',
        "{",
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(text)
    with pytest.raises(InvalidInputError):
        load_tokens(path)
    with pytest.raises(InvalidInputError):
        load_tokens(tmp_path / "none.toml")


def test_tokens_are_long_random_and_told_apart(ws: Workspace) -> None:
    assert len({new_token() for _ in range(100)}) == 100
    for short in ("short", "has a space in it here", "ünïcödë-is-not-a-header", ""):
        with pytest.raises(InvalidInputError):
            hash_token(short)
    one = Token(name="a", hash=hash_token(SECRET))
    with pytest.raises(InvalidInputError):
        service_app(ws, tokens=[one, Token(name="b", hash=hash_token(SECRET))])
    with pytest.raises(InvalidInputError):
        service_app(ws, tokens=[one, Token(name="a", hash=hash_token(SECRET + "2"))])
    for mounts in (("/nowhere",), ("/outputs", "/elsewhere/x")):
        with pytest.raises(InvalidInputError):
            service_app(ws, tokens=[Token(name="a", hash=hash_token(SECRET), mounts=mounts)])
