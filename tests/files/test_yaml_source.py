"""YAML to values and places: core schema types, every refusal with its place, no way to crash."""

from __future__ import annotations

import gc
import math
import re
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.core.errors import AuthorError
from agenteval.files import yaml_source
from agenteval.files.yaml_source import Mark, parse_yaml
from tests.support.lock import with_locked


def value_of(text: str | bytes) -> Any:
    data = text.encode() if isinstance(text, str) else text
    return parse_yaml(data, "f.yaml").value


def complaint(text: str | bytes) -> str:
    with pytest.raises(AuthorError) as caught:
        value_of(text)
    return str(caught.value)


def places(text: str) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}

    def walk(mark: Mark, prefix: str) -> None:
        for key, below in mark.pairs():
            found[prefix + key] = (below.line, below.column)
            walk(below, f"{prefix}{key}.")

    walk(parse_yaml(text.encode(), "f.yaml").mark, "")
    return found


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        *[(null, None) for null in ("null", "Null", "NULL", "~", "")],
        *[(true, True) for true in ("true", "True", "TRUE")],
        *[(false, False) for false in ("false", "False", "FALSE")],
        *[(text, text) for text in ("no", "No", "yes", "on", "off", "y", "n", "tRUE", "nULL")],
        *[(text, text) for text in ("12:30", "12:30:45", "2026-11-21", "2026-11-21T10:00:00Z", "1_000")],
        *[
            (text, text)
            for text in ("0b1", "0o8", "0xG", "+0x1F", "1e", ".", "-1-", "+", "1.2.3", "NaN", "inf")
        ],
        ("0", 0),
        ("010", 10),
        ("-7", -7),
        ("+7", 7),
        ("0o14", 12),
        ("0x1F", 31),
        ("1.50", 1.5),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5", -0.5),
        ("1e3", 1000.0),
        ("1E-2", 0.01),
        (".inf", math.inf),
        ("-.Inf", -math.inf),
        ("+.INF", math.inf),
        ('"12"', "12"),
        ("'no'", "no"),
        ("!!str 12", "12"),
        ("!!str", ""),
        ("! 12", "12"),
        ('!!int "12"', 12),
        ("!!float 1", 1.0),
        ('!!bool "true"', True),
        ("!!null ''", None),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
        ("0x" + "F" * 900, int("F" * 900, 16)),
    ],
)
def test_scalars_have_the_types_of_the_core_schema(scalar: str, value: Any) -> None:
    found = value_of(f"a: {scalar}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_not_a_number() -> None:
    assert math.isnan(value_of("a: .nan")["a"])


def test_keys_are_their_source_text() -> None:
    assert value_of("1: a\n01: b\ntrue: c\n~: d\n1.50: e\n2026-01-01: f\n'': g") == {
        "1": "a", "01": "b", "true": "c", "~": "d", "1.50": "e", "2026-01-01": "f", "": "g",
    }  # fmt: skip


def test_every_key_and_item_has_its_place() -> None:
    assert places("a: 1\nb:\n  - x\n  - c: é😀\n    d: {e: [1, 2]}\n") == {
        "a": (1, 1),
        "b": (2, 1),
        "b.0": (3, 5),
        "b.1": (4, 5),
        "b.1.c": (4, 5),
        "b.1.d": (5, 5),
        "b.1.d.e": (5, 9),
        "b.1.d.e.0": (5, 13),
        "b.1.d.e.1": (5, 16),
    }


def test_columns_count_characters() -> None:
    assert places("{é😀: 1, b: 2}")["b"] == (1, 9)


def test_how_a_number_was_written_is_kept_where_it_matters() -> None:
    document = parse_yaml(b"a: 1.50\nb: 010\nc: True\nd: 7\ne: text\nf: null\n", "f.yaml")
    assert document.has_original_text
    assert {key: mark.text for key, mark in document.mark.pairs()} == {
        "a": "1.50", "b": "010", "c": "True", "d": None, "e": None, "f": None,
    }  # fmt: skip
    assert not parse_yaml(b"a: 1.5\nb: true\n", "f.yaml").has_original_text


def test_aliases_share_values_and_have_the_place_of_their_use() -> None:
    text = "base: &b {x: 1}\nuse: *b\nlist: [*b]\n"
    assert value_of(text) == {"base": {"x": 1}, "use": {"x": 1}, "list": [{"x": 1}]}
    found = places(text)
    assert found["use"] == (2, 1)
    assert found["use.x"] == found["base.x"] == (1, 11)
    assert found["list.0"] == (3, 8)


def test_an_anchored_text_may_be_a_key() -> None:
    assert value_of("a: &k name\n*k : 1\n") == {"a": "name", "name": 1}


def test_merge_keys_lose_to_own_ones() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc:\n  y: 3\n  <<: [*a, *b]\nd:\n  <<: *b\n  y: 4\n"
    found = value_of(text)
    assert found["c"] == {"y": 3, "x": 1, "z": 2}
    assert found["d"] == {"y": 4, "z": 2}
    assert found["a"] == {"x": 1, "y": 1}
    assert places(text)["c.x"] == (1, 8)
    assert places(text)["d.y"] == (8, 3)


def test_a_quoted_merge_sign_is_a_key() -> None:
    assert value_of('"<<": 1') == {"<<": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "3:1: the key 'a' appears twice, first on line 1 — remove one of them"),
        ('1: a\n"1": b', "2:1: the key '1' appears twice, first on line 1 — remove one of them"),
        (
            "a: !!python/object:os.system x",
            "1:4: the tag '!!python/object:os.system' is not allowed — remove it; only plain YAML"
            " values are allowed",
        ),
        ("a: !foo [1]", "1:4: the tag '!foo' is not allowed — remove it; only plain YAML values are allowed"),
        ("a: !!binary aGk=", "1:4: the tag '!!binary' is not allowed — remove it; only plain YAML values"
         " are allowed"),
        ("a: !!int abc", "1:4: 'abc' does not match the tag '!!int' — remove the tag, or use a value"
                         " that matches it"),
        ("a: !!bool yes", "1:4: 'yes' does not match the tag '!!bool' — remove the tag, or use a value"
                          " that matches it"),
        ("a: !!map 1", "1:4: '1' does not match the tag '!!map' — remove the tag, or use a value that"
                       " matches it"),
        ("a: !!seq {}", "1:4: a mapping cannot have the tag '!!seq' — remove it"),
        ("? [a]\n: 1", "1:3: a key must be a string — put a string that starts with '{', '[' or '*' in"
                       " quotes"),
        ("a: {{ name }}", "1:5: a key must be a string — put a string that starts with '{', '[' or '*'"
                          " in quotes"),
        ("a: &x [1]\n*x : 2", "2:1: a key must be a string — put a string that starts with '{', '[' or"
                              " '*' in quotes"),
        ("a: *b", "1:4: '*b' refers to an undefined anchor — define &b before this line"),
        ("a: &a [*a]", "1:8: '*a' refers to a value that contains it — write out the value"),
        ("<<: 3", "1:5: '<<' requires a mapping or a list of mappings — use <<: *name"),
        ("a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n", "4:3: '<<' appears twice — use <<: [*one, *two]"),
        ("a: 1\n---\nb: 2\n", "2:1: a second YAML document starts here — use one document per file"),
        ("", " the file is empty"),
        ("# only a comment\n", " the file is empty"),
        ("a: " + "9" * 10_000, "1:4: a number with 10,000 digits is too long — quote it if it is meant"
                               " as a string"),
        ("[" * 100_000, "1:101: nested more than 100 levels deep — reduce the nesting"),
        ("- " * 300 + "a", "1:201: nested more than 100 levels deep — reduce the nesting"),
    ],
)  # fmt: skip
def test_what_is_not_plain_data_is_refused(text: str, message: str) -> None:
    assert complaint(text) == f"f.yaml:{message}"


