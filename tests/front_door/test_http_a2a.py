"""Agents that speak A2A: exchanges as the servers of a2a-sdk 1.3.0 and 0.3.26 answer, played back."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.agent_servers import okay
from tests.support.kit import Project
from tests.support.local_servers import Behaviour, LocalServer, Request, respond, respond_json

CONFIG = "agent: {{endpoint: '{url}/', api: a2a, timeout_s: 5, poll: {{every_s: 0.01}}}}\nmetrics: []\n"
SCENARIO = """
    scenarios:
      - name: orders
        turns:
          - {user: Where is ORD-1?, expect: {output: {contains: [ORD-1, shipped]}}}
          - {user: And where is ORD-2?, expect: {output: {contains: [ORD-2, shipped]}}}
"""
NO_METHOD = {"code": -32601, "message": "Method not found"}


class Server:
    """A shop's agent with tasks, which are done when they are asked for the second time."""

    def __init__(self, version: str, *, has_bug: bool = False) -> None:
        self.is_new = version == "1.0"
        self.has_bug = has_bug
        self.tasks: dict[str, dict[str, Any]] = {}
        self.heard: list[tuple[str, str]] = []

    def __call__(self, request: Request) -> Behaviour:
        asked = request.json
        assert asked["jsonrpc"] == "2.0"
        send, get = ("SendMessage", "GetTask") if self.is_new else ("message/send", "tasks/get")
        if asked["method"] not in (send, get):
            return okay({"error": NO_METHOD, "id": asked["id"], "jsonrpc": "2.0"})
        assert request.headers["a2a-version"] == ("1.0" if self.is_new else "0.3")
        result = (self.sent if asked["method"] == send else self.got)(asked["params"])
        return okay({"result": result, "id": asked["id"], "jsonrpc": "2.0"})

    def sent(self, params: dict[str, Any]) -> dict[str, Any]:
        message = params["message"]
        (part,) = message["parts"]
        assert message["role"] == ("ROLE_USER" if self.is_new else "user")
        assert part == ({"text": part["text"]} if self.is_new else {"kind": "text", "text": part["text"]})
        context = message.get("contextId", "c-1")
        self.heard.append((message.get("contextId", ""), part["text"]))
        order = "ORD-1" if self.has_bug else part["text"].split()[-1].strip("?")
        task = {
            "id": f"t-{len(self.heard)}",
            "contextId": context,
            "status": {"state": self.state("submitted")},
            "history": [message],
        }
        self.tasks[task["id"]] = {**task, "text": f"Your order {order} is shipped."}
        return {"task": task} if self.is_new else {**task, "kind": "task"}

    def got(self, params: dict[str, Any]) -> dict[str, Any]:
        task = self.tasks[params["id"]]
        polled = task["polled"] = task.get("polled", 0) + 1
        kept = {key: task[key] for key in ("id", "contextId", "history")}
        if polled < 2:
            return {**kept, "status": {"state": self.state("working")}}
        part = {"text": task["text"]} | ({} if self.is_new else {"kind": "text"})
        artifact = {"artifactId": "a", "name": "answer", "parts": [part]}
        return {**kept, "status": {"state": self.state("completed")}, "artifacts": [artifact]}

    def state(self, name: str) -> str:
        return f"TASK_STATE_{name.upper()}" if self.is_new else name


@pytest.mark.parametrize("has_bug", [True, False], ids=["bug", "fix"])
@pytest.mark.parametrize("version", ["1.0", "0.3"])
def test_tasks_in_one_context_are_followed(project: Project, version: str, has_bug: bool) -> None:
    shop = Server(version, has_bug=has_bug)
    with LocalServer(lambda wire: shop(wire.request)(wire)) as server:
        project.write("agenteval.yaml", CONFIG.format(url=server.address))
        project.scenarios(SCENARIO)
        done = project.run()
    assert not server.errors
    assert done.code == (1 if has_bug else 0), done.all
    assert shop.heard == [("", "Where is ORD-1?"), ("c-1", "And where is ORD-2?")]
    turns = project.sample()["turns"]
    assert [all(check["passed"] for check in turn["checks"]) for turn in turns] == [True, not has_bug]
    asked_in_vain = [request for request in server.requests if request.json["method"] == "SendMessage"]
    assert len(asked_in_vain) == (2 if version == "1.0" else 1)  # that it speaks 0.3 is learned once


def message(text: str) -> dict[str, Any]:
    return {"message": {"messageId": "m", "contextId": "c", "role": "ROLE_AGENT", "parts": [{"text": text}]}}


