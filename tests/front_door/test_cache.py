"""The cache of replies: what is asked again, what is not, and what a cached reply looks like."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.traffic.answer_stores import Question, StoreBackedModel, identity_of
from agenteval.adapters.traffic.cache import AnswerCache
from agenteval.conversation import current_sample
from agenteval.core.config import ModelConfig
from agenteval.core.errors import UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest, Subject
from agenteval.core.scenario import SampleKey
from tests.support.fake_models import USAGE, FakeModel
from tests.support.judged_projects import (
    KEY,
    MODEL,
    contented,
    counted,
    judged_project,
    model_config,
    scenario,
    usage_of,
)
from tests.support.kit import Project
from tests.support.model_servers import Json, ModelServer, Reply, answers


class Answer(BaseModel):
    text: str


class Other(BaseModel):
    text: str
    more: int = 0


REQUEST = ModelRequest("judge", "system", "prompt", Answer, Subject(scenario="a", metric="helpfulness"))
CONFIG = ModelConfig(model="openai/gpt-5-mini")


def _same(text: str) -> str:
    return text


def kept(
    folder: Path,
    model: Any,
    config: ModelConfig = CONFIG,
    *,
    notices: list[str] | None = None,
    redact: Any = _same,
) -> StoreBackedModel:
    notify = ([] if notices is None else notices).append
    return StoreBackedModel(model, [AnswerCache(folder, notify=notify, redact=redact)], identity_of(config))


def ask(model: StoreBackedModel, request: ModelRequest = REQUEST, *, epoch: int | None = None) -> ModelReply:
    async def asked() -> ModelReply:
        if epoch is not None:
            current_sample.enter_sample(SampleKey(scenario="a", agent="b", epoch=epoch))
        return await model.complete(request)

    return anyio.run(asked)


def test_the_same_question_is_asked_once(tmp_path: Path) -> None:
    real = FakeModel({"text": "ü"})
    first, second = ask(kept(tmp_path, real)), ask(kept(tmp_path, real))
    assert len(real.requests) == 1
    assert first.usage == USAGE
    assert (second.usage.calls, second.usage.tokens, second.usage.cached_calls) == (0, 0, 1)
    assert second.usage.cost == 0.0
    assert second[0] == first[0] == Answer(text="ü")
    assert (second.model, second.scripted) == (first.model, first.scripted)


ANOTHER: dict[str, dict[str, Any]] = {
    "role": {"request": replace(REQUEST, role="user")},
    "system": {"request": replace(REQUEST, system="other")},
    "prompt": {"request": replace(REQUEST, prompt="other")},
    "whose form": {"request": replace(REQUEST, states_form=True)},
    "shape": {"request": replace(REQUEST, reply=Other)},
    "model": {"config": ModelConfig(model="openai/other")},
    "base_url": {"config": CONFIG.model_copy(update={"base_url": "http://localhost"})},
    "temperature": {"config": CONFIG.model_copy(update={"temperature": 0.5})},
    "extra": {"config": CONFIG.model_copy(update={"extra": {"seed": 1}})},
    "epoch": {"epoch": 1},
}


@pytest.mark.parametrize("name", ANOTHER)
def test_whatever_the_reply_may_depend_on_is_part_of_the_question(tmp_path: Path, name: str) -> None:
    real = FakeModel({"text": "yes", "more": 1})
    another = {"request": REQUEST, "config": CONFIG, "epoch": 0, **ANOTHER[name]}
    ask(kept(tmp_path, real), epoch=0)
    ask(kept(tmp_path, real, another["config"]), another["request"], epoch=another["epoch"])
    assert len(real.requests) == 2


def test_what_no_model_is_sent_is_no_part_of_the_question(tmp_path: Path) -> None:
    real = FakeModel({"text": "yes"})
    ask(kept(tmp_path, real))
    about = replace(REQUEST, subject=Subject(scenario="other", metric="other", turn=3))
    ask(kept(tmp_path, real, ModelConfig(model="openai/gpt-5-mini", timeout_s=5, api_key_env="X")), about)
    assert len(real.requests) == 1


def test_errors_and_replies_that_cannot_be_read_are_not_kept(tmp_path: Path) -> None:
    broken = FakeModel(UnreadableReplyError("cut off", raw='{"te'))
    for _ in range(2):
        with pytest.raises(UnreadableReplyError):
            ask(kept(tmp_path, broken))
    assert len(broken.requests) == 2
    assert not list(tmp_path.rglob("*.json"))


def test_a_reply_that_is_kept_is_checked_again(tmp_path: Path) -> None:
    real = FakeModel({"text": "invented"})
    ask(kept(tmp_path, real))
    seen: list[tuple[Any, bool]] = []

    def flaw_in(value: Any, scripted: bool) -> str:
        seen.append((value, scripted))
        return "it stands nowhere" if value.text == "invented" else ""

    # A miss: the model is asked anew, and what it says is kept in place of the old.
    mended = FakeModel({"text": "quoted"})
    checked = replace(REQUEST, flaw_in=flaw_in)
    assert ask(kept(tmp_path, mended), checked).value == Answer(text="quoted")
    assert seen == [(Answer(text="invented"), True), (Answer(text="quoted"), True)]
    # Which check is made is not a part of the question.
    assert checked == REQUEST
    assert ask(kept(tmp_path, mended), checked).usage.cached_calls == 1
    assert len(mended.requests) == 1


def entry_of(folder: Path) -> Path:
    (path,) = folder.rglob("*.json")
    return path


def test_a_damaged_entry_is_a_miss_and_is_mended(tmp_path: Path) -> None:
    real = FakeModel({"text": "yes"})
    ask(kept(tmp_path, real))
    path = entry_of(tmp_path)
    text = path.read_text("utf-8")
    another = text.replace("yes", "no!")
    for number, damaged in enumerate(
        ("", text[: len(text) // 2], another, "\x00" * len(text), text.partition("\n")[0]), start=2
    ):
        path.write_text(damaged, encoding="utf-8")
        assert ask(kept(tmp_path, real)).value == Answer(text="yes")
        assert ask(kept(tmp_path, real)).usage.cached_calls == 1
        assert len(real.requests) == number


def test_an_entry_of_another_question_is_a_miss(tmp_path: Path) -> None:
    real = FakeModel({"text": "yes"})
    ask(kept(tmp_path, real))
    path = entry_of(tmp_path)
    ask(kept(tmp_path, real), replace(REQUEST, prompt="other"))
    (other,) = set(tmp_path.rglob("*.json")) - {path}
    path.rename(other)
    ask(kept(tmp_path, real), replace(REQUEST, prompt="other"))
    assert len(real.requests) == 3


def test_a_cache_that_cannot_be_written_is_reported_once_and_costs_no_reply(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    notices: list[str] = []
    model = kept(tmp_path / "file", FakeModel({"text": "yes"}), notices=notices)
    assert ask(model).value == ask(model).value == Answer(text="yes")
    assert [str(tmp_path / "file") in notice for notice in notices] == [True]


def test_secrets_are_not_kept(tmp_path: Path) -> None:
    def redact(text: str) -> str:
        return text.replace("hunter22", "***")

    ask(kept(tmp_path, FakeModel({"text": "It is hunter22."}), redact=redact))
    assert "hunter22" not in entry_of(tmp_path).read_text("utf-8")
    assert ask(kept(tmp_path, FakeModel({}), redact=redact)).value == Answer(text="It is ***.")


# ── through the command line ─────────────────────────────────────────────────────────────────────

SUITE = [scenario("sim", goal="A lamp.", epochs=2), scenario("same", "One.", epochs=3)]


def run(project: Project, server: ModelServer, more: str = "cache: true\n", *flags: str) -> Any:
    judged_project(project, SUITE, model_config(server, f"metrics: [helpfulness]\n{more}"))
    return project.run(*flags, env=KEY)


def shown(project: Project) -> Json:
    def turns(sample: Json) -> list[Any]:
        return [(turn["user"], turn["agent"], turn["scores"]) for turn in sample["turns"]]

    return {each["id"]: [turns(s) for s in each["samples"]] for each in project.results()["scenarios"]}


def test_a_second_run_asks_nothing_and_shows_the_same(project: Project) -> None:
    with ModelServer(contented()) as server:
        first = run(project, server)
        asked, before = counted(server), shown(project)
        second = run(project, server)
        again = counted(server)
    assert (first.code, second.code) == (0, 0), second.all
    # Two epochs of two turns each, and three of one whose conversations are equal: no epoch is another's.
    assert asked == again == {"user": 4, "judge": 7}
    assert shown(project) == before
    usage = usage_of(project)
    assert (usage["judge"]["calls"], usage["judge"]["cached_calls"], usage["judge"]["cost"]) == (0, 7, 0)
    assert usage["user"]["cached_calls"] == 4
    assert usage["agent"]["calls"] == 7
    assert re.search(r"judge 7\b.*cache", project.call("report", "latest", "-v").out)
    entry = next((project.root / ".agenteval/cache").rglob("*.json")).read_text("utf-8")
    assert sorted(json.loads(entry.partition("\n")[2])) == ["key", "model", "scripted", "value"]
    names = [line["name"] for line in project.results()["summary"]["ledger"]]
    assert names == ["bot", MODEL, MODEL], "models are named as configured"


def test_it_is_off_unless_asked_for_and_flags_stand_over_the_file(project: Project) -> None:
    with ModelServer(contented()) as server:
        for more, flags, asked in (
            ("", (), 11),
            ("", (), 22),
            ("cache: kept/here\n", (), 33),
            ("cache: kept/here\n", (), 33),
            ("cache: kept/here\n", ("--no-cache",), 44),
            ("", ("--cache",), 55),
            ("cache: false\n", ("--cache",), 55),
        ):
            assert run(project, server, more, *flags).code == 0
            assert len(server.asked) == asked, (more, flags)
    assert (project.root / "kept/here").is_dir()


def test_a_judge_that_failed_is_asked_again_in_the_next_run(project: Project) -> None:
    with ModelServer(answers("no JSON")) as server:
        judged_project(project, SUITE[1:], model_config(server, "metrics: [helpfulness]\ncache: true\n"))
        assert project.run(env=KEY).code == 0  # a number without a threshold changes no verdict
        asked = len(server.asked)
        project.run(env=KEY)
        assert len(server.asked) == 2 * asked


def test_replies_from_the_cache_count_towards_no_budget(project: Project) -> None:
    with ModelServer(contented()) as server:
        run(project, server)
        done = run(project, server, "cache: true\nbudget: {max_calls: 7}\n")
    assert done.code == 0, done.all
    gates = {gate["name"]: gate["value"] for gate in project.results()["summary"]["gates"]}
    assert gates["budget.max_calls"] == 7  # the agent's


def test_an_agent_is_never_answered_for(project: Project) -> None:
    agent = """
    from pathlib import Path

    def agent(messages, ctx):
        with Path("heard.txt").open("a") as file:
            file.write("x")
        return "always the same"
    """
    with ModelServer(contented()) as server:
        config = model_config(server, "metrics: [helpfulness]\ncache: true\n")
        judged_project(project, SUITE[1:], config, agent)
        project.run(env=KEY)
        project.run(env=KEY)
        assert len(server.asked) == 3
    assert (project.root / "heard.txt").read_text() == "x" * 6


def test_a_recording_holds_what_the_cache_answered(project: Project) -> None:
    with ModelServer(contented()) as server:
        run(project, server)
        run(project, server, "cache: true\n", "--record", "run.jsonl")
    before = usage_of(project)
    assert before["judge"]["cached_calls"] == 7
    assert project.run("--replay", "run.jsonl", "--no-cache").code == 0
    assert usage_of(project) == before


def test_two_runs_at_once_share_one_cache(tmp_path: Path) -> None:
    """Whole or not at all: a reader never meets half an entry."""
    caches = [AnswerCache(tmp_path, notify=lambda _: None, redact=_same) for _ in range(2)]
    question = Question(REQUEST, identity_of(CONFIG), None)
    stop, torn = threading.Event(), []

    def write(text: str) -> None:
        caches[0].put(question, ModelReply(Answer(text=text), USAGE, "m"))

    def read() -> None:
        while not stop.is_set():
            if caches[1].get(question) is None:
                torn.append(1)

    write("x")
    reader = threading.Thread(target=read)
    reader.start()
    for number in range(200):
        write("x" * number * 50)
    stop.set()
    reader.join()
    assert not torn
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{question.hash}.json"]


def test_a_key_beside_the_model_is_not_in_the_cache(project: Project) -> None:
    def saying_its_key(asked: Json) -> Reply:
        reply = contented()(asked)
        assert reply is not None
        text = json.dumps(reply.body).replace("fine", f"fine, by {KEY['MODEL_KEY']}")
        return Reply(json.loads(text))

    with ModelServer(saying_its_key) as server:
        run(project, server)
    texts = [path.read_text("utf-8") for path in (project.root / ".agenteval/cache").rglob("*.json")]
    assert any("fine, by ***" in text for text in texts)
    assert not any(KEY["MODEL_KEY"] in text for text in texts)
