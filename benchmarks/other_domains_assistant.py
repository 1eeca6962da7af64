"""Clean conversations of a phone's assistant: timers, music, people, notes, ways, weather, lamps, words."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, clock, comma, day, marked, rows
from talk import Talk, tool

# fmt: off
POLICY = ("You are Pip, the assistant on the user's phone. Keep answers short; they may be read aloud. "
    "Answer in the user's language. Ask for a yes before you delete something.\n")
TOOLS = [tool("set_timer", "Start a timer", seconds="integer", label="string?"), tool("list_timers",
    "Running timers"), tool("cancel_timer", "Stop a timer", timer_id="string"), tool("set_alarm", "New alarm",
    time="string", days="array?"), tool("list_alarms", "Alarms"), tool("delete_alarm", "Delete an alarm",
    alarm_id="string"), tool("add_reminder", "New reminder", text="string", at="string"),
    tool("list_reminders", "Open reminders"), tool("delete_reminder", "Delete a reminder",
    reminder_id="string"), tool("calendar", "Events of a day", date="string"), tool("find_contact",
    "Contacts by name", who="string"), tool("send_text", "Send a text message", number="string",
    text="string"), tool("search_music", "Songs, albums and playlists", query="string"), tool("play",
    "Play a song, an album or a playlist", uri="string"), tool("get_note", "A note by its title",
    title="string"), tool("append_note", "Add lines to a note", note_id="string", lines="array"),
    tool("route", "Routes to a place", to="string", mode="string?"), tool("weather", "Forecast",
    place="string", days="integer?", hourly="boolean?"), tool("list_devices", "Devices at home",
    room="string?"), tool("set_device", "Change a device", device_id="string", value="string"),
    tool("translate", "Translate a text", text="string", to="string"), tool("steps",
    "Steps and heart rate by day", start="string", end="string")]
WRITES = "set_timer cancel_timer set_alarm add_reminder send_text play append_note set_device"
MARKS = marked(TOOLS, WRITES, "delete_alarm delete_reminder")


def _talk(*results: Any, now: datetime | None = None) -> Script:
    told = f"Now: {now:%Y-%m-%dT%H:%M} ({now:%A}).\n" if now else ""
    return Script(TOOLS, MARKS, POLICY + told, results)


def _id(rng: Random, prefix: str) -> str:
    return f"{prefix}{rng.randint(0x1000, 0xFFFF):x}"


def timers(rng: Random) -> Talk:
    """Seconds to minutes, two timers of a kind, what is left of them, one stopped."""
    pasta, egg, left = rng.choice([9, 11, 12]), rng.choice([6, 7]), rng.randint(61, 170)
    ids, gone = (_id(rng, "t"), _id(rng, "t")), rng.randint(70, 110)
    one = {"timer_id": ids[0], "label": "pasta", "seconds": pasta * 60, "state": "RUNNING"}
    two = {"timer_id": ids[1], "label": "eggs", "seconds": egg * 60, "state": "RUNNING"}
    told = [{**one, "remaining_s": pasta * 60 - gone}, {**two, "remaining_s": left}]
    return _talk(one, two, told, {**two, "state": "CANCELLED"}).tell(f"""
