"""Converts the steps of tracers other than OpenTelemetry to OpenTelemetry spans. Pure.

LangSmith runs and Langfuse observations are spans with different field names. They are converted to
OpenTelemetry's names, so that a single module (``agenteval.importers.traces``) determines, for all tracers,
the steps that form a conversation, the calls that were made, and the content that is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError
from agenteval.importers.dataset_rows import QUESTION_KEYS, parse_answer, parse_question
from agenteval.importers.exchanges import request_messages
from agenteval.importers.span_kinds import UNSEEN, WHOLE_REQUEST
from agenteval.messages.chat import read_arguments
from agenteval.messages.json_fields import (
    drop_empty,
    drop_none,
    first_nonempty,
    first_text,
    list_at,
    object_of,
    read_json,
)
from agenteval.messages.message_adapters import as_message
from agenteval.messages.parsed_message import UNPLACED
from agenteval.messages.responses import parse_response
from agenteval.messages.roles import ROLES, is_agent_message, role_of, unwrap_message
from agenteval.messages.truncated_json import is_truncated_json, is_truncated_message, make_truncated_message

INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
_HISTORIES = ("chat_history", "history")
"""Keys under which a chain receives the messages before its question."""
_GENERATIONS = "generations"
_SYSTEM_ROLES = ("system", "developer")
_TOOLS = ("tools", "functions")
_SYSTEM = ("system", "instructions")
_FUNCTION_INPUTS = {"args", "kwargs"}
"""The keys that contain the arguments of a traced function."""
_SERIALIZED = "constructor"
"""The ``type`` of an object that LangChain serialized. Its ``kwargs`` contain the fields of the object."""


class TracerStep(NamedTuple):
    """A step recorded by a tracer other than OpenTelemetry."""

    trace: str
    id: str
    parent: str
    name: str
    kind: str
    """A kind of span known to ``span_kinds``. It is stored under the attribute ``kind_attribute``."""
    kind_attribute: str
    start: Any
    end: Any
    error: str = ""
    session: str = ""
    input_messages: list[Any] | None = None
    """The input messages, or ``None`` if they were not recorded."""
    output_messages: Sequence[Any] = ()
    request: Mapping[str, Any] = {}
    call: Mapping[str, Any] = {}
    unread: Mapping[str, Any] = {}
    """Content that may contain calls, keyed by attribute name."""
    events: Sequence[Any] = ()
    unseen: Sequence[Mapping[str, Any]] = ()
    """Descriptions of absent steps (see ``unseen_steps``)."""
    whole_request: str = ""
    """The value stored under ``WHOLE_REQUEST``."""


def unseen_steps(what: str, steps: Sequence[str] | None = ()) -> dict[str, Any]:
    """Describe steps that may be missing from the trace. Nothing is missing if the trace contains all of
    ``steps`` or, when ``steps`` is ``None``, any step nested in the step that contains this description."""
    return {"what": what, "unless": None if steps is None else list(steps)}


def to_span(step: TracerStep) -> dict[str, Any]:
    attributes = {
        step.kind_attribute: step.kind,
        "session.id": step.session or None,
        INPUT_MESSAGES: step.input_messages,
        OUTPUT_MESSAGES: list(step.output_messages) or None,
        "gen_ai.tool.name": step.name if step.call else None,
        **step.request,
        **step.call,
        **step.unread,
    }
    status = {"code": "ERROR", "message": step.error} if step.error else {}
    more = {
        "status": status,
        "events": list(step.events),
        UNSEEN: list(step.unseen),
        WHOLE_REQUEST: step.whole_request,
    }
    return {
        "trace_id": step.trace,
        "span_id": step.id,
        "parent_id": step.parent,
        "name": step.name,
        "start_time": step.start,
        "end_time": step.end,
        "attributes": drop_none(attributes),
        **drop_empty(more),
    }


# ── what was asked and answered ──────────────────────────────────────────────────────────────────


class StepMessages(NamedTuple):
    """The input and output messages of a step."""

    input_messages: list[Any] | None
    """The input messages, or ``None`` if they could not be determined."""
    output_messages: list[Any]
    is_known: bool
    """True if the output is certainly an answer; false if it may be an arbitrary object."""

    @property
    def whole_request(self) -> str:
        """The value for ``WHOLE_REQUEST``, or an empty string if the input or the output is missing."""
        return ("said" if self.is_known else "object") if self.input_messages and self.output_messages else ""

    def for_model(self) -> StepMessages:
        """Drop the output if it may be an arbitrary object."""
        return self if self.is_known else self._replace(output_messages=[])

    def for_request(self) -> StepMessages:
        """Drop all messages if there is no input, because the recipient of the answer is then unknown."""
        return self if self.input_messages else StepMessages(None, [], True)


def parse_step_messages(inputs: Any, outputs: Any) -> StepMessages:
    """Return the input and output messages of a step."""
    inputs, outputs = read_json(inputs), read_json(outputs)
    asked = _parse_messages(_find_input(inputs), role="user")
    known = asked or []
    if not outputs:
        return StepMessages(asked, [], True)
    if is_truncated_json(outputs):
        return StepMessages(asked, [make_truncated_message("output", outputs)], True)
    listed = _parse_messages(_find_output(outputs))
    if listed is not None:
        at = _place_after(known[-1:], listed)
        if at is not None:  # the state of a graph begins with the earlier messages
            instructions = [
                each for each in known if each.get("role") in _SYSTEM_ROLES and each not in listed
            ]
            return StepMessages([*instructions, *listed[:at]], listed[at:], True)
    is_answered = bool(known) and is_agent_message(known[-1])
    try:
        reply = parse_response(known, listed) if listed else parse_answer(known, outputs)
    except AuthorError:
        return StepMessages(asked, [], False)
    is_known = reply.is_known or is_answered
    return StepMessages(
        asked, _parse_messages(reply.messages) or [], is_known and not _is_object(reply.messages, outputs)
    )


def _is_object(messages: Sequence[Any], output: Any) -> bool:
    """Check whether an answer is merely an object written as JSON."""
    texts = (first_text(object_of(each), "content") for each in messages)
    return not isinstance(output, str) and any(read_json(text) == output for text in texts)


def _place_after(last: Sequence[Any], listed: Sequence[Any]) -> int | None:
    """Return the index at which a list continues after the last message, or ``None`` if the list does not
    contain that message."""
    for message in last:
        role_and_content = (message.get("role"), message.get("content"))
        for at in range(len(listed), 0, -1):
            if (
                listed[at - 1].get("role"),
                listed[at - 1].get("content"),
            ) == role_and_content and message.get("content"):
                return at
    return None


def _find_input(inputs: Any) -> Any:
    if is_truncated_json(inputs):
        return [make_truncated_message("input", inputs)]
    if isinstance(inputs, str):
        return [{"role": "user", "content": inputs}] if inputs.strip() else None
    if not isinstance(inputs, dict):
        return inputs
    if inputs.keys() == _FUNCTION_INPUTS and all(
        isinstance(inputs[key], list | dict) for key in _FUNCTION_INPUTS
    ):
        args, named = inputs["args"], inputs["kwargs"]
        return _find_input(args[0] if len(args) == 1 and not named else named)
    if "role" in inputs or _is_langchain_message(inputs):
        return [inputs]
    if inputs.get("type") == _SERIALIZED and isinstance(inputs.get("kwargs"), dict):
        return _find_input(inputs["kwargs"])
    return _find_input_in_fields(inputs)


def _is_langchain_message(fields: dict[str, Any]) -> bool:
    """Check whether an object as a whole is a LangChain message rather than fields of which some are named as
    those of a message are."""
    message = unwrap_message(fields)
    return "content" in message and role_of(message) is not None and fields.keys().isdisjoint(QUESTION_KEYS)


def _find_input_in_fields(inputs: Mapping[str, Any]) -> Any:
    question = parse_question({key: value for key, value in inputs.items() if key not in _HISTORIES})
    if question is not None and any(isinstance(inputs.get(key), list) for key in _HISTORIES):
        return [*list_at(inputs, *_HISTORIES), *question]
    prompts = list_at(inputs, "prompts")
    return prompts if len(prompts) == 1 else request_messages(inputs) or question


def _find_output(output: Any) -> Any:
    """Return the messages in a state, or the single message in an output."""
    if not isinstance(output, dict):
        return output if isinstance(output, list) else None
    if _is_langchain_message(output):
        return [output]
    generations = output.get(_GENERATIONS)
    while isinstance(generations, list) and generations:
        generations = generations[0]
    if isinstance(generations, dict):
        message, text = generations.get("message"), generations.get("text")
        return [message] if isinstance(message, dict) else [{"role": "assistant", "content": text}]
    found = output.get("messages", output.get("output"))
    if isinstance(inner := object_of(found).get("message"), dict):
        found = inner
    if isinstance(found, dict):
        return [found]
    return found if isinstance(found, list) else None


def _parse_messages(listed: Any, role: str = "") -> list[Any] | None:
    """Parse a list of messages. Return ``None`` if the value is anything else. ``role`` is used for a bare
    string; if ``role`` is empty, a bare string is not a message."""
    if not isinstance(listed, list):
        return None
    if len(listed) == 1 and isinstance(listed[0], list) and not _is_pair(listed[0]):
        listed = listed[0]
    found = [_parse_message(each, role) for each in listed]
    return None if any(each is None for each in found) else found


def _parse_message(value: Any, role: str) -> Any:
    if isinstance(value, str) and role:
        return {"role": role, "content": value}
    if _is_pair(value):
        return {"role": ROLES[value[0]], "content": value[1]}
    if not isinstance(value, dict):
        return None
    if value.get("role") == UNPLACED or is_truncated_message(value):
        return value
    message = as_message(value)
    return message if message.get("role") or message.get("type") else None


def _is_pair(value: Any) -> bool:
    """Check whether LangChain would accept a value as a message, that is, whether it is a role–content
    pair."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and value[0] in ROLES
        and isinstance(value[1], str)
    )


