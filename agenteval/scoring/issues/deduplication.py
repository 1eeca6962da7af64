"""Groups the findings of a run into issues (deduplication, root-cause clustering).

Code ensures consistency. Whatever a model answers (omitted, invented or repeated ids, nonsense, or nothing at
all), each finding ends up in exactly one issue. A model contributes a title, an explanation and a proposed
severity; the issue's severity is derived from its findings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import anyio

from agenteval.core.errors import AuthorError, InfrastructureError, RequestSkippedError
from agenteval.core.event import IssuesFound
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Issue, Occurrence, ScoreFailure
from agenteval.core.trajectory import Usage
from agenteval.files.prompts import Prompt
from agenteval.scoring.findings import (
    Cause,
    LocatedFinding,
    build_issue_example,
    locate_findings,
    pick_varied_findings,
)
from agenteval.scoring.issues.grouping import (
    FindingGroup,
    build_candidates,
    group_by,
    group_by_cause,
    sort_findings,
)
from agenteval.scoring.issues.grouping_request import (
    METRIC,
    AgentSetup,
    DedupReply,
    apply_grouping,
    build_grouping_question,
    collect_agent_setups,
)

MAX_EXAMPLES = 5


async def find_issues(
    scenarios: Sequence[ScenarioReport],
    model: ChatModel | None = None,
    *,
    prompt: Prompt | None = None,
    policies: Mapping[str, str] | None = None,
    uses_model_severity: bool = False,
) -> IssuesFound | None:
    """Group the findings of a run into issues (see ``deduplicate_findings``), or return ``None`` if the run
    has no findings."""
    samples = [sample for each in scenarios for sample in each.samples]
    found = locate_findings((sample.key, sample.trajectory, sample.findings) for sample in samples)
    if not found:
        return None
    settings = collect_agent_setups(scenarios, policies or {})
    return await deduplicate_findings(
        found, model, prompt=prompt, setups=settings, uses_model_severity=uses_model_severity
    )


async def deduplicate_findings(
    findings: Iterable[LocatedFinding],
    model: ChatModel | None = None,
    *,
    prompt: Prompt | None = None,
    setups: Mapping[str, AgentSetup] | None = None,
    uses_model_severity: bool = False,
) -> IssuesFound:
    """Deduplicate (cluster) the findings of a run (see ``locate_findings``) into issues for each agent, with
    the worst and most frequent issues first.

    Each finding is in exactly one issue.

    Without a model, there is one issue for each cause that code can identify. With a model, one request is
    made for each agent, and the request includes the agent's setup. No request is made if there is nothing to
    merge, unless the model's proposed severity is used (``uses_model_severity``). If a model fails, only its
    titles are missing, never a finding."""
    ordered = sorted(findings, key=lambda each: each.number)
    agents = dict(sorted(group_by(lambda each: each.key.agent, ordered).items()))
    grouped: dict[str, _Grouped] = {}

    async def group(agent: str) -> None:
        candidates = build_candidates(agents[agent])
        if model is None or (len(candidates) == 1 and not uses_model_severity):
            grouped[agent] = _Grouped(group_by_cause(candidates))
        else:
            setting = (setups or {}).get(agent, AgentSetup())
            grouped[agent] = await _grouped_by(model, candidates, setting, prompt)

    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(group, agent)
    parts = [grouped[agent] for agent in agents]
    groups = sorted((group for part in parts for group in part.groups), key=lambda group: group.weight)
    return IssuesFound(
        issues=tuple(_issue(number, group) for number, group in enumerate(groups, 1)),
        usage=sum((part.usage for part in parts), Usage()),
        failures=tuple(part.failure for part in parts if part.failure),
        not_asked=sum(part.not_asked for part in parts),
    )


# ── the findings of one agent ────────────────────────────────────────────────────────────────────


class _Grouped(NamedTuple):
    """The grouped findings of one agent."""

    groups: Sequence[FindingGroup]
    usage: Usage = Usage()
    """The model's usage, if the model was asked."""
    failure: ScoreFailure | None = None
    """The model's failure, if any."""
    not_asked: int = 0
    """The number of findings that did not fit into the request."""


