"""The last step before a run. It is the only step that creates the objects (agents, models, judges, mocks)
named in the configuration."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, NamedTuple

from agenteval.adapters.agents import AGENTS
from agenteval.adapters.traffic.middleware import RecordingOptions, Traffic
from agenteval.conversation.deadlines import Deadlines
from agenteval.conversation.mocks import MockFunctions
from agenteval.conversation.runtime import RunControl, Runtime
from agenteval.conversation.user import ScenarioUser
from agenteval.core.config import AgentConfig, Config, ModelConfig
from agenteval.core.errors import AgentevalError, AuthorError, Place, Problem, locate_errors
from agenteval.core.event import Event, Notice, RunStarted
from agenteval.core.marked_secrets import MarkedSecrets
from agenteval.core.plan import ModelRole, Plan
from agenteval.core.protocols import (
    AgentAdapter,
    AgentFactory,
    AgentTool,
    CallUserTool,
    ChatModel,
    Emit,
    NoHistory,
    Reviewer,
    SampleQueue,
    Scorer,
    Subject,
    User,
)
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.files import scenario_loader
from agenteval.files.prompts import USER_REVIEW, USER_TOOLS, Prompt
from agenteval.files.redaction import MASK, environment_secrets, register_marked_secrets, register_secrets
from agenteval.files.regular_files import read_text
from agenteval.planning import judge_setup, preflight
from agenteval.planning.tool_hints import apply_tool_hints
from agenteval.verdict.ledger import BudgetLedger, how_to_price
from agenteval.verdict.sequential import PlannedQueue, SequentialQueue

if TYPE_CHECKING:
    from agenteval.adapters.agents.mcp_agents import McpServers
    from agenteval.adapters.models import ModelResources
    from agenteval.adapters.traffic.cassettes import Cassette
    from agenteval.adapters.traffic.leased_calls import LeasedCalls
    from agenteval.adapters.transport.client import Transport
    from agenteval.adapters.transport.limits import CallLimits
    from agenteval.conversation.python_world import PythonWorld
    from agenteval.planning.sample_selection import SelectedSamples
    from agenteval.planning.suite import Settings, Suite
    from agenteval.world.database import WorldDatabase


def _marked_texts(config: Config) -> Iterator[str]:
    """Yield the secrets that the author marked. Their encoded forms (in a URL or base64) are also masked, as
    for all other secrets."""
    for agent in config.all_agents:
        yield from (secret for secret in agent.secrets if MASK not in secret)


def all_secrets(config: Config, found: Iterable[str]) -> tuple[str, ...]:
    """Return every string that must not be shown: the secrets from the configuration (``found``) and the
    models' API keys."""
    from agenteval.adapters.models.endpoints import keys_of

    return tuple(dict.fromkeys((*found, *keys_of(config.models.all, os.environ))))


