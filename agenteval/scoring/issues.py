"""Findings become issues: one root cause each, grouped in code; a model merges and names the worst of them.

Code keeps the books. Whatever a model answers (ids left out, made up or named twice, nonsense, nothing
at all), each finding ends in exactly one issue. What a model says is a title, an explanation and a
proposal; the severity is that of the findings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, NamedTuple, TypeVar

import anyio
from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from agenteval.core.errors import AuthorError, InfrastructureError, NotAskedError
from agenteval.core.event import IssuesFound
from agenteval.core.folding import fold
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest, Subject
from agenteval.core.safe_text import clean, one_line
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Issue, Occurrence, ScoreFailure, Severity
from agenteval.core.severity import FALSE_CLAIM, POLICY_VIOLATION
from agenteval.core.trajectory import Usage
from agenteval.files.prompt_templates import fence
from agenteval.files.prompts import CRITERIA, SHIPPED, Prompt
from agenteval.scoring.findings import Cause, Located, example_of, located, spread
from agenteval.scoring.goals import GOAL
from agenteval.scoring.metrics import TOOL_CALL_BEHAVIOR

METRIC = "error_deduplication"
MAX_ENTRIES = 40
"""Groups that the request of one agent may list: the worst. The others stay as code made them."""
MAX_CHARACTERS = 20_000
"""Of the list, the policy and the tools, about 5,000 tokens: with its answer it fits into the context that
local models get."""
MAX_POLICY, MAX_TOOLS = 3_000, 1_500
"""Of them, before the list gets the rest."""
_MAX_POLICIES = 3
MAX_EXAMPLES = 5


# ── groups of findings ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Group:
    """Findings of one agent taken to have one cause, in the order of their numbers. ``effects``: what the
    same faults are besides, under other labels. ``title`` and what follows is a model's, empty where none was
    asked."""

    members: tuple[Located, ...]
    effects: tuple[Located, ...] = ()
    title: str = ""
    explanation: str = ""
    proposed: Severity | None = None
    excuse: str = ""
    by: str = ""
    scripted: bool = False

    @property
    def all(self) -> tuple[Located, ...]:
        return (*self.members, *self.effects)

    @property
    def severity(self) -> Severity:
        return _worst(each.finding.severity for each in self.all)

    @property
    def causes(self) -> frozenset[Cause]:
        return frozenset(each.cause for each in self.members)

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """The worst and most frequent sort first."""
        samples = len({each.key for each in self.all})
        return -self.severity.rank, -samples, -len(self.all), self.members[0].number

    def with_effects(self, *more: Located) -> _Group:
        return replace(self, effects=_in_order((*self.effects, *more)))


def _in_order(findings: Iterable[Located]) -> tuple[Located, ...]:
    return tuple(sorted(findings, key=lambda each: each.number))


def _worst(severities: Iterable[Severity]) -> Severity:
    return max(severities, key=lambda severity: severity.rank)


def _union(groups: Sequence[_Group]) -> _Group:
    return _Group(
        members=_in_order(each for group in groups for each in group.members),
        effects=_in_order(each for group in groups for each in group.effects),
    )


_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def _by(key: Callable[[_Item], _Key], items: Iterable[_Item]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _candidates(findings: Sequence[Located]) -> list[_Group]:
    """What a model is asked about: the findings of one scenario that code cannot tell apart, and with them
    what it knows to be the same faults. Those of one cause stand together, the worst cause first."""
    scenarios = _by(lambda each: each.key.scenario, findings).values()
    groups = [group for own in scenarios for group in _goals_with_their_causes(_faults(own))]
    rank: dict[Cause, int] = {}
    for group in groups:
        cause = group.members[0].cause
        rank[cause] = max(group.severity.rank, rank.get(cause, 0))
    return sorted(groups, key=lambda g: (-rank[g.members[0].cause], g.members[0].cause, g.members[0].number))


def _faults(findings: Sequence[Located]) -> list[_Group]:
    alike = _by(lambda each: (each.cause, each.finding.detector), findings)
    return _labels_of_one_fault(_Group(tuple(members)) for members in alike.values())


def _same_cause(groups: Iterable[_Group]) -> list[_Group]:
    """What code makes of groups that no model put anywhere: one of each cause, over all scenarios; and one of
    several labels for the same faults."""
    alike = _by(lambda group: group.members[0].cause, groups)
    return _labels_of_one_fault(_union(each) for each in alike.values())


def _labels_of_one_fault(groups: Iterable[_Group]) -> list[_Group]:
    """The groups, and one of those that are the same faults under several labels: it is the one nearest to
    the cause."""
    kept: list[_Group] = []
    for group in sorted(groups, key=lambda group: _nearness_to_the_cause(group.members[0])):
        home = next((n for n, other in enumerate(kept) if _are_the_same_faults(group, other)), None)
        if home is None:
            kept.append(group)
        else:
            kept[home] = kept[home].with_effects(*group.all)
    return kept


_FROM_CAUSE_TO_EFFECT = (
    (TOOL_CALL_BEHAVIOR, ""),
    ("", "unsafe state"),
    ("", "unsafe action"),
    ("", POLICY_VIOLATION),
    ("", "failure to ask for clarification"),
    ("", "disobey user request"),
    ("", FALSE_CLAIM),
    ("", "false information"),
    ("", "lack of specific information"),
    (CRITERIA, ""),
    (GOAL, ""),
)
"""Metric or label, in the order in which one fault shows: a wrong call comes before what is said of it, and
both before the goal that was missed."""


def _nearness_to_the_cause(each: Located) -> tuple[int, int]:
    cause = each.cause
    place = next(
        (
            n
            for n, (metric, label) in enumerate(_FROM_CAUSE_TO_EFFECT)
            if (not metric or metric == cause.metric) and (not label or label == cause.label)
        ),
        _FROM_CAUSE_TO_EFFECT.index((CRITERIA, "")),
    )
    return place, each.number


def _are_the_same_faults(group: _Group, cause: _Group) -> bool:
    """Whether each finding of ``group`` is about what one of ``cause`` is about, under another label."""
    others = _by(lambda each: each.key, cause.all)
    return all(any(_is_same_fault(each, other) for other in others.get(each.key, ())) for each in group.all)


def _is_of_one_fault(one: Located, other: Located) -> bool:
    return one.key == other.key and _is_same_fault(one, other)


def _is_same_fault(one: Located, other: Located) -> bool:
    """Of one conversation: about the same call or, in one turn or over all of it, the same words, or the same
    tool, if one of them is that it was not called. A goal is no turn's: that its tool is the same says
    nothing."""
    first, second = one.finding, other.finding
    have_calls = first.call is not None and second.call is not None
    if have_calls and (first.call == second.call or not {first.label, second.label} <= _ABOUT_A_RESULT):
        return first.call == second.call
    if _REPETITION in (first.label, second.label):
        return False  # what is wrong with words is another fault than that they are said again
    if None not in (first.turn, second.turn) and first.turn != second.turn:
        return False
    if not have_calls and one.tool and one.tool == other.tool and GOAL not in (first.metric, second.metric):
        return True
    short, long = sorted((fold(first.evidence), fold(second.evidence)), key=len)
    return len(short) >= _ENOUGH and short in long


_REPETITION = "repetition"
_ABOUT_A_RESULT = frozenset((FALSE_CLAIM, "ignored tool result"))
"""Labels that cite a call for its result; of several calls that failed it may be any."""
_ENOUGH = 8
"""Characters of a quotation by which two findings are about the same."""


def _goals_with_their_causes(groups: Sequence[_Group]) -> list[_Group]:
    """The groups of one scenario, and each missed goal with the fault of the same conversation that is about
    the same call or words. That there is no other fault makes one no reason: a model may say so, code cannot
    tell."""
    goals, causes = ([g for g in groups if _is_goal(g) is wanted] for wanted in (True, False))
    by_conversation: dict[Hashable, list[int]] = {}
    for place, group in enumerate(causes):
        for key in {each.key for each in group.all}:
            by_conversation.setdefault(key, []).append(place)
    for goal in goals:
        alone = []
        for missed in goal.all:
            near = by_conversation.get(missed.key, [])
            same = (n for n in near if any(_is_of_one_fault(missed, each) for each in causes[n].all))
            cause = next(same, None)
            if cause is None:
                alone.append(missed)
            else:
                causes[cause] = causes[cause].with_effects(missed)
        if alone:
            causes.append(_Group(tuple(alone)))
    return causes


def _is_goal(group: _Group) -> bool:
    return group.members[0].cause.metric == GOAL


# ── what a model is shown, and what it answers ───────────────────────────────────────────────────


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return re.split(r"[\s,;]+", value)
    return [str(item) for item in value if isinstance(item, str | int)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_SEVERITY = {"type": "string", "enum": [str(severity) for severity in Severity]}


class ProposedIssue(BaseModel):
    """A group as a model puts it. All is asked for, and read leniently: one odd field must not cost the
    whole answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "required": ["title", "explanation", "not_the_agents_fault", "severity", "findings"]
        }
    )

    title: Annotated[str, BeforeValidator(_text)] = ""
    explanation: Annotated[str, BeforeValidator(_text)] = ""
    not_the_agents_fault: Annotated[str, BeforeValidator(_text)] = ""
    severity: Annotated[str, BeforeValidator(_text), WithJsonSchema(_SEVERITY)] = ""
    findings: Annotated[list[str], BeforeValidator(_texts)] = []

    @property
    def proposed(self) -> Severity | None:
        word = self.severity.strip().lower()
        return Severity(word) if word in set(Severity) else None


