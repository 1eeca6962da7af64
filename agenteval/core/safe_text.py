"""Sanitizes text written by an agent or a tool so that it is harmless wherever it is displayed (terminal
escape sequences, Markdown or XML injection, CI workflow commands).

The module contains one pure function for each destination. Each function accepts any text and returns text
that a terminal, an XML parser, a CI log or a Markdown renderer displays but never interprets. Only control
characters are removed, not content: letters, emoji and combining marks are kept."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

from agenteval.core.errors import REMEDY, split_remedy

WIDTH_SPACE = "\u200b"
"""A zero-width space, inserted where a renderer would create a link. It is invisible and stops
autolinking."""

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # CSI: colors, cursor, erase
    # OSC, DCS and kin; none begins within another, so that the search takes linear time
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n\r]*+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]++[0-~]"  # character sets and the like
)
# Of a cut or unknown sequence only the ESC is removed: its text must stay visible.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidi: text displayed in another order
    "\u200b\u2060\ufeff\U000e0000-\U000e007f]"  # invisible hiding places; ZWJ and ZWNJ belong to scripts
)
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029]")
_SURROGATES = re.compile("[\ud800-\udfff]")
_NOT_XML = re.compile("[\ufffe\uffff]")


def clean(text: str) -> str:
    """Remove escape sequences, control characters and bidirectional (bidi) characters from ``text``. Newlines
    and tabs are kept.

    Every other line ending becomes a newline. An unpaired surrogate, which no file can contain, becomes
    U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", _SEQUENCES.sub("", text))
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))


def strip_escapes(text: str) -> str:
    """Remove the ANSI escape sequences that a terminal interprets (colors, titles, links)."""
    return _SEQUENCES.sub("", text)


_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""Unicode's default-ignorable characters and similar characters. The characters that ``clean`` keeps because
a script requires them are also invisible."""
_GAP = f"{_CONTROLS.pattern}|{_UNSEEN.pattern}".replace("]|[", "")
_GAPS = re.compile(f"{_GAP}+")
# No run of characters may include the beginning of a sequence.
_OTHER_GAP = _GAP.replace("\x0e-\x1f\x7f-\x9f", "\x0e-\x1a\x1c-\x1f\x7f-\x8f\x91-\x97\x99\x9a\x9c")
_GAPS_AND_SEQUENCES = re.compile(f"{_SEQUENCES.pattern}|{_OTHER_GAP}+|{_GAP}")
_SEEN_ASCII = bytes(code for code in range(128) if not _GAPS.match(chr(code)))


def has_invisible(text: str) -> bool:
    """Check whether ``find_invisible`` finds anything in ``text``."""
    # To delete bytes is ten times as fast as a search, and little is left of most texts.
    rest = text.encode("utf-8", "surrogatepass").translate(None, _SEEN_ASCII)
    return bool(rest) and _GAPS.search(rest.decode("utf-8", "surrogatepass")) is not None


def find_invisible(text: str, *, sequences: bool = True) -> list[tuple[int, int]]:
    """Return the spans of everything that ``clean`` removes and of all invisible characters, in order. A span
    may cover several of them. If ``sequences`` is false, only single characters are found. This is used for
    files, in which nothing interprets escape sequences."""
    return [gap.span() for gap in _gaps(sequences).finditer(text)]


def remove_invisible(text: str, *, sequences: bool = True) -> str:
    """Return ``text`` without what ``find_invisible`` finds."""
    return _gaps(sequences).sub("", text)


def _gaps(sequences: bool) -> re.Pattern[str]:
    return _GAPS_AND_SEQUENCES if sequences else _GAPS


def one_line(text: str, limit: int) -> str:
    """Clean ``text``, collapse its white space, and truncate it to ``limit`` characters (including ``…``)."""
    # Most of the text may be white space, so the part that is examined is generous but bounded.
    line = " ".join(clean(text[: limit * 20 + 1000]).split())
    return line if len(line) <= limit else line[: max(0, limit - 1)].rstrip() + "…"


def one_line_message(text: str, limit: int) -> str:
    """Format one of agenteval's messages as ``one_line`` does, but truncate only quoted content, never the
    remedy."""
    line = one_line(text, len(text))
    what, remedy = split_remedy(line)
    if not remedy or len(line) <= limit:
        return one_line(line, limit)
    return one_line(what, max(limit // 2, limit - len(REMEDY + remedy))) + REMEDY + remedy


def one_line_with_digest(text: str, limit: int) -> str:
    """Format ``text`` as ``one_line`` does, but replace the truncated part with a digest of the entire text,
    so that different texts can be distinguished."""
    line = " ".join(clean(text).split())
    if len(line) <= limit:
        return line
    digest = _digest(line)
    return f"{line[: max(0, limit - len(digest) - 4)].rstrip()}… [{digest}]"


def limit_texts(count: int, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the distinct texts. If there are more than ``count``, the remaining texts are replaced with
    their number and a digest."""
    known = list(dict.fromkeys(texts))
    if len(known) <= count:
        return tuple(known)
    digest = _digest("\n".join(known[count:]))
    return (*known[:count], f"and {len(known) - count:,} more [{digest}]")


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=4).hexdigest()


