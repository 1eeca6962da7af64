"""Keep memory usage low: reduce the report of a sample to what decides and is counted. Pure.

Texts are left out: what was said, the results of calls, and the details of checks that passed. What is left
has the same verdict, the same numbers and the same reasons why it did not pass."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import replace

from agenteval.core.sample_report import ReadAgain, SampleReport, TurnReport
from agenteval.core.score import Check
from agenteval.core.trajectory import Step, Stop, ToolCall, ToolResult, Turn
from agenteval.core.value import compact, copy_with
from agenteval.scoring.finding_severity import find_cited_calls

LEFT_OUT = "(not kept for the report; see the journal)"
"""Stands for a text that is not blank."""
_NO_NAMES: Mapping[str, tuple[str, ...]] = {}
_REFUSED = ToolResult(refused=True)


class SampleSlimmer:
    """Reduces the reports of samples, which then share what is equal: a run has a few calls, ends and checks,
    and thousands of samples."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, bool, bool, bool], ToolCall] = {}
        self._stops: dict[Stop, Stop] = {}
        self._passed: dict[str, Check] = {}
        self._checks: dict[tuple[str, ...], tuple[Check, ...]] = {}

    def slim(self, sample: SampleReport, read_again: ReadAgain | None) -> SampleReport:
        """Return the report without its texts, which ``read_again`` reads. Those of lost conversations, which
        nobody shows, cannot be read again."""
        trajectory, cited = sample.trajectory, _cited_calls(sample)
        turns = {id(turn): self._turn(turn, cited) for turn in trajectory.all_turns}
        reports = tuple(
            TurnReport(
                turns.get(id(each.turn)) or self._turn(each.turn, cited),
                self._slim_checks(each.checks),
                tuple(map(compact, each.scores)),
                tuple(map(compact, each.score_failures)),
            )
            for each in sample.turns
        )
        stop = self._stop(trajectory.stop)
        unfinished = trajectory.unfinished
        update = {
            "turns": tuple(turns[id(turn)] for turn in trajectory.turns),
            "stop": stop,
            "unfinished": turns[id(unfinished)] if unfinished else None,
            "end_state": None,
        }
        return replace(
            sample,
            key=compact(sample.key),
            turns=reports,
            stop=stop,
            checks=self._slim_checks(sample.checks),
            scores=tuple(map(compact, sample.scores)),
            score_failures=tuple(map(compact, sample.score_failures)),
            findings=tuple(map(compact, sample.findings)),
            trajectory=compact(copy_with(trajectory, update)),
            review=compact(sample.review) if sample.review else None,
            set_aside=tuple(map(compact, sample.set_aside)),
            names=sample.names or _NO_NAMES,
            lost_attempts=tuple(self.slim(each, None) for each in sample.lost_attempts),
            read_again=read_again,
        )

    def _stop(self, stop: Stop | None) -> Stop | None:
        if stop is None or stop.detail:
            return compact(stop) if stop else None
        return self._stops.setdefault(stop, compact(stop))

    def _slim_checks(self, checks: tuple[Check, ...]) -> tuple[Check, ...]:
        """Reduce the checks that passed to their names."""
        slim = tuple(map(self._check, checks))
        if all(self._passed.get(check.name) is check for check in slim):
            return self._checks.setdefault(tuple(check.name for check in slim), slim)
        return slim

    def _check(self, check: Check) -> Check:
        if not check.passed or check.by or check.outcome:
            return compact(check)
        if check.name not in self._passed:
            self._passed[check.name] = compact(Check(name=check.name, passed=True))
        return self._passed[check.name]

    def _turn(self, turn: Turn, cited: Set[int]) -> Turn:
        steps = tuple(self._step(step, cited) for step in turn.steps)
        wrote = turn.user_wrote and LEFT_OUT
        texts = {"user": turn.user and LEFT_OUT, "user_wrote": wrote, "steps": steps, "state": None}
        return compact(copy_with(turn, texts))

    def _step(self, step: Step, cited: Set[int]) -> Step:
        text = LEFT_OUT if (step.text or "").strip() else step.text
        calls = tuple(call if id(call) in cited else self._call(call) for call in step.tool_calls)
        return copy_with(step, {"text": text, "tool_calls": calls, "extra": {}})

    def _call(self, call: ToolCall) -> ToolCall:
        is_refused = call.result is not None and call.result.refused
        key = (call.name, call.observed, call.attempted, is_refused)
        if key not in self._calls:
            name, observed, attempted, _ = key
            result = _REFUSED if is_refused else None  # such a call does not count as made
            made = ToolCall(name=name, args={}, observed=observed, attempted=attempted, result=result)
            self._calls[key] = compact(made)
        return self._calls[key]


def _cited_calls(sample: SampleReport) -> Set[int]:
    """Return the ids (``id``) of the calls by which findings are identified."""
    trajectory = sample.trajectory
    turns, calls = [turn.tool_calls for turn in trajectory.all_turns], trajectory.tool_calls
    cited: set[int] = set()
    for finding in sample.findings:
        cited.update(map(id, find_cited_calls(finding, turns)))
        if finding.call is not None:
            cited.update(map(id, calls[finding.call : finding.call + 1]))
    return cited