class DedupReply(BaseModel):
    """What the grouping model answers."""

    issues: list[ProposedIssue]


def _entry(group: _Group) -> dict[str, Any]:
    """One of the candidates in a few short texts. Everything in it may be an agent's doing, tool names
    included."""
    first = group.members[0]
    entry = {
        "id": first.id,
        "label": one_line(first.cause.label, 160),
        "shows as": _some(sorted(each.cause.label for each in group.effects), 160),
        "tool": one_line(first.cause.tool, 160),
        "criterion": one_line(first.cause.criterion, 200),
        "conversation": one_line(first.key.scenario, 160),
        "times": len(group.all),
        "conversations": len({each.key for each in group.all}),
        "examples": [_quotation(each) for each in spread(group.members, 2)],
    }
    return {name: value for name, value in entry.items() if value}


def _some(names: Iterable[str], limit: int) -> str:
    """The first few names, each once."""
    known = list(dict.fromkeys(filter(None, names)))
    more = f" and {len(known) - 3} more" if len(known) > 3 else ""
    return one_line(", ".join(name[:limit] for name in known[:3]), limit) + more


def _quotation(each: Located) -> dict[str, Any]:
    finding = each.finding
    turn = {} if finding.turn is None else {"turn": finding.turn + 1}
    texts = {"quotation": one_line(finding.evidence, 160), "explanation": one_line(finding.explanation, 200)}
    return {**turn, **texts}


