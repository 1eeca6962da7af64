"""A runner elsewhere gets samples and returns events, all as text: the report is that of a local run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.streams.memory import MemoryObjectSendStream
from pydantic import TypeAdapter

from agenteval.conversation.local_runner import LocalRunner
from agenteval.conversation.runtime import RunControl, Runtime
from agenteval.conversation.visibility_tracker import VisibilityTracker
from agenteval.core.event import CallsSeen, Event
from agenteval.core.protocols import ConversationProgress, Emit
from agenteval.core.scenario import Sample
from agenteval.files.journal import event_from_json, event_to_json
from agenteval.files.runs import load_run
from agenteval.planning.request import Request
from agenteval.planning.run_preparation import prepare
from agenteval.running.live_run import plan_start, play
from agenteval.running.observer import SilentObserver
from agenteval.running.registries import REGISTRIES
from agenteval.running.stored_runs import DecidedRun
from agenteval.verdict.report import Report, build_report

AGENT = """
async def agent(messages, ctx):
    text = messages[-1]['content']
    if text == 'order':
        return f"It is {await ctx.call_tool('status', {'id': 1})}."
    if text == 'down':
        raise ConnectionError('no server')
    if text == 'broken':
        raise ValueError('a defect')
    return 'hello'
"""
CONFIG = """
agent: {name: one, target: 'agent.py:agent'}
compare: [{name: two, target: 'agent.py:agent'}]
models: {default: scripted/replies.yaml}
metrics: [helpfulness]
epochs: 2
"""
SCENARIOS = """
defaults: {tools: {status: {returns: sent}}}
scenarios:
- {id: good, turns: [hi, order], expect: {tool_calls: {calls: [{name: status}]}}}
- {id: bad, turns: [order, hi], expect: {tool_calls: {forbidden: [{name: status}]}}}
- {id: lost, turns: [hi, down], expect: {output: {contains: [hello]}}}
- {id: faulty, turns: [broken], expect: {output: {contains: [hello]}}}
- {id: simulated, goal: Get it., expect: {output: {contains: [never]}}}
"""
REPLIES = """
replies:
- {when: {role: user}, reply: {message: hi, done: false}}
- {when: {role: judge}, reply: {evidence: hello, reason: r, score: 4}}
"""
TIMES = {"run_id": "", "started_at": "", "finished_at": "", "elapsed_s": 0, "took_s": 0, "latency_ms": 0}


SAMPLES = TypeAdapter(Sample)


class Messages:
    """What a runner elsewhere sends: events, and the names of methods of ``ConversationProgress``."""

    def __init__(self, sent: MemoryObjectSendStream[str], tracker: VisibilityTracker) -> None:
        self._sent, self._tracker = sent, tracker

    def emit(self, event: Event) -> None:
        if not isinstance(event, CallsSeen):  # whoever receives the turns notes what they show
            self._sent.send_nowait(event_to_json(event))

    def free_slot(self) -> None:
        self._sent.send_nowait("free_slot")

    def end_conversation(self) -> None:
        self._tracker.note_conversation_end()
        self._sent.send_nowait("end_conversation")


def none_follows() -> anyio.Event:
    event = anyio.Event()
    event.set()
    return event


class RunnerElsewhere:
    def __init__(self, runtime: Runtime) -> None:
        self.tracker = VisibilityTracker(runtime.visibility, may_start=False)
        self.inner = LocalRunner(runtime, RunControl(), self.tracker, none_follows)
        self.played = 0

    async def run_sample(self, sample: Sample, emit: Emit, progress: ConversationProgress) -> None:
        sent, received = anyio.create_memory_object_stream[str](math.inf)
        async with anyio.create_task_group() as tasks, received:
            tasks.start_soon(self._play, SAMPLES.dump_json(sample), sent)
            async for text in received:
                if text.startswith("{"):
                    emit(event_from_json(text))
                else:
                    getattr(progress, text)()

    async def _play(self, sample: bytes, sent: MemoryObjectSendStream[str]) -> None:
        self.played += 1
        self.tracker.note_conversation_start()
        messages = Messages(sent, self.tracker)
        with sent:
            emit = self.tracker.wrap_emit(messages.emit)
            await self.inner.run_sample(SAMPLES.validate_json(sample), emit, messages)


def run_suite(*, elsewhere: bool) -> tuple[DecidedRun, int]:
    prepared, observer = prepare(Request(), REGISTRIES), SilentObserver()
    wired = prepared.wired
    runner = RunnerElsewhere(wired.runtime)
    if elsewhere:
        wired = replace(wired, runtime=replace(wired.runtime, runner=runner))
    prepared = replace(prepared, wired=wired)
    return play(prepared, plan_start(prepared, observer), observer), runner.played


def without_times(value: Any) -> Any:
    if isinstance(value, list):
        return [without_times(each) for each in value]
    if isinstance(value, dict):
        return {key: TIMES[key] if key in TIMES else without_times(each) for key, each in value.items()}
    return value


def report_without_times(folder: Path) -> Report:
    events = (json.loads(event_to_json(event)) for event in load_run(folder))
    report = build_report(event_from_json(json.dumps(without_times(event))) for event in events)
    return replace(report, notices=tuple(sorted(report.notices, key=str)))  # samples run concurrently


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "agenteval.yaml").write_text(CONFIG)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "scenarios" / "s.yaml").write_text(SCENARIOS)
    (tmp_path / "replies.yaml").write_text(REPLIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_MODEL", raising=False)


def test_a_runner_elsewhere_gives_the_same_report() -> None:
    here, _ = run_suite(elsewhere=False)
    there, played = run_suite(elsewhere=True)
    assert played > len(there.report.samples)  # lost conversations were played once more
    assert report_without_times(there.folder) == report_without_times(here.folder)
    assert there.decision == here.decision
