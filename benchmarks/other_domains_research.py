"""Clean conversations that look things up: web, markets, weather, sports, tables, code, a library."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from statistics import mean, median

from talk import Talk, tool
from talk_lines import a_day, call, euros, listing, marks, near, obj, rows, run, table, yes

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
MARKS = marks(
    reads="web_search open_page get_quote get_rate get_weather get_results run_python calculator query_table"
    " library_search",
    writes="place_hold save_note",
    destructive="cancel_hold delete_note",
)


def _talk(today: date | None = None) -> Talk:
    return Talk(TOOLS, MARKS, POLICY + (f"Current date: {today:%Y-%m-%d} ({today:%A})\n" if today else ""))


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
    return run(
        _talk(date(2025, 10, rng.randint(1, 28))),
        "how old and how long is the halden viaduct?",
        call("web_search", hits, query="Halden Viaduct age length"),
        call("open_page", page, url=url),
        f"It opened on 2 May {built}, so it is {2025 - built} years old [1]. It is {metres:,} m long (about"
        f" {metres * 3.28084:,.0f} feet) and has {arches} arches [1]. A travel site ranks it 4th among its"
        " ten great bridges [2].",
        "took 10 years to build i heard?",
        f"Not quite: work began in {early}, so it took about {built - early} years, not 10 [1]. A quarter of"
        f" the arches ({arches // 4}) stand in water.",
    )


def lake(rng: Random) -> Talk:
    """The user's wrong depth, square kilometres as miles, a density, a rounded population."""
    depth, area, people = rng.randint(402, 468), rng.randint(120, 480), rng.randint(51200, 98700)
    wrong = depth + rng.choice([20, 40, 50])
    page = f"Lake Sarno | depth_max_m={depth} | area_km2={area} | towns=7 | census_2021={people}"
    return run(
        _talk(),
        f"Lake Sarno is {wrong}m deep right? need it for a quiz",
        call("web_search", [obj(url="https://lakes.example.net/sarno", text=page)], query="Lake Sarno depth"),
        f"Not {wrong} m: the maximum depth given is **{depth} m**, {wrong - depth} m less [1].",
        "ok. area in sq miles? and ppl living there",
        f"{area} km² is about {area / 2.589988:.0f} square miles. In the 2021 census about"
        f" {round(people, -3):,} people lived in its seven shore towns, roughly {people / 7:,.0f} per town"
        " [1].",
    )


def shares(rng: Random) -> Talk:
    """A quote with a change in percent, a market value in billions, gains on the user's shares."""
    close, bought, count = rng.randint(14000, 22000), rng.randint(9000, 12000), rng.choice([25, 40, 60])
    price = close + rng.choice([-1, 1]) * rng.randint(120, 480)
    cap, yearly = rng.randint(41, 96) * 10**9 + 417_000_000, rng.choice([2.4, 3.2])
    quote = obj(symbol="NVRX", price=price / 100, previousClose=close / 100, currency="USD", marketCap=cap)
    quote |= obj(dividendPerShare=yearly, ts=1749567600 + rng.randint(0, 9) * 86400, exchange="XNAS")
    move = price - close
    gain = (price - bought) * count / 100
    return run(
        _talk(),
        "NVRX?",
        call("get_quote", quote, symbol="NVRX"),
        f"NVRX is at **${price / 100:.2f}**, {'up' if move > 0 else 'down'} ${abs(move) / 100:.2f}"
        f" ({move / close * 100:+.1f}%) from the previous close of ${close / 100:.2f}. The company is worth"
        f" about ${cap / 1e9:.1f} billion. Prices are delayed by 15 minutes.",
        f"i have {count} at {bought / 100:.2f}, whats my gain",
        f"You paid ${bought * count / 100:,.2f} and they're now worth ${price * count / 100:,.2f}: a gain of"
        f" **${gain:,.2f}**, or about {(price / bought - 1) * 100:.0f}%.",
        "and dividend",
        f"At ${yearly:.2f} per share a year, {count} shares bring ${yearly * count:.2f}, a yield of about"
        f" {yearly / price * 10000:.1f}% at today's price.",
    )


