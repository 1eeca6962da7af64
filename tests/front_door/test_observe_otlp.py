"""``observe: otlp``: what an agent behind an endpoint does is read from the spans that it exports.

The exports were recorded from servers with OpenTelemetry's SDK, as its exporter sends them.
"""

from __future__ import annotations

import gzip
import http.client
import json
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.importers.otlp import spans_of_protobuf
from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, Wire, respond_json

RECORDED = Path(__file__).parent.parent / "data" / "otlp"
TRACE, ROOT = "a1" * 16, "b2" * 8
PROTOBUF = "application/x-protobuf"
CALL = {"id": "ORD-1"}
SUITE = """
id: a
turns:
- {user: Where is it?, expect: {tool_calls: {match: strict, calls: [{name: get_order, args: {id: ORD-1}}]}}}
- {user: And now?, expect: {tool_calls: {forbidden: [{name: refund}]}}}
"""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def export(port: int, data: bytes, kind: str = PROTOBUF, path: str = "/v1/traces", **headers: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("POST", path, data, {"Content-Type": kind, **headers})
        return connection.getresponse().status
    finally:
        connection.close()


def recorded(name: str, wire: Wire, *, encode: Callable[[str], bytes] = bytes.fromhex) -> bytes:
    """A recorded export, as if it had been of this request."""
    _, trace, root, _ = wire.request.headers["traceparent"].split("-")
    data = (RECORDED / f"{name}.bin").read_bytes()
    return data.replace(encode(TRACE), encode(trace)).replace(encode(ROOT), encode(root))


def traced(port: int, name: str, answer: dict[str, Any] | None = None) -> Behaviour:
    def behave(wire: Wire) -> None:
        assert export(port, recorded(name, wire)) == 200
        respond_json(answer or {"answer": "It is shipped."})(wire)

    return behave


def untraced(wire: Wire) -> None:
    respond_json({"answer": "It is shipped."})(wire)


def play(
    project: Project,
    port: int,
    *turns: Behaviour,
    suite: str = SUITE,
    wait_s: float = 20,
    more: str = "text: answer",
) -> Done:
    project.scenarios(suite)
    with LocalServer(*turns) as server:
        project.write(
            "agenteval.yaml",
            f"""
            agent:
              name: bot
              endpoint: {server.url}
              request: {{messages: "${{messages}}"}}
              reply: {{{more}}}
              observe: {{port: {port}, wait_s: {wait_s}}}
            metrics: []
            """,
        )
        return project.run()


def calls(project: Project) -> list[tuple[str, Any, Any]]:
    turns = project.sample()["turns"]
    return [(call["name"], call["args"], call["result"]) for turn in turns for call in turn["tool_calls"]]


@pytest.mark.parametrize(
    ("style", "result", "tokens"), [("genai", {"status": "shipped"}, 246), ("openinference", "shipped", 121)]
)
def test_red_with_a_bug_and_green_without_and_all_calls_are_the_agents_own(
    project: Project, style: str, result: Any, tokens: int
) -> None:
    port = free_port()
    done = play(project, port, traced(port, style), traced(port, style))
    assert done.code == 0, done.all
    assert calls(project) == [("get_order", CALL, result)] * 2
    sample = project.sample()
    assert all(call["observed"] for turn in sample["turns"] for call in turn["tool_calls"])
    usage = sample["turns"][0]["usage"]
    assert (usage["input_tokens"] + usage["output_tokens"], usage["calls"]) == (tokens, 2)
    assert usage["estimated"] is False

    assert play(project, port, traced(port, style), traced(port, f"{style}_bug")).code == 1
    assert failed_checks(project.sample()) == {(1, "tool_calls")}
    assert [name for name, _, _ in calls(project)] == ["get_order", "get_order", "refund"]


def test_a_turn_without_spans_leaves_the_conversation_unobserved_and_says_why(project: Project) -> None:
    port = free_port()
    suite = "{id: a, turns: [Hi, Hi], expect: {tool_calls: {forbidden: [{name: delete}]}}}"
    done = play(project, port, traced(port, "genai"), untraced, suite=suite, wait_s=0.5)
    assert done.code == 3, done.all
    assert "spans of the turn that did not arrive" in json.dumps(project.sample()["checks"])
    assert "no span of a request arrived in time; its calls are not observed" in done.all
    declared = f"{suite[:-1]}, tools: {{delete: {{returns: ok}}}}}}"
    assert play(project, port, traced(port, "genai"), untraced, suite=declared, wait_s=0.5).code == 3


def test_spans_of_unknown_traces_and_exports_that_cannot_be_read_are_told_of_once(project: Project) -> None:
    port = free_port()

    def behave(wire: Wire) -> None:
        assert export(port, (RECORDED / "genai.bin").read_bytes()) == 200
        assert export(port, b"\xff\xff", PROTOBUF) == 400
        assert export(port, b"[]", "text/plain") == 415
        assert export(port, b"", PROTOBUF, "/v1/metrics") == 200
        traced(port, "genai")(wire)

    done = play(project, port, behave, behave)
    assert done.code == 0, done.all
    assert done.err.count("10 spans of 1 trace belong to no request of this run") == 1, done.all
    assert "2 exports of spans were refused: it is not a protobuf message" in done.all


def test_json_gzip_and_spans_that_come_late_and_twice_count_once(project: Project) -> None:
    port = free_port()

    def behave(wire: Wire) -> None:
        spans = spans_of_protobuf(recorded("genai", wire))
        for span in spans:  # as JSON writes them
            pairs = span["attributes"].items()
            span["attributes"] = [{"key": k, "value": {"stringValue": str(v)}} for k, v in pairs]
        first = {"resourceSpans": [{"scopeSpans": [{"spans": spans[:2]}]}]}
        rest = {"resourceSpans": [{"scopeSpans": [{"spans": spans[1:]}]}]}
        untraced(wire)
        for part in (first, rest, rest):
            data = gzip.compress(json.dumps(part).encode())
            assert export(port, data, "application/json", **{"Content-Encoding": "gzip"}) == 200

    done = play(project, port, behave, behave)
    assert done.code == 0, done.all
    assert calls(project) == [("get_order", CALL, {"status": "shipped"})] * 2


@pytest.mark.parametrize(("name", "code"), [("refund", 3), ("get_order", 0)])
def test_a_call_in_what_nobody_reads_of_a_span_leaves_its_turn_open(
    project: Project, name: str, code: int
) -> None:
    """The same call, written once more, is the one that was read."""
    port = free_port()
    written = [{"role": "assistant", "tool_calls": [{"name": name, "arguments": CALL}]}]

    def behave(wire: Wire) -> None:
        spans = spans_of_protobuf(recorded("genai", wire))
        for span in spans:
            if "invoke_agent" in span["name"]:
                span["attributes"]["all_messages"] = json.dumps(written)
        body = {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}
        assert export(port, json.dumps(body).encode(), "application/json") == 200
        untraced(wire)

    done = play(project, port, traced(port, "genai"), behave)
    assert done.code == code, done.all
    assert ("'all_messages' of the span 'invoke_agent shop'" in " ".join(done.all.split())) == (code == 3)


def test_a_call_that_the_scenario_answers_and_a_span_tells_of_counts_once(project: Project) -> None:
    port = free_port()
    asks = {"calls": [{"id": "c1", "name": "get_order", "arguments": CALL}]}
    suite = """
    id: a
    turns: [Where is it?]
    tools: {get_order: {returns: {status: mocked}}}
    expect: {tool_calls: {match: strict, calls: [{name: get_order, args: {id: ORD-1}}]}}
    """
    paths = "text: answer?, tool_calls: calls?"
    done = play(project, port, traced(port, "genai", asks), traced(port, "genai"), suite=suite, more=paths)
    assert done.code == 0, done.all
    assert calls(project) == [("get_order", CALL, {"status": "mocked"})]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "endpoint: http://127.0.0.1:9/, observe: openai",
            "observe: openai sees the client of a Python agent that agenteval starts",
        ),
        ("target: 'a.py:b', observe: otlp", "observe: otlp is for an endpoint or a command"),
        (
            "command: [x], observe: openai",
            "observe: openai sees the client of a Python agent: name its target",
        ),
        ("endpoint: http://127.0.0.1:9/, observe: spans", "observe: 'spans' is not known"),
        (
            "endpoint: http://127.0.0.1:9/, observe: otlp, observed_messages: a.b",
            "`observe` and `observed_messages` both report the calls",
        ),
    ],
)
def test_what_cannot_be_observed_is_refused_at_its_line(project: Project, written: str, said: str) -> None:
    project.write("agenteval.yaml", f"agent: {{name: bot, {written}}}\nmetrics: []\n")
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    done = project.run()
    assert (done.code, said in done.all) == (2, True), done.all


