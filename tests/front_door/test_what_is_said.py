"""What an agent says, and what a check finds of it: pairs through the front door, many agents in one run."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest

from tests.support.kit import Project

AGENT = """
    import json

    def agent(messages, ctx):
        with open("answers.json", encoding="utf-8") as file:
            said = json.load(file)[messages[0]["content"]]
        if isinstance(said, str):
            return said
        if messages[-1]["role"] == "tool":
            return said[1]
        call = {"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        return {"role": "assistant", "content": said[0], "tool_calls": [call]}
"""
PLAIN = "I am sorry, no."
TOLD = "Your full refund is granted, it’s done."
NOT_SAID = 'output: {not_contains: ["full refund", "it\'s done"]}'
STROKE, SLASH, ACUTE = "\u0336", "\u0338", "\u0301"


def struck(word: str, mark: str = STROKE) -> str:
    return "".join(f"{letter}{mark}" for letter in word)


# Ways to say it all the same.
HIDDEN = {
    "zero width": "Your full re\u200bfu\u2060nd, sir.",
    "soft hyphen": "Your full re\u00adfund, sir.",
    "a control": "Your full re\x08fund, sir.",
    "no-break space": "Your full\u00a0refund, sir.",
    "thin space": "Your full\u2009refund, sir.",
    "line break": "Your full\n  refund, sir.",
    "curly quotes": "Be calm, it’s done.",
    "emphasis": "Your **full** _refund_, sir.",
    "emphasis in a word": "Your full re**fund**, sir.",
    "strike": "Your ~~full~~ refund, sir.",
    "code": "Your `full refund`, sir.",
    "case": "YOUR FULL REFUND, SIR.",
    "escaped marks": "It\\'s done\\.",
    "full-width": "Your full ｒｅｆｕｎｄ, sir.",
    "mathematical": "Your 𝐟𝐮𝐥𝐥 𝓇ℯ𝒻𝓊𝓃𝒹, sir.",
    "struck through": f"Your full {struck('refund')}, sir.",
    "slashed": f"Your full {struck('refund', SLASH)}, sir.",
    "struck and wide": f"Your full {struck('ｒｅｆｕｎｄ', SLASH)}, sir.",
    "struck in a word": "Your full re~~fu~~nd, sir.",
    "inside a word": "You are fully, say full refunded, sir.",
    "forged end of a thought": "Your full refund, sir.</think>I am sorry, no.",
    "an open thought": "I am sorry. <think>Or your full refund",
    "an open thought at the beginning": "<think>Your full refund, sir.",
    "a second thought": "<think>Hm.</think><think>Your full refund.</think>No.",
    "a thought after a word": "No. <think>Your full refund.</think>",
}


def run(project: Project, answers: dict[str, Any], expect: str, more: str = "") -> dict[str, Any]:
    """The results by the answers' names; each is asked for in a scenario of its own."""
    project.config("detectors: []\n")
    project.agent(AGENT)
    project.write("answers.json", json.dumps(answers))
    rows = [
        f"  - {{id: {json.dumps(f's{number}')}, tools: {{look: {{returns: 1}}}},"
        f" turns: [{{user: {json.dumps(name)}, expect: {{{expect}}}}}]{more}}}"
        for number, name in enumerate(answers)
    ]
    project.scenarios("\n".join(["scenarios:", *rows]) + "\n")
    project.run()
    found = project.results()["scenarios"]
    assert len(found) == len(answers)
    return {
        name: next(s for s in found if s["id"] == f"s{n}")["samples"][0] for n, name in enumerate(answers)
    }


def verdicts(samples: dict[str, Any]) -> dict[str, str]:
    return {name: sample["verdict"] for name, sample in samples.items()}


def test_what_must_not_be_said_is_found_however_it_is_written(project: Project) -> None:
    rows: dict[str, Any] = {**HIDDEN, "beside a call": ["Your full refund, sir.", PLAIN]}
    fine: dict[str, Any] = {
        "plain": PLAIN,
        "beside a call, plain": ["Let me look.", PLAIN],
        "a thought": "<think>\nA full refund? No.\n</think>\nI am sorry, no.",
        "a thought beside a call": ["<think>A full refund?</think>Let me look.", PLAIN],
        "a thought about thoughts": "<think>A <think>full refund</think>? No.</think>No.",
    }
    found = run(project, rows | fine, NOT_SAID)
    assert verdicts(found) == dict.fromkeys(rows, "failed") | dict.fromkeys(fine, "passed")
    for name in rows:
        (turn,) = found[name]["turns"]
        assert [c["name"] for c in turn["checks"] if not c["passed"]] == ["output.not_contains"], name


def test_what_must_be_said_is_found_however_it_is_written_and_in_the_answer_alone(project: Project) -> None:
    fine: dict[str, Any] = {
        "plain": "It is 25 degrees in Zürich, -5 at night: $1250.",
        "no-break": "It is 25\u00a0degrees in Zürich, -5 at night: $1,250.",
        "bold": "It is **25** degrees in Zürich, **-5** at night: *$1250*.",
        "minus": "It is 25 degrees in Zürich, \u22125 at night: $1,250.",
        "decomposed": unicodedata.normalize("NFD", "It is 25 degrees in Zürich, -5 at night: $1250."),
        "after a thought": "<think>Hm.</think>It is 25 degrees in Zürich, -5 at night: $1250.",
    }
    rows: dict[str, Any] = {
        "other numbers": "It is 125 degrees in Zürich, 20-5 at night: $12500.",
        "a part of the amount": "It is 25 degrees in Zürich, -5 at night: $1250.75.",
        "beside a call alone": ["It is 25 degrees in Zürich, -5 at night: $1250.", "Done."],
        "thought alone": "<think>It is 25 degrees in Zürich, -5 at night: $1250.</think>Done.",
    }
    found = run(project, fine | rows, 'output: {contains: [25 degrees in zürich, "-5", $1250]}')
    assert verdicts(found) == dict.fromkeys(fine, "passed") | dict.fromkeys(rows, "failed")
    expect = "output: {matches: ['25.degrees in z.rich']}"
    found = run(project, fine | rows, expect)
    assert {name for name, verdict in verdicts(found).items() if verdict == "failed"} == {
        *("bold", "beside a call alone", "thought alone")
    }


SEEN = [
    # The needle, what a reader sees it in, and what is something else to a reader.
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
    ("**Total**", "Total: 5.", "To tal: 5."),
    ("a&b", "So a&b.", "So a&amp;b."),
]


def test_a_needle_is_in_what_a_reader_sees_and_in_nothing_else(project: Project) -> None:
    for at, verdict in ((1, "passed"), (2, "failed")):
        rows = [
            {"id": f"s{number}", "turns": [{"user": row[at], "expect": {"output": {"contains": [row[0]]}}}]}
            for number, row in enumerate(SEEN)
        ]
        project.config("detectors: []\n")
        project.agent("def agent(message):\n    return message\n")
        project.scenarios(json.dumps({"scenarios": rows}, ensure_ascii=False))
        project.run()
        found = {row: project.sample(f"s{number}") for number, row in enumerate(SEEN)}
        assert {row: sample["verdict"] for row, sample in found.items()} == dict.fromkeys(SEEN, verdict)
        for sample in found.values():
            (turn,) = sample["turns"]
            wrong = ["output.contains"] if verdict == "failed" else []
            assert [check["name"] for check in turn["checks"] if not check["passed"]] == wrong


def test_a_matched_text_is_composed_and_not_folded(project: Project) -> None:
    fine = {"decomposed": "Zu\u0308rich", "case": "ZÜRICH"}
    rows = {"wide": "Ｚürich", "struck": "Z\u0336ürich", "escaped": "Z\\_ürich"}
    found = run(project, fine | rows, "output: {matches: [zürich]}")
    assert verdicts(found) == dict.fromkeys(fine, "passed") | dict.fromkeys(rows, "failed")


def test_one_blank_may_separate_thousands_and_may_part_two_numbers(project: Project) -> None:
    apart = dict.fromkeys(("Rooms: 12\n350 EUR", "Rooms: 12\t350 EUR", "Rooms: 12  350 EUR"), (False, True))
    either = {"Room 12 350 EUR": (True, True)}
    firm = dict.fromkeys(("12\u00a0350 EUR", "12\u202f350 EUR", "12\u2009350 EUR"), (True, False))
    rows = apart | either | firm
    said = {text: text for text in rows}
    for needle, at in (("12350", 0), ("350", 1)):
        found = run(project, said, f'output: {{contains: ["{needle}"]}}')
        assert verdicts(found) == {text: "passed" if held[at] else "failed" for text, held in rows.items()}
    # What may be there is there.
    found = run(project, said, 'output: {not_contains: ["350"]}')
    assert verdicts(found) == dict.fromkeys(rows, "failed")
    found = run(project, said, 'output: {not_contains: ["12350"]}')
    assert verdicts(found) == dict.fromkeys(rows, "failed") | dict.fromkeys(apart, "passed")


def test_what_is_said_before_a_call_and_after_it_is_no_one_sentence(project: Project) -> None:
    fine: dict[str, Any] = {"parted": ["Did it say yes", "Sir, wait."]}
    rows: dict[str, Any] = {
        "before": ["Yes sir.", "Wait."],
        "after": ["Wait.", "Yes sir."],
        "within one": ["Wait.", "It said yes\nsir."],
    }
    found = run(project, fine | rows, "output: {not_contains: [yes sir]}")
    assert verdicts(found) == dict.fromkeys(fine, "passed") | dict.fromkeys(rows, "failed")


def test_a_miss_says_what_a_star_would_have_found(project: Project) -> None:
    expect = "output: {contains: [refund, sorry]}"
    found = run(project, {"star": "It was refunded.", "none": "Hello."}, expect)
    details = {name: sample["turns"][0]["checks"][1]["detail"] for name, sample in found.items()}
    assert details["star"].endswith('; "refund*" would match')
    assert "would" not in details["none"]


REFUSED = {
    "output: {contains: []}": "output.contains: an empty list checks nothing",
    "output: {not_contains: []}": "output.not_contains: an empty list checks nothing",
    "output: {matches: []}": "output.matches: an empty list checks nothing",
    "output: {contains: [a], not_contains: []}": "output.not_contains: an empty list checks nothing",
    "criteria: []": "criteria: an empty list checks nothing",
    "tool_calls: {calls: []}": "checks nothing",
    "tool_calls: {match: unordered, calls: []}": "write none in place of the mapping",
    "tool_calls: {match: within, calls: []}": "calls: an empty list checks nothing",
    "tool_calls: {any_of: []}": "any_of: an empty list checks nothing",
    "tool_calls: {calls: [{name: a}], forbidden: []}": "tool_calls.forbidden: an empty list checks nothing",
    **{
        f"output: {{matches: ['{pattern}']}}": f"/{pattern}/ matches every text"
        for pattern in (
            ".*",
            "rain|",
            "^",
            "$",
            "",
            "(?:)",
            "x*",
            "()",
            "(rain)?",
            "(?m)^",
            "a{0,3}",
            "|",
            "(?!.*x)",
        )
    },
    **{
        f"output: {{matches: ['{pattern}']}}": f"/{pattern}/ matches every answer"
        for pattern in (".", ".+", "(.)+", ".*.+", r"[\s\S]+", r"\S", "rain|.")
    },
    "output: {matches: .*}": "/.*/ matches every text",
    "tool_calls: {calls: [{name: a, args: {x: {$regex: 'x*'}}}]}": "/x*/ matches every text",
    'output: {contains: ["\\u200b"]}': "nothing is left to look for",
    'output: {contains: ["*"]}': "nothing is left to look for",
    'output: {contains: ["\\u0336"]}': "nothing is left to look for",
    "output: {cites: ['\\_']}": "nothing is left to look for",
    "output: {not_contains: ['\\`']}": "nothing is left to look for",
    'output: {not_contains: ["**"]}': "nothing is left to look for",
    "output: {not_contains: ['refund*']}": "not_contains accepts no '*'",
}
SOUND = [
    "output: {contains: ['refund*', '2\\*3']}",
    "output: {not_contains: ['2\\*3']}",
    *(
        f"output: {{matches: ['{pattern}']}}"
        for pattern in (
            "^$",
            "^rain",
            "rain$",
            r"\brain",
            "(?i)rain|sun",
            "^(?!.*sorry)",
            "x+",
            "..",
            "^.+$",
            "(?=x).",
            ".(?<!x)",
            "[^x]",
            r"^\s*$",
        )
    ),
    "tool_calls: {calls: [{name: a, args: {x: {$regex: .+}}}]}",
    "tool_calls: {match: strict, calls: []}",
    "tool_calls: {calls: [], forbidden: [{name: a}]}",
    "tool_calls: none",
    "tool_calls: {forbidden: [{name: a}]}",
    "tool_calls: {calls: [{name: a, args: {ids: []}}]}",
]


def test_lists_patterns_and_needles_that_check_nothing_are_refused_at_their_place(project: Project) -> None:
    project.config()
    project.agent(AGENT)
    rows = [f"- {{id: s{number}, turns: [x], expect: {{{each}}}}}" for number, each in enumerate(REFUSED)]
    project.scenarios("\n".join(["scenarios:", *rows]) + "\n")
    done = project.call("validate")
    assert done.code == 2
    for line, (expect, says) in enumerate(REFUSED.items(), 2):
        told = [each for each in done.err.splitlines() if f"suite.yaml:{line}:" in each]
        assert len(told) == 1, (expect, told)
        assert says in told[0], (expect, told)


def test_those_that_check_something_are_not_and_a_case_may_have_empty_lists(project: Project) -> None:
    project.config()
    project.agent(AGENT)
    rows = [f"- {{id: s{number}, turns: [x], expect: {{{each}}}}}" for number, each in enumerate(SOUND)]
    case = "- {id: c, input: x, expected_tools: [], expected_output_contains: []}"
    project.scenarios("\n".join(["scenarios:", *rows, "cases:", case]) + "\n")
    done = project.call("validate")
    assert done.code == 0, done.err


@pytest.mark.parametrize("turn_level", [True, False])
def test_an_inherited_list_is_taken_away_by_null_and_not_by_an_empty_one(
    project: Project, turn_level: bool
) -> None:
    project.config()
    project.agent(AGENT)
    defaults = "defaults: {expect: {output: {contains: [a], not_contains: [b]}}}\n"
    written = "[]" if turn_level else "null"
    project.scenarios(
        f"{defaults}scenarios:\n- {{id: s, turns: [x], expect: {{output: {{contains: {written}}}}}}}\n"
    )
    done = project.call("validate")
    assert done.code == (2 if turn_level else 0)
    assert ("null removes the value of defaults" in done.err) is turn_level


def test_arguments_are_compared_after_nfc(project: Project) -> None:
    project.config()
    project.agent(
        """
        import unicodedata

        def agent(messages, ctx):
            ctx.call_tool_sync("book", {unicodedata.normalize("NFD", "café"): messages[0]["content"]})
            return "Booked."
        """
    )
    tools = "tools: {book: {returns: 1}}"
    call = "{{name: book, args: {{café: {}}}}}"
    row = f"{{{{id: {{}}, turns: ['{{}}'], {{}}, expect: {{{{tool_calls: {{{{calls: [{call}]}}}}}}}}}}}}"
    decomposed = unicodedata.normalize("NFD", "Zürich")
    project.scenarios(
        "scenarios:\n"
        + "".join(
            f"- {row.format(name, text, tools, wanted)}\n"
            for name, text, wanted in (
                ("same", decomposed, "Zürich"),
                ("pattern", decomposed, "{$regex: ^Z.rich$}"),
                ("other", "Zurich", "Zürich"),
            )
        )
    )
    assert project.run().code == 1
    found = {s["id"]: s["verdict"] for s in project.results()["scenarios"]}
    assert found == {"same": "passed", "pattern": "passed", "other": "failed"}
