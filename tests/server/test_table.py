"""The table of routes, the verbs, the statuses and the document say the same."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path

from crux_workspace.errors import ErrorCode
from crux_workspace.model.verbs import VERBS
from crux_workspace.server import ServiceLimits
from crux_workspace.server.answers import RESULTS
from crux_workspace.server.openapi import document
from crux_workspace.server.problems import STATUS
from crux_workspace.server.routes import COMPOSED, ROUTES
from crux_workspace.server.transactions import OPERATIONS

DOCUMENT = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
OUTSIDE = {"/healthz", "/readyz", "/metrics", "/openapi.json"}


def test_no_verb_is_forgotten() -> None:
    offered = {verb for route in ROUTES for verb in route.verbs}
    assert offered | set(COMPOSED) == set(VERBS)
    assert not offered & set(COMPOSED)


def test_a_route_may_write_exactly_when_its_verb_may() -> None:
    for route in ROUTES:
        if route.verbs:
            assert route.writes == any(VERBS[verb].mutates for verb in route.verbs) or (
                route.verbs == ("drop_namespace",) and route.writes
            )


def test_no_two_routes_are_the_same() -> None:
    keys = [(route.method, route.path) for route in ROUTES]
    assert len(keys) == len(set(keys))
    assert all(re.fullmatch(r"/v1/[a-z_/]+", route.path) for route in ROUTES)


def test_a_transaction_offers_what_python_offers_in_one() -> None:
    """`walk` is paged by the client; the whole reads are the bytes of a file."""
    from crux_workspace import Transaction, Workspace

    verbs = {
        name
        for name in VERBS
        if hasattr(Transaction, name) and getattr(Transaction, name) is not None
    }
    inside = verbs - {
        "walk",
        "read_text",
        "read_bytes",
        "read_json",
        "stream",
        "update",
        "transaction",
    }
    assert set(OPERATIONS) == inside
    assert issubclass(Workspace, object)


def test_every_code_has_its_status() -> None:
    assert set(STATUS) == {code.value for code in ErrorCode}


def test_the_documented_statuses_are_those_that_are_sent() -> None:
    rows = re.findall(r"^\| (\d{3}) \| (.+?) \|$", DOCUMENT, re.M)
    told = {
        code: int(status)
        for status, cell in rows
        for code in re.findall(r"`([A-Z_]+)`", cell.partition(":")[0].partition(";")[0])
        if status not in ("401", "412")
    }
    assert told == STATUS


def test_the_documented_limits_are_the_defaults() -> None:
    rows = dict(re.findall(r"^\| `([a-z_]+)` \| ([0-9.]+) \|", DOCUMENT, re.M))
    assert rows == {name: str(value) for name, value in asdict(ServiceLimits()).items()}


def test_every_route_is_documented() -> None:
    told = set(re.findall(r"/(?:v1/[a-z_/]+|[a-z]+\.json|healthz|readyz|metrics)", DOCUMENT))
    assert {route.path for route in ROUTES} | OUTSIDE <= told
    paths = document("1")["paths"]
    assert set(paths) == {route.path for route in ROUTES} | OUTSIDE


def test_every_json_answer_has_its_shape() -> None:
    assert {route.path for route in ROUTES if route.answer == "json"} == set(RESULTS)


def test_operation_ids_are_unique() -> None:
    found = [
        each["operationId"] for path in document("1")["paths"].values() for each in path.values()
    ]
    assert len(found) == len(set(found))
