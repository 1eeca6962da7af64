"""Clean conversations of a customer service with a database and a policy: orders, subscriptions."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from other_domains_service_more import FIRST, MARKS, POLICY, TODAY, TOOLS, business
from other_domains_service_more import TEMPLATES as MORE
from scripted import Script, comma, day, rows, usd
from talk import Talk

# fmt: off
LAST = ["Rossi", "Kovacs", "Nguyen", "Brown", "Lopez", "Patel", "Garcia", "Silva", "Moore", "Ahmed"]
CITIES = [("Denver", "CO", 802), ("Austin", "TX", 787), ("Columbus", "OH", 432), ("San Diego", "CA", 921)]
STREETS = ["Cedar Avenue", "Maple Drive", "Elm Street", "Highland Drive", "Sunset Drive", "Lakeview Drive"]


def _talk(*results: Any) -> Script:
    return Script(TOOLS, MARKS, POLICY, results)


def _person(rng: Random) -> dict[str, Any]:
    first, last, (city, state, code) = rng.choice(FIRST), rng.choice(LAST), rng.choice(CITIES)
    number = rng.randint(1000, 9999)
    return {"user_id": f"{first}_{last}_{number}".lower(), "name": {"first_name": first, "last_name": last},
        "email": f"{first}.{last}{number + 11}@example.com".lower(),
        "address": {"address1": f"{rng.randint(101, 989)} {rng.choice(STREETS)}",
        "address2": f"Suite {rng.randint(110, 990)}", "city": city, "state": state, "country": "USA",
        "zip": f"{code}{rng.randint(10, 99)}"}, "payment_methods": {}, "orders": []}


def _item(rng: Random, name: str, low: int, high: int, **options: str) -> dict[str, Any]:
    ids = {"product_id": str(rng.randint(10**9, 9 * 10**9)), "item_id": str(rng.randint(10**9, 9 * 10**9))}
    return {"name": name, **ids, "price": rng.randint(low * 100, high * 100) / 100, "options": options}


def _cents(*items: dict[str, Any]) -> int:
    return sum(round(100 * item["price"]) for item in items)


def _order(rng: Random, who: dict[str, Any], status: str, pay: str, *items: dict[str, Any]) -> dict[str, Any]:
    sent = {"tracking_id": [str(rng.randint(10**11, 9 * 10**11))], "item_ids": [x["item_id"] for x in items]}
    paid = {"transaction_type": "payment", "amount": _cents(*items) / 100, "payment_method_id": pay}
    order = {"order_id": f"#W{rng.randint(10**6, 9 * 10**6)}", "user_id": who["user_id"],
        "address": who["address"], "items": list(items), "fulfillments": [] if status == "pending" else
        [sent], "status": status, "payment_history": [paid]}
    who["orders"].append(order["order_id"])
    return order


def exchange(rng: Random) -> Talk:
    """Variants compared, a gift card that does not cover the difference, an exchange after a yes."""
    who, card = _person(rng), f"credit_card_{rng.randint(10**6, 9 * 10**6)}"
    old = _item(rng, "Mechanical Keyboard", 181, 219, switch="clicky", backlight="RGB", size="full size")
    order = _order(rng, who, "delivered", card, old, _item(rng, "Smart Thermostat", 230, 290, color="black"))
    gift, b = rng.randint(3, 9), [_cents(old) + n for n in rng.sample(range(1100, 4600), 3)]
    looks = [("linear", "RGB", True), ("linear", "none", True), ("tactile", "white", True)]
    forms = [(*look, b[n]) for n, look in enumerate(looks)] + [("linear", "white", False, b[0] - 700)]
    forms += [("clicky", "none", True, b[1] - 300)]
    made = [_item(rng, "", 1, 2, switch=s, backlight=k, size="full size") for s, k, _, _ in forms]
    ids = [item["item_id"] for item in made]
    variants = {i: {"item_id": i, "options": m["options"], "available": f[2], "price": f[3] / 100} for i, m,
        f in zip(ids, made, forms, strict=True)}
    product = {"name": old["name"], "product_id": old["product_id"], "variants": variants}
    pays = {card: {"source": "credit_card", "brand": "visa", "last_four": str(rng.randint(1000, 9999))}}
    who["payment_methods"] = {**pays, "gift_card_4421": {"source": "gift_card", "balance": gift}}
    extra, last4, name = b[1] - _cents(old), pays[card]["last_four"], who["name"]
    done = {**order, "status": "exchange requested", "exchange_price_difference": extra / 100}
    return _talk(who["user_id"], order, product, who, done).tell(f"""
