"""Clean conversations of a travel desk: flights across time zones, hotels, trains, cars, tours, visas."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from random import Random
from typing import Any

from scripted import Script, clock, comma, day, marked, rows, span
from talk import Talk, tool

POLICY = (
    "You are the travel desk of Kestrel Trips. Answer in the user's language. Times are local.\n"
    "Hotels: free cancellation until 48 hours before check-in (3 p.m.); later, one night is charged.\n"
    "Trains: a refund keeps 10% of the fare. Tours: children under 12 pay half.\n"
    "Cars: 250 km a day are included, each further km costs 0.20; drivers under 25 pay 12 more a day, in the "
    "currency of the offer. 1 mile is 1.609 km.\n"
    "Bags: one of 23 kg is included; overweight costs 10 EUR per kg up to 32 kg. 1 kg is 2.205 lb.\n"
    "Arriving 3 hours late or more: 250 EUR up to 1,500 km, 400 EUR up to 3,500 km, 600 EUR beyond.\n"
    "Ask for a yes before you cancel a booking. Refunds arrive in 5–7 business days.\n"
)
TOOLS = [
    tool("search_flights", "Flights", origin="string", destination="string", date="string"),
    tool("get_flight", "State of a flight", flight="string", date="string"),
    tool("search_hotels", "Hotels", city="string", check_in="string", check_out="string", guests="integer"),
    tool("book_hotel", "Book a hotel", hotel_id="string", check_in="string", nights="integer"),
    tool("search_trains", "Trains", origin="string", destination="string", date="string"),
    tool("book_train", "Book a train", train_id="string", passengers="integer"),
    tool("search_cars", "Rental cars", city="string", start="string", end="string"),
    tool("search_tours", "Guided tours", city="string", date="string"),
    tool("book_tour", "Book a tour", tour_id="string", adults="integer", children="integer"),
    tool("list_bookings", "All bookings of a customer", customer="string"),
    tool("get_booking", "One booking", booking_id="string"),
    tool("modify_booking", "Change a booking", booking_id="string", nights="integer?", flight="string?"),
    tool("cancel_booking", "Cancel a booking", booking_id="string"),
    tool("get_exchange_rate", "A rate of exchange", base="string", quote="string"),
    tool("visa_rules", "Rules of entry", nationality="string", destination="string"),
    tool("get_time", "The time in a city now", city="string"),
]
MARKS = marked(TOOLS, "book_hotel book_train book_tour modify_booking", "cancel_booking")
IT = ["lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica"]


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def _zone(hours: int) -> timezone:
    return timezone(timedelta(hours=hours))


def flight_zones(rng: Random) -> Talk:
    """Offsets in ISO times, the next day, a layover, durations added, the time at home, a price for two."""
    out = datetime(2025, 7, rng.randint(7, 24), rng.randint(18, 20), rng.choice([5, 30]), tzinfo=_zone(-4))
    fly, wait, hop, fare = (rng.randint(*ends) for ends in ((405, 430), (75, 170), (220, 240), (512, 768)))
    mid = (out + timedelta(minutes=fly)).astimezone(_zone(1))
    on, home = mid + timedelta(minutes=wait), out + timedelta(minutes=fly + wait + hop)
    land = home.astimezone(_zone(3))
    first = ("BA178", "JFK", "LHR", out.isoformat(), mid.isoformat(), "777")
    second = ("BA632", "LHR", "ATH", on.isoformat(), land.isoformat(), None)
    legs = rows("flight from to dep arr aircraft", first, second)
    offer = {"id": "OF-1", "fare_per_adult": f"{fare}.40", "currency": "USD", "legs": legs, "co2_kg": None}
    return _talk({"offers": [offer], "more": False}).tell(f"""
