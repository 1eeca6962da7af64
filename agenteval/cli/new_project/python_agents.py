"""Finds agents in a project's Python files by static analysis (AST). Nothing is imported or executed."""

from __future__ import annotations

import ast
import os
import re
import sys
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from agenteval.agentside.targets.target_resolution import (
    HISTORY_NAMES,
    LIST_NAMES,
    SESSION_NAMES,
    TEXT_NAMES,
    is_factory_name,
)
from agenteval.cli.new_project.programs import json_object
from agenteval.files.regular_files import read_file

MAX_ENTRIES, MAX_FILES, MAX_FILE_BYTES = 100_000, 2_000, 1_000_000
"""Limits on the search; in a larger project, the author must name the agent."""

_LEFT_OUT = frozenset(("node_modules", "site-packages", "__pycache__", "tests", "test", "build", "dist"))
OBJECTS = {
    # By imported package: the framework, and the names that make an agent (docs/frameworks.md).
    "pydantic_ai": ("Pydantic AI", "Agent"),
    "langgraph": ("LangGraph", "create_react_agent StateGraph"),
    "langgraph_supervisor": ("LangGraph", "create_supervisor"),
    "langgraph_swarm": ("LangGraph", "create_swarm"),
    "langchain": ("LangChain", "create_agent"),
    "deepagents": ("LangGraph", "create_deep_agent"),
    "agents": ("OpenAI Agents SDK", "Agent"),
    "google.adk": ("Google ADK", "Agent LlmAgent SequentialAgent ParallelAgent LoopAgent App"),
    "agent_framework": ("Microsoft Agent Framework", "Agent ChatAgent"),
    "smolagents": ("smolagents", "ToolCallingAgent CodeAgent"),
    "strands": ("Strands Agents", "Agent"),
    "llama_index": ("LlamaIndex", "FunctionAgent ReActAgent AgentWorkflow"),
    "autogen_agentchat": ("AutoGen", "AssistantAgent RoundRobinGroupChat SelectorGroupChat"),
    "crewai": ("CrewAI", "Agent"),
}
_WEB_SERVERS = (
    *("fastapi", "flask", "starlette", "django", "aiohttp.web", "sanic", "litestar", "quart", "tornado"),
    *("http.server", "socketserver"),
)
_STEPS_OF_MAKING = re.compile(r"compile|with_config|(add|set)_\w+")
_PLAIN = LIST_NAMES | {"question", "user_message", "user_input"}
"""Parameter names that identify the user's message, regardless of the function's name."""
_FITTING = re.compile(r"\b(str|list|sequence|mutablesequence|iterable|any|object)\b", re.IGNORECASE)
_NO_ANSWER = frozenset(("None", "bool", "int", "float", "bytes"))
_METHODS = ("chat", "run", "invoke", "ask", "reply", "respond", "answer")
_NAMES_OF_AGENTS = frozenset((*_METHODS, "agent", "bot", "assistant", "graph", "app", "complete"))


class PythonAgentCandidate(NamedTuple):
    """A Python object, function or class that may be an agent."""

    target: str
    """The name of the agent in the form used in the configuration."""
    kind: str = ""
    is_object: bool = False
    rank: tuple[bool | int | str, ...] = ()
    """The sort key: the candidate with the lowest rank is the most likely."""


class PythonFiles(NamedTuple):
    """The result of analyzing a project's Python files."""

    agents: tuple[PythonAgentCandidate, ...]
    """The candidates, most likely first."""
    missing: tuple[str, ...]
    """The packages that the project imports but that are not installed in agenteval's own environment."""
    server: str
    """The reason why the project is a service (such as ``app.py imports fastapi``), or an empty string if it
    is not a service."""


