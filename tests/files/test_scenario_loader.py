"""Scenario files to scenarios: forms, merging, places, and every mistake at its place, all at once."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path, PureWindowsPath
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.core.scenario import Scenario, ScriptedTurn, SimulatedTurns
from agenteval.files.scenario_loader import (
    find_files_under,
    find_scenario_files,
    is_vacuous_scenario,
    load_scenario_files,
    slug,
    vacuous_problem,
)
from agenteval.scoring.checks import RULES


class Suite:
    """A folder of scenario files."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, text: str | bytes, name: str = "s.yaml") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data = text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode()
        path.write_bytes(data)
        return path

    def load(self, *texts: str) -> tuple[Scenario, ...]:
        names = ["s.yaml", "t.yaml", "u.yaml"]
        paths = [self.write(text, name) for text, name in zip(texts, names, strict=False)]
        return load_scenario_files(paths, rules=RULES, root=self.root, cwd=self.root)

    def one(self, text: str) -> Scenario:
        (scenario,) = self.load(text)
        return scenario

    def complaints(self, *texts: str) -> list[str]:
        with pytest.raises(AuthorError) as caught:
            self.load(*texts)
        return str(caught.value).splitlines()


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


# ── forms ────────────────────────────────────────────────────────────────────────────────────────


def test_a_scenario_in_all_its_parts(suite: Suite) -> None:
    scenario = suite.one("""
        scenarios:
          - name: user books a morning slot
            id: book-morning
            category: efficiency
            tags: [booking]
            profile: Busy.
            goal: Book a haircut.
            knowledge: [Open 08:00-18:00.]
            beliefs: It is Monday.
            tools:
              create_booking:
                sequence: [{returns: {id: BK-001}}]
            expect:
              tool_calls: {calls: [{name: create_booking, args: {time: {$in: ["09:00"]}}}]}
              output: {contains: BK-001}
              limits: {steps: 6}
            epochs: 3
            thresholds: {helpfulness: 3.5, relevance: {at_least: 4}, verbosity: null}
    """)
    assert (scenario.id, scenario.category, scenario.epochs) == ("book-morning", "efficiency", 3)
    assert [(held.belief, held.held) for held in scenario.beliefs] == [("It is Monday.", "normally")]
    assert scenario.turns is None
    assert not scenario.is_scripted
    assert scenario.expect.output is not None
    assert scenario.expect.output.contains == ("BK-001",)
    assert scenario.thresholds["verbosity"] is None
    assert scenario.tools["create_booking"].base == str(suite.root)


def test_turns_are_texts_objects_and_stretches(suite: Suite) -> None:
    scenario = suite.one("""
        name: x
        goal: y
        turns:
          - user: What of ORD-42?
            expect: {output: {contains: shipped}}
          - And the rest?
          - 010
          - simulate: 2
    """)
    first, second, third, last = scenario.turns or ()
    assert isinstance(first, ScriptedTurn)
    assert first.expect.output is not None
    assert second == ScriptedTurn(user="And the rest?")
    assert third == ScriptedTurn(user="010")
    assert last == SimulatedTurns(simulate=2)
    assert not scenario.is_scripted


def test_a_case_is_a_scenario_of_one_turn(suite: Suite) -> None:
    scenario = suite.one("""
        cases:
          - id: C-01
            category: robustness
            input: ""
            expected_tools: get_weather
            expected_output_contains: ["25", sunny, 1.50]
            knowledge: [x]
    """)
    assert scenario.name == scenario.id == "C-01"
    assert scenario.turns == (ScriptedTurn(user=""),)
    assert scenario.case is not None
    assert scenario.case.expected_tools == ("get_weather",)
    assert scenario.case.expected_output_contains == ("25", "sunny", "1.50")
    assert scenario.expect.is_vacuous
    assert scenario.knowledge == ("x",)


def test_a_case_at_top_level(suite: Suite) -> None:
    assert suite.one("id: x\ninput: hi").turns == (ScriptedTurn(user="hi"),)


def test_texts_are_as_they_were_written_and_data_is_not(suite: Suite) -> None:
    scenario = suite.one(
        """
        name: 1.0
        turns: [1.50]
        tools: {t: {returns: {price: 1.50, n: 010}}}
        expect:
          output: {contains: [1.10, 0x1F, True, 007], not_contains: 1e3}
          limits: {latency_ms: 1e3}
          tool_calls: {calls: [{name: t, args: {name: 010}}]}
    """.replace(", error2: 1", "")
    )
    assert scenario.name == "1.0"
    assert scenario.turns == (ScriptedTurn(user="1.50"),)
    output, limits, calls = scenario.expect.output, scenario.expect.limits, scenario.expect.tool_calls
    assert output is not None
    assert (output.contains, output.not_contains) == (("1.10", "0x1F", "True", "007"), ("1e3",))
    assert limits is not None
    assert limits.latency_ms == 1000
    assert scenario.tools["t"].returns == {"price": 1.5, "n": 10}
    assert calls is not None
    assert calls.calls is not None
    assert calls.calls[0].args == {"name": 10}


