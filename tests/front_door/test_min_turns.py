"""``min_turns``: the simulated user cannot end a conversation earlier."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.scripted import script, user

AGENT = """
def agent(messages, ctx):
    return "PRICE" if ctx.turn == 2 and HAS_BUG else f"Answer {ctx.turn}."
"""


def set_up(project: Project, *, has_bug: bool = False, config: str = "", **scenario: Any) -> None:
    project.agent(AGENT.replace("HAS_BUG", str(has_bug)))
    project.config(config or "models: {default: scripted/replies.yaml}\nmetrics: []\n")
    expect = {"output": {"not_contains": ["PRICE"]}}
    whole = {"id": "s", "goal": "A lamp.", "epochs": 1, "min_turns": 3, "expect": expect, **scenario}
    project.scenarios(json.dumps(whole))


def messages(project: Project) -> list[str]:
    return [turn["user"] for turn in project.sample()["turns"]]


EAGER = [
    user("s", at, text, done=True) for at, text in enumerate(("A lamp.", "Thanks, bye.", "How much?", ""))
]
"""A user that is done with each of its messages."""


@pytest.mark.parametrize("has_bug", [True, False])
def test_a_bug_in_the_third_turn_is_met_though_the_user_would_leave(project: Project, has_bug: bool) -> None:
    set_up(project, has_bug=has_bug)
    script(project, *EAGER)
    done = project.run()
    assert done.code == (1 if has_bug else 0), done.all
    assert messages(project) == ["A lamp.", "Thanks, bye.", "How much?"]
    assert project.sample()["stop"] == "user_done"
    assert failed_checks(project.sample()) == ({(None, "output.not_contains")} if has_bug else set())


def test_without_it_the_same_user_leaves_at_once(project: Project) -> None:
    set_up(project, has_bug=True, min_turns=0)
    script(project, *EAGER)
    assert project.run().code == 0
    assert messages(project) == ["A lamp."]


def test_scripted_turns_count(project: Project) -> None:
    set_up(project, turns=["Hello.", {"simulate": 4}, "Bye."])
    script(
        project,
        user("s", 1, "A lamp.", done=True),
        user("s", 2, "A red one.", done=True),
        user("s", 3, "", done=True),
    )
    assert project.run().code == 0
    assert messages(project) == ["Hello.", "A lamp.", "A red one.", "Bye."]


def test_an_empty_message_before_the_minimum_is_the_simulators_fault(project: Project) -> None:
    set_up(project)
    script(project, user("s", 0, "A lamp."), user("s", 1, "", done=True))
    done = project.run()
    assert done.code == 3, done.all
    sample = project.sample()
    assert (sample["verdict"], sample["fault"], sample["stop"]) == ("inconclusive", "simulator", "simulator")
    assert "said nothing (2 attempts)" in done.all


def test_the_model_is_not_offered_an_end_before_the_minimum(project: Project) -> None:
    def play(asked: Json) -> Reply:
        at = len(asked_for) % 4
        asked_for.append(asked)
        reply: Json = {
            "reason": "r",
            "unknown": "",
            "invented": "",
            "allowed_by": "",
            "message": f"Number {at}?",
        }
        return Reply(completion(json.dumps(reply if at < 3 else {**reply, "message": "", "done": True})))

    asked_for: list[Json] = []
    with ModelServer(play) as server:
        model = f"{{model: openai-compatible/m, base_url: '{server.base_url}'}}"
        set_up(project, config=f"models: {{user: {model}}}\nmetrics: []\n")
        done = project.run()
    assert done.code == 0, done.all
    forms = [each["response_format"]["json_schema"]["schema"]["properties"] for each in asked_for]
    assert ["done" in form for form in forms] == [False, False, False, True]
    ends = [each["messages"][-1]["content"] for each in asked_for]
    assert ["cannot end yet" in text for text in ends] == [True, True, True, False]


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        ("turns: [Hi], min_turns: 2", ("`min_turns`", "`- simulate: N`")),
        ("goal: g, max_turns: 2, min_turns: 3", ("3", "2 turns", "`max_turns`")),
        ("goal: g, min_turns: 9", ("9", "8 turns", "`max_turns`")),
        ("goal: g, turns: [a, {simulate: 2}], min_turns: 4", ("4", "3 turns", "`turns`")),
        ("goal: g, min_turns: -1", ("min_turns", "-1")),
        ("goal: g, min_turn: 1", ("min_turn", "'min_turns'")),
    ],
)
def test_a_number_that_means_nothing_is_refused(project: Project, entry: str, facts: tuple[str, ...]) -> None:
    set_up(project)
    project.scenarios(
        f"scenarios:\n- {{id: ok, goal: g, checks: none, min_turns: 8}}\n- {{id: s, checks: none, {entry}}}\n"
    )
    script(project)
    project.call("validate").refuses("scenarios/suite.yaml:3", *facts)


def test_a_default_is_for_the_simulated_users_of_its_file(project: Project) -> None:
    set_up(project)
    script(project)
    project.scenarios(
        "defaults: {min_turns: 2, checks: none}\nscenarios: [{id: a, goal: g}, {id: b, turns: [Hi]}]\n"
        "cases: [{id: c, input: Hi}]\n"
    )
    assert project.call("validate").code == 0
    project.scenarios("defaults: {min_turns: 2}\ncases: [{id: c, input: Hi}]\n")
    project.call("validate").refuses("scenarios/suite.yaml:1:12", "`min_turns`", "remove it")


def test_the_forecast_knows_the_minimum(project: Project) -> None:
    set_up(project, max_turns=5)
    script(project)
    assert "3–5 turns" in project.call("plan").out