TAB = "the indentation contains a tab — indent with spaces"
COLON = "a ':' is not expected here — check the indentation, or quote the string if it contains ': '"


BROKEN = [
    ("a:\n\tb: 1", f"2:1: {TAB}"),
    ("a: 1\n \tb: 2", f"2:2: {TAB}"),
    ("a:\n  - x\n\t- y", f"3:1: {TAB}"),
    ("- \t- x", "1:3: a tab is not allowed here — use spaces"),
    ("a: b: c", f"1:5: {COLON}"),
    ("a: 1\n b: 2", f"2:3: {COLON}"),
    ("a: 1\nbcd", "2:1: the line does not contain ': ' — use `key: value`, or check the indentation"),
    ("a:\n  - 'x\nb: 1", "2:5: a quote is not closed — close it"),
    ("a: [1, 2\nb: 3", "1:4: a '[' is not closed, or a comma is missing — close it with"
     " ']', and separate its items with commas"),
    ("a: {b: 1", "1:4: a '{' is not closed, or a comma is missing — close it with '}', and"
     " separate its pairs with commas"),
    (r'a: "\d"', "1:5: a double-quoted string contains an unknown escape sequence — use \\\\ for a"
                 " backslash, or use single quotes"),
    (r'a: "\uD800"', "1:7: invalid escape sequence — use \\\\ for a backslash"),
    ("a: - x", "1:4: a list cannot begin here — start it on its own line"),
    ("a: 1\nb: {c: ,\n\n", "2:9: a value is missing, or a '[' or '{' is not closed — add the value, or"
                           " close the bracket"),
    ("a: @x", "1:4: an unquoted string cannot start with '@' — put it in quotes"),
    ("a: `x`", "1:4: an unquoted string cannot start with '`' — put it in quotes"),
    ("a: %x", "1:4: an unquoted string cannot start with '%' — put it in quotes"),
    ("a: *", "1:5: a '*' or '&' has no name — put a string that starts with it in quotes"),
    ("- a\nb: 1", "2:1: a list item is expected here — align it with the items above it, or check"
     " the indentation"),
    ("a:\n    b: 1\n  c: 2", "3:3: a key is expected here — align it with the keys above it, or put the"
                             " string in quotes"),
    ("%YAML 3.0\n---\na: 1", "1:1: the %YAML version is not supported — remove the line"),
]  # fmt: skip


