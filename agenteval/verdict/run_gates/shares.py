"""``gates.tool_accuracy``, ``output_accuracy``, ``robustness``: minimum values for the three dimensions, each
of which is a share of all conversations in the dimension. A failure that is counted in a share does not fail
its sample: with a minimum of nine in ten, one conversation in ten may fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import fsum
from typing import Annotated, Any, ClassVar, NamedTuple

from pydantic import Field, model_validator

from agenteval.core.decision import RERUN_FAILED, GateRow, Violation
from agenteval.core.plurals import join_first, plural
from agenteval.core.sample_report import SampleReport
from agenteval.core.scenario import Category, Scenario
from agenteval.core.score import Verdict
from agenteval.core.value import AlternativeSchema, Number, Value
from agenteval.verdict.run_gates.error_rates import GateErrorRates, unknown_error_rates
from agenteval.verdict.run_gates.gate import Evidence, PlannedRun, RunGate
from agenteval.verdict.thresholds import is_errored

_ROUNDING = 1e-9  # of a mean of shares
_MOST_NAMED = 3


class ShareGate(Value):
    """The minimum share: a number, or ``{at_least: …}``."""

    EXAMPLE: ClassVar[str] = "0.9"
    SHORT: ClassVar[AlternativeSchema] = AlternativeSchema(type="number", exclusiveMinimum=0, maximum=1)

    at_least: Annotated[Number, Field(gt=0, le=1)]
    """Lowest acceptable share."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {"at_least": value} if is_number else value


class _Share(NamedTuple):
    """The definition of one share."""

    of: Callable[[SampleReport], float | bool | None]
    """Returns the contribution of a conversation to the share, from 0 to 1, or ``None`` if the contribution
    is unknown."""
    concerns: Callable[[Scenario], bool]
    """Checks whether the share applies to a scenario."""
    scenarios_text: str
    """A description of the scenarios that the share applies to."""
    counts: Callable[[SampleReport, Scenario, Violation], bool]
    """Checks whether a broken rule lowers the share."""


class _ShareValue(NamedTuple):
    scenario: str
    value: float | None


def _rows(name: str, gate: ShareGate, evidence: Evidence) -> Iterable[GateRow]:
    share = _SHARES[name]
    agents = tuple(dict.fromkeys(scenario.agent for scenario in evidence.report.scenarios))
    for agent in agents:
        shares = [
            each
            for scenario in evidence.report.scenarios
            if scenario.agent == agent and share.concerns(scenario.scenario)
            for each in (
                *(_measure_share(scenario.scenario.id, sample, share) for sample in scenario.samples),
                *(_ShareValue(scenario.scenario.id, None) for _ in scenario.missing),
            )
        ]
        yield _row(name, gate, shares, evidence.where, agent=agent if len(agents) > 1 else "")


def _measure_share(scenario: str, sample: SampleReport, share: _Share) -> _ShareValue:
    value = None if is_errored(sample) else share.of(sample)
    return _ShareValue(scenario, None if value is None else float(value))


def _row(name: str, gate: ShareGate, shares: Sequence[_ShareValue], where: str, *, agent: str) -> GateRow:
    """Compare the share with its bound. Unknown values are counted once as misses and once as hits. They do
    not matter if both counts lead to the same result."""
    known = [each.value for each in shares if each.value is not None]
    unknown = len(shares) - len(known)
    low, high = ((fsum([*known, *[each] * unknown]) / len(shares) if shares else None) for each in (0.0, 1.0))
    if low is None or high is None:
        verdict, basis = Verdict.INCONCLUSIVE, f"no conversation of {_SHARES[name].scenarios_text} was run"
    else:
        verdict = Verdict.PASSED if low >= gate.at_least - _ROUNDING else Verdict.INCONCLUSIVE
        verdict = Verdict.FAILED if high < gate.at_least - _ROUNDING else verdict
        basis = f"{plural(len(shares), 'conversation')} of {_SHARES[name].scenarios_text}"
        basis += f"; {unknown} unknown: {low:.3g} to {high:.3g}" if unknown else ""
        basis += _describe_lowest(shares)
    return GateRow(
        name=name,
        value=fsum(known) / len(known) if known else None,
        bound=gate.at_least,
        basis=basis,
        where=where,
        verdict=verdict,
        agent=agent,
        resolution=RERUN_FAILED if verdict is Verdict.INCONCLUSIVE and shares else "",
    )


