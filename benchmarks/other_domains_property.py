"""Clean conversations about homes: rentals, mortgages, meters, movers, devices, energy."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Courteous, Script, a_day, comma, marked, near, rows, yes
from talk import Talk, tool

POLICY = (
    "You are Hearth, an assistant for tenants, buyers and households.\n"
    "Viewings take 20 minutes. Electricity costs 0.30 per kWh plus a standing charge of 0.50 per day.\n"
    "Meter readings are due by the 5th; a reading counts once the meter service has accepted it.\n"
    "Cancelling a move costs 15% of the price within 7 days of the date and nothing before.\n"
    "Ask for a yes before you remove a device or cancel a move.\n"
)
TOOLS = [
    tool("search_rentals", "Flats to rent", city="string", max_rent="number?", bedrooms="integer?"),
    tool("viewing_slots", "Free viewing times", listing="string"),
    tool("book_viewing", "Book a viewing", listing="string", start="string", email="string?"),
    tool("get_lease", "A lease", lease="string"),
    tool("calc_mortgage", "Monthly payment", amount="number", rate="number", years="integer"),
    tool("get_rates", "Today's mortgage rates", years="integer"),
    tool("get_meter", "A meter", meter="string"),
    tool("submit_reading", "Report a reading", meter="string", value="integer"),
    tool("moving_quotes", "Offers of moving firms", origin="string", target="string", rooms="integer"),
    tool("get_move", "A booked move", ref="string"),
    tool("cancel_move", "Cancel a booked move", ref="string"),
    tool("list_devices", "Devices at home", room="string?"),
    tool("set_device", "Change a device", device="string", value="number"),
    tool("remove_device", "Remove a device", device="string"),
    tool("get_energy", "Energy use", home="string", period="string"),
]
MARKS = marked(TOOLS, "book_viewing submit_reading set_device", "cancel_move remove_device")


_MONTHS = "januari februari mars april maj juni juli augusti september oktober november december"


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today: {today:%a %Y-%m-%d}\n" if today else ""
    return Courteous(TOOLS, MARKS, POLICY + now, results)


def rentals(rng: Random) -> Talk:
    """Six flats: how many fit, the cheapest, a price per square metre, the cost of the first year."""
    rent = [rng.randint(112, 128) * 10, *(rng.randint(131, 149) * 10 for _ in range(2))]
    rent += [rng.randint(155, 170) * 10, rng.randint(171, 199) * 10, rng.randint(200, 220) * 10]
    size, bills = rng.choice([52, 56, 61]), rng.choice([85, 110])
    flats = rows(
        "id rent m2 beds bills pets",
        *((f"L{810 + n}", rent[n], size + 4 * n, 2, None if n else bills, n == 1) for n in range(6)),
    )
    year = 12 * (rent[0] + bills)
    return _talk({"total": 6, "results": flats}).tell(f"""
U 2 bed flats in Leeds? budget is 1500 a month tops
C search_rentals city=Leeds bedrooms:=2
A Of the six two-bedroom flats, three are within £1,500:

1. **L810**: £{rent[0]:,}, {size} m²
2. **L811**: £{rent[1]:,}, {size + 4} m², pets allowed
3. **L812**: £{rent[2]:,}, {size + 8} m²

