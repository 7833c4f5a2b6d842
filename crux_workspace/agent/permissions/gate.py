"""The one gate before every file operation, command, tool, child and memory."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from crux_workspace.agent.permissions.binding import digest, is_text, slot
from crux_workspace.agent.permissions.decisions import (
    Answer,
    AnswerWord,
    Decision,
    Grant,
    Interrupt,
    Outcome,
)
from crux_workspace.agent.permissions.envelope import entries_of
from crux_workspace.agent.permissions.front import WouldRun, previewed
from crux_workspace.agent.permissions.ledger import Answered, Asked, Ledger
from crux_workspace.agent.permissions.linting import RuleWarning, lint_policy
from crux_workspace.agent.permissions.policy import (
    ConstraintContext,
    Mode,
    PermissionPolicy,
    ThreadPolicy,
    check_mode,
    checked_thread_policy,
)
from crux_workspace.agent.permissions.requests import (
    ClientToolRequest,
    CommandRequest,
    Request,
    SubagentRequest,
    checked_call_id,
    checked_request,
)
from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet
from crux_workspace.agent.permissions.stores import (
    MAX_PATTERN_CHARS,
    MemoryPermissionStore,
    PermissionStore,
    StoredPermissions,
)
from crux_workspace.agent.permissions.telling import answered_decision, closed, error_of, refusal
from crux_workspace.agent.permissions.verdicts import (
    Judgement,
    Lists,
    command_refusal,
    delegation_verdict,
    judge,
)
from crux_workspace.agent.permissions.wrapping import BaseOf, PathUse, refuse_denied, wrap_tools
from crux_workspace.errors import (
    ApprovalRequiredError,
    ErrorCode,
    PermissionDeniedError,
    ResumeError,
)
from crux_workspace.model.clocks import Clock, random_id, wall_clock_ms
from crux_workspace.model.labels import check_label
from crux_workspace.model.sendable import writable
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.tools import ToolResult, ToolSet

__all__ = ["DEFAULT_THREAD", "MODE_VARIABLE", "PermissionGate", "ThreadPolicies"]

MODE_VARIABLE = "CRUX_PERMISSIONS_MODE"
DEFAULT_THREAD = "default"
ThreadPolicies: TypeAlias = Callable[[str], "ThreadPolicy | Awaitable[ThreadPolicy | None] | None"]
_log = logging.getLogger("crux_workspace.agent.permissions")
_POLL_S = 0.2


@dataclass(slots=True)
class _Call:
    """One tool call: the approvals it used, to be given back if it pauses again."""

    call_id: str | None
    used: dict[str, dict[str, str]] = field(default_factory=dict)
    """{root thread: {slot: digest}}"""


_current: ContextVar[_Call | None] = ContextVar("crux_workspace_agent_call", default=None)


class PermissionGate:
    """Judges operations, asks a person about unknown ones, and remembers what was answered.

    One gate serves any number of threads and tasks of one event loop. What waits is kept in `interrupts`; with a durable record store
    it outlives the process, and another process answers it with a gate of its own over the same store.
    """

    def __init__(
        self,
        policy: PermissionPolicy | None = None,
        store: PermissionStore | None = None,
        mode: Mode | None = None,
        *,
        interrupts: RecordStore | None = None,
        thread_policy: ThreadPolicies | None = None,
        clock: Clock = wall_clock_ms,
    ) -> None:
        self.policy = policy if policy is not None else PermissionPolicy()
        self.store: PermissionStore = (
            store if store is not None else MemoryPermissionStore(clock=clock)
        )
        self.mode = _effective_mode(mode, self.policy.mode)
        self._clock = clock
        self._thread_policy = thread_policy
        self._ledger = Ledger(
            interrupts if interrupts is not None else MemoryRecordStore(), clock, random_id
        )
        self._resuming: set[str] = set()
        self._answered = asyncio.Event()
        self._cached: tuple[StoredPermissions, ThreadPolicy | None, str | None, Lists] | None = None
        if self.mode == "bypass":
            message = (
                "permissions: mode=bypass - nothing is checked, every path and command is open"
            )
            _log.warning(message)
            print(f"crux_workspace {message}", file=sys.stderr)

    def __repr__(self) -> str:
        return f"PermissionGate(mode={self.mode!r})"

    # -- judging

    async def check(
        self,
        request: Request,
        *,
        thread_id: str | None = None,
        call_id: str | None = None,
        interruptible: bool = True,
    ) -> Decision:
        """Judge one operation; an unknown one waits for a person when it can.

        The order is: bypass runs; a deny rule refuses, also inside the root; inside runs; an allow rule runs; an approval for this
        very call runs once; what is left is asked or refused.

        Args:
            request: What is to be done.
            thread_id: The thread that asks; None is a thread of its own, ``default``.
            call_id: The model's id of the call. With it, at most one approval of the call is open at a time.
            interruptible: Whether the caller can pause here.

        Returns:
            The decision; a denial is never raised.

        Raises:
            InvalidInputError: It is no request, or its parts or the call's id are no text (``INVALID_ARGUMENT``, ``INVALID_PATH``).
            StorageError: The permissions or interrupts cannot be read.
        """
        thread = DEFAULT_THREAD if thread_id is None else check_label("thread_id", thread_id)
        request, call_id = checked_request(request), checked_call_id(call_id)
        context = _context(request, thread, call_id)
        if self.mode == "bypass":
            return await self._bypass(request, context)
        root = thread
        if self._thread_policy is not None or isinstance(request, ClientToolRequest):
            root = await self._ledger.root_of(thread)
        lists = await self._lists(root)
        found = await judge(request, lists, self.policy, context)
        if isinstance(request, ClientToolRequest):
            found = await self._recorded(found, request, root, call_id)
        if found.outcome == "allow":
            return Decision(True, "allow", found.rule)
        if found.outcome == "deny":
            return refusal(found)
        return await self._ask(request, found, thread, call_id, interruptible, lists.scope)

    async def require(
        self,
        request: Request,
        *,
        thread_id: str | None = None,
        call_id: str | None = None,
        interruptible: bool = True,
    ) -> Decision:
        """Judge one operation like `check`, and raise unless it is allowed.

        Args:
            request: What is to be done.
            thread_id: The thread that asks.
            call_id: The model's id of the call.
            interruptible: Whether the caller can pause here.

        Returns:
            The decision that allows it.

        Raises:
            PermissionDeniedError: It is refused (``PERMISSION_DENIED``, ``DELEGATION_DENIED``).
            ApprovalRequiredError: It waits for a person (``APPROVAL_REQUIRED``).
            NotFoundError: The parent has no such child (``SUBAGENT_UNKNOWN``).
        """
        decision = await self.check(
            request, thread_id=thread_id, call_id=call_id, interruptible=interruptible
        )
        if not decision.allowed:
            raise error_of(decision)
        return decision

    async def require_paths(self, uses: Sequence[PathUse], *, thread_id: str | None = None) -> None:
        """Refuse a call that touches a denied path; of a whole tree, also one with a denied path in it.

        Args:
            uses: What the call touches.
            thread_id: The thread that asks.

        Raises:
            PermissionDeniedError: A deny rule covers one of them (``PERMISSION_DENIED``).
        """
        if uses:
            refuse_denied(await self.denied_rules(thread_id), uses)

    async def refuse_denied_command(
        self, request: CommandRequest, *, thread_id: str | None = None
    ) -> None:
        """Refuse a command that a rule denies or may deny; what is otherwise unknown is for another gate to judge.

        Args:
            request: The command.
            thread_id: The thread that asks.

        Raises:
            PermissionDeniedError: A rule denies it, or it cannot be told whether one does (``PERMISSION_DENIED``).
        """
        reason = command_refusal(request, await self.denied_rules(thread_id))
        if reason is not None:
            raise PermissionDeniedError(reason, hint="Do without it, or ask for permission.")

    async def denied_rules(self, thread_id: str | None = None) -> RuleSet:
        """Return the deny rules that count for a thread now: of the policy, the store and the thread itself; none in bypass.

        Args:
            thread_id: The thread.

        Returns:
            The rules.
        """
        if self.mode == "bypass":
            return EMPTY_RULES
        return (await self._lists(await self._root(thread_id))).denied

    def wrap(
        self, tools: Iterable[Any], *, thread_id: str | None = None, base: BaseOf | None = None
    ) -> ToolSet:
        """Return tools whose calls are judged first: by deny, allow, approve and constrain; what none of them names runs.

        The tools of a workspace are also refused when a path they name is denied; of a rename or copy both ends count. The tools of
        `agent_tools` are judged like with ``gate=`` this one; those that have a gate of their own are refused what this one denies, too.

        Args:
            tools: Any tools with `name`, `description`, `parameters` and `call`.
            thread_id: Thread that the calls belong to.
            base: Names the version that a call works on; an approval is for that version alone. None asks the tool, if it can tell.

        Returns:
            The tools, of the same names.
        """
        return wrap_tools(self, tools, thread_id, base)

    def lint(self, tools: Iterable[Any] = ()) -> list[RuleWarning]:
        """Return the rules of the policy that are hardly what was meant.

        Args:
            tools: The tools there are, or their names; of a subagent those it was granted. Empty when that is not known.

        Returns:
            The warnings.
        """
        names = {tool if isinstance(tool, str) else tool.name for tool in tools}
        return lint_policy(self.policy, names)

    async def _bypass(self, request: Request, context: ConstraintContext) -> Decision:
        if isinstance(request, SubagentRequest):
            found = await delegation_verdict(request, self.policy, context)
            if isinstance(found, Judgement):
                return refusal(found)
        return Decision(True, "allow", "bypass")

    async def _recorded(
        self, found: Judgement, request: ClientToolRequest, root: str, call_id: str | None
    ) -> Judgement:
        """Take the decision on a client tool's call once: what was decided before it parked holds."""
        if call_id is None:
            return found
        allowed = found.outcome == "allow"
        first = await self._ledger.recorded_client_decision(root, call_id, request.name, allowed)
        if first == allowed:
            return found
        if first:
            return Judgement("allow")
        return Judgement(
            "deny",
            reason=f"Permission denied: client tool {request.name} was denied.",
            code=ErrorCode.PERMISSION_DENIED,
        )

    async def _ask(
        self,
        request: Request,
        found: Judgement,
        thread: str,
        call_id: str | None,
        interruptible: bool,
        scope: str | None,
    ) -> Decision:
        if self.mode != "interactive":
            return Decision(True, "allow") if found.runs_headless else closed(found)
        root = await self._ledger.root_of(thread)
        call = _current.get()
        own_call_id = call_id if call_id is not None else (call.call_id if call else None)
        asked = Asked(
            slot(request, thread, call_id),
            Interrupt(
                interrupt_id=f"perm-{random_id()[:20]}",
                kind=request.kind,
                detail=writable(found.detail),
                tool_call_id=own_call_id,
                allow_always=found.allow_always and all(is_text(p) for _, p in found.grants),
                thread_id=thread,
                digest=digest(request, own_call_id),
                created_at=self._clock(),
            ),
            found.grants,
            scope,
        )
        if not interruptible:
            return Decision(True, "allow") if found.runs_headless else closed(found)
        waiting = await self._ledger.claim_or_park(root, asked)
        if waiting is None:
            if call is not None:
                call.used.setdefault(root, {})[asked.slot] = asked.interrupt.digest
            return Decision(True, "allow", answer="once")
        return Decision(
            False,
            "interrupt",
            reason=f"Approval required: {found.subject}. The call did nothing; repeat it once it is approved.",
            code=ErrorCode.APPROVAL_REQUIRED.value,
            interrupt=waiting,
        )

    @asynccontextmanager
    async def calling(self, call_id: str | None = None) -> AsyncIterator[None]:
        """Hold one tool call together: when it pauses again, the approvals it has used already are given back.

        Args:
            call_id: The model's id of the call, shown with its prompts.

        Raises:
            InvalidInputError: The id is no text that can be kept (``INVALID_ARGUMENT``).
        """
        call = _Call(checked_call_id(call_id))
        token = _current.set(call)
        try:
            yield
        except (ApprovalRequiredError, WouldRun):
            await self.give_back()
            raise
        finally:
            _current.reset(token)

    async def give_back(self) -> None:
        """Give back the approvals that the current call (see `calling`) has used: it pauses again and did nothing."""
        call = _current.get()
        if call is None:
            return
        for root, slots in call.used.items():
            await self._ledger.restore(root, slots)
        call.used.clear()

    async def preview(
        self,
        tool: Any,  # noqa: ANN401 - anything like a tool
        arguments: Mapping[str, Any],
        *,
        call_id: str | None = None,
    ) -> Decision:
        """Judge a call of a gated tool without making it; what would be asked is pending afterwards.

        Args:
            tool: A tool of `agent_tools` or `wrap` over this gate.
            arguments: The call's arguments.
            call_id: The model's id of the call.

        Returns:
            The decision on the whole call.
        """
        try:
            with previewed():
                result: ToolResult = await tool.call(arguments, call_id=call_id)
        except WouldRun:
            return Decision(True, "allow")
        error = result.error
        outcome: Outcome = "interrupt" if result.interrupt is not None else "deny"
        return Decision(
            False,
            outcome,
            reason=error.message if error else None,
            code=error.code if error else None,
            interrupt=result.interrupt,
        )

    async def settle(self, interrupt: Interrupt, answer: AnswerWord) -> Decision:
        """Answer one interrupt alone, for frameworks that collect answers themselves.

        Args:
            interrupt: What was asked.
            answer: ``once``, ``always``, ``deny`` or ``cancel``.

        Returns:
            The decision; when it allows, repeat the call.

        Raises:
            ResumeError: It is not pending any more (``STALE_INTERRUPT``).
            InvalidInputError: No such answer (``INVALID_RESUME_PAYLOAD``).
        """
        root = await self._root(interrupt.thread_id)
        entries = entries_of([Answer(interrupt.interrupt_id, answer)])
        answered = await self._ledger.resume(root, entries, alone=True)
        decision = await self._settled(answered[0])
        self._answered.set()
        self._answered = asyncio.Event()
        return decision

    # -- rules that count

    async def _lists(self, root: str) -> Lists:
        held = await self.store.load()
        own: ThreadPolicy | None = None
        if self._thread_policy is not None:
            given = self._thread_policy(root)
            own = checked_thread_policy(await given if inspect.isawaitable(given) else given)
        scope = root if own is not None else None
        cached = self._cached
        if cached is not None and cached[0] is held and cached[1] is own and cached[2] == scope:
            return cached[3]
        lists = self._combined(held, own, scope)
        self._cached = (held, own, scope, lists)
        return lists

    def _combined(
        self, held: StoredPermissions, own: ThreadPolicy | None, scope: str | None
    ) -> Lists:
        granted = held.rules(scope) if self.mode == "interactive" else EMPTY_RULES
        allowed = self.policy.allowed if own is None else RuleSet(own.allow)
        denied = self.policy.denied.joined(held.denied)
        if own is not None:
            denied = denied.joined(RuleSet(own.deny))
        return Lists(allowed.joined(granted), denied, scope)

    # -- answering

    async def pending(self, thread_id: str | None = None) -> list[Interrupt]:
        """Return what waits in a thread and in the threads it adopted, oldest first.

        Args:
            thread_id: The thread; a child stands for its root.

        Returns:
            The interrupts.

        Raises:
            ResumeError: The record of one is damaged (``MALFORMED_CHECKPOINT``).
        """
        return await self._ledger.pending(await self._root(thread_id))

    async def resume(
        self, thread_id: str | None, envelope: Mapping[str, object] | Iterable[Answer]
    ) -> list[Decision]:
        """Answer everything that waits in a thread, all or nothing; afterwards the caller repeats the paused calls.

        Args:
            thread_id: The root thread.
            envelope: ``{"resume": [...], "route": ...}`` as clients send it, or `Answer` values; exactly the pending set.

        Returns:
            One decision an answer, in the order of the envelope.

        Raises:
            ResumeError: ``RESUME_REQUIRED``, ``STALE_INTERRUPT``, ``INTERRUPT_SET_MISMATCH``, ``RESUME_IN_PROGRESS`` or
                ``MALFORMED_CHECKPOINT``.
            InvalidInputError: Another shape, or no answer (``INVALID_RESUME_PAYLOAD``).
        """
        async with self.resuming(thread_id):
            return await self.resume_held(thread_id, envelope)

    @asynccontextmanager
    async def resuming(self, thread_id: str | None) -> AsyncIterator[str]:
        """Hold a root thread while it is resumed and goes on; another resume meanwhile is ``RESUME_IN_PROGRESS``.

        Args:
            thread_id: The thread; a child stands for its root.

        Raises:
            ResumeError: It is held already (``RESUME_IN_PROGRESS``).
        """
        root = await self._root(thread_id)
        if root in self._resuming:
            raise ResumeError(
                "The thread is being resumed already.",
                code=ErrorCode.RESUME_IN_PROGRESS,
                hint="Wait for its answer, then read the pending interrupts again.",
            )
        self._resuming.add(root)
        try:
            yield root
        finally:
            self._resuming.discard(root)

    async def resume_held(
        self, thread_id: str | None, envelope: Mapping[str, object] | Iterable[Answer]
    ) -> list[Decision]:
        """Resume like `resume` a thread that the caller holds by `resuming`, so that what goes on is held too.

        Args:
            thread_id: The root thread.
            envelope: Exactly the pending set.

        Returns:
            One decision an answer.

        Raises:
            ResumeError: The set does not fit what is pending.
            InvalidInputError: Another shape, or no answer (``INVALID_RESUME_PAYLOAD``).
        """
        answered = await self._ledger.resume(await self._root(thread_id), entries_of(envelope))
        decisions = [await self._settled(item) for item in answered]
        self._answered.set()
        self._answered = asyncio.Event()
        return decisions

    async def _settled(self, answered: Answered) -> Decision:
        if answered.answer == "always":
            for key, pattern in answered.grants:
                if len(pattern) > MAX_PATTERN_CHARS:
                    _log.warning(
                        "a grant of more than %d characters for %s is not kept",
                        MAX_PATTERN_CHARS,
                        key,
                    )
                    continue
                await self.store.add(key, pattern, thread_id=answered.scope)
        return answered_decision(answered)

    async def wait(self, interrupt: Interrupt, *, timeout_ms: int | None = None) -> Decision:
        """Wait until an interrupt is answered, by this process or another one.

        Args:
            interrupt: What was asked.
            timeout_ms: How long to wait; None waits for ever.

        Returns:
            The decision; when it allows, repeat the call. When nobody answers in time it raises the builtin ``TimeoutError``, and the
            interrupt still waits.

        Raises:
            ResumeError: It is not pending any more, because the call came again in another form (``STALE_INTERRUPT``).
        """
        root = await self._ledger.root_of(interrupt.thread_id)
        async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
            while True:
                wake = self._answered
                found = await self._ledger.answer(root, interrupt.interrupt_id)
                if found is not None:
                    return answered_decision(found)
                pending = await self._ledger.pending(root)
                if interrupt.interrupt_id not in {item.interrupt_id for item in pending}:
                    if await self._ledger.answer(root, interrupt.interrupt_id) is None:
                        raise ResumeError("The interrupt is not pending any more; repeat the call.")
                    continue
                with suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await wake.wait()

    # -- grants and threads

    async def waiting_threads(self) -> list[str]:
        """Return the root threads in which something waits."""
        return await self._ledger.threads()

    async def grants(self, thread_id: str | None = None) -> list[Grant]:
        """Return the standing approvals.

        Args:
            thread_id: Only those of this thread; None gives all.

        Returns:
            The grants, oldest first.
        """
        held = (await self.store.load()).grants
        wanted = [g for g in held if thread_id is None or g.thread_id == thread_id]
        return sorted(wanted, key=lambda grant: (grant.created_at, grant.grant_id))

    async def revoke(self, grant_id: str) -> bool:
        """Take a standing approval back; it counts no more from the next check on.

        Args:
            grant_id: Its id.

        Returns:
            Whether there was one.
        """
        return await self.store.remove(grant_id)

    async def forget_thread(self, thread_id: str) -> None:
        """Forget a thread: its grants, what waits in it, and its approvals.

        Args:
            thread_id: The thread.
        """
        await self.store.forget(thread_id)
        await self._ledger.forget(thread_id)

    async def adopt(self, child_thread: str, parent_thread: str) -> None:
        """Let a child thread's interrupts be pending in, and answered through, its parent's root thread.

        The child's calls are judged by the root thread's own policy and grants.

        Args:
            child_thread: The thread of the child, in which nothing waits yet.
            parent_thread: The thread that started it.

        Raises:
            ResumeError: Something waits in the child already (``RESUME_REQUIRED``).
            InvalidInputError: The parent is the child itself, or descends from it (``INVALID_ARGUMENT``).
        """
        if await self._ledger.has_pending(child_thread):
            raise ResumeError(
                "Something waits in the child thread already; answer it first, or adopt the thread before it starts.",
                code=ErrorCode.RESUME_REQUIRED,
            )
        await self._ledger.adopt(
            check_label("child_thread", child_thread), check_label("parent_thread", parent_thread)
        )

    async def _root(self, thread_id: str | None) -> str:
        thread = DEFAULT_THREAD if thread_id is None else check_label("thread_id", thread_id)
        return await self._ledger.root_of(thread)


def _effective_mode(given: Mode | None, of_policy: Mode | None) -> Mode:
    """Return the mode: the explicit one, which the environment may only tighten; else environment, policy, default."""
    named = os.environ.get(MODE_VARIABLE)
    environment = check_mode(named) if named else None
    if given is not None:
        explicit = check_mode(given)
        return "non-interactive" if environment == "non-interactive" else explicit
    return environment or of_policy or "interactive"


def _context(request: Request, thread: str, call_id: str | None) -> ConstraintContext:
    if isinstance(request, SubagentRequest):
        return ConstraintContext(request.name, thread, call_id, request.parent_route, request.route)
    return ConstraintContext(getattr(request, "name", request.kind), thread, call_id)