U Hi this is {name["first_name"]} {name["last_name"]}, {who["address"]["zip"]}. the keyboard in \
{order["order_id"]} is WAY too loud, can i swap it for a quieter one (full size tho)
C find_user_id_by_name_zip first_name={name["first_name"]} last_name={name["last_name"]} \
zip={who["address"]["zip"]}
C get_order_details order_id={order["order_id"]}
C get_product_details product_id={old["product_id"]}
A Thanks, {name["first_name"]}. Order {order["order_id"]} is delivered, and you paid {usd(_cents(old))} for \
the clicky RGB keyboard. These quieter full-size versions are available:\n\n- **Linear, RGB** – {usd(b[0])}\
\n- **Linear, no backlight** – {usd(b[1])}\n- **Tactile, white backlight** – {usd(b[2])}\n\nThe linear one \
with white backlight is sold out. Which would you like, and how should the price difference be paid? Please \
note that an order can be exchanged only once.
U second one. gift card
C get_user_details user_id={who["user_id"]}
A The difference is {usd(extra)}, but your gift card holds only {usd(100 * gift)}, and a gift card has to \
cover all of it. Your Visa ending in {last4} would work. Shall I exchange the keyboard (item \
{old["item_id"]}) for the linear one without backlight (item {ids[1]}) and charge {usd(extra)} to that card?
U {rng.choice(["yes pls", "ugh fine, yes", "Yes, go ahead"])}
C exchange_items order_id={order["order_id"]} old:='["{old["item_id"]}"]' new:='["{ids[1]}"]' \
payment_id={card}
A The exchange is requested for order {order["order_id"]}; {usd(extra)} is charged to the Visa ending in \
{last4}. The thermostat stays as it is.""")


def return_two(rng: Random) -> Talk:
    """A list of items, a refund summed, a payment method refused by the policy."""
    who, paypal = _person(rng), f"paypal_{rng.randint(10**6, 9 * 10**6)}"
    names = [("Hiking Boots", 160, 270), ("Water Bottle", 42, 56), ("Backpack", 180, 240)]
    items = [_item(rng, n, lo, hi, color=rng.choice(["black", "green", "navy"])) for n, lo, hi in names]
    items += [_item(rng, "Headlamp", 31, 49, lumens="400"), _item(rng, "Wool Socks", 14, 22, size="L")]
    order = _order(rng, who, "delivered", paypal, *items)
    who["payment_methods"] = {paypal: {"source": "paypal"}, "credit_card_77": {"source": "credit_card"}}
    back, keep, amounts = _cents(items[0], items[3]), items[2], [usd(_cents(item)) for item in items]
    done = {**order, "status": "return requested", "refund": back / 100, "return_payment_method_id": paypal}
    listing = "\n".join(f"{n + 1}. {item['name']}: {amounts[n]}" for n, item in enumerate(items))
    return _talk(who["user_id"], {**order, "delivered_at": "2025-05-02T11:42:10-06:00"}, who, done).tell(f"""
U hey, want to send back some stuff. email is {who["email"]}, order nr {order["order_id"]}
C find_user_id_by_email email={who["email"]}
C get_order_details order_id={order["order_id"]}
A Thanks! That order was delivered on May 2, so it can be returned until June 1. It has five items:\n\
\n{listing}\n\nWhich ones would you like to return?
U the boots the headlamp and the backpack. and put it on my credit card please
C get_user_details user_id={who["user_id"]}
A I can return those three, but not to the credit card: a refund goes to the original payment method, which \
was PayPal, or to a gift card you already have, and there is none on your profile. To PayPal it would be \
{usd(back + _cents(keep))} ({amounts[0]} + {amounts[3]} + {amounts[2]}). Shall I go ahead?
U hm ok paypal then. but actually ill keep the backpack, its {rng.choice(["nice", "fine"])}
A Without the {amounts[2]} backpack, the refund is {usd(back)}:\n\n- Hiking Boots, {amounts[0]}\n- Headlamp, \
{amounts[3]}\n\nPlease confirm with a yes and I'll file the return.
U yes
C return_items order_id={order["order_id"]} item_ids:='["{items[0]["item_id"]}", "{items[3]["item_id"]}"]' \
payment_id={paypal}
A Your return is requested. {usd(back)} will go back to your PayPal account.""")


def cancel_one(rng: Random) -> Talk:
    """Several orders looked up at once; one may be cancelled, another no longer; an amount corrected."""
    who, card = _person(rng), "credit_card_3095586"
    tent, lamp = (_item(rng, "Tent", 310, 420, capacity="4 persons"), _item(rng, "LED Lamp", 34, 59,
        color="red"))
    bike = _item(rng, "Bicycle", 470, 620, frame="medium")
    first, second = _order(rng, who, "processed", card, bike), _order(rng, who, "pending", card, tent, lamp)
    third = _order(rng, who, "delivered", card, _item(rng, "Garden Hose", 61, 88, length="50ft"))
    done = {**second, "status": "cancelled", "cancel_reason": "no longer needed"}
    wrong = _cents(tent) // 100 - 30
    return _talk(who["user_id"], who, first, second, third, done).tell(f"""
