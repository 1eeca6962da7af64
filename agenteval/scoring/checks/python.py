"""``expect.python``: checks that the author wrote in Python, ``checks.py:polite``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from agenteval.agentside.targets.faults import contained, describe
from agenteval.agentside.targets.signatures import misfit
from agenteval.conversation.user_code import DeadlineError, call, load
from agenteval.core.errors import AuthorError, Mistake, Place, Problem, place_of
from agenteval.core.scenario import Scenario
from agenteval.core.score import Check
from agenteval.messages.chat import whole
from agenteval.scoring.checks.conversation import conversation_of
from agenteval.scoring.checks.rule import Outcome, Rule, Seen

_LONGEST = 4_000
_RETURNS = "return True, False, a reason as text (it failed), or an agenteval.Check"


async def ask(targets: Sequence[str], seen: Seen) -> Sequence[Outcome]:
    """One outcome for each function. One that breaks decides nothing."""
    return [await _ask(target, seen) for target in targets]


async def _ask(target: str, seen: Seen) -> Outcome:
    if not seen.base:
        detail = "not run, because a journal contains no code — name its scenarios with --scenarios"
        return Outcome(None, f"{target}: {detail}")
    try:
        function = _function(target, seen.base, None)
        turns = (*seen.before, *seen.turns)
        conversation = conversation_of(seen.scenario, turns, observed=seen.observed)
        value = await call(function, conversation, timeout_s=seen.timeout_s)
        with contained():
            return _outcome(target, value)
    except asyncio.CancelledError:
        raise
    except DeadlineError:
        return Outcome(None, f"{target} did not return within {seen.timeout_s:g} s")
    except AuthorError as error:
        return Outcome(None, str(error))
    except Exception as error:
        return Outcome(None, f"{target} raised {whole(describe(error))[:_LONGEST]}")


def _outcome(target: str, value: Any) -> Outcome:
    match value:
        case bool():
            return Outcome(value, f"{target} {'holds' if value else 'does not hold'}", parts=(target,))
        case Check():
            detail = whole(value.detail)[:_LONGEST] or f"{target} returned no detail"
            return Outcome(value.passed, detail, parts=value.parts or (target,), of=whole(value.name)[:200])
        case str() if value.strip():
            return Outcome(False, f"{target}: {whole(value)[:_LONGEST]}", parts=(target,))
        case str():
            return Outcome(None, f"{target} returned an empty text; {_RETURNS}")
        case _:
            kind = "None" if value is None else type(value).__name__
            return Outcome(None, f"{target} returned {kind}; {_RETURNS}")


def target_problems(scenario: Scenario) -> Iterator[Problem]:
    """Functions of a scenario's checks that cannot be loaded or called."""
    for path, expect in scenario.expectations:
        for index, target in enumerate(expect.python):
            try:
                _function(target, scenario.base, place_of(scenario.where(f"{path}.python.{index}")))
            except AuthorError as error:
                yield from error.problems


def _function(target: str, base: str, place: Place | None) -> Callable[..., Any]:
    function = load(target, base, what="the check", place=place)
    if not callable(function):
        raise AuthorError(Problem(f"the check: {target} is not a function", "", place))
    if shape := misfit(function, 1):
        what = f"the check: {target} cannot be called with only the conversation: {shape}"
        raise AuthorError(Problem(what, "write def NAME(conversation)", place))
    found: Callable[..., Any] = function
    return found


def mistakes(written: Any) -> Iterator[Mistake]:
    for index, target in enumerate(written if isinstance(written, list) else [written]):
        if isinstance(target, str) and not target.strip():
            where = (index,) if isinstance(written, list) else ()
            yield Mistake("python: an empty text does not name a function", "write file.py:name", where)


PYTHON = (Rule("python", ask=ask, needs_answers=True, mistakes=mistakes),)
