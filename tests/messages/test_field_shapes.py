"""A call below a field known to hold none is not lost; what providers really write there is placed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from agenteval.importers.records import ToolSets, read_conversation

USER = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Ok."}
TEXT = {"type": "text", "text": "Ok."}
DID = {"tool": "wipe"}
NAMED = {"name": "wipe", "arguments": "{}"}
TOOL_USE = {"type": "tool_use", "id": "x", "name": "wipe", "input": {}}
FUNCTION_CALL = {"type": "function_call", "call_id": "c", "name": "wipe", "arguments": "{}"}
CHAT_CALL = {"id": "c", "type": "function", "function": NAMED}
OUTPUT = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ok."}]}


def exchange(response: Any, **request: Any) -> dict[str, Any]:
    return {"request": {"model": "m", "messages": [USER], **request}, "response": response}


def chat(**fields: Any) -> dict[str, Any]:
    return exchange({"choices": [{"message": ANSWER}], **fields})


def responses(*items: Any, **fields: Any) -> dict[str, Any]:
    return exchange({"object": "response", "status": "completed", "output": [*items, OUTPUT], **fields})


def google(*more: Any, **fields: Any) -> dict[str, Any]:
    first = {"content": {"role": "model", "parts": [{"text": "Ok."}]}, "finishReason": "STOP", **fields}
    return exchange({"candidates": [first, *more]})


def bedrock(*parts: Any, **fields: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": [*parts, {"text": "Ok."}]}
    return exchange({"output": {"message": message}, "stopReason": "end_turn", **fields})


def message(**fields: Any) -> dict[str, Any]:
    return {"messages": [USER, {**ANSWER, **fields}]}


def blocks(*more: Any) -> dict[str, Any]:
    return {"messages": [USER, {"role": "assistant", "content": [*more, TEXT]}]}


def lines(*events: Any) -> str:
    return "\n".join(map(json.dumps, events))


def sse(*events: Any) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


def chunks(delta: Mapping[str, Any], **beside: Any) -> str:
    first = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Ok.", **delta}, **beside}]}
    return sse(first, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}) + "data: [DONE]\n\n"


def anthropic(*blocks: Any, given: Any = (), **beside: Any) -> list[Any]:
    begun = {"type": "message_start", "message": {"role": "assistant", "content": [*given]}}
    grown = [
        event
        for at, block in enumerate(blocks)
        for event in (
            {"type": "content_block_start", "index": at, "content_block": block},
            {"type": "content_block_stop", "index": at, **beside},
        )
    ]
    return [
        begun,
        *grown,
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]


def completed(*items: Any) -> dict[str, Any]:
    response = {"object": "response", "status": "completed", "output": [*items]}
    return {"type": "response.completed", "response": response}


ITEM_DONE = {"type": "response.output_item.done", "output_index": 0, "item": FUNCTION_CALL}
GOOGLE_PIECE = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Ok."}]}}]}
GOOGLE_END = {
    "candidates": [{"content": {"role": "model", "parts": [{"text": "."}]}, "finishReason": "STOP"}]
}
STEPS = {"steps": [DID]}
BEDROCK_CALL = {"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}
GOOGLE_CALL = {"functionCall": {"name": "f", "args": {}}}

HIDDEN: dict[str, Any] = {
    "two streams of Anthropic's": exchange(lines(*anthropic(TEXT), *anthropic(TOOL_USE))),
    "two streams as events": exchange(sse(*anthropic(TEXT), *anthropic(TOOL_USE))),
    "two streams of OpenAI's": exchange(lines(completed(OUTPUT), completed(FUNCTION_CALL))),
    "an item that the end leaves out": exchange(lines(ITEM_DONE, completed(OUTPUT))),
    "an end without items": exchange(lines(ITEM_DONE, completed())),
    "a call that is there from the beginning": exchange(lines(*anthropic(TEXT, given=[TOOL_USE]))),
    "beside a block": exchange(lines(*anthropic(TEXT, steps=[DID]))),
    "in a delta": exchange(chunks({"steps": [DID]})),
    "a part of a delta": exchange(chunks({"content": [TEXT, TOOL_USE]})),
    "the second choice of a stream": exchange(
        sse({"choices": [{"index": 1, "delta": {"tool_calls": [{"index": 0, **CHAT_CALL}]}}]})
        + chunks({"content": "Ok."})
    ),
    "messages beside a choice": exchange(
        {"choices": [{"message": ANSWER}], "messages": [{"role": "assistant", "tool_calls": [CHAT_CALL]}]}
    ),
    "an output beside a choice": exchange({"choices": [{"message": ANSWER}], "output": [FUNCTION_CALL]}),
    "beside a delta": exchange(chunks({}, steps=[DID])),
    "filters in a chunk": exchange(chunks({}, content_filter_results={"hate": {"filtered": False, **STEPS}})),
    "a piece of Google's": exchange(
        lines({"candidates": [{**GOOGLE_PIECE["candidates"][0], **STEPS}]}, GOOGLE_END)
    ),
    "a response as JSON": exchange(
        json.dumps({"text": "Ok.", "tool_calls": [{"name": "wipe", "parameters": {}}]})
    ),
    "the second choice": exchange(
        {"choices": [{"message": ANSWER}, {"message": {**ANSWER, "tool_calls": [CHAT_CALL]}}]}
    ),
    "another candidate": google(DID),
    "beside the parts": google(content={"role": "model", "parts": [{"text": "Ok."}], **STEPS}),
    "beside the message of an output": exchange(
        {"output": {"message": {"role": "assistant", "content": [{"text": "Ok."}]}, **STEPS}}
    ),
    "a delta beside a message": exchange(
        {"choices": [{"message": ANSWER, "delta": {"tool_calls": [CHAT_CALL]}}]}
    ),
    **{
        f"'{key}' of a response": chat(**{key: STEPS})
        for key in (
            "moderation",
            "billing",
            "conversation",
            "metrics",
            "performanceConfig",
            "time_info",
            "x_groq",
            "usage_breakdown",
            "warnings",
            "timings",
            "prompt_logprobs",
            "top_logprobs",
            "content",
            "output",
            "additionalModelResponseFields",
            "headers",
            "ResponseMetadata",
            "modelStatus",
            "generations",
            "usage",
        )
    },
    "an annotation": message(annotations=[{"type": "url_citation", "url_citation": {"url": "u"}, **STEPS}]),
    "a call as an annotation": message(annotations=[{"cited_text": "x", **TOOL_USE}]),
    "a citation": message(citations=[{"type": "url_citation", "url": "u", **STEPS}]),
    "who called": blocks(
        {
            "type": "server_tool_use",
            "id": "s",
            "name": "f",
            "input": {},
            "caller": {"type": "direct", **STEPS},
        }
    ),
    "a call as metadata": message(metadata=NAMED),
    "a call in metadata": message(metadata={"steps": NAMED}),
    "a call of a provider's metadata": message(provider_metadata={"x": {**TOOL_USE, "input": "{}"}}),
    "the custom tool of a call": message(
        tool_calls=[{"id": "c", "type": "custom", "custom": {"name": "f", "input": "4", **STEPS}}]
    ),
    "a result of Bedrock's": {
        "messages": [
            USER,
            {"role": "assistant", "content": [BEDROCK_CALL]},
            {
                "role": "user",
                "content": [{"toolResult": {"toolUseId": "t", "content": [{"text": "1"}], **STEPS}}],
            },
            ANSWER,
        ]
    },
    "a result of Google's": {
        "contents": [
            {"role": "user", "parts": [{"text": "Hi"}]},
            {"role": "model", "parts": [GOOGLE_CALL]},
            {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}, **STEPS}}]},
            {"role": "model", "parts": [{"text": "Ok."}]},
        ]
    },
    "a request": exchange({"choices": [{"message": ANSWER}]}, steps=[DID]),
    "a call beside a request": {**chat(), "steps": TOOL_USE},
    "what a model thought": message(reasoning_details=[{"type": "reasoning.text", "text": "Hm.", **STEPS}]),
    "a tool that is declared": message(tools=[DID]),
}


@pytest.mark.parametrize("record", HIDDEN.values(), ids=HIDDEN)
def test_a_call_is_read_or_what_it_stands_in_is_not_placed(record: Any) -> None:
    turns = read_conversation(record, ToolSets()).parsed.trajectory.all_turns
    assert "wipe" in [call.name for turn in turns for call in turn.tool_calls] or any(
        turn.unplaced for turn in turns
    )


RESULT_OF_A_SEARCH = {"type": "tool", "id": "f:0", "tool_output": {"content": "Sunny"}}
HARMLESS: dict[str, Any] = {
    "tool_usage": responses(
        tool_usage={"image_gen": {"input_tokens": 0, "output_tokens_details": {"image_tokens": 0}}}
    ),
    "billing": responses(billing={"payer": "developer"}),
    "text": responses(text={"format": {"type": "text"}, "verbosity": "medium"}, tool_choice="auto", tools=[]),
    "content_filters": responses(
        content_filters=[
            {
                "blocked": False,
                "source_type": "prompt",
                "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}},
            }
        ]
    ),
    "prompt_cache_options": responses(prompt_cache_options={"mode": "explicit", "ttl": "30m"}),
    "latency_checkpoint": chat(latency_checkpoint={"engine_ttft_ms": 27}, x_groq={"id": "r"}),
    "stream_options": chat(stream_options={"include_usage": True}),
    "finish_details": exchange({"choices": [{"message": ANSWER, "finish_details": {"type": "max_tokens"}}]}),
    "listed tools": responses(
        {
            "type": "mcp_list_tools",
            "id": "m",
            "server_label": "s",
            "tools": [
                {
                    "name": "f",
                    "description": "d",
                    "input_schema": {"type": "object"},
                    "annotations": {"read_only": True},
                }
            ],
        }
    ),
    "found tools": responses(
        {"type": "tool_search_call", "call_id": "c", "arguments": {}},
        {
            "type": "tool_search_output",
            "call_id": "c",
            "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {}}],
        },
    ),
    "a breakpoint": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Hi", "prompt_cache_breakpoint": {"mode": "explicit"}}
                ],
            },
            ANSWER,
        ]
    },
    "another model": blocks({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}),
    "another tool": {
        "messages": [
            USER,
            {
                "role": "system",
                "content": [{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "f"}}],
            },
            ANSWER,
        ]
    },
    "graph_data": message(graph_data={"sources": None, "status": None}),
    "Cohere's citations": message(
        citations=[
            {"start": 0, "end": 2, "text": "Ok", "type": "TEXT_CONTENT", "sources": [RESULT_OF_A_SEARCH]}
        ]
    ),
    "Bedrock's citations": bedrock(
        {
            "citationsContent": {
                "content": [{"text": "x"}],
                "citations": [
                    {
                        "title": "t",
                        "source": "u",
                        "sourceContent": [{"text": "y"}],
                        "location": {"searchResultLocation": {"searchResultIndex": 0, "start": 0}},
                    }
                ],
            }
        }
    ),
    "guardContent": {
        "messages": [
            {
                "role": "user",
                "content": [{"guardContent": {"text": {"text": "Hi", "qualifiers": ["query"]}}}],
            },
            ANSWER,
        ]
    },
    "groundingMetadata": google(
        groundingMetadata={
            "searchEntryPoint": {"renderedContent": "<p>"},
            "groundingChunks": [
                {"web": {"uri": "u", "title": "t"}},
                {"retrievedContext": {"text": "t", "customMetadata": [{"key": "k", "stringValue": "v"}]}},
            ],
            "groundingSupports": [{"segment": {"endIndex": 3, "text": "Ok."}, "groundingChunkIndices": [0]}],
            "webSearchQueries": ["q"],
        }
    ),
    "a file": message(
        annotations=[{"type": "file", "file": {"hash": "h", "name": "a.pdf", "content": [TEXT]}}]
    ),
    "a call without a name or arguments": message(
        tool_calls=[{"id": "", "type": "function", "function": {"name": "", "arguments": ""}}]
    ),
    "details of thoughts": message(
        reasoning_details=[
            {"type": "reasoning.text", "text": "Hm.", "signature": "s", "format": "f", "index": 0},
            {"type": "reasoning.encrypted", "data": "x", "id": "i"},
        ]
    ),
    "thoughts of Bedrock's": bedrock(
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "s"}}}
    ),
    "logprobs": exchange(
        {
            "choices": [
                {
                    "message": ANSWER,
                    "logprobs": {
                        "content": [
                            {
                                "token": "Ok",
                                "logprob": -0.1,
                                "bytes": [79],
                                "top_logprobs": [{"token": "Ok", "logprob": -0.1}],
                            }
                        ],
                        "refusal": None,
                    },
                }
            ]
        }
    ),
    "Perplexity's": chat(
        citations=["https://a"], search_results=[{"title": "t", "url": "u", "date": "d", "snippet": "s"}]
    ),
    "usage": chat(
        usage={
            "prompt_tokens": 1,
            "completion_tokens": 1,
            "cost_details": {"upstream": None},
            "server_tool_use": {"web_search_requests": 1},
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 1}],
        }
    ),
    "a citation in a delta": exchange(
        lines(
            *anthropic(TEXT)[:2],
            {
                "type": "content_block_delta",
                "index": 0,
                "delta": {
                    "type": "citations_delta",
                    "citation": {"type": "char_location", "cited_text": "x", "document_index": 0},
                },
            },
            *anthropic(TEXT)[2:],
        )
    ),
    "an attachment": {
        "messages": [
            {
                "role": "user",
                "content": "Hi",
                "attachments": [{"file_id": "f", "tools": [{"type": "file_search"}]}],
            },
            ANSWER,
        ]
    },
    "a speaker": message(author={"role": "assistant", "name": "Bob", "metadata": {"a": "b"}}),
    "two choices": exchange({"choices": [{"message": ANSWER}, {"message": ANSWER}]}),
}


@pytest.mark.parametrize("record", HARMLESS.values(), ids=HARMLESS)
def test_what_providers_write_beside_a_message_is_placed(record: Any) -> None:
    turns = read_conversation(record, ToolSets()).parsed.trajectory.all_turns
    assert [each for turn in turns for each in turn.unplaced] == []


def test_a_search_of_googles_is_a_call_with_its_result() -> None:
    search = {"id": "s", "toolType": "GOOGLE_SEARCH_WEB"}
    parts = [
        {"toolCall": {**search, "args": {"queries": ["a"]}}},
        {"toolResponse": {**search, "response": {"found": 1}}},
        {"text": "Ok."},
    ]
    (turn,) = read_conversation(
        exchange({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]}),
        ToolSets(),
    ).parsed.trajectory.all_turns
    (call,) = turn.tool_calls
    assert (call.name, call.args, call.result and call.result.value) == (
        "google_search_web",
        {"queries": ["a"]},
        {"found": 1},
    )
    assert not turn.unplaced
