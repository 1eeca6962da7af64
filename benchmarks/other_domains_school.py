"""Clean conversations at school: courses, grades, library, tutoring, timetables, admissions, a quiz bot."""

from __future__ import annotations

from datetime import date, timedelta
from math import ceil
from random import Random
from typing import Any

from scripted import Script, day, marked, near, nth, rows, usd, yes
from talk import Talk, tool

# fmt: off
POLICY = """You are Quill, the assistant of Brightwater College and its learning app. Times are local.
Dropping a course: full refund within 14 days of the start of term, half within 28 days, then none.
Library: loans of 21 days, at most 2 renewals, a fine of $0.25 per day and item, up to $10 per item.
Grades: A from 90, B from 80, C from 70, D from 60. A remark costs $40, returned if the grade changes.
Tutoring is $32 an hour; free to cancel up to 24 hours before. Grades of other students are confidential.
Ask for a yes before you drop or cancel anything.
"""
TOOLS = [tool("find_sections", "Sections of a course", course="string", term="string"), tool("enroll",
    "Enroll in a section", student="string", section="string"), tool("drop_course", "Leave a course",
    student="string", section="string"), tool("get_grades", "Scores in a course", student="string",
    course="string"), tool("get_timetable", "Lessons of a day", student="string", date="string"),
    tool("list_loans", "Library loans as CSV", student="string"), tool("renew_loan", "Renew",
    barcode="string"), tool("get_application", "Admission", application="string"), tool("exam_results",
    "Results of a session", student="string", session="string"), tool("request_remark",
    "Have a paper marked again", student="string", paper="string"), tool("get_remark", "State of a remark",
    remark="string"), tool("next_question", "Quiz question", quiz="string", number="integer"),
    tool("submit_answer", "Answer a quiz question", quiz="string", number="integer", answer="string"),
    tool("review_deck", "Vocabulary due today", learner="string", language="string"), tool("get_invoice",
    "Tuition, as a table", student="string", term="string"), tool("tutor_slots", "Free hours",
    subject="string", week="string"), tool("book_tutor", "Book", slot="string", student="string"),
    tool("cancel_tutor", "Cancel", booking="string")]
WRITES = "enroll renew_loan request_remark submit_answer book_tutor"
MARKS = marked(TOOLS, WRITES, "drop_course cancel_tutor")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def _ref(rng: Random, prefix: str, digits: int = 4) -> str:
    return f"{prefix}{rng.randint(10 ** (digits - 1), 10**digits - 1)}"


def find_course(rng: Random) -> Talk:
    """Four sections of a course with times and seats, one chosen, a seat fewer afterwards."""
    who, ids, room = _ref(rng, "S", 6), rng.sample(range(10000, 99999), 4), rng.sample(range(101, 399), 4)
    taken, staff = [30, *rng.sample(range(12, 28), 3)], ["Ahmed", "Brandt", "Castillo", "Doyle"]
    hours = [("08:30", "09:45"), ("10:00", "11:15"), ("13:00", "14:15"), ("15:30", "16:45")]
    told = rows("section days start end room instructor enrolled capacity", *((str(ids[n]), "TR" if n % 2
        else "MW", *hours[n], f"LH {room[n]}", f"Dr. {staff[n]}", taken[n], 30) for n in range(4)))
    done = {"status": "ENROLLED", "section": str(ids[2]), "seats_left": 29 - taken[2],
        "first_class": "2026-01-12"}
    return _talk({"course": "STAT 101", "credits": 3, "sections": told}, done).tell(f"""
U {who} here, stats 101 in spring 26, which sections have space? no mornings pls
C find_sections course="STAT 101" term=SPRING-2026
A Two sections of **STAT 101** (3 credits) meet in the afternoon, and both have open seats:\n\n| Section | \
Days | Time | Room | Instructor | Seats left |\n|---|---|---|---|---|---|\n| {ids[2]} | Mon/Wed | 1:00–2:15 \
p.m. | LH {room[2]} | Dr. Castillo | {30 - taken[2]} |\n| {ids[3]} | Tue/Thu | 3:30–4:45 p.m. | LH {room[3]} \
| Dr. Doyle | {30 - taken[3]} |
U and the 10 oclock?
A Section {ids[1]} with Dr. Brandt meets Tue/Thu from 10:00 to 11:15 a.m. in LH {room[1]}, with \
{30 - taken[1]} seats left. The one at 8:30 is full (30 of 30).
U take castillo
C enroll student={who} section={ids[2]}
A You're enrolled in section {ids[2]} with Dr. Castillo. Your first class is on Monday, January 12, at 1 \
p.m. in LH {room[2]}; {29 - taken[2]} seats are left now.""")


