"""What a chat completion says, whatever its server left out or put in."""

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
"""Output tokens with which a model that thought too long is asked again, at least."""


class CompletionAnswer(NamedTuple):
    """``text`` is what the model said, thoughts within it included. ``reasoned``: it also thought in a
    field of its own, which is never the answer."""

    text: str
    finish_reason: str
    reasoned: bool
    usage: Usage

    @property
    def is_cut(self) -> bool:
        """Whether more output tokens may help: it ran out of them, or thought and said nothing."""
        if is_token_limit(self.finish_reason):
            return True
        thought = self.reasoned or bool(self.text.strip())
        return thought and not strip_reasoning(self.text)

    def larger_budget(self, budget: int | None) -> int:
        return max(LARGER_OUTPUT_BUDGET, 2 * (budget or self.usage.output_tokens))


def parse_completion(
    reply: Any, *, where: str, sent: Sequence[Mapping[str, str]], quote: Callable[[str], str]
) -> CompletionAnswer:
    """``reply`` is a completion (``HttpClient.decode_completion``), ``where`` names the model in messages,
    ``sent`` is what was sent (its tokens are estimated where the server does not count them), ``quote`` makes
    the server's words fit for a message. Raises ``UnreadableReplyError`` if the model would not answer."""
    choice = reply["choices"][0]
    message = choice["message"]
    text = _text(message.get("content"))
    usage = _usage(reply.get("usage"), sent=sent, got=text)
    refusal, reason = message.get("refusal"), str(choice.get("finish_reason") or "")
    if isinstance(refusal, str) and refusal.strip():
        what = f"{where}: the model would not answer: {quote(refusal)}"
        raise UnreadableReplyError(what, raw=quote(refusal), usage=usage)
    if is_content_filter(reason):
        what = f"{where}: the provider's content filter cut the answer"
        raise UnreadableReplyError(what, raw=quote(text), usage=usage)
    reasoned = any(message.get(key) for key in ("reasoning_content", "reasoning"))
    return CompletionAnswer(text, reason, reasoned, usage)


def _text(content: Any) -> str:
    """The content, or of a list of parts those that are text: thoughts and images are not the answer."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [
        p.get("text") for p in parts if isinstance(p, Mapping) and p.get("type") in ("text", "output_text")
    ]
    return "".join(text for text in texts if isinstance(text, str))


def _usage(reported: Any, *, sent: Sequence[Mapping[str, str]], got: str) -> Usage:
    """What the server reported; what it left out is estimated. The cost is that of the configured prices."""
    if (usage := read_usage(reported)) and not usage.unsplit:
        return usage.model_copy(update={"calls": 1, "cost": None})
    asked, answered = reported_parts(reported)
    return Usage(
        calls=1,
        input_tokens=_tokens_of(sent) if asked is None else asked,
        output_tokens=count_tokens(got) if answered is None else answered,
        estimated=True,
    )


def _tokens_of(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(count_tokens(message["content"]) for message in messages)
