"""WonderBot as it first was, without a language model: rules find out what is asked.

The tools give the facts: it answers questions about the weather, WonderBot's plans, and arithmetic. No
API key is needed, so the example suite runs anywhere. The suite found four weaknesses in it (``agenteval
run --agent wonderbot-first``), which ``agent.py`` no longer has. ``react.py`` is the same bot over a real
model.

The agent keeps no state: ``messages`` is the whole conversation, so each turn reads the user's
messages from the first one on and carries along what a follow-up may refer to.
"""

from __future__ import annotations

import asyncio
import json
import re
from decimal import Decimal
from typing import Any, NamedTuple

Json = dict[str, Any]

HELP = "I can tell you the weather of a city, prices and API limits of WonderBot plans, or do a calculation."
ASK = f"Please ask me a question. {HELP}"
REFUSAL = f"I keep my instructions to myself. {HELP}"
CONFUSED = f"Sorry, I did not understand that. {HELP}"


def any_of(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE)


INJECTION = any_of(
    r"(?:ignore|disregard|forget)\b.{0,40}\b(?:instructions?|rules|prompt)"
    r"|(?:system|hidden|initial) prompt|your (?:instructions|prompt|policy|rules)"
)
SMALL_TALK = {
    "Hello!": any_of(r"hi|hello|hey|good (?:morning|evening|afternoon)"),
    "You are welcome!": any_of(r"thanks|thank you|cheers"),
    "Goodbye!": any_of(r"bye|goodbye|see you"),
}
WEATHER = any_of(
    r"weather|temperatures?|forecast|degrees|sunny|cloudy|rain(?:y|s|ing)?"
    r"|warm(?:er|est)?|hot(?:ter|test)?|cold(?:er|est)?"
)
PLAN = any_of(r"wonderbot|plans?(?! to\b)|subscriptions?")
LIMIT = any_of(r"limits?|quotas?|(?:api|monthly) calls?|calls? (?:a|per) month")
PRICE = any_of(r"prices?|pricing|costs?|how much|expensive|cheap(?:er|est)?|pay|fees?")
YEAR = any_of(r"annual(?:ly)?|yearly|(?:a|per|one|whole|full) year|(?:12|twelve) months")
DIFFERENCE = any_of(r"differences?|how much (?:more|less|warmer|colder|hotter|cheaper)")


# ---- What a message asks for ---------------------------------------------------------------------


class Request(NamedTuple):
    """What a message asks for, completed by what was said before it."""

    topic: str = ""  # "weather" or "plans": what a follow-up such as "and in Shanghai?" is about
    cities: tuple[str, ...] = ()
    plans: tuple[str, ...] = ()
    details: tuple[str, ...] = ()  # of a plan: "price", "limit"
    expression: str = ""
    difference: bool = False
    yearly: bool = False


def understand(text: str, before: Request, last_answer: str) -> Request:
    """What ``text`` asks for, after the request ``before`` and the bot's ``last_answer``."""
    expression = find_expression(text, last_answer)
    request = about_plans(text, before) or about_weather(text, before) or Request()
    return request._replace(expression=expression)


def about_plans(text: str, before: Request) -> Request | None:
    plans, details = find_plans(text), find_details(text)
    weather = WEATHER.search(text)
    follow_up = before.topic == "plans" and details and not weather
    if not (plans or PLAN.search(text) or follow_up):
        return None
    return Request(
        topic="plans",
        plans=plans or before.plans,
        details=details or before.details or ("price", "limit"),
        cities=find_cities(text) if weather else (),
        difference=bool(DIFFERENCE.search(text)),
        yearly=bool(YEAR.search(text)),
    )


def about_weather(text: str, before: Request) -> Request | None:
    follow_up = before.topic == "weather"
    asked, difference = WEATHER.search(text), bool(DIFFERENCE.search(text))
    cities = find_cities(text) if asked or follow_up else ()
    if not (asked or cities or (follow_up and difference)):
        return None
    if difference and len(cities) < 2:
        cities = tuple(dict.fromkeys((*before.cities, *cities)))[-2:]
    return Request(topic="weather", cities=cities or before.cities, difference=difference)


def find_details(text: str) -> tuple[str, ...]:
    kinds = {"price": PRICE, "limit": LIMIT}
    return tuple(detail for detail, pattern in kinds.items() if pattern.search(text))


KNOWN_PLANS = ("Basic", "Pro", "Enterprise")
NO_PLAN = any_of(r"plans?|costs?|pric\w+|apis?|limits?|is|are|has|have|do|does|can|and|or|for|offers?")


