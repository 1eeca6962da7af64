"""The spans of a trace as a tree: their order, what encloses them, and what is not known of them."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.importers.span_tree import SpanTree, conversations_in
from agenteval.importers.spans import Span

KIND = "gen_ai.operation.name"
MODEL, TOOL, AGENT = {KIND: "chat"}, {KIND: "execute_tool"}, {KIND: "invoke_agent"}
SAID = {"gen_ai.output.messages": [{"role": "assistant", "content": "Hello"}]}
ASKED = {"gen_ai.input.messages": [{"role": "user", "content": "Hi"}]}


def span(id: str, parent: str = "", attributes: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    raw = {"trace_id": "t", "span_id": id, "parent_id": parent, "name": id, "attributes": attributes or {}}
    return {**raw, **more}


def tree(*spans: dict[str, Any]) -> tuple[SpanTree, dict[str, Span]]:
    """A tree, and its spans by name."""
    found = SpanTree(spans)
    return found, {each.name: each for each in found.ordered}


def names(spans: Any) -> list[str]:
    return [each.name for each in spans]


@pytest.mark.parametrize(
    ("starts", "order"),
    [((1, 2, 3), "abc"), ((3, 1, 2), "bca"), ((2, 2, 1), "cab"), ((3, None, 1), "abc"), ((3, 0, 1), "bca")],
)
def test_spans_are_in_order_of_time_unless_one_has_none(starts: Any, order: str) -> None:
    found, _ = tree(*(span(name, start_time=f"{at}") for name, at in zip("abc", starts, strict=True)))
    assert "".join(names(found.ordered)) == order


def test_of_two_spans_with_one_id_the_last_is_kept() -> None:
    spans = [span("a", name="first"), span("a", name="second"), span("a", name="other", trace_id="u")]
    found, _ = tree(*spans, span("", name="x"), span("", name="y"))
    assert names(found.ordered) == ["second", "other", "x", "y"]


def test_what_encloses_a_span() -> None:
    found, by = tree(
        span("a"), span("b", "a"), span("c", "b"), span("d", "gone"), span("e", "a", trace_id="u")
    )
    assert names(found.ancestors(by["c"])) == ["b", "a"]
    assert names(found.self_and_ancestors(by["c"])) == ["c", "b", "a"]
    assert [names(found.ancestors(by[each])) for each in "ade"] == [[], [], []]
    assert {outer.name: names(inner) for outer, inner in found.nested_spans([*by.values()]).items()} == {
        "a": ["b", "c"],
        "b": ["c"],
    }
    assert {o.name: names(i) for o, i in found.nested_spans([by["a"], by["c"]]).items()} == {"a": ["c"]}


def test_spans_that_enclose_one_another_in_a_circle() -> None:
    found, by = tree(span("a", "b"), span("b", "c"), span("c", "b"), span("d", "d"))
    assert names(found.ancestors(by["a"])) == ["b", "c"]
    assert names(found.ancestors(by["d"])) == []


def test_which_span_carries_out_a_call_of_another() -> None:
    find = {**TOOL, "gen_ai.tool.name": "find"}
    found, by = tree(span("a", "", find), span("b", "a", find), span("c", "", find), span("d", "b"))
    assert [found.is_within_tool(by[each], "find") for each in "abcd"] == [False, True, False, True]
    assert not found.is_within_tool(by["b"], "look")


def test_the_innermost_models() -> None:
    found, by = tree(
        span("around", "", MODEL),
        span("model", "around", MODEL),
        span("agent", "", {**AGENT, **SAID}),
        span("said", "", SAID),
        *[
            span(f"counted{n}", "", {key: 0})
            for n, key in enumerate(
                ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
            )
        ],
        span("other", "", ASKED),
    )
    assert names(found.models()) == ["model", "said", "counted0", "counted1", "counted2"]
    assert names(found.answers()) == ["agent", "said"]
    assert [found.holds_messages(by[each]) for each in ("model", "agent", "other")] == [False, True, True]
    assert found.contents_of(by["said"]) is found.contents_of(by["said"])


def test_a_tool_holds_no_messages_of_the_conversation() -> None:
    found, by = tree(span("x", "", {**TOOL, **ASKED}))
    assert not found.holds_messages(by["x"])


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("raw", "agent"),
    [
        (span("x"), ""),
        (span("x", "", {"gen_ai.agent.name": "a", "agent.name": "b"}), "a"),
        (span("x", "", {"agent.name": "b"}), "b"),
        (span("x", "", {"agent.name": ""}), ""),
        (span("x", "", {**AGENT, "agent.name": 7}), "x"),
        (span("x", "", AGENT, name="invoke_agent helper"), "helper"),
        (span("x", "", AGENT, name="helper"), "helper"),
        (span("x", "", MODEL, name="invoke_agent helper"), ""),
    ],
)
def test_the_name_of_an_agent(raw: dict[str, Any], agent: str) -> None:
    found, _ = tree(raw, span("inner", "x"))
    assert [found.agent(each) for each in found.ordered] == [agent, agent]


def test_the_agent_and_the_invocation_that_a_span_belongs_to() -> None:
    found, by = tree(
        span("a", "", AGENT),
        span("named", "a", {"agent.name": "n"}),
        span("b", "named", AGENT),
        span("m", "b", MODEL),
    )
    assert [found.agent(by[each]) for each in ("a", "named", "b", "m")] == ["a", "n", "b", "b"]
    invocations = [found.invocation(by[each]) for each in ("a", "named", "b", "m")]
    assert [each and each.name for each in invocations] == ["a", "a", "b", "b"]
    alone, by = tree(span("m", "", MODEL))
    assert alone.invocation(by["m"]) is None


@pytest.mark.parametrize(
    ("spans", "depth"),
    [
        ([span("x")], (0, 0)),
        ([span("a", "", AGENT), span("x", "a", MODEL)], (0, 0)),
        ([span("a", "", AGENT), span("b", "a", AGENT), span("x", "b", MODEL)], (0, 1)),
        ([span("a", "", AGENT), span("b", "a", AGENT, name="a"), span("x", "b", MODEL)], (0, 0)),
        ([span("t", "", {**TOOL}), span("x", "t", MODEL)], (1, 0)),
        ([span("x", "", {"gen_ai.tool.name": "find"})], (0, 0)),
        ([span("x", "", {KIND: "retriever"})], (1, 0)),
        ([span("g", "", {KIND: "guardrail"}), span("x", "g", MODEL)], (1, 0)),
        ([span("g", "", {KIND: "guardrail"}), span("t", "g", TOOL), span("x", "t", MODEL)], (2, 0)),
        ([span("c", "", {KIND: "chain"}), span("x", "c", MODEL)], (0, 0)),
    ],
)
def test_how_deep_a_span_is(spans: list[dict[str, Any]], depth: tuple[int, int]) -> None:
    found, by = tree(*spans)
    assert found.depth(by["x"]) == depth


def timed(id: str, start: int, end: int, **more: Any) -> dict[str, Any]:
    return span(
        id, more.pop("parent", ""), more.pop("attributes", AGENT), start_time=start, end_time=end, **more
    )


@pytest.mark.parametrize(
    ("other", "others"),
    [
        (timed("o", 1, 9), 1),
        (timed("o", 2, 9), 0),
        (timed("o", 1, 8), 0),
        (timed("o", 1, 9, name="x"), 0),  # the same agent
        (timed("o", 1, 9, trace_id="u"), 0),
        (timed("o", 1, 9, attributes=MODEL), 0),
    ],
)
def test_an_agent_that_ran_while_another_did_is_that_ones(other: dict[str, Any], others: int) -> None:
    found, by = tree(other, timed("run", 2, 8, name="x"), span("m", "run", MODEL, start_time=3))
    assert found.depth(by["m"]) == (0, others)


def test_an_agent_within_another_is_counted_once() -> None:
    found, by = tree(timed("a", 1, 9), timed("b", 2, 8, parent="a"))
    assert found.depth(by["b"]) == (0, 1)


# ── conversations ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("attributes", "ids"),
    [
        ({}, set()),
        ({"gen_ai.conversation.id": "a", "session.id": "b", "langfuse.session.id": "c"}, {"a", "b", "c"}),
        ({"session.id": ""}, set()),
        ({"session.id": 7}, set()),
    ],
)
def test_the_ids_of_conversations(attributes: dict[str, Any], ids: set[str]) -> None:
    assert conversations_in(attributes) == ids


@pytest.mark.parametrize(
    ("own", "outer", "elsewhere", "found"),
    [
        ({}, {}, {}, ""),
        ({"session.id": "a"}, {"session.id": "b"}, {"session.id": "c"}, "a"),
        ({"gen_ai.conversation.id": "a", "session.id": "b"}, {}, {}, "a"),
        ({"session.id": 7}, {"session.id": "b"}, {}, "b"),
        ({}, {"session.id": "b"}, {"session.id": "c"}, "b"),
        ({}, {}, {"session.id": "c"}, "c"),
        ({}, {}, {"session.id": "c", "gen_ai.conversation.id": "d"}, ""),
        ({}, {}, {"session.id": "c", "trace": "u"}, ""),
    ],
)
def test_the_conversation_of_a_span(own: Any, outer: Any, elsewhere: Any, found: str) -> None:
    other = span("other", "", elsewhere, trace_id=elsewhere.pop("trace", "t"))
    spans, by = tree(span("outer", "", outer), span("x", "outer", own), other)
    assert spans.conversation(by["x"]) == found


# ── what is not known ────────────────────────────────────────────────────────────────────────────


def unplaced(*spans: dict[str, Any]) -> list[tuple[str, str]]:
    return [(each.name, what.what) for each, what in SpanTree(spans).unplaced()]


@pytest.mark.parametrize(
    ("spans", "told"),
    [
        ([span("a")], ["a"]),
        ([span("a"), span("b", "a", MODEL)], []),  # it encloses all others
        ([span("a"), span("b", "", MODEL)], ["a"]),
        ([span("a"), span("b")], ["a", "b"]),
        ([span("a"), span("b", "a")], ["b"]),
        ([span("a", "", ASKED), span("b", "", SAID)], []),
        ([span("a", "", {"input.value": 7, "gen_ai.completion": "x"}), span("b")], ["b"]),
        ([span("a", "", MODEL), span("b", "", AGENT)], []),
    ],
)
def test_spans_of_unknown_kinds(spans: list[dict[str, Any]], told: list[str]) -> None:
    assert [name for name, _ in unplaced(*spans)] == told


ASKS = {**MODEL, "gen_ai.response.finish_reasons": ["tool_calls"]}


@pytest.mark.parametrize(
    ("spans", "told"),
    [
        ([span("m", "", ASKS)], ["m"]),
        ([span("m", "", ASKS), span("n", "", ASKS)], ["m", "n"]),
        ([span("m", "", {**ASKS, **SAID})], []),
        ([span("m", "", MODEL)], []),
        ([span("m", "", ASKS), span("find", "", TOOL)], []),
    ],
)
def test_calls_that_were_asked_for_and_are_in_no_span(spans: list[dict[str, Any]], told: list[str]) -> None:
    assert [name for name, _ in unplaced(*spans)] == told


@pytest.mark.parametrize(
    ("unless", "is_told"),
    [([], False), (["b"], False), (["b", "gone"], True), (["gone"], True), ([""], True)],
)
def test_steps_that_are_missing_from_the_trace(unless: list[str], is_told: bool) -> None:
    spans = [span("a", "", MODEL, unseen=[{"what": "missing", "unless": unless}]), span("b", "", MODEL)]
    assert unplaced(*spans) == [("a", "missing")] * is_told
    assert unplaced(spans[0], {**spans[1], "trace_id": "u"}) == [("a", "missing")] * bool(unless)


@pytest.mark.parametrize(("parent", "is_told"), [("a", False), ("", True), ("other", True)])
def test_steps_that_may_be_any_within(parent: str, is_told: bool) -> None:
    spans = [span("a", "", MODEL, unseen=[{"what": "missing", "unless": None}]), span("b", parent, MODEL)]
    assert unplaced(*spans) == [("a", "missing")] * is_told
