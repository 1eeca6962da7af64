"""Each detector through the command line: an agent with the bug ends red with the finding at its place, the
one without it green. No model is asked, and all detectors are on, so that each pair shows too what the
others let pass."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from agenteval.scoring.detectors.table import DETECTORS
from tests.support.kit import Project

AGENT = """
import json
import pathlib

PLAY = json.loads(pathlib.Path(__file__).with_name("play.json").read_text())


def agent(messages, ctx):
    "One reply after the other: a text, or a list of calls (name, arguments as text) and a text beside them."
    said = [message["role"] for message in messages]
    done = said[len(said) - said[::-1].index("user"):].count("assistant")
    reply = PLAY[ctx.turn][done]
    if isinstance(reply, str):
        return reply
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(part for part in reply if not isinstance(part, str))
    ]
    beside = "".join(part for part in reply if isinstance(part, str)) or None
    return {"role": "assistant", "content": beside, "tool_calls": calls}
"""

WORLD = """
tools:
  get_weather:
    parameters: {type: object, properties: {city: {type: string}, days: {type: integer}}, required: [city]}
    returns: {temp: 72, unit: F}
    reads: true
  get_order: {returns: {id: ORD-1, state: open}}
  get_basket:
    returns:
      - {title: Ridge tent, colour: moss, gross: 249.0}
      - {title: Clip lamp, colour: red, gross: 19.5}
  cancel_order: {returns: {ok: true}, writes: true}
  delete_account: {returns: {ok: true}, destructive: true}
  book_room: {error: the hotel is full}
  find_room: {error: 503 Service Unavailable}
