"""List remarks that qualify the verdict, and the resources used by the run. Each remark has a label and a
text.

Tables define where each remark is shown. A remark with an empty text is omitted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

from agenteval.core.decision import EVERY_SAMPLE
from agenteval.core.plurals import join_first, plural
from agenteval.core.safe_text import one_line, one_line_message
from agenteval.core.score import Verdict
from agenteval.core.trajectory import Usage
from agenteval.reporters.sections.accepted import accepted_lines
from agenteval.reporters.words.call_visibility import unseen_lines
from agenteval.reporters.words.facts import Facts
from agenteval.reporters.words.judge import (
    ReplyCounts,
    failed_judges,
    overridden_text,
    refusals,
    replies_by_role,
    scripted_text,
    second_opinions_text,
    simulation_text,
)
from agenteval.reporters.words.score_cells import SCRIPTED
from agenteval.reporters.words.selection import selectors
from agenteval.reporters.words.spending import dollars, sum_text, unknown_texts
from agenteval.reporters.words.verdict import resolutions
from agenteval.scoring.checks.leaked_lookups import describe_leak, find_observed_leaks
from agenteval.verdict.caveats import format_caveats
from agenteval.verdict.gate_error_rates import every_sample_error_rates
from agenteval.verdict.run_gates import replaces_every_sample
from agenteval.verdict.run_gates.error_rates import UNINFORMATIVE_ABOVE
from agenteval.verdict.statistics import Stability

MOST = 5
"""The maximum number of remarks shown for each label, unless all remarks are requested."""


class Remark(NamedTuple):
    label: str
    text: str


_Table: TypeAlias = tuple[tuple[str, Callable[[Facts], Iterable[str]]], ...]


def caveats(facts: Facts) -> Iterator[Remark]:
    """Yield the caveats that every format shows together with the verdict."""
    return _table_remarks(_CAVEATS, facts)


def remarks(facts: Facts, most: int = MOST) -> Iterator[Remark]:
    """Yield the remarks that a reader of the verdict needs to know, such as warnings, accepted failures,
    failed judges and scripted replies. Only the first ``most`` remarks are included for each label."""
    for label, texts_of in _REMARKS:
        texts = list(filter(None, texts_of(facts)))
        yield from (Remark(label, text) for text in texts[:most])
        if len(texts) > most:
            yield Remark(label, f"… and {len(texts) - most:,} more; -v lists them")


def notes(facts: Facts) -> Iterator[Remark]:
    """Yield author errors, all notices, and the usage by role."""
    return _table_remarks(_NOTES, facts)


_NOTHING_MEASURED = "no language model was called; fixed replies measure nothing"


def _table_remarks(table: _Table, facts: Facts) -> Iterator[Remark]:
    for label, texts_of in table:
        yield from (Remark(label, text) for text in texts_of(facts) if text)


# ── notices ──────────────────────────────────────────────────────────────────────────────────────


def _notices(level: str, facts: Facts) -> Iterator[str]:
    """Yield each distinct notice of the given level, with the number of times it occurred."""
    found = Counter((n.text, n.key) for n in facts.report.notices if n.level == level)
    for (text, key), times in found.items():
        place = f" ({key})" if key else ""
        yield one_line_message(f"{text}{place}{f' (×{times})' if times > 1 else ''}", 1000)


def _leaked_lookups(facts: Facts) -> Iterator[str]:
    """Yield the values that a question gave away, as the results of tools without a fixed answer show."""
    for entry in facts.report.scenarios:
        calls = (call for sample in entry.samples for call in sample.in_full.trajectory.tool_calls)
        for leak in find_observed_leaks(entry.scenario, calls):
            yield one_line_message(describe_leak(leak, entry.scenario), 1000)


def _undecided(facts: Facts) -> Iterator[str]:
    """Yield the tolerated conversations that were not decided. The list of failures omits these
    conversations."""
    if facts.decision.verdict is Verdict.PASSED or facts.decision.is_reported:
        names = selectors(facts.report)
        for failure in facts.failures:
            if failure.tolerated and failure.verdict is Verdict.INCONCLUSIVE:
                yield f"{names[failure.scenario]}  {failure.rules[0].gist}"


def _without_score(facts: Facts) -> Iterator[str]:
    return (f"{judge.names}: {judge.message} ({judge.where})" for judge in failed_judges(facts.report))


def _ungated(facts: Facts) -> Iterator[str]:
    scored = {column.name for column in facts.columns}
    if names := [one_line(name, 80) for name in facts.decision.ungated if name not in scored]:
        yield f"{', '.join(names)}: not gated"


def _scripted(facts: Facts) -> Iterator[str]:
    if facts.report.scripted:
        yield f"{scripted_text(facts.report)}, which measure nothing"


# ── repeated runs ────────────────────────────────────────────────────────────────────────────────


def _repeats(facts: Facts) -> Iterator[str]:
    """Yield the pass^k rates and the flaky scenarios, such as ``pass^1 75.0 %, pass^2 50.0 %; flaky:
    book-morning (1 of 2)``. Yield nothing if no scenario was repeated."""
    repeats = facts.repeats
    if any(entry.tally.planned > 1 for entry in repeats.scenarios.values()):
        rates = ", ".join(f"pass^{k} {value:.1%}" for k, value in list(repeats.pass_hat_k.items())[:4])
        flaky = _flaky(facts)
        stable = f"flaky: {flaky}" if flaky else "no scenario was flaky"
        yield f"{rates}; {stable}" if rates else stable


def _flaky(facts: Facts) -> str:
    """Return the flaky scenarios (scenarios whose conversations had different outcomes), such as
    ``book-morning (1 of 2)``. Return an empty string if there are no flaky scenarios."""
    several = facts.report.has_several_agents
    flaky = [
        f"{one_line(scenario, 40)}{f' · {one_line(agent, 40)}' if several else ''}"
        f" ({entry.tally.successes} of {entry.tally.decided})"
        for (scenario, agent), entry in facts.repeats.scenarios.items()
        if entry.tally.planned > 1 and entry.stability is Stability.FLAKY
    ]
    return join_first(flaky, 5)


def _error_rates(facts: Facts) -> Iterator[str]:
    return (sentence for sentence, _ in _error_rate_sentences(facts))


def _advised_error_rates(facts: Facts) -> Iterator[str]:
    if any(_repeats(facts)):
        yield from map("; ".join, _error_rate_sentences(facts))


def _error_rate_sentences(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield the error rate of a verdict that depends on every sample, along with advice. Yield nothing unless
    such verdicts are often wrong."""
    report, decision = facts.report, facts.decision
    is_green = decision.verdict is Verdict.PASSED
    failed = [gate.name for gate in decision.gates if gate.verdict is Verdict.FAILED]
    is_red = decision.verdict is Verdict.FAILED and failed == [EVERY_SAMPLE]
    if not (is_green or is_red) or replaces_every_sample(report.plan.suite.gates) or decision.is_reported:
        return
    if report.plan.shard:
        return  # such a rate is that of the whole run
    worth = every_sample_error_rates([len(each.samples) + len(each.missing) for each in report.scenarios])
    wrong = worth.false_green if is_green else worth.false_red
    if wrong is not None and wrong > UNINFORMATIVE_ABOVE:
        which = f"{1 - worth.bad:.0%} of a scenario is green"
        if is_red:
            which = f"{1 - worth.good:.0%} of all conversations is red"
        yield f"an agent that fails {which} in {wrong:.0%} of such runs", worth.advice


