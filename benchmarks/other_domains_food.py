"""Clean conversations about food: tables, deliveries, groceries, allergens, catering, points."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random

from talk import Talk, tool
from talk_lines import a_day, call, marks, month, near, obj, rows, run

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
MARKS = marks(
    reads="check_tables get_booking get_order track_courier search_groceries get_product get_menu get_points",
    writes="book_table add_credit add_to_basket redeem_points",
    destructive="cancel_booking refund_items",
)


def _talk(today: date | None = None) -> Talk:
    return Talk(TOOLS, MARKS, POLICY + (f"Today is {today:%A}, {today}.\n" if today else ""))


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
    booked = obj(booking_id=ref, status="CONFIRMED", start=late.isoformat(), party=party + 1, area="terrace")
    return run(
        _talk(today),
        f"table for {party} at Casa Lume this friday, {hour}ish in the evening? name is {name}",
        call("check_tables", slots, restaurant="Casa Lume", date=str(friday), party=party),
        f"For Friday, {friday:%B %-d}, Casa Lume has two tables left: {first:%-I:%M %p} by the window,"
        f" or {late:%-I:%M %p} on the terrace (minimum spend $25). Which one would you like?",
        f"the later one pls. oh wait we'll be {party + 1}, my sister is comming too",
        call("book_table", booked, slot_id=slot, party=party + 1, guest=name),
        f"Done! Terrace table for {party + 1} on Friday at {late:%-I:%M %p}, booking **{ref}**. They hold"
        f" it for 15 minutes, so please be there by {late + timedelta(minutes=15):%-I:%M %p}.",
        "what if she gets sick",
        f"You can cancel for free until Thursday at {late:%-I:%M %p}, 24 hours before. After that it"
        f" would be $10 each, ${10 * (party + 1)} for all {party + 1} of you.",
    )


def cancel_late(rng: Random) -> Talk:
    """A fee from the policy, a card ending, a yes first."""
    today, party, card = a_day(rng, rng.randint(0, 5)), rng.randint(2, 8), rng.randint(1001, 9899)
    ref, left = f"PB{rng.randint(20000, 89999)}", rng.randint(5, 8)
    start = datetime(today.year, today.month, today.day, 19, 30)
    where = obj(name="Bistro Nord", phone="+15035550142", address=obj(street="14 Alder St", city="Portland"))
    booking = obj(booking_id=ref, venue=where, start=start.isoformat(), party=party, status="CONFIRMED")
    booking |= obj(card=f"**** **** **** {card}", now=(start - timedelta(hours=left)).isoformat())
    gone = obj(booking_id=ref, status="CANCELLED", fee_cents=1000 * party, refund_cents=0)
    return run(
        _talk(today),
        f"need to cancel tonight, {ref}",
        call("get_booking", booking, booking_id=ref),
        f"I found it: Bistro Nord, today at 7:30 PM, {party} people. That's only {left} hours away, so the"
        f" free period (24 hours before) is over and cancelling costs ${10 * party} ({party} × $10),"
        f" charged to the card ending in {card}. Shall I cancel anyway?",
        rng.choice(["ugh. yes do it", "yeah, go ahead", "fine, yes, cancel it please"]),
        call("cancel_booking", gone, booking_id=ref),
        f"Booking {ref} is cancelled. The fee is ${10 * party:.2f}. Sorry you couldn't make it!",
        "can i call them maybe they waive it",
        "Sure, Bistro Nord's number is (503) 555-0142; the decision is theirs.",
    )


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
    order = obj(order_id=number, member=member, state="PREPARING", items=items, total_cents=total)
    order |= obj(delivery_fee_cents=0, promised_at=promised.isoformat(), eta=eta.isoformat(), courier=None)
    spot = obj(courier=obj(name="Dele"), state="ON_THE_WAY", eta=later.isoformat(), km_left=1.8)
    return run(
        _talk(),
        f"wheres my food?? {number}",
        call("get_order", order, order_id=number),
        f"Your order (2 × Pad Thai, 1 × Summer rolls, ${total / 100:.2f}) is still being prepared. It was"
        f" promised for {promised:%-I:%M %p}; the new estimate is {eta:%-I:%M %p}, {delay} minutes late.",
        "still nothing. do i get anything for this",
        call("track_courier", spot, order_id=number),
        call("add_credit", obj(ok=True, balance="5.00"), member=member, amount=5, reason="late delivery"),
        f"Dele is on the way, 1.8 km from you, and should arrive at {later:%-I:%M %p}. That makes"
        f" it {delay + more} minutes late, more than 30, so I've added a $5 credit to your account.",
    )


def missing_item(rng: Random) -> Talk:
    """A refund of two units, a corrected total, the user's wrong price."""
    number, dip, wings = f"D-{rng.randint(30000, 69999)}", rng.choice([175, 225]), rng.choice([1149, 1299])
    items = rows(
        "item_id title qty price_cents status",
        ("a1", "Hot wings 12 pc", 1, wings, "delivered"),
        ("a2", "Blue cheese dip", 2, dip, "delivered"),
    )
    total = wings + 2 * dip + 299
    order = obj(order_id=number, items=items, delivery_cents=299, tip_cents=0, total_cents=total)
    back = obj(refund_id="rf_" + number, amount_cents=2 * dip, state="pending", eta_days="3-5")
    return run(
        _talk(),
        f"order {number}: both dips are missing, you owe me {(2 * dip + 50) / 100:.2f}",
        call("get_order", order, order_id=number),
        f"Sorry about that! The two dips were ${dip / 100:.2f} each, so ${2 * dip / 100:.2f} rather than"
        f" ${(2 * dip + 50) / 100:.2f}. May I refund ${2 * dip / 100:.2f} for them?",
        rng.choice(["ok yes", "sure, please do", "right, go for it"]),
        call("refund_items", back, order_id=number, item_ids=["a2"]),
        f"The refund of ${2 * dip / 100:.2f} is under way and takes 3 to 5 days. Your order then comes to"
        f" ${(total - 2 * dip) / 100:.2f} instead of ${total / 100:.2f}.",
        "whats the 2.99 on it",
        f"The delivery fee: the basket was ${(total - 299) / 100:.2f}, and delivery is only free from $30.",
    )


