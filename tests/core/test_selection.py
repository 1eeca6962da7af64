"""Which scenarios are run, with which agents, and how often."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.core.config import AgentConfig, Config
from agenteval.core.errors import AuthorError, NothingSelectedError
from agenteval.core.scenario import EpochRange, Scenario
from agenteval.core.selection import (
    DEFAULT_EPOCHS,
    Filters,
    agents_of,
    describe_unknown_id,
    draw_subset,
    full_id,
    is_in_any,
    is_in_file,
    path_ends_with,
    ranges_of,
    samples_of,
    scenario_file,
    select,
    split_id,
)


def scenario(id: str, file: str = "scenarios/orders.yaml", **more: Any) -> Scenario:
    return Scenario.model_validate({"id": id, "name": "", "source": f"{file}:3", "turns": ["Hi"], **more})


SUITE = (
    scenario("refund", tags=["money", "slow"], category="capability"),
    scenario("refund-late", name="Too late", tags=["money"], category="robustness"),
    scenario("greet", "scenarios/small/talk.yaml", tags=["quick"], category="capability"),
)


def selected(**filters: Any) -> list[str]:
    return [each.id for each in select(SUITE, Filters(**filters))]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, ["refund", "refund-late", "greet"]),
        ({"scenarios": ("refund",)}, ["refund"]),  # a whole id is no part of another
        ({"scenarios": ("refun",)}, ["refund", "refund-late"]),
        ({"scenarios": ("REFUND",)}, ["refund", "refund-late"]),
        ({"scenarios": ("too LATE",)}, ["refund-late"]),
        ({"scenarios": ("greet", "refund")}, ["refund", "greet"]),  # in the order of the suite
        ({"scenarios": ("refund", "late")}, ["refund", "refund-late"]),
        ({"scenarios": ("scenarios/orders.yaml::refund",)}, ["refund"]),
        ({"scenarios": ("orders.yaml::refund",)}, ["refund"]),
        ({"tags": ("money",)}, ["refund", "refund-late"]),
        ({"tags": ("slow", "quick")}, ["refund", "greet"]),
        ({"categories": ("capability",)}, ["refund", "greet"]),
        ({"categories": ("capability", "robustness")}, ["refund", "refund-late", "greet"]),
        ({"tags": ("money",), "categories": ("capability",)}, ["refund"]),
        ({"scenarios": ("late",), "tags": ("money",)}, ["refund-late"]),
        ({"expression": "money and not slow"}, ["refund-late"]),
        ({"expression": "talk"}, ["greet"]),  # its file
        ({"expression": "late or greet", "categories": ("capability",)}, ["greet"]),
        ({"first": 1, "sample": 1, "agent": "x"}, ["refund", "refund-late", "greet"]),
    ],
)
def test_what_is_selected(filters: dict[str, Any], ids: list[str]) -> None:
    assert selected(**filters) == ids


@pytest.mark.parametrize(
    ("filters", "named"),
    [
        ({"scenarios": ("other",)}, [("--scenario other",)]),
        ({"scenarios": ("refund", "other")}, [("--scenario other",)]),
        ({"tags": ("money", "none"), "scenarios": ("other",)}, [("--scenario other",), ("--tag none",)]),
        ({"categories": ("none",)}, [("--category none",)]),
        ({"expression": "none"}, [("-k 'none'", "agenteval list")]),
        ({"tags": ("quick",), "categories": ("robustness",)}, [("--tag quick --category robustness",)]),
        ({"tags": ("quick",), "expression": "slow"}, [("--tag quick -k 'slow'",)]),
        ({"scenarios": ("refnd",)}, [("'refund'",)]),
        ({"tags": ("mony",)}, [("'money'",)]),
        ({"categories": ("capabilit",)}, [("'capability'",)]),
        # the id is in another file, or the file has other ids
        ({"scenarios": ("talk.yaml::refund",)}, [("scenarios/orders.yaml::refund",)]),
        ({"scenarios": ("talk.yaml::other",)}, [("known: greet",)]),
        ({"scenarios": ("nowhere.yaml::other",)}, [("3 scenarios",)]),
    ],
)
def test_a_filter_that_matches_nothing_is_told(filters: dict[str, Any], named: list[tuple[str, ...]]) -> None:
    with pytest.raises(NothingSelectedError) as error:
        selected(**filters)
    told = [f"{problem.what} {problem.remedy}" for problem in error.value.problems]
    assert len(told) == len(named)
    for text, facts in zip(told, named, strict=True):
        assert all(fact in text for fact in facts), (text, facts)
        assert "0 of 3 scenarios" in text


def test_no_scenario_at_all() -> None:
    with pytest.raises(NothingSelectedError):
        select([], Filters())


def test_a_mistake_in_an_expression() -> None:
    with pytest.raises(AuthorError) as error:
        selected(expression="a and")
    assert not isinstance(error.value, NothingSelectedError)


@pytest.mark.parametrize(("count", "more"), [(8, ""), (9, "and 1 more"), (1009, "and 1,001 more")])
def test_only_the_first_names_are_listed(count: int, more: str) -> None:
    names = [f"x{n:04}" for n in range(count)]
    problem = describe_unknown_id("a.yaml", "quite-another", [*names, *names])
    assert "a.yaml" in problem.what
    assert "'quite-another'" in problem.what
    assert [name for name in names if name in problem.remedy] == names[:8]
    assert more in problem.remedy
    assert ("more" in problem.remedy) is bool(more)
    assert "'x0003'" in describe_unknown_id("a.yaml", "X0003", names).remedy


# ── FILE::ID ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.yaml::refund", ("a.yaml", "refund")),
        ("a.yaml::b::c", ("a.yaml", "b::c")),
        ("a.yaml::", ("", "")),
        ("::refund", ("", "")),
        ("refund", ("", "")),
        ("a.yaml:refund", ("", "")),
        ("", ("", "")),
    ],
)
def test_a_file_and_an_id(text: str, parts: tuple[str, str]) -> None:
    assert split_id(text) == parts


def test_the_full_id_of_a_scenario() -> None:
    greet = SUITE[2]
    assert scenario_file(greet) == "scenarios/small/talk.yaml"
    assert full_id(greet) == "scenarios/small/talk.yaml::greet"
    assert split_id(full_id(greet)) == (scenario_file(greet), "greet")
    assert [is_in_file(each, "talk.yaml") for each in SUITE] == [False, False, True]


@pytest.mark.parametrize(
    ("path", "end", "ends"),
    [
        ("a/b.yaml", "b.yaml", True),
        ("a/b.yaml", "a/b.yaml", True),
        ("a/b.yaml", "./a/b.yaml", True),
        ("a/b.yaml", "x/../a/b.yaml", True),
        ("a/b.yaml", "x/a/b.yaml", False),
        ("a/bb.yaml", "b.yaml", False),
        ("a/b.yaml", "a", False),
        ("a/b.yaml", "", False),
    ],
)
def test_the_end_of_a_path(path: str, end: str, ends: bool) -> None:
    assert path_ends_with(path, end) is ends


def test_a_part_of_a_name() -> None:
    assert is_in_any("FUND", ("x", "refund"))
    assert not is_in_any("funds", ("refund", ""))
    assert not is_in_any("x", ())


# ── fewer of them ────────────────────────────────────────────────────────────────────────────────

IDS = tuple(f"s{n}" for n in range(20))


@pytest.mark.parametrize(
    ("first", "sample", "count"),
    [
        *((None, None, 20), (3, None, 3), (0, None, 0), (30, None, 20), (None, 5, 5), (None, 0, 0)),
        *((None, 30, 20), (2, 5, 2), (5, 2, 2)),
    ],
)
def test_how_many_are_drawn(first: int | None, sample: int | None, count: int) -> None:
    drawn = draw_subset(IDS, Filters(first=first, sample=sample), 7)
    assert len(drawn) == count
    assert list(drawn) == [id for id in IDS if id in drawn]
    if sample is None:
        assert tuple(drawn) == IDS[:count]


def test_a_draw_rests_on_the_seed_and_each_id() -> None:
    draws = {tuple(draw_subset(IDS, Filters(sample=5), seed)) for seed in range(5)}
    assert len(draws) == 5
    kept = set(draw_subset(IDS, Filters(sample=5), 1))
    assert kept == set(draw_subset(IDS[::-1], Filters(sample=5), 1))
    assert len(kept & set(draw_subset((*IDS, "new"), Filters(sample=5), 1))) >= 4
    assert list(draw_subset(IDS, Filters(sample=5, first=2), 1)) == [id for id in IDS if id in kept][:2]


# ── agents and epochs ────────────────────────────────────────────────────────────────────────────


def agent(name: str) -> AgentConfig:
    return AgentConfig.model_validate({"name": name, "target": "bot.py:agent"})


def config(**fields: Any) -> Config:
    return Config().model_copy(update=fields)


ONE, TWO, THREE = map(agent, ("one", "two", "three"))


def planned(scenarios: Any, settings: Config, epochs: int | None = None, **filters: Any) -> list[str]:
    samples = samples_of(scenarios, settings, Filters(**filters), epochs=epochs)
    return [f"{each.key.scenario} {each.key.agent} {each.key.epoch}" for each in samples]


def test_all_agents_that_may_be_named() -> None:
    settings = config(agent=ONE, agents={"two": TWO}, compare=(THREE,))
    assert set(agents_of(settings, Filters())) == {"one", "two", "three"}
    assert set(agents_of(settings, Filters(agent="two"))) == {"one", "two", "three"}
    assert agents_of(config(), Filters()) == {}
    other = agent("one")
    assert agents_of(config(agent=ONE, agents={"one": other}), Filters())["one"] is other
    with pytest.raises(AuthorError) as error:
        agents_of(settings, Filters(agent="thre"))
    assert "'three'" in str(error.value)


SIMULATED = scenario("s", turns=None, goal="Get money back.")
SCRIPTED = scenario("t")


@pytest.mark.parametrize(
    ("own", "configured", "given", "counts"),
    [
        (None, None, None, (DEFAULT_EPOCHS, 1)),
        (None, 4, None, (4, 4)),
        (2, 4, None, (2, 2)),
        (2, 4, 5, (5, 5)),
        (EpochRange(min=2, max=9), None, None, (2, 2)),
        (None, EpochRange(min=3, max=9), None, (3, 3)),
        (EpochRange(min=2, max=9), None, 5, (5, 5)),
    ],
)
def test_how_often_a_scenario_is_run(own: Any, configured: Any, given: Any, counts: tuple[int, int]) -> None:
    scenarios = [each.model_copy(update={"epochs": own}) for each in (SIMULATED, SCRIPTED)]
    keys = planned(scenarios, config(agent=ONE, epochs=configured), given)
    assert keys == [
        f"{name} one {epoch}" for name, count in zip("st", counts, strict=True) for epoch in range(count)
    ]


def test_agents_alternate_within_an_epoch() -> None:
    keys = planned([SCRIPTED], config(compare=(ONE, TWO), epochs=2))
    assert keys == ["t one 0", "t two 0", "t one 1", "t two 1"]


def test_a_seed_for_each_conversation() -> None:
    settings = config(compare=(ONE, TWO), epochs=2)
    samples = samples_of([SCRIPTED], settings, Filters())
    seeds = [each.seed for each in samples]
    assert len(set(seeds)) == 4
    assert all(each.scenario is SCRIPTED for each in samples)
    assert [each.seed for each in samples_of([SCRIPTED], settings, Filters())] == seeds
    other = settings.model_copy(update={"seed": settings.seed + 1})
    assert [each.seed for each in samples_of([SCRIPTED], other, Filters())] != seeds


OWN = SCRIPTED.model_copy(update={"agent": "two"})


@pytest.mark.parametrize(
    ("scenarios", "settings", "filters", "keys"),
    [
        ([SCRIPTED], {"agent": ONE}, {}, ["t one 0"]),
        ([OWN], {"agent": ONE, "agents": {"two": TWO}}, {}, ["t two 0"]),
        ([OWN], {"agents": {"two": TWO}}, {}, ["t two 0"]),
        ([OWN], {"agent": ONE, "agents": {"two": TWO}}, {"agent": "one"}, ["t one 0"]),
        ([SCRIPTED], {"compare": (ONE, TWO)}, {"agent": "two"}, ["t two 0"]),
        ([OWN], {"compare": (ONE, TWO)}, {"agent": "one"}, ["t one 0"]),
        ([], {}, {}, []),
    ],
)
def test_the_agents_of_a_scenario(scenarios: Any, settings: Any, filters: Any, keys: list[str]) -> None:
    assert planned(scenarios, config(**settings), **filters) == keys


@pytest.mark.parametrize(
    ("scenarios", "settings", "count", "word"),
    [
        ([SCRIPTED], {}, 1, "target"),
        ([OWN], {"agent": ONE}, 1, "'two'"),
        ([OWN, SCRIPTED, OWN.model_copy(update={"id": "u"})], {"agent": ONE}, 2, "'two'"),
        ([OWN], {"compare": (ONE, TWO)}, 1, "`compare`"),
    ],
)
def test_an_agent_that_cannot_be_chosen(scenarios: Any, settings: Any, count: int, word: str) -> None:
    with pytest.raises(AuthorError) as error:
        planned(scenarios, config(**settings))
    assert len(error.value.problems) == count
    assert word in str(error.value)
    places = [problem.place for problem in error.value.problems if problem.place]
    assert all((place.path, place.line) == ("scenarios/orders.yaml", 3) for place in places)
    assert bool(places) is bool(settings)


RANGED = SCRIPTED.model_copy(update={"epochs": EpochRange(min=2, max=9), "lines": {"epochs": 7}})


def test_ranges_need_a_gate_that_can_end_them() -> None:
    gate = {"gates": {"pass_rate": {"at_least": 0.9, "reject_below": 0.7}}}
    settings = Config.model_validate(gate)
    assert ranges_of([RANGED, SIMULATED], settings) == {"t": EpochRange(min=2, max=9)}
    assert ranges_of([RANGED], settings, epochs=4) == {}
    assert ranges_of([RANGED], Config(), epochs=4) == {}
    assert ranges_of([SCRIPTED], Config()) == {}
    with pytest.raises(AuthorError) as error:
        ranges_of([RANGED, RANGED.model_copy(update={"id": "u", "lines": {"epochs": 5}})], Config())
    places = [problem.place for problem in error.value.problems]
    assert [(place.path, place.line) for place in places if place] == [
        ("scenarios/orders.yaml", 5),
        ("scenarios/orders.yaml", 7),
    ]
    assert all("pass_rate" in problem.remedy for problem in error.value.problems)
