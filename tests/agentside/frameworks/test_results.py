"""What a run of a framework returns, where a function hands it on."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.agentside.frameworks.results import _ANSWERS, extract_answer


def result(kind: str, **fields: Any) -> Any:
    """An object of a class of that name, below which an application may have one of its own."""
    module, _, name = kind.rpartition(".")
    base = type(name, (), {"__module__": module, **fields})
    return type("Own", (base,), {})()


class Message:
    def __init__(self, text: str) -> None:
        self.text = text

    def to_text(self) -> str:
        return self.text


FIELDS: dict[str, Any] = {
    "raw": "It is shipped.",
    "output": "It is shipped.",
    "text": "It is shipped.",
    "final_output": "It is shipped.",
    "messages": [Message("Where?"), Message("It is shipped.")],
    "chat_message": Message("It is shipped."),
    "__str__": lambda _: "It is shipped.\n",
}


@pytest.mark.parametrize("kind", _ANSWERS)
def test_the_answer_is_taken_out_of_it(kind: str) -> None:
    assert extract_answer(result(kind, **FIELDS)) == "It is shipped."


def test_a_structured_answer_is_json() -> None:
    assert extract_answer(result("pydantic_ai.run.AgentRunResult", output={"n": 1})) == '{"n": 1}'
    assert extract_answer(result("pydantic_ai.run.AgentRunResult", output=7)) == "7"


@pytest.mark.parametrize("value", ["a", None, {"raw": 1}, [1], 5, result("shop.Result", raw="x")])
def test_all_else_stays_as_it_is(value: Any) -> None:
    assert extract_answer(value) is value