def unit_price(rng: Random) -> Talk:
    """Prices per kilo from pack sizes, the cheapest of five, a basket total."""
    packs = [(500, rng.choice([1.95, 2.15])), (1000, 3.2), (1500, rng.choice([4.2, 4.5])), (250, 1.4)]
    names = ("Fiore rice", "Basic rice", "Mill & Co rice", "Tiny Farm rice", "Golden rice")
    packs.append((2000, rng.choice([6.6, 7.0])))
    found = [
        obj(sku=f"G{1040 + n}", name=name, grams=grams, price=f"{price:.2f}", stock=rng.randint(3, 40))
        for n, (name, (grams, price)) in enumerate(zip(names, packs, strict=True))
    ]
    per = [price / grams * 1000 for grams, price in packs]
    best, number = packs[2][1], rng.choice([2, 3])
    table = "\n".join(
        f"| {name} | {grams} g | ${price:.2f} | ${kilo:.2f} |"
        for name, (grams, price), kilo in zip(names, packs, per, strict=True)
    )
    basket = obj(lines=[obj(sku="G1042", quantity=number)], total=f"{number * best:.2f}", currency="USD")
    return run(
        _talk(),
        "which rice is the best value per kg?",
        call("search_groceries", found, query="rice"),
        f"I compared all five:\n\n| Rice | Pack | Price | Per kg |\n|---|---|---|---|\n{table}\n\n"
        f"**Mill & Co rice** is the cheapest at ${per[2]:.2f} per kg. Shall I add a 1.5 kg pack?",
        f"yes but {number} of them",
        call("add_to_basket", basket, sku="G1042", quantity=number),
        f"Added {number} packs of 1.5 kg ({number * 1.5:g} kg in all) for ${number * best:.2f}. Another"
        f" ${30 - number * best:.2f} and delivery is free. 🍚",
    )


