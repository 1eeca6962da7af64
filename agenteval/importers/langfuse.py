"""Converts Langfuse traces and observations, from the API or from exports, to OpenTelemetry spans. Pure.

A trace becomes a span that encloses its observations. The input and the output of the trace are the request
and the answer. Older clients have no observation type for tools. A ``SPAN`` or ``EVENT`` is treated as a tool
call if a model requested a call with the same name, as a step if it contains other observations, and
otherwise as a span of unknown kind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from agenteval.importers.span_kinds import WHOLE_REQUEST
from agenteval.importers.spans import id_of, parent_of, trace_of
from agenteval.importers.steps import (
    INPUT_MESSAGES,
    OUTPUT_MESSAGES,
    TracerStep,
    call_arguments,
    call_attributes,
    objects_in,
    parse_step_messages,
    request_in,
    result_in,
    to_span,
    unseen_steps,
)
from agenteval.messages.json_fields import first_text, read_json
from agenteval.messages.message_parser import parse_messages

_PLACE = "observations"
_KIND = "langfuse.observation.type"
_INPUT, _OUTPUT = "langfuse.observation.input", "langfuse.observation.output"
_UNTYPED_KINDS = ("span", "event")
_OUTER_KINDS = ("agent", "chain")
_KINDS = frozenset((
    "generation", "tool", *_UNTYPED_KINDS, "agent", "chain", "retriever", "embedding", "evaluator",
    "guardrail",
))  # fmt: skip
_TRACE_FIELDS = frozenset((_PLACE, "scores", "metadata", "input", "output", "tags", "observationIds"))
_LISTED_TRACE_FIELDS = frozenset(("htmlPath", "bookmarked"))
"""Fields that occur only in Langfuse traces."""
_OBSERVATION_FIELDS = frozenset((
    "input", "output", "modelParameters", "model_parameters", "usage", "usageDetails", "usage_details",
    "costDetails", "cost_details", "providedUsageDetails", "providedCostDetails", "provided_usage_details",
    "provided_cost_details", "tags",
))  # fmt: skip


def is_langfuse_record(value: Any) -> bool:
    """Check whether a value is a Langfuse trace, an observation or a list of observations."""
    if isinstance(value, list):
        return bool(value) and all(map(_is_observation, value))
    return is_trace(value) or _is_observation(value)


def parse_langfuse_spans(value: Any) -> list[dict[str, Any]]:
    """Convert a Langfuse trace, an observation or a list of observations to spans."""
    if is_trace(value):
        return [*_trace_spans(value)]
    return [_observation_span(each) for each in (value if isinstance(value, list) else [value])]


def is_trace(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    inside = value.get(_PLACE)
    if isinstance(inside, list) and inside and all(isinstance(each, dict) for each in inside):
        return all(_kind(each) in _KINDS for each in inside)
    return _is_listed(value)


def fields_of(trace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a trace that describe the trace itself."""
    return {key: value for key, value in trace.items() if key not in _TRACE_FIELDS}


def _is_listed(trace: Mapping[str, Any]) -> bool:
    """Check whether a trace comes from a list of traces, in which observations, and thus calls,
    are omitted."""
    if (
        not {"input", "output"} <= trace.keys()
        or _LISTED_TRACE_FIELDS.isdisjoint(trace)
        or "messages" in trace
    ):
        return False
    inside = trace.get(_PLACE, [])
    return isinstance(inside, list) and all(isinstance(each, str) for each in inside)


def _is_observation(value: Any) -> bool:
    return isinstance(value, dict) and bool(_trace_of(value)) and _kind(value) in _KINDS


def _kind(value: Mapping[str, Any]) -> str:
    return first_text(value, "type").lower()


def _trace_of(value: Mapping[str, Any]) -> str:
    return first_text(value, "traceId", "trace_id")