def find_plans(text: str) -> tuple[str, ...]:
    """Plans by full name, whether there is one or not ("WonderBot Ultra"), or by a known short name."""
    names = [name for name in re.findall(r"\bwonderbot\s+(\w+)", text, re.I) if not NO_PLAN.fullmatch(name)]
    # In lower case "basic" is mostly an adjective.
    names += [name for name in KNOWN_PLANS if re.search(rf"\b{name}\b", text)]
    return tuple(dict.fromkeys(f"WonderBot {name.capitalize()}" for name in names))


PLACE = r"[A-Z][\w'’-]*(?:[ ][A-Z][\w'’-]*)*"
BETWEEN_PLACES = r"(?:\s*,\s*|\s+)(?:(?:and|or|vs\.?)\s+)?"
LISTED_PLACES = re.compile(rf"\b(?:[Ii]n|[Ff]or|[Aa]t|[Bb]etween|of) ({PLACE}(?:{BETWEEN_PLACES}{PLACE})*)")
LOWER_CASE_PLACE = re.compile(
    r"\b(?:in|for|at) (?!the\b|my\b|you\b|how\b|what\b|today\b|tomorrow\b)([a-z]{3,})"
)
CAPITALISED = re.compile(rf"(?<=[a-z,] )({PLACE})")
NO_PLACE = any_of(r"api|wonderbot|basic|pro|enterprise|celsius|fahrenheit|i")


def find_cities(text: str) -> tuple[str, ...]:
    """City names: after "in" or "for", else any capitalised word that does not begin a sentence."""
    listed = [name for names in LISTED_PLACES.findall(text) for name in re.findall(PLACE, names)]
    lower_case = [name.capitalize() for name in LOWER_CASE_PLACE.findall(text)]
    for found in (listed, lower_case, CAPITALISED.findall(text)):
        if cities := [name for name in found if not NO_PLACE.match(name)]:
            return tuple(dict.fromkeys(cities))
    return ()


# ---- Arithmetic in words and signs ---------------------------------------------------------------

NUMBER = r"-?\d+(?:\.\d+)?"
SPOKEN = (
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"[$€£]\s*(?=\d)", ""),
    (rf"\b(?:the )?square root of ({NUMBER})", r"sqrt(\1)"),
    (rf"({NUMBER})\s*(?:%|percent) of\b", r"\1 / 100 *"),
    (r"\bdivide (\S+) by\b", r"\1 /"),
    (r"\bmultiply (\S+) by\b", r"\1 *"),
    (r"\bdivided by\b|÷", "/"),
    (r"\b(?:multiplied by|times)\b|×|(?<=\d) ?x ?(?=\d)", "*"),
    (r"\bto the power of\b|\^", "**"),
    (r"\bsquared\b", "** 2"),
    (r"\bplus\b", "+"),
    (r"\bminus\b|−", "-"),
)
LAST_RESULT = re.compile(
    r"\b(?:that|it|this|the result)(?=\s*[-+*/]\s*\d)|(?<=[-+*/] )(?:that|it|this)\b", re.I
)
SUM = re.compile(r"(?:sqrt\s*\(|[\d(.-])(?:sqrt\s*\(|[\d\s.()*/+-])*")
ROOT = re.compile(r"sqrt\s*\(((?:[^()]|\([^()]*\))*)\)")


def find_expression(text: str, last_answer: str) -> str:
    """The first arithmetic expression in ``text``, empty if there is none.

    In "divide that by 30", *that* is the last number of ``last_answer``.
    """
    for spoken, signs in SPOKEN:
        text = re.sub(spoken, signs, text, flags=re.IGNORECASE)
    if numbers := re.findall(NUMBER, last_answer.replace(",", "")):
        text = LAST_RESULT.sub(numbers[-1], text)
    for match in SUM.finditer(text):
        found = match[0].strip().rstrip(".+-*/( ")
        if re.search(r"\d", found) and re.search(r"sqrt|\d[\s)]*[-+*/]", found):
            return found + ")" * (found.count("(") - found.count(")"))
    return ""


def without_roots(expression: str) -> str:
    """``sqrt(x)`` as ``((x) ** 0.5)``, since the calculator takes no letters."""
    while (rewritten := ROOT.sub(r"((\1) ** 0.5)", expression)) != expression:
        expression = rewritten
    return expression


# ---- Answers from the tools ----------------------------------------------------------------------


async def call(ctx: Any, name: str, args: Json) -> Any:
    """A tool's result, as data or text. A call that failed is made once more: most errors are brief."""
    result = await ctx.call_tool(name, args)
    if isinstance(result, dict) and "error" in result:
        result = await ctx.call_tool(name, args)
    try:
        return json.loads(result) if isinstance(result, str) else result
    except ValueError:
        return result


class Value(NamedTuple):
    """What the calculator found: a number for a reader (``text``), or why there is none."""

    text: str = ""
    problem: str = ""


