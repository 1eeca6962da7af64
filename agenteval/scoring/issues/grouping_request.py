"""The request to the grouping model (the worst groups of one agent, its policy and its tools), the format of
the answer, and the application of the answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.safe_text import clean, one_line
from agenteval.core.sample_report import ScenarioReport
from agenteval.core.score import Severity
from agenteval.files.prompt_templates import fence
from agenteval.files.prompts import SHIPPED_PROMPTS, Prompt
from agenteval.scoring.findings import LocatedFinding, pick_varied_findings
from agenteval.scoring.issues.grouping import FindingGroup, Proposal, group_by, merge_groups

METRIC = "error_deduplication"
MAX_ENTRIES = 40
"""The maximum number of groups in the request for one agent. The worst groups are included; the remaining
groups are left as code formed them."""
MAX_CHARACTERS = 20_000
"""The limit on the combined length of the list, the policy and the tools, in characters (about 5,000 tokens).
A request of this length and its answer fit into the context window of local models."""
MAX_POLICY, MAX_TOOLS = 3_000, 1_500
"""The limits, in characters, for the policies and the tools; the list gets the rest."""
_MAX_POLICIES = 3


# ── the agent's setting ──────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class AgentSetup:
    """The policies and the tools of one agent."""

    policies: tuple[str, ...] = ()
    """The agent's policies. There are several only if the agent's conversations are recorded."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """The tool descriptions, keyed by name."""


def collect_agent_setups(
    scenarios: Iterable[ScenarioReport], policies: Mapping[str, str]
) -> dict[str, AgentSetup]:
    """Collect the setup of each agent from the conversations that have findings.

    ``policies`` is keyed by agent; a recorded conversation has its own policy."""
    failed = [each for each in scenarios if any(sample.findings for sample in each.samples)]
    agents = group_by(lambda each: each.agent, failed)
    return {
        agent: _build_setup(agent_scenarios, policies.get(agent, ""))
        for agent, agent_scenarios in agents.items()
    }


def _build_setup(scenarios: Sequence[ScenarioReport], policy: str) -> AgentSetup:
    tools: dict[str, str] = {}
    for each in scenarios:
        for name, tool in each.scenario.tools.items():
            tools[name] = tools.get(name) or tool.description or ""
        called = (sample.trajectory.tool_calls for sample in each.samples if sample.findings)
        for call in (call for calls in called for call in calls):
            tools.setdefault(call.name, "")
    texts = ((each.scenario.policy or policy).strip() for each in scenarios)
    return AgentSetup(tuple(dict.fromkeys(filter(None, texts))), tools)


def _policy_text(setting: AgentSetup) -> str:
    """Format as much of the policies as fits, with each policy in a fence."""
    if not setting.policies:
        return "None is known."
    shown = setting.policies[:_MAX_POLICIES]
    texts = [fence(_without_its_middle(policy, MAX_POLICY // len(shown))) for policy in shown]
    if more := len(setting.policies) - len(shown):
        texts.append(f"And {more} more, of other conversations.")
    return "\n".join(texts)


def _tools_text(setting: AgentSetup) -> str:
    if not setting.tools:
        return "None is known."
    text = "\n".join(_tool_line(*tool) for tool in setting.tools.items())
    if len(text) > MAX_TOOLS:  # then only the names, as many as fit
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


# ── the answer ────────────────────────────────────────────────────────────────────────────────────


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return re.split(r"[\s,;]+", value)
    return [str(item) for item in value if isinstance(item, str | int)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_SEVERITY = {"type": "string", "enum": [str(severity) for severity in Severity]}


class ProposedIssue(BaseModel):
    """A group as proposed by a model. All fields are requested but parsed leniently, so that one malformed
    field does not invalidate the whole answer."""

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
    """The answer of the grouping model."""

    issues: list[ProposedIssue]


# ── the request ──────────────────────────────────────────────────────────────────────────────────


class GroupingQuestion(NamedTuple):
    """A request to group findings."""

    request: ModelRequest
    listed: Sequence[FindingGroup]
    """The groups that the request lists."""
    left_out: Sequence[FindingGroup]
    """The groups that did not fit."""


def build_grouping_question(
    candidates: Sequence[FindingGroup], setting: AgentSetup, prompt: Prompt | None
) -> GroupingQuestion:
    """Build the request for one agent's groups."""
    policy, tools = _policy_text(setting), _tools_text(setting)
    lines = _worst_that_fit(candidates, MAX_CHARACTERS - len(policy) - len(tools))
    listed = [group for place, group in enumerate(candidates) if place in lines]
    left_out = [group for place, group in enumerate(candidates) if place not in lines]
    text = "\n".join(lines[place] for place in sorted(lines))
    rendered = (prompt or SHIPPED_PROMPTS.prompt(METRIC)).render(
        policy=policy, tools=tools, findings=fence(text)
    )
    scenarios = {each.key.scenario for group in listed for each in group.all_findings}
    scenario = scenarios.pop() if len(scenarios) == 1 else ""
    subject = Subject(scenario=scenario, metric=METRIC, text=text)
    request = ModelRequest("dedup", rendered.system, rendered.prompt, DedupReply, subject, states_form=True)
    return GroupingQuestion(request, listed, left_out)


