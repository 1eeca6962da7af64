"""Findings become issues: one root cause each, grouped in code, then by a model that merges and names.

Code keeps the books. Whatever a model answers (ids left out, made up or named twice, nonsense, nothing
at all), each finding ends in exactly one issue. What a model says is a title, an explanation and a
proposal; the severity is that of the findings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple, TypeVar

import anyio
from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from agenteval.errors import AuthorError, InfrastructureError
from agenteval.expressions import expression
from agenteval.findings import Cause, Located, example_of, spread
from agenteval.goals import GOAL
from agenteval.metrics import TOOL_CALL_BEHAVIOR
from agenteval.needles import fold
from agenteval.prompts import CRITERIA, SHIPPED, Prompt, fence
from agenteval.protocols import ChatModel, ModelReply, ModelRequest, Subject
from agenteval.safe_text import one_line
from agenteval.score import Issue, Occurrence, ScoreFailure, Severity
from agenteval.severity import POLICY_VIOLATION
from agenteval.trajectory import Usage

METRIC = "error_deduplication"
MAX_ENTRIES = 40
"""Groups that one request may list."""
MAX_CHARACTERS = 12_000
"""Length of the list in one request, about 3,000 tokens: it fits where small local models run."""
MAX_PIECES = 25
"""Requests for one agent's findings, and one more to merge what they found. What does not fit, the
least severe, is grouped in code alone."""
MAX_EXAMPLES = 5


# ── groups of findings ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Group:
    """Findings of one agent taken to have one cause, in the order of their numbers. ``title`` and what
    follows is a model's, empty until one has spoken. ``named_by``: of several labels for one fault,
    the cause."""

    members: tuple[Located, ...]
    title: str = ""
    explanation: str = ""
    proposed: Severity | None = None
    by: str = ""
    scripted: bool = False
    named_by: Cause | None = None

    @property
    def severity(self) -> Severity:
        return _worst(each.finding.severity for each in self.members)

    @property
    def causes(self) -> frozenset[Cause]:
        return frozenset(each.cause for each in self.members)

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """The worst and most frequent sort first."""
        samples = len({each.key for each in self.members})
        return -self.severity.rank, -samples, -len(self.members), self.members[0].number


def _worst(severities: Iterable[Severity]) -> Severity:
    return max(severities, key=lambda severity: severity.rank)


def _union(groups: Sequence[_Group]) -> _Group:
    """One group of all members, with the words of the first and the worst proposal."""
    members = sorted((each for group in groups for each in group.members), key=lambda each: each.number)
    proposals = [group.proposed for group in groups if group.proposed]
    return replace(
        groups[0],
        members=tuple(members),
        proposed=_worst(proposals) if proposals else None,
        scripted=any(group.scripted for group in groups),
    )


_Item = TypeVar("_Item")
_Key = TypeVar("_Key", bound=Hashable)


def _by(key: Callable[[_Item], _Key], items: Iterable[_Item]) -> dict[_Key, list[_Item]]:
    groups: dict[_Key, list[_Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _candidates(findings: Sequence[Located]) -> list[_Group]:
    """What a model is asked about: the findings of one scenario that code cannot tell apart. Those of
    one cause stand together, the worst cause first, so that a piece holds what is alike."""
    alike = _by(lambda each: (each.cause, each.key.scenario, each.finding.detector), findings)
    groups = [_Group(tuple(members)) for members in alike.values()]
    rank: dict[Cause, int] = {}
    for group in groups:
        cause = group.members[0].cause
        rank[cause] = max(group.severity.rank, rank.get(cause, 0))
    return sorted(groups, key=lambda g: (-rank[g.members[0].cause], g.members[0].cause, g.members[0].number))


def _same_cause(groups: Iterable[_Group]) -> list[_Group]:
    """What code makes of groups that no model put anywhere: one of each cause, over all scenarios; and one of
    several labels for the same faults."""
    made = [_union(alike) for alike in _by(lambda group: group.members[0].cause, groups).values()]
    kept: list[_Group] = []
    for group in sorted(made, key=_nearness_to_the_cause):
        home = next((n for n, other in enumerate(kept) if _are_the_same_faults(group, other)), None)
        if home is None:
            kept.append(group)
        else:
            cause = kept[home].named_by or kept[home].members[0].cause
            kept[home] = replace(_union([kept[home], group]), named_by=cause)
    return kept


_FROM_CAUSE_TO_EFFECT = (
    (TOOL_CALL_BEHAVIOR, ""),
    ("", "unsafe state"),
    ("", "unsafe action"),
    ("", POLICY_VIOLATION),
    ("", "failure to ask for clarification"),
    ("", "disobey user request"),
    ("", "false information"),
    ("", "lack of specific information"),
    (CRITERIA, ""),
    (GOAL, ""),
)
"""Metric or label, in the order in which one fault shows: a wrong call comes before what is said of it, and
both before the goal that was missed."""


def _nearness_to_the_cause(group: _Group) -> tuple[int, int]:
    cause = group.members[0].cause
    place = next(
        (
            n
            for n, (metric, label) in enumerate(_FROM_CAUSE_TO_EFFECT)
            if (not metric or metric == cause.metric) and (not label or label == cause.label)
        ),
        _FROM_CAUSE_TO_EFFECT.index((CRITERIA, "")),
    )
    return place, group.members[0].number


def _are_the_same_faults(group: _Group, cause: _Group) -> bool:
    """Whether each finding of ``group`` is about what one of ``cause`` is about, under another label."""
    others = _by(lambda each: each.key, cause.members)
    return all(
        any(_is_same_fault(each, other) for other in others.get(each.key, ())) for each in group.members
    )


def _is_same_fault(one: Located, other: Located) -> bool:
    """Of one conversation: about the same call or, in one turn or over all of it, the same words."""
    first, second = one.finding, other.finding
    if first.call is not None and second.call is not None:
        return first.call == second.call
    if None not in (first.turn, second.turn) and first.turn != second.turn:
        return False
    short, long = sorted((fold(first.evidence), fold(second.evidence)), key=len)
    return len(short) >= _ENOUGH and short in long


_ENOUGH = 8
"""Characters of a quotation by which two findings are about the same."""


def _joined(pieces: Sequence[Sequence[_Group]]) -> list[_Group]:
    """Groups that different pieces made of the same causes are one. A piece that told them apart knew
    better than code does: there they stay apart."""
    placed = [(number, group) for number, piece in enumerate(pieces) for group in piece]
    joined = []
    for alike in _by(lambda each: each[1].causes, placed).values():
        groups = [group for _, group in alike]
        told_apart = len({number for number, _ in alike}) < len(alike)
        joined += groups if told_apart else [_union(groups)]
    return joined


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
        json_schema_extra={"required": ["title", "explanation", "severity", "findings"]}
    )

    title: Annotated[str, BeforeValidator(_text)] = ""
    explanation: Annotated[str, BeforeValidator(_text)] = ""
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
    """A group in a few short texts. Everything in it may be an agent's doing, tool names included."""
    causes = sorted(group.causes)
    entry = {
        "id": group.members[0].id,
        "title": group.title,
        "explanation": group.explanation,
        "label": _some((cause.label for cause in causes), 160),
        "tool": _some((cause.tool for cause in causes), 160),
        "criterion": _some((cause.criterion for cause in causes), 200),
        "conversation": _some((each.key.scenario for each in group.members), 160),
        "times": len(group.members),
        "conversations": len({each.key for each in group.members}),
        "examples": [_quotation(each) for each in spread(group.members, 2)] if not group.title else [],
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


class _Grouper(NamedTuple):
    """The model that groups, and in which words it is asked to."""

    model: ChatModel
    prompt: Prompt


def _request(groups: Sequence[_Group], prompt: Prompt) -> ModelRequest:
    lines = "\n".join(_line(group) for group in groups)
    rendered = prompt.render(findings=fence(lines))
    scenarios = {each.key.scenario for group in groups for each in group.members}
    scenario = scenarios.pop() if len(scenarios) == 1 else ""
    subject = Subject(scenario=scenario, metric=METRIC, text=lines)
    return ModelRequest("dedup", rendered.system, rendered.prompt, DedupReply, subject, states_form=True)


def _pieces(groups: Sequence[_Group], limit: int) -> tuple[list[list[_Group]], list[_Group]]:
    """At most ``limit`` requests' worth of groups, in their order, and the groups that are left over."""
    pieces: list[list[_Group]] = []
    size = 0
    for place, group in enumerate(groups):
        length = len(_line(group)) + 1
        if not pieces or len(pieces[-1]) == MAX_ENTRIES or size + length > MAX_CHARACTERS:
            if len(pieces) == limit:
                return pieces, list(groups[place:])
            pieces.append([])
            size = 0
        pieces[-1].append(group)
        size += length
    return pieces, []


# ── the books ────────────────────────────────────────────────────────────────────────────────────

_ID = expression(r"\W*F?0*([1-9][0-9]{0,8})\W*", re.ASCII | re.IGNORECASE)


def _number(text: str) -> int:
    """The number in ``F12``, however it is spelled; 0 if it is none."""
    found = _ID.fullmatch(text) if len(text) < 40 else None
    return int(found[1]) if found else 0


def _settle(groups: Sequence[_Group], reply: ModelReply) -> tuple[list[_Group], list[_Group]]:
    """The groups as the model put them together, and those that it forgot. An id that was not asked
    about counts for nothing; one named twice stays where it was named first."""
    assert isinstance(reply.value, DedupReply)
    home = {each.number: place for place, group in enumerate(groups) for each in group.members}
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
    if len(parts) == 1 and parts[0].by:
        return parts[0]  # named by a model that saw its findings; this one saw the name alone
    union = _union(parts)
    return replace(
        union,
        title=one_line(proposal.title, 120) or union.title,
        explanation=one_line(proposal.explanation, 600) or union.explanation,
        proposed=proposal.proposed or union.proposed,
        by=reply.model or "a model",
        scripted=union.scripted or reply.scripted,
    )


class _Answer(NamedTuple):
    """What a request came to. ``left``: the groups that the model put nowhere. ``mistake`` is the
    author's."""

    made: list[_Group]
    left: list[_Group]
    usage: Usage = Usage()
    failure: ScoreFailure | None = None
    mistake: AuthorError | None = None


async def _ask(groups: list[_Group], grouper: _Grouper) -> _Answer:
    request = _request(groups, grouper.prompt)
    try:
        reply = await grouper.model.complete(request)
    except AuthorError as error:
        return _Answer([], groups, mistake=error)
    except Exception as error:
        # Whatever broke, a model or a plugin of one: the run is paid for and its findings are known.
        usage, raw = getattr(error, "usage", None), getattr(error, "raw", "")
        message = str(error) if isinstance(error, InfrastructureError) else f"the model broke: {error!r}"
        failure = ScoreFailure(metric=METRIC, message=message, raw=raw if isinstance(raw, str) else "")
        return _Answer([], groups, usage if isinstance(usage, Usage) else Usage(), failure)
    if not isinstance(reply.value, DedupReply):
        message = f"the model answered with {type(reply.value).__name__}, not with issues"
        return _Answer([], groups, reply.usage, ScoreFailure(metric=METRIC, message=message))
    made, left = _settle(groups, reply)
    return _Answer(made, left, reply.usage)


async def _ask_each(pieces: Sequence[list[_Group]], grouper: _Grouper) -> list[_Answer]:
    answers = [_Answer([], piece) for piece in pieces]

    async def ask(place: int) -> None:
        answers[place] = await _ask(pieces[place], grouper)

    async with anyio.create_task_group() as group:
        for place in range(len(pieces)):
            group.start_soon(ask, place)
    return answers


async def _group(findings: Sequence[Located], grouper: _Grouper | None) -> tuple[list[_Group], list[_Answer]]:
    """The findings of one agent in groups, and what was asked for that."""
    candidates = _candidates(findings)
    if grouper is None:
        return _same_cause(candidates), []
    pieces, unsent = _pieces(candidates, MAX_PIECES)
    answers = await _ask_each(pieces, grouper)
    left = [group for answer in answers for group in answer.left]
    groups = [*_joined([answer.made for answer in answers]), *_same_cause([*left, *unsent])]
    if len(pieces) > 1 and len(groups) > 1 and any(answer.made for answer in answers):
        [first], others = _pieces(sorted(groups, key=lambda group: group.weight), 1)
        merged = await _ask(first, grouper)
        answers.append(merged)
        groups = [*merged.made, *merged.left, *others]
    return groups, answers


class Deduplicated(NamedTuple):
    """The issues, the worst and most frequent first; what the model used, broken answers included; and
    where it broke, so that code grouped alone."""

    issues: tuple[Issue, ...]
    usage: Usage = Usage()
    failures: tuple[ScoreFailure, ...] = ()


async def deduplicate(
    findings: Iterable[Located], model: ChatModel | None = None, *, prompt: Prompt | None = None
) -> Deduplicated:
    """The findings of a run (see ``located``) as issues, per agent. Each finding is in exactly one.

    Without a model, one issue for each cause that code can tell. With one, at most ``MAX_PIECES`` + 1
    requests for each agent, and none where nothing was found. A model that breaks costs the names, never
    a finding. Raises ``AuthorError`` only for a mistake of the author that the model met.
    """
    grouper = _Grouper(model, prompt or SHIPPED.prompt(METRIC)) if model else None
    ordered = sorted(findings, key=lambda each: each.number)
    agents = dict(sorted(_by(lambda each: each.key.agent, ordered).items()))
    found: dict[str, tuple[list[_Group], list[_Answer]]] = {}

    async def group_of(agent: str) -> None:
        found[agent] = await _group(agents[agent], grouper)

    async with anyio.create_task_group() as tasks:
        for agent in agents:
            tasks.start_soon(group_of, agent)
    answers = [answer for agent in agents for answer in found[agent][1]]
    if mistake := next((answer.mistake for answer in answers if answer.mistake), None):
        raise mistake
    groups = sorted((group for agent in agents for group in found[agent][0]), key=lambda g: g.weight)
    return Deduplicated(
        issues=tuple(_issue(number, group) for number, group in enumerate(groups, 1)),
        usage=sum((answer.usage for answer in answers), Usage()),
        failures=tuple(answer.failure for answer in answers if answer.failure),
    )


# ── issues ───────────────────────────────────────────────────────────────────────────────────────


def _issue(number: int, group: _Group) -> Issue:
    findings = [each.finding for each in group.members]
    told = min(group.members, key=lambda each: (-each.finding.severity.rank, each.number))
    samples = _by(lambda each: each.key, group.members)
    return Issue(
        id=f"I{number}",
        agent=told.key.agent,
        title=group.title or _title(group.named_by or told.cause, 1 if group.named_by else len(group.causes)),
        explanation=group.explanation or one_line(told.finding.explanation or told.finding.evidence, 600),
        severity=group.severity,
        proposed_severity=group.proposed,
        labels=tuple(sorted({finding.label for finding in findings})),
        metrics=tuple(sorted({finding.metric for finding in findings})),
        tools=tuple(sorted({each.tool for each in group.members if each.tool})),
        occurrences=tuple(
            Occurrence(**key.model_dump(), findings=tuple(sorted(each.index for each in members)))
            for key, members in samples.items()
        ),
        examples=tuple(example_of(each) for each in spread(group.members, MAX_EXAMPLES)),
        by=group.by,
        scripted=group.scripted or any(finding.scripted for finding in findings),
    )


def _title(cause: Cause, causes: int) -> str:
    """``wrong arguments: create_booking``: what code can say of a cause."""
    about = cause.tool or cause.criterion or cause.rule
    name = f"{cause.label or cause.metric}: {about}" if about else cause.label or cause.metric
    return one_line(name, 120) + (f" (and {causes - 1} more)" if causes > 1 else "")
