"""Clean conversations of a health service: visits, lab results, doses, claims, fitness, food."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from scripted import Script, comma, day, marked, rows, usd
from talk import Talk, tool

POLICY = (
    "You are the assistant of Brookside Health. Explain results, but make no diagnosis; in an emergency "
    "refer to 911. Answer in the user's language.\n"
    "Visits cancelled less than 24 hours before cost $25. Please arrive 15 minutes early.\n"
    "Benefits: after the deductible the member pays 20% until the out-of-pocket maximum.\n"
    "Refills can be ordered from 7 days before the tablets run out and take 2 business days.\n"
    "1 lb is 0.4536 kg, 1 mile is 1.609 km, 1 cup is 240 ml. Protein has 4 kcal per gram.\n"
    "Ask for a yes before you cancel a visit or delete an entry.\n"
)
TOOLS = [
    tool("find_slots", "Free visits", specialty="string", start="string", end="string"),
    tool("book_visit", "Book a visit", slot_id="string", reason="string?"),
    tool("list_visits", "Visits of a patient", patient="string"),
    tool("cancel_visit", "Cancel a visit", visit_id="string"),
    tool("get_labs", "Lab results", patient="string", panel="string?"),
    tool("get_leaflet", "Leaflet of a drug", drug="string"),
    tool("get_prescription", "A prescription", rx="string"),
    tool("order_refill", "Order a refill", rx="string"),
    tool("get_claim", "A claim", claim="string"),
    tool("get_benefits", "Benefits of a member", member="string"),
    tool("get_activity", "Workouts, sleep or readings", user="string", kind="string", days="integer"),
    tool("log_entry", "Write an entry", user="string", kind="string", value="number", note="string?"),
    tool("delete_entry", "Delete an entry", entry_id="string"),
    tool("get_recipe", "A recipe", dish="string"),
]
MARKS = marked(TOOLS, "book_visit order_refill log_entry", "cancel_visit delete_entry")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def lab_ranges(rng: Random) -> Talk:
    """Six results with ranges, two out of range, by how much, one compared with a value of the user."""
    ferritin, ldl, glucose = rng.randint(8, 13), rng.randint(118, 149), rng.randint(78, 95)
    told = [
        ("Ferritin", ferritin, "ng/mL", 15, 150, "L"),
        ("Hemoglobin", rng.choice([12.6, 13.1, 13.4]), "g/dL", 12, 15.5, None),
        ("LDL", ldl, "mg/dL", None, 115, "H"),
        ("Glucose", glucose, "mg/dL", 70, 99, None),
        ("TSH", rng.choice([1.4, 2.1]), "mIU/L", 0.4, 4.0, None),
        ("ALT", rng.randint(14, 29), "U/L", 7, 35, None),
    ]
    mine = ferritin + rng.choice([18, 24])
    results = rows("test value unit low high flag", *told)
    return _talk({"drawn": "2025-04-08T07:50:00", "results": results}).tell(f"""
U my lab results are in, anything weird? patient P-2210
C get_labs patient=P-2210
A Four of the six values are within their ranges. The other two:\n\n- **Ferritin** {ferritin} ng/mL – \
{15 - ferritin} below the lower limit of 15\n- **LDL** {ldl} mg/dL – {ldl - 115} above the limit of \
115\n\nPlease discuss both with your doctor; I can't make a diagnosis. Hemoglobin, glucose, TSH and ALT look \
fine.
U ferritin was {mine} last year...
A Then it has dropped by {mine - ferritin}, to {100 * ferritin / mine:.0f}% of last year's value. That's \
worth mentioning. Shall I look for an appointment?
U is {glucose} glucose ok? i had coffee with milk
A It's inside 70–99 mg/dL, {99 - glucose} under the upper end, so even with the milk it stayed within the \
range.
""")


def lab_trend(rng: Random) -> Talk:
    """Three dates, a fall in per cent, mg/dL and mmol/L by a factor from the tool, months between."""
    first, second, third = rng.randint(166, 190), rng.randint(135, 160), rng.choice([96, 98, 109, 117, 126])
    keys, months = "date ldl_mg_dl", ("2024-09-12", "2025-01-10", "2025-05-12")
    points = rows(keys, *zip(months, (first, second, third), strict=True))
    reached = f"Yes, your goal is 100 and you are {100 - third} under it."
    if third > 100:
        reached = f"Not yet: the goal is 100 mg/dL, so there are {third - 100} to go."
    return _talk({"points": points, "to_mmol_l": 0.0259, "goal_mg_dl": 100}).tell(f"""