def final_needed(rng: Random) -> Talk:
    """Weighted scores, a wrong one of the user, the score needed in the final."""
    who, mid, lab, quiz = _ref(rng, "S", 6), rng.randint(68, 84), rng.randint(80, 94), rng.randint(70, 88)
    so_far = 30 * mid + 20 * lab + 10 * quiz
    need, other = ceil((8000 - so_far) / 40), rng.choice(["Maya", "Jonas", "Ella"])
    told = rows("item weight_percent score max released_at", ("Midterm", 30, mid, 100,
        "2025-10-17T09:00:00-05:00"), ("Lab reports", 20, lab, 100, "2025-11-21T16:30:00-06:00"), ("Quizzes",
        10, quiz, 100, "2025-11-24T12:00:00-06:00"), ("Final exam", 40, None, 100, None))
    info = {"student": who, "course": "BIO 110", "items": told, "final_exam": "2025-12-11T09:00:00-06:00"}
    return _talk(info).tell(f"""
U whats my standing in bio 110, {who}
C get_grades student={who} course="BIO 110"
A Here's where you are in **BIO 110**:\n\n- Midterm (30%): **{mid}**\n- Lab reports (20%): **{lab}**\n- \
Quizzes (10%): **{quiz}**\n- Final exam (40%): not graded yet
U i thought i had {mid + 6} on the midterm?
A The record says {mid} out of 100, released on October 17. If you think that's wrong, please talk to your \
instructor.
U ok. what do i need in the final for a B overall
A A B starts at 80. Your three scores bring {so_far / 100:.1f} points so far, so you need at least \
**{need}** in the final: {so_far / 100:.1f} + 0.4 × {need} = {so_far / 100 + need * 0.4:.1f}. It's on \
Thursday, December 11, at 9 a.m.
U and what did {other} get
A I can't tell you, grades of other students are confidential.""")


def tomorrow(rng: Random) -> Talk:
    """Lessons with offsets, a room that moved, a free period, a lesson that is cancelled."""
    who, when, rooms = _ref(rng, "S", 6), date(2025, 10, rng.choice([7, 14, 21])), rng.sample(range(100, 320),
        5)
    hours = ["08:15-09:00", "09:10-09:55", "10:15-11:00", "12:30-13:15", "13:25-14:10"]
    subjects, told = ["Algebra II", "World History", "Chemistry", "English", "PE"], []
    for n in range(5):
        start, end = (f"{when}T{hour}:00-05:00" for hour in hours[n].split("-"))
        told.append({"subject": subjects[n], "start": start, "end": end, "room": f"B{rooms[n]}",
            "status": "OK"})
    told[2] |= {"status": "MOVED", "previous_room": f"A{rooms[0]}"}
    told[4] |= {"status": "CANCELLED", "room": None}
    return _talk({"student": who, "lessons": told}, today=when - timedelta(days=1)).tell(f"""
U when do i have to be in tmrw ({who})
C get_timetable student={who} date={when}
A Tomorrow, {when:%A} the {nth(when.day)}, starts at **8:15 a.m.** with Algebra II in B{rooms[0]}. 🎒
U chem is in A{rooms[0]} as always?
A No, careful! Chemistry has moved from A{rooms[0]} to **B{rooms[2]}**, 10:15 to 11:00.
U how long is the break after that, and when am i done
A You have an hour and a half until English (12:30, B{rooms[3]}). PE is cancelled, so you're done at 1:15 \
p.m. instead of 2:10 🎉""")


