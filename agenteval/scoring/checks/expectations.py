"""Runs the code checks (deterministic assertions) that ``expect`` and the short form request for a turn and
for the whole conversation.

Each rule in ``agenteval.scoring.checks`` produces one ``Check``, or one for each entry of a list, whose
``detail`` shows the expected and the actual values. In addition, every conversation is checked for
``no_error`` and ``answer``. A judge evaluates ``criteria``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from agenteval.core.excerpts import excerpt, is_blank
from agenteval.core.patterns import SearchTimeoutError, run_in_thread_if_slow
from agenteval.core.plurals import plural
from agenteval.core.reasoning import blank_reasoning
from agenteval.core.scenario import Expectation, Scenario
from agenteval.core.score import Check
from agenteval.core.tool_visibility import mark_absence_based, unplaced_text
from agenteval.core.trajectory import StopReason, ToolVisibility, Trajectory, Turn
from agenteval.core.value import copy_with
from agenteval.core.world_state import ReferenceState, StateChanges
from agenteval.scoring.checks import RULES
from agenteval.scoring.checks.calls import TOOL_CALLS, check_tool_calls
from agenteval.scoring.checks.check_rule import CheckInput, CheckOutcome, CheckRule, quote_texts
from agenteval.scoring.checks.mocks import MOCKS, check_mocks
from agenteval.scoring.checks.output import check_contains

_KEEPING_CALLS = ("infrastructure", "budget", "interrupted")
"""Faults that the agent did not cause and that do not invalidate the calls recorded before them."""
_CHECK = Check(name="", passed=None, detail="", where="", parts=())


class TurnExpectations:
    """The checks for the last turn of a prefix, including a turn in which the agent failed.

    ``timeout_s`` limits each call to the author's own code. If ``recorded`` is true, the conversation is from
    a log, and its answer may be content that could not be interpreted. In a run, the agent must give a
    readable answer."""

    scope: Final = "turn"

    def __init__(self, timeout_s: float = 60.0, *, recorded: bool = False) -> None:
        self._timeout_s = timeout_s
        self._recorded = recorded

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Check]:
        if trajectory.stop:
            return await run_in_thread_if_slow(broken_turn_checks, scenario, trajectory)
        if not trajectory.turns:
            return ()
        *before, turn = trajectory.turns
        turn = turn.without_uncertain_calls
        expect = scenario.turn_expectation(turn)
        observed = _is_fully_seen(trajectory, (turn,))
        checks = await run_in_thread_if_slow(
            turn_checks, scenario, turn, before, observed, self._recorded, trajectory.references
        )
        if expect is None:
            return checks
        factory = _CheckFactory(scenario, f"turns.{turn.script}.expect", observed=observed)
        seen = CheckInput((turn,), before=before)
        return (*checks, *await _run_author_checks(expect, seen, factory, self._timeout_s))


class ConversationExpectations:
    """The checks for a whole conversation. ``timeout_s`` limits each call to the author's own code."""

    scope: Final = "conversation"

    def __init__(self, timeout_s: float = 60.0) -> None:
        self._timeout_s = timeout_s

    async def __call__(self, scenario: Scenario, trajectory: Trajectory) -> Sequence[Check]:
        checks = await run_in_thread_if_slow(conversation_checks, scenario, trajectory)
        if (trajectory.stop and trajectory.stop.fault) or not any(_author_rules(scenario.expect)):
            return checks
        factory = _CheckFactory(scenario, "expect", observed=trajectory.all_calls_seen)
        seen = CheckInput(trajectory.turns)
        return (*checks, *await _run_author_checks(scenario.expect, seen, factory, self._timeout_s))


def turn_checks(
    scenario: Scenario,
    turn: Turn,
    before: Sequence[Turn] = (),
    observed: bool = True,
    recorded: bool = False,
    references: Sequence[ReferenceState] = (),
) -> tuple[Check, ...]:
    """Return the checks for one finished turn: ``answer``, which is always checked, and the checks requested
    by the turn's entry in ``turns``.

    ``observed`` is true if, by then, all calls in the turn are known to have been observed. ``references``
    are those of the trajectory."""
    expect = scenario.turn_expectation(turn)
    place = "expect" if turn.script is None else f"turns.{turn.script}.expect"
    factory = _CheckFactory(scenario, place, observed=observed)
    always = [
        _turn_answer(scenario, turn, factory, recorded=recorded),
        *_mock_checks(scenario, turn, factory),
    ]
    if expect is None:
        return tuple(always)
    seen = _input(scenario, (turn,), before=before, references=references)
    return (*always, *_run_rules(expect, seen, factory))


