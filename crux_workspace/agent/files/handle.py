"""`ctx.fs`: the handle through which code and tools reach files, the gate always first."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from crux_workspace.agent.files.contract import (
    FileStat,
    FilesystemBackend,
    FsContext,
    LineWindow,
    Pin,
    backend_method,
    checked_cap,
    method_of,
)
from crux_workspace.agent.permissions.front import (
    denied_in_front,
    gates_in_front,
    stop_if_previewed,
)
from crux_workspace.agent.permissions.gate import PermissionGate
from crux_workspace.agent.permissions.requests import PathOperation, PathRequest, canonical
from crux_workspace.agent.permissions.wrapping import PathUse, refuse_denied
from crux_workspace.errors import (
    ErrorCode,
    InvalidInputError,
    InvalidPathError,
    PermissionDeniedError,
    WorkspaceError,
)
from crux_workspace.model.options import refused_option, shown, whole_number

__all__ = ["TOOL_OUTPUTS", "Access", "WorkspaceFs"]

TOOL_OUTPUTS = "tool-outputs"
"""Folder below the root for offloaded tool results; files in it are read whole."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Access:
    """One tool call, as far as the gate binds approvals to it."""

    call_id: str | None = None
    arguments: Mapping[str, Any] | None = None


_CODE = Access()


@dataclass(frozen=True, slots=True)
class _Judged:
    """A path that may be used: where it is, and the context to use it with."""

    path: str
    ctx: FsContext
    pin: Pin | None
    root: str

    @property
    def is_tool_output(self) -> bool:
        return self.path.startswith(f"{self.root.rstrip('/')}/{TOOL_OUTPUTS}/")