def test_a_port_that_is_taken_is_refused_with_what_to_do(project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = play(project, int(taken.getsockname()[1]), untraced)
    assert (done.code, "cannot listen on port" in done.all) == (2, True), done.all


def test_arguments_that_no_span_tells_and_spans_that_are_missing_leave_it_unobserved(
    project: Project,
) -> None:
    port = free_port()
    suite = "{id: a, turns: [Hi], expect: {tool_calls: {forbidden: [{name: get_order, args: {id: ORD-9}}]}}}"

    def sends(keep: Callable[[dict[str, Any]], bool]) -> Behaviour:
        def behave(wire: Wire) -> None:
            spans = spans_of_protobuf(recorded("genai", wire))
            for span in spans:
                for key in ("gen_ai.tool.call.arguments", "gen_ai.output.messages", "gen_ai.input.messages"):
                    span["attributes"].pop(key, None)
            body = {"resourceSpans": [{"scopeSpans": [{"spans": [s for s in spans if keep(s)]}]}]}
            assert export(port, json.dumps(body).encode(), "application/json") == 200
            untraced(wire)

        return behave

    done = play(project, port, sends(lambda _: True), suite=suite)
    assert done.code == 3, done.all
    assert "its spans do not contain the arguments of 'get_order'" in done.all
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in done.all
    missing = sends(lambda span: "invoke_agent" not in span["name"])
    done = play(project, port, missing, suite=suite, wait_s=0.5)
    assert (done.code, "only some spans of a request arrived in time" in done.all) == (3, True), done.all


BOT = """
    import http.client, json, os, sys, urllib.parse

    TRACE, ROOT = "a1" * 16, "b2" * 8

    def export(traceparent, name):
        _, trace, root, _ = traceparent.split("-")
        data = open(os.path.join({folder!r}, name + ".bin"), "rb").read()
        for old, new in ((TRACE, trace), (ROOT, root)):
            data = data.replace(bytes.fromhex(old), bytes.fromhex(new))
        address = urllib.parse.urlsplit(os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"])
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
        connection.request("POST", "/v1/traces", data, {{"Content-Type": "application/x-protobuf"}})
        assert connection.getresponse().status == 200

    for line in sys.stdin:
        asked = json.loads(line)
        if {names!r}[asked["turn"]]:
            export(asked["traceparent"], {names!r}[asked["turn"]])
        print(json.dumps({{"text": "It is shipped."}}), flush=True)
"""


def test_the_spans_of_a_command_tell_of_its_calls(project: Project) -> None:
    agent = {"name": "bot", "command": [sys.executable, "bot.py"], "observe": "otlp"}
    project.write("agenteval.yaml", json.dumps({"agent": agent, "metrics": []}))
    project.scenarios(SUITE)
    for names, code, failed in (
        (["genai", "genai"], 0, set()),
        (["genai", "genai_bug"], 1, {(1, "tool_calls")}),
    ):
        project.write("bot.py", BOT.format(folder=str(RECORDED), names=names))
        done = project.run()
        assert done.code == code, done.all
        assert failed_checks(project.sample()) == failed
    assert [name for name, _, _ in calls(project)] == ["get_order", "get_order", "refund"]
    project.write(
        "agenteval.yaml", json.dumps({"agent": {**agent, "observe": {"wait_s": 0.2}}, "metrics": []})
    )
    project.write("bot.py", BOT.format(folder=str(RECORDED), names=["genai", ""]))
    assert project.run().code == 3


WITHOUT_ARGUMENTS: dict[str, tuple[str, dict[str, str]]] = {
    "genai": ("execute_tool NAME", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "NAME"}),
    "genai-unnamed": ("execute_tool NAME", {"gen_ai.operation.name": "execute_tool"}),
    "genai-bare": ("execute_tool NAME", {}),
    "name-alone": ("span", {"gen_ai.tool.name": "NAME"}),
    "own-operation": ("span", {"gen_ai.operation.name": "run_function", "gen_ai.tool.name": "NAME"}),
    "own-kind": ("span", {"openinference.span.kind": "FUNCTION", "tool.name": "NAME"}),
    "openinference": ("NAME", {"openinference.span.kind": "TOOL", "tool.name": "NAME"}),
    "openinference-unnamed": ("NAME", {"openinference.span.kind": "TOOL"}),
    "traceloop": ("NAME.tool", {"traceloop.span.kind": "tool", "traceloop.entity.name": "NAME"}),
    "langfuse": ("NAME", {"langfuse.observation.type": "tool"}),
    "mlflow": ("NAME", {"mlflow.spanType": '"TOOL"'}),
    "vercel": ("ai.toolCall", {"ai.operationId": "ai.toolCall", "ai.toolCall.name": "NAME"}),
    "mcp": ("tools/call NAME", {"mcp.method.name": "tools/call"}),
}