def to_xml_text(text: str) -> str:
    """Remove the characters from ``text`` that XML 1.0 does not allow. The XML writer adds the XML escape
    sequences for ``<`` and ``&``."""
    return _NOT_XML.sub("", clean(text))


_FORMULA = re.compile(r"\A(?=[\t\n])|(?:\A|(?<=[\n\t;]))(?=[^\S\n]*[=+@\-＝＋＠－])")
"""The places at which a cell may become a formula. A spreadsheet that expects another separator than the
comma splits a cell at semicolons, tabs and newlines."""


def to_csv_text(text: str) -> str:
    """Clean ``text`` for a cell of a CSV file, and put an apostrophe before everything that a spreadsheet
    would evaluate as a formula (CSV injection). Newlines are kept, but no line is interpreted as a workflow
    command. The CSV writer adds the quotes."""
    return _FORMULA.sub("'", neutralize_workflow_commands(text))


def neutralize_workflow_commands(text: str) -> str:
    """Change ``text`` for the log of a CI job so that no line is interpreted as a workflow command (command
    injection).

    GitHub's runner interprets lines that begin with ``::`` (even after spaces) and, in the older form,
    ``##[`` anywhere in a line."""
    text = re.sub(r"^(\s*):(?=:)", r"\1: ", clean(text), flags=re.MULTILINE)
    return text.replace("##[", "## [")


def github_data(text: str) -> str:
    """Encode ``text`` as the message of a workflow command: one line that the runner decodes."""
    text = neutralize_workflow_commands(text)
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_property(text: str) -> str:
    """Encode ``text`` as a property (``file=``, ``title=``) of a workflow command."""
    return github_data(text).replace(":", "%3A").replace(",", "%2C")


_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])")  # `_` within a word is no emphasis
_LEADING = re.compile(r"^(?=[#+=-])|^(\d+)(?=[.)](?:\s|$))")
_LINKED = re.compile(
    r"(?i)(?<=:)(?=//)|(?<=www)(?=\.)|(?<=\bmailto:)|(?<=\bxmpp:)|(?<=@)|(?<=#)(?=\d)|(?<=\bGH)(?=-\d)"
)


def escape_markdown(text: str) -> str:
    """Escape ``text`` so that it is plain text within a line of Markdown or a table cell.

    Nothing in the result is interpreted as markup, HTML, a link, an image, a mention or a reference to an
    issue."""
    line = " ".join(clean(text).split())
    line = re.sub("[&<>]", lambda found: _ENTITIES[found[0]], line)
    line = _SPECIAL.sub(r"\\\g<0>", line)
    line = _LEADING.sub(lambda found: f"{found[1] or ''}\\", line)
    return _LINKED.sub(WIDTH_SPACE, line)


def fence(text: str, language: str = "text") -> str:
    """Format ``text`` as a Markdown code block. The fence is longer than any run of backticks in ``text``."""
    body = neutralize_workflow_commands(text).rstrip("\n")  # a report may be printed to a CI log
    bar = "`" * max(3, _longest_backticks(body) + 1)
    return f"{bar}{language}\n{body}\n{bar}"


def _longest_backticks(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)


def shorten(text: str, limit: int) -> str:
    """Clean ``text``, keep its lines, and truncate it to ``limit`` characters with a note about the omitted
    part."""
    if len(text) > limit:
        return f"{clean(text[:limit]).rstrip()}… [{len(text) - limit:,} more characters]"
    return clean(text)


def shorten_message(text: str, limit: int) -> str:
    """Shorten one of agenteval's messages as ``shorten`` does, and append any remedies in the truncated
    part."""
    short = shorten(text, limit)
    if len(text) <= limit:
        return short
    remedies = dict.fromkeys(split_remedy(line)[1] for line in clean(text).split("\n"))
    lost = [f"{REMEDY.lstrip()}{remedy}" for remedy in remedies if remedy and remedy not in short]
    return "\n".join((short, *lost))
