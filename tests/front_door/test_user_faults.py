"""Messages of a simulated user that are the simulator's fault: what the model thinks aloud, an answer of
nothing, what it makes up, and the answer that the agent is to find out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.conversation.user_faults import find_leaked_text
from agenteval.conversation.user_noise import find_thought, is_empty_message
from agenteval.core.scenario import Scenario
from agenteval.core.trajectory import Step, Trajectory, Turn
from tests.support.kit import Done, Project
from tests.support.scripted import first_samples, script, user, verdicts

AGENT = """
import json


def agent(messages, ctx):
    text = messages[-1]["content"]
    with open("heard.jsonl", "a") as file:
        file.write(json.dumps([ctx.scenario_id, text]) + "\\n")
    if ctx.scenario_id.startswith(("leak", "known")):  # it repeats whatever it hears, and looks nothing up
        return "Your booking is BK-001, at 217.50." if "tell" in text else f"You said: {text} Shall I go on?"
    if ctx.scenario_id == "echo":
        return "Answer 0: order AB-1234 it is. It goes to the address you gave."
    return "Which <b>lamp</b>, please?" if ctx.turn == 0 else "It is on its way."
"""


def play(
    project: Project, by_scenario: dict[str, list[Any]], more: dict[str, Any] | None = None, **own: Any
) -> Done:
    """``by_scenario``: by scenario what the user says, a text or a whole reply, turn by turn; ``more``: keys
    of the scenario of that name, ``own`` those of all."""
    project.agent(AGENT)
    project.config(
        "agent: {name: bot, target: 'agent.py:agent', calls: all}\nmodels: {default: scripted/replies.yaml}\n"
        "metrics: []\nmax_turns: 3\nunmocked_tools: empty\n",
        target="",
    )
    replies = []
    for name, moves in by_scenario.items():
        for turn, move in enumerate(moves):
            reply = move if isinstance(move, dict) else {"message": move}
            replies.append(user(name, turn, **reply))
    script(project, *replies)
    whole = {"goal": "Get a lamp.", "epochs": 1, "expect": {"output": {"contains": ["lamp"]}}, **own}
    entries = [{"id": name, **whole, **(more or {}).get(name, {})} for name in by_scenario]
    project.scenarios(json.dumps({"scenarios": entries}))
    return project.run()


def heard(project: Project) -> dict[str, list[str]]:
    path, found = project.root / "heard.jsonl", {}
    for line in path.read_text("utf-8").splitlines() if path.exists() else ():
        name, text = json.loads(line)
        found.setdefault(name, []).append(text)
    return found


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


SLIPPED = {
    "assistant": "Of course! How can I help you today?",
    "echo": "Answer 0: order AB-1234 it is. It goes to the address you gave.",
    "repeats": HI,
    "repeats-case": "a lamp, PLEASE",
    "empty": "",
    "blank": "  \n ",
    "role": "User: A red lamp.",
    "assistant-role": "Assistant: Here is your lamp.",
    "meta": "As the simulated user, I should ask for a red lamp now.",
    "identifier": "My order number is ORD-98765.",
    "email": "Write to me at jane.doe77@example.org please.",
    # What a model writes that has slipped into the agent's role.
    "happy": "I'd be happy to help you with that. Let me know if you need anything else!",
    "look-up": "Sure, I can look that up for you. One moment, please.",
    "thanks": "Thank you for contacting us. Your order has been booked, and we will send you a confirmation.",
    "model": "As an AI language model, I cannot book a lamp.",
    "summary": "Certainly! Here is a summary of your order. Would you like me to book it for you?",
}


def test_what_no_user_would_write_is_asked_for_once_more_and_never_reaches_the_agent(
    project: Project,
) -> None:
    reason = "The agent wants to know which lamp, so I will name the red one."
    bad: dict[str, list[Any]] = {name: [HI, text] for name, text in {**THOUGHTS, **SLIPPED}.items()}
    bad["own-reason"] = [HI, {"message": f"{reason} The red one.", "reason": reason}]
    fine = {
        "fine": [HI, {"message": "The <b>red</b> one, and *two* of it (by Monday).", "done": True}],
        "reason-alone": [HI, {"message": reason, "reason": reason, "done": True}],
        "known": [HI, {"message": "It is ORD-98765.", "done": True}],
    }
    done = play(project, {**bad, **fine}, {"known": {"knowledge": ["I have ORD-98765."]}})
    assert done.code == 3, done.all
    samples = first_samples(project)
    ends = {name: (each["verdict"], each["fault"], each["stop"]) for name, each in samples.items()}
    lost = dict.fromkeys(bad, ("inconclusive", "simulator", "simulator"))
    assert ends == {**lost, **dict.fromkeys(fine, ("passed", None, "user_done"))}
    # Of the lost the first message alone, twice: what was lost is played once more.
    assert {n: len(t) for n, t in heard(project).items()} == dict.fromkeys((*bad, *fine), 2)
    for name in bad:
        assert heard(project)[name] == [HI, HI]
        assert [bool(turn.get("error")) for turn in samples[name]["turns"]] == [False, True], name
    simulator, messages = project.results()["summary"]["simulator"], 2 * (len(bad) + len(fine))
    assert (simulator["refused"], simulator["errored"]) == (len(bad), len(bad)), "a message, asked for twice"
    assert simulator["messages"] == messages
    assert f"{len(bad)} of {messages}" in done.out
    calls = project.results()["summary"]["usage"]["user"]["calls"]
    assert calls == 2 * len(fine) + len(bad) * 3 * 2, "of both conversations"


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


# ── what the agent is to find out ────────────────────────────────────────────────────────────────

CODE: dict[str, Any] = {"output": {"contains": ["BK-001"]}}
PRICE: dict[str, Any] = {"output": {"contains": ["217.50"]}}
CALL: dict[str, Any] = {
    "tool_calls": {"match": "contains", "calls": [{"name": "find", "args": {"slot": "slot_12"}}]}
}


LEAKS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "code": ({"expect": CODE}, ("Hi there.", "Is it booking BK-001, then?")),
    "price": ({"expect": PRICE}, ("Hi there.", "Is it 217.50, then?")),
    "argument": ({"expect": CALL, "tools": {"find": {"returns": 1}}}, ("Hi there.", "Take slot_12, please.")),
    "scripted-later": (
        {"turns": [{"simulate": 2}, {"user": "Thanks.", "expect": PRICE}]},
        ("Hi there.", "Is it 217.50, then?"),
    ),
}
KNOWN: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
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
                "tool_calls": {"forbidden": CALL["tool_calls"]["calls"]},
            }
        },
        ("I say 1217.50.",),
    ),
}


def test_a_user_that_gives_the_answer_away_is_no_user(project: Project) -> None:
    rows = {f"leak-{name}": row for name, row in LEAKS.items()}
    rows |= {f"known-{name}": row for name, row in KNOWN.items()}
    by_scenario: dict[str, list[Any]] = {}
    for name, (_, messages) in rows.items():
        *first, last = messages or ("unused",)
        by_scenario[name] = [*first, {"message": last, "done": True}]
    done = play(project, by_scenario, {name: own for name, (own, _) in rows.items()}, goal="Find out.")
    assert done.code == 3, done.all
    for scenario in project.results()["scenarios"]:
        (sample,), name = scenario["samples"], scenario["id"]
        if name.startswith("known"):
            assert sample["verdict"] == "passed", (name, done.out)
            continue
        assert (sample["verdict"], sample["fault"]) == ("inconclusive", "simulator"), name
        finished = [turn for turn in sample["turns"] if "error" not in turn]
        assert len(finished) == 1, "the second turn is at fault"
        assert sample["turns"][-1]["user"] == rows[name][1][-1]


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
    heard = Trajectory(turns=(Turn(user="Hi", steps=(Step(text=f"It says {needle}."),)),))
    assert find_leaked_text(message, scenario(needle), heard) == ""
    assert find_leaked_text(message, scenario(needle), Trajectory(), now=f"today, {needle}") == ""


def test_a_case_and_words_that_nobody_is_to_say() -> None:
    case = scenario("x", case={"expected_output_contains": ["BK-77"]})
    assert find_leaked_text("BK-77?", case, Trajectory()) == "BK-77"
    forbidden = scenario("x", expect={"output": {"not_contains": ["BK-77"]}})
    assert find_leaked_text("BK-77?", forbidden, Trajectory()) == ""
    hidden = scenario("BK-77", facts=["The booking is BK-77."])
    assert find_leaked_text("BK-77?", hidden, Trajectory()) == "BK-77", "facts are the judge's alone"


@given(st.text(max_size=30), st.from_regex(r"[A-Z]{2}-\d{2,4}", fullmatch=True))
def test_what_the_user_knows_is_never_a_leak(around: str, needle: str) -> None:
    known = scenario(needle, goal=f"Ask for {needle}.")
    assert find_leaked_text(f"{around} {needle} {around}", known, Trajectory()) == ""
