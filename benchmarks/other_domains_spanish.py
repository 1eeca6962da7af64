"""Clean conversations in Spanish: a hotel, a clinic, a telephone company."""

from __future__ import annotations

from random import Random

from talk import Talk, tool

POLICY = (
    "Eres el asistente del Hotel Miramar. La entrada es a partir de las 15:00 y la salida hasta las 11:00.\n"
    "El desayuno cuesta 12,50 € por persona. La tasa turística es de 2 € por persona y noche.\n"
    "Cancela una reserva solo si el cliente lo confirma con un sí. Teléfono de recepción: +34 971 555 010.\n"
)
TOOLS = [
    tool("buscar_habitaciones", "Habitaciones libres", entrada="string", salida="string", personas="integer"),
    tool("reservar", "Hacer una reserva", habitacion="string", entrada="string", salida="string"),
    tool("ver_reserva", "Una reserva", localizador="string"),
    tool("cancelar_reserva", "Cancelar una reserva", localizador="string"),
    tool("ver_factura", "Una factura", numero="string"),
    tool("consumo_datos", "Datos consumidos", linea="string"),
    tool("pedir_cita", "Pedir cita", fecha="string", hora="string"),
    tool("citas_libres", "Citas libres", fecha="string"),
]
MARKS = {
    "buscar_habitaciones": "reads",
    "reservar": "writes",
    "ver_reserva": "reads",
    "cancelar_reserva": "destructive",
    "ver_factura": "reads",
    "consumo_datos": "reads",
    "pedir_cita": "writes",
    "citas_libres": "reads",
}


def euros(value: float) -> str:
    """``1.234,50 €``"""
    return f"{value:,.2f}".translate(str.maketrans(",.", ".,")) + " €"


def _talk(policy: str = POLICY) -> Talk:
    return Talk(TOOLS, MARKS, policy)


def habitaciones(rng: Random) -> Talk:
    """Price per night times nights; a tax per person and night; days of a month in words."""
    noche, dia = rng.choice([94.0, 118.5, 132.0]), rng.randint(3, 12)
    rooms = [
        {"habitacion": "doble", "precio_noche": noche},
        {"habitacion": "suite", "precio_noche": noche * 2},
    ]
    entrada, salida = f"2025-07-{dia:02}", f"2025-07-{dia + 4:02}"
    return (
        _talk()
        .user(f"¿Qué tenéis libre del {dia} al {dia + 4} de julio para dos personas?")
        .call("buscar_habitaciones", {"libres": rooms}, entrada=entrada, salida=salida, personas=2)
        .agent(
            f"Para esas cuatro noches hay dos opciones: la doble por {euros(noche)} la noche"
            f" ({euros(noche * 4)} en"
            f" total) y la suite, que cuesta el doble: {euros(noche * 8)} en total."
        )
        .user("¿Y con la tasa turística, la doble?")
        .agent(f"La tasa son 16 € (2 € × 2 personas × 4 noches), así que en total {euros(noche * 4 + 16)}.")
    )


def reserva(rng: Random) -> Talk:
    """A booking that is made and told; hours of the policy; a locator that the tool gave."""
    dia, code = rng.randint(2, 20), f"MIR{rng.randint(1000, 9999)}"
    entrada, salida = f"2025-09-{dia:02}", f"2025-09-{dia + 2:02}"
    return (
        _talk()
        .user(f"Quiero reservar la habitación doble del {dia} al {dia + 2} de septiembre")
        .agent(f"¿Le confirmo la doble con entrada el {dia} y salida el {dia + 2} de septiembre?")
        .user(rng.choice(["Sí, por favor", "sí, adelante", "Confirmo, gracias."]))
        .call(
            "reservar",
            {"localizador": code, "estado": "confirmada"},
            habitacion="doble",
            entrada=entrada,
            salida=salida,
        )
        .agent(
            f"¡Listo! He reservado la doble para dos noches; su localizador es {code}. Puede"
            " entrar a partir de las 3 de"
            " la tarde y la salida es hasta las once de la mañana."
        )
        .user("¿a qué número puedo llamar?")
        .agent("Al +34 971 555 010, es la recepción.")
    )


