"""The conversations of a page: how they are packed, what each holds, and what is left out of a large page."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from agenteval.core.decision import SampleDecision, Violation
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import Check, Severity, Verdict
from agenteval.core.trajectory import Step, Stop, StopReason, ToolCall, ToolResult, Turn
from agenteval.files.judge_request_log import StoredRequests
from agenteval.reporters.html import conversations
from agenteval.reporters.html.conversations import PackedConversations, pack_conversations
from agenteval.reporters.html.packing import DisclosureMask
from agenteval.reporters.html.scenario_rows import scenario_rows
from agenteval.reporters.results.document import results
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report, build_report
from tests.support.known_secrets import known_secrets
from tests.support.leaked_reports import LEAKED, MASKED, leak, leaking
from tests.support.pages import records_in, unpack
from tests.support.report_samples import conversation, started, turn
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import (
    BROKEN,
    CUT,
    FAIL,
    GOAL,
    HELD,
    LOST,
    PASS,
    UNSURE,
    Played,
    finding,
    judge_failed,
    report_of,
    score,
    unclear,
)

SECRET = 'pass"word\\of-the-shop-77'
UNDECIDED = Verdict.INCONCLUSIVE


def key(name: str = "a", epoch: int = 0, agent: str = "bot", variant: str = "") -> SampleKey:
    return SampleKey(scenario=name, agent=agent, epoch=epoch, variant=variant)


def packed(
    report: Report,
    requests: StoredRequests | None = None,
    *,
    root: str = ".",
    run: str = "r1",
    **decision: Any,
) -> PackedConversations:
    report = replace(report, run=report.run.model_copy(update={"run_id": run}))
    facts = Facts(report, replace(decide(report), **decision))
    rows = scenario_rows(facts, (), root)
    return pack_conversations(facts, rows, requests, DisclosureMask(report.samples), root=root)


def records(found: PackedConversations) -> dict[SampleKey, dict[str, Any]]:
    """Each conversation, from its place."""
    blocks = [records_in(unpack(block)) for block in found.blocks]
    return {each: blocks[block][line] for each, (block, line) in found.places.items()}


def record(report: Report, name: SampleKey | None = None, **more: Any) -> dict[str, Any]:
    return records(packed(report, **more))[name or key()]


# ── blocks and lines ─────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each conversation is a block of its own."""
    monkeypatch.setattr(conversations, "BLOCK", 1)


MIXED: Mapping[str, Sequence[Played | None]] = {
    "passed": [PASS],
    "failed": [PASS, FAIL, None],
    "lost": [LOST],
}
IN_ORDER = [key("failed"), key("failed", 1), key("lost"), key("passed")]


def test_conversations_stand_in_the_order_of_the_list() -> None:
    found = packed(report_of(MIXED))
    assert found.places == {each: (0, line) for line, each in enumerate(IN_ORDER)}
    assert len(found.blocks) == 1
    found_records = records_in(unpack(found.blocks[0]))
    assert [each["scenario"] for each in found_records] == ["failed", "failed", "lost", "passed"]
    assert [each["sample"]["epoch"] for each in found_records] == [0, 1, 0, 0]


@pytest.mark.usefixtures("small_blocks")
def test_a_full_block_begins_the_next() -> None:
    found = packed(report_of(MIXED))
    assert found.places == {each: (block, 0) for block, each in enumerate(IN_ORDER)}
    assert [len(records_in(unpack(block))) for block in found.blocks] == [1] * 4


@pytest.mark.parametrize(
    ("more", "places"), [(0, [(0, 0), (0, 1), (1, 0), (1, 1)]), (1, [(0, 0), (0, 1), (0, 2), (1, 0)])]
)
def test_a_block_ends_where_it_is_full(
    monkeypatch: pytest.MonkeyPatch, more: int, places: list[tuple[int, int]]
) -> None:
    report = report_of({name: [FAIL] for name in "abcd"})
    one = len(unpack(packed(report).blocks[0]).split("\n")[1]) - len(',"results":[]')
    monkeypatch.setattr(conversations, "BLOCK", 2 * one + more)
    assert list(packed(report).places.values()) == places