def _line(group: _Group) -> str:
    """An entry as a line of JSON: no text in it can look like a line of its own."""
    return json.dumps(_entry(group), ensure_ascii=False)


# ── what the agent was told, and had ─────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Setting:
    """What one agent was told, and the tools that it had, with their descriptions. Of several policies (of
    recorded conversations) each is told."""

    policies: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)


def settings_of(scenarios: Iterable[ScenarioReport], policies: Mapping[str, str]) -> dict[str, Setting]:
    """By agent, from the conversations in which something was found. ``policies``: by agent; a recorded
    conversation has its own."""
    told: dict[str, dict[str, None]] = {}
    tools: dict[str, dict[str, str]] = {}
    for each in scenarios:
        samples = [sample for sample in each.samples if sample.findings]
        if not samples:
            continue
        own = tools.setdefault(each.agent, {})
        for name, tool in each.scenario.tools.items():
            own[name] = own.get(name) or tool.description or ""
        for call in (call for sample in samples for call in sample.trajectory.tool_calls):
            own.setdefault(call.name, "")
        if policy := (each.scenario.policy or policies.get(each.agent, "")).strip():
            told.setdefault(each.agent, {})[policy] = None
    return {agent: Setting(tuple(told.get(agent, ())), own) for agent, own in tools.items()}