def cancelacion(rng: Random) -> Talk:
    """Something destructive after a yes in Spanish; an amount with a decimal comma."""
    code, total = f"MIR{rng.randint(1000, 9999)}", rng.choice([212.4, 376.0, 1264.5])
    return (
        _talk()
        .user(f"Tengo que anular mi reserva {code}")
        .call(
            "ver_reserva", {"localizador": code, "total": total, "cancelacion_gratis": True}, localizador=code
        )
        .agent(f"Su reserva {code}, de {euros(total)}, se puede cancelar gratis. ¿Quiere que la cancele?")
        .user(rng.choice(["Sí.", "Sí, cancélela por favor", "sí claro"]))
        .call(
            "cancelar_reserva",
            {"localizador": code, "estado": "cancelada", "devolucion": total},
            localizador=code,
        )
        .agent(f"He cancelado la reserva {code}. Le devolveremos los {euros(total)}.")
        .user("Gracias, un saludo")
        .agent("A usted. ¡Hasta pronto!")
    )


def desayuno(rng: Random) -> Talk:
    """No tool: the policy's price times what the user says."""
    people, days = rng.choice([(2, 3), (3, 2), (4, 5)])
    total = 12.5 * people * days
    return (
        _talk()
        .user(f"Somos {people} y nos quedamos {days} días, ¿cuánto sería el desayuno?")
        .agent(
            f"Son 12,50 € por persona, así que {euros(12.5 * people)} al día y {euros(total)}"
            f" por los {days} días."
        )
        .user("¿y si uno no desayuna?")
        .agent(f"Entonces serían {euros(12.5 * (people - 1) * days)}, es decir, {euros(12.5 * days)} menos.")
    )


def datos(rng: Random) -> Talk:
    """Gigabytes and megabytes, what is left, a share."""
    used = rng.choice([4.5, 7.5, 9.0])
    linea = f"6{rng.randint(10000000, 99999999)}"
    return (
        _talk("Eres el asistente de Telelux, una compañía de teléfono.")
        .user(f"Hola, ¿cuántos datos me quedan? Mi línea es {linea}")
        .call("consumo_datos", {"linea": linea, "usado_mb": used * 1000, "tarifa_gb": 15}, linea=linea)
        .agent(
            f"Ha usado {str(used).replace('.', ',')} GB de los 15 GB de su tarifa, el"
            f" {used / 15:.0%}. Le quedan"
            f" {str(15 - used).replace('.', ',')} GB."
        )
        .user("vale, y cuanto es eso en megas")
        .agent(f"Unos {int((15 - used) * 1000)} MB.")
    )


def factura(rng: Random) -> Talk:
    """VAT, a date in words, a comparison with another bill."""
    base = rng.choice([50.0, 80.0, 120.0])
    total, before = round(base * 1.21, 2), round(base * 1.21 + 6, 2)
    numero = f"F-{rng.randint(10000, 99999)}"
    data = {
        "numero": numero,
        "base": base,
        "iva": 21,
        "total": total,
        "anterior": before,
        "cobro": "2025-03-05",
    }
    return (
        _talk("Eres el asistente de Telelux, una compañía de teléfono.")
        .user(f"¿Me explica la factura {numero}?")
        .call("ver_factura", data, numero=numero)
        .agent(
            f"Claro: la base son {euros(base)} y el IVA (21 %) {euros(total - base)}; en total"
            f" {euros(total)}, seis euros"
            " menos que la anterior. Se cobrará el 5 de marzo."
        )
        .user("¿qué día cae?")
        .agent("El 5 de marzo de 2025 es miércoles.")
    )


def cita(rng: Random) -> Talk:
    """Times in words; the tool has nothing on one day and is asked for another."""
    hour = rng.randint(16, 18)
    return (
        _talk("Eres el asistente de la clínica dental Sol.")
        .user("Necesito cita el lunes 12 de mayo por la tarde, o si no el martes")
        .call("citas_libres", {"fecha": "2025-05-12", "horas": []}, fecha="2025-05-12")
        .call("citas_libres", {"fecha": "2025-05-13", "horas": [f"{hour}:30"]}, fecha="2025-05-13")
        .agent(
            f"El lunes no queda nada; el martes 13 hay una a las {hour - 12} y media de la"
            " tarde. ¿Se la reservo?"
        )
        .user("sí, esa")
        .call("pedir_cita", {"ok": True, "codigo": f"C{hour}30-13"}, fecha="2025-05-13", hora=f"{hour}:30")
        .agent(f"Hecho. Su cita es el martes 13 de mayo a las {hour}:30 (código C{hour}30-13).")
    )


TEMPLATES = (habitaciones, reserva, cancelacion, desayuno, datos, factura, cita)
