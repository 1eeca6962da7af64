"""Judges and detectors that broke, the simulated user, prompts of the project's own, and what no language
model said, in words for all formats."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from agenteval.plurals import plural
from agenteval.report import Report, ScenarioReport
from agenteval.reporters.failure_text import title, turn_words
from agenteval.safe_text import clean, one_line
from agenteval.sample_report import SampleReport
from agenteval.scenario import SampleKey
from agenteval.score import Check, Score, ScoreFailure
from agenteval.second_opinions import second_opinions
from agenteval.severity import LABEL_OF_DETECTOR
from agenteval.trajectory import StopReason, Turn, Usage

RAW_LIMIT = 200
"""Characters of what a broken judge said that are shown."""
_MESSAGE_LIMIT = 600


# ── judges that were asked again ─────────────────────────────────────────────────────────────────


def second_opinions_text(report: Report) -> str:
    """What came of asking judges again, in a sentence; empty where no language model judged."""
    told = second_opinions(report)
    if not told.judges.is_spent or _only_scripted(report):
        return ""
    if not report.run.config.judge.corroborate:
        return "judge: {corroborate: false}: each verdict is one judge's word, asked once"
    parts = []
    if told.doubted:
        what = f"{plural(told.doubted, 'verdict')} that would fail something"
        parts.append(f"{what} asked again, {told.upheld:,} upheld")
    if told.sampled:
        what = plural(told.sampled, "clean one")
        parts.append(f"{what} asked again by lot, {told.differed:,} answered otherwise")
    if not parts:
        return ""
    return f"{'; '.join(parts)} ({plural(told.usage.calls, 'call')}, {told.share:.0%} of the judges' tokens)"


def _only_scripted(report: Report) -> bool:
    scripted = [score.scripted for sample in report.samples for score in sample.all_scores]
    scripted += [check.scripted for sample in report.samples for check in sample.all_checks if check.by]
    return all(scripted)


# ── judges and detectors that broke ──────────────────────────────────────────────────────────────


class Lack(StrEnum):
    """Why there is no score. A judge that says that the record does not decide has not broken."""

    JUDGE = "Judges that broke"
    UNCLEAR = "Not clear to the judges"
    DETECTOR = "Detectors that broke"

    @property
    def remark(self) -> str:
        return _REMARKS[self]


_REMARKS = {
    Lack.JUDGE: "no score, and not the agent's fault",
    Lack.UNCLEAR: "no score: the record does not decide it",
    Lack.DETECTOR: "a defect of agenteval's own, and not the agent's fault",
}


def lack_of(failure: ScoreFailure) -> Lack:
    if is_detector(failure.metric):
        return Lack.DETECTOR
    return Lack.UNCLEAR if failure.unclear else Lack.JUDGE


def lack_in_words(lack: Lack) -> str:
    """``the judge broke``, ``the detector broke`` or ``not clear``."""
    return {Lack.UNCLEAR: "not clear", Lack.DETECTOR: "the detector broke"}.get(lack, "the judge broke")


@dataclass(frozen=True)
class BrokenJudge:
    """A way in which there were no scores: the metrics, why, how often, where first, and what was said there.
    Of a detector no judge was asked: ``metrics`` are detectors."""

    metrics: tuple[str, ...]
    full_message: str
    raw: str
    times: int
    samples: int
    place: str
    scenario: ScenarioReport | None = None
    lack: Lack = Lack.JUDGE

    @property
    def message(self) -> str:
        return one_line(self.full_message, _MESSAGE_LIMIT)

    @property
    def names(self) -> str:
        """``helpfulness, coherence and 6 more``"""
        named = ", ".join(one_line(name, 60) for name in self.metrics[:3])
        return named + (f" and {len(self.metrics) - 3} more" if len(self.metrics) > 3 else "")

    @property
    def where(self) -> str:
        """``refund · epoch 2, turn 1``; of several: how many, and the first."""
        if self.times == 1:
            return self.place
        return f"{self.times:,} times in {plural(self.samples, 'sample')}, first in {self.place}"


class _Broken(NamedTuple):
    failure: ScoreFailure
    key: SampleKey | None
    place: str
    scenario: ScenarioReport | None


def broken_judges(report: Report, *, together: bool = True) -> tuple[BrokenJudge, ...]:
    """Each message once with all that it was met at, the most frequent first; or, not ``together``,
    each failure. Detectors that broke are among them, and what was not clear. The author's mistakes are told
    as such elsewhere."""
    groups: dict[object, list[_Broken]] = {}
    for number, broken in enumerate(_broken(report)):
        alike = (broken.failure.message, lack_of(broken.failure))
        groups.setdefault(alike if together else number, []).append(broken)
    judges = [_broken_judge(group) for group in groups.values()]
    return tuple(sorted(judges, key=lambda judge: -judge.times) if together else judges)


def _broken_judge(group: list[_Broken]) -> BrokenJudge:
    first = group[0]
    said = next((broken.failure.raw for broken in group if broken.failure.raw.strip()), "")
    return BrokenJudge(
        metrics=tuple(dict.fromkeys(broken.failure.metric for broken in group)),
        full_message=first.failure.message,
        raw=clean(said[:RAW_LIMIT]) + ("…" if len(said) > RAW_LIMIT else ""),
        times=len(group),
        samples=len({broken.key for broken in group}),
        place=first.place,
        scenario=first.scenario,
        lack=lack_of(first.failure),
    )


def is_detector(metric: str) -> bool:
    """Whether what failed to score is a check in code, so that no judge was asked."""
    return metric in LABEL_OF_DETECTOR


def _broken(report: Report) -> Iterator[_Broken]:
    several = len({scenario.agent for scenario in report.scenarios}) > 1
    for scenario in report.scenarios:
        for sample in scenario.samples:
            name = title(scenario, sample.key, several_agents=several)
            for turn, failure in _failures(sample):
                if not failure.author:
                    yield _Broken(failure, sample.key, name + turn_words(turn), scenario)
    for failure in report.issue_failures:
        if not failure.author:
            yield _Broken(failure, None, "the grouping of issues; code grouped them", None)


def _failures(sample: SampleReport) -> Iterator[tuple[int | None, ScoreFailure]]:
    for index, turn in enumerate(sample.turns):
        yield from ((index, failure) for failure in turn.score_failures)
    yield from ((None, failure) for failure in sample.score_failures)


# ── the simulated user ───────────────────────────────────────────────────────────────────────────


class Simulation(NamedTuple):
    """How often a simulated user wrote, and how often what it wrote was refused, once or for good;
    ``lost``: samples in which it was no user at all. ``models``: who played it; ``scripted`` and
    ``real``: how many of the messages no language model wrote, and one did (of one that was refused for
    good, neither is known)."""

    messages: int
    refused: int
    lost: int
    scripted: int
    real: int
    models: tuple[str, ...]
    usage: Usage


def simulation(samples: Iterable[SampleReport]) -> Simulation:
    """Over some samples; of none that a model played the user of, all is zero."""
    samples = tuple(samples)
    turns = [told.turn for sample in samples for told in sample.turns if is_simulated(told.turn)]
    stops = [sample.stop.reason for sample in samples if sample.stop]
    scripted = sum(is_scripted_model(turn.user_model) for turn in turns)
    return Simulation(
        messages=len(turns),
        refused=sum(bool(turn.user_fault) for turn in turns),
        lost=stops.count(StopReason.SIMULATOR),
        scripted=scripted,
        real=sum(bool(turn.user_model) for turn in turns) - scripted,
        models=tuple(dict.fromkeys(turn.user_model for turn in turns if turn.user_model)),
        usage=sum((turn.user_usage for turn in turns), Usage()),
    )


def refusals(report: Report, *, fatal: bool = True) -> tuple[tuple[str, str], ...]:
    """Where a message was refused, and why: ``book-morning · epoch 1, turn 2``, ``spoke as …``. Not
    ``fatal``: without those that ended their sample, which stand among the failures."""
    several = len({scenario.agent for scenario in report.scenarios}) > 1
    return tuple(
        (
            title(scenario, sample.key, several_agents=several) + turn_words(index),
            one_line(told.turn.user_fault, 300),
        )
        for scenario in report.scenarios
        for sample in scenario.samples
        for index, told in enumerate(sample.turns)
        if told.turn.user_fault and (fatal or told.turn.user_fault not in _last_words(sample))
    )


def _last_words(sample: SampleReport) -> str:
    return sample.stop.detail if sample.stop else ""


def is_simulated(turn: Turn) -> bool:
    """Whether a model said the user's message, or tried to."""
    return bool(turn.user_model or turn.user_fault or turn.user_usage.calls)