def _worst_that_fit(candidates: Sequence[FindingGroup], room: int) -> dict[int, str]:
    """Return the lines for the worst and most frequent groups that fit into ``room`` characters, keyed by
    index."""
    lines: dict[int, str] = {}
    ranked = sorted(range(len(candidates)), key=lambda place: candidates[place].weight)
    for place in ranked[:MAX_ENTRIES]:
        # As JSON, no text in it can look like a separate line.
        line = json.dumps(_entry(candidates[place]), ensure_ascii=False)
        room -= len(line) + 1
        if room < 0:
            break
        lines[place] = line
    return lines


def _entry(group: FindingGroup) -> dict[str, Any]:
    """Describe one of the candidate groups in a few short strings.

    An agent may control all of the content, including tool names."""
    first = group.members[0]
    entry = {
        "id": first.id,
        "label": one_line(first.cause.label, 160),
        "shows as": _format_first(sorted(each.cause.label for each in group.effects), 160),
        "tool": one_line(first.cause.tool, 160),
        "criterion": one_line(first.cause.criterion, 200),
        "conversation": one_line(first.key.scenario, 160),
        "times": len(group.all_findings),
        "conversations": len({each.key for each in group.all_findings}),
        "examples": [_quotation(each) for each in pick_varied_findings(group.members, 2)],
    }
    return {name: value for name, value in entry.items() if value}


def _format_first(names: Iterable[str], limit: int) -> str:
    """Format the first few distinct names."""
    known = list(dict.fromkeys(filter(None, names)))
    more = f" and {len(known) - 3} more" if len(known) > 3 else ""
    return one_line(", ".join(name[:limit] for name in known[:3]), limit) + more


def _quotation(each: LocatedFinding) -> dict[str, Any]:
    finding = each.finding
    turn = {} if finding.turn is None else {"turn": finding.turn + 1}
    texts = {"quotation": one_line(finding.evidence, 160), "explanation": one_line(finding.explanation, 200)}
    return {**turn, **texts}


# ── the books ─────────────────────────────────────────────────────────────────────────────────────


def apply_grouping(
    groups: Sequence[FindingGroup], reply: ModelReply
) -> tuple[list[FindingGroup], list[FindingGroup]]:
    """Merge groups according to the model's answer. Return the merged groups and the groups that the answer
    left out.

    An id that was not in the request is ignored. An id that occurs in several groups belongs to the first of
    them."""
    assert isinstance(reply.value, DedupReply)
    home = {each.number: place for place, group in enumerate(groups) for each in group.all_findings}
    free = set(range(len(groups)))
    made = []
    for issue in reply.value.issues:
        numbers = map(_number, issue.findings)
        places = {home[number] for number in numbers if number in home} & free
        if places:
            free -= places
            made.append(merge_groups([groups[place] for place in sorted(places)], _proposal(issue, reply)))
    return made, [groups[place] for place in sorted(free)]


_ID = re.compile(r"\W*F?0*([1-9][0-9]{0,8})\W*", re.ASCII | re.IGNORECASE)


def _number(text: str) -> int:
    """Return the number in an id such as ``F12``, regardless of its spelling, or 0 if there is none."""
    found = _ID.fullmatch(text) if len(text) < 40 else None
    return int(found[1]) if found else 0


def _proposal(issue: ProposedIssue, reply: ModelReply) -> Proposal:
    return Proposal(
        title=one_line(issue.title, 120),
        explanation=one_line(issue.explanation, 600),
        severity=issue.proposed,
        excuse=one_line(issue.not_the_agents_fault, 300),
        by=reply.model or "a model",
        scripted=reply.scripted,
    )
