"""Custom metrics that are classes: what is a score, what is no score, and what a metric is given."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import anyio
import pytest

from agenteval.core.errors import (
    AuthorError,
    InfrastructureError,
    Problem,
    RequestSkippedError,
    UnreadableReplyError,
)
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, Score, ScoreFailure, Severity
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Trajectory, Turn
from agenteval.scoring.judges.custom import (
    CURRENT_EVALUATION,
    ConversationMetric,
    CustomMetric,
    QualitativeMetric,
    QualResult,
    QuantitativeMetric,
    QuantResult,
    ScoreInput,
)
from agenteval.scoring.judges.custom_scorer import CustomScorer, build_score_input
from tests.support.fake_models import USAGE, FakeModel
from tests.support.trajectories import seen

SCENARIO = Scenario(id="salon", goal="A haircut", profile="Curt", knowledge=("Open till six",))
BOOK = ToolCall(name="book", args={"time": "9"}, result=ToolResult(value={"id": 1}))
PAY = ToolCall(name="pay", args={})
TURNS = (
    Turn(user="Nine?", steps=(Step(tool_calls=(BOOK,)), Step(text="Booked."))),
    Turn(user="Thanks", steps=(Step(tool_calls=(PAY,)), Step(text="Bye."))),
)
PREFIX = seen(turns=TURNS)
WHOLE = seen(turns=TURNS, stop=Stop(reason=StopReason.USER_DONE))


class Number(QuantitativeMetric):
    name = "number"

    def __init__(self, result: Any = None) -> None:
        self.result = result

    def score(self, input: ScoreInput) -> QuantResult:
        if isinstance(self.result, BaseException):
            raise self.result
        found: QuantResult = self.result
        return found


class Label(QualitativeMetric):
    name = "brand"
    labels: Mapping[str, str] | None = {"on brand": "ok", "off brand": "low"}

    def __init__(self, label: Any = "on brand") -> None:
        self.result: Any = QualResult(label, "why", "seen")

    def evaluate(self, input: ScoreInput) -> QualResult:
        found: QualResult = self.result
        return found


class AnyLabel(Label):
    labels = None


class Asks(QuantitativeMetric):
    name = "asks"

    async def score(self, input: ScoreInput) -> QuantResult:
        await self.llm.generate_text(prompt="p")
        return QuantResult(4)


class Whole(ConversationMetric):
    name = "whole"
    labels = {"fine": "ok", "bad": "high"}

    def evaluate(self, input: ScoreInput) -> QualResult:
        return QualResult("bad", "why")


def scored(
    metric: CustomMetric, model: Any = None, trajectory: Trajectory = PREFIX, **more: Any
) -> list[Score | ScoreFailure | Finding]:
    return list(anyio.run(CustomScorer(metric, model, **more), SCENARIO, trajectory))


def failure(metric: CustomMetric, model: Any = None) -> ScoreFailure:
    (found,) = scored(metric, model)
    assert isinstance(found, ScoreFailure)
    assert found.metric == metric.name
    return found


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("value", "expected"), [(1, 1.0), (5, 5.0), (3.5, 3.5), (Fraction(7, 2), 3.5), (1.0, 1.0)]
)
def test_a_number_on_the_scale_is_a_score(value: Any, expected: float) -> None:
    assert scored(Number(QuantResult(value, "why", "seen"))) == [
        Score(metric="number", value=expected, reason="why", evidence="seen")
    ]


@pytest.mark.parametrize(
    ("result", "facts"),
    [
        (QuantResult(0.99), ["0.99", "between 1 and 5"]),
        (QuantResult(5.01), ["5.01", "between 1 and 5"]),
        (QuantResult(float("nan")), ["nan"]),
        (QuantResult(True), ["True"]),
        (QuantResult("4"), ["'4'"]),  # type: ignore[arg-type]
        (QuantResult(Decimal(4)), ["Decimal"]),  # type: ignore[arg-type]
        (QuantResult(None, "too short"), ["not enough", "too short"]),
        (4, ["int", "QuantResult"]),
        (None, ["NoneType", "QuantResult"]),
        (QualResult("x"), ["QualResult", "QuantResult"]),
    ],
)
def test_anything_else_is_a_failure_to_score(result: Any, facts: list[str]) -> None:
    found = failure(Number(result))
    assert [fact for fact in facts if fact not in found.message] == []
    assert (found.raw, found.refused, found.usage) == ("", False, None)


# ── labels ───────────────────────────────────────────────────────────────────────────────────────


def test_a_good_label_is_a_score_alone() -> None:
    assert scored(Label()) == [
        Score(metric="brand", label="on brand", ok=True, reason="why", evidence="seen")
    ]


@pytest.mark.parametrize(
    ("severities", "severity"), [({}, Severity.LOW), ({"off brand": Severity.CRITICAL}, Severity.CRITICAL)]
)
def test_a_bad_label_is_a_finding_too_with_the_authors_severity_first(
    severities: dict[str, Severity], severity: Severity
) -> None:
    score, finding = scored(Label("off brand"), severities=severities)
    assert isinstance(score, Score)
    assert isinstance(finding, Finding)
    assert (score.label, score.ok, score.value) == ("off brand", False, None)
    assert (finding.metric, finding.label, finding.severity, finding.turn) == (
        "brand",
        "off brand",
        severity,
        1,
    )
    assert (finding.explanation, finding.evidence) == ("why", "seen")


@pytest.mark.parametrize(
    ("metric", "facts"),
    [
        (Label("odd"), ["'odd'", "on brand, off brand"]),
        (Label(3), ["3", "on brand, off brand"]),
        (AnyLabel(3), ["3", "a string"]),
        (AnyLabel(None), ["None", "a string"]),
    ],
)
def test_an_unknown_label_is_a_failure_to_score(metric: Label, facts: list[str]) -> None:
    found = failure(metric)
    assert [fact for fact in facts if fact not in found.message] == []


def test_a_number_is_no_label() -> None:
    metric = Label()
    metric.result = QuantResult(4)
    assert all(fact in failure(metric).message for fact in ("QuantResult", "QualResult"))


def test_without_labels_any_string_is_one() -> None:
    assert len(scored(AnyLabel("no failure"))) == 1
    score, finding = scored(AnyLabel("whatever"))
    assert isinstance(score, Score)
    assert (score.label, score.ok) == ("whatever", False)
    assert isinstance(finding, Finding)


# ── errors ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "facts", "raw", "refused"),
    [
        (ValueError("oh"), ["ValueError", "oh"], "", False),
        (InfrastructureError("no quota"), ["no quota"], "", False),
        (RequestSkippedError("the budget is spent"), ["the budget is spent"], "", True),
        (UnreadableReplyError("no JSON", raw="Sorry"), ["no JSON"], "Sorry", False),
        (SystemExit(3), ["3"], "", False),
    ],
)
def test_an_error_is_a_failure_to_score(
    error: BaseException, facts: list[str], raw: str, refused: bool
) -> None:
    found = failure(Number(error))
    assert [fact for fact in facts if fact not in found.message] == []
    assert (found.raw, found.refused) == (raw, refused)


def test_a_mistake_of_the_author_is_raised() -> None:
    with pytest.raises(AuthorError, match="no key"):
        scored(Number(AuthorError(Problem("no key", "set it"))))


class Unprintable:
    def __str__(self) -> str:
        raise ValueError("no words")


def test_a_reason_that_cannot_be_written_is_a_failure_to_score() -> None:
    assert "no words" in failure(Number(QuantResult(4, Unprintable()))).message  # type: ignore[arg-type]


def test_what_was_asked_is_counted_and_its_model_named() -> None:
    (score,) = scored(Asks(), FakeModel({"text": "x"}))
    assert isinstance(score, Score)
    assert (score.by, score.scripted, score.usage) == ("fake/model", True, USAGE)
    (plain,) = scored(Number(QuantResult(4)), FakeModel({"text": "x"}))
    assert isinstance(plain, Score)
    assert (plain.by, plain.scripted, plain.usage) == ("", False, None)


def test_what_was_asked_before_an_error_is_counted() -> None:
    class Breaks(Asks):
        async def score(self, input: ScoreInput) -> QuantResult:
            await super().score(input)
            raise ValueError("later")

    assert failure(Breaks(), FakeModel({"text": "x"})).usage == USAGE


def test_a_metric_that_does_not_return_is_a_failure_to_score() -> None:
    class Hangs(Asks):
        timeout_s = 0.01

        async def score(self, input: ScoreInput) -> QuantResult:
            await anyio.sleep_forever()
            raise AssertionError

    assert "0.01 s" in failure(Hangs()).message


def test_the_evaluation_is_known_only_meanwhile() -> None:
    async def run() -> bool:
        await CustomScorer(Number(QuantResult(4)), None)(SCENARIO, PREFIX)
        return CURRENT_EVALUATION.get(None) is None

    assert anyio.run(run)


# ── what is judged ───────────────────────────────────────────────────────────────────────────────


def test_a_metric_has_its_name_and_scope() -> None:
    assert (CustomScorer(Number(), None).metric, CustomScorer(Number(), None).scope) == ("number", "turn")
    assert (CustomScorer(Whole(), None).metric, CustomScorer(Whole(), None).scope) == (
        "whole",
        "conversation",
    )


def test_a_finding_about_the_whole_conversation_has_no_turn() -> None:
    _, finding = scored(Whole(), trajectory=WHOLE)
    assert isinstance(finding, Finding)
    assert (finding.turn, finding.severity) == (None, Severity.HIGH)


def test_a_conversation_that_was_lost_is_not_judged() -> None:
    lost = seen(turns=TURNS, stop=Stop(reason=StopReason.INFRASTRUCTURE))
    assert scored(Whole(), trajectory=lost) == []


@pytest.mark.parametrize(("scope", "calls"), [("turn", ["pay"]), ("conversation", ["book", "pay"])])
def test_the_input_has_the_last_turn_and_what_was_before(scope: str, calls: list[str]) -> None:
    given = build_score_input(SCENARIO, PREFIX, scope)
    assert (given.goal, given.profile, given.knowledge) == ("A haircut", "Curt", ("Open till six",))
    assert (given.user_message, given.agent_message, given.turn_index) == ("Thanks", "Bye.", 1)
    assert [call.name for call in given.tool_calls] == calls
    (before,) = given.history
    assert (before.user_message, before.agent_message) == ("Nine?", "Booked.")
    assert [(call.name, call.args, call.result) for call in before.tool_calls] == [
        ("book", {"time": "9"}, {"id": 1})
    ]
    assert given.trajectory == PREFIX


def test_the_first_turn_has_no_history() -> None:
    given = build_score_input(SCENARIO, seen(turns=TURNS[:1]), "turn")
    assert (given.turn_index, given.history) == (0, ())


def test_the_input_is_a_copy() -> None:
    given = build_score_input(SCENARIO, PREFIX, "turn")
    call = given.trajectory.tool_calls[0]
    assert call.args is not None
    call.args["time"] = "changed"
    assert BOOK.args == {"time": "9"}
