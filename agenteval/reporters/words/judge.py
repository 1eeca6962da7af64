"""Describe failed judges and detectors, the simulated user, overridden prompts and scripted replies, in the
same words for every format."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from os.path import normpath
from pathlib import Path
from typing import NamedTuple

from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import clean, one_line, one_line_message
from agenteval.core.sample_report import SampleReport, ScenarioReport
from agenteval.core.scenario import SampleKey
from agenteval.core.score import NOT_IN_SCENARIO, Check, Score, ScoreFailure, UserReview
from agenteval.core.selection import scenario_file
from agenteval.core.trajectory import StopReason, Turn, Usage
from agenteval.reporters.words.failure import title, turn_words
from agenteval.scoring.detectors.table import DETECTORS
from agenteval.verdict.report import Report
from agenteval.verdict.second_opinions import second_opinions
from agenteval.verdict.statistics import Interval, wilson

RAW_LIMIT = 200
"""The maximum number of characters shown from a failed judge's reply."""
_MESSAGE_LIMIT = 600


# ── judges that were asked again ─────────────────────────────────────────────────────────────────


def second_opinions_text(report: Report) -> str:
    """Return a sentence about judges that were asked a second time, or an empty string if no language model
    judged."""
    opinions = second_opinions(report)
    if not opinions.judges.is_spent or _only_scripted(report):
        return ""
    if not report.plan.suite.corroborate:
        return "`judge: {corroborate: false}`: each verdict comes from a single judge call"
    parts = []
    if opinions.doubted:
        what = f"{plural(opinions.doubted, 'verdict')} that would fail or excuse the agent"
        parts.append(f"rechecked {what}: {opinions.upheld:,} upheld")
    if opinions.sampled:
        what = f"{plural(opinions.sampled, 'clean verdict')} selected at random"
        parts.append(f"rechecked {what}: {opinions.differed:,} differed")
    if not parts:
        return ""
    calls = plural(opinions.usage.calls, "call")
    return f"{'; '.join(parts)} ({calls}, {opinions.share:.0%} of the judge tokens)"


def _only_scripted(report: Report) -> bool:
    scripted = [score.scripted for sample in report.samples for score in sample.all_scores]
    scripted += [check.scripted for sample in report.samples for check in sample.all_checks if check.by]
    return all(scripted)


# ── judges and detectors that failed ──────────────────────────────────────────────────────────────


class MissingScore(StrEnum):
    """The reason for a missing score. A judge that found too little information in the record to decide has
    not failed."""

    JUDGE = "Judges that failed"
    UNCLEAR = "Unclear to the judges"
    DETECTOR = "Detectors that failed"

    @property
    def remark(self) -> str:
        return _REMARKS[self]


_REMARKS = {
    MissingScore.JUDGE: "no score, and not the agent's fault",
    MissingScore.UNCLEAR: "no score: the record does not contain enough information to decide",
    MissingScore.DETECTOR: "a defect in agenteval, not the agent's fault",
}


def classify_missing_score(failure: ScoreFailure) -> MissingScore:
    if is_detector(failure.metric):
        return MissingScore.DETECTOR
    return MissingScore.UNCLEAR if failure.unclear else MissingScore.JUDGE


def describe_missing_score(missing: MissingScore) -> str:
    """Describe the reason for a missing score: ``the judge failed``, ``the detector failed`` or ``not
    clear``."""
    return {MissingScore.UNCLEAR: "not clear", MissingScore.DETECTOR: "the detector failed"}.get(
        missing, "the judge failed"
    )


@dataclass(frozen=True)
class FailedJudge:
    """A cause of missing scores, with the affected metrics and the number of affected samples."""

    metrics: tuple[str, ...]
    """The metrics without a score, or the detectors that failed."""
    full_message: str
    raw: str
    """The beginning of the judge's reply; empty for a detector, which does not reply."""
    times: int
    """The number of missing scores with this cause."""
    samples: int
    """The number of affected samples. It does not include the grouping of issues."""
    place: str
    """The first sample and turn in which the failure occurred, or the grouping of issues."""
    scenario: ScenarioReport | None = None
    missing_score: MissingScore = MissingScore.JUDGE
    in_grouping: bool = False
    """True if the grouping of issues failed for the same cause."""

    @property
    def message(self) -> str:
        return one_line_message(self.full_message, _MESSAGE_LIMIT)

    @property
    def names(self) -> str:
        """The metrics in short form, such as ``helpfulness, coherence and 6 more``."""
        return join_first([one_line(name, 60) for name in self.metrics], 3)

    @property
    def where(self) -> str:
        """The sample and turn of the failure, such as ``refund · epoch 2, turn 1``. If the failure occurred
        several times, this is the number of occurrences and the first occurrence."""
        if self.times == 1:
            return self.place
        grouping = " and the issue grouping" if self.in_grouping else ""
        within = f" in {plural(self.samples, 'sample')}{grouping}" if self.samples else ""
        return f"{self.times:,} times{within}, first in {self.place}"


