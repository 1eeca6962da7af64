"""Which layers lie between a run and its models and agents, and in which order."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.models.cache_priming import MIN_PREFIX_TOKENS
from agenteval.adapters.traffic.answer_stores import Question, identity_of
from agenteval.adapters.traffic.cassettes import (
    Cassette,
    CassetteHeader,
    CassetteRecorder,
    header_of,
    read_cassette,
)
from agenteval.adapters.traffic.middleware import (
    CACHE_FOLDER,
    RecordingOptions,
    Traffic,
    build_applicable,
    find_marked_secrets,
    parse_recording_options,
    wrap_layers,
)
from agenteval.adapters.traffic.recorded_answers import RejudgedAnswers
from agenteval.core.config import Config, ModelConfig
from agenteval.core.errors import (
    AgentevalError,
    AuthorError,
    BudgetError,
    InfrastructureError,
    RequestSkippedError,
)
from agenteval.core.event import Event, ModelAsked
from agenteval.core.protocols import AgentReply, ModelReply, ModelRequest, Subject, TurnTools
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import Message, ToolResult, Usage
from tests.support.virtual_time import VirtualTime, run_virtually


class Grade(BaseModel):
    score: int = 3
    reason: str = ""


REQUEST = ModelRequest("judge", "system", "prompt", Grade, Subject(metric="tone"))
REAL, FIXED = ModelConfig(model="openai/x"), ModelConfig(model="scripted/replies.yaml")
PRICES = {"openai/x": {"input": 1.0, "output": 1.0}}
KEY = SampleKey(scenario="s", agent="bot")
SAMPLE = Sample(key=KEY, scenario=Scenario(id="s", name="s", turns=("Hi",)))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


class Model:
    def __init__(self, answer: Grade | Exception | None = None) -> None:
        self.answer = Grade() if answer is None else answer
        self.begun: list[float] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.begun.append(anyio.current_time())
        await anyio.sleep(0 if not request.shared else 1)
        if isinstance(self.answer, Exception):
            raise self.answer
        return ModelReply(self.answer, Usage(calls=1, input_tokens=10**6), "openai/x-1")

    async def aclose(self) -> None: ...


class Run:
    """A run's traffic, and what it noted, warned of and told."""

    def __init__(
        self,
        recording: RecordingOptions | None = None,
        cassette: Cassette | None = None,
        secrets: Sequence[str] = (),
        **config: Any,
    ) -> None:
        self.notes: list[Event] = []
        self.warnings: list[str] = []
        self.notices: list[str] = []
        self.traffic = Traffic(
            Config.model_validate({"prices": PRICES, **config}),
            recording,
            cassette=cassette,
            secrets=secrets,
            notify=self.notices.append,
            warn=self.warnings.append,
            note=self.notes.append,
        )

    def ask(
        self,
        model: Model,
        chosen: ModelConfig = REAL,
        role: str = "judge",
        times: int = 1,
        request: ModelRequest = REQUEST,
    ) -> list[Any]:
        ends: list[Any] = []

        async def main() -> None:
            layered = self.traffic.model(chosen, lambda: model, role=role)
            for _ in range(times):
                try:
                    ends.append(await layered.complete(replace(request, role=role)))
                except AgentevalError as error:
                    ends.append(error)
            await layered.aclose()

        anyio.run(main)
        return ends


# ── the options ──────────────────────────────────────────────────────────────────────────────────


def test_files_are_relative_to_the_working_directory(tmp_path: Path) -> None:
    assert parse_recording_options(None, None) == RecordingOptions()
    assert parse_recording_options("", "") == RecordingOptions()
    assert parse_recording_options("a/r", None) == RecordingOptions(record=tmp_path / "a" / "r")
    assert parse_recording_options(None, "r") == RecordingOptions(replay=tmp_path / "r")
    assert parse_recording_options(str(tmp_path / "x"), None).record == tmp_path / "x"


def test_recording_and_replaying_exclude_each_other() -> None:
    with pytest.raises(AuthorError) as error:
        parse_recording_options("a", "b")
    assert "--record" in str(error.value)
    assert "--replay" in str(error.value)


def test_only_a_replay_needs_no_variables() -> None:
    environ = {"A": "a"}
    assert RecordingOptions().environ(environ) is environ
    assert RecordingOptions(record=Path("r")).environ(environ) is environ
    replayed = RecordingOptions(replay=Path("r")).environ(environ)
    assert (replayed["A"], replayed["B"]) == ("a", "***")


