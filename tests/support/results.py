"""Read the results of a project's last run, and what a command printed."""

from __future__ import annotations

from typing import Any

from tests.support.kit import Done, Project


def verdicts(project: Project) -> dict[str, str]:
    """The verdict of each scenario."""
    return {scenario["id"]: scenario["verdict"] for scenario in project.results()["scenarios"]}


def gates(project: Project, name: str) -> dict[str, dict[str, Any]]:
    """The rows of this gate, by scenario; that of the whole run has the key ``""``."""
    found = [row for row in project.results()["summary"]["gates"] if row["name"] == name]
    return {row["scenario"]: row for row in found}


def gate(project: Project, name: str) -> dict[str, Any]:
    """The only row of this gate."""
    (row,) = [row for row in project.results()["summary"]["gates"] if row["name"] == name]
    return row  # type: ignore[no-any-return]


def last_line(done: Done) -> str:
    return done.out.rstrip().splitlines()[-1]


def has(text: str, *facts: str) -> bool:
    """Whether the text contains every fact."""
    return all(fact in text for fact in facts)


def reports(done: Done, place: str, *facts: str) -> bool:
    """Whether one line on stderr contains the place and every fact."""
    return any(has(line, place, *facts) for line in done.err.splitlines())
