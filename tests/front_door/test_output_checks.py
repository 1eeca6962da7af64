"""``any_of``, ``json_schema``, ``json`` and ``cites``, each with an agent that has the bug and one without.

The agent says what the user tells it to, after calling the tools that are named with ``@`` in front.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.kit import Project, failed_checks

ECHO = """
async def agent(messages, ctx):
    said = messages[-1]["content"]
    while said.startswith("@"):
        name, _, said = said[1:].partition(" ")
        await ctx.call_tool(name, {})
    return said
"""
TOOLS = {
    "price": {"returns": {"items": [{"name": "Café crème", "price": 1250.5}], "id": "BK-7"}},
    "raw": {"returns": '{"note": "ref\\nZX-9", "name": "Caf\\u00e9"}'},
    "broken": {"error": "no order ORD-3"},
}
ORDER = {
    "type": "object",
    "properties": {"id": {"type": "string", "pattern": "^BK-"}, "price": {"type": "number"}},
    "required": ["id"],
}
GOOD = '{"id": "BK-7", "price": 9.5, "items": [{"price": 9.5000000001}, {"price": 3}], "a.b": null}'


def played(project: Project, rows: list[tuple[dict[str, Any], Any]]) -> list[dict[str, Any]]:
    """One run: for each row a scenario with what is expected of its output, and what the user says."""
    entries = []
    for number, (output, said) in enumerate(rows):
        turns = said if isinstance(said, list) else [said]
        entry = {"id": f"s{number}", "turns": turns, "tools": TOOLS}
        # In a row with `turn` the check stands there; else it is about the whole.
        if "turn" in output:
            at = output["turn"]
            expect = {"output": {k: v for k, v in output.items() if k != "turn"}}
            entry["turns"] = [{"user": t, "expect": expect} if i == at else t for i, t in enumerate(turns)]
        else:
            entry["expect"] = {"output": output}
        entries.append(entry)
    project.agent(ECHO)
    project.config()
    project.scenarios(json.dumps({"scenarios": entries}))
    project.run()
    return [project.sample(f"s{number}") for number in range(len(rows))]


def reason(sample: dict[str, Any], name: str) -> str:
    checks = [*sample["checks"], *(check for turn in sample["turns"] for check in turn["checks"])]
    (found,) = [check for check in checks if check["name"] == name]
    return str(found["detail"])


def fenced(text: str, mark: str = "```", info: str = "json") -> str:
    return f"\n{mark}{info}\n{text}\n{mark}\n"


HOLD: list[tuple[dict[str, Any], Any]] = [
    ({"any_of": ["refund", "money back"]}, "You get your **money back**."),
    ({"any_of": ["red"]}, ["it is red", "it is blue"]),
    ({"not_contains": ["sorry"]}, "We are s\\*orry."),
    ({"contains": ["5\\*"]}, "a 5* hotel"),
    ({"contains": ["5\\*"]}, "a **5\\*** hotel"),
    ({"any_of": ["25", "30"], "turn": 1}, ["no", "30 degrees"]),
    ({"json_schema": ORDER}, GOOD),
    ({"json_schema": ORDER}, fenced(GOOD)),
    ({"json_schema": ORDER}, fenced(GOOD, "~~~~", "")),
    ({"json_schema": ORDER}, ["not yet", GOOD, "as you see"]),
    ({"json_schema": ORDER, "turn": 1}, ["not yet", GOOD]),
    ({"json_schema": {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}},
     "[1, 2.0]"),
    ({"json_schema": {"const": 1}}, "1.0"),
    ({"json": {"a": {"$any": True}}}, '{"a": 1e300}'),
    ({"json": {"items[0].price": {"$approx": 9.5}}}, GOOD),
    ({"json": {"id": {"$regex": "^BK-"}, "items[1]": {"price": 3.0}, '["a.b"]': None}}, fenced(GOOD)),
    ({"json": {"[0].id": 1, "[1]": {"$any": True}}}, '[{"id": 1}, null]'),
    ({"json": {"id": "BK-7"}}, ["wait", '{"id": "BK-1"}', GOOD]),
    ({"cites": ["1250.50", "BK-7"]}, "@price It is 1,250.50 EUR, reference **BK-7**."),
    ({"cites": ["café crème"]}, "@price One Cafe\u0301 Crème."),
    ({"cites": ["ZX-9", "Café"]}, "@raw Café has ZX-9."),
    ({"cites": ["ORD-3"]}, "@broken There is no ORD-3."),
    ({"cites": ["BK-7"], "turn": 1}, ["@price one moment", "it is BK-7"]),
    ({"cites": ["BK-7"]}, ["it is BK-7?", "@price it is BK-7"]),
]  # fmt: skip

BREAK: list[tuple[dict[str, Any], Any, str, int | None, str]] = [
    ({"any_of": ["refund", "money back"]}, "Nothing.", "any_of", None,
     'none of "refund", "money back" in the answer "Nothing."'),
    ({"any_of": ["25"]}, "125", "any_of", None, 'none of "25"'),
    ({"contains": ["sorry"]}, "We are s\\*orry.", "contains", None, 'missing "sorry"'),
    ({"not_contains": ["sorry"]}, "We are **s**orry \\*.", "not_contains", None, '"sorry"'),
    ({"contains": ["5\\*"]}, "a **5** hotel", "contains", None, 'missing'),
    ({"any_of": ["25", "30"], "turn": 1}, ["30", "none"], "any_of", 1, 'in the answer "none"'),
    ({"json_schema": ORDER}, '{"id": "XX", "price": 1}', "json_schema", None, "'XX' does not match '^BK-'"),
    ({"json_schema": ORDER}, '{"price": 1}', "json_schema", None, "'id' is a required property"),
    ({"json_schema": ORDER}, '{"id": "BK-1", "price": "1"}', "json_schema", None, "price: '1' is"),
    ({"json_schema": ORDER}, f"Here it is: {GOOD}", "json_schema", None, "it is not JSON"),
    ({"json_schema": ORDER}, f"Here it is:\n{fenced(GOOD)}", "json_schema", None, "it is not JSON"),
    ({"json_schema": ORDER}, fenced(GOOD) + fenced(GOOD), "json_schema", None, "it is not JSON"),
    ({"json_schema": ORDER}, '{"id": "BK-1", "id": "no"}', "json_schema", None, 'it has "id" twice'),
    ({"json_schema": {"type": "number"}}, "NaN", "json_schema", None, "it is not JSON (NaN)"),
    ({"json_schema": {"type": "number"}}, "-1e999", "json_schema", None, "(-1e999 is infinite)"),
    ({"json": {"a": {"$any": True}}}, '{"a": 1e999}', "json", None, "(1e999 is infinite)"),
    ({"json_schema": {"type": "array"}}, "[" * 100_000, "json_schema", None, "nested too deep"),
    ({"json_schema": {"const": True}}, "1", "json_schema", None, "true was expected"),
    ({"json_schema": ORDER, "turn": 0}, ["not yet", GOOD], "json_schema", 0, "it is not JSON"),
    ({"json": {"items[0].price": {"$approx": 9.5}}}, '{"items": [{"price": 9.6}]}', "json", None,
     "items[0].price: expected about 9.5, got 9.6"),
    ({"json": {"items[0].prise": 1}}, GOOD, "json", None, 'items[0] has no "prise"; its keys are price'),
    ({"json": {"items[2].price": 3}}, GOOD, "json", None, "items[2].price: items has 2 items"),
    ({"json": {"id[0]": "B"}}, GOOD, "json", None, "id[0]: id is not a list"),
    ({"json": {"id.x": "B"}}, GOOD, "json", None, "id.x: id is not an object"),
    ({"json": {"items[1]": {"price": 3, "more": 1}}}, GOOD, "json", None, "items[1].more: missing"),
    ({"json": {"n": 1}}, '{"n": true}', "json", None, "n: expected 1, got true"),
    ({"json": {"n": 1}}, "n is 1", "json", None, "no JSON for n: it is not JSON"),
    # Two answers that are each right in half are no right answer.
    ({"json": {"id": 1, "paid": True}}, ['{"id": 1, "paid": false}', '{"id": 2, "paid": true}'], "json", None,
     "paid: expected true, got false"),
    ({"json": {"n": 1}, "turn": 1}, ['{"n": 1}', '{"n": 2}'], "json", 1, "n: expected 1, got 2"),
    ({"cites": ["BK-7"]}, "It is BK-7.", "cites", None, "in no earlier tool result (no tool was called)"),
    ({"cites": ["BK-8"]}, "@price It is BK-8.", "cites", None, "in no earlier tool result (1 tool call)"),
    ({"cites": ["BK-7"]}, "@price Done.", "cites", None, 'missing "BK-7" in the answer "Done."'),
    ({"cites": ["crème"]}, "@price Crèmes.", "cites", None, '; "crème*" would match'),
    ({"cites": ["125"]}, "@price It is 125.", "cites", None, "no earlier tool result"),
    ({"cites": ["BK-7"]}, ["it is BK-7", "@price yes"], "cites", None, "no earlier tool result"),
    ({"cites": ["BK-7"], "turn": 0}, ["it is BK-7", "@price BK-7"], "cites", 0, "no earlier tool result"),
]  # fmt: skip


def test_output_that_is_as_expected_is_green(project: Project) -> None:
    samples = played(project, HOLD)
    failed = {str(HOLD[i]): sorted(map(str, failed_checks(s))) for i, s in enumerate(samples)}
    assert {row: names for row, names in failed.items() if names} == {}
    assert {sample["verdict"] for sample in samples} == {"passed"}


def test_output_that_is_not_is_red_at_its_turn_for_its_reason(project: Project) -> None:
    samples = played(project, [(output, said) for output, said, *_ in BREAK])
    for (output, said, name, turn, why), sample in zip(BREAK, samples, strict=True):
        assert failed_checks(sample) == {(turn, f"output.{name}")}, (output, said)
        assert why in reason(sample, f"output.{name}"), (output, said)


def test_where_calls_cannot_be_seen_nothing_is_known_of_what_tools_gave(project: Project) -> None:
    project.agent("def agent(messages):\n    return messages[-1]['content']\n")
    project.config()
    project.scenarios(
        """
        scenarios:
          - {id: said, turns: [it is BK-7], expect: {output: {cites: [BK-7]}}}
          - {id: unsaid, turns: [it is done], expect: {output: {cites: [BK-7]}}}
        """
    )
    project.run()
    assert project.sample("said")["verdict"] == "inconclusive"
    assert failed_checks(project.sample("unsaid")) == {(None, "output.cites")}


def test_a_call_that_was_not_made_is_no_source(project: Project) -> None:
    project.agent(
        """
        import json

        def agent(messages, ctx):
            if messages[-1]["role"] == "tool":
                return "Your reference is BK-9."
            name, arguments = json.loads(messages[0]["content"])
            call = {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}
            return {"role": "assistant", "content": "", "tool_calls": [call]}
        """
    )
    project.config("detectors: []\n")
    schema = {"type": "object", "properties": {"id": {"type": "string", "pattern": "^ORD-"}}}
    tools = {
        "get": {"parameters": schema, "returns": {"ref": "BK-9"}},
        "fill": {"returns": {"ref": "BK-${args.BK-9}"}},
        "keys": {"returns": {"BK-9": "open"}},
        "shut": {"error": "BK-9 is closed"},
    }
    calls = {
        "made": ("get", '{"id": "ORD-1"}'),
        "by key": ("keys", "{}"),
        "an error of the tool": ("shut", "{}"),
        "schema": ("get", '{"id": "BK-9"}'),
        "missing": ("fill", "{}"),
        "unknown": ("BK-9", "{}"),
        "unreadable": ("get", '{"id": BK-9'),
    }
    expect = {"output": {"cites": ["BK-9"]}}
    rows = [
        {"id": f"s{number}", "turns": [json.dumps(call)], "tools": tools, "expect": expect}
        for number, call in enumerate(calls.values())
    ]
    project.scenarios(json.dumps({"scenarios": rows}))
    project.run()
    samples = {name: project.sample(f"s{number}") for number, name in enumerate(calls)}
    green = ("made", "by key", "an error of the tool")
    assert {name: sample["verdict"] for name, sample in samples.items()} == {
        name: "passed" if name in green else "failed" for name in calls
    }
    for name in calls.keys() - {*green}:
        assert (None, "output.cites") in failed_checks(samples[name]), name
        assert "in no earlier tool result" in reason(samples[name], "output.cites"), name


def test_a_pattern_that_takes_for_ever_decides_nothing(project: Project) -> None:
    schema = {"type": "string", "pattern": "^(a|aa)+$"}
    (sample,) = played(project, [({"json_schema": schema}, json.dumps("a" * 40 + "!"))])
    assert sample["verdict"] == "inconclusive"
    assert "took longer than" in reason(sample, "output.json_schema")


REFUSED = [  # what is written, where the mistake is, what is reported
    ("any_of: []", "any_of", "output.any_of: an empty list checks nothing"),
    ('any_of: [""]', '""', "expect.output.any_of: an empty text is in every answer"),
    ("contains: []", "contains", "output.contains: an empty list checks nothing"),
    ("contains: [a], not_contains: []", "not_", "output.not_contains: an empty list checks nothing"),
    ("cites: []", "cites", "output.cites: an empty list checks nothing"),
    ("cites: tool results only", "cites", "output.cites: 'tool results only' is not a text"),
    ("json: {}", "json", "output.json: an empty mapping checks nothing"),
    ("json: null", "json", "expect.output.json: expected a mapping, got null"),
    ("json: {'items[x]': 1}", "'items", "output.json: 'items[x]' is not a path"),
    ("json: {'a..b': 1}", "'a", "output.json: 'a..b' is not a path"),
    ("json: {'$.a': 1}", "'$", "output.json: '$.a' is not a path"),
    ("json: {a: {$aprox: 1}}", "$aprox", "unknown matcher '$aprox' — did you mean '$approx'?"),
    ("json_schema: {}", "json_schema", "output.json_schema: an empty schema checks nothing"),
    ("json_schema: {type: strng}", "type", "output.json_schema: not a JSON Schema: 'strng' is not"),
    ("json_schema: {properties: {a: {$ref: '#/$defs/no'}}}", "$ref",
     "output.json_schema: the reference '#/$defs/no' leads nowhere"),
    ("json_schema: true", "json_schema", "expect.output.json_schema: expected a mapping, got true"),
    ("any_off: [a]", "any_off", "unknown key 'any_off' — did you mean 'any_of'?"),
]  # fmt: skip


def test_what_checks_nothing_is_refused_at_its_place(project: Project) -> None:
    project.agent(ECHO)
    project.config()
    lines = [
        f"- {{id: s{i}, turns: [hi], expect: {{output: {{{row[0]}}}}}}}" for i, row in enumerate(REFUSED)
    ]
    project.scenarios("scenarios:\n" + "\n".join(lines) + "\n")
    done = project.call("validate")
    assert done.code == 2
    for number, (line, (_, culprit, what)) in enumerate(zip(lines, REFUSED, strict=True), 2):
        column = line.index(culprit, line.index("output: {") + 9) + 1
        assert f"scenarios/suite.yaml:{number}:{column}: {what}" in done.err, done.err


def test_empty_lists_are_refused_wherever_expect_stands(project: Project) -> None:
    project.agent(ECHO)
    project.config()
    project.scenarios(
        """
        scenarios:
          - id: a
            turns: [hi, {user: ho, expect: {output: {any_of: []}}}]
          - {id: b, turns: [hi], expect: {criteria: [], limits: {steps: 1}}}
          - {id: c, turns: [hi], expect: {tool_calls: {forbidden: [], calls: [{name: a}]}}}
          - {id: d, turns: [hi], expect: {tool_calls: {any_of: [{match: in_order, calls: []}]}}}
        """
    )
    done = project.call("validate")
    assert done.code == 2
    for line, name in ((3, "output.any_of"), (4, "criteria"), (5, "forbidden"), (6, "calls")):
        assert f"suite.yaml:{line}:" in done.err
        assert f"{name}: an empty list checks nothing" in done.err


def test_numbers_in_texts_stay_as_written_and_in_json_stay_numbers(project: Project) -> None:
    project.agent(ECHO)
    project.config()
    project.scenarios(
        """
        scenarios:
          - {id: texts, turns: ["1.50"], expect: {output: {any_of: [1.50]}}}
          - {id: values, turns: ['{"contains": 1.5}'], expect: {output: {json: {contains: 1.50}}}}
        """
    )
    assert project.run().code == 0