U cheapest flight new york -> athens on {out:%B} {out.day}? 2 adults
C search_flights origin=NYC destination=ATH date={out:%Y-%m-%d}
A There is one offer, with British Airways via London:\n\n1. **BA178** JFK–LHR: {clock(out)} → {clock(mid)} \
the next day, {span(fly)}\n2. Layover at Heathrow: {span(wait)}\n3. **BA632** LHR–ATH: {clock(on)} → \
{clock(land)}, {span(hop)}\n\nAll in all {span(fly + wait + hop)}. It's ${fare}.40 per adult, so \
${2 * fare + 0.8:,.2f} for both of you.
U what time is it at home when we land? and which weekday
A Athens is 7 hours ahead of New York in July, so it will be {clock(home)} at home. You land on {land:%A}, \
{day(land)}.
U is {wait} min enough at heathrow
A Yes, it's {"tight but feasible" if wait < 90 else "comfortable"}: both flights are with British Airways on \
one ticket.
""")


def hotel_nights(rng: Random) -> Talk:
    """Nights between weekdays, four offers, a currency rate, a price per person, a booking made longer."""
    today, rate = date(2025, 5, rng.randint(5, 8)), rng.choice([1.0842, 1.1275, 1.1310])
    start = today + timedelta(days=11 - today.weekday())
    end, ident = start + timedelta(days=3), f"KT-{rng.randint(20000, 99999)}"
    names, prices = ["Miramar", "Casa Lis", "Porto Sul", "Bica 9"], sorted(rng.sample(range(88, 190, 3), 4))
    low, stars = prices[1], [3, 4, 4, 5]
    offers = [(f"H{n}", names[n], prices[n], n % 2 == 1, stars[n], None) for n in range(4)]
    hotels = rows("hotel_id name per_night breakfast stars renovated", *offers)
    fx = {"base": "EUR", "quote": "USD", "rate": rate, "as_of": f"{today}T08:00:00Z"}
    booked = {"booking_id": ident, "nights": 3, "total": f"{3 * low}.00", "status": "CONFIRMED"}
    longer = {**booked, "nights": 4, "total": f"{4 * low}.00", "check_out": str(end + timedelta(days=1))}
    return _talk({"hotels": hotels, "currency": "EUR"}, fx, booked, longer, today=today).tell(f"""
U Lisbon, fri next week til monday, 2 ppl, breakfast would be nice. prices in $ please
C search_hotels city=Lisbon check_in={start} check_out={end} guests:=2
C get_exchange_rate base=EUR quote=USD
A From {day(start)} to {day(end)} that's three nights. Two of the four hotels include breakfast:\n\n- **Casa \
Lis** ★★★★ €{low} a night – €{3 * low} in total, about ${3 * low * rate:,.0f}\n- **Bica 9** ★★★★★ \
€{prices[3]} a night – €{3 * prices[3]} in total, about ${3 * prices[3] * rate:,.0f}\n\n(1 EUR = {rate} \
USD.) Without breakfast, Miramar starts at €{prices[0]}. Which one shall I book?
U so casa lis is how much each?
A €{1.5 * low:.2f} per person for the whole stay, or roughly ${1.5 * low * rate:,.2f}.
U book it
C book_hotel hotel_id=H1 check_in={start} nights:=3
A Booked: Casa Lis, {day(start)}–{end.day}, €{3 * low}, confirmation {ident}. You can cancel free of charge \
until 3 p.m. on {start - timedelta(days=2):%A}, {day(start - timedelta(days=2))}.
U oh we fly back tuesday actually, add a night
C modify_booking booking_id={ident} nights:=4
A Done, you now check out on Tuesday, {day(end + timedelta(days=1))}. Four nights are €{4 * low}, i.e. \
€{low} more.
""")


def cancel_late(rng: Random) -> Talk:
    """Hours until the check-in, one night charged, a refund, a destructive call after a yes."""
    today, night, nights = date(2025, 9, rng.randint(9, 20)), rng.randint(82, 175), rng.choice([3, 4, 5])
    ident, back, check = f"KT-{rng.randint(20000, 99999)}", night * (nights - 1), today + timedelta(days=1)
    times = {"check_in": f"{check}T15:00:00+02:00", "nights": nights, "guests": [{"name": "T. Vogel"}]}
    booking = {"booking_id": ident, "hotel": "Alte Post", **times, "total_cents": night * nights * 100}
    gone = {"status": "CANCELLED", "refund_cents": back * 100, "fee_cents": night * 100, "currency": "EUR"}
    return _talk(booking, gone, today=today).tell(f"""
