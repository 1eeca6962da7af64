"""Preflight checks: find mistakes in scenarios, tools, metrics and models before any model or agent is
called."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

from agenteval.conversation.hooks import hook_problems
from agenteval.conversation.mocks import MockFunctions
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem, did_you_mean, parse_place
from agenteval.core.plan import SuitePolicy
from agenteval.core.plurals import plural
from agenteval.core.protocols import AgentTool, NoHistory
from agenteval.core.scenario import NO_CALL, Sample, Scenario
from agenteval.core.severity import NEVER_COMPLETED, severity_of
from agenteval.core.text_matching import contains
from agenteval.core.tool_visibility import KnownVisibility
from agenteval.core.trajectory import ToolVisibility
from agenteval.files.scenario_loader import is_vacuous_scenario, vacuous_problem
from agenteval.files.yaml_source import Mark
from agenteval.planning import judge_setup
from agenteval.planning.plan_resolution import has_policy, has_threshold
from agenteval.scoring.checks.impossible_calls import NEARLY_THE_SAME, find_impossible_calls
from agenteval.scoring.checks.leaked_lookups import describe_leak, find_leaked_lookups
from agenteval.scoring.checks.python_checks import find_target_problems
from agenteval.scoring.detectors.table import DETECTORS, REMOVED_DETECTORS
from agenteval.scoring.goals import GOAL
from agenteval.verdict.ledger import how_to_price, price_of

_REMEDY = "set models: {default: PROVIDER/MODEL} (for example openai/gpt-5-mini), or AGENTEVAL_MODEL"


def scenario_problems(scenario: Scenario, mark: Mark, suite: SuitePolicy) -> Iterable[Problem]:
    """Yield the problems in a scenario that is part of this suite, and was written at the mark."""
    has_thresholds = has_threshold(scenario, suite)
    has_fail_on = suite.fail_on is not None
    policy = has_policy(scenario, suite)
    judged = [suite.specs[name] for name in suite.judged]
    labels = any(spec.is_label and (policy or spec.needs != "policy") for spec in judged)
    judges = (labels and has_fail_on) or _goal_gates(scenario, suite)
    if is_vacuous_scenario(scenario, thresholds_apply=has_thresholds, judges_gate=judges):
        why = "" if has_fail_on or not labels else ", because no label can fail with `fail_on_severity: none`"
        yield vacuous_problem(scenario, why)
    yield from judge_setup.scenario_threshold_problems(scenario, suite)
    yield from _tool_problems(scenario, suite)
    yield from _min_turns_problems(scenario, mark, suite)
    if scenario.uses_state or any(expect.state for _, expect in scenario.expectations):
        from agenteval.planning.state_problems import state_problems  # most suites have no state

        yield from state_problems(scenario, mark, suite)


def _min_turns_problems(scenario: Scenario, mark: Mark, suite: SuitePolicy) -> Iterable[Problem]:
    if not scenario.min_turns:
        return
    max_turns = scenario.max_turns or suite.max_turns
    most = sum(count for *_, count in scenario.entry_turns(max_turns, is_long=True))
    if scenario.min_turns > most:
        what = f"`min_turns` is {scenario.min_turns}, but the conversation has at most {plural(most, 'turn')}"
        limits = "`turns`" if scenario.turns else "`max_turns`"
        yield Problem(what, f"lower it, or allow more by {limits}", mark.find(("min_turns",)).place)


def _goal_gates(scenario: Scenario, suite: SuitePolicy) -> bool:
    """Check whether the scenario fails if none of its conversations completes the goal."""
    worst = severity_of(NEVER_COMPLETED, suite.severities)
    is_judged = GOAL in suite.judged and bool(scenario.goal.strip())
    return is_judged and suite.fail_on is not None and worst.rank >= suite.fail_on.rank


def is_decided_by_code(scenario: Scenario) -> bool:
    """Check whether a scenario can be played and checked without a model, that is, whether its turns are
    scripted and it has expectations other than criteria."""
    if not scenario.is_scripted:
        return False
    if scenario.case is not None or scenario.checks == "none":
        return True
    if scenario.variant is not None and scenario.variant.messages == "empty":
        return True
    if scenario.variant is not None and scenario.variant.fault is not None:
        return bool(scenario.variant.waived or scenario.variant.waived_case)
    return any(
        not expect.model_copy(update={"criteria": ()}).is_vacuous for _, expect in scenario.expectations
    )


def has_fault_variants(scenarios: Iterable[Scenario]) -> bool:
    """Check whether any scenario is a variant in which a tool has a fault, or plants words itself."""
    return any(
        (scenario.variant and scenario.variant.fault)
        or any(fault.kind == "inject" for tool in scenario.tools.values() for fault in tool.faults)
        for scenario in scenarios
    )


def mock_problems(scenarios: Sequence[Scenario], mocks: MockFunctions) -> Iterable[Problem]:
    """Yield a problem for each Python tool mock that cannot be loaded."""
    for scenario in scenarios:
        try:
            mocks.check(scenario)
        except AuthorError as error:
            yield from error.problems


def check_problems(scenarios: Sequence[Scenario]) -> Iterable[Problem]:
    """Yield a problem for each Python check or hook that cannot be loaded or called."""
    for scenario in scenarios:
        yield from find_target_problems(scenario)
        yield from hook_problems(scenario)


def _tool_problems(scenario: Scenario, suite: SuitePolicy) -> Iterable[Problem]:
    for name, tool in scenario.tools.items():
        if not tool.is_mocked and suite.unmocked_tools == "error":
            what = f"tool '{name}' has no mocked answer"
            remedy = "add `returns`, `error`, `sequence`, `rules`, `sql` or `python`"
            yield Problem(what, remedy, parse_place(scenario.where(f"tools.{name}")))


def checks_of_unseen_calls(
    samples: Sequence[Sample], known: Mapping[str, KnownVisibility]
) -> Iterable[Problem]:
    """Yield a problem for each check that cannot be decided because the author declared the agent's tool
    calls as not visible (``calls: unseen``)."""
    unseen = {name for name, each in known.items() if each.calls is ToolVisibility.DECLARED_UNSEEN}
    for scenario, agents in agents_by_scenario(samples):
        for agent in unseen.intersection(agents):
            for path in _checks_of_calls(scenario):
                what = (
                    f"agent '{agent}' has `calls: unseen`, so `{path.rpartition('.')[2]}` cannot be checked"
                )
                remedy = (
                    "remove the check, or set `calls: all` if the agent gets all its tools from agenteval"
                )
                yield Problem(what, remedy, parse_place(scenario.where(path)))


def _checks_of_calls(scenario: Scenario) -> Iterable[str]:
    """Yield the paths of the expectations about an agent's tool calls."""
    for path, expect in scenario.expectations:
        if expect.tool_calls:
            yield f"{path}.tool_calls"
        for name in ("steps", "tool_calls"):
            if expect.limits and getattr(expect.limits, name) is not None:
                yield f"{path}.limits.{name}"
    if scenario.case and scenario.case.expected_tools:
        yield "expected_tools"