U Please cancel the order with the tent. And the bike. {who["email"]}
C find_user_id_by_email email={who["email"]}
C get_user_details user_id={who["user_id"]}
C get_order_details order_id={first["order_id"]}
+ get_order_details order_id={second["order_id"]}
+ get_order_details order_id={third["order_id"]}
A Here is what I found:\n\n| Order | Items | Total | Status |\n|---|---|---|---|\n| {first["order_id"]} | \
Bicycle | {usd(_cents(bike))} | processed |\n| {second["order_id"]} | Tent, LED Lamp | \
{usd(_cents(tent, lamp))} | pending |\n\nThe bicycle is already processed and can't be cancelled anymore; \
once it is delivered you have 30 days to return it. The order with the tent can be cancelled, but only as a \
whole. Is it no longer needed, or was it ordered by mistake?
U dont need it any more. so i get ${wrong} back for the tent right
A Not quite: the tent was {usd(_cents(tent))}, and together with the lamp ({usd(_cents(lamp))}) you get back \
{usd(_cents(tent, lamp))}. It goes to your credit card within 5 to 7 business days. Do you confirm the \
cancellation of {second["order_id"]}?
U Confirmed
C cancel_pending_order order_id={second["order_id"]} reason="no longer needed"
A Order {second["order_id"]} is cancelled, and the refund of {usd(_cents(tent, lamp))} is on its way. You \
should see it by {day(business(TODAY, 7))}.""")


def fix_address(rng: Random) -> Talk:
    """Terse. An address given, corrected by the user, told as it is after the write."""
    who, zips = _person(rng), rng.sample(range(10, 99), 2)
    item, (city, state, code) = _item(rng, "Espresso Machine", 240, 330, pressure="15 bar"), CITIES[0]
    order = _order(rng, who, "pending", "paypal_2201", item)
    street, was = f"{rng.randint(1010, 4990)} {STREETS[2]}", who["address"]
    now = {"address1": street, "address2": "", "city": city, "state": state, "zip": f"{code}{zips[1]}"}
    return _talk(order, {**order, "address": now}).tell(f"""
U {order["order_id"]} needs to go to a different adress, we moved
C get_order_details order_id={order["order_id"]}
A It is still pending, so that's possible. Current address: {was["address1"]}, {was["address2"]}, \
{was["city"]}, {was["state"]} {was["zip"]}. What is the new one?
U {street}, Denver CO {code}{zips[0]}
A Change to {street}, Denver, CO {code}{zips[0]}? Yes or no.
U yes.. wait no zip is {code}{zips[1]}, rest is right
A {street}, Denver, CO {code}{zips[1]}. Okay like this?
U yep
C modify_pending_order_address order_id={order["order_id"]} address1="{street}" zip={code}{zips[1]}
A Updated. The {item["name"].lower()} ({usd(_cents(item))}) now ships to {street}, Denver, CO {code}{zips[1]}.
U and shipping is free?
A Yes, orders from $75 ship free.""")


def pause_box(rng: Random) -> Talk:
    """Subscriptions of a customer, a limit of the policy, a date moved by a write, the next charges."""
    mail, days = f"{rng.choice(FIRST).lower()}{rng.randint(10, 99)}@example.net", rng.sample(range(2, 27), 3)
    price, ids = ([rng.choice(x) for x in ([1890, 2450], [999, 1290], [7900, 9900])], rng.sample(range(500,
        990), 4))
    nexts = [date(2025, 6, days[0]), date(2025, 6, days[1]), date(2026, 2, days[2])]
    subs = rows("subscription_id product interval price_cents status next_charge_on card_last4",
        (f"sub_{ids[0]}", "Coffee Box", "month", price[0], "active", str(nexts[0]), "4481"), (f"sub_{ids[1]}",
        "Audiobooks", "month", price[1], "active", str(nexts[1]), "4481"), (f"sub_{ids[2]}", "Meridian Plus",
        "year", price[2], "active", str(nexts[2]), "9035"), (f"sub_{ids[3]}", "Fit Videos", "month", 1200,
        "cancelled", None, None))
    resumed = nexts[0].replace(month=9)
    done = {**subs[0], "status": "paused", "paused_months": 3, "next_charge_on": str(resumed)}
    return _talk({"data": subs, "has_more": False}, done).tell(f"""
