"""Metrics of a user's own and the printed prompts, through the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.kit import Project
from tests.support.scripted import by_id, judge, script, verdicts

NAMES = (
    "helpfulness", "coherence", "relevance", "faithfulness", "verbosity", "goal_completion",
    "agent_behavior_failure", "tool_call_behavior_failure",
    "criteria", "error_deduplication", "simulated_user",
)  # fmt: skip
BEHAVIOUR = (
    "no failure", "repetition", "failure to ask for clarification", "lack of specific information",
    "disobey user request", "false information", "false claim of action", "unsafe action", "unsafe state",
)  # fmt: skip
TOOLS = (
    "no failure", "unnecessary tool call", "wrong tool", "wrong arguments", "ignored tool result",
    "wrong order", "missing tool call", "repeated tool call",
)  # fmt: skip
AGENT = """
async def agent(messages, ctx):
    text = messages[-1]["content"]
    if text == "use":
        await ctx.call_tool("find", {"query": "lamp"})
    return "reply to " + text
"""
METRICS = """
import asyncio
import json

from pydantic import BaseModel

from agenteval import (
    ConversationMetric, QualitativeMetric, QualResult, QuantitativeMetric, QuantResult, ScoreInput,
)


class Grade(BaseModel):
    score: int
    reason: str


class Tone(QuantitativeMetric):
    name = "tone"

    async def score(self, input: ScoreInput) -> QuantResult:
        await asyncio.sleep(0)
        if input.user_message == "raise":
            raise RuntimeError("tone went wrong")
        odd = {"off": QuantResult(7.0, ""), "nan": QuantResult(float("nan"), ""), "text": "fine",
               "nothing": None, "unsure": QuantResult(None, "cannot tell")}
        if input.user_message in odd:
            return odd[input.user_message]
        return QuantResult(2.0 if "rude" in input.agent_message else 4.5, "as it sounds")


class Politics(QualitativeMetric):
    name = "politics"
    labels = {"neutral": "ok", "partisan": "high", "hateful": "critical"}

    def evaluate(self, input: ScoreInput) -> QualResult:
        for label in ("partisan", "hateful", "unheard of"):
            if label in input.agent_message:
                return QualResult(label, "it says so", input.agent_message)
        return QualResult("neutral", "")


class Effort(ConversationMetric):
    name = "effort"
    scale = (0, 10)

    def score(self, input: ScoreInput) -> QuantResult:
        seen = {
            "goal": input.goal, "profile": input.profile, "knowledge": [str(k) for k in input.knowledge],
            "user": input.user_message, "agent": input.agent_message, "turn": input.turn_index,
            "calls": [[c.name, dict(c.args)] for c in input.tool_calls],
            "history": [[t.user_message, t.agent_message] for t in input.history],
        }
        return QuantResult(10 - input.turn_index, json.dumps(seen))


class Asked(QuantitativeMetric):
    name = "asked"

    async def score(self, input: ScoreInput) -> QuantResult:
        grade = await self.llm.generate_object(
            system="Grade.", prompt=f"{input.user_message} -> {input.agent_message}", schema=Grade
        )
        return QuantResult(grade.score, grade.reason)


class Helpfulness(QuantitativeMetric):
    name = "helpfulness"

    def score(self, input: ScoreInput) -> QuantResult:
        return QuantResult(5, "")


class Unfinished(QuantitativeMetric):
    name = "unfinished"


class Unknown(QualitativeMetric):
    name = "unknown severity"
    labels = {"a": "ok", "b": "terrible"}

    def evaluate(self, input: ScoreInput) -> QualResult:
        return QualResult("a", "")


class NoMetric:
    pass