class Resources:
    """Resources shared by all parts of one run: connections and models (created on first use), the secrets to
    mask, and the destination for notices."""

    def __init__(
        self,
        config: Config,
        secrets: Sequence[str] = (),
        *,
        no_judge: bool = False,
        recording: RecordingOptions | None = None,
        cassette: Cassette | None = None,
        marked: MarkedSecrets | None = None,
        declared_tools: Collection[str] = (),
        leased: LeasedCalls | None = None,
    ) -> None:
        self.config = config
        self.leased = leased
        """The limits and the budget that several processes share. None if the run has only this process."""
        self.declared_tools = declared_tools
        """The tools declared by any scenario in the suite."""
        self.config_secrets = tuple(secrets)
        """The secrets that the configuration names."""
        known = (*all_secrets(config, secrets), *environment_secrets(), *_marked_texts(config))
        self.secrets = tuple(dict.fromkeys(known))
        register_secrets(self.secrets)
        self.no_judge = no_judge
        self.emit: Emit | None = None
        self._warned: set[str] = set()
        self._early_warnings: list[str] = []
        self.unpriced_agents: tuple[str, ...] = ()
        self.agent_descriptions: dict[str, str] = {}
        """A sentence for each agent that describes how its adapter runs it, or an empty string."""
        self.database_remedies: dict[str, str] = {}
        """What would give each agent the path of an exposed database, or an empty string if it gets it."""
        self.write_example_databases: Callable[[str], Mapping[str, str]] = lambda _agent: {}
        self.agent_tools: dict[str, tuple[AgentTool, ...]] = {}
        self.agents_without_history: dict[str, NoHistory] = {}
        """The tools of each agent whose tools are known."""
        self._transport: Transport | None = None
        self._models: dict[str, ChatModel] = {}
        self._mcp: McpServers | None = None
        self._model_resources: ModelResources | None = None
        self._limits: CallLimits | None = leased
        self.stop_for_budget: Callable[[str], None] = lambda _why: None
        """Stops the run because its budget is used up. It has no effect before ``attach``."""
        self.traffic = Traffic(
            config,
            recording,
            cassette=cassette,
            marked=marked,
            secrets=self.secrets,
            notify=self.notify,
            warn=self.warn,
            note=self.forward_event,
            leased=leased,
        )
        self.marked = self.traffic.marked
        """The secrets that the author marked."""
        register_marked_secrets((*self.marked.all, *self.marked.all.values()), also=True)

    def attach(self, emit: Emit, control: RunControl) -> None:
        """Connect the resources to the run: set the destination for notices and the callback that stops the
        run when the budget is exceeded."""
        self.emit = emit
        self.traffic.begin()
        if self.traffic.ledger is None:
            return

        def stop(why: str) -> None:
            emit(Notice(level="warning", text=why))
            control.stop("budget")

        self.stop_for_budget = stop
        if isinstance(self.traffic.ledger, BudgetLedger):  # another process says it otherwise
            self.traffic.ledger.on_stop = stop
        for name in self.unpriced_agents:
            key = preflight.cost_limit_key(self.config, "agent")
            why = f"`{key}` does not limit agent '{name}', whose price is unknown"
            emit(Notice(level="warning", text=f"{why}; {how_to_price(name)}"))

    def notify(self, text: str, key: SampleKey | None = None) -> None:
        if self.emit:
            self.emit(Notice(text=text, key=key))

    def forward_event(self, event: Event) -> None:
        if self.emit:
            self.emit(event)

    def warn(self, text: str) -> None:
        if text in self._warned:
            return
        self._warned.add(text)
        if self.emit:
            self.emit(Notice(level="warning", text=text))
        else:
            self._early_warnings.append(text)

    def has_warned(self, text: str) -> bool:
        """Check whether a notice was given that is shown once in a run."""
        return text in self._warned

    def take_warnings(self) -> tuple[str, ...]:
        """Return the warnings issued before the run that have not been returned yet."""
        warnings, self._early_warnings = self._early_warnings, []
        return tuple(warnings)

    def limits(self) -> CallLimits:
        """Return the rate limits (HTTP 429 handling, concurrency) of servers. Models and agents at the same
        address share the limits."""
        from agenteval.adapters.transport.limits import RateLimits

        self._limits = self._limits or RateLimits()
        return self._limits

    def jitter(self) -> Callable[[], float]:
        """Return the random source of the jitter for retries (exponential backoff). Runs with the same seed
        use the same sequence."""
        return Random(self.config.seed).random

    def place_of(self, agent: AgentConfig, key: str) -> Place:
        return self.config.place(f"{_key_of(agent, self.config)}.{key}")

    def transport(self) -> Transport:
        from agenteval.adapters.transport.client import Transport
        from agenteval.adapters.transport.retry import RetryPolicy

        if self._transport is None:
            self._transport = Transport(retry=RetryPolicy(jitter=self.jitter()), limits=self.limits())
        return self._transport

    def mcp(self) -> McpServers:
        """Return the MCP servers that provide the tools of agents with ``mcp``."""
        from agenteval.adapters.agents.mcp_agents import McpServers

        self._mcp = self._mcp or McpServers()
        return self._mcp

    def model(self, role: ModelRole) -> ChatModel | None:
        """Return the model for a role, or None if no model is set or judging is switched off. Also return
        None if the role is grouping and a scripted model has no rules for it, because code alone can group
        the findings. Raise ``AuthorError`` if the model cannot be created."""
        with locate_errors(self.config.place(self.config.models.key_of(role))):
            return self._model(role)

    def _model(self, role: ModelRole) -> ChatModel | None:
        chosen = self.config.models.model_for(role)
        if chosen is None or (self.no_judge and role != "user"):
            return None
        if role == "dedup" and chosen.provider == "scripted":
            from agenteval.adapters.models.scripted_model import has_rules_for

            if not has_rules_for(chosen.name, Path(self.config.root), role):
                return None
        key = f"{role}\0{chosen.model_dump_json()}"
        if key not in self._models:
            self._models[key] = self.traffic.model(chosen, lambda: self._make_model(chosen, role), role=role)
        return self._models[key]

    def _make_model(self, chosen: ModelConfig, role: ModelRole) -> ChatModel:
        from agenteval.adapters.models import ModelResources, make_model
        from agenteval.adapters.models.capabilities import Capabilities
        from agenteval.adapters.models.pool import ModelPool

        if self._model_resources is None:
            pool = ModelPool(self.config.concurrency)
            self._model_resources = ModelResources(pool, Capabilities(), self.notify, self.limits())
        return make_model(
            chosen,
            role=role,
            shared=self._model_resources,
            environ=os.environ,
            root=Path(self.config.root),
            jitter=self.jitter(),
        )

    async def aclose(self) -> None:
        for model in self._models.values():
            await model.aclose()
        if self._transport:
            await self._transport.aclose()
        if self._mcp:
            self._mcp.close()
        self.traffic.close()


