"""The first event of a journal, whose scenarios are read one by one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.core.event import RunStarted
from agenteval.core.scenario import Scenario
from agenteval.files.journal import event_from_json, event_to_json
from agenteval.files.run_start import parse_run_started
from tests.support.plans import begun


def started(count: int) -> RunStarted:
    scenarios = tuple(Scenario(id=f"s{n}", name='a "scenarios": [', tags=("x", "]")) for n in range(count))
    return begun().model_copy(update={"scenarios": scenarios, "request": {"scenarios": [1, {"a": "]"}]}})


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("form", [None, 1, "\t"])
def test_it_is_the_event_of_the_whole_line(count: int, form: Any) -> None:
    line = event_to_json(started(count))
    spaced = json.dumps(json.loads(line), indent=form)
    assert parse_run_started(spaced.encode()) == event_from_json(line) == started(count)


@pytest.mark.parametrize(
    ("old", "new"),
    [('"id":"s1"', '"id":{}'), ('"tags"', '"tag"'), ("]}", "]"), ('"scenarios":[{', '"scenario":[{')],
)
def test_another_line_is_refused(old: str, new: str) -> None:
    line = event_to_json(started(2))
    assert old in line
    with pytest.raises((ValueError, IndexError)):
        parse_run_started(line.replace(old, new).encode())
