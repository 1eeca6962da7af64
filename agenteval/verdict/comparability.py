"""Check whether two runs can be compared, that is, whether both measured the same thing. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from agenteval.core.errors import Problem
from agenteval.core.run_summary import RunSummary, ScenarioSummary
from agenteval.core.safe_text import one_line
from agenteval.files.prompts import CRITERIA, SIMULATED_USER, USER_REVIEW, USER_TOOLS

_MOST_NAMED = 8
_AGAIN = "rerun the baseline with the settings of the current run"


class UnmatchedScenario(NamedTuple):
    """A scenario that cannot be compared: it is in only one run, or its two versions differ."""

    scenario: str
    before: ScenarioSummary | None
    """The scenario in the first run, or ``None`` if the run does not contain it."""
    after: ScenarioSummary | None
    """The scenario in the second run, or ``None`` if the run does not contain it."""
    parts: tuple[str, ...] = ()
    """The parts in which the two versions differ."""

    @property
    def sentence(self) -> str:
        name = one_line(self.scenario, 80)
        if self.before is None or self.after is None:
            return f"scenario '{name}' is only in the {'second' if self.before is None else 'first'} run"
        return f"scenario '{name}' differs: {self.differing}"

    @property
    def differing(self) -> str:
        return f"{', '.join(self.parts)} differ"


class MatchedAgents(NamedTuple):
    """A pair of agents, one from each run, and their scenarios."""

    before: str
    after: str
    pairs: tuple[tuple[ScenarioSummary, ScenarioSummary], ...]
    """The scenarios that are identical in both runs."""
    unmatched_scenarios: tuple[UnmatchedScenario, ...]
    """All other scenarios."""


class LostAgent(NamedTuple):
    """An agent that is not compared because only one run contains it."""

    name: str
    only_in: str
    """The run that contains the agent: ``first`` or ``second``."""

    @property
    def sentence(self) -> str:
        return f"the agent '{self.name}' is only in the {self.only_in} run"


def match_agents(
    before: RunSummary, after: RunSummary
) -> tuple[tuple[MatchedAgents, ...], tuple[LostAgent, ...]]:
    """Pair the agents of both runs, and return the unpaired agents separately. If each run has exactly one
    agent, the two are compared even if their names differ."""
    if len(before.agents) == len(after.agents) == 1:
        pairs = [(before.agents[0], after.agents[0])]
    else:
        pairs = [(name, name) for name in before.agents if name in after.agents]
    kept_before, kept_after = {old for old, _ in pairs}, {new for _, new in pairs}
    lost = [LostAgent(name, "first") for name in before.agents if name not in kept_before]
    lost += [LostAgent(name, "second") for name in after.agents if name not in kept_after]
    return tuple(_match_scenarios(before, after, *names) for names in pairs), tuple(lost)


def _match_scenarios(before: RunSummary, after: RunSummary, old: str, new: str) -> MatchedAgents:
    first = {each.id: each for each in before.scenarios if each.agent == old}
    second = {each.id: each for each in after.scenarios if each.agent == new}
    pairs, unmatched = [], []
    for name in sorted(first.keys() | second.keys()):
        one, other = first.get(name), second.get(name)
        if one is None or other is None:
            unmatched.append(UnmatchedScenario(name, one, other))
        elif parts := _differing_parts(one.content, other.content):
            unmatched.append(UnmatchedScenario(name, one, other, tuple(parts)))
        else:
            pairs.append((one, other))
    return MatchedAgents(old, new, tuple(pairs), tuple(unmatched))


def _differing_parts(before: dict[str, str], after: dict[str, str]) -> list[str]:
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def why_not_comparable(before: RunSummary, after: RunSummary) -> tuple[Problem, ...]:
    """Return every problem that prevents a comparison: the runs did not measure the same thing, or no
    scenario is identical in both. A scenario that has changed or is in only one run does not prevent a
    comparison; the scenario is listed instead."""
    found = find_differences(before, after)
    problems = [Problem(text, _AGAIN) for text in found.setup]
    if any(agent.pairs for agent in found.agents):
        return tuple(problems)
    texts = [each.sentence for each in found.lost_agents]
    texts += [each.sentence for each in found.unmatched_scenarios]
    texts = list(dict.fromkeys(texts))
    problems.append(Problem("no scenario is the same in both runs", _AGAIN))
    problems += [Problem(text, _AGAIN) for text in texts[:_MOST_NAMED]]
    if len(texts) > _MOST_NAMED:
        problems.append(Problem(f"and {len(texts) - _MOST_NAMED} more differ", _AGAIN))
    return tuple(problems)


class RunDifferences(NamedTuple):
    """The differences between what two runs measured."""

    agents: tuple[MatchedAgents, ...]
    lost_agents: tuple[LostAgent, ...]
    """The agents that are in only one run."""
    setup: tuple[str, ...]
    """The differences in judges, prompts, simulated users and settings that affect the scenarios of both
    runs."""

    @property
    def unmatched_scenarios(self) -> tuple[UnmatchedScenario, ...]:
        """The scenarios that differ or are in only one run, for each pair of agents."""
        return tuple(each for agent in self.agents for each in agent.unmatched_scenarios)


def find_differences(before: RunSummary, after: RunSummary) -> RunDifferences:
    """Find every difference between what two runs measured."""
    agents, lost = match_agents(before, after)
    scenarios = [scenario for agent in agents for pair in agent.pairs for scenario in pair]
    return RunDifferences(agents, lost, tuple(_setup_differences(before, after, scenarios)))


def _setup_differences(
    before: RunSummary, after: RunSummary, scenarios: list[ScenarioSummary]
) -> Iterator[str]:
    """Yield the differences between the two runs' setups that affect these scenarios."""
    criteria = any(scenario.criteria for scenario in scenarios)
    simulated = any(scenario.simulated for scenario in scenarios)
    shared_user = any(scenario.simulated and "user_prompt" not in scenario.content for scenario in scenarios)
    in_both = sorted(set(before.judged) & set(after.judged))
    prompts = [
        *in_both,
        *([CRITERIA] if criteria else []),
        *([SIMULATED_USER] if shared_user else []),
        *([USER_REVIEW] if simulated else []),
        *([USER_TOOLS] if any(each.simulated and "user_tools" in each.content for each in scenarios) else []),
    ]
    for name in prompts:
        if before.prompts.get(name) != after.prompts.get(name):
            yield f"the prompt '{one_line(name, 80)}' differs"
    for name in sorted(set(before.decisive) ^ set(after.decisive)):
        which = "first" if name in before.decisive else "second"
        yield f"'{one_line(name, 80)}' was judged only in the {which} run, and can affect which samples pass"
    if in_both or criteria:
        # Fewer metrics may mean fewer judges.
        named = (before.judged_by, after.judged_by) if before.judged == after.judged else ((), ())
        yield from _model_differences("judge", before.judge, after.judge, *named)
    if simulated:
        yield from _model_differences(
            "simulated user", before.user, after.user, before.played_by, after.played_by
        )
    yield from _setting_differences(before, after, simulated=simulated)


def _model_differences(
    role: str,
    before: dict[str, object],
    after: dict[str, object],
    named_before: Iterable[str],
    named_after: Iterable[str],
) -> Iterator[str]:
    """Yield the differences between the models. Both the configured name and the name reported by the model
    itself are compared, because an environment variable may stand for the model."""
    if before != after:
        keys = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
        differences = ", ".join(f"{key} {before.get(key)} and {after.get(key)}" for key in sorted(keys))
        yield f"the {role} model differs: {one_line(differences, 300)}"
    elif named_before and named_after and set(named_before) != set(named_after):
        first, second = ", ".join(named_before), ", ".join(named_after)
        yield f"the {role} model differs: it identified itself as {first} and as {second}"


def _setting_differences(before: RunSummary, after: RunSummary, *, simulated: bool) -> Iterator[str]:
    for key in sorted(before.settings.keys() | after.settings.keys()):
        first, second = before.settings.get(key), after.settings.get(key)
        if first != second and (simulated or key != "max_turns"):
            yield one_line(f"the setting '{key}' differs: {first} and {second}", 300)
