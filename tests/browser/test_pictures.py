"""The pictures of README and docs, taken from the page of the shipped suite's first agent.

``make pictures`` takes them anew, with ``TESTS_WRITE_PICTURES=1``."""

from __future__ import annotations

import os
import shutil
import struct
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.kit import Project

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
PICTURES = {
    "page.png": ("#/", False),
    "conversation.png": ("#/c/two-wishes/1/turn/2?agent=wonderbot-first", False),
    "figures.png": ("#/figures", True),
}
SIZE = (1280, 800)


@pytest.fixture(scope="module")
def first_agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = Project(tmp_path_factory.mktemp("pictures"))
    shutil.copytree(ROOT / "scenarios", project.root / "scenarios")
    shutil.copy(ROOT / "agenteval.yaml", project.root)
    done = project.call("run", "--agent", "wonderbot-first", "--epochs", "3", "--report", "html=page.html")
    assert done.code == 1, done.all
    return project.root / "page.html"


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


@pytest.mark.parametrize("name", PICTURES)
def test_each_picture_can_be_taken_and_stands_in_the_docs(
    page: Page, first_agent: Path, tmp_path: Path, name: str
) -> None:
    hash, dark = PICTURES[name]
    page.open(first_agent, hash=hash, dark=dark)
    page.wait_for("document.documentElement.dataset.ready !== undefined")
    page.frame()
    taken = tmp_path / name
    page.screenshot(taken)
    if os.environ.get("TESTS_WRITE_PICTURES"):
        FOLDER.mkdir(exist_ok=True)
        shutil.copy(taken, FOLDER / name)
    assert size_of(taken.read_bytes()) == SIZE == size_of((FOLDER / name).read_bytes())
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(f"pictures/{name})" in each.read_text(encoding="utf-8") for each in pages)
    assert page.console_errors == []
