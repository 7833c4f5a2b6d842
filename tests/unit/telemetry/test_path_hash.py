from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import pytest

from crux_workspace.errors import InvalidInputError
from crux_workspace.telemetry import OperationRecorder, path_hash
from crux_workspace.telemetry.path_hash import is_path_hash


def test_a_hash_is_keyed_blake2b_and_never_changes() -> None:
    assert path_hash("/workspace/a.md", b"key") == "hash:f0aba03365b441ee2282b905eb52a28e"
    digest = blake2b(b"/workspace/a.md", digest_size=16, key=b"key").hexdigest()
    assert path_hash("/workspace/a.md", "key") == f"hash:{digest}"


def test_a_hash_is_the_same_in_every_process(run_python: Callable[..., str]) -> None:
    program = (
        "from crux_workspace.telemetry import path_hash; print(path_hash('/workspace/ä.md', 'k'))"
    )
    hashes = {run_python(program, PYTHONHASHSEED=seed) for seed in ("1", "2")}
    assert hashes == {path_hash("/workspace/ä.md", b"k")}


def test_path_and_key_both_decide() -> None:
    hashes = {path_hash(path, key) for path in ("/a", "/b") for key in (b"1", b"2", "3")}
    assert len(hashes) == 6


def test_a_key_above_64_bytes_counts_whole() -> None:
    long = b"k" * 64
    assert path_hash("/a", long + b"1") != path_hash("/a", long + b"2")
    assert path_hash("/a", long + b"1") == path_hash("/a", blake2b(long + b"1").digest())
    assert path_hash("/a", long) == f"hash:{blake2b(b'/a', digest_size=16, key=long).hexdigest()}"


def test_odd_text_is_hashed_too() -> None:
    assert is_path_hash(path_hash("/\ud800", "\udfff"))


@pytest.mark.parametrize("key", [b"", ""])
def test_an_empty_key_is_refused(key: bytes | str) -> None:
    with pytest.raises(InvalidInputError):
        path_hash("/a", key)


@pytest.mark.parametrize("key", [None, 16, bytearray(b"key"), ["key"]])
def test_a_key_of_another_type_is_refused(key: Any) -> None:
    with pytest.raises(InvalidInputError):
        path_hash("/a", key)


@pytest.mark.parametrize("value", ["/workspace/a.md", "hash:", "hash:short", None, 3, b"hash:"])
def test_only_a_hash_looks_like_one(value: object) -> None:
    assert not is_path_hash(value)


def test_a_raw_path_does_not_type_check_as_a_hash(recorder: OperationRecorder) -> None:
    recorder.start("read").finish(path_hash="/raw")  # type: ignore[arg-type]
    recorder.version_marker("/raw", 1, "write")  # type: ignore[arg-type]
