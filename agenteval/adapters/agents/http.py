"""HTTP agents (agents behind a URL, that is, an HTTP endpoint). By default they use the chat completions API,
with or without streaming by server-sent events (SSE). ``transport.client`` sends the HTTP POST requests to
the agent (aiohttp)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from agenteval.adapters.agents import AgentResources, http_api
from agenteval.adapters.agents.http_api import Api, ApiName, ApiRequest, PendingAnswer, infer_api
from agenteval.adapters.agents.http_mistakes import option_mistakes
from agenteval.adapters.agents.model_apis import MessagesApi, ResponsesApi
from agenteval.adapters.agents.observe_options import (
    OBSERVE_SHORTHAND,
    ObserveOptions,
    observe_mistakes,
    parse_observe_option,
)
from agenteval.adapters.agents.polling import PollOptions
from agenteval.adapters.agents.reply_paths import ReplyPaths
from agenteval.adapters.agents.request_template import RESULT_NAMES, names_in
from agenteval.adapters.agents.template_api import Template, TemplateApi
from agenteval.adapters.transport.client import (
    HttpReply,
    RequestPolicy,
    Transport,
    is_retryable,
    is_retryable_unsent,
)
from agenteval.adapters.transport.http_faults import HttpFault, classify, describe, is_web_address, quote
from agenteval.adapters.transport.limits import ServerTerms, agent_rate
from agenteval.adapters.transport.retry import Retry
from agenteval.core.config import AgentConfig
from agenteval.core.digits import parse_digits
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, Mistake, Place, Problem
from agenteval.core.json_text import to_json
from agenteval.core.protocols import Agent, AgentAdapter, AgentFactory, NoHistory, ReadReply, TurnTools
from agenteval.core.scenario import Sample, SampleKey
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import Message, ToolVisibility
from agenteval.core.value import Number, Text, Value
from agenteval.files.redaction import SECRET_HEADER, redact_url
from agenteval.messages.agent_reply import (
    parse_agent_answer,
    parse_agent_answers,
    parse_choice,
    unplaced_in_completion,
)
from agenteval.messages.completion import (
    UnreadableResponseError,
    assemble_completion,
    assemble_partial_completion,
    parse_object,
)
from agenteval.messages.message_adapters import parse_entries

_LIMIT = "raise the agent's token limit (`body.max_tokens`)"
_QUOTED = 200
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_BAD_HEADER_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_MIN_TIMEOUT_S = 0.1


_REFUSED = frozenset((400, 422))
"""The status codes that indicate that the server did not accept a request."""
_STANDARD = frozenset(("role", "content", "tool_calls", "tool_call_id", "name", "refusal"))


class _RefusedRequestError(AgentError):
    """Raised if the server does not accept the request."""

    def __init__(self, fault: HttpFault) -> None:
        super().__init__(describe(fault), kind="http_status")


OnNotice: TypeAlias = Callable[[str, SampleKey | None], None]


def _ignore_notice(text: str, key: SampleKey | None) -> None:
    pass


class HttpOptions(Value):
    """The options specific to an HTTP agent (an agent behind a URL)."""

    endpoint: str | None = None
    """Complete URL, such as http://localhost:3000/v1/chat/completions."""
    headers: dict[str, Text] = {}
    """Headers sent with each request."""
    api: ApiName | None = None
    """API that the agent implements; by default inferred from the URL."""
    body: dict[str, Any] = {}
    """Keys merged into each request. Messages in body.messages are placed before the conversation."""
    request: dict[str, Any] | None = None
    """Request template for any other JSON API, with placeholders such as ${message}."""
    reply: ReplyPaths | None = None
    """Dotted paths into the reply of any other JSON API."""
    poll: PollOptions | None = None
    """Polling options for an answer that requires several requests."""
    streaming: bool = False
    """True if replies are streamed as server-sent events (SSE)."""
    send_tools: bool = True
    """True if requests include those of the scenario's tools that declare parameters."""
    observed_messages: str | None = None
    """Path of the messages in the reply, for an agent that executes its own tools."""
    max_wait_s: Annotated[Number, Field(ge=0)] = 180.0
    """Total time in seconds that one request may spend waiting for retries and pauses."""
    observe: Annotated[ObserveOptions | None, BeforeValidator(parse_observe_option), OBSERVE_SHORTHAND] = None
    """If set to otlp, the agent's calls are read from the OpenTelemetry spans that it exports."""

    @property
    def form(self) -> str:
        """The API that the agent implements, or ``template`` for a custom API."""
        return "template" if self.request is not None else self.api or infer_api(self.endpoint or "")

    @property
    def template(self) -> Template:
        headers = _clean_headers(self.headers)
        reply = self.reply or ReplyPaths()
        request = self.request or {}
        if reply.tool_calls and RESULT_NAMES.isdisjoint(names_in(request)):
            request = {**request, "tool_results": "${tool_results}"}
        return Template(self.endpoint or "", headers, request, reply, self.poll, self.streaming)

    @property
    def offers_tools(self) -> bool:
        """True if requests list the tools declared by a scenario."""
        if self.form == "template":
            return "tools" in self.template.names
        return self.send_tools

    @property
    def hides_calls(self) -> bool:
        """True if the agent's replies cannot show its calls."""
        reports = self.reply.messages if self.reply else self.observed_messages
        asks_us = self.reply is None or self.reply.tool_calls
        return not (self.observe or reports or asks_us)


