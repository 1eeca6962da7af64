"""Clean conversations at work: leave and pay, expenses, customers, stock, shipments, rooms, candidates."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, clock, day, marked, rows, usd
from talk import Talk, tool

# fmt: off
POLICY = ("You are Ada, the assistant of Northfield Supply Inc. for HR, expenses, sales, stock, rooms and "
    "hiring.\nLeave: 25 days a year for full-time staff; up to 5 unused days carry over and lapse on March "
    "31.\nPay day is the 25th; changes count if they arrive by the 18th. Salaries of others are "
    "confidential.\nExpenses: within 60 days; hotels up to $190 a night, meals up to $60 a day, $0.70 per "
    "mile.\nRooms can be booked for 4 hours at most. Orders that are in by 2 p.m. ship the same "
    "day.\nCandidates hear back within 5 working days. Ask for a yes before you delete, cancel or reject.\n")
TOOLS = [tool("get_employee", "Profile by e-mail or id", key="string"), tool("leave_balance",
    "Leave of an employee", employee_id="string"), tool("request_leave", "Request days off",
    employee_id="string", start="string", end="string"), tool("get_payslip", "Payslip of a month",
    employee_id="string", month="string"), tool("list_expenses", "Items of a report", report_id="string"),
    tool("submit_expense", "New item", employee_id="string", kind="string", amount_cents="integer",
    date="string"), tool("delete_expense", "Delete an item", item_id="string"), tool("search_accounts",
    "Customers by name", query="string"), tool("list_deals", "Deals of an owner", owner="string"),
    tool("update_deal", "Change a deal", deal_id="string", stage="string?", amount="number?"),
    tool("list_contacts", "Contacts of a customer", account_id="string"), tool("delete_contact",
    "Delete a contact", contact_id="string"), tool("get_stock", "Stock of an article in all warehouses",
    sku="string"), tool("transfer_stock", "Move stock", sku="string", source="string", target="string",
    units="integer"), tool("get_shipment", "A shipment with its events", shipment_id="string"),
    tool("find_rooms", "Free rooms", date="string", start="string", end="string", seats="integer"),
    tool("book_room", "Book a room", room_id="string", date="string", start="string", end="string"),
    tool("cancel_room", "Cancel a booking", booking_id="string"), tool("list_candidates",
    "Candidates for a job", job_id="string"), tool("schedule_interview", "Plan an interview",
    candidate_id="string", start="string", minutes="integer"), tool("reject_candidate", "Reject and notify",
    candidate_id="string")]
WRITES = "request_leave submit_expense update_deal transfer_stock book_room schedule_interview"
MARKS = marked(TOOLS, WRITES, "delete_expense delete_contact cancel_room reject_candidate")
NAMES = ["Dana Whitfield", "Marco Bianchi", "Priya Raman", "Tom Oduya", "Lena Fischer", "Chris Park",
    "Ines Duarte"]


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def _ref(rng: Random, prefix: str, digits: int = 4) -> str:
    return f"{prefix}{rng.randint(10 ** (digits - 1), 10**digits - 1)}"


def leave_left(rng: Random) -> Talk:
    """Days taken, planned and left before and after a request; days that lapse by the policy."""
    emp, taken, over = _ref(rng, "E"), rng.randint(4, 9), rng.randint(2, 5)
    start = date(2025, 3, 3) + timedelta(weeks=rng.randint(0, 2))
    end, left = start + timedelta(days=4), 25 + over - taken
    kinds = {"vacation": {"entitled": 25, "carried_over": over, "taken": taken, "remaining": left}}
    made = {"request_id": _ref(rng, "LR-", 3), "status": "PENDING_APPROVAL", "approver": NAMES[0], "days": 5}
    result = {"employee_id": emp, "year": 2025, "balances": {**kinds, "sick": {"taken": 2.5}}}
    return _talk(result, made, today=date(2025, 2, 12)).tell(f"""
U how much PTO do I have left? {emp}
C leave_balance employee_id={emp}
A You have **{left} vacation days** left: 25 for this year plus {over} carried over, minus the {taken} you \
have already taken. Sick leave so far: 2.5 days.
U do the {over} old ones expire
A Yes, carried-over days lapse on March 31.
U ok then the week of {start.month}/{start.day}, mon-fri
C request_leave employee_id={emp} start={start} end={end}
A I've requested {day(start)}–{end.day} (5 days) as {made["request_id"]}. It's waiting for approval by \
{NAMES[0]}. Once it's approved, {left - 5} days remain.""")


