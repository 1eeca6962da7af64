"""What a reader of the last line alone should know: which remarks a run gets, and of how many things."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.decision import SampleDecision
from agenteval.core.event import Baseline, Event, RunFinished, SampleFinished, SampleStarted, TurnFinished
from agenteval.core.scenario import CaseSpec, Expectation, SampleKey, Scenario, Tool
from agenteval.core.score import (
    NOT_CLEAR,
    REACHED,
    RULED_OUT,
    WITHDRAWN,
    Check,
    ScoreFailure,
    ScoreItem,
    Severity,
    Verdict,
)
from agenteval.core.trajectory import Stop, StopReason, ToolCall, Turn
from agenteval.verdict.caveats import Caveat, format_caveats, list_caveats
from agenteval.verdict.fingerprints import failures_of
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report, build_report
from tests.support.report_samples import conversation, started, turn
from tests.support.verdict_runs import (
    BEHAVIOR,
    GOAL,
    HELD,
    LABELS,
    LOST,
    PASS,
    RULES,
    Played,
    finding,
    judge_failed,
    lost,
    report_of,
    score,
    unclear,
    whole,
    with_suite,
)

POLICY = "policy_adherence"
CRITERIA = "criteria"
HIGH, CRITICAL, MEDIUM = Severity.HIGH, Severity.CRITICAL, Severity.MEDIUM
NONE = {"fail_on_severity": "none"}
SKIP = {"judge": {"on_failure": "skip"}}
MISSED = finding(MEDIUM, None, metric=GOAL, label="goal not completed")
MET = whole(score(GOAL, 1.0))
WRITES = {"tools": {"pay": Tool(returns=1, writes=True)}}
PAYS = ToolCall(name="pay", args={})
CALLING = Played((HELD,), calls=(PAYS,))


def caveats(report: Report) -> tuple[Caveat, ...]:
    return list_caveats(report, decide(report))


def counts(report: Report) -> dict[str, int]:
    found = {each.kind: each.count for each in caveats(report)}
    assert all(each.text for each in caveats(report))
    return found


def text_of(report: Report, kind: str) -> str:
    (found,) = [each.text for each in caveats(report) if each.kind == kind]
    return found


def criterion(passed: bool | None, name: str = "is kind", **more: Any) -> Check:
    return Check(name=CRITERIA, passed=passed, detail=f"{name} — so", where="s/a.yaml:3", **more)


# ── findings, goals and judges below the gate ────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "config", "found"),
    [
        pytest.param([PASS], {}, {}, id="nothing"),
        pytest.param([whole(finding(HIGH))], {}, {"findings_high": 1}, id="below the gate"),
        pytest.param([whole(finding(HIGH)), whole(finding(HIGH))], {}, {"findings_high": 2}, id="two"),
        pytest.param([whole(finding(HIGH))], {"fail_on_severity": "high"}, {}, id="at the gate"),
        pytest.param([whole(finding(MEDIUM))], {}, {}, id="not severe"),
        pytest.param([whole(finding(CRITICAL))], {}, {}, id="critical"),
        pytest.param(
            [whole(finding(HIGH)), whole(finding(CRITICAL))],
            NONE,
            {"findings_critical": 1, "findings_high": 1},
            id="the worst first",
        ),
        pytest.param([whole(MISSED), MET], {}, {"goals_missed": 1}, id="a goal is counted as a goal"),
        pytest.param([whole(MISSED), MET], {"fail_on_severity": "low"}, {}, id="a goal that fails"),
        pytest.param([whole(MISSED)], {}, {}, id="a goal that nobody reached fails"),
        pytest.param([lost(finding(HIGH))], {"fault_tolerance": 1}, {}, id="of an errored sample"),
        pytest.param([whole(judge_failed(BEHAVIOR))], NONE, {"judges_failed": 1}, id="a failed judge"),
        pytest.param([whole(judge_failed("stars"))], NONE, {}, id="a failed judge of a number"),
        pytest.param([whole(judge_failed(BEHAVIOR))], {}, {}, id="a failed judge that may gate"),
    ],
)
def test_below_the_gate(epochs: list[Played], config: dict[str, Any], found: dict[str, int]) -> None:
    report = report_of({"a": epochs}, **config)
    assert counts(report) == found
    assert list(counts(report)) == list(found)
    assert all(each.below_gate for each in caveats(report))


def test_a_goal_that_was_to_be_refused_is_not_a_missed_one() -> None:
    refuse = {"scenarios": {"a": {"goal": "g", "goal_outcome": "refused"}}}
    granted = finding(MEDIUM, None, metric=GOAL, label="goal not refused")
    reached = score(GOAL, 0.0, label=REACHED)
    found = counts(report_of({"a": [whole(reached, granted), whole(MISSED), MET]}, **refuse))
    assert found == {"goals_missed": 1, "goals_not_refused": 1}


# ── abstentions and skipped judges ───────────────────────────────────────────────────────────────

WITH_RULES = {"run": {"metrics": (LABELS, RULES)}}


@pytest.mark.parametrize(
    ("items", "config", "found"),
    [
        ([unclear(GOAL, RULED_OUT)], {}, {"goals_ruled_out": 1}),
        ([unclear(GOAL, WITHDRAWN)], {}, {"goals_withdrawn": 1}),
        ([unclear(GOAL, NOT_CLEAR)], {}, {"goals_not_clear": 1}),
        ([unclear(POLICY)], WITH_RULES, {"policy_not_clear": 1}),
        ([score(GOAL, 1.0)], {}, {}),
        ([unclear(BEHAVIOR)], {}, {}),
        ([HELD, criterion(True, by="openai/m")], {}, {}),
    ],
)
def test_what_a_judge_left_open(
    items: list[ScoreItem], config: dict[str, Any], found: dict[str, int]
) -> None:
    assert counts(report_of({"a": [whole(*items)]}, **config)) == found


def test_abstentions_come_in_one_order_and_not_from_errored_samples() -> None:
    epochs = [whole(unclear(GOAL, each)) for each in (NOT_CLEAR, WITHDRAWN, RULED_OUT, NOT_CLEAR)]
    report = report_of({"a": [*epochs, *[PASS] * 5, lost(unclear(GOAL))]}, fault_tolerance=0.9)
    found = counts(report)
    assert list(found)[:3] == ["goals_ruled_out", "goals_withdrawn", "goals_not_clear"]
    assert found["goals_not_clear"] == 2


@pytest.mark.parametrize(
    ("criteria", "verdict", "count", "text"),
    [
        ([criterion(None, by="openai/m")], Verdict.PASSED, 1, "1 criterion"),
        ([criterion(None, by="openai/m")] * 2, Verdict.PASSED, 2, "2 criteria"),
        ([criterion(None, by="openai/m")], Verdict.INCONCLUSIVE, 0, ""),
        ([criterion(None, by="openai/m")], Verdict.FAILED, 0, ""),
        ([criterion(None)], Verdict.PASSED, 0, ""),
        ([criterion(True, by="openai/m")], Verdict.PASSED, 0, ""),
        ([Check(name="python", passed=None, by="openai/m")], Verdict.PASSED, 0, ""),
    ],
)
def test_criteria_that_were_not_clear(criteria: list[Check], verdict: Verdict, count: int, text: str) -> None:
    report = report_of({"a": [whole(*criteria)]})
    (sample,) = report.samples
    decision = replace(decide(report), samples={sample.key: SampleDecision(verdict)})
    found = [each for each in list_caveats(report, decision) if each.kind == "criteria_not_clear"]
    assert [each.count for each in found] == ([count] if count else [])
    assert all(text in each.text for each in found)


def test_criteria_that_never_arose() -> None:
    once = whole(HELD, criterion(True, "a", arose=False), criterion(True, "b", arose=False))
    twice = whole(HELD, criterion(True, "a", arose=True), criterion(True, "b", arose=False))
    expect = {"scenarios": {"a": {"expect": Expectation(criteria=("a", "b"))}}}
    assert counts(report_of({"a": [once]}, **expect)) == {"never_arose": 2}
    report = report_of({"a": [once, twice]}, **expect)
    assert counts(report) == {"never_arose": 1}
    assert "b" in text_of(report, "never_arose")
    assert counts(report_of({"a": [twice], "b": [PASS]}, **expect)) == {"never_arose": 1}


@pytest.mark.parametrize(
    ("failure", "config", "found"),
    [
        (judge_failed("stars"), SKIP, {"judges_skipped": 1}),
        (judge_failed("stars"), {}, {}),
        (judge_failed("stars", refused=True), SKIP, {"not_judged": 1}),
        (judge_failed("stars", refused=True), {}, {"not_judged": 1}),
    ],
)
def test_judges_that_failed_or_were_not_called(
    failure: ScoreFailure, config: dict[str, Any], found: dict[str, int]
) -> None:
    assert counts(report_of({"a": [whole(HELD, failure)]}, **config)) == found


# ── judges that were not called at all ───────────────────────────────────────────────────────────

KIND = {"scenarios": {"a": {"expect": Expectation(criteria=("is kind", "is brief"))}}}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"run": {"no_judge": True}}, {"not_judged": 1}),
        ({"run": {"no_judge": True, "judged": ()}}, {}),
        ({"run": {"no_judge": True, "judged": ()}, **KIND}, {"not_judged": 1}),
        ({"run": {"no_judge": False, "judged": ("stars",)}}, {}),
    ],
)
def test_judges_that_nobody_was_to_call(config: dict[str, Any], found: dict[str, int]) -> None:
    assert counts(report_of({"a": [PASS]}, **config)) == found


def test_code_alone() -> None:
    config = {"thresholds": {"stars": 2}, "run": {"no_judge": True}, **KIND}
    report = with_suite(report_of({"a": [PASS, PASS]}, **config), code_only=True)
    assert "code_only" in counts(report)
    assert "not_judged" not in counts(report)
    text = text_of(report, "code_only")
    assert [part in text for part in ("2 criteria", "1 threshold ", "skipped")] == [True, True, False]
    bare = with_suite(report_of({"a": [PASS]}), code_only=True)
    assert ":" not in text_of(bare, "code_only")
    one = {"scenarios": {"a": {"expect": Expectation(criteria=("is kind",))}}}
    assert "1 criterion" in text_of(with_suite(report_of({"a": [PASS]}, **one), code_only=True), "code_only")


# ── errored samples ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "tolerance", "count"),
    [
        ([PASS, LOST], 0.5, 1),
        ([PASS, LOST], 0.4, 0),
        ([PASS, PASS, LOST, LOST], 0.5, 2),
        ([PASS, LOST, LOST], 1, 0),  # most of the scenario
        ([PASS, PASS], 0.5, 0),
    ],
)
def test_errored_samples_that_were_tolerated(epochs: list[Played], tolerance: float, count: int) -> None:
    found = counts(report_of({"a": epochs}, fault_tolerance=tolerance))
    assert found == ({"samples_errored": count} if count else {})


def repeated(*keys: SampleKey, last: StopReason = StopReason.SCRIPT_DONE) -> Report:
    ids = dict.fromkeys(key.scenario for key in keys)
    scenarios = tuple(Scenario(id=id, name=id) for id in ids)
    events: list[Event] = [started(scenarios, keys)]
    for key in keys:
        down = SampleFinished(key=key, stop=Stop(reason=StopReason.INFRASTRUCTURE), again=True)
        events += [SampleStarted(key=key), down]
        items: dict[int | None, tuple[ScoreItem, ...]] = {None: (HELD,)}
        events += conversation(key, (turn("hi", "hello"),), items, stop=Stop(reason=last))
    return build_report([*events, RunFinished(finished_at="")])


def key(id: str, epoch: int = 0) -> SampleKey:
    return SampleKey(scenario=id, agent="wonderbot", epoch=epoch)


@pytest.mark.parametrize(
    ("keys", "names", "absent"),
    [
        ([key("a")], "(a)", "@"),
        ([key("a"), key("a", 1)], "(a@1, a@2)", "more"),
        ([key("a"), key("b"), key("b", 1)], "(a, b@1, b@2)", "more"),
        ([key(each) for each in "abcde"], "(a, b, c and 2 more)", "@"),
    ],
)
def test_conversations_that_were_repeated(keys: list[SampleKey], names: str, absent: str) -> None:
    report = repeated(*keys)
    assert counts(report) == {"played_again": len(keys)}
    assert names in text_of(report, "played_again")
    assert absent not in text_of(report, "played_again")


@pytest.mark.parametrize("last", [StopReason.INFRASTRUCTURE, StopReason.SIMULATOR, StopReason.BUDGET])
def test_a_repetition_that_was_lost_too_is_an_errored_sample(last: StopReason) -> None:
    assert "played_again" not in counts(repeated(key("a"), last=last))


def test_a_repetition_that_failed_is_one() -> None:
    assert "played_again" in counts(repeated(key("a"), last=StopReason.AGENT_ERROR))


# ── of the run ───────────────────────────────────────────────────────────────────────────────────


def test_accepted_failures_that_occurred() -> None:
    broken = whole(Check(name="output.contains", passed=False, parts=("x",)))
    report = report_of({"a": [broken]})
    (scenario,) = report.scenarios
    (name,) = [each.fingerprint for each in failures_of(scenario.samples[0], scenario.scenario).all]
    entry = {"owner": "me", "reason": "known", "expires": "2026-12-31"}
    entries = [{**entry, "fingerprint": each} for each in (name, "0" * 12)]
    assert counts(report_of({"a": [broken]}, accepted_failures=entries)) == {"accepted": 1}
    assert counts(report_of({"a": [PASS]}, accepted_failures=entries)) == {}


@pytest.mark.parametrize("path", ["tapes/one.json", "C:\\tapes\\one.json", "one.json"])
def test_a_replay_is_named_by_its_file(path: str) -> None:
    report = report_of({"a": [PASS]}, run={"request": {"replay": path}})
    assert counts(report) == {"replay": 1}
    assert text_of(report, "replay").endswith(" one.json")
    assert "tapes" not in text_of(report, "replay")


@pytest.mark.parametrize(("gone", "more"), [(0, ""), (1, ""), (3, ""), (5, "2 more")])
def test_scenarios_of_the_baseline_that_are_gone(gone: int, more: str) -> None:
    names = tuple(f"<{n}>" for n in range(gone))
    report = report_of({"a": [PASS]}, run={"baseline": Baseline(run_id="b", outcomes={}, gone=names)})
    assert counts(report) == ({"gone scenarios": gone} if gone else {})
    if gone:
        text = text_of(report, "gone scenarios")
        assert sum(name in text for name in names) == min(gone, 3)
        assert more in text


@pytest.mark.parametrize(
    ("cases", "count", "keys"),
    [
        ({"a": CaseSpec(expected_tools=())}, 1, ["expected_tools of a"]),
        (
            {"a": CaseSpec(expected_tools=(), expected_output_contains=())},
            1,
            ["expected_tools and expected_output_contains of a"],
        ),
        ({"a": CaseSpec(expected_tools="none")}, 0, []),
        ({"a": CaseSpec(expected_tools=("pay",))}, 0, []),
        ({"a": CaseSpec(expected_tools=()), "b": CaseSpec(expected_output_contains=())}, 2, ["of a", "of b"]),
    ],
)
def test_empty_lists_check_nothing(cases: dict[str, CaseSpec], count: int, keys: list[str]) -> None:
    config = {"scenarios": {id: {"case": case} for id, case in cases.items()}}
    report = report_of({id: [PASS, PASS] for id in cases}, **config)
    assert counts(report).get("empty_lists", 0) == count
    if count:
        assert all(each in text_of(report, "empty_lists") for each in keys)


# ── calls that are not seen ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epochs", "scenario", "count"),
    [
        ([PASS], WRITES, 1),
        ([PASS, CALLING], WRITES, 0),
        ([PASS], {}, 0),
        ([Played((HELD,), ())], WRITES, 0),
    ],
)
def test_declared_tools_that_were_never_called(
    epochs: list[Played], scenario: dict[str, Any], count: int
) -> None:
    found = counts(report_of({"a": epochs}, scenarios={"a": scenario}))
    assert found.get("calls_never_seen", 0) == count


def test_the_agents_that_never_called_are_named() -> None:
    report = report_of({"a": [PASS]}, scenarios={"a": WRITES}, agents=("x", "y"))
    assert counts(report)["calls_never_seen"] == 2
    assert "agents 'x', 'y'" in text_of(report, "calls_never_seen")


UNSEEN = {"agent": {"name": "bot", "target": "a:b"}}
TRUSTED = {"agent": {"name": "bot", "target": "a:b", "calls": "unseen"}}
READS = {"tools": {"look": Tool(returns=1, reads=True)}}


@pytest.mark.parametrize(
    ("epochs", "scenario", "config", "count"),
    [
        pytest.param([PASS, PASS], WRITES, UNSEEN, 2, id="may have been called"),
        pytest.param([PASS], WRITES, {}, 0, id="all calls are seen"),
        pytest.param([PASS], READS, UNSEEN, 0, id="nothing writes"),
        pytest.param([PASS], WRITES, TRUSTED, 0, id="on trust"),
        pytest.param([PASS], WRITES, {**UNSEEN, "run": {"judged": (BEHAVIOR,)}}, 0, id="a judge reads it"),
        pytest.param(
            [PASS],
            WRITES,
            {**UNSEEN, "run": {"judged": (BEHAVIOR,), "no_judge": True}},
            1,
            id="a judge that is not called",
        ),
        pytest.param([PASS, LOST], WRITES, {**UNSEEN, "fault_tolerance": 1}, 1, id="of what passed"),
    ],
)
def test_claims_that_nobody_checks(
    epochs: list[Played], scenario: dict[str, Any], config: dict[str, Any], count: int
) -> None:
    found = counts(report_of({"a": epochs}, scenarios={"a": scenario}, **config))
    assert found.get("claims_not_checked", 0) == count


@pytest.mark.parametrize(
    ("scores", "config", "count"),
    [
        ([REACHED], TRUSTED, 1),
        ([REACHED, REACHED], TRUSTED, 2),
        (["missed"], TRUSTED, 0),
        ([REACHED], UNSEEN, 0),
        ([REACHED], {}, 0),
    ],
)
def test_goals_on_the_agents_word(scores: list[str], config: dict[str, Any], count: int) -> None:
    epochs = [whole(score(GOAL, float(each == REACHED), label=each)) for each in scores]
    found = counts(report_of({"a": epochs}, scenarios={"a": {"goal": "g"}}, **config))
    assert found.get("on_their_word", 0) == count


UNSAFE = {"label": "unsafe action", "call": 0}


@pytest.mark.parametrize(
    ("name", "tool", "count"),
    [
        ("process", Tool(returns=1), 1),
        ("process", Tool(returns=1, reads=True), 0),
        ("process", Tool(returns=1, writes=True), 0),
    ],
)
def test_a_tool_whose_effect_decides(name: str, tool: Tool, count: int) -> None:
    wrong = finding(HIGH, 0, metric=BEHAVIOR, **UNSAFE)
    played = Played((), ((wrong,),), calls=(ToolCall(name=name, args={}),))
    report = report_of({"a": [played]}, scenarios={"a": {"tools": {name: tool}}})
    assert counts(report).get("tools_unmarked", 0) == count
    if count:
        assert name in text_of(report, "tools_unmarked")


# ── logs ─────────────────────────────────────────────────────────────────────────────────────────

RECORDED = Stop(reason=StopReason.RECORDED, detail="log.jsonl:1")
UNREADABLE = Stop(reason=StopReason.UNREADABLE, detail="log.jsonl:2: no messages")


def log(
    *records: tuple[Stop, Sequence[Turn]], items: Sequence[ScoreItem] = (), tools: bool = False, **config: Any
) -> Report:
    settings = {"agent": {"name": "bot", "target": "a:b", "calls": "all"}, **config}
    lines = dict.fromkeys(config, 1)
    chosen = Config.model_validate(settings).model_copy(update={"lines": lines, "source": "c.yaml"})
    events: list[Event] = [started((), (), config=chosen, metrics=(LABELS,))]
    for number, (stop, turns) in enumerate(records):
        at = SampleKey(scenario=f"r{number}", agent="bot")
        scenario = Scenario(id=f"r{number}", **(READS if tools else {}))
        events.append(SampleStarted(key=at, scenario=scenario))
        events += [TurnFinished(key=at, index=n, turn=each) for n, each in enumerate(turns)]
        events += list(conversation(at, (), {None: tuple(items)}, stop=stop))[1:]
    return build_report([*events, RunFinished(finished_at="")])


SAID = (turn("hi", "hello"),)
ODD = (turn("hi", "hello").model_copy(update={"unplaced": ("a block",)}),)
CALLED = (turn("hi", "hello", PAYS),)


@pytest.mark.parametrize(
    ("records", "more", "found"),
    [
        pytest.param([(RECORDED, SAID)], {}, {"nothing_to_prove": 1}, id="words alone"),
        pytest.param([(RECORDED, CALLED)], {}, {}, id="a call"),
        pytest.param([(RECORDED, SAID), (RECORDED, CALLED)], {}, {}, id="one call"),
        pytest.param([(RECORDED, SAID)], {"items": [score("stars", 3)]}, {}, id="a score"),
        pytest.param([(RECORDED, SAID)], {"items": [HELD]}, {}, id="a check"),
        pytest.param(
            [(RECORDED, SAID)],
            {"items": [Check(name="answer", passed=True)]},
            {"nothing_to_prove": 1},
            id="a check nobody asked for",
        ),
        pytest.param([(RECORDED, SAID)], {"items": [finding(MEDIUM)]}, {}, id="a finding"),
        pytest.param(
            [(RECORDED, CALLED), (UNREADABLE, ())], {}, {"records_unreadable": 1}, id="an unreadable record"
        ),
        pytest.param([(RECORDED, CALLED), (RECORDED, ODD)], {}, {"not_fully_seen": 1}, id="not fully seen"),
        pytest.param(
            [(RECORDED, CALLED), (RECORDED, SAID)],
            {"items": [Check(name="python", passed=None)]},
            {"conversations_undecided": 2},
            id="undecided",
        ),
        pytest.param([(RECORDED, CALLED)], {"items": [finding(HIGH)]}, {}, id="findings are the result"),
    ],
)
def test_logs(
    records: list[tuple[Stop, Sequence[Turn]]], more: dict[str, Any], found: dict[str, int]
) -> None:
    assert counts(log(*records, **more)) == found


def test_a_log_with_a_severity_has_findings_below_it() -> None:
    report = log((RECORDED, CALLED), items=[finding(HIGH)], fail_on_severity="critical")
    assert counts(report) == {"findings_high": 1}
    partly = log((RECORDED, CALLED), (RECORDED, ODD), fail_on_severity="critical")
    assert counts(partly) == {}


def test_where_calls_could_have_been_made_their_absence_tells_something() -> None:
    assert "nothing_to_prove" not in counts(log((RECORDED, SAID), tools=True))
    assert "nothing_to_prove" not in counts(report_of({"a": [Played()]}))


# ── in one line ──────────────────────────────────────────────────────────────────────────────────


def test_all_remarks_in_one_line() -> None:
    assert format_caveats(*told(report_of({"a": [PASS]}))) == ""
    epochs = [whole(finding(HIGH), MISSED), whole(finding(HIGH), HELD), MET]
    baseline = Baseline(run_id="b", outcomes={}, gone=("x",))
    line = format_caveats(*told(report_of({"a": epochs}, run={"baseline": baseline})))
    below, rest = line.split("; ")
    assert below == "2 findings of high severity and 1 goal missed below the gate"
    assert "x" in rest
    alone = format_caveats(*told(report_of({"a": [PASS]}, run={"baseline": baseline})))
    assert alone == rest


def told(report: Report) -> tuple[Report, Any]:
    return report, decide(report)
