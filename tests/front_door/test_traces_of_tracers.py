"""LangSmith's runs and Langfuse's traces are put together by their ids: in whatever order and form, an agent
that calls what it must not is red at its turn, and the same agent without that call green."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.kit import Done, Project

T1, T2 = "aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002"
FORBIDDEN = "tool_calls: {forbidden: [{name: cancel}]}"
Runs = list[dict[str, Any]]


def score(project: Project, text: str, *rules: str, of: str = T1, asked: str = "Hello?") -> Done:
    """``rules``: what is expected of each turn."""
    users = (asked, "And A-7?")
    turns = "".join(
        f"  - {{user: {json.dumps(user)}{rule and f', expect: {{{rule}}}'}}}\n"
        for user, rule in zip(users, rules, strict=False)
    )
    project.write("suite.yaml", f'id: "{of}"\ntools: {{cancel: {{}}, look: {{}}}}\nturns:\n{turns}')
    project.write("agenteval.yaml", "metrics: []\ndetectors: []\n")
    project.write("log.jsonl", text)
    done = project.call(
        "score", "log.jsonl", "--scenarios", "suite.yaml", "--report", "json=results.json", "-s", of
    )
    assert len(project.sample(of)["turns"]) == len(rules), project.sample(of)["turns"]
    return done


def lines(*values: Any) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in values)


def said(project: Project, of: str = T1) -> list[tuple[str, str, list[str]]]:
    turns = project.sample(of)["turns"]
    return [(each["user"], each["agent"], [call["name"] for call in each["tool_calls"]]) for each in turns]


def words(text: str) -> str:
    return " ".join(text.split())


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
    state = [*asked, call, result, answer]
    node = {"tool_call": {"name": tool, "args": {"id": "A-7"}, "id": f"c{at}", "type": "tool_call"}}
    return [
        run(
            trace,
            "",
            at,
            "chain",
            "LangGraph",
            {"messages": [["user", question]]},
            {"messages": state},
            **more,
        ),
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
    for tool, code in (("look", 0), ("cancel", 1)):
        text = WRITTEN[form]([*first, *graph(T2, 20, before, "And A-7?", tool, "th")])
        done = score(project, text, "", FORBIDDEN)
        assert done.code == code, done.all
        assert said(project) == [("Hello?", "Done 0.", ["look"]), ("And A-7?", "Done 20.", [tool])]
        results = [call["result"] for turn in project.sample(T1)["turns"] for call in turn["tool_calls"]]
        assert results == ["ok", "ok"]
        assert score(project, text, FORBIDDEN, "").code == 0


def test_traces_without_a_thread_are_conversations_of_their_own(project: Project) -> None:
    runs = [*graph(T1, 0, [], "Hello?", "look"), *graph(T2, 20, [], "And A-7?", "cancel")]
    text = lines(*runs[::2], *runs[1::2])
    assert score(project, text, FORBIDDEN).code == 0
    assert score(project, text, FORBIDDEN, of=T2, asked="And A-7?").code == 1
    assert said(project, T2) == [("And A-7?", "Done 20.", ["cancel"])]


@pytest.mark.parametrize("key", ["thread_id", "session_id", "conversation_id"])
def test_a_thread_joins_traces_that_repeat_nothing(project: Project, key: str) -> None:
    def turn(trace: str, at: int, question: str, tool: str) -> Runs:
        more = {"trace_id": trace, "extra": {"metadata": {key: "th"}}}
        asked = [human(question)]
        call, result = ai("", (tool, f"c{at}")), given_back(tool, f"c{at}")
        return [
            run(trace, "", at, "chain", "bot", {"input": question}, {"output": f"Done {at}."}, **more),
            model(f"{trace}.1", trace, at + 1, asked, call, **more),
            run(
                f"{trace}.2",
                trace,
                at + 2,
                "tool",
                tool,
                {"input": "{'id': 'A-7'}"},
                {"output": result},
                **more,
            ),
            model(f"{trace}.3", trace, at + 3, [*asked, call, result], ai(f"Done {at}."), **more),
        ]

    for tool, code in (("look", 0), ("cancel", 1)):
        text = lines(*turn(T2, 20, "And A-7?", tool), *turn(T1, 0, "Hello?", "look"))
        assert score(project, text, "", FORBIDDEN).code == code
        assert score(project, text, FORBIDDEN, "").code == 0
        assert said(project) == [("Hello?", "Done 0.", ["look"]), ("And A-7?", "Done 20.", [tool])]


def chain(tool: str, **more: Any) -> Runs:
    """A chain whose model is asked in other words than the user's, and whose tool no model asked for."""
    return [
        run(T1, "", 0, "chain", "bot", {"question": "Hello?"}, {"answer": "Hi.", "sources": ["a"]}, **more),
        run("r", T1, 1, "retriever", "search", {"query": "Hello?"}, {"documents": [{"page_content": "a"}]}),
        run("t", T1, 2, "tool", tool, {"id": "A-7"}, {"output": "ok"}),
        model("m", T1, 3, [human("Answer briefly: Hello?")], ai("Hi.")),
    ]


