"""Simulated users through the command line: roles, ends, and models that fall out of their role."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.local_servers import closed_port, completion
from tests.support.model_servers import Json, ModelServer, Reply

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


def user(scenario: str, turn: int, message: str, **more: Any) -> Json:
    reply = {"message": message, "done": False, "reason": "r", **more}
    return {"when": {"role": "user", "scenario": scenario, "turn": turn}, "reply": reply}


def setup(project: Project, *scenarios: Json, config: str = "metrics: []\n") -> None:
    project.agent(AGENT)
    project.config(config if "models:" in config else "models: {default: scripted/replies.yaml}\n" + config)
    expect = {"expect": {"output": {"contains": ["*o*"]}}}
    whole = [{"name": s["id"], "goal": "Get a lamp.", "epochs": 1, **expect, **s} for s in scenarios]
    project.scenarios(
        json.dumps({"scenarios": [{k: v for k, v in s.items() if v is not None} for s in whole]})
    )


def replies(project: Project, *entries: Json) -> None:
    project.write("replies.yaml", json.dumps({"replies": list(entries)}))


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


def test_how_conversations_end_and_what_turns_may_be_mixed(project: Project) -> None:
    setup(
        project,
        {"id": "said"},
        {"id": "thanked"},
        {"id": "agreed"},
        {"id": "silent"},
        {"id": "bounded", "max_turns": 2},
        {"id": "mixed", "turns": ["Hello.", {"simulate": 2}, {"user": "Bye."}]},
        {"id": "early", "turns": [{"simulate": 5}, "And now?"]},
        {"id": "three", "epochs": None},
        {"id": "at-once", "epochs": 1, "expect": None, "checks": "none"},
        config="metrics: []\nmax_turns: 8\n",
    )
    replies(
        project,
        user("said", 0, "A lamp, please."),
        user("said", 1, "Thanks. Is it dimmable?", done=True),
        user("thanked", 0, "A lamp, please."),
        user("thanked", 1, "Thanks a lot for your help. Bye.", done=True),
        user("agreed", 0, "A lamp, please."),
        user("agreed", 1, "Great, thanks.", done=True),
        user("silent", 0, "A lamp, please."),
        user("silent", 1, "", done=True),
        *(user("bounded", turn, f"Message number {turn} please") for turn in range(8)),
        user("mixed", 1, "A red one."),
        user("mixed", 2, "A green one then."),
        user("mixed", 3, "never asked"),
        user("early", 0, "Just one thing.", done=True),
        user("early", 1, "", done=True),
        user("three", 0, "A lamp, please.", done=True),
        user("at-once", 0, "", done=True),
    )
    done = project.run()
    assert talks(project) == {
        "said": [["A lamp, please.", "Thanks. Is it dimmable?"]],
        "thanked": [["A lamp, please."]],
        "agreed": [["A lamp, please.", "Great, thanks."]],
        "silent": [["A lamp, please."]],
        "bounded": [["Message number 0 please", "Message number 1 please"]],
        "mixed": [["Hello.", "A red one.", "A green one then.", "Bye."]],
        "early": [["Just one thing.", "And now?"]],
        "three": [["A lamp, please."]] * 3,
        "at-once": [[""]],
    }, done.all
    lost = project.results()["scenarios"][-1]["samples"][0]
    assert (lost["verdict"], lost["fault"]) == ("inconclusive", "simulator"), "nothing was said at all"
    assert heard(project, "at-once") == []
    stops = {s["id"]: s["samples"][0]["stop"] for s in project.results()["scenarios"]}
    assert stops["said"] == stops["silent"] == stops["thanked"] == "user_done"
    assert stops["bounded"] == "max_turns"
    answered = [t for s in project.results()["scenarios"][:-1] for x in s["samples"] for t in x["turns"]]
    assert all(turn["agent"].startswith(("Answer", "Shall", "Ordered")) for turn in answered)
    (last,) = heard(project, "said")[1:]
    assert [m["role"] for m in last["messages"]] == ["user", "assistant", "user"]
    assert last["messages"][0]["content"] == "A lamp, please."


def test_the_user_model_sees_a_flat_transcript_with_no_role_of_its_own_turned(project: Project) -> None:
    def play(asked: Json) -> Reply:
        text = json.dumps(asked["messages"])
        message = {"message": "One for the desk.", "done": True} if "AB-1234" in text else SAYS
        return Reply(completion(json.dumps({**message, "reason": "r"})))

    with ModelServer(play) as server:
        model = f"models: {{user: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}\n"
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
            config=model + "metrics: []\nnow: Monday 3 March 2025\n",
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
        for told in ("Elderly gardener.", "Get a lamp.", "for the desk", "Lamps are free.", "3 March 2025"):
            assert told in text, told
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
    said = iter([SAYS, {"message": "", "done": True}])
    with ModelServer(lambda _asked: Reply(completion(json.dumps(next(said))))) as server:
        model = f"models: {{user: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}\n"
        setup(project, {"id": "silent"}, config=model + "metrics: []\n")
        assert project.run().code == 0
        assert len(server.asked) == 2
    usage = project.results()["summary"]["usage"]["user"]
    assert (usage["calls"], usage["input_tokens"]) == (2, 14)


BAD = {
    "assistant": "Of course! How can I help you today?",
    "echo": "Answer 0: order AB-1234 it is. It goes to the address you gave.",
    "repeats": "A lamp, please.",
    "repeats-case": "a lamp, PLEASE",
    "empty": "",
    "blank": "  \n ",
    "thinks": "<think>The user wants a lamp.</think> A red lamp.",
    "role": "User: A red lamp.",
    "assistant-role": "Assistant: Here is your lamp.",
    "meta": "As the simulated user, I should ask for a red lamp now.",
    "identifier": "My order number is ORD-98765.",
    "email": "Write to me at jane.doe77@example.org please.",
}


def test_a_user_that_is_no_user_is_asked_once_more_then_its_sample_is_lost(project: Project) -> None:
    setup(
        project,
        *({"id": name} for name in BAD),
        {"id": "good"},
        {"id": "known", "knowledge": ["I have ORD-98765."]},
    )
    opening = [user(name, 0, "A lamp, please.") for name in (*BAD, "good", "known")]
    replies(
        project,
        *opening,
        *(user(name, 1, message) for name, message in BAD.items()),
        user("good", 1, "AB-1234? Good, bye.", done=True),
        user("known", 1, "It is ORD-98765.", done=True),
    )
    done = project.run()
    assert done.code == 3, done.all
    found = {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}
    verdicts = {name: sample["verdict"] for name, sample in found.items()}
    assert verdicts == {**dict.fromkeys(BAD, "inconclusive"), "good": "passed", "known": "passed"}
    for name in BAD:
        assert (found[name]["fault"], found[name]["stop"]) == ("simulator", "simulator"), name
        assert [line["turn"] for line in heard(project, name)] == [0, 0], "the bad message was never sent"
        assert [bool(turn.get("error")) for turn in found[name]["turns"]] == [False, True], name
    simulator = project.results()["summary"]["simulator"]
    assert (simulator["refused"], simulator["errored"]) == (len(BAD), len(BAD)), "a message, asked for twice"
    assert simulator["messages"] == 4 + len(BAD) * 2
    assert f"{len(BAD)} of {4 + len(BAD) * 2}" in done.out
    assert project.results()["summary"]["usage"]["user"]["calls"] == 4 + len(BAD) * 3 * 2, (
        "of both conversations"
    )


def test_a_user_that_offers_service_is_no_user(project: Project) -> None:
    """Each is what a model says that has slipped into the agent's role; one of them is enough to be red."""
    phrases = (
        "I'd be happy to help you with that. Let me know if you need anything else!",
        "Sure, I can look that up for you. One moment, please.",
        "Thank you for contacting us. Your order has been booked, and we will send you a confirmation.",
        "As an AI language model, I cannot book a lamp.",
        "Certainly! Here is a summary of your order. Would you like me to book it for you?",
    )
    setup(project, *({"id": f"s{i}", "max_turns": 2} for i in range(len(phrases))))
    replies(
        project,
        *(user(f"s{i}", 0, "A lamp, please.") for i in range(len(phrases))),
        *(user(f"s{i}", 1, phrase) for i, phrase in enumerate(phrases)),
    )
    project.run()
    passed = [s["id"] for s in project.results()["scenarios"] if s["verdict"] == "passed"]
    assert passed == []


