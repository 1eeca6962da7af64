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
from tests.support.scored_traces import reasons_of

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
def test_calls_in_exported_spans_are_checked_as_the_agent_s_own(
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


def notices(project: Project) -> list[str]:
    return [each["text"] for each in project.results()["summary"]["notices"]]


def test_a_turn_without_spans_leaves_the_conversation_unobserved(project: Project) -> None:
    port = free_port()
    suite = "{id: a, turns: [Hi, Hi], expect: {tool_calls: {forbidden: [{name: delete}]}}}"
    declared = f"{suite[:-1]}, tools: {{delete: {{returns: ok}}}}}}"
    for written in (suite, declared):
        done = play(project, port, traced(port, "genai"), untraced, suite=written, wait_s=0.5)
        assert done.code == 3, done.all
        (check,) = [each for each in project.sample()["checks"] if each["name"] == "tool_calls"]
        assert (check["passed"], "spans" in check["detail"]) == (None, True)
        assert any("span" in text for text in notices(project))


def test_spans_of_unknown_traces_and_exports_that_cannot_be_read_are_reported_once(project: Project) -> None:
    port = free_port()

    def behave(wire: Wire) -> None:
        assert export(port, (RECORDED / "genai.bin").read_bytes()) == 200
        assert export(port, b"\xff\xff", PROTOBUF) == 400
        assert export(port, b"[]", "text/plain") == 415
        assert export(port, b"", PROTOBUF, "/v1/metrics") == 200
        traced(port, "genai")(wire)

    done = play(project, port, behave, behave)
    assert done.code == 0, done.all
    assert done.err.count("10 spans from 1 trace ") == 1, done.all
    for reason in ("protobuf message", "text/plain"):
        (line,) = [line for line in done.err.splitlines() if reason in line]
        assert " 2 " in line


def test_spans_as_packed_json_that_come_late_and_twice_count_once(project: Project) -> None:
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
    reasons = reasons_of(project.sample())
    assert ("'all_messages'" in reasons and "'invoke_agent shop'" in reasons) == (code == 3)


def test_a_call_that_the_scenario_answers_and_a_span_holds_counts_once(project: Project) -> None:
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
    ("written", "fact"),
    [
        ("endpoint: http://127.0.0.1:9/, observe: openai", "observe: openai"),
        ("target: 'a.py:b', observe: otlp", "observe: otlp"),
        ("command: [x], observe: openai", "target"),
        ("endpoint: http://127.0.0.1:9/, observe: spans", "'spans'"),
        ("endpoint: http://127.0.0.1:9/, observe: otlp, observed_messages: a.b", "`observed_messages`"),
    ],
)
def test_what_cannot_be_observed_is_refused_at_its_line(project: Project, written: str, fact: str) -> None:
    project.write("agenteval.yaml", f"agent: {{name: bot, {written}}}\nmetrics: []\n")
    project.scenarios("{id: a, turns: [Hi], checks: none}")
    project.run().refuses("agenteval.yaml:1", "observe", fact)


def test_a_port_that_is_taken_is_refused(project: Project) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = int(taken.getsockname()[1])
        done = play(project, port, untraced)
    assert (done.code, str(port) in done.all) == (2, True), done.all


def test_arguments_in_no_span_and_spans_that_are_missing_leave_it_unobserved(
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
    assert any("'get_order'" in text for text in notices(project))
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true" in done.all
    missing = sends(lambda span: "invoke_agent" not in span["name"])
    done = play(project, port, missing, suite=suite, wait_s=0.5)
    assert done.code == 3, done.all
    assert any("some spans" in text for text in notices(project))


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


def test_the_spans_of_a_command_hold_its_calls(project: Project) -> None:
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


NO_REFUND = "{name: refund}"
RUNS: dict[str, tuple[str, str, str, str, set[tuple[int | None, str]]]] = {
    "as expected": ("get_order get_order", "get_order", NO_REFUND, "passed", set()),
    "another tool": (
        "get_order get_order", "refund", NO_REFUND, "failed", {(1, "tool_calls"), (None, "tool_calls")},
    ),
    "too often": (
        "get_order get_order get_order", "get_order", NO_REFUND, "failed", {(0, "limits.tool_calls")},
    ),
    "a check of arguments": (
        "get_order get_order", "get_order", "{name: get_order, args: {id: ORD-9}}", "inconclusive", set(),
    ),
}  # fmt: skip
"""The tools that run in the first and in the second turn, what is forbidden, verdict and failed checks."""


def test_a_span_with_a_tool_s_name_and_no_arguments_is_a_call(project: Project) -> None:
    """Its name and the counts decide; only checks of its arguments stay open. The server runs the tools that
    a message names, and shows their names in the style that it names, and nothing else of them."""
    port = free_port()

    def behave(wire: Wire) -> None:
        style, *tools = wire.request.json["messages"][-1]["content"].split()
        span, attributes = WITHOUT_ARGUMENTS[style]
        written = [
            (
                span.replace("NAME", name),
                {key: text.replace("NAME", name) for key, text in attributes.items()},
            )
            for name in tools
        ]
        body = json.dumps(spans_in(wire, *written)).encode()
        assert export(port, body, "application/json") == 200
        untraced(wire)

    rows = {f"{style}, {case}": (style, *RUNS[case]) for style in WITHOUT_ARGUMENTS for case in RUNS}
    strict = "{tool_calls: {match: strict, calls: [{name: get_order}]}}"
    suite = "scenarios:\n" + "".join(
        f"- id: {id_}\n  turns:\n"
        f"  - {{user: {style} {first}, expect: {{limits: {{tool_calls: 2}}}}}}\n"
        f"  - {{user: {style} {second}, expect: {strict}}}\n"
        f"  expect: {{tool_calls: {{forbidden: [{forbidden}]}}}}\n"
        for id_, (style, first, second, forbidden, _, _) in rows.items()
    )
    play(project, port, behave, suite=suite)
    for id_, (_, first, second, _, verdict, failed) in rows.items():
        sample = project.sample(id_)
        assert (sample["verdict"], failed_checks(sample)) == (verdict, failed), (id_, sample["reason"])
        made = [(call["name"], call["args"]) for turn in sample["turns"] for call in turn["tool_calls"]]
        assert made == [(name, None) for name in (*first.split(), *second.split())], id_
