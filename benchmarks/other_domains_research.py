"""Clean conversations that look things up: web, markets, weather, sports, tables, code, a library."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from statistics import mean, median
from typing import Any

from scripted import Courteous, Script, a_day, comma, marked, near, nth, rows, yes
from talk import Talk, tool

POLICY = (
    "You are a research assistant with web, data and library tools. Cite web pages as [1], [2].\n"
    "Market data is delayed by 15 minutes and is no advice.\n"
    "Library loans last 21 days and can be renewed twice; a hold waits 7 days at the desk.\n"
    "Ask for a yes before you delete a note or cancel a hold.\n"
)
TOOLS = [
    tool("web_search", "Search the web", query="string", count="integer?"),
    tool("open_page", "Text of a page", url="string"),
    tool("get_quote", "A share price", symbol="string"),
    tool("get_rate", "An exchange rate", base="string", quote="string"),
    tool("get_weather", "A forecast", city="string", days="integer?"),
    tool("get_results", "Matches and tables", league="string", team="string?"),
    tool("run_python", "Run Python code", code="string"),
    tool("calculator", "Work out an expression", expression="string"),
    tool("query_table", "Run SQL on the uploaded table", sql="string"),
    tool("library_search", "Search the catalogue", query="string"),
    tool("place_hold", "Reserve a book", item="string", branch="string"),
    tool("cancel_hold", "Cancel a reservation", hold="string"),
    tool("save_note", "Keep a note", title="string", text="string"),
    tool("delete_note", "Delete a note", note="string"),
]
MARKS = marked(TOOLS, "place_hold save_note", "cancel_hold delete_note")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Current date: {today:%Y-%m-%d} ({today:%A})\n" if today else ""
    return Courteous(TOOLS, MARKS, POLICY + now, results)


def viaduct(rng: Random) -> Talk:
    """Search results and a page, cited; an age, feet from metres, a share of arches."""
    built, metres, arches = rng.randint(1871, 1899), rng.randint(820, 1180), rng.choice([24, 28, 32])
    url, early = "https://en.example.org/wiki/Halden_Viaduct", built - rng.randint(3, 5)
    hits = rows(
        "rank title url snippet",
        (1, "Halden Viaduct", url, f"Railway viaduct with {arches} arches, opened in {built} ..."),
        (2, "Ten great bridges", "https://trails.example.com/top10", "No. 4: the Halden Viaduct"),
    )
    page = (
        f"# Halden Viaduct\n\nWork began in **{early}**; the first train crossed on 2 May {built}.\n\n"
        f"- Length: {metres} m\n- Arches: {arches}, of which {arches // 4} over water\n- Gauge: 1,435 mm"
    )
    return _talk(hits, page, today=date(2025, 10, rng.randint(1, 28))).tell(f"""