def find_python_agents(root: Path) -> PythonFiles:
    """Find candidate agents in the Python files of a folder."""
    paths = sorted(_python_files(root), key=lambda path: (len(path.parts), path))
    project_names = {part for path in paths for part in (path.stem, *path.relative_to(root).parts[:-1])}
    modules = [each for path in paths if (each := _parse_module(path, root, project_names)) is not None]
    imported_from = {tuple(path.split(".")[-2:]) for module in modules for path in module.names.values()}
    found = sorted(
        (a for module in modules for a in _module_candidates(module, imported_from)), key=lambda a: a.rank
    )
    agents = list({each.target: each for each in (*_langgraph_agents(root), *found)}.values())
    return PythonFiles(tuple(agents), _missing(modules, project_names), _server(modules, project_names))


def _missing(modules: Iterable[_ParsedModule], project_names: set[str]) -> tuple[str, ...]:
    """Return the packages that the modules import but that are not installed in agenteval's environment.
    ``project_names`` contains the names of the project's files and folders."""
    packages = {name.partition(".")[0] for module in modules for name in module.imports} - {""}
    return tuple(
        sorted(each for each in packages - project_names - sys.stdlib_module_names if not _is_installed(each))
    )


def _server(modules: Iterable[_ParsedModule], project_names: set[str]) -> str:
    """Return the reason why the project is a service (such as ``app.py imports fastapi``), or an empty string
    if it is not a service."""
    servers = [server for server in _WEB_SERVERS if server.partition(".")[0] not in project_names]
    serving = (f"{each.path} imports {server}" for each in modules for server in servers if each.uses(server))
    return next(serving, "")


def top_level_names(path: Path) -> set[str] | None:
    """Return the names that a file binds at its top level, or None if the syntax does not determine the
    names."""
    tree = _parse_file(path)
    names: set[str] = set()
    todo: list[ast.AST] = [tree] if tree else []
    while todo:
        match todo.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=imported) | ast.ImportFrom(names=imported):
                names.update((each.asname or each.name).partition(".")[0] for each in imported)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Name(id="globals" | "exec" as name):
                names.add(name)
            case node:
                todo.extend(ast.iter_child_nodes(node))
    is_open = not {"*", "__getattr__", "globals", "exec"}.isdisjoint(names)
    return None if tree is None or is_open else names


def _langgraph_agents(root: Path) -> Iterator[PythonAgentCandidate]:
    """Yield the graphs that a project declares in ``langgraph.json`` for LangGraph's own tools."""
    graphs = json_object(root / "langgraph.json").get("graphs")
    for entry in graphs.values() if isinstance(graphs, dict) else ():
        target = entry.get("path") if isinstance(entry, dict) else entry
        file, _, name = target.rpartition(":") if isinstance(target, str) else ("", "", "")
        if file.endswith(".py") and (root / file).is_file():
            yield PythonAgentCandidate(f"{Path(os.path.normpath(file)).as_posix()}:{name}", "LangGraph", True)


def find_project_interpreter(root: Path, top: Path) -> str:
    """Return the Python interpreter of the project's virtual environment, relative to ``root``. Return an
    empty string if there is no virtual environment or if agenteval runs in that environment."""
    for folder in (root, *root.parents):
        for environment in (folder / ".venv", folder / "venv"):
            for program in ("bin/python", "Scripts/python.exe"):
                if (environment / program).is_file():
                    is_ours = environment.resolve() == Path(sys.prefix).resolve()
                    return "" if is_ours else Path(os.path.relpath(environment / program, root)).as_posix()
        if folder == top:
            break
    return ""


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def _python_files(root: Path) -> Iterator[Path]:
    entries = count = 0
    for folder, below, files in os.walk(root):
        below[:] = sorted(name for name in below if _should_search(Path(folder, name)))
        entries += len(files) + len(below)
        for name in sorted(files):
            if name.endswith(".py") and not name.startswith(("test_", "conftest.")):
                count += 1
                if count > MAX_FILES or entries > MAX_ENTRIES:
                    return
                yield Path(folder, name)


