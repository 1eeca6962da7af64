"""Clean conversations of an office: calendar, mail, files, tickets, builds, logs, queries, sheets, code."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, comma, day, listed, marked, rows
from talk import Talk, tool

POLICY = (
    "You are Desk, the office assistant of Larkspur Ltd. Answer in the user's language.\n"
    "Working hours are 9:00 to 17:30, Monday to Friday. Times are London times unless a zone is given.\n"
    "Tickets: P1 solved within 4 hours, P2 within 2 working days, P3 within 5 working days.\n"
    "Deleted files stay in the bin for 30 days. 1 GB is 1,000 MB. No deploys on Fridays after 15:00.\n"
    "Ask for a yes before you delete anything or roll back a release.\n"
)
TOOLS = [
    tool("list_events", "Events of a day", owner="string", date="string"),
    tool("create_event", "New event", title="string", start="string", minutes="integer", guests="array?"),
    tool("update_event", "Change an event", event_id="string", start="string"),
    tool("delete_event", "Delete an event", event_id="string"),
    tool("search_mail", "Search the mailbox", query="string", limit="integer?"),
    tool("read_mail", "One mail", mail_id="string"),
    tool("list_files", "Files of a folder", folder="string"),
    tool("delete_files", "Move files to the bin", ids="array"),
    tool("read_sheet", "A sheet as CSV", sheet="string", range="string?"),
    tool("run_sql", "Run a query", sql="string"),
    tool("get_ticket", "One ticket", ticket="string"),
    tool("search_issues", "Issues of a project", project="string", state="string?"),
    tool("update_ticket", "Change a ticket", ticket="string", priority="string?", owner="string?"),
    tool("get_build", "One build of the CI", build="integer"),
    tool("rerun_build", "Run a build again", build="integer"),
    tool("get_logs", "Lines of a log", service="string", level="string?"),
    tool("list_deploys", "Latest deploys", service="string"),
    tool("rollback", "Go back to a version", service="string", version="string"),
    tool("search_code", "Search the code", query="string"),
]
WRITES = "create_event update_event update_ticket rerun_build"
MARKS = marked(TOOLS, WRITES, "delete_event delete_files rollback")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def free_slot(rng: Random) -> Talk:
    """Gaps between events, hours in meetings, a slot proposed and changed, a meeting made shorter."""
    today, late = date(2025, 3, rng.randint(3, 6)), rng.choice([0, 15, 30])
    when, end = today + timedelta(days=1), ["09:45", "10:30", "12:30", f"14:{late or '00'}", "16:30"]
    titles, room = ["Stand-up", "Hiring", "Roadmap", "1:1 Priya", "Demo"], f"{rng.randint(2, 5)}.07"
    starts, busy = ["09:15", "10:00", "11:30", "13:30", "15:30"], 210 + late
    events = [(f"ev{n}", titles[n], starts[n], end[n], "accepted", None) for n in range(5)]
    told, made = rows("event_id title start end status room", *events), {"status": "confirmed", "room": room}
    return _talk(told, made, today=today).tell(f"""
U when am i free tomorrow for an hour? need to talk budget with sam. (me = l.ortiz)
C list_events owner=l.ortiz date={when}
A Tomorrow ({when:%A}) you have five events, {busy / 60:g} hours in total. There are four gaps of an hour or \
more within working hours:\n\n- 10:30–11:30\n- 12:30–13:30\n- {end[3]}–15:30\n- 16:30–17:30\n\nWhich one \
suits you?
U lunch no. half past ten then but 45 mins is enough
C create_event title="Budget with Sam" start={when}T10:30 minutes:=45 guests:='["sam"]'
A Booked: *Budget with Sam*, 10:30–11:15 in room {room}. That leaves you 15 minutes before the roadmap \
meeting at 11:30.
""")


def three_cities(rng: Random) -> Talk:
    """One moment in three zones, a move by hours, the date changes in one of them."""
    hour, when = rng.choice([14, 15]), date(2025, 7, rng.randint(8, 24))
    event = {"event_id": "ev77", "title": "Launch sync", "start": f"{when}T{hour}:00:00+01:00", "minutes": 45}
    zones = [{"city": "New York", "utc_offset": "-04:00"}, {"city": "Tokyo", "utc_offset": "+09:00"}]
    moved = {**event, "start": f"{when}T{hour - 3}:00:00+01:00", "notified": 6}
    return _talk({"events": [{**event, "guest_zones": zones}]}, moved).tell(f"""
