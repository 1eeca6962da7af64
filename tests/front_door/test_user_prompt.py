"""``user_prompt`` of a scenario: a prompt of its own for the simulated user."""

from __future__ import annotations

import json

import pytest

from tests.support.kit import Project

PIRATE = """---
---
You are a pirate of the Blue Lamp. ${profile} ${goal} ${knowledge} ${beliefs} ${now}
---
${transcript}
"""
REPLIES = """
replies:
  - when: {role: user, turn: 0}
    reply: {message: "A ship, please."}
  - when: {role: user}
    reply: {message: "", done: true}
"""
OWN = "{id: ship, goal: A ship., user_prompt: prompts/pirate.md}"
PLAIN = "{id: plain, goal: Water.}"


@pytest.fixture
def harbor(project: Project) -> Project:
    project.config("models: {default: scripted/replies.yaml}\nmetrics: []\n")
    project.agent("def agent(messages): return 'At your service.'\n")
    project.write("replies.yaml", REPLIES)
    project.write("scenarios/prompts/pirate.md", PIRATE)
    return project


def write(project: Project, *entries: str, user_prompt: str = "") -> None:
    """Write a suite of these entries, with a ``user_prompt`` in its defaults if one is given."""
    more = f", user_prompt: {user_prompt}" if user_prompt else ""
    lines = [f"defaults: {{epochs: 1, checks: none{more}}}", "scenarios:", *(f"- {each}" for each in entries)]
    project.scenarios("\n".join(lines) + "\n")


def asked_users(project: Project) -> dict[str, str]:
    """Run the suite and return the system prompt that the simulated user of each scenario was sent."""
    done = project.run("--record", "tape.jsonl")
    assert done.code == 0, done.all
    records = map(json.loads, (project.root / "tape.jsonl").read_text("utf-8").splitlines())
    asked = [each for each in records if each.get("role") == "user"]
    return {each["sample"].partition(" ")[0]: each["request"]["system"] for each in asked}


def test_the_simulated_user_is_sent_the_text_of_the_file(harbor: Project) -> None:
    write(harbor, OWN, PLAIN)
    systems = asked_users(harbor)
    assert systems["ship"].startswith("You are a pirate of the Blue Lamp. Nothing particular. A ship.")
    assert "Blue Lamp" not in systems["plain"]
    run = harbor.results()["run"]
    assert [name for name in run["prompts"] if "::" in name] == ["simulated_user::ship"]
    assert run["prompts_overridden"] == {"user/simulated_user.md::ship": "scenarios/prompts/pirate.md"}
    report = harbor.call("report", "latest").out
    assert "prompts overridden: user/simulated_user.md (scenarios/prompts/pirate.md in ship)" in report


def test_in_defaults_it_holds_for_whoever_simulates_a_user(harbor: Project) -> None:
    entries = ("{id: ship, goal: A ship.}", "{id: rum, goal: Rum.}", "{id: fixed, turns: [Hi]}")
    removed = "{id: plain, goal: Water., user_prompt: null}"
    write(harbor, *entries, removed, user_prompt="prompts/pirate.md")
    systems = asked_users(harbor)
    assert {name for name, text in systems.items() if "Blue Lamp" in text} == {"ship", "rum"}
    assert systems.keys() == {"ship", "rum", "plain"}
    report = harbor.call("report", "latest").out
    assert report.count("scenarios/prompts/pirate.md") == 1
    assert "in ship, rum" in report


@pytest.mark.parametrize(
    ("entry", "text", "place", "facts"),
    [
        ("goal: A ship.", None, "scenarios/suite.yaml:3:28", ["'prompts/own.md'"]),
        ("turns: [Hi]", PIRATE, "scenarios/suite.yaml:3:26", ["`user_prompt`", "`- simulate: N`"]),
        ("goal: A ship.", "You are a pirate.", "scenarios/prompts/own.md:1", ["'---'"]),
        ("goal: A ship.", PIRATE.replace("${goal}", ""), "scenarios/prompts/own.md:3:1", ["${goal}"]),
        (
            "goal: A ship.",
            PIRATE.replace("${now}", "${now} ${gaol}"),
            "scenarios/prompts/own.md:3:86",
            ["${gaol}", "'goal'"],
        ),
        ("goal: A ship.", PIRATE.replace("---\n${t", "${t"), "scenarios/prompts/own.md:3:1", ["'---'"]),
        ("goal: A ship.", PIRATE.replace("---", "---\nname: x", 1), "scenarios/prompts/own.md:2:1", ["'x'"]),
    ],
    ids=["gone", "scripted", "front matter", "missing", "unknown", "one part", "name"],
)
def test_a_mistake_is_reported_at_its_place(
    harbor: Project, entry: str, text: str | None, place: str, facts: list[str]
) -> None:
    if text is not None:
        harbor.write("scenarios/prompts/own.md", text)
    write(harbor, f"{{id: own, {entry}, user_prompt: prompts/own.md}}")
    harbor.call("validate").refuses(place, *facts)


def test_where_no_scenario_of_a_file_simulates_a_user_it_is_refused(harbor: Project) -> None:
    write(harbor, "{id: fixed, turns: [Hi]}", user_prompt="prompts/pirate.md")
    harbor.call("validate").refuses("scenarios/suite.yaml:1:37", "`user_prompt`")
    harbor.scenarios("cases:\n- {id: c, input: Hi, user_prompt: prompts/pirate.md}\n")
    harbor.call("validate").refuses("scenarios/suite.yaml:2:22", "`user_prompt`")


def test_show_prompts_shows_it_with_its_scenarios(harbor: Project) -> None:
    write(harbor, "{id: ship, goal: A ship.}", "{id: rum, goal: Rum.}", user_prompt="prompts/pirate.md")
    whole = harbor.call("show-prompts")
    assert whole.code == 0, whole.all
    assert whole.out.count("prompt: simulated_user::ship\n") == 1
    assert whole.out.count("You are a pirate of the Blue Lamp. ${profile}") == 1
    for name in ("ship", "rum"):
        one = harbor.call("show-prompts", "--metric", f"simulated_user::{name}")
        assert f"prompt: simulated_user::{name}\n" in one.out
        assert "\nfile: scenarios/prompts/pirate.md\nscenarios: ship, rum\n" in one.out
    harbor.call("show-prompts", "--metric", "simulated_user::rom").refuses("agenteval", "simulated_user::rum")


def test_show_prompts_shows_what_can_be_read(harbor: Project) -> None:
    write(harbor, OWN, "{id: rum, goal: Rum., user_prompt: gone.md}")
    done = harbor.call("show-prompts", "--metric", "simulated_user::ship")
    assert (done.code, "Blue Lamp" in done.out) == (0, True)
    assert "scenarios/suite.yaml:4:" in done.err
    assert harbor.call("show-prompts", "--metric", "helpfulness").err == ""


def test_a_change_of_the_text_changes_its_scenarios_only(harbor: Project) -> None:
    write(harbor, OWN, PLAIN)
    assert harbor.run().code == 0
    before = harbor.results()["run"]
    harbor.write("scenarios/prompts/pirate.md", PIRATE.replace("Blue", "Red"))
    assert harbor.run().code == 0
    after = harbor.results()["run"]
    changed = {name for name, digest in after["prompts"].items() if digest != before["prompts"][name]}
    assert changed == {"simulated_user::ship"}
    compared = harbor.call("diff", before["id"], after["id"])
    assert compared.code == 3, compared.all
    rows = [line.split() for line in compared.out.splitlines() if "user_prompt" in line]
    assert [row[0] for row in rows] == ["ship"]
