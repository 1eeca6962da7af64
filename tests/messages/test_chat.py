"""OpenAI's chat messages: read as steps, and written from turns."""

from __future__ import annotations

import datetime
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from agenteval.core.errors import AgentError
from agenteval.core.trajectory import Step, ToolCall, ToolResult, Turn
from agenteval.messages.chat import (
    DuplicateKeyObject,
    collect_tool_calls,
    depth_of,
    describe_duplicate_key,
    drop_unstorable,
    jsonable,
    keep_duplicate_keys,
    parse_step,
    parse_steps,
    parse_tool_result,
    read_arguments,
    read_tool_call,
    replace_json_surrogates,
    replace_surrogates,
    require_tool_name,
    sort_by_index,
    text_of,
    to_chat_messages,
    to_storable,
    validate_tool_calls,
)
from tests.support.message_shapes import asks, call, calls_in, result, says, user


def nested(depth: int) -> Any:
    """A value of this depth: the scalar inside is a level of its own."""
    value: Any = 1
    for _ in range(depth - 1):
        value = {"a": value}
    return value


# ── turns to messages ────────────────────────────────────────────────────────────────────────────


def made(name: str = "cancel", **fields: Any) -> ToolCall:
    return ToolCall(**{"name": name, "args": {"id": "A-1"}, "id": "c1", **fields})


def sent(*steps: Step, is_excluded: Any = None) -> list[Any]:
    turn = Turn(user="Hi", steps=steps)
    messages = to_chat_messages([turn], is_excluded) if is_excluded else to_chat_messages([turn])
    assert messages[0] == {"role": "user", "content": "Hi"}
    return messages[1:]


def test_a_turn_without_steps() -> None:
    assert to_chat_messages([]) == []
    assert sent() == []


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (Step(text="Hello."), {"role": "assistant", "content": "Hello."}),
        (Step(text=None), {"role": "assistant", "content": ""}),
        (Step(text="a", extra={"id": "m"}), {"role": "assistant", "content": "a", "id": "m"}),
    ],
)
def test_a_step_without_calls(step: Step, message: Any) -> None:
    assert sent(step) == [message]


@pytest.mark.parametrize(
    ("fields", "arguments", "content"),
    [
        ({}, '{"id": "A-1"}', ""),
        ({"args": {"id": "é"}}, '{"id": "é"}', ""),
        ({"args": None, "raw_args": "{oops"}, "{}", ""),  # servers refuse broken arguments
        ({"result": ToolResult(value="ok")}, '{"id": "A-1"}', "ok"),
        ({"result": ToolResult(value={"a": "é"})}, '{"id": "A-1"}', '{"a": "é"}'),
    ],
)
def test_each_call_has_one_result(fields: dict[str, Any], arguments: str, content: str) -> None:
    asked, answered = sent(Step(text=None, tool_calls=(made(**fields),)))
    assert asked == {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "cancel", "arguments": arguments}}
        ],
    }
    assert answered == {"role": "tool", "tool_call_id": "c1", "content": content}


def test_further_fields_are_sent_back() -> None:
    signed = made(extra={"signature": {"a": [1]}})
    step = Step(text="a", tool_calls=(signed,), extra={"reasoning": [1]})
    asked, _ = sent(step)
    assert asked["reasoning"] == [1]
    assert asked["tool_calls"][0]["signature"] == {"a": [1]}
    asked["reasoning"].append(2)
    asked["tool_calls"][0]["signature"]["a"].append(2)
    assert (step.extra["reasoning"], signed.extra["signature"]) == ([1], {"a": [1]})