def test_a_run_without_conversations_has_no_block() -> None:
    found = packed(report_of({"a": [None]}))
    assert (found.blocks, found.requests, found.places, found.size) == ([], [], {}, 0)
    assert (found.left_out, found.requests_left_out) == (0, 0)


def test_the_size_is_that_of_the_blocks() -> None:
    assert PackedConversations(["ab", "cde"], ["xxxx"]).size == 5


def test_epochs_agents_and_variants_have_places_of_their_own() -> None:
    found = packed(report_of({"a": [FAIL, FAIL]}, agents=("x", "y")))
    names = [key("a", 0, "x"), key("a", 1, "x"), key("a", 0, "y"), key("a", 1, "y")]
    assert found.places == {each: (0, line) for line, each in enumerate(names)}
    assert [each["agent"] for each in records(found).values()] == ["x", "x", "y", "y"]


# ── a conversation ───────────────────────────────────────────────────────────────────────────────


def test_the_sample_is_the_entry_of_the_json_report() -> None:
    call = ToolCall(name="pay", args={"n": 1}, result=ToolResult(value={"ok": True}))
    played = Played((HELD,), turns=((finding(Severity.LOW), score("stars", 4.0)), ()), calls=(call,))
    report = report_of({"a": [played, FAIL]})
    shown = results(report, decide(report)).model_dump(mode="json", exclude_unset=True)
    samples = shown["scenarios"][0]["samples"]
    assert [each["sample"] for each in records(packed(report)).values()] == samples


def test_the_issue_of_a_finding_is_part_of_the_sample() -> None:
    report, decision = judged_run()
    issues = packed(report, gates=decision.gates)
    bad = records(issues)[key("book-morning", 1, "wonderbot")]
    assert [each["issue"] for each in bad["sample"]["findings"]] == ["I1", "I2", "I1"]


def test_a_conversation_without_faults_has_little_more() -> None:
    found = record(report_of({"a": [PASS]}))
    del found["sample"]
    assert found == {
        "scenario": "a",
        "agent": "bot",
        "where": "s/a.yaml:1",
        "repeat": "agenteval run s/a.yaml -s a",
        "show": "agenteval show r1 a@1",
        "end": "",
        "note": "",
        "rules": [],
        "steps": [None],
        "low": [],
    }


@pytest.mark.parametrize(
    ("run", "agents", "epoch", "show", "repeat"),
    [
        ("r1", ("bot",), 0, "agenteval show r1 a@1", "agenteval run s/a.yaml -s a"),
        ("", ("bot",), 1, "agenteval show a@2", "agenteval run s/a.yaml -s a"),
        (
            "r1",
            ("x", "bot"),
            1,
            "agenteval show r1 a@2 --agent bot",
            "agenteval run s/a.yaml -s a --agent bot",
        ),
    ],
)
def test_the_commands_of_a_conversation(
    run: str, agents: tuple[str, ...], epoch: int, show: str, repeat: str
) -> None:
    found = record(report_of({"a": [PASS, PASS]}, agents=agents), key("a", epoch), run=run)
    assert (found["show"], found["repeat"]) == (show, repeat)


RECORDED = Stop(reason=StopReason.RECORDED, detail="/no/shop/logs/log.jsonl:7: the record")


def recorded(*turns: Turn, command: Sequence[str] = ("score", "logs/log.jsonl", "-m", "x/y")) -> Report:
    suite = (Scenario(id="a", name="a", source="/no/shop/s/a.yaml:2", row="/no/shop/rows.csv:4"),)
    events = [
        started(suite, (key(),), command=command),
        *conversation(key(), turns or (turn("hi", "hello"),), stop=RECORDED),
    ]
    return build_report(events)


