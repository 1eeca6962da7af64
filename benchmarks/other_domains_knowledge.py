"""Clean conversations about texts: handbooks, contracts, manuals, history, papers, code; some chat only."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from scripted import Script, comma, day, marked
from talk import Talk, tool

# fmt: off
POLICY = ("You answer questions from the documents of the workspace. Search before you answer and cite the "
    "passages as [1], [2] … in the order in which the tool gave them. Say so if the documents don't tell.\n")
CODING = "You are a careful programming assistant. Prefer small changes and say which lines you mean."
TOOLS = [
    tool("search_docs", "Passages that fit a query", query="string", top_k="integer?"),
    tool("open_page", "A page of a document", doc="string", page="integer"),
    tool("read_file", "A file with line numbers", path="string"),
    tool("edit_file", "Replace a line", path="string", line="integer", text="string"),
    tool("run_tests", "Run the tests", path="string?"),
    tool("delete_doc", "Delete a document", doc="string"),
]
MARKS = marked(TOOLS, "edit_file run_tests", "delete_doc")


def _talk(*results: Any, policy: str = POLICY) -> Script:
    return Script(TOOLS, MARKS, policy, results)


def _bare() -> Script:
    """Without tools and without a policy."""
    return Script([], {}, "", ())


def _found(*passages: tuple[str, int, str]) -> dict[str, Any]:
    """What a search gives: the document, the page and the text of each passage."""
    keys = [{"n": n + 1, "doc": doc, "page": page, "score": 0.91 - 0.07 * n, "text": text}
            for n, (doc, page, text) in enumerate(passages)]
    return {"results": [{**entry, "score": round(entry["score"], 2)} for entry in keys]}


def handbook(rng: Random) -> Talk:
    """Citations with pages, a quote, weeks and percentages; what the documents do not tell."""
    weeks, pay, notice, months = rng.choice([12, 14, 16]), rng.choice([75, 80]), rng.choice([8,
        10]), rng.choice([9, 12])
    page, year = rng.randint(21, 48), rng.randint(2022, 2024)
    text = _found(("handbook.pdf", page, f"## 6.2 Parental leave\nEmployees who have been with us for at "
        f"least {months} months may take {weeks} weeks of parental leave at {pay}% of base pay. Leave may be "
        f"split into two blocks, both within the first year after birth or adoption. Notice: {notice} weeks "
        "in writing."), ("handbook.pdf", page + 1, "## 6.3 Return to work\nDuring the first 4 weeks after "
        "the return, staff may work 60% of their usual hours at full pay. Lactation rooms are on floors 2 "
        "and 5."), ("benefits_faq.md", 3, f"Q: Does health cover go on during leave? A: Yes, unchanged. "
        f"(updated {year}-11-04)"))
    return _talk(text).tell(f"""
U how long is parental leave and how much of my pay do i get
C search_docs query="parental leave duration pay" top_k:=3
A You can take **{weeks} weeks at {pay}% of base pay**, if you've been with the company for at least \
{months} months [1]. The leave may be split into two blocks within the first year. Health cover goes on \
unchanged [3].
U where does it say that exactly
A In section 6.2 of the handbook, page {page}: "Employees who have been with us for at least {months} months \
may take {weeks} weeks of parental leave at {pay}% of base pay." [1]
U and coming back part time?
A Yes: for the first 4 weeks after your return you may work 60% of your usual hours at full pay (section 6.3,\
 page {page + 1}) [2].
