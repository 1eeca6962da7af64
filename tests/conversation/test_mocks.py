"""Mocks written in Python: what they are called with, what they may return, and whose mistake an error is."""

from __future__ import annotations

import datetime
import uuid
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.conversation.mocks import MockFunctions
from agenteval.conversation.tools import FunctionCall
from agenteval.core.errors import AuthorError, parse_place
from agenteval.core.scenario import Sample, SampleKey, Scenario
from agenteval.core.trajectory import ToolResult

CODE = """
import datetime
import time
import uuid
import agenteval

class Thing:
    pass

class Named:
    def __str__(self):
        return "a name"

def echo(args):
    return args

def context(args, ctx):
    return [ctx.call_index, ctx.turn, ctx.sample.scenario, ctx.sample.epoch, ctx.seed]

async def later(args):
    return "later"

def change(args):
    args["list"].append(2)
    args["new"] = 1
    return args

def refuse(args):
    raise agenteval.ToolError("not today")

def fail(args):
    raise KeyError("oops")

def leave(args):
    raise SystemExit(3)

def date(args):
    return {"on": datetime.date(2026, 5, 4), "id": uuid.UUID(int=7), "who": Named()}

def pair(args):
    return (1, 2)

def nothing(args):
    return None

def thing(args):
    return Thing()

def raw(args):
    return b"raw"

def nan(args):
    return float("nan")

def hang(args):
    time.sleep(0.05)

def none_taken():
    return 1

def three(a, b, c):
    return 1

def keyword_only(*, args):
    return 1

number = 7
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("mocks_of_u1")
    (found / "mocks_u1.py").write_text(CODE, encoding="utf-8")
    return found


def sample(name: str, folder: Path) -> Sample:
    scenario = Scenario.model_validate(
        {
            "id": "s",
            "source": "s.yaml:1",
            "lines": {"tools.look": 6},
            "tools": {
                "look": {"python": f"mocks_u1.py:{name}", "base": str(folder)},
                "plain": {"returns": 1},
            },
        }
    )
    return Sample(key=SampleKey(scenario="s", agent="a", epoch=2), scenario=scenario, seed=11)


def called(
    name: str, folder: Path, args: dict[str, Any] | None = None, *, timeout_s: float = 30
) -> ToolResult:
    call = FunctionCall("look", f"mocks_u1.py:{name}", str(folder), {} if args is None else args, 4)
    mocks = MockFunctions(timeout_s=timeout_s)
    found = anyio.run(mocks, call, sample(name, folder), 3)
    assert isinstance(found, ToolResult)
    return found


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("echo", {"a": [1]}),
        ("context", [4, 3, "s", 2, 11]),
        ("later", "later"),
        ("date", {"on": str(datetime.date(2026, 5, 4)), "id": str(uuid.UUID(int=7)), "who": "a name"}),
        ("pair", [1, 2]),
        ("nothing", None),
    ],
)
def test_the_value_of_a_mock(name: str, value: Any, folder: Path) -> None:
    assert called(name, folder, {"a": [1]}) == ToolResult(value=value)


def test_a_mock_cannot_change_the_record(folder: Path) -> None:
    args: dict[str, Any] = {"list": [1]}
    assert called("change", folder, args).value == {"list": [1, 2], "new": 1}
    assert args == {"list": [1]}


def test_a_tool_error_is_a_result(folder: Path) -> None:
    assert called("refuse", folder) == ToolResult(value={"error": "not today"}, is_error=True)


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("fail", "KeyError"),
        ("leave", "SystemExit"),
        ("thing", "Thing"),
        ("raw", "bytes"),
        ("nan", "look"),
        ("number", "look"),
        ("missing", "missing"),
        ("none_taken", "look"),
        ("three", "look"),
        ("keyword_only", "look"),
    ],
)
def test_any_other_fault_is_the_mistake_of_the_author(name: str, fact: str, folder: Path) -> None:
    with pytest.raises(AuthorError) as raised:
        called(name, folder)
    (problem,) = raised.value.problems
    assert fact in problem.what
    assert problem.place == parse_place("s.yaml:6")


def test_a_mock_that_hangs(folder: Path) -> None:
    with pytest.raises(AuthorError) as raised:
        called("hang", folder, timeout_s=0.001)
    assert "0.001" in raised.value.problems[0].what


@pytest.mark.parametrize(
    ("name", "is_wrong"),
    [
        ("echo", False),
        ("context", False),
        ("fail", False),  # nothing is called yet
        ("missing", True),
        ("number", True),
        ("three", True),
        ("none_taken", True),
    ],
)
def test_mocks_are_checked_before_anything_runs(name: str, is_wrong: bool, folder: Path) -> None:
    mocks = MockFunctions(timeout_s=30)
    scenario = sample(name, folder).scenario
    if not is_wrong:
        mocks.check(scenario)
        return
    with pytest.raises(AuthorError) as raised:
        mocks.check(scenario)
    assert raised.value.problems[0].place == parse_place("s.yaml:6")
