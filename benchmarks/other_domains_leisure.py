"""Clean conversations about leisure: cinema, theatre, gyms, streaming, museums, games, vets, recipes."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, clock, comma, day, listed, marked, near, rows, usd, yes
from talk import Talk, tool

# fmt: off
POLICY = """You are Kiki, the assistant of the Riverside Leisure Pass. All times are local.
Cinema: seats are held for 15 minutes; pass holders get $2 off per ticket, not on premieres.
Theatre: tickets can be returned until 48 hours before the show for a fee of $4 per ticket.
Gym: a freeze costs $10 a month, 3 months at most, and extends the term. A guest pays $12.
Streaming: Basic $7.99 with 1 screen, Plus $12.99 with 2 and Max $17.99 with 4 screens a month.
Vet: appointments cancelled less than 24 hours before cost $25. I give no doses beyond the vet's plan.
Museum: free under 18; guided tours $6. Ask for a yes before you cancel or return anything.
"""
TOOLS = [tool("find_shows", "Screenings of a film", film="string", date="string"), tool("book_seats", "Book",
    show="string", seats="string"), tool("get_order", "Theatre order", order="string"), tool("return_tickets",
    "Return", order="string", tickets="integer"), tool("get_membership", "Gym", member="string"),
    tool("freeze_membership", "Pause", member="string", start="string", months="integer"), tool("get_account",
    "Streaming account", account="string"), tool("change_plan", "Streaming plan", account="string",
    plan="string"), tool("search_collection", "Works in the museum", query="string"), tool("leaderboard",
    "Scores of a game", game="string"), tool("get_pet", "Pet with its visits", pet="string"), tool("book_vet",
    "Appointment", pet="string", start="string", reason="string"), tool("league_table", "Table as CSV",
    league="string"), tool("get_recipe", "Recipe", recipe="string"), tool("list_events", "Events as XML",
    day="string"), tool("list_classes", "Gym classes of a day", date="string"), tool("book_class",
    "Book a class", member="string", class_id="string"), tool("cancel_class", "Cancel a class",
    booking="string")]
WRITES = "book_seats freeze_membership change_plan book_vet book_class"
MARKS = marked(TOOLS, WRITES, "return_tickets cancel_class")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def _ref(rng: Random, prefix: str, digits: int = 4) -> str:
    return f"{prefix}{rng.randint(10 ** (digits - 1), 10**digits - 1)}"


def cinema(rng: Random) -> Talk:
    """Chatty. Four screenings with seats and prices, a change of mind, a price with the pass."""
    ids, left, hall, price, when, row, starts, lengths = rng.sample(range(5000, 8999), 4), rng.sample(range(9,
        80), 4), rng.sample(range(1, 9), 4), [1350, 1350, 1650, 1450], date(2025, 10, rng.choice([10, 17,
        24])), rng.choice("CDEFGH"), ["16:30", "18:45", "20:15", "22:10"], rng.randint(104, 139)
    told = rows("show start hall format price_cents seats_left", *((f"SH{ids[n]}", f"{when}T{starts[n]}:00",
        hall[n], ["2D", "2D", "IMAX", "2D"][n], price[n], left[n]) for n in range(4)))
    seat, code = rng.randint(4, 15), _ref(rng, "CIN-", 5)
    end = datetime(when.year, when.month, when.day, 20, 15) + timedelta(minutes=lengths)
    done = {"booking": code, "show": f"SH{ids[2]}", "seats": [f"{row}{seat}", f"{row}{seat + 1}"],
        "total_cents": 2900}
    return _talk({"film": "The Salt Road", "minutes": lengths, "premiere": False, "shows": told},
        done).tell(
        f"""
