"""The forms in which agents of frameworks are published, by the command line: the object, functions around
it, an agent as a tool, threads of its own, a class. ``forms/NAME.py`` has those of one framework, each with a
twin that has a bug: it calls ``cancel_order``, too. A real tool writes its name into the file that ``RAN``
names.

Run by a Python that has the framework, the agents are in its process. ``FORMS_INTERPRETER`` names another
Python that has it: the agents run in that one. What needs no framework (``WITHOUT_FRAMEWORK``) is tried where
there is none.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.frameworks.forms_model import play_order_clerk
from tests.support.kit import Done, Project, failed_checks
from tests.support.model_servers import ModelServer

FOLDER = Path(__file__).with_name("forms")
INTERPRETER = os.environ.get("FORMS_INTERPRETER")
PACKAGES = {
    "agent_framework": "agent_framework",
    "autogen": "autogen_agentchat",
    "crewai": "crewai",
    "google_adk": "google.adk",
    "langgraph": "langgraph",
    "llamaindex": "llama_index.core",
    "openai_agents": "agents",
    "pydantic_ai": "pydantic_ai",
    "smolagents": "smolagents",
    "strands": "strands",
}
WITHOUT_FRAMEWORK = {"mcp_stdio": "mcp", "plain_loop": "openai"}
FORMS = ("agent", "by_function", "by_async", "specialist_agent", "by_threads", "in_class")
STATUSES = ("shipped", "packed", "lost", "returned")
ORDER = ("get_order", {"order_id": "A-7"})


# ── which forms there are ────────────────────────────────────────────────────────────────────────

_PROBE = """
import importlib.util, sys
def is_there(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
"""


def _installed() -> set[str]:
    """The files whose package the agents' Python has."""
    wanted = {**PACKAGES, **WITHOUT_FRAMEWORK}
    code = f"{_PROBE}print(*[name for name, package in {wanted!r}.items() if is_there(package)])"
    command = [INTERPRETER or sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = set(done.stdout.split())
    return found & PACKAGES.keys() or found


@dataclass(frozen=True)
class Form:
    """One form of the agent in one file."""

    file: str
    name: str
    twin: str
    method: str = ""
    is_specialist: bool = False
    is_plain_tool: bool = False
    """The specialist is behind a function, of which nothing shows that it is an agent."""

    def target(self, hasty: bool = False) -> str:
        return f"shop.py:{self.twin if hasty else self.name}{self.method}"

    @property
    def before(self) -> list[str]:
        """The calls that lead to those of the order tools."""
        return ["specialist"] if self.is_specialist else []

    def __str__(self) -> str:
        return f"{self.file}-{self.name}"


def _forms(path: Path) -> Iterator[Form]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    assigned = {n.id: n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    names = functions | classes.keys() | assigned.keys()
    more: Mapping[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "MORE":
            more = ast.literal_eval(node.value)
    for name in (*FORMS, *more):
        if name not in names and path.stem in WITHOUT_FRAMEWORK:
            continue
        camel = "".join(part.capitalize() for part in name.split("_"))
        twins = [twin for twin in (f"hasty_{name}", f"Hasty{camel}") if twin in names]
        assert name in names, f"{path.name} has no {name}"
        assert twins, f"{path.name} has no twin of {name} with the bug"
        is_specialist = name == "specialist_agent"
        yield Form(
            path.stem,
            name,
            twins[0],
            ".chat" if name in classes else "",
            is_specialist,
            is_specialist and "specialist" in functions,
        )


INSTALLED = _installed()


def _params(wanted: Mapping[str, str], only: str | None = None) -> list[Any]:
    found: list[Any] = []
    for name, package in sorted(wanted.items()):
        path = FOLDER / f"{name}.py"
        if name in INSTALLED and path.is_file():
            found += [pytest.param(each, id=str(each)) for each in _forms(path) if only in (None, each.name)]
        else:
            skip = pytest.mark.skip(reason=f"{package} is not installed here, or another framework is")
            found.append(pytest.param(None, id=name, marks=skip))
    return found


ANSWERED = {**PACKAGES, "mcp_stdio": "mcp"}
answered_forms = pytest.mark.parametrize("form", _params(ANSWERED))
specialist_forms = pytest.mark.parametrize("form", _params(PACKAGES, "specialist_agent"))
refused_forms = pytest.mark.parametrize("form", _params(ANSWERED, "by_function"))
plain_forms = pytest.mark.parametrize("form", _params({"plain_loop": "openai"}))


# ── a run of one form ────────────────────────────────────────────────────────────────────────────


class Shop:
    """A project whose agents are a form and its twin."""

    def __init__(self, project: Project, form: Form) -> None:
        self.project, self.form = project, form
        shutil.copy(FOLDER / f"{form.file}.py", project.root / "shop.py")  # its name may be the package's
        for path in FOLDER.glob("*.py"):
            if path.stem not in {**PACKAGES, **WITHOUT_FRAMEWORK}:  # a program that one of them starts
                shutil.copy(path, project.root)
        self.scenarios: list[dict[str, Any]] = []

    def scenario(
        self,
        id: str,
        message: str,
        expect: Mapping[str, Any],
        tools: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        turn = {"user": message, "expect": dict(expect)}
        self.scenarios.append(
            {"id": id, "turns": [turn], **({"tools": dict(tools)} if tools else {}), **more}
        )

    def run(self, *, passthrough: bool = False, env: Mapping[str, str] | None = None) -> Done:
        agent = {"name": "bot", "target": self.form.target()}
        hasty = {"target": self.form.target(hasty=True)}
        if INTERPRETER:
            agent["interpreter"] = hasty["interpreter"] = INTERPRETER
        config: dict[str, Any] = {"agent": agent, "agents": {"hasty": hasty}, "metrics": []}
        if INTERPRETER:
            config["agent_concurrency"] = 2  # each one more is a process that imports the framework
        if passthrough or self.form.is_plain_tool:
            config["unmocked_tools"] = "passthrough"
        self.project.write("agenteval.yaml", yaml.safe_dump(config))
        self.project.scenarios(yaml.safe_dump({"scenarios": self.scenarios}))
        done = self.project.run(env={"RAN": str(self.project.root / "RAN"), **(env or {})})
        assert (self.project.root / "results.json").is_file(), f"{self.form}: no results:\n{done.all}"
        return done

    def ran(self) -> list[str]:
        """The real tools that ran."""
        path = self.project.root / "RAN"
        return sorted(path.read_text(encoding="utf-8").split()) if path.exists() else []

    def played(self, scenario: str) -> Played:
        return Played(self.project.sample(scenario))


class Played:
    """A sample of one turn."""

    def __init__(self, sample: dict[str, Any]) -> None:
        self.verdict: str = sample["verdict"]
        self.fault: str | None = sample["fault"]
        self.failed = failed_checks(sample)
        turns = sample["turns"] or [{}]
        self.answer: str = turns[0].get("agent") or ""
        self.listed: list[dict[str, Any]] = turns[0].get("tool_calls") or []

    @property
    def calls(self) -> list[Any]:
        """Of each call the name and the arguments; of an agent that is a tool, only the name."""
        return [c["name"] if c["name"] == "specialist" else (c["name"], c["args"]) for c in self.listed]

    @property
    def names(self) -> list[str]:
        return [call["name"] for call in self.listed]


class Faults:
    """What is wrong with a run, all of it at once."""

    def __init__(self, form: Form, done: Done) -> None:
        self.form, self.done, self.found = form, done, list[str]()

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.found.append(otherwise)

    def same(self, what: str, found: Any, expected: Any) -> None:
        self.expect(found == expected, f"{what}: {found}, expected {expected}")

    def report(self) -> None:
        listed = "\n".join(f"  - {each}" for each in self.found)
        assert not self.found, f"{self.form}:\n{listed}\n{self.done.all[-1500:]}"


def _checks(order: bool = True, **output: Any) -> dict[str, Any]:
    calls = {"calls": [{"name": ORDER[0], "args": ORDER[1]}]} if order else {}
    expect: dict[str, Any] = {"tool_calls": {**calls, "forbidden": [{"name": "cancel_order"}]}}
    return {**expect, "output": output} if output else expect


# ── what the scenario answers ────────────────────────────────────────────────────────────────────


@answered_forms
def test_mocks_answer_each_sample_and_every_call_is_recorded_once(project: Project, form: Form) -> None:
    shop = Shop(project, form)
    for status in STATUSES:
        shop.scenario(
            status, "order A-7", _checks(contains=[status]), {"get_order": {"returns": {"status": status}}}
        )
    shop.scenario(
        "error", "order A-7", _checks(contains=["no such order"]), {"get_order": {"error": "no such order"}}
    )
    two = _checks(order=False, contains=["A-1 is late A-1", "B-2 is late B-2"])
    late = {"returns": {"status": "late ${args.order_id}"}}  # each call has the answer to its own arguments
    shop.scenario("two", "orders A-1 B-2", two, {"get_order": late})
    faults = Faults(form, shop.run())

    faults.same("real tools ran", shop.ran(), [])
    for status in STATUSES:
        played = shop.played(status)
        faults.expect(status in played.answer, f"{status}: the mock did not answer: {played.answer!r}")
        faults.same(f"{status}: calls", played.calls, [*form.before, ORDER])
        faults.same(f"{status}: verdict", played.verdict, "passed")
    error = shop.played("error")
    faults.expect(
        "no such order" in error.answer, f"the mock's error did not reach the model: {error.answer!r}"
    )
    faults.same("error: calls", error.calls, [*form.before, ORDER])
    faults.same("error: verdict", error.verdict, "passed")
    both = shop.played("two")
    looked = [("get_order", {"order_id": each}) for each in ("A-1", "B-2")]
    faults.same("two orders: calls", both.calls, [*form.before, *looked])
    faults.same("two orders: verdict", both.verdict, "passed")
    faults.same("exit code", faults.done.code, 0)
    faults.report()


@specialist_forms
def test_an_agent_that_is_a_tool_can_be_mocked(project: Project, form: Form) -> None:
    shop = Shop(project, form)
    expect = _checks(order=False, contains=["A-7 is stubbed"])
    shop.scenario("it", "order A-7", expect, {"specialist": {"returns": "A-7 is stubbed"}})
    faults = Faults(form, shop.run())

    faults.same("real tools ran", shop.ran(), [])
    played = shop.played("it")
    faults.expect("stubbed" in played.answer, f"the mock did not answer: {played.answer!r}")
    faults.same("calls", played.calls, ["specialist"])
    faults.same("verdict", played.verdict, "passed")
    faults.same("exit code", faults.done.code, 0)
    faults.report()


@answered_forms
def test_bugs_are_red_in_their_turn_and_real_tools_run_only_where_they_are_let_through(
    project: Project, form: Form
) -> None:
    shop = Shop(project, form)
    mocks = {"get_order": {"returns": {"status": "shipped"}}, "cancel_order": {"returns": "done"}}
    shop.scenario("bug", "order A-7", _checks(), mocks, agent="hasty")
    shop.scenario("misfit", "bad", _checks(), mocks)
    shop.scenario("real", "order A-7", _checks(contains=["real"]))
    shop.scenario("real-bug", "order A-7", _checks(), agent="hasty")
    faults = Faults(form, shop.run(passthrough=True))

    # Those of `real` and `real-bug`: none of a tool that the scenario answers.
    faults.same("real tools ran", shop.ran(), ["cancel_order", "get_order", "get_order"])
    for name in ("bug", "real-bug"):
        bug = shop.played(name)
        faults.same(f"{name}: verdict", bug.verdict, "failed")
        faults.expect((0, "tool_calls") in bug.failed, f"{name}: not red in its turn: {bug.failed}")
        faults.same(f"{name}: calls", sorted(bug.names), sorted([*form.before, "get_order", "cancel_order"]))
        faults.expect(ORDER in bug.calls, f"{name}: arguments: {bug.calls}")
    faults.expect("real" not in json.dumps(shop.played("bug").listed), "bug: the mock did not answer")
    misfit = shop.played("misfit")
    faults.expect(misfit.verdict != "passed", "arguments that do not fit the tool are green")
    mine = misfit.fault in (None, "agent")
    faults.expect(
        mine, f"arguments that do not fit the tool are no fault of the agent's, but: {misfit.fault}"
    )
    real = shop.played("real")
    faults.same("real: calls", real.calls, [*form.before, ORDER])
    faults.expect("real" in real.answer, f"the real tool did not answer: {real.answer!r}")
    results = [json.dumps(c["result"]) for c in real.listed if c["name"] == "get_order"]
    faults.expect(all("real" in each for each in results), f"real: its result is not recorded: {results}")
    faults.same("real: verdict", real.verdict, "passed")
    faults.same("exit code", faults.done.code, 1)
    faults.report()


@refused_forms
def test_a_tool_that_the_scenario_does_not_answer_does_not_run(project: Project, form: Form) -> None:
    shop = Shop(project, form)
    mock = {"get_order": {"returns": {"status": "shipped"}}}
    shop.scenario("it", "order A-7", _checks(), mock, agent="hasty")
    faults = Faults(form, shop.run())

    faults.same("real tools ran", shop.ran(), [])
    faults.expect(shop.played("it").verdict != "passed", "an undeclared tool is green")
    faults.expect(
        faults.done.code in (1, 2), f"exit code: {faults.done.code}, expected 1 or 2 (the author's mistake)"
    )
    faults.expect("cancel_order" in faults.done.all, "the tool is not named")
    faults.report()


# ── a loop over a model client: its tools are plain functions, which nothing can answer for ──────


@pytest.fixture
def model() -> Iterator[dict[str, str]]:
    """The environment in which ``openai`` clients speak to a model here."""
    with ModelServer(play_order_clerk) as server:
        yield {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "none"}


@plain_forms
def test_a_mock_that_cannot_answer_is_undecided_and_names_the_way_out(
    project: Project, form: Form, model: dict[str, str]
) -> None:
    shop = Shop(project, form)
    shop.scenario("it", "order A-7", _checks(), {"get_order": {"returns": {"status": "shipped"}}})
    faults = Faults(form, shop.run(env=model))
    faults.same("exit code", faults.done.code, 3)
    faults.same("verdict", shop.played("it").verdict, "inconclusive")
    for word in ("get_order", "intercept"):
        faults.expect(word in faults.done.all, f"{word} is not named")
    faults.report()


@plain_forms
def test_calls_of_a_plain_loop_are_heard_and_a_forbidden_one_is_red(
    project: Project, form: Form, model: dict[str, str]
) -> None:
    shop = Shop(project, form)
    shop.scenario("good", "order A-7", _checks(contains=["real"]))
    two = _checks(order=False, contains=["A-1 is real", "B-2 is real"])
    shop.scenario("two", "orders A-1 B-2", two)
    shop.scenario("bug", "order A-7", _checks(), agent="hasty")
    faults = Faults(form, shop.run(passthrough=True, env=model))

    good, both, bug = (shop.played(each) for each in ("good", "two", "bug"))
    faults.same("calls", good.calls, [ORDER])
    faults.expect("real" in json.dumps([c["result"] for c in good.listed]), "its result is not recorded")
    faults.same("verdict", good.verdict, "passed")
    faults.same("two: calls", both.calls, [("get_order", {"order_id": each}) for each in ("A-1", "B-2")])
    faults.same("two: verdict", both.verdict, "passed")
    faults.same("the bug: verdict", bug.verdict, "failed")
    faults.expect((0, "tool_calls") in bug.failed, f"the bug is not red in its turn: {bug.failed}")
    faults.same("the bug: calls", sorted(bug.names), ["cancel_order", "get_order"])
    faults.same("exit code", faults.done.code, 1)
    faults.report()
