"""The OpenAPI 3.1 document, made from the table of routes."""

from __future__ import annotations

from typing import Any

import msgspec

from crux_workspace.errors import ErrorCode
from crux_workspace.server.answers import REF, RESULTS, result_components
from crux_workspace.server.route import Route
from crux_workspace.server.routes import ROUTES

__all__ = ["document"]


def document(version: str) -> dict[str, Any]:
    """Return the document of this service."""
    kinds = sorted(
        {kind for route in ROUTES for kind in (route.query, route.body) if kind is not None},
        key=lambda kind: kind.__name__,
    )
    _, components = msgspec.json.schema_components(kinds, ref_template=REF)
    components |= result_components()
    components["Problem"] = _PROBLEM
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, components)
    for path, (summary, media) in _PLAIN.items():
        paths[path] = {"get": _plain_operation(path, summary, media)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "crux-workspace",
            "version": version,
            "description": "A versioned file workspace over HTTP.",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


_PLAIN = {
    "/healthz": ("Tell that the process lives.", "text/plain"),
    "/readyz": ("Tell whether the store can be reached.", "text/plain"),
    "/metrics": ("Tell the metrics in Prometheus' text format.", "text/plain"),
    "/openapi.json": ("Tell this document.", "application/json"),
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "hint", "details", "retryable"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": [code.value for code in ErrorCode]},
        "hint": {"type": "string"},
        "details": {"type": "object"},
        "retryable": {"type": "boolean"},
    },
}
_PROBLEM_ANSWER = {
    "description": "Refused.",
    "content": {"application/problem+json": {"schema": {"$ref": REF.format(name="Problem")}}},
}


def _operation(route: Route, components: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": f"{route.method.lower()}_{route.path.removeprefix('/v1/').replace('/', '_')}",
        "summary": route.summary,
        "parameters": [*_query(route, components), *_headers(route)],
        "responses": _responses(route),
    }
    if route.verbs:
        found["x-verbs"] = list(route.verbs)
    if route.body is not None:
        name = route.body.__name__
        schema = {"$ref": REF.format(name=name)}
        found["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema}},
        }
    elif route.raw_body is not None:
        content: dict[str, Any] = {
            route.raw_body: {"schema": {"type": "string", "format": "binary"}}
        }
        if route.path == "/v1/traces":
            content["application/json"] = {"schema": {"type": "object"}}
        found["requestBody"] = {"required": True, "content": content}
    return found


def _plain_operation(path: str, summary: str, media: str) -> dict[str, Any]:
    return {
        "operationId": path.strip("/").replace(".", "_"),
        "summary": summary,
        "security": [{"bearer": []}] if path == "/metrics" else [],
        "responses": {
            "200": {"description": "Done.", "content": {media: {"schema": {}}}},
            "default": _PROBLEM_ANSWER,
        },
    }


def _query(route: Route, components: dict[str, Any]) -> list[dict[str, Any]]:
    component = components[route.query.__name__]
    required = component.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _scalar(schema)}
        for name, schema in component.get("properties", {}).items()
    ]


def _scalar(schema: dict[str, Any]) -> dict[str, Any]:
    """A query parameter is left out rather than null."""
    options = schema.get("anyOf")
    if options is None:
        return schema
    left = [option for option in options if option.get("type") != "null"]
    rest = {name: value for name, value in schema.items() if name not in ("anyOf", "default")}
    return (left[0] if len(left) == 1 else {"anyOf": left}) | rest


def _headers(route: Route) -> list[dict[str, Any]]:
    names = []
    if route.writes and route.answer != "events":
        names += ["Idempotency-Key", "Workspace-Actor"]
    if route.in_transaction:
        names.append("Workspace-Transaction")
        if route.writes:
            names.append("Workspace-Step")
    if route.answer == "events":
        names.append("Last-Event-ID")
    if route.takes_conditions:
        names += ["If-Match", "If-None-Match"]
    if route.path == "/v1/file" and route.method == "GET":
        names += ["Range", "If-Range"]
    return [
        {"name": name, "in": "header", "required": False, "schema": {"type": "string"}}
        for name in names
    ]


def _responses(route: Route) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done."}
    if route.answer == "json":
        good["content"] = {"application/json": {"schema": RESULTS[route.path]}}
        if route.path == "/v1/traces":
            good["content"]["application/x-protobuf"] = {"schema": {}}
    elif route.answer == "events":
        good["content"] = {"text/event-stream": {"schema": {"type": "string"}}}
    elif route.answer == "bytes":
        good["content"] = {"*/*": {"schema": {}}}
    found = {str(route.status): good, "default": _PROBLEM_ANSWER}
    if route.path == "/v1/file" and route.method == "GET":
        found |= {"206": good, "304": {"description": "It is as the client has it."}}
    if route.path == "/v1/file" and route.method == "PUT":
        found["201"] = good
    return found