def test_defaults_are_merged_deeply_and_lists_replaced(suite: Suite) -> None:
    first, second = suite.load("""
        defaults:
          tags: [a, b]
          expect: {limits: {steps: 3, tokens: 9}}
          tools: {t: {returns: 1}}
        scenarios:
          - {name: one, goal: x, tags: [c], expect: {limits: {steps: 4}}, tools: {u: {returns: 2}}}
        cases:
          - {id: two, input: hi}
    """)
    assert first.tags == ("c",)
    assert first.expect.limits is not None
    assert (first.expect.limits.steps, first.expect.limits.tokens) == (4, 9)
    assert set(first.tools) == {"t", "u"}
    assert second.tags == ("a", "b")
    assert second.expect.limits is not None
    assert second.expect.limits.steps == 3


def test_places_of_what_is_written_and_of_what_is_inherited(suite: Suite) -> None:
    scenario, case = suite.load("""
        defaults:
          expect:
            limits: {steps: 3}
          tools:
            t: {returns: 1}
        scenarios:
          - name: one
            expect:
              output:
                contains: [x]
                not_contains: [y]
              tool_calls: {calls: [{name: t}]}
              criteria: [Is kind.]
            thresholds:
              helpfulness: 3
            epochs: 2
            turns:
              - a
              - user: b
                expect:
                  output: {contains: z}
        cases:
          - id: two
            input: hi
            expected_tools: [t]
            expected_output_contains: [x]
    """)
    assert scenario.source == "s.yaml:7"
    expected = {
        **{"expect": 8, "expect.limits.steps": 3, "expect.output.contains": 10, "expect.criteria": 13},
        **{"expect.output.not_contains": 11, "expect.tool_calls": 12, "thresholds.helpfulness": 15},
        **{"epochs": 16, "turns.0": 18, "turns.1": 19, "turns.1.expect": 20, "tools.t": 5},
        "turns.1.expect.output.contains": 21,
    }
    assert {key: scenario.lines[key] for key in expected} == expected
    assert scenario.where("turns.1.expect.output.contains") == "s.yaml:21"
    assert scenario.where("expect.tool_calls.calls.0") == "s.yaml:12"
    assert case.source == "s.yaml:23"
    found = [case.lines[key] for key in ("input", "expected_tools", "expected_output_contains")]
    assert found == [24, 25, 26]


def test_a_tool_may_have_the_name_of_a_key(suite: Suite) -> None:
    scenario = suite.one("name: x\ngoal: y\ntools: {output: {returns: 1}, expect: {returns: 2}}")
    assert set(scenario.lines) == {"name", "goal", "tools", "tools.output", "tools.expect"}


def test_shared_tools_are_made_once(suite: Suite) -> None:
    first, second = suite.load(
        "defaults: {tools: {t: {returns: 1}}}\ncases: [{id: a, input: x}, {id: b, input: y}]"
    )
    assert first.tools["t"] is second.tools["t"]


def test_a_loaded_scenario_survives_json(suite: Suite) -> None:
    scenario = suite.one("name: x\ngoal: g\nturns: [a, {simulate: 1}]\ntools: {t: {returns: null}}")
    text = scenario.model_dump_json(exclude_unset=True)
    assert Scenario.model_validate_json(text) == scenario


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("User books a slot!", "user-books-a-slot"),
        ("  Größe: 3 (neu) ", "größe-3-neu"),
        ("snake_case -- and", "snake-case-and"),
        ("日本 語", "日本-語"),
        ("हिन्दी", "हिन्दी"),
        ("e\u0301", "é"),
        ("!!!", ""),
    ],
)
def test_slugs(name: str, expected: str) -> None:
    assert slug(name) == expected


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────

