"""Agents behind an API of their own: ``request:``, ``reply:``, sessions, streams and jobs."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from tests.support.agent_servers import OBSERVED, SCENARIO, Shop, calls_of, okay, played, served
from tests.support.http_runs import SAYS_HELLO, HttpAgent, HttpRun, error_of, run_http_agents
from tests.support.kit import Project, failed_checks
from tests.support.local_servers import Behaviour, LocalServer, Request, chunked, respond, respond_json, sse
from tests.support.suites import warnings_of

ASK = 'request: {q: "${message}"}, '
ASK_ALL = 'request: {q: "${messages}"}, '
both = pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fix"])

SAYS_HI = f"scenarios: [{{name: s, {SAYS_HELLO}}}]"


def agent(project: Project, server: LocalServer, options: str) -> None:
    project.write("agenteval.yaml", f"agent: {{endpoint: '{server.address}/x', {options}}}\nmetrics: []\n")


# ── sessions of the server's, tools of the scenario's ────────────────────────────────────────────

USAGE = {"input_tokens": 5, "output_tokens": 2}
SESSION = """
agent:
  name: shop
  endpoint: {url}/chat
  request:
    input: {text: "${message}"}
    results: "${tool_results}"
    session: "${session}"
    tools: "${tools}"
    turn: "${turn}"
    meta: {client: "agenteval $${x}", number: 1, shown: "turn ${turn}"}
  reply: {text: data.reply, tool_calls: data.calls, session: data.id, usage: data.usage}
"""


def with_session(shop: Shop, request: Request) -> Behaviour:
    asked = request.json
    results = asked.get("results", asked.get("tool_results"))
    message = asked.get("message", asked.get("input"))
    assert (message is None) != (results is None)
    data: dict[str, Any] = {"id": asked.get("session", "s-1"), "usage": USAGE, "calls": None, "reply": None}
    if results:
        (result,) = results
        assert (result["name"], result["tool_call_id"]) == ("get_order", "c1")
        data["reply"] = shop.answer(result["content"])
    else:
        call = shop.call(str(message))
        data["calls"] = [{"id": "c1", "name": call["name"], "arguments": call["args"]}]
    return okay({"data": data})


@both
def test_a_session_of_the_server_and_mocked_calls(project: Project, has_bug: bool) -> None:
    _, server = played(project, with_session, SESSION, has_bug=has_bug)
    asked = [request.json for request in server.requests]
    assert ["session" in each for each in asked] == [False, True, True, True]
    assert asked[0] | {"tools": ...} == {
        "input": {"text": "Where is ORD-1?"},
        "tools": ...,
        "turn": 0,
        "meta": {"client": "agenteval ${x}", "number": 1, "shown": "turn 0"},
    }
    assert asked[0]["tools"][0]["function"]["name"] == "get_order"
    assert [each["turn"] for each in asked] == [0, 0, 1, 1]
    usage = project.sample()["usage"]
    assert (usage["input_tokens"], usage["estimated"]) == (20, False)


SHORTEST = """
agent:
  name: shop
  endpoint: {url}/chat
  request: {message: "${message}", session: "${session}"}
  reply: {text: data.reply, tool_calls: data.calls, session: data.id}
"""


@both
def test_results_without_a_place_stand_under_their_name(project: Project, has_bug: bool) -> None:
    _, server = played(project, with_session, SHORTEST, has_bug=has_bug)
    keys = [sorted(request.json) for request in server.requests]
    results = ["session", "tool_results"]
    assert keys == [["message"], results, ["message", "session"], results]


# ── sessions of ours, the complete conversation, lists ───────────────────────────────────────────

OURS = """
agent:
  endpoint: {url}/s/${session}/chat
  headers: {X-Conversation: "c-${session}"}
  request: {history: {messages: "${messages}"}, parts: [{text: "${message}"}, ["${session}"], fixed]}
  reply: {text: "reply.0.text", tool_calls: "calls?"}
