"""Clean conversations about food: tables, deliveries, groceries, allergens, catering, points."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Courteous, Script, a_day, marked, near, rows
from talk import Talk, tool

POLICY = (
    "You are the assistant of Plateful, an app for tables, deliveries and groceries.\n"
    "Tables are held for 15 minutes. Cancelling is free until 24 hours before, later 10 per person.\n"
    "Delivery is 2.99 below 30 and free from 30. More than 30 minutes late earns a credit of 5.\n"
    "Members earn 1 point per full unit of currency spent; 100 points are worth 1.\n"
    "Catering: 10% off from 40 guests, 30% deposit, final head count 5 days before.\n"
    "Ask for a yes before you cancel, empty or refund anything.\n"
)
TOOLS = [
    tool("check_tables", "Free tables", restaurant="string", date="string", party="integer"),
    tool("book_table", "Book a table", slot_id="string", party="integer", guest="string", note="string?"),
    tool("get_booking", "A booking", booking_id="string"),
    tool("cancel_booking", "Cancel a booking", booking_id="string"),
    tool("get_order", "A delivery order", order_id="string"),
    tool("track_courier", "Where the courier is", order_id="string"),
    tool("refund_items", "Refund items of an order", order_id="string", item_ids="array"),
    tool("add_credit", "Give a member credit", member="string", amount="number", reason="string"),
    tool("search_groceries", "Find groceries", query="string", limit="integer?"),
    tool("add_to_basket", "Put groceries into the basket", sku="string", quantity="integer"),
    tool("get_product", "Label data of a product", barcode="string"),
    tool("get_menu", "Menu or recipe page", page="string"),
    tool("get_points", "Points of a member", member="string"),
    tool("redeem_points", "Turn points into credit", member="string", points="integer"),
]
MARKS = marked(TOOLS, "book_table add_credit add_to_basket redeem_points", "cancel_booking refund_items")


_MONTHS = "janvier février mars avril mai juin juillet août septembre octobre novembre décembre"


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today}.\n" if today else ""
    return Courteous(TOOLS, MARKS, POLICY + now, results)


def table_for_friday(rng: Random) -> Talk:
    """Slots as ISO times, clock times, a hold from the policy, one more guest, a deadline."""
    today = a_day(rng, rng.randint(0, 3))
    friday = today + timedelta(days=4 - today.weekday())
    party, hour = rng.randint(2, 5), rng.choice([6, 7])
    first = datetime(friday.year, friday.month, friday.day, 12 + hour, 15)
    late, name = first + timedelta(minutes=90), rng.choice(["Okafor", "Lindgren", "Ruiz"])
    slot, ref = f"sl_{rng.randint(300, 899)}", f"PB{rng.randint(20000, 89999)}"
    slots = rows(
        "slot_id start seats area min_spend",
        (f"sl_{rng.randint(100, 299)}", first.isoformat(), party + 1, "window", None),
        (slot, late.isoformat(), party + 1, "terrace", 25),
    )
    booked: dict[str, Any] = {"booking_id": ref, "status": "CONFIRMED", "start": late.isoformat()}
    booked |= {"party": party + 1, "area": "terrace"}
    return _talk(slots, booked, today=today).tell(f"""
