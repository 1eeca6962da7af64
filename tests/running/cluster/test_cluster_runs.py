"""Workers play the samples of a run, here in this process: the report is that of a local run, whatever
happens to the workers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.traffic.call_coordinator import Coordinator, HolderSilent, News
from agenteval.conversation.runtime import RunControl
from agenteval.core.errors import AuthorError
from agenteval.core.event import Event, SampleFinished, SampleStarted, TurnFinished
from agenteval.core.trajectory import StopReason
from agenteval.files.journal import event_from_json, event_to_json
from agenteval.files.runs import load_run
from agenteval.planning.request import Backend, Request, parse_backend
from agenteval.planning.run_preparation import PreparedRun, prepare
from agenteval.running.cluster.messages import PlayOrder, RunState
from agenteval.running.cluster.opening import make_setup, named_variables, open_backend, project_folder
from agenteval.running.cluster.runner import (
    ClusterRunner,
    CoordinatorLostError,
    WorkerHandle,
    WorkerLostError,
)
from agenteval.running.cluster.worker import Worker
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


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "agenteval.yaml").write_text(CONFIG)
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "scenarios" / "s.yaml").write_text(SCENARIOS)
    (tmp_path / "replies.yaml").write_text(REPLIES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_MODEL", raising=False)
    monkeypatch.setattr(os, "environ", dict(os.environ))
    return tmp_path


# ── workers in this process ──────────────────────────────────────────────────────────────────────


class Handle:
    """A worker in this process. ``dies`` is asked before each attempt whether the worker dies in it."""

    error = WorkerLostError("its worker died")

    def __init__(self, name: str, worker: Worker, dies: Callable[[PlayOrder], bool]) -> None:
        self.name = self.place = name
        self.attempts: list[PlayOrder] = []
        self._worker = worker
        self._dies = dies
        self._dead = anyio.Event()

    async def play(self, order: bytes) -> AsyncIterator[bytes]:
        found = PlayOrder.decode(order)
        self.attempts.append(found)
        is_last = self._dies(found)
        messages = self._worker.play(order)
        dead = asyncio.ensure_future(self._dead.wait())
        while not dead.done():
            following = asyncio.ensure_future(anext(messages, None))
            await asyncio.wait({following, dead}, return_when=asyncio.FIRST_COMPLETED)
            if is_last or dead.done():
                self.kill()
                following.cancel()
                break
            if (message := following.result()) is None:
                break
            yield message
        dead.cancel()
        if self._dead.is_set():
            raise self.error

    def update(self, state: bytes) -> None:
        self._worker.update(state)

    def cancel(self, number: int, why: str) -> None:
        self._worker.cancel(number, why)

    async def flush(self) -> bytes:
        return self._worker.flush()

    def kill(self) -> None:
        self._dead.set()


class Workers:
    """A cluster of workers in this process (``Cluster``)."""

    def __init__(
        self, prepared: PreparedRun, count: int, dies: Callable[[PlayOrder], bool] = lambda order: False
    ) -> None:
        config = prepared.suite.settings.config
        self.coordinator = Coordinator(config.concurrency, config.budget)
        self.lost: list[str] = []
        self._setup = make_setup(prepared, None)
        self._dies = dies
        self.all = [self._start(f"worker {number}") for number in range(1, count + 1)]
        self.workers: list[WorkerHandle] = list(self.all)

    def _start(self, name: str) -> Handle:
        worker = Worker(replace(self._setup, name=name), self.coordinator)
        assert worker.hello().problems == ()
        return Handle(name, worker, self._dies)

    async def start(self) -> WorkerHandle:
        self.all.append(self._start(f"worker {len(self.all) + 1}"))
        return self.all[-1]

    async def lose(self, worker: str) -> None:
        self.lost.append(worker)
        self.coordinator.lose(worker)

    async def next_news(self) -> list[News]:
        return await self.coordinator.next_news()

    async def take_news(self) -> list[News]:
        return self.coordinator.take_news()


def prepare_for_workers(**request: Any) -> PreparedRun:
    return prepare(Request(backend=Backend("ray"), **request), REGISTRIES)


def run_on(
    workers: Workers, prepared: PreparedRun, *, control: RunControl | None = None, also: Any = ()
) -> DecidedRun:
    resources = prepared.wired.resources
    assert resources.leased
    resources.leased.connect(workers.coordinator)
    runner = ClusterRunner(
        workers, lambda why: resources.stop_for_budget(why), resources.traffic.warn_role_stopped
    )
    wired = replace(prepared.wired, runtime=replace(prepared.wired.runtime, runner=runner))
    suite = replace(prepared.suite, request=replace(prepared.suite.request, backend=None))
    playable = replace(prepared, suite=suite, wired=wired)
    return play(playable, plan_start(playable, SilentObserver()), SilentObserver(), control, also)


def run_here() -> DecidedRun:
    prepared = prepare(Request(), REGISTRIES)
    return play(prepared, plan_start(prepared, SilentObserver()), SilentObserver())


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


def ends_of(run: DecidedRun, scenario: str) -> list[SampleFinished]:
    return [
        event
        for event in load_run(run.folder)
        if isinstance(event, SampleFinished) and event.key.scenario == scenario
    ]


# ── what is reported ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("count", [1, 3])
def test_a_run_on_workers_gives_the_report_of_a_local_run(count: int) -> None:
    here = run_here()
    prepared = prepare_for_workers()
    workers = Workers(prepared, count)
    there = run_on(workers, prepared)
    assert all(each.attempts for each in workers.all)  # the work is spread
    assert report_without_times(there.folder) == report_without_times(here.folder)
    assert there.decision == here.decision


def test_a_warning_is_shown_once_although_each_worker_gives_it(project: Path) -> None:
    (project / "agent.py").write_text(
        "def agent(messages):\n    return {'answer': 'hello', 'usage': 'much'}\n"
    )
    here = run_here()
    prepared = prepare_for_workers()
    there = run_on(Workers(prepared, 3), prepared)
    texts = sorted(notice.text for notice in there.report.notices)
    assert texts == sorted(notice.text for notice in here.report.notices)


# ── workers that are lost ────────────────────────────────────────────────────────────────────────


def test_what_a_lost_worker_played_is_repeated_and_nothing_is_lost_or_doubled() -> None:
    here = run_here()
    prepared, died = prepare_for_workers(), set[str]()

    def dies_once(order: PlayOrder) -> bool:
        is_first = order.key.scenario == "good" and not died
        died.update(["x"] if is_first else [])
        return is_first

    workers = Workers(prepared, 2, dies_once)
    there = run_on(workers, prepared)
    assert len(workers.lost) == 1
    assert len(workers.all) >= 3
    verdicts = [(each.scenario.id, each.agent, len(each.samples)) for each in there.report.scenarios]
    assert verdicts == [(each.scenario.id, each.agent, len(each.samples)) for each in here.report.scenarios]
    assert there.decision.exit_code == here.decision.exit_code
    finished = [event for event in load_run(there.folder) if isinstance(event, SampleFinished)]
    final = [event.key for event in finished if not event.again]
    assert len(final) == len(set(final)) == len(here.report.samples)
    again = [event for event in finished if event.again and "its worker died" in event.stop.detail]
    assert again
    numbers = [order.number for each in workers.all for order in each.attempts]
    assert len(numbers) == len(set(numbers))


def test_a_sample_that_kills_its_worker_twice_is_lost_and_takes_no_other_with_it() -> None:
    prepared = prepare_for_workers()
    workers = Workers(prepared, 2, lambda order: order.key == sample)
    sample = next(each.key for each in prepared.wired.samples if each.key.scenario == "good")
    there = run_on(workers, prepared)
    (first, second) = [end for end in ends_of(there, "good") if end.key == sample]
    assert (first.again, second.again) == (True, False)
    assert second.stop.reason is StopReason.INFRASTRUCTURE
    assert "its worker died" in second.stop.detail
    killer = [each for each in workers.all if any(order.key == sample for order in each.attempts)]
    assert len(killer) == len(workers.lost) == 2
    others = [end for each in ("bad", "simulated") for end in ends_of(there, each) if not end.again]
    assert len(others) == 8
    assert not any(end.stop.reason is StopReason.INFRASTRUCTURE for end in others)


def test_what_a_finished_turn_proves_is_not_lost_with_the_worker(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent says what it must not, once; then its worker dies. The repetition would be in order."""
    marks = project / "said"
    agent = f"""
import asyncio, os

async def agent(messages):
    if len(messages) > 1:
        await asyncio.sleep(0 if os.path.exists({str(marks) + ".dead"!r}) else 3600)
        return "Yes."
    if os.path.exists({str(marks)!r}):
        return "Yes."
    open({str(marks)!r}, "w").close()
    return "No."
"""
    (project / "agent.py").write_text(agent)
    expect = "{output: {not_contains: ['No.']}}"
    turns = f"[{{user: a, expect: {expect}}}, b]"
    scenario = "{id: proven, turns: TURNS, expect: {tool_calls: {forbidden: [{name: x}]}}}".replace(
        "TURNS", turns
    )
    (project / "scenarios" / "s.yaml").write_text(scenario)
    (project / "agenteval.yaml").write_text("agent: {name: one, target: 'agent.py:agent'}\nmetrics: []\n")
    prepared = prepare_for_workers()
    workers = Workers(prepared, 1)

    def die_in_turn_2(event: Event) -> None:
        if isinstance(event, TurnFinished):
            Path(str(marks) + ".dead").touch()
            workers.all[0].kill()

    there = run_on(workers, prepared, also=(die_in_turn_2,))
    (end,) = ends_of(there, "proven")
    assert (end.again, end.stop.reason) == (False, StopReason.INFRASTRUCTURE)
    assert there.decision.exit_code == 1


