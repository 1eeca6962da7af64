"""The command-line options that several commands share. Each option is defined once, with its names, help
text, type and parser.

A command accepts an option group as a single parameter; ``expand_option_groups`` presents the options in the
group to Typer. To share another option, add a field to a group; commands pass option groups on unchanged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, get_type_hints

import typer

if TYPE_CHECKING:
    from agenteval.core.config import ReporterChoice
    from agenteval.core.selection import Filters
    from agenteval.planning.request import JudgeChoice, Request
    from agenteval.reporters.options import Detail


ProposedKind: TypeAlias = Literal[
    "agents",
    "categories",
    "conversations",
    "files",
    "metrics",
    "profiles",
    "reports",
    "runs",
    "scenarios",
    "tags",
]
"""The kinds of names that shell completion suggests. ``conversations`` is for the first argument of ``show``,
which is either a scenario in the latest run or a run."""


def make_completer(kind: ProposedKind) -> Callable[[typer.Context, str], list[str]]:
    """Return the shell completion function for names of the given kind."""

    def proposed(context: typer.Context, incomplete: str) -> list[str]:
        from agenteval.core.registry import load_target

        propose = load_target("agenteval.cli.completion:proposed_names")  # imported only when used
        found: list[str] = propose(kind, context.params, incomplete)
        return found

    return proposed


RUN_HELP = "A run id or its beginning, latest, previous, or the path of a run folder or journal."

SELECTION_PANEL, RUN_PANEL, JUDGE_PANEL, OUTPUT_PANEL = "Selection", "Execution", "Judges", "Output"
"""The groups of options in ``--help``."""

# ── options ──────────────────────────────────────────────────────────────────────────────────────

PathsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATHS",
        autocompletion=make_completer("files"),
        rich_help_panel=SELECTION_PANEL,
        help="Scenario files, folders or FILE::ID; default: what the configuration includes.",
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        rich_help_panel=SELECTION_PANEL,
        help="Default: agenteval.yaml in this folder or the nearest one above it.",
    ),
]
ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        autocompletion=make_completer("profiles"),
        rich_help_panel=SELECTION_PANEL,
        help="A configuration profile.",
    ),
]
ScenarioOption = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        "-s",
        metavar="TEXT",
        autocompletion=make_completer("scenarios"),
        rich_help_panel=SELECTION_PANEL,
        help="An id, FILE::ID, or part of an id or name; repeatable.",
    ),
]
TagOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tag",
        metavar="TAG",
        autocompletion=make_completer("tags"),
        rich_help_panel=SELECTION_PANEL,
        help="Scenarios with this tag.",
    ),
]
CategoryOption = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="NAME",
        autocompletion=make_completer("categories"),
        rich_help_panel=SELECTION_PANEL,
        help="capability, efficiency or robustness.",
    ),
]
KeywordOption = Annotated[
    str | None,
    typer.Option(
        "-k",
        metavar="EXPR",
        rich_help_panel=SELECTION_PANEL,
        help="Words in id, name, tags or file, with and, or, not and ().",
    ),
]
FirstOption = Annotated[
    int | None,
    typer.Option(
        "--first",
        metavar="N",
        min=1,
        rich_help_panel=SELECTION_PANEL,
        help="Only the first N of the selected scenarios.",
    ),
]
SampleOption = Annotated[
    int | None,
    typer.Option(
        "--sample",
        metavar="N",
        min=1,
        rich_help_panel=SELECTION_PANEL,
        help="Only N of the selected scenarios, chosen by the seed.",
    ),
]
LastFailedOption = Annotated[
    bool,
    typer.Option(
        "--last-failed",
        "--lf",
        rich_help_panel=SELECTION_PANEL,
        help="Only scenarios that did not pass in the latest run.",
    ),
]
FailedInOption = Annotated[
    str | None,
    typer.Option(
        "--failed-in",
        metavar="RUN",
        autocompletion=make_completer("runs"),
        rich_help_panel=SELECTION_PANEL,
        help="Only scenarios that did not pass in this run.",
    ),
]
SeedOption = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", min=0, rich_help_panel=RUN_PANEL, help="Seed of the run; default 0."),
]
AgentOption = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="NAME",
        autocompletion=make_completer("agents"),
        rich_help_panel=SELECTION_PANEL,
        help="Use this agent.",
    ),
]
EpochsOption = Annotated[
    int | None,
    typer.Option(
        "--epochs",
        metavar="N",
        min=1,
        max=10_000,
        rich_help_panel=RUN_PANEL,
        help="Conversations per scenario.",
    ),
]
FaultsOption = Annotated[
    str | None,
    typer.Option(
        "--faults",
        metavar="PACK[,PACK]",
        rich_help_panel=RUN_PANEL,
        help="Run each scenario also with each fault of its tools: timeouts, errors, malformed, stale,"
        " injection, or a YAML file.",
    ),
]
VariantsOption = Annotated[
    str | None,
    typer.Option(
        "--variants",
        metavar="PACK[,PACK]",
        rich_help_panel=RUN_PANEL,
        help="Run each scenario also with altered user messages: typos, case, noise, reordered, empty, long,"
        " unicode, or a YAML file of paraphrases.",
    ),
]
KeepBaselineOption = Annotated[
    bool,
    typer.Option(
        "--keep-baseline", rich_help_panel=RUN_PANEL, help="Keep this run as the baseline of its commit."
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="PROVIDER/MODEL",
        rich_help_panel=JUDGE_PANEL,
        help="Use this model instead of models.default.",
    ),
]
NoJudgeOption = Annotated[
    bool,
    typer.Option("--no-judge", rich_help_panel=JUDGE_PANEL, help="Run only code checks; call no judges."),
]
MetricOption = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        autocompletion=make_completer("metrics"),
        rich_help_panel=JUDGE_PANEL,
        help="Judge only this metric; repeatable.",
    ),
]
ReportOption = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="NAME[=PATH]",
        autocompletion=make_completer("reports"),
        rich_help_panel=OUTPUT_PANEL,
        # Written out, so that --help need not load the reporters.
        help="Add a report: json, csv, junit, github, markdown, html, comment, or your own (FILE.py:Class).",
    ),
]
OpenOption = Annotated[
    bool,
    typer.Option(
        "--open", rich_help_panel=OUTPUT_PANEL, help="Write the HTML report and open it in a browser."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT_PANEL, help="Print JSON.")]
VerboseOption = Annotated[
    bool,
    typer.Option(
        "--verbose",
        "-v",
        rich_help_panel=OUTPUT_PANEL,
        help="Show all tables, scores, gates and conversations.",
    ),
]
QuietOption = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", rich_help_panel=OUTPUT_PANEL, help="Show only what did not pass, and the verdict."
    ),
]


# ── groups ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class SelectionOptions:
    """The options that select the configuration, the scenarios and the agent."""

    paths: PathsArgument = None
    config: ConfigOption = None
    profile: ProfileOption = None
    scenario: ScenarioOption = None
    tag: TagOption = None
    category: CategoryOption = None
    keywords: KeywordOption = None
    first: FirstOption = None
    sample: SampleOption = None
    last_failed: LastFailedOption = False
    failed_in: FailedInOption = None
    agent: AgentOption = None
    seed: SeedOption = None

    @property
    def filters(self) -> Filters:
        """The scenario filters. Raises ``AuthorError`` if a category is unknown or ``-k`` is empty."""
        from agenteval.core.errors import AuthorError, Problem, did_you_mean
        from agenteval.core.scenario import Category as Known
        from agenteval.core.selection import Filters

        for name in self.category or ():
            if name not in set(Known):
                what = f"--category: unknown category '{name}'"
                raise AuthorError(Problem(what, did_you_mean(name, Known)))
        scenarios, tags, categories = (tuple(each or ()) for each in (self.scenario, self.tag, self.category))
        if self.keywords is not None and not self.keywords.strip():
            raise AuthorError(Problem("-k is empty", "use a word of an id, name, tag or file"))
        return Filters(scenarios, tags, categories, self.agent, self.keywords or "", self.first, self.sample)


@dataclass(frozen=True)
class JudgeOptions:
    """The options that select the judge's model and the metrics."""

    model: ModelOption = None
    no_judge: NoJudgeOption = False
    metric: MetricOption = None

    @property
    def choice(self) -> JudgeChoice:
        from agenteval.planning.request import JudgeChoice

        return JudgeChoice(self.model, self.no_judge, tuple(self.metric or ()))


