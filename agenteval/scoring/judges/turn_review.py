"""Judges all turns of a conversation by several label rubrics in one call, after the last turn (``judge:
{calls: review}``).

The reviewer returns findings. Each one is treated like an answer of its rubric's own judge about that turn:
its references are checked, its severity is that of its effect, and if it would gate, that turn is judged
again alone. So every turn gets the scores and findings that it would have got from a call of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic import BaseModel, ValidationError

from agenteval.conversation.current_sample import current_sample_key
from agenteval.core.folding import fold
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, Score, ScoreFailure
from agenteval.core.trajectory import Trajectory, Usage, sum_usage
from agenteval.files.prompts import Rubric
from agenteval.scoring import questions
from agenteval.scoring.judges.corroboration import JudgeAnswer, ask_model, draw_number, is_drawn
from agenteval.scoring.judges.judge import Judge, JudgeTarget
from agenteval.scoring.judges.judge_inputs import ConversationView, JudgeInputs
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.replies import build_clean_reply, read_finding
from agenteval.scoring.judges.requests import build_review_request, build_subject
from agenteval.scoring.judges.shared_calls import ask_concurrently
from agenteval.scoring.metrics import REVIEW
from agenteval.scoring.transcript import JudgeTranscript, find_first_unseen

EXTRA_BYTES = 8_000
"""The size by which the request for a review, apart from the record, may exceed that about one turn."""

ResultItem: TypeAlias = Score | ScoreFailure | Finding
Results: TypeAlias = Sequence[ResultItem]
"""What became of one finding: a failure, or a score, which is followed by a finding if it is a fault."""


class JudgedTurn(NamedTuple):
    """What a score is about: a metric, and a turn (from 0)."""

    metric: str
    turn: int


class ReviewFinding(NamedTuple):
    """A finding of a review, or what the review lacks."""

    places: tuple[JudgedTurn, ...]
    """What it is about. If its turn does not exist, this is every turn, since any of them may be meant."""
    value: Any = None
    """The finding as an answer of its rubric's own judge, or ``None`` if that judge cannot answer so."""
    flaw: str = ""
    is_verdict: bool = False
    """True if a failure is reported, even though the finding cannot be used."""


class TurnReview:
    """Judges every turn of a conversation by the rubrics of ``judges``, all of which label turns."""

    scope: Final = "conversation"
    metric: Final = REVIEW

    def __init__(self, judges: Sequence[Judge], inputs: JudgeInputs) -> None:
        self._judges = judges
        self._inputs = inputs
        self._view = ConversationView(inputs, parameters=any(judge.shows_parameters for judge in judges))

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Mapping[int, Results]:
        """Return the scores and findings of each turn that is judged."""
        review = ReviewedConversation(self._judges, scenario, trajectory)
        if not review.targets:
            return {}
        record = self._view.transcript(
            scenario, review.trajectory, review.last_turn, reserved=EXTRA_BYTES, every_turn=True
        )
        if record.misfit:
            return review.fail(ScoreFailure(metric=REVIEW, message=record.misfit))
        reply = await ask_model(self._inputs.model, review.build_request(record))
        if isinstance(reply, ScoreFailure):
            return review.fail(reply)
        return await self._score(review, reply, record)

    async def _score(
        self, review: ReviewedConversation, reply: ModelReply, record: JudgeTranscript
    ) -> Mapping[int, Results]:
        """Score each turn by the findings about it. Whatever would gate is judged again."""
        results: dict[JudgedTurn, list[Results]] = {}
        asked: list[tuple[JudgedTurn, JudgeQuestion, ModelReply]] = []
        for finding in review.read_findings(reply.value, reply.scripted):
            for place in finding.places:
                if finding.flaw:
                    results.setdefault(place, []).append([review.reject(place, finding, reply)])
                else:
                    known = _as_reply(finding.value, reply)
                    asked.append((place, review.build_question(place), known))
        named = {*results, *(place for place, _, _ in asked)}
        clean = [place for place in review.targets if place not in named]
        drawn = self._draw(clean, record)
        for place in clean:
            known = _as_reply(review.build_clean_value(place, reply.value), reply)
            if place == drawn:
                asked.append((place, replace(review.build_question(place), is_drawn=True), known))
            else:
                results[place] = [review.score(place, JudgeAnswer(known, Usage()))]
        inputs = self._inputs
        answers = await ask_concurrently(inputs.model, [each[1:] for each in asked], inputs.gating)
        for (place, _, _), answer in zip(asked, answers, strict=True):
            results.setdefault(place, []).append(review.score(place, answer))
        return review.by_turn(results, reply.usage)

    def _draw(self, clean: Sequence[JudgedTurn], record: JudgeTranscript) -> JudgedTurn | None:
        """Draw the clean verdict that is checked again: one in a tenth of the reviews. A tenth of all clean
        verdicts would cost as much as the review itself."""
        about = (self._inputs.gating.seed, str(current_sample_key()), REVIEW, record.text)
        return clean[draw_number(*about, "place") % len(clean)] if clean and is_drawn(*about) else None