U how has my LDL changed since i started the pills in september? P-4471
C get_labs patient=P-4471 panel=lipids
A It has come down at each check 👏\n\n| Date | LDL |\n|---|---|\n| Sept 12, 2024 | {first} mg/dL |\n| Jan \
10, 2025 | {second} mg/dL |
| May 12, 2025 | {third} mg/dL |\n\nThat's {first - third} mg/dL less in eight months, a drop of \
{100 * (first - third) / first:.0f}%.
U whats that in mmol, my sister is in canada
A {first} mg/dL is {first * 0.0259:.1f} mmol/L, and {third} is {third * 0.0259:.1f} mmol/L.
U and am i at the goal
A {reached} Your doctor decides what comes next.
""")


def child_dose(rng: Random) -> Talk:
    """Pounds to kilograms, mg per kg, a volume from a concentration, a daily maximum, hours between doses."""
    pounds, kg = rng.choice([(33, 15), (44, 20), (55, 25)])
    dose, hour = 15 * kg, rng.choice([7, 8, 9])
    return _talk().tell(f"""
U how much childrens tylenol for my son, {pounds} lbs, fever 39
C get_leaflet drug=acetaminophen
R ## Acetaminophen, oral suspension 160 mg/5 mL\n- Dose: 15 mg per kg of body weight\n- Not sooner than \
every 6 hours
- At most 4 doses in 24 hours\n- Fever for more than 3 days: see a doctor
A {pounds} lb is about {kg} kg. At 15 mg per kg that's {dose} mg; the suspension has 32 mg per mL (160 mg/5 \
mL), so about **{dose / 32:.1f} mL** per dose. Leave at least 6 hours between doses and don't give more than \
4 in 24 hours. Please check with your pharmacist or doctor if in doubt, and call 911 in an emergency.
U gave it at {hour}am. next one?
A Not before {hour + 6 - 12} p.m., and then from {hour} p.m. on at the earliest if he still needs it – 6 \
hours later each time.
U max per day in mg?
A 4 × {dose} mg = {4 * dose} mg, about {4 * dose / 32:.0f} mL.
""")


def friday_slot(rng: Random) -> Talk:
    """A weekday in words, slots as ISO times, a filter after work, arrival before, a slot gone in between."""
    today, dr = date(2025, 6, rng.randint(9, 11)), rng.choice(["Dr. Amara Osei", "Dr. Lena Fuchs"])
    when = today + timedelta(days=11 - today.weekday())
    times = [(8, 20), (10, 40), (13, 5), (16, 10), (16, 50)]
    slots = [
        (f"S{n}", f"{when}T{h:02}:{m:02}:00-04:00", 20, dr, "in_person") for n, (h, m) in enumerate(times)
    ]
    done = {"visit_id": f"V-{rng.randint(7000, 7999)}", "start": f"{when}T16:10:00-04:00", "floor": 3}
    gone = {"error": "slot_taken", "status": 409}
    return _talk(rows("slot_id start minutes doctor mode", *slots), gone, done, today=today).tell(f"""
