"""When modules of frameworks are hooked, and what comes of a release that cannot be."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from agenteval.agentside import hooks, world
from tests.support.kit import Project

HOOK = """
def install(module):
    module.hooked = getattr(module, "hooked", 0) + 1
    module.Tool
"""


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of frameworks, each with a hook of its own, that nobody has imported."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    table = {"toy_tools": "toy_hook", "toy_old_tools": "toy_hook"}
    monkeypatch.setattr(hooks, "HOOKS", {**hooks.HOOKS, **table})
    monkeypatch.setattr(hooks, "_failed", {})
    hook = ModuleType("agenteval.agentside.hooks.toy_hook")
    exec(HOOK, vars(hook))
    monkeypatch.setitem(sys.modules, hook.__name__, hook)
    hooks.install()
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("toy_"):
            del sys.modules[name]
    hooks._installed.difference_update(table)


def test_a_module_is_hooked_once_when_it_is_imported(shelf: Path) -> None:
    (shelf / "toy_tools.py").write_text("class Tool: ...\n")
    module = import_module("toy_tools")
    hooks.install()
    assert module.hooked == 1
    assert hooks.is_hooked("toy_tools")
    assert module.__spec__
    assert module.__spec__.loader is module.__loader__
    assert not hooks.list_failures()


def test_a_module_that_was_imported_before_is_hooked_too(shelf: Path) -> None:
    (shelf / "toy_tools.py").write_text("class Tool: ...\n")
    finder = sys.meta_path.pop(0)
    module = import_module("toy_tools")
    sys.meta_path.insert(0, finder)
    assert not hasattr(module, "hooked")
    hooks.install()
    assert module.hooked == 1


def test_a_release_without_what_is_hooked_leaves_each_turn_undecided(shelf: Path) -> None:
    (shelf / "toy_old_tools.py").write_text("")
    import_module("toy_old_tools")
    (said,) = hooks.list_failures()
    assert said.startswith("toy_old_tools tool calls cannot be intercepted in this release (AttributeError: ")
    assert not hooks.is_hooked("toy_old_tools")


def test_a_module_that_cannot_be_imported_fails_as_ever(shelf: Path) -> None:
    (shelf / "toy_tools.py").write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        import_module("toy_tools")
    assert "toy_tools" not in sys.modules
    assert not hooks.is_hooked("toy_tools")


AGENT = """
import sys
from types import ModuleType
%s
def agent(message: str) -> str:
    return "Done."
"""
OLD = """
old = ModuleType("smolagents.tools")
sys.modules["smolagents"] = ModuleType("smolagents")
sys.modules["smolagents.tools"] = old
from agenteval.agentside import hooks
hooks.install()
"""


@pytest.mark.parametrize(("code", "exit_code"), [("", 0), (OLD, 3)])
def test_an_agent_whose_framework_cannot_be_met_proves_nothing(
    project: Project, code: str, exit_code: int
) -> None:
    project.agent(AGENT % code)
    project.config()
    project.scenarios("id: a\nturns: [hi]\nexpect: {output: {contains: [Done]}}\n")
    done = project.run()
    assert done.code == exit_code, done.all
    assert ("smolagents tool calls cannot be intercepted in this release" in done.all) == bool(exit_code)


class Mocks:
    def mocks(self, name: str) -> bool:
        return True


def test_a_world_is_that_of_its_turn_and_of_no_other_code() -> None:
    assert world.current_world() is None
    own = world.World("a")
    with own.turn(Mocks()):  # type: ignore[arg-type]
        assert world.current_world() is own
        assert own.mocks("x")
    assert world.current_world() is None
    assert own in world.open_worlds()
    own.close()
    assert own not in world.open_worlds()
