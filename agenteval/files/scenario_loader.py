"""Loads and validates YAML scenario files. All mistakes in all files are reported at once, each with its
location."""

from __future__ import annotations

import os
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pydantic import ValidationError

from agenteval.core.errors import AuthorError, Place, Problem, did_you_mean
from agenteval.core.protocols import ExpectRule
from agenteval.core.scenario import (
    TOOL_ANSWERS,
    CaseSpec,
    Scenario,
    ScenarioFields,
    ScriptedTurn,
    SharedTools,
    SimulatedTurns,
    Tool,
)
from agenteval.core.unsupported_keys import UNSUPPORTED_KEYS as NOT_YET
from agenteval.core.value import Text, compact
from agenteval.core.world_state import StateSpec
from agenteval.files.data_rows import Table, read_table
from agenteval.files.located_value import LocatedValue, empty_mapping
from agenteval.files.prompts import load_user_prompt
from agenteval.files.redaction import register_author_text
from agenteval.files.regular_files import read_file, wrap_read_errors
from agenteval.files.scenario_checks import (
    blank_problems,
    expectation_problems,
    tool_problems,
    user_tool_problems,
)
from agenteval.files.scenario_files import (
    display_path,
    find_files_under,
    find_scenario_files,
    near_file,
    unmatched_files,
)
from agenteval.files.scenario_history import parse_history
from agenteval.files.scenario_rows import (
    ROW_KEYS,
    ScenarioEntry,
    case_from_row,
    expand_rows,
    merge_row_problems,
    slug,
)
from agenteval.files.validation import (
    keep_scalar_text,
    known_keys,
    not_finite,
    unknown_key,
    validate,
)
from agenteval.files.value_parts import list_at
from agenteval.files.yaml_scalars import display_value
from agenteval.files.yaml_source import MAX_BYTES, Mark, SourceDocument, parse_yaml, unlocated_mark

__all__ = [
    "PartlyReadError",
    "find_files_under",
    "find_scenario_files",
    "is_vacuous_scenario",
    "load_scenario_files",
    "slug",
    "unmatched_files",
    "vacuous_problem",
]

_FILE_KEYS = ("scenarios", "cases", "defaults")
_CASE_KEYS = ("input", "expected_tools", "expected_output_contains")
_SCENARIO_KEYS = frozenset((*known_keys(Scenario), *ROW_KEYS))

_TEXT_KEYS = frozenset((
    *("id", "name", "tags", "agent", "profile", "goal", "knowledge", "facts", "beliefs", "belief"),
    *("criteria", "contains", "any_of", "not_contains", "matches", "cites"),
    *("turns", "user", "error", "description", "note", *_CASE_KEYS),
))  # fmt: skip
_OPAQUE_KEYS = frozenset(("returns", "args", "parameters", "json_schema", "json", "history"))
_TOOL_KEYS = ("tools", "user_tools")
_LINED_BELOW = frozenset(
    (
        *("expect", "tool_calls", "forbidden", "output", "limits", "state", "python"),
        *("turns", "thresholds", "tools", "user_tools"),
    )
)


class CaseKeys(CaseSpec):
    """The keys of a case (the short form of a scenario) that a scenario does not have."""

    input: Text
    """The user's message."""


_CASE_FIELDS: Mapping[str, Any] = {
    name: field.annotation
    for model in (ScenarioFields, CaseKeys)
    for name, field in model.model_fields.items()
}


VALUES = "<scenarios>"
"""The name that stands for the file in the location of a scenario that was given as a value. The line is its
position, counted from 1."""


def _keep_written_texts(document: SourceDocument) -> Any:
    return keep_scalar_text(document, texts=_TEXT_KEYS, opaque=_OPAQUE_KEYS)


ScenarioCheck: TypeAlias = Callable[[Scenario, Mark], Iterable[Problem]]
"""Yields the problems in a scenario that was written at the mark."""


def no_extra_check(_scenario: Scenario, _mark: Mark) -> Iterable[Problem]:
    """Return no problems. This is the default for ``check``."""
    return ()


ResolveScenario: TypeAlias = Callable[[Scenario, Mark], Scenario]
"""Adds to a scenario what it takes from the author's code. Raises ``AuthorError`` with all mistakes."""


