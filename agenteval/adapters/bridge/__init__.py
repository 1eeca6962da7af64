"""Provide ``agenteval tools serve --stdio-bridge``, an MCP server over stdio that forwards tool calls to its
run.

The bridge is separate from ``adapters/agents``, whose imports would delay the start of each bridge."""