"""


def with_history(shop: Shop, request: Request) -> Behaviour:
    asked = request.json
    last = asked["history"]["messages"][-1]
    if last["role"] == "tool":
        return okay({"reply": [{"text": shop.answer(last["content"])}]})
    call = shop.call(asked["parts"][0]["text"])
    arguments = json.dumps(call["args"])
    return okay({"calls": [{"id": "c1", "function": {"name": call["name"], "arguments": arguments}}]})


@both
def test_a_session_of_ours_and_the_complete_conversation(project: Project, has_bug: bool) -> None:
    _, server = played(project, with_history, OURS, has_bug=has_bug)
    (session,) = {request.json["parts"][1][0] for request in server.requests}
    assert len(session) == 32
    assert {request.path for request in server.requests} == {f"/s/{session}/chat"}
    assert {request.headers["x-conversation"] for request in server.requests} == {f"c-{session}"}
    assert len(server.requests[-1].json["history"]["messages"]) == 7


def test_conversations_have_sessions_of_their_own(project: Project) -> None:
    with served(Shop(), with_history) as server:
        project.write("agenteval.yaml", OURS.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios(SCENARIO)
        assert project.run("--epochs", "3").code == 0
    assert len({request.path for request in server.requests}) == 3


# ── a session in a header or a cookie ────────────────────────────────────────────────────────────


IN_HEADERS = [
    ('X-Session: "${session}"', "{header: X-Session-Id}", {"X-Session-Id": "s 1"}, "x-session", "s 1"),
    (
        'Cookie: "sid=${session}"',
        "{cookie: sid}",
        {"Set-Cookie": "a=b; P=/, sid=s1; P=/"},
        "cookie",
        "sid=s1",
    ),
]


@pytest.mark.parametrize(("headers", "place", "given", "name", "value"), IN_HEADERS, ids=["header", "cookie"])
def test_a_session_in_a_header(
    project: Project, headers: str, place: str, given: dict[str, str], name: str, value: str
) -> None:
    options = f"headers: {{{headers}}}, {ASK}reply: {{text: text, session: {place}}}"
    behaviours = (okay({"text": "hello"}, **given), okay({"text": "hello"}))
    scenario = SAYS_HELLO.replace("hi", "a, b")
    ran = run_http_agents(project, {"s": HttpAgent(options, behaviours, scenario=scenario)})
    assert ran.samples["s"]["verdict"] == "passed"
    first, second = (request.headers for request in ran.asked["s"])
    assert name not in first
    assert second[name] == value


# ── agents that run their own tools ──────────────────────────────────────────────────────────────

OWN = """
agent:
  endpoint: {url}/ask
  request: {q: "${message}", session: "${session}"}
  reply: {text: answer, messages: trace}
"""


def own_trace(shop: Shop, request: Request, *, as_messages: bool) -> Behaviour:
    call = shop.call(request.json["q"])
    result = {**call["args"], "status": "shipped"}
    asks = {"id": "x", "type": "function", "function": {"name": call["name"], "arguments": call["args"]}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [asks]},
        {"role": "tool", "tool_call_id": "x", "content": json.dumps(result)},
    ]
    records = [{"tool": call["name"], "input": call["args"], "output": result}]
    return okay({"answer": shop.answer(result), "trace": messages if as_messages else records})


@both
@pytest.mark.parametrize("as_messages", [True, False], ids=["messages", "records"])
def test_calls_that_the_agent_made_itself(project: Project, as_messages: bool, has_bug: bool) -> None:
    serve = functools.partial(own_trace, as_messages=as_messages)
    played(project, serve, OWN, has_bug=has_bug, scenario=OBSERVED)
    calls = [call for turn in project.sample()["turns"] for call in turn["tool_calls"]]
    assert all(call["observed"] and "shipped" in str(call["result"]) for call in calls)


# ── streams ──────────────────────────────────────────────────────────────────────────────────────

STREAM = """
agent:
  endpoint: {url}/stream
  streaming: true
  request: {message: "${message}", results: "${tool_results}", session: "${session}"}
  reply: {delta: delta.text, tool_calls: "call?", done: {type: end}, usage: "usage?"}
