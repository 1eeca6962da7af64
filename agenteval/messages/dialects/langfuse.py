"""Traces of Langfuse, as it exports them: observations that name their parents. Pure.

A trace is one conversation. Its generations repeat what was said before: where all but one are beginnings of
the one, that is read. Where they are apart (one writes a query, one the answer), the input and the output of
the trace are what was said, and the calls of its generations what was done between.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.core.errors import AuthorError, Problem
from agenteval.messages.calls import Call, word
from agenteval.messages.chat import read_arguments
from agenteval.messages.growing import goes_on, words_of
from agenteval.messages.message import said_in
from agenteval.messages.placed import Unplaced
from agenteval.messages.responses import read_json, reply_to
from agenteval.messages.rows import ASKED
from agenteval.messages.said import marked

_PLACE = "observations"
_KINDS = frozenset(
    (
        "GENERATION",
        "TOOL",
        "SPAN",
        "EVENT",
        "AGENT",
        "CHAIN",
        "RETRIEVER",
        "EMBEDDING",
        "EVALUATOR",
        "GUARDRAIL",
    )
)
_UNKNOWN = ("SPAN", "EVENT")
"""Kinds that say nothing: older clients have no other for a tool."""
_OF_TRACES = frozenset((_PLACE, "scores", "metadata", "input", "output", "tags", "observationIds"))


class _Observation(NamedTuple):
    """``parent`` is empty for one that is the trace's own."""

    id: str
    parent: str
    kind: str
    name: str
    start: str
    input: Any
    output: Any
    model: str
    error: str


class _Langfuse:
    name = "langfuse"

    def matches(self, record: Any) -> bool:
        if isinstance(record, list):
            return bool(record) and all(map(_is_observation, record))
        if not isinstance(record, dict):
            return False
        inside = record.get(_PLACE)
        if isinstance(inside, list) and inside and all(isinstance(each, dict) for each in inside):
            return all(_kind(each) in _KINDS for each in inside)
        if _is_listed(record):
            return True
        return _is_observation(record)

    def goes_on(self, held: Sequence[Any], record: Any) -> bool:
        if not _is_observation(record):
            return False
        return not held or _trace_of(record) == _trace_of(held[0])

    def read(self, record: Any) -> list[dict[str, Any]]:
        if isinstance(record, dict) and _is_listed(record):
            found = _conversation(record, ())
            what = "the observations of the trace, which are not in it (GET /api/public/traces/ID has them)"
            left_out = marked(Unplaced(what, (_PLACE,), record.get(_PLACE) or None))
            return [{**found, "messages": [*found["messages"], left_out]}]
        if isinstance(record, dict) and _PLACE in record:
            return [_conversation(record, record[_PLACE])]
        observations = [record] if isinstance(record, dict) else list(record)
        traces = dict.fromkeys(map(_trace_of, observations))
        return [
            _conversation({"id": trace}, [each for each in observations if _trace_of(each) == trace])
            for trace in traces
        ]


importer = _Langfuse()


def _is_listed(trace: Mapping[str, Any]) -> bool:
    """Whether a trace is as lists of traces have it: without its observations, and the calls in them."""
    if not {"input", "output"} <= trace.keys() or _OF_LISTED.isdisjoint(trace) or "messages" in trace:
        return False
    inside = trace.get(_PLACE, [])
    return isinstance(inside, list) and all(isinstance(each, str) for each in inside)


_OF_LISTED = frozenset(("htmlPath", "bookmarked"))
"""Fields that nothing but a trace of Langfuse has."""


def _is_observation(value: Any) -> bool:
    return isinstance(value, dict) and bool(_trace_of(value)) and _kind(value) in _KINDS


def _kind(value: Mapping[str, Any]) -> str:
    return word(value, "type").upper()


def _trace_of(value: Mapping[str, Any]) -> str:
    return word(value, "traceId") or word(value, "trace_id")


