"""The sweep finds what is planted, and a broad sample of the suite is clean under it.

``make privacy`` plays the whole of the folders below it, ``CRUX_STORES=all make privacy`` on every store.
"""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from crux_workspace import Workspace, workspace
from crux_workspace.api import runner
from crux_workspace.api.core import WorkspaceCore
from crux_workspace.telemetry import attributes, metrics, recorder, spans
from crux_workspace.telemetry.path_hash import PathHash
from tests.support.privacy_sweep import Leak, Sweep

ROOT = Path(__file__).parents[2]
PATH = "/workspace/hush/plan.md"
SAMPLE = (
    "tests/transactions/test_net_changes.py",
    "tests/mounts/test_delegation.py",
    "tests/tools/test_tools.py",
    "tests/scenarios/test_artifacts.py",
    "tests/server/test_scopes.py",
    "tests/server/test_events.py",
    "tests/http/test_telling.py",
    "tests/inspector/test_access.py",
    "tests/watch/test_blocking.py",
    "tests/histories/test_neighbours.py",
    "tests/regressions/test_upkeep.py",
    "tests/frameworks/test_messages.py",
    "tests/entrypoints/mcp/test_server.py",
)


async def work(ws: Workspace) -> None:
    await ws.write(PATH, "the hushed content", metadata={"whose": "hushed"}, kind="report")
    await ws.read(PATH)


async def leaks_of(sweep: Sweep) -> list[Leak]:
    ws = workspace(id="w", namespace="hushed namespace")
    await work(ws)
    await ws.aclose()
    assert sweep.exporter.get_finished_spans()
    return sweep.leaks()


async def test_a_clean_run_has_no_leaks_and_much_to_look_at(sweep: Sweep) -> None:
    ws = workspace(id="w", namespace="hushed namespace")
    await work(ws)
    secrets = set(sweep.secrets)
    assert {PATH, "hush", "plan.md", "the hushed content", "hushed", "hushed namespace"} <= secrets
    assert len(sweep.exporter.get_finished_spans()) == 3
    assert sweep.leaks() == []
    assert sweep.secrets == {}


def _planted_kind(patch: pytest.MonkeyPatch) -> None:
    """The result kind tells the path."""
    patch.setattr(runner, "_finish", lambda span, verb, result, hashed: span.finish(kind=result.path))  # fmt: skip


def _planted_hash(patch: pytest.MonkeyPatch) -> None:
    """A hash that is none."""

    async def bare(this: object, path: str) -> PathHash:
        return PathHash("hash:" + path.ljust(32)[:32])

    patch.setattr(recorder.OperationRecorder, "hash_path", bare)


def _planted_attribute(patch: pytest.MonkeyPatch) -> None:
    """An attribute that nobody has documented, even with a harmless value."""
    start = attributes.start_attributes

    def more(operation: str, workspace_id: str) -> attributes.Attributes:
        return {**start(operation, workspace_id), "crux.workspace.host": 7}

    patch.setattr(recorder, "start_attributes", more)


def _planted_label(patch: pytest.MonkeyPatch) -> None:
    """A metric that is split by what is private."""
    split = attributes.measure_attributes

    def more(operation: str, *given: Any) -> attributes.Attributes:
        return {**split(operation, *given), "crux.workspace.status": "hushed namespace"}

    patch.setattr(metrics, "measure_attributes", more)


def _planted_event(patch: pytest.MonkeyPatch) -> None:
    """An exception on the span."""
    close = spans._close

    def telling(span: Any, *given: Any, **options: Any) -> None:
        span.record_exception(ValueError(PATH))
        close(span, *given, **options)

    patch.setattr(spans, "_close", telling)


def _planted_status(patch: pytest.MonkeyPatch) -> None:
    """A text on the status."""
    from opentelemetry.trace import Status, StatusCode

    close = spans._close

    def telling(span: Any, *given: Any, **options: Any) -> None:
        span.set_status(Status(StatusCode.ERROR, f"failed on {PATH}"))
        close(span, *given, **options)

    patch.setattr(spans, "_close", telling)


def _planted_name(patch: pytest.MonkeyPatch) -> None:
    """The span is named after the file."""
    patch.setattr(spans, "OPERATION_SPAN", f"read {PATH}")


def _planted_log(patch: pytest.MonkeyPatch) -> None:
    """A line of a log with the namespace."""
    space = WorkspaceCore.space

    def telling(this: WorkspaceCore, namespace: str, actor: str | None) -> Any:
        logging.getLogger("crux_workspace.somewhere").debug("working on %s", namespace)
        return space(this, namespace, actor)

    patch.setattr(WorkspaceCore, "space", telling)


def _planted_traceback(patch: pytest.MonkeyPatch) -> None:
    """A line of a log with an exception's text, which nobody can vouch for."""
    space = WorkspaceCore.space

    def telling(this: WorkspaceCore, namespace: str, actor: str | None) -> Any:
        try:
            raise ValueError("something")
        except ValueError:
            logging.getLogger("crux_workspace").exception("it failed")
        return space(this, namespace, actor)

    patch.setattr(WorkspaceCore, "space", telling)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "crux.workspace.result_kind": _planted_kind,
    "crux.workspace.path_hash": _planted_hash,
    "crux.workspace.host": _planted_attribute,
    "metric crux.workspace.operation.duration": _planted_label,
    "event": _planted_event,
    "status": _planted_status,
    f"span read {PATH}": _planted_name,
    "log crux_workspace.somewhere DEBUG": _planted_log,
    "log crux_workspace ERROR": _planted_traceback,
}


@pytest.mark.parametrize("where", PLANTED)
async def test_a_planted_leak_is_found_where_it_is(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    PLANTED[where](monkeypatch)
    found = [str(leak) for leak in await leaks_of(sweep)]
    assert any(where in told for told in found), found


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "tests.support.privacy_sweep"]
    return subprocess.run(
        [*command, *arguments],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=170,
    )


def test_a_test_that_leaks_fails_under_the_plugin(tmp_path: Path) -> None:
    test = tmp_path / "test_leaking.py"
    test.write_text(
        "import logging\nfrom crux_workspace import workspace\n"
        "async def test_it():\n"
        "    ws = workspace(id='w', namespace='n')\n"
        "    await ws.write('/workspace/hush.md', 'x')\n"
        "    logging.getLogger('crux_workspace').info('wrote %s', '/workspace/hush.md')\n"
    )
    ran = run("-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), str(test))
    assert ran.returncode == 1, ran.stdout
    assert "exported what is private" in ran.stdout
    assert re.search(
        r"log crux_workspace INFO .* has '.*hush.*', which is an argument of write", ran.stdout
    )


@pytest.mark.timeout(180)
def test_a_broad_sample_of_the_suite_exports_nothing_private() -> None:
    ran = run("-k", "not postgres and not sqlite", *SAMPLE)
    assert ran.returncode == 0, ran.stdout[-3_000:] + ran.stderr
    told = re.search(r"privacy sweep: (\d+) spans, (\d+) records, (\d+) secrets", ran.stdout)
    assert told is not None
    spans_seen, _, secrets = (int(each) for each in told.groups())
    assert spans_seen > 1_000
    assert secrets > 1_000
