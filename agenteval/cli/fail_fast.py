"""``--fail-fast``: the first sample that is sure to fail the run ends it."""

from __future__ import annotations

from agenteval.conversation.pipeline import Control
from agenteval.core.event import Event, RunStarted, SampleFinished, SampleStarted, Scored, TurnFinished
from agenteval.core.scenario import SampleKey
from agenteval.verdict.gates import fails_alone
from agenteval.verdict.report import fold


class FailFast:
    """A sink that tells ``control``. Each sample is decided by itself as the whole run will be, so that what
    is accepted ends nothing."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._run: RunStarted | None = None
        self._events: dict[SampleKey, list[Event]] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._run = event
            case SampleStarted(key=key):
                self._events[key] = [event]
            case TurnFinished(key=key) | Scored(key=key):
                self._events[key].append(event)
            case SampleFinished(key=key):
                if self._fails([*self._events.pop(key), event], key):
                    self._control.stop("fail_fast")

    def _fails(self, events: list[Event], key: SampleKey) -> bool:
        assert self._run
        scenario = tuple(each for each in self._run.scenarios if each.id == key.scenario)
        # The others of its scenario are known to be planned: what only all of them prove, one does not.
        applies = self._run.plan.of(key.scenario, key.agent)
        plan = self._run.plan.alone(key.scenario, key.agent, epochs=applies.most)
        alone = self._run.model_copy(update={"plan": plan, "scenarios": scenario})
        return fails_alone(fold([alone, *events]))