_NAMES_OF_APIS = {
    "chat_completions": "chat completions",
    "responses": "the Responses API",
    "messages": "the Messages API",
}


def _describe_agent(options: HttpOptions) -> str:
    """Describe in one line how an HTTP agent is called."""
    where = f"POST {quote(redact_url(options.endpoint or ''), ())}"
    streamed = ", streamed" if options.streaming else ""
    calls = _describe_reported_calls(options)
    if options.form != "template":
        return f"{where}: the conversation, via {_NAMES_OF_APIS[options.form]}{streamed}{calls}"
    names = options.template.names
    sent = "the conversation" if "messages" in names else "each message"
    if "session" in names:
        whose = "the server's" if options.template.reply.session else "agenteval's"
        sent += f", with {whose} session"
    elif "messages" not in names:
        sent += " by itself, without a session"
    job = ", as a job" if options.poll else ""
    return f"{where}: {sent}, as defined by `request`{streamed}{job}{calls}"


def _describe_reported_calls(options: HttpOptions) -> str:
    """Describe where, according to the configuration, the agent's replies may contain calls."""
    reply = options.reply or ReplyPaths()
    if seen := reply.messages or options.observed_messages:
        return f"; reports calls at {seen}"
    return f"; requests tools at {reply.tool_calls}" if reply.tool_calls else ""


class HttpAgentContext:
    """The state shared by all conversations with one agent: the agent's address and its throttle."""

    def __init__(
        self,
        config: AgentConfig,
        options: HttpOptions,
        *,
        transport: Transport,
        secrets: Sequence[str],
        concurrency: int,
        notify: OnNotice,
        warn: Callable[[str], None],
    ) -> None:
        self.config = config
        self.options = options
        self.endpoint = _unescape(options.endpoint or "")
        self.transport = transport
        self.headers = {name: _unescape(value) for name, value in _clean_headers(options.headers).items()}
        self.secrets = (*secrets, *_header_secrets(self.headers))
        self.notify = notify
        self._warn = warn
        limits, key = transport.limits, _caller_key(self.headers)
        self.throttle = limits.throttle(
            ServerTerms(redact_url(self.endpoint), key, f"agent {config.name}", concurrency),
            agent_rate(config),
        )

    def new_api(self) -> Api:
        """Create the API for one conversation."""
        options = self.options
        form, settings = options.form, {"send_tools": options.send_tools, "streaming": options.streaming}
        if form == "template":
            return TemplateApi(options.template, self.warn)
        if form == "responses":
            return ResponsesApi(options.body, **settings)
        return MessagesApi(options.body, self.headers, **settings) if form == "messages" else ChatApi(options)

    def warn(self, text: str) -> None:
        self._warn(f"agent '{self.config.name}': {text}")

    def request_policy(self, key: SampleKey) -> RequestPolicy:
        def notify_retry(retry: Retry) -> None:
            self.notify(f"{retry.where}: {retry.reason}; retrying in {retry.wait_s:.1f} s", key)

        return RequestPolicy(
            self.config.timeout_s,
            throttle=self.throttle,
            may_repeat=is_retryable_unsent,
            max_wait_s=self.options.max_wait_s,
            on_retry=notify_retry,
            secrets=self.secrets,
        )


