"""Fetching tiktoken's vocabulary: all of it or nothing."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import anyio
import pytest

from agenteval.adapters.transport.vocabulary import fetch_vocabulary
from agenteval.core import tokens
from agenteval.core.errors import InfrastructureError
from tests.support.local_servers import Behaviour, LocalServer, chunked, plain_environment, respond

DATA = b"IQ== 0\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(tokens, "_SHA256", sha256(DATA).hexdigest())


def test_it_is_put_where_tiktoken_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    with LocalServer(respond(DATA)) as server:
        monkeypatch.setattr(tokens, "VOCABULARY", server.url)
        assert not tokens.is_vocabulary_available()
        path = anyio.run(fetch_vocabulary)
        assert path.read_bytes() == DATA
        assert tokens.is_vocabulary_available()


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (respond("Sign in to this network"), "something other"),
        (respond("", status=404), "404"),
        (respond("", status=302, headers={"Location": "http://elsewhere/"}), "302"),
        (chunked([DATA[:3]], end="drop"), "cannot be downloaded"),
    ],
)
def test_what_is_not_all_of_it_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, behaviour: Behaviour, told: str
) -> None:
    with LocalServer(behaviour) as server:
        monkeypatch.setattr(tokens, "VOCABULARY", server.url)
        with pytest.raises(InfrastructureError, match=told):
            anyio.run(fetch_vocabulary)
    assert not tokens.is_vocabulary_available()
