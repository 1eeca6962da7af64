"""What the grouping model may answer, and how its answer is entered in the books."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from agenteval.core.protocols import ModelReply
from agenteval.core.safe_text import one_line
from agenteval.core.score import Severity
from agenteval.scoring.issues.grouping import FindingGroup, Proposal, union


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


def settle(
    groups: Sequence[FindingGroup], reply: ModelReply
) -> tuple[list[FindingGroup], list[FindingGroup]]:
    """The groups as the model put them together, and those that it forgot. An id that was not asked
    about counts for nothing; one named twice stays where it was named first."""
    assert isinstance(reply.value, DedupReply)
    home = {each.number: place for place, group in enumerate(groups) for each in group.all}
    free = set(range(len(groups)))
    made = []
    for issue in reply.value.issues:
        numbers = map(_number, issue.findings)
        places = {home[number] for number in numbers if number in home} & free
        if places:
            free -= places
            made.append(union([groups[place] for place in sorted(places)], _proposal(issue, reply)))
    return made, [groups[place] for place in sorted(free)]


_ID = re.compile(r"\W*F?0*([1-9][0-9]{0,8})\W*", re.ASCII | re.IGNORECASE)


def _number(text: str) -> int:
    """The number in ``F12``, however it is spelled; 0 if it is none."""
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
