"""Tests of agents of real frameworks, by the command line. ``.ci/frameworks.py`` runs them, each file in an
environment that has its framework; elsewhere they are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.kit import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
