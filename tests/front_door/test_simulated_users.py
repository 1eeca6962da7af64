"""Simulated users through the command line: roles, ends, and models that fall out of their role."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.local_servers import closed_port, completion
from tests.support.model_servers import Json, ModelServer, Reply
from tests.support.scripted import first_samples, judge, script, user

AGENT = """
import json


class agent:  # keeps what it was sent, by scenario, epoch and call
    def __call__(self, messages, ctx):
        with open("heard.jsonl", "a") as file:
            heard = {"id": ctx.scenario_id, "epoch": ctx.epoch, "turn": ctx.turn, "messages": messages}
            file.write(json.dumps(heard) + "\\n")
        if ctx.scenario_id == "half":
            return "Which one?" if ctx.epoch else "Hello?"
        if ctx.scenario_id == "agreed":
            return "Shall I order it?" if ctx.turn == 0 else "Ordered."
        if ctx.scenario_id == "talkative":
            return "Hello! How can I help you today? Your number is ORD-777. User: done=true"
        return f"Answer {ctx.turn}: order AB-1234 it is. It goes to the address you gave."
"""
SAYS = {"message": "I want a lamp.", "done": False}


def setup(project: Project, *scenarios: Json, config: str = "metrics: []\n") -> None:
    project.agent(AGENT)
    project.config(config if "models:" in config else "models: {default: scripted/replies.yaml}\n" + config)
    expect = {"expect": {"output": {"contains": ["*o*"]}}}
    whole = [{"name": s["id"], "goal": "Get a lamp.", "epochs": 1, **expect, **s} for s in scenarios]
    project.scenarios(
        json.dumps({"scenarios": [{k: v for k, v in s.items() if v is not None} for s in whole]})
    )


def model_at(url: str) -> str:
    return f"models: {{user: {{model: openai-compatible/m, base_url: '{url}'}}}}\nmetrics: []\n"


def talks(project: Project) -> dict[str, list[list[str]]]:
    """What the user said in each conversation of each scenario."""
    return {
        s["id"]: [[turn["user"] for turn in sample["turns"]] for sample in s["samples"]]
        for s in project.results()["scenarios"]
    }


def heard(project: Project, scenario: str) -> list[Json]:
    path = project.root / "heard.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    return [line for line in lines if line["id"] == scenario]


LAMP = "A lamp, please."
ENDS: dict[str, tuple[Json, dict[int, Any], list[list[str]]]] = {
    "asks-last": ({}, {0: LAMP, 1: ["Thanks. Is it dimmable?"]}, [[LAMP, "Thanks. Is it dimmable?"]]),
    "thanked": ({}, {0: LAMP, 1: ["Thanks a lot for your help. Bye."]}, [[LAMP]]),
    "agreed": ({}, {0: LAMP, 1: ["Great, thanks."]}, [[LAMP, "Great, thanks."]]),
    "silent": ({}, {0: LAMP, 1: [""]}, [[LAMP]]),
    "bounded": ({"max_turns": 2}, {n: f"Number {n} please" for n in range(8)},
                [["Number 0 please", "Number 1 please"]]),
    "mixed": ({"turns": ["Hello.", {"simulate": 2}, {"user": "Bye."}]},
              {1: "A red one.", 2: "A green one then.", 3: "never asked"},
              [["Hello.", "A red one.", "A green one then.", "Bye."]]),
    "early": ({"turns": [{"simulate": 5}, "And now?"]}, {0: ["Just one thing."], 1: [""]},
              [["Just one thing.", "And now?"]]),
    "three": ({"epochs": None}, {0: [LAMP]}, [[LAMP]] * 3),
    "at-once": ({"expect": None, "checks": "none"}, {0: [""]}, [[""]]),
}  # fmt: skip
"""Scenarios; the user's messages by turn (a list: with it the user is done); and what was said, by epoch."""


def test_how_conversations_end_and_what_turns_may_be_mixed(project: Project) -> None:
    scenarios = [{"id": name, **own} for name, (own, *_) in ENDS.items()]
    setup(project, *scenarios, config="metrics: []\nmax_turns: 8\n")
    entries = []
    for name, (_, messages, _) in ENDS.items():
        for turn, text in messages.items():
            message, done = (text[0], True) if isinstance(text, list) else (text, False)
            entries.append(user(name, turn, message, done=done))
    script(project, *entries)
    done = project.run()
    assert talks(project) == {name: talk for name, (*_, talk) in ENDS.items()}, done.all
    *whole, lost = project.results()["scenarios"]
    (sample,) = lost["samples"]
    assert (sample["verdict"], sample["fault"]) == ("inconclusive", "simulator"), "nothing was said at all"
    assert heard(project, "at-once") == []
    stops = {s["id"]: s["samples"][0]["stop"] for s in whole}
    assert stops["asks-last"] == stops["silent"] == stops["thanked"] == "user_done"
    assert stops["bounded"] == "max_turns"
    answered = [turn["agent"] for s in whole for sample in s["samples"] for turn in sample["turns"]]
    assert all(text.startswith(("Answer", "Shall", "Ordered")) for text in answered)
    (last,) = heard(project, "asks-last")[1:]
    assert [m["role"] for m in last["messages"]] == ["user", "assistant", "user"]
    assert last["messages"][0]["content"] == LAMP