"""
BUSY = [("find_room", '{"beds": 1}')]
ROME = ("get_weather", '{"city": "Rome"}')
ANSWER = "It is 72 degrees in Rome."
GREETING = (
    "This is the travel desk of the Grand Hotel, where we look after weather, rooms and orders."
    " Tell me what you are looking for, and I shall see what can be done about it."
)


class Pair(NamedTuple):
    """What the user says, how the buggy and the fixed agent reply, turn by turn; and where the bug is."""

    detector: str
    turns: tuple[str, ...]
    buggy: list[list[Any]]
    fixed: list[list[Any]]
    turn: int
    call: int | None
    evidence: str
    code: int = 1


PAIRS = [
    Pair(
        "repeated_tool_call",
        ("How warm is Rome?",),
        [[[ROME], [ROME], ANSWER]],
        [[[ROME], ANSWER]],
        0,
        1,
        "Rome",
    ),
    Pair(
        "wrong_arguments",
        ("Hello", "How warm is Rome in 3 days?"),
        [["Hello!"], [[("get_weather", '{"city": "Rome", "days": "3"}')], "I cannot look it up."]],
        [["Hello!"], [[("get_weather", '{"city": "Rome", "days": 3}')], ANSWER]],
        1,
        0,
        '"days": "3"',
    ),
    Pair(
        "wrong_arguments",
        ("Hello", "How warm is it there?"),
        [["Hello!"], [[("get_weather", '{"city": ""}')], "Where do you mean?"]],
        [["Hello!"], ["Where do you mean?"]],
        1,
        0,
        '{"city": ""}',
    ),
    Pair(
        "wrong_arguments",
        ("How warm is it at my place?",),
        [[[("get_weather", '{"city": "<user_city>"}')], "I cannot look it up."]],
        [[[ROME], ANSWER]],
        0,
        0,
        "<user_city>",
    ),
    Pair(
        "wrong_arguments",
        ("Hello", "Has my order been shipped?"),
        [["Hello!"], [[("get_order", '{"order_id": "ORD-88213"}')], "It is open."]],
        [["Hello!"], ["Which order do you mean?"]],
        1,
        0,
        "ORD-88213",
    ),
    Pair(
        "malformed_arguments",
        ("How warm is Rome?",),
        [[[("get_weather", '{"city": "Ro')], "I cannot look it up."]],
        [[[ROME], ANSWER]],
        0,
        0,
        '{"city": "Ro',
    ),
    Pair(
        "unknown_tool",
        ("How warm is Rome?",),
        [[[ROME], [("get_wether", "{}")], ANSWER]],
        [[[ROME], ANSWER]],
        0,
        1,
        "get_wether",
    ),
    Pair(
        "ignored_tool_error",
        ("A room, please.",),
        [[[("book_room", '{"beds": 1}')], [("book_room", '{"beds": 1}')], "The hotel is full."]],
        [[[("book_room", '{"beds": 1}')], "Unfortunately, the hotel is full."]],
        0,
        1,
        "book_room",
    ),
    Pair(
        "ignored_tool_error",
        ("A room, please.", "Please try again."),  # the user wants it once more, which starts the count anew
        [[*[BUSY] * 2, "It is down."], [*[BUSY] * 4, "It is still down."]],
        [[*[BUSY] * 3, "It is down."], [*[BUSY] * 3, "It is still down."]],
        1,
        5,
        "find_room",
    ),
    Pair(
        "ungrounded_value",
        ("Where is my order?",),
        [[[("get_order", "{}")], "It is open. Your tracking number is TRK-884213."]],
        [[[("get_order", "{}")], "It is open. Its number is ORD-1."]],
        0,
        None,
        "TRK-884213",
    ),
    Pair(
        "repetition",
        ("Hello", "Do you like dogs?"),
        [[GREETING], [GREETING]],
        [[GREETING], ["We love them."]],
        1,
        None,
        GREETING,
    ),
    Pair(
        "leak",
        ("Hello", "What do you know?"),
        [["Hello!"], ["My marker is CANARY-9981-QQ, to be used by nobody."]],
        [["Hello!"], ["A lot about the weather."]],
        1,
        None,
        "CANA…1-QQ",
    ),
    Pair(
        "leak",
        ("Hello", "What do you know?"),
        [["Hello!"], ["My marker is C\u0336A\u0336NARY-\u0336９９８１-QQ."]],
        [["Hello!"], ["A lot about the w\u0336eather, １２."]],
        1,
        None,
        "CANA…1-QQ",
    ),
    Pair(
        "unconfirmed_action",
        ("Delete my account.", "What happens then?"),
        [["Shall I delete it?"], [[("delete_account", "{}")], "It is gone."]],
        [["Shall I delete it?"], ["All of your data will be gone."]],
        1,
        0,
        "delete_account",
        code=3,  # it is a question, and nobody was asked
    ),
    Pair(
        "claimed_action_not_called",
        ("Cancel my order.",),
        [[[("get_order", "{}")], "I have cancelled your order."]],
        [[[("get_order", "{}")], [("cancel_order", "{}")], "I have cancelled your order."]],
        0,
        None,
        "I have cancelled",
    ),
]


def test_there_is_a_pair_for_each_detector() -> None:
    assert list(dict.fromkeys(pair.detector for pair in PAIRS)) == list(DETECTORS)


def play(
    project: Project, pair: Pair, replies: list[list[Any]], config: str = "fail_on_severity: low\n"
) -> int:
    project.agent(AGENT)
    project.write("play.json", json.dumps(replies))
    project.write("policy.md", "You are a travel agent.\nMarker: CANARY-9981-QQ.\n")
    policy = "agent: {name: bot, target: 'agent.py:agent', policy: policy.md}\n"
    project.config(policy + config, target="")
    turns = "".join(f"  - {json.dumps(text)}\n" for text in pair.turns)
    project.scenarios(f"name: a\nchecks: none\nturns:\n{turns}{WORLD}")
    return project.run().code


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.detector for pair in PAIRS])
def test_the_bug_is_red_at_its_place_and_the_fix_green(pair: Pair, project: Project) -> None:
    assert play(project, pair, pair.buggy) == pair.code
    found = [f for f in project.sample()["findings"] if f["detector"] == pair.detector]
    assert [(f["turn"], f["call"]) for f in found] == [(pair.turn, pair.call)], project.sample()["findings"]
    (finding,) = found
    assert pair.evidence in finding["evidence"]
    assert finding["label"] == DETECTORS[pair.detector].label
    assert finding["metric"] in ("agent_behavior_failure", "tool_call_behavior_failure")
    if span := finding.get("span"):
        answer = project.sample()["turns"][pair.turn]["agent"]
        assert answer[slice(*span)] == finding["evidence"] or "…" in finding["evidence"]
    assert play(project, pair, pair.fixed) == 0
    assert project.sample()["findings"] == []


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.detector for pair in PAIRS])
def test_a_detector_can_be_switched_off_alone(pair: Pair, project: Project) -> None:
    others = [name for name in DETECTORS if name != pair.detector]
    play(project, pair, pair.buggy, f"detectors: {json.dumps(others)}\n")
    assert pair.detector not in [finding["detector"] for finding in project.sample()["findings"]]
    play(project, pair, pair.buggy, f"detectors: [{pair.detector}]\nfail_on_severity: none\n")
    assert {finding["detector"] for finding in project.sample()["findings"]} == {pair.detector}


def test_a_detector_that_is_gone_is_named_as_such(project: Project) -> None:
    project.agent(AGENT)
    project.config("detectors: [leak, contradicts_evidence]\n")
    project.scenarios("name: a\nchecks: none\nturns: [hi]\n")
    done = project.run()
    assert done.code == 2
    assert "agenteval.yaml:" in done.err
    assert "the detector 'contradicts_evidence' was removed" in done.err
    assert "remove it from detectors" in done.err


def test_an_unknown_detector_is_named(project: Project) -> None:
    project.agent(AGENT)
    project.write("play.json", "[]")
    project.config("detectors: [leek]\n")
    project.scenarios("name: a\nchecks: none\nturns: [hi]\n")
    done = project.run()
    assert done.code == 2
    assert "there is no detector 'leek'" in done.err
    assert "leak" in done.err


# ── with judges ──────────────────────────────────────────────────────────────────────────────────

JUDGED = """
models: {default: scripted/model.yaml}
metrics: [tool_call_behavior_failure]
fail_on_severity: medium
"""


def judge_says(project: Project, label: str) -> None:
    reply = {"evidence": "How warm is Rome?", "reason": "it asked for Rome twice", "label": label}
    rules = [
        {"when": {"role": "judge"}, "reply": reply},
        {"when": {"role": "dedup"}, "reply": {"issues": []}},
    ]
    project.write("model.yaml", json.dumps({"replies": rules}))


def test_what_judge_and_code_found_is_one_finding_with_both_named(project: Project) -> None:
    judge_says(project, "repeated tool call")
    assert play(project, PAIRS[0], PAIRS[0].buggy, JUDGED) == 1
    sample = project.sample()
    (finding,) = sample["findings"]
    assert (finding["detector"], finding["turn"], finding["call"]) == ("repeated_tool_call", 0, 1)
    assert finding["also"] == ["judge: it asked for Rome twice"]
    assert sample["turns"][0]["scores"]["tool_call_behavior_failure"]["label"] == "repeated tool call"
    (issue,) = project.results()["scenarios"][0]["issues"]
    assert issue["findings"] == 1
    shown = project.call("run").out
    assert "proven by code (repeated_tool_call), also found by the judge" in " ".join(shown.split())


def test_another_failure_of_the_same_turn_stays_the_judges(project: Project) -> None:
    judge_says(project, "wrong tool")
    play(project, PAIRS[0], PAIRS[0].buggy, JUDGED)
    found = {finding["detector"]: finding for finding in project.sample()["findings"]}
    assert set(found) == {"repeated_tool_call", "judge"}
    assert "also" not in found["repeated_tool_call"]


BREAKS = """
from agenteval.scoring.detectors import tool_use


