"""What is read off a tool of LangChain, of objects like its own: the package is not needed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import pytest

from agenteval.agentside.hooks.langchain_tools import (
    injected_arguments,
    is_handoff,
    model_arguments,
    to_recorded_value,
)
from agenteval.agentside.hooks.tool_methods import ToolFailedError

BILLING = "billing desk"


class Command(SimpleNamespace):
    pass


class Tool:
    metadata: Any = None
    args_schema: Any = None

    def __init__(self, name: str, func: Any) -> None:
        self.name, self.func = name, func

    def _run(self) -> None: ...


def goes_to_text() -> Any:
    return Command(goto="billing", update={})


def goes_to_variable() -> Any:
    return Command(goto=[BILLING])


def goes_nowhere() -> Any:
    """Command(goto="billing")"""
    return Command(update={"goto": "billing"})


def goes_to_parameter(agent: str) -> Any:
    def goes() -> Any:
        return Command(goto=agent)

    return goes


@pytest.mark.parametrize(
    ("name", "func", "expected"),
    [
        ("transfer_to_billing", goes_to_text, True),
        ("hand_over_to_billing_desk", goes_to_variable, False),  # no verb of a hand-off
        ("handoff_to_billing_desk", goes_to_variable, True),
        ("transfer_to_billing", goes_to_parameter("Billing"), True),
        ("transfer_to_savings", goes_to_text, False),
        ("transfer_to_billing", goes_nowhere, False),
        ("bill", goes_to_text, False),
        ("transfer_to_billing", len, False),
    ],
)
def test_a_handoff_is_named_after_where_it_goes(name: str, func: Any, expected: bool) -> None:
    assert is_handoff(Tool(name, func)) is expected


def test_a_handoff_of_a_library_says_so() -> None:
    tool = Tool("ask", goes_nowhere)
    tool.metadata = {"__handoff_destination": "billing"}
    assert is_handoff(tool)


def test_what_a_graph_puts_in_is_no_argument() -> None:
    def find(x: int, state: Annotated[dict[str, Any], "InjectedState"], config: RunnableConfig) -> None: ...  # type: ignore[name-defined] # noqa: F821

    tool = Tool("find", find)
    assert injected_arguments(tool) == {"state", "config"}
    assert model_arguments(tool, {"x": 1, "state": {}, "more": 2}) == {"x": 1, "more": 2}
    assert model_arguments(tool, "7") == {"input": "7"}
    assert model_arguments(tool, "") == {}


def test_what_is_recorded_of_a_result_is_what_a_model_reads() -> None:
    message = SimpleNamespace(
        content=[{"type": "text", "text": "a"}, "b"], tool_call_id="1", status="success"
    )
    assert to_recorded_value(message) == "ab"
    message.status = "error"
    with pytest.raises(ToolFailedError, match="ab"):
        to_recorded_value(message)
    assert to_recorded_value({"status": "shipped"}) == {"status": "shipped"}
