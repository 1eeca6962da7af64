"""``agenteval tools``: the one scenario that is served, where, and the entry of a real tool."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
import yaml

from agenteval.cli.commands import tools as module
from agenteval.cli.commands.tools import _entry, _parse_host, _require_one, _ServedWorld, schemas
from agenteval.conversation.mocks import MockFunctions
from agenteval.core.config import Config
from agenteval.core.errors import AuthorError, Problem
from agenteval.core.scenario import Scenario


def scenario(name: str, **more: Any) -> Scenario:
    return Scenario.model_validate({"id": name, "source": f"s/{name}.yaml:1", **more})


def test_the_only_scenario_is_served() -> None:
    only = scenario("a")
    assert _require_one([only]) is only


@pytest.mark.parametrize(("count", "has_more"), [(0, False), (2, False), (8, False), (9, True)])
def test_another_number_is_refused(count: int, has_more: bool) -> None:
    with pytest.raises(AuthorError) as error:
        _require_one([scenario(f"a{n}") for n in range(count)])
    (problem,) = error.value.problems
    assert problem.what.startswith(f"{count} scenarios")
    assert sum(f"s/a{n}.yaml::a{n}" in problem.what for n in range(count)) == min(count, 8)
    assert problem.what.endswith(", …") is has_more
    assert "-s ID" in str(error.value)


class Host:
    """A host that only says where it would be, unless the port is taken."""

    def __init__(self, *, host: str, port: int) -> None:
        if port == 80:
            raise PermissionError(13, "Permission denied")
        if port == 81:
            raise OSError("strange")
        self.place = host, port


@pytest.mark.parametrize(
    ("written", "place"),
    [
        ("8000", ("127.0.0.1", 8000)),
        (":8000", ("127.0.0.1", 8000)),
        ("0", ("127.0.0.1", 0)),
        ("65535", ("127.0.0.1", 65535)),
        ("0.0.0.0:8000", ("0.0.0.0", 8000)),
        ("localhost:8000", ("localhost", 8000)),
        ("::1:8000", ("::1", 8000)),
    ],
)
def test_a_port_or_a_host_and_a_port(
    monkeypatch: pytest.MonkeyPatch, written: str, place: tuple[str, int]
) -> None:
    monkeypatch.setattr(module, "McpHost", Host)
    made: Any = _parse_host(written)
    assert made.place == place


@pytest.mark.parametrize(
    ("written", "facts"),
    [
        ("", ["--http 8000"]),
        ("x", ["--http x"]),
        ("host:", ["--http host:"]),
        ("-1", ["--http -1"]),
        ("65536", ["--http 65536"]),
        ("8000:host", ["--http 8000:host"]),
        ("²", ["--http ²"]),
        ("1" * 5000, ["--http 1"]),
        ("80", ["--http 80", "ermission denied", "another port"]),
        ("81", ["--http 81", "strange", "another port"]),
    ],
)
def test_no_port(monkeypatch: pytest.MonkeyPatch, written: str, facts: list[str]) -> None:
    monkeypatch.setattr(module, "McpHost", Host)
    with pytest.raises(AuthorError) as error:
        _parse_host(written)
    for fact in facts:
        assert fact in str(error.value)


@pytest.mark.parametrize("host", ["no-host.invalid", "[::1]", "::1", "192.0.2.1", "x" * 300, "a..b"])
def test_a_host_that_cannot_be_used(host: str) -> None:
    with pytest.raises(AuthorError) as error:
        _parse_host(f"{host}:0")
    for fact in (f"'{host}'", "IPv4", "--http 8000"):
        assert fact in str(error.value)
    assert "another port" not in str(error.value)


# ── the tools of the scenario ────────────────────────────────────────────────────────────────────

TOOLS = {
    "get": {"parameters": {"type": "object"}, "returns": {"id": "${args.id}"}},
    "long": {"returns": "x" * 300},
}


def test_calls_are_answered_and_told_by_number(capsys: pytest.CaptureFixture[str]) -> None:
    world = _ServedWorld(scenario("a", tools=TOOLS), Config(), MockFunctions(timeout_s=1))

    async def calls() -> list[Any]:
        return [
            await world.call("get", {"id": "7"}),
            await world.call("long", {}),
            await world.call("unknown", {}),
        ]

    first, second, third = anyio.run(calls)
    assert (first.value, first.is_error) == ({"id": "7"}, False)
    assert second.value == "x" * 300
    assert third.is_error
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["call 1", "call 2", "call 3"]
    assert "get" in lines[0]
    assert "7" in lines[0]
    assert lines[1].count("x") == 200
    assert "unknown" in lines[2]


# ── the tools of a real server ───────────────────────────────────────────────────────────────────


class Hints(SimpleNamespace):
    def model_dump(self, *, by_alias: bool) -> dict[str, Any]:
        assert by_alias
        return vars(self)


@pytest.mark.parametrize(
    ("description", "hints", "expected"),
    [
        ("", None, {}),
        (None, None, {}),
        ("Gets it.", None, {"description": "Gets it."}),
        ("", Hints(), {}),
        ("", Hints(readOnlyHint=None), {}),
        ("", Hints(readOnlyHint=True), {"reads": True}),
    ],
)
def test_the_entry_of_a_tool(description: str | None, hints: Any, expected: dict[str, Any]) -> None:
    schema = {"type": "object"}
    tool = SimpleNamespace(description=description, annotations=hints, input_schema=schema)
    entry = _entry(tool)
    marks = {key: value for key, value in entry.items() if key not in ("parameters", "returns")}
    assert (entry["parameters"], entry["returns"]) == (schema, {})
    assert list(entry)[-1] == "returns"
    assert marks == expected


@pytest.mark.parametrize("out", [None, "tools.yaml"])
def test_the_tools_of_a_server_are_yaml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: str | None
) -> None:
    asked: list[Any] = []
    found = {"b": {"description": "é", "returns": {}}, "a": {"returns": {}}}

    async def fetch(command: Any) -> Any:
        asked.append(command)
        return found

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "require_sdk", asked.append)
    monkeypatch.setattr(module, "_fetch_tools", fetch)
    assert schemas(["node", "s.js"], out) == 0
    assert asked == ["agenteval tools schemas", ["node", "s.js"]]
    said = capsys.readouterr()
    text = (tmp_path / out).read_text(encoding="utf-8") if out else said.out
    assert (said.out == "", said.err != "") == (bool(out), bool(out))
    assert yaml.safe_load(text) == {"tools": found}
    assert list(yaml.safe_load(text)["tools"]) == ["b", "a"]
    assert "é" in text


@pytest.mark.parametrize("out", [".", "gone/tools.yaml", "x" * 300])
def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str) -> None:
    async def fetch(_: Any) -> Any:
        return {}

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "require_sdk", lambda _: None)
    monkeypatch.setattr(module, "_fetch_tools", fetch)
    with pytest.raises(AuthorError) as error:
        schemas(["node", "s.js"], out)
    for fact in (out, "--out"):
        assert fact in str(error.value)


def test_a_mock_that_fails_is_an_error_for_the_caller(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = _ServedWorld(scenario("a", tools=TOOLS), Config(), MockFunctions(timeout_s=1))

    async def resolve(*_: Any) -> Any:
        raise AuthorError(Problem("the mock broke"))

    monkeypatch.setattr(world, "_world", SimpleNamespace(resolve=resolve))
    answer = anyio.run(world.call, "get", {})
    assert answer.is_error
    assert "the mock broke" in str(answer.value["error"])
    assert capsys.readouterr().err.startswith("call 1: the mock broke")