# ── layers ───────────────────────────────────────────────────────────────────────────────────────


def test_the_outermost_layer_comes_first() -> None:
    def around(name: str) -> Callable[[str], str]:
        return lambda inner: f"{name}({inner})"

    assert wrap_layers("x", (True, around("a")), (False, around("b")), (True, around("c"))) == "a(c(x))"
    assert wrap_layers("x") == "x"


def test_only_what_applies_is_built() -> None:
    def never() -> str:
        raise AssertionError

    assert build_applicable((True, lambda: "a"), (False, never), (True, lambda: "b")) == ("a", "b")
    assert not build_applicable()


# ── models ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("role", ["judge", "user", "dedup"])
def test_an_answer_has_its_cost(role: str) -> None:
    (reply,) = Run().ask(Model(), role=role)
    assert (reply.value, reply.usage.cost) == (Grade(), pytest.approx(1.0))
    (unpriced,) = Run(prices={}).ask(Model(), role=role)
    assert unpriced.usage.cost is None


@pytest.mark.parametrize(("role", "is_noted"), [("judge", True), ("dedup", True), ("user", False)])
def test_the_journal_has_all_questions_but_the_users(role: str, is_noted: bool) -> None:
    run = Run()
    run.ask(Model(), role=role)
    run.ask(Model(InfrastructureError("down")), role=role)
    notes = [(note.role, note.error) for note in run.notes if isinstance(note, ModelAsked)]
    assert notes == ([(role, ""), (role, "down")] if is_noted else [])


def hash_in(run: Run, chosen: ModelConfig) -> str:
    run.ask(Model(), chosen)
    (note,) = run.notes
    assert isinstance(note, ModelAsked)
    return note.hash


def test_a_question_is_known_by_its_model_and_its_address(monkeypatch: pytest.MonkeyPatch) -> None:
    known = hash_in(Run(), REAL)
    assert known == Question(REQUEST, identity_of(REAL), None).hash
    assert hash_in(Run(), ModelConfig(model="openai/y")) != known
    monkeypatch.setitem(os.environ, "OPENAI_BASE_URL", "http://h/v1")
    assert hash_in(Run(), REAL) == Question(REQUEST, identity_of(REAL, "http://h/v1"), None).hash


def test_fixed_replies_have_no_hash() -> None:
    assert hash_in(Run(), FIXED) == ""


@pytest.mark.parametrize(("role", "calls"), [("judge", 5), ("user", 8), ("dedup", 8)])
@pytest.mark.parametrize("chosen", [REAL, FIXED])
def test_only_a_judge_that_always_fails_is_no_longer_called(
    role: str, calls: int, chosen: ModelConfig
) -> None:
    run, model = Run(), Model(InfrastructureError("down"))
    run.ask(model, chosen, role, times=8)
    assert len(model.begun) == calls
    assert len(run.warnings) == (role == "judge")


SHARED = "s" * 4 * MIN_PREFIX_TOKENS


@pytest.mark.parametrize(
    ("chosen", "role", "begun"),
    [
        (REAL, "judge", [0, 1, 1]),
        (REAL, "user", [0, 0, 0]),
        (REAL, "dedup", [0, 0, 0]),
        (FIXED, "judge", [0, 0, 0]),
    ],
)
def test_one_of_a_real_judges_calls_goes_first(chosen: ModelConfig, role: str, begun: list[float]) -> None:
    model = Model()

    async def main(_: VirtualTime) -> None:
        layered = Run().traffic.model(chosen, lambda: model, role=role)
        async with anyio.create_task_group() as group:
            for name in "abc":
                asked = replace(REQUEST, role=role, prompt=SHARED + name, shared=(len(SHARED),))
                group.start_soon(layered.complete, asked)

    run_virtually(main)
    assert model.begun == begun


# ── the cache ────────────────────────────────────────────────────────────────────────────────────


