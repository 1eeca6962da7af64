"""The configuration as a value, and its pure merge: defaults < file < environment < flags."""

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
from agenteval.core.value import Count, Number, Text, Texts, Value


def _secrets(value: Any) -> Any:
    """What is wrong with a secret is said without it."""
    if isinstance(value, list | tuple):
        return value
    raise ValueError('expected a list of texts; write for example ["${INTERNAL_KEY}"]')


def _is_empty(value: Sized) -> bool:
    return not value


def _secret(value: Any) -> str:
    if isinstance(value, UnknownSecret):
        return str(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise ValueError("a secret is a text; write it in quotes")
    if why := mistake_in(value):
        raise ValueError(f"{why}; write a longer text, or set its variable, or remove it")
    return value


KIND_BY_KEY = {"endpoint": "http", "target": "python", "command": "command"}
"""What ``type`` is where it is left out, by the option that is written."""


class AgentConfig(Value):
    """An agent under test: what is asked of every one. All other keys are options of its adapter, which alone
    knows and checks them (``AgentAdapter``); those of other packages' adapters are under ``options``."""

    model_config = ConfigDict(extra="allow")

    MEANT: ClassVar[dict[str, str]] = {"://": "endpoint", ":": "target", "": "name"}

    name: Annotated[Text, Field(min_length=1)] = "agent"
    type: str | None = None
    timeout_s: Annotated[Number, Field(gt=0)] = 60.0
    requests_per_minute: Annotated[Count, Field(ge=1)] | None = None
    calls: Literal["all", "unseen"] | None = None
    policy: str | None = None
    secrets: Annotated[
        tuple[Annotated[str, BeforeValidator(_secret)], ...],
        BeforeValidator(_secrets),
        Field(exclude_if=_is_empty),
    ] = ()
    mcp: bool = False
    options: dict[str, Any] = {}

    @property
    def own(self) -> dict[str, Any]:
        """The options of its adapter, as they were written."""
        return {**(self.model_extra or {}), **self.options}

    @property
    def kind(self) -> str:
        """The adapter's name; empty when nothing says which."""
        own = self.own
        return self.type or next((kind for key, kind in KIND_BY_KEY.items() if own.get(key)), "")


CONTEXT = 80_000
"""Tokens that a model is taken to read, unless ``context`` says otherwise."""
LOCAL_CONTEXT = 8192
"""Of a model in this process, unless ``extra: {n_ctx: …}`` does; its own maximum may need more memory
than the machine has."""
BESIDE_RECORD = 5_000
"""Tokens kept free for the rules, a criterion, what others answered, and the answer."""


class ModelConfig(Value):
    """One of agenteval's own models. ``PROVIDER/MODEL`` alone stands for a mapping with ``model``.

    ``api_key_env`` names the environment variable that holds the key. ``client``: who sends requests,
    agenteval itself (``http``) or the ``openai`` package (``sdk``). ``extra`` is merged into each request.
    ``local/PATH.gguf`` and ``scripted/FILE.yaml`` start at the configuration's folder.
    """

    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    client: Literal["http", "sdk"] | None = None
    timeout_s: Annotated[Number, Field(gt=0)] = 120.0
    max_wait_s: Annotated[Number, Field(ge=0)] = 180.0
    requests_per_minute: Annotated[Count, Field(ge=1)] | None = None
    tokens_per_minute: Annotated[Count, Field(ge=1)] | None = None
    temperature: Annotated[Number, Field(ge=0)] | None = None
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    context: Annotated[Count, Field(ge=2000)] | None = None
    extra: dict[str, Any] = {}

    SHORT_FORM: ClassVar[str] = "PROVIDER/MODEL"

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def _provider(self) -> Provider:
        """Of another package's nothing is known here."""
        return PROVIDERS.shipped.get(self.provider, Provider())

    @property
    def is_by_sdk(self) -> bool:
        """Whether requests are sent by the ``openai`` package."""
        return self.client == "sdk" or self._provider.sdk_only

    @property
    def record_tokens(self) -> int:
        """How long the record of a conversation may be that it judges: what its context leaves."""
        n_ctx = self.extra.get("n_ctx", LOCAL_CONTEXT) if self.provider == "local" else CONTEXT
        context = self.context or (n_ctx if isinstance(n_ctx, int) else LOCAL_CONTEXT)
        return max(context - BESIDE_RECORD, context // 2)

    @property
    def name(self) -> str:
        """The model's name as the provider knows it; it may hold slashes."""
        return self.model.partition("/")[2]

    @field_validator("model")
    @classmethod
    def _provider_and_name(cls, value: str) -> str:
        provider, _, name = value.partition("/")
        if not provider.strip() or not name.strip():
            raise ValueError(f"'{value}' is not PROVIDER/MODEL; write for example openai/gpt-5-mini")
        return value

    @model_validator(mode="after")
    def _has_base_url(self) -> ModelConfig:
        if self._provider.needs_base_url and not self.base_url:
            raise ValueError(f"{self.provider} needs base_url; write {{model: …, base_url: https://…/v1}}")
        return self

    @model_validator(mode="after")
    def _has_its_client(self) -> ModelConfig:
        if self.client == "http" and self._provider.sdk_only:
            raise ValueError(f"{self.provider} is asked through the openai package only; remove `client`")
        if self.client and self._provider.in_process:
            raise ValueError(f"{self.provider} models are in this process and have no `client`; remove it")
        return self


def _model(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


ModelEntry: TypeAlias = Annotated[ModelConfig, BeforeValidator(_model)]


class ModelsConfig(Value):
    """agenteval's own models by role; each role falls back to ``default``."""

    MEANT: ClassVar[dict[str, str]] = {"/": "default"}

    default: ModelEntry | None = None
    user: ModelEntry | None = None
    judge: ModelEntry | None = None
    dedup: ModelEntry | None = None

    def of(self, role: Literal["user", "judge", "dedup"]) -> ModelConfig | None:
        chosen: ModelConfig | None = getattr(self, role)
        return chosen or self.default

    def key_of(self, role: Literal["user", "judge", "dedup"]) -> str:
        """The key that names the model of a role."""
        return f"models.{role if getattr(self, role) else 'default'}"

    @property
    def all(self) -> tuple[ModelConfig, ...]:
        """Those that are set."""
        return tuple(model for model in (self.default, self.user, self.judge, self.dedup) if model)


class Price(Value):
    """US dollars per million tokens. ``cached_input``: of input that the provider had in its own cache;
    without it, as ``input``."""

    input: Annotated[Number, Field(ge=0)]
    output: Annotated[Number, Field(ge=0)]
    cached_input: Annotated[Number, Field(ge=0)] | None = None


class Allowance(Value):
    """How much may be spent: calls, tokens in and out, US dollars. ``None``: no limit."""

    max_calls: Annotated[Count, Field(ge=1)] | None = None
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    max_cost: Annotated[Number, Field(gt=0)] | None = None

    @property
    def limits(self) -> dict[str, int | float]:
        """Those that are set, by name."""
        named = {"max_calls": self.max_calls, "max_tokens": self.max_tokens, "max_cost": self.max_cost}
        return {name: limit for name, limit in named.items() if limit is not None}

    def __bool__(self) -> bool:
        return bool(self.limits)


class RolesBudgetConfig(Value):
    """What each role may spend by itself."""

    agent: Allowance = Allowance()
    user: Allowance = Allowance()
    judge: Allowance = Allowance()
    dedup: Allowance = Allowance()


class BudgetConfig(Allowance):
    """Where a run stops, and where the calls of one role do."""

    by_role: RolesBudgetConfig = RolesBudgetConfig()

    def of(self, role: str) -> Allowance:
        """What a role may spend by itself."""
        own = getattr(self.by_role, role, None)
        return own if isinstance(own, Allowance) else Allowance()

    @property
    def roles(self) -> dict[str, Allowance]:
        """The roles that have limits of their own."""
        return {role: own for role in RolesBudgetConfig.model_fields if (own := self.of(role))}

    def __bool__(self) -> bool:
        return bool(self.limits or self.roles)


class DeadlinesConfig(Value):
    """Seconds that a turn and the conversation of a sample may take, waiting for limits and retries left
    out; and those of the whole run, by the clock. ``None``: no limit."""

    turn_s: Annotated[Number, Field(gt=0)] | None = None
    sample_s: Annotated[Number, Field(gt=0)] | None = None
    run_s: Annotated[Number, Field(gt=0)] | None = None


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) and value != "all" else value


def _all(value: Any) -> Any:
    return None if value == "all" else value


class ReporterChoice(Value):
    """``NAME`` or ``NAME=PATH``; without a path the reporter chooses its place."""

    name: str
    path: str | None = None

    SHORT_FORM: ClassVar[str] = "a name"


class GatesConfig(Value):
    """Rules over repeated runs, by name, as they were written: what each one takes is said, and checked, by
    its object (``agenteval.verdict.run_gates``). Any of them replaces "every sample passes"."""

    model_config = ConfigDict(extra="allow")

    @property
    def written(self) -> dict[str, Any]:
        """Those that are asked for."""
        return {name: rule for name, rule in (self.model_extra or {}).items() if rule is not None}

    def without(self, names: Iterable[str]) -> GatesConfig:
        """As if these were not asked for."""
        return self.model_copy(update=dict.fromkeys(names))

    def __bool__(self) -> bool:
        return bool(self.written)


class JudgeConfig(Value):
    """How judges are asked. ``corroborate``: what would gate is asked again, to be refuted. ``calls``:
    ``shared`` asks for the scores of a turn in one call, and for all criteria of a conversation in one.
    ``on_failure``: what becomes of a conversation whose judge failed."""

    corroborate: bool = True
    on_failure: Literal["undecided", "skip"] = "undecided"
    calls: Literal["separate", "shared"] = "separate"


class AcceptedFailure(Value):
    """A failure that is known and accepted for a while: an entry of the accept list. ``expires`` is the last
    day on which it is accepted (``2026-12-31``, UTC); ``where`` is the line that wrote it."""

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
        raise ValueError(f"'{value[:40]}' is not a fingerprint; copy the twelve digits that the report shows")

    @field_validator("expires")
    @classmethod
    def _is_a_day(cls, value: str) -> str:
        try:
            return date.fromisoformat(value).isoformat()
        except ValueError:
            raise ValueError(f"'{value}' is not a date; write it as 2026-12-31") from None

    def holds_on(self, day: str) -> bool:
        """``day``: ISO 8601, which sorts as text."""
        return day <= self.expires


class ProfileSelection(Value):
    """What a profile says beside keys of the configuration: what it runs, as the command line does, whose
    options are over it."""

    tags: Texts = ()
    categories: Texts = ()
    scenarios: Texts = ()
    no_judge: bool = False
    baseline: Annotated[Text, Field(min_length=1)] | None = None


_SWITCHES = frozenset({"", "yes", "no", "on", "off", "y", "n", "none"})


USUAL_TURNS = 8
"""Of a conversation with a simulated user."""


class Config(Value):
    """``agenteval.yaml`` after merging. Every field is explained in ``docs/configuration.md``."""

    agent: AgentConfig | None = None
    agents: dict[str, AgentConfig] = {}
    compare: tuple[AgentConfig, ...] = ()
    models: ModelsConfig = ModelsConfig()
    epochs: Epochs | None = None
    max_turns: Annotated[Count, Field(ge=1)] = USUAL_TURNS
    concurrency: Annotated[Count, Field(ge=1)] = 20
    agent_concurrency: Annotated[Count, Field(ge=1)] | None = None
    metrics: Annotated[Literal["all"] | tuple[str, ...], BeforeValidator(_names)] = "all"
    custom_metrics: Texts = ()
    detectors: Annotated[Texts | None, BeforeValidator(_all)] = None
    thresholds: Thresholds = {}
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    severities: dict[str, Severity] = {}
    severity_from: Literal["table", "model"] = "table"
    fault_tolerance: Annotated[Number, Field(ge=0, le=1)] | None = None
    accepted: Text | None = None
    judge: JudgeConfig = JudgeConfig()
    prompts: dict[str, Text] = {}
    gates: GatesConfig = GatesConfig()
    budget: BudgetConfig = BudgetConfig()
    deadlines: DeadlinesConfig = DeadlinesConfig()
    prices: dict[str, Price] = {}
    cache: bool | Text = False
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    now: Text | None = None
    include: Texts = ("scenarios/**/*.yaml", "scenarios/**/*.yml")
    exclude: Texts = ()
    reporters: tuple[ReporterChoice, ...] = (ReporterChoice(name="terminal"),)
    seed: Annotated[Count, Field(ge=0)] = 0
    on_undecided: Literal["fail", "neutral"] = "fail"
    code_only: bool = False
    profiles: dict[str, dict[str, Any]] = {}

    # The profile that was taken, and what it selects: ``profiles`` itself is empty by then.
    profile: str = ""
    selection: ProfileSelection = ProfileSelection()
    # What the file that ``accepted`` names says.
    accepted_failures: tuple[AcceptedFailure, ...] = ()
    # Where things were written, for messages and the gate table; not part of the file. ``origins``
    # names the variable or flag that set a key.
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
        # In YAML 1.2 `no` is a text: it must not switch the cache on, with a folder of that name.
        if isinstance(value, str) and (value.strip().lower() in _SWITCHES or value.isdigit()):
            raise ValueError(f"'{value}' is not a folder; write true, false or a path such as ./cache")
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
        """Every agent that is written down."""
        return (*([self.agent] if self.agent else []), *self.agents.values(), *self.compare)

    def where(self, path: str) -> str:
        """``file:line`` of a key (or its nearest parent), or the variable or flag that set it;
        ``default`` where nobody wrote it."""
        while path:
            if path in self.origins:
                return self.origins[path]
            if path in self.lines:
                return f"{self.source}:{self.lines[path]}"
            path = path.rpartition(".")[0]
        return "default"

    def place(self, path: str) -> Place:
        """The same with the column, where a file says it."""
        while path and path not in self.origins and path not in self.lines:
            path = path.rpartition(".")[0]
        if path in self.origins or path not in self.lines:
            return Place(self.origins.get(path, "default"))
        return Place(self.source, self.lines[path], self.columns.get(path, 0))

    def is_by_flag(self, key: str) -> bool:
        """Whether the command line set it."""
        return self.origins.get(key, "").startswith("--")


def parse_reporter(text: str) -> ReporterChoice:
    """``json`` or ``json=out.json``."""
    name, _, path = text.partition("=")
    return ReporterChoice(name=name.strip(), path=path.strip() or None)


def deep_merge(low: Mapping[str, Any], high: Mapping[str, Any]) -> dict[str, Any]:
    """``high`` over ``low``: mappings are merged deeply, all else (lists too) is replaced."""
    merged = dict(low)
    for key, value in high.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = deep_merge(below, value) if both else value  # type: ignore[arg-type]
    return merged
