"""``agenteval show-prompts``: one prompt or all, each with its head and its placeholders."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.cli.commands.show_prompts import _PARTS, render_prompts, show_prompts, template_of
from agenteval.core.errors import AuthorError
from agenteval.files.prompts import BUILT_IN_METRICS, CRITERIA, FAULT_RESPONSE, SHIPPED_PROMPTS, USER_REVIEW
from agenteval.scoring.metrics import REVIEW

JUDGES = (*BUILT_IN_METRICS, CRITERIA, FAULT_RESPONSE)
NAMES = (*JUDGES, REVIEW, "error_deduplication", "simulated_user", USER_REVIEW, *_PARTS)
RULE = "─" * 100


def titles(text: str) -> list[str]:
    lines = text.splitlines()
    return [lines[at + 1] for at, line in enumerate(lines) if line == RULE]


def head(text: str) -> dict[str, str]:
    lines = text.splitlines()[2:]
    return dict(line.split(": ", 1) for line in lines[: lines.index("")])


def test_all_prompts_in_their_order() -> None:
    found = titles(render_prompts(None))
    judged = {*JUDGES, REVIEW, USER_REVIEW}
    assert found == [f"{'metric' if name in judged else 'prompt'}: {name}" for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_one_prompt(name: str) -> None:
    text = render_prompts(name)
    assert len(titles(text)) == 1
    assert text in render_prompts(None)
    keys = head(text)
    assert keys["version"].isdigit()
    assert keys["hash"]
    assert "overridden" not in keys
    is_part = name in _PARTS
    assert ("reply (JSON Schema)" in text) is not is_part
    assert ("part of a prompt" in text) is is_part
    assert keys.get("stands") == _PARTS.get(name)


@pytest.mark.parametrize(
    ("name", "role"), [("error_deduplication", "dedup"), ("simulated_user", "user"), (USER_REVIEW, "judge")]
)
def test_the_model_that_gets_it(name: str, role: str) -> None:
    assert head(render_prompts(name))["role"] == role


@pytest.mark.parametrize("name", JUDGES)
def test_judges_have_a_scope_and_a_transcript(name: str) -> None:
    rubric = SHIPPED_PROMPTS.rubric(name)
    keys = head(render_prompts(name))
    scope = "turn or conversation" if name == CRITERIA else rubric.scope
    assert (keys["role"], keys["scope"], keys["hash"]) == ("judge", scope, rubric.hash)
    request = template_of(rubric)
    assert request.role == "judge"
    assert "${transcript}" in f"{request.system}{request.prompt}"


def test_an_unknown_prompt() -> None:
    with pytest.raises(AuthorError) as error:
        render_prompts("helpfulnes")
    assert "'helpfulnes'" in str(error.value)
    assert "helpfulness" in str(error.value)


RUBRIC = """\
---
metric: politeness
scope: turn
scale: [1, 5]
version: 3
---
Is it polite?
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "politeness.md").write_text(RUBRIC)
    return tmp_path


def test_prompts_of_the_project(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AuthorError):
        show_prompts("politeness")
    (root / "agenteval.yaml").write_text("custom_metrics: [politeness.md, 'gone.py:Metric']\n")
    assert show_prompts("politeness") == 0
    text = capsys.readouterr().out
    assert head(text)["version"] == "3"
    assert "Is it polite?" in text
    assert show_prompts(None) == 0
    assert titles(capsys.readouterr().out)[-1] == "metric: politeness"


def test_of_a_broken_project_the_shipped_ones_are_shown(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "agenteval.yaml").write_text("metrics: [\n")
    for name in (None, "helpfulness", next(iter(_PARTS))):
        assert show_prompts(name) == 0
        said = capsys.readouterr()
        assert titles(said.out)
        assert "agenteval.yaml" in said.err
    for name, config in (("politeness", None), (None, "agenteval.yaml"), ("helpfulness", "agenteval.yaml")):
        with pytest.raises(AuthorError):
            show_prompts(name, config)