U need a dermatologist next week friday, after 4pm if possible
C find_slots specialty=dermatology start={when} end={when}
A On {when:%A}, {day(when)}, {dr} has five free slots, two of them after 4: 4:10 and 4:50 p.m. (20 minutes \
each). Which one?
U the later
C book_visit slot_id=S4
A Someone else was faster – 4:50 p.m. has just been taken. The 4:10 is the only one left after 4. Would you \
like that one?
U ok
C book_visit slot_id=S3
A You're booked for Friday, {day(when)} at 4:10 p.m. with {dr}, visit {done["visit_id"]}, 3rd floor. Please \
be there by 3:55 p.m.; you should be out at about half past four.
""")


def cancel_fee(rng: Random) -> Talk:
    """Two visits of a kind, hours until one, a fee from the policy, the other one, a call after a yes."""
    now, gap = date(2025, 2, rng.randint(10, 12)), rng.choice([6, 8])
    soon, later = now + timedelta(days=1), now + timedelta(days=gap)
    ids = rng.sample(range(5000, 5999), 2)
    keys = "visit_id kind start doctor copay_cents"
    visits = rows(
        keys,
        (f"V-{ids[0]}", "PHYSIO", f"{soon}T09:30:00", "M. Reyes", 3000),
        (f"V-{ids[1]}", "PHYSIO", f"{later}T09:30:00", "M. Reyes", 3000),
    )
    return _talk({"time": "15:10", "visits": visits}, {"ok": True, "fee_cents": 0}, today=now).tell(f"""
U cancel my physio please. P-3308
C list_visits patient=P-3308
A You have two physio visits with M. Reyes, both at 9:30 a.m.: tomorrow ({soon:%A}) and on {later:%A}, \
{day(later)}. Tomorrow's is less than 24 hours away, so cancelling it would cost $25; the other one is free \
to cancel. Which one do you mean?
U oh then i'll go tomorrow. the other one
A So I'll cancel V-{ids[1]} on {day(later)} at no charge and leave tomorrow's. Is that right?
U {rng.choice(["right", "yep exactly", "Yes, correct."])}
C cancel_visit visit_id=V-{ids[1]}
A V-{ids[1]} is cancelled, no fee. See you tomorrow at 9:30 – about 18 hours from now – and please bring the \
$30 copay.
""")


def claim_share(rng: Random) -> Talk:
    """Cents, a discount, a deductible that is used up, 20 % of the rest, a bill that is too high."""
    billed, allowed = 1000 * rng.randint(110, 160), 1000 * rng.randint(70, 98)
    open_part, claim = 1000 * rng.randint(12, 40), f"CL-{rng.randint(88000, 88999)}"
    share = (allowed - open_part) // 5
    mine, wrong = open_part + share, open_part + share + 1000 * rng.randint(9, 20)
    result = {
        "claim": claim,
        "service": {"cpt": "73721", "text": "MRI knee", "date": "2025-03-19"},
        "cents": {"billed": billed, "allowed": allowed, "deductible": open_part, "coinsurance": share},
        "network": "IN",
        "state": "PROCESSED",
    }
    return _talk(result).tell(f"""
U got a bill of {usd(wrong)} for my knee MRI, is that right?? claim {claim}
C get_claim claim={claim}
A According to the claim your share is {usd(mine)}, not {usd(wrong)}:\n\n1. Billed: {usd(billed)}\n2. \
Allowed in the network: {usd(allowed)} (a discount of {usd(billed - allowed)})\n3. Rest of your deductible: \
{usd(open_part)}\n4. 20% of the remaining {usd(allowed - open_part)}: {usd(share)}\n\nSo the bill is \
{usd(wrong - mine)} too high, and I'd ask the clinic to correct it.
U so what does the insurance pay
A {usd(allowed - mine)}, i.e. 80% of {usd(allowed - open_part)}.
U is my deductible done now?
A Yes. The 20% only start after the deductible, so this claim took the last {usd(open_part)} of it.
""")


def deductible_left(rng: Random) -> Talk:
    """Terse. What is left of two limits, shares, a planned cost worked out against both."""
    used, paid = 50 * rng.randint(12, 26), 50 * rng.randint(27, 40)
    left, cost = 1500 - used, rng.choice([1600, 1800, 2100])
    mine = left + (cost - left) // 5
    result = {"deductible": {"limit": 1500, "used": used}, "oop_max": {"limit": 4000, "used": paid}}
    return _talk(result).tell(f"""
