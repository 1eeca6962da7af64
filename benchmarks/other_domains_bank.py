"""Clean conversations with a bank: cards, disputes, transfers, loans, shares, coins, tax forms."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, clock, comma, day, marked, near, nth, rows, usd, yes
from talk import Talk, tool

# fmt: off
POLICY = """You are the assistant of Harborline Bank (New York). Customers are shown times in Eastern Time.
Cards: ATM withdrawals up to $1,000 a day, spending up to $5,000 a day. A replacement is free and takes 5 to 7
business days. Purchases in another currency cost 1.5%. The late fee is $25. Disputes: within 60 days.
Transfers abroad before 4 p.m. ET go out the same day; SEPA fee $6. Trades cost $4.95 per order.
Crypto withdrawals: up to $25,000 a day, irreversible once sent. Loans can be repaid early at no cost.
Ask for a yes before you move money abroad or in coins, block a card, or cancel or withdraw something.
"""
TOOLS = [tool("list_cards", "Cards", customer_id="string"), tool("set_card_limit", "Daily spending limit",
    card_id="string", cents="integer", until="string?"), tool("block_card", "Block and send a new one",
    card_id="string", reason="string"), tool("get_statement", "As CSV", account="string", month="string"),
    tool("get_transaction", "One", transaction_id="string"), tool("list_authorizations", "Latest, in UTC",
    card_id="string"), tool("open_dispute", "Dispute a transaction", transaction_id="string",
    reason="string"), tool("withdraw_dispute", "Withdraw a dispute", dispute_id="string"),
    tool("quote_transfer", "Rate and fee", amount="number", source="string", target="string"),
    tool("create_transfer", "Send by quote", quote_id="string", iban="string", payee="string"),
    tool("get_loan", "A loan", loan_id="string"), tool("payoff_quote", "To pay a loan off", loan_id="string",
    date="string"), tool("list_positions", "Securities", account="string"), tool("place_order", "Buy or sell",
    symbol="string", side="string", quantity="integer", limit="number?"), tool("get_order", "Its state",
    order_id="string"), tool("crypto_balances", "Coins", wallet="string"), tool("withdraw_crypto",
    "Send coins", wallet="string", asset="string", amount="string", address="string"), tool("get_withdrawal",
    "Its state", withdrawal_id="string"), tool("tax_forms", "Tax forms", customer_id="string",
    year="integer"), tool("list_debits", "Direct debits", account="string"), tool("cancel_debit",
    "End a direct debit", mandate="string"), tool("fx_rates", "Exchange rates as XML", base="string"),
    tool("find_branches", "Nearby", zip="string"), tool("book_appointment", "Visit a branch",
    branch_id="string", start="string", topic="string")]
WRITES = "set_card_limit open_dispute create_transfer place_order book_appointment"
MARKS = marked(TOOLS, WRITES, "block_card withdraw_dispute withdraw_crypto cancel_debit")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def _ref(rng: Random, prefix: str, digits: int = 4) -> str:
    return f"{prefix}{rng.randint(10 ** (digits - 1), 10**digits - 1)}"


def card_limits(rng: Random) -> Talk:
    """Masked cards, a limit before and after a write, a refusal with a figure of the policy."""
    who, last, ids = _ref(rng, "C"), rng.sample(range(1000, 9999), 3), rng.sample(range(100, 999), 3)
    today, used, owed = date(2025, 6, rng.randint(2, 27)), rng.randint(1200, 9800), rng.randint(20000, 140000)
    price = rng.randrange(1900, 2300, 50)
    return _talk(today=today).tell(f"""
