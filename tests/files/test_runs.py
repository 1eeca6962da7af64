"""Which run a name means, and what its journal holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.core.errors import AuthorError
from agenteval.core.event import SampleFinished, SampleStarted
from agenteval.core.scenario import SampleKey, Scenario
from agenteval.core.trajectory import Stop, StopReason
from agenteval.files import journal, runs
from tests.support.report_samples import started

SCENARIOS = (Scenario(id="a", turns=()),)
KEYS = (SampleKey(scenario="a", agent="bot"),)


def made(root: Path, name: str, began: str = "2026-11-21T10:15:00.000Z") -> Path:
    folder = root / ".agenteval" / "runs" / name
    folder.mkdir(parents=True)
    event = started(SCENARIOS, KEYS).model_copy(update={"run_id": name, "started_at": began})
    (folder / "events.jsonl").write_text(journal.event_to_json(event) + "\n", "utf-8")
    return folder


def refusal(name: str, root: Path) -> str:
    with pytest.raises(AuthorError) as refused:
        runs.find_run(name, root)
    return str(refused.value)


def test_an_id_and_the_beginning_of_one(tmp_path: Path) -> None:
    first, second = made(tmp_path, "20261121-101500-aaa111"), made(tmp_path, "20261121-101501-bbb222")
    assert runs.find_run("20261121-101500-aaa111", tmp_path) == first
    assert runs.find_run("20261121-101501", tmp_path) == second
    told = refusal("20261121", tmp_path)
    assert "matches 2 runs" in told
    assert first.name in told
    assert second.name in told


def test_an_id_that_another_begins_with_is_that_run(tmp_path: Path) -> None:
    short, _long = made(tmp_path, "run"), made(tmp_path, "run-2")
    assert runs.find_run("run", tmp_path) == short


def test_the_latest_began_last_even_within_a_second(tmp_path: Path) -> None:
    last = made(tmp_path, "20261121-101500-aaa111", "2026-11-21T10:15:00.900Z")
    first = made(tmp_path, "20261121-101500-bbb222", "2026-11-21T10:15:00.100Z")
    assert runs.find_run("latest", tmp_path) == last
    assert runs.find_run("previous", tmp_path) == first


def test_there_is_no_previous_one_of_one(tmp_path: Path) -> None:
    made(tmp_path, "20261121-101500-aaa111")
    assert "there is no run before 20261121-101500-aaa111" in refusal("previous", tmp_path)


def test_paths_of_a_folder_and_of_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path / "elsewhere", "20261121-101500-aaa111")
    monkeypatch.chdir(tmp_path)
    relative = folder.relative_to(tmp_path)
    assert runs.find_run(str(relative), tmp_path).resolve() == folder
    assert runs.find_run(str(relative / "events.jsonl"), tmp_path).resolve() == folder
    copied = folder.rename(folder.with_name("x")) / "events.jsonl"
    copied = copied.rename(tmp_path / "copied.jsonl")
    assert runs.load_run(runs.find_run("copied.jsonl", tmp_path))[0].type == "run_started"


def test_an_unknown_name_is_told_with_the_nearest_or_the_latest(tmp_path: Path) -> None:
    assert "contains no runs" in refusal("latest", tmp_path)
    made(tmp_path, "20261121-101500-aaa111")
    assert "did you mean '20261121-101500-aaa111'?" in refusal("20261121-101500-aaa112", tmp_path)
    assert "did you mean 'latest'?" in refusal("lates", tmp_path)
    assert "the latest are 20261121-101500-aaa111" in refusal("zzz", tmp_path)
    assert "no run" in refusal("", tmp_path)
    assert "x" * 300 in refusal("x" * 300, tmp_path)  # longer than a file's name can be


def test_a_folder_without_a_journal_is_no_run(tmp_path: Path) -> None:
    (tmp_path / ".agenteval" / "runs" / "20261121-101500-empty1").mkdir(parents=True)
    assert runs.find_run_folders(tmp_path) == ()


# ── what is in it ────────────────────────────────────────────────────────────────────────────────


def loaded(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "events.jsonl"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(AuthorError) as refused:
        runs.load_run(path)
    assert str(path) in str(refused.value)
    assert refused.value.exit_code == 2
    return str(refused.value)


FIRST = journal.event_to_json(started(SCENARIOS, KEYS))
SECOND = journal.event_to_json(SampleStarted(key=KEYS[0]))


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line_is_left_out(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text(f"{FIRST}\n{SECOND[:-cut]}", "utf-8")
    assert [event.type for event in runs.load_run(path)] == ["run_started"]
    path.write_text(f"{FIRST}\n{SECOND}\n", "utf-8")
    assert [event.type for event in runs.load_run(tmp_path)] == ["run_started", "sample_started"]


def test_a_newer_version_is_refused_before_it_is_misread(tmp_path: Path) -> None:
    newer = {"type": "run_started", "schema_version": 99, "what_will_be": True}
    told = loaded(tmp_path, json.dumps(newer) + "\n" + '{"type": "dreamt"}\n')
    assert "version 99" in told
    assert "newer" in told


@pytest.mark.parametrize(
    "text", ["hello\n", "[1]\n", '{"a": 1}\n', b"\x00\xff\n", "[" * 100_000 + "\n", "\n"]
)
def test_what_is_no_journal_is_told(tmp_path: Path, text: str | bytes) -> None:
    assert "this is not a run journal" in loaded(tmp_path, text)


@pytest.mark.parametrize("text", ["", FIRST[:50], SECOND + "\n"])
def test_a_journal_without_a_beginning_is_told(tmp_path: Path, text: str) -> None:
    assert "run_started" in loaded(tmp_path, text)


def test_a_broken_line_in_the_middle_is_told_with_its_number(tmp_path: Path) -> None:
    assert "events.jsonl:2:" in loaded(tmp_path, f"{FIRST}\n{SECOND[:30]}\n{SECOND}\n")


def test_events_of_samples_that_were_never_begun_are_told(tmp_path: Path) -> None:
    stray = journal.event_to_json(SampleFinished(key=KEYS[0], stop=Stop(reason=StopReason.SCRIPT_DONE)))
    assert "was not started" in loaded(tmp_path, f"{FIRST}\n{stray}\n")
    other = journal.event_to_json(SampleStarted(key=SampleKey(scenario="b", agent="bot")))
    assert "was not started" in loaded(tmp_path, f"{FIRST}\n{other}\n")


def test_a_journal_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(AuthorError, match="cannot be read"):
        runs.load_run(tmp_path / "nothing")


def test_the_folder_of_a_project_is_ignored_but_for_schemas(tmp_path: Path) -> None:
    root = tmp_path / "new" / "project"
    home = runs.ensure_project_folder(root)
    assert home == root / ".agenteval"
    assert (home / ".gitignore").read_text("utf-8").split() == ["*", "!*.schema.json"]
    (home / ".gitignore").write_text("mine\n", "utf-8")
    assert runs.ensure_project_folder(root) == home
    assert (home / ".gitignore").read_text("utf-8") == "mine\n"


def test_how_commands_refer_to_a_run(tmp_path: Path) -> None:
    first = made(tmp_path, "20261121-101500-aaa111", "2026-11-21T10:15:00.000Z")
    latest = made(tmp_path, "20261121-101501-bbb222", "2026-11-21T10:15:01.000Z")
    elsewhere = made(tmp_path / "elsewhere", "20261121-101502-ccc333")
    assert runs.run_reference(latest, tmp_path) == ""
    assert runs.run_reference(first, tmp_path) == first.name
    assert runs.run_reference(elsewhere, tmp_path) == str(elsewhere)
    assert runs.run_reference(elsewhere, tmp_path / "nothing") == str(elsewhere)


@pytest.mark.parametrize(
    ("run_id", "short"), [("20261121-101500-aaa111", "aaa111"), ("run", "run"), ("run-", "run-"), ("", "")]
)
def test_the_short_id_of_a_run(run_id: str, short: str) -> None:
    assert runs.short_run_id(run_id) == short


def test_a_short_id_finds_its_run(tmp_path: Path) -> None:
    made(tmp_path, "20261121-101500-aaa111")
    second = made(tmp_path, "20261121-101500-bbb222")
    assert runs.find_run("bbb222", tmp_path) == second


@pytest.mark.parametrize(
    ("changes", "commit"),
    [
        ({"commit": "a" * 40}, "a" * 40),
        ({"commit": "a" * 64}, "a" * 64),
        ({"commit": "a" * 40, "dirty": True}, ""),
        ({"commit": "a" * 39}, ""),
        ({}, ""),
    ],
)
def test_the_commit_that_a_run_tested(tmp_path: Path, changes: dict[str, object], commit: str) -> None:
    folder = made(tmp_path, "r")
    event = started(SCENARIOS, KEYS).model_copy(update=changes)
    (folder / "events.jsonl").write_text(journal.event_to_json(event) + "\n", "utf-8")
    assert runs.read_run_commit(folder) == commit
    assert runs.read_start_time(folder) == event.started_at


def test_a_run_without_a_journal_has_no_beginning(tmp_path: Path) -> None:
    assert (runs.read_start_time(tmp_path), runs.read_run_commit(tmp_path)) == ("", "")


# ── the first event ──────────────────────────────────────────────────────────────────────────────


def test_the_start_of_a_run_is_read_without_the_rest(tmp_path: Path) -> None:
    folder = made(tmp_path, "r1")
    with (folder / "events.jsonl").open("a") as file:
        file.write("no event\n")
    for path in (folder, folder / "events.jsonl"):
        assert runs.load_run_start(path).run_id == "r1"
    with pytest.raises(AuthorError):
        runs.load_run(folder)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("", "run_started"),
        ('{"type": "run_started"', "run_started"),
        ('{"type": "notice", "text": "x"}\n', "run_started"),
        ('{"type": "run_started", "schema_version": 1}\n', "version 1"),
        ("[]\n", "not a run journal"),
    ],
)
def test_a_journal_without_a_start(tmp_path: Path, text: str, fact: str) -> None:
    (tmp_path / "events.jsonl").write_text(text, "utf-8")
    with pytest.raises(AuthorError) as error:
        runs.load_run_start(tmp_path)
    assert fact in str(error.value)
    assert "events.jsonl" in str(error.value)


def test_there_is_no_start_without_a_journal(tmp_path: Path) -> None:
    with pytest.raises(AuthorError):
        runs.load_run_start(tmp_path)