async def _grouped_by(
    model: ChatModel, candidates: Sequence[FindingGroup], setting: AgentSetup, prompt: Prompt | None
) -> _Grouped:
    question = build_grouping_question(candidates, setting, prompt)
    reply = await _ask(model, question.request)
    if isinstance(reply, _Unanswered):
        return _Grouped(group_by_cause(candidates), reply.usage, reply.failure)
    made, forgotten = apply_grouping(question.listed, reply)
    others = group_by_cause([*forgotten, *question.left_out])
    not_asked = sum(len(group.all_findings) for group in question.left_out)
    return _Grouped([*made, *others], reply.usage, not_asked=not_asked)


class _Unanswered(NamedTuple):
    """A request without a readable answer."""

    failure: ScoreFailure
    usage: Usage


async def _ask(model: ChatModel, request: ModelRequest) -> ModelReply | _Unanswered:
    try:
        reply = await model.complete(request)
    except Exception as error:
        # Whatever failed, a model or its plugin: the run is paid for and its findings are known.
        usage, raw = getattr(error, "usage", None), getattr(error, "raw", "")
        is_known = isinstance(error, AuthorError | InfrastructureError)
        failure = ScoreFailure(
            metric=METRIC,
            message=str(error) if is_known else f"the model failed: {error!r}",
            raw=raw if isinstance(raw, str) else "",
            author=isinstance(error, AuthorError),
            refused=isinstance(error, RequestSkippedError),
        )
        return _Unanswered(failure, usage if isinstance(usage, Usage) else Usage())
    if isinstance(reply.value, DedupReply):
        return reply
    message = f"the model returned {type(reply.value).__name__} instead of issues"
    return _Unanswered(ScoreFailure(metric=METRIC, message=message), reply.usage)


# ── issues ───────────────────────────────────────────────────────────────────────────────────────


def _issue(number: int, group: FindingGroup) -> Issue:
    members = sort_findings(group.all_findings)
    findings = [each.finding for each in members]
    worst = min(group.members, key=lambda each: (-each.finding.severity.rank, each.number))
    explanation = worst.finding.explanation or worst.finding.evidence
    proposal = group.proposal
    return Issue(
        id=f"I{number}",
        agent=worst.key.agent,
        title=proposal.title or _title(worst.cause, len(group.causes)),
        explanation=proposal.explanation or one_line(explanation, 600),
        severity=group.severity,
        proposed_severity=proposal.severity,
        not_the_agents_fault=proposal.excuse,
        labels=_sorted(finding.label for finding in findings),
        metrics=_sorted(finding.metric for finding in findings),
        tools=_sorted(each.tool for each in members if each.tool),
        occurrences=_occurrences(members),
        examples=tuple(build_issue_example(each) for each in pick_varied_findings(members, MAX_EXAMPLES)),
        by=proposal.by,
        scripted=proposal.scripted or any(finding.scripted for finding in findings),
    )


def _sorted(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(names)))


def _occurrences(members: Sequence[LocatedFinding]) -> tuple[Occurrence, ...]:
    samples = group_by(lambda each: each.key, members)
    return tuple(
        Occurrence(**key.model_dump(), findings=tuple(sorted(each.index for each in sample_findings)))
        for key, sample_findings in samples.items()
    )


def _title(cause: Cause, causes: int) -> str:
    """Return a title such as ``wrong arguments: create_booking``, composed of the facts that code knows about
    a cause."""
    name = cause.label or cause.metric
    if about := cause.tool or cause.criterion or cause.rule:
        name = f"{name}: {about}"
    return one_line(name, 120) + (f" (and {causes - 1} more)" if causes > 1 else "")