def library(rng: Random) -> Talk:
    """Loans as CSV, one overdue with its fine, one renewed, one that can't be by the policy."""
    who, late, codes = _ref(rng, "S", 6), rng.randint(3, 12), rng.sample(range(300000, 399999), 4)
    today = date(2025, 11, rng.randint(14, 17))
    dues = [today + timedelta(days=n) for n in (-late, 2, 6, 13)]
    titles, used = ["Cosmos", "The Selfish Gene", "Calculus Made Easy", "Emma"], [1, 0, 2, 0]
    lines = [f"{codes[n]},{titles[n]},{dues[n]},{used[n]}" for n in range(4)]
    new = dues[1] + timedelta(days=21)
    made = {"barcode": str(codes[1]), "due": str(new), "renewals": 1, "holds": 0}
    return _talk("\n".join(["barcode,title,due,renewals", *lines]), made, today=today).tell(f"""
U what books do i still have out? {who}
C list_loans student={who}
A You have four books:\n\n1. *Cosmos*: was due on {day(dues[0])}, **{late} days overdue**\n2. *The Selfish \
Gene*: due {day(dues[1])}\n3. *Calculus Made Easy*: due {day(dues[2])}\n4. *Emma*: due {day(dues[3])}
U oops. fine?
A At $0.25 a day that's **{usd(25 * late)}** for *Cosmos* so far.
U will bring it today. renew dawkins and calculus
C renew_loan barcode={codes[1]}
A *The Selfish Gene* is renewed until **{day(new)}**. *Calculus Made Easy* has already been renewed twice, \
which is the maximum, so please return it by {day(dues[2])}.""")


def admission(rng: Random) -> Talk:
    """A nested checklist, a score, deadlines; the user is wrong about a fee."""
    app, fee, score = _ref(rng, "APP-", 6), rng.choice([55, 65, 75]), rng.randint(92, 112)
    got, due = date(2026, 1, rng.randint(5, 14)), date(2026, 2, rng.choice([1, 15]))
    visit = date(2026, 1, rng.choice([27, 28, 29]))
    return _talk(today=date(2026, 1, 20)).tell(f"""
U status of my application {app}?
C get_application application={app}
R {{"application": {{"id": "{app}", "program": {{"code": "CS-BS", "name": "Computer Science, B.S."}}, \
"state": "INCOMPLETE", "deadline": "{due}T23:59:00-06:00"}}, "checklist": [{{"item": "transcript", \
"received": "{got}"}}, {{"item": "toefl", "received": "{got + timedelta(days=2)}", "score": {score}, \
"minimum": 90}}, {{"item": "recommendation", "number": 1, "received": "2026-01-04", "by": "H. Novak"}}, \
{{"item": "recommendation", "number": 2, "received": null, "by": "S. Adeyemi"}}], "fee": {{"amount_usd": \
{fee}, "paid": false}}, "interview": {{"at": "{visit}T15:30:00-06:00", "place": "online", "minutes": 20}}}}
A Your application {app} for **Computer Science, B.S.** is still incomplete.\n\n**Received**\n- Transcript \
({day(got)})\n- TOEFL: {score}, above the minimum of 90 ({day(got + timedelta(days=2))})\n- Recommendation \
by H. Novak\n\n**Missing**\n- Recommendation by S. Adeyemi\n- Application fee of ${fee}
U but i paid the 50 in december
A The fee is ${fee}, and it isn't marked as paid here. Please check your payment; everything has to be in by \
{day(due)}, 11:59 p.m. That's {(due - date(2026, 1, 20)).days} days from today.
U ok will do. interview is on jan {visit.day - 1}?
A It's on {visit:%A}, {day(visit)}, at 3:30 p.m., online, for 20 minutes.""")


def remark(rng: Random) -> Talk:
    """Results of a session; a paper marked again, whose new mark supersedes the first."""
    who, paper, ref = _ref(rng, "S", 6), _ref(rng, "P-", 5), _ref(rng, "RM-")
    marks, new = [rng.randint(81, 97), rng.randint(77, 79), rng.randint(62, 69)], rng.randint(80, 84)
    keys = ["Literature", "Physics", "Geography"]
    told = rows("paper subject mark grade", (_ref(rng, "P-", 5), keys[0], marks[0], "AB"[marks[0] < 90]),
        (paper, keys[1], marks[1], "C"), (_ref(rng, "P-", 5), keys[2], marks[2], "D"))
    made = {"remark_id": ref, "state": "QUEUED", "fee_usd": "40.00", "expected_by": "2025-07-04"}
    done = {"remark_id": ref, "state": "DONE", "old": {"mark": marks[1], "grade": "C"}, "new": {"mark": new,
        "grade": "B"}, "fee_returned": True}
    return _talk({"session": "2025-05", "results": told}, made, done).tell(f"""
U my may results? {who}
C exam_results student={who} session=2025-05
A - Literature: {marks[0]} ({"AB"[marks[0] < 90]})\n- Physics: {marks[1]} (C)\n- Geography: {marks[2]} (D)
U argh physics is so close to a B. can it be marked again
A Yes, {marks[1]} is just {80 - marks[1]} short of a B. A remark costs $40, which you get back if the grade \
changes. Request it?
U {yes(rng)}
C request_remark student={who} paper={paper}
A Requested ({ref}). Expect the result by July 4.
U any news on the remark
C get_remark remark={ref}
A Good news: your physics mark went up from {marks[1]} to **{new}**, so it's now a **B**. The $40 will be \
returned.""")


