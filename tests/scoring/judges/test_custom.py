"""Custom metrics: classes and rubric files, loaded and run as an author writes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agenteval.core.errors import AuthorError, InfrastructureError, Place, UnreadableReplyError
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity
from agenteval.core.trajectory import (
    Step,
    Stop,
    StopReason,
    ToolCall,
    ToolResult,
    Trajectory,
    Turn,
)
from agenteval.files.prompts import Rubric
from agenteval.scoring.judges.custom import (
    CURRENT_EVALUATION,
    ConversationMetric,
    CustomMetric,
    QualitativeMetric,
    QualResult,
    QuantitativeMetric,
    QuantResult,
    ScoreInput,
    build_custom_metric_spec,
    load_custom_metric,
    load_custom_metrics,
)
from agenteval.scoring.judges.custom_scorer import CustomScorer
from agenteval.scoring.metrics import build_metric_table
from tests.support.fake_models import USAGE, FakeModel
from tests.support.trajectories import seen

SCENARIO = Scenario(id="salon", goal="A haircut", profile="Curt", knowledge=("Open till six",))
CALL = ToolCall(name="book", args={"time": "9"}, result=ToolResult(value={"id": "BK-1"}))
TURNS = (
    Turn(user="Nine?", steps=(Step(tool_calls=(CALL,)), Step(text="Booked."))),
    Turn(user="Thanks", steps=(Step(text="Bye."),)),
)
PREFIX = seen(turns=TURNS)
WHOLE = seen(turns=TURNS, stop=Stop(reason=StopReason.USER_DONE))


class Grade(BaseModel):
    value: float
    reason: str


class Tone(QuantitativeMetric):
    name = "tone"

    async def score(self, input: ScoreInput) -> QuantResult:
        prompt = f"How kind is: {input.agent_message}"
        grade = await self.llm.generate_object(system="You grade tone.", prompt=prompt, schema=Grade)
        return QuantResult(value=grade.value, reason=grade.reason)


class Fixed(QuantitativeMetric):
    name = "fixed"

    def __init__(self, result: Any) -> None:
        self.result = result

    def score(self, input: ScoreInput) -> QuantResult:
        if isinstance(self.result, Exception):
            raise self.result
        found: QuantResult = self.result
        return found


class Brand(QualitativeMetric):
    name = "brand"
    labels = {"on brand": "ok", "off brand": "medium"}

    def __init__(self, label: Any = "on brand") -> None:
        self.label = label

    def evaluate(self, input: ScoreInput) -> QualResult:
        return QualResult(self.label, "why", "seen")


def judged(
    metric: CustomMetric, model: ChatModel | None = None, *, trajectory: Trajectory = PREFIX, **more: Any
) -> list[Any]:
    return list(anyio.run(CustomScorer(metric, model, **more), SCENARIO, trajectory))


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


def test_a_metric_that_asks_the_judges_model() -> None:
    model = FakeModel({"value": 4.5, "reason": "warm"})
    (found,) = judged(Tone(), model)
    assert (found.metric, found.value, found.reason) == ("tone", 4.5, "warm")
    assert (found.by, found.scripted, found.usage) == ("fake/model", True, USAGE)
    (request,) = model.requests
    assert (request.role, request.system, request.prompt) == ("judge", "You grade tone.", "How kind is: Bye.")
    assert (request.subject.metric, request.subject.turn, request.subject.scenario) == ("tone", 1, "salon")


def test_it_may_ask_for_text_and_ask_several_times() -> None:
    class Words(QuantitativeMetric):
        name = "words"
        scale = (0, 100)

        async def score(self, input: ScoreInput) -> QuantResult:
            first = await self.llm.generate_text(prompt="one")
            second = await self.llm.generate_text(prompt="two")
            return QuantResult(len(first) + len(second), "counted")

    (found,) = judged(Words(), FakeModel({"text": "abc"}))
    assert (found.value, found.usage) == (6, USAGE + USAGE)


def test_conversations_judged_at_the_same_time_do_not_mix_their_costs() -> None:
    class Slow(FakeModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            return await super().complete(request)

    model = Slow(lambda request: {"value": 1 + request.subject.turn, "reason": "r"})
    scorer = CustomScorer(Tone(), model)
    found: dict[int, Any] = {}

    async def main() -> None:
        async def judge(turns: int) -> None:
            found[turns] = (await scorer(SCENARIO, seen(turns=TURNS[:turns])))[0]

        async with anyio.create_task_group() as group:
            for turns in (1, 2):
                group.start_soon(judge, turns)

    anyio.run(main)
    assert {turns: (score.value, score.usage) for turns, score in found.items()} == {
        1: (1, USAGE),
        2: (2, USAGE),
    }


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (QuantResult(7), "returned 7; expected a number between 1 and 5"),
        (QuantResult(True), "returned True; expected a number"),
        (QuantResult(float("nan")), "returned nan; expected a number"),
        (QuantResult("4"), "returned '4'; expected a number"),  # type: ignore[arg-type]
        (QuantResult(None, "too short"), "not enough to judge: too short"),
        (4, "returned int; expected QuantResult"),
        (None, "returned NoneType; expected QuantResult"),
        (InfrastructureError("no quota"), "no quota"),
    ],
)
def test_what_is_no_score_is_a_failure_to_score(result: Any, told: str) -> None:
    (failure,) = judged(Fixed(result))
    assert failure.kind == "failure"
    assert told in failure.message


def test_an_exception_is_told_with_its_place() -> None:
    (failure,) = judged(Fixed(ZeroDivisionError("oh")))
    assert failure.message.startswith("ZeroDivisionError: oh (test_custom.py:")
    assert failure.message.endswith(", in score)")


def test_an_unreadable_reply_keeps_what_was_said() -> None:
    (failure,) = judged(Tone(), FakeModel(UnreadableReplyError("no JSON", raw="Sorry")))
    assert (failure.message, failure.raw) == ("no JSON", "Sorry")


def test_what_a_broken_judgement_has_cost_is_counted() -> None:
    class Breaks(Tone):
        async def score(self, input: ScoreInput) -> QuantResult:
            await super().score(input)
            raise ValueError("later")

    (failure,) = judged(Breaks(), FakeModel({"value": 4, "reason": "r"}))
    assert failure.usage == USAGE


def test_a_metric_that_hangs_is_ended_but_not_while_it_waits_for_its_model() -> None:
    clocks: list[float] = []

    class Patient(FakeModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            clocks.append(CURRENT_EVALUATION.get().scope.deadline)
            return await super().complete(request)

    class Hangs(Tone):
        timeout_s = 0.5

        async def score(self, input: ScoreInput) -> QuantResult:
            await super().score(input)
            await anyio.sleep_forever()
            raise AssertionError("unreachable")

    (failure,) = judged(Hangs(), Patient({"value": 4, "reason": "r"}))
    assert clocks == [float("inf")]  # the clock stands still
    assert (failure.message, failure.usage) == ("no result after 0.5 s", USAGE)


def test_a_mistake_of_the_author_is_not_caught() -> None:
    with pytest.raises(AuthorError, match="uses a model, but none is configured"):
        judged(Tone())
    assert judged(Fixed(QuantResult(3)))[0].value == 3  # one that asks nothing needs none


# ── labels ───────────────────────────────────────────────────────────────────────────────────────


def test_labels_bring_their_severities() -> None:
    (found,) = judged(Brand())
    assert (found.label, found.ok, found.usage) == ("on brand", True, None)
    found, finding = judged(Brand("off brand"))
    assert (found.ok, finding.severity, finding.turn) == (False, Severity.MEDIUM, 1)
    assert (finding.metric, finding.label, finding.explanation) == ("brand", "off brand", "why")
    _, finding = judged(Brand("off brand"), severities={"off brand": Severity.CRITICAL})
    assert finding.severity is Severity.CRITICAL
    (failure,) = judged(Brand("odd"))
    assert "returned the label 'odd'; expected on brand, off brand" in failure.message


def test_without_labels_only_no_failure_is_ok() -> None:
    class Open(Brand):
        labels = None

    assert len(judged(Open("no failure"))) == 1
    _, finding = judged(Open("whatever"))
    assert finding.severity is Severity.MEDIUM


# ── conversations ────────────────────────────────────────────────────────────────────────────────


def test_a_metric_of_the_whole_conversation() -> None:
    class Calls(ConversationMetric):
        name = "calls"
        scale = (0, 10)

        def score(self, input: ScoreInput) -> QuantResult:
            return QuantResult(len(input.tool_calls), f"{len(input.history) + 1} turns")

    (found,) = judged(Calls(), trajectory=WHOLE)
    assert (found.value, found.reason) == (1, "2 turns")
    lost = WHOLE.model_copy(update={"stop": Stop(reason=StopReason.INFRASTRUCTURE)})
    assert judged(Calls(), trajectory=lost) == []


def test_it_may_give_labels() -> None:
    class Ending(ConversationMetric):
        name = "ending"
        labels = {"polite": "ok", "abrupt": "low"}

        async def evaluate(self, input: ScoreInput) -> QualResult:
            return QualResult("abrupt", "r")

    found, finding = judged(Ending(), trajectory=WHOLE)
    assert (found.label, finding.severity, finding.turn) == ("abrupt", Severity.LOW, None)


def test_the_input_is_that_of_the_seed() -> None:
    inputs: list[ScoreInput] = []

    class Looks(QuantitativeMetric):
        name = "looks"

        def score(self, input: ScoreInput) -> QuantResult:
            inputs.append(input)
            return QuantResult(1)

    judged(Looks(), trajectory=seen(turns=TURNS[:1]))
    judged(Looks())
    first, second = inputs
    assert (first.goal, first.profile, first.knowledge) == ("A haircut", "Curt", ("Open till six",))
    assert (first.user_message, first.agent_message, first.turn_index) == ("Nine?", "Booked.", 0)
    (call,) = first.tool_calls
    assert (call.name, call.args, call.result) == ("book", {"time": "9"}, {"id": "BK-1"})
    assert (second.tool_calls, second.turn_index, second.trajectory) == ((), 1, PREFIX)
    (before,) = second.history
    assert (before.user_message, before.agent_message, before.tool_calls) == (
        "Nine?",
        "Booked.",
        first.tool_calls,
    )


# ── loading ──────────────────────────────────────────────────────────────────────────────────────

SOURCE = """
from agenteval import ConversationMetric, QualitativeMetric, QuantitativeMetric, QuantResult
from tests.support.trajectories import seen

