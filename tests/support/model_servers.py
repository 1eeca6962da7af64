"""Real local servers that play language models: OpenAI's, and those that only resemble it.

A server is a list of *plays*, functions of a request's JSON that give a reply or pass it on. The last
one answers. So a quirk is one line, and quirks can be combined::

    with ModelServer(refuses("temperature"), fenced()) as server:
        ... server.base_url ... server.asked[0]["messages"] ... server.most_in_flight
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.support.local_servers import Behaviour, LocalServer, Wire, completion, respond, respond_json

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """``body``: JSON, or a text that is sent as it is."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def behaviour(self) -> Behaviour:
        if isinstance(self.body, str):
            return respond(self.body, status=self.status, headers=self.headers)
        return respond_json(self.body, status=self.status, headers=self.headers)


Play: TypeAlias = Callable[[Json], Reply | None]


class ModelServer:
    """A server that plays a model. ``asked`` are the requests' bodies, ``headers`` their headers (names
    in lower case). Each reply takes ``delay_s``."""

    def __init__(self, *plays: Play, delay_s: float = 0.0) -> None:
        self._plays = plays or (answers(),)
        for play in self._plays:
            if isinstance(play, _Once):
                play.begin()
        self._delay_s = delay_s
        self._lock = threading.Lock()
        self._in_flight = 0
        self.most_in_flight = 0
        self.asked: list[Json] = []
        self.headers: list[Mapping[str, str]] = []
        self.paths: list[str] = []
        self._server = LocalServer(self._serve)
        self.base_url = f"{self._server.address}/v1"

    def __enter__(self) -> ModelServer:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()
        assert not self._server.errors

    def _serve(self, wire: Wire) -> None:
        asked = wire.request.json
        with self._lock:
            self.asked.append(asked)
            self.headers.append(wire.request.headers)
            self.paths.append(wire.request.path)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        reply = next(reply for play in self._plays if (reply := play(asked)))
        time.sleep(self._delay_s)
        with self._lock:
            self._in_flight -= 1
        reply.behaviour(wire)


# ── answers ──────────────────────────────────────────────────────────────────────────────────────


def fitting(schema: Mapping[str, Any]) -> Any:
    """A value that fits a JSON Schema."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return fitting(schema["anyOf"][0])
    match schema.get("type"):
        case "object":
            return {name: fitting(item) for name, item in schema.get("properties", {}).items()}
        case "array":
            return [fitting(schema["items"])] * schema.get("minItems", 0)
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "boolean":
            return True
        case _:
            return "words"


def schema_in(asked: Json) -> Json:
    """The schema that a request states in its prompt, or else sends along."""
    text = "\n".join(message["content"] for message in asked["messages"])
    stated = text.rpartition("JSON Schema:\n")[2] if "JSON Schema:\n" in text else ""
    found: Json = json.loads(stated) if stated else asked["response_format"]["json_schema"]["schema"]
    return found


def answers(text: str | None = None, **message: Any) -> Play:
    """Says ``text``, or what fits the schema in the prompt. ``finish_reason`` and fields of the message
    may be given; ``usage=None`` leaves the usage out."""
    usage = message.pop("usage", {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10})

    def play(asked: Json) -> Reply:
        said = json.dumps(fitting(schema_in(asked))) if text is None else text
        body = completion(**{"content": said, **message})
        body.pop("usage")
        return Reply({**body, "usage": usage} if usage is not None else body)

    return play


def fenced() -> Play:
    """Ignores the schema and answers in a fence with words around it."""

    def play(asked: Json) -> Reply:
        said = json.dumps(fitting(schema_in(asked)), indent=2)
        return Reply(completion(f"Sure! Here you are:\n```json\n{said}\n```\nAnything else?"))

    return play


def once(*plays: Play) -> Play:
    """Each play in turn, once with a server; then it passes requests on."""
    return _Once(plays)


class _Once:
    def __init__(self, plays: tuple[Play, ...]) -> None:
        self._plays = plays
        self.begin()

    def begin(self) -> None:
        self._left = list(self._plays)

    def __call__(self, asked: Json) -> Reply | None:
        return self._left.pop(0)(asked) if self._left else None


def says(body: Any, *, status: int = 200, **headers: str) -> Play:
    """The same reply to everything; underscores in names of headers are hyphens."""
    return lambda _asked: Reply(
        body, status, {key.replace("_", "-"): value for key, value in headers.items()}
    )


# ── refusals, in the words of servers that are out there ─────────────────────────────────────────


def error(message: str, *, status: int = 400, **fields: Any) -> Reply:
    kind = fields.pop("type", "invalid_request_error")
    return Reply({"error": {"message": message, "type": kind, "param": None, "code": None, **fields}}, status)


def refuses(name: str, message: str = "", *, status: int = 400, param: str | None = None) -> Play:
    """Refuses requests with the field ``name``."""
    told = message or f"Unsupported parameter: '{name}' is not supported with this model."

    def play(asked: Json) -> Reply | None:
        return error(told, status=status, param=param) if name in asked else None

    return play


def refuses_keyword(keyword: str) -> Play:
    """Knows JSON Schema, but not all of it."""

    def play(asked: Json) -> Reply | None:
        if f'"{keyword}"' not in json.dumps(asked.get("response_format")):
            return None
        told = (
            f"Invalid schema for response_format 'r': In context=('properties',), '{keyword}' is not known."
        )
        return error(told, param="response_format")

    return play


def refuses_format(*types: str, message: str = "", status: int = 400) -> Play:
    """Does not know these types of ``response_format``."""
    told = message or "'response_format.type' must be 'json_schema' or 'text'"

    def play(asked: Json) -> Reply | None:
        return (
            Reply({"error": told}, status) if asked.get("response_format", {}).get("type") in types else None
        )

    return play


def refuses_system() -> Play:
    def play(asked: Json) -> Reply | None:
        is_there = any(message["role"] == "system" for message in asked["messages"])
        return error("System role not supported") if is_there else None

    return play


def thinks_too_long(enough: int, *, field: str = "reasoning_content") -> Play:
    """A reasoning model that is cut off before it speaks, unless it may say ``enough`` tokens."""

    def play(asked: Json) -> Reply | None:
        if max(asked.get("max_tokens", 0), asked.get("max_completion_tokens", 0)) >= enough:
            return None
        thought = 'Let me think. The score could be {"score": 5}. ' * 20
        if field == "content":
            return Reply(completion(f"<think>{thought}", finish_reason="length"))
        return Reply(completion("", finish_reason="length", **{field: thought}))

    return play


def strict_openai() -> Play:
    """What OpenAI itself checks of a schema in strict mode, and that its new names are used."""

    def check(node: Any) -> str | None:
        if isinstance(node, list):
            return next(filter(None, map(check, node)), None)
        if not isinstance(node, dict):
            return None
        if node.get("type") == "object":
            if node.get("additionalProperties") is not False:
                return "'additionalProperties' is required to be supplied and to be false"
            if set(node["required"]) != set(node["properties"]):
                return "'required' is required to include every key in properties"
        return next(filter(None, map(check, node.values())), None)

    def play(asked: Json) -> Reply | None:
        form = asked["response_format"]["json_schema"]
        if "max_tokens" in asked:
            return error("Unsupported parameter: 'max_tokens'", param="max_tokens")
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", form["name"]) or form["strict"] is not True:
            return error("Invalid 'response_format.json_schema.name'", param="response_format")
        wrong = check(form["schema"])
        return (
            error(f"Invalid schema for response_format: {wrong}", param="response_format") if wrong else None
        )

    return play
