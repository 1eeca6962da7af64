"""Parse chat completions, even if the server omitted or added fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from agenteval.adapters.models.reply_parser import strip_reasoning
from agenteval.core.errors import UnreadableReplyError
from agenteval.core.tokens import count_tokens
from agenteval.core.trajectory import Usage
from agenteval.messages.finish_reasons import is_content_filter, is_token_limit
from agenteval.messages.reported_usage import read_usage, reported_parts

LARGER_OUTPUT_BUDGET = 4000
"""The minimum output token limit of a request that is repeated because the model reasoned for too long."""


class CompletionAnswer(NamedTuple):
    """The answer in a chat completion."""

    text: str
    """The model's text, including any reasoning that the text contains."""
    finish_reason: str
    reasoned: bool
    """True if the model also returned reasoning in a separate field. This reasoning is never used as the
    answer."""
    usage: Usage

    @property
    def is_cut(self) -> bool:
        """True if a higher token limit may help, because the answer was truncated or the model reasoned but
        gave no answer."""
        if is_token_limit(self.finish_reason):
            return True
        thought = self.reasoned or bool(self.text.strip())
        return thought and not strip_reasoning(self.text)

    def larger_budget(self, budget: int | None) -> int:
        return max(LARGER_OUTPUT_BUDGET, 2 * (budget or self.usage.output_tokens))


def parse_completion(
    reply: Any, *, where: str, sent: Sequence[Mapping[str, str]], quote: Callable[[str], str]
) -> CompletionAnswer:
    """Parse a chat completion (``HttpClient.decode_completion``).

    ``where`` names the model in messages. ``sent`` contains the messages that were sent; their tokens are
    estimated if the server does not report token counts. ``quote`` prepares the server's text for quotation
    in a message. Raise ``UnreadableReplyError`` if the model refused to answer."""
    choice = reply["choices"][0]
    message = choice["message"]
    text = _text(message.get("content"))
    usage = _usage(reply.get("usage"), sent=sent, got=text)
    refusal, reason = message.get("refusal"), str(choice.get("finish_reason") or "")
    if isinstance(refusal, str) and refusal.strip():
        what = f"{where}: the model refused to answer: {quote(refusal)}"
        raise UnreadableReplyError(what, raw=quote(refusal), usage=usage)
    if is_content_filter(reason):
        what = f"{where}: the provider's content filter cut off the answer"
        raise UnreadableReplyError(what, raw=quote(text), usage=usage)
    reasoned = any(message.get(key) for key in ("reasoning_content", "reasoning"))
    return CompletionAnswer(text, reason, reasoned, usage)


def _text(content: Any) -> str:
    """Return the text of the content. If the content is a list of parts, return only its text parts, because
    reasoning and images are not part of the answer."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [
        p.get("text") for p in parts if isinstance(p, Mapping) and p.get("type") in ("text", "output_text")
    ]
    return "".join(text for text in texts if isinstance(text, str))


def _usage(reported: Any, *, sent: Sequence[Mapping[str, str]], got: str) -> Usage:
    """Return the reported token usage, with estimates for missing numbers. The cost is computed from the
    configured prices."""
    if (usage := read_usage(reported)) and not usage.unsplit:
        is_one_unpriced_call = usage.calls == 1 and usage.cost is None
        return usage if is_one_unpriced_call else usage.model_copy(update={"calls": 1, "cost": None})
    asked, answered = reported_parts(reported)
    return Usage(
        calls=1,
        input_tokens=_tokens_of(sent) if asked is None else asked,
        output_tokens=count_tokens(got) if answered is None else answered,
        estimated=True,
    )


def _tokens_of(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(count_tokens(message["content"]) for message in messages)
