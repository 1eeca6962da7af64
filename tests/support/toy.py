"""The framework for tests, as a package of its own brings it: with an entry point for its adapter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.kit import Project

_CODE = Path(__file__).with_name("toy_framework.py").read_text(encoding="utf-8")

TOY_TOOLS = """
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
import toy
from toy import Agent

def get_order(id):
    "Look an order up."
    toy.mark("get_order", id)
    return {"status": "real"}

def cancel_order(id):
    "Cancel an order."
    toy.mark("cancel_order", id)
    return {"cancelled": "really"}
"""
"""Code of tools that must not run: they leave marks."""

PLACES = [
    pytest.param("", id="here"),
    pytest.param(
        f", interpreter: '{sys.executable}'",
        id="interpreter",
        marks=pytest.mark.skipif(sys.platform == "win32", reason="process groups"),
    ),
]
"""What a configuration adds to an agent: nothing, or an interpreter of its own."""


def install_toy(project: Project) -> None:
    project.write("toy.py", _CODE)
    project.write("toy-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\nVersion: 1\n")
    project.write("toy-1.dist-info/entry_points.txt", "[agenteval.frameworks]\ntoy = toy:FRAMEWORK\n")