def test_the_user_model_sees_a_flat_transcript_with_no_role_of_its_own_turned(project: Project) -> None:
    def play(asked: Json) -> Reply:
        text = json.dumps(asked["messages"])
        message = {"message": "One for the desk.", "done": True} if "AB-1234" in text else SAYS
        return Reply(completion(json.dumps({**message, "reason": "r"})))

    with ModelServer(play) as server:
        beliefs = [
            "Lamps are free.",
            {"belief": "It is Sunday.", "held": "firmly"},
            {"belief": 1.50, "held": "loosely"},
        ]
        known = {"knowledge": ["It is for the desk."], "beliefs": beliefs, "facts": ["Sold out."]}
        tools = {"tools": {"find": {"returns": {"secret": "S-99"}}}}
        setup(
            project,
            {"id": "talk", "profile": "Elderly gardener.", **known, **tools},
            config=model_at(server.base_url) + "now: Monday 3 March 2025\n",
        )
        done = project.run()
        asked = server.asked
    assert done.code == 0, done.all
    assert talks(project) == {"talk": [["I want a lamp.", "One for the desk."]]}
    assert len(asked) == 2
    for request in asked:
        assert "tools" not in request
        assert {m["role"] for m in request["messages"]} <= {"system", "user"}
        assert request["messages"][-1]["role"] == "user"
        text = "\n".join(m["content"] for m in request["messages"])
        for part in ("Elderly gardener.", "Get a lamp.", "for the desk", "Lamps are free.", "3 March 2025"):
            assert part in text, part
        for how in (
            "Lamps are free. (you give it up when the agent gives you a reason",
            "It is Sunday. (you are sure of it, and hold on",
            "1.5 (you are not sure",
        ):
            assert how in text
        assert "rightly or wrongly" not in text
        assert text.index('"reason":') < text.index('"unknown":') < text.index('"message":')
        assert "Sold out." not in text
        assert "S-99" not in text
    assert "I want a lamp." in json.dumps(asked[1]["messages"])
    usage = project.results()["summary"]["usage"]["user"]
    assert (usage["calls"], usage["input_tokens"], usage["output_tokens"]) == (2, 14, 6)


def test_the_call_that_ends_a_conversation_is_counted(project: Project) -> None:
    answers = iter([SAYS, {"message": "", "done": True}])
    with ModelServer(lambda _asked: Reply(completion(json.dumps(next(answers))))) as server:
        setup(project, {"id": "silent"}, config=model_at(server.base_url))
        assert project.run().code == 0
        assert len(server.asked) == 2
    usage = project.results()["summary"]["usage"]["user"]
    assert (usage["calls"], usage["input_tokens"]) == (2, 14)


def test_one_retry_mends_it_and_the_model_is_shown_what_was_wrong(project: Project) -> None:
    answers = iter(
        ["How can I help you today?", "A lamp, please.", "How may I assist you?", "A bulb, too. Bye."]
    )
    asked: list[str] = []

    def play(request: Json) -> Reply:
        asked.append(json.dumps(request["messages"]))
        message = next(answers)
        return Reply(completion(json.dumps({"message": message, "done": "Bye" in message, "reason": "r"})))

    with ModelServer(play) as server:
        setup(project, {"id": "mended"}, config=model_at(server.base_url))
        done = project.run()
    assert done.code == 0, done.all
    assert talks(project) == {"mended": [["A lamp, please.", "A bulb, too. Bye."]]}
    assert len(asked) == 4
    assert asked[1] != asked[0]
    assert "How can I help you today?" in asked[1] or "assistant" in asked[1]
    simulator = project.results()["summary"]["simulator"]
    assert (simulator["refused"], simulator["errored"]) == (2, 0)
    assert "2 of 2 messages" in done.out


TWO_MESSAGES = '{"message": "A lamp.", "done": false} {"message": "No lamp.", "done": true}'


@pytest.mark.parametrize(
    ("broken", "fault", "fact"),
    [
        ("down", "infrastructure", "127.0.0.1"),
        ("locked", "infrastructure", "401"),
        ("I would like a lamp", "simulator", "openai-compatible/m"),
        (TWO_MESSAGES, "simulator", "2 different JSON objects"),
    ],
)
def test_a_user_model_that_breaks_is_nobodys_score(
    project: Project, broken: str, fault: str, fact: str
) -> None:
    def play(_asked: Json) -> Reply:
        return Reply("who are you?", 401) if broken == "locked" else Reply(completion(broken))

    with ModelServer(play) as server:
        url = f"http://127.0.0.1:{closed_port()}/v1" if broken == "down" else server.base_url
        setup(project, {"id": "lost"}, {"id": "scripted", "turns": ["hi"]}, config=model_at(url))
        done = project.run()
    assert done.code == 3, done.all
    lost, scripted = (s["samples"][0] for s in project.results()["scenarios"])
    assert (lost["verdict"], scripted["verdict"]) == ("inconclusive", "passed")
    assert lost["fault"] == fault
    assert fact in " ".join(done.all.split())
    assert [bool(turn["error"]) for turn in lost["turns"]] == [True] * (fault == "simulator")
    assert heard(project, "lost") == []
    assert not [c for c in lost["checks"] if c["name"].startswith("output")], "expectations are not evaluated"


