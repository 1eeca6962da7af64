"""The texts in the parts of a content, and what in a part may be a call."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.messages.texts import (
    is_call_free_kind,
    is_media_kind,
    is_silent_kind,
    is_text_part,
    join_texts,
    passages_in,
    text_in,
    unplaced_in_part,
)


@pytest.mark.parametrize(
    ("kind", "silent"),
    [
        ("step-start", True), ("mcp_list_tools", True), ("mcp_approval_response", True),
        ("compaction", True), ("tool_search_output", True), ("reasoning", True), ("reasoning.text", True),
        ("redacted_thinking", True), ("thinking", True), ("thinking_delta", True), ("thoughts", True),
        ("text", False), ("my_reasoning", False), ("step-finish", False), ("", False),
    ],
)  # fmt: skip
def test_kinds_that_nobody_is_shown(kind: str, silent: bool) -> None:
    assert is_silent_kind(kind) is silent


@pytest.mark.parametrize(
    ("kind", "call_free"),
    [
        ("text", True), ("input_text", True), ("Output_Text", True), ("summary_text", True),
        ("reasoning", True), ("thoughts", True), ("step-start", True), ("input_image", True),
        ("resource_link", True), ("data", True), ("refusal", True), ("citation", True), ("step-finish", True),
        ("tool_addition", True), ("hologram", False), ("tool_use", False), ("reasoning_more", False),
        ("image_search", False), ("", False),
    ],
)  # fmt: skip
def test_kinds_without_calls(kind: str, call_free: bool) -> None:
    assert is_call_free_kind(kind) is call_free


@pytest.mark.parametrize(
    ("kind", "media"),
    [
        ("image", True), ("input_image", True), ("image_url", True), ("Output-Audio", True),
        ("files", True), ("video2", True), ("document", True), ("multimedia", False), ("media", True),
        ("blob", True), ("uri", True), ("text", False), ("profile", False), ("", False),
    ],
)  # fmt: skip
def test_kinds_of_media(kind: str, media: bool) -> None:
    assert is_media_kind(kind) is media


@pytest.mark.parametrize(
    ("part", "is_text"),
    [
        ({"type": "text", "text": "a"}, True),
        ({"type": "input_text", "text": ""}, True),
        ({"type": "output_text", "text": "a", "annotations": []}, True),
        ({"type": "summary_text", "text": "a"}, True),
        ({"type": "text", "text": {"value": "a"}}, False),
        ({"type": "text"}, False),
        ({"text": "a"}, False),
        ({"type": "refusal", "text": "a"}, False),
        ("a", False),
        (None, False),
    ],
)
def test_parts_of_text_alone(part: Any, is_text: bool) -> None:
    assert is_text_part(part) is is_text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ("a", "a"),
        (None, ""),
        ({}, ""),
        (5, "5"),
        (["é", 1], '["é", 1]'),
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "text", "text": ""}, ""),
        ({"type": "text", "text": None}, ""),
        ({"type": "text"}, None),
        ({"type": "text", "text": 5}, None),
        ({"type": "text", "text": {"value": "a"}}, "a"),
        ({"type": "text", "text": {"text": "a"}}, "a"),
        ({"type": "text", "text": {"value": 5, "text": "a"}}, None),
        ({"type": "text", "text": ["a", {"type": "text", "text": "b"}]}, "a\nb"),
        ({"type": "text", "text": ["a", 5]}, None),
        ({"type": "text", "text": []}, None),
        ({"type": "refusal", "refusal": "No."}, "No."),
        ({"type": "markdown", "content": "a"}, "a"),
        ({"type": "x", "value": "a"}, "a"),
        ({"type": "x", "value": "a", "content": "b", "refusal": "c", "text": "d"}, "d"),
        ({"type": "x", "value": "a", "content": "b", "refusal": "c"}, "c"),
        ({"type": "x", "value": "a", "content": "b"}, "b"),
        ({"type": "x", "data": "a"}, None),
        # thoughts
        ({"type": "reasoning", "text": "Hm."}, ""),
        ({"type": "thinking", "thinking": "Hm."}, ""),
        ({"text": "Hm.", "thought": True}, ""),
        ({"text": "a", "thought": False}, "a"),
        ({"text": "a", "thought": "yes"}, "a"),
        # media
        ({"type": "input_audio", "transcript": "a", "data": "x"}, "a"),
        ({"type": "file", "text": "a"}, "a"),
        ({"type": "image", "refusal": "No."}, "No."),
        ({"type": "file", "content": "aGk="}, None),
        ({"type": "image", "value": "aGk="}, None),
        # without a type
        ({"text": "a"}, "a"),
        ({"refusal": "No."}, "No."),
        ({"content": "a"}, None),
        ({"value": "a"}, None),
        ({"json": {"é": 1}}, '{"json": {"é": 1}}'),
        ({"image": {"source": "x"}}, '{"image": {"source": "x"}}'),
        ({"other": 1}, None),
    ],
)
def test_the_text_of_a_part(part: Any, text: str | None) -> None:
    assert text_in(part) == text


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        ([], ""),
        (["", ""], ""),
        (["a"], "a"),
        (["a", "b"], "a\nb"),
        (["a", "", "b"], "a\nb"),
        (["a ", "b"], "a b"),
        (["a\n", "b"], "a\nb"),
        (["a", " b"], "a b"),
        (["a", "\tb"], "a\tb"),
        (["", "b", "c"], "b\nc"),
    ],
)
def test_texts_are_kept_apart(texts: list[str], joined: str) -> None:
    assert join_texts(texts) == joined


@pytest.mark.parametrize("sign", list(".,;:!?)]}%…'\"”’»-"))
def test_a_sign_that_ends_stays_at_its_word(sign: str) -> None:
    assert join_texts(["a", f"{sign}b"]) == f"a{sign}b"


@pytest.mark.parametrize("sign", list("-/([{_$€#@'\"“‘«"))
def test_a_sign_that_begins_stays_at_its_word(sign: str) -> None:
    assert join_texts([f"a{sign}", "b"]) == f"a{sign}b"


@pytest.mark.parametrize("sign", list("(&*+<="))
def test_other_signs_keep_words_apart(sign: str) -> None:
    assert join_texts(["a", f"{sign}b"]) == f"a\n{sign}b"


@pytest.mark.parametrize(
    ("parts", "cited"),
    [
        ([{"citations": [{"cited_text": "a", "title": "T"}, {"cited_text": "b"}]}], ["a", "b"]),
        ([{"annotations": [{"cited_text": "b"}], "citations": [{"cited_text": "a"}]}], ["a", "b"]),
        (
            [{"citations": [{"cited_text": "a"}]}, "text", None, {"citations": [{"cited_text": ""}]}],
            ["a", ""],
        ),
        ([{"citations": [{"cited_text": 5}, {"url": "x"}, "a"]}], []),
        ([{"citations": {"cited_text": "a"}}], []),
        ([{"sources": [{"cited_text": "a"}]}], []),
        ([], []),
    ],
)
def test_cited_passages(parts: list[Any], cited: list[str]) -> None:
    assert passages_in(parts) == [{"cited_text": each} for each in cited]


CALL = {"type": "tool_use", "name": "cancel", "input": {}}
NOTE = {"anything": "x"}


@pytest.mark.parametrize(
    "part",
    [
        None, "text", 5, [], ["a"], {},
        {"type": "text", "text": "a"},
        {"type": "text", "text": {"value": "a", "annotations": []}},
        {"type": "output_text", "output_text": {"value": "a"}},
        {"type": "text", "content": [{"title": "T"}]},
        {"type": "refusal", "refusal": "No."},
        {"type": "citation", "citation": {"url": "x"}},
        {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "tool": {"id": "x"}},
        {"type": "reasoning", "reasoning": {"text": "Hm."}, "content": [{"text": "Hm."}]},
        {"type": "thinking", "data": {"signature": "x"}, "value": {"text": "x"}},
        {"type": "image", "source": {"type": "base64", "data": "x"}, "image": {"url": "x"}},
        {"type": "input_file", "file_data": {"name": "x"}, "url": {"uri": "x"}, "text": {"text": "x"}},
        {"type": "mcp_list_tools", "tools": [{"name": "x", "input_schema": {"type": "object"}}]},
        {"type": "mcp_approval_response", "approval_request": NOTE},
        {"text": {"value": "a"}}, {"json": NOTE}, {"image": {"source": {"bytes": "x"}}},
        {"inlineData": {"mimeType": "x", "data": "y"}}, {"file_data": {"file_uri": "x"}},
        {"thought": True, "text": "a"}, {"reasoningContent": {"reasoningText": {"text": "Hm."}}},
        {"thoughtSignature": {"id": "x"}, "text": "a"}, {"cachePoint": {"type": "default"}},
        {"citationsContent": {"content": [{"text": "a"}]}}, {"searchResult": {"title": "x"}},
        {"guardContent": {"text": {"text": "a"}}},
    ],
)  # fmt: skip
def test_parts_without_calls(part: Any) -> None:
    assert list(unplaced_in_part(part)) == []


@pytest.mark.parametrize(
    ("part", "names"),
    [
        ([{}], ()),
        ([{"type": "text"}], ()),
        ({"type": "hologram", "text": "a"}, ("hologram",)),
        ({"type": "hologram"}, ("hologram",)),
        ({"other": 1, "more": 2}, ("other", "more")),
        ({"text": "a", "other": NOTE}, ("other",)),
        ({"text": NOTE}, ("text",)),
        ({"type": "text", "text": "a", "other": NOTE}, ("other",)),
        ({"type": "text", "text": NOTE}, ("text",)),
        ({"type": "text", "from": [NOTE], "text": [CALL]}, ("from", "text")),
        ({"type": "image", "image": CALL}, ("image",)),
        ({"type": "image", "source": NOTE}, ("source",)),
        ({"type": "image", "text": {"size": 1}}, ()),
        ({"type": "reasoning", "reasoning": CALL}, ("reasoning",)),
        ({"type": "reasoning", "tools": CALL}, ("tools",)),
        ({"type": "mcp_list_tools", "content": NOTE}, ("content",)),
        ({"type": "mcp_approval_response", "approval_request": CALL}, ("approval_request",)),
        ({"json": CALL}, ("json",)),
    ],
)
def test_what_may_be_a_call_in_a_part(part: Any, names: tuple[str, ...]) -> None:
    found = list(unplaced_in_part(part))
    assert tuple(name for each in found for name in each.names) == names


def test_the_kind_of_a_part_is_told_in_short() -> None:
    (found,) = unplaced_in_part({"type": "x" * 41})
    assert "x" * 40 in found.what
    assert "x" * 41 not in found.what


KINDS = """
reasoning thinking redacted_thinking reasoning.text reasoning.summary reasoning.encrypted reasoning_text
reasoning_summary reasoning_content thought thoughts thinking_delta thinking_text reasoning-text refusal
source source-url reference citation citations search_result guard_content cache_point container_upload
step-finish usage error markdown fallback tool_addition image audio video file document media blob uri data
hosted_file image_url audio_url video_url file_url document_url image_file file_id input_image input_audio
input_video input_file output_image output_audio image-url image-data image-file-id file-url file-data
file-id inline_data file_data resource resource_link multimodal
"""


def test_all_kinds_without_calls() -> None:
    assert [kind for kind in KINDS.split() if not is_call_free_kind(kind)] == []


@pytest.mark.parametrize(
    ("keys", "fitting"),
    [
        ("text refusal guardContent", {"value": "a"}),
        ("image document video audio file inlineData inline_data fileData file_data", {"mimeType": "x"}),
        ("thought reasoning reasoningContent", {"signature": "x"}),
        ("thoughtSignature thought_signature cachePoint", {"ttl": "5m"}),
        ("citationsContent searchResult", {"title": "x"}),
    ],
)
def test_keys_that_tell_what_a_part_is(keys: str, fitting: dict[str, Any]) -> None:
    for key in keys.split():
        assert list(unplaced_in_part({key: fitting})) == [], key
        assert [each.names for each in unplaced_in_part({key: NOTE})] == [(key,)]
