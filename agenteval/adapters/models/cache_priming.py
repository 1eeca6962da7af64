"""Make use of the provider's prompt caching: of several calls with a common prefix, send one first, so that
the other calls find the prefix in the cache.

All judges of a turn are ready at the same time and use the same record. If their calls were sent
simultaneously, none of them would find the prefix in the cache, and each would pay the full price."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b

import anyio

from agenteval.conversation.deadlines import pause_deadlines
from agenteval.core.protocols import ChatModel, ModelReply, ModelRequest
from agenteval.core.tokens import count_tokens

MIN_PREFIX_TOKENS = 1024
"""The minimum length in tokens of a prefix that is worth waiting for."""
STEP = 128
"""The number of additional tokens that makes a longer prefix also worth waiting for."""
PATIENCE_S = 30.0
"""The longest wait in seconds. By then, the provider has read the prefix, even if its answer takes longer."""
REMEMBERED = 20_000
"""The number of most recent prefixes to remember. Providers forget prefixes sooner."""

_tokens = lru_cache(maxsize=256)(count_tokens)


class CachePrimingModel:
    """A ``ChatModel`` that primes the provider's prompt cache. For each prefix that requests mark as
    ``shared``, one request is sent first.

    The shortest prefix is sent first. Other requests wait until the first request has received a reply or has
    failed for any reason. A request that is sent first never waits again, so no request waits for a waiting
    request."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._under_way: dict[bytes, anyio.Event] = {}
        self._known: dict[bytes, None] = {}

    async def complete(self, request: ModelRequest) -> ModelReply:
        new = await self._wait_for_prefix(tuple(_prefixes(request)))
        # No await in between: a prefix new to this request must be in progress for the next one.
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

    async def _wait_for_prefix(self, beginnings: Sequence[bytes]) -> Sequence[bytes]:
        """Wait while a request with a shorter prefix is in progress. Return the prefixes that have not been
        sent yet."""
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


def _prefixes(request: ModelRequest) -> Iterator[bytes]:
    """Yield an identifier for each prefix that is long enough, from shortest to longest."""
    digest = blake2b(request.system.encode("utf-8", "replace"), digest_size=16)
    tokens, start, yielded = _tokens(request.system), 0, 0
    for end in request.shared:
        more = request.prompt[start:end]
        digest.update(b"\0" + more.encode("utf-8", "replace"))
        tokens, start = tokens + _tokens(more), end
        if tokens >= MIN_PREFIX_TOKENS and tokens - yielded >= STEP:
            yielded = tokens
            yield digest.digest()
