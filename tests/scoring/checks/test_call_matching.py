"""Expected against actual tool calls: five modes, one optimal assignment."""

import gzip
import json
from itertools import combinations, permutations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.core.scenario import ExpectedCall, MatchMode, ToolCallsExpectation
from agenteval.core.trajectory import ToolCall
from agenteval.scoring.checks.arguments import call_matches
from agenteval.scoring.checks.call_descriptions import describe_tool_calls_result, list_call_faults
from agenteval.scoring.checks.call_matching import compare_tool_calls

MODES = ("strict", "unordered", "in_order", "contains", "within")


def call(name, **args):
    return ToolCall(name=name, args=args)


def want(name, match=None, **args):
    return ExpectedCall(name=name, args=args or None, args_match=match)


def check(mode, expected, calls, forbidden=()):
    # `model_construct`: an expectation of nothing is refused by the format, not by the comparison.
    expectation = ToolCallsExpectation.model_construct(
        match=MatchMode(mode), calls=None if expected is None else tuple(expected), forbidden=tuple(forbidden)
    )
    return compare_tool_calls(expectation, calls)


def passing(expected, calls):
    return {mode for mode in MODES if check(mode, expected, calls).passed}


A, B, C = call("a"), call("b"), call("c")
WANT_A, WANT_B = want("a"), want("b")


@pytest.mark.parametrize(
    ("calls", "modes"),
    [
        ([A, B], set(MODES)),
        ([B, A], {"unordered", "contains", "within"}),
        ([A, B, C], {"in_order", "contains"}),
        ([A, C, B], {"in_order", "contains"}),
        ([B, C, A], {"contains"}),
        ([A, B, A], {"in_order", "contains", "within"}),
        ([A], {"within"}),
        ([], {"within"}),
        ([C], set()),
    ],
)
def test_modes(calls, modes):
    assert passing([WANT_A, WANT_B], calls) == modes


def test_a_loose_expectation_does_not_take_the_call_that_a_strict_one_needs():
    expected = [want("a"), want("a", x=1)]
    assert check("unordered", expected, [call("a", x=1), call("a", x=2)]).passed
    assert check("contains", expected, [call("a", x=1), call("a", x=2)]).passed
    # In order it is the second call that must have x=1.
    assert not check("in_order", expected, [call("a", x=1), call("a", x=2)]).passed
    assert check("in_order", expected, [call("a", x=2), call("a", x=1)]).passed


def test_one_call_serves_one_expectation():
    result = check("contains", [WANT_A, WANT_A], [A])
    assert not result.passed
    assert result.missing == (WANT_A,)
    assert "already used by another expected call" in describe_tool_calls_result(result)


def test_within_accepts_each_of_a_names_entries():
    expected = [want("a", x=1), want("a", x=2), want("b")]
    assert check("within", expected, [call("a", x=2), call("a", x=1), call("a", x=1), call("b", y=9)]).passed
    result = check("within", expected, [call("a", x=3), call("b")])
    assert result.extra == (call("a", x=3),)
    assert "args.x: expected 1, got 3" in describe_tool_calls_result(result)
    assert check("within", [*expected, want("a")], [call("a", x=3)]).passed
    assert check("within", [want("a", "partial", x=1)], [call("a", x=1, y=2)]).passed
    assert not check("within", [], [A]).passed


def test_forbidden_without_calls_is_all_that_is_checked():
    assert check("strict", None, [A, B], [want("c")]).passed
    result = check("contains", None, [A, call("c", id=7)], [want("c")])
    assert result.forbidden == (call("c", id=7),)
    assert not result.missing
    assert not result.extra
    assert "forbidden: c(id=7)" in describe_tool_calls_result(result)


def test_forbidden_arguments_forbid_matching_calls_only():
    forbidden = [want("pay", "partial", amount={"$in": [100, 200]})]
    assert check("contains", [want("pay")], [call("pay", amount=50, to="x")], forbidden).passed
    assert not check("contains", [want("pay")], [call("pay", amount=200, to="x")], forbidden).passed


def test_a_call_that_is_expected_and_forbidden_fails():
    for mode in MODES:
        assert not check(mode, [WANT_A], [A], [WANT_A]).passed


def test_unreadable_arguments_match_where_they_are_ignored():
    broken = ToolCall(name="a", args=None, raw_args='{"x": ')
    assert passing([WANT_A], [broken]) == set(MODES)
    result = check("contains", [want("a", x=1)], [broken])
    assert result.passed is None
    assert (
        'not decided, because the arguments of these calls are unknown: a(unreadable: {"x":'
        in describe_tool_calls_result(result)
    )