U i need to tell them 4 weeks before right
A No, {notice} weeks, and in writing [1].""")


def contract(rng: Random) -> Talk:
    """Clauses of a contract, amounts, a date from a period of notice, a clause the user got wrong."""
    start, years, cap = date(2023, rng.randint(2, 9), 1), rng.choice([2, 3]), 50000 * rng.randint(3, 9)
    clause, days, late = rng.randint(8, 13), rng.choice([60, 90]), rng.choice(["1.0", "1.5"])
    end = start.replace(year=start.year + years) - timedelta(days=1)
    text = (f"MASTER SERVICES AGREEMENT No. {rng.randint(1000, 9999)}-B\n\n{clause}.1 Term. This Agreement "
        f"commences on {start:%B} 1, {start.year} (the \"Effective Date\") and continues until {end:%B} "
        f"{end.day}, {end.year} (the \"Initial Term\").\n{clause}.2 Renewal. It renews for successive "
        f"periods of twelve (12) months unless either party gives written notice at least {days} days before "
        f"the end of the then-current term.\n{clause}.3 Late payment. Undisputed sums bear interest at "
        f"{late}% per month from the 31st day after receipt of the invoice.\n{clause + 1}.1 Liability. "
        f"Neither party's aggregate liability shall exceed USD {cap:,}, save for clause {clause + 1}.4 (Data "
        "breach).")
    last = end - timedelta(days=days)
    return _talk({"doc": "msa.docx", "page": 7, "pages": 19, "text": text}).tell(f"""
U summarize p 7 of msa.docx pls, whats the term & notice
C open_page doc=msa.docx page:=7
A **Page 7 of 19**\n\n- **Term ({clause}.1):** {start:%B} 1, {start.year} to {end:%B} {end.day}, {end.year}\
\n- **Renewal ({clause}.2):** 12 months at a time, unless notice is given at least {days} days before the end\
\n- **Late payment ({clause}.3):** {late}% interest per month from the 31st day after receipt of the invoice\
\n- **Liability ({clause + 1}.1):** capped at USD {cap:,}, except for data breaches ({clause + 1}.4)
U so by when would we have to give notice
A At the latest on {last:%B} {last.day}, {last.year}, {days} days before {day(end)}. It has to be in writing.
U liability is {clause}.4 no?
A No, liability is clause {clause + 1}.1. The exception it names is {clause + 1}.4, data breach.""")


def camera(rng: Random) -> Talk:
    """Product specifications, two models compared, a wrong value corrected, a page opened."""
    mp, shots, gram, iso = rng.choice([24.2, 26.1, 32.5]), rng.randint(31, 62) * 10, rng.randint(380,
        690), rng.choice([25600, 51200])
    more, page = rng.randint(7, 16) * 10, rng.randint(88, 140)
    text = _found(("T30_manual.pdf", page, f"Specifications T30 — Sensor: APS-C, {mp} MP. ISO 100–{iso}. "
        f"Shutter 30–1/8000 s. Battery NP-{mp:.0f}: approx. {shots} shots (CIPA). Weight {gram} g incl. "
        "battery and card. Video 4K 60p, 10-bit. USB-C, charging at 9 V/3 A."), ("T20_manual.pdf", 79,
        "Specifications T20 — Sensor: APS-C, 20.1 MP. ISO 100–12800. Shutter 30–1/4000 s. Battery: approx. "
        f"{shots - more} shots. Weight {gram + 45} g incl. battery. Video 4K 30p, 8-bit. Micro-USB."))
    errors = "Err 02: card cannot be read. Err 20: mechanical fault, turn off and on. Err 70: battery low."
    return _talk(text, {"doc": "T30_manual.pdf", "page": 131, "pages": 162, "text": errors}).tell(f"""