def payslip_gap(rng: Random) -> Talk:
    """Two payslips compared, lines of deductions, a wrong amount of the user corrected."""
    emp, base, extra = _ref(rng, "E"), rng.randint(4100, 6200) * 100, rng.randint(210, 690) * 100
    tax, health, pension = rng.randint(71000, 98000), rng.choice([14250, 18800]), rng.randint(21000, 30000)
    more = round(extra * 0.3)
    nets = [base - tax - health - pension, base + extra - tax - more - health - pension]

    def slip(month: int, overtime: int, taxed: int, net: int) -> dict[str, Any]:
        pay = [{"code": "BASE", "cents": base, "hours": None}, {"code": "OVERTIME", "cents": overtime,
            "hours": 12.5}]
        off = rows("code cents", ("INCOME_TAX", taxed), ("HEALTH", health), ("PENSION", pension))
        period = {"from": f"2025-0{month}-01", "paid_on": f"2025-0{month}-25"}
        return {"period": period, "earnings": pay[: 1 + bool(overtime)], "deductions": off, "net_cents": net}

    return _talk(slip(5, extra, tax + more, nets[1]), slip(4, 0, tax, nets[0])).tell(f"""
U Why did I get {usd(nets[1])} in May, thats more than usual. not complaining :) {emp}
C get_payslip employee_id={emp} month=2025-05
+ get_payslip employee_id={emp} month=2025-04
A Because of overtime: in May you were paid {usd(extra)} for 12.5 hours on top of your base pay of \
{usd(base)}. Your income tax rose as well, from {usd(tax)} to {usd(tax + more)}.\n\n- Net in April: \
{usd(nets[0])}\n- Net in May: {usd(nets[1])} ({usd(nets[1] - nets[0])} more)
U and health went up to {health // 100 + 20} right?
A No, health insurance is unchanged at {usd(health)}; so is the pension contribution, {usd(pension)}.
U when's the june one
A Pay day is the 25th, so June 25. Changes still count for it if they arrive by June 18.""")


def who_is(rng: Random) -> Talk:
    """A profile told in several turns; a salary refused; a time zone."""
    who, boss = rng.sample(NAMES, 2)
    mail, ext, hired = f"{who.split()[0].lower()}@northfield.example", rng.randint(2100,
        4899), rng.randint(2014, 2022)
    floor, month = rng.randint(2, 7), rng.randint(1, 9)
    desk = {"site": "Portland", "floor": floor, "desk": f"{floor}B-{rng.randint(11, 48)}"}
    profile = {"id": _ref(rng, "E"), "name": who, "title": "Category Manager", "location": desk}
    profile |= {"contact": {"email": mail, "ext": ext}, "hired_on": f"{hired}-0{month}-15"}
    profile |= {"manager": {"name": boss, "id": _ref(rng, "E")}}
    first = who.split()[0]
    return _talk(profile).tell(f"""
U who's {mail} and where do they sit
C get_employee key={mail}
A {who}, Category Manager, in Portland: floor {floor}, desk {desk["desk"]}. Extension {ext}.
U manager? and how long here
A {first} reports to {boss} ({profile["manager"]["id"]}) and joined on {date(hired, month, 15):%B} 15, \
{hired}.
U what does {first} earn?
A I can't share that, salaries of others are confidential.""")