def _key_of(agent: AgentConfig, config: Config) -> str:
    """Return the configuration key that defines an agent."""
    if config.agent and config.agent.name == agent.name:
        return "agent"
    compared = (f"compare.{at}" for at, each in enumerate(config.compare) if each.name == agent.name)
    return next(compared, f"agents.{agent.name}")


@dataclass(frozen=True)
class WiredRun:
    """A plan, along with all objects that are needed to carry it out."""

    runtime: Runtime
    resources: Resources
    samples: tuple[Sample, ...]
    """The selected samples, with their tools marked according to the hints from the agents' own tools."""
    remarks: tuple[str, ...] = ()
    """Notes on items that will not be checked, although a user may expect them to be."""

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        return preflight.scenarios_of(self.samples)


def make_resources(
    settings: Settings, *, declared_tools: Collection[str] = (), leased: LeasedCalls | None = None
) -> Resources:
    return Resources(
        settings.config,
        settings.secrets,
        no_judge=settings.policy.no_judge,
        recording=settings.recording,
        cassette=settings.replayed_recording,
        marked=settings.marked_secrets,
        declared_tools=declared_tools,
        leased=leased,
    )


def wire(plan: Plan, suite: Suite, selected: SelectedSamples, leased: LeasedCalls | None = None) -> WiredRun:
    """Create the objects that the configuration names, without calling any agent or model. Agents, mocks and
    models are loaded here. ``leased`` are the limits that several processes share. Raise ``AuthorError`` with
    all problems found."""
    declared = frozenset(name for scenario in suite.scenarios for name in scenario.tools)
    resources = make_resources(suite.settings, declared_tools=declared, leased=leased)
    mocks = MockFunctions(timeout_s=_timeout_s(selected))
    problems: list[Problem] = []
    # Agents come first, so that their modules are watched when mocks import them, too.
    with preflight.example_databases(selected.samples, plan.suite) as resources.write_example_databases:
        agents = _make_agents(selected.agents, resources, problems)
    found = [*_find_problems(plan, suite, selected, resources, mocks), *problems]
    found += preflight.foreign_tools(selected.samples, resources.agent_tools)
    found += preflight.unreachable_databases(selected.samples, resources.database_remedies)
    found += preflight.history_problems(selected.samples, resources.agents_without_history)
    found += preflight.checks_of_unseen_calls(selected.samples, plan.visibility)
    if found:
        raise AuthorError(*dict.fromkeys(found))
    samples = apply_tool_hints(selected.samples, resources.agent_tools)
    runtime = _make_runtime(plan, suite, selected, samples, resources, agents, mocks)
    misspelt = preflight.misspelt_mocks(samples, resources.agent_tools)
    scenarios = preflight.scenarios_of(samples)
    prompts = judge_setup.hash_prompts(suite.settings.metrics, plan.suite, scenarios)
    resources.traffic.start(scenarios, prompts)
    return WiredRun(runtime, resources, samples, (*misspelt, *resources.take_warnings()))