U what cards do i have and whats the limit on the debit one? customer nr {who}
C list_cards customer_id={who}
R {{"customer_id": "{who}", "cards": [{{"card_id": "crd_{ids[0]}", "kind": "DEBIT", "pan": "**** **** **** \
{last[0]}", "status": "ACTIVE", "expires": "2027-08", "limits": {{"daily_cents": 150000, "used_today_cents": \
{used}, "atm_cents": 50000}}}}, {{"card_id": "crd_{ids[1]}", "kind": "CREDIT", "pan": "**** **** **** \
{last[1]}", "status": "FROZEN", "expires": "2028-01", "credit": {{"balance_cents": {owed}}}}}], "next": null}}
A You have two cards:\n\n| Card | Number | Status | Expires |\n|---|---|---|---|\n| Debit | •••• {last[0]} | \
active | 08/2027 |\n| Credit | •••• {last[1]} | frozen | 01/2028 |\n\nThe **debit card** has a daily limit \
of $1,500.00. You have used {usd(used)} today, so {usd(150000 - used)} is left.
U im buying a sofa for {price}, put it to 2500 just for today pls
C set_card_limit card_id=crd_{ids[0]} cents:=250000 until={today}T23:59:59-04:00
R {{"card_id": "crd_{ids[0]}", "limits": {{"daily_cents": 250000, "used_today_cents": {used}}}, \
"reverts_at": "{today}T23:59:59-04:00", "reverts_to_cents": 150000}}
A Done. The limit of the card ending in {last[0]} is **$2,500.00** until 11:59 p.m. tonight and then goes \
back to $1,500.00. With today's {usd(used)}, you have {usd(250000 - used)} left.
U can the atm limit be 1500 as well?
A I'm sorry, ATM withdrawals are limited to $1,000 a day. Yours is currently set to $500.""")


def statement(rng: Random) -> Talk:
    """A statement as CSV, a wrong amount of the user corrected, three purchases summed."""
    month, balance, food = rng.randint(3, 10), rng.randint(240000, 520000), rng.sample(range(2100, 9400), 3)
    rent, pay, water, shop, rate, acct = (rng.randrange(110000, 165000, 500), rng.randint(310000, 420000),
        rng.randint(3100, 6900), "GREEN VALLEY MKT #214", rng.choice([1599, 1799, 2099]), _ref(rng, "CHK-"))
    moves = [(2, "PINE ST APARTMENTS RENT", -rent), (3, shop, -food[0]), (7, "STREAMLY.COM SUBSCR", -rate)]
    moves += [(11, shop, -food[1]), (14, "PAYROLL LUMEN LTD", pay), (18, "CITY WATER UTIL", -water)]
    moves += [(24, shop, -food[2]), (27, "ATM 0417 MAIN ST", -10000)]
    lines = ["date,description,amount,balance"]
    for when, text, cents in moves:
        balance += cents
        lines.append(f"2025-{month:02}-{when:02},{text},{cents / 100:.2f},{balance / 100:.2f}")
    name = f"{date(2025, month, 1):%B}"
    return _talk("\n".join(lines)).tell(f"""
U quick summary of my {name} statement, acct {acct}
C get_statement account={acct} month=2025-{month:02}
A Here's {name} for {acct}:\n\n- **Salary** (Lumen Ltd, {month}/14): {usd(pay)}\n- **Rent** (Pine St \
Apartments): {usd(rent)}\n- **Groceries** (Green Valley, 3 purchases): {usd(sum(food))}\n- **Water**: \
{usd(water)}\n- **Streamly**: {usd(rate)}\n- **Cash**: $100.00\n\nBalance on {name} 27: **{usd(balance)}**.
U streamly is 13.99 i thought??
A The statement shows {usd(rate)} for Streamly on {name} 7, not $13.99.
U hm they raised it then. and groceries one by one?
A - {name} 3: {usd(food[0])}\n- {name} 11: {usd(food[1])}\n- {name} 24: {usd(food[2])}""")


