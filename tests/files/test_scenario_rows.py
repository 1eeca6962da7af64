"""``rows:``, ``matrix:`` and ``cases: FILE``: what is made of them, and every mistake at the row's place."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agenteval.conversation.tools import fill_mock_template
from agenteval.core.errors import AuthorError
from agenteval.core.scenario import Scenario
from agenteval.files.data_rows import read_table
from agenteval.files.scenario_loader import load_scenario_files
from agenteval.scoring.checks import RULES

ORDERS = "id,status,qty\nA-1,shipped,3\nA-2,open,1.50\n"
SUITE = """
scenarios:
  - id: "status-${row.id}"
    rows: orders.csv
    turns: ["Where is ${row.id}?"]
    checks: none
"""


class Suite:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.write_bytes(text if isinstance(text, bytes) else textwrap.dedent(text).lstrip("\n").encode())
        return path

    def load(self, text: str, **data: str | bytes) -> tuple[Scenario, ...]:
        """``data``: other files, ``orders_csv`` for ``orders.csv``."""
        for name, content in data.items():
            self.write(".".join(name.rsplit("_", 1)), content)
        return load_scenario_files([self.write("s.yaml", text)], rules=RULES, root=self.root, cwd=self.root)

    def complaints(self, text: str, **data: str | bytes) -> list[str]:
        with pytest.raises(AuthorError) as caught:
            self.load(text, **data)
        return str(caught.value).splitlines()


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def ids(scenarios: tuple[Scenario, ...]) -> list[str]:
    return [scenario.id for scenario in scenarios]


def said(scenario: Scenario) -> str:
    assert scenario.turns
    turn: Any = scenario.turns[0]
    return str(turn.user)


# ── what is made of them ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "data",
    [
        {"orders_csv": ORDERS},
        {"orders_csv": ORDERS.replace(",", ";")},
        {"orders_csv": b"\xef\xbb\xbf" + ORDERS.replace("\n", "\r\n").encode()},
        {"orders_csv": ORDERS.encode("utf-16")},
        {"orders_csv": f"\n{ORDERS}\n\n"},
        {"orders_tsv": ORDERS.replace(",", "\t")},
        {"orders_jsonl": '{"id": "A-1"}\n\n{"id": "A-2"}\n'},
        {"orders_json": '[{"id": "A-1"}, {"id": "A-2"}]'},
        {"orders_yaml": "- {id: A-1}\n- id: A-2\n"},
    ],
)
def test_a_scenario_for_each_row_of_a_file(suite: Suite, data: dict[str, Any]) -> None:
    (name,) = (".".join(each.rsplit("_", 1)) for each in data)
    found = suite.load(SUITE.replace("orders.csv", name), **data)
    assert ids(found) == ["status-A-1", "status-A-2"]
    assert [said(each) for each in found] == ["Where is A-1?", "Where is A-2?"]
    assert {each.source for each in found} == {"s.yaml:2"}
    assert all(each.row.startswith(f"{name}:") for each in found)
    assert {each.pattern for each in found} == {"status-*"}


def test_rows_in_the_file_itself_and_a_matrix_multiply(suite: Suite) -> None:
    found = suite.load("""
        scenarios:
          - id: "pay-${row.id}"
            rows: [{id: A-1, to: {name: Ann}}, {id: A-2, to: {name: Bob}}]
            matrix: {tone: [short, very angry], city: [Rome]}
            turns: ["${row.to.name} in ${row.city}, ${row.tone}"]
            checks: none
    """)
    assert ids(found) == [
        "pay-A-1-short-rome",
        "pay-A-1-very-angry-rome",
        "pay-A-2-short-rome",
        "pay-A-2-very-angry-rome",
    ]
    assert said(found[3]) == "Bob in Rome, very angry"
    assert [each.row for each in found] == ["s.yaml:3", "s.yaml:3", "s.yaml:3", "s.yaml:3"]
    assert found[0].pattern == "pay-*-*-*"


def test_a_matrix_alone_is_named_by_its_values(suite: Suite) -> None:
    text = "scenarios: [{name: 'Hi ${row.n}', matrix: {n: [1, 2], b: [true]}, turns: [a], checks: none}]"
    assert ids(suite.load(text)) == ["hi-1-true", "hi-2-true"]


def test_a_text_that_is_only_a_reference_keeps_its_type(suite: Suite) -> None:
    first, second = suite.load(
        """
        defaults: {checks: none, turns: [hi]}
        scenarios:
          - id: "q-${row.id}"
            rows: orders.csv
            types: {qty: number, ok: boolean, more: json}
            tools:
              get:
                returns: {qty: "${row.qty}", ok: "${row.ok}", more: "${row.more}", text: "is ${row.qty}"}
        """,
        orders_csv='id,qty,ok,more\na,3,TRUE,"[1, {""x"": null}]"\nb,1.50,false,"""t"""\n',
    )
    assert first.tools["get"].returns == {"qty": 3, "ok": True, "more": [1, {"x": None}], "text": "is 3"}
    assert second.tools["get"].returns == {"qty": 1.5, "ok": False, "more": "t", "text": "is 1.50"}


def test_a_number_stays_as_it_was_written_where_text_is_asked_for(suite: Suite) -> None:
    text = """
        scenarios:
          - id: "p-${row.id}"
            rows: [{id: 1, price: 1.50, per: {day: 2.0}}]
            turns:
              - user: "${row.price}"
                expect: {output: {contains: ["${row.price}"]}}
              - "${row.per.day}"
    """
    (scenario,) = suite.load(text)
    turn: Any
    other: Any
    turn, other = scenario.turns or ()
    assert (turn.user, turn.expect.output.contains, other.user) == ("1.50", ("1.50",), "2.0")


MORE = '{"l": [12, 13], "p": 1e5, "t": {"forbidden": [{"name": "x"}]}}'


@pytest.mark.parametrize(
    "data",
    [
        {"o_csv": f'id,n,more\na,1.50,"{MORE.replace(chr(34), chr(34) * 2)}"\n'},
        {"o_jsonl": f'{{"id": "a", "n": 1.50, "more": {MORE}}}'},
        {"o_yaml": f"- {{id: a, n: 1.50, more: {MORE}}}"},
    ],
)
def test_values_within_values_stay_as_they_were_written(suite: Suite, data: dict[str, Any]) -> None:
    (name,) = (".".join(each.rsplit("_", 1)) for each in data)
    types = "types: {n: number, more: json}" if name.endswith(".csv") else ""
    (scenario,) = suite.load(
        f"""
        scenarios:
          - id: "a-${{row.id}}"
            rows: {name}
            {types}
            turns: ["${{row.n}}", "${{row.more.p}} and ${{row.more.l.1}}", "${{row.more.p}}"]
            expect:
              tool_calls: "${{row.more.t}}"
              output: {{not_contains: "${{row.more.l}}"}}
        """,
        **data,
    )
    turns: Any = scenario.turns
    assert [turn.user for turn in turns] == ["1.50", "1e5 and 13", "1e5"]
    assert scenario.expect.output
    assert scenario.expect.output.not_contains == ("12", "13")
    assert scenario.expect.tool_calls
    assert scenario.expect.tool_calls.forbidden[0].name == "x"


def test_a_case_of_json_lines_has_its_numbers_as_they_were_written(suite: Suite) -> None:
    (case,) = suite.load(
        "cases: c.jsonl", c_jsonl='{"id": 1.50, "input": 1e5, "expected_output_contains": [2.0, "x"]}'
    )
    assert (case.id, said(case)) == ("1.50", "1e5")
    assert case.case
    assert case.case.keywords == ("2.0", "x")


def test_signs_that_look_alike_are_one_name(suite: Suite) -> None:
    (scenario,) = suite.load(
        SUITE.replace("row.id}?", "row.gr\u00f6\u00dfe}?"), orders_csv="\ufeffid,gro\u0308\u00dfe\n1,XL\n"
    )
    assert said(scenario) == "Where is XL?"


def test_the_line_that_excel_writes_above_the_names(suite: Suite) -> None:
    assert ids(suite.load(SUITE, orders_csv="sep=;\r\nid;status\r\nA-1;open\r\n;\r\n")) == ["status-A-1"]


def test_an_empty_cell_may_stand_within_what_nobody_looks_for(suite: Suite) -> None:
    (scenario,) = suite.load(
        """
        scenarios:
          - id: "a-${row.id}"
            rows: o.csv
            turns: ["Hello ${row.title}you"]
            tools: {get: {returns: {id: "${row.title}7", expect: "${row.title}x"}}}
            checks: none
        """,
        o_csv="id,title\n1,\n",
    )
    assert said(scenario) == "Hello you"
    assert scenario.tools["get"].returns == {"id": "7", "expect": "x"}


def test_names_of_tools_may_come_of_a_row(suite: Suite) -> None:
    text = """
        scenarios:
          - id: "t-${row.tool}"
            rows: [{tool: get}, {tool: set}]
            turns: [hi]
            tools: {"${row.tool}_order": {returns: 1}}
            checks: none
    """
    assert [list(each.tools) for each in suite.load(text)] == [["get_order"], ["set_order"]]


def test_what_is_put_in_is_not_read_again(suite: Suite) -> None:
    (scenario,) = suite.load(
        """
        scenarios:
          - id: "x-${row.id}"
            rows: [{id: 1, text: "${row.id} and ${args.id}", deep: {a: ["${args.id}"]}}]
            turns: ["${row.text} $${row.id} $${other}"]
            tools:
              get:
                returns: {t: "${row.text}", d: "${row.deep}", own: "${args.id} $${row.id} of ${row.text}"}
            checks: none
        """
    )
    assert said(scenario) == "${row.id} and ${args.id} ${row.id} ${other}"
    assert fill_mock_template(scenario.tools["get"].returns, {"id": "A"}) == {
        "t": "${row.id} and ${args.id}",
        "d": {"a": ["${args.id}"]},
        "own": "A ${row.id} of ${row.id} and ${args.id}",
    }


def test_defaults_may_say_the_rows_of_all(suite: Suite) -> None:
    text = """
        defaults: {rows: [{id: 1}, {id: 2}], checks: none, turns: ["${row.id}"]}
        scenarios: [{id: "a-${row.id}"}, {id: "b-${row.id}"}]
    """
    assert ids(suite.load(text)) == ["a-1", "a-2", "b-1", "b-2"]


def test_a_file_may_hold_one_scenario_with_rows(suite: Suite) -> None:
    text = 'id: "a-${row.id}"\nrows: [{id: 1}]\nturns: [hi]\nchecks: none\n'
    assert ids(suite.load(text)) == ["a-1"]


def test_a_check_is_shown_where_it_is_written(suite: Suite) -> None:
    (scenario,) = suite.load(
        """
        scenarios:
          - id: "a-${row.id}"
            rows: orders.csv
            goal: "${row.goal}"
            expect:
              output: {contains: ["${row.id}"]}
        """,
        orders_csv="id,goal\n7,Win.\n",
    )
    assert scenario.where("expect.output.contains") == "s.yaml:6"
    assert scenario.where("goal") == "orders.csv:2"
    assert scenario.where() == "s.yaml:2"


# ── cases in a file ──────────────────────────────────────────────────────────────────────────────


def test_cases_of_a_csv_file(suite: Suite) -> None:
    first, second, third = suite.load(
        "defaults: {category: robustness}\ncases: cases.csv\n",
        cases_csv=(
            "id,input,category,expected_tools,expected_output_contains,epochs,thresholds,tags\n"
            'C-1,[Hi] there,capability,get_weather,"[""25"", ""sunny""]",,,\n'
            'C-2,"two\nlines",,none,,3,"{""helpfulness"": 4}",smoke\n'
            "007,x,,,,,,\n"
        ),
    )
    assert (said(first), first.category, first.epochs, first.case) == (
        "[Hi] there", "capability", None, first.case,
    )  # fmt: skip
    assert first.case
    assert first.case.tools == ("get_weather",)
    assert first.case.keywords == ("25", "sunny")
    assert (said(second), second.category, second.epochs, second.tags) == (
        "two\nlines", "robustness", 3, ("smoke",),
    )  # fmt: skip
    assert second.case
    assert second.case.allows_no_call
    assert second.thresholds == {"helpfulness": 4}
    assert third.id == "007"
    assert third.case
    assert third.case.expected_tools is None
    assert [each.row for each in (first, second, third)] == ["cases.csv:2", "cases.csv:3", "cases.csv:5"]
    assert {each.source for each in (first, second, third)} == {"s.yaml:2"}
    assert {each.pattern for each in (first, second, third)} == {""}, "cases differ: none is folded"


def test_cases_of_json_lines_have_their_own_types(suite: Suite) -> None:
    line = {"id": "C", "input": "x", "expected_tools": ["a"], "tools": {"a": {"returns": 1}}}
    (case,) = suite.load("cases: c.jsonl", c_jsonl=json.dumps(line))
    assert case.tools["a"].returns == 1
    assert case.case
    assert case.case.tools == ("a",)


# ── mistakes ─────────────────────────────────────────────────────────────────────────────────────

ENTRY = 'scenarios:\n- id: "s-${row.id}"\n  rows: %s\n  turns: [hi]\n  checks: none\n'


@pytest.mark.parametrize(
    ("text", "data", "message"),
    [
        (ENTRY % "order.csv", {"orders_csv": ORDERS},
         "s.yaml:3:3: the file 'order.csv' does not exist (paths are relative to this file) — did you"
         " mean 'orders.csv'?"),
        (ENTRY % "orders.txt", {"orders_txt": ORDERS},
         "orders.txt: rows can only be read from .csv, .tsv, .jsonl, .ndjson, .yaml, .yml, .json"
         " — save the file in one of these formats"),
        (ENTRY % "orders.csv", {"orders_csv": ""},
         "orders.csv: the file contains no rows — add a row, or remove the reference to the file"),
        (ENTRY % "orders.csv", {"orders_csv": "id,status\n"},
         "orders.csv: the file contains no rows — add a row, or remove the reference to the file"),
        (ENTRY % "orders.csv", {"orders_csv": "id,a\n1,2\n3\n"},
         "orders.csv:3: the row has 1 cell, but the first line has 2 columns — put values that contain"
         " a comma, a quote or a line break in double quotes"),
        (ENTRY % "orders.csv", {"orders_csv": 'id,a\n"1\n2",3\n4,"5\n'},
         "orders.csv:4: not valid CSV: a double quote opened in this row is not closed by the end of"
         ' the file (line 4) — close the quote, and double any quote inside a quoted value ("")'),
        (ENTRY % "orders.csv", {"orders_csv": "id,id\n1,2\n"},
         "orders.csv:1: two columns are named 'id' — rename one"),
        (ENTRY % "orders.csv", {"orders_csv": b"id\nM\xfcller\n"},
         "orders.csv:2:2: byte 0xFC is not valid UTF-8 — save the file as UTF-8"),
        (ENTRY % "orders.csv", {"orders_csv": "id\n1\n2\n1\n"},
         "orders.csv:4: the id 's-1' is already used at orders.csv:2 — give one of them a different id"),
        (ENTRY % "o.jsonl", {"o_jsonl": '{"id": 1}\n{"id" 2}\n'},
         "o.jsonl:2:7: not valid JSON: Expecting ':' delimiter — use one object per line"),
        (ENTRY % "o.jsonl", {"o_jsonl": '{"id": 1, "id": 2}\n'},
         'o.jsonl:1: not valid JSON: the key "id" appears twice — use one object per line'),
        (ENTRY % "o.jsonl", {"o_jsonl": '{"id": NaN}\n'},
         "o.jsonl:1: not valid JSON: NaN is not allowed in JSON — use one object per line"),
        (ENTRY % "o.jsonl", {"o_jsonl": "[1]\n"}, "o.jsonl:1: expected an object, got a list"),
        (ENTRY % "o.jsonl", {"o_jsonl": '{"id": 1}\n{"n": 2}\n'},
         "o.jsonl:2: this row has no 'id', which '${row.id}' at s.yaml:2:3 refers to — add it"),
        (ENTRY % "o.yaml", {"o_yaml": "id: 1\n"},
         "o.yaml:1:1: expected a list of rows, got a mapping — start each row with '- '"),
        (ENTRY % "[1]", {}, "s.yaml:3:10: expected a mapping, got 1 — use {name: value}"),
        (ENTRY % "[]", {}, "s.yaml:3:3: `rows` is an empty list, which produces no scenario — add a row"),
        (ENTRY % "", {}, "s.yaml:3:3: `rows` has no value — use a list or a file name"),
        (ENTRY % "{id: 1}", {},
         "s.yaml:3:3: `rows`: expected a list of rows or a file name — use, for example, [{id: A-1}] or"
         " orders.csv"),
        (ENTRY.replace("${row.id}", "${row.idd}") % "[{id: 1}, {id: 2}]", {},
         "s.yaml:2:3: '${row.idd}' refers to a value that no row has — did you mean 'id'?"),
        (ENTRY.replace("hi", '"${row}"') % "[{id: 1}]", {},
         "s.yaml:4:11: '${row}' is not a valid row reference — use ${row.NAME}, or $${ for a literal ${"),
        (ENTRY.replace("hi", '"a ${row.n}"') % "[{id: 1, n: null}]", {},
         "s.yaml:3:18: '${row.n}' is null in this row, but is part of a longer text — set a value"),
        (ENTRY.replace('"s-${row.id}"', "same") % "orders.csv", {"orders_csv": ORDERS},
         "s.yaml:2:3: `id` 'same' is the same for every row — use id: same-${row.id}"),
        (ENTRY.replace("checks: none", "category: '${row.c}'") % "o.csv",
         {"o_csv": "id,c\n1,capability\n2,capablity\n"},
         "o.csv:3: `category`: expected one of capability, efficiency, robustness, got 'capablity' —"
         " did you mean 'capability'?"),
        (ENTRY.replace("checks: none", "types: {id: integer}") % "[{id: 1}]", {},
         "s.yaml:5:3: `types` applies only to CSV files, because other formats already have typed"
         " values — remove `types`"),
        (ENTRY.replace("checks: none", "types: {qti: integer}") % "orders.csv", {"orders_csv": ORDERS},
         "s.yaml:5:11: `types`: the rows have no column 'qti' — did you mean 'qty'?"),
        (ENTRY.replace("checks: none", "types: {qty: integer}") % "orders.csv", {"orders_csv": ORDERS},
         "orders.csv:3: 'qty': expected a whole number (see `types`), got '1.50' — fix the cell, or"
         " remove the column from `types`"),
        (ENTRY.replace("checks: none", "types: {qty: int}") % "orders.csv", {"orders_csv": ORDERS},
         "s.yaml:5:11: `types.qty`: expected one of string, integer, number, boolean, json, got 'int' —"
         " did you mean 'integer'?"),
        (ENTRY.replace("checks: none", "matrix: {id: [1]}") % "orders.csv", {"orders_csv": ORDERS},
         "s.yaml:5:12: 'id' in `matrix` is also a column of the rows — rename one of them"),
        (ENTRY.replace("checks: none", "matrix: {n: []}") % "orders.csv", {"orders_csv": ORDERS},
         "s.yaml:5:12: `matrix`: 'n' has no values — use a list of values"),
        ('scenarios: [{id: a, turns: ["${row.id}"], checks: none}]', {},
         "s.yaml:1:29: '${row.id}' refers to a row, but there is no `rows` or `matrix` — add `rows`, or"
         " use $${ for a literal ${"),
        *((ENTRY.replace("turns: [hi]", f"turns: ['{text}']") % "[{id: 1}]", {},
           f"s.yaml:4:11: '{text}' is not a valid reference here — use ${{row.NAME}}, or $${{ for a literal"
           " ${") for text in ("${rows.id}", "${Row.id}", "${id}", "${args.id}")),
        (ENTRY.replace("hi", '"${row.o.c}"') % "[{id: 1, o: {a: 1, b: 2}}]", {},
         "s.yaml:4:11: '${row.o.c}' refers to a value that no row has — 'o' contains a, b"),
        (ENTRY.replace("checks: none", 'expect: {output: {contains: "${row.d} days"}}') % "o.csv",
         {"o_csv": "id,d\n1,5\n2,\n"},
         "o.csv:3: '${row.d}' is empty in this row, but is part of a longer text — set a value"),
        (ENTRY.replace("checks: none", 'expect: {output: {contains: ["${row.d}"]}}') % "o.csv",
         {"o_csv": "id,d\n1,5\n2,\n"},
         "o.csv:3: `expect.output.contains`: an empty string is in every answer — specify the text to"
         " look for"),
        (ENTRY % "o.csv", {"o_csv": 'id,d\n1, "x"\n'},
         "o.csv:2: there is a space before the opening quote in column 2 — remove the space"),
        (ENTRY % "o.csv", {"o_csv": "id,d,\n1,x,\n2,x,y\n"},
         "o.csv:3: column 3 has a value here, but no name — name the column in the first line"),
        (ENTRY % "o.csv", {"o_csv": 'id,d\n1,"a\\"b"\n'},
         "o.csv:2: not valid CSV: ',' expected after '\"' — close the quote, and double any quote"
         ' inside a quoted value ("")'),
        (ENTRY % "o.jsonl", {"o_jsonl": "[" * 5000}, "o.jsonl:1: not valid JSON: it is nested too"
                                                     " deeply"),
        (ENTRY.replace("checks: none", "types: {d: json}") % "o.csv",
         {"o_csv": 'id,d\n1,"{""a"":1,""a"":2}"\n'},
         "o.csv:2: 'd': expected JSON (see `types`), got '{\"a\":1,\"a\":2}' (the key \"a\" appears"
         " twice)"),
        ("scenarios: [{id: m, matrix: {}, turns: [a], checks: none}]", {},
         "s.yaml:1:21: `matrix` has no value — use {name: [values]}"),
        ("scenarios: [{id: m, matrix: {c: a}, turns: [a], checks: none}]", {},
         "s.yaml:1:30: `matrix.c`: expected a list, got 'a'"),
        ("scenarios: [{id: m, matrix: {a: [1, '1']}, turns: [a], checks: none}]", {},
         "s.yaml:1:14: two rows of this scenario have the id 'm-1' — give one of them a different id"),
        (ENTRY.replace("checks: none", "goal: '${row.g}'").replace("turns: [hi]", "max_turns: 2") % "o.csv",
         {"o_csv": "id,g\n1,win\n2,\n"},
         "s.yaml:2:3: the scenario has neither `turns` nor `goal` (in the row at o.csv:3) — add `goal`"
         " (and `profile`) for a simulated user, or `turns` with the user's messages"),
        ("cases: c.csv", {"c_csv": "id,inptu\n1,x\n"},
         "c.csv:1: unknown key 'inptu' — did you mean 'input'?"),
        ("cases: c.csv", {"c_csv": "id,input,turns\n1,x,y\n"},
         "c.csv:1: unknown key 'turns' — did you mean 'turn"),
        ("cases: c.csv", {"c_csv": 'id,input,expected_tools\n1,x,"[get"\n'},
         "c.csv:2: 'expected_tools': '[get' looks like JSON, but is not valid JSON: Expecting value —"
         ' use a JSON list such as ["one", "two"], even for a single string that begins with a bracket'),
        ("cases: c.csv", {"c_csv": "id,input\n1,\n"}, "c.csv:2: `input` is missing"),
        ("cases: c.csv", {"c_csv": "id,input,epochs\n1,x,0\n"},
         "c.csv:2: `epochs` must be at least 1, got 0"),
        ("cases: c.csv", {}, "s.yaml:1:1: the file 'c.csv' does not exist (paths are relative to this"
                             " file)"),
    ],
)  # fmt: skip
def test_a_mistake_is_at_its_row(suite: Suite, text: str, data: dict[str, Any], message: str) -> None:
    found = suite.complaints(text, **data)
    assert len(found) == 1, found
    assert found[0].startswith(message.removesuffix(" — did you mean 'turn")), found


def test_each_row_with_a_mistake_is_named(suite: Suite) -> None:
    rows = "".join(f"{n},{'x' if n % 3 else 'capability'}\n" for n in range(1, 8))
    found = suite.complaints(
        ENTRY.replace("checks: none", "category: '${row.c}'") % "o.csv", o_csv=f"id,c\n{rows}"
    )
    assert found == [
        "o.csv:2: `category`: expected one of capability, efficiency, robustness, got 'x' (also on"
        " lines 3, 5, 6, 8)"
    ]


def test_a_slip_in_a_matrix_is_no_flood(suite: Suite) -> None:
    many = list(range(400))
    (found,) = suite.complaints(
        f"scenarios: [{{id: a, matrix: {{a: {many}, b: {many}}}, turns: [x], checks: none}}]"
    )
    assert "produce 160,000 scenarios, but at most 100,000" in found


# ── properties ───────────────────────────────────────────────────────────────────────────────────

CELLS = st.text(
    # U+FFFE and U+FFFF are no characters, and refused in every file.
    st.characters(
        codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp"), exclude_characters="\ufffe\uffff"
    ),
    max_size=12,
)


@settings(deadline=None)
@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=8))
@example(rows=[["", ' "']])
@example(rows=[[' "a" b', "c"]])
def test_what_a_csv_writer_wrote_is_read(rows: list[list[str]]) -> None:
    text = io.StringIO()
    csv.writer(text).writerows([["a", "b"], *rows])
    expected = [row for row in rows if any(cell.strip() for cell in row)]
    if expected:
        table = read_table(text.getvalue().encode(), "x.csv")
        assert [list(row.value.values()) for row in table.rows] == expected


@settings(deadline=None)
@given(CELLS.filter(str.strip))
def test_a_value_arrives_as_it_is(tmp_path_factory: pytest.TempPathFactory, value: str) -> None:
    suite = Suite(tmp_path_factory.mktemp("rows"))
    (scenario,) = suite.load(
        """
        scenarios:
          - id: x
            rows: o.jsonl
            turns: ["${row.v}", "a ${row.v} b"]
            tools: {t: {returns: ["${row.v}", "a ${row.v} b"]}}
            checks: none
        """,
        o_jsonl=json.dumps({"v": value}),
    )
    turns: Any = scenario.turns
    assert [turn.user for turn in turns] == [value, f"a {value} b"]
    assert fill_mock_template(scenario.tools["t"].returns, {}) == [value, f"a {value} b"]
