"""Clean conversations of a customer service, part two: its policy and tools, stays, parcels, warranty."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, clock, day, marked, nth, rows, usd
from talk import Talk, tool

# fmt: off
TODAY = date(2025, 5, 15)
POLICY = """# Meridian customer service policy

The current time is 2025-05-15 15:00:00 EST (a Thursday).

## General
- First authenticate the user: by e-mail, by name and zip code, or by a member, order or tracking number.
- Before a change list what will happen and get an explicit yes. Make one change at a time.
- Do not invent information or procedures, and do not give opinions. Refuse what is against this policy.
- Answer in the language of the user.

## Shop
- An order is pending, processed, delivered or cancelled. Only pending orders can be cancelled or modified.
- Reasons for a cancellation are "no longer needed" and "ordered by mistake". Refunds take 5 to 7 business
  days; a gift card is refunded immediately.
- Delivered orders can be returned or exchanged within 30 days. An order can be exchanged once, and only for
  other options of the same product. A price difference is settled with one payment method; a gift card must
  cover the whole difference.
- A return is refunded to the original payment method or to a gift card the user already has.
- Shipping is $6.95 and free from $75.

## Subscriptions
- Monthly plans can be paused for 1 to 3 months. Annual plans cannot be paused.
- Annual plans are refunded in full within 14 days of a renewal, and not at all after that.

## Stay (hotels)
- Tiers by nights in a calendar year: Silver 10, Gold 25, Platinum 50.
- 10 points per dollar of the room rate. Points lapse after 24 months without activity.
- Missing points can be claimed up to 180 days after check-out.
- Bookings can be changed or cancelled free of charge until 48 hours before check-in (3 p.m. local time);
  after that the first night is charged.

## Parcels
- A parcel counts as lost after 5 business days without a scan. Claims are decided within 10 business days.
- Liability ends at $100 per parcel unless a higher value was declared when it was sent.
- Pick-up points keep a parcel for 7 days.

## Warranty
- 24 months from delivery, 12 months for refurbished devices. Accidents and liquids are not covered.
- Repairs outside of the warranty: $45 for the diagnosis, credited if the repair is ordered. Repairs take 7 to
  10 business days. Loan devices are not available.
