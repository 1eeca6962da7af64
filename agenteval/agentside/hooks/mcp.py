"""Hook Model Context Protocol (MCP) clients by patching ``ClientSession.call_tool`` (``tools/call``), for any
client and any transport."""

from __future__ import annotations

import functools
from typing import Any

from .tool_methods import MCP_LAYER, HookedCall, ToolFailedError, bind_arguments, hook, patch_subclasses

_OWN = "agenteval"
"""The name of agenteval's own MCP server, which records its calls itself."""


def install(module: Any) -> None:
    """Patch ``module``, which is ``mcp.client.session``."""
    session = module.ClientSession
    patch_subclasses(session, ("call_tool",), hook(MCP_LAYER, _read, _give, to_record=_to_recorded_value))
    if not hasattr(session, "server_info"):  # before 2.0 a session does not keep its server's name
        patch_subclasses(session, ("initialize",), _keep_server_info)


def _keep_server_info(real: Any) -> Any:
    @functools.wraps(real)
    async def initialize(session: Any, *args: Any, **kwargs: Any) -> Any:
        result = await real(session, *args, **kwargs)
        session.server_info = result.serverInfo
        return result

    return initialize


def _read(session: Any, args: Any, kwargs: Any) -> HookedCall | None:
    is_continued = kwargs.get("input_responses") is not None or kwargs.get("request_state") is not None
    if is_continued or getattr(getattr(session, "server_info", None), "name", "") == _OWN:
        return None
    bound = bind_arguments(("name", "arguments"), args, kwargs)
    return HookedCall(bound["name"], bound.get("arguments") or {}, key=bound["name"])


def _give(session: Any, answer: Any, args: Any, kwargs: Any) -> Any:
    from mcp.types import CallToolResult

    text, is_data = answer.failure if answer.is_error else answer.text, isinstance(answer.value, dict)
    result = {"content": [{"type": "text", "text": text}], "isError": answer.is_error}
    if is_data and not answer.is_error:
        result["structuredContent"] = answer.value
    return CallToolResult.model_validate(result)


def _to_recorded_value(result: Any) -> Any:
    text = "\n".join(getattr(each, "text", f"[{each.type}]") for each in getattr(result, "content", ()))
    if getattr(result, "isError", False) or getattr(result, "is_error", False):
        raise ToolFailedError(text)
    data = getattr(result, "structuredContent", None) or getattr(result, "structured_content", None)
    return text if not data or [*data] == ["result"] else data  # the wrapper of a value that is not an object