"""


def _events(shop: Shop, request: Request) -> list[Any]:
    asked = request.json
    if "results" not in asked:
        call = shop.call(asked["message"])
        return [{"type": "call", "call": {"id": "c", **call}}, {"type": "end", "delta": {"text": None}}]
    text = shop.answer(asked["results"][0]["content"])
    pieces = [{"type": "text", "delta": {"text": piece}} for piece in (text[:4], text[4:9], text[9:])]
    return [*pieces, {"type": "end", "usage": {"input_tokens": 3, "output_tokens": 4}}]


def _as_sse(shop: Shop, request: Request) -> Behaviour:
    return sse(*_events(shop, request), done=False)


def _in_pieces(shop: Shop, request: Request) -> Behaviour:
    """Calls as OpenAI streams them, forwarded."""
    events = []
    for event in _events(shop, request):
        if call := event.pop("call", None):
            given = json.dumps(call["args"])
            first = {"index": 0, "id": "c", "function": {"name": call["name"], "arguments": given[:5]}}
            more = {"index": 0, "function": {"arguments": given[5:]}}
            events += [{**event, "call": [first]}, {**event, "call": [more]}]
        else:
            events.append(event)
    return sse(*events)


def _as_lines(shop: Shop, request: Request) -> Behaviour:
    lines = [json.dumps(event).encode() + b"\n" for event in _events(shop, request)]
    return chunked(lines, headers={"Content-Type": "application/x-ndjson"})


def _as_plain_lines(shop: Shop, request: Request) -> Behaviour:
    return respond("\n".join(map(json.dumps, _events(shop, request))))


@both
@pytest.mark.parametrize("serve", [_as_sse, _in_pieces, _as_lines, _as_plain_lines])
def test_a_stream(project: Project, serve: Any, has_bug: bool) -> None:
    played(project, serve, STREAM, has_bug=has_bug)
    assert project.sample()["turns"][0]["agent"] == "Your order ORD-1 is shipped."


# ── jobs ─────────────────────────────────────────────────────────────────────────────────────────

JOB = """
agent:
  endpoint: {url}/jobs
  headers: {Authorization: "Bearer abcdefgh12345"}
  request: {message: "${message}", session: "${session}"}
  reply: {text: result.text, messages: result.steps}