def _trace_spans(trace: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    inside = trace.get(_PLACE) or ()
    listed = [each for each in inside if isinstance(each, dict)]
    identity = first_text(trace, "id") or next(filter(None, map(_trace_of, listed)), "")
    starts = [start for each in listed if (start := first_text(each, "startTime", "start_time"))]
    messages = parse_step_messages(trace.get("input"), trace.get("output")).for_request()
    what = "the observations missing from the trace (fetch them with GET /api/public/traces/ID)"
    unseen = [] if listed else [unseen_steps(what, [str(each) for each in inside] or None)]
    yield to_span(
        TracerStep(
            identity, _root_id(identity), "", first_text(trace, "name"), "chain", _KIND,
            min([*filter(None, [first_text(trace, "timestamp")]), *starts], default=None), None,
            session=first_text(trace, "sessionId", "session_id"),
            input_messages=messages.input_messages, output_messages=messages.output_messages,
            whole_request=messages.whole_request,
            unread={
                _INPUT: trace.get("input"), _OUTPUT: trace.get("output"),
                "langfuse.trace.metadata": trace.get("metadata"),
            },
            unseen=unseen,
        )
    )  # fmt: skip
    ids = {first_text(each, "id") for each in listed}
    for each in listed:
        yield _observation_span(each, identity, ids)


def _root_id(trace: str) -> str:
    return f"trace {trace}"


def _observation_span(
    value: Mapping[str, Any], trace: str = "", others: Collection[str] | None = None
) -> dict[str, Any]:
    """Convert an observation to a span. ``others`` contains the ids of all observations in its ``trace``. If
    the parent's id is not among them, the observation becomes a child of the trace."""
    trace, kind = _trace_of(value) or trace, _kind(value)
    parent = first_text(value, "parentObservationId", "parent_observation_id")
    if others is not None and parent not in others:
        parent = ""
    error = first_text(value, "statusMessage", "status_message") or "error"
    inputs, outputs = read_json(value.get("input")), read_json(value.get("output"))
    name, io_attributes = first_text(value, "name"), {_INPUT: inputs, _OUTPUT: outputs}
    what = f"the missing parent observation of '{name[:40]}'"
    step = TracerStep(
        trace, first_text(value, "id") or f"{trace}.{first_text(value, 'startTime', 'start_time')}.{name}",
        parent or _root_id(trace), name, kind, _KIND,
        first_text(value, "startTime", "start_time") or None,
        first_text(value, "endTime", "end_time") or None,
        error if first_text(value, "level").upper() == "ERROR" else "",
        first_text(value, "sessionId", "session_id"),
        unread={**objects_in(value, _OBSERVATION_FIELDS, "langfuse"), **io_attributes},
        unseen=[unseen_steps(what, [parent])] if parent and others is None else (),
    )  # fmt: skip
    if kind == "tool":
        result = result_in(outputs)
        call = call_attributes(call_arguments(inputs), result)
        return to_span(step._replace(call=call, error=step.error or result.error))
    return to_span(_with_model_messages(step, value, inputs, outputs) if kind == "generation" else step)


def _with_model_messages(step: TracerStep, value: Mapping[str, Any], inputs: Any, outputs: Any) -> TracerStep:
    messages = parse_step_messages(inputs, outputs)
    model = first_text(value, "model", "provided_model_name", "providedModelName") or None
    request = {**request_in(inputs), "gen_ai.request.model": model}
    return step._replace(
        input_messages=messages.input_messages, output_messages=messages.output_messages, request=request
    )


# ── what observations show of one another ────────────────────────────────────────────────────────


def complete_spans(spans: Sequence[Any]) -> list[Any]:
    """Return the spans in a record. Langfuse spans are completed with information from the other spans in
    their trace: untyped spans are given a kind, and the outermost span is given messages."""
    traces: dict[str, list[Mapping[str, Any]]] = {}
    for span in filter(_is_langfuse_span, spans):
        traces.setdefault(trace_of(span), []).append(span)
    more = {at: shown for trace, inside in traces.items() for at, shown in _completed_spans(trace, inside)}
    return [more.get(id(span), span) for span in spans]


def _is_langfuse_span(span: Mapping[str, Any]) -> bool:
    attributes = span.get("attributes")
    return isinstance(attributes, dict) and _KIND in attributes and "spanId" not in span


def _completed_spans(trace: str, spans: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the completed spans of a trace, each with the ``id()`` of the original span."""
    ids, parents = set(map(id_of, spans)), set(map(parent_of, spans))
    called, root = {*_called_names(spans)}, _root_id(trace)
    has_messages = any(id_of(span) == root and INPUT_MESSAGES in span["attributes"] for span in spans)
    tops = [span for span in spans if id_of(span) != root and parent_of(span) not in ids - {root}]
    for span in spans:
        attributes, is_step = span["attributes"], id_of(span) in parents
        if attributes[_KIND] in _UNTYPED_KINDS and (is_step or span.get("name") in called):
            attributes = {**attributes, _KIND: "chain" if is_step else "tool"}
        shown = {**span, "attributes": attributes}
        is_around_all = [span] == tops and is_step and attributes[_KIND] in _OUTER_KINDS
        yield id(span), _with_messages(shown) if is_around_all and not has_messages else shown


def _with_messages(span: Mapping[str, Any]) -> dict[str, Any]:
    """Add the user's request and the answer to an outermost step, if its input and output contain them."""
    attributes = span["attributes"]
    messages = parse_step_messages(attributes.get(_INPUT), attributes.get(_OUTPUT))
    if not messages.whole_request:
        return dict(span)
    attributes = {
        **attributes,
        INPUT_MESSAGES: messages.input_messages,
        OUTPUT_MESSAGES: messages.output_messages,
    }
    return {**span, "attributes": attributes, WHOLE_REQUEST: messages.whole_request}


def _called_names(spans: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for span in spans:
        for message in parse_messages(span["attributes"].get(OUTPUT_MESSAGES) or ()):
            yield from (call.name for call in message.calls)
