"""At whose door an exception of the agent's code is laid."""

from __future__ import annotations

import pytest

from agenteval.agentside.targets.faults import classify_error


def caused(error: Exception, by: Exception) -> Exception:
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("x"), "exception"),
        (ConnectionRefusedError("x"), "infrastructure"),
        (caused(RuntimeError("x"), ConnectionRefusedError("y")), "infrastructure"),
        (caused(RuntimeError("x"), ValueError("y")), "exception"),
        (ExceptionGroup("", [ConnectionRefusedError("x"), ConnectionResetError("y")]), "infrastructure"),
        (ExceptionGroup("", [ConnectionRefusedError("x"), ValueError("y")]), "exception"),
        (ExceptionGroup("", [ExceptionGroup("", [ValueError("y")])]), "exception"),
    ],
)
def test_an_exception_is_the_agents_unless_all_of_it_is_the_networks(error: Exception, kind: str) -> None:
    assert classify_error(error).kind == kind


def test_an_error_that_was_only_being_handled_is_no_cause() -> None:
    error = ValueError("x")
    error.__context__ = ConnectionRefusedError("y")
    assert classify_error(error).kind == "exception"
