"""The key ``observe``, which selects how an agent's calls are observed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from agenteval.core.errors import Mistake
from agenteval.core.value import AlternativeSchema, Count, Number, Value


class ObserveOptions(Value):
    """Options for receiving OpenTelemetry spans."""

    how: Literal["otlp"] = "otlp"
    """Method by which spans arrive (otlp)."""
    port: Annotated[Count, Field(ge=0, le=65535)] = 4318
    """Local port on which spans are received."""
    wait_s: Annotated[Number, Field(ge=0, le=120)] = 6.0
    """Maximum time in seconds to wait for the spans of a reply."""


_FITS = {"http": ("otlp",), "python": ("openai",), "command": ("otlp",)}
_WHY_NOT = {
    ("http", "openai"): "`observe: openai` works only with a Python agent that agenteval starts",
    ("command", "openai"): "`observe: openai` works only with a Python agent, specified with `target`",
    ("python", "otlp"): (
        "`observe: otlp` requires an endpoint or a command; a Python target receives no traceparent"
    ),
}


def observation_method(written: Any) -> Any:
    """Return the observation method that the author chose, or ``None`` if none was chosen."""
    return written.get("how", "otlp") if isinstance(written, Mapping) else written


def parse_observe_option(written: Any) -> Any:
    """Convert the short form ``otlp`` to a mapping."""
    return {"how": written} if isinstance(written, str) else written


OBSERVE_SHORTHAND = AlternativeSchema(enum=["otlp"])


def observe_mistakes(written: Any, kind: str) -> Iterator[Mistake]:
    """Yield the mistakes in the key ``observe`` for an agent of type ``kind``."""
    how = observation_method(written)
    if how is None:
        return
    known = _FITS.get(kind, ())
    remedy = f"use `observe: {known[0]}`, or have the agent report its calls" if known else ""
    if kind == "python":
        remedy = "remove it; the model requests of a Python agent are always observed"
    if how not in ("otlp", "openai"):
        yield Mistake(f"`observe`: unknown value {how!r}", remedy, ("observe",))
    elif how not in known:
        yield Mistake(_WHY_NOT[kind, how], remedy, ("observe",))
    elif how == "openai" and isinstance(written, Mapping) and len(written) > 1:
        other = next(key for key in written if key != "how")
        what = f"`observe: openai` does not support `{other}`, because it reads no spans"
        yield Mistake(what, "use `observe: openai`", ("observe", other))