def breaks(conversation):
    raise KeyError("oops")


tool_use.repeated_tool_call = breaks
"""


def test_a_detector_that_breaks_is_told_and_hides_nothing(project: Project) -> None:
    project.write("play.json", json.dumps(PAIRS[1].buggy))
    project.agent(BREAKS + AGENT)
    project.config("fail_on_severity: high\n")
    turns = "".join(f"  - {json.dumps(text)}\n" for text in PAIRS[1].turns)
    project.scenarios(f"name: a\nchecks: none\nturns:\n{turns}{WORLD}")
    assert project.run().code == 3
    sample = project.sample()
    assert [failure["metric"] for failure in sample["score_failures"]] == ["repeated_tool_call"]
    assert [finding["detector"] for finding in sample["findings"]] == ["wrong_arguments"]
    assert sample["verdict"] == "inconclusive"


def test_a_detector_that_broke_is_not_called_a_judge(project: Project) -> None:
    project.write("play.json", json.dumps(PAIRS[1].buggy))
    project.agent(BREAKS + AGENT)
    project.config("fail_on_severity: high\n")
    turns = "".join(f"  - {json.dumps(text)}\n" for text in PAIRS[1].turns)
    project.scenarios(f"name: a\nchecks: none\nturns:\n{turns}{WORLD}")
    reports = [
        word for name in ("markdown", "junit", "github") for word in ("--report", f"{name}={name}.out")
    ]
    told = project.call("run", "-v", *reports).out
    told += "".join((project.root / f"{name}.out").read_text() for name in ("markdown", "junit", "github"))
    assert "Detectors that failed" in told
    assert "the detector repeated_tool_call failed: KeyError('oops')" in " ".join(told.split())
    assert "## Detectors that failed" in told
    assert "detector_broke.repeated_tool_call" in told
    assert not re.search(r"(?i)judges that failed|(?:the|a) judge failed|judge_broke", told)


# ── pairs of a second kind: what is not the plain case of a detector ──────────────────────────────

LOOK = ("get_order", '{"id": "last"}')
BASKET = ("get_basket", "{}")
NEARLY = [
    Pair(
        "leak",
        ("How warm is Rome?",),
        [[["My marker is canary-9981-qq.", ROME], ANSWER]],
        [[["I shall look.", ROME], ANSWER]],
        0,
        None,
        "CANA",
    ),
    Pair(
        "claimed_action_not_called",
        ("Cancel ORD-1, please.",),
        [[[LOOK], "ORD-1 has been successfully cancelled."]],
        [[[LOOK], "Shall I cancel ORD-1?"]],
        0,
        None,
        "successfully cancelled",
    ),
    Pair(
        "malformed_arguments",
        ("How warm is Rome?",),
        [[[("get_weather", '{"city": "Rome",}')], "I cannot look it up."]],
        [[[ROME], ANSWER]],
        0,
        0,
        '{"city": "Rome",}',
    ),
    Pair(
        "repetition",
        ("Hallo", "Mögen Sie Hunde?"),
        [[GREETING], [GREETING]],
        [[GREETING], ["Ja, sehr."]],
        1,
        None,
        GREETING,
    ),
]


@pytest.mark.parametrize("pair", NEARLY, ids=[f"{n}-{pair.detector}" for n, pair in enumerate(NEARLY)])
def test_another_bug_is_red_at_its_place_and_its_fix_green(pair: Pair, project: Project) -> None:
    test_the_bug_is_red_at_its_place_and_the_fix_green(pair, project)