_DATABASE_REMEDY = "name it in `request`, for example request: {message: ${message}, database: ${database}}"


def _find_no_history(options: HttpOptions) -> NoHistory | None:
    """Return the reason why the agent cannot be given earlier messages, or ``None`` if each request contains
    them."""
    if options.request is None or "messages" in names_in(options.request):
        return None
    return NoHistory(
        "gets only the latest message, because `request` has no ${messages}", "add it to `request`"
    )


class HttpAgents:
    """The agents of a run at one endpoint. The constructor raises ``AuthorError`` for a configuration that
    cannot work.

    ``secrets`` contains strings that must not appear in error messages; the values of headers such as
    ``Authorization`` are added to them. ``concurrency`` is the maximum number of requests in flight.
    ``notify`` is called with each retry and its sample, ``warn`` with messages that everyone should see.
    ``place_of`` returns the location of an agent's key in the configuration file."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        transport: Transport,
        secrets: Sequence[str] = (),
        concurrency: int = 20,
        notify: OnNotice = _ignore_notice,
        warn: Callable[[str], None] = lambda _: None,
        place_of: Callable[[str], Place | None] = lambda _: None,
    ) -> None:
        options = HttpOptions.model_validate(config.adapter_options)
        found = _problems(options, f"agent '{config.name}'")
        problems = tuple(problem._replace(place=place_of(key)) for key, problem in found)
        if problems:
            raise AuthorError(*problems)
        self.does = _describe_agent(options)
        self.database_remedy = "" if "database" in names_in(options.request or {}) else _DATABASE_REMEDY
        self.no_history = _find_no_history(options)
        transport.require(_unescape(options.endpoint or ""))
        self._context = HttpAgentContext(
            config,
            options,
            transport=transport,
            secrets=secrets,
            concurrency=concurrency,
            notify=notify,
            warn=warn,
        )

    def make(self, sample: Sample) -> HttpAgent:
        """Create the agent for one sample."""
        return HttpAgent(self._context, sample.key)

    async def aclose(self) -> None:
        """Do nothing. Other agents may share the transport, and its creator closes it."""


class HttpAgent:
    """The agent for one conversation."""

    def __init__(self, context: HttpAgentContext, key: SampleKey) -> None:
        self._context = context
        self._api = context.new_api()
        self._policy = replace(
            context.request_policy(key), classify=self._classify, error_in=self._api.error_in
        )
        self._last: HttpReply | None = None
        self.traceparent = ""

    async def reply(self, messages: list[Message], tools: TurnTools) -> ReadReply:
        """Send the conversation to the agent over HTTP and read the answer.

        Raise ``AgentError`` for a timeout, an error status, or an unreadable or truncated reply, and
        ``InfrastructureError`` for a fault that the agent did not cause."""
        try:
            return await self._answer(self._api.build_request(messages, tools))
        except UnreadableResponseError as error:
            message = self._describe(f"the reply {error.what}", error.evidence)
            raise AgentError(message, kind="protocol", seen=self._read_last_reply()) from error
        except http_api.AgentFailure as error:
            message = self._describe(error.what, error.words)
            raise AgentError(message, kind="exception", seen=self._read_last_reply()) from error
        except AgentevalError as error:
            error.seen = error.seen or self._read_last_reply()
            raise

    def _read_last_reply(self) -> ReadReply | None:
        """Return what the last reply, which is not a complete answer, reveals about the turn."""
        reply, self._last = self._last, None
        with suppress(UnreadableResponseError, AgentError):
            return self._api.read_partial(reply) if reply else None
        return None

    def _classify(self, fault: HttpFault) -> AgentevalError:
        self._last = fault.reply
        return _RefusedRequestError(fault) if fault.status in _REFUSED else classify(fault)

    async def _answer(self, ask: ApiRequest) -> ReadReply:
        """Send the request, and poll while the agent is working on it. All of this time is agent time."""
        reply = await self._post(ask, self._policy)
        spent_s = reply.latency_ms / 1000
        while True:
            answer = self._api.read(reply)
            if isinstance(answer, ReadReply):
                return replace(answer, latency_ms=spent_s * 1000)
            spent_s += await self._wait(answer, reply, spent_s)
            left_s = self._context.config.timeout_s - spent_s
            rules = replace(self._policy, timeout_s=max(left_s, _MIN_TIMEOUT_S), may_repeat=is_retryable)
            reply = await self._post(answer.request, rules)
            spent_s += reply.latency_ms / 1000

    async def _wait(self, later: PendingAnswer, reply: HttpReply, spent_s: float) -> float:
        """Wait before the next poll, for the configured time or the time that the server asks for, whichever
        is longer."""
        timeout_s = self._context.config.timeout_s
        wait_s = max(later.after_s, self._context.transport.retry_after_s(reply) or 0.0)
        if spent_s + wait_s >= timeout_s:
            where = quote(redact_url(later.request.url or self._context.endpoint), self._context.secrets)
            state = quote(later.state, self._context.secrets, _QUOTED)
            what = f"{where}: the deadline of {timeout_s:g} s (`timeout_s`) has passed; the job is '{state}'"
            raise AgentError(what, kind="timeout")
        await self._context.transport.pause(wait_s)
        return wait_s

    async def _post(self, ask: ApiRequest, rules: RequestPolicy) -> HttpReply:
        try:
            return await self._exchange(ask, rules)
        except _RefusedRequestError as refused:
            remedy = form_remedy(self._context.options, ask.body or {})
            message = f"{refused} — {remedy}" if remedy else str(refused)
            raise AgentError(message, kind=refused.kind) from refused

    async def _exchange(self, ask: ApiRequest, rules: RequestPolicy) -> HttpReply:
        context = self._context
        headers = context.headers if ask.headers is None else ask.headers
        if self.traceparent:
            headers = {**headers, "traceparent": self.traceparent}
        self._last = None
        url = ask.url or context.endpoint
        self._last = await context.transport.exchange(url, ask.body, rules, headers=headers)
        return self._last

    def _describe(self, what: str, evidence: str) -> str:
        where = quote(redact_url(self._context.endpoint), self._context.secrets)
        shown = quote(evidence, self._context.secrets, _QUOTED)
        return f"{where}: {what}" + (f": {shown}" if shown else "")


class ChatApi:
    """OpenAI's chat completions API. The API is stateless, so each request contains the conversation."""

    def __init__(self, options: HttpOptions) -> None:
        self._options = options

    def build_request(self, messages: list[Message], tools: TurnTools) -> ApiRequest:
        return ApiRequest(request_body(self._options, messages, tools))

    def read(self, reply: HttpReply) -> ReadReply:
        return _drop_configured_messages(
            read_reply(reply, observed=self._options.observed_messages), self._options
        )

    def error_in(self, reply: HttpReply) -> Any:
        return http_api.find_model_api_error(reply)

    def read_partial(self, reply: HttpReply) -> ReadReply | None:
        path = self._options.observed_messages
        document = (
            parse_object(reply.text) if reply.events is None else assemble_partial_completion(reply.events)
        )
        observed = _observed_messages(document, path) if path else []
        with suppress(LookupError, TypeError, UnreadableResponseError, AgentError):
            message = _without_observed({**document["choices"][0]["message"]}, path)
            return _drop_configured_messages(
                replace(parse_agent_answer(message), messages=observed), self._options
            )
        return _drop_configured_messages(ReadReply(messages=observed), self._options)


