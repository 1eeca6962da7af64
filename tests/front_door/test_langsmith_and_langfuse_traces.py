"""LangSmith's runs and Langfuse's traces are put together by their ids: in whatever order and form, an agent
that calls what it must not is red at its turn, and the same agent without that call green."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.scored_logs import score
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

T1, T2 = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
USERS = ("Hello?", "And A-7?")
BY_TOOL = {"look": PASSED, "cancel": FAILED}
"""The verdicts where ``cancel`` is forbidden, by the tool that is called."""
Runs = list[dict[str, Any]]
Case = tuple[str, Sequence[str], str]


def check(
    project: Project,
    *cases: Case,
    said: Sequence[str] | None = None,
    ids: Sequence[str] = (T1, T2, "th"),
    users: Sequence[str] = USERS,
) -> list[dict[str, Any]]:
    """Assert the verdicts of texts with what is expected of each turn. ``said``: the agent's answers."""
    rows = {f"{number}: {case[1]}": Row(*case) for number, case in enumerate(cases)}
    found = check_traces(project, rows, users, *ids)
    for sample, (_, rules, _) in zip(found.values(), cases, strict=True):
        assert [turn["user"] for turn in sample["turns"]] == list(users[: len(rules)])
        assert said is None or [turn["agent"] for turn in sample["turns"]] == list(said)
    return list(found.values())


def check_tools(project: Project, text_of: Callable[[str], str], said: Sequence[str], **more: Any) -> None:
    """One turn that calls ``cancel``, and one that calls ``look``."""
    cases = [(text_of(tool), [FORBIDDEN], verdict) for tool, verdict in BY_TOOL.items()]
    assert [calls_of(one) for one in check(project, *cases, said=said, **more)] == [[["look"]], [["cancel"]]]


def check_second_turns(
    project: Project, text_of: Callable[[str], str], said: Sequence[str], **more: Any
) -> list[dict[str, Any]]:
    """Two turns, of which the second calls ``cancel`` or ``look`` and the first ``look``."""
    cases: list[Case] = [(text_of(tool), ("", FORBIDDEN), verdict) for tool, verdict in BY_TOOL.items()]
    cases += [(text_of(tool), (FORBIDDEN, ""), PASSED) for tool in BY_TOOL]
    found = check(project, *cases, said=said, **more)
    assert [calls_of(one) for one in found] == [[["look"], [tool]] for tool in BY_TOOL] * 2
    return found


# ── LangSmith ────────────────────────────────────────────────────────────────────────────────────


def run(key: str, parent: str, at: int, kind: str, name: str, given: Any, back: Any, **more: Any) -> Any:
    return {
        "id": key,
        "trace_id": T1,
        "parent_run_id": parent or None,
        "run_type": kind,
        "name": name,
        "start_time": f"2026-05-01T12:00:{at:02}.000000",
        "end_time": f"2026-05-01T12:00:{at:02}.500000",
        "inputs": given,
        "outputs": back,
        "error": None,
        "extra": {"metadata": {}},
        "events": [{"name": "start", "time": "x"}, {"name": "end", "time": "y"}],
        **more,
    }


def human(text: str) -> dict[str, Any]:
    return {"type": "human", "content": text}


def ai(text: str, *calls: tuple[str, str]) -> dict[str, Any]:
    listed = [{"name": n, "args": {"id": "A-7"}, "id": key, "type": "tool_call"} for n, key in calls]
    return {"type": "ai", "content": text, "tool_calls": listed}


def given_back(name: str, key: str, text: str = "ok") -> dict[str, Any]:
    return {"type": "tool", "name": name, "tool_call_id": key, "content": text, "status": "success"}