KNOWN = (
    "known: agent, beliefs, category, checks, epochs, expect, facts, goal, goal_outcome, history, id,"
    " knowledge, matrix, max_turns, min_turns, name, note, profile, rows, setup, skip, state, tags, teardown,"
    " thresholds, tools, turns, types, user_prompt, user_tools, world"
)
QUOTE = "quote the string if it contains ': '"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("treshholds: {}", "4:1: unknown key 'treshholds' — did you mean 'thresholds'?"),
        ("zzz: 1", f"4:1: unknown key 'zzz' — {KNOWN}"),
        ("source: x", f"4:1: unknown key 'source' — {KNOWN}"),
        ("case: {}", f"4:1: unknown key 'case' — {KNOWN}"),
        ("lines: {}", "4:1: unknown key 'lines' — did you mean 'beliefs'?"),
        ("expected_tools: [a]",
         "4:1: unknown key 'expected_tools' — it is a key of test cases; move the entry to `cases`"),
        ("category: capabilty", "4:1: `category`: expected one of capability, efficiency, robustness,"
                                " got 'capabilty' — did you mean 'capability'?"),
        ("knowledge: {a: 1}", "4:1: `knowledge`: expected a list of strings, got a mapping"),
        ("knowledge: [{content: x}]", f"4:13: `knowledge`: expected a string, got a mapping — {QUOTE}"),
        ("tags: [null]", "4:8: `tags`: expected a string, got null — set a value, or remove the key"),
        ("profile:", "4:1: `profile`: expected a string, got null — set a value, or remove the key"),
        ("profile: [a]", "4:1: `profile`: expected a string, got a list"),
        ("epochs: 0", "4:1: `epochs` must be at least 1, got 0"),
        ("epochs: true", "4:1: `epochs`: expected a whole number or a mapping, got true"),
        ("epochs: 2.5", "4:1: `epochs`: expected a whole number or a mapping, got 2.5"),
        ("epochs: many", "4:1: `epochs`: expected a whole number or a mapping, got 'many'"),
        ("epochs: .inf", "4:1: `epochs`: expected a whole number or a mapping, got inf"),
        ("checks: all", "4:1: `checks`: expected 'none', got 'all'"),
        ("tools: [a]", "4:1: `tools`: expected a mapping, got a list"),
        ("tools: {t: null}", "4:9: `tools.t`: expected a mapping, got null — set a value, or remove the"
                             " key"),
        ("tools: {t: {retruns: 1}}", "4:13: unknown key 'retruns' — did you mean 'returns'?"),
        ("tools: {t: {base: x}}", "4:13: unknown key 'base' — known: description, destructive, error, faults,"
         " none, one, parameters, python, reads, returns, rules, sequence, sql, writes"),
        ("tools: {t: {returns: 1, error: x}}",
         "4:9: `tools.t`: the answer is defined more than once, by returns and error — keep one"),
        ("tools: {t: {sequence: []}}", "4:13: `tools.t.sequence` must not be empty"),
        ("tools: {t: {rules: []}}", "4:13: `tools.t.rules` must not be empty"),
        ("tools: {t: {rules: [{when: {call: 1}}]}}",
         "4:21: `tools.t.rules`: exactly one of `returns`, `error`, `sql`, `sequence` and `python` must be"
         " set"),
        ("tools: {t: {rules: [{when: {}, returns: 1}]}}",
         "4:22: `tools.t.rules.when`: the condition is empty — set `args`, `call` or `turn`, or remove"
         " `when`"),
        ("tools: {t: {rules: [{returns: 1}, {error: x}]}}",
         "4:21: the rules below are never used, because this one answers every call — add `when`, or make it"
         " the last rule"),
        ("tools: {t: {rules: [{when: {args: {a: {$inn: [1]}}}, returns: 1}]}}",
         "4:40: unknown matcher '$inn' — did you mean '$in'?"),
        ("tools: {t: {parameters: {type: object, properties: {city: {}}}, rules: [{when: {args: {town: 1}},"
         " returns: 1}]}}", "4:88: `when`: the tool has no parameter 'town' — known: city"),
        ("tools: {t: {rules: [{when: {call: 0}, returns: 1}]}}",
         "4:29: `tools.t.rules.when.call` must be at least 1, got 0"),
        ("tools: {t: {rules: [{returns: \"${x}\"}]}}",
         "4:22: '${x}' is not a valid reference — use ${args.NAME} for an argument of the call, or $${ for a"
         " literal ${"),
        ("tools: {t: {sequence: [{}]}}",
         "4:24: `tools.t.sequence`: exactly one of `returns`, `error` and `sql` must be set"),
        ("tools: {' ': {returns: 1}}", "4:9: a tool must have a name"),
        ("thresholds: {a: high}", "4:14: `thresholds.a`: expected a number or a mapping, got 'high'"),
        ("thresholds: {a: true}", "4:14: `thresholds.a`: expected a number or a mapping, got true"),
        ("thresholds: {a: .nan}", "4:14: `thresholds.a`: expected a number or a mapping, got nan"),
        ("thresholds: {a: {}}",
         "4:14: `thresholds.a`: no bound is set — set `at_least`, `min` or `share_below`"),
        ("thresholds: {a: {atleast: 1}}",
         "4:18: unknown key 'atleast' — did you mean 'at_least'?"),
        ("expect: []", "4:1: `expect`: expected a mapping, got a list"),
        ("expect: {limits: {steps: -1}}", "4:19: `expect.limits.steps` must be at least 0, got -1"),
        ("expect: {limits: {step: 1}}", "4:19: unknown key 'step' — did you mean 'steps'?"),
        ("expect: {output: {contains: [a: b]}}",
         f"4:30: `expect.output.contains`: expected a string, got a mapping — {QUOTE}"),
        ("expect: {output: {contains: ['']}}",
         "4:30: `expect.output.contains`: an empty string is in every answer — specify the text to look"
         " for"),
        ("expect: {output: {matches: '('}}",
         "4:19: `expect.output.matches`: not a valid regular expression: missing ), unterminated"
         " subpattern at position 0"),
        ("expect: {tool_calls: {}}",
         "4:10: `expect.tool_calls`: no call is expected or forbidden, so nothing is checked — add"
         " `calls` or `forbidden` (if no tool may be called, use `tool_calls: none`)"),
        ("expect: {tool_calls: {match: stric, calls: []}}",
         "4:23: `expect.tool_calls.match`: expected one of strict, unordered, in_order, contains,"
         " within, got 'stric' — did you mean 'strict'?"),
        ("expect: {tool_calls: {calls: [get_x]}}",
         "4:31: `expect.tool_calls.calls`: expected a mapping, got 'get_x' — use {name: get_x}"),
        ("expect: {tool_calls: {calls: [{name: a, args_match: partial}]}}", "4:31:"
                                                                            " `expect.tool_calls.calls`:"
                                                                            " `args_match: partial`"
                                                                            " requires `args` — add"
                                                                            " `args` or remove"
                                                                            " `args_match`"),
        ("id: \"a\\nb\"", "4:1: an id must be a single line of printable characters — remove all other"
                          " characters"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_scenario(suite: Suite, line: str, message: str) -> None:
    found = suite.complaints(f"name: x\ngoal: y\n# here\n{line}\n")
    assert found == [f"s.yaml:{each}" for each in message.split("\n")]


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ("[]",
         "2:1: `turns` is empty — add the user's messages, or use `goal` instead of `turns` for a"
         " simulated user"),
        ("hello", "2:1: `turns`: expected a list, got 'hello'"),
        ("[null]", "2:9: `turns`: expected a string or a mapping, got null — set a value, or remove the"
                   " key"),
        ("[[a]]", "2:9: `turns`: expected a string or a mapping, got a list"),
        ("[{usr: a}]", "2:9: `user` is missing in `turns`\n2:10: unknown key 'usr' — did you mean"
                       " 'user'?"),
        ("[{user: a, expct: {}}]", "2:19: unknown key 'expct' — did you mean 'expect'?"),
        ("[{user: [a]}]", "2:10: `turns.user`: expected a string, got a list"),
        ("[{simulate: 0}]", "2:10: `turns.simulate` must be at least 1, got 0"),
        ("[{simulate: 1, user: a}]", "2:23: unknown key 'user' — known: simulate"),
        ("[a, {simulate: 2}]", "2:12: simulated turns require a goal — add `goal` to the scenario"),
        ("[{user: a, expect: {output: {contain: b}}}]",
         "2:37: unknown key 'contain' — did you mean 'contains'?"),
    ],
)  # fmt: skip
def test_a_mistake_in_the_turns(suite: Suite, turns: str, message: str) -> None:
    found = suite.complaints(f"name: x\nturns: {turns}\n")
    assert found == [f"s.yaml:{each}" for each in message.split("\n")]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("id: a", "1:9: `input` is missing"),
        ("id: a, input: null", "1:17: `input`: expected a string, got null — set a value, or remove the"
                               " key"),
        ("id: a, input: [x]", "1:17: `input`: expected a string, got a list"),
        ("id: a, input: x, expected_tool: y", "1:27: unknown key 'expected_tool' — did you mean"
         " 'expected_tools'?"),
        ("id: a, input: x, expected_tools: {a: 1}",
         "1:27: `expected_tools`: expected 'none' or a list of strings, got a mapping"),
        ("id: a, input: x, expected_output_contains: [' ']",
         "1:54: `expected_output_contains`: an empty string is in every answer — specify the text to"
         " look for"),
        ("id: a, input: x, turns: [y]",
         "1:27: unknown key 'turns' — a case has a single input; use a scenario for several turns"),
        ("input: x", "1:9: a scenario needs a name or an id — add `name`"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_case(suite: Suite, line: str, message: str) -> None:
    assert suite.complaints(f"cases: [{{{line}}}]") == [f"s.yaml:{message}"]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("- name: a", ["1:1: expected a mapping with `scenarios` or `cases`, got a list — add"
                       " `scenarios:` above the list"]),
        ("hello", ["1:1: expected a mapping with `scenarios` or `cases`, got 'hello'"]),
        ("{}", ["1:1: the file contains no scenario — add `scenarios` or `cases`"]),
        ("defaults: {}", ["1:1: the file contains no scenario — add `scenarios` or `cases`"]),
        ("scenarios: []", ["1:1: the file contains no scenario — add one to the list"]),
        ("scenarios:", ["1:1: `scenarios`: expected a list, got null — start each entry with '- '"]),
        ("cases: {a: 1}", ["1:1: `cases`: expected a list, got a mapping — start each entry with '- '"]),
        ("scenaros: [{name: a}]", ["1:1: unknown key 'scenaros' — did you mean 'scenarios'?"]),
        ("cases: [{id: a, input: b}]\ntags: [x]",
         ["2:1: unknown key 'tags' — move it into a scenario or case, or into `defaults`"]),
        ("cases: [a, {id: b, input: c}]", ["1:9: expected a mapping, got 'a' — set at least `name` or"
                                           " `id`"]),
        ("defaults: 3\ncases: [{id: b, input: c}]", ["1:1: `defaults`: expected a mapping, got 3"]),
        ("replies: []", ["1:1: this is a scripted model, not a scenario file — set it in the"
                         " configuration: models: {default: scripted/FILE.yaml}"]),
        ("scenarios: [{tags: [a], goal: x}]", ["1:13: a scenario needs a name or an id — add `name`"]),
        ("name: '!!!'\ngoal: x", ["1:1: the name contains no letter or digit to derive an id from — add"
                                  " `id`"]),
        ("name: x", ["1:1: the scenario has neither `turns` nor `goal` — add `goal` (and `profile`) for"
                     " a simulated user, or `turns` with the user's messages"]),
        ("a: 1\na: 2", ["2:1: the key 'a' appears twice, first on line 1 — remove one of them"]),
    ],
)  # fmt: skip
def test_a_mistake_in_the_file(suite: Suite, text: str, messages: list[str]) -> None:
    assert suite.complaints(text) == [f"s.yaml:{message}" for message in messages]


