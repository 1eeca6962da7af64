"""The tool calls of one reply, through the command line: their order, their number, what is unreadable in
them, and what counts as made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.conversation.tools import error_result, refused_result
from agenteval.core.scenario import ExpectedCall, ToolCallsExpectation
from agenteval.core.trajectory import ToolCall
from agenteval.messages.chat import read_arguments, sort_by_index
from agenteval.messages.completion import assemble_completion
from agenteval.scoring.checks.call_matching import compare_tool_calls
from tests.support.http_runs import HttpAgent, run_http_agents
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import chat, delta, respond, sse

AGENT = '''
import json
import pathlib

PLAYED = json.loads(pathlib.Path(__file__).with_name("played.json").read_text(encoding="utf-8"))

async def agent(messages, ctx):
    """The replies of its scenario, one after the other: lists of calls, then the text."""
    replies = PLAYED[ctx.scenario_id]
    done = sum(1 for m in messages if m.get("tool_calls"))
    reply = replies[min(done, len(replies) - 1)]
    if isinstance(reply, dict):
        await ctx.call_tool(reply["name"], reply["arguments"])
        return "Done."
    if isinstance(reply, str):
        return reply
    calls = [
        {"id": f"c{done}-{i}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for i, (name, arguments) in enumerate(reply)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}
'''
TOOLS = """
    tools:
      refund:
        parameters:
          type: object
          properties: {id: {type: string}, amount: {type: number}, why: {type: object}}
          required: [id]
        returns: {ok: true}
      list_orders:
        parameters: {type: object, properties: {page: {type: integer}}}
        returns: [ORD-1]
