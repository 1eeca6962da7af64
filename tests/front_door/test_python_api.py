"""``agenteval.run``, ``run_sync`` and ``score``: the runs of the command line, as values."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.api.runs import RunningThread
from agenteval.core.errors import AuthorError, NothingSelectedError
from tests.support.kit import Project, environment
from tests.support.patience import HANG_S

GREET = {"id": "greet", "turns": ["Hi"], "expect": {"output": {"contains": ["Hello"]}}}
REFUSE = {"id": "refuse", "tags": ["smoke"], "turns": ["No"], "expect": {"output": {"contains": ["sorry"]}}}
CODE_ONLY: dict[str, Any] = {"metrics": []}


def bot(messages: list[dict[str, Any]]) -> str:
    return f"Hello, {messages[-1]['content']}"


@pytest.fixture(autouse=True)
def in_project(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.chdir(project.root)
    for name in list(os.environ):
        if name.startswith("AGENTEVAL_"):
            monkeypatch.delenv(name)
    path = [*sys.path]
    yield project
    sys.path[:] = path


def play(*scenarios: dict[str, Any], **options: Any) -> agenteval.RunReport:
    options = {"agent": bot, "overrides": CODE_ONLY, **options}
    return agenteval.run_sync(list(scenarios) or [GREET, REFUSE], **options)


def test_a_report_has_what_the_json_report_has(capfd: pytest.CaptureFixture[str]) -> None:
    report = play()
    assert (report.verdict, report.exit_code) == ("failed", 1)
    assert [each.id for each in report.scenarios] == ["greet", "refuse"]
    assert [each.id for each in report.failed] == ["refuse"]
    assert list(report.undecided) == []
    assert report.scenario("greet").samples[0].turns[0].agent == "Hello, Hi"
    assert report.to_dict() == json.loads(report.render("json"))
    assert capfd.readouterr() == ("", "")


def test_the_run_is_one_of_the_command_line(in_project: Project) -> None:
    report = play()
    assert report.folder == in_project.root / ".agenteval" / "runs" / report.id
    assert in_project.call("show", report.id, "refuse").code == 0
    assert in_project.call("report", report.id).code == 1
    assert in_project.call("diff", report.id, play().id).code == 3  # one epoch decides nothing


def test_raise_for_verdict_names_the_reasons() -> None:
    play(GREET).raise_for_verdict()
    with pytest.raises(agenteval.VerdictError) as failed:
        play().raise_for_verdict()
    assert not isinstance(failed.value, agenteval.InconclusiveError)
    assert failed.value.exit_code == 1
    for fact in ("refuse", "sorry", "<scenarios>:2"):
        assert fact in str(failed.value)


def test_an_undecided_run_is_neither_passed_nor_failed() -> None:
    def gone(messages: Any) -> str:
        raise ConnectionError("nobody there")

    report = play(GREET, agent=gone)
    assert (report.verdict, report.exit_code) == ("inconclusive", 3)
    assert [each.id for each in report.undecided] == ["greet"]
    with pytest.raises(agenteval.InconclusiveError, match="nobody there"):
        report.raise_for_verdict()


def test_unknown_scenarios_are_not_found() -> None:
    report = play()
    with pytest.raises(KeyError, match="greet"):
        report.scenario("gret")
    with pytest.raises(KeyError, match="other"):
        report.scenario("greet", agent="other")


def test_a_notebook_shows_a_table_and_nothing_of_the_agent_is_markup() -> None:
    html = play({**REFUSE, "turns": ["<script>alert(1)</script>"]})._repr_html_()
    assert "<table>" in html
    assert "refuse" in html
    assert "<script>" not in html


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        ({"ids": ["greet"]}, ["greet"]),
        ({"ids": "greet"}, ["greet"]),
        ({"tags": ["smoke"]}, ["refuse"]),
        ({"keyword": "not smoke"}, ["greet"]),
        ({"categories": ["capability"]}, ["greet", "refuse"]),
        ({"first": 1}, ["greet"]),
        ({"epochs": 3, "ids": ["greet"]}, ["greet"]),
        ({"concurrency": None, "model": None}, ["greet", "refuse"]),
    ],
)
def test_options_are_those_of_the_command_line(options: dict[str, Any], ids: list[str]) -> None:
    report = play(**options)
    assert [each.id for each in report.scenarios] == ids
    assert len(report.scenarios[0].samples) == options.get("epochs", 1)


FILE_AGENT = "def agent(messages):\n    return 'Hello from the file'\n"


class Remembering:
    """One instance for each conversation."""

    def __init__(self) -> None:
        self.seen = 0

    def __call__(self, messages: list[Any]) -> str:
        self.seen += 1
        return f"Hello {self.seen}"


async def asynchronous(messages: list[Any]) -> str:
    await asyncio.sleep(0)
    return "Hello"


@pytest.mark.parametrize(
    ("agent", "answer"),
    [
        (bot, "Hello, Hi"),
        (asynchronous, "Hello"),
        (Remembering, "Hello 1"),
        (lambda messages: "Hello, lambda", "Hello, lambda"),
        ("agent.py:agent", "Hello from the file"),
        ({"target": "agent.py:agent"}, "Hello from the file"),
        ("named", "Hello from the file"),
        (None, "Hello from the file"),
    ],
    ids=["function", "async", "class", "lambda", "target", "mapping", "name", "configuration"],
)
def test_agents(in_project: Project, agent: Any, answer: str) -> None:
    in_project.agent(FILE_AGENT)
    in_project.write(
        "agenteval.yaml",
        "agent: {target: 'agent.py:agent'}\nagents: {named: {target: 'agent.py:agent'}}\nmetrics: []\n",
    )
    report = agenteval.run_sync([GREET], agent=agent)
    assert report.scenario("greet").samples[0].turns[0].agent == answer


def test_an_object_keeps_the_policy_of_the_configured_agent(in_project: Project) -> None:
    in_project.write("policy.md", "Never promise refunds.")
    in_project.agent(FILE_AGENT)
    in_project.config("", target="")
    in_project.write(
        "agenteval.yaml", "agent: {name: bot, target: 'agent.py:agent', policy: policy.md}\nmetrics: []\n"
    )
    report = agenteval.run_sync([GREET], agent=bot)
    assert report.scenarios[0].agent == "bot"
    assert report.results.run.config["agent"]["policy"] == "policy.md"


def test_scenarios_may_hold_functions() -> None:
    def polite(conversation: agenteval.Conversation) -> bool:
        return "Hello" in conversation.turns[-1].answer

    def look_up(args: dict[str, Any]) -> str:
        return "shipped"

    scenario = {
        "id": "checked",
        "turns": ["Hi"],
        "tools": {"look_up": {"python": look_up}},
        "expect": {"python": [polite]},
    }
    assert play(scenario).verdict == "passed"


@pytest.mark.parametrize(
    ("scenarios", "options", "facts"),
    [
        ([{"id": "x", "turms": ["Hi"]}], {}, ["<scenarios>:1", "turms", "turns"]),
        ([GREET, {**GREET}], {}, ["<scenarios>:2", "greet"]),
        ([{"id": "x", "turns": [object()]}], {}, ["<scenarios>:1", "turns.0", "object"]),
        ([GREET], {"overrides": {"judge": {"vots": 1}}}, ["overrides", "vots"]),
        ([GREET], {"epochs": 0}, ["epochs", "0"]),
        ([GREET], {"categories": ["capabilty"]}, ["capabilty", "capability"]),
        ([GREET], {"agent": "nowhere.py:agent"}, ["nowhere.py"]),
        ([GREET], {"config": "nowhere.yaml"}, ["nowhere.yaml"]),
        (["nowhere/"], {}, ["nowhere"]),
        ([3], {}, ["int"]),
    ],
    ids=["key", "twice", "object", "override", "epochs", "category", "target", "config", "path", "number"],
)
def test_mistakes_are_told_with_their_place(
    scenarios: list[Any], options: dict[str, Any], facts: list[str]
) -> None:
    with pytest.raises(AuthorError) as found:
        agenteval.run_sync(scenarios, **{"agent": bot, "overrides": CODE_ONLY, **options})
    assert all(fact in str(found.value) for fact in facts), str(found.value)


def test_an_unknown_argument_is_refused_as_python_does() -> None:
    with pytest.raises(TypeError, match="agent"):
        agenteval.run_sync([GREET], agnt=bot)  # type: ignore[call-arg]


def test_an_empty_selection_is_no_pass() -> None:
    with pytest.raises(NothingSelectedError):
        play(ids=["nobody"])


@pytest.mark.anyio
async def test_run_and_run_sync_work_in_a_running_loop() -> None:
    report = await agenteval.run([GREET], agent=bot, overrides=CODE_ONLY)
    assert report.verdict == "passed"
    assert play(GREET).verdict == "passed"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_cancelled_task_stops_the_run(in_project: Project) -> None:
    begun, release = threading.Event(), threading.Event()

    def waits(messages: Any) -> str:
        begun.set()
        release.wait(HANG_S)
        return "Hello"

    task = asyncio.create_task(agenteval.run([GREET], agent=waits, overrides=CODE_ONLY))
    await asyncio.to_thread(begun.wait, HANG_S)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    (run,) = (in_project.root / ".agenteval" / "runs").iterdir()
    in_project.call("report", run.name, "--report", "json=results.json")
    assert in_project.results()["run"]["outcome"] == "interrupted"


def test_runs_of_one_process_follow_one_another() -> None:
    playing: list[int] = []
    most: list[int] = []

    def counts(messages: Any) -> str:
        playing.append(1)
        most.append(len(playing))
        playing.pop()
        return "Hello"

    reports: list[agenteval.RunReport] = []
    threads = [
        threading.Thread(target=lambda: reports.append(play({**GREET, "epochs": 5}, agent=counts)))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.verdict for report in reports] == ["passed"] * 3
    assert len({report.id for report in reports}) == 3


INTERRUPTED = """
import os, signal, threading
import agenteval


