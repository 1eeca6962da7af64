"""Two runs compared: by the values alone, and through the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.core.run_summary import FailureSummary, RunSummary, ScenarioSummary
from agenteval.core.score import Verdict
from agenteval.verdict.comparability import why_not_comparable
from agenteval.verdict.comparison import FailureState, RunComparison, compare_runs
from agenteval.verdict.statistics import Change
from tests.support.kit import Done, Project

# ── values ───────────────────────────────────────────────────────────────────────────────────────


def scenario(
    name: str, successes: int, decided: int, planned: int | None = None, **more: Any
) -> ScenarioSummary:
    values = {
        "agent": "bot",
        "content": {"turns": "1"},
        "known": decided,
        "planned": decided if planned is None else planned,
        **more,
    }
    return ScenarioSummary(id=name, successes=successes, decided=decided, **values)


def run(*scenarios: ScenarioSummary, **more: Any) -> RunSummary:
    return RunSummary(run_id="r", started_at="2026-11-21T10:00:00Z", scenarios=scenarios, **more)


def reasons(before: RunSummary, after: RunSummary) -> list[str]:
    return [problem.what for problem in why_not_comparable(before, after)]


def apart(before: RunSummary, after: RunSummary) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(each.id, each.state.value, each.parts) for each in compare_runs(before, after).apart]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[RunSummary, RunSummary]:
    """Two runs of the same scenarios."""
    sides: tuple[list[ScenarioSummary], list[ScenarioSummary]] = ([], [])
    for index in range(draw(st.integers(1, 4))):
        for side in sides:
            planned = draw(st.integers(1, 12))
            decided = draw(st.integers(0, planned))
            met = {name: draw(st.integers(0, decided)) for name in ("f1", "f2")}
            failures = tuple(
                FailureSummary(fingerprint=f"{name}-{index}", what=name, metric="m", epochs=epochs)
                for name, epochs in met.items()
                if epochs
            )
            scores = {"clarity": tuple(draw(st.lists(st.integers(1, 5).map(float), max_size=3)))}
            side.append(
                scenario(
                    f"s{index}",
                    draw(st.integers(0, decided)),
                    decided,
                    planned,
                    failures=failures,
                    scores={k: v for k, v in scores.items() if v},
                )
            )
    return run(*sides[0]), run(*sides[1])


MIRRORED = {Change.REGRESSED: Change.IMPROVED, Change.IMPROVED: Change.REGRESSED}
MIRRORED_STATES = {
    FailureState.NEW: FailureState.FIXED,
    FailureState.KNOWN: FailureState.KNOWN,
    FailureState.FIXED: FailureState.NEW,
}


@settings(max_examples=60)
@given(pairs())
def test_the_other_way_round_everything_is_mirrored(both: tuple[RunSummary, RunSummary]) -> None:
    (there,), (back,) = compare_runs(*both).agents, compare_runs(*reversed(both)).agents
    changes = {s.id: s for s in there.scenarios}
    for one in back.scenarios:
        other = changes[one.id]
        assert MIRRORED.get(other.change, other.change) is one.change
        assert (one.low, one.high) == (pytest.approx(-other.high), pytest.approx(-other.low))
        assert (one.p_drop, one.p_rise) == (pytest.approx(other.p_rise), pytest.approx(other.p_drop))
    for mean, opposite in zip(there.scores, back.scores, strict=True):
        assert mean.change == pytest.approx(-opposite.change)
    states = {f.fingerprint: f.state for f in back.failures}
    lost = {failure.fingerprint for failure in there.failures if failure.state is FailureState.UNKNOWN}
    for failure in there.failures:
        if failure.fingerprint not in lost and states[failure.fingerprint] is not FailureState.UNKNOWN:
            assert states[failure.fingerprint] is MIRRORED_STATES[failure.state]


@settings(max_examples=60)
@given(pairs(), st.randoms())
def test_the_order_of_scenarios_does_not_matter(both: tuple[RunSummary, RunSummary], random: Any) -> None:
    shuffled = []
    for side in both:
        scenarios = list(side.scenarios)
        random.shuffle(scenarios)
        shuffled.append(side.model_copy(update={"scenarios": tuple(scenarios)}))
    assert close(compare_runs(*shuffled), compare_runs(*both))


def close(one: RunComparison, other: RunComparison) -> bool:
    """Equal, but for the last digits of sums that were added in another order."""

    def rounded(value: Any) -> Any:
        if isinstance(value, float):
            return round(value, 9) + 0.0
        if isinstance(value, dict):
            return {key: rounded(item) for key, item in value.items()}
        return [rounded(item) for item in value] if isinstance(value, list | tuple) else value

    return bool(rounded(one.model_dump()) == rounded(other.model_dump()))


@settings(max_examples=60)
@given(pairs())
def test_other_names_change_nothing_but_the_names(both: tuple[RunSummary, RunSummary]) -> None:
    renamed = [
        side.model_copy(
            update={
                "scenarios": tuple(
                    s.model_copy(update={"id": f"x-{s.id}", "agent": "other"}) for s in side.scenarios
                )
            }
        )
        for side in both
    ]
    text = compare_runs(*renamed).model_dump_json().replace('"x-s', '"s').replace('"other"', '"bot"')
    assert json.loads(text) == json.loads(compare_runs(*both).model_dump_json())


@settings(max_examples=60)
@given(pairs())
def test_missing_epochs_are_never_taken_for_what_would_be_convenient(
    both: tuple[RunSummary, RunSummary],
) -> None:
    """What is decided with missing epochs is decided the same however they would have ended."""
    verdict = compare_runs(*both).verdict
    if verdict is Verdict.INCONCLUSIVE:
        return
    for success in (0, 1):
        filled = [
            side.model_copy(
                update={
                    "scenarios": tuple(
                        s.model_copy(
                            update={
                                "decided": s.planned,
                                "known": s.planned,
                                "successes": s.successes + success * (s.planned - s.decided),
                            }
                        )
                        for s in side.scenarios
                    )
                }
            )
            for side in both
        ]
        assert compare_runs(*filled).verdict is verdict


def test_a_sure_drop_of_one_scenario_is_a_regression_though_the_mean_rose() -> None:
    before = run(scenario("a", 20, 20), *(scenario(f"b{i}", 5, 20) for i in range(4)))
    after = run(scenario("a", 5, 20), *(scenario(f"b{i}", 20, 20) for i in range(4)))
    compared = compare_runs(before, after)
    (agent,) = compared.agents
    assert compared.exit_code == 1
    assert agent.dropped == ("a",)
    assert agent.change is not None
    assert agent.change > 0
    assert agent.scenarios[0].id == "a"  # what is worst stands first


def test_lost_epochs_leave_it_undecided() -> None:
    full = run(*(scenario(f"s{i}", 20, 20) for i in range(5)))
    assert compare_runs(full, full).exit_code == 0
    lost = run(*(scenario(f"s{i}", 16, 16, 20) for i in range(5)))
    assert compare_runs(full, lost).exit_code == 3
    # Those of the baseline cannot hide a drop: had they all succeeded, nothing would have dropped either.
    assert compare_runs(lost, full).exit_code == 0


def test_the_margin_is_what_decides() -> None:
    before = run(*(scenario(f"s{i}", 19, 20) for i in range(5)))
    after = run(*(scenario(f"s{i}", 18, 20) for i in range(5)))
    assert compare_runs(before, after, margin=0.05).exit_code == 3
    assert compare_runs(before, after, margin=0.3).exit_code == 0


def test_means_are_paired_by_scenario_and_each_counts_once() -> None:
    def judged(*scores: tuple[float, ...]) -> RunSummary:
        return run(*(scenario(f"s{i}", 1, 2, scores={"clarity": own}) for i, own in enumerate(scores)))

    before, after = judged((1.0, 3.0), (4.0,)), judged((4.0,), (5.0,))
    (mean,) = compare_runs(before, after).agents[0].scores
    assert (mean.before, mean.after, mean.change, mean.scenarios) == (3.0, 4.5, 1.5, 2)
    # Differences 2 and 1: mean 1.5, standard error 0.5, t(0.975, 1) = 12.706.
    assert mean.low == pytest.approx(1.5 - 12.706 * 0.5, abs=1e-3)
    assert mean.high == pytest.approx(1.5 + 12.706 * 0.5, abs=1e-3)


def test_a_change_that_is_everywhere_the_same_has_no_interval() -> None:
    def judged(*scores: float) -> RunSummary:
        return run(*(scenario(f"s{i}", 1, 2, scores={"clarity": (own,)}) for i, own in enumerate(scores)))

    for before, after in (((1.0, 2.0), (2.0, 3.0)), ((1.0,), (2.0,))):
        (mean,) = compare_runs(judged(*before), judged(*after)).agents[0].scores
        assert (mean.change, mean.low, mean.high) == (1.0, None, None)


def test_the_worst_agent_decides_and_the_worst_scenario_is_told_first() -> None:
    def of_two(*successes: int) -> RunSummary:
        named = [("bot", "a"), ("bot", "b"), ("other", "a"), ("other", "b")]
        pairs = zip(named, successes, strict=True)
        return run(*(scenario(name, n, 20, agent=who) for (who, name), n in pairs))

    compared = compare_runs(of_two(20, 20, 20, 20), of_two(20, 20, 16, 0))
    assert [agent.verdict for agent in compared.agents] == [Verdict.INCONCLUSIVE, Verdict.FAILED]
    assert (compared.verdict, compared.exit_code) == (Verdict.FAILED, 1)
    told = [(each.id, each.change) for each in compared.agents[1].scenarios]
    assert told == [("b", Change.REGRESSED), ("a", Change.UNDECIDED)]


def failing(name: str, met: int, epochs: int, fingerprint: str = "aaaaaaaaaaaa") -> ScenarioSummary:
    failure = FailureSummary(fingerprint=fingerprint, what="answer", metric="answer", epochs=met)
    return scenario(name, epochs - met, epochs, failures=(failure,) if met else ())


@pytest.mark.parametrize(
    ("before", "after", "earlier", "state", "sure"),
    [
        ((0, 10), (9, 10), {}, "new", True),
        ((0, 2), (1, 2), {}, "new", False),
        ((0, 10), (9, 10), {"aaaaaaaaaaaa": "r0"}, "back again", True),
        ((3, 10), (4, 10), {"aaaaaaaaaaaa": "r0"}, "known", False),
        ((9, 10), (0, 10), {}, "fixed", True),
        ((1, 2), (0, 2), {}, "fixed", False),
        ((0, 20), (1, 1), {}, "new", True),  # p = 1 / 21
        ((0, 18), (1, 1), {}, "new", False),  # p = 1 / 19
        ((1, 2), (0, 0), {}, "not decided", False),
    ],
)
def test_the_states_of_a_failure(
    before: tuple[int, int], after: tuple[int, int], earlier: dict[str, str], state: str, sure: bool
) -> None:
    old, new = run(failing("s", *before)), failing("s", *after).model_copy(update={"planned": 10})
    (failure,) = compare_runs(old, run(new), earlier=earlier).agents[0].failures
    assert (failure.state, failure.sure) == (state, sure)
    assert failure.seen_in == ("r0" if state == "back again" else "")


# ── what cannot be compared ──────────────────────────────────────────────────────────────────────

BASE = run(scenario("a", 1, 1), scenario("b", 1, 1))


def test_equal_runs_can_be_compared() -> None:
    assert reasons(BASE, BASE) == []


def test_scenarios_that_differ_are_named_with_what_differs() -> None:
    other = run(scenario("a", 1, 1), scenario("b", 1, 1, content={"turns": "2", "goal": "3"}))
    assert apart(BASE, other) == [("b", "changed", ("goal", "turns"))]
    more = run(*BASE.scenarios, scenario("c", 1, 1))
    assert apart(BASE, more) == [("c", "new", ())]
    assert apart(more, BASE) == [("c", "removed", ())]
    chosen = BASE.model_copy(update={"is_selection": True})
    assert apart(chosen, more) == apart(more, chosen) == [("c", "not selected", ())]


def test_what_is_the_same_is_compared_and_only_where_nothing_is_it_is_refused() -> None:
    other = run(scenario("a", 1, 1), scenario("c", 1, 1))
    assert reasons(BASE, other) == []
    assert [s.id for s in compare_runs(BASE, other).agents[0].scenarios] == ["a"]
    assert reasons(run(scenario("x", 1, 1)), BASE) == [
        "no scenario is the same in both runs",
        "scenario 'a' is only in the second run",
        "scenario 'b' is only in the second run",
        "scenario 'x' is only in the first run",
    ]


@pytest.mark.parametrize(
    ("key", "first", "second", "told"),
    [
        ("prompts", {"clarity": "1"}, {"clarity": "2"}, "the prompt 'clarity' {}"),
        ("judge", {"model": "x/a"}, {"model": "x/b"}, "the model of the judge {}: model x/a and x/b"),
        ("judged_by", ("m1",), ("m2",), "the model of the judge {}: it answered as m1 and as m2"),
        ("settings", {"now": "high"}, {"now": "low"}, "the setting 'now' {}: high and low"),
    ],
)
def test_both_must_have_been_measured_alike(key: str, first: Any, second: Any, told: str) -> None:
    sides = [
        BASE.model_copy(update={"judged": ("clarity",), "prompts": {"clarity": "1"}, key: value})
        for value in (first, second)
    ]
    expected = [told.format("differs")]
    assert reasons(*sides) == expected
    with pytest.raises(AuthorError) as refused:
        compare_runs(*sides)
    assert refused.value.exit_code == 2


def test_a_prompt_that_was_not_used_in_both_does_not_matter() -> None:
    first = BASE.model_copy(update={"prompts": {"clarity": "1", "simulated_user": "1", "criteria": "1"}})
    second = BASE.model_copy(
        update={"prompts": {"clarity": "2", "simulated_user": "2", "criteria": "2"}, "judged": ("clarity",)}
    )
    assert reasons(first, second) == []


def test_the_simulated_user_is_part_of_the_measurement() -> None:
    simulated = run(scenario("a", 1, 1, simulated=True))
    other = simulated.model_copy(update={"user": {"model": "x/b"}, "prompts": {"simulated_user": "2"}})
    assert reasons(simulated, other) == [
        "the prompt 'simulated_user' differs",
        "the model of the simulated user differs: model None and x/b",
    ]


def test_what_played_no_part_does_not_matter() -> None:
    """No user was simulated, no judge was asked of the same, and nobody answered with a name."""
    assert reasons(BASE, BASE.model_copy(update={"user": {"model": "x/b"}, "played_by": ("m",)})) == []
    assert reasons(BASE, BASE.model_copy(update={"judge": {"model": "x/b"}})) == []
    judged = BASE.model_copy(update={"judged": ("clarity", "stars"), "judged_by": ("m1", "m2")})
    fewer = judged.model_copy(update={"judged": ("clarity",), "judged_by": ("m1",)})
    assert reasons(judged, fewer) == []
    assert reasons(judged, judged.model_copy(update={"judged_by": ()})) == []


def test_criteria_have_a_judge_and_simulated_users_a_bound() -> None:
    asked = run(scenario("a", 1, 1, criteria=True))
    told = "the model of the judge differs: model None and x/b"
    assert reasons(asked, asked.model_copy(update={"judge": {"model": "x/b"}})) == [told]
    for is_simulated in (False, True):
        one = run(scenario("a", 1, 1, simulated=is_simulated), settings={"max_turns": 4})
        other = one.model_copy(update={"settings": {"max_turns": 8}})
        told = "the setting 'max_turns' differs: 4 and 8"
        assert reasons(one, other) == [told] * is_simulated


@pytest.mark.parametrize("count", [7, 8, 9, 10])
def test_eight_that_differ_are_named(count: int) -> None:
    differing = [scenario(f"s{n}", 1, 1) for n in range(count)]
    told = reasons(run(*differing), run(*(s.model_copy(update={"content": {}}) for s in differing)))
    assert told[0] == "no scenario is the same in both runs"
    assert len([line for line in told if line.endswith("differs: turns differ")]) == min(count, 8)
    assert told[9:] == ([f"and {count - 8} more differ"] if count > 8 else [])


def test_what_may_decide_who_passes_must_have_been_judged_in_both() -> None:
    judged = BASE.model_copy(update={"judged": ("goal_completion",), "decisive": ("goal_completion",)})
    assert reasons(BASE, judged) == [
        "'goal_completion' was judged only in the second run, and may decide who passes"
    ]


def test_agents_are_paired_by_name_unless_each_run_has_one() -> None:
    two = run(scenario("a", 1, 1), scenario("a", 1, 1, agent="other"))
    assert [agent.after for agent in compare_runs(two, two).agents] == ["bot", "other"]
    one = compare_runs(two, run(scenario("a", 1, 1)))
    assert one.left_out == ("the agent 'other' is only in the first run",)
    renamed = compare_runs(run(scenario("a", 1, 1)), run(scenario("a", 1, 1, agent="new")))
    assert renamed.renamed == (("bot", "new"),)
    turned = run(scenario("a", 1, 1, agent="other"), scenario("a", 1, 1))
    compared = compare_runs(run(scenario("a", 1, 1)), turned)
    assert [(each.before, each.after) for each in compared.agents] == [("bot", "bot")]


# ── through the command line ─────────────────────────────────────────────────────────────────────

AGENT = """
    def agent(messages, ctx):
        return {answer}
