"""Commands through the command line: bots in other languages, bug red and fix green; nothing left of them."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.patience import eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups")

PAGE = Path(__file__).parents[2] / "docs/commands.md"
BOTS = {
    "js": ("node", "bot.js"),
    "python": (sys.executable, "bot.py"),
    "go": ("go", "run", "bot.go"),
}
SUITE = """
scenarios:
- id: orders
  turns:
  - user: Where is ORD-42?
    expect: {output: {contains: [shipped]}, tool_calls: {match: strict, calls: [{name: get_order, args: {id: ORD-42}}]}}
  - user: And ORD-7?
    expect: {output: {contains: [cannot find ORD-7]}, tool_calls: {calls: [{name: get_order, args: {id: ORD-7}}]}}
  - user: Thanks!
    expect: {output: {contains: [which order]}, tool_calls: {forbidden: [{name: get_order}]}}
  tools:
    get_order:
      parameters: {type: object, properties: {id: {type: string}}}
      sequence: [{returns: {status: shipped}}, {error: no such order}]
"""  # noqa: E501


def shown(kind: str) -> str:
    (text,) = re.findall(rf"^```{kind}\n(.*?)^```$", PAGE.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return str(text)


def config(project: Project, command: list[str], more: str = "") -> None:
    agent = f"agent: {{name: bot, command: {json.dumps(command)}, timeout_s: 30{more}}}\n"
    project.config(agent, target="")


@pytest.mark.parametrize("kind", BOTS)
def test_the_bots_of_the_page_are_green_and_red_with_a_bug(kind: str, project: Project) -> None:
    program, *arguments = BOTS[kind]
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")
    name, text = arguments[-1], shown(kind)
    config(project, [program, *arguments])
    project.scenarios(SUITE)
    project.write(name, text)
    assert project.run().code == 0
    calls = [call["args"] for turn in project.sample()["turns"] for call in turn["tool_calls"]]
    assert calls == [{"id": "ORD-42"}, {"id": "ORD-7"}]
    assert [turn["steps"] for turn in project.sample()["turns"]] == [2, 2, 1]

    bugged = text.replace("I cannot find", "I have found")
    assert bugged != text
    project.write(name, bugged)
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(1, "output.contains")}


ASKS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    last = asked["messages"][-1]
    if last["role"] == "user":
        names = [tool["function"]["name"] for tool in asked["tools"]]
        calls = [{"id": str(i), "function": {"name": name, "arguments": {"n": 1}}} for i, name in enumerate(names)]
        answer = {"tool_calls": calls, "usage": {"input_tokens": 7, "output_tokens": 2}}
    else:
        answer = {"text": "It is " + last["content"], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}
    print(json.dumps(answer), flush=True)
"""  # noqa: E501


def test_calls_that_a_command_asks_for_are_answered_and_usage_is_counted(project: Project) -> None:
    project.write("bot.py", ASKS)
    config(project, [sys.executable, "bot.py"])
    project.scenarios("""
        id: a
        turns: [x]
        expect: {tool_calls: {calls: [{name: get, args: {n: 1}}]}, output: {contains: [it is blue]}}
        tools: {get: {parameters: {type: object}, returns: blue}}
    """)
    assert project.run().code == 0
    usage = project.sample()["usage"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["estimated"]) == (16, 5, False)


RAN_ITSELF = """
import json, sys
for line in sys.stdin:
    call = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": '{"sum": 5}'}}
    print(json.dumps({"messages": [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "paid"},
        {"role": "assistant", "content": "Done."}]}), flush=True)
"""


def test_messages_are_calls_that_were_observed(project: Project) -> None:
    project.write("bot.py", RAN_ITSELF)
    config(project, [sys.executable, "bot.py"])
    project.scenarios("id: a\nturns: [x]\nexpect: {tool_calls: {forbidden: [{name: pay}]}}\n")
    assert project.run().code == 1
    (call,) = project.sample()["turns"][0]["tool_calls"]
    assert (call["name"], call["args"], call["result"], call["observed"]) == ("pay", {"sum": 5}, "paid", True)


def test_a_command_that_only_returns_text_is_not_seen(project: Project) -> None:
    project.write("bot.sh", 'while read -r line; do echo \'{"text": "Done."}\'; done\n')
    config(project, ["sh", "bot.sh"])
    project.scenarios("id: a\nturns: [x]\nexpect: {tool_calls: {forbidden: [{name: pay}]}}\n")
    done = project.run()
    assert done.code == 3
    assert "calls: all" in done.all


