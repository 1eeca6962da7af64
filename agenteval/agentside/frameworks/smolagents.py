"""Run a smolagents ``ToolCallingAgent``, ``CodeAgent`` or other ``MultiStepAgent``, along with its managed
agents.

Each conversation has copies of the agents, with their own memory, state and interpreter. A turn runs in a
thread, because the framework is synchronous."""

from __future__ import annotations

import ast
import asyncio
import copy
import json
import threading
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, NamedTuple

from ..hooks.smolagents import FINAL_ANSWER_TOOL
from ..transcript import ToolCall, Transcript
from .call_marks import pair_by_name
from .seam import (
    LATER,
    MORE,
    Refused,
    Tool,
    adds_code,
    kinds,
    may_reach,
    unsupported_version_error,
    walk_tree,
    with_partial,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..world import World

    Message = dict[str, Any]

_AGENT = "smolagents.agents.MultiStepAgent"
_LOCAL = "smolagents.local_python_executor.LocalPythonExecutor"
_QUIET = -1
_NO_TYPES = ("any", "image", "audio")
"""The input types of smolagents that do not exist in JSON Schema."""


class _Smolagents:
    name = "smolagents"
    package = "smolagents"
    supports = "1.21 to 1.26"

    def matches(self, obj: Any) -> bool:
        return _AGENT in kinds(obj)

    def tools(self, obj: Any) -> list[Tool]:
        found: dict[str, Tool] = {}
        for agent in _all_agents(obj):
            for name, tool in {**agent.tools, **getattr(agent, "managed_agents", {})}.items():
                if name != FINAL_ANSWER_TOOL:
                    found.setdefault(name, Tool(name, str(tool.description), _schema(tool)))
                if may_reach(getattr(tool, "forward", None), FRAMEWORK.matches, "smolagents"):
                    found.setdefault(MORE.name, MORE)  # the tools of an agent that the function runs
        return list(found.values())

    def runs_own_code(self, obj: Any) -> bool:
        agents = _all_agents(obj)
        final = [agent.tools[FINAL_ANSWER_TOOL] for agent in agents if FINAL_ANSWER_TOOL in agent.tools]
        return any(adds_code(each, "smolagents") for each in (*agents, *final))

    def open(self, obj: Any, world: World, session: str, deps: Any) -> SmolagentsConversation:
        for agent in _all_agents(obj):
            self._require(agent)
        if deps is not None and deps is not LATER and not isinstance(deps, dict):
            what = (
                f"`deps` must return a dict (the `additional_args`) for a smolagents agent, not"
                f" {type(deps).__name__}"
            )
            raise Refused(what, 'return {"name": value}')
        return SmolagentsConversation(obj, world, deps)

    def _require(self, agent: Any) -> None:
        for name in ("tools", "managed_agents", "memory", "monitor", "step_callbacks", "state"):
            if not hasattr(agent, name):
                raise unsupported_version_error(self, f"MultiStepAgent.{name}")
        executor = getattr(agent, "python_executor", None)
        if executor is not None and _LOCAL not in kinds(executor):
            what = f"the agent's code and tools run in a {type(executor).__name__}"
            raise Refused(f"{what}, where a scenario cannot mock them", 'use executor_type="local" in tests')


FRAMEWORK = _Smolagents()


def _all_agents(agent: Any) -> list[Any]:
    return list(walk_tree(agent, lambda each: getattr(each, "managed_agents", {}).values()))


def _schema(tool: Any) -> Message:
    def property_of(declared: Message) -> Message:
        return {key: value for key, value in declared.items() if key != "nullable" and value not in _NO_TYPES}

    return {
        "type": "object",
        "properties": {name: property_of(each) for name, each in tool.inputs.items()},
        "required": [name for name, each in tool.inputs.items() if not each.get("nullable")],
    }


class _AnsweredCall(NamedTuple):
    """An answered call, and the step that contains the call."""

    step: int
    name: str
    args: Message
    result: str


class _TranscriptCall(NamedTuple):
    """A call in the messages, with its result."""

    call: ToolCall
    result: str
    is_refused: bool = False
    """True if the call did not invoke a tool."""


class SmolagentsConversation:
    def __init__(self, agent: Any, world: World, deps: Any) -> None:
        self._world = world
        self._deps = deps
        self._copies: dict[int, Any] = {}
        self._calls: list[_AnsweredCall] = []
        self._usages: list[Any] = []
        self._imported: dict[str, None] = {}
        self._is_first = True
        self._agent = self._copy(agent)

    async def reply(self, text: str) -> dict[str, Any]:
        self._calls, self._usages = [], []
        options: dict[str, Any] = {"reset": self._is_first}
        if self._is_first and self._deps:
            options["additional_args"] = self._deps
        known = [] if self._is_first else list(self._agent.memory.steps)
        self._is_first = False
        try:
            output = await _in_thread(lambda: self._agent.run(text, **options))
        except asyncio.CancelledError:
            self._agent.interrupt()  # it stops after its step, because a thread cannot be killed
            raise
        except Exception as error:
            with_partial(error, self._transcript(known).to_openai(), self._usage())
            raise
        transcript = self._transcript(known)
        transcript.answer(_text(output))
        return {"messages": transcript.to_openai(), "usage": self._usage(), "agent": self._agent.name}

    async def close(self) -> None:
        return

    # ── copies

    def _copy(self, agent: Any) -> Any:
        if id(agent) in self._copies:
            return self._copies[id(agent)]
        new = self._copies[id(agent)] = copy.copy(agent)
        new.logger = copy.copy(agent.logger)
        new.logger.level = _QUIET  # it would write to standard output, which is for the report
        new.memory = type(agent.memory)(agent.memory.system_prompt.system_prompt)
        new.monitor = type(agent.monitor)(agent.model, new.logger)
        new.step_callbacks = self._callbacks(agent, new)
        new.state = dict(agent.state)
        new.stream_outputs = new.return_full_result = False
        new.managed_agents = {name: self._copy(each) for name, each in agent.managed_agents.items()}
        if getattr(agent, "python_executor", None) is not None:
            new.python_executor = _fresh_executor(agent.python_executor)
        return new

    def _callbacks(self, agent: Any, new: Any) -> Any:
        """Return the agent's callbacks. The copy's monitor replaces the original's monitor, and an additional
        callback records the calls and usage of each step."""

        def rebind(callback: Any) -> Any:
            return (
                new.monitor.update_metrics if getattr(callback, "__self__", 0) is agent.monitor else callback
            )

        def metered(step: Any, *_: Any, **__: Any) -> None:
            if new is self._agent:
                self._collect_calls()
            if getattr(step, "token_usage", None) is not None:
                self._usages.append(step.token_usage)
            if code := getattr(step, "code_action", None):
                self._note_imports(code)

        listed = agent.step_callbacks
        if isinstance(listed, list):
            return [*map(rebind, listed), metered]
        from smolagents.memory import ActionStep, PlanningStep

        registry = copy.copy(listed)
        registry._callbacks = {kind: [*map(rebind, each)] for kind, each in listed._callbacks.items()}
        registry.register(ActionStep, metered)
        registry.register(PlanningStep, metered)
        return registry

    def _collect_calls(self) -> None:
        """Store the calls of the current step. Calls made by managed agents are excluded, because they are
        nested in another call."""
        step = self._agent.step_number
        done = [each for each in self._world.take_answered_calls() if not each.is_inner]
        self._calls += [_AnsweredCall(step, each.name, each.args, str(each.result)) for each in done]

    def _note_imports(self, code: str) -> None:
        """Note the modules that code imports. The code may call these modules, and later steps can still use
        them. Modules that the framework always allows are not noted, because they have no external effects.
        """
        from smolagents.utils import BASE_BUILTIN_MODULES

        new = (each for each in _imports_of(code) if each.partition(".")[0] not in BASE_BUILTIN_MODULES)
        self._imported.update(dict.fromkeys(new))
        for name in self._imported:
            what = f"code written by the agent imported '{name}', and its calls there are not recorded"
            self._world.note_unseen_calls(what)

    # ── results

    def _usage(self) -> dict[str, int] | None:
        if not self._usages:
            return None
        return {
            "requests": len(self._usages),
            "input_tokens": sum(each.input_tokens for each in self._usages),
            "output_tokens": sum(each.output_tokens for each in self._usages),
        }

    def _transcript(self, known: list[Any]) -> Transcript:
        self._collect_calls()
        transcript = Transcript()
        for step in self._agent.memory.steps:
            if not any(step is each for each in known) and type(step).__name__ == "ActionStep":
                self._write(transcript, step)
        return transcript

    def _write(self, transcript: Transcript, step: Any) -> None:
        calls = [each for each in self._calls if each.step == step.step_number]
        runs_code = getattr(step, "code_action", None) is not None or hasattr(self._agent, "python_executor")
        made = _made_by_code(calls) if runs_code else _made_by_model(step, calls)
        text = step.model_output if isinstance(step.model_output, str) else None
        if made or text:
            transcript.answer(text or None, [each.call for each in made])
        for each in made:
            transcript.result(each.call.id, each.result, error=each.is_refused)


def _made_by_code(calls: list[_AnsweredCall]) -> list[_TranscriptCall]:
    """Return the calls made by the code of a ``CodeAgent``. Only the world knows these calls, because the
    step does not list them."""
    return [
        _TranscriptCall(ToolCall(f"call_{each.step}_{at}", each.name, each.args), each.result)
        for at, each in enumerate(calls)
    ]


def _made_by_model(step: Any, calls: list[_AnsweredCall]) -> list[_TranscriptCall]:
    """Return the calls that the model requested, with the arguments that reached their tools."""
    listed = getattr(step.model_output_message, "tool_calls", None) or ()
    requested = [
        ToolCall(str(each.id), each.function.name, each.function.arguments)
        for each in listed
        if each.function.name != FINAL_ANSWER_TOOL
    ]
    wanted = [(each.name, each.arguments) for each in requested]
    done = pair_by_name(wanted, [(each.name, each.args, each) for each in calls])
    return [_to_transcript_call(call, done[at], step) for at, call in enumerate(requested)]


def _to_transcript_call(call: ToolCall, answered: _AnsweredCall | None, step: Any) -> _TranscriptCall:
    if answered is None:
        return _TranscriptCall(call, _result_in(step), is_refused=True)
    return _TranscriptCall(call._replace(arguments=answered.args), answered.result)


def _result_in(step: Any) -> str:
    return str(step.error or "") or str(step.observations or "")


def _imports_of(code: str) -> list[str]:
    """Return the modules that code imports."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError):
        return []  # invalid code did not run
    plain = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    return [*plain, *(node.module or "" for node in nodes if isinstance(node, ast.ImportFrom))]


def _fresh_executor(executor: Any) -> Any:
    new = copy.copy(executor)
    new.state = {"__name__": "__main__"}
    new.custom_tools = {}
    new.static_tools = None
    return new


def _text(output: Any) -> str:
    if isinstance(output, (dict, list)):
        return json.dumps(output, ensure_ascii=False, default=str)
    return str(output)


async def _in_thread(run: Callable[[], Any]) -> Any:
    """Run a function in a separate thread. In a thread pool, waiting turns would block the work that they are
    waiting for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def set_outcome(error: BaseException | None, value: Any) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def work() -> None:
        try:
            outcome = (None, context.run(run))
        except BaseException as error:
            outcome = (error, None)  # type: ignore[assignment]
        try:
            loop.call_soon_threadsafe(set_outcome, *outcome)
        except RuntimeError:  # the loop is closed: the run is over
            return

    threading.Thread(target=work, daemon=True, name="agenteval-smolagents").start()
    return await done
