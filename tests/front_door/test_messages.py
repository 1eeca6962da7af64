"""The one table of messages: what a user reads for each kind of mistake, to be read as a whole.

The texts are in ``golden/messages.txt``. ``UPDATE_GOLDEN=1 pytest tests/front_door/test_messages.py -n 0``
writes them anew: read what changed before you keep it. Other tests assert a message's place, key and remedy,
not its wording.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.kit import Project
from tests.support.local_servers import closed_port

GOLDEN = Path(__file__).with_name("golden") / "messages.txt"
AGENT = "def agent(messages, ctx):\n    return 'It is 20 degrees.'\n"
CONFIG = "agent: {name: bot, target: 'agent.py:agent'}\nmetrics: []\n"
EXPECT = "    expect: {output: {contains: ['20']}}\n"
SUITE = f"scenarios:\n  - id: weather\n    name: weather\n    turns: [How warm is it?]\n{EXPECT}"


TALK = '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]}'


class Row(NamedTuple):
    """A project that has one mistake, and the command that meets it. A text replaces a whole file."""

    config: str = CONFIG
    suite: str = SUITE
    agent: str = AGENT
    command: str = "run"
    files: tuple[tuple[str, str], ...] = ()
    code: int = 2


def configured(text: str) -> Row:
    return Row(config=CONFIG + text)


def scenario(text: str, *, code: int = 2) -> Row:
    suite = SUITE.removesuffix(EXPECT) if "expect" in text else SUITE
    return Row(suite=f"{suite}    {text}\n", code=code)


def simulated(text: str, *files: tuple[str, str]) -> Row:
    suite = f"scenarios:\n  - id: weather\n    goal: To know how warm it is.\n    {text}\n{EXPECT}"
    return Row(config=f"{CONFIG}models: {{user: openai/x}}\n", suite=suite, files=files)


def agent(text: str, target: str = "agent.py:agent", *, code: int = 2) -> Row:
    return Row(config=CONFIG.replace("agent.py:agent", target), agent=text, code=code)


def score(text: str, *more: str, code: int = 2) -> Row:
    return Row(command=" ".join(("score", "talk.jsonl", *more)), files=(("talk.jsonl", text),), code=code)


ROWS: dict[str, Row] = {
    # ── the configuration ──
    "config: unknown key": configured("treshold: 3\n"),
    "config: wrong type": configured("epochs: many\n"),
    "config: not positive": configured("concurrency: 0\n"),
    "config: not YAML": configured("thresholds: {helpfulness: 3\n"),
    "config: a key twice": configured("metrics: []\n"),
    "config: a tab": configured("judge:\n\tcorroborate: true\n"),
    "config: unknown metric": configured("thresholds: {helpfulnes: 3}\n"),
    "config: threshold outside its scale": configured("thresholds: {helpfulness: 9}\n"),
    "config: unknown gate": configured("gates: {pass_rat: {at_least: 0.9}}\n"),
    "config: gate without a bound": configured("gates: {pass_rate: {}}\n"),
    "config: share above 1": configured("gates: {pass_rate: {at_least: 90}}\n"),
    "config: pass^k with too few epochs": Row(
        config=CONFIG + "epochs: 2\ngates: {pass_hat_k: {k: 3, at_least: 0.9}}\n", code=3
    ),
    "config: unknown reporter": configured("reporters: [jsn]\n"),
    "config: own reporter missing": configured("reporters: ['my_reports.py:Team']\n"),
    "config: own reporter without render": Row(
        config=CONFIG + "reporters: ['my_reports.py:Team']\n",
        files=(("my_reports.py", "class Team:\n    pass\n"),),
    ),
    "config: no agent": Row(config="metrics: []\n"),
    "config: agent of two kinds": Row(
        config="agent: {target: 'agent.py:agent', command: [bot]}\nmetrics: []\n"
    ),
    "config: unknown agent type": Row(config="agent: {type: htp, endpoint: 'http://x'}\nmetrics: []\n"),
    "config: no key for a model": Row(
        config=CONFIG.replace("metrics: []", "models: {default: openai/gpt-4o}")
    ),
    "config: unknown provider": Row(config=CONFIG.replace("metrics: []", "models: {default: opnai/gpt-4o}")),
    "config: model without provider": Row(config=CONFIG.replace("metrics: []", "models: {default: gpt-4o}")),
    "config: scripted model without file": Row(
        config=CONFIG.replace("metrics: []", "models: {default: scripted/replies.yaml}")
    ),
    "config: unset variable": configured("now: '${TODAY}'\n"),
    "config: unset variable's form": configured("now: '${env.TODAY}'\n"),
    "config: prompt file missing": configured("prompts: {judges/helpfulness.md: my.md}\n"),
    "config: custom metric missing": configured("custom_metrics: ['tone.py:Tone']\n"),
    "config: accepted file missing": configured("accepted: known.yaml\n"),
    "config: two agents of one name": Row(
        config=f"{CONFIG}compare: [{{name: bot, target: 'agent.py:agent'}}]\n"
    ),
    "config: missing file": Row(command="run --config other.yaml"),
    # ── scenarios ──
    "scenario: unknown key": scenario("expct: {output: {contains: [x]}}"),
    "scenario: unknown check": scenario("expect: {outputs: {contains: [x]}}"),
    "scenario: the same id twice": Row(suite=SUITE + SUITE.removeprefix("scenarios:\n")),
    "scenario: no turns and no goal": Row(suite="scenarios:\n  - id: empty\n    name: empty\n"),
    "scenario: simulated without a goal": Row(suite=SUITE.replace("[How warm is it?]", "[{simulate: 2}]")),
    "scenario: bad regular expression": scenario("expect: {output: {matches: '(20'}}"),
    "scenario: bad schema of a tool": scenario("tools: {get: {parameters: {type: objct}, returns: 1}}"),
    "scenario: two answers of a tool": scenario("tools: {get: {returns: 1, error: no}}"),
    "scenario: expected call is never seen": scenario("expect: {tool_calls: {calls: [{name: get}]}}", code=3),
    "scenario: unknown matcher": scenario(
        "expect: {tool_calls: {calls: [{name: get, args: {city: {$lik: R}}}]}}"
    ),
    "scenario: wrong match mode": scenario("expect: {tool_calls: {match: sorted, calls: [{name: get}]}}"),
    "scenario: negative limit": scenario("expect: {limits: {steps: -1}}"),
    "scenario: unknown category": scenario("category: capabilty"),
    "scenario: rows missing": scenario("rows: orders.csv"),
    "scenario: a row without the column": Row(
        suite=SUITE.replace("How warm is it?", "'Where is ${row.order}?'") + "    rows: [{id: A-7}]\n"
    ),
    "scenario: a row of a CSV file is too long": Row(
        suite=SUITE.replace("How warm is it?", "'Where is ${row.order}?'") + "    rows: orders.csv\n",
        files=(("scenarios/orders.csv", "order,day\nA-7,Mon\nA-8,Tue,extra\n"),),
    ),
    "scenario: not YAML": Row(suite="scenarios: [\n"),
    "scenario: not a mapping": Row(suite="- hello\n- world\n"),
    "scenario: empty file": Row(suite=""),
    "scenario: Python check missing": scenario("expect: {python: 'checks.py:is_warm'}"),
    "scenario: Python mock missing": scenario("tools: {get: {python: 'mocks.py:get'}}"),
    "scenario: user prompt without a simulated user": scenario("user_prompt: user.md"),
    "scenario: user prompt missing": simulated("user_prompt: user.md"),
    "scenario: user prompt without front matter": simulated(
        "user_prompt: user.md", ("scenarios/user.md", "You are a pirate.\n")
    ),
    # ── the agent ──
    "agent: file missing": agent(AGENT, "bot.py:agent"),
    "agent: name missing": agent(AGENT, "agent.py:agnt"),
    "agent: not callable": agent("agent = 3\n"),
    "agent: too many parameters": agent("def agent(messages, database, clock):\n    return 'x'\n"),
    "agent: broken module": agent("import no_such_module\n\n\ndef agent(messages):\n    return 'x'\n"),
    "agent: not Python": agent("def agent(messages:\n"),
    "agent: raises": agent("def agent(messages):\n    return 1 / 0\n", code=1),
    "agent: returns nothing": agent("def agent(messages):\n    pass\n", code=1),
    "agent: returns an object of its own": agent(
        "class Reply:\n    pass\n\n\ndef agent(messages):\n    return Reply()\n", code=1
    ),
    "agent: calls a tool that is not mocked": agent(
        "async def agent(messages, ctx):\n    return str(await ctx.call_tool('get', {}))\n"
    ),
    "agent: no server": Row(
        config="agent: {endpoint: 'http://127.0.0.1:PORT/v1/chat/completions'}\nmetrics: []\n", code=3
    ),
    "agent: command missing": Row(config="agent: {type: command, command: [no-such-program]}\nmetrics: []\n"),
    "agent: command fails": Row(
        config="agent: {type: command, command: [python, -c, 'raise SystemExit(3)']}\nmetrics: []\n", code=1
    ),
    # ── the command line ──
    "command: unknown scenario": Row(command="run -s wether", code=5),
    "command: unknown option": Row(command="run --epoch 3"),
    "command: unknown command": Row(command="rnu"),
    "command: number expected": Row(command="run --epochs three"),
    "command: unknown reporter": Row(command="run --report jsn"),
    "command: no run yet": Row(command="show"),
    "command: unknown run": Row(command="report 1c1d1c"),
    "command: nothing to rerun": Row(command="run --last-failed"),
    "command: unknown metric": Row(command="show-prompts --metric helpfulnes"),
    "command: no baseline": Row(command="run --baseline main.json"),
    "command: tag of no scenario": Row(command="run --tag slow", code=5),
    # ── logs ──
    "score: file missing": Row(command="score nowhere.jsonl"),
    "score: empty": score("", code=5),
    "score: not JSON": score("hello\n"),
    "score: a broken line": score(f"{TALK}\n{TALK[:40]}\n", code=3),
    "score: no messages": score('{"question": "Hi"}\n'),
    "score: no JSON object": score("[1, 2]\n"),
    "score: no answer": score('{"messages": [{"role": "user", "content": "Hi"}]}\n'),
}


def message_of(row: Row, project: Project) -> str:
    project.write("agenteval.yaml", row.config.replace("PORT", str(closed_port())))
    project.agent(row.agent)
    project.scenarios(row.suite)
    for name, text in row.files:
        project.write(name, text)
    done = project.call(*row.command.split())
    assert done.code == row.code, done.all
    text = (
        done.err
        if done.err.startswith(("agenteval:", "Usage:"))
        else re.sub(r"(?s)^.*?(?=── |What goes wrong)", "", done.out)
    )
    return "\n".join(line.rstrip() for line in anonymous(text, project).splitlines()).strip("\n")


def anonymous(text: str, project: Project) -> str:
    """Without what differs between two runs: folders, ids, times, ports and versions."""
    for pattern, name in (
        (re.escape(str(project.root)), "/project"),
        (r"\b20\d{6}-\d{6}-[0-9a-f]{6}\b", "RUN"),
        (r"(?<=--failed-in )[0-9a-f]{6}\b", "RUN"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\b\d+(?:[.,]\d+)? m?s\b", "TIME"),
        (r"(?<![\w:.])\d+:\d\d\b", "TIME"),
        (r"agenteval \d[\w.]*", "agenteval VERSION"),
    ):
        text = re.sub(pattern, name, text)
    return text


def golden() -> Iterator[tuple[str, str]]:
    for part in re.split(r"^## ", GOLDEN.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = part.partition("\n")
        yield name, text.partition("\n")[2].strip("\n")


@pytest.mark.skipif("UPDATE_GOLDEN" in os.environ, reason="they are written anew")
@pytest.mark.parametrize("name", ROWS)
def test_a_message_reads_as_it_was_approved(name: str, project: Project) -> None:
    assert message_of(ROWS[name], project) == dict(golden())[name]


def test_the_table_has_these_rows_and_no_others(tmp_path: Path) -> None:
    if "UPDATE_GOLDEN" in os.environ:
        parts = []
        for number, (name, row) in enumerate(ROWS.items()):
            root = tmp_path / str(number)
            root.mkdir()
            text = message_of(row, Project(root))
            parts.append(f"## {name}\n$ agenteval {row.command}  # exit {row.code}\n{text}\n")
        GOLDEN.write_text("\n".join(parts), encoding="utf-8")
    assert [name for name, _ in golden()] == list(ROWS)
