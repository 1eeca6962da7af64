"""Scripted models: rules of ``replies.yaml``, and what became of a run's scenarios, by their names."""

from __future__ import annotations

import json
from typing import Any

from tests.support.kit import Project
from tests.support.model_servers import Json


def judge(reply: Json | str, **when: Any) -> Json:
    """A judge's answer; without another one, evidence is empty and the reason is "because"."""
    whole = {"evidence": "", "reason": "because", **reply} if isinstance(reply, dict) else reply
    return {"when": {"role": "judge", **when}, "reply": whole}


def user(scenario: str, turn: int, message: str | None, **more: Any) -> Json:
    """What a simulated user says in a turn; it is not done with it, unless ``done`` is given."""
    reply = {"message": message, "done": False, "reason": "r", **more}
    return {"when": {"role": "user", "scenario": scenario, "turn": turn}, "reply": reply}


def script(project: Project, *rules: Json, dedup: Any = None) -> None:
    """Writes the rules; the model that groups findings groups none, unless ``dedup`` is what it says."""
    grouping = {"when": {"role": "dedup"}, "reply": {"issues": []} if dedup is None else dedup}
    project.write("replies.yaml", json.dumps({"replies": [*rules, grouping]}))


def by_id(project: Project) -> dict[str, Json]:
    return {scenario["id"]: scenario for scenario in project.results()["scenarios"]}


def first_samples(project: Project) -> dict[str, Json]:
    return {name: scenario["samples"][0] for name, scenario in by_id(project).items()}


def verdicts(project: Project) -> dict[str, str]:
    return {name: scenario["verdict"] for name, scenario in by_id(project).items()}


def gates(project: Project, name: str) -> dict[str | None, Json]:
    """The rows of a gate, by scenario."""
    return {row["scenario"]: row for row in project.results()["summary"]["gates"] if row["name"] == name}
