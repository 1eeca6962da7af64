"""WonderBot: the first version (``first.py``), and what it could not do.

Each function below answers one kind of question that the example suite found the first version to fail at,
and gives nothing for all others, which the first version still answers.
"""

from __future__ import annotations

import asyncio
import re
from typing import Any

from scenarios.wonderbot.first import (
    KNOWN_PLANS,
    Json,
    Request,
    answer_sum,
    any_of,
    call,
    compute,
    find_cities,
    read,
)
from scenarios.wonderbot.first import agent as first_version

UMBRELLA = any_of(r"umbrellas?|raincoats?|get wet")
WET = any_of(r"rain(?:y|ing)?|showers?|storm(?:y|s)?|drizzle|snow(?:y|ing)?")
NEEDED = any_of(r"which .{0,40}\bplan|plan .{0,20}\bneed|enough|cheapest")
NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
BY_DAY = re.compile(r"\b(?:a|per|each|every) day\b", re.IGNORECASE)
CALLS_A_DAY = re.compile(rf"({NUMBER}) (?:\w+ )?calls (?:a|per|each|every) day", re.IGNORECASE)
DAYS = re.compile(r"\b(\d+) days\b", re.IGNORECASE)
DAYS_OF_A_MONTH = 30


async def agent(messages: list[Json], ctx: Any) -> str:
    """Answers the last user message; agenteval calls this once a turn."""
    text, request = read(messages)
    _, before = read(messages[:-1])
    return (
        await advise_on_rain(ctx, text, before)
        or await name_the_plan(ctx, text)
        or await convert_calls(ctx, text, last_answer(messages))
        or await compare_years(ctx, request)
        or await first_version(messages, ctx)
    )


def last_answer(messages: list[Json]) -> str:
    said = [m["content"] for m in messages if m["role"] == "assistant" and m.get("content")]
    return said[-1] if said else ""


def plain(number: str) -> str:
    return number.replace(",", "")


async def advise_on_rain(ctx: Any, text: str, before: Request) -> str:
    """Whoever asks about an umbrella asks about the weather, whatever else the message begins with."""
    cities = find_cities(text) or before.cities
    if not (UMBRELLA.search(text) and cities):
        return ""
    return " ".join(await asyncio.gather(*(umbrella_for(ctx, city) for city in cities)))


async def umbrella_for(ctx: Any, city: str) -> str:
    report = await call(ctx, "get_weather", {"city": city})
    if not isinstance(report, dict) or report.get("condition", "unknown") == "unknown":
        return f"I cannot tell: the conditions in {city} are unknown."
    now = f"{city} has {report['temp']} °C and is {report['condition']}."
    return f"Yes, take an umbrella: {now}" if WET.search(report["condition"]) else f"You need none: {now}"


async def name_the_plan(ctx: Any, text: str) -> str:
    """The cheapest plan that is enough for so many calls a day."""
    asked = CALLS_A_DAY.search(text)
    if not (asked and NEEDED.search(text)):
        return ""
    days = DAYS.search(text)
    expression = f"{plain(asked[1])} * {days[1] if days else DAYS_OF_A_MONTH}"
    needed = await compute(ctx, expression)
    if needed.problem:
        return ""
    names = [f"WonderBot {name}" for name in KNOWN_PLANS]
    found = await asyncio.gather(*(call(ctx, "get_product_info", {"product_name": name}) for name in names))
    plans = [plan for plan in found if isinstance(plan, dict) and "price" in plan]
    enough = [p for p in plans if p["api_calls"] < 0 or p["api_calls"] >= float(plain(needed.text))]
    priced = sorted((p for p in enough if p["price"]), key=lambda plan: float(plan["price"]))
    why = (
        f"{asked[1]} calls a day are {needed.text} in a month of {days[1] if days else DAYS_OF_A_MONTH} days"
    )
    if priced:
        best = priced[0]
        least, limit = f"{best['product']} is the cheapest plan that is enough", best["api_calls"]
        offers = "has no limit" if limit < 0 else f"allows {limit:,} API calls per month"
        return f"{least}: {why}, and it {offers} for ${best['price']}."
    if enough:
        return f"Only {enough[0]['product']} is enough, at a price by agreement: {why}."
    return f"I know of no plan that is enough: {why}."


async def convert_calls(ctx: Any, text: str, said: str) -> str:
    """Calls of a day and of a month of so many days, one from the other."""
    days = DAYS.search(text)
    if not (days and BY_DAY.search(text)):
        return ""
    if asked := CALLS_A_DAY.search(text):
        return await answer_sum(ctx, f"{plain(asked[1])} * {days[1]}")
    numbers = re.findall(NUMBER, said)
    return await answer_sum(ctx, f"{plain(numbers[-1])} / {days[1]}") if numbers else ""


async def compare_years(ctx: Any, request: Request) -> str:
    """The difference of two plans over a year, which is not that of a month."""
    if not (request.topic == "plans" and request.difference and request.yearly and len(request.plans) == 2):
        return ""
    found = await asyncio.gather(
        *(call(ctx, "get_product_info", {"product_name": name}) for name in request.plans)
    )
    by_name = dict(zip(request.plans, found, strict=True))
    priced = {n: p["price"] for n, p in by_name.items() if isinstance(p, dict) and p.get("price")}
    if len(priced) < 2:
        return ""
    dear, cheap = sorted(priced, key=lambda name: -float(priced[name]))
    more = await compute(ctx, f"({priced[dear]} - {priced[cheap]}) * 12")
    return f"Over a year, {dear} costs ${more.text} more than {cheap}."