def cached(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*.json") if path.is_file()]


@pytest.mark.parametrize(
    ("cache", "folder"), [(True, CACHE_FOLDER), ("kept/here", "kept/here"), (False, None)]
)
@pytest.mark.parametrize("role", ["judge", "user", "dedup"])
def test_the_cache_is_in_the_configurations_folder(
    tmp_path: Path, cache: bool | str, folder: str | None, role: str
) -> None:
    root = tmp_path / "root"
    model = Model()
    first, second = Run(cache=cache, root=str(root)).ask(model, role=role, times=2)
    assert (len(model.begun), len(cached(tmp_path))) == ((1, 1) if folder else (2, 0))
    if folder:
        assert len(cached(root / folder)) == 1
        assert (first.usage.calls, second.usage) == (1, Usage(cached_calls=1, cost=0.0))
        assert first.value == second.value


def test_fixed_replies_are_not_cached(tmp_path: Path) -> None:
    model = Model()
    Run(cache=True, root=str(tmp_path)).ask(model, FIXED, times=2)
    assert (len(model.begun), cached(tmp_path)) == (2, [])


def test_a_dry_run_does_not_look_into_the_cache(tmp_path: Path) -> None:
    Run(cache=True, root=str(tmp_path)).ask(Model())
    (end,) = Run(RecordingOptions(calls_models=False), cache=True, root=str(tmp_path)).ask(Model())
    assert isinstance(end, RequestSkippedError)


def test_secrets_are_masked_in_the_cache(tmp_path: Path) -> None:
    model = Model(Grade(reason="sk-very-secret and hunter42"))
    agent = {"name": "bot", "target": "a:b", "secrets": ["hunter42"]}
    run = Run(cache=True, root=str(tmp_path), secrets=["sk-very-secret"], agent=agent)
    (reply,) = run.ask(model)
    assert reply.value == model.answer
    text = cached(tmp_path)[0].read_text(encoding="utf-8")
    assert "sk-very-secret" not in text
    assert "hunter42" not in text


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "c").write_text("", encoding="utf-8")
    run = Run(cache="c", root=str(tmp_path))
    run.ask(Model())
    assert len(run.notices) == 1


# ── dry runs and judging again ───────────────────────────────────────────────────────────────────


def test_a_dry_run_calls_no_model() -> None:
    def make() -> Model:
        raise AssertionError

    traffic = Run(RecordingOptions(calls_models=False)).traffic
    for role in ("judge", "user", "dedup"):
        with pytest.raises(RequestSkippedError):
            anyio.run(traffic.model(REAL, make, role=role).complete, REQUEST)


def test_fixed_replies_are_asked_for_unless_a_run_is_judged_again() -> None:
    model, rejudged = Model(), RejudgedAnswers()
    (reply,) = Run(RecordingOptions(calls_models=False)).ask(model, FIXED)
    assert reply.value == Grade()
    (end,) = Run(RecordingOptions(calls_models=False, rejudged=rejudged)).ask(model, FIXED)
    assert isinstance(end, RequestSkippedError)
    assert rejudged.counts.calls == {"tone": 1}
    assert len(model.begun) == 1


@pytest.mark.parametrize("calls_models", [False, True])
def test_a_run_judged_again_uses_its_answers(calls_models: bool) -> None:
    digest = Question(REQUEST, identity_of(REAL), None).hash
    entry = {"value": {"score": 1}, "model": "m", "scripted": False}
    rejudged, model = RejudgedAnswers({digest: entry}), Model()
    run = Run(RecordingOptions(calls_models=calls_models, rejudged=rejudged))
    (reply,) = run.ask(model)
    assert (reply.value, reply.usage.cached_calls) == (Grade(score=1), 1)
    assert rejudged.counts.reused == {"tone": 1}
    assert not model.begun
    other = replace(REQUEST, prompt="another")
    (end,) = run.ask(model, request=other)
    assert len(model.begun) == calls_models
    assert isinstance(end, ModelReply if calls_models else RequestSkippedError)
    assert rejudged.counts.calls == {"tone": 1}


# ── the budget ───────────────────────────────────────────────────────────────────────────────────


def test_a_budget_bounds_models_by_their_role() -> None:
    run = Run(budget={"max_calls": 9, "by_role": {"judge": {"max_calls": 2}}})
    ends = run.ask(Model(), times=4)
    assert [isinstance(end, BudgetError) for end in ends] == [False, False, True, True]
    assert len(run.warnings) == 1
    assert "judge" in run.warnings[0]
    assert len(run.ask(Model(), role="user", times=3)) == 3
    assert len(run.warnings) == 1


