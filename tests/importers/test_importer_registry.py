"""Importers of dialects: ours read their samples and see the bug in them, another package's comes first."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.importers.entries import entries_of
from agenteval.importers.importer_registry import GROUP, importers
from agenteval.importers.reader import conversation_of
from agenteval.importers.records import ImportedConversation, ToolSets
from agenteval.importers.sources import Source
from agenteval.messages.log_entry import Record
from tests.support.kit import Done, Project

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "tests/data/dialects").iterdir(), key=lambda path: path.name)
ASKED, ANSWER, FOUND = (
    "What does flight RX4417 cost?",
    "RX4417 costs $797.27.",
    "The fare of RX4417 is $797.27.",
)
KEY = "AKIAIOSFODNN7EXAMPLQ"
OTHERS = ROOT / "tests/data/other_formats"
GUARDED = f"agent: {{target: 'agent.py:agent', secrets: [{KEY}]}}\nfail_on_severity: critical\n"


def name_of(path: Path) -> str:
    return path.name.partition(".")[0]


def read(path: Path) -> list[ImportedConversation]:
    """Every conversation of a file."""
    entries = list(entries_of(Source(path, path.name)))
    assert all(isinstance(entry, Record) for entry in entries), entries
    return [conversation_of(entry, ToolSets()) for entry in entries if isinstance(entry, Record)]


def told(conversation: ImportedConversation) -> list[Any]:
    """What was asked, called, given back and answered, in order."""
    found: list[Any] = []
    for turn in conversation.parsed.trajectory.turns:
        found.append(turn.user)
        for step in turn.steps:
            calls = [(call.name, call.args, call.result and call.result.value) for call in step.tool_calls]
            found += [*calls, *([step.text] if step.text else [])]
    return found


# ── ours ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", SAMPLES, ids=name_of)
def test_a_conversation_is_the_same_in_every_dialect(path: Path) -> None:
    conversations = read(path)
    calls = [("get_fare", {"flight": "RX4417"}, FOUND)]
    (found,) = [each for each in conversations if ASKED in told(each)]
    said = [each for each in told(found) if each not in ("Hello", "Hi!", "One moment.")]
    assert said == [ASKED, *calls, ANSWER]
    assert not found.parsed.orphans


@pytest.mark.parametrize("path", SAMPLES, ids=name_of)
def test_the_bug_in_a_sample_is_red_and_its_fix_is_green(project: Project, path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    wrong = f"{ANSWER} {KEY}"
    project.write("agenteval.yaml", GUARDED)
    project.write(path.name, text)
    project.write(f"wrong.{path.name}", text.replace(ANSWER, wrong))
    done = project.call("score", path.name)
    assert done.code == 0, done.all
    done = project.call("score", f"wrong.{path.name}")
    assert done.code == 1, done.all
    assert "unsafe state" in done.out


def test_every_importer_of_ours_has_a_sample_that_no_other_matches() -> None:
    """Which of two reads a record is never a matter of their names."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert [importer.name for importer in importers()] == sorted(declared[GROUP])
    read_by: dict[str, set[str]] = {}
    for path in SAMPLES:
        text = path.read_text(encoding="utf-8")
        records = [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else []
        records = records or [json.loads(text)]
        records += records[0].get("eval_cases", []) if isinstance(records[0], dict) else []
        for record in records:
            matches = {importer.name for importer in importers() if importer.matches(record)}
            assert len(matches) < 2, path
            read_by.setdefault(name_of(path), set()).update(matches)
    assert {name for names in read_by.values() for name in names} == set(declared[GROUP])
    for path, names in read_by.items():
        assert all(path.startswith(name) for name in names)


def test_help_loads_no_importer() -> None:
    command = [sys.executable, "-X", "importtime", "-m", "agenteval", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "agenteval.messages.dialects" not in done.stderr
    assert "importlib.metadata" not in done.stderr


# ── another package's ────────────────────────────────────────────────────────────────────────────

PAGE = (ROOT / "docs/importers.md").read_text(encoding="utf-8")
OF_PAGE = re.findall(r"^```python\n# (\w+)_logs.py\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
(REGISTERED,) = re.findall(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PACKAGE = """
class Ferry:
    name = "ferry"

    def matches(self, record):
        if isinstance(record, dict) and record.get("log") == "odd":
            raise KeyError("who")
        return isinstance(record, dict) and "ferry_log" in record

    def read(self, record):
        if record["ferry_log"] == "broken":
            raise ValueError("no such log")
        if record["ferry_log"] in ("text", "nothing"):
            return {"text": ["abc"], "nothing": []}[record["ferry_log"]]
        said = [{"role": {"P": "user", "C": "assistant"}[who], "content": text}
                for who, text in record["ferry_log"]]
        return [{"id": record["trip"], "agent": "captain", "messages": said, "outcome": record.get("ok"),
                 "notes": ["the horn was left out"]}]

importer = Ferry()
"""


@pytest.fixture
def installed(project: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which a package with an importer is installed."""
    folder = tmp_path_factory.mktemp("site")
    return installed_in(folder, PACKAGE)


def installed_in(folder: Path, code: str, name: str = "ferry") -> dict[str, str]:
    (folder / f"{name}_logs.py").write_text(code, encoding="utf-8")
    info = folder / f"{name}_logs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-logs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agenteval.importers]\n{name} = {name}_logs:importer\n")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


def trip(name: str, answer: str = "At nine.", **more: Any) -> dict[str, Any]:
    return {"trip": name, "ferry_log": [["P", "When do we leave?"], ["C", answer]], **more}


def scored(project: Project, env: dict[str, str], *records: Any, lines: bool = True) -> Done:
    text = (
        "".join(f"{json.dumps(record)}\n" for record in records) if lines else json.dumps(records, indent=1)
    )
    project.write("log.json", text)
    project.write("agenteval.yaml", GUARDED)
    return project.call("score", "log.json", "--report", "json=results.json", env=env)


def samples(project: Project) -> dict[str, Any]:
    return {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}


def test_the_package_of_the_page_is_about_thirty_lines_and_registered() -> None:
    declared = tomllib.loads(REGISTERED)["project"]["entry-points"][GROUP]
    assert declared == {"sharegpt": "sharegpt_logs:importer"}
    assert [name for name, _ in OF_PAGE] == ["sharegpt", "codex"]
    assert all(sum(map(bool, code.splitlines())) <= 31 for _, code in OF_PAGE)


@pytest.mark.parametrize(("name", "code"), OF_PAGE, ids=[name for name, _ in OF_PAGE])
def test_an_importer_of_the_page_reads_what_left(
    project: Project, tmp_path_factory: pytest.TempPathFactory, name: str, code: str
) -> None:
    env = installed_in(tmp_path_factory.mktemp("site"), code, name)
    (path,) = OTHERS.glob(f"{name}.json*")
    text = path.read_text(encoding="utf-8")
    project.write("agenteval.yaml", GUARDED)
    for wrong, code_of in ((ANSWER, 0), (f"{ANSWER} {KEY}", 1)):
        project.write(path.name, text.replace(ANSWER, wrong))
        done = project.call("score", path.name, "--report", "json=results.json", env=env)
        assert done.code == code_of, done.all
        (sample,) = samples(project).values()
        (turn,) = sample["turns"]
        (call,) = turn["tool_calls"]
        assert (turn["user"], turn["agent"]) == (ASKED, wrong.replace(KEY, "***"))
        assert (call["name"], call["args"], call["result"]) == ("get_fare", {"flight": "RX4417"}, FOUND)


def test_what_an_importer_of_the_page_does_not_know_is_not_fully_seen(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    env = installed_in(tmp_path_factory.mktemp("site"), OF_PAGE[0][1], "sharegpt")
    record = json.loads((OTHERS / "sharegpt.json").read_text(encoding="utf-8"))
    record["conversations"][-1]["actions"] = [{"do": "cancel"}]
    done = scored(project, env, record)
    assert "'actions' in a message was not recognized" in done.all


@pytest.mark.parametrize("lines", [True, False])
def test_a_log_of_another_package_s_dialect(project: Project, installed: dict[str, str], lines: bool) -> None:
    done = scored(project, installed, trip("t-1"), trip("t-2"), lines=lines)
    assert done.code == 0, done.all
    assert "the horn was left out (log.json:" in done.all
    found = samples(project)
    assert set(found) == {"t-1", "t-2"}
    assert found["t-1"]["turns"][0]["agent"] == "At nine."
    assert scored(project, installed, trip("t-1"), trip("t-2", KEY), lines=lines).code == 1
    assert scored(project, {}, trip("t-1"), lines=lines).code == 2


def test_an_outcome_that_an_importer_gives(project: Project, installed: dict[str, str]) -> None:
    assert scored(project, installed, trip("t-1", ok=True), trip("t-2", ok=False)).code == 1
    assert {name: each["verdict"] for name, each in samples(project).items()} == {
        "t-1": "passed",
        "t-2": "failed",
    }


def test_an_importer_that_fails_is_reported_and_the_others_go_on(
    project: Project, installed: dict[str, str]
) -> None:
    broken = {"trip": "t", "ferry_log": "broken"}
    odd = {"log": "odd", "messages": trip("t")["ferry_log"]}
    done = scored(project, installed, trip("t-1"), broken, odd, {**broken, "ferry_log": "text"}, trip("t-2"))
    assert done.code == 3, done.all
    found = samples(project)
    assert {name: each["verdict"] for name, each in found.items()} == {
        "t-1": "passed",
        "t-2": "passed",
        **dict.fromkeys(("log.json:2", "log.json:3", "log.json:4"), "inconclusive"),
    }
    why = "log.json:2: the importer 'ferry' failed: ValueError: no such log"
    assert why in " ".join(done.out.split())
    assert "the importer 'ferry' failed: KeyError" in found["log.json:3"]["reason"]
    assert "returned str; expected an object with a `messages` list" in found["log.json:4"]["reason"]


def test_a_record_in_which_an_importer_finds_nothing_is_not_lost(
    project: Project, installed: dict[str, str]
) -> None:
    usual = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    nothing = {"id": "n", "ferry_log": "nothing"}
    assert scored(project, installed, {**nothing, "messages": usual}).code == 0
    assert scored(project, installed, trip("t-1"), nothing).code == 3


def test_another_package_s_importer_is_asked_before_ours(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    code = """
class Importer:
    name = "zz"
    def matches(self, record):
        return isinstance(record, list)
    def read(self, record):
        return [{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Mine"}]}]
importer = Importer()
"""
    env = installed_in(tmp_path_factory.mktemp("site"), code, "zz")
    sample = next(path for path in SAMPLES if name_of(path) == "pydantic-ai")
    project.write("log.json", sample.read_text(encoding="utf-8"))
    assert project.call("score", "log.json", "--report", "json=results.json", env=env).code == 0
    (found,) = samples(project).values()
    assert found["turns"][0]["agent"] == "Mine"


def test_an_importer_that_cannot_be_loaded_is_a_mistake(
    project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    env = installed_in(tmp_path_factory.mktemp("site"), "import no_such_module_of_theirs\n", "torn")
    done = scored(project, env, trip("t-1"))
    assert done.code == 2
    assert "the importer 'torn' (torn_logs:importer) cannot be loaded" in done.all


@pytest.fixture
def fresh() -> Iterator[None]:
    importers.cache_clear()
    yield
    importers.cache_clear()


def test_an_object_that_is_no_importer(fresh: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed_in(tmp_path, "importer = 7\n", "seven")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(AuthorError, match=r"'seven' .* cannot be loaded: AttributeError"):
        importers()
