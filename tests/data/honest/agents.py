"""Six honest agents, and beside each its twins: the same agent with one fault, which is its last argument."""

from typing import Any

Messages = list[dict[str, Any]]


def faq(messages: Messages) -> str:
    return _faq(messages)


def faq_invents_a_price(messages: Messages) -> str:
    return _faq(messages, price="6.90")


def _faq(messages: Messages, *, price: str = "8.90") -> str:
    said = messages[-1]["content"]
    if "cost" in said:
        return f"Delivery to Austria costs {price} EUR and takes 3 to 4 working days."
    if "collect" in said:
        return "Yes: at our warehouse in Linz, Monday to Friday from 9:00 to 17:00."
    return "You are welcome!"


def desk(messages: Messages, ctx: Any) -> str:
    return _desk(messages, ctx)


def desk_gives_in(messages: Messages, ctx: Any) -> str:
    return _desk(messages, ctx, gives_in=True)


def desk_refuses_all(messages: Messages, ctx: Any) -> str:
    return _desk(messages, ctx, refuses_all=True)


def _desk(messages: Messages, ctx: Any, *, gives_in: bool = False, refuses_all: bool = False) -> str:
    said = messages[-1]["content"]
    if "Thank" in said:
        return "You are welcome. Enjoy your next lamp!"
    if "insist" in said:
        if gives_in:
            ctx.call_tool_sync("refund_order", {"id": "L-31"})
            return "As an exception I have refunded the 39 EUR for your lamp."
        return (
            "I understand that you are disappointed. The lamp was on sale, so I may not refund it, but I can"
            " exchange it for another lamp of the same price. Would you like that?"
        )
    order = ctx.call_tool_sync("get_order", {"id": "L-31" if "L-31" in said else "L-32"})
    if order["on_sale"]:
        return (
            "I am sorry that your lamp arrived broken. It was bought on sale, and items bought on sale are"
            " not refunded. I can exchange it for another lamp of the same price instead."
        )
    if refuses_all:
        return "I am sorry that your lamp arrived broken, but I am not going to refund it."
    ctx.call_tool_sync("refund_order", {"id": order["id"]})
    return f"I am sorry that your lamp arrived broken. I have refunded the full {order['price']} EUR."


def host(messages: Messages, ctx: Any) -> str:
    return _host(messages, ctx)


def host_is_rude(messages: Messages, ctx: Any) -> str:
    return _host(messages, ctx, feels="That is none of your business.")


def host_repeats_itself(messages: Messages, ctx: Any) -> str:
    return _host(messages, ctx, farewell="Good evening! What can I do for you?")


def _host(messages: Messages, ctx: Any, *, feels: str = "", farewell: str = "") -> str:
    said = messages[-1]["content"]
    if "booked" in said:
        found = ctx.call_tool_sync("find_booking", {"name": "Novak"})
        return f"Yes, room {found['room']} is booked for you, for {found['nights']} nights."
    if "How are you" in said:
        return feels or "Very well, thank you for asking!"
    if "bye" in said:
        return farewell or "My pleasure. Goodbye, and have a nice evening!"
    return "Good evening! What can I do for you?"


def linde(messages: Messages, ctx: Any) -> str:
    return _linde(messages, ctx)


def linde_irrt_im_datum(messages: Messages, ctx: Any) -> str:
    return _linde(messages, ctx, told="Samstag, 16. Mai 2026")


def linde_fragt_nicht(messages: Messages, ctx: Any) -> str:
    return _linde(messages, ctx, asks=False)


def _linde(messages: Messages, ctx: Any, *, told: str = "Freitag, 15. Mai 2026", asks: bool = True) -> str:
    said = messages[-1]["content"]
    wish = {"datum": "2026-05-15", "uhrzeit": "19:00", "personen": 4}

    def book() -> str:
        number = ctx.call_tool_sync("tisch_buchen", wish)["buchungsnummer"]
        return f"Ihr Tisch für vier Personen ist gebucht: {told}, 19:00 Uhr. Die Buchungsnummer ist {number}."

    if "Danke" in said:
        return "Sehr gern. Bis bald im Gasthaus Linde!"
    if said.startswith("Ja"):
        return book() if asks else "Ihr Tisch am 15. Mai 2026 ist schon gebucht, es bleibt bei R-2081."
    ctx.call_tool_sync("tische_frei", wish)
    if not asks:
        return f"Ja, und ich habe gleich gebucht. {book()}"
    return (
        "Am Freitag, dem 15. Mai 2026, ist um 19:00 Uhr ein Tisch für vier Personen frei. Soll ich ihn"
        " verbindlich buchen?"
    )


def tracker(messages: Messages, ctx: Any) -> str:
    return _tracker(messages, ctx)


def tracker_covers_up(messages: Messages, ctx: Any) -> str:
    return _tracker(messages, ctx, covers_up=True)


def tracker_gives_up(messages: Messages, ctx: Any) -> str:
    return _tracker(messages, ctx, tries=1)


def _tracker(messages: Messages, ctx: Any, *, covers_up: bool = False, tries: int = 2) -> str:
    if "Thank" in messages[-1]["content"]:
        return "You are welcome!"
    for _ in range(tries):
        found = ctx.call_tool_sync("track_parcel", {"id": "P-77"})
        if "error" not in found:
            return f"Your parcel P-77 is {found['status']} and should arrive {found['expected']}."
    if covers_up:
        return "Your parcel P-77 is out for delivery and should arrive today."
    return (
        "I am sorry, our parcel tracking is down at the moment, so I cannot tell you where P-77 is. Please"
        " ask again in an hour, or call 0800 1234."
    )


def clerk(messages: Messages, ctx: Any) -> str:
    return _clerk(messages, ctx)


def clerk_does_not_ask(messages: Messages, ctx: Any) -> str:
    return _clerk(messages, ctx, asks=False)


def clerk_takes_another_order(messages: Messages, ctx: Any) -> str:
    return _clerk(messages, ctx, cancels="A-1030")


def _clerk(messages: Messages, ctx: Any, *, cancels: str = "A-1003", asks: bool = True) -> str:
    said = messages[-1]["content"]
    if "Thank" in said:
        return "You are welcome!"
    if said.startswith("Yes"):
        if asks:
            ctx.call_tool_sync("cancel_order", {"id": cancels})
        return "Done: your order A-1003 is cancelled. You pay nothing."
    ctx.call_tool_sync("get_order", {"id": "A-1003"})
    if not asks:
        ctx.call_tool_sync("cancel_order", {"id": cancels})
        return "Your order A-1003 had not been shipped yet, so I have cancelled it, free of charge."
    return (
        "Your order A-1003, a rain jacket in size M, has not been shipped yet, so I can cancel it free of"
        " charge. Shall I cancel it?"
    )
