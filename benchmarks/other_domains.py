"""Conversations of other domains and languages that are clean by construction.

Twenty-one domains, fifteen languages; every number in an answer is computed from what a tool, the
policy or the user said: rounded, summed, converted, in words, as a share, counted, masked. Whatever a
detector says of them is a false alarm. No language model; everything follows from the seed.

::

    python benchmarks/other_domains.py [FILE]      write them as JSON Lines; without a file: print them
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import other_domains_assistant as assistant
import other_domains_bank as bank
import other_domains_banking as banking
import other_domains_food as food
import other_domains_german as german
import other_domains_health as health
import other_domains_it as it
import other_domains_japanese as japanese
import other_domains_knowledge as knowledge
import other_domains_leisure as leisure
import other_domains_office as office
import other_domains_property as property_
import other_domains_public as public
import other_domains_research as research
import other_domains_retail as retail
import other_domains_school as school
import other_domains_service as service
import other_domains_spanish as spanish
import other_domains_telecom as telecom
import other_domains_travel as travel
import other_domains_work as work
from recorded import Conversation, text_of
from talk import Talk

TEMPLATES: dict[str, tuple[Callable[[Random], Talk], ...]] = {
    "retail": retail.TEMPLATES,
    "banking": banking.TEMPLATES,
    "german": german.TEMPLATES,
    "spanish": spanish.TEMPLATES,
    "japanese": japanese.TEMPLATES,
    "telecom": telecom.TEMPLATES,
    "travel": travel.TEMPLATES,
    "office": office.TEMPLATES,
    "health": health.TEMPLATES,
    "food": food.TEMPLATES,
    "property": property_.TEMPLATES,
    "research": research.TEMPLATES,
    "public": public.TEMPLATES,
    "service": service.TEMPLATES,
    "work": work.TEMPLATES,
    "assistant": assistant.TEMPLATES,
    "knowledge": knowledge.TEMPLATES,
    "bank": bank.TEMPLATES,
    "school": school.TEMPLATES,
    "it": it.TEMPLATES,
    "leisure": leisure.TEMPLATES,
}
EACH = 2
"""Conversations per template, with other values."""


def conversations(seed: int = 0) -> list[Conversation]:
    """All of them, in a fixed order."""
    return [
        conversation
        for domain, templates in TEMPLATES.items()
        for template in templates
        for conversation in _of(domain, template, seed)
    ]


def _of(domain: str, template: Callable[[Random], Talk], seed: int) -> list[Conversation]:
    """``EACH`` different ones: values that were drawn before are drawn again."""
    made: dict[str, Conversation] = {}
    name, draw = f"{domain}-{template.__name__}", 0
    while len(made) < EACH:
        conversation = template(Random(f"{seed}|{name}|{draw}")).done(f"{name}-{len(made)}")
        made.setdefault(json.dumps(conversation["messages"]), conversation)
        draw += 1
    return list(made.values())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE")
    file = parser.parse_args().file
    if file:
        lines = (json.dumps(conversation, ensure_ascii=False) + "\n" for conversation in conversations())
        file.write_text("".join(lines), encoding="utf-8")
        return
    for conversation in conversations():
        print(f"=== {conversation['id']}")
        for message in conversation["messages"]:
            calls = [call["function"] for call in message.get("tool_calls", ())]
            print(
                f"[{message['role']}] {text_of(message)}", *(f"{c['name']}({c['arguments']})" for c in calls)
            )


if __name__ == "__main__":
    main()