# ── usage ────────────────────────────────────────────────────────────────────────────────────────


def _usage(facts: Facts) -> Iterator[str]:
    replies = replies_by_role(facts.report)
    yield "\n".join(
        f"{role} {_spent(usage, replies.get(role, ReplyCounts()))}"
        for role, usage in facts.report.usage.items()
        if usage.is_spent or usage.cached_calls
    )


def _spent(usage: Usage, replies: ReplyCounts) -> str:
    about = "≈" if usage.estimated else ""
    parts = [plural(usage.calls, "call")] if usage.calls else []
    if usage.cached_calls:
        parts.append(f"{usage.cached_calls:,} from the cache")
    if replies.scripted:
        parts.append(f"{replies.scripted:,} scripted" if replies.real else SCRIPTED)
    if usage.tokens:
        cached = f" ({about}{usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
        tokens_in = f"{about}{usage.input_tokens:,} tokens in{cached}"
        split = f"{tokens_in}, {about}{usage.output_tokens:,} out"
        parts.append(f"{about}{usage.tokens:,} tokens in and out" if usage.unsplit else split)
        parts.append(dollars(usage))
    elif not replies.scripted and usage.calls:
        parts.append("tokens not reported")
    return ", ".join(parts)


def _cost(facts: Facts) -> Iterator[str]:
    yield "\n".join(filter(None, (sum_text(facts.report), *unknown_texts(facts.report))))


# ── the tables ───────────────────────────────────────────────────────────────────────────────────

_CAVEATS: _Table = (
    ("with", lambda facts: [format_caveats(facts.report, facts.decision)]),
    ("to decide", lambda facts: resolutions(facts.decision)),
    ("judging", lambda facts: [overridden_text(facts.report)]),
    ("scripted replies", _scripted),
)
_REMARKS: _Table = (
    ("error", partial(_notices, "error")),
    ("warning", partial(_notices, "warning")),
    ("warning", _leaked_lookups),
    ("errored", _undecided),
    ("calls", lambda facts: unseen_lines(facts.report)),
    ("accepted", lambda facts: accepted_lines(facts.decision)),
    ("no score", _without_score),
    ("user", lambda facts: [simulation_text(facts.report)] if refusals(facts.report) else []),
    ("flaky", lambda facts: [_flaky(facts)]),
    ("error rates", _error_rates),
    ("ungated", _ungated),
    (
        "judges",
        lambda facts: [] if facts.report.plan.suite.corroborate else [second_opinions_text(facts.report)],
    ),
    ("note", lambda facts: [overridden_text(facts.report)]),
    ("to decide", lambda facts: resolutions(facts.decision)),
    ("scripted", lambda facts: [_NOTHING_MEASURED] if facts.report.scripted else []),
)
_NOTES: _Table = (
    ("profile", lambda facts: [one_line(facts.report.plan.suite.profile, 80)]),
    ("error", lambda facts: facts.decision.author_errors),
    ("error", partial(_notices, "error")),
    ("warning", partial(_notices, "warning")),
    ("warning", _leaked_lookups),
    ("info", partial(_notices, "info")),
    ("repeats", _repeats),
    ("error rates", _advised_error_rates),
    ("usage", _usage),
    ("judges", lambda facts: [second_opinions_text(facts.report)]),
    ("cost", _cost),
    ("note", lambda facts: [overridden_text(facts.report)]),
    ("to decide", lambda facts: ["\n".join(resolutions(facts.decision))]),
    ("note", _scripted),
)
