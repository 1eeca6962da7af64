"""Clean conversations with an IT desk: tickets, cloud costs, clusters, databases, alerts, licences, git."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from random import Random
from typing import Any

from scripted import Script, comma, day, marked, near, rows, yes
from talk import Talk, tool

# fmt: off
POLICY = """You are Ops Desk, the assistant of Kelvin Labs. Tools give UTC; staff are in Berlin (UTC+2 now).
Reaction: P1 (outages only) 15 minutes, P2 4 hours, P3 2 working days. Laptops are replaced after 4 years.
Passwords have at least 14 characters and are never sent by chat. Logs are kept for 30 days.
A licence unused for 60 days may be revoked. The cloud budget is $18,000 a month; alert at 90%.
Certificates are renewed 30 days before they expire. At most 12 replicas per service.
Ask for a yes before you kill, delete, revoke, disable or revert something.
"""
TOOLS = [tool("list_tickets", "Open tickets of a user", user="string"), tool("update_ticket", "Change",
    ticket="string", priority="string?", comment="string?"), tool("cloud_costs", "Costs by service in cents",
    month="string"), tool("list_pods", "Pods of a service", service="string"), tool("set_resources",
    "Limits of a service", service="string", memory="string"), tool("scale", "Number of replicas",
    service="string", replicas="integer"), tool("rollout_status", "State of a rollout", service="string"),
    tool("running_queries", "Queries of a database", database="string"), tool("kill_query", "End a query",
    database="string", pid="integer"), tool("list_alerts", "Security alerts", since="string"),
    tool("disable_account", "Lock an account", user="string"), tool("list_licences",
    "Seats of a product as CSV", product="string"), tool("revoke_licence", "Take a seat away",
    product="string", user="string"), tool("get_metric", "Values of a metric", service="string",
    metric="string", hours="integer"), tool("get_logs", "Log lines", service="string", lines="integer"),
    tool("git_log", "Commits of a file", repo="string", path="string"), tool("revert_commit", "Revert",
    repo="string", sha="string"), tool("list_certificates", "TLS certificates", domain="string"),
    tool("renew_certificate", "Renew", certificate="string"), tool("disk_usage", "Output of df",
    host="string"), tool("delete_logs", "Delete old logs", host="string", older_than_days="integer"),
    tool("list_backups", "Backups of a database", database="string")]
WRITES = "update_ticket set_resources scale renew_certificate"
MARKS = marked(TOOLS, WRITES, "kill_query disable_account revoke_licence revert_commit delete_logs")


def _talk(*results: Any, today: date | None = None) -> Script:
    now = f"Today is {today:%A}, {today.isoformat()}.\n" if today else ""
    return Script(TOOLS, MARKS, POLICY + now, results)


def _hex(rng: Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def tickets(rng: Random) -> Talk:
    """Tickets of a user, a priority raised, a reaction time of the policy, an old laptop."""
    ids, when, bought = rng.sample(range(41000, 48999), 3), date(2025, 6, rng.randint(10, 24)), rng.randint(3,
        9)
    told = rows("id subject priority status opened_at assignee", (f"INC-{ids[0]}",
        "VPN drops every few minutes", "P3", "IN_PROGRESS", f"{when - timedelta(days=1)}T07:42:00Z",
        "k.lindt"), (f"INC-{ids[1]}", "Second monitor flickers", "P3", "OPEN",
        f"{when - timedelta(days=4)}T12:05:00Z", None), (f"REQ-{ids[2]}", "Figma seat", "P3",
        "WAITING_APPROVAL", f"{when - timedelta(days=6)}T09:10:00Z", "s.amara"))
    assets = [{"tag": f"LT-{ids[0] - 40000}", "model": "ThinkPad T14", "bought_on": f"2022-0{bought}-14"}]
    done = {"id": f"INC-{ids[0]}", "priority": "P2", "due_at": f"{when}T12:30:00Z"}
    return _talk({"user": "m.oyelaran", "tickets": told, "assets": assets}, done, today=when).tell(f"""