def exchange(rng: Random) -> Talk:
    """A rate as a decimal string, both directions, a fee, a changed amount."""
    rate, amount, more = rng.randint(10410, 11790) / 10000, rng.choice([250, 400]), rng.choice([600, 1000])
    data = f'{{"base":"EUR","quote":"USD","rate":"{rate:.4f}","date":"2025-06-{rng.randint(10, 27)}"}}'
    return run(
        _talk(),
        f"convert {amount} euro to usd",
        call("get_rate", data, base="EUR", quote="USD"),
        f"€{amount} is about ${near(amount * rate, 2)} (1 EUR = {rate:.4f} USD).",
        f"my bank takes 2% fee, and make it {more}",
        f"€{more:,} × {rate:.4f} = ${near(more * rate, 2)}. A 2% fee would be"
        f" ${near(more * rate * 0.02, 2)}, leaving ${near(more * rate * 0.98, 2)}.",
        "other way round, 100 usd?",
        f"One dollar is about €{1 / rate:.2f}, so $100 is roughly €{100 / rate:.2f} before any fee.",
    )


def weather(rng: Random) -> Talk:
    """Five days in Celsius told in Fahrenheit, wind in miles per hour, the rain in all, the coldest night."""
    start = a_day(rng, 0)
    high, low = rng.sample(range(9, 19), 5), rng.sample(range(-4, 6), 5)
    rain, wind = [0.0, rng.randint(12, 48) / 10, 0.0, rng.randint(60, 99) / 10, 0.0], rng.choice([10, 12, 15])
    days = [
        obj(date=str(start + timedelta(days=n)), tmax=high[n], tmin=low[n], rain_mm=rain[n], wind_ms=wind - n)
        for n in range(5)
    ]
    warm, cold = (start + timedelta(days=x.index(f(x))) for x, f in ((high, max), (low, min)))
    frost = sum(night < 0 for night in low)
    below = {
        0: "No night is",
        1: "One night is",
        2: "Two nights are",
        3: "Three nights are",
        4: "Four nights are",
    }
    return run(
        _talk(start),
        "weather for bergen till friday, Fahrenheit please!",
        call("get_weather", obj(city="Bergen", tz="Europe/Oslo", daily=days), city="Bergen", days=5),
        f"☀️ Warmest: **{warm:%A}** with {max(high) * 9 / 5 + 32:.0f} °F ({max(high)} °C)\n🥶 Coldest night:"
        f" **{cold:%A}** at {min(low) * 9 / 5 + 32:.0f} °F ({min(low)} °C)\n🌧️ Rain: Tuesday {rain[1]} mm,"
        f" Thursday {rain[3]} mm, {rain[1] + rain[3]:.1f} mm in all; the other three days stay dry.",
        "any frost? windy today?",
        f"{below[frost]} below freezing (32 °F). Today's wind is {wind} m/s, about {wind * 2.23694:.0f} mph;"
        f" by Friday it eases to {wind - 4} m/s.",
    )


def football(rng: Random) -> Talk:
    """Five matches: wins, points, goals; the gap to the leader."""
    score = [(2, 0), (1, 1), (3, rng.choice([1, 2])), (0, rng.randint(1, 3)), (rng.randint(2, 4), 1)]
    games = [
        obj(round=31 + n, home=n % 2 == 0, opponent=who, goals_for=ours, goals_against=theirs)
        for n, (who, (ours, theirs)) in enumerate(
            zip(("Ayr", "Cove", "Hume", "Rook", "Vale"), score, strict=True)
        )
    ]
    made, let = sum(a for a, _ in score), sum(b for _, b in score)
    points, gap = rng.randint(58, 66), rng.randint(2, 5)
    rank = [obj(pos=1, team="Hume", pts=points + gap, gp=35), obj(pos=2, team="Thornby", pts=points, gp=35)]
    return run(
        _talk(),
        "how did Thornby (North 1) do lately",
        call("get_results", obj(matches=games, table=rank), league="North 1", team="Thornby"),
        f"In their last 5 matches Thornby won three, drew one and lost one, {made}:{let} goals. That's 10 of"
        f" 15 possible points. They lost 0–{score[3][1]} to Rook in round 34, but won {score[4][0]}–1"
        " against Vale after that.",
        "still first?",
        f"No, second: Hume lead with {points + gap} points, {gap} more than Thornby's {points}. Each has"
        " played 35.",
        "season has 38 rounds, is it still possible",
        f"Yes. With 3 rounds left there are 9 points to win, so Thornby can reach {points + 9} at most.",
    )


