"""The one gate before every file operation, command, tool, child and memory."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from crux_workspace.agent.permissions.answering import AnswerMethods
from crux_workspace.agent.permissions.binding import digest, is_text, slot
from crux_workspace.agent.permissions.calling import CallMethods, current_call
from crux_workspace.agent.permissions.decisions import Decision, Interrupt
from crux_workspace.agent.permissions.ledger import Asked, Ledger
from crux_workspace.agent.permissions.linting import RuleWarning, lint_policy
from crux_workspace.agent.permissions.modes import effective_mode
from crux_workspace.agent.permissions.policy import ConstraintContext, Mode, PermissionPolicy
from crux_workspace.agent.permissions.requests import (
    ClientToolRequest,
    CommandRequest,
    Request,
    SubagentRequest,
    checked_call_id,
    checked_request,
)
from crux_workspace.agent.permissions.rulebook import RuleBook, ThreadPolicies
from crux_workspace.agent.permissions.rules import EMPTY_RULES, RuleSet
from crux_workspace.agent.permissions.stores import MemoryPermissionStore, PermissionStore
from crux_workspace.agent.permissions.telling import closed, error_of, refusal
from crux_workspace.agent.permissions.threads import DEFAULT_THREAD
from crux_workspace.agent.permissions.verdicts import (
    Judgement,
    command_refusal,
    delegation_verdict,
    judge,
)
from crux_workspace.agent.permissions.wrapping import BaseOf, PathUse, refuse_denied, wrap_tools
from crux_workspace.errors import ErrorCode, PermissionDeniedError
from crux_workspace.model.clocks import Clock, random_id, wall_clock_ms
from crux_workspace.model.labels import check_label
from crux_workspace.model.options import refused_option
from crux_workspace.model.sendable import writable
from crux_workspace.storage.memory import MemoryRecordStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.tools import ToolSet

__all__ = ["PermissionGate"]

_log = logging.getLogger("crux_workspace.agent.permissions")


class PermissionGate(AnswerMethods, CallMethods):
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
        if policy is not None and not isinstance(policy, PermissionPolicy):
            raise refused_option("policy", "a PermissionPolicy or None", policy)
        self.policy = policy if policy is not None else PermissionPolicy()
        self.store: PermissionStore = (
            store if store is not None else MemoryPermissionStore(clock=clock)
        )
        self.mode = effective_mode(mode, self.policy.mode)
        self._clock = clock
        self._ledger = Ledger(
            interrupts if interrupts is not None else MemoryRecordStore(), clock, random_id
        )
        self._resuming: set[str] = set()
        self._answered = asyncio.Event()
        self._rules = RuleBook(self.policy, self.store, self.mode, thread_policy)
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
        if self._rules.asks_threads or isinstance(request, ClientToolRequest):
            root = await self._ledger.root_of(thread)
        lists = await self._rules.lists(root)
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
        return (await self._rules.lists(await self._root(thread_id))).denied

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
        call = current_call()
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


def _context(request: Request, thread: str, call_id: str | None) -> ConstraintContext:
    if isinstance(request, SubagentRequest):
        return ConstraintContext(request.name, thread, call_id, request.parent_route, request.route)
    return ConstraintContext(getattr(request, "name", request.kind), thread, call_id)
