"""How an author asks that the calls of an agent be seen: the key ``observe``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from agenteval.core.errors import Mistake
from agenteval.core.value import Count, Number, Value


class ObserveOptions(Value):
    """How spans come. ``port``: where the receiver listens, on this machine alone; ``wait_s``: how long a
    reply's spans are waited for."""

    how: Literal["otlp"] = "otlp"
    port: Annotated[Count, Field(ge=0, le=65535)] = 4318
    wait_s: Annotated[Number, Field(ge=0, le=120)] = 6.0


def observed_by(written: Any) -> Any:
    """``otlp`` alone stands for a mapping."""
    return {"how": written} if isinstance(written, str) else written


def observe_mistakes(written: Any, kind: str) -> Iterator[Mistake]:
    """Of the key ``observe`` of an agent of type ``kind``."""
    how = written.get("how", "otlp") if isinstance(written, Mapping) else written
    if how is None:
        return
    if how not in ("otlp", "openai"):
        yield Mistake(f"observe: {how!r} is not known", "write observe: otlp", ("observe",))
    elif how == "openai" or kind != "http":
        what = f"observe: {how} is not supported yet for an agent of type {kind}"
        yield Mistake(what, "let the agent report its calls, or call tools through ctx", ("observe",))
