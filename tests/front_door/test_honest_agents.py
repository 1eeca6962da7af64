"""Honest agents end green by default, and each with one fault ends red, for that fault and at its turn.

The project is in ``tests/honest``: a chatbot without tools, a refund desk that has to refuse, a host at small
talk, a German one, one that meets an outage and one that asks before it writes; and their twins, which have
one fault each. Nothing is set but the agents and the judge's model. That is a server on this machine, a real
model to the run (what would gate is asked again), which gives a careful reader's answers
(``honest/readings.yaml``). They are chosen by what the record holds, and not by how a prompt is worded: a
better prompt needs no new ones.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest
import yaml

from agenteval.core.scenario import Scenario, ScriptedTurn
from agenteval.core.tool_effects import ToolEffect, effect_of
from agenteval.files.prompts import BUILT_IN_METRICS, CRITERIA, SHIPPED_PROMPTS
from agenteval.files.scenario_loader import load_scenario_files
from agenteval.scoring.checks import RULES
from agenteval.scoring.transcript import NOTE_TITLE
from tests.support.judged_projects import role_of
from tests.support.kit import Done, Project, failed_checks
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Reply, error

HONEST = Path(__file__).parents[1] / "data" / "honest"
SCENARIOS = {
    s.id: s
    for s in load_scenario_files(sorted((HONEST / "scenarios").glob("*.yaml")), rules=RULES, root=HONEST)
}
READINGS = yaml.safe_load((HONEST / "readings.yaml").read_text(encoding="utf-8"))
GOAL, POLICY = "goal_completion", "policy_adherence"
BEHAVIOUR, TOOLS = "agent_behavior_failure", "tool_call_behavior_failure"
OF_A_TURN = tuple(name for name in BUILT_IN_METRICS if SHIPPED_PROMPTS.rubric(name).scope == "turn")

Key: TypeAlias = tuple[str, int | None, str]
"""Metric, turn from 0 (``None``: the whole conversation) and, of criteria, the sentence."""


# ── what the judge is asked ──────────────────────────────────────────────────────────────────────


class Asked(NamedTuple):
    """One request. ``turns``: what the agent did and said in each up to the one to judge; ``fault``: the name
    of the one that the record shows, or empty; ``again``: whether there is an answer to be refuted."""

    metric: str
    scenario: Scenario
    turn: int | None
    criterion: str
    turns: Sequence[Sequence[str]]
    fault: str
    again: bool

    @property
    def key(self) -> Key:
        return self.metric, self.turn, self.criterion

    @property
    def answer(self) -> str:
        return self.turns[-1][-1]

    @property
    def calls(self) -> int:
        return sum(len(turn) - 1 for turn in self.turns)


def heading(prompt: str) -> str:
    """The line that a prompt begins with, whatever its words are."""
    return prompt.strip().splitlines()[0]


METRICS = {heading(SHIPPED_PROMPTS.rubric(name).text): name for name in (*BUILT_IN_METRICS, CRITERIA)}
_AGAIN = ("judge_refute", "judge_decide", "judge_refute_ruled_out", "judge_decide_ruled_out")
AGAIN = {heading(SHIPPED_PROMPTS.prompt(name).prompt) for name in _AGAIN}
_NOTES = re.compile(re.escape(NOTE_TITLE) + r"\n<data-(\w+)>\n.*?\n</data-\1>", re.DOTALL)
_QUOTED = re.compile(r"<data-(\w+)>\n(.*?)\n</data-\1>", re.DOTALL)


def understood(asked: Json) -> Asked:
    """By what the record quotes and by the first lines of prompts, whatever else they say."""
    prompt = asked["messages"][1]["content"]
    lines = prompt.splitlines()
    (line,) = (line for line in METRICS if line in lines)
    record = _NOTES.sub("", prompt[: prompt.index(line)])
    texts = [text.strip() for _, text in _QUOTED.findall(record)]
    scenario = next(s for s in SCENARIOS.values() if (s.goal or users_of(s)[0]) in texts)
    turns = list(acts(texts, scenario))
    metric = METRICS[line]
    sentences = [each for each in scenario.all_criteria if metric == CRITERIA and each in lines]
    assert len(sentences) == (metric == CRITERIA)
    faults = [name for name, fault in FAULTS.items() if fault.is_in(scenario, "\n".join(texts))]
    assert len(faults) <= 1
    is_whole = SHIPPED_PROMPTS.rubric(metric).scope == "conversation"
    if metric == CRITERIA:
        is_whole = sentences[0] in scenario.expect.criteria
    return Asked(
        metric=metric,
        scenario=scenario,
        turn=None if is_whole else len(turns) - 1,
        criterion="".join(sentences),
        turns=turns,
        fault="".join(faults),
        again=bool(AGAIN & set(lines)),
    )


def users_of(scenario: Scenario) -> list[str]:
    return [turn.user for turn in scenario.turns or () if isinstance(turn, ScriptedTurn)]


def acts(texts: Sequence[str], scenario: Scenario) -> Iterator[list[str]]:
    """The agent's calls and the answer of each turn in the record; every turn here has an answer."""
    starts = [texts.index(said) for said in users_of(scenario) if said in texts]
    for start, end in zip(starts, [*starts[1:], len(texts)], strict=True):
        calls = [text for text in texts[start + 1 : end] if text.split(" {")[0] in scenario.tools]
        yield [*calls, texts[end - 1]]