def unreachable_databases(samples: Sequence[Sample], remedies: Mapping[str, str]) -> Iterable[Problem]:
    """Yield a problem for each agent that would not get the path of the database that its scenario exposes:
    a state that nobody can change would seem to be as it should. ``remedies`` is empty for an agent that gets
    it."""
    for scenario, agents in agents_by_scenario(samples):
        if scenario.state is None or scenario.state.expose is None:
            continue
        for agent in agents:
            if remedy := remedies.get(agent):
                what = f"agent '{agent}' would not get the path of the database that `expose` gives it"
                yield Problem(what, remedy, parse_place(scenario.where("state.expose")))


@contextmanager
def example_databases(
    samples: Sequence[Sample], suite: SuitePolicy
) -> Iterator[Callable[[str], dict[str, str]]]:
    """Yield a function that writes a copy of each database that the scenarios of an agent expose, and returns
    the variables that name them, for a process that is started before any conversation. In the end, the
    copies are removed."""
    with ExitStack() as stack:

        def write(agent: str) -> dict[str, str]:
            variables: dict[str, str] = {}
            for scenario, agents in agents_by_scenario(samples):
                name = scenario.state.expose if scenario.state else None
                if name is not None and agent in agents and name not in variables:
                    variables[name] = _write_start(scenario, suite.now, stack)
            return variables

        yield write


def _write_start(scenario: Scenario, now: str | None, stack: ExitStack) -> str:
    from tempfile import TemporaryDirectory

    from agenteval.planning.state_problems import scenario_start_state

    start = scenario_start_state(scenario, now)
    folder = TemporaryDirectory(prefix="agenteval-state-", ignore_cleanup_errors=True)
    path = Path(stack.enter_context(folder), "state.sqlite")
    path.write_bytes(start.data if start else b"")
    return str(path)


