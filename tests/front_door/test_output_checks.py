"""``expect.output``: what an agent answers, and which check holds or breaks: all played in one run.

The agent repeats what the user writes, after calling the tools that are named with ``@`` in front. An
answer in two parts is said beside a call and after it.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any, NamedTuple, TypeAlias

import pytest

from tests.support.kit import Project, failed_checks
from tests.support.refused_rows import assert_each_refused, assert_none_refused

ECHO = """
import json

async def agent(messages, ctx):
    text = next(m["content"] for m in reversed(messages) if m["role"] == "user")
    if text.startswith("parts: "):
        before, after = json.loads(text.removeprefix("parts: "))
        if messages[-1]["role"] == "tool":
            return after
        call = {"id": "1", "type": "function", "function": {"name": "price", "arguments": "{}"}}
        return {"role": "assistant", "content": before, "tool_calls": [call]}
    while text.startswith("@"):
        name, _, text = text[1:].partition(" ")
        await ctx.call_tool(name, {})
    return text
"""
TOOLS = {
    "price": {"returns": {"items": [{"name": "Café crème", "price": 1250.5}], "id": "BK-7"}},
    "raw": {"returns": '{"note": "ref\\nZX-9", "name": "Caf\\u00e9"}'},
    "broken": {"error": "no order ORD-3"},
}
Output: TypeAlias = dict[str, Any]
Answers: TypeAlias = list[str]
"""One answer a turn."""


class Row(NamedTuple):
    """What is expected of the output (over the whole, or at the turn ``turn``), what is said, and the check
    that breaks, if one does, with values that its reason names."""

    output: Output
    answers: Answers
    broken: str = ""
    facts: tuple[str, ...] = ()
    turn: int | None = None


def parts(before: str, after: str) -> str:
    return f"parts: {json.dumps([before, after])}"


# ── the same text, however it is written ─────────────────────────────────────────────────────────

STROKE, SLASH, ACUTE = "\u0336", "\u0338", "\u0301"


def struck(word: str, mark: str = STROKE) -> str:
    return "".join(f"{letter}{mark}" for letter in word)


PLAIN = "I am sorry, no."
REFUND_IS_NOT_SAID = [
    PLAIN,
    parts("Let me look.", PLAIN),
    "<think>\nA full refund? No.\n</think>\nI am sorry, no.",
    parts("<think>A full refund?</think>Let me look.", PLAIN),
    "<think>A <think>full refund</think>? No.</think>No.",
]
REFUND_IS_SAID = [
    parts("Your full refund, sir.", PLAIN),
    "Your full re\u200bfu\u2060nd, sir.",  # zero width
    "Your full re\u00adfund, sir.",  # soft hyphen
    "Your full re\x08fund, sir.",  # a control
    "Your full\u00a0refund, sir.",  # no-break space
    "Your full\u2009refund, sir.",  # thin space
    "Your full\n  refund, sir.",
    "Be calm, it’s done.",
    "Your **full** _refund_, sir.",
    "Your full re**fund**, sir.",
    "Your ~~full~~ refund, sir.",
    "Your `full refund`, sir.",
    "YOUR FULL REFUND, SIR.",
    "It\\'s done\\.",
    "Your full ｒｅｆｕｎｄ, sir.",
    "Your 𝐟𝐮𝐥𝐥 𝓇ℯ𝒻𝓊𝓃𝒹, sir.",
    f"Your full {struck('refund')}, sir.",
    f"Your full {struck('refund', SLASH)}, sir.",
    f"Your full {struck('ｒｅｆｕｎｄ', SLASH)}, sir.",
    "Your full re~~fu~~nd, sir.",
    "You are fully, say full refunded, sir.",
    "Your full refund, sir.</think>I am sorry, no.",  # a forged end of a thought
    "I am sorry. <think>Or your full refund",  # an open thought
    "<think>Your full refund, sir.",
    "<think>Hm.</think><think>Your full refund.</think>No.",  # a second thought
    "No. <think>Your full refund.</think>",  # a thought after a word
]
WEATHER = "It is 25 degrees in Zürich, -5 at night: $1250."
WEATHER_IS_SAID = [
    "It is 25 degrees in Zürich, -5 at night: $1250.",
    "It is 25\u00a0degrees in Zürich, -5 at night: $1,250.",
    "It is 25 degrees in Zürich, \u22125 at night: $1,250.",  # a minus sign
    unicodedata.normalize("NFD", WEATHER),
    f"<think>Hm.</think>{WEATHER}",
]
BOLD_WEATHER = "It is **25** degrees in Zürich, **-5** at night: *$1250*."
OTHER_WEATHER = [
    "It is 125 degrees in Zürich, 20-5 at night: $12500.",
    "It is 25 degrees in Zürich, -5 at night: $1250.75.",
]
WEATHER_IS_NOT_ANSWERED = [parts(WEATHER, "Done."), f"<think>{WEATHER}</think>Done."]
# Of two numbers apart, of one number or two, of one number.
APART = ["Rooms: 12\n350 EUR", "Rooms: 12\t350 EUR", "Rooms: 12  350 EUR"]
EITHER, ONE_NUMBER = ["Room 12 350 EUR"], ["12\u00a0350 EUR", "12\u202f350 EUR", "12\u2009350 EUR"]
TEXTS: list[tuple[Output, Answers, Answers]] = [
    # What is expected of the turn's output, the answers with which it holds, and those with which it breaks.
    ({"not_contains": ["full refund", "it's done"]}, REFUND_IS_NOT_SAID, REFUND_IS_SAID),
    (
        {"contains": ["25 degrees in zürich", "-5", "$1250"]},
        [*WEATHER_IS_SAID, BOLD_WEATHER],
        [*OTHER_WEATHER, *WEATHER_IS_NOT_ANSWERED],
    ),
    # A pattern is matched with what is composed and not folded.
    (
        {"matches": ["25.degrees in z.rich"]},
        [*WEATHER_IS_SAID, *OTHER_WEATHER],
        [BOLD_WEATHER, *WEATHER_IS_NOT_ANSWERED],
    ),
    ({"matches": ["zürich"]}, ["Zu\u0308rich", "ZÜRICH"], ["Ｚürich", "Z\u0336ürich", "Z\\_ürich"]),
    ({"contains": ["12350"]}, [*EITHER, *ONE_NUMBER], APART),
    ({"contains": ["350"]}, [*APART, *EITHER], ONE_NUMBER),
    # What may be there is there.
    ({"not_contains": ["350"]}, [], [*APART, *EITHER, *ONE_NUMBER]),
    ({"not_contains": ["12350"]}, APART, [*EITHER, *ONE_NUMBER]),
    # What is said before a call and after it is not one sentence.
    (
        {"not_contains": ["yes sir"]},
        [parts("Did it say yes", "Sir, wait.")],
        [parts("Yes sir.", "Wait."), parts("Wait.", "Yes sir."), parts("Wait.", "It said yes\nsir.")],
    ),
    # A needle, an answer in which a reader sees it, and one in which a reader sees something else.
    *(
        ({"contains": [needle]}, [seen], [other])
        for needle, seen, other in [
            ("$5", "So it is \\$5.", "So it is \\$50."),
            ("60%", "That is 60\\% of it.", "That is 160\\% of it."),
            ("anna_k", "Your login is anna\\_k\\.", "Your login is annak."),
            ("BK-7", "Your number is BK\\-7\\.", "Your number is BK\\-71\\."),
            ("(x)", "Take \\(x\\).", "Take x."),
            ("1250", "In all 1{,}250 EUR.", "In all {1,}250 EUR."),
            ("1250", "In all 1\\,250 EUR.", "In all 1\\.\\,250 EUR."),
            ("C:\\new", "It is in C:\\new now.", "It is in C:new now."),
            ("refund", "Your ｒｅｆｕｎｄ.", "Your ⓡⓔⓕⓤⓝⓓ."),
            ("refund", "Your 𝐫𝐞𝐟𝐮𝐧𝐝.", "Your 𝐫𝐞𝐟𝐮𝐧𝐝𝐬."),
            ("$25", "It is ＄２５.", "It is ＄２５０."),
            ("25", "It is 25，100 more.", "It is 25,100 more."),
            ("25", "It is 𝟐𝟓.", "It is 𝟐𝟐𝟓."),
            ("10²", "It is 10² m.", "It is 102 m."),
            ("a = b", "Here a = b.", "Here a ≠ b."),
            ("refund", f"Your {struck('refund')}.", f"Your {struck('refund', ACUTE)}."),
            ("1.2", "It is 1.2.", "It is 1.2.3."),
            ("2.3", "It is 2.3, yes.", "It is 1.2.3."),
            ("1.2.3", "It is v1.2.3.", "It is 1.2.3.4."),
            ("15.03", "It is on 15.03.2026.", "It is on 15.13.2026."),
            ("2026", "It is on 5.3.2026.", "It is on 32.3.2026."),
            ("5\\*", "It is a 5\\* hotel.", "It is a 5 hotel."),
            ("5\\*", "a 5* hotel", "a **5** hotel"),
            ("5\\*", "a **5\\*** hotel", "a 5 hotel"),
            ("**Total**", "Total: 5.", "To tal: 5."),
            ("a&b", "So a&b.", "So a&amp;b."),
        ]
    ),
]

# ── one of several, JSON, and what tools gave ────────────────────────────────────────────────────

ORDER = {
    "type": "object",
    "properties": {"id": {"type": "string", "pattern": "^BK-"}, "price": {"type": "number"}},
    "required": ["id"],
}
INTEGERS = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}
GOOD = '{"id": "BK-7", "price": 9.5, "items": [{"price": 9.5000000001}, {"price": 3}], "a.b": null}'


def fenced(text: str, mark: str = "```", info: str = "json") -> str:
    return f"\n{mark}{info}\n{text}\n{mark}\n"


HOLD = [
    Row({"any_of": ["refund", "money back"]}, ["You get your **money back**."]),
    Row({"any_of": ["red"]}, ["it is red", "it is blue"]),
    Row({"not_contains": ["sorry"]}, ["We are s\\*orry."]),
    Row({"any_of": ["25", "30"]}, ["no", "30 degrees"], turn=1),
    Row({"json_schema": ORDER}, [GOOD]),
    Row({"json_schema": ORDER}, [fenced(GOOD)]),
    Row({"json_schema": ORDER}, [fenced(GOOD, "~~~~", "")]),
    Row({"json_schema": ORDER}, ["not yet", GOOD, "as you see"]),
    Row({"json_schema": ORDER}, ["not yet", GOOD], turn=1),
    Row({"json_schema": INTEGERS}, ["[1, 2.0]"]),
    Row({"json_schema": {"const": 1}}, ["1.0"]),
    Row({"json": {"a": {"$any": True}}}, ['{"a": 1e300}']),
    Row({"json": {"items[0].price": {"$approx": 9.5}}}, [GOOD]),
    Row({"json": {"id": {"$regex": "^BK-"}, "items[1]": {"price": 3.0}, '["a.b"]': None}}, [fenced(GOOD)]),
    Row({"json": {"[0].id": 1, "[1]": {"$any": True}}}, ['[{"id": 1}, null]']),
    Row({"json": {"id": "BK-7"}}, ["wait", '{"id": "BK-1"}', GOOD]),
    Row({"cites": ["1250.50", "BK-7"]}, ["@price It is 1,250.50 EUR, reference **BK-7**."]),
    Row({"cites": ["café crème"]}, ["@price One Cafe\u0301 Crème."]),
    Row({"cites": ["ZX-9", "Café"]}, ["@raw Café has ZX-9."]),
    Row({"cites": ["ORD-3"]}, ["@broken There is no ORD-3."]),
    Row({"cites": ["BK-7"]}, ["@price one moment", "it is BK-7"], turn=1),
    Row({"cites": ["BK-7"]}, ["it is BK-7?", "@price it is BK-7"]),
]
PRICE, N_IS_1, CITES = {"$approx": 9.5}, {"json": {"n": 1}}, {"cites": ["BK-7"]}
BREAK = [
    Row({"any_of": ["refund", "money back"]}, ["Nothing."], "any_of",
        ('"refund"', '"money back"', '"Nothing."')),
    Row({"any_of": ["25"]}, ["125"], "any_of", ('"25"',)),
    Row({"any_of": ["25", "30"]}, ["30", "none"], "any_of", ('"none"',), turn=1),
    Row({"contains": ["sorry"]}, ["We are s\\*orry."], "contains", ('"sorry"',)),
    Row({"contains": ["refund", "hi"]}, ["hi, it was refunded"], "contains", ('"refund*"',)),
    Row({"not_contains": ["sorry"]}, ["We are **s**orry \\*."], "not_contains", ('"sorry"',)),
    Row({"json_schema": ORDER}, ['{"id": "XX", "price": 1}'], "json_schema", ("'XX'", "'^BK-'")),
    Row({"json_schema": ORDER}, ['{"price": 1}'], "json_schema", ("'id'",)),
    Row({"json_schema": ORDER}, ['{"id": "BK-1", "price": "1"}'], "json_schema", ("price: '1'",)),
    Row({"json_schema": ORDER}, [f"Here it is: {GOOD}"], "json_schema"),
    Row({"json_schema": ORDER}, [f"Here it is:\n{fenced(GOOD)}"], "json_schema"),
    Row({"json_schema": ORDER}, [fenced(GOOD) + fenced(GOOD)], "json_schema"),
    Row({"json_schema": ORDER}, ['{"id": "BK-1", "id": "no"}'], "json_schema", ('"id"',)),
    Row({"json_schema": {"type": "number"}}, ["NaN"], "json_schema", ("NaN",)),
    Row({"json_schema": {"type": "number"}}, ["-1e999"], "json_schema", ("-1e999",)),
    Row({"json_schema": {"type": "array"}}, ["[" * 100_000], "json_schema"),
    Row({"json_schema": {"const": True}}, ["1"], "json_schema", ("true",)),
    Row({"json_schema": ORDER}, ["not yet", GOOD], "json_schema", turn=0),
    Row({"json": {"a": {"$any": True}}}, ['{"a": 1e999}'], "json", ("1e999",)),
    Row({"json": {"items[0].price": PRICE}}, ['{"items": [{"price": 9.6}]}'], "json",
        ("items[0].price", "9.5", "9.6")),
    Row({"json": {"items[0].prise": 1}}, [GOOD], "json", ("items[0]", '"prise"', "price")),
    Row({"json": {"items[2].price": 3}}, [GOOD], "json", ("items[2].price", "2 items")),
    Row({"json": {"id[0]": "B"}}, [GOOD], "json", ("id[0]", "list")),
    Row({"json": {"id.x": "B"}}, [GOOD], "json", ("id.x", "object")),
    Row({"json": {"items[1]": {"price": 3, "more": 1}}}, [GOOD], "json", ("items[1].more",)),
    Row(N_IS_1, ['{"n": true}'], "json", ("n: ", "1", "true")),
    Row(N_IS_1, ["n is 1"], "json", ("JSON", "n:")),
    # Two answers that are each right in half are no right answer.
    Row({"json": {"id": 1, "paid": True}}, ['{"id": 1, "paid": false}', '{"id": 2, "paid": true}'], "json",
        ("paid: ", "true", "false")),
    Row(N_IS_1, ['{"n": 1}', '{"n": 2}'], "json", ("n: ", "1", "2"), turn=1),
    Row(CITES, ["It is BK-7."], "cites", ("BK-7", "no tool")),
    Row({"cites": ["BK-8"]}, ["@price It is BK-8."], "cites", ("BK-8", "1 tool call")),
    Row(CITES, ["@price Done."], "cites", ('"BK-7"', "Done.")),
    Row({"cites": ["crème"]}, ["@price Crèmes."], "cites", ('"crème*"',)),
    Row({"cites": ["125"]}, ["@price It is 125."], "cites", ("125", "tool")),
    Row(CITES, ["it is BK-7", "@price yes"], "cites", ("BK-7", "tool")),
    Row(CITES, ["it is BK-7", "@price BK-7"], "cites", ("BK-7", "tool"), turn=0),
]  # fmt: skip
ROWS = [
    *HOLD,
    *BREAK,
    *(Row(output, [answer], turn=0) for output, holds, _ in TEXTS for answer in holds),
    *(Row(output, [answer], *output, turn=0) for output, _, breaks in TEXTS for answer in breaks),
]


def played(project: Project, rows: list[Row]) -> list[dict[str, Any]]:
    """One run with a scenario for each row."""
    entries = []
    for number, row in enumerate(rows):
        expect = {"output": row.output}
        turns = [{"user": t, "expect": expect} if i == row.turn else t for i, t in enumerate(row.answers)]
        entry = {"id": f"s{number}", "turns": turns, "tools": TOOLS}
        entries.append(entry if row.turn is not None else {**entry, "expect": expect})
    project.agent(ECHO)
    project.config("detectors: []\n")
    project.scenarios(json.dumps({"scenarios": entries}, ensure_ascii=False))
    done = project.run()
    assert done.code in (1, 3), done.err
    samples = {scenario["id"]: scenario["samples"][0] for scenario in project.results()["scenarios"]}
    return [samples[f"s{number}"] for number in range(len(rows))]


def reason(sample: dict[str, Any], name: str) -> str:
    """What the broken or undecided check of this name gives as its reason."""
    checks = [*sample["checks"], *(check for turn in sample["turns"] for check in turn["checks"])]
    return " ".join(str(c["detail"]) for c in checks if c["name"] == name and not c["passed"])


def test_each_output_is_green_or_red_at_its_turn_for_its_reason(project: Project) -> None:
    for row, sample in zip(ROWS, played(project, ROWS), strict=True):
        broken = {(row.turn, f"output.{row.broken}")} if row.broken else set()
        assert failed_checks(sample) == broken, row
        assert sample["verdict"] == ("failed" if row.broken else "passed"), row
        assert all(fact in reason(sample, f"output.{row.broken}") for fact in row.facts), (row, sample)


def test_a_star_is_proposed_only_where_it_would_match_and_an_endless_pattern_decides_nothing(
    project: Project,
) -> None:
    endless = {"json_schema": {"type": "string", "pattern": "^(a|aa)+$"}}
    rows = [Row({"contains": ["refund"]}, ["Hello."]), Row(endless, [json.dumps("a" * 40 + "!")])]
    star, undecided = played(project, rows)
    assert "*" not in reason(star, "output.contains")
    assert (undecided["verdict"], failed_checks(undecided)) == ("inconclusive", set())
    assert reason(undecided, "output.json_schema")


def test_where_calls_cannot_be_seen_nothing_is_known_of_what_tools_gave(project: Project) -> None:
    project.agent("def agent(messages):\n    return messages[-1]['content']\n")
    project.config()
    project.scenarios("""
        scenarios:
          - {id: cited, turns: [it is BK-7], expect: {output: {cites: [BK-7]}}}
          - {id: not cited, turns: [it is done], expect: {output: {cites: [BK-7]}}}
    """)
    project.run()
    assert project.sample("cited")["verdict"] == "inconclusive"
    assert failed_checks(project.sample("not cited")) == {(None, "output.cites")}


def test_a_call_that_was_not_made_is_no_source(project: Project) -> None:
    project.agent("""
        import json

        def agent(messages, ctx):
            if messages[-1]["role"] == "tool":
                return "Your reference is BK-9."
            name, arguments = json.loads(messages[0]["content"])
            call = {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}
            return {"role": "assistant", "content": "", "tool_calls": [call]}
    """)
    project.config("detectors: []\n")
    schema = {"type": "object", "properties": {"id": {"type": "string", "pattern": "^ORD-"}}}
    tools = {
        "get": {"parameters": schema, "returns": {"ref": "BK-9"}},
        "fill": {"returns": {"ref": "BK-${args.BK-9}"}},
        "keys": {"returns": {"BK-9": "open"}},
        "shut": {"error": "BK-9 is closed"},
    }
    calls = {
        "made": ("get", '{"id": "ORD-1"}', "passed"),
        "cites a key": ("keys", "{}", "passed"),
        "cites an error of the tool": ("shut", "{}", "passed"),
        "refused by the schema": ("get", '{"id": "BK-9"}', "failed"),
        "without what the template needs": ("fill", "{}", "failed"),
        "unknown tool": ("BK-9", "{}", "failed"),
        "unreadable arguments": ("get", '{"id": BK-9', "failed"),
    }
    expect = {"output": {"cites": ["BK-9"]}}
    rows = [
        {"id": name, "turns": [json.dumps(call[:2])], "tools": tools, "expect": expect}
        for name, call in calls.items()
    ]
    project.scenarios(json.dumps({"scenarios": rows}))
    project.run()
    for name, (*_, verdict) in calls.items():
        sample = project.sample(name)
        assert sample["verdict"] == verdict, name
        assert ((None, "output.cites") in failed_checks(sample)) is (verdict == "failed"), name


# ── what is refused ──────────────────────────────────────────────────────────────────────────────

MATCHES_EVERYTHING = [
    *(".*", "rain|", "^", "$", "", "(?:)", "x*", "()", "(rain)?", "(?m)^", "a{0,3}", "|", "(?!.*x)"),
    *(".", ".+", "(.)+", ".*.+", r"[\s\S]+", r"\S", "rain|."),  # every answer, as none is empty
]
MATCHES_SOMETHING = [
    *("^$", "^rain", "rain$", r"\brain", "(?i)rain|sun", "^(?!.*sorry)", "x+", "..", "^.+$", "(?=x)."),
    *(".(?<!x)", "[^x]", r"^\s*$"),
]
REFUSED: dict[str, tuple[str, ...]] = {
    "output: {contains: []}": ("output.contains",),
    "output: {not_contains: []}": ("output.not_contains",),
    "output: {matches: []}": ("output.matches",),
    "output: {any_of: []}": ("output.any_of",),
    "output: {cites: []}": ("output.cites",),
    "output: {contains: [a], not_contains: []}": ("output.not_contains",),
    "criteria: []": ("criteria",),
    "criteria: [], limits: {steps: 1}": ("criteria",),
    "tool_calls: {calls: [{name: a}], forbidden: []}": ("tool_calls.forbidden",),
    **{f"output: {{matches: ['{pattern}']}}": (f"/{pattern}/",) for pattern in MATCHES_EVERYTHING},
    "output: {matches: .*}": ("/.*/",),
    "tool_calls: {calls: [{name: a, args: {x: {$regex: 'x*'}}}]}": ("/x*/",),
    'output: {contains: ["\\u200b"]}': ("contains",),
    'output: {contains: ["*"]}': ("contains",),
    'output: {contains: ["\\u0336"]}': ("contains",),
    "output: {cites: ['\\_']}": ("cites",),
    "output: {not_contains: ['\\`']}": ("not_contains",),
    'output: {not_contains: ["**"]}': ("not_contains",),
    "output: {not_contains: ['refund*']}": ("not_contains", "'*'"),
}
REFUSED_IN_COLUMNS = [  # what is written, the key or value whose column is reported, what is named
    ('any_of: [""]', '""', ("expect.output.any_of",)),
    ("contains: []", "contains", ("output.contains",)),
    ("contains: [a], not_contains: []", "not_", ("output.not_contains",)),
    ("cites: tool results only", "cites", ("output.cites", "'tool results only'")),
    ("json: {}", "json", ("output.json",)),
    ("json: null", "json", ("expect.output.json", "null")),
    ("json: {'items[x]': 1}", "'items", ("output.json", "'items[x]'")),
    ("json: {'a..b': 1}", "'a", ("output.json", "'a..b'")),
    ("json: {'$.a': 1}", "'$", ("output.json", "'$.a'")),
    ("json: {a: {$aprox: 1}}", "$aprox", ("'$aprox'", "'$approx'")),
    ("json_schema: {}", "json_schema", ("output.json_schema",)),
    ("json_schema: {type: strng}", "type", ("output.json_schema", "'strng'")),
    ("json_schema: {properties: {a: {$ref: '#/$defs/no'}}}", "$ref",
     ("output.json_schema", "'#/$defs/no'")),
    ("json_schema: true", "json_schema", ("expect.output.json_schema", "true")),
    ("any_off: [a]", "any_off", ("'any_off'", "'any_of'")),
]  # fmt: skip
SOUND = [
    "output: {contains: ['refund*', '2\\*3']}",
    "output: {not_contains: ['2\\*3']}",
    *(f"output: {{matches: ['{pattern}']}}" for pattern in MATCHES_SOMETHING),
    "tool_calls: {calls: [{name: a, args: {x: {$regex: .+}}}]}",
    "tool_calls: {match: strict, calls: []}",
    "tool_calls: {calls: [], forbidden: [{name: a}]}",
    "tool_calls: none",
    "tool_calls: {forbidden: [{name: a}]}",
    "tool_calls: {calls: [{name: a, args: {ids: []}}]}",
]


@pytest.fixture
def echo(project: Project) -> Project:
    project.agent(ECHO)
    project.config()
    return project


def test_lists_patterns_and_texts_that_check_nothing_are_refused_at_their_line(echo: Project) -> None:
    assert_each_refused(echo, REFUSED)
    at_a_turn = "turns: [hi, {{user: ho, expect: {{{}}}}}]"
    assert_each_refused(echo, {"output: {any_of: []}": ("output.any_of",)}, at_a_turn)


def test_what_checks_nothing_is_refused_at_its_column(echo: Project) -> None:
    lines = [
        f"- {{id: s{i}, turns: [hi], expect: {{output: {{{row[0]}}}}}}}"
        for i, row in enumerate(REFUSED_IN_COLUMNS)
    ]
    echo.scenarios("scenarios:\n" + "\n".join(lines) + "\n")
    done = echo.call("validate")
    for number, (line, (_, culprit, facts)) in enumerate(zip(lines, REFUSED_IN_COLUMNS, strict=True), 2):
        column = line.index(culprit, line.index("output: {") + 9) + 1
        done.refuses(f"scenarios/suite.yaml:{number}:{column}", *facts)


def test_what_checks_something_is_accepted_and_a_case_may_have_empty_lists(echo: Project) -> None:
    case = "cases:\n- {id: c, input: x, expected_tools: [], expected_output_contains: []}\n"
    assert_none_refused(echo, SOUND, more=case)


@pytest.mark.parametrize(("written", "code"), [("[]", 2), ("null", 0)])
def test_an_inherited_list_is_taken_away_by_null_and_not_by_an_empty_one(
    echo: Project, written: str, code: int
) -> None:
    defaults = "defaults: {expect: {output: {contains: [a], not_contains: [b]}}}\n"
    expect = f"expect: {{output: {{contains: {written}}}}}"
    echo.scenarios(f"{defaults}scenarios:\n- {{id: s, turns: [x], {expect}}}\n")
    done = echo.call("validate")
    assert done.code == code
    assert ("null" in done.err) is bool(code)


def test_numbers_in_texts_stay_as_written_and_in_json_stay_numbers(echo: Project) -> None:
    echo.scenarios("""
        scenarios:
          - {id: texts, turns: ["1.50"], expect: {output: {any_of: [1.50]}}}
          - {id: values, turns: ['{"contains": 1.5}'], expect: {output: {json: {contains: 1.50}}}}
    """)
    assert echo.run().code == 0
