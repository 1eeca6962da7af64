"""Clean conversations in German: decimal commas, points between thousands, dates and times in words."""

from __future__ import annotations

from random import Random

from talk import Talk, tool

POLICY = (
    "Du bist der Assistent der Stadtwerke Lindau. Termine kosten nichts; eine Absage ist bis 24"
    " Stunden vorher"
    " möglich.\nDer Kundenservice ist unter 08382 704-0 von 7:30 bis 18 Uhr erreichbar.\n"
    "Verträge dürfen nur nach einem ausdrücklichen Ja gekündigt werden.\n"
)
TOOLS = [
    tool("zaehlerstand_abrufen", "Stand eines Zählers", zaehler="string"),
    tool("rechnung_abrufen", "Eine Rechnung", rechnungsnummer="string"),
    tool("abschlag_aendern", "Den Abschlag ändern", vertrag="string", betrag="number"),
    tool("vertrag_kuendigen", "Einen Vertrag kündigen", vertrag="string"),
    tool("termine_suchen", "Freie Termine", datum="string"),
    tool("termin_buchen", "Einen Termin buchen", datum="string", uhrzeit="string"),
    tool("zugverbindung", "Verbindungen", von="string", nach="string", datum="string"),
    tool("wetter", "Wetter eines Ortes", ort="string"),
]
MARKS = {
    "zaehlerstand_abrufen": "reads",
    "rechnung_abrufen": "reads",
    "abschlag_aendern": "writes",
    "vertrag_kuendigen": "destructive",
    "termine_suchen": "reads",
    "termin_buchen": "writes",
    "zugverbindung": "reads",
    "wetter": "reads",
}


def _talk() -> Talk:
    return Talk(TOOLS, MARKS, POLICY)


def euro(value: float) -> str:
    """``1.234,50 €``"""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,")) + " €"


def rechnung(rng: Random) -> Talk:
    """An amount with point and comma, net and tax, a date in words."""
    netto = rng.choice([1040.0, 1260.5, 980.0])
    brutto = round(netto * 1.19, 2)
    nummer = f"RE-2025-{rng.randint(1000, 9999)}"
    data = {"nummer": nummer, "netto": netto, "mwst_prozent": 19, "brutto": brutto, "faellig": "2025-03-15"}
    return (
        _talk()
        .user(f"Hallo, was muss ich für die Rechnung {nummer} zahlen und bis wann?")
        .call("rechnung_abrufen", data, rechnungsnummer=nummer)
        .agent(
            f"Die Rechnung {nummer} beläuft sich auf {euro(brutto)} und ist am 15. März 2025"
            " fällig. Darin sind"
            f" {euro(brutto - netto)} Mehrwertsteuer (19 %) enthalten."
        )
        .user("Und netto?")
        .agent(f"Netto sind es {euro(netto)}.")
        .user("Kann ich auch am 20.3. zahlen?")
        .agent("Fällig ist sie am 15.03.2025; zum 20.3. wären Sie fünf Tage zu spät.")
    )


def verbrauch(rng: Random) -> Talk:
    """A difference of two readings, per month, a share in percent."""
    alt, neu = rng.randint(10_000, 14_000), rng.randint(15_000, 17_000)
    zaehler = f"1EMH00{rng.randint(1000000, 9999999)}"
    mehr = neu - alt
    data = {"zaehler": zaehler, "stand_vorjahr": alt, "stand": neu, "einheit": "kWh"}
    return (
        _talk()
        .user(f"Wie viel Strom habe ich im letzten Jahr verbraucht? Zähler {zaehler}")
        .call("zaehlerstand_abrufen", data, zaehler=zaehler)
        .agent(
            f"Ihr Zähler steht bei {punkt(neu)} kWh, vor einem Jahr waren es {punkt(alt)} kWh."
            " Der Verbrauch liegt also bei"
            f" {punkt(mehr)} kWh, im Monat rund {mehr / 12:.0f} kWh."
        )
        .user("Ist das viel?")
        .agent("Das hängt von der Größe Ihres Haushalts ab; dazu liegen mir keine Angaben vor.")
    )


def punkt(value: int) -> str:
    """``12.345``"""
    return f"{value:,}".replace(",", ".")


def abschlag(rng: Random) -> Talk:
    """A change that was made, told; per year, and by how much more."""
    vertrag, alt, neu = f"V{rng.randint(10000, 99999)}", rng.choice([80, 95]), rng.choice([110, 120])
    return (
        _talk()
        .user(f"Bitte den Abschlag von Vertrag {vertrag} auf {neu} Euro erhöhen")
        .call(
            "abschlag_aendern",
            {"vertrag": vertrag, "alt": alt, "neu": neu, "ab": "2025-05-01"},
            vertrag=vertrag,
            betrag=neu,
        )
        .agent(
            f"Erledigt: Ich habe den Abschlag ab dem 1. Mai von {alt} € auf {neu} € geändert,"
            f" also um {neu - alt} €"
            f" im Monat. Aufs Jahr gerechnet sind das {punkt(neu * 12)} €."
        )
        .user("super danke")
        .agent("Gern geschehen!")
    )