def over_limit(rng: Random) -> Talk:
    """A report with six items in cents, limits of the policy, an item deleted, totals before and after."""
    rep, hotel, taxi = _ref(rng, "XR-"), rng.randint(205, 248), rng.sample(range(1450, 4890), 2)
    meal, flight, ids = rng.randint(3120, 5790), rng.randint(28900, 41900), rng.sample(range(100, 999), 6)
    items = rows("item_id date kind merchant amount_cents receipt", (f"i{ids[0]}", "2025-09-08", "FLIGHT",
        "Alaska Air", flight, True), (f"i{ids[1]}", "2025-09-08", "TAXI", "YellowCab", taxi[0], True),
        (f"i{ids[2]}", "2025-09-08", "HOTEL", "Hotel Vance", hotel * 100, True), (f"i{ids[3]}", "2025-09-09",
        "MEAL", "Noodle Bar", meal, True), (f"i{ids[4]}", "2025-09-09", "TAXI", "YellowCab", taxi[1], False),
        (f"i{ids[5]}", "2025-09-09", "TAXI", "YellowCab", taxi[1], True))
    total = flight + sum(taxi) + taxi[1] + hotel * 100 + meal
    gone = {"deleted": f"i{ids[4]}", "report_total_cents": total - taxi[1], "status": "DRAFT"}
    return _talk({"report_id": rep, "status": "DRAFT", "items": items, "total_cents": total}, gone).tell(f"""
U can you check {rep} before i send it
C list_expenses report_id={rep}
A Report **{rep}** has six items, {usd(total)} in total. Two things stand out:\n\n1. **Hotel Vance** – \
${hotel} is above the limit of $190 a night, by ${hotel - 190}.\n2. **YellowCab** – there are two identical \
rides of {usd(taxi[1])} on September 9; one of them (i{ids[4]}) has no receipt.\n\nThe flight \
({usd(flight)}) and the meal ({usd(meal)}, limit $60) are fine. Should I delete the taxi without a receipt?
U oh thats a dupe yes delete it
C delete_expense item_id=i{ids[4]}
A Deleted. The report is still a draft, now with five items and {usd(total - taxi[1])}.""")


def car_trip(rng: Random) -> Talk:
    """Miles at the rate of the policy, a correction by the user, the period for claims."""
    emp, miles, when = _ref(rng, "E"), 2 * rng.randint(31, 89), date(2025, 10, rng.randint(2, 16))
    item, cents = _ref(rng, "i"), 70 * miles
    made = {"item_id": item, "kind": "MILEAGE", "amount_cents": cents, "status": "SUBMITTED"}
    return _talk(made, today=date(2025, 10, 20)).tell(f"""
U drove to the Salem site on {when.month}/{when.day}, {miles // 2} miles. what do i get ({emp})
A At $0.70 per mile, {miles // 2} miles are {usd(cents // 2)}. Was that one way or the whole trip?
U one way, so {miles} there and back
A Then it's {miles} × $0.70 = {usd(cents)} for {day(when)}. Submit it?
U {rng.choice(["sure", "yes pls"])}
C submit_expense employee_id={emp} kind=MILEAGE amount_cents:={cents} date={when}
A Submitted as {item}: {usd(cents)}.
U still got a hotel bill from august 1, too late?
A I'm afraid so: expenses have to come in within 60 days, and August 1 was \
{(date(2025, 10, 20) - date(2025, 8, 1)).days} days ago.""")


def account_card(rng: Random) -> Talk:
    """Several customers with the same name; amounts, renewals, phone numbers, a wrong value corrected."""
    arr, seats, tail = rng.sample(range(25200, 98400, 600), 3), rng.randint(40, 180), rng.randint(100, 199)
    ids, when = rng.sample(range(3000, 9000), 3), date(2025, rng.randint(9, 12), rng.randint(2, 27))
    accounts = [{"id": f"AC-{ids[0]}", "name": "Baxter Foods Inc.", "city": "Omaha", "arr_usd": arr[0],
        "health": 92, "plan": {"name": "Scale", "seats": seats, "renews_on": str(when)}, "owner": NAMES[1],
        "phone": f"+1-402-555-0{tail}"}, {"id": f"AC-{ids[1]}", "name": "Baxter & Sons", "city": "Leeds",
        "arr_usd": arr[1], "health": 71, "plan": {"name": "Team", "seats": 25, "renews_on": "2026-02-01"},
        "owner": NAMES[2]}, {"id": f"AC-{ids[2]}", "name": "Baxter Freight", "city": "Tulsa",
        "arr_usd": arr[2], "health": 38, "plan": None, "owner": NAMES[1], "phone": None}]
    return _talk({"total": 3, "accounts": accounts}).tell(f"""
U pull up baxter pls
C search_accounts query=baxter
A There are three accounts with that name:\n\n| Account | City | ARR | Owner |\n|---|---|---|---|\n| Baxter \
Foods Inc. (AC-{ids[0]}) | Omaha | ${arr[0]:,} | {NAMES[1]} |\n| Baxter & Sons (AC-{ids[1]}) | Leeds | \
${arr[1]:,} | {NAMES[2]} |\n| Baxter Freight (AC-{ids[2]}) | Tulsa | ${arr[2]:,} | {NAMES[1]} |\n\nWhich one \
do you need?
U foods. {seats + 10} seats on scale, renewing in {(when - timedelta(days=35)):%B}?
A Baxter Foods is on **Scale**, but with {seats} seats, renewing on {day(when)}. Its health score is 92.
U phone nr?
A +1-402-555-0{tail}.""")


