"""What remembers is found in the code around it; where ids keep conversations apart, only without ids."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from agenteval.agentside.frameworks import memory
from agenteval.agentside.frameworks.memory import StatefulClass
from agenteval.agentside.targets.target_resolution import ResolvedTarget, resolve_target


class Graph:
    def __init__(self, checkpointer: Any = None) -> None:
        self.checkpointer = checkpointer

    def invoke(self, text: str, thread: str) -> str:
        return text + thread


GRAPH, PLAIN = Graph(object()), Graph()


@pytest.fixture(autouse=True)
def _keepers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        memory,
        "STATEFUL_CLASSES",
        (StatefulClass(__name__, "Graph", memory_attribute="checkpointer", is_keyed_by_id=True),),
    )


def fixed(message: str) -> str:
    return GRAPH.invoke(message, "1")


def by_default(message: str, graph: Graph = GRAPH) -> str:
    return graph.invoke(message, "1")


def in_a_comprehension(messages: list[Any]) -> list[str]:
    return [GRAPH.invoke(each, "1") for each in messages]


class Copied:
    def __call__(self, message: str) -> str:
        return fixed(message)


def with_session(message: str, session_id: str) -> str:
    return GRAPH.invoke(message, session_id)


def with_new_ids(message: str) -> str:
    return GRAPH.invoke(message, str(uuid.uuid4()))


def with_context(messages: list[Any], ctx: Any) -> str:
    return GRAPH.invoke("", ctx.scenario_id)


def without_checkpointer(message: str) -> str:
    return PLAIN.invoke(message, "1")


def _memory(target: Any) -> memory.SharedMemory | None:
    agent = resolve_target(target)
    assert isinstance(agent, ResolvedTarget)
    return agent.memory


@pytest.mark.parametrize("target", [fixed, by_default, in_a_comprehension, Copied()])
def test_one_that_is_called_with_one_id_is_shared(target: Callable[..., Any]) -> None:
    found = _memory(target)
    assert found is not None
    assert (found.name.upper(), found.kind) == ("GRAPH", "Graph")
    assert "session_id" in found.remedy


@pytest.mark.parametrize("target", [with_session, with_new_ids, with_context, without_checkpointer, Copied])
def test_one_that_gets_an_id_for_each_conversation_is_not(target: Callable[..., Any]) -> None:
    assert _memory(target) is None