U how old and how long is the halden viaduct?
C web_search query="Halden Viaduct age length"
C open_page url={url}
A It opened on 2 May {built}, so it is {2025 - built} years old [1]. It is {metres:,} m long (about \
{metres * 3.28084:,.0f} feet) and has {arches} arches [1]. A travel site ranks it 4th among its ten great \
bridges [2].
U took 10 years to build i heard?
A Not quite: work began in {early}, so it took about {built - early} years, not 10 [1]. A quarter of the \
arches ({arches // 4}) stand in water.
""")


def lake(rng: Random) -> Talk:
    """The user's wrong depth, square kilometres as miles, a density, a rounded population."""
    depth, area, people = rng.randint(402, 468), rng.randint(120, 480), rng.randint(51200, 98700)
    wrong = depth + rng.choice([20, 40, 50])
    page = f"Lake Sarno | depth_max_m={depth} | area_km2={area} | towns=7 | census_2021={people}"
    return _talk([{"url": "https://lakes.example.net/sarno", "text": page}]).tell(f"""
U Lake Sarno is {wrong}m deep right? need it for a quiz
C web_search query="Lake Sarno depth"
A Not {wrong} m: the maximum depth given is **{depth} m**, {wrong - depth} m less [1].
U ok. area in sq miles? and ppl living there
A {area} km² is about {area / 2.589988:.0f} square miles. In the 2021 census about {round(people, -3):,} \
people lived in its seven shore towns, roughly {people / 7:,.0f} per town [1].
""")


def shares(rng: Random) -> Talk:
    """A quote with a change in percent, a market value in billions, gains on the user's shares."""
    close, bought, count = rng.randint(14000, 22000), rng.randint(9000, 12000), rng.choice([25, 40, 60])
    price = close + rng.choice([-1, 1]) * rng.randint(120, 480)
    cap, yearly = rng.randint(41, 96) * 10**9 + 417_000_000, rng.choice([2.4, 3.2])
    quote: dict[str, Any] = {"symbol": "NVRX", "price": price / 100, "previousClose": close / 100}
    quote |= {"currency": "USD", "marketCap": cap}
    quote |= {"dividendPerShare": yearly, "ts": 1749567600 + rng.randint(0, 9) * 86400, "exchange": "XNAS"}
    move = price - close
    gain = (price - bought) * count / 100
    return _talk(quote).tell(f"""
U NVRX?
C get_quote symbol=NVRX
A NVRX is at **${price / 100:.2f}**, {"up" if move > 0 else "down"} ${abs(move) / 100:.2f} \
({move / close * 100:+.1f}%) from the previous close of ${close / 100:.2f}. The company is worth about \
${cap / 1e9:.1f} billion. Prices are delayed by 15 minutes.
U i have {count} at {bought / 100:.2f}, whats my gain
A You paid ${bought * count / 100:,.2f} and they're now worth ${price * count / 100:,.2f}: a gain of \
**${gain:,.2f}**, or about {(price / bought - 1) * 100:.0f}%.
U and dividend
A At ${yearly:.2f} per share a year, {count} shares bring ${yearly * count:.2f}, a yield of about \
{yearly / price * 10000:.1f}% at today's price.
""")


def exchange(rng: Random) -> Talk:
    """A rate as a decimal string, both directions, a fee, a changed amount."""
    rate, amount, more = rng.randint(10410, 11790) / 10000, rng.choice([250, 400]), rng.choice([600, 1000])
    data = f'{{"base":"EUR","quote":"USD","rate":"{rate:.4f}","date":"2025-06-{rng.randint(10, 27)}"}}'
    return _talk(data).tell(f"""
U convert {amount} euro to usd
C get_rate base=EUR quote=USD
A €{amount} is about ${near(amount * rate, 2)} (1 EUR = {rate:.4f} USD).
U my bank takes 2% fee, and make it {more}
A €{more:,} × {rate:.4f} = ${near(more * rate, 2)}. A 2% fee would be ${near(more * rate * 0.02, 2)}, \
leaving ${near(more * rate * 0.98, 2)}.
U other way round, 100 usd?
A One dollar is about €{1 / rate:.2f}, so $100 is roughly €{100 / rate:.2f} before any fee.
""")


def weather(rng: Random) -> Talk:
    """Five days in Celsius told in Fahrenheit, wind in miles per hour, the rain in all, the coldest night."""
    start = a_day(rng, 0)
    high, low = rng.sample(range(9, 19), 5), rng.sample(range(-4, 6), 5)
    rain, wind = [0.0, rng.randint(12, 48) / 10, 0.0, rng.randint(60, 99) / 10, 0.0], rng.choice([10, 12, 15])
    days = rows(
        "date tmax tmin rain_mm wind_ms",
        *((str(start + timedelta(days=n)), high[n], low[n], rain[n], wind - n) for n in range(5)),
    )
    warm, cold = (start + timedelta(days=x.index(f(x))) for x, f in ((high, max), (low, min)))
    frost = sum(night < 0 for night in low)
    below = {
        0: "No night is",
        1: "One night is",
        2: "Two nights are",
        3: "Three nights are",
        4: "Four nights are",
    }
    return _talk({"city": "Bergen", "tz": "Europe/Oslo", "daily": days}, today=start).tell(f"""
U weather for bergen till friday, Fahrenheit please!
C get_weather city=Bergen days:=5
A ☀️ Warmest: **{warm:%A}** with {max(high) * 9 / 5 + 32:.0f} °F ({max(high)} °C)
🥶 Coldest night: **{cold:%A}** at {min(low) * 9 / 5 + 32:.0f} °F ({min(low)} °C)
🌧️ Rain: Tuesday {rain[1]} mm, Thursday {rain[3]} mm, {rain[1] + rain[3]:.1f} mm in all; the other three \
days stay dry.
U any frost? windy today?
A {below[frost]} below freezing (32 °F). Today's wind is {wind} m/s, about {wind * 2.23694:.0f} mph; by \
Friday it eases to {wind - 4} m/s.
""")


def football(rng: Random) -> Talk:
    """Five matches: wins, points, goals; the gap to the leader."""
    score = [(2, 0), (1, 1), (3, rng.choice([1, 2])), (0, rng.randint(1, 3)), (rng.randint(2, 4), 1)]
    games = [
        {"round": 31 + n, "home": n % 2 == 0, "opponent": who, "goals_for": ours, "goals_against": theirs}
        for n, (who, (ours, theirs)) in enumerate(
            zip(("Ayr", "Cove", "Hume", "Rook", "Vale"), score, strict=True)
        )
    ]
    made, let = sum(a for a, _ in score), sum(b for _, b in score)
    points, gap = rng.randint(58, 66), rng.randint(2, 5)
    rank = rows("pos team pts gp", (1, "Hume", points + gap, 35), (2, "Thornby", points, 35))
    return _talk({"matches": games, "table": rank}).tell(f"""
U how did Thornby (North 1) do lately
C get_results league="North 1" team=Thornby
A In their last 5 matches Thornby won three, drew one and lost one, {made}:{let} goals. That's 10 of 15 \
possible points. They lost 0–{score[3][1]} to Rook in round 34, but won {score[4][0]}–1 against Vale after \
that.
U still first?
A No, second: Hume lead with {points + gap} points, {gap} more than Thornby's {points}. Each has played 35.
U season has 38 rounds, is it still possible
A Yes. With 3 rounds left there are 9 points to win, so Thornby can reach {points + 9} at most.
""")


def survey(rng: Random) -> Talk:
    """Rows from a query: mean, median, range, a share above a limit; a sum the agent does itself."""
    marks_ = sorted(rng.sample(range(48, 98), 8))
    names = rng.sample(["Ada", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal"], 8)
    text = "name|score\n" + "\n".join(f"{name}|{mark}" for name, mark in zip(names, marks_, strict=True))
    over = sum(mark >= 60 for mark in marks_)
    return _talk(text).tell(f"""
U average score in the table I uploaded? also median
C query_table sql="SELECT name, score FROM t ORDER BY score"
A Across the 8 rows the mean is {near(mean(marks_), 1)} and the median {median(marks_):g}. Scores run from \
{marks_[0]} ({names[0]}) to {marks_[-1]} ({names[-1]}), a range of {marks_[-1] - marks_[0]} points.
U pass is 60. pass rate?
A {over} of 8 reach 60, so {over / 8 * 100:g}%.
U if {names[0]} got 10 more what's the mean then
A Ten more points in total, spread over eight, lift the mean by 1.25 to about {near(mean(marks_) + 1.25, 1)}.
""")


def python_retry(rng: Random) -> Talk:
    """A traceback, a second try, floats rounded, seconds as minutes."""
    laps = [tenths / 10 for tenths in rng.sample(range(2480, 2795), 4)]
    code = f"laps = {[*map(str, laps)]}\nprint(sum(laps) / len(laps))"
    fixed = f"laps = {laps}\nprint(sum(laps), sum(laps) / len(laps), min(laps))"
    error = 'Traceback:\n  File "<stdin>", line 2\nTypeError: unsupported operand type(s) for +'
    total = sum(laps)
    best = min(laps)
    lines = "\n".join(f"| {n} | {lap:.1f} s | +{lap - best:.1f} s |" for n, lap in enumerate(laps, 1))
    return _talk(error).tell(f"""
U my 1 km laps in sec: {", ".join(map(str, laps))} avg??
C run_python code="{code}"
C run_python code="{fixed}"
R {total!r} {total / 4!r} {best!r}
A Your average lap is about {near(total / 4, 1)} s, i.e. {total / 4 // 60:.0f} min {near(total / 4 % 60)} s. \
The best was lap {laps.index(best) + 1}.

| Lap | Time | Behind best |
|---|---|---|
{lines}

(My first script failed because the times were text; the second one worked.)
U speed in km/h
A 4 km in {total:.1f} s is about {4 / total * 3600:.1f} km/h.
""")


def savings(rng: Random) -> Talk:
    """A calculator's long float, simple against compound interest, a rule of thumb."""
    start, rate, years = rng.randrange(1000, 9000, 500), rng.choice([3, 4, 6]), rng.randint(5, 20)
    end = start * (1 + rate / 100) ** years
    simple = start * rate * years // 100
    return _talk().tell(f"""
U {start} at {rate}% for {years} years compounding yearly
C calculator expression={start}*(1+{rate}/100)^{years}
R {end!r}
A After {years} years you'd have about **${end:,.2f}**, which is ${end - start:,.2f} in interest.
U without compounding?
A Simple interest is ${start * rate // 100} a year, so ${simple:,} in {years} years and ${start + simple:,} \
in total, about ${end - start - simple:,.0f} less.
U when does it double
A By the rule of 72, in roughly {72 // rate} years (72 / {rate}).
""")


def library(rng: Random) -> Talk:
    """Copies counted, a queue in ordinals, a due date, a hold cancelled after a yes."""
    today, place = a_day(rng, rng.randint(0, 5)), rng.choice([2, 3])
    isbn, hold = f"978{rng.randint(10**9, 10**10 - 1)}", f"H{rng.randint(100000, 999999)}"
    due = today + timedelta(days=rng.randint(3, 9))
    copies = rows(
        "branch status due",
        ("Central", "ON_LOAN", str(due)),
        ("Eastside", "ON_LOAN", str(due + timedelta(days=6))),
        ("Harbour", "AVAILABLE", None),
    )
    book: dict[str, Any] = {"item": "b-7731", "title": "The Salt Road", "author": "M. Idris", "year": 2019}
    book |= {"isbn": isbn, "copies": copies}
    return _talk(
        {"hits": 1, "items": [book]},
        {"hold": hold, "queue": place, "branch": "Central"},
        {"hold": hold, "state": "cancelled"},
        today=today,
    ).tell(f"""
U do you have The Salt Road at central
C library_search query="The Salt Road"
A We have three copies of *The Salt Road* (M. Idris, 2019). Central's is on loan until {due:%A, %B %-d}; \
only Harbour has one on the shelf right now. Shall I put a hold on it at Central?
U ok
C place_hold item=b-7731 branch=Central
A Done, hold {hold}; you're {nth(place)} in line. Once it arrives it waits 7 days for you.
U too slow, ill go to harbour. cancel that
A Sure: cancel hold {hold}, giving up your {nth(place)} place. OK?
U {yes(rng)}
C cancel_hold hold={hold}
A Cancelled. If you borrow the Harbour copy today, it's due in three weeks, on \
{today + timedelta(days=21):%A, %B %-d}; two renewals could stretch that to nine weeks in all.
""")


def meeting(rng: Random) -> Talk:
    """One moment in three cities, an end time, a span across midnight."""
    day, hour, long = (
        a_day(rng, rng.randint(0, 3)).replace(month=7),
        rng.choice([14, 15, 16]),
        rng.choice([45, 90]),
    )
    berlin = datetime(day.year, 7, day.day, hour, 0)
    york, tokyo = berlin - timedelta(hours=6), berlin + timedelta(hours=7)
    out = f"Berlin {berlin.isoformat()}+02:00\nNYC {york.isoformat()}-04:00\nTokyo {tokyo.isoformat()}+09:00"
    code = f"show('{berlin.isoformat()}', 'Europe/Berlin', ['America/New_York', 'Asia/Tokyo'])"
    note = {"note": f"n{rng.randint(10, 99)}", "saved": True}
    title = f"Call July {day.day}"
    end = tokyo + timedelta(minutes=long)
    return _talk(out, note, today=date(2025, 6, 27)).tell(f"""
U call on july {day.day} at {hour - 12}pm Berlin time, {long} min. when is that in NY and Tokyo?
C run_python code="{code}"
A On {berlin:%A, %B %-d}:

- Berlin: {berlin:%-I %p}
- New York: {york:%-I %p}, 6 hours behind
- Tokyo: {tokyo:%-I %p}, 7 hours ahead

In Tokyo it'd end at {end:%-I:%M %p}{"" if end.day == day.day else " the next day"}.
U save that as a note
C save_note title="{title}" text="{out}"
A Saved as “{title}” ({note["note"]}).
""")


def terse(rng: Random) -> Talk:
    """A small model: bare results and a percentage."""
    part, whole = rng.randint(13, 48) * 5, rng.choice([400, 500, 1000])
    root = rng.randint(12, 31)
    return _talk().tell(f"""
U {part} of {whole} in %
C calculator expression={part}/{whole}*100
R {part / whole * 100:g}
A {part / whole * 100:g}%
U sqrt {root * root}
C calculator expression=sqrt({root * root})
R {float(root)}
A {root}
U and the rest of the first one
A {whole - part} ({100 - part / whole * 100:g}%).
""")


def portuguese_match(rng: Random) -> Talk:
    """Portuguese: a result, the points after it, a table with a gap."""
    goals, points = rng.choice([(2, 1), (3, 1), (1, 0)]), rng.randint(31, 44)
    match: dict[str, Any] = {"mandante": "Leão do Norte", "visitante": "Porto Azul"}
    match |= {"placar": f"{goals[0]}-{goals[1]}", "publico": 18342}
    table = rows("time pontos", ("Leão do Norte", points), ("Porto Azul", 30))
    return _talk({"jogo": match, "tabela": table}).tell(f"""
U quanto foi o jogo do Leão do Norte ontem, Série C??
C get_results league="Série C" team="Leão do Norte"
A O Leão do Norte venceu o Porto Azul por {goals[0]} a {goals[1]}, diante de cerca de 18 mil torcedores. ⚽
U e a tabela?
A O Leão tem {points} pontos, {points - 30} a mais que o Porto Azul, que tem 30. Antes da vitória eram \
{points - 3}.
""")


def chinese_stock(rng: Random) -> Talk:
    """Chinese: a market value in hundreds of millions, the value of the user's shares."""
    price, shares_, cap = rng.randint(120, 480) / 10, rng.choice([300, 500, 800]), rng.randint(85, 460)
    data: dict[str, Any] = {"code": "600XXX", "name": "江海股份", "price": f"{price:.2f}"}
    data |= {"total_mv": cap * 10**8, "unit": "CNY", "pct_chg": None}
    return _talk(data).tell(f"""
U 江海股份现在多少钱?市值多大?
C get_quote symbol=江海股份
A 江海股份现价{price:.2f}元,总市值约{cap}亿元(行情延迟15分钟)。
U 我有{shares_}股
A 按现价算,您的{shares_}股价值{price * shares_:,.0f}元。
""")


def italian_notes(rng: Random) -> Talk:
    """Italian: a page with a height, an age, a note removed after a yes."""
    built, height = rng.randint(1210, 1389), rng.choice([47, 54, 61])
    note = f"n{rng.randint(100, 999)}"
    page = (
        f"Torre del Vento: costruita nel {built}, alta {height} m, 298 gradini. Ingresso 7,50 €; ridotto 5 €."
    )
    return _talk(page, {"deleted": note}, today=date(2025, 11, 4)).tell(f"""
U https://torri.example.it/vento quanto è alta la torre e quanti anni ha?
C open_page url=https://torri.example.it/vento
A È alta {height} metri e ha circa {2025 - built} anni: fu costruita nel {built} [1].
U quanto spendiamo in 3, uno ridotto? e cancella la nota {note}
A - due interi: 15 €
- un ridotto: 5 €
- totale: 20 €

Confermi che elimino la nota {note}?
U si, eliminala
C delete_note note={note}
A Fatto, la nota {note} è stata eliminata. Dividendo in tre parti uguali sarebbero {comma(20 / 3)} € a testa.
""")


TEMPLATES = (
    viaduct, lake, shares, exchange, weather, football, survey, python_retry, savings, library,
    meeting, terse, portuguese_match, chinese_stock, italian_notes,
)  # fmt: skip