U table for {party} at Casa Lume this friday, {hour}ish in the evening? name is {name}
C check_tables restaurant="Casa Lume" date={friday} party:={party}
A For Friday, {friday:%B %-d}, Casa Lume has two tables left: {first:%-I:%M %p} by the window, or \
{late:%-I:%M %p} on the terrace (minimum spend $25). Which one would you like?
U the later one pls. oh wait we'll be {party + 1}, my sister is comming too
C book_table slot_id={slot} party:={party + 1} guest={name}
A Done! Terrace table for {party + 1} on Friday at {late:%-I:%M %p}, booking **{ref}**. They hold it for 15 \
minutes, so please be there by {late + timedelta(minutes=15):%-I:%M %p}.
U what if she gets sick
A You can cancel for free until Thursday at {late:%-I:%M %p}, 24 hours before. After that it would be $10 \
each, ${10 * (party + 1)} for all {party + 1} of you.
""")


def cancel_late(rng: Random) -> Talk:
    """A fee from the policy, a card ending, a yes first."""
    today, party, card = a_day(rng, rng.randint(0, 5)), rng.randint(2, 8), rng.randint(1001, 9899)
    ref, left = f"PB{rng.randint(20000, 89999)}", rng.randint(5, 8)
    start = datetime(today.year, today.month, today.day, 19, 30)
    address, now = {"street": "14 Alder St", "city": "Portland"}, start - timedelta(hours=left)
    where = {"name": "Bistro Nord", "phone": "+15035550142", "address": address}
    booking: dict[str, Any] = {"booking_id": ref, "venue": where, "start": start.isoformat(), "party": party}
    booking |= {"status": "CONFIRMED", "card": f"**** **** **** {card}", "now": now.isoformat()}
    gone = {"booking_id": ref, "status": "CANCELLED", "fee_cents": 1000 * party, "refund_cents": 0}
    return _talk(booking, gone, today=today).tell(f"""
U need to cancel tonight, {ref}
C get_booking booking_id={ref}
A I found it: Bistro Nord, today at 7:30 PM, {party} people. That's only {left} hours away, so the free \
period (24 hours before) is over and cancelling costs ${10 * party} ({party} × $10), charged to the card \
ending in {card}. Shall I cancel anyway?
U {rng.choice(["ugh. yes do it", "yeah, go ahead", "fine, yes, cancel it please"])}
C cancel_booking booking_id={ref}
A Booking {ref} is cancelled. The fee is ${10 * party:.2f}. Sorry you couldn't make it!
U can i call them maybe they waive it
A Sure, Bistro Nord's number is (503) 555-0142; the decision is theirs.
""")


def late_delivery(rng: Random) -> Talk:
    """Cents, a delay between two clock times, a credit once the delay passes half an hour."""
    number, member = f"{rng.randint(4, 9)}{rng.randint(10, 99)}-{rng.randint(1000, 9999)}", "m_20417"
    day, more = a_day(rng, rng.randint(0, 6)), rng.randint(20, 25)
    promised = datetime(day.year, day.month, day.day, 19, rng.choice([5, 10, 20]))
    delay = rng.randint(12, 24)
    eta, later = promised + timedelta(minutes=delay), promised + timedelta(minutes=delay + more)
    pad, rolls = rng.choice([1290, 1350]), rng.choice([620, 680])
    items = rows("id name qty unit_cents", ("i1", "Pad Thai", 2, pad), ("i2", "Summer rolls", 1, rolls))
    total = 2 * pad + rolls
    order: dict[str, Any] = {"order_id": number, "member": member, "state": "PREPARING", "items": items}
    order |= {"total_cents": total, "delivery_fee_cents": 0, "promised_at": promised.isoformat()}
    order |= {"eta": eta.isoformat(), "courier": None}
    spot = {"courier": {"name": "Dele"}, "state": "ON_THE_WAY", "eta": later.isoformat(), "km_left": 1.8}
    return _talk(order, spot, {"ok": True, "balance": "5.00"}).tell(f"""
