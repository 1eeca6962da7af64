"""The review of a simulated user: which conversations are reviewed, and where a fault of the user is."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agenteval.core.decision import SampleDecision, Violation
from agenteval.core.errors import InfrastructureError
from agenteval.core.protocols import Subject
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.score import Score, ScoreFailure, UserReview, Verdict
from agenteval.core.trajectory import Stop, StopReason, Trajectory, Turn
from agenteval.files.prompts import load_prompt
from agenteval.scoring.judges.corroboration import is_drawn
from agenteval.scoring.judges.user_review import EndedConversation, UserReviewer
from tests.support.detector_samples import turn
from tests.support.panels import ONE_CALL, AnswerPanel
from tests.support.trajectories import seen

PASSED, FAILED, INCONCLUSIVE = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE
SCENARIO = Scenario.model_validate(
    {
        "id": "s",
        "profile": "Ann is in a hurry.",
        "goal": "Book a table for two.",
        "knowledge": ["The phone number is 555-0100."],
        "beliefs": [{"belief": "The place opens at noon."}],
    }
)
UNKNOWN = Scenario(id="s")
DONE = Stop(reason=StopReason.USER_DONE)
TURNS = (
    turn("I would like a table for two.", "For which day should that be?"),
    turn("I have no phone number at all.", "Then I cannot book it today."),
    turn("Never mind, I give up on it.", "Have a pleasant evening."),
)
TALK = seen(TURNS, DONE)


def drawn_epoch(is_chosen: bool) -> int:
    """Return the first epoch whose clean conversation is drawn, or is not."""
    return next(
        epoch
        for epoch in range(100)
        if is_drawn(0, "user_review", str(SampleKey(scenario="s", agent="a", epoch=epoch))) is is_chosen
    )


def reviewer(
    panel: AnswerPanel | None = None,
    *,
    verdict: Verdict = FAILED,
    failed: bool = True,
    talk: Trajectory = TALK,
    violations: tuple[Violation, ...] = (),
    scores: tuple[Score, ...] = (),
    **more: Any,
) -> UserReviewer:
    def decide(sample: Sample, _events: Any) -> EndedConversation:
        report = SampleReport(sample.key, (), talk.stop, (), scores, (), (), talk)
        return EndedConversation(report, SampleDecision(verdict, None, violations), failed)

    return UserReviewer(panel or AnswerPanel(), decide, load_prompt("user_review"), **more)


def sample(scenario: Scenario = SCENARIO, epoch: int = 0) -> Sample:
    return Sample(key=SampleKey(scenario="s", agent="a", epoch=epoch), scenario=scenario)


# ── which conversations ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("verdict", "failed", "if_drawn", "if_not"),
    [
        (FAILED, True, True, True),
        (INCONCLUSIVE, True, True, True),
        (PASSED, True, True, True),  # a failure where failures are tolerated
        (PASSED, False, True, False),
        (INCONCLUSIVE, False, False, False),
        (FAILED, False, False, False),
    ],
)
def test_conversations_that_are_reviewed(
    verdict: Verdict, failed: bool, if_drawn: bool, if_not: bool
) -> None:
    for is_chosen, expected in ((True, if_drawn), (False, if_not)):
        found = reviewer(verdict=verdict, failed=failed)(sample(epoch=drawn_epoch(is_chosen)), [])
        assert (found is not None) is expected


def test_about_a_tenth_of_the_clean_ones_is_drawn_by_the_seed() -> None:
    def chosen(seed: int) -> list[int]:
        review = reviewer(verdict=PASSED, failed=False, seed=seed)
        return [epoch for epoch in range(200) if review(sample(epoch=epoch), [])]

    assert 8 <= len(chosen(1)) <= 34
    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)


SCRIPTED = tuple(each.model_copy(update={"script": at}) for at, each in enumerate(TURNS))


@pytest.mark.parametrize(
    ("scenario", "turns", "is_reviewed"),
    [
        (SCENARIO, TURNS, True),
        (SCENARIO, SCRIPTED, False),  # no word of it is the user's own
        (SCENARIO, (*SCRIPTED[:2], TURNS[2]), True),
        (SCENARIO, (), False),
        (SCENARIO.model_copy(update={"turns": ()}), TURNS, False),
        (UNKNOWN, TURNS, True),
    ],
)
def test_only_users_that_are_simulated_are_reviewed(
    scenario: Scenario, turns: tuple[Turn, ...], is_reviewed: bool
) -> None:
    found = reviewer(talk=seen(turns, DONE))(sample(scenario), [])
    assert (found is not None) is is_reviewed


def test_a_model_that_has_no_answer_is_not_asked() -> None:
    asked: list[Subject] = []

    def is_asked(subject: Subject) -> bool:
        asked.append(subject)
        return False

    assert reviewer(is_asked=is_asked)(sample(epoch=3), []) is None
    (subject,) = asked
    assert (subject.scenario, subject.metric, subject.epoch) == ("s", "user_review", 3)
    assert subject.text == "Have a pleasant evening."


# ── what is answered ─────────────────────────────────────────────────────────────────────────────


def reviewed(
    *answers: Any, scenario: Scenario = SCENARIO, talk: Trajectory = TALK, scripted: bool = False, **more: Any
) -> tuple[Any, AnswerPanel]:
    panel = AnswerPanel(*answers, scripted=scripted)
    review = reviewer(panel, talk=talk, **more)(sample(scenario), [])
    assert review is not None
    (item,) = anyio.run(review, scenario, talk)
    return item, panel


LIED = "I have no phone number at all"
NUMBER = "The phone number is 555-0100"


def hindered(evidence: str = LIED, source: str = NUMBER, **more: Any) -> dict[str, Any]:
    return {"label": "hindered", "evidence": evidence, "source": source, "explains": True, **more}


def helped(evidence: str = LIED, **more: Any) -> dict[str, Any]:
    return {"label": "helped", "evidence": evidence, "source": "", "explains": True, **more}


@pytest.mark.parametrize(
    ("answer", "explains", "at"),
    [
        (hindered(), True, 1),
        (hindered(explains=False), False, 1),
        (helped(), True, 1),
        ({"label": "as it should"}, False, None),
        ({"label": "as it should", "evidence": LIED}, False, None),
        ({"label": "not clear"}, False, None),
        ({"label": "the scenario did not say", "evidence": LIED}, False, None),
        (
            {"label": "HINDERED", **{key: hindered()[key] for key in ("evidence", "source", "explains")}},
            True,
            1,
        ),
        (hindered("Never mind, I give up on it"), True, 2),
        (hindered("For which day should that be"), True, 1),  # the turn that should have answered it
        (hindered("Have a pleasant evening"), True, 3),  # it ended instead
    ],
)
def test_a_review(answer: dict[str, Any], explains: bool, at: int | None) -> None:
    item, panel = reviewed(answer)
    assert isinstance(item, UserReview)
    assert (item.explains, item.turn, item.failed, item.recorded) == (explains, at, True, False)
    assert (item.by, item.scripted, item.usage, item.reason) == ("lab/model", False, ONE_CALL, "because")
    assert item.label == answer["label"].lower()
    assert (item.evidence, item.source) == (answer.get("evidence", ""), answer.get("source", ""))
    assert len(panel.requests) == 1


def test_a_conversation_that_was_drawn_or_recorded() -> None:
    review = reviewer(AnswerPanel(hindered()), verdict=PASSED, failed=False)
    chosen = review(sample(epoch=drawn_epoch(True)), [])
    assert chosen is not None
    (item,) = anyio.run(chosen, SCENARIO, TALK)
    assert isinstance(item, UserReview)
    assert (item.failed, item.decides) == (False, False)
    recorded, _ = reviewed(hindered(), talk=seen(TURNS, Stop(reason=StopReason.RECORDED)))
    assert recorded.recorded is True


def test_a_written_message_is_no_fault_of_the_user() -> None:
    talk = seen((TURNS[1].model_copy(update={"script": 0}), TURNS[0], TURNS[1]), DONE)
    item, _ = reviewed(hindered(), talk=talk)
    assert item.turn == 2


def test_a_model_that_fails() -> None:
    failure, _ = reviewed(InfrastructureError("down"))
    assert isinstance(failure, ScoreFailure)
    assert failure.metric == "user_review"


AGENT = "Then I cannot book it today"


@pytest.mark.parametrize(
    ("answer", "scenario", "usable", "if_scripted"),
    [
        (hindered(), SCENARIO, True, True),
        (hindered("never said by anybody"), SCENARIO, False, False),
        (hindered(""), SCENARIO, False, False),
        (hindered(source="never said by anybody"), SCENARIO, False, False),
        (hindered(source=""), SCENARIO, False, True),
        (hindered(source="Ann is in a hurry"), SCENARIO, True, True),
        (hindered(source="Book a table for two"), SCENARIO, True, True),
        (hindered(source="The place opens at noon"), SCENARIO, True, True),
        (hindered(source=AGENT), SCENARIO, True, True),
        (hindered(source="I would like a table for two"), SCENARIO, False, False),  # its own words
        (hindered(evidence=AGENT), SCENARIO, True, True),
        (helped(), SCENARIO, True, True),
        (helped(AGENT), SCENARIO, False, False),
        (helped(""), SCENARIO, False, False),
        # Of an unknown user, nobody knows what it was to withhold.
        (helped(), UNKNOWN, False, False),
        (helped(), Scenario(id="s", goal="Book it."), True, True),
        (helped(), Scenario(id="s", profile="Ann"), True, True),
        (helped(), Scenario(id="s", knowledge=("It rains.",)), True, True),
        (helped(), Scenario.model_validate({"id": "s", "beliefs": ["It rains."]}), True, True),
        (hindered(source="I would like a table for two"), UNKNOWN, True, True),
        (hindered(source=LIED), UNKNOWN, False, False),  # the words at fault
        (hindered(source=AGENT), UNKNOWN, True, True),
        # Other labels quote nothing.
        ({"label": "as it should", "evidence": "never said by anybody"}, SCENARIO, True, True),
        ({"label": "neither"}, SCENARIO, False, False),
        ({"label": "hindered", "evidence": LIED, "source": NUMBER}, SCENARIO, False, True),  # explains it?
    ],
)
def test_answers_that_can_be_used(
    answer: dict[str, Any], scenario: Scenario, usable: bool, if_scripted: bool
) -> None:
    for scripted, expected in ((False, usable), (True, if_scripted)):
        item, _ = reviewed(answer, answer, scenario=scenario, scripted=scripted)
        assert isinstance(item, UserReview) is expected


def test_a_scripted_answer_may_leave_out_whether_it_explains_the_end() -> None:
    item, _ = reviewed({"label": "hindered", "evidence": LIED}, scripted=True)
    assert (item.explains, item.scripted) == (True, True)


@pytest.mark.parametrize("label", ["helped", "hindered"])
def test_only_words_of_its_own_are_a_fault(label: str) -> None:
    written = seen((TURNS[0], TURNS[1].model_copy(update={"script": 0})), DONE)
    answer = {**hindered(), "label": label}
    item, _ = reviewed(answer, talk=written)
    assert isinstance(item, ScoreFailure)
    item, _ = reviewed(answer)
    assert isinstance(item, UserReview)


# ── what is asked ────────────────────────────────────────────────────────────────────────────────


def test_what_is_shown_of_the_user_and_the_outcome() -> None:
    violations = (
        Violation("output.contains", "no number named", "", turn=1),
        Violation("limits.steps", "not decided", "", Verdict.INCONCLUSIVE),
        Violation("criteria", "was not kind", ""),
    )
    scores = (Score(metric="goal_completion", value=0, label="missed", reason="no table"),)
    _, panel = reviewed({"label": "as it should"}, violations=violations, scores=scores, now="2026-05-10")
    (request,) = panel.requests
    shown = request.system + request.prompt
    for text in ("Ann is in a hurry.", "Book a table for two.", "555-0100", "opens at noon", "2026-05-10"):
        assert text in shown
    for text in ("no number named", "turn 2", "was not kind", "no table", "I have no phone number", AGENT):
        assert text in shown
    assert "not decided" not in shown
    assert (request.role, request.states_form) == ("judge", True)


def test_an_unknown_user_and_a_goal_that_was_reached() -> None:
    scores = (Score(metric="goal_completion", value=1, label="reached", reason="table booked"),)
    _, known = reviewed({"label": "as it should"}, scores=scores, scenario=Scenario(id="s", goal="Book it."))
    _, unknown = reviewed({"label": "as it should"}, scores=scores, scenario=UNKNOWN)
    counts = [
        (panel.requests[0].system + panel.requests[0].prompt).count("Not known.")
        for panel in (known, unknown)
    ]
    assert counts[1] == counts[0] + 4  # profile, goal, knowledge and beliefs
    assert "table booked" not in known.requests[0].prompt