U T20 vs T30, is it worth it
C search_docs query="specifications T20 T30"
A | | T30 [1] | T20 [2] |\n|---|---|---|\n| Sensor | {mp} MP | 20.1 MP |\n| ISO | up to {iso:,} | up to 12,\
800 |\n| Shutter | up to 1/8000 s | up to 1/4000 s |\n| Battery | {shots} shots | {shots - more} shots |\n| \
Weight | {gram} g | {gram + 45} g |\n| Video | 4K 60p | 4K 30p |\n\nThe T30 is better on every line and {45} \
g lighter; its main gain is 4K at 60p.
U so same sensor size. and usb c on both?
A Yes, both are APS-C. USB-C only on the T30, though; the T20 has Micro-USB [2].
U my t30 shows err 20
C open_page doc=T30_manual.pdf page:=131
A Err 20 is a mechanical fault; the manual says to switch the camera off and on (page 131).""")


def bridge(rng: Random) -> Talk:
    """History: years, spans of time, metres to feet, three sources, one mistaken for another."""
    begun, took, long = rng.randint(1861, 1889), rng.randint(4, 11), rng.randint(212, 689)
    opened, men, fell = begun + took, rng.randint(310, 890), rng.randint(1911, 1938)
    text = _found(("town_history.md", 44, f"Work on the Aldon Bridge began in May {begun} under the engineer "
        f"Ruth Halloran's father, James Halloran (1829–1904). Some {men} men were employed. It was opened on "
        f"3 September {opened} by the Duchess of Kent and, at {long} metres, was the longest in the county "
        f"until {fell}."), ("guide_1955.txt", 12, f"The bridge ({opened}) has nine arches and cost "
        f"£{took * 21},400. Toll was charged until {fell + 8}."), ("newspaper.txt", 1, f"4 Sept. {opened}. "
        "Yesterday the great bridge was opened before twelve thousand spectators."))
    return _talk(text).tell(f"""
U When was the Aldon bridge built and who did it?
C search_docs query="Aldon Bridge construction engineer"
A Construction began in May {begun} under James Halloran (1829–1904), and the bridge was opened on 3 \
September {opened} [1] – a good {took} years later. Around {men} men worked on it.
U how long is it, in feet
A {long} metres [1], i.e. about {long / 0.3048:,.0f} feet.
U was it the longest until {fell + 8}
A Until {fell}, according to the town history [1]. {fell + 8} is when the toll ended [2].
U cost? and how many people came to the opening
A It cost £{took * 21},400 [2], and a newspaper of the following day wrote of twelve thousand spectators \
[3].""")


def changelog(rng: Random) -> Talk:
    """Versions and dates in Markdown, what was removed when, an upgrade path."""
    major, minor, patch, port = rng.randint(3, 6), rng.randint(2, 9), rng.randint(1, 4), rng.choice([7070,
        8443, 9400])
    issue, secs = rng.randint(1100, 4800), rng.choice([45, 90])
    text = (f"# Changelog\n\n## {major}.0.0 — 2025-02-11\n### Breaking\n- Python 3.8 is no longer supported; "
        f"3.10 or later is needed.\n- The default port is now {port} (was 8000).\n- `Client.fetch_all()` was "
        f"removed; use `Client.stream()` (#{issue}).\n### Fixed\n- Retries honour `Retry-After` "
        f"(#{issue + 31}).\n\n## {major - 1}.{minor}.{patch} — 2024-10-02\n- The timeout rises from 30 to "
        f"{secs} seconds.\n- `Client.fetch_all()` is deprecated.\n\n## {major - 1}.{minor}.0 — 2024-07-19\n- "
        f"Adds `--json` to the CLI.\n- Wheels for macOS arm64.\n")
    old = f"{major - 1}.{minor}.{patch - 1}" if patch > 1 else f"{major - 1}.{minor}.0"
    return _talk().tell(f"""
