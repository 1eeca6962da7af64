"""The hooks of a scenario: the author's code that runs before and after each of its conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from agenteval.agentside.targets.faults import describe_error
from agenteval.agentside.targets.signatures import find_signature_mismatch
from agenteval.conversation.user_code import DeadlineError, call_user_code, import_target
from agenteval.core.errors import AuthorError, Place, Problem, parse_place
from agenteval.core.scenario import Sample, Scenario

HOOK_S = 120.0
"""The time, in seconds, that a hook may take."""
KINDS = ("setup", "teardown")


async def run_hook(kind: str, sample: Sample) -> None:
    """Call the hook ``setup`` or ``teardown`` of a sample, if its scenario has one. Raise ``AuthorError`` if
    the hook raises an exception or takes too long."""
    target = getattr(sample.scenario, kind)
    if not target:
        return
    place = _place(sample.scenario, kind)
    try:
        hook = _load(kind, target, sample.scenario.base, place)
        await call_user_code(hook, sample, timeout_s=HOOK_S)
    except (AuthorError, asyncio.CancelledError):
        raise
    except DeadlineError:
        what = f"`{kind}`: {target} did not return within {HOOK_S:g} s"
        raise AuthorError(Problem(what, "", place)) from None
    except Exception as error:
        what = f"`{kind}`: {target} raised {describe_error(error)}"
        raise AuthorError(Problem(what, "", place)) from error


def hook_problems(scenario: Scenario) -> Iterator[Problem]:
    """Yield a problem for each hook that cannot be loaded or called."""
    for kind in KINDS:
        if target := getattr(scenario, kind):
            try:
                _load(kind, target, scenario.base, _place(scenario, kind))
            except AuthorError as error:
                yield from error.problems


def _load(kind: str, target: str, base: str, place: Place) -> Callable[..., Any]:
    hook = import_target(target, base, what=f"`{kind}`", place=place)
    if not callable(hook):
        raise AuthorError(Problem(f"`{kind}`: {target} is not a function", "", place))
    if shape := find_signature_mismatch(hook, 1):
        what = f"`{kind}`: {target} cannot be called with the sample as its only argument: {shape}"
        raise AuthorError(Problem(what, "define it as `def NAME(sample)`", place))
    loaded: Callable[..., Any] = hook
    return loaded


def _place(scenario: Scenario, kind: str) -> Place:
    return parse_place(scenario.where(kind))