def test_in_order_tells_what_came_too_early_from_what_never_came():
    result = check("in_order", [WANT_A, WANT_B, want("c")], [B, A])
    assert result.missing == (want("c"),)
    assert len(result.out_of_order) == 1
    assert not check("in_order", [WANT_A, WANT_B], [B, A]).missing


def test_strict_tells_missing_extra_and_order():
    swapped = check("strict", [WANT_A, WANT_B], [B, A])
    assert (swapped.missing, swapped.extra) == ((), ())
    assert len(swapped.out_of_order) == 1
    other = check("strict", [WANT_A, WANT_B], [A, C])
    assert (other.missing, other.extra, other.out_of_order) == ((WANT_B,), (C,), ())


def test_describe_of_a_pass_is_one_line_with_both_sides():
    result = check(
        "contains", [want("book", "partial", time={"$in": ["09:00"]})], [call("book", time="09:00", n=1)]
    )
    assert describe_tool_calls_result(result) == (
        'expected (contains): book(time=one of ["09:00"], …); called: book(time="09:00", n=1)'
    )


def test_describe_of_a_failure_names_the_nearest_call_and_the_difference():
    calls = [call("book", time="11:00", day="Mon"), call("book", time="11:00", day="Tue"), A]
    text = describe_tool_calls_result(
        check("unordered", [want("book", time="09:00", day="Tue"), want("pay")], calls)
    )
    assert text.splitlines() == [
        'expected (unordered): book(time="09:00", day="Tue"), pay(…)',
        'called: book(time="11:00", day="Mon"), book(time="11:00", day="Tue"), a()',
        'missing: book(time="09:00", day="Tue") — nearest: book(time="11:00", day="Tue"): '
        'args.time: expected "09:00", got "11:00"',
        "missing: pay(…) — never called",
        'extra: book(time="11:00", day="Mon"), book(time="11:00", day="Tue"), a()',
    ]


@pytest.mark.parametrize("mode", ["contains", "in_order"])
def test_extras_are_no_fault_where_they_are_allowed(mode):
    result = check(mode, [WANT_B], [A])
    assert result.missing == (WANT_B,)
    assert result.extra == ()
    assert "extra:" not in describe_tool_calls_result(result)


def test_a_looping_agent_is_described_shortly():
    text = describe_tool_calls_result(
        check("strict", [WANT_A], [A] * 997 + [call("b", n=n) for n in range(100)])
    )
    assert "a() ×997" in text
    assert len(text) < 1_500


def test_nothing_called_is_said():
    assert "called: no call" in describe_tool_calls_result(check("contains", [WANT_A], []))


def test_a_misused_matcher_is_the_authors_mistake():
    with pytest.raises(AuthorError):
        check("contains", [want("a", x={"$on": 1})], [call("a", x=1)])


@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_calls_against_a_thousand(mode):
    """Ends at all: neither the depth of the recursion nor a power of the size is met."""
    expected = [want("a", n={"$any": True})] * 1_000
    assert check(mode, expected, [call("a", n=n) for n in range(1_000)]).passed
    assert check(mode, [want("b")] * 1_000, [B] * 999).passed == (mode == "within")