def bot(messages):
    os.kill(os.getpid(), signal.SIGINT)
    threading.Event().wait(60)


try:
    agenteval.run_sync([{"id": "a", "turns": ["Hi"], "checks": "none"}], agent=bot, overrides={"metrics": []})
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for a process alone")
def test_ctrl_c_stops_the_run_and_is_the_callers(in_project: Project) -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(
        command, cwd=in_project.root, env=environment(), capture_output=True, text=True, timeout=HANG_S
    )
    assert done.stdout == "interrupted\n", done.stderr
    (run,) = (in_project.root / ".agenteval" / "runs").iterdir()
    in_project.call("report", run.name, "--report", "json=results.json")
    assert in_project.results()["run"]["outcome"] == "interrupted"


def test_score_scores_a_log(in_project: Project) -> None:
    log = in_project.write(
        "logs.jsonl",
        '{"id": "greet", "messages": [{"role": "user", "content": "Hi"},'
        ' {"role": "assistant", "content": "Go away"}]}\n',
    )
    assert agenteval.score(log).verdict == "reported"
    with pytest.raises(AuthorError, match="'helpfulnes'"):
        agenteval.score(log, metrics="helpfulnes")
    expected = in_project.write(
        "expected.yaml", "id: greet\nturns: [Hi]\nexpect: {output: {contains: Hello}}\n"
    )
    report = agenteval.score("logs.jsonl", scenarios=expected)
    assert (report.verdict, [each.id for each in report.failed]) == ("failed", ["greet"])
    assert in_project.call("show", report.id, "greet").code == 0