def test_a_recorded_conversation_is_in_its_log() -> None:
    found = record(recorded(), root="/no/shop")
    assert found["where"] == "logs/log.jsonl:7 · rows.csv:4"
    assert found["repeat"] == "agenteval score /no/shop/logs/log.jsonl -m x/y -s a"
    assert found["end"] == ""


@pytest.mark.parametrize(
    ("played", "end"),
    [
        (PASS, ""),
        (LOST, ""),
        (CUT, "(cut off: the conversation never finished)"),
        (Played(stop=StopReason.MAX_TURNS), "(ended at the turn limit of 1; the user was not done)"),
        (Played(stop=StopReason.INFRASTRUCTURE, detail="no route"), "(infrastructure: no route)"),
    ],
)
def test_how_a_conversation_ended(played: Played, end: str) -> None:
    assert record(report_of({"a": [played]}))["end"] == end


@pytest.mark.parametrize(("note", "shown"), [(None, ""), ("", ""), ("  see #4\n", "see #4")])
def test_the_note_of_the_author(note: str | None, shown: str) -> None:
    assert record(report_of({"a": [PASS]}, scenarios={"a": {"note": note}}))["note"] == shown


def lost_by(detail: str) -> Played:
    return Played(turns=((),), stop=StopReason.INFRASTRUCTURE, detail=detail)


def test_the_rules_that_a_conversation_broke() -> None:
    broken = Check(name="output.contains", passed=False, detail="one\ntwo", where="/no/shop/s/a.yaml:5")
    report = report_of(
        {"a": [Played((HELD,), turns=((broken,),))], "b": [UNSURE], "c": [lost_by("no route")]}
    )
    found = records(packed(report, root="/no/shop"))
    assert found[key("a")]["rules"] == [
        {
            "name": "output.contains",
            "detail": "one\ntwo",
            "where": "s/a.yaml:5",
            "verdict": "failed",
            "turn": 0,
            "fingerprints": list(decide(report).scenarios["a", "bot"].violations[0].fingerprints),
        }
    ]
    assert len(found[key("a")]["rules"][0]["fingerprints"]) == 1
    (rule,) = found[key("b")]["rules"]
    assert (rule["name"], rule["verdict"], rule["turn"]) == ("python", "inconclusive", None)
    (rule,) = found[key("c")]["rules"]
    assert (rule["name"], rule["detail"]) == ("infrastructure", "no route")
    assert rule["where"] == "s/c.yaml:1"


def test_rules_stand_in_the_order_of_the_decision_and_may_have_no_place() -> None:
    violations = (
        Violation("x", "dx", "", turn=2, fingerprints=("f1", "f2")),
        Violation("y", "dy", "default", UNDECIDED),
    )
    decided = {key(): SampleDecision(Verdict.FAILED, violations=violations)}
    found = record(report_of({"a": [PASS]}), samples=decided)["rules"]
    assert [rule.pop("fingerprints") for rule in found] == [["f1", "f2"], []]
    assert found == [
        {"name": "x", "detail": "dx", "where": "", "verdict": "failed", "turn": 2},
        {"name": "y", "detail": "dy", "where": "default", "verdict": "inconclusive", "turn": None},
    ]


# ── results of tools ─────────────────────────────────────────────────────────────────────────────


def returned(value: Any, name: str = "t") -> ToolCall:
    return ToolCall(name=name, args={}, result=ToolResult(value=value))


def calling(*calls: ToolCall) -> Played:
    return Played((BROKEN,), calls=calls)


def test_each_result_is_stored_once_and_before_the_conversations() -> None:
    """A conversation has the lines of its results, in the order of its calls."""
    first = calling(returned({"b": 1}), returned("x"), returned({"b": 1}, "other"))
    second = calling(ToolCall(name="t", args={}), returned("x"), returned("a\nb"))
    found = packed(report_of({"a": [first], "b": [second], "c": [FAIL]}))
    count, *lines = unpack(found.blocks[0]).split("\n")
    assert (count, lines[:4]) == ("4", [r'"a\nb"', '"x"', "null", '{"b":1}'])
    shown = [json.loads(line) for line in lines[4:]]
    assert [each["results"] for each in shown] == [[3, 1, 3], [2, 1, 0], []]
    calls = [call for each in shown for turn in each["sample"]["turns"] for call in turn["tool_calls"]]
    assert len(calls) == 6
    assert not [call for call in calls if "result" in call]