def parking_dispute(rng: Random) -> Talk:
    """A dispute opened and, after the user remembers, withdrawn; dates of the policy."""
    tx, dis, cents, last, today = _ref(rng, "tx_", 6), _ref(rng, "DSP-", 5), rng.randint(4100,
        9900), rng.randint(1000, 9999), date(2025, 6, rng.choice([10, 11, 17]))
    posted, due = today - timedelta(days=rng.randint(4, 19)), today + timedelta(days=14)
    return _talk(today=today).tell(f"""
U theres a charge i dont recognise, id {tx}
C get_transaction transaction_id={tx}
R {{"id": "{tx}", "card": {{"last4": "{last}"}}, "merchant": {{"name": "PKM*EASYPARK NYC", "mcc": 7523, \
"city": "Brooklyn"}}, "amount": {{"value": {cents}, "currency": "USD"}}, "posted_at": "{posted}T16:20:07Z"}}
A This is a charge of **{usd(cents)}** by PKM*EASYPARK NYC, a parking company in Brooklyn, posted on \
{day(posted)} to the card ending in {last}. Shall I dispute it? You're within the 60 days.
U i dont even have a car. yes
C open_dispute transaction_id={tx} reason="not recognized"
R {{"dispute_id": "{dis}", "state": "OPEN", "credit_cents": {cents}, "credit_due_by": "{due}"}}
A The dispute is open under **{dis}**. You'll get a provisional credit of {usd(cents)} by {day(due)}.
U omg sorry. my husband just told me he rented a car that weekend and used my card. forget it
A No problem! Shall I withdraw {dis}? The charge of {usd(cents)} then stands.
U {yes(rng, "yes, withdraw")}
C withdraw_dispute dispute_id={dis}
R {{"dispute_id": "{dis}", "state": "WITHDRAWN", "provisional_credit": null}}
A {dis} is withdrawn. There will be no provisional credit.""")


def transfer_quotes(rng: Random) -> Talk:
    """A pasted IBAN, a quote that a second one supersedes, a transfer sent after a yes."""
    body = "".join(str(rng.randint(0, 9)) for _ in range(18))
    iban = f"DE{98 - int(body + '131400') % 97:02}{body}"
    shown, rate = " ".join(re.findall("..?.?.?", iban)), rng.randint(9011, 9389)
    q = rng.sample(range(10000, 99999), 2)
    first, second = rng.randrange(400, 700, 10), rng.randrange(800, 1200, 50)
    gets, today, ref = [near(n * rate / 10000, 2) for n in (first, second)], date(2025, 7, rng.choice([8, 15,
        22])), _ref(rng, "TRF", 7)
    return _talk(today=today).tell(f"""
U Need to send {first} dollars to my landlady in Berlin, Ute Sommer, {shown}
C quote_transfer amount:={first} source=USD target=EUR
R {{"quote_id": "q_{q[0]}", "rate": "0.{rate}", "send": "{first}.00", "fee": "6.00", "receive": \
"{gets[0].replace(",", "")}", "expires_at": "{today}T15:10:00Z"}}
A For ${first} Ute Sommer would receive **€{gets[0]}** (rate 0.{rate}). The fee is $6, so ${first + 6} would \
leave your account. Send it to the IBAN ending in {iban[-4:]}?
U wait, no, the rent went up. {second}
C quote_transfer amount:={second} source=USD target=EUR
R {{"quote_id": "q_{q[1]}", "rate": "0.{rate}", "send": "{second}.00", "fee": "6.00", "receive": \
"{gets[1].replace(",", "")}", "expires_at": "{today}T15:14:00Z"}}
A With ${second:,} she gets **€{gets[1]}**, ${second + 6:,}.00 with the fee, until 11:14 a.m. ET. Send it?
U {yes(rng, "send it")}
C create_transfer quote_id=q_{q[1]} iban={iban} payee="Ute Sommer"
R {{"transfer_id": "{ref}", "state": "PROCESSING", "debited": "{second + 6}.00", "credit_on": \
"{today + timedelta(days=1)}"}}
A Sent! Reference **{ref}**, ${second + 6:,}.00 debited. It's there tomorrow, \
{day(today + timedelta(days=1))}.""")