"""


class Row:
    """``replies``: what the agent does; ``expect``: of the tool calls; the verdict, and whose fault it is."""

    def __init__(
        self, expect: str, *replies: Any, verdict: str = "failed", stop: str = "script_done"
    ) -> None:
        self.expect = expect
        self.replies = [*replies, "Done."]
        self.verdict = verdict
        self.stop = stop


def calls(*arguments: Any, name: Any = "refund") -> list[list[Any]]:
    """One call for each, with these arguments."""
    return [[name, each if isinstance(each, str | None) else json.dumps(each)] for each in arguments]


GOOD = {"id": "A", "amount": 5}
MADE = "{calls: [{name: refund}]}"
FIVE = "{calls: [{name: refund, args: {amount: 5}, args_match: partial}]}"
TWICE = '{"id": "A", "amount": 5, "amount": 500}'
ROWS = {
    # a call that broke its schema was not made …
    "made": Row(MADE, calls(GOOD), verdict="passed"),
    "wrong-type": Row(MADE, calls({"id": 7})),
    "wrong-type-then-right": Row(MADE, calls({"id": 7}), calls(GOOD), verdict="passed"),
    "not-json": Row(MADE, calls('{"id": ')),
    "not-json-then-right": Row(MADE, calls('{"id": '), calls(GOOD), verdict="passed"),
    "strict-after-a-refused-one": Row(f"{{match: strict, {MADE[1:]}", calls({"id": 7}), calls(GOOD)),
    "unordered-after-a-refused-one": Row(f"{{match: unordered, {MADE[1:]}", calls({}), calls(GOOD)),
    "in-order-after-a-refused-one": Row(f"{{match: in_order, {MADE[1:]}", calls({}), calls(GOOD),
        verdict="passed"),
    # … but it is one that is forbidden.
    "forbidden-attempted": Row("{forbidden: [{name: refund}]}", calls({"id": 7})),
    "forbidden-attempted-with": Row("{forbidden: [{name: refund, args: {id: 7}}]}", calls({"id": 7})),
    # No arguments are `{}`: broken where some are required.
    "no-arguments": Row(MADE, calls(None)),
    "empty-text": Row(MADE, calls("")),
    "null-as-text": Row(MADE, calls("null")),
    "null-where-none-is-needed": Row("{calls: [{name: list_orders, args: {}}]}", calls(None,
        name="list_orders"), verdict="passed"),
    "empty-where-none-is-needed": Row("{calls: [{name: list_orders, args: {}}]}", calls("",
        name="list_orders"), verdict="passed"),
    # A key twice is unreadable, at any depth.
    "key-twice": Row(FIVE, calls(TWICE), stop="agent_error"),
    "key-twice-ignored": Row(MADE, calls(TWICE), stop="agent_error"),
    "key-twice-within": Row(MADE, calls('{"id": "A", "why": {"a": [{"b": 1, "b": 1}]}}'), stop="agent_error"),
    "key-twice-after-a-good-one": Row(MADE, calls(GOOD, TWICE), stop="agent_error"),
    "colons-in-texts": Row(MADE, calls('{"id": "a: \\"b\\": c", "why": {"amount": 1}}'), verdict="passed"),
    "same-key-at-two-depths": Row(FIVE, calls({**GOOD, "why": {"amount": 7}}), verdict="passed"),
    "key-twice-through-ctx": Row(MADE, {"name": "refund", "arguments": TWICE}, stop="agent_error"),
    # A call needs a name.
    "named-null": Row("{forbidden: [{name: list_orders}]}", calls(GOOD, name=None), stop="agent_error"),
    "named-null-through-ctx": Row("{forbidden: [{name: list_orders}]}", {"name": None, "arguments": {}},
        stop="agent_error"),
    # Very many.
    "a-thousand": Row(MADE, calls(*[GOOD] * 1000), verdict="passed"),
    "more-than-a-thousand": Row(MADE, calls(*[GOOD] * 1001), stop="agent_error"),
    # What is forbidden with arguments is so with further ones.
    "forbidden-partial": Row("{forbidden: [{name: refund, args: {id: A}}]}", calls(GOOD)),
    "forbidden-partial-other": Row("{forbidden: [{name: refund, args: {id: B}}]}", calls(GOOD),
        verdict="passed"),
    "forbidden-exact": Row("{forbidden: [{name: refund, args: {id: A}, args_match: exact}]}", calls(GOOD),
        verdict="passed"),
    "forbidden-exact-same": Row("{forbidden: [{name: refund, args: {id: A}, args_match: exact}]}",
        calls({"id": "A"})),
    "expected-is-exact": Row("{calls: [{name: refund, args: {id: A}}]}", calls(GOOD)),
}  # fmt: skip


def reason(sample: dict[str, Any]) -> str:
    """Why the agent broke."""
    return next(str(check["detail"]) for check in sample["checks"] if check["name"] == "no_error")


def play(project: Project, rows: dict[str, Row]) -> None:
    project.config()
    project.agent(AGENT)
    project.write("played.json", json.dumps({key: row.replies for key, row in rows.items()}))
    entries = "".join(
        f"  - {{id: {key}, turns: [hello], expect: {{tool_calls: {row.expect}}}}}\n"
        for key, row in rows.items()
    )
    project.write("scenarios/suite.yaml", f"defaults:{TOOLS}scenarios:\n{entries}")


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, Any]]:
    project = Project(tmp_path_factory.mktemp("calls"))
    play(project, ROWS)
    done = project.run("-v")
    assert done.code == 1, done.all
    return project, {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}


@pytest.mark.parametrize("key", ROWS)
def test_calls_of_a_reply(key: str, played: tuple[Project, dict[str, Any]]) -> None:
    row, sample = ROWS[key], played[1][key]
    assert (sample["verdict"], sample["stop"]) == (row.verdict, row.stop), sample["checks"]
    if row.verdict == "failed" and row.stop == "script_done":
        assert failed_checks(sample) == {(None, "tool_calls")}


def test_nothing_of_an_unreadable_reply_is_carried_out(played: tuple[Project, dict[str, Any]]) -> None:
    for key in ("more-than-a-thousand", "key-twice-after-a-good-one"):
        (turn,) = played[1][key]["turns"]
        results = [call["result"] for call in turn["tool_calls"]]
        assert results
        assert all("error" in json.dumps(result) for result in results)
    (unread,) = [c for c in turn["tool_calls"] if c["args"] is None]
    assert unread["raw_args"] == TWICE
    assert '"amount"' in reason(played[1]["key-twice"])
    assert "1,001" in reason(played[1]["more-than-a-thousand"])


def test_a_refused_call_is_shown_as_the_nearest(played: tuple[Project, dict[str, Any]]) -> None:
    (check,) = [c for c in played[1]["wrong-type"]["checks"] if c["name"] == "tool_calls"]
    assert all(fact in check["detail"] for fact in ("refund", "id: 7")), check["detail"]


def test_score_of_the_journal_decides_the_same(played: tuple[Project, dict[str, Any]]) -> None:
    project, samples = played
    project.call("score", "latest", "--report", "json=scored.json")
    scored = json.loads((project.root / "scored.json").read_text(encoding="utf-8"))
    assert {each["id"]: each["samples"][0]["verdict"] for each in scored["scenarios"]} == {
        key: sample["verdict"] for key, sample in samples.items()
    }


# ── over HTTP ────────────────────────────────────────────────────────────────────────────────────


def piece(index: Any, name: str, arguments: str, call_id: str = "") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    numbered = {} if index is None else {"index": index}
    return {**numbered, **({"id": call_id} if call_id else {}), "function": function}


def streamed(*pieces: dict[str, Any]) -> list[str]:
    chunks = [delta(tool_calls=[each]) for each in pieces]
    message = assemble_completion(
        [json.dumps(chunk) for chunk in [*chunks, delta(finish_reason="tool_calls")]]
    )
    return [
        f"{call['function']['name']}{call['function'].get('arguments', '')}"
        for call in message["choices"][0]["message"]["tool_calls"]
    ]


def test_streamed_calls_are_in_the_order_of_their_index() -> None:
    late, early = piece(1, "pay", "{}", "b"), piece(0, "check", "{}", "a")
    assert streamed(late, early) == streamed(early, late) == ["check{}", "pay{}"]
    assert streamed(piece(1, "pay", "", "b"), early, piece(1, "", "[1]")) == ["check{}", "pay[1]"]


def test_one_index_for_all_calls_leaves_them_in_the_order_of_arrival() -> None:
    assert streamed(piece(0, "b", "{}", "1"), piece(0, "a", "{}", "2")) == ["b{}", "a{}"]
    # The rest of the first one still finds it by its id.
    parts = [piece(0, "b", "[", "1"), piece(0, "a", "{}", "2"), {**piece(0, "", "]", "1")}]
    assert streamed(*parts) == ["b[]", "a{}"]


def test_a_call_without_an_index_stays_behind_the_one_before_it() -> None:
    assert streamed(piece(None, "b", "{}", "1"), piece(None, "a", "{}", "2")) == ["b{}", "a{}"]
    assert sort_by_index([{"index": 2, "n": "x"}, {"n": "y"}, {"index": 1, "n": "z"}]) == (
        {"index": 1, "n": "z"},
        {"index": 2, "n": "x"},
        {"n": "y"},
    )


OUT_OF_ORDER = [piece(1, "pay", "{}", "b"), piece(0, "check", "{}", "a")]
ORDER = "turns: [go], tools: {{pay: {{returns: 1}}, check: {{returns: 1}}}}, "
ORDER += "expect: {{tool_calls: {{match: in_order, calls: [{{name: {}}}, {{name: {}}}]}}}}"
AS_OBJECT = '{"id": "a", "type": "function", "function": {"name": "pay", "arguments": {"n": 1, "n": 2}}}'


def test_calls_over_http(project: Project) -> None:
    """They are in the order of their index. Some servers send arguments as an object: its keys are those of
    the reply itself."""
    body = json.dumps({"choices": [{"message": {"role": "assistant", "tool_calls": ["@"]}}]})
    pays = "turns: [go], tools: {pay: {returns: 1}}, checks: none"
    ways = {
        "streaming: true": (
            sse(*(delta(tool_calls=[each]) for each in OUT_OF_ORDER), delta(finish_reason="tool_calls")),
            sse(delta("Done.", finish_reason="stop")),
        ),
        "streaming: false": (chat(None, finish_reason="tool_calls", tool_calls=OUT_OF_ORDER), chat("Done.")),
    }
    rows = {"key twice": HttpAgent("", (respond(body.replace('"@"', AS_OBJECT)),), scenario=pays)}
    for options, behaviours in ways.items():
        for first, second in (("check", "pay"), ("pay", "check")):
            scenario = ORDER.format(first, second)
            rows[f"{options}, {first} first"] = HttpAgent(options, behaviours, scenario=scenario)
    samples = run_http_agents(project, rows).samples
    assert {name: sample["verdict"] for name, sample in samples.items()} == {
        name: "passed" if "check first" in name else "failed" for name in rows
    }
    sample = samples["key twice"]
    assert sample["stop"] == "agent_error"
    assert '"n"' in reason(sample)
    assert sample["turns"][0]["tool_calls"][0]["raw_args"] == '{"n": 1, "n": 2}'


# ── the rules by themselves ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "text",
    [TWICE, '{"a": 1, "a": 1}', '{"a": {"b": 1, "\\u0062": 2}}', '[{"a": 1, "a": 2}]', "{'a': 1, 'a': 2}"],
)
@pytest.mark.parametrize("lenient", [True, False])
def test_a_key_twice_is_unreadable(text: str, lenient: bool) -> None:
    assert read_arguments(text, lenient=lenient) == (None, text)


@pytest.mark.parametrize("text", ['{"a": ":", "b": "::"}', '{"a:": 1}', '{"a": {"a": {"a": 1}}}'])
def test_colons_are_no_keys(text: str) -> None:
    assert read_arguments(text) == (json.loads(text), None)


def test_only_calls_that_were_made_are_expected_ones() -> None:
    refused = ToolCall(name="pay", args={}, result=refused_result("wrong arguments"))
    failed = ToolCall(name="pay", args={}, result=error_result("out of money"))
    expected = ToolCallsExpectation(calls=(ExpectedCall(name="pay"),))
    assert [compare_tool_calls(expected, [call]).passed for call in (refused, failed)] == [False, True]
    within = ToolCallsExpectation(match="within", calls=(ExpectedCall(name="pay"),))
    assert compare_tool_calls(within, [refused, failed]).passed
