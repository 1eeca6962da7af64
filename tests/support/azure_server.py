"""A real local server with Azure OpenAI's addresses, headers and words."""

from __future__ import annotations

from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.local_servers import Behaviour, LocalServer, Request, answer, respond_json
from tests.support.model_servers import Json, Play, answers

KEY = "azure-key-0123456789abcdef"
VERSION = "2024-10-21"
DEPLOYMENT = "judge-4o"
WRONG_KEY = (
    "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key "
    "for an active subscription and use a correct regional API endpoint for your resource."
)
NO_DEPLOYMENT = (
    "The API deployment for this resource does not exist. If you created the deployment within the last 5 "
    "minutes, please wait a moment and try again."
)


class AzureServer:
    """A resource with one deployment, which answers as ``plays`` do. Who sends ``key`` as ``api-key`` or
    ``token`` as a bearer's is let in. ``asked`` are their bodies; ``address`` is the endpoint."""

    def __init__(self, *plays: Play, key: str = KEY, token: str = "") -> None:
        self._plays = plays or (answers(),)
        self._key = key
        self._token = token
        self.asked: list[Json] = []
        self._server = LocalServer(answer(self._serve))
        self.address = self._server.address

    @property
    def requests(self) -> list[Request]:
        return self._server.requests

    def __enter__(self) -> AzureServer:
        self._server.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.__exit__()
        assert not self._server.errors

    def _serve(self, request: Request) -> Behaviour:
        parts = urlsplit(request.path)
        is_in = request.headers.get("api-key") == self._key
        is_in |= bool(self._token) and request.headers.get("authorization") == f"Bearer {self._token}"
        if not is_in:
            return _error(401, WRONG_KEY)
        if parse_qs(parts.query).get("api-version") != [VERSION]:
            return _error(404, "Resource not found")
        if unquote(parts.path) != f"/openai/deployments/{DEPLOYMENT}/chat/completions":
            return _error(404, NO_DEPLOYMENT, "DeploymentNotFound")
        self.asked.append(request.json)
        return next(reply for play in self._plays if (reply := play(request.json))).behaviour


def _error(status: int, message: str, code: str = "") -> Behaviour:
    return respond_json({"error": {"code": code or str(status), "message": message}}, status=status)
