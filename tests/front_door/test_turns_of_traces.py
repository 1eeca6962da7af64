"""Calls that only the spans of tools show, in traces of several turns; and which spans are turns of one
conversation."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project

CANCEL = "tool_calls: {calls: [{name: cancel, args: {id: A-7}}]}"
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}]}"
TOOLS = json.dumps([{"type": "function", "name": name} for name in ("cancel", "look")])
DESK = {"gen_ai.agent.name": "desk"}
TALK = {"gen_ai.conversation.id": "c-1"}
GREETING = ("assistant", "Hi, what can I do?")
HELLO, HI, PLEASE, DONE = ("user", "Hello."), GREETING, ("user", "Cancel A-7."), ("assistant", "Done.")


def messages(*said: tuple[str, str]) -> str:
    """A message without a text has no parts."""
    return json.dumps(
        [{"role": r, "parts": [{"type": "text", "content": text}] if text else []} for r, text in said]
    )


def span(number: int, name: str, parent: int = 0, **attributes: Any) -> dict[str, Any]:
    above = {"parentSpanId": f"{parent:016x}"} if parent else {}
    own = {"traceId": "a" * 32, "spanId": f"{number:016x}", "name": name, "startTimeUnixNano": str(number)}
    return {
        **own,
        **above,
        "attributes": {key.replace("__", "."): value for key, value in attributes.items()},
    }


def agent(number: int, parent: int = 1, **attributes: Any) -> dict[str, Any]:
    made = span(number, "invoke_agent desk", parent, gen_ai__operation__name="invoke_agent", **attributes)
    return {**made, "attributes": {**DESK, **made["attributes"]}}


def chat(number: int, parent: int, *said: tuple[str, str]) -> dict[str, Any]:
    """A model that was asked with all but the last message, which it answered."""
    heard = {"gen_ai__input__messages": messages(*said[:-1]), "gen_ai__output__messages": messages(said[-1])}
    tools = {"gen_ai__tool__definitions": TOOLS}
    return span(number, "chat m", parent, gen_ai__operation__name="chat", **heard, **tools)


def cancel(number: int, parent: int, name: str = "cancel") -> dict[str, Any]:
    call = {"gen_ai__tool__name": name, "gen_ai__tool__call__arguments": json.dumps({"id": "A-7"})}
    return span(number, f"execute_tool {name}", parent, gen_ai__operation__name="execute_tool", **call)


def whole(number: int, user: str, answer: str, **attributes: Any) -> dict[str, Any]:
    """The span of an agent with the messages of its turn, and none before."""
    heard = {
        "gen_ai__input__messages": messages(("user", user)),
        "gen_ai__output__messages": messages(("assistant", answer)),
    }
    return agent(number, **heard, gen_ai__tool__definitions=TOOLS, **attributes)


ROOT = span(1, "session")
FIRST, SECOND = (HELLO, HI), (HELLO, HI, PLEASE, DONE)


def score(project: Project, spans: list[Any], expect: str = "", first: str = "", second: str = "") -> Any:
    """``first`` and ``second``: what is expected of the turns."""
    project.write("log.jsonl", json.dumps({"id": "x", "spans": spans}) + "\n")
    turns = "".join(
        f"  - {{user: {json.dumps(user)}, expect: {{{rule}}}}}\n" if rule else f"  - {json.dumps(user)}\n"
        for user, rule in ((HELLO[1], first), (PLEASE[1], second))
    )
    project.write("suite.yaml", f"id: x\nturns:\n{turns}" + (f"expect: {{{expect}}}\n" if expect else ""))
    project.write("agenteval.yaml", "metrics: []\ndetectors: []\n")
    return project.call("score", "log.jsonl", "--scenarios", "suite.yaml", "--report", "json=results.json")


# ── of which turn a call is ──────────────────────────────────────────────────────────────────────

KNOWN = {
    "the agent's span": [ROOT, agent(2), chat(3, 2, *FIRST), agent(5), cancel(6, 5), chat(7, 5, *SECOND)],
    "between two models": [
        ROOT, chat(3, 1, *FIRST), chat(5, 1, *SECOND[:3], ("assistant", "")), cancel(6, 1),
        chat(7, 1, *SECOND),
    ],
    "after all models": [ROOT, chat(3, 1, *FIRST), chat(5, 1, *SECOND), cancel(6, 1)],
    "an agent with all that was said": [
        agent(1, 0, gen_ai__input__messages=messages(*SECOND[:3]), gen_ai__output__messages=messages(DONE)),
        agent(2), chat(3, 2, *FIRST), agent(5), cancel(6, 5), chat(7, 5, *SECOND),
    ],
    "agents with their turn": [
        agent(1, 0, gen_ai__input__messages=messages(*SECOND[:3]), gen_ai__output__messages=messages(DONE)),
        whole(2, HELLO[1], HI[1]), whole(5, PLEASE[1], DONE[1]), cancel(6, 5),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_a_call_of_a_span_is_in_its_turn(project: Project, name: str) -> None:
    spans = KNOWN[name]
    without = [each for each in spans if not each["name"].startswith("execute_tool")]
    for trace, codes in ((spans, (1, 0, 1, 0, 0, 1)), (without, (0, 1, 0, 1, 0, 1))):
        rules = [
            {"expect": FORBIDDEN}, {"expect": CANCEL}, {"second": FORBIDDEN}, {"second": CANCEL},
            {"first": FORBIDDEN}, {"first": CANCEL},
        ]  # fmt: skip
        assert tuple(score(project, trace, **rule).code for rule in rules) == codes


def test_a_known_call_is_not_offered_to_be_overruled(project: Project) -> None:
    done = score(project, KNOWN["the agent's span"], FORBIDDEN)
    assert "--no-calls-in" not in done.all
    assert project.sample("x")["turns"][1]["tool_calls"][0]["name"] == "cancel"
    asks = span(
        4, "chat m", 1, gen_ai__operation__name="chat", gen_ai__response__finish_reasons=["tool_call"]
    )
    done = score(project, [ROOT, chat(3, 1, *FIRST), asks], FORBIDDEN)
    assert done.code == 3
    assert "--no-calls-in 'chat m'" not in done.all
    again = project.call("score", "log.jsonl", "--scenarios", "suite.yaml", "--no-calls-in", "chat m")
    assert again.code == 3
    asks["attributes"] |= chat(4, 1, HELLO, ("assistant", ""))["attributes"]
    assert score(project, [ROOT, asks, chat(5, 1, *FIRST)], FORBIDDEN).code == 3
    assert score(project, [ROOT, asks, cancel(5, 1, "look"), chat(6, 1, *FIRST)], FORBIDDEN).code == 0


UNKNOWN = {
    "between two turns": [ROOT, chat(3, 1, *FIRST), cancel(4, 1), chat(5, 1, *SECOND)],
    "without times": [
        {key: value for key, value in each.items() if key != "startTimeUnixNano"}
        for each in (ROOT, chat(3, 1, *FIRST), chat(5, 1, *SECOND), cancel(6, 1))
    ],
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_call_of_an_unknown_turn_counts_in_the_conversation(project: Project, name: str) -> None:
    spans = UNKNOWN[name]
    assert score(project, spans, FORBIDDEN).code == 1
    assert score(project, spans, CANCEL).code == 0
    assert score(project, spans, CANCEL.replace("A-7", "B-9")).code == 3
    for rule in (FORBIDDEN, CANCEL):
        for turn in ("first", "second"):
            done = score(project, spans, **{turn: rule})
            assert done.code == 3, (turn, rule)
            assert "the turn of a call of 'cancel' in a span" in done.all
            assert "--no-calls-in cancel" not in done.all
    # Of another tool, which was seen in its turn, each turn decides.
    assert score(project, [*spans, agent(8), cancel(9, 8, "look"), chat(10, 8, *SECOND)], CANCEL).code == 0


# ── turns of one conversation ────────────────────────────────────────────────────────────────────


def test_spans_of_one_conversation_are_its_turns(project: Project) -> None:
    apart = [ROOT, whole(2, *_texts(HELLO, HI)), whole(5, *_texts(PLEASE, DONE)), cancel(6, 5)]
    joined = [{**ROOT, "attributes": TALK}, *apart[1:]]
    assert [score(project, joined, rule).code for rule in (CANCEL, FORBIDDEN)] == [0, 1]
    assert [score(project, joined[:-1], rule).code for rule in (CANCEL, FORBIDDEN)] == [1, 0]
    assert [score(project, joined, second=rule).code for rule in (CANCEL, FORBIDDEN)] == [0, 1]
    assert [score(project, joined, first=rule).code for rule in (CANCEL, FORBIDDEN)] == [1, 0]
    assert len(project.sample("x")["turns"]) == 2
    # Where no id says that the second is the next turn, it is not known what was said between them.
    assert [score(project, apart, rule).code for rule in (CANCEL, FORBIDDEN)] == [0, 1]
    assert [score(project, apart[:-1], rule).code for rule in (CANCEL, FORBIDDEN)] == [3, 3]
    assert "gen_ai.conversation.id" in score(project, apart, CANCEL).all


def test_traces_of_one_conversation_are_its_turns(project: Project) -> None:
    first, second, call = whole(2, *_texts(HELLO, HI)), whole(5, *_texts(PLEASE, DONE)), cancel(6, 5)
    later = [{**each, "traceId": "b" * 32} for each in (second, call)]
    for told in (TALK, {"session.id": "s"}):
        spans = [{**each, "attributes": {**each["attributes"], **told}} for each in (first, *later)]
        assert [score(project, spans, rule).code for rule in (CANCEL, FORBIDDEN)] == [0, 1]
        project.write("log.jsonl", "".join(json.dumps(each) + "\n" for each in spans))
        project.call("score", "log.jsonl", "--report", "json=results.json")
        (scenario,) = project.results()["scenarios"]
        assert len(scenario["samples"][0]["turns"]) == 2


def test_agents_that_are_others_are_no_turns(project: Project) -> None:
    """A sub-agent, be it of the same name; of another conversation in the trace nobody knows what it is."""
    one, other = whole(2, *_texts(HELLO, HI), **_id("c-1")), whole(5, *_texts(PLEASE, DONE), **_id("c-2"))
    inner = {**other, "parentSpanId": f"{2:016x}", "attributes": {**other["attributes"], **TALK}}
    assistant = {**inner, "attributes": {**inner["attributes"], "gen_ai.agent.name": "helper"}}
    for second in (other, inner, assistant):
        assert score(project, [ROOT, one, second, cancel(6, 5)], FORBIDDEN).code == 1
        (sample,) = project.results()["scenarios"][0]["samples"]
        assert len(sample["turns"]) == (2 if second is other else 1)
        assert score(project, [ROOT, one, second], FORBIDDEN).code == (3 if second is other else 0)


def _texts(*said: tuple[str, str]) -> list[str]:
    return [text for _, text in said]


def _id(conversation: str) -> dict[str, str]:
    return {"gen_ai__conversation__id": conversation}


# ── the agent speaks first ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("empty", ["[]", []])
def test_an_agent_that_speaks_first_was_asked_nothing(project: Project, empty: Any) -> None:
    greeting = chat(2, 1, HI)
    greeting["attributes"]["gen_ai.input.messages"] = empty
    spans = [ROOT, greeting, chat(3, 1, HI, PLEASE, DONE), cancel(4, 1)]
    assert score(project, spans, second=CANCEL).code == 0
    assert [turn["user"] for turn in project.sample("x")["turns"]] == ["", PLEASE[1]]
    assert score(project, spans, CANCEL).code == 0
    assert score(project, spans, FORBIDDEN).code == 1
    assert score(project, spans[:-1], CANCEL).code == 1
