"""Return a scenario's answer in the same way as a LangChain tool would."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .langchain_tools import returns_text

if TYPE_CHECKING:
    from ..world import ToolAnswer

_PROXY_CLASSES: dict[Any, Any] = {}
_ANSWER_KEY = "_agenteval_say"


def proxy_tool(tool: Any, answer: ToolAnswer, call_id: str | None) -> Any:
    """Return a tool of LangChain's own class with the public attributes of ``tool``. The ``run`` method of
    the new tool returns the answer.

    Callbacks, events, argument checks and the form of the result remain unchanged, and no code in ``tool``
    runs."""
    kind: Any = next(
        each for each in type(tool).__mro__ if each.__module__.startswith("langchain_core.tools.")
    )
    if kind not in _PROXY_CLASSES:
        attributes = {"_run": _run, "_arun": _arun, "__module__": __name__, "__doc__": kind.__doc__}
        _PROXY_CLASSES[kind] = type(kind)("StandIn", (kind,), attributes)
    proxy = _PROXY_CLASSES[kind].model_construct(**{name: getattr(tool, name) for name in kind.model_fields})
    proxy.__dict__[_ANSWER_KEY] = partial(_answer_value, tool, answer, call_id)
    return proxy


def _run(tool: Any, *_: Any, **__: Any) -> Any:
    return tool.__dict__[_ANSWER_KEY]()


async def _arun(tool: Any, *_: Any, **__: Any) -> Any:
    return tool.__dict__[_ANSWER_KEY]()


def _answer_value(tool: Any, answer: ToolAnswer, call_id: str | None) -> Any:
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import ToolException

    has_artifact = tool.response_format == "content_and_artifact"
    if not answer.is_error and has_artifact:
        return answer.text, answer.value
    if not answer.is_error:
        return answer.text if returns_text(tool) else answer.value
    if call_id is None or tool.handle_tool_error:
        raise ToolException(answer.text)
    error = ToolMessage(answer.text, tool_call_id=call_id, name=tool.name, status="error")
    return (error, None) if has_artifact else error
