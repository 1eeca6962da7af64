"""A failure is known again in the next run: by names, whatever a judge says of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Expectation, SampleKey, Scenario, ScriptedTurn
from agenteval.core.score import Check, Finding, References, ScoreItem, Severity
from agenteval.core.trajectory import ToolCall
from agenteval.verdict.fingerprints import FingerprintedFailure, failures_of
from agenteval.verdict.report import build_report
from tests.support.kit import Project
from tests.support.report_samples import conversation, started, turn

KEY = SampleKey(scenario="book", agent="bot")
SCENARIO = Scenario(id="book", turns=(ScriptedTurn(user="Book a table."), ScriptedTurn(user="And?")))
CALL = ToolCall(name="create_booking", args={"time": "20:00", "seats": 2})


def finding(**more: object) -> Finding:
    values = {
        "detector": "judge",
        "metric": "tool_call_behavior_failure",
        "label": "wrong arguments",
        "severity": Severity.MEDIUM,
        "turn": 0,
        "call": 0,
        **more,
    }
    return Finding(**values)  # type: ignore[arg-type]


def sample(
    *items: ScoreItem, at: int | None = None, key: SampleKey = KEY, calls: tuple[ToolCall, ...] = (CALL,)
) -> SampleReport:
    turns = (turn("Book a table.", "Booked.", *calls), turn("And?", "Done.").model_copy(update={"script": 1}))
    events = [started((SCENARIO,), (key,)), *conversation(key, turns, {at: items})]
    (only,) = build_report(events).samples
    return only


def found(*items: ScoreItem, at: int | None = None, **more: object) -> tuple[FingerprintedFailure, ...]:
    return failures_of(sample(*items, at=at, **more), SCENARIO).all  # type: ignore[arg-type]


def one(*items: ScoreItem, at: int | None = None, **more: object) -> str:
    (failure,) = found(*items, at=at, **more)
    return failure.fingerprint


def broken(name: str, *parts: str, detail: str = "") -> Check:
    return Check(name=name, passed=False, parts=parts, detail=detail)


# ── findings ─────────────────────────────────────────────────────────────────────────────────────


LESSER = [severity for severity in Severity if severity is not Severity.CRITICAL]


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(LESSER))
def test_what_a_judge_says_of_it_does_not_matter(evidence: str, why: str, severity: Severity) -> None:
    other = finding(evidence=evidence, explanation=why, severity=severity, scripted=True)
    assert one(other) == one(finding())


def test_a_judges_finding_is_its_label_and_the_call_with_its_arguments() -> None:
    other = SampleKey(scenario="book", agent="another", epoch=7)
    same = CALL.model_copy(update={"args": {"seats": 2.0, "time": "20:00"}})
    assert one(finding(), key=other, calls=(same,)) == one(finding())
    assert one(finding(turn=1)) == one(finding())
    assert one(finding(severity=Severity.CRITICAL, evidence="x")) == one(finding())
    names = {
        one(finding(), calls=(ToolCall(name=name, args=args),))
        for name, args in (("a", {"x": 1}), ("b", {"x": 1}), ("a", {"x": 2}), ("a", {}), ("a", {"x": "1"}))
    }
    assert len(names) == 5


def test_or_the_rule_and_where_there_is_neither_the_label_alone() -> None:
    def name(rule: str, **more: object) -> str:
        return one(finding(call=None, references=References(rule=rule), **more), calls=())

    assert name("No refunds.", evidence="a") == name("no refunds", evidence="b", severity=Severity.CRITICAL)
    assert name("No refunds.") != name("No exchanges.")
    assert name("", evidence="a") == name("", evidence="b")


def test_a_critical_one_in_words_alone_is_its_quotation_but_not_how_its_lines_are_broken() -> None:
    def name(evidence: str, **more: object) -> str:
        return one(finding(evidence=evidence, call=None, severity=Severity.CRITICAL, **more), calls=())

    assert len({name("all gone"), name("all  sold"), one(finding(call=None), calls=())}) == 3
    assert name("all gone") == name(" all\n gone ", explanation="in other words")
    # A scenario has one goal: how a judge words that it was missed does not matter.
    assert name("no", metric="goal_completion") == name("never", metric="goal_completion")


def test_a_finding_of_code_is_its_place_and_its_values() -> None:
    def name(at: int = 0, calls: tuple[ToolCall, ...] = (CALL,), **more: object) -> str:
        return one(finding(detector="wrong_arguments", turn=at, **more), calls=calls)

    other = ToolCall(name="create_booking", args={"time": "20:00", "seats": 3})
    assert len({name(), name(at=1), name(calls=(other,)), name(call=None, evidence="BK-7")}) == 4
    assert name(explanation="in other words", severity=Severity.CRITICAL) == name()
    words = [name(call=None, evidence=text) for text in ("BK-7", "BK-8", " BK-7 ")]
    assert (words[0] == words[2], len(set(words))) == (True, 2)


@pytest.mark.parametrize(
    "other",
    [
        finding(label="wrong tool"),
        finding(metric="agent_behavior_failure"),
        finding(detector="wrong_arguments"),
        finding(criterion="Is polite."),
    ],
)
def test_each_name_matters(other: Finding) -> None:
    assert one(other) != one(finding(), calls=(CALL, ToolCall(name="other", args={})))


@pytest.mark.parametrize(
    ("told", "what"),
    [
        (finding(), 'wrong arguments: create_booking(seats=2, time="20:00")'),
        (finding(detector="wrong_arguments"), 'wrong arguments: create_booking(seats=2, time="20:00") '
         "(wrong_arguments, turn 1)"),
        (finding(detector="ungrounded_value", label="false information", call=None, turn=1, evidence="BK-7"),
         "false information: “BK-7” (ungrounded_value, turn 2)"),
        (finding(call=None, references=References(rule="No refunds.")), "wrong arguments: rule “no refunds”"),
        (finding(label="missing tool call", call=None, references=References(tool="pay")),
         "missing tool call: pay"),
        (finding(metric="agent_behavior_failure", label="unsafe action", call=None, evidence="All  gone.",
                 severity=Severity.CRITICAL), "unsafe action: “All gone.”"),
        (finding(metric="agent_behavior_failure", label="false information", call=None, evidence="x"),
         "false information"),
        (finding(criterion="Is polite.", call=None), "wrong arguments: Is polite."),
    ],
)  # fmt: skip
def test_what_it_covers_is_printed(told: Finding, what: str) -> None:
    (failure,) = found(told)
    assert failure.what == what


def test_of_what_is_too_long_to_be_printed_a_digest_is() -> None:
    long = [ToolCall(name="pay", args={"note": "x" * 1000 + end}) for end in "ab"]
    (one_of, other) = (found(finding(), calls=(call,))[0].what for call in long)
    assert one_of != other
    assert (len(one_of), one_of[:300]) == (len(other), other[:300])


def test_it_is_twelve_digits_for_good() -> None:
    """Accept lists in repositories hold these."""
    assert one(finding()) == "995b4359bc88"
    assert one(broken("tool_calls", "missing book(…)")) == "9c5cdd96f6b7"


# ── checks ───────────────────────────────────────────────────────────────────────────────────────


def test_each_part_of_a_rule_is_a_failure_of_its_own() -> None:
    both = found(broken("output.contains", "25", "sunny"))
    assert [failure.what for failure in both] == ["output.contains: 25", "output.contains: sunny"]
    assert one(broken("output.contains", "25")) == both[0].fingerprint


def test_the_detail_of_a_check_does_not_matter_and_its_turn_does() -> None:
    assert one(broken("limits.steps", detail="7 steps")) == one(broken("limits.steps", detail="9 steps"))
    places = {one(broken("limits.steps"), at=at) for at in (None, 0, 1)}
    assert len(places) == 3


def test_an_empty_answer_is_one_failure_though_the_turn_and_the_whole_tell_it() -> None:
    whole, own = sample(broken("answer")), sample(broken("answer"), at=1)
    joined = replace(whole, turns=own.turns)
    assert len(failures_of(joined, SCENARIO).all) == 1


def test_a_simulated_turn_has_no_number_to_be_known_by() -> None:
    simulated = [
        replace(
            told := sample(broken("limits.steps"), at=at),
            turns=tuple(replace(t, turn=t.turn.model_copy(update={"script": None})) for t in told.turns),
        )
        for at in (0, 1)
    ]
    assert len({f.fingerprint for s in simulated for f in failures_of(s, SCENARIO).all}) == 1


def test_a_criterion_is_known_by_the_authors_sentence_with_or_without_its_finding() -> None:
    short, long = "Is polite.", "Is polite. — Always, to everybody."
    scenario = SCENARIO.model_copy(update={"expect": Expectation(criteria=(short, long))})

    def names(criterion: str, why: str, *more: Finding) -> set[str]:
        check = Check(name="criteria", passed=False, detail=f"{criterion} — fail: {why}", by="m")
        return {f.fingerprint for f in failures_of(sample(check, *more), scenario).all}

    assert names(short, "rude") == names(short, "It shouted.")
    assert names(short, "rude") != names(long, "rude")
    told = finding(metric="criteria", label="criterion not met", criterion=short, turn=None, call=None)
    assert names(short, "rude", told) == {one(told)}


def test_an_unknown_tool_is_one_failure_though_a_check_and_a_finding_tell_it() -> None:
    told = finding(detector="unknown_tool", label="wrong tool")
    (failure,) = found(broken("unknown_tool", "create_booking"), told)
    assert failure.fingerprint == one(told)
    assert failure.severity is None  # it is a broken check, whatever its severity


def test_a_sample_without_failures_has_none() -> None:
    assert found(Check(name="answer", passed=True), Check(name="limits.tokens", passed=None)) == ()


# ── through the command line ─────────────────────────────────────────────────────────────────────

AGENT = """
    async def agent(messages, ctx):
        await ctx.call_tool("search", {"city": "Rome"})
        await ctx.call_tool("nonsense", {"b": 1, "a": 2})
        return "It is %d degrees."
