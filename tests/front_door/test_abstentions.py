"""Criteria whose condition never arose, and what is not clear: no verdicts, and no judges that failed."""

from __future__ import annotations

import json
from typing import Any

from tests.support.kit import Project

AGENT = "def agent(messages, ctx):\n    return f'Booked, in epoch {ctx.epoch}.'\n"
BEFORE, POLITE = "Confirms the date before it cancels.", "Stays polite."


def suite(project: Project, scenarios: list[dict[str, Any]], *rules: tuple[dict[str, Any], str]) -> None:
    project.agent(AGENT)
    project.config("models: {default: scripted/replies.yaml}\nmetrics: []\n")
    replies: list[dict[str, Any]] = [
        {
            "when": {"role": "judge", **when},
            "reply": {"evidence": "Booked, in epoch", "reason": "so it is", "label": label},
        }
        for when, label in rules
    ]
    replies.append({"when": {"role": "dedup"}, "reply": {"issues": []}})
    project.write("replies.yaml", json.dumps({"replies": replies}))
    project.scenarios(json.dumps({"scenarios": [{"turns": ["hi"], **each} for each in scenarios]}))


def verdicts(project: Project) -> dict[str, str]:
    return {s["id"]: s["verdict"] for s in project.results()["scenarios"]}


def test_a_criterion_that_did_not_arise_holds_is_marked_and_decides_nothing(project: Project) -> None:
    says = {"output": {"contains": ["Booked"]}}
    suite(
        project,
        [
            {"id": "alone", "expect": {"criteria": [BEFORE]}},
            {"id": "beside", "expect": {"criteria": [BEFORE], **says}},
            {"id": "turn", "turns": [{"user": "hi", "expect": {"criteria": [BEFORE]}}], "expect": says},
            {"id": "once", "epochs": 2, "expect": {"criteria": [BEFORE]}},
            {"id": "failed", "expect": {"criteria": [BEFORE]}},
        ],
        ({"scenario": "once", "text": "epoch 1"}, "pass"),
        ({"scenario": "failed"}, "fail"),
        ({"metric": "criteria"}, "did not arise"),
    )
    done = project.run()
    assert done.code == 1, done.all
    told = (
        ("alone", "inconclusive"),
        ("beside", "passed"),
        ("turn", "passed"),
        ("once", "passed"),
        ("failed", "failed"),
    )
    assert verdicts(project) == dict(told)
    found = {s["id"]: s["samples"] for s in project.results()["scenarios"]}
    (check,) = (c for c in found["beside"][0]["checks"] if c["name"] == "criteria")
    assert (check["passed"], check["arose"]) == (True, False)
    assert check["detail"].startswith(f"{BEFORE} — did not arise: so it is")
    assert all("arose" not in c for c in found["once"][1]["checks"])
    (row,) = (g for g in project.results()["summary"]["gates"] if g["name"] == "something decides")
    assert (row["scenario"], row["verdict"]) == ("alone", "inconclusive")
    assert BEFORE in row["basis"]
    never = {aside["kind"]: aside for aside in project.results()["summary"]["caveats"]}["never_arose"]
    assert never["count"] == 3
    assert f"3 criteria that did not arise in any conversation: “{BEFORE}”" in done.out.splitlines()[-1]
    assert any(BEFORE in text for text in project.results()["summary"]["ungated"])
    assert project.run("-s", "beside", "-s", "once").code == 0


def test_a_criterion_that_is_not_clear_is_told_as_such_and_no_judge_broke(project: Project) -> None:
    suite(
        project,
        [{"id": "a", "expect": {"criteria": [POLITE]}}, {"id": "broken", "expect": {"criteria": [POLITE]}}],
        ({"scenario": "a"}, "not clear"),
        ({"scenario": "broken"}, "rather so"),
    )
    outputs = [f"{name}={name}.out" for name in ("markdown", "junit", "github")]
    done = project.run("-s", "a", *(part for out in outputs for part in ("--report", out)))
    assert done.code == 3
    sample = project.sample()
    assert (sample["verdict"], sample["fault"], sample["score_failures"]) == ("inconclusive", "undecided", [])
    told = [done.all, *((project.root / out.split("=")[1]).read_text("utf-8") for out in outputs)]
    for text in told:
        assert "broke" not in text
        assert "not clear" in text
    assert project.run("-s", "broken").code == 3
    assert project.sample()["fault"] == "judge"
