"""Models behind the ``openai`` package: Azure, and ``client: sdk``. That limits, retries and errors are those
of every other model is seen in ``test_model_chat`` and ``test_model_failures``: both clients run them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agenteval.adapters.models import ModelResources, make_model
from agenteval.adapters.models.capabilities import Capabilities
from agenteval.adapters.models.endpoints import keys_of
from agenteval.adapters.models.pool import ModelPool
from agenteval.core.config import ModelConfig
from agenteval.core.errors import AuthorError, InfrastructureError
from agenteval.core.protocols import ModelReply, ModelRequest
from tests.support.azure_server import DEPLOYMENT, KEY, VERSION, WRONG_KEY, AzureServer
from tests.support.local_servers import LocalServer, plain_environment, respond
from tests.support.model_bench import REQUEST, Bench, Verdict
from tests.support.model_servers import ModelServer, error, once, says

AZURE = f"azure/{DEPLOYMENT}"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plain_environment(monkeypatch, tmp_path)
    for name in ("AZURE_OPENAI_AD_TOKEN", "AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def made(model: str, environ: Mapping[str, str], **config: Any) -> Any:
    shared = ModelResources(ModelPool(1), Capabilities(), print)
    chosen = ModelConfig(model=model, **config)
    return make_model(chosen, role="judge", shared=shared, environ=environ, root=Path(), jitter=lambda: 0.0)


def asked(
    model: str, environ: Mapping[str, str], request: ModelRequest = REQUEST, **config: Any
) -> ModelReply:
    async def main() -> Any:
        client = made(model, environ, **config)
        try:
            return await client.complete(request)
        finally:
            await client.aclose()
            await client.aclose()

    reply: ModelReply = anyio.run(main)
    return reply


def azure(server: AzureServer, **more: str) -> dict[str, str]:
    found = {"AZURE_OPENAI_ENDPOINT": server.address, "OPENAI_API_VERSION": VERSION}
    return {**found, "AZURE_OPENAI_API_KEY": KEY, **more}


# ── Azure ────────────────────────────────────────────────────────────────────────────────────────


def test_azure_is_asked_by_its_own_address_with_its_own_header() -> None:
    with AzureServer() as server:
        reply = asked(AZURE, azure(server), max_tokens=900)
        assert reply.value == Verdict(evidence="words", reason="words", score=1)
        assert reply.usage.calls == 1
        (sent,) = server.asked
        assert sent["max_completion_tokens"] == 900
        assert sent["response_format"]["json_schema"]["strict"] is True
        assert "authorization" not in server.requests[0].headers


@pytest.mark.parametrize(
    "base_url",
    [
        f"{{address}}/?api-version={VERSION}",
        f"{{address}}/openai/deployments/{DEPLOYMENT}/chat/completions?api-version={VERSION}",
        f"{{address}}/openai/v1/?api-version={VERSION}",
    ],
)
def test_an_endpoint_in_its_usual_forms(base_url: str) -> None:
    with AzureServer() as server:
        environ = {"MY_KEY": KEY, "AZURE_OPENAI_AD_TOKEN": "of-somebody-else"}
        url = base_url.format(address=server.address)
        assert asked(AZURE, environ, base_url=url, api_key_env="MY_KEY").value


def test_a_token_of_the_environment_goes_before_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with AzureServer(key="-", token="a-token-of-entra-id") as server:
        assert asked(AZURE, azure(server, AZURE_OPENAI_AD_TOKEN="a-token-of-entra-id")).value
    # One that a configuration does not choose is not taken, although the package reads it by itself.
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "of-somebody-else")
    with AzureServer() as server:
        assert asked(AZURE, azure(server, MINE=KEY), api_key_env="MINE").value
        assert "authorization" not in server.requests[0].headers


def test_all_that_azure_lacks_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.adapters.models.endpoints.is_installed", lambda _: False)
    with pytest.raises(AuthorError) as caught:
        made(AZURE, {})
    told = str(caught.value)
    assert "set AZURE_OPENAI_ENDPOINT or `base_url`" in told
    assert "set OPENAI_API_VERSION, for example 2024-10-21" in told
    assert "set AZURE_OPENAI_API_KEY" in told
    assert "pip install azure-identity" in told
    with pytest.raises(AuthorError, match="the endpoint of the model azure/x is not a server URL"):
        made("azure/x", {"AZURE_OPENAI_ENDPOINT": "my-resource"})


def test_a_wrong_key_and_a_wrong_name_end_in_the_words_of_the_provider() -> None:
    with AzureServer() as server:
        wrong = "another-key-0123456789"
        with pytest.raises(InfrastructureError) as caught:
            asked(AZURE, azure(server, AZURE_OPENAI_API_KEY=wrong))
        assert WRONG_KEY in str(caught.value)
        assert "check the key in AZURE_OPENAI_API_KEY" in str(caught.value)
        with pytest.raises(InfrastructureError, match="deployment for this resource does not exist"):
            asked("azure/another", azure(server))
        assert len(server.requests) == 2


def test_azures_pauses_are_kept_and_its_refusals_learned_from() -> None:
    said = "exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 0 seconds."
    refused = error("Unrecognized request argument supplied: max_completion_tokens")
    plays = once(says({"error": {"code": "429", "message": said}}, status=429), lambda _: refused)
    with AzureServer(plays, says("", status=500)) as server, pytest.raises(InfrastructureError) as caught:
        asked(AZURE, azure(server), max_tokens=900, max_wait_s=0.0)
    assert "HTTP status 500" in str(caught.value)
    budgets = [{*body} & {"max_tokens", "max_completion_tokens"} for body in server.asked]
    assert budgets[:3] == [{"max_completion_tokens"}, {"max_completion_tokens"}, {"max_tokens"}]


# ── tokens of Entra ID ───────────────────────────────────────────────────────────────────────────

IDENTITY = """
class DefaultAzureCredential: pass
def get_bearer_token_provider(credential, scope):
    assert scope == "https://cognitiveservices.azure.com/.default"
    def token():
        {body}
    return token
