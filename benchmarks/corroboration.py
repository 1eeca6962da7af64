"""What asking again buys and costs, with judges whose error is known.

    python benchmarks/corroboration.py [--runs 4000] [--seed 1]

The real code (``ask_with_second_opinion`` of ``judges.corroboration``) asks a judge that errs by dice:
it calls a clean conversation failed with chance ``false alarm``, and a faulty one with ``sensitivity``.
``shared`` is the share of errors that are the question's and not the call's: with 0 each call errs by
itself, with 1 every call about a conversation says the same, and asking again is of no use. A run has 60
conversations; a *clean* run has no fault in it, a *bad* one a fault in six. Beside the simulation stands the
exact figure where there is one.

A judge that never finds a fault has no wrong red and finds none of the bad runs; one that always does is red
in every run.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from math import sqrt
from typing import Any, NamedTuple

import anyio

from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.score import ScoreFailure
from agenteval.core.trajectory import Usage
from agenteval.files.prompts import load_rubric
from agenteval.scoring.judges.corroboration import ask_with_second_opinion
from agenteval.scoring.judges.gating_policy import GatingPolicy
from agenteval.scoring.judges.judge_question import JudgeQuestion
from agenteval.scoring.judges.replies import build_reply_type
from agenteval.scoring.transcript import JudgeTranscript

CONVERSATIONS = 60
FAULTY = 6
RUBRIC = load_rubric("agent_behavior_failure")
REPLY = build_reply_type(RUBRIC)


class Dice(NamedTuple):
    false_alarm: float
    sensitivity: float
    shared: float


class Judge:
    """A model that errs with known chances. ``calls`` counts."""

    def __init__(self, dice: Dice, rng: random.Random) -> None:
        self.dice = dice
        self.calls = 0
        self._rng = rng
        self._own: dict[str, bool] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.calls += 1
        name = request.subject.scenario
        chance = self.dice.sensitivity if name.startswith("faulty") else self.dice.false_alarm
        if name not in self._own:  # what every call about this conversation would say, if it errs alike
            self._own[name] = self._rng.random() < chance
        alike = self._rng.random() < self.dice.shared
        fails = self._own[name] if alike else self._rng.random() < chance
        label = "unsafe action" if fails else "no failure"
        return ModelReply(REPLY(evidence="x", reason="r", label=label), Usage(calls=1), "dice/judge")

    async def aclose(self) -> None:
        pass


async def failed_of(judge: Judge, conversations: int, faulty: int, corroborate: bool, seed: int) -> int:
    """How many of so many conversations, of which some are faulty, end failed."""
    gating = GatingPolicy(corroborate=corroborate, seed=seed)
    failed = 0
    for number in range(conversations):
        name = f"{'faulty' if number < faulty else 'clean'} {seed} {number}"
        question = JudgeQuestion(
            rubric=RUBRIC,
            record=JudgeTranscript(name),
            subject=Subject(scenario=name, metric=RUBRIC.metric),
            flaw_in=lambda said, scripted: "",
            gates=lambda said: said.label == "unsafe action",
            is_clean=lambda said: said.label == "no failure",
        )
        answer = await ask_with_second_opinion(judge, question, gating)
        assert not isinstance(answer, ScoreFailure)
        value: Any = answer.reply.value
        failed += value.label == "unsafe action"
    return failed


def interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson, 95 %."""
    z, share = 1.96, hits / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def exact_wrong(dice: Dice, *, corroborate: bool) -> float | None:
    """The chance of a wrong red run where each call errs by itself, without the clean tenth."""
    if dice.shared:
        return None
    e = dice.false_alarm
    wrong = e * e * (2 - e) if corroborate else e
    return 1 - (1 - wrong) ** CONVERSATIONS


def rows(runs: int, seed: int) -> Iterator[str]:
    yield (
        "| judge: false alarm / sensitivity / shared | asked again | clean run red | exact | bad run red"
        " | faults found | calls per conversation |"
    )
    yield "|---|---|---|---|---|---|---|"
    for dice in (
        Dice(0.02, 0.9, 0.0), Dice(0.02, 0.9, 0.5), Dice(0.02, 0.9, 1.0),
        Dice(0.005, 0.8, 0.0), Dice(0.05, 0.8, 0.0), Dice(0.05, 0.6, 0.5),
        Dice(0.0, 0.0, 0.0), Dice(1.0, 1.0, 0.0),
    ):  # fmt: skip
        for corroborate in (False, True):
            judge = Judge(dice, random.Random(seed))
            red = bad = 0
            for number in range(runs):
                red += anyio.run(failed_of, judge, CONVERSATIONS, 0, corroborate, number) > 0
            calls = judge.calls / (runs * CONVERSATIONS)
            for number in range(runs):
                seeded = runs + number
                bad += anyio.run(failed_of, judge, CONVERSATIONS, FAULTY, corroborate, seeded) > 0
            sole = Judge(dice, random.Random(seed))
            found = sum(anyio.run(failed_of, sole, FAULTY, FAULTY, corroborate, n) for n in range(runs))
            low, high = interval(red, runs)
            exact = exact_wrong(dice, corroborate=corroborate)
            yield (
                f"| {dice.false_alarm:g} / {dice.sensitivity:g} / {dice.shared:g}"
                f" | {'yes' if corroborate else 'no'}"
                f" | {red / runs:.1%} [{low:.1%}, {high:.1%}] | {'–' if exact is None else f'{exact:.1%}'}"
                f" | {bad / runs:.1%} | {found / (runs * FAULTY):.1%} | {calls:.2f} |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    for row in rows(given.runs, given.seed):
        print(row, flush=True)


if __name__ == "__main__":
    main()
