"""Put layers (middleware) between a run and its models and agents: answer stores and the meter.

::

    scorer, user ──▶ stores: journal ─ recording ─ cache ──▶ circuit ──▶ priming ──▶ meter ──▶ model
    conversation ──▶ recording ────────────────────────────────────────────▶ meter ──▶ agent
    with --replay:   the recording answers; nothing behind it is created

The journal stores the judges' questions and answers, and supplies the answers if the run is rejudged. A
cached reply does not count as a call, but it is recorded. The circuit breaker applies only to judges; it
stops calls to a judge that always fails. Priming also applies only to judges; it sends one of several calls
that share a record before the others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from agenteval.core.config import AgentConfig, BudgetConfig, Config, ModelConfig
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.event import Event
from agenteval.core.marked_secrets import MarkedSecrets, marked_secrets, replace_secrets
from agenteval.core.protocols import Agent, AgentFactory, ChatModel
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.files.redaction import MASK, redactor
from agenteval.verdict.ledger import BudgetLedger, price_of

if TYPE_CHECKING:
    from agenteval.adapters.traffic.answer_stores import AnswerStore
    from agenteval.adapters.traffic.cassettes import Cassette, CassettePlayer, CassetteRecorder
    from agenteval.adapters.traffic.leased_calls import LeasedBudget, LeasedCalls
    from agenteval.adapters.traffic.recorded_answers import RejudgedAnswers

# The layers are imported inside functions: a run without a model needs none of them.

CACHE_FOLDER = ".agenteval/cache"
"""The folder of cached replies, relative to the configuration's folder."""