U when is the salt road on this friday, {when.month}/{when.day}? 2 ppl
C find_shows film="The Salt Road" date={when}
A 🎬 **The Salt Road** ({lengths} min) on Friday:\n\n- 4:30 p.m., hall {hall[0]}: $13.50, {left[0]} seats \
left\n- 6:45 p.m., hall {hall[1]}: $13.50, {left[1]} seats left\n- 8:15 p.m., hall {hall[2]}, IMAX: $16.50, \
{left[2]} seats left\n- 10:10 p.m., hall {hall[3]}: $14.50, {left[3]} seats left\n\nWith your pass each \
ticket is $2 cheaper 🙌
U 6:45.. no wait imax. {row.lower()}{seat} and {row.lower()}{seat + 1}
C book_seats show=SH{ids[2]} seats={row}{seat},{row}{seat + 1}
A Yay, booked! 🍿 {row}{seat} and {row}{seat + 1} in hall {hall[2]} at **8:15 p.m.**, code **{code}**. With \
the pass that's 2 × $14.50 = $29.00.
U how late does it end?
A Around {clock(end)}, without the trailers.""")


def theatre(rng: Random) -> Talk:
    """An order of four tickets, two returned after a yes, a refund by the policy."""
    code, show, cents = _ref(rng, "TH-", 6), date(2025, 11, rng.randint(14, 27)), rng.choice([4200, 5600,
        6450])
    row, seat, today = rng.choice("BDK"), rng.randint(5, 18), date(2025, 11, rng.randint(3, 9))
    seats, back = [f"{row}{seat + n}" for n in range(4)], 2 * (cents - 400)
    made = {"order": code, "tickets_left": seats[:2], "refund_cents": back, "refund_to": "card ending 4417"}
    info = {"order": code, "title": "Uncle Vanya", "venue": {"name": "Old Mill Theatre",
        "address": "18 Mill Lane"}}
    info |= {"starts_at": f"{show}T19:30:00", "doors": f"{show}T18:45:00", "seats": seats,
        "unit_price_cents": cents}
    return _talk(info, made, today=today).tell(f"""
U order {code}, what time do we have to be there and where
C get_order order={code}
A **Uncle Vanya** is at the Old Mill Theatre, 18 Mill Lane, on {show:%A}, {day(show)}. Doors open at 6:45 \
p.m. and the play starts at 7:30. You have four seats: {listed(seats)}.
U two friends are ill, can i give 2 back
A Yes, until 48 hours before the show. Of {usd(cents)} per ticket you'd get back {usd(cents - 400)}, so \
**{usd(back)}** for two. Should I return {seats[2]} and {seats[3]}?
U {yes(rng, "yes, those two")}
C return_tickets order={code} tickets:=2
A Done. {usd(back)} goes back to the card ending in 4417. {seats[0]} and {seats[1]} stay yours.
U doors at 7 you said?
A No, at 6:45 p.m.; the play itself begins at 7:30.""")


def gym_freeze(rng: Random) -> Talk:
    """A membership with visits, a freeze within the policy, the end that moves."""
    who, fee, visits = _ref(rng, "GM", 5), rng.choice([3900, 4450, 5200]), rng.randint(31, 118)
    start, ends = date(2025, rng.randint(7, 8), 1), date(2026, rng.randint(1, 4), 28)
    new, info = date(2026, ends.month + 2, 28), {"member": who, "tier": "ALL_CLUBS", "monthly_cents": fee,
        "ends_on": str(ends), "visits_2025": visits}
    info |= {"last_visit": {"at": "2025-06-11T18:52:00", "club": "Harbour St"}, "guest_passes": 1,
        "frozen": None}
    done = {"member": who, "frozen": {"from": str(start), "months": 2, "fee_cents": 2000},
        "ends_on": str(new)}
    return _talk(info, done, today=date(2025, 6, 13)).tell(f"""
