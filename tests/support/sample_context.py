"""Code that runs as a scorer does, in a task of a sample."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import TypeVar

from agenteval.conversation.current_sample import enter_sample
from agenteval.core.scenario import SampleKey

Made = TypeVar("Made")


def within_a_sample(run: Callable[[], Made]) -> Made:
    def entered() -> Made:
        enter_sample(SampleKey(scenario="s", agent="bot"))
        return run()

    return contextvars.Context().run(entered)
