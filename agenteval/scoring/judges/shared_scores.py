"""The scores of a turn, asked for in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agenteval.core.protocols import ChatModel
from agenteval.core.scenario import Scenario
from agenteval.core.score import Finding, Score, ScoreFailure
from agenteval.core.trajectory import Trajectory
from agenteval.scoring.judges.judge import Judge, request_of, request_of_all
from agenteval.scoring.judges.stakes import Stakes
from agenteval.scoring.judges.together import asked_together


class SharedScores:
    """Judges of turns, whose answers have one form, in one call. What is missing in the common answer, or
    would fail something, is asked again alone."""

    scope: Final = "turn"

    def __init__(self, judges: Sequence[Judge], model: ChatModel, stakes: Stakes) -> None:
        self._judges = judges
        self._model = model
        self._stakes = stakes

    async def __call__(
        self, scenario: Scenario, trajectory: Trajectory
    ) -> Sequence[Score | ScoreFailure | Finding]:
        asking = {judge: judge.asking(scenario, trajectory) for judge in self._judges}
        asked = {judge: found for judge, found in asking.items() if found is not None}
        answers = await asked_together(
            self._model,
            {judge.metric: question for judge, (question, _) in asked.items()},
            self._stakes,
            request_of,
            request_of_all,
        )
        return [item for judge, (_, of) in asked.items() for item in judge.items(answers[judge.metric], of)]
