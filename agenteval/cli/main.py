"""The command-line entry point (CLI argument parser, built with Typer): subcommands, options and help texts.
Everything else is imported inside the commands, so that ``agenteval --help`` stays fast."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer

from agenteval.cli.command_group import CommandGroup
from agenteval.cli.declared_commands import DeclaredCommands
from agenteval.cli.help_pages import WIDEST
from agenteval.cli.optional_numbers import ReportCommand
from agenteval.cli.options import (
    RUN_HELP,
    RUN_PANEL,
    AgentOption,
    ConfigOption,
    EpochsOption,
    FaultsOption,
    JsonOption,
    JudgeOptions,
    KeepBaselineOption,
    MetricOption,
    ModelOption,
    OpenOption,
    QuietOption,
    ReportingOptions,
    ScenarioOption,
    SelectionOptions,
    VariantsOption,
    VerboseOption,
    detail_of,
    drop_unset_keys,
    given_options,
    make_completer,
    reporter_choices,
    request_from_options,
)
from agenteval.cli.safe_output import UnwritableError, print_author_error, print_err, print_out
from agenteval.conversation import exits

RUNNING, LOOKING, CHECKING = "Run", "Inspect runs", "Check the setup"


class _Commands(CommandGroup):
    declared = DeclaredCommands()


app = typer.Typer(
    name="agenteval",
    cls=_Commands,
    help="A test runner for AI agents: YAML scenarios in, an exit code that CI can trust out.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": WIDEST, "help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 passed, 1 a gate failed, 2 usage or configuration, 3 inconclusive,"
    " 5 nothing selected, 130 interrupted.",
)
command = _Commands.declared.command


def _version(wanted: bool) -> None:
    if wanted:
        from agenteval import __version__

        print_out(f"agenteval {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


@command("init", RUNNING)
def _init(
    folder: Annotated[
        str, typer.Argument(metavar="DIR", help="The project folder; created if needed.")
    ] = ".",
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="AGENT",
            help="FILE.py:NAME, a URL or a command; by default, init searches for an agent.",
        ),
    ] = None,
    ci: Annotated[
        str | None, typer.Option("--ci", metavar="NAME", help="The CI workflow: github, gitlab or none.")
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", "-y", help="Do not ask: use the most likely agent, and run a conversation."),
    ] = False,
    no_try: Annotated[bool, typer.Option("--no-try", help="Do not run a conversation.")] = False,
) -> None:
    """Write a configuration, a first scenario and a CI workflow for your agent; no file is overwritten."""
    from agenteval.cli.commands.init import InitRequest, init

    raise typer.Exit(init(InitRequest(folder, agent, ci, assumes_yes=yes, plays=not no_try)))


@command("run", RUNNING)
def _run(
    *,
    context: typer.Context,
    selecting: SelectionOptions,
    judging: JudgeOptions,
    epochs: EpochsOption = None,
    faults: FaultsOption = None,
    variants: VariantsOption = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency",
            "-n",
            metavar="N",
            min=1,
            rich_help_panel=RUN_PANEL,
            help="Maximum concurrent model calls.",
        ),
    ] = None,
    reporting: ReportingOptions,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="i/n",
            rich_help_panel=RUN_PANEL,
            help="Run one of n parts of the run, for example 2/4; agenteval merge decides over all parts.",
        ),
    ] = None,
    fail_fast: Annotated[
        bool,
        typer.Option(
            "--fail-fast",
            "-x",
            rich_help_panel=RUN_PANEL,
            help="Start no more samples after the first failure.",
        ),
    ] = False,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend",
            metavar="ray[=ADDRESS]",
            rich_help_panel=RUN_PANEL,
            help="Play the conversations on workers of a Ray cluster, or of one started on this machine.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="RUN",
            autocompletion=make_completer("runs"),
            rich_help_panel=RUN_PANEL,
            help=f"Compare with this run, or with merge-base. {RUN_HELP}",
        ),
    ] = None,
    keep_baseline: KeepBaselineOption = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            autocompletion=make_completer("runs"),
            rich_help_panel=RUN_PANEL,
            help="Resume a run; only missing samples are run.",
        ),
    ] = None,
    cache: Annotated[
        bool | None,
        typer.Option(
            "--cache/--no-cache",
            rich_help_panel=RUN_PANEL,
            help="Cache model replies, and use cached ones.",
        ),
    ] = None,
    record: Annotated[
        str | None,
        typer.Option(
            "--record", metavar="FILE", rich_help_panel=RUN_PANEL, help="Write all traffic to a new file."
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            "--replay",
            metavar="FILE",
            rich_help_panel=RUN_PANEL,
            help="Make no calls; use recorded answers instead.",
        ),
    ] = None,
    record_tools: Annotated[
        Path | None,
        typer.Option(
            "--record-tools",
            metavar="FILE",
            rich_help_panel=RUN_PANEL,
            help="Write what the agent's own tools answer as mocks (unmocked_tools: passthrough).",
        ),
    ] = None,
    watching: Annotated[
        bool,
        typer.Option(
            "--watch",
            rich_help_panel=RUN_PANEL,
            help="Run again whenever a file changes: what the change may affect, and what did not pass.",
        ),
    ] = False,
    changed: Annotated[list[str] | None, typer.Option("--changed-file", hidden=True)] = None,
) -> None:
    """Run scenarios against the agent; the exit code is the verdict."""
    from agenteval.adapters.traffic.middleware import parse_recording_options
    from agenteval.cli.commands.run import run
    from agenteval.planning.request import parse_backend
    from agenteval.planning.shards import find_shard

    if backend:
        alone = {"--record": record, "--replay": replay, "--record-tools": record_tools}
        _refuse_with("--backend", alone, "remove one of them; a recording is made in one process")
        _refuse_with("--backend", {"--watch": watching})
    chosen_shard = None if resume else find_shard(shard, os.environ)
    if watching:
        from agenteval.cli.commands.watch import watch

        never = {
            **{"--resume": resume, "--record": record, "--record-tools": record_tools},
            **{"--open": reporting.open, "--shard": chosen_shard},
        }
        _refuse_with("--watch", never)
        request = request_from_options(selecting, judging)
        raise typer.Exit(watch(request, [each for each in sys.argv[1:] if each != "--watch"]))
    if chosen_shard:
        _refuse_with("--shard", {"--keep-baseline": keep_baseline}, "merge the shards with --keep-baseline")
    if record_tools:
        _refuse_with("--record-tools", {"--replay": replay}, "remove one of them; a replay runs no tools")
    request = replace(
        request_from_options(selecting, judging, drop_unset_keys(concurrency=concurrency, cache=cache)),
        epochs=epochs,
        fail_fast=fail_fast,
        baseline=baseline,
        keep_baseline=keep_baseline,
        shard=chosen_shard,
        faults=faults,
        variants=variants,
        recording=parse_recording_options(record, replay),
        backend=parse_backend(backend),
        resume=resume,
        changed_files=None if changed is None else tuple(changed),
        options_given=given_options(context),
    )
    raise typer.Exit(
        run(
            request,
            reports=reporting.choices,
            detail=reporting.detail,
            opens=reporting.open,
            record_tools=record_tools and Path.cwd() / record_tools,
        )
    )


@command("validate", RUNNING)
def _validate(*, selecting: SelectionOptions) -> None:
    """Load and check everything without calling agents or models."""
    from agenteval.cli.commands.validate import validate

    raise typer.Exit(validate(request_from_options(selecting)))


@command("plan", RUNNING)
def _plan(
    *,
    selecting: SelectionOptions,
    judging: JudgeOptions,
    epochs: EpochsOption = None,
    faults: FaultsOption = None,
    variants: VariantsOption = None,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "--report", metavar="json[=PATH]", help="Write JSON to a file, or instead of the table."
        ),
    ] = None,
) -> None:
    """Predict a run's calls, tokens and price, and each gate's error rates, without calling anything."""
    from agenteval.cli.commands.plan import plan

    request = replace(
        request_from_options(selecting, judging), epochs=epochs, faults=faults, variants=variants
    )
    raise typer.Exit(plan(request, reports=report or ()))


@command("report", LOOKING, cls=ReportCommand)
def _report(
    run: Annotated[
        str | None, typer.Argument(metavar="RUN", autocompletion=make_completer("runs"), help=RUN_HELP)
    ] = None,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "--report",
            metavar="NAME[=PATH]",
            autocompletion=make_completer("reports"),
            help="Write this report instead of the terminal report; repeatable.",
        ),
    ] = None,
    open_page: OpenOption = False,
    verbose: VerboseOption = False,
    quiet: QuietOption = False,
    history: Annotated[
        int | None,
        typer.Option(
            "--history",
            metavar="[N]",
            min=1,
            help="Without RUN: show the latest N runs of the suite over time (default 20).",
        ),
    ] = None,
    rejudge: Annotated[
        bool,
        typer.Option(
            "--rejudge",
            help="Judge again, as a new run; only changed requests are sent. Accepts -c, -m and --metric.",
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="With --rejudge: show the planned requests without sending them."),
    ] = False,
    config: ConfigOption = None,
    model: ModelOption = None,
    metric: MetricOption = None,
) -> None:
    """Write the reports of a run again, with its exit code, or show the latest runs over time (--history)."""
    of_rejudge = {"--dry-run": dry_run, "-c": config, "-m": model, "--metric": metric}
    if history is not None:
        from agenteval.cli.commands.report_history import report_history

        _refuse_with(
            "--history", {"RUN": run, "-q": quiet, "--rejudge": rejudge, "--open": open_page, **of_rejudge}
        )
        raise typer.Exit(report_history(history, reports=report or ()))
    run = _require_run(run)
    reports = reporter_choices(report, opens=open_page)
    if dry_run:
        _refuse_with("--dry-run", {"--open": open_page})
    if rejudge:
        from agenteval.cli.commands.rejudge import rejudge as judge_anew
        from agenteval.planning.score_preparation import ScoreRequest

        request = ScoreRequest(config=config, judging=JudgeOptions(model=model, metric=metric).choice)
        detail = detail_of(verbose=verbose, quiet=quiet)
        raise typer.Exit(
            judge_anew(run, request, dry=dry_run, reports=reports, detail=detail, opens=open_page)
        )
    from agenteval.cli.commands.report import report as again

    _refuse_without("--rejudge", of_rejudge)
    detail = detail_of(verbose=verbose, quiet=quiet)
    raise typer.Exit(again(run, reports=reports, detail=detail, opens=open_page))


def _require_run(run: str | None) -> str:
    """Return the run. Raise ``AuthorError`` if none was given."""
    from agenteval.core.errors import AuthorError, Problem

    if run is None:
        what = "RUN is missing: the id of a run, or latest"
        raise AuthorError(Problem(what, "use --history to show the latest runs over time"))
    return run


def _refuse_with(option: str, given: dict[str, Any], remedy: str = "remove one of them") -> None:
    """Raise ``AuthorError`` for arguments and options that cannot be combined with ``option``."""
    from agenteval.core.errors import AuthorError, Problem

    if names := [name for name, value in given.items() if value]:
        raise AuthorError(Problem(f"{', '.join(names)} cannot be combined with {option}", remedy))


def _refuse_without(option: str, given: dict[str, Any]) -> None:
    """Raise ``AuthorError`` for options that have an effect only together with ``option``."""
    from agenteval.core.errors import AuthorError, Problem

    if names := [name for name, value in given.items() if value]:
        what = f"{', '.join(names)} cannot be used, because a report only shows existing verdicts"
        raise AuthorError(Problem(what, f"add {option} to judge the run again"))


@command("list", RUNNING)
def _list(*, selecting: SelectionOptions, as_json: JsonOption = False) -> None:
    """List the scenarios as FILE::ID, the form that run accepts, without calling anything."""
    from agenteval.cli.commands.list_scenarios import list_scenarios

    raise typer.Exit(list_scenarios(request_from_options(selecting), as_json=as_json))


@command("runs", LOOKING)
def _runs(
    every: Annotated[bool, typer.Option("--all", help="Show all runs, not only the latest 20.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the stored runs, newest first; show, diff, report and --resume accept their ids."""
    from agenteval.cli.commands.list_runs import list_runs

    raise typer.Exit(list_runs(every=every, as_json=as_json))


