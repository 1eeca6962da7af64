"""Failures in how the agent uses its tools."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from agenteval.detectors.again import is_meant_twice, is_polled, may_be_stale, was_done
from agenteval.detectors.calls import error_of, is_same, key_of, may_pass, numbered_apart, same_result, shown
from agenteval.detectors.claims import Claim, claims_in
from agenteval.detectors.conversation import Conversation, PlacedCall, Proof
from agenteval.detectors.identifiers import ids_of, others_of_its_kind
from agenteval.detectors.language import is_mostly_english
from agenteval.detectors.schema import breaks
from agenteval.detectors.states import is_so
from agenteval.detectors.verbs import is_marked, may_change, nature_of, surely_changes, words_of
from agenteval.trajectory import ToolCall

MAX_RETRIES = 2
"""Identical calls at once after an error that may pass: so many are patience, more are not."""


# ── repeated_tool_call ───────────────────────────────────────────────────────────────────────────


def repeated_tool_call(conversation: Conversation) -> Iterator[Proof]:
    """A call with the name and arguments of an earlier one, although nothing could have changed between
    them. Never after an error. Where the results differ, something had changed, unless the call itself
    changes things; not if the user asked for several. In a later turn, only where the user did not ask for
    it again and the tool is marked ``reads`` or tells nothing that goes stale by itself (a time, a status, a
    price), or does once more what it had done."""
    often = {name for name, times in Counter(p.call.name for p in conversation.calls).items() if times > 1}
    latest: dict[object, PlacedCall] = {}
    for placed in conversation.calls:
        if placed.call.name not in often or placed.call.args is None:
            continue
        key = (placed.call.name, key_of(placed.call.args))
        earlier = latest.get(key)
        latest[key] = placed
        if earlier is not None and _proves_nothing_new(conversation, earlier, placed):
            why = f"call {earlier.index + 1} (turn {earlier.turn + 1}) again, though nothing had changed"
            yield Proof(placed.turn, placed.index, shown(placed.call), why)


def _proves_nothing_new(conversation: Conversation, earlier: PlacedCall, placed: PlacedCall) -> bool:
    one, other = earlier.call, placed.call
    if not one.args and one.result is None and other.result is None:
        return False  # a log that holds neither arguments nor results does not tell what was called
    facts = conversation.tools.get(one.name)
    if error_of(one.result) is not None or (nature_of(one.name).at_will and not is_marked(facts)):
        return False
    changes = surely_changes(one.name, facts)
    differ = one.result is not None and other.result is not None and not same_result(one.result, other.result)
    if differ and (not changes or error_of(other.result) is not None):
        return False
    if earlier.turn == placed.turn:
        meant = is_meant_twice if changes else is_polled
        if meant(conversation, earlier, placed):
            return False
    elif may_change(one.name, facts):
        if not changes or not was_done(conversation, earlier, placed):
            return False
    elif may_be_stale(conversation, earlier, placed):
        return False
    between = conversation.calls[earlier.index + 1 : placed.index]
    return not any(
        may_change(each.call.name, conversation.tools.get(each.call.name))
        and not is_same(each.call, one)
        and (each.turn, each.step) != (placed.turn, placed.step)
        for each in between
    )


# ── arguments and names ──────────────────────────────────────────────────────────────────────────


def wrong_arguments(conversation: Conversation) -> Iterator[Proof]:
    """Arguments that break the JSON Schema which the tool declares."""
    for placed in conversation.calls:
        facts = conversation.tools.get(placed.call.name)
        if facts is None or not facts.parameters or placed.call.args is None:
            continue
        if broken := breaks(facts.parameters, placed.call.args):
            yield Proof(
                placed.turn,
                placed.index,
                shown(placed.call),
                f"the arguments break the schema of '{placed.call.name}': {broken}",
            )


def malformed_arguments(conversation: Conversation) -> Iterator[Proof]:
    """Arguments that are no JSON object. What a logger may have made of good ones (Python's ``repr``, the
    object written as JSON a second time) counts where other calls of the conversation are written in
    JSON: else it is how the log was written. Plain text counts for a tool with a schema or of which
    another call could be read: else it is what the tool takes."""
    odd = [placed for placed in conversation.calls if placed.call.raw_args is not None]
    if not odd:
        return
    readable = [each.call for each in conversation.calls if each.call.raw_args is None and each.call.args]
    for placed in odd:
        call = placed.call
        problem, habit = _written(call)
        if not (readable if habit else _was_to_be_json(conversation, call, readable)):
            continue
        raw = call.raw_args or ""
        yield Proof(
            placed.turn,
            placed.index,
            raw if len(raw) <= 300 else f"{raw[:299]}…",
            f"the arguments of '{call.name}' are {problem}",
        )


def _written(call: ToolCall) -> tuple[str, bool]:
    """What is wrong with arguments, and whether a logger may have written good ones so."""
    raw = call.raw_args or ""
    if call.args is not None:
        return "Python's notation, not JSON", _is_repr(raw)
    if isinstance(_json(_json(raw)), dict):
        return "a JSON object written as a JSON string", True
    return "not a JSON object", False


def _json(text: object) -> object:
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _is_repr(raw: str) -> bool:
    """Whether Python's ``repr`` would write a dict so: it knows no comma after the last item, and no
    double quotes where single ones do."""
    try:
        written = repr(ast.literal_eval(raw))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return True
    return "".join(written.split()) == "".join(raw.split())


def _was_to_be_json(conversation: Conversation, call: ToolCall, readable: Sequence[ToolCall]) -> bool:
    raw = (call.raw_args or "").lstrip()
    facts = conversation.tools.get(call.name)
    return (
        raw[:1] in ("{", "[", '"', "}", "`")
        or (facts is not None and bool(facts.parameters))
        or any(other.name == call.name for other in readable)
    )


def unknown_tool(conversation: Conversation) -> Iterator[Proof]:
    """A call of a tool that is not declared, where all that exist are."""
    if not conversation.tools or conversation.undeclared_exist:
        return
    for placed in conversation.calls:
        name = placed.call.name
        if name not in conversation.tools:
            known = ", ".join(conversation.tools)
            why = f"called '{name}', which is not among the tools: {known}"
            yield Proof(placed.turn, placed.index, name, why)


# ── ignored_tool_error ───────────────────────────────────────────────────────────────────────────


def ignored_tool_error(conversation: Conversation) -> Iterator[Proof]:
    """An error that the agent passes over: the very same call at once (more than ``MAX_RETRIES`` times, if
    the error is of a kind that may pass), or an answer that tells what failed as done or known."""
    for number, group in groupby(conversation.calls, key=lambda placed: placed.turn):
        calls = list(group)
        failed = [placed for placed in calls if error_of(placed.call.result) is not None]
        if failed:
            yield from _at_once(conversation, calls)
            yield from _told_as_success(conversation, number, calls, failed)


def _at_once(conversation: Conversation, calls: Sequence[PlacedCall]) -> Iterator[Proof]:
    """The same call again after its error, with nothing but looking and thinking between them."""
    tries: dict[int, int] = {}  # by call: how many of its like, in a row, it was made after the error of
    for position, placed in enumerate(calls):
        earlier = _failed_before(conversation, calls[:position], placed)
        error = error_of(earlier.call.result) if earlier else None
        # A call of the same step was made before the error was known.
        if earlier is None or error is None or earlier.step == placed.step:
            continue
        tries[placed.index] = times = tries.get(earlier.index, 0) + 1
        at_once = earlier.index == placed.index - 1
        if times > MAX_RETRIES if may_pass(error) else at_once or error_of(placed.call.result) == error:
            why = (
                f'the identical call again, {times} time{"s" * (times > 1)}, after the error "{_cut(error)}"'
            )
            yield Proof(placed.turn, placed.index, shown(placed.call), why)


def _failed_before(
    conversation: Conversation, earlier: Sequence[PlacedCall], placed: PlacedCall
) -> PlacedCall | None:
    for each in reversed(earlier):
        if is_same(each.call, placed.call):
            return each
        if may_change(each.call.name, conversation.tools.get(each.call.name)):
            return None
    return None


def _told_as_success(
    conversation: Conversation, number: int, calls: Sequence[PlacedCall], failed: Sequence[PlacedCall]
) -> Iterator[Proof]:
    answer = conversation.turns[number].answer
    if not answer.strip() or conversation.turns[number].error is not None:
        return
    for placed in failed:
        done = [each for each in calls if error_of(each.call.result) is None]
        span = _success(conversation, placed, done, answer)
        if span is not None:
            error = error_of(placed.call.result) or ""
            why = f"told as a success, although '{placed.call.name}' had failed: \"{_cut(error)}\""
            yield Proof(number, placed.index, answer[span[0] : span[1]], why, span)
            return  # one answer, one finding


def _success(
    conversation: Conversation, failed: PlacedCall, done: Sequence[PlacedCall], answer: str
) -> tuple[int, int] | None:
    """Where ``answer`` tells what the failed call was to do, or to find out, as done; ``None`` if it does
    not, if it speaks of any trouble, or if a later one of the calls that were ``done`` may have made up for
    it: the same tool's for another thing does not."""
    if _TROUBLE.search(_COURTESY.sub(" ", answer)):
        return None
    name = failed.call.name
    if not may_change(name, conversation.tools.get(name)):
        later = any(each.index > failed.index for each in done)
        return None if later else _made_up(conversation, failed, answer)
    changed = [each for each in done if may_change(each.call.name, conversation.tools.get(each.call.name))]
    alike = [each for each in changed if _is_for_another(each.call, failed.call)]
    if any(each.index > failed.index and each not in alike for each in changed):
        return None
    late = any(each.index > failed.index for each in alike)
    kinds = nature_of(name).kinds
    for claim in claims_in(answer):
        fits = not kinds or kinds & claim.kinds
        if (
            fits
            and _includes(claim, failed.call, alike, late=late)
            and not is_so(conversation, failed, claim)
        ):
            return claim.span
    told = None if alike else _SUCCESS.search(answer)
    return told.span() if told and not answer.rstrip().endswith("?") else None


