import atexit
import os
import shutil
import sys
import tempfile
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.kit import Project
from tests.support.strict_copies import refuse_unknown_fields

# Two cores and many workers: how long an example takes says nothing of it.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# A fresh process would compile three hundred modules again, each time: five times what its command takes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _show_entry_points() -> None:
    """The importers of this checkout are found by its metadata, and an editable install may be older than
    ``pyproject.toml``. Then what is written there is put before it, also for the commands that tests run."""
    path = Path(__file__).parent.parent / "pyproject.toml"
    declared = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    for group, names in declared["entry-points"].items():
        ours = (each for each in entry_points(group=group) if each.value.startswith("agenteval."))
        if names == {entry.name: entry.value for entry in ours}:
            continue
        folder = Path(tempfile.mkdtemp())
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        info = folder / f"{declared['name']}-0.dist-info"
        info.mkdir()
        lines = (f"{name} = {value}\n" for name, value in names.items())
        (info / "entry_points.txt").write_text(f"[{group}]\n{''.join(lines)}", encoding="utf-8")
        (info / "METADATA").write_text(f"Name: {declared['name']}\nVersion: 0\n", encoding="utf-8")
        sys.path.insert(0, str(folder))
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))


_show_entry_points()
refuse_unknown_fields()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