@command("show", LOOKING)
def _show(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN] ID[@EPOCH]",
            autocompletion=make_completer("conversations"),
            help="Default: the latest run, and the first conversation that did not pass.",
        ),
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(
            "--agent",
            metavar="NAME",
            autocompletion=make_completer("agents"),
            help="A conversation of this agent.",
        ),
    ] = None,
    following: Annotated[
        bool, typer.Option("--next", help="Show the next one after ID that did not pass.")
    ] = False,
    every: Annotated[bool, typer.Option("--all", help="Show all epochs of the scenario.")] = False,
    judge: Annotated[bool, typer.Option("--judge", help="Show judge requests and answers.")] = False,
    metric: Annotated[
        str,
        typer.Option(
            "--metric",
            metavar="NAME",
            autocompletion=make_completer("metrics"),
            help="Show the full judge requests and answers for this metric.",
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Show one conversation: its turns, its calls, and the findings on each."""
    from agenteval.cli.commands.show import ShowRequest, show

    asked = ShowRequest(
        tuple(words or ()),
        agent,
        following=following,
        every=every,
        judge=judge,
        metric=metric,
        as_json=as_json,
    )
    raise typer.Exit(show(asked))


@command("comment", LOOKING)
def _comment(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file written by --report comment=FILE.")],
) -> None:
    """Post a run's comment on the pull request of a CI job, or replace the last one."""
    from agenteval.cli.commands.comment import comment

    raise typer.Exit(comment(file))


@command("diff", LOOKING)
def _diff(
    before: Annotated[
        str,
        typer.Argument(metavar="A", autocompletion=make_completer("runs"), help=f"The baseline. {RUN_HELP}"),
    ],
    after: Annotated[
        str,
        typer.Argument(
            metavar="B", autocompletion=make_completer("runs"), help="The run to compare with the baseline."
        ),
    ],
    margin: Annotated[
        float,
        typer.Option("--margin", min=0.001, max=0.999, help="Smaller drops in the mean are not regressions."),
    ] = 0.05,
    _common: Annotated[
        bool, typer.Option("--common", hidden=True, help="The default of diff; accepted, but not needed.")
    ] = False,
    report: Annotated[
        list[str] | None,
        typer.Option(
            "--report",
            metavar="NAME[=PATH]",
            autocompletion=make_completer("reports"),
            help="json or markdown, instead of the terminal report.",
        ),
    ] = None,
    verbose: VerboseOption = False,
) -> None:
    """Compare two runs by scenario; exit code 0: no regression, 1: regression, 3: undecided, 2: refused."""
    from agenteval.cli.commands.diff import diff

    raise typer.Exit(diff(before, after, margin=margin, reports=report or (), verbose=verbose))


@command("merge", RUNNING)
def _merge(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN…",
            autocompletion=make_completer("runs"),
            help="The runs of all shards: ids, paths, or folders that contain runs.",
        ),
    ],
    config: ConfigOption = None,
    keep_baseline: KeepBaselineOption = False,
    reporting: ReportingOptions,
) -> None:
    """Merge the runs of all shards (run --shard i/n) into one run; the exit code is its verdict."""
    from agenteval.cli.commands.merge import merge

    raise typer.Exit(
        merge(
            runs,
            config=config,
            keep_baseline=keep_baseline,
            reports=reporting.choices,
            detail=reporting.detail,
            opens=reporting.open,
        )
    )


