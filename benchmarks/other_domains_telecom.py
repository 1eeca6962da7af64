"""Clean conversations of a mobile operator: plans, data, roaming, suspension, faults, bills."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, clock, comma, day, marked, nth, rows, usd
from talk import Talk, tool

POLICY = (
    "You are the support agent of Halo Mobile.\n"
    "Bills are due 14 days after the issue date; a late fee of $5.00 is added after that. An open bill can "
    "be split into up to 4 equal instalments without interest.\n"
    "1 GB is 1,024 MB. A data pack costs $4 per GB and lapses at the end of the cycle.\n"
    "Suspending a line costs $5.00 per started 30 days, for at most 90 days.\n"
    "Ask for a yes before you suspend or cancel a line.\n"
    "SIM cards arrive in 3–5 business days, an eSIM within 15 minutes. A port takes up to 24 hours.\n"
    "Specialists: 611 or 1-800-555-0142, every day from 7 a.m. to 10 p.m. Answer in the user's language.\n"
)
TOOLS = [
    tool("get_account", "Customer and lines by phone number", phone="string"),
    tool("get_usage", "Data used in a cycle", line_id="string", cycle="string?"),
    tool("list_bills", "Bills of an account", account_id="string", limit="integer?"),
    tool("get_bill", "One bill with its items", bill_id="string"),
    tool("pay_bill", "Pay a bill or a part of it", bill_id="string", amount_cents="integer", card="string?"),
    tool("list_plans", "Plans on sale", max_price="number?"),
    tool("change_plan", "Move a line to a plan", line_id="string", plan_id="string"),
    tool("add_data_pack", "Buy more data", line_id="string", gb="integer"),
    tool("roaming_passes", "Passes for a country", country="string"),
    tool("set_roaming", "Roaming of a line", line_id="string", pass_id="string", override_lock="boolean?"),
    tool("suspend_line", "Suspend a line", line_id="string", start="string", end="string"),
    tool("cancel_line", "Cancel a line", line_id="string", date="string"),
    tool("run_line_test", "Test a line", line_id="string"),
    tool("get_outages", "Known faults near a place", zip="string"),
    tool("port_in", "Bring a number", number="string", carrier="string", transfer_pin="string"),
    tool("search_help", "Search the help pages", query="string"),
]
MARKS = marked(TOOLS, "pay_bill change_plan add_data_pack set_roaming port_in", "suspend_line cancel_line")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def _line(rng: Random) -> str:
    return f"ln_{rng.randint(0x100000, 0xFFFFFF):x}"


def data_left(rng: Random) -> Talk:
    """Megabytes to gigabytes, a share, what is left, days until the reset, a projection from a help page."""
    today, plan, line = date(2025, rng.randint(2, 11), rng.randint(5, 14)), rng.choice([15, 20]), _line(rng)
    names, day_off = ["TikTok", "YouTube", "Instagram", "Spotify", "Maps"], rng.randint(19, 27)
    reset = today.replace(day=day_off)
    apps, days = sorted(rng.sample(range(300, 2400), 5), reverse=True), (reset - today).days
    rng.shuffle(names)
    by_app = rows("app mb category", *((names[n], apps[n], None) for n in range(5)))
    used, total = round(sum(apps) / 1024, 1), sum(apps)
    fits = "which fits" if 0.7 * days < plan - used else "which is still too much"
    result = {"used_mb": total, "limit_mb": plan * 1024, "cycle_end": str(reset), "by_app": by_app}
    return _talk(result, today=today).tell(f"""
