"""What a run spent, by role and model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agenteval.core.config import Config
from agenteval.core.event import Event, IssuesFound
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Score, ScoreFailure, UserReview
from agenteval.core.trajectory import Step, Stop, StopReason, Turn, Usage
from agenteval.verdict.ledger import LedgerLine
from agenteval.verdict.report import Report, build_report
from agenteval.verdict.spending import by_role, ledger_of
from tests.support.report_samples import conversation, started

KEY = SampleKey(scenario="a", agent="bot")


def usage(calls: int, **more: Any) -> Usage:
    return Usage(calls=calls, input_tokens=10 * calls, **more)


def report_of(*events: Event, **config: Any) -> Report:
    models = {"user": "openai/u", "judge": "openai/j", "dedup": "openai/d"}
    settings = Config.model_validate(
        {"agent": {"name": "bot", "target": "a:b", "calls": "all"}, "models": models, **config}
    )
    return build_report([started((Scenario(id="a"),), (KEY,), config=settings), *events])


def turn(agent: int = 0, user: int = 0, **more: Any) -> Turn:
    return Turn(user="hi", steps=(Step(text="hello", usage=usage(agent)),), user_usage=usage(user), **more)


DONE = Stop(reason=StopReason.USER_DONE)


def lines(report: Report) -> list[tuple[str, str, int]]:
    return [(line.role, line.name, line.usage.calls) for line in report.ledger]


def test_the_lines_of_each_role() -> None:
    items = (
        Score(metric="stars", value=3, by="openai/other", usage=usage(1)),
        Score(metric="stars", value=3, usage=usage(2)),
        ScoreFailure(metric="stars", message="", usage=usage(4)),
        Check(name="criteria", passed=True, by="openai/j", usage=usage(8)),
        Check(name="output.contains", passed=True),
        UserReview(label="as it should", by="openai/j", usage=usage(16)),
    )
    turns = (turn(1, 1, user_model="openai/u2"), turn(2, 2))
    stop = Stop(reason=StopReason.USER_DONE, user_usage=usage(4))
    found = report_of(
        *conversation(KEY, turns, {None: items}, stop=stop), IssuesFound(issues=(), usage=usage(3))
    )
    assert lines(found) == [
        ("agent", "bot", 3),
        ("user", "openai/u", 6),
        ("user", "openai/u2", 1),
        ("judge", "openai/j", 30),
        ("judge", "openai/other", 1),
        ("dedup", "openai/d", 3),
    ]


def test_the_unfinished_turn_was_spent_as_well() -> None:
    lost = Stop(reason=StopReason.INFRASTRUCTURE)
    found = report_of(*conversation(KEY, (turn(1, 1),), stop=lost, unfinished=turn(2, 2)))
    assert lines(found) == [("agent", "bot", 3), ("user", "openai/u", 3)]


def test_a_sample_without_an_end() -> None:
    assert lines(report_of(*conversation(KEY, (turn(1, 1),), stop=None))) == [
        ("agent", "bot", 1),
        ("user", "openai/u", 1),
    ]
    assert lines(report_of()) == []


def test_lost_attempts_were_spent_as_well() -> None:
    report = report_of(*conversation(KEY, (turn(1),), stop=DONE))
    (sample,) = report.samples
    twice = replace(sample, lost_attempts=(sample, sample))
    (line,) = ledger_of([twice], Usage(), report.plan)
    assert (line.role, line.usage.calls) == ("agent", 3)


def test_an_agent_is_priced_by_its_name_unless_it_reports_its_cost() -> None:
    prices = {"bot": {"input": 1e6, "output": 1e6}}
    priced = report_of(*conversation(KEY, (turn(1),), stop=DONE), prices=prices)
    assert priced.ledger[0].usage.cost == 10.0
    unpriced = report_of(*conversation(KEY, (turn(1),), stop=DONE))
    assert unpriced.ledger[0].usage.cost is None
    own = Turn(user="hi", steps=(Step(text="x", usage=usage(1, cost=0.5)),))
    reported = report_of(*conversation(KEY, (own,), stop=DONE), prices=prices)
    assert reported.ledger[0].usage.cost == 0.5


def test_usage_by_role_has_every_role() -> None:
    none = dict.fromkeys(("agent", "user", "judge", "dedup"), Usage())
    assert by_role([]) == none
    spent = [LedgerLine("judge", "a", usage(1)), LedgerLine("judge", "b", usage(2))]
    assert by_role(spent) == {**none, "judge": usage(3)}
