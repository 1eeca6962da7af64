"""Services that are agents: by the ports that files name, and by the description of their routes."""

from __future__ import annotations

import json
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from agenteval.cli.new_project import endpoints
from agenteval.cli.new_project.endpoints import local_endpoints, local_ports, probe_endpoint
from agenteval.core.errors import AuthorError

USUAL = [8000, 3000, 8080, 5000, 8001, 2024]
BASE = "http://localhost:8000"


@pytest.mark.parametrize(
    ("files", "ports"),
    [
        ({}, USUAL),
        ({"serve.sh": "uvicorn x --port 8123"}, [8123]),
        ({"serve.sh": "x --port=8123 --PORT 9000"}, [8123, 9000]),
        ({"Dockerfile": "EXPOSE 8123"}, [8123]),
        ({"README.md": "open http://localhost:8123/chat"}, [8123]),
        ({"README": "127.0.0.1:4000 and 0.0.0.0:4001"}, [4000, 4001]),
        ({"app.py": "run(port=8123)"}, [8123]),
        ({"Procfile": "web: x --port 8123"}, [8123]),
        ({"Makefile": "\tx --port 8123"}, [8123]),
        ({"package.json": '{"scripts": {"start": "x --port 8123"}}'}, [8123]),
        ({"docker-compose.yml": "port: 8123"}, [8123]),
        ({"docker-compose.dev.yaml": "port: 8123"}, [8123]),
        ({"a.sh": "port 8124, port 8123", "app.py": "port = 8124"}, [8124, 8123]),
        ({"b.sh": "port 2222", "a.sh": "port 1111"}, [1111, 2222]),
        ({"app.py": "port 1111", "serve.sh": "port 2222"}, [2222, 1111]),
        ({"app.py": "port = 65535"}, [65535]),
        ({"app.py": "port = 65536"}, USUAL),
        ({"app.py": "port = 11434"}, USUAL),
        ({"app.py": "http://localhost:11434, port = 8123"}, [8123]),
        ({"app.py": "port = 9"}, USUAL),
        ({"app.py": "port = 123456"}, USUAL),
        ({"app.py": "transport = 8123; important 8124; http://example.com:8125"}, USUAL),
        ({"app.py": "port\n8123"}, USUAL),
        ({"app.py": f"port{'.' * 24}8123"}, [8123]),
        ({"app.py": f"port{'.' * 25}8123"}, USUAL),
        ({"app.txt": "port 8123", "deep/app.py": "port 8123"}, USUAL),
    ],
)
def test_ports_that_the_files_name(tmp_path: Path, files: dict[str, str], ports: list[int]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert local_ports(tmp_path) == ports


def test_what_cannot_be_read_names_no_port(tmp_path: Path) -> None:
    (tmp_path / "a.sh").mkdir()
    (tmp_path / "b.sh").write_bytes(b"\xff port 8123")
    assert local_ports(tmp_path) == [8123]


# ── services ─────────────────────────────────────────────────────────────────────────────────────


class Service:
    """The answers to GET, by URL; nobody listens anywhere else."""

    def __init__(self) -> None:
        self.replies: dict[str, tuple[int, bytes]] = {}
        self.asked: list[str] = []

    def get(self, url: str) -> tuple[int, bytes]:
        self.asked.append(url)
        return self.replies.get(url, (0, b""))

    def describe(self, *paths: tuple[str, Any], base: str = BASE, **more: Any) -> None:
        document = {"paths": dict(paths), **more}
        self.replies[f"{base}/openapi.json"] = 200, json.dumps(document).encode()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Service:
    made = Service()
    monkeypatch.setattr(endpoints, "_get", made.get)
    return made


TEXT = {"type": "string"}


def content(schema: Any) -> Any:
    return {"content": {"application/json": {"schema": schema}}}


def fields(required: tuple[str, ...] = (), /, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def route(takes: Any, gives: Any = None, status: str = "200") -> dict[str, Any]:
    gives = fields(answer=TEXT) if gives is None else gives
    return {"post": {"requestBody": content(takes), "responses": {status: content(gives)}}}


MESSAGE = fields(message=TEXT)


def keys_of(service: Service, takes: Any, gives: Any = None, **more: Any) -> dict[str, Any]:
    service.describe(("/chat", route(takes, gives)), **more)
    choice = probe_endpoint(f"{BASE}/chat")
    assert choice.keys["endpoint"] == choice.label == f"{BASE}/chat"
    return choice.keys


SESSION = {"message": "${message}", "session_id": "${session}"}


@pytest.mark.parametrize(
    ("takes", "request_", "unknown"),
    [
        (fields(message=TEXT), {"message": "${message}"}, ""),
        *(
            (fields(**{name: TEXT}), {name: "${message}"}, "")
            for name in ("content", "msg", "prompt_text", "query")
        ),
        (fields(message={}), {"message": "${message}"}, ""),
        (fields(message={"type": ["null", "string"]}), {"message": "${message}"}, ""),
        (fields(message={"anyOf": [{"type": "null"}, TEXT]}), {"message": "${message}"}, ""),
        (fields(message={"type": "integer"}, text=TEXT), {"text": "${message}"}, ""),
        (fields(messages={"type": "array"}), {"messages": "${messages}"}, ""),
        (fields(message=TEXT, messages={"type": "array"}), {"message": "${message}"}, ""),
        (fields(("say",), say=TEXT), {"say": "${message}"}, ""),
        (
            fields(("say", "session"), say=TEXT, session=TEXT),
            {"say": "${message}", "session": "${session}"},
            "",
        ),
        (fields(message=TEXT, session_id=TEXT), SESSION, ""),
        (fields(("session_id",), message=TEXT, session_id=TEXT), SESSION, ""),
        (fields(message=TEXT, thread={"type": "integer"}), {"message": "${message}"}, ""),
        (fields(message=TEXT, model=TEXT), {"message": "${message}"}, ""),
        (fields(("m",), message=TEXT, m=TEXT), {"message": "${message}", "m": "example"}, "request.m"),
        (fields(("m",), message=TEXT, m={"type": "integer"}), {"message": "${message}", "m": 1}, "request.m"),
        (fields(("m",), message=TEXT, m={"type": "number"}), {"message": "${message}", "m": 1}, "request.m"),
        (
            fields(("m",), message=TEXT, m={"type": "boolean"}),
            {"message": "${message}", "m": False},
            "request.m",
        ),
        (fields(("m",), message=TEXT, m={"type": "array"}), {"message": "${message}", "m": []}, "request.m"),
        (fields(("m",), message=TEXT, m={"type": "object"}), {"message": "${message}", "m": {}}, "request.m"),
        (
            fields(("m",), message=TEXT, m={**TEXT, "enum": ["a", "b"], "examples": ["c"]}),
            {"message": "${message}", "m": "a"},
            "request.m",
        ),
        (
            fields(("m",), message=TEXT, m={"examples": ["c"]}),
            {"message": "${message}", "m": "c"},
            "request.m",
        ),
    ],
)
def test_what_is_sent(service: Service, takes: Any, request_: dict[str, Any], unknown: str) -> None:
    assert keys_of(service, takes)["request"] == request_
    choice = probe_endpoint(f"{BASE}/chat")
    assert bool(choice.note) is bool(unknown)
    assert unknown in choice.note
    assert not choice.is_open


@pytest.mark.parametrize(
    "takes",
    [
        fields(),
        fields(say=TEXT),
        fields(("a", "b"), a=TEXT, b=TEXT),
        fields(("session_id",), session_id=TEXT),
        fields(items={"type": "array"}),
        fields(("count",), count={"type": "integer"}),
        {},
    ],
)
def test_a_route_that_takes_no_message(service: Service, takes: Any) -> None:
    service.describe(("/chat", route(takes)))
    assert probe_endpoint(f"{BASE}/chat").is_open
    assert list(local_endpoints([8000])) == []


LIST = {"type": "array", "items": fields(name=TEXT, result=TEXT)}


@pytest.mark.parametrize(
    ("gives", "reply"),
    [
        (fields(answer=TEXT), {"text": "answer"}),
        (fields(text=TEXT, reply=TEXT, x=TEXT), {"text": "reply"}),
        (fields(result=TEXT, content=TEXT), {"text": "content"}),
        (fields(said=TEXT), {"text": "said"}),
        (fields(said=TEXT, id={"type": "integer"}), {"text": "said"}),
        (fields(said=TEXT, session_id=TEXT), {"text": "said", "session": "session_id"}),
        (fields(data=fields(deep=fields(answer=TEXT))), {"text": "data.deep.answer"}),
        (fields(a=fields(b=fields(c=fields(answer=TEXT)))), {"text": "a.b.c.answer"}),
        (fields(a=fields(x=TEXT, y=TEXT), b=fields(answer=TEXT)), {"text": "b.answer"}),
        (fields(message=fields(content=TEXT)), {"text": "message.content"}),
        (TEXT, {"text": "."}),
        (fields(answer={"$ref": "#/parts/Text"}), {"text": "answer"}),
        ({"$ref": "#/parts/Whole"}, {"text": "output"}),
        (fields(answer=TEXT, tool_calls=LIST), {"text": "answer", "messages": "tool_calls"}),
        (
            fields(answer=TEXT, tool_calls={"items": fields(name=TEXT, output=TEXT)}),
            {"text": "answer", "messages": "tool_calls"},
        ),
        (fields(answer=TEXT, calls={"items": fields(name=TEXT)}), {"text": "answer"}),
        (fields(answer=TEXT, calls={"items": fields(result=TEXT)}), {"text": "answer"}),
        (fields(answer=TEXT, session_id=TEXT), {"text": "answer", "session": "session_id"}),
        (fields(answer=TEXT, thread_id=TEXT), {"text": "answer"}),
    ],
)
def test_what_is_read_of_the_reply(service: Service, gives: Any, reply: dict[str, str]) -> None:
    parts = {"Text": TEXT, "Whole": {"$ref": "#/parts/Other"}, "Other": fields(output=TEXT)}
    keys = keys_of(service, fields(message=TEXT, session_id=TEXT), gives, parts=parts)
    assert keys["reply"] == reply


@pytest.mark.parametrize(
    "gives",
    [fields(), fields(a=TEXT, b=TEXT), {}, fields(a=fields(b=fields(c=fields(d=fields(answer=TEXT)))))],
)
def test_a_reply_whose_answer_is_not_described(service: Service, gives: Any) -> None:
    assert keys_of(service, MESSAGE, gives)["reply"] == {"text": "reply"}
    choice = probe_endpoint(f"{BASE}/chat")
    assert choice.is_open
    assert "reply.text" in choice.note
    assert list(local_endpoints([8000])) == []


def test_a_reply_of_another_status(service: Service) -> None:
    service.describe(("/chat", route(MESSAGE, status="201")))
    assert probe_endpoint(f"{BASE}/chat").keys["reply"] == {"text": "answer"}


BASES = {
    "Text": TEXT,
    "Base": fields(("session_id",), session_id=TEXT),
    "Chat": {"allOf": [{"$ref": "#/parts/Base"}, fields(("say",), say=TEXT)]},
    "Again": {"allOf": [{"$ref": "#/parts/Again"}, fields(message=TEXT)]},
    "Many": {"allOf": [{"$ref": "#/parts/Chat"}] * 1000},
}
CHAT = {"say": "${message}", "session_id": "${session}"}


@pytest.mark.parametrize(
    ("takes", "request_"),
    [
        ({"$ref": "#/parts/Chat"}, CHAT),
        ({"allOf": [fields(("say",), say=TEXT), {"$ref": "#/parts/Base"}]}, CHAT),
        ({**fields(("say",), say=TEXT), "allOf": [{"$ref": "#/parts/Base"}]}, CHAT),
        ({**fields(("say",), say=TEXT), "anyOf": [{"$ref": "#/parts/Base"}, {}]}, CHAT),
        ({"allOf": [{"$ref": "#/parts/Chat"}, fields(note=TEXT)]}, CHAT),
        ({"allOf": [fields(text=TEXT), fields(query=TEXT)]}, {"text": "${message}"}),
        ({"allOf": [fields(message=TEXT), fields(message={"type": "integer"})]}, {"message": "${message}"}),
        ({"$ref": "#/parts/Again"}, {"message": "${message}"}),
        ({"$ref": "#/parts/Many"}, CHAT),
        (fields(message={"allOf": [{"$ref": "#/parts/Text"}], "title": "M"}), {"message": "${message}"}),
    ],
)
def test_all_parts_of_a_schema_count(service: Service, takes: Any, request_: dict[str, str]) -> None:
    assert keys_of(service, takes, parts=BASES)["request"] == request_


def test_all_parts_of_a_reply_count(service: Service) -> None:
    gives = {"allOf": [{"$ref": "#/parts/Base"}, fields(said=TEXT)]}
    keys = keys_of(service, fields(message=TEXT, session_id=TEXT), gives, parts=BASES)
    assert keys["reply"] == {"text": "said", "session": "session_id"}


OPEN = route(MESSAGE, fields())
NOTED = route(fields(("m",), message=TEXT, m=TEXT))
WHOLE = route(MESSAGE)


def found(service: Service, *paths: tuple[str, Any]) -> list[str]:
    service.describe(*paths)
    return [choice.label.removeprefix(BASE) for choice in local_endpoints([8000])]


def test_described_routes_by_how_much_is_known(service: Service) -> None:
    paths: list[tuple[str, Any]] = [
        ("/open", OPEN),
        ("/noted", NOTED),
        ("/whole", WHOLE),
        ("/get", {"get": {}}),
        ("/a/{id}", WHOLE),
    ]
    assert found(service, *paths) == ["/whole", "/noted"]
    assert probe_endpoint(BASE).label == f"{BASE}/whole"
    service.describe(("/open", OPEN))
    assert probe_endpoint(BASE).label == f"{BASE}/open"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
def test_a_route_of_a_known_api_needs_no_keys(service: Service, path: str) -> None:
    service.describe((path, WHOLE))
    (choice,) = local_endpoints([8000])
    assert choice.keys == {"endpoint": f"{BASE}{path}"}
    assert probe_endpoint(f"{BASE}{path}").keys == {"endpoint": f"{BASE}{path}"}


COMPLETIONS = f"{BASE}/v1/chat/completions"


@pytest.mark.parametrize(
    ("status", "models", "is_agent"),
    [
        *((status, (0, b""), True) for status in (400, 405, 415, 422)),
        *((status, (0, b""), False) for status in (0, 200, 301, 401, 403, 404, 500)),
        (404, (200, b'{"data": []}'), True),
        (404, (200, b'{"data": {}}'), False),
        (404, (200, b"[]"), False),
        (404, (200, b"<html>"), False),
        (404, (401, b'{"data": []}'), False),
    ],
)
def test_a_service_with_chat_completions(
    service: Service, status: int, models: tuple[int, bytes], is_agent: bool
) -> None:
    service.replies = {COMPLETIONS: (status, b""), f"{BASE}/v1/models": models}
    found = [(each.keys, each.label) for each in local_endpoints([8000])]
    assert found == ([({"endpoint": COMPLETIONS}, COMPLETIONS)] if is_agent else [])


def test_a_described_route_is_preferred_to_chat_completions(service: Service) -> None:
    service.replies[COMPLETIONS] = 405, b""
    assert found(service, ("/whole", WHOLE)) == ["/whole"]
    assert found(service, ("/open", OPEN)) == ["/v1/chat/completions"]
    assert probe_endpoint(f"{BASE}/v1").label == COMPLETIONS


def test_each_port_is_asked(service: Service) -> None:
    for port in (8002, 8001):
        service.describe(("/chat", WHOLE), base=f"http://localhost:{port}")
    assert [each.label for each in local_endpoints([8002, 8000, 8001])] == [
        "http://localhost:8002/chat",
        "http://localhost:8001/chat",
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{}",
        b'{"paths": []}',
        b'{"paths": {"/a": null}}',
        b'{"paths": {"/a": {"post": 1}}}',
    ],
)
def test_a_description_that_is_none(service: Service, body: bytes) -> None:
    service.replies[f"{BASE}/openapi.json"] = 200, body
    assert list(local_endpoints([8000])) == []
    assert probe_endpoint(f"{BASE}/chat").is_open


def test_references_that_lead_nowhere(service: Service) -> None:
    service.describe(("/chat", route({"$ref": "#/gone"})))
    assert list(local_endpoints([8000])) == []
    service.describe(("/chat", route({"$ref": "#/A"})), A={"$ref": "#/B"}, B={"$ref": "#/A"})
    assert list(local_endpoints([8000])) == []


# ── a URL that the author names ──────────────────────────────────────────────────────────────────

PLAIN = {"request": {"message": "${message}"}, "reply": {"text": "reply"}}
KEY = {"headers": {"Authorization": "Bearer ${AGENT_API_KEY:-}"}}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (f"{BASE}/chat", PLAIN),
        (f"{BASE}/", PLAIN),
        (f"{BASE}/chat?x=1", PLAIN),
        ("http://127.0.0.1:1/chat", PLAIN),
        ("http://[::1]:1/chat", PLAIN),
        ("https://example.com/chat", {**KEY, **PLAIN}),
        ("https://${HOST}/chat", {**KEY, **PLAIN}),
        ("https://example.com/v1/responses", KEY),
        ("https://example.com/v1/messages", KEY),
        ("https://example.com/x/chat/completions", KEY),
        (f"{BASE}/v1/chat/completions", {}),
    ],
)
def test_a_url_without_a_description(service: Service, url: str, expected: dict[str, Any]) -> None:
    choice = probe_endpoint(url)
    assert choice.keys == {"endpoint": url, **expected}
    assert choice.label == url
    assert choice.is_open is bool(choice.note) is ("request" in expected)