def keep_scenario(scenario: Scenario, _mark: Mark) -> Scenario:
    """Return the scenario unchanged: no code of the author is loaded. This is the default for ``resolve``."""
    return scenario


def _with_column(problem: Problem, mark: Mark) -> Problem:
    """Add the column to a problem on a scenario's line, because a scenario stores only its line."""
    has_only_line = problem.place == mark.place._replace(column=0)
    return problem._replace(place=mark.place) if has_only_line else problem


def load_scenario_files(
    paths: Sequence[Path],
    *,
    values: Sequence[Mapping[str, Any]] = (),
    rules: Sequence[ExpectRule],
    root: Path,
    cwd: Path | None = None,
    check: ScenarioCheck = no_extra_check,
    allows_only_defaults: bool = False,
    resolve: ResolveScenario = keep_scenario,
) -> tuple[Scenario, ...]:
    """Load YAML scenario files, and return the scenarios (test cases) in order. Relative ``paths`` are
    resolved against ``root``; files below ``cwd`` (the working directory) are shown relative to ``cwd``.
    ``values`` contains further scenarios in the form in which a file contains them; file paths in them are
    relative to ``cwd``. ``rules`` contains the checks that ``expect`` may use. ``check`` returns additional
    problems in a scenario, so that they are reported together with all other problems. ``resolve`` adds what
    a scenario takes from the author's code. With ``allows_only_defaults``, a file that contains nothing but
    ``defaults`` is loaded as a single scenario.

    Raise ``AuthorError`` with every problem in every file."""
    cwd = cwd or Path.cwd()
    problems: list[Problem] = []
    entries: list[_LoadedScenario] = []
    tools = SharedTools()
    for path in dict.fromkeys(root / path for path in paths):
        shown_as = display_path(path, cwd)
        try:
            document = parse_yaml(_read(path, shown_as), shown_as)
        except AuthorError as error:
            problems += error.problems
            continue
        if allows_only_defaults:
            document = _add_scenario_to_defaults(document, shown_as)
        base = str(Path(os.path.abspath(path)).parent)
        loader = _FileLoader(
            document, base=base, cwd=cwd, rules=rules, check=check, resolve=resolve, tools=tools
        )
        entries += loader.entries()
        problems += sorted(loader.problems, key=attrgetter("order"))
    for position, value in enumerate(values, 1):
        document = SourceDocument(value, unlocated_mark(value, VALUES, position))
        loader = _FileLoader(
            document, base=str(cwd), cwd=cwd, rules=rules, check=check, resolve=resolve, tools=tools
        )
        entries += loader.entries()
        problems += loader.problems
    problems += _duplicates(entries)
    loaded = tuple(entry.scenario for entry in entries)
    if problems:
        raise PartlyReadError(loaded, dict.fromkeys(problems))
    return loaded


def _add_scenario_to_defaults(document: SourceDocument, shown_as: str) -> SourceDocument:
    """Return a file that contains only ``defaults`` with a scenario that consists of them."""
    if not isinstance(document.value, Mapping) or set(document.value) != {"defaults"}:
        return document
    scenario = {"id": f"defaults of {shown_as}", "turns": ["-"], "checks": "none"}
    value, here = {**document.value, "scenarios": [scenario]}, document.mark
    marks = here.with_children([here.with_children({})])  # what `defaults` give has its own place
    mark = here.with_children({**here.by_key, "scenarios": marks})
    return SourceDocument(value, mark, has_original_text=document.has_original_text)


class PartlyReadError(AuthorError):
    """Raised for mistakes in some scenarios; contains the scenarios that could be loaded."""

    def __init__(self, scenarios: tuple[Scenario, ...], problems: Iterable[Problem]) -> None:
        self.scenarios = scenarios
        super().__init__(*problems)


