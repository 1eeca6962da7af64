"""The accept list in a report: the order and the facts of its lines, and the entries it suggests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml

from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import AcceptedState, AcceptedUse, SampleDecision
from agenteval.core.score import Verdict
from agenteval.reporters.sections.accepted import accept_list_entries, accepted_line, accepted_lines, sections
from agenteval.reporters.sections.section import StyledText, Tone
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from tests.support.verdict_runs import FAIL, PASS, UNSURE, report_of

IN_FORCE, EXPIRED, UNUSED = AcceptedState.IN_FORCE, AcceptedState.EXPIRED, AcceptedState.UNUSED


def use(state: AcceptedState = IN_FORCE, samples: int = 0, elsewhere: str = "", **entry: Any) -> AcceptedUse:
    fields = {
        "fingerprint": "0123456789ab",
        "owner": "ana",
        "reason": "known bug",
        "expires": "2026-12-31",
        **entry,
    }
    return AcceptedUse(AcceptedFailure(**fields), state, samples, elsewhere)


@pytest.mark.parametrize(
    ("given", "facts", "absent"),
    [
        (use(samples=1), ["until 2026-12-31", "ana", "known bug", "1 sample"], ["1 samples", "("]),
        (use(samples=2000), ["2,000 samples"], []),
        (use(EXPIRED, 3), ["expired on 2026-12-31", "ana", "counts again", "3 samples"], ["remove"]),
        (
            use(EXPIRED, 0),
            ["expired on 2026-12-31", "did not occur", "remove"],
            ["counts again", "0 samples"],
        ),
        (use(UNUSED), ["did not occur", "remove", "ana"], ["2026", "known bug"]),
        (use(UNUSED, scenario="book"), ["(book)"], []),
        (use(UNUSED, what="lies"), ["(lies)"], []),
        (use(samples=1, scenario="book", what="lies"), ["(book: lies)"], []),
        (
            use(UNUSED, elsewhere="refund", scenario="book"),
            ["nothing (book)", "'refund'", "ana"],
            ["did not"],
        ),
        (use(EXPIRED, 2, elsewhere="refund"), ["nothing", "'refund'"], ["expired"]),
    ],
)
def test_a_line_says_what_became_of_the_entry(
    given: AcceptedUse, facts: list[str], absent: list[str]
) -> None:
    line = accepted_line(given)
    assert line.startswith("0123456789ab ")
    assert [fact for fact in facts if fact not in line] == []
    assert [fact for fact in absent if fact in line] == []


@pytest.mark.parametrize(
    ("field", "limit"), [("owner", 60), ("reason", 160), ("scenario", 120), ("what", 120)]
)
def test_long_texts_are_cut_at_their_limit(field: str, limit: int) -> None:
    fitting: dict[str, Any] = {field: "x" * limit}
    assert "x" * limit in accepted_line(use(samples=1, **fitting))
    longer: dict[str, Any] = {field: "x" * (limit + 1)}
    cut = accepted_line(use(samples=1, **longer))
    assert "x" * (limit - 1) + "…" in cut


ALL = (
    use(UNUSED, fingerprint="a" * 12),
    use(IN_FORCE, 1, fingerprint="b" * 12),
    use(EXPIRED, fingerprint="c" * 12),
    use(IN_FORCE, 1, fingerprint="d" * 12),
)


def facts_of(*uses: AcceptedUse) -> Facts:
    report = report_of({"a": [PASS]})
    return Facts(report, replace(decide(report), accepted=uses))


def test_expired_entries_come_first_and_unused_ones_last() -> None:
    assert [line[0] for line in accepted_lines(facts_of(*ALL).decision)] == ["c", "b", "d", "a"]


@pytest.mark.parametrize(
    ("uses", "title"),
    [(ALL, "2 accepted failures"), (ALL[:2], "1 accepted failure"), (ALL[:1], "0 accepted failures")],
)
def test_the_title_counts_what_is_in_force(uses: tuple[AcceptedUse, ...], title: str) -> None:
    (section,) = sections(facts_of(*uses))
    assert section.title == title
    assert len(section.notes) == len(uses)
    assert all(isinstance(note, StyledText) and note.tone is Tone.OPEN for note in section.notes)


def test_without_a_list_there_is_no_section() -> None:
    assert list(sections(facts_of())) == []


# ── suggested entries ────────────────────────────────────────────────────────────────────────────


def test_each_failure_that_failed_a_sample_is_suggested_once() -> None:
    report = report_of({"a": [PASS, FAIL, FAIL], "b": [FAIL], "c": [PASS], "d": [UNSURE]})
    decision = decide(report)
    entries = yaml.safe_load(accept_list_entries(report, decision))
    assert [entry["scenario"] for entry in entries] == ["a", "b"]
    failed = {
        name
        for decided in decision.samples.values()
        for violation in decided.violations
        if violation.verdict is Verdict.FAILED
        for name in violation.fingerprints
    }
    assert {entry["fingerprint"] for entry in entries} == failed
    assert all(entry["what"] for entry in entries)
    assert all(entry[key] is None for entry in entries for key in ("owner", "reason", "expires"))


def test_nothing_is_suggested_where_nothing_failed() -> None:
    report = report_of({"a": [PASS], "d": [UNSURE]})
    assert accept_list_entries(report, decide(report)) == ""


def test_a_sample_without_a_decision_or_without_violations_suggests_nothing() -> None:
    report = report_of({"a": [FAIL]})
    decision = decide(report)
    (key,) = decision.samples
    for samples in ({}, {key: SampleDecision(Verdict.FAILED)}):
        assert accept_list_entries(report, replace(decision, samples=samples)) == ""


def test_a_failure_of_an_undecided_sample_is_not_suggested() -> None:
    report = report_of({"a": [FAIL]})
    decision = decide(report)
    ((key, decided),) = decision.samples.items()
    undecided = {key: replace(decided, verdict=Verdict.INCONCLUSIVE)}
    assert accept_list_entries(report, replace(decision, samples=undecided)) == ""
