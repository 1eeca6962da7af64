"""Clean conversations of a bank: balances, transfers, cards, rates."""

from __future__ import annotations

from random import Random

from talk import Talk, tool

POLICY = (
    "You help customers of Harbour Bank. Never show a whole card or account number: only the"
    " last four digits.\n"
    "A transfer needs the customer's explicit yes. Transfers above $10,000 are not possible in chat.\n"
    "The fee for a transfer abroad is 0.5%, at least $5. Cards are replaced within 5 to 7 working days.\n"
)
TOOLS = [
    tool("get_accounts", "Accounts with balances", customer_id="string"),
    tool("get_transactions", "Transactions of an account", account="string", month="string?"),
    tool("transfer_money", "Move money", source="string", target="string", amount="number"),
    tool("block_card", "Block a card for good", card="string"),
    tool("get_card", "A card", card="string"),
    tool("exchange_rate", "Today's rate", base="string", quote="string"),
    tool("loan_offer", "An offer for a loan", amount="number", months="integer"),
    tool("set_limit", "A card's daily limit", card="string", limit="number"),
]
MARKS = {
    "get_accounts": "reads",
    "get_transactions": "reads",
    "transfer_money": "destructive",
    "block_card": "destructive",
    "get_card": "reads",
    "exchange_rate": "reads",
    "loan_offer": "reads",
    "set_limit": "writes",
}


def _talk() -> Talk:
    return Talk(TOOLS, MARKS, POLICY)


def balances(rng: Random) -> Talk:
    """Thousands separators, a sum, a difference, masked numbers, rounding in words."""
    checking, savings = rng.randint(120_000, 480_000) / 100, rng.randint(1_200_000, 2_900_000) / 100
    last = f"{rng.randint(1000, 9999)}"
    accounts = [
        {"iban": f"GB29NWBK6016133192{last}", "type": "checking", "balance": checking},
        {"iban": "GB29NWBK60161331927734", "type": "savings", "balance": savings},
    ]
    return (
        _talk()
        .user("how much money do I have? customer C-20881")
        .call("get_accounts", {"accounts": accounts}, customer_id="C-20881")
        .agent(
            f"You have two accounts with us:\n\n| account | balance |\n|---|---|\n"
            f"| Checking (…{last}) | ${checking:,.2f} |\n| Savings (…7734) | ${savings:,.2f} |\n\n"
            f"Together that's ${checking + savings:,.2f}, more than ${int((checking + savings) // 1000)}k."
        )
        .user("how much more is on savings")
        .agent(f"${savings - checking:,.2f} more than on checking.")
    )


def spending(rng: Random) -> Talk:
    """Sums by category, a share in percent, the largest, a month in words."""
    food, rent, fun = rng.choice([412.5, 388.0]), 1200.0, rng.choice([150.5, 99.5])
    total = food + rent + fun
    rows = [
        {"date": "2025-04-01", "to": "Rent", "category": "housing", "amount": -rent},
        {"date": "2025-04-09", "to": "Market", "category": "groceries", "amount": -food},
        {"date": "2025-04-21", "to": "Cinema club", "category": "leisure", "amount": -fun},
    ]
    return (
        _talk()
        .user("What did I spend in April on account 7734?")
        .call("get_transactions", {"transactions": rows}, account="7734", month="2025-04")
        .agent(
            f"In April you spent ${total:,.2f} in three transactions. Most of it,"
            f" {rent / total:.0%}, was rent"
            f" ($1,200 on the 1st); groceries were ${food:.2f} and leisure ${fun:.2f}."
        )
        .user("and per day, roughly?")
        .agent(f"Over 30 days that's about ${total / 30:.0f} a day.")
        .user("When was the cinema thing?")
        .agent("On Monday, 21 April.")
    )


def transfer(rng: Random) -> Talk:
    """A destructive call after a yes; the balance after it."""
    amount, balance = rng.choice([250.0, 480.0, 1250.0]), rng.choice([3100.4, 5020.75])
    reference = f"TX{rng.randint(100000, 999999)}"
    return (
        _talk()
        .user(f"send {amount:g} dollars from checking to savings")
        .agent(f"I'll move ${amount:,.2f} from your checking to your savings account. Is that right?")
        .user(rng.choice(["Yes, please.", "correct", "Right, go ahead"]))
        .call(
            "transfer_money",
            {"status": "done", "reference": reference, "balance_after": balance - amount},
            source="checking",
            target="savings",
            amount=amount,
        )
        .agent(
            f"Done: ${amount:,.2f} has been transferred (reference {reference}). Your checking balance is now"
            f" ${balance - amount:,.2f}."
        )
        .user("what was it before")
        .agent(f"Before the transfer it was ${balance:,.2f}.")
    )


