"""Record the event stream of a turn: the states of the graph and its subgraphs after each step, and the
updates written by each node.

Messages are distinguished by id. A state that shrinks, for example because of a summary, therefore neither
hides nor repeats any message."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..call_marks import iter_calls
from .encoder import (
    MessageEncoder,
    RecordedMessage,
    answered_call_ids,
    describe_unread,
    get_field,
    iter_keyed_messages,
    message_kind,
    server_calls,
    text_of,
    to_json_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .graph import GraphNames

_INTERRUPT = "__interrupt__"


class StreamRecorder:
    """A recorder for one turn. ``seen`` contains the keys of the conversation's earlier messages. ``user`` is
    the id of the message that begins the turn."""

    def __init__(self, seen: set[Any], user: Any, names: GraphNames) -> None:
        self._seen = seen
        self._user = user
        self._names = names
        self._encoder = MessageEncoder(user, names.internal)
        self._recorded: dict[Any, RecordedMessage] = {}
        self._by_library: set[str] = set()
        self.unread: dict[str, None] = {}
        self._wrote: set[str] = set()
        self._last: Any = None
        self._structured: Any = None
        self.state: dict[str, Any] = {}
        self.waits = ""

    # ── the stream

    def record_event(self, namespace: tuple[str, ...], mode: str, data: Any) -> None:
        """Record an event: the ``values`` of a state, or the ``updates`` written by nodes."""
        if mode == "values":
            self._record_state(namespace, data)
        elif isinstance(data, dict):
            for node, written in data.items():
                self._record_update(namespace, node, written)

    def _record_state(self, namespace: tuple[str, ...], data: Any) -> None:
        state = data if isinstance(data, dict) else getattr(data, "__dict__", {})
        messages = state.get("messages")
        listed = messages if isinstance(messages, (list, tuple)) else [messages] if messages else []
        if not namespace:
            self.state = {key: value for key, value in state.items() if key != _INTERRUPT}
        of_turn = [
            (key, message)
            for key, message in iter_keyed_messages(listed)
            if key not in self._seen or key in self._recorded
        ]
        agent = self._agent_at(namespace)
        for key, message in of_turn:
            self._record(key, RecordedMessage(message, agent, is_of_graph=not namespace))
        if not namespace and of_turn:
            self._last = of_turn[-1][0]

    def _record(self, key: Any, new: RecordedMessage) -> None:
        """Record a message. A message that was already recorded in a subgraph remains attributed to that
        subgraph's agent."""
        before = self._recorded.get(key)
        if before is not None:
            new = new._replace(agent=before.agent, is_of_graph=before.is_of_graph or new.is_of_graph)
        self._recorded[key] = new
        self._seen.add(key)
        if message_kind(new.message) == "ai":
            self.unread.update(dict.fromkeys(describe_unread(new.message)))

    def _agent_at(self, namespace: tuple[str, ...]) -> str:
        """Return the innermost node that is an agent."""
        names = [part.partition(":")[0] for each in namespace for part in each.split("|")]
        return next((name for name in reversed(names) if name in self._names.agents), "")

    def _record_update(self, namespace: tuple[str, ...], node: str, written: Any) -> None:
        if node == _INTERRUPT:
            self.waits = _waits_for(written)
            return
        for each in written if isinstance(written, (list, tuple)) else (written,):
            if isinstance(each, dict):
                self._record_written(namespace, each)
            if node not in self._names.own_nodes:
                self._by_library |= answered_call_ids(each)

    def _record_written(self, namespace: tuple[str, ...], written: dict[str, Any]) -> None:
        if not namespace:
            self._wrote |= {key for key, value in written.items() if value is not None}
            if written.get("structured_response") is not None:
                self._structured = written["structured_response"]
        messages = written.get("messages")
        if isinstance(messages, list) and ("structured_response" in written or self._is_structured):
            self._hide_answered(messages)

    @property
    def _is_structured(self) -> bool:
        return "structured_response" in self.state

    def _hide_answered(self, messages: list[Any]) -> None:
        """Hide calls that a node lists together with their results, because these calls did not invoke a
        tool. A LangChain agent records a model's structured answer in this form."""
        answered = {getattr(each, "tool_call_id", None) for each in messages}
        for call in (call for each in messages for call in getattr(each, "tool_calls", None) or ()):
            if call["id"] in answered and call["name"] not in self._names.tools:
                self._encoder.hide(call["id"])

    # ── results

    def messages(self) -> list[dict[str, Any]]:
        """Return the turn's messages in OpenAI's format."""
        return self._encoder.encode(self._recorded.values()).to_openai()

    def answer(self) -> list[dict[str, Any]]:
        """Return the turn's messages, ending with the graph's answer."""
        transcript = self._encoder.encode(self._recorded.values())
        listed = transcript.to_openai()
        if self._structured is not None:
            text = to_json_text(self._structured)
            if not listed or not _is_same_json(listed[-1].get("content"), text):
                transcript.answer(text)
            return transcript.to_openai()
        last = self._recorded.get(self._last)
        if last is not None and message_kind(last.message) != "ai" and self._last != self._user:
            transcript.answer(text_of(get_field(last.message, "content")))
        elif all(each["role"] != "assistant" for each in listed):
            wrote = ", ".join(sorted(self._wrote - {"messages"}))
            others = f" (only to {wrote})" if wrote else ""
            raise RuntimeError("the graph added nothing to `messages`" + others)
        return transcript.to_openai()

    def usage(self) -> Any:
        reported = [get_field(each.message, "usage_metadata") for each in self._recorded.values()]
        return [each for each in reported if isinstance(each, dict) and each] or None

    def external_call_ids(self, messages: list[dict[str, Any]]) -> set[Any]:
        """Return the ids of calls that ran on the provider's servers or that may have been run by a node with
        the author's code.

        Whether a call reached a tool or was refused is known only for calls that the library answers."""
        hosted = {call.id for each in self._recorded.values() for call in server_calls(each.message)}
        if not self._names.own_nodes:
            return hosted
        called = {call.get("id") for each in messages for call in each.get("tool_calls") or ()}
        return (called - self._by_library) | hosted

    def unknown_tool_names(self, messages: list[dict[str, Any]]) -> set[str]:
        """Return the hallucinated tool names, which the library looked up but did not find."""
        failed = {each["tool_call_id"] for each in messages if each.get("status") == "error"}
        refused = {call["id"]: call["function"]["name"] for call in iter_calls(messages)}
        return {refused[each] for each in failed & self._by_library & {*refused}} - self._names.tools


