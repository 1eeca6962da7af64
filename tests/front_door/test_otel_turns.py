"""Calls that only the spans of tools show, in traces of several turns; and which spans are turns of one
conversation."""

from __future__ import annotations

import json
from typing import Any

from tests.support.kit import Project
from tests.support.scored_logs import score, summary
from tests.support.scored_traces import (
    FAILED,
    FORBIDDEN,
    OPEN,
    PASSED,
    Row,
    calls_of,
    check_traces,
    lines,
    reasons_of,
)

CANCEL = "tool_calls: {calls: [{name: cancel, args: {id: A-7}}]}"
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


USERS = (HELLO[1], PLEASE[1])
IDS = ("x", "a" * 32, "b" * 32, "c-1", "c-2", "s")


def row(spans: list[Any], verdict: str, whole: str = "", first: str = "", second: str = "") -> Row:
    """``whole``, ``first`` and ``second``: what is expected of the conversation and of its turns."""
    return Row(lines({"id": "x", "spans": spans}), (first, second), verdict, whole)


def check(project: Project, rows: dict[str, Row]) -> dict[str, Any]:
    return check_traces(project, rows, USERS, *IDS)


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


EXPECTED: tuple[tuple[dict[str, str], str, str], ...] = (
    ({"whole": FORBIDDEN}, FAILED, PASSED),
    ({"whole": CANCEL}, PASSED, FAILED),
    ({"second": FORBIDDEN}, FAILED, PASSED),
    ({"second": CANCEL}, PASSED, FAILED),
    ({"first": FORBIDDEN}, PASSED, PASSED),
    ({"first": CANCEL}, FAILED, FAILED),
)
"""What is expected, and the verdicts where the second turn calls the tool and where none does."""


def test_a_call_of_a_span_is_in_its_turn(project: Project) -> None:
    rows = {}
    for name, spans in KNOWN.items():
        without = [each for each in spans if not each["name"].startswith("execute_tool")]
        for rule, called, not_called in EXPECTED:
            rows[f"{name}, {rule}"] = row(spans, called, **rule)
            rows[f"{name}, {rule}, no call"] = row(without, not_called, **rule)
    check(project, rows)


def test_a_known_call_is_not_offered_to_be_overruled(project: Project) -> None:
    found = check(project, {"known": row(KNOWN["the agent's span"], FAILED, FORBIDDEN)})["known"]
    assert "--no-calls-in" not in json.dumps(found)
    assert calls_of(found)[1] == ["cancel"]
    reasons = {"gen_ai__operation__name": "chat", "gen_ai__response__finish_reasons": ["tool_call"]}
    asks = span(4, "chat m", 1, **reasons)
    project.write("log.jsonl", lines({"id": "x", "spans": [ROOT, chat(3, 1, *FIRST), asks]}))
    project.write("suite.yaml", f"id: x\nturns: [{HELLO[1]}]\nexpect: {{{FORBIDDEN}}}\n")
    for options in ((), ("--no-calls-in", "chat m")):
        done = score(project, "log.jsonl", "--scenarios", "suite.yaml", *options)
        assert done.code == 3
        assert options or "--no-calls-in 'chat m'" not in done.all
    asks = {**asks, "attributes": asks["attributes"] | chat(4, 1, HELLO, ("assistant", ""))["attributes"]}
    rows = {
        "not shown": row([ROOT, asks, chat(5, 1, *FIRST)], OPEN, FORBIDDEN),
        "shown": row([ROOT, asks, cancel(5, 1, "look"), chat(6, 1, *FIRST)], PASSED, FORBIDDEN),
    }
    check(project, rows)


UNKNOWN = {
    "between two turns": [ROOT, chat(3, 1, *FIRST), cancel(4, 1), chat(5, 1, *SECOND)],
    "without times": [
        {key: value for key, value in each.items() if key != "startTimeUnixNano"}
        for each in (ROOT, chat(3, 1, *FIRST), chat(5, 1, *SECOND), cancel(6, 1))
    ],
}


def test_a_call_of_an_unknown_turn_counts_in_the_conversation(project: Project) -> None:
    rows, of_turns = {}, []
    for name, spans in UNKNOWN.items():
        other = [*spans, agent(8), cancel(9, 8, "look"), chat(10, 8, *SECOND)]
        rows |= {
            f"{name}, forbidden": row(spans, FAILED, FORBIDDEN),
            f"{name}, expected": row(spans, PASSED, CANCEL),
            f"{name}, other arguments": row(spans, OPEN, CANCEL.replace("A-7", "B-9")),
            # Of another tool, which was seen in its turn, each turn decides.
            f"{name}, another tool": row(other, PASSED, CANCEL),
        }
        for rule in (FORBIDDEN, CANCEL):
            for turn in ("first", "second"):
                of_turns.append(f"{name}, {turn}, {rule}")
                rows[of_turns[-1]] = row(spans, OPEN, **{turn: rule})
    found = check(project, rows)
    for name in of_turns:
        assert "'cancel'" in reasons_of(found[name]), name
        assert "--no-calls-in cancel" not in reasons_of(found[name]), name


