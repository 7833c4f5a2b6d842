"""Run a kit without pytest, and report what a store keeps of its contract."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

from crux_workspace.storage.assets import AssetStore
from crux_workspace.storage.minimal import MinimalStore
from crux_workspace.storage.records import RecordStore
from crux_workspace.testing.asset_checks import ASSET_CHECKS
from crux_workspace.testing.checks import (
    KIT_VERSION,
    Check,
    Checks,
    Fresh,
    Hooks,
    NotApplicable,
    applies,
)
from crux_workspace.testing.minimal_checks import MINIMAL_CHECKS
from crux_workspace.testing.record_checks import RECORD_CHECKS

__all__ = ["Outcome", "Report", "check_asset_store", "check_minimal_store", "check_record_store"]

Status = Literal["passed", "failed", "skipped"]


S = TypeVar("S")
Factory = Callable[[], S | Awaitable[S] | AbstractAsyncContextManager[S]]
"""Makes a store for one check: returns it, or a coroutine or an async context manager that gives it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one check."""

    id: str
    title: str
    requires: str | None
    status: Status
    detail: str = ""
    """Why it failed or was skipped."""
    ms: int = 0


@dataclass(slots=True)
class Report:
    """The outcomes of a kit's run on one store."""

    contract: str
    """``records``, ``assets`` or ``minimal``."""
    subject: str
    """Class of the store."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    kit: int = KIT_VERSION

    @property
    def passed(self) -> bool:
        """True when checks were run and none failed."""
        return not self.failures and any(o.status == "passed" for o in self.outcomes)

    @property
    def failures(self) -> list[Outcome]:
        """The checks that failed."""
        return [o for o in self.outcomes if o.status == "failed"]

    @property
    def exit_code(self) -> int:
        """0 when the store conforms, else 1."""
        return 0 if self.passed else 1

    def groups(self) -> dict[str, tuple[int, int, int]]:
        """Return {group: (passed, run, skipped)}; groups are ``base`` and the capabilities."""
        found: dict[str, list[Outcome]] = {"base": []}
        for outcome in self.outcomes:
            found.setdefault(outcome.requires or "base", []).append(outcome)
        return {
            name: (
                sum(o.status == "passed" for o in group),
                sum(o.status != "skipped" for o in group),
                sum(o.status == "skipped" for o in group),
            )
            for name, group in found.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain JSON data."""
        return {
            "contract": self.contract,
            "subject": self.subject,
            "kit": self.kit,
            "passed": self.passed,
            "capabilities": self.capabilities,
            "groups": {
                name: {"passed": good, "run": run, "skipped": skipped}
                for name, (good, run, skipped) in self.groups().items()
            },
            "outcomes": [asdict(o) for o in self.outcomes],
        }

    def __str__(self) -> str:
        cells = []
        for name, (good, run, skipped) in self.groups().items():
            if run:
                cells.append(f"{name} {good}/{run}" + (f" ({skipped} skipped)" if skipped else ""))
            else:
                cells.append(f"{name} skipped")
        lines = [f"{self.contract}: {self.subject}   " + "   ".join(cells)]
        lines += [f"  FAILED {o.id} {o.title}\n         {o.detail}" for o in self.failures]
        verdict = "conforms" if self.passed else "does not conform"
        lines.append(f"verdict: {verdict} (kit {self.kit})")
        return "\n".join(lines)


async def check_record_store(
    factory: Factory[RecordStore],
    *,
    hooks: Hooks[RecordStore] | None = None,
    only: Iterable[str] | None = None,
    timeout_s: float = 60.0,
) -> Report:
    """Run the record kit.

    Args:
        factory: Makes the store, anew for each check; the stores may share their data.
        hooks: What the kit may do behind the store's back.
        only: Ids of the checks to run; all by default.
        timeout_s: A check that takes longer has failed.

    Returns:
        The report; it prints as a table.
    """
    return await _run("records", RECORD_CHECKS, factory, hooks, only, timeout_s)


async def check_asset_store(
    factory: Factory[AssetStore],
    *,
    hooks: Hooks[AssetStore] | None = None,
    only: Iterable[str] | None = None,
    timeout_s: float = 60.0,
) -> Report:
    """Run the asset kit; see `check_record_store`."""
    return await _run("assets", ASSET_CHECKS, factory, hooks, only, timeout_s)


async def check_minimal_store(
    factory: Factory[MinimalStore],
    *,
    hooks: Hooks[MinimalStore] | None = None,
    only: Iterable[str] | None = None,
    timeout_s: float = 60.0,
) -> Report:
    """Run the kit of minimal stores; see `check_record_store`. A store is closed if it has ``aclose``."""
    return await _run("minimal", MINIMAL_CHECKS, factory, hooks, only, timeout_s)


@asynccontextmanager
async def _opened(factory: Factory[S]) -> AsyncIterator[S]:
    made = factory()
    if isinstance(made, AbstractAsyncContextManager):
        async with made as store:
            yield store
        return
    store = await made if inspect.isawaitable(made) else made
    try:
        yield store
    finally:
        close = getattr(store, "aclose", None)
        if close is not None:
            await close()


async def _run(
    contract: str,
    checks: Checks[S],
    factory: Factory[S],
    hooks: Hooks[S] | None,
    only: Iterable[str] | None,
    timeout_s: float,
) -> Report:
    wanted = None if only is None else set(only)
    report = Report(contract, "?")
    for check in checks:
        if wanted is not None and check.id not in wanted:
            continue
        start = time.perf_counter()
        status, detail = await _outcome(report, check, factory, hooks or Hooks(), timeout_s)
        ms = round((time.perf_counter() - start) * 1000)
        report.outcomes.append(Outcome(check.id, check.title, check.requires, status, detail, ms))
    return report


async def _outcome(
    report: Report, check: Check[S], factory: Factory[S], hooks: Hooks[S], timeout_s: float
) -> tuple[Status, str]:
    try:
        async with asyncio.timeout(timeout_s), _opened(factory) as store:
            report.subject = type(store).__name__
            capabilities = getattr(store, "capabilities", None)
            if capabilities is not None:
                report.capabilities = asdict(capabilities)
            reason = applies(check, capabilities)
            if reason is not None:
                return "skipped", reason
            await check.run(store, Fresh(hooks))
    except NotApplicable as exc:
        return "skipped", str(exc)
    except TimeoutError:
        return "failed", f"took longer than {timeout_s:g} s"
    except Exception as exc:
        return "failed", _told(exc)
    return "passed", ""


def _told(exc: BaseException) -> str:
    if isinstance(exc, BaseExceptionGroup):
        return "; ".join(_told(e) for e in exc.exceptions)
    if isinstance(exc, AssertionError):
        return str(exc)
    return f"{type(exc).__name__}: {exc}"
