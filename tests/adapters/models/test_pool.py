"""Making model clients, and the pool that bounds their calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.models import ModelResources, make_model
from agenteval.adapters.models.capabilities import Capabilities
from agenteval.adapters.models.pool import ModelPool
from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError
from tests.support.local_servers import plain_environment
from tests.support.model_bench import KEY, REQUEST, Bench
from tests.support.model_servers import (
    ModelServer,
)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


# ── the pool ─────────────────────────────────────────────────────────────────────────────────────


def test_no_more_calls_are_in_flight_than_the_pool_allows() -> None:
    async def main() -> None:
        clients = [bench.client(), bench.client()]
        async with anyio.create_task_group() as tasks:
            for number in range(12):
                tasks.start_soon(clients[number % 2].complete, REQUEST)
        for client in clients:
            await client.aclose()

    with ModelServer(delay_s=0.01) as server:
        bench = Bench(server.base_url, limit=3)
        anyio.run(main)
        assert server.most_in_flight == 3
        assert len(server.asked) == 12
    assert bench.pool.in_flight == 0


def test_a_narrowed_pool_bounds_one_server_and_counts_in_the_whole() -> None:
    seen: list[tuple[int, int]] = []

    async def call(pool: ModelPool) -> None:
        async with pool:
            seen.append((whole.narrowed("a", 1).in_flight, whole.in_flight))
            await anyio.sleep(0.001)

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(call, whole.narrowed("a", 1))
                tasks.start_soon(call, whole)

    whole = ModelPool(3)
    anyio.run(main)
    assert len(seen) == 8
    assert tuple(map(max, zip(*seen, strict=True))) == (1, 3)


# ── making one ───────────────────────────────────────────────────────────────────────────────────


def made(model: str, environ: Mapping[str, str] | None = None, **config: Any) -> Any:
    return make_model(
        ModelConfig(model=model, **config),
        role="judge",
        shared=ModelResources(ModelPool(1), Capabilities(), print),
        environ=environ or {},
        root=Path(),
    )


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        ("openai/m", "OPENAI_API_KEY"),
        ("anthropic/m", "ANTHROPIC_API_KEY"),
        ("google/m", "GEMINI_API_KEY"),
    ],
)
def test_a_missing_key_is_named(model: str, variable: str) -> None:
    with pytest.raises(AuthorError, match=variable):
        made(model)
    with pytest.raises(AuthorError, match=variable):
        made(model, {variable: "  "})
    assert made(model, {variable: KEY})


def test_another_variable_for_the_key() -> None:
    with pytest.raises(AuthorError, match="MY_KEY"):
        made("ollama/m", api_key_env="MY_KEY")
    with pytest.raises(AuthorError, match="MY_KEY contains characters"):
        made("ollama/m", {"MY_KEY": "sk-\n1"}, api_key_env="MY_KEY")
    assert made("google/m", {"GOOGLE_GENERATIVE_AI_API_KEY": KEY})


@pytest.mark.parametrize(
    "base_url",
    ["localhost:8000", "ftp://host/v1", "http://", "http://[::1/v1", "http://a:b/v1", "http://a..b\x01/v1"],
)
def test_a_malformed_base_url(base_url: str) -> None:
    with pytest.raises(AuthorError, match="base_url"):
        made("openai-compatible/m", base_url=base_url)


def test_openais_base_url_may_be_in_the_environment() -> None:
    with ModelServer() as server:
        environ = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.base_url}
        model = made("openai/m", environ)
        anyio.run(model.complete, REQUEST)
        assert len(server.asked) == 1


def test_an_unknown_provider() -> None:
    with pytest.raises(AuthorError, match="did you mean 'openai'"):
        made("opnai/m")


def test_the_client_may_be_closed_twice() -> None:
    async def main() -> None:
        client = Bench(server.base_url).client()
        await client.complete(REQUEST)
        await client.aclose()
        await client.aclose()

    with ModelServer() as server:
        anyio.run(main)