class Tone(QuantitativeMetric):
    name = "tone"
    def score(self, input):
        return QuantResult(4)

class NoName(QuantitativeMetric):
    def score(self, input):
        return QuantResult(4)

class NoMethod(ConversationMetric):
    name = "nothing"

class Inherited(QuantitativeMetric):
    name = "inherited"

class BadScale(Tone):
    scale = (5, 1)

class BadLabels(QualitativeMetric):
    name = "labels"
    labels = {"on": "ok", "off": "severe"}
    def evaluate(self, input): ...

class NeedsArgument(Tone):
    def __init__(self, key): ...

class Taken(Tone):
    name = "helpfulness"

tone = Tone()
other = object()
"""
RUBRIC = "---\nmetric: brand\nlabels: {on brand: ok, off brand: medium}\n---\nOn brand?\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "brand.md").write_text(RUBRIC, encoding="utf-8")
    return tmp_path


def test_what_custom_metrics_may_name(folder: Path) -> None:
    loaded = load_custom_metrics(["mine.py:Tone", "brand.md", "mine.py:tone"], str(folder))
    assert isinstance(loaded[1], Rubric)
    specs = [build_custom_metric_spec(each) for each in loaded]
    assert [(spec.name, spec.kind, spec.scope) for spec in specs[:2]] == [
        ("tone", "mean", "turn"),
        ("brand", "rate", "turn"),
    ]
    assert specs[1].ok == ("on brand",)
    assert set(build_metric_table(specs[:2])) > {"tone", "brand", "helpfulness"}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("NoName", "has the name ''"),
        ("NoMethod", "define either `score` or `evaluate`"),
        ("Inherited", "define either `score` or `evaluate`"),
        ("BadScale", "scale = (1, 5)"),
        ("BadLabels", "'severe' "),
        ("NeedsArgument", "callable without arguments"),
        ("other", "is not a metric: object"),
        ("Tome", "did you mean 'Tone'?"),
    ],
)
def test_what_they_may_not(folder: Path, name: str, told: str) -> None:
    place = Place("agenteval.yaml", 9)
    with pytest.raises(AuthorError) as caught:
        load_custom_metric(f"mine.py:{name}", str(folder), place=place)
    assert told in str(caught.value)
    assert caught.value.problems[0].place == place


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    entries = ["mine.py:NoName", "missing.md", "gone.py:X"]
    with pytest.raises(AuthorError) as caught:
        load_custom_metrics(entries, str(folder), place_of=lambda position: Place("c.yaml", position + 1))
    assert [problem.place.line for problem in caught.value.problems if problem.place] == [1, 2, 3]


def test_a_class_cannot_take_a_built_in_name(folder: Path) -> None:
    metric = load_custom_metric("mine.py:Taken", str(folder))
    with pytest.raises(AuthorError, match="'helpfulness', which is a built-in name"):
        build_metric_table([build_custom_metric_spec(metric)])
