"""A shop's agent in Google's ADK, as its authors run it: nothing in here knows of agenteval.

Its model is scripted (a ``BaseLlm`` of its own, no network): `hasty` cancels an order before it looks at it,
`careful` looks first. Orders are for a sub-agent, to which the front desk hands over.
"""

import json
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types


def get_order(order_id: str) -> dict[str, Any]:
    """Look an order up."""
    raise RuntimeError("this would read the shop's database")


def cancel_order(order_id: str) -> dict[str, Any]:
    """Cancel an order."""
    raise RuntimeError("this would write the shop's database")


def _reply(part: types.Part) -> LlmResponse:
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=20, candidates_token_count=5, total_token_count=25
    )
    return LlmResponse(content=types.Content(role="model", parts=[part]), usage_metadata=used)


class FrontDesk(BaseLlm):
    model: str = "front desk"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        to_orders = types.FunctionCall(name="transfer_to_agent", args={"agent_name": "orders"})
        yield _reply(types.Part(function_call=to_orders))


class Clerk(BaseLlm):
    model: str = "clerk"
    first: list[str]

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        yield _reply(self._part(llm_request))

    def _part(self, llm_request: LlmRequest) -> types.Part:
        asked, results = "", dict[str, str]()
        for content in llm_request.contents:
            for part in content.parts or ():
                if part.text and part.text.endswith(("?", "it.")):
                    asked, results = part.text, {}
                if part.function_response:
                    results[part.function_response.name or ""] = json.dumps(part.function_response.response)
        if "cancel" not in asked:
            return self._call("get_order", results) or types.Part(text=f"Your order: {results['get_order']}")
        for tool in self.first:
            if call := self._call(tool, results):
                return call
            if "shipped" in results[tool]:
                return types.Part(text="It is shipped already, so I cannot cancel it.")
        return types.Part(text="Your order is cancelled.")

    def _call(self, tool: str, results: dict[str, str]) -> types.Part | None:
        call = types.FunctionCall(name=tool, args={"order_id": "A-7"})
        return None if tool in results else types.Part(function_call=call)


def _agent(name: str, *first: str) -> LlmAgent:
    orders = LlmAgent(
        name="orders",
        description="Knows and cancels orders.",
        model=Clerk(first=[*first]),
        instruction="Look before you cancel.",
        tools=[get_order, cancel_order],
    )
    instruction = "You help the customers of a shop."
    return LlmAgent(name=name, model=FrontDesk(), instruction=instruction, sub_agents=[orders])


hasty = _agent("hasty", "cancel_order")
careful = _agent("careful", "get_order", "cancel_order")
