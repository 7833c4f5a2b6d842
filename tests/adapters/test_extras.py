"""What an optional package is needed for says so when it is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

ASKED = """
import asyncio, sys
sys.modules[{package!r}] = None
from crux_workspace.errors import UnsupportedError
from storage_adapters import open_storage
async def main():
    try:
        await open_storage("memory://", {url!r})
    except UnsupportedError as error:
        print(error.code, error, error.hint)
asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("package", "url", "extra"),
    [
        ("botocore", "s3://bucket", "s3"),
        ("boto3", "s3://bucket", "s3"),
        ("obstore", "gs://bucket", "obstore"),
        ("obstore", "obstore+file:///tmp/x", "obstore"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(package: str, url: str, extra: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", ASKED.format(package=package, url=url)],
        capture_output=True,
        text=True,
        check=True,
        cwd="/",
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
    )
    assert f"CAPABILITY_MISSING This store needs the package {package}" in ran.stdout
    assert f"crux-workspace[{extra}]" in ran.stdout
