"""A place that is known by its name alone may hold a call, and one that was not read decides no check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.local_servers import LocalServer, respond_json
from tests.support.returned_values import play_values
from tests.support.scored_logs import calling, expect, log, score, verdicts
from tests.support.scored_traces import FAILED, FORBIDDEN, OPEN, PASSED

ASKED = {"role": "user", "content": "Hi"}
DONE = {"role": "assistant", "content": "Done."}
NAMED = {"name": "cancel", "args": {}}
SUB = {"messages": [calling("cancel", key="s1")]}
CALL = SUB["messages"][0]["tool_calls"][0]
LOOKS = [calling("look", '{"a": 1}', "c1")]
LOOK = LOOKS[0]["tool_calls"][0]
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "ok"}
TOOL_USE = {"type": "tool_use", "id": "t2", "name": "cancel", "input": {}}
LOOK_USE = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
TEXT = {"type": "text", "text": "Done."}
ITEM = {"type": "function_call", "id": "fc_1", "call_id": "c9", "name": "cancel", "arguments": "{}"}
SAYS = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}


def openai(*messages: Any) -> dict[str, Any]:
    return {"messages": [ASKED, *messages]}


def said(**fields: Any) -> dict[str, Any]:
    return openai({**DONE, **fields})


def result(**fields: Any) -> dict[str, Any]:
    return openai(*LOOKS, {**RESULT, **fields}, DONE)


def anthropic(**fields: Any) -> dict[str, Any]:
    given = {"type": "tool_result", "tool_use_id": "t1", **fields}
    return openai(
        {"role": "assistant", "content": [LOOK_USE]},
        {"role": "user", "content": [given]},
        {"role": "assistant", "content": [TEXT]},
    )


def google(*parts: Any) -> dict[str, Any]:
    given = {"functionResponse": {"name": "look", "response": {"a": NAMED}, "parts": [*parts]}}
    called = {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]}
    answer = {"role": "model", "parts": [{"text": "Done."}]}
    contents = [{"role": "user", "parts": [{"text": "Hi"}]}, called, {"role": "user", "parts": [given]}]
    return {"contents": [*contents, answer]}


def bedrock(*content: Any) -> dict[str, Any]:
    used = {"role": "assistant", "content": [{"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}]}
    given = {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [*content]}}]}
    return openai(used, given, {"role": "assistant", "content": [{"text": "Done."}]})


def items(*output: Any, **more: Any) -> dict[str, Any]:
    response = {"object": "response", "status": "completed", "output": [*output, SAYS], **more}
    return {"request": {"model": "m", "messages": [ASKED]}, "response": response}


def events(*pieces: Any, output: Any = (SAYS,)) -> dict[str, Any]:
    ended = {"type": "response.completed", "response": {"status": "completed", "output": [*output]}}
    streamed = "\n".join(json.dumps(each) for each in (*pieces, ended))
    return {"request": {"model": "m", "messages": [ASKED]}, "response": streamed}


def pydantic(*parts: Any, request: Any = None, **more: Any) -> dict[str, Any]:
    answer = {"kind": "response", "parts": [*parts, {"part_kind": "text", "content": "Done."}], **more}
    asked = {"kind": "request", "parts": [{"part_kind": "user-prompt", "content": "Hi"}]}
    return {"messages": [asked, *(request or ()), answer]}


def returned(**fields: Any) -> list[Any]:
    """A call of pydantic-ai's, with its result."""
    named = {"tool_name": "look", "tool_call_id": "p"}
    return [
        {"kind": "response", "parts": [{"part_kind": "tool-call", "args": "{}", **named}]},
        {"kind": "request", "parts": [{"part_kind": "tool-return", "content": "ok", **named, **fields}]},
    ]


def adk(*parts: Any, author: str = "shop", **fields: Any) -> dict[str, Any]:
    role = "user" if author == "user" else "model"
    return {"author": author, "invocationId": "i", "content": {"role": role, "parts": [*parts]}, **fields}


BARE = {"text": "Done."}


def session(*entries: Any) -> dict[str, Any]:
    return {"events": [adk({"text": "Hi"}, author="user"), *entries]}


