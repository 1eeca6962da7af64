"""Remarks beside a verdict: which are made, where each is shown, and their limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.config import AcceptedFailure
from agenteval.core.decision import EVERY_SAMPLE, AcceptedState, AcceptedUse, GateRow
from agenteval.core.event import Notice
from agenteval.core.scenario import SampleKey
from agenteval.core.score import Score, Verdict
from agenteval.core.trajectory import Usage
from agenteval.reporters.sections.remarks import MOST, caveats, notes, remarks
from agenteval.reporters.words.facts import Facts
from agenteval.verdict.gates import decide
from agenteval.verdict.report import Report
from tests.support.score_samples import judged_run
from tests.support.verdict_runs import (
    FAIL,
    LOST,
    PASS,
    Played,
    judge_failed,
    report_of,
    whole,
    with_suite,
)

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.INCONCLUSIVE


def facts_of(report: Report, **decision: Any) -> Facts:
    return Facts(report, replace(decide(report), **decision))


def played(*conversations: Played | None, **more: Any) -> Facts:
    return facts_of(report_of({"a": conversations}, **more))


def texts(found: Any, label: str) -> list[str]:
    return [remark.text for remark in found if remark.label == label]


def noticed(*notices: Notice) -> Facts:
    """A log, about whose verdict nothing is said."""
    report = replace(report_of({"a": [PASS]}), notices=notices, usage={}, ledger=())
    return facts_of(report, is_reported=True)


def test_a_plain_run_has_no_remarks() -> None:
    facts = noticed()
    assert list(caveats(facts)) == []
    assert list(remarks(facts)) == []
    assert list(notes(facts)) == []


# ── notices ──────────────────────────────────────────────────────────────────────────────────────


def test_notices_are_shown_by_level() -> None:
    facts = noticed(*(Notice(level=level, text=level.upper()) for level in ("info", "warning", "error")))
    assert list(remarks(facts)) == [("error", "ERROR"), ("warning", "WARNING")]
    assert list(notes(facts)) == [("error", "ERROR"), ("warning", "WARNING"), ("info", "INFO")]
    assert list(caveats(facts)) == []


def test_equal_notices_are_one_with_their_number_and_place() -> None:
    key = SampleKey(scenario="a", agent="bot")
    same = Notice(level="warning", text="slow", key=key)
    found = texts(remarks(noticed(same, Notice(level="warning", text="slow"), same)), "warning")
    assert found == [f"slow ({key}) (×2)", "slow"]


@pytest.mark.parametrize(("count", "more"), [(MOST, None), (MOST + 1, "1 more"), (MOST + 1200, "1,200 more")])
def test_only_the_first_remarks_of_a_label_are_shown(count: int, more: str | None) -> None:
    facts = noticed(*(Notice(level="warning", text=f"w{n}") for n in range(count)))
    shown = texts(remarks(facts), "warning")
    assert shown[:MOST] == [f"w{n}" for n in range(MOST)]
    assert len(shown) == MOST + bool(more)
    assert more is None or (more in shown[-1] and "-v" in shown[-1])
    assert len(texts(notes(facts), "warning")) == count


# ── what was not decided, judged or gated ────────────────────────────────────────────────────────

TOLERANT: dict[str, Any] = {"fault_tolerance": 0.5}


@pytest.mark.parametrize(
    ("conversations", "config", "decision", "shown"),
    [
        ((PASS, LOST), TOLERANT, {}, True),
        ((PASS, LOST), {}, {}, False),
        ((PASS, LOST), TOLERANT, {"verdict": FAILED}, False),
        ((PASS, LOST), TOLERANT, {"verdict": UNDECIDED, "is_reported": True}, True),
        ((PASS, PASS), TOLERANT, {}, False),
    ],
    ids=["tolerated", "not tolerated", "of a failed run", "of a log", "none lost"],
)
def test_tolerated_losses_are_told(
    conversations: tuple[Played, ...], config: dict[str, Any], decision: dict[str, Any], shown: bool
) -> None:
    report = report_of({"a": conversations}, **config)
    assert bool(texts(remarks(facts_of(report, **decision)), "errored")) is shown


def test_a_tolerated_failure_is_no_loss() -> None:
    report = report_of({"a": [PASS, PASS, FAIL]}, gates={"pass_rate": {"at_least": 0.3, "reject_below": 0.1}})
    assert texts(remarks(facts_of(report)), "errored") == []


def test_missing_scores_are_told_with_their_cause_and_place() -> None:
    (text,) = texts(remarks(played(whole(judge_failed("stars")))), "no score")
    assert text == "stars: no answer (a)"


@pytest.mark.parametrize(
    ("ungated", "text"),
    [((), []), (("cost", "steps"), ["cost, steps"]), (("stars",), []), (("stars", "cost"), ["cost"])],
    ids=["none", "measured", "scored ones are in the table", "both"],
)
def test_measurements_without_a_gate_are_told(ungated: tuple[str, ...], text: list[str]) -> None:
    found = texts(remarks(facts_of(report_of({"a": [PASS]}), ungated=ungated)), "ungated")
    assert [each.partition(":")[0] for each in found] == text


# ── scripted replies ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("scripted", [True, False])
def test_scripted_replies_are_told_everywhere(scripted: bool) -> None:
    facts = Facts(*judged_run(scripted=scripted))
    assert len(texts(caveats(facts), "scripted replies")) == scripted
    assert len(texts(remarks(facts), "scripted")) == scripted
    assert len(texts(notes(facts), "note")) == scripted


def test_overridden_prompts_and_the_profile_are_told() -> None:
    report = with_suite(report_of({"a": [PASS]}), prompts={"judges/goal.md": "my/goal.md"}, profile="nightly")
    facts = facts_of(report)
    for found in (
        texts(caveats(facts), "judging"),
        texts(remarks(facts), "note"),
        texts(notes(facts), "note"),
    ):
        assert ["my/goal.md" in text for text in found] == [True]
    assert texts(notes(facts), "profile") == ["nightly"]


def test_author_errors_stand_among_the_notes_before_other_errors() -> None:
    report = replace(report_of({"a": [PASS]}), notices=(Notice(level="error", text="n"),))
    facts = facts_of(report, author_errors=("a.yaml:1: bad", "b.yaml:2: bad"))
    assert texts(notes(facts), "error") == ["a.yaml:1: bad", "b.yaml:2: bad", "n"]
    assert texts(remarks(facts), "error") == ["n"]


def test_accepted_failures_are_remarks_at_once() -> None:
    entry = AcceptedFailure(fingerprint="0123456789ab", owner="ana", reason="r", expires="2026-12-31")
    facts = facts_of(report_of({"a": [PASS]}), accepted=(AcceptedUse(entry, AcceptedState.IN_FORCE, 1),))
    (text,) = texts(remarks(facts), "accepted")
    assert text.startswith("0123456789ab ")
    assert texts(notes(facts), "accepted") == []


def test_what_would_decide_is_one_note_and_several_remarks() -> None:
    rows = tuple(GateRow(f"g{n}", 0.5, 0.9, "b", "w", UNDECIDED, resolution=f"epochs: {n}") for n in (1, 2))
    facts = facts_of(report_of({"a": [PASS]}), gates=rows)
    each = ["epochs: 1 (g1)", "epochs: 2 (g2)"]
    assert texts(remarks(facts), "to decide") == each
    assert texts(caveats(facts), "to decide") == each
    assert texts(notes(facts), "to decide") == ["\n".join(each)]


# ── repeated runs ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("told", "agents", "flaky"),
    [
        ({"a": [PASS]}, ("bot",), []),
        ({"a": [PASS, PASS]}, ("bot",), []),
        ({"a": [FAIL, FAIL]}, ("bot",), []),
        ({"a": [PASS, FAIL], "b": [PASS, PASS, FAIL]}, ("bot",), ["a (1 of 2), b (2 of 3)"]),
        ({"a": [PASS, FAIL]}, ("bot", "new"), ["a · bot (1 of 2), a · new (1 of 2)"]),
        (
            {name: [PASS, FAIL] for name in "abcdefg"},
            ("bot",),
            [", ".join(f"{name} (1 of 2)" for name in "abcde") + " and 2 more"],
        ),
    ],
)
def test_flaky_scenarios_are_named_with_their_counts(
    told: Mapping[str, list[Played | None]], agents: tuple[str, ...], flaky: list[str]
) -> None:
    assert texts(remarks(facts_of(report_of(told, agents=agents))), "flaky") == flaky


@pytest.mark.parametrize(
    ("conversations", "facts"),
    [
        ((PASS,), None),
        ((PASS, PASS), ["pass^1 100.0%", "pass^2 100.0%", "no scenario was flaky"]),
        ((PASS, FAIL), ["pass^1 50.0%", "pass^2 0.0%", "flaky: a (1 of 2)"]),
        ((PASS, LOST), ["no scenario was flaky"]),
    ],
)
def test_repeats_are_noted(conversations: tuple[Played, ...], facts: list[str] | None) -> None:
    found = texts(notes(played(*conversations)), "repeats")
    assert len(found) == (facts is not None)
    assert all(fact in found[0] for fact in facts or ())


def test_at_most_four_rates_are_noted() -> None:
    (text,) = texts(notes(played(*[PASS] * 6)), "repeats")
    assert [f"pass^{k} " in text for k in range(1, 7)] == [True] * 4 + [False] * 2


# ── error rates ──────────────────────────────────────────────────────────────────────────────────


def test_a_green_run_of_few_epochs_is_often_wrong() -> None:
    (text,) = texts(remarks(played(PASS, PASS)), "error rates")
    assert "green" in text
    (advised,) = texts(notes(played(PASS, PASS)), "error rates")
    assert advised.startswith(text + "; ")
    assert "pass_rate" in advised


def test_the_advice_needs_repeats_the_remark_does_not() -> None:
    facts = played(PASS)
    assert len(texts(remarks(facts), "error rates")) == 1
    assert texts(notes(facts), "error rates") == []


def test_a_red_run_of_many_conversations_is_often_wrong() -> None:
    facts = played(*[PASS] * 39, FAIL)
    (text,) = texts(remarks(facts), "error rates")
    assert "red" in text


@pytest.mark.parametrize(
    "facts",
    [
        played(*[PASS] * 40),
        played(PASS, FAIL),
        played(PASS, LOST),
        played(PASS, PASS, gates={"pass_rate": {"at_least": 0.5, "reject_below": 0.2}}),
        facts_of(report_of({"a": [PASS, PASS]}), is_reported=True),
        facts_of(
            report_of({"a": [*[PASS] * 39, FAIL]}),
            gates=tuple(GateRow(name, 0, 1, "b", "w", FAILED) for name in (EVERY_SAMPLE, "thresholds.x")),
        ),
    ],
    ids=["many green", "few red", "undecided", "another rule", "a log", "another gate failed too"],
)
def test_no_error_rate_is_told(facts: Facts) -> None:
    assert texts(remarks(facts), "error rates") == []


# ── usage ────────────────────────────────────────────────────────────────────────────────────────


def usage_note(**used: Usage) -> list[str]:
    report = replace(report_of({"a": [PASS]}), usage=used, ledger=())
    return texts(notes(facts_of(report)), "usage")


@pytest.mark.parametrize(
    ("spent", "text"),
    [
        (Usage(), None),
        (Usage(calls=1), "1 call, tokens not reported"),
        (Usage(cached_calls=1200), "1,200 from the cache"),
        (Usage(calls=2, cached_calls=1), "2 calls, 1 from the cache, tokens not reported"),
        (
            Usage(calls=2, input_tokens=1000, output_tokens=5, cost=0.5),
            "2 calls, 1,000 tokens in, 5 out, cost 0.5000 USD",
        ),
        (
            Usage(calls=2, input_tokens=1000, cached_tokens=700, output_tokens=5, estimated=True),
            "2 calls, ≈1,000 tokens in (≈700 cached), ≈5 out, cost unknown",
        ),
        (
            Usage(calls=1, output_tokens=1700, unsplit=True),
            "1 call, 1,700 tokens in and out, cost unknown",
        ),
        (Usage(input_tokens=4), "4 tokens in, 0 out, cost unknown"),
    ],
)
def test_the_usage_of_a_role(spent: Usage, text: str | None) -> None:
    assert usage_note(agent=spent) == ([] if text is None else [f"agent {text}"])


def test_usage_is_one_note_with_a_line_for_each_role() -> None:
    (text,) = usage_note(agent=Usage(calls=1), user=Usage(), judge=Usage(calls=2))
    assert [line.split()[0] for line in text.splitlines()] == ["agent", "judge"]


def test_scripted_replies_are_counted_only_beside_real_ones() -> None:
    (text,) = texts(notes(Facts(*judged_run(scripted=True))), "usage")
    _, user, judge, dedup = text.splitlines()
    assert all("scripted: " in line and "tokens" not in line for line in (user, judge, dedup))
    scores = [Score(metric="m", value=1.0, by="x/y", scripted=each) for each in (True, True, False)]
    report = replace(report_of({"a": [whole(*scores)]}), usage={"judge": Usage(calls=3)}, ledger=())
    (text,) = texts(notes(facts_of(report)), "usage")
    assert text == "judge 3 calls, 2 scripted"


def test_the_cost_is_noted_as_one() -> None:
    (text,) = texts(notes(Facts(*judged_run())), "cost")
    first, *unknown = text.splitlines()
    assert "0.0430 USD" in first
    assert len(unknown) == 2


def test_second_opinions_are_a_remark_only_without_them() -> None:
    report, decision = judged_run()
    without = Facts(with_suite(report, corroborate=False), decision)
    (text,) = texts(remarks(without), "judges")
    assert "corroborate" in text
    assert texts(notes(without), "judges") == [text]
    assert texts(remarks(Facts(report, decision)), "judges") == []


def test_the_simulated_user_is_a_remark_where_a_message_was_refused() -> None:
    facts = Facts(*judged_run())
    (text,) = texts(remarks(facts), "user")
    assert "2 of 6" in text
    assert texts(remarks(played(PASS)), "user") == []