U Hii, what subscriptions do i have running? {mail}
C list_subscriptions email={mail}
A Hi there! 😊 You have three active ones:\n\n☕ **Coffee Box** – {usd(price[0])} a month, next on \
{day(nexts[0])}\n🎧 **Audiobooks** – {usd(price[1])} a month, next on {day(nexts[1])}\n⭐ **Meridian Plus** \
– {usd(price[2])} a year, next on {day(nexts[2])}, 2026\n\nFit Videos is already cancelled.
U can you pause the coffee for like 5 months, im abroad
A Oh nice, have fun! ✈️ Five is too long, I'm afraid: a pause can be 1 to 3 months. With three months, the \
charge on {day(nexts[0])} would move to {day(resumed)}. Want me to do that?
U ok 3 then!
C pause_subscription subscription_id=sub_{ids[0]} months:=3
A Done! ☕💤 The Coffee Box is paused and the next {usd(price[0])} will be charged on {day(resumed)}.
U and plus as well?
A That one's an annual plan, and those can't be paused 😕 It has been paid until {day(nexts[2])} next year \
anyway.
U k. whats left then for june
A Just Audiobooks: {usd(price[1])} on June {days[1]}, from the card ending in 4481 👍""")


def double_charge(rng: Random) -> Talk:
    """Charges with an authorisation that was voided; the user's amount corrected; a refund refused."""
    cents, mail = (rng.choice([1499, 1699, 1999]),
        f"{rng.choice(LAST).lower()}.{rng.randint(2, 9)}@example.org")
    year, when = rng.choice([11900, 12900]), rng.randint(6, 12)
    old = date(2025, 4, rng.randint(3, 21))
    charges = rows("id created description amount currency status failure_code",
        (f"ch_{rng.randint(10**5, 10**6)}", f"2025-05-{when:02}T14:03:51Z", "Streaming", cents, "usd",
        "paid", None), (f"ch_{rng.randint(10**5, 10**6)}", f"2025-05-{when:02}T14:02:17Z", "Streaming", cents,
        "usd", "voided", "3ds"), (f"ch_{rng.randint(10**5, 10**6)}", f"{old}T08:00:02Z", "Cloud 2 TB (year)",
        year, "usd", "paid", None), (f"ch_{rng.randint(10**5, 10**6)}", "2025-04-05T14:02:40Z", "Streaming",
        cents, "usd", "paid", None), (f"ch_{rng.randint(10**5, 10**6)}", "2025-03-05T15:02:33Z", "Streaming",
        cents, "usd", "paid", None))
    last = old + timedelta(days=14)
    return _talk({"object": "list", "data": charges}).tell(f"""
U You charged me ${cents // 100}.50 TWICE this month!!! {mail}
C list_charges email={mail}
A I'm sorry for the scare. I looked at your charges: on May {when} there are two entries of {usd(cents)} \
each for Streaming, a minute apart. The first one was **voided** because the 3-D Secure check failed, so \
only the second one ({charges[0]["id"]}) was paid. The voided one should disappear from your statement by \
itself.
U oh ok. my bank app shows both. what else is that {usd(year)} thing
A That's the yearly payment for Cloud 2 TB, made on {day(old)} ({charges[2]["id"]}).
U {rng.choice(["i never use that, want it back", "Don't need that anymore. refund?"])}
A I understand, but I can't refund it: an annual plan is refunded within 14 days of the renewal, and that \
ended on {day(last)}. I could end the plan so that it doesn't renew, if you want.
U no leave it
A All right, nothing was changed. For the record: Streaming {usd(cents)} on May {when}, Cloud 2 TB \
{usd(year)} on {day(old)}.""")