def test_the_results_of_all_turns_stand_in_one_row() -> None:
    turns = (turn("hi", "1", returned("b"), returned("a")), turn("and", "2"), turn("and", "3", returned("c")))
    found = packed(recorded(*turns))
    assert json.loads(unpack(found.blocks[0]).split("\n")[-1])["results"] == [1, 0, 2]


@pytest.mark.usefixtures("small_blocks")
def test_each_block_has_its_own_results() -> None:
    found = packed(report_of({name: [calling(returned("x"), returned(name))] for name in "ab"}))
    assert [unpack(block).split("\n")[:3] for block in found.blocks] == [
        ["2", '"a"', '"x"'],
        ["2", '"b"', '"x"'],
    ]


def test_a_result_that_is_no_json_is_replaced() -> None:
    calls = (returned([nan, inf]), returned("\ud83d"))
    made = record(report_of({"a": [calling(*calls)]}))["sample"]["turns"][0]["tool_calls"]
    assert [each["result"] for each in made] == [[None, None], "\ufffd"]


def test_results_count_toward_the_size_of_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "BLOCK", 10_000)
    for size, blocks in ((9_900, [0, 1, 2]), (10, [0, 0, 0])):
        report = report_of({name: [calling(returned("x" * size))] for name in "abc"})
        assert [block for block, _ in packed(report).places.values()] == blocks


# ── steps ────────────────────────────────────────────────────────────────────────────────────────


def step(text: str | None, calls: int = 0, *, agent: str = "", ms: float = 0.0) -> Step:
    made = tuple(ToolCall(name="t", args={}) for _ in range(calls))
    return Step(text=text, tool_calls=made, agent=agent, latency_ms=ms)


def shown_step(text: str | None, calls: int = 0, agent: str = "", ms: float = 0.0) -> dict[str, Any]:
    return {"text": text, "agent": agent, "calls": calls, "ms": ms}


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        ([], None),
        ([step("hello")], None),
        ([step(None, 2)], None),
        ([step("I look.", 1), step("hello")], [shown_step("I look.", 1), shown_step(None)]),
        ([step(None, 2), step("hello")], [shown_step("", 2), shown_step(None)]),
        ([step("", 1), step("hello")], [shown_step("", 1), shown_step(None)]),
        ([step("hello", 1), step("hello")], [shown_step(None, 1), shown_step(None)]),
        ([step("hello"), step("", 1)], [shown_step("hello"), shown_step(None, 1)]),
        ([step("hello"), step(None, 1)], [shown_step("hello"), shown_step("", 1)]),
        (
            [step("I ask.", agent="front", ms=12.5), step("hello", agent="desk", ms=3.0)],
            [shown_step("I ask.", 0, "front", 12.5), shown_step(None, 0, "desk", 3.0)],
        ),
    ],
)
def test_a_turn_of_several_steps_has_them(steps: list[Step], shown: list[dict[str, Any]] | None) -> None:
    """A text that is the answer of its turn is not repeated."""
    found = record(recorded(Turn(user="hi", steps=tuple(steps)), turn("and", "yes")))
    assert found["steps"] == [shown, None]


# ── low scores ───────────────────────────────────────────────────────────────────────────────────


def test_low_scores_are_named_with_their_turn() -> None:
    good, bad = score("stars", 4.0), score("stars", 1.0)
    label = score("agent_behavior_failure", label="x", ok=False)
    fine = score("agent_behavior_failure", label="no failure", ok=True)
    played = Played((score(GOAL, 0.0),), turns=((good, label), (bad, fine), (unclear(GOAL),)))
    assert record(report_of({"a": [played]}))["low"] == [
        [0, "agent_behavior_failure"],
        [1, "stars"],
        [None, GOAL],
    ]


