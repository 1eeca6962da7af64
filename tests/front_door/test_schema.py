"""``agenteval schema``: what an editor completes and checks with. Loader and schema agree on every file that
is shipped, on what is refused, and on the short forms."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, ValidationError

from agenteval.cli.editor_schemas import SCHEMA_KINDS, SchemaKind, build_editor_schema
from agenteval.core.errors import AuthorError
from agenteval.core.unsupported_keys import UNSUPPORTED_KEYS as NOT_YET
from agenteval.files.config_file import load_config
from agenteval.files.scenario_files import find_scenario_files
from agenteval.files.scenario_loader import load_scenario_files
from agenteval.files.yaml_source import parse_yaml
from agenteval.planning.judge_setup import load_metrics
from agenteval.planning.preflight import detector_problems
from agenteval.running.registries import REGISTRIES
from agenteval.scoring.checks import RULES
from tests.support.kit import Project

ROOT = Path(__file__).parents[2]
CONFIGURATIONS = [*ROOT.glob("**/agenteval.yaml"), ROOT / "scenarios/reliability/gated.yaml"]
SCENARIOS = [
    path
    for path in find_scenario_files(ROOT, ["scenarios/**/*.yaml", "tests/data/honest/scenarios/*.yaml"])
    if path not in CONFIGURATIONS
]
AGENT = "agent: {name: bot, target: 'agent.py:agent'}\n"
SCENARIO = "name: greets\nturns: [Hello!]\nchecks: none\n"


@cache
def validator(kind: SchemaKind) -> Draft7Validator:
    schema = build_editor_schema(kind)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def mistakes(kind: SchemaKind, text: str) -> list[str]:
    """The dotted path of each mistake, that of a key which is not known included."""
    found = []
    for error in validator(kind).iter_errors(parse_yaml(text.encode(), "x.yaml").value):
        path = [str(part) for part in error.absolute_path]
        unknown = re.findall(r"'(\w+)'", error.message) if error.validator == "additionalProperties" else []
        found.append(".".join([*path, *unknown]))
    return found


# ── the command ──────────────────────────────────────────────────────────────────────────────────


FIRST_LINE = "# yaml-language-server: $schema="


def first_lines(project: Project, *arguments: str) -> dict[str, str]:
    """By the pattern of files, the schema that ``agenteval schema`` names for their first line."""
    done = project.call("schema", *arguments)
    assert (done.code, done.err) == (0, "")
    found = [line.partition(FIRST_LINE) for line in done.out.splitlines() if FIRST_LINE in line]
    return {files.strip(): schema for files, _, schema in found}


def test_it_writes_both_and_names_the_first_line_of_files(project: Project) -> None:
    project.config()
    project.scenarios(SCENARIO)
    done = project.call("schema")
    paths = {kind: f".agenteval/{kind}.schema.json" for kind in SCHEMA_KINDS}
    for kind, path in paths.items():
        assert path in done.out
        assert json.loads((project.root / path).read_text(encoding="utf-8")) == build_editor_schema(kind)
    assert (project.root / ".agenteval/.gitignore").read_text(encoding="utf-8") == "*\n!*.schema.json\n"
    # It overwrites its own.
    assert first_lines(project) == {
        "scenarios/*.yaml": f"../{paths['scenario']}", "agenteval.yaml": paths["config"]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("include", "files", "up"),
    [("tests/eval/**/*.yaml", "tests/eval/*.yaml", "../../"), ("suite.yaml", "suite.yaml", "")],
)
def test_the_line_starts_at_the_first_folder_of_include(
    project: Project, include: str, files: str, up: str
) -> None:
    project.config(f"include: ['{include}']")
    assert first_lines(project, "scenario") == {files: f"{up}.agenteval/scenario.schema.json"}


@pytest.mark.parametrize("broken", [None, "agnet: {", "agnet: {}\n"])
def test_no_configuration_and_a_broken_one_are_no_obstacle(project: Project, broken: str | None) -> None:
    if broken is not None:
        project.write("agenteval.yaml", broken)
    assert "agenteval.yaml" in first_lines(project)


def test_it_is_written_to_the_folder_of_the_configuration(project: Project) -> None:
    project.write("pyproject.toml", "[tool.agenteval]\nmetrics = []\n")
    below = project.root / "below"
    below.mkdir()
    done = Project(below).call("schema")
    assert (project.root / ".agenteval/scenario.schema.json").is_file()
    assert "config.schema.json\n" in done.out
    assert "agenteval.yaml" not in done.out, "a TOML file takes no such line"


def test_out_names_another_place_or_prints(project: Project) -> None:
    path = "schemas/agenteval.json"
    assert first_lines(project, "config", "--out", path) == {"agenteval.yaml": path}
    assert not (project.root / ".agenteval").exists()
    printed = project.call("schema", "scenario", "--out", "-")
    assert json.loads(printed.out) == build_editor_schema("scenario")
    one = [f"agenteval schema {kind} --out schemas" for kind in SCHEMA_KINDS]
    project.call("schema", "--out", "schemas").refuses("agenteval", "--out", *one)


@pytest.mark.parametrize("there", ["mine\n", '{"type": "object"}', "[]"])
def test_it_overwrites_nothing_else(project: Project, there: str) -> None:
    path = project.write("schema.json", there)
    project.call("schema", "config", "--out", "schema.json").refuses("agenteval", "schema.json", "--out")
    assert path.read_text(encoding="utf-8") == there


def test_a_kind_that_is_none_is_refused(project: Project) -> None:
    project.call("schema", "scenarios").refuses("agenteval", "'scenarios'", "'scenario'")


# ── what is shipped ──────────────────────────────────────────────────────────────────────────────


def test_each_shipped_file_fits() -> None:
    assert len(CONFIGURATIONS) > 10
    assert len(SCENARIOS) > 15
    for kind, paths in (("config", CONFIGURATIONS), ("scenario", SCENARIOS)):
        for path in paths:
            assert mistakes(kind, path.read_text(encoding="utf-8")) == [], path  # type: ignore[arg-type]


def test_check_jsonschema_finds_the_same(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("name: x\nturns: [Hello!]\nepochs: many\n", encoding="utf-8")
    for kind, paths in (("config", CONFIGURATIONS), ("scenario", SCENARIOS), ("scenario", [wrong])):
        schema = tmp_path / f"{kind}.json"
        schema.write_text(json.dumps(build_editor_schema(kind)), encoding="utf-8")  # type: ignore[arg-type]
        command = [sys.executable, "-m", "check_jsonschema", "--schemafile", str(schema), *map(str, paths)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == (paths == [wrong]), done.stdout
    assert "$.epochs: 'many' does not match" in done.stdout


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────


class Wrong(NamedTuple):
    """``path``: where the schema finds it; ``line``: where ``agenteval validate`` does."""

    kind: SchemaKind
    text: str
    path: str
    line: int = 2


_SCENARIO_MISTAKES = {
    "a misspelt key": ("name: x\nturns: [Hi]\nexpcet: {}\n", "expcet", 3),
    "a misspelt key of an entry": ("scenarios:\n- {name: x, gaol: y, turns: [Hi]}\n", "scenarios.0.gaol", 2),
    "a key of entries beside them": ("scenarios: [{name: x, turns: [Hi]}]\ntags: [a]\n", "tags", 2),
    "a key of scenarios in a case": ("cases:\n- {id: x, input: Hi, turns: [Hi]}\n", "cases.0.turns", 2),
    "a key of cases in a scenario": ("name: x\nturns: [Hi]\nexpected_tools: [a]\n", "expected_tools", 3),
    "neither name nor id": ("scenarios:\n- turns: [Hi]\n", "scenarios.0", 2),
    "neither turns nor goal": ("scenarios:\n- name: x\n", "scenarios.0", 2),
    "a case without input": ("cases:\n- id: x\n", "cases.0", 2),
    "a list where a mapping is asked for": ("name: x\nturns: [Hi]\ntools: [a]\n", "tools", 3),
    "a mapping where a list is asked for": ("name: x\nturns: {user: Hi}\n", "turns", 2),
    "a text where a list is asked for": ("name: x\nturns: Hi\n", "turns", 2),
    "a word for a number": ("name: x\nturns: [Hi]\nepochs: many\n", "epochs", 3),
    "a number too small": ("name: x\ngoal: y\nmax_turns: 0\n", "max_turns", 3),
    "half a range": ("name: x\nturns: [Hi]\nepochs: {min: 3}\n", "epochs", 3),
    "an unknown choice": ("name: x\nturns: [Hi]\ncategory: speed\n", "category", 3),
    "a turn without user": ("name: x\nturns:\n- {usr: Hi}\n", "turns.0", 3),
    "a simulated turn with more": ("name: x\ngoal: y\nturns:\n- {simulate: 2, expect: {}}\n", "turns.0", 4),
    "an unknown match": (
        "name: x\nturns: [Hi]\nexpect:\n  tool_calls:\n    match: exakt\n    calls: [{name: a}]\n",
        "expect.tool_calls.match",
        5,
    ),
    "a call without a name": (
        "name: x\nturns: [Hi]\nexpect:\n  tool_calls:\n    calls: [{args: {a: 1}}]\n",
        "expect.tool_calls.calls.0",
        5,
    ),
    "another word for none": ("name: x\nturns: [Hi]\nexpect: {tool_calls: no}\n", "expect.tool_calls", 3),
    "a check without a value": ("name: x\nturns: [Hi]\nexpect:\n  limits:\n", "expect.limits", 4),
    "times in forbidden": (
        "name: x\nturns: [Hi]\nexpect:\n  tool_calls: {forbidden: [{name: a, times: 1}]}\n",
        "expect.tool_calls.forbidden.0.times",
        4,
    ),
    "a misspelt key of a tool": ("name: x\nturns: [Hi]\ntools:\n  a: {retruns: 1}\n", "tools.a.retruns", 4),
    "a belief without one": ("name: x\nturns: [Hi]\nbeliefs:\n- {held: firmly}\n", "beliefs.0", 4),
    "a threshold that is a word": (
        "name: x\ngoal: y\nthresholds: {helpfulness: good}\n",
        "thresholds.helpfulness",
        3,
    ),
    "a mistake in defaults": (
        "defaults:\n  tags: {a: b}\nscenarios: [{name: x, turns: [Hi]}]\n",
        "defaults.tags",
        2,
    ),
}  # fmt: skip
_CONFIG_MISTAKES = {
    "a misspelt key": ("epoch: 3\n", "epoch", 2),
    "a misspelt key of an agent": ("agents:\n  b: {target: x.py:y, tagret: z}\n", "agents.b.tagret", 3),
    "a key of another kind": ("agents:\n  b: {target: x.py:y, headers: {}}\n", "agents.b.headers", 3),
    "an agent of no kind": ("agents:\n  b: {timeout_s: 3}\n", "agents.b", 3),
    "an unknown kind": ("agents:\n  b: {type: pyhton}\n", "agents.b.type", 3),
    "a command as text": ("agents:\n  b: {command: ./bot}\n", "agents.b.command", 3),
    "another agent without a name": ("compare:\n- {target: x.py:y}\n", "compare.0", 3),
    "an unknown metric": ("metrics: [helpfullness]\n", "metrics.0", 2),
    "a threshold of no metric": ("thresholds: {helpfullness: 3}\n", "thresholds", 2),
    "an unknown severity": ("fail_on_severity: hgih\n", "fail_on_severity", 2),
    "a severity of no label": ("severities: {wrong tol: low}\n", "severities", 2),
    "a severity that is none": ("severities: {wrong tool: none}\n", "severities.wrong tool", 2),
    "an unknown detector": ("detectors: [leek]\n", "detectors.0", 2),
    "an unknown reporter": ("reporters: [jsn]\n", "reporters.0", 2),
    "an unknown reporter alone": ("reporters: jsn\n", "reporters", 2),
    "an unknown gate": ("gates: {pass_rat: 0.9}\n", "gates.pass_rat", 2),
    "half a gate": ("gates: {pass_rate: {at_least: 0.9}}\n", "gates.pass_rate", 2),
    "a gate without a value": ("gates:\n  tool_accuracy:\n", "gates.tool_accuracy", 3),
    "a model without a provider": ("models: {default: gpt-5-mini}\n", "models.default", 2),
    "a misspelt key of a model": (
        "models: {judge: {model: openai/x, base_ulr: 'http://x'}}\n",
        "models.judge.base_ulr",
        2,
    ),
    "a word for an amount": ("budget: {max_cost: much}\n", "budget.max_cost", 2),
    "a prompt that is not shipped": ("prompts: {judges/helpful.md: my.md}\n", "prompts", 2),
    "a misspelt key of a profile": ("profiles:\n  pr: {epoch: 3}\n", "profiles.pr.epoch", 3),
    "a misspelt key of an agent there": ("profiles:\n  pr: {agent: {tagret: x}}\n", "profiles.pr.agent", 3),
}  # fmt: skip
MISTAKES = [
    *(
        pytest.param(Wrong("scenario", *each), id=f"scenario: {name}")
        for name, each in _SCENARIO_MISTAKES.items()
    ),
    *(
        pytest.param(Wrong("config", AGENT + text, path, line), id=f"config: {name}")
        for name, (text, path, line) in _CONFIG_MISTAKES.items()
    ),
]


@pytest.mark.parametrize("wrong", MISTAKES)
def test_a_mistake_is_found_at_its_place_by_both(project: Project, wrong: Wrong) -> None:
    found = mistakes(wrong.kind, wrong.text)
    assert set(found) == {wrong.path}, found
    project.agent("def agent(messages): return 'Hello!'\n")
    if wrong.kind == "config":
        project.write("agenteval.yaml", wrong.text)
        project.scenarios(SCENARIO)
    else:
        project.config()
        project.scenarios(wrong.text)
    file = "agenteval.yaml" if wrong.kind == "config" else "scenarios/suite.yaml"
    project.call("validate").refuses(f"{file}:{wrong.line}")


# ── forms ────────────────────────────────────────────────────────────────────────────────────────

_FORMS = {
    "a number for a text": "name: 25\nturns: [12.5, true, {user: 3}]\nchecks: none\n",
    "one text for a list": "id: x\nturns: [Hi]\ntags: a\nexpect: {output: {contains: 25, matches: b}}\n",
    "a text for a number": "id: x\ngoal: y\nmax_turns: '3'\nepochs: '2'\nthresholds: {helpfulness: '3.5'}\n",
    "a word for a truth value": "{id: x, turns: [Hi], tools: {a: {reads: yes}}, expect: {agents: b}}\n",
    "none for calls": """
