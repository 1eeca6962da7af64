"""Which adapter plays an object, and what asking costs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from agenteval.agentside.frameworks import registry

ROOT = Path(__file__).parents[3]


def test_the_adapters_beside_are_the_installed_ones() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    installed = project["entry-points"][registry.GROUP]
    here = "agenteval.agentside.frameworks"
    assert installed == {name: f"{here}.{module}:FRAMEWORK" for name, module in registry.BUILT_IN.items()}


def test_each_built_in_adapter_can_be_loaded() -> None:
    for package, module in registry.BUILT_IN.items():
        made = EntryPoint(
            package, f"agenteval.agentside.frameworks.{module}:FRAMEWORK", registry.GROUP
        ).load()
        assert not [name for name in registry._NEEDED if not hasattr(made, name)], package


def test_a_function_or_an_object_of_the_authors_own_loads_no_adapter() -> None:
    code = (
        "import sys\n"
        "from agenteval.agentside.frameworks import framework_of\n"
        "class Own: pass\n"
        "for each in (len, lambda text: text, Own, Own(), 3):\n"
        "    assert framework_of(each) is None\n"
        "print([name for name in sys.modules if name.endswith(('langgraph', 'google_adk', 'strands'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


OTHER = "other_package:Adapter"
OURS = "agenteval.agentside.frameworks.strands:FRAMEWORK"


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What is installed: values of entry points, all named ``strands``."""
    found: list[str] = []

    def entry_points() -> Any:
        return {registry.GROUP: [EntryPoint("strands", value, registry.GROUP) for value in found]}

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    registry._registered.cache_clear()
    yield found
    registry._registered.cache_clear()


def test_an_adapter_of_another_package_comes_before_ours(entries: list[str]) -> None:
    entries += [OURS, OTHER]
    first, second, *rest = registry._registered(())
    assert (first.value, second.value) == (OTHER, OURS)
    assert {entry.name for entry in (second, *rest)} == {*registry.BUILT_IN}  # metadata may be older


def test_where_nothing_of_agenteval_is_installed_ours_lie_beside(entries: list[str]) -> None:
    entries.append(OTHER)
    first, *ours = registry._registered(())
    assert first.value == OTHER
    assert [entry.name for entry in ours] == [*registry.BUILT_IN]


def test_in_the_agents_interpreter_an_agenteval_that_is_installed_there_is_not_asked(
    entries: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_PACKAGE", "_agenteval_agentside.frameworks")
    entries += [OURS, OTHER]
    values = [entry.value for entry in registry._registered(())]
    assert OURS not in values
    assert "_agenteval_agentside.frameworks.strands:FRAMEWORK" in values


def test_a_package_that_says_nothing_readable_of_itself_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, written in (
        ("broken", "[console_scripts]\nnothing\n"),
        ("good", f"[{registry.GROUP}]\nx = y:z\n"),
    ):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n", encoding="utf-8"
        )
        (folder / "entry_points.txt").write_text(written, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    values = [entry.value for entry in registry._registered((str(tmp_path),))]
    assert values[0] == "y:z"
    assert OURS in values


def test_a_class_that_does_not_say_where_it_is_is_of_no_framework() -> None:
    own = type("Own", (), {"__module__": None})
    assert registry.framework_of(own()) is None