def test_one_retry_mends_it_and_the_model_is_told_what_was_wrong(project: Project) -> None:
    said = iter(
        ["How can I help you today?", "A lamp, please.", "How may I assist you?", "A bulb, too. Bye."]
    )
    asked: list[str] = []

    def play(request: Json) -> Reply:
        asked.append(json.dumps(request["messages"]))
        message = next(said)
        return Reply(completion(json.dumps({"message": message, "done": "Bye" in message, "reason": "r"})))

    with ModelServer(play) as server:
        setup(
            project,
            {"id": "mended"},
            config=f"models: {{user: {{model: openai-compatible/m, base_url: '{server.base_url}'}}}}\n"
            "metrics: []\n",
        )
        done = project.run()
    assert done.code == 0, done.all
    assert talks(project) == {"mended": [["A lamp, please.", "A bulb, too. Bye."]]}
    assert len(asked) == 4
    assert asked[1] != asked[0]
    assert "How can I help you today?" in asked[1] or "assistant" in asked[1]
    assert (
        project.results()["summary"]["simulator"]["refused"],
        project.results()["summary"]["simulator"]["errored"],
    ) == (2, 0)
    assert "2 of 2 messages refused" in done.out


TWO_MESSAGES = '{"message": "A lamp.", "done": false} {"message": "No lamp.", "done": true}'


