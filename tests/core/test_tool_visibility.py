"""Which calls of an agent are visible, and what that decides."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.score import Check, Finding, Score, ScoreFailure, Severity, UserReview
from agenteval.core.tool_visibility import (
    DECLARED_UNSEEN,
    NO_CALL_SEEN,
    NOT_OF_THE_LOG,
    OWN_TOOLS,
    KnownVisibility,
    OpenReasons,
    VisibilitySource,
    conversation_visibility,
    declared_visibility,
    evidence_in,
    explain_open,
    mark_absence_based,
    settle_absence_checks,
    unplaced_text,
    visibility_of,
)
from agenteval.core.trajectory import CallEvidence, ToolVisibility, Turn

ALL, PARTLY, UNSEEN, DECLARED = ToolVisibility
ASKED, REPORTED, RECORDED, LISTED = CallEvidence


def known(calls: ToolVisibility, source: str = "adapter", why: str = "") -> KnownVisibility:
    return KnownVisibility(calls=calls, source=VisibilitySource(source), why=why)


def test_what_the_author_declares() -> None:
    assert declared_visibility(None) is None
    assert declared_visibility("all") == known(ALL, "author")
    assert declared_visibility("unseen") == known(DECLARED, "author")
    assert [known(ALL, source).is_authors for source in VisibilitySource] == [True, False, False]


@pytest.mark.parametrize(
    ("before", "evidence", "passthrough", "visibility"),
    [
        (None, (), False, UNSEEN),
        (None, (), True, UNSEEN),
        (None, (ASKED,), False, ALL),
        (None, (ASKED,), True, PARTLY),  # it has tools of its own
        *((None, (each,), True, ALL) for each in (REPORTED, RECORDED, LISTED)),
        (None, (ASKED, REPORTED), True, ALL),
        (known(PARTLY), (), False, PARTLY),
        (known(PARTLY), (ASKED,), False, PARTLY),
        (known(PARTLY), (RECORDED,), False, ALL),
        (known(UNSEEN), (), False, UNSEEN),
        (known(UNSEEN), (ASKED,), False, ALL),
        (known(UNSEEN), (ASKED,), True, PARTLY),
        (known(UNSEEN), (LISTED,), True, ALL),
        (known(ALL), (), True, ALL),
        (known(ALL, "earlier run"), (), True, ALL),
        (known(DECLARED, "author"), (REPORTED,), False, DECLARED),
        (known(ALL, "author"), (), True, ALL),
    ],
)
def test_the_visibility_of_an_agent(
    before: KnownVisibility | None, evidence: Any, passthrough: bool, visibility: ToolVisibility
) -> None:
    assert visibility_of(before, evidence, passthrough=passthrough) is visibility
    turns = [Turn(user="Hi", evidence=each) for each in evidence]
    if before is None or before.source is not VisibilitySource.EARLIER_RUN:
        assert conversation_visibility(before, turns, passthrough=passthrough) is visibility


def test_a_conversation_does_not_rest_on_an_earlier_run() -> None:
    assert conversation_visibility(known(ALL, "earlier run"), []) is UNSEEN
    assert conversation_visibility(known(UNSEEN, "earlier run"), [Turn(user="Hi", evidence=ASKED)]) is ALL


def test_evidence_of_turns() -> None:
    turns = [Turn(user="Hi", evidence=each) for each in (ASKED, None, ASKED, LISTED)]
    assert evidence_in(turns) == {ASKED, LISTED}
    assert evidence_in([]) == frozenset()


@pytest.mark.parametrize(
    ("visibility", "before", "recorded", "unseen"),
    [
        (UNSEEN, None, False, NO_CALL_SEEN),
        (UNSEEN, None, True, NOT_OF_THE_LOG),
        (None, None, False, NO_CALL_SEEN),
        (PARTLY, None, False, OWN_TOOLS),
        (PARTLY, None, True, OWN_TOOLS),
        (PARTLY, known(PARTLY, why="because"), False, "because"),
        (UNSEEN, known(UNSEEN, why="because"), True, "because"),
        (DECLARED, known(DECLARED, "author"), False, DECLARED_UNSEEN),
        (DECLARED, known(DECLARED, "author", "because"), False, DECLARED_UNSEEN),
        (UNSEEN, known(UNSEEN), False, NO_CALL_SEEN),
    ],
)
def test_why_a_check_is_open(
    visibility: ToolVisibility | None, before: KnownVisibility | None, recorded: bool, unseen: str
) -> None:
    found = explain_open(visibility, before, recorded=recorded)
    assert found.unseen == unseen
    assert ("--no-calls-in" in found.unplaced) is recorded
    assert ("calls: all" in found.unplaced) is not recorded


@pytest.mark.parametrize(
    ("unplaced", "text"),
    [
        ([], ""),
        ([()], ""),
        ([("a",)], "a"),
        ([("a", "b")], "a (and 1 more)"),
        ([(), ("b",), ("c", "d")], "b"),
        ([tuple(map(str, range(1501)))], "0 (and 1,500 more)"),
    ],
)
def test_what_was_not_read(unplaced: list[tuple[str, ...]], text: str) -> None:
    assert unplaced_text([Turn(user="Hi", unplaced=each) for each in unplaced]) == text


@pytest.mark.parametrize("passed", [True, False])
def test_a_check_that_rests_on_the_absence_of_a_call_is_open(passed: bool) -> None:
    check = Check(name="no_error", passed=passed, detail="so it is")
    marked = mark_absence_based(check)
    assert (marked.passed, marked.if_all_seen, marked.detail) == (None, passed, "so it is")


def test_an_undecided_check_stays() -> None:
    check = Check(name="no_error", passed=None)
    assert mark_absence_based(check) is check


CHECK = Check(name="tool_calls", passed=None, if_all_seen=False, detail="no call", parts=("cancel",))
SURE = Check(name="output.contains", passed=True, detail="there")
FAILURE = ScoreFailure(metric="m", message="?", unless_all_seen=True)
OTHER_FAILURE = ScoreFailure(metric="m", message="?")
FINDING = Finding(
    detector="d", metric="m", label="missing tool call", severity=Severity.HIGH, if_all_seen=True
)
SURE_FINDING = FINDING.model_copy(update={"if_all_seen": False})
SCORE, REVIEW = Score(metric="m", value=1.0), UserReview(label="helped")
ITEMS = (CHECK, SURE, FAILURE, OTHER_FAILURE, FINDING, SURE_FINDING, SCORE, REVIEW)
WHY = OpenReasons("nothing was seen", "set calls")


def settled(visibility: ToolVisibility | None, *unplaced: str, items: Any = ITEMS) -> Any:
    return settle_absence_checks(items, visibility, [Turn(user="Hi", unplaced=unplaced)], WHY)


def test_all_calls_are_visible() -> None:
    check, *more = settled(ALL)
    assert (check.passed, check.if_all_seen, check.detail, check.parts) == (
        False,
        None,
        "no call",
        ("cancel",),
    )
    assert more == [SURE, OTHER_FAILURE, SURE_FINDING, SURE_FINDING, SCORE, REVIEW]


@pytest.mark.parametrize(
    ("visibility", "unplaced", "words"),
    [
        (UNSEEN, (), {"nothing was seen"}),
        (PARTLY, (), {"nothing was seen"}),
        (None, (), {"nothing was seen"}),
        (ALL, ("an entry", "more"), {"an entry (and 1 more)", "set calls"}),
        (UNSEEN, ("an entry",), {"an entry", "set calls"}),
    ],
)
def test_not_all_calls_are_visible(
    visibility: ToolVisibility | None, unplaced: tuple[str, ...], words: set[str]
) -> None:
    check, sure, failure, *more = settled(visibility, *unplaced)
    assert (check.passed, check.if_all_seen, check.parts) == (None, None, ())
    assert all(word in check.detail for word in words)
    assert ("nothing was seen" in check.detail) is not bool(unplaced)
    assert sure == SURE
    assert failure == FAILURE.model_copy(update={"unless_all_seen": False})
    assert more == [OTHER_FAILURE, SURE_FINDING, SCORE, REVIEW]


def test_what_does_not_rest_on_it_stays() -> None:
    items = (SURE, OTHER_FAILURE, SURE_FINDING, SCORE, REVIEW)
    assert settled(UNSEEN, "an entry", items=items) is items
    assert settled(ALL, items=()) == ()