def test_there_is_a_ledger_only_for_a_budget(tmp_path: Path) -> None:
    assert Run().traffic.ledger is None
    assert Run(budget={"max_calls": 1}).traffic.ledger is not None
    cassette = made(tmp_path)
    replayed = Run(RecordingOptions(replay=cassette.path), cassette, budget={"max_calls": 1})
    assert replayed.traffic.ledger is None


# ── agents ───────────────────────────────────────────────────────────────────────────────────────


class Agents:
    def __init__(self) -> None:
        self.closed = 0

    def make(self, sample: Sample) -> Agents:
        return self

    async def reply(self, messages: list[Message], tools: TurnTools) -> AgentReply:
        return AgentReply("Hello", usage={"input_tokens": 10**6, "output_tokens": 0})

    async def aclose(self) -> None:
        self.closed += 1


async def no_call(*_: Any) -> ToolResult:
    raise AssertionError


def talk(run: Run, agents: Agents, times: int = 1) -> list[Any]:
    ends: list[Any] = []
    config = run.traffic._config.agent
    assert config

    async def main() -> None:
        factory = run.traffic.agents(config, lambda: agents)
        for turn in range(times):
            agent = factory.make(SAMPLE)
            try:
                ends.append(
                    await agent.reply([{"role": "user", "content": "Hi"}], TurnTools(turn, (), no_call))
                )
            except AgentevalError as error:
                ends.append(error)
        await factory.aclose()

    anyio.run(main)
    return ends


BOT: Mapping[str, Any] = {"agent": {"name": "bot", "target": "a:b"}}


def test_an_agent_without_price_and_budget_is_the_agent() -> None:
    agents, run = Agents(), Run(**BOT)
    assert run.traffic._config.agent
    assert run.traffic.agents(run.traffic._config.agent, lambda: agents) is agents


def test_an_agent_has_its_price_and_its_budget() -> None:
    priced = Run(prices={"bot": {"input": 2.0, "output": 1.0}}, **BOT)
    agents = Agents()
    (reply,) = talk(priced, agents)
    assert reply.usage.cost == pytest.approx(2.0)
    assert agents.closed == 1
    bounded = talk(Run(budget={"max_calls": 1}, **BOT), Agents(), times=2)
    assert [isinstance(end, BudgetError) for end in bounded] == [False, True]


# ── recordings ───────────────────────────────────────────────────────────────────────────────────


def made(folder: Path, **header: Any) -> Cassette:
    recorder = CassetteRecorder(folder / "made.jsonl")
    recorder.start(header_of([], {}))
    recorder.begin()
    recorder.close()
    found = read_cassette(recorder.path)
    return found._replace(header=found.header.model_copy(update=header))


def record(path: Path, *, again: bool = False) -> None:
    run = Run(RecordingOptions(record=path), **BOT)
    run.traffic.start([], {})
    run.traffic.begin()
    run.ask(Model(Grade(score=4)))
    run.ask(Model(Grade(score=5)), FIXED, request=replace(REQUEST, prompt="fixed"))
    talk(run, Agents())
    if again:
        assert run.traffic.may_play_again(KEY)
    run.traffic.close()


def test_a_replay_answers_and_creates_nothing(tmp_path: Path) -> None:
    record(tmp_path / "r")
    cassette = read_cassette(tmp_path / "r")
    assert [entry.role for entry in cassette.entries] == ["judge", "judge", "agent"]
    run = Run(RecordingOptions(replay=tmp_path / "r"), cassette, **BOT)
    run.traffic.start([], {})
    run.traffic.begin()

    def never() -> Any:
        raise AssertionError

    judge = run.traffic.model(REAL, never, role="judge")
    reply = anyio.run(judge.complete, REQUEST)
    assert reply.value == Grade(score=4)
    assert [note.hash for note in run.notes if isinstance(note, ModelAsked)] == [""]
    with pytest.raises(AuthorError):
        anyio.run(judge.complete, REQUEST)
    assert run.traffic._config.agent
    replayed = run.traffic.agents(run.traffic._config.agent, never).make(SAMPLE)
    tools = TurnTools(0, (), no_call)
    answer: Any = anyio.run(replayed.reply, [{"role": "user", "content": "Hi"}], tools)
    assert answer.text == "Hello"
    run.traffic.close()


