"""Scenarios of which each is refused at a line of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.support.kit import Project


def assert_each_refused(
    project: Project,
    rows: Mapping[str, Iterable[str]],
    entry: str = "turns: [x], expect: {{{}}}",
    group: str = "scenarios",
) -> None:
    """Each row, written into ``entry``, is a scenario (or a case) that ``validate`` refuses in one message at
    its line; the message contains every fact of the row."""
    lines = [f"- {{id: s{number}, {entry.format(written)}}}" for number, written in enumerate(rows)]
    project.scenarios("\n".join([f"{group}:", *lines]) + "\n")
    done = project.call("validate")
    assert done.code == 2, done.all
    for line, (written, facts) in enumerate(rows.items(), 2):
        messages = [text for text in done.err.splitlines() if f"suite.yaml:{line}:" in text]
        assert len(messages) == 1, (written, messages)
        assert all(fact in messages[0] for fact in facts), (written, facts, messages[0])


def assert_none_refused(
    project: Project, rows: Iterable[str], entry: str = "turns: [x], expect: {{{}}}", more: str = ""
) -> None:
    """All rows are accepted, and ``more``, which is written below the scenarios."""
    lines = [f"- {{id: s{number}, {entry.format(written)}}}" for number, written in enumerate(rows)]
    project.scenarios("\n".join(["scenarios:", *lines, more]) + "\n")
    done = project.call("validate")
    assert done.code == 0, done.err