def car_loan(rng: Random) -> Talk:
    """A loan with its instalments, a wrong rate of the user, a payoff on a day."""
    loan, rate, rest = _ref(rng, "LN-", 6), rng.choice([549, 624, 689]), rng.randint(780000, 1240000)
    pay, today, plan, left = rng.randint(31000, 39900), date(2025, rng.randint(3, 9), 6), [], rest
    for n in range(3):
        cost = round(left * rate / 120000)
        left -= pay - cost
        plan.append((f"2025-{today.month + n:02}-15", pay, cost, pay - cost, left))
    told = rows("due_on amount_cents interest_cents principal_cents balance_after_cents", *plan)
    off = rest + round(rest * rate / 3650000 * 20)
    info = {"loan_id": loan, "product": "AUTO_60", "apr_percent": f"{rate / 100:.2f}", "balance_cents": rest}
    info |= {"collateral": "2022 Subaru Forester", "schedule": told}
    quote = {"loan_id": loan, "payoff_on": f"2025-{today.month:02}-26", "payoff_cents": off, "fee_cents": 0}
    return _talk(info, quote, today=today).tell(f"""
U how much do i still owe on the car ({loan})
C get_loan loan_id={loan}
A You still owe **{usd(rest)}** on the 2022 Subaru Forester.
U when's the next payment and how much of it is interest. rate was 7.9 right
A The next {usd(pay)} is due on {today:%B} 15: {usd(plan[0][2])} interest and {usd(plan[0][3])} principal. \
Your rate is {rate / 100:.2f}%, not 7.9%. After that payment the balance will be {usd(plan[0][4])}.
U if i paid all of it off on the 26th instead?
C payoff_quote loan_id={loan} date=2025-{today.month:02}-26
A The payoff amount for {today:%B} 26 is **{usd(off)}**. Repaying early costs nothing extra.""")


def sell_shares(rng: Random) -> Talk:
    """Positions with gains in percent, an order accepted and filled at a better price."""
    acct, order, held = _ref(rng, "BR-", 5), _ref(rng, "O-", 6), rng.sample(range(12, 90), 3)
    names = ["Arvex Robotics (ARVX)", "Blume Foods (BLUM)", "Northlight ETF (NTHL)"]
    cost = [rng.randint(2100, 18900) for _ in names]
    now = [round(c * rng.choice([0.87, 0.94, 1.08, 1.19, 1.31])) for c in cost]
    sold, fill, limit, told, body = rng.randint(4, 10), now[1] + rng.randint(12, 60), now[1] + 10, [], ""
    for n, name in enumerate(names):
        told.append({"symbol": name[-5:-1], "quantity": held[n], "avg_cost": f"{cost[n] / 100:.2f}"})
        told[n] |= {"name": name[:-7], "last": f"{now[n] / 100:.2f}"}
        gain = f"{(now[n] / cost[n] - 1) * 100:+.1f}%"
        body += f"\n| {name} | {held[n]} | {usd(now[n])} | {usd(held[n] * now[n])} | {gain} |"
    made = {"order_id": order, "state": "ACCEPTED", "limit": f"{limit / 100:.2f}", "filled": 0}
    done = {**made, "state": "FILLED", "filled": sold, "avg_price": f"{fill / 100:.2f}"}
    info = {"account": acct, "as_of": "2025-05-20T17:45:00Z", "positions": told, "cash": "412.08"}
    return _talk(info, made, done).tell(f"""
U Show me my portfolio {acct}
C list_positions account={acct}
A Your positions as of 1:45 p.m. ET:\n\n| Position | Shares | Price | Value | Since purchase \
|\n|---|---|---|---|---|{body}\n\nIn cash: $412.08
U sell {sold} blume, limit {limit / 100:.2f}
C place_order symbol=BLUM side=SELL quantity:={sold} limit:={limit / 100:.2f}
A Order **{order}** is in: sell {sold} BLUM at {usd(limit)} or better. It hasn't been filled yet.
U and now?
C get_order order_id={order}
A All {sold} were sold at {usd(fill)}, a little above your limit. That's {usd(sold * fill)}, minus $4.95 for \
the order: **{usd(sold * fill - 495)}**. You keep {held[1] - sold} BLUM shares.""")


