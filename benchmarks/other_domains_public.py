"""Clean conversations with offices: city, tax, university, transport, tickets, leave, insurance, games."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Courteous, Script, a_day, comma, marked, near, rows, usd, yes
from talk import Talk, tool

POLICY = (
    "You are Civica, the front desk of a town and its partners.\n"
    "The town hall is open Monday to Thursday 8:00-16:00 and Friday 8:00-12:00.\n"
    "Late tax costs 1% per month begun. Courses can be dropped without a mark until the end of week 4.\n"
    "Tickets are refunded until 48 hours before, less 10%. Claims are paid less the deductible.\n"
    "Ask for a yes before you drop a course, refund tickets or withdraw leave.\n"
)
TOOLS = [
    tool("report_issue", "Report damage in the street", kind="string", place="string", note="string?"),
    tool("get_issue", "A report", issue="string"),
    tool("get_tax_account", "A tax account", taxpayer="string"),
    tool("get_transcript", "Courses and grades", student="string"),
    tool("drop_course", "Drop a course", student="string", course="string"),
    tool("plan_trip", "Connections", start="string", goal="string", at="string?"),
    tool("search_events", "Events and seats", query="string"),
    tool("buy_tickets", "Buy tickets", event="string", category="string", count="integer"),
    tool("refund_tickets", "Refund an order of tickets", order="string"),
    tool("get_leave", "Leave of an employee", employee="string"),
    tool("request_leave", "Ask for leave", employee="string", first="string", last="string"),
    tool("withdraw_leave", "Withdraw a request", request="string"),
    tool("get_policy", "An insurance policy", policy="string"),
    tool("file_claim", "File a claim", policy="string", amount="number", cause="string"),
    tool("get_player", "A game account", player="string"),
    tool("spend_gems", "Buy in the game shop", player="string", item="string", count="integer"),
]
MARKS = marked(
    TOOLS,
    writes="report_issue buy_tickets request_leave file_claim spend_gems",
    destructive="drop_course refund_tickets withdraw_leave",
)
_MONTHS = "januari februari mars april maj juni juli augusti september oktober november december"


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"It is {today:%A}, {today}.\n" if today else ""
    return Courteous(TOOLS, MARKS, POLICY + now, results)


def pothole(rng: Random) -> Talk:
    """A report, its status after the write, a date, a corrected house number."""
    today, wrong = a_day(rng, rng.randint(0, 2)), rng.randint(12, 88)
    number, days = wrong + rng.choice([10, 100]), rng.choice([7, 10, 14])
    by = today + timedelta(days=days)
    issue: dict[str, Any] = {"issue": f"CT-{rng.randint(10000, 99999)}", "status": "OPEN", "queue": None}
    issue |= {"repair_by": str(by)}
    later = issue | {"status": "ASSIGNED", "crew": 4, "queue": rng.randint(2, 6), "depth_cm": None}
    return _talk(issue, later, today=today).tell(f"""
U huge pothole at {wrong} Elm Road. sorry {number}!!
C report_issue kind=pothole place="{number} Elm Road"
A Thanks! I reported the pothole at {number} Elm Road as **{issue["issue"]}**. It should be repaired by \
{by:%A, %B %-d}, {days} days from today.
U is someone on it already?
C get_issue issue={issue["issue"]}
A Yes, it has gone from open to assigned: crew 4 has it, with {later["queue"]} jobs in its queue.
U till when can i come by the town hall on friday
A On Fridays it's open from 8 AM to noon, four hours in all. In an emergency, call 911.
""")


def tax_late(rng: Random) -> Talk:
    """An XML account: paid and open amounts, a surcharge by months begun, instalments."""
    owed, months, ident = rng.randint(9, 24) * 120, rng.choice([2, 3, 4]), f"TX{rng.randint(10000, 99999)}"
    paid = owed // rng.choice([3, 4])
    rest, fee = owed - paid, (owed - paid) * months / 100
    due, now = date(2025, 3, 31), date(2025, 3 + months, 16)
    xml = (
        f'<account id="{ident}"><year>2024</year><assessed>{owed}.00</assessed><paid>{paid}.00</paid>'
        f'<due>{due}</due><interest rate="0.01" unit="month"/></account>'
    )
    return _talk(xml, today=now).tell(f"""