U wheres my food?? {number}
C get_order order_id={number}
A Your order (2 × Pad Thai, 1 × Summer rolls, ${total / 100:.2f}) is still being prepared. It was promised \
for {promised:%-I:%M %p}; the new estimate is {eta:%-I:%M %p}, {delay} minutes late.
U still nothing. do i get anything for this
C track_courier order_id={number}
C add_credit member={member} amount:=5 reason="late delivery"
A Dele is on the way, 1.8 km from you, and should arrive at {later:%-I:%M %p}. That makes it {delay + more} \
minutes late, more than 30, so I've added a $5 credit to your account.
""")


def missing_item(rng: Random) -> Talk:
    """A refund of two units, a corrected total, the user's wrong price."""
    number, dip, wings = f"D-{rng.randint(30000, 69999)}", rng.choice([175, 225]), rng.choice([1149, 1299])
    items = rows(
        "item_id title qty price_cents status",
        ("a1", "Hot wings 12 pc", 1, wings, "delivered"),
        ("a2", "Blue cheese dip", 2, dip, "delivered"),
    )
    total = wings + 2 * dip + 299
    order = {"order_id": number, "items": items, "delivery_cents": 299, "tip_cents": 0, "total_cents": total}
    back = {"refund_id": "rf_" + number, "amount_cents": 2 * dip, "state": "pending", "eta_days": "3-5"}
    return _talk(order, back).tell(f"""
U order {number}: both dips are missing, you owe me {(2 * dip + 50) / 100:.2f}
C get_order order_id={number}
A Sorry about that! The two dips were ${dip / 100:.2f} each, so ${2 * dip / 100:.2f} rather than \
${(2 * dip + 50) / 100:.2f}. May I refund ${2 * dip / 100:.2f} for them?
U {rng.choice(["ok yes", "sure, please do", "right, go for it"])}
C refund_items order_id={number} item_ids:='["a2"]'
A The refund of ${2 * dip / 100:.2f} is under way and takes 3 to 5 days. Your order then comes to \
${(total - 2 * dip) / 100:.2f} instead of ${total / 100:.2f}.
U whats the 2.99 on it
A The delivery fee: the basket was ${(total - 299) / 100:.2f}, and delivery is only free from $30.
""")


def unit_price(rng: Random) -> Talk:
    """Prices per kilo from pack sizes, the cheapest of five, a basket total."""
    packs = [(500, rng.choice([1.95, 2.15])), (1000, 3.2), (1500, rng.choice([4.2, 4.5])), (250, 1.4)]
    names = ("Fiore rice", "Basic rice", "Mill & Co rice", "Tiny Farm rice", "Golden rice")
    packs.append((2000, rng.choice([6.6, 7.0])))
    sold = enumerate(zip(names, packs, strict=True))
    stock = ((f"G{1040 + n}", name, of[0], f"{of[1]:.2f}", rng.randint(3, 40)) for n, (name, of) in sold)
    found = rows("sku name grams price stock", *stock)
    per = [price / grams * 1000 for grams, price in packs]
    best, number = packs[2][1], rng.choice([2, 3])
    table = "\n".join(
        f"| {name} | {grams} g | ${price:.2f} | ${kilo:.2f} |"
        for name, (grams, price), kilo in zip(names, packs, per, strict=True)
    )
    lines = [{"sku": "G1042", "quantity": number}]
    basket = {"lines": lines, "total": f"{number * best:.2f}", "currency": "USD"}
    return _talk(found, basket).tell(f"""
U which rice is the best value per kg?
C search_groceries query=rice
A I compared all five:

| Rice | Pack | Price | Per kg |
|---|---|---|---|
{table}

**Mill & Co rice** is the cheapest at ${per[2]:.2f} per kg. Shall I add a 1.5 kg pack?
U yes but {number} of them
C add_to_basket sku=G1042 quantity:={number}
A Added {number} packs of 1.5 kg ({number * 1.5:g} kg in all) for ${number * best:.2f}. Another \
${30 - number * best:.2f} and delivery is free. 🍚
""")


