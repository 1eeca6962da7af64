"""``prompts:``: a project's own files in place of shipped prompts, through the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.judged_projects import KEY, MODEL, contented
from tests.support.kit import Done, Project
from tests.support.model_servers import ModelServer

HELPFULNESS = """---
metric: helpfulness
scope: turn
scale: [1, 5]
version: 7
---
How much would the owner of the Blue Lamp like this turn?

- 5: very much
- 1: not at all
"""
USER = """---
name: simulated_user
---
You are a pirate. ${profile} ${goal} ${knowledge} ${beliefs} ${now}
Answer with one JSON object: {"message": "…", "done": false, "reason": "…"}
---
${transcript}
"""
RULES = """---
name: judge_rules
---
You are a judge of the Blue Lamp.
---
${transcript}

${criterion}

${answer}
"""
SCENARIOS = [
    {"id": "scripted", "name": "scripted", "turns": ["Hello."], "expect": {"criteria": ["Is polite."]}},
    {
        "id": "simulated",
        "name": "simulated",
        "profile": "Short.",
        "goal": "A lamp.",
        "max_turns": 2,
        "checks": "none",
    },
]
OWN = "{judges/helpfulness.md: my/helpfulness.md}"


def project_with(project: Project, config: str, **files: str) -> None:
    project.agent("def agent(messages):\n    return 'At your service.'\n")
    project.config(config)
    project.scenarios(json.dumps({"scenarios": SCENARIOS}))
    for name, text in files.items():
        project.write(f"my/{name}.md", text)


def models(server: ModelServer) -> str:
    entry = f"{{model: {MODEL}, base_url: '{server.base_url}', api_key_env: MODEL_KEY}}"
    return f"models: {{default: {entry}}}\nmetrics: [helpfulness, coherence]\n"


def asked_of(server: ModelServer) -> list[tuple[str, str]]:
    """The system text and the prompt of each request."""
    return [(a["messages"][0]["content"], a["messages"][1]["content"]) for a in server.asked]


def test_they_are_sent_marked_and_compared(project: Project) -> None:
    with ModelServer(contented()) as server:
        project_with(project, models(server), helpfulness=HELPFULNESS, user=USER, rules=RULES)
        before = project.run(env=KEY)
        assert before.code == 0, before.all
        shipped = project.results()["run"]
        assert shipped["prompts_overridden"] == {}
        assert "prompts overridden" not in before.out
        assert not any("Blue Lamp" in text for pair in asked_of(server) for text in pair)

        server.asked.clear()
        project.config(f"{models(server)}prompts: {OWN}\n")
        one = project.run("--report", "markdown=report.md", env=KEY)
        assert one.code == 0, one.all
        told = "prompts overridden: judges/helpfulness.md (my/helpfulness.md)"
        assert told in one.out
        assert "prompts overridden" in (project.root / "report.md").read_text("utf-8")
        run = project.results()["run"]
        assert run["prompts_overridden"] == {"judges/helpfulness.md": "my/helpfulness.md"}
        changed = {name for name, digest in run["prompts"].items() if digest != shipped["prompts"][name]}
        assert changed == {"helpfulness"}
        lamps = [prompt for _, prompt in asked_of(server) if "Blue Lamp" in prompt]
        assert len(lamps) == 1 + 3 * 2, "one for each turn, and for nothing else"

        second, first = runs_of(project)
        compared = project.call("diff", first, second)
        assert compared.code == 2
        assert "the prompt 'helpfulness' differs" in compared.all

        server.asked.clear()
        own = "prompts: {user/simulated_user.md: my/user.md, judges/rules.md: my/rules.md}"
        project.config(f"{models(server)}{own}\n")
        rules = project.run(env=KEY)
        assert rules.code == 0, rules.all
        systems = {system.partition("\n")[0].partition(".")[0] for system, _ in asked_of(server)}
        assert systems == {"You are a judge of the Blue Lamp", "You are a pirate"}
        run = project.results()["run"]
        changed = {name for name, digest in run["prompts"].items() if digest != shipped["prompts"][name]}
        assert changed == {"helpfulness", "coherence", "criteria", "simulated_user"}


def runs_of(project: Project) -> list[str]:
    """The last first."""
    folders = (project.root / ".agenteval/runs").iterdir()
    return [run.name for run in sorted(folders, key=lambda run: -run.stat().st_mtime_ns)]


def test_a_file_that_says_the_same_is_compared_as_the_same(project: Project) -> None:
    from agenteval.files.prompts import SHIPPED_PROMPTS

    with ModelServer(contented()) as server:
        text = SHIPPED_PROMPTS.read_source("helpfulness")[1].replace("\n", "\r\n")
        project_with(project, models(server), helpfulness=text)
        assert project.run(env=KEY).code == 0
        project.config(f"{models(server)}prompts: {OWN}\n")
        assert project.run(env=KEY).code == 0
        second, first = runs_of(project)
        compared = project.call("diff", first, second)
        assert compared.code == 3, "too few epochs, and no other prompt"
        assert "differs" not in compared.all


SHORT = "---\n---\nHow good?\n"


@pytest.mark.parametrize(
    ("written", "text", "wrong"),
    [
        ("{judges/helpfullness.md: my/x.md}", SHORT, "agenteval.yaml:3:11: no built-in prompt is named"),
        ("{judges/helpfullness.md: my/x.md}", SHORT, "did you mean 'judges/helpfulness.md'?"),
        ("{judges/helpfulness.md: my/none.md}", SHORT, "agenteval.yaml:3:11: the prompt 'my/none.md' cannot"),
        ("{judges/helpfulness.md: my}", SHORT, "agenteval.yaml:3:11: the prompt 'my' cannot be read"),
        ("{judges/helpfulness.md: my/x.md}", "How good?\n", "my/x.md:1: the file has no front matter"),
        ("{judges/helpfulness.md: my/x.md}", "---\n---\n\n", "my/x.md:3: the rubric has no text"),
        (
            "{judges/helpfulness.md: my/x.md}",
            "---\nmetric: helpfulness\n---\nHow good?\n\nIs  ${transcript} it?\n",
            "my/x.md:6:5: the prompt contains the unknown placeholder '${transcript}'",
        ),
        (
            "{judges/helpfulness.md: my/x.md}",
            "---\nmetric: helpfulness\nscale: [1, 10]\n---\nHow good?\n",
            "my/x.md:3:1: `scale` of a built-in metric cannot be changed — remove it",
        ),
        (
            "{judges/helpfulness.md: my/x.md}",
            "---\nreferences: {call: 5}\n---\nHow good?\n",
            "my/x.md:2:1: `references` do not match those of the built-in metric — remove `references`",
        ),
        (
            "{judges/helpfulness.md: my/x.md}",
            "---\nmetric: coherence\n---\nHow good?\n",
            "my/x.md:2:1: `metric` of a built-in metric cannot be changed",
        ),
        (
            "{judges/helpfulness.md: my/x.md}",
            "---\nlables: [a]\n---\nHow good?\n",
            "my/x.md:2:1: unknown key 'lables' — did you mean 'labels'?",
        ),
        (
            "{judges/criteria.md: my/x.md}",
            "---\n---\nIs it met ${span}?\n",
            "my/x.md:3:1: the prompt does not contain the placeholder '${criterion}' — add ${criterion}"
            " to it",
        ),
        (
            "{judges/rules.md: my/x.md}",
            "---\n---\nJudge.\n---\n${transcript} ${criterion} ${anwser}\n",
            "my/x.md:5:28: the prompt contains the unknown placeholder '${anwser}' — did you mean",
        ),
        (
            "{judges/rules.md: my/x.md}",
            "---\n---\nJudge ${transcript} ${criterion} ${answer}\n",
            "my/x.md:3:1: the prompt must have two parts — use the system text, a line '---'",
        ),
        (
            "{judges/rules.md: my/x.md}",
            "---\nname: rules\n---\nJ\n---\n${transcript} ${criterion} ${answer}\n",
            "my/x.md:2:1: the file replaces 'judge_rules', but its `name` is 'rules'",
        ),
        (
            "{judges/answer_score.md: my/x.md}",
            "---\n---\nSay\n---\n${scale}\n",
            "my/x.md:3:1: the prompt must be a single",
        ),
        ("{judges/helpfulness.md: 7}", SHORT, "agenteval.yaml:3:"),
        ("[my/x.md]", SHORT, "agenteval.yaml:3:"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(project: Project, written: str, text: str, wrong: str) -> None:
    project_with(project, f"prompts: {written}\n", x=text)
    done = project.call("validate")
    assert done.code == 2, done.all
    assert wrong in done.all


BRAND = "---\nmetric: brand\nscale: [1, 3]\n---\nIs it in the tone of the Blue Lamp?\n"


def test_show_prompts_shows_what_the_project_sends(project: Project) -> None:
    config = f"custom_metrics: [my/brand.md, my_metrics:Tone]\nprompts: {OWN}\n"
    project_with(project, config, helpfulness=HELPFULNESS, brand=BRAND)
    whole = project.call("show-prompts")
    assert whole.code == 0, whole.all
    marked = "overridden: judges/helpfulness.md (my/helpfulness.md)\n"
    assert whole.out.count("overridden: ") == whole.out.count(marked) == 1
    own = project.call("show-prompts", "--metric", "helpfulness")
    assert marked in own.out
    assert "file: my/helpfulness.md\n" in own.out
    assert "version: 7\n" in own.out
    assert "the owner of the Blue Lamp" in own.out
    brand = project.call("show-prompts", "--metric", "brand")
    assert brand.code == 0, brand.all
    assert "Is it in the tone of the Blue Lamp?" in brand.out
    assert brand.out.rstrip() in whole.out
    assert "overridden" not in brand.out


def test_a_broken_configuration_does_not_hide_what_is_shipped(project: Project) -> None:
    project_with(project, "metricks: all\n")
    done: Done = project.call("show-prompts", "--metric", "coherence")
    assert done.code == 0
    assert "only built-in prompts are shown" in done.err
    assert "agenteval.yaml:3:1: unknown key 'metricks'" in done.err
    assert project.call("show-prompts", "--metric", "brand").code == 2
    named: Any = project.call("show-prompts", "-c", "agenteval.yaml")
    assert named.code == 2
