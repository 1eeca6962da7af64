"""A framework for tests, and its adapter: put into a project as ``toy.py``, with an entry point
(``support/toy.py``). It works with the ``frameworks`` of agenteval's process or of the worker's, whichever
imports it.

An agent is a coroutine function ``play(run, text)`` that returns the answer, and real tools, which must not
run unless they are left to the agent. Such an agent can be called, as those of some frameworks can.

A ``Tool`` is a function that the framework made a tool of. It is hooked where it is carried out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_NAMES = ("agenteval.agentside.frameworks", "_agenteval_agentside.frameworks")
frameworks: Any = next((sys.modules[name] for name in _NAMES if name in sys.modules), None)


class Agent:
    def __init__(self, play: Any, *tools: Any, deps_type: Any = None, hosted: tuple[str, ...] = ()) -> None:
        self.play, self.deps_type, self.hosted = play, deps_type, hosted
        self.tools = {tool.__name__: tool for tool in tools}

    def __call__(self, messages: list[Any]) -> str:
        for tool in self.tools.values():
            tool(id="called as a function")
        return "called as a function"

    def run(self, text: str) -> str:
        return self(text)  # type: ignore[arg-type]


class Tool:
    """A tool, as the framework's decorator makes it; ``coroutine`` does the same for code that can await."""

    def __init__(self, func: Any, coroutine: Any = None) -> None:
        self.name = func.__name__
        self.func, self.coroutine = func, coroutine

    def run(self, args: dict[str, Any]) -> Any:
        return self.func(**args)


class Remembers:
    """An agent that keeps what it was asked, as those of some frameworks do."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, text: str) -> str:
        self.asked.append(text)
        return f"asked so far: {', '.join(self.asked)}"


def mark(name: str, told: Any = "ran") -> None:
    """What a real tool leaves behind."""
    with Path("marks").open("a", encoding="utf-8") as marks:
        marks.write(f"{name} {json.dumps(told)}\n")


class Run:
    """What ``play`` gets: one conversation."""

    def __init__(self, agent: Agent, world: Any, deps: Any) -> None:
        self.agent, self.world, self.deps = agent, world, deps
        self.said: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.agent_of_answer: dict[str, str] = {}

    def _own(self, name: str, args: dict[str, Any]) -> Any:
        return self.agent.tools[name](**args)

    async def call(self, name: str, **args: Any) -> Any:
        async def own() -> Any:
            return self._own(name, args)

        return self._listed(name, args, await self.world.call(name, args, own))

    def call_sync(self, name: str, **args: Any) -> Any:
        return self._listed(name, args, self.world.call_sync(name, args, lambda: self._own(name, args)))

    async def below(self, name: str, play: Any, **args: Any) -> Any:
        """Another agent, called as a tool."""

        async def own() -> Any:
            return await play(self, args)

        return await self.world.record(name, args, own)

    def call_nothing(self, name: str) -> None:
        """A call of a tool that there is none of: the framework says so."""
        self._listed(name, {}, frameworks.ToolAnswer(f"no tool {name}", is_error=True))

    def as_agent(self, name: str, answer: str) -> str:
        """The answer, as that of one of several agents."""
        self.agent_of_answer = {"agent": name}
        return answer

    def lost(self, name: str, **args: Any) -> Any:
        """A call of which nobody knows whose it is."""
        raise frameworks.untracked_call_error(name)

    def _listed(self, name: str, args: dict[str, Any], answer: Any) -> Any:
        number = f"call-{len(self.messages)}"
        function = {"name": name, "arguments": json.dumps(args)}
        self.messages += [
            {"role": "assistant", "tool_calls": [{"id": number, "type": "function", "function": function}]},
            {
                "role": "tool",
                "tool_call_id": number,
                "content": answer.text,
                **({"status": "error"} if answer.is_error else {}),
            },
        ]
        return f"failed: {answer.text}" if answer.is_error else answer.value


class Conversation:
    def __init__(self, agent: Agent, world: Any, deps: Any) -> None:
        self.run = Run(agent, world, deps)

    def load_history(self, messages: list[dict[str, Any]]) -> None:
        self.run.said += [each["content"] for each in messages if each["role"] == "user"]

    async def reply(self, text: str) -> dict[str, Any]:
        self.run.messages = []
        self.run.said.append(text)
        try:
            answer = await self.run.agent.play(self.run, text)
        except Exception as error:
            frameworks.with_partial(error, self.run.messages)
            raise
        self.run.messages.append({"role": "assistant", "content": answer, **self.run.agent_of_answer})
        return {"messages": self.run.messages, "usage": {"prompt_tokens": 3, "completion_tokens": 2}}

    async def close(self) -> None:
        if self.run.said:
            mark("closed", self.run.said[0])


class Toy:
    name, package, supports = "Toy", "toy-framework", "1"

    def matches(self, obj: Any) -> bool:
        return f"{__name__}.Agent" in frameworks.kinds(obj)

    def tools(self, obj: Any) -> list[Any]:
        found = [
            frameworks.Tool(name, tool.__doc__ or "", PARAMETERS, hints=frameworks.hints_of(tool))
            for name, tool in obj.tools.items()
        ]
        found += [frameworks.MORE] * hasattr(obj, "more")
        return found + [frameworks.Tool(name, hosted=True) for name in obj.hosted]

    def no_history(self, obj: Any) -> str:
        return "" if hasattr(obj, "continues") else "starts anew"

    def runs_own_code(self, obj: Any) -> bool:
        return hasattr(obj, "runs_own_code")

    def open(self, obj: Any, world: Any, session: str, deps: Any) -> Conversation:
        if obj.deps_type and deps is None:
            what = f"the agent needs deps of type {obj.deps_type.__name__}"
            raise frameworks.Refused(what, "write target: {object: …, deps: file.py:make_deps}")
        return Conversation(obj, world, deps)


PARAMETERS = {"type": "object", "properties": {"id": {"type": "string"}}}
FRAMEWORK = Toy()

if frameworks:
    memory: Any = sys.modules[f"{frameworks.__name__}.memory"]
    memory.STATEFUL_CLASSES = (
        *memory.STATEFUL_CLASSES,
        memory.StatefulClass(__name__, "Remembers", is_agent=True),
    )
    methods: Any = sys.modules[frameworks.__name__.replace(".frameworks", ".hooks.tool_methods")]
    methods.patch_subclasses(
        Tool,
        ("run",),
        methods.hook(
            "Toy",
            lambda tool, args, _: methods.HookedCall(tool.name, args[0]),
            lambda _tool, answer, _args, _named: answer.text if answer.is_error else answer.value,
        ),
    )
