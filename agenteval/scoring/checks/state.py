"""``expect.state``: checks of the state of the tool world, at the end of a turn or of the conversation. Each
expectation of the list is a check of its own, named after its form: ``state.sql``, ``state.changed`` or
``state.same_as``.

A state that was not recorded, or that cannot be made again, leaves its checks undecided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenteval.core.errors import AuthorError, Mistake, ToolError
from agenteval.core.patterns import SearchTimeoutError
from agenteval.core.world_state import DELETED, StateExpectation
from agenteval.files.value_matching import find_matcher_mistakes
from agenteval.files.yaml_scalars import display_value
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule
from agenteval.scoring.checks.mocks import describe_foreign_answers
from agenteval.scoring.checks.state_queries import is_row

if TYPE_CHECKING:
    from agenteval.scoring.checks.recorded_state import RecordedState


def check_state(expected: Sequence[StateExpectation], seen: CheckInput) -> Sequence[CheckOutcome]:
    """Return an outcome for each expectation, about the state at the end of the last turn, even if the agent
    failed in it. While the conversation goes on there is none, because later turns may change the state."""
    if seen.is_ongoing:
        return ()
    from agenteval.scoring.checks.recorded_state import (  # SQLite, which most scenarios do not need
        UnknownStateError,
        open_recorded_state,
    )

    try:
        if what := _describe_unseen_changes(seen):
            raise UnknownStateError(what)
        turns = seen.all_turns
        state = open_recorded_state(seen.state, seen.end_state or (turns[-1].state if turns else None))
        outcomes = [_check(each, state, seen) for each in expected]
    except UnknownStateError as error:
        outcomes = [CheckOutcome(None, str(error))] * len(expected)
    return [
        outcome._replace(subject=each.kind, key_path=str(index))
        for index, (each, outcome) in enumerate(zip(expected, outcomes, strict=True))
    ]


def find_ruled_out_changes(expected: Sequence[StateExpectation], seen: CheckInput) -> Sequence[str]:
    """Describe the rows that changed although the expectations leave them as they are, whether or not
    anything else was done. A state that is not known shows none."""
    from agenteval.scoring.checks.recorded_state import UnknownStateError, open_recorded_state
    from agenteval.scoring.checks.state_changes import find_collateral
    from agenteval.scoring.checks.state_paths import find_rows_off_path

    found: list[str] = []
    try:
        if _describe_unseen_changes(seen):
            return ()
        turns = seen.all_turns
        state = open_recorded_state(seen.state, seen.end_state or (turns[-1].state if turns else None))
        for each in expected:
            if each.changed is not None:
                found += find_collateral(each.changed, state)
            elif each.same_as:
                found += find_rows_off_path(each.same_as, state, seen)
    except (UnknownStateError, AuthorError, ToolError, SearchTimeoutError):
        return ()
    return found


def _describe_unseen_changes(seen: CheckInput) -> str:
    """Describe calls that would have worked on the state if the agent's own code had not answered them. An
    exposed state was read from the file, in which the agent's own code works, too."""
    if seen.state is not None and seen.state.expose is not None:
        return ""
    over_state = {
        name
        for name, tool in seen.tools.items()
        if tool.calls_python or any(answer.sql for _, answer in tool.all_answers)
    }
    answered = (describe_foreign_answers(over_state, turn) for turn in seen.all_turns)
    return next(filter(None, answered), "")


def _check(expected: StateExpectation, state: RecordedState, seen: CheckInput) -> CheckOutcome:
    from agenteval.scoring.checks.state_changes import check_changed
    from agenteval.scoring.checks.state_paths import check_same_as
    from agenteval.scoring.checks.state_queries import check_query

    try:
        if expected.sql is not None:
            return check_query(expected, state)
        if expected.changed is not None:
            return check_changed(expected.changed, state)
        return check_same_as(expected.same_as or (), state, seen)
    except (AuthorError, ToolError, SearchTimeoutError) as error:
        return CheckOutcome(None, str(error))


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────

Path = tuple[str | int, ...]


def find_state_mistakes(written: Any) -> Iterator[Mistake]:
    """Yield the errors that can be found without the state."""
    for index, entry in enumerate(written if isinstance(written, list) else [written]):
        path: Path = (index,) if isinstance(written, list) else ()
        if isinstance(entry, Mapping):
            yield from _find_equals_mistakes(entry.get("equals"), (*path, "equals"))
            yield from _find_changed_mistakes(entry.get("changed"), (*path, "changed"))
            yield from _find_call_mistakes(entry.get("same_as"), (*path, "same_as"))


def _find_equals_mistakes(equals: Any, path: Path) -> Iterator[Mistake]:
    yield from find_matcher_mistakes(equals, path)
    items = enumerate(equals) if isinstance(equals, list) else ()
    for below, row in [(path, equals), *(((*path, at), item) for at, item in items)]:
        if row == {}:
            yield Mistake("an empty row names no column", "use `{column: value}`, or `empty: true`", below)
    if isinstance(equals, list) and len({is_row(item) for item in equals}) > 1:
        remedy = "write every item as {column: value}, or every item as a value"
        yield Mistake("`equals` lists rows and values", remedy, path)


def _find_changed_mistakes(changed: Any, path: Path) -> Iterator[Mistake]:
    for table, rows in changed.items() if isinstance(changed, Mapping) else ():
        for index, row in enumerate(rows if isinstance(rows, list) else ()):
            if isinstance(row, Mapping):
                yield from _find_row_mistakes(row, (*path, table, index))


def _find_row_mistakes(row: Mapping[str, Any], path: Path) -> Iterator[Mistake]:
    columns = {name: value for name, value in row.items() if name != DELETED}
    if not columns:
        yield Mistake("the row names no column", "use, for example, `{id: 7}`", path)
    yield from find_matcher_mistakes(columns, path)
    if row.get(DELETED, True) is not True:
        what = f"{DELETED}: expected true, got {display_value(row[DELETED])}"
        yield Mistake(what, f"use `{DELETED}: true`, or remove it", (*path, DELETED))


def _find_call_mistakes(calls: Any, path: Path) -> Iterator[Mistake]:
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        if isinstance(call, Mapping):
            for below in _reserved_paths(call.get("args")):
                what = f"a call has values, but '{below[-1]}' is a matcher"
                yield Mistake(what, "write the value itself", (*path, index, "args", *below))


def _reserved_paths(value: Any) -> Iterator[Path]:
    """Yield the paths of the keys that are reserved for matchers."""
    items = (
        value.items() if isinstance(value, Mapping) else enumerate(value if isinstance(value, list) else ())
    )
    for key, item in items:
        if str(key).startswith("$"):
            yield (key,)
        else:
            yield from ((key, *below) for below in _reserved_paths(item))


STATE = (CheckRule("state", decide_each=check_state, find_mistakes=find_state_mistakes),)