class _JudgeFailure(NamedTuple):
    failure: ScoreFailure
    key: SampleKey | None
    place: str
    scenario: ScenarioReport | None


def failed_judges(report: Report) -> tuple[FailedJudge, ...]:
    """Return each cause of missing scores once, most frequent first. The causes are failed judges and
    detectors, and questions that were not clear to a judge. Author errors are excluded, because they are
    reported separately."""
    groups: dict[object, list[_JudgeFailure]] = {}
    for failure in _judge_failures(report):
        key = (strip_retry_counts(failure.failure.message), classify_missing_score(failure.failure))
        groups.setdefault(key, []).append(failure)
    return tuple(sorted(map(_to_failed_judge, groups.values()), key=lambda judge: -judge.times))


_RETRY_COUNTS = re.compile(r" \(tried (?:once|\d+ times), waited [\d.]+ s\)")


def strip_retry_counts(message: str) -> str:
    """Remove the retry counts from the message of a failed call, so that messages that differ only in these
    counts are treated as equal."""
    return _RETRY_COUNTS.sub("", message)


def _to_failed_judge(group: list[_JudgeFailure]) -> FailedJudge:
    first = group[0]
    raw = next((broken.failure.raw for broken in group if broken.failure.raw.strip()), "")
    return FailedJudge(
        metrics=tuple(dict.fromkeys(broken.failure.metric for broken in group)),
        full_message=first.failure.message,
        raw=clean(raw[:RAW_LIMIT]) + ("…" if len(raw) > RAW_LIMIT else ""),
        times=len(group),
        samples=len({broken.key for broken in group} - {None}),
        place=first.place,
        scenario=first.scenario,
        missing_score=classify_missing_score(first.failure),
        in_grouping=any(broken.key is None for broken in group),
    )


def is_detector(metric: str) -> bool:
    """Check whether ``metric`` is a detector, which is implemented in code, rather than a question to a
    judge."""
    return metric in DETECTORS


def _judge_failures(report: Report) -> Iterator[_JudgeFailure]:
    several = report.has_several_agents
    for scenario in report.scenarios:
        for sample in scenario.samples:
            name = title(scenario, sample.key, several_agents=several)
            for turn, failure in _sample_failures(sample):
                if not failure.author:
                    yield _JudgeFailure(failure, sample.key, name + turn_words(turn), scenario)
    for failure in report.issue_failures:
        if not failure.author:
            yield _JudgeFailure(failure, None, "issue grouping, done by code instead", None)


def _sample_failures(sample: SampleReport) -> Iterator[tuple[int | None, ScoreFailure]]:
    for index, turn in enumerate(sample.turns):
        yield from ((index, failure) for failure in turn.score_failures)
    yield from ((None, failure) for failure in sample.score_failures)


# ── the simulated user ───────────────────────────────────────────────────────────────────────────


class ReviewCounts(NamedTuple):
    """The number of reviewed conversations with a simulated user, by outcome and by whether the user was at
    fault."""

    failed: int = 0
    failed_at_fault: int = 0
    passed: int = 0
    """The number of reviewed conversations that passed. A random tenth of all passed conversations is
    reviewed."""
    passed_at_fault: int = 0
    not_in_scenario: int = 0
    """The number of conversations in which the known facts about the user do not determine whether the user
    was at fault."""

    @property
    def all(self) -> int:
        return self.failed + self.passed

    @property
    def at_fault(self) -> int:
        return self.failed_at_fault + self.passed_at_fault

    @property
    def interval(self) -> Interval:
        """The 95 % confidence interval (Wilson) for the fault rate."""
        return wilson(self.at_fault, self.all)


