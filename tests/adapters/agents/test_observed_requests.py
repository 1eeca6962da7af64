"""What is known of a Python agent's turn, in one reply: what it says, its calls, its requests to models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from agenteval.adapters.agents.observed_requests import ObservedRequests, parse_agent_tools
from agenteval.agentside.world import RequestedCall
from agenteval.core.protocols import AgentTool, ReadReply
from agenteval.core.trajectory import CallEvidence
from agenteval.messages.model_calls import KnownCalls

CALL = RequestedCall("find", {"q": "x"}, "1")
UNREAD: Mapping[str, Any] = {"forked": True, "unread": "a request in another process"}


def enriched(
    reply: ReadReply | None, known: KnownCalls, exchanges: Sequence[Mapping[str, Any]] = ()
) -> tuple[ReadReply | None, list[str]]:
    warnings: list[str] = []
    return ObservedRequests("bot", warnings.append).enrich_reply(reply, exchanges, known), warnings


@pytest.mark.parametrize(
    ("described", "tools"),
    [
        (None, None),
        ([], ()),
        (
            [{"name": "f"}, {"name": "g", "description": "G", "hosted": True}],
            (AgentTool("f"), AgentTool("g", "G", hosted=True)),
        ),
    ],
)
def test_the_tools_of_an_agent(described: Any, tools: Any) -> None:
    assert parse_agent_tools({"tools": described}) == tools


def test_nothing_is_nothing() -> None:
    assert enriched(None, KnownCalls()) == (None, [])


def test_a_reply_without_anything_to_add() -> None:
    assert enriched(ReadReply("Hi"), KnownCalls()) == (ReadReply("Hi"), [])


def test_calls_that_reached_the_scenario_are_added() -> None:
    known = KnownCalls(all_scenario_calls=[CALL])
    assert enriched(ReadReply("Hi"), known)[0] == ReadReply("Hi", made=(CALL,))
    assert enriched(None, known)[0] == ReadReply(made=(CALL,))


@pytest.mark.parametrize(
    ("intercepted", "of_framework", "evidence", "shown"),
    [
        (False, False, None, None),
        (True, False, None, CallEvidence.RECORDED),
        (True, True, None, None),
        (False, True, None, None),
        (True, False, CallEvidence.ASKED, CallEvidence.ASKED),
    ],
)
def test_intercepted_tools_are_seen(
    intercepted: bool, of_framework: bool, evidence: CallEvidence | None, shown: CallEvidence | None
) -> None:
    known = KnownCalls(has_intercepted_tools=intercepted, is_framework_object=of_framework)
    reply, _ = enriched(ReadReply("Hi", evidence=evidence), known)
    assert reply is not None
    assert reply.evidence == shown


@pytest.mark.parametrize("of_framework", [False, True])
def test_a_request_that_cannot_be_read_is_warned_of(of_framework: bool) -> None:
    reply, warnings = enriched(ReadReply("Hi"), KnownCalls(is_framework_object=of_framework), [UNREAD])
    assert reply is not None
    assert reply.text == "Hi"
    assert len(warnings) == (not of_framework)
    assert all("'bot'" in text and "a request in another process" in text for text in warnings)
    assert enriched(None, KnownCalls(), [UNREAD])[0] is not None
