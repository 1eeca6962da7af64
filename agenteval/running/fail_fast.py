"""Implements ``--fail-fast`` (fail fast): stops the run after the first sample that is certain to make the
run fail."""

from __future__ import annotations

from agenteval.conversation.runtime import RunControl
from agenteval.core.event import Event, SampleFinished
from agenteval.verdict.sample_decisions import fails_alone
from agenteval.verdict.single_samples import SingleSamples


class FailFast:
    """A sink that stops ``control`` after the first failure. The rules are the same as for the whole run, so
    an accepted failure does not stop the run."""

    def __init__(self, control: RunControl) -> None:
        self._control = control
        self._samples = SingleSamples()

    def __call__(self, event: Event) -> None:
        sample_events = self._samples.add_event(event)
        if not isinstance(event, SampleFinished) or event.again:
            return
        if fails_alone(self._samples.report(event.key, sample_events)):
            self._control.stop("fail_fast")
