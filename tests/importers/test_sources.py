"""What is read of files, pipes, folders and journals, and that nothing of it gets lost without a word."""

from __future__ import annotations

import gzip
import json
import os
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from agenteval.core.errors import AuthorError
from agenteval.importers.sources import find_sources, is_stream, spool_path
from agenteval.planning import score_preparation
from tests.support.kit import Done, Project

SIZE = 300_000
"""More than any buffer between reading a stream once and once more."""


def conversation(name: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    return {"id": name, "messages": messages, **more}


def lines(*records: Any) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def score(project: Project, *arguments: str) -> Done:
    return project.call("score", "--report", "json=results.json", *arguments)


def verdicts(project: Project) -> dict[str, str]:
    return {s["id"]: s["verdict"] for s in project.results()["scenarios"]}


def told(done: Done) -> str:
    return " ".join(done.all.split())


# ── pipes ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def pipe(project: Project) -> Path:
    path = project.root / "pipe"
    os.mkfifo(path)
    return path


def poured(path: Path, data: bytes) -> threading.Thread:
    """Something is written into a pipe once, as ``cat`` does."""
    thread = threading.Thread(target=path.write_bytes, args=(data,), daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("packed", [False, True])
def test_a_pipe_is_read_once_and_whole(project: Project, pipe: Path, packed: bool) -> None:
    records = [conversation(f"c{n}", noise=os.urandom(500).hex()) for n in range(SIZE // 1000)]
    data = lines(*records, "no conversation")
    thread = poured(pipe, gzip.compress(data) if packed else data)

    done = score(project, "pipe", "./pipe")

    thread.join(5)
    assert done.code == 0, done.all
    found = verdicts(project)
    assert [name for name, verdict in found.items() if verdict == "inconclusive"] == [
        f"pipe:{len(records) + 1}"
    ]
    assert len(found) == len(records) + 1
    assert "./pipe is specified twice, but was read only once" in told(done)


def test_it_is_told_which_pipe_is_waited_for(
    project: Project, pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody writes before that is reported: without it this test has no end."""
    told: list[str] = []

    def say(text: str) -> None:
        told.append(text)
        poured(pipe, lines(conversation("a")))

    monkeypatch.chdir(project.root)
    monkeypatch.setattr(score_preparation, "_WARN_AFTER_S", 0)

    with ExitStack() as stack:
        request = score_preparation.ScoreRequest(files=("pipe",))
        (source,) = score_preparation.find_score_sources(
            request, project.root, stack, warn=told.append, warn_waiting=say
        )
        assert source.path.read_bytes() == lines(conversation("a"))

    assert told == ["waiting for pipe: it is scored once the writer closes it"]


def test_what_no_log_is_written_in_is_told_of_a_pipe_too(project: Project, pipe: Path) -> None:
    poured(pipe, "é".encode("utf-16"))
    done = score(project, "pipe")
    assert done.code == 2
    assert "pipe: the file is UTF-16" in done.all


def test_a_stream_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(AuthorError, match="log: the stream cannot be read"):
        spool_path(tmp_path / "nothing", tmp_path, "log")


@pytest.mark.parametrize("name", ["nothing", "x" * 300])
def test_a_file_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    assert not is_stream(tmp_path / name)
    with pytest.raises(AuthorError, match=f"{name}: no such file"):
        find_sources([name], tmp_path)


# ── files and folders ────────────────────────────────────────────────────────────────────────────


def test_one_file_under_several_names_is_read_once_and_told(project: Project) -> None:
    (project.root / "log.jsonl").write_bytes(lines(conversation("a")))
    (project.root / "link.jsonl").symlink_to("log.jsonl")
    (project.root / "sub").mkdir()

    done = score(project, "log.jsonl", "sub/../log.jsonl", "link.jsonl", "./log.jsonl")

    assert done.code == 0, done.all
    assert verdicts(project) == {"a": "passed"}
    assert "log.jsonl and sub/../log.jsonl are the same file and was read once" in told(done)
    assert "log.jsonl and link.jsonl are the same file and was read once" in told(done)
    assert "log.jsonl is specified twice and was read once" in told(done)


def test_folders_in_a_folder_are_told(project: Project) -> None:
    for name in ("logs/a.jsonl", "logs/sub/b.jsonl", "logs/.hidden/c.jsonl"):
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_bytes(lines(conversation(name)))

    done = score(project, "logs")

    assert done.code == 0, done.all
    assert verdicts(project) == {"logs/a.jsonl": "passed"}
    assert "skipped 1 subdirectory in logs; pass them too to include them" in told(done)
    (project.root / "logs/a.jsonl").unlink()
    assert "has no recorded conversations (skipped 1 subdirectory)" in told(score(project, "logs"))
    assert "not read" not in told(score(project, "logs/sub"))


# ── journals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def journal(project: Project) -> list[str]:
    """The lines of a run of two scenarios, of which the second began when the first was over."""
    project.config("concurrency: 1\n")
    project.agent("def agent(messages):\n    return 'Hello.'\n")
    project.scenarios("scenarios: [{id: a, turns: [Hi], checks: none}, {id: b, turns: [Hi], checks: none}]\n")
    assert project.run().code == 0
    (run,) = (project.root / ".agenteval" / "runs").iterdir()
    return (run / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)


def before(journal: list[str], kind: str, scenario: str = "") -> list[str]:
    events = list(map(json.loads, journal))
    at = next(
        n
        for n, event in enumerate(events)
        if event["type"] == kind and (not scenario or event["key"]["scenario"] == scenario)
    )
    return journal[:at]


def scored(project: Project, text: str) -> Done:
    (project.root / "cut.jsonl").write_text(text, encoding="utf-8")
    return score(project, "cut.jsonl")


@pytest.mark.parametrize("torn", ["", '{"type": "sample_st'])
@pytest.mark.parametrize(
    ("cut", "why"),
    [
        (("sample_started", "b"), "the sample was planned but never ran"),
        (("sample_finished", "b"), "the journal ends before the sample finished"),
    ],
)
def test_what_a_run_that_was_cut_off_had_planned_is_inconclusive(
    project: Project, journal: list[str], cut: tuple[str, str], why: str, torn: str
) -> None:
    done = scored(project, "".join(before(journal, *cut)) + torn)
    assert done.code == 3, done.all
    assert verdicts(project) == {"a": "passed", "b": "inconclusive"}
    assert why in told(done)


def test_a_journal_without_an_end_is_inconclusive(project: Project, journal: list[str]) -> None:
    assert scored(project, "".join(journal)).code == 0
    rest = before(journal, "run_finished")
    done = scored(project, "".join(rest))
    assert done.code == 3, done.all
    assert verdicts(project) == {"a": "passed", "b": "passed", f"cut.jsonl:{len(rest)}": "inconclusive"}
    assert "the journal is incomplete: its run was cut off" in told(done)


def test_the_journal_of_a_score_that_was_cut_off_is_inconclusive(project: Project) -> None:
    (project.root / "log.jsonl").write_bytes(lines(conversation("a"), conversation("b")))
    assert score(project, "log.jsonl").code == 0
    (run,) = (project.root / ".agenteval" / "runs").iterdir()
    journal = (run / "events.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    assert scored(project, "".join(journal)).code == 0
    done = scored(project, "".join(before(journal, "sample_started", "b")))
    assert done.code == 3, done.all
    assert verdicts(project)["a"] == "passed"


def test_of_two_journals_in_one_file_the_first_is_not_lost(project: Project, journal: list[str]) -> None:
    done = scored(project, "".join([*before(journal, "sample_started", "b"), *journal]))
    assert done.code == 3, done.all
    samples = {s["id"]: [x["verdict"] for x in s["samples"]] for s in project.results()["scenarios"]}
    assert samples == {"a": ["passed", "passed"], "b": ["inconclusive", "passed"]}


@pytest.mark.parametrize("last", [json.dumps(conversation("c")), '{"id": "torn", "mess'])
def test_what_stands_below_a_journal_is_no_part_of_it_and_told(
    project: Project, journal: list[str], last: str
) -> None:
    done = scored(project, "".join(journal) + last + "\n")
    assert done.code == 3, done.all
    place = f"cut.jsonl:{len(journal) + 1}"
    assert verdicts(project) == {"a": "passed", "b": "passed", place: "inconclusive"}
    assert "not a journal event" in told(done)