"""
TOOLS = [
    tool("find_user_id_by_email", "User id by e-mail", email="string"),
    tool("find_user_id_by_name_zip", "User id", first_name="string", last_name="string", zip="string"),
    tool("get_user_details", "Profile, payment methods and orders", user_id="string"),
    tool("get_order_details", "Status, items and payments of an order", order_id="string"),
    tool("get_product_details", "Variants of a product", product_id="string"),
    tool("cancel_pending_order", "Cancel a pending order", order_id="string", reason="string"),
    tool("modify_pending_order_address", "New address", order_id="string", address1="string", zip="string"),
    tool("exchange_items", "Exchange", order_id="string", old="array", new="array", payment_id="string"),
    tool("return_items", "Return", order_id="string", item_ids="array", payment_id="string"),
    tool("list_subscriptions", "Subscriptions of a customer", email="string"),
    tool("list_charges", "Charges of a customer", email="string"),
    tool("pause_subscription", "Pause", subscription_id="string", months="integer"),
    tool("cancel_subscription", "End a subscription for good", subscription_id="string"),
    tool("get_member", "Member of the hotel programme", member_id="string"),
    tool("list_stays", "Stays of a member", member_id="string"),
    tool("redeem_points", "Book a night with points", member_id="string", hotel="string", night="string"),
    tool("claim_points", "Claim missing points", stay_id="string"),
    tool("get_booking", "A hotel booking", booking_id="string"),
    tool(
        "quote_booking_change", "Price of new dates", booking_id="string", check_in="string", nights="integer"
    ),
    tool("change_booking", "Change the dates", booking_id="string", check_in="string", nights="integer"),
    tool("track_parcel", "Scans of a parcel", tracking_id="string"),
    tool("find_pickup_points", "Pick-up points near a zip code", zip="string"),
    tool("redirect_parcel", "Send it to a pick-up point", tracking_id="string", point_id="string"),
    tool("file_claim", "Claim for a lost parcel", tracking_id="string", amount_cents="integer"),
    tool("get_device", "A device by serial number", serial="string"),
    tool("repair_prices", "Price list of repairs", model="string"),
]
WRITES = ("modify_pending_order_address exchange_items pause_subscription claim_points redirect_parcel "
    "file_claim")
MARKS = marked(TOOLS, WRITES + " redeem_points change_booking", "cancel_pending_order return_items "
    "cancel_subscription")
FIRST = ["Yusuf", "Mei", "Olivia", "Raj", "Sofia", "Ethan", "Fatima", "Noah", "Aarav", "Isabella"]


def _talk(*results: Any) -> Script:
    return Script(TOOLS, MARKS, POLICY, results)


def business(start: date, days: int) -> date:
    while days:
        start += timedelta(days=1)
        days -= start.weekday() < 5 and start != date(2025, 5, 26)  # Memorial Day
    return start


def tier_nights(rng: Random) -> Talk:
    """Nights until the next tier, points before and after an award night, stays in a list."""
    member, nights, points = (f"MS{rng.randint(10**7, 9 * 10**7)}", rng.randint(13, 19), rng.randint(31,
        58) * 1000 + 640)
    cost, who, hotels = (rng.choice([18000, 22500, 25000]), rng.choice(FIRST), ["Harbor Inn", "The Alder",
        "Quay 9"])
    parts = [3, 4, nights - 7]
    profile = {"member_id": member, "first_name": who, "tier": "SILVER", "tier_valid_until": "2026-03-31",
        "nights_ytd": nights, "points": {"balance": points, "expires_on": "2027-04-30", "pending": 0},
        "award_prices": {hotels[0]: cost + 4000, hotels[1]: cost, hotels[2]: cost + 9500}}
    stays = rows("stay_id hotel city check_in nights rate_total points", ("S-9001", hotels[0], "Boston",
        "2025-01-14", parts[0], "642.00", 6420), ("S-9002", hotels[1], "Seattle", "2025-03-02", parts[1],
        "811.50", 8115), ("S-9003", hotels[2], "Chicago", "2025-04-21", parts[2], "1930.00", 19300))
    night = date(2025, 6, rng.randint(6, 27))
    code = f"AWD-{rng.randint(2000, 8999)}"
    made = {"award_id": code, "hotel": hotels[1], "night": str(night), "points": -cost,
        "balance": points - cost}
    return _talk(profile, {"stays": stays, "total": 3}, made).tell(f"""