def test_a_run_is_resumed_only_where_its_object_is(in_project: Project) -> None:
    report = play(GREET, fail_fast=True)
    journal = report.folder / "events.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text(lines[0])
    done = in_project.call("run", "--resume", report.id)
    assert done.code == 2
    assert "Python" in done.err


def test_progress_is_shown_if_asked(capfd: pytest.CaptureFixture[str]) -> None:
    play(GREET, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "1" in err


def test_a_stopped_thread_ends_before_it_begins() -> None:
    running = RunningThread(lambda control: (_ for _ in ()).throw(ValueError("x")))
    assert isinstance(running.played.exception(HANG_S), ValueError)
    running.stop()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_paths_are_accepted_as_paths(in_project: Project) -> None:
    in_project.scenarios("id: greet\nturns: [Hi]\nexpect: {output: {contains: Hello}}\n")
    for path in (
        Path("scenarios"),
        "scenarios/suite.yaml",
        "scenarios/suite.yaml::greet",
        "scenarios/*.yaml",
    ):
        assert agenteval.run_sync(path, agent=bot, overrides=CODE_ONLY).verdict == "passed"


def test_an_empty_list_of_scenarios_is_not_all_of_them(in_project: Project) -> None:
    in_project.scenarios("id: greet\nturns: [Hi]\nexpect: {output: {contains: Hello}}\n")
    with pytest.raises(NothingSelectedError):
        agenteval.run_sync([], agent=bot, overrides=CODE_ONLY)
    assert agenteval.run_sync(agent=bot, overrides=CODE_ONLY).verdict == "passed"


@pytest.mark.parametrize("changed", ["agent", "helper"])
def test_changed_code_is_loaded_again(in_project: Project, changed: str) -> None:
    agent, helper = f"{changed}_agent", f"{changed}_helper"
    in_project.write(f"{helper}.py", "ANSWER = 'Hello'\n")
    in_project.write(
        f"{agent}.py", f"from {helper} import ANSWER\n\n\ndef agent(messages):\n    return ANSWER\n"
    )
    code = {"agent": "def agent(messages):\n    return 'Go away'\n", "helper": "ANSWER = 'Go away'\n"}
    assert play(GREET, agent=f"{agent}.py:agent").verdict == "passed"
    assert play(GREET, agent=f"{agent}.py:agent").verdict == "passed"
    in_project.write(f"{changed}_{changed}.py", code[changed])
    assert play(GREET, agent=f"{agent}.py:agent").verdict == "failed"


def test_an_agent_cannot_start_a_run() -> None:
    def nested(messages: Any) -> str:
        return play(GREET).verdict

    report = play(GREET, agent=nested)
    assert report.verdict == "failed"
    assert "another run" in report.scenario("greet").samples[0].reason


def test_no_command_is_shown_that_cannot_repeat_a_run(in_project: Project) -> None:
    report = play(REFUSE)
    shown = report.render() + in_project.call("show", report.id, "refuse").out
    assert "agenteval run " not in shown
    assert "run_sync" in shown


def test_a_scenario_of_a_report_has_a_short_repr() -> None:
    assert len(repr(play().failed)) < 100


def test_overrides_that_are_no_mapping_are_refused() -> None:
    with pytest.raises(AuthorError, match="overrides"):
        play(overrides="metrics=[]")


def test_code_of_the_same_length_is_loaded_again_within_a_second(in_project: Project) -> None:
    for answer in ("Hello", "Never", "Hello", "Never"):
        in_project.write("quick_agent.py", f"def agent(messages):\n    return {answer!r}\n")
        verdict = play(GREET, agent="quick_agent.py:agent").verdict
        assert verdict == ("passed" if answer == "Hello" else "failed")


def test_a_report_is_neither_true_nor_false() -> None:
    with pytest.raises(TypeError, match="raise_for_verdict"):
        assert play()


def test_an_agent_that_ends_the_process_is_no_pass(in_project: Project) -> None:
    code = (
        "import agenteval, os\n"
        "print(agenteval.run_sync([{'id': 'a', 'turns': ['Hi'], 'checks': 'none'}],"
        " agent=lambda messages: os._exit(0), overrides={'metrics': []}).verdict)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=in_project.root, env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 3
    before = os._exit
    play(GREET)
    assert os._exit is before