def _should_search(folder: Path) -> bool:
    is_environment = (folder / "pyvenv.cfg").exists()
    return not (folder.name.startswith(".") or folder.name in _LEFT_OUT or is_environment)


# ── one file ─────────────────────────────────────────────────────────────────────────────────────


class _ParsedModule(NamedTuple):
    """A parsed Python file."""

    path: str
    tree: ast.Module
    names: dict[str, str]
    """The dotted path that each name refers to, such as ``langgraph.graph.StateGraph.compile``."""
    imports: frozenset[str]

    def uses(self, package: str) -> bool:
        """Check whether the module imports the package or any of its submodules."""
        return any(f"{name}.".startswith(f"{package}.") for name in self.imports)


def _parse_file(path: Path) -> ast.Module | None:
    try:
        data = read_file(path, MAX_FILE_BYTES + 1)
        with warnings.catch_warnings(action="ignore"):  # about the author's code, which is only parsed
            return ast.parse(data) if len(data) <= MAX_FILE_BYTES else None
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parse_module(path: Path, root: Path, project_names: set[str]) -> _ParsedModule | None:
    tree = _parse_file(path)
    if tree is None:
        return None
    names: dict[str, str] = {}
    imports = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        for each in node.names:
            dotted, name = each.name, each.asname or each.name
            if isinstance(node, ast.ImportFrom):
                dotted = f"{'.' * node.level}{node.module or ''}.{dotted}"
            imports.add(dotted)
            if isinstance(node, ast.Import) and not each.asname:
                dotted = name = dotted.partition(".")[0]
            head = dotted.partition(".")[0]
            # A folder of the project may have the name of a framework.
            names[name] = f".{dotted}" if head in project_names else dotted
    return _ParsedModule(path.relative_to(root).as_posix(), tree, names, frozenset(imports))


def _module_candidates(
    module: _ParsedModule, imported_from: Container[tuple[str, ...]]
) -> Iterator[PythonAgentCandidate]:
    """Yield the candidates in a module. ``imported_from`` contains pairs of a module's short name and a name
    that other modules import from that module."""
    found = [
        (name, kind, node)
        for node in module.tree.body
        for name, kind in _statement_candidates(node, module.names)
    ]
    used = {name for name, _, node in found for name in _names_in(node) - {name}}
    stem = Path(module.path).stem
    for name, kind, node in found:
        is_object = kind in {framework for framework, _ in OBJECTS.values()}
        helps = name in used, not _has_agent_name(name), (stem, name) in imported_from
        rank = (not is_object, *helps, module.path.count("/"), module.path, -node.lineno)
        yield PythonAgentCandidate(f"{module.path}:{name}", kind, is_object, rank)


def _has_agent_name(name: str) -> bool:
    return any(word.lower() in _NAMES_OF_AGENTS for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name))