def label(rng: Random) -> Talk:
    """Allergens and nutrition per 100 g, scaled to a portion and a share of the daily value."""
    code, sugar = f"40{rng.randint(10**10, 10**11 - 1)}", rng.choice([22.0, 24.0, 18.0])
    kcal, part = rng.choice([450, 480]), rng.choice([40, 50])
    food: dict[str, Any] = {"energy_kcal": kcal, "fat_g": 19.0, "sugars_g": sugar, "salt_g": 0.3}
    food |= {"reference_intake": {"sugars_g": 90}}
    product: dict[str, Any] = {"barcode": code, "name": "Morning Crunch", "per_100g": food}
    product |= {"contains": ["en:oats", "en:milk", "en:soy"], "may_contain": ["en:hazelnuts"]}
    product |= {"gluten_free": None}
    share = sugar * part / 100
    return _talk(product).tell(f"""
U is {code} ok for someone with a nut allergy
C get_product barcode={code}
A Better not. Morning Crunch lists three allergens as ingredients (oats, milk and soy), and it *may contain* \
hazelnuts.
U hm ok. and how much sugar is in one {part}g bowl? thought around {share + 5:.0f}
A A bit less: {share:g} g, as 100 g have {sugar:g} g. That's about {share / 90 * 100:.0f}% of the 90 g \
reference intake. The bowl has {kcal * part / 100:.0f} kcal, without milk.
""")


def catering(rng: Random) -> Talk:
    """A quote with discount and deposit; fewer guests lose the discount; a deadline by date."""
    today, guests, fewer = a_day(rng, 1), rng.choice([44, 48, 60]), rng.choice([34, 36])
    party, price = today + timedelta(days=25), rng.choice([18.5, 21.5])
    gross, small = guests * price, fewer * price
    net, final = gross * 0.9, party - timedelta(days=5)
    menus = rows(
        "menu_id title per_guest min_guests courses",
        ("m1", "Harvest buffet", price, 20, ["3 salads", "2 mains", "1 dessert"]),
        ("m2", "Garden grill", price + 6, 30, ["2 salads", "3 mains", "2 desserts"]),
    )
    return _talk({"menus": menus, "currency": "USD"}, today=today).tell(f"""
U Quote for {guests} people, Harvest buffet, on {party:%B %-d} please.
C get_menu page=catering
A Here is your quote for **{party:%A, %B %-d}**:

- {guests} × ${price:.2f} = ${gross:,.2f}
- 10% off (40 guests or more): −${gross - net:,.2f}
- **Total: ${net:,.2f}**
- Deposit (30%): ${net * 0.3:,.2f}, the remaining ${net * 0.7:,.2f} later

Per guest that is ${price * 0.9:.2f} after the discount.
U we might only be {fewer}. cheaper then?
A Yes, but you'd lose the discount: {fewer} × ${price:.2f} = ${small:,.2f}, so ${net - small:,.2f} less for \
{guests - fewer} guests fewer. The final head count is due five days before, on {final:%A, %B %-d}, so \
there's no rush: that's {(final - today).days} days.
U and the grill for the big group?
A The Garden grill is ${price + 6:.2f} per guest, $6 more; with 10% off, {guests} guests would come to \
${guests * (price + 6) * 0.9:,.2f}.
""")


def points(rng: Random) -> Talk:
    """Points as money, the part that expires, a new balance after a write."""
    have, gone = rng.randint(21, 39) * 100 + rng.randint(5, 95), rng.randint(3, 9) * 50
    member = "PL-77 310 42"
    last = rng.choice([(6, "June 30"), (9, "September 30"), (12, "December 31")])
    end = f"2025-{last[0]:02}-{last[1][-2:]}"
    take = have // 500 * 500
    left = {"redeemed": take, "credit": f"{take / 100:.2f}", "balance": have - take}
    return _talk({"balance": have, "tier": 2, "expiring": {"points": gone, "on": end}}, left).tell(f"""
U how many points do i have, {member}, and what are they worth
C get_points member="{member}"
A You have {have:,} points, worth ${have / 100:.2f}. {gone} of them expire on {last[1]}. Would you like to \
turn some into credit?
U {take} of them
C redeem_points member="{member}" points:={take}
A {take:,} points are now ${take // 100} of credit; {have - take} points remain. To get back to {take:,} \
you'd need another {2 * take - have:,}.
U so how much do i have to spend for that?
A ${2 * take - have:,}: every full dollar earns 1 point.
""")