@pytest.mark.parametrize(
    ("ids", "unique"),
    [
        (("a", "b"), ["a", "b"]),
        (("a", "a"), ["a", "call_1_1"]),
        (("", ""), ["call_1_0", "call_1_1"]),
        (("call_1_1", ""), ["call_1_1", "call_1_1_"]),
        (("call_1_1", "call_1_1"), ["call_1_1", "call_1_1_"]),
    ],
)
def test_ids_are_there_and_unique(ids: tuple[str, ...], unique: list[str]) -> None:
    asked, *answered = sent(Step(tool_calls=tuple(made(id=each) for each in ids)))
    assert [each["id"] for each in asked["tool_calls"]] == unique
    assert [each["tool_call_id"] for each in answered] == unique


def test_missing_ids_differ_from_step_to_step() -> None:
    step = Step(tool_calls=(made(id=""),))
    messages = sent(step, step)
    assert [each["tool_call_id"] for each in messages if each["role"] == "tool"] == ["call_1_0", "call_3_0"]


def test_calls_that_are_excluded() -> None:
    steps = [
        Step(text="a", tool_calls=(made("x", id="1"), made("cancel", id="2"))),
        Step(text="b", tool_calls=(made("x"),)),
        Step(text=None, tool_calls=(made("x"),)),
        Step(text=None),
    ]
    found = sent(*steps, is_excluded=lambda call: call.name == "x")
    assert [(each["role"], each["content"]) for each in found] == [
        ("assistant", "a"),
        ("tool", ""),
        ("assistant", "b"),
        ("assistant", ""),
    ]
    assert [each["id"] for each in found[0]["tool_calls"]] == ["2"]
    assert "tool_calls" not in found[2]


# ── contents ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, None),
        ("", ""),
        ("a\ud800b", "a\ufffdb"),
        ([], ""),
        (("a", "b"), "ab"),
        ([{"type": "text", "text": "a"}, {"type": "output_text", "text": "b"}, {"text": "c"}], "abc"),
        ([{"type": "text", "text": None}, {"type": "text"}, {"type": "text", "text": 5}], "5"),
        ([{"type": "refusal", "refusal": "No."}, {"type": "image", "text": "x"}, 5], ""),
        (["\udc00"], "\ufffd"),
    ],
)
def test_the_text_of_a_content(content: Any, text: str | None) -> None:
    assert text_of(content) == text


@pytest.mark.parametrize("content", [5, {"type": "text", "text": "a"}, b"a", bytearray(b"a"), True])
def test_a_content_that_is_no_text(content: Any) -> None:
    with pytest.raises(AgentError) as error:
        text_of(content)
    assert type(content).__name__ in str(error.value)
    assert error.value.kind == "protocol"


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (None, None),
        ("[1]", "[1]"),
        ([{"type": "text", "text": "a"}, "b", {"text": "c"}], "abc"),
        ([{"type": "image_url"}], ""),
        (({"type": "text", "text": "a"},), "a"),
        ([{"type": "order", "text": "a"}], [{"type": "order", "text": "a"}]),
        ([{"text": "a", "stars": 5}], [{"text": "a", "stars": 5}]),
        ([{"type": "text", "text": "a"}, 5], [{"type": "text", "text": "a"}, 5]),
        (["a", "b"], ["a", "b"]),
        ([], []),
        ({"type": "text", "text": "a"}, {"type": "text", "text": "a"}),
        (5, 5),
        ({1, 2}, [1, 2]),
    ],
)
def test_the_value_of_a_result(content: Any, value: Any) -> None:
    assert parse_tool_result(content) == value