def task(state: str, text: str = "", **more: Any) -> dict[str, Any]:
    said = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": text}]}} if text else {}
    return {"task": {"id": "t", "contextId": "c", "status": {"state": f"TASK_STATE_{state}", **said}, **more}}


def result(value: Any) -> Behaviour:
    return okay({"jsonrpc": "2.0", "id": "1", "result": value})


SAYS_HI = "scenarios: [{name: s, turns: [hi], expect: {output: {contains: [hello]}}}]"
DATA = [{"artifactId": "a", "parts": [{"data": {"greeting": "hello"}}]}]
GOOD = {
    "a message": message("hello"),
    "words of a completed task": task("COMPLETED", "hello"),
    "a task that needs input": task("INPUT_REQUIRED", "hello, which one?"),
    "a task that is declined": task("REJECTED", "hello, but no"),
    "data": task("COMPLETED", artifacts=DATA),
    "history": task("COMPLETED", history=[{"role": "ROLE_AGENT", "parts": [{"text": "hello"}]}]),
}


@pytest.mark.parametrize("case", GOOD)
def test_what_is_an_answer(project: Project, case: str) -> None:
    with LocalServer(result(GOOD[case])) as server:
        project.write("agenteval.yaml", CONFIG.format(url=server.address))
        project.scenarios(SAYS_HI)
        done = project.run()
    assert done.code == 0, done.all


def test_the_answer_to_a_question_of_the_agents_goes_to_its_task(project: Project) -> None:
    with LocalServer(
        result(task("INPUT_REQUIRED", "Which?")), result(message("hello")), result(message("x"))
    ) as server:
        project.write("agenteval.yaml", CONFIG.format(url=server.address))
        project.scenarios(SAYS_HI.replace("[hi]", "[hi, ORD-1, bye]"))
        assert project.run().code == 0
    sent = [request.json["params"]["message"] for request in server.requests]
    assert [each.get("taskId") for each in sent] == [None, "t", None]
    assert [each.get("contextId") for each in sent] == [None, "c", "c"]
    assert len({each["messageId"] for each in sent}) == 3


BAD = {
    "a failed task": (result(task("FAILED", "out of stock")), "the task is failed: out of stock"),
    "a cancelled task": (result(task("CANCELED")), "the task is canceled"),
    "an unknown state": (result(task("DANCING")), "in the state 'dancing'"),
    "an error": (okay({"error": {"code": -32603, "message": "boom"}}), "boom"),
    "neither version": (okay({"error": NO_METHOD}), "Method not found"),
    "no result": (okay({"jsonrpc": "2.0"}), "has no `result`"),
    "nothing in it": (result({"x": 1}), "has neither a message nor a task; there is: x"),
    "not JSON": (respond("hello"), "is not JSON"),
    "a list": (okay([1]), "is not JSON-RPC"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_breaks_is_the_agents_failure(project: Project, case: str) -> None:
    behaviour, says = BAD[case]
    with LocalServer(behaviour) as server:
        project.write("agenteval.yaml", CONFIG.format(url=server.address))
        project.scenarios(SAYS_HI)
        done = project.run()
    sample = project.sample()
    assert (done.code, sample["verdict"], sample["fault"]) == (1, "failed", "agent"), done.all
    assert says in sample["turns"][0]["error"]


def test_missing_credentials_are_not_the_agents_fault(project: Project) -> None:
    with LocalServer(result(task("AUTH_REQUIRED", "log in"))) as server:
        project.write("agenteval.yaml", CONFIG.format(url=server.address))
        project.scenarios(SAYS_HI)
        assert project.run().code == 3
    assert project.sample()["fault"] == "infrastructure"


def test_a_task_that_never_ends_is_a_timeout(project: Project) -> None:
    with LocalServer(respond_json({"result": task("WORKING")}, headers={"Retry-After": "9"})) as server:
        project.write("agenteval.yaml", CONFIG.format(url=server.address))
        project.scenarios(SAYS_HI)
        assert project.run().code == 1
    assert project.sample()["stop"] == "agent_timeout"
    assert "the job is 'working'" in project.sample()["turns"][0]["error"]


def test_calls_of_such_an_agent_are_not_seen(project: Project) -> None:
    with LocalServer(result(message("hello"))) as server:
        project.write("agenteval.yaml", CONFIG.format(url=server.address))
        project.scenarios("""
            scenarios:
              - name: s
                turns: [hi]
                tools: {drop: {returns: 1}}
                expect: {tool_calls: {forbidden: [{name: drop}]}}
        """)
        assert project.run().code == 3