U I need to cancel {ident}, my son is ill. I get everything back, right?
C get_booking booking_id={ident}
A I'm sorry to hear that. I'm afraid not quite everything: check-in is tomorrow ({check:%A}) at 3 p.m., \
which is less than 48 hours away, so one of the {nights} nights is charged. Of the €{night * nights} you'd \
get €{back} back; €{night} would be kept. Would you like me to cancel it on these terms?
U {rng.choice(["that's harsh, but ok, do it", "sigh. yes, cancel please"])}
C cancel_booking booking_id={ident}
A The booking at Alte Post is cancelled. €{back} will be refunded in 5–7 business days. I hope your son gets \
well soon!
""")


def train_before_noon(rng: Random) -> Talk:
    """Durations from times, a filter with a count, the cheapest and the fastest, seats, a refund."""
    hour, cents = rng.choice([6, 7]), sorted(rng.sample(range(3990, 8990, 250), 5), reverse=True)
    took, changes = [195, 230, 205, 200, 190], [0, 1, 0, 0, 2]
    out = [datetime(2025, 10, 17, hour) + timedelta(minutes=late) for late in (5, 35, 65, 215, 245)]
    into = [start + timedelta(minutes=minutes) for start, minutes in zip(out, took, strict=True)]
    price = [f"{cent / 100:.2f}" for cent in cents]
    told = [(f"T{n}", f"{out[n]:%H:%M}", f"{into[n]:%H:%M}", changes[n], price[n]) for n in range(5)]
    text = [f"{told[n][1]} | {told[n][2]} | {span(took[n])} | {changes[n]} | €{price[n]}" for n in range(3)]
    seat, coach, both = rng.randint(31, 78), rng.randint(2, 9), f"{cents[2] / 50:.2f}"
    booked = {"pnr": "X7KQ2M", "coach": coach, "seats": [seat, seat + 1], "total_eur": both}
    return _talk({"trains": rows("train_id dep arr changes price_eur", *told)}, booked).tell(f"""
U Zurich to Milan on 17 Oct, must be there before noon. cheapest?
C search_trains origin="Zürich HB" destination="Milano Centrale" date=2025-10-17
A Three of the five trains arrive before noon:\n\n| Departure | Arrival | Duration | Changes | Price |
|---|---|---|---|---|\n| {text[0]} |\n| {text[1]} |\n| {text[2]} |

The cheapest of them is the {told[2][1]} at €{price[2]}, the fastest the {told[0][1]} ({span(195)}). The \
other two are cheaper (€{price[3]} and €{price[4]}), but arrive too late.
U ok {told[2][1]} for 2
C book_train train_id=T2 passengers:=2
A Booked! Reference X7KQ2M, coach {coach}, seats {seat} and {seat + 1}, €{both} for two.
U and if one of us cant come?
A Then 10% of that ticket is kept: you'd get about €{cents[2] * 0.9 / 100:.2f} back out of €{price[2]}.
""")


def car_distance(rng: Random) -> Talk:
    """Days between dates, miles to kilometres, kilometres above the limit, a fee for a young driver."""
    start, rate, miles = rng.randint(8, 14), rng.choice([38, 41, 47]), rng.choice([900, 1000, 1100])
    age, km = rng.choice([22, 23, 24]), round(miles * 1.609)
    extra, bigger = km - 1250, rate + rng.randint(6, 14)
    keys = "offer_id model class per_day_eur seats gearbox deposit_eur"
    golf = ("C2", "VW Golf", "COMPACT", bigger, 5, "automatic", 500)
    cars = rows(keys, ("C1", "Fiat Panda", "MINI", rate, 4, "manual", 300), golf)
    return _talk({"cars": cars, "pickup": "OPO T1"}).tell(f"""
