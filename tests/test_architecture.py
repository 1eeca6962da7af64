"""The rooms, the weight of ``--help``, the table of contents. ``lint-imports`` checks who imports whom."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

import agenteval

PACKAGE = Path(agenteval.__file__).parent

HTTP = {"aiohttp", "httpx2", "httpcore2", "openai"}
HEAVY_BEHIND_HELP = {*HTTP, "tiktoken", "pydantic", "rich", "yaml", "jsonschema", "regex", "anyio", "asyncio"}
NOT_FOR_A_PYTHON_AGENT_AND_CODE_CHECKS = {
    *HTTP,
    *("tiktoken", "jsonschema", "regex"),
    *("agenteval.importers", "agenteval.scoring.issues"),
    *("agenteval.adapters.agents.http", "agenteval.adapters.agents.process"),
    *("agenteval.adapters.transport.client", "agenteval.adapters.models.pool"),
    *("agenteval.adapters.traffic.answer_stores", "agenteval.adapters.traffic.cassettes"),
    *("agenteval.scoring.judges.judge", "agenteval.scoring.transcript"),
    *("agenteval.reporters.html", "agenteval.reporters.results", "agenteval.reporters.markdown"),
}
"""What neither ``validate`` nor a run of such a suite loads."""
NOT_FOR_VALIDATE = {
    "rich",
    *("agenteval.running.execution", "agenteval.conversation.pipeline", "agenteval.conversation.simulation"),
    *("agenteval.reporters.sections", "agenteval.reporters.terminal", "agenteval.cli.progress"),
}
"""What only a run needs."""


def modules() -> list[str]:
    paths = [p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.py")]
    return sorted(".".join(p.with_suffix("").parts) for p in paths)


def test_nothing_but_rooms_at_the_root() -> None:
    contract = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = contract["tool"]["importlinter"]["contracts"][:1]
    rooms = set(layers["layers"])
    assert {module.partition(".")[0] for module in modules()} == rooms | {"__init__", "__main__"}


def imports() -> dict[str, set[str]]:
    """Who imports whom, also within functions; imports for annotations alone are left out."""
    known = {".".join(("agenteval", module)).removesuffix(".__init__") for module in modules()}
    found: dict[str, set[str]] = {}
    for module in modules():
        path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                node.body = []
        own = found.setdefault(f"agenteval.{module}".removesuffix(".__init__"), set())
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = {f"{node.module}.{each.name}" for each in node.names}
                own |= (names & known) or ({node.module} & known)
    return found


def test_no_module_needs_one_that_needs_it() -> None:
    """Not even by an import within a function: what both need stands below both."""
    graph = TopologicalSorter(imports())
    try:
        graph.prepare()
    except CycleError as error:
        pytest.fail(" imports ".join(error.args[1][::-1]))


def loaded_by(*arguments: str, cwd: Path | None = None) -> set[str]:
    """The modules that a command has loaded when it ends."""
    at_end = "atexit.register(lambda: print('loaded:', *sys.modules, file=sys.stderr))"
    code = f"import atexit, sys; {at_end}; from agenteval.__main__ import main; main()"
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=cwd)
    return set(done.stderr.rpartition("loaded:")[2].split())


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["run", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    loaded = loaded_by(*arguments)
    assert "typer" in loaded
    # typer itself loads pydantic to describe the options of a command with bounds.
    allowed = {"pydantic"} if arguments[0] == "run" else set()
    assert not loaded & (HEAVY_BEHIND_HELP - allowed)
    assert not loaded & {"agenteval.core.safe_text", "agenteval.reporters", "agenteval.core.registry"}


@pytest.mark.parametrize(
    ("command", "unneeded"),
    [
        ("validate", NOT_FOR_A_PYTHON_AGENT_AND_CODE_CHECKS | NOT_FOR_VALIDATE),
        ("run", NOT_FOR_A_PYTHON_AGENT_AND_CODE_CHECKS),
    ],
)
def test_a_command_loads_what_it_needs(tmp_path: Path, command: str, unneeded: set[str]) -> None:
    config = "agent: {type: python, target: 'agent.py:agent'}\nmetrics: []\n"
    (tmp_path / "agenteval.yaml").write_text(config, "utf-8")
    (tmp_path / "agent.py").write_text("def agent(messages):\n    return 'Hello.'\n", "utf-8")
    case = "id: greet\nturns: [Hi]\nexpect: {output: {contains: [Hello]}}\n"
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "greet.yaml").write_text(case, "utf-8")
    assert all(find_spec(name) for name in unneeded if name.startswith("agenteval."))
    loaded = loaded_by(command, cwd=tmp_path)
    assert {"agent", "agenteval.adapters.agents.python"} <= loaded
    assert not loaded & unneeded


def test_the_table_of_contents_is_true() -> None:
    assert set(agenteval.__all__) == set(agenteval._EXPORTS) | {"__version__"}
    for name, module in agenteval._EXPORTS.items():
        assert getattr(agenteval, name) is getattr(import_module(module), name)


def lines_in(tree: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """The class and its public fields and methods by their names, and whether each has a line of its own."""
    yield tree.name, bool(ast.get_docstring(tree))
    for node, after in pairwise([*tree.body, ast.Pass()]):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            has_line, names = bool(ast.get_docstring(node)), [node.name]
        else:
            targets = [node.target] if isinstance(node, ast.AnnAssign) else getattr(node, "targets", [])
            has_line = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        yield from ((name, has_line) for name in names if not name.startswith("_"))


def tree_of(code: str) -> ast.ClassDef:
    (tree,) = ast.parse(textwrap.dedent(code)).body
    assert isinstance(tree, ast.ClassDef)
    return tree


@pytest.mark.parametrize("name", sorted(agenteval._EXPORTS))
def test_each_public_name_and_field_says_what_it_is(name: str) -> None:
    """What a base says of a method need not be said again."""
    value = getattr(agenteval, name)
    if inspect.isfunction(value):
        assert inspect.getdoc(value)
        return
    ours = [kind for kind in value.__mro__ if kind.__module__.startswith("agenteval")]
    lines = [line for kind in ours for line in lines_in(tree_of(inspect.getsource(kind)))]
    assert {name for name, _ in lines} == {name for name, has_line in lines if has_line}


def test_a_field_without_a_line_is_found() -> None:
    tree = tree_of("""
        class A:
            x: int
            "X."
            y: int
            z = 1
            def f(self): ...
            _g = 2
    """)
    assert dict(lines_in(tree)) == {"A": False, "x": True, "y": False, "z": False, "f": False}


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


MANY_ALTERNATIVES = {
    "core.secrets._INSTRUCTS": "what orders the agent, in a policy: a judge would have to say it",
    "core.secrets._FOR_INSTRUCTIONS": "a user who asks for the policy: the same",
    "core.secrets._IDENTITY": "how a policy begins: the same",
    "conversation.user_faults._ASSISTANT": "a simulated user who speaks as the agent: the same",
    "core.call_outcomes._INTERRUPTED": "what clients say of a request whose answer did not come",
    "adapters.transport.retry_after._IN_TEXT": "units of time",
    "scoring.judges.quotations._SPEAKER": "whose words a quotation is said to be",
}
"""From before the rule: to be made tables, or asked of a judge. None comes to them."""
_BAR = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|(\|)")


def test_no_expression_has_more_than_20_alternatives() -> None:
    found = {
        f"{module}.{name}"
        for module in modules()
        if module not in ("__init__", "__main__", "agentside.start")
        for name, value in vars(import_module(f"agenteval.{module}")).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
        if sum(bool(bar) for bar in _BAR.findall(value.pattern)) >= 20
    }
    assert found == set(MANY_ALTERNATIVES)


WRITERS = {
    "__main__": "a fixed word, before anything is loaded",
    "cli.safe_output": "the one way out",
    "cli.progress": "a display that repaints itself; what it writes is masked and cleaned by cli.safe_output",
    "conversation.exits": "a fixed sentence, where the author's code ends the process",
    "adapters.models.llama_server": "a program of its own",
    "agentside.start": "the agent's process",
    "agentside.targets.worker": "the agent's process",
    "reporters.results.document": "a script that writes the schema",
}


def test_text_leaves_by_one_way() -> None:
    """A module that writes to a stream itself would forget to mask, to clean and to survive a full device."""
    found = set()
    for module in modules():
        path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called in ("print", "typer.echo", "sys.stdout.write", "sys.stderr.write"):
                found.add(module)
    assert found <= set(WRITERS)
