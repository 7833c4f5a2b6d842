"""The sources that ship, where they meet what is hostile: links, devices, other hosts, huge and broken answers."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from dulwich import porcelain

from crux_workspace import Mount, Workspace, workspace
from crux_workspace.errors import ErrorCode, InvalidInputError, UnsupportedError
from crux_workspace.model import extras
from crux_workspace.mounts import FolderSource, GitSource, HttpJsonSource, WorkspaceSource
from crux_workspace.storage import memory_storage
from crux_workspace.testing.workspace import refused

Make = Callable[..., Workspace]


@pytest.fixture
def mount() -> Callable[[Any], Workspace]:
    def make(source: Any) -> Workspace:
        mounts = [Mount("/workspace"), Mount("/s", "read", None, source, 5_000)]
        return workspace(id="w", namespace="n", storage=memory_storage(), mounts=mounts)

    return make


def paths(found: Any) -> list[str]:
    return [entry.path for entry in found]


# -- folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "d").mkdir(parents=True)
    (root / "d" / "a.md").write_text("inside")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.txt").write_text("outside")
    return root


async def test_a_folder_never_follows_links(mount: Callable[[Any], Workspace], folder: Path) -> None:  # fmt: skip
    (folder / "link.txt").symlink_to(folder.parent / "secret" / "key.txt")
    (folder / "dir").symlink_to(folder.parent / "secret")
    (folder / "up").symlink_to("..")
    (folder / "self.md").symlink_to("d/a.md")
    ws = mount(FolderSource(folder))
    assert [file.path async for file in ws.walk("/s")] == ["/s/d/a.md"]
    for path in ("/s/link.txt", "/s/dir/key.txt", "/s/up/secret/key.txt", "/s/self.md"):
        assert not await ws.exists(path)
        with refused(ErrorCode.FILE_NOT_FOUND):
            await ws.read(path)
        with refused(ErrorCode.FILE_NOT_FOUND):
            await ws.read_bytes(path)
        with refused(ErrorCode.FILE_NOT_FOUND):
            await ws.copy(path, "/workspace/x")
    for path in ("/s/../secret/key.txt", "/s/%2e%2e/secret/key.txt", "/s/d/..%2f..%2fsecret"):
        with refused(ErrorCode.INVALID_PATH):
            await ws.read(path)


async def test_a_link_put_in_a_files_place_is_not_followed(
    mount: Callable[[Any], Workspace], folder: Path
) -> None:
    ws = mount(FolderSource(folder))
    assert paths(await ws.list("/s/d")) == ["/s/d/a.md"]
    (folder / "d").rename(folder / "old")
    (folder / "d").symlink_to(folder.parent / "secret")
    assert paths(await ws.list("/s/d")) == []
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.read("/s/d/key.txt")


async def test_a_folder_may_itself_be_a_link(mount: Callable[[Any], Workspace], folder: Path) -> None:  # fmt: skip
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert await mount(FolderSource(link)).read_text("/s/d/a.md") == "inside"


async def test_devices_and_odd_names_are_not_shown(mount: Callable[[Any], Workspace], folder: Path) -> None:  # fmt: skip
    os.mkfifo(folder / "pipe")
    (folder / "new\nline.md").write_text("x")
    (folder / "back\\slash.md").write_text("x")
    (folder / "%2e%2e").write_text("x")
    os.close(os.open(os.fsencode(folder) + b"/\xff.md", os.O_WRONLY | os.O_CREAT))
    (folder / "cafe\u0301.md").write_text("decomposed")
    ws = mount(FolderSource(folder))
    assert paths(await ws.list("/s")) == ["/s/caf\u00e9.md", "/s/d"]
    assert await ws.read_text("/s/caf\u00e9.md") == "decomposed"
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.read("/s/pipe")


async def test_only_the_window_of_a_large_file_is_read(mount: Callable[[Any], Workspace], folder: Path) -> None:  # fmt: skip
    descriptor = os.open(folder / "large.txt", os.O_WRONLY | os.O_CREAT)
    os.pwrite(descriptor, ("before it " + "ends with ä").encode(), (3 << 30) - 10)
    os.close(descriptor)
    ws = mount(FolderSource(folder))
    content = await ws.read("/s/large.txt", offset=3 << 30, max_inline_bytes=100)
    assert content.to_dict()["content"].endswith("ä")
    assert content.size == (3 << 30) + 12
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.read_bytes("/s/large.txt")
    first = [chunk async for chunk in ws.stream("/s/large.txt", length=10)]
    assert b"".join(first) == b"\0" * 10


async def test_a_folder_that_cannot_be_read_is_a_failure(
    mount: Callable[[Any], Workspace], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = FolderSource(folder)
    ws = mount(source)
    real = os.scandir

    def denied(*args: Any) -> Any:
        if isinstance(args[0], int):
            raise PermissionError(13, "denied")
        return real(*args)

    monkeypatch.setattr(os, "scandir", denied)
    with refused(ErrorCode.STORE_UNAVAILABLE):
        await ws.list("/s")


def test_a_root_has_to_be_a_folder(tmp_path: Path) -> None:
    for root in (tmp_path / "none", Path(__file__)):
        with pytest.raises(InvalidInputError):
            FolderSource(root)


# -- git


async def test_git_shows_no_links_and_submodules(mount: Callable[[Any], Workspace], tmp_path: Path) -> None:  # fmt: skip
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "link").symlink_to("/etc/passwd")
    repository = porcelain.init(tmp_path)
    porcelain.add(repository, [str(tmp_path / "a.md"), str(tmp_path / "link")])
    porcelain.commit(repository, message=b"one", author=b"a <a@b>", committer=b"a <a@b>")
    repository.close()
    source = GitSource(tmp_path)
    ws = mount(source)
    assert paths(await ws.list("/s", recursive=True)) == ["/s/a.md"]
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.read("/s/link")
    await ws.copy("/s/a.md", "/workspace/a.md")
    [artifact] = await ws.artifacts()
    assert artifact.produced_by is not None
    assert artifact.produced_by["sources"] == [f"/s/a.md@{source.revision}"]
    source.close()
    with pytest.raises(InvalidInputError):
        GitSource(tmp_path, "no-such-branch")
    with pytest.raises(InvalidInputError):
        GitSource(tmp_path / ".git" / "objects")


async def test_bytes_tell_the_kind(mount: Callable[[Any], Workspace], tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("words ä" * 1_000)
    (tmp_path / "raw").write_bytes(b"\xff\xfe\x00")
    repository = porcelain.init(tmp_path)
    porcelain.add(repository, [str(tmp_path / "plain"), str(tmp_path / "raw")])
    porcelain.commit(repository, message=b"one", author=b"a <a@b>", committer=b"a <a@b>")
    repository.close()
    git = GitSource(tmp_path)
    for source in (FolderSource(tmp_path), git):
        ws = mount(source)
        kinds = {name: await ws.stat(f"/s/{name}") for name in ("plain", "raw")}
        assert {name: file and file.content_kind for name, file in kinds.items()} == {
            "plain": "text",
            "raw": "binary",
        }
        assert kinds["raw"] is not None
        assert kinds["raw"].mime_type == "application/octet-stream"
    git.close()


# -- HTTP


def http(answer: Callable[[httpx.Request], httpx.Response], **options: Any) -> HttpJsonSource:
    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return HttpJsonSource("https://api.test/items", client=client, **options)


BAD_ANSWERS: dict[str, httpx.Response] = {
    "another host": httpx.Response(200, json={"items": [], "next": "https://evil.test/items"}),
    "another scheme": httpx.Response(200, json={"items": [], "next": "file:///etc/passwd"}),
    "a link to another host": httpx.Response(
        200, json=[], headers={"Link": '<https://evil.test/>; rel="next"'}
    ),
    "a redirection": httpx.Response(302, headers={"Location": "https://evil.test/"}),
    "no JSON": httpx.Response(200, text="<html>"),
    "no items": httpx.Response(200, json={"rows": []}),
    "too much": httpx.Response(200, json=["x" * 200]),
    "deep JSON": httpx.Response(200, text="[" * 5_000),
    "NaN": httpx.Response(200, text="[NaN]"),
}


@pytest.mark.parametrize("name", BAD_ANSWERS)
async def test_an_api_that_answers_badly(mount: Callable[[Any], Workspace], name: str) -> None:
    ws = mount(http(lambda request: BAD_ANSWERS[name], max_bytes=150))
    with refused(ErrorCode.SOURCE_INVALID):
        await ws.list("/s")


async def test_a_real_server_is_asked_anew_each_time(mount: Callable[[Any], Workspace]) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = {"/items": [{"id": 1}], "/items/1": {"id": 1, "n": "one"}}.get(self.path)
            self.send_response(200 if found else 404)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        ws = mount(HttpJsonSource(f"http://127.0.0.1:{server.server_port}/items/"))
        assert paths(await ws.list("/s")) == ["/s/1.json"]
        assert await ws.read_json("/s/1.json") == {"id": 1, "n": "one"}
        assert await ws.stat("/s/2.json") is None
        assert [match.path for match in await ws.grep("one", path="/s")] == ["/s/1.json"]
        server.shutdown()


async def test_an_api_that_is_down(mount: Callable[[Any], Workspace]) -> None:
    def down(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route to secret.internal")

    with refused(ErrorCode.STORE_UNAVAILABLE) as caught:
        await mount(http(down)).list("/s")
    assert "secret.internal" not in str(caught.value.to_dict())
    for status in (401, 500):
        ws = mount(http(lambda request, code=status: httpx.Response(code)))  # type: ignore[misc]
        with refused(ErrorCode.STORE_UNAVAILABLE):
            await ws.list("/s")


@pytest.mark.parametrize(
    "name", ["..", ".", "~2E", "~2E~2E", "~2e~2E", "~2e", "a~2fb", "~41", "~", "~zz", "~ED~A0~80"]
)
async def test_no_name_leads_out_of_the_collection_or_is_another_one_s(
    mount: Callable[[Any], Workspace], name: str
) -> None:
    """The API is asked with the operator's headers: what a model may ask for is an item, by the one name that listings show."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        items = [{"id": ".."}, {"id": "."}, {"id": "a/b"}]
        return httpx.Response(200, json=items if request.url.path == "/items" else {"id": 1})

    ws = mount(http(answer))
    assert await ws.stat(f"/s/{name}.json") is None
    with refused(ErrorCode.FILE_NOT_FOUND):
        await ws.read(f"/s/{name}.json")
    assert set(asked) <= {"/items"}
    assert paths(await ws.list("/s")) == ["/s/a~2Fb.json"]


