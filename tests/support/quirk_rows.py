"""What OpenAI-compatible servers do that clients do not expect: a row for each oddity, with a real server
that has it. ``tests/adapters/models/test_provider_quirks.py`` checks the rows.

The numbers are those of the twenty oddities that were gathered from issue threads of other clients.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from tests.support.local_servers import completion
from tests.support.model_bench import GOOD, Verdict
from tests.support.model_servers import (
    Play,
    Reply,
    answers,
    error,
    fenced,
    once,
    refuses,
    refuses_format,
    refuses_system,
    says,
    thinks_too_long,
)
from tests.support.quirks import (
    CALL,
    Row,
    alternates,
    bot,
    calls,
    calls_alone,
    calls_of,
    checks,
    checks_all,
    first_call,
    ids_of,
    is_as_sent,
    is_nine,
    is_whole,
    needs_field,
    piece,
    sent_calls,
    silent,
    stream,
    streams_only,
)

HTML = "<!doctype html><html><body>Sign in</body></html>"
SYSTEM = {"body": {"messages": [{"role": "system", "content": "Be brief."}]}}
NULL_REFUSED = "Invalid value for 'content': expected a string, got null."
EMPTY_REFUSED = "messages: text content blocks must be non-empty"
NINE = "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9."
DETAIL = {"detail": [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted", "input": 0}]}
PARTS = [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": json.dumps(GOOD)}]
COUNTS = {"prompt_tokens": 7, "completion_tokens": 3}


def row(
    number: int, who: Literal["model", "agent"], quirk: str, server: str, does: str, *plays: Play, **more: Any
) -> Row:
    return Row(number, who, quirk, server, does, plays, **more)


ROWS: tuple[Row, ...] = (
    # ── 1: the name of the limit of output tokens ────────────────────────────────────────────────
    row(
        *(1, "model", "one name of the token limit", "refuses max_tokens", "swaps it, remembers"),
        refuses("max_tokens", "'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
        config={"max_tokens": 9},
        turns=2,
        then=lambda s: len(s.asked) == 3 and s.asked[2]["max_completion_tokens"] == 9,
    ),
    row(
        *(1, "model", "the other name", "knows only max_tokens", "swaps it back"),
        refuses("max_completion_tokens", "Unrecognized request argument: max_completion_tokens"),
        config={"max_tokens": 9, "provider": "openai"},
        then=lambda s: len(s.asked) == 2 and s.asked[1]["max_tokens"] == 9,
    ),
    row(
        *(1, "model", "neither name", "refuses both", "sends no limit"),
        *(refuses("max_tokens"), refuses("max_completion_tokens")),
        config={"max_tokens": 9},
        then=lambda s: not {"max_tokens", "max_completion_tokens"} & s.asked[-1].keys(),
    ),
    row(
        *(1, "model", "a limit is required", "wants max_tokens", "sends one"),
        needs_field("max_tokens", "max_tokens: Field required"),
        then=lambda s: s.asked[-1]["max_tokens"] == 4000,
    ),
    # ── 2: parameters ────────────────────────────────────────────────────────────────────────────
    row(
        *(2, "model", "temperature refused", "names it in `param`", "drops it, says so"),
        refuses("temperature", "Only the default (1) value is supported.", param="temperature"),
        config={"temperature": 0},
        then=lambda s: "temperature" not in s.asked[-1] and "may vary more" in s.notices[0],
    ),
    row(
        *(2, "model", "temperature refused", "422 with a validation error", "drops it"),
        lambda asked: says(DETAIL, status=422)(asked) if "temperature" in asked else None,
        config={"temperature": 0},
        then=lambda s: len(s.asked) == 2 and "temperature" not in s.asked[-1],
    ),
    row(
        *(2, "model", "top_p, penalties, seed, stop", "refuses each", "drops one by one"),
        *map(refuses, ("top_p", "presence_penalty", "seed", "stop")),
        config={"extra": {"top_p": 1, "presence_penalty": 0, "seed": 1, "stop": "x", "top_k": 3}},
        then=lambda s: len(s.asked) == 5 and s.asked[-1]["top_k"] == 3 and "seed" not in s.asked[-1],
    ),
    row(
        *(2, "model", "temperature nobody asked for", "would refuse it", "never sends it"),
        refuses("temperature"),
        then=lambda s: len(s.asked) == 1,
    ),
    # ── 3: logprobs ──────────────────────────────────────────────────────────────────────────────
    row(
        *(3, "model", "logprobs", "403 that names them", "drops them: no wrong key"),
        refuses("logprobs", "You are not allowed to request logprobs from this model", status=403),
        config={"extra": {"logprobs": True}},
        then=lambda s: len(s.asked) == 2 and "logprobs" not in s.asked[-1],
    ),
    # ── 4: the shape of answers ──────────────────────────────────────────────────────────────────
    row(
        *(4, "model", "JSON mode", "LM Studio: refuses json_object and text", "asks for json_schema"),
        refuses_format("json_object", "text"),
        then=lambda s: len(s.asked) == 1,
    ),
    row(
        *(4, "model", "schemas", "refuses json_schema", "bare schema, then JSON mode"),
        refuses_format("json_schema", message="This response_format type is unavailable now"),
        then=lambda s: s.asked[-1]["response_format"] == {"type": "json_object"},
    ),
    row(
        *(4, "model", "response_format", "does not know it", "the prompt alone, field left out"),
        refuses("response_format", "Unrecognized request argument supplied: response_format"),
        then=lambda s: "response_format" not in s.asked[-1],
    ),
    row(
        *(4, "model", "grammars", "500: failed to parse grammar", "a weaker form, not the same again"),
        refuses_format("json_schema", message="failed to parse grammar", status=500),
        then=lambda s: len(s.asked) == 3 and not s.waits,
    ),
    # ── 5: JSON in a wrapping ────────────────────────────────────────────────────────────────────
    row(
        *(5, "model", "schema ignored", "a fence with words around", "reads what is inside"),
        fenced(),
        then=lambda s: len(s.asked) == 1,
    ),
    row(
        *(5, "model", "comments and commas", "JSON with both", "reads it"),
        answers('{"evidence": "words", // why\n "reason": "words", "score": 1,}'),
        then=lambda s: len(s.asked) == 1,
    ),
    row(
        *(5, "model", "no JSON at all", "prose, once", "one turn of repair"),
        once(answers("I think that it is fine.")),
        then=lambda s: s.roles == ["system", "user", "assistant", "user"],
    ),
    # ── 6: reasoning models ──────────────────────────────────────────────────────────────────────
    row(
        *(6, "model", "thinks till the limit", "empty content, length, reasoning_content", "a larger limit"),
        thinks_too_long(4000),
        then=lambda s: s.asked[-1]["max_tokens"] == 4000,
    ),
    row(
        *(6, "model", "thinks in the content", "<think> that never ends", "a larger limit"),
        thinks_too_long(6000, field="content"),
        config={"max_tokens": 3000},
        then=lambda s: s.asked[-1]["max_tokens"] == 6000,
    ),
    row(
        *(6, "model", "thinks and stops", "empty content, stop, reasoning", "a larger limit; never graded"),
        once(answers("", reasoning='{"evidence": "", "reason": "", "score": 5}')),
        then=lambda s: len(s.asked) == 2 and s.answer == Verdict(**GOOD),
    ),
    row(
        *(6, "model", "thinks aloud before", "<think>…</think> and the answer", "cuts the thought away"),
        answers('<think>{"score": 5}</think>' + json.dumps(GOOD)),
        then=lambda s: len(s.asked) == 1,
    ),
    # ── 7: empty content ─────────────────────────────────────────────────────────────────────────
    *(
        row(
            *(7, "agent", "content null beside calls", f"refuses its own null, {status}", "says so"),
            checks(words, lambda m: m.get("content", 0) is not None, status=status),
            then=lambda s, words=words: len(s.asked) == 2 and words in s.failure,
            fails=True,
        )
        for status, words in ((400, NULL_REFUSED), (422, "content: Input should be a valid string"))
    ),
    *(
        row(
            *(7, "agent", f"content {shown} beside calls", "takes what it sends", "is sent as it came"),
            *(checks("not as it came", lambda m, text=text: is_as_sent(m, text)), bot(content=text)),
            then=lambda s: s.answer == "Done.",
        )
        for shown, text in (("null", None), ('""', ""), ("with words", "Wait."))
    ),
    row(
        *(7, "agent", "content left out", "a reply with calls alone", "sends null"),
        *(checks("no content", lambda m: "content" in m), calls_alone()),
        then=lambda s: s.last("assistant")["content"] is None and s.answer == "Done.",
    ),
    row(
        *(7, "agent", "an answer of nothing", "refuses empty assistant messages", "says so"),
        checks(EMPTY_REFUSED, lambda m: m["role"] != "assistant" or m["content"]),
        silent(),
        turns=2,
        then=lambda s: EMPTY_REFUSED in s.failure and len(s.asked) == 2,
        fails=True,
    ),
    row(
        *(7, "model", "nothing was said", "an empty answer, once", "asks again without an empty message"),
        once(answers("")),
        then=lambda s: all(m["content"] for m in s.asked[-1]["messages"]),
    ),
    # ── 8: roles ─────────────────────────────────────────────────────────────────────────────────
    row(
        *(8, "model", "no system role", "refuses it", "folds it into the user's message"),
        refuses_system(),
        then=lambda s: s.roles == ["user"] and "You are a judge." in s.last("user")["content"],
    ),
    row(
        *(8, "agent", "no system role", "refuses what `body` has", "says so, names `body`"),
        refuses_system(),
        config=SYSTEM,
        then=lambda s: "System role not supported" in s.failure and "`body` contains messages" in s.failure,
        fails=True,
    ),
    row(
        *(8, "agent", "roles must alternate", "refuses what `body` has", "says so, names `body`"),
        checks_all("Conversation roles must alternate user/assistant/user/...", alternates),
        bot(),
        config={"body": {"messages": [{"role": "user", "content": "Context."}]}},
        then=lambda s: "must alternate" in s.failure and "`body` contains messages" in s.failure,
        fails=True,
    ),
    # ── 9: arguments and ids ─────────────────────────────────────────────────────────────────────
    *(
        row(
            *(9, "agent", f"arguments: {what}", "sends them", "reads what is an object, keeps the rest raw"),
            *(checks_all("broken arguments", is_whole), calls(given)),
            then=lambda s, read=read, raw=raw: first_call(s) == (read, raw) and s.answer == "Done.",
        )
        for what, given, read, raw in (
            ("an object", {"a": 1}, {"a": 1}, None),
            ("empty", "", {}, None),
            ("null", None, {}, None),
            ("doubled", '{}{"a": 1}', None, '{}{"a": 1}'),
            ("cut off", '{"a":', None, '{"a":'),
            ("a list", "[1]", None, "[1]"),
        )
    ),
    *(
        row(
            *(9, "agent", f"call without {name}", "leaves it out", "makes one up, the same each time"),
            *(checks_all("calls and results do not fit", is_whole), calls("{}", **{name: None})),
            then=lambda s: s.answer == "Done.",
        )
        for name in ("id", "type")
    ),
    row(
        *(9, "agent", "an id used twice", "two calls of one id", "tells them apart"),
        *(checks_all("calls and results do not fit", is_whole), bot(CALL, CALL)),
        then=lambda s: s.answer == "Done." and len(calls_of(s)) == 2,
    ),
    row(
        *(9, "agent", "ids of nine characters", "refuses its own others", "says so"),
        checks_all(NINE, lambda ms: all(map(is_nine, ids_of(ms)))),
        *(checks_all("calls and results do not fit", is_whole), bot()),
        then=lambda s: NINE in s.failure and len(s.asked) == 2,
        fails=True,
    ),
    row(
        *(9, "agent", "function_call", "the older form", "reads it as a call"),
        *(checks_all("calls and results do not fit", is_whole),),
        lambda asked: Reply(
            completion(None, function_call={"name": "look_up", "arguments": "{}"})
            if asked["messages"][-1]["role"] != "tool"
            else completion("Done.")
        ),
        then=lambda s: [call.name for call in calls_of(s)] == ["look_up"],
    ),
    # ── 10: results ──────────────────────────────────────────────────────────────────────────────
    row(
        *(10, "agent", "one result for each call", "refuses anything else", "answers failed calls, too"),
        checks_all("An assistant message with 'tool_calls' must be followed by tool messages", is_whole),
        bot(CALL, {**CALL, "id": "b", "function": {"name": "unknown", "arguments": "{}"}}),
        then=lambda s: s.answer == "Done." and "error" in s.asked[-1]["messages"][-1]["content"],
    ),
    # ── 11: 429 ──────────────────────────────────────────────────────────────────────────────────
    *(
        row(
            *(11, who, "429: too fast", "seconds to wait", "waits as long, then goes on"),
            once(says({"error": "slow down"}, status=429, retry_after="7")),
            then=lambda s: len(s.asked) == 2 + (s.answer == "Done.") and 7 <= s.waits[0] < 8,
        )
        for who in ("model", "agent")
    ),
    *(
        row(
            *(11, who, "429: no credit", "insufficient_quota", "gives up at once and says why"),
            lambda _: error("You exceeded your current quota", status=429, code="insufficient_quota"),
            then=lambda s: len(s.asked) == 1 and "waiting does not help" in s.failure,
            fails=True,
        )
        for who in ("model", "agent")
    ),
    row(
        *(11, "model", "429: a clash of words", "INSUFFICIENT QUOTA for a minute", "waits"),
        once(says({"error": "INSUFFICIENT QUOTA: requests per minute"}, status=429)),
        then=lambda s: len(s.asked) == 2,
    ),
    row(
        *(11, "model", "429: not today", "requests per day", "gives up at once"),
        lambda _: error("Rate limit reached on requests per day (RPD)", status=429),
        then=lambda s: len(s.asked) == 1,
        fails=True,
    ),
    row(
        *(11, "model", "429: how long, in a reset header", "x-ratelimit-reset-requests: 6s", "waits as long"),
        once(says({"error": "slow down"}, status=429, x_ratelimit_reset_requests="6s")),
        then=lambda s: 6 <= s.waits[0] < 7,
    ),
    # ── 12: what is not tried again ──────────────────────────────────────────────────────────────
    *(
        row(
            *(12, who, f"status {status}", "always", "is not tried again"),
            lambda _, status=status: error("no", status=status),
            then=lambda s, words=words: len(s.asked) == 1 and words in s.failure,
            fails=True,
        )
        for who in ("model", "agent")
        for status, words in ((400, "400"), (401, "key"), (403, "key"), (404, "/v1"), (422, "422"))
    ),
    # ── 13: a 200 that is not an answer ──────────────────────────────────────────────────────────────
    *(
        row(
            *(13, who, f"200: {what}", "always", "is no answer, and says so"),
            says(body),
            then=lambda s, words=words: len(s.asked) == 1 and words in s.failure,
            fails=True,
        )
        for who in ("model", "agent")
        for what, body, words in (
            ("an error", {"error": {"message": "Model is gone"}}, "Model is gone"),
            ("no choices", {"choices": []}, "no"),
            ("null message", {"choices": [{"message": None}]}, "message"),
            ("a web page", HTML, "web page"),
        )
    ),
    row(
        *(13, "model", "usage missing", "tells none", "estimates, and marks it"),
        answers(usage=None),
        then=lambda s: s.is_estimated,
    ),
    row(
        *(13, "model", "content in parts", "reasoning and text", "joins the text"),
        answers(None, content=PARTS),
        then=lambda s: len(s.asked) == 1,
    ),
    row(
        *(13, "model", "a refusal", "in a field of its own", "is an error of the judge"),
        answers("", refusal="I will not."),
        then=lambda s: "I will not." in s.failure,
        fails=True,
    ),
    row(
        *(13, "agent", "a refusal", "in a field of its own", "is the agent's answer"),
        lambda _: Reply(completion(None, refusal="I will not.")),
        then=lambda s: s.answer == "I will not.",
    ),
    row(
        *(13, "model", "content_filter", "cuts the answer", "is an error of the judge"),
        answers("{}", finish_reason="content_filter"),
        then=lambda s: "content filter" in s.failure,
        fails=True,
    ),
    # ── 14, 15: probes ───────────────────────────────────────────────────────────────────────────
    row(
        *(14, "model", "a model in the list that cannot be called", "404 to a call", "doctor calls it"),
        lambda _: error("The model does not exist", status=404),
        then=lambda s: "check the model name" in s.failure,
        fails=True,
    ),
    row(
        *(15, "model", "a healthy model with a tiny limit", "says nothing within 5 tokens", "asks with more"),
        thinks_too_long(1000),
        config={"max_tokens": 5},
        then=lambda s: s.asked[-1]["max_tokens"] == 4000,
    ),
    # ── 16: further fields ───────────────────────────────────────────────────────────────────────
    row(
        *(16, "agent", "signatures of thoughts", "wants them back", "echoes what it does not know"),
        checks("missing thought_signature", lambda m: not m.get("tool_calls") or m.get("sig") == "x"),
        checks_all("missing extra", lambda ms: all(c.get("extra") == {"s": 1} for c in sent_calls(ms))),
        bot({**CALL, "extra": {"s": 1}}, sig="x"),
        then=lambda s: len(s.asked) == 2,
    ),
    row(
        *(16, "agent", "its own reasoning", "does not take it back", "says so, names the field"),
        checks("property 'messages.1.reasoning' is unsupported", lambda m: "reasoning" not in m),
        bot(reasoning="hm", sig="x"),
        then=lambda s: (
            "'messages.1.reasoning' is unsupported" in s.failure
            and "its own messages contained reasoning, sig and were sent back unchanged" in s.failure
        ),
        fails=True,
    ),
    # ── 17: streams ──────────────────────────────────────────────────────────────────────────────
    row(
        *(17, "model", "a gateway that only streams", "refuses stream: false", "streams, reads late usage"),
        streams_only,
        turns=2,
        then=lambda s: len(s.asked) == 3 and s.asked[-1]["stream"] is True,
    ),
    row(
        *(17, "model", "a stream that nobody asked for", "always streams", "puts it together"),
        lambda _: stream(piece(json.dumps(GOOD)), piece(reason="stop"), comments=True),
        then=lambda s: len(s.asked) == 1,
    ),
    row(
        *(17, "agent", "stream_options", "refuses it", "says what leaves it out"),
        refuses("stream_options", "Extra inputs are not permitted: stream_options"),
        config={"streaming": True},
        then=lambda s: "`body: {stream_options: null}` omits stream_options" in s.failure,
        fails=True,
    ),
    row(
        *(17, "agent", "stream_options", "refuses it", "leaves it out where `body` says so"),
        refuses("stream_options", "Extra inputs are not permitted: stream_options"),
        lambda _: stream(piece("Do"), piece("ne.", reason="stop"), comments=True),
        config={"streaming": True, "body": {"stream_options": None}},
        then=lambda s: s.answer == "Done." and "stream_options" not in s.asked[-1],
    ),
    row(
        *(17, "agent", "comments, late usage", "keep-alive lines; usage last", "reads both"),
        lambda _: stream(piece("Done.", reason="stop"), piece(usage=COUNTS), comments=True),
        config={"streaming": True},
        then=lambda s: s.trajectory.turns[0].steps[0].usage.input_tokens == 7,
    ),
    # ── 18: the way there ────────────────────────────────────────────────────────────────────────
    *(
        row(
            *(18, who, "a redirect", "to another host", "is not followed: no key goes there"),
            says("", status=302, location="http://elsewhere.invalid/v1?key=1"),
            then=lambda s: (
                len(s.asked) == 1
                and "to http://elsewhere.invalid/v1" in s.failure
                and "key=1" not in s.failure
            ),
            fails=True,
        )
        for who in ("model", "agent")
    ),
    # ── 19: no tables of names ───────────────────────────────────────────────────────────────────
    row(
        *(19, "model", "models change in place", "refuses more than last week", "keeps what it learned"),
        *(refuses("temperature"), refuses_format("json_schema")),
        config={"temperature": 0},
        turns=3,
        then=lambda s: (
            len(s.asked) == 3 + 2 + 1
            and [(sorted(each.refused), each.format_level) for each in s.learned.values()]
            == [(["temperature"], "json_object")]
        ),
    ),
    # ── 20: names and keys ───────────────────────────────────────────────────────────────────────
    row(
        *(20, "model", "names with / and :, no key", "a local server", "sends the name whole and no key"),
        then=lambda s: s.asked[0]["model"] == "a/model:7b" and "authorization" not in s.headers[0],
    ),
    row(
        *(20, "agent", "a key that is not set", "a local server", "sends no Authorization"),
        config={"headers": {"Authorization": "Bearer "}},
        then=lambda s: "authorization" not in s.headers[0],
    ),
)
