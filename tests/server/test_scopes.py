"""A token that may see a part sees nothing else, whatever it asks for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from crux_workspace import Limits, Mount, Workspace, open_workspace
from tests.support.services import serving, token_of

HIDDEN = "zzhidden"
"""In every name and content that the restricted token may not see."""
MOUNTS = [
    Mount("/workspace"),
    Mount("/outputs"),
    Mount(f"/{HIDDEN}"),
]
TOKENS: dict[str, dict[str, Any]] = {
    "whole": {"access": "readwrite", "all_namespaces": True, "approvals": True},
    "part": {"access": "readwrite", "mounts": ("/workspace/public", "/outputs")},
    "reader": {"access": "read"},
    "lent": {
        "access": "readwrite",
        "namespaces": ("lent", "lent:2"),
        "namespace_prefixes": ("team:7:",),
    },
}


def secret_of(name: str) -> str:
    return f"secret-of-{name}-0123456789"


@pytest.fixture
async def ws() -> AsyncIterator[Workspace]:
    async with open_workspace(
        "memory://", mounts=MOUNTS, limits=Limits(max_namespace_bytes=1_000_000)
    ) as opened:
        yield opened


@pytest.fixture
async def clients(ws: Workspace) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    tokens = [
        token_of(secret_of(name), **(rights | {"name": name})) for name, rights in TOKENS.items()
    ]
    async with serving(ws, tokens=tokens) as url, AsyncExitStack() as stack:
        yield {
            name: await stack.enter_async_context(
                httpx.AsyncClient(
                    base_url=url, headers={"authorization": f"Bearer {secret_of(name)}"}
                )
            )
            for name in TOKENS
        }


@pytest.fixture
async def part(clients: dict[str, httpx.AsyncClient]) -> httpx.AsyncClient:
    return clients["part"]


async def get(client: httpx.AsyncClient, route: str, /, **params: Any) -> httpx.Response:
    return await client.get(f"/v1/{route}", params=params)


async def post(client: httpx.AsyncClient, route: str, /, **body: Any) -> httpx.Response:
    return await client.post(f"/v1/{route}", json=body)


async def test_only_its_own_mounts_are_there(ws: Workspace, part: httpx.AsyncClient) -> None:
    await ws.write("/workspace/public/a.md", "open")
    await ws.write(f"/workspace/{HIDDEN}.md", f"{HIDDEN} text")
    await ws.write(f"/{HIDDEN}/b.md", f"{HIDDEN} text", status="final")
    listed = (await get(part, "list", path="/", recursive="true")).json()
    assert [entry["path"] for entry in listed["entries"]] == ["/workspace/public/a.md"]
    top = (await get(part, "list", path="/workspace")).json()
    assert [entry["path"] for entry in top["entries"]] == ["/workspace/public"]
    for path, params in (
        ("list", {"path": f"/workspace/{HIDDEN}*"}),
        ("list", {"path": "/**", "glob": "true"}),
        ("grep", {"query": "text"}),
        ("grep", {"query": "text", "path": "/"}),
        ("artifacts", {}),
        ("artifacts", {"path": "/"}),
        ("log", {}),
        ("log", {"path": "/"}),
        ("describe", {}),
        ("session", {}),
        ("namespaces", {}),
        ("usage", {}),
        ("log", {"path": f"/{HIDDEN}"}),
        ("history", {"path": f"/{HIDDEN}/b.md"}),
        ("diff", {"path": f"/{HIDDEN}/b.md"}),
        ("file", {"path": f"/{HIDDEN}/b.md"}),
        ("content", {"path": f"/{HIDDEN}/b.md"}),
        ("stat", {"path": f"/{HIDDEN}/b.md"}),
        ("exists", {"path": f"/{HIDDEN}"}),
        ("content", {"path": f"/{HIDDEN}/b.md", "at": "3"}),
        ("list", {"path": "/", "recursive": "true", "at": "3"}),
        ("grep", {"query": "text", "at": "3"}),
        ("artifacts", {"at": "3"}),
        ("traces/versions", {}),
    ):
        answer = await get(part, path, **params)
        told = answer.text.replace(json.dumps(params.get("path", "-")).strip('"'), "")
        assert HIDDEN not in told, (path, params, answer.text)
        assert answer.status_code in (200, 400, 403, 404), (path, params)


@pytest.mark.parametrize("how", ["alone", "as it was", "staged", "in operations"])
@pytest.mark.parametrize(
    "away",
    [
        f"/{HIDDEN}/b.md",
        f"/workspace/{HIDDEN}.md",
        f"/workspace/public/../{HIDDEN}.md",
        f"/workspace/public{HIDDEN}/c.md",
    ],
)
async def test_several_files_at_once_are_read_from_its_own_mounts_only(
    ws: Workspace, part: httpx.AsyncClient, how: str, away: str
) -> None:
    here, none = "/workspace/public/a.md", f"{away}.none"
    await ws.write(here, "open")
    for path in (f"/{HIDDEN}/b.md", f"/workspace/{HIDDEN}.md", f"/workspace/public{HIDDEN}/c.md"):
        await ws.write(path, "kept from others")
    params = {"at": "4"} if how == "as it was" else {}
    begun = (await post(part, "transaction/begin")).json()
    headers = {"workspace-transaction": begun["transaction"]} if how == "staged" else {}

    async def read(*paths: str) -> httpx.Response:
        if how == "in operations":
            return await post(
                part, "transaction", operations=[{"verb": "read_many", "paths": list(paths)}]
            )
        return await part.post(
            "/v1/read_many", json={"paths": list(paths)}, params=params, headers=headers
        )

    allowed = await read(here)
    assert allowed.status_code == 200, allowed.text
    assert '"open"' in allowed.text
    told = []
    for paths in ([away], [here, away], [away, here], [here, none]):
        answer = await read(*paths)
        assert answer.status_code in (400, 403), answer.text
        assert "kept from others" not in answer.text
        assert '"open"' not in answer.text
        told.append((answer.status_code, answer.json()["code"]))
    assert len(set(told)) == 1, told


@pytest.mark.parametrize("path", ["usage"])
async def test_totals_of_the_namespace_are_refused(part: httpx.AsyncClient, path: str) -> None:
    answer = await get(part, path)
    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")


async def test_nothing_outside_can_be_changed(ws: Workspace, part: httpx.AsyncClient) -> None:
    await ws.write("/workspace/public/a.md", "open")
    await ws.write(f"/{HIDDEN}/b.md", "kept")
    away = f"/{HIDDEN}/b.md"
    here = "/workspace/public/a.md"
    for verb, body in (
        ("write", {"path": away, "content": "x"}),
        ("edit", {"path": away, "find": "kept", "replace": "x"}),
        ("append", {"path": away, "text": "x"}),
        ("set", {"path": away, "kind": "x"}),
        ("rename", {"src": away, "dst": "/outputs/b.md"}),
        ("move", {"src": here, "dst": f"/{HIDDEN}/c.md"}),
        ("copy", {"src": away, "dst": "/outputs/b.md"}),
        ("copy", {"src": here, "dst": f"/{HIDDEN}/c.md"}),
        ("copy", {"src": here, "dst": here, "to_namespace": "other"}),
        ("undo", {"path": away}),
        ("redo", {"path": away}),
        ("finalize", {"path": away}),
        ("withdraw", {"path": away}),
        ("gc", {}),
        ("drop_namespace", {"name": "default"}),
        ("drop_namespace", {"name": "other"}),
        ("write", {"path": "/workspace/x", "content": 1}),
        (
            "transaction",
            {
                "operations": [
                    {"verb": "write", "path": here, "content": "x"},
                    {"verb": "delete", "path": away},
                ]
            },
        ),
        ("transaction", {"operations": [{"verb": "copy", "src": away, "dst": "/outputs/b.md"}]}),
    ):
        answer = await post(part, verb, **body)
        assert answer.status_code in (400, 403, 409), (verb, body, answer.text)
    for method, params in (
        ("PUT", {"path": away}),
        ("DELETE", {"path": away}),
        ("DELETE", {"path": f"/{HIDDEN}", "recursive": "true"}),
    ):
        assert (await part.request(method, "/v1/file", params=params)).status_code == 403
    assert await ws.read_text(away) == "kept"
    assert await ws.read_text(here) == "open"
    assert [entry.sequence for entry in await ws.log()] == [2, 1]


async def test_a_rename_over_the_border_shows_one_end(
    ws: Workspace, part: httpx.AsyncClient
) -> None:
    cursor = await ws.cursor()
    await ws.write(f"/{HIDDEN}/b.md", "one")
    await ws.write(f"/{HIDDEN}/only.md", "never seen")
    await ws.rename(f"/{HIDDEN}/b.md", "/outputs/b.md")
    await ws.rename("/outputs/b.md", f"/{HIDDEN}/back.md")
    log = (await get(part, "log")).json()
    assert [
        (e["sequence"], [(c["type"], c["path"], c["from_path"]) for c in e["changes"]]) for e in log
    ] == [
        (4, [("delete", "/outputs/b.md", None)]),
        (3, [("create", "/outputs/b.md", None)]),
    ]
    seen: list[Any] = []
    async with part.stream("GET", "/v1/events", params={"cursor": cursor}) as stream:
        async for line in stream.aiter_lines():
            assert HIDDEN not in line
            if line.startswith('data: {"type'):
                seen.append(json.loads(line[6:]))
            if len(seen) == 2:
                break
    assert [(e["type"], e["path"], e["from_path"]) for e in seen] == [
        ("create", "/outputs/b.md", None),
        ("delete", "/outputs/b.md", None),
    ]


async def test_pages_of_the_log_are_full_though_most_commits_are_hidden(
    ws: Workspace, part: httpx.AsyncClient
) -> None:
    for number in range(40):
        await ws.write(f"/{HIDDEN}/{number}.md", "x")
        if number % 10 == 0:
            await ws.write("/outputs/a.md", str(number))
    first = (await get(part, "log", limit=3)).json()
    assert len(first) == 3
    rest = (await get(part, "log", limit=3, cursor=first[-1]["cursor"])).json()
    assert [len(rest), rest[0]["changes"][0]["version"]] == [1, 1]


async def test_versions_from_outside_stay_there(ws: Workspace, part: httpx.AsyncClient) -> None:
    await ws.write(f"/{HIDDEN}/a.md", f"{HIDDEN} one")
    await ws.write(f"/{HIDDEN}/a.md", f"{HIDDEN} two")
    await ws.rename(f"/{HIDDEN}/a.md", "/outputs/a.md")
    await ws.write("/outputs/a.md", "three")
    await ws.write("/outputs/a.md", "four")
    at = "/outputs/a.md"
    history = (await get(part, "history", path=at)).json()
    assert [entry["version"] for entry in history] == [4, 3]
    assert (await get(part, "diff", path=at)).json()["from_version"] == 3
    for path, params in (
        ("file", {"version": 1}),
        ("file", {"version": 2}),
        ("content", {"version": 2}),
        ("diff", {"from_version": 2}),
        ("diff", {"from_version": 1, "to_version": 4}),
        ("diff", {"to_version": 3}),
        ("diff", {"to_version": 2}),
    ):
        answer = await get(part, path, path=at, **params)
        assert answer.status_code == 404, (path, params, answer.text)
        assert HIDDEN not in answer.text
    for verb, body in (
        ("redo", {}),
        ("undo", {"to_version": 2}),
        ("finalize", {"version": 1}),
        ("transaction", {"operations": [{"verb": "read", "path": at, "version": 2}]}),
        ("transaction", {"operations": [{"verb": "finalize", "path": at, "version": 2}]}),
    ):
        answer = await post(part, verb, **(body if verb == "transaction" else {"path": at} | body))
        assert answer.status_code in (403, 404, 409), (verb, body, answer.text)
        assert HIDDEN not in answer.text
    assert (await post(part, "undo", path=at)).json()["version"] == 5
    assert (await get(part, "content", path=at)).json()["content"] == "three"
    answer = await post(part, "undo", path=at)
    assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED")
    await ws.undo(at)
    assert (await ws.read_text(at)) == f"{HIDDEN} two"  # who sees all may


async def test_a_commit_over_the_border_cannot_be_taken_back(
    ws: Workspace, part: httpx.AsyncClient
) -> None:
    async with ws.transaction() as tx:
        await tx.write("/outputs/a.md", "a")
        await tx.write(f"/{HIDDEN}/b.md", "b")
    [entry] = (await get(part, "log")).json()
    assert [change["path"] for change in entry["changes"]] == ["/outputs/a.md"]
    answer = await post(part, "undo_commit", commit=entry["commit"])
    assert answer.status_code == 403
    assert HIDDEN not in answer.text


async def test_uris_are_not_a_way_round(ws: Workspace, part: httpx.AsyncClient) -> None:
    hidden = await ws.write(f"/{HIDDEN}/b.bin", b"\x00" * 70_000, status="final")
    [artifact] = await ws.artifacts()
    assert hidden.uri is not None
    for uri in (hidden.uri, artifact.uri):
        answer = await get(part, "resolve", uri=uri)
        assert answer.status_code == 400, answer.text
    await ws.write("/outputs/c.md", "open", status="final")
    [own] = (await get(part, "artifacts")).json()
    assert (await get(part, "resolve", uri=own["uri"])).content == b"open"


async def test_a_limit_does_not_tell_the_total(ws: Workspace, part: httpx.AsyncClient) -> None:
    await ws.write(f"/{HIDDEN}/b.bin", b"\x00" * 900_123)
    answer = await part.put(
        "/v1/file", params={"path": "/outputs/x.bin"}, content=b"\x00" * 200_000
    )
    assert (answer.status_code, answer.json()["code"]) == (507, "QUOTA_EXCEEDED")
    assert "900123" not in answer.text
    assert set(answer.json()["details"]) <= {"path", "size"}


async def test_where_a_copy_came_from_is_not_told() -> None:
    class Source:
        def list(self, path: str, options: Any) -> Any:
            from crux_workspace import ListResult

            return ListResult([])

        def read(self, path: str, options: Any) -> Any:
            from crux_workspace import TextContent

            return TextContent(path=path, content="from afar")

    mounts = [Mount("/outputs"), Mount(f"/{HIDDEN}", access="read", source=Source())]
    async with open_workspace("memory://", mounts=mounts) as ws:
        file = await ws.copy(f"/{HIDDEN}/x.md", "/outputs/x.md")
        assert HIDDEN in str(file.to_dict())
        tokens = [token_of(secret_of("part"), mounts=["/outputs"])]
        async with serving(ws, tokens=tokens) as url:
            headers = {"authorization": f"Bearer {secret_of('part')}"}
            async with httpx.AsyncClient(base_url=url, headers=headers) as part:
                for path in ("stat", "list", "content", "log", "history"):
                    answer = await get(part, path, path="/outputs/x.md")
                    assert answer.status_code == 200
                    assert HIDDEN not in answer.text, path
                assert HIDDEN not in (await get(part, "artifacts")).text


# -- namespaces


async def test_a_token_stays_in_its_namespaces(
    ws: Workspace, clients: dict[str, httpx.AsyncClient]
) -> None:
    lent = clients["lent"]
    for name in ("lent", "team:7:a", "team:8:a", HIDDEN, "default"):
        await ws.write("/outputs/a.md", name, namespace=name)
    answer = (await get(lent, "namespaces")).json()
    assert answer == {"names": ["lent", "team:7:a"], "cursor": None}
    page = (await get(lent, "namespaces", limit=1)).json()
    assert page["names"] == ["lent"]
    assert (await get(lent, "namespaces", limit=1, cursor=page["cursor"])).json()["names"] == [
        "team:7:a"
    ]
    assert (await get(lent, "namespaces", prefix="team:7:a")).json()["names"] == ["team:7:a"]
    assert (await get(lent, "namespaces", prefix="team:8")).json()["names"] == []
    assert (
        await get(lent, "content", path="/outputs/a.md")
    ).status_code == 400  # it has to say which
    for name in ("lent", "team:7:a"):
        assert (await get(lent, "content", path="/outputs/a.md", namespace=name)).json()[
            "content"
        ] == name
    for name in ("default", HIDDEN, "team:8:a", "team:7", "lent:", "LENT", "lent:2x"):
        for path in ("content", "history", "stat"):
            answer = await get(lent, path, path="/outputs/a.md", namespace=name)
            assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED"), name
        assert (await lent.get("/v1/events", params={"namespace": name})).status_code == 403
        body = {"src": "/outputs/a.md", "dst": "/outputs/b.md", "to_namespace": name}
        assert (
            await lent.post("/v1/copy", params={"namespace": "lent"}, json=body)
        ).status_code == 403
        assert (await post(lent, "drop_namespace", name=name)).status_code == 403
    assert (await post(lent, "drop_namespace", name="team:7:a")).status_code == 204
    assert (await lent.get("/metrics")).status_code == 403


async def test_a_reader_changes_nothing(
    ws: Workspace, clients: dict[str, httpx.AsyncClient]
) -> None:
    from crux_workspace.server.routes import ROUTES

    await ws.write("/outputs/a.md", "one")
    for route in ROUTES:
        if route.writes:
            answer = await clients["reader"].request(route.method, route.path, json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "PERMISSION_DENIED"), (
                route.path
            )
    assert (await ws.cursor()) == (await ws.log())[0].cursor
    assert (await get(clients["reader"], "session")).json()["write"] is False


async def test_keys_and_transactions_are_of_one_token(
    ws: Workspace, clients: dict[str, httpx.AsyncClient]
) -> None:
    whole, part = clients["whole"], clients["part"]
    key = {"idempotency-key": "the-same"}
    for client in (whole, part):
        body = {"path": "/outputs/a.md", "content": "same"}
        answer = await client.post("/v1/write", json=body, headers=key)
        assert answer.status_code == 200, answer.text
    assert len(await ws.history("/outputs/a.md")) == 2
    again = await part.post(
        "/v1/write", json={"path": "/outputs/a.md", "content": "same"}, headers=key
    )
    assert (again.json()["version"], len(await ws.history("/outputs/a.md"))) == (2, 2)
    other = await part.post(
        "/v1/write", json={"path": "/outputs/a.md", "content": "other"}, headers=key
    )
    assert (other.status_code, other.json()["code"]) == (400, "INVALID_ARGUMENT")
    begun = (await post(whole, "transaction/begin")).json()["transaction"]
    stolen = await part.post("/v1/write", json=body, headers={"workspace-transaction": begun})
    assert (stolen.status_code, stolen.json()["code"]) == (409, "TRANSACTION_CLOSED")


async def test_approvals_need_their_own_right(clients: dict[str, httpx.AsyncClient]) -> None:
    for name in ("part", "reader", "lent"):
        assert (await get(clients[name], "approvals")).status_code == 403
    assert (await get(clients["whole"], "approvals")).status_code == 501  # there is no gate


async def test_a_dropped_watch_is_of_one_caller(
    ws: Workspace, clients: dict[str, httpx.AsyncClient]
) -> None:
    """Narrowed workspaces share the stores: what one writes, the other is told of at once."""
    async with clients["part"].stream("GET", "/v1/events") as stream:
        lines = stream.aiter_lines()
        async for line in lines:
            if line.startswith("data:"):
                break
        await ws.write("/outputs/a.md", "x")

        async def told() -> str:
            async for line in lines:
                if line.startswith("data:"):
                    return line
            return ""

        assert "/outputs/a.md" in await asyncio.wait_for(told(), 5)


async def test_a_transaction_is_not_a_way_to_versions_from_outside(
    ws: Workspace, part: httpx.AsyncClient
) -> None:
    at, to = "/outputs/a.md", "/outputs/b.md"
    await ws.write(f"/{HIDDEN}/a.md", f"{HIDDEN} one")
    await ws.write(f"/{HIDDEN}/a.md", "two")
    await ws.rename(f"/{HIDDEN}/a.md", at)
    moved = {"verb": "rename", "src": at, "dst": to}
    for last in (
        {"verb": "read", "path": to, "version": 1},
        {"verb": "finalize", "path": to, "version": 1},
    ):
        answer = await post(part, "transaction", operations=[moved, last])
        assert answer.status_code == 403, answer.text
        assert HIDDEN not in answer.text
    begun = await post(part, "transaction/begin")
    inside = {"workspace-transaction": begun.json()["transaction"]}
    await ws.rename(at, "/outputs/elsewhere.md")  # what is staged and what is there differ now
    for route in ("file", "content"):
        answer = await part.get(f"/v1/{route}", params={"path": at, "version": 1}, headers=inside)
        assert answer.status_code == 403, answer.text
        assert HIDDEN not in answer.text
    answer = await part.get("/v1/content", params={"path": at}, headers=inside)
    assert answer.json()["content"] == "two"


async def test_a_pin_from_outside_is_not_shown(ws: Workspace, part: httpx.AsyncClient) -> None:
    await ws.write(f"/{HIDDEN}/p.md", f"{HIDDEN} pinned", status="final")
    await ws.write(f"/{HIDDEN}/p.md", "open")
    await ws.rename(f"/{HIDDEN}/p.md", "/outputs/p.md")
    await ws.write("/outputs/own.md", "one", status="final")
    await ws.write("/outputs/own.md", "two")
    [pinned] = [each for each in await ws.artifacts() if each.path == "/outputs/p.md"]
    listed = await get(part, "artifacts")
    assert [each["path"] for each in listed.json()] == ["/outputs/own.md"]
    assert [each["path"] for each in (await get(part, "artifacts", limit=1)).json()] == [
        "/outputs/own.md"
    ]
    begun = await post(part, "transaction/begin")
    inside = {"workspace-transaction": begun.json()["transaction"]}
    for answer in (
        listed,
        await get(part, "artifacts", at=(await ws.log(limit=1))[0].sequence),
        await part.get("/v1/artifacts", headers=inside),
        await post(part, "transaction", operations=[{"verb": "artifacts"}]),
    ):
        assert HIDDEN not in answer.text
        assert "/outputs/p.md" not in answer.text
    resolved = await get(part, "resolve", uri=pinned.uri)
    assert resolved.status_code == 404
    assert HIDDEN not in resolved.text


async def test_a_conflict_does_not_name_what_is_hidden(
    ws: Workspace, part: httpx.AsyncClient
) -> None:
    begun = await post(part, "transaction/begin")
    inside = {"workspace-transaction": begun.json()["transaction"]}
    await part.get("/v1/grep", params={"query": "zzz"}, headers=inside)
    await part.post("/v1/write", json={"path": "/outputs/t.md", "content": "t"}, headers=inside)
    await ws.write(f"/{HIDDEN}/h.md", "h")
    answer = await part.post("/v1/transaction/commit", json={}, headers=inside)
    assert HIDDEN not in answer.text
    assert answer.status_code == 200, answer.text


async def test_what_is_hidden_is_no_conflict(ws: Workspace, part: httpx.AsyncClient) -> None:
    looks: list[tuple[str, dict[str, Any]]] = [
        ("list", {"path": "/", "recursive": "true"}),
        ("list", {"path": "/**", "glob": "true"}),
        ("list", {"path": "/workspace", "recursive": "true"}),
        ("grep", {"query": "zzz"}),
        ("artifacts", {}),
    ]
    for number, (route, params) in enumerate(looks):
        for place, status in ((f"/{HIDDEN}", 200), ("/workspace", 200), ("/outputs", 409)):
            if place == "/outputs" and params.get("path") == "/workspace":
                place = "/workspace/public"  # noqa: PLW2901 - what this one looks at
            begun = await post(part, "transaction/begin")
            inside = {"workspace-transaction": begun.json()["transaction"]}
            assert (
                await part.get(f"/v1/{route}", params=params, headers=inside)
            ).status_code == 200
            body = {"path": f"/outputs/t{number}{status}{len(place)}", "content": "t"}
            await part.post("/v1/write", json=body, headers=inside)
            await ws.write(f"{place}/h{number}.md", "h", status="final")
            answer = await part.post("/v1/transaction/commit", json={}, headers=inside)
            assert answer.status_code == status, (route, params, place, answer.text)


async def test_pages_go_from_mount_to_mount(ws: Workspace, part: httpx.AsyncClient) -> None:
    paths = [f"{at}/{n}.md" for at in ("/outputs", "/workspace/public") for n in range(3)]
    for path in [*paths, "/workspace/between.md", f"/{HIDDEN}/a.md"]:
        await ws.write(path, "needle", status="final")
    for route, params in (
        ("list", {"path": "/", "recursive": "true"}),
        ("list", {"path": "/**", "glob": "true"}),
    ):
        seen: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = (await get(part, route, limit=1, **params, **cursor)).json()
            seen += [entry["path"] for entry in page["entries"]]
            if page["cursor"] is None:
                break
            cursor = {"cursor": page["cursor"]}
        assert seen == paths, (route, params)
    found = (await get(part, "grep", query="needle")).json()["matches"]
    assert [match["path"] for match in found] == paths
    after: dict[str, str] = {}
    told: list[str] = []
    while page := (await get(part, "artifacts", limit=1, **after)).json():
        told.append(page[0]["path"])
        after = {"after": page[0]["path"]}
    assert told == paths


async def test_a_conflict_does_not_tell_who_made_what_is_hidden(
    ws: Workspace, part: httpx.AsyncClient
) -> None:
    secret = ws.acting_as("zz-somebody")
    at = "/outputs/a.md"
    await ws.write(at, "one")
    await secret.write(at, "two")
    stale = {"path": at, "content": "x", "if_version": 1}
    shown = (await post(part, "write", **stale)).json()["details"]
    assert (shown["last_operation"], shown["last_actor"]) == ("write", "zz-somebody")
    begun = await post(part, "transaction/begin")
    inside = {"workspace-transaction": begun.json()["transaction"]}
    await part.post("/v1/write", json={"path": at, "content": "x"}, headers=inside)
    await secret.write(f"/{HIDDEN}/b.md", "one")
    await secret.edit(f"/{HIDDEN}/b.md", "one", "two")
    await ws.rename(f"/{HIDDEN}/b.md", at, overwrite=True)
    tag = {"if-match": f'"{"0" * 32}.1"'}
    for answer, status in (
        (await post(part, "write", **stale), 409),
        (await part.put("/v1/file", params={"path": at}, content=b"x", headers=tag), 412),
        (await part.put("/v1/file", params={"path": at, "if_version": "1"}, content=b"x"), 409),
        (await part.post("/v1/transaction/commit", json={}, headers=inside), 409),
    ):
        assert answer.status_code == status
        assert "somebody" not in answer.text
        told = answer.json()["details"]
        for conflict in told.get("conflicts", [told]):
            assert (conflict["last_operation"], conflict["last_actor"]) == (None, None)


async def test_where_bytes_lie_in_the_store_is_not_told(tmp_path: Path) -> None:
    place = tmp_path / "place-of-the-assets"
    at = "/outputs/a.bin"
    data = b"\x00" * 70_000
    async with open_workspace("memory://", f"file://{place}", mounts=MOUNTS) as ws:
        await ws.write(at, data, status="final")
        tokens = [token_of(secret_of("part"), access="readwrite", mounts=["/outputs"])]
        headers = {"authorization": f"Bearer {secret_of('part')}"}
        async with (
            serving(ws, tokens=tokens) as url,
            httpx.AsyncClient(base_url=url, headers=headers) as part,
        ):
            file = await ws.stat(at)
            assert file is not None
            assert "place-of-the-assets" in str(file.uri)
            reading = {"verb": "read", "path": at}
            for answer in (
                await get(part, "stat", path=at),
                await get(part, "list", path="/outputs"),
                await get(part, "content", path=at),
                await get(part, "artifacts"),
                await post(part, "read_many", paths=[at]),
                await part.put("/v1/file", params={"path": "/outputs/b.bin"}, content=data),
                await post(part, "copy", src=at, dst="/outputs/c.bin"),
                await post(part, "finalize", path=at),
                await post(part, "transaction", operations=[reading, reading | {"verb": "stat"}]),
            ):
                assert answer.status_code in (200, 201), answer.text
                assert "place-of-the-assets" not in answer.text, answer.request.url
                assert "workspace-inline:" in answer.text, answer.request.url
            uri = (await get(part, "stat", path=at)).json()["uri"]
            assert (await get(part, "resolve", uri=uri)).content == data
            assert await ws.resolve(uri) == data
            refused = await get(part, "resolve", uri=str(file.uri))
            assert (refused.status_code, refused.json()["code"]) == (400, "INVALID_ARGUMENT")