U hi! need a car in Porto from the {start}th 10am to the {start + 5}th 10am (June). we'll drive around \
{miles} miles. I'm {age}
C search_cars city=Porto start=2025-06-{start:02}T10:00 end=2025-06-{start + 5}T10:00
A That's 5 days. The cheapest is a Fiat Panda (manual) at €{rate} a day:\n\n- Rental: 5 × €{rate} = \
€{5 * rate}\n- Driver under 25: 5 × €12 = €60\n- Distance: {miles} miles are about {km:,} km; 1,250 km are \
included, so {extra} km × €0.20 = €{extra * 0.2:.2f}\n\n**Total: about €{5 * rate + 60 + extra * 0.2:.2f}**, \
plus a deposit of €300.
U whats the automatic one cost more
A The VW Golf is €{bigger} a day, €{bigger - rate} more than the Panda – €{5 * (bigger - rate)} over the \
five days. Its deposit is €500, €200 higher.
U ok and if my dad drives? he's {age + 33}
A Then the young driver fee of €60 falls away, and the Panda would come to about \
€{5 * rate + extra * 0.2:.2f} in all.
""")


def visa_days(rng: Random) -> Talk:
    """Days used and left of 90, the last day counted with the first, months of a passport, a correction."""
    used, enter = rng.randint(14, 29), date(2025, 6, rng.randint(2, 9))
    left, wrong = 90 - used, used - rng.choice([3, 4])
    last = enter + timedelta(days=left - 1)
    return _talk().tell(f"""
U I'm Canadian. I was in Spain {wrong} days in April, going to Italy on June {enter.day}. How long can I \
stay without a visa?
C visa_rules nationality=CA destination=IT
R **Schengen area – Canada**\n- No visa for up to 90 days in any 180-day period, all Schengen states together
- The days of entry and exit both count\n- Passport: valid 3 months beyond the exit, not older than 10 \
years\n- ETIAS: not yet
A Spain and Italy share the same allowance: 90 days in any 180. With {wrong} days used in April you'd have \
{90 - wrong} left.
U sorry just checked the stamps, it was {used} not {wrong}
A Thanks for checking. Then {left} days are left. If you enter on {day(enter)}, which counts as day 1, your \
last day is **{last:%A}, {day(last)}**. Your passport must be valid for three months after that, so at least \
until {day(last.replace(month=last.month + 3))}.
U passport runs out January 2026 so thats fine? do I need that ETIAS thing
A Yes, January 2026 is late enough, provided the passport is not older than 10 years. And no, ETIAS isn't \
required yet.
""")


def split_costs(rng: Random) -> Talk:
    """Numbers from the user in three currencies, two rates at once, a third each, who owes what."""
    hotel, dinner, museum = rng.randint(380, 520), rng.randint(70, 110), rng.randint(45, 66)
    euro, pound = rng.choice([1.08, 1.12, 1.17]), rng.choice([1.27, 1.31, 1.35])
    a, b = round(hotel * euro, 2), round(dinner * pound, 2)
    total = a + b + museum
    third = round(total / 3, 2)
    rates = rows("base quote rate source", ("EUR", "USD", euro, "ECB"), ("GBP", "USD", pound, "ECB"))
    return _talk(*rates).tell(f"""