class Simulation(NamedTuple):
    """Statistics about the simulated user across several samples."""

    messages: int
    """The number of messages that the simulated user wrote or attempted to write."""
    refused: int
    """The number of rejected messages, whether or not a second attempt succeeded."""
    errored: int
    """The number of samples that ended because the model did not behave like a user."""
    reviews: ReviewCounts
    """The results of the judges' reviews of the user."""
    scripted: int
    """The number of messages from scripted replies. A message is not counted here or in ``real`` if every
    attempt to write it was rejected."""
    real: int
    """The number of messages written by a language model."""
    models: tuple[str, ...]
    """The models that simulated the user."""
    usage: Usage


def simulation(samples: Iterable[SampleReport]) -> Simulation:
    """Return statistics about the simulated user. All numbers are zero if no user in the samples was
    simulated by a model."""
    samples = tuple(samples)
    turns = [each.turn for sample in samples for each in sample.turns if is_simulated(each.turn)]
    models = [turn.user_model for turn in turns if turn.user_model]
    scripted = sum(map(is_scripted_model, models))
    reviews = [sample.review for sample in samples if sample.review]
    errored = sum(s.stop is not None and s.stop.reason is StopReason.SIMULATOR for s in samples)
    return Simulation(
        messages=len(turns),
        refused=sum(bool(turn.user_fault) for turn in turns),
        errored=errored - sum(review.decides for review in reviews),
        reviews=_count_reviews(reviews),
        scripted=scripted,
        real=len(models) - scripted,
        models=tuple(dict.fromkeys(models)),
        usage=sum((turn.user_usage for turn in turns), Usage()),
    )


def _count_reviews(reviews: Sequence[UserReview]) -> ReviewCounts:
    failed = [review.is_fault for review in reviews if review.failed]
    passed = [review.is_fault for review in reviews if not review.failed]
    not_in_scenario = sum(review.label == NOT_IN_SCENARIO for review in reviews)
    return ReviewCounts(len(failed), sum(failed), len(passed), sum(passed), not_in_scenario)


def refusals(report: Report, *, fatal: bool = True) -> tuple[tuple[str, str], ...]:
    """Return (location, reason) pairs for rejected messages and for users at fault, such as ``book-morning ·
    epoch 1, turn 2`` with ``spoke as …``. If ``fatal`` is false, faults that ended a sample or determined its
    outcome are excluded, because they are listed among the failures."""
    several = report.has_several_agents
    return tuple(
        (title(scenario, sample.key, several_agents=several) + turn_words(index), one_line(fault, 300))
        for scenario in report.scenarios
        for sample in scenario.samples
        for index, fault in _faults(sample)
        if fatal or fault not in _stop_detail(sample)
    )


def _faults(sample: SampleReport) -> Iterator[tuple[int | None, str]]:
    yield from ((i, each.turn.user_fault) for i, each in enumerate(sample.turns) if each.turn.user_fault)
    if sample.review and sample.review.is_fault:
        yield sample.review.turn, sample.review.sentence


def _stop_detail(sample: SampleReport) -> str:
    return sample.stop.detail if sample.stop else ""


def is_simulated(turn: Turn) -> bool:
    """Check whether a model wrote the user's message, or attempted to write it."""
    return bool(turn.user_model or turn.user_fault or turn.user_usage.calls)


def simulation_text(report: Report) -> str:
    """Return a sentence about the simulated user and its reviews, or an empty string if no user was simulated
    or reviewed."""
    counts = simulation(report.samples)
    if not counts.messages and not counts.errored:
        return _reviews_text(counts.reviews).removeprefix("; ")
    refused = f"{counts.refused:,} of {plural(counts.messages, 'message')} refused"
    errored = f"; {plural(counts.errored, 'sample')} errored as a result" if counts.errored else ""
    return f"{refused}{errored}{_reviews_text(counts.reviews)}"