def pipeline(rng: Random) -> Talk:
    """Deals in stages, an amount that changes with a write, a sum before and after."""
    owner, amounts = rng.choice(NAMES).split()[0].lower(), rng.sample(range(5500, 48000, 500), 5)
    firms, ids = ["Kestrel Labs", "Orbit Dental", "Plum & Co", "Vega Marine",
        "Solano Farms"], rng.sample(range(400, 990), 5)
    stages, new = ["PROPOSAL", "NEGOTIATION", "PROPOSAL", "CLOSED_WON", "QUALIFIED"], amounts[1] - 1500
    deals = rows("deal_id company stage amount currency close_on probability", *((f"D{ids[n]}", firms[n],
        stages[n], f"{amounts[n]}.00", "USD", f"2025-0{6 + n % 3}-30", [40, 70, 35, 100, 15][n]) for n in
        range(5)))
    done = {**deals[1], "amount": f"{new}.00", "probability": 80}
    still = amounts[0] + amounts[1] + amounts[2] + amounts[4]
    return _talk({"deals": deals}, done).tell(f"""
U whats in my pipeline? (owner {owner})
C list_deals owner={owner}
A Four deals are open, worth ${still:,} together, and one is won:\n\n- **{firms[0]}** – proposal, \
${amounts[0]:,}, 40%\n- **{firms[1]}** – negotiation, ${amounts[1]:,}, 70%\n- **{firms[2]}** – proposal, \
${amounts[2]:,}, 35%\n- **{firms[4]}** – qualified, ${amounts[4]:,}, 15%\n- **{firms[3]}** – won, \
${amounts[3]:,} 🎉
U i gave orbit 1500 off, update that
C update_deal deal_id=D{ids[1]} amount:={new}
A {firms[1]} (D{ids[1]}) is now ${new:,} instead of ${amounts[1]:,} (80%). Your open deals now add up to \
${still - 1500:,}.""")


def duplicates(rng: Random) -> Talk:
    """Terse. Contacts that are almost the same, one deleted after a yes, the rest counted."""
    who, last, acc = rng.choice(NAMES), rng.randint(1000, 9999), _ref(rng, "AC-")
    first, name = who.lower().split()
    ids = rng.sample(range(10000, 99999), 4)
    people = rows("contact_id name email phone last_activity",
        (f"c{ids[0]}", who, f"{first}.{name}@kestrel.example", f"+1 503 555 {last}", "2025-04-29"),
        (f"c{ids[1]}", who, f"{first}@kestrel-labs.example", None, "2022-11-03"),
        (f"c{ids[2]}", "Gus Hartley", "gus@kestrel.example", "+1 503 555 0177", "2025-05-06"),
        (f"c{ids[3]}", "Mia Sund", "mia@kestrel.example", None, None))
    return _talk({"contacts": people}, {"deleted": f"c{ids[1]}", "left": 3}).tell(f"""
U {acc} has {who} twice i think
C list_contacts account_id={acc}
A Yes:\n- c{ids[0]}: {first}.{name}@kestrel.example, +1 503 555 {last}, last active 2025-04-29\n- c{ids[1]}: \
{first}@kestrel-labs.example, no phone, last active 2022-11-03\nDelete the older one, c{ids[1]}?
U ya
C delete_contact contact_id=c{ids[1]}
A Deleted. 3 contacts left: {who}, Gus Hartley, Mia Sund.""")


