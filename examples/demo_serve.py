"""A believable project in the inspector: ``make demo-serve``.

Fills an embedded workspace in a temporary folder with what a small team of agents and people might have made, serves it on this machine
alone, and prints the link to open. While it runs, an agent goes on writing, so that there is something to watch. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import math
import signal
import struct
import tempfile
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Tracer

from crux_workspace import (
    Edit,
    Limits,
    Mount,
    RetrieverHit,
    Telemetry,
    Workspace,
    open_workspace,
    retriever_workspace_mount_source,
)
from crux_workspace.agent import (
    CommandRequest,
    PathRequest,
    PermissionGate,
    PermissionPolicy,
    ToolRequest,
)
from crux_workspace.inspector import inspector_app
from crux_workspace.model.values import JsonValue
from crux_workspace.server import Token, hash_token, new_token, serve, service_app

NAMESPACE = "thread:tides"
PAPERS = retriever_workspace_mount_source(
    lambda query: [
        RetrieverHit("moon-and-sun", "1", "Tides are caused by the Moon and, less, by the Sun.\n"),
        RetrieverHit(
            "spring-tides", "1", "A spring tide comes a day or two after the full moon.\n"
        ),
    ],
    path_for_hit=lambda hit: f"{hit.source_id}.md",
)
MOUNTS = (
    Mount("/workspace", description="Drafts, data and code"),
    Mount("/outputs", description="What is published"),
    Mount("/sources", access="read", description="Papers that were found", source=PAPERS),
)

PLAN = """# Tide report

The harbour office wants to know **when the quay floods** next winter.

- collect gauge readings
- fit the model
- write the report
"""

ANALYSIS = '''"""Predict high water from a year of gauge readings."""

import csv
from dataclasses import dataclass
from pathlib import Path

HOURS_M2 = 12.4206


@dataclass(frozen=True)
class Reading:
    hour: float
    metres: float


def load(path: Path) -> list[Reading]:
    with path.open() as lines:
        return [Reading(float(hour), float(metres)) for hour, metres in csv.reader(lines)]


def predict(readings: list[Reading], hour: float) -> float:
    mean = sum(each.metres for each in readings) / len(readings)
    return mean


if __name__ == "__main__":
    print(predict(load(Path("gauge.csv")), 0.0))
'''

REPORT = """# When the quay floods

High water at the north quay passes **4.10 m** on eleven days next winter.

| day | time | height |
|---|---|---|
| 4 December | 11:52 | 4.18 m |
| 5 December | 12:38 | 4.24 m |
| 2 January | 11:31 | 4.12 m |

The forecast leaves wind out; add up to 0.4 m in a northerly gale.
"""

DRAWING = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 90">
  <path d="M0 50 Q30 10 60 50 T120 50 T180 50 T240 50" fill="none" stroke="#2f52cf" stroke-width="3"/>
  <line x1="0" x2="240" y1="28" y2="28" stroke="#b3261e" stroke-dasharray="5 4"/>
  <text x="6" y="22" font-size="10" fill="#b3261e">quay, 4.10 m</text>
</svg>
"""

STATIONS: JsonValue = {
    "north-quay": {"latitude": 54.1761, "longitude": 7.8922, "datum": "NHN", "since": 1953},
    "lock": {"latitude": 54.1802, "longitude": 7.8871, "datum": "NHN", "since": 1988},
}


def tide(hour: float) -> float:
    """Return the height of the water, in metres: two constituents are enough for a picture."""
    return (
        2.6 + 1.2 * math.cos(2 * math.pi * hour / 12.42) + 0.4 * math.cos(2 * math.pi * hour / 12.0)
    )


def gauge(hours: int) -> str:
    """Return readings as CSV."""
    return "".join(f"{hour},{tide(hour):.3f}\n" for hour in range(hours))