def kopfhoerer(rng: Random) -> Talk:
    """German: decimal commas, a return within its period, a refund that goes to a gift card."""
    who, gift = _person(rng), f"gift_card_{rng.randint(10**6, 9 * 10**6)}"
    item = _item(rng, "Wireless Earbuds", 120, 249, color="white", battery="6 hours")
    cover, came = _item(rng, "Phone Case", 19, 39, color="clear"), date(2025, 5, rng.randint(2, 12))
    order = {**_order(rng, who, "delivered", "paypal_90", item, cover),
        "delivered_at": f"{came}T16:20:00+02:00"}
    who["payment_methods"] = {gift: {"source": "gift_card", "balance": 25}, "paypal_90": {"source": "paypal"}}
    euro, end = f"{comma(item['price'])} $", came + timedelta(days=30)
    done = {**order, "status": "return requested", "return_payment_method_id": gift}
    return _talk(who["user_id"], order, who, done).tell(f"""
U Hallo, die Ohrhörer aus {order["order_id"]} passen mir nicht. Kann ich die noch zurückgeben? {who["email"]}
C find_user_id_by_email email={who["email"]}
C get_order_details order_id={order["order_id"]}
A Ja. Die Bestellung wurde am {came.day}. Mai zugestellt, Sie können sie also bis zum {end.day}. \
{"Juni" if end.month == 6 else "Mai"} zurückgeben. Die Ohrhörer haben {euro} gekostet. Auf welches \
Zahlungsmittel soll die Erstattung gehen?
U auf meine geschenkkarte wenn das geht
C get_user_details user_id={who["user_id"]}
A Das geht. Auf der Karte sind derzeit 25,00 $; mit der Erstattung wären es {comma(25 + item["price"])} $. \
Die Hülle für {comma(cover["price"])} $ behalten Sie. Soll ich die Rückgabe so anlegen?
U Ja bitte
C return_items order_id={order["order_id"]} item_ids:='["{item["item_id"]}"]' payment_id={gift}
A Die Rückgabe der Ohrhörer ({euro}) ist angelegt, die Erstattung geht auf Ihre Geschenkkarte.""")


def abonnement(rng: Random) -> Talk:
    """French: a yearly plan within its 14 days, an amount, a cancellation after a yes."""
    mail, prix, jour = (f"c.{rng.choice(LAST).lower()}@example.fr", rng.choice([4990, 5990, 8950]),
        rng.randint(4, 12))
    fin, cle = date(2025, 5, jour) + timedelta(days=14), f"sub_{rng.randint(100, 499)}"
    subs = rows("subscription_id product interval price_cents currency status renewed_on", (cle,
        "Presse illimitée", "year", prix, "eur", "active", f"2025-05-{jour:02}"),
        (f"sub_{rng.randint(500, 899)}", "Jeux", "month", 799, "eur", "active", "2025-05-01"))
    done = {**subs[0], "status": "cancelled", "refund_cents": prix, "ended_at": "2025-05-15T21:02:44+02:00"}
    return _talk({"data": subs, "has_more": False}, done).tell(f"""
U bonjour je viens de voir un prélevement de {prix // 100} euros et quelques, c'est pour quoi ? mon mail : \
{mail}
C list_subscriptions email={mail}
A Bonjour ! Il s'agit de votre abonnement annuel « Presse illimitée », renouvelé le {jour} mai pour \
{comma(prix / 100)} €. Vous avez aussi « Jeux » à 7,99 € par mois.
U je ne le lis plus du tout, je peux être remboursée ?
A Oui : un abonnement annuel est remboursé intégralement dans les 14 jours, donc jusqu'au {fin.day} mai. \
Vous récupéreriez {comma(prix / 100)} € et l'accès s'arrêterait tout de suite. Je résilie ?
U oui allez-y
C cancel_subscription subscription_id={cle}
A C'est résilié. Le remboursement de {comma(prix / 100)} € est lancé. Il vous reste « Jeux », à 7,99 € par \
mois.""")


TEMPLATES = (exchange, return_two, cancel_one, fix_address, pause_box, double_charge, kopfhoerer, abonnement,
    *MORE)