def _as_reply(value: Any, review: ModelReply) -> ModelReply:
    """Return a part of a review as a reply of its own, whose usage is that of the review."""
    return review._replace(value=value, usage=Usage())


class ReviewedConversation:
    """A conversation under review: what is judged in each turn, and the questions of code about it."""

    def __init__(self, judges: Sequence[Judge], scenario: Scenario, trajectory: Trajectory) -> None:
        turns = trajectory.all_turns if trajectory.ends_with_call else trajectory.turns
        self.trajectory = Trajectory(turns=turns, visibility=trajectory.visibility)
        self._scenario = scenario
        self._judges = {judge.metric: judge for judge in judges}
        prefixes = [
            Trajectory(turns=turns[:count], visibility=trajectory.visibility)
            for count in range(1, len(turns) + 1)
        ]
        self.targets: dict[JudgedTurn, JudgeTarget] = {
            JudgedTurn(judge.metric, turn): target
            for judge in judges
            for turn, prefix in enumerate(prefixes)
            if (target := judge.build_target(scenario, prefix)) is not None
        }
        """What is judged, by metric and turn."""
        self._raised: dict[str, list[Finding]] = {
            metric: [
                raised
                for place, target in self.targets.items()
                if place.metric == metric
                for raised in judge.find_raised_questions(target)
            ]
            for metric, judge in self._judges.items()
        }

    @property
    def last_turn(self) -> int:
        return max(place.turn for place in self.targets)

    # ── asked ────────────────────────────────────────────────────────────────────────────────────

    def build_request(self, record: JudgeTranscript) -> ModelRequest:
        """Build the request for the review."""
        last = self.last_turn + 1
        return build_review_request(
            [self._rubric(metric) for metric in dict.fromkeys(place.metric for place in self.targets)],
            record,
            subject=build_subject(self._scenario, self.trajectory, metric=REVIEW, turn=None),
            turns="turn 1" if last == 1 else f"turns 1 to {last}",
            flaw_in=self.find_flaws,
        )

    def _rubric(self, metric: str) -> Rubric:
        """Return the rubric with every label that can be shown in one of its turns, and with the questions of
        code."""
        first = next(target for place, target in self.targets.items() if place.metric == metric)
        rubric = self._judges[metric].offered_rubric(first.trajectory)
        asked = [
            f"Turn {(raised.turn or 0) + 1}. {questions.format_question(raised)}"
            for raised in self._raised[metric]
        ]
        since = (find_first_unseen(self.trajectory) or 0) + 1
        unseen = questions.ask_about_unseen_calls(rubric, self._scenario, self.trajectory)
        return questions.with_questions(
            rubric, [*asked, *(f"Turns from {since} on. {each}" for each in unseen)]
        )

    def build_question(self, place: JudgedTurn) -> JudgeQuestion:
        """Build the question about one turn alone."""
        return self._judges[place.metric].build_question_about(self.targets[place])

    # ── answered ─────────────────────────────────────────────────────────────────────────────────

    def find_flaws(self, answer: Any, is_scripted: bool) -> str:
        """Describe what is wrong with a review, or return an empty string if nothing is wrong."""
        found = self.read_findings(answer, is_scripted)
        return "; ".join(f"{each.places[0].metric}: {each.flaw}" for each in found if each.flaw)

    def read_findings(self, answer: Any, is_scripted: bool) -> Iterator[ReviewFinding]:
        """Yield each finding of a review once, and a flaw for each question that it does not answer. A
        scripted review may leave out answers."""
        for metric in dict.fromkeys(place.metric for place in self.targets):
            ok = self._judges[metric].ok_labels
            seen: set[tuple[object, ...]] = set()
            for each in getattr(answer, metric):
                key = (each.turn, each.label, each.call, fold(each.evidence))
                if each.label not in ok and key not in seen:
                    seen.add(key)
                    yield self._read_finding(metric, each, is_scripted)
            given = getattr(answer, metric)
            answered = {(key, each.turn - 1) for each in given for key in (each.question, each.label)}
            for number, raised in enumerate(() if is_scripted else self._raised[metric], 1):
                turn = raised.turn or 0
                if answered.isdisjoint({(number, turn), (raised.label, turn)}):
                    flaw = f"no object answers question {number}, about turn {turn + 1}"
                    yield ReviewFinding((JudgedTurn(metric, turn),), flaw=flaw)

    def _read_finding(self, metric: str, each: Any, is_scripted: bool) -> ReviewFinding:
        judge, place = self._judges[metric], JudgedTurn(metric, each.turn - 1)
        if place not in self.targets:
            places = tuple(place for place in self.targets if place.metric == metric)
            judged = ", ".join(str(place.turn + 1) for place in places)
            flaw = f'"turn" is {each.turn}; the turns to judge are {judged}'
            return ReviewFinding(places, flaw=flaw, is_verdict=True)
        target = self.targets[place]
        try:
            value = read_finding(each, judge.offered_rubric(target.trajectory))
        except ValidationError:
            flaw = f'"{each.label}" is no label for turn {each.turn}, where not all calls can be seen'
            return ReviewFinding((place,), flaw=flaw)
        flaw = judge.find_flaw(value, is_scripted, target)
        return ReviewFinding((place,), value, f"turn {each.turn}: {flaw}" if flaw else "")

    def build_clean_value(self, place: JudgedTurn, answer: Any) -> BaseModel:
        """Return the answer that finds no failure in a turn."""
        judge = self._judges[place.metric]
        rubric = judge.offered_rubric(self.targets[place].trajectory)
        for each in getattr(answer, place.metric):
            if each.turn - 1 == place.turn and each.label in judge.ok_labels:
                return read_finding(each, rubric)
        return build_clean_reply(rubric)

    # ── scored ───────────────────────────────────────────────────────────────────────────────────

    def score(self, place: JudgedTurn, answer: JudgeAnswer | ScoreFailure) -> Results:
        """Convert an answer about a turn to a score and a finding."""
        return self._judges[place.metric].score_answer(answer, self.targets[place])

    def reject(self, place: JudgedTurn, finding: ReviewFinding, reply: ModelReply) -> ScoreFailure:
        """Return the failure of a turn about which the review says something that cannot be used."""
        judge, target = self._judges[place.metric], self.targets[place]
        rejected = JudgeAnswer(_as_reply(finding.value, reply), Usage())
        failure = judge.reject_answer(rejected, finding.flaw, target)
        return failure if finding.value else failure.model_copy(update={"is_verdict": finding.is_verdict})

    def fail(self, failure: ScoreFailure) -> Mapping[int, Results]:
        """Return the failures of all turns if there is no review."""
        results = {
            place: [self.score(place, failure.model_copy(update={"metric": place.metric, "usage": Usage()}))]
            for place in self.targets
        }
        return self.by_turn(results, failure.usage)

    def by_turn(
        self, results: Mapping[JudgedTurn, Sequence[Results]], usage: Usage | None
    ) -> Mapping[int, Results]:
        """Group results by turn. The first result includes the usage of the review."""
        turns: dict[int, list[ResultItem]] = {}
        for place in sorted(self.targets, key=lambda place: place.turn):
            first, *others = join_results(results[place])
            turns.setdefault(place.turn, []).extend((_with_usage(first, usage), *others))
            usage = None
        return turns


def join_results(results: Sequence[Results]) -> list[ResultItem]:
    """Return the results for one metric and turn, of which there is one for each finding of a review.

    The score is that of the most severe finding. A failure is kept, whatever else was found, and only it if
    nothing was found: what could not be decided is not clean. The first item includes the usage of the scores
    that are left out."""
    found = sorted((each for each in results if len(each) > 1), key=_severity_rank, reverse=True)
    heads = [each[0] for each in (*found, *(each for each in results if len(each) == 1))]
    failures = [head for head in heads if isinstance(head, ScoreFailure)]
    scores = [head for head in heads if isinstance(head, Score)]
    kept = 0 if failures and not found else 1
    items: list[ResultItem] = [*scores[:kept], *(each[1] for each in found), *failures]
    return [_with_usage(items[0], *(score.usage for score in scores[kept:])), *items[1:]]


def _severity_rank(results: Results) -> int:
    return max(item.severity.rank for item in results if isinstance(item, Finding))


def _with_usage(item: ResultItem, *more: Usage | None) -> ResultItem:
    """Return a score or a failure with additional usage."""
    assert not isinstance(item, Finding)
    return item.model_copy(update={"usage": sum_usage(usage for usage in (item.usage, *more) if usage)})