U how much data do i have left?? line {line}
C get_usage line_id={line}
A You've used about {used} GB of your {plan} GB ({100 * total / plan / 1024:.0f}%), so roughly \
{plan - used:.1f} GB are left. Your cycle ends on {day(reset)}, {days} days from now – that's around \
{(plan - used) / days:.1f} GB a day.
U huh what ate that
A Mostly **{names[0]}** with {apps[0] / 1024:.1f} GB, then {names[1]} ({apps[1] / 1024:.1f} GB). Those two \
make up {100 * sum(apps[:2]) / total:.0f}%; {names[4]} is the smallest of the five, at {apps[4]:,} MB.
U if i watch 1 hour of netflix every day til the reset am i ok?
C search_help query="video data per hour"
R Video per hour: SD 0.7 GB | HD 3 GB | 4K 7 GB
A In HD an hour takes about 3 GB, so {days} days would need {3 * days} GB – more than the {plan - used:.1f} \
GB you have. In SD (0.7 GB an hour) it'd be about {0.7 * days:.1f} GB, {fits}.
""")


def bill_jump(rng: Random) -> Talk:
    """The user's rough figures, items in cents, a difference explained, a due date from the policy."""
    base, tax, packs = rng.choice([4500, 5500, 6000]), rng.randint(310, 690), rng.choice([2, 3, 5])
    calls, bill, issued = rng.randint(811, 2390), rng.randint(3000, 9000), date(2025, 7, rng.randint(1, 9))
    usual, total, due = base + tax, base + tax + calls + 400 * packs, issued + timedelta(days=14)
    paid = [(f"B-{bill + m - 6}", f"2025-0{m}", usual, "PAID") for m in (3, 4, 5)]
    bills = rows("bill_id period total_cents status", *paid, (f"B-{bill}", "2025-06", total, "OPEN"))
    costs = [("PLAN", base, 1), ("INTL_CA", calls, 2), ("DATA_PACK", 400 * packs, packs), ("TAX", tax, None)]
    result = {"issued": str(issued), "items": rows("code amount_cents qty", *costs), "credits": []}
    return _talk({"bills": bills, "next": None}, result).tell(f"""
U My bill is like {round(total / 100, -1):.0f} bucks this month, normally it's way less. Account A{bill * 7}
C list_bills account_id=A{bill * 7} limit:=4
C get_bill bill_id=B-{bill}
A You're right: the June bill is {usd(total)}, while March, April and May were {usd(usual)} each. The extra \
{usd(total - usual)} has two causes:\n\n1. **Calls to Canada** – {usd(calls)} for two calls\n2. **Data \
packs** – {packs} packs of 1 GB, {usd(400 * packs)}\n\nYour plan ({usd(base)}) and the taxes ({usd(tax)}) \
did not change.
U ok the calls were me. when do i have to pay & what if im late?
A It was issued on {day(issued)}, so it's due 14 days later, on {due:%A}, {day(due)}. After that a $5 late \
fee is added, which would bring it to {usd(total + 500)}.
U can i split it in 2
A Yes, up to four instalments are possible, with no interest. Two would be about {usd((total + 1) // 2)} \
each. Do you want to pay the first one now?
""")


