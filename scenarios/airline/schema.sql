-- The airline's tables. The rows are in data/*.tsv, and the policy in policy.md.

CREATE TABLE flights (
  flight_number TEXT PRIMARY KEY,
  origin TEXT NOT NULL,
  destination TEXT NOT NULL,
  scheduled_departure_time_est TEXT NOT NULL,
  scheduled_arrival_time_est TEXT NOT NULL
);

CREATE TABLE flight_dates (
  flight_number TEXT NOT NULL REFERENCES flights,
  date TEXT NOT NULL,
  status TEXT NOT NULL,
  basic_economy_seats INTEGER,
  economy_seats INTEGER,
  business_seats INTEGER,
  basic_economy_price INTEGER,
  economy_price INTEGER,
  business_price INTEGER,
  actual_departure_time_est TEXT,
  actual_arrival_time_est TEXT,
  estimated_departure_time_est TEXT,
  estimated_arrival_time_est TEXT,
  -- A column of type JSON reaches the agent as a mapping; a computed JSON text would remain text.
  available_seats JSON AS (
    json_object('basic_economy', basic_economy_seats, 'economy', economy_seats, 'business', business_seats)
  ),
  prices JSON AS (
    json_object('basic_economy', basic_economy_price, 'economy', economy_price, 'business', business_price)
  ),
  PRIMARY KEY (flight_number, date)
);

CREATE TABLE users (
  user_id TEXT PRIMARY KEY,
  name JSON NOT NULL,
  address JSON NOT NULL,
  email TEXT NOT NULL,
  dob TEXT NOT NULL,
  saved_passengers JSON NOT NULL,
  membership TEXT NOT NULL,
  reservations JSON NOT NULL
);

CREATE TABLE payment_methods (
  user_id TEXT NOT NULL REFERENCES users,
  id TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('credit_card', 'gift_card', 'certificate')),
  amount, -- what is left on a gift card or certificate: an integer, or not
  brand TEXT,
  last_four TEXT,
  PRIMARY KEY (user_id, id)
);

CREATE TABLE reservations (
  reservation_id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users,
  origin TEXT NOT NULL,
  destination TEXT NOT NULL,
  flight_type TEXT NOT NULL,
  cabin TEXT NOT NULL,
  flights JSON NOT NULL,
  passengers JSON NOT NULL,
  payment_history JSON NOT NULL,
  created_at TEXT NOT NULL,
  total_baggages INTEGER NOT NULL,
  nonfree_baggages INTEGER NOT NULL,
  insurance TEXT NOT NULL,
  status TEXT, -- NULL, or cancelled
  -- What the agent sees: all of it, and `status` only if there is one.
  details JSON AS (json_patch(
    json_object(
      'reservation_id', reservation_id, 'user_id', user_id, 'origin', origin, 'destination', destination,
      'flight_type', flight_type, 'cabin', cabin, 'flights', json(flights), 'passengers', json(passengers),
      'payment_history', json(payment_history), 'created_at', created_at, 'total_baggages', total_baggages,
      'nonfree_baggages', nonfree_baggages, 'insurance', insurance
    ),
    json_object('status', status)
  ))
);
