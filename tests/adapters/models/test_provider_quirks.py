"""Every oddity of the table in ``tests/support/quirk_rows.py``, against a real server that has it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.adapters.agents.python import classify_exception
from agenteval.core.errors import AgentError, InfrastructureError
from tests.support.local_servers import plain_environment
from tests.support.model_bench import GOOD, Verdict
from tests.support.quirk_rows import ROWS
from tests.support.quirks import Row


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


@pytest.mark.parametrize("row", ROWS, ids=[f"{r.number} {r.who}: {r.quirk}, {r.server}" for r in ROWS])
def test_quirk(row: Row) -> None:
    seen = row.run()
    assert bool(seen.failure) is row.fails, seen.told
    assert row.then(seen), (seen.told, seen.asked[-1])
    if row.who == "model" and not row.fails:
        assert seen.answer == Verdict(**GOOD)
    sent = [json.dumps(asked) for asked in seen.asked]
    if not seen.waits and row.turns == 1:
        assert len(set(sent)) == len(sent), "a request was sent again unchanged"


def test_every_quirk_has_a_row() -> None:
    assert {row.number for row in ROWS} == set(range(1, 21))


# ── whose fault an exception of a Python agent is ────────────────────────────────────────────────


def raised_from(error: BaseException, *causes: BaseException) -> BaseException:
    for one, other in zip((error, *causes), causes, strict=False):
        one.__cause__ = other
    return error


def handled(error: BaseException, context: BaseException) -> BaseException:
    error.__context__ = context
    return error


REFUSED = ConnectionRefusedError("refused")
WHOSE: dict[str, tuple[BaseException, type[Exception]]] = {
    "a connection": (REFUSED, InfrastructureError),
    "raised from a connection": (raised_from(RuntimeError("x"), REFUSED), InfrastructureError),
    "raised from what was raised from one": (
        raised_from(RuntimeError("x"), KeyError("y"), REFUSED),
        InfrastructureError,
    ),
    "raised while one was handled": (handled(RuntimeError("x"), REFUSED), AgentError),
    "raised from another mistake": (raised_from(RuntimeError("x"), KeyError("y")), AgentError),
    "a group, one part of which is not": (
        ExceptionGroup("g", [raised_from(RuntimeError("x"), REFUSED), KeyError("y")]),  # type: ignore[list-item]
        AgentError,
    ),
    "raised from itself": (raised_from(itself := RuntimeError("x"), itself), AgentError),
}


@pytest.mark.parametrize(("error", "kind"), WHOSE.values(), ids=WHOSE)
def test_an_exception_that_was_raised_from_a_lost_connection(
    error: BaseException, kind: type[Exception]
) -> None:
    assert type(classify_exception(error)) is kind
