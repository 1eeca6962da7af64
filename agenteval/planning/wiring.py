"""Names become objects here, and nowhere else: a configuration and scenarios become a plan."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from agenteval.adapters.agents import AGENTS
from agenteval.adapters.traffic.middleware import Recording, Traffic
from agenteval.conversation.current_sample import enter
from agenteval.conversation.deadlines import Deadlines
from agenteval.conversation.mocks import MockFunctions
from agenteval.conversation.pipeline import Control, Runtime
from agenteval.conversation.user import ScenarioUser
from agenteval.core.config import AgentConfig, Config, ModelConfig
from agenteval.core.errors import AgentevalError, AuthorError, Place, Problem, placed_at
from agenteval.core.event import Event, Notice, RunStarted
from agenteval.core.plan import ModelRole, Plan
from agenteval.core.protocols import (
    AgentAdapter,
    AgentFactory,
    AgentTool,
    ChatModel,
    Emit,
    Reviewer,
    SampleQueue,
    Scorer,
    Subject,
    User,
)
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.tool_visibility import KnownVisibility, declared_visibility
from agenteval.files import loading
from agenteval.files.plain_files import read_text
from agenteval.files.prompts import USER_REVIEW
from agenteval.files.redact import MASK, know, know_marked, secrets_of_environment
from agenteval.planning import judging, preflight
from agenteval.planning.tool_hints import with_hints
from agenteval.verdict.ledger import how_to_price
from agenteval.verdict.sequential import InOrder, UntilDecided

if TYPE_CHECKING:
    from agenteval.adapters.agents.mcp_agents import McpServers
    from agenteval.adapters.models import Shared
    from agenteval.adapters.transport.client import Transport
    from agenteval.adapters.transport.limits import RateLimits


def _marked_texts(config: Config) -> Iterator[str]:
    """What the author marked, whose other forms (in a URL, in base64) are masked as those of any secret."""
    for agent in config.all_agents:
        yield from (secret for secret in agent.secrets if MASK not in secret)


def all_secrets(config: Config, found: Iterable[str]) -> tuple[str, ...]:
    """Every text that nothing may show: ``found`` in the configuration, and the models' keys."""
    from agenteval.adapters.models.endpoints import keys_of

    return tuple(dict.fromkeys((*found, *keys_of(config.models.all, os.environ))))


