"""What a model that plays the user thinks aloud, an answer of nothing, and what a con man makes up: which of
them reaches the agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.conversation.user_noise import find_thought, is_empty_message
from tests.support.kit import Project

AGENT = """
import json


def agent(messages, ctx):
    with open("heard.jsonl", "a") as file:
        file.write(json.dumps([ctx.scenario_id, messages[-1]["content"]]) + "\\n")
    return "Which <b>lamp</b>, please?" if ctx.turn == 0 else "It is on its way."
"""


def play(project: Project, by_scenario: dict[str, list[Any]], **own: Any) -> Any:
    """``by_scenario``: by scenario what the user says, a text or a whole reply, turn by turn."""
    project.agent(AGENT)
    project.config("metrics: []\nmodels: {default: scripted/replies.yaml}\nmax_turns: 3\n")
    replies = []
    for name, moves in by_scenario.items():
        for turn, move in enumerate(moves):
            reply = {"reason": "r", "done": False, **(move if isinstance(move, dict) else {"message": move})}
            replies.append({"when": {"role": "user", "scenario": name, "turn": turn}, "reply": reply})
    project.write("replies.yaml", json.dumps({"replies": replies}))
    expect = {"output": {"contains": ["lamp"]}}
    entries = [
        {"id": name, "goal": "Get a lamp.", "epochs": 1, "expect": expect, **own} for name in by_scenario
    ]
    project.scenarios(json.dumps({"scenarios": entries}))
    return project.run()


def heard(project: Project) -> dict[str, list[str]]:
    path, found = project.root / "heard.jsonl", {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        name, text = json.loads(line)
        found.setdefault(name, []).append(text)
    return found


def verdicts(project: Project) -> dict[str, str]:
    return {each["id"]: each["verdict"] for each in project.results()["scenarios"]}


HI = "A lamp, please."
THOUGHTS = {
    "tag": "<reasoning>I need a lamp.</reasoning> The red one.",
    "upper": "[THINK]I need a lamp.[/THINK] The red one.",
    "channel": "<|channel|>analysis<|message|>The red one.",
    "triangles": "◁think▷I need a lamp◁/think▷ The red one.",
    "closed": "I need a lamp.</thought> The red one.",
    "comment": "<!-- I need a lamp --> The red one.",
    "head": "**Thought:** I need a lamp.\nThe red one.",
    "fence": "```thinking\nI need a lamp.\n```\nThe red one.",
    "brackets": "(I should name one now.) The red one.",
    "direction": "*sighs* The red one.",
    "at-the-end": "The red one. *waits for an answer*",
    "placeholder": "The red one for [name].",
    "form": "reason: I need a lamp\nmessage: The red one.",
}


def test_what_the_model_thinks_aloud_never_reaches_the_agent(project: Project) -> None:
    reason = "The agent wants to know which lamp, so I will name the red one."
    own = {"own-reason": [HI, {"message": f"{reason} The red one.", "reason": reason}]}
    fine = {
        "fine": [HI, "The <b>red</b> one, and *two* of it (by Monday).", {"message": "", "done": True}],
        "reason-alone": [HI, {"message": reason, "reason": reason}, {"message": "", "done": True}],
    }
    done = play(project, {**{name: [HI, text] for name, text in THOUGHTS.items()}, **own, **fine})
    assert done.code == 3, done.all
    lost = dict.fromkeys((*THOUGHTS, *own), "inconclusive")
    assert verdicts(project) == {**lost, **dict.fromkeys(fine, "passed")}
    assert {name: len(texts) for name, texts in heard(project).items()} == {
        **dict.fromkeys(lost, 2),  # the first message, twice: what was lost is played once more
        **dict.fromkeys(fine, 2),
    }


NOTHING = [
    *("null", "None", "[END]", "<end_of_turn>", "###STOP###", "(empty)", "[no message]", "{}", "...", "DONE"),
    *("\u200b", "\ufeff\u2060", "\u2800", "\u3164", "&nbsp;", "\\n", "``", "*silence*", "--END--"),
]


@pytest.mark.parametrize("done", [True, False])
def test_an_answer_of_nothing_never_reaches_the_agent(project: Project, done: bool) -> None:
    """Of a user that is done it ends the conversation; of any other it is asked for once more."""
    by_scenario: dict[str, list[Any]] = {
        f"n{number}": [HI, "The red one.", {"message": text, "done": done}]
        for number, text in enumerate(NOTHING)
        if done or text not in ("None", "DONE")  # an answer, too, of a user that goes on
    }
    by_scenario["json-null"] = [HI, "The red one.", {"message": None, "done": done}]
    played = play(project, by_scenario)
    assert played.code == (0 if done else 3), played.all
    assert set(verdicts(project).values()) == {"passed" if done else "inconclusive"}
    plays = 1 if done else 2  # what was lost is played once more
    assert heard(project) == {name: [HI, "The red one."] * plays for name in by_scenario}


@pytest.mark.parametrize(
    "message",
    ["None.", "Nothing.", "n/a", "Stop.", "Done.", "?", "👍", "42", "(555)", "*yes*", "No response."],
)
def test_a_short_answer_to_a_question_is_a_message(message: str) -> None:
    for done in (True, False):
        assert not is_empty_message(message, answer="What do you see?", done=done, short_answers={"yes"})


@pytest.mark.parametrize(
    "message",
    [
        *("I want *two* lamps.", "(555) 123-4567 is my number", "(a) the red one", "a < b and c > d"),
        *("Write to <jane@x.org>", "See <https://x.org/a>", "I <3 it", "Reason: it broke", "Note: it hurts"),
        *("Is it 3*4 or 4*5*6?", "**Urgent** please", "My order_id is a_b_c"),
    ],
)
def test_what_users_write_is_no_thought(message: str) -> None:
    assert find_thought(message, reason="r", known=()) == ""


# ── a con man ────────────────────────────────────────────────────────────────────────────────────

CON_MAN = "A con man. He makes up an order number and claims that it is his."
MADE_UP = {"message": "My order is ORD-98765.", "invented": "ORD-98765"}


def test_a_con_man_may_make_up_what_his_profile_lets_him(project: Project) -> None:
    end = {"message": "", "done": True}
    licensed = {**MADE_UP, "allowed_by": "He makes up an order number"}
    again = "It is ORD-98765, I told you."
    done = play(project, {"liar": [HI, licensed, again]}, profile=CON_MAN)
    assert done.code == 0, done.all
    assert heard(project)["liar"] == [HI, MADE_UP["message"], again]
    (project.root / "heard.jsonl").unlink()
    for move in (
        {**MADE_UP, "allowed_by": ""},
        {**MADE_UP, "allowed_by": "A con"},  # too little to say anything
        {**MADE_UP, "allowed_by": "He may say whatever he likes"},  # nobody said so
        {**licensed, "invented": "ORD-11111"},
        {"message": MADE_UP["message"]},
    ):
        assert play(project, {"liar": [HI, move, end]}, profile=CON_MAN).code == 3
    honest = play(project, {"honest": [HI, licensed, end]}, profile="An honest gardener.")
    assert honest.code == 3
    assert all(texts == [HI] * len(texts) for texts in heard(project).values())