def chart(width: int = 640, height: int = 240) -> bytes:
    """Return a picture of two weeks of tide, as PNG."""

    def row_of(x: float) -> float:
        return height - tide(x / width * 336) / 5 * height

    def pixel(x: int, y: int) -> bytes:
        here, there = sorted((row_of(x), row_of(x + 1)))
        if here - 1 <= y <= there + 1:
            return b"\x2f\x52\xcf"
        if y > there:
            return b"\xdb\xe4\xfb"
        if abs(y - (height - 4.1 / 5 * height)) < 1:
            return b"\xd9\x5b\x52"
        return b"\xff\xff\xff" if x % 46 else b"\xec\xef\xf3"

    rows = b"".join(b"\0" + b"".join(pixel(x, y) for x in range(width)) for y in range(height))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )


async def fill(ws: Workspace, tracer: Tracer) -> None:
    """Make the project: files with histories, artifacts, a rename, a deletion, an undo."""
    planner, analyst = ws.acting_as("agent:planner"), ws.acting_as("agent:analyst")
    mira = ws.acting_as("mira@harbour")
    await planner.write("/workspace/plan.md", PLAN)
    async with analyst.transaction() as tx:
        await tx.write("/workspace/data/gauge.csv", gauge(8_760), mime_type="text/csv")
        await tx.write("/workspace/data/stations.json", STATIONS)
        await tx.write("/workspace/src/analysis.py", ANALYSIS)
        await tx.write("/workspace/src/settings.toml", '[model]\nconstituents = ["M2"]\n')
        await tx.write(
            "/workspace/src/queries/floods.sql",
            "select day, height from high_water\nwhere height > 4.10;\n",
        )
    await analyst.edit(
        "/workspace/src/analysis.py",
        edits=[
            Edit("import csv\n", "import csv\nimport math\n"),
            Edit("HOURS_M2 = 12.4206\n", "HOURS_M2 = 12.4206\nHOURS_S2 = 12.0\n"),
            Edit(
                "    return mean\n",
                "    swing = max(each.metres for each in readings) - mean\n"
                "    return mean + swing * math.cos(2 * math.pi * hour / HOURS_M2)\n",
            ),
        ],
    )
    await analyst.edit("/workspace/src/settings.toml", '["M2"]', '["M2", "S2"]')
    await planner.edit(
        "/workspace/plan.md", "- fit the model", "- fit the model (two constituents)"
    )
    await mira.edit(
        "/workspace/plan.md", "**when the quay floods**", "**when, and how high, the quay floods**"
    )
    await planner.write(
        "/workspace/notes/interview.md",
        "# Harbour office\n\n- wants dates by March\n- has gauges since 1953\n",
    )
    await planner.write("/workspace/notes/draft.md", "old idea\n")
    await planner.rename("/workspace/notes/interview.md", "/workspace/notes/harbour-office.md")
    await planner.delete("/workspace/notes/draft.md")
    with tracer.start_as_current_span("write report", attributes={"crux.run_id": "run-1130-a"}):
        await analyst.write(
            "/outputs/report.md", REPORT.replace("eleven", "nine"), status="draft", kind="report"
        )
        await analyst.edit("/outputs/report.md", "nine days", "eleven days")
        await mira.finalize("/outputs/report.md", kind="report")
        await analyst.edit("/outputs/report.md", "up to 0.4 m", "up to 0.6 m")
        await analyst.write("/outputs/tide.png", chart(), status="final", kind="figure")
        await analyst.write("/outputs/quay.svg", DRAWING, status="draft", kind="figure")
        await analyst.write(
            "/outputs/summary.json",
            {"days": 11, "highest_m": 4.24, "stations": ["north-quay"]},
            status="draft",
        )
        await analyst.write("/outputs/model.bin", bytes(range(256)) * 24)
    await planner.append("/workspace/plan.md", "- ask about wind\n")
    await planner.undo("/workspace/plan.md")