def test_a_chain_is_what_it_was_asked_and_answered(project: Project) -> None:
    for tool, code in (("look", 0), ("cancel", 1)):
        assert score(project, lines(*chain(tool)), FORBIDDEN).code == code
        assert said(project) == [("Hello?", "Hi.", [tool])]


STATE = {"question": "Hello?", "documents": ["a"], "generation": "Hi."}


def test_a_state_is_the_answer_only_where_no_model_was_asked_what_the_user_asked(project: Project) -> None:
    for tool, code in (("look", 0), ("cancel", 1)):
        runs = chain(tool)
        runs[0]["outputs"] = STATE
        assert score(project, lines(*runs), FORBIDDEN).code == code
        assert said(project) == [("Hello?", json.dumps(STATE), [tool])]
        runs[3] = model("m", T1, 3, [human("Hello?")], ai("Hi."))
        assert score(project, lines(*runs), FORBIDDEN).code == code
        assert said(project) == [("Hello?", "Hi.", [tool])]


def test_an_outermost_run_that_does_not_say_what_was_asked_hides_nothing(project: Project) -> None:
    for tool, code in (("look", 0), ("cancel", 1)):
        runs = graph(T1, 0, [], "Hello?", tool)
        runs[0] |= {"inputs": {"state": {"n": 1}}, "outputs": {"status": "ok"}}
        assert score(project, lines(*runs), FORBIDDEN).code == code
        assert said(project) == [("Hello?", "Done 0.", [tool])]


def test_scenarios_are_found_by_what_the_outermost_run_says(project: Project) -> None:
    runs = graph(T1, 0, [], "Hello?", "cancel", "th")
    project.write("suite.yaml", f"id: th\nturns:\n  - {{user: Hello?, expect: {{{FORBIDDEN}}}}}\n")
    project.write("log.jsonl", lines(*runs[::-1]))
    options = ("--scenarios", "suite.yaml", "--scenario-from", "extra.metadata.thread_id")
    assert project.call("score", "log.jsonl", *options).code == 1


def test_a_tool_that_failed_is_a_failed_call(project: Project) -> None:
    runs = chain("look")
    runs[2] |= {"outputs": None, "error": "ToolException('no')Traceback (most recent call last):\n  File x"}
    assert score(project, lines(*runs), FORBIDDEN).code == 0
    (call,) = project.sample(T1)["turns"][0]["tool_calls"]
    assert call["result"] == {"error": "ToolException('no')"}


