"""The entries of a log: what was logged, where an importer changed it."""

from __future__ import annotations

from agenteval.messages.log_entry import Record, UnreadableRecord


def test_what_was_logged_is_the_value_if_no_importer_changed_it() -> None:
    assert Record({"a": 1}, "log:1").as_logged == {"a": 1}
    assert Record({"a": 1}, "log:1", logged={"b": 2}).as_logged == {"b": 2}
    assert Record({"a": 1}, "log:1", logged=None).as_logged is None  # a line that is `null`


def test_an_unreadable_record_hides_nothing_else() -> None:
    assert not UnreadableRecord("log:1", "is not JSON").hides_rest