def label(rng: Random) -> Talk:
    """Allergens and nutrition per 100 g, scaled to a portion and a share of the daily value."""
    code, sugar = f"40{rng.randint(10**10, 10**11 - 1)}", rng.choice([22.0, 24.0, 18.0])
    kcal, part = rng.choice([450, 480]), rng.choice([40, 50])
    food = obj(energy_kcal=kcal, fat_g=19.0, sugars_g=sugar, salt_g=0.3, reference_intake=obj(sugars_g=90))
    tags = obj(contains=["en:oats", "en:milk", "en:soy"], may_contain=["en:hazelnuts"], gluten_free=None)
    share = sugar * part / 100
    return run(
        _talk(),
        f"is {code} ok for someone with a nut allergy",
        call("get_product", obj(barcode=code, name="Morning Crunch", per_100g=food, **tags), barcode=code),
        "Better not. Morning Crunch lists three allergens as ingredients (oats, milk and soy), and it *may"
        " contain* hazelnuts.",
        f"hm ok. and how much sugar is in one {part}g bowl? thought around {share + 5:.0f}",
        f"A bit less: {share:g} g, as 100 g have {sugar:g} g. That's about {share / 90 * 100:.0f}% of the"
        f" 90 g reference intake. The bowl has {kcal * part / 100:.0f} kcal, without milk.",
    )


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
    return run(
        _talk(today),
        f"Quote for {guests} people, Harvest buffet, on {party:%B %-d} please.",
        call("get_menu", obj(menus=menus, currency="USD"), page="catering"),
        f"Here is your quote for **{party:%A, %B %-d}**:\n\n- {guests} × ${price:.2f} = ${gross:,.2f}\n"
        f"- 10% off (40 guests or more): −${gross - net:,.2f}\n- **Total: ${net:,.2f}**\n"
        f"- Deposit (30%): ${net * 0.3:,.2f}, the remaining ${net * 0.7:,.2f} later\n\n"
        f"Per guest that is ${price * 0.9:.2f} after the discount.",
        f"we might only be {fewer}. cheaper then?",
        f"Yes, but you'd lose the discount: {fewer} × ${price:.2f} = ${small:,.2f}, so"
        f" ${net - small:,.2f} less for {guests - fewer} guests fewer. The final head count is due five"
        f" days before, on {final:%A, %B %-d}, so there's no rush: that's {(final - today).days} days.",
        "and the grill for the big group?",
        f"The Garden grill is ${price + 6:.2f} per guest, $6 more; with 10% off, {guests} guests would"
        f" come to ${guests * (price + 6) * 0.9:,.2f}.",
    )


def points(rng: Random) -> Talk:
    """Points as money, the part that expires, a new balance after a write."""
    have, gone, member = (
        rng.randint(21, 39) * 100 + rng.randint(5, 95),
        rng.randint(3, 9) * 50,
        "PL-77 310 42",
    )
    last = rng.choice([(6, "June 30"), (9, "September 30"), (12, "December 31")])
    end = f"2025-{last[0]:02}-{last[1][-2:]}"
    take = have // 500 * 500
    left = obj(redeemed=take, credit=f"{take / 100:.2f}", balance=have - take)
    return run(
        _talk(),
        f"how many points do i have, {member}, and what are they worth",
        call("get_points", obj(balance=have, tier=2, expiring=obj(points=gone, on=end)), member=member),
        f"You have {have:,} points, worth ${have / 100:.2f}. {gone} of them expire on {last[1]}. Would you"
        " like to turn some into credit?",
        f"{take} of them",
        call("redeem_points", left, member=member, points=take),
        f"{take:,} points are now ${take // 100} of credit; {have - take} points remain. To get back to"
        f" {take:,} you'd need another {2 * take - have:,}.",
        "so how much do i have to spend for that?",
        f"${2 * take - have:,}: every full dollar earns 1 point.",
    )


