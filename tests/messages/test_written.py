"""Calls that are written into a text, as agents of older frameworks do, and what only looks like them."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.records import Conversation
from agenteval.scoring.detectors.conversation import Conversation as Seen
from agenteval.scoring.detectors.table import DETECTORS
from tests.support.recorded import read as read_log

ASKED = {"role": "user", "content": "How warm is it in Bonn?"}
FORMAT = """Answer with these tools:

get_weather: the weather of a city

Use the following format:

Thought: what you think of it
Action: the action to take, one of [get_weather]
Action Input: the input of the action
Observation: what the action gave
Thought: I now know the final answer
Final Answer: the answer to the question"""
SYSTEM = {"role": "system", "content": FORMAT}
CALL = 'Thought: I ask the weather service.\nAction: get_weather\nAction Input: {"city": "Bonn"}'
END = "Thought: I now know the answer.\nFinal Answer: It is 12 degrees in Bonn."
OBSERVED = "\nObservation: 12 degrees"


def agent(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def read(*messages: Any, **more: Any) -> Conversation:
    return read_log({"messages": [*messages], **more})


def seen(found: Conversation) -> Seen:
    return Seen.of(found.talk.trajectory, policy=found.policy)


def calls(found: Conversation) -> list[tuple[str, Any, Any]]:
    every = (call for turn in found.talk.trajectory.all_turns for call in turn.tool_calls)
    return [(call.name, call.args, call.result.value if call.result else None) for call in every]


def answers(found: Conversation) -> list[str]:
    """What the user sees of each turn."""
    return [turn.answer.strip() for turn in seen(found).turns]


def labels(found: Conversation) -> set[str]:
    return {str(name) for name in DETECTORS if list(DETECTORS[name].find(seen(found)))}


WEATHER = ("get_weather", {"city": "Bonn"}, "12 degrees")
TOLD = "It is 12 degrees in Bonn."


@pytest.mark.parametrize(
    "messages",
    [
        [SYSTEM, ASKED, agent(CALL + OBSERVED), agent(END)],
        [ASKED, agent(CALL), user("Observation: 12 degrees"), agent(END)],
        [ASKED, agent(CALL), user("Observation: 12 degrees\nThought:"), agent(END)],
        [ASKED, agent(CALL), {"role": "tool", "content": "Observation: 12 degrees"}, agent(END)],
        [ASKED, agent(CALL), {"role": "tool", "content": "12 degrees"}, agent(END)],
        [ASKED, agent(CALL), {"role": "system", "content": "Observation: 12 degrees"}, agent(END)],
        [ASKED, agent(CALL), agent("Observation: 12 degrees\n" + END)],
        [ASKED, agent(f"{CALL}{OBSERVED}\n{END}")],
        [ASKED, agent(f"```\n{CALL}\n```"), user("Observation: 12 degrees"), agent(f"```\n{END}\n```")],
        [SYSTEM, ASKED, agent("I look.\n\n" + CALL.partition("\n")[2] + OBSERVED), agent(END)],
        [SYSTEM, ASKED, agent(CALL.replace("Action", "**Action", 1)), user(OBSERVED.strip()), agent(END)],
        [ASKED, *map(agent, CALL.split("\n")), user("Observation: 12 degrees"), *map(agent, END.split("\n"))],
    ],
)
def test_a_written_call_its_result_and_the_answer(messages: list[Any]) -> None:
    found = read(*messages)
    assert calls(found) == [WEATHER]
    assert answers(found) == [TOLD]
    assert labels(found) == set()


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ('{"city": "Bonn", "days": 2}', {"city": "Bonn", "days": 2}),
        ("{'city': 'Bonn', 'now': True}", {"city": "Bonn", "now": True}),
        ('```json\n{"city": "Bonn"}\n```', {"city": "Bonn"}),
        ("Bonn, today", {"input": "Bonn, today"}),
        ('"Bonn"', {"input": "Bonn"}),
        ("None", {}),
        ("", {}),
        ('{"city": "Bonn"', None),
    ],
)
def test_arguments_in_any_notation(given: str, args: Any) -> None:
    text = f"Thought: I ask.\nAction: get_weather\nAction Input: {given}"
    found = read(ASKED, agent(text), user("Observation: 12 degrees"), agent(END))
    assert calls(found) == [("get_weather", args, "12 degrees")]
    assert ("malformed_arguments" in labels(found)) == (args is None)


def test_words_are_for_the_one_parameter_of_the_tool() -> None:
    text = "Thought: I ask.\nAction: get_weather\nAction Input: Bonn"
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools = [{"name": "get_weather", "parameters": schema}]
    found = read(ASKED, agent(text + OBSERVED), agent(END), tools=tools)
    assert calls(found) == [WEATHER]


def test_a_call_in_one_object() -> None:
    call = 'Action:\n```\n{"action": "get_weather", "action_input": {"city": "Bonn"}}\n```'
    end = 'Action:\n```\n{"action": "Final Answer", "action_input": "It is 12 degrees in Bonn."}\n```'
    found = read(ASKED, agent(call), user("Observation: 12 degrees"), agent(end))
    assert (calls(found), answers(found)) == ([WEATHER], [TOLD])


def test_what_the_tool_answers_counts_and_not_what_the_model_made_up() -> None:
    found = read(
        ASKED, agent(CALL + "\nObservation: 30 degrees"), user("Observation: 12 degrees"), agent(END)
    )
    assert calls(found) == [WEATHER]
    invented = {"choices": [{"message": agent(f"{CALL}\nObservation: 30 degrees\n{END}")}]}
    found = read_log({"request": {"messages": [ASKED]}, "response": invented})
    assert calls(found) == [("get_weather", {"city": "Bonn"}, None)]


def test_an_answer_that_the_result_does_not_hold_is_found() -> None:
    wrong = END.replace("12", "GATE-31177")
    found = read(ASKED, agent(CALL), user("Observation: 12 degrees"), agent(wrong))
    assert labels(found) == {"ungrounded_value"}


def test_what_a_framework_writes_into_the_agent_s_messages_is_no_answer() -> None:
    glue = f"You used that input before.\n\n{FORMAT}"
    messages = [SYSTEM, ASKED, agent(CALL + OBSERVED), agent(glue), agent(f"{CALL}\nObservation: {glue}")]
    found = read(*messages, agent(END))
    assert [name for name, _, _ in calls(found)] == ["get_weather", "get_weather"]
    assert answers(found) == [TOLD]
    assert "leak" not in labels(found)


def test_instructions_in_the_answer_itself_are_a_leak_as_ever() -> None:
    told = f"Final Answer: My instructions are:\n{FORMAT}"
    assert "leak" in labels(read(SYSTEM, ASKED, agent(CALL + OBSERVED), agent(told)))
    assert "leak" in labels(read(SYSTEM, ASKED, agent(f"My instructions are:\n\n{FORMAT}")))


def test_a_thought_without_a_call_before_an_answer() -> None:
    found = read(SYSTEM, ASKED, agent("I now know it\nFinal Answer: Warm enough."))
    assert answers(found) == ["Warm enough."]
    found = read(ASKED, agent("Thought: easy\nFinal Answer: Warm enough."))
    assert answers(found) == ["Warm enough."]


def test_drafts_in_what_a_model_thinks_are_no_calls() -> None:
    found = read(SYSTEM, ASKED, agent(f"<think>{CALL}\nor not?</think>\nFinal Answer: I cannot tell."))
    assert (calls(found), answers(found)) == ([], ["I cannot tell."])


@pytest.mark.parametrize(
    "text",
    [
        "Action: call us on Monday.\nObservation: nobody is there on Sundays.",
        "Thought: it may rain.",
        "Minutes\nAction: Ann writes the report\nObservation: it is late",
        "We add 7 and 5.\nFinal Answer: 12",
        f"Agents of this kind write:\n\n{CALL}{OBSERVED}\n{END}",
        f"Here is a run of one.\n{CALL}{OBSERVED}\n{END}",
        "Action: None\nAction Input: None",
        "Our form has two fields, Action: and Action Input: fill in both.",
        "In the template:\nAction: <tool>\nAction Input: <json>",
    ],
)
def test_an_ordinary_answer_is_left_as_it_is(text: str) -> None:
    found = read(ASKED, agent(text))
    assert calls(found) == []
    assert [turn.answer for turn in found.talk.trajectory.turns] == [text]


def test_an_example_for_somebody_who_asks_for_the_format_is_no_call() -> None:
    text = f"Your prompt is fine. The model will write:\n\n```\n{CALL}\n```"
    found = read(user(f"Is this prompt right?\n\n{FORMAT}"), agent(text))
    assert (calls(found), answers(found)) == ([], [text])


def test_a_message_that_the_next_one_repeats_is_one_call() -> None:
    again = CALL + OBSERVED + "\nNow give your best final answer."
    found = read(SYSTEM, ASKED, agent(CALL + OBSERVED), agent(again), agent(END))
    assert [name for name, _, _ in calls(found)] == ["get_weather"]
    twice = read(SYSTEM, ASKED, agent(CALL + OBSERVED), agent(CALL + OBSERVED), agent(END))
    assert [name for name, _, _ in calls(twice)] == ["get_weather", "get_weather"]


def test_who_can_call_tools_does_not_write_calls() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    messages = [ASKED, {"role": "assistant", "tool_calls": [call]}, {"role": "tool", "content": "noon"}]
    found = read(*messages, agent(CALL))
    assert [name for name, _, _ in calls(found)] == ["get_time"]
    assert found.talk.trajectory.turns[0].answer == CALL


def test_a_user_who_quotes_an_observation_is_a_user() -> None:
    found = read(user("Observation: the light is red. Why?"), agent("It is broken."))
    assert [turn.user for turn in found.talk.trajectory.turns] == ["Observation: the light is red. Why?"]
