"""What an author expects of recorded conversations: by their ids, with tools, facts and scripted turns."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.recorded_conversation import RecordedConversation
from agenteval.core.scenario import (
    Expectation,
    OutputExpectation,
    SampleKey,
    Scenario,
    ScriptedTurn,
    SimulatedTurns,
    Tool,
)
from agenteval.core.score import MISSING_TURNS, Check
from agenteval.core.trajectory import Step, Stop, StopReason, Trajectory, Turn
from agenteval.importers.expected_scenarios import ExpectedScenarios

ASKS = Expectation(output=OutputExpectation(contains=("hello",)))


def recorded(id: str = "a", *said: str, **more: Any) -> RecordedConversation:
    scenario = Scenario(id=id, name=id, source="log:1", **more)
    turns = tuple(Turn(user=text, steps=(Step(text="Hello", tool_calls=()),)) for text in said)
    return RecordedConversation(
        SampleKey(scenario=id, agent="bot"), scenario, Trajectory(turns=turns), "log:1"
    )


def expected(id: str = "a", **more: Any) -> Scenario:
    return Scenario(id=id, name=f"name of {id}", source=f"s.yaml:{id}", **more)


def joined(talk: RecordedConversation, **more: Any) -> RecordedConversation:
    return ExpectedScenarios([expected(**more)]).join_scenario(talk)


def test_nothing_is_expected() -> None:
    none, talk = ExpectedScenarios(), recorded()
    assert none.join_scenario(talk) is talk
    assert (len(none), none.scenarios, none.source, none.ids) == (0, (), "", frozenset())
    assert (none.is_unmatched, none.unmatched, list(none.unmatched_warnings())) == (False, {}, [])


def test_of_two_scenarios_with_one_id_the_last_is_expected() -> None:
    found = ExpectedScenarios([expected("a"), expected("b"), expected("a", expect=ASKS)])
    assert [each.id for each in found.scenarios] == ["a", "b"]
    assert found.scenarios[0].expect == ASKS
    assert (len(found), found.ids, found.source) == (2, frozenset("ab"), "s.yaml:a")


def test_which_scenarios_and_conversations_did_not_meet() -> None:
    found = ExpectedScenarios([expected(id) for id in "abc"])
    assert found.is_unmatched
    assert found.unmatched == {"a": "s.yaml:a", "b": "s.yaml:b", "c": "s.yaml:c"}
    stranger = recorded("z")
    assert found.join_scenario(stranger) is stranger
    assert found.is_unmatched
    found.join_scenario(recorded("b"))
    found.join_scenario(recorded("z"))
    assert not found.is_unmatched
    assert list(found.unmatched) == ["a", "c"]
    missing, strangers = found.unmatched_warnings()
    assert "scenarios a, c " in missing
    assert "scenario z " in strangers
    for id in "ac":
        found.join_scenario(recorded(id))
    assert (found.unmatched, len(list(found.unmatched_warnings()))) == ({}, 1)


@pytest.mark.parametrize(("count", "named", "more"), [(1, 1, ""), (5, 5, ""), (6, 5, "1 more")])
def test_only_the_first_that_did_not_meet_are_named(count: int, named: int, more: str) -> None:
    names = [f"<{n}>" for n in range(count)]
    found = ExpectedScenarios(map(expected, names))
    found.join_scenario(recorded("z"))
    for name in names:
        found.join_scenario(recorded(f"x{name}"))
    unmatched, strangers = found.unmatched_warnings()
    assert sum(name in unmatched for name in names) == named
    assert more in unmatched
    assert unmatched.startswith("scenarios " if count > 1 else "scenario ")
    assert strangers.startswith("scenarios z, x<0>")


def test_an_unreadable_record_meets_nothing() -> None:
    talk = recorded()
    stop = Stop(reason=StopReason.UNREADABLE, detail="x")
    unreadable = RecordedConversation(talk.key, talk.scenario, Trajectory(stop=stop), "log:1")
    found = ExpectedScenarios([expected()])
    assert found.join_scenario(unreadable) is unreadable
    assert found.is_unmatched
    assert len(list(found.unmatched_warnings())) == 1


def test_what_is_the_authors_and_what_is_the_records() -> None:
    talk = recorded(policy="recorded", facts=("seen",), tools={"find": Tool(description="recorded")})
    scenario = joined(talk, policy="author's", facts=("known",), expect=ASKS).scenario
    assert (scenario.id, scenario.name, scenario.source) == ("a", "name of a", "s.yaml:a")
    assert (scenario.facts, scenario.policy, scenario.expect) == (("known", "seen"), "recorded", ASKS)


@pytest.mark.parametrize(
    ("of_record", "of_author", "allowed"),
    [(None, None, None), (True, None, True), (True, False, False), (None, True, True), (False, None, None)],
)
def test_empty_answers_are_allowed_by_the_record_unless_the_author_says(
    of_record: bool | None, of_author: bool | None, allowed: bool | None
) -> None:
    talk = recorded(expect=Expectation(allow_empty=of_record))
    assert joined(talk, expect=Expectation(allow_empty=of_author)).scenario.expect.allow_empty is allowed


SCHEMA, OTHER = {"type": "object", "title": "recorded"}, {"type": "object", "title": "expected"}


@pytest.mark.parametrize(
    ("of_record", "of_author", "found"),
    [
        ({}, {}, Tool()),
        ({"description": "r"}, {"description": "e"}, Tool(description="r")),
        ({}, {"description": "e"}, Tool(description="e")),
        ({"parameters": SCHEMA}, {"parameters": OTHER}, Tool(parameters=SCHEMA)),
        ({}, {"parameters": OTHER}, Tool(parameters=OTHER)),
        ({"reads": True}, {}, Tool(reads=True)),
        ({"reads": True}, {"destructive": True}, Tool(destructive=True)),
        ({"reads": True}, {"writes": True}, Tool(writes=True)),
        ({"destructive": True}, {"reads": True}, Tool(reads=True)),
        ({"writes": True}, {"description": "e"}, Tool(description="e", writes=True)),
        ({}, {"returns": 1}, Tool()),
        ({}, {"error": "no"}, Tool()),
    ],
)
def test_the_tools_of_both(of_record: dict[str, Any], of_author: dict[str, Any], found: Tool) -> None:
    tools = joined(recorded(tools={"t": Tool(**of_record)}), tools={"t": Tool(**of_author)}).scenario.tools
    assert tools == {"t": found}


def test_tools_of_one_side_are_kept_and_the_recorded_come_first() -> None:
    tools = {"r": Tool(reads=True), "s": Tool()}
    found = joined(
        recorded(tools=tools), tools={"e": Tool(writes=True, returns=1), "s": Tool()}
    ).scenario.tools
    assert list(found) == ["r", "s", "e"]
    assert found["e"] == Tool(writes=True)


def test_tools_of_equal_records_are_joined_for_each_scenario() -> None:
    found = ExpectedScenarios([expected("a", tools={"x": Tool()}), expected("b", tools={"y": Tool()})])
    shared = recorded("a", tools={"r": Tool()}).scenario.tools
    for name, added in (("a", "x"), ("b", "y"), ("a", "x")):
        talk = recorded(name)
        scenario = talk.scenario.model_copy(update={"tools": shared})
        talk = RecordedConversation(talk.key, scenario, talk.trajectory, "log:1")
        assert list(found.join_scenario(talk).scenario.tools) == ["r", added]


def test_tools_are_joined_anew_for_another_scenario_or_other_tools() -> None:
    found = ExpectedScenarios([expected("a", tools={"x": Tool()}), expected("b", tools={"y": Tool()})])
    tools = {"r": Tool()}
    first, again = (found.join_scenario(recorded("a", tools=tools)).scenario.tools for _ in range(2))
    assert list(first) == list(again) == ["r", "x"]
    assert list(found.join_scenario(recorded("b", tools=tools)).scenario.tools) == ["r", "y"]
    assert list(found.join_scenario(recorded("b", tools={"s": Tool()})).scenario.tools) == ["s", "y"]


# ── scripted turns ───────────────────────────────────────────────────────────────────────────────


def script(*turns: str) -> tuple[ScriptedTurn | SimulatedTurns, ...]:
    """Turns; one whose text ends in ``!`` expects something, ``*`` is the simulated user's."""
    return tuple(
        SimulatedTurns(simulate=1)
        if text == "*"
        else ScriptedTurn(user=text.rstrip("!"), expect=ASKS if text.endswith("!") else Expectation())
        for text in turns
    )