def _reviews_text(reviews: ReviewCounts) -> str:
    """Return a phrase about the reviews, such as ``; at fault in 3 of 12 reviewed conversations: 25 % [9, 53]
    (3 of 8 that failed, …)``, or an empty string if there were no reviews."""
    if not reviews.all:
        return ""
    low, high = (round(100 * bound) for bound in reviews.interval)
    parts = [f"{reviews.failed_at_fault:,} of {reviews.failed:,} that failed"] if reviews.failed else []
    parts += (
        [f"{reviews.passed_at_fault:,} of {reviews.passed:,} that passed, drawn at random"]
        if reviews.passed
        else []
    )
    rate = f"{100 * reviews.at_fault / reviews.all:.0f} % [{low}, {high}]"
    what = f"{reviews.at_fault:,} of {plural(reviews.all, 'reviewed conversation')}"
    silent = f"; in {reviews.not_in_scenario:,}, the scenario did not say" if reviews.not_in_scenario else ""
    return f"; at fault in {what}: {rate} ({', '.join(parts)}){silent}"


# ── overridden prompts ───────────────────────────────────────────────────────────────────────────────


_USER_PROMPT = "user/simulated_user.md"


def overridden_prompts(report: Report) -> dict[str, str]:
    """Return the project's files, keyed by the path of the built-in prompt that each file overrides. For a
    scenario's own user prompt, the scenario's id is appended to the key."""
    own = _scenario_user_prompts(report)
    return report.plan.suite.prompts | {f"{_USER_PROMPT}::{name}": file for name, file in own.items()}


def overridden_text(report: Report) -> str:
    """Return a phrase such as ``prompts overridden: judges/helpfulness.md (my/helpfulness.md)``, or an empty
    string if no prompt was overridden. A file that several scenarios use is listed once."""
    files = [(name, file, "") for name, file in report.plan.suite.prompts.items()]
    scenarios: dict[str, list[str]] = {}
    for scenario, file in _scenario_user_prompts(report).items():
        scenarios.setdefault(file, []).append(one_line(scenario, 60))
    files += [(_USER_PROMPT, file, f" in {join_first(ids, 3)}") for file, ids in scenarios.items()]
    listed = ", ".join(f"{one_line(name, 60)} ({one_line(file, 120)}{where})" for name, file, where in files)
    return f"prompts overridden: {listed}" if listed else ""


def _scenario_user_prompts(report: Report) -> dict[str, str]:
    """Return the scenarios' own user prompts by scenario. Each path begins in the folder in which that of the
    scenario's file begins."""
    scenarios = {each.scenario.id: each.scenario for each in report.scenarios}
    return {
        name: Path(normpath(Path(scenario_file(scenario)).parent / scenario.user_prompt)).as_posix()
        for name, scenario in scenarios.items()
        if scenario.user_prompt is not None
    }


# ── scripted replies ─────────────────────────────────────────────────────────────────────────────


def is_scripted_model(name: str) -> bool:
    return name.startswith("scripted/")


class ReplyCounts(NamedTuple):
    """The number of scripted replies and the number of replies from a model, for one role."""

    scripted: int = 0
    real: int = 0


def replies_by_role(report: Report) -> Mapping[str, ReplyCounts]:
    """Return the reply counts for each role in which agenteval calls a model."""
    user, judge = simulation(report.samples), ReplyCounts()
    for sample in report.samples:
        judged: list[Score | Check] = [*sample.all_scores, *sample.all_checks]
        real = sum(bool(item.by) and not item.scripted for item in judged)
        if sample.review:
            judge = ReplyCounts(
                judge.scripted + sample.review.scripted, judge.real + (not sample.review.scripted)
            )
        judge = ReplyCounts(judge.scripted + sum(item.scripted for item in judged), judge.real + real)
    grouped = [is_scripted_model(issue.by) for issue in report.issues if issue.by]
    return {
        "user": ReplyCounts(user.scripted, user.real),
        "judge": judge,
        "dedup": ReplyCounts(sum(grouped), len(grouped) - sum(grouped)),
    }


def scripted_text(report: Report) -> str:
    """Return a sentence such as ``no language model was called for 24 judgments, 6 messages of the simulated
    user and …``, or an empty string if nothing was scripted."""
    if not report.scripted:
        return ""
    replies = replies_by_role(report)
    parts = [plural(replies["judge"].scripted, "judgment")] if replies["judge"].scripted else []
    if replies["user"].scripted:
        parts.append(f"{plural(replies['user'].scripted, 'simulated user message')}")
    if replies["dedup"].scripted:
        parts.append("issue grouping")
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"no language model was called for {listed or 'some findings'}: scripted replies"