U What do I still owe for 2024? Number {ident}
C get_tax_account taxpayer={ident}
A For 2024 you were assessed ${owed:,}.00 and have paid ${paid:,}.00, \
{"a third" if paid * 3 == owed else "a quarter"} of it. ${rest:,}.00 is open, due since March 31.
U omg. how much is the penalty if i pay today
A 1% per month begun, {months} months: ${fee:,.2f}. ${rest + fee:,.2f} would settle it all today.
U can't do all at once… 3 parts?
A I can't arrange instalments here, but three equal parts would be ${near((rest + fee) / 3, 2)} each. Do ask \
the town hall; it's open until {"noon" if now.weekday() == 4 else "4 PM"} today.
""")


def transcript(rng: Random) -> Talk:
    """Credits added up, a weighted mean, what is left of 180, a share passed."""
    grades = [rng.choice([2.7, 3.0, 3.3, 3.7, 4.0]) for _ in range(5)]
    credits, before, ident = [6, 9, 6, 3, 6], rng.choice([60, 75, 90]), f"s{rng.randint(10**6, 10**7 - 1)}"
    names = ("Statistics", "Algebra", "Ethics", "Writing", "Databases")
    lines = list(zip(names, credits, grades, strict=True))
    total, points = sum(credits), sum(c * g for c, g in zip(credits, grades, strict=True))
    courses = "\n".join(f"| {name} | {ects} | {grade} |" for name, ects, grade in lines)
    sheet = {"student": ident, "earned_before": before, "term": rows("course ects grade", *lines)}
    return _talk(sheet).tell(f"""
U my gpa this term? {ident}
C get_transcript student={ident}
A Here's your term:

| Course | ECTS | Grade |
|---|---|---|
{courses}

Weighted by credits ({total} ECTS) your GPA is **{near(points / total, 2)}**.
U and without weights lol
A The plain average of the five grades is {near(sum(grades) / 5, 2)}.
U how far am I from the 180
A You had {before} ECTS before and earned {total} this term: {before + total} of 180, so \
{180 - before - total} to go. That's {near((before + total) / 1.8)}% done.
""")


def drop_course(rng: Random) -> Talk:
    """A deadline in weeks from the start of term, a yes, credits after the drop."""
    start, week = a_day(rng, 0), rng.choice([2, 3, 4])
    today, load = start + timedelta(days=7 * (week - 1) + rng.randint(0, 3)), rng.choice([27, 30, 33])
    end, ident = start + timedelta(days=27), f"s{rng.randint(1000000, 9999999)}"
    info: dict[str, Any] = {"student": ident, "term_start": str(start), "enrolled_ects": load}
    info |= {"courses": [{"id": "MATH-210", "ects": 6}]}
    return _talk(info, {"ok": True, "enrolled_ects": load - 6}, today=today).tell(f"""
