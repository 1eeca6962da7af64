"""The configuration as a value, and its pure merge: defaults < file < environment < flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from agenteval.scenario import MAX_EPOCHS, Count, Number, Text, Texts, Thresholds
from agenteval.score import Severity
from agenteval.value import Value


class AgentConfig(Value):
    """An agent under test. ``type`` may be left out: ``endpoint`` means http, ``target`` python."""

    name: Annotated[Text, Field(min_length=1)] = "agent"
    type: str | None = None
    target: str | None = None
    endpoint: str | None = None
    headers: dict[str, Text] = {}
    body: dict[str, Any] = {}
    streaming: bool = False
    send_tools: bool = True
    observed_messages: str | None = None
    timeout_s: Annotated[Number, Field(gt=0)] = 60.0
    policy: str | None = None

    @property
    def kind(self) -> str:
        """The adapter's name; empty when nothing says which."""
        if self.type:
            return self.type
        return "http" if self.endpoint else "python" if self.target else ""


PROVIDERS = ("openai", "anthropic", "google", "ollama", "openai-compatible", "local", "scripted")


class ModelConfig(Value):
    """One of agenteval's own models. ``PROVIDER/MODEL`` alone stands for a mapping with ``model``.

    ``api_key_env`` names the environment variable that holds the key. ``extra`` is merged into each
    request. ``local/PATH.gguf`` and ``scripted/FILE.yaml`` start at the configuration's folder.
    """

    model: str
    base_url: str | None = None
    api_key_env: str | None = None
    timeout_s: Annotated[Number, Field(gt=0)] = 120.0
    temperature: Annotated[Number, Field(ge=0)] | None = None
    max_tokens: Annotated[Count, Field(ge=1)] | None = None
    extra: dict[str, Any] = {}

    SHORT_FORM: ClassVar[str] = "PROVIDER/MODEL"

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

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
        if self.provider == "openai-compatible" and not self.base_url:
            raise ValueError("openai-compatible needs base_url; write {model: …, base_url: https://…/v1}")
        return self


def _model(value: Any) -> Any:
    return {"model": value} if isinstance(value, str) else value


ModelEntry: TypeAlias = Annotated[ModelConfig, BeforeValidator(_model)]


class ModelsConfig(Value):
    """agenteval's own models by role; each role falls back to ``default``."""

    default: ModelEntry | None = None
    user: ModelEntry | None = None
    judge: ModelEntry | None = None
    dedup: ModelEntry | None = None

    def of(self, role: Literal["user", "judge", "dedup"]) -> ModelConfig | None:
        chosen: ModelConfig | None = getattr(self, role)
        return chosen or self.default


def _names(value: Any) -> Any:
    return (value,) if isinstance(value, str) and value != "all" else value


class ReporterChoice(Value):
    """``NAME`` or ``NAME=PATH``; without a path the reporter chooses its place."""

    name: str
    path: str | None = None

    SHORT_FORM: ClassVar[str] = "a name"


class Config(Value):
    """``agenteval.yaml`` after merging. Every field is explained in ``docs/configuration.md``."""

    agent: AgentConfig | None = None
    agents: dict[str, AgentConfig] = {}
    compare: tuple[AgentConfig, ...] = ()
    models: ModelsConfig = ModelsConfig()
    epochs: Annotated[Count, Field(ge=1, le=MAX_EPOCHS)] | None = None
    max_turns: Annotated[Count, Field(ge=1)] = 8
    concurrency: Annotated[Count, Field(ge=1)] = 20
    agent_concurrency: Annotated[Count, Field(ge=1)] | None = None
    metrics: Annotated[Literal["all"] | tuple[str, ...], BeforeValidator(_names)] = "all"
    custom_metrics: Texts = ()
    detectors: Texts | None = None
    thresholds: Thresholds = {}
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    severities: dict[str, Severity] = {}
    severity_from: Literal["table", "model"] = "table"
    fault_tolerance: Annotated[Number, Field(ge=0, le=1)] = 0.0
    judge: dict[str, Any] = {}
    gates: dict[str, Any] = {}
    budget: dict[str, Any] = {}
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    now: Text | None = None
    include: Texts = ("scenarios/**/*.yaml",)
    exclude: Texts = ()
    reporters: tuple[ReporterChoice, ...] = (ReporterChoice(name="terminal"),)
    seed: Count = 0

    # Where things were written, for messages and the gate table; not part of the file. ``origins``
    # names the variable or flag that set a key.
    source: str = ""
    root: str = "."
    lines: dict[str, int] = {}
    origins: dict[str, str] = {}

    INTERNAL: ClassVar[frozenset[str]] = frozenset({"source", "root", "lines", "origins"})

    @field_validator("reporters", mode="before")
    @classmethod
    def _reporters(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, Iterable) and not isinstance(value, Mapping):
            return tuple(parse_reporter(item) if isinstance(item, str) else item for item in value)
        return value

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
