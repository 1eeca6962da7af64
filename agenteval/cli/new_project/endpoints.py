"""Detects HTTP services that are agents, using their API descriptions (OpenAPI, ``GET /openapi.json``). No
message is sent to a service."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from agenteval.agentside.targets.target_resolution import LIST_NAMES, SESSION_NAMES, TEXT_NAMES
from agenteval.cli.new_project.agent_choice import AgentChoice
from agenteval.core.errors import AuthorError, Problem
from agenteval.files.regular_files import read_file

_USUAL_PORTS = (8000, 3000, 8080, 5000, 8001, 2024)
"""Ports that development servers commonly use. These ports are tried if the project's files do not name a
port."""
_OLLAMA = 11434
"""The port of a model server. A model server is not an agent, even if a project names its port."""
_FILES = (
    *("*.sh", "Procfile", "Makefile", "Dockerfile", "docker-compose*.y*ml", "README*", "*.py"),
    "package.json",
)
_PORT = re.compile(
    r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0):(\d{2,5})\b|(?:\bport\b|\bexpose\b)[^\d\n]{0,24}(\d{2,5})\b",
    re.IGNORECASE,
)

_TIMEOUT_S, _MAX_BYTES = 1.5, 5_000_000
_KNOWN_APIS = ("/chat/completions", "/v1/responses", "/v1/messages")
_TOPS = ("/v1", "/docs", "/openapi.json")
"""Paths that are not the URL of an agent. The agent is searched for on the same host instead."""
_ANSWERS = ("answer", "reply", "response", "output", "text", "message", "content", "result")
_MESSAGES = TEXT_NAMES | {"content", "msg", "prompt_text"}
_SESSIONS = SESSION_NAMES | {"session", "thread", "conversation"}
_SOME = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}
_LOCAL = ("localhost", "127.0.0.1", "::1", "[::1]")
_NEEDS_NO_CHAT = frozenset((400, 405, 415, 422))
"""The status codes with which a chat completions route responds to a GET request. (200 indicates a web page;
401 and 403 may be returned for any URL.)"""


def local_ports(root: Path) -> list[int]:
    """Return the ports named in the project's top-level files. If no port is named, return the commonly used
    ports, on which an unrelated service may be listening."""
    ports: dict[int, None] = {}
    for path in (each for pattern in _FILES for each in sorted(root.glob(pattern))):
        try:
            text = read_file(path, _MAX_BYTES).decode("utf-8", "replace")
        except OSError:
            continue
        ports.update({int(one or other): None for one, other in _PORT.findall(text)})
    return [port for port in ports if port < 65_536 and port != _OLLAMA] or list(_USUAL_PORTS)


def local_endpoints(ports: Iterable[int]) -> Iterator[AgentChoice]:
    """Yield the services on this machine that have a chat completions route or whose API description matches
    an agent."""
    for port in ports:
        yield from _agents_at(f"http://localhost:{port}")


def _agents_at(base: str) -> Iterator[AgentChoice]:
    found = [each for each in _described_routes(base) if not each.is_open]
    yield from found
    url = f"{base}/v1/chat/completions"
    if not found and (_get(url)[0] in _NEEDS_NO_CHAT or _has_models(f"{base}/v1/models")):
        yield AgentChoice({"endpoint": url}, url)


def _has_models(url: str) -> bool:
    status, body = _get(url)
    try:
        return status == 200 and isinstance(json.loads(body)["data"], list)
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def probe_endpoint(url: str) -> AgentChoice:
    """Return the agent at a URL. The request and reply follow the service's API description or, if there is
    no description, the simplest format. Raise ``AuthorError`` if the URL cannot be that of an agent."""
    try:
        parts = urlsplit(url)
        has_host = "${" in parts.netloc or (bool(parts.hostname) and parts.port != 0)
    except ValueError:
        has_host = False
    if not has_host:
        raise AuthorError(Problem(f"{url} is not a URL", "use http://HOST:PORT/PATH"))
    base = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    keys: dict[str, Any] = {"endpoint": url}
    if parts.hostname not in _LOCAL:
        keys["headers"] = {"Authorization": "Bearer ${AGENT_API_KEY:-}"}
    if parts.path.endswith(_KNOWN_APIS):
        return AgentChoice(keys, url)
    is_top = parts.path.rstrip("/") in ("", *_TOPS)
    known = _described_routes(base)
    if is_top:
        known = chain(_agents_at(base), known)
    else:
        known = (each for each in known if urlsplit(each.label).path == parts.path)
    if found := next(known, None):
        label = found.label if is_top else url
        return found._replace(keys={**keys, **found.keys, "endpoint": label}, label=label)
    if is_top and parts.path != "/":  # an agent may take its messages at /
        what = f"no API description at {base} shows which route accepts messages"
        raise AuthorError(Problem(what, "start the service, or use the URL of the route"))
    unknown = "no API description was found: the request and the reply may use different keys"
    plain = {"request": {"message": "${message}"}, "reply": {"text": "reply"}}
    return AgentChoice({**keys, **plain}, url, unknown, is_open=True)


def _described_routes(base: str) -> Iterator[AgentChoice]:
    """Yield the routes in an API description that accept a message, with fully described routes first."""
    status, body = _get(f"{base}/openapi.json")
    if status != 200:
        return
    try:
        document = json.loads(body)
        routes = (_parse_route(base, path, item, document) for path, item in document["paths"].items())
        found = [route for route in routes if route is not None]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return
    yield from sorted(found, key=lambda each: (each.is_open, bool(each.note)))


def _parse_route(
    base: str, path: str, item: Mapping[str, Any], document: Mapping[str, Any]
) -> AgentChoice | None:
    post = item.get("post")
    if not post or "{" in path:
        return None
    if path.endswith(_KNOWN_APIS):
        return AgentChoice({"endpoint": base + path}, base + path)
    takes = _json_schema(post.get("requestBody"), document)
    request, unknown = _request_template(takes, document)
    if not request:
        return None
    answers = post.get("responses", {})
    gives = _json_schema(answers.get("200") or answers.get("201"), document)
    text = _find_answer_path(gives, document)
    keys: dict[str, Any] = {"endpoint": base + path, "request": request, "reply": {"text": text or "reply"}}
    session = next((key for key in gives.get("properties", {}) if key in _SESSIONS and key in request), "")
    if session:
        keys["reply"]["session"] = session
    lists = (name for name, each in gives.get("properties", {}).items() if _is_call_list(each, document))
    if calls := next(lists, ""):
        keys["reply"]["messages"] = calls
    names = [*unknown, *([] if text else ["reply.text"])]
    note = f"the API description does not say what {', '.join(names)} should be" if names else ""
    return AgentChoice(keys, base + path, note, is_open=not text)


def _request_template(
    schema: Mapping[str, Any], document: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return the request template, and the keys whose purpose only the author knows. The template is empty if
    no field accepts a message."""
    fields = {name: _resolve(each, document) for name, each in schema.get("properties", {}).items()}
    required = schema.get("required", [])
    request = _message_field(fields, required)
    if not request:
        return {}, []
    others = {name: each for name, each in fields.items() if name not in request}
    sessions = [name for name, each in others.items() if name in _SESSIONS and _may_be_text(each)]
    unknown = [name for name in others if name in required and name not in sessions]
    for name in others:
        if name in sessions:
            request[name] = "${session}"
        elif name in unknown:
            request[name] = _example(others[name])
    return request, [f"request.{name}" for name in unknown]


