"""One call goes first with a beginning that others share. They follow when it is answered, and find the
beginning in the provider's cache.

All judges of a turn are ready at the same time, with the same record. Sent at once, none finds what the
others have sent, and each pays for all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b

import anyio

from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.tokens import count_tokens

MIN_PREFIX_TOKENS = 1024
"""Tokens that a beginning has, if it is worth to wait for."""
STEP = 128
"""Tokens that a longer beginning has more, if it is worth to wait for that, too."""
PATIENCE_S = 30.0
"""How long anyone waits: by then a beginning has been read, however long the answer to it takes."""
REMEMBERED = 20_000
"""Beginnings, the latest; providers forget sooner."""

_tokens = lru_cache(maxsize=256)(count_tokens)


class CachePrimingModel:
    """A ``ChatModel`` that lets one request go first with each beginning that a request names as ``shared``,
    the shortest first, and holds the others until that has a reply or has failed in whatever way.

    Who leads never waits any more, so nobody waits for somebody who waits.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._under_way: dict[bytes, anyio.Event] = {}
        self._known: dict[bytes, None] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        new = await self._admitted(tuple(_beginnings(request)))
        # Nothing is awaited in between: what is new to one request is under way for the next.
        ended = anyio.Event()
        self._under_way |= dict.fromkeys(new, ended)
        try:
            return await self._model.complete(request)
        finally:
            for name in new:
                del self._under_way[name]
                self._known[name] = None
            while len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
            ended.set()

    async def _admitted(self, beginnings: Sequence[bytes]) -> Sequence[bytes]:
        """The beginnings that nobody has sent yet, once nothing shorter is under way."""
        for place, name in enumerate(beginnings):
            if leader := self._under_way.get(name):
                with pause_deadlines(), anyio.move_on_after(PATIENCE_S):
                    await leader.wait()
            elif name not in self._known:
                rest = beginnings[place:]
                return [each for each in rest if each not in self._known and each not in self._under_way]
        return ()

    async def aclose(self) -> None:
        await self._model.aclose()


def _beginnings(request: ModelRequest) -> Iterator[bytes]:
    """A name for each that is long enough, the shortest first."""
    digest = blake2b(request.system.encode("utf-8", "replace"), digest_size=16)
    tokens, begun, told = _tokens(request.system), 0, 0
    for end in request.shared:
        more = request.prompt[begun:end]
        digest.update(b"\0" + more.encode("utf-8", "replace"))
        tokens, begun = tokens + _tokens(more), end
        if tokens >= MIN_PREFIX_TOKENS and tokens - told >= STEP:
            told = tokens
            yield digest.digest()