@with_locked("pyyaml")
@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_syntax_errors_say_where_and_what_to_do(text: str, message: str) -> None:
    assert complaint(text) == f"f.yaml:{message}"


@pytest.mark.parametrize("text", [text for text, _ in BROKEN])
def test_a_syntax_error_has_its_line_in_whatever_words(text: str) -> None:
    """The parser's release may have words that we do not know yet."""
    (line,) = complaint(text).splitlines()
    found = re.match(r"f\.yaml:(\d+):\d+: .", line)
    assert found, line
    assert 1 <= int(found[1]) <= text.count("\n") + 1


def test_several_mistakes_are_told_at_once() -> None:
    first, second, third = complaint("a: !x 1\na: 2\nb: [").splitlines()
    assert [first, second] == [
        "f.yaml:1:4: the tag '!x' is not allowed — remove it; only plain YAML values are allowed",
        "f.yaml:2:1: the key 'a' appears twice, first on line 1 — remove one of them",
    ]
    assert third.startswith("f.yaml:3:5: ")


def test_endless_mistakes_are_not_all_told() -> None:
    assert len(complaint("a: 1\n" * 1000).splitlines()) == yaml_source.MAX_PROBLEMS


# ── size ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_alias_bomb_is_refused_where_it_grows_too_large() -> None:
    bomb = "a0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 20)
    )
    assert complaint(bomb).startswith("f.yaml:7:")
    assert complaint(bomb).endswith("the aliases expand to more than 1,000,000 values — use fewer"
                                    " nested aliases")  # fmt: skip


def test_a_bomb_of_merges_is_refused() -> None:
    wide = "a0: &a0 {" + ", ".join(f"k{i}: 1" for i in range(1000)) + "}\n"
    uses = "".join(f"m{i}: {{<<: *a0}}\n" for i in range(1100))
    assert "the aliases expand to more than 1,000,000 values" in complaint(wide + uses)


def test_aliases_cannot_nest_deeper_than_the_limit() -> None:
    chain = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 150))
    assert complaint(chain) == "f.yaml:100:12: nested more than 100 levels deep — reduce the nesting"


def test_the_limit_of_depth_is_not_below_it() -> None:
    assert value_of("[" * 100 + "]" * 100) is not None
    assert "levels deep" in complaint("[" * 101 + "]" * 101)


DEEP = {
    "1:101": "[" * 100_000,
    "1:496": "é: [ " + "[ ö, " * 2_000,
    "101:2": "[\n " * 5_000,
    "1:401": "{a: " * 5_000,
    "1:201": "- " * 5_000,
    "101:101": "".join(" " * depth + "a:\n" for depth in range(2_000)),
}


class WithLimit(yaml.SafeLoader):
    """A parser that refuses deep nesting by itself, while it scans: before it has reported any of it."""

    def fetch_flow_collection_start(self, token: Any) -> None:
        if self.flow_level >= 150:
            raise yaml.scanner.ScannerError("", None, "not so deep, please", self.get_mark())
        super().fetch_flow_collection_start(token)