def coins_out(rng: Random) -> Talk:
    """Decimal strings of coins, a withdrawal confirmed step by step, a limit of the policy."""
    wallet, wd, btc = _ref(rng, "W-", 5), _ref(rng, "wd_", 6), rng.randint(80_000_000, 99_000_000)
    tail = rng.choice(["a7e4", "k3cd", "f52h", "j6gz"])
    out, fee, price = rng.choice([1_000_000, 2_500_000]), rng.randint(900, 2900), rng.randint(61000, 96000)
    addr, rest = f"bc1qw508d6qejxtdg4y5r3zarvary0c5xw7k{tail}", btc - out - fee
    coins = rows("asset available usd_price", ("BTC", f"{btc / 1e8:.8f}", price), ("ETH", "0.0000", None))
    later = {"withdrawal_id": wd, "confirmations": 2, "required": 3}
    made = {**later, "confirmations": 0, "network_fee": f"{fee / 1e8:.8f}", "left": f"{rest / 1e8:.8f}"}
    return _talk({"wallet": wallet, "balances": coins}, made, later).tell(f"""
U btc balance {wallet}
C crypto_balances wallet={wallet}
A {btc / 1e8:.8f} BTC, about ${near(btc / 1e8 * price)} at ${price:,} per coin.
U send {out / 1e8:g} to {addr}
A That would send {out / 1e8:g} BTC (about ${near(out / 1e8 * price)}) to the address ending in {tail}, plus \
the network fee. It cannot be reversed. Confirm?
U {yes(rng, "confirm", "confirmed")}
C withdraw_crypto wallet={wallet} asset=BTC amount={out / 1e8:g} address={addr}
A Sent, {wd}. Network fee {fee / 1e8:.8f} BTC, remaining {rest / 1e8:.8f} BTC. 0 of 3 confirmations so far.
U status
C get_withdrawal withdrawal_id={wd}
A 2 of 3 confirmations, one to go.
U good. tomorrow i want to move 40k worth
A Not in one day: the limit is $25,000 a day. $40,000 takes two days, for example $25,000 and $15,000.""")


def tax_papers(rng: Random) -> Talk:
    """Forms of a year, one that is not there yet, two amounts of interest added."""
    who, a, b = _ref(rng, "C"), rng.randint(4100, 38900), rng.randint(1100, 9900)
    div, paid, tail = rng.randint(12000, 64000), rng.randint(310000, 790000), rng.sample(range(1000, 9999), 3)
    forms = rows("form account status available_on boxes", ("1099-INT", f"SAV-{tail[0]}", "READY",
        "2026-01-16", {"1_interest_cents": a}), ("1099-INT", f"CHK-{tail[1]}", "READY", "2026-01-16",
        {"1_interest_cents": b}), ("1099-DIV", f"BR-{tail[2]}", "READY", "2026-01-30",
        {"1a_ordinary_cents": div, "4_withheld_cents": 0}), ("1099-B", f"BR-{tail[2]}", "PENDING",
        "2026-02-17", None), ("1098", "MTG-20077", "READY", "2026-01-23",
        {"1_mortgage_interest_cents": paid}))
    return _talk({"customer_id": who, "tax_year": 2025, "forms": forms}, today=date(2026, 2, 3)).tell(f"""
U hi doing my taxes, which forms do you have for 2025? customer {who}
C tax_forms customer_id={who} year:=2025
A Four of your five forms for 2025 are ready:\n\n1. **1099-INT**, savings SAV-{tail[0]}: interest \
{usd(a)}\n2. **1099-INT**, checking CHK-{tail[1]}: interest {usd(b)}\n3. **1099-DIV**, brokerage \
BR-{tail[2]}: ordinary dividends {usd(div)}, nothing withheld\n4. **1098**, mortgage MTG-20077: mortgage \
interest {usd(paid)}\n\nThe **1099-B** for BR-{tail[2]} is still pending; it will be available on February 17.
U so interest is {usd(a)} in total
A Not quite: that's only the savings account. With {usd(b)} from checking it comes to **{usd(a + b)}**.
U ah ok ty. whens the deadline to file again
A For most people it's April 15, so April 15, 2026.""")