@dataclass(frozen=True)
class RecordingOptions:
    """The command-line options for recording and replaying."""

    record: Path | None = None
    """The cassette file to record to."""
    replay: Path | None = None
    """The cassette file to replay from."""
    calls_models: bool = True
    """False for a forecast (dry run), which does not call models or agents."""
    rejudged: RejudgedAnswers | None = None
    """The answers in the run that is being rejudged."""

    def environ(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """Return the environment used to expand variables in the configuration. A replay requires no API
        keys."""
        if not self.replay:
            return environ
        from agenteval.adapters.traffic.cassettes import ReplayEnviron

        return ReplayEnviron(environ)


def parse_recording_options(record: str | None, replay: str | None) -> RecordingOptions:
    """Resolve ``--record`` and ``--replay`` relative to the working directory. Raise ``AuthorError`` if both
    options are set."""
    if record and replay:
        what = "--record and --replay cannot be combined"
        raise AuthorError(Problem(what, "remove one of them; a replay sends no requests to record"))
    return RecordingOptions(Path.cwd() / record if record else None, Path.cwd() / replay if replay else None)


Inner = TypeVar("Inner")


def wrap_layers(inner: Inner, *layers: tuple[bool, Callable[[Inner], Inner]]) -> Inner:
    """Wrap ``inner`` in the layers (middleware) that apply.

    Each item of ``layers`` is a pair: whether the layer applies, and the function that wraps it around the
    inner layers. The outermost layer comes first."""
    for applies, wrap in reversed(layers):
        inner = wrap(inner) if applies else inner
    return inner


def build_applicable(*rows: tuple[bool, Callable[[], Inner]]) -> tuple[Inner, ...]:
    """Build the items that apply, in order. Each item of ``rows`` is a pair: whether the item applies, and
    its factory."""
    return tuple(make() for applies, make in rows if applies)


class Traffic:
    """The access point for all models and agents of one run.

    ``notify`` is called with notices, ``warn`` with notices that affect the verdict. ``note`` emits events
    that are written only to the journal. ``cassette`` is the recording to replay. ``marked`` contains secrets
    as returned by ``find_marked_secrets``. ``leased`` are the limits that several processes share."""

    def __init__(
        self,
        config: Config,
        recording: RecordingOptions | None = None,
        *,
        cassette: Cassette | None = None,
        marked: MarkedSecrets | None = None,
        secrets: Iterable[str] = (),
        notify: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        note: Callable[[Event], None] = lambda _: None,
        leased: LeasedCalls | None = None,
    ) -> None:
        self._note = note
        self._config = config
        self._recording = recording or RecordingOptions()
        self._secrets = tuple(secrets)
        self._notify = notify
        self._warn = warn
        bounded = config.budget and not self._recording.replay
        self.ledger = self._make_budget(config.budget, leased) if bounded else None
        self.recorder: CassetteRecorder | None = None
        self.player: CassettePlayer | None = None
        self.marked = find_marked_secrets(config, cassette) if marked is None else marked
        """The secrets that the author marked; in a replay, with the placeholders of the recording."""
        if cassette:
            from agenteval.adapters.traffic.cassettes import CassettePlayer

            self.player = CassettePlayer(cassette, secrets=self._secrets, marked=self.marked)
        if self._recording.record:
            from agenteval.adapters.traffic.cassettes import CassetteRecorder

            path, marked = self._recording.record, self.marked
            self.recorder = CassetteRecorder(path, secrets=self._secrets, marked=marked, notify=notify)

    def _make_budget(self, budget: BudgetConfig, leased: LeasedCalls | None) -> BudgetLedger | LeasedBudget:
        if leased is None:
            return BudgetLedger(budget, on_spent=self.warn_role_stopped)
        from agenteval.adapters.traffic.leased_calls import LeasedBudget

        return LeasedBudget(leased, budget)

    def warn_role_stopped(self, why: str) -> None:
        self._warn(f"{why}; no further calls are made for this role; all others continue")

    def model(self, chosen: ModelConfig, make: Callable[[], ChatModel], *, role: str) -> ChatModel:
        """Return a model wrapped in the layers for its ``role``. ``make`` creates the model itself if it is
        needed."""
        from agenteval.adapters.models.cache_priming import CachePrimingModel
        from agenteval.adapters.models.circuit_breaker import CircuitBreakerModel
        from agenteval.adapters.models.endpoints import base_url_override
        from agenteval.adapters.traffic.answer_stores import StoreBackedModel, identity_of

        is_scripted, is_judge = chosen.provider == "scripted", role == "judge"
        # Fixed replies cost nothing, and no hash shows whether they have changed.
        is_fixed = is_scripted or self.player is not None
        stores = build_applicable(
            (role != "user", self._journal_answers),  # rejudging does not replay the user
            (self.recorder is not None, self._recorded_answers),
            (
                self._config.cache is not False and self._recording.calls_models and not is_fixed,
                self._cached_answers,
            ),
        )
        model = self._substitute_model(is_scripted=is_scripted) or wrap_layers(
            make(),
            (is_judge, lambda model: CircuitBreakerModel(model, chosen.model, warn=self._warn)),
            (is_judge and not is_scripted, CachePrimingModel),
            (True, lambda model: self._metered(model, chosen, role)),
        )
        if not stores:
            return model
        identity = "" if is_fixed else identity_of(chosen, base_url_override(chosen, os.environ))
        return StoreBackedModel(model, stores, identity)

    def _substitute_model(self, *, is_scripted: bool) -> ChatModel | None:
        """Return the replacement for a model: either a model that answers from the recording, or a model that
        counts the calls.

        Return ``None`` if the model itself is called."""
        if self.player:
            from agenteval.adapters.traffic.recording import ReplayedModel

            return ReplayedModel(self.player)
        from agenteval.adapters.traffic.recorded_answers import CountingModel, RejudgedAnswers

        rejudged = self._recording.rejudged
        is_counted = not self._recording.calls_models and (rejudged or not is_scripted)
        return CountingModel((rejudged or RejudgedAnswers()).counts) if is_counted else None

    def _metered(self, model: ChatModel, chosen: ModelConfig, role: str) -> ChatModel:
        from agenteval.adapters.traffic.metering import MeteredModel

        price = price_of(chosen.model, self._config.prices)
        return MeteredModel(model, chosen.model, price=price, ledger=self.ledger, role=role)

    def _journal_answers(self) -> AnswerStore:
        from agenteval.adapters.traffic.recorded_answers import JournalAnswers

        return JournalAnswers(self._recording.rejudged, self._note)

    def _recorded_answers(self) -> AnswerStore:
        from agenteval.adapters.traffic.recording import CassetteAnswers

        assert self.recorder
        return CassetteAnswers(self.recorder)

    def _cached_answers(self) -> AnswerStore:
        from agenteval.adapters.traffic.cache import AnswerCache

        folder = Path(self._config.root) / (
            CACHE_FOLDER if self._config.cache is True else str(self._config.cache)
        )
        return AnswerCache(folder, notify=self._notify, redact=self._redactor())

    def _redactor(self) -> Callable[[str], str]:
        marked, redact = self.marked.all, redactor(self._secrets)
        return lambda text: redact(replace_secrets(text, marked) if marked else text)

    def agents(self, agent: AgentConfig, make: Callable[[], AgentFactory]) -> AgentFactory:
        """Return an agent's factory wrapped in the layers that apply."""
        if self.player:
            from agenteval.adapters.traffic.recording import ReplayedAgents

            return ReplayedAgents(self.player)
        price = price_of(agent.name, self._config.prices)

        def metered(agents: AgentFactory) -> AgentFactory:
            from agenteval.adapters.traffic.metering import MeteredAgent

            return _WrappedAgents(
                agents, lambda one, _: MeteredAgent(one, agent.name, price=price, ledger=self.ledger)
            )

        return wrap_layers(
            make(),
            (self.recorder is not None, self._recorded_agents),
            (price is not None or self.ledger is not None, metered),
        )

    def _recorded_agents(self, agents: AgentFactory) -> AgentFactory:
        from agenteval.adapters.traffic.recording import RecordingAgent

        recorder = self.recorder
        assert recorder
        return _WrappedAgents(agents, lambda one, sample: RecordingAgent(one, sample, recorder))

    def start(self, scenarios: Iterable[Scenario], prompts: Mapping[str, str]) -> None:
        """Check the recording after everything has been loaded but before any request is made.

        Raise ``AuthorError`` if the file to record to already exists."""
        recording = self.recorder or self.player
        if recording:
            from agenteval.adapters.traffic.cassettes import header_of

            recording.start(header_of(scenarios, prompts))

    def may_play_again(self, key: SampleKey) -> bool:
        """Check whether a conversation that ended with an error may be repeated (retried).

        The recording notes that the conversation was repeated. A replay follows this note, so it does not
        repeat a conversation that was not repeated in the recording."""
        if not (self.player or self.recorder):
            return True
        from agenteval.adapters.traffic.cassettes import REPLAYED_SAMPLE, position_of

        spot = position_of(key, "agent")
        if self.recorder:
            self.recorder.ask(spot, REPLAYED_SAMPLE)({})
        return self.player is None or self.player.find(spot, REPLAYED_SAMPLE) is not None

    def begin(self) -> None:
        """Begin the run. From this point on, models and agents may be called."""
        if self.recorder:
            self.recorder.begin()

    def close(self) -> None:
        if self.recorder:
            self.recorder.close()


def find_marked_secrets(config: Config, cassette: Cassette | None) -> MarkedSecrets:
    """Return the secrets that the author marked.

    In a replay, secrets whose environment variable is not set are taken from the recording. Raise
    ``AuthorError`` if the recording does not contain them."""
    agents: dict[str, Sequence[str]] = {agent.name: agent.secrets for agent in config.all_agents}
    if config.agent:
        agents[""] = config.agent.secrets
    if cassette is None:
        return marked_secrets(agents)
    agents = {name: ["" if MASK in each else each for each in values] for name, values in agents.items()}
    for name, values in agents.items():
        if "" in values and len(cassette.header.marked.get(name, ())) != len(values):
            what = f"the recording {cassette.path.name} does not contain the secrets of agent '{name}'"
            raise AuthorError(Problem(what, "set the variables that contain them, or record again"))
    return marked_secrets(agents, cassette.header.marked)


class _WrappedAgents:
    """An agent factory that wraps each agent."""

    def __init__(self, agents: AgentFactory, wrap: Callable[[Agent, Sample], Agent]) -> None:
        self._agents = agents
        self._wrap = wrap

    def make(self, sample: Sample) -> Agent:
        return self._wrap(self._agents.make(sample), sample)

    async def aclose(self) -> None:
        await self._agents.aclose()