def simulation_text(report: Report) -> str:
    """``2 of 14 messages refused; 1 sample lost to it``; empty if no user was simulated."""
    told = simulation(report.samples)
    if not told.messages and not told.lost:
        return ""
    lost = f"; {plural(told.lost, 'sample')} lost to it" if told.lost else ""
    return f"{told.refused:,} of {plural(told.messages, 'message')} refused{lost}"


# ── what judges and users were told in other words ───────────────────────────────────────────────


def overridden_text(report: Report) -> str:
    """``prompts overridden: judges/helpfulness.md (my/helpfulness.md)``; empty if none is."""
    own = report.run.config.prompts
    told = ", ".join(f"{one_line(name, 60)} ({one_line(file, 120)})" for name, file in own.items())
    return f"prompts overridden: {told}" if told else ""


# ── what no language model said ──────────────────────────────────────────────────────────────────


def is_scripted_model(name: str) -> bool:
    return name.startswith("scripted/")


class Replies(NamedTuple):
    """How many replies of a role were scripted, and how many a model's."""

    scripted: int = 0
    real: int = 0


def replies_by_role(report: Report) -> Mapping[str, Replies]:
    """For the roles that agenteval's own models play."""
    user, judge = simulation(report.samples), Replies()
    for sample in report.samples:
        said: list[Score | Check] = [*sample.all_scores, *sample.all_checks]
        real = sum(bool(item.by) and not item.scripted for item in said)
        judge = Replies(judge.scripted + sum(item.scripted for item in said), judge.real + real)
    grouped = [is_scripted_model(issue.by) for issue in report.issues if issue.by]
    return {
        "user": Replies(user.scripted, user.real),
        "judge": judge,
        "dedup": Replies(sum(grouped), len(grouped) - sum(grouped)),
    }


def scripted_text(report: Report) -> str:
    """``no language model was called for 24 judgements, 6 messages of the simulated user and …``; empty
    if nothing was scripted."""
    if not report.scripted:
        return ""
    told = replies_by_role(report)
    parts = [plural(told["judge"].scripted, "judgement")] if told["judge"].scripted else []
    if told["user"].scripted:
        parts.append(f"{plural(told['user'].scripted, 'message')} of the simulated user")
    if told["dedup"].scripted:
        parts.append("the grouping of issues")
    listed = " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
    return f"no language model was called for {listed or 'some findings'}: scripted replies"
