"""The files on which a run is based, and their hashes."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.scenario import Scenario
from agenteval.planning.run_files import (
    file_hashes,
    find_secrets_in_files,
    is_unchanged_file,
    list_input_files,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        *("agent.py", "policy.md", "mock.py", "check.py", "metric.md", "tone.py", "prompt.md"),
        *("accepted.yaml", "bot.js", "replies.yaml", "model.gguf", "agenteval.yaml", "s.yaml", "rows.csv"),
    ):
        (tmp_path / name).write_text(f"the content of {name}")
    return tmp_path


def configured(folder: Path, agent: Any = None, **more: Any) -> Config:
    fields = {"name": "bot", "target": "agent.py:agent", **(agent or {})}
    config = Config.model_validate({"agent": fields, **more})
    return config.model_copy(update={"root": str(folder)})


def named(folder: Path, config: Config, *scenarios: Scenario) -> set[str]:
    return set(file_hashes(config, config, scenarios, ()))


@pytest.mark.parametrize(
    ("agent", "config", "files"),
    [
        ({}, {}, {"agent.py"}),
        ({"policy": "policy.md"}, {}, {"agent.py", "policy.md"}),
        ({"policy": "Be kind."}, {}, {"agent.py"}),
        ({"policy": "policy.md\n"}, {}, {"agent.py"}),
        ({"policy": "x" * 499}, {}, {"agent.py"}),
        ({"policy": ""}, {}, {"agent.py"}),
        ({"target": "gone.py:agent"}, {}, set()),
        ({"target": "", "command": ["node", "bot.js"]}, {}, {"bot.js"}),
        ({"target": "", "command": "bot.js"}, {}, {"bot.js"}),
        ({}, {"custom_metrics": ["metric.md", "tone.py:Tone"]}, {"agent.py", "metric.md", "tone.py"}),
        ({}, {"prompts": {"helpfulness": "prompt.md"}}, {"agent.py", "prompt.md"}),
        ({}, {"accepted": "accepted.yaml"}, {"agent.py", "accepted.yaml"}),
        ({}, {"models": {"judge": "scripted/replies.yaml"}}, {"agent.py", "replies.yaml"}),
        ({}, {"models": {"default": "local/model.gguf"}}, {"agent.py", "model.gguf"}),
        ({}, {"models": {"default": "openai/model.gguf"}}, {"agent.py"}),
        ({}, {"agents": {"x": {"name": "x", "policy": "policy.md"}}}, {"agent.py", "policy.md"}),
        ({}, {"compare": [{"name": "y", "target": "tone.py:y"}]}, {"agent.py", "tone.py"}),
    ],
)
def test_files_that_the_configuration_names(folder: Path, agent: Any, config: Any, files: set[str]) -> None:
    assert named(folder, configured(folder, agent, **config)) == files


def scenario(folder: Path, **fields: Any) -> Scenario:
    return Scenario.model_validate({"id": "a", "base": str(folder), **fields})


def test_files_that_scenarios_name(folder: Path) -> None:
    config = configured(folder, {"target": "m:a"})
    mocked = scenario(folder, tools={"t": {"python": "mock.py:t", "base": str(folder)}, "u": {"returns": 1}})
    whole = scenario(folder, expect={"python": ["check.py:c"]})
    turn = scenario(folder, turns=[{"user": "hi", "expect": {"python": ["tone.py:c", "gone.py:c"]}}])
    assert named(folder, config, scenario(folder, goal="g", user_prompt="prompt.md")) == {"prompt.md"}
    assert named(folder, config, mocked) == {"mock.py"}
    assert named(folder, config, whole) == {"check.py"}
    assert named(folder, config, mocked, whole, turn) == {"mock.py", "check.py", "tone.py"}


def test_hashes_of_contents_and_facts_of_models(folder: Path) -> None:
    config = configured(folder, models={"default": "local/model.gguf"})
    found = file_hashes(config, config, (), ())
    assert found["agent.py"] == sha256(b"the content of agent.py").hexdigest()
    stat = (folder / "model.gguf").stat()
    assert found["model.gguf"] == f"{stat.st_size} bytes, {stat.st_mtime_ns}"
    assert list(found) == sorted(found)


def test_a_file_outside_has_its_whole_path(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    config = configured(inner, {"target": "../agent.py:agent"})
    assert named(inner, config) == {(folder / "agent.py").resolve().as_posix()}


def test_imported_modules_of_the_author(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = configured(folder, {"target": "m:a"})
    (folder / "site-packages").mkdir()
    (folder / "dist-packages").mkdir()
    paths = {
        "one": "helper.py",
        "two": "site-packages/lib.py",
        "three": "helper.so",
        "four": "dist-packages/lib.py",
    }
    for name, path in paths.items():
        (folder / path).write_text("x = 1")
        module = ModuleType(f"author_{name}")
        module.__file__ = str(folder / path)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    gone = ModuleType("author_gone")
    gone.__file__ = str(folder / "gone.py")
    monkeypatch.setitem(sys.modules, "author_gone", gone)
    assert named(folder, config) == {"helper.py"}


def test_input_files_include_the_configuration_and_the_scenarios(folder: Path) -> None:
    config = configured(folder).model_copy(update={"source": "somewhere/agenteval.yaml"})
    written = scenario(folder, source="s.yaml:3", row="rows.csv:2")
    found = list(list_input_files(config, [written], cwd=str(folder)))
    assert {path.name for path in found} == {"agenteval.yaml", "s.yaml", "rows.csv", "agent.py"}
    assert found[0] == folder / "agenteval.yaml"
    bare = list_input_files(configured(folder), [scenario(folder)], cwd=str(folder))
    assert [path.name for path in bare] == ["agent.py"]


@pytest.mark.parametrize("below", [".", "..", "inner", "../other"])
def test_scenarios_are_found_from_the_folder_in_which_they_were_loaded(folder: Path, below: str) -> None:
    """Their places are relative to the working directory, not to the configuration's folder."""
    cwd = Path(os.path.normpath(folder / below))
    cwd.mkdir(exist_ok=True)
    places = [os.path.relpath(folder / name, cwd) for name in ("s.yaml", "rows.csv")]
    for source, row in (places, [str(folder / name) for name in ("s.yaml", "rows.csv")]):
        written = scenario(folder, source=f"{source}:3", row=f"{row}:2")
        found = list_input_files(configured(folder), [written], cwd=str(cwd))
        assert {path.resolve().name for path in found if path.is_file()} == {"s.yaml", "rows.csv", "agent.py"}
        (folder / "rows.csv").write_text("abc123")
        secrets = find_secrets_in_files(["abc123"], configured(folder), [written], cwd=str(cwd))
        assert secrets == {"abc123"}


