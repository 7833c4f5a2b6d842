from __future__ import annotations

import dataclasses

import pytest

from crux_workspace.errors import ErrorCode, InvalidInputError
from crux_workspace.telemetry import Telemetry


@pytest.mark.parametrize("key", [b"s3cret-bytes", "s3cret-text"])
def test_repr_shows_no_key(key: bytes | str) -> None:
    assert "s3cret" not in repr(Telemetry(path_hash_key=key))


@pytest.mark.parametrize("key", [b"", "", 7, bytearray(b"key")])
def test_a_key_that_hides_nothing_is_refused(key: object) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Telemetry(path_hash_key=key)  # type: ignore[arg-type]
    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.hint


def test_settings_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Telemetry().path_hash_key = b"other"  # type: ignore[misc]
