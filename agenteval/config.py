"""The configuration as a value, and its pure merge: defaults < file < environment < flags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from agenteval.scenario import Thresholds
from agenteval.score import Severity
from agenteval.value import Value


class AgentConfig(Value):
    """An agent under test. ``type`` may be left out: ``endpoint`` means http, ``target`` python."""

    name: str = "agent"
    type: str | None = None
    target: str | None = None
    endpoint: str | None = None
    headers: dict[str, str] = {}
    body: dict[str, Any] = {}
    streaming: bool = False
    send_tools: bool = True
    observed_messages: str | None = None
    timeout_s: Annotated[float, Field(gt=0)] = 60.0
    policy: str | None = None

    @property
    def kind(self) -> str:
        """The adapter's name; empty when nothing says which."""
        if self.type:
            return self.type
        return "http" if self.endpoint else "python" if self.target else ""


class ReporterChoice(Value):
    """``NAME`` or ``NAME=PATH``; without a path the reporter chooses its place."""

    name: str
    path: str | None = None


class Config(Value):
    """``agenteval.yaml`` after merging. Every field is explained in ``docs/configuration.md``."""

    agent: AgentConfig | None = None
    agents: dict[str, AgentConfig] = {}
    compare: tuple[AgentConfig, ...] = ()
    epochs: Annotated[int, Field(ge=1)] | None = None
    max_turns: Annotated[int, Field(ge=1)] = 8
    concurrency: Annotated[int, Field(ge=1)] = 20
    agent_concurrency: Annotated[int, Field(ge=1)] | None = None
    metrics: Literal["all"] | tuple[str, ...] = "all"
    detectors: tuple[str, ...] | None = None
    thresholds: Thresholds = {}
    fail_on_severity: Severity | Literal["none"] = Severity.CRITICAL
    severities: dict[str, Severity] = {}
    fault_tolerance: Annotated[float, Field(ge=0, le=1)] = 0.0
    unmocked_tools: Literal["error", "passthrough", "empty"] = "error"
    now: str | None = None
    include: tuple[str, ...] = ("scenarios/**/*.yaml",)
    exclude: tuple[str, ...] = ()
    reporters: tuple[ReporterChoice, ...] = (ReporterChoice(name="terminal"),)
    seed: int = 0

    # Where things were written, for messages and the gate table; not part of the file.
    source: str = ""
    root: str = "."
    lines: dict[str, int] = {}

    @field_validator("reporters", mode="before")
    @classmethod
    def _reporters(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, Iterable) and not isinstance(value, Mapping):
            return tuple(parse_reporter(item) if isinstance(item, str) else item for item in value)
        return value

    def where(self, path: str) -> str:
        """``file:line`` of a key (or its nearest parent); ``default`` where nobody wrote it."""
        while path:
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