@command("score", RUNNING)
def _score(
    *,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE…", help="Files, folders, runs (id or path); - is standard input."),
    ],
    config: ConfigOption = None,
    scenario_from: Annotated[
        str | None,
        typer.Option("--scenario-from", metavar="PATH", help="Dotted path to a conversation's scenario."),
    ] = None,
    epoch_from: Annotated[
        str | None,
        typer.Option("--epoch-from", metavar="PATH", help="Dotted path to a conversation's epoch number."),
    ] = None,
    outcome_from: Annotated[
        str | None,
        typer.Option(
            "--outcome-from",
            metavar="PATH",
            help="Dotted path to a known outcome; success is true, 1 or 1.0.",
        ),
    ] = None,
    scenarios: Annotated[
        list[str] | None,
        typer.Option(
            "--scenarios", metavar="FILE", help="Scenarios with expectations, matched by id; repeatable."
        ),
    ] = None,
    scenario: ScenarioOption = None,
    no_calls_in: Annotated[
        list[str] | None,
        typer.Option(
            "--no-calls-in", metavar="KEY", help="A key, role or type that contains no calls; repeatable."
        ),
    ] = None,
    max_rate: Annotated[
        list[str] | None,
        typer.Option(
            "--max-rate",
            metavar="SEVERITY=RATE",
            help="Fail if more conversations have such a finding (high=1%); repeatable.",
        ),
    ] = None,
    judging: JudgeOptions,
    reporting: ReportingOptions,
) -> None:
    """Check recorded conversations without simulation. A dotted PATH is, for example, labels.task_id."""
    from agenteval.cli.commands.score import score
    from agenteval.cli.max_rates import max_rates_of
    from agenteval.importers.logs import FieldPaths
    from agenteval.planning.score_preparation import ScoreRequest

    request = ScoreRequest(
        files=tuple(files),
        config=config,
        judging=judging.choice,
        paths=FieldPaths(scenario_from, epoch_from, outcome_from),
        scenarios=tuple(scenarios or ()),
        texts=tuple(scenario or ()),
        no_calls_in=tuple(no_calls_in or ()),
        max_rates=max_rates_of(max_rate or ()),
    )
    raise typer.Exit(score(request, reports=reporting.choices, detail=reporting.detail, opens=reporting.open))