@pytest.mark.parametrize(("value", "low"), [(3.4, [[None, "stars"]]), (3.5, []), (2.9, [[None, "stars"]])])
def test_a_score_below_its_threshold_is_low(value: float, low: list[Any]) -> None:
    report = report_of(
        {"a": [Played((score("stars", value),))]}, scenarios={"a": {"thresholds": {"stars": 3.5}}}
    )
    assert record(report)["low"] == low


def test_a_metric_that_the_run_does_not_know_has_a_scale_from_1_to_5() -> None:
    played = Played((score("own", 2.9), score("other", 3.0), judge_failed("own")))
    assert record(report_of({"a": [played]}, run={"metrics": ()}))["low"] == [[None, "own"]]


# ── requests to judges ───────────────────────────────────────────────────────────────────────────


def request(system: str, *prompt: str, **more: Any) -> dict[str, Any]:
    fields = {"key": {"scenario": "a", "agent": "bot"}, "role": "judge", "metric": "help", "turn": 0}
    return {"asked": {"system": system, "prompt": list(prompt)}, **fields, **more}


def stored(by_sample: Mapping[SampleKey, list[dict[str, Any]]], **texts: str | list[str]) -> StoredRequests:
    return StoredRequests(texts, by_sample)


def asked(found: PackedConversations, block: int = 0) -> dict[str, Any]:
    block_: dict[str, Any] = json.loads(unpack(found.requests[block]))
    return block_


def test_requests_stand_in_the_lines_of_their_conversations() -> None:
    first, second = request("s", "p", "q"), request("s", "q", "p", turn=1, answer={"score": 4})
    texts = {"s": "System.", "p": "P", "q": "Q", "unused": "U"}
    report = report_of({"b": [PASS], "a": [FAIL], "c": [PASS]})
    found = packed(
        report, stored({key("a"): [first, second], key("c"): [second], key("z"): [first]}, **texts)
    )
    shown = asked(found)
    assert shown["texts"] == {"s": "System.", "p": "P", "q": "Q"}
    asked_first = {
        "asked": {"system": "s", "prompt": ["p", "q"]},
        "role": "judge",
        "metric": "help",
        "turn": 0,
    }
    asked_second = {
        "asked": {"system": "s", "prompt": ["q", "p"]},
        "role": "judge",
        "metric": "help",
        "turn": 1,
        "answer": {"score": 4},
    }
    assert shown["asked"] == [[asked_first, asked_second], [], [asked_second]]
    assert [found.places[key(name)] for name in "abc"] == [(0, 0), (0, 1), (0, 2)]


def test_a_text_of_pieces_brings_its_pieces() -> None:
    texts: dict[str, str | list[str]] = {
        "s": "S", "p": ["x", "y"], "x": ["y", "z"], "y": "Y", "z": "Z", "w": "W", "u": ["w"]
    }  # fmt: skip
    found = packed(report_of({"a": [FAIL]}), stored({key(): [request("s", "p")]}, **texts))
    assert asked(found)["texts"] == {"s": "S", "p": ["x", "y"], "x": ["y", "z"], "y": "Y", "z": "Z"}


def test_a_text_that_is_not_stored_is_empty() -> None:
    found = packed(report_of({"a": [FAIL]}), stored({key(): [request("s", "p")]}, p=["gone"]))
    assert asked(found)["texts"] == {"s": "", "p": ["gone"], "gone": ""}


@pytest.mark.usefixtures("small_blocks")
def test_each_block_has_the_requests_of_its_own_conversations() -> None:
    by_sample = {key("a"): [request("s", "p")], key("c"): [request("s", "q")]}
    report = report_of({name: [FAIL] for name in "abc"})
    found = packed(report, stored(by_sample, s="S", p="P", q="Q"))
    assert [asked(found, block)["texts"] for block in range(3)] == [
        {"s": "S", "p": "P"},
        {},
        {"s": "S", "q": "Q"},
    ]
    assert [len(asked(found, block)["asked"]) for block in range(3)] == [1, 1, 1]


