"""``agenteval tools serve --stdio-bridge``: an MCP server over stdio that passes on to the run it is part of.

Kept apart from ``adapters/agents``, whose imports would slow the start of each bridge.
"""
