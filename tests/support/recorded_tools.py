"""A shop in plain functions, an agent that calls them, and the files that a recording of it makes."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.support.kit import Done, Project

SHOP = """
import pathlib

ORDERS = {"ORD-1": {"id": "ORD-1", "status": "pending", "total": 25.5},
          "ORD-2": {"id": "ORD-2", "status": "shipped", "total": 8}}

def _log(line):
    with pathlib.Path("REAL").open("a") as file:
        file.write(line + "\\n")

def get_order(id: str, verbose: bool = False):
    _log(f"get_order {id}")
    if id not in ORDERS:
        raise LookupError(f"no order {id}")
    return {**ORDERS[id], **({"items": [{"sku": "A", "qty": 1}]} if verbose else {})}

async def list_orders():
    _log("list_orders")
    return sorted(ORDERS)

def cancel_order(id: str):
    _log(f"cancel_order {id}")
    ORDERS[id] = {**ORDERS[id], "status": "cancelled"}
    return {"ok": True}
"""
AGENT = """
import re
from shop import cancel_order, get_order, list_orders

async def agent(question: str) -> str:
    id = re.search("ORD-[0-9]+", question)[0]
    if "which" in question:
        return ", ".join(await list_orders())
    try:
        order = get_order(id, verbose=True) if "items" in question else get_order(id)
    except (LookupError, RuntimeError) as error:
        return f"I cannot find {id}: {error}"
    if "cancel" in question:
        cancel_order(id)
        return f"{id} is {get_order(id)['status']}"
    return f"{id} is {order['status']}"
"""
CONFIG = """
agent:
  name: bot
  target: agent.py:agent
  intercept:
    get_order: shop.py:get_order
    list_orders: shop.py:list_orders
    cancel_order: shop.py:cancel_order
metrics: []
"""
QUESTIONS = (
    "status of ORD-2",
    "items of ORD-2",
    "which orders besides ORD-1",
    "status of ORD-9",
    "cancel ORD-1",
)


def set_up(project: Project, *questions: str, more: str = "unmocked_tools: passthrough\n") -> None:
    """A project whose agent runs its own tools, with a scenario of one turn per question."""
    project.write("shop.py", SHOP)
    project.agent(AGENT)
    project.write("agenteval.yaml", CONFIG + more)
    turns = json.dumps(list(questions or QUESTIONS))
    project.scenarios(f"id: real\nchecks: none\nturns: {turns}\n")


def recorded(project: Project, name: str = "mocks.yaml") -> dict[str, Any]:
    """The tools of a recorded file."""
    content: dict[str, Any] = yaml.safe_load((project.root / name).read_text("utf-8"))
    tools: dict[str, Any] = content["defaults"]["tools"]
    return tools


def use_recording(project: Project, scenarios: str, name: str = "mocks.yaml") -> None:
    """Make scenarios out of a recorded file, of which the real tools answer none any more."""
    text = (project.root / name).read_text("utf-8")
    project.write("scenarios/suite.yaml", text + f"scenarios: {scenarios}\n")
    project.write("agenteval.yaml", CONFIG)


def real_calls(project: Project) -> list[str]:
    """The calls that reached the real functions."""
    log = project.root / "REAL"
    return log.read_text("utf-8").splitlines() if log.exists() else []


def comments(project: Project, name: str = "mocks.yaml") -> str:
    lines = (project.root / name).read_text("utf-8").splitlines()
    return "\n".join(line for line in lines if line.lstrip().startswith("#"))


def record(project: Project, *arguments: str, name: str = "mocks.yaml") -> Done:
    return project.run("--record-tools", name, *arguments)
