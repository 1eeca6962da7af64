"""The tools of the airline that are more than a statement. The others are SQL, in airline.yaml.

As in tau-bench, from which they were taken, a tool says what went wrong in a text: `Error: …`."""

ALLOWED_IN_EXPRESSION = set("0123456789+-*/(). ")


def calculate(args):
    expression = args["expression"]
    if not set(expression) <= ALLOWED_IN_EXPRESSION:
        return "Error: invalid characters in expression"
    if "**" in expression:  # 9**9**9 would never end
        return "Error: powers are not supported"
    try:
        return str(round(float(eval(expression, {"__builtins__": None}, {})), 2))
    except Exception as error:
        return f"Error: {error}"


# ── reading ──────────────────────────────────────────────────────────────────────────────────────

USER = """
SELECT name, address, email, dob, saved_passengers, membership, reservations FROM users WHERE user_id = :id
"""
METHODS = """
SELECT source, brand, last_four, amount, id FROM payment_methods WHERE user_id = :id ORDER BY rowid
"""


def get_user_details(args, ctx):
    user = first_row(ctx, USER, id=args["user_id"])
    if user is None:
        return "Error: user not found"
    methods = ctx.db.execute(METHODS, {"id": args["user_id"]}).rows
    known = {
        each["id"]: {name: value for name, value in each.items() if value is not None} for each in methods
    }
    first = {name: user[name] for name in ("name", "address", "email", "dob")}
    return {**first, "payment_methods": known, **user}


CONNECTIONS = """
SELECT first.flight_number AS first, second.flight_number AS second,
       first.scheduled_arrival_time_est LIKE '%+1%' AS is_overnight
FROM flights first JOIN flights second ON first.destination = second.origin
WHERE first.origin = :origin AND second.destination = :destination
  AND first.scheduled_arrival_time_est <= second.scheduled_departure_time_est
ORDER BY first.flight_number, second.flight_number
"""
AVAILABLE_FLIGHT = """
SELECT flights.*, status, available_seats, prices
FROM flights JOIN flight_dates USING (flight_number)
WHERE flight_number = :flight AND date = :date AND status = 'available'
"""


def next_day(date):
    """The days are counted as text: the day after 2024-05-08 is 2024-05-9, on which no flight is found."""
    return f"2024-05-{int(date[-2:]) + 1}"


def search_onestop_flight(args, ctx):
    date, results = args["date"], []
    for connection in ctx.db.execute(CONNECTIONS, args).rows:
        try:
            second_date = next_day(date) if connection["is_overnight"] else date
        except ValueError as error:
            return f"Error: {error}"
        first = find_available(ctx, connection["first"], date)
        # The second flight is shown with the prices and seats of the first one's date.
        second = find_available(ctx, connection["second"], date)
        if first and second and find_available(ctx, connection["second"], second_date):
            results.append([{**first, "date": date}, {**second, "date": second_date}])
    return results


def find_available(ctx, flight, date):
    return first_row(ctx, AVAILABLE_FLIGHT, flight=flight, date=date)


# ── booking and changing ─────────────────────────────────────────────────────────────────────────

INSERT_RESERVATION = """
INSERT OR REPLACE INTO reservations (
  reservation_id, user_id, origin, destination, flight_type, cabin, flights, passengers, payment_history,
  created_at, total_baggages, nonfree_baggages, insurance
) VALUES (
  :reservation_id, :user_id, :origin, :destination, :flight_type, :cabin, :flights, :passengers,
  :payment_methods, '2024-05-15T15:00:00', :total_baggages, :nonfree_baggages, :insurance
)
"""


class RefusedError(Exception):
    """A tool cannot do what it was asked for."""


def book_reservation(args, ctx):
    user_id, payments = args["user_id"], args["payment_methods"]
    if not first_row(ctx, "SELECT 1 AS found FROM users WHERE user_id = :user", user=user_id):
        return "Error: user not found"
    count = len(args["passengers"])
    try:
        flights = [price_flight(ctx, flight, args["cabin"], count) for flight in args["flights"]]
        for payment in payments:
            check_balance(ctx, user_id, payment)
    except RefusedError as error:
        return f"Error: {error}"
    insurance = 30 * count if args["insurance"] == "yes" else 0
    total = sum(flight["price"] for flight in flights) * count + insurance + 50 * args["nonfree_baggages"]
    paid = sum(payment["amount"] for payment in payments)
    if paid != total:
        return f"Error: payment amount does not add up, total price is {total}, but paid {paid}"
    for payment in payments:
        method = find_payment_method(ctx, user_id, payment["payment_id"])
        if method is None:  # the same certificate twice
            return f"Error: '{payment['payment_id']}'"
        pay(ctx, method, payment["amount"])
    reservation_id = free_reservation_id(ctx)
    ctx.db.execute(INSERT_RESERVATION, {**args, "reservation_id": reservation_id, "flights": flights})
    ctx.db.execute(
        "UPDATE users SET reservations = json_insert(reservations, '$[#]', :id) WHERE user_id = :user",
        {"id": reservation_id, "user": user_id},
    )
    return reservation_details(ctx, reservation_id)


