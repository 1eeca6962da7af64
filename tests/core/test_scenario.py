"""What an author may write in a scenario, and what each form of it means."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from agenteval.core.scenario import (
    Belief,
    CallPattern,
    CaseSpec,
    EpochRange,
    Expectation,
    ExpectedCall,
    ForbiddenCall,
    Limits,
    MatchMode,
    RowsSpec,
    SampleKey,
    Scenario,
    ScriptedTurn,
    SharedTools,
    SimulatedTurns,
    ThresholdRule,
    Tool,
    ToolCallsExpectation,
    ToolStep,
    compact_threshold,
    expand_threshold,
    has_expectation,
    sample_seed,
)
from agenteval.core.trajectory import Turn
from agenteval.core.value import Value


def refused(model: type[Value], value: Any) -> str:
    with pytest.raises(ValidationError) as error:
        model.model_validate(value)
    return str(error.value)


def written(**fields: Any) -> Scenario:
    return Scenario.model_validate({"id": "s", **fields})


# ── calls ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fields", "expected", "forbidden"),
    [
        ({}, "ignore", "ignore"),
        ({"args": {}}, "exact", "partial"),
        ({"args": {"a": 1}}, "exact", "partial"),
        ({"args": {"a": 1}, "args_match": "exact"}, "exact", "exact"),
        ({"args": {"a": 1}, "args_match": "partial"}, "partial", "partial"),
        ({"args": {"a": 1}, "args_match": "ignore"}, "ignore", "ignore"),
        ({"args_match": "ignore"}, "ignore", "ignore"),
    ],
)
def test_how_arguments_are_compared(fields: dict[str, Any], expected: str, forbidden: str) -> None:
    call = {"name": "cancel", **fields}
    assert ExpectedCall.model_validate(call).mode == expected
    assert ForbiddenCall.model_validate(call).mode == forbidden


@pytest.mark.parametrize("mode", ["exact", "partial"])
def test_a_comparison_needs_arguments(mode: str) -> None:
    assert "`args`" in refused(CallPattern, {"name": "cancel", "args_match": mode})


def test_the_result_of_a_call() -> None:
    assert CallPattern(name="f").wanted_result is None
    assert ExpectedCall(name="f").wanted_result is None
    assert ExpectedCall(name="f", result="error").wanted_result == "error"
    assert refused(ExpectedCall, {"name": "f", "result": "failed"})
    assert refused(ForbiddenCall, {"name": "f", "result": "ok"})


@pytest.mark.parametrize(
    ("times", "usual", "within"),
    [
        (None, (1, 1), (0, None)),
        (1, (1, 1), (1, 1)),
        (3, (3, 3), (3, 3)),
        ({"at_least": 0}, (0, None), (0, None)),
        ({"at_least": 2}, (2, None), (2, None)),
        ({"at_most": 2}, (1, 2), (0, 2)),
        ({"at_least": 2, "at_most": 2}, (2, 2), (2, 2)),
    ],
)
def test_how_many_calls_match(times: Any, usual: Any, within: Any) -> None:
    call = ExpectedCall.model_validate({"name": "f", "times": times})
    for mode in MatchMode:
        assert call.bounds(mode) == (within if mode is MatchMode.WITHIN else usual)


@pytest.mark.parametrize(
    ("times", "word"),
    [
        (0, "forbidden"),
        (-1, "1"),
        (True, "times"),
        (1.5, "times"),
        ({}, "at_least"),
        ({"at_most": 0}, "forbidden"),
        ({"at_least": -1}, "at_least"),
        ({"at_least": 3, "at_most": 2}, "swap"),
    ],
)
def test_numbers_of_calls_that_make_no_sense(times: Any, word: str) -> None:
    assert word in refused(ExpectedCall, {"name": "f", "times": times})


F, OPTIONAL = {"name": "f"}, {"name": "f", "times": {"at_least": 0}}


@pytest.mark.parametrize(
    ("value", "alternatives", "names"),
    [
        ("none", 1, []),
        ({"calls": [F]}, 1, ["f"]),
        ({"match": "strict", "calls": []}, 1, []),
        ({"forbidden": [F]}, 0, []),
        ({"calls": [], "forbidden": [F]}, 0, []),
        ({"match": "within", "calls": [], "forbidden": [F]}, 0, []),
        ({"match": "strict", "calls": [], "forbidden": [F]}, 1, []),
        ({"calls": [F], "forbidden": [{"name": "g"}]}, 1, ["f"]),
        ({"any_of": [{"calls": [F]}, {"calls": [{"name": "g"}, F]}]}, 2, ["f", "g", "f"]),
        ({"any_of": ["none", {"calls": [F]}]}, 2, ["f"]),
        ({"match": "within", "calls": [OPTIONAL]}, 1, ["f"]),
        ({"calls": [{"name": "f", "times": {"at_least": 0, "at_most": 2}}]}, 1, ["f"]),
    ],
)
def test_expected_calls(value: Any, alternatives: int, names: list[str]) -> None:
    found = Expectation.model_validate({"tool_calls": value}).tool_calls
    assert found
    assert len(found.alternatives) == alternatives
    assert [call.name for call in found.expected_calls] == names


def test_no_call_at_all() -> None:
    found = Expectation.model_validate({"tool_calls": "none"}).tool_calls
    assert found == ToolCallsExpectation(match=MatchMode.STRICT, calls=())


@pytest.mark.parametrize(
    ("mode", "is_closed", "is_ordered"),
    [
        ("strict", True, True),
        ("unordered", True, False),
        ("within", True, False),
        ("in_order", False, True),
        ("contains", False, False),
    ],
)
def test_what_a_mode_leaves_open(mode: str, is_closed: bool, is_ordered: bool) -> None:
    found = ToolCallsExpectation.model_validate({"match": mode, "calls": [F]})
    assert (found.is_closed, found.is_ordered) == (is_closed, is_ordered)


@pytest.mark.parametrize(
    ("value", "word"),
    [
        ({}, "nothing is checked"),
        ({"match": "strict"}, "nothing is checked"),
        ({"calls": []}, "empty list"),
        ({"match": "within", "calls": []}, "empty list"),
        ({"calls": [OPTIONAL]}, "at_least: 0"),
        ({"calls": "none"}, "list"),
        ({"any_of": []}, "empty list"),
        ({"any_of": [{"calls": [F]}], "calls": [F]}, "`calls`"),
        ({"any_of": [{"calls": [F]}], "match": "strict"}, "`match`"),
        ({"any_of": [{"match": "strict"}]}, "`calls` is missing"),
        ({"any_of": [{"calls": []}]}, "empty list"),
        ({"any_of": [{"calls": [F], "forbidden": [F]}]}, "forbidden"),
        (" None ", "`none`"),
        ("NONE", "`none`"),
        ("nothing", "tool_calls"),
    ],
)
def test_expected_calls_that_check_nothing(value: Any, word: str) -> None:
    assert word in refused(Expectation, {"tool_calls": value})


# ── expectations ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("expect", "vacuous"),
    [
        ({}, True),
        ({"allow_empty": True}, True),
        ({"output": {}}, True),
        ({"output": {"contains": []}}, True),
        ({"output": {"json_schema": {}}}, True),
        ({"output": {"contains": ["a"]}}, False),
        ({"output": {"json": {"a": None}}}, False),
        ({"limits": {}}, True),
        ({"limits": {"steps": 0}}, False),
        ({"tool_calls": "none"}, False),
        ({"criteria": ["It is polite."]}, False),
        ({"agents": []}, True),
        ({"python": ["a.py:b"]}, False),
    ],
)
def test_whether_anything_is_checked(expect: Any, vacuous: bool) -> None:
    found = Expectation.model_validate(expect)
    assert found.is_vacuous is vacuous
    assert has_expectation(found) is (not vacuous or "allow_empty" in expect)


@pytest.mark.parametrize("name", ["steps", "tool_calls", "tokens", "latency_ms"])
def test_limits_may_be_zero(name: str) -> None:
    assert getattr(Limits.model_validate({name: 0}), name) == 0
    assert refused(Limits, {name: -1})
    assert getattr(Limits(), name) is None


# ── turns ────────────────────────────────────────────────────────────────────────────────────────

SCRIPTED = {"user": "Hi", "expect": {"criteria": ["one"]}}


@pytest.mark.parametrize(
    ("turns", "is_scripted", "has_several"),
    [
        (None, False, True),
        ([], True, False),
        (["Hi"], True, False),
        ([SCRIPTED], True, False),
        (["Hi", "Bye"], True, True),
        (["Hi", {"simulate": 1}], False, True),
        ([{"simulate": 1}], False, True),
    ],
)
def test_who_writes_the_turns(turns: Any, is_scripted: bool, has_several: bool) -> None:
    scenario = written(turns=turns)
    assert (scenario.is_scripted, scenario.has_several_turns) == (is_scripted, has_several)


def test_a_turn_in_short() -> None:
    scenario = written(turns=["Hi", {"simulate": 2}, SCRIPTED])
    assert scenario.turns
    assert scenario.turns[:2] == (ScriptedTurn(user="Hi"), SimulatedTurns(simulate=2))
    assert refused(Scenario, {"turns": [{"simulate": 0}]})
    assert refused(Scenario, {"turns": [{"user": "Hi", "simulate": 1}]})


def test_expectations_of_turns_and_of_the_whole() -> None:
    scenario = written(
        turns=["Hi", {"simulate": 2}, SCRIPTED],
        expect={"criteria": ["two"], "tool_calls": {"calls": [F], "forbidden": [{"name": "g"}]}},
        tools={"h": {"returns": 1}},
    )
    assert [path for path, _ in scenario.expectations] == ["turns.0.expect", "turns.2.expect", "expect"]
    assert scenario.all_criteria == ("one", "two")
    assert scenario.tools_named == {"f", "g", "h"}
    assert written().expectations == (("expect", Expectation()),)
    asked = [scenario.turn_expectation(Turn(user="Hi", script=at)) for at in (None, 0, 1, 2)]
    assert [each and each.criteria for each in asked] == [None, (), None, ("one",)]
    assert written().turn_expectation(Turn(user="Hi", script=0)) is None


@pytest.mark.parametrize(
    ("path", "where"),
    [
        ("", "a/b.yaml:3"),
        ("expect", "a/b.yaml:5"),
        ("expect.output.contains", "a/b.yaml:7"),
        ("expect.output.contains.0", "a/b.yaml:7"),
        ("expect.output", "a/b.yaml:5"),
        ("tools.f.returns", "shared.yaml:9"),
        ("goal", "a/b.yaml:3"),
    ],
)
def test_where_a_key_was_written(path: str, where: str) -> None:
    lines = {"expect": 5, "expect.output.contains": 7, "tools.f": "shared.yaml:9"}
    assert written(source="a/b.yaml:3", lines=lines).where(path) == where


# ── tools ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tool", "is_mocked", "is_marked"),
    [
        ({}, False, False),
        ({"description": "x", "parameters": {}}, False, False),
        ({"returns": None}, True, False),
        ({"error": "boom"}, True, False),
        ({"sequence": [{"returns": 1}, {"error": "boom"}]}, True, False),
        ({"python": "a.py:b", "writes": True}, True, True),
        ({"reads": True}, False, True),
        ({"destructive": True}, False, True),
        ({"writes": True, "destructive": True}, False, True),
    ],
)
def test_the_answer_and_the_mark_of_a_tool(tool: Any, is_mocked: bool, is_marked: bool) -> None:
    found = Tool.model_validate(tool)
    assert (found.is_mocked, found.is_marked) == (is_mocked, is_marked)
    answers = found.model_dump().keys() & {"returns", "error", "sequence", "python"}
    assert answers == tool.keys() & {"returns", "error", "sequence", "python"}
    assert Tool.model_validate(found.model_dump()).is_mocked is is_mocked


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ({"returns": None, "error": "x"}, ("returns", "error")),
        ({"python": "a.py:b", "sequence": [{"returns": 1}]}, ("sequence", "python")),
        ({"sequence": []}, ("sequence",)),
        ({"sequence": [{}]}, ("returns", "error")),
        ({"sequence": [{"returns": 1, "error": "x"}]}, ("returns", "error")),
        ({"reads": True, "writes": True}, ("reads", "writes")),
        ({"reads": True, "destructive": True}, ("reads", "destructive")),
    ],
)
def test_a_tool_with_two_answers_or_marks(tool: Any, words: tuple[str, ...]) -> None:
    text = refused(Tool, tool)
    assert all(word in text for word in words)


def test_null_is_an_answer() -> None:
    assert ToolStep(returns=None).model_dump() == {"returns": None}
    assert ToolStep(error="x").model_dump() == {"error": "x"}
    assert refused(ToolStep, {})


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "numbers"),
    [
        ({"at_least": 3.5}, (3.5,)),
        ({"min": 2}, (2,)),
        ({"share_below": {2: 0.1, 3: 0}}, (2, 3)),
        ({"share_below": {2: 0.1}, "min": 1, "at_least": 3}, (3, 1, 2)),
        ({"at_least": 0}, (0,)),
    ],
)
def test_thresholds(rule: Any, numbers: tuple[float, ...]) -> None:
    found = ThresholdRule.model_validate(rule)
    assert found.numbers == numbers
    is_short = rule.keys() == {"at_least"}
    assert compact_threshold(found) == (rule["at_least"] if is_short else found)
    assert expand_threshold(compact_threshold(found)) == found


@pytest.mark.parametrize(
    "rule", [{}, {"share_below": {}}, {"share_below": {2: 1}}, {"share_below": {2: -0.1}}, {"other": 1}]
)
def test_thresholds_that_bound_nothing(rule: Any) -> None:
    assert refused(ThresholdRule, rule)


def test_a_threshold_may_be_removed() -> None:
    scenario = written(thresholds={"helpfulness": 3, "goal_completion": None, "x": {"min": 1}})
    assert scenario.thresholds == {
        "helpfulness": 3,
        "goal_completion": None,
        "x": ThresholdRule(min=1),
    }


@pytest.mark.parametrize("epochs", [1, 10_000, {"min": 1, "max": 1}, {"min": 2, "max": 10_000}])
def test_numbers_of_conversations(epochs: Any) -> None:
    found = written(epochs=epochs).epochs
    assert (found.model_dump() if isinstance(found, EpochRange) else found) == epochs


@pytest.mark.parametrize(
    "epochs",
    [
        *(0, 10_001, True, 1.5, {}, {"min": 1}, {"min": 3, "max": 2}),
        *({"min": 0, "max": 2}, {"min": 1, "max": 10_001}),
    ],
)
def test_numbers_of_conversations_that_are_refused(epochs: Any) -> None:
    assert refused(Scenario, {"epochs": epochs})


# ── the short forms ──────────────────────────────────────────────────────────────────────────────


def test_beliefs() -> None:
    scenario = written(beliefs=["It is open.", {"belief": "It is late.", "held": "firmly"}])
    assert scenario.beliefs == (Belief(belief="It is open."), Belief(belief="It is late.", held="firmly"))
    assert scenario.model_dump()["beliefs"] == ("It is open.", {"belief": "It is late.", "held": "firmly"})
    assert refused(Scenario, {"beliefs": [{"belief": "x", "held": "never"}]})


@pytest.mark.parametrize(
    ("case", "tools", "no_call", "keywords", "empty"),
    [
        ({}, (), False, (), ()),
        ({"expected_tools": "none"}, (), True, (), ()),
        ({"expected_tools": ["f", "g", "f"]}, ("f", "g"), False, (), ()),
        ({"expected_tools": "f"}, ("f",), False, (), ()),
        ({"expected_tools": []}, (), False, (), ("expected_tools",)),
        ({"expected_output_contains": ["a"]}, (), False, ("a",), ()),
        (
            {"expected_tools": [], "expected_output_contains": []},
            (),
            False,
            (),
            ("expected_tools", "expected_output_contains"),
        ),
    ],
)
def test_a_test_case(
    case: Any, tools: tuple[str, ...], no_call: bool, keywords: tuple[str, ...], empty: tuple[str, ...]
) -> None:
    found = CaseSpec.model_validate(case)
    assert (found.tools, found.allows_no_call) == (tools, no_call)
    assert (found.keywords, found.empty_lists) == (keywords, empty)


@pytest.mark.parametrize(
    "tools",
    [
        *("None", " none ", ["none"], ["f", "null"], [None], True),
        *(False, "~", "no", "TRUE", "yes", ["false"]),
    ],
)
def test_words_that_are_no_tool(tools: Any) -> None:
    assert "expected_tools: none" in refused(CaseSpec, {"expected_tools": tools})


@pytest.mark.parametrize(("rows", "read"), [(None, None), ("a.csv", "a.csv"), ([{"a": 1}], ({"a": 1},))])
def test_rows(rows: Any, read: Any) -> None:
    assert RowsSpec.model_validate({"rows": rows}).rows == read
    for wrong in ({"a": 1}, 5):
        assert "rows" in refused(RowsSpec, {"rows": wrong})


# ── samples ──────────────────────────────────────────────────────────────────────────────────────


def test_the_name_of_a_sample() -> None:
    key = SampleKey(scenario="refund", agent="bot", epoch=2)
    assert str(key) == "refund · bot · epoch 3"
    assert str(key.model_copy(update={"variant": "v"})) == "refund [v] · bot · epoch 3"


def test_a_seed_rests_on_all_that_a_sample_is() -> None:
    key = SampleKey(scenario="a", agent="b")
    others: list[dict[str, Any]] = [{"scenario": "x"}, {"agent": "x"}, {"epoch": 1}, {"variant": "x"}]
    seeds = {sample_seed(0, key.model_copy(update=change)) for change in ({}, *others)}
    assert len(seeds | {sample_seed(1, key)}) == 6
    assert sample_seed(0, key) == sample_seed(0, SampleKey(scenario="a", agent="b"))
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_a_match_in_other_words() -> None:
    adapter = TypeAdapter(MatchMode)
    assert set(MatchMode.MEANT.values()) <= {str(mode) for mode in MatchMode}
    assert [MatchMode.MEANT[word] for word in ("superset", "subset", "exact", "any_order", "ordered")] == [
        "contains",
        "within",
        "strict",
        "unordered",
        "in_order",
    ]
    assert adapter.validate_python("within") is MatchMode.WITHIN


# ── many scenarios ───────────────────────────────────────────────────────────────────────────────


def test_scenarios_with_equal_tools_share_them() -> None:
    def made(name: str, **tool: Any) -> Scenario:
        return Scenario.model_validate({"id": name, "tools": {"look_up": {"returns": "x", **tool}}})

    one, other, different = made("a"), made("b"), made("c", returns="y")
    shared = SharedTools()
    found = [shared.share(each.tools) for each in (one, other, different, Scenario(id="d"))]
    assert found[1] is found[0]
    assert found == [one.tools, other.tools, different.tools, {}]