def _mock_checks(scenario: Scenario, turn: Turn, factory: _CheckFactory) -> Iterator[Check]:
    """Yield a check only if it is uncertain whether the agent used the author's mocks."""
    if outcome := check_mocks(scenario.tools, turn):
        yield factory.from_outcome(MOCKS, outcome, path="tools")


def broken_turn_checks(scenario: Scenario, trajectory: Trajectory) -> tuple[Check, ...]:
    """Return the checks that failed definitively in the turn in which the agent failed, and the checks that
    errored.

    Definitive failures, such as a forbidden call, could not have been undone later in the turn. The turn is
    no longer required to contain an answer or a further call."""
    stop, turn = trajectory.stop, trajectory.unfinished
    expect = scenario.turn_expectation(turn) if turn else None
    if stop is None or stop.fault not in ("agent", *_KEEPING_CALLS) or turn is None or expect is None:
        return ()
    rules = [rule for rule in RULES if not rule.needs_answers] if stop.fault == "agent" else TOOL_CALLS
    turn = turn.without_uncertain_calls
    observed = _is_fully_seen(trajectory, (turn,))
    factory = _CheckFactory(scenario, f"turns.{turn.script}.expect", observed=observed)
    cut = _input(scenario, (), turn, before=trajectory.turns, is_ongoing=True)
    return tuple(_broken_for_good(rules, expect, cut, factory))


def conversation_checks(scenario: Scenario, trajectory: Trajectory) -> tuple[Check, ...]:
    """Return the checks for a whole conversation.

    If a fault that the agent did not cause ended the conversation, return only the definitive failures in the
    finished turns, and the checks of the calls in an errored turn. If the agent itself failed, its answers
    are treated in the same way, but the agent's failure is judged, as are the calls and costs up to that
    point."""
    fault = trajectory.stop.fault if trajectory.stop else None
    observed = trajectory.all_calls_seen
    broke, factory = fault == "agent", _CheckFactory(scenario, "expect", observed=observed, whole=True)
    cut = _input(scenario, trajectory.turns, is_ongoing=True)
    if fault is not None and not broke:
        lost = trajectory.unfinished if fault in _KEEPING_CALLS else None
        called = _input(scenario, trajectory.turns, lost, is_ongoing=True)
        others = [rule for rule in RULES if rule not in TOOL_CALLS]
        return (
            *_broken_for_good(TOOL_CALLS, scenario.expect, called, factory),
            *_broken_for_good(others, scenario.expect, cut, factory),
        )
    seen = build_check_input(scenario, trajectory)
    of_answers = [rule for rule in RULES if rule.needs_answers] if broke else []
    return (
        _no_error(trajectory, factory, broke=broke),
        *(() if broke else (_answers_check(scenario, trajectory, factory),)),
        *_run_rules(scenario.expect, seen, factory, [rule for rule in RULES if rule not in of_answers]),
        *_broken_for_good(of_answers, scenario.expect, cut, factory),
        *_case_checks(scenario, seen, broke=broke, observed=observed),
    )


def _input(
    scenario: Scenario,
    turns: Sequence[Turn],
    unfinished: Turn | None = None,
    *,
    before: Sequence[Turn] = (),
    is_ongoing: bool = False,
    references: Sequence[ReferenceState] = (),
    end_state: StateChanges | None = None,
) -> CheckInput:
    return CheckInput(
        turns,
        unfinished,
        before,
        scenario.history_turns,
        is_ongoing=is_ongoing,
        state=scenario.state,
        end_state=end_state,
        tools=scenario.tools,
        user_tools=scenario.user_tools,
        references=references,
    )