U can u split our trip costs in usd? 3 people: me paid hotel {hotel} eur, jo paid dinner {dinner} gbp, sam \
museum {museum} usd
C get_exchange_rate base=EUR quote=USD
+ get_exchange_rate base=GBP quote=USD
A Sure! At {euro} USD per euro and {pound} USD per pound:\n\n| Item | Paid by | USD |\n|---|---|---|\n| \
Hotel, €{hotel} | you | {a:.2f} |\n| Dinner, £{dinner} | Jo | {b:.2f} |\n| Museum | Sam | {museum:.2f} \
|\n\n**Total: ${total:,.2f}**, or ${third:.2f} each. So Jo owes you ${third - b:.2f} and Sam owes you \
${third - museum:.2f}.
U jo says she paid 20 quid tip too
A With the tip Jo paid £{dinner + 20}, i.e. ${b + 20 * pound:.2f}. The total goes up to \
${total + 20 * pound:,.2f} and each share to ${(total + 20 * pound) / 3:.2f}.
""")


def tour_family(rng: Random) -> Talk:
    """A full tour, half price for children, a person more, a weekday, an end time from a duration."""
    adult, free, length = rng.choice([36, 42, 48]), rng.randint(6, 9), rng.choice([90, 150])
    when = datetime(2025, 8, rng.randint(4, 20), 10, 30)
    full = ("TR-1", "Old Town on foot", f"{when:%Y-%m-%d}T14:00", 120, 2, 25, "Mirek")
    open_one = ("TR-2", "Castle and gardens", f"{when:%Y-%m-%dT%H:%M}", length, free, adult, "Hana")
    tours = rows("tour_id title start minutes spots_left adult_price guide", full, open_one)
    done = {"ok": True, "ref": "G-5518", "spots_left": free - 5, "total_eur": adult * 4, "meet": "Gate 3"}
    return _talk({"tours": tours, "currency": "EUR"}, done).tell(f"""
U Prague, {when:%A} {when.day} August. A tour for us 2 and the kids (7 and 10)?
C search_tours city=Prague date={when:%Y-%m-%d}
A Two tours run that day, but *Old Town on foot* has only 2 spots left, so the four of you wouldn't fit. \
*Castle and gardens* with Hana starts at 10:30 a.m. and has {free} free. Children under 12 pay half: 2 × \
€{adult} + 2 × €{adult // 2} = €{3 * adult}. Shall I book it?
U grandma's coming along too!
A Lovely! Then it's three adults and two children, €{4 * adult} in total. OK to book?
U {rng.choice(["yes!!", "perfect, book"])}
C book_tour tour_id=TR-2 adults:=3 children:=2
A You're in: G-5518, five people, €{4 * adult}. Meet at Gate 3; the tour ends at \
{when + timedelta(minutes=length):%H:%M}.
""")


def missed_connection(rng: Random) -> Talk:
    """A delay against a layover, a new flight, lateness at the destination, a sum set by law."""
    delay, layover, later = rng.randint(95, 125), rng.choice([65, 70, 80]), rng.choice([190, 205, 240])
    out = datetime(2025, 11, 12, 9, rng.choice([0, 20, 40]))
    due, dep2 = out + timedelta(minutes=110), out + timedelta(minutes=110 + layover)
    arr2, now = dep2 + timedelta(minutes=135), out + timedelta(minutes=110 + delay)
    arrival = {"planned": f"{due:%H:%M}", "estimated": f"{now:%H:%M}", "delay_min": delay}
    flight = {"state": "DELAYED", "dep": f"{out:%H:%M}", "arr": arrival, "gate": "F28", "reason": None}
    new, late = dep2 + timedelta(minutes=later), arr2 + timedelta(minutes=later)
    missed = ("LH1798", f"{dep2:%H:%M}", f"{arr2:%H:%M}", 31)
    flights = rows("flight dep arr seats", missed, ("LH1802", f"{new:%H:%M}", f"{late:%H:%M}", 6))
    moved = {"booking_id": "KT-40417", "flight": "LH1802", "seat": "21C", "fare_difference": 0}
    return _talk(flight, {"flights": flights, "journey": {"from": "ARN", "km": 2764}}, moved).tell(f"""