@pytest.mark.parametrize("requests", [None, StoredRequests({}, {}), StoredRequests({"s": "S"}, {})])
def test_a_run_that_stored_no_requests_has_none(requests: StoredRequests | None) -> None:
    found = packed(report_of({"a": [FAIL]}), requests)
    assert (found.requests, found.requests_left_out) == ([], 0)


# ── a large page ─────────────────────────────────────────────────────────────────────────────────

NOTED = Played(turns=((finding(Severity.LOW),),))
MANY = {"a": [FAIL], "b": [LOST], "c": [UNSURE], "d": [NOTED], "e": [PASS], "f": [PASS, PASS], "g": [PASS]}
ALWAYS = [key(name) for name in "abcd"]


def big_requests() -> StoredRequests:
    noise = random.Random(2).randbytes(3000).hex()
    return stored({each: [request("s", "p")] for each in ALWAYS}, s="S", p=noise)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("blocks", "less", "kept", "left_out"),
    [(8, 0, 8, 0), (4, 0, 3, 1), (4, -1, 4, 0), (2, 0, 1, 3), (2, -1, 2, 2), (1, 0, 0, 4), (0, 0, 0, 4)],
)
def test_requests_are_left_out_first_and_those_of_failures_last(
    monkeypatch: pytest.MonkeyPatch, blocks: int, less: int, kept: int, left_out: int
) -> None:
    """There is room for all conversations and for the requests of the first ``blocks`` blocks. Only the first
    four have requests."""
    monkeypatch.setattr(conversations, "most_bytes", lambda count: 10**9)
    whole = packed(report_of(MANY), big_requests())
    assert len(whole.requests) == len(whole.blocks) == 8
    room = whole.size + sum(map(len, whole.requests[:blocks])) - less + (blocks == 8)
    monkeypatch.setattr(conversations, "most_bytes", lambda count: room)
    found = packed(report_of(MANY), big_requests())
    assert found.requests == whole.requests[:kept]
    assert found.requests_left_out == left_out
    assert found.blocks == whole.blocks
    assert found.left_out == 0


@pytest.mark.parametrize(
    ("count", "most"),
    [(0, 3_700_000), (1000, 3_700_000), (1001, 3_702_700), (2000, 6_400_000), (10_000, 28_000_000),
     (100_000, 28_000_000)],
)  # fmt: skip
def test_the_budget_grows_with_the_run(count: int, most: int) -> None:
    assert conversations.most_bytes(count) == most


@pytest.mark.usefixtures("small_blocks")
def test_where_no_requests_were_stored_none_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "most_bytes", lambda count: 1)
    assert not packed(report_of(MANY)).requests_left_out


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("kept", "left_out"), [(8, 0), (7, 1), (6, 2), (5, 3), (4, 4), (3, 4), (1, 4), (0, 4)]
)
def test_only_conversations_that_passed_without_a_finding_are_left_out(
    monkeypatch: pytest.MonkeyPatch, kept: int, left_out: int
) -> None:
    """The page is full as soon as it holds the first ``kept`` conversations."""
    whole = packed(report_of(MANY))
    monkeypatch.setattr(conversations, "MOST_BYTES", sum(map(len, whole.blocks[:kept])))
    found = packed(report_of(MANY))
    assert found.left_out == left_out
    assert set(ALWAYS) <= found.places.keys()
    assert len(found.places) == len(found.blocks) == 8 - left_out
    assert found.blocks == whole.blocks[: 8 - left_out]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("played", [FAIL, LOST, UNSURE, CUT, NOTED])
