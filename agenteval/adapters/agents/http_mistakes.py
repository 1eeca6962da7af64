"""Find contradictions in the options that the author specified for an HTTP agent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agenteval.adapters.agents.http_api import infer_api
from agenteval.adapters.agents.reply_paths import WHOLE_REPLY
from agenteval.adapters.agents.request_template import RESULT_NAMES, names_in
from agenteval.core.errors import Mistake

_INSTEAD = {
    "body": "move its keys into `request`",
    "send_tools": 'remove it; put `"${tools}"` into `request` instead',
    "observed_messages": "use reply: {messages: …}",
    "api": "remove one of them",
}
"""The keys that cannot be combined with ``request``, and the alternative to each key."""
_NOT_WITH_API = {
    "responses": ("observed_messages",),
    "messages": ("observed_messages",),
}
_BRACKETS = re.compile(r"""\[(['"]?)(.*?)\1(?:\]|$)""")
"""Matches a key or position as JSONPath writes it: ``['key']`` or ``[0]``."""
_PATHS = ("text", "delta", "tool_calls", "messages", "session", "usage", "error", "done")


def option_mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield the mistakes in ``options``, the options that the author specified. Wrong types are not included,
    because the pydantic model reports them."""
    request, reply = options.get("request"), options.get("reply")
    if request is None and reply is None:
        yield from _api_mistakes(options)
        return
    if reply is None:
        yield Mistake(
            "`request` requires `reply`", "specify where the answer is: reply: {text: answer}", ("request",)
        )
        return
    if request is None:
        yield Mistake(
            "`reply` requires `request`", 'specify what is sent: request: {message: "${message}"}', ("reply",)
        )
        return
    for key, remedy in _INSTEAD.items():
        if options.get(key) not in (None, {}):
            yield Mistake(f"`{key}` cannot be combined with `request`", remedy, (key,))
    if not isinstance(request, Mapping) or not isinstance(reply, Mapping):
        return
    yield from _request_mistakes(options, request, reply)
    yield from _reply_mistakes(reply)
    yield from _session_mistakes(options, request, reply)
    yield from _poll_mistakes(options)


def _api_mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    endpoint, api = options.get("endpoint"), options.get("api")
    if api is None and isinstance(endpoint, str):
        api = infer_api(endpoint)
    for key in _NOT_WITH_API.get(api if isinstance(api, str) else "", ()):
        if options.get(key) not in (None, {}):
            remedy = "remove it" if options.get("api") else "remove it, or set `api: chat_completions`"
            yield Mistake(f"`{key}` cannot be combined with `api: {api}`", remedy, (key,))
    body = options.get("body")
    if api == "responses" and isinstance(body, Mapping) and not isinstance(body.get("input", []), list):
        yield Mistake("`body.input` is not a list of items", "use - {role: …, content: …}", ("body", "input"))
    if options.get("poll") is not None:
        yield Mistake("`poll` requires `request` and `reply`", "add both, or remove `poll`", ("poll",))
    for key, path in _texts_with_session(options):
        yield Mistake(
            f"`{key}` contains ${{session}}, which requires `request`", "add `request` and `reply`", path
        )


def _request_mistakes(
    options: Mapping[str, Any], request: Mapping[str, Any], reply: Mapping[str, Any]
) -> Iterator[Mistake]:
    names = set(names_in(request))
    if names.isdisjoint(("message", "messages")):
        what = "`request` has neither ${message} nor ${messages}, so the agent would receive no message"
        yield Mistake(what, 'use, for example, {message: "${message}"}', ("request",))
    if reply.get("tool_calls") and RESULT_NAMES.isdisjoint(names) and "tool_results" in request:
        what = "`reply.tool_calls` is set, but `request` has no placeholder for the tool results"
        remedy = 'use tool_results: "${tool_results}", or send the conversation with "${messages}"'
        yield Mistake(what, remedy, ("request", "tool_results"))
    if "tool_results" in names and not reply.get("tool_calls"):
        what = "`request` has ${tool_results}, but `reply` does not specify where the tool calls are"
        yield Mistake(what, "add `tool_calls: PATH` to `reply`", ("request",))


def _reply_mistakes(reply: Mapping[str, Any]) -> Iterator[Mistake]:
    if not any(reply.get(key) for key in ("text", "delta", "messages")):
        yield Mistake("`reply` does not specify where the answer is", "add `text: PATH`", ("reply",))
    yield from _path_mistakes("reply", reply, _PATHS)
    where = reply.get("session")
    if isinstance(where, Mapping) and len(set(where) & {"header", "cookie"}) != 1:
        yield Mistake("expected either `header` or `cookie`", "use {header: X-Session}", ("reply", "session"))


def _path_mistakes(place: str, written: Mapping[str, Any], keys: Iterable[str]) -> Iterator[Mistake]:
    for key in keys:
        path = written.get(key)
        if isinstance(path, str) and (remedy := _wrong_path(path)):
            yield Mistake(f"'{path}' is not a dotted path", remedy, (place, key))


def _wrong_path(path: str) -> str:
    if path == WHOLE_REPLY:
        return ""
    bare = path.removesuffix("?")
    if "[" in bare or bare.startswith("$"):
        shown = _BRACKETS.sub(r".\2", bare.removeprefix("$")).strip(".")
        return f"use, for example, {'data.reply' if _wrong_path(shown) else shown}"
    is_empty = not bare or any(not part.strip() for part in bare.split("."))
    return "separate the keys with dots, as in data.reply" if is_empty else ""


def _session_mistakes(
    options: Mapping[str, Any], request: Mapping[str, Any], reply: Mapping[str, Any]
) -> Iterator[Mistake]:
    outside = list(_texts_with_session(options))
    if reply.get("session") and not outside and "session" not in names_in(request):
        what = "`reply.session` is set, but no request contains ${session}"
        yield Mistake(what, 'add session: "${session}" to `request`', ("reply", "session"))
    if reply.get("session") and any(key == "endpoint" for key, _ in outside):
        what = "the endpoint contains ${session}, which is unknown before the first reply"
        yield Mistake(what, "remove `reply.session`; agenteval then creates the ID", ("endpoint",))


def _texts_with_session(options: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...]]]:
    if "session" in names_in(options.get("endpoint") or ""):
        yield "endpoint", ("endpoint",)
    headers = options.get("headers")
    for name, value in (headers if isinstance(headers, Mapping) else {}).items():
        if "session" in names_in(value):
            yield f"headers.{name}", ("headers", name)


def _poll_mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    poll = options.get("poll")
    if not isinstance(poll, Mapping):
        return
    if options.get("streaming"):
        yield Mistake("`poll` cannot be combined with `streaming`", "remove one of them", ("poll",))
    if not poll.get("status"):
        what = "`poll` does not specify where the job's state is"
        yield Mistake(what, "add `status: PATH`", ("poll",))
    yield from _path_mistakes("poll", poll, ("status", "job"))
    url = poll.get("url")
    if isinstance(url, str) and "job" in names_in(url) and not poll.get("job"):
        yield Mistake(
            "`poll.url` contains ${job}, but `poll.job` is missing", "add `job: PATH`", ("poll", "url")
        )
    if isinstance(url, str) and poll.get("job") and "job" not in names_in(url):
        yield Mistake("`poll.url` does not contain ${job}", "use, for example, /jobs/${job}", ("poll", "url"))