"""
GOOD, BAD = '"yes"', '"no" if ctx.scenario_id == "case-2" else "yes"'
CASES = "".join(f"  - {{id: case-{n}, input: hello, expected_output_contains: ['yes']}}\n" for n in range(5))


@pytest.fixture
def suite(project: Project) -> Project:
    project.config()
    project.scenarios(f"cases:\n{CASES}")
    project.agent(AGENT.format(answer=GOOD))
    return project


def rerun(project: Project, answer: str, *arguments: str) -> Done:
    project.agent(AGENT.format(answer=answer))
    return project.run(*arguments)


def comparison(project: Project, *arguments: str) -> tuple[Done, dict[str, Any]]:
    done = project.call(
        "diff", "previous", "latest", "--report", "json=diff.json", "--report", "terminal", *arguments
    )
    return done, json.loads((project.root / "diff.json").read_text("utf-8"))


def test_an_agent_that_got_worse_is_red_and_the_scenario_is_named(suite: Project) -> None:
    suite.run("--epochs", "8")
    rerun(suite, BAD, "--epochs", "8")
    done, told = comparison(suite)
    assert done.code == told["exit_code"] == 1, done.all
    assert told["agents"][0]["dropped"] == ["case-2"]
    changes = {s["id"]: s["change"] for s in told["agents"][0]["scenarios"]}
    assert changes.pop("case-2") == "regressed"
    assert "regressed" not in changes.values()
    (failure,) = told["agents"][0]["failures"]
    assert (failure["state"], failure["scenario"], failure["met_after"]) == ("new", "case-2", 8)
    assert "REGRESSED: significantly dropped: case-2 (exit 1)" in done.out
    assert failure["fingerprint"] in done.out


def test_the_other_way_round_it_got_better(suite: Project) -> None:
    rerun(suite, BAD, "--epochs", "15")
    rerun(suite, GOOD, "--epochs", "15")
    done, told = comparison(suite)
    assert done.code == 0, done.all
    assert told["agents"][0]["scenarios"][-1]["change"] in ("unchanged", "improved")
    assert {s["id"] for s in told["agents"][0]["scenarios"] if s["change"] == "improved"} == {"case-2"}
    assert [f["state"] for f in told["agents"][0]["failures"]] == ["fixed"]


def test_the_same_agent_is_green_with_enough_epochs_and_undecided_with_few(suite: Project) -> None:
    for epochs, code in (("3", 3), ("15", 0)):
        suite.run("--epochs", epochs)
        suite.run("--epochs", epochs)
        done, told = comparison(suite)
        assert done.code == code, done.all
        assert (told["agents"][0]["epochs_to_decide"] is None) is (code == 0)
    assert "NO REGRESSION" in done.out
    assert "improved" not in done.out


def test_one_epoch_each_says_what_would_decide(suite: Project) -> None:
    suite.run()
    suite.run()
    done, _ = comparison(suite)
    assert done.code == 3
    assert "epochs per scenario in each run would decide (exit 3)" in done.out


def test_lost_samples_are_missing_and_never_silence(suite: Project) -> None:
    suite.run("--epochs", "15")
    lost = '(_ for _ in ()).throw(ConnectionRefusedError("down")) if ctx.epoch < 4 else "yes"'
    rerun(suite, lost, "--epochs", "15")
    done, told = comparison(suite)
    assert done.code == 3
    assert told["agents"][0]["scenarios"][0]["after"] == {"successes": 11, "decided": 11, "planned": 15}
    assert "11/11 (4 missing)" in done.out


EDITED = CASES.replace("hello", "goodbye", 1).replace("case-4", "case-9")
"""``case-0`` asks for something else, ``case-4`` is gone, ``case-9`` is new."""


@pytest.mark.parametrize("options", [(), ("--common",)])  # the older way to ask for it
def test_an_edited_scenario_is_changed_and_the_others_are_compared(
    suite: Project, options: tuple[str, ...]
) -> None:
    suite.run("--epochs", "22")
    suite.scenarios(f"cases:\n{EDITED}")
    suite.run("--epochs", "22")
    done, told = comparison(suite, *options)
    assert done.code == told["exit_code"] == 0, done.all
    assert [s["id"] for s in told["agents"][0]["scenarios"]] == ["case-1", "case-2", "case-3"]
    assert told["apart"] == [
        {"id": "case-0", "agent": "bot", "state": "changed", "parts": ["turns"],
         "before": "passed", "after": "passed"},
        {"id": "case-9", "agent": "bot", "state": "new", "parts": [], "before": None, "after": "passed"},
        {"id": "case-4", "agent": "bot", "state": "removed", "parts": [], "before": "passed", "after": None},
    ]  # fmt: skip
    rows = [line.split() for line in done.out.splitlines()]
    assert ["case-0", "changed", "passed", "passed", "turns"] in rows
    assert ["case-9", "new", "–", "passed"] in rows
    assert ["case-4", "removed", "passed", "–"] in rows
    assert " ".join(done.out.split()).endswith("(exit 0) — not compared: 1 changed, 1 new, 1 removed")
    text = suite.call("diff", "previous", "latest", "--report", "markdown").out
    assert "| case-0 | changed | passed | passed | turns |" in text


def test_a_changed_scenario_that_no_longer_passes_is_not_decided_and_hides_no_regression(
    suite: Project,
) -> None:
    """Whether the edit or the agent did it, nobody knows: that is not green."""
    suite.run("--epochs", "15")
    suite.scenarios(f"cases:\n{CASES.replace('case-2, input: hello', 'case-2, input: goodbye')}")
    rerun(suite, BAD, "--epochs", "15")
    done, told = comparison(suite)
    assert done.code == told["exit_code"] == 3, done.all
    assert told["agents"][0]["verdict"] == "passed"
    assert "NOT DECIDED: no longer passing after a change of the scenario: case-2 (" in done.out
    assert ["case-2", "changed", "passed", "failed", "turns"] in [s.split() for s in done.out.splitlines()]
    worse = BAD.replace('"no"', '"nein"').replace("case-2", "case-1")
    rerun(suite, worse, "--epochs", "15")
    assert suite.call("diff", "previous", "latest").code == 1


def test_names_tags_epochs_and_places_may_differ(suite: Project) -> None:
    suite.run()
    suite.scenarios(
        f"# moved down\ncases:\n{CASES}".replace("id: case-1", "id: case-1, tags: [new], name: New")
    )
    suite.run("--epochs", "2")
    assert suite.call("diff", "previous", "latest").code == 3


RUBRIC = "---\nmetric: tone\nscope: turn\nlabels: {{kind: ok, rude: medium}}\nversion: 1\n---\n{text}\n"


def test_another_prompt_of_a_judge_is_refused_by_name(project: Project) -> None:
    project.config("models: {judge: scripted/r.yaml}\nmetrics: [tone]\ncustom_metrics: [tone.md]\n")
    project.write(
        "r.yaml", "replies: [{when: {metric: tone}, reply: {evidence: '', reason: '', label: kind}}]\n"
    )
    project.agent(AGENT.format(answer=GOOD))
    project.scenarios("cases: [{id: a, input: hello, expected_output_contains: ['yes']}]\n")
    for text in ("Is it kind?", "Is it kind?", "Is it very kind?"):
        project.write("tone.md", RUBRIC.format(text=text))
        assert project.run().code == 0
    runs = sorted((project.root / ".agenteval/runs").iterdir(), key=lambda folder: folder.stat().st_mtime_ns)
    assert project.call("diff", str(runs[0]), str(runs[1])).code == 3
    done = project.call("diff", "previous", "latest")
    assert (done.code, done.out) == (2, "")
    assert "the prompt 'tone' differs" in done.err


def test_after_a_selection_what_both_ran_is_compared_and_the_rest_is_told_once(suite: Project) -> None:
    """``--last-failed`` after a run is the usual pair: that the others did not run again is no mistake."""
    assert rerun(suite, BAD).code == 1
    assert rerun(suite, GOOD, "--last-failed").code == 0
    done, told = comparison(suite)
    assert done.code == told["exit_code"] == 3, done.all  # one epoch each decides nothing
    assert [s["id"] for s in told["agents"][0]["scenarios"]] == ["case-2"]
    assert {(each["id"], each["state"]) for each in told["apart"]} == {
        (f"case-{n}", "not selected") for n in (0, 1, 3, 4)
    }
    sentence = (
        f"left out: 4 scenarios that run {told['after']} did not select: case-0, case-1, case-3, case-4"
    )
    assert " ".join(done.out.split()).count(sentence) == 1
    assert "removed" not in done.out


def test_where_all_that_was_selected_has_changed_nothing_can_be_compared(suite: Project) -> None:
    rerun(suite, BAD)
    suite.scenarios(f"cases:\n{CASES.replace('hello', 'good day')}")
    assert rerun(suite, BAD, "--last-failed").code == 1
    done = suite.call("diff", "previous", "latest")
    assert done.code == 2
    assert "scenario 'case-2' differs: turns differ" in done.err


def test_two_selections_without_a_common_scenario_are_refused(suite: Project) -> None:
    suite.run("-s", "case-1")
    suite.run("-s", "case-2")
    done = suite.call("diff", "previous", "latest")
    assert done.code == 2
    assert "no scenario is the same in both runs" in done.err


def test_a_failure_that_was_there_before_is_back_again(suite: Project) -> None:
    rerun(suite, BAD)
    rerun(suite, GOOD)
    rerun(suite, BAD)
    done, told = comparison(suite)
    (failure,) = told["agents"][0]["failures"]
    assert failure["state"] == "back again"
    assert failure["seen_in"]
    assert f"back again (seen in {failure['seen_in']})" in " ".join(done.out.split())


def test_markdown_and_mistakes(suite: Project) -> None:
    suite.run()
    suite.run()
    done = suite.call("diff", "previous", "latest", "--report", "markdown=diff.md")
    assert (done.code, done.out) == (3, "")
    text = (suite.root / "diff.md").read_text("utf-8")
    assert "# ⚠️ Not decided" in text
    assert "| ⚠️ | case" in text
    assert "did you mean 'json'?" in suite.call("diff", "previous", "latest", "--report", "jsn").err
    assert suite.call("diff", "nothing", "latest").code == 2
    assert suite.call("diff", "previous", "latest", "--margin", "2").code == 2
    shown = json.loads(suite.call("diff", "previous", "latest", "--report", "json").out)
    assert shown["verdict"] == "inconclusive"