def test_a_result_that_is_not_json_is_told() -> None:
    assert str(parse_tool_result([float("nan")])).startswith("list that is not JSON: ")


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("a", "a"),
        ("\ud800\udfff", "\ufffd\ufffd"),
        ("\U0001f600", "\U0001f600"),
        ("\ud7ff\ue000", "\ud7ff\ue000"),
    ],
)
def test_lone_surrogates(text: str, replaced: str) -> None:
    assert replace_surrogates(text) == replaced


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        (r'"a"', r'"a"'),
        (r'"\ud800"', r'"\ufffd"'),
        (r'"\uDFFF!"', r'"\ufffd!"'),
        (r'"\udc00"', r'"\ufffd"'),
        (r'"\uD83D\uDE00"', r'"\uD83D\uDE00"'),  # a pair
        (r'"\ud83dx\ude00"', r'"\ufffdx\ufffd"'),
        (r'"\ud800\ud83d\ude00"', r'"\ufffd\ud83d\ude00"'),
        (r'"\\ud800"', r'"\\ud800"'),  # no escape
        (r'"\\\ud800"', r'"\\\ufffd"'),
        (r'"\ud7ff\ue000"', r'"\ud7ff\ue000"'),
    ],
)
def test_escaped_lone_surrogates(text: str, replaced: str) -> None:
    assert replace_json_surrogates(text) == replaced
    json.loads(replaced).encode()


# ── arguments ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raw", "args", "raw_args"),
    [
        (None, {}, None),
        ("", {}, None),
        ("null", {}, None),
        ("{}", {}, None),
        ({}, {}, None),
        ('{"a": {"b": [1, null]}}', {"a": {"b": [1, None]}}, None),
        ('{"a": ":", "b": "x:y"}', {"a": ":", "b": "x:y"}, None),
        ({"a": (1, 2)}, {"a": [1, 2]}, None),
        ("{oops", None, "{oops"),
        ("[1]", None, "[1]"),
        ("5", None, "5"),
        ('"a"', None, '"a"'),
        ("{'a': 1}", None, "{'a': 1}"),
        ('{"a": NaN}', None, '{"a": NaN}'),
        ('{"a": 1e999}', None, '{"a": 1e999}'),
        ('{"a": [-1e999]}', None, '{"a": [-1e999]}'),
        ('{"a": 1, "a": 2}', None, '{"a": 1, "a": 2}'),
        ('{"x": {"a": 1, "a": 1}}', None, '{"x": {"a": 1, "a": 1}}'),
        ('{"x": [{"a": ":", "a": 1}]}', None, '{"x": [{"a": ":", "a": 1}]}'),
        (r'{"a": "\ud800"}', {"a": "\ufffd"}, None),
        ([1], None, "[1]"),
        (5, None, "5"),
        (["é"], None, '["é"]'),
    ],
)
@pytest.mark.parametrize("lenient", [False, True])
def test_arguments(raw: Any, args: Any, raw_args: Any, lenient: bool) -> None:
    expected = ({"a": 1}, raw_args) if lenient and raw == "{'a': 1}" else (args, raw_args)
    assert read_arguments(raw, lenient=lenient) == expected


@pytest.mark.parametrize(
    ("raw", "args"),
    [
        (" {'a': None, 'b': (1, True)} ", {"a": None, "b": [1, True]}),
        ("{'a': 1, 'a': 2}", None),
        ("{'x': {'a': 1, 'a': 2}}", None),
        ("{'x': {'a': 1, 'b': 2}}", {"x": {"a": 1, "b": 2}}),
        ("[1]", None),
        ("{'a': f()}", None),
        ("{'a': 1e999}", None),
        ("{'a': b'x'}", None),
        ("{'a': [{b'x'}]}", None),
        ("{'a': 1j}", None),
        ("{'a': ...}", None),
        ("{'a': {2, 1}}", {"a": [1, 2]}),
        ("{1, 2}", None),
        (r"{'a': '\d'}", {"a": r"\d"}),
        ("{" * 5000, None),
    ],
)
def test_a_python_literal_is_read_in_recordings_alone(raw: str, args: Any) -> None:
    assert read_arguments(raw) == (None, raw)
    assert read_arguments(raw, lenient=True) == (args, raw)


def test_arguments_that_are_nested_too_deeply() -> None:
    wide: dict[str, Any] = {"a": [[] for _ in range(200)]}
    assert read_arguments(json.dumps(wide)) == (wide, None)
    for is_text in (False, True):
        shallow, deep = (json.dumps(nested(each)) if is_text else nested(each) for each in (100, 101))
        assert read_arguments(shallow) == (nested(100), None)
        args, raw = read_arguments(deep)
        assert args is None
        assert raw == deep if is_text else "not JSON" in str(raw)