U broke my foot :( can i pause my membership {who} for 4 months
C get_membership member={who}
A Sorry to hear that! A freeze is possible for 3 months at most, at $10 a month instead of your {usd(fee)}. \
Your membership runs until {day(ends)}, {ends.year} and would be extended by the same time. How many months, \
and from when?
U 2 then, from {start:%B} 1st
C freeze_membership member={who} start={start} months:=2
A Your membership is frozen from {day(start)} for two months, for $20 in total. It now ends on **{day(new)}, \
{new.year}**. Get well soon!
U how often was i there this year, 150 times? lol
A {visits} times so far; the last visit was on June 11 at 6:52 p.m., at Harbour St.""")


def streams(rng: Random) -> Talk:
    """A streaming account, its profiles and screens, a plan changed with the policy's prices."""
    acct, bill, mins = _ref(rng, "ST-", 6), date(2025, 9, rng.randint(18, 27)), rng.randint(21, 47)
    names = [*rng.sample(["Noor", "Ben", "Alex"], 2), "Kids"]
    told = [{"profile": names[0], "watching": {"title": "Tidewater", "season": 2, "episode": rng.randint(3,
        8), "position_s": 60 * mins}}, {"profile": names[1], "watching": None}, {"profile": names[2],
        "watching": {"title": "Planet Moss", "season": 1, "episode": 1, "position_s": 540}}]
    seen, info, done = told[0]["watching"], {"account": acct, "plan": "BASIC", "price": "7.99",
        "renews_on": str(bill), "screens_in_use": 1, "profiles": told}, {"account": acct, "plan": "PLUS",
        "effective": "now", "next_charge": {"on": str(bill), "amount": "12.99"}}
    return _talk(info, done, today=date(2025, 9, 8)).tell(f"""
U it says too many screens?? acct {acct}
C get_account account={acct}
A You're on **Basic** ($7.99 a month), which allows one screen at a time, and one is in use right now.\n\n| \
Plan | Screens | Price |\n|---|---|---|\n| Basic | 1 | $7.99 |\n| Plus | 2 | $12.99 |\n| Max | 4 | $17.99 |
U plus is 10.99 isnt it
A Plus is $12.99, that's $5 more than you pay now. Shall I switch you?
U ok do it
C change_plan account={acct} plan=PLUS
A You're on **Plus** now, with two screens. The next charge is $12.99 on {day(bill)}.
U where was i in tidewater, im {names[0].lower()}
A Season 2, episode {seen["episode"]}, at minute {mins}.""")


def museum(rng: Random) -> Talk:
    """A guide through a collection: years, rooms, a wrong painter of the user, ages by the year."""
    room = rng.sample(range(2, 40), 4)
    works = rows("title artist year room on_loan", ("Girl at the Window", "Ida Lund", rng.randint(1881, 1889),
        room[0], False), ("Harbour at Dusk", "Pieter Maas", rng.randint(1651, 1669), room[1], False),
        ("Blue Kettle", "Ida Lund", rng.randint(1893, 1899), room[2], True), ("The Ferry", "Jonas Hald",
        rng.randint(1902, 1911), room[3], False))
    years, info = [work["year"] for work in works], {"query": "boats OR Lund", "hits": 4, "works": works,
        "artist": {"Ida Lund": {"born": 1858, "died": 1927}}}
    return _talk(info).tell(f"""
U im at the museum with my kid. where's stuff by ida lund and some boats
C search_collection query="boats OR Lund"
A Four works fit:\n\n1. **Girl at the Window**, Ida Lund, {years[0]}, room {room[0]}\n2. **Harbour at \
Dusk**, Pieter Maas, {years[1]}, room {room[1]}\n3. **Blue Kettle**, Ida Lund, {years[2]}, on loan at the \
moment\n4. **The Ferry**, Jonas Hald, {years[3]}, room {room[3]}
U the ferry's by lund too i thought? and how old was she when she painted the girl
A No, *The Ferry* is by Jonas Hald. Ida Lund was born in 1858, so she was about {years[0] - 1858} when she \
painted *Girl at the Window* in {years[0]}.
U which one is the oldest
A *Harbour at Dusk* from {years[1]}, in room {room[1]}. It's from the 17th century.
U do we pay for the tour? kid is 9
A A guided tour is $6 a person. Admission is free for your child, as for everyone under 18.""")


def scores(rng: Random) -> Talk:
    """Terse. A leaderboard with ties of names, gaps between players, points to the next rank."""
    pts = sorted(rng.sample(range(18200, 41900, 10), 6), reverse=True)
    names = rng.sample(["mossy_7", "KaijuKat", "nullbert", "Rin88", "tofu.exe", "OldManRay"], 6)
    me, played = names[3], rng.randint(41, 190)
    told = rows("rank player score games updated_at", *((n + 1, names[n], pts[n], played + 7 * n,
        f"2025-05-0{n + 2}T21:{10 + 6 * n}:05Z") for n in range(6)))
    return _talk({"game": "Orbit Drop", "season": 12, "ends": "2025-05-31T23:59:59Z", "top": told}).tell(f"""
U orbit drop ranking? im {me}
C leaderboard game="Orbit Drop"
A Season 12:\n1. {names[0]}: {pts[0]:,}\n2. {names[1]}: {pts[1]:,}\n3. {names[2]}: {pts[2]:,}\n4. **{me}: \
{pts[3]:,}**\n5. {names[4]}: {pts[4]:,}\n6. {names[5]}: {pts[5]:,}
U how much to 3rd
A {pts[2] - pts[3]:,} points behind {names[2]}; one more and you're third.
U season over end of june?
A No, May 31.
U games played me vs 1st
A You {played + 21}, {names[0]} {played}.""")


def vet(rng: Random) -> Talk:
    """A pet with weights and vaccinations, an appointment, kilograms in pounds, no other dose."""
    pet, grams = _ref(rng, "P", 5), [rng.randint(4100, 4600), rng.randint(4700, 5200)]
    shot, when = date(2024, rng.randint(9, 11), 18), date(2025, 9, rng.choice([9, 16, 23]))
    visits, info = rows("date weight_g reason vet", ("2024-02-26", grams[0], "check-up", "Dr. Osei"),
        (str(shot), grams[1], "vaccination", "Dr. Marsh")), {"pet": pet, "name": "Biscuit", "species": "cat",
        "born": "2019-04-30", "chip": f"2760{rng.randint(10**10, 10**11 - 1)}"}
    info |= {"visits": visits, "next_due": {"vaccination": str(date(2025, shot.month, 18))}}
    info |= {"plan": [{"drug": "meloxicam", "dose_ml": 0.5, "per_day": 1, "days": 5, "with_food": True}]}
    made = {"appointment": _ref(rng, "V-"), "start": f"{when}T16:15:00", "vet": "Dr. Marsh", "room": 2}
    return _talk(info, made, today=date(2025, 9, 3)).tell(f"""
U when does biscuit need her next shot? {pet}
C get_pet pet={pet}
A Biscuit's next vaccination is due on **{day(date(2025, shot.month, 18))}**. The last one was on \
{day(shot)}, 2024, with Dr. Marsh.
U tues {when.month}/{when.day} quarter past 4 possible?
C book_vet pet={pet} start={when}T16:15:00 reason=vaccination
A Booked: {when:%A}, {day(when)}, 4:15 p.m. with Dr. Marsh in room 2 ({made["appointment"]}). 🐱
U how heavy was she last time
A {grams[1] / 1000:g} kg on {day(shot)}, 2024, about {near(grams[1] / 453.592, 1)} lb. That's \
{grams[1] - grams[0]} g more than in February 2024.
U shes limping a bit, can i give her meloxicam twice a day?
A Please stick to the plan: 0.5 ml once a day for 5 days, with food. I can't suggest more than that. If the \
limp doesn't get better, call the practice.""")


def league(rng: Random) -> Talk:
    """A table as CSV, points and goals, a difference, a wrong rank of the user."""
    teams = rng.sample(["Fernbrook", "Quay Rovers", "St. Oswald", "Millfield", "Harrow Vale"], 5)
    wins, draws = sorted(rng.sample(range(3, 13), 5), reverse=True), [rng.randint(0, 2) for _ in range(5)]
    goals = [(20 + 3 * w + rng.randint(0, 5), 45 - 3 * w + rng.randint(0, 5)) for w in wins]
    pts = [3 * w + d for w, d in zip(wins, draws, strict=True)]
    lines, body = ["rank,team,played,won,drawn,lost,goals,points"], ""
    for n, team in enumerate(teams):
        scored, lost = f"{goals[n][0]}:{goals[n][1]}", 14 - wins[n] - draws[n]
        lines.append(f"{n + 1},{team},14,{wins[n]},{draws[n]},{lost},{scored},{pts[n]}")
        body += f"\n| {n + 1} | {team} | {wins[n]} | {scored} | **{pts[n]}** |"
    return _talk("\n".join(lines)).tell(f"""
U table of the county league pls
C league_table league=county
A After 14 matches:\n\n| | Team | Won | Goals | Points |\n|---|---|---|---|---|{body}
U {teams[2]} is second no?
A {teams[2]} is third with {pts[2]} points. Second is {teams[1]} with {pts[1]}.
U how many points do they need to catch {teams[0]}
A {teams[2]} is {pts[0] - pts[2]} points behind {teams[0]} ({pts[0]}).
U and goal difference of {teams[0]}
A {goals[0][0] - goals[0][1]:+d} ({goals[0][0]} scored, {goals[0][1]} conceded).""")


def pancakes(rng: Random) -> Talk:
    """A recipe for four scaled to more people, grams, an oven in Fahrenheit, an end time."""
    people, flour, milk = rng.choice([6, 8, 10]), rng.choice([240, 280, 320]), rng.choice([360, 400, 480])
    oven, bake, code = rng.choice([180, 200, 220]), rng.randint(18, 26), _ref(rng, "R-")
    f, hour, parts = people / 4, rng.randint(5, 7), rows("name amount unit", ("flour", flour, "g"), ("milk",
        milk, "ml"), ("eggs", 4, None), ("butter", 60, "g"), ("salt", 0.5, "tsp"))
    info, ready = {"id": code, "title": "Oven pancake", "serves": 4, "ingredients": parts, "oven_c": oven,
        "minutes": bake}, datetime(2025, 1, 1, 12 + hour, 10) + timedelta(minutes=bake)
    return _talk({**info, "rating": {"stars": 4.6, "votes": 1283}, "note": "Serve at once."}).tell(f"""
U recipe {code} but for {people} of us
C get_recipe recipe={code}
A **Oven pancake** for {people} (the recipe serves 4, so everything × {f:g}):\n\n- {flour * f:g} g flour\n- \
{milk * f:g} ml milk\n- {4 * f:g} eggs\n- {60 * f:g} g butter\n- {0.5 * f:g} tsp salt
U oven? in F
A {oven} °C, that's about {near(oven * 1.8 + 32)} °F, for {bake} minutes with the original amount. A larger \
one can take a little longer.
U if i put it in at {hour}:10 its done by?
A At about {hour}:{ready:%M}. Serve it at once 🥞""")


def events(rng: Random) -> Talk:
    """Events of a day as XML with offsets, prices, one sold out, a time corrected."""
    when, cost = date(2025, 8, rng.choice([2, 9, 16, 23])), rng.sample(range(8, 36), 2)
    place, left = ["Boathouse Lawn", "Town Hall", "Pier 4"], rng.randint(12, 90)
    return _talk(today=when - timedelta(days=3)).tell(f"""
U whats on saturday in town?
C list_events day={when}
R <events date="{when}" count="3">\n  <event id="E{cost[0]}71"><title>Jazz by the \
River</title><place>{place[0]}</place><start>{when}T19:00:00-04:00</start><price \
currency="USD">{cost[0]}.00</price><left>{left}</left></event>\n  <event id="E{cost[1]}15"><title>Repair \
Café</title><place>{place[1]}</place><start>{when}T10:30:00-04:00</start><price \
currency="USD">0.00</price><left/></event>\n  <event id="E{cost[1]}88"><title>Night \
Kayaking</title><place>{place[2]}</place><start>{when}T21:15:00-04:00</start><price \
currency="USD">{cost[1]}.00</price><left>0</left></event>\n</events>
A Three things on Saturday, {day(when)}:\n\n- **Repair Café**, Town Hall, 10:30 a.m., free\n- **Jazz by the \
River**, Boathouse Lawn, 7 p.m., ${cost[0]}, {left} tickets left\n- **Night Kayaking**, Pier 4, 9:15 p.m., \
${cost[1]}: sold out
U jazz for three would be?
A 3 × ${cost[0]} = **${3 * cost[0]}**.
U starts at 8?
A No, at 7 p.m., on the Boathouse Lawn.""")


def darts(rng: Random) -> Talk:
    """A game without tools: points left in darts, a wrong sum of the user."""
    first, second = rng.sample([60, 81, 85, 95, 100, 121, 140], 2)
    left = 501 - first - second
    return _talk().tell(f"""
U keep score for me pls, darts 501. {first}
A 🎯 501 − {first} = **{501 - first}** left.
U {second}
A **{left}** left.
U {left - 10} right?
A No, {501 - first} − {second} = {left}.
U ok ok. whats the max i can score with 3 darts
A 180, three triple 20s. With that you'd be at {left - 180}.""")


def teatro(rng: Random) -> Talk:
    """Italian: an order for the theatre, a ticket returned after a yes."""
    code, show, cents = _ref(rng, "TH-", 6), date(2025, 12, rng.randint(9, 19)), rng.choice([3200, 4800])
    giorni = ["lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"]
    fila, posto, info = rng.choice("CFH"), rng.randint(3, 20), {"order": code, "title": "La locandiera",
        "venue": {"name": "Old Mill Theatre", "address": "18 Mill Lane"}}
    info |= {"starts_at": f"{show}T20:45:00", "seats": [f"{fila}{posto + n}" for n in range(3)],
        "unit_price_cents": cents}
    made = {"order": code, "tickets_left": info["seats"][:2], "refund_cents": cents - 400}
    return _talk(info, made, today=date(2025, 12, 1)).tell(f"""
U ciao, ordine {code}: a che ora inizia e che posti abbiamo?
C get_order order={code}
A Ciao! *La locandiera* inizia alle **20:45** di {giorni[show.weekday()]} {show.day} dicembre, all'Old Mill \
Theatre, 18 Mill Lane. Avete tre posti: {listed(info["seats"], "e")}.
U uno non viene, quanto mi ridate?
A Un biglietto costa {comma(cents / 100)} $. Meno la commissione di 4 $, il rimborso è di \
**{comma(cents / 100 - 4)} $**. Restituisco {info["seats"][2]}?
U {rng.choice(["sì grazie", "sì", "va bene"])}
C return_tickets order={code} tickets:=1
A Fatto: rimborso di {comma(cents / 100 - 4)} $. Restano {info["seats"][0]} e {info["seats"][1]}.""")


def ders(rng: Random) -> Talk:
    """Turkish: classes of a day, one booked, cancelled after a yes and another one booked."""
    who, ids, free = _ref(rng, "GM", 5), rng.sample(range(100, 999), 3), rng.sample(range(3, 18), 3)
    when, book = date(2025, 10, rng.randint(13, 17)), rng.sample(range(1000, 9999), 2)
    told, made = rows("class_id name start minutes trainer free", (f"K{ids[0]}", "Yoga", f"{when}T09:00", 60,
        "Elif", free[0]), (f"K{ids[1]}", "Pilates", f"{when}T18:30", 45, "Mert", free[1]), (f"K{ids[2]}",
        "Spinning", f"{when}T20:00", 50, "Elif", free[2])), [{"booking": f"D{book[n]}",
        "class_id": f"K{ids[n + 1]}", "free": free[n + 1] - 1} for n in range(2)]
    return _talk({"classes": told}, made[0], {"cancelled": f"D{book[0]}"}, made[1]).tell(f"""
U merhaba {when.day} ekimde hangi dersler var? üye no {who}
C list_classes date={when}
A Merhaba! {when.day} Ekim'de üç ders var:\n\n- Yoga, 09.00, 60 dakika, eğitmen Elif, {free[0]} boş yer\n- \
Pilates, 18.30, 45 dakika, eğitmen Mert, {free[1]} boş yer\n- Spinning, 20.00, 50 dakika, eğitmen Elif, \
{free[2]} boş yer
U pilates olsun
C book_class member={who} class_id=K{ids[1]}
A Pilates için yeriniz ayrıldı, saat 18.30. Rezervasyon numaranız D{book[0]}.
U yok ya yetişemem, spinning daha iyi
A D{book[0]} numaralı pilates rezervasyonunu iptal edip 20.00'deki spinning dersini ayırayım mı?
U {rng.choice(["evet", "olur", "evet lütfen"])}
C cancel_class booking=D{book[0]}
C book_class member={who} class_id=K{ids[2]}
A Tamam, pilates iptal edildi. Spinning 20.00'de başlıyor ve 20.50'de bitiyor; rezervasyon numaranız \
D{book[1]}.""")


def seances(rng: Random) -> Talk:
    """French: screenings of a film, the last one, a price with the pass."""
    ids, left, when = rng.sample(range(5000, 8999), 3), rng.sample(range(6, 70), 3), date(2025, 11,
        rng.randint(3, 28))
    told = rows("show start hall price_cents seats_left", *((f"SH{ids[n]}",
        f"{when}T{17 + 2 * n}:{20 + 10 * n}:00", n + 2, 1150 + 100 * (n == 2), left[n]) for n in range(3)))
    return _talk({"film": "Le Phare", "minutes": 112, "premiere": False, "shows": told}).tell(f"""
U Bonjour, à quelle heure passe Le Phare le {when.day} novembre ?
C find_shows film="Le Phare" date={when}
A Bonjour ! Trois séances sont prévues le {when.day} novembre :\n\n- 17 h 20, salle 2 : 11,50 $, {left[0]} \
places libres\n- 19 h 30, salle 3 : 11,50 $, {left[1]} places libres\n- 21 h 40, salle 4 : 12,50 $, \
{left[2]} places libres
U il dure 2h ? et avec le pass c'est combien pour la dernière
A Un peu moins : 112 minutes, soit 1 h 52. Avec le pass, la séance de 21 h 40 coûte 10,50 $ au lieu de 12,50 \
$.""")


TEMPLATES = (cinema, theatre, gym_freeze, streams, museum, scores, vet, league, pancakes, events, darts,
    teatro, ders, seances)