def _timeout_s(selected: SelectedSamples) -> float:
    """Return the timeout for the author's code, excluding the agent. It is equal to the longest agent
    timeout."""
    return max((agent.timeout_s for agent in selected.agents.values()), default=60.0)


def _find_problems(
    plan: Plan, suite: Suite, selected: SelectedSamples, resources: Resources, mocks: MockFunctions
) -> Iterator[Problem]:
    """Yield the problems in mocks, checks, detectors, models and prices."""
    config, metrics, no_judge = suite.settings.config, suite.settings.metrics, resources.no_judge
    scenarios = selected.scenarios
    yield from preflight.mock_problems(scenarios, mocks)
    yield from preflight.check_problems(scenarios)
    yield from preflight.detector_problems(config)
    yield from preflight.model_problems(scenarios, config, metrics, no_judge=no_judge)
    if resources.traffic.ledger:
        yield from preflight.price_problems(scenarios, config, metrics, no_judge=no_judge)
        resources.unpriced_agents = preflight.unpriced_agents(selected.agents, config)
    yield from _model_problems(scenarios, resources)


def _make_runtime(
    plan: Plan,
    suite: Suite,
    selected: SelectedSamples,
    samples: tuple[Sample, ...],
    resources: Resources,
    agents: Mapping[str, AgentFactory],
    mocks: MockFunctions,
) -> Runtime:
    config, metrics = suite.settings.config, suite.settings.metrics
    scenarios = preflight.scenarios_of(samples)
    policies = {name: policy_of(agent, config.root) for name, agent in selected.agents.items()}
    user_prompts = {each.id: metrics.prompts.user_prompt(each) for each in scenarios}
    timeout_s = _timeout_s(selected)
    return Runtime(
        queue=_make_queue(samples, plan, resources),
        agents=agents,
        make_user=lambda sample, call_tool: _make_user(
            sample,
            call_tool,
            plan,
            resources,
            _UserPrompts(user_prompts[sample.scenario.id], metrics.prompts.prompt(USER_TOOLS)),
            policies.get(sample.key.agent, ""),
        ),
        call_function=mocks,
        checks={
            name: _make_checks(agent, scenarios, plan, resources, timeout_s)
            for name, agent in selected.agents.items()
        },
        judges={
            name: _make_agent_judges(agent, scenarios, plan, metrics, resources, timeout_s)
            for name, agent in selected.agents.items()
        },
        reviewer=_make_reviewer_if_simulated(scenarios, plan, metrics, resources),
        agent_concurrency=config.agent_concurrency or config.concurrency,
        unmocked_tools=plan.suite.unmocked_tools,
        visibility=plan.visibility,
        deadlines=Deadlines(plan.suite.deadlines.turn_s, plan.suite.deadlines.sample_s),
        fail_fast=suite.request.fail_fast,
        make_database=partial(
            make_database, now=plan.suite.now, is_replay=resources.traffic.player is not None
        ),
        open_world=partial(open_world, now=plan.suite.now, timeout_s=timeout_s),
    )


