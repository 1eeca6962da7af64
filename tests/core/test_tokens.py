"""Estimates of tokens, without a vocabulary that would have to be downloaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from hashlib import sha1
from pathlib import Path
from types import SimpleNamespace

import pytest

from agenteval.core import tokens


@pytest.fixture(autouse=True)
def no_vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    tokens._counter.cache_clear()
    yield
    tokens._counter.cache_clear()


@pytest.mark.parametrize(
    ("text", "count"),
    [
        *(("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("x" * 400, 100)),
        *(("éé", 1), ("ééa", 2), ("😀", 1), ("\ud800", 1)),
    ],
)
def test_four_bytes_are_a_token(text: str, count: int) -> None:
    assert tokens.count_tokens(text) == count


def test_a_file_that_is_not_the_vocabulary_is_none(tmp_path: Path) -> None:
    path = tokens.vocabulary_path()
    assert path is not None
    assert path == tmp_path / sha1(tokens.VOCABULARY.encode()).hexdigest()
    assert not tokens.is_vocabulary_available()
    path.write_bytes(b"cut")
    assert not tokens.is_vocabulary_available()
    path.unlink()
    path.mkdir()
    assert not tokens.is_vocabulary_available()
    assert not tokens.is_vocabulary(b"")


@pytest.mark.parametrize(
    ("tiktoken", "data_gym", "folder"),
    [("a", "b", "a"), (None, "b", "b"), ("", "b", None), (None, "", None)],
)
def test_where_the_vocabulary_lies(
    monkeypatch: pytest.MonkeyPatch, tiktoken: str | None, data_gym: str | None, folder: str | None
) -> None:
    for name, value in (("TIKTOKEN_CACHE_DIR", tiktoken), ("DATA_GYM_CACHE_DIR", data_gym)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    path = tokens.vocabulary_path()
    assert (path.parent.name if path else None) == folder


def test_the_usual_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    path = tokens.vocabulary_path()
    assert path
    assert path.parent.name == "data-gym-cache"


def test_no_place_no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    assert not tokens.is_vocabulary_available()


def test_with_the_vocabulary_its_tokens_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def encode(text: str, disallowed_special: tuple[str, ...]) -> list[str]:
        assert disallowed_special == ()
        return text.split()

    def get_encoding(name: str) -> SimpleNamespace:
        asked.append(name)
        return SimpleNamespace(encode=encode)

    monkeypatch.setattr(tokens, "is_vocabulary", lambda data: data == b"vocabulary")
    monkeypatch.setitem(sys.modules, "tiktoken", SimpleNamespace(get_encoding=get_encoding))
    path = tokens.vocabulary_path()
    assert path
    path.write_bytes(b"vocabulary")
    assert tokens.is_vocabulary_available()
    assert [tokens.count_tokens(text) for text in ("one two three", "", "<|endoftext|>")] == [3, 0, 1]
    assert asked == ["o200k_base"]
