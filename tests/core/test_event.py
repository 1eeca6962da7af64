"""Events of a run: which run is a selection, and what a resumed run still has to do."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from agenteval.core.event import (
    Event,
    ModelAsked,
    Notice,
    Reconsidered,
    RunFinished,
    SampleFinished,
    SampleStarted,
)
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Check, ScoreFailure
from agenteval.core.trajectory import Stop, StopReason
from tests.support.report_samples import started

KEY = SampleKey(scenario="a", agent="bot")


@pytest.mark.parametrize(
    ("request_", "is_selection"),
    [
        ({}, False),
        ({"paths": []}, False),
        ({"paths": ["a.yaml"]}, True),
        ({"last_failed": True}, True),
        ({"filters": None}, False),
        ({"filters": {"tags": [], "first": None}}, False),
        ({"filters": {"tags": ["quick"]}}, True),
        ({"filters": {"first": 3}}, True),
        ({"filters": {"agent": "bot"}}, False),  # for all scenarios
    ],
)
def test_whether_only_some_scenarios_were_asked_for(request_: dict[str, Any], is_selection: bool) -> None:
    assert started((), (), request=request_).is_selection is is_selection


def test_scenarios_that_were_left_out_for_want_of_a_model() -> None:
    run = started((), ())
    plan = run.plan.model_copy(update={"needs_model": ("a",)})
    assert run.model_copy(update={"plan": plan}).is_selection


@pytest.mark.parametrize(
    ("reason", "fields", "is_over"),
    [
        ("script_done", {}, True),
        ("agent_error", {}, True),
        ("infrastructure", {}, True),
        ("infrastructure", {"again": True}, False),
        ("script_done", {"refused": True}, False),
        ("interrupted", {}, False),
        ("budget", {}, False),
    ],
)
def test_whether_a_conversation_is_done(reason: str, fields: dict[str, Any], is_over: bool) -> None:
    event = SampleFinished(key=KEY, stop=Stop(reason=StopReason(reason)), **fields)
    assert event.is_over is is_over


FAILURE = ScoreFailure(metric="m", message="?")


@pytest.mark.parametrize(
    ("items", "is_over"),
    [
        ((), True),
        ((Check(name="x", passed=True), FAILURE), True),
        ((FAILURE, FAILURE.model_copy(update={"refused": True})), False),
    ],
)
def test_whether_a_second_look_is_done(items: Any, is_over: bool) -> None:
    assert Reconsidered(key=KEY, metric="m", items=items).is_over is is_over


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        ({}, False),
        ({"hash": "h"}, False),
        ({"answer": {"a": 1}}, False),
        ({"hash": "h", "answer": {}}, True),
        ({"hash": "h", "answer": {"a": 1}}, True),
    ],
)
def test_an_answer_that_may_be_used_again_is_kept_without_its_texts(
    fields: dict[str, Any], is_kept: bool
) -> None:
    asked = ModelAsked(
        role="judge", metric="m", key=KEY, system="s", prompt="p", record=1, model="a/b", **fields
    )
    kept = asked.for_journal
    assert (kept is not None) is is_kept
    if kept:
        assert (kept.system, kept.prompt, kept.record) == ("", "", 0)
        assert kept.model_dump().keys().isdisjoint({"system", "prompt", "record", "error"})
        assert (kept.hash, kept.answer, kept.model, kept.key) == ("h", fields["answer"], "a/b", KEY)


@pytest.mark.parametrize(
    "event",
    [
        SampleStarted(key=KEY),
        SampleFinished(key=KEY, stop=Stop(reason=StopReason.SCRIPT_DONE)),
        Reconsidered(key=KEY, metric="m", items=(FAILURE,)),
        ModelAsked(role="judge", metric="m"),
        Notice(text="x", level="warning"),
        RunFinished(finished_at="2026-11-29T00:00:00Z", outcome="budget"),
    ],
    ids=lambda event: event.type,
)
def test_an_event_is_read_as_it_was_written(event: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Event)
    assert adapter.validate_json(event.model_dump_json()) == event


def test_each_event_is_known_by_its_type() -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(Event)
    key, stop = KEY.model_dump(), {"reason": "script_done"}
    fields: dict[str, dict[str, Any]] = {
        "run_resumed": {"at": "2026-11-29T00:00:00Z"},
        "sample_started": {"key": key},
        "turn_finished": {"key": key, "index": 0, "turn": {"user": "Hi"}},
        "scored": {"key": key, "turn": None, "items": []},
        "asked": {"role": "judge", "metric": "m"},
        "reconsidered": {"key": key, "metric": "m", "items": []},
        "sample_finished": {"key": key, "stop": stop},
        "notice": {"text": "x"},
        "calls_seen": {"agent": "bot", "evidence": "asked"},
        "issues_found": {"issues": []},
        "run_finished": {"finished_at": "2026-11-29T00:00:00Z"},
    }
    for kind, more in fields.items():
        assert adapter.validate_python({"type": kind, **more}).type == kind
    run = started((), ())
    assert run.type == "run_started"
    assert adapter.validate_json(run.model_dump_json()) == run
    notice = adapter.validate_python({"type": "notice", "text": "x"})
    assert (notice.level, notice.key) == ("info", None)
    asked = adapter.validate_python({"type": "asked", "role": "judge", "metric": "m"})
    assert (asked.scripted, asked.answer, asked.error) == (False, None, "")
    found = adapter.validate_python({"type": "issues_found", "issues": []})
    assert "not_asked" not in found.model_dump()
    assert found.model_copy(update={"not_asked": 2}).model_dump()["not_asked"] == 2


def test_what_is_not_there_is_not_written() -> None:
    assert SampleStarted(key=KEY).model_dump().keys() == {"type", "key"}
    finished = SampleFinished(key=KEY, stop=Stop(reason=StopReason.SCRIPT_DONE))
    assert finished.model_dump().keys() == {"type", "key", "stop"}
