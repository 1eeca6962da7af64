"""Agents that implement the Responses API or the Messages API. The conversation is sent in the API's format,
and the reply is converted back.

The replies are parsed by the same code that parses logs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from agenteval.adapters.agents.http_api import ApiRequest, find_model_api_error, require_storable
from agenteval.adapters.transport.client import HttpReply
from agenteval.core.errors import AuthorError
from agenteval.core.json_text import to_json
from agenteval.core.protocols import ReadReply, TurnTools
from agenteval.core.trajectory import Message
from agenteval.messages import chat
from agenteval.messages import message_adapters as foreign
from agenteval.messages.agent_reply import require_complete
from agenteval.messages.completion import UnreadableResponseError, parse_object
from agenteval.messages.finish_reasons import find_refusal, is_content_filter, is_token_limit
from agenteval.messages.parsed_message import UNPLACED
from agenteval.messages.responses import describe_response_error, parse_response
from agenteval.messages.sse import ends_stream
from agenteval.messages.streams import assemble_partial_response, assemble_response

_RAW = "agenteval_output"
"""The message field for the server's raw output. The field is set if the output contains more than text and
calls, because such output must be sent back unchanged."""
_MAX_TOKENS = 4096
_TEXT_AND_CALLS = frozenset(("message", "function_call", "text", "tool_use"))
_ENDED = ("completed", "incomplete", "failed", "cancelled")


class _ModelApi:
    """The common base of both APIs."""

    _answers: ClassVar[str]
    """The key of a response that contains its output."""

    def error_in(self, reply: HttpReply) -> Any:
        return find_model_api_error(reply)

    def read_partial(self, reply: HttpReply) -> ReadReply | None:
        document = _partial_document(reply)
        return _answer(
            _without_ending(document, self._answers), document.get(self._answers), document.get("usage")
        )


class ResponsesApi(_ModelApi):
    """OpenAI's Responses API (``POST /v1/responses``). Each request contains the complete conversation."""

    _answers = "output"

    def __init__(self, body: Mapping[str, Any], *, send_tools: bool, streaming: bool) -> None:
        self._body = body
        self._send_tools = send_tools
        self._streaming = streaming

    def build_request(self, messages: list[Message], tools: TurnTools) -> ApiRequest:
        body = dict(self._body)
        body["input"] = [*(self._body.get("input") or ()), *_items(messages)]
        if self._send_tools and tools.schemas and "tools" not in body:
            body["tools"] = [{"type": "function", **schema["function"]} for schema in tools.schemas]
        if self._streaming:
            body["stream"] = True
        return ApiRequest(body)

    def read(self, reply: HttpReply) -> ReadReply:
        document = _document(reply)
        status = document.get("status")
        reason = document.get("incomplete_details")
        reason = reason.get("reason") if isinstance(reason, Mapping) else None
        if status == "incomplete" or is_token_limit(reason) or is_content_filter(reason):
            remedy = (
                ""
                if is_content_filter(reason)
                else " — raise the agent's token limit (`body.max_output_tokens`)"
            )
            raise UnreadableResponseError(f"was cut off ({reason or 'status=incomplete'}){remedy}")
        if status is not None and status not in _ENDED:
            raise UnreadableResponseError(f"is not complete (status={status})", to_json(document))
        return _answer(document, document.get("output"), document.get("usage"))


def _items(messages: Sequence[Message]) -> Iterator[Any]:
    for message in messages:
        if isinstance(raw := message.get(_RAW), list):
            yield from raw
        elif message.get("role") == "tool":
            call, output = message.get("tool_call_id"), message.get("content")
            yield {"type": "function_call_output", "call_id": call, "output": output}
        else:
            text = message.get("content")
            if text or not message.get("tool_calls"):
                yield {"role": message["role"], "content": text or ""}
            for call in message.get("tool_calls") or ():
                yield {"type": "function_call", "call_id": call["id"], **_function(call)}


class MessagesApi(_ModelApi):
    """Anthropic's Messages API (``POST /v1/messages``)."""

    _answers = "content"

    def __init__(
        self, body: Mapping[str, Any], headers: Mapping[str, str], *, send_tools: bool, streaming: bool
    ) -> None:
        self._body = body
        names = {name.lower() for name in headers}
        added = {} if "anthropic-version" in names else {"anthropic-version": "2023-06-01"}
        self._headers = {**headers, **added}
        self._send_tools = send_tools
        self._streaming = streaming

    def build_request(self, messages: list[Message], tools: TurnTools) -> ApiRequest:
        body = {"max_tokens": _MAX_TOKENS, **self._body}
        body["messages"] = [*(self._body.get("messages") or ()), *_blocks(messages)]
        if self._send_tools and tools.schemas and "tools" not in body:
            body["tools"] = [_tool(schema["function"]) for schema in tools.schemas]
        if self._streaming:
            body["stream"] = True
        return ApiRequest(body, headers=self._headers)

    def read(self, reply: HttpReply) -> ReadReply:
        document = _document(reply)
        require_complete(document, remedy="raise the agent's token limit (`body.max_tokens`)")
        return _answer(document, document.get("content"), document.get("usage"))