U were on {old} of tidepool, anything breaking if we go to {major}.0?
C read_file path=CHANGELOG.md
R {text}
A Yes, **{major}.0.0** (February 11, 2025) has three breaking changes:\n\n1. Python 3.10 or later is \
required; 3.8 is no longer supported.\n2. The default port changed from 8000 to **{port}**.\n3. \
`Client.fetch_all()` is gone – use `Client.stream()` instead (#{issue}).\n\nOn the way you'd also pass \
{major - 1}.{minor}.{patch} (October 2, 2024), which raised the timeout from 30 to {secs} seconds and \
deprecated `fetch_all()`.
U since when is there --json
A Since {major - 1}.{minor}.0, released on July 19, 2024.
U and #{issue + 31}?
A That's a fix in {major}.0.0: retries now honour `Retry-After`.""")


def off_by_one(rng: Random) -> Talk:
    """Code with line numbers, an edit, tests before and after, a coverage."""
    line, total, cover = rng.randint(14, 38), rng.randint(61, 189), rng.randint(811, 948) / 10
    size, secs = rng.choice([20, 25, 50]), rng.randint(21, 93) / 10
    code = [f"PAGE_SIZE = {size}", "", "def page(items, number):", '    """Page `number`, counted from 1."""',
            "    start = number * PAGE_SIZE", "    return items[start:start + PAGE_SIZE]"]
    source = "\n".join(f"{line + n}\t{text}".rstrip() for n, text in enumerate(code))
    bad = "FAILED tests/test_page.py::test_first_page - assert [] == [1, 2, 3]\n"
    bad += f"1 failed, {total - 1} passed in {secs}s"
    good = f"{total} passed in {secs - 0.4:.1f}s\nTOTAL coverage {cover}%"
    return _talk(bad, source, {"ok": True, "line": line + 4}, good, policy=CODING).tell(f"""
U a test in tests/test_page.py fails, can u look
C run_tests path=tests
C read_file path=app/page.py
A One of {total} tests fails: `test_first_page` gets `[]` instead of `[1, 2, 3]`. The cause is line \
{line + 4} of `app/page.py`: pages count from 1, but `start = number * PAGE_SIZE` skips the first {size} \
items. It should be\n\n```python\nstart = (number - 1) * PAGE_SIZE\n```\n\nShall I change it?
U yes
C edit_file path=app/page.py line:={line + 4} text="    start = (number - 1) * PAGE_SIZE"
C run_tests
A Fixed in line {line + 4}. All {total} tests pass now ({secs - 0.4:.1f} s), coverage is {cover}%.
U so page 3 starts at which item
A At index {2 * size}, i.e. item number {2 * size + 1}: two pages of {size} come before it.""")


def traceback_help(rng: Random) -> Talk:
    """No tool: an error message that the user pasted, its line, versions, a code block."""
    line, upper, n = rng.randint(18, 160), rng.randint(190, 320), rng.randint(3, 12)
    minor = rng.choice([11, 12])
    return Script([], {}, CODING, ()).tell(f"""
U help:\n```\nTraceback (most recent call last):\n  File "etl/load.py", line {upper}, in <module>\n    main()\
\n  File "etl/load.py", line {line}, in main\n    total = sum(row["qty"] for row in rows)\nTypeError: \
unsupported operand type(s) for +: 'int' and 'str'\n```\npython 3.{minor}, csv has {n}k rows
A The error comes from line {line}: `csv.DictReader` gives **strings**, so `sum` tries to add `'int'` and \
`'str'`. Convert each value first:\n\n```python\ntotal = sum(int(row["qty"]) for row in rows)\n```\n\nLine \
{upper} is only where `main()` is called. With {n},000 rows the conversion takes no noticeable time.
U now: ValueError: invalid literal for int() with base 10: ''
A Then at least one row has an empty `qty`. To count those as 0:\n\n```python\ntotal = sum(int(row["qty"] or \
0) for row in rows)\n```\n\nThat works in Python 3.{minor} and in older versions alike.
U same line right
A Yes, line {line}; nothing else has to change.""")


def leaflet(rng: Random) -> Talk:
    """A leaflet: doses, a maximum a day, storage, what it does not tell."""
    mg, times, years, temp = rng.choice([200, 400]), rng.choice([3, 4]), rng.choice([12, 14]), rng.choice([25,
        30])
    hours, rare = 24 // times, rng.choice(["1 in 1,000", "1 in 10,000"])
    text = _found(("leaflet_ibrelan.pdf", 2, f"3. How to take Ibrelan. Adults and adolescents from {years} "
        f"years: 1 tablet ({mg} mg) up to {times} times a day, at least {hours} hours apart. Do not take "
        f"more than {mg * times} mg in 24 hours. Do not use for longer than 3 days without medical advice."),
        ("leaflet_ibrelan.pdf", 4, f"4. Side effects. Common (up to 1 in 10): heartburn, nausea. Rare (up to "
        f"{rare}): skin rash. 5. Storage. Below {temp} °C. Use within 6 months of opening."))
    return _talk(text).tell(f"""
U how many ibrelan can i take per day? im 34
C search_docs query="Ibrelan dose adults"
A According to the leaflet (page 2), adults may take 1 tablet ({mg} mg) up to {times} times a day, at least \
{hours} hours apart, so no more than {mg * times} mg in 24 hours [1]. Not for longer than 3 days without \
medical advice.
U took one at 8am, when can i take the next
A At {8 + hours if 8 + hours <= 12 else 8 + hours - 12} p.m. at the earliest.
U is my {years - 1} yr old son ok with it
A The leaflet gives a dose only from {years} years on, so please ask a doctor or pharmacist first.
U side effects?
A Common are heartburn and nausea (up to 1 in 10); a skin rash is rare (up to {rare}) [2].""")


def planets(rng: Random) -> Talk:
    """No tool: common knowledge, chatty, numbers that everybody can check."""
    age = rng.randint(19, 44)
    return _bare().tell(f"""
U quiz night tmrw, quick: how many planets & biggest one?
A Eight! 🪐 And the biggest is **Jupiter** – more than 11 times as wide as Earth.
U year of the moon landing, and who
A July 20, 1969: Neil Armstrong and Buzz Aldrin, while Michael Collins stayed in orbit. 🚀
U wasnt it 1968
A That was Apollo 8, which flew around the Moon in December 1968 without landing. Apollo 11 landed in 1969.
U how many bones do i have lol im {age}
A As an adult, 206! Babies start with around 300, and some grow together later. 🦴
U boiling point of water in F? and how long did ww1 last
A 212 °F (100 °C) at sea level. World War I lasted a little over four years, from July 28, 1914 to November \
11, 1918.""")


def more_pancakes(rng: Random) -> Talk:
    """No tool: the user's recipe for more people, halves, a time."""
    people, flour, milk, eggs = rng.choice([6, 8]), rng.choice([200, 250]), rng.choice([300,
        400]), rng.choice([2, 3])
    by, per = people / 4, rng.choice([2, 3])
    return _bare().tell(f"""
U My pancake recipe is for 4: {flour} g flour, {milk} ml milk, {eggs} eggs, pinch of salt. Need it for \
{people}
A For {people} people, take {by:g} times everything:\n\n- **{flour * by:g} g** flour\n- **{milk * by:g} ml** \
milk\n- **{eggs * by:g}** eggs{" (4 large or 5 small ones)" if eggs * by == 4.5 else ""}\n- a pinch of salt
U how many pancakes is that, {per} each
A {people * per} in total. At about 3 minutes per pancake in one pan, plan for roughly {people * per * 3} \
minutes.
U and without eggs?
A For each egg, a quarter of a cup (about 60 g) of unsweetened applesauce works well, or half a mashed \
banana.""")


def trial(rng: Random) -> Talk:
    """A paper: a table, a p-value, shares of two groups, what the authors concede."""
    n, drop, weeks = 2 * rng.randint(61, 148), rng.randint(5, 17), rng.choice([8, 12, 16])
    a, b, p = rng.randint(41, 68) / 10, rng.randint(11, 29) / 10, rng.choice(["0.003", "0.012", "0.021"])
    text = _found(("sleep_trial.pdf", 5, f"Results. Of {n} randomised participants ({n // 2} per arm), "
        f"{drop} were lost to follow-up. At week {weeks} the mean PSQI score had fallen by {a} points (SD "
        f"2.9) in the CBT-I group and by {b} (SD 3.1) in the control group (p = {p}). Adherence was "
        f"{rng.randint(71, 93)}%."), ("sleep_trial.pdf", 9, "Limitations. The study was not blinded, the "
        "sample was 72% female, and the follow-up was short."))
    return _talk(text).tell(f"""
U what did the sleep trial find?
C search_docs query="sleep trial results PSQI" top_k:=2
A After {weeks} weeks, the PSQI score had fallen by **{a} points** with CBT-I and by **{b} points** in the \
control group (p = {p}) [1]. {n} people were randomised, {n // 2} to each arm.
U so a difference of what
A {a - b:.1f} points between the groups.
U how many finished & what are the caveats
A {drop} were lost to follow-up, so {n - drop} of {n} remained [1]. The authors name three limitations: no \
blinding, a sample that was 72% female, and a short follow-up [2].
U significant at 1%?
A {"Yes" if p == "0.003" else "No"}, p = {p} is {"below" if p == "0.003" else "above"} 0.01.""")


def rate_limits(rng: Random) -> Talk:
    """An API's documentation: limits per plan, status codes, a header, a version."""
    free, pro, size, ttl = rng.choice([60, 100]), rng.choice([600, 1200]), rng.choice([5, 8]), rng.choice([30,
        60])
    ver = f"2025-0{rng.randint(1, 6)}-15"
    text = _found(("limits.md", 1, f"| Plan | Requests per minute | Burst | Body |\n|---|---|---|---|\n| "
        f"Free | {free} | 10 | 1 MB |\n| Pro | {pro} | 100 | {size} MB |\n| Enterprise | custom | custom | "
        f"50 MB |\nAbove the limit you get `429` with `X-Retry-In` (seconds)."), ("auth.md", 1, f"Access "
        f"tokens are valid for {ttl} minutes, refresh tokens for 14 days. An expired token gives `401` "
        "`token_expired`. A missing scope gives `403`."), ("versioning.md", 1, f"Send `Api-Version: {ver}`. "
        "Versions are supported for 18 months. Without the header: 2023-08-01."))
    return _talk(text).tell(f"""
U getting 429s on the pro plan, whats the limit
C search_docs query="rate limit 429 plans" top_k:=3
A The Pro plan allows **{pro:,} requests per minute** with bursts of 100 [1], which is {pro // 60} per \
second on average. The `429` comes with a header `X-Retry-In` that tells how many seconds to wait.
U and free is {free // 2}?
A Free is {free} per minute, with bursts of 10 [1].
U now its 401 after a while
A That's probably an expired token: access tokens are valid for {ttl} minutes, then you get `401 \
token_expired` [2]. Use the refresh token, which is good for 14 days.
U which version header
A `Api-Version: {ver}` [3]. If you leave it out, you get 2023-08-01.""")


def mietvertrag(rng: Random) -> Talk:
    """German: paragraphs of a lease, an amount, a deposit, a date."""
    rent, extra, m2 = 10 * rng.randint(62, 118), 10 * rng.randint(14, 26), rng.randint(48, 92)
    floor, start = rng.randint(1, 4), date(2022, rng.randint(3, 11), 1)
    month = ["März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober",
        "November"][start.month - 3]
    text = (f"§ 1 Mietsache: Wohnung im {floor}. OG links, {m2} m², 2 Zimmer, Keller Nr. {floor + 10}.\n§ 3 "
        f"Mietzeit: Beginn {start:%d.%m.%Y}, unbefristet.\n§ 4 Miete: {rent},00 EUR, "
        f"Betriebskosten-Vorauszahlung {extra},00 EUR, fällig am 3. Werktag.\n§ 6 Kaution: drei "
        f"Nettokaltmieten, zahlbar in drei Raten.\n§ 11 Schönheitsreparaturen: trägt der Vermieter.")
    return _talk({"doc": "mietvertrag.pdf", "page": 2, "pages": 9, "text": text}).tell(f"""
U was steht auf seite 2 vom mietvertrag zu miete und kaution?
C open_page doc=mietvertrag.pdf page:=2
A Nach **§ 4** beträgt die Miete {rent} € plus {extra} € Betriebskosten, zusammen {rent + extra} € im Monat, \
fällig am 3. Werktag. Die Kaution (§ 6) beträgt drei Nettokaltmieten, also {3 * rent} €, zahlbar in drei \
Raten.
U wie groß war die wohnung nochmal, {m2 + 6} qm?
A Laut § 1 sind es {m2} m² mit 2 Zimmern im {floor}. Obergeschoss. Dazu gehört der Keller Nr. {floor + 10}.
U ab wann und muss ich streichen
A Das Mietverhältnis begann am 1. {month} 2022. Die Schönheitsreparaturen trägt der Vermieter (§ 11).""")


def museo(rng: Random) -> Talk:
    """Spanish: opening hours, prices with decimal commas, a year."""
    year, rooms, price, works = rng.randint(1871, 1928), rng.randint(14, 36), rng.randint(13,
        27) / 2, rng.randint(21, 87) * 100
    text = _found(("guia.md", 6, f"El Museo de la Ría abrió sus puertas en {year} y ocupa {rooms} salas. Su "
        f"colección reúne {works} obras, de las que se expone un 15 %. Entrada general: {comma(price)} €; "
        f"reducida: {comma(price / 2)} €. Gratis los domingos desde las 14:00."), ("guia.md", 7, "Horario: "
        "de martes a sábado de 10:00 a 20:00, domingos de 10:00 a 15:00. Lunes cerrado. Última entrada, 45 "
        "minutos antes del cierre."))
    return _talk(text).tell(f"""
U cuanto cuesta el museo de la ría y que horario tiene
C search_docs query="Museo de la Ría precio horario"
A La entrada general cuesta {comma(price)} € y la reducida, {comma(price / 2)} € [1]. Abre de martes a \
sábado de 10:00 a 20:00 y los domingos de 10:00 a 15:00; los lunes cierra [2].
U si voy el sábado, hasta qué hora puedo entrar
A Hasta las 19:15, 45 minutos antes del cierre [2].
U es de {year + 20} no?
A No, abrió en {year} [1]. Tiene {rooms} salas y {works} obras, aunque solo expone alrededor de un 15 %.""")


def shouce(rng: Random) -> Talk:
    """Chinese: a manual of a rice cooker, minutes, litres, an error code."""
    watt, litres, mins, code = rng.choice([450, 600, 860]), rng.choice([3, 4, 5]), rng.randint(38,
        55), rng.choice(["E1", "E3"])
    page, months = rng.randint(4, 12), rng.choice([12, 18, 24])
    text = _found(("电饭煲说明书.pdf", page, f"额定功率 {watt} W,容量 {litres} L,电源 220 V / 50 Hz。精煮约 "
        f"{mins} 分钟,快煮约 {mins - 14} 分钟,保温最长 24 小时。"), ("电饭煲说明书.pdf", page + 9,
        f"故障代码:{code} 底部温度传感器断路,请停止使用并联系售后。保修期 {months} 个月,自购买之日起计算。"))
    return _talk(text).tell(f"""
U 这个电饭煲煮饭要多久?功率多大?
C search_docs query="电饭煲 煮饭 时间 功率"
A 精煮约 {mins} 分钟,快煮约 {mins - 14} 分钟,额定功率为 {watt} 瓦 [1]。
U 显示 {code} 怎么办,还在保修吗,买了 10 个月
A {code} 表示底部温度传感器断路,请先停止使用并联系售后 [2]。保修期是 {months} 个月,您才用了 10 个月,\
还在保修期内。
U 容量是 {litres + 1} 升吧
A 不是,是 {litres} 升(第 {page} 页)[1]。""")


TEMPLATES = (handbook, contract, camera, bridge, changelog, off_by_one, traceback_help, leaflet, planets,
    more_pancakes, trial, rate_limits, mietvertrag, museo, shouce)