def _observation(value: Mapping[str, Any]) -> _Observation:
    is_error = word(value, "level") == "ERROR"
    message = word(value, "statusMessage") or word(value, "status_message") or "error"
    return _Observation(
        str(value.get("id") or ""),
        word(value, "parentObservationId") or word(value, "parent_observation_id"),
        _kind(value),
        word(value, "name"),
        word(value, "startTime") or word(value, "start_time"),
        read_json(value.get("input")),
        read_json(value.get("output")),
        word(value, "model") or word(value, "provided_model_name") or word(value, "providedModelName"),
        message if is_error else "",
    )


# ── one trace ────────────────────────────────────────────────────────────────────────────────────


def _conversation(trace: Mapping[str, Any], listed: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Raises ``AuthorError`` (without a place) for a trace in which no one conversation is."""
    found = sorted(map(_observation, listed), key=lambda each: each.start)
    generations = [_generation(each) for each in found if each.kind == "GENERATION"]
    latest = list(_latest(generations))
    if len(latest) == 1:
        messages, chain = [*latest[0].asked, *latest[0].answer], generations
    else:
        messages, chain = _outermost(trace, found), []
        if not messages:
            what = f"a trace of {len(generations)} generations, none of which goes on from all others"
            remedy = "log the input and the output of the trace, or all that was said with each generation"
            raise AuthorError(Problem(what, remedy))
        calls = [each for one in generations for each in one.answer if _calls_in([each])]
        messages = [*messages[:-1], *calls, *messages[-1:]]
    parents = {each.parent for each in found}
    leaves = [each for each in found if each.kind in _UNKNOWN and each.parent and each.id not in parents]
    named = {call.name for call in _calls_in(messages)}
    tools = [each for each in found if each.kind == "TOOL" or (each in leaves and each.name in named)]
    lost = [_unplaced(each) for each in leaves if each not in tools]
    rest = {key: value for key, value in trace.items() if key not in _OF_TRACES}
    error = next((each.error for each in reversed(found) if each.error), "")
    model = next((each.model for each in latest if each.model), "")
    given = [each.input for each in found if each.kind == "GENERATION" and isinstance(each.input, dict)]
    declared: list[Any] = next(
        (each["tools"] for each in reversed(given) if isinstance(each.get("tools"), list)), []
    )
    # What ran is a tool, whether or not a model was offered it.
    declared = [*declared, *dict.fromkeys(each.name for each in tools)] if declared else []
    own = (("model", model), ("error", error), ("tools", declared))
    added = {key: value for key, value in own if value}
    return {**rest, **added, "messages": [*_with_tools(messages, tools, chain), *lost]}


def _unplaced(observation: _Observation) -> dict[str, Any]:
    what = f"an observation of the type {observation.kind}, which may be a tool's, '{observation.name[:40]}'"
    return marked(Unplaced(what, (observation.name, observation.kind), observation.input))


class _Generation(NamedTuple):
    """What a model was asked and answered; ``words``: the same, to be compared."""

    asked: list[Any]
    answer: list[Any]
    words: Sequence[Any]
    model: str
    start: str


def _generation(observation: _Observation) -> _Generation:
    asked = _asked_in(observation.input)
    answer = _answer_in(asked, observation.output)
    return _Generation(asked, answer, words_of([*asked, *answer]), observation.model, observation.start)


def _asked_in(value: Any) -> list[Any]:
    """The messages of an input: a list of them, or one with its tools; a text is one of the user's."""
    if isinstance(value, dict):
        listed = value.get("messages", value.get("contents", value.get("input")))
        if isinstance(listed, list):
            value = listed
        elif "role" in value:
            value = [value]
        else:
            texts = [each for each in value.values() if isinstance(each, str)]
            named = [value[key] for key in ASKED if isinstance(value.get(key), str)]
            value = next(iter(named or texts[:1]), "") if len(texts) == 1 or named else json.dumps(value)
    if isinstance(value, list):
        return list(value[0]) if len(value) == 1 and isinstance(value[0], list) else value
    return [{"role": "user", "content": value}] if isinstance(value, str) and value.strip() else []


def _answer_in(asked: list[Any], value: Any) -> list[Any]:
    if value in (None, ""):
        return []
    reply = reply_to(asked, value)
    if reply.is_known or reply.lost:
        return reply.messages
    texts = [each for each in value.values() if isinstance(each, str)] if isinstance(value, dict) else []
    text = texts[0] if len(texts) == 1 == len(value) else json.dumps(value, ensure_ascii=False)
    return [{"role": "assistant", "content": text}]


def _latest(generations: Sequence[_Generation]) -> Iterator[_Generation]:
    """Those that no later one goes on from."""
    for at, each in enumerate(generations):
        if not any(goes_on(each.words, later.words) for later in generations[at + 1 :]):
            yield each


def _outermost(trace: Mapping[str, Any], found: Sequence[_Observation]) -> list[Any]:
    """What the trace as a whole, or the one observation around all others, was asked and answered; empty if
    nobody knows."""
    ids = {each.id for each in found}
    roots = [each for each in found if each.parent not in ids]
    given, back = read_json(trace.get("input")), read_json(trace.get("output"))
    if given is None and len(roots) == 1:
        given, back = roots[0].input, roots[0].output
    asked = _asked_in(given)
    answer = _answer_in(asked, back)
    return [*asked, *answer] if asked and answer else []


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


def _calls_in(messages: Iterable[Any]) -> list[Call]:
    return [call for said in said_in(messages, lambda _: None) for call in said.calls]


def _with_tools(
    messages: list[Any], tools: Sequence[_Observation], chain: Sequence[_Generation]
) -> list[Any]:
    """With what the tools gave back: of the call of that name and these arguments, else of that name; with a
    call of its own where no model made one. It stands before the answer of the generation that came next."""
    answered = {said.id for said in said_in(messages, lambda _: None) if said.role == "tool"}
    calls = [(at, call) for at, each in enumerate(messages) for call in _calls_in([each])]
    added: dict[int, list[Any]] = {}
    left = list(tools)
    for is_same in (_does_same, _is_named_alike):
        for tool in list(left):
            one = next(((at, call) for at, call in calls if is_same(tool, call)), None)
            if one is not None:
                calls.remove(one)
                left.remove(tool)
                at, call = one
                if call.id not in answered:
                    added.setdefault(at + 1, []).append(_result_of(tool, call.id))
    for tool in left:
        identity = tool.id or tool.start
        given = json.dumps(tool.input) if isinstance(tool.input, dict) else tool.input or ""
        asked = {"id": identity, "type": "function", "function": {"name": tool.name, "arguments": given}}
        following = [len(each.asked) for each in chain if each.start > tool.start]
        before = min([*following, len(messages) - 1])
        made = [{"role": "assistant", "content": None, "tool_calls": [asked]}, _result_of(tool, identity)]
        added.setdefault(before, []).extend(made)
    return [each for at in range(len(messages) + 1) for each in (*added.get(at, ()), *messages[at : at + 1])]


def _result_of(tool: _Observation, identity: str) -> dict[str, Any]:
    failed = {"status": "error"} if tool.error else {}
    value = tool.error if tool.output is None else tool.output
    if isinstance(value, dict) and value.get("type") == "tool" and isinstance(value.get("content"), str):
        value = value["content"]  # LangChain's message of a tool
    return {"role": "tool", "tool_call_id": identity, "name": tool.name, "content": value, **failed}


def _does_same(tool: _Observation, call: Call) -> bool:
    given = tool.input
    args = given if isinstance(given, dict) else read_arguments(given, lenient=True)[0]
    return tool.name == call.name and args == (call.args or {})


def _is_named_alike(tool: _Observation, call: Call) -> bool:
    return tool.name == call.name