def test_a_mistake_in_defaults_is_told_once_where_it_is(suite: Suite) -> None:
    found = suite.complaints("""
        defaults: {expect: {limits: {steps: x}}, tools: {t: {returns: "${args"}}}
        cases: [{id: a, input: b}, {id: c, input: d}]
    """)
    assert found == [
        "s.yaml:1:30: `expect.limits.steps`: expected a whole number, got 'x'",
        "s.yaml:1:54: '${args' is not closed — close it with '}', or use $${ for a literal ${",
    ]


def test_all_mistakes_of_all_files_in_their_order(suite: Suite) -> None:
    found = suite.complaints(
        "scenarios:\n  - {name: a, goal: b, agnt: c}\n  - {name: d, epochs: x, max_turns: 0}\n",
        "a: [",
        "cases:\n  - {id: e}\n  - {id: f, input: g, tgas: []}\n",
    )
    assert found.pop(3).startswith("t.yaml:1:5: ")  # in words for the parser's
    assert found == [
        "s.yaml:2:24: unknown key 'agnt' — did you mean 'agent'?",
        "s.yaml:3:15: `epochs`: expected a whole number or a mapping, got 'x'",
        "s.yaml:3:26: `max_turns` must be at least 1, got 0",
        "u.yaml:2:5: `input` is missing",
        "u.yaml:3:23: unknown key 'tgas' — did you mean 'tags'?",
    ]