BRIDGE = "For agents that start their own MCP servers"


class _ToolsCommands(CommandGroup):
    declared = DeclaredCommands()


tools_app = typer.Typer(
    name="tools",
    cls=_ToolsCommands,
    add_completion=False,
    help="Serve a scenario's tools as an MCP server, print those of a real one, or check mocks.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
tools_command = _ToolsCommands.declared.command


@tools_app.callback()
def _tools() -> None:
    pass


@tools_command("serve")
def _serve(
    *,
    selecting: SelectionOptions,
    http: Annotated[
        str | None,
        typer.Option("--http", metavar="[HOST:]PORT", help="Use streamable HTTP instead of standard input."),
    ] = None,
    stdio_bridge: Annotated[
        bool,
        typer.Option(
            "--stdio-bridge",
            rich_help_panel=BRIDGE,
            help="Replace a server that an agent starts: serve the tools of the agent's run.",
        ),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="NAME,…", rich_help_panel=BRIDGE, help="List only these tools."),
    ] = None,
    real: Annotated[
        bool,
        typer.Option(
            "--else",
            rich_help_panel=BRIDGE,
            help="Also list the tools of the real server, which the command after -- starts.",
        ),
    ] = False,
) -> None:
    """Serve the tools of one scenario, chosen with -s, as an MCP server, or replace one in a run."""
    if stdio_bridge or only is not None or real:
        from agenteval.cli.commands.bridge import bridge

        command = tuple(selecting.paths or ())
        others = replace(selecting, paths=None) != SelectionOptions() or http is not None
        raise typer.Exit(bridge(command, is_bridge=stdio_bridge, only=only, has_real=real, has_others=others))
    from agenteval.cli.commands.tools import serve

    raise typer.Exit(serve(request_from_options(selecting), http=http))


