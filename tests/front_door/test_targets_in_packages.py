"""A file of a package that is named by its path is the package's module, as in the application."""

from __future__ import annotations

import sys

import pytest

from tests.front_door.test_framework_objects import TOOLS
from tests.support.kit import Project, failed_checks
from tests.support.toy import install_toy

PLACES = [
    "here",
    pytest.param("elsewhere", marks=pytest.mark.skipif(sys.platform == "win32", reason="process groups")),
]

AGENT = """
from . import prompts
from .shared.words import polite
from customer_service.shared import state

state.started.append("agent")

def root_agent(messages):
    assert __name__ == "customer_service.agent", __name__
    return polite(prompts.GREETING, len(state.started))
"""
PACKAGE = {
    "__init__.py": "from . import agent\n",
    "agent.py": AGENT,
    "prompts.py": 'GREETING = "Good day"\n',
    "shared/__init__.py": "",
    "shared/state.py": "started = []\n",
    "shared/words.py": 'def polite(text, n):\n    return f"{text}, {n} of us"\n',
}
SUITE = "id: greet\nturns: [Hi]\nexpect: {output: {contains: ['Good day, 1 of us']}}\n"


def config(project: Project, target: str, place: str, more: str = "") -> None:
    interpreter = f", interpreter: '{sys.executable}'" if place == "elsewhere" else ""
    project.config(f"agent: {{name: bot, target: {target}{interpreter}}}\n{more}", target="")


def package(project: Project, folder: str, **changed: str) -> None:
    for name, text in {**PACKAGE, **changed}.items():
        project.write(f"{folder}/{name}", text)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("folder", ["customer_service", "agents/python/customer_service"])
def test_relative_and_absolute_imports_of_the_package_work(project: Project, place: str, folder: str) -> None:
    package(project, folder)
    project.scenarios(SUITE)
    config(project, f"'{folder}/agent.py:root_agent'", place)
    done = project.run()
    assert done.code == 0, done.all

    bug = PACKAGE["shared/words.py"].replace("{text}, {n}", "{n}")
    package(project, folder, **{"shared/words.py": bug})
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "output.contains")}


@pytest.mark.parametrize("place", PLACES)
def test_the_init_file_of_a_package_is_the_package(project: Project, place: str) -> None:
    package(project, "src/customer_service", **{"__init__.py": "from .agent import root_agent\n"})
    project.scenarios(SUITE)
    config(project, "'src/customer_service/__init__.py:root_agent'", place)
    done = project.run()
    assert done.code == 0, done.all


def test_mocks_and_checks_of_the_package_share_its_state(project: Project) -> None:
    """One module, whoever names it: by its path, by its name, from another file of the package."""
    agent = "from . import state\ndef agent(messages, ctx):\n    state.seen.append(1)\n    return 'done'\n"
    checks = "from . import state\ndef one(conversation):\n    return len(state.seen) == 1\n"
    for name, text in {"__init__": "", "state": "seen = []\n", "bot": agent, "checks": checks}.items():
        project.write(f"app/shop/{name}.py", text)
    project.scenarios("id: a\nturns: [Hi]\nexpect: {python: ../app/shop/checks.py:one}\n")
    config(project, "'app/shop/bot.py:agent'", "here")
    done = project.run()
    assert done.code == 0, done.all

    project.write("app/shop/bot.py", agent.replace("append(1)", "extend([1, 2])"))
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "python")}


def test_two_packages_of_one_name_are_two(project: Project) -> None:
    for place in ("one", "two"):
        project.write(f"{place}/shop/__init__.py", "")
        project.write(f"{place}/shop/words.py", f"WORD = '{place}'\n")
        code = "from .words import WORD\ndef agent(messages):\n    return WORD\n"
        project.write(f"{place}/shop/bot.py", code)
    agents = "".join(f"  {name}: {{target: '{name}/shop/bot.py:agent'}}\n" for name in ("one", "two"))
    project.config(f"agents:\n{agents}", target="one/shop/bot.py:agent")
    each = "  - {id: %s, agent: %s, turns: [Hi], expect: {output: {contains: [%s]}}}\n"
    project.scenarios("scenarios:\n" + "".join(each % (n, n, n) for n in ("one", "two")))
    done = project.run()
    assert done.code == 0, done.all

    project.write("two/shop/words.py", "WORD = 'neither'\n")
    assert project.run().code == 1
    assert [each["verdict"] for each in project.results()["scenarios"]] == ["passed", "failed"]


@pytest.mark.parametrize("place", PLACES)
def test_a_file_of_a_package_that_imports_what_lies_beside_it_still_finds_it(
    project: Project, place: str
) -> None:
    """Many an application is started in its folder, which holds an ``__init__.py`` by habit."""
    project.write("app/__init__.py", "")
    project.write("app/words.py", "WORD = 'Good day'\n")
    project.write("app/bot.py", "from words import WORD\ndef agent(messages):\n    return WORD\n")
    project.scenarios(SUITE.replace(", 1 of us", ""))
    config(project, "'app/bot.py:agent'", place)
    done = project.run()
    assert done.code == 0, done.all


@pytest.mark.parametrize("place", PLACES)
def test_deps_and_the_object_of_a_framework_are_of_their_package(project: Project, place: str) -> None:
    parts = """
        from . import numbers

        class Shop:
            number = numbers.NUMBER
    """
    code = """
from .parts import Shop

async def play(run, text):
    return f"shop {run.deps.number} {isinstance(run.deps, Shop)}"

agent = Agent(play, deps_type=Shop)
"""
    target = "{object: 'src/store/bot.py:agent', deps: 'src/store/parts.py:Shop'}"
    config(project, target, place)
    install_toy(project)
    project.write("src/store/__init__.py", "")
    project.write("src/store/bot.py", TOOLS + code)
    project.write("src/store/parts.py", parts)
    project.write("src/store/numbers.py", "NUMBER = 7\n")
    project.scenarios("id: a\nturns: [Hi]\nexpect: {output: {contains: ['shop 7 True']}}\n")
    done = project.run()
    assert done.code == 0, done.all

    project.write("src/store/numbers.py", "NUMBER = 8 + 0\n")
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "output.contains")}