def split_bill(rng: Random) -> Talk:
    """A tip, shares per person, wine left out of one share."""
    number, people, tip = f"T{rng.randint(300, 899)}", rng.choice([4, 5]), rng.choice([18, 20])
    food, wine = rng.randint(80, 120) * 100, rng.choice([4800, 5600])
    factor = 1 + tip / 100
    even, dry = (food + wine) * factor / people, food * factor / people
    rest = dry + wine * factor / (people - 1)
    lines = [obj(name="Tasting menu and sides", cents=food), obj(name="Verdejo, 2 bottles", cents=wine)]
    return run(
        _talk(),
        f"split {number} between {people} of us with {tip}% tip",
        call("get_order", obj(order_id=number, lines=lines, subtotal_cents=food + wine), order_id=number),
        f"The bill is ${(food + wine) / 100:.2f}. With {tip}% tip"
        f" (${(food + wine) * tip / 10000:.2f}) it's ${(food + wine) * factor / 100:.2f}, or about"
        f" ${near(even / 100, 2)} each for {people}.",
        "Ana didnt have wine, can you take that out for her",
        f"Sure. Ana: about ${near(dry / 100, 2)}. The other {people - 1}: about ${near(rest / 100, 2)} each,"
        f" as they share the ${wine / 100:.2f} of wine (${wine * factor / 100:.2f} with tip).",
    )


def recipe(rng: Random) -> Talk:
    """A Markdown recipe scaled to more people, Fahrenheit, steps by number, an error and a second try."""
    people = rng.choice([6, 10, 12])
    by = people / 4
    rice, oven = rng.choice([280, 320, 360, 400]), rng.choice([160, 170, 180, 190, 200])
    page = (
        f"# Saffron rice bake\nServes 4 · 45 min\n\n- {rice} g rice\n- 1.2 l stock\n- 2 onions\n- 1 g saffron"
        f"\n\n1. Fry the onions.\n2. Add rice, stock and saffron.\n3. Bake 30 min, {oven} °C.\n4. Rest 5 min."
    )
    return run(
        _talk(),
        f"saffron rice recipe for {people} people please, im in the US so fahrenheit",
        call("get_menu", "ERROR 404, did you mean 'saffron-rice-bake'?", page="saffron rice"),
        call("get_menu", page, page="saffron-rice-bake"),
        f"The recipe serves 4, so for {people} I multiplied by {by:g}:\n\n- {rice * by:g} g rice\n"
        f"- {1.2 * by:g} l stock\n- {2 * by:g} onions\n- {by:g} g saffron\n\n1. Fry the onions.\n2. Add the"
        f" rice, stock and saffron.\n3. Bake for 30 minutes at {oven * 9 / 5 + 32:.0f} °F ({oven} °C).\n"
        "4. Let it rest for 5 minutes.\n\nA bigger dish may need a little longer in step 3.",
        "in at 6:10, when do we eat",
        "Out of the oven at 6:40, and after resting you can eat at 6:45.",
    )


def terse(rng: Random) -> Talk:
    """A small model's short answers: epoch seconds as a clock time, a count, a sum."""
    number, minutes = f"{rng.randint(100000, 999999)}", rng.choice([20, 35])
    at = 1747850400 + rng.randint(0, 40) * 86400  # 18:00 UTC
    cents = [rng.choice([450, 520]), rng.choice([890, 940]), 300]
    items = [obj(n=name, c=cent) for name, cent in zip(("Samosa", "Dal", "Naan"), cents, strict=True)]
    order = obj(id=number, state="OUT_FOR_DELIVERY", eta=at + minutes * 60, tz="UTC", items=items, paid=True)
    return run(
        _talk(),
        f"status {number}",
        call("get_order", order, order_id=number),
        f"Out for delivery. ETA 18:{minutes} UTC.",
        "how many items + total",
        f"3 items, {sum(cents) / 100:.2f}, already paid.",
    )


