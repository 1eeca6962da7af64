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


def installed_in(folder: Path, code: str, name: str = "ferry") -> dict[str, str]:
    (folder / f"{name}_logs.py").write_text(code, encoding="utf-8")
    info = folder / f"{name}_logs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-logs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agenteval.importers]\n{name} = {name}_logs:importer\n")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))}


def trip(name: str, answer: str = "At nine.", **more: Any) -> dict[str, Any]:
    return {"trip": name, "ferry_log": [["P", "When do we leave?"], ["C", answer]], **more}


def lines_of(*records: Any) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


BROKEN = {"trip": "t", "ferry_log": "broken"}
NOTHING = {"id": "n", "ferry_log": "nothing"}
USUAL = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
OF_FERRY = {
    "lines.json": lines_of(trip("lines-1"), trip("lines-2")),
    "lines-wrong.json": lines_of(trip("lines-wrong", KEY)),
    "list.json": json.dumps([trip("list-1"), trip("list-2")], indent=1),
    "list-wrong.json": json.dumps([trip("list-3"), trip("list-wrong", KEY)], indent=1),
    "outcome.json": lines_of(trip("reached", ok=True), trip("not-reached", ok=False)),
    "broken.json": lines_of(
        trip("before"),
        BROKEN,
        {"log": "odd", "messages": trip("t")["ferry_log"]},
        {**BROKEN, "ferry_log": "text"},
        trip("after"),
    ),
    "nothing.json": lines_of(NOTHING),
    "usual.json": lines_of({**NOTHING, "id": "usual", "messages": USUAL}),
}


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, Done]:
    """Logs of other packages' dialects, scored where their importers are installed, in one command."""
    project = Project(tmp_path_factory.mktemp("foreign"))
    site = tmp_path_factory.mktemp("site")
    logs = dict(OF_FERRY)
    for name, code in (("ferry", PACKAGE), *OF_PAGE):
        env = installed_in(site, code, name)
    for name, _ in OF_PAGE:
        (path,) = OTHERS.glob(f"{name}.json*")
        text = path.read_text(encoding="utf-8")
        logs |= {f"fixed-{path.name}": text, f"wrong-{path.name}": text.replace(ANSWER, f"{ANSWER} {KEY}")}
    record = json.loads(logs["fixed-sharegpt.json"])
    record["conversations"][-1]["actions"] = [{"do": "cancel"}]
    logs["unknown.json"] = json.dumps(record)
    for name, text in logs.items():
        project.write(name, text)
    project.write("agenteval.yaml", GUARDED)
    done = project.call("score", *logs, "--report", "json=results.json", env=env)
    assert done.code == 1, done.all
    return project, done


def samples(project: Project) -> dict[str, Any]:
    return {each["id"]: each["samples"][0] for each in project.results()["scenarios"]}


def test_the_package_of_the_page_is_about_thirty_lines_and_registered() -> None:
    declared = tomllib.loads(REGISTERED)["project"]["entry-points"][GROUP]
    assert declared == {"sharegpt": "sharegpt_logs:importer"}
    assert [name for name, _ in OF_PAGE] == ["sharegpt", "codex"]
    assert all(sum(map(bool, code.splitlines())) <= 31 for _, code in OF_PAGE)


VERDICTS = {
    **dict.fromkeys(("lines-1", "lines-2", "list-1", "list-2", "list-3", "before", "after"), "passed"),
    **dict.fromkeys(("lines-wrong", "list-wrong", "not-reached"), "failed"),
    "reached": "passed",
    "usual": "passed",  # the importer finds nothing in it, and ours do
    **dict.fromkeys(("nothing.json:1", *(f"broken.json:{line}" for line in (2, 3, 4))), "inconclusive"),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_a_log_of_another_package_s_dialect(foreign: tuple[Project, Done], name: str) -> None:
    assert samples(foreign[0])[name]["verdict"] == VERDICTS[name]


def test_notes_and_answers_of_another_package_s_dialect(foreign: tuple[Project, Done]) -> None:
    project, done = foreign
    assert "the horn was left out (lines.json:1" in done.out  # the importer's own words
    assert samples(project)["lines-1"]["turns"][0]["agent"] == "At nine."


@pytest.mark.parametrize("indent", [None, 1], ids=["lines", "list"])
def test_without_its_package_a_dialect_is_not_read(project: Project, indent: int | None) -> None:
    project.write("log.json", json.dumps([trip("t-1")] if indent else trip("t-1"), indent=indent))
    assert project.call("score", "log.json").code == 2


@pytest.mark.parametrize(
    ("line", "facts"),
    [
        (2, ("'ferry'", "ValueError: no such log")),
        (3, ("'ferry'", "KeyError")),
        (4, ("'ferry'", "str", "messages")),
    ],
)
def test_an_importer_that_fails_is_named(
    foreign: tuple[Project, Done], line: int, facts: tuple[str, ...]
) -> None:
    reason = samples(foreign[0])[f"broken.json:{line}"]["reason"]
    assert all(fact in reason for fact in (f"broken.json:{line}", *facts)), reason


@pytest.mark.parametrize(
    ("fixed", "wrong"), [("fixed-sharegpt.json:1", "wrong-sharegpt.json:1"), ("s-1", "s-1#2")]
)
def test_an_importer_of_the_page_reads_what_left(
    foreign: tuple[Project, Done], fixed: str, wrong: str
) -> None:
    """The ids of the conversation as it was recorded, and of one that leaks a key."""
    for name, verdict, answer in ((fixed, "passed", ANSWER), (wrong, "failed", f"{ANSWER} ***")):
        sample = samples(foreign[0])[name]
        (turn,) = sample["turns"]
        (call,) = turn["tool_calls"]
        assert (sample["verdict"], turn["user"], turn["agent"]) == (verdict, ASKED, answer)
        assert (call["name"], call["args"], call["result"]) == ("get_fare", {"flight": "RX4417"}, FOUND)


def test_what_an_importer_of_the_page_does_not_know_is_not_fully_seen(foreign: tuple[Project, Done]) -> None:
    (line,) = [line for line in foreign[1].out.splitlines() if "'actions'" in line]
    assert line.startswith("warning:")
    assert "unknown.json:1" in foreign[1].out


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
    project.write("log.json", json.dumps(trip("t-1")))
    project.call("score", "log.json", env=env).refuses("agenteval", "'torn'", "torn_logs:importer")


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