"""
POLLS = {
    "an id": "  poll: {job: job.id, url: '/jobs/${job}', status: status, every_s: 0.01}\n",
    "a URL": "  poll: {job: job.url, status: status, every_s: 0.01}\n",
    "Location": "  poll: {status: status, every_s: 0.01}\n",
    "words": "  poll: {job: job.id, url: '/jobs/${job}', status: state.code, done: [3], every_s: 0.01}\n",
}


def _job(shop: Shop, request: Request) -> Behaviour:
    """Two polls say that it runs, the third has the answer."""
    if request.method == "POST":
        shop.polls, shop.text = 0, request.json["message"]  # type: ignore[attr-defined]
        job = {"id": "a/b", "url": "/jobs/a%2Fb"}
        return respond_json({"job": job}, status=202, headers={"Location": "/jobs/a%2Fb"})
    assert request.path == "/jobs/a%2Fb"
    assert request.headers["authorization"] == "Bearer abcdefgh12345"
    assert request.body == b""
    assert "content-type" not in request.headers
    shop.polls += 1  # type: ignore[attr-defined]
    if shop.polls < 3:  # type: ignore[attr-defined]
        return okay({"status": "Running", "state": {"code": 1}}, **{"Retry-After": "0"})
    call = shop.call(shop.text)  # type: ignore[attr-defined]
    result = {**call["args"], "status": "shipped"}
    steps = [{"name": call["name"], "args": call["args"], "result": result}]
    done = {"text": shop.answer(result), "steps": steps}
    return okay({"status": "COMPLETED", "state": {"code": 3}, "result": done})


@both
@pytest.mark.parametrize("poll", POLLS)
def test_a_job(project: Project, poll: str, has_bug: bool) -> None:
    played(project, _job, JOB + POLLS[poll], has_bug=has_bug, scenario=OBSERVED)


# ── replies of many shapes, and what breaks ──────────────────────────────────────────────────────

EVENTS = {"Content-Type": "text/event-stream"}


def read(options: str, *behaviours: Behaviour, answer: str = "hello") -> tuple[str, HttpAgent]:
    return answer, HttpAgent(with_request(options), behaviours)


def with_request(options: str) -> str:
    return options if "request:" in options else ASK + options


MESSAGES = [{"type": "human", "content": "hi"}, {"type": "ai", "content": "hello"}]
AUTHORED = [{"author": "a", "content": {"role": "model", "parts": [{"text": "hello"}]}}]
PAYLOADS = [{"type": "x"}, {"payload": {"message": "hello"}}, {"payload": {"message": "world"}}]
PIECES = [{"type": "piece", "t": "hel"}, {"type": "piece", "t": "lo"}, {"type": "end", "t": "hello"}]
LINES = '{"message": {"role": "assistant", "content": "hello"}}\n{"message": null}\n'
UNTITLED = 'event: metadata\ndata: {"run_id": "1"}\n\ndata: "hel"\n\ndata: "lo"\n\n'
TITLED = "event: data\ndata: hel\n\nevent: data\ndata: lo\n\nevent: end\n\n"
TOKEN = 'event: token\ndata: {"t": "hello"}\n\nevent: end\ndata:\n\n'
LOOKS = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
REPORTS = sse({"m": {"role": "assistant", "content": None, "tool_calls": LOOKS}}, {"d": {"text": "hello"}})
POLLED = "poll: {job: id, url: 'AT/j/${job}', status: status, every_s: 0.01}"
BUSY = respond("busy", status=503, headers={"Retry-After": "0"})
BEGUN, FINISHED = okay({"id": 7}), okay({"status": "done", "data": {"reply": "hello"}})
SHAPES: dict[str, tuple[str, HttpAgent]] = {
    "a plain text": read("reply: {text: .}", respond("hello")),
    "a JSON text": read("reply: {text: .}", okay("hello")),
    "parts": read("reply: {text: parts}", okay({"parts": [{"type": "text", "text": "hello"}]})),
    "a list of messages": read("reply: {text: '*.payload.message'}", okay(PAYLOADS), answer="hello\nworld"),
    "a key with dots": read("reply: {text: a.b.c}", okay({"a.b": {"c": "hello"}})),
    "the last of a list": read("reply: {text: m.-1.t}", okay({"m": [{"t": "no"}, {"t": "hello"}]})),
    "all of its messages": read("reply: {messages: messages}", okay({"messages": MESSAGES})),
    "its events": read("reply: {messages: .}", okay(AUTHORED)),
    "done at once": read("reply: {text: t}, poll: {status: status, job: id}",
        okay({"status": "done", "id": "/j/1", "t": "hello"})),
    "a stream of texts": read("reply: {delta: .}", respond(UNTITLED, headers=EVENTS)),
    "a stream of texts with named events": read("reply: {delta: ., done: {event: end}}", respond(TITLED,
        headers=EVENTS)),
    "a stream of named events": read("reply: {delta: t, done: {event: [end, close]}}", respond(TOKEN,
        headers=EVENTS)),
    "a stream with its text once more": read("reply: {text: t}", sse(*PIECES)),
    "a stream and a text that repeats": read("reply: {text: t}", sse({"t": "hello "}, {"t": "hello "}),
        answer="hello hello "),
    "a complete text beside pieces": read("reply: {delta: d, text: t}", sse({"d": "hel"}, {"d": "l"},
        {"t": "hello"})),
    "pieces beside calls": read("streaming: true, reply: {delta: d.text, messages: 'm?'}", REPORTS),
    "messages of a stream": read("streaming: true, reply: {messages: message}", respond(LINES)),
    "not streamed after all": read("streaming: true, reply: {delta: t}", okay({"t": "hello"})),
    "an error that is none": read("reply: {text: t, error: {event: error}}",
        okay({"event": "message", "t": "hello"})),
    "a server that is busy twice": read("reply: {text: data.reply}, " + POLLED, BUSY, BEGUN, BUSY, FINISHED),
}  # fmt: skip


def breaks(
    options: str, behaviour: Behaviour, *facts: str, then: Any = ()
) -> tuple[tuple[str, ...], HttpAgent]:
    """``facts``: what the error names."""
    return facts, HttpAgent(with_request(options), (behaviour, *then))


PLAIN = ASK + "reply: {text: data.reply}"
JOB_AT = PLAIN + ", " + POLLED
STREAMED = ASK + "streaming: true, reply: {text: t}"
PAGE = "<!DOCTYPE html><title>x</title>"
BROKEN = {
    "a path that names nothing": breaks(PLAIN, okay({"data": {"answer": "hello", "id": 1}}),
        "reply.text: data.reply", "answer, id"),
    "no such branch": breaks(PLAIN, okay({"other": "hello"}), "reply.text: data.reply", "other"),
    "not a text": breaks(PLAIN, okay({"data": {"reply": {"de": "hello"}}}), "reply.text: data.reply", "de"),
    "an error in a 200": breaks(PLAIN, okay({"error": "out of order", "data": {"reply": "hello"}}),
        "out of order"),
    "its own error": breaks("reply: {text: t, error: fault.words}",
        okay({"t": "hello", "fault": {"words": "no stock"}}), "no stock"),
    "a misspelt path to calls": breaks(ASK_ALL + "reply: {text: t, tool_calls: call}",
        okay({"t": "hello", "calls": []}), "reply.tool_calls: call", "`call?`", "t, calls"),
    "no trace": breaks("reply: {text: t, messages: trace}", okay({"t": "hello"}), "reply.messages: trace",
        "`trace?`"),
    "no session": breaks(ASK[:-3] + ', s: "${session}"}, reply: {text: t, session: x.id}',
        okay({"t": "hello"}), "reply.session: x.id", "`x.id?`"),
    "not JSON": breaks(PLAIN, respond("hello"), "JSON", "hello"),
    "a web page as text": breaks("reply: {text: .}", respond(PAGE), "URL", PAGE),
    "a web page": breaks(PLAIN, respond("<html>"), "URL", "<html>"),
    "cut off": breaks("reply: {text: choices.0.message.content}",
        okay({"choices": [{"finish_reason": "length", "message": {"content": "hello"}}]}),
        "finish_reason=length"),
    "status 500": breaks(PLAIN, respond("oops", status=500), "500", "oops"),
    "status 422": breaks(PLAIN, respond("q is too long", status=422), "422", "q is too long", "`request`"),
    "an error event": breaks(STREAMED, sse({"t": "hello"}, {"error": {"message": "boom"}}), "boom"),
    "an event named error": breaks(STREAMED, respond('data: {"t": "hello"}\n\nevent: error\ndata: boom\n\n',
        headers=EVENTS), "boom"),
    "a stream without its end": breaks(STREAMED[:-1] + ", done: last}", sse({"t": "hello"}, done=False),
        "reply.done: last"),
    "a stream without its named end": breaks("reply: {delta: ., done: {event: end}}",
        respond("event: data\ndata: hello\n\n", headers=EVENTS), 'reply.done: {"event": "end"}'),
    "half a line": breaks(STREAMED, respond('{"t": "hello"}\n{"t": "'), "JSON", '{"t": "'),
    "an empty stream": breaks(STREAMED, sse(done=False), "stream"),
    "no event has it": breaks(STREAMED, sse({"x": 1}, {"y": 1}), "reply.text: t", "x; y"),
    "no piece has it, though calls come": breaks("streaming: true, reply: {delta: d.txt, messages: 'm?'}",
        REPORTS, "reply.delta: d.txt"),
    "an error by its mark": breaks("reply: {delta: t, error: {event: error}}", sse({"t": "hello"},
        {"event": "error", "message": "boom"}), "boom"),
    "a trace that was cut": breaks("reply: {messages: trace}",
        okay({"trace": [{"role": "assistant", "content": "hello", "finish_reason": "length"}]}),
        "finish_reason=length"),
    "a failed job": breaks(JOB_AT, BEGUN, "'Failed'", "no GPU",
        then=[okay({"status": "Failed", "error": {"message": "no GPU"}})]),
    "a job without a state": breaks(JOB_AT, BEGUN, "poll.status: status", "state", then=[okay({"state": 1})]),
    "a job nowhere": breaks(JOB_AT, okay({"job": 7}), "poll.job: id", "job"),
    "a job elsewhere": breaks(PLAIN + ", poll: {job: url, status: status}",
        okay({"url": "http://example.org/x"}), "http://example.org/x", "`poll.url`"),
}  # fmt: skip
NEVER_DONE = HttpAgent(f"timeout_s: 5, {JOB_AT}", (BEGUN, okay({"status": "queued"}, **{"Retry-After": "9"})))
DROPPED = HttpAgent(STREAMED, (sse({"t": "hello"}, done=False, end="drop"),))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> HttpRun:
    rows = {name: row for name, (_, row) in (SHAPES | BROKEN).items()}
    rows |= {"never done": NEVER_DONE, "dropped": DROPPED}
    return run_http_agents(Project(tmp_path_factory.mktemp("replies")), rows)


@pytest.mark.parametrize("name", SHAPES)
def test_a_reply_is_read_by_its_paths(ran: HttpRun, name: str) -> None:
    sample = ran.samples[name]
    assert (sample["verdict"], sample["turns"][0]["agent"]) == ("passed", SHAPES[name][0]), sample["turns"]


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_reply_is_the_agents_failure(ran: HttpRun, name: str) -> None:
    sample, (facts, _) = ran.samples[name], BROKEN[name]
    assert (sample["verdict"], sample["fault"]) == ("failed", "agent")
    assert all(fact in error_of(sample) for fact in facts), error_of(sample)


def test_what_is_busy_or_never_done_and_what_the_connection_cuts(ran: HttpRun) -> None:
    busy = [request.method for request in ran.asked["a server that is busy twice"]]
    assert busy == ["POST", "POST", "GET", "GET"]
    sample = ran.samples["never done"]
    assert (sample["verdict"], sample["stop"]) == ("failed", "agent_timeout")
    assert "'queued'" in error_of(sample)
    assert len(ran.asked["never done"]) == 2  # it was to wait longer than there is time
    sample = ran.samples["dropped"]
    assert (sample["verdict"], sample["fault"]) == ("inconclusive", "infrastructure")


# ── not seen ─────────────────────────────────────────────────────────────────────────────────────


def test_an_api_that_only_answers_is_not_observed(project: Project) -> None:
    """Even where the scenario declares tools: no request and no reply is a way to them."""
    scenario = "turns: [hi], tools: {drop: {returns: 1}}, expect: {tool_calls: {forbidden: [{name: drop}]}}"
    ran = run_http_agents(project, {"s": HttpAgent(PLAIN, (FINISHED,), scenario=scenario)})
    assert ran.done.code == 3
    (check,) = [c for c in ran.samples["s"]["checks"] if c["name"] == "tool_calls"]
    assert check["passed"] is None
    assert "calls: all" in check["detail"]


def test_a_request_without_earlier_messages_or_a_session_is_warned_of_once(project: Project) -> None:
    with LocalServer(okay({"data": {"reply": "hello"}})) as server:
        agent(project, server, PLAIN)
        project.scenarios(SAYS_HI.replace("[hi]", "[hi, ho, hum]"))
        done = project.run("--epochs", "2")
    assert done.code == 0
    (warning,) = warnings_of(done)
    assert all(fact in warning for fact in ("${messages}", "${session}"))


DOES = {
    PLAIN: ("each message", "without", "`request`", "calls: all"),
    'request: {m: "${message}", s: "${session}"}, reply: {messages: t}': (
        "each message", "agenteval's", "`request`", "at t", "calls: all", "calls: unseen"
    ),
    'streaming: true, request: {m: "${messages}${session}"}, reply: {text: t, tool_calls: c, session: s}': (
        "conversation", "server's", "`request`", "stream", "at c", "calls: all", "calls: unseen"
    ),
    f"calls: unseen, {JOB_AT}": ("each message", "without", "`request`", "job", "calls: unseen"),
    "api: responses": ("conversation", "Responses API", "calls: all", "calls: unseen"),
}  # fmt: skip


@pytest.mark.parametrize("options", DOES)
def test_validate_says_what_it_will_send(project: Project, options: str) -> None:
    written = f"agent: {{endpoint: 'http://localhost:1/x?key=1', {options}}}\nmetrics: []\n"
    project.write("agenteval.yaml", written)
    project.scenarios(SAYS_HI)
    done = project.call("validate")
    assert done.code == 0, done.all
    (line,) = [each for each in done.out.splitlines() if "  agent: POST http://localhost:1/x: " in each]
    assert all(fact in line for fact in DOES[options]), line


# ── the same as for chat completions: limits, secrets, recordings, doctor ────────────────────────


def test_secrets_in_a_request_are_masked(project: Project) -> None:
    secret = "sk-live-0123456789abcdef"
    with LocalServer(respond(f"bad key {secret}", status=500)) as server:
        agent(project, server, "request: {m: '${message}', auth: {key: '${KEY}'}}, reply: {text: t}")
        project.scenarios(SAYS_HI)
        done = project.run(env={"KEY": secret})
    assert server.requests[0].json["auth"] == {"key": secret}
    kept = "".join(p.read_text(encoding="utf-8") for p in project.root.rglob("*.json*"))
    assert "bad key" in kept
    assert secret not in kept + done.all


@pytest.mark.parametrize("at", ["agents", "compare", "options"])
def test_names_are_filled_wherever_an_agent_is_written(project: Project, at: str) -> None:
    """And what a variable holds is not read again."""
    with LocalServer(okay({"t": "hello"})) as server:
        own = "request: {m: '${message}', v: '${VAR} ${message}', e: '$${message}'}, reply: {text: t}"
        address = f"endpoint: '{server.address}/x'"
        whole = f"{{name: b, {address}, {own}}}"
        texts = {
            "agents": f"agents: {{b: {whole}}}",
            "compare": f"agent: {{{address}}}\ncompare: [{whole}]",
            "options": f"agent: {{name: b, type: http, {address}, options: {{{own}}}}}",
        }
        project.write("agenteval.yaml", f"{texts[at]}\nmetrics: []\n")
        project.scenarios(SAYS_HI)
        project.run("--agent", "b", env={"VAR": "${message} $${x}"})
    sent = [request.json for request in server.requests if "m" in request.json]
    assert sent == [{"m": "hi", "v": "${message} $${x} hi", "e": "${message}"}]


def test_a_name_that_is_filled_is_no_secret(project: Project) -> None:
    """Not even under a key that tells of one: it would be masked in what is said about it."""
    options = "request: {session_token: '${session}', m: '${message}'}, reply: {text: t}"
    scenario = SAYS_HELLO.replace("[hello]", "['${session}']")
    rows = {"s": HttpAgent(options, (okay({"t": "write ${session}"}),), scenario=scenario)}
    ran = run_http_agents(project, rows)
    assert ran.samples["s"]["verdict"] == "passed"
    assert ran.samples["s"]["turns"][0]["agent"] == "write ${session}"


def test_a_recording_is_replayed_without_the_server(project: Project) -> None:
    shop = Shop()
    with served(shop, with_session) as server:
        project.write("agenteval.yaml", SESSION.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios(SCENARIO)
        assert project.run("--record", "tape.jsonl").code == 0
    asked = len(server.requests)
    assert project.run("--replay", "tape.jsonl").code == 0
    assert len(server.requests) == asked
    assert calls_of(project) == shop.made


def test_doctor_asks_such_an_agent(project: Project) -> None:
    with LocalServer(okay({"data": {"reply": "hello"}})) as server:
        agent(project, server, PLAIN)
        done = project.call("doctor")
    assert done.code == 0, done.all
    assert [request.json for request in server.requests] == [{"q": "Hello"}]  # it is not asked for tools


def test_a_path_that_never_named_anything_proves_nothing(project: Project) -> None:
    """It may be misspelt: what the server reports elsewhere is not seen."""
    reply = {"t": "Done.", "step": [{"name": "wipe", "args": {}}], "done": [{"name": "look", "args": {}}]}
    scenario = "turns: [Hi], expect: {tool_calls: {forbidden: [{name: wipe}]}}"
    rows = {
        path: HttpAgent(
            f"{ASK_ALL}reply: {{text: t, messages: '{path}?'}}", (okay(reply),), scenario=scenario
        )
        for path in ("steps", "step", "done")
    }
    samples = run_http_agents(project, rows).samples
    verdicts = {name: sample["verdict"] for name, sample in samples.items()}
    assert verdicts == {"steps": "inconclusive", "step": "failed", "done": "passed"}
    assert failed_checks(samples["step"]) == {(None, "tool_calls")}