def quiz_bot(rng: Random) -> Talk:
    """A quiz bot: questions of general knowledge, a wrong answer, the score in the end."""
    asked, quiz, pts = rng.sample([("What is the capital of Australia?", "canberra", "sydney", "Canberra"),
        ("How many bones does an adult human have?", "206", "208", "206"),
        ("In which year did the Berlin Wall fall?", "1989", "1991", "1989"),
        ("Which planet is closest to the sun?", "mercury", "venus", "Mercury"),
        ("How many sides does a heptagon have?", "seven", "6", "7"), ("What is the chemical symbol of gold?",
        "Au", "ag", "Au")], 3), _ref(rng, "QZ-", 3), rng.choice([10, 15, 20])
    wrong, score, text, reply = rng.randint(0, 2), 0, f"U quiz me! {quiz}\n", ""
    for n, (what, good, bad, right) in enumerate(asked, 1):
        hit = n - 1 != wrong
        told, given = f'"text": "{what}", "points": {pts}', good if hit else bad
        text += f'C next_question quiz={quiz} number:={n}\nR {{"number": {n}, "of": 3, {told}}}\n'
        text += f"A {reply}🎯 Question {n} of 3 for {pts} points: **{what}**\n"
        score += pts * hit
        text += f'U {given}\nC submit_answer quiz={quiz} number:={n} answer="{given}"\n'
        text += f'R {{"correct": {str(hit).lower()}, "solution": "{right}", "total": {score}}}\n'
        verdict = "✅ Correct!" if hit else f"❌ Not quite, it's {right}."
        reply = f"{verdict} You have {score} points.\n\n"
    text += f"A {verdict} That was the last one: **{score} out of {3 * pts} points**, 2 of 3 right! 🏆"
    return _talk().tell(text)


def roots(rng: Random) -> Talk:
    """Tutoring in maths without a tool: an equation, a wrong root of the user, a check, a discount."""
    a, b = rng.sample(range(2, 9), 2)
    price, off = rng.choice([40, 60, 80]), rng.choice([15, 25, 35])
    return _talk().tell(f"""
U how do i solve x^2 - {a + b}x + {a * b} = 0
A Look for two numbers with the product {a * b} and the sum {a + b}. Those are **{a}** and **{b}**, \
so:\n\nx² − {a + b}x + {a * b} = (x − {a})(x − {b})\n\nIf a product is zero, one of its factors is zero. \
What does that give you for x?
U x = -{a} and x = -{b}?
A Almost, watch the signs! x − {a} = 0 gives x = **{a}**, and x − {b} = 0 gives x = **{b}**. Check for {a}: \
{a * a} − {(a + b) * a} + {a * b} = 0 ✓
U ohh right. next one: a jacket for ${price} is {off}% off, new price?
A {off}% of ${price} is {usd(price * off)}, so the jacket costs {usd(price * (100 - off))}. Shortcut: \
{price} × {(100 - off) / 100:.2f} = {price * (100 - off) / 100:.2f}.""")


def words_due(rng: Random) -> Talk:
    """Vocabulary due today, translations, a verb, a streak of days."""
    who, due, streak, known, cards = _ref(rng, "L", 5), rng.randint(14, 38), rng.randint(5,
        60), rng.randint(410, 980), rows("front back times_missed last_seen", ("el desarrollo", "development",
        4, "2025-09-02"), ("la huella", "footprint, trace", 3, "2025-09-05"), ("aprovechar", "to make use of",
        2, "2025-09-05"), ("sin embargo", "however", 1, "2025-09-07"))
    info = {"language": "es", "due": due, "known": known, "streak_days": streak, "hardest": cards}
    return _talk(info, today=date(2025, 9, 8)).tell(f"""
U hola! what do i have to review in spanish today? im {who}
C review_deck learner={who} language=es
A ¡Hola! You have **{due} cards** due today and know {known} words already. 🔥 Streak: {streak} days. The \
hardest ones:\n\n1. *el desarrollo* – development (missed 4 times)\n2. *la huella* – footprint, trace \
(missed 3 times)\n3. *aprovechar* – to make use of (missed twice)\n4. *sin embargo* – however (missed once)
U how do you conjugate aprovechar in present
A It's a regular -ar verb: aprovecho, aprovechas, aprovecha, aprovechamos, aprovecháis, aprovechan.
U and huella i last saw yesterday?
A No, on September 5, the same day as *aprovechar*. The last one you saw was *sin embargo*, on September 7.
U whats my streak if i do it today
A Then it will be {streak + 1} days 💪""")


