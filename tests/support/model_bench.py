"""A model client with its surroundings, for tests: what it told, what it waited for."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agenteval.adapters.models import ModelResources
from agenteval.adapters.models.capabilities import Capabilities
from agenteval.adapters.models.openai_chat import RETRY, OpenAiChat
from agenteval.adapters.models.pool import ModelPool
from agenteval.adapters.transport.limits import RateLimits
from agenteval.adapters.transport.retry import RetryPolicy
from agenteval.core.config import ModelConfig
from agenteval.core.errors import InfrastructureError
from agenteval.core.protocols import ModelReply, ModelRequest

KEY = "sk-secret-0123456789"


class Verdict(BaseModel):
    evidence: str
    reason: str
    score: int


REQUEST = ModelRequest("judge", "You are a judge.", "Judge this.", Verdict)
GOOD = {"evidence": "words", "reason": "words", "score": 1}


class Bench:
    """A client with its surroundings; waits are noted and not waited for: they move ``clock_s`` on.
    ``sent_by``: see ``client`` of a model, for tests that hold with each."""

    sent_by: str | None = None

    def __init__(
        self, base_url: str, *, provider: str = "openai-compatible", limit: int = 5, **config: Any
    ) -> None:
        config.setdefault("client", self.sent_by)
        self.clock_s = 0.0
        self.waits: list[float] = []
        self.notices: list[str] = []
        self.pool = ModelPool(limit)
        self.capabilities = Capabilities()
        self.held: list[int] = []
        self.environ = {"OPENAI_API_KEY": KEY, "OPENAI_ORG_ID": "org-1"}
        self._config = ModelConfig(model=f"{provider}/a/model:7b", base_url=base_url, **config)
        self._retry = RetryPolicy(
            retries=RETRY.retries,
            base_s=RETRY.base_s,
            sleep=self._sleep,
            jitter=lambda: 1.0,
            now=lambda: 1_000_000.0,
            clock=lambda: self.clock_s,
        )

    async def _sleep(self, seconds: float) -> None:
        self.clock_s += seconds
        self.waits.append(seconds)
        self.held.append(self.pool.in_flight)

    def client(self, *, limits: RateLimits | None = None) -> OpenAiChat:
        return OpenAiChat(
            self._config,
            ModelResources(self.pool, self.capabilities, self.notices.append, limits),
            environ=self.environ,
            retry=self._retry,
        )

    def ask(self, request: ModelRequest = REQUEST, *, times: int = 1) -> list[ModelReply]:
        """The replies to the same request, one after another."""
        return anyio.run(self._ask, request, times)

    async def _ask(self, request: ModelRequest, times: int) -> list[ModelReply]:
        client = self.client()
        try:
            return [await client.complete(request) for _ in range(times)]
        finally:
            await client.aclose()

    def fail(self, request: ModelRequest = REQUEST, *, times: int = 1) -> InfrastructureError:
        with pytest.raises(InfrastructureError) as caught:
            self.ask(request, times=times)
        assert KEY not in str(caught.value)
        return caught.value
