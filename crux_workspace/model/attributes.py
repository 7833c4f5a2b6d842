"""What may be said of a file besides its content."""

from __future__ import annotations

from collections.abc import Mapping

from crux_workspace.errors import InvalidInputError
from crux_workspace.model.jsontext import check_json
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import refused_option

__all__ = ["check_attributes", "check_changed_attributes"]


def check_attributes(
    *,
    mime_type: object = None,
    metadata: object = None,
    status: object = None,
    kind: object = None,
) -> None:
    """Refuse attributes that could not be stored, or that would mean nothing."""
    if mime_type is metadata is status is kind is None:
        return
    for name, value in (("mime_type", mime_type), ("kind", kind)):
        if value is not None:
            check_label(name, value)
    if status not in (None, "draft", "final"):
        raise refused_option("status", "'draft', 'final' or None", status)
    if metadata is not None:
        if not isinstance(metadata, dict):
            raise InvalidInputError(
                "metadata must be a dictionary of JSON values or None.",
                details={"option": "metadata"},
            )
        check_json(metadata, "metadata")


def check_changed_attributes(given: Mapping[str, object]) -> None:
    """Refuse new values of attributes that could not be stored; all but the MIME type may be cleared."""
    check_attributes(**given)
    if given.get("mime_type", ...) is None:
        raise InvalidInputError("mime_type cannot be cleared.", details={"option": "mime_type"})