def _policy_text(setting: Setting) -> str:
    """What of the policies fits, each in a fence."""
    if not setting.policies:
        return "None is known."
    shown = setting.policies[:_MAX_POLICIES]
    texts = [fence(_without_its_middle(policy, MAX_POLICY // len(shown))) for policy in shown]
    if more := len(setting.policies) - len(shown):
        texts.append(f"And {more} more, of other conversations.")
    return "\n".join(texts)


def _tools_text(setting: Setting) -> str:
    if not setting.tools:
        return "None is known."
    lines = [_tool_line(*tool) for tool in setting.tools.items()]
    text = "\n".join(lines)
    if len(text) > MAX_TOOLS:  # then the names, as far as they go
        text = _without_its_middle("\n".join(json.dumps(name[:60]) for name in setting.tools), MAX_TOOLS)
    return fence(text)


def _tool_line(name: str, description: str) -> str:
    about = {"description": one_line(description, 160)} if description else {}
    return json.dumps({"name": name[:60], **about}, ensure_ascii=False)


def _without_its_middle(text: str, limit: int) -> str:
    text = clean(text)
    if len(text) <= limit:
        return text
    gone = f"\n[… {len(text) - limit:,} characters or more left out here …]\n"
    room = limit - len(gone)
    return f"{text[: room * 2 // 3]}{gone}{text[-(room // 3) :]}"


@dataclass(frozen=True)
class _Grouper:
    """The model that groups, in which words it is asked to, and of what agent. ``weighs``: its severity
    counts, so that it is asked even where there is nothing to put together."""

    model: ChatModel
    prompt: Prompt
    policy: str
    tools: str
    weighs: bool = False

    @property
    def room(self) -> int:
        """Characters of one request that are left to its list."""
        return MAX_CHARACTERS - len(self.policy) - len(self.tools)


def _worst_that_fit(candidates: Sequence[_Group], room: int) -> tuple[list[_Group], list[_Group]]:
    """The worst and most frequent groups, as many as a list of ``room`` characters holds, and the others.
    Both are in the order of ``candidates``."""
    listed: set[int] = set()
    ranked = sorted(range(len(candidates)), key=lambda place: candidates[place].weight)
    for place in ranked[:MAX_ENTRIES]:
        room -= len(_line(candidates[place])) + 1
        if room < 0:
            break
        listed.add(place)
    return (
        [group for place, group in enumerate(candidates) if place in listed],
        [group for place, group in enumerate(candidates) if place not in listed],
    )


def _request(groups: Sequence[_Group], grouper: _Grouper) -> ModelRequest:
    lines = "\n".join(_line(group) for group in groups)
    rendered = grouper.prompt.render(policy=grouper.policy, tools=grouper.tools, findings=fence(lines))
    scenarios = {each.key.scenario for group in groups for each in group.all}
    scenario = scenarios.pop() if len(scenarios) == 1 else ""
    subject = Subject(scenario=scenario, metric=METRIC, text=lines)
    return ModelRequest("dedup", rendered.system, rendered.prompt, DedupReply, subject, states_form=True)


# ── the books ────────────────────────────────────────────────────────────────────────────────────

_ID = re.compile(r"\W*F?0*([1-9][0-9]{0,8})\W*", re.ASCII | re.IGNORECASE)


def _number(text: str) -> int:
    """The number in ``F12``, however it is spelled; 0 if it is none."""
    found = _ID.fullmatch(text) if len(text) < 40 else None
    return int(found[1]) if found else 0


def _settle(groups: Sequence[_Group], reply: ModelReply) -> tuple[list[_Group], list[_Group]]:
    """The groups as the model put them together, and those that it forgot. An id that was not asked
    about counts for nothing; one named twice stays where it was named first."""
    assert isinstance(reply.value, DedupReply)
    home = {each.number: place for place, group in enumerate(groups) for each in group.all}
    free = set(range(len(groups)))
    made = []
    for proposal in reply.value.issues:
        numbers = map(_number, proposal.findings)
        places = {home[number] for number in numbers if number in home} & free
        if places:
            free -= places
            made.append(_named([groups[place] for place in sorted(places)], proposal, reply))
    return made, [groups[place] for place in sorted(free)]


def _named(parts: Sequence[_Group], proposal: ProposedIssue, reply: ModelReply) -> _Group:
    return replace(
        _union(parts),
        title=one_line(proposal.title, 120),
        explanation=one_line(proposal.explanation, 600),
        proposed=proposal.proposed,
        excuse=one_line(proposal.not_the_agents_fault, 300),
        by=reply.model or "a model",
        scripted=reply.scripted,
    )


class _Unanswered(NamedTuple):
    """A request without an answer that can be read."""

    failure: ScoreFailure
    usage: Usage


async def _ask(groups: Sequence[_Group], grouper: _Grouper) -> ModelReply | _Unanswered:
    request = _request(groups, grouper)
    try:
        reply = await grouper.model.complete(request)
    except Exception as error:
        # Whatever broke, a model or a plugin of one: the run is paid for and its findings are known.
        usage, raw = getattr(error, "usage", None), getattr(error, "raw", "")
        is_known = isinstance(error, AuthorError | InfrastructureError)
        failure = ScoreFailure(
            metric=METRIC,
            message=str(error) if is_known else f"the model broke: {error!r}",
            raw=raw if isinstance(raw, str) else "",
            author=isinstance(error, AuthorError),
            refused=isinstance(error, NotAskedError),
        )
        return _Unanswered(failure, usage if isinstance(usage, Usage) else Usage())
    if isinstance(reply.value, DedupReply):
        return reply
    message = f"the model answered with {type(reply.value).__name__}, not with issues"
    return _Unanswered(ScoreFailure(metric=METRIC, message=message), reply.usage)


class _Grouped(NamedTuple):
    """The findings of one agent in groups; what the model used and where it broke, if one was asked; and how
    many findings had no place in its request."""

    groups: Sequence[_Group]
    usage: Usage = Usage()
    failure: ScoreFailure | None = None
    not_asked: int = 0


async def _group(findings: Sequence[Located], grouper: _Grouper | None) -> _Grouped:
    candidates = _candidates(findings)
    # Of one there is nothing to put together.
    if grouper is None or (len(candidates) == 1 and not grouper.weighs):
        return _Grouped(_same_cause(candidates))
    listed, others = _worst_that_fit(candidates, grouper.room)
    reply = await _ask(listed, grouper)
    if isinstance(reply, _Unanswered):
        return _Grouped(_same_cause(candidates), reply.usage, reply.failure)
    made, forgotten = _settle(listed, reply)
    not_asked = sum(len(group.all) for group in others)
    return _Grouped([*made, *_same_cause([*forgotten, *others])], reply.usage, not_asked=not_asked)


async def deduplicate(
    findings: Iterable[Located],
    model: ChatModel | None = None,
    *,
    prompt: Prompt | None = None,
    settings: Mapping[str, Setting] | None = None,
    weighs: bool = False,
) -> IssuesFound:
    """The findings of a run (see ``located``) as issues, the worst and most frequent first, per agent. Each
    finding is in exactly one.

    Without a model, one issue for each cause that code can tell. With one, which is told of each agent's
    setting, one request for each agent, and none where there is nothing to put together, unless the severity
    that it proposes counts (``weighs``). A model that breaks costs the names, never a finding.
    """
    ordered = sorted(findings, key=lambda each: each.number)
    agents = dict(sorted(_by(lambda each: each.key.agent, ordered).items()))
    found: dict[str, _Grouped] = {}

    def grouper_of(agent: str) -> _Grouper | None:
        setting = (settings or {}).get(agent, Setting())
        if model is None:
            return None
        asked = prompt or SHIPPED.prompt(METRIC)
        return _Grouper(model, asked, _policy_text(setting), _tools_text(setting), weighs)

    async def group_of(agent: str) -> None:
        found[agent] = await _group(agents[agent], grouper_of(agent))

    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(group_of, agent)
    parts = [found[agent] for agent in agents]
    groups = sorted((group for part in parts for group in part.groups), key=lambda group: group.weight)
    return IssuesFound(
        issues=tuple(_issue(number, group) for number, group in enumerate(groups, 1)),
        usage=sum((part.usage for part in parts), Usage()),
        failures=tuple(part.failure for part in parts if part.failure),
        not_asked=sum(part.not_asked for part in parts),
    )


async def find_issues(
    scenarios: Sequence[ScenarioReport],
    model: ChatModel | None = None,
    *,
    prompt: Prompt | None = None,
    policies: Mapping[str, str] | None = None,
    weighs: bool = False,
) -> IssuesFound | None:
    """The findings of a run in issues (see ``deduplicate``); ``None`` if it has none."""
    samples = [sample for each in scenarios for sample in each.samples]
    found = located((sample.key, sample.trajectory, sample.findings) for sample in samples)
    if not found:
        return None
    settings = settings_of(scenarios, policies or {})
    return await deduplicate(found, model, prompt=prompt, settings=settings, weighs=weighs)


# ── issues ───────────────────────────────────────────────────────────────────────────────────────


def _issue(number: int, group: _Group) -> Issue:
    members = _in_order(group.all)
    findings = [each.finding for each in members]
    told = min(group.members, key=lambda each: (-each.finding.severity.rank, each.number))
    samples = _by(lambda each: each.key, members)
    return Issue(
        id=f"I{number}",
        agent=told.key.agent,
        title=group.title or _title(told.cause, len(group.causes)),
        explanation=group.explanation or one_line(told.finding.explanation or told.finding.evidence, 600),
        severity=group.severity,
        proposed_severity=group.proposed,
        not_the_agents_fault=group.excuse,
        labels=tuple(sorted({finding.label for finding in findings})),
        metrics=tuple(sorted({finding.metric for finding in findings})),
        tools=tuple(sorted({each.tool for each in members if each.tool})),
        occurrences=tuple(
            Occurrence(**key.model_dump(), findings=tuple(sorted(each.index for each in own)))
            for key, own in samples.items()
        ),
        examples=tuple(example_of(each) for each in spread(members, MAX_EXAMPLES)),
        by=group.by,
        scripted=group.scripted or any(finding.scripted for finding in findings),
    )


def _title(cause: Cause, causes: int) -> str:
    """``wrong arguments: create_booking``: what code can say of a cause."""
    about = cause.tool or cause.criterion or cause.rule
    name = f"{cause.label or cause.metric}: {about}" if about else cause.label or cause.metric
    return one_line(name, 120) + (f" (and {causes - 1} more)" if causes > 1 else "")