def split_bill(rng: Random) -> Talk:
    """A tip, shares per person, wine left out of one share."""
    number, people, tip = f"T{rng.randint(300, 899)}", rng.choice([4, 5]), rng.choice([18, 20])
    food, wine = rng.randint(80, 120) * 100, rng.choice([4800, 5600])
    factor = 1 + tip / 100
    even, dry = (food + wine) * factor / people, food * factor / people
    rest = dry + wine * factor / (people - 1)
    lines = [{"name": "Tasting menu and sides", "cents": food}, {"name": "Verdejo, 2 bottles", "cents": wine}]
    return _talk({"order_id": number, "lines": lines, "subtotal_cents": food + wine}).tell(f"""
U split {number} between {people} of us with {tip}% tip
C get_order order_id={number}
A The bill is ${(food + wine) / 100:.2f}. With {tip}% tip (${(food + wine) * tip / 10000:.2f}) it's \
${(food + wine) * factor / 100:.2f}, or about ${near(even / 100, 2)} each for {people}.
U Ana didnt have wine, can you take that out for her
A Sure. Ana: about ${near(dry / 100, 2)}. The other {people - 1}: about ${near(rest / 100, 2)} each, as they \
share the ${wine / 100:.2f} of wine (${wine * factor / 100:.2f} with tip).
""")


def recipe(rng: Random) -> Talk:
    """A Markdown recipe scaled to more people, Fahrenheit, steps by number, an error and a second try."""
    people = rng.choice([6, 10, 12])
    by = people / 4
    rice, oven = rng.choice([280, 320, 360, 400]), rng.choice([160, 170, 180, 190, 200])
    page = (
        f"# Saffron rice bake\nServes 4 · 45 min\n\n- {rice} g rice\n- 1.2 l stock\n- 2 onions\n- 1 g saffron"
        f"\n\n1. Fry the onions.\n2. Add rice, stock and saffron.\n3. Bake 30 min, {oven} °C.\n4. Rest 5 min."
    )
    return _talk(page).tell(f"""
U saffron rice recipe for {people} people please, im in the US so fahrenheit
C get_menu page="saffron rice"
R ERROR 404, did you mean 'saffron-rice-bake'?
C get_menu page=saffron-rice-bake
A The recipe serves 4, so for {people} I multiplied by {by:g}:

- {rice * by:g} g rice
- {1.2 * by:g} l stock
- {2 * by:g} onions
- {by:g} g saffron

1. Fry the onions.
2. Add the rice, stock and saffron.
3. Bake for 30 minutes at {oven * 9 / 5 + 32:.0f} °F ({oven} °C).
4. Let it rest for 5 minutes.

\\A bigger dish may need a little longer in step 3.
U in at 6:10, when do we eat
A Out of the oven at 6:40, and after resting you can eat at 6:45.
""")


def terse(rng: Random) -> Talk:
    """A small model's short answers: epoch seconds as a clock time, a count, a sum."""
    number, minutes = f"{rng.randint(100000, 999999)}", rng.choice([20, 35])
    at = 1747850400 + rng.randint(0, 40) * 86400  # 18:00 UTC
    cents = [rng.choice([450, 520]), rng.choice([890, 940]), 300]
    items = [{"n": name, "c": cent} for name, cent in zip(("Samosa", "Dal", "Naan"), cents, strict=True)]
    order: dict[str, Any] = {"id": number, "state": "OUT_FOR_DELIVERY", "eta": at + minutes * 60, "tz": "UTC"}
    order |= {"items": items, "paid": True}
    return _talk(order).tell(f"""
U status {number}
C get_order order_id={number}
A Out for delivery. ETA 18:{minutes} UTC.
U how many items + total
A 3 items, {sum(cents) / 100:.2f}, already paid.
""")


