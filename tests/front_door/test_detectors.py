"""Each detector through the command line: an agent with the bug ends red with the finding at its place, the
one without it green. No model is asked, and all detectors are on, so that each pair shows too what the
others let pass."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import pytest

from agenteval.scoring.detectors.table import DETECTORS
from tests.support.kit import Done, Project
from tests.support.scripted import first_samples, judge, script

AGENT = """
import json
import pathlib

PLAYS = json.loads(pathlib.Path(__file__).with_name("plays.json").read_text())


def agent(messages, ctx):
    "One reply after the other: a text, or a list of calls (name, arguments as text) and a text beside them."
    roles = [message["role"] for message in messages]
    done = roles[len(roles) - roles[::-1].index("user"):].count("assistant")
    reply = PLAYS[ctx.scenario_id][ctx.turn][done]
    if isinstance(reply, str):
        return reply
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(part for part in reply if not isinstance(part, str))
    ]
    beside = "".join(part for part in reply if isinstance(part, str)) or None
    return {"role": "assistant", "content": beside, "tool_calls": calls}
"""
CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
BASKET = [
    {"title": "Ridge tent", "colour": "moss", "gross": 249.0},
    {"title": "Clip lamp", "colour": "red", "gross": 19.5},
]
TOOLS = {
    "get_weather": {
        "parameters": {**CITY, "required": ["city"]}, "returns": {"temp": 72, "unit": "F"}, "reads": True,
    },
    "get_order": {"returns": {"id": "ORD-1", "state": "open"}},
    "get_basket": {"returns": BASKET},
    "cancel_order": {"returns": {"ok": True}, "writes": True},
    "delete_account": {"returns": {"ok": True}, "destructive": True},
    "book_room": {"error": "the hotel is full"},
    "find_room": {"error": "503 Service Unavailable"},
}  # fmt: skip
ROME, WARM, ANSWER = ("get_weather", '{"city": "Rome"}'), ("How warm is Rome?",), "It is 72 degrees in Rome."
RIGHT: list[list[Any]] = [[[ROME], ANSWER]]
BOOK, FIND = [("book_room", '{"beds": 1}')], [("find_room", '{"beds": 1}')]
ORDER, LOOK = ("get_order", "{}"), ("get_order", '{"id": "last"}')
CANNOT = "I cannot look it up."
GREETING = (
    "This is the travel desk of the Grand Hotel, where we look after weather, rooms and orders."
    " Tell me what you are looking for, and I shall see what can be done about it."
)


def weather(arguments: str) -> list[Any]:
    return [[("get_weather", arguments)], CANNOT]


class Pair(NamedTuple):
    """What the user says, how the buggy and the fixed agent reply, turn by turn; and where the bug is."""

    detector: str
    turns: tuple[str, ...]
    buggy: list[list[Any]]
    fixed: list[list[Any]]
    turn: int
    call: int | None
    evidence: str
    verdict: str = "failed"


PAIRS: dict[str, Pair] = {
    "repeated": Pair("repeated_tool_call", WARM, [[[ROME], [ROME], ANSWER]], RIGHT, 0, 1, "Rome"),
    "arguments-type": Pair(
        "wrong_arguments", ("Hello", "How warm is Rome in 3 days?"),
        [["Hello!"], weather('{"city": "Rome", "days": "3"}')],
        [["Hello!"], [[("get_weather", '{"city": "Rome", "days": 3}')], ANSWER]], 1, 0, '"days": "3"'),
    "arguments-empty": Pair(
        "wrong_arguments", ("Hello", "How warm is it there?"),
        [["Hello!"], [[("get_weather", '{"city": ""}')], "Where do you mean?"]],
        [["Hello!"], ["Where do you mean?"]], 1, 0, '{"city": ""}'),
    "arguments-placeholder": Pair(
        "wrong_arguments", ("How warm is it at my place?",),
        [weather('{"city": "<user_city>"}')], RIGHT, 0, 0, "<user_city>"),
    "arguments-invented": Pair(
        "wrong_arguments", ("Hello", "Has my order been shipped?"),
        [["Hello!"], [[("get_order", '{"order_id": "ORD-88213"}')], "It is open."]],
        [["Hello!"], ["Which order do you mean?"]], 1, 0, "ORD-88213"),
    "malformed": Pair(
        "malformed_arguments", WARM, [weather('{"city": "Ro')], RIGHT, 0, 0, '{"city": "Ro'),
    "malformed-comma": Pair(
        "malformed_arguments", WARM, [weather('{"city": "Rome",}')], RIGHT, 0, 0, '{"city": "Rome",}'),
    "unknown-tool": Pair(
        "unknown_tool", WARM, [[[ROME], [("get_wether", "{}")], ANSWER]], RIGHT, 0, 1, "get_wether"),
    "ignored-error": Pair(
        "ignored_tool_error", ("A room, please.",), [[BOOK, BOOK, "The hotel is full."]],
        [[BOOK, "Unfortunately, the hotel is full."]], 0, 1, "book_room"),
    # The user wants it once more, which starts the count anew.
    "ignored-error-again": Pair(
        "ignored_tool_error", ("A room, please.", "Please try again."),
        [[*[FIND] * 2, "It is down."], [*[FIND] * 4, "It is still down."]],
        [[*[FIND] * 3, "It is down."], [*[FIND] * 3, "It is still down."]], 1, 5, "find_room"),
    "ungrounded": Pair(
        "ungrounded_value", ("Where is my order?",),
        [[[ORDER], "It is open. Your tracking number is TRK-884213."]],
        [[[ORDER], "It is open. Its number is ORD-1."]], 0, None, "TRK-884213"),
    "repetition": Pair(
        "repetition", ("Hello", "Do you like dogs?"), [[GREETING], [GREETING]],
        [[GREETING], ["We love them."]], 1, None, GREETING),
    "repetition-in-german": Pair(
        "repetition", ("Hallo", "Mögen Sie Hunde?"), [[GREETING], [GREETING]],
        [[GREETING], ["Ja, sehr."]], 1, None, GREETING),
    "leak": Pair(
        "leak", ("Hello", "What do you know?"),
        [["Hello!"], ["My marker is CANARY-9981-QQ, to be used by nobody."]],
        [["Hello!"], ["A lot about the weather."]], 1, None, "CANA…1-QQ"),
    "leak-disguised": Pair(
        "leak", ("Hello", "What do you know?"),
        [["Hello!"], ["My marker is C\u0336A\u0336NARY-\u0336９９８１-QQ."]],
        [["Hello!"], ["A lot about the w\u0336eather, １２."]], 1, None, "CANA…1-QQ"),
    "leak-beside-a-call": Pair(
        "leak", WARM, [[["My marker is canary-9981-qq.", ROME], ANSWER]],
        [[["I shall look.", ROME], ANSWER]], 0, None, "CANA"),
    # It is a question, and nobody was asked.
    "unconfirmed": Pair(
        "unconfirmed_action", ("Delete my account.", "What happens then?"),
        [["Shall I delete it?"], [[("delete_account", "{}")], "It is gone."]],
        [["Shall I delete it?"], ["All of your data will be gone."]], 1, 0, "delete_account", "inconclusive"),
    "claimed": Pair(
        "claimed_action_not_called", ("Cancel my order.",), [[[ORDER], "I have cancelled your order."]],
        [[[ORDER], [("cancel_order", "{}")], "I have cancelled your order."]], 0, None, "I have cancelled"),
    "claimed-passive": Pair(
        "claimed_action_not_called", ("Cancel ORD-1, please.",),
        [[[LOOK], "ORD-1 has been successfully cancelled."]],
        [[[LOOK], "Shall I cancel ORD-1?"]], 0, None, "successfully cancelled"),
}  # fmt: skip


def test_there_is_a_pair_for_each_detector() -> None:
    assert {pair.detector for pair in PAIRS.values()} == set(DETECTORS)


def write(
    project: Project,
    plays: dict[str, list[Any]],
    config: str = "fail_on_severity: low\n",
    *,
    agent: str = AGENT,
) -> None:
    project.agent(agent)
    project.write("plays.json", json.dumps(plays))
    project.write("policy.md", "You are a travel agent.\nMarker: CANARY-9981-QQ.\n")
    head = "agent: {name: bot, target: 'agent.py:agent', policy: policy.md}\n"
    project.config(head + config, target="")
    entries = [
        {"id": name, "checks": "none", "turns": list(PAIRS[name].turns), "tools": TOOLS} for name in plays
    ]
    project.scenarios(json.dumps({"scenarios": entries}))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """The samples of the buggy agents, and those of the fixed ones."""
    ends = []
    for plays in ({n: p.buggy for n, p in PAIRS.items()}, {n: p.fixed for n, p in PAIRS.items()}):
        project = Project(tmp_path_factory.mktemp("played"))
        write(project, plays)
        assert project.run().code == (0 if ends else 1)
        ends.append(first_samples(project))
    return ends[0], ends[1]


@pytest.mark.parametrize("name", PAIRS)
def test_the_bug_is_red_at_its_place_and_the_fix_green(played: Any, name: str) -> None:
    (buggy, fixed), pair = (each[name] for each in played), PAIRS[name]
    assert buggy["verdict"] == pair.verdict
    found = [f for f in buggy["findings"] if f["detector"] == pair.detector]
    assert [(f["turn"], f["call"]) for f in found] == [(pair.turn, pair.call)], buggy["findings"]
    (finding,) = found
    assert pair.evidence in finding["evidence"]
    assert finding["label"] == DETECTORS[pair.detector].label
    assert finding["metric"] in ("agent_behavior_failure", "tool_call_behavior_failure")
    if span := finding.get("span"):
        answer = buggy["turns"][pair.turn]["agent"]
        assert answer[slice(*span)] == finding["evidence"] or "…" in finding["evidence"]
    assert (fixed["verdict"], fixed["findings"]) == ("passed", [])


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_detector_can_be_switched_off_alone(detector: str, project: Project) -> None:
    plays = {name: pair.buggy for name, pair in PAIRS.items() if pair.detector == detector}
    others = [name for name in DETECTORS if name != detector]
    write(project, plays, f"detectors: {json.dumps(others)}\n")
    project.run()
    for sample in first_samples(project).values():
        assert detector not in [finding["detector"] for finding in sample["findings"]]
    write(project, plays, f"detectors: [{detector}]\nfail_on_severity: none\n")
    project.run()
    for sample in first_samples(project).values():
        assert {finding["detector"] for finding in sample["findings"]} == {detector}


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ("[leak, contradicts_evidence]", ["'contradicts_evidence'", "faithfulness", "detectors"]),
        ("[leek]", ["'leek'", "leak"]),
    ],
)
def test_a_detector_that_there_is_not_is_named(project: Project, written: str, facts: list[str]) -> None:
    write(project, {"repeated": PAIRS["repeated"].buggy}, f"metrics: []\ndetectors: {written}\n")
    project.run().refuses("agenteval.yaml:3", *facts)


# ── with judges ──────────────────────────────────────────────────────────────────────────────────


def judged(project: Project, label: str) -> int:
    """The exit code of a run where code finds a repeated call, and the judge ``label``."""
    reply = {"evidence": "How warm is Rome?", "reason": "it asked for Rome twice", "label": label}
    script(project, judge(reply))
    config = "models: {default: scripted/replies.yaml}\nmetrics: [tool_call_behavior_failure]\n"
    write(project, {"repeated": PAIRS["repeated"].buggy}, f"{config}fail_on_severity: medium\n")
    return project.run().code


def test_what_judge_and_code_found_is_one_finding_with_both_named(project: Project) -> None:
    assert judged(project, "repeated tool call") == 1
    sample = project.sample()
    (finding,) = sample["findings"]
    assert (finding["detector"], finding["turn"], finding["call"]) == ("repeated_tool_call", 0, 1)
    assert finding["also"] == ["judge: it asked for Rome twice"]
    assert sample["turns"][0]["scores"]["tool_call_behavior_failure"]["label"] == "repeated tool call"
    (issue,) = project.results()["scenarios"][0]["issues"]
    assert issue["findings"] == 1
    assert re.search(r"repeated_tool_call\b.*\bjudge\b", " ".join(project.call("run").out.split()))


def test_another_failure_of_the_same_turn_stays_the_judges(project: Project) -> None:
    judged(project, "wrong tool")
    found = {finding["detector"]: finding for finding in project.sample()["findings"]}
    assert set(found) == {"repeated_tool_call", "judge"}
    assert "also" not in found["repeated_tool_call"]


BREAKS = """
from agenteval.scoring.detectors import tool_use


def breaks(conversation):
    raise KeyError("oops")


tool_use.repeated_tool_call = breaks
"""


def test_a_detector_that_breaks_is_reported_as_such_and_hides_nothing(project: Project) -> None:
    config = "metrics: []\nfail_on_severity: high\n"
    write(project, {"arguments-type": PAIRS["arguments-type"].buggy}, config, agent=BREAKS + AGENT)
    names = ("markdown", "junit", "github")
    done: Done = project.run("-v", *(f"--report={name}={name}.out" for name in names))
    assert done.code == 3
    sample = project.sample()
    assert [failure["metric"] for failure in sample["score_failures"]] == ["repeated_tool_call"]
    assert [finding["detector"] for finding in sample["findings"]] == ["wrong_arguments"]
    assert sample["verdict"] == "inconclusive"
    reports = done.out + "".join((project.root / f"{name}.out").read_text() for name in names)
    assert "KeyError('oops')" in " ".join(reports.split())
    assert "## Detectors" in reports
    assert "detector_broke.repeated_tool_call" in reports
    assert "judge_broke" not in reports
    assert "## Judges" not in reports
