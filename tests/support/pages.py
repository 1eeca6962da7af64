"""Read a page of the HTML report without a browser: its elements, its texts and what is packed in it."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~"
"""The digits of base85 as the script of the page has them: RFC 1924, with ``,`` for ``<``."""
_VOID = ("meta", "link", "br", "hr", "input", "wbr")


@dataclass
class Node:
    """An element of a page."""

    name: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    content: list[Node | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(each if isinstance(each, str) else each.text for each in self.content)

    @property
    def kinds(self) -> list[str]:
        """The classes."""
        return (self.attributes.get("class") or "").split()

    @property
    def below(self) -> list[Node]:
        """All elements below this one, in the order of the page."""
        found: list[Node] = []
        for each in self.content:
            if isinstance(each, Node):
                found += [each, *each.below]
        return found

    def all(self, name: str = "", kind: str = "", **attributes: str) -> list[Node]:
        """The elements below with this name, this class and these attributes."""
        return [
            each
            for each in self.below
            if name in ("", each.name)
            and (not kind or kind in each.kinds)
            and all(each.attributes.get(key) == value for key, value in attributes.items())
        ]

    def one(self, name: str = "", kind: str = "", **attributes: str) -> Node:
        (found,) = self.all(name, kind, **attributes)
        return found

    def rows(self) -> list[list[str]]:
        """The texts of the cells of each row of a table's body."""
        return [[cell.text for cell in row.all("td")] for row in self.one("tbody").all("tr")]

    def heads(self) -> list[str]:
        return [cell.text for cell in self.one("thead").all("th")]


class _Reader(HTMLParser):
    """Builds the elements. An end tag without its beginning, or an element without end, is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"an attribute is there twice: <{tag} {attrs}>"
        made = Node(tag, dict(attrs))
        self.open[-1].content.append(made)
        if tag not in _VOID:
            self.open.append(made)

    def handle_endtag(self, tag: str) -> None:
        last = self.open.pop()
        assert last.name == tag, f"</{tag}> ends <{last.name}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].content.append(data)


def read_html(text: str) -> Node:
    """The page, or a part of one, as elements."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    (whole,) = reader.open
    return whole


def unpack(text: str) -> str:
    """A packed block, read as the script of the page reads it."""
    assert (len(text) - 1) % 5 == 0
    data = bytearray()
    for at in range(1, len(text), 5):
        word = 0
        for digit in text[at : at + 5]:
            word = word * 85 + DIGITS.index(digit)
        data += word.to_bytes(4, "big")
    return gzip.decompress(data[: len(data) - int(text[0])]).decode()


def packed_in(page: str) -> dict[str, str]:
    """The packed blocks of a page by their ids, unpacked. An empty block after them ends the page."""
    *packed, end = read_html(page).all(type="text/plain")
    assert (end.attributes["id"], end.text) == ("end", "")
    return {node.attributes["id"] or "": unpack(node.text) for node in packed}


def records_in(block: str) -> list[dict[str, Any]]:
    """The conversations of an unpacked block, with the results of their calls in place."""
    count, *lines = block.split("\n")
    results, records = lines[: int(count)], [json.loads(line) for line in lines[int(count) :]]
    assert results == sorted(set(results))
    for record in records:
        calls = [call for turn in record["sample"]["turns"] for call in turn["tool_calls"]]
        for call, line in zip(calls, record.pop("results"), strict=True):
            call["result"] = json.loads(results[line])
    return records


def index_of(page: str) -> dict[str, Any]:
    index: dict[str, Any] = json.loads(unpack(read_html(page).one(id="index").text))
    return index


def without_data(page: str) -> str:
    """The page without what is packed in it."""
    return re.sub(r'<script type="text/plain"[^>]*>[^<]*</script>\n', "", page)
