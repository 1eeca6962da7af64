"""Clean conversations with offices: city, tax, university, transport, tickets, leave, insurance, games."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random

from talk import Talk, tool
from talk_lines import a_day, call, euros, listing, marks, money, month, near, obj, rows, run, table, yes

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
MARKS = marks(
    reads="get_issue get_tax_account get_transcript plan_trip search_events get_leave get_policy get_player",
    writes="report_issue buy_tickets request_leave file_claim spend_gems",
    destructive="drop_course refund_tickets withdraw_leave",
)


def _talk(today: date | None = None) -> Talk:
    return Talk(TOOLS, MARKS, POLICY + (f"It is {today:%A}, {today}.\n" if today else ""))


def pothole(rng: Random) -> Talk:
    """A report, its status after the write, a date, a corrected house number."""
    today, wrong = a_day(rng, rng.randint(0, 2)), rng.randint(12, 88)
    number, days = wrong + rng.choice([10, 100]), rng.choice([7, 10, 14])
    by = today + timedelta(days=days)
    issue = obj(issue=f"CT-{rng.randint(10000, 99999)}", status="OPEN", queue=None, repair_by=str(by))
    later = issue | obj(status="ASSIGNED", crew=4, queue=rng.randint(2, 6), depth_cm=None)
    return run(
        _talk(today),
        f"huge pothole at {wrong} Elm Road. sorry {number}!!",
        call("report_issue", issue, kind="pothole", place=f"{number} Elm Road"),
        f"Thanks! I reported the pothole at {number} Elm Road as **{issue['issue']}**. It should be repaired"
        f" by {by:%A, %B %-d}, {days} days from today.",
        "is someone on it already?",
        call("get_issue", later, issue=issue["issue"]),
        f"Yes, it has gone from open to assigned: crew 4 has it, with {later['queue']} jobs in its queue.",
        "till when can i come by the town hall on friday",
        "On Fridays it's open from 8 AM to noon, four hours in all. In an emergency, call 911.",
    )


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
    return run(
        _talk(now),
        f"What do I still owe for 2024? Number {ident}",
        call("get_tax_account", xml, taxpayer=ident),
        f"For 2024 you were assessed ${owed:,}.00 and have paid ${paid:,}.00,"
        f" {'a third' if paid * 3 == owed else 'a quarter'} of it. ${rest:,}.00 is open, due since March 31.",
        "omg. how much is the penalty if i pay today",
        f"1% per month begun, {months} months: ${fee:,.2f}. ${rest + fee:,.2f} would settle it all today.",
        "can't do all at once… 3 parts?",
        f"I can't arrange instalments here, but three equal parts would be ${near((rest + fee) / 3, 2)}"
        f" each. Do ask the town hall; it's open until {'noon' if now.weekday() == 4 else '4 PM'} today.",
    )


def transcript(rng: Random) -> Talk:
    """Credits added up, a weighted mean, what is left of 180, a share passed."""
    grades = [rng.choice([2.7, 3.0, 3.3, 3.7, 4.0]) for _ in range(5)]
    credits, before, ident = [6, 9, 6, 3, 6], rng.choice([60, 75, 90]), f"s{rng.randint(10**6, 10**7 - 1)}"
    names = ("Statistics", "Algebra", "Ethics", "Writing", "Databases")
    lines = list(zip(names, credits, grades, strict=True))
    total, points = sum(credits), sum(c * g for c, g in zip(credits, grades, strict=True))
    sheet = obj(student=ident, earned_before=before, term=rows("course ects grade", *lines))
    return run(
        _talk(),
        f"my gpa this term? {ident}",
        call("get_transcript", sheet, student=ident),
        f"Here's your term:\n\n{table('Course | ECTS | Grade', lines)}\n\nWeighted by credits ({total} ECTS)"
        f" your GPA is **{near(points / total, 2)}**.",
        "and without weights lol",
        f"The plain average of the five grades is {near(sum(grades) / 5, 2)}.",
        "how far am I from the 180",
        f"You had {before} ECTS before and earned {total} this term: {before + total} of 180, so"
        f" {180 - before - total} to go. That's {near((before + total) / 1.8)}% done.",
    )


def drop_course(rng: Random) -> Talk:
    """A deadline in weeks from the start of term, a yes, credits after the drop."""
    start, week = a_day(rng, 0), rng.choice([2, 3, 4])
    today, load = start + timedelta(days=7 * (week - 1) + rng.randint(0, 3)), rng.choice([27, 30, 33])
    end, ident = start + timedelta(days=27), f"s{rng.randint(1000000, 9999999)}"
    info = obj(student=ident, term_start=str(start), enrolled_ects=load, courses=[obj(id="MATH-210", ects=6)])
    return run(
        _talk(today),
        f"can I still drop MATH 210, id {ident}",
        call("get_transcript", info, student=ident),
        f"Yes. The term began on {start:%B %-d}, so we're in week {week}; you can drop without a mark until"
        f" the end of week 4, {end:%A, %B %-d}. You'd go from {load} to {load - 6} ECTS. Shall I drop"
        " MATH-210?",
        yes(rng, "yes drop it", "Please do, yes"),
        call("drop_course", obj(ok=True, enrolled_ects=load - 6), student=ident, course="MATH-210"),
        f"MATH-210 is dropped. You're now enrolled for {load - 6} ECTS, 6 fewer than before.",
    )


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
    return run(
        _talk(day),
        "train millford to seaton today after 5",
        call("plan_trip", text, start="Millford", goal="Seaton", at=f"{day}T17:00"),
        f"Two options:\n\n1. **{leave:%H:%M} → {end:%H:%M}**, {long // 60} h {long % 60} min, one change at"
        f" Oak Jn ({wait} minutes), 18.40\n2. **{slow:%H:%M} → {slow_end:%H:%M}**, direct, 2 h 13 min,"
        f" 14.90\n\nThe first one is {133 - long} minutes shorter, the second 3.50 cheaper.",
        "what if the first train is 10 min late",
        f"Then you'd reach Oak Jn at {first + timedelta(minutes=10):%H:%M} and miss the {second:%H:%M} by"
        f" {10 - wait} {'minute' if wait == 9 else 'minutes'}. The direct train avoids that risk.",
        "2 adults 1 child half price, direct?",
        "Two adults are 2 × 14.90 = 29.80, and a child at half price 7.45, so 37.25 together.",
    )


def tickets(rng: Random) -> Talk:
    """Three categories, a booking fee, a changed count, a card ending."""
    price, count = rng.randrange(3800, 7000, 100), rng.choice([3, 4])
    fee, card = rng.choice([150, 250]), rng.randint(1000, 9999)
    seats = rows("category cents left", ("A", price + 2000, 2), ("B", price, 61), ("C", price - 1700, 0))
    show = obj(event="E-55", title="The Tides", start="2025-11-15T19:30:00+01:00", fee_cents=fee, seats=seats)
    total = (count + 1) * (price + fee)
    done = obj(order=f"T{rng.randint(100000, 999999)}", total_cents=total, card_last4=str(card), sent="app")
    return run(
        _talk(),
        f"{count} tickets for the tides on nov 15",
        call("search_events", [show], query="The Tides"),
        f"*The Tides*, Saturday, November 15, 7:30 PM:\n\n- A: {money(price + 2000)} (only 2 left)\n- B:"
        f" {money(price)}\n- C: sold out\n\nPlus {money(fee)} booking fee each. {count} in B would be"
        f" {money(count * (price + fee))}. Book them?",
        f"make it {count + 1}, B is fine",
        call("buy_tickets", done, event="E-55", category="B", count=count + 1),
        f"🎟️ Booked {count + 1} × B for {money(total)} on your card ending in {card}; order {done['order']},"
        f" {money((count + 1) * fee)} of that in fees. The tickets are on your phone.",
        "until when can I give them back",
        "Until 48 hours before the start, so Thursday, November 13, 7:30 PM. 10% is kept.",
    )


def weekend(rng: Random) -> Talk:
    """Six events: how many fit a weekend, a price limit and an age; the price for a family."""
    today, cents = a_day(rng, 3), [rng.choice([900, 1200]), 2600, 0, 1500, rng.choice([3400, 3900]), 1100]
    days, ages = (1, 2, 2, 3, 3, 9), (6, 6, 0, 16, 6, 6)
    names = ("Ghost walk", "Circus", "Kite fair", "Film night", "Opera", "Puppets")
    events = rows("title price_cents min_age", *zip(names, cents, ages, strict=True))
    found = [e | obj(start=f"{today + timedelta(days=d)}T18:00") for e, d in zip(events, days, strict=True)]
    return run(
        _talk(today),
        "whats on sat/sun for a 7 yr old, max 20 bucks a head",
        call("search_events", obj(total=6, events=found), query="weekend family"),
        "Of the six events four are this weekend, but the Film night is from age 16, and the Circus ($26)"
        f" and the Opera ({money(cents[4])}) are above $20. That leaves one: the **Kite fair** on Saturday,"
        f" {today + timedelta(days=2):%B %-d}, 6 PM, free of charge.",
        "and friday? 3 of us",
        f"Tomorrow at 6 PM: the Ghost walk, from age 6, at {money(cents[0])} or {money(3 * cents[0])} for"
        " three.",
        "sorry forgot grandma",
        f"Then it's four tickets: 4 × {money(cents[0])} = {money(4 * cents[0])}.",
    )


def refund(rng: Random) -> Talk:
    """What is kept and what comes back; the user's wrong total."""
    cents, order = rng.choice([12600, 14400, 18800]), f"T{rng.randint(100000, 999999)}"
    count, hours = rng.choice([2, 4]), rng.randint(60, 140)
    kept = cents // 10
    found = [obj(order=order, title="Jazz Night", total_cents=cents, count=count, hours_to_start=hours)]
    back = obj(order=order, refund_cents=cents - kept, days_min=5, days_max=7)
    return run(
        _talk(),
        f"refund {order} please, it was {cents / 100 + 10:.0f} bucks",
        call("search_events", found, query=order),
        f"I see {count} tickets for Jazz Night for {money(cents)} (not ${cents / 100 + 10:.0f}), and it's"
        f" {hours} hours away, so a refund is possible. 10% ({money(kept)}) is kept,"
        f" you'd get {money(cents - kept)}. Go ahead?",
        yes(rng),
        call("refund_tickets", back, order=order),
        f"Done. {money(cents - kept)} will be back on your card in 5–7 days,"
        f" {money((cents - kept) // count)} per ticket.",
    )