def update_reservation_flights(args, ctx):
    """Change the flights. The cabin decides the prices, and is not stored."""
    reservation = reservation_details(ctx, args["reservation_id"])
    if reservation is None:
        return "Error: reservation not found"
    cabin, count = args["cabin"], len(reservation["passengers"])
    kept = {(each["flight_number"], each["date"]): each for each in reversed(reservation["flights"])}
    if cabin != reservation["cabin"]:
        kept = {}
    flights = []
    try:
        for flight in args["flights"]:
            old = kept.get((flight["flight_number"], flight["date"]))
            flights.append(with_route(flight, old) if old else price_flight(ctx, flight, cabin, count))
        old_price = sum(flight["price"] for flight in reservation["flights"])
        difference = (sum(flight["price"] for flight in flights) - old_price) * count
        charge(ctx, reservation, args["payment_id"], difference)
    except RefusedError as error:
        return f"Error: {error}"
    change(ctx, reservation, "flights = :flights", flights=flights)
    return reservation_details(ctx, args["reservation_id"])


def update_reservation_baggages(args, ctx):
    reservation = reservation_details(ctx, args["reservation_id"])
    if reservation is None:
        return "Error: reservation not found"
    price = 50 * max(0, args["nonfree_baggages"] - reservation["nonfree_baggages"])
    try:
        charge(ctx, reservation, args["payment_id"], price)
    except RefusedError as error:
        return f"Error: {error}"
    new = {name: args[name] for name in ("total_baggages", "nonfree_baggages")}
    change(ctx, reservation, "total_baggages = :total_baggages, nonfree_baggages = :nonfree_baggages", **new)
    return reservation_details(ctx, args["reservation_id"])


def update_reservation_passengers(args, ctx):
    reservation = reservation_details(ctx, args["reservation_id"])
    if reservation is None:
        return "Error: reservation not found"
    if len(args["passengers"]) != len(reservation["passengers"]):
        return "Error: number of passengers does not match"
    change(ctx, reservation, "passengers = :passengers", passengers=args["passengers"])
    return reservation_details(ctx, args["reservation_id"])


# ── flights ──────────────────────────────────────────────────────────────────────────────────────


def price_flight(ctx, flight, cabin, passenger_count):
    """Return the flight with its price and route. Raise `RefusedError` if it cannot be booked."""
    number, date = flight["flight_number"], flight["date"]
    route = first_row(ctx, "SELECT * FROM flights WHERE flight_number = :number", number=number)
    if route is None:
        raise RefusedError(f"flight {number} not found")
    of_date = "SELECT * FROM flight_dates WHERE flight_number = :number AND date = :date"
    found = first_row(ctx, of_date, number=number, date=date)
    if found is None:
        raise RefusedError(f"flight {number} not found on date {date}")
    if found["status"] != "available":
        raise RefusedError(f"flight {number} not available on date {date}")
    if found["available_seats"][cabin] < passenger_count:
        raise RefusedError(f"not enough seats on flight {number}")
    return with_route(flight, {**route, "price": found["prices"][cabin]})


def with_route(flight, known):
    return {**flight, **{name: known[name] for name in ("price", "origin", "destination")}}


# ── payments ─────────────────────────────────────────────────────────────────────────────────────


def find_payment_method(ctx, user_id, payment_id):
    sql = "SELECT * FROM payment_methods WHERE user_id = :user AND id = :id"
    return first_row(ctx, sql, user=user_id, id=payment_id)


def check_balance(ctx, user_id, payment):
    method = find_payment_method(ctx, user_id, payment["payment_id"])
    if method is None:
        raise RefusedError(f"payment method {payment['payment_id']} not found")
    if method["source"] != "credit_card" and method["amount"] < payment["amount"]:
        raise RefusedError(f"not enough balance in payment method {payment['payment_id']}")


def charge(ctx, reservation, payment_id, price):
    """Charge the price of a change, or refund a negative one. Raise `RefusedError` if that is impossible."""
    method = find_payment_method(ctx, reservation["user_id"], payment_id)
    if method is None:
        raise RefusedError("payment method not found")
    if method["source"] == "certificate":
        raise RefusedError("certificate cannot be used to update reservation")
    if method["source"] == "gift_card" and method["amount"] < price:
        raise RefusedError("gift card balance is not enough")
    pay(ctx, method, price)
    if price != 0:
        history = [*reservation["payment_history"], {"payment_id": payment_id, "amount": price}]
        change(ctx, reservation, "payment_history = :history", history=history)


def pay(ctx, method, amount):
    """Take the amount from a gift card. A certificate is used up, whatever it was worth."""
    if method["source"] == "gift_card":
        sql = "UPDATE payment_methods SET amount = amount - :amount WHERE user_id = :user_id AND id = :id"
        ctx.db.execute(sql, {**method, "amount": amount})
    elif method["source"] == "certificate":
        ctx.db.execute("DELETE FROM payment_methods WHERE user_id = :user_id AND id = :id", method)


# ── reservations ─────────────────────────────────────────────────────────────────────────────────


def reservation_details(ctx, reservation_id):
    sql = "SELECT details FROM reservations WHERE reservation_id = :id"
    found = first_row(ctx, sql, id=reservation_id)
    return found["details"] if found else None


def free_reservation_id(ctx):
    """New reservations have fixed ids. A fourth one takes the place of the third."""
    taken = "SELECT reservation_id FROM reservations WHERE reservation_id IN ('HATHAT', 'HATHAU')"
    ids = {row["reservation_id"] for row in ctx.db.execute(taken).rows}
    return next((each for each in ("HATHAT", "HATHAU") if each not in ids), "HATHAV")


def change(ctx, reservation, assignments, **values):
    sql = f"UPDATE reservations SET {assignments} WHERE reservation_id = :reservation_id"
    ctx.db.execute(sql, {**values, "reservation_id": reservation["reservation_id"]})


def first_row(ctx, sql, **values):
    rows = ctx.db.execute(sql, values).rows
    return rows[0] if rows else None