def _without_other_answers(defaults: Mapping[str, Any], item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return ``defaults`` without the answers of tools for which ``item`` has a different kind of answer. For
    example, ``sequence`` in an entry replaces ``python`` in the defaults."""
    for key in _TOOL_KEYS:
        low, high = defaults.get(key), item.get(key)
        if not isinstance(low, Mapping) or not isinstance(high, Mapping):
            continue
        tools = dict(low)
        for name in low.keys() & high.keys():
            below, above = low[name], high[name]
            if isinstance(below, Mapping) and isinstance(above, Mapping) and above.keys() & TOOL_ANSWERS:
                tools[name] = {k: v for k, v in below.items() if k not in TOOL_ANSWERS or k in above}
        defaults = {**defaults, key: tools}
    return defaults


_SIMULATED_USER_KEYS = ("user_prompt", "min_turns")
"""Keys that have no effect in a scenario without a simulated user."""


def _without_keys_of_simulated_users(
    defaults: Mapping[str, Any], item: Mapping[str, Any], *, is_case: bool
) -> Mapping[str, Any]:
    """Return ``defaults`` without the keys that need a simulated user if ``item`` simulates none. They are
    meant for the other entries."""
    if defaults.keys().isdisjoint(_SIMULATED_USER_KEYS):
        return defaults
    if not (is_case or _is_scripted({**defaults, **item})):
        return defaults
    return {key: value for key, value in defaults.items() if key not in _SIMULATED_USER_KEYS}


def _is_scripted(value: Mapping[str, Any]) -> bool:
    """Check whether all turns of an entry are predefined."""
    turns = value.get("turns")
    return isinstance(turns, list) and not any(
        isinstance(turn, Mapping) and "simulate" in turn for turn in turns
    )


def _drop_removed_checks(below: Any, merged: Any) -> Any:
    """Return ``merged`` without the checks from ``defaults`` that an entry removes with ``null``."""

    def drop_nulls(low: Any, high: Any) -> Any:
        if not isinstance(low, Mapping) or not isinstance(high, Mapping):
            return high
        left = ((k, v) for k, v in high.items() if v is not None or low.get(k) is None)
        return {k: drop_nulls(low.get(k), v) for k, v in left}

    expect = drop_nulls(below.get("expect"), merged.get("expect"))
    return {**merged, "expect": expect} if "expect" in merged else merged


def _read(path: Path, shown_as: str) -> bytes:
    with wrap_read_errors("", Place(shown_as)):
        data = read_file(path, MAX_BYTES + 1)
    register_author_text(lambda: data.decode("utf-8", "replace"))
    return data


class _LoadedScenario(NamedTuple):
    """A scenario, and the location of its id or of the name from which the id is derived."""

    scenario: Scenario
    place: Place


def _duplicates(entries: Sequence[_LoadedScenario]) -> Iterator[Problem]:
    first: dict[str, tuple[Place, str]] = {}
    for scenario, place in entries:
        if scenario.id in first:
            other, source = first[scenario.id]
            what = f"the id '{scenario.id}' is already used at {other}"
            if scenario.row and source != scenario.source:
                what += f" (in the rows of {source}; these rows are of {scenario.source})"
            elif other == place:
                what = f"two rows of this scenario have the id '{scenario.id}'"
            yield Problem(what, "give one of them a different id", place)
        first.setdefault(scenario.id, (place, scenario.source))


class _FileLoader:
    """Loads the entries of a single file. Values that the entries share through ``defaults`` are validated
    once."""

    def __init__(
        self,
        document: SourceDocument,
        *,
        base: str,
        cwd: Path,
        rules: Sequence[ExpectRule],
        check: ScenarioCheck,
        resolve: ResolveScenario,
        tools: SharedTools,
    ) -> None:
        self.problems: list[Problem] = []
        self._shared_tools = tools
        self._check = check
        self._resolve = resolve
        self._rules = rules
        self._mark = document.mark
        self._value = _keep_written_texts(document)
        self._base = base
        self._cwd = cwd
        self._tables: dict[Path, Table] = {}
        # By identity; keeping the value prevents another one from getting its id().
        self._tools: dict[int, tuple[Any, dict[str, Tool] | None]] = {}

    def entries(self) -> list[_LoadedScenario]:
        made: list[_LoadedScenario | None] = []
        of_rows: list[tuple[Problem, ScenarioEntry]] = []
        count: Counter[Mark] = Counter()
        for entry in self._raw_entries():
            before = len(self.problems)
            made.append(self._load_scenario(entry))
            if entry.row:
                count[entry.written_at] += 1
                of_rows += ((problem, entry) for problem in self.problems[before:])
                del self.problems[before:]
        self.problems += merge_row_problems(of_rows, count)
        loaded = [entry for entry in made if entry is not None]
        if loaded and len(loaded) == len(made) and all(entry.scenario.is_scripted for entry in loaded):
            self._refuse_unused_defaults()
        return loaded

    # ── the shape of the file ────────────────────────────────────────────────────────────────────

    def _raw_entries(self) -> Iterator[ScenarioEntry]:
        value, mark = self._value, self._mark
        if not isinstance(value, Mapping):
            what = f"expected a mapping with `scenarios` or `cases`, got {display_value(value)}"
            self._add_problem(
                what, "add `scenarios:` above the list" if isinstance(value, list) else "", mark
            )
        elif "scenarios" in value or "cases" in value:
            yield from self._grouped_entries(value, mark)
        elif set(value) == {"replies"}:
            what = "this is a scripted model, not a scenario file"
            self._add_problem(
                what, "set it in the configuration: models: {default: scripted/FILE.yaml}", mark
            )
        elif _SCENARIO_KEYS & set(value) or "input" in value:
            scenario = {key: item for key, item in value.items() if key != "defaults"}
            yield from self._merge_defaults(LocatedValue(scenario, mark), is_case="input" in scenario)
        else:
            self._unknown_top_level(value, mark)
            if set(value) <= {"defaults"}:
                self._add_problem("the file contains no scenario", "add `scenarios` or `cases`", mark)

    def _grouped_entries(self, value: Mapping[str, Any], mark: Mark) -> Iterator[ScenarioEntry]:
        self._unknown_top_level(value, mark)
        if not any(value.get(group) for group in ("scenarios", "cases")) and None not in value.values():
            self._add_problem("the file contains no scenario", "add one to the list", mark)
        for group in ("scenarios", "cases"):
            if group not in value:
                continue
            where = mark.find((group,))
            if isinstance(value[group], str) and group == "cases":
                yield from self._table_entries(value[group], where)
            elif isinstance(value[group], list):
                yield from self._list_entries(value[group], where, is_case=group == "cases")
            else:
                self._add_problem(
                    f"`{group}`: expected a list, got {display_value(value[group])}",
                    "start each entry with '- '",
                    where,
                )

    def _unknown_top_level(self, value: Mapping[str, Any], mark: Mark) -> None:
        for key in value:
            if key in _FILE_KEYS:
                continue
            remedy = did_you_mean(key, _FILE_KEYS)
            if later := NOT_YET["scenario"].get(key):
                self._add_problem(f"'{key}' is not supported yet", later, mark.find((key,)))
                continue
            if key in _SCENARIO_KEYS or key in _CASE_KEYS:
                remedy = "move it into a scenario or case, or into `defaults`"
            self._add_problem(f"unknown key '{key}'", remedy, mark.find((key,)))

    def _list_entries(self, items: Sequence[Any], mark: Mark, *, is_case: bool) -> Iterator[ScenarioEntry]:
        marks = deque(mark.find((index,)) for index in range(len(items)))
        mark.children = None  # they go one by one: those of a large file take up more than its scenarios
        for item in items:
            yield from self._merge_defaults(LocatedValue(item, marks.popleft()), is_case=is_case)

    def _merge_defaults(self, item: LocatedValue, *, is_case: bool) -> Iterator[ScenarioEntry]:
        defaults = self._defaults
        if not isinstance(item.value, Mapping):
            what = f"expected a mapping, got {display_value(item.value)}"
            self._add_problem(what, "set at least `name` or `id`", item.mark)
            return
        inherited = _without_keys_of_simulated_users(defaults.value, item.value, is_case=is_case)
        base = defaults._replace(value=_without_other_answers(inherited, item.value))
        merged = item.merge_over(base)
        entry_value = _drop_removed_checks(base.value, merged.value)
        entry = ScenarioEntry(entry_value, merged.mark, is_case, merged.mark)
        try:
            yield from expand_rows(entry, self._table, _keep_written_texts)
        except AuthorError as error:
            self.problems += error.problems

    def _table_entries(self, path: str, mark: Mark) -> Iterator[ScenarioEntry]:
        """Yield the cases from a data file, one per row."""
        try:
            table = self._table(path, mark)
        except AuthorError as error:
            self.problems += error.problems
            return
        known = known_keys(CaseKeys) | known_keys(ScenarioFields)
        if unknown := [name for name in table.columns if name not in known] if table.is_text else []:
            self.problems += (unknown_key(name, known, table.mark) for name in unknown)
            return
        for row in table.rows:
            try:
                value, at = case_from_row(row, _CASE_FIELDS, _keep_written_texts, is_text=table.is_text)
            except AuthorError as error:
                self.problems += error.problems
                continue
            for entry in self._merge_defaults(LocatedValue(value, at), is_case=True):
                yield entry._replace(written_at=mark, row=entry.row or at)

    def _table(self, path: str, mark: Mark) -> Table:
        """Read the data file at a path. Raise ``AuthorError`` with the location of the path if the file does
        not exist, or with the locations of any mistakes in the file."""
        full_path = Path(self._base, path)
        if full_path not in self._tables:
            if not path.strip() or not os.path.exists(full_path):
                what = f"the file '{path}' does not exist (paths are relative to this file)"
                raise AuthorError(Problem(what, near_file(full_path), mark.place))
            shown_as = display_path(full_path, self._cwd)
            self._tables[full_path] = read_table(_read(full_path, shown_as), shown_as)
        return self._tables[full_path]

    def _refuse_unused_defaults(self) -> None:
        """Report the keys in ``defaults`` that need a simulated user, because no scenario in the file
        simulates one."""
        defaults = self._value.get("defaults")
        for key in _SIMULATED_USER_KEYS if isinstance(defaults, Mapping) else ():
            if defaults.get(key):
                what = f"`{key}` has no effect, because no scenario in this file simulates a user"
                self._add_problem(what, "remove it", self._mark.find(("defaults", key)))

    @cached_property
    def _defaults(self) -> LocatedValue:
        if "defaults" not in self._value:
            return empty_mapping()
        found = LocatedValue(self._value, self._mark).at("defaults")
        if not isinstance(found.value, Mapping):
            self._add_problem(
                f"`defaults`: expected a mapping, got {display_value(found.value)}", "", found.mark
            )
            return empty_mapping()
        return found

    # ── one entry ────────────────────────────────────────────────────────────────────────────────

    def _load_scenario(self, entry: ScenarioEntry) -> _LoadedScenario | None:
        before = len(self.problems)
        value, mark = entry.value, entry.mark
        self._share_tools(value, mark)
        self._check_expectations(value, mark)
        case = self._extract_case(value, mark) if entry.is_case else None
        if not entry.is_case:
            self._refuse_keys(value, mark, _CASE_KEYS, "it is a key of test cases; move the entry to `cases`")
        also, skip = (_CASE_KEYS, ("turns",)) if entry.is_case else ((), ())
        also = (*also, *ROW_KEYS)
        made, problems = validate(Scenario, value, mark, kind="scenario", also=also, skip=skip)
        self.problems += problems
        if made is None or len(self.problems) > before:
            return None
        scenario = made.model_copy(update=self._filled_in_fields(made, entry, case))
        if scenario.state is not None:
            for key in sorted(StateSpec.INTERNAL & scenario.state.model_fields_set):
                self.problems.append(unknown_key(key, known_keys(StateSpec), mark.find(("state", key))))
            state = scenario.state.model_copy(update={"base": self._base})
            scenario = scenario.model_copy(update={"state": state})
        history = parse_history(value.get("history"), mark.find(("history",)))
        self.problems += history.problems
        if history.turns:
            scenario = scenario.model_copy(update={"history_turns": history.turns})
        scenario = self._with_user_prompt_hash(scenario, mark)
        try:
            scenario = self._resolve(scenario, mark)
        except AuthorError as error:
            self.problems += (_with_column(problem, mark) for problem in error.problems)
            return None
        self.problems += _incomplete_problems(scenario, mark)
        self.problems += user_tool_problems(scenario, mark)
        self.problems += (_with_column(problem, mark) for problem in self._check(scenario, mark))
        place = mark.find(("id",) if made.id else ("name",)).place
        return _LoadedScenario(compact(scenario), place) if len(self.problems) == before else None

    def _filled_in_fields(
        self, made: Scenario, entry: ScenarioEntry, case: CaseKeys | None
    ) -> dict[str, Any]:
        """Return the values that the author did not specify: defaults, the expanded form of a case, and
        locations."""
        more: dict[str, Any] = {
            "id": made.id or slug(made.name),
            "name": made.name or made.id,
            "source": f"{entry.written_at.path}:{entry.written_at.line}",
            "lines": _lines(entry.mark, entry.written_at.path),
            "base": self._base,
        }
        if entry.row:
            more |= {"row": f"{entry.row.path}:{entry.row.line}", "pattern": entry.pattern}
        if case:
            more["turns"] = (ScriptedTurn(user=case.input),)
            more["case"] = CaseSpec.model_validate(case.model_dump(include=set(CaseSpec.model_fields)))
        return more

    def _with_user_prompt_hash(self, scenario: Scenario, mark: Mark) -> Scenario:
        """Check the scenario's own user prompt, if it has one, and return the scenario with the hash of the
        prompt."""
        if scenario.user_prompt is None:
            return scenario
        where = mark.find(("user_prompt",))
        if scenario.turns and scenario.is_scripted:
            return scenario
        try:
            prompt = load_user_prompt(scenario.user_prompt, base=self._base, place=where.place)
        except AuthorError as error:
            self.problems += error.problems
            return scenario
        return scenario.model_copy(update={"user_prompt_hash": prompt.hash})

    def _share_tools(self, value: dict[str, Any], mark: Mark) -> None:
        """Insert validated tools into ``value``. Invalid tools are left unchanged, so that the model reports
        them."""
        for key in _TOOL_KEYS:
            raw = value.get(key)
            if not isinstance(raw, Mapping):
                continue
            known = self._tools.get(id(raw))
            if known is None:
                known = self._tools[id(raw)] = (raw, self._make_tools(raw, mark.find((key,))))
            value[key] = known[1] or raw

    def _make_tools(self, raw: Mapping[str, Any], mark: Mark) -> dict[str, Tool] | None:
        before = len(self.problems)
        made: dict[str, Tool] = {}
        for name, tool in raw.items():
            where = mark.find((name,))
            self.problems += tool_problems(tool, where)
            if not name.strip():
                self._add_problem("a tool must have a name", "", where)
            # The validation of the whole scenario reports its mistakes, at their places.
            with suppress(TypeError, ValidationError):
                made[name] = compact(Tool.model_validate({**tool, "base": self._base}))
        is_right = len(made) == len(raw) and len(self.problems) == before and not any(not_finite(raw, mark))
        return self._shared_tools.share(made) if is_right else None

    def _check_expectations(self, value: Mapping[str, Any], mark: Mark) -> None:
        self._check_expectation(value.get("expect"), mark.find(("expect",)))
        for index, turn in enumerate(list_at(value, "turns")):
            if isinstance(turn, Mapping) and "expect" in turn:
                self._check_expectation(turn["expect"], mark.find(("turns", index, "expect")))

    def _check_expectation(self, written: Any, mark: Mark) -> None:
        if not any(not_finite(written, mark)):  # reported by the validation of the scenario
            self.problems += expectation_problems(written, mark, self._rules)

    def _extract_case(self, value: dict[str, Any], mark: Mark) -> CaseKeys | None:
        """Remove the keys of the short form (case) from ``value`` and return them."""
        self._refuse_keys(
            value, mark, ("turns",), "a case has a single input; use a scenario for several turns"
        )
        spec = {key: value.pop(key) for key in _CASE_KEYS if key in value}
        case, problems = validate(CaseKeys, spec, mark, kind="case")
        self.problems += problems
        expected = mark.find(("expected_tools",))
        self.problems += blank_problems(spec.get("expected_tools"), expected, "a tool name must not be empty")
        return case

    def _refuse_keys(self, value: dict[str, Any], mark: Mark, keys: Sequence[str], remedy: str) -> None:
        for key in keys:
            if key in value:
                del value[key]
                self._add_problem(f"unknown key '{key}'", remedy, mark.find((key,)))

    def _add_problem(self, what: str, remedy: str, mark: Mark) -> None:
        self.problems.append(Problem(what, remedy, mark.place))


def _incomplete_problems(scenario: Scenario, mark: Mark) -> Iterator[Problem]:
    """Find required parts that are missing from a scenario whose keys are all valid."""
    if not scenario.name.strip() and not scenario.id.strip():
        yield Problem("a scenario needs a name or an id", "add `name`", mark.place)
    elif not scenario.id.strip():
        where = mark.find(("name",)).place
        yield Problem("the name contains no letter or digit to derive an id from", "add `id`", where)
    elif not scenario.id.isprintable():
        where = mark.find(("id",)).place
        yield Problem(
            "an id must be a single line of printable characters", "remove all other characters", where
        )
    if scenario.turns == ():
        remedy = "add the user's messages, or use `goal` instead of `turns` for a simulated user"
        yield Problem("`turns` is empty", remedy, mark.find(("turns",)).place)
    elif not scenario.is_scripted and not scenario.goal.strip():
        yield _no_goal(scenario, mark)
    elif scenario.is_scripted:
        yield from _simulated_user_key_problems(scenario, mark)
    if scenario.goal_outcome == "refused" and not scenario.goal.strip():
        what = "`goal_outcome: refused` requires a goal"
        yield Problem(what, "add `goal`, or remove `goal_outcome`", mark.find(("goal_outcome",)).place)


def _simulated_user_key_problems(scenario: Scenario, mark: Mark) -> Iterator[Problem]:
    """Yield the problems of keys that have no effect because all user messages are predefined."""
    for key in _SIMULATED_USER_KEYS:
        if getattr(scenario, key):
            what = f"`{key}` has no effect, because the scenario simulates no user"
            remedy = "remove it" if scenario.case else "remove it, or add `- simulate: N` to `turns`"
            yield Problem(what, remedy, mark.find((key,)).place)


def _no_goal(scenario: Scenario, mark: Mark) -> Problem:
    if scenario.turns is None:
        remedy = "add `goal` (and `profile`) for a simulated user, or `turns` with the user's messages"
        return Problem("the scenario has neither `turns` nor `goal`", remedy, mark.place)
    index = next(i for i, turn in enumerate(scenario.turns) if isinstance(turn, SimulatedTurns))
    what = "simulated turns require a goal"
    return Problem(what, "add `goal` to the scenario", mark.find(("turns", index)).place)


def _lines(mark: Mark, file: str) -> dict[str, int | str]:
    """Return the dotted paths of the values that messages and tables refer to. Each path is mapped to its
    line in ``file``, or to its location if that is in a different file."""
    lines: dict[str, int | str] = {}
    _note_lines(mark, "", lines, file)
    return lines


def _note_lines(mark: Mark, prefix: str, lines: dict[str, int | str], file: str) -> None:
    for key, below in mark.pairs():
        path = sys.intern(f"{prefix}.{key}") if prefix else key
        lines[path] = below.line if below.path == file else f"{below.path}:{below.line}"
        if prefix == "turns" or (key in _LINED_BELOW and prefix not in ("tools", "user_tools", "thresholds")):
            _note_lines(below, path, lines, file)


def is_vacuous_scenario(scenario: Scenario, *, thresholds_apply: bool, judges_gate: bool) -> bool:
    """Check whether ``scenario`` is vacuous, that is, whether only a broken agent could make it fail.

    If ``thresholds_apply`` is true, at least one threshold applies to the scenario. If ``judges_gate`` is
    true, a judge may find a reason to fail the scenario: a label, or a goal that none of its conversations
    completed."""
    if thresholds_apply or judges_gate or scenario.case or scenario.checks == "none" or scenario.variant:
        return False
    return all(expect.is_vacuous for _, expect in scenario.expectations)


def vacuous_problem(scenario: Scenario, why: str = "") -> Problem:
    """Return the problem to report for a vacuous scenario."""
    path, _, line = scenario.source.rpartition(":")
    what = f"scenario '{scenario.id}' checks nothing{why}"
    return Problem(what, "add `expect`, or set `checks: none`", Place(path, int(line)) if path else None)
