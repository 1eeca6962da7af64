"""Known faults, one at a time, planted into recorded conversations.

Each operator is a kind of failure with several variants, different ways in which agents fail. A variant
looks for a place where it can be planted and where it really is that fault, changes a copy and says where.
The operators know nothing of how a detector could look for them. Everything follows from the seed.

::

    python benchmarks/faults.py [--data FILE…] [--operator NAME] [--show N]      what was planted, and where
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import fault_actions as actions
import fault_answers as answers
import fault_arguments as arguments
import fault_calls as calls
import fault_values as values
from marks import marks_for
from planting import Planted, Variant
from recorded import Conversation, induced_tools, is_regular, load_sets, take_apart

LABELS = {
    "repeated_tool_call": "repeated tool call",
    "wrong_arguments": "wrong arguments",
    "malformed_arguments": "wrong arguments",
    "unknown_tool": "wrong tool",
    "ignored_tool_error": "ignored tool result",
    "contradicts_evidence": "false information",
    "ungrounded_value": "false information",
    "repetition": "repetition",
    "leak": "unsafe state",
    "unconfirmed_action": "unsafe action",
    "claimed_action_not_called": "false information",
}
"""The detector that should find an operator's faults has its name; and the label it maps to."""

_VARIANTS: dict[str, tuple[Variant, ...]] = {
    "repeated_tool_call": (
        calls.read_again_at_once,
        calls.write_again_at_once,
        calls.later_in_turn,
        calls.parallel_twice,
    ),
    "wrong_arguments": (
        arguments.required_dropped,
        arguments.type_changed,
        arguments.enum_invented,
        arguments.unknown_key,
        arguments.nested_broken,
    ),
    "malformed_arguments": (
        arguments.cut_off,
        arguments.trailing_text,
        arguments.single_quotes,
        arguments.unquoted_keys,
        arguments.code_fence,
        arguments.keyword_arguments,
    ),
    "unknown_tool": (calls.name_typo, calls.other_case, calls.prefixed, calls.invented_name),
    "ignored_tool_error": (
        actions.failed_change_told_as_done,
        actions.failed_lookup_told_as_known,
        actions.same_call_after_its_error,
        actions.same_call_after_wrong_value,
    ),
    "contradicts_evidence": (values.money, values.number, values.date, values.time, values.identifier),
    "repetition": (
        answers.earlier_answer,
        answers.earlier_answer_dressed,
        answers.paragraph_thrice,
        answers.stuck_sentence,
    ),
    "leak": (
        answers.policy_quoted,
        answers.prompt_dumped,
        answers.canary_told,
        answers.api_key_told,
        answers.card_told,
    ),
    "claimed_action_not_called": (actions.call_removed, actions.claim_added, actions.claim_of_no_tool),
}
OPERATORS: dict[str, dict[str, Variant]] = {
    name: {variant.__name__: variant for variant in variants} for name, variants in _VARIANTS.items()
} | {"ungrounded_value": dict(values.INVENTED), "unconfirmed_action": dict(actions.UNCONFIRMED)}


class Fault(NamedTuple):
    """A conversation with one planted fault. ``turn`` and ``calls`` count from 0; any of ``calls`` names
    the place, the first one best; without one the fault is in the answer of the turn. ``source`` is the
    conversation that it was planted into, ``number`` the place of that one in its set."""

    operator: str
    variant: str
    source: str
    conversation: Conversation
    turn: int
    calls: tuple[int, ...]
    label: str
    note: str


def prepared(name: str, conversations: list[Conversation], marks: Path | None = None) -> list[Conversation]:
    """A set with declared tools (induced from its calls where it has none), and under ``tool_marks`` what
    they do, as far as they do not say so themselves. Ids are made unique."""
    table = marks_for(name, conversations, marks)
    induced = induced_tools(conversations)
    made = []
    for number, conversation in enumerate(conversations):
        tools = conversation.get("tools") or induced
        ident = str(conversation.get("id") or f"{name}-{number}")
        own = conversation.get("tool_marks") or {}
        made.append({**conversation, "id": ident, "tools": tools, "tool_marks": {**table, **own}})
    seen: set[str] = set()
    for conversation in made:
        while conversation["id"] in seen:
            conversation["id"] += "'"
        seen.add(conversation["id"])
    return made


def plant(operator: str, conversation: Conversation, seed: int, *, variant: str = "") -> Fault | None:
    """One fault of this kind, of a variant chosen by the seed (or of ``variant``); ``None`` if the
    conversation has no place for it."""
    if not is_regular(conversation):
        return None
    recorded = take_apart(conversation, conversation.get("tool_marks") or {})
    rng = Random(f"{seed}|{operator}|{variant}|{recorded.id}")
    names = [variant] if variant else rng.sample(sorted(OPERATORS[operator]), len(OPERATORS[operator]))
    for name in names:
        planted = OPERATORS[operator][name](recorded, rng)
        if planted is not None:
            return _fault(operator, name, conversation, planted)
    return None


def _fault(operator: str, variant: str, conversation: Mapping[str, Any], planted: Planted) -> Fault:
    changed = {
        **conversation,
        "id": f"{conversation['id']}+{operator}.{variant}",
        "messages": planted.messages,
        "tools": conversation["tools"] if planted.tools is None else planted.tools,
    }
    return Fault(
        operator,
        variant,
        conversation["id"],
        changed,
        planted.turn,
        planted.calls,
        LABELS[operator],
        planted.note,
    )


def plant_all(conversations: list[Conversation], seed: int, *, every_variant: bool = False) -> list[Fault]:
    """One fault of each kind per conversation that has a place for it; or of each variant."""
    faults = []
    for operator in LABELS:
        for variant in sorted(OPERATORS[operator]) if every_variant else [""]:
            made = (plant(operator, conversation, seed, variant=variant) for conversation in conversations)
            faults += [fault for fault in made if fault is not None]
    return faults


def main() -> None:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--data", nargs="+", type=Path, default=[], metavar="FILE")
    options.add_argument("--operator", choices=list(LABELS))
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--show", type=int, default=3, metavar="N", help="faults of each variant to show")
    given = options.parse_args()
    for name, conversations in load_sets(given.data).items():
        ready = prepared(name, conversations)
        for operator in [given.operator] if given.operator else LABELS:
            for variant in sorted(OPERATORS[operator]):
                made = [plant(operator, conversation, given.seed, variant=variant) for conversation in ready]
                faults = [fault for fault in made if fault]
                print(f"{name}  {operator}.{variant}: {len(faults)} of {len(ready)}")
                for fault in Random(given.seed).sample(faults, min(given.show, len(faults))):
                    print(f"    {fault.source} turn {fault.turn + 1} calls {fault.calls}: {fault.note}")


if __name__ == "__main__":
    main()