def leave(rng: Random) -> Talk:
    """Working days of two weeks, a new balance after the write, a second request withdrawn after a yes."""
    today, have, old = a_day(rng, 2), rng.randint(14, 22), rng.choice([2.5, 4.0])
    first = today + timedelta(days=5 + 7 * rng.randint(2, 3))
    last = first + timedelta(days=11)
    info = obj(employee="E1182", entitlement=25, taken=25 - have, balance=float(have), carried_over=old)
    info |= obj(requests=[obj(id="LR-71", days=3, status="PENDING")])
    made = obj(request="LR-72", days=10, status="APPROVED", balance=have - 10)
    return run(
        _talk(today),
        "E1182. how many vacation days do I have",
        call("get_leave", info, employee="E1182"),
        f"Of your 25 days you've taken {25 - have}, so **{have}** are left, plus {old:g} carried over from"
        f" last year: {have + old:g} in total. A request for 3 days (LR-71) is pending.",
        f"great, two weeks off from {first:%b} {first.day}",
        call("request_leave", made, employee="E1182", first=str(first), last=str(last)),
        f"Approved: {first:%A, %B %-d} to {last:%A, %B %-d}, 10 working days. That leaves {have - 10} of the"
        f" {have} days; you're back on Monday, {last + timedelta(days=3):%B %-d}.",
        "then scrap the 3 pending ones",
        "You mean request LR-71 (3 days, pending). Shall I withdraw it?",
        yes(rng, "right"),
        call("withdraw_leave", obj(id="LR-71", status="WITHDRAWN"), request="LR-71"),
        "LR-71 is withdrawn, so only LR-72 stands.",
    )