def _is_for_another(done: ToolCall, failed: ToolCall) -> bool:
    """Whether a call did the same for another thing of its kind: ``cancel_order`` for ORD-2, not for "
    "ORD-1."""
    if done.name != failed.name:
        return False
    mine, others = ids_of(failed.args or {}), ids_of(done.args or {})
    if numbered_apart(done, failed):
        return True
    return mine.isdisjoint(others) and bool(others_of_its_kind(others, mine))


def _includes(claim: Claim, failed: ToolCall, alike: Sequence[PlacedCall], *, late: bool) -> bool:
    """Whether a claim speaks of what a call failed to do, and not only of what was done ``alike`` for
    another thing. ``late``: some of that after it."""
    if not alike:
        return True
    mine = ids_of(failed.args or {})
    if claim.named & mine:
        return claim.named <= mine or any(group & mine for group in claim.listed)
    if any(claim.named & ids_of(each.call.args or {}) for each in alike):
        return False
    if any(numbered_apart(each.call, failed) for each in alike):
        return _ALL.search(claim.text) is not None
    return not late or _ALL.search(claim.text) is not None


_ALL = re.compile(
    r"\bboth\b(?! (?:your|the) (?:e-?mail|address|name|phone))|\ball (?:of )?(?:them|these|those|the|your|"
    r"two|three|"
    r"four|\d)\b",
    re.IGNORECASE,
)