def _may_be_text(field: Mapping[str, Any]) -> bool:
    return field.get("type") in ("string", None)


def _message_field(fields: Mapping[str, Mapping[str, Any]], required: Sequence[str]) -> dict[str, Any]:
    """Return the template entry for the user's message. The field is identified by its name. If no name
    matches, a field for the whole conversation is used; failing that, the only required string field is used.
    Return an empty dictionary if no field is suitable."""
    texts = [name for name, each in fields.items() if _may_be_text(each)]
    if named := next((name for name in texts if name in _MESSAGES), ""):
        return {named: "${message}"}
    lists = (name for name, each in fields.items() if each.get("type") == "array" and name in LIST_NAMES)
    if conversation := next(lists, ""):
        return {conversation: "${messages}"}
    only = [name for name in texts if name in required and name not in _SESSIONS]
    return {only[0]: "${message}"} if len(only) == 1 else {}


def _example(field: Mapping[str, Any]) -> Any:
    """Return an example value for a field. The author must replace the example."""
    named = (*field.get("enum", ()), *field.get("examples", ()))
    return next(iter(named), _SOME.get(str(field.get("type")), "example"))


def _find_answer_path(schema: Mapping[str, Any], document: Mapping[str, Any], depth: int = 3) -> str:
    """Return the path to the answer in a reply, or an empty string if the API description does not determine
    it."""
    if schema.get("type") == "string":
        return "."
    properties = {name: _resolve(each, document) for name, each in schema.get("properties", {}).items()}
    texts = [name for name in properties if properties[name].get("type") == "string"]
    texts = [name for name in texts if name not in _SESSIONS]
    if found := next((name for name in _ANSWERS if name in texts), texts[0] if len(texts) == 1 else ""):
        return found
    for name, each in properties.items():
        if each.get("properties") and depth and (path := _find_answer_path(each, document, depth - 1)):
            return f"{name}.{path}"
    return ""