def test_none_that_tells_something_is_ever_left_out(monkeypatch: pytest.MonkeyPatch, played: Played) -> None:
    monkeypatch.setattr(conversations, "MOST_BYTES", 0)
    found = packed(report_of({"a": [PASS, played, PASS], "b": [played, None]}), big_requests())
    assert set(found.places) == {key("a", 1), key("b")}
    assert found.left_out == 2
    assert found.requests == []


def test_a_conversation_whose_failure_is_accepted_is_never_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversations, "MOST_BYTES", 0)
    accepted = SampleDecision(Verdict.PASSED, accepted=(Violation("output.contains", "not there", ""),))
    decided = {key("a"): accepted, key("b"): SampleDecision(Verdict.PASSED)}
    found = packed(report_of({"a": [FAIL], "b": [PASS]}), samples=decided)
    assert (set(found.places), found.left_out) == ({key("a")}, 1)


def test_the_limits_are_those_of_a_page_that_a_browser_opens_at_once() -> None:
    assert (conversations.BLOCK, conversations.MOST_BYTES) == (1_000_000, 28_000_000)


# ── secrets ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def a_secret() -> Iterator[None]:
    with known_secrets(SECRET):
        yield


@pytest.mark.usefixtures("a_secret")
def test_a_secret_is_masked_in_all_that_is_packed() -> None:
    call = ToolCall(name="pay", args={SECRET: [SECRET]}, result=ToolResult(value=SECRET))
    report = report_of({"a": [Played((Check(name="x", passed=False, detail=SECRET),), calls=(call,))]})
    requests = stored({key(): [request("s", "p", answer={"reason": SECRET})]}, s=SECRET, p=f"of {SECRET}.")
    found = packed(report, requests)
    for text in (unpack(found.blocks[0]), unpack(found.requests[0])):
        assert "of-the-shop" not in text
    (made,) = records(found)[key()]["sample"]["turns"][0]["tool_calls"]
    assert (made["args"], made["result"]) == ({"***": ["***"]}, "***")
    assert records(found)[key()]["rules"][0]["detail"] == "***"
    assert asked(found)["texts"] == {"s": "***", "p": "of ***."}
    assert asked(found)["asked"][0][0]["answer"] == {"reason": "***"}


@pytest.mark.usefixtures("a_secret")
def test_a_masked_block_has_its_lines() -> None:
    calls = (returned(SECRET), returned("x"), returned("***"))
    played = Played((Check(name="x", passed=False, detail=SECRET),), calls=calls)
    found = packed(report_of({name: [played] for name in "ab"}))
    assert [each["rules"][0]["detail"] for each in records(found).values()] == ["***", "***"]
    assert unpack(found.blocks[0]).split("\n")[:3] == ["2", '"***"', '"x"']
    assert unpack(found.blocks[0]).count("\n") == 4


def test_a_secret_that_the_detector_found_is_masked_in_the_whole_conversation() -> None:
    assert LEAKED in json.dumps(record(leaking()))
    found = packed(leaking(leak()))
    assert LEAKED not in unpack(found.blocks[0])
    shown = records(found)[key()]
    first, second = shown["sample"]["turns"]
    assert (first["agent"], second["user"]) == (f"{MASKED} it is.", f"Say {MASKED} again")
    assert first["tool_calls"][0]["args"] == {MASKED: f"it is {MASKED}"}
    assert first["tool_calls"][0]["result"] == [MASKED]
    assert shown["rules"][0]["detail"] == f'"never" in "{MASKED} it is."'
    assert second["scores"]["stars"]["evidence"] == MASKED


def test_a_secret_that_the_detector_found_is_masked_in_the_requests() -> None:
    requests = stored({key(): [request("s", "p")]}, s="S", p=f"The agent: {LEAKED} it is.")
    found = packed(leaking(leak()), requests)
    assert asked(found)["texts"]["p"] == f"The agent: {MASKED} it is."


def test_instructions_that_were_quoted_are_not_masked() -> None:
    assert LEAKED in json.dumps(record(leaking(leak(evidence=LEAKED))))
