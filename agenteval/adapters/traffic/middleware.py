"""What stands between a run and its models and agents: the meter, the cache, the recording.

::

    scorer, user ──▶ noted ──▶ recording ──▶ journal ──▶ cache ──▶ circuit ──▶ leading ──▶ meter ──▶ model
                                                    noted: what judges were asked and said, for people;
                                                    the journal keeps what judges were answered, and knows
                                                    what they were in a run that is judged anew;
                                                    a cached reply is no call, and is recorded; the circuit is
                                                    of judges, and stops asking one that fails on every call;
                                                    leading, too: one call of a record goes first
    conversation ──▶ recording ───────────▶ meter ──▶ agent
    with --replay:   recording                                      nothing behind it is made
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.adapters.models.pool import ModelPool
from agenteval.core.config import AgentConfig, Config, ModelConfig
from agenteval.core.errors import AuthorError, InfrastructureError, Problem
from agenteval.core.event import Event
from agenteval.core.marked_secrets import MarkedSecrets, marked_secrets, replaced
from agenteval.core.protocols import AgentFactory, ChatModel, ModelReply, ModelRequest
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.files.redact import MASK, redactor
from agenteval.verdict.ledger import Ledger, price_of

if TYPE_CHECKING:
    from agenteval.adapters.models.kept import Kept
    from agenteval.adapters.traffic.cassettes import Player, Recorder

CACHE = ".agenteval/cache"
"""Where replies are kept, from the configuration's folder."""


@dataclass(frozen=True)
class Recording:
    """What the command line asks for: ``record`` to a file, ``replay`` from one, or ``asks`` nothing at
    all, of anyone (a forecast). ``kept``: answers of the run that is judged anew."""

    record: Path | None = None
    replay: Path | None = None
    asks: bool = True
    kept: Kept | None = None

    def environ(self, environ: Mapping[str, str]) -> Mapping[str, str]:
        """What the configuration is expanded from: a replay needs no keys."""
        if not self.replay:
            return environ
        from agenteval.adapters.traffic.cassettes import ReplayEnviron

        return ReplayEnviron(environ)


def recording_of(record: str | None, replay: str | None) -> Recording:
    """``--record`` and ``--replay``, from the working directory. Raises ``AuthorError`` for both at once."""
    if record and replay:
        what = "--record and --replay cannot both be given"
        raise AuthorError(Problem(what, "a replay asks nothing that could be recorded"))
    return Recording(Path.cwd() / record if record else None, Path.cwd() / replay if replay else None)