def test_ids_are_one_namespace(suite: Suite) -> None:
    found = suite.complaints(
        "scenarios: [{name: Two words, goal: x}]",
        "scenarios: [{name: other, goal: x}]\ncases:\n  - {input: y, id: two-words}\n  - {id: other,"
        " input: z}\n",
    )
    assert found == [
        "t.yaml:3:16: the id 'two-words' is already used at s.yaml:1:14 — give one of them a different id",
        "t.yaml:4:6: the id 'other' is already used at t.yaml:1:14 — give one of them a different id",
    ]


def test_no_word_of_pydantic_reaches_the_author(suite: Suite) -> None:
    wrong: list[Any] = [None, True, 3, -1, 2.5, "", "x", [], [None], [[]], {}, {"x": 1}]
    keys = [*Scenario.model_fields, "input", "expected_tools", "expected_output_contains"]
    nested = ["tool_calls", "output", "criteria", "limits", "allow_empty"]
    entries = [
        {"id": f"e{i}", key: value} for i, (key, value) in enumerate((k, v) for k in keys for v in wrong)
    ]
    entries += [{"id": f"n{i}{k}", "expect": {k: v}} for k in nested for i, v in enumerate(wrong)]
    text = "\n".join(suite.complaints(json.dumps({"scenarios": entries}), json.dumps({"cases": entries})))
    text = text.replace(str(suite.root), "")
    for word in (
        "value_error",
        "pydantic",
        "http",
        "Input should",
        "valid dictionary",
        "instance of",
        "Model",
    ):
        assert word not in text
    assert all(line.startswith(("s.yaml:", "t.yaml:")) for line in text.splitlines())


def test_tools_are_marked_by_what_they_do(suite: Suite) -> None:
    scenario = suite.one("""
        name: x
        turns: [hi]
        tools:
          look: {returns: 1, reads: true}
          change: {returns: 1, writes: true}
          wipe: {returns: 1, destructive: true, reads: false}
          other: {returns: 1}
    """)
    marks = {name: (tool.reads, tool.writes, tool.destructive) for name, tool in scenario.tools.items()}
    assert marks == {
        "look": (True, False, False),
        "change": (False, True, False),
        "wipe": (False, False, True),
        "other": (False, False, False),
    }


@pytest.mark.parametrize("mark", ["writes", "destructive"])
def test_a_tool_that_only_reads_changes_nothing(suite: Suite, mark: str) -> None:
    (complaint,) = suite.complaints(
        f"name: x\nturns: [a]\ntools: {{t: {{returns: 1, reads: true, {mark}: true}}}}\n"
    )
    assert complaint.startswith("s.yaml:3:")
    assert "`reads` cannot be combined with `writes` or `destructive`" in complaint


@pytest.mark.parametrize("mark", ["reads", "writes", "destructive"])
def test_a_mark_is_true_or_false(suite: Suite, mark: str) -> None:
    (complaint,) = suite.complaints(f"name: x\nturns: [a]\ntools: {{t: {{returns: 1, {mark}: maybe}}}}\n")
    assert mark in complaint


# ── what is not built yet ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("thresholds: {h: {at_least: 1, votes: 2}}",
         "3:31: 'votes' is not supported yet — use only `at_least`"),
        ("include: x.yaml", "3:1: 'include' is not supported yet — put it under `defaults` in this file"),
    ],
)  # fmt: skip
def test_a_key_that_is_not_built_yet(suite: Suite, line: str, message: str) -> None:
    assert suite.complaints(f"name: x\ngoal: y\n{line}\n") == [f"s.yaml:{message}"]


def test_nor_beside_the_entries(suite: Suite) -> None:
    (complaint,) = suite.complaints("include: x.yaml\nscenarios: [{id: a, turns: [hi], checks: none}]\n")
    assert "s.yaml:1:1: 'include' is not supported yet" in complaint


# ── templates, schemas, matchers ─────────────────────────────────────────────────────────────────