def _is_call_list(schema: Any, document: Mapping[str, Any]) -> bool:
    """Check whether a schema describes a list of tool calls with their results."""
    items = _resolve(_resolve(schema, document).get("items") or {}, document).get("properties", {})
    return "name" in items and not {"result", "output"}.isdisjoint(items)


def _json_schema(carrier: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    content = _resolve(carrier or {}, document).get("content", {})
    return _resolve(content.get("application/json", {}).get("schema", {}), document)


def _resolve(schema: Any, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of the API description with its ``$ref`` resolved, and with everything that its ``allOf``
    adds. If the part has several alternatives, only the first alternative that is not null is used. What is
    said twice is taken from the outer part, or else from the first."""
    found: dict[str, Any] = {}
    properties: dict[str, Any] = {}
    required: list[str] = []
    parts: list[Any] = [schema]
    seen: set[str] = set()
    while parts:
        part = parts.pop(0)
        more: list[Any] = []
        if (reference := part.get("$ref")) and reference not in seen:
            seen.add(reference)
            more.append(_find_reference(reference, document))
        if alternatives := part.get("anyOf") or part.get("oneOf"):
            more.append(next((each for each in alternatives if each.get("type") != "null"), {}))
        parts[:0] = [*more, *part.get("allOf", ())]
        found |= {key: each for key, each in part.items() if key not in found}
        properties |= {key: each for key, each in part.get("properties", {}).items() if key not in properties}
        required += part.get("required", ())
    if properties:
        found |= {"properties": properties, "required": required}
    if isinstance(kinds := found.get("type"), list):
        found["type"] = next((each for each in kinds if each != "null"), None)
    return found


def _find_reference(reference: str, document: Mapping[str, Any]) -> Any:
    found: Any = document
    for key in reference.removeprefix("#/").split("/"):
        found = found[key]
    return found


def _get(url: str) -> tuple[int, bytes]:
    """Return the HTTP status and the body. The status is 0 if there is no response. Redirects are not
    followed, and proxies are not used."""
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    try:
        with closing(kind(parts.netloc, timeout=_TIMEOUT_S)) as connection:
            connection.request("GET", parts.path, headers={"Accept": "application/json"})
            reply = connection.getresponse()
            return reply.status, reply.read(_MAX_BYTES)
    except (OSError, HTTPException, ValueError):
        return 0, b""