U LH803 from Stockholm is late?? I have {layover} min in Munich for Porto, booking KT-40417. today is nov 12
C get_flight flight=LH803 date=2025-11-12
C search_flights origin=MUC destination=OPO date=2025-11-12
A Yes, by {delay} minutes: you'd land at {now:%H:%M} instead of {due:%H:%M}. LH1798 to Porto leaves at \
{dep2:%H:%M}, {delay - layover} minutes before that, so you'd miss it. The next one is LH1802 at \
{new:%H:%M}, arriving {late:%H:%M} – {span(later)} later than planned. It has 6 seats left. Shall I move \
you?
U yes quick
C modify_booking booking_id=KT-40417 flight=LH1802
A Done, seat 21C, no extra cost. Your wait in Munich is now {span(layover + later - delay)}.
U do i get money for this
A Quite likely: more than 3 hours late and about 2,800 km from Stockholm means €400 per person under the EU \
rules.
""")


def itinerary(rng: Random) -> Talk:
    """Five bookings of several kinds, counts by status, the next one, days to go, money spent and open."""
    today, cost = date(2025, 4, rng.randint(1, 9)), [rng.randint(60, 480) for _ in range(4)]
    days = sorted(rng.sample(range(11, 21), 4))
    starts = [str(date(2025, 4, n)) for n in days]
    kinds, state = ["RAIL", "HOTEL", "TOUR", "FLIGHT"], ["CONFIRMED", "CONFIRMED", "PENDING", "CONFIRMED"]
    paid = [cost[0], 0, cost[2], cost[3]]
    told = [(f"KT-{n}{n}731", kinds[n], starts[n], state[n], cost[n], paid[n]) for n in (2, 0, 3, 1)]
    old = ("KT-55731", "CAR", "2025-04-02", "CANCELLED", 210, 0)
    items = rows("booking_id kind start status total_eur paid_eur", *told, old)
    return _talk({"customer": "c_8820", "items": items}, today=today).tell(f"""
U whats all booked for april? customer c_8820
C list_bookings customer=c_8820
A You have five bookings, one of which is cancelled (the car). The other four, in order:\n\n1. Train – April \
{days[0]}, €{cost[0]}
2. Hotel – from April {days[1]}, €{cost[1]}\n3. Tour – April {days[2]}, €{cost[2]}, still pending\n4. Flight \
– April {days[3]}, €{cost[3]}
U which isnt paid
A Of those four only the hotel, €{cost[1]}. The train, the tour and the flight are paid, \
€{cost[0] + cost[2] + cost[3]} together.
U days til we go?
A {days[0] - today.day} days: the train is on {date(2025, 4, days[0]):%A}, April {days[0]}.
""")


def bags(rng: Random) -> Talk:
    """Terse. Pounds to kilograms, a fee per started kilogram, something moved from bag to bag."""
    heavy, light = rng.choice([26, 27, 28]), rng.choice([17, 18])
    pounds = round(heavy * 2.205, 1)
    return _talk().tell(f"""
U bag is {pounds} lb ok?
A No. {pounds} lb is about {heavy} kg, the limit is 23 kg. {heavy - 23} kg over, €{10 * (heavy - 23)}.
U other one is {light} kg but its my wifes, her own ticket
A Then move {heavy - 23} kg into hers: yours 23 kg, hers {light + heavy - 23} kg. Nothing to pay, \
€{10 * (heavy - 23)} saved.
U max if i just pay?
A 32 kg (about 71 lb), that would be 9 kg × €10 = €90.
""")


def train_rembourse(rng: Random) -> Talk:
    """French: a train cancelled with 10 % kept, another one booked, a difference in price."""
    prix, neuf, ident = rng.choice([60, 70, 80, 90]), rng.randint(41, 55), f"KT-{rng.randint(10000, 99999)}"
    heure = rng.choice([9, 13, 17])
    old = {"train": "TGV 6607", "depart": "2025-06-14T07:58", "prix_cents": prix * 100, "voyageurs": 1}
    autre = ("TGV-21", f"{heure:02}:04", f"{heure + 2:02}:02", f"{neuf}.00")
    trains = rows("train_id depart arrivee prix_eur", autre)
    gone, new = {"rembourse_cents": prix * 90}, {"pnr": "QTZ4LM", "voiture": 14, "place": 62}
    return _talk(old, {"trains": trains}, gone, new, today=date(2025, 6, 10)).tell(f"""
