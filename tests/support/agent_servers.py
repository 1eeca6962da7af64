"""A shop's agent behind APIs of many shapes, right or with a bug, and its own record of its calls."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.support.kit import Project
from tests.support.local_servers import Behaviour, LocalServer, Request, respond_json

SCENARIO = """
    scenarios:
      - name: orders
        tools:
          get_order:
            parameters: {type: object, properties: {id: {type: string}}, required: [id]}
            returns: {id: "${args.id}", status: shipped}
        turns:
          - user: Where is ORD-1?
            expect:
              tool_calls: {match: strict, calls: [{name: get_order, args: {id: ORD-1}}]}
              output: {contains: [ORD-1, shipped]}
          - user: And ORD-2?
            expect:
              tool_calls: {match: strict, calls: [{name: get_order, args: {id: ORD-2}}]}
              output: {contains: [ORD-2, shipped]}
"""
_TOOLS = SCENARIO[SCENARIO.index("        tools:") : SCENARIO.index("        turns:")]
OBSERVED = SCENARIO.replace(_TOOLS, "")
"""For an agent that runs its tools itself."""


class Shop:
    """The model of an agent: it looks up the order that it was asked for. ``has_bug``: in the second turn it
    looks up the first order again. ``made`` is its own record of its calls."""

    def __init__(self, *, has_bug: bool = False) -> None:
        self.has_bug = has_bug
        self.made: list[dict[str, Any]] = []

    def wanted(self, text: str) -> str:
        order = "ORD-2" if "ORD-2" in text else "ORD-1"
        return "ORD-1" if self.has_bug else order

    def call(self, text: str) -> dict[str, Any]:
        """The call that it makes for a message; noted."""
        self.made.append({"name": "get_order", "args": {"id": self.wanted(text)}})
        return self.made[-1]

    def answer(self, result: Any) -> str:
        found = json.loads(result) if isinstance(result, str) else result
        return f"Your order {found['id']} is {found['status']}."


Serve = Callable[[Shop, Request], Behaviour]


def served(shop: Shop, serve: Serve) -> LocalServer:
    return LocalServer(lambda wire: serve(shop, wire.request)(wire))


def calls_of(project: Project) -> list[dict[str, Any]]:
    """The calls that the report lists, as the server would have noted them."""
    turns = project.sample()["turns"]
    return [{"name": c["name"], "args": c["args"]} for turn in turns for c in turn["tool_calls"]]


def played(
    project: Project, serve: Serve, config: str, *, has_bug: bool, scenario: str = SCENARIO
) -> tuple[Shop, LocalServer]:
    """One run against a server; ``{url}`` in the configuration is its address."""
    shop = Shop(has_bug=has_bug)
    with served(shop, serve) as server:
        project.write("agenteval.yaml", config.replace("{url}", server.address) + "\nmetrics: []\n")
        project.scenarios(scenario)
        done = project.run()
    assert not server.errors, server.errors
    assert done.code == (1 if has_bug else 0), done.all
    assert calls_of(project) == shop.made
    sample = project.sample()
    assert [all(c["passed"] for c in turn["checks"]) for turn in sample["turns"]] == [True, not has_bug]
    return shop, server


def okay(value: Any, **headers: str) -> Behaviour:
    return respond_json(value, headers=headers)