@pytest.mark.parametrize("mode", MODES)
def test_a_thousand_calls_in_the_wrong_order(mode):
    calls = [call("a", n=n // 20) for n in reversed(range(1_000))]
    result = check(mode, [want("a", n=n) for n in range(50)], calls)
    assert result.passed == (mode in ("contains", "within"))
    assert len(result.out_of_order) == (49 if mode in ("strict", "in_order") else 0)


def test_a_chain_of_displacements_is_followed_to_its_end():
    """Each expectation takes n or n + 1; the last call is the first one's, so that all must move up."""
    size = 150
    expected = [want("a", n={"$in": [n, n + 1]}) for n in range(size)] + [want("a", n=0)]
    result = check("unordered", expected, [call("a", n=n) for n in range(size + 1)])
    assert result.passed


# Small worlds against brute force ------------------------------------------------------------------

VALUES = st.sampled_from([1, 2, 3])
CALLS = st.lists(st.builds(lambda name, x: call(name, x=x), st.sampled_from("ab"), VALUES), max_size=5)
WANTED = st.lists(
    st.builds(
        lambda name, args: ExpectedCall(name=name, args=args),
        st.sampled_from("ab"),
        st.none()
        | VALUES.map(lambda x: {"x": x})
        | st.lists(VALUES, min_size=1, max_size=2).map(lambda xs: {"x": {"$in": xs}}),
    ),
    max_size=5,
)


def largest(expected, calls, orders):
    """How many expected calls can be served, trying every subset in every order allowed."""
    for size in range(min(len(expected), len(calls)), 0, -1):
        for chosen in combinations(expected, size):
            for row in orders(calls, size):
                if all(call_matches(e, c) for e, c in zip(chosen, row, strict=True)):
                    return size
    return 0


@settings(max_examples=300)
@given(WANTED, CALLS)
def test_the_assignment_is_optimal(expected, calls):
    best = largest(expected, calls, permutations)
    for mode in ("contains", "unordered", "in_order", "strict"):
        result = check(mode, expected, calls)
        assert len(result.missing) == len(expected) - best
        assert len(result.extra) == (len(calls) - best if mode in ("unordered", "strict") else 0)
    in_order = largest(expected, calls, combinations)
    result = check("in_order", expected, calls)
    assert len(result.out_of_order) == best - in_order
    assert result.passed == (in_order == len(expected))
    assert check("contains", expected, calls).passed == (best == len(expected))


@given(WANTED, CALLS)
def test_strict_pairs_by_position(expected, calls):
    by_position = len(expected) == len(calls) and all(map(call_matches, expected, calls))
    assert check("strict", expected, calls).passed == by_position


@given(WANTED, CALLS, st.randoms())
def test_order_does_not_matter_where_it_does_not_count(expected, calls, random):
    shuffled, asked = list(calls), list(expected)
    random.shuffle(shuffled)
    random.shuffle(asked)
    for mode in ("unordered", "contains", "within"):
        result = check(mode, expected, calls)
        assert check(mode, expected, shuffled).passed == result.passed
        assert check(mode, asked, shuffled).passed == result.passed
        assert check(mode, expected, shuffled).missing == result.missing  # the same ones, not only as many


@given(WANTED, CALLS)
def test_modes_imply_one_another(expected, calls):
    found = passing(expected, calls)
    implied = [("strict", "unordered"), ("strict", "in_order"), ("unordered", "contains")]
    for stronger, weaker in [*implied, ("in_order", "contains"), ("unordered", "within")]:
        assert stronger not in found or weaker in found
    if "contains" in found and len(expected) == len(calls):
        assert "unordered" in found
    if "in_order" in found and len(expected) == len(calls):
        assert "strict" in found


@given(WANTED, CALLS, st.sampled_from(MODES), WANTED)
def test_what_fails_is_described_and_what_passes_has_no_fault(expected, calls, mode, forbidden):
    result = check(mode, expected, calls, forbidden)
    text = describe_tool_calls_result(result)
    assert ("\n" in text) == (not result.passed)
    if not result.passed:
        assert any(f"\n{word}: " in text for word in ("missing", "extra", "out of order", "forbidden"))


DATA = Path(__file__).parents[4] / "shared" / "data" / "tau_airline.jsonl.gz"


@pytest.mark.skipif(not DATA.exists(), reason="the recorded conversations are not in this checkout")
def test_recorded_conversations_match_themselves_and_not_without_their_last_call():
    compared = 0
    for line in gzip.decompress(DATA.read_bytes()).splitlines():
        functions = [c["function"] for m in json.loads(line)["messages"] for c in m.get("tool_calls") or ()]
        calls = [ToolCall(name=f["name"], args=json.loads(f["arguments"])) for f in functions]
        if calls:
            expected = [ExpectedCall(name=c.name, args=c.args) for c in calls]
            assert passing(expected, calls) == set(MODES)
            assert "unordered" in passing(expected, calls[::-1])
            assert passing(expected, calls[:-1]) == {"within"}
            compared += len(calls)
    assert compared == 1_164


# Arguments that could not be read ------------------------------------------------------------------

ODD = ToolCall(name="a", args=None, raw_args="{'x': 1}")


@pytest.mark.parametrize(
    ("forbidden", "calls", "passed"),
    [
        ([want("a", x=1)], [ODD], None),
        ([want("a", "partial", x=1)], [B, ODD], None),
        ([want("b", y=1), want("a", x=1)], [ODD, ODD], None),
        ([want("a", x=1)], [ODD, call("a", x=1)], False),
        ([want("a")], [ODD], False),
        ([want("a", "ignore", x=1)], [ODD], False),
        ([want("b", x=1)], [ODD], True),
    ],
)
def test_a_call_that_nobody_could_read_may_be_a_forbidden_one(forbidden, calls, passed):
    result = check("contains", None, calls, forbidden)
    assert result.passed is passed
    assert bool(list_call_faults(result)) is (passed is False)
    assert ("not decided" in describe_tool_calls_result(result)) is (passed is None)


def test_what_is_missing_fails_whatever_could_not_be_read():
    assert check("contains", [WANT_B], [ODD], [want("a", x=1)]).passed is False
    assert check("within", [want("a", x=1)], [ODD]).passed is None
    assert check("within", [want("a", x=1)], [ODD, B]).passed is False
