"""The inspector's files without a browser: what is answered, and that nothing in them leads outside."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest

import crux_workspace.inspector
from crux_workspace.inspector import CONTENT_SECURITY_POLICY, inspector_app
from crux_workspace.inspector.pages import Pages

STATIC = Path(crux_workspace.inspector.__file__).parent / "static"
FOLDER = Pages().folder
OWN = sorted(path for path in STATIC.rglob("*") if path.is_file() and "vendor" not in path.parts)
VENDORED = sorted(
    path for path in (STATIC / "vendor").rglob("*.*") if path.suffix in (".js", ".woff2")
)


async def request(
    path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Ask the application directly, as a server would."""
    sent: list[MutableMapping[str, Any]] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    await inspector_app()(scope, receive, send)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, sent[1]["body"]


async def test_every_file_carries_the_policy_and_its_type() -> None:
    for name in Pages():
        status, headers, body = await request(f"/inspector/{name}")
        assert (status, len(body) > 0) == (200, True), name
        assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert int(headers["content-length"]) == len(body)


def test_the_policy_lets_nothing_inline_or_from_outside_run() -> None:
    rules = dict(rule.split(" ", 1) for rule in CONTENT_SECURITY_POLICY.split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["require-trusted-types-for"] == "'script'"
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert "http" not in CONTENT_SECURITY_POLICY


async def test_a_browser_that_has_the_page_is_not_sent_it_again() -> None:
    _, headers, _ = await request("/inspector/")
    assert headers["cache-control"] == "no-cache"
    status, _, body = await request("/inspector/", if_none_match=headers["etag"])
    assert (status, body) == (304, b"")
    status, _, body = await request("/inspector/", if_none_match='"other"')
    assert (status, len(body) > 0) == (200, True)


async def test_what_the_page_names_is_there_and_kept_for_good() -> None:
    _, _, page = await request("/inspector/")
    named = re.findall(r'(?:href|src)="([^"]+)"', page.decode())
    assert len(named) > 30
    for name in named:
        status, headers, _ = await request(f"/inspector/{name}")
        assert (status, "immutable" in headers["cache-control"]) == (200, True), name


@pytest.mark.parametrize("path", ["/", "/inspector"])
async def test_the_ways_in_lead_to_the_page(path: str) -> None:
    status, headers, _ = await request(path)
    assert (status, headers["location"]) == (307, "inspector/")


@pytest.mark.parametrize(
    "path",
    [
        "/inspector/../pyproject.toml",
        "/inspector/..%2fapp.py",
        "/inspector//etc/passwd",
        "/inspector/app/../../pages.py",
        "/inspector/pages.py",
        "/inspector/vendor/README.md",
        "/inspector/app/main.js",
        f"/inspector/{FOLDER}/",
        f"/inspector/{FOLDER}/app/../app/main.js",
        f"/inspector/{FOLDER}/app/main.js\0",
        "/inspectorx",
    ],
)
async def test_a_path_leads_to_a_listed_file_or_nowhere(path: str) -> None:
    assert (await request(path))[0] == 404


async def test_the_files_are_read_only() -> None:
    status, headers, _ = await request("/inspector/", "POST")
    assert (status, headers["allow"]) == (405, "GET, HEAD")
    status, headers, body = await request("/inspector/", "HEAD")
    assert (status, body, headers["content-length"] != "0") == (200, b"", True)


def test_no_file_of_ours_names_an_address_outside() -> None:
    for path in OWN:
        text = path.read_text("utf-8")
        found = set(re.findall(r"(?:https?:)?//[\w.-]+\.[a-z]{2,}[^\s\"'`)]*", text))
        assert found <= {"http://www.w3.org/2000/svg"}, path.name


@pytest.mark.parametrize(
    "sink",
    [
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "dangerously",
    ],
)
def test_no_module_of_ours_makes_markup_or_code_of_a_string(sink: str) -> None:
    assert [
        path.name for path in OWN if path.suffix == ".js" and sink in path.read_text("utf-8")
    ] == []


def test_every_vendored_file_is_listed_with_a_licence_that_is_there() -> None:
    listed = (STATIC / "vendor" / "README.md").read_text("utf-8")
    for path in VENDORED:
        name = path.relative_to(STATIC / "vendor").as_posix()
        assert f"`{name}`" in listed or f"`{name.partition('/')[0]}/`" in listed, name
    licences = {path.stem for path in (STATIC / "vendor" / "licences").iterdir()}
    assert licences == {
        "preact",
        "htm",
        "highlight.js",
        "jsdiff",
        "lucide",
        "inter",
        "jetbrains-mono",
    }


def test_every_module_imports_only_files_that_are_there() -> None:
    for path in STATIC.rglob("*.js"):
        for wanted in re.findall(
            r"""\b(?:from|import)\s*["']([\w./-]+)["']""", path.read_text("utf-8")
        ):
            assert wanted.startswith("."), (path.name, wanted)
            assert (path.parent / wanted).is_file(), (path.name, wanted)


def test_every_module_is_short_enough_to_be_read() -> None:
    long = {
        path.name: lines
        for path in OWN
        if (lines := len(path.read_text("utf-8").splitlines())) > 320
    }
    assert {name for name in long if name.endswith(".js")} == set()
