"""Texts in which a model appears to have written a tool call."""

from __future__ import annotations

import pytest

from agenteval.messages.calls import ParsedCall
from agenteval.messages.parsed_message import ParsedMessage, Role
from agenteval.messages.text_tool_calls import mark_text_calls

TOOLS = ("cancel", "get_order", "searchOrders", "Refund")


def marked(text: str, tools: tuple[str, ...] = TOOLS) -> str:
    """The name under which the message is unplaced, or an empty string."""
    kept, *more = mark_text_calls([ParsedMessage("assistant", text)], tools)
    assert kept == ParsedMessage("assistant", text)
    if not more:
        return ""
    (found,) = more
    assert found.role == "unplaced"
    assert not found.is_unread
    assert found.value.entry == text
    (name,) = found.value.names
    return str(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("<tool_call>\n{}\n</tool_call>", "<tool_call>"),
        ("Ok. <functioncall> {}", "<functioncall>"),
        ("<function_call>", "<function_call>"),
        ("<function=cancel>{}</function>", "<function="),
        ("<|python_tag|>cancel()", "<|python_tag|>"),
        ("<|tool_calls_section_begin|>", "<|tool_call"),
        ("[TOOL_CALLS] [{}]", "[TOOL_CALLS]"),
        ("a tool_call, or a function_call", ""),
        ("TOOL_CALLS", ""),
        ("", ""),
    ],
)
def test_marks_of_chat_templates(text: str, name: str) -> None:
    assert marked(text, ()) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('{"type": "function_call", "name": "x"}', "JSON"),
        (' [{"type": "tool_use", "name": "x"}]', "JSON"),
        ('[{"type": "text"}, {"type": "tool_use", "name": "x"}]', "JSON"),
        ('{"function": {"name": "x", "arguments": "{}"}}', "JSON"),
        ('{"status": "shipped"}', ""),
        ('{"name": "x", "arguments": {}}', ""),  # may be an answer in JSON
        ("[1, 2]", ""),
        ('See {"type": "function_call", "name": "x"}', ""),
        ('"function_call"', ""),
        ("{shrug}", ""),
    ],
)
def test_json_that_is_a_call(text: str, name: str) -> None:
    assert marked(text, ()) == name


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("Action: find\nAction Input: x", True),
        ("Thought: hm\nAction: find\nAction Input: x", True),
        ("Action: find\n\nAction Input: x", True),
        ("Action: find\nwhy not\nAction Input: x", True),
        ("Action: find\nwhy\nnot\nAction Input: x", False),
        ("**Action**: find\n**Action Input**: x", True),
        ("  Action:find\n  Action Input", True),
        ("Action 1: find\nAction Input 1: x", True),
        ("Action 123: find\nAction Input: x", True),
        ("Action 1234: find\nAction Input: x", False),
        ("Action：find\nAction Input：x", True),
        ("Next Action: find\nAction Input: x", False),
        ("Action: find\nNext Action Input: x", False),
        ("Action: find", False),
        ("action: find\naction input: x", False),
    ],
)
def test_labels_of_agents_that_reason_and_act(text: str, is_found: bool) -> None:
    assert marked(text, ()) == ("Action:" if is_found else "")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        # a name that is no word of prose
        ("I call get_order now.", "get_order"),
        ("searchOrders", "searchOrders"),
        ("get_orders", ""),
        ("forget_order", ""),
        ("get_order-list", ""),
        ("my-get_order", ""),
        # an ordinary word
        ("I cancel it.", ""),
        ("Refund is possible.", ""),
        ('Use "cancel" for it.', "cancel"),
        ("Use 'Refund' for it.", "Refund"),
        ("Use `cancel` for it.", "cancel"),
        ("'I cancel'", ""),
        ("<cancel/>", "cancel"),
        ("<cancel id='1'>", "cancel"),
        ("</cancel>", "cancel"),
        ("<cancelled>", ""),
        ("cancel(id=1)", "cancel"),
        ("cancel[A-1]", "cancel"),
        ('cancel{"id": 1}', "cancel"),
        ("cancel (or not)", ""),
        ("to-cancel(1)", ""),
        ("uncancel(1)", ""),
        ("cancel: 1", ""),
    ],
)
def test_names_of_tools_in_a_form_of_their_own(text: str, name: str) -> None:
    assert marked(text) == name
    assert marked(text, ()) == ""


@pytest.mark.parametrize("tools", [(), ("",)])
def test_no_tool_no_name(tools: tuple[str, ...]) -> None:
    assert marked("`` '' () cancel(1)", tools) == ""


def test_a_name_is_no_pattern() -> None:
    assert marked("call a.b now", ("a.b",)) == "a.b"
    assert marked("call a_b now", ("a.b",)) == ""


def test_a_mark_goes_before_json_labels_and_names() -> None:
    assert marked('[{"type": "tool_use", "name": "<tool_call>"}]') == "<tool_call>"
    assert marked("Action: get_order\nAction Input: 1") == "Action:"


BROKEN = '{"role": "assistant", "content": "I loo'


def test_what_broke_off_is_marked_beside_calls_and_a_notation_is_not() -> None:
    call = ParsedMessage("assistant", calls=(ParsedCall("get_order", {}, None, "1"),))
    broken, notation = ParsedMessage("assistant", BROKEN), ParsedMessage("assistant", "<tool_call>get_order")
    found = mark_text_calls(iter([notation, broken, call]), ["get_order"])
    assert [each.role for each in found] == ["assistant", "assistant", "unplaced", "assistant"]
    assert found[:2] == [notation, broken]
    assert found[2].value.names == ("JSON",)
    assert found[2].value.entry == BROKEN


def test_only_what_the_agent_says_is_marked() -> None:
    roles: tuple[Role, ...] = ("user", "tool", "system", "unplaced")
    others = [ParsedMessage(role, "<tool_call>") for role in roles]
    others += [ParsedMessage("assistant"), ParsedMessage("assistant", "")]
    assert mark_text_calls(others) == others
    assert mark_text_calls([]) == []


def test_each_mark_stands_after_its_message() -> None:
    first, second = ParsedMessage("assistant", "<tool_call>"), ParsedMessage("assistant", "get_order")
    found = mark_text_calls([first, ParsedMessage("user", "Hi"), second], TOOLS)
    assert [each.role for each in found] == ["assistant", "unplaced", "user", "assistant", "unplaced"]
    assert [each.value.names for each in found if each.role == "unplaced"] == [
        ("<tool_call>",),
        ("get_order",),
    ]