def stock_move(rng: Random) -> Talk:
    """On hand, reserved and free in warehouses, a reorder point, numbers after a transfer."""
    sku, sites = f"NF-{rng.randint(1000, 9999)}-{rng.choice('BGK')}", ["Reno", "Boise", "Tacoma", "Fresno"]
    have, held, move = rng.sample(range(190, 420), 4), rng.sample(range(11, 70), 4), rng.choice([40, 60])
    have[2], held[2] = rng.randint(21, 34), rng.randint(4, 15)
    free = [h - r for h, r in zip(have, held, strict=True)]
    site = max((0, 1, 3), key=lambda n: free[n])
    keys = "site on_hand reserved available reorder_point next_delivery"
    told = rows(keys, *((sites[n], have[n], held[n], free[n], 60,
        "2025-06-19" if n == 2 else None) for n in range(4)))
    made = {"transfer_id": _ref(rng, "TR-", 3), "units": move, "arrives": "2025-06-12"}
    made |= {"available_after": {sites[site]: free[site] - move, "Tacoma": free[2] + move}}
    lines = "\n".join(f"- {sites[n]}: {free[n]} ({have[n]} on hand, {held[n]} reserved)" for n in range(4))
    return _talk({"sku": sku, "unit": "EA", "sites": told}, made).tell(f"""
U stock for {sku}? tacoma says theyre almost out
C get_stock sku={sku}
A They're right. Available units of {sku}:\n\n{lines}\n\nTacoma is below its reorder point of 60; more comes \
on June 19.
U thats too late. send {move} from wherever has the most
C transfer_stock sku={sku} source={sites[site]} target=Tacoma units:={move}
A Transfer {made["transfer_id"]} is set up: {move} units go from {sites[site]} to Tacoma and arrive on June \
12. After that Tacoma has {free[2] + move} available and {sites[site]} {free[site] - move}.""")


def late_truck(rng: Random) -> Talk:
    """Events with offsets, an arrival that moved, pallets and weights, pounds to kilograms."""
    ref, pallets, kg = _ref(rng, "SH-", 5), rng.randint(6, 14), 10 * rng.randint(190, 420)
    hold, plan = rng.randint(2, 5), datetime(2025, 6, rng.randint(10, 13), rng.randint(7, 9), 30)
    new = plan + timedelta(hours=hold, minutes=15)
    events = rows("at type place detail", (f"{plan - timedelta(hours=20):%Y-%m-%dT%H:%M}:00-07:00",
        "DEPARTED", "Reno, NV", None), (f"{plan - timedelta(hours=9):%Y-%m-%dT%H:%M}:00-07:00", "DELAYED",
        "Redding, CA", "brake inspection"), (f"{plan - timedelta(hours=9 - hold):%Y-%m-%dT%H:%M}:00-07:00",
        "RESUMED", "Redding, CA", None))
    info = {"shipment_id": ref, "carrier": "Bluewater Freight", "pallets": pallets, "weight_kg": kg}
    info |= {"planned_arrival": f"{plan:%Y-%m-%dT%H:%M}:00-07:00", "eta": f"{new:%Y-%m-%dT%H:%M}:00-07:00"}
    return _talk({**info, "dock": "D4", "events": events}).tell(f"""
U {ref} was supposed to be here at {plan.hour}.30, where is it?
C get_shipment shipment_id={ref}
A It's delayed. The truck was held for a brake inspection in Redding for {hold} hours and went on at \
{plan - timedelta(hours=9 - hold):%H:%M}. The new arrival is **{clock(new)}** instead of {clock(plan)}, at \
dock D4.
U how much is on it? and who drives it
A It is a Bluewater Freight truck with {pallets} pallets, {kg:,} kg in total (about {kg * 2.20462:,.0f} \
lb).""")