async def ask(gate: PermissionGate) -> None:
    """Have two agents wait for a person."""
    await gate.check(
        CommandRequest("git push origin report/tides"), thread_id=NAMESPACE, call_id="call-1"
    )
    await gate.check(
        PathRequest("writeFile", "/srv/www/tides/report.html", root="/srv/app"),
        thread_id="thread:publish",
        call_id="call-2",
    )
    mail = ToolRequest("sendMail", {"to": "office@harbour.example", "subject": "Tide report"})
    await gate.check(mail, thread_id="thread:publish", call_id="call-3")


def otlp(spans: Sequence[ReadableSpan]) -> bytes:
    """Return spans as an OTLP export in JSON."""

    def plain(span: ReadableSpan) -> dict[str, object]:
        attributes = [
            {
                "key": key,
                "value": {"intValue": str(value)}
                if isinstance(value, int)
                else {"stringValue": str(value)},
            }
            for key, value in (span.attributes or {}).items()
        ]
        context = span.context
        assert context is not None
        return {
            "traceId": f"{context.trace_id:032x}",
            "spanId": f"{context.span_id:016x}",
            "name": span.name,
            "startTimeUnixNano": str(span.start_time),
            "endTimeUnixNano": str(span.end_time),
            "attributes": attributes,
        }

    scopes = [{"spans": [plain(span) for span in spans]}]
    return json.dumps({"resourceSpans": [{"scopeSpans": scopes}]}).encode()


def export(address: str, token: str, spans: Sequence[ReadableSpan]) -> None:
    """Send spans to the service, as an exporter would."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}/v1/traces", otlp(spans), headers)  # noqa: S310 - our own service
    with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - our own service
        answer.read()


async def keep_busy(ws: Workspace, seconds: float) -> None:
    """Go on writing, as an agent at work would."""
    agent = ws.acting_as("agent:analyst")
    for number in itertools.count(1):
        await asyncio.sleep(seconds)
        await agent.append(
            "/workspace/notes/log.md", f"- checked day {number}: {tide(number * 24):.2f} m\n"
        )


async def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument(
        "--every", type=float, default=6.0, help="seconds between the agent's writes; 0 for none"
    )
    given = parser.parse_args()
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    token = new_token()
    with tempfile.TemporaryDirectory() as folder:
        async with open_workspace(
            f"sqlite:///{Path(folder) / 'demo.db'}",
            id="harbour",
            namespace=None,
            mounts=MOUNTS,
            limits=Limits(
                max_namespace_bytes=1_000_000, max_files=500, max_history_bytes=2_000_000
            ),
            telemetry=Telemetry(tracer_provider=provider),
        ) as ws:
            project = ws.for_namespace(NAMESPACE)
            await fill(project, provider.get_tracer("demo"))
            await ws.write("/workspace/plan.md", "# Next: the Moon\n", namespace="thread:moon")
            await ws.write(
                "/workspace/runbook.md", "# Runbook\n\n1. Stay calm.\n", namespace="team:ops"
            )
            gate = PermissionGate(
                PermissionPolicy(allow={"bash": ["ls"]}, approve=["sendMail"]), mode="interactive"
            )
            await ask(gate)
            service = service_app(
                ws,
                tokens=[
                    Token(
                        name="mira",
                        hash=hash_token(token),
                        access="readwrite",
                        all_namespaces=True,
                        approvals=True,
                    )
                ],
                gate=gate,
                inspector=inspector_app(),
            )
            loop = asyncio.get_running_loop()
            for each in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(each, service.shut_down)
            begun: list[asyncio.Future[None]] = []

            def started(host: str, port: int) -> None:
                address = f"http://{host}:{port}"
                begun.append(
                    loop.run_in_executor(None, export, address, token, spans.get_finished_spans())
                )
                print(f"Open {address}/inspector/#token={token}&ns={NAMESPACE}", flush=True)

            busy = asyncio.ensure_future(keep_busy(project, given.every)) if given.every else None
            await serve(service, port=given.port, started=started)
            await asyncio.gather(*begun)
            if busy is not None:
                busy.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await busy


if __name__ == "__main__":
    asyncio.run(main())
