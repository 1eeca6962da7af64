import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.kit import Project

# Two cores and many workers: how long an example takes says nothing of it.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# A fresh process would compile three hundred modules again, each time: five times what its command takes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
