"""A shop's tools as an MCP server over stdio: ``mcp_stdio.py`` starts it."""

import os
from typing import Any

try:
    from mcp.server.mcpserver import MCPServer
except ImportError:  # mcp 1
    from mcp.server.fastmcp import FastMCP as MCPServer

server = MCPServer("shop", log_level="WARNING")


def _mark(name: str) -> None:
    with open(os.environ["RAN"], "a", encoding="utf-8") as file:
        file.write(f"{name}\n")


@server.tool()
def get_order(order_id: str, verbose: bool = False) -> dict[str, Any]:
    """Look an order up."""
    _mark("get_order")
    return {"status": "real"}


@server.tool()
async def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    _mark("cancel_order")
    return {"status": "cancelled"}


if __name__ == "__main__":
    server.run("stdio")
