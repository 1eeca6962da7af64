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
        self._epochs: dict[tuple[str, str], list[SampleKey]] = {}
        self._events: dict[SampleKey, list[Event]] = {}

    def __call__(self, event: Event) -> None:
        match event:
            case RunStarted():
                self._run, self._epochs = event, _epochs(event)
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
        planned = tuple(dict.fromkeys((key, *self._epochs[key.scenario, key.agent])))
        alone = self._run.model_copy(update={"samples": planned, "scenarios": scenario})
        return fails_alone(fold([alone, *events]))


def _epochs(run: RunStarted) -> dict[tuple[str, str], list[SampleKey]]:
    """By scenario and agent, the samples that there will be at most."""
    found: dict[tuple[str, str], list[SampleKey]] = {}
    for key in run.samples:
        ranged = run.epochs.get(key.scenario)
        numbers = range(ranged.max) if ranged else (key.epoch,)
        own = found.setdefault((key.scenario, key.agent), [])
        own += (key.model_copy(update={"epoch": number}) for number in numbers)
    return found