# ── turns of one conversation ────────────────────────────────────────────────────────────────────


def test_spans_of_one_conversation_are_its_turns(project: Project) -> None:
    apart = [ROOT, whole(2, *_texts(HELLO, HI)), whole(5, *_texts(PLEASE, DONE)), cancel(6, 5)]
    joined = [{**ROOT, "attributes": TALK}, *apart[1:]]
    rows = {
        "joined": row(joined, PASSED, CANCEL),
        "joined, forbidden": row(joined, FAILED, FORBIDDEN),
        "joined, no call": row(joined[:-1], FAILED, CANCEL),
        "joined, no call, forbidden": row(joined[:-1], PASSED, FORBIDDEN),
        "joined, second": row(joined, PASSED, second=CANCEL),
        "joined, second, forbidden": row(joined, FAILED, second=FORBIDDEN),
        "joined, first": row(joined, FAILED, first=CANCEL),
        "joined, first, forbidden": row(joined, PASSED, first=FORBIDDEN),
        # Where no id joins the second as the next turn, it is not known what was said between them.
        "apart": row(apart, PASSED, CANCEL),
        "apart, forbidden": row(apart, FAILED, FORBIDDEN),
        "apart, no call": row(apart[:-1], OPEN, CANCEL),
        "apart, no call, forbidden": row(apart[:-1], OPEN, FORBIDDEN),
    }
    found = check(project, rows)
    assert len(found["joined, first, forbidden"]["turns"]) == 2
    notices = [each["text"] for each in summary(project)["notices"]]
    assert any("gen_ai.conversation.id" in text for text in notices)


def test_traces_of_one_conversation_are_its_turns(project: Project) -> None:
    first, second, call = whole(2, *_texts(HELLO, HI)), whole(5, *_texts(PLEASE, DONE)), cancel(6, 5)
    later = [{**each, "traceId": "b" * 32} for each in (second, call)]
    rows = {}
    for named in (TALK, {"session.id": "s"}):
        spans = [{**each, "attributes": {**each["attributes"], **named}} for each in (first, *later)]
        rows[f"{named}"] = row(spans, PASSED, CANCEL)
        rows[f"{named}, forbidden"] = row(spans, FAILED, FORBIDDEN)
        project.write("log.jsonl", lines(*spans))
        score(project, "log.jsonl")
        (scenario,) = project.results()["scenarios"]
        assert len(scenario["samples"][0]["turns"]) == 2
    check(project, rows)


def test_agents_that_are_others_are_no_turns(project: Project) -> None:
    """A sub-agent, be it of the same name; of another conversation in the trace nobody knows what it is."""
    one, other = whole(2, *_texts(HELLO, HI), **_id("c-1")), whole(5, *_texts(PLEASE, DONE), **_id("c-2"))
    inner = {**other, "parentSpanId": f"{2:016x}", "attributes": {**other["attributes"], **TALK}}
    helper = {**inner, "attributes": {**inner["attributes"], "gen_ai.agent.name": "helper"}}
    rows = {}
    for name, second in (("other", other), ("inner", inner), ("helper", helper)):
        rows[name] = row([ROOT, one, second, cancel(6, 5)], FAILED, FORBIDDEN)
        no_call = OPEN if second is other else PASSED
        rows[f"{name}, no call"] = row([ROOT, one, second], no_call, FORBIDDEN)
    found = check(project, rows)
    assert [len(found[name]["turns"]) for name in ("other", "inner", "helper")] == [2, 1, 1]


def _texts(*said: tuple[str, str]) -> list[str]:
    return [text for _, text in said]


def _id(conversation: str) -> dict[str, str]:
    return {"gen_ai__conversation__id": conversation}


# ── the agent speaks first ───────────────────────────────────────────────────────────────────────


def test_an_agent_that_speaks_first_was_asked_nothing(project: Project) -> None:
    rows = {}
    for empty in ("[]", []):
        greeting = chat(2, 1, HI)
        greeting["attributes"]["gen_ai.input.messages"] = empty
        spans = [ROOT, greeting, chat(3, 1, HI, PLEASE, DONE), cancel(4, 1)]
        rows[f"{empty!r}"] = row(spans, PASSED, CANCEL)
        rows[f"{empty!r}, second"] = Row(lines({"id": "x", "spans": spans}), ("", CANCEL), PASSED)
        rows[f"{empty!r}, forbidden"] = row(spans, FAILED, FORBIDDEN)
        rows[f"{empty!r}, no call"] = row(spans[:-1], FAILED, CANCEL)
    for sample in check(project, rows).values():
        assert [turn["user"] for turn in sample["turns"]] == ["", PLEASE[1]]