@tools_command("schemas", context_settings={"ignore_unknown_options": True})
def _schemas(
    server: Annotated[
        list[str],
        typer.Argument(
            metavar="URL | COMMAND…", help="The URL of the server, or the command that starts the server."
        ),
    ],
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write to this file.")] = None,
) -> None:
    """Print the tools of a real MCP server as a scenario's `tools`."""
    from agenteval.cli.commands.tools import schemas

    raise typer.Exit(schemas(server, out))


@tools_command("check")
def _check(
    *,
    selecting: SelectionOptions,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore", metavar="FIELD", help="Leave out a field (a name or dotted path); repeatable."
        ),
    ] = None,
    mcp: Annotated[
        str | None,
        typer.Option("--mcp", metavar="URL|COMMAND", help="An MCP server whose tools are the real ones."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Call the real tools that only read, and report mocks that no longer agree (exit code 1)."""
    from agenteval.cli.commands.tools_check import check

    request = request_from_options(selecting)
    raise typer.Exit(check(request, ignore=ignore or (), mcp=mcp, as_json=as_json))


@command("doctor", CHECKING)
def _doctor(
    config: ConfigOption = None,
    agent: AgentOption = None,
    model: ModelOption = None,
    no_agent: Annotated[
        bool, typer.Option("--no-agent", help="Do not call the agents: they may act on the message.")
    ] = False,
    fetch_vocabulary: Annotated[
        bool,
        typer.Option("--fetch-vocabulary", help="Download tiktoken's vocabulary (4 MB) to count tokens."),
    ] = False,
) -> None:
    """Make one real call to each model and agent; exit code 0: all work, 2: bad configuration, 3: failure."""
    from agenteval.cli.commands.doctor import DoctorRequest, doctor

    raise typer.Exit(
        doctor(
            DoctorRequest(
                config,
                agent,
                JudgeOptions(model=model).choice.flags,
                asks_agents=not no_agent,
                fetches_vocabulary=fetch_vocabulary,
            )
        )
    )


@command("schema", CHECKING)
def _schema(
    kind: Annotated[str | None, typer.Argument(metavar="scenario|config", help="Only this schema.")] = None,
    out: Annotated[
        str | None, typer.Option("--out", metavar="PATH", help="Write the schema to this path; - prints it.")
    ] = None,
) -> None:
    """Write JSON Schemas that editors use to complete and validate scenario files and configurations."""
    from agenteval.cli.commands.schema import schema

    raise typer.Exit(schema(kind, out))


@command("show-prompts", CHECKING)
def _show_prompts(
    metric: Annotated[str | None, typer.Option("--metric", metavar="NAME", help="Only this metric.")] = None,
    config: ConfigOption = None,
) -> None:
    """Print every prompt as it is sent, with placeholders, including the prompts of a configuration and its
    scenarios."""
    from agenteval.cli.commands.show_prompts import show_prompts

    raise typer.Exit(show_prompts(metric, config))


_Commands.declared.group("tools", CHECKING, tools_app)


def main() -> None:
    """Run the command line and exit with its exit code. Every error other than a defect in agenteval is
    reported as a message and has its own exit code."""
    _open_closed_streams()
    exit = exits.ExitGuard()
    exit.guard()
    exits.install_interrupt_handler()
    code = exit.set_exit_code(_guarded(lambda: app(standalone_mode=False)))
    exits.exit_on_late_interrupt(code)
    user_code = sys.modules.get("agenteval.conversation.user_code")
    if user_code and user_code.has_running_user_code():
        exits.exit_without_waiting(code)
    exits.flush_output()
    sys.exit(code)


def _open_closed_streams() -> None:
    """Replace standard streams that the shell closed (``2>&-``). A closed stream must not make a successful
    run fail."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _guarded(command: Callable[[], Any]) -> int:
    try:
        code = command()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 1
    except KeyboardInterrupt:
        return 130
    except UnwritableError as error:
        print_err(f"agenteval: cannot write to stdout: {error}")
        return exits.EXIT_UNDECIDED
    except Exception as error:
        return _report_error(error)
    return code if isinstance(code, int) else 0


def _report_error(error: BaseException) -> int:
    """Format error messages for the user and print them. Return the exit code."""
    from agenteval.core.errors import AgentevalError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, AgentevalError):
        for line in str(error).split("\n"):
            print_author_error(line if line.startswith(" ") else f"agenteval: {line}")
        return error.exit_code
    if hasattr(error, "show") and isinstance(code := getattr(error, "exit_code", None), int):
        # A mistake in the options. Typer words the message; the classes of such errors are not public.
        words = StringIO()
        error.show(file=words)
        print_author_error(words.getvalue().rstrip("\n"))
        return code
    import traceback

    print_err(f"agenteval: internal error: {type(error).__name__}: {error}")
    if {"-v", "--verbose"} & set(sys.argv):
        print_err("".join(traceback.format_exception(error)).rstrip())
    else:
        print_err("  (use -v for the traceback; please report this)")
    return exits.EXIT_UNDECIDED