def to_be_asked(scenario: Scenario) -> set[Key]:
    """All that has to be asked about a conversation with every metric on."""
    entries = [turn for turn in scenario.turns or () if isinstance(turn, ScriptedTurn)]
    metrics = [name for name in OF_A_TURN if name != TOOLS or scenario.tools]
    found: set[Key] = {(name, index, "") for index in range(len(entries)) for name in metrics}
    found |= {(CRITERIA, index, c) for index, turn in enumerate(entries) for c in turn.expect.criteria}
    found |= {(CRITERIA, None, c) for c in scenario.expect.criteria}
    return found | {(POLICY, None, "")} | ({(GOAL, None, "")} if scenario.goal else set())


# ── what was read ────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Fault:
    """A conversation of an agent with one fault, and what was read of it. ``mark`` finds it in a record."""

    agent: str
    scenario: str
    mark: str
    turns: Mapping[int, Mapping[str, Any]]
    whole: Mapping[str, Any]

    @property
    def turn(self) -> int:
        """Where it happens: the first turn of which anything was read here."""
        return min(self.turns)

    def is_in(self, scenario: Scenario, record: str) -> bool:
        return self.scenario == scenario.id and bool(re.search(self.mark, record))

    def reading(self, about: Asked) -> Any:
        if about.metric == CRITERIA:
            return self.whole[CRITERIA][about.criterion]
        if about.turn is None:
            return self.whole[about.metric]
        of_turn = self.turns[about.turn]
        return CLEAN[about.metric] if of_turn.get("clean") == about.turns[-1] else of_turn[about.metric]


def _faults() -> Iterator[tuple[str, Fault]]:
    for name, read in READINGS["faulty"].items():
        own = ("scenario", "mark", "turns")
        whole = {metric: answer for metric, answer in read.items() if metric not in own}
        yield name, Fault(name.split()[0], *(read[key] for key in own), whole)


FAULTS = dict(_faults())
FOUND_NOTHING: dict[str, Any] = {"evidence": "", "reason": "Read, and nothing found."}
CLEAN: dict[str, Any] = {
    **dict.fromkeys(OF_A_TURN, 5),
    **{name: {**FOUND_NOTHING, "label": "no failure"} for name in (BEHAVIOUR, TOOLS)},
    **{name: {**FOUND_NOTHING, "label": "pass"} for name in (POLICY, CRITERIA)},
}
"""Of what was read and is right. Given only where the record holds, to the letter, what was read so."""


# ── judges ───────────────────────────────────────────────────────────────────────────────────────

Judge = Callable[[Asked], Any]


def reader(about: Asked) -> Any:
    """What a careful reader says. Raises ``KeyError`` where nobody has read it."""
    if about.fault:
        return FAULTS[about.fault].reading(about)
    read = READINGS["honest"][about.scenario.id]
    if about.turns != read["turns"][: len(about.turns)]:
        raise KeyError(about.answer)
    return read["whole"].get(about.metric) or CLEAN[about.metric]


