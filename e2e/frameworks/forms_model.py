"""The model of agents that call one over HTTP: it looks up the orders that the user names. The model called
``hasty`` cancels one, too."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.support.local_servers import completion
from tests.support.model_servers import Reply


def play_order_clerk(request: Mapping[str, Any]) -> Reply:
    messages = request["messages"]
    asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
    since = messages[asked + 1 :]
    calls = [call for message in since for call in message.get("tool_calls") or ()]
    results = {message["tool_call_id"]: message["content"] for message in since if message["role"] == "tool"}
    orders = messages[asked]["content"].split()[1:]
    if not calls:
        return _ask(len(messages), *(("get_order", {"order_id": each}) for each in orders))
    if request["model"] == "hasty" and all(call["function"]["name"] != "cancel_order" for call in calls):
        return _ask(len(messages), ("cancel_order", {"order_id": orders[0]}))
    looked = [call for call in calls if call["function"]["name"] == "get_order"]
    sentences = (_sentence(json.loads(c["function"]["arguments"]), results[c["id"]]) for c in looked)
    return Reply(completion(", ".join(sentences)))


def _ask(count: int, *calls: tuple[str, dict[str, str]]) -> Reply:
    listed = [
        {
            "id": f"call_{count}_{at}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(args)},
        }
        for at, (name, args) in enumerate(calls)
    ]
    return Reply(completion(finish_reason="tool_calls", tool_calls=listed))


def _sentence(args: Mapping[str, str], result: str) -> str:
    found = re.search(r"""status['"]: ?['"]([^'"]+)""", result)
    return f"{args['order_id']} is {found[1]}" if found else f"ERROR: {result}"