def incasso(rng: Random) -> Talk:
    """Dutch: direct debits, one of them ended after a yes."""
    acct, ids, cents = _ref(rng, "CHK-"), rng.sample(range(1000, 9999), 4), rng.sample(range(1290, 9900), 4)
    names, days = ["Vitens Water", "Sportschool Fit4All", "Ziggo", "Interpolis"], rng.sample(range(2, 28), 4)
    told = rows("mandate creditor amount frequency next_on", *((f"M{ids[n]}", names[n],
        f"{cents[n] / 100:.2f}", "MONTHLY", f"2025-11-{days[n]:02}") for n in range(4)))
    euro = [f"€ {comma(c / 100)}" for c in cents]
    gone = {"mandate": f"M{ids[1]}", "status": "ENDED", "ended_on": "2025-10-30"}
    body = "\n".join(f"- {names[n]}: {euro[n]}, volgende keer op {days[n]} november" for n in range(4))
    return _talk({"currency": "EUR", "debits": told}, gone, today=date(2025, 10, 30)).tell(f"""
U welke incasso's lopen er op {acct}?
C list_debits account={acct}
A Er lopen vier maandelijkse incasso's op {acct}:\n\n{body}\n\nSamen € {comma(sum(cents) / 100)} per maand.
U de sportschool heb ik opgezegd, die mag weg
A Het gaat om machtiging M{ids[1]} van Sportschool Fit4All ({euro[1]}). Zal ik die beëindigen?
U {rng.choice(["ja graag", "ja", "doe maar"])}
C cancel_debit mandate=M{ids[1]}
A De machtiging M{ids[1]} is per 30 oktober beëindigd. De drie andere lopen door, samen € \
{comma((sum(cents) - cents[1]) / 100)} per maand.""")


def tarjeta(rng: Random) -> Talk:
    """Spanish: a lost card, its last authorizations, blocked after a yes."""
    who, card, last = _ref(rng, "C"), _ref(rng, "crd_", 3), rng.randint(1000, 9999)
    cents, at, new = rng.sample(range(390, 8900), 3), rng.randint(14, 21), rng.randint(1000, 9999)
    cards = [{"card_id": card, "kind": "CREDIT", "pan": f"**** {last}"}]
    shops = ["CAFE LA PALMA", "METRO NYC", "BODEGA RIVAS"]
    auths, made = rows("at merchant amount currency status", *((f"2025-06-11T{at - n}:{10 + 17 * n}:00Z",
        shops[n], cents[n] / 100, "USD", "APPROVED") for n in range(3))), {"card_id": card,
        "status": "BLOCKED", "replacement": {"pan": f"**** {new}", "ship_to": "214 Ash St"}}
    texts = [f"{comma(c / 100)} $" for c in cents]
    return _talk({"cards": cards}, {"authorizations": auths}, made).tell(f"""
U hola he perdido la tarjeta!! soy {who}
C list_cards customer_id={who}
C list_authorizations card_id={card}
A Lo siento. Tiene una tarjeta de crédito terminada en {last}. Los últimos cargos del 11 de junio son:\n\n- \
{at - 4}:10, Cafe La Palma: {texts[0]}\n- {at - 5}:27, Metro NYC: {texts[1]}\n- {at - 6}:44, Bodega Rivas: \
{texts[2]}\n\n¿Los reconoce? ¿Quiere que bloquee la tarjeta definitivamente?
U sí son míos. bloquéala por favor
C block_card card_id={card} reason=LOST
A La tarjeta terminada en {last} está bloqueada. La nueva, terminada en {new}, llegará a 214 Ash St en 5 a 7 \
días.""")