def test_an_object_that_keeps_a_key_it_has_twice() -> None:
    text = '{"a": [{"b": 1, "b": "é"}], "c": 2}'
    value = json.loads(text, object_pairs_hook=keep_duplicate_keys)
    assert isinstance(value["a"][0], DuplicateKeyObject)
    assert value["a"][0] == {"b": "é"}
    assert value["a"][0].pairs == [("b", 1), ("b", "é")]
    assert type(value) is dict
    assert read_arguments(value) == (None, text)
    loop: dict[str, Any] = {}
    loop["loop"] = loop
    args, raw = read_arguments(loop)
    assert args is None
    assert raw


@pytest.mark.parametrize(
    ("raw", "key"),
    [
        ('{"a": 1, "a": 2}', '"a"'),
        (r'{"a": 1, "b": {"\ud800": 1, "\ud800": 2}}', '"\ufffd"'),
        ('{"a": 1}', ""),
        ("{oops", ""),
        ('{"a": NaN}', ""),
        ("[" * 100_000, ""),
    ],
)
def test_the_key_that_is_there_twice_is_named(raw: str, key: str) -> None:
    found = describe_duplicate_key(raw)
    assert key in found
    assert bool(found) is bool(key)


# ── values that can be stored ────────────────────────────────────────────────────────────────────


class Model(BaseModel):
    a: datetime.date = datetime.date(2026, 1, 2)


@dataclass
class Data:
    a: int = 1


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ({"a": (1, None)}, {"a": [1, None]}),
        (Model(), {"a": "2026-01-02"}),
        ([Data()], [{"a": 1}]),
        (Data, str(Data)),
        ({"b", "a"}, ["a", "b"]),
        (frozenset({10, 9}), [10, 9]),  # in the order of their texts
        (datetime.date(2026, 1, 2), "2026-01-02"),
        ("\ud800", "\ufffd"),
        ({1: "a"}, {"1": "a"}),
    ],
)
def test_values_as_json(value: Any, stored: Any) -> None:
    assert jsonable(value) == stored
    assert to_storable(value) == stored


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {(1, 2): 3}, LOOP, nested(101)])
def test_values_that_json_has_not(value: Any) -> None:
    with pytest.raises(ValueError):
        jsonable(value)
    assert to_storable(value) == repr(value)
    assert drop_unstorable({"a": value, "b": 1}) == {"b": 1}


def test_other_values_are_written_as_asked() -> None:
    assert jsonable([Data, b"x"], lambda _: "?") == ["?", "?"]

    def refuse(_: Any) -> str:
        raise TypeError("no")

    with pytest.raises(ValueError, match="no"):
        jsonable(Data, refuse)