@pytest.mark.parametrize("loader", [yaml.SafeLoader, getattr(yaml, "CSafeLoader", None), WithLimit])
@pytest.mark.parametrize("place", DEEP)
def test_our_limit_answers_first_whatever_the_parser_has(
    place: str, loader: type | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if loader is None:
        pytest.skip("this PyYAML has no parser in C")
    monkeypatch.setattr(yaml_source, "_LOADER", loader)
    assert complaint(DEEP[place]) == f"f.yaml:{place}: nested more than 100 levels deep — reduce the nesting"


def test_a_mistake_after_brackets_that_are_closed_is_not_one_of_depth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert complaint("[" + "[], " * 500 + "@]").startswith("f.yaml:1:2002: ")
    assert "levels deep" not in complaint("[" + "[], " * 500 + "@]")
    assert "levels deep" not in complaint("[" * 100 + "]" * 100 + "@")


def test_a_file_of_100000_lines_loads() -> None:
    assert len(value_of("- a\n" * 100_000)) == 100_000


def test_a_file_that_is_too_large_is_refused() -> None:
    assert complaint(b"a" * (yaml_source.MAX_BYTES + 1)) == "f.yaml: the file is larger than 20 MB — split it"


# ── encodings ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings_with_their_marks(encoding: str) -> None:
    text = "a: é\nb: 日本\n"
    assert value_of(text.encode(encoding)) == {"a": "é", "b": "日本"}
    assert parse_yaml(text.encode(encoding), "f").mark.find(("b",)).place[1:] == (2, 1)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("a: 1\nb: café".encode("latin-1"), "2:7: byte 0xE9 is not valid UTF-8 — save the file as"
                                             " UTF-8"),
        (b"\xef\xbb\xbfa: \xff", "1:5: byte 0xFF is not valid UTF-8 — save the file as UTF-8"),
        ("a: 1".encode("utf-32"), " the file is encoded as UTF-32 — save it as UTF-8"),
        (b"\xff\xfea", " the file is not valid UTF-16 — save it as UTF-8"),
        (b"a: 1\nb: x\x00", "2:5: the control character U+0000 is not allowed — remove it, and check"
                            " that the file is saved as UTF-8"),
        (b"a: \x1b[31m", "1:4: the control character U+001B is not allowed — remove it, and check that"
                         " the file is saved as UTF-8"),
        ("a: 1".encode("utf-16-le"), "1:2: the control character U+0000 is not allowed — remove it, and"
                                     " check that the file is saved as UTF-8"),
    ],
)  # fmt: skip
def test_other_bytes_are_refused_with_their_place(data: bytes, message: str) -> None:
    assert complaint(data) == f"f.yaml:{message}"


def test_windows_line_ends() -> None:
    assert value_of(b"a: 1\r\nb: x\r\n") == {"a": 1, "b": "x"}
    assert complaint(b"a: 1\r\na: 2\r\n").startswith("f.yaml:2:1: ")


# ── nothing crashes ──────────────────────────────────────────────────────────────────────────────

PIECES = (
    *("a", "1", ": ", ":", "- ", "\n", "  ", "\t", "{", "}", "[", "]", ",", "&a ", "*a", "!!", "!x ", "|\n"),
    *(">", "'", '"', "\\", "#", "%", "---\n", "...\n", "<<: ", "? ", "\ufeff", "é", "\u2028", "0x", "~"),
    *("!!int ", "!!map ", "\\uD800", "\\U7FFFFFFF", "\r", "%YAML 1.1\n", "%TAG ! x\n", "@", "`", ".inf"),
)
YAML_LIKE = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def parses_or_complains(data: bytes) -> None:
    try:
        document = parse_yaml(data, "f.yaml")
    except AuthorError as error:
        problems = error.problems
    else:
        assert document.value is not None
        return
    assert problems
    assert all(problem.place and problem.place.path == "f.yaml" for problem in problems)


@settings(max_examples=300)
@given(st.binary(max_size=200))
def test_no_bytes_crash_it(data: bytes) -> None:
    parses_or_complains(data)


@settings(max_examples=600)
@given(YAML_LIKE)
def test_no_text_crashes_it(text: str) -> None:
    parses_or_complains(text.encode())


@settings(max_examples=300)
@given(YAML_LIKE)
def test_the_parser_in_python_does_not_crash_either(text: str) -> None:
    fast = yaml_source._LOADER
    yaml_source._LOADER = yaml.SafeLoader
    try:
        parses_or_complains(text.encode())
    finally:
        yaml_source._LOADER = fast


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=4))
def test_json_is_read_as_json_reads_it(value: Any) -> None:
    import json

    text = json.dumps(value, ensure_ascii=True)
    if "\\ud" in text.lower() or any(len(key) > 100 for key in value):
        return  # surrogate pairs and over-long keys are where YAML and JSON part
    assert parse_yaml(text.encode(), "f").value == value


def test_a_document_is_freed_as_soon_as_nobody_has_it() -> None:
    """The collector of reference cycles rarely runs, and does not look at what is there when a run begins."""

    def parse() -> None:
        parse_yaml(b"a: [{b: 1}, &x {c: 2}, *x]", "f.yaml")

    parse()
    gc.collect()
    parse()
    assert gc.collect() == 0
