"""Remarks on a screen: each with its label, indented, and with its remedy in full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.event import Notice
from agenteval.core.score import Verdict
from agenteval.core.trajectory import StopReason
from agenteval.reporters.options import ReportOptions
from agenteval.reporters.terminal.cells import LABEL
from agenteval.reporters.terminal.remarks import accept_list, author_errors, notes, remarks
from agenteval.reporters.terminal.screen import Part, render_parts
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import FAIL, PASS, Played, judge_failed, report_of


def facts_of(*notices: str, level: Any = "warning", played: Played = PASS, **decision: Any) -> Facts:
    report = report_of({"a": [played]})
    report = replace(report, notices=tuple(Notice(level=level, text=text) for text in notices))
    return Facts(report, replace(decide(report), **decision))


def shown(part: Part, facts: Facts, **options: Any) -> list[str]:
    told = ReportOptions(**options)
    return render_parts(part(facts, told), told).splitlines()


def labelled(lines: list[str], label: str) -> list[str]:
    """The texts from the line of this label to the next label."""
    start = next((n for n, line in enumerate(lines) if line.startswith(f"{label}:")), len(lines))
    end = next((n for n in range(start + 1, len(lines)) if not lines[n].startswith(" ")), len(lines))
    return [line[LABEL:] for line in lines[start:end]]


def test_without_remarks_there_is_no_line_and_else_an_empty_one_at_the_end() -> None:
    plain = facts_of()
    assert [line for line in shown(remarks, plain) if line.startswith("warning")] == []
    lines = shown(remarks, facts_of("hot", "cold"))
    assert lines[-1] == ""
    assert [line for line in lines if line.startswith("warning:")] == [
        "warning:     hot",
        "warning:     cold",
    ]


@pytest.mark.parametrize("width", [30, 60])
def test_what_agenteval_says_is_wrapped_and_never_cut(width: int) -> None:
    text = " ".join(f"word{n}" for n in range(40)) + " — set `a: b`"
    lines = labelled(shown(remarks, facts_of(text), width=width), "warning")
    assert " ".join(lines) == text
    assert all(len(line) <= width - LABEL for line in lines)
    assert len(lines) > 3


def test_quoted_text_cannot_begin_a_line_of_its_own() -> None:
    lines = shown(author_errors, facts_of(author_errors=("one\nPASSED: all",)))
    assert lines == ["error:       one", "             PASSED: all", ""]


def test_what_a_judge_said_is_cut_after_three_lines_but_not_its_remedy() -> None:
    message = " ".join(f"word{n}" for n in range(100)) + " — set `a: b`"
    broken = Played((judge_failed("stars").model_copy(update={"message": message}),), turns=((),))
    lines = labelled(shown(remarks, facts_of(played=broken), width=80), "no score")
    assert lines[0].startswith("stars: word0")
    assert lines[2].endswith("…")
    assert "set `a: b`" in " ".join(lines[3:])


def test_what_ended_a_tolerated_conversation_is_cut_after_three_lines_too() -> None:
    lost = Played(
        turns=((),), stop=StopReason.INFRASTRUCTURE, detail=" ".join(f"word{n}" for n in range(100))
    )
    lines = labelled(shown(remarks, facts_of(played=lost, verdict=Verdict.PASSED), width=80), "errored")
    assert (len(lines), lines[-1][-1]) == (3, "…")


def test_the_mistakes_of_the_author_are_told_in_full() -> None:
    long = " ".join(f"word{n}" for n in range(100))
    lines = shown(author_errors, facts_of(author_errors=(long, "two")), width=60)
    assert " ".join(line[LABEL:] for line in lines[:-2]) == long
    assert lines[-2:] == ["error:       two", ""]
    assert shown(author_errors, facts_of()) == []


def test_notes_are_indented_by_the_longest_label_and_end_with_the_journal() -> None:
    lines = shown(notes, facts_of("hot"), journal="/x/a  b.jsonl")
    assert lines[-1] == "journal: /x/a b.jsonl"
    texts = [line for line in lines[:-1] if ":" in line]
    labels = [line.partition(":")[0] for line in texts]
    indent = max(map(len, labels)) + 3
    assert "warning" in labels
    assert all(line[indent - 1] == " " and line[indent] != " " for line in texts)
    assert all(not line.startswith("journal") for line in shown(notes, facts_of("hot")))


@pytest.mark.parametrize(
    ("label", "style"), [("error", "\x1b[31m"), ("warning", "\x1b[35m"), ("info", "\x1b[2m")]
)
def test_each_label_has_its_colour(label: str, style: str) -> None:
    lines = shown(notes, facts_of("hot", level=label), color=True)
    (line,) = [line for line in lines if f"{label}:" in line and "hot" in line]
    assert style in line.partition("hot")[0]


def test_the_entries_for_the_accept_list_are_indented() -> None:
    facts = facts_of(played=FAIL)
    assert facts.decision.verdict is Verdict.FAILED
    head, *entries, end = shown(accept_list, facts)
    assert "accept list" in head
    assert entries
    assert all(line.startswith("    ") for line in entries)
    assert end == ""
    assert shown(accept_list, facts_of()) == []