@pytest.mark.parametrize(
    ("value", "depth"),
    [
        (1, 1),
        ([], 1),
        ([1], 2),
        ({"a": [{}], "b": 1}, 3),
        (nested(100), 100),
        (nested(101), 101),
        (nested(500), 101),
    ],
)
def test_depths(value: Any, depth: int) -> None:
    assert depth_of(value) == depth


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["", " ", None, 5])
def test_a_call_without_a_name(name: Any) -> None:
    with pytest.raises(AgentError) as error:
        require_tool_name(name, lambda: "x" * 199 + "yz")
    assert ("y" in str(error.value), "z" in str(error.value)) == (True, False)
    assert require_tool_name(" find", lambda: "") == " find"


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        (call(), {"name": "cancel", "args": {"id": "A-1"}, "id": "c1"}),
        ({"name": "f"}, {"args": {}, "id": ""}),
        ({"name": "f", "args": {"a": 1}, "id": 7}, {"args": {"a": 1}, "id": "7"}),
        ({"name": "f", "input": {"a": 1}, "args": {"a": 2}}, {"args": {"a": 2}}),
        ({"name": "f", "args": {"a": 2}, "arguments": None}, {"args": {}}),
        ({"name": "f", "input": {"a": 1}}, {"args": {"a": 1}}),
        ({"name": "f", "arguments": "{oops"}, {"args": None, "raw_args": "{oops"}),
        ({"name": "f", "args": {"a": 1}, "arguments_unknown": True}, {"args": None, "raw_args": None}),
        ({"name": "f", "arguments_unknown": 1}, {"args": {}}),
        ({"name": "f", "attempted": True}, {"attempted": True, "approved": False}),
        ({"name": "f", "approved": True}, {"attempted": False, "approved": True}),
        ({"name": "f", "attempted": 1, "approved": "yes"}, {"attempted": False, "approved": False}),
        ({"name": "f", "agent": {"name": "helper"}}, {"agent": "helper", "extra": {}}),
        ({"name": "f", "function": "x"}, {"name": "f", "extra": {}}),
        ({"name": "f", "index": 1, "type": "x", "more": (1,), "nan": float("nan")}, {"extra": {"more": [1]}}),
    ],
)
@pytest.mark.parametrize("observed", [False, True])
def test_a_call(raw: Any, fields: dict[str, Any], observed: bool) -> None:
    found = read_tool_call(raw, observed=observed)
    assert {name: getattr(found, name) for name in fields} == fields
    assert found.observed is observed


class CallModel(BaseModel):
    name: str = "f"
    id: str | None = None


def test_a_call_as_an_object() -> None:
    assert read_tool_call(CallModel()).id == ""
    own = ToolCall(name="f", args={"a": []})
    copied = read_tool_call(own, observed=True)
    assert copied == own
    assert copied.args is not own.args


@pytest.mark.parametrize("raw", ["f", None, ["f"], {"function": {"name": ""}, "name": "f"}, {"args": {}}])
def test_what_is_no_call(raw: Any) -> None:
    with pytest.raises(AgentError):
        read_tool_call(raw)


def test_calls_are_a_list() -> None:
    assert validate_tool_calls(None) == ()
    assert validate_tool_calls([]) == ()
    assert validate_tool_calls(("a",)) == ("a",)
    wrong: tuple[Any, ...] = ({}, "x", b"x", 5)
    for raw in wrong:
        with pytest.raises(AgentError) as error:
            validate_tool_calls(raw)
        assert type(raw).__name__ in str(error.value)


@pytest.mark.parametrize(
    ("indices", "order"),
    [
        ([1, 0, 2], [1, 0, 2]),
        ([0, 0, 0], [0, 1, 2]),
        ([2, None, 0], [2, 0, 1]),  # stays after the one before it
        ([None, None], [0, 1]),
        ([None, -1], [1, 0]),
        ([1, True, 0], [2, 0, 1]),
        ([1, "0"], [0, 1]),
        ([], []),
    ],
)
def test_calls_in_the_order_of_their_index(indices: list[Any], order: list[int]) -> None:
    calls = [{"at": at, "index": index} for at, index in enumerate(indices)]
    assert [each["at"] for each in sort_by_index(calls)] == order
    assert sort_by_index(list(enumerate(indices)), lambda each: each[1]) == tuple(
        (at, indices[at]) for at in order
    )
    assert sort_by_index(["b", "a"]) == ("b", "a")
    assert validate_tool_calls(calls) == tuple(calls[at] for at in order)


LEGACY = {"name": "cancel", "arguments": '{"id":"A-1"}'}


