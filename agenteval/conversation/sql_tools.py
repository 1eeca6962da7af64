"""Answers calls to tools that are written in SQL, over the state of the sample's tool world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval.conversation.tools import (
    MissingColumnError,
    SqlCall,
    error_result,
    fill_mock_template,
    refused_result,
)
from agenteval.core.errors import AuthorError, Problem, did_you_mean
from agenteval.core.trajectory import ToolResult
from agenteval.world.connections import SqlCallError
from agenteval.world.database import SqlAnswer, WorldDatabase, WorldTransaction
from agenteval.world.statements import prepare_statements


def answer_sql_call(database: WorldDatabase, call: SqlCall, *, is_undone: bool = False) -> ToolResult:
    """Run the statements of a call in one transaction, and return its result. A call that fails, or that is
    answered by ``none: {error: …}``, changes nothing. Neither does one that ``is_undone``."""
    try:
        with database.transaction(call.tool) as transaction:
            result = _answer(transaction, database, call)
            if is_undone:
                transaction.rollback()
            return result
    except SqlCallError as error:
        return error_result(str(error))


def only_reads(database: WorldDatabase, call: SqlCall) -> bool:
    """Check whether no statement of a call can change anything."""
    return all(each.is_query for each in prepare_statements(call.answer.sql or (), database.start))


def _answer(transaction: WorldTransaction, database: WorldDatabase, call: SqlCall) -> ToolResult:
    step, args = call.answer, call.args
    found = transaction.call(prepare_statements(step.sql or (), database.start), args)
    first = _first_row(found)
    try:
        if first is None and step.none is not None:
            if step.none.error is not None:
                transaction.rollback()
                return error_result(str(fill_mock_template(step.none.error, args)))
            return ToolResult(value=fill_mock_template(step.none.returns, args))
        if "returns" in step.model_fields_set:
            return ToolResult(value=fill_mock_template(step.returns, args, first))
    except MissingColumnError as missing:
        what = f"tool '{call.tool}': `${{result.{missing.args[0]}}}` names no column of the result"
        raise AuthorError(Problem(what, did_you_mean(missing.args[0], first or ()))) from None
    except KeyError as missing:
        transaction.rollback()
        return refused_result(f"wrong arguments: '{missing.args[0]}' is missing")
    if not found.has_rows:
        return ToolResult(value={"changed": found.changed})
    return ToolResult(value=first if step.one else found.rows)


def _first_row(found: SqlAnswer) -> Mapping[str, Any] | None:
    """Return the first row, an empty one for a statement that changed something without returning rows, or
    ``None`` if no row was found or changed."""
    if found.has_rows:
        return found.rows[0] if found.rows else None
    return {} if found.changed else None
