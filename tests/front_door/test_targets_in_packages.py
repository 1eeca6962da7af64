"""A file of a package that is named by its path is the package's module, as in the application."""

from __future__ import annotations

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.suites import write_suite
from tests.support.toy import PLACES, TOY_TOOLS, install_toy

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


def package(project: Project, folder: str, **changed: str) -> None:
    for name, text in {**PACKAGE, **changed}.items():
        project.write(f"{folder}/{name}", text.replace("customer_service", folder.split("/")[-1]))


STORE = """
from .parts import Shop

async def play(run, text):
    return f"shop {run.deps.number} {isinstance(run.deps, Shop)}"

agent = Agent(play, deps_type=Shop)
"""
PARTS = """
from . import numbers

class Shop:
    number = numbers.NUMBER
"""
TARGETS = {
    "app": "'customer_service/agent.py:root_agent'",
    "deeper": "'agents/python/sales/agent.py:root_agent'",
    "init": "'src/desk/__init__.py:root_agent'",
    "beside": "'app/bot.py:agent'",
    "deps": "{object: 'src/store/bot.py:agent', deps: 'src/store/parts.py:Shop'}",
}


@pytest.mark.parametrize("where", PLACES)
def test_a_file_of_a_package_is_imported_as_its_module(project: Project, where: str) -> None:
    """With relative and absolute imports, as the package itself, beside its modules (many an application is
    started in its folder, which holds an ``__init__.py`` by habit), and as a framework's object with deps."""
    install_toy(project)
    files = {
        "app/__init__.py": "",
        "app/words.py": "WORD = 'Good day, 1 of us'\n",
        "app/bot.py": "from words import WORD\ndef agent(messages):\n    return WORD\n",
        "src/store/__init__.py": "",
        "src/store/bot.py": TOY_TOOLS + STORE,
        "src/store/parts.py": PARTS,
        "src/store/numbers.py": "NUMBER = 7\n",
    }
    for name, text in files.items():
        project.write(name, text)
    for folder in ("customer_service", "agents/python/sales"):
        package(project, folder)
    package(project, "src/desk", **{"__init__.py": "from .agent import root_agent\n"})
    words = dict.fromkeys(TARGETS, "Good day, 1 of us") | {"deps": "shop 7 True"}
    scenarios = {n: f"turns: [Hi], expect: {{output: {{contains: ['{word}']}}}}" for n, word in words.items()}
    write_suite(project, {n: f"target: {target}" for n, target in TARGETS.items()}, scenarios, where=where)
    done = project.run()
    assert done.code == 0, done.all

    bug = PACKAGE["shared/words.py"].replace("{text}, {n}", "{n}")
    for folder in ("customer_service", "agents/python/sales"):
        package(project, folder, **{"shared/words.py": bug})
    project.write("src/store/numbers.py", "NUMBER = 8 + 0\n")
    assert project.run().code == 1
    failed = {name for name in TARGETS if failed_checks(project.sample(name)) == {(None, "output.contains")}}
    assert failed == {"app", "deeper", "deps"}


def test_mocks_and_checks_of_the_package_share_its_state(project: Project) -> None:
    """One module, whoever names it: by its path, by its name, from another file of the package."""
    agent = "from . import state\ndef agent(messages, ctx):\n    state.seen.append(1)\n    return 'done'\n"
    checks = "from . import state\ndef one(conversation):\n    return len(state.seen) == 1\n"
    for name, text in {"__init__": "", "state": "seen = []\n", "bot": agent, "checks": checks}.items():
        project.write(f"app/shop/{name}.py", text)
    project.scenarios("id: a\nturns: [Hi]\nexpect: {python: ../app/shop/checks.py:one}\n")
    project.config(target="app/shop/bot.py:agent")
    done = project.run()
    assert done.code == 0, done.all

    project.write("app/shop/bot.py", agent.replace("append(1)", "extend([1, 2])"))
    assert project.run().code == 1
    assert failed_checks(project.sample()) == {(None, "python")}


def test_two_packages_of_one_name_are_two(project: Project) -> None:
    for name in ("one", "two"):
        project.write(f"{name}/shop/__init__.py", "")
        project.write(f"{name}/shop/words.py", f"WORD = '{name}'\n")
        code = "from .words import WORD\ndef agent(messages):\n    return WORD\n"
        project.write(f"{name}/shop/bot.py", code)
    names = ("one", "two")
    agents = {name: f"target: '{name}/shop/bot.py:agent'" for name in names}
    write_suite(project, agents, {n: f"turns: [Hi], expect: {{output: {{contains: [{n}]}}}}" for n in names})
    done = project.run()
    assert done.code == 0, done.all

    project.write("two/shop/words.py", "WORD = 'neither'\n")
    assert project.run().code == 1
    assert [each["verdict"] for each in project.results()["scenarios"]] == ["passed", "failed"]