def test_a_recording_holds_what_the_cache_answered(tmp_path: Path) -> None:
    config: dict[str, Any] = {"cache": True, "root": str(tmp_path)}
    Run(**config).ask(Model())
    run = Run(RecordingOptions(record=tmp_path / "r"), **config)
    run.traffic.start([], {})
    run.traffic.begin()
    model = Model()
    run.ask(model)
    run.traffic.close()
    (entry,) = read_cassette(tmp_path / "r").entries
    assert not model.begun
    assert (entry.model_extra or {})["usage"]["cached_calls"] == 1


def test_a_replay_does_not_use_the_cache(tmp_path: Path) -> None:
    config: dict[str, Any] = {"cache": True, "root": str(tmp_path)}
    Run(**config).ask(Model())
    run = Run(RecordingOptions(replay=tmp_path / "made.jsonl"), made(tmp_path), **config)
    (end,) = run.ask(Model())
    assert isinstance(end, AuthorError)


def test_a_recording_is_begun_only_once_it_is_started(tmp_path: Path) -> None:
    run = Run(RecordingOptions(record=tmp_path / "r"))
    assert not (tmp_path / "r").exists()
    run.traffic.start([SAMPLE.scenario], {"p": "1"})
    assert not (tmp_path / "r").exists()
    run.traffic.begin()
    run.traffic.close()
    header = read_cassette(tmp_path / "r").header
    assert (set(header.scenarios), header.prompts) == ({"s"}, {"p": "1"})
    with pytest.raises(AuthorError):
        Run(RecordingOptions(record=tmp_path / "r")).traffic.start([], {})
    plain = Run().traffic
    plain.start([], {})
    plain.begin()
    plain.close()


@pytest.mark.parametrize("again", [False, True])
def test_a_replay_repeats_what_the_recording_repeated(tmp_path: Path, again: bool) -> None:
    record(tmp_path / "r", again=again)
    run = Run(RecordingOptions(replay=tmp_path / "r"), read_cassette(tmp_path / "r"), **BOT)
    assert run.traffic.may_play_again(KEY) is again
    assert not run.traffic.may_play_again(KEY)
    assert Run().traffic.may_play_again(KEY)


# ── marked secrets ───────────────────────────────────────────────────────────────────────────────


def config_with(*secrets: str) -> Config:
    first = {"name": "a", "target": "a:b", "secrets": list(secrets)}
    agents = {"a": first, "b": {"name": "b", "target": "a:b"}}
    return Config.model_validate({"agents": agents})


def cassette_with(**marked: tuple[str, ...]) -> Cassette:
    return Cassette(Path("x/r.jsonl"), CassetteHeader(kind="header", format=1, marked=marked), ())


def test_the_secrets_of_each_agent_have_placeholders() -> None:
    found = find_marked_secrets(config_with("hunter42", "swordfish7"), None)
    assert set(found.all) == {"hunter42", "swordfish7"}
    assert set(found.by_agent["a"]) == {"hunter42", "swordfish7"}
    assert not found.by_agent["b"]
    assert len(found.placeholders["a"]) == 2


def test_a_single_agents_secrets_are_known_without_its_name() -> None:
    config = Config.model_validate({"agent": {"name": "a", "target": "a:b", "secrets": ["hunter42"]}})
    assert set(find_marked_secrets(config, None).by_agent) == {"a", ""}
    assert set(find_marked_secrets(config_with(), None).by_agent) == {"a", "b"}


def test_a_replay_takes_the_placeholders_of_the_recording() -> None:
    found = find_marked_secrets(config_with("hunter42"), cassette_with(a=("planter97",)))
    assert found.by_agent["a"] == {"hunter42": "planter97"}
    unset = find_marked_secrets(config_with("my-***-one"), cassette_with(a=("planter97",)))
    assert unset.by_agent["a"] == {"planter97": "planter97"}


@pytest.mark.parametrize("marked", [{}, {"a": ()}, {"a": ("one1", "two2")}, {"b": ("planter97",)}])
def test_a_secret_that_nobody_knows_is_refused(marked: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(AuthorError) as error:
        find_marked_secrets(config_with("my-***-one"), cassette_with(**marked))
    assert "r.jsonl" in str(error.value)
    assert "'a'" in str(error.value)
    assert find_marked_secrets(config_with("hunter42"), cassette_with(**marked)).all["hunter42"]
