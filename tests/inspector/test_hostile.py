"""Names and contents that would like to be more than text. Every page here also fails when it complains, asks outside or runs anything."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser, expect

from crux_workspace import Workspace, open_workspace
from tests.inspector.looking import Look, Looking, looking

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = "window.hacked=1;alert(1)"
NAMES = [
    f"<img src=x onerror={RUN}>.md",
    f'"><script>{RUN}<_script>.html',
    f"javascript:{RUN}.js",
    "' onmouseover='alert(1)' x='.txt",
    "${alert(1)}{{alert(1)}}<%=alert(1)%>.txt",
    "&lt;b&gt;&#x3c;.txt",
    "__proto__",
    "constructor.json",
    "#ns=other&path=elsewhere?x=1&y=%41",
    "\u202egnp.exe",
    "invisible\u200bspace.txt",
    "*?[a]{b,c}.txt",
    " leading and trailing ",
    "名前-🜁-ümlaut.txt",
    "x" * 251 + ".txt",
]
CONTENTS = {
    "page.html": f"<!doctype html><script>{RUN}</script><img src=x onerror='{RUN}'><iframe srcdoc='<script>{RUN}</script>'></iframe>",
    "drawing.svg": f"<svg xmlns='http://www.w3.org/2000/svg' onload='{RUN}' width='9' height='9'><script>{RUN}</script>"
    "<image href='http://outside.invalid/x.png'/><foreignObject><iframe src='http://outside.invalid/'/></foreignObject></svg>",
    "notes.md": f"# x\n\n<script>{RUN}</script>\n[click](javascript:{RUN})\n![x](http://outside.invalid/x.png)\n",
    "code.js": f"{RUN}; `</script><script>{RUN}</script>` /* --> */",
    "style.css": "@import url(http://outside.invalid/x.css); a { background: url(javascript:alert(1)) }",
    "ends.txt": "a\u2028b\u2029c\u0000d\u001b[31m\u202eright to left\r\nlast",
    "template.vue": "${alert(1)} {{ constructor.constructor('alert(1)')() }}",
    "slow.py": "(" * 5_000 + '"' * 5_001 + "x='" * 5_000,
    "one-line.json": "[" + "1," * 100_000 + "1]",
}


SHOWN_PATH = "() => new URLSearchParams(location.hash.slice(1)).get('path')"


async def harmless(seen: Looking) -> None:
    """Nothing of the workspace has run."""
    assert await seen.page.evaluate("() => window.hacked") is None
    assert (
        await seen.page.locator(
            "main script, main iframe, main object, main form:not(.search-form), main [onerror]"
        ).count()
        == 0
    )


async def test_a_name_is_text_wherever_it_is_shown(ws: Workspace, look: Look) -> None:
    writer = ws.acting_as(f"<b>{RUN}")
    for name in NAMES:
        await writer.write(
            f"/workspace/{name}", f"needle <b>{RUN}</b>", status="draft", kind=f"<i>{RUN}"
        )
        await writer.append(f"/workspace/{name}", "\nneedle too")
    paths = [entry.path for entry in (await ws.list("/workspace")).entries]
    assert len(paths) == len(NAMES)
    seen = await look()
    await seen.go()
    rows = seen.page.locator('[role="treeitem"]').filter(has_text="v2")
    await expect(rows).to_have_count(len(NAMES))
    for number, path in enumerate(paths):
        await rows.nth(number).click()
        await expect(seen.main.get_by_label("Text of the file")).to_contain_text("needle too")
        assert await seen.page.evaluate(SHOWN_PATH) == path
        await seen.page.keyboard.press("d")
        await expect(seen.main.locator("td.text.add")).to_have_text(
            [f"needle <b>{RUN}</b>", "needle too no newline at the end"]
        )
        await seen.page.keyboard.press("d")
        await harmless(seen)
    for view, count in (("commits", 2 * len(NAMES)), ("artifacts", len(NAMES))):
        await seen.go(view)
        await expect(seen.main.get_by_role("link").filter(has_text="/workspace/")).to_have_count(
            count
        )
        await harmless(seen)
    await seen.go("search", q="needle")
    await expect(
        seen.main.get_by_text(f"{2 * len(NAMES)} matches in {len(NAMES)} files")
    ).to_be_visible()
    await harmless(seen)


async def test_a_name_that_hides_or_turns_text_is_spelled_out(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/\u202egnp.exe", "x")
    seen = await look()
    await seen.go()
    await expect(seen.row("/workspace/\u202egnp.exe")).to_contain_text("\u27e8U+202E\u27e9gnp.exe")


async def test_content_is_shown_and_never_run(ws: Workspace, look: Look) -> None:
    for name, content in CONTENTS.items():
        await ws.write(f"/workspace/{name}", "before")
        await ws.write(f"/workspace/{name}", content)
    seen = await look()
    for name, content in CONTENTS.items():
        await seen.go(path=f"/workspace/{name}")
        text = seen.main.get_by_label("Text of the file")
        await expect(text).to_contain_text(content.splitlines()[0][:20])
        await seen.page.keyboard.press("d")
        await expect(seen.main.get_by_role("region", name="Difference")).to_contain_text("before")
        await harmless(seen)


async def test_a_drawing_is_drawn_without_its_scripts_and_links(ws: Workspace, look: Look) -> None:
    await ws.write("/workspace/drawing.svg", CONTENTS["drawing.svg"])
    seen = await look()
    await seen.go(path="/workspace/drawing.svg")
    await seen.main.get_by_role("button", name="Drawing").click()
    await expect(seen.main.locator("figcaption")).to_contain_text("9 \u00d7 9")  # it is loaded
    await harmless(seen)


@pytest.mark.parametrize(
    "mime", ["text/html", "image/svg+xml", "image/png", "application/xhtml+xml"]
)
async def test_a_wrong_mime_type_makes_bytes_nothing_else(
    ws: Workspace, look: Look, mime: str
) -> None:
    await ws.write("/workspace/lie", CONTENTS["page.html"].encode(), mime_type=mime)
    seen = await look()
    await seen.go(path="/workspace/lie")
    refused = seen.main.get_by_role("heading", name="Not a picture")
    shown = seen.main.locator("pre.hex").or_(refused)
    await expect(shown.first).to_be_visible()
    await harmless(seen)


async def test_a_file_that_is_opened_by_its_own_address_is_a_download(
    ws: Workspace, look: Look
) -> None:
    await ws.write("/workspace/page.html", CONTENTS["page.html"])
    seen = await look()
    await seen.go(path="/workspace/page.html")
    async with seen.page.expect_download() as coming:
        await seen.main.get_by_role("link", name="Download").click()
    download = await coming.value
    assert download.suggested_filename == "page.html"
    answer = await seen.page.request.get(
        f"{seen.url}/v1/file?namespace={seen.namespace}&path=/workspace/page.html"
    )
    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["content-disposition"].startswith("attachment")


async def test_a_page_cannot_make_markup_or_code_of_a_string(look: Look) -> None:
    """What holds even if a module of ours had a hole: the browser refuses the step from text to markup."""
    seen = await look(calm=False)  # each attempt is a violation that the browser tells of
    await seen.go()
    await seen.tree.wait_for()
    refused = await seen.page.evaluate(
        """() => {
          const attempts = [
            () => { document.body.innerHTML = "<b>x</b>"; },
            () => { document.body.insertAdjacentHTML("beforeend", "<b>x</b>"); },
            () => { document.createElement("script").text = "1"; },
            () => { new Worker("data:text/javascript,1"); },
            () => { trustedTypes.createPolicy("another", {}); },
          ];
          return attempts.map((attempt) => { try { attempt(); return "done"; } catch (error) { return error.name; } });
        }"""
    )
    assert refused == ["TypeError"] * 5
    outside = await seen.page.evaluate(
        "() => fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)"
    )
    assert outside == "TypeError"
    assert any(found.startswith("connect-src") for found in await seen.violations())


async def test_a_namespace_is_text_too(browser: Browser) -> None:
    name = f"<img src=x onerror={RUN}>&ns=main#"
    async with (
        open_workspace("memory://", namespace=name) as ws,
        looking(browser, ws) as look,
    ):
        await ws.write("/workspace/a.txt", "x")
        seen = await look()
        await seen.go(path="/workspace/a.txt")
        await expect(seen.main.get_by_label("Text of the file")).to_have_text("1x")
        await expect(seen.page.locator(".namespace")).to_contain_text("<img")
        await harmless(seen)