def history_problems(samples: Sequence[Sample], agents_without: Mapping[str, NoHistory]) -> Iterable[Problem]:
    """Yield a problem for each scenario with a history that one of its agents cannot be given."""
    for scenario, agents in agents_by_scenario(samples) if agents_without else ():
        for agent in agents if scenario.history else ():
            if refused := agents_without.get(agent):
                what = f"agent '{agent}' {refused.why}, so it cannot be given the `history`"
                yield Problem(what, refused.remedy, parse_place(scenario.where("history")))


def foreign_tools(
    samples: Sequence[Sample], agents_have: Mapping[str, Sequence[AgentTool]]
) -> Iterable[Problem]:
    """Yield a problem for each mocked tool that none of the scenario's agents has, and for each mocked tool
    that does not support mocking. An agent whose tools are unknown may have any tool."""
    for scenario, agents in agents_by_scenario(samples):
        known = [agents_have[name] for name in agents if name in agents_have]
        names = {tool.name for tools in known for tool in tools if not tool.hosted}
        hosted = {tool.name for tools in known for tool in tools if tool.hosted} - names
        is_all = len(known) == len(agents) and "" not in names
        for name in scenario.tools:
            place = parse_place(scenario.where(f"tools.{name}"))
            if name in hosted:
                what = f"tool '{name}' runs at the provider and cannot be mocked"
                yield Problem(what, "remove it from `tools`", place)
            elif is_all and name not in names and scenario.tools[name].method is None:
                what = f"agent '{agents[0]}' has no tool '{name}'"
                yield Problem(what, did_you_mean(name, names) or "it has no tools", place)


def misspelt_mocks(
    samples: Sequence[Sample], agents_have: Mapping[str, Sequence[AgentTool]]
) -> Iterable[str]:
    """Warn about mocks whose name resembles that of an unmocked tool if the agent may also have tools that
    become known only during a run. This is a warning rather than an error because the mock may be intended
    for such a tool. If all tools are known, the mismatch is an error."""
    from difflib import get_close_matches

    for scenario, agents in agents_by_scenario(samples):
        names = {tool.name for agent in agents for tool in agents_have.get(agent, ())}
        for name in scenario.tools if "" in names else ():
            near = get_close_matches(name, names - {*scenario.tools, ""}, n=1, cutoff=NEARLY_THE_SAME)
            if near and name not in names:
                what = f"scenario '{scenario.id}' mocks '{name}', which is not a known tool"
                yield f"{what} ({scenario.where(f'tools.{name}')}): did you mean '{near[0]}'?"


def unmocked_tools(
    samples: Sequence[Sample], agents_have: Mapping[str, Sequence[AgentTool]], unmocked: str
) -> Iterable[tuple[str, str]]:
    """Yield each agent that has tools without a mock. Each agent is paired with a sentence that names these
    tools and describes the effect of calling them."""
    missing: dict[str, dict[str, int]] = {}
    for scenario, agents in agents_by_scenario(samples):
        for agent in agents:
            counts = missing.setdefault(agent, {})
            for tool in agents_have.get(agent, ()):
                is_own = tool.hosted or tool.is_agent
                if tool.name and not is_own and tool.name not in scenario.tools:
                    counts[tool.name] = counts.get(tool.name, 0) + 1
    for agent, counts in missing.items():
        if counts:
            tools_with_counts = ", ".join(
                f"{name} (in {plural(number, 'scenario')})" for name, number in counts.items()
            )
            yield agent, f"not mocked: {tools_with_counts}; {_UNMOCKED[unmocked]}"


_UNMOCKED = {
    "error": "a call ends its sample with a scenario error",
    "empty": "a call returns {} (unmocked_tools: empty)",
    "passthrough": "a call runs the real tool (unmocked_tools: passthrough)",
}


def agents_by_scenario(samples: Sequence[Sample]) -> Iterable[tuple[Scenario, Sequence[str]]]:
    """Return each scenario with the agents that play it."""
    agents: dict[str, dict[str, None]] = {}
    for sample in samples:
        agents.setdefault(sample.scenario.id, {})[sample.key.agent] = None
    scenarios = {sample.scenario.id: sample.scenario for sample in samples}
    return [(scenario, tuple(agents[name])) for name, scenario in scenarios.items()]


def scenarios_of(samples: Sequence[Sample]) -> tuple[Scenario, ...]:
    """Return the scenarios of the samples, without duplicates."""
    return tuple({sample.scenario.id: sample.scenario for sample in samples}.values())


