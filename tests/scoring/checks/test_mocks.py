"""A mocked tool that the agent's own code answered leaves its turn undecided."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.scenario import Tool
from agenteval.core.trajectory import ToolResult, Turn
from agenteval.scoring.checks.mocks import MOCKS, check_mocks
from tests.support.detector_samples import call, turn

TOOLS = {
    "look": Tool(returns=1),
    "fails": Tool(error="no"),
    "coded": Tool(python="mocks.py:f"),
    "bare": Tool(description="no answer"),
}
OWN: dict[str, Any] = {"observed": True}


def made(name: str, **changes: Any) -> Turn:
    return turn("a", call(name, id="A-7").model_copy(update=changes), "x")


@pytest.mark.parametrize(
    ("played", "is_undecided"),
    [
        (made("look", **OWN), True),
        (made("fails", **OWN), True),
        (made("coded", **OWN), True),
        (made("look"), False),  # through agenteval
        (made("bare", **OWN), False),
        (made("undeclared", **OWN), False),
        (made("look", **OWN, attempted=True), False),
        (made("look", **OWN, result=ToolResult(refused=True)), False),
        (made("look", **OWN, result=None), True),
        (turn("a", "x"), False),
    ],
)
def test_calls_that_the_mock_did_not_answer(played: Turn, is_undecided: bool) -> None:
    found = check_mocks(TOOLS, played)
    assert (found is not None) is is_undecided
    if found:
        assert (found.passed, found.is_lasting, found.is_by_absence) == (None, False, False)


def test_the_first_call_is_named_and_the_others_are_counted() -> None:
    first, second = (call(name, id="A-7").model_copy(update=OWN) for name in ("coded", "look"))
    one = check_mocks(TOOLS, turn("a", call("look"), first, "x"))
    two = check_mocks(TOOLS, turn("a", first, second, "x"))
    three = check_mocks(TOOLS, turn("a", first, second, second, "x"))
    assert one is not None
    assert two is not None
    assert three is not None
    assert "1 more" in two.detail
    assert "'coded'" in three.detail
    assert "'look'" not in three.detail
    assert ("2 more" in one.detail, "2 more" in three.detail) == (False, True)
    assert "more" not in one.detail
    assert 'coded: "FILE.py:FUNCTION"' in one.detail
    assert MOCKS == "mocks"