id: x
turns: [{user: Hi, expect: {tool_calls: none}}]
expect: {tool_calls: {any_of: [none, {calls: [{name: a}]}]}}
""",
    "none for tools": """
cases: [{id: x, input: Hi, expected_tools: none}, {id: y, input: 3, expected_tools: a}]
""",
    "a case alone": "id: x\ninput: Hi\n",
    "a case alone with defaults": "id: x\ninput: Hi\ndefaults: {tags: [a]}\n",
    "both lists": "scenarios: [{id: a, turns: [Hi], checks: none}]\ncases: [{id: b, input: Hi}]\n",
    "a null that takes a check away": """
defaults: {expect: {limits: {steps: 3, tokens: 9}, criteria: [a]}}
scenarios: [{id: a, turns: [Hi], expect: {limits: {steps: null}, criteria: null, output: {contains: b}}}]
""",
    "what defaults give": "defaults: {goal: y, name: z, epochs: {min: 2}}\nscenarios: [{epochs: {max: 3}}]\n",
    "a null of thresholds": """
{id: x, goal: y, thresholds: {helpfulness: null, my own: {at_least: 1, share_below: {2: 0.1}}}}
""",
    "beliefs": "id: x\ngoal: y\nbeliefs: [a, {belief: b, held: firmly}]\n",
    "numbers of calls": """