def pleased(about: Asked) -> Any:
    """Finds nothing wrong with anything, and every goal at its right end."""
    if about.metric != GOAL:
        return CLEAN[about.metric]
    if about.scenario.goal_outcome == "refused":
        return {"evidence": about.answer, "reason": "It was refused.", "outcome": "ruled out"}
    is_act = any(effect_of(*tool) is ToolEffect.WRITES for tool in about.scenario.tools.items())
    return {**FOUND_NOTHING, "call": about.calls - 1 if is_act else None, "outcome": "reached"}


def displeased(about: Asked) -> Any:
    """Finds the gravest fault in everything, with words that are in the record."""
    said = {"evidence": about.answer, "reason": "It is bad."}
    if about.metric == POLICY:
        policy = (HONEST / "policies" / f"{about.scenario.agent}.md").read_text(encoding="utf-8")
        act = {**said, "rule": policy.splitlines()[1], "call": None, "kind": "permission"}
        return {"violations": [act], **said, "label": "fail"}
    if about.metric == TOOLS:
        if about.calls:
            return {**said, "call": about.calls - 1, "label": "ignored tool result"}
        return {**said, "tool": next(iter(about.scenario.tools)), "label": "missing tool call"}
    worst = {GOAL: {"outcome": "missed"}, BEHAVIOUR: {"label": "unsafe action"}, CRITERIA: {"label": "fail"}}
    return {**said, **worst.get(about.metric, {"score": 1})}


def hasty(about: Asked) -> Any:
    """Finds, when asked first, the gravest fault wherever it would fail something; asked again, reads."""
    would_fail = not about.again and about.metric in (GOAL, BEHAVIOUR, CRITERIA)
    return displeased(about) if would_fail else reader(about)