@pytest.mark.parametrize(
    ("left", "what"),
    [
        (lambda runs: runs[1:], "the parent run of 'ChatOpenAI', which is missing"),
        (lambda runs: [*runs[:3], *runs[4:]], "the parent run of 'look', which is missing"),
        (lambda runs: [{**runs[0], "child_run_ids": [each["id"] for each in runs[1:]]}, *runs[1:4], runs[5]],
         "a run within 'LangGraph' that is missing"),
    ],
)  # fmt: skip
def test_a_run_that_is_missing_leaves_the_turn_not_fully_seen(
    project: Project, left: Callable[[Runs], Runs], what: str
) -> None:
    """It may have called a tool; that the conversation is read shows that the others are put together."""
    done = score(project, lines(*left(graph(T1, 0, [], "Hello?", "look"))), FORBIDDEN)
    assert done.code == 3, done.all
    assert what in words(done.all)
    assert said(project) == [("Hello?", "Done 0.", ["look"])]
    assert score(project, lines(*graph(T1, 0, [], "Hello?", "look")), FORBIDDEN).code == 0


def test_outermost_runs_alone_do_not_show_what_was_called(project: Project) -> None:
    """Lists of traces have these alone. A graph's messages have its calls."""
    done = score(project, lines(chain("cancel")[0]), FORBIDDEN)
    assert done.code == 3
    assert "the runs within 'bot', which are missing" in words(done.all)
    done = score(project, lines(chain("x", child_run_ids=[])[0]), FORBIDDEN)
    assert "which are missing" not in words(done.all)
    assert score(project, lines(graph(T1, 0, [], "Hello?", "look")[0]), FORBIDDEN).code == 0
    assert score(project, lines(graph(T1, 0, [], "Hello?", "cancel")[0]), FORBIDDEN).code == 1


@pytest.mark.parametrize(
    ("at", "more", "code"),
    [
        (0, {"run_type": "mystery"}, 3),
        (1, {"events": [{"name": "cancel", "time": "x"}]}, 3),
        (1, {"outputs": {"steps": [[{"tool": "cancel", "tool_input": {"id": "A-7"}}, "ok"]]}}, 3),
        (1, {"outputs": {"documents": [], "note": "x"}}, 0),
        (3, {"inputs": {"blob": 1}, "outputs": {"blob": {"y": [1]}}}, 3),
    ],
)
def test_what_a_run_holds_besides_is_not_lost(project: Project, at: int, more: Any, code: int) -> None:
    runs = [*chain("look"), run("s", T1, 4, "chain", "step", {}, {})]
    assert score(project, lines(*runs), FORBIDDEN).code == 0
    runs[4 if at == 0 else at] |= more
    assert score(project, lines(*runs), FORBIDDEN).code == code


# ── Langfuse ─────────────────────────────────────────────────────────────────────────────────────


def observation(
    trace: str, key: str, parent: str, at: int, kind: str, name: str, given: Any, back: Any
) -> Any:
    return {
        "id": key,
        "traceId": trace,
        "parentObservationId": parent or None,
        "type": kind,
        "name": name,
        "startTime": f"2026-05-01T12:00:{at:02}.000Z",
        "endTime": f"2026-05-01T12:00:{at:02}.500Z",
        "input": given,
        "output": back,
        "level": "DEFAULT",
        "metadata": {},
    }


def traced(trace: str, at: int, question: str, tool: str, session: str | None) -> dict[str, Any]:
    user = {"role": "user", "content": question}
    function = {"name": tool, "arguments": '{"id": "A-7"}'}
    call = {"role": "assistant", "content": None,
            "tool_calls": [{"id": f"c{at}", "type": "function", "function": function}]}  # fmt: skip
    result = {"role": "tool", "tool_call_id": f"c{at}", "content": "ok"}
    answer = {"role": "assistant", "content": f"Done {at}."}
    key = f"{trace[-1]}-{at}"
    return {
        "id": trace,
        "timestamp": f"2026-05-01T12:00:{at:02}.000Z",
        "sessionId": session,
        "htmlPath": f"/traces/{trace}",
        "input": question,
        "output": f"Done {at}.",
        "observations": [
            observation(trace, f"{key}a", "", at, "AGENT", "run", {"q": question}, {"a": f"Done {at}."}),
            observation(trace, f"{key}b", f"{key}a", at + 1, "GENERATION", "chat", [user], call),
            observation(trace, f"{key}c", f"{key}a", at + 2, "TOOL", tool, {"id": "A-7"}, "ok"),
            observation(
                trace, f"{key}d", f"{key}a", at + 3, "GENERATION", "chat", [user, call, result], answer
            ),
        ],
    }


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