U what tickets do i have open? m.oyelaran
C list_tickets user=m.oyelaran
A You have three open tickets:\n\n| Ticket | Subject | Status | Opened |\n|---|---|---|---|\n| INC-{ids[0]} \
| VPN drops every few minutes | in progress (k.lindt) | {day(when - timedelta(days=1))}, 9:42 |\n| \
INC-{ids[1]} | Second monitor flickers | open | {day(when - timedelta(days=4))}, 14:05 |\n| REQ-{ids[2]} | \
Figma seat | waiting for approval | {day(when - timedelta(days=6))}, 11:10 |\n\nAll of them are P3; times \
are Berlin time.
U vpn is killing me, cant work. make it p1
A P1 is for outages only. I can raise INC-{ids[0]} to **P2**, with a reaction within 4 hours. OK?
U fine
C update_ticket ticket=INC-{ids[0]} priority=P2
A INC-{ids[0]} is P2 now. You'll hear from us by **14:30** today.
U could i get a new laptop btw, this one's 4 years old i think
A Not yet: your ThinkPad T14 (LT-{ids[0] - 40000}) was bought in {date(2022, bought, 14):%B} 2022, and \
laptops are replaced after 4 years, so in {date(2026, bought, 14):%B} 2026.""")


def cloud_bill(rng: Random) -> Talk:
    """Costs of two months by service, the largest rise, the share of the budget."""
    names, old, rise = ["compute", "storage", "database", "network", "logging"], [rng.randint(480000, 590000),
        rng.randint(120000, 190000), rng.randint(310000, 380000), rng.randint(70000, 99000),
        rng.randint(40000, 69000)], [rng.randint(2000, 20000), rng.randint(-9000, 9000), rng.randint(1000,
        9000), rng.randint(-5000, 5000), rng.randint(90000, 160000)]
    new = [a + b for a, b in zip(old, rise, strict=True)]
    told = [{"month": f"2025-0{month}", "currency": "USD", "items": rows("service cents", *zip(names, cents,
        strict=True)), "total_cents": sum(cents)} for month, cents in ((7, new), (6, old))]
    body = "\n".join(f"| {name} | ${a / 100:,.2f} | ${b / 100:,.2f} |" for name, a, b in zip(names, old, new,
        strict=True))
    return _talk(*told).tell(f"""
U why is the cloud bill for july higher than june
C cloud_costs month=2025-07
+ cloud_costs month=2025-06
A | Service | June | July |\n|---|---|---|\n{body}\n| **Total** | **${sum(old) / 100:,.2f}** | \
**${sum(new) / 100:,.2f}** |\n\nThe main reason is **logging**, up by ${rise[4] / 100:,.2f}.
U how far are we from the budget? its 20k right
A The budget is $18,000 a month, so July used {near(sum(new) / 18000)}% of it. The alert at 90% \
(${18000 * 0.9:,.0f}) was not reached.""")


def oom(rng: Random) -> Talk:
    """Pods with restarts and reasons, memory raised, new pods afterwards, a limit of the policy."""
    ids, restarts = [_hex(rng, 5) for _ in range(4)], [rng.randint(7, 19), 0, rng.randint(3, 6), 0]
    used, hash_, new, told = rng.sample(range(288, 498), 4), _hex(rng, 9), _hex(rng, 9), []
    for n in range(4):
        told.append({"name": f"checkout-{hash_}-{ids[n]}", "status": ["CrashLoopBackOff", "Running"][n > 0]})
        last = {"reason": "OOMKilled", "exit_code": 137} if restarts[n] else None
        told[n] |= {"restarts": restarts[n], "memory": f"{used[n] + n}Mi", "limit": "512Mi",
            "last_state": last}
    made = {"service": "checkout", "limits": {"memory": "768Mi"}, "revision": 41}
    done = {"revision": 41, "template_hash": new, "desired": 4, "ready": 4, "restarts": 0}
    return _talk({"namespace": "prod", "pods": told}, made, done).tell(f"""
