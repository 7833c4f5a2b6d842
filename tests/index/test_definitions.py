"""What a definition says of itself: literals as they are, everything else as what the code says there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from crux_workspace import workspace
from crux_workspace.index import WRITE_WITHOUT_GUARDRAIL, ProjectIndex, index_folder
from tests.index.test_corpus import CASES, files_of, lay_out

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "docs" / "project-index.schema.json"


def indexed(folder: Path, code: str) -> ProjectIndex:
    return index_folder(lay_out(folder, {"app.py": code}))


def settings(folder: Path, code: str) -> dict[str, Any]:
    (definition,) = indexed(folder, code).definitions
    told: dict[str, Any] = definition.to_dict()
    return told


FULL = """
import os
from crux_workspace import *
from crux_workspace import ContentOptions
from crux_workspace.mounts import FolderSource
from crux_workspace.storage import memory_storage

KIB = 1024
LIMITS = Limits(max_file_bytes=10 * KIB, max_files=int(os.environ["MAX"]), max_namespace_bytes=2**40)
COMMON = {"retention": Retention(ttl_ms=86_400_000), "versioning": Versioning(max_versions=20)}

def namespace_of(request):
    return request.input["thread"]

def build(name, *, prefix):
    return workspace(
        id=name,
        namespace=namespace_of,
        storage=memory_storage(),
        mounts=[
            Mount("/workspace", access="readwrite", description="Notes"),
            Mount("/sources", "read", source=FolderSource("/srv")),
            Mount(os.environ["MOUNT"]),
        ],
        content=ContentOptions(inline_text_below_bytes=-(-1_000)),
        limits=LIMITS,
        tools=ToolOptions(prefix=prefix, delete=True, extra=["stat", "diff"]),
        **COMMON,
    )

