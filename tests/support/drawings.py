"""Reads the figures of a page: their parts as XML, and the coordinates of what they draw."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element, fromstring

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_START = re.compile(r"[M](-?[\d.]+) (-?[\d.]+)")


class Drawn:
    """One figure."""

    def __init__(self, markup: str) -> None:
        self.markup = markup
        self.root: Element = fromstring(markup)
        svg = self.root.find("svg")
        assert svg is not None
        self.svg = svg

    @property
    def size(self) -> tuple[float, float]:
        _, _, width, height = map(float, self.svg.attrib["viewBox"].split())
        return width, height

    @property
    def ids(self) -> list[str]:
        return [each.attrib["id"] for each in self.root.iter() if "id" in each.attrib]

    def paths(self, name: str) -> list[str]:
        """The commands of the paths of a class."""
        found = (each for each in self.svg.iter("path") if f"chart-{name}" in each.attrib["class"].split())
        return [each.attrib["d"] for each in found]

    def starts(self, name: str) -> list[tuple[float, float]]:
        """Where the paths of a class move to."""
        return [(float(x), float(y)) for path in self.paths(name) for x, y in _START.findall(path)]

    @property
    def texts(self) -> list[str]:
        return ["".join(each.itertext()) for each in self.svg.iter("text")]

    @property
    def tooltips(self) -> list[str]:
        return [each.text or "" for each in self.svg.iter("title")][1:]

    @property
    def description(self) -> str:
        return self.svg.findtext("desc") or ""

    @property
    def sentence(self) -> str:
        """The whole caption."""
        caption = self.root.find("figcaption")
        assert caption is not None
        return "".join(caption.itertext())

    @property
    def note(self) -> str:
        return self.root.findtext("p") or ""

    @property
    def table(self) -> list[list[str]]:
        """The rows of the table, its head first."""
        return [["".join(cell.itertext()) for cell in row] for row in self.root.iter("tr")]

    def column(self, name: str) -> list[str]:
        head, *rows = self.table
        return [row[head.index(name)] for row in rows]

    def numbers(self) -> Iterator[float]:
        """Every number of the drawing that is a coordinate."""
        for each in self.svg.iter():
            for key in ("d", "x", "y"):
                yield from map(float, _NUMBER.findall(each.attrib.get(key, "")))
