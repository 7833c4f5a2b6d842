"""A pytest plugin (``-p tests.support.skips``): a skipped test must say which undeclared ability it is about.

A kit check that a store does not promise to pass is skipped and says why; every other skip fails the run, so that green never means
"silently skipped".
"""

from __future__ import annotations

import re

import pytest

STATED = re.compile(
    r"[A-Z]-\d{3}: (?:"
    r"\w+ is (?:not )?declared"
    r"|\w+ is \d+, the check needs \d+"
    r"|the hook `\w+` is not given"
    r")"
)
"""What a conformance kit says when a store does not declare what a check is about."""

_unstated: list[str] = []


def reason_of(report: pytest.TestReport) -> str:
    """Return what a skipped test said."""
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[2]).removeprefix("Skipped: ")
    return str(report.longrepr)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = reason_of(report)
        if STATED.fullmatch(reason) is None:
            _unstated.append(f"{report.nodeid}: {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _unstated and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _unstated:
        terminalreporter.section("skipped without naming an undeclared ability", red=True)
        for line in _unstated:
            terminalreporter.write_line(line)
