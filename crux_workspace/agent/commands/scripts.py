"""A command line taken apart: the simple commands in it, the files it opens, what it feeds to programs."""

from __future__ import annotations

from dataclasses import dataclass, field

from crux_workspace.agent.commands.words import Word

__all__ = ["Redirection", "Script", "SimpleCommand"]


@dataclass(frozen=True, slots=True)
class Redirection:
    """A file that a command line opens."""

    operation: str
    """``readFile`` or ``writeFile``."""
    target: str | None
    """Its name, as the shell makes of it; None when it is known only at run time."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One program call: leading assignments, the program, its arguments."""

    words: tuple[Word, ...]
    assignments: int = 0
    """How many of the words are leading assignments."""

    @property
    def program(self) -> Word | None:
        """The program's word; None when there are only assignments."""
        return self.words[self.assignments] if len(self.words) > self.assignments else None


@dataclass(slots=True)
class Script:
    """A command line taken apart."""

    commands: list[SimpleCommand] = field(default_factory=list)
    redirections: list[Redirection] = field(default_factory=list)
    fed: list[str | None] = field(default_factory=list)
    """What heredocs and here-strings feed to programs; None for what is known only at run time."""
    trouble: str | None = None
    """Why the line is not understood; None when it is."""