def make_database(sample: Sample, now: str | None, *, is_replay: bool = False) -> WorldDatabase | None:
    """Create the database of a sample, or return None if its scenario has no state. ``now`` is the configured
    time. If ``is_replay`` is true, the agent's answers are recorded ones, and its own tools do not run."""
    if not sample.scenario.uses_state:
        return None
    from agenteval.planning.state_problems import run_time, scenario_start_state
    from agenteval.world.database import WorldDatabase
    from agenteval.world.loading import world_time

    start = scenario_start_state(sample.scenario, now)
    assert start is not None
    time, state = world_time(now, run_time()), sample.scenario.state
    if state is None or state.expose is None:
        return WorldDatabase(start, time, sample.seed)
    from agenteval.world.exposed_database import ExposedDatabase

    return ExposedDatabase(start, time, sample.seed, unknown=_OF_REPLAY if is_replay else "")


_OF_REPLAY = (
    "the answers are those of a recording, in which the agent's own tools do not work on the database"
)


async def open_world(
    sample: Sample, database: WorldDatabase | None, *, now: str | None, timeout_s: float
) -> PythonWorld | None:
    """Create the world in Python of a sample, or return None if its scenario has none. ``now`` is the
    configured time. Raise ``AuthorError`` if the author's code fails."""
    if not sample.scenario.world:
        return None
    from agenteval.conversation.python_world import open_python_world
    from agenteval.planning.state_problems import world_rows

    read_rows = partial(world_rows, sample.scenario, now)
    return await open_python_world(sample, database, read_rows, timeout_s=timeout_s)


def _model_problems(scenarios: Sequence[Scenario], resources: Resources) -> Iterator[Problem]:
    """Yield a problem for each model that cannot be created. Every model that may be called is created before
    the first conversation."""
    plays = any(not scenario.is_scripted for scenario in scenarios)
    roles: tuple[ModelRole, ...] = ("user", "judge", "dedup") if plays else ("judge", "dedup")
    for role in roles:
        try:
            resources.model(role)
        except AuthorError as error:
            yield from error.problems


def _make_agents(
    used: Mapping[str, AgentConfig], resources: Resources, problems: list[Problem]
) -> dict[str, AgentFactory]:
    """Create the agents, and add any problems with an agent to ``problems``."""
    factories: dict[str, AgentFactory] = {}
    for name, agent in used.items():
        try:
            factories[name] = resources.traffic.agents(agent, partial(make_agent_factory, agent, resources))
        except AuthorError as error:
            problems += error.problems
    return factories


_NO_DATABASE = "use an agent of type command, python or http, or remove `expose`"


def make_agent_factory(agent: AgentConfig, resources: Resources) -> AgentFactory:
    """Create the factory for an agent. Raise ``AuthorError`` on failure."""
    adapter = AGENTS.get(agent.kind)
    with locate_errors(resources.place_of(agent, "type")):
        try:
            factory = _make_factory(agent, adapter, resources)
            resources.agent_descriptions[agent.name] = str(getattr(factory, "does", ""))
            remedy = getattr(factory, "database_remedy", None)
            resources.database_remedies[agent.name] = _NO_DATABASE if remedy is None else remedy
            if (tools := getattr(factory, "tools", None)) is not None:
                resources.agent_tools[agent.name] = tuple(tools)
            if no_history := getattr(factory, "no_history", None):
                resources.agents_without_history[agent.name] = no_history
            return factory
        except AgentevalError:
            raise
        except Exception as error:
            if agent.kind in AGENTS.built_in:
                raise
            what = f"agent '{agent.name}' cannot be created: {type(error).__name__}: {error}"
            raise AuthorError(Problem(what, f"the error comes from the adapter '{agent.kind}'")) from error


