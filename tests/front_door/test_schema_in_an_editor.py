"""``agenteval schema`` as an editor uses it: the YAML language server with a file that the command wrote."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agenteval.cli.commands.schema import write_schema
from agenteval.cli.editor_schemas import SCHEMA_KINDS, build_editor_schema
from tests.front_door.test_schema import CONFIGURATIONS, MISTAKES, SCENARIOS, Wrong
from tests.support.kit import Project
from tests.support.language_server import LanguageServer

COMMAND = shutil.which("yaml-language-server")
pytestmark = pytest.mark.skipif(
    COMMAND is None, reason="needs the language server: npm install -g yaml-language-server"
)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, LanguageServer]]:
    assert COMMAND
    with tempfile.TemporaryDirectory() as folder:
        started = {}
        for kind in SCHEMA_KINDS:
            path = Path(folder, f"{kind}.schema.json")
            write_schema(kind, path)
            started[kind] = LanguageServer(COMMAND, path)
        yield started
        for server in started.values():
            server.close()


def test_the_line_that_the_command_prints_is_all_it_takes(project: Project) -> None:
    assert COMMAND
    project.config()
    printed = project.call("schema").out.splitlines()
    for name, folder in (("agenteval.yaml", project.root), ("scenarios/*.yaml", project.root / "scenarios")):
        (line,) = [
            each.partition("  ")[2].strip() for each in map(str.strip, printed) if each.startswith(name)
        ]
        server = LanguageServer(COMMAND, None, folder)
        assert server.mistakes(f"{line}\nepochs: many\n")[0][0] == 2
        server.close()


def test_shipped_files_are_right(servers: dict[str, LanguageServer]) -> None:
    for kind, paths in (("config", CONFIGURATIONS), ("scenario", SCENARIOS)):
        for path in paths:
            assert servers[kind].mistakes(path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize("wrong", MISTAKES)
def test_a_mistake_is_shown_at_its_line(servers: dict[str, LanguageServer], wrong: Wrong) -> None:
    found = servers[wrong.kind].mistakes(wrong.text)
    assert found
    # What is missing is shown at the key of the mapping in which it is.
    assert {line for line, _ in found} <= {wrong.line, wrong.line - 1}, found


OUTPUT = "contains any_of not_contains matches json_schema json cites"
SCENARIO_KEYS = "id name tags goal tools expect turns"
AT_CURSOR = {
    "an empty scenario file": ("scenario", "¦", f"{SCENARIO_KEYS} scenarios cases defaults"),
    "keys of a scenario": ("scenario", "scenarios:\n  - name: x\n    ¦", SCENARIO_KEYS.replace("name ", "")),
    "keys of a case": ("scenario", "cases:\n  - ¦", "id input expected_tools expected_output_contains"),
    "a turn": ("scenario", "name: x\nturns:\n  - ¦", "user expect simulate"),
    "values of match": (
        "scenario",
        "name: x\nturns:\n  - user: Hi\n    expect:\n      tool_calls:\n        match: ¦",
        "strict unordered in_order contains within",
    ),
    "keys of output": ("scenario", "name: x\nexpect:\n  output:\n    ¦", OUTPUT),
    "keys of calls": (
        "scenario",
        "name: x\nexpect:\n  tool_calls:\n    calls:\n      - ¦",
        "name args times",
    ),
    "keys of a tool": (
        "scenario",
        "name: x\ntools:\n  a:\n    ¦",
        "returns error sequence python parameters",
    ),
    "metrics with a threshold": ("scenario", "name: x\nthresholds:\n  ¦", "helpfulness goal_completion"),
    "keys of the configuration": ("config", "¦", "agent models metrics gates profiles"),
    "keys of an agent": ("config", "agent:\n  ¦", "name type target endpoint command"),
    "keys of an agent at an address": (
        "config",
        "agent:\n  endpoint: http://localhost:1\n  ¦",
        "headers streaming reply",
    ),
    "metrics": ("config", "metrics:\n  - ¦", "helpfulness faithfulness policy_adherence"),
    "gates": ("config", "gates:\n  ¦", "pass_rate pass_hat_k tool_accuracy cost"),
    "keys of a model": ("config", "models:\n  judge:\n    ¦", "model base_url temperature"),
    "keys of a profile": ("config", "profiles:\n  pr:\n    ¦", "tags no_judge epochs gates"),
}


@pytest.mark.parametrize(("kind", "text", "names"), AT_CURSOR.values(), ids=AT_CURSOR)
def test_what_is_proposed(servers: dict[str, LanguageServer], kind: str, text: str, names: str) -> None:
    found = servers[kind].completions(text)
    assert set(names.split()) <= set(found), found


def test_an_agent_at_an_address_is_offered_no_key_of_another(servers: dict[str, LanguageServer]) -> None:
    found = servers["config"].completions("agent:\n  endpoint: http://localhost:1\n  ¦")
    assert {"target", "interpreter", "command"} & set(found) == set()


def test_each_key_has_its_line(servers: dict[str, LanguageServer]) -> None:
    scenario, config = (build_editor_schema(kind) for kind in ("scenario", "config"))
    keys = scenario["definitions"]["Scenario"]["properties"]
    assert servers["scenario"].completions("¦")["goal"] == keys["goal"]["description"]
    line = config["properties"]["on_undecided"]["description"]
    assert line.partition(" Default")[0] in servers["config"].hover("on_unde¦cided: fail\n")
    case = scenario["definitions"]["Case"]["properties"]["expected_tools"]["description"]
    hovered = servers["scenario"].hover("cases:\n- {id: x, input: Hi, expected_to¦ols: [a]}\n")
    assert case.partition(";")[0] in hovered
