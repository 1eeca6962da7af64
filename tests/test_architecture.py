"""The direction of imports, the weight of ``--help``, the table of contents."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import agenteval

PACKAGE = Path(agenteval.__file__).parent

# Bottom to top. A module imports only from lines above its own, or from its own line (a sub-package,
# or modules that belong together). `adapters` are blind to each other: each has a line of its own.
LAYERS = [
    ["value", "errors", "exits", "expressions", "module_files", "plain_files", "needles", "patterns"],
    ["trajectory", "speech"],
    ["score"],
    ["scenario"],
    ["config"],
    ["sight"],
    ["ledger", "spending"],
    ["run_summary"],
    ["event"],
    ["severity"],
    ["statistics"],
    ["shared_loop"],
    ["current_sample", "deadlines"],
    ["protocols", "tokens", "safe_text", "plurals", "yaml_source", "yaml_scalars", "yaml_syntax"],
    ["journal", "prompts", "decision"],
    ["verdict_words"],
    ["runs", "resume"],
    ["metrics"],
    ["findings", "proven"],
    ["sample_report"],
    ["goals"],
    ["report"],
    ["thresholds", "run_gates", "limit_gates", "second_opinions"],
    ["fingerprints", "accepted"],
    ["abstentions"],
    ["digest"],
    ["comparability", "comparison"],
    ["detectors"],
    ["noted"],
    ["endings", "reported_usage"],
    ["redact", "gates", "chat", "tools", "selection", "user_code", "transcript", "sse", "completion"],
    ["recorded", "retention", "asides"],
    ["foreign"],
    ["observed"],
    ["repeats", "sequential", "gate_chances"],
    ["user_faults", "user", "simulated_user", "scorers", "mocks", "issues"],
    ["simulate"],
    ["pipeline"],
    ["rescoring", "fail_fast"],
    ["bodies", "server_words", "retry_after", "retry", "limits", "lanes", "http_faults", "transport"],
    ["agents.http", "agents.quirks"],
    ["agents.client_errors", "agents.python"],
    ["llm"],
    ["stand_ins"],
    ["cassettes"],
    ["metering", "taped"],
    ["traffic"],
    ["validation", "scenario_checks", "scenario_files", "environment", "toml_source", "config_checks",
     "accepted_file", "loading", "config_file"],
    ["tally"],
    ["progress"],
    ["reporters"],
    ["judging", "preflight", "sources"],
    ["forecast"],
    ["wiring"],
    ["commands"],
    ["cli"],
    ["__main__"],
]  # fmt: skip

HEAVY_BEHIND_HELP = {"openai", "tiktoken", "pydantic", "rich", "yaml", "httpx2", "jsonschema", "anyio"}


def modules() -> list[str]:
    paths = [p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py")]
    return sorted(".".join(p.with_suffix("").parts) for p in paths)


def layer_of(module: str) -> int | None:
    for index, names in enumerate(LAYERS):
        if any(module == name or module.startswith(f"{name}.") for name in names):
            return index
    return None


def imports_of(module: str) -> set[str]:
    """What ``module`` imports of agenteval, wherever in the file; types only or not."""
    path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
    known = set(modules())
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("agenteval"):
            for alias in node.names:
                below = f"{node.module}.{alias.name}".removeprefix("agenteval.")
                found.add(f"agenteval.{below}" if below in known else node.module)
    return {name.removeprefix("agenteval.") for name in found if name.startswith("agenteval.")}


PACKAGE_PAGES = {"__init__", "agents.__init__", "llm.__init__", "reporters.__init__", "scorers.__init__",
                 "commands.__init__", "statistics.__init__", "detectors.__init__",
                 "recorded.__init__"}  # fmt: skip


@pytest.mark.parametrize("module", [m for m in modules() if m not in PACKAGE_PAGES])
def test_a_module_imports_only_from_below(module: str) -> None:
    own = layer_of(module)
    assert own is not None, f"{module} has no place in LAYERS"
    upward = {name for name in imports_of(module) if (layer_of(name) or 0) > own}
    assert not upward, f"{module} imports from above: {sorted(upward)}"


def test_an_upward_import_would_be_found() -> None:
    assert "pipeline" in imports_of("wiring")
    assert (layer_of("wiring") or 0) > (layer_of("pipeline") or 0)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "agenteval", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip().split(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in loaded
    # typer itself loads pydantic to describe the options of a command with bounds.
    allowed = {"pydantic"} if arguments[0] == "run" else set()
    assert not loaded & (HEAVY_BEHIND_HELP - allowed)


def test_the_table_of_contents_is_true() -> None:
    assert set(agenteval.__all__) == set(agenteval._EXPORTS) | {"__version__"}
    for name, module in agenteval._EXPORTS.items():
        assert getattr(agenteval, name) is getattr(import_module(module), name)


def test_importing_agenteval_loads_nothing_else() -> None:
    code = "import sys; before = set(sys.modules); import agenteval; print(set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ast.literal_eval(done.stdout)
    assert "agenteval" in loaded
    assert not {name.split(".")[0] for name in loaded} & HEAVY_BEHIND_HELP


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "helpers", "common", "base", "types"}
    assert not [m for m in modules() if m.rpartition(".")[2] in empty]


def test_no_pattern_that_the_first_pythons_misread() -> None:
    """Before Python 3.11.5, ``re`` loses matches of a possessive group (CPython issue 106052); of a set of
    characters it does not."""
    possessive = re.compile(r"\)(?:[*+?]|\{[0-9,]+\})\+|\(\?>")
    assert possessive.search("(?:a|b)*+")
    found = [path for path in PACKAGE.rglob("*.py") if possessive.search(path.read_text(encoding="utf-8"))]
    assert not found