def test_a_run_without_any_worker_left_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    async def no_room(self: Workers) -> WorkerHandle:
        raise AuthorError("no core is free")

    monkeypatch.setattr(Workers, "start", no_room)
    prepared = prepare_for_workers()
    there = run_on(Workers(prepared, 1, lambda order: True), prepared)
    assert there.decision.exit_code == 3
    assert any("no core is free" in notice.text for notice in there.report.notices)
    assert all(end.stop.reason is StopReason.INFRASTRUCTURE for end in ends_of(there, "bad"))


def test_samples_of_machines_that_are_gone_are_repeated_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared, lost = prepare_for_workers(), list[PlayOrder]()

    def goes_twice(order: PlayOrder) -> bool:
        if order.key.scenario == "good" and len(lost) < 2:
            lost.append(order)
            return True
        return False

    machine = WorkerLostError("the machine is gone", is_machine=True)
    monkeypatch.setattr(Handle, "error", machine)
    workers = Workers(prepared, 2, goes_twice)
    there = run_on(workers, prepared)
    assert len(lost) == len(workers.lost) == 2
    ends = [end for end in ends_of(there, "good") if not end.again]
    assert len(ends) == 4
    assert not any(end.stop.reason is StopReason.INFRASTRUCTURE for end in ends)