def _make_factory(agent: AgentConfig, adapter: AgentAdapter, resources: Resources) -> AgentFactory:
    options = adapter.parse_options(agent)
    if not agent.mcp:
        return adapter.make(agent, options, resources)
    from agenteval.adapters.agents.mcp_server import bind_mcp_url, require_sdk

    with locate_errors(resources.place_of(agent, "mcp")):
        require_sdk("mcp: true")
    is_here = not adapter.hears_mcp_url(options)
    servers = resources.mcp()
    with bind_mcp_url(servers.in_process_address() if is_here else servers.host.address()):
        return servers.agents(adapter.make(agent, options, resources), in_process=is_here)


def _make_checks(
    agent: AgentConfig,
    scenarios: Sequence[Scenario],
    plan: Plan,
    resources: Resources,
    timeout_s: float,
) -> tuple[Scorer, ...]:
    """Create the code checks for one agent, using the agent's policy. ``timeout_s`` applies to checks written
    by the author."""
    from agenteval.scoring.checks.expectations import ConversationExpectations, TurnExpectations
    from agenteval.scoring.detectors.scorer import DetectorScorer
    from agenteval.scoring.judges.unjudged_checks import UnjudgedChecks

    found = DetectorScorer(
        plan.suite, policy_of(agent, resources.config.root), resources.marked.for_agent(agent.name)
    )
    scorers: list[Scorer] = [TurnExpectations(timeout_s), ConversationExpectations(timeout_s), found]
    if preflight.has_fault_variants(scenarios) and resources.model("judge") is None:
        from agenteval.scoring.fault_scorer import FaultScorer

        why = "--no-judge; run without it" if resources.no_judge else "set `models.default`"
        scorers.append(FaultScorer(timeout_s, None, why))
    if resources.no_judge:
        scorers.append(
            UnjudgedChecks(
                lambda scenario: scenario_loader.is_vacuous_scenario(
                    scenario, thresholds_apply=False, judges_gate=False
                )
            )
        )
    return tuple(scorers)


def _make_agent_judges(
    agent: AgentConfig,
    scenarios: Sequence[Scenario],
    plan: Plan,
    chosen: judge_setup.Metrics,
    resources: Resources,
    timeout_s: float,
) -> tuple[Scorer, ...]:
    """Create the LLM judges for one agent, using the agent's policy."""
    if resources.no_judge:
        return ()
    policy = policy_of(agent, resources.config.root)
    return judge_setup.make_judges(
        chosen,
        resources.model("judge"),
        plan.suite,
        rules_for=lambda scenario: plan.rules_for_pairing(scenario.id, agent.name),
        policy_of=lambda _: policy,
        secrets=resources.marked.for_agent(agent.name),
        criteria=any(scenario.all_criteria for scenario in scenarios),
        faults=preflight.has_fault_variants(scenarios),
        timeout_s=timeout_s,
    )


def _make_queue(samples: Sequence[Sample], plan: Plan, resources: Resources) -> SampleQueue:
    may_play_again = resources.traffic.may_play_again
    if plan.shard:
        played = frozenset(plan.shard.scenarios)
        samples = [sample for sample in samples if sample.key.scenario in played]
    if plan.ranges:
        return SequentialQueue(samples, plan.ranges, plan.suite.seed, may_play_again=may_play_again)
    return PlannedQueue(samples, may_play_again=may_play_again)


def _make_reviewer_if_simulated(
    scenarios: Sequence[Scenario], plan: Plan, chosen: judge_setup.Metrics, resources: Resources
) -> Reviewer | None:
    """Create the reviewer of simulated users, or return None if no user is simulated."""
    return (
        None if all(each.is_scripted for each in scenarios) else make_user_reviewer(plan, chosen, resources)
    )