U {rng.choice(["pasta timer", "timer for the pasta"])} {pasta} mins
C set_timer seconds:={pasta * 60} label=pasta
A {pasta} minutes for the pasta, starting now. 🍝
U and {egg} for eggs
C set_timer seconds:={egg * 60} label=eggs
A Eggs: {egg} minutes. ⏲️
U how long still?
C list_timers
A Pasta {(pasta * 60 - gone) // 60}:{(pasta * 60 - gone) % 60:02}, eggs {left // 60}:{left % 60:02}.
U stop the eggs one
C cancel_timer timer_id={ids[1]}
A Stopped the eggs timer. The pasta keeps going.""")


def reminders(rng: Random) -> Talk:
    """Reminders with times, one added, one deleted after a yes, a change of mind about the time."""
    now, ids = datetime(2025, 9, rng.randint(8, 12), 18, 20), [_id(rng, "r") for _ in range(4)]
    at, to = now.replace(minute=0) + timedelta(hours=rng.choice([14, 15])), rng.choice(["dentist", "plumber",
        "bank"])
    new = {"reminder_id": ids[3], "text": f"call the {to}", "at":
        f"{at + timedelta(minutes=30):%Y-%m-%dT%H:%M}"}
    car = date(2025, 9, rng.randint(16, 28))
    held = rows("reminder_id text at done", (ids[0], "water the ferns", f"{now.date()}T20:00", False),
        (ids[1], "renew car insurance", f"{car}T09:00", False), (ids[2], "return library books", None, False),
        (ids[3], new["text"], new["at"], False))
    return _talk(new, held, {"deleted": ids[2]}, now=now).tell(f"""
U remind me tomorrow to call the {to} at {at.hour}, no make that {at.hour}:30
C add_reminder text="call the {to}" at={new["at"]}
A OK, {at:%A} at {clock(at + timedelta(minutes=30))}: call the {to}.
U what else do i have
C list_reminders
A Three others:\n- water the ferns, today at 8 p.m.\n- renew car insurance, {day(car)} at 9 a.m.\n- return \
library books (no time)
U books are done, remove
A Delete "return library books"?
U {rng.choice(["yep", "yes", "uh-huh, yes"])}
C delete_reminder reminder_id={ids[2]}
A Deleted. Three left, the ferns come first, at 8 tonight.""")


def weather_week(rng: Random) -> Talk:
    """A forecast of days and one of hours, Celsius to Fahrenheit, a chance of rain, epoch to local time."""
    first, city = date(2025, 6, rng.randint(9, 20)), rng.choice(["Lyon", "Turin", "Graz"])
    high, rain = [rng.randint(19, 31) for _ in range(4)], [rng.choice([0, 5, 20, 45, 70,
        85]) for _ in range(4)]
    rain[1], low = rng.choice([65, 80, 90]), [h - rng.randint(7, 11) for h in high]
    sun = datetime(first.year, 6, first.day, 19, rng.randint(10, 35), tzinfo=UTC)
    days = [{"date": str(first + timedelta(days=n)), "min_c": low[n], "max_c": high[n], "pop": rain[n] / 100,
             "sunset": int((sun + timedelta(days=n)).timestamp()), "wind_kmh": 9 + n} for n in range(4)]
    wet, start = first + timedelta(days=1), rng.randint(13, 16)
    hours = [{"time": f"{wet}T{h:02}:00", "mm": 1.4 if start <= h < start + 3 else 0.0} for h in range(11,
        20)]
    return _talk({"place": city, "tz": "+02:00", "daily": days}, {"place": city, "hourly": hours},
        now=datetime(first.year, 6, first.day, 8, 15)).tell(f"""
U weather in {city} today n tomorrow?
C weather place={city} days:=4
A Today {low[0]} to {high[0]} °C, chance of rain {rain[0]}%. Tomorrow {low[1]} to {high[1]} °C, but rain is \
likely ({rain[1]}%). ☔
U when tmrw exactly
C weather place={city} hourly:=true
A Between {start} and {start + 3} o'clock; the rest of the day from 11 to 8 p.m. looks dry.
U whats {high[1]} in F
A About {high[1] * 9 / 5 + 32:.0f} °F.
U sunset today?
A At {sun.hour + 2}:{sun.minute:02}.""")


def way_home(rng: Random) -> Talk:
    """Metres and seconds to kilometres and minutes, two routes, an arrival, a message."""
    now, ids = datetime(2025, 11, rng.randint(3, 7), 17, rng.randint(2, 40)), rng.randint(100, 199)
    km, slow = rng.randint(121, 288), rng.randint(5, 14)
    minutes = km // 6 + rng.randint(2, 8)
    routes = rows("route_id summary distance_m duration_s traffic_delay_s tolls",
        ("a", "A7 and Ring Road", km * 100, minutes * 60, 480, False),
        ("b", "Mill Lane", km * 100 - 2300, (minutes + slow) * 60, 60, False))
    mum = [{"name": "Mum", "numbers": [{"type": "mobile", "value": f"+44 7700 900{ids}"}], "favorite": True}]
    arrive = now + timedelta(minutes=minutes)
    return _talk({"routes": routes}, mum, {"status": "SENT"}, now=now).tell(f"""
U how long to get home
C route to=home mode=car
A {minutes} minutes via the A7 ({km / 10} km), including 8 minutes of traffic. You'd arrive at \
{arrive:%H:%M}. Mill Lane is shorter, {(km - 23) / 10:.1f} km, but takes {minutes + slow} minutes.
U text mum ill be there {arrive:%H:%M}
C find_contact who=Mum
C send_text number="+44 7700 900{ids}" text="I'll be there at {arrive:%H:%M}."
A Sent to Mum: "I'll be there at {arrive:%H:%M}."
U any tolls
A No, neither route has tolls.""")


def some_music(rng: Random) -> Talk:
    """Songs with milliseconds, the length of an album, a year, the user's wrong artist corrected."""
    years, ids = rng.sample(range(1971, 2009), 2), [_id(rng, "sp:") for _ in range(5)]
    ms = [rng.randint(141, 330) * 1000 for _ in range(5)]
    names = rng.sample(["Paper Lanterns", "Northbound", "Slow Tide", "Copper Wire", "Afterglow", "Kites"], 5)
    act, other = rng.sample(["The Marlow Set", "Iva Lind", "Night Ferry", "Osei & Sons"], 2)
    songs = rows("uri title artist album year duration_ms explicit",
        *((ids[n], names[n], act, "Low Season", years[0], ms[n], False) for n in range(4)),
        (ids[4], names[4], other, "Singles", years[1], ms[4], True))

    def length(n: int) -> str:
        return f"{ms[n] // 60000}:{ms[n] // 1000 % 60:02}"

    return _talk({"tracks": songs, "total": 5}, {"playing": ids[1], "queue": 0}, {"playing": ids[4],
        "queue": 0}).tell(f"""
U play {names[1].lower()} by {other.lower()}
C search_music query="{names[1].lower()}"
A I found "{names[1]}", but it's by {act}, from *Low Season* ({years[0]}). Play that?
U oh right yes
C play uri={ids[1]}
A Playing "{names[1]}" by {act}, {length(1)} long. 🎶
U what do you have by {other} then
A "{names[4]}" from {years[1]}, {length(4)}.
U that one
C play uri={ids[4]}
A Here's "{names[4]}" by {other}.""")


def two_sams(rng: Random) -> Talk:
    """Terse. Contacts of a name, numbers of a kind, a wrong number of the user corrected."""
    a, b, c = rng.sample(range(1100, 9900), 3)
    bday = date(1988, rng.randint(1, 12), rng.randint(2, 27))
    people = [{"name": "Sam Okafor", "numbers": [{"type": "mobile", "value": f"(415) 555-{a}"},
        {"type": "work", "value": f"(415) 555-{b}"}], "email": "sam.o@example.com", "birthday": str(bday)},
        {"name": "Samantha Reyes", "numbers": [{"type": "mobile", "value": f"(628) 555-{c}"}], "email": None,
        "birthday": None}]
    return _talk(people, {"status": "SENT", "segments": 1}).tell(f"""
U number of sam
C find_contact who=sam
A Two matches:\n- Sam Okafor: mobile (415) 555-{a}, work (415) 555-{b}\n- Samantha Reyes: mobile (628) 555-{c}
U okafors mobile is {b} isnt it
A No, {b} is his work number. Mobile ends in {a}.
U text him happy bday on mobile
C send_text number="(415) 555-{a}" text="Happy birthday!"
A Sent to (415) 555-{a}.
U when is it actually
A {day(bday)}; he was born in {bday.year}.""")


def shopping(rng: Random) -> Talk:
    """A note of lines, things added, a count, an item that is told from the note."""
    eggs, milk, extra = rng.choice([6, 10, 12]), rng.choice([1, 2, 3]), rng.choice(["basil", "limes", "oats"])
    lines = [f"{eggs} eggs", f"{milk} l milk", "coffee beans (250 g)", "2 lemons",
        f"AA batteries x{rng.choice([4, 8])}"]
    note = {"note_id": _id(rng, "n"), "title": "Shopping", "edited": "2025-08-02T07:41:10Z", "lines": lines}
    after = {**note, "lines": [*lines, extra, "3 onions"]}
    return _talk(note, after).tell(f"""
U whats on my shopping list
C get_note title=Shopping
A Five things: {eggs} eggs, {milk} {"litre" if milk == 1 else "litres"} of milk, 250 g of coffee beans, two \
lemons and {lines[4].split("x")[1]} AA batteries.
U add {extra} and 3 onions
C append_note note_id={note["note_id"]} lines:='["{extra}", "3 onions"]'
A Added {extra} and 3 onions. That makes seven items.
U did i write how much coffee
A Yes, 250 g, about half a pound.""")


def warm_home(rng: Random) -> Talk:
    """Devices of a home with states, a temperature set and told before and after."""
    was, want, wet = rng.randint(170, 189) / 10, rng.choice([20, 21, 22]), rng.randint(38, 57)
    ids, dim, load = [_id(rng, "d") for _ in range(5)], rng.choice([30, 40, 60]), rng.randint(12, 90)
    told = [{"id": ids[0], "name": "Living room heating", "type": "thermostat", "state": {"current_c": was,
        "target_c": 18.0, "humidity": wet}}, {"id": ids[1], "name": "Floor lamp", "type": "light",
        "state": {"on": True, "level": dim}}, {"id": ids[2], "name": "Ceiling", "type": "light",
        "state": {"on": False, "level": 100}}, {"id": ids[3], "name": "Front door", "type": "lock",
        "state": {"locked": True, "battery": load}}, {"id": ids[4], "name": "Desk plug", "type": "plug",
        "state": None, "offline_since": "2025-01-12T09:00:00Z"}]
    done, off = {"id": ids[0], "target_c": float(want), "current_c": was}, {"id": ids[1], "on": False}
    return _talk({"devices": told}, done, off).tell(f"""
U brrr how warm is it in the living room
C list_devices
A {was} °C, with the heating set to 18 °C. 🥶
U make it {want}
C set_device device_id={ids[0]} value={want}
A Set to {want} °C. It's {was} °C right now, so give it a while.
U which lights are on
A Only the floor lamp, at {dim}%.
U off please. and is the door locked
C set_device device_id={ids[1]} value=off
A The floor lamp is off. 🔒 Yes, the front door is locked; its battery is at {load}%.""")


def early_alarm(rng: Random) -> Talk:
    """Alarms by days of the week, hours of sleep, an alarm deleted after a yes."""
    now, minute = datetime(2025, 4, rng.randint(7, 10), 22, rng.choice([0, 15, 30])), rng.choice([10, 20, 40])
    ids, get_up = [_id(rng, "a") for _ in range(3)], datetime(2025, 4, now.day + 1, 5, rng.choice([0, 30]))
    weekdays = ["MO", "TU", "WE", "TH", "FR"]
    held = rows("alarm_id time days enabled", (ids[0], f"06:{minute}", weekdays, True),
        (ids[1], "09:30", ["SA"], False), (ids[2], f"05:{get_up:%M}", [], True))
    gap = get_up - now
    hours, rest = divmod(gap.seconds // 60, 60)
    made = {"alarm_id": ids[2], "time": f"05:{get_up:%M}", "days": [], "rings_in_min": gap.seconds // 60}
    return _talk(made, held, {"deleted": ids[1], "left": 2}, now=now).tell(f"""
U alarm at {get_up.hour}{"" if not get_up.minute else ":30"} tmrw, early flight
C set_alarm time={get_up:%H:%M}
A Alarm set for {clock(get_up)} tomorrow. That's in {hours} hours{f" and {rest} minutes" if rest else ""}.
U what other alarms are there
C list_alarms
A One on weekdays at 6:{minute} a.m., and one on Saturdays at 9:30 a.m. that's switched off.
U kill the saturday one
A You'd like me to delete the 9:30 Saturday alarm, right?
U right
C delete_alarm alarm_id={ids[1]}
A It's deleted. Good night! 😴""")


def phrases(rng: Random) -> Talk:
    """Translations told and explained, numbers in words, a correction of the user's guess."""
    room, nights = rng.randint(21, 89), rng.choice([2, 3, 4])
    word = {2: "deux", 3: "trois", 4: "quatre"}[nights]
    ask, late = f"Une chambre pour {word} nuits, s'il vous plaît.", "À quelle heure est le check-out ?"
    return _talk({"text": ask, "source": "en", "target": "fr"}, {"text": late, "source": "en",
        "target": "fr"}).tell(f"""
U how do i say a room for {nights} nights please in french
C translate text="A room for {nights} nights, please." to=fr
A "{ask}"
U and what time is checkout
C translate text="What time is checkout?" to=fr
A "{late}"
U they said {room} euros, onze heures. thats noon?
A Not quite: *onze heures* is 11 o'clock. Noon would be *midi*. At {room} euros a night, {nights} nights \
would be {room * nights} euros.
U merci
A De rien! 😊""")


def quick_ones(rng: Random) -> Talk:
    """No tool: conversions, a tip, common knowledge."""
    cups, bill, feet = rng.choice([2, 3]), rng.randint(31, 79), rng.randint(5, 6)
    inch = rng.randint(1, 9)
    return _talk().tell(f"""
U how many ml in {cups} cups
A About {cups * 237} ml (a US cup is roughly 237 ml).
U oven 350 f in celsius
A About 177 °C; most people use 175 or 180.
U 20% tip on ${bill}
A ${bill * 0.2:.2f}, so ${bill * 1.2:.2f} in total.
U im {feet}'{inch} whats that in cm
A {feet}'{inch}" is about {round((feet * 12 + inch) * 2.54)} cm.
U and how far is the moon lol
A Around 384,000 km on average, or 239,000 miles. 🌕""")


def my_day(rng: Random) -> Talk:
    """A calendar of a day with offsets, gaps, the last thing of the day, steps of a week."""
    today = date(2025, 10, rng.randint(14, 17))
    step, gate = rng.sample(range(3100, 14800), 4), rng.randint(2, 9)
    keys = "id title start end place"
    events = rows(keys, ("e1", "Stand-up", f"{today}T09:30:00-07:00", f"{today}T09:45:00-07:00", "Zoom"),
        ("e2", "Lunch with Ari", f"{today}T12:15:00-07:00", f"{today}T13:15:00-07:00",
        "Café Luz, 48 Pine St"), ("e3", "Physio", f"{today}T15:00:00-07:00", f"{today}T15:40:00-07:00", None),
        ("e4", "Parents' evening", f"{today}T18:30:00-07:00", f"{today}T20:00:00-07:00", f"Room {gate}"))
    days = [{"date": str(today - timedelta(days=4 - n)), "steps": step[n],
        "resting_hr": 58 + n % 2} for n in range(4)]
    best = max(range(4), key=lambda n: step[n])
    return _talk({"events": events}, {"days": days}, now=datetime(2025, 10, today.day, 7, 5)).tell(f"""
U morning! whats today
C calendar date={today}
A Good morning! ☀️ Four things today:\n- 9:30 Stand-up (Zoom)\n- 12:15 Lunch with Ari, Café Luz\n- 15:00 \
Physio\n- 18:30 Parents' evening, room {gate}
U address of the lunch? and when am i done tonight
A 48 Pine St. The parents' evening ends at 8 p.m.
U how many steps did i do yesterday
C steps start={today - timedelta(days=4)} end={today - timedelta(days=1)}
A {step[3]:,} yesterday. \
{"That's the best" if best == 3 else f"{(today - timedelta(days=4 - best)):%A} was the best"} of the last \
four days{"" if best == 3 else f", with {step[best]:,}"}.""")


def alarma(rng: Random) -> Talk:
    """Spanish: an alarm, a timer, the weather of tomorrow."""
    now, minute, t = datetime(2025, 3, rng.randint(10, 13), 21, 10), rng.choice([15, 20, 45]), rng.randint(9,
        13)
    top, rain, mins = t + rng.randint(6, 11), rng.choice([10, 15, 60, 75]), rng.choice([25, 35])
    tomorrow = now.date() + timedelta(days=1)
    made = {"alarm_id": _id(rng, "a"), "time": f"06:{minute}", "days": [], "enabled": True}
    days = rows("date min_c max_c pop", (str(now.date()), t + 1, top + 2, 0.05), (str(tomorrow), t, top,
        rain / 100))
    run = {"timer_id": _id(rng, "t"), "seconds": mins * 60, "state": "RUNNING"}
    return _talk(made, {"place": "Sevilla", "daily": days}, run, now=now).tell(f"""
U ponme una alarma mañana a las 6 y {"cuarto" if minute == 15 else "veinte" if minute == 20 else "45"}
C set_alarm time=06:{minute}
A Alarma puesta para mañana a las 6:{minute}. ⏰
U va a llover en sevilla?
C weather place=Sevilla days:=2
A Mañana hay un {rain} % de probabilidad de lluvia, con {t} °C de mínima y {top} °C de máxima.
U vale y un temporizador de {mins} min para el horno
C set_timer seconds:={mins * 60}
A Listo, {mins} minutos. Sonará a las 21:{10 + mins}.""")


def trajet(rng: Random) -> Talk:
    """French: a route by train, a platform, decimal commas, an arrival on a 24-hour clock."""
    leave, voie, km = datetime(2025, 5, 6, rng.randint(8, 17), rng.choice([4, 12, 38])), rng.randint(3,
        19), rng.randint(421, 498)
    mins, price = rng.randint(112, 128), rng.randint(290, 790) / 10
    legs = [{"type": "walk", "duration_s": 420, "distance_m": 550}, {"type": "train",
        "line": f"TGV {rng.randint(6601, 6689)}", "departs": f"{leave:%Y-%m-%dT%H:%M}:00+02:00",
        "platform": str(voie), "duration_s": mins * 60, "distance_m": km * 1000}]
    end = leave + timedelta(minutes=mins)
    return _talk({"routes": [{"legs": legs, "fare_eur": f"{price:.2f}", "changes": 0}]}).tell(f"""
U le prochain train pour lyon stp
C route to=Lyon mode=transit
A Le {legs[1]["line"]} part à {leave.hour} h {leave:%M}, voie {voie}. Arrivée à {end.hour} h {end:%M}, sans \
changement, {comma(price)} €.
U c'est loin la gare à pied ?
A Non, 7 minutes (550 m). Il faudrait donc partir au plus tard à {(leave - timedelta(minutes=7)).hour} h \
{leave - timedelta(minutes=7):%M}.
U et le trajet dure combien
A {mins // 60} h {mins % 60:02} pour {km} km.""")


def taimaa(rng: Random) -> Talk:
    """Japanese: a timer, a message to a contact, the weather in words."""
    mins, t, tail = rng.choice([3, 4, 5]), rng.randint(27, 34), rng.randint(1000, 9999)
    rain, name = rng.choice([20, 40, 60]), rng.choice(["田中", "佐藤", "山本"])
    run = {"timer_id": _id(rng, "t"), "label": None, "seconds": mins * 60, "state": "RUNNING"}
    days = rows("date min_c max_c pop", ("2025-08-05", t - 8, t, rain / 100))
    person = [{"name": f"{name}さん", "numbers": [{"type": "mobile", "value": f"090-5550-{tail}"}],
        "favorite": False}]
    return _talk(run, {"place": "横浜", "daily": days}, person, now=datetime(2025, 8, 5, 12, 10)).tell(f"""
U カップ麺のタイマー{mins}分
C set_timer seconds:={mins * 60}
A {mins}分のタイマーを始めました。
U 今日の横浜の天気は?
C weather place=横浜 days:=1
A 最高気温は{t}度、最低気温は{t - 8}度、降水確率は{rain}%です。
U {name}さんの電話番号教えて
C find_contact who={name}
A {name}さんの携帯は090-5550-{tail}です。""")


TEMPLATES = (timers, reminders, weather_week, way_home, some_music, two_sams, shopping, warm_home,
    early_alarm, phrases, quick_ones, my_day, alarma, trajet, taimaa)