def claim(rng: Random) -> Talk:
    """A deductible, the rest of a yearly limit, a premium per year."""
    number, damage = f"HH-{rng.randint(10, 99)}-{rng.randint(100000, 999999)}", rng.randint(11, 29) * 50
    premium, used = rng.choice([1850, 2240, 2690]), rng.choice([300, 400, 950])
    cover = obj(policy=number, type="HOUSEHOLD", deductible=150, limit_per_year=5000, paid_this_year=used)
    cover |= obj(premium_cents_monthly=premium, no_claims_years=3, renewal="2026-01-01")
    filed = obj(claim=f"CL{rng.randint(10000, 99999)}", state="RECEIVED", decision_days="7-10")
    return run(
        _talk(),
        f"washing machine leaked, damage is {damage}. policy {number}. what will i get?",
        call("get_policy", cover, policy=number),
        f"Sorry to hear that! With the $150 deductible, ${damage:,} of damage would pay ${damage - 150:,}."
        f" Your yearly limit is $5,000, of which ${5000 - used:,} is left. Shall I file it?",
        "pls",
        call("file_claim", filed, policy=number, amount=damage, cause="water leak"),
        f"Filed as {filed['claim']}. A decision takes 7–10 days. If it's paid in full,"
        f" ${5000 - used - damage + 150:,} of this year's limit would remain.",
        "whats my premium per year",
        f"{money(premium)} a month, so {money(12 * premium)} a year. The policy renews on January 1, 2026.",
    )


