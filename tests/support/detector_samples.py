"""Conversations for the tests of detectors, and arbitrary ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from hypothesis import strategies as st

from agenteval.core.trajectory import Step, ToolCall, ToolResult, Trajectory, Turn
from agenteval.scoring.detectors.detector_input import DetectorInput, Proof, ToolFacts

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def call(
    name: str, returns: Any = "ok", *, is_error: bool = False, raw: str | None = None, **args: Any
) -> ToolCall:
    """A call with its result; ``raw``: with arguments that could not be read."""
    result = ToolResult(value=returns, is_error=is_error)
    return ToolCall(name=name, args=None if raw is not None else args, raw_args=raw, result=result)


def failing(name: str, error: str = "no such city", **args: Any) -> ToolCall:
    return call(name, {"error": error}, is_error=True, **args)


def turn(user: str, *parts: ToolCall | tuple[ToolCall, ...] | str) -> Turn:
    """A step for each call (a tuple: calls made at the same time) and for each text."""
    steps = []
    for part in parts:
        if isinstance(part, str):
            steps.append(Step(text=part))
        else:
            steps.append(Step(tool_calls=part if isinstance(part, tuple) else (part,)))
    return Turn(user=user, steps=tuple(steps))


def conversation(*turns: Turn, **known: Any) -> DetectorInput:
    return DetectorInput.from_trajectory(Trajectory(turns=turns), **known)


def marked(**tools: str) -> dict[str, ToolFacts]:
    """Tools by name, each with its mark (empty: none)."""
    return {name: ToolFacts(**({mark: True} if mark else {})) for name, mark in tools.items()}


def places(
    detector: Callable[[DetectorInput], Iterable[Proof]], talk: DetectorInput
) -> list[tuple[int, int | None]]:
    """Turn and call of what a detector proves. What it quotes from an answer stands where it says."""
    proofs = list(detector(talk))
    for proof in proofs:
        assert proof.explanation
        if proof.span:
            quoted = talk.turns[proof.turn].answer[slice(*proof.span)]
            assert quoted == proof.evidence or "…" in proof.evidence
    return [(proof.turn, proof.call) for proof in proofs]


# ── arbitrary ones ───────────────────────────────────────────────────────────────────────────────

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
_WORDS = st.sampled_from(
    ["I", "have", "booked", "cancelled", "your", "has been", "successfully", "the agent must", "Error:", "İ",
     "4111 1111 1111 1111", "sk-abcdEFGH1234567890xyz", "no", "yes", ".", "\n", "error", '{"error": 1}',
     "been", "sent"]
)  # fmt: skip
_TEXT = st.lists(_WORDS | st.text(max_size=12), max_size=14).map(" ".join)
_NAMES = st.sampled_from(["get_x", "book_trip", "cancel", "", "💥", "AddReminder", "x" * 300])
_RESULTS = st.none() | st.builds(ToolResult, value=JSON | _TEXT, is_error=st.booleans())
_CALLS = st.builds(
    ToolCall,
    name=_NAMES,
    args=st.none() | st.dictionaries(st.text(max_size=4), JSON, max_size=3),
    raw_args=st.none() | _TEXT,
    observed=st.booleans(),
    result=_RESULTS,
)
_STEPS = st.builds(Step, text=st.none() | _TEXT, tool_calls=st.lists(_CALLS, max_size=3).map(tuple))
_TURNS = st.builds(Turn, user=_TEXT, steps=st.lists(_STEPS, max_size=3).map(tuple), error=st.none() | _TEXT)
_FACTS = st.builds(
    ToolFacts,
    parameters=st.none()
    | st.dictionaries(
        st.sampled_from(
            ["type", "properties", "required", "enum", "items", "$ref", "pattern", "minimum", "anyOf"]
        ),
        JSON,
        max_size=4,
    ),
    reads=st.booleans(),
    destructive=st.booleans(),
)
CONVERSATIONS = st.builds(
    lambda turns, tools, undeclared, policy, truths: conversation(
        *turns, tools=tools, undeclared_exist=undeclared, policy=policy, truths=tuple(truths)
    ),
    st.lists(_TURNS, max_size=4),
    st.dictionaries(_NAMES, _FACTS, max_size=3),
    st.booleans(),
    _TEXT,
    st.lists(_TEXT, max_size=2),
)
"""Any conversation that can be told at all."""
