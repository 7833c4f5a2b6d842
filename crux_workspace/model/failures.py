"""What may be said of an exception without its text, which may hold paths or contents."""

from __future__ import annotations

import traceback
from pathlib import PurePath

__all__ = ["where_it_failed"]

_FRAMES = 6


def where_it_failed(error: BaseException) -> str:
    """Return an exception's class and the innermost places of code it came through, for a log.

    Args:
        error: What was raised.

    Returns:
        For example ``ValueError at tools.py:12 in search, store.py:7 in find``; of a chain the first cause comes last, after ``from``.
    """
    told: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        seen.add(id(at))
        frames = traceback.extract_tb(at.__traceback__)[-_FRAMES:]
        places = [f"{PurePath(f.filename).name}:{f.lineno} in {f.name}" for f in frames]
        told.append(f"{type(at).__name__} at {', '.join(places)}" if places else type(at).__name__)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return " from ".join(told)
