"""Implements ``agenteval show``: prints one conversation of a run, or all epochs of a scenario."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from rich.console import RenderableType

from agenteval.cli.commands.output import make_report_options, print_paged, write_report_text
from agenteval.core.config import ReporterChoice
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Verdict
from agenteval.core.selection import ID_SEPARATOR, is_in_file, split_id
from agenteval.files.journal import is_run_locked
from agenteval.files.judge_request_log import load_judge_requests
from agenteval.reporters.results.document import conversation_json
from agenteval.reporters.terminal.conversation_page import (
    ConversationPage,
    JudgeExchange,
    judged_metrics,
    render_page,
)
from agenteval.reporters.terminal.screen import render_parts
from agenteval.reporters.words.failure import collect_failures, planned, scenario_decision
from agenteval.reporters.words.rerun_commands import sample_name, show_command_of
from agenteval.running.stored_runs import DecidedRun, load_decided_run


@dataclass(frozen=True)
class ShowRequest:
    """The arguments and options of ``agenteval show``."""

    words: tuple[str, ...] = ()
    """The positional arguments: ``[RUN] [ID[@EPOCH]]``."""
    agent: str | None = None
    following: bool = False
    every: bool = False
    judge: bool = False
    """True if the judge requests and their answers are also shown."""
    metric: str = ""
    """The metric whose judge requests and answers are shown in full."""
    as_json: bool = False


class ShownConversation(NamedTuple):
    """A planned conversation with its report, if the conversation was played."""

    scenario_report: ScenarioReport
    key: SampleKey
    sample: SampleReport | None


def show(request: ShowRequest) -> int:
    """Show one or more conversations (transcripts) and return 0. Raise ``AuthorError`` if there is no such
    run or conversation."""
    run, name, words = _parse_words(request.words)
    known = [each for each in _conversations_of(run) if request.agent in (None, each.scenario_report.agent)]
    if not known:
        raise AuthorError(_no_agent(request.agent, run))
    failed = {each.key: each for each in collect_failures(run.report, run.decision) if each.key}
    failing = _failing(run, known, failed)
    first = _choose(name, known, failing, run)
    if request.following and name:
        first = _next(first, known, failing)
    chosen = (
        [each for each in known if each.scenario_report is first.scenario_report]
        if request.every
        else [first]
    )
    judging = _load_judge_exchange(request, run, [each.key for each in chosen])
    if request.as_json:
        _write_json(chosen, run, judging)
    else:
        after = None if request.every else _after(first, known, failing)
        repeats = {key: failure.repro for key, failure in failed.items()}
        _write_pages(chosen, run, judging, repeats, _command(after, words, request.agent, run))
    return 0


def _load_judge_exchange(
    request: ShowRequest, run: DecidedRun, keys: Sequence[SampleKey]
) -> JudgeExchange | None:
    """Return the judge requests and answers for the conversations, or None if they were not requested. Raise
    ``AuthorError`` if no judge was asked about the requested metric."""
    if not (request.judge or request.metric):
        return None
    judging = JudgeExchange(load_judge_requests(run.folder, keys), request.metric)
    _require_metric(judging)
    return judging


def _write_json(chosen: Sequence[ShownConversation], run: DecidedRun, judging: JudgeExchange | None) -> None:
    answers = None if judging is None or judging.answers is None else judging.selected_answers
    keys = [each.key for each in chosen]
    write_report_text("json", conversation_json(run.report, run.decision, keys, answers), None)


def _write_pages(
    chosen: Sequence[ShownConversation],
    run: DecidedRun,
    judging: JudgeExchange | None,
    repeats: Mapping[SampleKey, str],
    following: str,
) -> None:
    """Print the conversations. ``repeats`` maps each failed conversation to the command that runs it again.
    ``following`` is the command that shows the next conversation."""
    options = make_report_options(ReporterChoice(name="terminal"), folder=run.folder)
    parts: list[RenderableType] = []
    for each in chosen:
        running, repeat = is_run_locked(run.folder), repeats.get(each.key, "")
        shown = ConversationPage(run.report, run.decision, *each, running, repeat, following, judging)
        parts += [*([""] if parts else []), *render_page(shown, options)]
    print_paged(render_parts(parts, options))


def _require_metric(judging: JudgeExchange) -> None:
    """Raise ``AuthorError`` if no judge was asked about the requested metric."""
    known = {name for each in judging.answers or () for name in judged_metrics(each)}
    if judging.metric and judging.answers is not None and judging.metric not in known:
        what = f"no judge was called for '{judging.metric}' here"
        raise AuthorError(Problem(what, did_you_mean(judging.metric, known)))


# ── which run, which conversation ────────────────────────────────────────────────────────────────


def _parse_words(words: Sequence[str]) -> tuple[DecidedRun, str, tuple[str, ...]]:
    """Return the run, the name of the conversation (an empty string if no name was given), and the words that
    named the run. A single word is first looked up as a conversation of the latest run, and then as a run."""
    if len(words) > 2:
        what = f"`show` accepts a run and a conversation, but got {len(words)} arguments"
        raise AuthorError(Problem(what, "use `agenteval show [RUN] ID[@EPOCH]`"))
    if len(words) == 2:
        return load_decided_run(words[0]), words[1], (words[0],)
    try:
        latest = load_decided_run("latest")
    except AuthorError:
        if words:
            with suppress(AuthorError):
                return load_decided_run(words[0]), "", tuple(words)
        raise
    if not words or _find_conversations(words[0], _conversations_of(latest)):
        return latest, "".join(words), ()
    with suppress(AuthorError):
        return load_decided_run(words[0]), "", tuple(words)
    raise AuthorError(_no_conversation(words[0], latest))


def _conversations_of(run: DecidedRun) -> list[ShownConversation]:
    return [
        ShownConversation(scenario, *pair) for scenario in run.report.scenarios for pair in planned(scenario)
    ]


_EPOCH = re.compile(r"(.+)@(\d+)", re.DOTALL)


def _find_conversations(name: str, known: Sequence[ShownConversation]) -> list[ShownConversation]:
    """Return the conversations that match ``name``, which is an id, ``FILE::ID`` or a variant. ``@EPOCH``
    (counted from 1) selects a single epoch. An exact id takes precedence, even if it resembles one of the
    other forms."""
    if found := _with_id(name, known):
        return found
    of_epoch = _EPOCH.fullmatch(name)
    if not of_epoch:
        return []
    return [each for each in _with_id(of_epoch[1], known) if each.key.epoch == int(of_epoch[2]) - 1]


def _with_id(name: str, known: Sequence[ShownConversation]) -> list[ShownConversation]:
    if found := [each for each in known if each.key.scenario == name]:
        return found
    if found := [each for each in known if each.key.variant == name and name]:
        return found
    file, scenario_id = split_id(name)
    if file and (
        found := [
            c for c in known if c.key.scenario == scenario_id and is_in_file(c.scenario_report.scenario, file)
        ]
    ):
        return found
    return [each for each in known if each.key.variant and name == f"{each.key.scenario}[{each.key.variant}]"]


def _choose(
    name: str, known: Sequence[ShownConversation], failing: Sequence[ShownConversation], run: DecidedRun
) -> ShownConversation:
    """Return the conversation that matches the name. If several conversations match, prefer the first
    conversation that did not pass."""
    found = _find_conversations(name, known) if name else known
    if not found:
        raise AuthorError(_no_conversation(name, run))
    meant = {each.key for each in found}
    return next((each for each in failing if each.key in meant), found[0])


def _failing(
    run: DecidedRun, known: Sequence[ShownConversation], failed: Container[SampleKey]
) -> list[ShownConversation]:
    """Return the conversations that did not pass. Within each scenario, failed conversations are listed
    before undecided conversations. If a scenario failed only because of a rule that covers all its
    conversations, its first conversation is returned."""
    found: list[ShownConversation] = []
    for _, group in groupby(known, key=lambda each: id(each.scenario_report)):
        conversations = list(group)
        not_passed = [each for each in conversations if each.key in failed]
        if (
            not not_passed
            and scenario_decision(run.decision, conversations[0].scenario_report).verdict
            is not Verdict.PASSED
        ):
            not_passed = conversations[:1]
        found += sorted(
            not_passed, key=lambda each: run.decision.samples[each.key].verdict is not Verdict.FAILED
        )
    return found


def _next(
    current: ShownConversation, known: Sequence[ShownConversation], failing: Sequence[ShownConversation]
) -> ShownConversation:
    if found := _after(current, known, failing):
        return found
    first = ""
    if failing:
        first = f"the first that did not pass: {show_command_of((), sample_name(failing[0].key))}"
    raise AuthorError(Problem(f"all conversations after {sample_name(current.key)} passed", first))


def _after(
    current: ShownConversation, known: Sequence[ShownConversation], failing: Sequence[ShownConversation]
) -> ShownConversation | None:
    """Return the next conversation that did not pass. After a failing conversation, the order of ``failing``
    applies; after a passing conversation, the order of the run applies."""
    keys = [each.key for each in failing]
    if current.key in keys:
        return next(iter(failing[keys.index(current.key) + 1 :]), None)
    order = {each.key: place for place, each in enumerate(known)}
    return next((each for each in failing if order[each.key] > order[current.key]), None)


def _no_agent(name: str | None, run: DecidedRun) -> Problem:
    agents = {each.scenario_report.agent for each in _conversations_of(run)}
    if not agents:
        return Problem(
            f"the run {run.report.run.run_id} has no conversation", "it ended before the first conversation"
        )
    what = f"the run {run.report.run.run_id} has no agent '{name}'"
    return Problem(what, did_you_mean(name or "", agents))


def _no_conversation(name: str, run: DecidedRun) -> Problem:
    known = _conversations_of(run)
    of_epoch = _EPOCH.fullmatch(name)
    if of_epoch and (found := _with_id(of_epoch[1], known)):
        there = sorted({each.key.epoch + 1 for each in found})
        named = ", ".join(map(str, there[:_MOST_NAMED])) + (", …" if len(there) > _MOST_NAMED else "")
        what = f"'{of_epoch[1]}' has no epoch {of_epoch[2]} in the run {run.report.run.run_id}"
        return Problem(what, f"available: {named}")
    wanted = of_epoch[1] if of_epoch else name
    wanted = wanted.rpartition(ID_SEPARATOR)[2]
    hint = did_you_mean(
        wanted, [each.key.scenario for each in known] + [c.key.variant for c in known if c.key.variant]
    )
    return Problem(
        f"the run {run.report.run.run_id} has no conversation '{name}'",
        hint if len(hint) < _LONGEST_HINT else f"{hint[:_LONGEST_HINT]}…",
    )


_MOST_NAMED = 12
_LONGEST_HINT = 300


# ── the commands that follow ─────────────────────────────────────────────────────────────────────


def _command(
    conversation: ShownConversation | None, words: Sequence[str], agent: str | None, run: DecidedRun
) -> str:
    if conversation is None:
        return ""
    several = run.report.has_several_agents
    chosen = conversation.scenario_report.agent if several or agent else ""
    return show_command_of(words, sample_name(conversation.key), chosen)
