"""How a command is declared: its own parameters, the shared options, help with an example, and errors as exit codes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from crux_workspace.cli.output import Output
from crux_workspace.cli.reporting import reported_failures
from crux_workspace.cli.session import Session
from crux_workspace.cli.settings import COMMON_OPTIONS, Settings, parse_when

__all__ = ["app", "at_app", "command", "group"]

Command: TypeAlias = Callable[..., Coroutine[Any, Any, None] | None]
AnyCommand = TypeVar("AnyCommand", bound=Command)

_CONTEXT = {"help_option_names": ["-h", "--help"]}
_COMMON_PARAMETERS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
    for name, annotation in COMMON_OPTIONS.items()
]
_CONTEXT_PARAMETER = inspect.Parameter(
    "ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
)

app = typer.Typer(
    name="crux-workspace",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)
at_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode="rich", subcommand_metavar="COMMAND [ARGS]..."
)


def command(
    name: str, *, panel: str, example: str, apps: tuple[typer.Typer, ...] = (app,)
) -> Callable[[AnyCommand], AnyCommand]:
    """Declare a function as a command of the given apps.

    Args:
        name: The word on the command line.
        panel: The group it is listed under.
        example: One line of shell that shows it at work.
        apps: Where it is a command.

    Returns:
        A decorator. The function takes a `Session` and then its own parameters as typer declares them; it is a coroutine function,
        or returns a coroutine after whatever must not happen inside a running loop.
    """

    def declare(function: AnyCommand) -> AnyCommand:
        entry = _entry(function)
        for each in apps:
            shown = example.replace(name, f"at 12 {name}", 1) if each is at_app else example
            each.command(
                name, help=function.__doc__, epilog=f"Example:  {shown}", rich_help_panel=panel
            )(entry)
        return function

    return declare


def group(name: str, *, panel: str, help: str, example: str) -> typer.Typer:
    """Return an app whose commands stand behind one word of the command line.

    Args:
        name: The word.
        panel: The group it is listed under.
        help: What its commands are about.
        example: One line of shell that shows one at work.
    """
    made = typer.Typer(
        no_args_is_help=True, rich_markup_mode="rich", subcommand_metavar="COMMAND [ARGS]..."
    )
    made.callback()(_declared(_plain, []))
    app.add_typer(made, name=name, help=help, epilog=f"Example:  {example}", rich_help_panel=panel)
    return made


def _plain(ctx: typer.Context, **values: Any) -> None:  # noqa: ANN401 - typer's values
    ctx.obj = _settings(ctx, values)


def _entry(function: Command) -> Callable[..., None]:
    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

    def entry(ctx: typer.Context, **values: Any) -> None:  # noqa: ANN401 - typer's values
        settings = _settings(ctx, values).with_defaults()
        output = Output(as_json=settings.as_json)
        with reported_failures(output):
            running = function(Session(settings, output), **values)
            if running is not None:
                asyncio.run(running)
            output.flush()

    return _declared(entry, [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own])


def _declared(function: Callable[..., None], own: list[inspect.Parameter]) -> Callable[..., None]:
    """Give a function the parameters that typer shall see."""
    signature = inspect.Signature([_CONTEXT_PARAMETER, *own, *_COMMON_PARAMETERS])
    function.__signature__ = signature  # type: ignore[attr-defined]
    function.__annotations__ = {
        each.name: each.annotation for each in signature.parameters.values()
    }
    return function


def _settings(ctx: typer.Context, values: dict[str, Any]) -> Settings:
    """Take the shared options out of a level's values and put them over those of the levels above."""
    above = ctx.obj if isinstance(ctx.obj, Settings) else Settings()
    return above.overridden_by({name: values.pop(name) for name in COMMON_OPTIONS})


def _version(asked: bool | None) -> None:
    if asked:
        from importlib.metadata import PackageNotFoundError, version

        try:
            installed = version("crux-workspace")
        except PackageNotFoundError:
            installed = "(not installed)"
        typer.echo(f"crux-workspace {installed}")
        raise typer.Exit


def _root(ctx: typer.Context, version: bool | None = None, **values: Any) -> None:  # noqa: ANN401
    ctx.obj = _settings(ctx, values)


def _at(ctx: typer.Context, when: str, **values: Any) -> None:  # noqa: ANN401
    ctx.obj = replace(_settings(ctx, values), when=parse_when(when))


_VERSION = inspect.Parameter(
    "version",
    inspect.Parameter.KEYWORD_ONLY,
    default=None,
    annotation=Annotated[
        bool | None,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ],
)
_WHEN = inspect.Parameter(
    "when",
    inspect.Parameter.KEYWORD_ONLY,
    annotation=Annotated[
        str,
        typer.Argument(
            metavar="WHEN",
            help="A sequence of the log, an ISO 8601 time with zone, or epoch ms such as 1748779200000ms.",
        ),
    ],
)

app.callback(
    help="A durable file workspace: every change is a version, every group of changes one commit.\n\n"
    "Content goes in by stdin and out by stdout. Exit code 0 is success, 1 a failed operation "
    "(`error CODE: message` on stderr), 2 wrong usage.",
    epilog="Start with:  crux-workspace init, then  echo hello | crux-workspace write /workspace/hello.txt",
)(_declared(_root, [_VERSION]))
at_app.callback()(_declared(_at, [_WHEN]))
app.add_typer(
    at_app,
    name="at",
    help="Look at the tree as it was.\n\nWHEN is a sequence of the log (a whole number), an ISO 8601 time with its zone, or epoch "
    "milliseconds with the suffix ms; a time means the last commit at or before it. Nothing can be changed there.",
    epilog="Example:  crux-workspace at 12 cat /workspace/notes.md",
    rich_help_panel="Time",
)