@pytest.mark.parametrize(
    ("message", "names"),
    [
        ({}, []),
        ({"tool_calls": [call()]}, ["cancel"]),
        ({"function_call": LEGACY}, ["cancel"]),
        ({"tool_calls": [call()], "function_call": LEGACY}, ["cancel"]),
        ({"tool_calls": [LEGACY], "function_call": LEGACY}, ["cancel"]),
        ({"tool_calls": [call()], "function_call": {**LEGACY, "name": "f"}}, ["cancel", "f"]),
        ({"tool_calls": [call()], "function_call": {**LEGACY, "arguments": "{}"}}, ["cancel", "cancel"]),
        ({"tool_calls": [call()], "function_call": {}}, ["cancel"]),
        ({"tool_calls": [{"function": "x"}], "function_call": LEGACY}, [None, "cancel"]),
    ],
)
def test_a_legacy_call_is_none_of_its_own_if_it_is_repeated(message: Any, names: list[Any]) -> None:
    found = [each.get("function", each) for each in collect_tool_calls(message)]
    assert [each["name"] if isinstance(each, dict) else None for each in found] == names


def test_a_legacy_call_has_the_form_of_a_call() -> None:
    assert collect_tool_calls({"function_call": LEGACY}) == ({"type": "function", "function": LEGACY},)
    assert collect_tool_calls({"function_call": "x"}) == ("x",)
    assert collect_tool_calls({"tool_calls": ["x"], "function_call": LEGACY})[0] == "x"


# ── messages to steps ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (says("Hello."), "Hello."),
        ({"content": None}, None),
        ({}, None),
        ({"content": "", "refusal": "No."}, "No."),
        ({"content": "a", "refusal": "No."}, "a"),
        ({"content": [{"type": "refusal", "refusal": "No."}]}, "No."),
        ({"content": None, "refusal": ["No."]}, "['No.']"),
    ],
)
def test_the_text_of_a_step(message: Any, text: str | None) -> None:
    assert parse_step(message).text == text


def test_a_step() -> None:
    message = {
        **asks(text="a"),
        "name": "helper",
        "usage": {"prompt_tokens": 5, "completion_tokens": 1},
        "reasoning": "Hm.",
        "nan": float("nan"),
    }
    step = parse_step(message, observed=True)
    assert (step.text, step.agent, step.extra) == ("a", "helper", {"reasoning": "Hm."})
    assert (step.usage.input_tokens, step.usage.output_tokens) == (5, 1)
    (called,) = step.tool_calls
    assert (called.observed, called.agent, called.result) == (True, "helper", None)
    assert not parse_step(message).tool_calls[0].observed


def test_results_belong_to_the_calls_before_them() -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        result("c1", "lost"),
        asks(call("c1"), call("c2", name="find")),
        result("c2", "two"),
        {"role": "tool", "content": "one", "status": "error"},
        result("c1", "lost"),
        says("Done."),
    ]
    steps = parse_steps(messages)
    assert [step.text for step in steps] == [None, "Done."]
    assert calls_in(steps) == [("cancel", {"id": "A-1"}, "one"), ("find", {"id": "A-1"}, "two")]
    assert [each.result.is_error for each in steps[0].tool_calls if each.result] == [True, False]
    assert all(each.observed for each in steps[0].tool_calls)
    assert parse_steps([]) == ()


def test_a_call_that_has_its_result_waits_for_none() -> None:
    done = made(result=ToolResult(value="own"))
    steps = parse_steps([{"role": "assistant", "tool_calls": [done, call("c2")]}, result("c1", "late")])
    assert [each.result and each.result.value for each in steps[0].tool_calls] == ["own", "late"]


def test_a_result_by_the_name_of_its_tool() -> None:
    messages = [asks(call(""), call("", name="find")), {"role": "tool", "name": "find", "content": "found"}]
    assert [each[2] for each in calls_in(parse_steps(messages))] == [None, "found"]


def test_a_hand_off_holds_until_the_user_speaks() -> None:
    messages = [
        asks(call("h", "{}", "transfer_to_billing")),
        {"role": "tool", "tool_call_id": "h", "content": '{"assistant": "Billing"}'},
        says("I am Billing."),
        user("And?"),
        says("Who am I?"),
    ]
    assert [step.agent for step in parse_steps(messages)] == ["", "Billing", ""]