def drop(rng: Random) -> Talk:
    """A course dropped after a yes, half of its fee returned by the policy, credits before and after."""
    who, section, fee = _ref(rng, "S", 6), _ref(rng, "", 5), rng.choice([840, 960, 1180])
    today, term, made = date(2025, 9, rng.randint(10, 20)), date(2025, 8, 25), {"section": section,
        "status": "DROPPED", "refund_cents": fee * 50, "credits_left": 12, "transcript": "none"}
    return _talk(made, today=today).tell(f"""
U I want to drop PHIL 210 (section {section}, im {who}). term started aug 25, course was {fee} dollars. \
refund?
A Term started {(today - term).days} days ago. Within 14 days you'd have got everything back; until the 28th \
day it's half, so **${fee // 2}** of your ${fee:,}. Should I drop section {section}?
U last day for the half would be sept 22?
A Yes, 28 days after August 25 is September 22.
U then do it now
C drop_course student={who} section={section}
A PHIL 210 is dropped, with no mark on your transcript. ${fee // 2}.00 will be refunded, and you have 12 \
credits left this term.""")


def invoice(rng: Random) -> Talk:
    """Tuition as a Markdown table, what is left to pay, a wrong date of the user."""
    who, per, fees = _ref(rng, "S", 6), rng.choice([410, 435, 465]), [185, rng.choice([62, 78]), 340]
    total, paid = 14 * per + sum(fees), rng.choice([2000, 2500])
    return _talk().tell(f"""
U can i see my fall bill, {who}
C get_invoice student={who} term=FALL-2025
R ## Invoice {who} / FALL-2025\n\n| item | qty | unit | amount |\n|---|---:|---:|---:|\n| Tuition (credits) \
| 14 | {per}.00 | {14 * per}.00 |\n| Technology fee | 1 | 185.00 | 185.00 |\n| Activity fee | 1 | \
{fees[1]}.00 | {fees[1]}.00 |\n| Health center | 1 | 340.00 | 340.00 |\n| **Total** | | | **{total}.00** \
|\n\nReceived 2025-08-04: {paid}.00. Balance {total - paid}.00, due 2025-09-15. Late charge after that date: \
50.00
A Your fall bill is **${total:,}.00**: tuition of ${14 * per:,}.00 (14 credits at ${per}), the technology \
fee of $185.00, the activity fee of ${fees[1]}.00 and $340.00 for the health center. You paid ${paid:,} on \
August 4, so **${total - paid:,}.00** is left.
U due end of september right?
A No, it's due on **September 15**. After that a late charge of $50 is added.
U could i pay half now
A You can pay any part before September 15; half of the balance is {usd((total - paid) * 50)}.""")


def notes(rng: Random) -> Talk:
    """French: results of exams, the best mark, an average."""
    who, marks = _ref(rng, "S", 6), rng.sample(range(22, 38), 4)
    names = ["Mathématiques", "Philosophie", "Histoire", "Anglais"]
    told = rows("subject mark out_of date", *((names[n], marks[n] / 2, 20, f"2025-06-1{n}") for n
        in range(4)))
    texts, best = [f"{m / 2:.1f}".replace(".", ",").replace(",0", "") for m in marks], marks.index(max(marks))
    mean = near(sum(marks) / 8, 2).replace(".", ",")
    return _talk({"session": "2025-06", "results": told}).tell(f"""
U bonjour, mes résultats de juin svp ! {who}
C exam_results student={who} session=2025-06
A Bonjour ! Voici vos résultats de juin, sur 20 :\n\n- **Mathématiques** (10 juin) : {texts[0]}\n- \
**Philosophie** (11 juin) : {texts[1]}\n- **Histoire** (12 juin) : {texts[2]}\n- **Anglais** (13 juin) : \
{texts[3]}
U quelle est ma moyenne et ma meilleure note
A Votre moyenne est de {mean} sur 20. Votre meilleure note est celle de l'épreuve du 1{best} juin, \
{names[best]} : {texts[best]}.
U je veux faire recorriger l'anglais, c'est gratuit ?
A Non, une nouvelle correction coûte 40 $, remboursés si la note change.""")