def _names_in(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _statement_candidates(node: ast.stmt, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each name that a module-level statement binds to a possible agent, together with the agent's
    kind. The dotted paths of the bound names are added to ``names``."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return _assignment_candidates(targets, value, names)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            return _assignment_candidates([target], value, names)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _function_candidates(node, names)
        case ast.ClassDef():
            return _class_candidates(node, names)
    return iter(())


def _assignment_candidates(
    targets: Iterable[ast.expr], value: ast.expr, names: dict[str, str]
) -> Iterator[tuple[str, str]]:
    path = _path_of(value, names)
    bound = [target.id for target in targets if isinstance(target, ast.Name) and path]
    names.update(dict.fromkeys(bound, path))
    if framework := _framework_of(path):
        yield from ((name, framework) for name in bound)


def _function_candidates(
    node: ast.FunctionDef | ast.AsyncFunctionDef, names: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the function if it creates a framework's agent or answers messages itself."""
    made = _returned_agent_path(node, names)
    if made:
        names[node.name] = made
    if node.name.startswith("_"):
        return
    if made and is_factory_name(node.name) and not _required_parameters(node.args):
        yield node.name, _framework_of(made)
    elif (parameter := _message_parameter(node, 0)) and (parameter in _PLAIN or _has_agent_name(node.name)):
        yield node.name, f"a function that takes {parameter}"


def _class_candidates(node: ast.ClassDef, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the class if it answers messages itself. A subclass of a framework class is not yielded, because
    only instances of such a class are agents."""
    if node.bases and (base := _path_of(node.bases[0], names)):
        names[node.name] = base
    if not _framework_of(names.get(node.name, "")) and (method := _talking_method(node)):
        yield f"{node.name}.{method}".replace(".__call__", ""), f"a class with {method}"


def _path_of(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the dotted path of the object from which an expression was created, following calls and methods.
    Return an empty string for other expressions."""
    parts: list[str] = []
    while True:
        match node:
            case ast.Call(func=inner) | ast.Subscript(value=inner) | ast.Await(value=inner):
                node = inner
            case ast.Attribute(value=inner, attr=name):
                parts.append(name)
                node = inner
            case ast.Name(id=name):
                return ".".join((names.get(name, ""), *reversed(parts))) if name in names else ""
            case _:
                return ""


def _framework_of(path: str) -> str:
    for package, (framework, makers) in OBJECTS.items():
        if path.startswith(f"{package}."):
            parts = path.split(".")
            at = next((i for i, part in enumerate(parts) if part in makers.split()), None)
            if at is not None and all(_STEPS_OF_MAKING.fullmatch(part) for part in parts[at + 1 :]):
                return framework
    return ""


def _returned_agent_path(function: ast.FunctionDef | ast.AsyncFunctionDef, names: Mapping[str, str]) -> str:
    """Return the dotted path of the framework's agent that a function returns, or an empty string if the
    function does not return an agent."""
    inside = dict(names)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            inside[node.targets[0].id] = _path_of(node.value, inside)
        elif isinstance(node, ast.Return) and node.value is not None:
            path = _path_of(node.value, inside)
            if _framework_of(path):
                return path
    return ""


def _required_parameters(arguments: ast.arguments) -> list[ast.arg]:
    places = [*arguments.posonlyargs, *arguments.args]
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    without = [each for each, default in by_name if default is None]
    return [*places[: len(places) - len(arguments.defaults)], *without]


def _message_parameter(function: ast.FunctionDef | ast.AsyncFunctionDef, skipped: int) -> str:
    """Return the name of the parameter for the user's message, or an empty string if the function is not
    suitable. A suitable function returns a value, and all its other required parameters are known
    (docs/agents.md, "What it gets")."""
    if any("tool" in ast.unparse(each).lower() for each in function.decorator_list):
        return ""
    places = [*function.args.posonlyargs, *function.args.args][skipped:]
    main = next((each for each in places if each.arg.lower() in TEXT_NAMES | LIST_NAMES), None)
    if main is None or (main.annotation and not _FITTING.search(ast.unparse(main.annotation))):
        return ""
    known = {main.arg, "ctx", "context", *HISTORY_NAMES, *SESSION_NAMES}
    if any(each.arg not in known for each in _required_parameters(function.args)[skipped:]):
        return ""
    if function.returns and ast.unparse(function.returns) in _NO_ANSWER:
        return ""
    answers = (ast.Return, ast.Yield, ast.YieldFrom)
    return main.arg if any(isinstance(n, answers) and n.value for n in ast.walk(function)) else ""


def _talking_method(owner: ast.ClassDef) -> str:
    """Return the only method that accepts the user's message, or an empty string if there is no such method.
    It must be possible to instantiate the class without arguments."""
    methods = {n.name: n for n in owner.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    if owner.name.startswith("_") or (
        "__init__" in methods and _required_parameters(methods["__init__"].args)[1:]
    ):
        return ""
    found = [name for name in ("__call__", *_METHODS) if name in methods]
    return found[0] if len(found) == 1 and _message_parameter(methods[found[0]], 1) else ""