CITY = "parameters: {type: object, properties: {city: {type: string}, items: {}}}"
FOR_CALL = "for an argument of the call, or $${ for a literal ${"


@pytest.mark.parametrize(
    "tool",
    [
        'returns: "${args}"',
        'returns: {a: ["${args.city} and ${args.items.0.name}"]}',
        'returns: "$${anything} $${"',
        "returns: costs $5",
        'error: "no city ${args.city}"',
        'sequence: [{returns: "${args.city}"}, {error: x}]',
        f'{CITY}, returns: "${{args.city}} ${{args.items.0}}"',
        'parameters: {type: object, properties: {a: {}}, additionalProperties: true}, returns: "${args.b}"',
        'parameters: {type: object, properties: {}, patternProperties: {x: {}}}, returns: "${args.xy}"',
        'parameters: {type: object}, returns: "${args.b}"',
    ],
)
def test_templates_that_are_right(suite: Suite, tool: str) -> None:
    assert suite.one(f"name: x\ngoal: y\ntools:\n  t: {{{tool}}}\n").tools["t"].is_mocked


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        ('returns: "${arg.city}"', "4:7: '${arg.city}' is not a valid reference — did you mean"
                                   " '${args.city}'?"),
        ('returns: {a: [1, "${state.x}"]}',
         f"4:24: '${{state.x}}' is not a valid reference — use ${{args.NAME}} {FOR_CALL}"),
        ('returns: "${}"',
         f"4:7: '${{}}' is not a valid reference — use ${{args.NAME}} {FOR_CALL}"),
        ('returns: "${args.}"',
         f"4:7: '${{args.}}' is not a valid reference — use ${{args.NAME}} {FOR_CALL}"),
        ('returns: "x ${args.city"',
         "4:7: '${args.city' is not closed — close it with '}', or use $${ for a literal ${"),
        ('sequence: [{returns: 1}, {returns: {a: "${x}"}}]',
         f"4:43: '${{x}}' is not a valid reference — use ${{args.NAME}} {FOR_CALL}"),
        ('error: "${arsg.x}"', "4:7: '${arsg.x}' is not a valid reference — did you mean '${args.x}'?"),
        (f'{CITY}, returns: "${{args.cty}}"',
         "4:82: '${args.cty}' refers to the unknown parameter 'cty' — did you mean 'city'?"),
        ("parameters: {type: array}",
         "4:20: `parameters.type` must be object, but is 'array' — use a JSON Schema of type object"),
        ("parameters: {properties: {}}",
         "4:7: `parameters.type` must be object, but is missing — use a JSON Schema of type object"),
        ("parameters: {type: object, properties: {a: {type: strin}}}",
         "4:51: `parameters`: not a valid JSON Schema: 'strin' is not valid under any of the given schemas"
         " — use a JSON Schema of type object"),
        ("parameters: {type: object, required: city}",
         "4:34: `parameters`: not a valid JSON Schema: 'city' is not of type 'array'"
         " — use a JSON Schema of type object"),
        ("parameters: [a]", "4:7: `tools.t.parameters`: expected a mapping, got a list"),
    ],
)  # fmt: skip
def test_templates_and_schemas_that_are_wrong(suite: Suite, tool: str, message: str) -> None:
    assert suite.complaints(f"name: x\ngoal: y\ntools:\n  t: {{{tool}}}\n") == [f"s.yaml:{message}"]


