"""``expect.python``: custom checks that the author wrote in Python, such as ``checks.py:polite``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agenteval.agentside.targets.faults import contain_exits, describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch
from agenteval.conversation.user_code import DeadlineError, call_user_code, import_target
from agenteval.core.errors import AuthorError, Mistake, Place, Problem, parse_place
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check
from agenteval.messages.chat import replace_surrogates
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule
from agenteval.scoring.checks.conversation import build_conversation

_LONGEST = 4_000
_RETURNS = "return True, False, a failure reason as a string, or an agenteval.Check"


async def run_python_checks(targets: Sequence[str], seen: CheckInput) -> Sequence[CheckOutcome]:
    """Run each Python check function and return its outcome. A function that raises an exception leaves its
    check undecided."""
    return [await _run_python_check(target, seen) for target in targets]


async def _run_python_check(target: str, seen: CheckInput) -> CheckOutcome:
    if not seen.base:
        detail = "not run, because a journal contains no code — specify its scenarios with `--scenarios`"
        return CheckOutcome(None, f"{target}: {detail}")
    try:
        function = _function(target, seen.base, None)
        turns = (*seen.before, *seen.turns)
        conversation = build_conversation(seen.scenario, turns, observed=seen.observed)
        value = await call_user_code(function, conversation, timeout_s=seen.timeout_s)
        with contain_exits():
            return _outcome(target, value)
    except asyncio.CancelledError:
        raise
    except DeadlineError:
        return CheckOutcome(None, f"{target} did not return within {seen.timeout_s:g} s")
    except AuthorError as error:
        return CheckOutcome(None, str(error))
    except Exception as error:
        return CheckOutcome(None, f"{target} raised {replace_surrogates(describe_error(error))[:_LONGEST]}")


def _outcome(target: str, value: Any) -> CheckOutcome:
    match value:
        case bool():
            return CheckOutcome(value, f"{target} returned {value}", parts=(target,))
        case Check():
            detail = replace_surrogates(value.detail)[:_LONGEST] or f"{target} returned no detail"
            return CheckOutcome(
                value.passed,
                detail,
                parts=value.parts or (target,),
                subject=replace_surrogates(value.name)[:200],
            )
        case str() if value.strip():
            return CheckOutcome(False, f"{target}: {replace_surrogates(value)[:_LONGEST]}", parts=(target,))
        case str():
            return CheckOutcome(None, f"{target} returned an empty string; {_RETURNS}")
        case _:
            kind = "None" if value is None else type(value).__name__
            return CheckOutcome(None, f"{target} returned {kind}; {_RETURNS}")


def find_target_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield the Python check functions of a scenario that cannot be loaded or called."""
    for path, expect in scenario.expectations:
        for index, target in enumerate(expect.python):
            try:
                _function(target, scenario.base, parse_place(scenario.where(f"{path}.python.{index}")))
            except AuthorError as error:
                yield from error.problems


def _function(target: str, base: str, place: Place | None) -> Callable[..., Any]:
    function = import_target(target, base, what="the check", place=place)
    if not callable(function):
        raise AuthorError(Problem(f"the check {target} is not a function", "", place))
    if shape := find_signature_mismatch(function, 1):
        what = f"the check {target} cannot be called with the conversation as its only argument: {shape}"
        raise AuthorError(Problem(what, "define it as `def NAME(conversation)`", place))
    checked: Callable[..., Any] = function
    return checked


def find_target_mistakes(written: Any) -> Iterator[Mistake]:
    for index, target in enumerate(written if isinstance(written, list) else [written]):
        if isinstance(target, str) and not target.strip():
            where = (index,) if isinstance(written, list) else ()
            yield Mistake("`python` must not be empty", "use `file.py:name`", where)


PYTHON = (
    CheckRule(
        "python", evaluate_async=run_python_checks, needs_answers=True, find_mistakes=find_target_mistakes
    ),
)
