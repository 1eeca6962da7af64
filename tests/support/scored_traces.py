"""Many recorded traces, scored by one command: each in a file of its own, with ids of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tests.support.kit import Project
from tests.support.scored_logs import samples, score

FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}]}"
PASSED, FAILED, OPEN = "passed", "failed", "inconclusive"


class Row(NamedTuple):
    """A trace, what is expected of its turns, the verdict, and what is expected of the conversation."""

    text: str
    rules: Sequence[str]
    verdict: str
    whole: str = ""


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in values)


def check_traces(
    project: Project, rows: Mapping[str, Row], users: Sequence[str], *ids: str
) -> dict[str, dict[str, Any]]:
    """Assert the verdict of each row; return the samples by the names of the rows. ``ids``: those of traces
    and sessions in the texts, the first of which is that of the conversation; ``users``: what they write."""
    suite = ""
    names: dict[str, str] = {}
    for number, (name, row) in enumerate(rows.items(), 1):
        text, own = row.text, _own_id(ids[0], number)
        for id_ in ids:
            text = text.replace(f'"{id_}"', f'"{_own_id(id_, number)}"')
        project.write(f"row{number}.jsonl", text)
        names[own] = name
        suite += f"  - id: '{own}'\n    turns:\n"
        for user, rule in zip(users, row.rules, strict=False):
            suite += f"      - {{user: {json.dumps(user)}{rule and f', expect: {{{rule}}}'}}}\n"
        suite += f"    expect: {{{row.whole}}}\n" if row.whole else ""
    tools = "tools: {cancel: {}, look: {}, ask_helper: {}}"
    project.write("suite.yaml", f"defaults: {{{tools}}}\nscenarios:\n{suite}")
    project.write("agenteval.yaml", "metrics: []\ndetectors: []\n")
    files = [f"row{number}.jsonl" for number in range(1, len(rows) + 1)]
    done = score(project, *files, "--scenarios", "suite.yaml")
    assert done.code in (0, 1, 3), done.all
    found = samples(project)
    by_name = {name: found[own] for own, name in names.items()}
    assert {name: one["verdict"] for name, one in by_name.items()} == {
        name: row.verdict for name, row in rows.items()
    }
    return by_name


def _own_id(id_: str, number: int) -> str:
    """As long as before where it is long: an id of a trace."""
    return f"{id_[0]}{number:03x}{id_[4:]}" if len(id_) > 8 else f"{id_} {number}"


def calls_of(sample: Mapping[str, Any]) -> list[list[str]]:
    """The names of the calls in each turn."""
    return [[call["name"] for call in turn["tool_calls"]] for turn in sample["turns"]]


def answers_of(sample: Mapping[str, Any]) -> list[str]:
    return [turn["agent"] for turn in sample["turns"]]


def reasons_of(sample: Mapping[str, Any]) -> str:
    """The details of all undecided checks."""
    checks = [*sample["checks"], *(check for turn in sample["turns"] for check in turn["checks"])]
    return "\n".join(str(check["detail"]) for check in checks if check["passed"] is None)
