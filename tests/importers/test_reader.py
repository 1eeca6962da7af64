"""Recorded conversations, in every shape and with every oddity that logs have."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import Expectation, OutputExpectation, Scenario, ScriptedTurn, Tool
from agenteval.core.trajectory import StopReason, Turn
from agenteval.files.journal import event_to_json
from agenteval.importers.entries import entries_of
from agenteval.importers.expected_scenarios import ExpectedScenarios
from agenteval.importers.identity import FieldPaths, Naming
from agenteval.importers.reader import CoverageTally, ImportWarnings, Reader, conversation_of, require_paths
from agenteval.importers.records import ToolSets
from agenteval.importers.sources import find_sources, is_journal
from agenteval.importers.turns import Coverage
from agenteval.messages.log_entry import IMPORTER_REMEDY, Record, UnreadableRecord
from agenteval.messages.record_paths import MISSING, find_value, is_success, suggest_path
from tests.support.recorded import read
from tests.support.verdict_runs import FAIL, PASS, events_of


def turns_of(*messages: Any) -> tuple[Turn, ...]:
    return read({"messages": list(messages)}).parsed.trajectory.all_turns


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def agent(text: Any = None, *calls: Any, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {}), **more}


def call(name: str, arguments: Any = "{}", id: str | None = "c") -> dict[str, Any]:
    raw = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return raw if id is None else {**raw, "id": id}


def result(text: Any, id: str | None = "c", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": text, **({} if id is None else {"tool_call_id": id}), **more}


def told(turns: tuple[Turn, ...]) -> list[tuple[str, str, list[tuple[str, Any, Any]]]]:
    """User, answer, and calls with arguments and results."""
    return [
        (t.user, t.answer, [(c.name, c.args, c.result.value if c.result else None) for c in t.tool_calls])
        for t in turns
    ]


# ── calls and results ────────────────────────────────────────────────────────────────────────────


def test_what_is_read_is_as_if_validated() -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 2}
    (turn,) = turns_of(
        user("Where is it?"),
        agent(None, call("find", '{"id": [5]}'), usage=usage),
        result("Here."),
        agent("There."),
    )
    assert type(turn).model_validate_json(turn.model_dump_json(exclude_unset=True)) == turn
    step = turn.steps[0]
    assert turn.model_fields_set == {"user", "steps", "error", "evidence", "unplaced"}
    assert step.model_fields_set == {"text", "tool_calls", "usage"}
    assert turn.steps[1].model_fields_set == {"text", "tool_calls"}
    assert step.tool_calls[0].model_fields_set == {"name", "args", "raw_args", "id", "observed", "result"}
    assert step.extra is not turn.steps[1].extra  # who changes one changes no other
    other = turn.model_copy(update={"script": 0})
    assert "script" not in turn.model_fields_set  # a copy leaves it as it was
    assert other.script == 0


def test_calls_get_their_results_and_are_observed() -> None:
    (turn,) = turns_of(user("Hi"), agent("Let me see.", call("f", '{"a": 1}')), result("r"), agent("Done."))
    assert told((turn,)) == [("Hi", "Done.", [("f", {"a": 1}, "r")])]
    assert turn.steps[0].text == "Let me see."
    assert turn.tool_calls[0].observed


def test_an_id_that_is_used_again_pairs_by_position() -> None:
    turns = turns_of(
        user("1"),
        agent(None, call("f", id="x")),
        result("first", "x"),
        agent(None, call("g", id="x")),
        result("second", "x"),
        agent("ok"),
        user("2"),
        agent(None, call("h", id="x"), call("i", id="x")),
        result("third", "x"),
        result("fourth", "x"),
        agent("ok"),
    )
    assert [(c.name, c.result.text) for t in turns for c in t.tool_calls if c.result] == [
        ("f", "first"),
        ("g", "second"),
        ("h", "third"),
        ("i", "fourth"),
    ]


@pytest.mark.parametrize(
    ("ids", "results", "expected"),
    [
        ((None, None), [("r1", None), ("r2", None)], ["r1", "r2"]),
        (("a", "b"), [("r2", "b"), ("r1", "a")], ["r1", "r2"]),
        (("a", "b"), [("r1", "no-such"), ("r2", "neither")], ["r1", "r2"]),
        (("a", None), [("r1", "a"), ("r2", None)], ["r1", "r2"]),
        (("a", "b"), [("r2", "b")], [None, "r2"]),
    ],
)
def test_parallel_calls(ids: Any, results: Any, expected: list[str | None]) -> None:
    (turn,) = turns_of(
        user("Hi"),
        agent(None, *(call("f", id=i) for i in ids)),
        *(result(text, i) for text, i in results),
        agent("ok"),
    )
    assert [c.result.text if c.result else None for c in turn.tool_calls] == expected
    assert len(turn.steps) == 2


def test_a_result_without_an_id_goes_by_the_name() -> None:
    (turn,) = turns_of(
        user("Hi"),
        agent(None, call("f", id=None), call("g", id=None)),
        result("of g", None, name="g"),
        result("of f", None, name="f"),
        agent("ok"),
    )
    assert [(c.name, c.result.text) for c in turn.tool_calls if c.result] == [("f", "of f"), ("g", "of g")]


def test_a_result_without_a_call_is_a_fact_and_no_call() -> None:
    read_ = read({"messages": [user("Hi"), result("42 apples", name="count"), agent("There are 42.")]})
    assert told(read_.parsed.trajectory.turns) == [("Hi", "There are 42.", [])]
    assert read_.parsed.orphans == ("The tool count answered (its call is not in the record): 42 apples",)
    assert [note.partition(":")[0] for note in read_.notes] == [
        "the call for a tool result from 'count' was not recognized",
        "a tool result without its call is kept as a fact",
    ]
    assert read_.parsed.trajectory.turns[0].unplaced == (
        "the call for a tool result from 'count': 42 apples",
    )


@pytest.mark.parametrize(
    ("arguments", "args", "raw"),
    [
        ('{"a": 1}', {"a": 1}, None),
        ({"a": 1}, {"a": 1}, None),
        ("{'a': 1, 'b': None}", {"a": 1, "b": None}, "{'a': 1, 'b': None}"),
        ("", {}, None),
        (None, {}, None),
        ('{"a": ', None, '{"a": '),
        ("{b'a': 1}", None, "{b'a': 1}"),  # Python's, and nothing that JSON could hold
        ("{'a': 1if 2 else 3}", None, "{'a': 1if 2 else 3}"),
        ([1], None, "[1]"),
    ],
)
def test_arguments_however_they_are_written(arguments: Any, args: Any, raw: Any) -> None:
    (turn,) = turns_of(user("Hi"), agent(None, call("f", arguments)), result("r"), agent("ok"))
    assert (turn.tool_calls[0].args, turn.tool_calls[0].raw_args) == (args, raw)


def test_a_result_keeps_its_value_and_that_it_is_an_error() -> None:
    (turn,) = turns_of(
        user("Hi"),
        agent(None, call("f", id="1"), call("g", id="2"), call("h", id="3")),
        result({"x": [1]}, "1"),
        result([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "2"),
        result(None, "3", status="error"),
        agent("ok"),
    )
    assert [c.result.value for c in turn.tool_calls if c.result] == [{"x": [1]}, "a\nb", None]
    assert [c.result.is_error for c in turn.tool_calls if c.result] == [False, False, True]


# ── turns ────────────────────────────────────────────────────────────────────────────────────────


def test_several_user_messages_in_a_row_are_one_turn() -> None:
    assert told(turns_of(user("a"), user("b"), agent("c"))) == [("a\nb", "c", [])]


def test_an_agent_that_greets_first_has_a_turn_with_an_empty_message() -> None:
    assert told(turns_of(agent("Welcome!"), user("Hi"), agent("Hello."))) == [
        ("", "Welcome!", []),
        ("Hi", "Hello.", []),
    ]


def test_a_last_message_without_an_answer_is_cut_off() -> None:
    trajectory = read([user("a"), agent("b"), user("c")]).parsed.trajectory
    assert [turn.user for turn in trajectory.turns] == ["a"]
    assert trajectory.unfinished
    assert trajectory.unfinished.error == "the recording ends before an answer"


def test_what_ends_in_a_tool_is_cut_off_and_one_turn_alone_is_taken_as_it_stands() -> None:
    first = [user("a"), agent("b")]
    ending = [user("c"), agent(None, call("transfer")), result("done")]
    long, short = read(first + ending).parsed, read(ending).parsed
    assert long.trajectory.unfinished
    assert long.trajectory.unfinished.tool_calls[0].name == "transfer"
    assert not long.is_partial
    assert [len(short.trajectory.turns), short.trajectory.unfinished, short.is_partial] == [1, None, True]


def test_text_beside_the_last_call_is_an_answer() -> None:
    talk = read([user("c"), agent("I hand you over.", call("transfer")), result("done")]).parsed
    assert [turn.answer for turn in talk.trajectory.turns] == ["I hand you over."]
    assert not talk.is_partial


def test_a_silent_turn_in_the_middle_makes_the_record_partial_and_an_empty_message_does_not() -> None:
    silent = [user("a"), agent(None, call("show")), result("shown"), user("b"), agent("c")]
    assert read(silent).parsed.is_partial
    assert not read([user("a"), agent(""), user("b"), agent("c")]).parsed.is_partial


def test_system_and_developer_messages_are_the_policy() -> None:
    record = {
        "messages": [
            {"role": "system", "content": "Be brief."},
            user("a"),
            {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
            agent("b"),
        ],
        "system_prompt": "Be exact.",
    }
    assert read(record).policy == "Be brief.\n\nBe kind.\n\nBe exact."


def test_unknown_roles_and_odd_messages_are_skipped_and_told() -> None:
    odd = [{"role": "critic", "content": "?"}, None, "text", 7, {}]
    read_ = read([user("a"), *odd, agent("b"), *[user("a"), agent("b")] * 3])
    assert told(read_.parsed.trajectory.turns) == [("a", "b", [])] * 4
    assert [note.partition(":")[0] for note in read_.notes] == [
        "a message with unknown role 'critic' was not recognized",
        "a message that is null instead of an object was not recognized",
        "a message that is a string instead of an object was not recognized",
        "a message that is a number instead of an object was not recognized",
        "an entry of unknown type was not recognized",
    ]
    assert read_.parsed.coverage == (13, 8)
    assert [len(turn.unplaced) for turn in read_.parsed.trajectory.turns] == [5, 0, 0, 0]


def test_a_record_of_which_most_or_every_answer_is_unread_is_unreadable() -> None:
    thought = {"role": "Orchestrator (thought)", "content": "Hm."}
    with pytest.raises(AuthorError, match=r"only 2 of 5 messages could be parsed: .*Orchestrator.*\(3×\)"):
        read([user("a"), *[thought] * 3, agent("b")])
    assert read([user("a"), *[thought] * 2, agent("b")]).parsed.coverage == (4, 2)
    called = [agent(None, call("f", "{}")), result("r")]
    with pytest.raises(AuthorError, match="no answer from the agent could be parsed"):
        read([user("a"), *called, thought])
    read([user("a"), *called])


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        (7, "7"),
        ({"text": "a"}, "a"),
        ([], ""),
        (["a", {"type": "text", "text": "b"}, {"text": "c"}, None], "a\nb\nc"),
        ([{"type": "image_url", "image_url": {}}, {"type": "text", "text": "?"}], "[image_url]?"),
        ([{"type": "thinking", "thinking": "hm"}, {"type": "output_text", "text": "x"}], "x"),
    ],
)
def test_content_that_is_no_text(content: Any, text: str) -> None:
    assert [turn.answer for turn in turns_of(user("a"), agent(content))] == [text]
    assert [turn.user for turn in turns_of(user(content), agent("b"))] == [text]


@pytest.mark.parametrize("messages", [[], [user("a")], [{"role": "system", "content": "x"}]])
def test_a_record_without_an_agent_is_no_conversation(messages: list[Any]) -> None:
    with pytest.raises(AuthorError) as error:
        read({"messages": messages})
    assert "the record contains no" in str(error.value)


def test_usage_is_read_where_a_message_tells_it() -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3}
    (turn,) = turns_of(user("a"), agent("b", usage=usage))
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (7, 3)


# ── shapes ───────────────────────────────────────────────────────────────────────────────────────

EXPECTED = [("Weather?", "It is 25.", [("get_weather", {"city": "Rome"}, '{"temp": 25}')])]

ASKED_AND_TOLD = [agent(None, call("get_weather", '{"city": "Rome"}')), result('{"temp": 25}')]

SHAPES: dict[str, Any] = {
    "langchain": {
        "history": [
            {"type": "human", "content": "Weather?"},
            {
                "type": "ai",
                "content": "",
                "tool_calls": [{"name": "get_weather", "args": {"city": "Rome"}, "id": "1"}],
            },
            {"type": "tool", "content": '{"temp": 25}', "tool_call_id": "1"},
            {"type": "ai", "content": "It is 25."},
        ]
    },
    "langchain, below data": {
        "messages": [
            {"type": "human", "data": {"content": "Weather?"}},
            {
                "type": "ai",
                "data": {
                    "content": [
                        {"type": "tool_use", "id": "1", "name": "get_weather", "input": {"city": "Rome"}}
                    ],
                    "tool_calls": [{"name": "get_weather", "args": {"city": "Rome"}, "id": "1"}],
                },
            },
            {"type": "tool", "data": {"content": '{"temp": 25}', "tool_call_id": "1"}},
            {
                "lc": 1,
                "type": "constructor",
                "id": ["langchain", "schema", "messages", "AIMessage"],
                "kwargs": {"content": "It is 25."},
            },
        ]
    },
    "anthropic": {
        "system": "x",
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "One moment."},
                    {"type": "tool_use", "id": "t", "name": "get_weather", "input": {"city": "Rome"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": '{"temp": 25}'}],
                    }
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "It is 25."}]},
        ],
    },
    "responses": {
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "name": "get_weather", "arguments": '{"city": "Rome"}', "call_id": "1"},
            {"type": "function_call_output", "call_id": "1", "output": '{"temp": 25}'},
        ],
        "output": [
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It is 25."}],
            }
        ],
    },
    "google": {
        "contents_of_no_key": 1,
        "chat": [
            {"role": "user", "parts": [{"text": "Weather?"}]},
            {
                "role": "model",
                "parts": [{"functionCall": {"name": "get_weather", "args": {"city": "Rome"}}}],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "get_weather", "response": '{"temp": 25}'}}],
            },
            {"role": "model", "parts": [{"text": "It is 25."}]},
        ],
    },
    "legacy functions": [
        user("Weather?"),
        agent(None, function_call={"name": "get_weather", "arguments": '{"city": "Rome"}'}),
        {"role": "function", "name": "get_weather", "content": '{"temp": 25}'},
        agent("It is 25."),
    ],
    "a logged request": {
        "messages": [
            user("Weather?"),
            agent(None, call("get_weather", '{"city": "Rome"}')),
            result('{"temp": 25}'),
        ],
        "response": {"choices": [{"message": {"role": "assistant", "content": "It is 25."}}]},
    },
    "items of the agents library in JavaScript": [
        user("Weather?"),
        {
            "type": "function_call",
            "id": "fc_1",
            "callId": "1",
            "name": "get_weather",
            "arguments": '{"city": "Rome"}',
        },
        {
            "type": "function_call_result",
            "callId": "1",
            "name": "get_weather",
            "output": {"type": "text", "text": '{"temp": 25}'},
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "It is 25."}],
        },
    ],
    "a row of an evaluation": {
        "query": "Weather?",
        "response": [
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool_call",
                        "tool_call_id": "1",
                        "name": "get_weather",
                        "arguments": {"city": "Rome"},
                    }
                ],
            },
            {
                "role": "tool",
                "tool_call_id": "1",
                "content": [{"type": "tool_result", "tool_result": '{"temp": 25}'}],
            },
            agent("It is 25."),
        ],
    },
    "a cassette of a test": {
        "request": {"body": json.dumps({"messages": [user("Weather?"), *ASKED_AND_TOLD]})},
        "response": {
            "status": {"code": 200, "message": "OK"},
            "body": {"string": json.dumps({"choices": [{"message": agent("It is 25.")}]})},
        },
    },
    "a cassette with a body that was read": {
        "request": {"parsed_body": {"messages": [user("Weather?"), *ASKED_AND_TOLD]}},
        "response": {
            "parsed_body": {"role": "assistant", "content": [{"type": "text", "text": "It is 25."}]}
        },
    },
    "a cassette that says what its body is": {
        "request": {"body": {"type": "json", "content": {"messages": [user("Weather?"), *ASKED_AND_TOLD]}}},
        "response": {
            "status": 200,
            "body": {"type": "json", "content": {"choices": [{"message": agent("It is 25.")}]}},
        },
    },
    "Bedrock's conversations": {
        "request": {
            "messages": [
                {"role": "user", "content": [{"text": "Weather?"}]},
                {
                    "role": "assistant",
                    "content": [
                        {"toolUse": {"toolUseId": "1", "name": "get_weather", "input": {"city": "Rome"}}}
                    ],
                },
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": "1", "content": '{"temp": 25}'}}],
                },
            ]
        },
        "response": {"output": {"message": {"role": "assistant", "content": [{"text": "It is 25."}]}}},
    },
    "nested": {
        "trajectory": {
            "messages": [
                user("Weather?"),
                agent(None, call("get_weather", '{"city": "Rome"}')),
                result('{"temp": 25}'),
                agent("It is 25."),
            ]
        }
    },
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_common_shapes_say_the_same(shape: str) -> None:
    read_ = read(SHAPES[shape])
    assert told(read_.parsed.trajectory.turns) == EXPECTED
    assert not read_.notes


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    "declared",
    [
        [{"type": "function", "function": {"name": "f", "description": "d", "parameters": SCHEMA}}],
        [{"type": "function", "name": "f", "description": "d", "parameters": SCHEMA}],
        [{"name": "f", "description": "d", "input_schema": SCHEMA}],
        [{"functionDeclarations": [{"name": "f", "description": "d", "parameters": SCHEMA}]}],
        [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": SCHEMA}}}],
        {"f": {"description": "d", "parameters": SCHEMA}},
        [{"name": "f", "type": "function", "description": "d", "parameters": SCHEMA}],
        json.dumps([{"name": "f", "description": "d", "parameters": SCHEMA}]),
    ],
)
def test_tools_however_they_are_declared(declared: Any) -> None:
    read_ = read({"messages": [user("a"), agent("b")], "tools": declared})
    assert read_.tools == {"f": Tool(description="d", parameters=SCHEMA)}


def test_a_query_and_its_response_may_be_texts() -> None:
    read_ = read({"query": "Weather?", "response": "It is 25.", "tool_definitions": ["f"]})
    assert told(read_.parsed.trajectory.turns) == [("Weather?", "It is 25.", [])]
    assert set(read_.tools) == {"f"}


def test_a_declaration_that_is_none_is_told() -> None:
    read_ = read({"messages": [user("a"), agent("b")], "tools": [None, {"x": 1}, "g"]})
    assert set(read_.tools) == {"g"}
    assert read_.notes == ("a tool declaration could not be parsed and was ignored",)


@pytest.mark.parametrize(
    "record", [1, "x", None, {}, {"prompt": "x"}, {"mesages": [1]}, [1, 2], {"messages": 3}]
)
def test_what_is_no_conversation_says_so(record: Any) -> None:
    with pytest.raises(AuthorError) as error:
        read(record)
    assert "message" in str(error.value) or "expected a conversation" in str(error.value)


@pytest.mark.parametrize(
    ("record", "said", "unsaid"),
    [
        (
            {"id": 1, "messages": {"a": 1}},
            "expected a list of messages in 'messages', which is an object",
            "did you",
        ),
        ({"input": "Hi"}, "expected a list of messages in 'input', which is a string", "did you"),
        (
            {"role": "user", "content": "Hi"},
            "store the whole conversation, not a single message, as one",
            "did you",
        ),
        ({"from": "human", "value": "Hi"}, "found from, value; write an importer", "did you"),
    ],
)
def test_what_is_wrong_with_messages_is_said(record: Any, said: str, unsaid: str) -> None:
    with pytest.raises(AuthorError) as error:
        read(record)
    assert said in str(error.value)
    assert unsaid not in str(error.value)


def test_a_declaration_without_a_name_declares_nothing() -> None:
    for declared in ({"type": "function"}, {"type": "function", "function": None}, {"type": "custom"}):
        read_ = read({"messages": [user("a"), agent("b")], "tools": [declared, {"type": "web_search"}]})
        assert set(read_.tools) == {"web_search"}
        assert read_.notes == ("a tool declaration could not be parsed and was ignored",)


def test_a_slip_in_the_key_is_pointed_out() -> None:
    with pytest.raises(AuthorError) as error:
        read({"mesages": []})
    assert "did you mean 'messages'?" in str(error.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["role", "content", "type", "tool_calls", "function", "name", "text", "id", "parts"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
roles = st.sampled_from(["user", "assistant", "tool", "system", "x", None, 3])
messages = st.lists(
    json_values | st.fixed_dictionaries({"role": roles, "content": json_values, "tool_calls": json_values}),
    max_size=6,
)


@given(messages, json_values)
@settings(max_examples=300)
def test_no_json_breaks_the_reading(found: list[Any], tools: Any) -> None:
    try:
        read_ = read({"messages": found, "tools": tools})
    except AuthorError:
        return
    assert read_.parsed.trajectory.model_dump_json()


# ── files ────────────────────────────────────────────────────────────────────────────────────────

GOOD = json.dumps({"id": "a", "messages": [user("a"), agent("b")]})


def entries(path: Path) -> list[Any]:
    (source,) = find_sources([str(path)], path.parent)
    return list(entries_of(source))


def test_lines_with_everything_that_editors_leave_behind(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + f"{GOOD}\r\n\r\n   \r\n{GOOD}".encode())
    assert [entry.where for entry in entries(path)] == ["log.jsonl:1", "log.jsonl:4"]


@pytest.mark.parametrize("name", ["log.jsonl.gz", "log.jsonl"])
def test_packed_data_are_known_by_their_beginning(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(f"{GOOD}\n{GOOD}\n".encode()))
    assert [type(entry) for entry in entries(path)] == [Record, Record]


def test_damaged_packed_data_give_what_comes_before(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl.gz"
    lines = "".join(json.dumps({"n": n, "x": str(n) * 50}) + "\n" for n in range(2000))
    path.write_bytes(gzip.compress(lines.encode())[:-400])
    found = entries(path)
    assert len(found) > 10
    assert isinstance(found[-1], UnreadableRecord)
    assert "the compressed data is cut off" in found[-1].reason


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "not JSON: Expecting property name enclosed in double quotes at column 2"),
        (b"hello", f"not JSON: Expecting value at column 1; {IMPORTER_REMEDY}"),
        (b"caf\xe9", "not UTF-8 at byte 4 of the line"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": 1}}', "not JSON: Extra data at column 9"),
        (b"1" * 5000, "not JSON: Exceeds the limit (4300 digits)"),
    ],
)
def test_a_line_that_cannot_be_read_is_told_and_the_others_are_read(
    tmp_path: Path, line: bytes, why: str
) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(f"{GOOD}\n".encode() + line + f"\n{GOOD}\n".encode())
    found = entries(path)
    assert [type(entry) for entry in found] == [Record, UnreadableRecord, Record]
    assert found[1].where == "log.jsonl:2"
    assert found[1].reason.startswith(why)


def test_half_a_surrogate_pair_and_nan_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"a": "\\ud83d", "b": NaN, "c": "\\ud83d\\ude00"}\n{}\n', encoding="utf-8")
    assert entries(path)[0].value == {"a": "\ufffd", "b": None, "c": "\U0001f600"}


def test_a_line_of_many_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    record = {"messages": [user("x" * 8_000_000), agent("b")]}
    path.write_text(json.dumps(record) + "\n" + GOOD, encoding="utf-8")
    assert [len(entry.value["messages"][0]["content"]) for entry in entries(path)] == [8_000_000, 1]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_with_a_list_of_conversations(tmp_path: Path, indent: int | None) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps([json.loads(GOOD)] * 3, indent=indent), encoding="utf-8")
    found = entries(path)
    assert [entry.value["id"] for entry in found] == ["a", "a", "a"]
    line = len(json.dumps([json.loads(GOOD)], indent=indent).splitlines()) - 2
    places = ["log.json:1"] * 3 if indent is None else [f"log.json:{2 + n * line}" for n in range(3)]
    assert [entry.where for entry in found] == places


@pytest.mark.parametrize("record", [json.loads(GOOD), json.loads(GOOD)["messages"]])
def test_a_document_that_is_one_conversation(tmp_path: Path, record: Any) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps(record, indent=1), encoding="utf-8")
    assert [entry.value for entry in entries(path)] == [record]


def test_a_document_with_its_conversations_below_a_key(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(json.dumps({"version": 1, "conversations": [json.loads(GOOD)] * 2}), encoding="utf-8")
    assert len(entries(path)) == 2


def test_a_broken_document_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text('[\n  {"messages": []},\n  {"messages": ]}\n]', encoding="utf-8")
    lost = UnreadableRecord("log.json:3", "not JSON: Expecting value at column 16", hides_rest=True)
    assert entries(path) == [Record({"messages": []}, "log.json:2"), lost]


@pytest.mark.parametrize("separator", [",\n", ",", "\n,\n"])
def test_a_document_with_a_conversation_a_line(tmp_path: Path, separator: str) -> None:
    path = tmp_path / "log.json"
    path.write_text("[\n" + separator.join([GOOD] * 3) + "\n]", encoding="utf-8")
    assert [entry.value["id"] for entry in entries(path)] == ["a", "a", "a"]


def test_a_torn_first_line_does_not_make_a_document(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f'{{"id": "torn", "mess\n{GOOD}\n{GOOD}\n', encoding="utf-8")
    assert [type(entry) for entry in entries(path)] == [UnreadableRecord, Record, Record]


def test_a_folder_stands_for_its_records(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.json", "c.jsonl.gz", "notes.md", "x.yaml"):
        (tmp_path / name).write_text(GOOD, encoding="utf-8")
    assert [source.display_name for source in find_sources(["."], tmp_path)] == [
        "a.json",
        "b.jsonl",
        "c.jsonl.gz",
    ]


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("utf16.jsonl", GOOD.encode("utf-16"), "UTF-16"),
        ("x.zst", b"\x28\xb5\x2f\xfd123", "zstd"),
        ("x.zip", b"PK\x03\x04", "zip"),
    ],
)
def test_what_cannot_be_read_at_all_says_what_to_do(
    tmp_path: Path, name: str, data: bytes, said: str
) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(AuthorError) as error:
        find_sources([name], tmp_path)
    assert said in str(error.value)


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "logs.jsonl").write_text(GOOD, encoding="utf-8")
    with pytest.raises(AuthorError) as error:
        find_sources(["log.jsonl"], tmp_path)
    assert "did you mean 'logs.jsonl'?" in str(error.value)


# ── dotted paths ─────────────────────────────────────────────────────────────────────────────────

RECORD = {"a": {"b": [10, {"c": None}]}, "x.y": 1, "l": [[1, 2]], "labels": {"reward": 1.0}}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b.0", 10),
        ("a.b.1.c", None),
        ("a.b.-1.c", None),
        ("x.y", 1),
        ("l.0.1", 2),
        ("a.b.2", MISSING),
        ("a.z", MISSING),
        ("a.b.x", MISSING),
        ("labels.reward.x", MISSING),
        ("", MISSING),
    ],
)
def test_find(path: str, value: Any) -> None:
    assert find_value(RECORD, path) is value or find_value(RECORD, path) == value


@pytest.mark.parametrize(
    ("path", "said"),
    [("labels.rewrd", "'labels.reward'"), ("reward", "'labels.reward'"), ("zzz", "available: ")],
)
def test_suggestion(path: str, said: str) -> None:
    assert said in suggest_path(RECORD, path)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (1, True),
        (1.0, True),
        ("true", True),
        ("1.0", True),
        (False, False),
        (0, False),
        (0.99, False),
        (2, False),
        ("yes", False),
        ([1], False),
    ],
)
def test_outcomes(value: Any, expected: bool) -> None:
    assert is_success(value) is expected


# ── names ────────────────────────────────────────────────────────────────────────────────────────


def write(tmp_path: Path, *records: Any, name: str = "log.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def talk(**more: Any) -> dict[str, Any]:
    return {"messages": [user("a"), agent("b")], **more}


def read_all(
    path: Path, *, paths: FieldPaths | None = None, suite: ExpectedScenarios | None = None
) -> list[RecordedConversation]:
    sources = find_sources([str(path)], path.parent)
    reader = Reader(
        sources, Naming(paths or FieldPaths()), lambda config, name: "", suite or ExpectedScenarios()
    )
    return list(reader)


def keys(found: list[RecordedConversation]) -> list[tuple[str, str, int, str]]:
    return [(r.key.scenario, r.key.agent, r.key.epoch, r.key.variant) for r in found]


def test_names_come_from_the_record_or_its_place(tmp_path: Path) -> None:
    path = write(
        tmp_path, talk(id="x"), talk(), talk(id=7, model="gpt-4o"), talk(id="x"), talk(agent={"name": "bot"})
    )
    found = read_all(path)
    assert keys(found) == [
        ("x", "recorded", 0, ""),
        ("log.jsonl:2", "recorded", 0, ""),
        ("7", "gpt-4o", 0, ""),
        ("x#2", "recorded", 0, ""),
        ("log.jsonl:5", "bot", 0, ""),
    ]
    assert "ID is used twice" in found[3].notes[0]
    assert [r.where for r in found] == [f"log.jsonl:{n}" for n in range(1, 6)]


def test_scenarios_and_epochs_by_path(tmp_path: Path) -> None:
    labels = [{"t": 1, "n": 1}, {"t": 1, "n": 0}, {"t": "1", "n": "2"}, {"t": None}, {"t": 1.0, "n": "x"}]
    path = write(tmp_path, *(talk(id=f"c{n}", labels=each) for n, each in enumerate(labels)))
    found = read_all(path, paths=FieldPaths("labels.t", "labels.n"))
    assert keys(found) == [
        ("1", "recorded", 1, "c0"),
        ("1", "recorded", 0, "c1"),
        ("1", "recorded", 2, "c2"),
        ("c3", "recorded", 0, ""),
        ("1", "recorded", 3, "c4"),
    ]
    assert [len(r.notes) for r in found] == [0, 0, 0, 2, 1]


def test_epochs_are_counted_where_nothing_tells_them(tmp_path: Path) -> None:
    path = write(tmp_path, *(talk(id=f"c{n}", t=n % 2) for n in range(4)))
    assert [r.key.epoch for r in read_all(path, paths=FieldPaths("t"))] == [0, 0, 1, 1]


def test_outcomes_become_checks(tmp_path: Path) -> None:
    path = write(tmp_path, talk(r=1), talk(r=0.5), talk(r=None), talk())
    checks = [check for r in read_all(path, paths=FieldPaths(outcome="r")) for check in r.checks]
    assert [check.passed for check in checks] == [True, False, None, None]
    assert checks[1].detail == "r is 0.5"


def test_what_cannot_be_read_has_a_place_in_the_order(tmp_path: Path) -> None:
    path = write(tmp_path, talk(id="x"), {"id": "y"}, talk(id="z"))
    found = read_all(path)
    assert [r.key.scenario for r in found] == ["x", "log.jsonl:2", "z"]
    stop = found[1].trajectory.stop
    assert stop
    assert (stop.reason, stop.fault) == (StopReason.UNREADABLE, "recording")
    assert stop.detail.startswith("log.jsonl:2: the record contains no messages")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"--outcome-from": "labels.rewrd"}, "did you mean 'labels.reward'?"),
        ({"--scenario-from": "labels"}, "points to an object; expected a plain value"),
    ],
)
def test_a_path_that_leads_nowhere_is_refused(tmp_path: Path, options: dict[str, str], said: str) -> None:
    path = write(tmp_path, talk(labels={"reward": 1}), talk())
    with pytest.raises(AuthorError) as error:
        require_paths(find_sources([str(path)], tmp_path), options)
    assert said in str(error.value)
    assert "log.jsonl:1" in str(error.value)


def test_a_path_may_be_missing_in_the_first_record(tmp_path: Path) -> None:
    path = write(tmp_path, talk(), talk(labels={"reward": 1}))
    require_paths(find_sources([str(path)], tmp_path), {"--outcome-from": "labels.reward"})


# ── expectations ─────────────────────────────────────────────────────────────────────────────────


def test_a_suite_adds_expectations_facts_and_marks(tmp_path: Path) -> None:
    declared = [{"name": "f", "parameters": SCHEMA}]
    path = write(tmp_path, talk(id="s", tools=declared), talk(id="other"))
    expected = Scenario(
        id="s",
        facts=("true",),
        tools={"f": Tool(writes=True, returns=1), "g": Tool(reads=True)},
        turns=(ScriptedTurn(user="a", expect=Expectation(output=OutputExpectation(contains=("b",)))),),
    )
    suite = ExpectedScenarios([expected, Scenario(id="unmet")])
    first, second = read_all(path, suite=suite)
    assert first.scenario.tools == {"f": Tool(parameters=SCHEMA, writes=True), "g": Tool(reads=True)}
    assert first.scenario.facts == ("true",)
    assert first.trajectory.turns[0].script == 0
    assert second.scenario.tools == {}
    assert list(suite.unmatched_warnings()) == [
        "scenario unmet in --scenarios did not match any conversation",
        "scenario other of the conversations not found in --scenarios: nothing was expected there",
    ]


def test_an_expected_turn_that_nobody_said_is_told(tmp_path: Path) -> None:
    expect = Expectation(output=OutputExpectation(contains=("b",)))
    suite = ExpectedScenarios([Scenario(id="s", turns=(ScriptedTurn(user="other words", expect=expect),))])
    (found,) = read_all(write(tmp_path, talk(id="s")), suite=suite)
    assert found.trajectory.turns[0].script is None
    assert [(check.name, check.passed) for check in found.checks] == [("turns", None)]


def test_words_of_a_turn_are_compared_without_case_and_spaces(tmp_path: Path) -> None:
    expect = Expectation(output=OutputExpectation(contains=("b",)))
    suite = ExpectedScenarios([Scenario(id="s", turns=(ScriptedTurn(user=" A\n", expect=expect),))])
    (found,) = read_all(write(tmp_path, talk(id="s")), suite=suite)
    assert found.trajectory.turns[0].script == 0
    assert not found.checks


def test_an_id_that_an_expectation_has_may_come_again(tmp_path: Path) -> None:
    records = talk(id="s"), talk(id="s"), talk(id="s", agent="v2"), talk(id="t"), talk(id="t")
    path = write(tmp_path, *records)
    reader = Reader(
        find_sources([str(path)], path.parent),
        Naming(FieldPaths(), scenarios=frozenset({"s"})),
        lambda config, name: "",
    )
    assert keys(list(reader)) == [
        ("s", "recorded", 0, ""),
        ("s", "recorded", 1, "s#2"),
        ("s", "v2", 0, ""),
        ("t", "recorded", 0, ""),
        ("t#2", "recorded", 0, ""),
    ]


def test_a_journal_is_known_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"type":"run_started","x":1}\n', encoding="utf-8")
    (source,) = find_sources([str(path)], tmp_path)
    assert is_journal(source)


# ── one file after another ───────────────────────────────────────────────────────────────────────


def reader_of(*paths: Path, **more: Any) -> Reader:
    return Reader(find_sources(map(str, paths), paths[0].parent), Naming(), lambda run, name: "", **more)


def write_journal(tmp_path: Path, name: str, run_id: str, *, whole: bool = True) -> Path:
    begun, *rest = events_of({"x": [PASS], "y": [FAIL]})
    events = [begun.model_copy(update={"run_id": run_id}), *rest]
    path = tmp_path / name
    path.write_text("".join(f"{event_to_json(each)}\n" for each in events[: None if whole else -1]))
    return path


def test_files_are_read_in_their_order_and_ids_are_unique_across_them(tmp_path: Path) -> None:
    one = write(tmp_path, talk(id="b"), talk(id="a"), name="1.jsonl")
    two = write(tmp_path, talk(id="a"), 7, talk(id="c"), name="2.jsonl")
    reader = reader_of(one, two)
    assert [r.key.scenario for r in reader] == ["b", "a", "a#2", "2.jsonl:2", "c"]
    (warning,) = reader.warnings.texts()
    assert "2.jsonl:1" in warning


def test_samples_of_journals_keep_their_keys_unless_two_runs_have_the_same(tmp_path: Path) -> None:
    paths = [write_journal(tmp_path, f"{id}.jsonl", id, whole=id == "r1") for id in ("r1", "r2")]
    log = write(tmp_path, talk(id="x"), name="log.jsonl")
    found = list(reader_of(*paths, log))
    assert [(r.key.scenario, r.key.variant) for r in found] == [
        ("x", ""),
        ("y", ""),
        ("x", "r2"),
        ("y", "r2#2"),
        (found[4].where, ""),
        ("x", ""),
    ]
    assert [r.is_readable for r in found] == [True, True, True, True, False, True]
    assert found[0].trajectory.stop


@pytest.mark.parametrize(("text", "is_told"), [("", True), ("\n \n", True), ("[]", True), ("7\n", False)])
def test_a_file_with_nothing_in_it_is_told(tmp_path: Path, text: str, is_told: bool) -> None:
    (tmp_path / "empty.jsonl").write_text(text)
    reader = reader_of(write(tmp_path, talk()), tmp_path / "empty.jsonl")
    assert len(list(reader)) == (1 if is_told else 2)
    assert [("empty.jsonl" in each) for each in reader.warnings.texts()] == [True] * is_told


def test_how_many_messages_of_readable_records_were_read(tmp_path: Path) -> None:
    odd = {"role": "critic", "content": "?"}
    partly = {"messages": [user("a"), odd, agent("b")]}
    reader = reader_of(write(tmp_path, talk(), partly, {"messages": [odd] * 9}))
    list(reader)
    assert not reader.coverage.is_whole
    assert [part in reader.coverage.text for part in ("4 of 5", "80.0%", "log.jsonl:2 (67%)")] == [True] * 3
    assert ":1" not in reader.coverage.text
    assert ":3" not in reader.coverage.text


@pytest.mark.parametrize(
    ("counts", "is_whole", "shown"),
    [
        ([], True, []),
        ([(0, 0)], True, []),
        ([(2, 2)], True, ["2 messages"]),
        ([(1000, 1000), (5, 5)], True, ["1,005 messages"]),
        ([(3, 2)], False, ["2 of 3 messages", "66.7%", "log:1 (67%)"]),
        ([(1, 0)], False, ["0 of 1 message ", "0.0%", "log:1 (0%)"]),
    ],
)
def test_the_share_of_messages_that_were_read(counts: Any, is_whole: bool, shown: list[str]) -> None:
    tally = CoverageTally()
    for line, (messages, read_) in enumerate(counts, 1):
        tally.add(Coverage(messages, read_), f"log:{line}")
    assert tally.is_whole is is_whole
    assert [part for part in shown if part not in tally.text] == []
    assert bool(tally.text) is bool(shown)


def test_the_three_worst_records_are_named_the_worst_first() -> None:
    tally = CoverageTally()
    for line, read_ in enumerate((9, 6, 10, 7, 5, 8), 1):
        tally.add(Coverage(10, read_), f"log:{line}")
    places = [tally.text.find(f"log:{line} (") for line in (5, 2, 4)]
    assert -1 not in places
    assert places == sorted(places)
    assert [line for line in (1, 3, 6) if f"log:{line} (" in tally.text] == []


@pytest.mark.parametrize(
    ("places", "shown"),
    [
        ([""], ["odd"]),
        (["log:1"], ["odd (log:1)"]),
        (["log:1", "log:2"], ["odd (log:1, and in 1 more)"]),
        (["log:1"] * 1002, ["odd (log:1, and in 1,001 more)"]),
        (["", "log:2"], ["odd"]),
        ([], []),
    ],
)
def test_a_warning_is_told_once_with_its_first_place(places: list[str], shown: list[str]) -> None:
    warnings = ImportWarnings()
    for place in places:
        warnings.add("odd", place)
    assert list(warnings.texts()) == shown


def test_warnings_are_in_the_order_of_their_first_places(tmp_path: Path) -> None:
    odd, other = ({"role": role, "content": "?"} for role in ("critic", "judge"))
    records = [{"messages": [user("a"), each, agent("b")]} for each in (odd, other, odd)]
    reader = reader_of(write(tmp_path, *records))
    list(reader)
    first, second = reader.warnings.texts()
    assert ("critic" in first, "log.jsonl:1, and in 1 more" in first) == (True, True)
    assert ("judge" in second, "log.jsonl:2)" in second) == (True, True)


@pytest.mark.parametrize(
    ("texts", "exact", "found", "unmatched"),
    [
        ((), (), ["refund", "refund-late", "Order"], ()),
        (("refund",), (), ["refund", "refund-late"], ()),
        (("refund",), ("refund",), ["refund"], ()),
        (("REFUND",), ("REFUND",), [], ("REFUND",)),
        (("order",), (), ["Order"], ()),
        (("late", "der"), (), ["refund-late", "Order"], ()),
        (("late", "none", "none"), (), ["refund-late"], ("none",)),
        (("none",), (), [], ("none",)),
        (("refund", "late"), ("refund",), ["refund", "refund-late"], ()),
    ],
)
def test_only_the_conversations_that_are_searched_for(
    tmp_path: Path, texts: Any, exact: Any, found: list[str], unmatched: Any
) -> None:
    path = write(tmp_path, *(talk(id=id) for id in ("refund", "refund-late", "Order")))
    reader = reader_of(path, search_texts=texts, exact_texts=frozenset(exact))
    assert [r.key.scenario for r in reader] == found
    assert reader.unmatched_texts == unmatched


def test_a_conversation_is_found_by_its_id_and_by_its_scenario(tmp_path: Path) -> None:
    path = write(tmp_path, talk(id="one", task="t"), talk(id="two", task="t"))
    for text, found in (("two", [1]), ("t", [0, 1]), ("one", [0])):
        reader = Reader(
            find_sources([str(path)], tmp_path),
            Naming(FieldPaths(scenario="task")),
            lambda run, name: "",
            search_texts=(text,),
            exact_texts=frozenset({text}),
        )
        assert [r.key.epoch for r in reader] == found


@pytest.mark.parametrize(
    ("texts", "exact"),
    [
        (("refund",), {"refund"}),
        (("ref",), set()),
        (("Refund",), set()),
        (("late", "refund-late", "refund-late"), {"refund-late"}),
        ((), set()),
    ],
)
def test_which_texts_are_whole_names(tmp_path: Path, texts: Any, exact: set[str]) -> None:
    odd = {"role": "critic", "content": "?"}
    noted = {"id": "refund", "messages": [user("a"), odd, agent("b")]}
    reader = reader_of(write(tmp_path, talk(id="refund-late"), noted), search_texts=texts)
    found = reader.with_exact(Naming())
    assert found.exact_texts == exact
    assert reader.exact_texts == frozenset()
    assert list(found.warnings.texts()) == []  # the second reading tells
    assert found.coverage.text == ""
    assert len(list(found)) == (sum(1 for _ in reader) if not exact else 1)


@pytest.mark.parametrize(
    ("entry", "record", "notes", "outcome"),
    [
        (Record(talk(), "log:1"), talk(), (), MISSING),
        (Record(talk(), "log:1", logged={"a": 1}), {"a": 1}, (), MISSING),
        (Record(talk(), "log:1", notes=("told", "told")), talk(), ("told",), MISSING),
        (Record(talk(), "log:1", outcome=False), talk(), (), False),
        (Record(talk(tools="auto"), "log:1", notes=("told",)), talk(tools="auto"), ("told", ...), MISSING),
    ],
)
def test_what_an_importer_says_of_a_record(entry: Record, record: Any, notes: Any, outcome: Any) -> None:
    found = conversation_of(entry, ToolSets())
    assert (found.record, found.outcome) == (record, outcome)
    assert len(found.notes) == len(notes)
    assert found.notes[:1] == notes[:1]


def test_paths_are_looked_for_in_logs_only(tmp_path: Path) -> None:
    journal = write_journal(tmp_path, "run.jsonl", "r1")
    log = write(tmp_path, talk(id="x", task="t"))
    options = {"--scenario-from": "task", "--epoch-from": "trial"}
    with pytest.raises(AuthorError) as error:
        require_paths(find_sources([str(journal)], tmp_path), options)
    assert all(option in error.value.problems[0].what for option in options)
    with pytest.raises(AuthorError) as error:
        require_paths(find_sources([str(journal), str(log)], tmp_path), options)
    (problem,) = error.value.problems
    assert "--epoch-from trial" in problem.what
    assert problem.place is not None
    assert (problem.place.path, problem.place.line) == ("log.jsonl", 1)
    require_paths(find_sources([str(journal), str(log)], tmp_path), {"--scenario-from": "task"})
    require_paths(find_sources([str(journal)], tmp_path), {})


@pytest.mark.parametrize(
    ("records", "is_there"),
    [
        ([talk(task="t")], True),
        ([talk(task=None)], False),
        ([talk(task=False)], True),
        ([talk(task=None), talk(task=0)], True),
        ([7, talk(task="t")], True),
        ([], True),  # an empty file has no wrong path
    ],
)
def test_a_path_must_lead_to_a_value_somewhere(tmp_path: Path, records: Any, is_there: bool) -> None:
    sources = find_sources([str(write(tmp_path, *records))], tmp_path)
    if is_there:
        require_paths(sources, {"--scenario-from": "task"})
    else:
        with pytest.raises(AuthorError):
            require_paths(sources, {"--scenario-from": "task"})


def test_each_path_may_be_in_another_record(tmp_path: Path) -> None:
    log = write(tmp_path, talk(task="t"), talk(trial=1))
    options = {"--scenario-from": "task", "--epoch-from": "trial"}
    require_paths(find_sources([str(log)], tmp_path), options)
    with pytest.raises(AuthorError) as error:
        require_paths(find_sources([str(log)], tmp_path), {**options, "--outcome-from": "ok"})
    assert len(error.value.problems) == 1
    listed = write(tmp_path, talk(task=["t"]), name="list.jsonl")
    with pytest.raises(AuthorError) as error:
        require_paths(find_sources([str(listed)], tmp_path), options)
    assert "list" in error.value.problems[0].what