@pytest.mark.parametrize("form", PAGES)
def test_traces_of_a_session_are_one_conversation(project: Project, form: str) -> None:
    for tool, code in (("look", 0), ("cancel", 1)):
        traces = [traced("t-1", 0, "Hello?", "look", "s"), traced("t-2", 20, "And A-7?", tool, "s")]
        other = traced("t-3", 10, "Cancel B-1", "cancel", "s-2")
        text = PAGES[form]([traces[0], other, traces[1]])
        assert score(project, text, "", FORBIDDEN, of="t-1").code == code
        assert said(project, "t-1") == [("Hello?", "Done 0.", ["look"]), ("And A-7?", "Done 20.", [tool])]
        assert score(project, text, FORBIDDEN, "", of="t-1").code == 0
        assert score(project, text, FORBIDDEN, of="t-3", asked="Cancel B-1").code == 1


def test_a_session_is_found_by_what_its_first_trace_says(project: Project) -> None:
    traces = [traced("t-2", 20, "And A-7?", "cancel", "s"), traced("t-1", 0, "Hello?", "look", "s")]
    user = "turns: [{user: Hello?}, {user: And A-7?, expect: {" + FORBIDDEN + "}}]"
    project.write("suite.yaml", f"id: s\n{user}\n")
    project.write("log.json", json.dumps({"data": traces, "meta": {"page": 1}}))
    done = project.call("score", "log.json", "--scenarios", "suite.yaml", "--scenario-from", "sessionId")
    assert done.code == 1, done.all


def test_one_trace_over_many_lines_is_one_record(project: Project) -> None:
    for tool, code in (("look", 0), ("cancel", 1)):
        trace = traced("t-1", 0, "Hello?", tool, None)
        trace["input"] = [[{"role": "user", "content": "Hello?"}]]
        assert score(project, json.dumps(trace, indent=1), FORBIDDEN, of="t-1").code == code
        assert said(project, "t-1") == [("Hello?", "Done 0.", [tool])]


def test_a_trace_that_does_not_say_what_was_asked_hides_nothing(project: Project) -> None:
    for tool, code in (("look", 0), ("cancel", 1)):
        trace = {**traced("t-1", 0, "Hello?", tool, None), "input": {"a": 1, "b": [2]}, "output": "ok"}
        assert score(project, lines(trace), FORBIDDEN, of="t-1").code == code
        assert said(project, "t-1") == [("Hello?", "Done 0.", [tool])]


def test_traces_without_a_session_are_conversations_of_their_own(project: Project) -> None:
    traces = [traced("t-1", 0, "Hello?", "look", None), traced("t-2", 20, "And A-7?", "cancel", None)]
    assert score(project, lines(*traces), FORBIDDEN, of="t-1").code == 0
    assert score(project, lines(*traces), FORBIDDEN, of="t-2", asked="And A-7?").code == 1