L810 is the cheapest, at about £{rent[0] / size:.2f} per m².
U what would 810 cost me the first year, bills in
A £{rent[0]:,} rent plus £{bills} bills is £{rent[0] + bills:,} a month, so £{year:,} in 12 months.
U and if I split w a flatmate
A Half of that each: £{year // 2:,} a year, or £{(rent[0] + bills) / 2:.2f} a month.
""")


def viewing(rng: Random) -> Talk:
    """A date given as an ordinal, slots in UTC told in local time, an end time."""
    today = date(2025, rng.choice([2, 5, 8, 10]), rng.randint(24, 27))
    third = date(today.year, today.month + 1, 3)
    hour, flat = rng.choice([13, 14, 15]), f"L{rng.randint(200, 799)}"
    slots = [datetime(third.year, third.month, 3, h, m) for h, m in ((hour, 0), (hour, 40), (hour + 2, 20))]
    found = [{"start": f"{slot.isoformat()}Z", "agent": who} for slot, who in zip(slots, "ABA", strict=True)]
    local = [slot + timedelta(hours=2) for slot in slots]
    done: dict[str, Any] = {"id": f"V-{rng.randint(1000, 9999)}", "start": found[1]["start"], "minutes": 20}
    done |= {"state": "booked"}
    return _talk({"listing": flat, "slots": found}, done, today=today).tell(f"""
U can i see {flat} on the 3rd? im in UTC+2
C viewing_slots listing={flat}
A Yes! On {third:%A, %B %-d} there are three times left, in your time zone (UTC+2): {local[0]:%H:%M}, \
{local[1]:%H:%M} and {local[2]:%H:%M}. Which suits you?
U the middle one
C book_viewing listing={flat} start={found[1]["start"]}
A Booked ({done["id"]}): {third:%A} the 3rd at {local[1]:%H:%M}, that's {slots[1]:%H:%M} UTC. A viewing \
takes 20 minutes, so you'll be out by {local[1] + timedelta(minutes=20):%H:%M}.
U how many days is that from now
A {(third - today).days} days: today is {today:%B %-d}.
""")


def _loan(amount: int, rate: float, years: int) -> dict[str, float]:
    month_rate, months = rate / 1200, years * 12
    paid = round(amount * month_rate / (1 - (1 + month_rate) ** -months), 2)
    return {"monthly": paid, "months": months, "total": round(paid * months, 2)}


def mortgage(rng: Random) -> Talk:
    """Two terms compared: the monthly payment, the interest in all, what the shorter one saves."""
    price, rate = rng.randint(32, 48) * 10000, rng.choice([5.25, 5.9, 6.4])
    loan = price * 8 // 10
    long, short = _loan(loan, rate, 30), _loan(loan, rate, 20)
    interest = [plan["total"] - loan for plan in (long, short)]
    return _talk(long, short).tell(f"""
U house is ${price // 1000}k, 20% down, {rate}% fixed for 30 yrs. monthly?
C calc_mortgage amount:={loan} rate:={rate} years:=30
A With 20% down (${price - loan:,}) you borrow ${loan:,}. At {rate}% over 30 years (360 payments) that's \
**${long["monthly"]:,.2f} a month**, with about ${near(interest[0])} of interest in total.
U hm and 20 years
C calc_mortgage amount:={loan} rate:={rate} years:=20
A Over 20 years it's ${short["monthly"]:,.2f} a month, ${short["monthly"] - long["monthly"]:,.2f} more, but \
the interest drops to about ${near(interest[1])}. You'd save roughly \
${near((interest[0] - interest[1]) / 1000)},000 and be done 10 years earlier.
U and interest in the very first month?
A The same for both: ${loan:,} × {rate}% / 12 = ${loan * rate / 1200:,.2f}.
""")


def lender_rates(rng: Random) -> Talk:
    """Three lenders with rates as decimal strings, a gap in percentage points, a fee set against it."""
    low = rng.choice([4.875, 5.125, 5.375, 5.625, 5.875, 6.125])
    lenders = rows(
        "lender rate fee_cents points",
        ("Harbor CU", f"{low:.3f}", 99500, 0),
        ("First Valley", f"{low + 0.25:.3f}", 0, 0),
        ("Quickhome", f"{low + 0.5:.3f}", 0, 0),
    )
    loan = rng.randrange(200_000, 400_000, 20_000)
    saved = loan * 0.0025
    return _talk({"as_of": "2025-06-02T13:00:00Z", "years": 15, "offers": lenders}).tell(f"""
U best 15 year rate today? loan of {loan // 1000},000
C get_rates years:=15
A Here are today's 15-year rates:

| Lender | Rate | Fee |
|---|---|---|
| Harbor CU | {low:.3f}% | $995 |
| First Valley | {low + 0.25:.3f}% | $0 |
| Quickhome | {low + 0.5:.3f}% | $0 |

**Harbor CU** is the lowest at {low:.3f}%, a quarter point below First Valley and half a point below \
Quickhome.
U does the fee eat that up
A A quarter point on ${loan:,} is about ${saved:,.0f} of interest in the first year, so the $995 fee takes \
roughly {995 / saved * 12:.0f} months to earn back compared with First Valley.
""")


def reading(rng: Random) -> Talk:
    """A number read wrong and corrected, a difference, a bill with the standing charge."""
    last, used, days = rng.randint(31000, 58000), rng.randint(180, 340), rng.choice([30, 31])
    value, meter = last + used, f"E-{rng.randint(1000, 9999)}-{rng.randint(10, 99)}"
    info: dict[str, Any] = {"meter": meter, "unit": "kWh", "last": {"value": last, "days_ago": days}}
    info |= {"digits": 6, "state": "open"}
    sent = {"accepted": True, "value": value, "previous": last, "usage_kwh": used}
    bill = used * 0.3 + days * 0.5
    return _talk(info, sent).tell(f"""
U meter {meter}, reading {value + 1000}
C get_meter meter={meter}
A Before I send it: the last reading {days} days ago was {last:,}, so {value + 1000:,} would mean \
{used + 1000:,} kWh. Could you check the digits again?
U oh sorry, its {value}
C submit_reading meter={meter} value:={value}
A Thanks, {value:,} is accepted. You used {used} kWh in {days} days, about {used / days:.1f} kWh a day.
U cost?
A {used} kWh × $0.30 = ${used * 0.3:.2f}, plus {days} days × $0.50 = ${days * 0.5:.2f}: ${bill:.2f} in all.
""")


def reading_error(rng: Random) -> Talk:
    """A refused reading, the reason told, a second try; gas in cubic metres and kWh."""
    last, used = rng.randint(4200, 7800), rng.choice([60, 80, 120])
    meter, low = f"G{rng.randint(100000, 999999)}", rng.randint(3, 9)
    bad = f"<error code='422'><reason>below previous</reason><previous>{last}</previous></error>"
    good = f"<ok><value>{last + used}</value><unit>m3</unit><kwh_per_m3>10.5</kwh_per_m3></ok>"
    return _talk(bad, good).tell(f"""
U gas {meter}: {last - low}
C submit_reading meter={meter} value:={last - low}
A The meter service refused {last - low}, because it's {low} below the previous reading of {last}. Could you \
read it once more? Only the black digits count.
U {last + used} now, it was dark down there
C submit_reading meter={meter} value:={last + used}
A Accepted: {last + used} m³, {used} m³ since the last time. At 10.5 kWh per m³ that is {used * 10.5:g} kWh.
""")


def movers(rng: Random) -> Talk:
    """Hourly and flat prices made comparable, the break-even in hours."""
    hourly, flat, hours = rng.randrange(90, 125, 5), rng.randrange(740, 900, 20), rng.choice([5, 6])
    best = hours * hourly
    offers = rows(
        "firm rating reviews hourly flat crew insurance",
        ("Two Hats", 4.8, 212, hourly, None, 2, "basic"),
        ("Bluevan", 4.5, 1094, None, flat, 3, "full"),
        ("MoveIt", 4.1, 67, None, flat + 130, 3, "full"),
    )
    return _talk(offers).tell(f"""
U moving 3 rooms from Dorset St to Mill Lane, who's cheapest?
C moving_quotes origin="Dorset St" target="Mill Lane" rooms:=3
A I got 3 offers:

- *Two Hats* (4.8★, 212 reviews): £{hourly} an hour, crew of two
- *Bluevan* (4.5★): £{flat} flat, crew of three, full insurance
- *MoveIt* (4.1★): £{flat + 130} flat

It depends on the hours. How long do you think it takes?
U maybe {hours} hrs
A Then Two Hats comes to £{best}, £{flat - best} less than Bluevan. Beyond about {near(flat / hourly, 1)} \
hours Bluevan's flat price wins. Note that Two Hats has only basic insurance.
U whats the avg rating
A About {(4.8 + 4.5 + 4.1) / 3:.1f} stars across the three.
""")


def cancel_move(rng: Random) -> Talk:
    """A fee by the days left, a yes first, what comes back."""
    today, days = a_day(rng, rng.randint(0, 6)), rng.randint(3, 6)
    day, price, ref = (
        today + timedelta(days=days),
        rng.choice([620, 780, 940]),
        f"MV{rng.randint(10000, 99999)}",
    )
    fee = price * 15 // 100
    move: dict[str, Any] = {"ref": ref, "firm": "Bluevan", "date": str(day), "price": f"{price}.00"}
    move |= {"paid": f"{price}.00", "state": "BOOKED"}
    gone = {"ref": ref, "state": "CANCELLED", "refund": f"{price - fee}.00"}
    return _talk(move, gone, today=today).tell(f"""
U We have to call off our move {ref}, the buyer backed out :(
C get_move ref={ref}
A I'm sorry to hear that. Your move with Bluevan is on {day:%A, %B %-d}, {days} days from now. As that's \
within 7 days, 15% is kept: £{fee} of the £{price} you paid. You'd get £{price - fee} back. Cancel it?
U {yes(rng, "Yes, unfortunately.")}
C cancel_move ref={ref}
A {ref} is cancelled and £{price - fee}.00 will be refunded.
U when would it have been free?
A Up to {day - timedelta(days=8):%A, %B %-d}, more than a week before.
""")


def heating(rng: Random) -> Talk:
    """A thermostat in Celsius for a user who thinks in Fahrenheit; a value changed twice."""
    now, battery = rng.choice([18.0, 18.5, 19.0]), rng.randint(21, 60)
    aim = rng.choice([20, 25])
    state = rows(
        "id type room target_c humidity battery_pct", ("th-2", "thermostat", "bedroom", now, 0.47, battery)
    )
    done = rows("id target_c ok", ("th-2", aim, True), ("th-2", aim - 2, True))
    return _talk(state, *done).tell(f"""
U how warm is the bedroom set
C list_devices room=bedroom
A The bedroom thermostat is set to {now:g} °C ({now * 9 / 5 + 32:.1f} °F).
U make it {aim * 9 // 5 + 32} F pls
C set_device device=th-2 value:={aim}
A Done, it's now {aim} °C, which is {aim * 9 // 5 + 32} °F and {aim - now:g} °C warmer than before.
U actually two degrees celsius less
C set_device device=th-2 value:={aim - 2}
A Okay, {aim - 2} °C ({(aim - 2) * 9 / 5 + 32:.1f} °F). The battery is at {battery}% by the way.
""")


def devices(rng: Random) -> Talk:
    """Seven devices: how many are offline, an ISO time as a span of days, one removed after a yes."""
    seen, low = rng.randint(9, 25), rng.randint(4, 12)
    now = datetime(2025, 4, 30, 8, 5)
    names = "Hall lamp,Kitchen plug,Porch camera,Router Wi-Fi 6,Old speaker,Door lock,TV 4K"
    seven = enumerate(names.split(","), 1)
    items = rows(
        "id name online last_seen battery",
        *((f"d{n}", name, n not in (3, 5), f"{now.isoformat()}Z", None) for n, name in seven),
    )
    items[4] |= {"last_seen": f"{(now - timedelta(days=seen)).isoformat()}Z"}
    items[5] |= {"battery": low}
    found = {"count": 7, "devices": items}
    return _talk(found, {"removed": "d5", "remaining": 6}, today=now.date()).tell(f"""
U anything wrong with my smart home?
C list_devices
A Of your 7 devices, two are offline: the **Porch camera**, last seen this morning at 08:05 UTC, and the \
**Old speaker**, not seen for {seen} days. The door lock's battery is down to {low}%. ⚠️
U remove the speaker
A I'd remove *Old speaker* (d5) from your home for good. Is that right?
U {yes(rng)}
C remove_device device=d5
A Removed. Six devices are left, five of them online. For the camera, try this:

1. Unplug it for 10 seconds.
2. Plug it in again.
3. Wait until the light stops blinking.

If step 3 fails, check that it uses 2.4 GHz Wi-Fi.
""")


def week_of_energy(rng: Random) -> Talk:
    """A CSV of seven days: total, mean, the peak day, the cost, and a change in percent."""
    kwh = [rng.randint(70, 98) / 10 for _ in range(5)] + [
        rng.randint(120, 140) / 10,
        rng.randint(100, 115) / 10,
    ]
    before = rng.choice([80, 85, 90])
    text = "day,kwh,peak_w\n" + "\n".join(
        f"{day},{use},{3000 + 10 * n}"
        for n, (day, use) in enumerate(zip(["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"], kwh, strict=True))
    )
    total = sum(kwh)
    change = (before - total) / before * 100
    return _talk().tell(f"""
U power use of home-1 last week?
C get_energy home=home-1 period=last_week
R {text}
# previous week total: {before} kWh
A You used {total:.1f} kWh last week, {total / 7:.1f} kWh a day on average. Saturday was the highest with \
{kwh[5]} kWh. Compared with {before} kWh the week before, it's {near(abs(change))}% \
{"less" if change > 0 else "more"}.
U in money?
A {total:.1f} kWh at $0.30 is ${total * 0.3:.2f}, and 7 days of standing charge are $3.50, so about \
${total * 0.3 + 3.5:.2f}.
U my heater has 2000W, what if it runs 3h a day
A 2,000 W for 3 hours is 6 kWh, so $1.80 a day, $12.60 a week or about ${1.8 * 30:.0f} in 30 days.
""")


def swedish_energy(rng: Random) -> Talk:
    """Swedish: kWh of two months, a share, kronor with a comma."""
    day = date(2025, rng.randint(4, 11), 1)
    last, less = rng.choice([400, 500, 600]), rng.choice([5, 10, 15, 20])
    now = last - last * less // 100
    used = ((f"{day.month - n:02}", use, 142) for n, use in ((2, last), (1, now)))
    months = rows("manad kwh ore_per_kwh", *used)
    first, second = (_MONTHS.split()[day.month - n - 1] for n in (2, 1))
    return _talk({"hem": "villa 7", "manader": months}, today=day).tell(f"""
U hej! hur mycket el drog villa 7 i {second}?
C get_energy home="villa 7" period=2m
A Hej! I {second} drog villan {now} kWh, {last - now} kWh ({less} %) mindre än i {first}, då det var {last} \
kWh.
U vad blir det i kronor
A Med 1,42 kr per kWh blir det {comma(now * 1.42)} kr, alltså {comma((last - now) * 1.42)} kr billigare än i \
{first}.
""")


def turkish_rent(rng: Random) -> Talk:
    """Turkish: a rent raised by a percentage, dots between thousands, a yearly difference."""
    rent, rate = rng.randrange(15000, 29000, 1000), rng.choice([20, 25, 30, 40, 45])
    new = rent + rent * rate // 100
    lease: dict[str, Any] = {"no": "K-204", "rent": rent, "currency": "TRY", "raise_pct": rate}
    lease |= {"raise_on": "2025-09-01", "deposit": 2 * rent}
    return _talk(lease).tell(f"""
U Merhaba, K-204 kira zammı ne kadar olacak?
C get_lease lease=K-204
A Merhaba! Kiranız 1 Eylül 2025'te %{rate} artıyor: {comma(rent, 0, ".")} TL'den {comma(new, 0, ".")} TL'ye, \
yani ayda {comma(new - rent, 0, ".")} TL fazla.
U yıllık ne kadar fazla ödeyeceğim? depozito kaçtı
A 12 ayda {comma(12 * (new - rent), 0, ".")} TL fazla. Depozitonuz {comma(2 * rent, 0, ".")} TL, yani iki \
aylık eski kira.
""")


def portuguese_move(rng: Random) -> Talk:
    """Portuguese: two firms, the difference, three instalments."""
    low, gap = rng.randrange(1140, 1800, 30), rng.randrange(150, 360, 30)
    firms = rows("empresa preco_brl horas nota", ("Leva Tudo", low, 6, 4.6), ("Mudex", low + gap, 5, 4.9))
    return _talk(firms).tell(f"""
U oi, qto fica a mudança do Centro pra Lapa? apê de 2 quartos
C moving_quotes origin=Centro target=Lapa rooms:=2
A Oi! Achei duas empresas:

- **Leva Tudo**: R$ {comma(low, 2, ".")} (cerca de 6 horas, nota 4,6)
- **Mudex**: R$ {comma(low + gap, 2, ".")} (5 horas, nota 4,9)

\\A Mudex custa R$ {gap} a mais, mas é uma hora mais rápida.
U dá pra dividir a mais barata em 3x?
A Não vejo parcelamento na oferta; se a Leva Tudo aceitar, seriam 3 parcelas de R$ {comma(low / 3)}.
""")


TEMPLATES = (
    rentals, viewing, mortgage, lender_rates, reading, reading_error, movers, cancel_move, heating,
    devices, week_of_energy, swedish_energy, turkish_rent, portuguese_move,
)  # fmt: skip
