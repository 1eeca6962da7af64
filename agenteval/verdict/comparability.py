"""Whether two runs can be compared, and if not, why: they must have measured the same thing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agenteval.core.errors import Problem
from agenteval.core.run_summary import RunSummary, ScenarioSummary
from agenteval.core.safe_text import one_line
from agenteval.files.prompts import CRITERIA, USER_REVIEW

_MOST_NAMED = 8
_AGAIN = "repeat the baseline with the settings of the current run"


class LeftOut(NamedTuple):
    """A scenario that cannot be compared. ``only_in``: the run that alone has it, ``first`` or ``second``;
    else the two differ in ``parts``."""

    scenario: str
    only_in: str = ""
    parts: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        name = one_line(self.scenario, 80)
        if self.only_in:
            return f"scenario '{name}' is only in the {self.only_in} run"
        return f"scenario '{name}' differs: {self.differing}"

    @property
    def differing(self) -> str:
        return f"{', '.join(self.parts)} differ"


class Matched(NamedTuple):
    """One agent of each run and their scenarios that are in both and equal; ``left_out``: the others."""

    before: str
    after: str
    pairs: tuple[tuple[ScenarioSummary, ScenarioSummary], ...]
    left_out: tuple[LeftOut, ...]


class LostAgent(NamedTuple):
    """An agent that is not compared: the run ``only_in`` (``first`` or ``second``) alone has it."""

    name: str
    only_in: str

    @property
    def sentence(self) -> str:
        return f"the agent '{self.name}' is only in the {self.only_in} run"


def matched(before: RunSummary, after: RunSummary) -> tuple[tuple[Matched, ...], tuple[LostAgent, ...]]:
    """The agents of both runs side by side, and the others. Two runs of one agent each are
    compared, whatever the agents are called."""
    if len(before.agents) == len(after.agents) == 1:
        named = [(before.agents[0], after.agents[0])]
    else:
        named = [(name, name) for name in before.agents if name in after.agents]
    kept_before, kept_after = {old for old, _ in named}, {new for _, new in named}
    lost = [LostAgent(name, "first") for name in before.agents if name not in kept_before]
    lost += [LostAgent(name, "second") for name in after.agents if name not in kept_after]
    return tuple(_matched(before, after, *names) for names in named), tuple(lost)


def _matched(before: RunSummary, after: RunSummary, old: str, new: str) -> Matched:
    first = {each.id: each for each in before.scenarios if each.agent == old}
    second = {each.id: each for each in after.scenarios if each.agent == new}
    pairs, left_out = [], []
    for name in sorted(first.keys() | second.keys()):
        if name not in second or name not in first:
            left_out.append(LeftOut(name, only_in="first" if name in first else "second"))
        elif parts := _differing(first[name].content, second[name].content):
            left_out.append(LeftOut(name, parts=tuple(parts)))
        else:
            pairs.append((first[name], second[name]))
    return Matched(old, new, tuple(pairs), tuple(left_out))


def _differing(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def why_not_comparable(before: RunSummary, after: RunSummary, *, common: bool = False) -> tuple[Problem, ...]:
    """All that forbids it. With ``common``, scenarios and agents that are in one run alone, or not the same
    in both, are no reason, as long as something is left: so a run is compared with its baseline."""
    agents, _ = matched(before, after)
    scenarios = [scenario for agent in agents for pair in agent.pairs for scenario in pair]
    problems = [Problem(text, _AGAIN) for text in _instruments(before, after, scenarios)]
    remedy = _AGAIN
    if common and scenarios:
        return tuple(problems)
    left_out = _not_the_same(before, after, whatever=common)
    if common or not (scenarios or left_out):
        problems.append(Problem("no scenario is the same in both runs", remedy))
    if not common:
        remedy += ", or compare only what is the same in both: agenteval diff … --common"
    problems += [Problem(text, remedy) for text in left_out[:_MOST_NAMED]]
    if len(left_out) > _MOST_NAMED:
        problems.append(Problem(f"and {len(left_out) - _MOST_NAMED} more differ", remedy))
    return tuple(problems)


def _not_the_same(before: RunSummary, after: RunSummary, *, whatever: bool) -> list[str]:
    """What is not the same in both and no selection of one of the two explains; ``whatever``: or does."""
    explained = {} if whatever else {"first": after.is_selection, "second": before.is_selection}
    agents, lost = matched(before, after)
    told = [each.sentence for each in lost if not explained.get(each.only_in)]
    told += [each.sentence for agent in agents for each in agent.left_out if not explained.get(each.only_in)]
    return list(dict.fromkeys(told))


def left_out_of(before: RunSummary, after: RunSummary) -> tuple[str, ...]:
    """What is not compared, in words: what is in one run alone is told once, all of it together."""
    agents, lost = matched(before, after)
    scenarios = list(dict.fromkeys(each for agent in agents for each in agent.left_out))
    told = [each.sentence for each in lost]
    for which, other in (("first", after), ("second", before)):
        names = list(dict.fromkeys(each.scenario for each in scenarios if each.only_in == which))
        if len(names) > 1:
            why = f", of which run {other.run_id} ran a selection" if other.is_selection else ""
            listed = ", ".join(one_line(name, 80) for name in names[:_MOST_NAMED])
            more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
            told.append(f"{len(names):,} scenarios are only in the {which} run{why}: {listed}{more}")
        else:
            told += [each.sentence for each in scenarios if each.only_in == which][:1]
    return (*told, *(each.sentence for each in scenarios if each.parts))


def _instruments(before: RunSummary, after: RunSummary, scenarios: list[ScenarioSummary]) -> Iterator[str]:
    """What both runs were measured with, as far as it matters for these scenarios."""
    criteria = any(scenario.criteria for scenario in scenarios)
    simulated = any(scenario.simulated for scenario in scenarios)
    in_both = sorted(set(before.judged) & set(after.judged))
    prompts = [
        *in_both,
        *([CRITERIA] if criteria else []),
        *(["simulated_user", USER_REVIEW] if simulated else []),
    ]
    for name in prompts:
        if before.prompts.get(name) != after.prompts.get(name):
            yield f"the prompt '{one_line(name, 80)}' differs"
    for name in sorted(set(before.decisive) ^ set(after.decisive)):
        which = "first" if name in before.decisive else "second"
        yield f"'{one_line(name, 80)}' was judged only in the {which} run, and may decide who passes"
    if in_both or criteria:
        # Fewer metrics may mean fewer judges.
        named = (before.judged_by, after.judged_by) if before.judged == after.judged else ((), ())
        yield from _models("judge", before.judge, after.judge, *named)
    if simulated:
        yield from _models("simulated user", before.user, after.user, before.played_by, after.played_by)
    yield from _settings(before, after, simulated=simulated)


def _models(
    role: str,
    before: dict[str, object],
    after: dict[str, object],
    named_before: Iterable[str],
    named_after: Iterable[str],
) -> Iterator[str]:
    """As configured; and as they called themselves, since a variable may stand for the model."""
    if before != after:
        keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        told = ", ".join(f"{key} {before.get(key)} and {after.get(key)}" for key in sorted(keys))
        yield f"the model of the {role} differs: {one_line(told, 300)}"
    elif named_before and named_after and set(named_before) != set(named_after):
        first, second = ", ".join(named_before), ", ".join(named_after)
        yield f"the model of the {role} differs: it answered as {first} and as {second}"


def _settings(before: RunSummary, after: RunSummary, *, simulated: bool) -> Iterator[str]:
    for key in sorted(before.settings.keys() | after.settings.keys()):
        first, second = before.settings.get(key), after.settings.get(key)
        if first != second and (simulated or key != "max_turns"):
            yield one_line(f"the setting '{key}' differs: {first} and {second}", 300)
