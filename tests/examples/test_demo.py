"""The demonstration checks itself; this checks that it says so, and that it fails when a check fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def demonstrate(script: str = "pass") -> subprocess.CompletedProcess[str]:
    """Run the demonstration into a pipe, after a script that may tamper with it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    code = f"import sys; import examples.demo as demo; {script}; sys.exit(demo.main())"
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**env, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )


def test_the_demonstration_proves_what_it_claims() -> None:
    ran = demonstrate()
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-2000:]
    assert ran.stdout.rstrip().endswith("Every check passed.")
    assert "\x1b[" not in ran.stdout


def test_the_demonstration_fails_when_a_byte_is_wrong() -> None:
    ran = demonstrate("demo.PARTS = demo.PARTS[:2]; demo.as_text = lambda data: 'something else'")
    assert ran.returncode == 1
    assert "FAILED every file comes out byte for byte" in ran.stdout