def nachhilfe(rng: Random) -> Talk:
    """German: hours of tutors, one booked, moved after a change of mind."""
    who, ids, book = _ref(rng, "S", 6), rng.sample(range(100, 999), 3), rng.sample(range(1000, 9999), 2)
    monday = date(2025, 11, rng.choice([3, 10, 17]))
    days = [monday + timedelta(days=n) for n in (1, 2, 3)]
    told, made = rows("slot tutor start minutes", (f"T{ids[0]}", "Jana Weiß", f"{days[0]}T16:00", 60),
        (f"T{ids[1]}", "Jana Weiß", f"{days[1]}T17:30", 90), (f"T{ids[2]}", "Ole Krüger", f"{days[2]}T15:15",
        60)), [{"booking": f"N{book[n]}", "slot": f"T{ids[n]}", "price": ["32.00", "48.00"][n]} for n
        in range(2)]
    return _talk({"slots": told}, made[0], {"cancelled": f"N{book[0]}", "fee": 0}, made[1],
        today=monday - timedelta(days=3)).tell(f"""
U Hallo, brauche nächste Woche Mathe-Nachhilfe, {who}
C tutor_slots subject=math week={monday}
A Nächste Woche sind drei Termine frei:\n\n- Di, {days[0].day}.11., 16:00 Uhr: Jana Weiß, 60 Minuten\n- Mi, \
{days[1].day}.11., 17:30 Uhr: Jana Weiß, 90 Minuten\n- Do, {days[2].day}.11., 15:15 Uhr: Ole Krüger, 60 \
Minuten
U dienstag
C book_tutor slot=T{ids[0]} student={who}
A Gebucht: Dienstag um 16 Uhr bei Jana Weiß, Buchung N{book[0]}, 32 $.
U mist da hab ich training. lieber mittwoch
A Dann storniere ich N{book[0]} kostenlos und buche Mittwoch, 17:30 bis 19:00 Uhr, für 48 $. Einverstanden?
U {rng.choice(["ja", "ja bitte", "passt"])}
C cancel_tutor booking=N{book[0]}
C book_tutor slot=T{ids[1]} student={who}
A Erledigt. Der neue Termin ist Mittwoch, {days[1].day}. November, 17:30 Uhr (N{book[1]}, 48 $).""")


def siganpyo(rng: Random) -> Talk:
    """Korean: the lessons of a day, a room, the time of the last one."""
    who, rooms, when = _ref(rng, "S", 6), rng.sample(range(201, 499), 3), date(2025, 9, rng.randint(15, 19))
    told = rows("subject start end room", ("수학", f"{when}T09:00", f"{when}T10:30", rooms[0]), ("영어",
        f"{when}T10:45", f"{when}T12:15", rooms[1]), ("화학", f"{when}T14:00", f"{when}T15:30", rooms[2]))
    return _talk({"student": who, "lessons": told}).tell(f"""
U 안녕하세요 9월 {when.day}일 수업 알려주세요. 학번 {who}
C get_timetable student={who} date={when}
A 안녕하세요! 9월 {when.day}일({"월화수목금"[when.weekday()]}) 수업은 세 개입니다.\n\n- 수학: 오전 9시~10시 \
30분, {rooms[0]}호\n- 영어: 오전 10시 45분~오후 12시 15분, {rooms[1]}호\n- 화학: 오후 2시~3시 30분, \
{rooms[2]}호
U 화학은 {rooms[1]}호 아니에요?
A 아니요, {rooms[1]}호는 영어 수업이고 화학은 {rooms[2]}호입니다.
U 도서관 연체료는 하루에 얼마예요
A 한 권당 하루 0.25달러이고, 최대 10달러입니다.""")


TEMPLATES = (find_course, final_needed, tomorrow, library, admission, remark, quiz_bot, roots, words_due,
    drop, invoice, notes, nachhilfe, siganpyo)