def make_user_reviewer(plan: Plan, chosen: judge_setup.Metrics, resources: Resources) -> Reviewer | None:
    """Create the reviewer of simulated users, or return None if there is no judge. A scripted judge reviews
    users only if its file contains an answer to review questions."""
    config = resources.config
    model = resources.model("judge")
    judge = config.models.model_for("judge")
    if model is None or judge is None:
        return None
    from agenteval.adapters.models.scripted_model import metric_rule_predicate
    from agenteval.scoring.judges.user_review import UserReviewer
    from agenteval.verdict.sample_ending import build_ended_conversation

    is_asked: Callable[[Subject], bool] = lambda _subject: True  # noqa: E731
    if judge.provider == "scripted":
        is_asked = metric_rule_predicate(judge.name, Path(config.root), "judge")
    run = RunStarted(
        run_id="",
        started_at=datetime.now(UTC).isoformat(),
        config=config,
        plan=plan,
        scenarios=(),
    )
    return UserReviewer(
        model,
        partial(build_ended_conversation, run),
        chosen.prompts.prompt(USER_REVIEW),
        seed=plan.suite.seed,
        now=plan.suite.now or "",
        is_asked=is_asked,
    )


class _UserPrompts(NamedTuple):
    """The prompts for the simulated user of a scenario."""

    prompt: Prompt
    tools: Prompt


def _make_user(
    sample: Sample,
    call_tool: CallUserTool,
    plan: Plan,
    resources: Resources,
    prompts: _UserPrompts,
    policy: str,
) -> User:
    user = _make_scenario_user(sample, call_tool, plan, resources, prompts, policy)
    if sample.scenario.variant is None or not sample.scenario.variant.is_compared:
        return user
    from agenteval.conversation.altering_user import AlteringUser

    return AlteringUser(user, sample)


def _make_scenario_user(
    sample: Sample,
    call_tool: CallUserTool,
    plan: Plan,
    resources: Resources,
    prompts: _UserPrompts,
    policy: str,
) -> User:
    max_turns = plan.rules_for_pairing(sample.key.scenario, sample.key.agent).max_turns
    if sample.scenario.is_scripted:
        return ScenarioUser(sample, max_turns=max_turns, call_tool=call_tool)
    from agenteval.conversation.simulated_user import SimulatedUser

    model = resources.model("user")
    assert model is not None  # preflight requires one
    simulated = SimulatedUser(
        sample,
        model,
        now=plan.suite.now,
        prompt=prompts.prompt,
        tools_prompt=prompts.tools,
        call_tool=call_tool,
        policy=policy,
        agent_has_tools=plan.suite.unmocked_tools == "passthrough",
    )
    return ScenarioUser(sample, simulated, max_turns=max_turns, call_tool=call_tool)


def policies_of(config: Config, names: Collection[str]) -> dict[str, str]:
    """Return the policy text of each agent in ``names``."""
    used = (agent for agent in config.all_agents if agent.name in names)
    return {agent.name: policy_of(agent, config.root) for agent in used}


def policy_of(agent: AgentConfig, root: str) -> str:
    """Return the text of ``policy``: either the value itself or the content of the file that the value names.
    The file name is relative to the configuration's folder. Raise ``AuthorError`` if the value looks like a
    file name but no such file exists. Without this error, judges and leak checks would silently run without a
    policy."""
    file = policy_file(agent, root)
    return read_text(file, f"policy of agent '{agent.name}'") if file else agent.policy or ""


def policy_file(agent: AgentConfig, root: str) -> Path | None:
    """Return the file that ``policy`` names, or None if the value is the policy text itself. Raise the same
    ``AuthorError`` as ``policy_of``."""
    policy = agent.policy or ""
    if policy and "\n" not in policy and len(policy) < 500:
        path = Path(root) / policy
        if os.path.isfile(path):  # false also for a text that no file can have as its name, unlike `is_file`
            return path
        if os.path.exists(path) or (Path(policy).suffix in _TEXT_FILES and not any(map(str.isspace, policy))):
            what = f"the policy of agent '{agent.name}' is not a file: {policy}"
            raise AuthorError(
                Problem(what, "use a path relative to the configuration file, or the text itself")
            )
    return None


_TEXT_FILES = frozenset((".md", ".txt", ".markdown", ".rst", ".prompt", ".j2"))