U slt, mon train {ident} de samedi est trop tôt, je peux en prendre un plus tard ? paris lyon
C get_booking booking_id={ident}
C search_trains origin=Paris destination=Lyon date=2025-06-14
A Bonjour ! Samedi 14 juin, il y a un TGV à {heure}h04, arrivée à {heure + 2}h02 (1 h 58), pour {neuf} €. \
Votre billet de 7h58 a coûté {prix} € ; en l'annulant, 10 % sont retenus, donc {prix // 10} €, et vous \
récupérez {prix * 9 // 10} €. J'annule et je réserve le nouveau ?
U oui vas-y
C cancel_booking booking_id={ident}
C book_train train_id=TGV-21 passengers:=1
A C'est fait : {prix * 9 // 10} € vous seront remboursés sous 5 à 7 jours ouvrés, et vous avez la place 62, \
voiture 14, dans le TGV de {heure}h04 (référence QTZ4LM). Au final, le nouveau billet vous coûte {neuf} €, \
frais d'annulation de {prix // 10} € en plus.
""")


def albergo(rng: Random) -> Talk:
    """Italian: nights, a city tax per person and night, a discount, a total in two currencies."""
    notti, prezzo, tassa = rng.choice([2, 3, 4]), rng.choice([84, 96, 112]), rng.choice([5, 6])
    arrivo, cambio = date(2025, 10, rng.randint(6, 20)), rng.choice([0.94, 0.95])
    fine = arrivo + timedelta(days=notti)
    hotel = {"nome": "Albergo del Sole", "notte_eur": prezzo, "tassa_persona_notte": tassa, "stelle": 3}
    totale = notti * (prezzo + 2 * tassa)
    return _talk({"hotel": [hotel]}, {"base": "EUR", "quote": "CHF", "rate": cambio}).tell(f"""
U buongiorno, cerco un albergo a roma dal {arrivo.day} al {fine.day} ottobre per due
C search_hotels city=Roma check_in={arrivo} check_out={fine} guests:=2
A Buongiorno! Da {IT[arrivo.weekday()]} {arrivo.day} a {IT[fine.weekday()]} {fine.day} sono {notti} notti. \
L'Albergo del Sole (3 stelle) costa {prezzo} € a notte, cioè {notti * prezzo} €, più la tassa di soggiorno: \
{tassa} € × 2 persone × {notti} notti = {2 * tassa * notti} €. In tutto {totale} €.
U quanto sarebbe in franchi?
C get_exchange_rate base=EUR quote=CHF
A Al cambio di {comma(cambio)} sono circa {totale * cambio:.0f} CHF, ovvero {totale * cambio / 2:.0f} CHF a \
testa. Vuole che lo prenoti?
U ci penso, grazie
A Va bene! Se prenota, può annullare gratis fino a 48 ore prima dell'arrivo.
""")


def huurauto(rng: Random) -> Talk:
    """Dutch: a price per day, days, kilometres included, half each."""
    prijs, dagen, km = rng.choice([34, 39, 45]), rng.choice([4, 6]), rng.randint(61, 98) * 20
    over = max(0, km - 250 * dagen)
    meer = f"{over} km meer, à € 0,20 dus € {over // 5} extra" if over else f"binnen de {250 * dagen} km"
    auto = {"model": "Opel Corsa", "prijs_per_dag": f"{prijs}.00", "borg": "400.00", "deuren": 5}
    return _talk({"aanbod": [auto]}).tell(f"""
U hoi, huurauto in Eindhoven, vanaf 3 mei {dagen} dagen. kost?
C search_cars city=Eindhoven start=2025-05-03 end=2025-05-{3 + dagen:02}
A Een Opel Corsa kost € {prijs} per dag, voor {dagen} dagen dus € {prijs * dagen}. De borg is € 400. Per dag \
zijn 250 km inbegrepen, samen {comma(250 * dagen, 0)} km.
U we rijden denk ik {km} km
A Dat is {meer}. In totaal komt u op € {prijs * dagen + over // 5}; met z'n tweeën is dat € \
{comma((prijs * dagen + over // 5) / 2)} per persoon.
""")


TEMPLATES = (
    flight_zones, hotel_nights, cancel_late, train_before_noon, car_distance, visa_days, split_costs,
    tour_family, missed_connection, itinerary, bags, train_rembourse, albergo, huurauto,
)  # fmt: skip