"""
SCENARIOS = """
    id: weather
    tools: {search: {returns: {temp: 25}}}
    turns: [Hello]
    expect:
      output: {contains: ["25", sunny]}
      tool_calls: {calls: [{name: book, args: {time: "20:00"}}], forbidden: [{name: search}]}
"""


def fingerprints(project: Project) -> tuple[dict[str, list[str]], list[str], list[str]]:
    """Of the failed checks, the findings, and the issues of the last run."""
    sample = project.sample()
    checks = {check["name"]: check["fingerprints"] for check in sample["checks"] if not check["passed"]}
    findings = [finding["fingerprint"] for finding in sample["findings"]]
    issues = [name for issue in project.results()["summary"]["issues"] for name in issue["fingerprints"]]
    return checks, findings, issues


def test_the_next_run_gives_the_same_ones(project: Project) -> None:
    project.config()
    project.scenarios(SCENARIOS)
    project.agent(AGENT % 20)
    assert project.run().code == 1
    checks, findings, issues = fingerprints(project)
    assert set(checks) == {"output.contains", "tool_calls", "unknown_tool"}
    assert [len(names) for names in (checks["output.contains"], checks["tool_calls"])] == [2, 2]
    assert set(checks["unknown_tool"]) <= set(findings)
    assert set(issues) == set(findings)
    shown = project.call("report", "latest", "-v").out
    assert all(f"#{name}" in shown for names in checks.values() for name in names)

    project.agent(AGENT % 25)  # now one of the two texts is there
    project.run()
    again, *_ = fingerprints(project)
    assert again["output.contains"] == checks["output.contains"][1:]
    assert {k: v for k, v in again.items() if k != "output.contains"} == {
        k: v for k, v in checks.items() if k != "output.contains"
    }
