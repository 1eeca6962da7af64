"""The command line: signatures and help. All else is imported inside the commands, so that
``agenteval --help`` does not load what it does not need."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="agenteval",
    help="A test runner for AI agents: YAML scenarios in, an exit code that CI can trust out.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 passed, 1 a gate failed, 2 usage or configuration, 3 inconclusive,"
    " 5 nothing selected, 130 interrupted.",
)

Paths = Annotated[
    list[str] | None,
    typer.Argument(help="Scenario files or folders; default: what the configuration includes."),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", "-c", metavar="FILE", help="Default: agenteval.yaml, searched upward."),
]
Scenario = Annotated[
    list[str] | None, typer.Option("--scenario", "-s", metavar="TEXT", help="Part of an id or name.")
]
Tag = Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="Scenarios with this tag.")]
Category = Annotated[
    list[str] | None,
    typer.Option("--category", metavar="NAME", help="capability, efficiency or robustness."),
]
Agent = Annotated[str | None, typer.Option("--agent", metavar="NAME", help="Run with this named agent.")]
Epochs = Annotated[
    int | None, typer.Option("--epochs", min=1, max=10_000, help="Conversations per scenario.")
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Transcripts of all conversations.")]


def _version(wanted: bool) -> None:
    if wanted:
        from agenteval import __version__

        sys.stdout.write(f"agenteval {__version__}\n")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command("run")
def _run(
    paths: Paths = None,
    config: ConfigFile = None,
    scenario: Scenario = None,
    tag: Tag = None,
    category: Category = None,
    agent: Agent = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", metavar="PROVIDER/MODEL", help="models.default.")
    ] = None,
    no_judge: Annotated[bool, typer.Option("--no-judge", help="Code checks only; ask no judge.")] = False,
    metric: Annotated[
        list[str] | None, typer.Option("--metric", metavar="NAME", help="Judge only this; repeatable.")
    ] = None,
    epochs: Epochs = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", min=1, help="Model calls in flight.")
    ] = None,
    report: Annotated[
        list[str] | None,
        typer.Option("--report", metavar="NAME[=PATH]", help="Add a report: json, junit, github, markdown."),
    ] = None,
    verbose: Verbose = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="Start nothing more after the first failed sample.")
    ] = False,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Of the run; default 0.")] = None,
) -> None:
    """Run scenarios against the agent; the exit code is the verdict."""
    from agenteval.commands.output import chosen_reporters
    from agenteval.commands.prepare import Request
    from agenteval.commands.run import run

    flags: dict[str, Any] = {"concurrency": concurrency, "seed": seed, "metrics": metric or None}
    if model:
        flags["models"] = {"default": model}
    request = Request(
        paths=tuple(paths or ()),
        config=config,
        filters=_filters(scenario, tag, category, agent),
        flags={key: value for key, value in flags.items() if value is not None},
        epochs=epochs,
        fail_fast=fail_fast,
        no_judge=no_judge,
    )
    raise typer.Exit(run(request, reports=chosen_reporters(report or ()), verbose=verbose))


@app.command("validate")
def _validate(
    paths: Paths = None,
    config: ConfigFile = None,
    scenario: Scenario = None,
    tag: Tag = None,
    category: Category = None,
    agent: Agent = None,
) -> None:
    """Load and check everything; call nothing."""
    from agenteval.commands.prepare import Request
    from agenteval.commands.validate import validate

    filters = _filters(scenario, tag, category, agent)
    raise typer.Exit(validate(Request(paths=tuple(paths or ()), config=config, filters=filters)))


@app.command("show-prompts")
def _show_prompts(
    metric: Annotated[str | None, typer.Option("--metric", metavar="NAME", help="Only this one.")] = None,
) -> None:
    """Every prompt as it is sent, placeholders named. Needs no configuration."""
    from agenteval.commands.show_prompts import show_prompts

    raise typer.Exit(show_prompts(metric))


def _filters(
    scenario: list[str] | None, tag: list[str] | None, category: list[str] | None, agent: str | None
) -> Any:
    from agenteval.errors import AuthorError, Problem, did_you_mean
    from agenteval.scenario import Category
    from agenteval.selection import Filters

    for name in category or ():
        if name not in set(Category):
            raise AuthorError(
                Problem(f"--category: no category is named '{name}'", did_you_mean(name, Category))
            )
    return Filters(tuple(scenario or ()), tuple(tag or ()), tuple(category or ()), agent)


def main() -> None:
    """The console script. Every error that is not a defect of ours becomes its message and exit code."""
    _open_closed_streams()
    code = _guarded(lambda: app(standalone_mode=True)) or 0
    user_code = sys.modules.get("agenteval.user_code")
    if user_code and user_code.is_left_behind():
        _exit_without_waiting(code)
    _flush()
    sys.exit(code)


def _open_closed_streams() -> None:
    """A stream that the shell closed (``2>&-``) is no reason to fail a run that passed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()


def _exit_without_waiting(code: int) -> None:
    """Python waits for threads at its end; one of the author's that hangs must not hold up the verdict.
    What is registered with ``atexit`` is still run."""
    import atexit

    atexit._run_exitfuncs()
    _flush()
    os._exit(code)


def _guarded(command: Callable[[], Any]) -> int | None:
    try:
        command()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        _say("\ninterrupted")
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (``| head``); Python would complain again at its exit.
        sys.stdout = open("/dev/null", "w", encoding="utf-8")  # noqa: SIM115
        return 3
    except Exception as error:
        return _tell(error)
    return 0


def _tell(error: BaseException) -> int:
    from agenteval.errors import AgentevalError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, AgentevalError):
        for line in str(error).split("\n"):
            _say(line if line.startswith(" ") else f"agenteval: {line}")
        return error.exit_code
    import traceback

    _say(f"agenteval: a defect of agenteval's own: {type(error).__name__}: {error}")
    if {"-v", "--verbose"} & set(sys.argv):
        traceback.print_exception(error)
    else:
        _say("  (-v shows where; please report it)")
    return 3


def _say(text: str) -> None:
    with suppress(OSError, ValueError):
        sys.stderr.write(f"{text}\n")