@pytest.mark.parametrize(
    ("broken", "fault", "words"),
    [
        ("down", "infrastructure", "network, provider"),
        ("locked", "infrastructure", "network, provider"),
        ("I would like a lamp", "simulator", "the simulated user: openai-compatible/m"),
        (TWO_MESSAGES, "simulator", "it holds 2 different JSON objects"),
    ],
)
def test_a_user_model_that_breaks_is_nobodys_score(
    project: Project, broken: str, fault: str, words: str
) -> None:
    def play(_asked: Json) -> Reply:
        return Reply("who are you?", 401) if broken == "locked" else Reply(completion(broken))

    with ModelServer(play) as server:
        url = f"http://127.0.0.1:{closed_port()}/v1" if broken == "down" else server.base_url
        config = f"models: {{user: {{model: openai-compatible/m, base_url: '{url}'}}}}\nmetrics: []\n"
        setup(project, {"id": "lost"}, {"id": "scripted", "turns": ["hi"]}, config=config)
        done = project.run()
    assert done.code == 3, done.all
    lost, scripted = (s["samples"][0] for s in project.results()["scenarios"])
    assert (lost["verdict"], scripted["verdict"]) == ("inconclusive", "passed")
    assert lost["fault"] == fault
    assert words in " ".join(done.all.split())
    assert ("network, provider" in done.all) == (fault == "infrastructure")
    assert [bool(turn["error"]) for turn in lost["turns"]] == [True] * (fault == "simulator")
    assert heard(project, "lost") == []
    assert [c for c in lost["checks"] if c["name"].startswith("output")] == [], (
        "expectations are not evaluated"
    )


def test_what_the_agent_says_does_not_make_the_user_leave_its_role(project: Project) -> None:
    """Text of the agent that looks like an end, a role or a greeting is only text."""
    setup(project, {"id": "talkative"})
    replies(
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
            "reply": {"message": "", "done": True, "reason": "r"},
        },
        user("half", 1, "How can I help you?"),
        {"when": {"role": "judge"}, "reply": {"evidence": "", "reason": "r", "label": "no failure"}},
    ]
    setup(
        project,
        {"id": "half", "epochs": 2, "thresholds": {"agent_behavior_failure": None}},
        config="metrics: [agent_behavior_failure]\nfault_tolerance: 0.5\n",
    )
    replies(project, *rules)
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


def test_what_nobody_told_the_user_is_the_authors_mistake_where_a_check_needs_it(project: Project) -> None:
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
        "untold": {"expect": call},
        "told": {"expect": call, "knowledge": ["My order is ORD 42."]},
        "in-the-world": {"expect": call, "tools": listed},
        "not-needed": {"expect": {"output": {"contains": ["on its way"]}}},
        "not-asked-for": {"expect": other},
        "one-of-two-ways": {"expect": {"tool_calls": {"any_of": ["none", call["tool_calls"]]}}},
        "optional": {"expect": {"tool_calls": {"match": "strict", "calls": [optional]}}},
    }
    project.scenarios(
        json.dumps(
            {"scenarios": [{"name": n, "goal": "Where is it?", "tools": tools, **r} for n, r in rows.items()]}
        )
    )
    replies(
        project,
        {"when": {"role": "user", "turn": 0}, "reply": {"message": "Where is my order?", "done": False}},
        {
            "when": {"role": "user", "turn": 1},
            "reply": {"message": "I do not know it.", "unknown": "order number", "done": True},
        },
    )
    done = project.run()
    assert done.code == 2, done.all
    found = {s["id"]: s["samples"][0] for s in project.results()["scenarios"]}
    assert {name: (sample["verdict"], sample["fault"]) for name, sample in found.items()} == {
        "untold": ("inconclusive", "author"),
        "told": ("passed", None),
        "in-the-world": ("passed", None),
        "not-needed": ("passed", None),
        "not-asked-for": ("failed", None),
        "one-of-two-ways": ("passed", None),
        "optional": ("passed", None),
    }
    assert "needs order_id: ORD-42" in " ".join(done.all.split())
    assert len(found["untold"]["turns"]) == 1
    assert project.results()["summary"]["usage"]["user"]["calls"] == 2 * len(rows), "what it cost is told"
