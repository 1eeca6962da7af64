"""The framework for tests, as a package of its own brings it: with an entry point for its adapter."""

from __future__ import annotations

from pathlib import Path

from tests.support.kit import Project

_CODE = Path(__file__).with_name("toy_framework.py").read_text(encoding="utf-8")


def install_toy(project: Project) -> None:
    project.write("toy.py", _CODE)
    project.write("toy-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1\n")
    project.write("toy-1.dist-info/entry_points.txt", "[agenteval.frameworks]\ntoy = toy:FRAMEWORK\n")