def game(rng: Random) -> Talk:
    """Experience to the next level in percent, gems spent, a balance that is too small for more."""
    goal, have, cost = rng.choice([4000, 5000, 8000]), rng.randint(22, 38) * 100, rng.choice([120, 150])
    gems, level, name = rng.randint(5, 7) * 100 + rng.randint(5, 95), rng.randint(17, 48), "Kestrel_9"
    left = gems - 3 * cost
    more, done = left // cost, obj(item="xp_boost", unit=cost, spent=3 * cost, gems=left)
    data = obj(player=name, level=level, xp=have, xp_next=goal, gems=gems, season=obj(no=7, ends_in_s=259200))
    return run(
        _talk(),
        f"hey its {name}, how far to lvl {level + 1}",
        call("get_player", data, player=name),
        f"You're level {level} with {have:,} of {goal:,} XP, so {goal - have:,} XP to go"
        f" ({near(have / goal * 100)}% done). 🎮 Season 7 ends in 3 days.",
        f"get me 3 xp boosts ({cost} each right?)",
        call("spend_gems", done, player=name, item="xp_boost", count=3),
        f"Got them: 3 boosts at {cost} gems, {3 * cost} in all. You had {gems}, now {left} gems are left.",
        "one more of those?",
        f"You have {left} gems, so {'that fits' if more else f'you are {cost - left} short'}: a boost is"
        f" {cost}." + (f" You'd be left with {left - cost}. Shall I buy it?" if more else ""),
    )


def terse(rng: Random) -> Talk:
    """A small model: one trip, one fare, one change of mind."""
    line, minutes, fare = rng.randint(2, 9), rng.randint(12, 29), rng.choice([2.4, 2.9, 3.2])
    trip = obj(line=f"Tram {line}", dep="08:05", arr=f"08:{5 + minutes:02}", zone=2, fare=f"{fare:.2f}")
    return run(
        _talk(),
        "central to zoo by 9",
        call("plan_trip", [trip], start="Central", goal="Zoo", at="09:00"),
        f"Tram {line}, 08:05 to 08:{5 + minutes:02}, {minutes} min.",
        "price both ways",
        f"{2 * fare:.2f} ({fare:.2f} each way).",
    )


