"""Build HTML and inline SVG in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from agenteval.core.safe_text import clean


class Markup(str):
    """Markup that may be written to the page unchanged. Any other string is escaped by ``element``."""

    __slots__ = ()


Content: TypeAlias = "str | Markup | Iterable[Content]"
"""The content of an element: texts, markup, and iterables of them."""

_VOID = frozenset({"meta", "br", "hr", "input", "link", "wbr"})


def element(name: str, *content: Content, **attributes: str | int | float | bool | None) -> Markup:
    """Return an element. Texts in ``content`` and the values of ``attributes`` are cleaned and escaped. In
    the name of an attribute, a trailing ``_`` is removed (``class_``) and ``_`` stands for ``-``
    (``aria_label``). An attribute is omitted if it is None or False, and has no value if it is True.

    Inline styles and event handlers are refused (``ValueError``): the content security policy of the page
    blocks them."""
    words = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if attribute == "style" or attribute.startswith("on"):
            raise ValueError(f"the page's policy does not allow the attribute '{attribute}'")
        if value is True:
            words.append(attribute)
        elif value is not None and value is not False:
            words.append(f'{attribute}="{escape(clean(_number_text(value)))}"')
    opening = f"<{' '.join(words)}>"
    return Markup(opening) if name in _VOID else Markup(f"{opening}{join(*content)}</{name}>")


def join(*content: Content) -> Markup:
    """Return the content as markup. Texts are cleaned and escaped."""
    return Markup("".join(map(_to_markup, content)))


def _to_markup(content: Content) -> str:
    if isinstance(content, Markup):
        return content
    if isinstance(content, str):
        return escape(clean(content), quote=False)
    return "".join(map(_to_markup, content))


def _number_text(value: str | int | float) -> str:
    """Format a number for an attribute; coordinates need no more than two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