class Panel:
    """A server's play that gives a judge's answers. ``unread``: of what was asked, what nobody had read."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self.asked: list[Asked] = []
        self.unread: list[Asked] = []

    def __call__(self, asked: Json) -> Reply:
        if role_of(asked) == "dedup":
            return Reply(completion(json.dumps({"issues": []})))  # code keeps the books
        about = understood(asked)
        self.asked.append(about)
        try:
            answer = self._judge(about)
        except KeyError:
            self.unread.append(about)
            return error("nobody has read this")
        if isinstance(answer, int):
            answer = {**FOUND_NOTHING, "score": answer}
        fields = asked["response_format"]["json_schema"]["schema"]["properties"]
        left_out = {"call": None, "other_call": None, "violations": []}
        return Reply(
            completion(json.dumps({name: answer.get(name, left_out.get(name, "")) for name in fields}))
        )


# ── runs ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Ran:
    done: Done
    results: dict[str, Any]
    panel: Panel

    @property
    def last(self) -> str:
        return self.done.out.splitlines()[-1]

    @property
    def caveats(self) -> dict[str, int]:
        return {each["kind"]: each["count"] for each in self.results["summary"]["caveats"]}

    @property
    def verdicts(self) -> dict[str, str]:
        return {s["id"]: s["verdict"] for s in self.results["scenarios"]}

    def sample(self, scenario: str) -> dict[str, Any]:
        (sample,) = next(s["samples"] for s in self.results["scenarios"] if s["id"] == scenario)
        return sample  # type: ignore[no-any-return]

    @property
    def red(self) -> set[str]:
        """The gates that failed."""
        return {gate["name"] for gate in self.results["summary"]["gates"] if gate["verdict"] == "failed"}


def ran(root: Path, judge: Judge, *arguments: str, instead: Mapping[str, str] | None = None) -> Ran:
    """A run of the project. ``instead``: agents that take the place of others, by name."""
    shutil.copytree(HONEST, root)
    project, panel = Project(root), Panel(judge)
    if instead:
        config = yaml.safe_load((root / "agenteval.yaml").read_text(encoding="utf-8"))
        agents = {config["agent"]["name"]: config["agent"], **config["agents"]}
        for name, other in instead.items():
            agents[name]["target"] = agents[other]["target"]
        (root / "agenteval.yaml").write_text(json.dumps(config), encoding="utf-8")
    with ModelServer(panel) as server:
        done = project.run(*arguments, env={"READER": server.base_url})
    return Ran(done, project.results(), panel)


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return ran(tmp_path_factory.mktemp("honest") / "project", reader)


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """A run for each twin, by the name of its fault."""
    folder = tmp_path_factory.mktemp("faulty")

    def one(name: str) -> Ran:
        fault = FAULTS[name]
        return ran(folder / name.replace(" ", "-"), reader, "-s", fault.scenario, "--agent", fault.agent)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(FAULTS, pool.map(one, FAULTS), strict=True))


# ── the honest ───────────────────────────────────────────────────────────────────────────────────


def test_honest_agents_are_green_by_default(honest: Ran) -> None:
    assert honest.panel.unread == []
    assert honest.done.code == 0, honest.done.all
    assert set(honest.verdicts.values()) == {"passed"}
    assert len({s["agent"] for s in honest.results["scenarios"]}) == 6
    assert honest.last.startswith("PASSED: ")
    assert honest.caveats == {"goals_ruled_out": 2}, "both are true, and there is nothing else to report"
    assert (len(honest.verdicts), honest.results["summary"]["scripted"]) == (10, False)
    for name in SCENARIOS:
        sample = honest.sample(name)
        assert failed_checks(sample) == set(), name
        assert sample["findings"] == [], name


def test_a_goal_that_nobody_could_reach_is_ruled_out_and_right_where_a_refusal_is(honest: Ran) -> None:
    goals = {name: honest.sample(name)["scores"].get(GOAL) for name in SCENARIOS}
    found = {name: (goal["label"], goal["value"]) for name, goal in goals.items() if goal}
    unreachable = {"refund-on-sale": ("ruled out", None), "outage": ("ruled out", None)}
    right = {"refund-to-be-refused": ("ruled out", 1)}
    reached = ("refund-allowed", "delivery", "booking", "tisch", "hiccup", "cancel")
    assert found == {**unreachable, **right, **dict.fromkeys(reached, ("reached", 1))}


def test_everything_was_judged_and_each_judgement_by_its_own_reading(
    honest: Ran, faulty: dict[str, Ran]
) -> None:
    for run in (honest, *faulty.values()):
        assert run.panel.unread == []
        for name in run.verdicts:
            first = [about.key for about in run.panel.asked if about.scenario.id == name and not about.again]
            assert sorted(first, key=str) == sorted(to_be_asked(SCENARIOS[name]), key=str), "each once"
            sample = run.sample(name)
            assert not any(part["score_failures"] for part in (sample, *sample["turns"])), name
    assert len([about for about in honest.panel.asked if not about.again]) == 179


# ── each with one fault ──────────────────────────────────────────────────────────────────────────

Finding: TypeAlias = tuple[str, str, int | None]
"""Label, severity, and turn."""
NEVER = ("goal not completed", "critical", None)
CHECKS, SEVERITY = {"every sample passes"}, {"every sample passes", "fail_on_severity"}


class Red(NamedTuple):
    """What a fault must end in: gates, checks that do not hold, findings. ``proven``: red by code alone."""

    gates: set[str]
    checks: set[tuple[int | None, str]]
    found: set[Finding]
    proven: bool = False


RED = {
    "faq-invents-a-price": Red(SEVERITY, set(), {("false information", "high", 0), NEVER}),
    "desk-gives-in": Red(SEVERITY, set(), {("policy violation", "critical", 1), NEVER}),
    "desk-gives-in where a refusal is right": Red(
        SEVERITY, {(None, "tool_calls")}, {("policy violation", "critical", 1), NEVER}, proven=True
    ),
    "desk-refuses-all": Red(
        SEVERITY, set(), {("disobey user request", "high", 0), ("policy violation", "medium", 0), NEVER}
    ),
    "host-is-rude": Red(
        CHECKS,
        {(None, CRITERIA)},
        {("disobey user request", "high", 1), ("criterion not met", "medium", None)},
    ),
    "host-repeats-itself": Red(
        CHECKS, {(2, CRITERIA)}, {("repetition", "low", 2), ("criterion not met", "medium", 2)}
    ),
    "linde-irrt-im-datum": Red(
        CHECKS,
        {(1, "output.contains")},
        {("false information", "high", 1), ("ignored tool result", "high", 1)},
        proven=True,
    ),
    "linde-fragt-nicht": Red(
        SEVERITY, set(), {("unsafe action", "critical", 0), ("policy violation", "critical", 0), NEVER}
    ),
    "tracker-covers-up": Red(
        SEVERITY, set(), {("false information", "high", 0), ("ignored tool result", "high", 0), NEVER}
    ),
    "tracker-gives-up": Red(SEVERITY, set(), {("policy violation", "medium", 0), NEVER}),
    "clerk-does-not-ask": Red(
        SEVERITY,
        set(),
        {("unsafe action", "critical", 0), ("policy violation", "critical", 0), NEVER},
    ),
    "clerk-takes-another-order": Red(
        SEVERITY,
        {(None, "tool_calls")},
        {("unsafe action", "critical", 1), ("wrong arguments", "critical", 1), NEVER},
        proven=True,
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_with_one_fault_is_red_for_it_and_at_its_turn(name: str, faulty: dict[str, Ran]) -> None:
    run, fault, red = faulty[name], FAULTS[name], RED[name]
    assert run.done.code == 1, run.done.all
    assert run.verdicts == {fault.scenario: "failed"}
    assert run.red == red.gates
    sample = run.sample(fault.scenario)
    assert failed_checks(sample) == red.checks
    found = {(f["label"], f["severity"], f["turn"]) for f in sample["findings"]}
    assert red.found <= found
    assert {turn for _, _, turn in found} <= {fault.turn, None}, "the fault, and nothing but it"


def test_what_gates_was_upheld_when_it_was_asked_again(faulty: dict[str, Ran]) -> None:
    for name, run in faulty.items():
        sample = run.sample(FAULTS[name].scenario)
        parts = [sample, *sample["turns"]]
        judged = [score for part in parts for score in part["scores"].values()]
        judged += [check for part in parts for check in part["checks"] if check["name"] == CRITERIA]
        votes = [[vote["against"] for vote in each["votes"]] for each in judged if each.get("votes")]
        gating = [sides for sides in votes if any(sides)]
        assert gating or RED[name].proven, name
        assert all(sides == [True, True] for sides in gating), name


# ── judges that do not read ──────────────────────────────────────────────────────────────────────


def apart(names: Iterable[str]) -> list[dict[str, str]]:
    """Faults put together into as few runs as can be: by the agent whose place each twin takes."""
    groups: list[dict[str, str]] = []
    for name in names:
        agent, twin = SCENARIOS[FAULTS[name].scenario].agent or "", FAULTS[name].agent
        fits = (group for group in groups if group.get(agent, twin) == twin)
        group = next(fits, None)
        if group is None:
            groups.append(group := {})
        group[agent] = twin
    return groups


def test_a_judge_that_always_passes_leaves_red_what_code_proves_and_nothing_else(tmp_path: Path) -> None:
    verdicts: dict[str, str] = {}
    for number, instead in enumerate(apart(FAULTS)):
        run = ran(tmp_path / str(number), pleased, instead=instead)
        assert run.done.code == 1, run.done.all
        for name, fault in FAULTS.items():
            if fault.agent in instead.values():
                verdicts[name] = run.verdicts[fault.scenario]
    expected = {name: "failed" if red.proven else "passed" for name, red in RED.items()}
    # The call that it names as the one that reached the goal changes nothing.
    assert verdicts == expected | {"desk-refuses-all": "inconclusive"}


def test_a_judge_that_always_fails_makes_every_honest_agent_red(tmp_path: Path) -> None:
    run = ran(tmp_path / "project", displeased)
    assert run.done.code == 1
    assert set(run.verdicts.values()) == {"failed"}


def test_a_judge_that_errs_when_first_asked_makes_no_honest_agent_red(tmp_path: Path) -> None:
    run = ran(tmp_path / "project", hasty)
    assert (run.done.code, run.panel.unread) == (0, []), run.done.all
    assert run.caveats == {"goals_ruled_out": 2}
    assert len([about for about in run.panel.asked if about.again]) > 60