def french_train(rng: Random) -> Talk:
    """French: times with h, a duration, a reduced fare for children."""
    minute, length, fare = rng.randint(10, 25), rng.choice([95, 110, 130]), rng.randrange(18, 46, 2)
    dep = datetime(2025, 6, rng.randint(2, 27), 9, minute)
    arr = dep + timedelta(minutes=length)
    trip = obj(train="TER 8517", depart=dep.isoformat(), arrivee=arr.isoformat(), tarif=fare, enfant_pct=50)
    return run(
        _talk(date(2025, 6, 1)),
        f"Bonjour, un train Dijon-Lyon le {dep.day} juin vers 9h ?",
        call("plan_trip", [trip], start="Dijon", goal="Lyon", at=dep.strftime("%Y-%m-%dT09:00")),
        f"Bonjour ! Le TER 8517 part à {dep:%-Hh%M} et arrive à {arr:%-Hh%M}, soit {length // 60} h"
        f" {length % 60:02} de trajet, pour {fare} € par adulte (moitié prix pour les enfants).",
        "on est 2 adultes et 3 enfants",
        f"Cela fait 2 × {fare} € + 3 × {fare // 2} € = {2 * fare + 3 * fare // 2} € en tout.",
    )


def swedish_leave(rng: Random) -> Talk:
    """Swedish: leave days left, a week off, the balance after it."""
    have, taken = rng.randint(12, 19), rng.randint(6, 11)
    first = a_day(rng, 0)
    last = first + timedelta(days=4)
    info = obj(anst="S-204", totalt=have + taken, uttagna=taken, kvar=have, sparade=0)
    made = obj(request="LR-9", days=5, status="GODKÄND", kvar=have - 5)
    when = f"{first.day} {month('swedish', first)}"
    return run(
        _talk(first - timedelta(days=rng.choice([14, 21]))),
        "hej, S-204 här. hur många semesterdagar har jag kvar?",
        call("get_leave", info, employee="S-204"),
        f"Hej! Du har {have} av {have + taken} semesterdagar kvar; {taken} är uttagna.",
        f"ta veckan från den {when}",
        call("request_leave", made, employee="S-204", first=str(first), last=str(last)),
        f"Klart: måndag {when} till fredag {last.day} {month('swedish', last)}, fem dagar. Då återstår"
        f" {have - 5} dagar.",
    )


def chinese_metro(rng: Random) -> Talk:
    """Chinese: stations, a transfer, an arrival time, fares for three."""
    stops, fare, minutes = rng.randint(8, 14), rng.choice([4, 5, 6]), rng.randint(25, 39)
    change = rng.randint(3, 6)
    route = obj(lines=["2号线", "10号线"], stations=stops, transfer=change, minutes=minutes, fare=fare)
    return run(
        _talk(),
        "从人民广场到动物园坐地铁怎么走?现在8点15分",
        call("plan_trip", obj(code=0, routes=[route]), start="人民广场", goal="动物园"),
        f"先坐2号线{change}站,换乘10号线再坐{stops - change}站,全程{stops}站,约{minutes}分钟,票价{fare}元。"
        f"现在出发,大约8点{15 + minutes}分到。",
        "三个人往返一共多少钱",
        f"每人往返{2 * fare}元,三个人一共{6 * fare}元。",
    )


def italian_museum(rng: Random) -> Talk:
    """Italian: full and reduced tickets, a discount in percent, a price per head."""
    full, count = rng.randrange(10, 24, 2), rng.randint(10, 26)
    show = obj(titolo="Luce e Ombra", intero_eur=full, ridotto_eur=full // 2, sconto_gruppi=0.2, da=10)
    net = full * count * 0.8
    lines = [
        f"Intero: {full} €",
        f"Ridotto: {full // 2} € (metà prezzo)",
        "Gruppi da 10 persone: 20% di sconto",
    ]
    return run(
        _talk(),
        "buongiorno, quanto costa la mostra Luce e Ombra?",
        call("search_events", obj(risultati=[show], totale=1), query="Luce e Ombra"),
        f"Buongiorno! Ecco i prezzi:\n\n{listing(lines)}",
        f"siamo in {count} adulti",
        f"{count} × {full} € = {full * count} €; con lo sconto del 20% pagate {euros(net)} €, cioè"
        f" {euros(net / count)} € a testa, e risparmiate {euros(full * count - net)} €.",
    )


TEMPLATES = (
    pothole, tax_late, transcript, drop_course, connection, tickets, weekend, refund, leave, claim,
    game, terse, french_train, swedish_leave, chinese_metro, italian_museum,
)  # fmt: skip