U checkout is flapping, can you look
C list_pods service=checkout
A Two of the four pods restart because they run out of memory (`OOMKilled`, exit code 137):\n\n- `{ids[0]}`: \
{restarts[0]} restarts, CrashLoopBackOff\n- `{ids[2]}`: {restarts[2]} restarts, running with \
{used[2] + 2}Mi\n\n`{ids[1]}` and `{ids[3]}` have none. The limit is 512Mi.
U 1 gig?
A 1Gi works, but 768Mi, half as much again, should do for a start. Which one?
U ok 768
C set_resources service=checkout memory=768Mi
C rollout_status service=checkout
A Memory limit is now **768Mi** (revision 41). All 4 pods are ready with 0 restarts; the hash changed from \
`{hash_}` to `{new}`.
U and scale it to 15 for black friday
A I can go up to 12 replicas per service; it has 4 now. Shall I set 12?
U nah not today
A All right, checkout stays at 4 replicas.""")


def stuck_query(rng: Random) -> Talk:
    """Running queries with seconds, one killed after a yes."""
    pids, secs = rng.sample(range(10000, 32000), 4), [rng.randint(2, 9), 60 * rng.randint(31, 88),
        rng.randint(11, 48), rng.randint(100, 170)]
    told, done = rows("pid user state seconds waiting_on query", (pids[0], "web", "active", secs[0], None,
        "SELECT * FROM carts WHERE id = $1"), (pids[1], "report", "active", secs[1], None,
        "SELECT o.*, c.* FROM orders o, customers c WHERE o.total > 0"), (pids[2], "web", "active", secs[2],
        pids[1], "UPDATE orders SET status = $1 WHERE id = $2"), (pids[3], "web", "active", secs[3], pids[1],
        "ALTER TABLE orders ADD COLUMN note text")), {"pid": pids[1], "terminated": True, "blocked_now": 0}
    return _talk({"database": "shop", "max_connections": 200, "used": 83, "queries": told}, done).tell(f"""