def request_body(config: HttpOptions, messages: Sequence[Message], tools: TurnTools) -> dict[str, Any]:
    """Build the request body. The configured messages come first, followed by the unchanged conversation."""
    body = dict(config.body)
    body["messages"] = [*(config.body.get("messages") or ()), *messages]
    if config.send_tools and tools.schemas and "tools" not in body:
        body["tools"] = list(tools.schemas)
    if config.streaming:
        body["stream"] = True
        # Some servers refuse this field: `stream_options: null` leaves it out.
        options = body.pop("stream_options", {})
        if options is not None:
            body["stream_options"] = {"include_usage": True, **options}
    return body


def form_remedy(options: HttpOptions, body: Mapping[str, Any]) -> str:
    """List the configuration keys that change the format of a rejected request, in case the format caused the
    rejection."""
    if options.form == "template":
        return "`request` defines what is sent"
    ways = []
    if "stream_options" in body and "stream_options" not in options.body:
        ways.append("`body: {stream_options: null}` omits stream_options")
    if "tools" in body and "tools" not in options.body:
        ways.append("`send_tools: false` omits tools")
    if options.body:
        ways.append(f"`body` contains {', '.join(options.body)}")
    if fields := _nonstandard_fields(body.get("messages")):
        ways.append(
            f"its own messages contained {quote(', '.join(fields), (), 100)} and were sent back unchanged"
        )
    return (
        "if the request format is the cause:"
        f" {'; '.join([*ways, '`request` and `reply` define another one'])}"
    )


