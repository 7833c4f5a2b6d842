"""Cursors are opaque to users and exact to us."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crux_workspace.errors import InvalidInputError
from crux_workspace.events.cursors import (
    AFTER_COMMIT,
    NO_MARK,
    EventCursor,
    decode_event_cursor,
    encode_event_cursor,
    mark,
    parse_event_cursor,
    partition_mark,
    start_cursor,
)

PART = "w\x01n\x01"


def test_what_is_written_is_read() -> None:
    text = encode_event_cursor(PART, "inc", 7, "commit", 3)
    assert decode_event_cursor(text, PART) == EventCursor(
        partition_mark(PART), mark("inc"), 7, 3, mark("commit")
    )
    assert parse_event_cursor(text).is_inside
    assert not parse_event_cursor(encode_event_cursor(PART, "inc", 7, "commit")).is_inside
    assert len(text) == 54


def test_before_the_first_commit_there_is_no_incarnation() -> None:
    start = start_cursor(partition_mark(PART))
    assert start == EventCursor(partition_mark(PART), NO_MARK, 0, AFTER_COMMIT, NO_MARK)
    assert decode_event_cursor(start.encode(), PART) == start


def test_the_form_is_recorded() -> None:
    assert encode_event_cursor(PART, "inc", 1, "commit") == RECORDED


RECORDED = "AfcnfuLHU0i8dJaWHMAxMQAAAAAAAAAB__________92OFXL6Ph5nw"


@given(st.text(max_size=53))
def test_text_that_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        parse_event_cursor(text)
    assert caught.value.code == "INVALID_CURSOR"


@given(st.binary(max_size=48))
def test_bytes_that_are_no_cursor_are_refused(data: bytes) -> None:
    import base64

    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    if len(data) == 40 and data[0] == 1:
        assert parse_event_cursor(text).encode() == text
    else:
        with pytest.raises(InvalidInputError):
            parse_event_cursor(text)


def test_a_cursor_of_another_partition_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        decode_event_cursor(encode_event_cursor("w\x01m\x01", "inc", 1, "commit"), PART)
