"""Checks the conversations with altered user messages (``run --variants``): their calls and their end state
must be those of one of the conversations without the alteration. This needs other samples, so it is decided
for the report and not by a scorer. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from agenteval.core.plan import Plan
from agenteval.core.safe_text import one_line
from agenteval.core.sample_report import SampleReport, ScenarioReport, aggregates_of
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.score import VARIANT, Check
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.core.tool_visibility import explain_open
from agenteval.core.trajectory import ToolVisibility
from agenteval.verdict.conduct import Conduct, ConductDifference, compare_conduct, conduct_of

_SHOWN = 6
_MESSAGE = 160
NOT_ALTERED = "not altered"


class _Decided(NamedTuple):
    """What is known of a conversation."""

    passed: bool | None
    detail: str
    parts: tuple[str, ...] = ()
    arose: bool = True


@dataclass
class VariantChecks:
    """Adds the check ``variant`` to reports. What was found out about a sample is kept."""

    _conducts: dict[SampleKey, Conduct | None] = field(default_factory=dict)

    def forget(self, key: SampleKey) -> None:
        """Forget a sample, of which there are new events."""
        self._conducts.pop(key, None)

    def add_to(self, scenarios: Sequence[ScenarioReport], plan: Plan) -> tuple[ScenarioReport, ...]:
        """Return the scenarios, with the check in each finished conversation of a message variant."""
        if not any(each.scenario.variant and each.scenario.variant.messages for each in scenarios):
            return tuple(scenarios)
        written = {(each.scenario.id, each.agent): each for each in scenarios}
        return tuple(self._checked(each, written, plan) for each in scenarios)

    def _checked(
        self, scenario: ScenarioReport, written: Mapping[tuple[str, str], ScenarioReport], plan: Plan
    ) -> ScenarioReport:
        variant = scenario.scenario.variant
        if variant is None or variant.messages is None:
            return scenario
        plain = written.get((variant.of, scenario.agent))
        samples = tuple(self._with_check(each, scenario, plain, plan) for each in scenario.samples)
        return replace(scenario, samples=samples, aggregates=aggregates_of(samples))

    def _with_check(
        self, sample: SampleReport, scenario: ScenarioReport, plain: ScenarioReport | None, plan: Plan
    ) -> SampleReport:
        if not _is_finished(sample):
            return sample
        variant = scenario.scenario.variant
        assert variant
        why = _why_not_all_seen(sample, plan)
        if variant.is_compared:
            decided = self._compare(sample, scenario.scenario, plain, why)
        else:
            decided = self._decide_empty(sample, scenario.scenario, why)
        check = Check(
            name=VARIANT,
            passed=decided.passed,
            detail=decided.detail,
            where=scenario.scenario.where(),
            parts=decided.parts if decided.passed is False else (),
            arose=decided.arose,
        )
        checked = replace(sample, checks=(*sample.checks, check))
        if scenario.scenario.case is None:
            return checked
        return replace(checked, robustness_pass=checked.all_checks_held)

    # ── the same as without the alteration ───────────────────────────────────────────────────────

    def _compare(
        self, sample: SampleReport, scenario: Scenario, plain: ScenarioReport | None, why: str
    ) -> _Decided:
        assert scenario.variant
        mine = self._conduct_of(sample, scenario)
        if mine is None:
            return _Decided(None, "not decided: the texts of the conversation are gone")
        if mine.altered is None:
            what = f"{NOT_ALTERED}: no message can be altered in this way without changing a value in it"
            return _Decided(True, what, arose=False)
        finished = [each for each in plain.samples if _is_finished(each)] if plain else []
        if plain is None or not finished:
            what = f"no conversation of '{scenario.variant.of}' without the alteration has finished"
            return _Decided(None, f"not decided: {what} — run it together with this variant")
        if why or mine.unplaced:
            return _Decided(None, why or f"not fully seen: {mine.unplaced}")
        found: dict[int, ConductDifference] = {}
        for each in finished:
            theirs = self._conduct_of(each, plain.scenario)
            found[each.key.epoch] = (
                ConductDifference(open="the texts of a conversation are gone")
                if theirs is None
                else ConductDifference(open=f"not fully seen: {theirs.unplaced}")
                if theirs.unplaced
                else compare_conduct(mine, theirs)
            )
        for epoch, difference in found.items():
            if not difference.open and not difference.size:
                return _Decided(
                    True, f"same calls and state as in epoch {epoch + 1} of '{plain.scenario.id}'"
                )
        if reason := next((each.open for each in found.values() if each.open), ""):
            return _Decided(None, f"not decided: {reason}")
        if lost := _open_epochs(plain):
            what = f"no other epoch of '{plain.scenario.id}' is equal, and epoch {lost[0] + 1} did not finish"
            return _Decided(None, f"not decided: {what} — run it again")
        return _failure(found, mine, plain.scenario.id)

    def _conduct_of(self, sample: SampleReport, scenario: Scenario) -> Conduct | None:
        """Return what the agent did, or ``None`` if the texts of the conversation are gone."""
        if sample.key not in self._conducts:
            whole = sample.in_full
            is_gone = whole.read_again is not None
            self._conducts[sample.key] = None if is_gone else conduct_of(whole.trajectory, scenario)
        return self._conducts[sample.key]

    # ── an empty message ─────────────────────────────────────────────────────────────────────────

    def _decide_empty(self, sample: SampleReport, scenario: Scenario, why: str) -> _Decided:
        """Check that the agent, of which nothing was asked, wrote nothing."""
        conduct = self._conduct_of(sample, scenario)
        if conduct is None:
            return _Decided(None, "not decided: the texts of the conversation are gone")
        effects = {name: effect_of(name, scenario.tools.get(name)) for name in conduct.names}
        writing = [name for name, effect in effects.items() if effect is ToolEffect.WRITES]
        calls = [text for (key, text) in conduct.calls if _name_in(key) in writing]
        changed = [f"{table}: {len(rows)} changed" for table, rows in conduct.state.rows.items()]
        if calls or changed:
            what = "; ".join((*calls[:_SHOWN], *changed))
            return _Decided(False, f"wrote something after an empty message: {what}", (*writing,))
        if why or conduct.unplaced:
            return _Decided(None, why or f"not fully seen: {conduct.unplaced}")
        if unknown := [name for name, effect in effects.items() if effect is ToolEffect.UNKNOWN]:
            what = f"it is not known whether '{unknown[0]}' writes"
            return _Decided(None, f"not decided: {what} — mark the tool with `reads: true` or `writes: true`")
        if conduct.state.unknown:
            return _Decided(None, f"not decided: {conduct.state.unknown}")
        return _Decided(True, "an empty message led to no call that writes")


def _name_in(key: object) -> object:
    return key[0] if isinstance(key, tuple) else None


def _is_finished(sample: SampleReport) -> bool:
    """Check whether the conversation ended as conversations do: by its user."""
    return sample.stop is not None and sample.stop.fault is None


def _open_epochs(plain: ScenarioReport) -> tuple[int, ...]:
    """Return the epochs without the alteration of which nobody knows what the agent would have done."""
    lost = (
        sample.key.epoch
        for sample in plain.samples
        if sample.stop is None or sample.stop.fault != "agent"
        if not _is_finished(sample)
    )
    return tuple(sorted((*lost, *(key.epoch for key in plain.missing))))


def _why_not_all_seen(sample: SampleReport, plan: Plan) -> str:
    """Return why the absence of a call proves nothing, or an empty string."""
    visibility = sample.trajectory.visibility
    if visibility is ToolVisibility.ALL:
        return ""
    known = plan.known_visibility(sample.key.agent)
    return f"not decided: {explain_open(visibility, known).unseen}"


def _failure(found: Mapping[int, ConductDifference], conduct: Conduct, plain: str) -> _Decided:
    epoch, nearest = min(found.items(), key=lambda each: (each[1].size, each[0]))
    first, *others = nearest.lines
    more = [f"and {len(others) - _SHOWN} more"] if len(others) > _SHOWN else []
    which = f"epoch {epoch + 1} of '{plain}'" if len(found) == 1 else f"the epochs of '{plain}'"
    heading = f"unlike {which}, {first}"
    detail = "\n".join((heading, *others[:_SHOWN], *more, *_messages(conduct)))
    return _Decided(False, detail, tuple(_parts(nearest)))


def _messages(conduct: Conduct) -> Iterator[str]:
    if conduct.altered is not None:
        yield f"sent: {one_line(conduct.altered.user, _MESSAGE) or '(empty)'}"
        yield f"written: {one_line(conduct.altered.original_user, _MESSAGE)}"


def _parts(difference: ConductDifference) -> Iterator[str]:
    """Yield what differs, without the values, which may be others in the next run."""
    texts = {
        "missing": difference.missing_calls,
        "additional": difference.extra_calls,
        "not changed": difference.missing_rows,
        "changed": difference.extra_rows,
    }
    for what, items in texts.items():
        for name in dict.fromkeys(item.partition("(")[0].partition(" ")[0] for item in items):
            yield f"{what} {name}"