build("research", prefix="lab")
"""


def test_settings_are_followed_to_their_literals(tmp_path: Path) -> None:
    told = settings(tmp_path, FULL)
    assert told["id"] == "research"
    assert told["namespace"] == {"dynamic": "namespace_of"}
    assert told["owner"] == {"module": "app", "name": "build", "kind": "function"}
    assert told["mounts"] == [
        {"path": "/workspace", "access": "readwrite", "description": "Notes", "source": None},
        {"path": "/sources", "access": "read", "description": None, "source": "FolderSource"},
        {
            "path": {"dynamic": "os.environ['MOUNT']"},
            "access": "readwrite",
            "description": None,
            "source": None,
        },
    ]
    assert told["limits"] == {
        "max_file_bytes": 10_240,
        "max_namespace_bytes": 2**40,
        "max_files": {"dynamic": "int(os.environ['MAX'])"},
        "max_history_bytes": None,
    }
    assert told["retention"] == {
        "ttl_ms": 86_400_000,
        "log_ms": None,
        "asset_grace_ms": 3_600_000,
    }
    assert told["versioning"] == {"max_versions": 20}
    assert told["records"] == "memory"
    assert told["assets"] == {"store": "memory", "inline_text_below_bytes": 1_000}
    assert told["tools"]["names"][:2] == ["listLabWorkspace", "readLabWorkspaceFile"]
    assert "deleteLabWorkspaceFile" in told["tools"]["names"]


def test_defaults_are_those_of_a_real_workspace(tmp_path: Path) -> None:
    told = settings(tmp_path, "from crux_workspace import workspace\nworkspace(id='w')\n")
    real: dict[str, Any] = json.loads(json.dumps(workspace(id="w").describe()))
    for name in ("id", "mounts", "retention", "limits", "versioning"):
        assert told[name] == real[name]
    assert told["tools"]["names"] == real["tools"]
    inline = "inline_text_below_bytes"
    assert told["assets"][inline] == real["assets"][inline]


@pytest.mark.parametrize(
    ("call", "records", "assets"),
    [
        ('open_workspace("sqlite:///work.db")', "sqlite", "beside_records"),
        ('open_workspace("postgresql://u:secret@host/db", "s3://bucket")', "postgresql", "s3"),
        ('open_workspace_sync("memory://", assets=None)', "memory", "beside_records"),
        ("open_workspace(os.environ['URL'])", {"dynamic": "os.environ['URL']"}, "beside_records"),
        ('workspace(id="w", records=MyStore(), assets=None)', {"dynamic": "MyStore()"}, None),
        ('workspace(id="w", storage=given)', {"dynamic": "given"}, {"dynamic": "given"}),
        ('workspace(id="w", storage=open_storage("redis://:secret@h"))', "redis", "beside_records"),
        ('workspace(id="w", storage=storage(records=MyStore()))', {"dynamic": "MyStore()"}, None),
        ('open_workspace(f"postgresql://u:secret@{host}/db")', {"dynamic": ""}, "beside_records"),
        ('open_workspace("secret")', {"dynamic": "a URL without a scheme"}, "beside_records"),
    ],
)
def test_a_store_is_told_by_its_kind_and_never_by_its_url(
    tmp_path: Path, call: str, records: object, assets: object
) -> None:
    code = (
        "import os\nfrom crux_workspace import *\nfrom crux_workspace.storage import storage\n"
        f"from storage_adapters import open_storage\ndef f(given, host):\n    return {call}\n"
    )
    told = settings(tmp_path, code)
    assert told["records"] == records
    assert told["assets"]["store"] == assets
    assert "secret" not in json.dumps(told)


@pytest.mark.parametrize(
    "id_", ["input()", "'a' if x else 'b'", "10**10**10 and str(1 << 10**9)", "'a' * 10**9"]
)
def test_what_only_the_program_knows_is_dynamic(tmp_path: Path, id_: str) -> None:
    code = f"from crux_workspace import workspace\ndef f(x):\n    workspace(id={id_})\n"
    assert set(settings(tmp_path, code)["id"]) == {"dynamic"}


def warnings_of(folder: Path, code: str) -> list[tuple[int, list[int]]]:
    index = indexed(folder, "from crux_workspace import *\n" + code)
    assert {each.code for each in index.warnings} <= {WRITE_WITHOUT_GUARDRAIL}
    return [(each.place.line, [w.line for w in each.writes]) for each in index.warnings]


def test_a_workspace_that_nothing_guards_is_warned_about_with_its_blind_writes(
    tmp_path: Path,
) -> None:
    code = (
        "ws = workspace(id='a')\nasync def f():\n    await ws.write('/workspace/a', 'x')\n"
        "    await ws.append('/workspace/a', 'x')\n    await ws.read('/workspace/a')\n"
        "    await ws.delete('/workspace/a')\n"
    )
    assert warnings_of(tmp_path, code) == [(2, [4, 7])]


@pytest.mark.parametrize(
    "use",
    [
        "ws.write('/workspace/a', 'x', if_version=seen)",
        "ws.update('/workspace/a', str.upper)",
        "ws.transaction(lambda tx: tx.write('/workspace/a', 'x'))",
        "ws.as_tools(read_before_write=True)",
        "gate.wrap(ws.as_tools())",
        "agent_context(workspace_filesystem(ws), gate=gate)",
    ],
)
def test_a_guardrail_anywhere_silences_the_warning(tmp_path: Path, use: str) -> None:
    code = (
        "from crux_workspace.agent import *\nfrom crux_workspace.agent import agent_context, "
        "workspace_filesystem, PermissionGate\nws = workspace(id='a')\ngate = PermissionGate()\n"
        f"def f(seen):\n    {use}\n"
    )
    assert warnings_of(tmp_path, code) == []


def test_a_workspace_that_can_only_be_read_is_not_warned_about(tmp_path: Path) -> None:
    assert warnings_of(tmp_path, "workspace(id='a', mounts=[Mount('/src', access='read')])\n") == []
    code = "workspace(id='a', mounts=[Mount('/src', access='read'), Mount('/x')])\n"
    assert warnings_of(tmp_path, code) == [(2, [])]


def test_relations_say_who_reads_and_who_writes(tmp_path: Path) -> None:
    code = (
        "from crux_workspace import workspace, prompt\nws = workspace(id='a')\n"
        "async def reader():\n    await ws.read('/workspace/a')\n    await ws.grep('x')\n"
        "class Writer:\n    async def save(self):\n        await ws.write('/workspace/a', 'x')\n"
        "agent = prompt(id='agent', use=[ws])\n"
    )
    told = [each.to_dict() for each in indexed(tmp_path, code).relations]
    rows = [(r["owner"]["name"], r["access"], r["operations"], r["workspace"]) for r in told]
    key = "app.py:2:6"
    assert rows == [
        ("", "read", ["prompt"], key),
        ("", "write", ["prompt"], key),
        ("Writer.save", "write", ["write"], key),
        ("reader", "read", ["grep", "read"], key),
    ]


def test_exposures_name_the_tools_that_a_model_gets(tmp_path: Path) -> None:
    code = (
        "from crux_workspace import workspace, prompt, ToolOptions\n"
        "ws = workspace(id='a', tools=ToolOptions(prefix='lab'))\n"
        "async def f(prefix):\n    ws.as_tools()\n    ws.as_tools(prefix=prefix)\n"
        "    ws.as_context()\n    await ws.inject()\n    prompt('p', [ws])\n"
    )
    told = [(e.kind, e.to, e.tools[:1], e.writes) for e in indexed(tmp_path, code).exposures]
    assert told == [
        ("tools", None, ("listLabWorkspace",), True),
        ("tools", None, (), True),
        ("context", None, (), False),
        ("injection", None, ("listLabWorkspace",), True),
        ("prompt", "p", ("listLabWorkspace",), True),
    ]


@pytest.mark.parametrize("case", CASES)
def test_the_json_form_is_what_its_schema_says(case: str, tmp_path: Path) -> None:
    told = json.loads(json.dumps(index_folder(lay_out(tmp_path, files_of(case))).to_dict()))
    jsonschema.validate(told, json.loads(SCHEMA.read_text(encoding="utf-8")))


def test_the_schema_refuses_what_it_does_not_name(tmp_path: Path) -> None:
    told = indexed(tmp_path, FULL).to_dict()
    told["definitions"][0]["more"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(told, json.loads(SCHEMA.read_text(encoding="utf-8")))