U db shop slow af. whats running
C running_queries database=shop
A 4 queries. pid {pids[1]} (user report) has been running for {secs[1] // 60} minutes, a join of orders and \
customers without a condition. It blocks two others:\n- {pids[2]}: UPDATE orders, {secs[2]} s\n- {pids[3]}: \
ALTER TABLE orders, {secs[3]} s\nConnections: 83 of 200.
U kill {pids[3]}
A {pids[3]} is only waiting. The cause is {pids[1]}. Kill that one instead?
U {yes(rng, "kill it", "oh. yes")}
C kill_query database=shop pid:={pids[1]}
A {pids[1]} is terminated, nothing is blocked any more.
U thx. how many conns were left?
A 117 when I looked (200 − 83).""")


def odd_logins(rng: Random) -> Talk:
    """Alerts with addresses and times, an account disabled after a yes."""
    tries, when, at = rng.randint(48, 310), date(2025, 9, rng.randint(8, 26)), rng.randint(0, 3)
    ips = [f"{rng.choice([45, 91, 185])}.{rng.randint(10, 220)}.{rng.randint(2, 250)}.{rng.randint(2, 250)}"
        for _ in range(2)]
    ids, ports = rng.sample(range(7000, 7999), 3), rng.randint(12, 90)
    told = rows("id severity rule user source_ip country count first_seen last_seen", (f"SEC-{ids[0]}",
        "HIGH", "brute_force", "j.keller", ips[0], "RO", tries, f"{when}T0{at}:12:40Z",
        f"{when}T0{at}:58:03Z"), (f"SEC-{ids[1]}", "HIGH", "impossible_travel", "j.keller", ips[0], "RO", 1,
        f"{when}T0{at + 1}:04:11Z", f"{when}T0{at + 1}:04:11Z"), (f"SEC-{ids[2]}", "LOW", "port_scan", None,
        ips[1], "NL", ports, f"{when}T05:30:00Z", f"{when}T05:31:12Z"))
    done = {"user": "j.keller", "enabled": False, "sessions_ended": 2}
    return _talk({"alerts": told, "total": 3}, done, today=when).tell(f"""
U any security alerts since midnight
C list_alerts since={when}T00:00:00+02:00
A Three alerts today (Berlin time):\n\n1. 🔴 **SEC-{ids[0]}** brute force on j.keller: {tries} attempts from \
{ips[0]} (Romania), {at + 2}:12 to {at + 2}:58\n2. 🔴 **SEC-{ids[1]}** impossible travel, j.keller, same \
address, {at + 3}:04\n3. 🟢 **SEC-{ids[2]}** port scan from {ips[1]} (Netherlands), {ports} hits around \
7:30\n\nThe first two belong together: one login seems to have succeeded six minutes after the last attempt. \
I'd disable j.keller's account. Shall I?
U is keller travelling?
A I can't see that from here. The alerts only show the login from Romania.
U {rng.choice(["ok better safe, disable", "disable it, yes", "yes lock it"])}
C disable_account user=j.keller
A j.keller is disabled and 2 sessions were ended. A new password needs at least 14 characters.""")


def seats(rng: Random) -> Talk:
    """Licences as CSV, the one unused for longest revoked, seats before and after, costs."""
    today, price, old = date(2025, 10, rng.randint(6, 24)), rng.choice([15, 24, 45]), rng.randint(64, 130)
    used = [today - timedelta(days=n) for n in (1, old, 3, rng.randint(20, 50), 2)]
    users = ["a.reyes", "b.holm", "c.dietz", "d.wu", "e.sato"]
    lines = [f"{users[n]},{used[n]},{price}.00" for n in range(5)]
    done = {"product": "figma", "revoked": "b.holm", "seats_used": 4, "seats_total": 5}
    return _talk("\n".join(["user,last_used,usd_per_month", *lines]), done, today=today).tell(f"""
U do we have a free figma seat? need one for a new hire
C list_licences product=figma
A All five seats are taken, but one isn't used:\n\n- a.reyes: last used {day(used[0])}\n- **b.holm: \
{day(used[1])}, {old} days ago**\n- c.dietz: {day(used[2])}\n- d.wu: {day(used[3])}\n- e.sato: \
{day(used[4])}\n\nLicences unused for 60 days may be revoked. Should I take b.holm's away?
U wu can go too, right?
A No, d.wu used it {(today - used[3]).days} days ago, which is less than 60.
U ok just holm then
C revoke_licence product=figma user=b.holm
A b.holm's seat is revoked: 4 of 5 are used, so one is free for your new hire. A seat costs ${price} a \
month.""")


def latency(rng: Random) -> Talk:
    """A metric by the hour, its peak in local time, the value now, a comparison by the user."""
    peak, base, hour = rng.randint(5, 8), rng.sample(range(118, 190), 10), rng.randint(4, 7)
    base[peak], when = rng.randint(880, 1460), date(2025, 7, rng.randint(7, 25))
    start = datetime(2025, 7, when.day, hour)
    points = [{"t": f"{start + timedelta(hours=n):%Y-%m-%dT%H:%M:%S}Z", "v": v} for n, v in enumerate(base)]
    local, deploys = (start + timedelta(hours=peak + 2),
        [{"at": f"{start + timedelta(hours=peak - 1, minutes=48):%Y-%m-%dT%H:%M}:00Z", "version": "4.18.0"}])
    info = {"metric": "latency_p95_ms", "points": points, "threshold": 500, "deploys": deploys}
    return _talk(info).tell(f"""
U p95 of search over the last 10 h?
C get_metric service=search metric=latency_p95_ms hours:=10
A It was mostly between {min(base)} and {sorted(base)[-2]} ms, with one spike: **{base[peak]:,} ms at \
{local:%H:%M}** (Berlin). The threshold is 500 ms. Now it's {base[9]} ms.
U deployed something then?
A Yes, version 4.18.0 went out at {local - timedelta(minutes=12):%H:%M}, 12 minutes before.
U so 2 seconds at the worst
A No, {base[peak]:,} ms, that's about {near(base[peak] / 1000, 1)} seconds.""")


def log_lines(rng: Random) -> Talk:
    """Lines of a log as text, errors counted, the first and the last of them, a request id."""
    at = datetime(2025, 8, rng.randint(4, 28), rng.randint(8, 15), rng.randint(5, 30))
    order, req, gap = rng.randint(70000, 99999), _hex(rng, 8), rng.sample(range(31, 58), 7)
    late = f"ERROR payment timeout after 30000ms order={order} req={req}"
    texts = ["INFO  worker started version=2.7.1", f"INFO  order {order} received", late,
        f"WARN  retry 1/3 order={order}"]
    texts += [late, f"WARN  retry 2/3 order={order}", f"INFO  payment ok order={order} took=1840ms"]
    times = [at + timedelta(seconds=sum(gap[: n + 1])) for n in range(7)]
    lines = [f"{times[n]:%Y-%m-%dT%H:%M:%S}Z {texts[n]}" for n in range(7)]
    return _talk("\n".join(lines)).tell(f"""
U what happened to order {order} in payments? customer says charged twice
C get_logs service=payments lines:=50
A From the logs of `payments` (UTC):\n\n```\n{times[1]:%H:%M:%S}  received\n{times[2]:%H:%M:%S}  timeout \
after 30 s\n{times[4]:%H:%M:%S}  timeout after 30 s\n{times[6]:%H:%M:%S}  payment ok (1.84 s)\n```\n\nThere \
were **two timeouts** and then one successful payment on the second retry. The logs show only one success, \
so a second charge would have to come from the payment provider. The request id of the failures is `{req}`.
U how long between first try and success
A From receipt at {times[1]:%H:%M:%S} to success at {times[6]:%H:%M:%S} it took \
{int((times[6] - times[1]).total_seconds())} seconds.
U can i still find logs from 6 weeks ago?
A No, logs are kept for 30 days.""")


def blame(rng: Random) -> Talk:
    """Commits of a file, the one that changed a value, reverted after a yes."""
    shas, pr = [_hex(rng, 40) for _ in range(3)], rng.sample(range(1200, 1990), 3)
    new, old, made, parts = rng.choice([5, 10]), rng.choice([30, 45]), _hex(rng, 40), []
    days, times = [date(2025, 5, n) for n in (28, 26, 19)], ["14:03:51", "17:40:12", "09:15:30"]
    texts = ["Fix typo in comment", f"Lower upstream timeout from {old}s to {new}s", "Add health check"]
    for n, who in enumerate(["Lior Ben-Ami <lior@kelvin.example>", "Hanna Voss <hanna@kelvin.example>"] * 2):
        if n < 3:
            head = f"commit {shas[n]}\nAuthor: {who}\nDate:   {days[n]:%a %b %d} {times[n]} 2025 +0200"
            parts.append(f"{head}\n\n    {texts[n]} (#{pr[n]})")
    done = {"branch": f"revert-{shas[1][:7]}", "commit": made, "pull_request": pr[0] + 12,
        "checks": "PENDING"}
    return _talk("\n\n".join(parts), done).tell(f"""
U who changed the timeout in gateway/nginx.conf
C git_log repo=gateway path=nginx.conf
A Hanna Voss, on {days[1]:%A}, {day(days[1])}, at 17:40: commit `{shas[1][:7]}` (#{pr[1]}) lowered the \
upstream timeout from {old} to {new} seconds.
U wasn't that lior on the 28th?
A Lior's commit on {day(days[0])} (`{shas[0][:7]}`, #{pr[0]}) only fixed a typo in a comment.
U ok. pls revert hannas
A That opens a revert of `{shas[1][:7]}`, which brings the {old} seconds back. Go ahead?
U {yes(rng, "go")}
C revert_commit repo=gateway sha={shas[1]}
A Revert `{made[:7]}` is on branch `revert-{shas[1][:7]}`, pull request **#{pr[0] + 12}**; its checks are \
pending.""")


def certificates(rng: Random) -> Talk:
    """Certificates with dates, days left, one renewed; the rest not due by the policy."""
    today, left = date(2025, 3, rng.randint(3, 14)), [rng.randint(6, 19), rng.randint(38, 60),
        rng.randint(150, 220)]
    names, ends = ["api", "www", "mail"], [today + timedelta(days=n) for n in left]
    serial, new, told = _hex(rng, 12), today + timedelta(days=90), rows("id common_name not_after issuer",
        *((f"crt-{names[n]}", f"{names[n]}.kelvin.example", f"{ends[n]}T23:59:59Z", "R11") for n in range(3)))
    made = {"id": "crt-api", "serial": serial, "not_after": f"{new}T23:59:59Z"}
    return _talk({"certificates": told}, made, today=today).tell(f"""
U are any of our certs about to expire? kelvin.example
C list_certificates domain=kelvin.example
A Yes, one:\n\n- **api.kelvin.example**: {day(ends[0])} ({left[0]} days left)\n- www.kelvin.example: \
{day(ends[1])} ({left[1]} days left)\n- mail.kelvin.example: {day(ends[2])} ({left[2]} days left)\n\nThey \
are renewed 30 days before they expire, so only `api` is due.
U renew it
C renew_certificate certificate=crt-api
A Renewed: `api.kelvin.example` is now valid until **{day(new)}** (serial {serial}) instead of {day(ends[0])}.
U and www when
A From {day(ends[1] - timedelta(days=30))} on, 30 days before {day(ends[1])}.""")


def disk_full(rng: Random) -> Talk:
    """Output of df, old logs deleted after a yes, free space before and after."""
    used, freed, data = rng.randint(93, 98), rng.randint(21, 38), rng.randint(210, 380)
    host, df = f"web-{rng.randint(11, 48)}", "Filesystem      Size  Used Avail Use% Mounted on\n"
    df += f"/dev/sda1       100G   {used}G    {100 - used}G  {used}% /\n"
    df += f"/dev/sdb1       500G  {data}G  {500 - data}G  {near(data / 5)}% /data\n"
    df += "tmpfs            16G     0   16G   0% /run"
    done = {"host": host, "deleted_files": rng.randint(120, 900), "freed": f"{freed}G"}
    done["root_use_percent"] = used - freed
    return _talk(df, done).tell(f"""
U {host} disk full???
C disk_usage host={host}
A Nearly. `/` is at **{used}%**: {used} of 100 GB used, {100 - used} GB free. `/data` is fine ({data} of 500 \
GB).
U clean up old logs, older than a week
A Logs are kept for 30 days, so I can delete the ones older than that on {host}. OK?
U {yes(rng, "ok 30 then", "ok")}
C delete_logs host={host} older_than_days:=30
A Deleted {done["deleted_files"]} files, {freed} GB freed. `/` is at {used - freed}% now.
U so free is?
A {100 - used + freed} GB.""")


def chamado(rng: Random) -> Talk:
    """Portuguese: tickets of a user, a comment added."""
    ids, when = rng.sample(range(41000, 48999), 2), rng.randint(2, 19)
    told, done = rows("id subject priority status opened_at", (f"INC-{ids[0]}", "Impressora do 3º andar",
        "P3", "OPEN", f"2025-06-{when:02}T08:20:00Z"), (f"INC-{ids[1]}", "Sem acesso ao SAP", "P2",
        "IN_PROGRESS", f"2025-06-{when + 1:02}T13:45:00Z")), {"id": f"INC-{ids[0]}", "comments": 3}
    return _talk({"user": "r.teixeira", "tickets": told, "assets": []}, done).tell(f"""
U oi, como estão meus chamados? r.teixeira
C list_tickets user=r.teixeira
A Olá! Você tem dois chamados abertos:\n\n- **INC-{ids[0]}**, Impressora do 3º andar: P3, aberto em {when} \
de junho às 10h20\n- **INC-{ids[1]}**, Sem acesso ao SAP: P2, em andamento, aberto em {when + 1} de junho às \
15h45
U bota na impressora que agora é o 4º andar tb
C update_ticket ticket=INC-{ids[0]} comment="A impressora do 4º andar também não funciona."
A Pronto, o comentário foi incluído no INC-{ids[0]}, que agora tem 3 comentários.
U em quanto tempo respondem o do SAP?
A Por ser P2, em até 4 horas.""")


def rezerv(rng: Random) -> Talk:
    """Russian: backups of a database, sizes, the last good one."""
    days, sizes = rng.randint(4, 20), rng.sample(range(381, 499), 3)
    told = rows("id started_at finished_at size_gb status", *((f"bk-{days + n}",
        f"2025-06-{days + n:02}T01:00:00Z", f"2025-06-{days + n:02}T01:{37 + 3 * n}:00Z", sizes[n] / 10,
        "FAILED" if n == 2 else "OK") for n in (2, 1, 0)))
    told[0]["error"] = "no space left on device"
    texts = [comma(n / 10, 1) for n in sizes]
    return _talk({"database": "billing", "retention_days": 14, "backups": told}).tell(f"""
U привет, бэкап billing прошёл сегодня ночью?
C list_backups database=billing
A Нет, бэкап за {days + 2} июня завершился с ошибкой: на диске не хватило места. Последние копии:\n\n| Дата \
| Размер | Статус |\n|---|---|---|\n| {days + 2} июня | {texts[2]} ГБ | ошибка |\n| {days + 1} июня | \
{texts[1]} ГБ | успешно |\n| {days} июня | {texts[0]} ГБ | успешно |
U а сколько длился успешный последний?
A Бэкап за {days + 1} июня шёл 40 минут: с 3:00 до 3:40 по Берлину.
U хранятся месяц?
A Нет, копии хранятся 14 дней.""")


def klaster(rng: Random) -> Talk:
    """Polish: the pods of a service, more replicas."""
    mem, ids = rng.sample(range(190, 460), 3), [_hex(rng, 5) for _ in range(3)]
    told = [{"name": f"search-{ids[n]}", "status": "Running", "restarts": 0, "memory": f"{mem[n]}Mi",
        "limit": "512Mi", "node": f"node-{n + 3}"} for n in range(3)]
    done = {"service": "search", "replicas": {"before": 3, "after": 6}}
    return _talk({"namespace": "prod", "pods": told}, done).tell(f"""
U hej, ile podów ma search i ile biorą pamięci?
C list_pods service=search
A Hej! `search` ma trzy pody, wszystkie działają bez restartów (limit 512Mi):\n\n- `search-{ids[0]}` \
(node-3): {mem[0]}Mi\n- `search-{ids[1]}` (node-4): {mem[1]}Mi\n- `search-{ids[2]}` (node-5): {mem[2]}Mi
U zrób 16, będzie ruch
A Maksymalnie mogę ustawić 12 replik na serwis. Ile ma być?
U to {rng.choice(["sześć", "6"])} wystarczy
C scale service=search replicas:=6
A Gotowe: zamiast 3 jest teraz 6 replik.""")


TEMPLATES = (tickets, cloud_bill, oom, stuck_query, odd_logins, seats, latency, log_lines, blame,
    certificates, disk_full, chamado, rezerv, klaster)
