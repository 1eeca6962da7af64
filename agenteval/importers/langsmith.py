"""Converts LangSmith runs, from the API or from tracers, to the OpenTelemetry spans of a trace. Pure.

Runs may be logged one by one, in lists or nested (``child_runs``). For chains, messages are read only from
the outermost chain, because inner chains pass on the messages of models and tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval.importers.steps import (
    StepMessages,
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
from agenteval.messages.json_fields import first_nonempty, first_text, list_at, list_of, object_at, object_of

_KIND = "run_type"
_NESTED = "child_runs"
_TRACE_KEYS = ("trace_id", "dotted_order", "parent_run_id", "parent_run_ids")
"""Keys that identify a run as part of a trace. A row of a data set may contain all other keys of a run."""
_THREADS = ("thread_id", "session_id", "conversation_id")
"""Keys in the metadata of a run that may contain the id of its thread."""
_WITHIN = ("child_run_ids", "direct_child_run_ids")
_EVENTS = frozenset(("start", "end", "new_token", "error"))
_READ_FIELDS = frozenset((
    "inputs", "outputs", "extra", "serialized", "manifest", "tags", "events", _NESTED, "parent_run_ids",
    *_WITHIN, "feedback_stats",
))  # fmt: skip
_NO_RUN = ""
"""A placeholder id that no run uses."""
_TRACEBACK = "Traceback (most recent call last)"


def is_langsmith_run(value: Any) -> bool:
    """Check whether a value is a LangSmith run or a list of runs."""
    return bool(value) and all(map(_is_run, value)) if isinstance(value, list) else _is_run(value)


def parse_langsmith_spans(value: Any) -> list[dict[str, Any]]:
    """Convert a LangSmith run or a list of runs to spans."""
    return [span for run in (value if isinstance(value, list) else [value]) for span in _run_spans(run, {})]


def outermost_in(value: Any) -> dict[str, Any]:
    """Return the outermost runs that are present, keyed by the id of their trace."""
    runs = value if isinstance(value, list) else [value]
    return {_trace_of(run): run for run in runs if not _parent_of(run)}


def _is_run(value: Any) -> bool:
    if not isinstance(value, dict) or not first_text(value, _KIND) or not first_text(value, "id"):
        return False
    return bool(value.get(_NESTED)) or any(value.get(key) for key in _TRACE_KEYS)


def _run_spans(run: Mapping[str, Any], outer: Mapping[str, Any], at: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the spans for a run and for the runs nested in it. ``outer`` is the enclosing span, and ``at`` is
    the position of the run within it."""
    trace = first_text(run, "trace_id") or str(outer.get("trace_id") or _trace_of(run))
    span = _run_span(run, trace, str(outer.get("span_id") or ""), at)
    yield span
    nested = run.get(_NESTED)
    for number, each in enumerate(list_of(nested)):
        if isinstance(each, dict):
            yield from _run_spans(each, span, number)


def _trace_of(run: Mapping[str, Any]) -> str:
    """Return the id of the run's trace, which is the id of the outermost run."""
    above = next(iter(list_at(run, "parent_run_ids")), "")
    known = first_text(run, "trace_id") or _ids_of(run)[0]
    return known or str(above or first_nonempty(("parent_run_id", "id"), run) or "")


def _parent_of(run: Mapping[str, Any]) -> str:
    """Return the id of the enclosing run, or an empty string if the run names none."""
    above = [*list_at(run, "parent_run_ids")[-1:], *_ids_of(run)[-2:-1]]
    return first_text(run, "parent_run_id") or next((str(each) for each in above if each), "")


def _ids_of(run: Mapping[str, Any]) -> list[str]:
    """Return the ids of the enclosing runs, followed by the id of this run. They are read from
    ``dotted_order``, which consists of time–id pairs."""
    return [each.rpartition("Z")[2] for each in first_text(run, "dotted_order").split(".")]


