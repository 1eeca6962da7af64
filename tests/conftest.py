from pathlib import Path

import pytest
from kit import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
