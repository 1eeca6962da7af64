"""Agents in another interpreter: which interpreter is meant, why it refuses, what its target returned."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval.adapters.agents.interpreter import (
    START,
    _find_interpreter,
    _refusal,
    _WorkerAnswerReader,
    parse_worker_answer,
)
from agenteval.core.errors import AgentError, AgentevalError, AuthorError, InfrastructureError, Place
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import CallEvidence

PLACE = Place("agenteval.yaml", 3)
SAMPLE = Sample(key=SampleKey(scenario="s", agent="bot"), scenario=Scenario(id="s", name="s", turns=("Hi",)))

posix = pytest.mark.skipif(sys.platform == "win32", reason="files that can be executed")


def raised(answer: Mapping[str, Any]) -> AgentevalError:
    with pytest.raises(AgentevalError) as error:
        parse_worker_answer(answer)
    return error.value


# ── what the target returned ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("answer", "text", "evidence"),
    [
        ({"value": "Hi"}, "Hi", None),
        ({"value": "Hi", "list_asked": True}, "Hi", CallEvidence.ASKED),
        ({"value": "Hi", "list_asked": False, "missed": ""}, "Hi", None),
        ({"value": {"role": "assistant", "content": "Hi"}}, "Hi", None),
        ({"agent_reply": {"text": "Hi", "usage": None, "messages": None}}, "Hi", None),
        ({"agent_reply": {"text": "Hi"}, "list_asked": True, "value": "Ho"}, "Hi", CallEvidence.ASKED),
        ({"agent_reply": None, "value": "Ho"}, "Ho", None),
    ],
)
def test_an_answer(answer: Mapping[str, Any], text: str, evidence: CallEvidence | None) -> None:
    reply = parse_worker_answer(answer)
    assert (reply.text, reply.evidence) == (text, evidence)


@pytest.mark.parametrize(
    ("answer", "fact"),
    [
        ({}, "nothing"),
        ({"returned": "a dict"}, "a dict"),
        ({"too_large": "larger than 10 MiB"}, "larger than 10 MiB"),
        ({"too_large": "larger than 10 MiB", "value": "Hi"}, "larger than 10 MiB"),
        ({"value": 7}, ""),
    ],
)
def test_what_is_no_answer(answer: Mapping[str, Any], fact: str) -> None:
    error = raised(answer)
    assert isinstance(error, AgentError)
    assert error.kind == "protocol"
    assert fact in str(error)


@pytest.mark.parametrize(
    ("error", "cls", "kind"),
    [
        ({"message": "boom", "kind": "author"}, AuthorError, None),
        ({"message": "boom"}, AgentError, "exception"),
        ({"message": "boom", "kind": "timeout"}, AgentError, "timeout"),
        ({"message": "boom", "kind": "infrastructure"}, InfrastructureError, None),
    ],
)
def test_an_error_of_the_target(error: Mapping[str, Any], cls: type[Exception], kind: str | None) -> None:
    found = raised({"error": error})
    assert type(found) is cls
    assert "boom" in str(found)
    assert getattr(found, "kind", None) == kind
    assert getattr(found, "seen", None) is None


def test_what_was_done_before_an_error_is_kept() -> None:
    found = raised({"error": {"message": "boom"}, "value": "Half", "list_asked": True})
    assert found.seen.text == "Half"
    assert found.seen.evidence is CallEvidence.ASKED
    assert raised({"error": {"message": "boom"}, "value": 7}).seen is None


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"value": "Hi"}, "Hi"),
        ({"error": {"message": "boom"}, "value": "Half"}, "Half"),
        ({"error": {"message": "boom"}}, None),
        ({}, None),
    ],
)
def test_what_was_missed_is_not_the_agents_fault(answer: Mapping[str, Any], text: str | None) -> None:
    found = raised({**answer, "missed": "a call in another process"})
    assert isinstance(found, InfrastructureError)
    assert found.is_final
    assert "a call in another process" in str(found)
    assert (found.seen and found.seen.text) == text


def test_the_authors_mistake_stays_it() -> None:
    found = raised({"error": {"kind": "author", "message": "boom"}, "missed": "a call"})
    assert isinstance(found, AuthorError)


def test_calls_of_a_turn_are_part_of_the_answer_and_of_its_error() -> None:
    warnings: list[str] = []
    read = _WorkerAnswerReader("bot", warnings.append)(SAMPLE)
    more = {"made": [["find", {"q": 1}, "1"]], "is_met": True}
    reply = read({"value": "Hi", **more})
    assert reply.text == "Hi"
    assert [call.name for call in reply.made] == ["find"]
    assert reply.evidence is CallEvidence.RECORDED
    assert read({"value": "Hi", **more, "is_of_framework": True}).evidence is None
    assert read({"value": "Hi"}).made == ()
    with pytest.raises(AgentError) as error:
        read({"error": {"message": "boom"}, **more})
    assert [call.name for call in error.value.seen.made] == ["find"]
    with pytest.raises(AgentError) as error:
        read({"error": {"message": "boom"}})
    assert error.value.seen is None
    forked = [{"forked": True, "unread": "elsewhere"}]
    assert read({"value": "Hi", "exchanges": forked}).text == "Hi"
    assert len(warnings) == 1
    assert "'bot'" in warnings[0]


# ── why it refuses ───────────────────────────────────────────────────────────────────────────────


def test_a_worker_that_is_ready_refuses_nothing() -> None:
    assert _refusal({"ready": {}}, "bot", "py") is None


@pytest.mark.parametrize(
    ("refused", "is_of_interpreter", "key", "what", "remedy"),
    [
        ({"of": "python", "what": "3.7", "remedy": "r"}, True, "target", ["'bot'", "'py'", "3.7"], "r"),
        ({"of": "agent", "what": "w"}, False, "target", ["w"], ""),
        ({"of": "intercept", "tool": "f", "what": "w", "remedy": "r"}, False, "intercept.f", ["w"], "r"),
        ({"what": " has no x", "remedy": "r"}, False, "target", ["'bot' has no x"], "r"),
        (
            {"what": " has no x", "asked": "agnet", "known": ["agent", "b"]},
            False,
            "target",
            ["'bot'"],
            "'agent'",
        ),
    ],
)
def test_why_a_worker_refuses(
    refused: Mapping[str, Any], is_of_interpreter: bool, key: str, what: list[str], remedy: str
) -> None:
    found = _refusal({"refused": refused}, "bot", "py")
    assert found is not None
    assert (found.is_of_interpreter, found.key) == (is_of_interpreter, key)
    assert all(fact in found.what for fact in what)
    assert remedy in found.remedy
    assert bool(found.remedy) is bool(remedy)


@pytest.mark.parametrize("greeting", [{}, {"refused": "no"}])
def test_what_does_not_greet_is_not_python(greeting: Mapping[str, Any]) -> None:
    found = _refusal(greeting, "bot", "py")
    assert found is not None
    assert found.is_of_interpreter
    assert "'py'" in found.what


# ── which interpreter ────────────────────────────────────────────────────────────────────────────


def python_in(folder: Path, name: str = "bin/python", mode: int = 0o755) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(mode)
    return path


def not_found(written: str, root: Path) -> str:
    with pytest.raises(AuthorError) as error:
        _find_interpreter(written, str(root), {"PATH": str(root / "path")}, PLACE)
    (problem,) = error.value.problems
    assert problem.place == PLACE
    assert f"'{written}'" in problem.what
    return problem.remedy


@posix
def test_a_path_is_relative_to_the_configuration(tmp_path: Path) -> None:
    path = python_in(tmp_path / "venv")
    root = str(tmp_path)
    for written in ("venv/bin/python", "./venv/bin/python", "venv/../venv/bin/python", str(path)):
        assert _find_interpreter(written, root, {}, PLACE) == str(path)


@posix
def test_a_name_is_looked_up_as_in_a_shell(tmp_path: Path) -> None:
    path = python_in(tmp_path, "path/python9")
    assert _find_interpreter("python9", str(tmp_path), {"PATH": str(path.parent)}, PLACE) == str(path)


@posix
def test_a_link_is_not_resolved(tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    link = tmp_path / "venv" / "bin" / "python"
    os.symlink(python_in(tmp_path / "real"), link)
    assert _find_interpreter("venv/bin/python", str(tmp_path), {}, PLACE) == str(link)


@posix
def test_a_folder_of_an_environment_is_answered_with_its_interpreter(tmp_path: Path) -> None:
    python_in(tmp_path / "venv")
    python_in(tmp_path / "win", "Scripts/python.exe")
    assert "venv/bin/python" in not_found("venv", tmp_path)
    assert "./venv/bin/python" in not_found("./venv/", tmp_path)
    assert "win/Scripts/python.exe" in not_found("win", tmp_path)
    assert str(tmp_path) in not_found("no/such", tmp_path)
    assert "bin/python" in not_found("python9", tmp_path)


@posix
def test_a_file_that_cannot_be_executed(tmp_path: Path) -> None:
    python_in(tmp_path, "a/python", 0o644)
    if os.access(tmp_path / "a" / "python", os.X_OK):
        pytest.skip("everything can be executed here")
    not_found("a/python", tmp_path)


def test_what_the_other_interpreter_runs_is_there() -> None:
    assert START.is_file()
