"""Projects whose judges and users are asked on a real local server: what they say is fixed, and counted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.kit import Project
from tests.support.local_servers import completion
from tests.support.model_servers import Json, ModelServer, Play, Reply, schema_in

MODEL = "openai-compatible/m"
KEY = {"MODEL_KEY": "key-of-the-model-123456"}


def content(asked: Json) -> Json:
    """Whatever is asked, nothing is wrong; a user says where it is, and is done with its second message."""
    schema = schema_in(asked)
    fields = schema["properties"]
    if "done" in fields:
        said = json.dumps(asked["messages"]).count("The agent said")
        return {"message": f"My message number {said + 1}, please.", "done": said >= 1, "reason": "r"}
    if "issues" in fields:
        return {"issues": []}
    if "label" in fields:
        good = [label for label in ("no failure", "pass", "as it should") if label in fields["label"]["enum"]]
        return {"evidence": "", "reason": "fine", "label": good[0], "violations": [], "explains": False}
    if "outcome" in fields:
        return {"evidence": "", "reason": "fine", "outcome": "reached"}
    scale = fields["score"]["anyOf"][0]
    return {"evidence": "", "reason": "fine", "score": scale["maximum"]}


def contented(**usage: Any) -> Play:
    """A model that finds nothing wrong. ``usage``: over 100 tokens in and 10 out."""

    def play(asked: Json) -> Reply:
        body = completion(json.dumps(content(asked)))
        told = {"prompt_tokens": 100, "completion_tokens": 10, **usage}
        return Reply({**body, "usage": told})

    return play


def role_of(asked: Json) -> str:
    fields = schema_in(asked)["properties"]
    return "user" if "done" in fields else "dedup" if "issues" in fields else "judge"


def counted(server: ModelServer) -> dict[str, int]:
    """How many requests the server was sent, by role."""
    roles = [role_of(asked) for asked in server.asked]
    return {role: roles.count(role) for role in dict.fromkeys(roles)}


def model_config(server: ModelServer, more: str = "") -> str:
    entry = f"{{model: {MODEL}, base_url: '{server.base_url}', api_key_env: MODEL_KEY}}"
    return f"models: {{default: {entry}}}\n{more}"


AGENT = """
def agent(messages, ctx):
    if ctx.tools or ctx.scenario_id.startswith("tools"):
        return f"It is {ctx.call_tool_sync('look', {'q': ctx.turn})}."
    return f"Answer number {ctx.turn}."
"""


def judged_project(project: Project, scenarios: Any, config: str, agent: str = AGENT) -> None:
    project.agent(agent)
    project.config(config)
    project.scenarios(json.dumps({"scenarios": scenarios}))


def scenario(name: str, *turns: Any, **more: Any) -> Json:
    written: Json = {"id": name, "name": name, "checks": "none"}
    return {**written, **({"turns": list(turns)} if turns else {}), **more}


def usage_of(project: Project) -> dict[str, Any]:
    usage: dict[str, Any] = project.results()["summary"]["usage"]
    return usage


Run = Callable[..., Any]