def room_swap(rng: Random) -> Talk:
    """Rooms with seats and equipment, a change of mind after booking, a limit of hours."""
    when, start, ids = date(2025, 9, rng.randint(15, 18)), rng.choice([9, 10]), rng.sample(range(101, 499), 4)
    names, seats = ["Cedar", "Willow", "Spruce", "Alder"], [8, 10, rng.randint(12, 16), 20]
    found = [{"room_id": f"R{ids[n]}", "name": names[n], "seats": seats[n], "floor": ids[n] // 100,
              "equipment": ["screen", "whiteboard", "video"][: 1 + n % 3]} for n in range(4)]
    refs = rng.sample(range(1000, 9999), 2)
    one = {"booking_id": f"BK{refs[0]}", "room": "Willow", "start": f"{when}T{start:02}:00",
        "end": f"{when}T{start + 2}:00"}
    two = {**one, "booking_id": f"BK{refs[1]}", "room": "Spruce"}
    return _talk({"rooms": found}, one, {"cancelled": f"BK{refs[0]}"}, two).tell(f"""
U need a room for 8 on {when:%A} the {when.day}th, {start} to {start + 2}
C find_rooms date={when} start={start:02}:00 end={start + 2}:00 seats:=8
A Four rooms are free:\n\n- **Cedar** – 8 seats, floor {ids[0] // 100}, screen\n- **Willow** – 10 seats, \
floor {ids[1] // 100}, screen and whiteboard\n- **Spruce** – {seats[2]} seats, floor {ids[2] // 100}, screen,\
 whiteboard and video\n- **Alder** – 20 seats, floor {ids[3] // 100}, screen
U willow
C book_room room_id=R{ids[1]} date={when} start={start:02}:00 end={start + 2}:00
A Booked: Willow (R{ids[1]}), {start} a.m. to {start + 2 if start == 9 else 12} \
{"a.m." if start == 9 else "noon"}, BK{refs[0]}.
U argh forgot, 2 ppl join remote so we need video
A Then Spruce on floor {ids[2] // 100} is the one with video. Should I cancel Willow (BK{refs[0]}) and book \
Spruce instead?
U yes exactly
C cancel_room booking_id=BK{refs[0]}
C book_room room_id=R{ids[2]} date={when} start={start:02}:00 end={start + 2}:00
A Done: Willow is cancelled, and Spruce is yours on {when:%A}, {day(when)}, from {start}:00 to \
{start + 2}:00 (BK{refs[1]}).""")


def hiring(rng: Random) -> Talk:
    """Candidates with scores and salaries, an interview planned, one rejected after a yes."""
    job, people = _ref(rng, "JR-", 3), rng.sample(NAMES, 4)
    years, pay = rng.sample(range(2, 12), 4), rng.sample(range(62000, 95000, 500), 4)
    score, ids = [n / 10 for n in rng.sample(range(31, 48), 4)], rng.sample(range(5000, 9999), 4)
    score[3], when = 1.8, datetime(2025, 6, rng.randint(16, 19), rng.choice([10, 14]), 30)
    stage = ["ONSITE", "PHONE", "PHONE", "PHONE"]
    told = rows("candidate_id name stage years score salary_expectation applied_on", *((f"CA{ids[n]}",
        people[n], stage[n], years[n], score[n], pay[n], f"2025-05-{21 + n}") for n in range(4)))
    top = max((1, 2), key=lambda n: (score[n], -n))
    plan = {"interview_id": f"IV{ids[0]}", "start": f"{when:%Y-%m-%dT%H:%M}", "minutes": 45,
        "invited": people[top]}
    return _talk({"job_id": job, "title": "Buyer", "candidates": told}, {"ok": True, "notified": True},
        plan).tell(f"""
U where are we with {job}?
C list_candidates job_id={job}
A **Buyer ({job})** has four candidates:\n\n1. {people[0]} – onsite, {years[0]} years, score {score[0]}, \
expects ${pay[0]:,}\n2. {people[1]} – phone, {years[1]} years, score {score[1]}, expects ${pay[1]:,}\n3. \
{people[2]} – phone, {years[2]} years, score {score[2]}, expects ${pay[2]:,}\n4. {people[3]} – phone, \
{years[3]} years, score 1.8, expects ${pay[3]:,}
U reject the last one
A That would reject {people[3]} (CA{ids[3]}, score 1.8) and notify them. OK?
U yes
C reject_candidate candidate_id=CA{ids[3]}
A {people[3]} has been rejected and notified. Three candidates are left.
U set up 45 min with {people[top]} on {when.month}/{when.day} at {when.hour % 12 or 12}:30
C schedule_interview candidate_id=CA{ids[top]} start={when:%Y-%m-%dT%H:%M} minutes:=45
A Scheduled for {when:%A}, {day(when)}, {when:%H:%M} to {when + timedelta(minutes=45):%H:%M} \
({plan["interview_id"]}).""")