def _nonstandard_fields(messages: Any) -> list[str]:
    """Return the names of non-standard fields in the agent's messages."""
    assistant_messages = [
        each for each in messages or () if isinstance(each, Mapping) and each.get("role") == "assistant"
    ]
    return sorted({str(name) for each in assistant_messages for name in each} - _STANDARD)


def read_reply(reply: HttpReply, *, observed: str | None = None) -> ReadReply:
    """Read the answer in a chat completion. ``observed`` is the dotted path of the turn's messages.

    Raise ``UnreadableResponseError`` if the reply contains no answer or if the answer was truncated."""
    document = _document(reply)
    if document.get("error"):
        raise UnreadableResponseError(
            f"has status {reply.status} but contains an error", to_json(document["error"])
        )
    messages = _observed_messages(document, observed) if observed else []
    usage = document.get("usage")
    if messages and "choices" not in document:
        # The messages are the complete answer, so an agent with its own format needs no choices.
        messages = parse_agent_answers(messages, document, remedy=_LIMIT)
        return ReadReply(messages=messages, usage=usage, latency_ms=reply.latency_ms)
    message, choice = _message(document)
    answer = parse_agent_answer(_without_observed(message, observed), choice, usage=usage, remedy=_LIMIT)
    around = unplaced_in_completion(document, (observed or "").partition(".")[0])
    answer = replace(answer, unplaced=(*answer.unplaced, *around))
    if answer.messages:  # in another format; the observed messages may contain it already
        (single,) = answer.messages
        messages = [
            *messages,
            *([] if messages and messages[-1].get("content") == single.get("content") else [single]),
        ]
        return replace(answer, messages=messages, latency_ms=reply.latency_ms)
    return replace(answer, messages=messages, latency_ms=reply.latency_ms)


def _drop_configured_messages(reply: ReadReply, config: HttpOptions) -> ReadReply:
    """Remove the configured body's messages from the beginning of a reply that repeats the conversation
    history."""
    configured = [(each.get("role"), each.get("content")) for each in config.body.get("messages") or ()]
    first = [(each.get("role"), each.get("content")) for each in reply.messages[: len(configured)]]
    return (
        replace(reply, messages=reply.messages[len(configured) :])
        if configured and configured == first
        else reply
    )


def _document(reply: HttpReply) -> dict[str, Any]:
    """Parse the reply as a chat completion."""
    document: dict[str, Any]
    document = parse_object(reply.text) if reply.events is None else assemble_completion(reply.events)
    storable: dict[str, Any] = http_api.require_storable(document)
    return storable


