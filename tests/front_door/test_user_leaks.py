"""A simulated user that says what the agent is to find out is the simulator's fault, at that turn."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.conversation.user_faults import find_leaked_text
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Step, Trajectory, Turn
from tests.support.kit import Project

# It repeats whatever it is told, and looks nothing up.
AGENT = """
def agent(messages, ctx):
    said = messages[-1]["content"]
    return "Your booking is BK-001, at 217.50." if "tell" in said else f"You said: {said} Shall I go on?"
"""
CODE = {"output": {"contains": ["BK-001"]}}
PRICE = {"output": {"contains": ["217.50"]}}
CALL = {"tool_calls": {"match": "contains", "calls": [{"name": "find", "args": {"slot": "slot_12"}}]}}


def says(scenario: str, *messages: str) -> list[Any]:
    last = len(messages) - 1
    return [
        {
            "when": {"role": "user", "scenario": scenario, "turn": turn},
            "reply": {"message": message, "done": turn == last, "reason": ""},
        }
        for turn, message in enumerate(messages)
    ]


LEAKS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "code": ({"expect": CODE}, ("Hi there.", "Is it booking BK-001, then?")),
    "price": ({"expect": PRICE}, ("Hi there.", "Is it 217.50, then?")),
    "argument": ({"expect": CALL, "tools": {"find": {"returns": 1}}}, ("Hi there.", "Take slot_12, please.")),
    "scripted-later": (
        {"turns": [{"simulate": 2}, {"user": "Thanks.", "expect": PRICE}]},
        ("Hi there.", "Is it 217.50, then?"),
    ),
}
TOLD: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "by-the-agent": ({"expect": PRICE}, ("Please tell me.", "So it is 217.50, then?")),
    "by-the-goal": ({"expect": PRICE, "goal": "Confirm the price of 217.50."}, ("Is it 217.50, then?",)),
    "by-knowledge": ({"expect": CODE, "knowledge": ["My booking is bk 001."]}, ("It is BK-001.",)),
    "by-beliefs": ({"expect": PRICE, "beliefs": ["It costs $217.50."]}, ("Is it 217.50, then?",)),
    "by-the-profile": ({"expect": PRICE, "profile": "Has 217.50 to spend."}, ("Is it 217.50, then?",)),
    "by-the-script": (
        {"expect": PRICE, "turns": ["I paid 217.50.", {"simulate": 1}]},
        ("unused", "Was it 217.50?"),
    ),
    "scripted": ({"expect": PRICE, "turns": ["I paid 217.50."]}, ()),
    "words": ({"expect": {"output": {"contains": ["go on"]}}}, ("Please go on.",)),
    "another-number": (
        {
            "expect": {
                "output": {"contains": ["say"]},
                "tool_calls": {"forbidden": [{"name": "find", "args": {"slot": "slot_12"}}]},
            }
        },
        ("I say 1217.50.",),
    ),
}


def test_a_user_that_gives_the_answer_away_is_no_user(project: Project) -> None:
    project.agent(AGENT)
    project.config(
        "agent: {name: bot, target: 'agent.py:agent', calls: all}\n"
        "models: {default: scripted/replies.yaml}\nmetrics: []\nepochs: 1\nunmocked_tools: empty\n",
        target="",
    )
    entries, replies = [], []
    for kind, rows in (("leak", LEAKS), ("told", TOLD)):
        for name, (more, messages) in rows.items():
            entries.append({"id": f"{kind}-{name}", "name": name, "goal": "Find out.", **more})
            replies += says(f"{kind}-{name}", *messages)
    project.write("replies.yaml", json.dumps({"replies": replies}))
    project.scenarios(json.dumps({"scenarios": entries}))
    done = project.run()
    assert done.code == 3, done.all
    for scenario in project.results()["scenarios"]:
        [sample] = scenario["samples"]
        if scenario["id"].startswith("told"):
            assert sample["verdict"] == "passed", (scenario["id"], done.out)
            continue
        assert (sample["verdict"], sample["fault"]) == ("inconclusive", "simulator"), scenario["id"]
        assert "gave away" in sample["reason"] or "could not know" in sample["reason"]
        assert len([turn for turn in sample["turns"] if "error" not in turn]) == 1, (
            "the second turn is at fault"
        )
        assert sample["turns"][-1]["user"] == LEAKS[scenario["id"].removeprefix("leak-")][1][-1]


def conversation(*said: tuple[str, str]) -> Trajectory:
    return Trajectory(turns=tuple(Turn(user=u, steps=(Step(text=a),)) for u, a in said))


def scenario(needle: str, **more: Any) -> Scenario:
    return Scenario.model_validate(
        {"id": "s", "name": "s", "goal": "Go.", "expect": {"output": {"contains": [needle]}}, **more}
    )


@pytest.mark.parametrize(
    ("needle", "message", "leaks"),
    [
        ("25", "Is it 25 degrees?", True),
        ("25", "I was born in 2025.", False),
        ("$1250", "So $1250?", True),
        ("sunny", "Is it sunny?", False),
        ("10:30", "At 10:30?", True),
    ],
)
def test_the_comparison_is_that_of_the_checks(needle: str, message: str, leaks: bool) -> None:
    assert find_leaked_text(message, scenario(needle), Trajectory()) == (needle if leaks else "")
    heard = conversation(("Hi", f"It says {needle}."))
    assert find_leaked_text(message, scenario(needle), heard) == ""
    assert find_leaked_text(message, scenario(needle), Trajectory(), now=f"today, {needle}") == ""


def test_a_case_and_what_nobody_is_to_say_are_told_apart() -> None:
    case = scenario("x", case={"expected_output_contains": ["BK-77"]})
    assert find_leaked_text("BK-77?", case, Trajectory()) == "BK-77"
    forbidden = scenario("x", expect={"output": {"not_contains": ["BK-77"]}})
    assert find_leaked_text("BK-77?", forbidden, Trajectory()) == ""
    hidden = scenario("BK-77", facts=["The booking is BK-77."])
    assert find_leaked_text("BK-77?", hidden, Trajectory()) == "BK-77", "facts are the judge's alone"


@given(st.text(max_size=30), st.from_regex(r"[A-Z]{2}-\d{2,4}", fullmatch=True))
def test_what_was_told_is_never_a_leak(around: str, needle: str) -> None:
    told = scenario(needle, goal=f"Ask for {needle}.")
    assert find_leaked_text(f"{around} {needle} {around}", told, Trajectory()) == ""