U can I still drop MATH 210, id {ident}
C get_transcript student={ident}
A Yes. The term began on {start:%B %-d}, so we're in week {week}; you can drop without a mark until the end \
of week 4, {end:%A, %B %-d}. You'd go from {load} to {load - 6} ECTS. Shall I drop MATH-210?
U {yes(rng, "yes drop it", "Please do, yes")}
C drop_course student={ident} course=MATH-210
A MATH-210 is dropped. You're now enrolled for {load - 6} ECTS, 6 fewer than before.
""")


def connection(rng: Random) -> Talk:
    """Two connections: durations, changes, the time to change, a delay that breaks one."""
    day, minute = a_day(rng, rng.randint(0, 6)), rng.randint(2, 9)
    leave = datetime(day.year, day.month, day.day, 17, minute)
    first, wait = leave + timedelta(minutes=rng.randint(34, 44)), rng.randint(6, 9)
    second = first + timedelta(minutes=wait)
    end = second + timedelta(minutes=rng.randint(48, 58))
    slow, slow_end = leave + timedelta(minutes=15), leave + timedelta(minutes=15 + 133)
    long = int((end - leave).total_seconds()) // 60
    text = (
        f"1) RE7 dep {leave:%H:%M} Millford > arr {first:%H:%M} Oak Jn; IC12 dep {second:%H:%M} > arr"
        f" {end:%H:%M} Seaton\n2) RB70 dep {slow:%H:%M} Millford > arr {slow_end:%H:%M} Seaton"
        " (direct)\nfare 18.40 / 14.90"
    )
    return _talk(text, today=day).tell(f"""
U train millford to seaton today after 5
C plan_trip start=Millford goal=Seaton at={day}T17:00
A Two options:

1. **{leave:%H:%M} → {end:%H:%M}**, {long // 60} h {long % 60} min, one change at Oak Jn ({wait} minutes), \
18.40
2. **{slow:%H:%M} → {slow_end:%H:%M}**, direct, 2 h 13 min, 14.90

The first one is {133 - long} minutes shorter, the second 3.50 cheaper.
U what if the first train is 10 min late
A Then you'd reach Oak Jn at {first + timedelta(minutes=10):%H:%M} and miss the {second:%H:%M} by \
{10 - wait} {"minute" if wait == 9 else "minutes"}. The direct train avoids that risk.
U 2 adults 1 child half price, direct?
A Two adults are 2 × 14.90 = 29.80, and a child at half price 7.45, so 37.25 together.
""")


def tickets(rng: Random) -> Talk:
    """Three categories, a booking fee, a changed count, a card ending."""
    price, count = rng.randrange(3800, 7000, 100), rng.choice([3, 4])
    fee, card = rng.choice([150, 250]), rng.randint(1000, 9999)
    seats = rows("category cents left", ("A", price + 2000, 2), ("B", price, 61), ("C", price - 1700, 0))
    show: dict[str, Any] = {"event": "E-55", "title": "The Tides", "start": "2025-11-15T19:30:00+01:00"}
    show |= {"fee_cents": fee, "seats": seats}
    total = (count + 1) * (price + fee)
    done: dict[str, Any] = {"order": f"T{rng.randint(100000, 999999)}", "total_cents": total}
    done |= {"card_last4": str(card), "sent": "app"}
    return _talk([show], done).tell(f"""
U {count} tickets for the tides on nov 15
C search_events query="The Tides"
A *The Tides*, Saturday, November 15, 7:30 PM:

- A: {usd(price + 2000)} (only 2 left)
- B: {usd(price)}
- C: sold out

Plus {usd(fee)} booking fee each. {count} in B would be {usd(count * (price + fee))}. Book them?
U make it {count + 1}, B is fine
C buy_tickets event=E-55 category=B count:={count + 1}
A 🎟️ Booked {count + 1} × B for {usd(total)} on your card ending in {card}; order {done["order"]}, \
{usd((count + 1) * fee)} of that in fees. The tickets are on your phone.
U until when can I give them back
A Until 48 hours before the start, so Thursday, November 13, 7:30 PM. 10% is kept.
""")


def weekend(rng: Random) -> Talk:
    """Six events: how many fit a weekend, a price limit and an age; the price for a family."""
    today, cents = a_day(rng, 3), [rng.choice([900, 1200]), 2600, 0, 1500, rng.choice([3400, 3900]), 1100]
    days, ages = (1, 2, 2, 3, 3, 9), (6, 6, 0, 16, 6, 6)
    names = ("Ghost walk", "Circus", "Kite fair", "Film night", "Opera", "Puppets")
    events = rows("title price_cents min_age", *zip(names, cents, ages, strict=True))
    found = [e | {"start": f"{today + timedelta(days=d)}T18:00"} for e, d in zip(events, days, strict=True)]
    return _talk({"total": 6, "events": found}, today=today).tell(f"""
U whats on sat/sun for a 7 yr old, max 20 bucks a head
C search_events query="weekend family"
A Of the six events four are this weekend, but the Film night is from age 16, and the Circus ($26) and the \
Opera ({usd(cents[4])}) are above $20. That leaves one: the **Kite fair** on Saturday, \
{today + timedelta(days=2):%B %-d}, 6 PM, free of charge.
U and friday? 3 of us
A Tomorrow at 6 PM: the Ghost walk, from age 6, at {usd(cents[0])} or {usd(3 * cents[0])} for three.
U sorry forgot grandma
A Then it's four tickets: 4 × {usd(cents[0])} = {usd(4 * cents[0])}.
""")


def refund(rng: Random) -> Talk:
    """What is kept and what comes back; the user's wrong total."""
    cents, order = rng.choice([12600, 14400, 18800]), f"T{rng.randint(100000, 999999)}"
    count, hours = rng.choice([2, 4]), rng.randint(60, 140)
    kept = cents // 10
    found = rows("order title total_cents count hours_to_start", (order, "Jazz Night", cents, count, hours))
    back = {"order": order, "refund_cents": cents - kept, "days_min": 5, "days_max": 7}
    return _talk(found, back).tell(f"""
U refund {order} please, it was {cents / 100 + 10:.0f} bucks
C search_events query={order}
A I see {count} tickets for Jazz Night for {usd(cents)} (not ${cents / 100 + 10:.0f}), and it's {hours} \
hours away, so a refund is possible. 10% ({usd(kept)}) is kept, you'd get {usd(cents - kept)}. Go ahead?
U {yes(rng)}
C refund_tickets order={order}
A Done. {usd(cents - kept)} will be back on your card in 5–7 days, {usd((cents - kept) // count)} per ticket.
""")


def leave(rng: Random) -> Talk:
    """Working days of two weeks, a new balance after the write, a second request withdrawn after a yes."""
    today, have, old = a_day(rng, 2), rng.randint(14, 22), rng.choice([2.5, 4.0])
    first = today + timedelta(days=5 + 7 * rng.randint(2, 3))
    last = first + timedelta(days=11)
    info: dict[str, Any] = {"employee": "E1182", "entitlement": 25, "taken": 25 - have}
    info |= {"balance": float(have), "carried_over": old}
    info |= {"requests": [{"id": "LR-71", "days": 3, "status": "PENDING"}]}
    made = {"request": "LR-72", "days": 10, "status": "APPROVED", "balance": have - 10}
    return _talk(info, made, {"id": "LR-71", "status": "WITHDRAWN"}, today=today).tell(f"""
U E1182. how many vacation days do I have
C get_leave employee=E1182
A Of your 25 days you've taken {25 - have}, so **{have}** are left, plus {old:g} carried over from last \
year: {have + old:g} in total. A request for 3 days (LR-71) is pending.
U great, two weeks off from {first:%b} {first.day}
C request_leave employee=E1182 first={first} last={last}
A Approved: {first:%A, %B %-d} to {last:%A, %B %-d}, 10 working days. That leaves {have - 10} of the {have} \
days; you're back on Monday, {last + timedelta(days=3):%B %-d}.
U then scrap the 3 pending ones
A You mean request LR-71 (3 days, pending). Shall I withdraw it?
U {yes(rng, "right")}
C withdraw_leave request=LR-71
A LR-71 is withdrawn, so only LR-72 stands.
""")


def claim(rng: Random) -> Talk:
    """A deductible, the rest of a yearly limit, a premium per year."""
    number, damage = f"HH-{rng.randint(10, 99)}-{rng.randint(100000, 999999)}", rng.randint(11, 29) * 50
    premium, used = rng.choice([1850, 2240, 2690]), rng.choice([300, 400, 950])
    cover: dict[str, Any] = {"policy": number, "type": "HOUSEHOLD", "deductible": 150, "limit_per_year": 5000}
    cover |= {"paid_this_year": used}
    cover |= {"premium_cents_monthly": premium, "no_claims_years": 3, "renewal": "2026-01-01"}
    filed = {"claim": f"CL{rng.randint(10000, 99999)}", "state": "RECEIVED", "decision_days": "7-10"}
    return _talk(cover, filed).tell(f"""
U washing machine leaked, damage is {damage}. policy {number}. what will i get?
C get_policy policy={number}
A Sorry to hear that! With the $150 deductible, ${damage:,} of damage would pay ${damage - 150:,}. Your \
yearly limit is $5,000, of which ${5000 - used:,} is left. Shall I file it?
U pls
C file_claim policy={number} amount:={damage} cause="water leak"
A Filed as {filed["claim"]}. A decision takes 7–10 days. If it's paid in full, \
${5000 - used - damage + 150:,} of this year's limit would remain.
U whats my premium per year
A {usd(premium)} a month, so {usd(12 * premium)} a year. The policy renews on January 1, 2026.
""")


def game(rng: Random) -> Talk:
    """Experience to the next level in percent, gems spent, a balance that is too small for more."""
    goal, have, cost = rng.choice([4000, 5000, 8000]), rng.randint(22, 38) * 100, rng.choice([120, 150])
    gems, level, name = rng.randint(5, 7) * 100 + rng.randint(5, 95), rng.randint(17, 48), "Kestrel_9"
    left = gems - 3 * cost
    more, done = left // cost, {"item": "xp_boost", "unit": cost, "spent": 3 * cost, "gems": left}
    data: dict[str, Any] = {"player": name, "level": level, "xp": have, "xp_next": goal, "gems": gems}
    data |= {"season": {"no": 7, "ends_in_s": 259200}}
    return _talk(data, done).tell(f"""
U hey its {name}, how far to lvl {level + 1}
C get_player player={name}
A You're level {level} with {have:,} of {goal:,} XP, so {goal - have:,} XP to go ({near(have / goal * 100)}% \
done). 🎮 Season 7 ends in 3 days.
U get me 3 xp boosts ({cost} each right?)
C spend_gems player={name} item=xp_boost count:=3
A Got them: 3 boosts at {cost} gems, {3 * cost} in all. You had {gems}, now {left} gems are left.
U one more of those?
A You have {left} gems, so {"that fits" if more else f"you are {cost - left} short"}: a boost is \
{cost}.{f" You'd be left with {left - cost}. Shall I buy it?" if more else ""}
""")


def terse(rng: Random) -> Talk:
    """A small model: one trip, one fare, one change of mind."""
    line, minutes, fare = rng.randint(2, 9), rng.randint(12, 29), rng.choice([2.4, 2.9, 3.2])
    trip = (f"Tram {line}", "08:05", f"08:{5 + minutes:02}", 2, f"{fare:.2f}")
    return _talk(rows("line dep arr zone fare", trip)).tell(f"""
U central to zoo by 9
C plan_trip start=Central goal=Zoo at=09:00
A Tram {line}, 08:05 to 08:{5 + minutes:02}, {minutes} min.
U price both ways
A {2 * fare:.2f} ({fare:.2f} each way).
""")


def french_train(rng: Random) -> Talk:
    """French: times with h, a duration, a reduced fare for children."""
    minute, length, fare = rng.randint(10, 25), rng.choice([95, 110, 130]), rng.randrange(18, 46, 2)
    dep = datetime(2025, 6, rng.randint(2, 27), 9, minute)
    arr = dep + timedelta(minutes=length)
    trip = ("TER 8517", dep.isoformat(), arr.isoformat(), fare, 50)
    return _talk(rows("train depart arrivee tarif enfant_pct", trip), today=date(2025, 6, 1)).tell(f"""
U Bonjour, un train Dijon-Lyon le {dep.day} juin vers 9h ?
C plan_trip start=Dijon goal=Lyon at={dep.strftime("%Y-%m-%dT09:00")}
A Bonjour ! Le TER 8517 part à {dep:%-Hh%M} et arrive à {arr:%-Hh%M}, soit {length // 60} h {length % 60:02} \
de trajet, pour {fare} € par adulte (moitié prix pour les enfants).
U on est 2 adultes et 3 enfants
A Cela fait 2 × {fare} € + 3 × {fare // 2} € = {2 * fare + 3 * fare // 2} € en tout.
""")


def swedish_leave(rng: Random) -> Talk:
    """Swedish: leave days left, a week off, the balance after it."""
    have, taken = rng.randint(12, 19), rng.randint(6, 11)
    first = a_day(rng, 0)
    last = first + timedelta(days=4)
    info = {"anst": "S-204", "totalt": have + taken, "uttagna": taken, "kvar": have, "sparade": 0}
    made = {"request": "LR-9", "days": 5, "status": "GODKÄND", "kvar": have - 5}
    when = f"{first.day} {_MONTHS.split()[first.month - 1]}"
    return _talk(info, made, today=first - timedelta(days=rng.choice([14, 21]))).tell(f"""
U hej, S-204 här. hur många semesterdagar har jag kvar?
C get_leave employee=S-204
A Hej! Du har {have} av {have + taken} semesterdagar kvar; {taken} är uttagna.
U ta veckan från den {when}
C request_leave employee=S-204 first={first} last={last}
A Klart: måndag {when} till fredag {last.day} {_MONTHS.split()[last.month - 1]}, fem dagar. Då återstår \
{have - 5} dagar.
""")


def chinese_metro(rng: Random) -> Talk:
    """Chinese: stations, a transfer, an arrival time, fares for three."""
    stops, fare, minutes = rng.randint(8, 14), rng.choice([4, 5, 6]), rng.randint(25, 39)
    change = rng.randint(3, 6)
    routes = rows("lines stations transfer minutes fare", (["2号线", "10号线"], stops, change, minutes, fare))
    return _talk({"code": 0, "routes": routes}).tell(f"""
U 从人民广场到动物园坐地铁怎么走?现在8点15分
C plan_trip start=人民广场 goal=动物园
A 先坐2号线{change}站,换乘10号线再坐{stops - change}站,全程{stops}站,约{minutes}分钟,票价{fare}元。\
现在出发,大约8点{15 + minutes}分到。
U 三个人往返一共多少钱
A 每人往返{2 * fare}元,三个人一共{6 * fare}元。
""")


def italian_museum(rng: Random) -> Talk:
    """Italian: full and reduced tickets, a discount in percent, a price per head."""
    full, count = rng.randrange(10, 24, 2), rng.randint(10, 26)
    shows = rows("titolo intero_eur ridotto_eur sconto_gruppi da", ("Luce e Ombra", full, full // 2, 0.2, 10))
    net = full * count * 0.8
    return _talk({"risultati": shows, "totale": 1}).tell(f"""
U buongiorno, quanto costa la mostra Luce e Ombra?
C search_events query="Luce e Ombra"
A Buongiorno! Ecco i prezzi:

- Intero: {full} €
- Ridotto: {full // 2} € (metà prezzo)
- Gruppi da 10 persone: 20% di sconto
U siamo in {count} adulti
A {count} × {full} € = {full * count} €; con lo sconto del 20% pagate {comma(net)} €, cioè \
{comma(net / count)} € a testa, e risparmiate {comma(full * count - net)} €.
""")


TEMPLATES = (
    pothole, tax_late, transcript, drop_course, connection, tickets, weekend, refund, leave, claim,
    game, terse, french_train, swedish_leave, chinese_metro, italian_museum,
)  # fmt: skip
