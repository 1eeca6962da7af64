"""Answers on disk: one file per question; what is damaged is a miss, what cannot be written costs a call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from agenteval.adapters.traffic.answer_stores import Question, hash_of
from agenteval.adapters.traffic.cache import AnswerCache
from agenteval.core.protocols import ModelReply, ModelRequest
from agenteval.core.trajectory import Usage
from agenteval.files.redaction import redactor

SECRET = "sk-very-secret"


class Grade(BaseModel):
    score: int
    reason: str = ""


REQUEST = ModelRequest("judge", "s", "p", Grade)
QUESTION = Question(REQUEST, "openai/x", None)
OTHER = Question(replace(REQUEST, prompt="q"), "openai/x", None)
REPLY = ModelReply(Grade(score=3, reason="ok"), Usage(calls=1, input_tokens=9, cost=1.0), "openai/x-1")


def cache(folder: Path, notices: list[str] | None = None) -> AnswerCache:
    noticed = [] if notices is None else notices
    return AnswerCache(folder, notify=noticed.append, redact=redactor([SECRET]))


def only_file(folder: Path) -> Path:
    (path,) = [each for each in folder.rglob("*") if each.is_file()]
    return path


def test_an_answer_is_found_again_and_costs_nothing(tmp_path: Path) -> None:
    store = cache(tmp_path / "c")
    assert store.get(QUESTION) is None
    assert store.put(QUESTION, REPLY) is REPLY
    for each in (store, cache(tmp_path / "c")):
        assert each.get(QUESTION) == REPLY._replace(usage=Usage(cached_calls=1, cost=0.0))
        assert each.get(OTHER) is None


def test_a_file_is_named_after_its_question(tmp_path: Path) -> None:
    cache(tmp_path).put(QUESTION, REPLY)
    key = QUESTION.hash
    path = only_file(tmp_path)
    assert path == tmp_path / key[:2] / f"{key}.json"
    check, _, text = path.read_text(encoding="utf-8").partition("\n")
    assert check == hash_of(text)
    assert json.loads(text) == {
        "key": key,
        "value": {"score": 3, "reason": "ok"},
        "model": "openai/x-1",
        "scripted": False,
    }


def test_neither_secrets_nor_prompts_are_in_it(tmp_path: Path) -> None:
    reply = REPLY._replace(value=Grade(score=3, reason=f"the key is {SECRET}"))
    store = cache(tmp_path)
    question = Question(replace(REQUEST, system="my system", prompt="my prompt"), "openai/x", None)
    assert store.put(question, reply) is reply
    text = only_file(tmp_path).read_text(encoding="utf-8")
    assert not [word for word in (SECRET, "my system", "my prompt") if word in text]
    found = store.get(question)
    assert found is not None
    assert found.value == Grade(score=3, reason="the key is ***")


def rewritten(path: Path, text: str, check: str | None = None) -> None:
    path.write_text(f"{hash_of(text) if check is None else check}\n{text}", encoding="utf-8")


def test_a_file_that_was_rewritten_as_a_whole_is_read(tmp_path: Path) -> None:
    cache(tmp_path).put(QUESTION, REPLY)
    path = only_file(tmp_path)
    entry = json.loads(path.read_text(encoding="utf-8").partition("\n")[2])
    rewritten(path, json.dumps({**entry, "model": "m"}))
    found = cache(tmp_path).get(QUESTION)
    assert found is not None
    assert found.model == "m"


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_text("", encoding="utf-8"),
        lambda path: path.write_text(path.read_text(encoding="utf-8")[:-5], encoding="utf-8"),
        lambda path: path.write_text(path.read_text(encoding="utf-8") + " ", encoding="utf-8"),
        lambda path: path.write_bytes(b"\xff\xfe"),
        lambda path: rewritten(path, path.read_text(encoding="utf-8").partition("\n")[2], check="0" * 64),
        lambda path: rewritten(path, "not json"),
        lambda path: rewritten(path, "[]"),
        lambda path: rewritten(path, json.dumps({"key": OTHER.hash, "value": {"score": 3}, "model": "m"})),
        lambda path: rewritten(path, json.dumps({"value": {"score": 3}, "model": "m", "scripted": False})),
        lambda path: (path.unlink(), path.mkdir()),
    ],
)  # fmt: skip
def test_a_damaged_file_is_a_miss_and_is_replaced(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    store = cache(tmp_path)
    store.put(QUESTION, REPLY)
    path = only_file(tmp_path)
    damage(path)
    assert store.get(QUESTION) is None
    if path.is_file():
        store.put(QUESTION, REPLY)
        assert store.get(QUESTION) is not None


def test_an_answer_that_no_longer_fits_is_a_miss(tmp_path: Path) -> None:
    store = cache(tmp_path)
    store.put(QUESTION, REPLY)
    strict = replace(REQUEST, flaw_in=lambda *_: "bad")
    question = Question(strict, "openai/x", None)
    assert question.hash == QUESTION.hash
    assert store.get(question) is None


def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("a file", encoding="utf-8")
    notices: list[str] = []
    store = cache(tmp_path / "c", notices)
    for question in (QUESTION, OTHER):
        assert store.put(question, REPLY) is REPLY
        assert store.get(question) is None
    assert len(notices) == 1
    assert "cache" in notices[0]


def test_a_failed_write_leaves_nothing_behind(tmp_path: Path) -> None:
    key = QUESTION.hash
    in_the_way = tmp_path / key[:2] / f"{key}.json"
    (in_the_way / "x").mkdir(parents=True)
    notices: list[str] = []
    cache(tmp_path, notices).put(QUESTION, REPLY)
    assert len(notices) == 1
    assert sorted(in_the_way.parent.iterdir()) == [in_the_way]


def test_errors_are_not_kept(tmp_path: Path) -> None:
    cache(tmp_path).failed(QUESTION, OSError("down"))
    assert not list(tmp_path.iterdir())