"""


def identity(monkeypatch: pytest.MonkeyPatch, folder: Path, body: str) -> None:
    """Stands for the package azure-identity."""
    package = folder / "site" / "azure"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "identity.py").write_text(IDENTITY.format(body=body), encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder / "site"))
    for name in ("azure", "azure.identity"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def entra(server: AzureServer) -> dict[str, str]:
    return {"AZURE_OPENAI_ENDPOINT": server.address, "OPENAI_API_VERSION": VERSION}


def test_without_a_key_azure_identity_signs_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    identity(monkeypatch, tmp_path, "return 'token-0123456789'")
    with AzureServer(token="token-0123456789") as server:
        assert asked(AZURE, entra(server)).value
        assert "api-key" not in server.requests[0].headers


def test_a_token_that_the_server_repeats_is_not_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    identity(monkeypatch, tmp_path, "return 'token-0123456789'")
    said = says({"error": {"message": "token-0123456789 is not yours"}}, status=403)
    with AzureServer(said, token="token-0123456789") as server, pytest.raises(InfrastructureError) as caught:
        asked(AZURE, entra(server))
    assert "*** is not yours" in str(caught.value)


def test_who_cannot_sign_in_is_told_how(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    identity(monkeypatch, tmp_path, "raise RuntimeError('no credential in this chain')")
    with AzureServer() as server, pytest.raises(InfrastructureError) as caught:
        asked(AZURE, entra(server))
    assert "no credential in this chain" in str(caught.value)
    assert "az login" in str(caught.value)
    assert not server.requests


# ── client: sdk ──────────────────────────────────────────────────────────────────────────────────

OF_OPENAI = {
    "OPENAI_API_KEY": "sk-of-openai-0123456789",
    "OPENAI_ORG_ID": "org-of-openai",
    "OPENAI_PROJECT_ID": "project-of-openai",
    "OPENAI_CUSTOM_HEADERS": "X-Gateway-Key: 0123456789\nAuthorization: Bearer of-the-gateway",
}


@pytest.mark.parametrize(("key", "sent"), [("", None), ("key-of-mine", "Bearer key-of-mine")])
def test_no_other_server_is_sent_what_is_openais(
    monkeypatch: pytest.MonkeyPatch, key: str, sent: str | None
) -> None:
    for name, value in OF_OPENAI.items():
        monkeypatch.setenv(name, value)
    config = {"api_key_env": "MINE"} if key else {}
    with ModelServer() as server:
        asked("openai-compatible/m", {"MINE": key}, base_url=server.base_url, client="sdk", **config)
        (headers,) = server.headers
        assert headers.get("authorization") == sent
        assert "AsyncOpenAI" in headers["user-agent"]
        assert not {"openai-organization", "openai-project", "x-gateway-key"} & headers.keys()


def test_openai_is_sent_the_organization(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-openai")
    with ModelServer() as server:
        environ = {"OPENAI_API_KEY": "sk-of-openai-0123456789", "OPENAI_BASE_URL": server.base_url}
        asked("openai/m", environ, client="sdk")
        assert server.headers[0]["openai-organization"] == "org-of-openai"


def test_a_key_does_not_follow_a_redirect() -> None:
    with ModelServer() as other:
        moved = respond("", status=307, headers={"Location": f"{other.base_url}/chat/completions"})
        with (
            LocalServer(moved) as server,
            pytest.raises(InfrastructureError, match="redirects are not followed"),
        ):
            asked("openai-compatible/m", {}, base_url=f"{server.address}/v1", client="sdk")
        assert not other.asked


def test_a_query_of_the_address_is_kept() -> None:
    with ModelServer() as server:
        url = f"{server.base_url}?tenant=a&api-version=2"
        asked("openai-compatible/m", {}, base_url=url, client="sdk")
        assert server.paths == ["/v1/chat/completions?tenant=a&api-version=2"]


def test_half_a_character_is_no_reason_not_to_ask() -> None:
    """Records may hold lone surrogates, which UTF-8 does not; the package writes nothing else."""
    request = replace(REQUEST, prompt="It said \ud83d, and 😀.")
    with ModelServer() as server:
        asked("openai-compatible/m", {}, request, base_url=server.base_url, client="sdk")
        assert "It said ?, and 😀." in server.asked[0]["messages"][1]["content"]


def test_a_reply_without_end_is_cut_off() -> None:
    endless = respond(b" " * 2**20 * 11, headers={"Content-Type": "application/json"})
    with LocalServer(endless) as server:
        failed = Bench(f"{server.address}/v1", client="sdk").fail()
        assert "the reply is larger than 10 MiB" in str(failed)


@pytest.mark.parametrize("model", ["local/m.gguf", "scripted/replies.yaml"])
def test_models_in_this_process_have_no_client(model: str) -> None:
    with pytest.raises(ValueError, match="do not support `client`"):
        ModelConfig(model=model, client="sdk")


def test_azure_has_but_one_client() -> None:
    assert ModelConfig(model=AZURE, client="sdk").is_by_sdk
    with pytest.raises(ValueError, match="remove `client`"):
        ModelConfig(model=AZURE, client="http")


# ── secrets, and what is loaded ──────────────────────────────────────────────────────────────────


def test_keys_of_azure_and_in_addresses_are_secrets() -> None:
    environ = {
        "AZURE_OPENAI_API_KEY": "azure-key-1",
        "AZURE_OPENAI_AD_TOKEN": "azure-token-1",
        "AZURE_OPENAI_ENDPOINT": "https://me:word-1@host/?api-version=2024-10-21&sig=signature-1",
        "OPENAI_CUSTOM_HEADERS": "X-Api-Key: custom-1\nX-Team: green",
    }
    found = {"azure-key-1", "azure-token-1", "word-1", "signature-1", "custom-1"}
    assert set(keys_of((), environ)) == found


@pytest.mark.parametrize(("client", "is_loaded"), [("http", False), ("sdk", True)])
def test_the_package_is_loaded_by_who_asks_for_it(client: str, is_loaded: bool) -> None:
    code = f"""
import sys
from pathlib import Path
from agenteval.adapters.models import ModelResources, make_model
from agenteval.adapters.models.capabilities import Capabilities
from agenteval.adapters.models.pool import ModelPool
from agenteval.core.config import ModelConfig
config = ModelConfig(model="openai-compatible/m", base_url="http://127.0.0.1:1/v1", client="{client}")
shared = ModelResources(ModelPool(1), Capabilities(), print)
make_model(config, role="judge", shared=shared, environ={{}}, root=Path())
print("openai" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(is_loaded)
