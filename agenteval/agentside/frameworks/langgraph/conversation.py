"""Run one conversation with a copy of a graph.

If the graph has a checkpointer, the copy has a separate checkpointer. Otherwise, the state is carried over
from turn to turn. The copy also has its own store and cache."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import uuid
from typing import TYPE_CHECKING, Any, NamedTuple

from ..call_marks import restore_arguments
from ..seam import LATER, Refused, Waits, with_partial
from .graph import has_no_async, input_keys, is_instance, needs_store
from .recorder import StreamRecorder, new_meter

if TYPE_CHECKING:
    from ...world import World
    from .graph import GraphNames


class GraphRunOptions(NamedTuple):
    """The context and configuration that are passed to a graph along with its input."""

    context: Any = None
    config: dict[str, Any] = {}


def run_options(graph: Any, deps: Any) -> GraphRunOptions:
    """Return ``deps`` as the graph's context, and also as its configuration for graphs that read their
    dependencies from the configuration. Raise ``Refused`` if ``deps`` fits neither."""
    schema = getattr(graph, "context_schema", None)
    if deps is LATER:
        return GraphRunOptions()
    if deps is None:
        return GraphRunOptions(_context_of_defaults(schema))
    config: dict[str, Any] = {}
    if isinstance(deps, dict):
        config = deps if "configurable" in deps else {"configurable": deps}
    if schema is not None:
        return GraphRunOptions(None if "configurable" in config and config is deps else deps, config)
    if not config:
        what = f"`deps` returned {type(deps).__name__}, but the graph has no `context_schema`"
        raise Refused(what, "return a dict, which is passed as `configurable`")
    return GraphRunOptions(None, config)


def _context_of_defaults(schema: Any) -> Any:
    """Return a context built from default values. Return ``None`` if the context type is a mapping, because
    such a graph can run without a context. Raise ``Refused`` if a field has no default."""
    if dataclasses.is_dataclass(schema):
        missing = dataclasses.MISSING
        fields = [each for each in dataclasses.fields(schema) if each.init]
        needed = [each.name for each in fields if each.default is missing and each.default_factory is missing]
    elif isinstance(getattr(schema, "model_fields", None), dict):
        needed = [name for name, field in schema.model_fields.items() if field.is_required()]
    else:
        return None
    if needed:
        what = f"the graph needs a context of type {schema.__name__} ({', '.join(needed)})"
        raise Refused(what, "set `target: {object: …, deps: FILE.py:FUNCTION}` to a function that creates it")
    return schema()


class LangGraphConversation:
    def __init__(
        self, graph: Any, world: World, session: str, options: GraphRunOptions, names: GraphNames
    ) -> None:
        self._world = world
        self._options = options
        self._names = names
        self._thread = session or uuid.uuid4().hex
        self._graph = copy.copy(graph)
        self._keeps_state = graph.checkpointer is not None and graph.checkpointer is not False
        if self._keeps_state:
            self._graph.checkpointer = _in_memory_saver(graph.checkpointer)
        self._graph.store = _store_for(graph)
        if getattr(graph, "cache", None) is not None:
            self._graph.cache = None
        self._is_sync = has_no_async(graph)
        self._seen: set[Any] = set()
        self._state: dict[str, Any] = {}
        self._earlier: list[Any] = []
        self._input_keys = input_keys(graph)

    async def close(self) -> None:
        """Do nothing, because everything that a run starts ends with that run."""

    def load_history(self, messages: list[dict[str, Any]]) -> None:
        from langchain_core.messages import convert_to_messages

        self._earlier = convert_to_messages(messages)
        for each in self._earlier:
            each.id = str(uuid.uuid4())
            self._seen.add(each.id)

    async def reply(self, text: str) -> dict[str, Any]:
        from langchain_core.messages import HumanMessage

        message = HumanMessage(content=text, id=str(uuid.uuid4()))
        turn = StreamRecorder(self._seen, message.id, self._names)
        meter = new_meter()
        try:
            await self._play(self._input(message), self._config(meter), turn)
        except Exception as error:
            with_partial(error, **self._reply(turn, turn.messages(), meter))
            raise
        self._state = turn.state
        if turn.waits:
            waits = Waits(turn.waits)
            with_partial(waits, **self._reply(turn, turn.messages(), meter))
            raise waits
        return self._reply(turn, turn.answer(), meter)

    def _reply(self, turn: StreamRecorder, messages: list[dict[str, Any]], meter: Any) -> dict[str, Any]:
        for what in turn.unread:
            self._world.note_unseen_calls(what)
        without_ids = [each for each in self._world.calls_so_far if not each.call_id]
        if without_ids:  # an author's node passes on no id, and may add arguments of its own
            messages, _ = restore_arguments(messages, without_ids)
        return {
            "messages": messages,
            "usage": meter.usage() or turn.usage(),
            "elsewhere": turn.external_call_ids(messages),
            "unknown": turn.unknown_tool_names(messages),
        }

    def _input(self, message: Any) -> dict[str, Any]:
        earlier, self._earlier = self._earlier, []
        if self._keeps_state:
            return {"messages": [*earlier, message]}
        kept = {key: value for key, value in self._state.items() if key in self._input_keys}
        return {**kept, "messages": [*earlier, *(kept.get("messages") or ()), message]}

    def _config(self, meter: Any) -> Any:
        from langchain_core.runnables.config import merge_configs

        own_config: Any = {"configurable": {"thread_id": self._thread}, "callbacks": [meter]}
        author_config: Any = self._options.config
        return merge_configs(getattr(self._graph, "config", None), author_config, own_config)

    async def _play(self, graph_input: Any, config: Any, turn: StreamRecorder) -> None:
        options: dict[str, Any] = {"stream_mode": ["values", "updates"], "subgraphs": True}
        if self._options.context is not None:
            options["context"] = self._options.context
        if self._is_sync:

            def played() -> None:
                for event in self._graph.stream(graph_input, config, **options):
                    turn.record_event(*event)

            await asyncio.to_thread(played)
            return
        stream = self._graph.astream(graph_input, config, **options)
        try:
            async for event in stream:
                turn.record_event(*event)
        finally:
            await stream.aclose()


# ── replacements for the graph's own checkpointer and store ──────────────────────────────────────


def _in_memory_saver(saver: Any) -> Any:
    """Return an in-memory checkpointer with the same serializer as the graph's checkpointer."""
    from langgraph.checkpoint.memory import InMemorySaver

    serde = getattr(saver, "serde", None)
    return InMemorySaver(serde=serde) if serde is not None else InMemorySaver()


def _store_for(graph: Any) -> Any:
    """Return a copy of the graph's store if the store is in memory. A database is the author's choice and is
    returned unchanged. A graph that requires a store but has none is given a new store, as on the LangGraph
    platform."""
    from langgraph.store.memory import InMemoryStore

    store = getattr(graph, "store", None)
    if store is None and needs_store(graph):
        return InMemoryStore()
    if not is_instance(store, "langgraph.store.memory", "InMemoryStore"):
        return store
    try:
        return copy.deepcopy(store)
    except Exception:  # it may contain a client, for embeddings
        return store