def kuendigung(rng: Random) -> Talk:
    """Something destructive after a yes in German."""
    vertrag = f"V{rng.randint(10000, 99999)}"
    ja = rng.choice(["Ja, bitte.", "Ja, kündigen Sie ihn.", "ja genau", "Jawohl, machen Sie das"])
    return (
        _talk()
        .user(f"Ich ziehe um und möchte Vertrag {vertrag} kündigen")
        .agent(f"Soll ich den Vertrag {vertrag} wirklich kündigen? Das lässt sich nicht rückgängig machen.")
        .user(ja)
        .call(
            "vertrag_kuendigen",
            {"vertrag": vertrag, "ende": "2025-06-30", "status": "gekündigt"},
            vertrag=vertrag,
        )
        .agent(f"Der Vertrag {vertrag} ist zum 30. Juni 2025 gekündigt.")
        .user("Also Ende Juni. Und wen rufe ich bei Fragen an?")
        .agent(
            "Genau, Ende Juni. Unser Kundenservice ist unter 08382 704-0 von 7:30 Uhr bis 18 Uhr für Sie da."
        )
    )


def termin(rng: Random) -> Talk:
    """Times in words (halb drei), a weekday, a count in words."""
    tag, name = rng.choice([(13, "Dienstag"), (15, "Donnerstag")])
    slots = ["09:00", "11:15", "14:30"]
    return (
        _talk()
        .user(f"Haben Sie am {tag}. Mai einen Termin für den Zählertausch?")
        .call("termine_suchen", {"datum": f"2025-05-{tag}", "frei": slots}, datum=f"2025-05-{tag}")
        .agent(
            f"Ja, am {name}, dem {tag}. Mai, sind drei Termine frei: um 9 Uhr, um Viertel nach"
            " elf und um halb drei."
            " Welcher passt Ihnen?"
        )
        .user("halb drei")
        .call("termin_buchen", {"id": f"T-{tag}30", "ok": True}, datum=f"2025-05-{tag}", uhrzeit="14:30")
        .agent(
            f"Ihr Termin am {tag}.05.2025 um 14:30 Uhr ist gebucht (Nummer T-{tag}30). Absagen"
            " können Sie ihn bis 24"
            " Stunden vorher, er kostet nichts."
        )
    )


def zug(rng: Random) -> Talk:
    """Durations from times, prices with commas, the cheaper one."""
    start, preis = rng.randint(6, 9), rng.choice([29.9, 35.5])
    zuege = [
        {"zug": "ICE 1202", "ab": f"0{start}:12", "an": f"{start + 3}:02".zfill(5), "preis": preis + 20},
        {"zug": "RE 96", "ab": f"0{start}:40", "an": f"{start + 4}:25".zfill(5), "preis": preis},
    ]
    return (
        _talk()
        .user("Wie komme ich am 3. Juni morgens von Lindau nach Stuttgart?")
        .call("zugverbindung", {"verbindungen": zuege}, von="Lindau", nach="Stuttgart", datum="2025-06-03")
        .agent(
            f"Es gibt zwei Verbindungen:\n\n1. ICE 1202, ab {start}:12 Uhr, Fahrzeit 2 Std. 50"
            f" Min., {euro(preis + 20)}\n"
            f"2. RE 96, ab {start}:40 Uhr, Fahrzeit 3 Std. 45 Min., {euro(preis)}\n\n"
            "Der RE ist 20 Euro günstiger, braucht aber 55 Minuten länger."
        )
        .user("dann nehm ich den langsamen, danke")
        .agent("Eine gute Wahl. Buchen kann ich ihn hier leider nicht.")
    )


def wetter(rng: Random) -> Talk:
    """Decimal commas, rounding, millimetres, a comparison."""
    grad, regen = rng.choice([17.6, 21.4, 12.8]), rng.choice([0, 35, 80])
    return (
        _talk()
        .user("Wie wird das Wetter in Lindau?")
        .call(
            "wetter",
            {"ort": "Lindau", "temperatur": grad, "regen_prozent": regen, "wind_kmh": 12},
            ort="Lindau",
        )
        .agent(
            f"In Lindau sind es {str(grad).replace('.', ',')} °C bei schwachem Wind (12 km/h). Die"
            f" Regenwahrscheinlichkeit liegt bei {regen} %."
        )
        .user("also ungefähr?")
        .agent(f"Ungefähr {grad:.0f} Grad.")
    )


TEMPLATES = (rechnung, verbrauch, abschlag, kuendigung, termin, zug, wetter)