def zhangdan(rng: Random) -> Talk:
    """Chinese: the cards of a customer, what is owed, a late fee of the policy."""
    who, last, owed = _ref(rng, "C"), rng.randint(1000, 9999), rng.randint(31000, 188000)
    least, due, paid = rng.choice([2500, 3500, 4000]), rng.randint(12, 26), rng.randint(1000, 9999)
    credit = {"line_cents": 500000, "balance_cents": owed, "minimum_cents": least, "due_on": f"2025-08-{due}"}
    cards = [{"card_id": "crd_310", "kind": "CREDIT", "pan": f"**** {last}", "credit": credit}]
    cards += [{"card_id": "crd_311", "kind": "DEBIT", "pan": f"**** {paid}", "credit": None}]
    return _talk({"customer_id": who, "cards": cards}, today=date(2025, 8, 4)).tell(f"""
U 你好，我的信用卡这个月要还多少？客户号{who}
C list_cards customer_id={who}
A 您好！您尾号{last}的信用卡目前应还 **{usd(owed)}**，最低还款额{usd(least)}，到期还款日是8月{due}日。
U 信用额度是不是8000
A 不是，您的信用额度是5,000美元，目前可用额度为{usd(500000 - owed)}。
U 晚几天还有什么影响
A 逾期会收取25美元的滞纳金。请在8月{due}日之前至少还{usd(least)}，距今还有{due - 4}天。""")


def travel_money(rng: Random) -> Talk:
    """Rates as XML; an amount in yen; the cost of paying by card."""
    jpy, eur, gbp = rng.randint(14200, 15900), rng.randint(8500, 9300), rng.randint(7300, 7900)
    krw, when = rng.randint(136000, 146000), date(2025, 8, rng.randint(4, 29))
    have, hotel = rng.choice([300, 400, 600]), rng.randrange(18000, 42000, 500)
    return _talk(today=when).tell(f"""
U going to japan next month, whats the yen at
C fx_rates base=USD
R <rates base="USD" asOf="{when}T14:00:00Z" source="mid-market">\n  <rate currency="EUR">0.{eur}</rate>\n  \
<rate currency="GBP">0.{gbp}</rate>\n  <rate currency="JPY">{jpy / 100:.2f}</rate>\n  <rate \
currency="KRW">{krw / 100:.2f}</rate>\n  <rate currency="ARS" stale="true"/>\n</rates>
A One US dollar is **{jpy / 100:.2f} yen** 🇯🇵 (mid-market, 10 a.m. ET today).
U so {have} bucks would be?
A About **¥{near(have * jpy / 100)}** 💴
U hotel is {hotel} yen, if i pay with my card here?
A ¥{hotel:,} is about ${near(hotel / jpy * 100, 2)} at today's rate. The 1.5% fee for another currency adds \
around ${near(hotel / jpy * 1.5, 2)}, and the rate of that day counts 😉""")


