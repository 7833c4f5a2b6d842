"""The strict resume envelope: what a client may send, and how it becomes answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crux_workspace.agent.permissions.decisions import Answer
from crux_workspace.errors import ErrorCode, InvalidInputError

__all__ = ["Entry", "entries_of"]

_ANSWERS = ("once", "always", "deny")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an envelope; its answer is judged after the set is known to fit."""

    interrupt_id: str
    answer: object

    def checked(self) -> str:
        """Return ``once``, ``always`` or ``deny``.

        Raises:
            InvalidInputError: Something else (``INVALID_RESUME_PAYLOAD``).
        """
        if self.answer in _ANSWERS and isinstance(self.answer, str):
            return self.answer
        if self.answer == "cancel":
            return "deny"
        raise bad_envelope("A resolved entry answers 'once', 'always' or 'deny'.")


def entries_of(envelope: object) -> list[Entry]:
    """Read an envelope: the page's object, or answers.

    Raises:
        InvalidInputError: It has another shape (``INVALID_RESUME_PAYLOAD``).
    """
    if isinstance(envelope, Mapping):
        return _page_entries(envelope)
    if isinstance(envelope, str | bytes) or not isinstance(envelope, Iterable):
        raise bad_envelope("The envelope must be an object with the list 'resume'.")
    entries = []
    for answer in envelope:
        if not isinstance(answer, Answer):
            raise bad_envelope("The entries must be answers; a plain object has the list 'resume'.")
        entries.append(Entry(answer.interrupt_id, answer.answer))
    return entries


def _page_entries(envelope: Mapping[str, object]) -> list[Entry]:
    unknown = set(envelope) - {"resume", "route"}
    if unknown or "resume" not in envelope:
        raise bad_envelope("The envelope takes 'resume' and 'route' and nothing else.")
    if not isinstance(envelope.get("route", ""), str):
        raise bad_envelope("'route' must be text.")
    listed = envelope["resume"]
    if not isinstance(listed, list):
        raise bad_envelope("'resume' must be a list.")
    return [_entry(item) for item in listed]


def _entry(item: object) -> Entry:
    if not isinstance(item, Mapping):
        raise bad_envelope("An entry must be an object.")
    identity, status = item.get("interruptId"), item.get("status")
    if not isinstance(identity, str) or not identity:
        raise bad_envelope("An entry needs an 'interruptId'.")
    if status == "cancelled" and set(item) == {"interruptId", "status"}:
        return Entry(identity, "cancel")
    if status == "resolved" and set(item) == {"interruptId", "status", "payload"}:
        answer = item["payload"]
        return Entry(identity, answer if answer != "cancel" else None)
    raise bad_envelope(
        "An entry is resolved and has a 'payload', or cancelled and has none; other fields are refused."
    )


def bad_envelope(message: str) -> InvalidInputError:
    """Return the error for an envelope that does not have the one shape."""
    return InvalidInputError(message, code=ErrorCode.INVALID_RESUME_PAYLOAD)
