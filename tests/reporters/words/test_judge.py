"""Judges that failed or were asked again, the simulated user, and what was scripted, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from agenteval.core.score import (
    AS_IT_SHOULD,
    HELPED,
    HINDERED,
    NOT_IN_SCENARIO,
    RULED_OUT,
    Check,
    Score,
    ScoreFailure,
    Severity,
    UserReview,
    Vote,
)
from agenteval.core.trajectory import StopReason, Turn, Usage
from agenteval.reporters.words.judge import (
    FailedJudge,
    MissingScore,
    ReplyCounts,
    ReviewCounts,
    classify_missing_score,
    describe_missing_score,
    failed_judges,
    is_detector,
    is_scripted_model,
    is_simulated,
    overridden_text,
    refusals,
    replies_by_role,
    scripted_text,
    second_opinions_text,
    simulation,
    simulation_text,
    strip_retry_counts,
)
from agenteval.verdict.report import Report
from tests.support.score_samples import MODEL, SCRIPT, finding, lie_issue, simulated
from tests.support.verdict_runs import LOST, PASS, Played, report_of, with_suite

DETECTOR = "repeated_tool_call"


def failing(message: str = "no answer", metric: str = "coherence", **more: Any) -> ScoreFailure:
    return ScoreFailure(metric=metric, message=message, **more)


def conversations(*each: Sequence[Any], turns: Sequence[Sequence[Any]] = ((),)) -> Report:
    """One scenario, ``a``, with these items for each whole conversation."""
    return report_of({"a": [Played(tuple(items), turns=tuple(map(tuple, turns))) for items in each]})


def played_by(*turns: Turn, review: UserReview | None = None, report: Report | None = None) -> Report:
    """One conversation of these turns."""
    report = report or report_of({"a": [Played(turns=((),) * len(turns))]})
    (scenario,) = report.scenarios
    first, *others = scenario.samples
    told = tuple(replace(old, turn=new) for old, new in zip(first.turns, turns, strict=False))
    samples = (replace(first, turns=told, review=review), *others)
    return replace(report, scenarios=(replace(scenario, samples=samples),))


def reviewed(*reviews: UserReview | None) -> Report:
    report = report_of({"a": [PASS] * len(reviews)})
    (scenario,) = report.scenarios
    samples = tuple(replace(s, review=review) for s, review in zip(scenario.samples, reviews, strict=True))
    return replace(report, scenarios=(replace(scenario, samples=samples),))


def review(label: str, *, failed: bool = True, **more: Any) -> UserReview:
    return UserReview(label=label, failed=failed, **{"reason": "r", "evidence": "e", **more})


# Asked again


def judged(*votes: tuple[Any, bool], calls: int | None = None, **more: Any) -> Score:
    """A judgement of these answers, each of one call and ten tokens."""
    used = Usage(calls=1, input_tokens=10)
    each = tuple(Vote(verdict=verdict, against=against, usage=used) for verdict, against in votes)
    total = Usage(calls=calls or len(votes) or 1, input_tokens=10 * (calls or len(votes) or 1))
    return Score(**{"metric": "m", "label": "x", "votes": each, "usage": total, "by": MODEL, **more})


@pytest.mark.parametrize(
    ("items", "facts", "absent"),
    [
        ([judged(("x", True), ("x", True))], ["1 verdict that", "1 upheld", "1 call", "50%"], "random"),
        ([judged(("x", True), ("no failure", False))], ["1 verdict that", "0 upheld"], "random"),
        (
            [judged((RULED_OUT, False), (RULED_OUT, False), label=RULED_OUT)],
            ["1 verdict that", "1 upheld"],
            "random",
        ),
        (
            [judged(("no failure", False), ("x", True), sampled=True)],
            ["1 clean verdict selected at random", "1 differed"],
            "upheld",
        ),
        (
            [
                judged(("x", True), ("x", True), ("x", True)),
                judged(("x", True), ("y", False)),
                judged(("no failure", False), ("no failure", False), sampled=True),
                judged(),
            ],
            ["2 verdicts that", "1 upheld; ", "1 clean verdict selected", "0 differed", "4 calls, 50%"],
            "nothing",
        ),
    ],
    ids=["upheld", "not upheld", "excused", "sampled", "all"],
)
def test_judges_that_were_asked_again(items: list[Score], facts: list[str], absent: str) -> None:
    text = second_opinions_text(conversations(items))
    assert [fact for fact in facts if fact not in text] == []
    assert absent not in text


def test_judges_that_were_not_asked_again_are_no_sentence() -> None:
    assert second_opinions_text(conversations([judged()])) == ""
    assert second_opinions_text(conversations([])) == ""
    assert second_opinions_text(conversations([judged(usage=None)])) == ""


def test_that_nothing_is_asked_again_is_said_only_of_a_model() -> None:
    setting = "corroborate: false"
    assert setting in second_opinions_text(with_suite(conversations([judged()]), corroborate=False))
    for scripted in (judged(scripted=True), Check(name="c", passed=True, by=SCRIPT, scripted=True)):
        used = scripted.model_copy(update={"usage": Usage(calls=1)})
        told = conversations([used, Check(name="plain", passed=True)])
        assert second_opinions_text(with_suite(told, corroborate=False)) == ""


@pytest.mark.parametrize(
    "real",
    [judged(), Check(name="criteria", passed=True, by=MODEL, usage=Usage(calls=1))],
    ids=["score", "criterion"],
)
def test_one_judge_that_is_a_model_is_enough(real: Score | Check) -> None:
    items = [judged(scripted=True), Check(name="plain", passed=True), real]
    assert second_opinions_text(with_suite(conversations(items), corroborate=False))


# Failed judges


@pytest.mark.parametrize(
    ("failure", "kind", "words"),
    [
        (failing(), MissingScore.JUDGE, "the judge failed"),
        (failing(unclear=True), MissingScore.UNCLEAR, "not clear"),
        (failing(metric=DETECTOR), MissingScore.DETECTOR, "the detector failed"),
        (failing(metric=DETECTOR, unclear=True), MissingScore.DETECTOR, "the detector failed"),
    ],
)
def test_why_a_score_is_missing(failure: ScoreFailure, kind: MissingScore, words: str) -> None:
    assert classify_missing_score(failure) is kind
    assert describe_missing_score(kind) == words
    assert is_detector(failure.metric) is (kind is MissingScore.DETECTOR)


def test_each_kind_has_a_remark_of_its_own() -> None:
    remarks = {kind: kind.remark for kind in MissingScore}
    assert "not the agent's fault" in remarks[MissingScore.JUDGE]
    assert "agenteval" in remarks[MissingScore.DETECTOR]
    assert "enough information" in remarks[MissingScore.UNCLEAR]
    assert len(set(remarks.values())) == 3


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("HTTP 500 (tried 3 times, waited 1.5 s)", "HTTP 500"),
        ("HTTP 500 (tried once, waited 0 s): x", "HTTP 500: x"),
        ("HTTP 500 (tried twice, waited 0 s)", "HTTP 500 (tried twice, waited 0 s)"),
        ("HTTP 500", "HTTP 500"),
    ],
)
def test_messages_that_differ_in_the_tries_are_equal(message: str, left: str) -> None:
    assert strip_retry_counts(message) == left


def test_one_cause_is_one_entry_and_the_most_frequent_comes_first() -> None:
    report = report_of(
        {
            "a": [
                Played((failing("rare"),), turns=((failing("down (tried once, waited 0 s)"),), ())),
                Played(
                    (failing("down (tried 2 times, waited 9 s)", "stars"),), turns=((), (failing("down"),))
                ),
            ],
            "b": [Played((failing("down", unclear=True),), turns=((),))],
        }
    )
    down, rare, unclear = failed_judges(report)
    assert (down.metrics, down.times, down.samples) == (("coherence", "stars"), 3, 2)
    assert down.place == "a · epoch 1, turn 1"
    assert down.where == "3 times in 2 samples, first in a · epoch 1, turn 1"
    assert down.scenario is report.scenarios[0]
    assert (rare.times, rare.where, rare.message) == (1, "a · epoch 1", "rare")
    assert unclear.missing_score is MissingScore.UNCLEAR
    assert (unclear.place, unclear.scenario) == ("b", report.scenarios[1])


def test_the_mistakes_of_an_author_are_left_out() -> None:
    mistake = failing(author=True)
    assert failed_judges(conversations([mistake], turns=[[mistake]])) == ()
    assert failed_judges(replace(conversations([]), issue_failures=(mistake,))) == ()


def test_grouping_that_failed_has_no_scenario() -> None:
    (found,) = failed_judges(replace(conversations([]), issue_failures=(failing("HTTP 500", "dedup"),)))
    assert (found.metrics, found.scenario, found.times, found.samples) == (("dedup",), None, 1, 0)
    assert "issue grouping" in found.place


@pytest.mark.parametrize(
    ("judged", "samples", "where"),
    [
        (0, 0, "2 times, first in issue grouping"),
        (1, 1, "3 times in 1 sample and the issue grouping, first in a"),
    ],
)
def test_grouping_is_no_sample(judged: int, samples: int, where: str) -> None:
    report = conversations([failing("HTTP 500")] * judged)
    (found,) = failed_judges(replace(report, issue_failures=(failing("HTTP 500", "dedup"),) * 2))
    assert found.samples == samples
    assert found.where.startswith(where)


def test_with_several_agents_the_place_names_the_agent() -> None:
    report = report_of({"a": [Played((failing(),), turns=((),))]}, agents=("x", "y"))
    (found,) = failed_judges(report)
    assert (found.place, found.times, found.samples) == ("a · x", 2, 2)


@pytest.mark.parametrize(
    ("raws", "shown"),
    [
        (["", " ", "{x", "{y"], "{x"),
        (["x" * 200], "x" * 200),
        (["x" * 201], "x" * 200 + "…"),
        (["a\x1b[31mb"], "ab"),
        ([""], ""),
    ],
)
def test_the_beginning_of_the_first_reply_that_says_something(raws: list[str], shown: str) -> None:
    (found,) = failed_judges(conversations([failing(raw=raw) for raw in raws]))
    assert found.raw == shown


@pytest.mark.parametrize(("names", "text"), [("a", "a"), ("abc", "a, b, c"), ("abcd", "a, b, c and 1 more")])
def test_the_first_three_metrics_are_named(names: str, text: str) -> None:
    assert FailedJudge(tuple(names), "m", "", 1, 1, "p").names == text


def test_a_long_message_keeps_its_remedy() -> None:
    judge = FailedJudge(("a",), f"{'x' * 900} — set `a: b`", "", 1, 1, "p")
    assert len(judge.message) <= 603
    assert judge.message.endswith("… — set `a: b`")


# The simulated user


@pytest.mark.parametrize(
    ("more", "is_one"),
    [
        ({}, False),
        ({"script": 0}, False),
        ({"user_model": "m"}, True),
        ({"user_fault": "f"}, True),
        ({"user_usage": Usage(calls=1)}, True),
    ],
)
def test_whose_message_is_simulated(more: Mapping[str, Any], is_one: bool) -> None:
    assert is_simulated(Turn(user="hi", **more)) is is_one


def test_the_messages_of_the_simulated_user_are_counted() -> None:
    plain = Turn(user="hi", script=0)
    lost = Turn(user="", user_fault="silent", user_usage=Usage(calls=2))
    report = played_by(
        simulated("a", "b"), plain, simulated("a", "b", fault="f"), simulated("a", "b", scripted=True), lost
    )
    found = simulation(report.samples)
    assert (found.messages, found.refused, found.errored) == (4, 2, 0)
    assert (found.scripted, found.real, found.models) == (1, 2, (MODEL, SCRIPT))
    assert (found.usage.calls, found.usage.input_tokens) == (5, 1000)
    assert found.reviews == ReviewCounts()


def test_without_a_simulated_user_all_is_zero() -> None:
    found = simulation(report_of({"a": [PASS, LOST]}).samples)
    assert found == (0, 0, 0, ReviewCounts(), 0, 0, (), Usage())
    assert simulation([]) == found


@pytest.mark.parametrize(("decides", "errored"), [(False, 1), (True, 0)])
def test_a_user_at_fault_by_a_review_is_no_error_of_the_user(decides: bool, errored: bool) -> None:
    lost = report_of({"a": [replace(LOST, stop=StopReason.SIMULATOR)]})
    told = review(HINDERED, explains=True) if decides else None
    assert simulation(played_by(report=lost, review=told).samples).errored == errored


def test_reviews_are_counted_by_outcome_and_fault() -> None:
    report = reviewed(
        review(HELPED),
        review(HINDERED),
        review(AS_IT_SHOULD),
        review(NOT_IN_SCENARIO),
        review(HELPED, failed=False),
        review(NOT_IN_SCENARIO, failed=False),
        None,
    )
    counts = simulation(report.samples).reviews
    assert counts == (4, 2, 2, 1, 2)
    assert (counts.all, counts.at_fault) == (6, 3)
    assert counts.interval.low < 0.5 < counts.interval.high


@pytest.mark.parametrize(
    ("reviews", "facts", "absent"),
    [
        (
            [review(HELPED), review(AS_IT_SHOULD), review(AS_IT_SHOULD), review(AS_IT_SHOULD)],
            ["at fault in 1 of 4 reviewed conversations: 25 % [5, 70]", "(1 of 4 that failed)"],
            "passed",
        ),
        (
            [review(HELPED, failed=False)],
            ["1 of 1 reviewed conversation: 100 % [21, 100]", "(1 of 1 that passed"],
            "that failed",
        ),
        (
            [review(NOT_IN_SCENARIO), review(AS_IT_SHOULD, failed=False)],
            [
                "0 of 2 reviewed",
                ": 0 % [0, ",
                "(0 of 1 that failed, 0 of 1 that passed",
                "in 1, the scenario",
            ],
            "refused",
        ),
    ],
)
def test_reviews_in_words(reviews: list[UserReview], facts: list[str], absent: str) -> None:
    text = simulation_text(reviewed(*reviews))
    assert [fact for fact in facts if fact not in text] == []
    assert text.startswith("at fault")
    assert absent not in text
    assert (NOT_IN_SCENARIO in text) is any(each.label == NOT_IN_SCENARIO for each in reviews)


def test_refused_messages_in_words() -> None:
    assert simulation_text(report_of({"a": [PASS]})) == ""
    told = played_by(simulated("a", "b"), simulated("a", "b", fault="f"))
    assert simulation_text(told) == "1 of 2 messages refused"
    assert simulation_text(played_by(simulated("a", "b"))) == "0 of 1 message refused"
    lost = report_of({"a": [replace(LOST, stop=StopReason.SIMULATOR)]})
    assert simulation_text(lost).startswith("0 of 0 messages refused; 1 sample errored")
    both = played_by(simulated("a", "b"), review=review(HELPED))
    assert simulation_text(both).startswith("0 of 1 message refused; at fault in 1 of 1 ")


def test_what_was_refused_and_where() -> None:
    told = played_by(
        simulated("a", "b"), simulated("a", "b", fault="spoke\nas x"), review=review(HELPED, turn=0)
    )
    first, second = refusals(told)
    assert first == ("a, turn 2", "spoke as x")
    assert second[0] == "a, turn 1"
    assert HELPED in second[1]
    assert refusals(played_by(simulated("a", "b"), review=review(AS_IT_SHOULD, turn=0))) == ()
    whole = played_by(simulated("a", "b"), review=review(HINDERED))
    assert [place for place, _ in refusals(whole)] == ["a"]


def test_a_fault_that_ended_the_sample_is_among_the_failures_already() -> None:
    lost = report_of({"a": [replace(LOST, stop=StopReason.SIMULATOR, detail="gave up: silent")]})
    told = played_by(
        simulated("a", "b", fault="silent"), simulated("a", "b", fault="rude"), report=lost, review=None
    )
    assert [fault for _, fault in refusals(told)] == ["silent", "rude"]
    assert [fault for _, fault in refusals(told, fatal=False)] == ["rude"]


def test_with_several_agents_a_refusal_names_the_agent() -> None:
    report = report_of({"a": [PASS]}, agents=("x", "y"))
    first, second = report.scenarios
    (sample,) = second.samples
    turns = (replace(sample.turns[0], turn=simulated("a", "b", fault="f")),)
    told = replace(report, scenarios=(first, replace(second, samples=(replace(sample, turns=turns),))))
    assert refusals(told) == (("a · y, turn 1", "f"),)


# Prompts and scripted replies


def test_overridden_prompts() -> None:
    report = report_of({"a": [PASS]})
    assert overridden_text(report) == ""
    told = with_suite(report, prompts={"judges/x.md": "my/x.md", "user.md": "u.md"})
    assert overridden_text(told).endswith(": judges/x.md (my/x.md), user.md (u.md)")


@pytest.mark.parametrize(
    ("name", "is_one"), [(SCRIPT, True), (MODEL, False), ("", False), ("x/scripted/", False)]
)
def test_scripted_models(name: str, is_one: bool) -> None:
    assert is_scripted_model(name) is is_one


def test_replies_are_counted_by_role() -> None:
    met = Check(name="criteria", passed=True, by=SCRIPT, scripted=True)
    by_model = Score(metric="m", value=1, by=MODEL)
    items = [
        Score(metric="m", value=1, by=SCRIPT, scripted=True),
        met,
        by_model,
        by_model,
        Score(metric="m", value=1),
    ]
    report = conversations(items, turns=[[]] * 3)
    turns = (simulated("a", "b"), simulated("a", "b"), simulated("a", "b", scripted=True))
    told = replace(
        played_by(*turns, report=report, review=review(HELPED, scripted=True)),
        issues=(
            lie_issue(scripted=True),
            lie_issue(),
            lie_issue(),
            lie_issue().model_copy(update={"by": ""}),
        ),
    )
    assert replies_by_role(told) == {
        "user": ReplyCounts(1, 2),
        "judge": ReplyCounts(3, 2),
        "dedup": ReplyCounts(1, 2),
    }
    real = played_by(*turns, report=report, review=review(HELPED))
    assert replies_by_role(real)["judge"] == ReplyCounts(2, 3)
    assert replies_by_role(report_of({"a": [PASS]})) == dict.fromkeys(
        ("user", "judge", "dedup"), ReplyCounts()
    )


@pytest.mark.parametrize(
    ("judgements", "messages", "grouped", "listed"),
    [
        (0, 0, False, ""),
        (1, 0, False, "1 judgment:"),
        (2, 0, False, "2 judgments:"),
        (0, 1, False, "1 simulated user message:"),
        (0, 0, True, "issue grouping:"),
        (2, 2, False, "2 judgments and 2 simulated user messages:"),
        (2, 2, True, "2 judgments, 2 simulated user messages and issue grouping:"),
    ],
)
def test_what_was_scripted(judgements: int, messages: int, grouped: bool, listed: str) -> None:
    scores = [Score(metric="m", value=1, by=SCRIPT, scripted=True)] * judgements
    report = played_by(
        *[simulated("a", "b", scripted=True)] * messages, report=conversations(scores, turns=[[]] * 2)
    )
    told = replace(report, issues=(lie_issue(scripted=True),) if grouped else (lie_issue(),))
    text = scripted_text(told)
    assert bool(text) is bool(listed)
    assert listed in text


def test_findings_alone_are_scripted() -> None:
    found = finding("x", Severity.LOW, None, scripted=True)
    assert "findings" in scripted_text(conversations([found]))