def test_a_program_that_ends_is_the_agents_failure_with_its_last_words(project: Project) -> None:
    project.write("bot.sh", "read -r line\necho 'fatal: no key' >&2\nexit 4\n")
    config(project, ["sh", "bot.sh"])
    project.scenarios("id: a\nturns: [x]\nchecks: none\n")
    assert project.run().code == 1
    sample = project.sample()
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("failed", "agent", "agent_error")
    error = sample["turns"][0]["error"]
    assert all(fact in error for fact in ("'sh bot.sh'", "code 4", "fatal: no key"))


MISTAKES = {  # of an agent's keys; what is named at the column
    "command: [no-such, x]": ("2:20", "'bot'", "'no-such'"),
    "command: node bot.js": ("2:20", "command"),
    "command: []": ("2:20", "command: [node, bot.js]"),
    "type: command": ("2:1", "command"),
    "command: [sh], target: 'a.py:b'": ("2", "target", "command"),
    "command: [sh], interpreter: python3": ("2", "command", "'interpreter'"),
    "target: 'a.py:b', keep: true": ("2", "keep"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_refused_at_its_place(line: str, project: Project) -> None:
    project.config(f"agent: {{name: bot, {line}}}\n", target="")
    project.scenarios("id: a\nturns: [x]\nchecks: none\n")
    place, *facts = MISTAKES[line]
    project.run().refuses("agenteval", f"agenteval.yaml:{place}:", *facts)


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if _is_alive(pid)]


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(happens: Any) -> None:
    assert eventually(happens)


HANGS = """
sh -c 'echo $$ >> pids; sleep 600 & echo $! >> pids; wait' &
echo $$ >> pids
read -r line
sleep 600
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc")
@pytest.mark.parametrize("times", [2, 3, "killed"])
def test_ctrl_c_leaves_nothing_running(times: int | str, project: Project) -> None:
    """The second ends what runs, the third the process there and then. After SIGKILL a program has only its
    closed input, and one that reads it comes to its end."""
    hangs = HANGS.replace("sleep 600\n", "read -r line\n") if times == "killed" else HANGS
    project.write(
        "bot.sh", hangs if times != "killed" else "echo $$ >> pids\n" * 3 + "read -r line\nread -r line\n"
    )
    config(project, ["sh", "bot.sh"], ", calls: all")
    project.scenarios("id: a\nturns: [x]\nchecks: none\n")
    started = project.start("run")
    pids = project.root / "pids"
    wait_until(lambda: pids.exists() and len(pids.read_text("utf-8").split()) == 3)
    numbers = [int(pid) for pid in pids.read_text("utf-8").split()]
    assert len(alive(numbers)) == 3
    if times == "killed":
        started.kill()
    else:
        for number in range(int(times)):
            started.send(signal.SIGINT)
            wait_until(lambda n=number: n or "interrupted" in started.said("err"))
        assert started.wait().code == 130
    wait_until(lambda: not alive(numbers))


def test_what_kept_processes_share_and_what_they_do_not(project: Project) -> None:
    bot = "import json, sys, os\nfor line in sys.stdin:\n"
    bot += "    print(json.dumps({'text': f'process-{os.getpid()}'}), flush=True)\n"
    project.write("bot.py", bot)
    project.scenarios("id: a\nturns: [x, y]\nchecks: none\nepochs: 3\n")

    def processes(keep: str) -> int:
        config(project, [sys.executable, "bot.py"], f", keep: {keep}")
        assert project.run("--concurrency", "1").code == 0
        (scenario,) = project.results()["scenarios"]
        return len({turn["agent"] for sample in scenario["samples"] for turn in sample["turns"]})

    assert (processes("true"), processes("false")) == (1, 3)


def test_the_environment_is_inherited_and_the_folder_is_the_configurations(project: Project) -> None:
    project.write("bot.sh", 'read -r line\necho "{\\"text\\": \\"$GREETING from $PWD\\"}"\n')
    config(project, ["sh", "bot.sh"])
    project.scenarios("id: a\nturns: [x]\nexpect: {output: {contains: [hello]}}\n")
    assert project.run(env={"GREETING": "hello"}).code == 0
    assert project.sample()["turns"][0]["agent"] == f"hello from {os.path.realpath(project.root)}"
    # A run that is continued knows its program.
    (journal,) = (project.root / ".agenteval/runs").glob("*/events.jsonl")
    with journal.open(encoding="utf-8") as events:
        assert "bot.sh" in json.loads(next(events))["sources"]
