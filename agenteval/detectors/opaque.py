"""Results that the agent could read and code cannot: sealed pages, pictures, what a log left out."""

from __future__ import annotations

from typing import Any, NamedTuple

from agenteval.detectors.fields import key_stems
from agenteval.detectors.json_text import json_of
from agenteval.expressions import expression


class Hidden(NamedTuple):
    """What a text keeps from who reads it: ``all`` that the agent saw, or only the values of some keys
    (their stems)."""

    all: bool = False
    keys: frozenset[str] = frozenset()


_NOTHING = Hidden()
_SEALED_MARK = '"encrypted_'
_SEALED = expression(r'("encrypted_\w{1,40}": ?")[^"]+"')
_LEFT_OUT_WORDS = (
    "truncated", "omitted", "redacted", "elided", "snipped", "not shown", "not logged", "cleared", "stored",
    "persisted", "offloaded",
)  # fmt: skip
_LEFT_OUT = (
    r"(?:[\[<(]|\.{3}|…|#{2,})[ .…#]{0,6}(?:[\w,.:-]{1,20} ){0,5}(?:truncated|omitted|redacted|elided|"
    r"snipped|not shown|not logged)\b[^\])>\n\"]{0,40}(?:[\])>]|#{2,}|(?=\"|\Z))"
)
_IS_LEFT_OUT = expression(rf"(?i){_LEFT_OUT}\s*[\]}}\"]*\Z|\A\W{{0,3}}(?:redacted|omitted)\W{{0,3}}\Z")
_TELLS_OF_IT = expression(
    r"(?i)\W{0,3}(?:(?:old|full|raw|this|the|tool) ){0,3}(?:result|output|content|response|body|"
    r"payload|data)s? (?:\w+ ){0,3}(?:omitted|redacted|truncated|elided|cleared|"
    r"not (?:shown|logged|recorded)|"
    r"(?:stored|persisted|offloaded) (?:as|in|to|at|under))\b[^\n]{0,60}"
)
_CUT = expression(rf"(?i){_LEFT_OUT}")
_FIELD_LEFT_OUT = expression(rf'(?i)"([^"]{{1,60}})": ?"(?:{_LEFT_OUT}|redacted)"')
_MEDIA_MARKS = (
    "base64", "image", "audio", "video", "screenshot", "input_file", "file]", "file>", "document]",
    "document>", "mimetype",
)  # fmt: skip
_MEDIA = expression(
    r"(?i:[\[<](?:(?:input|output)_)?(?:image|file|document|audio|video|screenshot)(?:_url)?[\]>])"
    r"|data:[\w/+.-]{3,60};base64,|\"mimeType\": ?\"(?:image|audio|video|application/pdf)"
    r"|\"type\": ?\"(?:base64|input_image|image_url|input_audio|input_file|computer_screenshot)\""
)
_BINARY = expression(r"\"?[A-Za-z0-9+/_-]{200,}={0,2}(?:\"|\Z)")
_BINARY_VALUE = expression(r"\"[A-Za-z0-9+/_-]{200,}={0,2}(?:\"|\Z)")
_STORED = expression(r"\A\W?(?:s3|gs|blob|azblob|artifact|dbfs|memory|resource)://\S+\Z")
_REFERENCE = expression(
    r"(?i)(?:result|output|content|artifact|blob|payload|response)_?(?:ids?|ref|reference|key|ur[il]|path|handle)"
    r"|\$?ref|handle|size|bytes|mime_?type|stored|expires_?(?:at|in)?"
)
_FIRST_KEY = expression(r'\{\s*"([^"\\]*)"')
_SHORT = 400
_LONG = 200
_MASKED = ({"*"}, {"•"})


def hidden_in(text: str, small: str) -> Hidden:
    """What the text of a result (in lower case: ``small``) hides; the quick looks first."""
    if _SEALED_MARK in small and _SEALED.search(text):
        return Hidden(all=True)
    if _is_medium(text, small) or (len(text) < _SHORT and (_is_reference(text) or set(text) in _MASKED)):
        return Hidden(all=True)
    return _left_out(text) if any(map(small.__contains__, _LEFT_OUT_WORDS)) else _NOTHING


def shows_file(text: str) -> bool:
    """Whether a message has a picture or a file with it, which only the agent saw."""
    return _MEDIA.search(text) is not None if "[" in text or "<" in text else False


def _is_medium(text: str, small: str) -> bool:
    if any(map(small.__contains__, _MEDIA_MARKS)) and _MEDIA.search(text):
        return True
    return len(text) >= _LONG and bool(_BINARY.match(text) or _BINARY_VALUE.search(text))


def _is_reference(text: str) -> bool:
    if _STORED.match(text):
        return True
    first = _FIRST_KEY.match(text)
    if first and not _REFERENCE.fullmatch(first[1]):
        return False  # most, without reading them
    value = json_of(text) if text[:1] == "{" else None
    return (
        isinstance(value, dict)
        and bool(value)
        and all(
            _REFERENCE.fullmatch(str(key)) and not isinstance(below, dict | list)
            for key, below in value.items()
        )
        and any(isinstance(below, str) for below in value.values())
    )


def _left_out(text: str) -> Hidden:
    """Of an object, single fields (or all of it, where the field is called nothing but content); of any other
    text, a part."""
    fields = list(map(key_stems, _FIELD_LEFT_OUT.findall(text)))
    if fields:
        return Hidden(not all(fields), frozenset(stem for stems in fields for stem in stems))
    if len(text) < _SHORT and _TELLS_OF_IT.fullmatch(text.strip()):
        return Hidden(all=True)
    is_object = text.lstrip()[:1] in {"{", "["} and json_of(text) is not None
    return Hidden(bool(_IS_LEFT_OUT.search(text) or (not is_object and _CUT.search(text))))


def unsealed(text: str) -> str:
    """The text of a result without what is encrypted in it."""
    return _SEALED.sub(r'\1"', text) if _SEALED_MARK in text else text


def readable(value: Any, text: str) -> Any:
    """The JSON of a result without the pages that are sealed, of which only the titles can be read, and
    without their ages."""
    if _SEALED_MARK not in text and '"page_age"' not in text:
        return value
    return _without_pages(value, 0)


def _without_pages(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        return value
    if isinstance(value, list):
        return [_without_pages(each, depth + 1) for each in value]
    if not isinstance(value, dict):
        return value
    if any(str(key).startswith("encrypted_") for key in value):
        return {key: value[key] for key in ("cited_text", "text") if key in value}
    return {key: _without_pages(below, depth + 1) for key, below in value.items() if key != "page_age"}


_DEEPEST = 40