def test_an_agent_that_sends_spans_to_one_port_is_refused(project: Path) -> None:
    traced = "agent: {endpoint: 'http://127.0.0.1:1/v1', observe: {how: otlp, port: 0}}\nmetrics: []\n"
    (project / "agenteval.yaml").write_text(traced)
    prepared = prepare_for_workers(paths=("scenarios/s.yaml::good",))
    with refused("sends its spans to one port"), open_backend(prepared, lambda line: None):
        pytest.fail("nothing is started")


def test_ray_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        refused(r"pip install .*agenteval-runner\[ray\]"),
        open_backend(prepare_for_workers(), lambda line: None),
    ):
        pytest.fail("nothing is started")


def test_a_silent_worker_is_ended() -> None:
    prepared = prepare_for_workers()
    workers = Workers(prepared, 2)
    workers.coordinator._news.put_nowait(HolderSilent("worker 1"))
    run_on(workers, prepared)
    assert workers.lost == ["worker 1"]


def test_a_run_whose_coordinator_is_gone_ends_and_says_so(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = "import asyncio\n\nasync def agent(messages):\n    await asyncio.sleep(3600)\n"
    (project / "agent.py").write_text(agent)

    async def gone(self: Workers) -> list[News]:
        raise CoordinatorLostError("the coordinator is gone")

    monkeypatch.setattr(Workers, "next_news", gone)
    monkeypatch.setattr(Workers, "take_news", gone)
    prepared = prepare_for_workers()
    there = run_on(Workers(prepared, 2), prepared)
    assert there.decision.exit_code == 130
    assert any(notice.text == "the coordinator is gone" for notice in there.report.notices)


def test_a_cancelled_run_ends_its_samples_and_can_be_told_why(project: Path) -> None:
    agent = "import asyncio\n\nasync def agent(messages):\n    await asyncio.sleep(3600)\n"
    (project / "agent.py").write_text(agent)
    prepared, control = prepare_for_workers(), RunControl()

    def cancel(event: Event) -> None:
        if isinstance(event, SampleStarted):
            control.cancel("deadline", "it took too long")

    there = run_on(Workers(prepared, 2), prepared, control=control, also=(cancel,))
    ends = [event for event in load_run(there.folder) if isinstance(event, SampleFinished)]
    assert ends
    assert {(end.stop.reason, end.stop.detail) for end in ends} == {
        (StopReason.INTERRUPTED, "it took too long")
    }


# ── what a worker refuses ────────────────────────────────────────────────────────────────────────


def test_a_worker_with_other_files_takes_no_part(project: Path) -> None:
    setup = replace(make_setup(prepare_for_workers(), None), name="w")
    (project / "agent.py").write_text(AGENT + "# changed\n")
    (problem,) = Worker(setup, Coordinator(1)).hello().problems
    assert "agent.py' has changed" in problem


def test_a_worker_with_another_version_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    setup = replace(make_setup(prepare_for_workers(), None), name="w")
    monkeypatch.setattr("agenteval.running.cluster.worker.__version__", "0.0.9")
    (problem,) = Worker(setup, Coordinator(1)).hello().problems
    assert problem.startswith("it has agenteval 0.0.9, the driver ")


def test_a_worker_says_what_is_missing(project: Path) -> None:
    setup = replace(make_setup(prepare_for_workers(), None), name="w")
    (project / "replies.yaml").unlink()
    assert any("replies.yaml" in problem for problem in Worker(setup, Coordinator(1)).hello().problems)


def test_a_worker_works_in_the_folder_that_was_copied_to_it(project: Path, tmp_path_factory: Any) -> None:
    prepared = prepare_for_workers(paths=("scenarios/s.yaml",))
    setup = replace(make_setup(prepared, str(project)), name="w")
    copied = tmp_path_factory.mktemp("copied")
    for name in ("agenteval.yaml", "agent.py", "replies.yaml", "scenarios/s.yaml"):
        (copied / name).parent.mkdir(exist_ok=True)
        (copied / name).write_text((project / name).read_text())
        (project / name).unlink()
    os.chdir(copied)
    assert Worker(setup, Coordinator(1)).hello().problems == ()


def test_a_worker_masks_the_secrets_that_only_it_has(project: Path) -> None:
    (project / "agent.py").write_text(
        "import os\n\ndef agent(messages):\n    return os.environ['OPENAI_API_KEY']\n"
    )
    prepared = prepare_for_workers(paths=("scenarios/s.yaml::good",))
    setup = replace(make_setup(prepared, None), name="w")
    os.environ["OPENAI_API_KEY"] = "sk-of-the-worker-alone"
    worker, sample = Worker(setup, Coordinator(1)), prepared.wired.samples[0]

    async def talk() -> bytes:
        order = PlayOrder(1, sample.key, sample.seed).encode()
        worker.update(RunState(may_learn=False, none_follows=True).encode())
        return b"".join([message async for message in worker.play(order)])

    said = anyio.run(talk)
    assert b"***" in said
    assert b"sk-of-the-worker-alone" not in said


# ── what goes to other machines ──────────────────────────────────────────────────────────────────


def test_only_variables_that_the_configuration_names_go_to_other_machines(project: Path) -> None:
    third = "agents: {three: {endpoint: 'http://${HOST:-h}/v1', headers: {x-key: '${KEY:-none}'}}}\n"
    (project / "agenteval.yaml").write_text(CONFIG + third)
    prepared = prepare(Request(), REGISTRIES)
    environ = {"HOST": "h", "KEY": "k", "PASSWORD": "p", "AGENTEVAL_SEED": "3"}
    assert named_variables(prepared.suite.settings.public, environ) == {
        "HOST": "h",
        "KEY": "k",
        "AGENTEVAL_SEED": "3",
    }


@contextmanager
def refused(message: str) -> Iterator[None]:
    with pytest.raises(AuthorError, match=message):
        yield


def test_the_folder_that_is_copied_contains_configuration_and_working_directory(project: Path) -> None:
    config = prepare(Request(), REGISTRIES).suite.settings.config
    assert project_folder(config, str(project / "scenarios")) == str(project)
    assert project_folder(config, str(project.parent)) == str(project.parent)
    with refused("unclear what to copy"):
        project_folder(config, "/usr")


@pytest.mark.parametrize(
    ("text", "backend"), [(None, None), ("ray", Backend("ray")), ("ray=auto", Backend("ray", "auto"))]
)
def test_backends_are_parsed(text: str | None, backend: Backend | None) -> None:
    assert parse_backend(text) == backend


@pytest.mark.parametrize("text", ["dask", "ray=", "ray=ray://h:1", "", "rays"])
def test_other_backends_are_refused(text: str) -> None:
    with refused("no such backend"):
        parse_backend(text)
