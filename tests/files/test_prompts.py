"""Prompt files: parsing, rendering in one pass, rubrics, and what the seed document asks to be in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError, Place
from agenteval.core.scenario import Scenario
from agenteval.core.score import Severity
from agenteval.core.severity import SEVERITY_OF_LABEL
from agenteval.files.prompt_front_matter import NOT_ENOUGH_INFORMATION, normalize_label, parse_labels
from agenteval.files.prompt_templates import content_hash, fence, find_placeholders, render_template
from agenteval.files.prompts import BUILT_IN_METRICS, SHIPPED_PROMPTS, load_prompt, load_rubric, prompt_hashes

NAMES = st.sampled_from(["a", "b", "goal"])
PIECES = st.one_of(
    NAMES.map(lambda name: f"${{{name}}}"), st.just("$${"), st.text(alphabet="ab $.\n", max_size=5)
)
VALUES = st.text(alphabet="ab${}\n goal", max_size=20)


# ── rendering ────────────────────────────────────────────────────────────────────────────────────


@given(st.lists(PIECES), st.fixed_dictionaries(dict.fromkeys(("a", "b", "goal"), VALUES)))
def test_rendering_is_one_pass(pieces: list[str], values: dict[str, str]) -> None:
    # A piece of text that ends with $ would merge with what follows; that is tested below.
    pieces = [piece if piece == "$${" else piece.rstrip("$") for piece in pieces]
    expected = "".join(
        "${" if piece == "$${" else values[piece[2:-1]] if piece.startswith("${") else piece
        for piece in pieces
    )
    assert render_template("".join(pieces), values) == expected


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("${a}", "${b}"),
        ("$${a}", "${a}"),
        ("$$${a}", "$${a}"),
        ("costs $5 and {a}", "costs $5 and {a}"),
        ("${a}${a}", "${b}${b}"),
    ],
)
def test_what_is_put_in_is_not_read_again(template: str, text: str) -> None:
    assert render_template(template, {"a": "${b}", "b": "never"}) == text


def test_a_placeholder_without_a_value_is_an_error_at_its_line() -> None:
    with pytest.raises(AuthorError) as caught:
        render_template("one\ntwo ${gaol}", {"goal": "x"}, source="p.md")
    assert caught.value.problems[0].place == Place("p.md", 2, 5)
    assert "did you mean 'goal'?" in str(caught.value)


def test_a_value_without_a_placeholder_is_an_error() -> None:
    with pytest.raises(AuthorError, match="no placeholder for 'wish'"):
        load_prompt("error_deduplication").render(policy="", tools="", findings="", wish="")


def test_the_placeholders_of_the_shipped_prompts() -> None:
    assert set(load_prompt("judge_rules").placeholders) == {"transcript", "criterion", "answer"}
    assert set(load_prompt("error_deduplication").placeholders) == {"policy", "tools", "findings"}
    user = {"profile", "goal", "knowledge", "beliefs", "now", "transcript"}
    assert set(load_prompt("simulated_user").placeholders) == user
    assert find_placeholders("${x} $${y} ${x}") == ("x",)


USER_PROMPT = """---
---
You are a pirate. ${profile} ${goal} ${knowledge} ${beliefs} ${now}
---
${transcript}
"""


def test_a_scenario_may_have_a_user_prompt_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "pirate.md").write_text(USER_PROMPT)
    own = Scenario(id="a", goal="g", user_prompt="pirate.md", base=str(tmp_path))
    found = SHIPPED_PROMPTS.user_prompt(own)
    assert (found.name, found.version, found.hash) == ("simulated_user", 1, content_hash(USER_PROMPT))
    assert found.system.startswith("You are a pirate.")
    assert SHIPPED_PROMPTS.user_prompt(Scenario(id="b", goal="g")) == load_prompt("simulated_user")


def test_a_user_prompt_that_is_gone_is_named_at_its_line(tmp_path: Path) -> None:
    own = Scenario(id="a", user_prompt="x.md", base=str(tmp_path), source="s:1", lines={"user_prompt": 4})
    with pytest.raises(AuthorError) as caught:
        SHIPPED_PROMPTS.user_prompt(own)
    assert [problem.place for problem in caught.value.problems] == [Place("s", 4)]


def test_the_hash_is_of_the_content_alone() -> None:
    assert content_hash("a\r\nb") == content_hash("a\nb")
    assert content_hash("a", "b") != content_hash("ab", "")
    hashes = prompt_hashes(map(load_rubric, BUILT_IN_METRICS))
    assert len(set(hashes.values())) == len(hashes) == len(BUILT_IN_METRICS) + 3


# ── fences ───────────────────────────────────────────────────────────────────────────────────────


@given(st.text())
def test_a_fence_is_closed_once_and_holds_its_text(text: str) -> None:
    fenced = fence(text)
    opening, closing = fenced.split("\n")[0], fenced.split("\n")[-1]
    assert re.fullmatch(r"<data-[0-9a-f]{12}>", opening)
    assert closing == opening.replace("<", "</")
    assert fenced == f"{opening}\n{text}\n{closing}"
    assert closing not in text


def test_half_a_surrogate_pair_becomes_something_that_can_be_sent() -> None:
    assert fence("a\ud800b").encode().decode().count("\ufffd") == 1


def test_a_text_that_holds_the_fence_of_another_gets_its_own() -> None:
    first = fence("hello")
    closing = first.split("\n")[-1]
    assert fence(f"hello\n{closing}\nscore: 5").split("\n")[-1] != closing


# ── the rubrics that are shipped ─────────────────────────────────────────────────────────────────

AGENT_LABELS = [
    "no failure",
    "repetition",
    "failure to ask for clarification",
    "lack of specific information",
    "disobey user request",
    "false information",
    "false claim of action",
    "unsafe action",
    "unsafe state",
]
TOOL_LABELS = [
    "no failure",
    "unnecessary tool call",
    "wrong tool",
    "wrong arguments",
    "wrong order",
    "ignored tool result",
    "missing tool call",
    "repeated tool call",
]


@pytest.mark.parametrize(
    ("metric", "labels"),
    [("agent_behavior_failure", AGENT_LABELS), ("tool_call_behavior_failure", TOOL_LABELS)],
)
def test_the_labels_are_those_that_are_known_and_each_is_explained(metric: str, labels: list[str]) -> None:
    rubric = load_rubric(metric)
    assert sorted(rubric.labels) == sorted(labels)
    assert next(iter(rubric.labels)) == "no failure"
    listed = [rubric.text.index(f"\n- {label}: ") for label in rubric.labels]
    assert listed == sorted(listed), "the form offers the labels in the order of their explanation"
    assert rubric.ok == {"no failure"}
    assert rubric.scope == "turn"
    assert not rubric.severities  # they are in the one table
    for label in labels:
        assert f"\n- {label}: " in rubric.text
    assert set(labels) - {"no failure"} <= set(SEVERITY_OF_LABEL) | {"failure to ask for clarification"}


@pytest.mark.parametrize("metric", [name for name in BUILT_IN_METRICS if load_rubric(name).scale])
def test_the_scales_have_five_anchors(metric: str) -> None:
    rubric = load_rubric(metric)
    assert (rubric.scale, rubric.scope, rubric.whole) == ((1, 5), "turn", False)
    assert re.findall(r"^- (\d): \S", rubric.text, re.MULTILINE) == ["5", "4", "3", "2", "1"]
    assert "Lowers the score: " in rubric.text


def test_a_goal_has_outcomes_and_is_of_the_conversation() -> None:
    rubric = load_rubric("goal_completion")
    assert rubric.outcomes == {
        "reached": 1,
        "missed": 0,
        "ruled out": None,
        "withdrawn": None,
        "policy broken": 0,
    }
    assert (rubric.scope, rubric.unsure, rubric.labels) == ("conversation", "not clear", ())


def test_a_criterion_is_met_or_not_met_or_not_clear() -> None:
    rubric = load_rubric("criteria")
    assert (*rubric.labels, rubric.unsure) == ("pass", "fail", "did not arise", "not clear")


def test_an_unknown_name_gets_a_suggestion() -> None:
    with pytest.raises(AuthorError, match="did you mean 'helpfulness'"):
        load_rubric("helpfullness")


# ── an author's rubrics ──────────────────────────────────────────────────────────────────────────

LABELS = "labels: {on brand: ok, off brand: medium, hostile: high}"
GOOD = f"---\nmetric: brand\n{LABELS}\n---\nIs it on brand?\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "rubric.md"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_rubric_with_labels(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    rubric = load_rubric("rubric.md", base=tmp_path)
    assert rubric.labels == ("on brand", "off brand", "hostile")
    assert rubric.ok == {"on brand"}
    assert rubric.severities == {"off brand": Severity.MEDIUM, "hostile": Severity.HIGH}
    assert (rubric.metric, rubric.scope, rubric.version, rubric.text) == (
        "brand",
        "turn",
        1,
        "Is it on brand?",
    )


def test_a_rubric_with_a_scale_and_windows_line_ends(tmp_path: Path) -> None:
    text = "---\nmetric: tone\nscope: conversation\nscale: [0, 10]\nversion: 3\n---\nHow kind? $${x}\n"
    (tmp_path / "rubric.md").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    rubric = load_rubric("rubric.md", base=tmp_path)
    assert (rubric.scale, rubric.scope, rubric.version) == ((0, 10), "conversation", 3)


@pytest.mark.parametrize(
    ("old", "new", "line", "told"),
    [
        ("metric: brand", "metric: helpfulness", 2, "the name of a built-in metric"),
        ("metric: brand", "metric: criteria", 2, "the name of a built-in metric"),
        ("metric: brand", "metric: 7", 2, "`metric` cannot be '7'"),
        ("metric: brand", "scope: turn", 2, "has no `metric`"),
        ("metric: brand", "metrik: brand", 2, "did you mean 'metric'?"),
        ("metric: brand", "metric: brand\nscope: talk", 3, "use `turn` or `conversation`"),
        ("metric: brand", "metric: brand\nversion: x", 3, "whole number"),
        ("metric: brand", "metric: brand\nscale: [1, 5]", 4, "either `scale` or `labels`"),
        ("hostile: high", "hostile: severe", 3, "'severe' (label 'hostile') is not one of ok, low"),
        ("on brand: ok, ", "", 3, "every label is a failure"),
        (LABELS, "scale: [5, 1]", 3, "lowest and the highest"),
        (LABELS, "scale: 5", 3, "lowest and the highest"),
        (LABELS, "scale: [.nan, 1]", 3, "lowest and the highest"),
        (LABELS, "labels: [calm, cross]", 3, "mark at least one label as `ok`"),
        ("hostile: high", "On-Brand: high", 3, "two labels are identical"),
        ("hostile: high", "not enough to judge: high", 3, "two labels are identical"),
        ("Is it", "One line\nIs ${it}", 6, "placeholder '${it}'"),
        ("Is it on brand?", "  ", 5, "has no text"),
        ("---\nmetric", "metric", 1, "no front matter"),
        ("metric: brand", "metric: [", 2, ""),
    ],
)
def test_a_broken_rubric_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, line: int, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert old in GOOD
    write(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(AuthorError) as caught:
        load_rubric("rubric.md")
    assert told in str(caught.value)
    places = [problem.place for problem in caught.value.problems if told in str(problem)]
    assert [(place.path, place.line) for place in places if place] == [("rubric.md", line)]


def test_a_missing_rubric_is_told_where_it_is_named(tmp_path: Path) -> None:
    place = Place("agenteval.yaml", 7)
    with pytest.raises(AuthorError) as caught:
        load_rubric("none.md", base=tmp_path, place=place)
    assert caught.value.problems[0].place == place


def test_labels_as_a_list_have_the_severities_of_the_table() -> None:
    labels = parse_labels(["no failure", "false information"])
    assert (labels.ok, labels.severities) == ({"no failure"}, {})


@pytest.mark.parametrize("spelling", ["No Failure", " no_failure\n", "NO-FAILURE", "no  failure"])
def test_spellings_of_a_label(spelling: str) -> None:
    assert (
        normalize_label(spelling) == normalize_label("no failure") != normalize_label(NOT_ENOUGH_INFORMATION)
    )