U deductible left? M-70215
C get_benefits member=M-70215
A ${left:,} of $1,500. You've met ${used:,}, {100 * used / 1500:.0f}%.
U surgery will be {cost}. i pay?
A ${left:,} deductible + 20% of ${cost - left:,} = ${left + (cost - left) / 5:,.0f}.
U over the max?
A No. ${paid:,} so far + ${mine:,} = ${paid + mine:,} of $4,000.
""")


def week_runs(rng: Random) -> Talk:
    """Metres and seconds to km and pace, the longest and the fastest, miles, a total against a goal."""
    metres, paces = rng.sample(range(4200, 12400, 200), 4), rng.sample(range(318, 392), 4)
    secs, names = [m * p // 1000 for m, p in zip(metres, paces, strict=True)], ["Mon", "Wed", "Fri", "Sun"]
    runs = [(f"r{n}", names[n], metres[n], secs[n], rng.randint(131, 158), None) for n in range(4)]
    km, far, fast = sum(metres) / 1000, metres.index(max(metres)), paces.index(min(paces))
    goal, pace = round(km) + rng.randint(4, 9), [f"{p // 60}:{p % 60:02} /km" for p in paces]
    table = "\n".join(f"| {names[n]} | {metres[n] / 1000:.1f} km | {pace[n]} |" for n in range(4))
    return _talk(rows("id day distance_m moving_s avg_hr note", *runs)).tell(f"""
U Show me my runs this week please! user kim22
C get_activity user=kim22 kind=run days:=7
A Here's your week, 4 runs 🏃\n\n| Day | Distance | Pace |\n|---|---|---|\n{table}

**{km:.1f} km** in total. The longest was on {names[far]} ({max(metres) / 1000:.1f} km), the fastest on \
{names[fast]}.
U in miles?
A {km:.1f} km are about {km / 1.609:.1f} miles, so {km / 1.609 / 4:.1f} miles per run on average.
U my goal is {goal} km a week
A Then you're {goal - km:.1f} km short, at {100 * km / goal:.0f}% of it.
""")


def recipe_scale(rng: Random) -> Talk:
    """A recipe for more people, grams, cups, halves, Fahrenheit to Celsius, minutes, allergy swap."""
    people, heat = rng.choice([(6, 350), (6, 375), (10, 350), (8, 400)])
    flour, factor, have = rng.choice([240, 280, 320]), people / 4, people // 2 - 1
    recipe = {
        "serves": 4,
        "ingredients": [f"{flour} g flour", "480 ml milk", "2 eggs", "80 g sugar", "1 pinch of salt"],
        "oven_f": heat,
        "bake_min": 35,
        "per_serving": {"kcal": 392, "protein_g": 11.5},
    }
    return _talk(recipe).tell(f"""
U recipe for the clafoutis pls but for {people} ppl, im in germany so celsius
C get_recipe dish=clafoutis
A For {people} instead of 4, take {factor:g} times everything:\n\n- {flour * factor:.0f} g flour\n- \
{480 * factor:.0f} ml milk ({2 * factor:g} cups)
- {2 * factor:g} eggs\n- {80 * factor:.0f} g sugar\n- a good pinch of salt\n\nBake at \
{(heat - 32) / 1.8:.0f} °C ({heat} °F) for 35 minutes, a little longer in a bigger dish.
U only got {have} eggs lol
A That's one too few; {have} eggs are enough for {2 * have} people.
U calories for all of it?
A {people} servings × 392 kcal = {people * 392:,} kcal.
""")


def food_day(rng: Random) -> Talk:
    """Meals added up, what is left of a goal, protein as a share of the energy, an entry written."""
    kcal = [rng.randint(290, 480), rng.randint(520, 760), rng.randint(120, 240)]
    protein = rng.sample(range(9, 38), 3)
    meals = [(f"e{n}", ("breakfast", "lunch", "snack")[n], kcal[n], protein[n], None) for n in range(3)]
    goal, total, shake = rng.choice([2000, 2200]), sum(kcal), rng.choice([180, 210, 240])
    diary = {"goal_kcal": goal, "entries": rows("id meal kcal protein_g photo", *meals)}
    return _talk(diary, {"ok": True, "entry_id": "e3", "total_kcal": total + shake}).tell(f"""