U {member} - how far am I from gold?
C get_member member_id={member}
C list_stays member_id={member}
A Hello {who}! You have **{nights} nights** this year, so **{25 - nights} more** take you to Gold (25 \
nights). Your Silver status is valid until March 31, 2026.\n\nYour stays so far:\n\n1. **{hotels[0]}**, \
Boston – {parts[0]} nights, 6,420 points\n2. **{hotels[1]}**, Seattle – {parts[1]} nights, 8,115 points\n3. \
**{hotels[2]}**, Chicago – {parts[2]} nights, 19,300 points
U and my points? can i get a free night at the alder on the {nth(night.day)} of june, think its \
{cost // 1000}k
A You have {points:,} points. An award night for {cost:,} would leave you with {points - cost:,}. Should I \
book The Alder for {night:%A}, {day(night)}?
U Yes book
C redeem_points member_id={member} hotel="{hotels[1]}" night={night}
A Booked: The Alder on {day(night)}, award {code}. {cost:,} points were used and your new balance is \
{points - cost:,}.
U do those expire
A Points lapse after 24 months without activity. Before this booking yours were valid until April 30, \
2027.""")


def stay_dates(rng: Random) -> Talk:
    """Nightly rates, another quote that replaces the first, the deadline of the policy, a write."""
    ref, start = f"HB-{rng.randint(20000, 89999)}", date(2025, 7, rng.randint(7, 18))
    rates = [rng.randint(148, 239) for _ in range(5)]
    late, end = start + timedelta(days=1), start + timedelta(days=3)

    def nights(first: int, count: int) -> list[dict[str, Any]]:
        return [{"night": str(start + timedelta(days=n)), "rate": f"{rates[n]}.00"} for n in range(first,
            first + count)]

    one, two, three = sum(rates[:3]), sum(rates[1:4]), sum(rates[1:5])
    booking = {"booking_id": ref, "hotel": {"name": "Harbor Inn", "city": "Boston", "utc_offset": "-04:00"}}
    booking |= {"check_in": str(start), "check_out": str(end), "guests": 2, "nightly": nights(0, 3)}
    quote = {"currency": "USD", "nightly": nights(1, 3), "total": f"{two}.00", "rooms_left": 2}
    longer = {"currency": "USD", "nightly": nights(1, 4), "total": f"{three}.00", "rooms_left": 1}
    done = {"booking_id": ref, "status": "CONFIRMED", "check_in": str(late), "nights": 4,
        "total": f"{three}.00"}
    gap = "the same price" if one == two else f"{usd(100 * abs(one - two))} {'more' if two > one else 'less'}"
    return _talk({**booking, "total": f"{one}.00"}, quote, longer, done).tell(f"""
U booking {ref}, can we come one day later but still 3 nights
C get_booking booking_id={ref}
C quote_booking_change booking_id={ref} check_in={late} nights:=3
A Yes, the Harbor Inn has 2 rooms left for {day(late)} to {day(late + timedelta(days=3))}. Three nights \
would be ${two}.00 ({gap} than your ${one}.00 now).\n\n- {day(late)}: ${rates[1]}\n- \
{day(late + timedelta(days=1))}: ${rates[2]}\n- {day(late + timedelta(days=2))}: ${rates[3]}
U what about 4 nights
C quote_booking_change booking_id={ref} check_in={late} nights:=4
A Four nights come to ${three}.00, as the night of {day(late + timedelta(days=3))} adds ${rates[4]}. You'd \
check out on {day(late + timedelta(days=4))}. Only one room is left for that. Shall I change it?
U {rng.choice(["yes do 4", "Yes please, 4 nights"])}
C change_booking booking_id={ref} check_in={late} nights:=4
A {ref} is confirmed with the new dates: check-in {late:%A}, {day(late)}, 4 nights, ${three}.00 in total.
U til when can i cancel for free?
A Until 48 hours before check-in at 3 p.m., so {late - timedelta(days=2):%A}, \
{day(late - timedelta(days=2))}, 3 p.m. Boston time. After that the first night (${rates[1]}) is charged.""")


def missing_points(rng: Random) -> Talk:
    """Terse. Two stays without points, one too old by the policy; points out of a rate."""
    member, rate = f"MS{rng.randint(10**7, 9 * 10**7)}", 10 * rng.randint(21, 64)
    out = [TODAY - timedelta(days=rng.randint(184, 230)), TODAY - timedelta(days=rng.randint(20, 60))]
    ids = rng.sample(range(7000, 7999), 3)
    stays = rows("stay_id hotel check_out rate_total points points_status", (f"S-{ids[0]}", "Quay 9",
        str(out[0]), "377.00", None, "MISSING"), (f"S-{ids[1]}", "Harbor Inn", str(out[0] +
        timedelta(days=70)), "412.00", 4120, "POSTED"), (f"S-{ids[2]}", "The Alder", str(out[1]),
        f"{rate}.00", None, "MISSING"))
    done = {"stay_id": f"S-{ids[2]}", "points": 10 * rate, "points_status": "PENDING",
        "posts_by": "2025-05-29"}
    return _talk({"stays": stays}, done).tell(f"""
U missing points on 2 stays. {member}
C list_stays member_id={member}
A Two stays have none:\n- Quay 9, check-out {out[0]}: claim not possible, {(TODAY - out[0]).days} days ago \
(limit 180)\n- The Alder, check-out {out[1]}: claim possible, ${rate} → {10 * rate:,} points\nClaim the \
second?
U yes. why not the first, its like 6 months
C claim_points stay_id=S-{ids[2]}
A Claimed: {10 * rate:,} points for S-{ids[2]}, pending, posted by May 29. The first is past the 180 days by \
{(TODAY - out[0]).days - 180} days; they ended on {out[0] + timedelta(days=180)}.""")


def lost_parcel(rng: Random) -> Talk:
    """Scans with offsets, business days without one, a claim above the limit of liability."""
    ident, value = f"1M{rng.randint(10**9, 9 * 10**9)}", rng.choice([180, 240, 310])
    hour, minute, claim = rng.randint(13, 19), rng.randint(10, 59), f"CL-{rng.randint(30000, 79999)}"
    last = datetime(2025, 5, rng.randint(5, 7), hour, minute)
    scans = rows("ts code place note", (f"{last:%Y-%m-%dT%H:%M}:08-05:00", "DEP", "Memphis, TN", None),
        (f"{last - timedelta(hours=9):%Y-%m-%dT%H:%M}:40-05:00", "ARR", "Memphis, TN", None),
        (f"{last - timedelta(days=1, hours=2):%Y-%m-%dT%H:%M}:31-05:00", "DEP", "Dallas, TX",
        "LATE LINEHAUL"), (f"{last - timedelta(days=2):%Y-%m-%dT%H:%M}:00-05:00", "PU", "Dallas, TX", None))
    info = {"tracking_id": ident, "service": "GROUND", "weight_lb": 6.4, "declared_value_cents": None}
    gap = sum((last.date() + timedelta(days=n)).weekday() < 5 for n in range(1,
        (TODAY - last.date()).days + 1))
    until = business(TODAY, 10)
    done = {"claim_id": claim, "amount_cents": 10000, "status": "OPEN", "decision_due": str(until)}
    return _talk({**info, "eta": None, "scans": scans}, done).tell(f"""
U wheres my package {ident}
C track_parcel tracking_id={ident}
A The last scan was on {last:%A}, {day(last)} at {clock(last)}, when it left Memphis, TN. Since then there \
has been nothing for {gap} business days, and there is no delivery estimate. After 5 business days without a \
scan a parcel counts as lost, so you can file a claim.
U it was a {rng.choice(["jacket", "camera lens", "tablet"])} worth {value} dollars, i want all of it
A I understand. No value was declared for this parcel, so our liability ends at $100, which leaves \
${value - 100} of your ${value} uncovered. Would you like me to file the claim for $100.00?
U thats ridiculous... but yes file it
C file_claim tracking_id={ident} amount_cents:=10000
A Claim **{claim}** for $100.00 is open. It will be decided within 10 business days, by {until:%A}, \
{day(until)} at the latest.
U how heavy did they say it was? want to be sure its mine
A 6.4 lb, sent by Ground from Dallas on {day(last - timedelta(days=2))}.""")


def pickup_point(rng: Random) -> Talk:
    """Places with distances and opening hours, metres to kilometres, a date until it is kept."""
    ident, code, far = (f"1M{rng.randint(10**9, 9 * 10**9)}", f"606{rng.randint(10, 59)}",
        rng.sample(range(212, 2900, 20), 5))
    far.sort()
    names, close = (["Lee's Market", "Station Kiosk", "Green Pharmacy", "Copy & Go", "Fuel 24"], [20, 22, 19,
        18, 24])
    points = [{"id": f"PP{n + 11}", "name": names[n], "distance_m": far[n],
        "hours": {"mon_fri": f"08:00-{close[n]}:00", "sat": None if n == 3 else "09:00-14:00"},
        "free_lockers": rng.randint(1, 9) if n else 0} for n in range(5)]
    info = {"tracking_id": ident, "status": "IN_TRANSIT", "eta": "2025-05-16T11:30:00-05:00", "scans": []}
    done = {"tracking_id": ident, "point_id": "PP12", "ready_at": "2025-05-17T10:00:00-05:00", "pin": None}
    return _talk(info, {"points": points}, done).tell(f"""
U i wont be home tmrw can {ident} go to a shop near {code}
C track_parcel tracking_id={ident}
C find_pickup_points zip={code}
A Sure! It is planned for tomorrow at 11:30 a.m. The closest points with free lockers:\n\n1. **{names[1]}** \
– {far[1] / 1000:.1f} km, weekdays 8 a.m. to 10 p.m., {points[1]["free_lockers"]} free\n2. **{names[2]}** – \
{far[2] / 1000:.1f} km, weekdays 8 a.m. to 7 p.m., {points[2]["free_lockers"]} free\n3. **{names[3]}** – \
{far[3] / 1000:.1f} km, weekdays 8 a.m. to 6 p.m., {points[3]["free_lockers"]} free\n\n{names[0]} is only \
{far[0]} m away, but has none left.
U the kiosk. is it open saturdays
A Yes, Station Kiosk is open from 9 a.m. to 2 p.m. on Saturdays. Should I send the parcel there?
U ok
C redirect_parcel tracking_id={ident} point_id=PP12
A Done. Your parcel will be at Station Kiosk from Saturday, May 17, 10 a.m. It's kept there for 7 days, so \
please collect it by May 24.""")


def out_of_warranty(rng: Random) -> Talk:
    """A warranty that has ended, a price list, the diagnosis credited, repairs in business days."""
    serial, months = f"MX{rng.randint(100, 999)}-{rng.randint(10000, 99999)}", rng.choice([12, 24])
    start = date(2025 - months // 12, 3, rng.randint(4, 28))
    kind = "refurbished" if months == 12 else "new"
    costs = [rng.randint(119, 189), rng.randint(39, 74), rng.randint(60, 99), rng.randint(140, 230)]
    device = {"serial": serial, "model": "Vacuum V8", "condition": kind, "delivered_on": str(start),
        "repairs": []}
    kinds = ["Motor", "Battery", "Brush head", "Mainboard"]
    prices = [{"code": f"R{n}", "part": kinds[n], "price_usd": f"{costs[n]}.00",
        "labor": True} for n in range(4)]
    end = start.replace(year=2025)
    return _talk(device, {"model": "Vacuum V8", "repairs": prices}).tell(f"""
U my vacuum wont hold a charge anymore, serial {serial}. bought it last summer so should be covered
C get_device serial={serial}
A Thanks. According to our records your Vacuum V8 ({kind}) was delivered on {day(start)}, {start.year}, not \
last summer. Its {months}-month warranty ended on {day(end)}, 2025, so a repair would be at your own cost.
U seriously?? thats {(TODAY - end).days} days. ok how much is a battery
C repair_prices model="Vacuum V8"
A A battery is ${costs[1]}.00 including labor. The diagnosis is $45, but it's credited when you order the \
repair, so you'd pay ${costs[1]} in total. For comparison, the other repairs of this model: \
{kinds[0].lower()} ${costs[0]}, {kinds[2].lower()} ${costs[2]}, {kinds[3].lower()} ${costs[3]}.
U how long and do i get a loaner
A Repairs take 7 to 10 business days, i.e. up to two weeks. Loan devices aren't available, sorry.""")


def kuaidi(rng: Random) -> Talk:
    """Chinese: times of scans, a pick-up point, days that a parcel is kept."""
    ident, hour, minute = f"1M{rng.randint(10**9, 9 * 10**9)}", rng.randint(8, 11), rng.randint(10, 59)
    box, kg, metres = rng.randint(2, 40), rng.randint(11, 58) / 10, rng.randint(12, 89) * 10
    scans = rows("ts code place", (f"2025-05-15T{hour:02}:{minute}:12+08:00", "AT_POINT", "上海浦东东昌路"),
        ("2025-05-14T21:18:40+08:00", "ARR", "上海转运中心"), ("2025-05-13T19:05:03+08:00", "PU", "广州白云"))
    info = {"tracking_id": ident, "weight_kg": kg, "status": "READY", "locker": box, "scans": scans}
    point = {"id": "PP301", "name": "东昌路店", "distance_m": metres, "hours": {"all_week": "08:30-21:30"}}
    return _talk(info, {"points": [point, {"id": "PP307", "name": "世纪大道店",
        "distance_m": metres + 600}]}).tell(f"""
U 你好,帮我查一下快递 {ident} 到哪了
C track_parcel tracking_id={ident}
A 您好!包裹今天上午 {hour}:{minute} 已到达上海浦东东昌路店,放在 {box} 号柜,重量 {kg} 公斤,可以去取了。
U 这两天没空,最晚什么时候去拿?那家店离 200120 远吗
C find_pickup_points zip=200120
A 取件点会保留 7 天,也就是到 5 月 22 日。东昌路店离您约 {metres} 米,每天 8:30 到 21:30 营业。
U 好的,是从哪里寄出来的
A 5 月 13 日晚上 7 点 05 分从广州白云揽收,14 日晚到了上海转运中心。""")





TEMPLATES = (tier_nights, stay_dates, missing_points, lost_parcel, pickup_point, out_of_warranty, kuaidi)