"""
CLARITY = """
---
metric: clarity
scope: conversation
scale: [1, 5]
---
Is it clear to the customer what happens next?
"""
BRAND = """
---
metric: brand voice
labels: {on brand: ok, off brand: medium, rude: critical}
---
Does the answer sound like our shop?
"""


def graded(metric: str, text: str = "", **reply: Any) -> dict[str, Any]:
    return judge({"evidence": "reply to", **reply}, metric=metric, **({"text": text} if text else {}))


def setup(project: Project, custom: str, *scenarios: dict[str, Any], config: str = "", **rules: Any) -> None:
    project.agent(AGENT)
    project.write("metrics.py", METRICS)
    project.write("rubrics/clarity.md", CLARITY)
    project.write("rubrics/brand.md", BRAND)
    script(
        project,
        graded("brand voice", "rude", label="rude"),
        graded("brand voice", "stiff", label="off brand"),
        graded("brand voice", "odd", label="lovely"),
        graded("brand voice", label="on brand"),
        graded("clarity", "murky", score=2),
        graded("clarity", "beyond", score=6),
        graded("clarity", score=4.5),
        graded("asked", "rude", score=1),
        graded("asked", score=4),
    )
    project.config(f"models: {{default: scripted/replies.yaml}}\ncustom_metrics: [{custom}]\n" + config)
    project.scenarios(json.dumps({"scenarios": [{"name": s["id"], **s} for s in scenarios]}))


def talk(name: str, *turns: str, **more: Any) -> dict[str, Any]:
    messages = list(turns) or [name]
    return {"id": name, "turns": messages, "expect": {"output": {"contains": ["reply"]}}, **more}


# ── rubric files ─────────────────────────────────────────────────────────────────────────────────


def test_rubric_files_score_label_and_gate(project: Project) -> None:
    setup(
        project,
        "rubrics/clarity.md, rubrics/brand.md",
        *(talk(name, "fine", name) for name in ("good", "murky", "stiff", "rude", "odd", "beyond")),
        config="metrics: [clarity, brand voice]\nthresholds: {clarity: 4, brand voice: 0.5}\n",
    )
    done = project.run()
    assert done.code == 1, done.all
    assert verdicts(project) == {
        "good": "passed",
        "murky": "failed",  # 2, below 4
        "stiff": "passed",  # half of the turns, and medium
        "rude": "failed",  # critical, by the label's own severity
        "odd": "inconclusive",  # a label that there is not
        "beyond": "inconclusive",  # 6 of 5, and nothing else to go by
    }
    found = by_id(project)
    assert {v["name"] for v in found["murky"]["violations"]} == {"thresholds.clarity"}
    assert {v["name"] for v in found["rude"]["violations"]} == {"fail_on_severity"}
    assert found["good"]["aggregates"]["clarity"]["value"] == 4.5
    assert found["good"]["aggregates"]["brand voice"]["value"] == 1.0
    assert found["stiff"]["aggregates"]["brand voice"]["value"] == 0.5
    (finding,) = found["stiff"]["samples"][0]["findings"]
    assert (finding["metric"], finding["label"]) == ("brand voice", "off brand")
    assert (finding["severity"], finding["turn"]) == ("medium", 1)
    sample = found["good"]["samples"][0]
    assert list(sample["scores"]) == ["clarity"]
    assert [list(turn["scores"]) for turn in sample["turns"]] == [["brand voice"]] * 2
    critical = "metrics: [brand voice]\nseverities: {off brand: critical}\n"
    setup(project, "rubrics/brand.md", talk("stiff"), config=critical)
    assert project.run().code == 1


# ── Python classes ───────────────────────────────────────────────────────────────────────────────

CLASSES = "'metrics.py:Tone', 'metrics:Politics', 'metrics.py:Effort', 'metrics.py:Asked'"
ALL_FOUR = "metrics: [tone, politics, effort, asked]\n"


def test_python_classes_score_label_and_gate(project: Project) -> None:
    known = {"goal": "A lamp.", "profile": "Gardener.", "knowledge": ["Open at nine."]}
    setup(
        project,
        CLASSES,
        talk("good", "hi", "use", **known, tools={"find": {"returns": {"id": 7}}}),
        talk("rude", "rude", "hi"),
        talk("partisan"),
        talk("hateful"),
        talk("long", *map(str, range(7))),
        config=ALL_FOUR + "thresholds: {tone: 4, effort: 5, asked: 2.5, politics: 0.5}\n",
    )
    done = project.run()
    assert done.code == 1, done.all
    found = by_id(project)
    violated = {name: {v["name"] for v in s["violations"]} for name, s in found.items()}
    assert violated == {
        "good": set(),
        "rude": {"thresholds.tone"},  # (2 + 4.5) / 2; the judge gives (1 + 4) / 2, just enough
        "partisan": {"thresholds.politics"},
        "hateful": {"thresholds.politics", "fail_on_severity"},
        "long": {"thresholds.effort"},
    }
    assert found["rude"]["aggregates"]["asked"]["value"] == 2.5
    (sample,) = found["good"]["samples"]
    assert json.loads(sample["scores"]["effort"]["reason"]) == {
        **known, "user": "use", "agent": "reply to use", "turn": 1, "calls": [["find", {"query": "lamp"}]],
        "history": [["hi", "reply to hi"]],
    }  # fmt: skip
    assert sample["turns"][0]["scores"]["asked"]["scripted"] is True
    assert sample["turns"][0]["scores"]["tone"]["scripted"] is False
    turns = sum(len(s["samples"][0]["turns"]) for s in found.values())
    assert project.results()["summary"]["usage"]["judge"]["calls"] == turns, "one for each `asked`"
    (finding,) = found["partisan"]["samples"][0]["findings"]
    assert (finding["label"], finding["severity"]) == ("partisan", "high")
    assert finding["evidence"] == "reply to partisan"


def test_classes_that_break_are_failures_to_score(project: Project) -> None:
    wrong = ("raise", "off", "nan", "text", "nothing", "unsure")
    setup(
        project,
        CLASSES,
        *(talk(name) for name in wrong),
        talk("gated", "raise", thresholds={"tone": 2}),
        talk("label", "unheard of"),
        talk("good"),
        config="metrics: [tone, politics]\n",
    )
    done = project.run()
    assert done.code == 3, done.all
    open_ = dict.fromkeys(("gated", "label"), "inconclusive")
    assert verdicts(project) == {**dict.fromkeys((*wrong, "good"), "passed"), **open_}
    for scenario in project.results()["scenarios"][:7]:
        (turn,) = scenario["samples"][0]["turns"]
        assert "tone" not in turn["scores"], scenario["id"]
        assert [f["metric"] for f in turn["score_failures"]] == ["tone"], scenario["id"]
    first = project.results()["scenarios"][0]["samples"][0]["turns"][0]["score_failures"]
    assert "tone went wrong" in json.dumps(first)
    assert "tone went wrong" in done.out


def test_all_means_custom_metrics_too_and_a_metric_in_code_needs_no_model(project: Project) -> None:
    setup(project, CLASSES, talk("good"), config="metrics: [tone, effort]\n")
    text = (project.root / "agenteval.yaml").read_text("utf-8")
    project.write("agenteval.yaml", text.replace("models: {default: scripted/replies.yaml}\n", ""))
    assert project.run().code == 0, "nothing here asks a model"
    setup(project, CLASSES + ", rubrics/brand.md", talk("good"))
    done = project.run("--metric", "tone", "--metric", "brand voice")
    assert done.code == 0, done.all
    assert set(project.sample()["turns"][0]["scores"]) == {"tone", "brand voice"}


RUBRICS = {
    "collides": ("metric: coherence\nlabels: {a: ok, b: low}", ["coherence"]),
    "no-scale": ("metric: x", ["scale", "labels"]),
    "both": ("metric: x\nscale: [1, 5]\nlabels: {a: ok, b: low}", ["scale", "labels"]),
    "severity": ("metric: x\nlabels: {a: ok, b: terrible}", ["terrible", "medium"]),
    "backwards": ("metric: x\nscale: [5, 1]", ["scale"]),
    "key": ("metric: x\nscal: [1, 5]", ["'scal'", "'scale'"]),
    "scope": ("metric: x\nscope: sentence\nscale: [1, 5]", ["scope", "sentence", "conversation"]),
}
"""The head of a rubric's file, and what its refusal names."""
CLASS_OR_FILE = {
    "rubrics/brand.md, rubrics/twice.md": ["brand voice", "agenteval.yaml:3"],
    "rubrics/nowhere.md": ["nowhere.md"],
    "'metrics.py:Helpfulness'": ["helpfulness", "agenteval.yaml:3"],
    "'metrics.py:Unfinished'": ["Unfinished", "score"],
    "'metrics.py:Unknown'": ["terrible", "Unknown"],
    "'metrics.py:NoMetric'": ["NoMetric", "QuantitativeMetric"],
    "'metrics.py:Tune'": ["Tune", "Tone"],
    "'nowhere:Tone'": ["nowhere"],
}