U what did i eat so far, im joe_b
C get_activity user=joe_b kind=food days:=1
A {total:,} kcal so far: breakfast {kcal[0]}, lunch {kcal[1]} and a snack of {kcal[2]}. That leaves \
{goal - total:,} of your {goal:,} kcal.
U add a shake {shake} kcal. how's my protein
C log_entry user=joe_b kind=food value:={shake} note=shake
A Logged; you're at {total + shake:,} kcal now, {goal - total - shake:,} left. Without the shake you had \
{sum(protein)} g of protein, that is {4 * sum(protein)} kcal or about {400 * sum(protein) / total:.0f}% of \
the energy.
U shake has 25g
A Then it's {sum(protein) + 25} g altogether.
""")


def sleep_entry(rng: Random) -> Talk:
    """Minutes of five nights, an average, a wrong entry deleted after a yes, a new average, a difference."""
    nights = [rng.randint(370, 470) for _ in range(4)]
    fifth = 4 * 60 + rng.randint(5, 25)
    before, after = round((sum(nights) + fifth) / 5), round(sum(nights) / 4)
    told = [(f"s{n}", f"2025-10-{6 + n:02}", minutes, "watch") for n, minutes in enumerate([*nights, fifth])]
    return _talk(rows("entry_id date minutes source", *told), {"deleted": "s4"}).tell(f"""
