"""The law of ``call_assignment``, written once more as a search through every assignment, on small worlds."""

import random
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.core.scenario import ExpectedCall, MatchMode, ToolCallsExpectation
from agenteval.core.trajectory import ToolCall, ToolResult
from agenteval.scoring.checks.arguments import match_arguments
from agenteval.scoring.checks.call_descriptions import describe_tool_calls_result, list_call_faults
from agenteval.scoring.checks.call_matching import compare_tool_calls

MODES = ("strict", "unordered", "in_order", "contains", "within")
ORDERED = ("strict", "in_order")
CLOSED = ("strict", "unordered", "within")

RESULTS = {"ok": ToolResult(value="fine"), "error": ToolResult(value={"error": "no"}, is_error=True)}


def call(name, x=None, result="ok"):
    return ToolCall(
        name=name, args=None if x == "?" else {} if x is None else {"x": x}, result=RESULTS.get(result)
    )


def want(name, x=None, times=None, result=None):
    return ExpectedCall(name=name, args=None if x is None else {"x": x}, times=times, result=result)


def check(mode, expected, calls, **more):
    asked = ToolCallsExpectation.model_construct(match=MatchMode(mode), calls=tuple(expected))
    return compare_tool_calls(asked, calls, **more)


# What the law says, by search ----------------------------------------------------------------------


def bounds(mode, expected):
    """As the documentation says: one call, or under `within` any number; `times` bounds it."""
    fewest, most = (0, 10**9) if mode == "within" else (1, 1)
    if expected.times is None:
        return fewest, most
    if isinstance(expected.times, int):
        return expected.times, expected.times
    low, high = expected.times.at_least, expected.times.at_most
    return fewest if low is None else low, 10**9 if high is None else high


def holds(mode, expected, fits, number):
    """Whether ``number`` calls are as expected; ``fits[e][c]``: whether a call matches."""
    if mode in ORDERED:
        return any(in_runs(mode, expected, fits, takers) for takers in takings(len(expected), number))
    counted = [e for e, each in enumerate(expected) if each.times is not None or mode == "within"]
    for e in counted:
        low, high = bounds(mode, expected[e])
        if not low <= sum(fits[e]) <= high:
            return False
    single = [e for e in range(len(expected)) if e not in counted]
    return any(
        served(row, single, fits) and (mode == "contains" or belongs(row, counted, fits, number))
        for row in rows_of(number, len(single))
    )


def takings(expected, number):
    """Which expected call takes each call; None: no one."""
    return product([None, *range(expected)], repeat=number)


def in_runs(mode, expected, fits, takers):
    taken = [e for e in takers if e is not None]
    if taken != sorted(taken) or any(e is not None and not fits[e][c] for c, e in enumerate(takers)):
        return False
    for e, each in enumerate(expected):
        low, high = bounds(mode, each)
        if not low <= taken.count(e) <= high:
            return False
    others = [c for c, e in enumerate(takers) if e is None]
    if mode == "strict":
        return not others
    return not any(fits[e][c] for c in others for e, each in enumerate(expected) if each.times is not None)


def rows_of(number, size):
    return (row for row in product(range(number), repeat=size) if len(set(row)) == size)


def served(row, single, fits):
    return all(fits[e][c] for e, c in zip(single, row, strict=True))


def belongs(row, counted, fits, number):
    return all(c in row or any(fits[e][c] for e in counted) for c in range(number))


def certain(expected, calls):
    return [[match_arguments(e, c) is True for c in calls] for e in expected]


# Worlds --------------------------------------------------------------------------------------------

NAMES, VALUES = st.sampled_from("ab"), st.sampled_from([1, 2])
TIMES = st.sampled_from(
    [None, None, 1, 2, *({"at_least": n} for n in (0, 1, 2)), {"at_most": 2},
     *({"at_least": a, "at_most": b} for a, b in ((0, 1), (0, 2), (1, 2), (2, 3)))]
)  # fmt: skip
CALLS = st.lists(st.builds(call, NAMES, VALUES, st.sampled_from(["ok", "ok", "error"])), max_size=5)
WANTED = st.lists(
    st.builds(want, NAMES, st.none() | VALUES, TIMES, st.sampled_from([None, None, "ok", "error"])),
    min_size=1,
    max_size=4,
)
MODE = st.sampled_from(MODES)


@settings(max_examples=600, deadline=None)
@given(MODE, WANTED, CALLS)
def test_the_verdict_is_that_of_a_search_through_every_assignment(mode, expected, calls):
    result = check(mode, expected, calls)
    assert result.passed == holds(mode, expected, certain(expected, calls), len(calls))
    assert bool(list_call_faults(result)) == (not result.passed)
    assert ("\n" in describe_tool_calls_result(result)) == (not result.passed)


