"""A clerk of the airline that follows rules and is no language model. It proposes what it will do, and does
it when the user says yes.

Three scenarios find its three faults: it hears only the first wish of a message, it believes what the user
says about the booking, and it does everything again at a second yes."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

Json = dict[str, Any]
Call = tuple[str, Json]

NOW = datetime(2024, 5, 15, 15)
RESERVATION = re.compile(r"\b(?!HAT\d{3})[A-Z0-9]{6}\b")
USER = re.compile(r"\b[a-z]+_[a-z]+_\d{4}\b")
FLIGHT = re.compile(r"\b(HAT\d{3}) on (\d{4}-\d{2}-\d{2})")
FREE_BAGS = {
    "regular": {"basic_economy": 0, "economy": 1, "business": 2},
    "silver": {"basic_economy": 1, "economy": 2, "business": 3},
    "gold": {"basic_economy": 2, "economy": 3, "business": 3},
}


class Clerk:
    """The clerk in one conversation."""

    def __init__(self) -> None:
        self.request = ""
        self.proposal: list[Call] = []
        self.ctx: Any = None

    async def __call__(self, messages: list[Json], ctx: Any) -> str:
        self.ctx = ctx
        text = messages[-1]["content"]
        if text.lower().startswith("yes"):
            return await self.do_as_proposed()
        self.request += f"{text} "
        self.proposal, words = await self.answer()
        return f"{words} Shall I do that?" if self.proposal else words

    async def do_as_proposed(self) -> str:
        results = [str(await self.ctx.call_tool(name, args)) for name, args in self.proposal]
        failed = [result for result in results if result.startswith("Error")]
        return f"That failed. {failed[0]}" if failed else "That is done."

    async def answer(self) -> tuple[list[Call], str]:
        """Return the calls to propose, if any, and what to say."""
        wishes = {
            "cancel": self.cancel,
            "delay": self.compensate,
            "suitcase": self.count_bags,
            "name": self.rename,
            "flights to": self.change_flights,
        }
        for word, answer in wishes.items():
            if word in self.request.lower():
                return await answer()
        return [], "I can change or cancel a reservation."

    async def user(self) -> Json:
        found: Json = await self.ctx.call_tool("get_user_details", {"user_id": self.user_id})
        return found

    @property
    def user_id(self) -> str:
        return USER.findall(self.request)[0]

    async def reservations(self) -> list[Json]:
        """Return the reservations that the request names, or all those of the user."""
        ids = RESERVATION.findall(self.request) or (await self.user())["reservations"]
        return [await self.ctx.call_tool("get_reservation_details", {"reservation_id": each}) for each in ids]

    async def cancel(self) -> tuple[list[Call], str]:
        is_ill = re.search(r"unwell|sick|ill\b", self.request) is not None
        ids = [
            each["reservation_id"]
            for each in await self.reservations()
            if may_be_cancelled(each, is_ill=is_ill)
        ]
        if not ids:
            return [], "I am sorry, but this reservation cannot be cancelled."
        calls = [("cancel_reservation", {"reservation_id": each}) for each in ids]
        return calls, f"I can cancel {', '.join(ids)}. The refund takes 5 to 7 business days."

    async def compensate(self) -> tuple[list[Call], str]:
        reservation = (await self.reservations())[0]
        said = re.search(r"(\d+) passengers", self.request)
        passengers = int(said[1]) if said else len(reservation["passengers"])
        amount = 50 * passengers
        call = ("send_certificate", {"user_id": self.user_id, "amount": amount})
        return [call], f"I am sorry for the delay. I can send you a certificate of ${amount}."

    async def count_bags(self) -> tuple[list[Call], str]:
        (reservation,) = await self.reservations()
        free = FREE_BAGS[(await self.user())["membership"]][reservation["cabin"]]
        return [], f"You can take {free * len(reservation['passengers'])} suitcases for free."

    async def rename(self) -> tuple[list[Call], str]:
        (reservation,) = await self.reservations()
        old, new = re.findall(r"(?:from|to) ([A-Z]\w+ [A-Z]\w+)", self.request)
        passengers = [renamed(each, old, new) for each in reservation["passengers"]]
        args = {"reservation_id": reservation["reservation_id"], "passengers": passengers}
        words = f"In {reservation['reservation_id']}, I can change the name from {old} to {new}."
        return [("update_reservation_passengers", args)], words

    async def change_flights(self) -> tuple[list[Call], str]:
        (reservation,) = await self.reservations()
        flights = [{"flight_number": number, "date": date} for number, date in FLIGHT.findall(self.request)]
        args = {
            "reservation_id": reservation["reservation_id"],
            "cabin": reservation["cabin"],
            "flights": flights,
            "payment_id": re.findall(r"\b(?:gift|credit)_card_\d+", self.request)[0],
        }
        numbers = ", ".join(each["flight_number"] for each in flights)
        return [("update_reservation_flights", args)], f"I can change the flights to {numbers}."


def may_be_cancelled(reservation: Json, *, is_ill: bool) -> bool:
    is_flown = any(flight["date"] <= f"{NOW:%Y-%m-%d}" for flight in reservation["flights"])
    is_new = NOW - datetime.fromisoformat(reservation["created_at"]) <= timedelta(days=1)
    is_insured = reservation["insurance"] == "yes" and is_ill
    return not is_flown and (is_new or is_insured or reservation["cabin"] == "business")


def renamed(passenger: Json, old: str, new: str) -> Json:
    if [passenger["first_name"], passenger["last_name"]] != old.split():
        return passenger
    first_name, last_name = new.split()
    return {**passenger, "first_name": first_name, "last_name": last_name}
