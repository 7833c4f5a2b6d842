"""A real Chromium for tests: where it is, how it comes here, and how it is started.

``python -m tests.support.browser`` finds one, or installs one: as root on Debian by apt, else by Playwright's own download.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, async_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
"""What the program is called; an address in CRUX_CHROMIUM goes first."""

_HINT = "Install Chromium (Debian: apt-get install chromium), or name one in CRUX_CHROMIUM."


def found_browser() -> str | None:
    """Return the program, or nothing where there is none."""
    given = os.environ.get("CRUX_CHROMIUM")
    if given:
        return given
    here = next((path for name in NAMES if (path := shutil.which(name)) is not None), None)
    return here or _downloaded()


def _downloaded() -> str | None:
    folder = Path(
        os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache/ms-playwright"
    )
    programs = sorted(folder.glob("chromium_headless_shell-*/*/*headless*shell*"))
    return str(programs[-1]) if programs else None


def install_browser() -> str | None:
    """Install a Chromium by whatever way is open here; returns the program."""
    ways = [[sys.executable, "-m", "playwright", "install", "chromium-headless-shell"]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        apt = "apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq -y install --no-install-recommends chromium"
        ways.insert(0, ["sh", "-c", apt])
    for way in ways:
        done = subprocess.run(way, stdout=sys.stderr, check=False)
        if done.returncode == 0 and (program := found_browser()) is not None:
            return program
    return None


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    """Start a browser without a window; it ends with the block."""
    program = found_browser()
    assert program is not None, f"The tests of the inspector need a browser. {_HINT}"
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = await playwright.chromium.launch(executable_path=program, args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


def main() -> int:
    """Say which browser the tests use, installing one where there is none."""
    program = found_browser() or install_browser()
    if program is None:
        print(f"There is no browser. {_HINT}", file=sys.stderr)
        return 1
    print(f"browser: {program}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