U avg sleep since monday? user lou
C get_activity user=lou kind=sleep days:=5
A {before // 60} h {before % 60:02} min over five nights (October 6 to 10). The shortest was the last one, \
with {fifth // 60} h {fifth % 60:02} min.
U thats wrong, watch battery died. delete that one
A I'd delete the entry of October 10 ({fifth} minutes). Is that OK?
U yup
C delete_entry entry_id=s4
A Deleted. Over the other four nights it's {after // 60} h {after % 60:02} min, {after - before} minutes more.
U 8h is the goal so
A So about {480 - after} minutes a night are missing, {4 * 480 - sum(nights)} over the four nights.
""")


def refill(rng: Random) -> Talk:
    """Tablets left, two a day, the day they run out, the first day for a refill, business days."""
    today, left, rx = date(2025, 3, 3), 2 * rng.choice([9, 14, 15, 16]), f"RX-{rng.randint(30000, 39999)}"
    out = today + timedelta(days=left // 2)
    early = out - timedelta(days=7)
    result = {"drug": "Metformin 500 mg", "per_day": 2, "tablets_left": left, "refills": 3, "hold": None}
    return _talk(result, today=today).tell(f"""
U can i refill {rx} today?
C get_prescription rx={rx}
A Not quite yet. You have {left} tablets of Metformin 500 mg, which at two a day last {left // 2} days, \
until they run out on {out:%A}, {day(out)}. Refills open 7 days before that, on {day(early)} – \
{(early - today).days} days from now. You have three refills.
U im travelling from {out:%B} {out.day - 4}, so?
A Then order on {day(early)}: it takes 2 business days, so you'd have it before you leave. A month of 30 \
days needs 60 tablets, i.e. {60 * 500 // 1000} g of the active ingredient in all.
U ok remind me
A I can't set reminders, sorry – best put {day(early)} into your calendar.
""")


def pression(rng: Random) -> Talk:
    """French: readings, means, a reading over a limit, a log entry, days."""
    hauts, bas = rng.sample(range(118, 134), 4), rng.sample(range(72, 86), 4)
    limite, nouveau = 135, rng.randint(136, 142)
    mesures = [(f"2025-01-{13 + n}", hauts[n], bas[n], "matin") for n in range(4)]
    result = {"limite_systolique": limite, "mesures": rows("date systolique diastolique moment", *mesures)}
    return _talk(result, {"ok": True}).tell(f"""
U bonsoir, ma tension des 4 derniers jours ? utilisateur marc.d
C get_activity user=marc.d kind=tension days:=4
A Bonsoir ! En moyenne {comma(sum(hauts) / 4)} sur {comma(sum(bas) / 4)}. Les quatre mesures sont sous la \
limite de 135 ; la plus haute est de {max(hauts)}, la plus basse de {min(hauts)}.
U ce soir j'ai {nouveau}, note le
C log_entry user=marc.d kind=tension value:={nouveau} note=soir
A C'est noté : {nouveau}, soit {nouveau - limite} au-dessus de la limite et {nouveau - max(hauts)} de plus \
que votre maximum des quatre jours. Si cela se répète, parlez-en à votre médecin.
""")


def ricetta(rng: Random) -> Talk:
    """Italian: portions halved, grams, minutes, the time when it is ready."""
    riso, brodo, minuti = rng.choice([320, 360]), rng.choice([1000, 1200]), rng.choice([18, 20])
    dosi = {"riso_g": riso, "brodo_ml": brodo, "burro_g": 40, "parmigiano_g": 60}
    return _talk({"porzioni": 4, "ingredienti": dosi, "cottura_riso_min": minuti}).tell(f"""
U ciao, risotto alla milanese per 2?
C get_recipe dish="risotto alla milanese"
A La ricetta è per 4, quindi basta la metà: {riso // 2} g di riso, {comma(brodo / 2000, 1)} litri di brodo, \
20 g di burro e 30 g di parmigiano. Il riso cuoce {minuti} minuti.
U se inizio alle 19:30?
A Se lo butti alle 19:30, è pronto alle 19:{30 + minuti}. Per due persone sono {riso // 4} g di riso a testa.
""")


def afspraak(rng: Random) -> Talk:
    """Dutch: a visit in two weeks, a weekday, a price with what is left of the own risk."""
    today, prijs, risico = date(2025, 9, rng.randint(1, 5)), rng.choice([64, 72, 85]), rng.choice([120, 145])
    when = today + timedelta(days=14)
    dag = ["maandag", "dinsdag", "woensdag", "donderdag", "vrijdag"][when.weekday()]
    slot = {"slot_id": "N4", "start": f"{when}T08:40:00+02:00", "arts": "dr. Bakker", "tarief_eur": prijs}
    return _talk([slot], {"visit_id": "V-6120"}, {"eigen_risico_rest_eur": risico}, today=today).tell(f"""
U hallo, kan ik over 2 weken bij de kno-arts? zelfde dag als vandaag
C find_slots specialty=kno start={when} end={when}
A Ja, op {dag} {when.day} september om 8.40 uur bij dr. Bakker. Zal ik die boeken?
U ja graag
C book_visit slot_id=N4
A Geboekt (V-6120). Wilt u een kwartier eerder komen, dus om 8.25 uur?
U prima. wat kost me dat? lid 44102
C get_benefits member=44102
A Het tarief is € {prijs}. Er staat nog € {risico} eigen risico open, dus u betaalt het zelf; daarna blijft \
er € {risico - prijs} over.
""")


TEMPLATES = (
    lab_ranges, lab_trend, child_dose, friday_slot, cancel_fee, claim_share, deductible_left, week_runs,
    recipe_scale, food_day, sleep_entry, refill, pression, ricetta, afspraak,
)  # fmt: skip
