"""``agenteval show``: one conversation of any run, as a person reads it."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.cut_runs import cut_after, journal
from tests.support.kit import Project

AGENT = """
import json


async def agent(messages, ctx):
    if "umbrella" in messages[-1]["content"]:
        return "You are welcome! I can tell you the weather."
    found = await ctx.call_tool("get_weather", {"city": "Shenzhen"})
    return "Shenzhen: 24 degrees." if ctx.epoch != 1 else "I do not know."
"""
SCENARIOS = """
defaults:
  tools:
    get_weather: {returns: '{"city": "Shenzhen", "more": "[1, 2]"}'}
scenarios:
  - id: fine
    turns: [Is it rainy in Shenzhen?]
    expect: {tool_calls: {calls: [{name: get_weather}]}}
  - id: two-wishes
    name: One message and a wish
    turns:
      - Is it rainy in Shenzhen?
      - user: Should I take an umbrella?
        expect: {output: {matches: 'yes|no'}}
  - id: often
    epochs: 3
    turns: [Is it rainy in Shenzhen?]
    expect: {output: {contains: ["24"]}}
"""


@pytest.fixture
def ran(project: Project) -> Project:
    """``fine`` passed, ``two-wishes`` failed in its second turn, ``often`` in its second epoch."""
    project.agent(AGENT)
    project.config()
    project.scenarios(SCENARIOS)
    assert project.call("run").code == 1
    return project


def show(project: Project, *words: str) -> str:
    done = project.call("show", *words)
    assert done.code == 0, done.all
    assert done.err == ""
    return re.sub(r"\d{8}-\d{6}-[0-9a-f]{6}", "RUN", re.sub(r"\b[\d.,]+ m?s\b", "TIME", done.out))


def heads(text: str) -> list[str]:
    return re.findall(r"^(\S+@\d+)  ([A-Z ]+?)  ", text, re.MULTILINE)


def in_order(text: str, *parts: str) -> bool:
    """Whether the text has these parts, one after the other."""
    at = 0
    for part in parts:
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return True


def test_a_failure_is_read_from_top_to_bottom(ran: Project) -> None:
    text = show(ran, "two-wishes")
    assert in_order(
        text,
        "two-wishes@1  FAILED   run RUN · ",
        "≈48 tokens",
        "\nscenarios/suite.yaml:8  One message and a wish\n",
        "1 user   Is it rainy in Shenzhen?\n",
        '  →      get_weather(city="Shenzhen")\n',
        '  ←      {"city": "Shenzhen", "more": [1, 2]}\n',
        "  agent  Shenzhen: 24 degrees.\n",
        "✓ 1 check · TIME",
        "2 user   Should I take an umbrella?\n",
        "  agent  You are welcome! I can tell you the weather.\n",
        "✓ 1 check · TIME",
        "✗ output.matches  line 13  ",
        "/yes|no/",
        "  whole  ✓ 2 checks\n",
        "agenteval run scenarios/suite.yaml -s two-wishes\n",
        "agenteval show often@2\n",
    ), text


def test_what_failed_is_shown_first_and_passing_ones_too(ran: Project) -> None:
    assert heads(show(ran)) == [("two-wishes@1", "FAILED")]
    assert heads(show(ran, "fine")) == [("fine@1", "PASSED")]
    assert heads(show(ran, "often")) == [("often@2", "FAILED")]
    assert heads(show(ran, "often@3")) == [("often@3", "PASSED")]
    assert heads(show(ran, "often", "--all")) == [
        ("often@1", "PASSED"), ("often@2", "FAILED"), ("often@3", "PASSED")
    ]  # fmt: skip
    assert "epochs  1 ✓ 2 ✗ 3 ✓" in show(ran, "often@1")


def test_next_goes_from_failure_to_failure_and_ends(ran: Project) -> None:
    assert heads(show(ran, "--next")) == [("two-wishes@1", "FAILED")]
    assert heads(show(ran, "fine", "--next")) == [("two-wishes@1", "FAILED")]
    assert heads(show(ran, "two-wishes", "--next")) == [("often@2", "FAILED")]
    assert heads(show(ran, "often@1", "--next")) == [("often@2", "FAILED")]
    done = ran.call("show", "often@2", "--next")
    done.refuses("agenteval", "often@2", "agenteval show two-wishes@1")
    assert done.out == ""


def test_an_id_like_an_option_is_shown_by_every_command_that_is_proposed(project: Project) -> None:
    project.config("metrics: []")
    project.agent("def agent(messages):\n    return 'Hello.'\n")
    one = "{{id: {}, turns: [Hi], expect: {{output: {{contains: [zzz]}}}}}}"
    project.scenarios(f"scenarios: [{one.format('-x')}, {one.format('-y')}]\n")
    assert "agenteval show -- -x" in project.run().out
    assert heads(show(project, "--", "-x")) == [("-x@1", "FAILED")]
    assert "agenteval show -- -y@1" in show(project, "--", "-x")
    assert heads(show(project, "--", "-y@1")) == [("-y@1", "FAILED")]
    project.call("show", "--next", "--", "-y@1").refuses("agenteval", "agenteval show -- -x@1")


def test_a_run_is_named_as_everywhere_and_an_id_as_reports_do(ran: Project) -> None:
    first = journal(ran).parent.name
    assert ran.call("run", "-s", "fine").code == 0
    assert heads(show(ran)) == [("fine@1", "PASSED")]
    assert heads(show(ran, "previous")) == [("two-wishes@1", "FAILED")]
    for run in ("previous", first, f".agenteval/runs/{first}", f".agenteval/runs/{first}/events.jsonl"):
        assert heads(show(ran, run, "suite.yaml::often@2")) == [("often@2", "FAILED")]
    assert "agenteval show previous often@2" in show(ran, "previous", "two-wishes")


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        ("two-wishs", ("'two-wishs'", "'two-wishes'")),
        ("latest qqq", ("'qqq'", "fine, often, two-wishes")),
        ("often@4", ("'often'", "4", "1, 2, 3")),
        ("fine --agent bat", ("'bat'", "'bot'")),
        ("2020 fine", ("'2020'",)),
        ("a b c", ("3",)),
    ],
)
def test_a_name_that_is_none_is_refused_with_those_there_are(
    words: str, facts: tuple[str, ...], ran: Project
) -> None:
    done = ran.call("show", *words.split())
    done.refuses("agenteval", *facts)
    assert (done.out, done.err.count("\n")) == ("", 1)


def test_without_a_run_nothing_is_shown(project: Project) -> None:
    project.config()
    for words in ([], ["x"], ["latest", "x"]):
        project.call("show", *words).refuses("agenteval", ".agenteval/runs")


def test_a_run_that_was_cut_off_shows_what_there_is(ran: Project) -> None:
    cut_after(ran, "turn_finished", 2)
    assert heads(show(ran, "two-wishes")) == [("two-wishes@1", "CUT OFF")]
    cut_after(ran, "run_started")
    assert heads(show(ran, "often@2")) == [("often@2", "NOT RUN")]


def test_json_is_the_entry_of_the_results(ran: Project) -> None:
    ran.run("-s", "often")
    whole = ran.results()["scenarios"][0]
    entry: dict[str, Any] = json.loads(ran.call("show", "often", "--json").out)
    assert entry["scenario"] == {**whole, "samples": [whole["samples"][1]]}
    entry = json.loads(ran.call("show", "often", "--json", "--all").out)
    assert entry["scenario"] == whole


def test_of_several_agents_the_one_that_failed_or_was_asked_for(project: Project) -> None:
    project.write("agents.py", "def good(m): return 'good'\ndef bad(m): return 'bad'\n")
    project.write(
        "agenteval.yaml",
        "metrics: []\n"
        "compare: [{name: one, target: 'agents.py:good'}, {name: two, target: 'agents.py:bad'}]\n",
    )
    project.scenarios("{id: x, turns: [hello], expect: {output: {contains: [good]}}}")
    assert project.call("run").code == 1
    assert "FAILED   agent two" in show(project, "x")
    assert "PASSED   agent one" in show(project, "x", "--agent", "one")


def test_findings_and_scores_stand_at_their_turn_with_evidence(project: Project) -> None:
    project.agent("def agent(messages):\n    return 'Lazy answer.'\n")
    project.config("""
        models: {default: scripted/replies.yaml}
        metrics: [helpfulness, agent_behavior_failure]
        thresholds: {helpfulness: 3}
        fail_on_severity: high
    """)
    project.scenarios("{id: x, turns: [Help me., Again.]}")
    reply = {"evidence": "Lazy answer.", "reason": "It does not help."}
    project.write("replies.yaml", json.dumps({"replies": [
        {"when": {"metric": "helpfulness", "turn": 0}, "reply": {**reply, "score": 5}},
        {"when": {"metric": "helpfulness"}, "reply": {**reply, "score": 1}},
        {"when": {"metric": "agent_behavior_failure", "turn": 1},
         "reply": {**reply, "label": "false information"}},
        {"when": {"role": "judge"}, "reply": {"label": "no failure", **reply}},
    ]}))  # fmt: skip
    done = project.call("run")
    assert done.code == 1, done.all
    text = show(project, "x")
    first, _, second = text.partition("\n2 user")
    assert "help 5 · behav ok" in first
    assert "It does not help." not in first
    assert '✗ high: false information  (judge)  It does not help.\n           "Lazy answer."' in second
    assert '↓ help 1  It does not help.\n           "Lazy answer."' in second
    assert "scripted" in text


def write_log(project: Project, *entries: dict[str, Any]) -> None:
    """A log of conversations of one turn, each with an ``answer`` and its other keys."""
    lines = []
    for entry in entries:
        text = entry.pop("answer")
        asked = {"role": "user", "content": "Hi"}
        lines.append(json.dumps({**entry, "messages": [asked, {"role": "assistant", "content": text}]}))
    project.write("log.jsonl", "\n".join(lines) + "\n")


def test_recorded_conversations_of_score_are_shown(project: Project) -> None:
    write_log(project, {"id": "a", "answer": "Hello"}, {"id": "b", "answer": ""})
    assert project.call("score", "log.jsonl").code == 0
    assert heads(show(project)) == [("b@1", "FAILED")]
    text = show(project, "a")
    assert heads(text) == [("a@1", "PASSED")]
    assert "log.jsonl:1" in text
    assert "agent  Hello" in text
    assert "agenteval score log.jsonl -s b" in show(project, "b")


def test_conversations_of_one_scenario_have_names_of_their_own(project: Project) -> None:
    answers = ("Hello", "Hello", "Hello", "")
    write_log(project, *(
        {"id": f"conv-{n}", "task": f"task-{n // 2}", "answer": text} for n, text in enumerate(answers)
    ))  # fmt: skip
    assert project.call("score", "log.jsonl", "--scenario-from", "task").code == 0
    assert heads(show(project)) == [("task-1[conv-3]@2", "FAILED")]
    for name in ("conv-2", "task-1[conv-2]", "task-1[conv-2]@1", "task-1@1"):
        assert heads(show(project, name)) == [("task-1[conv-2]@1", "PASSED")]
    assert len(heads(show(project, "task-0", "--all"))) == 2
    assert "epochs  [conv-2]1 ✓ [conv-3]2 ✗" in show(project, "task-1")


ORDER = '{"id": "ORD-42", "items": [{"sku": "lamp", "price": 19.90}, {"sku": "chair", "price": 120.00}]}'


def test_json_is_shown_as_json_and_indented_where_it_is_long(project: Project) -> None:
    """A tool's result that is a JSON text, and an answer that is one: neither escaped, nor in one line."""
    project.agent(
        "async def agent(m, ctx):\n"
        "    order = await ctx.call_tool('get_order', {'id': 'ORD-42'})\n"
        '    return \'{"status": "found", "order": \' + order + \'}\'\n'
    )
    project.config()
    project.scenarios(json.dumps({"scenarios": [
        {"id": "a", "turns": ['{"id": "ORD-42"}'], "tools": {"get_order": {"returns": ORDER}},
         "expect": {"output": {"contains": ["ORD-43"]}}},
    ]}))  # fmt: skip
    run = project.run()
    assert run.code == 1
    shown = project.call("show", "a", env={"COLUMNS": "80"}).out
    items = ['"items": [', '{"sku": "lamp", "price": 19.90},', '{"sku": "chair", "price": 120.00}', "]"]
    stripped = [line.strip().lstrip("←").strip() for line in shown.splitlines()]
    result = ["{", '"id": "ORD-42",', *items, "}"]
    assert any(stripped[at : at + len(result)] == result for at in range(len(stripped)))
    assert '1 user   {"id": "ORD-42"}' in shown
    answer = shown.index("agent  {")
    assert shown.index('"status": "found",') > answer
    whole = project.call("report", "latest", "-v").out
    for text in (shown, run.out, whole):
        assert '\\"' not in text
    assert '←      {"id": "ORD-42", "items": [{"sku": "lamp", "price": 19.90}' in run.out


def test_an_answer_that_is_no_json_is_shown_as_it_was_written(project: Project) -> None:
    twice = '{"total": 1, "total": 2}'
    project.agent(f"def agent(m): return {twice!r}\n")
    project.config()
    project.scenarios("scenarios: [{id: a, turns: [hi], checks: none}]")
    assert project.run().code == 0
    assert f"agent  {twice}\n" in project.call("show", "a").out