def _describe_lowest(shares: Sequence[_ShareValue]) -> str:
    """List the scenarios that lower the share, beginning with the lowest."""
    of_each: dict[str, list[float]] = {}
    for each in shares:
        if each.value is not None:
            of_each.setdefault(each.scenario, []).append(each.value)
    means = {name: fsum(values) / len(values) for name, values in of_each.items()}
    low = sorted((name for name, mean in means.items() if mean < 1 - _ROUNDING), key=lambda n: (means[n], n))
    named = join_first([f"{name} {means[name]:.3g}" for name in low], _MOST_NAMED)
    return f"; below 1: {named}" if low else ""


def _estimate_error_rates(name: str, planned_run: PlannedRun) -> GateErrorRates:
    known = "compares the share of this run with the bound, so it has no error rate"
    return unknown_error_rates(name, planned_run.where, known)


# ── what each share counts ───────────────────────────────────────────────────────────────────────


def _expects_tools(scenario: Scenario) -> bool:
    return scenario.case is not None and bool(scenario.case.tools or scenario.case.allows_no_call)


def _is_missing_tool(sample: SampleReport, scenario: Scenario, violation: Violation) -> bool:
    """Check whether the only problem with the calls is that expected tools were never called (or, if none may
    be called, that any were). The share does not cover forbidden calls or wrong arguments."""
    if violation.name != "tool_calls" or sample.tool_accuracy is None or scenario.case is None:
        return False
    called = {call.name for call in sample.trajectory.tool_calls if call.was_made}
    never = {f"missing {name}" for name in scenario.case.tools if name not in called}
    if scenario.case.allows_no_call:
        never = {f"extra {call.name}" for call in sample.trajectory.tool_calls}
    parts = [part for check in _broken_checks(sample, "tool_calls") for part in check.parts]
    return bool(parts) and all(part.partition("(")[0] in never for part in parts)


def _is_wrong_output(sample: SampleReport, scenario: Scenario, violation: Violation) -> bool:
    return sample.output_correct is False and violation.name in ("output.contains", "answer")


def _is_broken_check(sample: SampleReport, scenario: Scenario, violation: Violation) -> bool:
    """Check whether one of the scenario's own checks failed. A severe finding is covered by
    ``fail_on_severity`` instead."""
    if scenario.category is not Category.ROBUSTNESS or violation.verdict is not Verdict.FAILED:
        return False
    return violation.name == "no_error" or bool(_broken_checks(sample, violation.name))


def _broken_checks(sample: SampleReport, name: str) -> list[Any]:
    return [check for check in sample.all_checks if check.name == name and check.passed is False]


_SHARES = {
    "tool_accuracy": _Share(
        lambda sample: sample.tool_accuracy,
        _expects_tools,
        "test cases with expected_tools",
        _is_missing_tool,
    ),
    "output_accuracy": _Share(
        lambda sample: sample.output_correct,
        lambda scenario: scenario.case is not None,
        "test cases",
        _is_wrong_output,
    ),
    "robustness": _Share(
        lambda sample: sample.all_checks_held,
        lambda scenario: scenario.category is Category.ROBUSTNESS,
        "scenarios of the category robustness",
        _is_broken_check,
    ),
}


def _gate(name: str) -> RunGate[ShareGate]:
    return RunGate(
        name,
        f"Lowest acceptable share, over all {_SHARES[name].scenarios_text}: a number, or {{at_least: …}}.",
        ShareGate,
        lambda settings, seen: _rows(name, settings, seen),
        lambda _, ahead: _estimate_error_rates(name, ahead),
        replaces_every_sample=False,
        counts=_SHARES[name].counts,
        concerns=_SHARES[name].concerns,
    )


SHARES = tuple(map(_gate, _SHARES))