class Resources:
    """What the parts of one run share: connections and models (made when first asked for), the secrets
    that no text may show, and where notices go."""

    def __init__(
        self,
        config: Config,
        secrets: Sequence[str] = (),
        *,
        no_judge: bool = False,
        recording: Recording | None = None,
        declared_tools: Collection[str] = (),
    ) -> None:
        self.config = config
        self.declared_tools = declared_tools
        """The tools that any scenario of the suite declares."""
        self.named = tuple(secrets)
        """Those of the secrets that the configuration names."""
        known = (*all_secrets(config, secrets), *secrets_of_environment(), *_marked_texts(config))
        self.secrets = tuple(dict.fromkeys(known))
        know(self.secrets)
        self.no_judge = no_judge
        self.emit: Emit | None = None
        self._warned: set[str] = set()
        self._early_warnings: list[str] = []
        self.unpriced_agents: tuple[str, ...] = ()
        self.agents_do: dict[str, str] = {}
        """By agent, what is done with it, in words; for those whose adapter says so."""
        self.agents_have: dict[str, tuple[AgentTool, ...]] = {}
        """By agent, its tools; of those that are known."""
        self._transport: Transport | None = None
        self._models: dict[str, ChatModel] = {}
        self._mcp: McpServers | None = None
        self._llm: Shared | None = None
        self._limits: RateLimits | None = None
        self.traffic = Traffic(
            config, recording, secrets=self.secrets, tell=self.tell, warn=self.warn, note=self.note
        )
        self.marked = self.traffic.marked
        """The secrets that the author marked."""
        know_marked((*self.marked.all, *self.marked.all.values()), also=True)

    def attach(self, emit: Emit, control: Control) -> None:
        """The run begins: where notices go, and how a budget stops it."""
        self.emit = emit
        self.traffic.begin()
        if self.traffic.ledger is None:
            return

        def stop(why: str) -> None:
            emit(Notice(level="warning", text=why))
            control.stop("budget")

        self.traffic.ledger.on_stop = stop
        for name in self.unpriced_agents:
            key = preflight.bounded_in_money(self.config, "agent")
            why = f"{key} does not bound agent '{name}', whose price is unknown"
            emit(Notice(level="warning", text=f"{why}; {how_to_price(name)}"))

    def tell(self, text: str, key: SampleKey | None = None) -> None:
        if self.emit:
            self.emit(Notice(text=text, key=key))

    def note(self, event: Event) -> None:
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

    def take_warnings(self) -> tuple[str, ...]:
        """Return the warnings since the last time, of before a run."""
        warnings, self._early_warnings = self._early_warnings, []
        return tuple(warnings)

    def limits(self) -> RateLimits:
        """How fast servers are asked: models and agents at one address heed the same."""
        from agenteval.adapters.transport.limits import RateLimits

        self._limits = self._limits or RateLimits()
        return self._limits

    def jitter(self) -> Callable[[], float]:
        """Of waits for retries; the same in each run with the same seed."""
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
        """Where agents with ``mcp`` find their tools."""
        from agenteval.adapters.agents.mcp_agents import McpServers

        self._mcp = self._mcp or McpServers()
        return self._mcp

    def model(self, role: ModelRole) -> ChatModel | None:
        """The model of a role; ``None`` if none is set, if judging is switched off, or if the scripted model
        says nothing of grouping: code can do that alone. Raises ``AuthorError`` for one that cannot be made.
        """
        with placed_at(self.config.place(self.config.models.key_of(role))):
            return self._model(role)

    def _model(self, role: ModelRole) -> ChatModel | None:
        chosen = self.config.models.of(role)
        if chosen is None or (self.no_judge and role != "user"):
            return None
        if role == "dedup" and chosen.provider == "scripted":
            from agenteval.adapters.models.scripted import plays

            if not plays(chosen.name, Path(self.config.root), role):
                return None
        key = f"{role}\0{chosen.model_dump_json()}"
        if key not in self._models:
            self._models[key] = self.traffic.model(chosen, lambda: self._make_model(chosen, role), role=role)
        return self._models[key]

    def _make_model(self, chosen: ModelConfig, role: ModelRole) -> ChatModel:
        from agenteval.adapters.models import Shared, make_model
        from agenteval.adapters.models.capabilities import Capabilities
        from agenteval.adapters.models.pool import ModelPool

        if self._llm is None:
            pool = ModelPool(self.config.concurrency)
            self._llm = Shared(pool, Capabilities(), self.tell, self.limits())
        return make_model(
            chosen,
            role=role,
            shared=self._llm,
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
    """Where the configuration names an agent."""
    if config.agent and config.agent.name == agent.name:
        return "agent"
    compared = (f"compare.{at}" for at, each in enumerate(config.compare) if each.name == agent.name)
    return next(compared, f"agents.{agent.name}")


def runtime_of(
    samples: Sequence[Sample],
    plan: Plan,
    used: Mapping[str, AgentConfig],
    chosen: judging.Metrics,
    resources: Resources,
    *,
    fail_fast: bool = False,
) -> tuple[Runtime, tuple[Sample, ...]]:
    """All that a run is carried out with, and the samples, their tools marked as the agents' own hint.
    Agents, mocks and models are loaded here; raises ``AuthorError`` with all that is wrong with them, before
    the first call."""
    config = resources.config
    scenarios = [scenario for scenario, _ in preflight.played(samples)]
    timeout_s = max((agent.timeout_s for agent in used.values()), default=60.0)
    mocks = MockFunctions(timeout_s=timeout_s)
    of_agents: list[Problem] = []
    factories = _agents(used, resources, of_agents)  # first: what mocks import of theirs is watched, too
    problems = [*preflight.mock_problems(scenarios, mocks), *preflight.check_problems(scenarios)]
    problems += preflight.detector_problems(config)
    problems += preflight.model_problems(scenarios, config, chosen, no_judge=resources.no_judge)
    if resources.traffic.ledger:
        problems += preflight.price_problems(scenarios, config, chosen, no_judge=resources.no_judge)
        resources.unpriced_agents = preflight.unpriced_agents(used, config)
    problems += _model_mistakes(scenarios, resources)
    problems += of_agents
    problems += preflight.foreign_tools(samples, resources.agents_have)
    problems += preflight.checks_of_unseen_calls(samples, plan.visibility)
    if problems:
        raise AuthorError(*dict.fromkeys(problems))
    samples = with_hints(samples, resources.agents_have)
    scenarios = [scenario for scenario, _ in preflight.played(samples)]
    policies = {name: policy_of(agent, config.root) for name, agent in used.items()}
    made = Runtime(
        queue=_queue(samples, plan, resources),
        agents=factories,
        make_user=lambda sample: _make_user(
            sample, plan, resources, chosen, policies.get(sample.key.agent, "")
        ),
        call_function=mocks,
        checks={name: _checks(agent, plan, resources, timeout_s) for name, agent in used.items()},
        judges={name: _judges(agent, scenarios, plan, chosen, resources) for name, agent in used.items()},
        review=_review(scenarios, plan, chosen, resources),
        agent_concurrency=config.agent_concurrency or config.concurrency,
        unmocked=plan.suite.unmocked_tools,
        visibility=plan.visibility,
        deadlines=Deadlines(plan.suite.deadlines.turn_s, plan.suite.deadlines.sample_s),
        fail_fast=fail_fast,
    )
    resources.traffic.start(scenarios, judging.hashes_of(chosen, plan))
    return made, samples


def _model_mistakes(scenarios: Sequence[Scenario], resources: Resources) -> Iterator[Problem]:
    """Of the models that may be asked, those that cannot be made: each is made before any conversation."""
    plays = any(not scenario.is_scripted for scenario in scenarios)
    roles: tuple[ModelRole, ...] = ("user", "judge", "dedup") if plays else ("judge", "dedup")
    for role in roles:
        try:
            resources.model(role)
        except AuthorError as error:
            yield from error.problems


def _agents(
    used: Mapping[str, AgentConfig], resources: Resources, problems: list[Problem]
) -> dict[str, AgentFactory]:
    """What is wrong with one is added to the ``problems``."""
    factories: dict[str, AgentFactory] = {}
    for name, agent in used.items():
        try:
            factories[name] = resources.traffic.agents(agent, partial(agents_of, agent, resources))
        except AuthorError as error:
            problems += error.problems
    return factories


def agents_of(agent: AgentConfig, resources: Resources) -> AgentFactory:
    """Raises ``AuthorError`` for an agent that cannot be made."""
    adapter = AGENTS.get(agent.kind)
    with placed_at(resources.place_of(agent, "type")):
        try:
            factory = _made(agent, adapter, resources)
            resources.agents_do[agent.name] = str(getattr(factory, "does", ""))
            if (tools := getattr(factory, "tools", None)) is not None:
                resources.agents_have[agent.name] = tuple(tools)
            return factory
        except AgentevalError:
            raise
        except Exception as error:
            if agent.kind in AGENTS.built_in:
                raise
            what = f"agent '{agent.name}' cannot be made: {type(error).__name__}: {error}"
            raise AuthorError(Problem(what, f"the adapter '{agent.kind}' raised it")) from error


def _made(agent: AgentConfig, adapter: AgentAdapter, resources: Resources) -> AgentFactory:
    options = adapter.of(agent)
    if not agent.mcp:
        return adapter.make(agent, options, resources)
    from agenteval.adapters.agents.mcp_server import require_sdk, told

    with placed_at(resources.place_of(agent, "mcp")):
        require_sdk("mcp: true")
    is_here = not adapter.hears_mcp_url(options)
    servers = resources.mcp()
    with told(servers.here() if is_here else servers.host.address()):
        return servers.agents(adapter.make(agent, options, resources), is_here=is_here)


def known_visibility(
    used: Mapping[str, AgentConfig], scenarios: Iterable[Scenario]
) -> dict[str, KnownVisibility]:
    """Return what the configuration says of how the tool calls of the agents are seen. ``scenarios``: the
    whole suite, whose tools an agent may call."""
    tools = frozenset(name for scenario in scenarios for name in scenario.tools_named)
    found = {name: _known_visibility(agent, tools) for name, agent in used.items()}
    return {name: known for name, known in found.items() if known}


def _known_visibility(agent: AgentConfig, tools: frozenset[str]) -> KnownVisibility | None:
    if declared := declared_visibility(agent.calls):
        return declared
    if agent.mcp:
        return None  # the world is its way to its tools, whatever its replies report
    adapter = AGENTS.get(agent.kind)
    return adapter.visibility(adapter.of(agent), tools)


def _checks(agent: AgentConfig, plan: Plan, resources: Resources, timeout_s: float) -> tuple[Scorer, ...]:
    """One agent's checks in code: they know its policy. ``timeout_s``: for those that the author wrote."""
    from agenteval.scoring.checks.expectations import ConversationExpectations, TurnExpectations
    from agenteval.scoring.detectors.scorer import Detectors
    from agenteval.scoring.judges.not_judged import NotJudged

    found = Detectors(plan, policy_of(agent, resources.config.root), resources.marked.of(agent.name))
    scorers: list[Scorer] = [TurnExpectations(timeout_s), ConversationExpectations(timeout_s), found]
    if resources.no_judge:
        scorers.append(
            NotJudged(lambda scenario: loading.vacuous(scenario, thresholds_apply=False, judges_gate=False))
        )
    return tuple(scorers)


def _judges(
    agent: AgentConfig,
    scenarios: Sequence[Scenario],
    plan: Plan,
    chosen: judging.Metrics,
    resources: Resources,
) -> tuple[Scorer, ...]:
    """One agent's judges: they know its policy."""
    if resources.no_judge:
        return ()
    policy = policy_of(agent, resources.config.root)
    return judging.scorers_of(
        chosen,
        resources.model("judge"),
        plan,
        rules_for=lambda scenario: plan.of(scenario.id, agent.name),
        policy_of=lambda _: policy,
        secrets=resources.marked.of(agent.name),
        criteria=any(scenario.all_criteria for scenario in scenarios),
    )


def _queue(samples: Sequence[Sample], plan: Plan, resources: Resources) -> SampleQueue:
    may_play_again = resources.traffic.may_play_again
    if plan.ranges:
        return UntilDecided(samples, plan.ranges, plan.suite.seed, may_play_again=may_play_again)
    return InOrder(samples, may_play_again=may_play_again)


def _review(
    scenarios: Sequence[Scenario], plan: Plan, chosen: judging.Metrics, resources: Resources
) -> Reviewer | None:
    """Who looks at the simulated users; nobody without a judge. A scripted one has an answer where its file
    says so."""
    return None if all(each.is_scripted for each in scenarios) else user_reviews(plan, chosen, resources)


def user_reviews(plan: Plan, chosen: judging.Metrics, resources: Resources) -> Reviewer | None:
    """Who looks at users; ``None`` without a judge."""
    config = resources.config
    model = resources.model("judge")
    judge = config.models.of("judge")
    if model is None or judge is None:
        return None
    from agenteval.adapters.models.scripted import answering
    from agenteval.scoring.judges.user_review import UserReviews
    from agenteval.verdict.ended import ended

    is_asked: Callable[[Subject], bool] = lambda _subject: True  # noqa: E731
    if judge.provider == "scripted":
        is_asked = answering(judge.name, Path(config.root), "judge")
    run = RunStarted(
        run_id="",
        started_at=datetime.now(UTC).isoformat(),
        config=config,
        plan=plan,
        scenarios=(),
    )
    return UserReviews(
        model,
        partial(ended, run),
        chosen.prompts.prompt(USER_REVIEW),
        seed=plan.suite.seed,
        now=plan.suite.now or "",
        is_asked=is_asked,
    )


def _make_user(
    sample: Sample, plan: Plan, resources: Resources, chosen: judging.Metrics, policy: str
) -> User:
    enter(sample.key)  # the sample begins: this is its own task, and its scorers are started from it
    max_turns = plan.of(sample.key.scenario, sample.key.agent).max_turns
    if sample.scenario.is_scripted:
        return ScenarioUser(sample, max_turns=max_turns)
    from agenteval.conversation.simulated_user import SimulatedUser

    model = resources.model("user")
    assert model is not None  # preflight has asked for one
    simulated = SimulatedUser(
        sample,
        model,
        now=plan.suite.now,
        prompt=chosen.prompts.prompt("simulated_user"),
        policy=policy,
        agent_has_tools=plan.suite.unmocked_tools == "passthrough",
    )
    return ScenarioUser(sample, simulated, max_turns=max_turns)


def policies_of(config: Config, names: Collection[str]) -> dict[str, str]:
    """By agent of these names, the text of its policy."""
    used = (agent for agent in config.all_agents if agent.name in names)
    return {agent.name: policy_of(agent, config.root) for agent in used}


def policy_of(agent: AgentConfig, root: str) -> str:
    """The text of ``policy``: itself, or what the file of that name (from the configuration's folder)
    holds. Raises ``AuthorError`` for what is named like a file and is none: without its policy judges and
    leak checks would be none either."""
    file = policy_file(agent, root)
    return read_text(file, f"policy of agent '{agent.name}'") if file else agent.policy or ""


def policy_file(agent: AgentConfig, root: str) -> Path | None:
    """The file that ``policy`` names, if it is not the text itself. Raises as ``policy_of``."""
    policy = agent.policy or ""
    if policy and "\n" not in policy and len(policy) < 500:
        path = Path(root) / policy
        if path.is_file():
            return path
        if path.exists() or (Path(policy).suffix in _TEXT_FILES and not any(map(str.isspace, policy))):
            what = f"the policy of agent '{agent.name}' is not a file: {policy}"
            raise AuthorError(
                Problem(what, "name a file from the configuration's folder, or write the text itself")
            )
    return None


_TEXT_FILES = frozenset((".md", ".txt", ".markdown", ".rst", ".prompt", ".j2"))