def test_a_schema_that_many_share_is_checked_once(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(jsonschema.Draft202012Validator, "check_schema", calls.append)
    tool = "tools: {t: {parameters: {type: object, title: only here}, returns: 1}}"
    suite.load("cases:\n" + "".join(f"  - {{id: c{i}, input: x, {tool}}}\n" for i in range(50)))
    assert len(calls) == 1


@pytest.mark.parametrize(
    "args",
    [
        *("{a: {$any: true}}", "{a: {$in: [1, null]}}", "{a: {$regex: '^x+$'}}", "{a: {$approx: 3.5}}"),
        *("{a: [{b: {$approx: {value: 1, abs: 0.1, rel: 0}}}]}", "{$any: true}", "{a: $any}", "{}"),
    ],
)
def test_matchers_that_are_right(suite: Suite, args: str) -> None:
    expect = f"expect: {{tool_calls: {{calls: [{{name: t, args: {args}}}]}}}}"
    assert not suite.one(f"name: x\ngoal: y\n{expect}\n").expect.is_vacuous


EXAMPLE = "use `{$approx: 3.5}` or `{$approx: {value: 3.5, abs: 0.1}}`"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("{a: {$regx: x}}", "5: unknown matcher '$regx' — did you mean '$regex'?"),
        ("{a: {$foo: x}}", "5: unknown matcher '$foo' — known: $any, $approx, $in, $optional, $regex"),
        ("{a: [{$in: x}]}", "6: $in: expected a list of values, got 'x' — use `{$in: [one, two]}`"),
        ("{a: {$in: []}}", "5: $in: expected a list of values, got an empty list — use `{$in: [one, two]}`"),
        ("{a: {$in: [{$foo: 1}]}}",
         "12: unknown matcher '$foo' — known: $any, $approx, $in, $optional, $regex"),
        ("{a: {$regex: '('}}",
         "5: $regex: not a valid regular expression: missing ), unterminated subpattern at position 0"),
        ("{a: {$regex: 3}}", "5: $regex: expected a string, got 3 — put it in quotes"),
        ("{a: {$approx: x}}", f"5: $approx: expected a number or a mapping, got 'x' — {EXAMPLE}"),
        ("{a: {$approx: true}}", f"5: $approx: expected a number or a mapping, got true — {EXAMPLE}"),
        ("{a: {$approx: {vale: 1}}}", "5: $approx: unknown key 'vale' — did you mean 'value'?"),
        ("{a: {$approx: {abs: 1}}}", f"5: $approx: 'value' is missing — {EXAMPLE}"),
        (
            "{a: {$approx: {value: 1, rel: -1}}}",
            f"5: $approx: `rel` must not be negative, got -1 — {EXAMPLE}",
        ),
        ("{a: {$any: true, b: 1}}",
         "1: a matcher must be the only key of its mapping, but '$any' is not — keys that"
         " begin with '$' are reserved for matchers"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("group", ["calls", "forbidden"])
def test_matchers_that_are_wrong(suite: Suite, group: str, args: str, message: str) -> None:
    expect = f"expect: {{tool_calls: {{{group}: [{{name: t, args: {args}}}]}}}}"
    column, _, rest = message.partition(":")
    at = expect.index(args) + 1 + int(column)
    assert suite.complaints(f"name: x\ngoal: y\n{expect}\n") == [f"s.yaml:3:{at}:{rest}"]


def test_matchers_are_checked_in_turns(suite: Suite) -> None:
    turn = "{user: a, expect: {tool_calls: {calls: [{name: t, args: {x: {$foo: 1}}}]}}}"
    assert suite.complaints(f"name: x\nturns:\n  - {turn}\n") == [
        "s.yaml:3:66: unknown matcher '$foo' — known: $any, $approx, $in, $optional, $regex"
    ]


# ── vacuous scenarios ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: x\ngoal: y", True),
        ("name: x\ngoal: y\nexpect: {output: {}, limits: {}, allow_empty: true}", True),
        ("name: x\nturns: [a, {user: b, expect: {}}]", True),
        ("name: x\ngoal: y\nchecks: none", False),
        ("name: x\ngoal: y\nexpect: {limits: {steps: 3}}", False),
        ("name: x\nturns: [a, {user: b, expect: {criteria: Kind.}}]", False),
        ("id: x\ninput: ''", False),
    ],
)
def test_vacuous(suite: Suite, text: str, *, expected: bool) -> None:
    scenario = suite.one(text)
    assert is_vacuous_scenario(scenario, thresholds_apply=False, judges_gate=False) is expected
    assert not is_vacuous_scenario(scenario, thresholds_apply=True, judges_gate=False)
    assert not is_vacuous_scenario(scenario, thresholds_apply=False, judges_gate=True)


def test_what_is_said_of_a_vacuous_scenario(suite: Suite) -> None:
    problem = vacuous_problem(suite.one("name: x\ngoal: y"))
    assert str(problem) == "s.yaml:1: scenario 'x' checks nothing — add `expect`, or set `checks: none`"


# ── finding files ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def tree(suite: Suite) -> Suite:
    for name in ("b.yaml", "a.yml", "sub/c.YAML", "sub/deep/d.yaml", "notes.txt", "agenteval.yaml", "x.json"):
        suite.write("name: x\ngoal: y\n", name)
    for hidden in (
        ".git/h.yaml",
        "node_modules/n.yaml",
        "env/lib/v.yaml",
        ".hidden.yaml",
        "sub/agenteval.yml",
    ):
        suite.write("name: x\ngoal: y\n", hidden)
    suite.write("", "env/pyvenv.cfg")
    suite.write("# fixed\nreplies:\n- when: {role: user}\n  reply: {}\n", "sub/scripted.yaml")
    suite.write("replies: []\nname: odd\n", "sub/odd.yaml")
    suite.write("{replies: []}", "flow.yaml")
    return suite


def names(paths: list[Path], root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in paths]


def test_a_folder_stands_for_its_scenario_files(tree: Suite) -> None:
    found = names(find_files_under([Path()], tree.root), tree.root)
    assert found == ["a.yml", "b.yaml", "sub/c.YAML", "sub/deep/d.yaml", "sub/odd.yaml"]


def test_named_files_are_taken_as_they_are_and_once(tree: Suite) -> None:
    found = find_files_under(
        ["sub/scripted.yaml", "sub", "sub/deep/d.yaml", tree.root / "notes.txt"], tree.root
    )
    assert names(found, tree.root) == [
        "sub/scripted.yaml", "sub/c.YAML", "sub/deep/d.yaml", "sub/odd.yaml", "notes.txt",
    ]  # fmt: skip


def test_looping_links_are_harmless(tree: Suite) -> None:
    (tree.root / "sub/up").symlink_to(tree.root)
    (tree.root / "sub/self").symlink_to("self")
    (tree.root / "twin.yaml").symlink_to(tree.root / "b.yaml")
    found = names(find_files_under([Path()], tree.root), tree.root)
    assert found == ["a.yml", "b.yaml", "sub/c.YAML", "sub/deep/d.yaml", "sub/odd.yaml"]