@pytest.mark.parametrize(
    "url", ["http://", "http:///chat", "http://:80/x", "http://x:0/", "http://x:99999/", "http://[x"]
)
def test_what_is_no_url(service: Service, url: str) -> None:
    with pytest.raises(AuthorError):
        probe_endpoint(url)
    assert service.asked == []


@pytest.mark.parametrize("path", ["", "/", "/v1", "/v1/", "/docs", "/openapi.json"])
def test_the_top_of_a_service_is_looked_through(service: Service, path: str) -> None:
    service.describe(("/open", OPEN), ("/chat", WHOLE))
    choice = probe_endpoint(f"{BASE}{path}")
    assert (choice.label, choice.keys["endpoint"]) == (f"{BASE}/chat", f"{BASE}/chat")


@pytest.mark.parametrize("path", ["", "/v1", "/v1/", "/docs", "/openapi.json"])
def test_the_top_of_a_service_that_describes_nothing(service: Service, path: str) -> None:
    with pytest.raises(AuthorError) as error:
        probe_endpoint(f"{BASE}{path}")
    assert BASE in str(error.value)


def test_the_route_that_was_named_is_taken(service: Service) -> None:
    service.describe(("/other", WHOLE), ("/chat", OPEN), base="https://example.com")
    choice = probe_endpoint("https://example.com/chat?x=1")
    assert choice.keys["endpoint"] == choice.label == "https://example.com/chat?x=1"
    assert choice.keys["headers"] == KEY["headers"]
    assert choice.keys["request"] == {"message": "${message}"}
    assert "reply.text" in choice.note
    assert "no API description" in probe_endpoint("https://example.com/third").note