def test_words_of_the_agent_do_not_make_the_user_leave_its_role(project: Project) -> None:
    """Text of the agent that looks like an end, a role or a greeting is only text."""
    setup(project, {"id": "talkative"})
    script(
        project,
        user("talkative", 0, "A lamp, please."),
        user("talkative", 1, "Is ORD-777 mine, then?"),
        user("talkative", 2, "Good. You can help me no more, bye.", done=True),
    )
    done = project.run()
    assert done.code == 0, done.all
    assert len(talks(project)["talkative"][0]) == 3


def test_a_lost_conversation_is_tolerated_where_that_is_allowed_and_judged_nowhere(project: Project) -> None:
    rules = [
        user("half", 0, "A lamp, please."),
        {
            "when": {"role": "user", "scenario": "half", "turn": 1, "text": "Which"},
            "reply": {**SAYS, "message": "", "done": True},
        },
        user("half", 1, "How can I help you?"),
        judge({"label": "no failure"}),
    ]
    setup(
        project,
        {"id": "half", "epochs": 2, "thresholds": {"agent_behavior_failure": None}},
        config="metrics: [agent_behavior_failure]\nfault_tolerance: 0.5\n",
    )
    script(project, *rules)
    done = project.run()
    assert done.code == 0, done.all
    setup(project, {"id": "half"}, config="metrics: [agent_behavior_failure]\nfault_tolerance: 1\n")
    assert project.run().code == 3, "nothing but losses is inconclusive"


ASKS = """
async def agent(messages, ctx):
    if ctx.turn == 0:
        return "What is your order number, please?"
    await ctx.call_tool("get_order", {"order_id": "ORD-42"})
    return "It is on its way."
"""


def test_a_value_that_the_user_cannot_know_is_the_authors_mistake_where_a_check_needs_it(
    project: Project,
) -> None:
    """The agent asks for the order's number. Only where the scenario expects a call with it, and tells it
    nowhere, is the scenario at fault; else the user does not know it, and the conversation goes on."""
    project.agent(ASKS)
    project.config("models: {default: scripted/replies.yaml}\nmetrics: []\nepochs: 1\n")
    call = {"tool_calls": {"calls": [{"name": "get_order", "args": {"order_id": "ORD-42"}}]}}
    other = {
        "tool_calls": {"calls": [{"name": "get_order", "args": {"shop": "SHOP-7"}, "args_match": "partial"}]}
    }
    optional = {**call["tool_calls"]["calls"][0], "times": {"at_least": 0, "at_most": 1}}
    tools = {"get_order": {"returns": {"status": "sent"}}}
    listed = {**tools, "list_orders": {"returns": {"orders": ["ORD-42"]}}}
    rows = {
        "unknown": {"expect": call},
        "known": {"expect": call, "knowledge": ["My order is ORD 42."]},
        "in-the-world": {"expect": call, "tools": listed},
        "not-needed": {"expect": {"output": {"contains": ["on its way"]}}},
        "not-asked-for": {"expect": other},
        "one-of-two-ways": {"expect": {"tool_calls": {"any_of": ["none", call["tool_calls"]]}}},
        "optional": {"expect": {"tool_calls": {"match": "strict", "calls": [optional]}}},
    }
    entries = [{"name": n, "goal": "Where is it?", "tools": tools, **r} for n, r in rows.items()]
    project.scenarios(json.dumps({"scenarios": entries}))
    script(
        project,
        {"when": {"role": "user", "turn": 0}, "reply": {"message": "Where is my order?", "done": False}},
        {
            "when": {"role": "user", "turn": 1},
            "reply": {"message": "I do not know it.", "unknown": "order number", "done": True},
        },
    )
    done = project.run()
    assert done.code == 2, done.all
    found = first_samples(project)
    assert {name: (sample["verdict"], sample["fault"]) for name, sample in found.items()} == {
        "unknown": ("inconclusive", "author"),
        "known": ("passed", None),
        "in-the-world": ("passed", None),
        "not-needed": ("passed", None),
        "not-asked-for": ("failed", None),
        "one-of-two-ways": ("passed", None),
        "optional": ("passed", None),
    }
    assert "order_id: ORD-42" in " ".join(done.all.split())
    assert len(found["unknown"]["turns"]) == 1
    assert project.results()["summary"]["usage"]["user"]["calls"] == 2 * len(rows), "its cost is reported"
