"""Keep fingerprints identical on a laptop and in CI, even though different texts are masked in the two
environments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agenteval.core.event import Event, RunStarted, SampleFinished
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.files.redaction import event_masker
from agenteval.verdict.fingerprints import names_between
from agenteval.verdict.report import Report
from agenteval.verdict.single_samples import SingleSamples, surely_passes


class StableFingerprints:
    """A callable that receives each event before and after masking and returns the masked event. At the end
    of a sample in which something was masked, the callable adds the original names of the sample's failures
    (``SampleFinished.names``).

    ``differing`` contains the secrets that may have a different value in each environment; names never depend
    on these secrets. All other masked words are identical everywhere but are masked only in some
    environments."""

    def __init__(self, differing: Iterable[str]) -> None:
        self._mask_differing = event_masker(differing) or (lambda event: event)
        self._before, self._shown = SingleSamples(), SingleSamples()
        self._differ: set[SampleKey] = set()
        self._all_differ = False

    def __call__(self, event: Event, masked: Event) -> Event:
        before = event if event is masked else self._mask_differing(event)
        if before != masked:
            self._note(before)
        original, shown = self._before.add_event(before), self._shown.add_event(masked)
        if not isinstance(masked, SampleFinished):
            return masked
        is_known = masked.key not in self._differ and not self._all_differ
        self._differ.discard(masked.key)
        if is_known or surely_passes(shown):
            return masked
        return self._with_names(masked, original, shown)

    def _note(self, event: Event) -> None:
        if isinstance(event, RunStarted):
            self._all_differ = True
        elif (key := getattr(event, "key", None)) is not None:
            self._differ.add(key)

    def _with_names(
        self, end: SampleFinished, original: Sequence[Event], shown: Sequence[Event]
    ) -> SampleFinished:
        names: dict[str, tuple[str, ...]] = {}
        for all_seen in (False, True):
            before = _find_sample(self._before.report(end.key, original, all_seen=all_seen), end.key)
            after = _find_sample(self._shown.report(end.key, shown, all_seen=all_seen), end.key)
            if before and after:
                names |= names_between(before[0], *after)
        return end.model_copy(update={"names": {**end.names, **names}}) if names else end


def _find_sample(report: Report, key: SampleKey) -> tuple[SampleReport, Scenario] | None:
    for each in report.scenarios:
        for sample in each.samples:
            if sample.key == key:
                return sample, each.scenario
    return None
