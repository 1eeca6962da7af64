"""``agenteval score``: what is told while a log is scored."""

from __future__ import annotations

import time

import pytest

from agenteval.cli.commands.score import _Heartbeat
from agenteval.core.event import SampleFinished, SampleStarted
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Stop, StopReason

KEY = SampleKey(scenario="a", agent="bot")
ENDED = SampleFinished(key=KEY, stop=Stop(reason=StopReason.SCRIPT_DONE))


def test_a_stream_is_counted_from_time_to_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    beat = _Heartbeat()

    def told(seconds: float) -> str:
        nonlocal now
        now += seconds
        beat(SampleStarted(key=KEY))
        beat(ENDED)
        return capsys.readouterr().err

    assert told(4.9) == ""
    assert told(0.1) == "2 conversations scored\n"
    assert told(4.9) == ""
    assert told(60) == "4 conversations scored\n"