def transfer_declined(rng: Random) -> Talk:
    """The user does not say yes, and nothing is done; then the limit of the policy."""
    amount = rng.choice([700, 900])
    return (
        _talk()
        .user(f"I want to send ${amount} to my landlord, account ending 5521")
        .agent(f"Shall I send ${amount} to the account ending in 5521 now?")
        .user("hm, wait. is there a fee?")
        .agent("Not within the country. Abroad it would be 0.5%, at least $5. Should I go ahead?")
        .user("no, leave it, I'll pay cash")
        .agent("All right, I haven't sent anything.")
        .user("could I send 15 thousand with you another time?")
        .agent("In this chat transfers are possible up to $10,000, so that one would not be.")
    )


def fee_abroad(rng: Random) -> Talk:
    """A share and a minimum from the policy; an exchange rate, rounded; two steps of arithmetic."""
    amount, rate = rng.choice([2000, 3000, 4000]), rng.choice([0.9213, 0.9187, 0.9342])
    return (
        _talk()
        .user(f"I'd like to send ${amount} to Germany. What arrives in euros?")
        .call("exchange_rate", {"base": "USD", "quote": "EUR", "rate": rate}, base="USD", quote="EUR")
        .agent(
            f"The rate is {rate:.4f} today, so ${amount:,} are €{amount * rate:,.2f}. The fee of 0.5%,"
            f" ${amount * 0.005:.2f}, comes on top."
        )
        .user("and if I send only $500?")
        .agent(
            f"Then it's about €{500 * rate:.0f}, and the minimum fee of $5 holds, since 0.5%"
            " would be only $2.50."
        )
    )


def lost_card(rng: Random) -> Talk:
    """A card is blocked after a yes; only its last digits are told; days from the policy."""
    last = f"{rng.randint(1000, 9999)}"
    card = {"card": f"**** **** **** {last}", "brand": "Visa", "status": "active", "limit_per_day": 800}
    return (
        _talk()
        .user(f"I lost my card, the one ending in {last}")
        .call("get_card", card, card=last)
        .agent(
            f"I'm sorry to hear that. I see your Visa card •••• {last}, which is still active."
            " Blocking it cannot be"
            " undone. Do you want me to block it?"
        )
        .user("yes, immediately!")
        .call("block_card", {"card": f"****{last}", "status": "blocked", "replacement": "ordered"}, card=last)
        .agent(
            f"Your card ending in {last} has been blocked and a replacement ordered. It will be"
            " with you within 5–7"
            " working days, so in about a week."
        )
        .user("is the old one really blocked?")
        .call("get_card", {**card, "status": "blocked"}, card=last)
        .agent(f"Yes, I've just checked: the card ending in {last} is blocked.")
    )


def loan(rng: Random) -> Talk:
    """Years for months, the total of the instalments, the interest in all, a rate."""
    amount, months = rng.choice([6000, 9000, 12000]), rng.choice([24, 36, 48])
    monthly = round(amount * 1.09 / months, 2)
    total = monthly * months
    offer = {"amount": amount, "months": months, "monthly": monthly, "apr": 5.49}
    return (
        _talk()
        .user(f"What would a loan of {amount} cost over {months // 12} years?")
        .call("loan_offer", offer, amount=amount, months=months)
        .agent(
            f"For ${amount:,} over {months} months at 5.49% a year you'd pay ${monthly:,.2f} a"
            " month. In total that is"
            f" ${total:,.2f}, so the loan costs you ${total - amount:,.2f}."
        )
        .user("So about 5.5 percent. ok, thanks, I'll think about it")
        .agent("Yes, about 5.5%. Take your time.")
    )


def limits(rng: Random) -> Talk:
    """A limit is doubled; the tool fails and the agent says so, then it works."""
    last, old = f"{rng.randint(1000, 9999)}", rng.choice([400, 600, 750])
    return (
        _talk()
        .user(f"double the daily limit on card {last}")
        .call("get_card", {"card": f"****{last}", "limit_per_day": old}, card=last)
        .call("set_limit", "Error: service unavailable", card=last, limit=2 * old)
        .agent(
            f"Your limit is ${old} now. I tried to raise it to ${2 * old:,}, but the service"
            " isn't available. Shall I"
            " try once more?"
        )
        .user("yes")
        .call("set_limit", {"limit_per_day": 2 * old}, card=last, limit=2 * old)
        .agent(
            f"Now it worked: the daily limit of your card ending in {last} is ${2 * old:,},"
            " twice the old one."
        )
    )


TEMPLATES = (balances, spending, transfer, transfer_declined, fee_abroad, lost_card, loan, limits)
