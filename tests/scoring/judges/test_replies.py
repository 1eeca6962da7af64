"""Answers that have the asked shape and are wrong all the same: ``ModelRequest.flaw_in``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.models.scripted_model import ScriptedModel
from agenteval.adapters.traffic.answer_stores import StoreBackedModel
from agenteval.adapters.traffic.cassettes import CassettePlayer, CassetteRecorder, header_of, read_cassette
from agenteval.adapters.traffic.recording import CassetteAnswers, ReplayedModel
from agenteval.core.errors import UnreadableReplyError
from tests.support.fake_models import FakeModel
from tests.support.local_servers import plain_environment
from tests.support.model_bench import REQUEST, Bench
from tests.support.model_servers import ModelServer, Play, answers, once

NOWHERE = "the quotation “It is Sunday.” stands nowhere in the record"


def flaw_in(value: Any, scripted: bool) -> str:
    return NOWHERE if value.evidence == "It is Sunday." else ""


CHECKED = replace(REQUEST, flaw_in=flaw_in)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def said(evidence: str) -> str:
    return json.dumps({"evidence": evidence, "reason": "so it is", "score": 1})


INVENTED, TRUE = answers(said("It is Sunday.")), answers(said("It is Monday."))


def test_it_is_repaired_once_in_the_words_of_the_flaw() -> None:
    with ModelServer(once(INVENTED), TRUE) as server:
        [reply] = Bench(server.base_url).ask(CHECKED)
        [first, second] = server.asked
    value: Any = reply.value
    assert value.evidence == "It is Monday."
    assert reply.usage.calls == 2
    *before, answer, repair = second["messages"]
    assert before == first["messages"]
    assert answer == {"role": "assistant", "content": said("It is Sunday.")}
    assert NOWHERE in repair["content"]


@pytest.mark.parametrize(
    "plays",
    [
        (INVENTED,),
        # One repair in all: an answer without a shape has used it up, and so has one with a flaw.
        (once(answers("I am sorry!")), INVENTED),
        (once(INVENTED), INVENTED, TRUE),
    ],
)
def test_then_it_is_a_failure_that_says_what_was_wrong(plays: tuple[Play, ...]) -> None:
    with ModelServer(*plays) as server:
        failed = Bench(server.base_url).fail(CHECKED)
        assert len(server.asked) == 2
    assert isinstance(failed, UnreadableReplyError)
    assert NOWHERE in str(failed)
    assert failed.is_flawed
    assert failed.usage.calls == 2
    assert "It is Sunday." in failed.raw


def test_no_shape_after_a_flaw_is_no_flaw() -> None:
    with ModelServer(once(INVENTED), answers("I am sorry!")) as server:
        failed = Bench(server.base_url).fail(CHECKED)
    assert isinstance(failed, UnreadableReplyError)
    assert not failed.is_flawed
    assert "no valid JSON object" in str(failed)


def scripted(folder: Path, evidence: str) -> ScriptedModel:
    reply = f"{{evidence: {evidence}, reason: r, score: 1}}"
    (folder / "judge.yaml").write_text(f"replies:\n  - when: {{}}\n    reply: {reply}\n", encoding="utf-8")
    return ScriptedModel("judge.yaml", root=folder)


def test_a_scripted_reply_is_told_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReplyError) as caught:
        anyio.run(scripted(tmp_path, "It is Sunday.").complete, CHECKED)
    assert str(caught.value) == f"judge.yaml:2:5: the scripted reply cannot be used: {NOWHERE}"
    assert caught.value.is_flawed
    assert anyio.run(scripted(tmp_path, "It is Monday.").complete, CHECKED).scripted


def test_it_is_told_whether_the_reply_is_scripted(tmp_path: Path) -> None:
    asked: list[bool] = []

    def never(_value: Any, is_scripted: bool) -> str:
        asked.append(is_scripted)
        return ""

    request = replace(REQUEST, flaw_in=never)
    anyio.run(scripted(tmp_path, "x").complete, request)
    with ModelServer(TRUE) as server:
        Bench(server.base_url).ask(request)
    assert asked == [True, False]


def test_a_recording_is_checked_when_it_is_played(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    recorder = CassetteRecorder(path)
    recorder.start(header_of((), {}))
    recorder.begin()
    model = FakeModel({"evidence": "It is Sunday.", "reason": "r", "score": 1})
    anyio.run(StoreBackedModel(model, [CassetteAnswers(recorder)]).complete, REQUEST)
    recorder.close()

    player = CassettePlayer(read_cassette(path))
    player.start(header_of((), {}))
    with pytest.raises(UnreadableReplyError, match=r"run\.jsonl: .* cannot be used: the quotation"):
        anyio.run(ReplayedModel(player).complete, CHECKED)
