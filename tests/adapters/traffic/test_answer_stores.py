"""What was asked, under one hash; and the stores in which an answer is looked for, in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, Field

from agenteval.adapters.traffic.answer_stores import (
    Question,
    StoreBackedModel,
    hash_of,
    identity_of,
    reply_from_entry,
    reply_to_entry,
    schema_text,
    usable_reply,
)
from agenteval.conversation.current_sample import enter_sample
from agenteval.core.config import ModelConfig
from agenteval.core.errors import InfrastructureError
from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.scenario import SampleKey
from agenteval.core.trajectory import Usage
from tests.support.fake_models import FakeModel


class Grade(BaseModel):
    score: int
    reason: str = ""


class Strict(BaseModel):
    score: int = Field(le=5)
    reason: str = ""


REQUEST = ModelRequest("judge", "the system", "the prompt", Grade, Subject(scenario="s", turn=1, metric="m"))
KEY = SampleKey(scenario="s", agent="a")
BASE = Question(REQUEST, "openai/x", KEY)
REPLY = ModelReply(Grade(score=3, reason="ok"), Usage(calls=1, input_tokens=5), "openai/x-1")
ENTRY = {"value": {"score": 3, "reason": "ok"}, "model": "openai/x-1", "scripted": False}


def asked(**changed: Any) -> Question:
    return replace(BASE, request=replace(REQUEST, **changed))


# ── the hash ─────────────────────────────────────────────────────────────────────────────────────

OTHERS = {
    "model": replace(BASE, model="openai/y"),
    "role": asked(role="user"),
    "system": asked(system="another"),
    "prompt": asked(prompt="another"),
    "texts swapped": asked(system="the prompt", prompt="the system"),
    "shape": asked(reply=Strict),
    "form in the prompt": asked(states_form=True),
    "epoch": replace(BASE, sample=SampleKey(scenario="s", agent="a", epoch=1)),
}
SAME = {
    "again": asked(),
    "subject": asked(subject=Subject(scenario="t", turn=2, metric="n", text="x", epoch=7)),
    "flaws": asked(flaw_in=lambda *_: "bad", accepts_flawed=lambda *_: True),
    "shared prefixes": asked(shared=(3,)),
    "scenario of the sample": replace(BASE, sample=SampleKey(scenario="t", agent="b")),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_what_may_change_the_answer_changes_the_hash(other: Question) -> None:
    assert other.hash != BASE.hash
    assert len(other.hash) == 64


@pytest.mark.parametrize("other", SAME.values(), ids=SAME)
def test_what_cannot_change_the_answer_keeps_the_hash(other: Question) -> None:
    assert other.hash == BASE.hash


def test_outside_a_sample_the_subject_knows_the_epoch() -> None:
    def of_run(epoch: int) -> Question:
        return Question(replace(REQUEST, subject=Subject(epoch=epoch)), "openai/x", None)

    assert of_run(0).hash == BASE.hash
    assert of_run(1).hash == OTHERS["epoch"].hash


def test_what_must_not_come_from_a_store_has_no_hash() -> None:
    assert replace(BASE, model="").hash == ""


def test_the_hash_is_sha_256_also_of_half_a_character() -> None:
    assert hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert hash_of("\ud800") != hash_of("\ud801")


def test_equal_shapes_have_equal_texts() -> None:
    def shape(default: str) -> type[BaseModel]:
        class Made(BaseModel):
            said: str = default

        return Made

    assert shape("a") is not shape("b")
    assert schema_text(shape("a")) == schema_text(shape("b"))
    assert schema_text(Grade) != schema_text(Strict)


# ── the identity of a model ──────────────────────────────────────────────────────────────────────

MODEL = ModelConfig(model="openai/x")


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "openai/y"},
        {"base_url": "http://h"},
        {"temperature": 0.0},
        {"max_tokens": 5},
        {"extra": {"seed": 1}},
    ],
)
def test_settings_of_the_request_are_part_of_the_model(changed: dict[str, Any]) -> None:
    assert identity_of(MODEL.model_copy(update=changed)) != identity_of(MODEL)


@pytest.mark.parametrize(
    "changed",
    [
        {"api_key_env": "KEY"},
        {"client": "sdk"},
        {"timeout_s": 5.0},
        {"context": 9000},
        {"max_wait_s": 5.0},
        {"requests_per_minute": 60},
        {"tokens_per_minute": 9000},
    ],
)
def test_settings_that_are_not_sent_are_not(changed: dict[str, Any]) -> None:
    assert identity_of(MODEL.model_copy(update=changed)) == identity_of(MODEL)


def test_the_identity_of_a_model_lasts() -> None:
    assert hash_of(identity_of(MODEL)) == "a2fa8a5223341b6c90b8f1d91e2c069ba8edb6aa84514f5578643e2e4985365e"


def test_the_address_is_part_of_the_model() -> None:
    assert len({identity_of(MODEL), identity_of(MODEL, "http://h"), identity_of(MODEL, "http://i")}) == 3


# ── entries ──────────────────────────────────────────────────────────────────────────────────────


def test_an_entry_is_the_answer_without_its_cost() -> None:
    assert reply_to_entry(REPLY) == ENTRY
    assert reply_to_entry(REPLY._replace(scripted=True)) == {**ENTRY, "scripted": True}


def test_an_answer_from_a_store_is_no_call() -> None:
    found = reply_from_entry(ENTRY, REQUEST)
    assert found == ModelReply(REPLY.value, Usage(cached_calls=1, cost=0.0), "openai/x-1", scripted=False)


def test_the_usage_of_a_recording_is_kept() -> None:
    usage = {"calls": 2, "input_tokens": 9}
    assert reply_from_entry({**ENTRY, "usage": usage}, REQUEST).usage == Usage(calls=2, input_tokens=9)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        {**ENTRY, "value": {"reason": "none"}},
        {**ENTRY, "value": {"score": "high"}},
        {**ENTRY, "usage": {"calls": "many"}},
        *({key: ENTRY[key] for key in ENTRY if key != missing} for missing in ENTRY),
    ],
)
def test_what_does_not_answer_is_no_reply(entry: dict[str, Any] | None) -> None:
    assert usable_reply(entry, REQUEST) is None


def test_an_answer_must_meet_what_is_required_now() -> None:
    assert usable_reply(ENTRY, REQUEST) == reply_from_entry(ENTRY, REQUEST)
    tall = {**ENTRY, "value": {"score": 6}}
    assert usable_reply(tall, REQUEST) is not None
    assert usable_reply(tall, replace(REQUEST, reply=Strict)) is None


@pytest.mark.parametrize(
    ("flaw", "accepts", "is_usable"),
    [("", False, True), ("bad", False, False), ("bad", True, True)],
)
def test_a_flawed_answer_is_usable_where_it_is_accepted(flaw: str, accepts: bool, is_usable: bool) -> None:
    seen: list[tuple[Any, bool]] = []

    def flaw_in(value: Any, scripted: bool) -> str:
        seen.append((value, scripted))
        return flaw

    request = replace(REQUEST, flaw_in=flaw_in, accepts_flawed=lambda *_: accepts)
    assert (usable_reply({**ENTRY, "scripted": True}, request) is not None) is is_usable
    assert seen in ([], [(REPLY.value, True)])
    again = usable_reply({**ENTRY, "scripted": True}, replace(request, reuses_flawed=False))
    assert (again is not None) is (not flaw)


# ── a model behind stores ────────────────────────────────────────────────────────────────────────


class Store:
    """Keeps what it is given under ``name``, and returns it with its name; ``log`` gets all that happens."""

    def __init__(self, name: str, log: list[str], known: ModelReply | None = None) -> None:
        self.name = name
        self.log = log
        self.known = known
        self.questions: list[Question] = []

    def get(self, question: Question) -> ModelReply | None:
        self.log.append(f"get {self.name}")
        self.questions.append(question)
        return self.known

    def put(self, question: Question, reply: ModelReply) -> ModelReply:
        self.log.append(f"put {self.name}")
        return reply._replace(model=f"{reply.model}+{self.name}")

    def failed(self, question: Question, error: Exception) -> None:
        self.log.append(f"failed {self.name}: {error}")


class Closed(FakeModel):
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


def ask(model: Any, stores: Sequence[Store], identity: str = "openai/x", key: SampleKey | None = None) -> Any:
    async def main() -> ModelReply:
        if key:
            enter_sample(key)
        return await StoreBackedModel(model, stores, identity).complete(REQUEST)

    return anyio.run(main)


def test_an_answer_goes_into_each_store_that_did_not_have_it() -> None:
    log: list[str] = []
    model = FakeModel({"score": 3})
    reply = ask(model, [Store("a", log), Store("b", log)])
    assert log == ["get a", "get b", "put b", "put a"]
    assert reply.model == "fake/model+b+a"
    assert model.requests == [REQUEST]


def test_the_first_store_that_has_it_answers() -> None:
    log: list[str] = []
    model = FakeModel({"score": 3})
    stores = [Store("a", log), Store("b", log, REPLY), Store("c", log, REPLY)]
    assert ask(model, stores).model == "openai/x-1+a"
    assert log == ["get a", "get b", "put a"]
    assert not model.requests


def test_a_failure_reaches_each_store_and_the_caller() -> None:
    log: list[str] = []
    with pytest.raises(InfrastructureError):
        ask(FakeModel(InfrastructureError("down")), [Store("a", log), Store("b", log)])
    assert log == ["get a", "get b", "failed b: down", "failed a: down"]


def test_a_cancelled_call_did_not_fail() -> None:
    log: list[str] = []

    class Hangs(FakeModel):
        async def complete(self, request: ModelRequest) -> ModelReply:
            await anyio.sleep_forever()
            raise AssertionError

    async def main() -> None:
        with anyio.move_on_after(0):
            await StoreBackedModel(Hangs({}), [Store("a", log)]).complete(REQUEST)

    anyio.run(main)
    assert log == ["get a"]


def test_the_question_knows_its_model_and_its_sample() -> None:
    store = Store("a", [], REPLY)
    assert ask(FakeModel({}), [store], "openai/y", KEY) == REPLY
    (question,) = store.questions
    assert (question.request, question.model, question.sample) == (REQUEST, "openai/y", KEY)
    ask(FakeModel({}), [store], "")
    assert (store.questions[1].sample, store.questions[1].hash) == (None, "")


def test_without_stores_the_model_answers() -> None:
    assert ask(FakeModel({"score": 1}), []).value == Grade(score=1)


def test_the_model_is_closed() -> None:
    model = Closed({})
    anyio.run(StoreBackedModel(model, []).aclose)
    assert model.closed == 1
