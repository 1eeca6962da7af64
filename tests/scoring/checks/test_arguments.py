"""Expected against actual arguments of a tool call."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.core.scenario import ExpectedCall
from agenteval.core.trajectory import ToolCall
from agenteval.files.value_matching import describe_expected, matches_value
from agenteval.scoring.checks.arguments import call_matches, explain_differences

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=4).filter(lambda k: not k.startswith("$")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON)
def test_a_value_matches_itself_and_its_round_trip_through_json(value):
    assert matches_value(value, value)
    assert matches_value(value, json.loads(json.dumps(value)))
    assert explain_differences(value, value) == ""


@given(JSON, JSON)
def test_explain_is_empty_exactly_when_the_values_match(expected, actual):
    assert matches_value(expected, actual) == (explain_differences(expected, actual) == "")
    assert matches_value(expected, actual) == matches_value(actual, expected)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, 1.0),
        (0.0, -0.0),
        (math.nan, math.nan),
        (math.inf, math.inf),
        ((1, 2), [1, 2]),
        ({}, {}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (10**400, 10**400),
    ],
)
def test_equal_in_json(expected, actual):
    assert matches_value(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        (1, True),
        (True, 1),
        (0, False),
        (1.0, True),
        (0, None),
        ("", None),
        (None, False),
        ([], {}),
        ("1", 1),
        ([1, 2], [2, 1]),
        ([1], [1, 1]),
        ({"a": None}, {}),
        ({}, {"a": None}),
        (2**53 + 1, float(2**53)),
        (math.nan, 0.0),
        (math.nan, None),
        ("A", "a"),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}),
    ],
)
def test_different_in_json(expected, actual):
    assert not matches_value(expected, actual)


@pytest.mark.parametrize("actual", [None, 0, "", [], {"a": 1}, False])
def test_any_accepts_everything_that_is_there(actual):
    assert matches_value({"$any": True}, actual)
    assert matches_value({"id": {"$any": True}}, {"id": actual})


def test_any_wants_the_key_to_be_there():
    assert not matches_value({"id": {"$any": True}}, {})
    assert explain_differences({"id": {"$any": True}}, {}) == "args.id: missing, expected anything"


def test_in_takes_json_typing_and_matchers():
    assert matches_value({"$in": ["09:00", "10:30"]}, "10:30")
    assert not matches_value({"$in": [1, 2]}, True)
    assert matches_value({"$in": [None, {"$regex": "^x"}]}, "xy")
    assert matches_value([{"a": {"$in": [{"b": {"$approx": 1}}]}}], [{"a": {"b": 1.0000000001}}])


@pytest.mark.parametrize(
    ("pattern", "actual", "found"),
    [
        ("ORD-\\d+", "my ORD-42", True),
        ("^ORD", "my ORD", False),
        ("x", "X", False),
        ("1", 1, False),
        ("N", None, False),
        ("None", None, False),
        ("a", ["a"], False),
    ],
)
def test_regex_searches_texts_only(pattern, actual, found):
    assert matches_value({"$regex": pattern}, actual) is found


@pytest.mark.parametrize(
    ("operand", "actual", "near"),
    [
        (100, 100.00005, True),
        (100, 100.0002, False),
        (0, 1e-10, True),
        (0, 1e-8, False),
        (1, True, False),
        (1, "1", False),
        (1, None, False),
        ({"value": 0.3, "abs": 0.1}, 0.4, True),  # floats alone say 0.10000000000000003
        ({"value": 1e6, "abs": 0.5}, 1e6 + 0.9, False),  # abs alone: no relative tolerance beside it
        ({"value": 100, "rel": 0.1}, 110, True),
        ({"value": 100, "rel": 0.1}, 110.1, False),  # relative to the expected value, not to the larger
        ({"value": 100, "rel": 0.01, "abs": 5}, 104, True),
        ({"value": -100, "rel": 0.1}, -91, True),
        (10**400, 10**400 + 1, True),
        (1.0, 10**400, False),
        (math.inf, math.inf, True),
        (math.inf, 1e308, False),
        (1, math.nan, False),
        (math.nan, math.nan, True),
    ],
)
def test_approx(operand, actual, near):
    assert matches_value({"$approx": operand}, actual) is near


@pytest.mark.parametrize(
    ("operand", "says"),
    [
        ({"$inn": [1]}, "unknown matcher '$inn' — did you mean '$in'?"),
        ({"$in": "a"}, "$in: expected a list"),
        ({"$in": []}, "got an empty list"),
        ({"$in": [1], "b": 2}, "'$in' is not"),
        ({"$regex": "("}, "not a valid regular expression"),
        ({"$regex": 1}, "expected a string"),
        ({"$approx": "1"}, "expected a number or a mapping"),
        ({"$approx": True}, "expected a number or a mapping"),
        ({"$approx": {"abs": 1}}, "'value' is missing"),
        ({"$approx": {"value": 1, "tol": 1}}, "unknown key 'tol'"),
        ({"$approx": {"value": 1, "abs": -1}}, "`abs` must not be negative, got -1"),
        ({"$approx": {"value": 1, "rel": math.nan}}, "`rel` must be a number"),
    ],
)
def test_a_misused_matcher_is_the_authors_mistake(operand, says):
    with pytest.raises(AuthorError) as caught:
        matches_value({"list": [operand]}, {"list": [1]})
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("mode", "args", "actual", "found"),
    [
        (None, None, {"a": 1}, True),
        (None, {"a": 1}, {"a": 1}, True),
        (None, {"a": 1}, {"a": 1, "b": 2}, False),  # exact is the default when args are given
        (None, {}, {"b": 2}, False),
        ("exact", {"a": {"$any": True}}, {"a": None}, True),
        ("partial", {"a": 1}, {"a": 1, "b": 2}, True),
        ("partial", {"a": 1}, {"b": 2}, False),
        ("partial", {"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, False),  # a subset at the top level only
        ("partial", {}, {"a": 1}, True),
        ("ignore", {"a": 1}, {"a": 2}, True),
        (None, None, None, True),
        ("ignore", {"a": 1}, None, True),
        ("partial", {}, None, False),
        ("exact", {}, None, False),
        ("exact", {"$any": True}, {"a": 1}, True),
    ],
)
def test_call_matches(mode, args, actual, found):
    expected = ExpectedCall(name="f", args=args, args_match=mode)
    call = ToolCall(name="f", args=actual, raw_args="{oops" if actual is None else None)
    assert call_matches(expected, call) is found
    assert (explain_differences(expected, call) == "") is found
    assert not call_matches(expected, call.model_copy(update={"name": "F"}))


def test_explain_names_each_path():
    expected = {"time": {"$in": ["09:00"]}, "who": [1, {"n": 2}], "gone": 1, "a key": True}
    actual = {"time": "11:00", "who": [1, {"n": "2"}, 3], "new": None, "a key": 1}
    assert explain_differences(expected, actual).split("; ") == [
        'args.time: expected one of ["09:00"], got "11:00"',
        'args.who[1].n: expected 2, got "2"',
        "args.who[2]: unexpected, got 3",
        "args.gone: missing, expected 1",
        'args["a key"]: expected true, got 1',
        "and 1 more",
    ]


def test_explain_shows_unreadable_arguments():
    expected = ExpectedCall(name="f", args={"a": 1})
    call = ToolCall(name="f", args=None, raw_args='{"a": ')
    assert explain_differences(expected, call) == 'args: expected {"a": 1}, got unreadable arguments {"a":'


def test_actual_arguments_are_never_read_as_matchers():
    assert not matches_value("x", {"$any": True})
    assert explain_differences({"a": 1}, {"a": {"$nope": 1}}) == 'args.a: expected 1, got {"$nope": 1}'


def test_words_say_matchers_and_stay_short():
    assert describe_expected({"a": {"$regex": "^x"}, "b": {"$approx": {"value": 3.14, "abs": 0.01}}}) == (
        '{"a": text matching /^x/, "b": about 3.14 (± abs 0.01)}'
    )
    assert len(describe_expected("x" * 10_000)) < 200


def test_arguments_nested_deeper_than_the_stack_are_shown_in_some_way():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    assert "cannot be displayed" in explain_differences({"a": 1}, {"a": deep})
