"""`docs/format.md` names every record kind, JSON name and key that the code has, and nothing that it has not."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec
import pytest

from crux_workspace.engine import codec, compression, keys, shrinking
from crux_workspace.errors import ErrorCode, StorageError
from crux_workspace.events.cursors import encode_event_cursor
from crux_workspace.model.verbs import VERBS
from crux_workspace.storage import layout
from crux_workspace.storage.records import SEQUENCE_MARK
from crux_workspace.telemetry import key as telemetry_key
from storage_adapters.sql import schema, statements

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
SYMBOLS = str.maketrans({"\x01": "␁", "\x02": "␂", "\x03": "␃", "\x04": "␄"})

FILE = "00112233445566778899aabbccddeeff"
REF = "ws/thread%3A1/ffeeddccbbaa99887766554433221100"
EXAMPLES = {
    "meta": [layout.META_KEY],
    "log": [layout.log_key(7), layout.log_key(7) + layout.number(1) + layout.FIELD_END],
    "head": [keys.head_key("/workspace/a.md")],
    "gone": [keys.gone_key("/workspace/a.md")],
    "state": [keys.state_key(FILE, 2, 5)],
    "was": [layout.resolve_key(keys.was_key("/workspace/a.md"), 7)],
    "file": [keys.file_key(FILE)],
    "art": [keys.artifact_key("/outputs/r.md")],
    "asset": [keys.asset_key(REF)],
    "trash": [keys.trash_key(1_700_003_600_000, REF)],
    "exp": [keys.expiry_key(1_700_000_010_000, FILE)],
    "op": [keys.op_key("key-1")],
    "job": [keys.job_key(FILE)],
    "key": [keys.PATH_HASH_KEY],
}
STRUCTS: dict[str, type[msgspec.Struct]] = {
    "meta": layout.Meta,
    "log": layout.LogRecord,
    "change": layout._Change,
    "attributes": codec.Attributes,
    "part": codec.Part,
    "index": codec.LineIndex,
    "head": codec.Head,
    "state": codec.State,
    "gone": codec.Gone,
    "was": codec.Was,
    "file": codec.FilePlace,
    "art": codec.ArtifactRecord,
    "asset": codec.AssetCount,
    "trash": codec.Trash,
    "exp": codec.Expiry,
    "op": codec.Op,
    "job": codec.Job,
    "key": telemetry_key._KeyValue,
}


def section(title: str, level: str = "##") -> str:
    found = re.search(
        rf"^{level} {re.escape(title)}\n(.*?)(?=^#{{2,{len(level)}}} |\Z)", PAGE, re.M | re.S
    )
    assert found, f"docs/format.md has no section {title!r}"
    return found[1]


def first_column(text: str) -> list[str]:
    """Return the cells of the first column of all tables, without their heads and rules."""
    rows = re.findall(r"^\|(.+?)\|.*\n", text, re.M)
    rules = [i for i, row in enumerate(rows) if set(row.strip()) <= {"-"}]
    return [row.strip() for i, row in enumerate(rows) if i not in rules and i + 1 not in rules]


def names_of(struct: type[msgspec.Struct]) -> set[str]:
    names = {field.encode_name for field in msgspec.structs.fields(struct)}
    if struct in (codec.Head, codec.State):
        names -= {field.encode_name for field in msgspec.structs.fields(codec.Attributes)}
    return names


def test_the_page_has_a_section_for_each_record_and_no_other() -> None:
    assert set(re.findall(r"^### `(.+?)`$", section("Records"), re.M)) == set(STRUCTS)


@pytest.mark.parametrize("kind", STRUCTS)
def test_each_section_lists_the_names_of_its_record(kind: str) -> None:
    listed = [cell.strip("`") for cell in first_column(section(f"`{kind}`", "###")) if kind != "op"]
    if kind == "op":
        table = section("`op`", "###").split("The digest is")[0]
        listed = [cell.strip("`") for cell in first_column(table)]
    assert len(listed) == len(set(listed))
    assert set(listed) == names_of(STRUCTS[kind])


def test_every_struct_of_the_codec_is_judged_here() -> None:
    in_code = {
        value
        for module in (codec, layout)
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, msgspec.Struct)
        and value.__module__ == module.__name__
    }
    assert in_code == set(STRUCTS.values()) - {telemetry_key._KeyValue}


def test_absent_names_have_the_defaults_that_the_page_says() -> None:
    shown: dict[str, object] = {
        "required": msgspec.NODEFAULT,
        "none": None,
        "stamp": None,
        "false": False,
        "0": 0,
        "1": 1,
    }
    shown |= {"`{}`": {}, "`[]`": [], "see right": None, "`d`": None, "`vt`": None}
    for kind, struct in STRUCTS.items():
        rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section(f"`{kind}`", "###"), re.M)
        defaults = {
            field.encode_name: field.default_factory()
            if field.default_factory is not msgspec.NODEFAULT
            else field.default
            for field in msgspec.structs.fields(struct)
        }
        for name, absent in rows:
            if name in defaults:
                expected = shown[absent] if absent in shown else absent.strip('`"')
                default = list(found) if isinstance(found := defaults[name], tuple) else found
                assert default == expected, f"{kind}: {name}"


def test_the_keys_are_written_as_the_page_shows() -> None:
    table = section("Keys")
    listed = [cell.split("`")[1] for cell in first_column(table)]
    assert set(listed) == set(EXAMPLES)
    for kind, examples in EXAMPLES.items():
        for example in examples:
            assert example.startswith(kind + layout.FIELD_END)
            assert f"`{example.translate(SYMBOLS)}`" in table
    assert keys.head_key("/workspace/a.md").encode().hex(" ") in table


def test_every_key_and_prefix_of_the_code_is_of_a_kind_on_the_page() -> None:
    prefixes = {value for name, value in vars(keys).items() if name.endswith("_PREFIX")}
    assert {prefix[:-1] for prefix in prefixes | {layout.LOG_PREFIX}} <= set(EXAMPLES)
    agents = ROOT / "crux_workspace" / "agent"  # its partitions are its own: docs/agents.md
    sources = "".join(
        file.read_text(encoding="utf-8")
        for file in ROOT.glob("crux_workspace/**/*.py")
        if agents not in file.parents
    )
    assert set(re.findall(r"(?<!\w)key\(\s*\"(\w+)\"", sources)) <= set(EXAMPLES)
    made = {name for name in keys.__all__ if name.endswith("_key")} - {"path_in_key"}
    assert made == {
        "artifact_key", "asset_key", "expiry_key", "file_key", "gone_key", "head_key", "job_key",
        "op_key", "state_key", "trash_key", "was_key",
    }, "a new key needs an example here and on the page"  # fmt: skip


def test_ranges_marks_and_partitions_are_as_the_page_says() -> None:
    table = section("Keys")
    low, high = layout.subtree_range("head", "/p")
    assert f"[`{low.translate(SYMBOLS)}`, `{high.translate(SYMBOLS)}`)" in table
    low, high = layout.subtree_range("head", "/")
    assert f"[`{low.translate(SYMBOLS)}`, `{high.translate(SYMBOLS)}`)" in table
    assert SEQUENCE_MARK == "\x04"
    assert f"`{layout.partition_name('ws', 'thread:1').translate(SYMBOLS)}`" in section(
        "Partitions"
    )
    assert f"`{layout.DEPLOYMENT_PARTITION.translate(SYMBOLS)}`" in section("Partitions")
    assert f"at most {layout.CHANGES_IN_VALUE}" in section("`log`", "###")
    assert f"{layout.CHANGES_PER_BODY:,} a body" in section("`log`", "###")
    assert f"version {layout.FORMAT}\n" in PAGE.splitlines(keepends=True)[0]


def test_every_committing_verb_has_a_row() -> None:
    listed = {
        word
        for cell in first_column(section("Which commit writes what"))
        for word in re.findall(r"`(\w+)`", cell)
    }
    committing = {verb.name for verb in VERBS.values() if verb.commits}
    assert listed == committing | {"expire", "purge", "key"}
    digests = section("`op`", "###").split("The digest is")[1]
    listed = {w for cell in first_column(digests) for w in re.findall(r"`(\w+)`", cell)}
    assert listed == committing - {"gc"}


def test_the_cursor_and_the_hash_are_as_shown() -> None:
    made = encode_event_cursor(
        layout.partition_name("ws", "thread:1"),
        "65b8c3f0a1d24e7b9c0f1a2b",
        7,
        "0f1e2d3c4b5a69788796a5b4",
    )
    assert f"`{made}`" in section("Cursors")
    assert hashlib.sha256(b"key-1").hexdigest() in section("Keys")


def test_the_tables_are_those_of_the_schema() -> None:
    text = section("SQLite")
    assert f"0x{statements.APPLICATION_ID:08X}" in text
    assert statements.APPLICATION_ID.to_bytes(4, "big").decode() in text
    listed = {
        name: re.findall(r"`(\w+)`", columns)
        for name, columns in re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.M)
    }
    assert listed == {
        table.name: [column.name for column in table.columns]
        for table in schema.metadata.tables.values()
    }


def test_nothing_reserved_exists_yet() -> None:
    assert not any(name.startswith("keep") for name in keys.__all__)
    with pytest.raises(StorageError, match="format 'y'"):
        codec.decode(codec.State, b'{"e":"y"}')


def test_the_encodings_of_a_body_are_those_of_the_page() -> None:
    table = section("Bodies").split("which `e` tells:")[1].split("Every frame")[0]
    listed = [cell.strip("`") for cell in first_column(table)]
    assert listed == ["absent", compression.WHOLE, compression.DIFFERENCE]
    assert f"1 to {compression.GROUP}," in section("Bodies")
    assert f"is {shrinking.LEAST_BYTES:,} bytes or more" in section("Bodies")
    assert f"multiple of {shrinking.SHRINK_EVERY}" in section("Bodies")


@pytest.mark.parametrize("value", [b'{"e":"d"}', b'{"e":"z","eb":[2,3]}'])
def test_a_state_has_a_base_exactly_if_it_is_a_difference(value: bytes) -> None:
    with pytest.raises(StorageError) as refused:
        codec.decode(codec.State, value)
    assert refused.value.code == ErrorCode.RECORD_CORRUPT


@pytest.mark.parametrize("encoding", ["z", "d"])
def test_a_head_is_never_written_smaller(encoding: str) -> None:
    with pytest.raises(StorageError, match=f"format '{encoding}'"):
        codec.decode(codec.Head, b'{"id":"a","v":1,"c":"b","e":"%s"}' % encoding.encode())
