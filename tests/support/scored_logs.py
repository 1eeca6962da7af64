"""Logs of recorded conversations, and ``agenteval score`` on them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.support.kit import Done, Project

GET_ORDER = {
    "name": "get_order",
    "parameters": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
}
ORDER = {"role": "user", "content": "Where is order ORD-42?"}
SHIPPED = {"role": "assistant", "content": "It has been shipped."}
ASK_JUDGES = "-m PROVIDER/MODEL"
"""What a score without judges advises."""


def calling(name: str, arguments: str = "{}", key: str = "1") -> dict[str, Any]:
    """The agent's message with one call."""
    call = {"id": key, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def conversation(name: str | None = None, *, calls: str = "get_order", **more: Any) -> dict[str, Any]:
    """One in which an order is looked up; ``calls``: by which tool."""
    result = {"role": "tool", "tool_call_id": "1", "content": '{"status": "shipped"}'}
    return {
        **({"id": name} if name else {}),
        "tools": [{"type": "function", "function": GET_ORDER}],
        "messages": [ORDER, calling(calls, '{"id": "ORD-42"}'), result, dict(SHIPPED)],
        **more,
    }


def log(project: Project, *lines: Any, name: str = "log.jsonl") -> None:
    """Write a record a line; a text as it is."""
    project.write(name, lines_of(*lines))


def lines_of(*lines: Any) -> str:
    return "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)


def score(project: Project, *arguments: str, **more: Any) -> Done:
    return project.call("score", "--report", "json=results.json", *arguments, **more)


def samples(project: Project) -> dict[str, Any]:
    """The first conversation of each scenario, by its id."""
    return {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}


def verdicts(project: Project) -> dict[str, str]:
    return {each["id"]: each["verdict"] for each in project.results()["scenarios"]}


def summary(project: Project) -> Any:
    return project.results()["summary"]


def caveats(project: Project) -> dict[str, int]:
    """The number that each caveat counts, by its kind."""
    return {each["kind"]: each["count"] for each in summary(project)["caveats"]}


def last_line(done: Done) -> str:
    return done.out.splitlines()[-1]


def flat(text: str) -> str:
    """Without the line breaks of the screen."""
    return " ".join(text.split())


def expect(project: Project, rules: Mapping[str, str], *, head: str = "") -> tuple[str, str]:
    """Write ``expected.yaml``: the expectation of each conversation, by its id. Return the option."""
    rows = [
        f"  - {{id: {json.dumps(id_)}, turns: [Hi], expect: {{{rule}}}}}\n" for id_, rule in rules.items()
    ]
    project.write("expected.yaml", f"{head}scenarios:\n{''.join(rows)}")
    return "--scenarios", "expected.yaml"