id: x
turns: [Hi]
expect:
  tool_calls:
    calls: [{name: a, times: 2}, {name: b, times: {at_least: 0, at_most: 2}, args: {c: {$any: true}}}]
""",
    "a conversation that goes on": "id: x\ngoal: y\nturns: [Hi, {simulate: 2}]\n",
}  # fmt: skip


@pytest.mark.parametrize("text", _FORMS.values(), ids=_FORMS)
def test_a_form_that_the_loader_takes_fits(text: str, tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(text, encoding="utf-8")
    assert load_scenario_files([path], rules=RULES, root=tmp_path)
    assert mistakes("scenario", text) == []


CONFIGURED = """
agent: {target: "agent.py:agent", timeout_s: "${T:-3}", secrets: [4711, "${K:-abcd}"], options: {keep: null}}
agents:
  a: {endpoint: "${URL:-http://localhost:1/v1}", streaming: "${S:-true}", observe: otlp, headers: {X: 3}}
  b: {type: http, endpoint: "http://h:1", observe: {port: 0}, request: {m: "${message}"}, reply: {text: a}}
  c: {command: [node, 3]}
  d: {command: {run: [./bot, "${message}"]}}
  e: {target: {object: "agent.py:agent", deps: "agent.py:agent"}}
  f: {type: python, options: {target: "agent.py:agent"}}