async def test_odd_items_are_passed_over(mount: Callable[[Any], Workspace]) -> None:
    items = [
        {"id": True},
        {"id": ""},
        {"id": None},
        {},
        5,
        {"id": [1]},
        {"id": "../up"},
        {"id": 7},
        {"id": "x" * 201},
        {"id": "\u00fc" * 90},
    ]
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        return httpx.Response(200, json=items if request.url.path == "/items" else {"id": 1})

    ws = mount(http(answer))
    assert paths(await ws.list("/s")) == ["/s/..~2Fup.json", "/s/7.json"]
    await ws.read("/s/..~2Fup.json")
    assert asked[-1] == "/items/..%2Fup"
    assert await ws.stat("/s/d/x.json") is None


@pytest.mark.parametrize("url", ["ftp://x/y", "/relative", "https://", "file:///etc", "http://[", "", 5, None, b"http://x"])  # fmt: skip
def test_only_http_is_an_api(url: Any) -> None:
    with pytest.raises(InvalidInputError):
        HttpJsonSource(url)


@pytest.mark.parametrize(
    "bad",
    [
        {"id_field": 5},
        {"items": ""},
        {"next_field": None},
        {"headers": "Authorization: secret"},
        {"headers": {"Authorization": 5}},
        {"headers": {5: "secret"}},
        {"client": "client"},
        {"max_bytes": 0},
        {"max_bytes": "5"},
        {"max_bytes": None},
        {"item_url": "https://x/{id}"},
    ],
)
def test_an_api_with_bad_options_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError) as caught:
        HttpJsonSource("https://x/y", **bad)
    assert "secret" not in str(caught.value.to_dict())