def _blocks(messages: Sequence[Message]) -> Iterator[Message]:
    results: list[Any] = []
    for message in messages:
        if message.get("role") == "tool":
            call, content = message.get("tool_call_id"), message.get("content")
            results.append({"type": "tool_result", "tool_use_id": call, "content": content})
            continue
        if results:
            yield {"role": "user", "content": results}
            results = []
        if message.get("role") != "assistant":
            yield {"role": "user", "content": message.get("content") or ""}
        elif content := list(map(_with_input, message.get(_RAW) or ())) or list(_assistant_blocks(message)):
            yield {"role": "assistant", "content": content}
    if results:
        yield {"role": "user", "content": results}


def _with_input(block: Any) -> Any:
    """Parse the arguments of a streamed call. They arrive as a string but must be sent back as an object."""
    if not isinstance(block, Mapping) or not isinstance(block.get("input"), str):
        return block
    args, _ = chat.read_arguments(block["input"])
    return {**block, "input": args or {}}


def _assistant_blocks(message: Message) -> Iterator[Any]:
    if text := message.get("content"):
        yield {"type": "text", "text": text}
    for call in message.get("tool_calls") or ():
        function = _function(call)
        arguments = json.loads(function["arguments"] or "{}")
        yield {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    known = {key: function[key] for key in ("name", "description") if key in function}
    return {**known, "input_schema": function.get("parameters") or {"type": "object", "properties": {}}}


# ── the common part ──────────────────────────────────────────────────────────────────────────────


def _function(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call["function"]
    return {"name": function["name"], "arguments": function["arguments"]}


def _document(reply: HttpReply) -> dict[str, Any]:
    """Parse the response. Raise ``UnreadableResponseError`` if the response is an error."""
    if reply.events is None:
        document = parse_object(reply.text)
    else:
        pieces = [parse_object(text) for text in reply.events if not ends_stream(text)]
        if error := next((piece for piece in pieces if piece.get("type") == "error"), None):
            raise UnreadableResponseError("was interrupted by an error", to_json(error.get("error") or error))
        document = dict(assemble_response(pieces))
    failure = describe_response_error(document)
    if document.get("type") == "error" or failure:
        raise UnreadableResponseError("is an error", to_json(document.get("error") or failure))
    storable: dict[str, Any] = require_storable(document)
    return storable


def _partial_document(reply: HttpReply) -> Mapping[str, Any]:
    """Return the available part of an incomplete response. Raise ``UnreadableResponseError`` if no part is
    readable."""
    if reply.events is None:
        return parse_object(reply.text)
    pieces: list[Mapping[str, Any]] = []
    for text in reply.events:
        with suppress(UnreadableResponseError):
            pieces.append(parse_object(text))
    return assemble_partial_response(pieces)


def _without_ending(document: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Return a response without the fields that describe how it ended."""
    if not document.get(part):
        raise UnreadableResponseError("contains no output")
    return {"role": "assistant", part: document[part]}


def _answer(document: Mapping[str, Any], output: Any, usage: Any) -> ReadReply:
    """Build the answer from a response. ``output`` is the part of the response that contains messages and
    calls."""
    messages = _messages(document)
    done, rest = _after_hosted_tools(messages)
    answers = [message for message in rest if message["role"] == "assistant"]
    texts = [chat.text_of(each.get("content")) or find_refusal(each) or "" for each in answers]
    return ReadReply(
        text="\n\n".join(filter(None, texts)) or None,
        tool_calls=[call for each in answers for call in each.get("tool_calls") or ()],
        messages=done,
        usage=usage,
        extra={_RAW: output} if _kinds(output) - _TEXT_AND_CALLS else {},
        unplaced=foreign.unplaced_phrases(messages),
    )


def _messages(document: Mapping[str, Any]) -> list[Message]:
    """Return the messages in a response. Raise ``UnreadableResponseError`` if it contains no messages."""
    try:
        found = parse_response((), document)
    except AuthorError as error:
        raise UnreadableResponseError(f"cannot be read: {error}", to_json(document)) from None
    if found.failure:
        raise UnreadableResponseError("is an error", found.failure)
    if not found.messages:
        raise UnreadableResponseError("has no message", to_json(document))
    return foreign.to_openai_messages(found.messages)


def _after_hosted_tools(messages: Sequence[Message]) -> tuple[list[Message], Sequence[Message]]:
    """Split the messages after the last result of a hosted tool, which is a tool that the provider itself
    executes."""
    ran = [at for at, message in enumerate(messages, 1) if message["role"] == "tool"]
    end = ran[-1] if ran else 0
    return [message for message in messages[:end] if message["role"] != UNPLACED], messages[end:]


def _kinds(output: Any) -> set[str]:
    """Return the types of the parts of an output."""
    parts = output if isinstance(output, list) else ()
    return {str(part.get("type")) for part in parts if isinstance(part, Mapping)}