def test_observations_follow_their_trace_in_lines_of_their_own(project: Project) -> None:
    for tool, code in (("look", 0), ("cancel", 1)):
        traces = [traced("t-1", 0, "Hello?", "look", "s"), traced("t-2", 20, "And A-7?", tool, "s")]
        bare = [{**each, "observations": [one["id"] for one in each["observations"]]} for each in traces]
        inside = [one for each in traces for one in each["observations"]]
        text = lines(*inside[::-1], *bare)
        assert score(project, text, "", FORBIDDEN, of="t-1").code == code
        assert said(project, "t-1") == [("Hello?", "Done 0.", ["look"]), ("And A-7?", "Done 20.", [tool])]
        done = score(project, lines(*bare, *inside[1:]), FORBIDDEN, FORBIDDEN, of="t-1")
        assert done.code == (3 if tool == "look" else 1)
        assert "the observations of the trace, which are not in it" in words(done.all)


def test_an_observation_whose_parent_is_missing_is_not_fully_seen(project: Project) -> None:
    inside = traced("t-1", 0, "Hello?", "look", "s")["observations"]
    assert score(project, lines(*inside), FORBIDDEN, of="t-1").code == 0
    done = score(project, lines(*inside[1:]), FORBIDDEN, of="t-1")
    assert done.code == 3
    assert "the parent observation of 'chat', which is missing" in words(done.all)
    assert said(project, "t-1") == [("Hello?", "Done 0.", ["look"])]


def test_an_answer_that_is_cut_off_is_not_fully_seen(project: Project) -> None:
    for end, code in ((-30, 3), (None, 1)):
        trace = traced("t-1", 0, "Hello?", "cancel", None)
        call = trace["observations"][1]
        call["output"] = json.dumps(call["output"])[:end]
        trace["observations"] = [trace["observations"][0], call]
        done = score(project, lines(trace), FORBIDDEN, of="t-1")
        assert (done.code, "cut off" in done.all) == (code, code == 3), done.all


def test_metadata_is_searched_for_calls(project: Project) -> None:
    function = {"name": "cancel", "arguments": "{}"}
    called = {"note": {"tool_calls": [{"id": "c9", "type": "function", "function": function}]}}
    for metadata, code in (
        (called, 3),
        ({"tools": [{"type": "function", "function": {"name": "cancel"}}]}, 0),
    ):
        trace = traced("t-1", 0, "Hello?", "look", None)
        for place in (trace, trace["observations"][1]):
            done = score(project, lines(trace | {"metadata": {}}), FORBIDDEN, of="t-1")
            assert done.code == 0, done.all
            place["metadata"] = metadata
            done = score(project, lines(trace), FORBIDDEN, of="t-1")
            assert (done.code, "metadata' of the span" in words(done.all)) == (code, code == 3), done.all
            place["metadata"] = {}


@pytest.mark.parametrize("kind", ["SPAN", "EVENT"])
@pytest.mark.parametrize("parent", ["", "t-1-0a"])
def test_what_may_be_a_tool_is_not_fully_seen_wherever_it_stands(
    project: Project, kind: str, parent: str
) -> None:
    trace = traced("t-1", 0, "Hello?", "look", None)
    trace["observations"][0]["id"] = "t-1-0a"
    may_be = observation("t-1", "m", parent, 2, kind, "cancel", {"id": "A-7"}, "ok")
    for more, code in (([may_be], 3), ([], 0)):
        text = lines({**trace, "observations": [*trace["observations"], *more]})
        assert score(project, text, FORBIDDEN, of="t-1").code == code


def test_a_generation_that_was_tried_again_loses_no_result(project: Project) -> None:
    trace = traced("t-1", 0, "Hello?", "look", None)
    first, ask, _, answer = trace["observations"]
    for again in (ask, answer):
        tried = {**again, "id": "again", "startTime": "2026-05-01T12:00:02.600Z",
                 "endTime": "2026-05-01T12:00:02.700Z"}  # fmt: skip
        text = lines({**trace, "observations": [first, ask, answer, tried]})
        for result, code in (("ok", 0), ("error", 1)):
            rule = f"tool_calls: {{match: strict, calls: [{{name: look, result: {result}}}]}}"
            assert score(project, text, rule, of="t-1").code == code
        assert said(project, "t-1") == [("Hello?", "Done 0.", ["look"])]
