"""``agenteval tools serve --stdio-bridge``: an MCP server over stdio that forwards to the run it belongs to.

It is separate from ``adapters/agents``, whose imports would slow the start of each bridge."""