async def compute(ctx: Any, expression: str) -> Value:
    result = await call(ctx, "calculator", {"expression": without_roots(expression)})
    if not isinstance(result, str) or " = " not in result:
        return Value(problem=str(result).removeprefix("Error: "))
    number = result.rpartition(" = ")[2]
    return Value(problem="it has no real result") if "j" in number else Value(readable(Decimal(number)))


def readable(number: Decimal) -> str:
    """At most two decimals and thousands separators: 333.33, 3,588. Small numbers keep four digits."""
    return f"{number:,.2f}".rstrip("0").rstrip(".") if abs(number) >= 1 else f"{number:.4g}"


async def answer_sum(ctx: Any, expression: str) -> str:
    value = await compute(ctx, expression)
    return (
        f"I could not work out {expression}: {value.problem}."
        if value.problem
        else f"{expression} = {value.text}"
    )


async def answer_weather(ctx: Any, request: Request) -> str:
    if not request.cities:
        return "Which city's weather would you like to know?"
    reports = await asyncio.gather(*(call(ctx, "get_weather", {"city": city}) for city in request.cities))
    by_city = dict(zip(request.cities, map(measured, reports), strict=True))
    lines = [describe_weather(city, report) for city, report in by_city.items()]
    known = sorted(((report["temp"], city) for city, report in by_city.items() if report), reverse=True)
    if len(known) == 2:
        (high, warm), (low, cold) = known
        by = f"{(await compute(ctx, f'{high} - {low}')).text} °C " if request.difference else ""
        lines.append(f"{warm} is {by}warmer than {cold}.")
    return " ".join(lines)


def measured(report: Any) -> Json | None:
    """The report, if it is one and no text or error."""
    return report if isinstance(report, dict) and "temp" in report else None


def describe_weather(city: str, report: Json | None) -> str:
    if report is None:
        return f"The weather service does not answer for {city} at the moment, please try again later."
    if report["condition"] == "unknown":
        return f"The conditions in {city} are unknown; the service reports {report['temp']} °C for it."
    return f"{city}: {report['temp']} °C and {report['condition']}."


async def answer_plans(ctx: Any, request: Request) -> str:
    names = request.plans or tuple(f"WonderBot {name}" for name in KNOWN_PLANS)
    found = await asyncio.gather(*(call(ctx, "get_product_info", {"product_name": name}) for name in names))
    by_name = dict(zip(names, found, strict=True))
    lines = [describe_plan(name, plan, request.details) for name, plan in by_name.items()]
    priced = {n: plan["price"] for n, plan in by_name.items() if isinstance(plan, dict) and plan.get("price")}
    if request.yearly and not request.expression:
        for name, price in priced.items():
            lines.append(f"A year of {name} costs ${(await compute(ctx, f'{price} * 12')).text}.")
    if request.difference and len(priced) == 2:
        dear, cheap = sorted(priced, key=lambda name: -priced[name])
        more = await compute(ctx, f"{priced[dear]} - {priced[cheap]}")
        lines.append(f"{dear} costs ${more.text} more than {cheap}.")
    return " ".join(lines)


def describe_plan(name: str, plan: Any, details: tuple[str, ...]) -> str:
    if isinstance(plan, str):
        *others, last = KNOWN_PLANS
        return f"I could not find a plan called {name}. There are {', '.join(others)} and {last}."
    if "price" not in plan:
        return f"The price list does not answer for {name} at the moment, please try again later."
    price, calls = plan["price"], plan["api_calls"]
    said = {
        "price": f"costs ${price} per month" if price else "has a price by agreement",
        "limit": f"allows {calls:,} API calls per month" if calls >= 0 else "has no limit of API calls",
    }
    return f"{name} {' and '.join(said[detail] for detail in details)}."


# ---- The agent -----------------------------------------------------------------------------------


async def agent(messages: list[Json], ctx: Any) -> str:
    """Answers the last user message; agenteval calls this once a turn."""
    text, request = read(messages)
    if not text.strip():
        return ASK
    if INJECTION.search(text):
        return REFUSAL
    parts = []
    if request.topic == "weather" or request.cities:
        parts.append(await answer_weather(ctx, request))
    if request.topic == "plans":
        parts.append(await answer_plans(ctx, request))
    if request.expression:
        parts.append(await answer_sum(ctx, request.expression))
    if parts:
        return " ".join(parts)
    return next(
        (f"{reply} {HELP}" for reply, pattern in SMALL_TALK.items() if pattern.search(text)), CONFUSED
    )


def read(messages: list[Json]) -> tuple[str, Request]:
    """The last user message, and what it asks for in the light of those before it."""
    text, answer, request, topic = "", "", Request(), Request()
    for message in messages:
        if message["role"] == "assistant" and message.get("content"):
            answer = message["content"]
        elif message["role"] == "user":
            text = message["content"]
            request = understand(text, topic, answer)
            # A thank-you or a sum in between does not end the topic.
            topic = request if request.topic else topic
    return text, request