compare: [{name: other, timeout_s: 5}, {name: whole, endpoint: "http://localhost:1/v1"}]
models: {default: "${MODEL:-openai/x}", judge: {model: openai/x, temperature: 0}, user: null}
epochs: {min: "${N:-1}", max: 5}
metrics: helpfulness
detectors: all
thresholds: {helpfulness: 3, coherence: {min: 2}}
severities: {wrong tool: "${S:-low}", policy violation.style: low}
gates: {tool_accuracy: 0.9, robustness: {at_least: 0.5}, latency_ms: {p95: 10}, no_regression: {margin: 0.1}}
cache: ./cache
budget: {max_cost: 1, by_role: {judge: {max_calls: 3}}}
reporters: [terminal, json=out.json, {name: junit, path: out.xml}, "r.py:Team=t.md", {name: "r.py:Team"}]
include: scenarios
now: 2026-12-31
profiles:
  pr: {tags: smoke, models: {judge: null}, gates: {robustness: null}, agent: {timeout_s: 9}, epochs: {max: 3}}
  nightly: null
"""


def test_a_configuration_with_every_form_fits(project: Project) -> None:
    project.agent("def agent(messages): return 'Hello!'\n")
    project.write("agenteval.yaml", CONFIGURED)
    project.scenarios(SCENARIO)
    done = project.call("list")
    assert done.code == 0, done.err
    assert mistakes("config", CONFIGURED) == []


@pytest.mark.parametrize(
    "text",
    [
        "metrics: [voice]\nthresholds: {voice: 3}\nseverities: {off brand: low}\ncustom_metrics: [a.md]\n",
        "agent: {type: ours, options: {any: 1}, beside: 2}\ncompare: [{name: b, beside: 3}]\n",
    ],
)
def test_what_others_bring_is_not_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(REGISTRIES.agents), "names", lambda self: [*self.built_in, "ours"])
    schema = build_editor_schema("config")
    assert list(Draft7Validator(schema).iter_errors(parse_yaml(text.encode(), "x").value)) == []


def test_a_value_of_a_row_may_stand_anywhere() -> None:
    text = "id: x\nturns: [Hi]\nepochs: '${row.n}'\ncategory: '${row.c}'\ntools: {a: {reads: '${row.r}'}}\n"
    assert mistakes("scenario", text) == []
    assert set(mistakes("scenario", text.replace("row", "rwo"))) == {"epochs", "category", "tools.a.reads"}


# ── every key ────────────────────────────────────────────────────────────────────────────────────


def keys_in(kind: SchemaKind) -> Iterator[tuple[str, str, Any]]:
    schema = build_editor_schema(kind)
    for name, each in [("", schema), *schema["definitions"].items()]:
        yield from ((name, key, below) for key, below in each.get("properties", {}).items())


@pytest.mark.parametrize("kind", SCHEMA_KINDS)
def test_every_key_has_its_line_of_help(kind: SchemaKind) -> None:
    keys = list(keys_in(kind))
    assert len(keys) > 100
    missing = [f"{name}.{key}" for name, key, below in keys if not below.get("description")]
    assert missing == []
    lines = {below["description"] for _, _, below in keys}
    assert {line for line in lines if "``" in line or len(line) > 110 or line[-1] != "."} == set()


@pytest.mark.parametrize("kind", SCHEMA_KINDS)
def test_what_is_not_built_is_not_in_it(kind: SchemaKind) -> None:
    for path in NOT_YET[kind]:
        keys, _, value = path.partition("=")
        written = {"id": "x", "turns": []} if kind == "scenario" else {}
        errors = validator(kind).iter_errors(written | _written(keys.split("."), value))
        where = [part for error in _leaves(errors) for part in (*error.absolute_path, error.message)]
        wanted = keys.rpartition(".")[2]
        assert any(wanted == part or f"'{wanted}' w" in str(part) for part in where), (path, where)


def _leaves(errors: Iterable[ValidationError]) -> Iterator[ValidationError]:
    for error in errors:
        yield from _leaves(error.context) if error.context else (error,)


def _written(keys: list[str], value: Any) -> Any:
    """A value with something at a path; ``*`` is an item of a list, or a key that is called so."""
    if not keys:
        return value
    head, *rest = keys
    if rest and rest[0] == "*" and head in ("turns", "sequence"):
        return {head: [_written(rest[1:], value)]}
    return {head: _written(rest, value)}


# ── anything ─────────────────────────────────────────────────────────────────────────────────────

_SCALARS = st.sampled_from(
    [None, True, False, 0, 1, 3, 2.5, -1, "", "x", "none", "3", "yes", "exact", "strict", "low"]
)
_KEYS = ("name", "calls", "user", "simulate", "min", "max", "at_least", "returns", "args", "belief")
_VALUES = _SCALARS | st.lists(_SCALARS, max_size=2) | st.dictionaries(
    st.sampled_from(_KEYS),
    _SCALARS | st.lists(_SCALARS | st.fixed_dictionaries({"name": _SCALARS}), max_size=2),
    max_size=3,
)  # fmt: skip
_MODELS = {
    "entry": "Scenario",
    "expect": "Expectation",
    "tool_calls": "ToolCallsExpectation",
    "output": "OutputExpectation",
    "tool": "Tool",
}
_DEFINED = build_editor_schema("scenario")["definitions"]
_PLACES = [(around, key) for around, model in _MODELS.items() for key in _DEFINED[model]["properties"]]


many = settings(
    max_examples=400,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@given(st.sampled_from(_PLACES), _VALUES)
@many
def test_the_schema_takes_whatever_the_loader_takes(
    tmp_path: Path, place: tuple[str, str], value: Any
) -> None:
    around, key = place
    entry: dict[str, Any] = {"id": "x", "goal": "y", "turns": ["Hi"]}
    within: dict[str, Any] = {"entry": entry, "expect": {}, "tool": {}}
    within |= {"tool_calls": {"calls": [{"name": "a"}]}, "output": {"contains": "a"}}
    within["expect"] |= {around: within[around]} if around in ("tool_calls", "output") else {}
    entry |= {"expect": within["expect"], "tools": {"a": within["tool"]}}
    within[around][key] = value
    path = tmp_path / "suite.yaml"
    path.write_text(json.dumps({"scenarios": [entry]}), encoding="utf-8")
    try:
        load_scenario_files([path], rules=RULES, root=tmp_path)
    except AuthorError:
        return
    assert mistakes("scenario", path.read_text(encoding="utf-8")) == []


_CONFIGURED = build_editor_schema("config")
_OPTIONS = {
    "": _CONFIGURED,
    "agent": _CONFIGURED["definitions"]["Agent_http"],
    **{
        key: _CONFIGURED["definitions"][name]
        for key, name in {
            "judge": "JudgeConfig",
            "budget": "BudgetConfig",
            "deadlines": "DeadlinesConfig",
            "models": "ModelsConfig",
            "gates": "GatesConfig",
        }.items()
    },
}
_CONFIG_PLACES = [(around, key) for around, model in _OPTIONS.items() for key in model["properties"]]


@given(st.sampled_from(_CONFIG_PLACES), _VALUES)
@many
def test_the_schema_takes_whatever_configuration_is_taken(
    tmp_path: Path, place: tuple[str, str], value: Any
) -> None:
    around, key = place
    written: dict[str, Any] = {"agent": {"endpoint": "http://localhost:1/v1"}}
    (written.setdefault(around, {}) if around else written)[key] = value
    path = tmp_path / "agenteval.yaml"
    path.write_text(json.dumps(written), encoding="utf-8")
    try:
        config = load_config(path, REGISTRIES, environ={}, flags={}).config
        load_metrics(config)
    except AuthorError:
        return
    if not list(detector_problems(config)):
        assert mistakes("config", path.read_text(encoding="utf-8")) == []