@dataclass(frozen=True)
class ReportingOptions:
    """The options that select the reports and their level of detail."""

    report: ReportOption = None
    open: OpenOption = False
    verbose: VerboseOption = False
    quiet: QuietOption = False

    @property
    def choices(self) -> tuple[ReporterChoice, ...]:
        return reporter_choices(self.report, opens=self.open)

    @property
    def detail(self) -> Detail:
        return detail_of(verbose=self.verbose, quiet=self.quiet)


def reporter_choices(texts: list[str] | None, *, opens: bool) -> tuple[ReporterChoice, ...]:
    """Return the requested reports. If the HTML report is to be opened, it is one of them."""
    from agenteval.cli.commands.output import parse_reporters

    choices = parse_reporters(texts or ())
    is_written = any(choice.name == "html" for choice in choices)
    return choices if is_written or not opens else (*choices, *parse_reporters(["html"]))


def detail_of(*, verbose: bool, quiet: bool) -> Detail:
    """Return the level of detail (verbosity). Raise ``AuthorError`` if both ``verbose`` and ``quiet`` are
    set."""
    from agenteval.core.errors import AuthorError, Problem

    if verbose and quiet:
        raise AuthorError(Problem("-v and -q cannot be combined", "remove one of them"))
    return "verbose" if verbose else "quiet" if quiet else "usual"