def _message(document: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the message and the choice that contains it."""
    choices = document.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise UnreadableResponseError("has no choices", to_json(document))
    choice = choices[0]
    message = parse_choice(choice, remedy=_LIMIT)
    if not isinstance(message, dict):
        raise UnreadableResponseError("has no message in its first choice", to_json(document))
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise UnreadableResponseError("has tool_calls that are not a list", to_json(calls))
    return message, choice


def _without_observed(message: Mapping[str, Any], path: str | None) -> dict[str, Any]:
    """Return a message without the key that contains the observed messages. These are returned separately."""
    steps = (path or "").split(".")
    inner = steps[3] if steps[:3] == ["choices", "0", "message"] and len(steps) > 3 else None
    return {name: value for name, value in message.items() if name != inner}


def _observed_messages(document: Mapping[str, Any], path: str) -> list[Message]:
    value: Any = document
    for name in path.split("."):
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and (index := parse_digits(name)) is not None and index < len(value):
            value = value[index]
        else:
            what = f"has nothing at `observed_messages: {path}`; in place of '{name}', it has"
            raise UnreadableResponseError(what, _contents(value))
    messages = [] if value is None else value
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise UnreadableResponseError(
            f"has no list of messages at `observed_messages: {path}`", to_json(value)
        )
    return parse_entries(messages)


def _contents(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(value) or "an empty object"
    return f"a list of length {len(value)}" if isinstance(value, list) else to_json(value)


def _problems(config: HttpOptions, where: str) -> Iterator[tuple[str, Problem]]:
    """Yield each problem that makes the configuration unusable, with its key. Header values are not shown,
    because they may be secrets."""
    if not is_web_address(_without_session(config.endpoint or "")):
        example = "use a complete URL, such as http://localhost:3000/v1/chat/completions"
        yield "endpoint", Problem(f"{where}: `endpoint` is not an http or https URL", example)
    for name, value in config.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            what = f"{where}: '{name}' is not a valid header name"
            yield f"headers.{name}", Problem(what, "use letters, digits and hyphens")
        if not re.fullmatch(r"[\t\x20-\x7e]*", value.strip()):
            what = f"{where}: header '{name}' contains a line break or a non-ASCII character"
            remedy = "check that its variable contains only the value"
            yield f"headers.{name}", Problem(what, remedy)
    yield from _body_problems(config, where)


def _body_problems(config: HttpOptions, where: str) -> Iterator[tuple[str, Problem]]:
    messages = config.body.get("messages")
    if messages is not None and not (
        isinstance(messages, list) and all(isinstance(m, dict) for m in messages)
    ):
        what = f"{where}: `body.messages` is not a list of messages"
        yield "body.messages", Problem(what, "use - {role: …, content: …}")
    options = config.body.get("stream_options")
    if options is not None and not isinstance(options, dict):
        what = f"{where}: `body.stream_options` is not a mapping"
        yield "body.stream_options", Problem(what, "use {include_usage: true}")
    try:
        json.dumps(config.body)
    except (TypeError, ValueError) as exc:
        yield "body", Problem(f"{where}: `body` cannot be sent as JSON: {exc}")


def _clean_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Remove leading and trailing white space, which HTTP forbids in header values.

    An auth header (``Authorization``) without credentials is removed, because some servers reject it. Such a
    header results, for example, if the key of a local server is not set."""
    stripped = {name: value.strip() for name, value in headers.items()}
    return {
        name: value
        for name, value in stripped.items()
        if name.lower() != "authorization" or value.lower() not in ("", "bearer", "basic", "token")
    }


def _unescape(text: str) -> str:
    """Return a text that no request fills in as it is sent. An unescaped placeholder is refused there."""
    return text.replace("$${session}", "${session}")


def _caller_key(headers: Mapping[str, str]) -> str:
    """Return the header values that identify the caller to a server."""
    return "\n".join(value for name, value in headers.items() if SECRET_HEADER.search(name))


def _header_secrets(headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if value and SECRET_HEADER.search(name):
            yield value
            yield value.split()[-1]


# ── the adapter ──────────────────────────────────────────────────────────────────────────────────


def _without_session(endpoint: str) -> str:
    return endpoint.replace("${session}", "x")


_EXAMPLE = "endpoint: http://localhost:3000/v1/chat/completions"


def _mistakes(options: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield mistakes in the options. Addresses and header values are not shown, because they may contain
    secrets."""
    yield from _endpoint_mistakes(options.get("endpoint"))
    yield from _header_mistakes(options.get("headers"))
    yield from option_mistakes(options)
    yield from observe_mistakes(options.get("observe"), "http")
    yield from _reports_twice(options)


def _endpoint_mistakes(endpoint: Any) -> Iterator[Mistake]:
    at = ("endpoint",)
    if endpoint == "":
        yield Mistake("the agent's `endpoint` is empty", f"set {_EXAMPLE}", at)
    elif not endpoint:
        yield Mistake("an agent of type http requires `endpoint`", f"set {_EXAMPLE}", at)
    elif isinstance(endpoint, str) and not is_web_address(_without_session(endpoint)):
        yield Mistake("expected an http or https URL", "use, for example, http://localhost:3000/…", at)


def _header_mistakes(headers: Any) -> Iterator[Mistake]:
    for name, value in (headers if isinstance(headers, Mapping) else {}).items():
        at = ("headers", name)
        if not _HEADER_NAME.fullmatch(name):
            yield Mistake(f"{name!r} is not a valid header name", "use letters, digits and dashes", at)
        if isinstance(value, str) and _BAD_HEADER_VALUE.search(value):
            what = f"the header '{name}' contains a line break or control character"
            yield Mistake(what, "remove it; a variable read from a file may end in one", at)


def _reports_twice(options: Mapping[str, Any]) -> Iterator[Mistake]:
    """Yield a mistake if both spans and replies report the agent's calls."""
    reply = options.get("reply")
    reported = {
        "observed_messages": options.get("observed_messages"),
        "reply.messages": isinstance(reply, Mapping) and reply.get("messages"),
    }
    key = next((key for key, path in reported.items() if path), "")
    if options.get("observe") and key:
        yield Mistake(f"`observe` and `{key}` both report the calls", "remove one of them", ("observe",))


def _agents(agent: AgentConfig, options: HttpOptions, resources: AgentResources) -> AgentFactory:
    _require_mcp_url(agent, options, resources)
    made = _untraced(agent, resources)
    if options.observe is None:
        return made

    from agenteval.adapters.agents.tracing import TracedAgents

    def send(asked: Agent, traceparent: str) -> None:
        assert isinstance(asked, HttpAgent)
        asked.traceparent = traceparent

    place = resources.place_of(agent, "observe")
    return TracedAgents(
        lambda _: made, options.observe, send=send, warn=resources.warn, place=place, name=agent.name
    )


def _require_mcp_url(agent: AgentConfig, options: HttpOptions, resources: AgentResources) -> None:
    """Check that requests to an agent behind a URL contain its MCP address, because there is no other way to
    pass the address to the agent."""
    is_named = "mcp_url" in names_in(options.request or {})
    if agent.mcp and not is_named:
        what = "no request contains the address of the agent's MCP server"
        remedy = "add it to the request, for example request: {message: ${message}, tools_at: ${mcp_url}}"
        raise AuthorError(Problem(what, remedy, resources.place_of(agent, "mcp")))
    if is_named and not agent.mcp:
        what = "${mcp_url} has no value, because no MCP server is started for this agent"
        raise AuthorError(
            Problem(what, "set `mcp: true` next to `request`", resources.place_of(agent, "request"))
        )


def _untraced(agent: AgentConfig, resources: AgentResources) -> HttpAgents:
    config = resources.config
    return HttpAgents(
        agent,
        transport=resources.transport(),
        secrets=resources.secrets,
        concurrency=config.agent_concurrency or config.concurrency,
        notify=resources.notify,
        warn=resources.warn,
        place_of=lambda key: resources.place_of(agent, key),
    )


def _visibility(options: HttpOptions, _tools: frozenset[str]) -> KnownVisibility | None:
    return KnownVisibility(calls=ToolVisibility.UNSEEN) if options.hides_calls else None


ADAPTER = AgentAdapter(
    _agents,
    HttpOptions,
    _mistakes,
    visibility=_visibility,
    hears_mcp_url=lambda _options: True,
    example=_EXAMPLE,
)