def confirming(call: Any) -> Any:
    given = {"originalFunctionCall": call, "toolConfirmation": {"hint": "", "confirmed": False}}
    return {"functionCall": {"id": "g", "name": "adk_request_confirmation", "args": given}}


WAITS = {"type": "mcp_approval_request", "id": "a1", "name": "cancel", "arguments": "{}", "server_label": "s"}
GRANTED = {"type": "mcp_call", "id": "m1", "name": "look", "arguments": "{}", "approval_request_id": "a1"}
CODE = {"type": "code_interpreter_call", "id": "x", "code": "1"}
PIECE = {"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 1}


def turned(request: str, **fields: Any) -> dict[str, Any]:
    """A tool part of the AI SDK."""
    return {"type": f"tool-{request}", "toolCallId": "x", "input": {}, **fields}


# What holds a call that nobody read, or that was attempted, beside what does not; the exit code of the first.
PAIRS: dict[str, tuple[Any, Any, int]] = {
    "an approval that is asked for": (items(WAITS), items({**WAITS, "name": "look"}, GRANTED), 1),
    "a part that was denied": (
        openai({"role": "assistant", "parts": [turned("cancel", state="output-denied"), TEXT]}),
        openai({"role": "assistant", "parts": [turned("look", state="output-available", output=1), TEXT]}),
        1,
    ),
    "a question of ADK's": (session(adk(confirming({"id": "f", **NAMED})), adk(BARE)),
                            session(adk(confirming({"id": "f", "name": "look", "args": {}})), adk(BARE)), 1),
    "a confirmation that waits": (
        session(adk(BARE, actions={"requestedToolConfirmations": {"f": {"hint": ""}}})),
        session(adk({"functionCall": {"id": "f", "name": "look", "args": {}}}),
                adk(BARE, actions={"requestedToolConfirmations": {"f": {"hint": ""}}})), 3,
    ),
    "custom metadata of ADK's": (session(adk(BARE, customMetadata={"functionCall": NAMED})),
                                 session(adk(BARE, customMetadata={"trace": [{"a": {"b": 1}}]})), 3),
    "a transcription": (session(adk(BARE, inputTranscription={"text": "x", "functionCall": NAMED})),
                        session(adk(BARE, inputTranscription={"text": "x", "finished": True})), 3),
    "what an answer is grounded in": (
        session(adk(BARE, groundingMetadata={"groundingChunks": [{"functionCall": NAMED}]})),
        session(adk(BARE, groundingMetadata={"groundingChunks": [{"web": {"uri": "u"}}]})), 3,
    ),
    "details of a provider": (pydantic(provider_details={"tool_calls": [NAMED]}),
                              pydantic(provider_details={"logprobs": [{"a": {"token": "x"}}]}), 3),
    "metadata of a reply": (pydantic(metadata={"tool_calls": [NAMED]}),
                            pydantic(metadata={"trace": [{"span": {"id": "x"}}]}), 3),
    "details of a thought": (
        pydantic({"part_kind": "thinking", "content": "x", "provider_details": {"tool": {"name": "cancel"}}}),
        pydantic({"part_kind": "thinking", "content": "x", "provider_details": {"raw": [{"a": 1}]}}), 3,
    ),
    "metadata of a result": (pydantic(request=returned(metadata=SUB)),
                             pydantic(request=returned(metadata={"rows": [{"name": "x", "input": "y"}]})), 3),
    "a tool that was tried again": (
        pydantic(request=returned(outcome="retried", retry={"cause": {"tool": "cancel", "args": {}}})),
        pydantic(request=returned(outcome="retried", retry={"cause": {"text": "x"}, "max_retries": 2})),
        3,
    ),
    "an artifact": (result(artifact=SUB),
                    result(artifact={"rows": [{"name": "cancel", "input": "y"}]}), 3),
    "metadata of a provider": (said(provider_metadata={"action": {"name": "cancel"}}),
                               said(provider_metadata={"openai": {"itemId": "x"}}), 3),
    "fields of a provider": (said(provider_specific_fields={"x": {"tool_calls": [CALL]}}),
                             said(provider_specific_fields={"citations": None, "x": {"a": 1}}), 3),
    "what the provider sent": (
        openai({**LOOKS[0], "raw_representation": {"choices": [{"message": {"tool_calls": [CALL]}}]}},
               RESULT, DONE),
        openai({**LOOKS[0], "raw_representation": {"choices": [{"message": {"tool_calls": [LOOK]}}]}},
               RESULT, DONE), 3,
    ),
    "an item that is referred to": (items({"type": "item_reference", "id": "fc_1"}),
                                    items({**ITEM, "name": "look"}, {"type": "item_reference", "id": "fc_1"}),
                                    3),
    "the input of a response": (items(input=[ITEM]),
                                items({**ITEM, "name": "look"}, input=[{**ITEM, "name": "look"}]), 3),
    "a block in a result": (anthropic(content=[TOOL_USE]),
                            anthropic(content=[{"type": "text", "text": json.dumps(NAMED)}]), 3),
    "a part of a result": (google({"functionCall": NAMED}), google({"inlineData": {"data": "eA=="}}), 3),
    "a result of Bedrock's": (bedrock({"toolUse": {"toolUseId": "z", "name": "cancel", "input": {}}}),
                              bedrock({"json": NAMED}), 3),
    "the output of code": (items({**CODE, "outputs": [ITEM]}),
                           items({**CODE, "outputs": [{"type": "logs", "logs": "1"}]}), 3),
    "an event of no item": (events(PIECE),
                            events(PIECE, output=[SAYS, {**ITEM, "name": "look"}]), 3),
    "a call of which only the end is an event": (
        events({"type": "response.mcp_call.completed", "item_id": "m", "output_index": 1}),
        events({"type": "response.mcp_call.completed", "item_id": "m1", "output_index": 1},
               output=[SAYS, GRANTED]), 3,
    ),
    "what describes a record": (said() | {"run": {"last": TOOL_USE}},
                                said() | {"run": {"model": {"name": "cancel", "parameters": {"a": 1}}}}, 3),
    "counts of calls": (said(usage={"input_tokens": 1, "output_tokens": 1, "server_tool_use": {"cancel": 1}}),
                        said(usage={"input_tokens": 1, "output_tokens": 1, "server_tool_use": {"cancel": 0}}),
                        3),
    "usage in metadata": (said(metadata={"totalUsage": {"inputTokens": 1, "calls": [NAMED]}}),
                          said(metadata={"totalUsage": {"inputTokens": 1, "outputTokens": 2}}), 3),
}  # fmt: skip


def scored(project: Project, records: Mapping[str, Any], rule: str = FORBIDDEN) -> dict[str, str]:
    """The verdicts over records, beside one which shows that this agent's calls are recorded."""
    log(
        project,
        {"id": "seen", "agent": "a", **openai(*LOOKS, RESULT, DONE)},
        *({"id": name, "agent": "a", **record} for name, record in records.items()),
    )
    score(project, "log.jsonl", *expect(project, dict.fromkeys(records, rule)))
    found = verdicts(project)
    return {name: found[name] for name in records}


VERDICTS = {1: FAILED, 3: OPEN}


def test_a_call_in_a_known_place_of_a_log(project: Project) -> None:
    bad, good = ({name: pair[at] for name, pair in PAIRS.items()} for at in (0, 1))
    assert scored(project, bad) == {name: VERDICTS[code] for name, (_, _, code) in PAIRS.items()}
    assert scored(project, good) == dict.fromkeys(PAIRS, PASSED)


def test_a_call_that_was_read_elsewhere_counts_once(project: Project) -> None:
    repeated = {
        "by its id": openai({**LOOKS[0], "metadata": {"calls": [LOOK]}}, RESULT, DONE),
        "by its arguments": openai({**LOOKS[0], "inner_content": {"a": {"name": "look", "args": {"a": 1}}}},
                                   RESULT, DONE),
        "of a later turn": openai(*LOOKS, RESULT, DONE, ASKED, {**DONE, "inner_content": [LOOK]}),
    }  # fmt: skip
    assert scored(project, repeated) == dict.fromkeys(repeated, PASSED)
    other = json.loads(json.dumps(LOOK).replace("look", "cancel"))
    reused = {"an id that is used again": openai({**LOOKS[0], "inner_content": [other]}, RESULT, DONE)}
    assert scored(project, reused) == dict.fromkeys(reused, OPEN)


def confirmed(is_granted: bool) -> dict[str, Any]:
    """A session in which the user is asked whether a call may be made."""
    call, response = {"id": "f", **NAMED}, {"error": "requires confirmation"}
    refused = {"functionResponse": {"id": "f", "name": "cancel", "response": response}}
    question = confirming(call)["functionCall"]
    answer = {"id": question["id"], "name": question["name"], "response": {"confirmed": is_granted}}
    done = {"functionResponse": {"id": "f", "name": "cancel", "response": {"a": 1}}}
    return session(
        adk({"functionCall": call}),
        adk(refused, actions={"requestedToolConfirmations": {"f": {"hint": "Sure?"}}}),
        adk({"functionCall": question}, longRunningToolIds=["g"]),
        adk({"functionResponse": answer}, author="user"),
        *([adk(done)] if is_granted else []),
        adk(BARE),
    )


def test_a_call_that_waits_for_a_confirmation_fulfils_nothing(project: Project) -> None:
    rule = "tool_calls: {match: strict, calls: [{name: cancel, result: ok}]}"
    sessions = {"granted": confirmed(True), "denied": confirmed(False)}
    assert scored(project, sessions, rule) == {"granted": PASSED, "denied": FAILED}


@pytest.mark.parametrize(
    "record",
    [pydantic(request=returned()), said() | {"tools": [{"name": "cancel"}]}],
    ids=["of a framework", "of messages"],
)
def test_what_a_document_holds_around_its_conversations_is_searched(project: Project, record: Any) -> None:
    for more, code in (({"tool_log": [NAMED]}, 3), ({"labels": [NAMED]}, 0)):
        records = [{"id": id_, **record} for id_ in ("a", "b")]
        project.write("log.json", json.dumps({"conversations": records, **more}))
        done = score(project, "log.json", *expect(project, {"a": FORBIDDEN}))
        assert done.code == code, done.all


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


def play(project: Project, shapes: Mapping[str, Any]) -> dict[str, str]:
    """The verdicts of an agent that returns so, and whose text is read, too."""
    rule = f"{FORBIDDEN}, output: {{contains: [Done]}}"
    return play_values(project, shapes, rule, seen=[*LOOKS, RESULT, DONE])


def of_pydantic(name: str) -> list[Any]:
    return json.loads(json.dumps(pydantic(request=returned())["messages"]).replace("look", name))


def of_adk(name: str) -> list[Any]:
    call = {"id": "f", "name": name, "args": {}}
    given = {"functionResponse": {"id": "f", "name": name, "response": {"a": 1}}}
    return [adk({"functionCall": call}), adk(given), adk(BARE)]


def of_langchain(name: str) -> list[Any]:
    asked = {"content": "", "tool_calls": [{"id": "c", "name": name, "args": {}}]}
    given = {"content": "ok", "tool_call_id": "c", "name": name}
    said = {"content": "Done.", "response_metadata": {}}
    return [{"type": "ai", "data": asked}, {"type": "tool", "data": given}, {"type": "ai", "data": said}]


FORMS = {"pydantic-ai": of_pydantic, "adk": of_adk, "langchain": of_langchain}


def test_a_list_in_the_form_of_a_framework_is_read_as_its_log(project: Project) -> None:
    for tool, verdict in (("cancel", FAILED), ("look", PASSED)):
        shapes = {name: form(tool) for name, form in FORMS.items()}
        assert play(project, shapes) == dict.fromkeys(FORMS, verdict)


def test_a_call_in_a_known_place_of_a_returned_list(project: Project) -> None:
    keys = ("metadata of a provider", "what the provider sent", "an artifact", "a block in a result")
    waits = [{"type": "mcp_approval_request", "id": "a1", "name": "cancel", "arguments": "{}"}, DONE]
    bad = {key: PAIRS[key][0]["messages"] for key in keys}
    good = {key: PAIRS[key][1]["messages"] for key in keys}
    assert play(project, bad) == dict.fromkeys(keys, OPEN)
    assert play(project, good) == dict.fromkeys(keys, PASSED)
    assert play(project, {"waits": waits}) == {"waits": FAILED}


def test_an_endpoint_whose_call_waits_for_an_approval(project: Project) -> None:
    project.scenarios(f"{{id: a, turns: [Hi], expect: {{{FORBIDDEN}}}}}")
    for name, code in (("cancel", 1), ("look", 0)):
        reply = {"status": "completed", "output": [{**WAITS, "name": name}, SAYS]}
        with LocalServer(respond_json(reply)) as server:
            agent = f"{{endpoint: '{server.url}/v1/responses', calls: all}}"
            project.write("agenteval.yaml", f"agent: {agent}\nmetrics: []\n")
            done = project.run()
        assert done.code == code, done.all
        (call,) = project.sample()["turns"][0]["tool_calls"]
        assert (call["name"], call["attempted"]) == (name, True)


# ── a mock that answered ─────────────────────────────────────────────────────────────────────────

ASKS = """
def agent(messages, ctx):
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}}
    reported = {**call, "id": ID}
    if WAY == "ctx":
        ctx.call_tool_sync("look", {"a": 1})
    elif messages[-1]["role"] != "tool":
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": ID, "content": "It is found: 1."}
    return [{"role": "assistant", "content": None, "tool_calls": [reported]}, result,
            {"role": "assistant", "content": "Done."}]
"""
MOCKED = "tools: {look: {returns: 1}}"
ONCE = "tool_calls: {match: strict, calls: [{name: look, args: {a: 1}}]}"


@pytest.mark.parametrize("way", ["ctx", "tool_calls"])
@pytest.mark.parametrize("identity", ["c1", "own"])
def test_a_call_that_the_mock_answered_may_be_reported_once_more(
    project: Project, way: str, identity: str
) -> None:
    project.config()
    project.scenarios(f"{{id: a, turns: [Hi], {MOCKED}, expect: {{{ONCE}}}}}")
    source = ASKS.replace("WAY", repr(way)).replace("ID", repr(identity))
    project.agent(source)
    done = project.run()
    assert done.code == 0, done.all
    assert len(project.sample()["turns"][0]["tool_calls"]) == 1
    twice = source.replace("[reported]", "[reported, {**reported, 'id': 'more'}]")
    project.agent(twice.replace("\"id\": 'own'", "\"id\": 'c1'"))
    done = project.run()
    assert done.code == 1
    assert "look(a=1)" in done.all


def test_an_endpoint_that_reports_a_call_that_the_mock_answered(project: Project) -> None:
    project.scenarios(f"{{id: a, turns: [Hi], {MOCKED}, expect: {{{ONCE}}}}}")
    whole = [*LOOKS, {**RESULT, "content": "It is found: 1."}, DONE]
    own = json.loads(json.dumps([*whole[:2], DONE]).replace('\\"a\\": 1', '\\"a\\": 2').replace("c1", "c2"))
    request = {"m": "${message}", "r": "${tool_results}"}
    reply = {"text": "t?", "tool_calls": "c", "messages": "log"}
    for reported, code in ((whole, 0), (own, 1)):
        asks = respond_json({"c": [LOOK], "log": []})
        with LocalServer(asks, respond_json({"t": "Done.", "c": [], "log": reported})) as server:
            agent = {"name": "bot", "endpoint": server.url, "request": request, "reply": reply}
            project.write("agenteval.yaml", json.dumps({"agent": agent, "metrics": []}))
            done = project.run()
        assert done.code == code, done.all


def test_a_call_that_was_denied_needs_no_mock(project: Project) -> None:
    project.config()
    project.scenarios(f"{{id: a, turns: [Hi], {MOCKED}, expect: {{{FORBIDDEN}}}}}")
    for state, code in (("output-denied", 0), ("output-available", 3)):
        part = turned("look", state=state, approval={"id": "a", "approved": state != "output-denied"})
        answer = [{"role": "assistant", "parts": [part, TEXT]}]
        project.agent(f"def agent(messages):\n    return {answer!r}\n")
        done = project.run()
        assert done.code == code, done.all