def spans_in(wire: Wire, *written: tuple[str, dict[str, str]]) -> dict[str, Any]:
    """An export in JSON: the span of the server, and in it what is ``written``, name and attributes."""
    _, trace, root, _ = wire.request.headers["traceparent"].split("-")
    spans = [
        {
            **{"traceId": trace, "spanId": f"{at:016x}", "parentSpanId": f"{1:016x}" if at > 1 else root},
            **{"name": name, "kind": 1 if at > 1 else 2},
            **{"startTimeUnixNano": str(at), "endTimeUnixNano": str(at + 1)},
            "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in attributes.items()],
        }
        for at, (name, attributes) in enumerate((("POST /", {}), *written), 1)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}


def runs_tools(port: int, style: str, *names: str) -> Behaviour:
    """A server that shows its tools' names and nothing else of them."""
    span, attributes = WITHOUT_ARGUMENTS[style]
    written = [
        (span.replace("NAME", name), {key: text.replace("NAME", name) for key, text in attributes.items()})
        for name in names
    ]

    def behave(wire: Wire) -> None:
        body = json.dumps(spans_in(wire, *written)).encode()
        assert export(port, body, "application/json") == 200
        untraced(wire)

    return behave


@pytest.mark.parametrize("style", WITHOUT_ARGUMENTS)
def test_a_span_with_a_tools_name_and_no_arguments_is_a_call(project: Project, style: str) -> None:
    """Its name and the counts decide; only checks of its arguments stay open."""
    port = free_port()
    suite = """
    id: a
    turns:
    - {user: Where is it?, expect: {limits: {tool_calls: 2}}}
    - {user: And now?, expect: {tool_calls: {match: strict, calls: [{name: get_order}]}}}
    expect: {tool_calls: {forbidden: [{name: refund}]}}
    """
    twice = runs_tools(port, style, "get_order", "get_order")
    done = play(project, port, twice, runs_tools(port, style, "get_order"), suite=suite)
    assert done.code == 0, done.all
    assert [call[:2] for call in calls(project)] == [("get_order", None)] * 3

    assert play(project, port, twice, runs_tools(port, style, "refund"), suite=suite).code == 1
    assert failed_checks(project.sample()) == {(1, "tool_calls"), (None, "tool_calls")}
    thrice = runs_tools(port, style, "get_order", "get_order", "get_order")
    assert play(project, port, thrice, runs_tools(port, style, "get_order"), suite=suite).code == 1
    assert failed_checks(project.sample()) == {(0, "limits.tool_calls")}
    of_arguments = suite.replace("{name: refund}", "{name: get_order, args: {id: ORD-9}}")
    done = play(project, port, twice, runs_tools(port, style, "get_order"), suite=of_arguments)
    assert done.code == 3, done.all
