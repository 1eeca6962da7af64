"""How an author asks that the calls of an agent be seen: the key ``observe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from agenteval.core.errors import Mistake
from agenteval.core.value import AlternativeSchema, Count, Number, Value


class ObserveOptions(Value):
    """How spans come."""

    how: Literal["otlp"] = "otlp"
    """How spans come: otlp."""
    port: Annotated[Count, Field(ge=0, le=65535)] = 4318
    """Port of this machine at which spans are received."""
    wait_s: Annotated[Number, Field(ge=0, le=120)] = 6.0
    """Seconds that a reply's spans are waited for."""


_FITS = {"http": ("otlp",), "python": ("openai",), "command": ("otlp",)}
_WHY_NOT = {
    ("http", "openai"): "observe: openai sees the client of a Python agent that agenteval starts",
    ("command", "openai"): "observe: openai sees the client of a Python agent: name its target",
    ("python", "otlp"): (
        "observe: otlp is for an endpoint or a command: a Python target gets no traceparent to take up"
    ),
}


def observation_method(written: Any) -> Any:
    """What an author asks for; ``None``: nothing."""
    return written.get("how", "otlp") if isinstance(written, Mapping) else written


def parse_observe_option(written: Any) -> Any:
    """``otlp`` alone stands for a mapping."""
    return {"how": written} if isinstance(written, str) else written


OBSERVE_SHORTHAND = AlternativeSchema(enum=["otlp"])


def observe_mistakes(written: Any, kind: str) -> Iterator[Mistake]:
    """Of the key ``observe`` of an agent of type ``kind``."""
    how = observation_method(written)
    if how is None:
        return
    known = _FITS.get(kind, ())
    remedy = f"write observe: {known[0]}, or let the agent report its calls" if known else ""
    if kind == "python":
        remedy = "remove it: what a Python agent asks its models is heard anyway"
    if how not in ("otlp", "openai"):
        yield Mistake(f"observe: {how!r} is not known", remedy, ("observe",))
    elif how not in known:
        yield Mistake(_WHY_NOT[kind, how], remedy, ("observe",))
    elif how == "openai" and isinstance(written, Mapping) and len(written) > 1:
        other = next(key for key in written if key != "how")
        what = f"observe: openai has no {other}: it reads no spans"
        yield Mistake(what, "write observe: openai", ("observe", other))
