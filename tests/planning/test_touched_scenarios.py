"""Which scenarios a change of files may affect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval.core.config import Config
from agenteval.core.scenario import Scenario
from agenteval.planning.touched_scenarios import touched_scenarios

CONFIG = Config.model_validate({"agent": {"name": "bot", "target": "a:b"}, "prompts": {"x": "shared.md"}})


def scenario(folder: Path, id: str, **fields: Any) -> Scenario:
    source = f"{folder}/{id}.yaml:1"
    return Scenario.model_validate({"id": id, "goal": "g", "base": str(folder), "source": source, **fields})


@pytest.mark.parametrize(
    ("changed", "touched"),
    [
        ("own.md", {"a", "b"}),
        ("a.yaml", {"a"}),
        ("shared.md", {"a", "b", "c"}),  # the configuration names it, too
        ("other.md", {"a", "b", "c"}),
    ],
)
def test_a_user_prompt_touches_its_scenarios(tmp_path: Path, changed: str, touched: set[str]) -> None:
    for name in ("own.md", "shared.md"):
        (tmp_path / name).touch()
    scenarios = [
        scenario(tmp_path, "a", user_prompt="own.md"),
        scenario(tmp_path, "b", user_prompt=f"../{tmp_path.name}/own.md"),
        scenario(tmp_path, "c", user_prompt="shared.md"),
    ]
    config = CONFIG.model_copy(update={"root": str(tmp_path)})
    assert touched_scenarios([tmp_path / changed], config, scenarios) == touched