# ── the request itself ───────────────────────────────────────────────────────────────────────────


class Connection:
    """A connection that answers with 307 and its own place, or not at all."""

    def __init__(self, kind: str, error: Exception | None, asked: list[Any]) -> None:
        self.kind, self.error, self.asked, self.status = kind, error, asked, 307

    def __call__(self, netloc: str, *, timeout: float) -> Connection:
        assert timeout < 5
        self.asked.append(netloc)
        return self

    def request(self, method: str, path: str, *, headers: dict[str, str]) -> None:
        self.asked += [method, path, headers]
        if self.error:
            raise self.error

    def getresponse(self) -> Connection:
        return self

    def read(self, most: int) -> bytes:
        assert most == 5_000_000
        return self.kind.encode()

    def close(self) -> None:
        self.asked.append("closed")


@pytest.mark.parametrize(
    ("url", "error", "expected"),
    [
        ("http://x:1/a?b", None, (307, b"plain")),
        ("https://x:1/a", None, (307, b"secure")),
        ("http://x:1/a", OSError(), (0, b"")),
        ("http://x:1/a", HTTPException(), (0, b"")),
        ("http://x:1/a", ValueError(), (0, b"")),
    ],
)
def test_one_get_without_redirects(
    monkeypatch: pytest.MonkeyPatch, url: str, error: Exception | None, expected: tuple[int, bytes]
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(endpoints, "HTTPConnection", Connection("plain", error, asked))
    monkeypatch.setattr(endpoints, "HTTPSConnection", Connection("secure", error, asked))
    assert endpoints._get(url) == expected
    assert asked == ["x:1", "GET", "/a", {"Accept": "application/json"}, "closed"]
