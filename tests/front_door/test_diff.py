"""Two runs compared: by the values alone, and through the command line."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.core.run_summary import FailureSummary, RunSummary, ScenarioSummary
from agenteval.core.score import Verdict
from agenteval.verdict.comparability import why_not_comparable
from agenteval.verdict.comparison import FailureState, compare_runs
from agenteval.verdict.statistics import Change
from tests.support.kit import Done, Project
from tests.support.results import has, last_line

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


def assert_refused(before: RunSummary, after: RunSummary, *differences: tuple[str, ...]) -> None:
    """For each difference, in order, a reason that names its facts; ``()``: no scenario is in both."""
    reasons = [problem.what for problem in why_not_comparable(before, after)]
    assert len(reasons) == len(differences), reasons
    for reason, facts in zip(reasons, differences, strict=True):
        assert has(reason, *facts), (reason, facts)


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


@settings(max_examples=30)
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


def with_scenarios(side: RunSummary, scenarios: Iterable[ScenarioSummary]) -> RunSummary:
    return side.model_copy(update={"scenarios": tuple(scenarios)})


@settings(max_examples=30)
@given(pairs(), st.randoms())
def test_the_order_of_scenarios_does_not_matter(both: tuple[RunSummary, RunSummary], random: Any) -> None:
    shuffled = [with_scenarios(side, random.sample(side.scenarios, len(side.scenarios))) for side in both]
    one, other = compare_runs(*shuffled).model_dump(), compare_runs(*both).model_dump()
    assert rounded(one) == rounded(other)


def rounded(value: Any) -> Any:
    """Without the last digits of sums that were added in another order."""
    if isinstance(value, float):
        return round(value, 9) + 0.0
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list | tuple) else value


@settings(max_examples=30)
@given(pairs())
def test_other_names_change_nothing_but_the_names(both: tuple[RunSummary, RunSummary]) -> None:
    renamed = [
        with_scenarios(
            side, (s.model_copy(update={"id": f"x-{s.id}", "agent": "other"}) for s in side.scenarios)
        )
        for side in both
    ]
    text = compare_runs(*renamed).model_dump_json().replace('"x-s', '"s').replace('"other"', '"bot"')
    assert json.loads(text) == json.loads(compare_runs(*both).model_dump_json())


def completed(side: RunSummary, success: int) -> RunSummary:
    """As if every missing epoch had succeeded (1) or failed (0)."""

    def known(s: ScenarioSummary) -> ScenarioSummary:
        successes = s.successes + success * (s.planned - s.decided)
        return s.model_copy(update={"decided": s.planned, "known": s.planned, "successes": successes})

    return with_scenarios(side, map(known, side.scenarios))


@settings(max_examples=30)
@given(pairs())
def test_what_is_decided_with_missing_epochs_is_decided_however_they_had_ended(
    both: tuple[RunSummary, RunSummary],
) -> None:
    verdict = compare_runs(*both).verdict
    if verdict is not Verdict.INCONCLUSIVE:
        for success in (0, 1):
            assert compare_runs(*(completed(side, success) for side in both)).verdict is verdict


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


FULL, LOST_EPOCHS = (20, 20), (16, 16, 20)


@pytest.mark.parametrize(
    ("before", "after", "margin", "code"),
    [
        (FULL, FULL, 0.1, 0),
        (FULL, LOST_EPOCHS, 0.1, 3),
        # Those of the baseline cannot hide a drop: had they all succeeded, nothing would have dropped either.
        (LOST_EPOCHS, FULL, 0.1, 0),
        ((19, 20), (18, 20), 0.05, 3),
        ((19, 20), (18, 20), 0.3, 0),
    ],
)
def test_lost_epochs_and_the_margin_decide(
    before: tuple[int, ...], after: tuple[int, ...], margin: float, code: int
) -> None:
    sides = [run(*(scenario(f"s{i}", *counts) for i in range(5))) for counts in (before, after)]
    assert compare_runs(*sides, margin=margin).exit_code == code


def judged(*scores: tuple[float, ...]) -> RunSummary:
    return run(*(scenario(f"s{i}", 1, 2, scores={"clarity": own}) for i, own in enumerate(scores)))


def test_means_are_paired_by_scenario_and_each_counts_once() -> None:
    before, after = judged((1.0, 3.0), (4.0,)), judged((4.0,), (5.0,))
    (mean,) = compare_runs(before, after).agents[0].scores
    assert (mean.before, mean.after, mean.change, mean.scenarios) == (3.0, 4.5, 1.5, 2)
    # Differences 2 and 1: mean 1.5, standard error 0.5, t(0.975, 1) = 12.706.
    assert mean.low == pytest.approx(1.5 - 12.706 * 0.5, abs=1e-3)
    assert mean.high == pytest.approx(1.5 + 12.706 * 0.5, abs=1e-3)


def test_a_change_that_is_everywhere_the_same_has_no_interval() -> None:
    for before, after in ((((1.0,), (2.0,)), ((2.0,), (3.0,))), (((1.0,),), ((2.0,),))):
        (mean,) = compare_runs(judged(*before), judged(*after)).agents[0].scores
        assert (mean.change, mean.low, mean.high) == (1.0, None, None)


def test_the_worst_agent_decides_and_the_worst_scenario_stands_first() -> None:
    def of_two(*successes: int) -> RunSummary:
        named = [("bot", "a"), ("bot", "b"), ("other", "a"), ("other", "b")]
        pairs = zip(named, successes, strict=True)
        return run(*(scenario(name, n, 20, agent=who) for (who, name), n in pairs))

    compared = compare_runs(of_two(20, 20, 20, 20), of_two(20, 20, 16, 0))
    assert [agent.verdict for agent in compared.agents] == [Verdict.INCONCLUSIVE, Verdict.FAILED]
    assert (compared.verdict, compared.exit_code) == (Verdict.FAILED, 1)
    changes = [(each.id, each.change) for each in compared.agents[1].scenarios]
    assert changes == [("b", Change.REGRESSED), ("a", Change.UNDECIDED)]


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
    assert_refused(BASE, BASE)


def test_scenarios_that_differ_are_named_with_what_differs() -> None:
    other = run(scenario("a", 1, 1), scenario("b", 1, 1, content={"turns": "2", "goal": "3"}))
    assert apart(BASE, other) == [("b", "changed", ("goal", "turns"))]
    more = run(*BASE.scenarios, scenario("c", 1, 1))
    assert apart(BASE, more) == [("c", "new", ())]
    assert apart(more, BASE) == [("c", "removed", ())]
    chosen = BASE.model_copy(update={"is_selection": True})
    assert apart(chosen, more) == apart(more, chosen) == [("c", "not selected", ())]


def test_only_runs_without_a_common_scenario_are_refused() -> None:
    other = run(scenario("a", 1, 1), scenario("c", 1, 1))
    assert_refused(BASE, other)
    assert [s.id for s in compare_runs(BASE, other).agents[0].scenarios] == ["a"]
    only = [("'a'", "second"), ("'b'", "second"), ("'x'", "first")]
    assert_refused(run(scenario("x", 1, 1)), BASE, (), *only)


MEASURED = {"judged": ("clarity",), "prompts": {"clarity": "1"}}
SIMULATED = run(scenario("a", 1, 1, simulated=True))
CRITERIA = run(scenario("a", 1, 1, criteria=True))
JUDGED_TWICE = BASE.model_copy(update={"judged": ("clarity", "stars"), "judged_by": ("m1", "m2")})
GOAL = {"judged": ("goal_completion",), "decisive": ("goal_completion",)}
UNUSED_PROMPTS = [dict.fromkeys(("clarity", "simulated_user", "criteria"), n) for n in ("1", "2")]


@pytest.mark.parametrize(
    ("base", "first", "second", "differences"),
    [
        (BASE, {**MEASURED, "prompts": {"clarity": "1"}}, {**MEASURED, "prompts": {"clarity": "2"}},
         [("prompt", "'clarity'")]),
        (BASE, {**MEASURED, "judge": {"model": "x/a"}}, {**MEASURED, "judge": {"model": "x/b"}},
         [("judge", "x/a", "x/b")]),
        (BASE, {**MEASURED, "judged_by": ("m1",)}, {**MEASURED, "judged_by": ("m2",)},
         [("judge", "m1", "m2")]),
        (BASE, {**MEASURED, "settings": {"now": "high"}}, {**MEASURED, "settings": {"now": "low"}},
         [("'now'", "high", "low")]),
        (BASE, {}, GOAL, [("'goal_completion'", "second")]),
        (SIMULATED, {}, {"user": {"model": "x/b"}, "prompts": {"simulated_user": "2"}},
         [("prompt", "'simulated_user'"), ("simulated user", "x/b")]),
        (SIMULATED, {"settings": {"max_turns": 4}}, {"settings": {"max_turns": 8}},
         [("'max_turns'", "4", "8")]),
        (CRITERIA, {}, {"judge": {"model": "x/b"}}, [("judge", "x/b")]),
        # What played no part does not matter: no user was simulated, no judge was asked of the same, nobody
        # answered with a name, a prompt was not used in both.
        (BASE, {"settings": {"max_turns": 4}}, {"settings": {"max_turns": 8}}, []),
        (BASE, {}, {"user": {"model": "x/b"}, "played_by": ("m",)}, []),
        (BASE, {}, {"judge": {"model": "x/b"}}, []),
        (JUDGED_TWICE, {}, {"judged": ("clarity",), "judged_by": ("m1",)}, []),
        (JUDGED_TWICE, {}, {"judged_by": ()}, []),
        (BASE, {"prompts": UNUSED_PROMPTS[0]}, {"prompts": UNUSED_PROMPTS[1], "judged": ("clarity",)}, []),
    ],
)  # fmt: skip
def test_both_runs_must_have_been_measured_alike(
    base: RunSummary, first: dict[str, Any], second: dict[str, Any], differences: list[tuple[str, ...]]
) -> None:
    sides = [base.model_copy(update=update) for update in (first, second)]
    assert_refused(*sides, *differences)
    if differences:
        with pytest.raises(AuthorError) as refused:
            compare_runs(*sides)
        assert refused.value.exit_code == 2


@pytest.mark.parametrize("count", [7, 8, 9, 10])
def test_eight_that_differ_are_named(count: int) -> None:
    differing = [scenario(f"s{n}", 1, 1) for n in range(count)]
    named = [(f"'s{n}'", "turns") for n in range(min(count, 8))]
    more = [(f"{count - 8} more",)] if count > 8 else []
    edited = (s.model_copy(update={"content": {}}) for s in differing)
    assert_refused(run(*differing), run(*edited), (), *named, *more)


def test_agents_are_paired_by_name_unless_each_run_has_one() -> None:
    two = run(scenario("a", 1, 1), scenario("a", 1, 1, agent="other"))
    assert [agent.after for agent in compare_runs(two, two).agents] == ["bot", "other"]
    one = compare_runs(two, run(scenario("a", 1, 1)))
    (left_out,) = one.left_out
    assert "'other'" in left_out
    assert "first" in left_out
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
LOST = '(_ for _ in ()).throw(ConnectionRefusedError("down")) if ctx.epoch < 4 else "yes"'
OTHER_BAD = BAD.replace('"no"', '"nein"').replace("case-2", "case-1")
CASES = "".join(f"  - {{id: case-{n}, input: hello, expected_output_contains: ['yes']}}\n" for n in range(5))
EDITED = CASES.replace("hello", "goodbye", 1).replace("case-4", "case-9")
"""``case-0`` asks for something else, ``case-4`` is gone, ``case-9`` is new."""
EDITED_2 = CASES.replace("case-2, input: hello", "case-2, input: goodbye")
RENAMED = CASES.replace("id: case-1", "id: case-1, tags: [new], name: New")
ASKS_OTHERWISE = CASES.replace("hello", "good day")
RUNS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # In this order, by name: the cases, what the agent answers, options of the run.
    "good": (CASES, GOOD, ("--epochs", "15")),
    "bad": (CASES, BAD, ("--epochs", "15")),
    "good again": (CASES, GOOD, ("--epochs", "15")),
    "lost": (CASES, LOST, ("--epochs", "15")),
    "bad again": (CASES, BAD, ()),
    "last failed": (CASES, GOOD, ("--last-failed",)),
    "once": (CASES, GOOD, ()),
    "thrice": (CASES, GOOD, ("--epochs", "3")),
    "only case-1": (CASES, GOOD, ("-s", "case-1")),
    "only case-2": (CASES, GOOD, ("-s", "case-2")),
    "renamed": (f"# moved down\n{RENAMED}", GOOD, ("--epochs", "2")),
    "22 epochs": (CASES, GOOD, ("--epochs", "22")),
    "edited": (EDITED, GOOD, ("--epochs", "22")),
    "edited and bad": (EDITED_2, BAD, ("--epochs", "15")),
    "edited and worse": (EDITED_2, OTHER_BAD, ("--epochs", "15")),
    "bad at last": (CASES, BAD, ()),
    "all asks otherwise": (ASKS_OTHERWISE, BAD, ("--last-failed",)),
}


class Runs(NamedTuple):
    project: Project
    ids: dict[str, str]
    codes: dict[str, int]

    def diff(self, before: str, after: str, *options: str) -> Done:
        return self.project.call("diff", self.ids[before], self.ids[after], *options)

    def compare(self, before: str, after: str, *options: str) -> tuple[Done, dict[str, Any]]:
        """What the terminal shows, and the JSON report, which must agree on the exit code."""
        done = self.diff(before, after, "--report", "json=diff.json", "--report", "terminal", *options)
        compared: dict[str, Any] = json.loads((self.project.root / "diff.json").read_text("utf-8"))
        assert done.code == compared["exit_code"], done.all
        return done, compared


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    project = Project(tmp_path_factory.mktemp("diff"))
    project.config()
    ids, codes = {}, {}
    for name, (cases, answer, options) in RUNS.items():
        project.scenarios(f"cases:\n{cases}")
        project.agent(AGENT.format(answer=answer))
        codes[name] = project.run(*options).code
        ids[name] = project.results()["run"]["id"]
    return Runs(project, ids, codes)


def test_an_agent_that_got_worse_is_red_and_its_scenario_is_named(runs: Runs) -> None:
    done, compared = runs.compare("good", "bad")
    assert done.code == 1
    (agent,) = compared["agents"]
    assert agent["dropped"] == ["case-2"]
    changes = {s["id"]: s["change"] for s in agent["scenarios"]}
    assert changes.pop("case-2") == "regressed"
    assert "regressed" not in changes.values()
    (failure,) = agent["failures"]
    assert (failure["state"], failure["scenario"], failure["met_after"]) == ("new", "case-2", 15)
    assert has(last_line(done), "REGRESSED", "case-2", "exit 1")
    assert failure["fingerprint"] in done.out


def test_an_agent_that_got_better_is_green(runs: Runs) -> None:
    done, compared = runs.compare("bad", "good again")
    assert done.code == 0
    (agent,) = compared["agents"]
    assert agent["scenarios"][-1]["change"] in ("unchanged", "improved")
    assert {s["id"] for s in agent["scenarios"] if s["change"] == "improved"} == {"case-2"}
    assert [f["state"] for f in agent["failures"]] == ["fixed"]


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [("good", "good again", 0), ("thrice", "thrice", 3), ("once", "once", 3)],
    ids=["15 epochs are enough", "3 are too few", "1 is too few"],
)
def test_the_same_agent_is_green_if_there_are_enough_epochs(
    runs: Runs, before: str, after: str, code: int
) -> None:
    done, compared = runs.compare(before, after)
    assert done.code == code
    needed = compared["agents"][0]["epochs_to_decide"]
    assert (needed is None) is (code == 0)
    last = last_line(done)
    assert has(last, f"exit {code}", "" if needed is None else f"{needed:,}")
    assert ("NO REGRESSION" in last) is (code == 0)
    assert "improved" not in done.out


def test_lost_samples_are_missing_and_decide_nothing(runs: Runs) -> None:
    done, compared = runs.compare("good again", "lost")
    assert done.code == 3
    after = compared["agents"][0]["scenarios"][0]["after"]
    assert after == {"successes": 11, "decided": 11, "planned": 15}
    assert "11/11 (4 missing)" in done.out


@pytest.mark.parametrize("options", [(), ("--common",)])  # the older way to ask for it
def test_an_edited_scenario_is_listed_apart_and_the_others_are_compared(
    runs: Runs, options: tuple[str, ...]
) -> None:
    done, compared = runs.compare("22 epochs", "edited", *options)
    assert done.code == 0
    assert [s["id"] for s in compared["agents"][0]["scenarios"]] == ["case-1", "case-2", "case-3"]
    assert compared["apart"] == [
        {"id": "case-0", "agent": "bot", "state": "changed", "parts": ["turns"],
         "before": "passed", "after": "passed"},
        {"id": "case-9", "agent": "bot", "state": "new", "parts": [], "before": None, "after": "passed"},
        {"id": "case-4", "agent": "bot", "state": "removed", "parts": [], "before": "passed", "after": None},
    ]  # fmt: skip
    rows = [line.split() for line in done.out.splitlines()]
    assert ["case-0", "changed", "passed", "passed", "turns"] in rows
    assert ["case-9", "new", "–", "passed"] in rows
    assert ["case-4", "removed", "passed", "–"] in rows
    end = " ".join(done.out.split()).rpartition("(exit 0)")[2]
    assert has(end, "1 changed", "1 new", "1 removed")
    text = runs.diff("22 epochs", "edited", "--report", "markdown").out
    assert "| case-0 | changed | passed | passed | turns |" in text


def test_a_changed_scenario_that_no_longer_passes_is_not_decided_and_hides_no_regression(runs: Runs) -> None:
    """Whether the edit or the agent did it, nobody knows: that is not green."""
    done, compared = runs.compare("good again", "edited and bad")
    assert done.code == 3
    assert compared["agents"][0]["verdict"] == "passed"
    last = " ".join(done.out.split()).rpartition("NOT DECIDED")[2]
    assert "case-2" in last
    assert ["case-2", "changed", "passed", "failed", "turns"] in [s.split() for s in done.out.splitlines()]
    assert runs.diff("edited and bad", "edited and worse").code == 1


@pytest.mark.parametrize(
    ("before", "after", "facts"),
    [
        ("only case-1", "only case-2", ("'case-1'", "'case-2'")),
        ("bad at last", "all asks otherwise", ("'case-2'", "turns")),
    ],
)
def test_runs_without_a_common_scenario_are_refused(
    runs: Runs, before: str, after: str, facts: tuple[str, ...]
) -> None:
    done = runs.diff(before, after)
    assert (done.code, done.out) == (2, "")
    assert has(done.err, *facts), done.err


def test_names_tags_epochs_and_places_may_differ(runs: Runs) -> None:
    _, compared = runs.compare("once", "renamed")
    assert (compared["exit_code"], compared["apart"]) == (3, [])


def test_after_a_selection_what_both_ran_is_compared_and_the_rest_is_listed_once(runs: Runs) -> None:
    """``--last-failed`` after a run is the usual pair: that the others did not run again is no mistake."""
    assert (runs.codes["bad again"], runs.codes["last failed"]) == (1, 0)
    done, compared = runs.compare("bad again", "last failed")
    assert done.code == 3  # one epoch each decides nothing
    assert [s["id"] for s in compared["agents"][0]["scenarios"]] == ["case-2"]
    left_out = [f"case-{n}" for n in (0, 1, 3, 4)]
    assert {(each["id"], each["state"]) for each in compared["apart"]} == {
        (name, "not selected") for name in left_out
    }
    text = " ".join(done.out.split())
    assert text.count(", ".join(left_out)) == 1
    assert compared["after"] in text.partition(", ".join(left_out))[0].rpartition("4 scenarios")[2]
    assert "removed" not in text


def test_a_failure_that_an_earlier_run_had_is_back_again(runs: Runs) -> None:
    done, compared = runs.compare("good again", "bad again")
    (failure,) = compared["agents"][0]["failures"]
    assert (failure["state"], failure["seen_in"]) == ("back again", runs.ids["bad"])
    assert runs.ids["bad"] in " ".join(done.out.split()).partition("back again")[2]


def test_a_report_is_a_file_or_is_printed(runs: Runs) -> None:
    done = runs.diff("once", "once", "--report", "markdown=diff.md")
    assert (done.code, done.out) == (3, "")
    text = (runs.project.root / "diff.md").read_text("utf-8")
    assert "\n# ⚠️" in f"\n{text}"
    assert "| ⚠️ | case" in text
    assert json.loads(runs.diff("once", "once", "--report", "json").out)["verdict"] == "inconclusive"


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (("previous", "latest", "--report", "jsn"), ("'json'",)),
        (("nothing", "latest"), ("nothing",)),
        (("latest", "latest", "--margin", "2"), ("--margin",)),
    ],
)
def test_mistakes_of_the_command_line(runs: Runs, arguments: tuple[str, ...], facts: tuple[str, ...]) -> None:
    done = runs.project.call("diff", *arguments)
    assert done.code == 2
    assert has(done.err, *facts), done.err


RUBRIC = "---\nmetric: tone\nscope: turn\nlabels: {{kind: ok, rude: medium}}\nversion: 1\n---\n{text}\n"


def test_another_prompt_of_a_judge_is_refused_by_name(project: Project) -> None:
    project.config("models: {judge: scripted/r.yaml}\nmetrics: [tone]\ncustom_metrics: [tone.md]\n")
    project.write(
        "r.yaml", "replies: [{when: {metric: tone}, reply: {evidence: '', reason: '', label: kind}}]\n"
    )
    project.agent(AGENT.format(answer=GOOD))
    project.scenarios("cases: [{id: a, input: hello, expected_output_contains: ['yes']}]\n")
    codes = []
    for text in ("Is it kind?", "Is it kind?", "Is it very kind?"):
        project.write("tone.md", RUBRIC.format(text=text))
        assert project.run().code == 0
        done = project.call("diff", "previous", "latest")
        codes.append(done.code)
    assert codes[1:] == [3, 2]
    assert done.out == ""
    assert "'tone'" in done.err