def declined(rng: Random) -> Talk:
    """Chatty. Authorizations in UTC told in Eastern Time, a code explained, a limit raised."""
    last, card, who = rng.randint(1000, 9999), _ref(rng, "crd_", 3), _ref(rng, "C")
    cents, tries = rng.sample(range(1500, 7900), 2), rng.randint(118000, 148000)
    base = datetime(2025, 7, rng.randint(7, 28), rng.randint(17, 21), rng.randint(10, 25))
    at = [base - timedelta(minutes=n) for n in (0, 2, 101, 188)]
    shops = ["NORDIC HOME STORE", "NORDIC HOME STORE", "CORNER PHARMACY", "BEAN & LEAF"]
    sums, codes = [tries, tries, cents[1], cents[0]], ["61 EXCEEDS_LIMIT"] * 2 + [None] * 2
    told = rows("at merchant amount_cents decline_code", *((f"{at[n]:%Y-%m-%dT%H:%M}:{n}9Z", shops[n],
        sums[n], codes[n]) for n in range(4)))
    info = {"card_id": card, "kind": "DEBIT", "pan": f"************{last}", "status": "ACTIVE"}
    info |= {"limits": {"daily_cents": 120000, "used_today_cents": sum(cents)}}
    here = [clock(time - timedelta(hours=4)) for time in at]
    return _talk({"cards": [info]}, {"authorizations": told}).tell(f"""
U my card just got declined twice at nordic home, embarassing!! {who}
C list_cards customer_id={who}
C list_authorizations card_id={card}
A Oh no, sorry about that! 😬 The card ending in {last} was declined at {here[1]} and {here[0]} because \
{usd(tries)} would have exceeded your **daily limit of $1,200.00**. Approved today:\n\n☕ {here[3]}, Bean & \
Leaf: {usd(cents[0])}\n💊 {here[2]}, Corner Pharmacy: {usd(cents[1])}\n\nI can raise it, up to $5,000.
U 2000
C set_card_limit card_id={card} cents:=200000
R {{"card_id": "{card}", "limits": {{"daily_cents": 200000}}, "effective": "immediately"}}
A Done, it's **$2,000.00** from now on 👍 After today's {usd(sum(cents))} you have \
{usd(200000 - sum(cents))} left, so {usd(tries)} will go through.""")


def branch_visit(rng: Random) -> Talk:
    """Branches with addresses and hours, a visit booked, a distance in miles."""
    when, nums, km = date(2025, 9, rng.choice([11, 18, 25])), rng.sample(range(100, 990),
        3), sorted(rng.sample(range(6, 58), 3))
    streets, refs = ["Court St", "Atlantic Ave", "7th Ave"], rng.sample(range(1000, 9999), 3)
    told = rows("branch_id address distance_km open close saturday notary", (f"B{refs[0]}",
        f"{nums[0]} {streets[0]}", km[0] / 10, "09:00", "16:00", None, False), (f"B{refs[1]}",
        f"{nums[1]} {streets[1]}", km[1] / 10, "09:00", "18:00", "10:00-13:00", True), (f"B{refs[2]}",
        f"{nums[2]} {streets[2]}", km[2] / 10, "10:00", "17:00", "10:00-14:00", False))
    made = {"confirmation": _ref(rng, "AP-"), "branch_id": f"B{refs[1]}", "start": f"{when}T16:30:00-04:00"}
    made |= {"banker": "Joyce Tan", "minutes": 45}
    return _talk({"zip": "11201", "branches": told}, made, today=when - timedelta(days=2)).tell(f"""
U which branches near 11201 have a notary, and are they open saturday
C find_branches zip=11201
A One of the three branches nearby has a notary: **{nums[1]} {streets[1]}**, open from 9 a.m. to 6 p.m. and \
on Saturdays from 10 a.m. to 1 p.m. It's {near(km[1] / 16.09, 1)} miles away.
U {nums[2]} 7th closes at 4?
A No, {nums[2]} 7th Ave is open from 10 a.m. to 5 p.m. and has no notary. {nums[0]} Court St closes at 4.
U ok atlantic then. thursday 4:30pm, need a power of attorney notarized
C book_appointment branch_id=B{refs[1]} start={when}T16:30:00-04:00 topic="notarize a power of attorney"
A You're booked with Joyce Tan at {nums[1]} {streets[1]} on Thursday the {nth(when.day)}, 4:30 to 5:15 p.m. \
Your confirmation is {made["confirmation"]}. Please bring a photo ID.""")


TEMPLATES = (*(card_limits, statement, parking_dispute, transfer_quotes, car_loan, sell_shares, coins_out,
    tax_papers), *(incasso, tarjeta, zhangdan, travel_money, declined, branch_visit))