@pytest.mark.parametrize(
    ("custom", "facts"),
    [
        *((f"rubrics/{name}.md", [f"{name}.md", *facts]) for name, (_, facts) in RUBRICS.items()),
        *CLASS_OR_FILE.items(),
    ],
)
def test_a_custom_metric_that_cannot_be_is_the_authors_mistake(
    project: Project, custom: str, facts: list[str]
) -> None:
    setup(project, custom, talk("s"))
    project.write("rubrics/twice.md", BRAND)
    for name, (head, _) in RUBRICS.items():
        project.write(f"rubrics/{name}.md", f"---\n{head}\n---\nHm?\n")
    done = project.call("validate")
    assert done.code == 2, done.all
    assert [fact for fact in facts if fact not in done.all] == [], done.all


def test_thresholds_on_custom_metrics_are_checked_like_any_other(project: Project) -> None:
    setup(project, CLASSES, talk("s"), config="thresholds: {tune: 3, effort: 11, politics: 1.2}\n")
    done = project.run()
    for column, *facts in ((14, "tune", "tone"), (23, "effort", "11"), (35, "politics", "1.2")):
        done.refuses(f"agenteval.yaml:4:{column}", *map(str, facts))


# ── show-prompts ─────────────────────────────────────────────────────────────────────────────────


