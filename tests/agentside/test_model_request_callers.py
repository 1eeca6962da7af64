"""Whose code on the stack makes a request to a model one of a framework's loop."""

from __future__ import annotations

from agenteval.agentside import hooks


def test_a_chat_model_of_langchain_makes_no_agent_of_a_loop(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    from agenteval.agentside.hooks import langchain

    assert langchain.PACKAGES
    monkeypatch.setattr(hooks, "_installed", {"langchain_core.tools.base"})
    assert "langgraph" in hooks.hooked_packages()
    assert "langchain_core" not in hooks.hooked_packages()