class WorkspaceFs:
    """Files by path, relative ones from the workspace's root; every call passes the gate first.

    Inside the root a call runs unless a rule denies it; outside it needs an allow rule or a person. Without a gate nothing outside is
    open. What was judged is what is opened, when the backend can hold it (`local_filesystem` and `workspace_filesystem` can).
    """

    def __init__(
        self,
        backend: FilesystemBackend,
        *,
        gate: PermissionGate | None = None,
        thread_id: str | None = None,
        interruptible: bool = True,
        follows: bool = False,
    ) -> None:
        """Make the handle; with `follows`, one without a gate takes the gate that the running call was put behind."""
        root = getattr(backend, "root", None)
        if root is None:
            raise refused_option("filesystem", "a filesystem", backend)
        if gate is not None and not hasattr(gate, "check"):
            raise refused_option("gate", "a PermissionGate or None", gate)
        if not _is_path(root) or not root.startswith("/"):
            raise InvalidPathError(
                f"The root of a filesystem must be an absolute POSIX path, not {shown(root)}.",
                details={"option": "root"},
            )
        self._backend = backend
        self._gate = gate
        self._thread_id = thread_id
        self._interruptible = interruptible
        self._follows = follows

    def __repr__(self) -> str:
        return f"WorkspaceFs({self._backend.root!r})"

    @property
    def root(self) -> str:
        """Absolute path that relative ones start from."""
        return self._backend.root

    async def read_file(
        self,
        path: str,
        *,
        max_bytes: int | None = None,
        start_line: int | None = None,
        end_line: int | None = None,
    ) -> str:
        """Return a file's text, or some of its lines.

        Args:
            path: Relative to the root, or absolute.
            max_bytes: Replaces the backend's cap on what this call returns.
            start_line: First line, from 1; with a range only the range has to fit the cap.
            end_line: Last line, included; may lie past the end.

        Returns:
            The text; of a range, its lines.

        Raises:
            PermissionDeniedError: The gate refuses (``PERMISSION_DENIED``).
            ApprovalRequiredError: The gate asks a person (``APPROVAL_REQUIRED``).
            PathNotFoundError: There is no such file (``FILE_NOT_FOUND``).
            LimitExceededError: It is larger than the cap (``FILE_TOO_LARGE``).
            InvalidInputError: A range that cannot be (``INVALID_ARGUMENT``).
        """
        if start_line is None and end_line is None:
            return await self.read_text_as(path, max_bytes=max_bytes)
        return (await self.read_lines_as(path, start_line, end_line, max_bytes=max_bytes)).text

    async def read_binary_file(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """Return a file's bytes.

        Args:
            path: Relative to the root, or absolute.
            max_bytes: Replaces the backend's cap.

        Returns:
            The bytes.

        Raises:
            UnsupportedError: The backend cannot read bytes (``CAPABILITY_MISSING``); nobody was asked.
            PermissionDeniedError: The gate refuses (``PERMISSION_DENIED``).
            ApprovalRequiredError: The gate asks a person (``APPROVAL_REQUIRED``).
        """
        read = backend_method(self._backend, "read_binary_file")

        async def work(judged: _Judged) -> bytes:
            found: bytes = await read(
                judged.path, judged.ctx, max_bytes=self._cap(judged, max_bytes)
            )
            return found

        return await self._operate("readFile", path, work)

    async def write_file(self, path: str, content: str) -> int:
        """Write a whole file; missing folders are made.

        Args:
            path: Relative to the root, or absolute.
            content: The text.

        Returns:
            UTF-8 bytes written.

        Raises:
            PermissionDeniedError: The gate refuses (``PERMISSION_DENIED``).
            ApprovalRequiredError: The gate asks a person (``APPROVAL_REQUIRED``).
        """
        return await self.write_as(path, content)

    async def list_dir(self, path: str = ".") -> list[str]:
        """Return the names in a folder.

        Args:
            path: Relative to the root, or absolute; the root when it is left out.

        Returns:
            Names without their folder, sorted.

        Raises:
            PermissionDeniedError: The gate refuses (``PERMISSION_DENIED``).
            ApprovalRequiredError: The gate asks a person (``APPROVAL_REQUIRED``).
            PathNotFoundError: There is no such folder (``FILE_NOT_FOUND``).
        """
        return await self.list_as(path)

    async def stat(self, path: str) -> FileStat:
        """Tell what is at a path; judged like reading it. A link is followed, because where it leads is what was judged.

        Args:
            path: Relative to the root, or absolute.

        Returns:
            Kind, size and time.

        Raises:
            UnsupportedError: The backend cannot tell (``CAPABILITY_MISSING``); nobody was asked.
            PermissionDeniedError: The gate refuses (``PERMISSION_DENIED``).
            ApprovalRequiredError: The gate asks a person (``APPROVAL_REQUIRED``).
        """
        inspect_path = method_of(self._backend, "stat_file") or backend_method(
            self._backend, "lstat"
        )

        async def work(judged: _Judged) -> FileStat:
            found: FileStat = await inspect_path(judged.path, judged.ctx)
            return found

        return await self._operate("readFile", path, work)

    # -- for the tools: the same, bound to a call

    async def read_text_as(
        self, path: str, *, max_bytes: int | None = None, access: Access = _CODE
    ) -> str:
        """Read a whole text on behalf of a call."""

        async def work(judged: _Judged) -> str:
            cap = self._cap(judged, max_bytes)
            text = await self._backend.read_file(judged.path, judged.ctx, max_bytes=cap)
            await self._used(judged)
            return text

        return await self._operate("readFile", path, work, access)

    async def read_lines_as(
        self,
        path: str,
        start: int | None,
        end: int | None,
        *,
        max_bytes: int | None = None,
        access: Access = _CODE,
    ) -> LineWindow:
        """Read some lines on behalf of a call."""
        first = 1 if start is None else start
        for option, line in (("start_line", first), ("end_line", end)):
            whole_number(option, line, least=1)
        if end is not None and first > end:
            raise InvalidInputError(
                f"readFile: startLine ({first}) is greater than endLine ({end})",
                details={"option": "start_line"},
            )

        async def work(judged: _Judged) -> LineWindow:
            cap = self._cap(judged, max_bytes)
            window = await self._window(judged, first, end, cap)
            if first > window.total:
                raise InvalidInputError(
                    f"readFile: startLine {first} is past the end of {path} ({window.total} lines)",
                    details={"option": "start_line", "lines": window.total},
                )
            await self._used(judged)
            return window

        return await self._operate("readFile", path, work, access)

    async def write_as(self, path: str, content: str, *, access: Access = _CODE) -> int:
        """Write a whole file on behalf of a call."""
        if not _is_text(content):
            raise InvalidInputError(
                "The content must be text.",
                code=ErrorCode.INVALID_CONTENT,
                details={"option": "content"},
            )
        try:
            content.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInputError(
                "The content holds lone surrogates, which are no text.",
                code=ErrorCode.INVALID_CONTENT,
                details={"option": "content"},
            ) from None

        async def work(judged: _Judged) -> int:
            return await self._backend.write_file(judged.path, content, judged.ctx)

        bound = access if access.arguments else Access(access.call_id, {"content": content})
        return await self._operate("writeFile", path, work, bound)

    async def list_as(self, path: str, *, access: Access = _CODE) -> list[str]:
        """List a folder on behalf of a call."""

        async def work(judged: _Judged) -> list[str]:
            return sorted(await self._backend.list_dir(judged.path, judged.ctx))

        return await self._operate("listDir", path, work, access)

    async def edit_as(
        self, path: str, change: Callable[[bytes], bytes], *, access: Access = _CODE
    ) -> bool:
        """Read, change and write a file as one step; False when the change changed nothing.

        Raises:
            ConflictError: Somebody else changed the file in between; nothing was written.
        """
        backend = self._backend
        whole = method_of(backend, "read_for_edit")
        read = whole or backend_method(backend, "read_binary_file")
        replace = method_of(backend, "replace")

        async def work(judged: _Judged) -> bool:
            old: bytes = await read(judged.path, judged.ctx)
            new = change(old)
            if new == old:
                return False
            if replace is not None:
                await replace(judged.path, old, new, judged.ctx)
            else:
                await backend.write_file(judged.path, new.decode(), judged.ctx)
            return True

        return await self._operate("editFile", path, work, access)

    async def base_of(self, path: str) -> str | None:
        """Name the version that is at a path now, for binding an approval to it."""
        judged = await self._find(path)
        if judged.pin is None:
            return None
        try:
            return judged.pin.base
        finally:
            judged.pin.close()

    # -- the one way in

    async def _operate(
        self,
        operation: PathOperation,
        path: str,
        work: Callable[[_Judged], Awaitable[_T]],
        access: Access = _CODE,
    ) -> _T:
        judged = await self._find(path)
        try:
            await self._judge(operation, judged, access)
            stop_if_previewed()
            return await work(judged)
        finally:
            if judged.pin is not None:
                judged.pin.close()

    async def _find(self, path: str) -> _Judged:
        if not _is_path(path):
            raise InvalidPathError("A path must be text without NUL.", details={"option": "path"})
        backend = self._backend
        ctx = FsContext(backend.root)
        wanted = path if path.startswith("/") else f"{backend.root.rstrip('/')}/{path}"
        pin = method_of(backend, "pin")
        if pin is None:
            real = await self._real(wanted, ctx)
            return _Judged(real, ctx, None, await self._real(backend.root, ctx))
        held: Pin = await pin(wanted, ctx)
        try:
            root = await backend.real_path(backend.root, ctx)
        except BaseException:
            held.close()
            raise
        return _Judged(held.path, ctx.pinned(held), held, root)

    async def _real(self, path: str, ctx: FsContext) -> str:
        """Return what a backend without pins makes of a path: it is given a plain one, and its answer is made plain, too."""
        found: object = await self._backend.real_path(canonical(path), ctx)
        if not isinstance(found, str) or not found.startswith("/") or "\x00" in found:
            raise InvalidPathError(
                f"The filesystem backend {type(self._backend).__name__} gave no absolute path for {path}.",
                details={"path": path},
            )
        return canonical(found)

    async def _judge(self, operation: PathOperation, judged: _Judged, access: Access) -> None:
        pin = judged.pin
        is_write = operation in ("writeFile", "editFile")
        is_elsewhere = is_write and pin is not None and pin.is_shared
        request = PathRequest(
            operation,
            judged.path,
            None if is_elsewhere else judged.root,
            base=pin.base if pin is not None and operation != "listDir" else None,
            arguments=access.arguments,
            is_canonical=True,
        )
        gate, thread_id = self._gate, self._thread_id
        outer = gates_in_front()
        if gate is None and self._follows and outer:
            *outer_gates, own = outer
            outer, gate, thread_id = tuple(outer_gates), own.gate, own.thread_id
        if outer:
            refuse_denied(
                await denied_in_front(outer), [PathUse(request.keys, request.path, False)]
            )
        if gate is not None:
            await gate.require(
                request,
                thread_id=thread_id,
                call_id=access.call_id,
                interruptible=self._interruptible,
            )
        elif not request.is_inside:
            raise PermissionDeniedError(
                f"Permission denied: {judged.path} is outside the workspace, and there is no gate to allow it.",
                details={"path": judged.path},
                hint="Stay inside the workspace.",
            )

    async def _window(
        self, judged: _Judged, first: int, last: int | None, cap: int | None
    ) -> LineWindow:
        lines = method_of(self._backend, "read_lines")
        if lines is not None:
            found: LineWindow = await lines(judged.path, first, last, judged.ctx, max_bytes=cap)
            return found
        text = await self._backend.read_file(judged.path, judged.ctx, max_bytes=cap)
        split = text.split("\n")
        if split[-1] == "":
            split.pop()
        total = len(split)
        return LineWindow(
            "\n".join(split[first - 1 : last]), first, min(last or total, total), total
        )

    def _cap(self, judged: _Judged, max_bytes: int | None) -> Any:  # noqa: ANN401 - bytes or infinity
        if max_bytes is None and judged.is_tool_output:
            return float("inf")
        checked_cap(max_bytes)
        return max_bytes

    async def _used(self, judged: _Judged) -> None:
        """Let an offloaded result count as used just now, so that it is collected last."""
        touch = method_of(self._backend, "touch_file")
        if touch is not None and judged.is_tool_output:
            with suppress(WorkspaceError, OSError):
                await touch(judged.path, judged.ctx)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_path(value: object) -> bool:
    return isinstance(value, str) and "\x00" not in value


def _is_line(value: object) -> bool:
    return value is None or (type(value) is int and value >= 1)