def _run_span(run: Mapping[str, Any], trace: str, outer: str, at: int) -> dict[str, Any]:
    kind, name = first_text(run, _KIND).lower(), first_text(run, "name")
    identity = first_text(run, "id") or f"{outer}.{at}"
    parent = first_text(run, "parent_run_id") or outer or _parent_of(run)
    error = first_text(run, "error").partition(_TRACEBACK)[0].strip() or ("error" if run.get("error") else "")
    extra = object_at(run, "extra")
    step = TracerStep(
        trace, identity, parent, name, kind, "langsmith.span.kind",
        run.get("start_time"), run.get("end_time"), error, _thread_of(extra),
        events=_events(run), unread=objects_in(run, _READ_FIELDS, "langsmith"),
        unseen=_unseen_around(run, parent),
    )  # fmt: skip
    if kind == "tool":
        return to_span(_with_tool_call(step, run, first_text(extra, "tool_call_id")))
    inputs, outputs = run.get("inputs"), run.get("outputs")
    step = step._replace(unread={**step.unread, "langsmith.inputs": inputs, "langsmith.outputs": outputs})
    if kind == "llm":
        return to_span(_with_model_messages(step, inputs, outputs, extra))
    return to_span(step if parent else _with_request(step, run))


def _with_model_messages(step: TracerStep, inputs: Any, outputs: Any, extra: Mapping[str, Any]) -> TracerStep:
    messages = parse_step_messages(inputs, outputs).for_model()
    what = f"the messages of the run '{step.name[:40]}', whose format is unknown"
    is_lost = (inputs and not messages.input_messages) or (outputs and not messages.output_messages)
    lost = [unseen_steps(what, [_NO_RUN])] if is_lost else []
    request = request_in(inputs, extra.get("invocation_params"))
    return step._replace(
        request=request,
        unseen=[*step.unseen, *lost],
        input_messages=messages.input_messages,
        output_messages=messages.output_messages,
    )


def _with_request(step: TracerStep, run: Mapping[str, Any]) -> TracerStep:
    """Add the user's request and the answer, which are stored in the outermost run."""
    messages = parse_step_messages(run.get("inputs"), run.get("outputs")).for_request()
    unseen = [*step.unseen, *_unseen_within(run, messages)]
    return step._replace(
        whole_request=messages.whole_request,
        unseen=unseen,
        input_messages=messages.input_messages,
        output_messages=messages.output_messages,
    )


def _with_tool_call(step: TracerStep, run: Mapping[str, Any], call_id: str) -> TracerStep:
    outputs = run.get("outputs")
    if isinstance(outputs, dict) and outputs.keys() == {"output"}:
        outputs = outputs["output"]
    result = result_in(None if outputs == {} else outputs)
    call = call_attributes(call_arguments(run.get("inputs")), result, call_id)
    return step._replace(call=call, error=step.error or result.error)


def _thread_of(extra: Mapping[str, Any]) -> str:
    """Return the id of the run's thread, which is read only from the metadata: elsewhere, ``session_id``
    identifies a project."""
    found = map(object_at(extra, "metadata").get, _THREADS)
    return next((str(each) for each in found if isinstance(each, str | int) and str(each)), "")


def _events(run: Mapping[str, Any]) -> list[Any]:
    """Return the events, excluding those that report only the beginning, the progress or the end of a run."""
    return [each for each in list_at(run, "events") if object_of(each).get("name") not in _EVENTS]


def _unseen_around(run: Mapping[str, Any], parent: str) -> list[dict[str, Any]]:
    """Return the absent runs that this run refers to: its parent and its children."""
    name = first_text(run, "name")[:40]
    children = [str(each) for key in _WITHIN for each in run.get(key) or ()]
    missing = [unseen_steps(f"the missing parent run of '{name}'", [parent])] if parent else []
    return [*missing, unseen_steps(f"a missing run nested in '{name}'", children)] if children else missing


def _unseen_within(run: Mapping[str, Any], messages: StepMessages) -> list[dict[str, Any]]:
    """Describe the missing runs that are nested in the outermost run, because a list of runs may contain only
    the outermost run. Return an empty list if no runs are nested in it, or if its messages contain the calls.
    """
    is_alone = any(run.get(key) == [] for key in _WITHIN)
    has_calls = any(each.get("role") == "tool" or each.get("tool_calls") for each in messages.output_messages)
    what = f"the missing runs nested in '{first_text(run, 'name')[:40]}'"
    return [] if is_alone or has_calls else [unseen_steps(what, None)]
