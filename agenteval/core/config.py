"""The configuration as a value (its fields define the default configuration), and the pure function that
merges its sources: defaults < file < environment variables < command-line flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sized
from datetime import date
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, ConfigDict, Field, field_validator, model_validator

from agenteval.core.errors import Place
from agenteval.core.marked_secrets import UnknownSecret, mistake_in
from agenteval.core.providers import PROVIDERS, Provider
from agenteval.core.scenario import Epochs, Thresholds
from agenteval.core.score import Severity
from agenteval.core.value import AlternativeSchema, Count, Number, Text, Texts, Value


def _parse_secrets(value: Any) -> Any:
    """Check that the value is a list. The error message must not contain a secret."""
    if isinstance(value, list | tuple):
        return value
    raise ValueError('expected a list of strings; use, for example, ["${INTERNAL_KEY}"]')


def _is_empty(value: Sized) -> bool:
    return not value


def _parse_secret(value: Any) -> str:
    if isinstance(value, UnknownSecret):
        return str(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError("a secret must be a string; put it in quotes")
    if why := mistake_in(value):
        raise ValueError(f"{why}; use a longer string, set its environment variable, or remove it")
    return value


KIND_BY_KEY = {"endpoint": "http", "target": "python", "command": "command"}
"""The default value of ``type``, keyed by the option that is present."""


class AgentConfig(Value):
    """An agent under test. The fields are common to all agents. All other keys are options of the agent's
    adapter, which defines and checks them (``AgentAdapter``). Options for adapters of other packages are
    under ``options``."""

    model_config = ConfigDict(extra="allow")

    MEANT: ClassVar[dict[str, str]] = {"://": "endpoint", ":": "target", "": "name"}

    name: Annotated[Text, Field(min_length=1)] = "agent"
    """Name of the agent in reports."""
    type: str | None = None
    """Kind of agent: python, http, command and so on; normally clear from the other keys."""
    timeout_s: Annotated[Number, Field(gt=0)] = 60.0
    """Timeout of one request or call, in seconds."""
    requests_per_minute: Annotated[Count, Field(ge=1)] | None = None
    """Maximum number of calls to the agent in any 60 seconds."""
    calls: Literal["all", "unseen"] | None = None
    """Which of the agent's tool calls are visible: all, or unseen; by default, the run determines it."""
    policy: str | None = None
    """System prompt or policy of the agent, as text or as a file; used by judges and leak checks."""
    secrets: Annotated[
        tuple[Annotated[str, BeforeValidator(_parse_secret), AlternativeSchema(type="number")], ...],
        BeforeValidator(_parse_secrets),
        Field(exclude_if=_is_empty),
    ] = ()
    """Strings of at least 4 characters that the agent must never reveal; they are masked in all output."""
    mcp: bool = False
    """True if the agent gets the scenario's tools from an MCP server that agenteval runs."""
    options: Annotated[dict[str, Any], AlternativeSchema(type="null")] = {}
    """Options of an adapter from another package."""

    @property
    def adapter_options(self) -> dict[str, Any]:
        """The options for the agent's adapter, as written."""
        return {**(self.model_extra or {}), **self.options}

    @property
    def kind(self) -> str:
        """The name of the adapter, or an empty string if it cannot be determined."""
        options = self.adapter_options
        return self.type or next((kind for key, kind in KIND_BY_KEY.items() if options.get(key)), "")


DEFAULT_CONTEXT_TOKENS = 80_000
"""The context window of a model unless ``context`` is set."""
LOCAL_CONTEXT_TOKENS = 8192
"""The context window of a model that runs in this process unless ``extra: {n_ctx: …}`` is set. The maximum
context of the model may require more memory than the machine has."""
PROMPT_OVERHEAD_TOKENS = 5_000
"""The number of tokens that are reserved for the rules, a criterion, other answers, and the answer."""


