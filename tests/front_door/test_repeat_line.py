"""The ``repeat:`` line of a failure: the run's own options, and exactly its scenario."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from tests.support.kit import Done, Project

AGENT = """
def agent(messages, ctx):
    return "good"


def bad(messages, ctx):
    return "bad"


def luck(messages, ctx):
    return "bad" if ctx.seed % 2 else "good"
"""


@pytest.fixture
def shop(project: Project) -> Project:
    project.agent(AGENT)
    project.config("agents: {bad: {target: 'agent.py:bad'}, luck: {target: 'agent.py:luck'}}\n")
    return project


def scenarios(project: Project, *ids: str, **more: dict[str, Any]) -> None:
    expect = {"output": {"contains": ["good"]}}
    entries = [{"id": id, "turns": ["hi"], "expect": expect, **more.get(id, {})} for id in ids]
    project.scenarios(json.dumps({"scenarios": entries}))


def repeated(done: Done) -> list[list[str]]:
    """The commands that the report gives, as a shell would read them."""
    lines = (line.strip() for line in done.out.splitlines())
    return [shlex.split(line.removeprefix("repeat: ")) for line in lines if line.startswith("repeat: ")]


def again(project: Project, command: list[str]) -> Done:
    assert command[0] == "agenteval"
    return project.call(*command[1:], "-v", "--report", "json=results.json")


def ids(project: Project) -> list[str]:
    return [scenario["id"] for scenario in project.results()["scenarios"]]


# ── which scenarios a text selects ───────────────────────────────────────────────────────────────

PARTS = ("order", "order-status", "re-order", "Order 66", "refund")


@pytest.mark.parametrize(
    ("texts", "selected"),
    [
        (["order"], ["order"]),
        (["order-"], ["order-status"]),
        (["ORDER"], ["order", "order-status", "re-order", "Order 66"]),
        (["order", "re-"], ["order", "re-order"]),
        (["order", "status"], ["order", "order-status"]),
        (["order", "orde"], ["order", "order-status", "re-order", "Order 66"]),
        (["named"], ["re-order"]),
        (["Order 66"], ["Order 66"]),
        (["refund", "refund"], ["refund"]),
    ],
)
def test_an_exact_id_wins_over_a_part(shop: Project, texts: list[str], selected: list[str]) -> None:
    # A name that is another one's id selects nothing where that id is meant.
    scenarios(shop, *PARTS, **{"re-order": {"name": "named"}, "order-status": {"name": "refund"}})
    done = shop.run(*(word for text in texts for word in ("-s", text)))
    assert (done.code, ids(shop)) == (0, selected), done.all


ODD = (
    "two  blanks",
    " ends ",
    "it's",
    'say "hi"',
    "*",
    "a?[b]",
    "$HOME `ls`",
    "-s",
    "--agent",
    "naïve ✓",
    "x" * 500,
)


def test_whatever_an_id_is_its_command_selects_only_it(shop: Project) -> None:
    scenarios(shop, *ODD, "a", "s", "-s and more", "* and more")
    commands = repeated(shop.run("-v", "--agent", "bad"))
    assert len(commands) == 10, "so many are shown in full"
    for command in commands:
        done = again(shop, command)
        assert done.code == 1, done.all
        assert ids(shop) == [command[command.index("-s") + 1]]


# ── the options of the run ───────────────────────────────────────────────────────────────────────


def test_another_configuration_agent_and_number_of_epochs_are_options_of_it(shop: Project) -> None:
    scenarios(shop, "order", "order-status", "fine", fine={"expect": {"output": {"contains": ["bad"]}}})
    text = (shop.root / "agenteval.yaml").read_text(encoding="utf-8")
    shop.write(
        "conf/other.yaml", text.replace("agent.py", "../agent.py") + "include: ['../scenarios/*.yaml']\n"
    )
    shop.write("agenteval.yaml", "agent: {target: 'agent.py:agent'}\nmetrics: []\n")
    done = shop.run("-v", "--config=conf/other.yaml", "--agent", "bad", "--epochs", "2")
    first, second = repeated(done)
    options = ["--agent", "bad", "-c", "conf/other.yaml", "--epochs", "2"]
    assert first == ["agenteval", "run", "scenarios/suite.yaml", "-s", "order", *options]
    done = again(shop, first)
    assert (done.code, ids(shop)) == (1, ["order"]), done.all
    assert len(shop.results()["scenarios"][0]["samples"]) == 2
    assert repeated(done) == [first]
    assert second[:5] == [*first[:4], "order-status"]


def test_the_seed_is_repeated_where_it_decided(shop: Project) -> None:
    scenarios(shop, "order", "order-status")
    flags = next(
        flags
        for n in range(20)
        if shop.run("-v", *(flags := ("--seed", str(n), "--agent", "luck"))).code == 1
    )
    done = shop.run("-v", *flags)
    for command in repeated(done):
        assert command[5:] == ["--agent", "luck", *flags[:2]]
        assert again(shop, command).code == 1


def test_models_metrics_and_no_judge_are_options_of_it(shop: Project) -> None:
    replies = [
        {"when": {"metric": "agent_behavior_failure", "text": "bad"}, "reply": {"label": "unsafe action"}},
        {"when": {"role": "judge"}, "reply": {"label": "no failure"}},
        {"when": {"role": "dedup"}, "reply": {"issues": []}},
    ]
    for reply in replies[:2]:
        reply["reply"] |= {"evidence": "bad", "reason": "because"}
    shop.write("replies.yaml", json.dumps({"replies": replies}))
    shop.write("agenteval.yaml", "agent: {target: 'agent.py:bad'}\n")
    shop.scenarios("scenarios: [{id: a, turns: [hi]}, {id: ab, turns: [hi]}]\n")
    flags = ["-m", "scripted/replies.yaml", "--metric", "agent_behavior_failure"]
    done = shop.run("-v", *flags)
    first, _ = repeated(done)
    assert first[3:] == ["-s", "a", *flags]
    assert (again(shop, first).code, ids(shop)) == (1, ["a"])
    scenarios(shop, "a", "ab")
    first, _ = repeated(shop.run("-v", "--no-judge"))
    assert first[3:] == ["-s", "a", "--no-judge"]
    assert (again(shop, first).code, ids(shop)) == (1, ["a"])


def test_a_baseline_and_a_replay_are_options_of_it(shop: Project) -> None:
    scenarios(shop, "a", "ab")
    shop.run("-v", "--agent", "bad", "--record", "tape.jsonl")
    (before,) = (shop.root / ".agenteval" / "runs").iterdir()
    done = shop.run("-v", "--agent", "bad", "--baseline", "latest", "--replay", "tape.jsonl")
    first, _ = repeated(done)
    assert first[3:] == ["-s", "a", "--agent", "bad", "--baseline", before.name, "--replay", "tape.jsonl"]
    done = again(shop, first)
    assert (done.code, ids(shop)) == (1, ["a"]), done.all


def test_of_several_agents_the_one_that_failed(shop: Project) -> None:
    scenarios(shop, "a", "ab")
    agents = "{name: one}, {name: two, target: 'agent.py:bad'}"
    shop.write("agenteval.yaml", f"agent: {{target: 'agent.py:agent'}}\ncompare: [{agents}]\nmetrics: []\n")
    done = shop.run("-v")
    for command, id in zip(repeated(done), ("a", "ab"), strict=True):
        assert command[3:] == ["-s", id, "--agent", "two"]
        assert (again(shop, command).code, ids(shop)) == (1, [id])


def test_from_a_folder_below_the_configuration(shop: Project) -> None:
    scenarios(shop, "a", "ab")
    (shop.root / "below").mkdir()
    below = Project(shop.root / "below")
    first, _ = repeated(below.run("-v", "--agent", "bad"))
    assert (again(below, first).code, ids(below)) == (1, ["a"])


# ── recorded conversations ───────────────────────────────────────────────────────────────────────


def recorded(project: Project, *ids: str) -> None:
    lines = [
        {"id": id, "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": ""}]}
        for id in ids
    ]
    project.write("log.jsonl", "\n".join(map(json.dumps, lines)) + "\n")


def test_a_score_is_repeated_only_for_its_conversation(project: Project) -> None:
    recorded(project, "order", "order-status", "it's  two")
    commands = repeated(project.call("score", "-v", "log.jsonl", "--no-judge", "-s", "order", "-s", "two"))
    assert commands == [
        ["agenteval", "score", "log.jsonl", "--no-judge", "-s", id] for id in ("order", "it's  two")
    ]
    for command in commands:
        assert again(project, command).code == 0
        assert ids(project) == [command[-1]]
    project.call("score", "-v", "log.jsonl", "-s", "order-", "--report", "json=results.json")
    assert ids(project) == ["order-status"]


def test_all_epochs_of_a_scenario_are_scored_again_without_the_others(project: Project) -> None:
    recorded(project, "a", "ab")
    project.write("suite.yaml", "scenarios: [{id: a, turns: [hi], thresholds: {helpfulness: 3}}]\n")
    config = "models: {judge: scripted/replies.yaml}\nthresholds: {helpfulness: 3}\nmetrics: [helpfulness]\n"
    project.config(config)
    reply = {"when": {"role": "judge"}, "reply": {"evidence": "hi", "reason": "because", "score": 1}}
    project.write("replies.yaml", json.dumps({"replies": [reply]}))
    done = project.call("score", "-v", "log.jsonl", "-s", "a", "--scenario=ab")
    whole = next(c for c in repeated(done) if c[-1] == "a")
    assert whole.count("-s") == 1
    assert "--scenario=ab" not in whole
    again(project, whole)
    assert ids(project) == ["a"]
