from __future__ import annotations

import asyncio

import pytest

from crux_workspace.errors import ConflictError, ErrorCode
from crux_workspace.model.pausing import before_another_attempt, jitter_s


def test_a_pause_doubles_up_to_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda _, most: most)
    found = [jitter_s(failures, first_s=0.1, most_s=0.5) for failures in (1, 2, 3, 4, 10_000)]
    assert found == [0.1, 0.2, 0.4, 0.5, 0.5]


def test_pauses_differ() -> None:
    found = {jitter_s(3, first_s=0.1, most_s=1) for _ in range(20)}
    assert len(found) > 10
    assert all(0 <= each <= 0.4 for each in found)


@pytest.mark.parametrize(
    ("code", "attempt", "goes_on"),
    [
        (ErrorCode.TRANSACTION_CONFLICT, 1, True),
        (ErrorCode.TRANSACTION_CONFLICT, 2, False),
        (ErrorCode.VERSION_CONFLICT, 1, False),
    ],
)
async def test_only_a_transactions_own_conflict_is_tried_again(
    code: ErrorCode, attempt: int, goes_on: bool
) -> None:
    conflict = ConflictError("it changed", code=code)
    if goes_on:
        async with asyncio.timeout(5):
            await before_another_attempt(conflict, attempt, 2)
        return
    with pytest.raises(ConflictError) as raised:
        await before_another_attempt(conflict, attempt, 2)
    assert raised.value is conflict
