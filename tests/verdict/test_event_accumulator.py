"""A sample that starts again has nothing of its first conversation but what is kept apart."""

from __future__ import annotations

from agenteval.core.event import SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check
from agenteval.core.trajectory import Stop, StopReason
from agenteval.verdict.report import build_report
from tests.support.report_samples import CASE, started, turn

KEY = SampleKey(scenario=CASE.id, agent="wonderbot")


def check(name: str) -> Check:
    return Check(name=name, passed=False, detail="it broke", where="s.yaml:1")


def test_an_interrupted_conversation_leaves_neither_turns_nor_results() -> None:
    report = build_report([
        started((CASE,), (KEY,)),
        SampleStarted(key=KEY),
        TurnFinished(key=KEY, index=0, turn=turn("first", "one")),
        TurnFinished(key=KEY, index=1, turn=turn("first", "two")),
        Scored(key=KEY, turn=1, items=(check("of the first"),)),
        Scored(key=KEY, turn=None, items=(check("of all of the first"),)),
        SampleStarted(key=KEY),
        TurnFinished(key=KEY, index=0, turn=turn("second", "three")),
        Scored(key=KEY, turn=0, items=(check("of the second"),)),
        SampleFinished(key=KEY, stop=Stop(reason=StopReason.SCRIPT_DONE)),
    ])  # fmt: skip
    (sample,) = report.samples
    assert [each.turn.user for each in sample.turns] == ["second"]
    assert [each.name for each in sample.all_checks] == ["of the second"]
    assert sample.lost_attempts == ()


def test_the_order_of_other_samples_does_not_matter() -> None:
    other = SampleKey(scenario=CASE.id, agent="wonderbot", epoch=1)
    ends = Stop(reason=StopReason.SCRIPT_DONE)
    mine = [
        SampleStarted(key=KEY),
        TurnFinished(key=KEY, index=0, turn=turn("mine", "one")),
        SampleFinished(key=KEY, stop=ends),
    ]
    theirs = [
        SampleStarted(key=other),
        TurnFinished(key=other, index=0, turn=turn("theirs", "two")),
        SampleFinished(key=other, stop=ends),
    ]
    begun = started((CASE,), (KEY, other))
    interleaved = [each for pair in zip(mine, theirs, strict=True) for each in pair]
    assert build_report([begun, *mine, *theirs]) == build_report([begun, *interleaved])
