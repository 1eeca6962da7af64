"""A scenario's answer as a tool of LangChain gives it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from .langchain_tools import returns_text

if TYPE_CHECKING:
    from ..world import Answer

_STAND_INS: dict[Any, Any] = {}
_SAY = "_agenteval_say"


def stand_in(tool: Any, answer: Answer, call_id: str | None) -> Any:
    """Return a tool of LangChain's own class with all that is public of ``tool``, whose ``run`` gives the
    answer: so callbacks, events, checks of arguments and the form of the result stay. No code of ``tool`` is
    in it."""
    kind: Any = next(
        each for each in type(tool).__mro__ if each.__module__.startswith("langchain_core.tools.")
    )
    if kind not in _STAND_INS:
        own = {"_run": _run, "_arun": _arun, "__module__": __name__, "__doc__": kind.__doc__}
        _STAND_INS[kind] = type(kind)("StandIn", (kind,), own)
    made = _STAND_INS[kind].model_construct(**{name: getattr(tool, name) for name in kind.model_fields})
    made.__dict__[_SAY] = partial(_given, tool, answer, call_id)
    return made


def _run(tool: Any, *_: Any, **__: Any) -> Any:
    return tool.__dict__[_SAY]()


async def _arun(tool: Any, *_: Any, **__: Any) -> Any:
    return tool.__dict__[_SAY]()


def _given(tool: Any, answer: Answer, call_id: str | None) -> Any:
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
