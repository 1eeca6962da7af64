"""What a recording holds of an exception is that exception again when it is played."""

from __future__ import annotations

import json

import pytest

from agenteval.adapters.traffic.recording import deserialize_error, serialize_error
from agenteval.core.errors import (
    AfterAnswerError,
    AgentError,
    AgentevalError,
    BudgetError,
    InfrastructureError,
    RequestSkippedError,
    UnreadableReplyError,
)


@pytest.mark.parametrize(
    "kind",
    [
        AfterAnswerError,
        AgentError,
        BudgetError,
        InfrastructureError,
        RequestSkippedError,
        UnreadableReplyError,
    ],
)
def test_an_error_of_ours_is_the_same_after_a_replay(kind: type[AgentevalError]) -> None:
    recorded = json.loads(json.dumps(serialize_error(kind("it broke"))))
    played = deserialize_error(recorded)
    assert (type(played), str(played)) == (kind, "it broke")


def test_an_error_of_the_agents_code_keeps_its_name() -> None:
    played = deserialize_error(serialize_error(ZeroDivisionError("division by zero")))
    assert (type(played).__name__, str(played)) == ("ZeroDivisionError", "division by zero")
    assert not isinstance(played, AgentevalError)


def test_recordings_with_an_earlier_name_still_play() -> None:
    assert type(deserialize_error({"type": "NotAskedError", "message": "not asked"})) is RequestSkippedError