def french_table(rng: Random) -> Talk:
    """French: a table on Saturday, a time with h, a deposit per person."""
    today, party = a_day(rng, rng.randint(0, 3)), rng.randint(3, 7)
    day = today + timedelta(days=5 - today.weekday())
    when = f"{day.day if day.day > 1 else '1er'} {_MONTHS.split()[day.month - 1]}"
    slots = rows("id heure places salle", ("c1", "12:30", party, "jardin"), ("c2", "20:45", party, "cave"))
    ref = f"PB{rng.randint(20000, 89999)}"
    return _talk(slots, {"booking_id": ref, "etat": "ok"}, today=today).tell(f"""
U Bonjour, une table pour {party} samedi soir chez Le Verger ? C'est pour un anniversaire, Morel
C check_tables restaurant="Le Verger" date={day} party:={party}
A Bonjour ! Samedi {when}, il reste une table le soir, à 20h45 dans la cave. Je la réserve ?
U oui merci
C book_table slot_id=c2 party:={party} guest=Morel
A C'est réservé pour {party} personnes, samedi {when} à 20 h 45 (référence {ref}). La table est gardée un \
quart d'heure, donc jusqu'à 21 h. Annulation gratuite jusqu'à vendredi 20h45, ensuite 10 € par personne, \
soit {10 * party} €.
""")


def korean_delivery(rng: Random) -> Talk:
    """Korean: won with separators, minutes, two prices compared."""
    chicken, cola = rng.randint(170, 239) * 100, rng.choice([2000, 2500])
    number, wait = f"KR{rng.randint(10000, 99999)}", rng.choice([25, 35])
    items = rows("name qty price", ("양념치킨", 1, chicken), ("콜라 1.25L", 2, cola))
    total = chicken + 2 * cola
    order: dict[str, Any] = {"id": number, "items": items, "delivery_fee": 3000, "total": total + 3000}
    order |= {"eta_min": wait, "currency": "KRW"}
    return _talk(order).tell(f"""
U 주문 {number} 언제 와요? 얼마 냈는지도 알려주세요
C get_order order_id={number}
A 약 {wait}분 후에 도착할 예정입니다. 양념치킨 {chicken:,}원, 콜라 2병 {2 * cola:,}원, 배달비 3,000원으로 총 \
{total + 3000:,}원 결제하셨습니다.
U 콜라 하나만 시켰으면요?
A 콜라를 1병만 주문하셨다면 {cola:,}원 적은 {total + 3000 - cola:,}원입니다.
""")


def chinese_groceries(rng: Random) -> Talk:
    """Chinese: a price per half kilo, a discount in tenths, a total."""
    apple, pear = rng.choice([12, 16, 18, 22, 24]), rng.choice([8, 10, 14])
    kilos = rng.randint(2, 6)
    found = rows(
        "sku name unit price stock promo",
        ("F01", "红富士苹果", "kg", f"{apple}.00", 52, "8折"),
        ("F02", "雪花梨", "kg", f"{pear}.00", 17, None),
    )
    paid = apple * 0.8 * kilos
    basket = {"code": 0, "msg": "ok", "data": {"sku": "F01", "quantity": kilos, "amount": f"{paid:.2f}"}}
    return _talk(found, basket).tell(f"""
U 今天苹果多少钱一斤?梨呢?
C search_groceries query="苹果 梨"
A 红富士苹果每公斤{apple}元,今天打八折,折后{apple * 0.8:g}元,也就是每斤{apple * 0.4:g}元;\
雪花梨每公斤{pear}元,即每斤{pear // 2}元,没有折扣。
U 那要{kilos * 2}斤苹果
C add_to_basket sku=F01 quantity:={kilos}
A 好的,已加入{kilos}公斤红富士苹果,共{paid:g}元,比原价省了{apple * kilos - paid:g}元。
""")


TEMPLATES = (
    table_for_friday, cancel_late, late_delivery, missing_item, unit_price, label, catering, points,
    split_bill, recipe, terse, french_table, korean_delivery, chinese_groceries,
)  # fmt: skip