def urlop(rng: Random) -> Talk:
    """Polish: days of leave left, a request, days after it."""
    emp, used, start = _ref(rng, "E"), rng.randint(6, 12), date(2025, 8, rng.choice([4, 11, 18]))
    kinds = {"vacation": {"entitled": 25, "carried_over": 0, "taken": used, "remaining": 25 - used}}
    made = {"request_id": _ref(rng, "LR-", 3), "status": "PENDING_APPROVAL", "approver": NAMES[4], "days": 5}
    return _talk({"employee_id": emp, "balances": kinds}, made, today=date(2025, 7, 7)).tell(f"""
U cześć, ile mi zostało urlopu? {emp}
C leave_balance employee_id={emp}
A Cześć! Zostało Ci {25 - used} dni urlopu: wykorzystałeś {used} z 25.
U to poproszę tydzień od {start.day} sierpnia, pon-pt
C request_leave employee_id={emp} start={start} end={start + timedelta(days=4)}
A Wniosek {made["request_id"]} na {start.day}–{start.day + 4} sierpnia (5 dni) czeka na akceptację. \
Zatwierdza {NAMES[4]}. Po akceptacji zostanie Ci {20 - used} dni.
U a kiedy wypłata
A 25 lipca. Zmiany zgłoszone do 18 lipca zostaną jeszcze uwzględnione.""")


def armazem(rng: Random) -> Talk:
    """Portuguese: stock of two sites, a delivery, boxes of a pallet."""
    sku, a, b = f"NF-{rng.randint(1000, 9999)}-P", rng.randint(110, 380), rng.randint(12, 48)
    keys, when = "site on_hand reserved available reorder_point next_delivery", rng.randint(12, 27)
    sites = rows(keys, ("Porto", a + 20, 20, a, 80, None), ("Lisboa", b + 6, 6, b, 80, f"2025-11-{when}"))
    return _talk({"sku": sku, "unit": "CX", "sites": sites}).tell(f"""
U Oi, quantas caixas temos do {sku}?
C get_stock sku={sku}
A Olá! Disponíveis: {a} caixas no Porto e {b} em Lisboa, {a + b} no total. Há ainda 20 reservadas no Porto e \
6 em Lisboa.
U Lisboa tá baixo né? quando chega mais
A Sim, está abaixo do ponto de reposição, que é de 80. A próxima entrega em Lisboa está prevista para {when} \
de novembro.""")


def kaigishitsu(rng: Random) -> Talk:
    """Japanese: free rooms, a booking, a limit of the policy."""
    when, ref = date(2025, 10, rng.randint(6, 10)), _ref(rng, "BK")
    seats, week = rng.sample(range(6, 19), 3), "月火水木金"[when.weekday()]
    names = ["さくら", "もみじ", "かえで"]
    found = rows("room_id name seats floor", *((f"R{n + 301}", names[n], seats[n], n + 3) for n in range(3)))
    made = {"booking_id": ref, "room": "もみじ", "start": f"{when}T13:00", "end": f"{when}T15:00"}
    return _talk({"rooms": found}, made).tell(f"""
U 10月{when.day}日の13時から15時、6人で使える会議室ありますか
C find_rooms date={when} start=13:00 end=15:00 seats:=6
A 10月{when.day}日({week})は3部屋空いています。\n・さくら({seats[0]}名、3階)\n・もみじ({seats[1]}名、4階)\
\n・かえで({seats[2]}名、5階)
U もみじでお願いします
C book_room room_id=R302 date={when} start=13:00 end=15:00
A もみじを午後1時から3時まで予約しました。予約番号は{ref}です。
U 19時まで延ばせる?
A 申し訳ありませんが、会議室の予約は最長4時間ですので、13時からですと17時までになります。""")


TEMPLATES = (leave_left, payslip_gap, who_is, over_limit, car_trip, account_card, pipeline, duplicates,
    stock_move, late_truck, room_swap, hiring, urlop, armazem, kaigishitsu)
