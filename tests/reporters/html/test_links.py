"""The links within a page lead to one conversation or one filter, whatever the names are."""

from __future__ import annotations

import pytest

from agenteval.core.scenario import SampleKey
from agenteval.reporters.html.links import RESULTS, conversation_link, filter_link


@pytest.mark.parametrize(
    ("fields", "turn", "link"),
    [
        ({"scenario": "a"}, None, "#/c/a/1?agent=bot"),
        ({"scenario": "a", "epoch": 2}, None, "#/c/a/3?agent=bot"),
        ({"scenario": "a"}, 0, "#/c/a/1/turn/1?agent=bot"),
        ({"scenario": "a", "epoch": 9}, 11, "#/c/a/10/turn/12?agent=bot"),
        ({"scenario": "a", "variant": "v"}, None, "#/c/a/1?agent=bot&variant=v"),
        ({"scenario": "a", "agent": ""}, None, "#/c/a/1?"),
        ({"scenario": "a", "agent": "", "variant": "v"}, 1, "#/c/a/1/turn/2?variant=v"),
        ({"scenario": "log.jsonl:4"}, None, "#/c/log.jsonl%3A4/1?agent=bot"),
        ({"scenario": "a/1?x#y&z=%"}, None, "#/c/a%2F1%3Fx%23y%26z%3D%25/1?agent=bot"),
        ({"scenario": "a", "agent": "my/bot & co+"}, None, "#/c/a/1?agent=my%2Fbot%20%26%20co%2B"),
        ({"scenario": "a", "variant": "x=1,y"}, None, "#/c/a/1?agent=bot&variant=x%3D1%2Cy"),
        ({"scenario": "é \"'<>"}, None, "#/c/%C3%A9%20%22%27%3C%3E/1?agent=bot"),
        ({"scenario": "a\ud83d", "agent": "\ud83d"}, None, "#/c/a%3F/1?agent=%3F"),
    ],
)
def test_a_conversation_has_one_link(fields: dict[str, object], turn: int | None, link: str) -> None:
    key = SampleKey.model_validate({"agent": "bot", **fields})
    assert conversation_link(key, turn) == link


@pytest.mark.parametrize(
    ("query", "link"),
    [
        ("", "#/?q="),
        ("v:failed", "#/?q=v%3Afailed"),
        ("tag:a b", "#/?q=tag%3Aa%20b"),
        ("issue:I1&all=1", "#/?q=issue%3AI1%26all%3D1"),
        ("é/ü?#", "#/?q=%C3%A9%2F%C3%BC%3F%23"),
        ("\ud83d", "#/?q=%3F"),
    ],
)
def test_a_filter_has_one_link(query: str, link: str) -> None:
    assert filter_link(query) == link


def test_the_list_is_the_first_view() -> None:
    assert RESULTS == "#/"