@settings(max_examples=200, deadline=None)
@given(MODE, WANTED, CALLS, MODE, WANTED)
def test_one_of_several_alternatives_is_enough(mode, expected, calls, other, others):
    asked = ToolCallsExpectation.model_construct(
        any_of=tuple(
            ToolCallsExpectation.model_construct(match=MatchMode(m), calls=tuple(e))
            for m, e in ((mode, expected), (other, others))
        )
    )
    each = [check(m, e, calls) for m, e in ((mode, expected), (other, others))]
    result = compare_tool_calls(asked, calls)
    assert result.passed == any(one.passed for one in each)
    if not result.passed:  # the nearest is shown
        wrong = [len(one.missing) + len(one.extra) + len(one.out_of_order) for one in each]
        shown = len(result.missing) + len(result.extra) + len(result.out_of_order)
        assert shown == min(wrong)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["unordered", "contains", "within"]), WANTED, CALLS, st.randoms())
def test_order_does_not_matter_where_it_does_not_count(mode, expected, calls, random):
    shuffled, asked = random.sample(calls, len(calls)), random.sample(expected, len(expected))
    result = check(mode, expected, calls)
    assert check(mode, expected, shuffled).passed == result.passed
    assert check(mode, asked, shuffled).passed == result.passed
    assert check(mode, expected, shuffled).missing == result.missing


# Where more calls may have been made ---------------------------------------------------------------

SHORT = st.lists(st.builds(call, NAMES, VALUES, st.just("ok")), max_size=2)
FEW = st.lists(st.builds(want, NAMES, st.none() | VALUES, TIMES, st.none()), min_size=1, max_size=2)
SMALL = [call(n, x) for n in "ab" for x in (1, 2)]


def agrees(expected):
    """Whether something holds for sure: counts of the same calls may contradict each other."""
    return len({each.name for each in expected}) == len(expected)


def could_hold(mode, expected, calls, *, anywhere):
    asked = {(each.name, (each.args or {"x": x})["x"]) for each in expected for x in (1, 2)}
    for size in (0, 1, 2, 3, 4):
        for more in product([call(*each) for each in sorted(asked)], repeat=size):
            total = len(calls) + size
            for places in combinations(range(total), size) if anywhere else (range(len(calls), total),):
                rest, added = iter(calls), iter(more)
                made = [next(added) if at in places else next(rest) for at in range(total)]
                if holds(mode, expected, certain(expected, made), total):
                    return True
    return False


@settings(max_examples=60, deadline=None)
@given(MODE, FEW, SHORT)
def test_a_conversation_that_goes_on_fails_only_where_no_later_call_could_mend_it(mode, expected, calls):
    result = check(mode, expected, calls, is_ongoing=True)
    if not result.passed or agrees(expected):
        assert result.passed == could_hold(mode, expected, calls, anywhere=False)
    assert bool(list_call_faults(result)) == (not result.passed)


@settings(max_examples=60, deadline=None)
@given(MODE, FEW, SHORT)
def test_a_failure_rests_on_absence_where_calls_that_nobody_saw_would_mend_it(mode, expected, calls):
    result = check(mode, expected, calls)
    if not result.passed and (not result.rests_on_absence or agrees(expected)):
        assert result.rests_on_absence == could_hold(mode, expected, calls, anywhere=True)


@settings(max_examples=300, deadline=None)
@given(MODE, FEW, SHORT, st.sampled_from(SMALL), st.integers(0, 2))
def test_what_holds_and_does_not_rest_on_absence_holds_with_more_calls(mode, expected, calls, further, at):
    result = check(mode, expected, calls)
    if result.passed and not result.rests_on_absence:
        assert check(mode, expected, [*calls[:at], further, *calls[at:]]).passed


@pytest.mark.parametrize(
    ("mode", "expected", "calls", "rests"),
    [
        ("contains", [want("a")], [], True),  # failed: it may have been made
        ("contains", [want("a")], [call("a")], False),
        ("contains", [want("a", times={"at_least": 1})], [call("a")], False),
        ("contains", [want("a", times={"at_most": 2})], [call("a")], True),  # holds: there may be more
        ("contains", [want("a", times=1)], [call("a"), call("a")], False),
        ("in_order", [want("a"), want("b")], [call("a"), call("b")], False),
        ("in_order", [want("a"), want("b")], [call("b"), call("a")], True),
        ("in_order", [want("a", times={"at_least": 1}), want("b")], [call("a"), call("b")], True),
        ("strict", [], [], True),
        ("strict", [], [call("a")], False),
        ("strict", [want("a"), want("b")], [call("b")], True),
        ("strict", [want("a"), want("b")], [call("b"), call("a")], False),
        ("within", [want("a")], [call("a")], True),
        ("within", [want("a")], [call("b")], False),
    ],
)
def test_what_rests_on_absence(mode, expected, calls, rests):
    assert check(mode, expected, calls).rests_on_absence is rests