def cheaper_plan(rng: Random) -> Talk:
    """A CSV of plans, an average, savings a month and a year, a change of mind, a write."""
    line, last, start = _line(rng), rng.randint(1000, 9999), date(2025, 7, rng.randint(11, 25))
    use = rng.sample([3.1, 3.6, 4.2, 4.4, 4.9, 5.3, 5.8], 3)
    now, plus, lite = rng.choice([65, 70]), rng.choice([40, 45]), rng.choice([25, 30])
    months = rows("cycle gb overage_gb hotspot_gb", *((f"2025-0{4 + n}", use[n], 0, 0.0) for n in range(3)))
    account = {"lines": [{"line_id": line, "plan_id": "P300", "data_gb": 50}], "flags": []}
    done = {"ok": True, "plan_id": "P100", "effective": f"{start}T00:00:00-05:00", "price_usd": f"{lite}.00"}
    return _talk(account, {"history": months}, done).tell(f"""
U I think I'm overpaying. 512-555-{last}
C get_account phone=512555{last}
C get_usage line_id={line}
+ list_plans
R plan_id,name,data_gb,price_usd,contract_months,hotspot
P100,Lite,6,{lite}.00,0,no\nP200,Plus,15,{plus}.00,0,yes
P300,Max,50,{now}.00,0,yes\nP400,Ultra,unlimited,{now + 20}.00,12,yes
A You probably are! You have the Max plan with 50 GB for ${now}, but over the last three cycles you used \
{use[0]}, {use[1]} and {use[2]} GB – {sum(use) / 3:.1f} GB on average.

| Plan | Data | Price | You'd save per month |\n|---|---|---|---|
| Lite | 6 GB | ${lite} | ${now - lite} |\n| Plus | 15 GB | ${plus} | ${now - plus} |
U {rng.choice(["Plus then", "go for Plus"])}... hmm no. is 6 gigs enough for me?
A Going by the last three months, yes: your highest was {max(use)} GB, which leaves {6 - max(use):.1f} GB of \
room. Lite has no hotspot, but you haven't used yours. Over a year you'd pay ${12 * (now - lite)} less than \
today, with no contract term. Shall I switch you to Lite?
U yes Lite
C change_plan line_id={line} plan_id=P100
A Done 🎉 From {start:%A}, {day(start)}, the line ending in {last} is on Lite: 6 GB for ${lite} a month \
instead of 50 GB for ${now}.
""")


def roaming_pass(rng: Random) -> Talk:
    """XML; days counted inclusively; products compared; an error and its recovery after a yes."""
    line, one, seven = _line(rng), rng.choice([9, 10, 12]), rng.choice([35, 39, 42])
    fifteen, first = rng.choice([49, 55, 59]), rng.randint(2, 5)
    locked = {"error": {"code": "ROAMING_LOCK", "message": "lock set by the owner", "http_status": 409}}
    done = {"pass_id": "JP-D15", "starts_on": "first_use", "gb": 12, "charge": f"{fifteen}.00"}
    return _talk(locked, done).tell(f"""
U Going to Japan from the {nth(first)} to the {nth(first + 13)} of October. Whats the best roaming deal? \
{line}
C roaming_passes country=JP
R <?xml version="1.0"?><passes country="JP" currency="USD"><pass id="JP-D1" days="1" gb="1" price="{one}.00"/>
<pass id="JP-D7" days="7" gb="5" price="{seven}.00"/><pass id="JP-D15" days="15" gb="12" \
price="{fifteen}.00"/>
</passes>
A October {first} to {first + 13} is 14 days, counting both ends. That gives you three options:\n- 14 day \
passes: 14 × ${one} = ${14 * one}\n- two 7-day passes: ${2 * seven} (10 GB altogether)\n- one 15-day pass: \
${fifteen} (12 GB)\n\nThe last is the cheapest, ${2 * seven - fifteen} below two 7-day passes, or about \
${fifteen / 14:.2f} per day of your trip. Shall I add it?
U Yep add it
C set_roaming line_id={line} pass_id=JP-D15
A I couldn't add it: there is a roaming lock on the line that the owner has set (ROAMING_LOCK, error 409). \
If you are the owner, I can lift the lock and book the pass in one go. Is that okay?
U thats me, go ahead
C set_roaming line_id={line} pass_id=JP-D15 override_lock:=true
A It worked. The 15-day pass with 12 GB is on your line for ${fifteen}; it starts when you first use it. \
Spread over your 14 days, 12 GB is about {12 / 14 * 1024:.0f} MB per day.
""")