U what time's the launch sync on {day(when)} for the NY and tokyo folks? calendar: launch
C list_events owner=launch date={when}
A It starts at {hour}:00 in London (UTC+1), which is {hour - 5}:00 in New York and {hour + 8}:00 in Tokyo. \
It lasts 45 minutes, so Tokyo would be done at {hour + 8}:45.
U too late for them, move it 3h earlier?
A Then it'd be {hour - 3}:00 in London, {hour + 5}:00 in Tokyo – but {hour - 8}:00 in the morning in New \
York. Still OK?
U {rng.choice(["they'll survive, do it", "yes, nyc agreed already"])}
C update_event event_id=ev77 start={when}T{hour - 3}:00:00+01:00
A Moved to {hour - 3}:00–{hour - 3}:45 London time. All six guests have been notified.
""")


def invoice_mails(rng: Random) -> Talk:
    """Amounts in mails, VAT of 20 %, a sum, due dates from terms, a count of unread ones."""
    net, other, sent = 50 * rng.randint(11, 39), rng.randint(210, 480), date(2025, 5, rng.randint(2, 8))
    mails = rows(
        "mail_id from subject received unread attachments",
        ("m1", "billing@paperco.example", "Invoice 2041", f"{sent}T09:12:00Z", True, 1),
        ("m2", "accounts@hexa.example", "Invoice HX-77", f"{sent}T16:40:00Z", True, 1),
        ("m3", "noreply@survey.example", "How did we do?", f"{sent}T18:00:00Z", True, 0),
        ("m4", "dana@larkspur.example", "Re: invoice approval", f"{sent}T18:22:00Z", False, 0),
    )
    due = sent + timedelta(days=14)
    return _talk(mails).tell(f"""