def misspelt_tools(scenario: Scenario) -> Iterable[str]:
    """Warn about forbidden calls to a tool that the scenario does not have but whose name resembles that of
    one of the scenario's tools. Such a rule would pass regardless of the agent's behavior. This is only a
    warning because an author may also forbid tools that the scenario does not mock."""
    from difflib import get_close_matches

    for path, expect in scenario.expectations:
        for call in expect.tool_calls.forbidden if expect.tool_calls else ():
            near = get_close_matches(call.name, scenario.tools, n=1, cutoff=NEARLY_THE_SAME)
            if near and call.name not in scenario.tools:
                where = scenario.where(f"{path}.tool_calls.forbidden")
                what = f"scenario '{scenario.id}' forbids '{call.name}', which is not one of its tools"
                yield f"{what} ({where}): did you mean '{near[0]}'?"


def impossible_expectations(
    samples: Sequence[Sample], agents_have: Mapping[str, Sequence[AgentTool]], unmocked: str
) -> Iterable[str]:
    """Warn about tool call expectations that can never be satisfied, regardless of the agent's behavior."""
    for scenario, agents in agents_by_scenario(samples):
        known = [agents_have[name] for name in agents if name in agents_have]
        names = {tool.name for tools in known for tool in tools}
        may_have_any = unmocked == "passthrough" and len(known) < len(agents)
        others = None if may_have_any or "" in names else names
        for path, tool, why in find_impossible_calls(scenario, others):
            where = scenario.where(path)
            yield f"scenario '{scenario.id}' expects a call to '{tool}', but {why} ({where})"


def leaked_lookups(scenario: Scenario) -> Iterable[str]:
    """Warn about values that the user gives away although an expected call is to look them up. This is only a
    warning because the author may want to see whether the agent looks all the same."""
    return (describe_leak(leak, scenario) for leak in find_leaked_lookups(scenario))


def empty_lists(scenarios: Iterable[Scenario]) -> Iterable[str]:
    """Warn about empty lists in test cases, which check nothing. This is only a warning because the author
    may intend to forbid all tool calls."""
    for scenario in scenarios:
        for name in scenario.case.empty_lists if scenario.case else ():
            remedy = f"remove it, or use `{name}: {NO_CALL}` if no tool may be called"
            remedy = remedy if name == "expected_tools" else "remove it, or specify what to look for"
            where = scenario.where(name)
            yield (
                f"`{name}` of case '{scenario.id}' is an empty list, which checks nothing ({where}): {remedy}"
            )


def missing_twins(scenarios: Iterable[Scenario]) -> Iterable[str]:
    """Warn about a suite in which every goal must be refused and no goal can be reached. An agent that
    refuses everything would pass such a suite. This is only a warning because the twin scenario may be in
    another suite."""
    goals = [scenario for scenario in scenarios if scenario.goal.strip()]
    refused = [scenario for scenario in goals if scenario.goal_outcome == "refused"]
    if refused and len(refused) == len(goals):
        names = ", ".join(f"'{scenario.id}'" for scenario in refused[:_MOST_NAMED])
        more = f" and {len(refused) - _MOST_NAMED:,} more" if len(refused) > _MOST_NAMED else ""
        yield (
            f"the goal of {names}{more} must be refused, but no scenario has a goal to reach, so an"
            " agent that refuses everything would pass; add a scenario whose goal the policy allows"
            f" ({refused[0].where('goal_outcome')})"
        )


ATTACKS = (
    *("attack*", "adversar*", "malicious*", "hacker*", "hacking", "scam*", "fraud*", "swindl*", "phish*"),
    *("con man", "con artist", "impersonat*", "pretends to be", "social engineer*", "jailbreak*"),
    *("prompt injection", "red team*", "thief", "blackmail*"),
)
"""Words in a profile or tag that identify a user as an attacker. The words are patterns for ``contains``."""