@pytest.mark.parametrize(
    ("turns", "said", "linked", "missed"),
    [
        (("Hi",), ("Hi",), [0], []),
        (("Hi",), ("  hI\n",), [0], []),
        (("How  are you",), ("how are\tYOU",), [0], []),
        (("Hi",), ("Hi there",), [None], []),
        (("Hi!",), ("Ho",), [None], [0]),
        (("Hi!",), (), [], [0]),
        (("a", "b", "c"), ("a", "b", "c"), [0, 1, 2], []),
        (("a", "b!", "c"), ("a", "c"), [0, 2], [1]),
        (("a", "b", "c!"), ("a", "b"), [0, 1], [2]),
        (("a", "b"), ("a", "x", "b"), [0, None, 1], []),
        (("a!", "b!"), ("b", "a"), [1, None], [0]),  # in their order only
        (("a", "a"), ("a", "a", "a"), [0, 1, None], []),
        (("a!", "b", "c!"), ("x", "y"), [None, None], [0, 2]),
        (("*", "a!"), ("x", "a"), [None, 1], []),
        (("*", "a!"), ("x",), [None], [1]),
        (("*",), ("x",), [None], []),
    ],
)
def test_messages_are_linked_with_their_entries(
    turns: tuple[str, ...], said: tuple[str, ...], linked: list[int | None], missed: list[int]
) -> None:
    found = joined(recorded("a", *said), turns=script(*turns))
    assert [turn.script for turn in found.trajectory.turns] == linked
    assert [turn.user for turn in found.trajectory.turns] == list(said)
    assert [(check.name, check.passed) for check in found.checks] == [(MISSING_TURNS, None)] * len(missed)
    assert [
        f"turn {index + 1} " in check.detail for index, check in zip(missed, found.checks, strict=True)
    ] == [True] * len(missed)


def test_checks_that_are_known_come_first() -> None:
    talk = recorded("a", "x")
    known = Check(name="outcome", passed=True, detail="")
    talk = RecordedConversation(talk.key, talk.scenario, talk.trajectory, "log:1", (known,))
    found = joined(talk, turns=script("a!"))
    assert [check.name for check in found.checks] == ["outcome", MISSING_TURNS]


def test_a_conversation_that_was_played_by_the_script_stays_as_it_is() -> None:
    talk = recorded("a", "x", "Hi")
    turns = (talk.trajectory.turns[0], talk.trajectory.turns[1].model_copy(update={"script": 3}))
    played = RecordedConversation(talk.key, talk.scenario, Trajectory(turns=turns), "log:1")
    found = joined(played, turns=script("x!", "y!"))
    assert [turn.script for turn in found.trajectory.turns] == [None, 3]
    assert found.checks == ()


def test_without_scripted_turns_nothing_is_missing() -> None:
    found = joined(recorded("a", "Hi"), turns=None)
    assert [turn.script for turn in found.trajectory.turns] == [None]
    assert found.checks == ()
