"""Names become objects here, and nowhere else: a configuration and scenarios become a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval import gates
from agenteval.config import AgentConfig, Config
from agenteval.errors import AuthorError, Place, Problem, did_you_mean, place_of
from agenteval.event import Notice
from agenteval.mocks import MockFunctions
from agenteval.pipeline import Plan
from agenteval.protocols import AgentFactory, Emit, User
from agenteval.scenario import Sample, Scenario
from agenteval.user import ScenarioUser
from agenteval.user_code import load

if TYPE_CHECKING:
    from agenteval.transport import Transport

REPORTERS = {
    "terminal": "agenteval.reporters.terminal:render",
    "json": "agenteval.reporters.results_json:render",
    "junit": "agenteval.reporters.junit_xml:render",
    "github": "agenteval.reporters.github_actions:render",
    "markdown": "agenteval.reporters.markdown:render",
}
AGENTS = {
    "python": "agenteval.wiring:python_agents",
    "http": "agenteval.wiring:http_agents",
}


def named(kind: str, built_in: dict[str, str], name: str) -> Any:
    """The object of a name: built in, or registered by a package under ``agenteval.<kind>s``. Raises
    ``AuthorError``."""
    target = built_in.get(name)
    if target is None:
        for entry in entry_points(group=f"agenteval.{kind}s"):
            if entry.name == name:
                return entry.load()
        raise AuthorError(Problem(f"no {kind} is named '{name}'", did_you_mean(name, built_in)))
    module, _, attribute = target.partition(":")
    return getattr(import_module(module), attribute)


def reporter(name: str) -> Callable[..., str]:
    found: Callable[..., str] = named("reporter", REPORTERS, name)
    return found


class Resources:
    """What the parts of one run share: the connection pool (made when first asked for), the secrets
    that no text may show, and where notices go."""

    def __init__(self, config: Config, secrets: Sequence[str] = ()) -> None:
        self.config = config
        self.secrets = tuple(secrets)
        self.emit: Emit | None = None
        self._transport: Transport | None = None

    def tell(self, text: str) -> None:
        if self.emit:
            self.emit(Notice(text=text))

    def transport(self) -> Transport:
        from agenteval.transport import Retry, Transport

        def told(retry: Retry) -> None:
            self.tell(f"{retry.where}: {retry.reason}; trying again in {retry.wait_s:.1f} s")

        self._transport = self._transport or Transport(on_retry=told)
        return self._transport

    async def aclose(self) -> None:
        if self._transport:
            await self._transport.aclose()


def python_agents(agent: AgentConfig, resources: Resources) -> AgentFactory:
    from agenteval.agents.python import PythonAgents

    config = resources.config
    place = _place_of_agent(agent, config, "target")
    target = load(agent.target or "", config.root, what=f"agent '{agent.name}'", place=place)
    return PythonAgents(target, timeout_s=agent.timeout_s)


def http_agents(agent: AgentConfig, resources: Resources) -> AgentFactory:
    from agenteval.agents.http import HttpAgents

    return HttpAgents(agent, transport=resources.transport(), secrets=resources.secrets)


def _place_of_agent(agent: AgentConfig, config: Config, key: str) -> Place:
    inside = "agent" if config.agent and config.agent.name == agent.name else f"agents.{agent.name}"
    return place_of(config.where(f"{inside}.{key}"))


def plan(
    samples: Sequence[Sample],
    config: Config,
    agents: Mapping[str, AgentConfig],
    resources: Resources,
    *,
    fail_fast: bool = False,
) -> Plan:
    """Everything that the pipeline needs. All that can be known to be wrong before the first call is
    raised as ``AuthorError`` here: agents and mocks are loaded, scenarios checked."""
    from agenteval.scorers.expectations import ConversationExpectations, TurnExpectations
    from agenteval.scorers.unknown_tool import UnknownTool

    scenarios = tuple({sample.scenario.id: sample.scenario for sample in samples}.values())
    mocks = MockFunctions(timeout_s=max((agents[s.key.agent].timeout_s for s in samples), default=60.0))
    _check_scenarios(scenarios, config, mocks)
    used = dict.fromkeys(sample.key.agent for sample in samples)
    factories = {name: named("agent", AGENTS, agents[name].kind)(agents[name], resources) for name in used}
    return Plan(
        samples=samples,
        agents=factories,
        make_user=_make_user,
        call_function=mocks,
        checks=(TurnExpectations(), ConversationExpectations(), UnknownTool(config)),
        agent_concurrency=config.agent_concurrency or config.concurrency,
        unmocked=config.unmocked_tools,
        is_failure=(lambda items, stop: gates.sample_failed(items, stop, config)) if fail_fast else None,
    )


def _make_user(sample: Sample) -> User:
    return ScenarioUser(sample, max_turns=8)


def _check_scenarios(scenarios: Sequence[Scenario], config: Config, mocks: MockFunctions) -> None:
    from agenteval.loading import vacuous

    problems: list[Problem] = []
    for scenario in scenarios:
        if vacuous(scenario, thresholds_apply=False, label_metrics=False):
            remedy = "add expect:, or say checks: none"
            problems.append(Problem(f"'{scenario.id}' checks nothing", remedy, place_of(scenario.source)))
        for name, tool in scenario.tools.items():
            if not tool.is_mocked and config.unmocked_tools == "error":
                what = f"tool '{name}' does not say how it answers"
                remedy = "add returns:, error:, sequence: or python:"
                problems.append(Problem(what, remedy, place_of(scenario.where(f"tools.{name}"))))
        try:
            mocks.check(scenario)
        except AuthorError as error:
            problems += [p for p in error.problems if p not in problems]
    if problems:
        raise AuthorError(*problems)


def policy_of(agent: AgentConfig, root: str) -> str:
    """The text of ``policy``: itself, or what the file of that name (from the configuration's folder)
    holds."""
    policy = agent.policy or ""
    if policy and "\n" not in policy and len(policy) < 500:
        path = Path(root) / policy
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return policy