# Calls of which something is not known -------------------------------------------------------------

OPEN_CALLS = st.lists(
    st.builds(call, NAMES, VALUES | st.just("?"), st.sampled_from(["ok", "error", "unknown"])), max_size=4
)


def resolutions(expected, calls):
    """Every way in which what is not known of the calls could be."""
    known = [[match_arguments(e, c) for c in calls] for e in expected]
    open_ones = [(e, c) for e, row in enumerate(known) for c, each in enumerate(row) if isinstance(each, str)]
    for chosen in product([False, True], repeat=len(open_ones)):
        fits = [[each is True for each in row] for row in known]
        for (e, c), fit in zip(open_ones, chosen, strict=True):
            fits[e][c] = fit
        yield fits


@settings(max_examples=500, deadline=None)
@given(MODE, WANTED, OPEN_CALLS)
def test_what_is_not_known_leaves_open_what_depends_on_it_and_nothing_else(mode, expected, calls):
    result = check(mode, expected, calls)
    known = [[match_arguments(e, c) for c in calls] for e in expected]
    if sum(isinstance(each, str) for row in known for each in row) > 6:
        return
    outcomes = {holds(mode, expected, fits, len(calls)) for fits in resolutions(expected, calls)}
    if result.passed is not None:
        assert outcomes == {result.passed}
    elif mode != "in_order" or all(each.times is None for each in expected):
        assert outcomes == {True, False}
    assert (result.passed is None) == bool(result.unknown_calls)
    assert (result.passed is None) == ("not decided" in describe_tool_calls_result(result))


@pytest.mark.parametrize(
    ("mode", "expected", "calls", "passed"),
    [
        ("contains", [want("a", 1)], [call("a", "?")], None),
        ("contains", [want("a")], [call("a", "?")], True),  # its name decides
        ("contains", [want("a", 1)], [call("a", "?"), call("a", 1)], True),
        ("contains", [want("a", 1), want("a", 2)], [call("a", "?")], False),  # so does the number
        ("contains", [want("a", 1, times=1)], [call("a", "?"), call("a", 1)], None),
        ("contains", [want("a", 1, times=1)], [call("a", 1), call("a", 1), call("a", "?")], False),
        ("contains", [want("a", 1, times={"at_most": 3})], [call("a", 1), call("a", "?")], True),
        ("unordered", [want("a", 1)], [call("a", "?"), call("a", "?")], False),
        ("unordered", [want("a", 1)], [call("a", "?")], None),
        ("strict", [want("a", 1), want("b")], [call("b"), call("a", "?")], False),
        ("in_order", [want("a", 1, times={"at_least": 0}), want("b")], [call("a", "?"), call("b")], True),
        ("in_order", [want("a", 1, times={"at_least": 0}), want("b")], [call("b"), call("a", "?")], None),
        ("within", [want("a", 1)], [call("a", "?")], None),
        ("within", [want("a", 1)], [call("a", "?"), call("b")], False),
        ("contains", [want("a", result="ok")], [call("a", result=None)], None),
        ("contains", [want("a", result="ok")], [call("a", result="error")], False),
    ],
)
def test_of_a_call_with_unknown_arguments_name_and_number_decide(mode, expected, calls, passed):
    assert check(mode, expected, calls).passed is passed


# Large ones ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_looping_agent_is_counted_in_time(mode):
    calls = [call("a", 1)] * 4_000
    assert check(mode, [want("a", times={"at_least": 1})], calls).passed
    assert not check(mode, [want("a", times={"at_most": 3})], calls).passed
    assert not check(mode, [want("a", times=10**9)], calls).passed
    many = check(mode, [want("a", times={"at_least": 0, "at_most": 50}), want("b", times=2)], calls)
    assert not many.passed


def test_with_order_a_call_has_one_place_and_without_it_counts_wherever_it_matches():
    calls = [call("pay", 5), call("pay", 6)]
    both = [want("pay", 5), want("pay", times=1)]
    assert check("in_order", both, calls).passed
    assert check("strict", both, calls).passed
    for mode in ("contains", "unordered"):
        assert not check(mode, both, calls).passed
        assert check(mode, both, calls[:1]).passed


def test_the_calls_that_have_to_be_taken_are_taken_whichever_come_first():
    """One expected call could take either; only one of the calls has another that stands for it."""
    expected = [want("a"), want("a", 1, times={"at_least": 1})]
    calls = [call("a", 1), call("a", 2)]
    for _ in range(10):
        random.shuffle(calls)
        assert check("unordered", expected, calls).passed