def french_table(rng: Random) -> Talk:
    """French: a table on Saturday, a time with h, a deposit per person."""
    today, party = a_day(rng, rng.randint(0, 3)), rng.randint(3, 7)
    day = today + timedelta(days=5 - today.weekday())
    when = f"{day.day if day.day > 1 else '1er'} {month('french', day)}"
    slots = rows("id heure places salle", ("c1", "12:30", party, "jardin"), ("c2", "20:45", party, "cave"))
    ref = f"PB{rng.randint(20000, 89999)}"
    return run(
        _talk(today),
        f"Bonjour, une table pour {party} samedi soir chez Le Verger ? C'est pour un anniversaire, Morel",
        call("check_tables", slots, restaurant="Le Verger", date=str(day), party=party),
        f"Bonjour ! Samedi {when}, il reste une table le soir, à 20h45 dans la cave. Je la réserve ?",
        "oui merci",
        call("book_table", obj(booking_id=ref, etat="ok"), slot_id="c2", party=party, guest="Morel"),
        f"C'est réservé pour {party} personnes, samedi {when} à 20 h 45 (référence {ref}). La table est"
        " gardée un quart d'heure, donc jusqu'à 21 h. Annulation gratuite jusqu'à vendredi 20h45, ensuite"
        f" 10 € par personne, soit {10 * party} €.",
    )


def korean_delivery(rng: Random) -> Talk:
    """Korean: won with separators, minutes, two prices compared."""
    chicken, cola = rng.randint(170, 239) * 100, rng.choice([2000, 2500])
    number, wait = f"KR{rng.randint(10000, 99999)}", rng.choice([25, 35])
    items = rows("name qty price", ("양념치킨", 1, chicken), ("콜라 1.25L", 2, cola))
    total = chicken + 2 * cola
    order = obj(id=number, items=items, delivery_fee=3000, total=total + 3000, eta_min=wait, currency="KRW")
    return run(
        _talk(),
        f"주문 {number} 언제 와요? 얼마 냈는지도 알려주세요",
        call("get_order", order, order_id=number),
        f"약 {wait}분 후에 도착할 예정입니다. 양념치킨 {chicken:,}원, 콜라 2병 {2 * cola:,}원,"
        f" 배달비 3,000원으로 총 {total + 3000:,}원 결제하셨습니다.",
        "콜라 하나만 시켰으면요?",
        f"콜라를 1병만 주문하셨다면 {cola:,}원 적은 {total + 3000 - cola:,}원입니다.",
    )


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
    basket = obj(code=0, msg="ok", data=obj(sku="F01", quantity=kilos, amount=f"{paid:.2f}"))
    return run(
        _talk(),
        "今天苹果多少钱一斤?梨呢?",
        call("search_groceries", found, query="苹果 梨"),
        f"红富士苹果每公斤{apple}元,今天打八折,折后{apple * 0.8:g}元,也就是每斤{apple * 0.4:g}元;"
        f"雪花梨每公斤{pear}元,即每斤{pear // 2}元,没有折扣。",
        f"那要{kilos * 2}斤苹果",
        call("add_to_basket", basket, sku="F01", quantity=kilos),
        f"好的,已加入{kilos}公斤红富士苹果,共{paid:g}元,比原价省了{apple * kilos - paid:g}元。",
    )


TEMPLATES = (
    table_for_friday, cancel_late, late_delivery, missing_item, unit_price, label, catering, points,
    split_bill, recipe, terse, french_table, korean_delivery, chinese_groceries,
)  # fmt: skip