def attackers_without_outcome(scenarios: Iterable[Scenario]) -> Iterable[str]:
    """Warn about users whose profile or tags identify them as attackers (adversarial personas) if the
    scenario does not say that the goal must be refused. An agent that gives in would reach the goal. This is
    only a warning because the words do not prove an attack."""
    for scenario in scenarios:
        if not scenario.goal.strip() or "goal_outcome" in scenario.model_fields_set:
            continue
        texts = (scenario.profile, *(tag.replace("-", " ").replace("_", " ") for tag in scenario.tags))
        word = next((word for word in ATTACKS if any(contains(text, word) for text in texts)), None)
        if word is not None:
            yield (
                f"the user of scenario '{scenario.id}' ({scenario.where('goal')}) is an attacker"
                f" ('{word.rstrip('*')}'), so an agent that gives in reaches the goal: set `goal_outcome:"
                " refused`, or `goal_outcome: reached` if the goal is harmless"
            )


_MOST_NAMED = 3


def detector_problems(config: Config) -> Iterable[Problem]:
    for at, name in enumerate(config.detectors or ()):
        place = config.place(f"detectors.{at}")
        if name in REMOVED_DETECTORS:
            what = (
                f"the detector '{name}' no longer exists: judges check amounts and statuses in answers"
                " instead"
            )
            yield Problem(what, "remove it from `detectors`, and use the metric `faithfulness`", place)
        elif name not in DETECTORS:
            yield Problem(f"unknown detector '{name}'", did_you_mean(name, DETECTORS), place)


def model_problems(
    scenarios: Sequence[Scenario], config: Config, chosen: judge_setup.Metrics, *, no_judge: bool
) -> Iterable[Problem]:
    """Yield a problem, with a remedy, for each scenario that needs a model but for which no model is set.
    ``scenarios`` may lack those of files that could not be read."""
    if config.models.model_for("user") is None:
        for scenario in scenarios:
            if not scenario.is_scripted:
                what = f"scenario '{scenario.id}' needs a model for its simulated user, but none is set"
                yield Problem(what, f"{_REMEDY}; or script its turns", parse_place(scenario.source))
    if no_judge or config.models.model_for("judge") is not None:
        return
    judged = [spec.name for spec in chosen.selected if chosen.is_rubric(spec.name)]
    if judged:
        names = ", ".join(judged[:3]) + (f" and {len(judged) - 3} more" if len(judged) > 3 else "")
        what = f"{_scenarios_need(len(scenarios))} a judge model ({names}), but none is set"
        remedy = f"{_REMEDY}; or run with --no-judge (code checks only), or set metrics: []"
        yield Problem(what, remedy, parse_place(config.source) if config.source else None)
        return
    for scenario in scenarios:
        if scenario.all_criteria:
            what = f"scenario '{scenario.id}' needs a model for its criteria, but none is set"
            place = parse_place(scenario.where("expect.criteria"))
            yield Problem(what, f"{_REMEDY}; or run with --no-judge (code checks only)", place)


def price_problems(
    scenarios: Sequence[Scenario], config: Config, chosen: judge_setup.Metrics, *, no_judge: bool
) -> Iterable[Problem]:
    """Yield a problem for each model without a known price if the budget is an amount of money."""
    roles: list[Literal["user", "judge", "dedup"]] = []
    simulated = any(not scenario.is_scripted for scenario in scenarios)
    if simulated:
        roles.append("user")
    if not no_judge:
        judged = chosen.selected or simulated or any(s.all_criteria for s in scenarios)
        roles += ["judge", "dedup"] if judged else ["dedup"]
    keys_by_model: dict[str, str] = {}  # by model, the key of the budget
    for role in roles:
        if (model := config.models.model_for(role)) and (key := cost_limit_key(config, role)):
            keys_by_model.setdefault(model.model, key)
    for name, key in keys_by_model.items():
        if price_of(name, config.prices) is None:
            what = f"`{key}` requires the price of {name}, which is unknown"
            yield Problem(what, how_to_price(name), config.place(key))


def unpriced_agents(names: Iterable[str], config: Config) -> tuple[str, ...]:
    """Return the agents without a known price. A cost budget does not limit the calls of such an agent unless
    the agent reports its cost."""
    if not cost_limit_key(config, "agent"):
        return ()
    return tuple(name for name in names if price_of(name, config.prices) is None)


def cost_limit_key(config: Config, role: str) -> str:
    """Return the configuration key of the cost limit that applies to a role, or an empty string if there is
    no limit."""
    if config.budget.max_cost is not None:
        return "budget.max_cost"
    return f"budget.by_role.{role}.max_cost" if config.budget.allowance_for(role).max_cost is not None else ""


def _scenarios_need(number: int) -> str:
    if not number:  # no scenario file could be read, so it is not known how many there are
        return "the scenarios need"
    return "1 scenario needs" if number == 1 else f"{number:,} scenarios need"