U any invoices in my inbox this month? total?
C search_mail query="invoice after:2025-05-01" limit:=10
C read_mail mail_id=m1
R Hello,\n\nplease find invoice 2041: GBP {net:,}.00 net, 20% VAT extra. Terms: 14 days.\n\nPaperCo
+ read_mail mail_id=m2
R Invoice HX-77 attached. Amount due on receipt: GBP {other}.00 (VAT exempt). Kind regards, Hexa
A There are two, both from {day(sent)} and both unread:\n\n1. **PaperCo 2041**: £{net:,} net + 20% VAT \
(£{net // 5:,}) = £{net * 6 // 5:,}, due {day(due)}\n2. **Hexa HX-77**: £{other}, payable on \
receipt\n\nTogether £{net * 6 // 5 + other:,}. The other two mails are a survey and Dana's reply, not \
invoices.
U paperco says 14 days right? so whats the weekday
A Yes, 14 days from {sent:%A}, {day(sent)} – that's {due:%A}, {day(due)}.
""")


def file_cleanup(rng: Random) -> Talk:
    """Bytes to MB and GB, a filter by size, a sum, files deleted after a yes, a share of the quota."""
    big = [rng.randint(310, 980) * 1_000_000 for _ in range(3)]
    names = ["demo_final.mp4", "demo_final2.mp4", "backup_old.zip", "notes.docx", "plan.xlsx", "logo.png"]
    sizes, freed = [*big, 48_200, 120_400, 2_100_000], sum(big)
    files = [(f"f{n}", names[n], sizes[n], f"202{3 + n // 3}-0{n + 2}-11T08:00:00Z", None) for n in range(6)]
    used = rng.choice([8, 12, 14]) * 1_000_000_000
    result = {"files": rows("id name size_bytes modified shared_with", *files), "quota_bytes": 15_000_000_000}
    gone = {"deleted": 3, "freed_bytes": freed, "used_bytes": used - freed, "restorable_until": "2025-07-02"}
    return _talk({**result, "used_bytes": used}, gone, today=date(2025, 6, 2)).tell(f"""
U im running out of space. whats big in /projects/demo
C list_files folder=/projects/demo
A You use {used // 10**9} of 15 GB ({used / 15e7:.0f}%). Three of the six files there take up nearly \
everything:\n\n- demo_final.mp4 – {big[0] // 10**6} MB\n- demo_final2.mp4 – {big[1] // 10**6} MB\n- \
backup_old.zip – {big[2] // 10**6} MB\n\nTogether that's {freed / 1e9:.2f} GB. All three were last changed \
in 2023. Shall I delete them?
U can i get em back if i regret it
A Yes, they stay in the bin for 30 days, so until July 2.
U ok delete
C delete_files ids:='["f0","f1","f2"]'
A Done, {freed / 1e9:.2f} GB freed. You're now at about {(used - freed) / 1e9:.1f} GB of 15 GB. The three \
small ones are still there.
""")


def ticket_deadline(rng: Random) -> Talk:
    """Terse. Hours since a ticket, a deadline from the policy, a priority changed, another deadline."""
    minute, passed, ident = rng.choice([5, 20, 40]), rng.choice([2, 3]), f"IT-{rng.randint(3000, 3999)}"
    opened = {"created": f"2025-02-12T10:{minute:02}:00Z", "priority": "P1", "owner": None, "status": "open"}
    fewer = {"ticket": ident, "priority": "P2", "owner": None, "due": f"2025-02-14T10:{minute:02}:00Z"}
    return _talk(opened, fewer, today=date(2025, 2, 12)).tell(f"""
U {ident} deadline?
C get_ticket ticket={ident}
A P1, opened 10:{minute:02}, so due 14:{minute:02} today. No owner yet.
U its {10 + passed}:{minute:02} now
A Then {passed} of 4 hours are gone, {4 - passed} left.
U make it p2, only 1 printer is down
C update_ticket ticket={ident} priority=P2
A {ident} is P2 now. Due in 2 working days: Friday, Feb 14, 10:{minute:02}.
""")


def build_failed(rng: Random) -> Talk:
    """A log with counts, seconds to minutes, a flaky test, a rerun that passes, a difference in time."""
    total, failed, skipped = rng.randint(812, 990), rng.choice([2, 3]), rng.randint(4, 11)
    secs, build, faster = rng.randint(431, 560), rng.randint(5100, 5999), rng.randint(12, 48)
    tests = rng.sample(["test_refund", "test_login_2fa", "test_export_csv", "test_retry_503"], failed)
    lines = "\n".join(f"FAILED tests/test_api.py::{name} - TimeoutError: 30.0s" for name in tests)
    first = {"build": build, "state": "failed", "branch": "main", "sha": "9f3c1ab", "duration_s": secs}
    good = {"passed": total - skipped, "failed": 0, "skipped": skipped}
    again = {"build": build + 1, "state": "passed", "duration_s": secs - faster, "tests": good}
    return _talk(first, again).tell(f"""
U why did build {build} fail
C get_build build:={build}
C get_logs service=ci-{build} level=error
R {lines}
=== {failed} failed, {total - failed - skipped} passed, {skipped} skipped in {secs}s ===
A Build {build} (main, `9f3c1ab`) failed after {secs // 60} min {secs % 60} s: **{failed} of {total} tests** \
ran into the 30-second timeout – {listed([f"`{name}`" for name in tests])}. {total - failed - skipped} \
passed and {skipped} were skipped. The failures are all in `tests/test_api.py`, so it looks like a slow API \
rather than {failed} separate bugs. Shall I rerun it?
U yes rerun
C rerun_build build:={build}
A Build {build + 1} passed: {total - skipped} tests green, in {(secs - faster) // 60} min \
{(secs - faster) % 60} s, which is {faster} seconds faster. So the timeouts were probably a hiccup.
""")


def sales_query(rng: Random) -> Talk:
    """A text table of a query, a total, shares, growth against the year before, an average order."""
    names, now = ["North", "South", "West", "East"], rng.sample(range(41, 98), 4)
    was, orders = [k - rng.choice([-6, -3, 5, 10, 14]) for k in now], rng.sample(range(210, 640), 4)
    top, total = now.index(max(now)), sum(now)
    lines = [f" {names[n]:<7}|  {now[n]},000.00 |  {was[n]},000.00 | {orders[n]:>6}" for n in range(4)]
    table = "\n".join(lines)
    change, kept = 100 * (total - sum(was)) / sum(was), sum(a > b for a, b in zip(now, was, strict=True))
    word = {0: "None", 1: "One", 2: "Two", 3: "Three", 4: "All"}[kept]
    return _talk().tell(f"""
U revenue by region for Q1 vs last year pls, table is sales_q
C run_sql sql="SELECT region, usd_25, usd_24, orders FROM sales_q ORDER BY id"
R  region |    usd_25  |    usd_24  | orders\n--------+------------+------------+--------
{table}\n(4 rows)
A **Q1 revenue: ${total}k**, {abs(change):.1f}% {"up" if change > 0 else "down"} from ${sum(was)}k a year \
ago. {names[top]} is the largest region with ${now[top]},000, or {100 * now[top] / total:.0f}% of the total. \
{word} of the four regions grew.
U whats the avg order in {names[top].lower()}
A ${now[top]},000 over {orders[top]} orders is about ${now[top] * 1000 / orders[top]:.2f} per order. Across \
all {sum(orders):,} orders it's ${total * 1000 / sum(orders):.2f}.
U and if {names[top].lower()} drops 10% next quarter?
A Then it'd be ${now[top] * 0.9:.1f}k, and with the others unchanged the total would come to \
${total - now[top] * 0.1:.1f}k.
""")


def budget_sheet(rng: Random) -> Talk:
    """CSV with an empty cell, over and under the budget, a percentage, a corrected cell, what remains."""
    spent = [rng.randint(4100, 5800), rng.randint(2610, 3100), rng.randint(1500, 3100)]
    over, left, more = spent[1] - 2500, 12500 - sum(spent), rng.randint(110, 290)
    return _talk().tell(f"""
U how are we doing on the team budget? sheet is TEAM-25
C read_sheet sheet=TEAM-25
R item,budget_gbp,actual_gbp,owner\nTravel,6000,{spent[0]},Mo\nSoftware,2500,{spent[1]},Ines
Training,4000,{spent[2]},\nTotal,12500,,
A You've spent £{sum(spent):,} of £12,500, i.e. {sum(spent) / 125:.1f}%, so £{left:,} are left.\n\n| Item | \
Budget | Actual | Left |
|---|---|---|---|\n| Travel | £6,000 | £{spent[0]:,} | £{6000 - spent[0]:,} |\n| **Software** | £2,500 | \
£{spent[1]:,} | **–£{over}** |
| Training | £4,000 | £{spent[2]:,} | £{4000 - spent[2]:,} |\n\nOnly Software is over, by {over / 25:.1f}%. \
Training has no owner.
U add another {more} for software, ines just told me
A With that, Software would be at £{spent[1] + more:,}, £{over + more} over its budget, and £{left - more:,} \
of the total would remain. I can read the sheet but not write to it, so please enter the £{more} yourself.
""")


def code_hits(rng: Random) -> Talk:
    """Hits as path:line, counted by file, constants in milliseconds, a value the user misremembers."""
    wait, line, more = rng.choice([1500, 4500, 7500]), rng.randint(20, 88), rng.choice([3, 5])
    return _talk().tell(f"""
U where do we set the http timeout? think its 10s
C search_code query=HTTP_TIMEOUT_MS
R src/net/client.ts:{line}: const HTTP_TIMEOUT_MS = {wait};\nsrc/net/client.ts:{line + 41}:   timeout: \
HTTP_TIMEOUT_MS,
src/net/retry.ts:14:   await sleep(HTTP_TIMEOUT_MS / {more});\ntest/net.test.ts:9: \
expect(HTTP_TIMEOUT_MS).toBe({wait})
A In `src/net/client.ts`, line {line}. It's not 10 s but {wait} ms, so {wait / 1000:g} seconds. It shows up \
4 times in 3 files: twice in `client.ts`, once in `retry.ts` and once in a test.
U what does retry do with it
A Line 14 of `retry.ts` sleeps for a {"third" if more == 3 else "fifth"} of it, i.e. {wait // more} ms.
U i'll set it to 10000 then
A OK. Then the sleep becomes about {10000 / more:,.0f} ms, and line 9 of `net.test.ts` has to expect 10000 \
instead of {wait}.
""")


def roll_back(rng: Random) -> Talk:
    """Log lines counted, deploys with epoch times, minutes between, a rollback after a yes, its effect."""
    at = datetime(2025, 9, 3, rng.randint(9, 14), rng.choice([4, 17, 38]), tzinfo=UTC)
    rate, low = rng.choice([(4.8, 0.4), (7.2, 0.6), (9.6, 0.8)])
    gap, minor = rng.randint(6, 11), rng.randint(12, 30)
    first, stamp = at + timedelta(minutes=gap), int(at.timestamp())
    new = (f"v3.{minor}.0", stamp, "j.kim", "live")
    old = (f"v3.{minor - 1}.2", stamp - 172_800, "a.roy", "previous")
    log = "\n".join(f"{first:%Y-%m-%dT%H:%M}:{7 * n:02}Z ERROR 500 NullPointer item_id" for n in range(4))
    back = {"version": f"v3.{minor - 1}.2", "state": "live", "took_s": 94, "error_rate_pct": low}
    return _talk({"deploys": rows("version at by state", new, old)}, back).tell(f"""
U checkout throws 500s!! since when? service cart
C get_logs service=cart level=error
R {log}
+ list_deploys service=cart
A The four errors in the log start at {first:%H:%M} UTC, {gap} minutes after v3.{minor}.0 went live \
({at:%H:%M} UTC, by j.kim). They all say the same: a null pointer at `item_id`. The version before, \
v3.{minor - 1}.2, is from two days earlier. Should I roll back to it?
U YES pls
C rollback service=cart version=v3.{minor - 1}.2
A Rolled back; it took about a minute and a half (94 s). v3.{minor - 1}.2 is live and the error rate is \
{low}%.
U support counted {rate}% before. so down by how much
A From {rate}% to {low}% – a twelfth of what it was, or {rate - low:.1f} percentage points less.
""")


def open_issues(rng: Random) -> Talk:
    """A list of eight issues, counts by label, the oldest in days, points added up, an owner set."""
    today, points = date(2025, 8, rng.randint(21, 27)), [rng.choice([1, 2, 3, 5]) for _ in range(8)]
    labels = ["bug", "bug", "docs", "bug", "feature", "feature", "bug", "docs"]
    days = rng.sample(range(1, 20), 8)
    owners = ["tom", None, "ada", "tom", None, "ada", "tom", None]
    base, oldest = rng.randint(400, 800), days.index(min(days))
    told = [(base + 3 * n, labels[n], owners[n], points[n], f"2025-08-{days[n]:02}T07:30Z") for n in range(8)]
    result = {"total": 8, "issues": rows("number label owner points opened", *told)}
    bugs = sum(points[n] for n in (0, 1, 3, 6))
    return _talk(result, {"ok": True, "number": base + 3, "owner": "ada"}, today=today).tell(f"""
U how many open issues in WEB and how many bugs?
C search_issues project=WEB state=open
A Eight are open, and half of them (4) are bugs: #{base}, #{base + 3}, #{base + 9} and #{base + 18}, {bugs} \
points altogether. Then there are two features and two docs issues. All eight add up to {sum(points)} \
points.
U oldest?
A #{base + 3 * oldest} ({labels[oldest]}), opened on August {days[oldest]}, {today.day - days[oldest]} days \
ago.
U which bug has nobody? give it to ada
C update_ticket ticket=#{base + 3} owner=ada
A That was #{base + 3}; it's Ada's now. She has three of the eight, as many as Tom; two are still without an \
owner.
""")


def long_friday(rng: Random) -> Talk:
    """Six turns: a day that is changed twice, sums before and after, a gap, an event deleted after a yes."""
    when, first, ident = date(2025, 11, rng.choice([7, 14, 21])), rng.choice([30, 45]), rng.randint(200, 899)
    told = [("Review", "09:30", first, 5), ("Interview", "11:00", 60, 2), ("Retro", "15:00", 90, 8)]
    events = rows("event_id title start minutes guests", *((f"ev{ident + n}", *told[n]) for n in range(3)))
    moved, all_day = {"event_id": f"ev{ident + 1}", "start": f"{when}T12:00:00Z", "minutes": 60}, first + 150
    return _talk(events, moved, {"deleted": True}, today=when - timedelta(days=1)).tell(f"""
U what's on tomorrow? p.nowak
C list_events owner=p.nowak date={when}
A Three things on {when:%A}:\n1. Review, 9:30, {first} min\n2. Interview, 11:00, 60 min\n3. Retro, 15:00, 90 \
min
U how long is that in total
A {all_day} minutes, or {all_day / 60:g} hours.
U push the interview an hour back
C update_event event_id=ev{ident + 1} start={when}T12:00:00Z
A The interview is now at 12:00 instead of 11:00 and ends at 13:00, two hours before the retro.
U and drop the retro, {rng.choice(["half the team is off", "nobody has anything to say anyway"])}
A Delete the retro at 15:00 for you and its 8 guests?
U y
C delete_event event_id=ev{ident + 2}
A Gone. {first + 60} minutes of meetings remain, {100 * (first + 60) / all_day:.0f}% of what you had.
U so when am i done
A With meetings at 1 p.m.; that leaves four and a half hours until 17:30.
""")


def reunion(rng: Random) -> Talk:
    """French: a series deleted after a yes, hours saved in a month, weekdays."""
    minutes, gens, jour = rng.choice([30, 45]), rng.choice([6, 8]), date(2025, 4, rng.choice([8, 15, 22]))
    serie = {"event_id": "ev31", "titre": "Point hebdo", "jour": "TU", "min": minutes, "participants": gens}
    return _talk([serie], {"deleted": True, "occurrences": 12}, today=jour - timedelta(days=1)).tell(f"""
U le point hebdo de demain, il dure combien déjà ? calendrier equipe
C list_events owner=equipe date={jour}
A Il dure {minutes} minutes, tous les mardis, avec {gens} participants. Le prochain a lieu demain, mardi \
{jour.day} avril.
U ça fait combien d'heures par mois au total pour tout le monde ?
A Avec 4 réunions par mois : 4 × {minutes} min × {gens} personnes = {4 * minutes * gens} minutes, soit \
{4 * minutes * gens // 60} heures de travail.
U c'est trop. supprime la série
A D'accord. Je supprime toute la série « Point hebdo » du mardi, vous confirmez ?
U oui
C delete_event event_id=ev31
A C'est supprimé : 12 dates ont été retirées du calendrier. Vous gagnez {minutes} minutes par semaine.
""")


def arkusz(rng: Random) -> Talk:
    """Polish: a sheet of hours, a sum, an hourly rate, the average of a day."""
    hours, rate = rng.sample([6.5, 7, 7.5, 8, 8.5, 9], 5), rng.choice([80, 90, 120])
    days, total = ["pon", "wt", "śr", "czw", "pt"], sum(hours)
    lines = "\n".join(f"{days[n]};{comma(hours[n], 1)}" for n in range(5))
    return _talk().tell(f"""
U hej, ile godzin mam w tym tygodniu? arkusz GODZ-18
C read_sheet sheet=GODZ-18
R dzien;godziny\n{lines}
A Cześć! Razem {comma(total, 1)} godz. w pięć dni, średnio {comma(total / 5, 1)} dziennie. Najwięcej, \
{comma(max(hours), 1)}, było w dniu „{days[hours.index(max(hours))]}”.
U a ile to kasy po {rate} zł?
A {comma(total, 1)} × {rate} zł = {comma(total * rate)} zł.
U brakuje mi 2 godzin z soboty
A Z sobotą byłoby {comma(total + 2, 1)} godz., czyli {comma((total + 2) * rate)} zł – o {2 * rate} zł więcej.
""")


def chamados(rng: Random) -> Talk:
    """Portuguese: tickets counted by state, a share, an average time to solve."""
    done, times = rng.choice([6, 7]), rng.sample(range(2, 19), 4)
    rest = 10 - done
    result = {"mes": "2025-05", "resolvidos": done, "abertos": rest, "horas_ultimos_4": times}
    return _talk(result).tell(f"""
U oi, como estao os chamados de TI de maio?
C search_issues project=TI
A Olá! Dos 10 chamados de maio, {done} estão resolvidos ({10 * done}%) e {rest} continuam abertos. Os \
últimos quatro levaram {times[0]}, {times[1]}, {times[2]} e {times[3]} horas, em média \
{comma(sum(times) / 4)} horas; o mais rápido levou {min(times)}.
U qual é o prazo pra um P3 aberto hoje, segunda dia 9?
A Um P3 tem 5 dias úteis, portanto até segunda-feira, dia 16.
""")


TEMPLATES = (
    free_slot, three_cities, invoice_mails, file_cleanup, ticket_deadline, build_failed, sales_query,
    budget_sheet, code_hits, roll_back, open_issues, long_friday, reunion, arkusz, chamados,
)  # fmt: skip