def _waits_for(interrupts: Iterable[Any] | None) -> str:
    value = next((each.value for each in interrupts or ()), None)
    wanted = value.get("action_requests") if isinstance(value, dict) else None
    if isinstance(wanted, list) and wanted:  # from the approval middleware
        shown = f"approval of {', '.join(str(each.get('name')) for each in wanted)}"
    else:
        shown = "a breakpoint" if value is None else f"interrupt: {_short(value)}"
    return f"the agent is waiting for human input ({shown}), which agenteval does not support yet"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else to_json_text(value)
    return text if len(text) <= 120 else text[:119] + "…"


def _is_same_json(text: Any, other: str) -> bool:
    try:
        return bool(json.loads(text) == json.loads(other))
    except (TypeError, ValueError):
        return False


def new_meter() -> Any:
    """Return a callback that counts the tokens used by all models in the graph and its subgraphs, including
    models of agents whose messages never reach the graph."""
    from langchain_core.callbacks import BaseCallbackHandler

    class Meter(BaseCallbackHandler):  # type: ignore[misc]
        run_inline = True

        def __init__(self) -> None:
            self._reported: list[dict[str, Any]] = []

        def on_llm_end(self, response: Any, **_: Any) -> None:
            generation = next((each for row in response.generations for each in row), None)
            usage = getattr(getattr(generation, "message", None), "usage_metadata", None)
            usage = usage or (response.llm_output or {}).get("token_usage")
            if isinstance(usage, dict) and usage:
                self._reported.append(usage)

        def usage(self) -> Any:
            return self._reported or None

    return Meter()