def test_a_pipe_in_a_folder_is_not_waited_for(tree: Suite) -> None:
    os.mkfifo(tree.root / "sub/pipe.yaml")
    found = find_files_under(["sub"], tree.root)
    with pytest.raises(AuthorError, match=r"sub/pipe.yaml: cannot be read: it is a named pipe, not a file"):
        load_scenario_files(found, rules=RULES, root=tree.root, cwd=tree.root)


@pytest.mark.parametrize(
    ("given_path", "message"),
    [
        ("b.yml", "b.yml: no such file or folder — did you mean 'b.yaml'?"),
        ("sbu/deep/d.yaml", "sbu/deep/d.yaml: no such file or folder — did you mean 'sub'?"),
        ("zzzzzz", "zzzzzz: no such file or folder — specify a scenario file or a folder of scenario files"),
        ("b.yaml/x", "b.yaml/x: no such file or folder — did you mean 'b.yaml'?"),
        (
            "x" * 300,
            "x" * 300 + ": no such file or folder — specify a scenario file or a folder of scenario files",
        ),
    ],
)
def test_a_path_that_does_not_exist(tree: Suite, given_path: str, message: str) -> None:
    with pytest.raises(AuthorError) as caught:
        find_files_under([given_path, "sub"], tree.root)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (["**/*.yaml"], [], ["b.yaml", "sub/deep/d.yaml", "sub/odd.yaml"]),
        (["*.y*ml"], [], ["a.yml", "b.yaml"]),
        (["sub/**"], [], ["sub/c.YAML", "sub/deep/d.yaml", "sub/odd.yaml"]),
        (["sub/*/d.yaml"], [], ["sub/deep/d.yaml"]),
        (["sub"], ["sub/deep"], ["sub/c.YAML", "sub/odd.yaml"]),
        (["**/*.yaml"], ["**/deep/**"], ["b.yaml", "sub/odd.yaml"]),
        (["**/*.yaml"], ["./sub/"], ["b.yaml"]),
        (["[ab].y*"], ["b.*"], ["a.yml"]),
        (["[!a].yaml", "b.yaml"], [], ["b.yaml"]),
        (["./b.yaml", "nothing/**/*.yaml"], [], ["b.yaml"]),
        (["sub/../b.yaml"], [], ["b.yaml"]),
        ([".git/*.yaml"], [], [".git/h.yaml"]),
    ],
)
def test_patterns(tree: Suite, include: list[str], exclude: list[str], expected: list[str]) -> None:
    assert names(find_scenario_files(tree.root, include, exclude), tree.root) == expected


def test_patterns_may_leave_the_folder(tree: Suite) -> None:
    inside = tree.root / "sub"
    assert names(find_scenario_files(inside, ["../*.yml"]), tree.root) == ["a.yml"]
    assert names(find_scenario_files(inside, [str(tree.root / "*.yml")]), tree.root) == ["a.yml"]


def test_files_outside_the_working_directory_are_shown_whole(suite: Suite, tmp_path: Path) -> None:
    path = suite.write("name: x\ngoal: y\n", "a/s.yaml")
    (scenario,) = load_scenario_files([path], rules=RULES, root=tmp_path, cwd=tmp_path / "b")
    assert scenario.source == f"{path}:1"
    (scenario,) = load_scenario_files([Path("a/s.yaml")], rules=RULES, root=tmp_path, cwd=tmp_path / "a")
    assert scenario.source == "s.yaml:1"
    assert load_scenario_files([path], rules=RULES, root=tmp_path, cwd=tmp_path)[0].source == "a/s.yaml:1"


def test_a_file_that_cannot_be_read(suite: Suite) -> None:
    with pytest.raises(AuthorError) as caught:
        load_scenario_files([suite.root], rules=RULES, root=suite.root, cwd=suite.root.parent)
    assert str(caught.value) == f"{suite.root.name}: cannot be read: Is a directory"


# ── nothing crashes ──────────────────────────────────────────────────────────────────────────────

LEAF = st.sampled_from([None, True, 0, -1, 2.5, "", "x", "${args.x}", "${", "$any", "(", "contains", "\n"])
KEYS = st.sampled_from((
    *(*Scenario.model_fields, "input", "user", "simulate", "calls", "match", "args", "$in", "$approx"),
    *("returns", "sequence", "parameters", "properties", "type", "output", "contains", "limits", "forbidden"),
))  # fmt: skip
ENTRY = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4)
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entry=st.dictionaries(KEYS, ENTRY, max_size=6), defaults=st.dictionaries(KEYS, ENTRY, max_size=2))
def test_no_entry_crashes_it(suite: Suite, entry: dict[str, Any], defaults: dict[str, Any]) -> None:
    whole = {"defaults": defaults, "scenarios": [entry], "cases": [entry]}
    path = suite.write(json.dumps(whole))
    try:
        load_scenario_files([path], rules=RULES, root=suite.root, cwd=suite.root)
    except AuthorError as error:
        text = str(error)
    else:
        return
    assert "s.yaml:" in text


def test_a_pattern_of_windows_may_have_its_slashes(tree: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.files.scenario_files.PurePath", PureWindowsPath)
    left = find_scenario_files(tree.root, ["**/*.yaml"], [r".\sub\deep\d*.yaml"])
    assert names(left, tree.root) == ["b.yaml", "sub/odd.yaml"]