def build_check_input(scenario: Scenario, trajectory: Trajectory) -> CheckInput:
    """Return the input of the rules about a whole conversation."""
    return _input(
        scenario,
        trajectory.turns,
        trajectory.unfinished,
        references=trajectory.references,
        end_state=trajectory.end_state,
    )


def _is_fully_seen(trajectory: Trajectory, turns: Iterable[Turn]) -> bool:
    return trajectory.visibility is ToolVisibility.ALL and not any(turn.unplaced for turn in turns)


def _broken_for_good(
    rules: Iterable[CheckRule], expect: Expectation, cut: CheckInput, factory: _CheckFactory
) -> Iterator[Check]:
    """Yield the failures that no further turn could have undone."""
    for rule, outcome in _outcomes(rules, expect, cut):
        if outcome.passed is False and outcome.is_lasting:
            yield factory.from_outcome(rule.name, outcome)


def _run_rules(
    expect: Expectation, seen: CheckInput, factory: _CheckFactory, rules: Iterable[CheckRule] = RULES
) -> Iterator[Check]:
    for rule, outcome in _outcomes(rules, expect, seen):
        yield factory.from_outcome(rule.name, outcome)


def _outcomes(
    rules: Iterable[CheckRule], expect: Expectation, seen: CheckInput
) -> Iterator[tuple[CheckRule, CheckOutcome]]:
    for rule in rules:
        expected = rule.get_expected(expect)
        if expected is None:
            continue
        try:
            yield from ((rule, outcome) for outcome in rule.decide_all(expected, seen))
        except SearchTimeoutError as endless:
            yield rule, CheckOutcome(None, str(endless))


async def _run_author_checks(
    expect: Expectation, seen: CheckInput, factory: _CheckFactory, timeout_s: float
) -> Sequence[Check]:
    """Run the author's own code and return its checks."""
    scenario, checks = factory.scenario, []
    seen = replace(
        seen, scenario=scenario.id, base=scenario.base, observed=factory.observed, timeout_s=timeout_s
    )
    for rule, expected in _author_rules(expect):
        assert rule.evaluate_async
        outcomes = enumerate(await rule.evaluate_async(expected, seen))
        checks += [factory.from_outcome(rule.name, outcome, below=f".{index}") for index, outcome in outcomes]
    return checks


def _author_rules(expect: Expectation) -> Iterator[tuple[CheckRule, Any]]:
    return (
        (rule, expected)
        for rule in RULES
        if rule.evaluate_async and (expected := rule.get_expected(expect)) is not None
    )


class _CheckFactory:
    """Creates checks that contain the line of their rule.

    If ``observed`` is true, the agent's calls were observed. If ``whole`` is true, the checks apply to a
    whole conversation and therefore name the turn in which they failed."""

    def __init__(self, scenario: Scenario, prefix: str, *, observed: bool, whole: bool = False) -> None:
        self.scenario, self.observed = scenario, observed
        self._prefix, self._whole = prefix, whole

    def from_outcome(
        self, name: str, outcome: CheckOutcome, *, path: str | None = None, below: str = ""
    ) -> Check:
        """Create a check from an outcome.

        ``path`` is the location of the rule if the rule's name does not indicate it; ``below`` is the key
        below that location."""
        passed, detail, parts, *_ = outcome
        below = below or (f".{outcome.key_path}" if outcome.key_path and path is None else "")
        path = f"{self._prefix}.{name}{below}" if below else path
        full = f"{name}.{outcome.subject}" if outcome.subject else name
        check = self.check(full, passed, detail, path=path, parts=parts)
        if self._whole and passed is False and outcome.turn is not None:
            check = copy_with(check, {"turn": outcome.turn})
        return mark_absence_based(check) if outcome.is_by_absence and not self.observed else check

    def check(
        self,
        name: str,
        passed: bool | None,
        detail: str,
        *,
        path: str | None = None,
        parts: Iterable[str] = (),
    ) -> Check:
        where = self.scenario.where(f"{self._prefix}.{name}" if path is None else path)
        values = {"name": name, "passed": passed, "detail": detail, "where": where, "parts": tuple(parts)}
        return copy_with(_CHECK, values)