@pytest.mark.parametrize(
    "make",
    [
        lambda root: FolderSource(5),  # type: ignore[arg-type]
        lambda root: FolderSource(None),  # type: ignore[arg-type]
        lambda root: FolderSource(b"/tmp"),  # type: ignore[arg-type]
        lambda root: FolderSource("a\0b"),
        lambda root: GitSource(5),  # type: ignore[arg-type]
        lambda root: GitSource(root / "none"),
        lambda root: GitSource(root, 5),  # type: ignore[arg-type]
        lambda root: GitSource(root, ""),
        lambda root: GitSource(root, "\ud800"),
        lambda root: WorkspaceSource(workspace(id="w"), 5),  # type: ignore[arg-type]
        lambda root: WorkspaceSource(workspace(id="w"), namespace=5),  # type: ignore[arg-type]
        lambda root: WorkspaceSource(workspace(id="w"), namespace=""),
    ],
)
def test_sources_refuse_what_they_cannot_show(tmp_path: Path, make: Callable[[Path], Any]) -> None:
    porcelain.init(tmp_path).close()
    with pytest.raises(InvalidInputError):
        make(tmp_path)


# -- another workspace


async def test_a_workspace_of_the_past_is_a_source(mount: Callable[[Any], Workspace]) -> None:
    inner = workspace(id="inner", namespace="n", storage=memory_storage())
    await inner.write("/workspace/a.md", "one")
    await inner.write("/workspace/a.md", "two")
    now, past = mount(WorkspaceSource(inner)), mount(WorkspaceSource(inner.at(1)))
    assert await now.read_text("/s/a.md") == "two"
    assert await past.read_text("/s/a.md") == "one"
    await now.copy("/s/a.md", "/workspace/a.md")
    [artifact] = await now.artifacts()
    assert artifact.produced_by is not None
    assert artifact.produced_by["sources"][0].startswith("/s/a.md@v2-")
    whole = mount(WorkspaceSource(inner, "/"))
    assert paths(await whole.list("/s")) == ["/s/outputs", "/s/workspace"]
    other = mount(WorkspaceSource(inner, namespace="other"))
    assert paths(await other.list("/s", recursive=True)) == []
    with pytest.raises(InvalidInputError):
        WorkspaceSource(object())  # type: ignore[arg-type]


async def test_a_closed_workspace_is_a_failing_source(mount: Callable[[Any], Workspace]) -> None:
    inner = workspace(id="inner", namespace="n", storage=memory_storage())
    await inner.aclose()
    with refused(ErrorCode.STORE_UNAVAILABLE):
        await mount(WorkspaceSource(inner)).list("/s")


# -- what is not installed


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    for make, extra in (
        (lambda: GitSource(tmp_path), "git"),
        (lambda: HttpJsonSource("https://x/y"), "http"),
    ):
        with pytest.raises(UnsupportedError) as caught:
            make()
        assert f"crux-workspace[{extra}]" in caught.value.message


@pytest.mark.parametrize("module", ["deepagents", "langgraph"])
def test_an_integration_without_its_package_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    import importlib

    loaded = importlib.import_module(f"crux_workspace.integrations.{module}")
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(UnsupportedError) as caught:
        importlib.reload(loaded)
    assert f"crux-workspace[{module}]" in caught.value.message
