"""Scores a turn with several judges in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, Score, ScoreFailure
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.judges.judge import Judge
from agenteval.scoring.judges.judge_inputs import JudgeInputs
from agenteval.scoring.judges.shared_calls import ask_shared


class SharedScores:
    """Judges of turns whose answers have the same format and are requested in one call. A judge is asked
    again alone if its answer is missing from the shared reply or would cause a failure."""

    scope: Final = "turn"

    def __init__(self, judges: Sequence[Judge], inputs: JudgeInputs) -> None:
        self._judges = judges
        self._inputs = inputs

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Score | ScoreFailure | Finding]:
        built = {judge: judge.build_question(scenario, trajectory) for judge in self._judges}
        applicable = {judge: found for judge, found in built.items() if found is not None}
        questions = {judge.metric: question for judge, (question, _) in applicable.items()}
        inputs = self._inputs
        answers = await ask_shared(inputs.model, questions, inputs.gating, is_shared=True)
        return [
            item
            for judge, (_, target) in applicable.items()
            for item in judge.score_answer(answers[judge.metric], target)
        ]