def test_every_prompt_is_shown_without_a_configuration(project: Project) -> None:
    whole = project.call("show-prompts")
    assert whole.code == 0, whole.err
    alone = ("helpfulness", "error_deduplication", "simulated_user")
    parts = {name: project.call("show-prompts", "--metric", name).out for name in alone}
    for text in parts.values():
        assert text.strip() in whole.out
        assert "${" in text, "placeholders are named"
    assert [name for name in NAMES if name not in whole.out] == []
    rule = whole.out.splitlines()[0]

    def prompt(name: str) -> str:
        return whole.out[whole.out.index(f"metric: {name}") :].partition(rule)[0]

    for name, labels in (("agent_behavior_failure", BEHAVIOUR), ("tool_call_behavior_failure", TOOLS)):
        text = prompt(name)
        schema = json.loads(text[text.index("JSON Schema") :].partition("\n")[2])
        enum = schema["properties"]["label"]["enum"]
        assert set(labels) < set(enum), name
        assert len(enum) == len(labels) + 1, "and that there is not enough to judge"
        assert all(f"- {label}: " in text for label in labels), name
    for name in NAMES[:5]:
        assert all(f"- {score}: " in prompt(name) for score in range(1, 6)), name
    outcomes = ("reached", "missed", "ruled out", "withdrawn", "policy broken")
    assert all(f"- {word}: " in prompt("goal_completion") for word in outcomes)
    assert all(f"- {word}: " in whole.out for word in ("pass", "fail", "did not arise", "not clear"))
    for word in ("low", "medium", "high", "critical"):
        assert f"- {word}: " in parts["error_deduplication"]
    assert '"done"' in parts["simulated_user"]


def test_a_typo_in_the_name_of_a_prompt_gets_a_suggestion(project: Project) -> None:
    done = project.call("show-prompts", "--metric", "helpfullness")
    assert (done.code, "'helpfulness'" in done.err) == (2, True), done.err
    nothing = project.call("show-prompts", "--metric", "xyz")
    assert (nothing.code, nothing.out) == (2, "")
    assert "error_deduplication" in nothing.err
