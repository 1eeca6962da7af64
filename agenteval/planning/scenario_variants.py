"""Adds variants with faults to the scenarios of a run (``run --faults``), and selects variants. Each is a
scenario of its own, with the id ``SCENARIO~VARIANT``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agenteval.core.errors import AuthorError, NothingSelectedError, Problem, did_you_mean
from agenteval.core.scenario import (
    VARIANT_SEPARATOR,
    Category,
    Expectation,
    OutputExpectation,
    Scenario,
    ScenarioVariant,
    ScriptedTurn,
    Tool,
    ToolCallsExpectation,
    TurnEntry,
)
from agenteval.core.selection import ID_SEPARATOR, Filters
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.files.fault_packs import PackFault

_OF_READING = frozenset(("stale", "wrong_value", "partial", "renamed", "truncated", "empty", "inject"))
"""The kinds that shipped packs give only to tools that are not known to write: what such a tool says is what
the agent acts on."""


def add_fault_variants(
    scenarios: Sequence[Scenario],
    faults: Sequence[PackFault],
    thresholds: Iterable[str],
    loaded: Sequence[Scenario],
) -> tuple[Scenario, ...]:
    """Return each scenario, followed by one variant for each tool and fault. ``thresholds`` are the metrics
    with a threshold in the configuration, and ``loaded`` are all scenarios of the suite. Raise
    ``AuthorError`` if a fault names a tool that no scenario answers, or if no scenario has a tool for any of
    the faults."""
    added = {each.id: [*_fault_variants(each, faults, tuple(thresholds))] for each in scenarios}
    problems = [*_unknown_tools(loaded, faults)]
    if not problems and not any(added.values()):
        what = "--faults: no selected scenario has a tool that any of these faults can change"
        problems.append(Problem(what, "faults need tools that the scenario answers (`returns`, `sql`, …)"))
    if problems:
        raise AuthorError(*problems)
    return tuple(variant for each in scenarios for variant in (each, *added[each.id]))


def _unknown_tools(scenarios: Sequence[Scenario], faults: Sequence[PackFault]) -> Iterator[Problem]:
    known = {name for each in scenarios for name, tool in each.tools.items() if tool.is_mocked}
    for fault in faults:
        for name in fault.tools:
            if name not in known:
                what = f"--faults: the fault '{fault.label}' is for the tool '{name}', which no"
                yield Problem(f"{what} scenario answers", did_you_mean(name, known))


def _fault_variants(
    scenario: Scenario, faults: Sequence[PackFault], thresholds: Sequence[str]
) -> Iterator[Scenario]:
    for fault in faults:
        for name, tool in scenario.tools.items():
            if _suits(fault, name, tool):
                yield _with_fault(scenario, name, fault, thresholds)


def _suits(fault: PackFault, name: str, tool: Tool) -> bool:
    """Check whether a fault can change the answers of a tool."""
    if not tool.is_mocked or (fault.tools and name not in fault.tools):
        return False
    if fault.kind == "no_op":
        return tool.has_effects and effect_of(name, tool) is not ToolEffect.READS
    if fault.kind in _OF_READING and not fault.tools:
        return effect_of(name, tool) is not ToolEffect.WRITES
    return True


def _with_fault(scenario: Scenario, name: str, fault: PackFault, thresholds: Sequence[str]) -> Scenario:
    tool = scenario.tools[name].model_copy(update={"faults": (fault.alone,)})
    label = f"{fault.label}.{name}"
    waived = {path: _of_success(expect) for path, expect in scenario.expectations}
    # A threshold judges success, too.
    dropped = dict.fromkeys((*thresholds, *scenario.thresholds)) if fault.stays else {}
    return scenario.model_copy(
        update={
            "id": f"{scenario.id}{VARIANT_SEPARATOR}{label}",
            "name": f"{scenario.name} ({label})",
            "category": Category.ROBUSTNESS,
            "tools": {**scenario.tools, name: tool},
            "expect": _of_prohibitions(scenario.expect),
            "turns": _with_prohibitions_only(scenario),
            "case": None,
            "thresholds": {**scenario.thresholds, **dropped},
            "variant": ScenarioVariant(
                of=scenario.id,
                tool=name,
                fault=fault.alone,
                waived={path: expect for path, expect in waived.items() if not expect.is_vacuous},
                waived_case=scenario.case,
            ),
        }
    )


# ── what does not count under a fault ────────────────────────────────────────────────────────────


def _with_prohibitions_only(scenario: Scenario) -> tuple[TurnEntry, ...] | None:
    return scenario.turns and tuple(
        turn.model_copy(update={"expect": _of_prohibitions(turn.expect)})
        if isinstance(turn, ScriptedTurn)
        else turn
        for turn in scenario.turns
    )


def _of_prohibitions(expect: Expectation) -> Expectation:
    """Return what holds whatever a tool does: forbidden calls, and texts that the agent must not say; and the
    criteria, for judges."""
    calls, texts = expect.tool_calls, expect.output.not_contains if expect.output else ()
    return Expectation(
        tool_calls=ToolCallsExpectation(forbidden=calls.forbidden) if calls and calls.forbidden else None,
        output=OutputExpectation(not_contains=texts) if texts else None,
        criteria=expect.criteria,  # they do not count once a fault that stays was met
        allow_empty=expect.allow_empty,
    )


def _of_success(expect: Expectation) -> Expectation:
    """Return what shows that the agent did what it should. Limits are left out: to try again costs steps."""
    calls, output = expect.tool_calls, expect.output
    only_prohibits = calls is not None and not calls.alternatives
    return expect.model_copy(
        update={
            "tool_calls": None if only_prohibits else calls and calls.model_copy(update={"forbidden": ()}),
            "output": output and output.model_copy(update={"not_contains": ()}),
            "limits": None,
            "criteria": (),  # judged with the variant itself
        }
    )


# ── selection ────────────────────────────────────────────────────────────────────────────────────


def base_filters(filters: Filters) -> Filters:
    """Return the filters for the scenarios as they are written: ``book~timeout.pay`` selects ``book``."""
    return replace(filters, scenarios=tuple(dict.fromkeys(map(_base_of, filters.scenarios))))


def select_variants(scenarios: Sequence[Scenario], filters: Filters) -> tuple[Scenario, ...]:
    """Return the scenarios without the variants that the filters do not name. A scenario that they name
    without a variant has all of them. Raise ``NothingSelectedError`` for a variant that does not exist."""
    named = [text for text in filters.scenarios if VARIANT_SEPARATOR in text]
    wanted = {text.rpartition(ID_SEPARATOR)[2] for text in named}
    if missing := sorted(wanted - {each.id for each in scenarios}):
        what = f"there is no variant '{missing[0]}'"
        raise NothingSelectedError(Problem(what, did_you_mean(missing[0], (each.id for each in scenarios))))
    # A variant that is compared with its scenario needs it.
    wanted |= {each.compared_with for each in scenarios if each.id in wanted and each.compared_with}
    bases = {name.partition(VARIANT_SEPARATOR)[0] for name in wanted}
    whole = {text.rpartition(ID_SEPARATOR)[2] for text in filters.scenarios if text not in named}
    narrowed = bases - whole
    return tuple(
        each
        for each in scenarios
        if each.id in wanted or (each.variant.of if each.variant else each.id) not in narrowed
    )


def _base_of(text: str) -> str:
    return text.partition(VARIANT_SEPARATOR)[0]
