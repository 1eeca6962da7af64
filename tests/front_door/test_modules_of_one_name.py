"""Two files of the author's in one process, whose own modules have one name: neither gets the other's."""

from __future__ import annotations

import sys

import pytest

from tests.support.kit import Project

BOT = "def agent(message):\n    return f'It costs {price()} euros.'\n"
SUITE = "id: price\nturns: [{user: How much?, expect: {output: {contains: ['39 euros']}}}]\n"
ABSOLUTE, SIBLING, RELATIVE = (f"from {name} import price\n" for name in ("shop.prices", "prices", ".prices"))
WITHIN = BOT.replace("    return", "    from prices import price\n    return")
DEEPER = "from .menu import price\n"


def versions(project: Project, text: str, *, init: bool = True, new: str = "", more: str = "") -> None:
    for folder, number in (("old", 39), ("new", 3900)):
        if init:
            project.write(f"{folder}/shop/__init__.py", "")
        project.write(f"{folder}/shop/bot.py", (folder == "new" and new) or text)
        project.write(f"{folder}/shop/prices.py", f"def price():\n    return {number}\n")
        project.write(f"{folder}/shop/menu.py", ABSOLUTE)
    project.scenarios(SUITE)
    agents = "agent: {name: base, target: 'old/shop/bot.py:agent'}\n"
    project.config(
        f"{agents}compare: [{{name: new, target: 'new/shop/bot.py:agent'{more}}}]\nmetrics: []\n", target=""
    )


@pytest.mark.parametrize(
    ("text", "init", "importer", "name", "files"),
    [
        (ABSOLUTE + BOT, True, "bot.py:1", "shop", "__init__.py"),
        (SIBLING + BOT, True, "bot.py:1", "prices", "prices.py"),
        (SIBLING + BOT, False, "bot.py:1", "prices", "prices.py"),
        (WITHIN, False, "bot.py:2", "prices", "prices.py"),
        (DEEPER + BOT, True, "menu.py:1", "shop", "__init__.py"),
    ],
    ids=["package", "sibling in a package", "sibling", "within a function", "behind a relative import"],
)
def test_an_agent_that_would_run_with_modules_of_the_other_is_refused(
    project: Project, text: str, init: bool, importer: str, name: str, files: str
) -> None:
    versions(project, text, init=init)
    for done in (project.run(), project.call("validate")):
        both = (f"new/shop/{files}", f"old/shop/{files}")
        done.refuses("agenteval.yaml:2", importer, f"'{name}'", *both, "interpreter")


OTHER_NAME = "from tariff import price\n"
FALLBACK = "try:\n    from .prices import price\nexcept ImportError:\n    from prices import price\n"
TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import prices\n"


@pytest.mark.parametrize("new", [RELATIVE, OTHER_NAME, FALLBACK, TYPES + RELATIVE])
def test_what_cannot_be_mixed_up_is_played_and_told_apart(project: Project, new: str) -> None:
    versions(project, RELATIVE + BOT if new != OTHER_NAME else SIBLING + BOT, new=new + BOT)
    project.write("new/shop/tariff.py", "def price():\n    return 3900\n")
    done = project.run()
    assert done.code == 1, done.all

    for file in ("prices", "tariff"):
        project.write(f"new/shop/{file}.py", "def price():\n    return 30 + 9\n")
    assert project.run().code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_an_interpreter_of_its_own_has_modules_of_its_own(project: Project) -> None:
    versions(project, ABSOLUTE + BOT, more=f", interpreter: '{sys.executable}'")
    done = project.run()
    assert done.code == 1, done.all


def test_a_target_that_is_named_as_a_module_is_that_of_the_project(project: Project) -> None:
    versions(project, RELATIVE + BOT)
    project.write("shop/__init__.py", "")
    project.write("shop/bot.py", "def agent(message):\n    return 'It costs 3900 euros.'\n")
    config = (
        "agent: {{name: base, target: 'old/shop/bot.py:agent'}}\ncompare: [{{name: new, target: '{}'}}]\n"
    )
    project.config(config.format("shop.bot:agent"), target="")
    project.run().refuses("agenteval.yaml:3", "'shop.bot'", "'shop'")

    project.config(config.format("shop/bot.py:agent"), target="")
    assert project.run().code == 1


CHECK = "def check(conversation):\n    return OK\n"
LATE = "def check(conversation):\n    from {} import OK\n    return OK\n"
SCENARIO = "id: {0}\nturns: [Hi]\nexpect: {{python: checks.py:check}}\n"
MOCKED = "id: {0}\nturns: [Hi]\nchecks: none\ntools: {{look: {{python: checks.py:check}}}}\n"


def suites(project: Project, code: str, scenario: str, *names: str) -> None:
    project.config("metrics: []\n")
    project.write("agent.py", "def agent(messages):\n    return 'Hello'\n")
    for folder, is_right, name in zip("ab", (True, False), names, strict=True):
        project.write(f"scenarios/{folder}/s.yaml", scenario.format(folder))
        project.write(f"scenarios/{folder}/checks.py", code.format(name))
        project.write(f"scenarios/{folder}/{name}.py", f"OK = {is_right}\n")


@pytest.mark.parametrize("scenario", [SCENARIO, MOCKED], ids=["check", "mock"])
@pytest.mark.parametrize("code", ["from {} import OK\n" + CHECK, LATE], ids=["at the top", "within"])
def test_a_check_with_the_helper_of_another_folder_is_refused(
    project: Project, code: str, scenario: str
) -> None:
    suites(project, code, scenario, "helpers", "helpers")
    for done in (project.run(), project.call("validate")):
        done.refuses("b/s.yaml", "'helpers'", "a/helpers.py", "b/helpers.py")


@pytest.mark.parametrize("code", ["from {} import OK\n" + CHECK, LATE], ids=["at the top", "within"])
def test_helpers_of_names_of_their_own_are_each_their_own(project: Project, code: str) -> None:
    suites(project, code, SCENARIO, "helpers", "others")
    done = project.run()
    assert done.code == 1, done.all
    assert [each["verdict"] for each in project.results()["scenarios"]] == ["passed", "failed"]


def test_a_file_that_hides_the_module_of_an_earlier_one_is_refused(project: Project) -> None:
    """``b/checks.py`` imports nothing, but its folder is searched first once it is loaded."""
    suites(project, LATE, SCENARIO, "helpers", "helpers")
    project.write("scenarios/b/checks.py", "OK = True\n" + CHECK)
    project.run().refuses("b/s.yaml", "a/checks.py:2", "'helpers'")

    (project.root / "scenarios/b/helpers.py").unlink()
    assert project.run().code == 0


def test_a_name_of_the_standard_library_is_left_to_python(project: Project) -> None:
    code = "import types\n" + CHECK.replace("OK", "hasattr(types, 'FunctionType')")
    suites(project, code, SCENARIO, "types", "types")
    done = project.run()
    assert done.code == 0, done.all
