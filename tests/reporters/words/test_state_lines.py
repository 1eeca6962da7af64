"""How a turn changed the state, in words."""

from __future__ import annotations

from typing import Any

from agenteval.core.world_state import RowChange, StateChanges
from agenteval.reporters.words.state_lines import state_lines

NEW, PAID = {"id": "A", "status": "new", "n": 1}, {"id": "A", "status": "paid", "n": 1}


def changes(*rows: tuple[int, Any, Any], **more: Any) -> StateChanges:
    listed = tuple(RowChange(identity=(rowid,), before=before, after=after) for rowid, before, after in rows)
    return StateChanges(tables={"orders": listed} if listed else {}, **more)


def test_what_a_turn_changed() -> None:
    assert list(state_lines(None, changes((1, NEW, PAID)))) == ['orders "A": status "new" → "paid"']
    assert list(state_lines(changes((1, NEW, PAID)), changes((1, NEW, PAID)))) == []


def test_rows_that_came_and_went() -> None:
    assert list(state_lines(None, changes((1, NEW, None), (2, None, {"n": 2})))) == [
        'orders - {"id": "A", "status": "new", "n": 1}',
        'orders + {"n": 2}',
    ]


def test_what_a_turn_undid() -> None:
    assert list(state_lines(changes((1, NEW, PAID)), changes())) == ['orders "A": status "paid" → "new"']
    assert list(state_lines(changes((1, None, NEW)), changes())) == [
        'orders - {"id": "A", "status": "new", "n": 1}'
    ]


def test_a_row_without_an_id() -> None:
    assert list(state_lines(None, changes((1, {"a": 1}, {"a": 2})))) == ["orders a 1 → 2"]


def test_many_rows() -> None:
    many = changes(*((number, None, {"id": number}) for number in range(25)), is_complete=False)
    *_, more, unknown = state_lines(None, many)
    assert (more, unknown) == ("… and 5 more rows", "… and more changes than are recorded")


def test_nothing_where_there_is_no_state() -> None:
    assert list(state_lines(None, None)) == []