class ModelConfig(Value):
    """The configuration of one of agenteval's own models (LLMs). ``PROVIDER/MODEL`` alone is shorthand for a
    mapping with ``model``.

    Paths in ``local/PATH.gguf`` and ``scripted/FILE.yaml`` are relative to the configuration's folder."""

    model: str
    """Provider and name of the model (PROVIDER/MODEL), such as openai/gpt-5-mini."""
    base_url: str | None = None
    """Base URL of the provider's API."""
    api_key_env: str | None = None
    """Name of the environment variable that contains the API key, never the key itself."""
    client: Literal["http", "sdk"] | None = None
    """Client that sends the requests: agenteval (http) or the openai package (sdk)."""
    timeout_s: Annotated[Number, Field(gt=0)] = 120.0
    """Timeout of one request, in seconds."""
    max_wait_s: Annotated[Number, Field(ge=0)] = 180.0
    """Maximum total time that a call may spend waiting for retries and pauses, in seconds."""
    requests_per_minute: Annotated[Count, Field(ge=1)] | None = None
    """Rate limit: maximum number of requests in any 60 seconds."""
    tokens_per_minute: Annotated[Count, Field(ge=1)] | None = None
    """Rate limit: maximum number of tokens in any 60 seconds."""
    temperature: Annotated[Number, Field(ge=0)] | None = None
    """Sampling temperature."""
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    """Maximum number of tokens in one reply."""
    context: Annotated[Count, Field(ge=2000)] | None = None
    """Context window in tokens; longer records are shortened for judges."""
    extra: dict[str, Any] = {}
    """Additional keys that are merged into each request."""

    SHORT_FORM: ClassVar[str] = "PROVIDER/MODEL"

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def _provider(self) -> Provider:
        """The provider. For a provider of another package, the default values are used."""
        return PROVIDERS.shipped.get(self.provider, Provider())

    @property
    def is_by_sdk(self) -> bool:
        """True if the ``openai`` package sends the requests."""
        return self.client == "sdk" or (self.client is None and self._provider.sdk != "on_request")

    @property
    def record_tokens(self) -> int:
        """The maximum length, in tokens, of a conversation record that the model judges, given its context
        window."""
        n_ctx = (
            self.extra.get("n_ctx", LOCAL_CONTEXT_TOKENS)
            if self.provider == "local"
            else DEFAULT_CONTEXT_TOKENS
        )
        context = self.context or (n_ctx if isinstance(n_ctx, int) else LOCAL_CONTEXT_TOKENS)
        return max(context - PROMPT_OVERHEAD_TOKENS, context // 2)

    @property
    def name(self) -> str:
        """The name of the model as used by the provider. It may contain slashes."""
        return self.model.partition("/")[2]

    @field_validator("model")
    @classmethod
    def _provider_and_name(cls, value: str) -> str:
        provider, _, name = value.partition("/")
        if not provider.strip() or not name.strip():
            raise ValueError(
                f"'{value}' is not in the form PROVIDER/MODEL; use, for example, openai/gpt-5-mini"
            )
        return value

    @model_validator(mode="after")
    def _has_base_url(self) -> ModelConfig:
        if self._provider.needs_base_url and not self.base_url:
            raise ValueError(f"{self.provider} requires `base_url`; use {{model: …, base_url: https://…/v1}}")
        return self

    @model_validator(mode="after")
    def _has_its_client(self) -> ModelConfig:
        if self.client == "http" and self._provider.sdk == "always":
            raise ValueError(f"{self.provider} is supported only with the openai package; remove `client`")
        if self.client and self._provider.in_process:
            raise ValueError(f"{self.provider} models run in-process and do not support `client`; remove it")
        return self


def _to_model(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


ModelEntry: TypeAlias = Annotated[ModelConfig, BeforeValidator(_to_model)]


RATES = ("requests_per_minute", "tokens_per_minute")
"""The keys of agents and models that limit how often they are called."""


class ModelsConfig(Value):
    """agenteval's own models, keyed by role. Each role defaults to ``default``."""

    MEANT: ClassVar[dict[str, str]] = {"/": "default"}

    default: ModelEntry | None = None
    """Model for every role that has no model of its own."""
    user: ModelEntry | None = None
    """Model for the simulated user."""
    judge: ModelEntry | None = None
    """Model for the judges (LLM-as-a-judge)."""
    dedup: ModelEntry | None = None
    """Model that groups findings into issues."""

    def model_for(self, role: Literal["user", "judge", "dedup"]) -> ModelConfig | None:
        chosen: ModelConfig | None = getattr(self, role)
        return chosen or self.default

    def key_of(self, role: Literal["user", "judge", "dedup"]) -> str:
        """Return the key that sets the model for a role."""
        return f"models.{role if getattr(self, role) else 'default'}"

    @property
    def all(self) -> tuple[ModelConfig, ...]:
        """The models that are set."""
        return tuple(model for model in (self.default, self.user, self.judge, self.dedup) if model)


class Price(Value):
    """The prices of a model (cost per token) in US dollars per million tokens."""

    input: Annotated[Number, Field(ge=0)]
    """US dollars per million input tokens."""
    output: Annotated[Number, Field(ge=0)]
    """US dollars per million output tokens."""
    cached_input: Annotated[Number, Field(ge=0)] | None = None
    """US dollars per million input tokens read from the provider's cache; by default, the same as input."""


class Allowance(Value):
    """Spending limits. ``None`` means that there is no limit."""

    max_calls: Annotated[Count, Field(ge=1)] | None = None
    """Maximum number of calls."""
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    """Maximum number of tokens, input and output."""
    max_cost: Annotated[Number, Field(gt=0)] | None = None
    """Maximum cost in US dollars."""

    @property
    def limits(self) -> dict[str, int | float]:
        """The limits that are set, keyed by name."""
        limits = {"max_calls": self.max_calls, "max_tokens": self.max_tokens, "max_cost": self.max_cost}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def __bool__(self) -> bool:
        return bool(self.limits)


class RolesBudgetConfig(Value):
    """Separate budgets for individual roles."""

    agent: Allowance = Allowance()
    """Spending limits for the agent under test."""
    user: Allowance = Allowance()
    """Spending limits for the simulated user."""
    judge: Allowance = Allowance()
    """Spending limits for the judges."""
    dedup: Allowance = Allowance()
    """Spending limits for the grouping of findings."""


class BudgetConfig(Allowance):
    """The spending limits (cost, tokens, calls) at which a run stops, and those at which the calls for one
    role stop."""

    by_role: RolesBudgetConfig = RolesBudgetConfig()
    """Spending limits for individual roles; when a limit is reached, only calls for that role stop."""

    def allowance_for(self, role: str) -> Allowance:
        """Return the separate budget for a role."""
        allowance = getattr(self.by_role, role, None)
        return allowance if isinstance(allowance, Allowance) else Allowance()

    @property
    def roles(self) -> dict[str, Allowance]:
        """The roles that have a separate budget."""
        return {
            role: allowance
            for role in RolesBudgetConfig.model_fields
            if (allowance := self.allowance_for(role))
        }

    def __bool__(self) -> bool:
        return bool(self.limits or self.roles)


class DeadlinesConfig(Value):
    """Time limits (timeouts). The limit for the run is wall-clock time. ``None`` means that there is no
    limit."""

    turn_s: Annotated[Number, Field(gt=0)] | None = None
    """Maximum time for a turn, in seconds, excluding waits for rate limits and retries."""
    sample_s: Annotated[Number, Field(gt=0)] | None = None
    """Maximum time for a conversation, in seconds, excluding waits for rate limits and retries."""
    run_s: Annotated[Number, Field(gt=0)] | None = None
    """Maximum time for the entire run, in seconds."""


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) and value != "all" else value


def _none_for_all(value: Any) -> Any:
    return None if value == "all" else value


class ReporterChoice(Value):
    """A selected reporter, written as ``NAME`` or ``NAME=PATH``. If there is no path, the reporter chooses
    one."""

    name: str
    """Name of the reporter, or your own: file.py:Class or module:Class."""
    path: str | None = None
    """Output file; by default the reporter chooses one."""

    SHORT_FORM: ClassVar[str] = "a name"


class GatesConfig(Value):
    """Gates over repeated runs, keyed by name, as written. The gate objects (``agenteval.verdict.run_gates``)
    define and check the settings that each gate accepts. Setting any gate replaces the rule "every sample
    passes"."""

    model_config = ConfigDict(extra="allow")

    @property
    def configured_gates(self) -> dict[str, Any]:
        """The gates that are set."""
        return {name: rule for name, rule in (self.model_extra or {}).items() if rule is not None}

    def without(self, names: Iterable[str]) -> GatesConfig:
        """Return the configuration without the given gates."""
        return self.model_copy(update=dict.fromkeys(names))

    def __bool__(self) -> bool:
        return bool(self.configured_gates)


class JudgeConfig(Value):
    """Settings for calls to judges (LLM-as-a-judge)."""

    corroborate: bool = True
    """True if a verdict that would fail a sample needs a second opinion that tries to refute it."""
    on_failure: Literal["undecided", "skip"] = "undecided"
    """Outcome if a judge fails: undecided, or decided without that judge (skip)."""
    calls: Literal["separate", "shared", "review"] = "separate"
    """One call per judgment (separate), per group (shared), or for all turns' labels (review)."""


class AcceptedFailure(Value):
    """A known failure that is accepted until a given date: an entry in the accept list. ``expires`` is the
    last day on which the failure is accepted (``2026-12-31``, UTC), and ``where`` is the line of the entry.
    """

    fingerprint: Text
    owner: Annotated[Text, Field(min_length=1)]
    reason: Annotated[Text, Field(min_length=1)]
    expires: Text
    scenario: Text = ""
    what: Text = ""
    where: str = ""

    INTERNAL: ClassVar[frozenset[str]] = frozenset({"where"})

    @field_validator("fingerprint")
    @classmethod
    def _is_a_fingerprint(cls, value: str) -> str:
        if len(value) == 12 and set(value) <= set("0123456789abcdef"):
            return value
        raise ValueError(f"'{value[:40]}' is not a fingerprint; copy the 12 hex digits from the report")

    @field_validator("expires")
    @classmethod
    def _is_a_day(cls, value: str) -> str:
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            raise ValueError(f"'{value}' is not a valid date; use the format 2026-12-31") from None

    def holds_on(self, day: str) -> bool:
        """Check whether the failure is accepted on ``day`` (ISO 8601, which sorts as text)."""
        return day <= self.expires


class ProfileSelection(Value):
    """The part of a profile that selects the scenarios to run. Command-line options take precedence."""

    tags: Texts = ()
    """Run only scenarios with one of these tags, like --tag."""
    categories: Texts = ()
    """Run only scenarios in these categories, like --category."""
    scenarios: Texts = ()
    """Run only scenarios whose id or name contains one of these strings, like -s."""
    no_judge: bool = False
    """Run without judges, like --no-judge."""
    baseline: Annotated[Text, Field(min_length=1)] | None = None
    """Baseline run to compare with, like --baseline."""


_SWITCHES = frozenset({"", "yes", "no", "on", "off", "y", "n", "none"})


DEFAULT_MAX_TURNS = 8
"""The default maximum number of turns in a conversation with a simulated user."""


class Config(Value):
    """The merged configuration (``agenteval.yaml``). Every field is explained in
    ``docs/configuration.md``."""

    agent: AgentConfig | None = None
    """The agent under test."""
    agents: dict[str, AgentConfig] = {}
    """Additional agents by name; a scenario selects one of them with agent."""
    compare: tuple[AgentConfig, ...] = ()
    """Agents to compare side by side: complete agents, or overrides of agent."""
    models: ModelsConfig = ModelsConfig()
    """agenteval's own models by role; never the model of the agent."""
    epochs: Epochs | None = None
    """Number of conversations per scenario, or {min, max}; default: 1 if scripted, 3 if simulated."""
    max_turns: Annotated[Count, Field(ge=1)] = DEFAULT_MAX_TURNS
    """Maximum number of turns in a conversation with a simulated user."""
    concurrency: Annotated[Count, Field(ge=1)] = 20
    """Maximum number of concurrent calls to agenteval's own models."""
    agent_concurrency: Annotated[Count, Field(ge=1)] | None = None
    """Maximum number of concurrent conversations; default: concurrency."""
    metrics: Annotated[Literal["all"] | tuple[str, ...], BeforeValidator(_names)] = "all"
    """Metrics to judge: all, or a list of names; with [], only criteria are judged."""
    custom_metrics: Texts = ()
    """Your own metrics: path/to/rubric.md, file.py:Class or module:Class."""
    detectors: Annotated[Texts | None, BeforeValidator(_none_for_all)] = None
    """Detectors to run: all, or a list of names; with [], none are run."""
    thresholds: Thresholds = {}
    """Lowest acceptable scores for each scenario, by metric."""
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    """Lowest severity of a finding that fails its conversation."""
    severities: dict[str, Severity] = {}
    """Severities by label, which override the built-in table."""
    severity_from: Literal["table", "model"] = "table"
    """Source of severities: table, or model (its proposal may raise a severity by one level)."""
    fault_tolerance: Annotated[Number, Field(ge=0, le=1)] | None = None
    """Share of conversations that may be inconclusive; default: 0, or 0.05 with epochs: {max}."""
    accepted: Text | None = None
    """File that lists known failures and the date until which each is accepted."""
    judge: JudgeConfig = JudgeConfig()
    """Settings for calls to judges."""
    prompts: dict[str, Text] = {}
    """Files of your own that replace built-in prompts."""
    gates: GatesConfig = GatesConfig()
    """Gates over repeated runs, and limits on numeric values."""
    budget: BudgetConfig = BudgetConfig()
    """Limits at which a run stops: calls, tokens, US dollars."""
    deadlines: DeadlinesConfig = DeadlinesConfig()
    """Time limits for a turn, a conversation and the run."""
    prices: dict[str, Price] = {}
    """Prices by PROVIDER/MODEL or agent, in US dollars per million tokens."""
    cache: bool | Text = False
    """True if model replies are cached, or the path of the cache folder."""
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    """What happens when the agent calls a tool that the scenario does not answer."""
    now: Text | None = None
    """Date and time that simulated users and judges are told."""
    include: Texts = ("scenarios/**/*.yaml", "scenarios/**/*.yml")
    """Glob patterns of scenario files, relative to the folder of this file."""
    exclude: Texts = ()
    """Glob patterns of files to skip; a pattern for a folder excludes everything below it."""
    reporters: tuple[ReporterChoice, ...] = (ReporterChoice(name="terminal"),)
    """Reports to write: NAME or NAME=PATH; your own is file.py:Class or module:Class."""
    seed: Annotated[Count, Field(ge=0)] = 0
    """Random seed of the run."""
    on_undecided: Literal["fail", "neutral"] = "fail"
    """Exit code of an undecided run: fail is 3, neutral is 0."""
    code_only: bool = False
    """True if only checks in code are run, so that no model is needed."""
    profiles: Annotated[dict[str, dict[str, Any]], AlternativeSchema(type="null")] = {}
    """Named overrides of this file, selected with --profile; null removes a key."""

    # The chosen profile and its selection: after merging, ``profiles`` is empty.
    profile: str = ""
    selection: ProfileSelection = ProfileSelection()
    # The content of the file that ``accepted`` names.
    accepted_failures: tuple[AcceptedFailure, ...] = ()
    # The places of keys, for messages and the gate table; not part of the file. ``origins`` names the
    # variable or flag that set a key.
    source: str = ""
    root: str = "."
    lines: dict[str, int] = {}
    columns: dict[str, int] = {}
    origins: dict[str, str] = {}

    INTERNAL: ClassVar[frozenset[str]] = frozenset(
        {"accepted_failures", "source", "root", "lines", "columns", "origins", "profile", "selection"}
    )

    @field_validator("cache")
    @classmethod
    def _is_a_folder(cls, value: bool | str) -> bool | str:
        # In YAML 1.2 `no` is a string: it must not enable the cache in a folder of that name.
        if isinstance(value, str) and (value.strip().lower() in _SWITCHES or value.isdigit()):
            raise ValueError(f"'{value}' is not a folder; use true, false, or a path such as ./cache")
        return value

    @field_validator("reporters", mode="before")
    @classmethod
    def _reporters(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, Iterable) and not isinstance(value, Mapping):
            return tuple(parse_reporter(item) if isinstance(item, str) else item for item in value)
        return value

    @property
    def all_agents(self) -> tuple[AgentConfig, ...]:
        """All agents in the configuration."""
        return (*([self.agent] if self.agent else []), *self.agents.values(), *self.compare)

    def where(self, path: str) -> str:
        """Return the source of a key: ``file:line`` of the key or of its nearest parent, the variable or flag
        that set it, or ``default`` if the key is not set."""
        while path:
            if path in self.origins:
                return self.origins[path]
            if path in self.lines:
                return f"{self.source}:{self.lines[path]}"
            path = path.rpartition(".")[0]
        return "default"

    def place(self, path: str) -> Place:
        """Return the source of a key, as ``where`` does, but include the column if the key is set in a
        file."""
        while path and path not in self.origins and path not in self.lines:
            path = path.rpartition(".")[0]
        if path in self.origins or path not in self.lines:
            return Place(self.origins.get(path, "default"))
        return Place(self.source, self.lines[path], self.columns.get(path, 0))

    def is_by_flag(self, key: str) -> bool:
        """Check whether the key is set by a command-line flag."""
        return self.origins.get(key, "").startswith("--")


def parse_reporter(text: str) -> ReporterChoice:
    """Parse a reporter option such as ``json`` or ``json=out.json``."""
    name, _, path = text.partition("=")
    return ReporterChoice(name=name.strip(), path=path.strip() or None)


def deep_merge(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """Merge ``high`` over ``low`` recursively (deep merge). Mappings are merged; all other values, including
    lists, are replaced."""
    merged = dict(low)
    for key, value in high.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = deep_merge(below, value) if both else value  # type: ignore[arg-type]
    return merged