# "If you have any problems, let me know" speaks of none.
_COURTESY = re.compile(
    r"(?:\bif (?:you(?:'d|’d)?|there(?:'s|’s)?) (?:have|need|want|like|would like|require|encounter|"
    r"experience|run into|is|"
    r"are|face)\b|\b(?:please )?(?:let me know|feel free|don['’]t hesitate|do not hesitate)\b|"
    r"\bno (?:problem|worries|"
    r"issues?)\b|\bsorry (?:to hear|for (?:the|any|your))\b)[^.!?\n]*",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"\b(?:unable|unfortunately|sorry|apolog\w+|regret\w*|errors?|fail\w*|issues?|problems?|trouble|"
    r"however|although|"
    r"(?:I|we) (?:cannot|can not|can['’]t)|(?:cannot|can['’]t|can not) (?:be )?(?:find|found|locate|"
    r"retriev|process|"
    r"complet|verif|access|load|reach|book|determin|calculat)\w*|(?:could|did|was|were|has|have|had|"
    r"does|do) not|"
    r"not (?:able|available|found|possible|successful|enough|valid|work\w*|go through)|unavailable|"
    r"invalid|incorrect|wrong|"
    r"discrepanc\w+|mismatch\w*|insufficient|exceed\w*|difficult\w*|unsuccessful\w*|declin\w+|reject\w*|"
    r"denied|missing|"
    r"oversight|glitch|technical|timed? ?-?out|pending|try(?:ing)? (?:again|another|a different)|"
    r"again later|still (?:need|"
    r"working)|manually|no (?:results?|data|information|records?|response|match\w*|luck|longer|such)|"
    r"(?:couldn|didn|wasn|weren|isn|aren|hasn|haven|doesn|won|don)['’]?t)\b",
    re.IGNORECASE,
)
_SUCCESS = re.compile(
    r"(?:^|[.!]\s+|\n)\W*(?:all (?:set|done|taken care of)|done\b|success\w*\b|(?:that|it)(?:'s|’s| is|"
    r" has been)"
    r"(?: all| now)? (?:done|set|taken care of|sorted|complete)|you(?:'re|’re| are) all set)[^.!\n]*[.!]?",
    re.IGNORECASE,
)
_FOUND = re.compile(
    r"\b(?:I(?:'ve| have|’ve)? (?:just |now |also )?(?:found|retrieved|located|looked up|pulled up)|"
    r"here(?:'s|’s| is| are))\b"
    r"[^.!\n]*[.!:]?",
    re.IGNORECASE,
)
# A figure (not that of a list), a code in capitals, a quotation.
_DATUM = re.compile(
    r"(?<![\w.#])(?<!\n)\d+(?:[.,:/-]\d+)*(?:\s?[ap]m)?(?!\w)|(?<!\w)(?=[A-Z]*\d)[A-Z]+\d{2,}\b|"
    r"[\"“][^\"”\n]{12,120}[\"”]",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")


def _made_up(conversation: Conversation, failed: PlacedCall, answer: str) -> tuple[int, int] | None:
    """The sentence that tells what the failed look-up was to find: it gives figures, codes or quotations
    that stand nowhere else in the conversation, or says that something was found where nothing was."""
    if words_of(failed.call.name)[:1] in _SUMS or not is_mostly_english(answer) or _HONEST.search(answer):
        return None  # sums can be done without a tool
    so_far = [each for each in conversation.calls if each.turn <= failed.turn]
    known = set(_WORD.findall(_known(conversation, failed)))
    new = [found for found in _DATUM.finditer(answer) if not known.issuperset(_WORD.findall(found[0]))]
    alone = sum(each.turn == failed.turn for each in so_far) == 1
    spans = [_sentence(answer, datum.start(), datum.end()) for datum in new]
    spans = [span for span in spans if answer[span[1] - 1] != "?"]
    if len(spans) > 1 or (spans and alone):
        return spans[0]
    found_something = any(
        error_of(each.call.result) is None
        for each in so_far
        if each.turn == failed.turn or each.call.name == failed.call.name
    )
    told = None if found_something else _FOUND.search(answer)
    return told.span() if told else None


# Of a look-up, less is needed to tell of the trouble than of an action.
_HONEST = re.compile(
    r"\b(?:down|bounced|offline|unreachable|outage|maintenance|unresponsive|last known|did you mean|"
    r"unknown|not sure|"
    r"there (?:is|are|was|were) (?:no|nothing)|no such|such as|for example|please (?:provide|check|"
    r"enter|try))\b",
    re.IGNORECASE,
)
_SUMS = frozenset(
    {("calculate",), ("calculator",), ("calc",), ("compute",), ("think",), ("convert",), ("math",)}
)


def _known(conversation: Conversation, failed: PlacedCall) -> str:
    texts = [conversation.policy, conversation.now, *conversation.truths, *conversation.beliefs]
    texts += [turn.user for turn in conversation.turns[: failed.turn + 1]]
    texts += [turn.answer for turn in conversation.turns[: failed.turn]]
    for placed in conversation.calls:
        if placed.turn <= failed.turn:
            texts.append(shown(placed.call, 20_000))
            texts.append(placed.call.result.text if placed.call.result else "")
    return "\n".join(texts)


_END = re.compile(r"[.!?](?=\s|$)|\n")


def _sentence(text: str, start: int, end: int) -> tuple[int, int]:
    begins = max((found.end() for found in _END.finditer(text, 0, start)), default=0)
    found = _END.search(text, end)
    ends = found.end() if found else len(text)
    while begins < start and text[begins].isspace():
        begins += 1
    while ends > end and text[ends - 1].isspace():
        ends -= 1
    return begins, ends


def _cut(text: str, limit: int = 160) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
