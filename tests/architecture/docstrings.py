"""Reading Google docstrings: their sections, the errors they name, and their examples."""

from __future__ import annotations

import inspect
import re

SECTIONS = ("Args", "Attributes", "Cost", "Example", "Raises", "Returns", "Yields")
_HEADER = re.compile(rf"^({'|'.join(SECTIONS)}):$", re.MULTILINE)
_RAISED = re.compile(r"^(\w+):", re.MULTILINE)
_CODE = re.compile(r"``([A-Z][A-Z_]+[A-Z])``")


def sections(owner: object) -> dict[str, str]:
    """Return the sections of a docstring by name; ``""`` is what stands before them."""
    text = inspect.getdoc(owner) or ""
    parts = _HEADER.split(text)
    found = {"": parts[0]}
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        found[name] = inspect.cleandoc(body)
    return found


def raised(owner: object) -> list[str]:
    """Return the names of the errors that the ``Raises`` section lists."""
    return _RAISED.findall(sections(owner).get("Raises", ""))


def codes(owner: object) -> list[str]:
    """Return what looks like an error code in the ``Raises`` section."""
    return _CODE.findall(sections(owner).get("Raises", ""))