class Traffic:
    """All doors to models and agents of one run. ``tell`` is given notices, ``warn`` those
    that concern the verdict; ``note`` emits what is for the journal alone.

    Raises ``AuthorError`` when made, for a recording that cannot be played.
    """

    def __init__(
        self,
        config: Config,
        recording: Recording | None = None,
        *,
        secrets: Iterable[str] = (),
        tell: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        note: Callable[[Event], None] = lambda _: None,
    ) -> None:
        self._note = note
        self._config = config
        self._recording = recording or Recording()
        self._secrets = tuple(secrets)
        self._tell = tell
        self._warn = warn
        bounded = config.budget and not self._recording.replay
        self.ledger = Ledger(config.budget, on_spent=self._tell_of_role) if bounded else None
        self.recorder: Recorder | None = None
        self.player: Player | None = None
        if self._recording.replay:
            from agenteval.adapters.traffic.cassettes import Player

            self.player = Player(self._recording.replay, secrets=self._secrets)
        self.marked = _marked_in(config, self.player)
        """The secrets that the author marked; in a replay with the placeholders of the recording."""
        if self.player:
            self.player.know_marked(self.marked)
        if self._recording.record:
            from agenteval.adapters.traffic.cassettes import Recorder

            self.recorder = Recorder(self._recording.record, secrets=self._secrets, marked=self.marked)
            self.recorder.notice = tell

    def _tell_of_role(self, why: str) -> None:
        self._warn(f"{why}; no further call of this role is made; all others continue")

    def pool(self, limit: int) -> ModelPool:
        """The bound on model calls in flight."""
        if self.ledger is None:
            return ModelPool(limit)
        from agenteval.adapters.traffic.metering import MeteredPool

        return MeteredPool(limit)

    def model(self, chosen: ModelConfig, make: Callable[[], ChatModel], *, role: str) -> ChatModel:
        """The door to a model in its ``role``; ``make`` makes what is behind it, if anything is."""
        model = self._model(chosen, make, role)
        if role == "user" or not self._recording.asks:
            return model
        from agenteval.adapters.models.kept import NotedModel

        return NotedModel(model, self._note)

    def _model(self, chosen: ModelConfig, make: Callable[[], ChatModel], role: str) -> ChatModel:
        if self.player:
            from agenteval.adapters.traffic.recording import PlayedModel

            return PlayedModel(self.player)
        if not self._recording.asks and self._recording.kept:
            from agenteval.adapters.models.kept import CountedModel

            return self._noted(CountedModel(self._recording.kept.tally), chosen, role)
        if not self._recording.asks and chosen.provider != "scripted":
            return _Unasked()
        from agenteval.adapters.traffic.metering import MeteredModel

        price = price_of(chosen.model, self._config.prices)
        model: ChatModel = MeteredModel(make(), chosen.model, price=price, ledger=self.ledger, role=role)
        if role == "judge":
            from agenteval.adapters.models.circuit import CircuitModel
            from agenteval.adapters.models.leading import LeadingModel

            if chosen.provider != "scripted":
                model = LeadingModel(model)
            model = CircuitModel(model, chosen.model, tell=self._warn)
        model = self._noted(self._cached(model, chosen), chosen, role)
        if self.recorder:
            from agenteval.adapters.traffic.recording import RecordedModel

            model = RecordedModel(model, self.recorder)
        return model

    def _cached(self, model: ChatModel, chosen: ModelConfig) -> ChatModel:
        where = self._config.cache
        if where is False or chosen.provider == "scripted":
            return model
        from agenteval.adapters.models.cache import CachedModel, ReplyCache
        from agenteval.adapters.models.endpoints import elsewhere

        folder = Path(self._config.root) / (CACHE if where is True else where)
        marked, redact = self.marked.all, redactor(self._secrets)
        cache = ReplyCache(
            folder, notice=self._tell, redact=lambda text: redact(replaced(text, marked) if marked else text)
        )
        return CachedModel(model, chosen, cache, endpoint=elsewhere(chosen, os.environ))

    def _noted(self, model: ChatModel, chosen: ModelConfig, role: str) -> ChatModel:
        """Fixed replies cost nothing, and no hash tells whether they have changed; no user is asked anew."""
        if role == "user" or chosen.provider == "scripted":
            return model
        from agenteval.adapters.models.cache import CachedModel
        from agenteval.adapters.models.endpoints import elsewhere
        from agenteval.adapters.models.kept import JournalReplies

        replies = JournalReplies(self._recording.kept, self._note)
        return CachedModel(model, chosen, replies, endpoint=elsewhere(chosen, os.environ))

    def agents(self, agent: AgentConfig, make: Callable[[], AgentFactory]) -> AgentFactory:
        """The door to an agent."""
        if self.player:
            from agenteval.adapters.traffic.recording import PlayedAgents

            return PlayedAgents(self.player)
        agents = make()
        price = price_of(agent.name, self._config.prices)
        if price or self.ledger:
            from agenteval.adapters.traffic.metering import MeteredAgents

            agents = MeteredAgents(agents, agent.name, price=price, ledger=self.ledger)
        if self.recorder:
            from agenteval.adapters.traffic.recording import RecordedAgents

            agents = RecordedAgents(agents, self.recorder)
        return agents

    def start(self, scenarios: Iterable[Scenario], prompts: Mapping[str, str]) -> None:
        """Everything is loaded, and nothing was asked yet. Raises ``AuthorError`` if the file to record to
        exists."""
        recording = self.recorder or self.player
        if recording:
            from agenteval.adapters.traffic.cassettes import header_of

            recording.start(header_of(scenarios, prompts))

    def may_play_again(self, key: SampleKey) -> bool:
        """Whether a conversation that was lost can be played once more. A recording says that it was; a
        replay goes by that, and plays no conversation twice that was recorded once."""
        if self.player:
            from agenteval.adapters.traffic.recording import is_played_again

            return is_played_again(self.player, key)
        if self.recorder:
            from agenteval.adapters.traffic.recording import note_played_again

            note_played_again(self.recorder, key)
        return True

    def begin(self) -> None:
        """The run begins: from here on something may be asked."""
        if self.recorder:
            self.recorder.begin()

    def close(self) -> None:
        if self.recorder:
            self.recorder.close()


def _marked_in(config: Config, player: Player | None = None) -> MarkedSecrets:
    """The secrets that the author marked. A replay takes one whose variable is not set from the recording;
    raises ``AuthorError`` where that does not have it."""
    agents: dict[str, Sequence[str]] = {agent.name: agent.secrets for agent in config.all_agents}
    if config.agent:
        agents[""] = config.agent.secrets
    if player is None:
        return marked_secrets(agents)
    agents = {name: ["" if MASK in each else each for each in own] for name, own in agents.items()}
    for name, own in agents.items():
        if "" in own and len(player.marked.get(name, ())) != len(own):
            what = f"the recording {player.path.name} does not have the secrets of agent '{name}'"
            raise AuthorError(Problem(what, "set the variables that they are made of, or record it again"))
    return marked_secrets(agents, player.marked)


class _Unasked:
    """A model that only stands for its name: a forecast needs no key, and asks nothing."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        raise InfrastructureError("no model is asked here")

    async def aclose(self) -> None:
        """Nothing is open."""