def request_in(inputs: Any, *more: Any) -> dict[str, Any]:
    """Return the tools and instructions in a model's request as span attributes."""
    places = [place for place in (read_json(inputs), *more) if isinstance(place, dict)]
    tools = next((place[key] for place in places for key in _TOOLS if isinstance(place.get(key), list)), None)
    system = first_nonempty(_SYSTEM, *places)
    return {"gen_ai.tool.definitions": tools, "gen_ai.system_instructions": system}


# ── a tool ───────────────────────────────────────────────────────────────────────────────────────


class StepResult(NamedTuple):
    value: Any
    call_id: str = ""
    error: str = ""


def result_in(output: Any) -> StepResult:
    """Return the result of a tool call, which LangChain wraps in a message."""
    message = as_message(output) if isinstance(output, dict) and _is_wrapped(output) else {}
    if message.get("role") != "tool":
        return StepResult(output)
    value = message.get("content")
    error = str(value) if message.get("status") == "error" else ""
    return StepResult(value, str(message.get("tool_call_id") or ""), error)


def _is_wrapped(output: Mapping[str, Any]) -> bool:
    return "tool_call_id" in output or isinstance(output.get("kwargs"), dict)


def call_attributes(arguments: Any, result: StepResult, call_id: str = "") -> dict[str, Any]:
    """Return a tool call as attributes of its span."""
    return {
        "gen_ai.tool.call.id": call_id or result.call_id or None,
        "gen_ai.tool.call.arguments": arguments,
        "gen_ai.tool.call.result": result.value,
    }


def call_arguments(inputs: Any) -> Any:
    """Return the arguments of a call. Parse arguments that consist of a single string under ``input``."""
    if isinstance(inputs, dict) and inputs.keys() == {"input"} and isinstance(inputs["input"], str):
        read = read_arguments(inputs["input"], lenient=True)[0]
        return inputs if read is None else read
    return inputs


def objects_in(fields: Mapping[str, Any], read: frozenset[str], within: str) -> dict[str, Any]:
    """Return the remaining objects and lists of a step as attributes, because they may contain calls."""
    return {
        f"{within}.{key}": value
        for key, value in fields.items()
        if key not in read and isinstance(value, dict | list) and value
    }
