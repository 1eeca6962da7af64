"""What was made of a text is kept, within bounds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agenteval.core import text_cache
from agenteval.core.text_cache import ENTRY_CHARACTERS, keep_by_text


def counted(monkeypatch: pytest.MonkeyPatch, limit: int) -> tuple[list[str], Callable[..., str]]:
    """The texts that were looked at, and the function that keeps what it made of them."""
    monkeypatch.setattr(text_cache, "MAX_CHARACTERS", limit)
    made: list[str] = []

    @keep_by_text
    def shout(text: str, end: str = "!", *, times: int = 1) -> str:
        made.append(text)
        return text.upper() + end * times

    return made, shout


def test_a_text_is_looked_at_once_whatever_object_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    made, shout = counted(monkeypatch, 1_000)
    assert [shout("".join(["a", "b"])) for _ in range(3)] == ["AB!"] * 3
    assert made == ["ab"]


def test_options_tell_results_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    made, shout = counted(monkeypatch, 1_000)
    for _ in range(2):
        assert [shout("a"), shout("a", "?"), shout("a", times=2)] == ["A!", "A?", "A!!"]
    assert made == ["a"] * 3


def test_the_oldest_are_dropped_when_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    made, shout = counted(monkeypatch, 2 * (10 + ENTRY_CHARACTERS))
    texts = [letter * 10 for letter in "abc"]
    for text in texts:
        shout(text)
    shout(texts[2])
    shout(texts[1])
    assert made == texts
    shout(texts[0])
    assert made == [*texts, texts[0]]


def test_a_text_beyond_all_bounds_is_kept_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made, shout = counted(monkeypatch, 100)
    huge = "x" * 1_000
    for text in ("a", huge, huge, "a", "a", huge):
        shout(text)
    assert made == ["a", huge, "a", huge]


def test_short_texts_are_bounded_too(monkeypatch: pytest.MonkeyPatch) -> None:
    made, shout = counted(monkeypatch, 10 * ENTRY_CHARACTERS)
    for number in range(20):
        shout(str(number))
    shout("0")
    assert made[20:] == ["0"]


def test_an_error_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    @keep_by_text
    def fail(text: str) -> str:
        calls.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            fail("a")
    assert calls == ["a", "a"]