def constructed(message: dict[str, Any]) -> dict[str, Any]:
    """As LangChain's tracer writes what a model was given."""
    names = {"human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
    path = ["langchain", "schema", "messages", names[message["type"]]]
    return {"lc": 1, "type": "constructor", "id": path, "kwargs": message}


def model(key: str, parent: str, at: int, asked: list[Any], answer: Any, **more: Any) -> Any:
    given = {"messages": [list(map(constructed, asked))]}
    generation = {"text": answer["content"], "type": "ChatGeneration", "message": constructed(answer)}
    return run(key, parent, at, "llm", "ChatOpenAI", given, {"generations": [[generation]]}, **more)


def graph(trace: str, at: int, before: list[Any], question: str, tool: str, thread: str = "") -> Runs:
    """A turn of a graph that keeps its messages: a model, a tool within a node, the model again."""
    asked = [*before, human(question)]
    call, result, answer = ai("", (tool, f"c{at}")), given_back(tool, f"c{at}"), ai(f"Done {at}.")
    more: dict[str, Any] = {"trace_id": trace}
    if thread:
        more["extra"] = {"metadata": {"thread_id": thread, "langgraph_node": "agent"}}
    node = {"tool_call": {"name": tool, "args": {"id": "A-7"}, "id": f"c{at}", "type": "tool_call"}}
    given, state = {"messages": [["user", question]]}, {"messages": [*asked, call, result, answer]}
    return [
        run(trace, "", at, "chain", "LangGraph", given, state, **more),
        run(f"{trace}.1", trace, at + 1, "chain", "agent", {"messages": asked}, {"messages": [call]}, **more),
        model(f"{trace}.2", f"{trace}.1", at + 2, asked, call, **more),
        run(f"{trace}.3", trace, at + 3, "chain", "tools", node, {"messages": [result]}, **more),
        run(f"{trace}.4", f"{trace}.3", at + 4, "tool", tool, {"id": "A-7"}, {"output": result}, **more),
        model(f"{trace}.5", trace, at + 5, [*asked, call, result], answer, **more),
    ]


def nested(runs: Runs) -> Runs:
    """As ``read_run(load_child_runs=True)`` has them."""
    inside: dict[str, Runs] = {}
    for each in runs:
        inside.setdefault(each["parent_run_id"] or "", []).append(each)

    def whole(each: dict[str, Any]) -> dict[str, Any]:
        return {**each, "child_runs": [whole(child) for child in inside.get(each["id"], ())]}

    return [whole(each) for each in inside[""]]


WRITTEN: dict[str, Callable[[Runs], str]] = {
    "a run a line": lambda runs: lines(*runs),
    "a list": lambda runs: json.dumps(runs, indent=1),
    "a page of the API": lambda runs: json.dumps({"runs": runs, "cursors": {"next": None}}, indent=1),
    "newest first": lambda runs: lines(*reversed(runs)),
    "interleaved": lambda runs: lines(*runs[::2], *runs[1::2]),
    "pages of the API, one a line": lambda runs: lines({"runs": runs[5:]}, {"runs": runs[:5]}),
    "batches a line": lambda runs: lines(runs[3:7], runs[:3], runs[7:]),
    "in one another": lambda runs: lines(*nested(runs)),
    "in one another, a list": lambda runs: json.dumps(nested(runs)),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_runs_of_a_thread_are_one_conversation(project: Project, form: str) -> None:
    first = graph(T1, 0, [], "Hello?", "look", "th")
    before = first[0]["outputs"]["messages"]

    def text_of(tool: str) -> str:
        return WRITTEN[form]([*first, *graph(T2, 20, before, "And A-7?", tool, "th")])

    for sample in check_second_turns(project, text_of, ("Done 0.", "Done 20.")):
        assert [call["result"] for turn in sample["turns"] for call in turn["tool_calls"]] == ["ok", "ok"]


def test_traces_without_a_thread_are_conversations_of_their_own(project: Project) -> None:
    runs = [*graph(T1, 0, [], "Hello?", "look"), *graph(T2, 20, [], "And A-7?", "cancel")]
    text = lines(*runs[::2], *runs[1::2])
    check(project, (text, [FORBIDDEN], PASSED))
    (second,) = check(
        project, (text, [FORBIDDEN], FAILED), said=["Done 20."], ids=(T2, T1), users=["And A-7?"]
    )
    assert calls_of(second) == [["cancel"]]


@pytest.mark.parametrize("key", ["thread_id", "session_id", "conversation_id"])
def test_a_thread_joins_traces_that_repeat_nothing(project: Project, key: str) -> None:
    def turn(trace: str, at: int, question: str, tool: str) -> Runs:
        more = {"trace_id": trace, "extra": {"metadata": {key: "th"}}}
        asked, args = [human(question)], {"input": "{'id': 'A-7'}"}
        call, result = ai("", (tool, f"c{at}")), given_back(tool, f"c{at}")
        return [
            run(trace, "", at, "chain", "bot", {"input": question}, {"output": f"Done {at}."}, **more),
            model(f"{trace}.1", trace, at + 1, asked, call, **more),
            run(f"{trace}.2", trace, at + 2, "tool", tool, args, {"output": result}, **more),
            model(f"{trace}.3", trace, at + 3, [*asked, call, result], ai(f"Done {at}."), **more),
        ]

    def text_of(tool: str) -> str:
        return lines(*turn(T2, 20, "And A-7?", tool), *turn(T1, 0, "Hello?", "look"))

    check_second_turns(project, text_of, ("Done 0.", "Done 20."))


def chain(tool: str, **more: Any) -> Runs:
    """A chain whose model is asked in other words than the user's, and whose tool no model asked for."""
    return [
        run(T1, "", 0, "chain", "bot", {"question": "Hello?"}, {"answer": "Hi.", "sources": ["a"]}, **more),
        run("r", T1, 1, "retriever", "search", {"query": "Hello?"}, {"documents": [{"page_content": "a"}]}),
        run("t", T1, 2, "tool", tool, {"id": "A-7"}, {"output": "ok"}),
        model("m", T1, 3, [human("Answer briefly: Hello?")], ai("Hi.")),
    ]


STATE = {"question": "Hello?", "documents": ["a"], "generation": "Hi."}


def test_a_chain_is_what_it_was_asked_and_answered(project: Project) -> None:
    check_tools(project, lambda tool: lines(*chain(tool)), ["Hi."])


@pytest.mark.parametrize(
    ("asked", "said"), [("Answer briefly: Hello?", json.dumps(STATE)), ("Hello?", "Hi.")]
)
def test_a_state_is_the_answer_only_where_no_model_was_asked_what_the_user_asked(
    project: Project, asked: str, said: str
) -> None:
    def text_of(tool: str) -> str:
        around, *inside = chain(tool)
        return lines({**around, "outputs": STATE}, *inside[:2], model("m", T1, 3, [human(asked)], ai("Hi.")))

    check_tools(project, text_of, [said])


def test_an_outermost_run_that_does_not_hold_what_was_asked_hides_nothing(project: Project) -> None:
    def text_of(tool: str) -> str:
        around, *inside = graph(T1, 0, [], "Hello?", tool)
        return lines({**around, "inputs": {"state": {"n": 1}}, "outputs": {"status": "ok"}}, *inside)

    check_tools(project, text_of, ["Done 0."])


def test_a_tool_that_failed_is_a_failed_call(project: Project) -> None:
    runs = chain("look")
    runs[2] |= {"outputs": None, "error": "ToolException('no')Traceback (most recent call last):\n  File x"}
    (sample,) = check(project, (lines(*runs), [FORBIDDEN], PASSED))
    (call,) = sample["turns"][0]["tool_calls"]
    assert call["result"] == {"error": "ToolException('no')"}


def test_a_run_that_is_missing_leaves_the_turn_not_fully_seen(project: Project) -> None:
    """It may have called a tool; that the conversation is read shows that the others are put together."""
    runs = graph(T1, 0, [], "Hello?", "look")
    named = {**runs[0], "child_run_ids": [each["id"] for each in runs[1:]]}
    missing = {
        "'(agent|ChatOpenAI|tools)'": runs[1:],  # the parent of each
        "'look'": [*runs[:3], *runs[4:]],  # its parent
        "'LangGraph'": [named, *runs[1:4], runs[5]],  # one of its children
    }
    cases = [(lines(*left), [FORBIDDEN], OPEN) for left in missing.values()]
    found = check(project, *cases, said=["Done 0."])
    for name, sample in zip(missing, found, strict=True):
        assert re.search(name, reasons_of(sample))
        assert calls_of(sample) == [["look"]]
    check(project, (lines(*runs), [FORBIDDEN], PASSED))


def test_outermost_runs_alone_do_not_show_what_was_called(project: Project) -> None:
    """Lists of traces have these alone. A graph's messages have its calls."""
    cases = [(lines(graph(T1, 0, [], "Hello?", tool)[0]), [FORBIDDEN], BY_TOOL[tool]) for tool in BY_TOOL]
    alone, *_ = check(project, (lines(chain("cancel")[0]), [FORBIDDEN], OPEN), *cases)
    assert "'bot'" in reasons_of(alone)
    check(project, (lines(chain("x", child_run_ids=[])[0]), ["output: {contains: [Hi]}"], PASSED))
    assert "'bot'" not in score(project, "row1.jsonl").all


BESIDE: tuple[tuple[int, Any, str], ...] = (
    (4, {"run_type": "mystery"}, OPEN),
    (1, {"events": [{"name": "cancel", "time": "x"}]}, OPEN),
    (1, {"outputs": {"steps": [[{"tool": "cancel", "tool_input": {"id": "A-7"}}, "ok"]]}}, OPEN),
    (1, {"outputs": {"documents": [], "note": "x"}}, PASSED),
    (3, {"inputs": {"blob": 1}, "outputs": {"blob": {"y": [1]}}}, OPEN),
    (4, {}, PASSED),
)
"""What one of the runs of a chain holds besides."""


def test_what_a_run_holds_besides_is_not_lost(project: Project) -> None:
    cases = []
    for at, more, verdict in BESIDE:
        runs = [*chain("look"), run("s", T1, 4, "chain", "step", {}, {})]
        runs[at] |= more
        cases.append((lines(*runs), [FORBIDDEN], verdict))
    check(project, *cases)


def test_scenarios_are_found_by_what_the_outermost_run_or_the_first_trace_holds(project: Project) -> None:
    rule = f"{{user: And A-7?, expect: {{{FORBIDDEN}}}}}"
    traces = [traced("t-2", 20, "And A-7?", "cancel", "s"), traced("t-1", 0, "Hello?", "look", "s")]
    for text, path, id_, turns in (
        (lines(*graph(T1, 0, [], "And A-7?", "cancel", "s")[::-1]), "extra.metadata.thread_id", "s", rule),
        (json.dumps({"data": traces, "meta": {"page": 1}}), "sessionId", "s", f"{{user: Hello?}}, {rule}"),
    ):
        project.write("log.json", text)
        project.write("suite.yaml", f"id: {id_}\nturns: [{turns}]\n")
        done = project.call("score", "log.json", "--scenarios", "suite.yaml", "--scenario-from", path)
        assert done.code == 1, done.all


# ── Langfuse ─────────────────────────────────────────────────────────────────────────────────────


def observation(trace: str, key: str, parent: str, at: int, kind: str, name: str, *given_back: Any) -> Any:
    given, back = given_back
    start, end = (f"2026-05-01T12:00:{at:02}.{part}Z" for part in ("000", "500"))
    own = {"id": key, "traceId": trace, "parentObservationId": parent or None, "type": kind, "name": name}
    times = {"startTime": start, "endTime": end}
    return {**own, **times, "input": given, "output": back, "level": "DEFAULT", "metadata": {}}


def traced(trace: str, at: int, question: str, tool: str, session: str | None) -> dict[str, Any]:
    user = {"role": "user", "content": question}
    function = {"name": tool, "arguments": '{"id": "A-7"}'}
    call = {"role": "assistant", "content": None,
            "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}]}  # fmt: skip
    result = {"role": "tool", "tool_call_id": f"c{at}", "content": "ok"}
    answer = {"role": "assistant", "content": f"Done {at}."}
    key = f"{trace[-1]}-{at}"
    around, asked = f"{key}a", [user, call, result]
    inside = [
        observation(trace, around, "", at, "AGENT", "run", {"q": question}, {"a": f"Done {at}."}),
        observation(trace, f"{key}b", around, at + 1, "GENERATION", "chat", [user], call),
        observation(trace, f"{key}c", around, at + 2, "TOOL", tool, {"id": "A-7"}, "ok"),
        observation(trace, f"{key}d", around, at + 3, "GENERATION", "chat", asked, answer),
    ]
    own = {"id": trace, "timestamp": f"2026-05-01T12:00:{at:02}.000Z", "sessionId": session}
    texts = {"htmlPath": f"/traces/{trace}", "input": question, "output": f"Done {at}."}
    return {**own, **texts, "observations": inside}


def backwards(trace: dict[str, Any]) -> dict[str, Any]:
    return {**trace, "observations": trace["observations"][::-1]}


PAGES: dict[str, Callable[[Runs], str]] = {
    "a trace a line": lambda traces: lines(*traces),
    "a list": lambda traces: json.dumps(traces, indent=1),
    "a page of the API": lambda traces: json.dumps(
        {"data": [*map(backwards, traces[::-1])], "meta": {"page": 1}}
    ),
    "newest first": lambda traces: lines(*map(backwards, traces[::-1])),
    "pages of the API, one a line": lambda traces: lines(
        {"data": traces[1:]}, {"data": traces[:1], "meta": {}}
    ),
    "lists, one a line": lambda traces: lines(traces[:1], traces[1:]),
    "inputs in a batch": lambda traces: json.dumps(
        [{**each, "input": [[{"role": "user", "content": each["input"]}]]} for each in traces], indent=1
    ),
}


OF_LANGFUSE = ("t-1", "t-2", "t-3", "s", "s-2")


def check_langfuse(project: Project, *cases: Case, said: Sequence[str] | None = ("Done 0.",)) -> Any:
    return check(project, *cases, said=said, ids=OF_LANGFUSE)


@pytest.mark.parametrize("form", PAGES)
def test_traces_of_a_session_are_one_conversation(project: Project, form: str) -> None:
    def text_of(tool: str) -> str:
        first, second = traced("t-1", 0, "Hello?", "look", "s"), traced("t-2", 20, "And A-7?", tool, "s")
        return PAGES[form]([first, traced("t-3", 10, "Cancel B-1", "cancel", "s-2"), second])

    check_second_turns(project, text_of, ("Done 0.", "Done 20."), ids=OF_LANGFUSE)
    cases = [(text_of(tool), [FORBIDDEN], FAILED) for tool in BY_TOOL]
    check(project, *cases, ids=("t-3", "t-1", "t-2", "s", "s-2"), users=["Cancel B-1"])


def test_one_trace_over_many_lines_is_one_record(project: Project) -> None:
    asked = {"input": [[{"role": "user", "content": "Hello?"}]]}

    def text_of(tool: str) -> str:
        return json.dumps(traced("t-1", 0, "Hello?", tool, None) | asked, indent=1)

    check_tools(project, text_of, ["Done 0."], ids=OF_LANGFUSE)


def test_a_trace_that_does_not_hold_what_was_asked_hides_nothing(project: Project) -> None:
    other = {"input": {"a": 1, "b": [2]}, "output": "ok"}

    def text_of(tool: str) -> str:
        return lines(traced("t-1", 0, "Hello?", tool, None) | other)

    check_tools(project, text_of, ["Done 0."], ids=OF_LANGFUSE)


def test_traces_without_a_session_are_conversations_of_their_own(project: Project) -> None:
    traces = [traced("t-1", 0, "Hello?", "look", None), traced("t-2", 20, "And A-7?", "cancel", None)]
    check_langfuse(project, (lines(*traces), [FORBIDDEN], PASSED))
    check(project, (lines(*traces), [FORBIDDEN], FAILED), ids=("t-2", "t-1"), users=["And A-7?"])


def test_observations_follow_their_trace_in_lines_of_their_own(project: Project) -> None:
    def split(tool: str) -> tuple[Runs, Runs]:
        traces = [traced("t-1", 0, "Hello?", "look", "s"), traced("t-2", 20, "And A-7?", tool, "s")]
        bare = [{**each, "observations": [one["id"] for one in each["observations"]]} for each in traces]
        return bare, [one for each in traces for one in each["observations"]]

    def text_of(tool: str) -> str:
        bare, inside = split(tool)
        return lines(*inside[::-1], *bare)

    check_second_turns(project, text_of, ("Done 0.", "Done 20."), ids=OF_LANGFUSE)
    cases = []
    for tool, verdict in (("look", OPEN), ("cancel", FAILED)):
        bare, inside = split(tool)
        cases.append((lines(*bare, *inside[1:]), (FORBIDDEN, FORBIDDEN), verdict))
    for sample in check_langfuse(project, *cases, said=None):
        assert "observations" in reasons_of(sample)


def test_an_observation_whose_parent_is_missing_is_not_fully_seen(project: Project) -> None:
    inside = traced("t-1", 0, "Hello?", "look", "s")["observations"]
    cases = [(lines(*inside), [FORBIDDEN], PASSED), (lines(*inside[1:]), [FORBIDDEN], OPEN)]
    _, sample = check_langfuse(project, *cases)
    assert "'chat'" in reasons_of(sample)
    assert calls_of(sample) == [["look"]]


def test_an_answer_that_is_cut_off_is_not_fully_seen(project: Project) -> None:
    cases = []
    for end, verdict in ((-30, OPEN), (None, FAILED)):
        trace = traced("t-1", 0, "Hello?", "cancel", None)
        call = trace["observations"][1]
        call["output"] = json.dumps(call["output"])[:end]
        trace["observations"] = [trace["observations"][0], call]
        cases.append((lines(trace), [FORBIDDEN], verdict))
    check_langfuse(project, *cases, said=None)


def test_metadata_is_searched_for_calls(project: Project) -> None:
    function = {"name": "cancel", "arguments": "{}"}
    called = {"note": {"tool_calls": [{"id": "c9", "type": "function", "function": function}]}}
    declared = {"tools": [{"type": "function", "function": {"name": "cancel"}}]}
    cases = []
    for metadata, verdict in ((called, OPEN), (declared, PASSED), ({}, PASSED)):
        for is_of_the_trace in (True, False):
            trace = traced("t-1", 0, "Hello?", "look", None)
            place = trace if is_of_the_trace else trace["observations"][1]
            place["metadata"] = metadata
            cases.append((lines(trace), [FORBIDDEN], verdict))
    found = check_langfuse(project, *cases)
    assert ["metadata" in reasons_of(sample) for sample in found] == [True] * 2 + [False] * 4


def test_what_may_be_a_tool_is_not_fully_seen_wherever_it_stands(project: Project) -> None:
    trace = traced("t-1", 0, "Hello?", "look", None)
    around = trace["observations"][0]["id"]
    cases = [(lines(trace), [FORBIDDEN], PASSED)]
    for kind in ("SPAN", "EVENT"):
        for parent in ("", around):
            may_be = observation("t-1", "m", parent, 2, kind, "cancel", {"id": "A-7"}, "ok")
            text = lines({**trace, "observations": [*trace["observations"], may_be]})
            cases.append((text, [FORBIDDEN], OPEN))
    check_langfuse(project, *cases)


def test_a_generation_that_was_tried_again_loses_no_result(project: Project) -> None:
    trace = traced("t-1", 0, "Hello?", "look", None)
    first, ask, _, answer = trace["observations"]
    times = {"startTime": "2026-05-01T12:00:02.600Z", "endTime": "2026-05-01T12:00:02.700Z"}
    cases = []
    for again in (ask, answer):
        tried = {**again, "id": "again", **times}
        text = lines({**trace, "observations": [first, ask, answer, tried]})
        for result, verdict in (("ok", PASSED), ("error", FAILED)):
            rule = f"tool_calls: {{match: strict, calls: [{{name: look, result: {result}}}]}}"
            cases.append((text, [rule], verdict))
    for sample in check_langfuse(project, *cases):
        assert calls_of(sample) == [["look"]]