def suspend(rng: Random) -> Talk:
    """Dates in words, a duration, a fee from the policy by started months, a destructive call after a yes."""
    today, weeks, line = date(2025, 5, rng.randint(5, 8)), rng.choice([3, 5, 6]), _line(rng)
    start = today + timedelta(days=11 - today.weekday())
    end, cut = start + timedelta(weeks=weeks), start + timedelta(weeks=weeks - 1)
    full, less = -(-7 * weeks // 30) * 500, -(-7 * (weeks - 1) // 30) * 500
    result = {"line_id": line, "status": "SUSPENSION_SCHEDULED", "from": str(start), "to": str(cut)}
    return _talk(result, today=today).tell(f"""
U Hello, I'd like to pause my line ({line}) from next week's Friday for {weeks} weeks. What does it cost?
A {weeks} weeks from Friday, {day(start)}, run until {day(end)}, i.e. {7 * weeks} days. Suspension is $5.00 \
per started 30 days, so you'd pay {usd(full)} in total. The limit is 90 days, so you're fine. Shall I set it \
up?
U {rng.choice(["Sorry", "Actually"])}, one week less. I'm back earlier.
A No problem. Then it would run from {day(start)} to {day(cut)}, which is {7 * (weeks - 1)} days and costs \
{usd(less)}. Shall I go ahead?
U Yes please do
C suspend_line line_id={line} start={start} end={cut}
A The suspension is scheduled from {start} to {cut}. Enjoy your {weeks - 1} weeks off!
""")


def family_lines(rng: Random) -> Talk:
    """Five lines with values; sum, mean, most and least, a fraction, an equal split, a filter count."""
    names = rng.sample(["Ana", "Ben", "Chloe", "Dev", "Ella", "Finn", "Grace"], 5)
    use, shared, price = rng.sample(range(11, 199), 5), rng.choice([100, 120]), rng.choice([140, 155])
    lines = [(_line(rng), names[n], use[n] / 10, "ACTIVE", n % 2 == 0) for n in range(5)]
    account = {"shared_gb": shared, "price": price, "lines": rows("line_id name used_gb status esim", *lines)}
    total, each = sum(use) / 10, "\n".join(f"- {names[n]}: {use[n] / 10} GB" for n in range(5))
    return _talk(account).tell(f"""
U (415) 555-0163, the family plan. who's using up all our data?
C get_account phone=4155550163
A **{names[use.index(max(use))]}** leads with {max(use) / 10} GB, while {names[use.index(min(use))]} has \
used just {min(use) / 10} GB. Here is everyone:\n\n{each}\n\nTogether that's {total:.1f} of {shared} GB, an \
average of {total / 5:.2f} GB per line.
U so how much is still there and what does each of us owe me lol, I pay the thing
A {shared - total:.1f} GB are left for the five of you. The plan is ${price} a month; split evenly that's \
${price // 5} per person, so the other four owe you ${price // 5 * 4} between them.
U who has an esim?
A Three of the five: {names[0]}, {names[2]} and {names[4]}. {names[1]} and {names[3]} have no eSIM; one \
would be ready within 15 minutes if they want it.
""")


def pay_part(rng: Random) -> Talk:
    """Terse. A balance before and after a payment, instalments, a masked card, a declined card first."""
    bill, part, card = f"B-{rng.randint(10000, 99999)}", rng.randint(2105, 4890), rng.randint(1000, 9999)
    opened = {"bill_id": bill, "total_cents": 4 * part, "paid_cents": 0, "due": "2025-08-18"}
    paid = {"paid_cents": part, "open_cents": 3 * part, "last4": str(card), "receipt": f"R-{card + part}"}
    return _talk(opened, paid).tell(f"""
U {bill} amount?
C get_bill bill_id={bill}
A {usd(4 * part)}, due August 18.
U cant pay all. quarter now
C pay_bill bill_id={bill} amount_cents:={part}
R ERROR 402: card_declined (insufficient_funds), card **** 1117
A A quarter is {usd(part)}. The card ending in 1117 was declined (402). Another card on file?
U use the one ending {card}
C pay_bill bill_id={bill} amount_cents:={part} card={card}
A Paid {usd(part)} with ••{card}, receipt R-{card + part}. Open: {usd(3 * part)}, 3 instalments to go.
U same each month then i'm done in?
A 3 more months at {usd(part)}: {usd(2 * part)} open after the 2nd, {usd(part)} after the 3rd, $0 after the \
4th.
""")


def cancel_tablet(rng: Random) -> Talk:
    """Lines of a kind, remaining instalments, two ways compared, a destructive call."""
    rate, left, fee = rng.choice([1250, 1499, 1875]), rng.randint(4, 9), rng.choice([1000, 1500])
    line, rest = _line(rng), rate * left
    others = [(_line(rng), "Apple Watch", 800, 0, 0), (_line(rng), "iPhone 15", 5000, 0, 0)]
    keys = "line_id device monthly_cents instalment_cents instalments_left"
    account = {"lines": rows(keys, (line, "iPad Air", fee, rate, left), *others), "exit": "instalments left"}
    gone = {"line_id": line, "status": "CANCELLED", "final_charge_cents": rest, "end": "2025-10-31"}
    return _talk(account, gone, today=date(2025, 10, rng.randint(6, 20))).tell(f"""
U pls cancel my tablet line, I never use it. 206 555 0188
C get_account phone=2065550188
A I see three lines: an iPad Air, an Apple Watch and an iPhone 15. The iPad still has {left} device \
instalments of {usd(rate)}, so cancelling now means paying those {usd(rest)} at once. In return you save the \
{usd(fee)} monthly fee. It would end at the end of the month, on October 31. Do you want to cancel it?
U {usd(rest)}?? and if I keep it til its paid off?
A Then you'd pay the same {usd(rest)} in {left} monthly parts, plus {left} × {usd(fee)} = {usd(left * fee)} \
for the line – {usd(left * (rate + fee))} in all. So cancelling now is {usd(left * fee)} cheaper.
U {rng.choice(["Fine, cancel it", "OK then yes, cancel"])}
C cancel_line line_id={line} date=2025-10-31
A The tablet line is cancelled as of October 31, with a final charge of {usd(rest)}. Your other two lines \
stay as they are, $58 a month together.
""")


def outage(rng: Random) -> Talk:
    """Epoch and ISO times in UTC to Eastern time, a duration, a share of masts, a pro-rated credit."""
    up, down, price = rng.choice([2, 4]), rng.choice([6, 8]), 30 * rng.choice([150, 180, 200])
    began = datetime(2025, 7, 16, rng.randint(12, 15), rng.choice([5, 20, 50]), tzinfo=UTC)
    fixed, east = began + timedelta(hours=7, minutes=30), timedelta(hours=-4)
    cut = ("OUT-8841", "FIBER_CUT", int(began.timestamp()), down, down + up, f"{fixed:%Y-%m-%dT%H:%MZ}")
    keys = "id kind started_at sites_down sites_total eta"
    faults = rows(keys, cut, ("OUT-8790", "PLANNED", None, 0, 1, None))
    result = {"zip": "12601", "timezone": "America/New_York (UTC-4)", "faults": faults}
    return _talk(result, today=date(2025, 7, 16)).tell(f"""
U no signal at all in 12601 since this morning, wth is going on
C get_outages zip=12601
A Sorry about that! A fiber cut (OUT-8841) took down {down} of {down + up} masts in your area at \
{clock(began + east)} Eastern. The repair is expected by {clock(fixed + east)} today, i.e. about seven and a \
half hours after it began.
U so most of the masts. do i get money back? i pay {usd(price)} a month
A Yes, {100 * down / (down + up):.0f}% of them. I can't promise a credit myself, but the specialists can \
look into it, at 611 or 1-800-555-0142 until 10 p.m. For orientation: one day of a 30-day month is \
{usd(price // 30)}.
U and that other one in the list?
A OUT-8790 is planned work. It has no start time yet and its one mast isn't down, so it's not the cause.
""")


def port_number(rng: Random) -> Talk:
    """A formatted number, a rejected PIN, hours until done, how-to steps."""
    last, pin, job = rng.randint(100, 199), rng.randint(100000, 999999), f"PRT-{rng.randint(7000, 7999)}"
    hour, bad = rng.randint(9, 11), {"error": "PIN_INVALID", "detail": "got 5 of 6 digits", "retries_left": 2}
    good = {"job": job, "state": "SUBMITTED", "at": f"2025-11-04T{hour:02}:15:00-07:00", "sim": "eSIM"}
    return _talk(bad, good).tell(f"""
U wanna bring my number 3035550{last} from Verizon, transfer pin {pin // 10}
C port_in number=3035550{last} carrier=Verizon transfer_pin={pin // 10}
A Verizon's transfer PIN needs 6 digits, and the one you gave has only 5, so the request was rejected. We \
have two tries left. Could you check it again?
U oh missed one. {pin}
C port_in number=3035550{last} carrier=Verizon transfer_pin={pin}
A Now it went through: {job} for (303) 555-0{last}, submitted at {hour}:15 a.m. Ports take up to 24 hours, \
so by {hour}:15 tomorrow morning (November 5) at the latest.\n\nIn the meantime:\n1. Keep your old SIM in.
2. Don't cancel at Verizon – that happens by itself.
3. When the old SIM loses service, install the eSIM; it is ready within 15 minutes.\n4. Restart the phone.
U do i still get my 2FA texts during that?
A Until step 3, yes, on the old SIM. Around the switch texts may be late, so better not rely on SMS codes \
then.
""")


def wifi_calling(rng: Random) -> Talk:
    """Verbose how-to with emojis, a Markdown help page, numbers of common knowledge."""
    speed, build, calls = rng.choice(["0.2", "0.1"]), rng.choice([17, 18]), rng.choice([2, 3, 4])
    return _talk().tell(f"""
U How do I get wifi calling on an iPhone 15? basement has zero bars
C search_help query="wifi calling iphone"
R # Wi-Fi calling\n| Device | Needs |\n|---|---|\n| iPhone XS and later | iOS {build} |\n| Pixel 6–9 | \
Android 14 |
\nBandwidth: {speed} Mbps per call. Use WPA2 or WPA3. Price: $0.
A Great idea for a basement! 📶 Your iPhone 15 is newer than the XS, so all you need is **iOS {build}** or \
later:
\n1️⃣ Open **Settings → Apps → Phone** (on older versions: **Settings → Phone**)\n2️⃣ Tap **Wi-Fi Calling**
3️⃣ Switch on **Wi-Fi Calling on This iPhone**\n4️⃣ Enter your address for 911 calls\n\nIt's free of charge. 👍
U and is it ok on a 5 mbit dsl with {calls} of us calling at once
A Easily ✅ A call takes {speed} Mbps, so {calls} calls need only {calls * float(speed):.1f} Mbps – a small \
part of your 5. You could run as many as {round(5 / float(speed))} before the line is full.
U my wife has a pixel 7 on android 13
A The Pixel 7 is supported (Pixel 6 to 9), but it needs Android 14 – one version up from her 13.
""")


def depassement(rng: Random) -> Talk:
    """French: megabytes out of the plan, a price per megabyte, a pass against the usual price."""
    ligne, mo, prix, inclus = _line(rng), rng.randint(61, 190), rng.choice([10, 15, 20]), rng.choice([20, 25])
    pris, suisse = rng.randint(8, 14), ("CH", mo, 0, f"{mo * prix / 100:.2f}")
    zones = rows("zone data_mb incluse_gb cout_eur", ("UE", pris * 1024, inclus, "0.00"), suisse)
    passe = {"pass_id": "CH-W", "pays": "CH", "jours": 7, "data_gb": 3, "prix_eur": "12.00"}
    done = {"ok": True, "pass_id": "CH-W", "actif": "PREMIERE_UTILISATION"}
    return _talk({"cycle": "2025-06", "zones": zones}, {"passes": [passe]}, done).tell(f"""
U bonjour, j'ai reçu une alerte hors forfait pendant mon weekend à Genève, c'est quoi ? ligne {ligne}
C get_usage line_id={ligne}
A Bonjour ! La Suisse ne fait pas partie de l'Union européenne : les {mo} Mo utilisés là-bas n'étaient pas \
inclus et vous sont facturés {comma(mo * prix / 100)} €, soit {comma(prix / 100)} € par Mo. En Europe, vous \
avez consommé {pris} Go sur {inclus} sans frais ; il vous en reste {inclus - pris}.
U mince. j'y retourne jeudi prochain pour 5 jours, y a pas un pass ?
C roaming_passes country=CH
A Si : le pass Suisse coûte 12 € pour 7 jours et 3 Go, donc largement assez pour vos cinq jours (environ 600 \
Mo par jour). Pour comparer, 3 Go au tarif normal reviendraient à {comma(3 * 1024 * prix / 100)} €. Je \
l'active ?
U oui svp
C set_roaming line_id={ligne} pass_id=CH-W
A C'est fait : le pass de 12 € démarrera à la première utilisation et sera valable 7 jours.
""")


def ricarica(rng: Random) -> Talk:
    """Italian: what is left before and after more is bought, a year of renewals."""
    linea, usati, euro, gb = _line(rng), rng.randint(83, 96), rng.choice([999, 1199]), rng.choice([2, 3])
    dati = {"limite_gb": 100, "usati_gb": usati, "rinnovo": "2025-09-24", "prezzo": comma(euro / 100)}
    preso = {"ok": True, "limite_gb": 100 + gb, "addebito_usd": f"{4 * gb}.00"}
    return _talk(dati, preso).tell(f"""
U ciao quanti giga mi restano? {linea}
C get_usage line_id={linea}
A Ciao! Hai usato {usati} GB su 100, quindi ti restano {100 - usati} GB. Il rinnovo è mercoledì 24 \
settembre, a {comma(euro / 100)} €.
U mmh pochi. aggiungine {gb}
C add_data_pack line_id={linea} gb:={gb}
A Fatto: {gb} GB in più per {4 * gb} dollari. Ora il limite è di {100 + gb} GB e te ne restano \
{100 - usati + gb}.
U e in un anno quanto spendo di rinnovi?
A Dodici rinnovi da {comma(euro / 100)} € fanno {comma(12 * euro / 100)} €, pacchetti esclusi.
""")


def faktura(rng: Random) -> Talk:
    """Polish: VAT of 23 %, days after the due date, a sum of two invoices."""
    konto, zl, late = f"PL{rng.randint(100000, 999999)}", rng.randint(31, 79), rng.randint(5, 9)
    net, vat, gross = comma(zl), comma(zl * 0.23), comma(zl * 1.23)
    new = ("FV/03/2025", net, vat, gross, "2025-03-14", "NIEZAPLACONA")
    old = ("FV/02/2025", net, vat, gross, "2025-02-14", "OPLACONA")
    bills = {"waluta": "PLN", "faktury": rows("bill_id netto vat brutto termin status", new, old)}
    return _talk(bills, today=date(2025, 3, 14 + late)).tell(f"""
U dzień dobry, mam coś do zapłaty? konto {konto}
C list_bills account_id={konto}
A Dzień dobry! Tak, faktura FV/03/2025 na {gross} zł brutto ({net} zł netto + 23% VAT, czyli {vat} zł). \
Termin minął 14 marca, {late} dni temu. Lutowa jest już opłacona.
U a ile to razem za luty i marzec?
A Obie faktury są równe, więc razem {comma(zl * 2.46)} zł, z czego {gross} zł czeka jeszcze na wpłatę.
""")


TEMPLATES = (
    data_left, bill_jump, cheaper_plan, roaming_pass, suspend, family_lines, pay_part, cancel_tablet, outage,
    port_number, wifi_calling, depassement, ricarica, faktura,
)  # fmt: skip