def test_whether_a_file_is_the_one_that_a_run_read(folder: Path) -> None:
    config = configured(folder)
    sources = file_hashes(config, config, (), ())
    path = folder / "agent.py"
    assert is_unchanged_file(path, str(folder), sources) is True
    assert is_unchanged_file(folder / "mock.py", str(folder), sources) is False
    path.write_text("changed")
    assert is_unchanged_file(path, str(folder), sources) is False


def test_secrets_that_the_author_wrote_into_files(folder: Path) -> None:
    (folder / "agent.py").write_text("KEY = 'abc123'")
    (folder / "s.yaml").write_text("goal: def456")
    (folder / "agenteval.yaml").write_text("ghi789")
    config = configured(folder).model_copy(update={"source": "agenteval.yaml"})
    written = scenario(folder, source="s.yaml:1")
    secrets = ("abc123", "def456", "ghi789", "none")
    assert find_secrets_in_files(secrets, config, [written], cwd=str(folder)) == {"abc123", "def456"}
    assert find_secrets_in_files(secrets, config, [], cwd=str(folder)) == {"abc123"}
    assert find_secrets_in_files((), config, [written], cwd=str(folder)) == frozenset()


# ── keys with variables ──────────────────────────────────────────────────────────────────────────


def keys(folder: Path, filled: Any, written: Any, secrets: tuple[str, ...] = ()) -> dict[str, str]:
    found = file_hashes(
        configured(folder, {"target": "m:a"}, **filled),
        configured(folder, {"target": "m:a"}, **written),
        (),
        secrets,
    )
    return {name: each for name, each in found.items() if name.endswith(": ${…}")}


def test_keys_with_variables(folder: Path) -> None:
    assert keys(folder, {"now": "x"}, {"now": "x"}) == {}
    one = keys(folder, {"now": "x"}, {"now": "${NOW}"})
    two = keys(folder, {"now": "y"}, {"now": "${NOW}"})
    assert list(one) == list(two) == ["now: ${…}"]
    assert one != two


@pytest.mark.parametrize("key", ["concurrency", "agent_concurrency"])
def test_keys_that_do_not_change_results(folder: Path, key: str) -> None:
    assert keys(folder, {key: 5}, {key: 6}) == {}


def test_secrets_and_addresses_do_not_matter(folder: Path) -> None:
    first = keys(folder, {"now": "abc123 x"}, {"now": "${A} x"}, ("abc123",))
    second = keys(folder, {"now": "def456 x"}, {"now": "${A} x"}, ("def456",))
    assert first == second != {}

    def model(url: str, name: str = "m") -> Any:
        return {"models": {"default": {"model": f"openai/{name}", "base_url": url}}}

    public = model("${URL}")
    assert keys(folder, model("http://one"), public) == keys(folder, model("http://two"), public) != {}
    assert keys(folder, model("http://one", "n"), public) != keys(folder, model("http://one"), public)
