"""The first file that an agent's interpreter runs: an old Python is refused in words, a new one works."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from agenteval.agentside import start

FOLDER = str(Path(start.__file__).parent)


@pytest.mark.parametrize(("version", "shown"), [((3, 7, 9), "3.7"), ((2, 7, 18), "2.7")])
def test_an_old_python_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], version: Any, shown: str
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(sys, "argv", ["start.py"])
    start.main()
    out = capsys.readouterr().out
    assert out.endswith("\n")
    found = json.loads(out)["refused"]
    assert found["of"] == "python"
    assert shown in found["what"]
    assert "3.8" in found["remedy"]


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the worker was started with: stand-ins for it and for the frameworks."""
    found: list[Any] = []
    frameworks: Any = ModuleType("_agenteval_agentside.frameworks")
    frameworks.recognize_object = lambda value: value
    worker: Any = ModuleType("_agenteval_agentside.targets.worker")
    worker.work = lambda *args: found.extend([args, [*sys.path], [*sys.argv]])
    monkeypatch.setitem(sys.modules, "_agenteval_agentside", ModuleType("before"))
    for module in (frameworks, worker):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(
        sys, "argv", ["start.py", "bot.py:agent", "/suite", "bot.py:deps", '{"runs_others": true}']
    )
    return found


@pytest.mark.parametrize("version", [(3, 8), (3, 8, 0), (3, 14, 1)])
def test_the_worker_is_started(monkeypatch: pytest.MonkeyPatch, worked: list[Any], version: Any) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    start.main()
    args, _, argv = worked
    recognize = sys.modules["_agenteval_agentside.frameworks"].recognize_object
    assert args == ("bot.py:agent", "/suite", "bot.py:deps", recognize, {"runs_others": True})
    assert argv == ["start.py"]
    package: Any = sys.modules["_agenteval_agentside"]
    assert package.__name__ == "_agenteval_agentside"
    assert package.__path__ == [FOLDER]


@pytest.mark.parametrize(
    ("first", "stays"),
    [(FOLDER, False), (os.path.join(FOLDER, "targets", ".."), False), ("", True), ("/elsewhere", True)],
)
def test_its_own_folder_is_not_imported_from(
    monkeypatch: pytest.MonkeyPatch, worked: list[Any], first: str, stays: bool
) -> None:
    monkeypatch.setattr(sys, "path", [first, "/other"])
    start.main()
    assert worked[1] == ([first, "/other"] if stays else ["/other"])


def test_no_path_at_all(monkeypatch: pytest.MonkeyPatch, worked: list[Any]) -> None:
    monkeypatch.setattr(sys, "path", [])
    start.main()
    assert worked[1] == []
