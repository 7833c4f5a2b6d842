"""Requests made up from the service's own OpenAPI document: none of them makes it fail, and each answer is what the document says."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from crux_workspace import open_workspace
from crux_workspace.agent import CommandRequest, PermissionGate, PermissionPolicy
from crux_workspace.server.openapi import document
from tests.server.conftest import SECRET
from tests.support.services import serving, token_of

schemathesis.serializer("application/x-protobuf")(lambda ctx, value: value)

EXAMPLES = int(os.environ.get("CRUX_SCHEMA_EXAMPLES", "12"))
"""Requests of each operation, the same ones in every run."""
FILES: dict[str, Any] = {
    "/workspace/a": "0\n",
    "/workspace/b.json": {"0": [None]},
    "/outputs/c.bin": b"\x00" * 100,
    "/outputs/d.md": "0" * 100_000,
}
KNOWN = [None, "/", "/workspace", *FILES]
CHECKS = (
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
OPERATIONS = [
    (method.upper(), path) for path, methods in document("1")["paths"].items() for method in methods
]


def meet(case: Any, known: str | None) -> None:
    """Let a request be about a file that is there, in the namespace that has it."""
    if known is None:
        return
    for part in (case.query, case.body):
        if isinstance(part, dict):
            part.pop("namespace", None)
            for name in ("path", "src"):
                if isinstance(part.get(name), str):
                    part[name] = known


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """A service in a thread of its own, with files to be met."""
    started: list[str] = []
    ready, stop = threading.Event(), threading.Event()

    async def run() -> None:
        gate = PermissionGate(PermissionPolicy(), mode="interactive")
        await gate.check(CommandRequest("make all"), thread_id="t")
        token = token_of(SECRET, access="readwrite", all_namespaces=True, approvals=True)
        async with open_workspace("memory://") as ws:
            for path, content in FILES.items():
                await ws.write(path, content)
                await ws.write(path, content)
            async with serving(ws, tokens=[token], gate=gate, metrics=lambda: b"") as url:
                started.append(url)
                ready.set()
                await asyncio.to_thread(stop.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(30)
    yield started[0]
    stop.set()
    thread.join()


@pytest.fixture(scope="module")
def schema(served: str) -> Any:
    loaded = schemathesis.openapi.from_url(f"{served}/openapi.json")
    loaded.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    return loaded


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_request_makes_it_fail(schema: Any, served: str, method: str, path: str) -> None:
    session = requests.Session()
    session.headers["authorization"] = f"Bearer {SECRET}"

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy(), known=st.sampled_from(KNOWN))
    def ask(case: Any, known: str | None) -> None:
        meet(case, known)
        if path == "/v1/events":  # an answer without end: its head is judged
            sent = case.as_transport_kwargs(base_url=served)
            with session.request(**sent, stream=True, timeout=10) as answer:
                assert answer.status_code < 500
            return
        case.call_and_validate(
            base_url=served,
            session=session,
            checks=CHECKS,
            headers={"authorization": f"Bearer {SECRET}"},
        )

    with session:
        ask()