def _no_error(trajectory: Trajectory, factory: _CheckFactory, *, broke: bool) -> Check:
    stop = trajectory.stop
    if stop is None or not broke:
        return factory.check("no_error", True, "the agent did not fail", path="")
    detail = f"turn {trajectory.broken_turn + 1}: {stop.reason}: {stop.detail}".removesuffix(": ")
    return factory.check("no_error", False, detail, path="", parts=[stop.cause])


def _may_be_empty(scenario: Scenario, turn: Turn) -> bool:
    """Check whether the answer may be empty. The turn's own entry takes precedence over the scenario."""
    expect = scenario.turn_expectation(turn)
    allowed = expect.allow_empty if expect else None
    return bool(scenario.expect.allow_empty if allowed is None else allowed)


def _turn_answer(scenario: Scenario, turn: Turn, factory: _CheckFactory, *, recorded: bool) -> Check:
    if not is_blank(blank_reasoning(turn.answer)):
        return factory.check("answer", True, f"answered {excerpt(turn.answer, 80)}")
    if _may_be_empty(scenario, turn):
        return factory.check("answer", True, "the final answer is empty, which `allow_empty` permits")
    if recorded and _may_have_answered(turn):
        return factory.check(
            "answer", None, f"no answer was recognized; not fully seen: {unplaced_text((turn,))}"
        )
    after = f" after {plural(len(turn.tool_calls), 'tool call')}" if turn.tool_calls else ""
    what = "is empty" if is_blank(turn.answer) else "contains only the model's reasoning"
    return factory.check(
        "answer", False, f"the final answer {what}{after} (`allow_empty: true` would permit it)"
    )


def _may_have_answered(turn: Turn) -> bool:
    """Check whether content that could not be interpreted may be the answer. This is possible only if no
    text, not even an empty text, was read."""
    was_read = bool(turn.steps) and turn.steps[-1].text is not None and not turn.steps[-1].tool_calls
    return bool(turn.unplaced) and not was_read


def _answers_check(scenario: Scenario, trajectory: Trajectory, factory: _CheckFactory) -> Check:
    turns = trajectory.turns
    if not turns:
        return factory.check("answer", None, "there were no turns, so there is no answer")
    empty = [n for n, turn in enumerate(turns, 1) if is_blank(blank_reasoning(turn.answer))]
    missing = [n for n in empty if not _may_be_empty(scenario, turns[n - 1])]
    is_log = trajectory.stop is not None and trajectory.stop.reason is StopReason.RECORDED
    failed = [n for n in missing if not (is_log and _may_have_answered(turns[n - 1]))]
    if missing and not failed:
        unread = [turns[n - 1] for n in missing]
        what = (
            f"no answer was recognized in turn {_format_numbers(missing)}; not fully seen:"
            f" {unplaced_text(unread)}"
        )
        return factory.check("answer", None, what)
    if failed:
        return factory.check("answer", False, f"the final answer is empty in turn {_format_numbers(failed)}")
    permitted = f"; empty in turn {_format_numbers(empty)}, which `allow_empty` permits" if empty else ""
    return factory.check(
        "answer", True, f"{len(turns) - len(empty)} of {plural(len(turns), 'turn')} answered{permitted}"
    )


def _case_checks(scenario: Scenario, seen: CheckInput, *, broke: bool, observed: bool) -> Iterator[Check]:
    """Yield the checks that the short form requests: each tool is called at least once (or no tool is
    called), and the final answer contains each keyword."""
    if scenario.case is None:
        return
    factory = _CheckFactory(scenario, "", observed=observed, whole=True)
    if expected := scenario.case.tool_calls:
        yield factory.from_outcome("tool_calls", check_tool_calls(expected, seen), path="expected_tools")
    if needles := scenario.case.keywords:
        path = "expected_output_contains"
        if broke or not seen.turns:
            detail = f"no answer; expected {quote_texts(needles)}"
            yield factory.check("output.contains", False, detail, path=path, parts=needles)
        else:
            yield factory.from_outcome(
                "output.contains", check_contains(needles, CheckInput(seen.turns[-1:])), path=path
            )


def _format_numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))