def request_from_options(
    selecting: SelectionOptions, judging: JudgeOptions | None = None, flags: Mapping[str, Any] | None = None
) -> Request:
    """Build the request for a command that loads scenarios. ``flags`` contains the configuration keys that
    are set by the command's own options. Raise ``AuthorError`` if an option is invalid."""
    from agenteval.planning.request import Request

    return Request(
        paths=tuple(selecting.paths or ()),
        config=selecting.config,
        profile=selecting.profile,
        filters=selecting.filters,
        judging=(judging or JudgeOptions()).choice,
        flags={**(flags or {}), **drop_unset_keys(seed=selecting.seed)},
        last_failed=selecting.last_failed,
        failed_in=selecting.failed_in,
    )


def drop_unset_keys(**keys: Any) -> dict[str, Any]:
    """Return only the configuration keys that are set by an option."""
    return {key: value for key, value in keys.items() if value is not None}


# ── groups as typer sees them ────────────────────────────────────────────────────────────────────


def expand_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each option group in the signature of ``command`` with its individual options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    shown: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            shown += signature(groups[name], eval_str=True).parameters.values()
        else:
            shown.append(parameter.replace(annotation=hints[name]))

    @wraps(command)
    def called(**values: Any) -> None:
        groups_with_values = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**groups_with_values, **values)

    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in shown]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    vars(called)["__signature__"] = Signature(parameters)
    return called


def given_options(context: typer.Context) -> tuple[str, ...]:
    """Return the long names of the options given on the command line. Arguments are returned in uppercase."""
    return tuple(
        max(each.opts, key=len) if each.param_type_name == "option" else str(each.name).upper()
        for each in context.command.params
        if getattr(context.get_parameter_source(each.name or ""), "name", "") == "COMMANDLINE"
    )