def survey(rng: Random) -> Talk:
    """Rows from a query: mean, median, range, a share above a limit; a sum the agent does itself."""
    marks_ = sorted(rng.sample(range(48, 98), 8))
    names = rng.sample(["Ada", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal"], 8)
    text = "name|score\n" + "\n".join(f"{name}|{mark}" for name, mark in zip(names, marks_, strict=True))
    over = sum(mark >= 60 for mark in marks_)
    return run(
        _talk(),
        "average score in the table I uploaded? also median",
        call("query_table", text, sql="SELECT name, score FROM t ORDER BY score"),
        f"Across the 8 rows the mean is {near(mean(marks_), 1)} and the median {median(marks_):g}. Scores run"
        f" from {marks_[0]} ({names[0]}) to {marks_[-1]} ({names[-1]}), a range of {marks_[-1] - marks_[0]}"
        " points.",
        "pass is 60. pass rate?",
        f"{over} of 8 reach 60, so {over / 8 * 100:g}%.",
        f"if {names[0]} got 10 more what's the mean then",
        "Ten more points in total, spread over eight, lift the mean by 1.25 to about"
        f" {near(mean(marks_) + 1.25, 1)}.",
    )


def python_retry(rng: Random) -> Talk:
    """A traceback, a second try, floats rounded, seconds as minutes."""
    laps = [tenths / 10 for tenths in rng.sample(range(2480, 2795), 4)]
    code = f"laps = {[*map(str, laps)]}\nprint(sum(laps) / len(laps))"
    fixed = f"laps = {laps}\nprint(sum(laps), sum(laps) / len(laps), min(laps))"
    error = 'Traceback:\n  File "<stdin>", line 2\nTypeError: unsupported operand type(s) for +'
    total = sum(laps)
    best = min(laps)
    lines = [(n, f"{lap:.1f} s", f"+{lap - best:.1f} s") for n, lap in enumerate(laps, 1)]
    return run(
        _talk(),
        "my 1 km laps in sec: " + ", ".join(map(str, laps)) + " avg??",
        call("run_python", error, code=code),
        call("run_python", f"{total!r} {total / 4!r} {best!r}", code=fixed),
        f"Your average lap is about {near(total / 4, 1)} s, i.e. {total / 4 // 60:.0f} min"
        f" {near(total / 4 % 60)} s. The best was lap"
        f" {laps.index(best) + 1}.\n\n{table('Lap | Time | Behind best', lines)}\n\n(My first script failed"
        " because the times were text; the second one worked.)",
        "speed in km/h",
        f"4 km in {total:.1f} s is about {4 / total * 3600:.1f} km/h.",
    )


def savings(rng: Random) -> Talk:
    """A calculator's long float, simple against compound interest, a rule of thumb."""
    start, rate, years = rng.randrange(1000, 9000, 500), rng.choice([3, 4, 6]), rng.randint(5, 20)
    end = start * (1 + rate / 100) ** years
    simple = start * rate * years // 100
    return run(
        _talk(),
        f"{start} at {rate}% for {years} years compounding yearly",
        call("calculator", f"{end!r}", expression=f"{start}*(1+{rate}/100)^{years}"),
        f"After {years} years you'd have about **${end:,.2f}**, which is ${end - start:,.2f} in interest.",
        "without compounding?",
        f"Simple interest is ${start * rate // 100} a year, so ${simple:,} in {years} years and"
        f" ${start + simple:,} in total, about ${end - start - simple:,.0f} less.",
        "when does it double",
        f"By the rule of 72, in roughly {72 // rate} years (72 / {rate}).",
    )


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
    book = obj(item="b-7731", title="The Salt Road", author="M. Idris", year=2019, isbn=isbn, copies=copies)
    order = {2: "2nd", 3: "3rd"}[place]
    return run(
        _talk(today),
        "do you have The Salt Road at central",
        call("library_search", obj(hits=1, items=[book]), query="The Salt Road"),
        "We have three copies of *The Salt Road* (M. Idris, 2019). Central's is on loan until"
        f" {due:%A, %B %-d}; only Harbour has one on the shelf right now. Shall I put a hold on it at"
        " Central?",
        "ok",
        call("place_hold", obj(hold=hold, queue=place, branch="Central"), item="b-7731", branch="Central"),
        f"Done, hold {hold}; you're {order} in line. Once it arrives it waits 7 days for you.",
        "too slow, ill go to harbour. cancel that",
        f"Sure: cancel hold {hold}, giving up your {order} place. OK?",
        yes(rng),
        call("cancel_hold", obj(hold=hold, state="cancelled"), hold=hold),
        f"Cancelled. If you borrow the Harbour copy today, it's due in three weeks, on"
        f" {today + timedelta(days=21):%A, %B %-d}; two renewals could stretch that to nine weeks in all.",
    )


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
    note = obj(note=f"n{rng.randint(10, 99)}", saved=True)
    title = f"Call July {day.day}"
    end = tokyo + timedelta(minutes=long)
    return run(
        _talk(date(2025, 6, 27)),
        f"call on july {day.day} at {hour - 12}pm Berlin time, {long} min. when is that in NY and Tokyo?",
        call("run_python", out, code=code),
        f"On {berlin:%A, %B %-d}:\n\n- Berlin: {berlin:%-I %p}\n- New York: {york:%-I %p}, 6 hours behind\n"
        f"- Tokyo: {tokyo:%-I %p}, 7 hours ahead\n\nIn Tokyo it'd end at {end:%-I:%M %p}"
        f"{'' if end.day == day.day else ' the next day'}.",
        "save that as a note",
        call("save_note", note, title=title, text=out),
        f"Saved as “{title}” ({note['note']}).",
    )


def terse(rng: Random) -> Talk:
    """A small model: bare results and a percentage."""
    part, whole = rng.randint(13, 48) * 5, rng.choice([400, 500, 1000])
    root = rng.randint(12, 31)
    return run(
        _talk(),
        f"{part} of {whole} in %",
        call("calculator", f"{part / whole * 100:g}", expression=f"{part}/{whole}*100"),
        f"{part / whole * 100:g}%",
        f"sqrt {root * root}",
        call("calculator", f"{float(root)}", expression=f"sqrt({root * root})"),
        f"{root}",
        "and the rest of the first one",
        f"{whole - part} ({100 - part / whole * 100:g}%).",
    )


def portuguese_match(rng: Random) -> Talk:
    """Portuguese: a result, the points after it, a table with a gap."""
    goals, points = rng.choice([(2, 1), (3, 1), (1, 0)]), rng.randint(31, 44)
    match = obj(
        mandante="Leão do Norte", visitante="Porto Azul", placar=f"{goals[0]}-{goals[1]}", publico=18342
    )
    data = obj(
        jogo=match, tabela=[obj(time="Leão do Norte", pontos=points), obj(time="Porto Azul", pontos=30)]
    )
    return run(
        _talk(),
        "quanto foi o jogo do Leão do Norte ontem, Série C??",
        call("get_results", data, league="Série C", team="Leão do Norte"),
        f"O Leão do Norte venceu o Porto Azul por {goals[0]} a {goals[1]}, diante de cerca de 18 mil"
        " torcedores. ⚽",
        "e a tabela?",
        f"O Leão tem {points} pontos, {points - 30} a mais que o Porto Azul, que tem 30. Antes da vitória"
        f" eram {points - 3}.",
    )


def chinese_stock(rng: Random) -> Talk:
    """Chinese: a market value in hundreds of millions, the value of the user's shares."""
    price, shares_, cap = rng.randint(120, 480) / 10, rng.choice([300, 500, 800]), rng.randint(85, 460)
    data = obj(
        code="600XXX", name="江海股份", price=f"{price:.2f}", total_mv=cap * 10**8, unit="CNY", pct_chg=None
    )
    return run(
        _talk(),
        "江海股份现在多少钱?市值多大?",
        call("get_quote", data, symbol="江海股份"),
        f"江海股份现价{price:.2f}元,总市值约{cap}亿元(行情延迟15分钟)。",
        f"我有{shares_}股",
        f"按现价算,您的{shares_}股价值{price * shares_:,.0f}元。",
    )


def italian_notes(rng: Random) -> Talk:
    """Italian: a page with a height, an age, a note removed after a yes."""
    built, height = rng.randint(1210, 1389), rng.choice([47, 54, 61])
    note = f"n{rng.randint(100, 999)}"
    page = (
        f"Torre del Vento: costruita nel {built}, alta {height} m, 298 gradini. Ingresso 7,50 €; ridotto 5 €."
    )
    lines = ["due interi: 15 €", "un ridotto: 5 €", "totale: 20 €"]
    return run(
        _talk(date(2025, 11, 4)),
        "https://torri.example.it/vento quanto è alta la torre e quanti anni ha?",
        call("open_page", page, url="https://torri.example.it/vento"),
        f"È alta {height} metri e ha circa {2025 - built} anni: fu costruita nel {built} [1].",
        f"quanto spendiamo in 3, uno ridotto? e cancella la nota {note}",
        f"{listing(lines)}\n\nConfermi che elimino la nota {note}?",
        "si, eliminala",
        call("delete_note", obj(deleted=note), note=note),
        f"Fatto, la nota {note} è stata eliminata. Dividendo in tre parti uguali sarebbero {euros(20 / 3)} €"
        " a testa.",
    )


TEMPLATES = (
    viaduct, lake, shares, exchange, weather, football, survey, python_retry, savings, library,
    meeting, terse, portuguese_match, chinese_stock, italian_notes,
)  # fmt: skip
