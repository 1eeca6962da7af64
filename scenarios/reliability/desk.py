"""A help desk for bookings that is good on most days, as an agent over a language model is.

Whether it does its work in a conversation is drawn from the seed of that conversation, so a run repeats
itself and another `--seed` is another day. `DESK=new` is its next version: quicker, and worse at refunds.
"""

import os
import random

RELIABILITY = {"book-a-table": 0.99, "move-a-booking": 0.97, "opening-hours": 1.0, "refund-a-deposit": 0.7}
NEXT_VERSION = {**RELIABILITY, "refund-a-deposit": 0.2}


async def agent(messages, ctx):
    rates = NEXT_VERSION if os.environ.get("DESK") == "new" else RELIABILITY
    if random.Random(ctx.seed).random() >= rates[ctx.scenario_id]:
        return "That is done for you."  # a claim, and nothing behind it
    tool = ctx.tools[0]["function"]["name"]
    result = await ctx.call_tool(tool, {"request": messages[-1]["content"]})
    return f"Done: {result['answer']}."
