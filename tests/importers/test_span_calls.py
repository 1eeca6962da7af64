"""Calls in the spans of a turn: each counts once, however many spans tell of it."""

from __future__ import annotations

import json
from typing import Any

from agenteval.core.trajectory import ToolCall, Usage
from agenteval.importers.span_calls import TracedTurn, turn_of
from agenteval.messages.chat import parse_steps


def span(key: str, parent: str = "", start: int = 0, **attributes: Any) -> dict[str, Any]:
    named = {name.replace("__", "."): value for name, value in attributes.items()}
    return {"spanId": key, "parentSpanId": parent, "startTimeUnixNano": start, "attributes": named}


def tool(key: str, name: str, args: Any, parent: str = "", start: int = 5, **more: Any) -> dict[str, Any]:
    written = {} if args is None else {"gen_ai__tool__call__arguments": json.dumps(args)}
    return span(key, parent, start, gen_ai__tool__name=name, **written, **more)


def model(
    key: str, *asks: tuple[str, str, Any], parent: str = "", start: int = 1, **more: Any
) -> dict[str, Any]:
    functions = [({"id": i} if i else {}, {"name": n, "arguments": json.dumps(a)}) for i, n, a in asks]
    calls = [{**own, "type": "function", "function": function} for own, function in functions]
    answered = json.dumps([{"role": "assistant", "content": None, "tool_calls": calls}])
    return span(key, parent, start, gen_ai__operation__name="chat", gen_ai__output__messages=answered, **more)


def calls(turn: TracedTurn) -> list[tuple[str, Any]]:
    steps = parse_steps(turn.messages)
    return [(call.name, call.args) for step in steps for call in step.tool_calls]


def test_the_same_call_of_a_model_and_of_its_tool_counts_once_with_ids_or_without() -> None:
    for model_id, tool_id in (("c1", "c1"), ("c1", ""), ("", "c1"), ("", "")):
        own = {"gen_ai__tool__call__id": tool_id} if tool_id else {}
        turn = turn_of([model("m", (model_id, "look", {"a": 1})), tool("t", "look", {"a": 1}, **own)])
        assert calls(turn) == [("look", {"a": 1})], (model_id, tool_id)


def test_two_equal_calls_are_two_and_another_of_another_id_is_another() -> None:
    asks = (("c1", "look", {}), ("c2", "look", {}))
    ran = [tool(f"t{n}", "look", {}, gen_ai__tool__call__id=f"c{n}") for n in (1, 2)]
    assert calls(turn_of([model("m", *asks), *ran])) == [("look", {})] * 2
    assert (
        calls(turn_of([model("m", ("", "look", {}), ("", "look", {})), tool("t", "look", {})]))
        == [("look", {})] * 2
    )


def test_a_tool_within_its_own_span_and_a_model_within_a_model_count_once() -> None:
    inner = tool("t2", "look", {"a": 1}, parent="t1")
    assert calls(turn_of([tool("t1", "look", {"a": 1}), inner])) == [("look", {"a": 1})]
    usage = {"gen_ai__usage__input_tokens": 10, "gen_ai__usage__output_tokens": 1}
    turn = turn_of(
        [model("m1", ("", "look", {}), **usage), model("m2", ("", "look", {}), parent="m1", **usage)]
    )
    assert calls(turn) == [("look", {})]
    assert turn.usage == Usage(calls=1, input_tokens=10, output_tokens=1)


def test_arguments_come_from_the_model_where_the_tool_tells_none() -> None:
    turn = turn_of([model("m", ("c1", "look", {"a": 1})), tool("t", "look", None)])
    assert (calls(turn), turn.unclear) == ([("look", {"a": 1})], ())
    turn = turn_of([tool("t", "look", None)])
    assert (calls(turn), turn.unclear) == ([("look", None)], ("look",))


def test_reasoning_beside_the_output_counts_by_whatever_attribute() -> None:
    beside = {"gen_ai__usage__input_tokens": 1000, "gen_ai__usage__output_tokens": 40}
    for more in (
        {"gen_ai__usage__reasoning__output_tokens": 60, "gen_ai__usage__total_tokens": 1100},
        {"llm__token_count__completion_details__reasoning": "60", "llm__token_count__total": "1100"},
        {"gen_ai__usage__reasoning_tokens": 60, "llm__usage__total_tokens": 1100},
    ):
        turn = turn_of([model("m", **beside, **more)])
        assert turn.usage == Usage(calls=1, input_tokens=1000, output_tokens=100), more
    within = {"gen_ai__usage__input_tokens": 1000, "gen_ai__usage__output_tokens": 100}
    turn = turn_of([model("m", **within, gen_ai__usage__reasoning_tokens=60)])
    assert turn.usage == Usage(calls=1, input_tokens=1000, output_tokens=100)


def test_usage_of_which_a_span_reports_one_half_is_not_known() -> None:
    assert turn_of([model("m", gen_ai__usage__input_tokens=10)]).usage is None


def test_usage_that_one_of_the_models_does_not_tell_is_not_known() -> None:
    turn = turn_of([model("m1", gen_ai__usage__input_tokens=1), model("m2", start=2)])
    assert turn.usage is None


def test_known_calls_are_left_out_once_each() -> None:
    known = [ToolCall(name="look", args={"a": 1}, id="x")]
    spans = [tool("t1", "look", {"a": 1}), tool("t2", "look", {"a": 1}, start=6)]
    assert calls(turn_of(spans, known)) == [("look", {"a": 1})]


def test_a_call_that_cannot_be_read_is_not_placed_and_those_beside_it_count() -> None:
    good = {"id": "c2", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    for broken in ({"id": "c1", "type": "function", "function": {"arguments": "{}"}}, 5):
        answer = [{"role": "assistant", "content": None, "tool_calls": [broken, good]}]
        turn = turn_of(
            [span("m", gen_ai__operation__name="chat", gen_ai__output__messages=json.dumps(answer))]
        )
        assert calls(turn) == [("look", {"a": 1})]
        assert len(turn.unplaced) == 1
        assert turn.unplaced[0].startswith("a tool call without a name")
